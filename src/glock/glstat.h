/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * glstat.h - what the glocks of a mount have been doing, by type.
 *
 * Counted off the way of cached requests: what costs nothing is not counted,
 * nor is anything without workers (lock_nolock), but in_state. To ask walks
 * through the whole table. Any thread; figures of one call need not be of one
 * moment.
 */
#ifndef UG_GLOCK_GLSTAT_H
#define UG_GLOCK_GLSTAT_H

#include "glock/glock.h"

/* [i]: of 2^i up to 2^(i+1) ns; the last one has all that is longer. */
#define GLOCK_HIST_SLOTS 40u

struct glock_type_stats {
	uint64_t in_state[4]; /* glocks, by enum lm_state */
	uint64_t requests;    /* to the lock manager, down as well as up */
	uint64_t busy;	      /* of these: refused tries */
	uint64_t deadlocks;   /* conversions that had to go through unlocked */
	uint64_t cancelled;   /* given up before they were granted */
	uint64_t callbacks;   /* other nodes wanted a lock */
	uint64_t delayed;     /* of these: put off by the hold time */
	uint64_t given_away;  /* demotions for other nodes */
	uint64_t put_away;    /* demotions of our own: idle, too many */
	uint64_t wait_ns[GLOCK_HIST_SLOTS];   /* of holders, until granted */
	uint64_t answer_ns[GLOCK_HIST_SLOTS]; /* of the lock manager */
};

void glock_table_stats(struct glock_table *table, enum lm_type type,
		       struct glock_type_stats *stats);

/*
 * Locks that this node has and caches: all types, all states but unlocked. 0
 * without workers.
 */
uint64_t glock_table_cached(struct glock_table *table);

#endif
