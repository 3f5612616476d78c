/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * test_buf.c - the cache of metadata blocks, over a device that counts, fails
 * and stops on demand.
 *
 * The device below answers every read with blocks that carry their own
 * number, so that a wrong block is seen at once.
 */
#include <errno.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <cmocka.h>

#include "base/prng.h"
#include "buf/buf.h"

#define BLOCK 4096u
#define DEVICE_BLOCKS 65536u

struct probe {
	struct blkdev dev;
	pthread_mutex_t lock;
	pthread_cond_t changed;
	unsigned reads;
	unsigned blocks_read;
	uint64_t fail_block; /* reads that touch it fail */
	bool hold;	     /* reads wait until it is cleared */
	unsigned held;	     /* reads that wait now */
};

static int probe_readv(struct blkdev *dev, const struct iovec *iov, int iovcnt,
		       uint64_t offset_bytes)
{
	struct probe *probe = ug_container_of(dev, struct probe, dev);
	uint64_t blkno = offset_bytes / BLOCK;
	bool fails = false;

	pthread_mutex_lock(&probe->lock);
	probe->reads++;
	probe->held++;
	pthread_cond_broadcast(&probe->changed);
	while (probe->hold)
		pthread_cond_wait(&probe->changed, &probe->lock);
	probe->held--;
	for (int i = 0; i < iovcnt; i++, blkno++) {
		memset(iov[i].iov_base, 0xee, iov[i].iov_len);
		memcpy(iov[i].iov_base, &blkno, sizeof(blkno));
		fails |= blkno == probe->fail_block;
		probe->blocks_read++;
	}
	pthread_mutex_unlock(&probe->lock);
	return fails ? -EIO : 0;
}

static const struct blkdev_ops probe_ops = { .readv = probe_readv };

struct fixture {
	struct probe probe;
	struct bufcache *cache;
	struct buf_owner owner;
	struct buf_owner other;
};

static int setup_limit(void **state, uint64_t limit_bytes)
{
	struct fixture *f = calloc(1, sizeof(*f));

	f->probe.dev.ops = &probe_ops;
	f->probe.dev.size_bytes = (uint64_t)DEVICE_BLOCKS * BLOCK;
	f->probe.dev.sector_bytes = 512;
	f->probe.fail_block = UINT64_MAX;
	pthread_mutex_init(&f->probe.lock, NULL);
	pthread_cond_init(&f->probe.changed, NULL);
	buf_owner_init(&f->owner);
	buf_owner_init(&f->other);
	*state = f;
	return bufcache_create(&f->probe.dev, BLOCK, limit_bytes, &f->cache);
}

static int setup(void **state)
{
	return setup_limit(state, 64u << 20);
}

static int setup_small(void **state)
{
	return setup_limit(state, 256u * BLOCK);
}

static int teardown(void **state)
{
	struct fixture *f = *state;

	bufcache_destroy(f->cache);
	buf_owner_destroy(&f->owner);
	buf_owner_destroy(&f->other);
	pthread_cond_destroy(&f->probe.changed);
	pthread_mutex_destroy(&f->probe.lock);
	free(f);
	return 0;
}

static uint64_t number_in(const struct buf *b)
{
	uint64_t n;

	memcpy(&n, b->b_data, sizeof(n));
	return n;
}

static void hold_reads(struct probe *probe, bool hold)
{
	pthread_mutex_lock(&probe->lock);
	probe->hold = hold;
	pthread_cond_broadcast(&probe->changed);
	pthread_mutex_unlock(&probe->lock);
}

static void wait_held(struct probe *probe, unsigned n)
{
	pthread_mutex_lock(&probe->lock);
	while (probe->held < n)
		pthread_cond_wait(&probe->changed, &probe->lock);
	pthread_mutex_unlock(&probe->lock);
}

static void test_read_is_cached(void **state)
{
	struct fixture *f = *state;
	struct buf *b, *again;

	assert_int_equal(buf_read(f->cache, &f->owner, 7, 0, &b), 0);
	assert_int_equal(b->b_blkno, 7);
	assert_int_equal(number_in(b), 7);
	assert_int_equal((uintptr_t)b->b_data % BLOCK, 0);
	assert_int_equal(buf_read(f->cache, &f->owner, 7, BUF_NOWAIT, &again),
			 0);
	assert_ptr_equal(b, again);
	assert_int_equal(f->probe.reads, 1);
	buf_put(b);
	buf_put(again);
	assert_ptr_equal(buf_peek(f->cache, 7), b);
	buf_put(b);
	assert_null(buf_peek(f->cache, 8));
}

static void test_nowait_does_not_read(void **state)
{
	struct fixture *f = *state;
	struct buf *b;

	assert_int_equal(buf_read(f->cache, &f->owner, 7, BUF_NOWAIT, &b),
			 -EAGAIN);
	assert_int_equal(f->probe.reads, 0);
}

static void test_outside_the_device(void **state)
{
	struct fixture *f = *state;
	struct buf *b;

	assert_int_equal(buf_read(f->cache, &f->owner, DEVICE_BLOCKS, 0, &b),
			 -EIO);
	assert_int_equal(buf_read(f->cache, &f->owner, UINT64_MAX, 0, &b),
			 -EIO);
	assert_int_equal(buf_new(f->cache, &f->owner, DEVICE_BLOCKS, &b), -EIO);
	buf_readahead(f->cache, &f->owner, DEVICE_BLOCKS - 1, 100);
	assert_int_equal(f->probe.blocks_read, 1);
	buf_readahead(f->cache, &f->owner, UINT64_MAX, 100);
	assert_int_equal(f->probe.blocks_read, 1);
}

static void test_error_leaves_nothing(void **state)
{
	struct fixture *f = *state;
	struct bufcache_stats stats;
	struct buf *b;

	f->probe.fail_block = 7;
	assert_int_equal(buf_read(f->cache, &f->owner, 7, 0, &b), -EIO);
	bufcache_stats(f->cache, &stats);
	assert_int_equal(stats.buffers, 0);
	f->probe.fail_block = UINT64_MAX;
	assert_int_equal(buf_read(f->cache, &f->owner, 7, 0, &b), 0);
	assert_int_equal(number_in(b), 7);
	buf_put(b);
}

static void test_new_is_zero_and_not_read(void **state)
{
	struct fixture *f = *state;
	struct buf *old, *b;

	assert_int_equal(buf_read(f->cache, &f->owner, 7, 0, &old), 0);
	assert_int_equal(buf_new(f->cache, &f->other, 7, &b), 0);
	assert_ptr_not_equal(old, b);
	assert_int_equal(number_in(old), 7);
	for (unsigned i = 0; i < BLOCK; i++)
		assert_int_equal(((uint8_t *)b->b_data)[i], 0);
	buf_put(old);
	assert_int_equal(f->probe.reads, 1);
	buf_put(b);
	b = buf_peek(f->cache, 7);
	assert_int_equal(number_in(b), 0);
	/* As long as the journal knows it, it cannot be new. */
	atomic_store(&b->b_journal, (struct jbuf *)f);
	assert_int_equal(buf_new(f->cache, &f->other, 7, &old), -EUCLEAN);
	atomic_store(&b->b_journal, NULL);
	buf_put(b);
}

static void test_forget(void **state)
{
	struct fixture *f = *state;
	struct bufcache_stats stats;
	struct buf *b, *again;

	assert_int_equal(buf_read(f->cache, &f->owner, 7, 0, &b), 0);
	buf_forget(b);
	buf_forget(b);
	assert_null(buf_peek(f->cache, 7));
	assert_int_equal(number_in(b), 7);
	assert_int_equal(buf_read(f->cache, &f->owner, 7, 0, &again), 0);
	assert_ptr_not_equal(b, again);
	buf_put(b);
	buf_put(again);
	buf_forget_block(f->cache, 7);
	buf_forget_block(f->cache, 8);
	bufcache_stats(f->cache, &stats);
	assert_int_equal(stats.buffers, 0);
}

static void test_owners(void **state)
{
	struct fixture *f = *state;
	struct buf *b;

	for (uint64_t i = 0; i < 100; i++) {
		assert_int_equal(buf_read(f->cache, &f->owner, i, 0, &b), 0);
		buf_put(b);
	}
	/* The last ten change hands; the first do not for want of an owner. */
	for (uint64_t i = 90; i < 100; i++) {
		assert_int_equal(buf_read(f->cache, &f->other, i, 0, &b), 0);
		buf_put(b);
	}
	for (uint64_t i = 0; i < 10; i++) {
		assert_int_equal(buf_read(f->cache, NULL, i, 0, &b), 0);
		buf_put(b);
	}
	buf_invalidate_owner(f->cache, &f->owner);
	for (uint64_t i = 0; i < 90; i++)
		assert_null(buf_peek(f->cache, i));
	for (uint64_t i = 90; i < 100; i++) {
		b = buf_peek(f->cache, i);
		assert_non_null(b);
		buf_put(b);
	}
	buf_invalidate_owner(f->cache, &f->other);
}

/*
 * A block has been freed and used again, by another node perhaps: the first
 * owner's lock says nothing about it any more.
 */
static void test_former_life(void **state)
{
	struct fixture *f = *state;
	struct buf *old, *b, *again;

	assert_int_equal(buf_read(f->cache, &f->owner, 7, 0, &old), 0);
	assert_null(buf_peek_owned(f->cache, &f->other, 7));
	assert_int_equal(buf_read(f->cache, &f->other, 7, BUF_NOWAIT, &b),
			 -EAGAIN);
	assert_int_equal(buf_read(f->cache, &f->other, 7, 0, &b), 0);
	assert_ptr_not_equal(b, old);
	assert_int_equal(f->probe.reads, 2);
	buf_put(old);
	assert_null(buf_peek_owned(f->cache, &f->owner, 7));
	assert_ptr_equal(buf_peek_owned(f->cache, &f->other, 7), b);
	buf_put(b);
	/* What is in the journal is the newest. */
	atomic_store(&b->b_journal, (struct jbuf *)f);
	assert_int_equal(buf_read(f->cache, &f->owner, 7, BUF_NOWAIT, &again),
			 0);
	assert_ptr_equal(again, b);
	atomic_store(&b->b_journal, NULL);
	buf_put(again);
	buf_put(b);
	buf_invalidate_owner(f->cache, &f->owner);
	buf_invalidate_owner(f->cache, &f->other);
}

static void test_owner_in_journal(void **state)
{
	struct fixture *f = *state;
	struct buf *b[10], *got[10];

	for (unsigned i = 0; i < 10; i++)
		assert_int_equal(buf_read(f->cache, &f->owner, i, 0, &b[i]), 0);
	assert_int_equal(buf_owner_in_journal(&f->owner, got, 10), 0);
	for (unsigned i = 0; i < 4; i++)
		atomic_store(&b[i]->b_journal, (struct jbuf *)f);
	assert_int_equal(buf_owner_in_journal(&f->owner, got, 3), 3);
	for (unsigned i = 0; i < 3; i++)
		buf_put(got[i]);
	assert_int_equal(buf_owner_in_journal(&f->owner, got, 10), 4);
	for (unsigned i = 0; i < 4; i++) {
		assert_true(atomic_load(&got[i]->b_journal) != NULL);
		buf_put(got[i]);
		atomic_store(&b[i]->b_journal, NULL);
	}
	for (unsigned i = 0; i < 10; i++)
		buf_put(b[i]);
	buf_invalidate_owner(f->cache, &f->owner);
}

/* The bound is for what can be dropped; what is in use stays. */
static void test_bound(void **state)
{
	struct fixture *f = *state;
	struct bufcache_stats stats;
	struct buf *used[1000];
	struct buf *b;

	for (unsigned i = 0; i < 1000; i++)
		assert_int_equal(buf_read(f->cache, &f->owner, i, 0, &used[i]),
				 0);
	for (uint64_t i = 1000; i < 20000; i++) {
		assert_int_equal(buf_read(f->cache, &f->owner, i, 0, &b), 0);
		assert_int_equal(number_in(b), i);
		buf_put(b);
	}
	bufcache_stats(f->cache, &stats);
	assert_in_range(stats.buffers, 1100, 1000 + 256 + 64);
	for (unsigned i = 0; i < 1000; i++) {
		assert_int_equal(number_in(used[i]), i);
		buf_put(used[i]);
	}
	/* Now these can be dropped as well. */
	bufcache_stats(f->cache, &stats);
	assert_in_range(stats.buffers, 100, 256 + 64);
	buf_invalidate_owner(f->cache, &f->owner);
	bufcache_stats(f->cache, &stats);
	assert_int_equal(stats.buffers, 0);
}

/* What is read again and again survives a long walk over other blocks. */
static void test_used_ones_stay(void **state)
{
	struct fixture *f = *state;
	struct buf *b;
	unsigned misses = 0;

	for (uint64_t i = 100; i < 20000; i++) {
		int err = buf_read(f->cache, &f->owner, i % 8, BUF_NOWAIT, &b);

		if (err) {
			misses++;
			err = buf_read(f->cache, &f->owner, i % 8, 0, &b);
		}
		assert_int_equal(err, 0);
		buf_put(b);
		assert_int_equal(buf_read(f->cache, &f->owner, i, 0, &b), 0);
		buf_put(b);
	}
	assert_in_range(misses, 8, 100);
	buf_invalidate_owner(f->cache, &f->owner);
}

struct reader {
	pthread_t thread;
	struct fixture *f;
	uint64_t blkno;
	struct buf *b;
	int err;
};

static void *reader_main(void *arg)
{
	struct reader *r = arg;

	r->err = buf_read(r->f->cache, &r->f->owner, r->blkno, 0, &r->b);
	return NULL;
}

static void readers_start(struct fixture *f, struct reader *r, unsigned n,
			  uint64_t blkno)
{
	for (unsigned i = 0; i < n; i++) {
		r[i].f = f;
		r[i].blkno = blkno;
		pthread_create(&r[i].thread, NULL, reader_main, &r[i]);
	}
}

/* Several want one block: one request to the device serves them all. */
static void test_readers_share_one_read(void **state)
{
	struct fixture *f = *state;
	struct reader r[4];
	struct buf *b;

	hold_reads(&f->probe, true);
	readers_start(f, r, 4, 7);
	wait_held(&f->probe, 1);
	assert_int_equal(buf_read(f->cache, &f->owner, 7, BUF_NOWAIT, &b),
			 -EAGAIN);
	assert_null(buf_peek(f->cache, 7));
	hold_reads(&f->probe, false);
	for (unsigned i = 0; i < 4; i++) {
		pthread_join(r[i].thread, NULL);
		assert_int_equal(r[i].err, 0);
		assert_int_equal(number_in(r[i].b), 7);
		buf_put(r[i].b);
	}
	assert_int_equal(f->probe.reads, 1);
	buf_invalidate_owner(f->cache, &f->owner);
}

static void test_readers_share_the_error(void **state)
{
	struct fixture *f = *state;
	struct bufcache_stats stats;
	struct reader r[4];

	f->probe.fail_block = 7;
	hold_reads(&f->probe, true);
	readers_start(f, r, 4, 7);
	wait_held(&f->probe, 1);
	hold_reads(&f->probe, false);
	for (unsigned i = 0; i < 4; i++) {
		pthread_join(r[i].thread, NULL);
		assert_int_equal(r[i].err, -EIO);
	}
	bufcache_stats(f->cache, &stats);
	assert_int_equal(stats.buffers, 0);
}

static void test_readahead_in_one_request(void **state)
{
	struct fixture *f = *state;
	struct buf *b;

	buf_readahead(f->cache, &f->owner, 100, 50);
	assert_int_equal(f->probe.reads, 1);
	assert_int_equal(f->probe.blocks_read, 50);
	for (uint64_t i = 100; i < 150; i++) {
		assert_int_equal(
			buf_read(f->cache, &f->owner, i, BUF_NOWAIT, &b), 0);
		assert_int_equal(number_in(b), i);
		buf_put(b);
	}
	/* What is there already is not read again. */
	buf_readahead(f->cache, &f->owner, 90, 70);
	assert_int_equal(f->probe.reads, 3);
	assert_int_equal(f->probe.blocks_read, 70);
	buf_invalidate_owner(f->cache, &f->owner);
}

static void test_readahead_error_is_retried(void **state)
{
	struct fixture *f = *state;
	struct buf *b;

	f->probe.fail_block = 105;
	buf_readahead(f->cache, &f->owner, 100, 10);
	assert_int_equal(buf_read(f->cache, &f->owner, 104, 0, &b), 0);
	assert_int_equal(number_in(b), 104);
	buf_put(b);
	assert_int_equal(buf_read(f->cache, &f->owner, 105, 0, &b), -EIO);
}

/* What has been entered is waited for until the list is started. */
static void test_readahead_in_two_steps(void **state)
{
	struct fixture *f = *state;
	struct buf_ahead *list = NULL;
	struct buf *b;

	buf_ahead_start(NULL);
	buf_ahead_add(f->cache, NULL, 100, 10, &list);
	buf_ahead_add(f->cache, NULL, 105, 10, &list);
	buf_ahead_add(f->cache, NULL, DEVICE_BLOCKS, 10, &list);
	assert_int_equal(f->probe.reads, 0);
	assert_int_equal(buf_read(f->cache, &f->owner, 112, BUF_NOWAIT, &b),
			 -EAGAIN);
	/* Freed meanwhile: the read does not bring it back. */
	buf_forget_block(f->cache, 103);
	buf_ahead_start(list);
	assert_int_equal(f->probe.reads, 2);
	assert_int_equal(f->probe.blocks_read, 15);
	assert_null(buf_peek(f->cache, 103));
	assert_int_equal(buf_read(f->cache, &f->owner, 112, BUF_NOWAIT, &b), 0);
	assert_int_equal(number_in(b), 112);
	buf_put(b);
	buf_invalidate_owner(f->cache, &f->owner);
}

/* A reader waits for the read-ahead of its block; demotion waits as well. */
static void test_readahead_async(void **state)
{
	struct fixture *f = *state;
	struct iopool *pool;
	struct reader r[3];
	struct bufcache_stats stats;

	assert_int_equal(iopool_create(&f->probe.dev, 2, &pool), 0);
	bufcache_set_pool(f->cache, pool);
	hold_reads(&f->probe, true);
	buf_readahead(f->cache, &f->owner, 100, 50);
	wait_held(&f->probe, 1);
	readers_start(f, r, 3, 120);
	hold_reads(&f->probe, false);
	for (unsigned i = 0; i < 3; i++) {
		pthread_join(r[i].thread, NULL);
		assert_int_equal(r[i].err, 0);
		assert_int_equal(number_in(r[i].b), 120);
		buf_put(r[i].b);
	}
	assert_int_equal(f->probe.reads, 1);
	buf_readahead(f->cache, &f->owner, 300, 50);
	buf_invalidate_owner(f->cache, &f->owner);
	bufcache_stats(f->cache, &stats);
	assert_int_equal(stats.buffers, 0);
	iopool_destroy(pool);
	bufcache_set_pool(f->cache, NULL);
}

static void *churn_main(void *arg)
{
	struct reader *r = arg;
	struct fixture *f = r->f;
	struct ug_prng prng;
	struct buf *held[16] = { NULL };
	struct buf *b;

	ug_prng_seed(&prng, r->blkno);
	for (unsigned i = 0; i < 40000 && !r->err; i++) {
		uint64_t blkno = ug_prng_below(&prng, 700);
		unsigned slot = (unsigned)ug_prng_below(&prng, 16);

		switch (ug_prng_below(&prng, 16)) {
		case 0:
			b = buf_peek(f->cache, blkno);
			if (b)
				buf_forget(b);
			break;
		case 1:
			buf_readahead(f->cache, &f->other, blkno, 8);
			continue;
		case 2:
			b = buf_peek(f->cache, blkno);
			break;
		case 3:
			if (i % 64 == 3)
				buf_invalidate_owner(f->cache, &f->other);
			continue;
		default:
			r->err = buf_read(f->cache,
					  blkno & 1 ? &f->owner : &f->other,
					  blkno, 0, &b);
			break;
		}
		if (r->err || !b)
			continue;
		if (number_in(b) != blkno || b->b_blkno != blkno)
			r->err = -EUCLEAN;
		buf_put(held[slot]);
		held[slot] = b;
	}
	for (unsigned i = 0; i < 16; i++)
		buf_put(held[i]);
	return NULL;
}

static void test_many_threads(void **state)
{
	struct fixture *f = *state;
	struct bufcache_stats stats;
	struct iopool *pool;
	struct reader r[4] = { 0 };

	assert_int_equal(iopool_create(&f->probe.dev, 2, &pool), 0);
	bufcache_set_pool(f->cache, pool);
	for (unsigned i = 0; i < 4; i++) {
		r[i].f = f;
		r[i].blkno = i;
		pthread_create(&r[i].thread, NULL, churn_main, &r[i]);
	}
	for (unsigned i = 0; i < 4; i++) {
		pthread_join(r[i].thread, NULL);
		assert_int_equal(r[i].err, 0);
	}
	buf_invalidate_owner(f->cache, &f->owner);
	buf_invalidate_owner(f->cache, &f->other);
	iopool_destroy(pool);
	bufcache_set_pool(f->cache, NULL);
	bufcache_stats(f->cache, &stats);
	assert_int_equal(stats.buffers, 0);
}

static void test_speed_of_a_hit(void **state)
{
	struct fixture *f = *state;
	struct timespec from, to;
	unsigned n = 2000000;
	struct buf *b;

	buf_readahead(f->cache, &f->owner, 0, 256);
	clock_gettime(CLOCK_MONOTONIC, &from);
	for (unsigned i = 0; i < n; i++) {
		if (buf_read(f->cache, &f->owner, i & 255, 0, &b))
			fail();
		buf_put(b);
	}
	clock_gettime(CLOCK_MONOTONIC, &to);
	print_message("buf_read + buf_put of a cached block: %.1f ns\n",
		      ((double)(to.tv_sec - from.tv_sec) * 1e9 +
		       (double)(to.tv_nsec - from.tv_nsec)) /
			      n);
	buf_invalidate_owner(f->cache, &f->owner);
}

static void test_bad_block_size(void **state)
{
	struct fixture *f = *state;
	struct bufcache *cache;

	assert_int_equal(bufcache_create(&f->probe.dev, 3000, 1, &cache),
			 -EINVAL);
	assert_int_equal(bufcache_create(&f->probe.dev, 0, 1, &cache), -EINVAL);
	assert_int_equal(bufcache_create(&f->probe.dev, 65536, 1, &cache),
			 -EINVAL);
}

#define T(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
#define T_SMALL(name) \
	cmocka_unit_test_setup_teardown(name, setup_small, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		T(test_read_is_cached),
		T(test_nowait_does_not_read),
		T(test_outside_the_device),
		T(test_error_leaves_nothing),
		T(test_new_is_zero_and_not_read),
		T(test_forget),
		T(test_owners),
		T(test_former_life),
		T(test_owner_in_journal),
		T_SMALL(test_bound),
		T_SMALL(test_used_ones_stay),
		T(test_readers_share_one_read),
		T(test_readers_share_the_error),
		T(test_readahead_in_one_request),
		T(test_readahead_error_is_retried),
		T(test_readahead_in_two_steps),
		T(test_readahead_async),
		T_SMALL(test_many_threads),
		T(test_speed_of_a_hit),
		T(test_bad_block_size),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
