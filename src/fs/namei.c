/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * namei.c - what the operations on names share.
 *
 * The kernel has checked permissions by mode bits from attributes that were
 * current when it asked. What is checked here is what may have changed since,
 * or what it cannot know: flags of the inode, a directory that has been
 * removed, the sticky bit with the victim's owner. root is exempt from that
 * one, as the kernel's capability to act on others' files is not told to us.
 */
#include <errno.h>

#include "fs/namei.h"

int name_check(const char *name, size_t len)
{
	if (len == 0)
		return -ENOENT;
	if (len > GFS2_NAME_MAX)
		return -ENAMETOOLONG;
	if (memchr(name, '/', len) || memchr(name, '\0', len))
		return -EINVAL;
	return 0;
}

int name_may_add(const struct inode *dir)
{
	if (!inode_is_dir(dir))
		return -ENOTDIR;
	if (dir->i_nlink == 0)
		return -ENOENT;
	return dir->i_flags & GFS2_DIF_IMMUTABLE ? -EPERM : 0;
}

int name_may_remove(const struct inode *dir)
{
	int err = name_may_add(dir);

	if (!err && (dir->i_flags & GFS2_DIF_APPENDONLY))
		err = -EPERM;
	return err;
}

int name_may_lose(const struct fs_req *req, const struct inode *dir,
		  const struct inode *victim)
{
	if (victim->i_flags & (GFS2_DIF_IMMUTABLE | GFS2_DIF_APPENDONLY))
		return -EPERM;
	if ((dir->i_mode & S_ISVTX) && req->uid != 0 &&
	    req->uid != dir->i_uid && req->uid != victim->i_uid)
		return -EPERM;
	return 0;
}

bool name_is_sync(const struct inode *dir)
{
	const struct fs_options *opt = &dir->i_fs->fs_opt;

	return opt->sync || opt->dirsync || (dir->i_flags & GFS2_DIF_SYNC);
}

int name_sync(struct fs *fs, bool sync, uint64_t sequence)
{
	return sync ? journal_flush(fs->fs_journal, sequence) : 0;
}

int name_wrlock(const struct fs_req *req, struct inode *const *ips, unsigned n)
{
	unsigned i;
	int err = 0;

	for (i = 0; i < n; i++) {
		if (ips[i])
			err = inode_wrlock(req, ips[i]);
		if (err)
			break;
	}
	if (err)
		name_wrunlock(ips, i);
	return err;
}

void name_wrunlock(struct inode *const *ips, unsigned n)
{
	while (n-- > 0)
		if (ips[n])
			inode_rwunlock(ips[n]);
}

void name_broken(struct fs *fs, int err)
{
	if (ug_unlikely(err))
		fs_withdraw(fs, "a change of a directory broke off: %s",
			    strerror(-err));
}

int name_entry(const struct fs_req *req, struct inode *ip, struct fs_entry *out)
{
	struct glock_holder gh;
	int err;

	err = inode_lock(req, ip, LM_ST_SHARED, &gh);
	if (err)
		return err;
	err = inode_rdlock(req, ip);
	if (!err) {
		inode_fill_entry(ip, out);
		inode_rwunlock(ip);
	}
	inode_unlock(&gh);
	return err;
}

/* The mount holds the root; the kernel does not forget it. */
static bool is_root(const struct inode *ip)
{
	return ip == ip->i_fs->fs_root;
}

/* Alone there is no recall that would ask. */
static bool is_counted(const struct inode *ip)
{
	return !ip->i_fs->fs_alone && !is_root(ip);
}

void name_count(struct inode *ip)
{
	if (is_counted(ip))
		atomic_fetch_add(&ip->i_lookups, 1);
}

void name_uncount(struct inode *ip)
{
	if (is_counted(ip))
		atomic_fetch_sub(&ip->i_lookups, 1);
}

void name_counted(struct inode *ip)
{
	if (is_root(ip))
		inode_put(ip);
}
