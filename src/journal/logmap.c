/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * logmap.c - where on the device the blocks of one journal are.
 *
 * A sorted array; the common journal is one extent, found without a search.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/assert.h"
#include "journal/logmap.h"

void logmap_init(struct logmap *map)
{
	memset(map, 0, sizeof(*map));
}

void logmap_fini(struct logmap *map)
{
	free(map->extents);
	logmap_init(map);
}

static bool continues_last(const struct logmap *map, uint64_t addr)
{
	const struct logmap_extent *last;

	if (!map->extents_count)
		return false;
	last = &map->extents[map->extents_count - 1];
	return last->addr + last->count == addr;
}

/* Capacities are the powers of two. */
static int logmap_reserve(struct logmap *map)
{
	unsigned n = map->extents_count;
	struct logmap_extent *extents;

	if (n & (n - 1))
		return 0;
	extents = realloc(map->extents,
			  (n ? 2ul * n : 1) * sizeof(*map->extents));
	if (!extents)
		return -ENOMEM;
	map->extents = extents;
	return 0;
}

int logmap_add(struct logmap *map, uint64_t addr, uint32_t count)
{
	uint32_t blocks;

	if (!count)
		return 0;
	if (__builtin_add_overflow(map->blocks, count, &blocks))
		return -EFBIG;
	if (continues_last(map, addr)) {
		map->extents[map->extents_count - 1].count += count;
	} else {
		if (logmap_reserve(map))
			return -ENOMEM;
		map->extents[map->extents_count++] = (struct logmap_extent){
			.lblock = map->blocks,
			.count = count,
			.addr = addr,
		};
	}
	map->blocks = blocks;
	return 0;
}

uint64_t logmap_addr(const struct logmap *map, uint32_t lblock, uint32_t *run)
{
	unsigned low = 0, high = map->extents_count;
	const struct logmap_extent *extent;

	ug_assert(lblock < map->blocks);
	/* The last extent that does not begin behind lblock. */
	while (high - low > 1) {
		unsigned middle = low + (high - low) / 2;

		if (map->extents[middle].lblock <= lblock)
			low = middle;
		else
			high = middle;
	}
	extent = &map->extents[low];
	*run = extent->count - (lblock - extent->lblock);
	return extent->addr + (lblock - extent->lblock);
}

bool logmap_contains(const struct logmap *map, uint64_t addr)
{
	for (unsigned i = 0; i < map->extents_count; i++) {
		const struct logmap_extent *extent = &map->extents[i];

		if (addr >= extent->addr && addr - extent->addr < extent->count)
			return true;
	}
	return false;
}
