/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * rgrp.h - resource groups: who has which block.
 *
 * Allocation has two steps. rgrp_reserve() takes places out of the avail
 * bitmap in memory, under the rgrp's glock EX (node scope), which the
 * struct rgrp_hold keeps until it is dropped: nobody else gets these blocks,
 * and nothing on disk has changed. Within a transaction, rgrp_alloc() then
 * writes them into the bitmap. What is left goes back with rgrp_drop(). So data
 * can be written to its place before the transaction that maps it begins.
 *
 * avail has one bit per block: free on disk as of the last durable commit, not
 * reserved, not allocated. A freed block returns to it by the commit
 * callback of the freeing transaction, never earlier (gfs2-ondisk.md 6.5).
 *
 * One transaction uses one hold, or several of ascending rgrps.
 *
 * Counts of blocks are looked after by space.c: RGRP_DATA takes what the caller
 * has promised (space_promise) and keeps promised until rgrp_alloc has
 * entered it; RGRP_META and RGRP_SPREAD are refused when the promises would be
 * endangered.
 */
#ifndef UG_FS_RGRP_H
#define UG_FS_RGRP_H

#include <stdbool.h>
#include <stdint.h>

#include "fs/inode.h"
#include "fs/super.h"

struct rgrp;

/* Places held for one operation. */
struct rgrp_extent {
	uint64_t start;
	uint32_t len;
};
#define RGRP_HOLD_INLINE 4
struct rgrp_hold {
	struct rgrp *rh_rg; /* NULL: nothing held */
	struct glock_holder rh_gh;
	struct inode *rh_ip; /* for whom; borrowed; NULL: rgrp_hold_block */
	bool rh_data;	     /* RGRP_DATA */
	uint32_t rh_blocks;  /* places left */
	unsigned rh_count;   /* extents, used ones included */
	unsigned rh_first;   /* index of the next extent */
	unsigned rh_cap;
	struct rgrp_extent *rh_ext; /* rh_inline, or allocated */
	struct rgrp_extent rh_inline[RGRP_HOLD_INLINE];
};

/*
 * Read the resource index (fs_rindex) and set up the groups; nothing of the
 * groups themselves is read until they are used. -EUCLEAN, -EIO, -ENOMEM.
 */
int rgrps_load(struct fs *fs);
void rgrps_unload(struct fs *fs);

/* Is this the address of a block that some group maps? */
bool rgrps_valid_block(struct fs *fs, uint64_t blkno);

void rgrp_hold_init(struct rgrp_hold *hold);

enum rgrp_why {
	RGRP_DATA,   /* file contents: long runs, from the inode's window */
	RGRP_META,   /* pointer blocks, leaves, a new dinode near its parent */
	RGRP_SPREAD, /* a new directory that should start elsewhere */
};

/*
 * Reserve between min and want places in one group, contiguous if possible,
 * near ip's goal (for a new inode: its parent's). -ENOSPC if no group has min
 * (after a log flush has made freed blocks usable); -EAGAIN with nowait;
 * -ENOMEM, -EIO, -EUCLEAN. hold must be initialised and empty; on error it is
 * empty again. Called with no transaction and no i_lock. ip is borrowed until
 * the hold is dropped.
 *
 * For blocks that were promised, min up to 16 (a data block and all pointer
 * blocks on its way) will be found in some group.
 */
int rgrp_reserve(struct inode *ip, uint32_t want, uint32_t min,
		 enum rgrp_why why, bool nowait, struct rgrp_hold *hold);

/*
 * Hold the group of this block without reserving anything, for changing the
 * state of blocks in it. -EUCLEAN if no group maps it.
 */
int rgrp_hold_block(struct fs *fs, uint64_t blkno, bool nowait,
		    struct rgrp_hold *hold);
/* Does the held group map this block? */
bool rgrp_hold_covers(const struct rgrp_hold *hold, uint64_t blkno);

/* Give back what is left and release the group. NULL-safe if not held. */
void rgrp_drop(struct rgrp_hold *hold);

/*
 * Upper bound of the blocks that a transaction must count for allocating or
 * freeing up to n blocks of the held group: header, bitmaps, statfs.
 */
unsigned rgrp_trans_blocks(const struct rgrp_hold *hold, uint32_t n);

/* The first place left, without taking it: where data will go. */
struct rgrp_extent rgrp_peek(const struct rgrp_hold *hold, uint32_t max);

/*
 * Enter the first places of the hold into the bitmap as used: up to max
 * contiguous ones; *start is the first; returns how many (>= 1; the hold must
 * not be empty). Updates header, statfs, and ip's goal and i_blocks (i_lock
 * held for writing; ip may be NULL for none). Never fails.
 */
uint32_t rgrp_alloc(struct trans *tr, struct rgrp_hold *hold, struct inode *ip,
		    uint32_t max, uint64_t *start);

/* The same for one block as a dinode; *formal is its new formal number. */
uint64_t rgrp_alloc_dinode(struct trans *tr, struct rgrp_hold *hold,
			   uint64_t *formal);

/*
 * Are these blocks, all in the held group, in state used? For finding out
 * before a transaction begins. -EUCLEAN if not.
 */
int rgrp_check_used(const struct rgrp_hold *hold, uint64_t start, uint32_t len);

/*
 * Free blocks in state used (all in the held group). metadata: they may have
 * copies in the log (directories, pointer blocks, journaled data): buffers
 * dropped and revoked; counts as revokes of the transaction. Updates ip's
 * i_blocks (i_lock held). -EUCLEAN if one of them was not in state used:
 * nothing has changed then.
 */
int rgrp_free(struct trans *tr, struct rgrp_hold *hold, struct inode *ip,
	      uint64_t start, uint32_t len, bool metadata);

/* dinode -> unlinked. -EUCLEAN if it was not a dinode. */
int rgrp_unlink_dinode(struct trans *tr, struct rgrp_hold *hold, uint64_t addr);
/* unlinked -> free, revoked. -EUCLEAN if it was not unlinked. */
int rgrp_free_dinode(struct trans *tr, struct rgrp_hold *hold, uint64_t addr);

/*
 * State of a block, looked up under the group's glock. -ENOENT (not logged) if
 * no group maps it; -EAGAIN with nowait; -EIO, -EUCLEAN.
 */
int rgrp_block_state(struct fs *fs, uint64_t blkno, bool nowait,
		     enum gfs2_blkst *state);

/*
 * Put dinodes (with links) among blocks [first, first + count), as far as one
 * group maps them and they are missing in the cache, on a list for
 * buf_ahead_start(). -EAGAIN the group is busy, -ENOENT none maps first; -EIO,
 * -EUCLEAN, -ENOMEM it could not be read. Nothing is on the list then.
 */
int rgrp_dinodes_ahead(struct fs *fs, uint64_t first, uint32_t count,
		       struct buf_ahead **list);

/*
 * Call fn for every dinode in state unlinked, of all groups (reads all bitmaps,
 * but of those whose locks say that there is none). fn runs without a group
 * held. Stops at its first error.
 */
int rgrps_each_unlinked(struct fs *fs,
			int (*fn)(struct fs *fs, uint64_t addr, void *arg),
			void *arg);

/*
 * With other nodes: have the worker release dinodes that are unlinked, and that
 * nobody has open any more: a node that had them open has died, or may have.
 * wait: until it has been through all groups, or a while.
 */
void rgrps_want_clean(struct fs *fs, bool wait);
/* The worker's part; nothing if nobody wants it. */
void rgrps_clean(struct fs *fs);

/* Sum of the group headers (reads all): total, free, dinodes. */
int rgrps_sum(struct fs *fs, uint64_t *total, uint64_t *free,
	      uint64_t *dinodes);

/* The inode's window goes (last writer closed, evicted). Any thread. */
void rgrp_window_drop(struct inode *ip);

/* ---- space promised to delayed writes (space.c) ---- */

/*
 * Promise blocks to dirty pages, direct writes, preallocation: everything that
 * will reserve with RGRP_DATA. -ENOSPC if free space (as of the last commit)
 * less promises is too small; the caller then writes delayed data, flushes
 * the log (fs_reclaim_space) and tries again once before it tells the user. A
 * promise is given back when its blocks have been allocated (rgrp_alloc), not
 * before, or when they are no longer wanted.
 */
int space_promise(struct fs *fs, uint64_t blocks);
/*
 * The same with other nodes, which are asked to give up groups that we need for
 * it, near the inode's goal if possible. -ENOSPC: no group has enough at
 * present. Waits; called with glocks of inodes held, nothing else.
 */
int space_promise_wait(struct inode *ip, uint64_t blocks);
void space_unpromise(struct fs *fs, uint64_t blocks);
/* All promises together. */
uint64_t space_promised(struct fs *fs);
/* Free blocks that nobody can have. */
uint64_t space_kept(struct fs *fs);

#endif
