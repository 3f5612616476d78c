/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * test_journal.c - what a transaction promises, one story at a time.
 *
 * A "crash" stops the journal without a word, opens the device again through
 * replay, and looks.
 */
#include <errno.h>
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <cmocka.h>

#include "jfixture.h"

static void test_fresh_journal(void **state)
{
	struct fixture *f = *state;

	/* Block 0 has 1000 % 256 = 232, so block 23 has 255, the highest. */
	assert_int_equal(f->jt.head.blkno, 23);
	assert_int_equal(f->jt.head.sequence, 255);
	assert_true(f->jt.head.clean);
}

static void test_committed_survives(void **state)
{
	struct fixture *f = *state;
	uint64_t seq = jt_set(&f->jt, 5, 77);

	assert_false(journal_is_durable(f->jt.j, seq));
	assert_int_equal(journal_flush(f->jt.j, seq), 0);
	assert_true(journal_is_durable(f->jt.j, seq));
	/* Durable, but not in place. */
	assert_int_equal(jt_on_device(&f->jt, 5), 0);
	jf_crash_and_reopen(f);
	assert_int_equal(f->jt.replayed.blocks_replayed, 1);
	assert_int_equal(jt_on_device(&f->jt, 5), 77);
}

static void test_uncommitted_does_not(void **state)
{
	struct fixture *f = *state;

	jt_set(&f->jt, 5, 77);
	assert_int_equal(jf_flush(f), 0);
	jt_set(&f->jt, 5, 78);
	jt_set(&f->jt, 6, 79);
	jf_crash_and_reopen(f);
	assert_int_equal(jt_on_device(&f->jt, 5), 77);
	assert_int_equal(jt_on_device(&f->jt, 6), 0);
}

static void test_unused_costs_nothing(void **state)
{
	struct fixture *f = *state;
	struct journal_stats stats;
	struct trans tr;
	uint64_t seq;

	assert_int_equal(trans_begin(f->jt.j, &tr, 10, 10, 0), 0);
	seq = trans_end(&tr);
	assert_true(journal_is_durable(f->jt.j, seq));
	assert_int_equal(journal_flush(f->jt.j, seq), 0);
	journal_stats(f->jt.j, &stats);
	assert_int_equal(stats.flushes, 0);
	assert_int_equal(stats.transactions, 0);
	/* Not even the end writes: the old head is still the head. */
	jt_close(&f->jt);
	jt_open(&f->jt, f->dev);
	assert_int_equal(f->jt.head.sequence, 255);
}

static void test_clean_end(void **state)
{
	struct fixture *f = *state;

	f->jt.local[1] = -5;
	jt_set(&f->jt, 5, 77);
	jt_set(&f->jt, 6, 78);
	f->jt.local[1] = 0;
	jt_close(&f->jt);
	jt_open(&f->jt, f->dev);
	assert_int_equal(f->jt.replayed.blocks_replayed, 0);
	assert_true(f->jt.head.clean);
	assert_int_equal(f->jt.head.flags & GFS2_LOG_HEAD_UNMOUNT, 1);
	assert_int_equal(f->jt.head.tail, f->jt.head.blkno);
	assert_int_equal(f->jt.head.local_free, 0);
	assert_int_equal(f->jt.head.statfs_addr, 18);
	assert_int_equal(jt_on_device(&f->jt, 5), 77);
	assert_int_equal(jt_on_device(&f->jt, 6), 78);
}

/* A frozen log needs no replay, and takes nothing until the thaw. */
static void test_freeze(void **state)
{
	struct fixture *f = *state;
	struct trans tr;

	jt_set(&f->jt, 5, 77);
	assert_int_equal(journal_freeze(f->jt.j), 0);
	assert_int_equal(jt_on_device(&f->jt, 5), 77);
	assert_int_equal(trans_begin(f->jt.j, &tr, 1, 0, TRANS_NOWAIT),
			 -EAGAIN);
	jf_crash_and_reopen(f);
	assert_true(f->jt.head.clean);
	assert_int_equal(f->jt.head.flags & GFS2_LOG_HEAD_FLUSH_FREEZE,
			 GFS2_LOG_HEAD_FLUSH_FREEZE);
	assert_int_equal(f->jt.replayed.blocks_replayed, 0);
}

static void *job_set(void *arg)
{
	struct job *job = arg;

	jt_set(&job->f->jt, job->arg, 78);
	atomic_store(&job->done, true);
	return NULL;
}

/* Who waits goes on, and the log with the next sequence. */
static void test_thaw(void **state)
{
	struct fixture *f = *state;
	struct job job;

	jt_set(&f->jt, 5, 77);
	assert_int_equal(journal_freeze(f->jt.j), 0);
	job_start(&job, f, job_set, 6);
	usleep(20000);
	assert_false(atomic_load(&job.done));
	journal_thaw(f->jt.j);
	job_join(&job);
	assert_int_equal(jf_flush(f), 0);
	jf_crash_and_reopen(f);
	assert_int_equal(f->jt.replayed.blocks_replayed, 1);
	assert_int_equal(jt_on_device(&f->jt, 6), 78);
}

struct adder {
	pthread_t thread;
	struct fixture *f;
	struct buf *b;
	atomic_uint *arrived;
	bool flushes;
};

/* Spins: a barrier that sleeps would wake one after the other. */
static void meet(atomic_uint *arrived)
{
	unsigned goal = atomic_fetch_add(arrived, 1) / 2 * 2 + 2;

	for (unsigned i = 1; atomic_load(arrived) < goal; i++) {
		if (i % 4096 == 0)
			sched_yield();
	}
}

static void *adder_main(void *arg)
{
	struct adder *a = arg;
	struct trans tr;

	for (unsigned i = 0; i < 500; i++) {
		if (trans_begin(a->f->jt.j, &tr, 1, 0, 0))
			abort();
		meet(a->arrived);
		trans_add_meta(&tr, a->b);
		trans_end(&tr);
		meet(a->arrived);
		if (a->flushes && jf_flush(a->f))
			abort();
		meet(a->arrived);
	}
	return NULL;
}

/*
 * A glock can be shared within the node (resource groups): transactions of two
 * threads add one buffer at the same moment, each before it takes the lock
 * under which it changes the buffer. It enters the flush once.
 */
static void test_two_add_one_buffer(void **state)
{
	struct fixture *f = *state;
	atomic_uint arrived = 0;
	struct journal_stats stats;
	struct adder adder[2];
	struct buf *b = jt_new(&f->jt, 5);

	gfs2_meta_init(b->b_data, GFS2_METATYPE_IN);
	for (unsigned i = 0; i < 2; i++) {
		adder[i] = (struct adder){
			.f = f,
			.b = b,
			.arrived = &arrived,
			.flushes = i == 0,
		};
		pthread_create(&adder[i].thread, NULL, adder_main, &adder[i]);
	}
	for (unsigned i = 0; i < 2; i++)
		pthread_join(adder[i].thread, NULL);
	buf_put(b);
	journal_stats(f->jt.j, &stats);
	assert_int_equal(stats.transactions, 1000);
	assert_int_equal(stats.blocks_logged, 500);
}

static void test_header_carries_statfs(void **state)
{
	struct fixture *f = *state;

	jt_set(&f->jt, 5, 77);
	f->jt.local[0] = 1;
	f->jt.local[1] = -2;
	f->jt.local[2] = 3;
	assert_int_equal(jf_flush(f), 0);
	journal_abort(f->jt.j, -EIO);
	assert_int_equal(
		replay_scan(f->dev, 4096, &f->jt.map, "test", &f->jt.head), 0);
	assert_false(f->jt.head.clean);
	assert_true(f->jt.head.v2);
	assert_int_equal(f->jt.head.local_total, 1);
	assert_int_equal(f->jt.head.local_free, -2);
	assert_int_equal(f->jt.head.local_dinodes, 3);
	jt_crash(&f->jt);
}

static void test_jid_is_stamped(void **state)
{
	struct fixture *f = *state;
	struct gfs2_meta_header *mh;
	struct buf *b = jt_new(&f->jt, 5);
	struct trans tr;

	gfs2_meta_init(b->b_data, GFS2_METATYPE_IN);
	mh = b->b_data;
	mh->__pad0 = be64_of(99);
	assert_int_equal(trans_begin(f->jt.j, &tr, 1, 0, 0), 0);
	trans_add_meta(&tr, b);
	assert_int_equal(be32_get(mh->mh_jid), JT_JID);
	assert_int_equal(be64_get(mh->__pad0), 0);
	trans_end(&tr);
	buf_put(b);
}

/* Several descriptors of each kind, in one flush, over a cut-up journal. */
static void test_large_flush(void **state)
{
	struct fixture *f = *state;
	struct trans tr;

	for (uint32_t i = 0; i < 300; i++)
		jt_set(&f->jt, i, 1000 + i);
	assert_int_equal(trans_begin(f->jt.j, &tr, 200, 700, 0), 0);
	for (uint32_t i = 300; i < 500; i++) {
		struct buf *b = jt_new(&f->jt, i);

		trans_add_jdata(&tr, b);
		memset(b->b_data, (int)i, f->jt.bsize);
		buf_put(b);
	}
	for (uint32_t i = 500; i < 1200; i++)
		trans_free_block(&tr, f->jt.meta_first + i);
	trans_end(&tr);
	assert_int_equal(jf_flush(f), 0);
	jf_crash_and_reopen(f);
	assert_int_equal(f->jt.replayed.blocks_replayed, 500);
	assert_int_equal(f->jt.replayed.revokes, 700);
	for (uint32_t i = 0; i < 300; i++)
		assert_int_equal(jt_on_device(&f->jt, i), 1000 + i);
	for (uint32_t i = 300; i < 500; i++)
		assert_int_equal(jt_on_device(&f->jt, i) & 0xff, i & 0xff);
}

/* Round the ring many times; each time only the last state is there. */
static void test_wraps(void **state)
{
	struct fixture *f = *state;

	for (uint64_t round = 1; round <= 200; round++) {
		for (uint32_t i = 0; i < 20; i++)
			jt_set(&f->jt, i, round * 100 + i);
		assert_int_equal(jf_flush(f), 0);
		if (round % 7 == 0)
			assert_int_equal(journal_writeback(f->jt.j, 0), 0);
		if (round % 10 == 0) {
			jf_crash_and_reopen(f);
			for (uint32_t i = 0; i < 20; i++)
				assert_int_equal(jt_on_device(&f->jt, i),
						 round * 100 + i);
		}
	}
}

/* Data that begins like a block of the log must not be taken for one. */
static void test_escape(void **state)
{
	struct fixture *f = *state;
	const be32 magic = be32_of(GFS2_MAGIC);
	uint8_t block[4096];
	uint8_t data[3][4096];
	struct trans tr;

	memset(data, 0x5a, sizeof(data));
	memcpy(data[0], &magic, 4);
	memset(data[1], 0, sizeof(data[1])); /* magic, then type 0 */
	memcpy(data[1], &magic, 4);
	assert_int_equal(trans_begin(f->jt.j, &tr, 3, 0, 0), 0);
	for (uint32_t i = 0; i < 3; i++) {
		struct buf *b = jt_new(&f->jt, i);

		trans_add_jdata(&tr, b);
		memcpy(b->b_data, data[i], sizeof(data[i]));
		buf_put(b);
	}
	trans_end(&tr);
	assert_int_equal(jf_flush(f), 0);
	/* Block 24 is the descriptor, the images follow. */
	for (uint32_t i = 0; i < 3; i++) {
		jt_read_block(&f->jt, JT_LOG_FIRST + 25 + i, block);
		assert_memory_not_equal(block, &magic, 4);
		assert_memory_equal(block + 4, data[i] + 4, 4092);
	}
	jf_crash_and_reopen(f);
	for (uint32_t i = 0; i < 3; i++) {
		jt_read_block(&f->jt, f->jt.meta_first + i, block);
		assert_memory_equal(block, data[i], 4096);
	}
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

static void test_callback(void **state)
{
	struct fixture *f = *state;
	struct note note = { .cb.fn = note_commit };
	struct trans tr;

	assert_int_equal(trans_begin(f->jt.j, &tr, 0, 0, 0), 0);
	trans_on_commit(&tr, &note.cb);
	trans_end(&tr);
	assert_int_equal(note.calls, 0);
	assert_int_equal(jf_flush(f), 0);
	assert_int_equal(note.calls, 1);
	assert_int_equal(note.err, 0);
	assert_int_equal(jf_flush(f), 0);
	assert_int_equal(note.calls, 1);
}

#define T(name) cmocka_unit_test_setup_teardown(name, jf_setup, jf_teardown)
#define T_BIG(name) \
	cmocka_unit_test_setup_teardown(name, jf_setup_big, jf_teardown)
#define T_512(name) \
	cmocka_unit_test_setup_teardown(name, jf_setup_512, jf_teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		T(test_fresh_journal),
		T(test_committed_survives),
		T(test_uncommitted_does_not),
		T(test_unused_costs_nothing),
		T(test_clean_end),
		T(test_freeze),
		T(test_thaw),
		T(test_two_add_one_buffer),
		T(test_header_carries_statfs),
		T(test_jid_is_stamped),
		T_512(test_large_flush),
		T_BIG(test_large_flush),
		T(test_wraps),
		T_512(test_wraps),
		T(test_escape),
		T(test_callback),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
