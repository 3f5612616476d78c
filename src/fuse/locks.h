/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * locks.h - what the front end asks of the service of application locks, and
 * gets from it: filled in by the daemon.
 *
 * Threads: any, of call() and done at once. Source: docs/spec/plocks.md.
 */
#ifndef UG_FUSE_LOCKS_H
#define UG_FUSE_LOCKS_H

#include "plock/plock.h"

struct fuse_front;

struct fuse_lock_service {
	/*
	 * 0: *res is the answer. -EINPROGRESS: fuse_front_lock_done() comes
	 * once, with res->ctx == ctx, perhaps before this has returned; *id
	 * names the call. Otherwise it is refused, and nothing has happened.
	 * What gives a lock back is never refused. After fail(): -EIO, but 0
	 * for what gives a lock back.
	 */
	int (*call)(void *arg, uint64_t number, const struct plock_op *op,
		    uint64_t ctx, uint64_t *id, struct plock_result *res);
	/* False: this owner has no lock and no call here. Cheap. */
	bool (*knows)(void *arg, enum plock_table table, uint64_t owner);
	/* A SET that waits: it ends soon, -EINTR if it has not been granted. */
	void (*cancel)(void *arg, uint64_t id);
	/* All calls end, as the later ones. More than once is fine. */
	void (*fail)(void *arg);
	void *arg;
	uint64_t node; /* of this member in a struct range_owner */
};

/* A call has ended. Any thread; takes locks of the session. */
void fuse_front_lock_done(struct fuse_front *front,
			  const struct plock_result *res);

#endif
