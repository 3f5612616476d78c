/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * buf.c - the cache's life, references, owners, forgetting.
 *
 *   buf_read (bufread.c), buf_new, buf_peek     a reference
 *   buf_put                                     given back
 *   buf_forget, buf_invalidate_owner            out of the table
 *   search for victims (bufshard.c)             out of the table, if unused
 *
 * The count of references has one bit beside it, BUF_REFS_PARKED (see
 * bufshard.c): both change in one atomic step, so that the last reference to
 * a parked buffer cannot go unnoticed. All other references come and go
 * without a lock.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/assert.h"
#include "base/checked.h"
#include "buf/bufshard.h"

int bufcache_create(struct blkdev *dev, uint32_t block_bytes,
		    uint64_t limit_bytes, struct bufcache **cachep)
{
	uint64_t lru_max;
	struct bufcache *cache;

	if (!ug_is_power_of_2(block_bytes) || block_bytes > BLKDEV_ALIGN)
		return -EINVAL;
	cache = aligned_alloc(64, sizeof(*cache));
	if (!cache)
		return -ENOMEM;
	memset(cache, 0, sizeof(*cache));
	lru_max = limit_bytes / block_bytes / BUF_SHARDS;
	cache->dev = dev;
	cache->block_bytes = block_bytes;
	cache->block_shift = ug_log2_u64(block_bytes);
	cache->blocks = dev->size_bytes >> cache->block_shift;
	bufheap_init(&cache->heap, block_bytes);
	pthread_mutex_init(&cache->ahead_lock, NULL);
	pthread_cond_init(&cache->ahead_idle, NULL);
	for (unsigned i = 0; i < BUF_SHARDS; i++) {
		if (bufshard_init(&cache->shards[i], UG_MAX(lru_max, 1u))) {
			bufcache_destroy(cache);
			return -ENOMEM;
		}
	}
	*cachep = cache;
	return 0;
}

/* Read-ahead holds references, until its requests are done. */
static void wait_read_ahead(struct bufcache *cache)
{
	pthread_mutex_lock(&cache->ahead_lock);
	while (cache->ahead_count)
		pthread_cond_wait(&cache->ahead_idle, &cache->ahead_lock);
	pthread_mutex_unlock(&cache->ahead_lock);
}

static void bufshard_empty(struct bufshard *shard)
{
	if (!shard->buckets)
		return;
	pthread_mutex_lock(&shard->lock);
	for (unsigned i = 0; i < 1u << shard->buckets_bits; i++) {
		struct buf *b;

		while ((b = shard->buckets[i])) {
			ug_assert((atomic_load(&b->b_refs) &
				   ~BUF_REFS_PARKED) == 1);
			ug_assert(!atomic_load(&b->b_journal));
			bufshard_remove(shard, b);
		}
	}
	pthread_mutex_unlock(&shard->lock);
}

void bufcache_destroy(struct bufcache *cache)
{
	wait_read_ahead(cache);
	for (unsigned i = 0; i < BUF_SHARDS; i++) {
		bufshard_empty(&cache->shards[i]);
		bufshard_fini(&cache->shards[i]);
	}
	bufheap_fini(&cache->heap);
	pthread_cond_destroy(&cache->ahead_idle);
	pthread_mutex_destroy(&cache->ahead_lock);
	free(cache);
}

void bufcache_set_pool(struct bufcache *cache, struct iopool *pool)
{
	cache->pool = pool;
}

void bufcache_set_failed(struct bufcache *cache)
{
	atomic_store(&cache->failed, true);
}

void buf_owner_init(struct buf_owner *owner)
{
	pthread_mutex_init(&owner->bo_lock, NULL);
	CDS_INIT_LIST_HEAD(&owner->bo_list);
	atomic_init(&owner->bo_batch, 0);
}

void buf_owner_destroy(struct buf_owner *owner)
{
	ug_assert(cds_list_empty(&owner->bo_list));
	pthread_mutex_destroy(&owner->bo_lock);
}

struct buf *buf_ref(struct buf *b)
{
	atomic_fetch_add_explicit(&b->b_refs, 1, memory_order_relaxed);
	return b;
}

void buf_put(struct buf *b)
{
	struct bufcache *cache;
	unsigned refs;

	if (!b)
		return;
	/* After the count has gone down, b may be somebody else's memory. */
	cache = b->b_cache;
	refs = atomic_load_explicit(&b->b_refs, memory_order_relaxed);
	do {
		if (refs == (BUF_REFS_PARKED | 2)) {
			bufshard_unpark(cache, b);
			return;
		}
	} while (!atomic_compare_exchange_weak_explicit(
		&b->b_refs, &refs, refs - 1, memory_order_acq_rel,
		memory_order_relaxed));
	if (refs == 1)
		bufheap_free(&cache->heap, b);
}

/* An old buffer may be in its place: of the block's former life. */
static int make_room(struct bufshard *shard, uint64_t blkno)
{
	struct buf *old = bufshard_find(shard, blkno);

	if (!old)
		return 0;
	if (atomic_load_explicit(&old->b_journal, memory_order_relaxed))
		return -EUCLEAN;
	bufshard_remove(shard, old);
	return 0;
}

int buf_new(struct bufcache *cache, struct buf_owner *owner, uint64_t blkno,
	    struct buf **bufp)
{
	struct bufshard *shard = bufcache_shard(cache, blkno);
	struct buf *b;
	int err;

	if (blkno >= cache->blocks)
		return -EIO;
	pthread_mutex_lock(&shard->lock);
	err = make_room(shard, blkno);
	if (err)
		goto unlock;
	b = bufshard_add(cache, shard, owner, blkno, 0);
	if (!b) {
		err = -ENOMEM;
		goto unlock;
	}
	/* Within the lock: it can be found already. */
	memset(b->b_data, 0, cache->block_bytes);
	atomic_store_explicit(&b->b_state, BUF_UPTODATE, memory_order_release);
	*bufp = b;
unlock:
	pthread_mutex_unlock(&shard->lock);
	return err;
}

/* Whose it is does not matter without an owner. */
static struct buf *peek(struct bufcache *cache, const struct buf_owner *owner,
			uint64_t blkno)
{
	struct bufshard *shard = bufcache_shard(cache, blkno);
	struct buf *b;

	pthread_mutex_lock(&shard->lock);
	b = bufshard_find(shard, blkno);
	if (b && (!owner || b->b_owner == owner) &&
	    (atomic_load_explicit(&b->b_state, memory_order_relaxed) &
	     BUF_UPTODATE)) {
		buf_touch(b);
		buf_ref(b);
	} else {
		b = NULL;
	}
	pthread_mutex_unlock(&shard->lock);
	return b;
}

struct buf *buf_peek(struct bufcache *cache, uint64_t blkno)
{
	return peek(cache, NULL, blkno);
}

struct buf *buf_peek_owned(struct bufcache *cache,
			   const struct buf_owner *owner, uint64_t blkno)
{
	return peek(cache, owner, blkno);
}

void buf_forget(struct buf *b)
{
	struct bufshard *shard = bufcache_shard(b->b_cache, b->b_blkno);

	pthread_mutex_lock(&shard->lock);
	if (b->b_cached)
		bufshard_remove(shard, b);
	pthread_mutex_unlock(&shard->lock);
}

void buf_forget_block(struct bufcache *cache, uint64_t blkno)
{
	struct bufshard *shard = bufcache_shard(cache, blkno);
	struct buf *b;

	pthread_mutex_lock(&shard->lock);
	b = bufshard_find(shard, blkno);
	if (b)
		bufshard_remove(shard, b);
	pthread_mutex_unlock(&shard->lock);
}

/* The owner's first buffer, by address: it may go as soon as we look away. */
static bool owner_first(struct buf_owner *owner, uint64_t *blkno)
{
	bool found;

	pthread_mutex_lock(&owner->bo_lock);
	found = !cds_list_empty(&owner->bo_list);
	if (found)
		*blkno = cds_list_first_entry(&owner->bo_list, struct buf,
					      b_owner_link)
				 ->b_blkno;
	pthread_mutex_unlock(&owner->bo_lock);
	return found;
}

/*
 * If it is not there any more, the search for victims has got it, and has
 * taken it off the owner's list before the shard lock came to us.
 */
static void invalidate_block(struct bufcache *cache, struct buf_owner *owner,
			     uint64_t blkno)
{
	struct bufshard *shard = bufcache_shard(cache, blkno);
	struct buf *b;

	pthread_mutex_lock(&shard->lock);
	b = bufshard_find(shard, blkno);
	if (!b || b->b_owner != owner)
		goto unlock;
	if (atomic_load(&b->b_state) & BUF_READING) {
		bufshard_wait_read(shard, b);
		goto unlock; /* look again: a failed read has removed it */
	}
	/* What it holds would be lost, and the next reader sees old content. */
	ug_assert(!atomic_load(&b->b_journal) || atomic_load(&cache->failed));
	bufshard_remove(shard, b);
unlock:
	pthread_mutex_unlock(&shard->lock);
}

void buf_invalidate_owner(struct bufcache *cache, struct buf_owner *owner)
{
	uint64_t blkno;

	while (owner_first(owner, &blkno))
		invalidate_block(cache, owner, blkno);
}

/* A reference, unless the search for victims has claimed the buffer. */
static bool buf_ref_unless_zero(struct buf *b)
{
	unsigned refs = atomic_load_explicit(&b->b_refs, memory_order_relaxed);

	while (refs) {
		if (atomic_compare_exchange_weak_explicit(
			    &b->b_refs, &refs, refs + 1, memory_order_relaxed,
			    memory_order_relaxed))
			return true;
	}
	return false;
}

unsigned buf_owner_in_journal(struct buf_owner *owner, struct buf **bufs,
			      unsigned max)
{
	unsigned n = 0;
	struct buf *b;

	pthread_mutex_lock(&owner->bo_lock);
	cds_list_for_each_entry (b, &owner->bo_list, b_owner_link) {
		if (n == max)
			break;
		if (atomic_load_explicit(&b->b_journal, memory_order_acquire) &&
		    buf_ref_unless_zero(b))
			bufs[n++] = b;
	}
	pthread_mutex_unlock(&owner->bo_lock);
	return n;
}

void bufcache_stats(struct bufcache *cache, struct bufcache_stats *stats)
{
	memset(stats, 0, sizeof(*stats));
	for (unsigned i = 0; i < BUF_SHARDS; i++) {
		struct bufshard *shard = &cache->shards[i];

		pthread_mutex_lock(&shard->lock);
		stats->buffers += shard->count;
		stats->hits += shard->hits;
		stats->misses += shard->misses;
		pthread_mutex_unlock(&shard->lock);
	}
	stats->bytes = stats->buffers * cache->block_bytes;
}
