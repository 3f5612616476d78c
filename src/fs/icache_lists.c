/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * icache_lists.c - inodes that wait for something, on lists under one lock.
 *
 *     idle    no reference, links left: freed from memory, oldest first, beyond
 *             a bound
 *     dirty   something to be written, oldest first; has a reference
 *     evict   no reference, no links (INODE_FREEING): for the evict worker.
 * Also, with a reference, those that it shall only look at
 *
 * Idle inodes whose metadata buffers still wait in the journal cannot leave
 * memory (the buffers belong to them): they go round the list once more.
 */
#include <time.h>

#include "fs/evict.h"
#include "fs/icache_int.h"

#define ICACHE_RECLAIM_BATCH 64u
/*
 * The kernel sends FORGET on its way out of unlink(2), and another thread of
 * ours takes it in: a few milliseconds are enough, 100 times 2 is for a loaded
 * machine. Somebody may also sit in the directory that was removed.
 */
#define ORPHAN_PAUSES 100u
/* And until handles of files that were closed are. */
#define CLOSING_PAUSES 100u

static uint64_t now_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * 1000000000u + (uint64_t)ts.tv_nsec;
}

void icache_lists_init(struct icache *ic, uint64_t unreferenced_max)
{
	pthread_mutex_init(&ic->lists, NULL);
	pthread_cond_init(&ic->evicted, NULL);
	CDS_INIT_LIST_HEAD(&ic->lru);
	CDS_INIT_LIST_HEAD(&ic->dirty);
	CDS_INIT_LIST_HEAD(&ic->evict);
	ic->unreferenced_max = unreferenced_max;
}

void icache_lists_destroy(struct icache *ic)
{
	pthread_mutex_destroy(&ic->lists);
	pthread_cond_destroy(&ic->evicted);
}

/* ---- the last reference ---- */

bool icache_wants_evict(const struct inode *ip)
{
	return state_has(ip, INODE_UNLINKED) &&
	       !state_has(ip, INODE_BAD | INODE_GONE) && !ip->i_fs->fs_rdonly &&
	       !fs_is_withdrawn(ip->i_fs);
}

void icache_referenced(struct icache *ic, struct inode *ip)
{
	pthread_mutex_lock(&ic->lists);
	cds_list_del_init(&ip->i_lru);
	ic->lru_count--;
	state_clear(ip, INODE_LRU);
	pthread_mutex_unlock(&ic->lists);
}

void icache_unreferenced(struct icache *ic, struct inode *ip)
{
	bool evict = icache_wants_evict(ip);
	bool crowded;

	pthread_mutex_lock(&ic->lists);
	if (evict) {
		atomic_store(&ip->i_refs, 1);
		state_set(ip, INODE_FREEING | INODE_EVICT_QUEUED);
		ic->evict_blocks += ip->i_blocks;
		cds_list_add_tail(&ip->i_lru, &ic->evict);
	} else {
		state_set(ip, INODE_LRU);
		cds_list_add_tail(&ip->i_lru, &ic->lru);
		ic->lru_count++;
	}
	crowded = ic->lru_count > ic->unreferenced_max;
	pthread_mutex_unlock(&ic->lists);
	if (evict || crowded)
		fs_wake(ip->i_fs, FS_WORK_EVICT);
}

/* ---- the dirty list ---- */

bool icache_leave_dirty(struct icache *ic, struct inode *ip)
{
	bool listed;

	pthread_mutex_lock(&ic->lists);
	listed = state_clear(ip, INODE_DIRTY_LISTED) & INODE_DIRTY_LISTED;
	if (listed) {
		cds_list_del_init(&ip->i_dirty);
		ic->dirty_count--;
	}
	pthread_mutex_unlock(&ic->lists);
	return listed;
}

void inode_mark_dirty(struct inode *ip)
{
	struct icache *ic = ip->i_fs->fs_icache;

	if (state_has(ip, INODE_DIRTY_LISTED))
		return;
	pthread_mutex_lock(&ic->lists);
	if (!(state_set(ip, INODE_DIRTY_LISTED) & INODE_DIRTY_LISTED)) {
		inode_ref(ip, 1);
		ip->i_dirtied_ns = now_ns();
		cds_list_add_tail(&ip->i_dirty, &ic->dirty);
		ic->dirty_count++;
	}
	pthread_mutex_unlock(&ic->lists);
}

struct inode *icache_next_dirty(struct fs *fs, uint64_t dirtied_before_ns)
{
	struct icache *ic = fs->fs_icache;
	struct inode *ip = NULL;

	pthread_mutex_lock(&ic->lists);
	if (!cds_list_empty(&ic->dirty)) {
		ip = cds_list_first_entry(&ic->dirty, struct inode, i_dirty);
		if (ip->i_dirtied_ns > dirtied_before_ns) {
			ip = NULL;
		} else {
			cds_list_del_init(&ip->i_dirty);
			ic->dirty_count--;
			state_clear(ip, INODE_DIRTY_LISTED);
		}
	}
	pthread_mutex_unlock(&ic->lists);
	return ip;
}

bool icache_has_dirty(struct fs *fs)
{
	return icache_dirty_count(fs) != 0;
}

uint64_t icache_dirty_count(struct fs *fs)
{
	struct icache *ic = fs->fs_icache;
	uint64_t n;

	pthread_mutex_lock(&ic->lists);
	n = ic->dirty_count;
	pthread_mutex_unlock(&ic->lists);
	return n;
}

/* ---- eviction ---- */

void icache_check_links(struct inode *ip)
{
	struct icache *ic = ip->i_fs->fs_icache;

	if (ip->i_fs->fs_rdonly)
		return;
	pthread_mutex_lock(&ic->lists);
	if (!(state_set(ip, INODE_EVICT_QUEUED) & INODE_EVICT_QUEUED)) {
		inode_ref(ip, 1);
		cds_list_add_tail(&ip->i_lru, &ic->evict);
	}
	pthread_mutex_unlock(&ic->lists);
	fs_wake(ip->i_fs, FS_WORK_EVICT);
}

static struct inode *next_evict(struct icache *ic, uint64_t *blocks)
{
	struct inode *ip = NULL;

	*blocks = 0;
	pthread_mutex_lock(&ic->lists);
	if (!cds_list_empty(&ic->evict)) {
		ip = cds_list_first_entry(&ic->evict, struct inode, i_lru);
		cds_list_del_init(&ip->i_lru);
		if (state_has(ip, INODE_FREEING))
			*blocks = ip->i_blocks;
		else /* only to be looked at: it can be queued again */
			state_clear(ip, INODE_EVICT_QUEUED);
		ic->evicting++;
	}
	pthread_mutex_unlock(&ic->lists);
	return ip;
}

static void evict_one(struct icache *ic, struct inode *ip, uint64_t blocks)
{
	struct fs *fs = ip->i_fs;

	if (!fs_is_withdrawn(fs))
		fs_fault(fs, evict_inode(ip));
	if (state_has(ip, INODE_FREEING))
		icache_leave_table(ic, ip);
	else
		inode_put(ip);
	pthread_mutex_lock(&ic->lists);
	ic->evict_blocks -= blocks;
	ic->evicting--;
	pthread_cond_broadcast(&ic->evicted);
	pthread_mutex_unlock(&ic->lists);
}

bool icache_run_evict(struct fs *fs)
{
	struct icache *ic = fs->fs_icache;
	struct inode *ip;
	uint64_t blocks;
	bool any = false;

	while ((ip = next_evict(ic, &blocks)) != NULL) {
		evict_one(ic, ip, blocks);
		any = true;
	}
	return any;
}

bool icache_drain_evict(struct fs *fs)
{
	struct icache *ic = fs->fs_icache;
	bool any = icache_run_evict(fs);

	pthread_mutex_lock(&ic->lists);
	while (ic->evicting) {
		any = true;
		pthread_cond_wait(&ic->evicted, &ic->lists);
	}
	pthread_mutex_unlock(&ic->lists);
	return any;
}

bool icache_may_evict(struct fs *fs)
{
	struct icache *ic = fs->fs_icache;
	bool queued;

	pthread_mutex_lock(&ic->lists);
	queued = ic->evicting || !cds_list_empty(&ic->evict);
	pthread_mutex_unlock(&ic->lists);
	return queued || icache_has_orphans(ic, false);
}

void icache_drain_closing(struct fs *fs)
{
	const struct timespec pause = { .tv_nsec = 10000000 };
	unsigned i;

	icache_drain_evict(fs);
	for (i = 0;
	     i < CLOSING_PAUSES && icache_has_orphans(fs->fs_icache, true);
	     i++) {
		nanosleep(&pause, NULL);
		icache_drain_evict(fs);
	}
}

void icache_drain_orphans(struct fs *fs)
{
	const struct timespec pause = { .tv_nsec = 2000000 };
	unsigned i;

	icache_drain_evict(fs);
	for (i = 0;
	     i < ORPHAN_PAUSES && icache_has_orphans(fs->fs_icache, false);
	     i++) {
		nanosleep(&pause, NULL);
		icache_drain_evict(fs);
	}
}

uint64_t icache_evict_blocks(struct fs *fs)
{
	struct icache *ic = fs->fs_icache;
	uint64_t n;

	pthread_mutex_lock(&ic->lists);
	n = ic->evict_blocks;
	pthread_mutex_unlock(&ic->lists);
	return n;
}

/* ---- memory ---- */

/* The oldest unreferenced inode's address, moved to the end of the list. */
static bool next_idle(struct icache *ic, uint64_t *addr)
{
	struct inode *ip;
	bool found = false;

	pthread_mutex_lock(&ic->lists);
	if (!cds_list_empty(&ic->lru)) {
		ip = cds_list_first_entry(&ic->lru, struct inode, i_lru);
		cds_list_del(&ip->i_lru);
		cds_list_add_tail(&ip->i_lru, &ic->lru);
		*addr = ip->i_addr;
		found = true;
	}
	pthread_mutex_unlock(&ic->lists);
	return found;
}

uint64_t icache_shrink(struct fs *fs)
{
	struct icache *ic = fs->fs_icache;
	uint64_t addr, over, gone = 0;
	unsigned kept = 0;

	for (;;) {
		pthread_mutex_lock(&ic->lists);
		over = ic->lru_count > ic->unreferenced_max
			       ? ic->lru_count - ic->unreferenced_max
			       : 0;
		pthread_mutex_unlock(&ic->lists);
		if (!over || kept > ICACHE_RECLAIM_BATCH ||
		    !next_idle(ic, &addr))
			break;
		if (icache_reclaim(ic, addr))
			gone++;
		else
			kept++;
	}
	if (kept)
		fs_wake(fs, FS_WORK_CHECKPOINT);
	return gone;
}
