/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * rgrp_search.c - the search for free runs, a word at a time.
 *
 * A run is found by hopping from the next usable bit to the next unusable one;
 * full and empty words cost one comparison each, so a default group of
 * 63,000 blocks is crossed in a fraction of a microsecond. The search begins at
 * the goal and goes round once. Its second leg begins at block 0 and takes runs
 * that begin before the goal with their whole length, also where they reach
 * beyond it.
 */
#include "fs/rgrp_bits.h"
#include "base/compiler.h"

struct search {
	const uint64_t *avail;
	const uint64_t *avoid;
	uint32_t bits;
};

static uint64_t usable(const struct search *s, uint32_t word)
{
	return s->avoid ? s->avail[word] & ~s->avoid[word] : s->avail[word];
}

/*
 * First block of [from, end) whose bit is that of flip inverted: flip 0 looks
 * for usable blocks, all ones for the others. Returns end if there is none.
 */
static uint32_t next_block(const struct search *s, uint32_t from, uint32_t end,
			   uint64_t flip)
{
	uint32_t word = from / RGRP_WORD_BITS;
	uint32_t last;
	uint64_t w;

	if (from >= end)
		return end;
	last = (end - 1) / RGRP_WORD_BITS;
	w = (usable(s, word) ^ flip) & ~0ull << from % RGRP_WORD_BITS;
	while (!w) {
		if (word == last)
			return end;
		word++;
		w = usable(s, word) ^ flip;
	}
	from = word * RGRP_WORD_BITS + (uint32_t)__builtin_ctzll(w);
	return UG_MIN(from, end);
}

uint32_t rgrp_run_length(const uint64_t *avail, uint32_t start, uint32_t max)
{
	struct search s = { .avail = avail };

	return next_block(&s, start, start + max, ~0ull) - start;
}

/*
 * Runs that begin in [from, end): true as soon as one has want blocks. The
 * longest is kept in best.
 */
static bool search_leg(const struct search *s, uint32_t from, uint32_t end,
		       uint32_t want, struct rgrp_run *best)
{
	while ((from = next_block(s, from, end, 0)) < end) {
		uint32_t limit = from + UG_MIN(want, s->bits - from);
		uint32_t stop = next_block(s, from, limit, ~0ull);

		if (stop - from > best->len)
			*best = (struct rgrp_run){ from, stop - from };
		if (best->len >= want)
			return true;
		from = stop;
	}
	return false;
}

struct rgrp_run rgrp_run_find(const uint64_t *avail, const uint64_t *avoid,
			      uint32_t bits, uint32_t from, uint32_t want)
{
	struct search s = { .avail = avail, .avoid = avoid, .bits = bits };
	struct rgrp_run best = { 0, 0 };

	if (from >= bits)
		from = 0;
	if (!search_leg(&s, from, bits, want, &best))
		search_leg(&s, 0, from, want, &best);
	return best;
}
