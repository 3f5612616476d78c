/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * ops_name.c - finding, making and removing names.
 */
#include <errno.h>
#include <sys/stat.h>

#include "fuse/ops.h"

/*
 * "." asks for the inode of a file handle (NFS, open_by_handle_at): of any
 * type, and of a node that we may have forgotten (docs/spec/fuse.md 9.18).
 */
static bool name_is_self(const struct fuse_name *name)
{
	return name->len == 1 && name->text[0] == '.';
}

static int lookup_name(struct op *op, struct fs_entry *entry)
{
	struct inode *dir = op_inode(op);
	int err = -ESTALE;

	if (dir)
		err = fs_lookup(&op->fs_req, dir, op->req->name.text,
				op->req->name.len, entry);
	inode_put(dir);
	return err;
}

int op_lookup(struct op *op)
{
	struct fuse_timeout valid = op->front->policy.entry_valid;
	struct fs_entry entry;
	int err;

	if (name_is_self(&op->req->name))
		err = fs_lookup_nodeid(op->front->fs, &op->fs_req,
				       op->req->nodeid, &entry);
	else
		err = lookup_name(op, &entry);
	if (!err) {
		op_put_entry(op, &entry,
			     fuse_policy_lookup_attr(&op->front->policy,
						     &entry.attr));
	} else if (err == -ENOENT && (valid.sec || valid.nsec)) {
		/* The kernel remembers that there is no such name. */
		fuse_encode_no_entry(&op->reply->entry, valid);
		op->reply->body_len = sizeof(op->reply->entry);
		err = 0;
	}
	return err;
}

static int make(struct op *op, struct fs_make *what)
{
	struct inode *dir = op_inode(op);
	struct fs_entry entry;
	int err = -ESTALE;

	what->name = op->req->name.text;
	what->len = op->req->name.len;
	if (dir)
		err = fs_make(&op->fs_req, dir, what, &entry);
	inode_put(dir);
	if (!err)
		op_put_made(op, &entry);
	return err;
}

int op_symlink(struct op *op)
{
	struct fs_make what = {
		.mode = S_IFLNK | 0777,
		.target = op->req->name2.text,
		.target_len = op->req->name2.len,
	};

	return make(op, &what);
}

int op_mknod(struct op *op)
{
	struct fs_make what = {
		.mode = op->req->mknod.mode,
		.umask = op_umask(op, op->req->mknod.umask),
	};

	fuse_decode_dev(op->req->mknod.rdev, &what.rdev_major,
			&what.rdev_minor);
	return make(op, &what);
}

int op_mkdir(struct op *op)
{
	struct fs_make what = {
		.mode = S_IFDIR | (op->req->mkdir.mode & ~(uint32_t)S_IFMT),
		.umask = op_umask(op, op->req->mkdir.umask),
	};

	return make(op, &what);
}

int op_unlink(struct op *op)
{
	struct inode *dir = op_inode(op);
	int err = -ESTALE;

	if (dir)
		err = fs_unlink(&op->fs_req, dir, op->req->name.text,
				op->req->name.len);
	inode_put(dir);
	return err;
}

int op_rmdir(struct op *op)
{
	struct inode *dir = op_inode(op);
	int err = -ESTALE;

	if (dir)
		err = fs_rmdir(&op->fs_req, dir, op->req->name.text,
			       op->req->name.len);
	inode_put(dir);
	return err;
}

int op_rename(struct op *op)
{
	const struct fuse_request *req = op->req;
	struct inode *olddir = op_inode(op);
	struct inode *newdir = fs_inode_get(op->front->fs, req->rename.newdir);
	int err = -ESTALE;

	if (olddir && newdir)
		err = fs_rename(&op->fs_req, olddir, req->name.text,
				req->name.len, newdir, req->name2.text,
				req->name2.len, req->rename.flags);
	inode_put(newdir);
	inode_put(olddir);
	return err;
}

int op_link(struct op *op)
{
	const struct fuse_request *req = op->req;
	struct inode *dir = op_inode(op);
	struct inode *ip = fs_inode_get(op->front->fs, req->link.oldnodeid);
	struct fs_entry entry;
	int err = -ESTALE;

	if (dir && ip)
		err = fs_link(&op->fs_req, ip, dir, req->name.text,
			      req->name.len, &entry);
	inode_put(ip);
	inode_put(dir);
	if (!err)
		op_put_made(op, &entry);
	return err;
}
