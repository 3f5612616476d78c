/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * dinode_ahead.c - dinodes that lie next to one that is being read.
 *
 * Inodes made one after the other are neighbours on disk, and programs that
 * go through a tree (du, find, tar) want them all. They ask for one name after
 * the other, in the order of hashes, so nothing is sequential; but the misses
 * stay close together. So the volume is seen in spots of some MiB, and for
 * the latest ones it is known how often a dinode was missed there:
 *
 *     first miss       the block alone: somebody opens one file
 *     second           and the dinodes of the aligned window around it
 *     third, ...       of larger and larger windows
 *
 * Which blocks are dinodes is told by the bitmap. What lies in a window and is
 * in memory already, or is something else, is not read.
 *
 * This reads blocks whose glocks nobody holds: see fs_may_read_unlocked().
 */
#include <assert.h>
#include <errno.h>

#include "fs/rgrp.h"
#include "fs/super.h"

#define SPOT_SHIFT 10u /* in blocks */
#define LEVEL_BITS 8u

/* By how often a dinode was missed at a spot before; aligned, in blocks. */
static const uint32_t windows[] = { 0, 32, 128, 256 };
#define LEVEL_MAX (UG_ARRAY_SIZE(windows) - 1)

static_assert(LEVEL_MAX < 1u << LEVEL_BITS, "a level has its bits");

/* Threads that meet here may lose a miss: it is a hint. */
static unsigned note_miss(struct dinode_ahead *da, uint64_t addr)
{
	uint64_t spot = (addr >> SPOT_SHIFT) + 1; /* 0: none yet */
	atomic_uint_fast64_t *slot = &da->spots[spot % DINODE_AHEAD_SPOTS];
	uint64_t old = atomic_load_explicit(slot, memory_order_relaxed);
	uint64_t level = 0;

	if (old >> LEVEL_BITS == spot)
		level = UG_MIN((old & ((1u << LEVEL_BITS) - 1)) + 1,
			       (uint64_t)LEVEL_MAX);
	atomic_store_explicit(slot, spot << LEVEL_BITS | level,
			      memory_order_relaxed);
	return (unsigned)level;
}

void dinode_ahead(struct fs *fs, uint64_t addr)
{
	struct buf_ahead *list = NULL;
	struct dinode_ahead *da = &fs->fs_ahead;
	uint64_t first;
	uint32_t window;

	/* While the mount looks for its system files there are no groups. */
	if (!fs->fs_rgrps || !fs_may_read_unlocked(fs) ||
	    atomic_load_explicit(&da->off, memory_order_relaxed))
		return;
	window = windows[note_miss(da, addr)];
	if (!window)
		return;
	first = addr & ~(uint64_t)(window - 1);
	if (rgrp_dinodes_ahead(fs, first, window, &list) == -EUCLEAN)
		atomic_store(&da->off, true);
	buf_ahead_start(list);
}
