/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * bufshard.c - one part of the cache: hash table, order of use, eviction.
 *
 * The cache itself holds one reference to each buffer that can be found, so a
 * count of one means "could be dropped". Who drops takes the count from one
 * to zero in a single step under the shard lock; new references come from a
 * look-up, which needs that lock, or from one that exists, so nobody is
 * surprised (buf_owner_in_journal() is the exception, and looks for zero).
 *
 * Order of use is a list with second chance: a hit sets BUF_ACCESSED and
 * nothing else, and the search for victims turns a buffer so marked round
 * once. A buffer that the search finds referenced is parked, taken off the
 * list, until its last reference goes: neither do thousands of pinned buffers
 * make the search long, nor do they push out the others, as the bound is
 * for those on the list.
 *
 *    add            search finds it in use
 *   -----> on the list ----------------------> parked
 *              |     ^--------------------------'
 *              |          last reference put
 *              v search finds it unused
 *            gone
 */
#include <errno.h>
#include <stdlib.h>

#include "base/assert.h"
#include "buf/bufshard.h"

#define BUCKETS_BITS_MIN 4u
#define BUCKETS_BITS_MAX 24u

/* Buffers looked at for one that is added; the last must go if it can. */
#define SHRINK_STEPS 16u

static uint64_t hash_block(uint64_t blkno)
{
	/* Fibonacci hashing: the upper bits are the well mixed ones. */
	return blkno * 0x9e3779b97f4a7c15u;
}

struct bufshard *bufcache_shard(struct bufcache *cache, uint64_t blkno)
{
	return &cache->shards[hash_block(blkno) >> (64 - BUF_SHARD_BITS)];
}

static struct buf **bucket_of(struct bufshard *shard, uint64_t blkno)
{
	uint64_t hash = hash_block(blkno) << BUF_SHARD_BITS;

	return &shard->buckets[hash >> (64 - shard->buckets_bits)];
}

int bufshard_init(struct bufshard *shard, uint64_t lru_max)
{
	shard->buckets_bits = BUCKETS_BITS_MIN;
	shard->buckets = calloc(1u << BUCKETS_BITS_MIN, sizeof(struct buf *));
	if (!shard->buckets)
		return -ENOMEM;
	pthread_mutex_init(&shard->lock, NULL);
	pthread_cond_init(&shard->read_done, NULL);
	CDS_INIT_LIST_HEAD(&shard->lru);
	shard->lru_max = lru_max;
	return 0;
}

void bufshard_fini(struct bufshard *shard)
{
	if (!shard->buckets)
		return;
	ug_assert(shard->count == 0);
	pthread_cond_destroy(&shard->read_done);
	pthread_mutex_destroy(&shard->lock);
	free(shard->buckets);
}

/* Twice the buckets. Without memory the chains just stay longer. */
static void bufshard_grow(struct bufshard *shard)
{
	unsigned old_count = 1u << shard->buckets_bits;
	struct buf **old = shard->buckets;
	struct buf **buckets = calloc(old_count * 2ul, sizeof(struct buf *));

	if (!buckets)
		return;
	shard->buckets = buckets;
	shard->buckets_bits++;
	for (unsigned i = 0; i < old_count; i++) {
		struct buf *b = old[i];

		while (b) {
			struct buf *next = b->b_hash_next;
			struct buf **bucket = bucket_of(shard, b->b_blkno);

			b->b_hash_next = *bucket;
			*bucket = b;
			b = next;
		}
	}
	free(old);
}

struct buf *bufshard_find(struct bufshard *shard, uint64_t blkno)
{
	struct buf *b = *bucket_of(shard, blkno);

	while (b && b->b_blkno != blkno)
		b = b->b_hash_next;
	return b;
}

static void bufshard_unhash(struct bufshard *shard, struct buf *b)
{
	struct buf **link = bucket_of(shard, b->b_blkno);

	while (*link != b)
		link = &(*link)->b_hash_next;
	*link = b->b_hash_next;
	b->b_hash_next = NULL;
}

static void owner_unlink(struct buf *b)
{
	struct buf_owner *owner = b->b_owner;

	if (!owner)
		return;
	pthread_mutex_lock(&owner->bo_lock);
	cds_list_del(&b->b_owner_link);
	pthread_mutex_unlock(&owner->bo_lock);
	b->b_owner = NULL;
}

/* The log may hold images of the buffer: the new owner answers for them. */
static void owner_inherit(struct buf_owner *owner, const struct buf_owner *old)
{
	uint64_t batch = atomic_load(&old->bo_batch);

	if (atomic_load(&owner->bo_batch) < batch)
		atomic_store(&owner->bo_batch, batch);
}

void buf_set_owner(struct buf *b, struct buf_owner *owner)
{
	if (!owner || owner == b->b_owner)
		return;
	if (b->b_owner)
		owner_inherit(owner, b->b_owner);
	owner_unlink(b);
	b->b_owner = owner;
	pthread_mutex_lock(&owner->bo_lock);
	cds_list_add_tail(&b->b_owner_link, &owner->bo_list);
	pthread_mutex_unlock(&owner->bo_lock);
}

static void lru_add(struct bufshard *shard, struct buf *b)
{
	cds_list_add(&b->b_lru, &shard->lru);
	shard->lru_count++;
}

static void lru_del(struct bufshard *shard, struct buf *b)
{
	cds_list_del(&b->b_lru);
	shard->lru_count--;
}

/* Out of table, list and owner; the cache's reference is still there. */
static void bufshard_detach(struct bufshard *shard, struct buf *b)
{
	unsigned refs = atomic_fetch_and_explicit(&b->b_refs, ~BUF_REFS_PARKED,
						  memory_order_relaxed);

	if (!(refs & BUF_REFS_PARKED))
		lru_del(shard, b);
	bufshard_unhash(shard, b);
	owner_unlink(b);
	b->b_cached = false;
	shard->count--;
}

void bufshard_remove(struct bufshard *shard, struct buf *b)
{
	bufshard_detach(shard, b);
	buf_put(b);
}

/* Take it off the list, unless it has just become unused. */
static bool lru_park(struct bufshard *shard, struct buf *b)
{
	unsigned refs = atomic_load_explicit(&b->b_refs, memory_order_relaxed);

	while (refs != 1) {
		if (atomic_compare_exchange_weak_explicit(
			    &b->b_refs, &refs, refs | BUF_REFS_PARKED,
			    memory_order_relaxed, memory_order_relaxed)) {
			lru_del(shard, b);
			return true;
		}
	}
	return false;
}

/* The last buffer of the list goes, or leaves the end of the list. */
static void lru_step(struct bufcache *cache, struct bufshard *shard,
		     bool second_chance)
{
	struct buf *b = cds_list_entry(shard->lru.prev, struct buf, b_lru);
	unsigned unused = 1;

	if (lru_park(shard, b))
		return;
	if (second_chance &&
	    (atomic_fetch_and_explicit(&b->b_state, ~BUF_ACCESSED,
				       memory_order_relaxed) &
	     BUF_ACCESSED)) {
		cds_list_move(&b->b_lru, &shard->lru);
		return;
	}
	/* Zero first: buf_owner_in_journal() does not resurrect it then. */
	if (!atomic_compare_exchange_strong_explicit(&b->b_refs, &unused, 0,
						     memory_order_acquire,
						     memory_order_relaxed))
		return;
	ug_assert(!atomic_load_explicit(&b->b_journal, memory_order_relaxed));
	bufshard_detach(shard, b);
	bufheap_free(&cache->heap, b);
}

static void bufshard_shrink(struct bufcache *cache, struct bufshard *shard)
{
	for (unsigned i = 1;
	     i <= SHRINK_STEPS && shard->lru_count > shard->lru_max; i++)
		lru_step(cache, shard, i < SHRINK_STEPS);
}

struct buf *bufshard_add(struct bufcache *cache, struct bufshard *shard,
			 struct buf_owner *owner, uint64_t blkno,
			 unsigned state)
{
	struct buf *b = bufheap_alloc(&cache->heap);
	struct buf **bucket;

	if (!b)
		return NULL;
	b->b_blkno = blkno;
	b->b_cache = cache;
	atomic_init(&b->b_refs, 2);
	atomic_init(&b->b_state, state);
	b->b_cached = true;
	if (shard->count >= 1u << shard->buckets_bits &&
	    shard->buckets_bits < BUCKETS_BITS_MAX)
		bufshard_grow(shard);
	bucket = bucket_of(shard, blkno);
	b->b_hash_next = *bucket;
	*bucket = b;
	shard->count++;
	buf_set_owner(b, owner);
	lru_add(shard, b);
	bufshard_shrink(cache, shard);
	return b;
}

void bufshard_unpark(struct bufcache *cache, struct buf *b)
{
	struct bufshard *shard = bufcache_shard(cache, b->b_blkno);
	unsigned last = BUF_REFS_PARKED | 2;

	pthread_mutex_lock(&shard->lock);
	if (atomic_compare_exchange_strong_explicit(&b->b_refs, &last, 1,
						    memory_order_acq_rel,
						    memory_order_relaxed)) {
		lru_add(shard, b);
		bufshard_shrink(cache, shard);
		pthread_mutex_unlock(&shard->lock);
		return;
	}
	/* Somebody has found or removed it meanwhile: an ordinary put. */
	pthread_mutex_unlock(&shard->lock);
	buf_put(b);
}

int bufshard_wait_read(struct bufshard *shard, struct buf *b)
{
	unsigned state;

	buf_ref(b);
	shard->read_waiters++;
	while ((state = atomic_load(&b->b_state)) & BUF_READING)
		pthread_cond_wait(&shard->read_done, &shard->lock);
	shard->read_waiters--;
	pthread_mutex_unlock(&shard->lock);
	buf_put(b); /* may take the lock */
	pthread_mutex_lock(&shard->lock);
	if (state & BUF_UPTODATE)
		return 0;
	return state & BUF_READ_FAILED ? -EIO : -EAGAIN;
}

void buf_read_done(struct buf *b, int err, bool blame)
{
	struct bufshard *shard = bufcache_shard(b->b_cache, b->b_blkno);
	unsigned set = 0;

	if (!err)
		set = BUF_UPTODATE;
	else if (blame)
		set = BUF_READ_FAILED;
	pthread_mutex_lock(&shard->lock);
	atomic_fetch_or(&b->b_state, set);
	atomic_fetch_and(&b->b_state, ~BUF_READING);
	if (err && b->b_cached)
		bufshard_remove(shard, b);
	if (shard->read_waiters)
		pthread_cond_broadcast(&shard->read_done);
	pthread_mutex_unlock(&shard->lock);
}
