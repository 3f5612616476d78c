/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * lockmod.h - the narrow interface to any lock manager.
 *
 * The glock layer knows lock names, states and callbacks; it does not know
 * whether nobody (lock_nolock), a DLM or a lock server decides. Requests are
 * asynchronous: the module answers by glock_complete(), from the calling
 * thread or from any other, in either case without module locks held.
 * Source: docs/spec/glocks.md.
 */
#ifndef UG_GLOCK_LOCKMOD_H
#define UG_GLOCK_LOCKMOD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct glock;

/* The numbers are those of GFS2's own dumps. */
enum lm_state {
	LM_ST_UNLOCKED = 0,
	LM_ST_EXCLUSIVE = 1,
	LM_ST_DEFERRED = 2,
	LM_ST_SHARED = 3,
};

enum lm_type {
	LM_TYPE_NONDISK = 1,
	LM_TYPE_INODE = 2,
	LM_TYPE_RGRP = 3,
	LM_TYPE_META = 4,
	LM_TYPE_IOPEN = 5,
	LM_TYPE_FLOCK = 6,
	LM_TYPE_QUOTA = 8,
	LM_TYPE_JOURNAL = 9,
};

#define GLOCK_LVB_BYTES 32u /* of a lock's value block */

/* Outcome of a request, beside the state that holds now. */
enum lm_outcome {
	LM_OUT_DONE,	  /* the state is the requested one */
	LM_OUT_BUSY,	  /* a try request could not be granted */
	LM_OUT_CANCELLED, /* after ops->cancel(); the state is as before */
	LM_OUT_DEADLOCK,  /* conversion deadlock: go through unlocked */
	LM_OUT_NOMEM,	  /* no memory; nothing has changed */
	LM_OUT_ERROR,	  /* the lock manager has failed; waiters get -EIO */
};

struct lockmod_ops {
	const char *name; /* "lock_nolock" */
	/*
	 * Change the lock of this glock to the state; LM_ST_UNLOCKED releases
	 * it. flags: GL_TRY, GL_TRY_1CB, GL_NOEXP of glock.h. Answered by
	 * exactly one glock_complete(); there is one request at a time. Must
	 * not wait for the answer.
	 */
	void (*lock)(void *mod, struct glock *gl, enum lm_state state,
		     unsigned flags);
	/* Try to cancel the request under way; its answer still comes. */
	void (*cancel)(void *mod, struct glock *gl);
	/*
	 * The glock is going away. The lock has been lowered to unlocked; or,
	 * with keep, the mount is withdrawn, and what it holds it holds on to
	 * until it has left the cluster. When this returns, no
	 * glock_callback() for it is running or will come; except that this
	 * may be the last act of a glock_complete() or glock_callback() for
	 * this very glock, which then need not be waited for.
	 */
	void (*put)(void *mod, struct glock *gl, bool keep);
	/*
	 * Are requests of this moment answered within lock()? Then a caller
	 * that may not wait asks as well. May be mistaken. NULL: no.
	 */
	bool (*at_once)(void *mod);
	/*
	 * The value block of the glock's lock, GLOCK_LVB_BYTES, that comes with
	 * each grant from unlocked or SH and goes out when EX is lowered. All
	 * zero when the cluster has lost it. NULL: there are none.
	 */
	void *(*lvb)(void *mod, struct glock *gl);
	/*
	 * What the lock manager knows of this lock, for a dump: a line of
	 * "key:value" without newline. The length, 0 for nothing. Called with
	 * glock locks held: must not call back. NULL: nothing.
	 */
	size_t (*describe)(void *mod, const struct glock *gl, char *line,
			   size_t size);
};

/* A lock module in use; mod is handed to every call. */
struct lockmod {
	const struct lockmod_ops *ops;
	void *mod;
};

/*
 * The module's answer to ops->lock. May queue the next request before it
 * returns, and, if the table has no workers (glock_table_set_host()), sync and
 * invalidate, unless called within ops->lock.
 */
void glock_complete(struct glock *gl, enum lm_state state,
		    enum lm_outcome outcome);

/*
 * Another node wants the lock in the given state: give way when possible. What
 * has to be written or forgotten for that is left to the workers; without
 * workers it is done in this thread. Does not wait otherwise.
 */
void glock_callback(struct glock *gl, enum lm_state wanted);

/* What a lock module needs to know of a glock. */
uint64_t glock_number(const struct glock *gl);
enum lm_type glock_type(const struct glock *gl);
bool glock_has_lvb(const struct glock *gl);

/*
 * The module's own pointer in the glock, NULL at first. Set within lock() and
 * put() only.
 */
void *glock_lm_data(const struct glock *gl);
void glock_set_lm_data(struct glock *gl, void *data);

#endif
