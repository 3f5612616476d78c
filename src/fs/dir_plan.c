/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * dir_plan.c - what adding a name will do to a directory, found out before.
 *
 *   the name's block has room ----------------------------> insert
 *        | no
 *   it has, once its records are moved together ----------> pack, insert
 *        | no
 *   it is the dinode: all entries into a leaf of depth 0
 *        |
 *   split the leaf, go on with the half that the name belongs to, until that
 *   half has room; the table grows to the depth of the last split
 *        |                                     |
 *   at depth 17 there is still no room         +----------> insert
 *        |
 *   a further leaf at the end of the chain ---------------> insert
 *
 * How often to split is computed rather than tried: an entry stays on the
 * name's side as long as their hashes agree in the leading bits. So one pass
 * over the block gives the bytes on that side for each depth, and the blocks
 * to reserve are exact but for the pointer tree, where they are an upper bound.
 * Splitting packs both halves, hence bytes are all that counts.
 *
 * A leaf that has a chain is never split, as in the kernel; chains begin at
 * depth 17 only. Source: docs/spec/gfs2-ondisk.md 4.4 to 4.8.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "fs/dir_block.h"

struct add_name {
	uint32_t hash;
	unsigned len;
	uint32_t size; /* of its record */
};

/*
 * bytes[d]: what the live records occupy whose hash agrees with the name's in
 * the first d bits (bytes[0]: all).
 */
static int measure(struct inode *dir, struct buf *b, struct dir_area area,
		   const struct add_name *an,
		   uint32_t bytes[GFS2_HASH_DEPTH_MAX + 1])
{
	const struct gfs2_dirent *de;
	uint32_t off, differ;
	unsigned common, d;

	memset(bytes, 0, (GFS2_HASH_DEPTH_MAX + 1) * sizeof(bytes[0]));
	for (off = 0; off < area.da_len; off += be16_get(de->de_rec_len)) {
		if (gfs2_dirent_at(area.da_start, area.da_len, off, &de))
			return dir_bad_record(dir, b);
		if (gfs2_dirent_is_sentinel(de))
			continue;
		differ = be32_get(de->de_hash) ^ an->hash;
		common = differ ? (unsigned)__builtin_clz(differ) : 32;
		common = UG_MIN(common, GFS2_HASH_DEPTH_MAX);
		bytes[common] += GFS2_DIRENT_SIZE(be16_get(de->de_name_len));
	}
	for (d = GFS2_HASH_DEPTH_MAX; d > 0; d--)
		bytes[d - 1] += bytes[d];
	return 0;
}

/* Room for the name in this block, perhaps after packing; sets dp_block. */
static int try_block(struct inode *dir, struct buf *b, struct dir_area area,
		     const struct add_name *an, struct dir_plan *plan,
		     uint32_t bytes[GFS2_HASH_DEPTH_MAX + 1])
{
	bool fits = gfs2_dirent_fits(area.da_start, area.da_len, an->len);

	if (!fits) {
		int err = measure(dir, b, area, an, bytes);

		if (err)
			return err;
		if (bytes[0] + an->size > area.da_len)
			return 0;
	}
	plan->dp_pack = !fits;
	plan->dp_block = buf_ref(b);
	return 0;
}

/* From depth on: the first at which the name's side has room, or the limit. */
static unsigned depth_with_room(const struct add_name *an, uint32_t area_len,
				const uint32_t *bytes, unsigned depth)
{
	while (depth < GFS2_HASH_DEPTH_MAX &&
	       bytes[depth] + an->size > area_len)
		depth++;
	return depth;
}

/*
 * The leaf b of this depth will be split until there is room; table: depth of
 * the table as it is then.
 */
static void plan_splits(struct inode *dir, struct buf *b,
			const struct add_name *an, const uint32_t *bytes,
			unsigned depth, unsigned table, struct dir_plan *plan)
{
	uint32_t area_len = gfs2_leaf_area_len(&dir->i_fs->fs_geom);
	unsigned to = depth_with_room(an, area_len, bytes, depth);

	plan->dp_block = buf_ref(b);
	plan->dp_splits = (uint16_t)(to - depth);
	plan->dp_depth = (uint16_t)UG_MAX(table, to);
	plan->dp_chain = bytes[to] + an->size > area_len;
}

/* Blocks that the table has outside the dinode, before and beyond. */
static uint32_t table_blocks_now(const struct inode *dir)
{
	if (!dir_is_hashed(dir) || inode_is_stuffed(dir))
		return 0;
	return dir_table_blocks(&dir->i_fs->fs_geom, dir->i_depth);
}

static uint32_t table_blocks_more(const struct inode *dir,
				  const struct dir_plan *plan)
{
	uint32_t now = table_blocks_now(dir);

	return plan->dp_first + plan->dp_count > now
		       ? plan->dp_first + plan->dp_count - now
		       : 0;
}

/* The blocks to reserve and to count, from what has been decided. */
static void plan_count(struct inode *dir, struct dir_plan *plan)
{
	uint32_t leaves = plan->dp_convert + plan->dp_splits + plan->dp_chain;
	uint32_t now = table_blocks_now(dir);
	uint32_t more = table_blocks_more(dir, plan);

	plan->dp_alloc = leaves + more;
	/* The block itself, or for a chain the one that it is appended to. */
	plan->dp_trans = 1 + leaves + plan->dp_count;
	if (more) {
		plan->dp_alloc += tree_meta_max(dir, now, more);
		plan->dp_trans += tree_trans_blocks(dir, now, more);
	}
}

/*
 * The table: slots of the leaf that is split now (depth: before the splits),
 * or all of it if it grows.
 */
static int plan_table(struct inode *dir, unsigned depth, bool nowait,
		      struct dir_plan *plan)
{
	unsigned bits = dir->i_depth - depth;
	uint32_t first, more;
	int err;

	if (!plan->dp_splits && !plan->dp_convert)
		return 0;
	first = gfs2_hash_index(plan->dp_hash, dir->i_depth) >> bits << bits;
	err = dir_table_plan(dir, first, 1u << bits, nowait, plan);
	more = table_blocks_more(dir, plan);
	if (err || !more)
		return err;
	return tree_prepare(dir, table_blocks_now(dir), more, nowait,
			    &plan->dp_set);
}

static int plan_linear(struct inode *dir, const struct add_name *an,
		       bool nowait, struct dir_plan *plan)
{
	const struct gfs2_geom *geom = &dir->i_fs->fs_geom;
	uint32_t bytes[GFS2_HASH_DEPTH_MAX + 1];
	struct buf *b;
	int err;

	err = inode_dibuf(dir, nowait, &b);
	if (err)
		return err;
	err = try_block(dir, b, dir_dinode_area(dir, b), an, plan, bytes);
	if (!err && !plan->dp_block) {
		plan->dp_convert = true;
		plan_splits(dir, b, an, bytes, 0, geom->hash_depth_min, plan);
		err = plan_table(dir, dir->i_depth, nowait, plan);
	}
	buf_put(b);
	return err;
}

/*
 * Walk the chain that begins at addr: dp_block set if a leaf has room; else
 * dp_last is the last leaf, and first tells of the first one.
 */
static int walk_chain(struct inode *dir, uint64_t addr,
		      const struct add_name *an, bool nowait,
		      struct dir_plan *plan, struct gfs2_leaf_info *first,
		      uint32_t bytes[GFS2_HASH_DEPTH_MAX + 1])
{
	struct gfs2_leaf_info leaf;
	uint64_t steps = 0;
	struct buf *b;
	int err;

	do {
		err = dir_chain_step(dir, addr, &steps);
		if (!err)
			err = dir_leaf_get(dir, addr, nowait, &b, &leaf);
		if (err)
			return err;
		if (steps == 1)
			*first = leaf;
		buf_put(plan->dp_last);
		plan->dp_last = b;
		err = try_block(dir, b, dir_leaf_area(dir, b), an, plan, bytes);
		addr = leaf.next;
	} while (!err && !plan->dp_block && addr);
	return err;
}

static int plan_hashed(struct inode *dir, const struct add_name *an,
		       bool nowait, struct dir_plan *plan)
{
	uint32_t bytes[GFS2_HASH_DEPTH_MAX + 1];
	struct gfs2_leaf_info first = { 0 };
	uint64_t addr;
	int err;

	plan->dp_depth = dir->i_depth;
	err = dir_table_leaf(dir, gfs2_hash_index(an->hash, dir->i_depth),
			     nowait, &addr);
	if (!err)
		err = walk_chain(dir, addr, an, nowait, plan, &first, bytes);
	if (err || plan->dp_block)
		return err;
	if (first.next) {
		plan->dp_chain = true;
		return 0;
	}
	if (bytes[first.depth] != bytes[0])
		return fs_bad_block(dir->i_fs, plan->dp_last->b_blkno,
				    "directory %" PRIu64
				    ": an entry's hash belongs to another leaf",
				    dir->i_addr);
	plan_splits(dir, plan->dp_last, an, bytes, first.depth, dir->i_depth,
		    plan);
	return plan_table(dir, first.depth, nowait, plan);
}

int dir_add_plan(struct inode *dir, const char *name, size_t len, bool nowait,
		 struct dir_plan *plan)
{
	const struct add_name an = {
		.hash = gfs2_name_hash(name, (unsigned)len),
		.len = (unsigned)len,
		.size = GFS2_DIRENT_SIZE(len),
	};
	int err;

	memset(plan, 0, sizeof(*plan));
	if (dir->i_entries == UINT32_MAX)
		return -ENOSPC;
	plan->dp_hash = an.hash;
	if (dir_is_hashed(dir))
		err = plan_hashed(dir, &an, nowait, plan);
	else
		err = plan_linear(dir, &an, nowait, plan);
	if (err)
		dir_plan_release(plan);
	else
		plan_count(dir, plan);
	return err;
}

void dir_plan_release(struct dir_plan *plan)
{
	unsigned i;

	buf_put(plan->dp_block);
	buf_put(plan->dp_last);
	if (plan->dp_table)
		for (i = 0; i < plan->dp_count; i++)
			buf_put(plan->dp_table[i]);
	free(plan->dp_table);
	tree_set_release(&plan->dp_set);
	memset(plan, 0, sizeof(*plan));
}
