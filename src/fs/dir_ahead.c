/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * dir_ahead.c - blocks that a listing will come to, read together before.
 *
 * The order of hashes, which a listing follows, is no order on disk: the more
 * blocks are sorted at once, the more neighbours there are.
 */
#include <stdlib.h>

#include "fs/dir_ahead.h"
#include "fs/dir_block.h"
#include "fs/rgrp.h"

static int compare_addr(const void *a, const void *b)
{
	const uint64_t *x = a, *y = b;

	return *x < *y ? -1 : *x > *y;
}

void dir_ahead_read(struct inode *dir, uint64_t *addrs, unsigned count)
{
	unsigned i, run;

	qsort(addrs, count, sizeof(addrs[0]), compare_addr);
	for (i = 0; i < count; i += run) {
		run = 1;
		while (i + run < count && addrs[i + run] == addrs[i] + run)
			run++;
		buf_readahead(dir->i_fs->fs_cache, &dir->i_bufs, addrs[i], run);
	}
}

/*
 * Leaves that are read ahead: few at the start of a listing, which may end
 * soon, and from then on as many as a device likes to have at once.
 */
#define LEAVES_FIRST 16u
#define LEAVES_MAX 256u
/* Slots of the table to look at, many of which can stand for one leaf. */
#define SLOTS_MAX 4096u

static bool in_memory(struct inode *dir, uint64_t addr)
{
	struct buf *b = buf_peek(dir->i_fs->fs_cache, addr);

	buf_put(b);
	return b;
}

void dir_ahead_leaves(struct inode *dir, uint32_t index)
{
	unsigned leaves = index ? LEAVES_MAX : LEAVES_FIRST;
	uint64_t end =
		UG_MIN(1ull << dir->i_depth, (uint64_t)index + SLOTS_MAX);
	uint64_t addrs[LEAVES_MAX], addr, last = 0;
	unsigned count = 0;

	for (; index < end && leaves; index++) {
		if (dir_table_leaf(dir, index, false, &addr))
			break;
		if (addr == last)
			continue;
		if (!last && in_memory(dir, addr))
			return;
		last = addr;
		leaves--;
		if (rgrps_valid_block(dir->i_fs, addr) && !in_memory(dir, addr))
			addrs[count++] = addr;
	}
	dir_ahead_read(dir, addrs, count);
}
