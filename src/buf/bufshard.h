/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * bufshard.h - inside the cache: its table in 64 parts, each with a lock.
 *
 * Only for the files of this folder. Every function here wants the lock of the
 * shard held, unless its comment says otherwise. Order of locks: a shard,
 * then an owner or the heap; never two shards.
 */
#ifndef UG_BUF_BUFSHARD_H
#define UG_BUF_BUFSHARD_H

#include "buf/buf.h"
#include "buf/bufslab.h"

#define BUF_SHARDS 64u
#define BUF_SHARD_BITS 6u

/* In b_refs: the buffer is off the LRU list, as it was found in use. */
#define BUF_REFS_PARKED 0x80000000u

struct bufshard {
	pthread_mutex_t lock;
	pthread_cond_t read_done; /* some BUF_READING has been cleared */
	unsigned read_waiters;
	struct buf **buckets;
	unsigned buckets_bits;
	uint64_t count;		  /* cached buffers */
	struct cds_list_head lru; /* first: looked at or added latest */
	uint64_t lru_count;
	uint64_t lru_max;
	uint64_t hits;
	uint64_t misses;
} __attribute__((aligned(64)));

struct bufcache {
	struct blkdev *dev;
	struct iopool *pool; /* NULL: read-ahead is synchronous */
	uint32_t block_bytes;
	unsigned block_shift;
	uint64_t blocks;    /* of the device */
	atomic_bool failed; /* bufcache_set_failed() */
	struct bufheap heap;

	pthread_mutex_t ahead_lock;
	pthread_cond_t ahead_idle;
	unsigned ahead_count; /* read-ahead requests under way */

	struct bufshard shards[BUF_SHARDS];
};

int bufshard_init(struct bufshard *shard, uint64_t lru_max);
/* No buffer is left. */
void bufshard_fini(struct bufshard *shard);

/* Which shard holds this block. No lock needed. */
struct bufshard *bufcache_shard(struct bufcache *cache, uint64_t blkno);

/* The cached buffer, whatever its state, without a reference; or NULL. */
struct buf *bufshard_find(struct bufshard *shard, uint64_t blkno);

/*
 * Add a buffer for a block that is not cached, with one reference for the
 * caller beside the cache's. Drops others if there are too many. NULL if
 * there is no memory.
 */
struct buf *bufshard_add(struct bufcache *cache, struct bufshard *shard,
			 struct buf_owner *owner, uint64_t blkno,
			 unsigned state);

/* Nobody finds it any more; it is freed now or with its last reference. */
void bufshard_remove(struct bufshard *shard, struct buf *b);

/* The last reference but the cache's to a parked buffer is given up. */
void bufshard_unpark(struct bufcache *cache, struct buf *b);

/* Move to another owner, if owner is not NULL. */
void buf_set_owner(struct buf *b, struct buf_owner *owner);

/* It was used. */
static inline void buf_touch(struct buf *b)
{
	if (!(atomic_load_explicit(&b->b_state, memory_order_relaxed) &
	      BUF_ACCESSED))
		atomic_fetch_or_explicit(&b->b_state, BUF_ACCESSED,
					 memory_order_relaxed);
}

/*
 * Wait until nobody reads this cached buffer. The lock is released meanwhile.
 * 0: it is up to date, though perhaps no longer cached; -EIO the read that a
 * buf_read() made has failed; -EAGAIN a read-ahead has failed.
 */
int bufshard_wait_read(struct bufshard *shard, struct buf *b);

/*
 * The read of a buffer is over (no lock held). On error nothing is left in
 * the cache, and those who wait are told: an error that belongs to this
 * very block (blame), or one of a bigger request, to be tried alone.
 */
void buf_read_done(struct buf *b, int err, bool blame);

#endif
