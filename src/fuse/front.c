/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * front.c - the file system behind a session: which operation is whose.
 *
 * What we do not do is refused with ENOSYS where the kernel remembers that,
 * asks no more and gives programs the right answer (docs/spec/fuse.md 7.9):
 *
 *	fallocate, O_TMPFILE		EOPNOTSUPP
 *	lseek, copy_file_range		done by the kernel with what there is
 *	poll				always ready
 *	bmap				no swap file, no FIBMAP: our blocks move
 *	access				never sent: the kernel checks modes
 *	statx				GETATTR instead: no birth time
 *	locks, without a service of them	ENOLCK (ops_lock.c)
 *
 * ENOSYS never stands for a passing reason, nor for one file of many. IOCTL
 * is not remembered: ENOTTY, as any file answers what it does not know.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>

#include "fuse/copies.h"
#include "fuse/lockowners.h"
#include "fuse/ops.h"

/* Files without writers of which copies.c knows whether they have pages. */
#define COPIES_IDLE_MAX 65536u

/*
 * So often a request is parked before a thread waits for it. Who needs one lock
 * gets it the first time; who needs several may lose the first while he
 * waits for the second.
 */
#define PARKS_MAX 4u

static int op_no_ioctl(struct op *op)
{
	return -ENOTTY;
}

/* NULL: -ENOSYS. */
static const op_fn ops[FUSE_OPCODES] = {
	[FUSE_LOOKUP] = op_lookup,
	[FUSE_FORGET] = op_forget,
	[FUSE_GETATTR] = op_getattr,
	[FUSE_SETATTR] = op_setattr,
	[FUSE_READLINK] = op_readlink,
	[FUSE_SYMLINK] = op_symlink,
	[FUSE_MKNOD] = op_mknod,
	[FUSE_MKDIR] = op_mkdir,
	[FUSE_UNLINK] = op_unlink,
	[FUSE_RMDIR] = op_rmdir,
	[FUSE_RENAME] = op_rename,
	[FUSE_LINK] = op_link,
	[FUSE_OPEN] = op_open,
	[FUSE_READ] = op_read,
	[FUSE_WRITE] = op_write,
	[FUSE_STATFS] = op_statfs,
	[FUSE_RELEASE] = op_release,
	[FUSE_FSYNC] = op_fsync,
	[FUSE_SETXATTR] = op_setxattr,
	[FUSE_GETXATTR] = op_getxattr,
	[FUSE_LISTXATTR] = op_listxattr,
	[FUSE_REMOVEXATTR] = op_removexattr,
	[FUSE_FLUSH] = op_flush,
	[FUSE_OPENDIR] = op_opendir,
	[FUSE_READDIR] = op_readdir,
	[FUSE_RELEASEDIR] = op_releasedir,
	[FUSE_FSYNCDIR] = op_fsync,
	[FUSE_CREATE] = op_create,
	[FUSE_IOCTL] = op_no_ioctl,
	[FUSE_GETLK] = op_getlk,
	[FUSE_SETLK] = op_setlk,
	[FUSE_SETLKW] = op_setlk,
	[FUSE_BATCH_FORGET] = op_batch_forget,
	[FUSE_READDIRPLUS] = op_readdirplus,
	[FUSE_RENAME2] = op_rename,
	[FUSE_SYNCFS] = op_syncfs,
};

/* ---- copies in the kernel ---- */

static int drop_pages(void *arg, uint64_t nodeid, struct krange range)
{
	struct fuse_front *front = arg;

	return fuse_conn_inval_data(
		front->conn, nodeid, range.start,
		range.end == UINT64_MAX ? 0 : range.end - range.start);
}

static int drop_attr(void *arg, uint64_t nodeid)
{
	struct fuse_front *front = arg;

	return fuse_conn_inval_attr(front->conn, nodeid);
}

static bool is_known(void *arg, uint64_t nodeid)
{
	struct fuse_front *front = arg;

	return fs_is_known(front->fs, nodeid);
}

static void resume_read(struct copies_read *read)
{
	fuse_reply_resume(ug_container_of(read, struct fuse_reply, fill));
}

static const struct copies_ops copies_ops = {
	.drop_pages = drop_pages,
	.drop_attr = drop_attr,
	.is_known = is_known,
	.resume = resume_read,
};

void fuse_front_recall(struct fuse_front *front, uint64_t nodeid)
{
	if (front->copies)
		copies_recall(front->copies, nodeid);
}

int fuse_front_writer(struct fuse_front *front, uint64_t nodeid, bool exclusive)
{
	return front->copies ? copies_writer(front->copies, nodeid, exclusive)
			     : 0;
}

void fuse_front_writer_gone(struct fuse_front *front, uint64_t nodeid)
{
	if (front->copies)
		copies_writer_gone(front->copies, nodeid);
}

/* ---- life ---- */

int fuse_front_create(const struct fuse_front_params *params,
		      struct fuse_front **frontp)
{
	struct fuse_front *front = calloc(1, sizeof(*front));
	int err;

	if (!front)
		return -ENOMEM;
	front->fs = params->fs;
	front->conn = params->conn;
	front->who = params->who;
	front->may_serve = params->may_serve;
	front->await_service = params->await_service;
	front->arg = params->arg;
	front->locks = params->locks;
	err = fuse_policy_init(&front->policy, &params->policy);
	if (!err && front->locks)
		err = lockowners_create(&front->lockowners);
	if (!err && params->policy.shared)
		err = copies_create(&copies_ops, front, COPIES_IDLE_MAX,
				    &front->copies);
	if (err) {
		fuse_front_destroy(front);
		return err;
	}
	front->policy.copies = front->copies;
	*frontp = front;
	return 0;
}

void fuse_front_destroy(struct fuse_front *front)
{
	if (!front)
		return;
	copies_destroy(front->copies);
	lockowners_destroy(front->lockowners);
	fuse_policy_fini(&front->policy);
	free(front);
}

void fuse_front_wants(const struct fuse_front *front, struct fuse_wants *wants)
{
	fuse_policy_wants(&front->policy, wants);
}

void op_put_entry(struct op *op, const struct fs_entry *entry,
		  struct fuse_timeout attr_valid)
{
	fuse_encode_entry(&op->reply->entry, entry,
			  op->front->policy.entry_valid, attr_valid);
	op->reply->body_len = sizeof(op->reply->entry);
}

static int front_start(void *ctx, const struct fuse_agreed *agreed)
{
	struct fuse_front *front = ctx;

	fuse_policy_agreed(&front->policy, front->who, agreed);
	return 0;
}

/* What only gives back what it had from us. */
static bool op_gives_back(const struct fuse_request *req)
{
	switch (req->opcode) {
	case FUSE_SETLK:
	case FUSE_SETLKW:
		return req->lk.lk.type == F_UNLCK;
	case FUSE_FORGET:
	case FUSE_BATCH_FORGET:
	case FUSE_FLUSH:
	case FUSE_RELEASE:
	case FUSE_RELEASEDIR:
		return true;
	default:
		return false;
	}
}

/*
 * What waits while the volume is frozen. Not what gives back, nor the kernel's
 * dirty pages, which others may be waiting for.
 */
static bool op_changes(const struct fuse_request *req)
{
	switch (req->opcode) {
	case FUSE_SETATTR:
	case FUSE_SYMLINK:
	case FUSE_MKNOD:
	case FUSE_MKDIR:
	case FUSE_UNLINK:
	case FUSE_RMDIR:
	case FUSE_RENAME:
	case FUSE_RENAME2:
	case FUSE_LINK:
	case FUSE_CREATE:
	case FUSE_TMPFILE:
	case FUSE_SETXATTR:
	case FUSE_REMOVEXATTR:
	case FUSE_FALLOCATE:
	case FUSE_COPY_FILE_RANGE:
	case FUSE_FSYNC:
	case FUSE_FSYNCDIR:
	case FUSE_SYNCFS:
		return true;
	case FUSE_WRITE:
		return !(req->write.write_flags & FUSE_WRITE_CACHE);
	case FUSE_OPEN:
		return req->open.flags & O_TRUNC;
	default:
		return false;
	}
}

/* There is nothing to be written in a frozen volume, but for dirty pages. */
static bool op_has_nothing_to_sync(struct fuse_front *front, uint32_t opcode)
{
	struct fs_stats st;

	if (opcode != FUSE_FSYNC && opcode != FUSE_FSYNCDIR &&
	    opcode != FUSE_SYNCFS)
		return false;
	fs_stats(front->fs, &st);
	return !st.inodes_dirty;
}

/* What we hold is ours only while the cluster hears us (DESIGN 4.6). */
static bool may_serve(const struct fuse_front *front)
{
	return !front->may_serve || front->may_serve(front->arg);
}

/*
 * The right may have ended while the request was served: what we have found is
 * true again if it comes back, since no lock has been lost then.
 */
static int front_answer(void *ctx, const struct fuse_request *req, int result)
{
	struct fuse_front *front = ctx;

	if (!front->may_serve || op_gives_back(req))
		return result;
	if (!front->may_serve(front->arg))
		return FUSE_LATER;
	return ug_unlikely(fs_is_withdrawn(front->fs)) ? -EIO : result;
}

static void front_await(void *ctx)
{
	struct fuse_front *front = ctx;

	if (front->await_service)
		front->await_service(front->arg);
}

/* What is only to be answered (carry) has had its effect. */
static int run(struct op *op, op_fn fn)
{
	struct fuse_front *front = op->front;
	int err;

	if (op->reply->carry || !op_changes(op->req))
		return fn(op);
	if (!fs_change_begin(front->fs))
		return op_has_nothing_to_sync(front, op->req->opcode)
			       ? fn(op)
			       : FUSE_PARK;
	err = fn(op);
	fs_change_end(front->fs);
	return err;
}

/* ---- waiting without a thread ---- */

static void resume_park(struct fs_park *park)
{
	fuse_reply_resume(ug_container_of(park, struct fuse_reply, park));
}

static void front_give_up(void *ctx, struct fuse_reply *reply)
{
	struct fuse_front *front = ctx;

	if (!front->copies)
		return;
	fs_unpark(&reply->park);
	copies_read_end(front->copies, &reply->fill);
}

/*
 * A READ that fills pages needs one lock, and is never left to threads that
 * may all be waiting: the recall of another lock may wait for it.
 */
static bool may_wait_in_thread(const struct op *op)
{
	return op->req->opcode != FUSE_READ && ++op->reply->parks > PARKS_MAX;
}

/* After an attempt: what becomes of the request. */
static int settle(struct op *op, int err)
{
	if (!op->front->copies)
		return err;
	if (err == -EINPROGRESS && !may_wait_in_thread(op))
		return FUSE_LOCKWAIT;
	/* What it had been given and has not used goes on to others. */
	fs_unpark(&op->reply->park);
	return err == -EINPROGRESS ? FUSE_TO_PATIENT : err;
}

static int serve(struct op *op)
{
	bool gives_back = op_gives_back(op->req) || op->reply->carry;
	op_fn fn = ops[op->req->opcode];

	if (!fn)
		return -ENOSYS;
	if (!gives_back && !may_serve(op->front))
		return FUSE_LATER;
	if (ug_unlikely(fs_is_withdrawn(op->front->fs)) && !gives_back)
		return -EIO;
	return run(op, fn);
}

static int front_handle(void *ctx, const struct fuse_request *req,
			struct fuse_reply *reply, enum fuse_place place)
{
	struct fuse_front *front = ctx;
	struct op op = {
		.front = front,
		.req = req,
		.reply = reply,
		.place = place,
		.fs_req =
			{
				.uid = req->uid,
				.gid = req->gid,
				.pid = req->pid,
				.nowait = place == FUSE_INLINE,
			},
	};

	if (front->copies && place == FUSE_WORKER) {
		reply->park.resume = resume_park;
		op.fs_req.park = &reply->park;
	}
	return settle(&op, serve(&op));
}

static void front_cancel(void *ctx, uint64_t cancel_id)
{
	struct fuse_front *front = ctx;

	front->locks->cancel(front->locks->arg, cancel_id);
}

static void front_stop(void *ctx)
{
	struct fuse_front *front = ctx;

	if (front->locks)
		front->locks->fail(front->locks->arg);
	copies_stop(front->copies);
}

const struct fuse_handler fuse_front_handler = {
	.start = front_start,
	.handle = front_handle,
	.answer = front_answer,
	.await = front_await,
	.give_up = front_give_up,
	.cancel = front_cancel,
	.stop = front_stop,
};
