/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * space.c - how many blocks may still be given away, as opposed to which.
 *
 * A delayed write has been answered long before its blocks are taken, so they
 * are promised by number. Metadata is allocated at once; it must not use
 * up what is promised. With
 *
 *     usable = statfs free - pending - refused
 *              (pending: freed, the log not flushed yet;
 *               refused: in groups marked NOALLOC)
 *
 * the invariant is
 *
 *     promised + claimed + keep <= usable
 *
 * and both space_promise() and space_claim() refuse what would break it.
 * claimed counts the holds of metadata only: a hold of data is covered by
 * its promise, which stays until rgrp_alloc() has lowered the free count. (In
 * between, the same block is counted in both: on the safe side.) Holds, in
 * turn, can never exceed promised + claimed, so the blocks in the avail bitmaps
 * of all groups together are at least what is promised to everybody who holds
 * nothing yet, and keep.
 *
 * keep is what makes numbers good for places: a request for n blocks in one
 * group must fail if each group has only n - 1. With keep = groups * n that
 * cannot be, for n up to RGRP_MIN_PROMISED: the data block and the longest way
 * of pointer blocks to it. On volumes of very small groups keep is bounded to a
 * share of the volume; there a promise may fail in the last percent.
 *
 * Deleting and truncating need no blocks, so they work on a full volume.
 *
 * With other nodes the free count says nothing: the same blocks could be
 * promised by each. Only the blocks of groups that are ours (rgrp_own.c) count
 * there, and of each of them all but RGRP_MIN_PROMISED - 1:
 *
 *     promised + claimed <= sum over our groups of (usable - 15), if positive
 *
 * Of n <= 16 blocks for what was promised, some group that is ours has all: if
 * each had at most 15 that nobody holds, the sum would be at most what is
 * held, and that is promised to others. So what has been promised finds its
 * places in our own groups, without waiting for any other node.
 */
#include <errno.h>

#include "base/assert.h"
#include "fs/icache.h"
#include "fs/rgrp_int.h"
#include "fs/statfs.h"

/* keep is at most this part of the volume. */
#define KEEP_SHARE 128u

void space_init(struct rgrps *rgs)
{
	struct space *sp = &rgs->rgs_space;
	uint64_t places = (uint64_t)rgs->rgs_count * RGRP_MIN_PROMISED;

	pthread_mutex_init(&sp->sp_lock, NULL);
	sp->sp_keep = UG_MIN(places, rgs->rgs_total / KEEP_SHARE);
}

void space_fini(struct rgrps *rgs)
{
	pthread_mutex_destroy(&rgs->rgs_space.sp_lock);
}

static struct space *space_of(struct fs *fs)
{
	return &fs->fs_rgrps->rgs_space;
}

static uint64_t less(uint64_t have, uint64_t taken)
{
	return have > taken ? have - taken : 0;
}

/* Blocks that may still be given away. sp_lock held. */
static uint64_t space_left(struct fs *fs, const struct space *sp)
{
	uint64_t taken = sp->sp_promised + sp->sp_claimed;
	int64_t free_;

	if (!fs->fs_alone)
		return less(sp->sp_ours, taken);
	free_ = statfs_free(fs);
	taken += sp->sp_pending + sp->sp_refused + sp->sp_keep;
	return free_ > 0 ? less((uint64_t)free_, taken) : 0;
}

static int space_take(struct fs *fs, uint64_t *counter, uint64_t blocks)
{
	struct space *sp = space_of(fs);
	int err = -ENOSPC;

	pthread_mutex_lock(&sp->sp_lock);
	if (blocks <= space_left(fs, sp)) {
		*counter += blocks;
		err = 0;
	}
	pthread_mutex_unlock(&sp->sp_lock);
	return err;
}

static void space_give(struct fs *fs, uint64_t *counter, uint64_t blocks)
{
	struct space *sp = space_of(fs);

	pthread_mutex_lock(&sp->sp_lock);
	ug_assert(*counter >= blocks);
	*counter -= blocks;
	pthread_mutex_unlock(&sp->sp_lock);
}

int space_promise(struct fs *fs, uint64_t blocks)
{
	return space_take(fs, &space_of(fs)->sp_promised, blocks);
}

void space_unpromise(struct fs *fs, uint64_t blocks)
{
	space_give(fs, &space_of(fs)->sp_promised, blocks);
}

uint64_t space_promised(struct fs *fs)
{
	struct space *sp = space_of(fs);
	uint64_t n;

	pthread_mutex_lock(&sp->sp_lock);
	n = sp->sp_promised;
	pthread_mutex_unlock(&sp->sp_lock);
	return n;
}

uint64_t space_kept(struct fs *fs)
{
	struct space *sp = space_of(fs);
	uint64_t n;

	pthread_mutex_lock(&sp->sp_lock);
	n = sp->sp_refused + sp->sp_keep;
	pthread_mutex_unlock(&sp->sp_lock);
	return n;
}

int space_claim(struct fs *fs, uint64_t blocks)
{
	int err = space_take(fs, &space_of(fs)->sp_claimed, blocks);

	/* Promises count the worst case of pointer blocks. Writing the data
	 * gives back what was not needed: the next one may succeed. */
	if (err && space_promised(fs))
		fs_wake(fs, FS_WORK_WRITEBACK);
	return err;
}

void space_unclaim(struct fs *fs, uint64_t blocks)
{
	space_give(fs, &space_of(fs)->sp_claimed, blocks);
}

/* Before statfs_change() adds them to the free ones. */
void space_freed(struct fs *fs, uint64_t blocks)
{
	struct space *sp = space_of(fs);

	pthread_mutex_lock(&sp->sp_lock);
	sp->sp_pending += blocks;
	pthread_mutex_unlock(&sp->sp_lock);
}

/* After they have entered avail. */
void space_returned(struct fs *fs, uint64_t blocks)
{
	struct space *sp = space_of(fs);

	pthread_mutex_lock(&sp->sp_lock);
	ug_assert(sp->sp_pending >= blocks);
	sp->sp_pending -= blocks;
	sp->sp_returned++;
	pthread_mutex_unlock(&sp->sp_lock);
}

void space_refused(struct fs *fs, int64_t change)
{
	struct space *sp = space_of(fs);

	pthread_mutex_lock(&sp->sp_lock);
	sp->sp_refused += (uint64_t)change;
	pthread_mutex_unlock(&sp->sp_lock);
}

void space_ours(struct fs *fs, int64_t change)
{
	struct space *sp = space_of(fs);

	pthread_mutex_lock(&sp->sp_lock);
	sp->sp_ours += (uint64_t)change;
	pthread_mutex_unlock(&sp->sp_lock);
}

bool space_overdrawn(struct fs *fs, uint64_t *promised)
{
	struct space *sp = space_of(fs);
	bool over;

	pthread_mutex_lock(&sp->sp_lock);
	*promised = sp->sp_promised;
	over = sp->sp_promised + sp->sp_claimed > sp->sp_ours;
	pthread_mutex_unlock(&sp->sp_lock);
	return over;
}

bool space_may_grow(struct fs *fs)
{
	struct space *sp = space_of(fs);
	bool pending;

	pthread_mutex_lock(&sp->sp_lock);
	pending = sp->sp_pending != 0;
	pthread_mutex_unlock(&sp->sp_lock);
	return pending || icache_may_evict(fs);
}

uint64_t space_returns(struct fs *fs)
{
	struct space *sp = space_of(fs);
	uint64_t n;

	pthread_mutex_lock(&sp->sp_lock);
	n = sp->sp_returned;
	pthread_mutex_unlock(&sp->sp_lock);
	return n;
}
