/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * icache.c - all inodes in memory, by address.
 *
 * A sharded hash table. The last reference is dropped under the shard lock, so
 * that an inode seen with no reference under that lock stays so while it is
 * held. What happens then:
 *
 *     no reference, links left   -> list of unreferenced inodes (LRU); freed
 *                                   from memory, oldest first, beyond a bound
 *     no reference, no links     -> INODE_FREEING, queue of the evict worker
 *
 * An inode that is being freed stays in the table until its blocks are free
 * and its memory state is gone; who wants its address meanwhile (a new inode in
 * the same block) waits for that. With other nodes the same goes for one that
 * leaves memory: putting its glock may write, and waits for the glock workers,
 * so it is done without the shard lock.
 *
 * Other nodes free inodes that are in memory here, as long as they are not open
 * here, and use their blocks for new ones. The kernel still counts the old one
 * by the same address: so it stays in the table, and becomes the new one
 * (INODE_GONE, or another formal number).
 *
 * Inodes whose metadata buffers still wait in the journal cannot leave memory
 * (the buffers belong to them): they go round the list once more.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <time.h>

#include "base/assert.h"
#include "base/log.h"
#include "fs/evict.h"
#include "fs/icache.h"
#include "fs/inode.h"
#include "fs/pages.h"
#include "fs/rgrp.h"

#define ICACHE_SHARDS 64u
#define ICACHE_BUCKETS 2048u /* of each shard */
#define ICACHE_RECLAIM_BATCH 64u
/*
 * The kernel sends FORGET on its way out of unlink(2), and another thread of
 * ours takes it in: a few milliseconds are enough, 100 times 2 is for a loaded
 * machine. Somebody may also sit in the directory that was removed.
 */
#define ORPHAN_PAUSES 100u

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

static uint64_t now_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * 1000000000u + (uint64_t)ts.tv_nsec;
}

static uint64_t addr_hash(uint64_t addr)
{
	return (addr * 0x9e3779b97f4a7c15u) >> 20;
}

static struct icache_shard *shard_of(struct icache *ic, uint64_t addr)
{
	return &ic->shards[addr_hash(addr) % ICACHE_SHARDS];
}

static struct inode **bucket_of(struct icache_shard *sh, uint64_t addr)
{
	return &sh->buckets[addr_hash(addr) / ICACHE_SHARDS % ICACHE_BUCKETS];
}

static unsigned state_set(struct inode *ip, unsigned bits)
{
	return atomic_fetch_or(&ip->i_state, bits);
}

static unsigned state_clear(struct inode *ip, unsigned bits)
{
	return atomic_fetch_and(&ip->i_state, ~bits);
}

static bool state_has(const struct inode *ip, unsigned bits)
{
	return atomic_load(&ip->i_state) & bits;
}

int icache_create(struct fs *fs, uint64_t unreferenced_max)
{
	struct icache *ic = calloc(1, sizeof(*ic));
	unsigned i;

	if (!ic)
		return -ENOMEM;
	for (i = 0; i < ICACHE_SHARDS; i++) {
		pthread_mutex_init(&ic->shards[i].lock, NULL);
		pthread_cond_init(&ic->shards[i].gone, NULL);
	}
	pthread_mutex_init(&ic->lists, NULL);
	pthread_cond_init(&ic->evicted, NULL);
	CDS_INIT_LIST_HEAD(&ic->lru);
	CDS_INIT_LIST_HEAD(&ic->dirty);
	CDS_INIT_LIST_HEAD(&ic->evict);
	ic->unreferenced_max = unreferenced_max;
	fs->fs_icache = ic;
	return 0;
}

/* ---- making and unmaking ---- */

static int inode_alloc(struct fs *fs, uint64_t addr, uint64_t formal,
		       struct inode **ipp)
{
	struct inode *ip = calloc(1, sizeof(*ip));
	int err;

	if (!ip)
		return -ENOMEM;
	ip->i_fs = fs;
	ip->i_addr = addr;
	ip->i_formal = formal;
	atomic_init(&ip->i_refs, 1);
	buf_owner_init(&ip->i_bufs);
	pthread_rwlock_init(&ip->i_lock, NULL);
	CDS_INIT_LIST_HEAD(&ip->i_lru);
	CDS_INIT_LIST_HEAD(&ip->i_dirty);
	CDS_INIT_LIST_HEAD(&ip->i_window.rw_list);
	pthread_mutex_init(&ip->i_open_lock, NULL);
	glock_holder_init(&ip->i_iopen_gh);
	err = glock_get(fs->fs_glocks, &inode_glock_ops, addr, ip, &ip->i_gl);
	if (!err && !fs->fs_alone)
		err = glock_get(fs->fs_glocks, &iopen_glock_ops, addr, NULL,
				&ip->i_iopen);
	if (err) {
		if (ip->i_gl)
			glock_put(ip->i_gl);
		buf_owner_destroy(&ip->i_bufs);
		pthread_mutex_destroy(&ip->i_open_lock);
		pthread_rwlock_destroy(&ip->i_lock);
		free(ip);
		return err;
	}
	glock_set_object(ip->i_gl, ip);
	glock_set_instantiate(ip->i_gl, true);
	*ipp = ip;
	return 0;
}

/*
 * Before the lock goes to other nodes, everything is written, and our log has
 * nothing of the inode left. Not under the shard lock.
 */
static void give_up_locks(struct inode *ip)
{
	glock_dq_if_held(&ip->i_iopen_gh);
	if (ip->i_iopen)
		glock_put(ip->i_iopen);
	glock_put(ip->i_gl);
	ip->i_iopen = ip->i_gl = NULL;
}

/*
 * Under the shard lock, so that nobody gets the glock of this address for a
 * new inode in between. Pages are gone or clean: nothing here waits for I/O.
 */
static void inode_destroy(struct inode *ip)
{
	struct fs *fs = ip->i_fs;

	rgrp_window_drop(ip);
	pages_free(ip);
	buf_invalidate_owner(fs->fs_cache, &ip->i_bufs);
	if (ip->i_gl) {
		glock_set_object(ip->i_gl, NULL);
		glock_put(ip->i_gl);
	}
	buf_owner_destroy(&ip->i_bufs);
	pthread_mutex_destroy(&ip->i_open_lock);
	pthread_rwlock_destroy(&ip->i_lock);
	free(ip);
}

static void table_insert(struct icache *ic, struct icache_shard *sh,
			 struct inode *ip)
{
	struct inode **bucket = bucket_of(sh, ip->i_addr);

	ip->i_hash_next = *bucket;
	*bucket = ip;
	atomic_fetch_add(&ic->count, 1);
}

static void table_remove(struct icache *ic, struct icache_shard *sh,
			 struct inode *ip)
{
	struct inode **pp = bucket_of(sh, ip->i_addr);

	while (*pp != ip)
		pp = &(*pp)->i_hash_next;
	*pp = ip->i_hash_next;
	atomic_fetch_sub(&ic->count, 1);
}

static struct inode *table_find(struct icache_shard *sh, uint64_t addr)
{
	struct inode *ip = *bucket_of(sh, addr);

	while (ip && ip->i_addr != addr)
		ip = ip->i_hash_next;
	return ip;
}

/* Shard lock held: one more reference, off the unreferenced list. */
static void take_ref(struct icache *ic, struct inode *ip)
{
	if (atomic_fetch_add(&ip->i_refs, 1) == 0 && state_has(ip, INODE_LRU)) {
		pthread_mutex_lock(&ic->lists);
		cds_list_del_init(&ip->i_lru);
		ic->lru_count--;
		state_clear(ip, INODE_LRU);
		pthread_mutex_unlock(&ic->lists);
	}
}

struct inode *icache_find(struct fs *fs, uint64_t addr)
{
	struct icache *ic = fs->fs_icache;
	struct icache_shard *sh = shard_of(ic, addr);
	struct inode *ip;

	pthread_mutex_lock(&sh->lock);
	ip = table_find(sh, addr);
	if (ip && state_has(ip, INODE_FREEING))
		ip = NULL;
	if (ip)
		take_ref(ic, ip);
	pthread_mutex_unlock(&sh->lock);
	return ip;
}

struct inode *fs_inode_get(struct fs *fs, uint64_t nodeid)
{
	if (nodeid == FS_ROOT_NODEID) {
		inode_ref(fs->fs_root, 1);
		return fs->fs_root;
	}
	return icache_find(fs, nodeid);
}

/*
 * The caller meets an inode with another formal number than it expects: the
 * block has been reused since the caller learned its number (a handle), or the
 * one in memory has not been read yet and cannot tell.
 */
static bool formal_differs(const struct inode *ip, uint64_t formal)
{
	return formal && ip->i_formal && ip->i_formal != formal;
}

/*
 * Another inode is there now. The lock has been with the node that made it, so
 * nothing of the old one is cached. Shard lock held.
 */
static void become_other(struct inode *ip, uint64_t formal)
{
	ip->i_formal = formal;
	state_clear(ip, INODE_GONE | INODE_BAD | INODE_UNLINKED);
	glock_set_instantiate(ip->i_gl, true);
}

static bool is_overtaken(const struct inode *ip, uint64_t formal)
{
	return !ip->i_fs->fs_alone && formal &&
	       (formal_differs(ip, formal) || state_has(ip, INODE_GONE));
}

/* With other nodes: until it is gone. Shard lock held, and dropped. */
static struct inode *find_staying(struct icache_shard *sh, struct fs *fs,
				  uint64_t addr, bool nowait)
{
	struct inode *ip = table_find(sh, addr);

	while (ip && state_has(ip, INODE_FREEING) && !fs->fs_alone && !nowait) {
		pthread_cond_wait(&sh->gone, &sh->lock);
		ip = table_find(sh, addr);
	}
	return ip;
}

int inode_get(struct fs *fs, uint64_t addr, uint64_t formal, bool nowait,
	      struct inode **ipp)
{
	struct icache *ic = fs->fs_icache;
	struct icache_shard *sh = shard_of(ic, addr);
	struct inode *ip;
	int err = 0;

	pthread_mutex_lock(&sh->lock);
	ip = find_staying(sh, fs, addr, nowait);
	if (ip && is_overtaken(ip, formal) && !state_has(ip, INODE_FREEING))
		become_other(ip, formal);
	if (ip && state_has(ip, INODE_FREEING)) {
		err = nowait ? -EAGAIN : -ESTALE;
	} else if (ip && formal_differs(ip, formal)) {
		err = -ESTALE;
	} else if (ip) {
		if (!ip->i_formal)
			ip->i_formal = formal;
		take_ref(ic, ip);
	} else {
		err = inode_alloc(fs, addr, formal, &ip);
		if (!err)
			table_insert(ic, sh, ip);
	}
	pthread_mutex_unlock(&sh->lock);
	if (!err)
		*ipp = ip;
	return err;
}

/* What another node has freed. EX is held. */
static void clear_old(struct inode *ip)
{
	file_drop_pages(ip);
	buf_invalidate_owner(ip->i_fs->fs_cache, &ip->i_bufs);
	pthread_rwlock_wrlock(&ip->i_lock);
	ip->i_height = ip->i_depth = 0;
	ip->i_eattr = 0;
	ip->i_rdev_major = ip->i_rdev_minor = 0;
	pthread_rwlock_unlock(&ip->i_lock);
	state_clear(ip, INODE_GONE | INODE_BAD | INODE_UNLINKED |
				INODE_DIRTY_TIMES);
	state_set(ip, INODE_READ);
	glock_set_instantiate(ip->i_gl, false);
}

int inode_new(struct fs *fs, uint64_t addr, bool nowait,
	      struct glock_holder *gh, struct inode **ipp)
{
	struct icache *ic = fs->fs_icache;
	struct icache_shard *sh = shard_of(ic, addr);
	bool reused = false;
	struct inode *ip;
	int err = 0;

	pthread_mutex_lock(&sh->lock);
	/*
	 * The block was free on disk, so whoever is still in the table is an
	 * inode whose freeing has been committed but whose evict_inode() has
	 * not returned yet (it waits for nothing any more), or a failed look-up
	 * of a number that was no inode (no reference: it can go).
	 */
	while ((ip = table_find(sh, addr)) != NULL) {
		if (state_has(ip, INODE_FREEING)) {
			if (nowait && !fs->fs_alone) {
				pthread_mutex_unlock(&sh->lock);
				return -EAGAIN;
			}
			pthread_cond_wait(&sh->gone, &sh->lock);
			continue;
		}
		reused = !fs->fs_alone && !atomic_load(&ip->i_opens);
		if (reused) {
			take_ref(ic, ip);
			state_set(ip, INODE_GONE);
			break;
		}
		if (atomic_load(&ip->i_refs)) {
			pthread_mutex_unlock(&sh->lock);
			return -EAGAIN;
		}
		take_ref(ic, ip);
		table_remove(ic, sh, ip);
		inode_destroy(ip);
	}
	if (!reused)
		err = inode_alloc(fs, addr, 0, &ip);
	if (!err && !reused) {
		atomic_fetch_or(&ip->i_state, INODE_READ);
		glock_set_instantiate(ip->i_gl, false);
		table_insert(ic, sh, ip);
	}
	pthread_mutex_unlock(&sh->lock);
	if (err)
		return err;
	err = glock_nq(ip->i_gl, LM_ST_EXCLUSIVE,
		       GL_SKIP | (nowait ? GL_NOWAIT : 0), gh);
	if (err) {
		glock_holder_init(gh);
		inode_new_abort(ip, gh);
		return err;
	}
	if (reused)
		clear_old(ip);
	ip->i_nlink = 1;
	*ipp = ip;
	return 0;
}

/* FREEING is set and the caller holds the last reference. */
static void leave_table(struct icache *ic, struct inode *ip)
{
	struct icache_shard *sh = shard_of(ic, ip->i_addr);

	if (!ip->i_fs->fs_alone)
		give_up_locks(ip);
	pthread_mutex_lock(&sh->lock);
	table_remove(ic, sh, ip);
	inode_destroy(ip);
	pthread_cond_broadcast(&sh->gone);
	pthread_mutex_unlock(&sh->lock);
}

void inode_new_abort(struct inode *ip, struct glock_holder *gh)
{
	if (!ip->i_fs->fs_alone) {
		/* The kernel may know the number from before. */
		state_set(ip, INODE_GONE);
		glock_dq_if_held(gh);
		inode_put(ip);
		return;
	}
	state_set(ip, INODE_FREEING);
	glock_dq_if_held(gh);
	leave_table(ip->i_fs->fs_icache, ip);
}

/* ---- the last reference ---- */

static bool wants_evict(const struct inode *ip)
{
	return state_has(ip, INODE_UNLINKED) &&
	       !state_has(ip, INODE_BAD | INODE_GONE) && !ip->i_fs->fs_rdonly &&
	       !fs_is_withdrawn(ip->i_fs);
}

/* Shard lock held, no reference left. */
static void went_unreferenced(struct icache *ic, struct inode *ip)
{
	bool evict = wants_evict(ip);
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

void inode_ref(struct inode *ip, uint64_t n)
{
	atomic_fetch_add(&ip->i_refs, n);
}

/*
 * What nobody can reach need not be written: with the dirty list's reference
 * the last one goes. Shard lock held. True if the list had it.
 */
static bool leave_dirty_list(struct icache *ic, struct inode *ip)
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

void icache_check_links(struct inode *ip)
{
	struct icache *ic = ip->i_fs->fs_icache;

	if (ip->i_fs->fs_rdonly || state_has(ip, INODE_GONE))
		return;
	pthread_mutex_lock(&ic->lists);
	if (!(state_set(ip, INODE_EVICT_QUEUED) & INODE_EVICT_QUEUED)) {
		inode_ref(ip, 1);
		cds_list_add_tail(&ip->i_lru, &ic->evict);
	}
	pthread_mutex_unlock(&ic->lists);
	fs_wake(ip->i_fs, FS_WORK_EVICT);
}

static bool only_dirty_list_left(const struct inode *ip, uint64_t refs)
{
	return refs == 1 && state_has(ip, INODE_DIRTY_LISTED) &&
	       wants_evict(ip);
}

void inode_unref(struct inode *ip, uint64_t n)
{
	struct icache *ic = ip->i_fs->fs_icache;
	struct icache_shard *sh = shard_of(ic, ip->i_addr);
	uint_fast64_t old = atomic_load(&ip->i_refs);

	while (old > n && !only_dirty_list_left(ip, old - n))
		if (atomic_compare_exchange_weak(&ip->i_refs, &old, old - n))
			return;
	pthread_mutex_lock(&sh->lock);
	old = atomic_fetch_sub(&ip->i_refs, n);
	ug_assert(old >= n);
	old -= n;
	if (only_dirty_list_left(ip, old) && leave_dirty_list(ic, ip))
		old = atomic_fetch_sub(&ip->i_refs, 1) - 1;
	if (!old)
		went_unreferenced(ic, ip);
	pthread_mutex_unlock(&sh->lock);
}

void inode_put(struct inode *ip)
{
	if (ip)
		inode_unref(ip, 1);
}

void fs_forget(struct fs *fs, uint64_t nodeid, uint64_t count)
{
	struct inode *ip;

	if (nodeid == FS_ROOT_NODEID || !count)
		return;
	ip = icache_find(fs, nodeid);
	if (ip)
		inode_unref(ip, count + 1);
}

/* ---- the dirty list ---- */

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

uint64_t icache_count(struct fs *fs)
{
	return atomic_load(&fs->fs_icache->count);
}

/* ---- eviction ---- */

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
		leave_table(ic, ip);
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

/*
 * Inodes without links or open handles that the kernel still counts: it has
 * forgotten them by now, or is about to, since their last name is gone.
 */
static bool has_orphans(struct icache *ic)
{
	struct inode *ip;
	unsigned i, k;
	bool found = false;

	for (i = 0; i < ICACHE_SHARDS && !found; i++) {
		struct icache_shard *sh = &ic->shards[i];

		pthread_mutex_lock(&sh->lock);
		for (k = 0; k < ICACHE_BUCKETS && !found; k++)
			for (ip = sh->buckets[k]; ip && !found;
			     ip = ip->i_hash_next)
				found = wants_evict(ip) &&
					!atomic_load(&ip->i_opens) &&
					!state_has(ip, INODE_FREEING);
		pthread_mutex_unlock(&sh->lock);
	}
	return found;
}

bool icache_may_evict(struct fs *fs)
{
	struct icache *ic = fs->fs_icache;
	bool queued;

	pthread_mutex_lock(&ic->lists);
	queued = ic->evicting || !cds_list_empty(&ic->evict);
	pthread_mutex_unlock(&ic->lists);
	return queued || has_orphans(ic);
}

void icache_drain_orphans(struct fs *fs)
{
	const struct timespec pause = { .tv_nsec = 2000000 };
	unsigned i;

	icache_drain_evict(fs);
	for (i = 0; i < ORPHAN_PAUSES && has_orphans(fs->fs_icache); i++) {
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

/* Metadata of the inode that the journal still needs? */
static bool buffers_busy(struct inode *ip)
{
	struct buf *b;
	bool busy = false;

	pthread_mutex_lock(&ip->i_bufs.bo_lock);
	cds_list_for_each_entry (b, &ip->i_bufs.bo_list, b_owner_link) {
		if (atomic_load(&b->b_journal) || atomic_load(&b->b_refs)) {
			busy = true;
			break;
		}
	}
	pthread_mutex_unlock(&ip->i_bufs.bo_lock);
	return busy;
}

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

/* Free the inode of this address from memory if it is idle and clean. */
static bool reclaim_one(struct icache *ic, uint64_t addr)
{
	struct icache_shard *sh = shard_of(ic, addr);
	struct inode *ip;

	pthread_mutex_lock(&sh->lock);
	ip = table_find(sh, addr);
	if (!ip || atomic_load(&ip->i_refs) || !state_has(ip, INODE_LRU) ||
	    buffers_busy(ip)) {
		pthread_mutex_unlock(&sh->lock);
		return false;
	}
	take_ref(ic, ip);
	if (ip->i_fs->fs_alone) {
		table_remove(ic, sh, ip);
		inode_destroy(ip);
		pthread_mutex_unlock(&sh->lock);
		return true;
	}
	state_set(ip, INODE_FREEING);
	pthread_mutex_unlock(&sh->lock);
	leave_table(ic, ip);
	return true;
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
		if (reclaim_one(ic, addr))
			gone++;
		else
			kept++;
	}
	if (kept)
		fs_wake(fs, FS_WORK_CHECKPOINT);
	return gone;
}

/* ---- the end ---- */

void icache_drop_users(struct fs *fs,
		       bool (*keep)(struct fs *fs, const struct inode *ip))
{
	struct icache *ic = fs->fs_icache;
	struct inode *ip;
	unsigned i, k;

	for (i = 0; i < ICACHE_SHARDS; i++) {
		struct icache_shard *sh = &ic->shards[i];

		pthread_mutex_lock(&sh->lock);
		for (k = 0; k < ICACHE_BUCKETS; k++) {
			for (ip = sh->buckets[k]; ip; ip = ip->i_hash_next) {
				if (keep(fs, ip) || !atomic_load(&ip->i_refs) ||
				    state_has(ip, INODE_FREEING |
							  INODE_DIRTY_LISTED))
					continue;
				atomic_store(&ip->i_opens, 0);
				atomic_store(&ip->i_writers, 0);
				atomic_store(&ip->i_refs, 0);
				went_unreferenced(ic, ip);
			}
		}
		pthread_mutex_unlock(&sh->lock);
	}
}

void icache_destroy(struct fs *fs)
{
	struct icache *ic = fs->fs_icache;
	unsigned i, k;

	if (!ic)
		return;
	for (i = 0; i < ICACHE_SHARDS; i++) {
		for (k = 0; k < ICACHE_BUCKETS; k++) {
			while (ic->shards[i].buckets[k]) {
				struct inode *ip = ic->shards[i].buckets[k];

				ic->shards[i].buckets[k] = ip->i_hash_next;
				file_drop_pages(ip);
				if (!fs->fs_alone)
					give_up_locks(ip);
				inode_destroy(ip);
			}
		}
		pthread_mutex_destroy(&ic->shards[i].lock);
		pthread_cond_destroy(&ic->shards[i].gone);
	}
	pthread_mutex_destroy(&ic->lists);
	pthread_cond_destroy(&ic->evicted);
	free(ic);
	fs->fs_icache = NULL;
}
