/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * dir_free.c - the leaves of a directory that nobody can reach any more.
 *
 * One transaction frees the first leaves of one chain, as many of them as lie
 * in one resource group, and lets the slots of the table point to what is left
 * of the chain, or to nothing. So a chain across groups gets shorter from its
 * head, and each transaction holds a single group. A crash leaves a directory
 * without links whose table has empty slots where leaves are gone: freeing
 * goes on from there. The transaction that empties the last slot turns the
 * inode into a regular file without permissions, whose contents are the table:
 * what comes after needs to know nothing of directories.
 * Source: docs/spec/gfs2-ondisk.md 6.7 step 1.
 */
#include <errno.h>
#include <inttypes.h>

#include "fs/dir_block.h"

/* Leaves freed by one transaction: each costs a revoke. */
#define FREE_LEAVES_MAX 64u

/* What one transaction does. */
struct leaf_run {
	uint32_t first, count; /* slots */
	uint64_t head;	       /* what they hold now ... */
	uint64_t rest;	       /* ... and then; 0 if nothing is left */
	bool last;	       /* no later slot holds anything */
	unsigned leaves;
	uint64_t addrs[FREE_LEAVES_MAX];
	struct rgrp_hold hold;
	struct dir_plan plan; /* table blocks alone */
};

/* From slot *index on: the next run of slots with one address. -ENOENT. */
static int next_run(struct inode *dir, uint32_t index, struct leaf_run *run)
{
	const uint32_t slots = 1u << dir->i_depth;
	uint64_t addr = 0;
	int err;

	for (; index < slots; index++) {
		err = dir_table_get(dir, index, false, &addr);
		if (err)
			return err;
		if (addr)
			break;
	}
	if (index == slots)
		return -ENOENT;
	run->head = addr;
	run->first = index;
	while (++index < slots) {
		err = dir_table_get(dir, index, false, &addr);
		if (err)
			return err;
		if (addr != run->head)
			break;
	}
	run->count = index - run->first;
	run->last = index == slots;
	return dir_table_plan(dir, run->first, run->count, false, &run->plan);
}

/*
 * The leaves to free: from the head on, those in the group of the head. Leaves
 * that were freed are not looked at again, and a chain that bites its tail
 * meets a block that is no longer in use (rgrp_free() says so).
 */
static int collect_leaves(struct inode *dir, struct leaf_run *run)
{
	struct gfs2_leaf_info leaf;
	uint64_t addr = run->head;
	struct buf *b;
	int err;

	run->leaves = 0;
	do {
		err = dir_leaf_get(dir, addr, false, &b, &leaf);
		if (err)
			return err;
		buf_put(b);
		run->addrs[run->leaves++] = addr;
		addr = leaf.next;
	} while (addr && run->leaves < FREE_LEAVES_MAX &&
		 rgrp_hold_covers(&run->hold, addr));
	run->rest = addr;
	return 0;
}

static void become_plain(struct inode *dir)
{
	dir->i_mode = S_IFREG;
	dir->i_flags &= ~GFS2_DIF_EXHASH;
	dir->i_depth = 0;
}

static int free_leaves(struct trans *tr, struct inode *dir, struct buf *dibuf,
		       struct leaf_run *run)
{
	unsigned i;
	int err = 0;

	for (i = 0; i < run->leaves && !err; i++)
		err = rgrp_free(tr, &run->hold, dir, run->addrs[i], 1, true);
	if (err)
		return err;
	dir_table_set(tr, dir, dibuf, &run->plan, run->first, run->count,
		      run->rest);
	if (run->last && !run->rest)
		become_plain(dir);
	inode_log(tr, dir, dibuf);
	return 0;
}

static int free_run(struct inode *dir, struct leaf_run *run)
{
	struct fs *fs = dir->i_fs;
	struct buf *dibuf;
	struct trans tr;
	int err;

	err = inode_dibuf(dir, false, &dibuf);
	if (err)
		return err;
	err = trans_begin(fs->fs_journal, &tr,
			  1 + run->plan.dp_count +
				  rgrp_trans_blocks(&run->hold, run->leaves),
			  run->leaves, 0);
	if (!err) {
		pthread_rwlock_wrlock(&dir->i_lock);
		err = free_leaves(&tr, dir, dibuf, run);
		inode_rwunlock(dir);
		inode_logged(dir, trans_end(&tr), true);
	}
	buf_put(dibuf);
	return err;
}

/* Free what the slots of one run lead to. *index: where to look next. */
static int free_next(struct inode *dir, uint32_t *index)
{
	struct leaf_run run = { 0 };
	int err;

	rgrp_hold_init(&run.hold);
	pthread_rwlock_rdlock(&dir->i_lock);
	err = next_run(dir, *index, &run);
	inode_rwunlock(dir);
	if (!err)
		err = rgrp_hold_block(dir->i_fs, run.head, false, &run.hold);
	if (err)
		goto out;
	pthread_rwlock_rdlock(&dir->i_lock);
	err = collect_leaves(dir, &run);
	inode_rwunlock(dir);
	if (!err)
		err = free_run(dir, &run);
	*index = run.first + (run.rest ? 0 : run.count);
out:
	rgrp_drop(&run.hold);
	dir_plan_release(&run.plan);
	return err;
}

/* All slots are empty already: only the change of type is missing. */
static int finish_empty(struct inode *dir)
{
	struct fs *fs = dir->i_fs;
	struct buf *dibuf;
	struct trans tr;
	int err;

	err = inode_dibuf(dir, false, &dibuf);
	if (err)
		return err;
	err = trans_begin(fs->fs_journal, &tr, 1, 0, 0);
	if (!err) {
		pthread_rwlock_wrlock(&dir->i_lock);
		become_plain(dir);
		inode_log(&tr, dir, dibuf);
		inode_rwunlock(dir);
		inode_logged(dir, trans_end(&tr), true);
	}
	buf_put(dibuf);
	return err;
}

int dir_free_leaves(struct inode *dir)
{
	uint32_t index = 0;
	int err = 0;

	while (!err && inode_is_dir(dir) && dir_is_hashed(dir))
		err = free_next(dir, &index);
	return err == -ENOENT ? finish_empty(dir) : err;
}
