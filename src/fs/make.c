/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * make.c - new inodes: files, directories, symbolic links, special files.
 *
 *   parent's glock EX, name free, plan for the entry
 *   places for dinode and directory blocks, all in one group (not on disk yet)
 *   inode in memory for the place of the dinode, its glock EX
 *   one transaction: bitmap, dinode, entry, parent
 *
 * In one transaction, unlike the kernel's three, so that a crash leaves no
 * dinode without a name and no name without a dinode (gfs2-ondisk.md trap 25).
 * Source: docs/spec/gfs2-ondisk.md 3.2, 3.3, 3.10, 4.3.
 */
#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

#include "base/assert.h"
#include "fs/acl_inode.h"
#include "fs/namei.h"

/* For a block whose number is being looked at: at most a second in all. */
#define MAKE_ATTEMPTS_MAX 1000u
#define MAKE_PAUSE_US 1000u

struct make_op {
	const struct fs_req *req;
	struct inode *dir;
	const struct fs_make *mk;
	struct glock_holder dir_gh;
	struct dir_plan plan;
	struct acl_legacy legacy;
	struct rgrp_hold hold;
	struct buf *dir_dibuf;

	uint64_t addr;	  /* of the new dinode */
	struct inode *ip; /* the new one */
	struct glock_holder gh;
	struct buf *dibuf;
	bool changed; /* the transaction has begun to change things */
	bool sync;
	uint64_t sequence;
};

static int check_make(struct fs *fs, const struct fs_make *mk)
{
	int err = fs_may_write(fs);

	if (!err)
		err = name_check(mk->name, mk->len);
	if (err)
		return err;
	if (name_is_dot(mk->name, mk->len) || name_is_dotdot(mk->name, mk->len))
		return -EEXIST;
	switch (mk->mode & S_IFMT) {
	case S_IFLNK:
		if (!mk->target_len)
			return -ENOENT;
		/* One less than would fit: the kernel's limit (3.3). */
		if (mk->target_len >= fs->fs_geom.stuffed_max)
			return -ENAMETOOLONG;
		return 0;
	case S_IFREG:
	case S_IFDIR:
	case S_IFCHR:
	case S_IFBLK:
	case S_IFIFO:
	case S_IFSOCK:
		return 0;
	}
	return -EINVAL;
}

/* ---- before the transaction ---- */

/* -EEXIST with *found set. i_lock of the directory held (reading). */
static int check_parent(struct make_op *op, struct dir_found *found)
{
	const struct fs_make *mk = op->mk;
	struct inode *dir = op->dir;
	bool nowait = op->req->nowait;
	int may, err;

	may = name_may_add(dir);
	/* An existing file may be opened in an immutable directory. */
	if (may && may != -EPERM)
		return may;
	err = dir_search(dir, mk->name, mk->len, nowait, found);
	if (err != -ENOENT)
		return err ? err : -EEXIST;
	if (may)
		return may;
	if (S_ISDIR(mk->mode) && dir->i_nlink == UINT32_MAX)
		return -EMLINK;
	op->sync = name_is_sync(dir);
	if (op->sync && nowait)
		return -EAGAIN;
	err = acl_legacy_plan(dir, mk->mode, mk->umask, nowait, &op->legacy);
	return err ? err
		   : dir_add_plan(dir, mk->name, mk->len, nowait, &op->plan);
}

/* Where a new directory starts: most go near their parent, see 3.11. */
static enum rgrp_why placement(const struct inode *dir, uint32_t mode)
{
	bool top =
		dir == dir->i_fs->fs_root || (dir->i_flags & GFS2_DIF_TOPDIR);

	return S_ISDIR(mode) && top ? RGRP_SPREAD : RGRP_META;
}

/* Places, the inode in memory, and all buffers. */
static int prepare(struct make_op *op)
{
	struct inode *dir = op->dir;
	struct fs *fs = dir->i_fs;
	bool nowait = op->req->nowait;
	uint32_t blocks = 1 + op->plan.dp_alloc + op->legacy.al_blocks;
	int err;

	err = inode_dibuf(dir, nowait, &op->dir_dibuf);
	if (!err)
		err = rgrp_reserve(dir, blocks, blocks,
				   placement(dir, op->mk->mode), nowait,
				   &op->hold);
	if (err)
		return err;
	op->addr = rgrp_peek(&op->hold, 1).start;
	err = inode_new(fs, op->addr, nowait, &op->gh, &op->ip);
	if (!err)
		err = buf_new(fs->fs_cache, &op->ip->i_bufs, op->addr,
			      &op->dibuf);
	return err;
}

/* ---- within the transaction ---- */

/*
 * Owner and permissions: the group of a set-group-ID directory is inherited,
 * and by directories also that bit; with the suiddir option a set-user-ID
 * directory gives its new entries away to its owner.
 */
static void set_owner(struct make_op *op)
{
	const struct inode *dir = op->dir;
	struct inode *ip = op->ip;

	ip->i_mode = op->legacy.al_mode;
	ip->i_uid = op->req->uid;
	ip->i_gid = op->req->gid;
	if (dir->i_mode & S_ISGID) {
		ip->i_gid = dir->i_gid;
		if (S_ISDIR(ip->i_mode))
			ip->i_mode |= S_ISGID;
	}
	if (!dir->i_fs->fs_opt.suiddir || !(dir->i_mode & S_ISUID) ||
	    dir->i_uid == 0)
		return;
	if (S_ISDIR(ip->i_mode))
		ip->i_mode |= S_ISUID;
	else if (dir->i_uid != op->req->uid)
		/* Nobody may make a program that runs as another. */
		ip->i_mode &= ~(uint32_t)(S_ISUID | S_ISGID | S_ISVTX |
					  S_IXUSR | S_IXGRP | S_IXOTH);
	ip->i_uid = dir->i_uid;
}

static uint32_t inherited_flags(const struct inode *dir, uint32_t mode)
{
	uint32_t flags = dir->i_flags & GFS2_DIF_SYSTEM;

	if (S_ISDIR(mode))
		flags |= GFS2_DIF_JDATA |
			 (dir->i_flags & GFS2_DIF_INHERIT_JDATA);
	else if (S_ISREG(mode) && (dir->i_flags & GFS2_DIF_INHERIT_JDATA))
		flags |= GFS2_DIF_JDATA;
	return flags;
}

static void set_core(struct make_op *op, uint64_t formal)
{
	const struct fs_make *mk = op->mk;
	struct inode *ip = op->ip;

	set_owner(op);
	ip->i_formal = formal;
	ip->i_generation = formal;
	ip->i_nlink = S_ISDIR(mk->mode) ? 2 : 1;
	ip->i_entries = S_ISDIR(mk->mode) ? 2 : 0;
	if (S_ISDIR(mk->mode))
		ip->i_size = ip->i_fs->fs_geom.stuffed_max;
	else
		ip->i_size = S_ISLNK(mk->mode) ? mk->target_len : 0;
	ip->i_disksize = ip->i_size;
	ip->i_blocks = 1;
	ip->i_goal = ip->i_addr;
	ip->i_flags = inherited_flags(op->dir, mk->mode);
	ip->i_atime = ip->i_mtime = ip->i_ctime = fs_now();
	if (S_ISCHR(mk->mode) || S_ISBLK(mk->mode)) {
		ip->i_rdev_major = mk->rdev_major;
		ip->i_rdev_minor = mk->rdev_minor;
	}
}

/* dibuf is a zeroed block until here. */
static void write_dinode(struct trans *tr, struct make_op *op)
{
	void *block = op->dibuf->b_data;

	/* First the header, since the journal stamps its number there. */
	gfs2_meta_init(block, GFS2_METATYPE_DI);
	trans_add_meta(tr, op->dibuf);
	if (S_ISDIR(op->mk->mode))
		dir_init(op->ip, block, op->dir);
	else if (S_ISLNK(op->mk->mode))
		memcpy(gfs2_dinode_area(block), op->mk->target,
		       op->mk->target_len);
	inode_log(tr, op->ip, op->dibuf);
}

/* i_lock of both held for writing. */
static int change(struct trans *tr, struct make_op *op)
{
	const struct fs_make *mk = op->mk;
	uint64_t addr, formal;
	int err;

	addr = rgrp_alloc_dinode(tr, &op->hold, &formal);
	ug_assert(addr == op->ip->i_addr);
	/* The next one is looked for behind this one. */
	if (placement(op->dir, mk->mode) != RGRP_SPREAD)
		op->dir->i_goal = addr;
	set_core(op, formal);
	err = acl_legacy_apply(tr, op->ip, &op->legacy, &op->hold);
	if (err)
		return err;
	write_dinode(tr, op);
	if (S_ISDIR(mk->mode))
		op->dir->i_nlink++;
	return dir_add(tr, op->dir, op->dir_dibuf, &op->plan, &op->hold,
		       mk->name, mk->len, formal, addr, mk->mode);
}

static int commit(struct make_op *op)
{
	struct inode *const both[] = { op->dir, op->ip };
	struct fs *fs = op->dir->i_fs;
	uint32_t alloc = 1 + op->plan.dp_alloc + op->legacy.al_blocks;
	unsigned blocks = 2 + op->plan.dp_trans + op->legacy.al_blocks +
			  rgrp_trans_blocks(&op->hold, alloc);
	struct trans tr;
	int err;

	err = trans_begin(fs->fs_journal, &tr, blocks, op->plan.dp_revokes,
			  op->req->nowait ? TRANS_NOWAIT : 0);
	if (err)
		return err;
	err = name_wrlock(op->req, both, 2);
	if (err) {
		trans_end(&tr);
		return err;
	}
	op->changed = true;
	err = change(&tr, op);
	name_broken(fs, err);
	name_wrunlock(both, 2);
	op->sequence = trans_end(&tr);
	inode_logged(op->dir, op->sequence, true);
	inode_logged(op->ip, op->sequence, true);
	return err;
}

/* ---- the whole ---- */

static void release(struct make_op *op)
{
	buf_put(op->dibuf);
	buf_put(op->dir_dibuf);
	dir_plan_release(&op->plan);
	acl_legacy_release(&op->legacy);
	rgrp_drop(&op->hold);
	glock_dq_if_held(&op->dir_gh);
}

/* It has not been made: unless we have withdrawn, it was never there. */
static void forget_inode(struct make_op *op)
{
	if (!op->ip)
		return;
	if (op->changed) {
		inode_unlock(&op->gh);
		inode_put(op->ip);
	} else {
		if (op->dibuf)
			buf_forget(op->dibuf);
		buf_put(op->dibuf);
		op->dibuf = NULL;
		inode_new_abort(op->ip, &op->gh);
	}
	op->ip = NULL;
}

static void describe(struct make_op *op, struct fs_entry *out)
{
	/* Nobody but write-back can hold this lock, and never for long. */
	pthread_rwlock_rdlock(&op->ip->i_lock);
	inode_fill_entry(op->ip, out);
	inode_rwunlock(op->ip);
	inode_unlock(&op->gh);
}

/*
 * One attempt. 0: made, described in out, op->ip referenced; -EEXIST: found
 * tells what has the name, and the directory is still locked in op.
 */
static int make_locked(struct make_op *op, struct dir_found *found,
		       struct fs_entry *out)
{
	int err;

	err = inode_lock(op->req, op->dir, LM_ST_EXCLUSIVE, &op->dir_gh);
	if (!err)
		err = inode_rdlock(op->req, op->dir);
	if (err)
		return err;
	err = check_parent(op, found);
	inode_rwunlock(op->dir);
	if (!err)
		err = prepare(op);
	if (!err)
		err = commit(op);
	if (err)
		forget_inode(op);
	else
		describe(op, out);
	return err;
}

static void op_init(struct make_op *op, const struct fs_req *req,
		    struct inode *dir, const struct fs_make *mk)
{
	*op = (struct make_op){ .req = req, .dir = dir, .mk = mk };
	glock_holder_init(&op->dir_gh);
	glock_holder_init(&op->gh);
	rgrp_hold_init(&op->hold);
}

/*
 * inode_new() refuses while somebody looks at the number of the very block by
 * a file handle, which ends by itself. An inode that stays in use in a block
 * that is free is damage. Called after each attempt; *err becomes final.
 */
static bool must_repeat(const struct make_op *op, unsigned *attempts, int *err)
{
	if (*err != -EAGAIN || op->req->nowait)
		return false;
	if (++*attempts < MAKE_ATTEMPTS_MAX) {
		usleep(MAKE_PAUSE_US);
		return true;
	}
	*err = fs_bad_block(op->dir->i_fs, op->addr,
			    "free in its resource group, but an inode there "
			    "is in use");
	return false;
}

/* Make it durable if it must be; the reference is the kernel's on success. */
static int finish(struct make_op *op, int err)
{
	if (!err)
		err = name_sync(op->dir->i_fs, op->sync, op->sequence);
	if (err)
		inode_put(op->ip);
	else
		name_count(op->ip);
	return err;
}

int fs_make(const struct fs_req *req, struct inode *dir,
	    const struct fs_make *make, struct fs_entry *out)
{
	struct dir_found found;
	unsigned attempts = 0;
	struct make_op op;
	int err = check_make(dir->i_fs, make);

	if (err)
		return err;
	do {
		op_init(&op, req, dir, make);
		err = make_locked(&op, &found, out);
		release(&op);
	} while (must_repeat(&op, &attempts, &err));
	if (!err)
		err = finish(&op, 0);
	return fs_fault(dir->i_fs, err);
}

/* ---- open with O_CREAT ---- */

/*
 * The file that has the name, referenced. The kernel has asked because it did
 * not know of any: if something else has appeared it has to look again.
 */
static int find_file(struct make_op *op, const struct dir_found *found,
		     struct inode **ipp)
{
	struct fs_entry entry;
	struct inode *ip;
	int err;

	err = inode_get(op->dir->i_fs, found->addr, found->formal, false, &ip);
	if (err)
		return err;
	/* Reads it, while the directory keeps the name where it is. */
	err = name_entry(op->req, ip, &entry);
	if (!err && S_ISDIR(entry.attr.mode))
		err = -EISDIR;
	else if (!err && !S_ISREG(entry.attr.mode))
		err = -ESTALE;
	if (err)
		inode_put(ip);
	else
		*ipp = ip;
	return err;
}

/* The directory is locked in op, and let go of here. */
static int open_existing(struct make_op *op, const struct dir_found *found,
			 int flags, struct fs_entry *out)
{
	struct inode *ip;
	int err;

	/* What has been opened cannot be taken back if the rest must wait. */
	if (op->req->nowait)
		return -EAGAIN;
	err = find_file(op, found, &ip);
	inode_unlock(&op->dir_gh);
	if (err)
		return err;
	flags &= ~(O_CREAT | O_EXCL);
	err = fs_open(op->req, ip, flags);
	if (!err) {
		err = name_entry(op->req, ip, out);
		if (err)
			fs_release(ip, flags);
	}
	if (err)
		inode_put(ip);
	else
		name_count(ip);
	return err;
}

static int open_created(struct make_op *op, int flags)
{
	/* The file is there now, and nobody knows it who could be in the way:
	 * it is opened without another attempt. */
	struct fs_req patient = *op->req;

	patient.nowait = false;
	patient.park = NULL;
	return finish(op, fs_open(&patient, op->ip,
				  flags & ~(O_CREAT | O_EXCL | O_TRUNC)));
}

int fs_create(const struct fs_req *req, struct inode *dir,
	      const struct fs_make *make, int flags, struct fs_entry *out,
	      bool *created)
{
	struct dir_found found;
	unsigned attempts = 0;
	struct make_op op;
	bool made;
	int err = check_make(dir->i_fs, make);

	if (err)
		return err;
	do {
		op_init(&op, req, dir, make);
		err = make_locked(&op, &found, out);
		made = !err;
		if (err == -EEXIST && !(flags & O_EXCL))
			err = open_existing(&op, &found, flags, out);
		release(&op);
	} while (must_repeat(&op, &attempts, &err));
	if (!err && made)
		err = open_created(&op, flags);
	if (!err)
		*created = made;
	return fs_fault(dir->i_fs, err);
}
