/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * fakelm.h - a lock manager that does what the test says, and one glock with
 * an object whose callbacks write into the same trace.
 *
 * The trace is the sequence of what came out of the glock, in words:
 * "sync", "invalidate UN", "lock EX", "lock SH try", "cancel", "put",
 * "instantiate". Requests are answered by fake_answer(), or at once with
 * `at_once`.
 */
#ifndef UG_TESTS_FAKELM_H
#define UG_TESTS_FAKELM_H

#include <pthread.h>
#include <stdatomic.h>

#include "glock/glock.h"

#define FAKE_NUMBER 0x2015cu

struct fake {
	struct glock_table *table;
	struct glock *gl;
	bool at_once;	     /* answer within ops->lock, and do as asked */
	bool says_at_once;   /* only say so */
	bool cancel_at_once; /* answer within ops->cancel, from unlocked */
	atomic_uint woken;   /* calls of the host's wake() */
	int sync_error;
	int instantiate_error;

	/* Guarded by lock, for tests with several threads. */
	pthread_mutex_t lock;
	pthread_cond_t changed;
	char trace[1024];
	bool gate_closed; /* sync and instantiate wait while this is set */
	bool at_gate;
};

/*
 * A table, and a glock of LM_TYPE_INODE with an object. For cmocka. A test that
 * hangs is killed after 20 seconds.
 */
int fake_setup(void **state);
/* Answers nothing: what is under way must have been answered. */
int fake_teardown(void **state);

extern const struct glock_ops fake_inode_ops;

/*
 * The same with workers, which are whoever calls fake_work(), a glock with hold
 * time, and "callback EX" in the trace.
 */
int fake_setup_worked(void **state);
extern const struct glock_ops fake_worked_ops;
/* Everything that is to be done at this time. */
void fake_work(struct fake *f);

void fake_trace(struct fake *f, const char *fmt, ...) ug_printf(2, 3);
/* Compare the trace since the last call ("a, b, c"), and forget it. */
void fake_expect(struct fake *f, const char *expected);

/* glock_complete() for the glock. */
void fake_answer(struct fake *f, enum lm_state state, enum lm_outcome outcome);
/* The usual one. */
void fake_grant(struct fake *f, enum lm_state state);

/* The gate in sync and instantiate. */
void fake_close_gate(struct fake *f);
void fake_wait_at_gate(struct fake *f);
void fake_open_gate(struct fake *f);

#endif
