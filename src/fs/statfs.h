/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * statfs.h - the volume's totals: master file, local changes, merge.
 * Source: docs/spec/gfs2-ondisk.md 6.8.
 */
#ifndef UG_FS_STATFS_H
#define UG_FS_STATFS_H

#include "fs/super.h"

/* Read master and own local values. fs_statfs_ip and fs_sc_ip are there. */
int statfs_load(struct fs *fs);
void statfs_unload(struct fs *fs);

/*
 * Add to the local values and log the statfs_change dinode, within the
 * transaction that changes the groups (one block, counted by
 * rgrp_trans_blocks). Never fails: the buffer is kept by statfs_load.
 */
void statfs_change(struct trans *tr, struct fs *fs, int64_t total, int64_t free,
		   int64_t dinodes);

/* Local values for the log header. */
void statfs_local(struct fs *fs, int64_t *total, int64_t *free,
		  int64_t *dinodes);

/*
 * master += local, local = 0, in one transaction; with nothing to add, master
 * is read again if there are other nodes. The caller holds no locks. -EAGAIN:
 * another node has kept master locked for so long; nothing has changed.
 */
int statfs_merge(struct fs *fs, unsigned patience_sec);

/*
 * Take over the local values of a member that has died, whose statfs_change
 * dinode is at addr, and whose journal is clean and locked.
 */
int statfs_adopt(struct fs *fs, uint64_t addr);

/* Does the local change exceed the share that statfs_percent names? */
bool statfs_merge_is_due(struct fs *fs);

/* Free blocks now (master + local). */
int64_t statfs_free(struct fs *fs);

#endif
