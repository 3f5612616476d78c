/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * metatree.h - caches and system files of a volume: opened, and let go.
 *
 * Used at mount, once or (after a recovery) several times. All calls are made
 * by the one thread that mounts or unmounts.
 */
#ifndef UG_FS_METATREE_H
#define UG_FS_METATREE_H

#include <stdbool.h>

#include "fs/super.h"
#include "fs/why.h"

/*
 * Whose locks? Private ones are for what no node changes while the volume is
 * mounted (where the journals are), and for who has the volume for himself.
 */
enum metatree_locks {
	METATREE_PRIVATE,
	METATREE_SHARED, /* with a lock module: its own; else private */
};

/* The caches, empty. fs_pool is there, and the shared glocks. */
int metatree_create_caches(struct fs *fs, enum metatree_locks locks,
			   const struct why *why);

/*
 * Open master and jindex: all that is needed to find the journals, and nothing
 * that a running file system ever changes, so that it is sound on a volume
 * that needs a replay.
 */
int metatree_load_index(struct fs *fs, const struct why *why);

/*
 * Open root, master and the system files, and read the resource index. Errors
 * have their sentence in why. What was opened stays until metatree_unload().
 */
int metatree_load(struct fs *fs, const struct why *why);

/* Everything that the two above made, in any state. The journal is closed. */
void metatree_unload(struct fs *fs);

/* A system file or directory by name, referenced. -ENOENT if it is missing. */
int metatree_open(struct inode *dir, const char *name, bool directory,
		  struct inode **ipp, const struct why *why);

/* The file "<stem><number>". */
int metatree_open_numbered(struct inode *dir, const char *stem, unsigned number,
			   struct inode **ipp, const struct why *why);

#endif
