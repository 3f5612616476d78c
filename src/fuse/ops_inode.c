/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * ops_inode.c - attributes, symlinks' targets, forgetting, the whole volume.
 */
#include <errno.h>

#include "fuse/ops.h"

int op_forget(struct op *op)
{
	fs_forget(op->front->fs, op->req->nodeid, op->req->forget.nlookup);
	return 0;
}

int op_batch_forget(struct op *op)
{
	for (uint32_t i = 0; i < op->req->forgets.count; i++) {
		struct fuse_forget_one one = fuse_request_forget(op->req, i);

		fs_forget(op->front->fs, one.nodeid, one.nlookup);
	}
	return 0;
}

static void put_attr(struct op *op, const struct fs_attr *attr,
		     struct fuse_timeout valid)
{
	fuse_encode_attr_out(&op->reply->attr, attr, valid);
	op->reply->body_len = sizeof(op->reply->attr);
}

int op_getattr(struct op *op)
{
	struct inode *ip = op_inode(op);
	struct fs_attr attr;
	int err = -ESTALE;

	if (ip)
		err = fs_getattr(&op->fs_req, ip, &attr);
	inode_put(ip);
	if (!err)
		put_attr(op, &attr,
			 fuse_policy_getattr(&op->front->policy, &attr));
	return err;
}

/* The kernel's bits and ours; FH and LOCKOWNER say nothing about the inode. */
static unsigned setattr_valid(uint32_t valid)
{
	static const struct {
		uint32_t kernel;
		unsigned ours;
	} bits[] = {
		{ FATTR_MODE, FS_SET_MODE },
		{ FATTR_UID, FS_SET_UID },
		{ FATTR_GID, FS_SET_GID },
		{ FATTR_SIZE, FS_SET_SIZE },
		{ FATTR_ATIME, FS_SET_ATIME },
		{ FATTR_MTIME, FS_SET_MTIME },
		{ FATTR_CTIME, FS_SET_CTIME },
		{ FATTR_ATIME_NOW, FS_SET_ATIME_NOW },
		{ FATTR_MTIME_NOW, FS_SET_MTIME_NOW },
		{ FATTR_KILL_SUIDGID, FS_SET_KILL_SUIDGID },
	};
	unsigned set = 0;

	for (unsigned i = 0; i < UG_ARRAY_SIZE(bits); i++)
		if (valid & bits[i].kernel)
			set |= bits[i].ours;
	return set;
}

static struct fs_setattr setattr_decode(const struct fuse_setattr_in *in)
{
	return (struct fs_setattr){
		.valid = setattr_valid(in->valid),
		.mode = in->mode,
		.uid = in->uid,
		.gid = in->gid,
		.size = in->size,
		.atime = { (int64_t)in->atime, in->atimensec },
		.mtime = { (int64_t)in->mtime, in->mtimensec },
		.ctime = { (int64_t)in->ctime, in->ctimensec },
	};
}

int op_setattr(struct op *op)
{
	struct fs_setattr set = setattr_decode(&op->req->setattr);
	struct inode *ip = op_inode(op);
	struct fs_attr attr;
	int err = -ESTALE;

	if (ip)
		err = fs_setattr(&op->fs_req, ip, &set, &attr);
	inode_put(ip);
	if (!err)
		put_attr(op, &attr, fuse_policy_setattr(&op->front->policy));
	return err;
}

int op_readlink(struct op *op)
{
	struct inode *ip = op_inode(op);
	ssize_t n = -ESTALE;

	if (ip)
		n = fs_readlink(&op->fs_req, ip, op->reply->data,
				op->reply->data_max);
	inode_put(ip);
	if (n < 0)
		return (int)n;
	op->reply->data_len = (size_t)n;
	return 0;
}

int op_statfs(struct op *op)
{
	struct fs_statfs st;

	fs_statfs(op->front->fs, &st);
	fuse_encode_statfs(&op->reply->statfs, &st);
	op->reply->body_len = sizeof(op->reply->statfs);
	return 0;
}

int op_syncfs(struct op *op)
{
	/* Everything of a volume: there is always something to wait for. */
	if (op->place == FUSE_INLINE)
		return -EAGAIN;
	return fs_sync(op->front->fs);
}
