/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * tree_map.c - from a logical block of an inode to its place on the device.
 *
 *   dinode [ p0 p1 ... ]            path[0] chooses here
 *            |
 *          IN [ p0 p1 ... ]         path[1]
 *               |
 *             IN [ p0 p1 ... ]      path[height - 1]: data (or table) blocks
 *
 * A pointer of 0 is a hole as large as everything that could hang below it.
 * Nothing is remembered between calls: the pointer blocks are in the buffer
 * cache, and a walk costs one look-up per level. One call answers for as many
 * blocks as the pointer block at hand shows, so that a long extent takes one
 * walk per pointer block.
 * Source: docs/spec/gfs2-ondisk.md 3.5, 3.6.
 */
#include <errno.h>
#include <stdlib.h>

#include "fs/rgrp.h"
#include "fs/tree.h"

/* Logical blocks below one pointer of the given level (0: the dinode's). */
static uint64_t slot_span(const struct gfs2_geom *geom, unsigned height,
			  unsigned level)
{
	uint64_t span = 1;

	for (unsigned i = level + 1; i < height; i++)
		span *= geom->inptrs;
	return span;
}

/*
 * A pointer out of the groups would let us read, and worse write, where no
 * file data is. At mount the journals and the index are read before the groups
 * are known: then the device's end has to do.
 */
static int check_pointer(struct inode *ip, uint64_t holder, uint64_t ptr)
{
	struct fs *fs = ip->i_fs;

	if (fs->fs_rgrps ? rgrps_valid_block(fs, ptr) : ptr < fs->fs_blocks)
		return 0;
	return fs_bad_block(fs, holder, "inode %llu: pointer to block %llu",
			    (unsigned long long)ip->i_addr,
			    (unsigned long long)ptr);
}

/* Slots from first on that are 0, at most max. */
static uint64_t count_holes(const be64 *ptrs, unsigned first, unsigned end,
			    uint64_t max)
{
	uint64_t n = 1;

	while (n < max && first + n < end && !ptrs[first + n].raw)
		n++;
	return n;
}

/* Slots from first on that continue its block, at most max. */
static uint32_t count_extent(const be64 *ptrs, unsigned first, unsigned end,
			     uint32_t max)
{
	uint64_t ptr = be64_get(ptrs[first]);
	uint32_t n = 1;

	while (n < max && first + n < end &&
	       be64_get(ptrs[first + n]) == ptr + n)
		n++;
	return n;
}

/*
 * A hole found at slot first of a block of this level: it reaches to the next
 * pointer that is set.
 */
static void run_hole(const struct gfs2_geom *geom, unsigned height,
		     unsigned level, const be64 *ptrs, unsigned first,
		     uint64_t lblock, uint32_t max, struct tree_run *run)
{
	uint64_t span = slot_span(geom, height, level);
	unsigned end = level ? geom->inptrs : geom->diptrs;
	uint64_t slots =
		count_holes(ptrs, first, end, UG_DIV_UP(max, span) + 1);
	uint64_t blocks = slots * span - lblock % span;

	run->pblock = 0;
	run->count = (uint32_t)UG_MIN(blocks, (uint64_t)max);
}

static int run_mapped(struct inode *ip, uint64_t holder, const be64 *ptrs,
		      unsigned first, unsigned end, uint32_t max,
		      struct tree_run *run)
{
	uint64_t ptr = be64_get(ptrs[first]);
	uint32_t n = count_extent(ptrs, first, end, max);
	int err = check_pointer(ip, holder, ptr);

	if (!err && n > 1)
		err = check_pointer(ip, holder, ptr + n - 1);
	if (err)
		return err;
	run->pblock = ptr;
	run->count = n;
	return 0;
}

/* Step from a pointer block (given up) to the one its slot points to. */
static int descend(struct inode *ip, uint64_t ptr, bool nowait, struct buf **bp)
{
	struct buf *child;
	int err = check_pointer(ip, (*bp)->b_blkno, ptr);

	if (!err)
		err = inode_meta(ip, ptr, GFS2_METATYPE_IN, nowait, &child);
	buf_put(*bp);
	*bp = err ? NULL : child;
	return err;
}

int tree_map(struct inode *ip, uint64_t lblock, uint32_t max, bool nowait,
	     struct tree_run *run)
{
	const struct gfs2_geom *geom = &ip->i_fs->fs_geom;
	unsigned height = ip->i_height, level = 0;
	uint16_t path[GFS2_HEIGHT_MAX];
	const be64 *ptrs;
	struct buf *b;
	int err;

	if (!height || !gfs2_tree_path(geom, height, lblock, path)) {
		*run = (struct tree_run){ .pblock = 0, .count = max };
		return 0;
	}
	err = inode_dibuf(ip, nowait, &b);
	if (err)
		return err;
	ptrs = gfs2_dinode_ptrs(b->b_data);
	while (ptrs[path[level]].raw && level + 1 < height) {
		err = descend(ip, be64_get(ptrs[path[level]]), nowait, &b);
		if (err)
			return err;
		level++;
		ptrs = gfs2_indirect_ptrs(b->b_data);
	}
	if (ptrs[path[level]].raw)
		err = run_mapped(ip, b->b_blkno, ptrs, path[level],
				 level ? geom->inptrs : geom->diptrs, max, run);
	else
		run_hole(geom, height, level, ptrs, path[level], lblock, max,
			 run);
	buf_put(b);
	return err;
}

/*
 * Pointer blocks on all ways to the range in a tree tall enough for it, and
 * those of growing it. Of the chain that growing makes, at most the blocks on
 * the way to the range are counted twice.
 */
static uint32_t pointer_blocks(const struct inode *ip, uint64_t lblock,
			       uint32_t count)
{
	const struct gfs2_geom *geom = &ip->i_fs->fs_geom;
	unsigned have = UG_MAX(ip->i_height, 1);
	uint64_t first = lblock, last = lblock + count - 1, n = 0;
	int need = gfs2_height_for(geom, last);
	unsigned height = need < 0 ? geom->height_max : (unsigned)need;

	if (height > have)
		n = height - have;
	else
		height = have;
	for (unsigned level = 1; level < height; level++) {
		first /= geom->inptrs;
		last /= geom->inptrs;
		n += last - first + 1;
	}
	return (uint32_t)n;
}

uint32_t tree_meta_max(const struct inode *ip, uint64_t lblock, uint32_t count)
{
	return pointer_blocks(ip, lblock, count);
}

unsigned tree_trans_blocks(const struct inode *ip, uint64_t lblock,
			   uint32_t count)
{
	return pointer_blocks(ip, lblock, count);
}

/* Takes the reference over, also on error. */
static int set_add(struct tree_set *set, struct buf *b)
{
	if (set->ts_count == set->ts_cap) {
		unsigned cap = UG_MAX(2 * set->ts_cap, 8u);
		struct buf **bufs =
			realloc(set->ts_bufs, cap * sizeof(*set->ts_bufs));

		if (!bufs) {
			buf_put(b);
			return -ENOMEM;
		}
		set->ts_bufs = bufs;
		set->ts_cap = cap;
	}
	set->ts_bufs[set->ts_count++] = b;
	return 0;
}

/*
 * Reference the pointer blocks on the way to lblock as far as there are any.
 * seen: what the way to the block before has met at each level, so that a
 * shared block enters the set once.
 */
static int prepare_path(struct inode *ip, uint64_t lblock, bool nowait,
			uint64_t seen[GFS2_HEIGHT_MAX], struct tree_set *set)
{
	const struct gfs2_geom *geom = &ip->i_fs->fs_geom;
	uint16_t path[GFS2_HEIGHT_MAX];
	const be64 *ptrs;
	struct buf *b;
	int err;

	if (!gfs2_tree_path(geom, ip->i_height, lblock, path))
		return 0;
	err = inode_dibuf(ip, nowait, &b);
	if (err)
		return err;
	ptrs = gfs2_dinode_ptrs(b->b_data);
	for (unsigned level = 0; level + 1u < ip->i_height; level++) {
		uint64_t ptr = be64_get(ptrs[path[level]]);

		if (!ptr)
			break;
		err = descend(ip, ptr, nowait, &b);
		if (err)
			return err;
		ptrs = gfs2_indirect_ptrs(b->b_data);
		if (seen[level] == ptr)
			continue;
		seen[level] = ptr;
		err = set_add(set, buf_ref(b));
		if (err)
			break;
	}
	buf_put(b);
	return err;
}

int tree_prepare(struct inode *ip, uint64_t lblock, uint32_t count, bool nowait,
		 struct tree_set *set)
{
	const struct gfs2_geom *geom = &ip->i_fs->fs_geom;
	uint64_t seen[GFS2_HEIGHT_MAX] = { 0 };
	uint64_t end = lblock + count;

	if (ip->i_height < 2)
		return 0;
	while (lblock < end) {
		int err = prepare_path(ip, lblock, nowait, seen, set);

		if (err)
			return err;
		lblock += geom->inptrs - lblock % geom->inptrs;
	}
	return 0;
}

void tree_set_release(struct tree_set *set)
{
	for (unsigned i = 0; i < set->ts_count; i++)
		buf_put(set->ts_bufs[i]);
	free(set->ts_bufs);
	*set = (struct tree_set){ 0 };
}
