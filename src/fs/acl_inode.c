/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * acl_inode.c - access control lists of inodes.
 *
 * List and mode change in one transaction: no crash and no other node sees one
 * without the other. A new inode gets its lists in the transaction that makes
 * it.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/xattr.h>

#include "fs/acl.h"
#include "fs/acl_inode.h"

static unsigned entries_max(const struct fs *fs)
{
	return 300u * fs->fs_geom.bsize / 4096u;
}

/* ---- setting ---- */

/* -ENODATA is none: there may be a mode to set. */
static int change(const struct fs_req *req, struct inode *ip,
		  const struct xattr_key *key, const void *value, uint32_t size,
		  int flags, uint32_t mode)
{
	struct xattr_change ch;
	int err = xattr_change_plan(ip, key, value, size, flags, req->nowait,
				    &ch);

	if (err == -ENODATA && !value)
		err = 0;
	ch.xc_set_mode = true;
	ch.xc_mode = mode;
	if (!err && (value || ch.xc_old.b || mode != ip->i_mode))
		err = xattr_change_commit(req, ip, &ch);
	xattr_change_release(&ch);
	return err;
}

int acl_set(const struct fs_req *req, struct inode *ip,
	    const struct xattr_key *key, const void *value, uint32_t size,
	    int flags)
{
	int xattr_flags = flags & (XATTR_CREATE | XATTR_REPLACE);
	bool is_access = xattr_key_is(key, XATTR_ACL_ACCESS);
	uint32_t mode = ip->i_mode;
	int err;

	if (S_ISLNK(mode))
		return -EOPNOTSUPP;
	if (!value || acl_is_empty(size))
		return change(req, ip, key, NULL, 0, 0, mode);
	if (!is_access && !inode_is_dir(ip))
		return -EACCES;
	err = acl_check(value, size, entries_max(ip->i_fs));
	if (err)
		return err;
	if (!is_access)
		return change(req, ip, key, value, size, xattr_flags, mode);
	if (flags & FS_XATTR_KILL_SGID)
		mode &= ~(uint32_t)S_ISGID;
	if (acl_to_mode(value, size, &mode))
		return change(req, ip, key, NULL, 0, 0, mode);
	return change(req, ip, key, value, size, xattr_flags, mode);
}

/* ---- reading ---- */

/*
 * A copy of the list that the inode has, checked; *value NULL if there is
 * none. i_lock held (reading).
 */
static int list_get(struct inode *ip, const char *name, bool nowait,
		    void **value, uint32_t *size)
{
	const struct xattr_key key = xattr_key_of(name);
	struct xattr_place place;
	int err;

	*value = NULL;
	if (!ip->i_fs->fs_opt.acl)
		return 0;
	err = xattr_find(ip, &key, nowait, &place);
	if (err)
		return err == -ENODATA ? 0 : err;
	*size = place.ea.data_len;
	if (!acl_is_empty(*size)) {
		*value = malloc(*size);
		err = *value ? xattr_value(ip, &place, nowait, *value)
			     : -ENOMEM;
	}
	buf_put(place.b);
	if (!err && *value)
		err = acl_check(*value, *size, UINT32_MAX);
	if (err) {
		free(*value);
		*value = NULL;
	}
	return err;
}

/* ---- chmod ---- */

int acl_chmod_plan(struct inode *ip, uint32_t mode, bool nowait,
		   struct acl_chmod *ac)
{
	uint32_t size;
	int err;

	pthread_rwlock_rdlock(&ip->i_lock);
	err = list_get(ip, XATTR_ACL_ACCESS, nowait, &ac->ac_value, &size);
	inode_rwunlock(ip);
	if (err || !ac->ac_value)
		return err;
	acl_from_mode(ac->ac_value, size, mode);
	ac->ac_key = xattr_key_of(XATTR_ACL_ACCESS);
	return xattr_change_plan(ip, &ac->ac_key, ac->ac_value, size, 0, nowait,
				 &ac->ac_change);
}

unsigned acl_chmod_blocks(const struct acl_chmod *ac)
{
	return ac->ac_value ? xattr_change_blocks(&ac->ac_change) : 0;
}

void acl_chmod_release(struct acl_chmod *ac)
{
	if (!ac->ac_value)
		return;
	xattr_change_release(&ac->ac_change);
	free(ac->ac_value);
}

/* ---- new inodes ---- */

static uint32_t record_len(const struct fs *fs, const char *name, uint32_t size,
			   int *err)
{
	const struct xattr_key key = xattr_key_of(name);
	uint32_t rec_len = 0;
	unsigned ptrs = 0;

	*err = gfs2_ea_size(&fs->fs_geom, key.len, size, &rec_len, &ptrs);
	/* More than any program could set: not to be passed on. */
	if (!*err && ptrs)
		*err = -E2BIG;
	return rec_len;
}

/* Both in one block, or each in one below an indirect block. */
static int count_blocks(const struct fs *fs, struct acl_legacy *al)
{
	uint32_t len = 0;
	int err = 0;

	if (al->al_access)
		len += record_len(fs, XATTR_ACL_ACCESS, al->al_size, &err);
	if (!err && al->al_default)
		len += record_len(fs, XATTR_ACL_DEFAULT, al->al_size, &err);
	if (len)
		al->al_blocks = len <= fs->fs_geom.jbsize ? 1 : 3;
	return err;
}

int acl_legacy_plan(struct inode *dir, uint32_t mode, uint32_t umask,
		    bool nowait, struct acl_legacy *al)
{
	void *value;
	int err;

	*al = (struct acl_legacy){ .al_mode = mode };
	if (S_ISLNK(mode))
		return 0;
	err = list_get(dir, XATTR_ACL_DEFAULT, nowait, &value, &al->al_size);
	if (err)
		return err;
	if (!value) {
		al->al_mode &= ~(umask & 0777u);
		return 0;
	}
	if (S_ISDIR(mode)) {
		al->al_default = malloc(al->al_size);
		if (!al->al_default) {
			free(value);
			return -ENOMEM;
		}
		memcpy(al->al_default, value, al->al_size);
	}
	if (acl_inherit(value, al->al_size, &al->al_mode))
		free(value);
	else
		al->al_access = value;
	return count_blocks(dir->i_fs, al);
}

/* *room: the block of the last record, or NULL; then that of this one. */
static int attr_apply(struct trans *tr, struct inode *ip, const char *name,
		      const void *value, uint32_t size, struct rgrp_hold *hold,
		      struct buf **room)
{
	const struct xattr_key key = xattr_key_of(name);
	struct xattr_change ch = {
		.xc_key = &key,
		.xc_value = value,
		.xc_size = size,
		.xc_from = hold,
	};
	uint32_t off;
	int err;

	gfs2_ea_size(&ip->i_fs->fs_geom, key.len, size, &ch.xc_rec_len,
		     &ch.xc_ptrs);
	if (*room && gfs2_ea_room((*room)->b_data, ch.xc_rec_len, &off))
		ch.xc_room = buf_ref(*room);
	err = xattr_change_apply(tr, ip, &ch);
	buf_put(*room);
	buf_put(ch.xc_ind);
	*room = ch.xc_room;
	return err;
}

int acl_legacy_apply(struct trans *tr, struct inode *ip,
		     const struct acl_legacy *al, struct rgrp_hold *hold)
{
	struct buf *room = NULL;
	int err = 0;

	if (al->al_access)
		err = attr_apply(tr, ip, XATTR_ACL_ACCESS, al->al_access,
				 al->al_size, hold, &room);
	if (!err && al->al_default)
		err = attr_apply(tr, ip, XATTR_ACL_DEFAULT, al->al_default,
				 al->al_size, hold, &room);
	buf_put(room);
	return err;
}

void acl_legacy_release(struct acl_legacy *al)
{
	free(al->al_access);
	free(al->al_default);
}
