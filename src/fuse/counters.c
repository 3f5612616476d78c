/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * counters.c - statistics of one thread, read by others.
 */
#include "fuse/counters.h"

static void add(uint64_t *sum, const counter *c)
{
	*sum += atomic_load_explicit(c, memory_order_relaxed);
}

void counters_add(struct fuse_session_stats *out, const struct counters *c)
{
	add(&out->requests, &c->requests);
	add(&out->inline_done, &c->inline_done);
	add(&out->handed_over, &c->handed_over);
	add(&out->interrupts, &c->interrupts);
	add(&out->interrupted, &c->interrupted);
	add(&out->malformed, &c->malformed);
	for (unsigned i = 0; i < FUSE_OPCODES; i++)
		add(&out->by_opcode[i], &c->by_opcode[i]);
	for (unsigned i = 0; i < FUSE_HISTOGRAM; i++) {
		add(&out->inline_ns[i], &c->inline_ns[i]);
		add(&out->lane_ns[i], &c->lane_ns[i]);
	}
}
