/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * work.h - background work that mount and unmount drive themselves.
 */
#ifndef UG_FS_WORK_H
#define UG_FS_WORK_H

#include "fs/super.h"

/* Write every inode that is dirty now. The first error, or 0. */
int fs_writeback_all(struct fs *fs);

/*
 * The same, but for inodes that somebody else is writing or truncating: so it
 * waits for no lock of other nodes.
 */
int fs_writeback_unlocked(struct fs *fs);

#endif
