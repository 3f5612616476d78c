/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * front.h - the file system behind a session: requests to calls of fs.h.
 *
 * A mount process makes one of these of a mounted volume, and gives its
 * handler to the session:
 *
 *	fuse_front_create(&params, &front);
 *	session_params.handler = &fuse_front_handler;
 *	session_params.ctx = front;
 *	fuse_front_wants(front, &session_params.wants);
 *	fuse_session_create(&session_params, &session);
 *	fuse_session_run(session);
 *	fs_unmount(fs);
 *	fuse_session_destroy(session);
 *	fuse_front_destroy(front);
 *
 * Its fs_host_ops.invalidate calls fuse_session_invalidate().
 *
 * Once the file system has withdrawn every request answers EIO, but for what
 * gives things back: FLUSH, RELEASE, FORGET, DESTROY.
 */
#ifndef UG_FUSE_FRONT_H
#define UG_FUSE_FRONT_H

#include "fs/fs.h"
#include "fuse/locks.h"
#include "fuse/policy.h"
#include "fuse/session.h"

struct fuse_front;

struct fuse_front_params {
	struct fs *fs; /* mounted; borrowed while requests are served */
	struct fuse_conn *conn; /* for notifications; borrowed */
	const char *who;	/* for the log; borrowed */
	struct fuse_policy_options policy;
	/*
	 * May requests be answered now, from what is in memory? Also if they
	 * are to fail. Asked before and after each. NULL: always.
	 */
	bool (*may_serve)(void *arg);
	/* Return when may_serve(). */
	void (*await_service)(void *arg);
	void *arg;
	/* Of policy.locks; borrowed. NULL: no lock is granted. */
	const struct fuse_lock_service *locks;
};

/* 0, -ENOMEM, -EAGAIN (no threads). */
int fuse_front_create(const struct fuse_front_params *params,
		      struct fuse_front **frontp);
void fuse_front_destroy(struct fuse_front *front); /* NULL is accepted */

/* What the session shall ask of the kernel. */
void fuse_front_wants(const struct fuse_front *front, struct fuse_wants *wants);

/*
 * For fs_host_ops of a clustered mount: recall, writer and writer_gone. Any
 * time, but recalls only once requests are served.
 */
void fuse_front_recall(struct fuse_front *front, uint64_t nodeid);
int fuse_front_writer(struct fuse_front *front, uint64_t nodeid,
		      bool exclusive);
void fuse_front_writer_gone(struct fuse_front *front, uint64_t nodeid);

/* Its ctx is a struct fuse_front. */
extern const struct fuse_handler fuse_front_handler;

#endif
