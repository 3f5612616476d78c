/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * buf.h - cache of metadata blocks (and of journaled data blocks).
 *
 * One struct buf per cached block address. The bytes of a buffer are
 * protected by the glock that covers the block: readers hold it SH (plus the
 * inode's or rgrp's own lock), writers hold it EX and have put the buffer into a
 * transaction first (journal.h). The cache itself may be called from any
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

struct bufcache;
struct jbuf; /* the journal's record of a buffer, journal.h */

/* All buffers of one glock. Zero-initialise with buf_owner_init(). */
struct buf_owner {
	pthread_mutex_t bo_lock; /* guards bo_list */
	struct cds_list_head bo_list;
};

struct buf {
	uint64_t b_blkno;
	void *b_data; /* one block, BLKDEV_ALIGN-aligned when block >= 4096 */
	struct bufcache *b_cache;
	struct buf_owner *b_owner;

	/* The cache's, guarded by the shard lock of b_blkno. */
	struct cds_list_head b_owner_link;
	struct cds_list_head b_lru;
	struct buf *b_hash_next;
	atomic_uint b_refs;
	atomic_uint b_state; /* BUF_* */

	/*
	 * The journal's; non-NULL while the buffer is in a transaction, in a
	 * flush under way or not yet written in place. Such a buffer is never
	 * dropped by the cache.
	 */
	struct jbuf *_Atomic b_journal;
};

#define BUF_UPTODATE 0x1u /* b_data is the block's content */
#define BUF_READING 0x2u /* a thread reads it from the device */
#define BUF_JDATA 0x4u /* content of a journaled file: no header, escaped */

/* limit_bytes: bound for buffers that could be dropped. dev is borrowed. */
int bufcache_create(struct blkdev *dev, uint32_t block_bytes,
		    uint64_t limit_bytes, struct bufcache **cachep);
/* All buffers must be unreferenced and out of the journal. */
void bufcache_destroy(struct bufcache *cache);

void buf_owner_init(struct buf_owner *owner);
/* The owner must have no buffers. */
void buf_owner_destroy(struct buf_owner *owner);

#define BUF_NOWAIT 0x1u /* -EAGAIN instead of waiting for the device */

/*
 * Get a reference to a block, read if need be. Returns 0; -EAGAIN (only with
 * BUF_NOWAIT) if it is not in memory; -EIO the device failed; -ENOMEM. The
 * content is not checked here: see gfs2_check_meta() in ondisk/codec.h.
 * A cached block keeps its first owner; asking with another owner moves it.
 */
int buf_read(struct bufcache *cache, struct buf_owner *owner, uint64_t blkno,
	     unsigned flags, struct buf **bufp);

/*
 * Get a reference to a block that has just been allocated: its content is
 * zero and up to date, nothing is read. 0 or -ENOMEM.
 */
int buf_new(struct bufcache *cache, struct buf_owner *owner, uint64_t blkno,
	    struct buf **bufp);

/* The block if it is cached and up to date, referenced; else NULL. */
struct buf *buf_peek(struct bufcache *cache, uint64_t blkno);

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
 * Drop all buffers of the owner. None may be referenced or in the journal:
 * the glock's sync has written them in place before.
 */
void buf_invalidate_owner(struct bufcache *cache, struct buf_owner *owner);

/*
 * Take one block out of the cache because it has been freed. The journal has
 * let go of it (trans_free_block does both). Others may still hold
 * references; the memory goes with the last of them.
 */
void buf_forget(struct buf *b);

struct bufcache_stats {
	uint64_t buffers;
	uint64_t bytes;
	uint64_t hits;
	uint64_t misses;
};
void bufcache_stats(struct bufcache *cache, struct bufcache_stats *stats);

#endif
