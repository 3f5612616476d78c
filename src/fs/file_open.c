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

int fs_open(const struct fs_req *req, struct inode *ip, int flags)
{
	bool truncate = (flags & O_TRUNC) && inode_is_reg(ip);
	struct glock_holder gh;
	int err = 0;

	if (can_write(flags) || (flags & O_TRUNC))
		err = fs_may_write(ip->i_fs);
	else if (fs_is_withdrawn(ip->i_fs))
		err = -EIO;
	if (err)
		return err;
	err = inode_lock(req, ip, truncate ? LM_ST_EXCLUSIVE : LM_ST_SHARED,
			 &gh);
	if (err)
		return fs_fault(ip->i_fs, err);
	err = open_allowed(ip, flags);
	if (!err && truncate)
		err = file_set_size(req, ip, 0);
	if (!err) {
		inode_ref(ip, 1);
		atomic_fetch_add(&ip->i_opens, 1);
		if (can_write(flags))
			atomic_fetch_add(&ip->i_writers, 1);
	}
	inode_unlock(&gh);
	return fs_fault(ip->i_fs, err);
}

void fs_release(struct inode *ip, int flags)
{
	/* Nobody appends now: the places kept for it are for all. */
	if (can_write(flags) && atomic_fetch_sub(&ip->i_writers, 1) == 1)
		rgrp_window_drop(ip);
	atomic_fetch_sub(&ip->i_opens, 1);
	inode_put(ip);
}
