/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * queue.h - events of a simulated world, by time; at one time, in the order in
 * which they were put in.
 */
#ifndef UG_SIM_QUEUE_H
#define UG_SIM_QUEUE_H

#include <stddef.h>
#include <stdint.h>

/* First member of an event, which is the world's to allocate and to free. */
struct queued {
	uint64_t at_ns;
	uint64_t order; /* set by queue_put() */
};

void queue_put(struct queued *event);
/* The earliest one; there must be one. */
struct queued *queue_take(void);
/* Empty, it counts its order from 0 again: each run is like the first. */
void queue_reset(void);

size_t queue_count(void);
/* Any of them, in no order but that the first is the earliest. */
struct queued *queue_at(size_t i);

#endif
