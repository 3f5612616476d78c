/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * say.c - see say.h.
 */
#include <stdio.h>

#include "daemon/say.h"

void say_line(const char *program, const char *verb, const char *fmt,
	      va_list ap)
{
	fflush(stdout);
	fprintf(stderr, "%s %s: ", program, verb);
	vfprintf(stderr, fmt, ap);
	fputc('\n', stderr);
}
