/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * xattr.c - extended attributes as a front end asks for them.
 *
 * Who may see or change an attribute by its name space and the inode's mode has
 * been checked by the kernel ("trusted.": CAP_SYS_ADMIN; "user.": permission
 * bits, files and directories only). What it cannot know is checked here.
 */
#include <errno.h>
#include <string.h>

#include "fs/acl_inode.h"

/* ---- reading ---- */

static ssize_t get_locked(const struct fs_req *req, struct inode *ip,
			  const struct xattr_key *key, void *buf, size_t size)
{
	struct xattr_place place;
	ssize_t n;
	int err = xattr_find(ip, key, req->nowait, &place);

	if (err)
		return err;
	n = (ssize_t)place.ea.data_len;
	if (size && size < (size_t)n)
		err = -ERANGE;
	else if (size)
		err = xattr_value(ip, &place, req->nowait, buf);
	buf_put(place.b);
	return err ? err : n;
}

/* Names that have been found so far. */
struct lister {
	const struct fs_req *req;
	char *buf; /* NULL: only how long they are */
	size_t size;
	size_t used;
};

static int list_one(struct inode *ip, const struct gfs2_ea_info *ea,
		    struct lister *ls)
{
	const struct xattr_key key = { ea->type, ea->name_len, ea->name };
	const char *prefix = xattr_prefix(ls->req, ip->i_fs, &key);
	size_t len;

	if (!prefix)
		return 0;
	len = strlen(prefix) + ea->name_len + 1;
	if (ls->buf) {
		char *to = ls->buf + ls->used;

		if (len > ls->size - ls->used)
			return -ERANGE;
		to = stpcpy(to, prefix);
		memcpy(to, ea->name, ea->name_len);
		to[ea->name_len] = '\0';
	}
	ls->used += len;
	return 0;
}

static int list_block(struct inode *ip, struct buf *b, void *arg)
{
	uint32_t off = GFS2_EA_FIRST_OFF;
	struct gfs2_ea_info ea;
	int err = 0;

	do {
		xattr_record(ip, b, off, &ea);
		if (ea.type != GFS2_EATYPE_UNUSED)
			err = list_one(ip, &ea, arg);
		off += ea.rec_len;
	} while (!err && !ea.last);
	return err;
}

static ssize_t list_locked(const struct fs_req *req, struct inode *ip,
			   char *buf, size_t size)
{
	struct lister ls = { req, size ? buf : NULL, size, 0 };
	int err = xattr_each_block(ip, req->nowait, list_block, &ls);

	return err ? err : (ssize_t)ls.used;
}

/* key NULL: all names. */
static ssize_t read_attr(const struct fs_req *req, struct inode *ip,
			 const struct xattr_key *key, void *buf, size_t size)
{
	struct glock_holder gh;
	ssize_t n;
	int err = inode_lock(req, ip, LM_ST_SHARED, &gh);

	if (err)
		return fs_fault(ip->i_fs, err);
	n = inode_rdlock(req, ip);
	if (!n) {
		n = key ? get_locked(req, ip, key, buf, size)
			: list_locked(req, ip, buf, size);
		inode_rwunlock(ip);
	}
	inode_unlock(&gh);
	return n < 0 ? fs_fault(ip->i_fs, (int)n) : n;
}

ssize_t fs_getxattr(const struct fs_req *req, struct inode *ip,
		    const char *name, void *buf, size_t size)
{
	struct xattr_key key;
	int err = xattr_key_parse(ip->i_fs, name, &key);

	return err ? err : read_attr(req, ip, &key, buf, size);
}

ssize_t fs_listxattr(const struct fs_req *req, struct inode *ip, char *buf,
		     size_t size)
{
	return read_attr(req, ip, NULL, buf, size);
}

/* ---- changing ---- */

static int change_locked(const struct fs_req *req, struct inode *ip,
			 const struct xattr_key *key, const void *value,
			 uint32_t size, int flags)
{
	struct xattr_change ch;
	int err;

	if (ip->i_flags & (GFS2_DIF_IMMUTABLE | GFS2_DIF_APPENDONLY))
		return -EPERM;
	if (key->type == GFS2_EATYPE_SYS)
		return acl_set(req, ip, key, value, size, flags);
	err = xattr_change_plan(ip, key, value, size, flags, req->nowait, &ch);
	if (!err)
		err = xattr_change_commit(req, ip, &ch);
	xattr_change_release(&ch);
	return err;
}

static int change(const struct fs_req *req, struct inode *ip, const char *name,
		  const void *value, size_t size, int flags)
{
	struct glock_holder gh;
	struct xattr_key key;
	int err = fs_may_write(ip->i_fs);

	if (!err)
		err = xattr_key_parse(ip->i_fs, name, &key);
	if (err)
		return err;
	if (size > GFS2_EA_DATA_MAX)
		return -E2BIG;
	if (req->nowait && ip->i_fs->fs_opt.sync)
		return -EAGAIN;
	err = inode_lock(req, ip, LM_ST_EXCLUSIVE, &gh);
	if (err)
		return fs_fault(ip->i_fs, err);
	err = change_locked(req, ip, &key, value, (uint32_t)size, flags);
	inode_unlock(&gh);
	return fs_fault(ip->i_fs, err);
}

int fs_setxattr(const struct fs_req *req, struct inode *ip, const char *name,
		const void *value, size_t size, int flags)
{
	return change(req, ip, name, value ? value : "", size, flags);
}

int fs_removexattr(const struct fs_req *req, struct inode *ip, const char *name)
{
	return change(req, ip, name, NULL, 0, 0);
}
