/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * dir.h - directory contents: entries in the dinode or in hashed leaves.
 *
 * The caller holds the directory's glock (SH to search, EX to change), and
 * i_lock (reading to search; writing, within the transaction, to change).
 *
 * A change has two halves. Before the transaction, dir_find() or
 * dir_add_plan() reads every block it will need and keeps them referenced.
 * Within it, dir_del(), dir_set() and dir_add() use only those, and fail only
 * for damage or lack of memory; the caller then withdraws. As long as the
 * glock EX is held between the halves, what was found stays true.
 * Source: docs/spec/gfs2-ondisk.md chapter 4.
 */
#ifndef UG_FS_DIR_H
#define UG_FS_DIR_H

#include "fs/inode.h"
#include "fs/rgrp.h"
#include "fs/tree.h"

struct dir_found {
	uint64_t formal;
	uint64_t addr;
	uint32_t type; /* DT_*; a hint: the inode itself decides */
};

/* An entry and where it is. ds_buf is referenced until dir_slot_release(). */
struct dir_slot {
	struct buf *ds_buf; /* dinode or leaf; NULL: nothing found */
	uint32_t ds_off;    /* of the record, and ... */
	uint32_t ds_prev; /* ... of the one before it, from the area's start */
	struct dir_found ds_found;
};

static inline void dir_slot_init(struct dir_slot *slot)
{
	slot->ds_buf = NULL;
}
static inline void dir_slot_release(struct dir_slot *slot)
{
	buf_put(slot->ds_buf);
	slot->ds_buf = NULL;
}

/*
 * Find a name. 0; -ENOENT; -EAGAIN with nowait; -EUCLEAN; -EIO; -ENOMEM. On
 * failure slot holds nothing.
 */
int dir_find(struct inode *dir, const char *name, size_t len, bool nowait,
	     struct dir_slot *slot);

/* The same for those who only want to know. */
int dir_search(struct inode *dir, const char *name, size_t len, bool nowait,
	       struct dir_found *out);

/*
 * How a name will be added. dp_alloc, dp_trans and dp_revokes are for the
 * caller, the rest is dir_plan.c's and dir_add.c's.
 */
struct dir_plan {
	uint32_t dp_alloc; /* blocks to reserve, at most; 0 if it fits */
	unsigned dp_trans; /* blocks of the transaction beyond the directory's
			    * dinode and the group's, at most */
	unsigned dp_revokes;

	bool dp_convert;    /* the entries move from the dinode to a leaf */
	bool dp_pack;	    /* the room is there, but in pieces */
	bool dp_chain;	    /* a leaf more at the end of the chain */
	uint16_t dp_splits; /* of the leaf that the name belongs to, in a row */
	uint16_t dp_depth;  /* of the table afterwards; 0: linear */
	uint32_t dp_hash;

	struct buf *dp_block; /* dinode or leaf that takes, or splits */
	struct buf *dp_last;  /* last leaf of the chain, with dp_chain */

	/* Table blocks that will change: dp_table[i] is lblock dp_first + i. */
	unsigned dp_first;
	unsigned dp_count; /* those after growth, too: NULL until then */
	struct buf **dp_table;
	struct tree_set dp_set;
};

/*
 * Plan to add a name that is not there. Worst case: a table of 2^17 pointers
 * built at once (1 MiB), when a leaf is full of names with one hash. 0;
 * -EAGAIN with nowait; -EUCLEAN; -EIO; -ENOMEM; -ENOSPC (2^32 - 1 entries).
 * On failure the plan holds nothing.
 */
int dir_add_plan(struct inode *dir, const char *name, size_t len, bool nowait,
		 struct dir_plan *plan);

/* Drop what the plan references. A zeroed plan is accepted. */
void dir_plan_release(struct dir_plan *plan);

/*
 * Add an entry as planned. dibuf is the directory's; it is added to the
 * transaction and logged with the new count of entries, the times, and
 * whatever else the caller has changed in the inode. hold may be empty when
 * dp_alloc was 0. Any error: withdraw.
 */
int dir_add(struct trans *tr, struct inode *dir, struct buf *dibuf,
	    struct dir_plan *plan, struct rgrp_hold *hold, const char *name,
	    size_t len, uint64_t formal, uint64_t addr, uint32_t mode);

/*
 * Remove the entry found in slot, which is used up. Counts 2 blocks (dinode,
 * leaf); logs the directory as dir_add does. -EUCLEAN: withdraw.
 */
int dir_del(struct trans *tr, struct inode *dir, struct buf *dibuf,
	    struct dir_slot *slot);

/*
 * Let an existing entry ("..", or the target of a rename) name another inode.
 * Counts 1 block; times and logging of the directory are the caller's.
 */
void dir_set(struct trans *tr, struct inode *dir, struct dir_slot *slot,
	     uint64_t formal, uint64_t addr, uint32_t mode);

/* Write "." and ".." into the payload of a new directory's dinode block. */
void dir_init(struct inode *dir, void *diblock, const struct inode *parent);

/*
 * Free the leaves of a directory without links, in transactions of their own
 * (gfs2-ondisk.md 6.7 step 1). Glock EX held, no other lock. The last
 * transaction leaves an empty-moded regular file whose contents, the table,
 * are tree_free_from()'s to free. -EIO, -EUCLEAN, -ENOMEM: what has been freed
 * stays freed, and calling again goes on.
 */
int dir_free_leaves(struct inode *dir);

#endif
