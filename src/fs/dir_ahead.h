/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * dir_ahead.h - blocks that a listing will come to, read together before.
 *
 * Hints: errors are met by who reads the block. The directory's glock is held.
 */
#ifndef UG_FS_DIR_AHEAD_H
#define UG_FS_DIR_AHEAD_H

#include "fs/inode.h"

/*
 * Blocks at these addresses, which are sorted, as the directory's: neighbours
 * in one request. Does not wait for them.
 */
void dir_ahead_read(struct inode *dir, uint64_t *addrs, unsigned count);

/*
 * The directory is hashed, and its listing has come to slot index of the table:
 * if the leaf there is not in memory, start reading it and those that follow.
 * May wait for the table. i_lock held.
 */
void dir_ahead_leaves(struct inode *dir, uint32_t index);

#endif
