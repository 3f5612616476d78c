/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * link.c - a further name for a file.
 *
 * One transaction: the entry, the directory, the link count of the file.
 * Source: docs/spec/gfs2-ondisk.md 4.10; glocks-and-recovery.md 4.9.
 */
#include <errno.h>

#include "fs/namei.h"

struct link_op {
	const struct fs_req *req;
	struct inode *dir;
	struct inode *ip;
	const char *name;
	size_t len;
	struct glock_holder dir_gh;
	struct glock_holder gh;
	struct dir_plan plan;
	struct rgrp_hold hold;
	struct buf *dir_dibuf;
	struct buf *dibuf;
	bool sync;
	uint64_t sequence;
};

/*
 * A directory cannot have a second name. It must not even be locked here, as
 * it may be above the directory that is locked first.
 */
static int refuse_directory(const struct fs_req *req, struct inode *ip)
{
	int err = inode_rdlock(req, ip);

	if (err)
		return err;
	err = inode_is_dir(ip) ? -EPERM : 0;
	inode_rwunlock(ip);
	return err;
}

static int check_file(const struct inode *ip)
{
	if (ip->i_nlink == 0)
		return -ENOENT;
	if (ip->i_flags & (GFS2_DIF_IMMUTABLE | GFS2_DIF_APPENDONLY))
		return -EPERM;
	return ip->i_nlink == UINT32_MAX ? -EMLINK : 0;
}

/* i_lock of the directory held (reading). */
static int check_parent(struct link_op *op)
{
	bool nowait = op->req->nowait;
	struct dir_found found;
	int err;

	err = name_may_add(op->dir);
	if (err)
		return err;
	err = dir_search(op->dir, op->name, op->len, nowait, &found);
	if (err != -ENOENT)
		return err ? err : -EEXIST;
	op->sync = name_is_sync(op->dir);
	if (op->sync && nowait)
		return -EAGAIN;
	return dir_add_plan(op->dir, op->name, op->len, nowait, &op->plan);
}

/* Locks, checks, buffers and places. */
static int prepare(struct link_op *op)
{
	bool nowait = op->req->nowait;
	int err;

	err = inode_lock(op->req, op->dir, LM_ST_EXCLUSIVE, &op->dir_gh);
	if (!err)
		err = inode_lock(op->req, op->ip, LM_ST_EXCLUSIVE, &op->gh);
	if (!err)
		err = inode_rdlock(op->req, op->dir);
	if (err)
		return err;
	err = check_parent(op);
	inode_rwunlock(op->dir);
	if (!err)
		err = inode_rdlock(op->req, op->ip);
	if (err)
		return err;
	err = check_file(op->ip);
	inode_rwunlock(op->ip);
	if (!err)
		err = inode_dibuf(op->dir, nowait, &op->dir_dibuf);
	if (!err)
		err = inode_dibuf(op->ip, nowait, &op->dibuf);
	if (!err && op->plan.dp_alloc)
		err = rgrp_reserve(op->dir, op->plan.dp_alloc,
				   op->plan.dp_alloc, RGRP_META, nowait,
				   &op->hold);
	return err;
}

static int change(struct trans *tr, struct link_op *op)
{
	struct inode *ip = op->ip;

	ip->i_nlink++;
	ip->i_ctime = fs_now();
	inode_log(tr, ip, op->dibuf);
	return dir_add(tr, op->dir, op->dir_dibuf, &op->plan, &op->hold,
		       op->name, op->len, ip->i_formal, ip->i_addr, ip->i_mode);
}

static int commit(struct link_op *op, struct fs_entry *out)
{
	struct inode *const both[] = { op->dir, op->ip };
	struct fs *fs = op->dir->i_fs;
	unsigned blocks = 2 + op->plan.dp_trans;
	struct trans tr;
	int err;

	if (op->plan.dp_alloc)
		blocks += rgrp_trans_blocks(&op->hold, op->plan.dp_alloc);
	err = trans_begin(fs->fs_journal, &tr, blocks, op->plan.dp_revokes,
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
	inode_fill_entry(op->ip, out);
	name_wrunlock(both, 2);
	op->sequence = trans_end(&tr);
	inode_logged(op->dir, op->sequence, true);
	inode_logged(op->ip, op->sequence, false);
	return err;
}

int fs_link(const struct fs_req *req, struct inode *ip, struct inode *dir,
	    const char *name, size_t len, struct fs_entry *out)
{
	struct link_op op = {
		.req = req, .dir = dir, .ip = ip, .name = name, .len = len
	};
	struct fs *fs = dir->i_fs;
	int err;

	err = fs_may_write(fs);
	if (!err)
		err = name_check(name, len);
	if (!err && (name_is_dot(name, len) || name_is_dotdot(name, len)))
		err = -EEXIST;
	if (!err)
		err = refuse_directory(req, ip);
	if (err)
		return err;
	rgrp_hold_init(&op.hold);
	err = prepare(&op);
	if (!err)
		err = commit(&op, out);
	buf_put(op.dibuf);
	buf_put(op.dir_dibuf);
	dir_plan_release(&op.plan);
	rgrp_drop(&op.hold);
	glock_dq_if_held(&op.gh);
	glock_dq_if_held(&op.dir_gh);
	if (!err)
		err = name_sync(fs, op.sync, op.sequence);
	if (!err) {
		inode_ref(ip, 1);
		name_count(ip);
	}
	return fs_fault(fs, err);
}
