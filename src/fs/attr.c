/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * attr.c - reading and setting attributes.
 *
 * A size is set first, by file_set_size(), which is a sequence of
 * transactions of its own; then everything else in one transaction. A crash in
 * between leaves the new size with the old rest, as a crash between two system
 * calls would.
 */
#include <errno.h>

#include "fs/inode.h"
#include "fs/pages.h"
#include "fs/acl_inode.h"

int fs_getattr(const struct fs_req *req, struct inode *ip, struct fs_attr *out)
{
	struct glock_holder gh;
	int err;

	err = inode_lock(req, ip, LM_ST_SHARED, &gh);
	if (err)
		return fs_fault(ip->i_fs, err);
	err = inode_rdlock(req, ip);
	if (!err) {
		inode_fill_attr(ip, out);
		inode_rwunlock(ip);
	}
	inode_unlock(&gh);
	return err;
}

/* What a change of owner or a write by others takes away. */
static uint32_t without_privileges(uint32_t mode)
{
	if (S_ISDIR(mode))
		return mode;
	mode &= ~(uint32_t)S_ISUID;
	if (mode & S_IXGRP)
		mode &= ~(uint32_t)S_ISGID;
	return mode;
}

static void apply_times(struct inode *ip, const struct fs_setattr *set,
			struct fs_time now)
{
	if (set->valid & FS_SET_ATIME_NOW)
		ip->i_atime = now;
	else if (set->valid & FS_SET_ATIME)
		ip->i_atime = set->atime;
	if (set->valid & FS_SET_MTIME_NOW)
		ip->i_mtime = now;
	else if (set->valid & FS_SET_MTIME)
		ip->i_mtime = set->mtime;
	ip->i_ctime = set->valid & FS_SET_CTIME ? set->ctime : now;
}

/* i_lock held for writing. */
static void apply(struct inode *ip, const struct fs_setattr *set)
{
	if (set->valid & FS_SET_MODE)
		ip->i_mode = (ip->i_mode & S_IFMT) | (set->mode & 07777);
	if (set->valid & FS_SET_UID)
		ip->i_uid = set->uid;
	if (set->valid & FS_SET_GID)
		ip->i_gid = set->gid;
	if (set->valid & FS_SET_KILL_SUIDGID ||
	    ((set->valid & (FS_SET_UID | FS_SET_GID)) &&
	     !(set->valid & FS_SET_MODE)))
		ip->i_mode = without_privileges(ip->i_mode);
	apply_times(ip, set, fs_now());
}

/*
 * Immutable: nothing. Append-only: times set to now are allowed, as for a
 * write at the end.
 */
static int allowed(const struct inode *ip, const struct fs_setattr *set)
{
	unsigned explicit_times = FS_SET_ATIME | FS_SET_MTIME;

	if (ip->i_flags & GFS2_DIF_IMMUTABLE)
		return -EPERM;
	if ((ip->i_flags & GFS2_DIF_APPENDONLY) &&
	    (set->valid & (FS_SET_MODE | FS_SET_UID | FS_SET_GID | FS_SET_SIZE |
			   explicit_times)))
		return -EPERM;
	return 0;
}

static int check_size(const struct inode *ip, const struct fs_setattr *set)
{
	if (!(set->valid & FS_SET_SIZE))
		return 0;
	if (inode_is_dir(ip))
		return -EISDIR;
	if (!inode_is_reg(ip))
		return -EINVAL;
	return set->size > INT64_MAX ? -EFBIG : 0;
}

/* Attributes, and the access list (ac; none if it has no value) with them. */
static int commit_rest(const struct fs_req *req, struct inode *ip,
		       const struct fs_setattr *set, struct acl_chmod *ac,
		       struct buf *dibuf)
{
	struct fs *fs = ip->i_fs;
	struct trans tr;
	uint64_t seq;
	int err;

	err = trans_begin(fs->fs_journal, &tr, 1 + acl_chmod_blocks(ac), 0,
			  req->nowait ? TRANS_NOWAIT : 0);
	if (err)
		return err;
	err = inode_wrlock(req, ip);
	if (err) {
		trans_end(&tr);
		return err;
	}
	if (ac->ac_value)
		err = xattr_change_apply(&tr, ip, &ac->ac_change);
	if (err)
		fs_withdraw(fs, "the access list of inode %llu broke off",
			    (unsigned long long)ip->i_addr);
	apply(ip, set);
	inode_log(&tr, ip, dibuf);
	inode_rwunlock(ip);
	seq = trans_end(&tr);
	inode_logged(ip, seq, false);
	if (!err && ac->ac_value)
		xattr_change_finish(ip, &ac->ac_change);
	return !err && fs->fs_opt.sync ? journal_flush(fs->fs_journal, seq)
				       : err;
}

/* Glock EX held. All but the size, in one transaction. */
static int set_rest(const struct fs_req *req, struct inode *ip,
		    const struct fs_setattr *set)
{
	struct acl_chmod ac = { 0 };
	struct buf *dibuf;
	int err;

	err = inode_dibuf(ip, req->nowait, &dibuf);
	if (err)
		return err;
	if (set->valid & FS_SET_MODE)
		err = acl_chmod_plan(ip, set->mode, req->nowait, &ac);
	if (!err)
		err = commit_rest(req, ip, set, &ac, dibuf);
	acl_chmod_release(&ac);
	buf_put(dibuf);
	return err;
}

static int setattr_locked(const struct fs_req *req, struct inode *ip,
			  const struct fs_setattr *set, struct fs_attr *out)
{
	struct fs_setattr rest = *set;
	int err;

	err = allowed(ip, set);
	if (!err)
		err = check_size(ip, set);
	if (err)
		return err;
	if (set->valid & (FS_SET_UID | FS_SET_GID)) {
		err = xattr_drop_capability(req, ip);
		if (err)
			return err;
	}
	if (set->valid & FS_SET_SIZE) {
		err = req->nowait ? -EAGAIN : file_set_size(req, ip, set->size);
		if (err)
			return err;
		rest.valid &= ~FS_SET_SIZE;
	}
	if (rest.valid) {
		err = set_rest(req, ip, &rest);
		if (err)
			return err;
	}
	/* Something may have changed: no giving up here, even with nowait.
	 * Write-back holds i_lock for the length of a change in memory. */
	pthread_rwlock_rdlock(&ip->i_lock);
	inode_fill_attr(ip, out);
	inode_rwunlock(ip);
	return 0;
}

int fs_setattr(const struct fs_req *req, struct inode *ip,
	       const struct fs_setattr *set, struct fs_attr *out)
{
	struct glock_holder gh;
	int err;

	err = fs_may_write(ip->i_fs);
	if (err)
		return err;
	err = inode_lock(req, ip, LM_ST_EXCLUSIVE, &gh);
	if (err)
		return fs_fault(ip->i_fs, err);
	err = setattr_locked(req, ip, set, out);
	inode_unlock(&gh);
	return fs_fault(ip->i_fs, err);
}
