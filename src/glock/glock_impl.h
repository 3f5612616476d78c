/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * glock_impl.h - a glock from inside; for the files of this folder only.
 *
 *   glock.c    requests: queue, wait, instantiate, release
 *   xmote.c    the state machine between queue and lock manager
 *   gltable.c  find, make, put away; shrink, withdraw
 *   gldump.c   for people and tests
 *
 * Locks: a shard of the table, then gl_lock. Nothing of the outside (glock_ops,
 * lock module) is called with either held.
 *
 * Life: the users' references are counted in gl_refs. Threads of the lock
 * manager and table walks have none; they pin the glock (gl_pins), so that
 * it is always the user's own last glock_put() that syncs and invalidates,
 * while the object is still there. Lock manager requests outlive the last
 * reference as an orphan:
 *
 *   refs > 0 --put--> dying: synced, invalidated, unlock requested
 *      ^                |                            |
 *      |          answer came at once          answer outstanding
 *      |                v                            v
 *      |              freed  <-----answer------   orphan
 *      +----------------- get --------------------+
 */
#ifndef UG_GLOCK_GLOCK_IMPL_H
#define UG_GLOCK_GLOCK_IMPL_H

#include <assert.h>
#include <pthread.h>
#include <stdatomic.h>

#include "base/assert.h"
#include "glock/glock.h"

/* gl_flags. Set and cleared under gl_lock. */
#define GLF_LOCK 0x0001u    /* a request, or the work before it, is under way */
#define GLF_RUNNING 0x0002u /* a thread is in glock_run() */
#define GLF_REPLY_PENDING                                             \
	0x0004u		   /* the answer is stored, not yet looked at \
			    */
#define GLF_DEMOTE 0x0008u /* gl_demote_state is wanted */
#define GLF_DEMOTE_IN_PROGRESS 0x0010u /* ... and is what GLF_LOCK is about */
#define GLF_INVALIDATE_IN_PROGRESS 0x0020u
#define GLF_INSTANTIATE_NEEDED 0x0040u
#define GLF_INSTANTIATE_IN_PROG 0x0080u
#define GLF_CANCELLING 0x0100u /* in ops->cancel(): nothing may move */
#define GLF_CANCELLED 0x0200u  /* it was called for the present request */
#define GLF_WITHDRAWN 0x0400u
#define GLF_ORPHAN 0x0800u /* no reference, an answer or a pin is awaited */

/* Any of these: a request takes the slow way. */
#define GLF_SLOW                                                             \
	(GLF_LOCK | GLF_RUNNING | GLF_REPLY_PENDING | GLF_DEMOTE |           \
	 GLF_INSTANTIATE_NEEDED | GLF_INSTANTIATE_IN_PROG | GLF_CANCELLING | \
	 GLF_WITHDRAWN)

/* Nobody is at work on the glock, and no answer is outstanding. */
#define GLF_BUSY (GLF_LOCK | GLF_RUNNING | GLF_REPLY_PENDING | GLF_CANCELLING)

/* A sleeping thread; on its stack, used with gl_lock. */
struct glock_waiter {
	pthread_cond_t wake;
};

/*
 * A million of them may exist: keep it small. Everything is guarded by
 * gl_lock, except what says otherwise.
 */
struct glock {
	pthread_mutex_t gl_lock;
	/* First the granted holders, then the waiting ones, as they came. */
	struct cds_list_head gl_holders;
	unsigned gl_flags;
	unsigned gl_granted;	  /* number of granted holders */
	unsigned gl_waiting;	  /* number of waiting ones */
	_Atomic uint8_t gl_state; /* enum lm_state, written under gl_lock */
	uint8_t gl_granted_state; /* of the granted holders, if any */
	bool gl_granted_share;	  /* they are EX, all with GL_NODE_SCOPE */
	atomic_bool gl_dirty;	  /* no lock */
	uint8_t gl_target;	  /* of the request under way */
	uint8_t gl_demote_state;
	uint8_t gl_reply_state; /* valid with GLF_REPLY_PENDING */
	uint8_t gl_reply_outcome;
	bool gl_target_try;   /* the request under way is a try */
	bool gl_dying;	      /* shard lock: the last reference is being put */
	uint32_t gl_used_sec; /* when the last holder went, CLOCK_MONOTONIC */
	unsigned gl_pins;
	/* Counted up under the shard lock; down to 0 under it as well. */
	atomic_uint gl_refs;
	uint64_t gl_demote_ns; /* when GLF_DEMOTE was set, CLOCK_MONOTONIC */

	/* Constant. */
	uint64_t gl_number;
	const struct glock_ops *gl_ops;
	struct glock_table *gl_table;

	_Atomic(void *) gl_object;	 /* no lock: its owner's */
	struct glock_waiter *gl_retirer; /* waits for the glock to be idle */
	struct glock *gl_hash_next;	 /* shard lock */
};
static_assert(sizeof(struct glock) <= 192, "a million of them may exist");

#define GLOCK_SHARDS 64u

struct glock_shard {
	pthread_mutex_t lock;
	pthread_cond_t settled; /* a glock is no longer dying, or is gone */
	struct glock **buckets; /* buckets_count, a power of two */
	size_t buckets_count;
	size_t count;
};

struct glock_table {
	struct lockmod mod;
	char *who;
	atomic_bool withdrawn; /* set before the shards are walked */
	struct glock_shard shards[GLOCK_SHARDS];
};

/* glock.c */
uint64_t glock_now_ns(void);
/* Sleep, with gl_lock, until the glock may be idle or unpinned. */
void glock_sleep_retirer(struct glock *gl);

/* xmote.c; all with gl_lock held. */
bool glock_may_grant(const struct glock *gl, const struct glock_holder *gh);
void glock_grant(struct glock *gl, struct glock_holder *gh);
/* Take a waiter off the queue; gh_error is set if err is not 0. */
void glock_unqueue(struct glock *gl, struct glock_holder *gh, int err);
void glock_fail_without_noexp(struct glock *gl);
bool glock_has_firm_waiter(const struct glock *gl);
struct glock_holder *glock_first_waiter(const struct glock *gl);
/* Would a change to this state call sync or invalidate? */
bool glock_change_needs_work(const struct glock *gl, enum lm_state target);
void glock_request_demote(struct glock *gl, enum lm_state state);
/*
 * Do whatever can be done now: process an answer, demote, grant, request. May
 * drop and retake gl_lock. If another thread is at it, that one goes on.
 */
void glock_run(struct glock *gl);

/* gltable.c */
/* Walk a shard, its lock held: after NULL the first; NULL after the last. */
struct glock *glock_shard_next(const struct glock_shard *shard,
			       const struct glock *gl);
/* With gl_lock held; it is released. The glock may be gone afterwards. */
void glock_unpin_unlock(struct glock *gl);

#endif
