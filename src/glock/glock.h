/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * glock.h - cluster locks as the file system sees them: cached, queued, demoted.
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
 * Threads: any. Callbacks of glock_ops run without glock locks held, except
 * where noted. A holder belongs to a request, not to a thread.
 * Source: docs/spec/glocks.md.
 */
#ifndef UG_GLOCK_GLOCK_H
#define UG_GLOCK_GLOCK_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <urcu/list.h>

#include "base/compiler.h"
#include "glock/lockmod.h"

struct glock;
struct glock_table;

/* What the object behind a glock does; any may be NULL. */
struct glock_ops {
	enum lm_type type;
	/*
	 * Make everything that was changed under EX durable in its place.
	 * Called before the state is lowered. 0 or -errno (withdraw).
	 */
	int (*sync)(struct glock *gl);
	/* Forget what was cached; LM_ST_DEFERRED: file data only. */
	void (*invalidate)(struct glock *gl, enum lm_state target);
	/*
	 * Read the object, after the first grant following an invalidation.
	 * nowait: return -EAGAIN rather than wait for the device. 0 or -errno,
	 * which fails the holder.
	 */
	int (*instantiate)(struct glock *gl, bool nowait);
};

/* Holder request flags (values are GFS2's where it has them). */
#define GL_TRY 0x0001u /* -EAGAIN instead of waiting for another holder */
#define GL_TRY_1CB 0x0002u /* the same, but ask the others once to give way */
#define GL_NOEXP 0x0004u /* allowed during recovery */
#define GL_ANY 0x0008u /* SH or DF, whichever is there */
#define GL_NODE_SCOPE 0x0020u /* EX shared among such holders of this node */
#define GL_ASYNC 0x0040u /* return at once; wait with glock_wait() */
#define GL_EXACT 0x0080u /* a cached stronger state does not do */
#define GL_SKIP 0x0100u /* do not instantiate */
#define GL_NOCACHE 0x0400u /* unlock when this holder goes */
/* Wait for nothing, neither a lock nor the device: -EAGAIN. Implies GL_TRY. */
#define GL_NOWAIT 0x10000u

/* One request for a glock; lives on the requester's stack. */
struct glock_holder {
	struct glock *gh_gl; /* NULL when not queued */
	enum lm_state gh_state;
	unsigned gh_flags;
	struct cds_list_head gh_list;
	bool gh_granted;
	int gh_error;
	struct timespec *gh_since; /* unused unless tracing; NULL */
};

/* mod is copied. who: for the log. */
int glock_table_create(const struct lockmod *mod, const char *who,
		       struct glock_table **tablep);
/* All glocks must have been put; unlocks what is cached. */
void glock_table_destroy(struct glock_table *table);

/*
 * Find or make the glock, with a reference. ops and object are set when it
 * is made (object may be replaced by glock_set_object). 0 or -ENOMEM.
 */
int glock_get(struct glock_table *table, const struct glock_ops *ops,
	      uint64_t number, void *object, struct glock **glp);
/*
 * Drop a reference. With the last one the lock is released (synced and
 * invalidated first) and the glock is freed.
 */
void glock_put(struct glock *gl);

void *glock_object(const struct glock *gl);
void glock_set_object(struct glock *gl, void *object);
uint64_t glock_number(const struct glock *gl);
enum lm_state glock_state(const struct glock *gl);

/* The object must be read (again) before the next holder without GL_SKIP. */
void glock_set_instantiate(struct glock *gl, bool needed);

/* Something was changed under EX: sync before lowering. */
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
/* Release a granted holder, or give up a queued one. */
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
 * excepted), and nothing is synced or told to the lock manager any more.
 */
void glock_table_withdraw(struct glock_table *table);

/*
 * The cached lock was last touched at this CLOCK_MONOTONIC second; used to
 * let idle glocks go. Demotes unused glocks idle since before the given time.
 */
void glock_table_shrink(struct glock_table *table, uint64_t idle_before_sec,
			unsigned max);

/* One line per glock and holder, in GFS2's dump format. */
struct glock_dump {
	void (*line)(void *arg, const char *text);
	void *arg;
};
void glock_table_dump(struct glock_table *table, const struct glock_dump *out);

#endif
