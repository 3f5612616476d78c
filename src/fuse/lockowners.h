/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * lockowners.h - who may have fcntl locks of which file, and through which
 * handle it has asked for them.
 *
 * The kernel tells by FLUSH that a process closes a file, and thereby gives
 * back its POSIX locks; most who close a file have none. Of an OFD lock, which
 * looks the same, only the RELEASE of the handle tells the end.
 *
 *	SETLK	begin() .. the call to the lock service .. end()
 *	FLUSH	flush(): true: drop the locks of this owner
 *	RELEASE	release() until it is false: drop the locks of each
 *
 * An owner is known until one of the latter two: it may have no lock any more,
 * but one that has a lock is always known. A SETLK between begin() and end()
 * may be given to the service after a FLUSH that was read later: the owner
 * then stays known.
 *
 * Pure. Threads: any; one lock. Source: docs/spec/fuse.md 8.
 */
#ifndef UG_FUSE_LOCKOWNERS_H
#define UG_FUSE_LOCKOWNERS_H

#include <stdbool.h>
#include <stdint.h>

struct lockowners;
struct lockowner;

/* 0 or -ENOMEM. */
int lockowners_create(struct lockowners **lop);
void lockowners_destroy(struct lockowners *lo); /* NULL is accepted */

/* NULL: no memory, nothing has changed. To be given back to end(). */
struct lockowner *lockowners_begin(struct lockowners *lo, uint64_t nodeid,
				   uint64_t owner, uint64_t fh, uint32_t pid);
void lockowners_end(struct lockowners *lo, struct lockowner *who);

/*
 * Process pid, whose POSIX locks are owner's, closes a descriptor of fh. May it
 * have locks of this file? Then it is forgotten.
 */
bool lockowners_flush(struct lockowners *lo, uint64_t nodeid, uint64_t owner,
		      uint64_t fh, uint32_t pid);

/*
 * The open file ends. One of those whose latest lock came through it, and is
 * now forgotten; false: there is none.
 */
bool lockowners_release(struct lockowners *lo, uint64_t fh, uint64_t *owner);

/*
 * The process that has asked for the owner's latest lock still has a
 * descriptor, as far as we know: its number names it.
 */
bool lockowners_has_pid(struct lockowners *lo, uint64_t nodeid, uint64_t owner);

/* How many are known. */
unsigned lockowners_count(struct lockowners *lo);

#endif
