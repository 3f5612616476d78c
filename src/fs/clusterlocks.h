/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * clusterlocks.h - the locks that mounts of one volume hold against each other.
 *
 *	MOUNT     EX   while mounting: one node at a time
 *	MOUNTED   SH   while mounted; EX is had by nobody but the first
 *	LIVE      SH   while mounted
 *	journal   EX   the own one, while mounted
 *
 * Only of a file system with a lock module; all by one thread.
 * Source: docs/spec/glocks.md 1.3, 6.2, 6.3.
 */
#ifndef UG_FS_CLUSTERLOCKS_H
#define UG_FS_CLUSTERLOCKS_H

#include "fs/super.h"
#include "fs/why.h"

extern const struct glock_ops journal_glock_ops;

/*
 * MOUNT, then the others. *first: no node has the volume mounted, and none
 * will as long as MOUNT is held. The table of shared glocks is there.
 * -EINTR; -EIO; -ENOMEM.
 */
int cluster_locks_take(struct fs *fs, bool *first, const struct why *why);

/* The volume can be used: others may mount it. 0 or -EIO. */
int cluster_locks_mounted(struct fs *fs, const struct why *why);

/* The end, in any state. The own journal is closed. */
void cluster_locks_drop(struct fs *fs);

/*
 * Wait for an asynchronous request, and tell the host that we do. -EINTR: it
 * has been given up.
 */
int cluster_lock_wait(struct fs *fs, struct glock_holder *gh, const char *what,
		      const struct why *why);

#endif
