/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * test_jspace.c - room in the log, who waits for it, and what it costs.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <cmocka.h>

#include "jfixture.h"

static void test_too_large(void **state)
{
	struct fixture *f = *state;
	struct trans tr;

	assert_int_equal(trans_begin(f->jt.j, &tr, 300, 0, 0), -ENOSPC);
	assert_int_equal(trans_begin(f->jt.j, &tr, 247, 0, 0), 0);
	trans_end(&tr);
	assert_int_equal(trans_begin(f->jt.j, &tr, 248, 0, 0), -ENOSPC);
	assert_int_equal(trans_begin(f->jt.j, &tr, UINT32_MAX, UINT32_MAX, 0),
			 -ENOSPC);
}

/* The largest one fits, whatever is in the log; it makes its own room. */
static void test_room_is_made(void **state)
{
	struct fixture *f = *state;
	struct trans tr;

	for (uint64_t round = 1; round < 20; round++) {
		assert_int_equal(trans_begin(f->jt.j, &tr, 1, 0, TRANS_NOWAIT),
				 round == 1 ? 0 : -EAGAIN);
		if (round == 1)
			trans_end(&tr);
		assert_int_equal(trans_begin(f->jt.j, &tr, 247, 0, 0), 0);
		for (uint32_t i = 0; i < 247; i++) {
			struct buf *b = jt_read(&f->jt, i);

			trans_add_meta(&tr, b);
			jt_fill(&f->jt, b->b_data, round);
			buf_put(b);
		}
		trans_end(&tr);
	}
	assert_int_equal(jf_flush(f), 0);
	jf_crash_and_reopen(f);
	assert_int_equal(jt_on_device(&f->jt, 246), 19);
}

static void *begin_main(void *arg)
{
	struct job *job = arg;
	struct trans tr;

	job->result = trans_begin(job->f->jt.j, &tr, job->arg, 0, 0);
	atomic_store(&job->done, true);
	if (!job->result)
		trans_end(&tr);
	return NULL;
}

/* What an open transaction has reserved comes back when it ends. */
static void test_wait_for_reservation(void **state)
{
	struct fixture *f = *state;
	struct timespec moment = { .tv_nsec = 20000000 };
	struct job job;
	struct trans tr, small;

	assert_int_equal(trans_begin(f->jt.j, &tr, 200, 0, 0), 0);
	job_start(&job, f, begin_main, 100);
	nanosleep(&moment, NULL);
	assert_false(atomic_load(&job.done));
	/* Who comes later does not overtake. */
	assert_int_equal(trans_begin(f->jt.j, &small, 1, 0, TRANS_NOWAIT),
			 -EAGAIN);
	trans_end(&tr);
	assert_int_equal(job_join(&job), 0);
}

static void test_nowait_at_the_gate(void **state)
{
	struct fixture *f = *state;
	struct trans tr, second;
	struct job job;
	struct buf *b;

	assert_int_equal(trans_begin(f->jt.j, &tr, 1, 0, 0), 0);
	b = jt_new(&f->jt, 5);
	trans_add_meta(&tr, b);
	jt_fill(&f->jt, b->b_data, 1);
	buf_put(b);
	job_start(&job, f, job_flush, 0);
	/* Sooner or later the flush has closed the gate. */
	while (trans_begin(f->jt.j, &second, 1, 0, TRANS_NOWAIT) == 0)
		trans_end(&second);
	assert_false(atomic_load(&job.done));
	trans_end(&tr);
	assert_int_equal(job_join(&job), 0);
	assert_int_equal(trans_begin(f->jt.j, &second, 1, 0, TRANS_NOWAIT), 0);
	trans_end(&second);
}

static void test_thresholds(void **state)
{
	struct fixture *f = *state;

	for (uint32_t i = 0; i < 90; i++)
		jt_set(&f->jt, i, 1);
	assert_int_equal(atomic_load(&f->jt.want_flush), 0);
	for (uint32_t i = 90; i < 120; i++)
		jt_set(&f->jt, i, 1);
	assert_int_equal(atomic_load(&f->jt.want_flush), 1);
	assert_int_equal(jf_flush(f), 0);
	assert_int_equal(atomic_load(&f->jt.want_writeback), 0);
	for (uint32_t i = 120; i < 220; i++)
		jt_set(&f->jt, i, 1);
	assert_int_equal(jf_flush(f), 0);
	assert_int_equal(atomic_load(&f->jt.want_writeback), 1);
	assert_int_equal(journal_writeback(f->jt.j, 50), 0);
}

/* Many want durability while the device is slow: two flushes serve all. */
static void test_group_commit(void **state)
{
	struct fixture *f = *state;
	struct journal_stats stats;
	struct job first, job[6];

	jt_set(&f->jt, 0, 1);
	delay_hold(f->delay, LAYER_WRITE);
	job_start(&first, f, job_flush, 0);
	delay_wait_held(f->delay, 1);
	for (uint32_t i = 0; i < 6; i++) {
		jt_set(&f->jt, i + 1, 1);
		job_start(&job[i], f, job_flush, 0);
	}
	delay_release(f->delay);
	assert_int_equal(job_join(&first), 0);
	for (uint32_t i = 0; i < 6; i++)
		assert_int_equal(job_join(&job[i]), 0);
	journal_stats(f->jt.j, &stats);
	assert_in_range(stats.flushes, 2, 3);
}

static void test_speed(void **state)
{
	struct fixture *f = *state;
	struct timespec from, to;
	unsigned n = 300000;
	struct trans tr;
	struct buf *b[6];

	for (uint32_t i = 0; i < 6; i++) {
		b[i] = jt_new(&f->jt, i);
		gfs2_meta_init(b[i]->b_data, GFS2_METATYPE_IN);
	}
	clock_gettime(CLOCK_MONOTONIC, &from);
	for (unsigned i = 0; i < n; i++) {
		trans_begin(f->jt.j, &tr, 3, 0, 0);
		trans_add_meta(&tr, b[i % 6]);
		trans_add_meta(&tr, b[(i + 1) % 6]);
		trans_add_meta(&tr, b[(i + 2) % 6]);
		trans_end(&tr);
	}
	clock_gettime(CLOCK_MONOTONIC, &to);
	for (uint32_t i = 0; i < 6; i++)
		buf_put(b[i]);
	print_message("small transaction: %.0f ns\n",
		      ((double)(to.tv_sec - from.tv_sec) * 1e9 +
		       (double)(to.tv_nsec - from.tv_nsec)) /
			      n);
}

/* The first addition of a block costs more: it gets its record. */
static void test_speed_of_first_addition(void **state)
{
	struct fixture *f = *state;
	struct timespec from, to;
	struct buf *b[1500];
	struct trans tr;
	double ns = 0;

	for (uint32_t i = 0; i < 1500; i++) {
		b[i] = jt_new(&f->jt, i);
		gfs2_meta_init(b[i]->b_data, GFS2_METATYPE_IN);
	}
	for (unsigned round = 0; round < 20; round++) {
		clock_gettime(CLOCK_MONOTONIC, &from);
		for (uint32_t i = 0; i < 1500; i += 3) {
			trans_begin(f->jt.j, &tr, 3, 0, 0);
			trans_add_meta(&tr, b[i]);
			trans_add_meta(&tr, b[i + 1]);
			trans_add_meta(&tr, b[i + 2]);
			trans_end(&tr);
		}
		clock_gettime(CLOCK_MONOTONIC, &to);
		ns += (double)(to.tv_sec - from.tv_sec) * 1e9 +
		      (double)(to.tv_nsec - from.tv_nsec);
		assert_int_equal(journal_writeback(f->jt.j, 0), 0);
	}
	for (uint32_t i = 0; i < 1500; i++)
		buf_put(b[i]);
	print_message("transaction with 3 new blocks: %.0f ns\n",
		      ns / 20 / 500);
}

#define T(name) cmocka_unit_test_setup_teardown(name, jf_setup, jf_teardown)
#define T_BIG(name) \
	cmocka_unit_test_setup_teardown(name, jf_setup_big, jf_teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		T(test_too_large),
		T(test_room_is_made),
		T(test_wait_for_reservation),
		T(test_nowait_at_the_gate),
		T(test_thresholds),
		T(test_group_commit),
		T(test_speed),
		T_BIG(test_speed_of_first_addition),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
