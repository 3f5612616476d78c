/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * counters.h - statistics of one thread, read by others.
 *
 * Each reader counts in memory of its own, with plain loads and stores: no
 * cache line is shared by two writers, and a sum may miss the last few.
 */
#ifndef UG_FUSE_COUNTERS_H
#define UG_FUSE_COUNTERS_H

#include <stdatomic.h>
#include <stdint.h>

#include "fuse/session.h"

typedef atomic_uint_fast64_t counter;

struct counters {
	counter requests;
	counter inline_done;
	counter handed_over;
	counter interrupts;
	counter interrupted;
	counter malformed;
	counter by_opcode[FUSE_OPCODES];
	counter inline_ns[FUSE_HISTOGRAM];
	counter lane_ns[FUSE_HISTOGRAM];
};

/* By the only thread that writes this counter. */
static inline void counter_inc(counter *c)
{
	atomic_store_explicit(c,
			      atomic_load_explicit(c, memory_order_relaxed) + 1,
			      memory_order_relaxed);
}

/* By one of several. */
static inline void counter_inc_shared(counter *c)
{
	atomic_fetch_add_explicit(c, 1, memory_order_relaxed);
}

/* Where in a histogram a time belongs. */
static inline unsigned histogram_slot(uint64_t ns)
{
	unsigned log2 = ns ? 63u - (unsigned)__builtin_clzll(ns) : 0;

	return log2 < FUSE_HISTOGRAM ? log2 : FUSE_HISTOGRAM - 1;
}

/* Add what was counted to out. */
void counters_add(struct fuse_session_stats *out, const struct counters *c);

#endif
