/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * dir.h - directory contents: entries in the dinode or in hashed leaves.
 *
 * The caller holds the directory's glock (SH to search, EX to change), and
 * i_lock (reading to search; writing, within the transaction, to change).
 * Source: docs/spec/gfs2-ondisk.md chapter 4.
 */
#ifndef UG_FS_DIR_H
#define UG_FS_DIR_H

#include "fs/inode.h"
#include "fs/rgrp.h"

struct dir_found {
	uint64_t formal;
	uint64_t addr;
	uint32_t type; /* DT_* */
};

/* -ENOENT, -EAGAIN with nowait, -EUCLEAN. */
int dir_search(struct inode *dir, const char *name, size_t len, bool nowait,
	       struct dir_found *out);

/*
 * What adding a name will need: blocks to reserve (0 if it fits), blocks of
 * the transaction beyond the directory's dinode and the group's. All metadata
 * that dir_add will touch has been read and is kept referenced by plan.
 * Nothing else may change the directory between this and dir_add.
 */
struct dir_plan {
	uint32_t dp_alloc;
	unsigned dp_trans;
	unsigned dp_revokes;
	unsigned dp_count;
	unsigned dp_cap;
	struct buf **dp_bufs;
};
int dir_add_plan(struct inode *dir, const char *name, size_t len, bool nowait,
		 struct dir_plan *plan);
void dir_plan_release(struct dir_plan *plan);

/*
 * Add an entry; the name is not there. dibuf is the directory's, added to
 * the transaction by this call, and logged with the new entries count and
 * times. hold may be empty when dp_alloc was 0. -EUCLEAN: withdraw.
 */
int dir_add(struct trans *tr, struct inode *dir, struct buf *dibuf,
	    struct rgrp_hold *hold, const char *name, size_t len,
	    uint64_t formal, uint64_t addr, uint32_t mode);

/* Remove an entry. Counts 2 blocks (dinode, leaf). */
int dir_del(struct trans *tr, struct inode *dir, struct buf *dibuf,
	    const char *name, size_t len);

/* Let an existing entry ("..", or the target of a rename) name another inode. */
int dir_set(struct trans *tr, struct inode *dir, struct buf *dibuf,
	    const char *name, size_t len, uint64_t formal, uint64_t addr,
	    uint32_t mode);

/* Write "." and ".." into the payload of a new directory's dinode block. */
void dir_init(struct inode *dir, void *diblock, const struct inode *parent);

/*
 * Free leaves and hash table of a directory without links, in transactions of
 * their own (gfs2-ondisk.md 6.7 step 1). Glock EX held.
 */
int dir_free_leaves(struct inode *dir);

#endif
