/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * ops.h - one function per operation: for front.c and ops_*.c only.
 *
 *	ops_name.c	LOOKUP, and what makes and removes names
 *	ops_inode.c	attributes, READLINK, FORGET, STATFS, SYNCFS
 *	ops_file.c	open files: OPEN, CREATE, READ, WRITE, RELEASE, FSYNC
 *	ops_xattr.c	extended attributes
 *	ops_dir.c	READDIR, READDIRPLUS, OPENDIR, FSYNCDIR
 *	ops_lock.c	GETLK, SETLK, SETLKW, FLUSH
 *
 * An operation finds its inodes by node id (-ESTALE if the kernel asks for
 * one that it has given back), calls the file system once, and encodes the
 * result. One that would have to wait fails as a whole with -EAGAIN.
 */
#ifndef UG_FUSE_OPS_H
#define UG_FUSE_OPS_H

#include "fuse/front.h"
#include "fuse/locks.h"

struct fuse_front {
	struct fs *fs;
	struct fuse_conn *conn;
	const char *who;
	struct fuse_policy policy;
	struct copies *copies;		       /* clustered; else NULL */
	const struct fuse_lock_service *locks; /* NULL: none */
	struct lockowners *lockowners;	       /* the same */
	bool (*may_serve)(void *arg);	       /* NULL: always */
	void (*await_service)(void *arg);
	void *arg;
};

/* A request on its way through an operation. */
struct op {
	struct fuse_front *front;
	const struct fuse_request *req;
	struct fuse_reply *reply;
	enum fuse_place place;
	struct fs_req fs_req;
};

typedef int (*op_fn)(struct op *op);

int op_lookup(struct op *op);
int op_symlink(struct op *op);
int op_mknod(struct op *op);
int op_mkdir(struct op *op);
int op_unlink(struct op *op);
int op_rmdir(struct op *op);
int op_rename(struct op *op); /* RENAME and RENAME2 */
int op_link(struct op *op);

int op_forget(struct op *op);
int op_batch_forget(struct op *op);
int op_getattr(struct op *op);
int op_setattr(struct op *op);
int op_readlink(struct op *op);
int op_statfs(struct op *op);
int op_syncfs(struct op *op);

int op_open(struct op *op);
int op_create(struct op *op);
int op_read(struct op *op);
int op_write(struct op *op);
int op_release(struct op *op);
int op_fsync(struct op *op); /* FSYNC and FSYNCDIR */

int op_getlk(struct op *op);
int op_setlk(struct op *op); /* SETLK and SETLKW */
int op_flush(struct op *op);
/* RELEASE begins with this. 0; FUSE_UNDERWAY: then once more from its start. */
int op_release_locks(struct op *op);

int op_getxattr(struct op *op);
int op_listxattr(struct op *op);
int op_setxattr(struct op *op);
int op_removexattr(struct op *op);

int op_opendir(struct op *op);
int op_releasedir(struct op *op);
int op_readdir(struct op *op);
int op_readdirplus(struct op *op);

/* The inode of the request, referenced; NULL: -ESTALE. */
static inline struct inode *op_inode(const struct op *op)
{
	return fs_inode_get(op->front->fs, op->req->nodeid);
}

/* What is left to us of it; else the kernel has applied it (9.14). */
static inline uint32_t op_umask(const struct op *op, uint32_t umask)
{
	return op->front->policy.acl ? umask : 0;
}

/* The answer of everything that finds or makes an inode. */
void op_put_entry(struct op *op, const struct fs_entry *entry,
		  struct fuse_timeout attr_valid);
/* The same for what makes it, or a name of it. */
static inline void op_put_made(struct op *op, const struct fs_entry *entry)
{
	op_put_entry(op, entry, op->front->policy.attr_valid);
}

#endif
