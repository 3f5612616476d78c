/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * gate.h - a layer that lets writes begin only while their owner may write,
 * and that can let go of the device below under running users.
 *
 * A member of a cluster may write until its lease ends (DESIGN 4.6). A write
 * that comes later waits here until there is a lease again, or fails once the
 * device has been shut. Reads and flushes pass: they change nothing.
 *
 * Threads: any, for all calls.
 */
#ifndef UG_BLOCK_GATE_H
#define UG_BLOCK_GATE_H

#include "block/block.h"

struct gate;

/*
 * until_ns() is the CLOCK_MONOTONIC time in ns until which a write may begin,
 * 0 for not at all; it must not wait. 0 or -ENOMEM; lower is the layer's from
 * then on.
 */
int gate_open(struct blkdev *lower, uint64_t (*until_ns)(void *arg), void *arg,
	      struct gate **gatep, struct blkdev **devp);

/* The time has changed, or blkdev_shut() was called: waiting writes look. */
void gate_poke(struct gate *gate);

/*
 * For a device that has been shut: wait for all requests that are under way,
 * and close what is below. Every request fails from then on, -EIO.
 */
void gate_retire(struct gate *gate);

#endif
