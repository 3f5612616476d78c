/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * delay.h - a layer that makes requests slow, or holds them at a gate.
 *
 * The gate is what tests want most: stop a write in the middle, look at what
 * the rest of the program does meanwhile, let it go; no duration involved.
 * All calls are safe while requests run. Ownership: layer.h.
 */
#ifndef UG_BLOCK_DELAY_H
#define UG_BLOCK_DELAY_H

#include "block/layer.h"

struct delay;

/* Neither slow nor closed at first. 0 or -ENOMEM. */
int delay_open(struct blkdev *lower, struct delay **delayp,
	       struct blkdev **devp);

/* Requests of these kinds (LAYER_*) sleep so long before they are done. */
void delay_set(struct delay *delay, unsigned ops, uint64_t delay_us);

/* From now on requests of these kinds wait at the gate; others pass. */
void delay_hold(struct delay *delay, unsigned ops);

/* Wait until at least n requests wait at the gate. */
void delay_wait_held(struct delay *delay, unsigned n);

/* Open the gate for those that wait and those that come. */
void delay_release(struct delay *delay);

#endif
