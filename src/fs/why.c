/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * why.c - see why.h.
 */
#include <stdarg.h>
#include <stdio.h>

#include "fs/why.h"

int why_set(const struct why *why, int err, const char *fmt, ...)
{
	va_list ap;

	if (why->len) {
		va_start(ap, fmt);
		vsnprintf(why->text, why->len, fmt, ap);
		va_end(ap);
	}
	return err;
}
