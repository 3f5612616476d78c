/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * dir_hash.c - the table of a hashed directory: 2^depth addresses of leaves.
 *
 * It is the contents of the directory as a file: within the dinode while it
 * fits there, which only the smallest table does; else in blocks of type JD
 * below the pointer tree, each with a header and geom->inptrs addresses, so
 * that slot i is number i % inptrs of logical block i / inptrs.
 *
 * Growing by k bits writes each old address 2^k times in a row. From the last
 * slot down this works in place: what slot i needs is at i >> k, which is not
 * above i, and still untouched. A crash leaves the old table or the new one:
 * all of it is one transaction.
 * Source: docs/spec/gfs2-ondisk.md 3.9, 4.5, 4.8.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/assert.h"
#include "fs/dir_block.h"

static int check_shape(struct inode *dir, uint32_t index)
{
	if (ug_likely(dir->i_size == (uint64_t)sizeof(be64) << dir->i_depth &&
		      index >> dir->i_depth == 0))
		return 0;
	return fs_bad_block(dir->i_fs, dir->i_addr,
			    "directory: size is %" PRIu64
			    ", which is no table of depth %u",
			    dir->i_size, dir->i_depth);
}

/* A block of the table. */
static int table_block(struct inode *dir, uint32_t lblock, bool nowait,
		       struct buf **bp)
{
	struct tree_run run;
	int err;

	err = tree_map(dir, lblock, 1, nowait, &run);
	if (err)
		return err;
	if (ug_unlikely(run.pblock == 0))
		return fs_bad_block(dir->i_fs, dir->i_addr,
				    "directory: its table has no block %u",
				    lblock);
	return inode_meta(dir, run.pblock, GFS2_METATYPE_JD, nowait, bp);
}

int dir_table_get(struct inode *dir, uint32_t index, bool nowait,
		  uint64_t *addr)
{
	const uint32_t per = dir->i_fs->fs_geom.inptrs;
	struct buf *b;
	int err;

	err = check_shape(dir, index);
	if (err)
		return err;
	if (inode_is_stuffed(dir)) {
		err = inode_dibuf(dir, nowait, &b);
		if (err)
			return err;
		*addr = be64_get(gfs2_dinode_ptrs(b->b_data)[index]);
	} else {
		err = table_block(dir, index / per, nowait, &b);
		if (err)
			return err;
		*addr = be64_get(gfs2_indirect_ptrs(b->b_data)[index % per]);
	}
	buf_put(b);
	return 0;
}

int dir_table_leaf(struct inode *dir, uint32_t index, bool nowait,
		   uint64_t *addr)
{
	int err = dir_table_get(dir, index, nowait, addr);

	if (ug_likely(err || *addr))
		return err;
	return fs_bad_block(dir->i_fs, dir->i_addr,
			    "directory: slot %u of its table is empty", index);
}

/* ---- before the transaction ---- */

/* Read blocks [first, first + count) of the table in few requests. */
static void table_ahead(struct inode *dir, uint32_t first, uint32_t count)
{
	struct tree_run run;
	uint32_t i;

	for (i = 0; i < count; i += run.count) {
		if (tree_map(dir, first + i, count - i, false, &run))
			return;
		if (run.pblock)
			buf_readahead(dir->i_fs->fs_cache, &dir->i_bufs,
				      run.pblock, run.count);
	}
}

static int table_read(struct inode *dir, uint32_t count, bool nowait,
		      struct dir_plan *plan)
{
	uint32_t i;
	int err = 0;

	if (!nowait && count > 1)
		table_ahead(dir, plan->dp_first, count);
	for (i = 0; i < count && !err; i++)
		err = table_block(dir, plan->dp_first + i, nowait,
				  &plan->dp_table[i]);
	return err;
}

int dir_table_plan(struct inode *dir, uint32_t first, uint32_t count,
		   bool nowait, struct dir_plan *plan)
{
	const struct gfs2_geom *geom = &dir->i_fs->fs_geom;
	uint32_t last = (first + count - 1) / geom->inptrs;
	uint32_t blocks = 0; /* to read */
	bool grows = !dir_is_hashed(dir) || plan->dp_depth > dir->i_depth;

	plan->dp_first = grows ? 0 : first / geom->inptrs;
	if (dir_is_hashed(dir) && !inode_is_stuffed(dir))
		blocks = grows ? dir_table_blocks(geom, dir->i_depth)
			       : last - plan->dp_first + 1;
	plan->dp_count = blocks;
	if (grows && plan->dp_depth > geom->hash_depth_min)
		plan->dp_count = dir_table_blocks(geom, plan->dp_depth);
	if (!plan->dp_count)
		return 0;
	plan->dp_table = calloc(plan->dp_count, sizeof(*plan->dp_table));
	if (!plan->dp_table)
		return -ENOMEM;
	return table_read(dir, blocks, nowait, plan);
}

/* ---- within the transaction ---- */

/* Where slot index is; its block is in the plan. */
static be64 *slot_at(const struct inode *dir, const struct dir_plan *plan,
		     uint32_t index)
{
	const uint32_t per = dir->i_fs->fs_geom.inptrs;
	struct buf *b = plan->dp_table[index / per - plan->dp_first];

	return &gfs2_indirect_ptrs(b->b_data)[index % per];
}

void dir_table_set(struct trans *tr, struct inode *dir, struct buf *dibuf,
		   const struct dir_plan *plan, uint32_t first, uint32_t count,
		   uint64_t addr)
{
	const uint32_t per = dir->i_fs->fs_geom.inptrs;
	uint32_t i;

	if (inode_is_stuffed(dir)) {
		trans_add_meta(tr, dibuf);
		for (i = first; i < first + count; i++)
			gfs2_dinode_ptrs(dibuf->b_data)[i] = be64_of(addr);
		return;
	}
	for (i = first; i < first + count; i++) {
		if (i == first || i % per == 0)
			trans_add_meta(
				tr, plan->dp_table[i / per - plan->dp_first]);
		*slot_at(dir, plan, i) = be64_of(addr);
	}
}

/* One new block of the table, zeroed. */
static int table_block_new(struct trans *tr, struct inode *dir, uint64_t pblock,
			   struct buf **bp)
{
	int err = buf_new(dir->i_fs->fs_cache, &dir->i_bufs, pblock, bp);

	if (err)
		return err;
	/* First the header, since the journal stamps its number there. */
	gfs2_meta_init((*bp)->b_data, GFS2_METATYPE_JD);
	trans_add_meta(tr, *bp);
	return 0;
}

/* Blocks [have, dp_count) of the table, and the tree above them. */
static int table_extend(struct trans *tr, struct inode *dir, struct buf *dibuf,
			struct dir_plan *plan, struct rgrp_hold *hold,
			uint32_t have)
{
	while (have < plan->dp_count) {
		uint64_t start;
		uint32_t i, n;
		int err = 0;

		ug_assert(hold->rh_blocks > 0);
		n = rgrp_alloc(tr, hold, dir, plan->dp_count - have, &start);
		for (i = 0; i < n && !err; i++)
			err = table_block_new(tr, dir, start + i,
					      &plan->dp_table[have + i]);
		if (!err)
			err = tree_insert(tr, dir, dibuf, hold, have, start, n);
		if (err)
			return err;
		have += n;
	}
	return 0;
}

/* The table leaves the dinode; its addresses go to old. */
static void table_unstuff(struct trans *tr, struct inode *dir,
			  struct buf *dibuf, be64 *old)
{
	trans_add_meta(tr, dibuf);
	memcpy(old, gfs2_dinode_ptrs(dibuf->b_data),
	       sizeof(be64) << dir->i_depth);
	memset(gfs2_dinode_area(dibuf->b_data), 0,
	       dir->i_fs->fs_geom.stuffed_max);
	dir->i_height = 1;
}

int dir_table_grow(struct trans *tr, struct inode *dir, struct buf *dibuf,
		   struct dir_plan *plan, struct rgrp_hold *hold)
{
	const unsigned bits = plan->dp_depth - dir->i_depth;
	const bool stuffed = inode_is_stuffed(dir);
	be64 old[GFS2_BSIZE_MAX / sizeof(be64)];
	uint32_t have = 0, i;
	int err;

	if (stuffed)
		table_unstuff(tr, dir, dibuf, old);
	else
		have = dir_table_blocks(&dir->i_fs->fs_geom, dir->i_depth);
	err = table_extend(tr, dir, dibuf, plan, hold, have);
	if (err)
		return err;
	for (i = 0; i < have; i++)
		trans_add_meta(tr, plan->dp_table[i]);
	for (i = 1u << plan->dp_depth; i-- > 0;)
		*slot_at(dir, plan, i) =
			stuffed ? old[i >> bits]
				: *slot_at(dir, plan, i >> bits);
	dir->i_depth = plan->dp_depth;
	dir->i_size = (uint64_t)sizeof(be64) << dir->i_depth;
	dir->i_disksize = dir->i_size;
	return 0;
}
