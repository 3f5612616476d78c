/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * fault.h - a layer that fails chosen requests.
 *
 * All calls are safe while requests run. Ownership: layer.h.
 */
#ifndef UG_BLOCK_FAULT_H
#define UG_BLOCK_FAULT_H

#include "block/layer.h"

struct fault;

/*
 * Which requests fail. A request matches by kind and place; of those that
 * match, the first `pass` go through, the next `fail` fail (0: all of them
 * from then on), later ones go through again.
 *
 *   the 3rd write:           { .ops = LAYER_WRITE, .pass = 2, .fail = 1 }
 *   everything from now on:  { .ops = LAYER_ALL }
 *   a bad block:             { .ops = LAYER_READ, .from_bytes = 8192,
 *                              .to_bytes = 12288 }
 */
struct fault_rule {
	unsigned ops; /* LAYER_* */
	uint64_t pass;
	uint64_t fail;
	/* Requests that touch [from, to); 0, 0: any. A flush is everywhere. */
	uint64_t from_bytes;
	uint64_t to_bytes;
	int error;	  /* negative errno; 0: -EIO */
	bool carried_out; /* it reaches the device, and fails nevertheless */
};

/* Without a rule at first. 0 or -ENOMEM. */
int fault_open(struct blkdev *lower, struct fault **faultp,
	       struct blkdev **devp);

/* Replace the rule, its counts begin anew; NULL: nothing fails. Copied. */
void fault_set(struct fault *fault, const struct fault_rule *rule);

/* How many requests the present rule has failed. */
uint64_t fault_failed(struct fault *fault);

/*
 * How many requests of these kinds have come since fault_open(), whatever
 * became of them: run once to learn it, then fail each of them in turn.
 */
uint64_t fault_seen(struct fault *fault, unsigned ops);

#endif
