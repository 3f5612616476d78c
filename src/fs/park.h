/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * park.h - waiting for an inode's lock without a thread: the side of the file
 * system. What a caller sees stands with struct fs_park in fs.h.
 *
 * One place at a time: who holds one lock and waits for another in no order
 * would end in a deadlock, here or between nodes.
 */
#ifndef UG_FS_PARK_H
#define UG_FS_PARK_H

#include "fs/inode.h"

/*
 * The lock of ip, as glock_nq() would give it: 0, with gh. What the place
 * has got is taken over if it is this lock; else it is given up. -EINPROGRESS:
 * the place is in this queue now. Other errors as of glock_nq(); no place then.
 */
int park_lock(struct fs_park *park, struct inode *ip, enum lm_state state,
	      unsigned flags, struct glock_holder *gh);

#endif
