/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * mkfs_inode.c - inodes of a volume being made, and the growth of their trees.
 *
 * Blocks are allocated in the order in which mkfs.gfs2 does it, which the
 * addresses of a volume show: the contents' block when it is first needed, the
 * pointer blocks on the way to it right before.
 * Source: docs/spec/gfs2-ondisk.md 3.1, 3.5, 3.6.
 */
#include <errno.h>
#include <string.h>
#include <sys/stat.h>

#include "base/assert.h"
#include "tools/mkfs_image.h"

int mkfs_inode_new(struct mkfs_image *image, uint32_t mode, uint32_t flags,
		   struct mkfs_inum *inum)
{
	struct gfs2_time now = { .sec = image->identity->time_sec };
	struct gfs2_dinode_info di = {
		.mode = mode,
		.flags = flags,
		.nlink = S_ISDIR(mode) ? 2 : 1,
		.blocks = 1,
		.atime = now,
		.mtime = now,
		.ctime = now,
	};
	void *block;
	int err;

	err = mkfs_alloc(image, &di.addr);
	if (!err)
		err = mkfs_note_dinode(image, di.addr);
	if (!err)
		err = mkfs_block_new(image, di.addr, &block);
	if (err)
		return err;
	di.formal = image->next_formal++;
	di.goal_meta = di.goal_data = di.addr;
	mkfs_inode_store(image, &di);
	*inum = (struct mkfs_inum){ di.formal, di.addr };
	return 0;
}

void mkfs_inode_load(struct mkfs_image *image, uint64_t addr,
		     struct gfs2_dinode_info *di)
{
	int err = gfs2_dinode_decode(image->geom, mkfs_block_get(image, addr),
				     addr, di, NULL, 0);

	ug_assert(err == 0); /* it is our own */
}

void mkfs_inode_store(struct mkfs_image *image,
		      const struct gfs2_dinode_info *di)
{
	gfs2_dinode_encode(di, mkfs_block_get(image, di->addr));
}

int mkfs_inode_add_block(struct mkfs_image *image, struct gfs2_dinode_info *di,
			 uint64_t *addr, void **block)
{
	int err = mkfs_alloc(image, addr);

	if (!err)
		err = mkfs_block_new(image, *addr, block);
	if (err)
		return err;
	di->blocks++;
	di->goal_meta = *addr;
	return 0;
}

/* Height 0 to 1: what was in the dinode moves to a block of its own. */
static int unstuff(struct mkfs_image *image, struct gfs2_dinode_info *di,
		   bool meta)
{
	void *dinode = mkfs_block_get(image, di->addr);
	void *area = gfs2_dinode_area(dinode);
	uint64_t addr = 0;
	uint8_t *block;
	void *fresh;
	int err;

	if (di->size > 0) {
		err = mkfs_inode_add_block(image, di, &addr, &fresh);
		if (err)
			return err;
		block = fresh;
		if (meta) {
			gfs2_meta_init(block, GFS2_METATYPE_JD);
			block += sizeof(struct gfs2_meta_header);
		}
		memcpy(block, area, di->size);
	}
	memset(area, 0, image->geom->stuffed_max);
	gfs2_dinode_ptrs(dinode)[0] = be64_of(addr);
	di->height = 1;
	return 0;
}

/* One level more: the dinode's pointers move to a block below it. */
static int grow(struct mkfs_image *image, struct gfs2_dinode_info *di)
{
	void *dinode = mkfs_block_get(image, di->addr);
	size_t bytes = image->geom->diptrs * sizeof(be64);
	uint64_t addr;
	void *block;
	int err;

	err = mkfs_inode_add_block(image, di, &addr, &block);
	if (err)
		return err;
	gfs2_meta_init(block, GFS2_METATYPE_IN);
	memcpy(gfs2_indirect_ptrs(block), gfs2_dinode_ptrs(dinode), bytes);
	memset(gfs2_dinode_area(dinode), 0, image->geom->stuffed_max);
	gfs2_dinode_ptrs(dinode)[0] = be64_of(addr);
	di->height++;
	return 0;
}

/* Where *ptr leads; made if it leads nowhere. type NONE: plain contents. */
static int follow(struct mkfs_image *image, struct gfs2_dinode_info *di,
		  be64 *ptr, enum gfs2_metatype type, void **block)
{
	uint64_t addr = be64_get(*ptr);
	int err;

	if (addr) {
		*block = mkfs_block_get(image, addr);
		return 0;
	}
	err = mkfs_inode_add_block(image, di, &addr, block);
	if (err)
		return err;
	if (type != GFS2_METATYPE_NONE)
		gfs2_meta_init(*block, type);
	*ptr = be64_of(addr);
	return 0;
}

int mkfs_inode_map(struct mkfs_image *image, struct gfs2_dinode_info *di,
		   uint64_t lblock, bool meta, void **block)
{
	int height = gfs2_height_for(image->geom, lblock);
	uint16_t path[GFS2_HEIGHT_MAX];
	be64 *ptrs;
	int err = 0;

	if (height < 0)
		return height;
	if (di->height == 0)
		err = unstuff(image, di, meta);
	while (!err && di->height < height)
		err = grow(image, di);
	if (err)
		return err;

	gfs2_tree_path(image->geom, di->height, lblock, path);
	ptrs = gfs2_dinode_ptrs(mkfs_block_get(image, di->addr));
	for (unsigned level = 0; !err && level < di->height; level++) {
		enum gfs2_metatype type = GFS2_METATYPE_IN;

		if (level + 1u == di->height)
			type = meta ? GFS2_METATYPE_JD : GFS2_METATYPE_NONE;
		err = follow(image, di, &ptrs[path[level]], type, block);
		if (!err)
			ptrs = gfs2_indirect_ptrs(*block);
	}
	return err;
}

/* One piece of an append that does not cross a block. */
static int append_piece(struct mkfs_image *image, struct gfs2_dinode_info *di,
			const void *data, uint32_t len)
{
	uint32_t bsize = image->geom->bsize;
	void *block;
	int err;

	err = mkfs_inode_map(image, di, di->size / bsize, false, &block);
	if (err)
		return err;
	memcpy((char *)block + di->size % bsize, data, len);
	di->size += len;
	return 0;
}

int mkfs_file_append(struct mkfs_image *image, uint64_t addr, const void *data,
		     uint32_t len)
{
	uint32_t bsize = image->geom->bsize;
	struct gfs2_dinode_info di;
	const char *p = data;
	int err = 0;

	mkfs_inode_load(image, addr, &di);
	if (di.height == 0 && di.size + len <= image->geom->stuffed_max) {
		char *area = gfs2_dinode_area(mkfs_block_get(image, addr));

		memcpy(area + di.size, data, len);
		di.size += len;
		len = 0;
	}
	while (!err && len > 0) {
		uint32_t left = bsize - (uint32_t)(di.size % bsize);
		uint32_t piece = UG_MIN(len, left);

		err = append_piece(image, &di, p, piece);
		p += piece;
		len -= piece;
	}
	mkfs_inode_store(image, &di);
	return err;
}

int mkfs_file_reserve(struct mkfs_image *image, uint64_t addr, uint64_t offset)
{
	struct gfs2_dinode_info di;
	void *block;
	int err;

	mkfs_inode_load(image, addr, &di);
	if (di.height == 0 && offset < image->geom->stuffed_max)
		return 0;
	err = mkfs_inode_map(image, &di, offset >> image->geom->bshift, false,
			     &block);
	mkfs_inode_store(image, &di);
	return err;
}
