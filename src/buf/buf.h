/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * buf.h - cache of metadata blocks (and of journaled data blocks).
 *
 * One struct buf per cached block address. The bytes of a buffer are
 * protected by the glock that covers the block: readers hold it SH (plus the
 * inode's or rgrp's own lock), writers hold it EX and have put the buffer into
 * a transaction first (journal.h). The cache itself may be called from any
 * thread.
 *
 * Every buffer belongs to a buf_owner, which sits in the object that the
 * glock protects (inode, rgrp); "invalidate this glock" is one call.
 *
 * A buffer that nobody references, and that is neither in a transaction nor
 * waiting to be written in place, may be dropped at any time to keep the
 * cache below its bound; anything else stays.
 */
#ifndef UG_BUF_BUF_H
#define UG_BUF_BUF_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <urcu/list.h>

#include "block/block.h"
#include "block/iopool.h"

struct bufcache;
struct bufslab;
struct jbuf; /* the journal's record of a buffer, journal.h */

/* All buffers of one glock. Zero-initialise with buf_owner_init(). */
struct buf_owner {
	pthread_mutex_t bo_lock; /* guards bo_list */
	struct cds_list_head bo_list;
	/* The journal's: the last batch that one of its buffers was part of. */
	_Atomic uint64_t bo_batch;
};

struct buf {
	uint64_t b_blkno;
	void *b_data; /* one block, aligned to its size */
	struct bufcache *b_cache;
	struct buf_owner *b_owner; /* NULL: none */

	/* The cache's, guarded by the shard lock of b_blkno. */
	struct cds_list_head b_owner_link; /* and by the owner's lock */
	struct cds_list_head b_lru;
	struct buf *b_hash_next;
	bool b_cached;		/* can be found; the cache holds a reference */
	struct bufslab *b_slab; /* where the memory came from */

	atomic_uint b_refs;  /* count, and BUF_REFS_PARKED: see buf.c */
	atomic_uint b_state; /* BUF_* */

	/*
	 * The journal's; non-NULL while the buffer is in a transaction, in a
	 * flush under way or not yet written in place. Such a buffer is never
	 * dropped by the cache.
	 */
	struct jbuf *_Atomic b_journal;
	/* The batch of transactions that holds its newest change, 0: none. */
	_Atomic uint64_t b_batch;
};

#define BUF_UPTODATE 0x1u /* b_data is the block's content */
#define BUF_READING 0x2u  /* a thread reads it from the device */
#define BUF_JDATA 0x4u	  /* content of a journaled file: no header, escaped */
#define BUF_ACCESSED 0x8u /* used since the cache last looked for victims */
#define BUF_READ_FAILED 0x10u /* for those who waited for the read */

/* limit_bytes: bound for buffers that could be dropped. dev is borrowed. */
int bufcache_create(struct blkdev *dev, uint32_t block_bytes,
		    uint64_t limit_bytes, struct bufcache **cachep);
/* All buffers must be unreferenced and out of the journal. */
void bufcache_destroy(struct bufcache *cache);

/*
 * Read-ahead goes through this pool and does not make its caller wait. Without
 * a pool (the default) it is done before buf_readahead() returns. pool is
 * borrowed; destroy the cache before it. Call before other threads know
 * the cache.
 */
void bufcache_set_pool(struct bufcache *cache, struct iopool *pool);

/*
 * The journal has failed: what it still holds will never be written, so
 * buf_invalidate_owner() may drop buffers that are in it.
 */
void bufcache_set_failed(struct bufcache *cache);

void buf_owner_init(struct buf_owner *owner);
/* The owner must have no buffers. */
void buf_owner_destroy(struct buf_owner *owner);

#define BUF_NOWAIT 0x1u /* -EAGAIN instead of waiting for the device */

/*
 * Get a reference to a block, read if need be. Returns 0; -EAGAIN (only with
 * BUF_NOWAIT) if it is not in memory; -EIO the device failed, or has no such
 * block; -ENOMEM. The content is not checked here: see gfs2_check_meta() in
 * ondisk/codec.h.
 *
 * The content of a cached block is as old as the lock of its owner. Who asks
 * with another owner has another lock: the block was freed and used again
 * meanwhile, by another node perhaps, so it is read anew; unless the journal
 * has it, which makes it the newest there is: then it moves to the new owner.
 * Without an owner (NULL) it stays whose it is.
 */
int buf_read(struct bufcache *cache, struct buf_owner *owner, uint64_t blkno,
	     unsigned flags, struct buf **bufp);

/*
 * Get a reference to a block that has just been allocated: its content is
 * zero and up to date, nothing is read. What was cached at this address is
 * forgotten. 0; -ENOMEM; -EIO the device has no such block; -EUCLEAN if the
 * block is in the journal, so that somebody uses it (the bitmap is wrong).
 */
int buf_new(struct bufcache *cache, struct buf_owner *owner, uint64_t blkno,
	    struct buf **bufp);

/* The block if it is cached and up to date, referenced; else NULL. */
struct buf *buf_peek(struct bufcache *cache, uint64_t blkno);
/* The same, if it is the owner's: see buf_read(). */
struct buf *buf_peek_owned(struct bufcache *cache,
			   const struct buf_owner *owner, uint64_t blkno);

struct buf *buf_ref(struct buf *b);
void buf_put(struct buf *b); /* NULL is accepted */

/*
 * Read blocks [blkno, blkno + count) into the cache in as few requests as
 * possible (those cached already are left alone). Errors are not reported: a
 * later buf_read() meets them.
 */
void buf_readahead(struct bufcache *cache, struct buf_owner *owner,
		   uint64_t blkno, unsigned count);

/*
 * The same in two steps, for who must not let a lock go between finding out
 * what to read and entering it into the cache. buf_ahead_add() puts what is
 * missing on the list and waits for nothing; from then on whoever wants one of
 * these blocks waits for its read, so start the list soon. buf_ahead_start()
 * takes it over; NULL is accepted.
 */
struct buf_ahead;
void buf_ahead_add(struct bufcache *cache, struct buf_owner *owner,
		   uint64_t blkno, unsigned count, struct buf_ahead **list);
void buf_ahead_start(struct buf_ahead *list);

/*
 * Drop all buffers of the owner; waits for reads under way. None may be in the
 * journal: the glock's sync has written them in place before. One that is
 * still referenced can no longer be found; its memory goes with the last
 * reference.
 */
void buf_invalidate_owner(struct bufcache *cache, struct buf_owner *owner);

/*
 * Take one block out of the cache because it has been freed. The journal has
 * let go of it (trans_free_block does both). Others may still hold
 * references; the memory goes with the last of them.
 */
void buf_forget(struct buf *b);

/* The same by address, whether it is cached, being read, or neither. */
void buf_forget_block(struct bufcache *cache, uint64_t blkno);

/*
 * References to up to max buffers of the owner that are in the journal.
 * Returns how many.
 */
unsigned buf_owner_in_journal(struct buf_owner *owner, struct buf **bufs,
			      unsigned max);

struct bufcache_stats {
	uint64_t buffers;
	uint64_t bytes;
	uint64_t hits;
	uint64_t misses;
};
void bufcache_stats(struct bufcache *cache, struct bufcache_stats *stats);

#endif
