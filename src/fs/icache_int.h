/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * icache_int.h - what the files of the inode cache know of each other.
 *
 *   icache.c        the table by address, and references
 *   icache_lists.c  the lists of inodes that wait: idle, dirty, to be released
 *   inode_memory.c  struct inode made and unmade
 *
 * The lock of a shard is taken before that of the lists.
 */
#ifndef UG_FS_ICACHE_INT_H
#define UG_FS_ICACHE_INT_H

#include "fs/icache.h"

#define ICACHE_SHARDS 64u
#define ICACHE_BUCKETS 2048u /* of each shard */

struct icache_shard {
	pthread_mutex_t lock;
	pthread_cond_t gone; /* an inode being freed has left the table */
	struct inode *buckets[ICACHE_BUCKETS];
};

struct icache {
	struct icache_shard shards[ICACHE_SHARDS];
	atomic_uint_fast64_t count;
	uint64_t unreferenced_max;

	pthread_mutex_t lists; /* leaf: guards the three lists below */
	struct cds_list_head lru;
	uint64_t lru_count;
	struct cds_list_head dirty; /* oldest first */
	uint64_t dirty_count;
	struct cds_list_head evict;
	uint64_t evict_blocks; /* owned by the inodes on it or in work */
	unsigned evicting;     /* taken from the list, not yet done */
	pthread_cond_t evicted;
};

static inline unsigned state_set(struct inode *ip, unsigned bits)
{
	return atomic_fetch_or(&ip->i_state, bits);
}

static inline unsigned state_clear(struct inode *ip, unsigned bits)
{
	return atomic_fetch_and(&ip->i_state, ~bits);
}

static inline bool state_has(const struct inode *ip, unsigned bits)
{
	return atomic_load(&ip->i_state) & bits;
}

/* ---- icache.c ---- */

/* FREEING is set and the caller holds the last reference. */
void icache_leave_table(struct icache *ic, struct inode *ip);

/*
 * Inodes without links or open handles that the kernel still counts: it has
 * forgotten them by now, or is about to, since their last name is gone.
 * or_open: those with open handles as well.
 */
bool icache_has_orphans(struct icache *ic, bool or_open);

/* Free the inode of this address from memory if it is idle and clean. */
bool icache_reclaim(struct icache *ic, uint64_t addr);

/* ---- icache_lists.c ---- */

void icache_lists_init(struct icache *ic, uint64_t unreferenced_max);
void icache_lists_destroy(struct icache *ic);

/* Is it to be released once nobody uses it? */
bool icache_wants_evict(const struct inode *ip);

/* The inode has its first reference again. Shard lock held. */
void icache_referenced(struct icache *ic, struct inode *ip);
/* No reference is left: onto the list where it belongs. Shard lock held. */
void icache_unreferenced(struct icache *ic, struct inode *ip);

/*
 * What nobody can reach need not be written: with the dirty list's reference
 * the last one goes. Shard lock held. True if the list had it.
 */
bool icache_leave_dirty(struct icache *ic, struct inode *ip);

/* ---- inode_memory.c ---- */

/* With one reference and its glocks, in no table. -ENOMEM. */
int inode_memory_new(struct fs *fs, uint64_t addr, uint64_t formal,
		     struct inode **ipp);

/*
 * Before the lock goes to other nodes, everything is written, and our log has
 * nothing of the inode left. Not under the shard lock.
 */
void inode_give_up_locks(struct inode *ip);

/*
 * Under the shard lock, so that nobody gets the glock of this address for a
 * new inode in between. Pages are gone or clean: nothing here waits for I/O.
 */
void inode_memory_free(struct inode *ip);

/* Metadata of the inode that the journal still needs? */
bool inode_buffers_busy(struct inode *ip);

#endif
