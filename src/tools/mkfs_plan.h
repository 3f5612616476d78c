/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * mkfs_plan.h - where everything of a new volume goes: sizes, journals, groups.
 *
 *   | unused | SB | group of journal 0 | group of journal 1 | group | group ...
 *   0       64K   journals, each just large enough           for files
 *
 * Pure but for the memory of the list of groups. The plan for given wishes and
 * a given device is that of mkfs.gfs2, block for block.
 * Source: docs/spec/gfs2-ondisk.md 2.3, 6.2, 10.1.
 */
#ifndef UG_TOOLS_MKFS_PLAN_H
#define UG_TOOLS_MKFS_PLAN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "ondisk/codec.h"

#define MKFS_JOURNALS_MAX 1000u /* "journal" and three digits: 2.2 */
#define MKFS_JSIZE_MIN_MB 8u
#define MKFS_JSIZE_MAX_MB 1024u
#define MKFS_RGSIZE_MIN_MB 32u
#define MKFS_RGSIZE_MAX_MB 2048u
#define MKFS_QCSIZE_MIN_MB 1u
#define MKFS_QCSIZE_MAX_MB 64u
#define MKFS_GROUPS_MAX (1u << 20)

/* What the user asked for; 0 is "choose for me" everywhere. */
struct mkfs_wishes {
	uint32_t bsize;	      /* bytes; default 4096 */
	uint32_t format;      /* default 1802 */
	unsigned journals;    /* default 1 */
	unsigned jsize_mb;    /* default by the size of the volume */
	unsigned rgsize_mb;   /* default 256 */
	unsigned qcsize_mb;   /* default 1 */
	uint64_t size_blocks; /* default: the whole device */
	bool no_align;	      /* ignore stripes, given or probed */
	uint64_t sunit_bytes; /* stripe unit and width: both or none */
	uint64_t swidth_bytes;
};

/* What the device is; the last three are 0 where it does not say. */
struct mkfs_device {
	uint64_t size_bytes;
	uint32_t sector_bytes;
	uint32_t physical_bytes;
	uint32_t io_min_bytes;
	uint32_t io_opt_bytes;
};

struct mkfs_plan {
	struct gfs2_geom geom;
	uint32_t format;
	unsigned journals;
	unsigned jsize_mb;
	unsigned rgsize_mb;
	unsigned qcsize_mb;
	uint64_t device_blocks; /* or as many as were asked for */
	uint64_t fs_blocks;	/* end of the last group */
	uint32_t jblocks;	/* of one journal's contents */
	uint32_t jtotal;	/* with dinode and pointer blocks */
	uint64_t sunit;		/* blocks; 0: groups are not aligned */
	uint64_t swidth;
	struct gfs2_rindex_info *groups; /* journal k is in group k */
	uint32_t group_count;
};

/*
 * Returns 0; -EINVAL a wish outside its limits or against another; -ENOSPC the
 * volume would not fit; -EFBIG more groups than MKFS_GROUPS_MAX; -ENOMEM. On
 * error why says what was found and what was expected. mkfs_plan_free()
 * releases what a plan holds.
 */
int mkfs_plan_make(const struct mkfs_wishes *wishes,
		   const struct mkfs_device *device, struct mkfs_plan *plan,
		   char *why, size_t why_len);
void mkfs_plan_free(struct mkfs_plan *plan);

/* The default size of a journal when each has this many blocks of volume. */
unsigned mkfs_default_jsize_mb(uint32_t bsize, uint64_t blocks_per_journal);

/* Pointer levels of a journal, from the one below the dinode to its data. */
struct mkfs_journal_shape {
	unsigned height;
	/* count[h] blocks at level h + 1; the last level is the data. */
	uint32_t count[GFS2_HEIGHT_MAX];
	uint32_t total; /* all levels and the dinode */
};

void mkfs_journal_shape(const struct gfs2_geom *geom, uint32_t jblocks,
			struct mkfs_journal_shape *shape);

#endif
