/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * logmap.h - where on the device the blocks of one journal are.
 *
 * A journal is a file, normally one extent. The file system (or a tool) reads
 * its pointer tree once and hands the result down as a sorted list of
 * extents. Pure.
 */
#ifndef UG_JOURNAL_LOGMAP_H
#define UG_JOURNAL_LOGMAP_H

#include <stdbool.h>
#include <stdint.h>

struct logmap_extent {
	uint32_t lblock; /* first journal block */
	uint32_t count;
	uint64_t addr; /* its block address on the device */
};

struct logmap {
	uint32_t blocks; /* journal blocks in all */
	unsigned extents_count;
	struct logmap_extent *extents; /* ascending, no gap; owned */
};

void logmap_init(struct logmap *map);
/*
 * Append; merges with the last extent where it continues it. 0; -ENOMEM; -EFBIG
 * if the journal would have 2^32 blocks or more.
 */
int logmap_add(struct logmap *map, uint64_t addr, uint32_t count);
void logmap_fini(struct logmap *map);

/*
 * Device address of journal block lblock (< map->blocks); *run is set to how
 * many blocks follow contiguously, this one included.
 */
uint64_t logmap_addr(const struct logmap *map, uint32_t lblock, uint32_t *run);

/* Is this device address a block of the journal? Linear in the extents. */
bool logmap_contains(const struct logmap *map, uint64_t addr);

#endif
