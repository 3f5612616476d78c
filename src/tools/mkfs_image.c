/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * mkfs_image.c - blocks of a volume being made.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/assert.h"
#include "tools/mkfs_image.h"

struct mkfs_block {
	uint64_t addr;
	void *data;
};

int mkfs_image_open(const struct mkfs_plan *plan,
		    const struct mkfs_identity *identity,
		    const struct mkfs_sink *sink, struct mkfs_image *image)
{
	*image = (struct mkfs_image){
		.plan = plan,
		.geom = &plan->geom,
		.identity = identity,
		.sink = sink,
		.next_formal = 1,
	};
	image->used = calloc(plan->group_count, sizeof(*image->used));
	if (!image->used)
		return -ENOMEM;
	for (unsigned k = 0; k < plan->journals; k++)
		image->used[k] = plan->jtotal;
	return 0;
}

void mkfs_image_close(struct mkfs_image *image)
{
	for (size_t i = 0; i < image->block_count; i++)
		free(image->blocks[i].data);
	free(image->blocks);
	free(image->dinodes);
	free(image->used);
	*image = (struct mkfs_image){ .plan = NULL };
}

int mkfs_alloc(struct mkfs_image *image, uint64_t *addr)
{
	const struct mkfs_plan *plan = image->plan;

	for (; image->group < plan->group_count; image->group++) {
		const struct gfs2_rindex_info *ri = &plan->groups[image->group];
		uint32_t *used = &image->used[image->group];

		if (*used < ri->data) {
			*addr = ri->data0 + (*used)++;
			return 0;
		}
	}
	return -ENOSPC;
}

/* Room for one more element of size bytes; doubles as it grows. */
static int make_room(void **array, size_t count, size_t *room, size_t size)
{
	size_t more = *room ? 2 * *room : 64;
	void *bigger;

	if (count < *room)
		return 0;
	bigger = reallocarray(*array, more, size);
	if (!bigger)
		return -ENOMEM;
	*array = bigger;
	*room = more;
	return 0;
}

int mkfs_note_dinode(struct mkfs_image *image, uint64_t addr)
{
	void *array = image->dinodes;
	int err = make_room(&array, image->dinode_count, &image->dinode_room,
			    sizeof(*image->dinodes));

	image->dinodes = array;
	if (!err)
		image->dinodes[image->dinode_count++] = addr;
	return err;
}

int mkfs_block_new(struct mkfs_image *image, uint64_t addr, void **block)
{
	void *array = image->blocks;
	void *data = calloc(1, image->geom->bsize);
	int err;

	if (!data)
		return -ENOMEM;
	err = make_room(&array, image->block_count, &image->block_room,
			sizeof(*image->blocks));
	image->blocks = array;
	if (err) {
		free(data);
		return err;
	}
	ug_assert(image->block_count == 0 ||
		  image->blocks[image->block_count - 1].addr < addr);
	image->blocks[image->block_count++] =
		(struct mkfs_block){ .addr = addr, .data = data };
	*block = data;
	return 0;
}

static int compare_addr(const void *key, const void *element)
{
	uint64_t addr = *(const uint64_t *)key;
	const struct mkfs_block *block = element;

	return addr < block->addr ? -1 : addr > block->addr;
}

void *mkfs_block_get(struct mkfs_image *image, uint64_t addr)
{
	struct mkfs_block *block;

	block = bsearch(&addr, image->blocks, image->block_count,
			sizeof(*image->blocks), compare_addr);
	ug_assert(block);
	return block->data;
}

int mkfs_emit(struct mkfs_image *image, uint64_t addr, const void *block)
{
	if (!image->sink)
		return 0;
	return image->sink->put(image->sink->arg, addr, block);
}

int mkfs_emit_blocks(struct mkfs_image *image)
{
	int err = 0;

	for (size_t i = 0; !err && i < image->block_count; i++)
		err = mkfs_emit(image, image->blocks[i].addr,
				image->blocks[i].data);
	return err;
}

/* ---- groups ------------------------------------------------------------ */

/* How many of the dinodes are in group ri. */
static uint32_t count_dinodes(const struct mkfs_image *image,
			      const struct gfs2_rindex_info *ri)
{
	uint32_t n = 0;

	for (size_t i = 0; i < image->dinode_count; i++)
		n += image->dinodes[i] - ri->data0 < ri->data;
	return n;
}

static void make_header(const struct mkfs_image *image, uint32_t g, void *block)
{
	const struct mkfs_plan *plan = image->plan;
	const struct gfs2_rindex_info *ri = &plan->groups[g];
	struct gfs2_rgrp_info rg = {
		.free = ri->data - image->used[g],
		.data0 = ri->data0,
		.data = ri->data,
		.bitbytes = ri->bitbytes,
	};

	if (image->used[g])
		rg.dinodes = count_dinodes(image, ri);
	if (g + 1 < plan->group_count)
		rg.skip = (uint32_t)(ri[1].addr - ri->addr);
	gfs2_rgrp_encode(&rg, block);
}

/* The first blocks used, those among them that are dinodes marked as such. */
static void make_bitmap(const struct mkfs_image *image, uint32_t g,
			unsigned index, uint8_t *block)
{
	const struct gfs2_rindex_info *ri = &image->plan->groups[g];
	uint32_t first, count, used;
	unsigned start;

	gfs2_rgrp_bitmap_span(image->geom, ri, index, &start, &first, &count);
	used = image->used[g] > first ? image->used[g] - first : 0;
	used = UG_MIN(used, count);
	for (uint32_t n = 0; n < used; n++)
		gfs2_bitmap_set(block, start + n / GFS2_NBBY, n % GFS2_NBBY * 2,
				GFS2_BLKST_USED);
	for (size_t i = 0; used && i < image->dinode_count; i++) {
		uint64_t n = image->dinodes[i] - ri->data0 - first;

		if (n < count)
			gfs2_bitmap_set(block, start + (unsigned)n / GFS2_NBBY,
					n % GFS2_NBBY * 2, GFS2_BLKST_DINODE);
	}
}

int mkfs_emit_groups(struct mkfs_image *image)
{
	uint8_t *block = malloc(image->geom->bsize);
	int err = block ? 0 : -ENOMEM;

	for (uint32_t g = 0; !err && g < image->plan->group_count; g++) {
		const struct gfs2_rindex_info *ri = &image->plan->groups[g];

		for (unsigned i = 0; !err && i < ri->length; i++) {
			memset(block, 0, image->geom->bsize);
			if (i == 0)
				make_header(image, g, block);
			else
				gfs2_meta_init(block, GFS2_METATYPE_RB);
			make_bitmap(image, g, i, block);
			err = mkfs_emit(image, ri->addr + i, block);
		}
	}
	free(block);
	return err;
}

void mkfs_totals(const struct mkfs_image *image, struct gfs2_statfs_info *sc)
{
	*sc = (struct gfs2_statfs_info){
		.dinodes = (int64_t)image->dinode_count,
	};
	for (uint32_t g = 0; g < image->plan->group_count; g++) {
		uint32_t data = image->plan->groups[g].data;

		sc->total += data;
		sc->free += data - image->used[g];
	}
}
