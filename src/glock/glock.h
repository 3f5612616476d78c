/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * glock.h - cluster locks as the file system sees them: cached, queued,
 * demoted.
 *
 * A glock is found by (type, number). Threads queue holders on it; the
 * lock manager below grants a state to this node, and the glock grants it on to
 * local holders, first in first out: any number in SH (or DF) together, one
 * in EX, several in EX when all carry GL_NODE_SCOPE. The state stays cached
 * after the last holder has gone, until another node asks for it or the glock
 * is put away.
 *
 * With lock_nolock every request is granted at once, and a glock is then a
 * fair, try-able, node-wide shared/exclusive lock.
 *
 * Threads: any; this layer has none of its own. Callbacks of glock_ops run
 * without glock locks held. sync and invalidate are run by the host's worker
 * threads (glock_table_set_host()), and by who puts the last reference;
 * without workers (lock_nolock) by whichever thread moves the glock on.
 * instantiate runs in the thread of the holder. A holder belongs to a request,
 * not to a thread. Who queues twice for one glock may wait for himself: that
 * is not looked for.
 *
 * Waiting without a thread: glock_nq_notify() queues and returns, a callback
 * tells when the outcome is known, glock_adopt() hands the granted lock to the
 * request that is then tried again (DESIGN 6.3).
 * Source: docs/spec/glocks.md chapter 2.
 */
#ifndef UG_GLOCK_GLOCK_H
#define UG_GLOCK_GLOCK_H

#include <stdbool.h>
#include <stdint.h>
#include <urcu/list.h>

#include "base/compiler.h"
#include "glock/lockmod.h"

struct glock;
struct glock_table;

/*
 * What the object behind a glock does; any may be NULL. None may queue for
 * this glock, or put its last reference.
 */
struct glock_ops {
	enum lm_type type;
	/* The lock has a value block: glock_lvb(). */
	bool value_block;
	/* Not given away at once while it is in use: docs/spec/glocks.md 13.3.
	 */
	bool hold;
	/*
	 * Have those give it up who keep copies of what the glock protects and
	 * come back to us with them: the kernel. Before the state is lowered,
	 * by a worker; the glock can still be had, by requests that this may
	 * wait for (and that have references of their own). From its return on
	 * nobody may get a copy any more, until the glock has been granted
	 * again after invalidate or sync. Again if another target is wanted
	 * meanwhile. Not for a glock whose last reference is being put. With
	 * it, this node may not ask for LM_ST_DEFERRED. Only with workers.
	 * docs/spec/glocks.md 13.10.
	 */
	void (*recall)(struct glock *gl, enum lm_state target);
	/*
	 * Make everything that was changed under EX durable in its place.
	 * Called before the state is lowered, if glock_set_dirty() was. 0 or
	 * -errno: then this glock is as after glock_table_withdraw(), the
	 * lock manager keeps the lock, and the callback sees to the rest.
	 */
	int (*sync)(struct glock *gl);
	/* Forget what was cached; LM_ST_DEFERRED: file data only. */
	void (*invalidate)(struct glock *gl, enum lm_state target);
	/*
	 * Read the object, after the first grant and the first one following
	 * an invalidation with target LM_ST_UNLOCKED; not as long as there is
	 * no object. One thread at a time, while the holder that caused it
	 * has the glock. nowait: return -EAGAIN rather than wait for the
	 * device. 0 or -errno, which fails the holder; the next one tries
	 * again.
	 */
	int (*instantiate)(struct glock *gl, bool nowait);
	/*
	 * Another node wants the lock in this state: the news, beside what the
	 * glock does about it. On the lock manager's thread: note it, wake
	 * somebody, return. The object stays until this has returned, if who
	 * frees it puts the glock's last reference before.
	 */
	void (*callback)(struct glock *gl, enum lm_state wanted);
};

/* Holder request flags (values are GFS2's where it has them). */
#define GL_TRY 0x0001u	   /* -EAGAIN instead of waiting for another holder */
#define GL_TRY_1CB 0x0002u /* the same, but ask the others once to give way */
#define GL_NOEXP 0x0004u   /* allowed during recovery */
#define GL_ANY 0x0008u	   /* SH or DF, whichever is there */
#define GL_NODE_SCOPE 0x0020u /* EX shared among such holders of this node */
#define GL_ASYNC 0x0040u      /* return at once; wait with glock_wait() */
#define GL_EXACT 0x0080u      /* a cached stronger state does not do */
#define GL_SKIP 0x0100u	      /* do not instantiate */
#define GL_NOCACHE 0x0400u    /* unlock when this holder goes */
/*
 * Wait for nothing, neither a lock nor the device: -EAGAIN. Implies GL_TRY. The
 * lock manager is not asked, but when it is known to answer at once: who is
 * refused leaves nothing behind (docs/spec/glocks.md 13.5).
 */
#define GL_NOWAIT 0x10000u

struct glock_waiter;

/*
 * One request for a glock; lives on the requester's stack, or in a parked
 * request. All but gh_gl is the glock's.
 */
struct glock_holder {
	struct glock *gh_gl; /* NULL when not queued */
	enum lm_state gh_state;
	unsigned gh_flags;
	struct cds_list_head gh_list;
	bool gh_granted;
	int gh_error; /* not 0: off the queue, for glock_wait() to tell */
	struct glock_waiter *gh_waiter; /* the thread that sleeps; NULL */
	/* Of a request that could not be granted at once: */
	void (*gh_notify)(struct glock_holder *gh);
	uint64_t gh_queued_ns; /* CLOCK_MONOTONIC */
};

/* mod and who, which is for the log, are copied. 0 or -ENOMEM. */
int glock_table_create(const struct lockmod *mod, const char *who,
		       struct glock_table **tablep);
/*
 * All glocks must have been put. Waits for the lock manager's answers to the
 * requests that are still under way: whoever brings them must still run. The
 * workers need not.
 */
void glock_table_destroy(struct glock_table *table);

/*
 * The threads that give locks back. wake() is called, with locks of this layer
 * held, from any thread, whenever glock_table_work() has got something to do,
 * or will have it earlier than glock_table_wake_ns() said: see to it that a
 * thread looks, and return. Like this, in one or more threads (more than one,
 * since a sync may wait for the disk), wanted being set by wake():
 *
 *	wanted = false
 *	while (glock_table_work(table))
 *		;
 *	sleep until wanted, or until glock_table_wake_ns(table)
 */
struct glock_host {
	void (*wake)(void *arg);
	void *arg;
};

/* Before the first glock. Without it there are no delays and no clean-up. */
void glock_table_set_host(struct glock_table *table,
			  const struct glock_host *host);
/* Do one piece of work, at most one sync. False: there is none at present. */
bool glock_table_work(struct glock_table *table);
/* CLOCK_MONOTONIC time of the next work; 0: now; UINT64_MAX: none. */
uint64_t glock_table_wake_ns(struct glock_table *table);

/*
 * What is cached without being used: for how long (GFS2's demote_secs), and
 * how many locks, 0 being no bound. Any time; needs workers.
 */
#define GLOCK_DEMOTE_SECS 300u
#define GLOCK_CACHED_MAX 200000u
void glock_table_set_idle(struct glock_table *table, unsigned demote_secs,
			  unsigned cached_max);
/*
 * The longest time in ms for which a glock in use is kept from other nodes
 * (docs/spec/glocks.md 13.3); 0: it is given away at once. Any time.
 */
#define GLOCK_HOLD_MS 40u
#define GLOCK_HOLD_MS_LIMIT 60u
void glock_table_set_hold(struct glock_table *table, unsigned max_ms);

/*
 * While frozen, what the lock manager grants is kept back, but for glocks with
 * a waiter with GL_NOEXP: another node's journal has to be replayed before
 * anybody sees what it protects (docs/spec/glocks.md 2.13, 6.5). Locks that
 * this node has can be used and given up. From ugdlm's prepare() until all
 * journals of dead members are clean. Freezing twice is freezing once.
 */
void glock_table_freeze(struct glock_table *table);
void glock_table_thaw(struct glock_table *table);

/*
 * Find or make the glock, with a reference. ops and object are set when it
 * is made (object may be replaced by glock_set_object). Waits while another
 * thread is putting the last reference of the same glock. 0 or -ENOMEM.
 */
int glock_get(struct glock_table *table, const struct glock_ops *ops,
	      uint64_t number, void *object, struct glock **glp);
/*
 * Drop a reference. With the last one the lock is released (synced and
 * invalidated first, before this returns) and the glock is freed.
 */
void glock_put(struct glock *gl);

void *glock_object(const struct glock *gl);
void glock_set_object(struct glock *gl, void *object);
/* The cached state, of this moment unless a holder is held. */
enum lm_state glock_state(const struct glock *gl);
/* Does another node, or this one, want it lowered? Of this moment. */
bool glock_is_wanted(struct glock *gl);

/*
 * Is a recall under way, or over and the glock not lowered yet? Who holds the
 * glock and sees false when one has returned before got it after the demotion.
 */
bool glock_is_leaving(struct glock *gl);

/*
 * The value block, GLOCK_LVB_BYTES, aligned for 64-bit numbers: what the last
 * EX holder of the cluster left, all zero if that is lost. To be read by a
 * holder, written by an EX holder. NULL if the lock manager has none, or before
 * the first grant.
 */
void *glock_lvb(struct glock *gl);

/*
 * The object must be read (again) before the next holder without GL_SKIP; or,
 * for an object that has just been created in memory, need not.
 */
void glock_set_instantiate(struct glock *gl, bool needed);

/* Something was changed under EX: sync before lowering. Takes no lock. */
void glock_set_dirty(struct glock *gl);

/*
 * Queue for the glock and wait until it is granted and instantiated. Returns
 * 0; -EAGAIN (GL_TRY, GL_NOWAIT); -EIO withdrawn or the lock manager failed;
 * or the error of instantiate. On error nothing is held. With GL_ASYNC it
 * returns 0 with the request queued; glock_wait() gives the outcome.
 */
int glock_nq(struct glock *gl, enum lm_state state, unsigned flags,
	     struct glock_holder *gh);
int glock_wait(struct glock_holder *gh);
/*
 * The same, until this CLOCK_MONOTONIC time: then -ETIMEDOUT, and the request
 * is queued as before.
 */
int glock_wait_until(struct glock_holder *gh, uint64_t deadline_ns);

/*
 * Queue for the glock without a thread that waits. 0: it is granted.
 * -EINPROGRESS: notify is called, once, when the outcome is known, unless
 * glock_dq() comes before; with locks of this layer held, by any thread: it
 * must not call back. In both cases glock_adopt() or glock_wait() comes next,
 * or glock_dq(). Other errors as glock_nq(): nothing is queued.
 */
int glock_nq_notify(struct glock *gl, enum lm_state state, unsigned flags,
		    struct glock_holder *gh,
		    void (*notify)(struct glock_holder *gh));
/*
 * The outcome of a request by glock_nq_notify(), which must be known: gh takes
 * the place of the parked holder, without a gap in which the lock could go.
 * flags: GL_NOWAIT and GL_SKIP, as in glock_nq(). 0. -EAGAIN, with GL_NOWAIT:
 * it has to be read first, parked is as before. Another error: as glock_nq(),
 * and parked is no longer queued.
 */
int glock_adopt(struct glock_holder *parked, unsigned flags,
		struct glock_holder *gh);
/*
 * Release a granted holder, or give up a queued one (GL_ASYNC, before
 * glock_wait()). If another node waits for the glock and this was the last
 * holder, the workers give it away. Without workers that happens here: hold
 * nothing that sync and invalidate may want.
 */
void glock_dq(struct glock_holder *gh);

static inline void glock_holder_init(struct glock_holder *gh)
{
	gh->gh_gl = NULL;
}
static inline bool glock_held(const struct glock_holder *gh)
{
	return gh->gh_gl != NULL;
}
static inline void glock_dq_if_held(struct glock_holder *gh)
{
	if (glock_held(gh))
		glock_dq(gh);
}

/*
 * After this every waiting and later request fails with -EIO (GL_NOEXP
 * excepted), and nothing is synced, invalidated, or given back to the lock
 * manager any more. Granted holders stay. Takes no lock but the glocks' own.
 */
void glock_table_withdraw(struct glock_table *table);

/*
 * Let idle glocks of one type go: demote to unlocked at most max of those that
 * have had no holder since before this CLOCK_MONOTONIC second. Without workers
 * it syncs and invalidates in the calling thread.
 */
void glock_table_shrink(struct glock_table *table, enum lm_type type,
			uint64_t idle_before_sec, unsigned max);

/*
 * One line per glock, holder and lock, in GFS2's dump format
 * (docs/spec/glocks.md 8.2) with the fields that there are and ours (13.7).
 * text has no newline, and is valid during the call only; no lock is held.
 */
struct glock_dump {
	void (*line)(void *arg, const char *text);
	void *arg;
	/* How far it has come; zero at first. */
	unsigned shard;
	size_t bucket, buckets;
};
/*
 * The lines of the next few hundred glocks; true: there are more. What was
 * there all the time is dumped once, what comes or goes meanwhile perhaps. At
 * the end out is ready for the next dump.
 */
bool glock_table_dump(struct glock_table *table, struct glock_dump *out);

/* Who has been waiting for long: glock_table_waits(). */
struct glock_wait {
	enum lm_type type;
	uint64_t number;
	enum lm_state state; /* wanted */
	bool demotion;	     /* by others; else a holder of this node waits */
	uint64_t since_ns;   /* CLOCK_MONOTONIC */
};
/*
 * Holders, and demotions wanted by others, that have been waiting since before
 * this CLOCK_MONOTONIC time: the oldest ones, oldest first, at most max. How
 * many there are altogether. Locks that are held for long by design do not
 * count as overdue. Looks at every glock.
 */
unsigned glock_table_waits(struct glock_table *table, uint64_t before_ns,
			   struct glock_wait *waits, unsigned max);

/* Assert what must hold of every glock between two steps. For tests. */
void glock_table_check(struct glock_table *table);

#endif
