/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * statfs.c - totals of the volume: master file plus this node's changes.
 *
 * Both files are stuffed, so their contents are part of their dinode blocks,
 * and changing them is logging these. Each transaction that changes a group
 * adds the same to the local values; the merge moves local to master in one
 * transaction, so that their sum is right after a crash at any point.
 *
 * The local buffer stays referenced, and its glock held, for the whole mount:
 * statfs_change() has nothing to read and cannot fail. The master file is read
 * anew for each merge, since other nodes merge too. sc_lock is a leaf, taken
 * inside transactions.
 */
#include <errno.h>
#include <stdlib.h>
#include <time.h>

#include "fs/icache.h"
#include "fs/inode.h"
#include "fs/rgrp.h"
#include "fs/statfs.h"

/* Of a file that others hold for moments, if they are well. */
#define READ_PATIENCE_NS 10000000000u

struct statfs_state {
	pthread_mutex_t sc_lock;
	struct gfs2_statfs_info master; /* as read last */
	struct gfs2_statfs_info local;
	struct buf *local_buf;
	/*
	 * SH keeps it in memory, and lets others look; that we alone change
	 * it is for the lock of the journal of this number to see to.
	 */
	struct glock_holder local_gh;
};

/* Of a lock that is not for an inode of ours: another node's local values. */
static const struct glock_ops foreign_glock_ops = {
	.type = LM_TYPE_INODE,
};

static void *contents(struct buf *b)
{
	return gfs2_dinode_area(b->b_data);
}

static uint64_t now_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * 1000000000u + (uint64_t)ts.tv_nsec;
}

/* Its glock is held. */
static int read_file(struct inode *ip, struct buf **bp,
		     struct gfs2_statfs_info *values)
{
	int err;

	if (ip->i_height || ip->i_size < sizeof(struct gfs2_statfs_change))
		return fs_bad_block(ip->i_fs, ip->i_addr,
				    "statfs file has height %u and size %llu, "
				    "expected 0 and 24",
				    ip->i_height,
				    (unsigned long long)ip->i_size);
	err = inode_dibuf(ip, false, bp);
	if (!err)
		gfs2_statfs_decode(contents(*bp), values);
	return err;
}

/* -EAGAIN: others have it for longer than we wait. */
static int lock_within(struct glock *gl, enum lm_state state, unsigned flags,
		       uint64_t patience_ns, struct glock_holder *gh)
{
	int err = glock_nq(gl, state, flags | GL_ASYNC, gh);

	if (!err)
		err = glock_wait_until(gh, now_ns() + patience_ns);
	if (err == -ETIMEDOUT) {
		glock_dq(gh);
		err = -EAGAIN;
	}
	if (err)
		glock_holder_init(gh);
	return err;
}

/*
 * The master file. Other nodes merge theirs too, so it is given back at once:
 * in its place, and not in our log any more, which a replay would put over what
 * they have made of it.
 */
static int lock_master(struct fs *fs, enum lm_state state, unsigned flags,
		       uint64_t patience_ns, struct glock_holder *gh)
{
	return lock_within(fs->fs_statfs_ip->i_gl, state,
			   flags | (fs->fs_alone ? 0 : GL_NOCACHE), patience_ns,
			   gh);
}

static int read_master(struct fs *fs)
{
	struct statfs_state *st = fs->fs_statfs;
	struct gfs2_statfs_info values;
	struct glock_holder gh;
	struct buf *b;
	int err = lock_master(fs, LM_ST_SHARED, 0, READ_PATIENCE_NS, &gh);

	if (err)
		return err;
	err = read_file(fs->fs_statfs_ip, &b, &values);
	if (!err) {
		pthread_mutex_lock(&st->sc_lock);
		st->master = values;
		pthread_mutex_unlock(&st->sc_lock);
		buf_put(b);
	}
	glock_dq(&gh);
	return err;
}

static int load_local(struct fs *fs)
{
	struct statfs_state *st = fs->fs_statfs;
	int err = lock_within(fs->fs_sc_ip->i_gl, LM_ST_SHARED, 0,
			      READ_PATIENCE_NS, &st->local_gh);

	return err ? err : read_file(fs->fs_sc_ip, &st->local_buf, &st->local);
}

int statfs_load(struct fs *fs)
{
	struct statfs_state *st = calloc(1, sizeof(*st));
	int err;

	if (!st)
		return -ENOMEM;
	pthread_mutex_init(&st->sc_lock, NULL);
	glock_holder_init(&st->local_gh);
	fs->fs_statfs = st;
	err = read_master(fs);
	if (!err && fs->fs_sc_ip)
		err = load_local(fs);
	return err;
}

void statfs_unload(struct fs *fs)
{
	struct statfs_state *st = fs->fs_statfs;

	if (!st)
		return;
	buf_put(st->local_buf);
	glock_dq_if_held(&st->local_gh);
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

/* Master and local, in one transaction. The master's glock is held EX. */
static int merge_locked(struct fs *fs)
{
	struct statfs_state *st = fs->fs_statfs;
	struct gfs2_statfs_info values;
	struct trans tr;
	struct buf *master;
	int err = read_file(fs->fs_statfs_ip, &master, &values);

	if (err)
		return err;
	err = trans_begin(fs->fs_journal, &tr, 2, 0, 0);
	if (err)
		goto out;
	pthread_mutex_lock(&st->sc_lock);
	trans_add_meta(&tr, master);
	trans_add_meta(&tr, st->local_buf);
	add(&values, st->local.total, st->local.free, st->local.dinodes);
	st->master = values;
	st->local = (struct gfs2_statfs_info){ 0 };
	gfs2_statfs_encode(&st->master, contents(master));
	gfs2_statfs_encode(&st->local, contents(st->local_buf));
	pthread_mutex_unlock(&st->sc_lock);
	glock_set_dirty(fs->fs_statfs_ip->i_gl);
	trans_end(&tr);
out:
	buf_put(master);
	return err;
}

int statfs_merge(struct fs *fs, unsigned patience_sec)
{
	struct statfs_state *st = fs->fs_statfs;
	struct glock_holder gh;
	bool nothing;
	int err;

	pthread_mutex_lock(&st->sc_lock);
	nothing = is_zero(&st->local);
	pthread_mutex_unlock(&st->sc_lock);
	if (nothing && fs->fs_alone)
		return 0;
	/* What the other nodes have merged. */
	if (nothing)
		return read_master(fs);
	err = lock_master(fs, LM_ST_EXCLUSIVE, 0,
			  (uint64_t)patience_sec * 1000000000u, &gh);
	if (err)
		return err;
	err = merge_locked(fs);
	glock_dq(&gh);
	return err;
}

/* The dead member's values go to ours: both are added to master with the next
 * merge. A crash before that leaves the sum in our file, or both as they were.
 */
static int adopt_locked(struct fs *fs, struct buf *b)
{
	struct statfs_state *st = fs->fs_statfs;
	struct gfs2_statfs_info values, zero = { 0 };
	struct trans tr;
	int err;

	gfs2_statfs_decode(contents(b), &values);
	if (is_zero(&values))
		return 0;
	err = trans_begin(fs->fs_journal, &tr, 2, 0, 0);
	if (err)
		return err;
	pthread_mutex_lock(&st->sc_lock);
	trans_add_meta(&tr, b);
	trans_add_meta(&tr, st->local_buf);
	add(&st->local, values.total, values.free, values.dinodes);
	gfs2_statfs_encode(&st->local, contents(st->local_buf));
	gfs2_statfs_encode(&zero, contents(b));
	pthread_mutex_unlock(&st->sc_lock);
	trans_end(&tr);
	return 0;
}

static int adopt_block(struct fs *fs, struct buf_owner *owner, uint64_t addr)
{
	struct buf *b;
	int err = buf_read(fs->fs_cache, owner, addr, 0, &b);

	if (err)
		return err;
	if (gfs2_check_meta(b->b_data, GFS2_METATYPE_DI))
		err = fs_bad_block(fs, addr,
				   "a statfs_change file is no "
				   "dinode");
	else
		err = adopt_locked(fs, b);
	buf_put(b);
	/* Its next owner reads it from the device. */
	if (!err)
		err = journal_writeback_owner(fs->fs_journal, owner);
	return err;
}

int statfs_adopt(struct fs *fs, uint64_t addr)
{
	struct buf_owner owner;
	struct glock_holder gh;
	struct glock *gl;
	int err;

	err = glock_get(fs->fs_glocks, &foreign_glock_ops, addr, NULL, &gl);
	if (err)
		return err;
	err = lock_within(gl, LM_ST_EXCLUSIVE, GL_NOEXP | GL_NOCACHE,
			  READ_PATIENCE_NS, &gh);
	if (err)
		goto put;
	buf_owner_init(&owner);
	err = adopt_block(fs, &owner, addr);
	/* Perhaps it is in our log by now, and must be out of it before that
	 * is given up. */
	while (err == -ENOMEM) {
		nanosleep(&(struct timespec){ .tv_nsec = 10000000 }, NULL);
		err = adopt_block(fs, &owner, addr);
	}
	buf_invalidate_owner(fs->fs_cache, &owner);
	buf_owner_destroy(&owner);
	glock_dq(&gh);
put:
	glock_put(gl);
	return err;
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
	unsigned percent = tune_get(fs, TUNE_STATFS_PERCENT);
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
