/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * pages.h - data of files in memory, and its way to the disk: what the other
 * parts of src/fs may ask of it. How it works is in file.h and writeback.c.
 *
 * Errors, where nothing else is said: -EIO (device, journal, withdrawn),
 * -EUCLEAN, -ENOMEM. After an error of write-back the data is still in memory
 * and dirty, and the inode's next fsync reports it.
 */
#ifndef UG_FS_PAGES_H
#define UG_FS_PAGES_H

#include <stdbool.h>
#include <stdint.h>

#include "fs/inode.h"

/* limit_bytes: bound of all pages, 16 MiB at least; half of it may be dirty. */
int pagepool_create(struct fs *fs, uint64_t limit_bytes);
/* All pages_free(). */
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
 * first error is returned. wait: also those that somebody else is writing or
 * truncating at present; else these stay as dirty as they are.
 */
int file_writeback_many(struct inode **ips, unsigned n, bool wait);

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

/*
 * Called now and then, and when memory is short: write when too much is
 * dirty, drop clean pages, give unused memory back.
 */
void pagepool_shrink(struct fs *fs);

/*
 * Free the pages of an inode that goes out of memory, and struct pages. The
 * caller holds the only reference. Waits for reads ahead under way.
 */
void pages_free(struct inode *ip);

#endif
