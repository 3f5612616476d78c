/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * assert.h - assertions that are on in every build.
 *
 * A failed assertion runs the hook first (the mount process shuts its device
 * there, so that nothing more is written), dumps the ring and aborts: for
 * everybody else this is a crash, and takes the tested road of a crash.
 * Never used on disk, wire or user input.
 */
#ifndef UG_BASE_ASSERT_H
#define UG_BASE_ASSERT_H

#include "base/compiler.h"

/* hook(arg) runs once, in the failing thread, before anything is printed. */
void ug_assert_set_hook(void (*hook)(void *arg), void *arg);

ug_noreturn void ug_assert_failed(const char *expr, const char *file, int line,
				  const char *func);

#define ug_assert(expr)    \
	(ug_likely(expr)   \
		 ? (void)0 \
		 : ug_assert_failed(#expr, __FILE__, __LINE__, __func__))

#endif
