/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * dir_block.h - leaves and table of a directory: what the dir_*.c share.
 *
 * Locks as in dir.h.
 */
#ifndef UG_FS_DIR_BLOCK_H
#define UG_FS_DIR_BLOCK_H

#include "fs/dir.h"

/* The part of a block in which entries lie. */
struct dir_area {
	void *da_start;
	uint32_t da_len;
};

static inline bool dir_is_hashed(const struct inode *dir)
{
	return dir->i_flags & GFS2_DIF_EXHASH;
}

static inline struct dir_area dir_dinode_area(const struct inode *dir,
					      struct buf *b)
{
	return (struct dir_area){ gfs2_dinode_area(b->b_data),
				  dir->i_fs->fs_geom.stuffed_max };
}

static inline struct dir_area dir_leaf_area(const struct inode *dir,
					    struct buf *b)
{
	return (struct dir_area){ gfs2_leaf_area(b->b_data),
				  gfs2_leaf_area_len(&dir->i_fs->fs_geom) };
}

/* Blocks of a table of this depth outside the dinode. */
static inline uint32_t dir_table_blocks(const struct gfs2_geom *geom,
					unsigned depth)
{
	return UG_DIV_UP(1u << depth, geom->inptrs);
}

/*
 * A leaf of the directory, referenced, its header decoded. -EAGAIN with nowait,
 * -EUCLEAN (no leaf, outside the groups, deeper than the table), -EIO, -ENOMEM.
 */
int dir_leaf_get(struct inode *dir, uint64_t addr, bool nowait, struct buf **bp,
		 struct gfs2_leaf_info *leaf);

/* Log that a record of this block is wrong; -EUCLEAN. */
int dir_bad_record(struct inode *dir, const struct buf *b);

/*
 * A chain of leaves may not be longer than the directory has blocks: counts
 * one step, and finds a chain that bites its tail (-EUCLEAN).
 */
int dir_chain_step(struct inode *dir, uint64_t addr, uint64_t *steps);

/*
 * The address that slot index of the table holds (may be 0). -EAGAIN with
 * nowait, -EUCLEAN (size does not fit the depth, a hole in the table), -EIO.
 */
int dir_table_get(struct inode *dir, uint32_t index, bool nowait,
		  uint64_t *addr);

/* The same, where 0 is an error: the first leaf of the slot's chain. */
int dir_table_leaf(struct inode *dir, uint32_t index, bool nowait,
		   uint64_t *addr);

/*
 * Reference the table blocks that hold slots [first, first + count), with room
 * in plan->dp_table for those of a table of plan->dp_depth. A table within the
 * dinode: nothing but that room. Errors as dir_table_get, and -ENOMEM.
 */
int dir_table_plan(struct inode *dir, uint32_t first, uint32_t count,
		   bool nowait, struct dir_plan *plan);

/* Let slots [first, first + count) point to addr. */
void dir_table_set(struct trans *tr, struct inode *dir, struct buf *dibuf,
		   const struct dir_plan *plan, uint32_t first, uint32_t count,
		   uint64_t addr);

/*
 * Make the table as deep as planned: every pointer now stands in
 * 2^(dp_depth - i_depth) slots. Out of the dinode if need be. -EUCLEAN,
 * -ENOMEM: withdraw.
 */
int dir_table_grow(struct trans *tr, struct inode *dir, struct buf *dibuf,
		   struct dir_plan *plan, struct rgrp_hold *hold);

#endif
