/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * file_open.c - open handles: who may write, and when the last one has gone.
 */
#include <errno.h>
#include <fcntl.h>

#include "fs/file.h"

static bool can_write(int flags)
{
	return (flags & O_ACCMODE) != O_RDONLY;
}

/* What the kernel does not know; mode bits have been checked by it. */
static int open_allowed(const struct inode *ip, int flags)
{
	bool change = can_write(flags) || (flags & O_TRUNC);

	if (change && inode_is_dir(ip))
		return -EISDIR;
	if (change && (ip->i_flags & GFS2_DIF_IMMUTABLE))
		return -EPERM;
	if (!(ip->i_flags & GFS2_DIF_APPENDONLY))
		return 0;
	if ((can_write(flags) && !(flags & O_APPEND)) || (flags & O_TRUNC))
		return -EPERM;
	return 0;
}

/* ---- other nodes ---- */

const struct glock_ops iopen_glock_ops = {
	.type = LM_TYPE_IOPEN,
};

static int lock_opens(const struct fs_req *req, struct inode *ip)
{
	if (pthread_mutex_trylock(&ip->i_open_lock) == 0)
		return 0;
	if (req->nowait)
		return -EAGAIN;
	pthread_mutex_lock(&ip->i_open_lock);
	return 0;
}

/*
 * iopen SH keeps the contents: who releases them needs it EX, and asks for that
 * under EX of the inode. We have the inode's glock: so nobody has asked in vain
 * for what we take here, and nobody has got it.
 */
int inode_opened(const struct fs_req *req, struct inode *ip)
{
	int err = 0;

	if (!ip->i_iopen) {
		atomic_fetch_add(&ip->i_opens, 1);
		return 0;
	}
	err = lock_opens(req, ip);
	if (err)
		return err;
	if (!glock_held(&ip->i_iopen_gh)) {
		err = glock_nq(ip->i_iopen, LM_ST_SHARED,
			       req->nowait ? GL_NOWAIT : 0, &ip->i_iopen_gh);
		if (err)
			glock_holder_init(&ip->i_iopen_gh);
	}
	if (!err)
		atomic_fetch_add(&ip->i_opens, 1);
	pthread_mutex_unlock(&ip->i_open_lock);
	return err;
}

/*
 * Whoever has taken the last link could not release the contents because of
 * us, if somebody wanted the lock: it is ours to do, if nobody else has it
 * open.
 */
void inode_closed(struct inode *ip)
{
	bool wanted = false;

	if (!ip->i_iopen) {
		atomic_fetch_sub(&ip->i_opens, 1);
		return;
	}
	pthread_mutex_lock(&ip->i_open_lock);
	if (atomic_fetch_sub(&ip->i_opens, 1) == 1 &&
	    glock_held(&ip->i_iopen_gh)) {
		wanted = glock_is_wanted(ip->i_iopen) ||
			 (atomic_load(&ip->i_state) & INODE_UNLINKED);
		glock_dq(&ip->i_iopen_gh);
		glock_holder_init(&ip->i_iopen_gh);
	}
	pthread_mutex_unlock(&ip->i_open_lock);
	if (wanted)
		icache_check_links(ip);
}

/* ---- handles ---- */

/* The lock must be EX for this. */
#define NEEDS_EXCLUSIVE 1 /* of fs_host_ops.writer() */

/* The host counts it; 0, NEEDS_EXCLUSIVE or -ENOMEM. */
static int tell_writer(struct inode *ip, int flags, bool exclusive)
{
	const struct fs *fs = ip->i_fs;

	if (!can_write(flags) || !fs->fs_host->writer)
		return 0;
	return fs->fs_host->writer(fs->fs_host_arg, inode_nodeid(ip),
				   exclusive);
}

/* The lock is held. */
static int open_locked(const struct fs_req *req, struct inode *ip, int flags,
		       bool exclusive)
{
	int err = open_allowed(ip, flags);

	if (!err)
		err = inode_opened(req, ip);
	if (err)
		return err;
	if ((flags & O_TRUNC) && inode_is_reg(ip))
		err = file_set_size(req, ip, 0);
	if (!err)
		err = tell_writer(ip, flags, exclusive);
	if (err) {
		inode_closed(ip);
		return err;
	}
	inode_ref(ip, 1);
	if (can_write(flags))
		atomic_fetch_add(&ip->i_writers, 1);
	return 0;
}

static int open_with(const struct fs_req *req, struct inode *ip, int flags,
		     bool exclusive)
{
	struct glock_holder gh;
	int err;

	err = inode_lock(req, ip, exclusive ? LM_ST_EXCLUSIVE : LM_ST_SHARED,
			 &gh);
	if (err)
		return err;
	err = open_locked(req, ip, flags, exclusive);
	inode_unlock(&gh);
	return err;
}

int fs_open(const struct fs_req *req, struct inode *ip, int flags)
{
	int err = 0;

	if (can_write(flags) || (flags & O_TRUNC))
		err = fs_may_write(ip->i_fs);
	else if (fs_is_withdrawn(ip->i_fs))
		err = -EIO;
	if (err)
		return err;
	err = open_with(req, ip, flags, (flags & O_TRUNC) && inode_is_reg(ip));
	if (err == NEEDS_EXCLUSIVE)
		err = open_with(req, ip, flags, true);
	return fs_fault(ip->i_fs, err);
}

void fs_release(struct inode *ip, int flags)
{
	const struct fs *fs = ip->i_fs;

	if (can_write(flags) && fs->fs_host->writer_gone)
		fs->fs_host->writer_gone(fs->fs_host_arg, inode_nodeid(ip));
	/* Nobody appends now: the places kept for it are for all. */
	if (can_write(flags) && atomic_fetch_sub(&ip->i_writers, 1) == 1)
		rgrp_window_drop(ip);
	inode_closed(ip);
	inode_put(ip);
}
