/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * rename.c - another name for an inode, perhaps in place of another inode.
 *
 *      olddir | oldname | --> moved          newdir | newname | --> replaced
 *
 * afterwards newname names moved, oldname is gone, replaced has a link less; a
 * directory that changes its parent gets a new "..". One transaction for
 * all of it. An existing newname keeps its record, so that a rename needs
 * either places for a new entry or the group of the replaced inode, never two
 * groups.
 *
 * Locks (see namei.h for why): RENAME, if the directories differ or if one
 * directory replaces another; ancestors of both directories, one after the
 * other, SH, to learn the tree, which stands still under RENAME; olddir and
 * newdir, the upper one first; then moved and replaced. moved must not be
 * above newdir (-EINVAL, a loop), replaced not above olddir (it is not
 * empty): both would also be locks taken upwards, so this is found from the
 * ancestors, before moved and replaced are locked.
 * Source: docs/spec/gfs2-ondisk.md 4.10; glocks-and-recovery.md 4.10.
 */
#include <dirent.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>

#include "fs/ancestors.h"
#include "fs/namei.h"

/* One of the two directories, and its side of the rename. */
struct rename_side {
	struct inode *dir;
	const char *name;
	size_t len;
	struct glock_holder gh;
	struct buf *dibuf;
	struct dir_slot slot; /* the entry of this name */
	struct ancestors above;
};

/* An inode that gains or loses a name. */
struct rename_inode {
	struct inode *ip;
	struct glock_holder gh;
	struct buf *dibuf;
};

struct rename_op {
	const struct fs_req *req;
	struct fs *fs;
	struct rename_side old, new;
	struct rename_inode moved, replaced;
	struct dir_slot dotdot; /* of moved, if it gets another parent */
	struct glock_holder rename_gh;
	struct dir_plan plan; /* no replaced: for the new entry */
	struct rgrp_hold hold;
	unsigned flags;
	bool cross; /* olddir and newdir differ */
	bool moves_dir, removes_dir;
	bool sync;
	uint64_t sequence;
};

/* No need to go on: both names are the same inode's. */
#define RENAME_NOTHING 1
/* Two directories side by side: to be repeated with RENAME held. */
#define RENAME_REPEAT 2

/* ---- directories and names ---- */

static int lock_rename(struct rename_op *op)
{
	int err = glock_nq(op->fs->fs_rename_gl, LM_ST_EXCLUSIVE,
			   op->req->nowait ? GL_NOWAIT : 0, &op->rename_gh);

	if (err)
		glock_holder_init(&op->rename_gh);
	return err;
}

static int lock_side(struct rename_op *op, struct rename_side *side)
{
	return inode_lock(op->req, side->dir, LM_ST_EXCLUSIVE, &side->gh);
}

static int lock_dirs(struct rename_op *op)
{
	struct rename_side *first = &op->old, *second = &op->new;
	int err = 0;

	if (op->cross) {
		err = ancestors_find(op->req, op->old.dir, &op->old.above);
		if (!err)
			err = ancestors_find(op->req, op->new.dir,
					     &op->new.above);
		if (ancestors_have(&op->old.above, op->new.dir->i_addr)) {
			first = &op->new;
			second = &op->old;
		}
	}
	if (!err)
		err = lock_side(op, first);
	if (!err && op->cross)
		err = lock_side(op, second);
	return err;
}

/* What one directory says, i_lock of it held (reading). */
static int look_at_old(struct rename_op *op)
{
	struct rename_side *s = &op->old;
	int err = name_may_remove(s->dir);

	if (!err)
		err = dir_find(s->dir, s->name, s->len, op->req->nowait,
			       &s->slot);
	op->sync |= name_is_sync(s->dir);
	return err;
}

static int look_at_new(struct rename_op *op)
{
	struct rename_side *s = &op->new;
	int err = name_may_add(s->dir);

	if (err)
		return err;
	op->sync |= name_is_sync(s->dir);
	err = dir_find(s->dir, s->name, s->len, op->req->nowait, &s->slot);
	if (err == -ENOENT)
		return dir_add_plan(s->dir, s->name, s->len, op->req->nowait,
				    &op->plan);
	if (!err)
		err = name_may_remove(s->dir);
	if (!err && (op->flags & RENAME_NOREPLACE))
		err = -EEXIST;
	return err;
}

static int find_side(struct rename_op *op, struct rename_side *side,
		     int (*look)(struct rename_op *op))
{
	int err = inode_rdlock(op->req, side->dir);

	if (err)
		return err;
	err = look(op);
	inode_rwunlock(side->dir);
	if (!err)
		err = inode_dibuf(side->dir, op->req->nowait, &side->dibuf);
	return err;
}

/* From what the entries say, before any of the inodes is locked. */
static int check_entries(struct rename_op *op)
{
	const struct dir_found *moved = &op->old.slot.ds_found;
	const struct dir_found *replaced = &op->new.slot.ds_found;
	bool replaces = op->new.slot.ds_buf;

	if (replaces && replaced->addr == moved->addr)
		return RENAME_NOTHING;
	op->moves_dir = moved->type == DT_DIR;
	op->removes_dir = replaces && replaced->type == DT_DIR;
	if (op->moves_dir && (moved->addr == op->new.dir->i_addr ||
			      ancestors_have(&op->new.above, moved->addr)))
		return -EINVAL;
	if (op->removes_dir && (replaced->addr == op->old.dir->i_addr ||
				ancestors_have(&op->old.above, replaced->addr)))
		return -ENOTEMPTY;
	if (replaces && op->moves_dir != op->removes_dir)
		return op->moves_dir ? -ENOTDIR : -EISDIR;
	if (op->removes_dir && !glock_held(&op->rename_gh))
		return RENAME_REPEAT;
	return op->sync && op->req->nowait ? -EAGAIN : 0;
}

static int find_names(struct rename_op *op)
{
	int err;

	err = find_side(op, &op->old, look_at_old);
	if (!err)
		err = find_side(op, &op->new, look_at_new);
	return err ? err : check_entries(op);
}

/* ---- inodes ---- */

static int get_inode(struct rename_op *op, const struct rename_side *side,
		     struct rename_inode *ri)
{
	const struct dir_found *found = &side->slot.ds_found;

	if (!side->slot.ds_buf)
		return 0;
	return inode_get(op->fs, found->addr, found->formal, op->req->nowait,
			 &ri->ip);
}

static int lock_inode(struct rename_op *op, struct rename_inode *ri)
{
	int err;

	if (!ri->ip)
		return 0;
	err = inode_lock(op->req, ri->ip, LM_ST_EXCLUSIVE, &ri->gh);
	if (!err)
		err = inode_dibuf(ri->ip, op->req->nowait, &ri->dibuf);
	return err;
}

static int lock_inodes(struct rename_op *op)
{
	struct rename_inode *first = &op->moved, *second = &op->replaced;
	int err;

	err = get_inode(op, &op->old, &op->moved);
	if (!err)
		err = get_inode(op, &op->new, &op->replaced);
	if (err)
		return err;
	if (second->ip && second->ip->i_addr < first->ip->i_addr) {
		first = &op->replaced;
		second = &op->moved;
	}
	err = lock_inode(op, first);
	if (!err)
		err = lock_inode(op, second);
	return err;
}

/* Type as in the entry, and links: else it is damage. i_lock held (reading). */
static int check_inode(const struct rename_side *side, const struct inode *ip)
{
	bool is_dir = side->slot.ds_found.type == DT_DIR;

	if (ip->i_nlink != 0 && inode_is_dir(ip) == is_dir)
		return 0;
	return fs_bad_block(ip->i_fs, ip->i_addr,
			    "inode of mode %07o with %u links has an entry of "
			    "type %u in directory %" PRIu64,
			    ip->i_mode, ip->i_nlink, side->slot.ds_found.type,
			    side->dir->i_addr);
}

static int check_moved(struct rename_op *op)
{
	struct inode *ip = op->moved.ip;
	int err;

	err = inode_rdlock(op->req, ip);
	if (err)
		return err;
	err = check_inode(&op->old, ip);
	if (!err)
		err = name_may_lose(op->req, op->old.dir, ip);
	if (!err && op->cross && op->moves_dir)
		err = dir_find(ip, "..", 2, op->req->nowait, &op->dotdot);
	/* Every directory has a "..": it is damaged if not. */
	if (err == -ENOENT)
		err = fs_bad_block(op->fs, ip->i_addr,
				   "directory has no entry \"..\"");
	inode_rwunlock(ip);
	return err;
}

static int check_replaced(struct rename_op *op)
{
	struct inode *ip = op->replaced.ip;
	int err;

	if (!ip)
		return 0;
	err = inode_rdlock(op->req, ip);
	if (err)
		return err;
	err = check_inode(&op->new, ip);
	if (!err)
		err = name_may_lose(op->req, op->new.dir, ip);
	if (!err && op->removes_dir)
		err = name_check_empty(ip);
	inode_rwunlock(ip);
	return err;
}

static int check_links(struct rename_op *op)
{
	int err;

	if (!op->cross || !op->moves_dir || op->removes_dir)
		return 0;
	err = inode_rdlock(op->req, op->new.dir);
	if (err)
		return err;
	if (op->new.dir->i_nlink == UINT32_MAX)
		err = -EMLINK;
	inode_rwunlock(op->new.dir);
	return err;
}

static int take_places(struct rename_op *op)
{
	struct inode *replaced = op->replaced.ip;
	bool nowait = op->req->nowait;

	if (replaced && (op->removes_dir || replaced->i_nlink == 1))
		return rgrp_hold_block(op->fs, replaced->i_addr, nowait,
				       &op->hold);
	if (!replaced && op->plan.dp_alloc)
		return rgrp_reserve(op->new.dir, op->plan.dp_alloc,
				    op->plan.dp_alloc, RGRP_META, nowait,
				    &op->hold);
	return 0;
}

static int prepare_inodes(struct rename_op *op)
{
	int err;

	err = lock_inodes(op);
	if (!err)
		err = check_moved(op);
	if (!err)
		err = check_replaced(op);
	if (!err)
		err = check_links(op);
	if (!err)
		err = take_places(op);
	return err;
}

/* ---- the transaction ---- */

/* moved gets its new parent, and the parents' counts follow. */
static void change_parent(struct trans *tr, struct rename_op *op)
{
	struct inode *to = op->new.dir;

	if (op->removes_dir)
		to->i_nlink--;
	if (!op->cross || !op->moves_dir)
		return;
	op->old.dir->i_nlink--;
	to->i_nlink++;
	dir_set(tr, op->moved.ip, &op->dotdot, to->i_formal, to->i_addr,
		S_IFDIR);
}

/* newname names moved. Logs newdir. */
static int enter_new(struct trans *tr, struct rename_op *op)
{
	struct inode *dir = op->new.dir, *ip = op->moved.ip;
	int err;

	if (!op->replaced.ip)
		return dir_add(tr, dir, op->new.dibuf, &op->plan, &op->hold,
			       op->new.name, op->new.len, ip->i_formal,
			       ip->i_addr, ip->i_mode);
	err = name_drop_link(tr, op->replaced.ip, op->replaced.dibuf,
			     &op->hold);
	if (err)
		return err;
	dir_set(tr, dir, &op->new.slot, ip->i_formal, ip->i_addr, ip->i_mode);
	dir->i_mtime = dir->i_ctime = fs_now();
	inode_log(tr, dir, op->new.dibuf);
	return 0;
}

/*
 * The old entry goes first: the new one may want to move records of the same
 * block. What was planned for it then has more room than it needs.
 */
static int change(struct trans *tr, struct rename_op *op)
{
	struct inode *ip = op->moved.ip;
	int err;

	change_parent(tr, op);
	err = dir_del(tr, op->old.dir, op->old.dibuf, &op->old.slot);
	if (!err)
		err = enter_new(tr, op);
	if (err)
		return err;
	ip->i_ctime = fs_now();
	inode_log(tr, ip, op->moved.dibuf);
	return 0;
}

static unsigned trans_blocks(const struct rename_op *op)
{
	/* Four dinodes; old entry, new entry, "..". */
	unsigned blocks = 4 + 3 + op->plan.dp_trans;

	if (op->hold.rh_rg)
		blocks += rgrp_trans_blocks(&op->hold,
					    UG_MAX(1u, op->plan.dp_alloc));
	return blocks;
}

static int commit(struct rename_op *op)
{
	struct inode *const ips[] = {
		op->old.dir,
		op->cross ? op->new.dir : NULL,
		op->moved.ip,
		op->replaced.ip,
	};
	struct trans tr;
	unsigned i;
	int err;

	err = trans_begin(op->fs->fs_journal, &tr, trans_blocks(op),
			  op->plan.dp_revokes,
			  op->req->nowait ? TRANS_NOWAIT : 0);
	if (err)
		return err;
	err = name_wrlock(op->req, ips, UG_ARRAY_SIZE(ips));
	if (err) {
		trans_end(&tr);
		return err;
	}
	err = change(&tr, op);
	name_broken(op->fs, err);
	name_wrunlock(ips, UG_ARRAY_SIZE(ips));
	op->sequence = trans_end(&tr);
	for (i = 0; i < UG_ARRAY_SIZE(ips); i++)
		if (ips[i])
			inode_logged(ips[i], op->sequence, true);
	return err;
}

/* ---- the whole ---- */

static void release_inode(struct rename_inode *ri)
{
	buf_put(ri->dibuf);
	glock_dq_if_held(&ri->gh);
}

static void release_side(struct rename_side *side)
{
	dir_slot_release(&side->slot);
	buf_put(side->dibuf);
	glock_dq_if_held(&side->gh);
	ancestors_release(&side->above);
}

static void release(struct rename_op *op)
{
	rgrp_drop(&op->hold);
	dir_plan_release(&op->plan);
	dir_slot_release(&op->dotdot);
	release_inode(&op->replaced);
	release_inode(&op->moved);
	release_side(&op->new);
	release_side(&op->old);
	glock_dq_if_held(&op->rename_gh);
	/* The replaced one may go to be evicted, with no lock held. */
	inode_put(op->replaced.ip);
	inode_put(op->moved.ip);
}

/* One attempt. */
static int try_rename(struct rename_op *op, bool serial)
{
	int err = 0;

	op->cross = op->old.dir != op->new.dir;
	rgrp_hold_init(&op->hold);
	if (op->cross || serial)
		err = lock_rename(op);
	if (!err)
		err = lock_dirs(op);
	if (!err)
		err = find_names(op);
	if (!err)
		err = prepare_inodes(op);
	if (!err)
		err = commit(op);
	release(op);
	return err;
}

static int check_names(const char *name, size_t len)
{
	int err = name_check(name, len);

	if (!err && (name_is_dot(name, len) || name_is_dotdot(name, len)))
		err = -EBUSY;
	return err;
}

int fs_rename(const struct fs_req *req, struct inode *olddir,
	      const char *oldname, size_t oldlen, struct inode *newdir,
	      const char *newname, size_t newlen, unsigned flags)
{
	const struct rename_op fresh = {
		.req = req,
		.fs = olddir->i_fs,
		.old = { .dir = olddir, .name = oldname, .len = oldlen },
		.new = { .dir = newdir, .name = newname, .len = newlen },
		.flags = flags,
	};
	struct rename_op op = fresh;
	int err;

	err = flags & ~(unsigned)RENAME_NOREPLACE ? -EINVAL : 0;
	if (!err)
		err = fs_may_write(op.fs);
	if (!err)
		err = check_names(oldname, oldlen);
	if (!err)
		err = check_names(newname, newlen);
	if (err)
		return err;
	err = try_rename(&op, false);
	if (err == RENAME_REPEAT) {
		op = fresh;
		err = try_rename(&op, true);
	}
	if (err == RENAME_NOTHING)
		return 0;
	if (!err)
		err = name_sync(op.fs, op.sync, op.sequence);
	return fs_fault(op.fs, err);
}
