/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * lookup.c - from a name or a number to an inode; the target of a symlink.
 *
 * Looking up a name that is in memory is the most frequent request of all, and
 * is answered by the thread that read it: two glocks SH, two read locks, one
 * table slot, one leaf. The inode's attributes are read under its own glock
 * while the directory's is held, so the name still names it.
 *
 * ".." leads upwards, against the order of glocks: the directory is let go
 * before its parent is locked.
 */
#include <errno.h>
#include <inttypes.h>

#include "fs/namei.h"

/* What the name names; the directory is locked SH. */
static int find_child(const struct fs_req *req, struct inode *dir,
		      const char *name, size_t len, struct dir_found *found)
{
	int err;

	err = inode_rdlock(req, dir);
	if (err)
		return err;
	if (!inode_is_dir(dir))
		err = -ENOTDIR;
	else if (dir->i_nlink == 0)
		err = -ENOENT;
	else
		err = dir_search(dir, name, len, req->nowait, found);
	inode_rwunlock(dir);
	return err;
}

/* After name_count(): the reference is the kernel's, or gone. Returns err. */
static int counted(struct inode *ip, int err)
{
	if (err) {
		name_uncount(ip);
		inode_put(ip);
	} else {
		name_counted(ip);
	}
	return err;
}

/* Read the inode that was found; on success the kernel has it once more. */
static int answer(const struct fs_req *req, struct fs *fs,
		  const struct dir_found *found, struct fs_entry *out)
{
	struct inode *ip;
	int err;

	err = inode_get(fs, found->addr, found->formal, req->nowait, &ip);
	if (err)
		return err;
	name_count(ip);
	err = name_entry(req, ip, out);
	return counted(ip, err);
}

/* "." of a node that is in memory: for file handles, so any type will do. */
static int lookup_self(const struct fs_req *req, struct inode *ip,
		       struct fs_entry *out)
{
	int err;

	inode_ref(ip, 1);
	name_count(ip);
	err = name_entry(req, ip, out);
	if (!err && out->attr.nlink == 0)
		err = -ESTALE;
	return counted(ip, err);
}

static int lookup_name(const struct fs_req *req, struct inode *dir,
		       const char *name, size_t len, struct fs_entry *out)
{
	bool up = name_is_dotdot(name, len);
	struct glock_holder gh;
	struct dir_found found;
	int err;

	err = inode_lock(req, dir, LM_ST_SHARED, &gh);
	if (err)
		return err;
	err = find_child(req, dir, name, len, &found);
	if (up)
		inode_unlock(&gh);
	if (!err)
		err = answer(req, dir->i_fs, &found, out);
	if (!up)
		inode_unlock(&gh);
	return err;
}

int fs_lookup(const struct fs_req *req, struct inode *dir, const char *name,
	      size_t len, struct fs_entry *out)
{
	int err = name_check(name, len);

	if (err)
		return err;
	if (name_is_dot(name, len))
		err = lookup_self(req, dir, out);
	else
		err = lookup_name(req, dir, name, len, out);
	return fs_fault(dir->i_fs, err);
}

/* ---- by number ---- */

/* 0 if the bitmap says that there is an inode with links. -ESTALE. */
static int check_state(struct fs *fs, uint64_t addr, bool nowait,
		       enum gfs2_blkst *state)
{
	int err = rgrp_block_state(fs, addr, nowait, state);

	if (err)
		return err;
	return *state == GFS2_BLKST_DINODE ? 0 : -ESTALE;
}

static bool is_reachable(const struct inode *ip)
{
	return ip->i_nlink != 0 &&
	       (!(ip->i_flags & GFS2_DIF_SYSTEM) || ip->i_fs->fs_opt.meta);
}

/*
 * The bitmap is asked twice: first because the number may be anything, and
 * what is not marked as a dinode must not be read as one; then again under the
 * inode's glock, without which an inode cannot be freed: it may have been in
 * between. What was read then meant nothing, even where it looked like damage,
 * and must not be freed once more.
 */
static int entry_by_addr(const struct fs_req *req, struct inode *ip,
			 struct fs_entry *out)
{
	struct fs *fs = ip->i_fs;
	struct glock_holder gh;
	enum gfs2_blkst state;
	int err, dead;

	err = inode_lock(req, ip, LM_ST_SHARED, &gh);
	if (err == -EUCLEAN) {
		dead = check_state(fs, ip->i_addr, req->nowait, &state);
		return dead ? dead : err;
	}
	if (err)
		return err;
	err = check_state(fs, ip->i_addr, req->nowait, &state);
	if (err == -ESTALE && state != GFS2_BLKST_UNLINKED)
		atomic_fetch_or(&ip->i_state, INODE_BAD);
	if (!err)
		err = inode_rdlock(req, ip);
	if (!err) {
		if (is_reachable(ip))
			inode_fill_entry(ip, out);
		else
			err = -ESTALE;
		inode_rwunlock(ip);
	}
	inode_unlock(&gh);
	return err;
}

int fs_lookup_nodeid(struct fs *fs, const struct fs_req *req, uint64_t nodeid,
		     struct fs_entry *out)
{
	enum gfs2_blkst state;
	struct inode *ip;
	int err;

	if (nodeid == FS_ROOT_NODEID)
		return fs_fault(fs, lookup_self(req, fs->fs_root, out));
	if (!rgrps_valid_block(fs, nodeid))
		return -ESTALE;
	err = check_state(fs, nodeid, req->nowait, &state);
	if (!err)
		err = inode_get(fs, nodeid, 0, req->nowait, &ip);
	if (err)
		return fs_fault(fs, err);
	name_count(ip);
	err = counted(ip, entry_by_addr(req, ip, out));
	return fs_fault(fs, err);
}

/* ---- symlinks ---- */

static ssize_t copy_target(const struct fs_req *req, struct inode *ip,
			   char *buf, size_t size)
{
	struct buf *b;
	size_t len;
	int err;

	if (!S_ISLNK(ip->i_mode))
		return -EINVAL;
	if (!inode_is_stuffed(ip))
		return fs_bad_block(ip->i_fs, ip->i_addr,
				    "symbolic link of height %u, expected 0",
				    ip->i_height);
	err = inode_dibuf(ip, req->nowait, &b);
	if (err)
		return err;
	/* Reading the inode has bounded i_size to what fits in the block. */
	len = UG_MIN(size, (size_t)ip->i_size);
	memcpy(buf, gfs2_dinode_area(b->b_data), len);
	buf_put(b);
	return (ssize_t)len;
}

ssize_t fs_readlink(const struct fs_req *req, struct inode *ip, char *buf,
		    size_t size)
{
	struct glock_holder gh;
	ssize_t n;
	int err;

	err = inode_lock(req, ip, LM_ST_SHARED, &gh);
	if (err)
		return fs_fault(ip->i_fs, err);
	n = inode_rdlock(req, ip);
	if (!n) {
		n = copy_target(req, ip, buf, size);
		inode_rwunlock(ip);
	}
	inode_unlock(&gh);
	if (n < 0)
		return fs_fault(ip->i_fs, (int)n);
	inode_touch_atime(req, ip);
	return n;
}
