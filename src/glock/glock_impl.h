/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * glock_impl.h - a glock from inside; for the files of this folder only.
 *
 *   glock.c    requests: queue, wait, instantiate, release
 *   glpark.c   requests that wait without a thread
 *   xmote.c    the state machine between queue and lock manager
 *   gldemote.c who wants it lowered, and when: hold time
 *   glwork.c   work for the host's threads: queue and timers
 *   glidle.c   what is not used leaves the cache
 *   gltable.c  find, make, put away; withdraw, freeze
 *   glstat.c   counters
 *   glwaits.c  who has been waiting for long
 *   gldump.c   for people and tests
 *
 * Locks: a shard of the table, then gl_lock, then the work queue's. Nothing of
 * the outside (glock_ops, lock module) is called with any of them held, but
 * what says so: gh_notify, the host's wake(), ops->lvb and ops->describe.
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
#include "glock/glstat.h"

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
#define GLF_ORPHAN 0x0800u   /* no reference, an answer or a pin is awaited */
#define GLF_RETIRING 0x1000u /* the last reference is being put */
#define GLF_FROZEN 0x2000u   /* the answer is kept back: recovery */
#define GLF_REMOTE 0x4000u   /* another node wants the demotion */
/* gl_demote_state is wanted, but not before the hold time is over. */
#define GLF_PENDING_DEMOTE 0x8000u
#define GLF_USED 0x10000u	/* ... and it was used since the last look */
#define GLF_HOLD_PAID 0x20000u	/* ... and at any look: the wait was of use */
#define GLF_QUEUED 0x40000u	/* in the work queue (pinned by it) */
#define GLF_READY 0x80000u	/* ... at the end of the ready ones */
#define GLF_BACKOFF 0x100000u	/* no request before a worker has looked */
#define GLF_RECALLING 0x200000u /* a worker is in ops->recall() */
#define GLF_RECALLED 0x400000u	/* it has been, for gl_recalled_state */

/* Any of these: a request takes the slow way. */
#define GLF_SLOW                                                             \
	(GLF_LOCK | GLF_RUNNING | GLF_REPLY_PENDING | GLF_DEMOTE |           \
	 GLF_INSTANTIATE_NEEDED | GLF_INSTANTIATE_IN_PROG | GLF_CANCELLING | \
	 GLF_WITHDRAWN | GLF_PENDING_DEMOTE)

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
	bool gl_target_try; /* the request under way is a try */
	bool gl_dying;	    /* shard lock: the last reference is being put */
	uint8_t gl_hold_ms; /* the hold time that it has come to */
	uint8_t gl_recalled_state;
	uint32_t gl_used_sec;	/* when the last holder went, CLOCK_MONOTONIC */
	uint32_t gl_granted_ms; /* when the lock manager granted it */
	unsigned gl_pins;
	/* Counted up under the shard lock; down to 0 under it as well. */
	atomic_uint gl_refs;
	uint64_t gl_demote_ns; /* when it was wanted lower, CLOCK_MONOTONIC */
	uint64_t gl_asked_ns;  /* when the request under way was made */
	struct cds_list_head gl_work; /* queue lock; empty: not in it */

	/* Constant. */
	uint64_t gl_number;
	const struct glock_ops *gl_ops;
	struct glock_table *gl_table;

	_Atomic(void *) gl_object;	 /* no lock: its owner's */
	_Atomic(void *) gl_lm_data;	 /* no lock: the lock module's */
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

/* The longest delay in ms is less than this; a power of two. */
#define GLOCK_WHEEL_SLOTS 64u

/*
 * What the workers have to do. A glock is in one place: among the ready ones,
 * or in the slot of the millisecond at which it will be ready.
 */
struct glock_queue {
	pthread_mutex_t lock;
	struct cds_list_head ready;
	struct cds_list_head wheel[GLOCK_WHEEL_SLOTS];
	uint64_t wheel_ms;     /* slots up to this one are empty */
	uint64_t announced_ns; /* what glock_table_wake_ns() last said */
	/* Of the walk for idle glocks (glidle.c). */
	uint64_t idle_ns;  /* when it goes on; UINT64_MAX: nothing is cached */
	bool idle_walking; /* a thread is at it */
	unsigned idle_shard; /* where it goes on; the walker's */
	size_t idle_bucket;
	unsigned idle_demoted;	  /* in this round */
	uint32_t idle_oldest_sec; /* of those that stay */
};

/* Slow paths only, and only with workers. */
struct glock_counters {
	atomic_uint_fast64_t requests, busy, deadlocks, cancelled, callbacks,
		delayed, given_away, put_away;
	atomic_uint_fast64_t wait_ns[GLOCK_HIST_SLOTS];
	atomic_uint_fast64_t answer_ns[GLOCK_HIST_SLOTS];
};

struct glock_table {
	struct lockmod mod;
	char *who;
	struct glock_host host; /* wake NULL: there are no workers */
	atomic_bool withdrawn;	/* set before the shards are walked */
	atomic_bool frozen;	/* the same; thaw: cleared before */
	atomic_uint demote_secs;
	atomic_uint cached_max;
	atomic_uint hold_max_ms;
	atomic_uint_fast64_t cached;
	struct glock_queue queue;
	struct glock_counters counters[LM_TYPE_JOURNAL + 1];
	struct glock_shard shards[GLOCK_SHARDS];
};

static inline bool glock_has_workers(const struct glock_table *table)
{
	return table->host.wake;
}

static inline struct glock_counters *glock_counters(const struct glock *gl)
{
	return &gl->gl_table->counters[gl->gl_ops->type];
}

/* glock.c */
uint64_t glock_now_ns(void);
/* Sleep, with gl_lock, until the glock may be idle or unpinned. */
void glock_sleep_retirer(struct glock *gl);
void glock_holder_set(struct glock_holder *gh, struct glock *gl,
		      enum lm_state state, unsigned flags);
/* Grant it if the cached state allows, else queue it. gl_lock is held. 0. */
int glock_enqueue(struct glock *gl, struct glock_holder *gh);
/* Off a granted holder. The caller runs the state machine if need be. */
void glock_ungrant(struct glock *gl, struct glock_holder *gh);
/* Read the object, for a granted holder. gl_lock is dropped meanwhile. */
int glock_holder_instantiate(struct glock *gl, struct glock_holder *gh);

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
/*
 * Do whatever can be done now: process an answer, demote, grant, request. May
 * drop and retake gl_lock. If another thread is at it, that one goes on. Sync
 * and invalidate are left to the workers, if there are any.
 */
void glock_run(struct glock *gl);
/* The same, for workers and who puts the last reference. */
void glock_run_working(struct glock *gl);

/* gldemote.c; all with gl_lock held, but of a new glock. */
void glock_hold_init(struct glock *gl);
/* As soon as nobody holds it. */
void glock_request_demote(struct glock *gl, enum lm_state state);
/*
 * Is there a demotion to be served? Clears one that is satisfied already, and
 * has a worker recall what has to be recalled first.
 */
bool glock_demote_due(struct glock *gl);
/* Is there one, but its recall is not over? */
bool glock_is_in_recall(const struct glock *gl);
/* For workers: recall if that is the next thing to be done. Drops gl_lock. */
void glock_recall(struct glock *gl);
void glock_clear_demote(struct glock *gl);
/* The lock manager has answered a request; granted: as it was asked to. */
void glock_hold_begins(struct glock *gl, uint64_t now_ns, bool granted);
/* A request comes while the lock is on its way out. */
void glock_hold_missed(struct glock *gl);
/* The time of a pending demotion may have come. */
void glock_hold_look(struct glock *gl);
/* No request before so many ms have passed. */
void glock_back_off(struct glock *gl, unsigned ms);

/* glwork.c */
void glock_queue_init(struct glock_queue *q);
void glock_queue_fini(struct glock_queue *q);
/* All with gl_lock held. Have a worker run the glock, */
void glock_queue_now(struct glock *gl);
/* ... or at this time, if it is not to be run anyway. */
void glock_queue_at(struct glock *gl, uint64_t due_ms);
/* Take it out again, if no worker has done so. */
void glock_queue_drop(struct glock *gl);
/* The walk for idle glocks is to go on at this time, or earlier. */
void glock_queue_idle_at(struct glock_table *table, uint64_t when_ns);

/* glidle.c */
/* Go on with the walk, if it is due. */
bool glock_idle_walk(struct glock_table *table);
/* gl_lock is held: one lock more, or less, may be cached. */
void glock_count_cached(struct glock *gl, enum lm_state from, enum lm_state to);

/* glstat.c */
void glock_hist_add(atomic_uint_fast64_t *slots, uint64_t ns);

/* gltable.c */
/* Walk a shard, its lock held: after NULL the first; NULL after the last. */
struct glock *glock_shard_next(const struct glock_shard *shard,
			       const struct glock *gl);
/* With gl_lock held; it is released. The glock may be gone afterwards. */
void glock_unpin_unlock(struct glock *gl);

static inline void glock_count(atomic_uint_fast64_t *counter)
{
	atomic_fetch_add_explicit(counter, 1, memory_order_relaxed);
}

#endif
