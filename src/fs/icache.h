/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * icache.h - what work.c and mount.c need of the inode cache beyond inode.h.
 */
#ifndef UG_FS_ICACHE_H
#define UG_FS_ICACHE_H

#include "fs/inode.h"

/* Release every queued inode; true if there was one. */
bool icache_run_evict(struct fs *fs);

/*
 * The same, and wait for those that another thread is releasing: afterwards
 * their blocks are free as soon as the log is flushed. The caller may hold
 * glocks of inodes with links and of groups, no transaction.
 */
bool icache_drain_evict(struct fs *fs);

/*
 * May releasing inodes still give space: are there queued ones, or ones that
 * nobody has open and that the kernel will forget soon?
 */
bool icache_may_evict(struct fs *fs);

/* As icache_drain_evict(), and wait a little for those of the latter kind. */
void icache_drain_orphans(struct fs *fs);

/* The same, also of those that are still open: their close may be under way. */
void icache_drain_closing(struct fs *fs);

/* Blocks of inodes that are queued for release: as good as free for statfs. */
uint64_t icache_evict_blocks(struct fs *fs);

/* Take unreferenced inodes beyond the bound out of memory; how many. */
uint64_t icache_shrink(struct fs *fs);

uint64_t icache_count(struct fs *fs);
uint64_t icache_dirty_count(struct fs *fs);

/*
 * The session has ended: all references that the kernel held are gone, except
 * those of inodes for which keep() says true. Dirty inodes must have been
 * written. Inodes without links are queued for release.
 */
void icache_drop_users(struct fs *fs,
		       bool (*keep)(struct fs *fs, const struct inode *ip));

#endif
