/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * ops_file.c - open files.
 *
 * Direct mode: a handle that begins to write, and a write, must leave no
 * older pages of the file in the kernel. The drop may wait for READs that
 * are under way, so it is made on the notifier lane, after the file system
 * has done its part and before the answer:
 *
 *	reader:   fs_write()  -- pages in the kernel? -- no --> answer
 *	                          | yes (reply->carry: done, drop)
 *	notifier:                 +--> INVAL_INODE --> answer
 *
 * A READ that fills a page is noted before it is served: either it sees the
 * new bytes, or the writer sees the note (opens.h). Kernels from 6.6 drop
 * the pages before they send the WRITE, and late ones once more after it;
 * between the two a page filled with old bytes would stay for ever.
 */
#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>

#include "fuse/copies.h"
#include "fuse/ops.h"

/* Values of reply->carry. */
#define CARRY_NONE 0u
#define CARRY_DROP 1u /* done; drop pages of the node in the answer */

static bool has_pages(const struct op *op, uint64_t nodeid, uint64_t offset,
		      uint64_t len)
{
	struct opens *opens = op->front->policy.opens;

	if (!op->front->copies)
		return opens && opens_has_pages(opens, nodeid);
	/* Who opens it has taken the lock that covers them. */
	return len && copies_overlap(op->front->copies, nodeid,
				     krange_of(offset, len));
}

static void drop_pages(struct op *op, uint64_t nodeid, uint64_t offset,
		       uint64_t len)
{
	if (op->front->copies) {
		copies_drop(op->front->copies, nodeid, krange_of(offset, len));
		return;
	}
	if (!len)
		opens_take_pages(op->front->policy.opens, nodeid);
	/* An error means that the mount is gone, with its pages. */
	fuse_conn_inval_data(op->front->conn, nodeid, offset, len);
}

/*
 * The last step of a request that has been done: drop what pages the kernel
 * has of these bytes, if any, then answer. len 0: the whole file.
 */
static int answer_after_drop(struct op *op, uint64_t nodeid, uint64_t offset,
			     uint64_t len)
{
	if (!has_pages(op, nodeid, offset, len))
		return 0;
	op->reply->carry = CARRY_DROP;
	if (op->place != FUSE_NOTIFIER)
		return FUSE_TO_NOTIFIER;
	drop_pages(op, nodeid, offset, len);
	return 0;
}

/* ---- opening ---- */

/*
 * O_TRUNC of somebody who may not keep set-user-id: the bits go with the
 * contents. The kernel's copy of the mode is not part of the answer, so it is
 * dropped here; this notification never waits (docs/spec/fuse.md 4.2).
 */
static int open_truncate_kill(struct op *op, struct inode *ip, uint64_t nodeid)
{
	struct fs_setattr set = {
		.valid = FS_SET_SIZE | FS_SET_KILL_SUIDGID,
	};
	struct fs_attr attr;
	int err = fs_setattr(&op->fs_req, ip, &set, &attr);

	if (!err)
		fuse_conn_inval_attr(op->front->conn, nodeid);
	return err;
}

static int open_inode(struct op *op, struct inode *ip)
{
	const struct fuse_open_in *in = &op->req->open;
	int flags = (int)in->flags;
	int err;

	if (!(in->open_flags & FUSE_OPEN_KILL_SUIDGID))
		return fs_open(&op->fs_req, ip, flags);
	flags &= ~O_TRUNC;
	err = fs_open(&op->fs_req, ip, flags);
	if (err)
		return err;
	err = open_truncate_kill(op, ip, op->req->nodeid);
	if (err)
		fs_release(ip, flags);
	return err;
}

static int open_answer(struct op *op)
{
	op->reply->body_len = sizeof(op->reply->open);
	if (!(op->reply->open.fh & FUSE_FH_WRITE))
		return 0;
	return answer_after_drop(op, op->req->nodeid, 0, 0);
}

int op_open(struct op *op)
{
	struct inode *ip;
	int err = -ESTALE;

	if (op->reply->carry)
		return open_answer(op);
	ip = op_inode(op);
	if (ip)
		err = open_inode(op, ip);
	inode_put(ip);
	if (err)
		return err;
	fuse_policy_open(&op->front->policy, op->req->nodeid,
			 (int)op->req->open.flags, &op->reply->open);
	return open_answer(op);
}

static int create_answer(struct op *op)
{
	op->reply->body_len = sizeof(op->reply->create);
	if (!(op->reply->create.open.fh & FUSE_FH_WRITE))
		return 0;
	return answer_after_drop(op, op->reply->create.entry.nodeid, 0, 0);
}

/* fs_create(), with the care of open_truncate_kill() for an old file. */
static int create_inode(struct op *op, struct inode *dir,
			struct fs_entry *entry, bool *created)
{
	const struct fuse_create_in *in = &op->req->create;
	bool kill = in->open_flags & FUSE_OPEN_KILL_SUIDGID;
	int flags = (int)in->flags & ~(kill ? O_TRUNC : 0);
	struct fs_make make = {
		.name = op->req->name.text,
		.len = op->req->name.len,
		.mode = S_IFREG | (in->mode & ~(uint32_t)S_IFMT),
		.umask = op_umask(op, in->umask),
	};
	struct inode *ip;
	int err = fs_create(&op->fs_req, dir, &make, flags, entry, created);

	if (err || *created || !kill)
		return err;
	ip = fs_inode_get(op->front->fs, entry->nodeid);
	err = ip ? open_truncate_kill(op, ip, entry->nodeid) : -ESTALE;
	if (err) {
		if (ip)
			fs_release(ip, flags);
		fs_forget(op->front->fs, entry->nodeid, 1);
	}
	inode_put(ip);
	return err;
}

int op_create(struct op *op)
{
	struct fuse_policy *policy = &op->front->policy;
	struct fs_entry entry;
	struct inode *dir;
	bool created;
	int err = -ESTALE;

	if (op->reply->carry)
		return create_answer(op);
	dir = op_inode(op);
	if (dir)
		err = create_inode(op, dir, &entry, &created);
	inode_put(dir);
	if (err)
		return err;
	/* Nobody has read what did not exist. */
	if (created && op->front->copies)
		copies_none(op->front->copies, entry.nodeid);
	else if (created && policy->opens)
		opens_no_pages(policy->opens, entry.nodeid);
	op_put_made(op, &entry);
	fuse_policy_open(policy, entry.nodeid, (int)op->req->create.flags,
			 &op->reply->create.open);
	return create_answer(op);
}

int op_release(struct op *op)
{
	uint64_t fh = op->req->release.fh;
	struct inode *ip;
	int err = op_release_locks(op);

	if (err)
		return err;
	ip = op_inode(op);
	fuse_policy_release(&op->front->policy, op->req->nodeid, fh);
	if (ip)
		fs_release(ip, fuse_fh_flags(fh));
	inode_put(ip);
	return 0;
}

/* ---- reading and writing ---- */

/* A READ that fills pages of a clustered mount: copies.h. */
struct fill {
	struct fs_fill fs;
	struct op *op;
	bool admitted;
};

static int fill_admit(struct fs_fill *fs, bool leaving)
{
	struct fill *fill = ug_container_of(fs, struct fill, fs);
	struct op *op = fill->op;
	int err = copies_read_admit(op->front->copies, &op->reply->fill,
				    leaving, op->place == FUSE_WORKER);

	fill->admitted = !err;
	return err;
}

static ssize_t try_fill(struct op *op, struct inode *ip)
{
	const struct fuse_read_in *in = &op->req->read;
	struct copies_read *read = &op->reply->fill;
	struct copies *copies = op->front->copies;
	struct fill fill = { .fs = { .admit = fill_admit }, .op = op };
	ssize_t n;

	n = copies_read_begin(copies, op->req->nodeid,
			      krange_of(in->offset, in->size), read);
	if (n)
		return n;
	fill.fs.exclusive = read->exclusive;
	n = fs_read_fill(&op->fs_req, ip, op->reply->data, in->size, in->offset,
			 &fill.fs);
	if (n < 0 && fill.admitted)
		copies_read_failed(copies, read);
	return n;
}

static ssize_t read_fill(struct op *op, struct inode *ip)
{
	ssize_t n;

	/* A worker is told so only if it has to begin again. */
	do {
		n = try_fill(op, ip);
	} while (n == -EAGAIN && op->place != FUSE_INLINE);
	if (n != -EAGAIN && n != -EINPROGRESS)
		copies_read_end(op->front->copies, &op->reply->fill);
	return n;
}

static ssize_t read_inode(struct op *op, struct inode *ip)
{
	const struct fuse_read_in *in = &op->req->read;
	const struct fuse_policy *policy = &op->front->policy;
	bool fills = fuse_read_fills_page(in);

	if (op->front->copies && fills)
		return read_fill(op, ip);
	if (policy->opens && fills)
		opens_note_pages(policy->opens, op->req->nodeid);
	return fs_read(&op->fs_req, ip, op->reply->data, in->size, in->offset,
		       fuse_policy_read_flags(policy, in));
}

int op_read(struct op *op)
{
	struct inode *ip;
	ssize_t n = -ESTALE;

	if (op->req->read.size > op->reply->data_max)
		return -EINVAL;
	ip = op_inode(op);
	if (ip)
		n = read_inode(op, ip);
	inode_put(ip);
	if (n < 0)
		return (int)n;
	op->reply->data_len = (size_t)n;
	return 0;
}

/*
 * The writer may not keep set-user-id bits. The kernel asks for them to be
 * cleared with the write, but its own copy of the mode stays, and would be
 * believed by the next execve(): it is dropped before the answer.
 */
static bool write_kills_bits(struct op *op, struct inode *ip)
{
	struct fs_attr attr;

	if (ug_likely(!(op->req->write.write_flags & FUSE_WRITE_KILL_SUIDGID)))
		return false;
	/* Not known without waiting: dropping too much does no harm. */
	return fs_getattr(&op->fs_req, ip, &attr) ||
	       (attr.mode & (S_ISUID | S_ISGID));
}

static ssize_t write_inode(struct op *op, struct inode *ip)
{
	const struct fuse_write_in *in = &op->req->write;
	bool kills = write_kills_bits(op, ip);
	ssize_t n = fs_write(&op->fs_req, ip, op->req->data, op->req->data_len,
			     in->offset,
			     fuse_policy_write_flags(&op->front->policy, in));

	if (kills && n >= 0)
		fuse_conn_inval_attr(op->front->conn, op->req->nodeid);
	return n;
}

static int write_answer(struct op *op)
{
	const struct fuse_write_in *in = &op->req->write;

	op->reply->body_len = sizeof(op->reply->write);
	/* What came from the kernel's pages is what they hold. */
	if (in->write_flags & FUSE_WRITE_CACHE || !op->reply->write.size)
		return 0;
	return answer_after_drop(op, op->req->nodeid, in->offset,
				 op->reply->write.size);
}

int op_write(struct op *op)
{
	struct inode *ip;
	ssize_t n = -ESTALE;

	if (op->reply->carry)
		return write_answer(op);
	ip = op_inode(op);
	if (ip)
		n = write_inode(op, ip);
	inode_put(ip);
	if (n < 0)
		return (int)n;
	op->reply->write = (struct fuse_write_out){ .size = (uint32_t)n };
	return write_answer(op);
}

int op_fsync(struct op *op)
{
	bool datasync = op->req->fsync.fsync_flags & FUSE_FSYNC_FDATASYNC;
	struct inode *ip = op_inode(op);
	int err = -ESTALE;

	if (ip)
		err = fs_fsync(&op->fs_req, ip, datasync);
	inode_put(ip);
	return err;
}
