/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * rgrp_bits.h - the bitmaps of a resource group, as pure functions.
 *
 * Two kinds. A *set* has one bit per block, in 64-bit words, lowest bit first:
 * "avail" (may be allocated) and "soft" (in somebody's window). A *state map*
 * is the part of the on-disk bitmap in one block of the group: two bits per
 * block, four blocks per byte, lowest bits first.
 *
 * Pure: no I/O, allocation, locks. Block numbers count from the start of the
 * group's data (sets) or of the map (state maps). The caller keeps all ranges
 * inside; bits of a set behind its last block are zero.
 * Source: docs/spec/gfs2-ondisk.md 6.2.
 */
#ifndef UG_FS_RGRP_BITS_H
#define UG_FS_RGRP_BITS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "ondisk/ondisk.h"

#define RGRP_WORD_BITS 64u

/* Words of a set of n blocks. */
static inline size_t rgrp_words(uint32_t n)
{
	return ((size_t)n + RGRP_WORD_BITS - 1) / RGRP_WORD_BITS;
}

/* ---- sets (rgrp_bits.c) ---- */

void rgrp_bits_set(uint64_t *set, uint32_t start, uint32_t len);
void rgrp_bits_clear(uint64_t *set, uint32_t start, uint32_t len);
uint32_t rgrp_bits_count(const uint64_t *set, uint32_t bits);

/* ---- state maps (rgrp_bits.c) ---- */

/* Are all of the blocks in this state? */
bool rgrp_states_are(const uint8_t *map, uint32_t start, uint32_t len,
		     enum gfs2_blkst state);
void rgrp_states_set(uint8_t *map, uint32_t start, uint32_t len,
		     enum gfs2_blkst state);

/*
 * Enter the free ones of a map's count blocks into the set, where the map's
 * first block has number first, a multiple of 32 (all block sizes give that).
 * The set was zero there.
 */
void rgrp_states_to_set(const uint8_t *map, uint32_t count, uint64_t *set,
			uint32_t first);

/* ---- search (rgrp_search.c) ---- */

struct rgrp_run {
	uint32_t start;
	uint32_t len; /* 0: none */
};

/* Blocks from start on that are in avail, at most max. */
uint32_t rgrp_run_length(const uint64_t *avail, uint32_t start, uint32_t max);

/*
 * Find want contiguous blocks that are in avail and not in avoid (NULL:
 * nothing to avoid): the first such run at or behind block from, or else
 * before it. If there is none anywhere, the longest run that exists: so a
 * result shorter than want says that nothing longer is there. want is at
 * least 1.
 */
struct rgrp_run rgrp_run_find(const uint64_t *avail, const uint64_t *avoid,
			      uint32_t bits, uint32_t from, uint32_t want);

#endif
