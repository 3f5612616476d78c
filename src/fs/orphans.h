/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * orphans.h - inodes without a name that somebody still used when this node
 * wanted to release them, by address: it looks again until they are gone.
 *
 * Threads: any may add; orphans_look() is called by one at a time.
 * Source: docs/spec/glocks.md 13.9.
 */
#ifndef UG_FS_ORPHANS_H
#define UG_FS_ORPHANS_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <urcu/list.h>

struct fs;

struct orphans {
	pthread_mutex_t or_lock; /* a leaf */
	struct cds_list_head or_list;
	unsigned or_count;
	bool or_more; /* one did not fit, or there was no memory */
	uint64_t or_more_due_ns;
};

void orphans_init(struct orphans * or);
void orphans_fini(struct orphans * or);

/* Look again at the inode whose dinode is at addr; never fails. */
void orphans_add(struct fs *fs, uint64_t addr);

/*
 * Look at those whose time has come, all of them if now. No lock is held. Who
 * is found in use once more is looked at again, after twice the time.
 */
void orphans_look(struct fs *fs, bool now);

#endif
