/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * jfixture.h - a journal over a device in memory, for the tests of one story.
 *
 *   journal -> delay (a gate to stop requests at) -> counter -> memory
 */
#ifndef UG_TESTS_JFIXTURE_H
#define UG_TESTS_JFIXTURE_H

#include <pthread.h>

#include "block/delay.h"
#include "block/fault.h"
#include "jtest.h"

struct fixture {
	struct jtest jt;
	struct blkdev *dev;
	struct delay *delay;
	struct fault *counter;
};

/* cmocka's; *state becomes a fixture. Journals of 256 and 2048 blocks. */
int jf_setup(void **state);
int jf_setup_big(void **state);
int jf_setup_512(void **state); /* small blocks, seven extents */
int jf_teardown(void **state);

void jf_crash_and_reopen(struct fixture *f);
/* All that has ended until now. */
int jf_flush(struct fixture *f);
/* A transaction that frees test block i, as metadata. */
void jf_free(struct fixture *f, uint32_t i);

/* Something done by another thread. */
struct job {
	pthread_t thread;
	struct fixture *f;
	uint32_t arg;
	int result;
	atomic_bool done;
};

void job_start(struct job *job, struct fixture *f, void *(*fn)(void *),
	       uint32_t arg);
/* Returns the job's result. */
int job_join(struct job *job);

/* Jobs: flush everything; write back to arg percent. */
void *job_flush(void *arg);
void *job_writeback(void *arg);

#endif
