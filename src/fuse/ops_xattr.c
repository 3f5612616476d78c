/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * ops_xattr.c - extended attributes, ACLs among them.
 *
 * The kernel keeps no attribute, but for ACLs (if we have agreed on them):
 * these are dropped with the attributes of the inode, by the same notification,
 * and an answer that is under way then is not kept (docs/spec/fuse.md 9.13). So
 * what is said here is true under the lock, and nothing more has to be done.
 *
 * A kernel before 5.13 sends another SETXATTR, and does not say when an ACL
 * takes set-group-id away: no attributes there.
 */
#include <errno.h>
#include <sys/xattr.h>

#include "fuse/ops.h"

static bool are_supported(const struct op *op)
{
	return op->front->policy.xattrs;
}

/* What it asked for: the length only, or n bytes that are in place. */
static int answer(struct op *op, uint32_t size, ssize_t n)
{
	if (n < 0)
		return (int)n;
	if (size) {
		op->reply->data_len = (size_t)n;
		return 0;
	}
	op->reply->getxattr = (struct fuse_getxattr_out){ .size = (uint32_t)n };
	op->reply->body_len = sizeof(op->reply->getxattr);
	return 0;
}

static size_t answer_max(const struct op *op)
{
	return UG_MIN((size_t)op->req->getxattr.size, op->reply->data_max);
}

int op_getxattr(struct op *op)
{
	struct inode *ip;
	ssize_t n = -ESTALE;

	if (!are_supported(op))
		return -ENOSYS;
	ip = op_inode(op);
	if (ip)
		n = fs_getxattr(&op->fs_req, ip, op->req->name.text,
				op->reply->data, answer_max(op));
	inode_put(ip);
	return answer(op, op->req->getxattr.size, n);
}

int op_listxattr(struct op *op)
{
	struct inode *ip;
	ssize_t n = -ESTALE;

	if (!are_supported(op))
		return -ENOSYS;
	ip = op_inode(op);
	if (ip)
		n = fs_listxattr(&op->fs_req, ip, op->reply->data,
				 answer_max(op));
	inode_put(ip);
	return answer(op, op->req->getxattr.size, n);
}

/*
 * The kernel takes another ctime for granted, but not that the inode has more
 * blocks now, or less. This notification never waits (docs/spec/fuse.md 4.2).
 */
static int changed(struct op *op, int err)
{
	if (!err)
		fuse_conn_inval_attr(op->front->conn, op->req->nodeid);
	return err;
}

int op_setxattr(struct op *op)
{
	const struct fuse_setxattr_in *in = &op->req->setxattr;
	int flags = (int)in->flags & (XATTR_CREATE | XATTR_REPLACE);
	struct inode *ip;
	int err = -ESTALE;

	if (!are_supported(op))
		return -ENOSYS;
	if (in->setxattr_flags & FUSE_SETXATTR_ACL_KILL_SGID)
		flags |= FS_XATTR_KILL_SGID;
	ip = op_inode(op);
	if (ip)
		err = fs_setxattr(&op->fs_req, ip, op->req->name.text,
				  op->req->data, op->req->data_len, flags);
	inode_put(ip);
	return changed(op, err);
}

int op_removexattr(struct op *op)
{
	struct inode *ip;
	int err = -ESTALE;

	if (!are_supported(op))
		return -ENOSYS;
	ip = op_inode(op);
	if (ip)
		err = fs_removexattr(&op->fs_req, ip, op->req->name.text);
	inode_put(ip);
	return changed(op, err);
}
