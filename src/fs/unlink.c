/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * unlink.c - removing a name, of a file or of an empty directory.
 *
 * One transaction: the entry, the directory, the inode's link count, and with
 * the last link the state of its block: dinode -> unlinked. Contents stay until
 * the last user has gone; then, or after a crash, eviction frees them. ("."
 * and ".." of a removed directory stay in its block, uncounted.)
 * Source: docs/spec/gfs2-ondisk.md 4.10, 6.6; glocks-and-recovery.md 4.9.
 */
#include <errno.h>
#include <inttypes.h>

#include "fs/namei.h"

struct unlink_op {
	const struct fs_req *req;
	struct inode *dir;
	const char *name;
	size_t len;
	bool rmdir;
	struct glock_holder dir_gh;
	struct dir_slot slot;
	struct buf *dir_dibuf;

	struct inode *ip;
	struct glock_holder gh;
	struct buf *dibuf;
	struct rgrp_hold hold; /* with the last link */
	bool sync;
	uint64_t sequence;
};

static int find_name(struct unlink_op *op)
{
	bool nowait = op->req->nowait;
	int err;

	err = inode_rdlock(op->req, op->dir);
	if (err)
		return err;
	err = name_may_remove(op->dir);
	if (!err)
		err = dir_find(op->dir, op->name, op->len, nowait, &op->slot);
	op->sync = name_is_sync(op->dir);
	inode_rwunlock(op->dir);
	if (!err && op->sync && nowait)
		err = -EAGAIN;
	if (!err)
		err = inode_dibuf(op->dir, nowait, &op->dir_dibuf);
	return err;
}

int name_check_empty(const struct inode *ip)
{
	/* No entries, no subdirectories; both would be damage alone. */
	return ip->i_entries > 2 || ip->i_nlink > 2 ? -ENOTEMPTY : 0;
}

/* i_lock of both held (reading). *last: its last link goes. */
static int check_victim(struct unlink_op *op, bool *last)
{
	const struct inode *ip = op->ip;
	int err;

	if (ip->i_nlink == 0)
		return fs_bad_block(ip->i_fs, ip->i_addr,
				    "inode without links has a name in "
				    "directory %" PRIu64,
				    op->dir->i_addr);
	err = name_may_lose(op->req, op->dir, ip);
	if (err)
		return err;
	if (op->rmdir && !inode_is_dir(ip))
		return -ENOTDIR;
	if (!op->rmdir && inode_is_dir(ip))
		return -EISDIR;
	*last = op->rmdir || ip->i_nlink == 1;
	return op->rmdir ? name_check_empty(ip) : 0;
}

static int lock_victim(struct unlink_op *op)
{
	const struct dir_found *found = &op->slot.ds_found;
	bool nowait = op->req->nowait;
	bool last = false;
	int err;

	err = inode_get(op->dir->i_fs, found->addr, found->formal, nowait,
			&op->ip);
	if (!err)
		err = inode_lock(op->req, op->ip, LM_ST_EXCLUSIVE, &op->gh);
	if (!err)
		err = inode_rdlock(op->req, op->ip);
	if (err)
		return err;
	err = check_victim(op, &last);
	inode_rwunlock(op->ip);
	if (!err)
		err = inode_dibuf(op->ip, nowait, &op->dibuf);
	if (!err && last)
		err = rgrp_hold_block(op->dir->i_fs, found->addr, nowait,
				      &op->hold);
	return err;
}

int name_drop_link(struct trans *tr, struct inode *ip, struct buf *dibuf,
		   struct rgrp_hold *hold)
{
	int err = 0;

	if (inode_is_dir(ip)) {
		ip->i_nlink = 0;
		ip->i_entries = 0;
	} else {
		ip->i_nlink--;
	}
	if (ip->i_nlink == 0)
		err = rgrp_unlink_dinode(tr, hold, ip->i_addr);
	ip->i_ctime = fs_now();
	inode_log(tr, ip, dibuf);
	return err;
}

static int change(struct trans *tr, struct unlink_op *op)
{
	int err;

	err = name_drop_link(tr, op->ip, op->dibuf, &op->hold);
	if (err)
		return err;
	if (op->rmdir)
		op->dir->i_nlink--;
	return dir_del(tr, op->dir, op->dir_dibuf, &op->slot);
}

static int commit(struct unlink_op *op)
{
	struct inode *const both[] = { op->dir, op->ip };
	struct fs *fs = op->dir->i_fs;
	unsigned blocks = 3; /* two dinodes, a leaf */
	struct trans tr;
	int err;

	if (op->hold.rh_rg)
		blocks += rgrp_trans_blocks(&op->hold, 1);
	err = trans_begin(fs->fs_journal, &tr, blocks, 0,
			  op->req->nowait ? TRANS_NOWAIT : 0);
	if (err)
		return err;
	err = name_wrlock(op->req, both, 2);
	if (err) {
		trans_end(&tr);
		return err;
	}
	err = change(&tr, op);
	name_broken(fs, err);
	name_wrunlock(both, 2);
	op->sequence = trans_end(&tr);
	inode_logged(op->dir, op->sequence, true);
	inode_logged(op->ip, op->sequence, false);
	return err;
}

static int unlink_name(struct unlink_op *op)
{
	struct fs *fs = op->dir->i_fs;
	int err;

	rgrp_hold_init(&op->hold);
	err = inode_lock(op->req, op->dir, LM_ST_EXCLUSIVE, &op->dir_gh);
	if (!err)
		err = find_name(op);
	if (!err)
		err = lock_victim(op);
	if (!err)
		err = commit(op);
	rgrp_drop(&op->hold);
	buf_put(op->dibuf);
	buf_put(op->dir_dibuf);
	dir_slot_release(&op->slot);
	glock_dq_if_held(&op->gh);
	glock_dq_if_held(&op->dir_gh);
	/* Without links and users it goes to be evicted, with no lock held. */
	inode_put(op->ip);
	if (!err)
		err = name_sync(fs, op->sync, op->sequence);
	return fs_fault(fs, err);
}

int fs_unlink(const struct fs_req *req, struct inode *dir, const char *name,
	      size_t len)
{
	struct unlink_op op = {
		.req = req, .dir = dir, .name = name, .len = len
	};
	int err;

	err = fs_may_write(dir->i_fs);
	if (!err)
		err = name_check(name, len);
	if (!err && (name_is_dot(name, len) || name_is_dotdot(name, len)))
		err = -EISDIR;
	return err ? err : unlink_name(&op);
}

int fs_rmdir(const struct fs_req *req, struct inode *dir, const char *name,
	     size_t len)
{
	struct unlink_op op = {
		.req = req, .dir = dir, .name = name, .len = len, .rmdir = true
	};
	int err;

	err = fs_may_write(dir->i_fs);
	if (!err)
		err = name_check(name, len);
	if (!err && name_is_dot(name, len))
		err = -EINVAL;
	if (!err && name_is_dotdot(name, len))
		err = -ENOTEMPTY;
	return err ? err : unlink_name(&op);
}
