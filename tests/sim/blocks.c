/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * blocks.c - value blocks, as the clients know them: who has written what, who
 * may read what, when it may be or must be marked (P5).
 */
#include <string.h>

#include "sim.h"

void block_pack(uint8_t lvb[DLM_LVB_MAX], uint64_t value)
{
	memset(lvb, 0, DLM_LVB_MAX);
	memcpy(lvb, &value, sizeof(value));
	memcpy(lvb + LVBLEN - sizeof(value), &value, sizeof(value));
}

void block_read(struct world *w, const struct client *c,
		const struct dlm_cast *cast)
{
	struct block *block = &w->blocks[c->resource];
	bool marked = cast->sbflags & SBF_VALNOTVALID;
	uint64_t value, tail;

	memcpy(&value, cast->lvb, sizeof(value));
	memcpy(&tail, cast->lvb + LVBLEN - sizeof(tail), sizeof(tail));
	if (value != tail)
		fail(w, "a torn value block: %llu %llu",
		     (unsigned long long)value, (unsigned long long)tail);
	if (marked && !block->may_doubt && w->faults == 0)
		fail(w, "value block of %u marked invalid without reason",
		     c->resource);
	if (marked || (block->may_be_lost && value == 0))
		return;
	if (block->marked_ns && c->since_ns > block->marked_ns)
		fail(w, "resource %u: read %llu, marked invalid before",
		     c->resource, (unsigned long long)value);
	/* beside a writer NL and CR may still read what was before */
	if (cast->mode <= LKM_CR && value <= block->last)
		return;
	if (value != block->last || block->must_doubt)
		fail(w, "resource %u: read %llu, last written %llu%s",
		     c->resource, (unsigned long long)value,
		     (unsigned long long)block->last,
		     block->must_doubt ? ", and nobody can know" : "");
}

bool block_writes(int from, int to)
{
	return (from == LKM_EX || (from == LKM_PW && to != LKM_EX));
}

/*
 * What goes with a call: a new value if the call writes, one that nobody may
 * ever see if it does not. An alternate mode can make a write of it.
 */
uint64_t block_value(struct world *w, const struct client *c, int to,
		     uint32_t flags)
{
	if (block_writes(c->held, to))
		return w->next_value++;
	if (c->held == LKM_PW && (flags & (LKF_ALTPR | LKF_ALTCW)))
		return w->blocks[c->resource].last;
	return 1ull << 62;
}

/* From now on it may hold the last value again. */
void block_trust(struct block *block)
{
	block->must_doubt = false;
	block->marked_ns = 0;
}

void block_written(struct world *w, const struct client *c, int to,
		   uint32_t flags, uint64_t value)
{
	struct block *block = &w->blocks[c->resource];

	if (!block->used || !block_writes(c->held, to))
		return;
	if (w->trace)
		printf("  node %d: lock %08x of resource %u %s %llu\n", c->node,
		       c->lkid, c->resource,
		       flags & LKF_IVVALBLK ? "invalidates, passing" : "writes",
		       (unsigned long long)value);
	if (flags & LKF_IVVALBLK) {
		block->must_doubt = block->may_doubt = true;
		return;
	}
	block->last = value;
	block_trust(block);
	block->may_be_lost = false;
}

/* The block of a resource lives as long as somebody has a lock on it. */
void blocks_step_done(struct world *w)
{
	bool locked[RESOURCES_MAX] = { false };

	for (unsigned i = 0; i < w->client_high; i++) {
		const struct client *c = &w->clients[i];

		if (client_lives(w, c) && c->held >= 0 && !c->unlocking &&
		    !c->orphan)
			locked[c->resource] = true;
	}
	for (unsigned r = 0; r < w->resource_count; r++)
		w->blocks[r].may_be_lost |= !locked[r];
}

/* A writer that can say no more leaves the value in doubt. */
void block_vanishes(struct world *w, struct client *c)
{
	struct block *block = &w->blocks[c->resource];

	block->may_doubt |= c->held >= LKM_PW;
	/* a conversion may have taken the write mode away (CONVDEADLK, ALT) */
	if (block->used && client_relies_on(c) >= LKM_PW)
		block->must_doubt = true;
}
