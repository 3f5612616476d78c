/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * mkfs_image.h - a volume being made: its blocks, its inodes, its directories.
 *
 * Blocks are given out in ascending order, the first free one each time, and
 * never taken back; so the used blocks of each group are always its first
 * ones. Metadata that still changes (dinodes, directories, small files) is
 * kept in memory and handed to the sink at the end; journals and quota change
 * files, which are large, go straight through.
 *
 * Without a sink everything is computed and nothing is handed out: that is
 * how it is known beforehand that the volume will fit.
 *
 * One thread. Source: docs/spec/gfs2-ondisk.md 2.2, 2.3.
 */
#ifndef UG_TOOLS_MKFS_IMAGE_H
#define UG_TOOLS_MKFS_IMAGE_H

#include "tools/mkfs_plan.h"

/* Takes one block, borrowed for the call; an error ends the making. */
struct mkfs_sink {
	int (*put)(void *arg, uint64_t addr, const void *block);
	/* May be NULL: journal k is about to be written. */
	void (*journal)(void *arg, unsigned k);
	void *arg;
};

/* What makes one volume different from the next of the same plan. */
struct mkfs_identity {
	char lockproto[GFS2_LOCKNAME_LEN];
	char locktable[GFS2_LOCKNAME_LEN];
	uint8_t uuid[16];
	int64_t time_sec; /* of all inodes */
	uint64_t seed;	  /* of the first sequence numbers of the journals */
};

struct mkfs_block; /* a block in memory */

struct mkfs_image {
	const struct mkfs_plan *plan;
	const struct gfs2_geom *geom;
	const struct mkfs_identity *identity;
	const struct mkfs_sink *sink; /* or NULL */
	uint64_t next_formal;
	uint32_t *used;	   /* blocks of each group */
	uint32_t group;	   /* none before it has room */
	uint64_t *dinodes; /* addresses; ascending but for the journals' */
	size_t dinode_count, dinode_room;
	struct mkfs_block *blocks; /* ascending */
	size_t block_count, block_room;
};

struct mkfs_inum {
	uint64_t formal;
	uint64_t addr;
};

/*
 * An image with nothing but its groups, all free except what the journals
 * will take. plan, identity and sink are borrowed until mkfs_image_close().
 * 0 or -ENOMEM.
 */
int mkfs_image_open(const struct mkfs_plan *plan,
		    const struct mkfs_identity *identity,
		    const struct mkfs_sink *sink, struct mkfs_image *image);
void mkfs_image_close(struct mkfs_image *image);

/* The next free block. 0 or -ENOSPC. */
int mkfs_alloc(struct mkfs_image *image, uint64_t *addr);

/* That addr is a dinode, for the bitmap. 0 or -ENOMEM. */
int mkfs_note_dinode(struct mkfs_image *image, uint64_t addr);

/* A zeroed block kept in memory until the end; ascending addresses. */
int mkfs_block_new(struct mkfs_image *image, uint64_t addr, void **block);

/* A block kept in memory. The address stays valid until mkfs_image_close(). */
void *mkfs_block_get(struct mkfs_image *image, uint64_t addr);

/* Hand out one block, if there is a sink. */
int mkfs_emit(struct mkfs_image *image, uint64_t addr, const void *block);

/* Hand out what is kept in memory, then the headers and bitmaps of groups. */
int mkfs_emit_blocks(struct mkfs_image *image);
int mkfs_emit_groups(struct mkfs_image *image);

/* Totals over the groups as they are now. */
void mkfs_totals(const struct mkfs_image *image, struct gfs2_statfs_info *sc);

/* ---- inodes: mkfs_inode.c ---------------------------------------------- */

/*
 * A new inode without contents, in memory: mode, flags and nlink as in 2.2.
 * 0, -ENOSPC, -ENOMEM.
 */
int mkfs_inode_new(struct mkfs_image *image, uint32_t mode, uint32_t flags,
		   struct mkfs_inum *inum);

/* Read and write the fields of a dinode in memory. */
void mkfs_inode_load(struct mkfs_image *image, uint64_t addr,
		     struct gfs2_dinode_info *di);
void mkfs_inode_store(struct mkfs_image *image,
		      const struct gfs2_dinode_info *di);

/*
 * One more block for the inode: *addr, counted in di, in memory and zeroed.
 */
int mkfs_inode_add_block(struct mkfs_image *image, struct gfs2_dinode_info *di,
			 uint64_t *addr, void **block);

/*
 * The block of contents lblock, made with all that leads to it if it is not
 * there; meta: one with a header (of a hash table). di is changed, and not
 * stored. Contents that were in the dinode move to block 0.
 */
int mkfs_inode_map(struct mkfs_image *image, struct gfs2_dinode_info *di,
		   uint64_t lblock, bool meta, void **block);

/* Append to a regular file. */
int mkfs_file_append(struct mkfs_image *image, uint64_t addr, const void *data,
		     uint32_t len);

/* Make sure that the block of byte offset is allocated; size is not changed. */
int mkfs_file_reserve(struct mkfs_image *image, uint64_t addr, uint64_t offset);

/* ---- directories: mkfs_dir.c ------------------------------------------- */

/* A new directory, which is its own parent when parent is NULL. */
int mkfs_dir_new(struct mkfs_image *image, uint32_t mode, uint32_t flags,
		 const struct mkfs_inum *parent, struct mkfs_inum *inum);

/* Enter name for inum of this mode. 0, -ENOSPC, -ENOMEM. */
int mkfs_dir_add(struct mkfs_image *image, uint64_t dir, const char *name,
		 const struct mkfs_inum *inum, uint32_t mode);

/* ---- the system files: mkfs_files.c ------------------------------------ */

struct mkfs_result {
	struct mkfs_inum master;
	struct mkfs_inum root;
	struct gfs2_statfs_info totals;
};

/*
 * Everything but the superblock, in the order of 2.3, handed to the sink if
 * there is one. 0, -ENOSPC, -ENOMEM, or what the sink returned.
 */
int mkfs_make_volume(const struct mkfs_plan *plan,
		     const struct mkfs_identity *identity,
		     const struct mkfs_sink *sink, struct mkfs_result *result);

/* The superblock that belongs to it: 512 bytes. */
void mkfs_make_sb(const struct mkfs_plan *plan,
		  const struct mkfs_identity *identity,
		  const struct mkfs_result *result, void *block_512);

#endif
