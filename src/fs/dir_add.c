/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * dir_add.c - adding a name as planned, within the caller's transaction.
 *
 * All steps, from the first leaf of a directory to the last split, are one
 * transaction: a crash leaves the directory as it was, or with the new name.
 *
 *   convert   linear -> one leaf of depth 0, in all slots of a first table
 *   grow      the table, at once to the depth of the last split
 *   split     leaf of depth d -> two of depth d + 1; the new one takes the
 *             lower half of the hashes and of the slots
 *   chain     an empty leaf behind the last one
 *   pack      move the records together
 *   insert
 *
 * Source: docs/spec/gfs2-ondisk.md 4.4, 4.6 to 4.8.
 */
#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "base/assert.h"
#include "fs/dir_block.h"

/* What every step needs. */
struct dir_adder {
	struct trans *tr;
	struct inode *dir;
	struct buf *dibuf;
	struct dir_plan *plan;
	struct rgrp_hold *hold;
	struct fs_time now;
};

/* ---- records in a row ---- */

struct dir_packer {
	struct dir_area area;
	uint32_t last; /* offset of the last record ... */
	uint32_t end;  /* ... and where its own bytes end */
	uint16_t count;
};

static void packer_init(struct dir_packer *p, struct dir_area area)
{
	gfs2_dirent_init_area(area.da_start, area.da_len);
	*p = (struct dir_packer){ .area = area };
}

/*
 * Append a copy of a live record; there is room, as all of them came out of
 * an area that is no larger. The last record owns the rest of the area.
 */
static void packer_add(struct dir_packer *p, const struct gfs2_dirent *de)
{
	uint32_t name_len = be16_get(de->de_name_len);
	char *start = p->area.da_start;
	struct gfs2_dirent *last = (struct gfs2_dirent *)(start + p->last);
	struct gfs2_dirent *to = (struct gfs2_dirent *)(start + p->end);

	ug_assert(p->end + GFS2_DIRENT_SIZE(name_len) <= p->area.da_len);
	if (p->count)
		last->de_rec_len = be16_of((uint16_t)(p->end - p->last));
	memcpy(to, de, sizeof(*de) + name_len);
	to->de_rec_len = be16_of((uint16_t)(p->area.da_len - p->end));
	p->last = p->end;
	p->end += GFS2_DIRENT_SIZE(name_len);
	p->count++;
}

/*
 * Deal the records of an area (which is none of the targets) out by hash: those
 * below the divider to lower, the others to upper. -EUCLEAN.
 */
static int deal_out(struct dir_area from, uint64_t divider,
		    struct dir_packer *lower, struct dir_packer *upper)
{
	const struct gfs2_dirent *de;
	uint32_t off;

	for (off = 0; off < from.da_len; off += be16_get(de->de_rec_len)) {
		if (gfs2_dirent_at(from.da_start, from.da_len, off, &de))
			return -EUCLEAN;
		if (gfs2_dirent_is_sentinel(de))
			continue;
		packer_add(be32_get(de->de_hash) < divider ? lower : upper, de);
	}
	return 0;
}

/* ---- leaves ---- */

/* A new empty leaf, in the transaction. */
static int leaf_new(struct dir_adder *a, unsigned depth, uint32_t dist,
		    struct buf **bp)
{
	const struct gfs2_leaf_info leaf = {
		.depth = (uint16_t)depth,
		.inode = a->dir->i_addr,
		.dist = dist,
		.time = { a->now.sec, a->now.nsec },
	};
	uint64_t addr;
	int err;

	ug_assert(a->hold->rh_blocks > 0);
	rgrp_alloc(a->tr, a->hold, a->dir, 1, &addr);
	err = buf_new(a->dir->i_fs->fs_cache, &a->dir->i_bufs, addr, bp);
	if (err)
		return err;
	gfs2_leaf_init(&a->dir->i_fs->fs_geom, &leaf, (*bp)->b_data);
	trans_add_meta(a->tr, *bp);
	return 0;
}

static int leaf_info(struct dir_adder *a, struct buf *b,
		     struct gfs2_leaf_info *leaf)
{
	if (ug_likely(
		    !gfs2_leaf_decode(&a->dir->i_fs->fs_geom, b->b_data, leaf)))
		return 0;
	return fs_bad_block(a->dir->i_fs, b->b_blkno,
			    "directory %" PRIu64 ": wrong leaf header",
			    a->dir->i_addr);
}

/* Set depth and count of entries. */
static int leaf_update(struct dir_adder *a, struct buf *b, unsigned depth,
		       unsigned entries)
{
	struct gfs2_leaf_info leaf;
	int err = leaf_info(a, b, &leaf);

	if (err)
		return err;
	leaf.depth = (uint16_t)depth;
	leaf.entries = (uint16_t)entries;
	leaf.time = (struct gfs2_time){ a->now.sec, a->now.nsec };
	gfs2_leaf_encode(&leaf, b->b_data);
	return 0;
}

/* ---- the steps ---- */

static int convert(struct dir_adder *a)
{
	struct inode *dir = a->dir;
	const struct gfs2_geom *geom = &dir->i_fs->fs_geom;
	struct dir_packer p;
	struct buf *leaf;
	int err;

	err = leaf_new(a, 0, 1, &leaf);
	if (err)
		return err;
	buf_put(a->plan->dp_block); /* the dinode */
	a->plan->dp_block = leaf;
	packer_init(&p, dir_leaf_area(dir, leaf));
	err = deal_out(dir_dinode_area(dir, a->dibuf), UINT64_MAX, &p, &p);
	if (err)
		return dir_bad_record(dir, a->dibuf);
	err = leaf_update(a, leaf, 0, p.count);
	if (err)
		return err;
	trans_add_meta(a->tr, a->dibuf);
	memset(gfs2_dinode_area(a->dibuf->b_data), 0, geom->stuffed_max);
	dir->i_flags |= GFS2_DIF_EXHASH;
	dir->i_depth = (uint16_t)geom->hash_depth_min;
	dir->i_size = (uint64_t)sizeof(be64) << dir->i_depth;
	dir->i_disksize = dir->i_size;
	dir_table_set(a->tr, dir, a->dibuf, a->plan, 0, 1u << dir->i_depth,
		      leaf->b_blkno);
	return 0;
}

/* Split dp_block; dp_block is then the half that the name belongs to. */
static int split(struct dir_adder *a)
{
	struct inode *dir = a->dir;
	struct dir_plan *plan = a->plan;
	char copy[GFS2_BSIZE_MAX];
	struct dir_area from = dir_leaf_area(dir, plan->dp_block);
	struct dir_packer lower, upper;
	struct gfs2_leaf_info leaf;
	struct buf *low;
	uint32_t half, first;
	uint64_t divider;
	int err;

	err = leaf_info(a, plan->dp_block, &leaf);
	if (err)
		return err;
	ug_assert(leaf.depth < dir->i_depth);
	half = 1u << (dir->i_depth - leaf.depth - 1);
	first = gfs2_hash_index(plan->dp_hash, dir->i_depth) & ~(2 * half - 1);
	divider = (uint64_t)(first + half) << (32 - dir->i_depth);
	err = leaf_new(a, leaf.depth + 1u, 1, &low);
	if (err)
		return err;
	trans_add_meta(a->tr, plan->dp_block);
	memcpy(copy, from.da_start, from.da_len);
	packer_init(&lower, dir_leaf_area(dir, low));
	packer_init(&upper, from);
	from.da_start = copy;
	err = deal_out(from, divider, &lower, &upper);
	if (!err)
		err = leaf_update(a, low, leaf.depth + 1u, lower.count);
	if (!err)
		err = leaf_update(a, plan->dp_block, leaf.depth + 1u,
				  upper.count);
	dir_table_set(a->tr, dir, a->dibuf, plan, first, half, low->b_blkno);
	if (plan->dp_hash < divider) {
		buf_put(plan->dp_block);
		plan->dp_block = low;
	} else {
		buf_put(low);
	}
	return err;
}

/* An empty leaf behind last, which is dp_block from now on. */
static int chain(struct dir_adder *a, struct buf *last)
{
	struct gfs2_leaf_info leaf;
	struct buf *b;
	int err;

	err = leaf_info(a, last, &leaf);
	if (err)
		return err;
	/* Old leaves do not say how far from the table they are. */
	err = leaf_new(a, leaf.depth, leaf.dist ? leaf.dist + 1 : 0, &b);
	if (err)
		return err;
	trans_add_meta(a->tr, last);
	leaf.next = b->b_blkno;
	gfs2_leaf_encode(&leaf, last->b_data);
	buf_put(a->plan->dp_block);
	a->plan->dp_block = b;
	return 0;
}

static int pack(struct dir_adder *a, struct buf *b, struct dir_area area)
{
	char copy[GFS2_BSIZE_MAX];
	const struct dir_area from = { copy, area.da_len };
	struct dir_packer p;

	trans_add_meta(a->tr, b);
	memcpy(copy, area.da_start, area.da_len);
	packer_init(&p, area);
	if (deal_out(from, UINT64_MAX, &p, &p))
		return dir_bad_record(a->dir, b);
	return 0;
}

static int insert(struct dir_adder *a, const char *name, size_t len,
		  uint64_t formal, uint64_t addr, uint32_t mode)
{
	struct inode *dir = a->dir;
	struct buf *b = a->plan->dp_block;
	bool hashed = dir_is_hashed(dir);
	struct dir_area area =
		hashed ? dir_leaf_area(dir, b) : dir_dinode_area(dir, b);
	struct gfs2_leaf_info leaf;
	int err = 0;

	trans_add_meta(a->tr, b);
	if (a->plan->dp_pack)
		err = pack(a, b, area);
	if (err)
		return err;
	if (!gfs2_dirent_insert(area.da_start, area.da_len, name, (unsigned)len,
				a->plan->dp_hash, formal, addr,
				(uint16_t)((mode & S_IFMT) >> 12)))
		return dir_bad_record(dir, b);
	if (!hashed)
		return 0;
	err = leaf_info(a, b, &leaf);
	if (!err)
		err = leaf_update(a, b, leaf.depth, leaf.entries + 1u);
	return err;
}

/* Everything between the plan and a block with room. */
static int make_room(struct dir_adder *a)
{
	struct dir_plan *plan = a->plan;
	unsigned i;
	int err = 0;

	if (plan->dp_convert)
		err = convert(a);
	if (!err && plan->dp_depth > a->dir->i_depth)
		err = dir_table_grow(a->tr, a->dir, a->dibuf, plan, a->hold);
	for (i = 0; i < plan->dp_splits && !err; i++)
		err = split(a);
	if (!err && plan->dp_chain)
		/* The end of the chain that was, or the leaf just split. */
		err = chain(a, plan->dp_block ? plan->dp_block : plan->dp_last);
	return err;
}

int dir_add(struct trans *tr, struct inode *dir, struct buf *dibuf,
	    struct dir_plan *plan, struct rgrp_hold *hold, const char *name,
	    size_t len, uint64_t formal, uint64_t addr, uint32_t mode)
{
	struct dir_adder a = {
		.tr = tr,
		.dir = dir,
		.dibuf = dibuf,
		.plan = plan,
		.hold = hold,
		.now = fs_now(),
	};
	int err;

	err = make_room(&a);
	if (!err)
		err = insert(&a, name, len, formal, addr, mode);
	if (err)
		return err;
	dir->i_entries++;
	dir->i_mtime = a.now;
	dir->i_ctime = a.now;
	inode_log(tr, dir, dibuf);
	return 0;
}
