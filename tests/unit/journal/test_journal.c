/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * test_journal.c - what a transaction promises, one story at a time.
 *
 * A "crash" stops the journal without a word, opens the device again through
 * replay, and looks. Where a moment in the middle of I/O matters, the
 * delay layer's gate holds the device there.
 */
#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <cmocka.h>

#include "block/delay.h"
#include "block/fault.h"
#include "jtest.h"

#define META_BLOCKS 3000u

struct fixture {
	struct jtest jt;
	struct blkdev *dev;
	struct delay *delay;
	struct fault *counter;
};

static int setup_with(void **state, uint32_t bsize, uint32_t log_blocks,
		      unsigned extents)
{
	struct fixture *f = calloc(1, sizeof(*f));
	struct blkdev *memory, *counted;

	jt_init(&f->jt, bsize, log_blocks, extents, META_BLOCKS);
	assert_int_equal(
		blkdev_open_memory(jt_device_bytes(&f->jt), 512, &memory), 0);
	assert_int_equal(fault_open(memory, &f->counter, &counted), 0);
	assert_int_equal(delay_open(counted, &f->delay, &f->dev), 0);
	jt_format(&f->jt, f->dev, 1000 % log_blocks);
	jt_open(&f->jt, f->dev);
	*state = f;
	return 0;
}

static int setup(void **state)
{
	return setup_with(state, 4096, 256, 1);
}

static int setup_big(void **state)
{
	return setup_with(state, 4096, 2048, 1);
}

static int setup_512(void **state)
{
	return setup_with(state, 512, 2048, 7);
}

static int teardown(void **state)
{
	struct fixture *f = *state;

	delay_release(f->delay);
	if (f->jt.j)
		jt_close(&f->jt);
	jt_fini(&f->jt);
	blkdev_close(f->dev);
	free(f);
	return 0;
}

static void crash_and_reopen(struct fixture *f)
{
	jt_crash(&f->jt);
	jt_open(&f->jt, f->dev);
}

static int flush_all(struct fixture *f)
{
	return journal_flush(f->jt.j, UINT64_MAX);
}

/* ---- commit ------------------------------------------------------------ */

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
	crash_and_reopen(f);
	assert_int_equal(f->jt.replayed.blocks_replayed, 1);
	assert_int_equal(jt_on_device(&f->jt, 5), 77);
}

static void test_uncommitted_does_not(void **state)
{
	struct fixture *f = *state;

	jt_set(&f->jt, 5, 77);
	assert_int_equal(flush_all(f), 0);
	jt_set(&f->jt, 5, 78);
	jt_set(&f->jt, 6, 79);
	crash_and_reopen(f);
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
		if (a->flushes && flush_all(a->f))
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
	assert_int_equal(flush_all(f), 0);
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
	assert_int_equal(flush_all(f), 0);
	crash_and_reopen(f);
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
		assert_int_equal(flush_all(f), 0);
		if (round % 7 == 0)
			assert_int_equal(journal_writeback(f->jt.j, 0), 0);
		if (round % 10 == 0) {
			crash_and_reopen(f);
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
	assert_int_equal(flush_all(f), 0);
	/* Block 24 is the descriptor, the images follow. */
	for (uint32_t i = 0; i < 3; i++) {
		jt_read_block(&f->jt, JT_LOG_FIRST + 25 + i, block);
		assert_memory_not_equal(block, &magic, 4);
		assert_memory_equal(block + 4, data[i] + 4, 4092);
	}
	crash_and_reopen(f);
	for (uint32_t i = 0; i < 3; i++) {
		jt_read_block(&f->jt, f->jt.meta_first + i, block);
		assert_memory_equal(block, data[i], 4096);
	}
}

struct note {
	struct commit_cb cb;
	unsigned calls;
	int err;
	struct jtest *jt;
	uint64_t seq;
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
	assert_int_equal(flush_all(f), 0);
	assert_int_equal(note.calls, 1);
	assert_int_equal(note.err, 0);
	assert_int_equal(flush_all(f), 0);
	assert_int_equal(note.calls, 1);
}

/* ---- write-back and the tail ------------------------------------------- */

static void test_writeback_frees_the_log(void **state)
{
	struct fixture *f = *state;
	struct journal_stats stats;

	for (uint32_t i = 0; i < 50; i++)
		jt_set(&f->jt, i, i + 1);
	assert_int_equal(flush_all(f), 0);
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
	crash_and_reopen(f);
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
	assert_int_equal(flush_all(f), 0);
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
	assert_int_equal(flush_all(f), 0);
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
	crash_and_reopen(f);
	assert_int_equal(jt_on_device(&f->jt, 5), 3);
}

struct job {
	pthread_t thread;
	struct fixture *f;
	uint32_t arg;
	int result;
	atomic_bool done;
};

static void *flush_main(void *arg)
{
	struct job *job = arg;

	job->result = flush_all(job->f);
	atomic_store(&job->done, true);
	return NULL;
}

static void *writeback_main(void *arg)
{
	struct job *job = arg;

	job->result = journal_writeback(job->f->jt.j, job->arg);
	atomic_store(&job->done, true);
	return NULL;
}

static void job_start(struct job *job, struct fixture *f, void *(*fn)(void *),
		      uint32_t arg)
{
	memset(job, 0, sizeof(*job));
	job->f = f;
	job->arg = arg;
	pthread_create(&job->thread, NULL, fn, job);
}

static void job_join(struct job *job, int result)
{
	pthread_join(job->thread, NULL);
	assert_int_equal(job->result, result);
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
	job_start(&job, f, flush_main, 0);
	delay_wait_held(f->delay, 1);
	jt_set(&f->jt, 0, 5000);
	jt_set(&f->jt, 1099, 5001);
	jt_set(&f->jt, 1098, 5002);
	delay_release(f->delay);
	job_join(&job, 0);
	crash_and_reopen(f);
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
	job_start(&job, f, flush_main, 0);
	delay_wait_held(f->delay, 1);
	assert_int_equal(trans_begin(f->jt.j, &tr, 0, 2, 0), 0);
	trans_free_block(&tr, f->jt.meta_first);
	trans_free_block(&tr, f->jt.meta_first + 1099);
	trans_end(&tr);
	delay_release(f->delay);
	job_join(&job, 0);
}

/* What it commits has not been freed yet. */
static void test_free_during_flush(void **state)
{
	struct fixture *f = *state;

	free_during_flush(f);
	crash_and_reopen(f);
	assert_int_equal(jt_on_device(&f->jt, 0), 1);
	assert_int_equal(jt_on_device(&f->jt, 1099), 1100);
}

/* The next flush frees them for good: nothing is written there any more. */
static void test_freed_during_flush_is_gone(void **state)
{
	struct fixture *f = *state;

	free_during_flush(f);
	assert_int_equal(flush_all(f), 0);
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
	assert_int_equal(flush_all(f), 0);
	delay_hold(f->delay, LAYER_WRITE);
	job_start(&job, f, writeback_main, 1);
	delay_wait_held(f->delay, 1);
	jt_set(&f->jt, 5, 2);
	delay_release(f->delay);
	job_join(&job, 0);
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
	assert_int_equal(flush_all(f), 0);
	delay_hold(f->delay, LAYER_WRITE);
	job_start(&writing, f, writeback_main, 1);
	delay_wait_held(f->delay, 1);
	job_start(&freeing, f, free_main, 5);
	/* Nothing to wait for: it must not come. */
	nanosleep(&moment, NULL);
	assert_false(atomic_load(&freeing.done));
	delay_release(f->delay);
	job_join(&writing, 0);
	job_join(&freeing, 0);
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
		crash_and_reopen(f);
		assert_int_equal(jt_on_device(&f->jt, 5), 2);
		assert_int_equal(jt_on_device(&f->jt, 7), 5);
	}
}

/* ---- freeing ----------------------------------------------------------- */

static void free_block(struct fixture *f, uint32_t i)
{
	struct trans tr;

	assert_int_equal(trans_begin(f->jt.j, &tr, 0, 1, 0), 0);
	trans_free_block(&tr, f->jt.meta_first + i);
	trans_free_block(&tr, f->jt.meta_first + i); /* counts once */
	trans_end(&tr);
}

/* The freed block becomes file data; replay must not put metadata there. */
static void test_revoke_protects_new_data(void **state)
{
	struct fixture *f = *state;
	uint8_t data[4096];
	uint8_t block[4096];

	memset(data, 0xda, sizeof(data));
	jt_set(&f->jt, 6, 1); /* keeps the tail here */
	jt_set(&f->jt, 5, 1);
	assert_int_equal(flush_all(f), 0);
	free_block(f, 5);
	assert_int_equal(flush_all(f), 0);
	jt_write_block(&f->jt, f->jt.meta_first + 5, data);
	crash_and_reopen(f);
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
	free_block(f, 5);
	assert_int_equal(flush_all(f), 0);
	jt_write_block(&f->jt, f->jt.meta_first + 5, data);
	crash_and_reopen(f);
	jt_read_block(&f->jt, f->jt.meta_first + 5, block);
	assert_memory_equal(block, data, 4096);
}

/* A free that was not committed has not happened. */
static void test_uncommitted_free(void **state)
{
	struct fixture *f = *state;

	jt_set(&f->jt, 5, 1);
	assert_int_equal(flush_all(f), 0);
	free_block(f, 5);
	crash_and_reopen(f);
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
	assert_int_equal(flush_all(f), 0);
	jt_set(&f->jt, 6, 2);
	delay_hold(f->delay, LAYER_WRITE);
	job_start(&job, f, flush_main, 0);
	delay_wait_held(f->delay, 1);
	free_block(f, 5);
	delay_release(f->delay);
	job_join(&job, 0);
	crash_and_reopen(f);
	assert_int_equal(jt_on_device(&f->jt, 5), 1);
	assert_int_equal(jt_on_device(&f->jt, 6), 2);
}

/* Changed and freed within one flush: not logged at all. */
static void test_freed_in_its_own_flush(void **state)
{
	struct fixture *f = *state;
	struct journal_stats stats;

	jt_set(&f->jt, 5, 1);
	free_block(f, 5);
	assert_int_equal(flush_all(f), 0);
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
	assert_int_equal(flush_all(f), 0);
	free_block(f, 5);
	assert_int_equal(flush_all(f), 0);
	jt_set(&f->jt, 5, 2);
	assert_int_equal(flush_all(f), 0);
	crash_and_reopen(f);
	assert_int_equal(jt_on_device(&f->jt, 5), 2);
	assert_int_equal(f->jt.replayed.blocks_revoked, 1);
}

/* In the same flush the revoke would hide the image: it is dropped. */
static void test_revoke_dropped(void **state)
{
	struct fixture *f = *state;
	struct journal_stats stats;

	jt_set(&f->jt, 5, 1);
	assert_int_equal(flush_all(f), 0);
	free_block(f, 5);
	jt_set(&f->jt, 5, 2);
	assert_int_equal(flush_all(f), 0);
	journal_stats(f->jt.j, &stats);
	assert_int_equal(stats.revokes, 0);
	crash_and_reopen(f);
	assert_int_equal(jt_on_device(&f->jt, 5), 2);
	assert_int_equal(f->jt.replayed.blocks_revoked, 0);
}

/* ---- space ------------------------------------------------------------- */

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
	assert_int_equal(flush_all(f), 0);
	crash_and_reopen(f);
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
	job_join(&job, 0);
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
	job_start(&job, f, flush_main, 0);
	/* Sooner or later the flush has closed the gate. */
	while (trans_begin(f->jt.j, &second, 1, 0, TRANS_NOWAIT) == 0)
		trans_end(&second);
	assert_false(atomic_load(&job.done));
	trans_end(&tr);
	job_join(&job, 0);
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
	assert_int_equal(flush_all(f), 0);
	assert_int_equal(atomic_load(&f->jt.want_writeback), 0);
	for (uint32_t i = 120; i < 220; i++)
		jt_set(&f->jt, i, 1);
	assert_int_equal(flush_all(f), 0);
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
	job_start(&first, f, flush_main, 0);
	delay_wait_held(f->delay, 1);
	for (uint32_t i = 0; i < 6; i++) {
		jt_set(&f->jt, i + 1, 1);
		job_start(&job[i], f, flush_main, 0);
	}
	delay_release(f->delay);
	job_join(&first, 0);
	for (uint32_t i = 0; i < 6; i++)
		job_join(&job[i], 0);
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

#define T(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
#define T_BIG(name) cmocka_unit_test_setup_teardown(name, setup_big, teardown)
#define T_512(name) cmocka_unit_test_setup_teardown(name, setup_512, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		T(test_fresh_journal),
		T(test_committed_survives),
		T(test_uncommitted_does_not),
		T(test_unused_costs_nothing),
		T(test_clean_end),
		T(test_two_add_one_buffer),
		T(test_header_carries_statfs),
		T(test_jid_is_stamped),
		T_512(test_large_flush),
		T_BIG(test_large_flush),
		T(test_wraps),
		T_512(test_wraps),
		T(test_escape),
		T(test_callback),
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
		T(test_revoke_protects_new_data),
		T(test_revoke_of_forgotten),
		T(test_uncommitted_free),
		T(test_free_does_not_move_the_tail),
		T(test_freed_in_its_own_flush),
		T(test_revoked_and_logged_again),
		T(test_revoke_dropped),
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
