/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * lane.h - threads that serve requests which have to wait.
 *
 * A queue, first in first out, and threads: as many as there are requests
 * waiting, between a minimum that never ends and a maximum. Lanes are
 * independent of each other: a lane whose threads all wait holds up no other.
 *
 * Ownership: a pushed slot belongs to the lane until serve() is called
 * with it, in a thread of the lane; serve() disposes of it.
 */
#ifndef UG_FUSE_LANE_H
#define UG_FUSE_LANE_H

#include <stdbool.h>
#include <stdint.h>

#include "fuse/slot.h"
#include "fuse/waits.h"

struct lane;

struct lane_params {
	const char *name;     /* of its threads; at most 15 bytes */
	unsigned threads_min; /* at least 1 */
	unsigned threads_max;
	/*
	 * Before each request is taken from the queue, where it can be
	 * interrupted meanwhile: return when it may be served. NULL: at once.
	 */
	void (*await)(void *arg);
	void (*serve)(void *arg, struct fuse_slot *slot);
	void *arg;
};

/* Starts the minimum of threads. 0, -EAGAIN or -ENOMEM (no threads). */
int lane_create(const struct lane_params *params, struct lane **lanep);

/*
 * Serve what is queued, then end all threads. Nothing may be pushed any more.
 * A second call, and NULL, do nothing.
 */
void lane_stop(struct lane *lane);
/* lane_stop(), and free it. NULL is accepted. */
void lane_destroy(struct lane *lane);

/* Never waits for a request to be served. */
void lane_push(struct lane *lane, struct fuse_slot *slot);

/* Mark the queued request with this id interrupted; false: not queued here. */
bool lane_interrupt(struct lane *lane, uint64_t unique);

/*
 * Move to list the queued slots that are interrupted, have had no effect yet
 * and were read before that time. They belong to the caller then. Returns
 * how many interrupted ones stay.
 */
unsigned lane_reap(struct lane *lane, uint64_t before_ns,
		   struct cds_list_head *list);

/* Add what is queued and what is being served. */
void lane_waits(struct lane *lane, struct fuse_waits *waits);

struct lane_stats {
	unsigned threads;
	unsigned threads_peak;
	unsigned queued;
	unsigned queued_peak;
};
void lane_get_stats(struct lane *lane, struct lane_stats *out);

#endif
