/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * tree.h - the pointer tree of an inode: mapping, inserting, freeing.
 *
 * tree_map.c maps, tree_insert.c inserts, tree_free.c frees. All metadata
 * blocks go through inode_meta(), so that a wrong block is -EUCLEAN with a
 * sentence. Source: docs/spec/gfs2-ondisk.md 3.5 to 3.7.
 */
#ifndef UG_FS_TREE_H
#define UG_FS_TREE_H

#include "fs/inode.h"
#include "fs/rgrp.h"

struct tree_run {
	uint64_t pblock; /* 0: a hole */
	uint32_t count;	 /* blocks from the one asked for, at least 1 */
};

/*
 * Where logical block lblock is, and how many follow in the same way (up to
 * max, and within one pointer block). Height 0 maps nothing (a hole). i_lock
 * held (reading). -EAGAIN with nowait, -EUCLEAN (pointer out of range), -EIO.
 */
int tree_map(struct inode *ip, uint64_t lblock, uint32_t max, bool nowait,
	     struct tree_run *run);

/*
 * How many pointer blocks mapping [lblock, lblock + count) may need at most,
 * growth of the height included. i_lock held (reading).
 */
uint32_t tree_meta_max(const struct inode *ip, uint64_t lblock, uint32_t count);

/*
 * Blocks (besides the dinode and the group's) that a transaction inserting
 * these may change: count them for trans_begin. i_lock held (reading).
 */
unsigned tree_trans_blocks(const struct inode *ip, uint64_t lblock,
			   uint32_t count);

/*
 * Bring the pointer blocks on the way to [lblock, lblock + count) into memory,
 * before a transaction, and keep them referenced in set until
 * tree_set_release(); so that tree_insert cannot fail for reading.
 */
struct tree_set {
	unsigned ts_count;
	unsigned ts_cap;
	struct buf **ts_bufs;
};
int tree_prepare(struct inode *ip, uint64_t lblock, uint32_t count, bool nowait,
		 struct tree_set *set);
void tree_set_release(struct tree_set *set);

/*
 * Let lblock..lblock+count-1, which are holes, point to pblock.., growing
 * the tree with pointer blocks taken from the hold. The height must have been
 * raised from 0 (file contents or directory made unstuffed) by the caller.
 * Within the transaction, i_lock held for writing, dibuf added to the
 * transaction. Does not count the data blocks (rgrp_alloc did). -EUCLEAN
 * withdraws in the caller.
 */
int tree_insert(struct trans *tr, struct inode *ip, struct buf *dibuf,
		struct rgrp_hold *hold, uint64_t lblock, uint64_t pblock,
		uint32_t count);

/*
 * Free all blocks of the tree from lblock on (first_lblock 0: everything), in
 * as many transactions as it takes, one resource group each; the dinode stays
 * consistent after each. Pointer blocks that become empty go too. If all is
 * freed and the inode is a file: height 0. metadata: bottom blocks have
 * headers or are journaled (directory table, jdata). The caller holds the glock
 * EX and nothing further. A crash leaves a smaller consistent tree.
 */
int tree_free_from(struct inode *ip, uint64_t lblock);

#endif
