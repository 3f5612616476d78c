/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * dir_list.h - entries of a directory in the order of their cookies.
 *
 * A cookie says "what comes from here on". It is made of the name alone:
 *
 *     key = 1 + (hash of the name << 31 | 31 bits of another hash)
 *
 * so that it means the same whatever happens to other entries, to leaves and
 * to the table, and to this mount. Order of keys is order of leaves. Keys are
 * positive as loff_t, and leave some numbers free at the end.
 * Source: docs/spec/gfs2-ondisk.md 4.9; fuse-facts.md 9.19.
 */
#ifndef UG_FS_DIR_LIST_H
#define UG_FS_DIR_LIST_H

#include "fs/dir.h"

/* Entries that one batch holds at most; memory is bounded by twice that. */
#define DIR_BATCH_MAX 512u

struct dir_item {
	uint64_t key;
	uint64_t next; /* cookie that continues behind it */
	const struct gfs2_dirent *de;
	struct buf *b; /* where de is; referenced */
};

/* As long as the glock is held, what items point to stands still. */
struct dir_batch {
	struct dir_item *items; /* 2 * DIR_BATCH_MAX */
	unsigned count;
	bool cut;      /* the range goes on behind the last item */
	uint64_t next; /* cookie of what follows the batch; 0: nothing does */
};

int dir_batch_init(struct dir_batch *batch); /* -ENOMEM */
void dir_batch_fini(struct dir_batch *batch);

/*
 * Fill with the entries from cookie on that lie in one range of hashes (the
 * dinode, or one chain of leaves), sorted; perhaps none, while next is not
 * 0. Drops what was in it. i_lock held (reading). -EAGAIN with nowait,
 * -EUCLEAN, -EIO.
 */
int dir_batch_fill(struct dir_batch *batch, struct inode *dir, uint64_t cookie,
		   bool nowait);

#endif
