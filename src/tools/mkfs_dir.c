/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * mkfs_dir.c - directories of a volume being made.
 *
 * Two hold names for every journal, so with many journals or small blocks they
 * outgrow their dinode and become hashed like any other directory.
 * Source: docs/spec/gfs2-ondisk.md 4.3 to 4.8.
 */
#include <errno.h>
#include <string.h>
#include <sys/stat.h>

#include "base/assert.h"
#include "tools/mkfs_image.h"

int mkfs_dir_new(struct mkfs_image *image, uint32_t mode, uint32_t flags,
		 const struct mkfs_inum *parent, struct mkfs_inum *inum)
{
	uint32_t len = image->geom->stuffed_max;
	struct gfs2_dinode_info di;
	void *block;
	int err;

	err = mkfs_inode_new(image, mode, flags, inum);
	if (err)
		return err;
	if (!parent)
		parent = inum;
	block = mkfs_block_get(image, inum->addr);
	gfs2_dirent_init_dir(gfs2_dinode_area(block), len, inum->formal,
			     inum->addr, parent->formal, parent->addr);
	mkfs_inode_load(image, inum->addr, &di);
	di.size = len;
	di.entries = 2;
	di.payload_format = GFS2_FORMAT_DE;
	mkfs_inode_store(image, &di);
	return 0;
}

/* ---- the hash table ---------------------------------------------------- */

static bool table_is_stuffed(const struct gfs2_dinode_info *di)
{
	return di->height == 0;
}

/* Slot of the table, wherever it is; it exists. */
static be64 *table_slot(struct mkfs_image *image, struct gfs2_dinode_info *di,
			uint32_t index)
{
	uint32_t per_block = image->geom->inptrs;
	void *block;
	int err;

	if (table_is_stuffed(di))
		return &gfs2_dinode_ptrs(
			mkfs_block_get(image, di->addr))[index];
	err = mkfs_inode_map(image, di, index / per_block, true, &block);
	ug_assert(err == 0);
	return &gfs2_indirect_ptrs(block)[index % per_block];
}

/* All blocks that a table of this many slots needs. */
static int table_allocate(struct mkfs_image *image, struct gfs2_dinode_info *di,
			  uint32_t slots)
{
	uint32_t per_block = image->geom->inptrs;
	void *block;
	int err = 0;

	if (slots * sizeof(be64) <= image->geom->stuffed_max)
		return 0;
	for (uint32_t i = 0; !err && i * per_block < slots; i++)
		err = mkfs_inode_map(image, di, i, true, &block);
	return err;
}

/* Every slot becomes two: from the end, so that none is overwritten unread. */
static int table_double(struct mkfs_image *image, struct gfs2_dinode_info *di)
{
	uint32_t slots = 1u << di->depth;
	int err;

	if (di->depth >= GFS2_HASH_DEPTH_MAX)
		return -ENOSPC;
	err = table_allocate(image, di, 2 * slots);
	if (err)
		return err;
	for (uint32_t i = 2 * slots; i-- > 0;)
		*table_slot(image, di, i) = *table_slot(image, di, i / 2);
	di->depth++;
	di->size = (uint64_t)sizeof(be64) << di->depth;
	return 0;
}

/* ---- leaves ------------------------------------------------------------ */

static int leaf_new(struct mkfs_image *image, struct gfs2_dinode_info *di,
		    uint16_t depth, uint64_t *addr, void **block)
{
	struct gfs2_leaf_info leaf = { .depth = depth, .inode = di->addr };
	int err = mkfs_inode_add_block(image, di, addr, block);

	if (!err)
		gfs2_leaf_init(image->geom, &leaf, *block);
	return err;
}

static void leaf_add_entries(struct mkfs_image *image, void *block, int change)
{
	struct gfs2_leaf_info leaf;
	int err = gfs2_leaf_decode(image->geom, block, &leaf);

	ug_assert(err == 0);
	leaf.entries = (uint16_t)(leaf.entries + change);
	gfs2_leaf_encode(&leaf, block);
}

/* 4.6: the records move as they are; the last one reaches further now. */
static int make_hashed(struct mkfs_image *image, struct gfs2_dinode_info *di)
{
	const uint32_t grown =
		sizeof(struct gfs2_dinode) - sizeof(struct gfs2_leaf);
	char *area = gfs2_dinode_area(mkfs_block_get(image, di->addr));
	uint32_t len = image->geom->stuffed_max, off = 0, last = 0;
	struct gfs2_dirent *de;
	char *leaf_area;
	uint64_t addr;
	void *block;
	int err;

	err = leaf_new(image, di, 0, &addr, &block);
	if (err)
		return err;
	leaf_area = gfs2_leaf_area(block);
	memcpy(leaf_area, area, len);
	while (off < len) {
		last = off;
		de = (struct gfs2_dirent *)(leaf_area + off);
		off += be16_get(de->de_rec_len);
	}
	de = (struct gfs2_dirent *)(leaf_area + last);
	de->de_rec_len = be16_of((uint16_t)(be16_get(de->de_rec_len) + grown));
	leaf_add_entries(image, block, (int)di->entries);

	memset(area, 0, len);
	for (uint32_t i = 0; i < image->geom->hash_ptrs; i++)
		((be64 *)area)[i] = be64_of(addr);
	di->flags |= GFS2_DIF_EXHASH;
	di->depth = (uint16_t)image->geom->hash_depth_min;
	di->size = (uint64_t)sizeof(be64) << di->depth;
	di->payload_format = 0;
	return 0;
}

/* The entries of from whose hash is below divider move to the leaf to. */
static void move_lower(struct mkfs_image *image, void *from, void *to,
		       uint32_t divider)
{
	uint32_t len = gfs2_leaf_area_len(image->geom), off = 0, prev = 0;
	char *area = gfs2_leaf_area(from);
	int moved = 0;

	while (off < len) {
		struct gfs2_dirent *de = (struct gfs2_dirent *)(area + off);
		uint32_t next = off + be16_get(de->de_rec_len);
		uint32_t hash = be32_get(de->de_hash);

		if (gfs2_dirent_is_sentinel(de) || hash >= divider) {
			prev = off;
			off = next;
			continue;
		}
		gfs2_dirent_insert(
			gfs2_leaf_area(to), len, gfs2_dirent_name(de),
			be16_get(de->de_name_len), hash,
			be64_get(de->de_inum.no_formal_ino),
			be64_get(de->de_inum.no_addr), be16_get(de->de_type));
		gfs2_dirent_delete(area, len, off, prev);
		moved++;
		off = next;
	}
	leaf_add_entries(image, to, moved);
	leaf_add_entries(image, from, -moved);
}

/* 4.7: the new leaf takes the lower half of the hashes. */
static int split(struct mkfs_image *image, struct gfs2_dinode_info *di,
		 uint32_t index, void *old)
{
	struct gfs2_leaf_info leaf;
	uint32_t run, start;
	uint64_t addr;
	void *fresh;
	int err;

	err = gfs2_leaf_decode(image->geom, old, &leaf);
	ug_assert(err == 0);
	run = 1u << (di->depth - leaf.depth);
	start = index & ~(run - 1);
	leaf.depth++;
	err = leaf_new(image, di, leaf.depth, &addr, &fresh);
	if (err)
		return err;
	gfs2_leaf_encode(&leaf, old);
	for (uint32_t i = 0; i < run / 2; i++)
		*table_slot(image, di, start + i) = be64_of(addr);
	move_lower(image, old, fresh,
		   (uint32_t)(start + run / 2) << (32 - di->depth));
	return 0;
}

static int add_hashed(struct mkfs_image *image, struct gfs2_dinode_info *di,
		      const char *name, uint32_t hash,
		      const struct mkfs_inum *inum, uint16_t type)
{
	uint32_t len = gfs2_leaf_area_len(image->geom);
	unsigned name_len = (unsigned)strlen(name);

	for (;;) {
		uint32_t index = gfs2_hash_index(hash, di->depth);
		struct gfs2_leaf_info leaf;
		void *block;
		int err;

		block = mkfs_block_get(image,
				       be64_get(*table_slot(image, di, index)));
		if (gfs2_dirent_insert(gfs2_leaf_area(block), len, name,
				       name_len, hash, inum->formal, inum->addr,
				       type)) {
			leaf_add_entries(image, block, 1);
			return 0;
		}
		err = gfs2_leaf_decode(image->geom, block, &leaf);
		if (!err && leaf.depth < di->depth)
			err = split(image, di, index, block);
		else if (!err)
			err = table_double(image, di);
		if (err)
			return err;
	}
}

int mkfs_dir_add(struct mkfs_image *image, uint64_t dir, const char *name,
		 const struct mkfs_inum *inum, uint32_t mode)
{
	unsigned name_len = (unsigned)strlen(name);
	uint32_t hash = gfs2_name_hash(name, name_len);
	uint16_t type = (uint16_t)(mode >> 12);
	struct gfs2_dinode_info di;
	int err = 0;

	mkfs_inode_load(image, dir, &di);
	if (!(di.flags & GFS2_DIF_EXHASH)) {
		void *area = gfs2_dinode_area(mkfs_block_get(image, dir));

		if (!gfs2_dirent_insert(area, image->geom->stuffed_max, name,
					name_len, hash, inum->formal,
					inum->addr, type))
			err = make_hashed(image, &di);
	}
	if (!err && (di.flags & GFS2_DIF_EXHASH))
		err = add_hashed(image, &di, name, hash, inum, type);
	if (!err) {
		di.entries++;
		di.nlink += S_ISDIR(mode) ? 1 : 0;
	}
	mkfs_inode_store(image, &di);
	return err;
}
