/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * ops_dir.c - reading directories.
 *
 * No state per handle: a cookie says by itself where to go on. So cached mode
 * refuses OPENDIR for good; the kernel then opens without us and keeps
 * listings, which it drops itself when it changes the directory. In direct
 * mode, where others change directories, it must not keep them, and the
 * only way to say so is to answer each OPENDIR (docs/spec/fuse.md 5.7, 7.6).
 */
#include <errno.h>

#include "fuse/ops.h"

int op_opendir(struct op *op)
{
	if (op->front->policy.kernel_keeps_dirs)
		return -ENOSYS;
	op->reply->open = (struct fuse_open_out){ .fh = FUSE_FH_OPEN };
	op->reply->body_len = sizeof(op->reply->open);
	return 0;
}

int op_releasedir(struct op *op)
{
	return 0;
}

/* A listing on its way into the answer. */
struct listing {
	const struct fuse_policy *policy;
	struct fuse_dirbuf buf;
};

static struct listing listing_begin(struct op *op)
{
	return (struct listing){
		.policy = &op->front->policy,
		.buf =
			{
				.bytes = op->reply->data,
				.size = UG_MIN(op->req->read.size,
					       op->reply->data_max),
			},
	};
}

static bool listing_emit(void *arg, const struct fs_dirent *de)
{
	struct listing *listing = arg;

	return fuse_dirbuf_put(&listing->buf, de);
}

static bool listing_emit_plus(void *arg, const struct fs_dirent *de,
			      const struct fs_entry *entry)
{
	struct listing *listing = arg;

	return fuse_dirbuf_put_plus(&listing->buf, de, entry,
				    listing->policy->entry_valid,
				    listing->policy->attr_valid);
}

/*
 * What has been emitted is an answer, also if what follows failed: the kernel
 * comes again for the rest, and emitted entries have been counted. Not with
 * -EAGAIN: then none has been, and the whole is done again.
 */
static int listing_end(struct op *op, const struct listing *listing, int err)
{
	if (err == -EAGAIN)
		return err;
	op->reply->data_len = listing->buf.used;
	return listing->buf.used ? 0 : err;
}

int op_readdir(struct op *op)
{
	struct listing listing = listing_begin(op);
	struct inode *dir = op_inode(op);
	int err = -ESTALE;

	if (dir)
		err = fs_readdir(&op->fs_req, dir, op->req->read.offset,
				 listing_emit, &listing);
	inode_put(dir);
	return listing_end(op, &listing, err);
}

int op_readdirplus(struct op *op)
{
	struct listing listing = listing_begin(op);
	struct inode *dir = op_inode(op);
	int err = -ESTALE;

	if (dir)
		err = fs_readdirplus(&op->fs_req, dir, op->req->read.offset,
				     listing_emit_plus, &listing);
	inode_put(dir);
	return listing_end(op, &listing, err);
}
