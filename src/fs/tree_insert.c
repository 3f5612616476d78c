/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * tree_insert.c - let logical blocks point to places; grow the tree for it.
 *
 * Growing by one level puts one pointer block between the dinode and its
 * pointers:
 *
 *   dinode [ a b c ]        dinode [ X 0 0 ]
 *                     ->             |
 *                               X  [ a b c 0 ... ]
 *
 * This is done also when the old tree has no pointer. It costs a block then,
 * but what was promised to dirty pages at low offsets counts on it: they need
 * no pointer blocks of their own, however tall a write elsewhere has made the
 * tree (pages.c).
 *
 * Everything here happens within one transaction, and all existing pointer
 * blocks have been read before (tree_prepare): after the first change an error
 * would leave a half-made change in memory, which only a withdraw takes back.
 * Source: docs/spec/gfs2-ondisk.md 3.6.
 */
#include <errno.h>
#include <string.h>

#include "base/assert.h"
#include "fs/rgrp.h"
#include "fs/tree.h"

struct insert {
	struct trans *tr;
	struct inode *ip;
	struct buf *dibuf;
	struct rgrp_hold *hold;
};

/* A pointer block without pointers, on a place of the hold. */
static int new_indirect(struct insert *ins, struct buf **bp)
{
	struct inode *ip = ins->ip;
	uint64_t addr;
	int err;

	rgrp_alloc(ins->tr, ins->hold, ip, 1, &addr);
	err = buf_new(ip->i_fs->fs_cache, &ip->i_bufs, addr, bp);
	if (err)
		return err;
	gfs2_meta_init((*bp)->b_data, GFS2_METATYPE_IN);
	trans_add_meta(ins->tr, *bp);
	return 0;
}

static int grow_one_level(struct insert *ins)
{
	const struct gfs2_geom *geom = &ins->ip->i_fs->fs_geom;
	size_t bytes = geom->diptrs * sizeof(be64);
	be64 *dinode_ptrs = gfs2_dinode_ptrs(ins->dibuf->b_data);
	struct buf *b;
	int err = new_indirect(ins, &b);

	if (err)
		return err;
	memcpy(gfs2_indirect_ptrs(b->b_data), dinode_ptrs, bytes);
	memset(dinode_ptrs, 0, bytes);
	dinode_ptrs[0] = be64_of(b->b_blkno);
	ins->ip->i_height++;
	buf_put(b);
	return 0;
}

static int grow_to_reach(struct insert *ins, uint64_t lblock)
{
	int height = gfs2_height_for(&ins->ip->i_fs->fs_geom, lblock);

	if (height < 0)
		return height;
	while (ins->ip->i_height < height) {
		int err = grow_one_level(ins);

		if (err)
			return err;
	}
	return 0;
}

/* From a pointer block (given up) to the child in the slot, made if missing. */
static int step_down(struct insert *ins, struct buf **bp, be64 *slot)
{
	uint64_t ptr = be64_get(*slot);
	struct buf *child;
	int err;

	if (ptr) {
		err = inode_meta(ins->ip, ptr, GFS2_METATYPE_IN, false, &child);
	} else {
		err = new_indirect(ins, &child);
		if (!err) {
			trans_add_meta(ins->tr, *bp);
			*slot = be64_of(child->b_blkno);
		}
	}
	buf_put(*bp);
	*bp = err ? NULL : child;
	return err;
}

/* Set up to count pointers of one bottom block; how many in *done. */
static int set_pointers(struct insert *ins, struct buf *b, be64 *ptrs,
			unsigned first, unsigned end, uint64_t pblock,
			uint32_t count, uint32_t *done)
{
	uint32_t n = UG_MIN(count, (uint32_t)(end - first));

	trans_add_meta(ins->tr, b);
	for (uint32_t i = 0; i < n; i++) {
		be64 *slot = &ptrs[first + i];

		if (slot->raw)
			return fs_bad_block(
				ins->ip->i_fs, b->b_blkno,
				"inode %llu: slot %u holds %llu, not a hole",
				(unsigned long long)ins->ip->i_addr, first + i,
				(unsigned long long)be64_get(*slot));
		*slot = be64_of(pblock + i);
	}
	*done = n;
	return 0;
}

/* As much of the run as the bottom block of its beginning takes. */
static int insert_some(struct insert *ins, uint64_t lblock, uint64_t pblock,
		       uint32_t count, uint32_t *done)
{
	const struct gfs2_geom *geom = &ins->ip->i_fs->fs_geom;
	unsigned height = ins->ip->i_height;
	struct buf *b = buf_ref(ins->dibuf);
	be64 *ptrs = gfs2_dinode_ptrs(b->b_data);
	uint16_t path[GFS2_HEIGHT_MAX];
	unsigned end = geom->diptrs;
	int err;

	gfs2_tree_path(geom, height, lblock, path);
	for (unsigned level = 0; level + 1 < height; level++) {
		err = step_down(ins, &b, &ptrs[path[level]]);
		if (err)
			return err;
		ptrs = gfs2_indirect_ptrs(b->b_data);
		end = geom->inptrs;
	}
	err = set_pointers(ins, b, ptrs, path[height - 1], end, pblock, count,
			   done);
	buf_put(b);
	return err;
}

int tree_insert(struct trans *tr, struct inode *ip, struct buf *dibuf,
		struct rgrp_hold *hold, uint64_t lblock, uint64_t pblock,
		uint32_t count)
{
	struct insert ins = { tr, ip, dibuf, hold };
	int err;

	ug_assert(ip->i_height >= 1);
	err = grow_to_reach(&ins, lblock + count - 1);
	while (!err && count) {
		uint32_t done = 0;

		err = insert_some(&ins, lblock, pblock, count, &done);
		if (err)
			break;
		lblock += done;
		pblock += done;
		count -= done;
	}
	return err;
}
