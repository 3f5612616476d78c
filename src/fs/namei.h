/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * namei.h - what the operations on names share: checks, locks, the end.
 *
 * Order of inode glocks, and why nobody waits for ever. The order within
 * rank 2 of ARCHITECTURE.md is that of the tree: a directory before what it
 * names. While somebody holds the glock of a directory its entries stand
 * still, so an operation that takes a directory and then what an entry of it
 * names (lookup, readdirplus, create, link, unlink, rmdir) waits downwards
 * only: no cycle. Files are last: who holds a file waits for no directory, and
 * who takes two of them (rename) takes the lower address first.
 *
 * Rename alone takes directories side by side, and these make cycles possible
 * (holding B/x while waiting for A, where another holds A's parent, ...). So
 * whoever holds two directories of which neither names the other holds the
 * RENAME glock before them: there is one such holder at a time, and every
 * change of the tree's shape is his. For him it is enough never to wait for an
 * ancestor of what he holds; between unrelated directories any order will do.
 * rename.c shows how he knows the ancestors.
 *
 * In no-wait mode every lock is only tried.
 * Source: docs/spec/glocks-and-recovery.md 4.8 to 4.10, 9.1.
 */
#ifndef UG_FS_NAMEI_H
#define UG_FS_NAMEI_H

#include <string.h>

#include "fs/dir.h"

/* 0; -ENOENT empty; -ENAMETOOLONG; -EINVAL for '/' and NUL within. */
int name_check(const char *name, size_t len);

static inline bool name_is(const char *name, size_t len, const char *what)
{
	return len == strlen(what) && memcmp(name, what, len) == 0;
}
static inline bool name_is_dot(const char *name, size_t len)
{
	return name_is(name, len, ".");
}
static inline bool name_is_dotdot(const char *name, size_t len)
{
	return name_is(name, len, "..");
}

/*
 * May entries be added? -ENOTDIR; -ENOENT removed; -EPERM immutable. i_lock
 * held (reading), like the next two.
 */
int name_may_add(const struct inode *dir);
/* And removed? -EPERM append-only as well. */
int name_may_remove(const struct inode *dir);
/* This inode from that directory? -EPERM sticky, immutable, append-only. */
int name_may_lose(const struct fs_req *req, const struct inode *dir,
		  const struct inode *victim);

/* A directory that is to go: 0 or -ENOTEMPTY. i_lock held (reading). */
int name_check_empty(const struct inode *dir);

/*
 * Take one link away (unlink.c), with the last one the inode's block becomes
 * "unlinked", for which hold has its group; a directory loses all. Logs
 * the inode. Counts 1 block and rgrp_trans_blocks(hold, 1). -EUCLEAN: withdraw.
 */
int name_drop_link(struct trans *tr, struct inode *ip, struct buf *dibuf,
		   struct rgrp_hold *hold);

/*
 * Must a change of this directory be durable before it is answered? Then
 * no-wait mode refuses it from the start.
 */
bool name_is_sync(const struct inode *dir);

/* The end of a change: flush if it must be durable. 0 or -EIO. */
int name_sync(struct fs *fs, bool sync, uint64_t sequence);

/*
 * Take i_lock of several inodes (NULL is skipped) for writing: all or none,
 * -EAGAIN. Each is held EX by the caller, so nobody else takes two of them.
 */
int name_wrlock(const struct fs_req *req, struct inode *const *ips, unsigned n);
void name_wrunlock(struct inode *const *ips, unsigned n);

/*
 * A transaction could not be finished: nothing of it may reach the disk, so
 * withdraw before it ends. err 0: nothing happens.
 */
void name_broken(struct fs *fs, int err);

/* Lock SH and describe the inode as the answer to a lookup; reads it. */
int name_entry(const struct fs_req *req, struct inode *ip,
	       struct fs_entry *out);

/*
 * The kernel is about to be told of ip, and counts that: ip's reference becomes
 * its own. Before the lock is held whose recall makes the kernel forget, so
 * that a recall finds it to be known; undone if it is not told.
 */
void name_count(struct inode *ip);
void name_uncount(struct inode *ip);
/* It has been told. */
void name_counted(struct inode *ip);

#endif
