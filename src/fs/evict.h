/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * evict.h - releasing inodes that have no name and no user any more.
 * Source: docs/spec/gfs2-ondisk.md 6.7.
 */
#ifndef UG_FS_EVICT_H
#define UG_FS_EVICT_H

#include "fs/inode.h"

/*
 * Free contents and dinode of an inode with link count zero that nobody else
 * can reach (INODE_FREEING is set; the caller holds the only reference). Takes
 * the glock EX itself. On return pages and buffers are gone, also on error; an
 * error leaves an unlinked dinode with a consistent smaller tree, which the
 * next mount releases. -EIO, -EUCLEAN (withdraw by the caller).
 */
int evict_inode(struct inode *ip);

/*
 * For rgrps_each_unlinked() at mount and unmount: release the unlinked dinode
 * at addr if it is one (matching address, link count zero); else warn and
 * leave it.
 */
int evict_unlinked(struct fs *fs, uint64_t addr, void *arg);

/*
 * For the same while other nodes are at work: release the dinode, or see to it
 * that somebody does who uses it: its last close here, or another look (see
 * orphans.c). 0, or -EIO: withdrawn; -EUCLEAN.
 */
int evict_left_behind(struct fs *fs, uint64_t addr, void *arg);

/*
 * The same for one that was in use: if it still is, nobody is disturbed, and
 * if it has been released, nothing of it is read.
 */
int evict_again(struct fs *fs, uint64_t addr);

#endif
