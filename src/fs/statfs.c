/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * statfs.c - totals of the volume: master file plus this node's changes.
 *
 * Both files are stuffed, so their contents are part of their dinode blocks,
 * and changing them is logging these. Each transaction that changes a group
 * adds the same to the local values; the merge moves local to master in one
 * transaction, so that their sum is right after a crash at any point.
 *
 * The buffers stay referenced for the whole mount: statfs_change() has nothing
 * to read and cannot fail. sc_lock is a leaf, taken inside transactions.
 */
#include <errno.h>
#include <stdlib.h>
#include <time.h>

#include "fs/icache.h"
#include "fs/inode.h"
#include "fs/rgrp.h"
#include "fs/statfs.h"

struct statfs_state {
	pthread_mutex_t sc_lock;
	struct gfs2_statfs_info master;
	struct gfs2_statfs_info local;
	struct buf *master_buf;
	struct buf *local_buf;
};

static void *contents(struct buf *b)
{
	return gfs2_dinode_area(b->b_data);
}

static int load_one(struct inode *ip, struct buf **bp,
		    struct gfs2_statfs_info *values)
{
	static const struct fs_req req = { 0 };
	struct glock_holder gh;
	int err;

	err = inode_lock(&req, ip, LM_ST_SHARED, &gh);
	if (err)
		return err;
	if (ip->i_height || ip->i_size < sizeof(struct gfs2_statfs_change))
		err = fs_bad_block(ip->i_fs, ip->i_addr,
				   "statfs file has height %u and size %llu, "
				   "expected 0 and 24",
				   ip->i_height,
				   (unsigned long long)ip->i_size);
	else
		err = inode_dibuf(ip, false, bp);
	if (!err)
		gfs2_statfs_decode(contents(*bp), values);
	inode_unlock(&gh);
	return err;
}

int statfs_load(struct fs *fs)
{
	struct statfs_state *st = calloc(1, sizeof(*st));
	int err;

	if (!st)
		return -ENOMEM;
	pthread_mutex_init(&st->sc_lock, NULL);
	fs->fs_statfs = st;
	err = load_one(fs->fs_statfs_ip, &st->master_buf, &st->master);
	if (!err && fs->fs_sc_ip)
		err = load_one(fs->fs_sc_ip, &st->local_buf, &st->local);
	return err;
}

void statfs_unload(struct fs *fs)
{
	struct statfs_state *st = fs->fs_statfs;

	if (!st)
		return;
	buf_put(st->master_buf);
	buf_put(st->local_buf);
	pthread_mutex_destroy(&st->sc_lock);
	free(st);
	fs->fs_statfs = NULL;
}

static void add(struct gfs2_statfs_info *to, int64_t total, int64_t free_,
		int64_t dinodes)
{
	to->total += total;
	to->free += free_;
	to->dinodes += dinodes;
}

void statfs_change(struct trans *tr, struct fs *fs, int64_t total,
		   int64_t free_, int64_t dinodes)
{
	struct statfs_state *st = fs->fs_statfs;

	pthread_mutex_lock(&st->sc_lock);
	trans_add_meta(tr, st->local_buf);
	add(&st->local, total, free_, dinodes);
	gfs2_statfs_encode(&st->local, contents(st->local_buf));
	pthread_mutex_unlock(&st->sc_lock);
}

void statfs_local(struct fs *fs, int64_t *total, int64_t *free_,
		  int64_t *dinodes)
{
	struct statfs_state *st = fs->fs_statfs;

	pthread_mutex_lock(&st->sc_lock);
	*total = st->local.total;
	*free_ = st->local.free;
	*dinodes = st->local.dinodes;
	pthread_mutex_unlock(&st->sc_lock);
}

static bool is_zero(const struct gfs2_statfs_info *v)
{
	return !v->total && !v->free && !v->dinodes;
}

int statfs_merge(struct fs *fs)
{
	struct statfs_state *st = fs->fs_statfs;
	struct trans tr;
	int err;

	pthread_mutex_lock(&st->sc_lock);
	err = is_zero(&st->local);
	pthread_mutex_unlock(&st->sc_lock);
	if (err)
		return 0;
	err = trans_begin(fs->fs_journal, &tr, 2, 0, 0);
	if (err)
		return err;
	pthread_mutex_lock(&st->sc_lock);
	trans_add_meta(&tr, st->master_buf);
	trans_add_meta(&tr, st->local_buf);
	add(&st->master, st->local.total, st->local.free, st->local.dinodes);
	st->local = (struct gfs2_statfs_info){ 0 };
	gfs2_statfs_encode(&st->master, contents(st->master_buf));
	gfs2_statfs_encode(&st->local, contents(st->local_buf));
	pthread_mutex_unlock(&st->sc_lock);
	trans_end(&tr);
	return 0;
}

int64_t statfs_free(struct fs *fs)
{
	struct statfs_state *st = fs->fs_statfs;
	int64_t free_;

	pthread_mutex_lock(&st->sc_lock);
	free_ = st->master.free + st->local.free;
	pthread_mutex_unlock(&st->sc_lock);
	return free_;
}

bool statfs_merge_is_due(struct fs *fs)
{
	struct statfs_state *st = fs->fs_statfs;
	unsigned percent = fs->fs_opt.statfs_percent;
	int64_t change;
	bool due;

	if (!percent)
		return false;
	pthread_mutex_lock(&st->sc_lock);
	change = st->local.free < 0 ? -st->local.free : st->local.free;
	due = change && change >= st->master.free / 100 * (int64_t)percent;
	pthread_mutex_unlock(&st->sc_lock);
	return due;
}

static uint64_t not_negative(int64_t v)
{
	return v > 0 ? (uint64_t)v : 0;
}

/*
 * Free blocks, less what has been promised to data in memory, plus what inodes
 * without a name are about to give back. What is kept back is free, but not
 * available: none is available when ENOSPC comes.
 */
void fs_statfs(struct fs *fs, struct fs_statfs *out)
{
	struct statfs_state *st = fs->fs_statfs;
	int64_t free_, total, dinodes, kept = (int64_t)space_kept(fs);

	pthread_mutex_lock(&st->sc_lock);
	total = st->master.total + st->local.total;
	free_ = st->master.free + st->local.free;
	dinodes = st->master.dinodes + st->local.dinodes;
	pthread_mutex_unlock(&st->sc_lock);
	free_ += (int64_t)icache_evict_blocks(fs);
	free_ -= (int64_t)space_promised(fs);
	*out = (struct fs_statfs){
		.blocks = not_negative(total),
		.bfree = not_negative(free_),
		.bavail = not_negative(free_ - kept),
		.files = not_negative(dinodes) + not_negative(free_),
		.ffree = not_negative(free_),
		.bsize = fs->fs_geom.bsize,
		.namelen = GFS2_NAME_MAX,
	};
}
