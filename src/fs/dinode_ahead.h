/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * dinode_ahead.h - dinodes that lie next to one that is being read.
 *
 * Any thread. Owned by struct fs; all zero at first.
 */
#ifndef UG_FS_DINODE_AHEAD_H
#define UG_FS_DINODE_AHEAD_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

struct fs;

#define DINODE_AHEAD_SPOTS 64u

/* Parts of the volume in which dinodes were missed lately. Hints. */
struct dinode_ahead {
	atomic_uint_fast64_t spots[DINODE_AHEAD_SPOTS];
	atomic_bool
		off; /* a group is damaged: it is enough to have met it once */
};

/*
 * The dinode at this address is not in memory and is about to be read: start
 * reading its neighbours if there is reason to think that they will be wanted.
 * The inode's glock may be held, no group. Does not wait for its reads.
 */
void dinode_ahead(struct fs *fs, uint64_t addr);

#endif
