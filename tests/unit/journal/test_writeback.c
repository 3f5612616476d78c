/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * test_writeback.c - committed images on their way to their places.
 *
 * Where a moment in the middle of I/O matters, the delay layer's gate holds
 * the device there.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <cmocka.h>

#include "jfixture.h"

static void test_writeback_frees_the_log(void **state)
{
	struct fixture *f = *state;
	struct journal_stats stats;

	for (uint32_t i = 0; i < 50; i++)
		jt_set(&f->jt, i, i + 1);
	assert_int_equal(jf_flush(f), 0);
	journal_stats(f->jt.j, &stats);
	assert_int_equal(stats.live_blocks, 52);
	assert_int_equal(journal_writeback(f->jt.j, 50), 0);
	journal_stats(f->jt.j, &stats);
	assert_int_equal(stats.blocks_in_place, 0);
	assert_int_equal(journal_writeback(f->jt.j, 0), 0);
	journal_stats(f->jt.j, &stats);
	assert_int_equal(stats.live_blocks, 1);
	assert_int_equal(stats.blocks_in_place, 50);
	for (uint32_t i = 0; i < 50; i++)
		assert_int_equal(jt_on_device(&f->jt, i), i + 1);
	jf_crash_and_reopen(f);
	assert_int_equal(f->jt.replayed.blocks_replayed, 0);
}

/* Few requests: the log in one and its header, neighbours in place in one. */
static void test_writes_are_merged(void **state)
{
	struct fixture *f = *state;
	uint64_t before = fault_seen(f->counter, LAYER_WRITE);

	for (uint32_t i = 20; i-- > 0;)
		jt_set(&f->jt, i, i + 1);
	for (uint32_t i = 30; i-- > 25;)
		jt_set(&f->jt, i, i + 1);
	assert_int_equal(jf_flush(f), 0);
	assert_int_equal(fault_seen(f->counter, LAYER_WRITE) - before, 2);
	assert_int_equal(journal_writeback(f->jt.j, 0), 0);
	/* Two runs, and the header with the new tail. */
	assert_int_equal(fault_seen(f->counter, LAYER_WRITE) - before, 5);
	for (uint32_t i = 0; i < 20; i++)
		assert_int_equal(jt_on_device(&f->jt, i), i + 1);
}

/* A buffer that is changed again is not written before that is committed. */
static void test_repinned_is_not_written(void **state)
{
	struct fixture *f = *state;
	struct buf *b;
	struct trans tr;

	jt_set(&f->jt, 5, 1);
	jt_set(&f->jt, 6, 2);
	assert_int_equal(jf_flush(f), 0);
	assert_int_equal(trans_begin(f->jt.j, &tr, 1, 0, 0), 0);
	b = jt_read(&f->jt, 5);
	trans_add_meta(&tr, b);
	jt_fill(&f->jt, b->b_data, 3);
	buf_put(b);
	trans_end(&tr);
	/* 1% of the log: block 6 alone will not do, so this has to flush. */
	assert_int_equal(journal_writeback(f->jt.j, 1), 0);
	assert_int_equal(jt_on_device(&f->jt, 6), 2);
	assert_int_equal(jt_on_device(&f->jt, 5), 0);
	jf_crash_and_reopen(f);
	assert_int_equal(jt_on_device(&f->jt, 5), 3);
}

/*
 * The flush is stopped with its staging memory full. What it has not copied
 * yet is changed meanwhile: the log gets the old state nevertheless.
 */
static void test_change_during_flush(void **state)
{
	struct fixture *f = *state;
	struct job job;

	for (uint32_t i = 0; i < 1100; i++)
		jt_set(&f->jt, i, i + 1);
	delay_hold(f->delay, LAYER_WRITE);
	job_start(&job, f, job_flush, 0);
	delay_wait_held(f->delay, 1);
	jt_set(&f->jt, 0, 5000);
	jt_set(&f->jt, 1099, 5001);
	jt_set(&f->jt, 1098, 5002);
	delay_release(f->delay);
	assert_int_equal(job_join(&job), 0);
	jf_crash_and_reopen(f);
	assert_int_equal(f->jt.replayed.blocks_replayed, 1100);
	for (uint32_t i = 0; i < 1100; i++)
		assert_int_equal(jt_on_device(&f->jt, i), i + 1);
}

/* A flush is stopped, and two blocks are freed that it has in hand. */
static void free_during_flush(struct fixture *f)
{
	struct job job;
	struct trans tr;

	for (uint32_t i = 0; i < 1100; i++)
		jt_set(&f->jt, i, i + 1);
	delay_hold(f->delay, LAYER_WRITE);
	job_start(&job, f, job_flush, 0);
	delay_wait_held(f->delay, 1);
	assert_int_equal(trans_begin(f->jt.j, &tr, 0, 2, 0), 0);
	trans_free_block(&tr, f->jt.meta_first);
	trans_free_block(&tr, f->jt.meta_first + 1099);
	trans_end(&tr);
	delay_release(f->delay);
	assert_int_equal(job_join(&job), 0);
}

/* What it commits has not been freed yet. */
static void test_free_during_flush(void **state)
{
	struct fixture *f = *state;

	free_during_flush(f);
	jf_crash_and_reopen(f);
	assert_int_equal(jt_on_device(&f->jt, 0), 1);
	assert_int_equal(jt_on_device(&f->jt, 1099), 1100);
}

/* The next flush frees them for good: nothing is written there any more. */
static void test_freed_during_flush_is_gone(void **state)
{
	struct fixture *f = *state;

	free_during_flush(f);
	assert_int_equal(jf_flush(f), 0);
	assert_int_equal(journal_writeback(f->jt.j, 0), 0);
	assert_int_equal(jt_on_device(&f->jt, 0), 0);
	assert_int_equal(jt_on_device(&f->jt, 1), 2);
	assert_int_equal(jt_on_device(&f->jt, 1099), 0);
}

static void test_change_during_writeback(void **state)
{
	struct fixture *f = *state;
	struct job job;

	jt_set(&f->jt, 5, 1);
	assert_int_equal(jf_flush(f), 0);
	delay_hold(f->delay, LAYER_WRITE);
	job_start(&job, f, job_writeback, 1);
	delay_wait_held(f->delay, 1);
	jt_set(&f->jt, 5, 2);
	delay_release(f->delay);
	assert_int_equal(job_join(&job), 0);
	assert_int_equal(jt_on_device(&f->jt, 5), 1);
	assert_int_equal(journal_writeback(f->jt.j, 0), 0);
	assert_int_equal(jt_on_device(&f->jt, 5), 2);
}

static void *free_main(void *arg)
{
	struct job *job = arg;
	struct trans tr;

	job->result = trans_begin(job->f->jt.j, &tr, 0, 1, 0);
	trans_free_block(&tr, job->f->jt.meta_first + job->arg);
	atomic_store(&job->done, true);
	trans_end(&tr);
	return NULL;
}

/* Freeing waits for the write in place, or that would land in other data. */
static void test_free_waits_for_writeback(void **state)
{
	struct fixture *f = *state;
	struct timespec moment = { .tv_nsec = 20000000 };
	struct job writing, freeing;

	jt_set(&f->jt, 5, 1);
	assert_int_equal(jf_flush(f), 0);
	delay_hold(f->delay, LAYER_WRITE);
	job_start(&writing, f, job_writeback, 1);
	delay_wait_held(f->delay, 1);
	job_start(&freeing, f, free_main, 5);
	/* Nothing to wait for: it must not come. */
	nanosleep(&moment, NULL);
	assert_false(atomic_load(&freeing.done));
	delay_release(f->delay);
	assert_int_equal(job_join(&writing), 0);
	assert_int_equal(job_join(&freeing), 0);
}

static void test_writeback_of_one_owner(void **state)
{
	struct fixture *f = *state;
	struct buf_owner other;
	struct trans tr;
	struct buf *b;

	buf_owner_init(&other);
	jt_set(&f->jt, 5, 1);
	assert_int_equal(trans_begin(f->jt.j, &tr, 1, 0, 0), 0);
	assert_int_equal(buf_new(f->jt.cache, &other, f->jt.meta_first + 6, &b),
			 0);
	trans_add_meta(&tr, b);
	jt_fill(&f->jt, b->b_data, 2);
	buf_put(b);
	trans_end(&tr);
	assert_int_equal(journal_writeback_owner(f->jt.j, &other), 0);
	assert_int_equal(jt_on_device(&f->jt, 6), 2);
	assert_int_equal(jt_on_device(&f->jt, 5), 0);
	buf_invalidate_owner(f->jt.cache, &other);
	buf_owner_destroy(&other);
	assert_int_equal(journal_writeback_owner(f->jt.j, &f->jt.owner), 0);
	assert_int_equal(jt_on_device(&f->jt, 5), 1);
	buf_invalidate_owner(f->jt.cache, &f->jt.owner);
}

/*
 * Our glock goes to another node, which changes the block; then we crash, and
 * that node replays our journal. Also when the block had been in place for
 * long, and only the log still knew it.
 */
static void test_demotion_clears_the_log(void **state)
{
	struct fixture *f = *state;
	uint8_t block[4096] = { 0 };

	jt_close(&f->jt);
	f->jt.shared = true;
	jt_open(&f->jt, f->dev);
	for (unsigned round = 0; round < 2; round++) {
		struct buf_owner other;
		struct trans tr;
		struct buf *b;

		buf_owner_init(&other);
		jt_set(&f->jt, 6, 5); /* the tail is here */
		assert_int_equal(trans_begin(f->jt.j, &tr, 1, 0, 0), 0);
		assert_int_equal(
			buf_new(f->jt.cache, &other, f->jt.meta_first + 5, &b),
			0);
		trans_add_meta(&tr, b);
		jt_fill(&f->jt, b->b_data, 1);
		buf_put(b);
		trans_end(&tr);
		if (round == 1)
			assert_int_equal(journal_writeback(f->jt.j, 1), 0);
		jt_set(&f->jt, 7, 5);
		assert_int_equal(journal_writeback_owner(f->jt.j, &other), 0);
		buf_invalidate_owner(f->jt.cache, &other);
		buf_owner_destroy(&other);

		jt_fill(&f->jt, block, 2);
		jt_write_block(&f->jt, f->jt.meta_first + 5, block);
		jf_crash_and_reopen(f);
		assert_int_equal(jt_on_device(&f->jt, 5), 2);
		assert_int_equal(jt_on_device(&f->jt, 7), 5);
	}
}

#define T(name) cmocka_unit_test_setup_teardown(name, jf_setup, jf_teardown)
#define T_BIG(name) \
	cmocka_unit_test_setup_teardown(name, jf_setup_big, jf_teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		T(test_writeback_frees_the_log),
		T(test_writes_are_merged),
		T(test_repinned_is_not_written),
		T_BIG(test_change_during_flush),
		T_BIG(test_free_during_flush),
		T_BIG(test_freed_during_flush_is_gone),
		T(test_change_during_writeback),
		T(test_free_waits_for_writeback),
		T(test_writeback_of_one_owner),
		T(test_demotion_clears_the_log),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
