/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * free_batch.h - blocks of one inode, collected to be freed together.
 *
 * Whoever takes an inode's tree apart adds what he comes by, children before
 * parents; a batch becomes a transaction when a block of another resource group
 * comes, or enough has been collected. Each transaction frees blocks, zeroes
 * the pointers to them and logs the dinode with its block count: a smaller
 * consistent tree. A pointer block that is freed itself in the same transaction
 * needs no zeroing, so freeing a large file hardly logs anything.
 *
 * The caller holds the inode's glock EX, and neither i_lock nor a transaction:
 * at or behind what is being freed nobody else changes pointers.
 * Source: docs/spec/gfs2-ondisk.md 3.7, 6.7.
 */
#ifndef UG_FS_FREE_BATCH_H
#define UG_FS_FREE_BATCH_H

#include "fs/inode.h"
#include "fs/rgrp.h"

#define FREE_EXTENTS_MAX 256u
#define FREE_CUTS_MAX 32u

struct free_extent {
	uint64_t start;
	uint32_t len;
	bool metadata; /* to be revoked */
};

/* Pointers of one block that lead to what is freed: slots [first, end). */
struct free_cut {
	struct buf *fc_buf; /* referenced */
	uint32_t fc_first;
	uint32_t fc_end;
};

struct free_batch {
	struct inode *fb_ip;
	struct buf *fb_dibuf;	  /* referenced */
	struct rgrp_hold fb_hold; /* of the group of all extents */
	uint64_t fb_blocks;
	uint32_t fb_revokes;
	uint32_t fb_revokes_max;
	unsigned fb_extents;
	unsigned fb_cuts;
	bool fb_eattr; /* the block that i_eattr names is among them */
	struct free_extent fb_ext[FREE_EXTENTS_MAX];
	struct free_cut fb_cut[FREE_CUTS_MAX];
};

/* Reads the dinode. -EIO, -EUCLEAN; then nothing is to be released. */
int free_batch_init(struct free_batch *fb, struct inode *ip);
/* What was not committed is forgotten. */
void free_batch_fini(struct free_batch *fb);

/*
 * Free blocks [start, start + len), to which the pointers at slot and following
 * in holder lead, one each. -EUCLEAN if they are not in a group, or not in use;
 * -EIO; -ENOMEM.
 */
int free_batch_add(struct free_batch *fb, struct buf *holder, uint32_t slot,
		   uint64_t start, uint32_t len, bool metadata);

/* Free a pointer block whose pointers are all 0 or added. */
int free_batch_add_node(struct free_batch *fb, struct buf *parent,
			uint32_t slot, struct buf *node);

/* Free the only block left of the extended attributes, i_eattr. */
int free_batch_add_eattr(struct free_batch *fb);

/* The rest, in a transaction. */
int free_batch_commit(struct free_batch *fb);

/*
 * The rest, and as nothing is left of the contents: height 0, size 0, the goal
 * back at the inode itself.
 */
int free_batch_commit_emptied(struct free_batch *fb);

/*
 * The rest, and the unlinked dinode, if possible in one transaction. -EUCLEAN
 * if the inode then still owned, or had owned fewer blocks than were freed.
 */
int free_batch_commit_dinode(struct free_batch *fb);

/* ---- tree_free.c ---- */

/* Add everything from lblock on to the batch. Errors as free_batch_add. */
int tree_collect(struct free_batch *fb, uint64_t lblock);

#endif
