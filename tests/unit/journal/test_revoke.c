/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * test_revoke.c - what becomes of a block that is freed.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <cmocka.h>

#include "jfixture.h"

/* The freed block becomes file data; replay must not put metadata there. */
static void test_revoke_protects_new_data(void **state)
{
	struct fixture *f = *state;
	uint8_t data[4096];
	uint8_t block[4096];

	memset(data, 0xda, sizeof(data));
	jt_set(&f->jt, 6, 1); /* keeps the tail here */
	jt_set(&f->jt, 5, 1);
	assert_int_equal(jf_flush(f), 0);
	jf_free(f, 5);
	assert_int_equal(jf_flush(f), 0);
	jt_write_block(&f->jt, f->jt.meta_first + 5, data);
	jf_crash_and_reopen(f);
	assert_int_equal(f->jt.replayed.blocks_revoked, 1);
	jt_read_block(&f->jt, f->jt.meta_first + 5, block);
	assert_memory_equal(block, data, 4096);
}

/* Written in place, and forgotten, but the log still has it. */
static void test_revoke_of_forgotten(void **state)
{
	struct fixture *f = *state;
	uint8_t data[4096];
	uint8_t block[4096];
	struct buf_owner other;
	struct trans tr;
	struct buf *b;

	memset(data, 0xda, sizeof(data));
	buf_owner_init(&other);
	assert_int_equal(trans_begin(f->jt.j, &tr, 1, 0, 0), 0);
	assert_int_equal(buf_new(f->jt.cache, &other, f->jt.meta_first + 5, &b),
			 0);
	trans_add_meta(&tr, b);
	jt_fill(&f->jt, b->b_data, 2);
	buf_put(b);
	trans_end(&tr);
	jt_set(&f->jt, 6, 1);
	assert_int_equal(journal_writeback_owner(f->jt.j, &other), 0);
	buf_invalidate_owner(f->jt.cache, &other);
	buf_owner_destroy(&other);
	jf_free(f, 5);
	assert_int_equal(jf_flush(f), 0);
	jt_write_block(&f->jt, f->jt.meta_first + 5, data);
	jf_crash_and_reopen(f);
	jt_read_block(&f->jt, f->jt.meta_first + 5, block);
	assert_memory_equal(block, data, 4096);
}

/* A free that was not committed has not happened. */
static void test_uncommitted_free(void **state)
{
	struct fixture *f = *state;

	jt_set(&f->jt, 5, 1);
	assert_int_equal(jf_flush(f), 0);
	jf_free(f, 5);
	jf_crash_and_reopen(f);
	assert_int_equal(jt_on_device(&f->jt, 5), 1);
}

/*
 * A flush is under way when the block is freed: its header must not let the
 * tail pass the block's image, as it does not commit the free.
 */
static void test_free_does_not_move_the_tail(void **state)
{
	struct fixture *f = *state;
	struct job job;

	jt_set(&f->jt, 5, 1);
	assert_int_equal(jf_flush(f), 0);
	jt_set(&f->jt, 6, 2);
	delay_hold(f->delay, LAYER_WRITE);
	job_start(&job, f, job_flush, 0);
	delay_wait_held(f->delay, 1);
	jf_free(f, 5);
	delay_release(f->delay);
	assert_int_equal(job_join(&job), 0);
	jf_crash_and_reopen(f);
	assert_int_equal(jt_on_device(&f->jt, 5), 1);
	assert_int_equal(jt_on_device(&f->jt, 6), 2);
}

/* Changed and freed within one flush: not logged at all. */
static void test_freed_in_its_own_flush(void **state)
{
	struct fixture *f = *state;
	struct journal_stats stats;

	jt_set(&f->jt, 5, 1);
	jf_free(f, 5);
	assert_int_equal(jf_flush(f), 0);
	journal_stats(f->jt.j, &stats);
	assert_int_equal(stats.blocks_logged, 0);
	assert_int_equal(stats.revokes, 1);
	assert_int_equal(journal_writeback(f->jt.j, 0), 0);
	assert_int_equal(jt_on_device(&f->jt, 5), 0);
}

/* Logged again behind its revoke: replayed. */
static void test_revoked_and_logged_again(void **state)
{
	struct fixture *f = *state;

	jt_set(&f->jt, 6, 1); /* keeps the tail here */
	jt_set(&f->jt, 5, 1);
	assert_int_equal(jf_flush(f), 0);
	jf_free(f, 5);
	assert_int_equal(jf_flush(f), 0);
	jt_set(&f->jt, 5, 2);
	assert_int_equal(jf_flush(f), 0);
	jf_crash_and_reopen(f);
	assert_int_equal(jt_on_device(&f->jt, 5), 2);
	assert_int_equal(f->jt.replayed.blocks_revoked, 1);
}

/* In the same flush the revoke would hide the image: it is dropped. */
static void test_revoke_dropped(void **state)
{
	struct fixture *f = *state;
	struct journal_stats stats;

	jt_set(&f->jt, 5, 1);
	assert_int_equal(jf_flush(f), 0);
	jf_free(f, 5);
	jt_set(&f->jt, 5, 2);
	assert_int_equal(jf_flush(f), 0);
	journal_stats(f->jt.j, &stats);
	assert_int_equal(stats.revokes, 0);
	jf_crash_and_reopen(f);
	assert_int_equal(jt_on_device(&f->jt, 5), 2);
	assert_int_equal(f->jt.replayed.blocks_revoked, 0);
}

#define T(name) cmocka_unit_test_setup_teardown(name, jf_setup, jf_teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		T(test_revoke_protects_new_data),
		T(test_revoke_of_forgotten),
		T(test_uncommitted_free),
		T(test_free_does_not_move_the_tail),
		T(test_freed_in_its_own_flush),
		T(test_revoked_and_logged_again),
		T(test_revoke_dropped),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
