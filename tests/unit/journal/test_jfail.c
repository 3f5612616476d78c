/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * test_jfail.c - a journal whose device fails, and one that is told to stop.
 *
 * After the first failed write nothing more may reach the device, everybody
 * gets -EIO, and the owner hears of it once.
 */
#include <errno.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "block/fault.h"
#include "jtest.h"

struct fixture {
	struct jtest jt;
	struct blkdev *dev;
	struct fault *fault;
};

static int setup(void **state)
{
	struct fixture *f = calloc(1, sizeof(*f));
	struct blkdev *memory;

	jt_init(&f->jt, 4096, 256, 1, 300);
	assert_int_equal(
		blkdev_open_memory(jt_device_bytes(&f->jt), 512, &memory), 0);
	assert_int_equal(fault_open(memory, &f->fault, &f->dev), 0);
	jt_format(&f->jt, f->dev, 0);
	jt_open(&f->jt, f->dev);
	*state = f;
	return 0;
}

static int teardown(void **state)
{
	struct fixture *f = *state;

	if (f->jt.j)
		jt_crash(&f->jt);
	jt_fini(&f->jt);
	blkdev_close(f->dev);
	free(f);
	return 0;
}

static void fail_from(struct fixture *f, unsigned ops, uint64_t pass)
{
	const struct fault_rule rule = { .ops = ops, .pass = pass };

	fault_set(f->fault, &rule);
}

struct note {
	struct commit_cb cb;
	unsigned calls;
	int err;
};

static void note_commit(struct commit_cb *cb, int err)
{
	struct note *note = ug_container_of(cb, struct note, cb);

	note->calls++;
	note->err = err;
}

static void begin_with_note(struct fixture *f, struct trans *tr,
			    struct note *note)
{
	memset(note, 0, sizeof(*note));
	note->cb.fn = note_commit;
	assert_int_equal(trans_begin(f->jt.j, tr, 1, 1, 0), 0);
	trans_on_commit(tr, &note->cb);
}

/* From now on the journal must be silent and refuse everything. */
static void check_is_dead(struct fixture *f)
{
	uint64_t writes = fault_seen(f->fault, LAYER_WRITE | LAYER_FLUSH);
	struct trans tr;

	assert_int_equal(atomic_load(&f->jt.failed_calls), 1);
	assert_int_equal(trans_begin(f->jt.j, &tr, 1, 0, 0), -EIO);
	assert_int_equal(trans_begin(f->jt.j, &tr, 1, 0, TRANS_NOWAIT), -EIO);
	assert_int_equal(journal_flush(f->jt.j, UINT64_MAX), -EIO);
	assert_int_equal(journal_writeback(f->jt.j, 0), -EIO);
	assert_int_equal(journal_shutdown(f->jt.j), -EIO);
	assert_int_equal(fault_seen(f->fault, LAYER_WRITE | LAYER_FLUSH),
			 writes);
	assert_int_equal(atomic_load(&f->jt.failed_calls), 1);
}

/* The n-th write or flush of a flush fails: 0 log, 1 flush, 2 header. */
static void fail_flush_at(struct fixture *f, uint64_t n)
{
	struct note committing;
	struct trans tr;

	jt_set(&f->jt, 1, 1);
	assert_int_equal(journal_flush(f->jt.j, UINT64_MAX), 0);
	jt_set(&f->jt, 2, 2);
	begin_with_note(f, &tr, &committing);
	trans_end(&tr);
	fail_from(f, LAYER_WRITE | LAYER_FLUSH, n);
	assert_int_equal(journal_flush(f->jt.j, UINT64_MAX), -EIO);
	assert_int_equal(fault_failed(f->fault), 1);
	assert_int_equal(committing.calls, 1);
	assert_int_equal(committing.err, -EIO);
	fault_set(f->fault, NULL);
	check_is_dead(f);
	jt_crash(&f->jt);
	jt_open(&f->jt, f->dev);
	assert_int_equal(jt_on_device(&f->jt, 1), 1);
	assert_int_equal(jt_on_device(&f->jt, 2), 0);
}

static void test_log_write_fails(void **state)
{
	fail_flush_at(*state, 0);
}

static void test_device_flush_fails(void **state)
{
	fail_flush_at(*state, 1);
}

static void test_header_fails(void **state)
{
	fail_flush_at(*state, 2);
}

static void test_write_in_place_fails(void **state)
{
	struct fixture *f = *state;
	struct note note;
	struct trans tr;

	jt_set(&f->jt, 1, 1);
	assert_int_equal(journal_flush(f->jt.j, UINT64_MAX), 0);
	begin_with_note(f, &tr, &note);
	trans_end(&tr);
	fail_from(f, LAYER_WRITE, 0);
	assert_int_equal(journal_writeback(f->jt.j, 1), -EIO);
	fault_set(f->fault, NULL);
	check_is_dead(f);
	/* It was never flushed: the end is what it hears of. */
	assert_int_equal(note.calls, 0);
	jt_crash(&f->jt);
	assert_int_equal(note.calls, 1);
	assert_int_equal(note.err, -EIO);
	jt_open(&f->jt, f->dev);
	assert_int_equal(jt_on_device(&f->jt, 1), 1);
}

static void test_last_header_fails(void **state)
{
	struct fixture *f = *state;

	jt_set(&f->jt, 1, 1);
	assert_int_equal(journal_writeback(f->jt.j, 0), 0);
	fail_from(f, LAYER_WRITE, 0);
	assert_int_equal(journal_shutdown(f->jt.j), -EIO);
	assert_int_equal(atomic_load(&f->jt.failed_calls), 1);
	fault_set(f->fault, NULL);
	jt_crash(&f->jt);
	assert_int_equal(
		replay_scan(f->dev, 4096, &f->jt.map, "test", &f->jt.head), 0);
	assert_false(f->jt.head.clean);
}

/* A block without a header would make replay fail: it is not committed. */
static void test_metadata_without_header(void **state)
{
	struct fixture *f = *state;
	struct trans tr;
	struct buf *b = jt_new(&f->jt, 1);

	assert_int_equal(trans_begin(f->jt.j, &tr, 1, 0, 0), 0);
	trans_add_meta(&tr, b);
	buf_put(b);
	trans_end(&tr);
	assert_int_equal(journal_flush(f->jt.j, UINT64_MAX), -EIO);
	assert_int_equal(atomic_load(&f->jt.failed_err), -EUCLEAN);
	check_is_dead(f);
}

static void abort_when_failed(struct jtest *jt)
{
	journal_abort(jt->j, -EIO);
}

static void test_abort_from_failed(void **state)
{
	struct fixture *f = *state;

	f->jt.on_failed = abort_when_failed;
	jt_set(&f->jt, 1, 1);
	fail_from(f, LAYER_FLUSH, 0);
	assert_int_equal(journal_flush(f->jt.j, UINT64_MAX), -EIO);
	check_is_dead(f);
}

struct abort_cb {
	struct commit_cb cb;
	struct journal *j;
};

static void abort_on_commit(struct commit_cb *cb, int err)
{
	journal_abort(ug_container_of(cb, struct abort_cb, cb)->j, -EUCLEAN);
}

static void test_abort_from_callback(void **state)
{
	struct fixture *f = *state;
	struct abort_cb cb = { .cb.fn = abort_on_commit, .j = f->jt.j };
	struct trans tr;

	assert_int_equal(trans_begin(f->jt.j, &tr, 0, 0, 0), 0);
	trans_on_commit(&tr, &cb.cb);
	trans_end(&tr);
	assert_int_equal(journal_flush(f->jt.j, UINT64_MAX), 0);
	assert_int_equal(trans_begin(f->jt.j, &tr, 1, 0, 0), -EIO);
	assert_int_equal(atomic_load(&f->jt.failed_calls), 0);
}

static void *flush_main(void *arg)
{
	struct fixture *f = arg;

	return (void *)(intptr_t)journal_flush(f->jt.j, UINT64_MAX);
}

/* The mount is withdrawn by a thread that a flush is waiting for. */
static void test_abort_within_transaction(void **state)
{
	struct fixture *f = *state;
	struct trans tr, other;
	pthread_t thread;
	struct buf *b;
	void *result;

	jt_set(&f->jt, 1, 1);
	assert_int_equal(trans_begin(f->jt.j, &tr, 2, 1, 0), 0);
	pthread_create(&thread, NULL, flush_main, f);
	while (trans_begin(f->jt.j, &other, 1, 0, TRANS_NOWAIT) == 0)
		trans_end(&other);
	journal_abort(f->jt.j, -EUCLEAN);
	pthread_join(thread, &result);
	assert_int_equal((intptr_t)result, -EIO);
	/* It goes on until its end, and does no harm. */
	b = jt_read(&f->jt, 1);
	trans_add_meta(&tr, b);
	buf_put(b);
	b = jt_new(&f->jt, 2);
	trans_add_meta(&tr, b);
	buf_put(b);
	trans_free_block(&tr, f->jt.meta_first + 2);
	trans_end(&tr);
	/* What a withdrawn mount does: drop everything, in the journal or not.
	 */
	buf_invalidate_owner(f->jt.cache, &f->jt.owner);
	assert_int_equal(atomic_load(&f->jt.failed_calls), 0);
}

/*
 * Withdrawn between the flush of a demotion and its writing in place. The
 * teardown finds each buffer that was not given back.
 */
static void test_demotion_of_failed(void **state)
{
	struct fixture *f = *state;
	uint64_t writes;

	jt_set(&f->jt, 1, 1);
	assert_int_equal(journal_flush(f->jt.j, UINT64_MAX), 0);
	journal_abort(f->jt.j, -EIO);
	writes = fault_seen(f->fault, LAYER_WRITE);
	assert_int_equal(journal_writeback_owner(f->jt.j, &f->jt.owner), -EIO);
	assert_int_equal(fault_seen(f->fault, LAYER_WRITE), writes);
}

#define T(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		T(test_log_write_fails),
		T(test_device_flush_fails),
		T(test_header_fails),
		T(test_write_in_place_fails),
		T(test_last_header_fails),
		T(test_metadata_without_header),
		T(test_abort_from_failed),
		T(test_abort_from_callback),
		T(test_abort_within_transaction),
		T(test_demotion_of_failed),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
