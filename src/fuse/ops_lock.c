/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * ops_lock.c - application locks, and what closing a file does to them.
 *
 *	reader: SETLK -> service: decided here, nothing in the way --> answer
 *			    | -EINPROGRESS: FUSE_UNDERWAY, no thread
 *			    |    INTERRUPT -> cancel()
 *	its thread:         +--> fuse_front_lock_done() --> answer
 *
 * The kernel keeps no record of these locks. It says when a process closes a
 * descriptor (FLUSH), with which the POSIX locks of that process on the file
 * are over, and when an open file ends (RELEASE), with which its flock and its
 * OFD locks are; lockowners.h knows whom that concerns. RELEASE gives the locks
 * back before the inode, whose number may then be another file's.
 *
 * FLUSH and SETLK of one owner: whichever is read later may be given to the
 * service first only if the process had not heard of the end of the other
 * (two threads). The kernel then looks itself whether a lock has been granted
 * for a descriptor that is closed, and gives it back.
 */
#include <errno.h>
#include <fcntl.h>

#include "fuse/lockowners.h"
#include "fuse/ops.h"

/* Values of reply->call.kind: whose answer it is that comes later. */
enum lock_call {
	LOCK_SET = 1,
	LOCK_GET,
	LOCK_FLUSH,
	LOCK_RELEASE, /* it is called again: there may be more to close */
};

/* A RELEASE has closed its flock owner. */
#define CARRY_FLOCK_CLOSED 1u

static bool mode_of(uint32_t type, enum range_mode *mode)
{
	switch (type) {
	case F_RDLCK:
		*mode = RANGE_READ;
		return true;
	case F_WRLCK:
		*mode = RANGE_WRITE;
		return true;
	case F_UNLCK:
		*mode = RANGE_NONE;
		return true;
	default:
		return false;
	}
}

/* What a request wants of the service; its kind aside. False: nonsense. */
static bool op_of(const struct op *op, struct plock_op *lock)
{
	const struct fuse_lk_in *in = &op->req->lk;
	bool flock = in->lk_flags & FUSE_LK_FLOCK;

	*lock = (struct plock_op){
		.kind = PLOCK_SET,
		.table = flock ? PLOCK_FLOCK : PLOCK_FCNTL,
		.owner_kind = flock ? RANGE_FLOCK : RANGE_POSIX,
		.wait = op->req->opcode == FUSE_SETLKW,
		.owner = in->owner,
		.start = flock ? 0 : in->lk.start,
		.end = flock ? RANGE_END : in->lk.end,
		.pid = in->lk.pid,
	};
	return mode_of(in->lk.type, &lock->mode) && lock->start <= lock->end &&
	       lock->end <= RANGE_END;
}

/* What the kernel is told of a call that has ended. */
static int answer_of(struct fuse_reply *reply, const struct plock_result *res)
{
	int status = res->status == -ENOMEM ? -ENOLCK : res->status;

	if (reply->call.kind == LOCK_FLUSH || reply->call.kind == LOCK_RELEASE)
		return 0;
	return status == -EAGAIN ? FUSE_WOULD_BLOCK : status;
}

static int call(struct op *op, const struct plock_op *lock, enum lock_call kind,
		struct plock_result *res)
{
	const struct fuse_lock_service *service = op->front->locks;
	bool waits = kind == LOCK_SET && lock->wait && lock->mode != RANGE_NONE;
	uint64_t id = 0;
	int err;

	op->reply->call.kind = kind;
	op->reply->call.nodeid = op->req->nodeid;
	err = service->call(service->arg, op->req->nodeid, lock,
			    (uintptr_t)op->reply, &id, res);
	op->reply->call.cancel_id = waits ? id : 0;
	if (err == -EINPROGRESS)
		return FUSE_UNDERWAY;
	if (err)
		return err == -ENOMEM ? -ENOLCK : err;
	return answer_of(op->reply, res);
}

/* ---- GETLK, SETLK, SETLKW ---- */

/*
 * A number names a process of this node only. One that nobody has any more, or
 * somebody else has by now, says less than none.
 */
static uint32_t pid_of(struct fuse_front *front, uint64_t nodeid,
		       const struct range_lock *lock)
{
	if (lock->who.node != front->locks->node || lock->kind != RANGE_POSIX ||
	    !lockowners_has_pid(front->lockowners, nodeid, lock->who.owner))
		return 0;
	return lock->pid;
}

static void put_found(struct fuse_front *front, struct fuse_reply *reply,
		      const struct range_lock *found)
{
	reply->lk.lk = (struct fuse_file_lock){ .type = F_UNLCK };
	if (found->mode != RANGE_NONE)
		reply->lk.lk = (struct fuse_file_lock){
			.start = found->start,
			.end = found->end,
			.type = found->mode == RANGE_READ ? F_RDLCK : F_WRLCK,
			.pid = pid_of(front, reply->call.nodeid, found),
		};
	reply->body_len = sizeof(reply->lk);
}

int op_getlk(struct op *op)
{
	struct plock_result res = { 0 };
	struct plock_op lock;
	int err;

	if (!op->front->locks)
		return -ENOLCK;
	if (!op_of(op, &lock) || lock.mode == RANGE_NONE)
		return -EINVAL;
	lock.kind = PLOCK_GET;
	err = call(op, &lock, LOCK_GET, &res);
	if (!err)
		put_found(op->front, op->reply, &res.found);
	return err;
}

int op_setlk(struct op *op)
{
	struct lockowners *owners = op->front->lockowners;
	struct lockowner *who = NULL;
	struct plock_result res = { 0 };
	struct plock_op lock;
	int err;

	if (!op_of(op, &lock))
		return -EINVAL;
	/* Locks that no other node would see are not granted. */
	if (!op->front->locks)
		return lock.mode == RANGE_NONE ? 0 : -ENOLCK;
	if (lock.table == PLOCK_FCNTL && lock.mode != RANGE_NONE) {
		who = lockowners_begin(owners, op->req->nodeid, lock.owner,
				       op->req->lk.fh, lock.pid);
		if (!who)
			return -ENOLCK;
	}
	err = call(op, &lock, LOCK_SET, &res);
	if (who)
		lockowners_end(owners, who);
	return err;
}

/* ---- the end of a descriptor, and of an open file ---- */

/* 0 or FUSE_UNDERWAY. */
static int close_owner(struct op *op, enum plock_table table, uint64_t owner,
		       enum lock_call kind)
{
	const struct fuse_lock_service *service = op->front->locks;
	const struct plock_op lock = {
		.kind = PLOCK_CLOSE,
		.table = table,
		.owner_kind = table == PLOCK_FLOCK ? RANGE_FLOCK : RANGE_POSIX,
		.owner = owner,
	};
	struct plock_result res;

	return service->knows(service->arg, table, owner)
		       ? call(op, &lock, kind, &res)
		       : 0;
}

/*
 * Programs that close a file twice (dup) flush it twice, and close(2) is no
 * fsync(2): there is nothing to do but for locks. Never refused, or the kernel
 * would not tell us any more which process has closed what (docs/spec/fuse.md
 * 7.5).
 */
int op_flush(struct op *op)
{
	const struct fuse_flush_in *in = &op->req->flush;

	if (!op->front->locks ||
	    !lockowners_flush(op->front->lockowners, op->req->nodeid,
			      in->lock_owner, in->fh, op->req->pid))
		return 0;
	return close_owner(op, PLOCK_FCNTL, in->lock_owner, LOCK_FLUSH);
}

int op_release_locks(struct op *op)
{
	const struct fuse_release_in *in = &op->req->release;
	bool flock = in->release_flags & FUSE_RELEASE_FLOCK_UNLOCK;
	uint64_t owner;
	int err = 0;

	if (!op->front->locks)
		return 0;
	if (flock && op->reply->carry != CARRY_FLOCK_CLOSED) {
		op->reply->carry = CARRY_FLOCK_CLOSED;
		err = close_owner(op, PLOCK_FLOCK, in->lock_owner,
				  LOCK_RELEASE);
	}
	while (!err &&
	       lockowners_release(op->front->lockowners, in->fh, &owner))
		err = close_owner(op, PLOCK_FCNTL, owner, LOCK_RELEASE);
	return err;
}

/* ---- answers that come later ---- */

void fuse_front_lock_done(struct fuse_front *front,
			  const struct plock_result *res)
{
	struct fuse_reply *reply = (struct fuse_reply *)(uintptr_t)res->ctx;
	int result = answer_of(reply, res);

	if (reply->call.kind == LOCK_RELEASE) {
		fuse_reply_resume(reply);
		return;
	}
	if (reply->call.kind == LOCK_GET && !result)
		put_found(front, reply, &res->found);
	fuse_reply_done(reply, result);
}
