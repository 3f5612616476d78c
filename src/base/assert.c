/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * assert.c - the last acts of a process that no longer trusts itself.
 *
 * Order: the hook (no more writes to the device), the reason, the ring, the
 * abort. The first thread to fail does all of it; others that fail meanwhile
 * stop where they are, since what they know may be a consequence of the
 * same fault. A failure inside these acts aborts at once.
 */
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/assert.h"
#include "base/log.h"

static struct {
	void (*hook)(void *arg);
	void *arg;
	atomic_int failing_tid; /* 0: nobody has failed yet */
} assert_state;

void ug_assert_set_hook(void (*hook)(void *arg), void *arg)
{
	assert_state.arg = arg;
	assert_state.hook = hook;
}

void ug_assert_failed(const char *expr, const char *file, int line,
		      const char *func)
{
	int first = 0;
	int self = gettid();

	if (!atomic_compare_exchange_strong(&assert_state.failing_tid, &first,
					    self)) {
		while (first != self)
			pause();
		abort();
	}
	if (assert_state.hook)
		assert_state.hook(assert_state.arg);
	ug_error("assertion failed", "%s, in %s(), %s:%d", expr, func, file,
		 line);
	ug_log_dump(stderr);
	abort();
}
