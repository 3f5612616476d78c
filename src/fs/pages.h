/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * pages.h - data of files in memory, and its way to the disk.
 */
#ifndef UG_FS_PAGES_H
#define UG_FS_PAGES_H

#include <stdbool.h>
#include <stdint.h>

#include "fs/inode.h"

int pagepool_create(struct fs *fs, uint64_t limit_bytes);
void pagepool_destroy(struct fs *fs);
void pagepool_stats(struct fs *fs, uint64_t *bytes, uint64_t *dirty_bytes);

/*
 * Write all dirty pages of the inode (and log dirty times) and wait for it.
 * Holds no locks on entry. Afterwards an fsync has only the log to flush.
 */
int file_writeback(struct inode *ip);

/*
 * The same for a batch, whose data is written together: sorted by address,
 * neighbours merged. Each inode's outcome stays with it for its fsync; the
 * first error is returned.
 */
int file_writeback_many(struct inode **ips, unsigned n);

/* Wait until no write-back that began before this call is under way. */
void pagepool_wait_writeback(struct fs *fs);

/* Is there anything for file_writeback? */
bool file_is_dirty(struct inode *ip);

/* Drop all pages, dirty ones too (file is going away, or was truncated to 0
 * with the glock EX held). Waits for pages under I/O. */
void file_drop_pages(struct inode *ip);

/*
 * Change the size, glock EX held by the caller, who calls with nothing else
 * held. Handles stuffed files, partial blocks, promised space,
 * TRUNC_IN_PROG. Sets mtime and ctime.
 */
int file_set_size(const struct fs_req *req, struct inode *ip, uint64_t size);

/* Finish an interrupted truncation (TRUNC_IN_PROG), glock EX held. */
int file_finish_truncate(struct inode *ip);

/* Memory is short: drop clean pages; write when there are too many dirty. */
void pagepool_shrink(struct fs *fs);

/* struct pages of an inode that goes out of memory. Clean and empty. */
void pages_free(struct inode *ip);

#endif
