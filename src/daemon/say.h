/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * say.h - what a verb of ugfs says to whoever has called it.
 */
#ifndef UG_DAEMON_SAY_H
#define UG_DAEMON_SAY_H

#include <stdarg.h>

/* "PROGRAM VERB: SENTENCE" on standard error, after all that was printed. */
void say_line(const char *program, const char *verb, const char *fmt,
	      va_list ap) __attribute__((format(printf, 3, 0)));

#endif
