/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * evict.c - the end of an inode.
 *
 *   leaves of a hashed directory          each step in transactions of its
 *   values of attributes                  own; skipped when there are none
 *   attribute block, pointer tree, dinode
 *
 * The last line is one transaction for most inodes: if the contents lie in the
 * dinode's resource group, their blocks and the dinode are freed together, and
 * neither the dinode nor a pointer block is logged. Otherwise each group's
 * blocks go in a transaction, and the dinode with the last.
 *
 * A crash anywhere leaves the dinode unlinked in the bitmap, with a smaller
 * tree whose counts are right: the mount that follows finds it there and begins
 * again. Source: docs/spec/gfs2-ondisk.md 6.7.
 *
 * With other nodes the last one that has it open releases it
 * (docs/spec/glocks.md 13.9):
 *
 *	taking the last link	 inode EX, iopen EX: refused, B has it open;
 *				 orphans_add(), as B may not hear of it
 *	closing it on B		 B has heard that iopen is wanted; inode EX,
 *				 without links? iopen EX, release
 */
#include <errno.h>
#include <inttypes.h>
#include <time.h>

#include "base/log.h"
#include "fs/dir.h"
#include "fs/evict.h"
#include "fs/evict_ea.h"
#include "fs/free_batch.h"
#include "fs/icache.h"
#include "fs/orphans.h"
#include "fs/pages.h"

/*
 * How long other nodes are kept from the inode while they are asked whether it
 * is open there, and how often it is looked whether they want it.
 */
#define IOPEN_PATIENCE_NS 200000000u
#define IOPEN_LOOK_NS 5000000u
/*
 * How long we wait for those who use it. They may be writing to it, and wait
 * for space, which somebody waits for us to make: so not for ever.
 */
#define USERS_PATIENCE_NS 1000000000u
#define USERS_TRIES 3u

static int free_rest(struct inode *ip)
{
	struct free_batch fb;
	int err;

	err = free_batch_init(&fb, ip);
	if (err)
		return err;
	if (ip->i_eattr)
		err = free_batch_add_eattr(&fb);
	if (!err)
		err = tree_collect(&fb, 0);
	if (!err)
		err = free_batch_commit_dinode(&fb);
	free_batch_fini(&fb);
	return err;
}

/* Glock EX held. */
static int release(struct inode *ip)
{
	int err;

	err = fs_may_write(ip->i_fs);
	if (err)
		return err;
	if (ip->i_nlink)
		return fs_bad_block(ip->i_fs, ip->i_addr,
				    "inode to be released has %u links",
				    ip->i_nlink);
	if (inode_is_dir(ip) && (ip->i_flags & GFS2_DIF_EXHASH))
		err = dir_free_leaves(ip);
	if (!err && ip->i_eattr)
		err = evict_ea_contents(ip);
	return err ? err : free_rest(ip);
}

/* ---- with other nodes ---- */

static uint64_t now_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * 1000000000u + (uint64_t)ts.tv_nsec;
}

/*
 * Is it open on other nodes? Those that have it in their cache only give iopen
 * up as soon as they hear of us; we keep others from the inode meanwhile, so
 * not for long. 0: nobody has it, and gh keeps it so. -EBUSY: who closes it
 * last has heard that somebody wanted to release it.
 */
static int lock_iopen(struct inode *ip, struct glock_holder *gh)
{
	uint64_t end_ns = now_ns() + IOPEN_PATIENCE_NS;
	int err = glock_nq(ip->i_iopen, LM_ST_EXCLUSIVE, GL_ASYNC | GL_NOCACHE,
			   gh);

	if (err) {
		glock_holder_init(gh);
		return err;
	}
	do {
		err = glock_wait_until(gh, now_ns() + IOPEN_LOOK_NS);
	} while (err == -ETIMEDOUT && now_ns() < end_ns &&
		 !glock_is_wanted(ip->i_gl));
	if (err == -ETIMEDOUT) {
		glock_dq(gh);
		err = -EBUSY;
	}
	if (err)
		glock_holder_init(gh);
	return err;
}

/*
 * Whoever keeps it from us for long has it open, and is told to look when it
 * closes it: -EBUSY. Else, again.
 */
static int lock_unused(struct inode *ip, struct glock_holder *gh)
{
	struct glock_holder iopen_gh;
	int err = -EBUSY;

	for (unsigned i = 0; err == -EBUSY && i < USERS_TRIES; i++) {
		err = glock_nq(ip->i_gl, LM_ST_EXCLUSIVE, GL_ASYNC, gh);
		if (!err)
			err = glock_wait_until(gh,
					       now_ns() + USERS_PATIENCE_NS);
		if (err != -ETIMEDOUT)
			break;
		glock_dq(gh);
		err = -EBUSY;
		if (glock_nq(ip->i_iopen, LM_ST_EXCLUSIVE,
			     GL_TRY_1CB | GL_NOCACHE, &iopen_gh))
			break;
		glock_dq(&iopen_gh);
	}
	if (err)
		glock_holder_init(gh);
	return err;
}

/* Nothing of it is ours to write any more. EX is held. */
static void now_gone(struct inode *ip)
{
	file_drop_pages(ip);
	pthread_rwlock_wrlock(&ip->i_lock);
	ip->i_disksize = ip->i_size;
	atomic_fetch_and(&ip->i_state, ~INODE_DIRTY_TIMES);
	atomic_fetch_or(&ip->i_state, INODE_GONE);
	pthread_rwlock_unlock(&ip->i_lock);
}

/* Nothing to be done, or not by us: see may_release(). */
#define LEFT_ALONE 1

/*
 * EX is held. 0: it can be released, with gh; LEFT_ALONE: it has links, or
 * handles here, the last of which looks when it is closed, since it is known
 * by now that no links are left; -EBUSY; -ESTALE: it has been released.
 */
static int may_release(struct inode *ip, struct glock_holder *gh)
{
	enum gfs2_blkst state;
	int err;

	if (ip->i_nlink || atomic_load(&ip->i_opens))
		return LEFT_ALONE;
	err = rgrp_block_state(ip->i_fs, ip->i_addr, false, &state);
	if (err)
		return err;
	return state == GFS2_BLKST_UNLINKED ? lock_iopen(ip, gh) : -ESTALE;
}

/*
 * What we remember has been released. Another one that was made in its block
 * may be without a name, too: then we shall meet that one there. -EBUSY.
 */
static int look_for_next(struct inode *ip)
{
	enum gfs2_blkst state;
	int err = rgrp_block_state(ip->i_fs, ip->i_addr, false, &state);

	if (err || state != GFS2_BLKST_UNLINKED)
		return err;
	icache_forget_old(ip);
	return -EBUSY;
}

/* EX is held. After an error, what is left of it is whole, and has no name. */
static int release_shared(struct inode *ip)
{
	int err;

	file_drop_pages(ip);
	err = release(ip);
	if (err)
		return err;
	inode_note_deleted(ip);
	now_gone(ip);
	return 0;
}

static int lock_and_release(struct inode *ip)
{
	struct glock_holder gh, iopen_gh;
	int err;

	if (atomic_load(&ip->i_state) & INODE_GONE)
		return -ESTALE;
	glock_holder_init(&iopen_gh);
	err = lock_unused(ip, &gh);
	if (err)
		return err;
	err = may_release(ip, &iopen_gh);
	if (!err)
		err = release_shared(ip);
	else if (err == -ESTALE)
		now_gone(ip);
	glock_dq_if_held(&iopen_gh);
	glock_dq(&gh);
	return err;
}

/* Whatever keeps us from it, no memory for instance: it is not forgotten. */
static int evict_shared(struct inode *ip)
{
	int err = lock_and_release(ip);

	if (err == -ESTALE)
		err = look_for_next(ip);
	if (err < 0)
		orphans_add(ip->i_fs, ip->i_addr);
	return err == -EBUSY || err == LEFT_ALONE ? 0 : err;
}

int evict_inode(struct inode *ip)
{
	struct fs *fs = ip->i_fs;
	struct glock_holder gh;
	int err;

	rgrp_window_drop(ip);
	if (!fs->fs_alone)
		return evict_shared(ip);
	file_drop_pages(ip);
	err = glock_nq(ip->i_gl, LM_ST_EXCLUSIVE, 0, &gh);
	if (err)
		return err;
	err = release(ip);
	/* The inode is about to leave memory: what has been changed of it must
	 * be in place by then. (All of it has been freed if all went well, and
	 * if metadata is damaged, nothing more shall be written.) */
	if (err && err != -EUCLEAN && !fs_is_withdrawn(fs))
		journal_writeback_owner(fs->fs_journal, &ip->i_bufs);
	glock_dq(&gh);
	return err;
}

/*
 * Is it what the bitmap says? Reading it is what checks block type and
 * address, and makes it known that it has no links; what is wrong is logged.
 */
static void look_at_unlinked(struct inode *ip)
{
	static const struct fs_req req = { 0 };
	struct glock_holder gh;
	uint32_t nlink;

	if (inode_lock(&req, ip, LM_ST_SHARED, &gh)) {
		ug_warn(ip->i_fs->fs_who,
			"block %" PRIu64 ": unlinked in the bitmap, but no "
			"dinode that can be read; left alone, see fsck.gfs2",
			ip->i_addr);
		return;
	}
	nlink = ip->i_nlink;
	inode_unlock(&gh);
	if (nlink)
		ug_warn(ip->i_fs->fs_who,
			"inode %" PRIu64 ": unlinked in the bitmap, but has "
			"%u links; left alone, see fsck.gfs2",
			ip->i_addr, nlink);
}

/*
 * NULL: it is being released already, perhaps by what this very thread has yet
 * to do, so it is not waited for; or it leaves memory.
 */
static int get_left_behind(struct fs *fs, uint64_t addr, struct inode **ipp)
{
	int err = inode_get(fs, addr, 0, true, ipp);

	if (!err)
		return 0;
	*ipp = NULL;
	return err == -ESTALE || err == -EAGAIN ? 0 : err;
}

int evict_unlinked(struct fs *fs, uint64_t addr, void *arg)
{
	struct inode *ip;
	int err = get_left_behind(fs, addr, &ip);

	if (err)
		return err;
	/* With the last reference it is queued for release. */
	if (ip) {
		look_at_unlinked(ip);
		inode_put(ip);
	}
	icache_run_evict(fs);
	return fs_is_withdrawn(fs) ? -EIO : 0;
}

/* Queued, and looked at, by whichever thread. */
static void look_at_links(struct inode *ip)
{
	icache_check_links(ip);
	icache_run_evict(ip->i_fs);
}

int evict_left_behind(struct fs *fs, uint64_t addr, void *arg)
{
	struct inode *ip;
	int err = get_left_behind(fs, addr, &ip);

	if (err)
		return err;
	/* Perhaps it only leaves memory. */
	if (!ip)
		orphans_add(fs, addr);
	else
		look_at_links(ip);
	inode_put(ip);
	return fs_is_withdrawn(fs) ? -EIO : 0;
}

/* Who has it open hears that somebody wants to release it. */
static bool is_open_elsewhere(struct inode *ip)
{
	struct glock_holder gh;

	if (glock_nq(ip->i_iopen, LM_ST_EXCLUSIVE, GL_TRY_1CB | GL_NOCACHE,
		     &gh))
		return true;
	glock_dq(&gh);
	return false;
}

int evict_again(struct fs *fs, uint64_t addr)
{
	enum gfs2_blkst state = GFS2_BLKST_UNLINKED;
	struct inode *ip;
	bool busy;
	int err = get_left_behind(fs, addr, &ip);

	if (err)
		return err;
	busy = !ip || is_open_elsewhere(ip);
	if (!busy)
		err = rgrp_block_state(fs, addr, false, &state);
	if (busy || err)
		orphans_add(fs, addr);
	else if (state == GFS2_BLKST_UNLINKED)
		look_at_links(ip);
	inode_put(ip);
	return fs_is_withdrawn(fs) ? -EIO : err;
}
