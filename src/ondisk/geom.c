/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * geom.c - what follows from the block size, and the shape of pointer trees.
 *
 *   dinode [0 .. diptrs)       height 3: path[0]
 *            |
 *         IN block [0 .. inptrs)         path[1]
 *            |
 *         IN block [0 .. inptrs)         path[2]
 *            |
 *         data block
 *
 * All levels below the dinode branch inptrs ways, so a path is the logical
 * block number written in base inptrs, with what is left over as the index
 * in the dinode. Source: docs/spec/gfs2-ondisk.md 1.1, 3.5.
 */
#include <errno.h>

#include "base/checked.h"
#include "ondisk/codec.h"

static uint32_t ptrs_behind(uint32_t bsize, size_t header)
{
	return (bsize - (uint32_t)header) / (uint32_t)sizeof(be64);
}

/*
 * Bytes that a tree of each height can map, until the number overflows: that
 * height maps everything, and is the last one anybody needs.
 */
static void geom_init_heights(struct gfs2_geom *geom)
{
	uint64_t *size = geom->size_at_height;
	unsigned h = 1;

	size[0] = geom->stuffed_max;
	size[1] = (uint64_t)geom->bsize * geom->diptrs;
	while (ug_mul_u64(size[h], geom->inptrs, &size[h + 1]))
		h++;
	geom->height_max = h + 1;
	for (h = geom->height_max; h <= GFS2_HEIGHT_MAX; h++)
		size[h] = UINT64_MAX;
}

int gfs2_geom_init(struct gfs2_geom *geom, uint32_t bsize)
{
	if (!ug_is_power_of_2(bsize) || bsize < GFS2_BSIZE_MIN ||
	    bsize > GFS2_BSIZE_MAX)
		return -EINVAL;

	*geom = (struct gfs2_geom){
		.bsize = bsize,
		.bshift = ug_log2_u64(bsize),
		.diptrs = ptrs_behind(bsize, sizeof(struct gfs2_dinode)),
		.inptrs = ptrs_behind(bsize, sizeof(struct gfs2_meta_header)),
		.ldptrs =
			ptrs_behind(bsize, sizeof(struct gfs2_log_descriptor)),
		.jbsize = bsize - (uint32_t)sizeof(struct gfs2_meta_header),
		.stuffed_max = bsize - (uint32_t)sizeof(struct gfs2_dinode),
		.hash_ptrs = bsize / 2 / (uint32_t)sizeof(be64),
	};
	geom->hash_depth_min = ug_log2_u64(geom->hash_ptrs);
	geom->qc_per_block =
		geom->jbsize / (uint32_t)sizeof(struct gfs2_quota_change);
	geom->rg_blocks_first =
		GFS2_NBBY * (bsize - (uint32_t)sizeof(struct gfs2_rgrp));
	geom->rg_blocks_next = GFS2_NBBY * geom->jbsize;
	geom_init_heights(geom);
	return 0;
}

int gfs2_height_for(const struct gfs2_geom *geom, uint64_t lblock)
{
	if (lblock > (uint64_t)INT64_MAX >> geom->bshift)
		return -EFBIG;
	for (unsigned h = 1; h < geom->height_max; h++)
		if (lblock < geom->size_at_height[h] >> geom->bshift)
			return (int)h;
	return (int)geom->height_max;
}

unsigned gfs2_tree_path(const struct gfs2_geom *geom, unsigned height,
			uint64_t lblock, uint16_t path[GFS2_HEIGHT_MAX])
{
	if (height == 0 || height > geom->height_max)
		return 0;
	for (unsigned level = height - 1; level > 0; level--) {
		path[level] = (uint16_t)(lblock % geom->inptrs);
		lblock /= geom->inptrs;
	}
	if (lblock >= geom->diptrs)
		return 0;
	path[0] = (uint16_t)lblock;
	return height;
}
