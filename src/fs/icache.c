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
 */
#include <errno.h>
#include <stdlib.h>

#include "base/assert.h"
#include "fs/icache_int.h"
#include "fs/pages.h"

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
	icache_lists_init(ic, unreferenced_max);
	fs->fs_icache = ic;
	return 0;
}

/* ---- the table ---- */

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
	if (atomic_fetch_add(&ip->i_refs, 1) == 0 && state_has(ip, INODE_LRU))
		icache_referenced(ic, ip);
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
	state_set(ip, INODE_REBORN);
	state_clear(ip, INODE_GONE | INODE_BAD | INODE_UNLINKED);
	glock_set_instantiate(ip->i_gl, true);
}

void icache_forget_old(struct inode *ip)
{
	struct icache_shard *sh = shard_of(ip->i_fs->fs_icache, ip->i_addr);

	pthread_mutex_lock(&sh->lock);
	if (!state_has(ip, INODE_FREEING) && !atomic_load(&ip->i_opens))
		become_other(ip, 0);
	pthread_mutex_unlock(&sh->lock);
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
		err = inode_memory_new(fs, addr, formal, &ip);
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
	state_set(ip, INODE_READ | INODE_REBORN);
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
		inode_memory_free(ip);
	}
	if (!reused)
		err = inode_memory_new(fs, addr, 0, &ip);
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

void icache_leave_table(struct icache *ic, struct inode *ip)
{
	struct icache_shard *sh = shard_of(ic, ip->i_addr);

	if (!ip->i_fs->fs_alone)
		inode_give_up_locks(ip);
	pthread_mutex_lock(&sh->lock);
	table_remove(ic, sh, ip);
	inode_memory_free(ip);
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
	icache_leave_table(ip->i_fs->fs_icache, ip);
}

/* ---- the last reference ---- */

void inode_ref(struct inode *ip, uint64_t n)
{
	atomic_fetch_add(&ip->i_refs, n);
}

static bool only_dirty_list_left(const struct inode *ip, uint64_t refs)
{
	return refs == 1 && state_has(ip, INODE_DIRTY_LISTED) &&
	       icache_wants_evict(ip);
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
	if (only_dirty_list_left(ip, old) && icache_leave_dirty(ic, ip))
		old = atomic_fetch_sub(&ip->i_refs, 1) - 1;
	if (!old)
		icache_unreferenced(ic, ip);
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
	if (!ip)
		return;
	if (!fs->fs_alone)
		atomic_fetch_sub(&ip->i_lookups, count);
	inode_unref(ip, count + 1);
}

bool fs_is_known(struct fs *fs, uint64_t nodeid)
{
	struct inode *ip = fs_inode_get(fs, nodeid);
	bool known = ip && (nodeid == FS_ROOT_NODEID || inode_is_looked_up(ip));

	inode_put(ip);
	return known;
}

uint64_t icache_count(struct fs *fs)
{
	return atomic_load(&fs->fs_icache->count);
}

bool icache_has_orphans(struct icache *ic, bool or_open)
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
				found = icache_wants_evict(ip) &&
					(or_open ||
					 !atomic_load(&ip->i_opens)) &&
					!state_has(ip, INODE_FREEING);
		pthread_mutex_unlock(&sh->lock);
	}
	return found;
}

bool icache_reclaim(struct icache *ic, uint64_t addr)
{
	struct icache_shard *sh = shard_of(ic, addr);
	struct inode *ip;

	pthread_mutex_lock(&sh->lock);
	ip = table_find(sh, addr);
	if (!ip || atomic_load(&ip->i_refs) || !state_has(ip, INODE_LRU) ||
	    inode_buffers_busy(ip)) {
		pthread_mutex_unlock(&sh->lock);
		return false;
	}
	take_ref(ic, ip);
	if (ip->i_fs->fs_alone) {
		table_remove(ic, sh, ip);
		inode_memory_free(ip);
		pthread_mutex_unlock(&sh->lock);
		return true;
	}
	state_set(ip, INODE_FREEING);
	pthread_mutex_unlock(&sh->lock);
	icache_leave_table(ic, ip);
	return true;
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
				icache_unreferenced(ic, ip);
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
					inode_give_up_locks(ip);
				inode_memory_free(ip);
			}
		}
		pthread_mutex_destroy(&ic->shards[i].lock);
		pthread_cond_destroy(&ic->shards[i].gone);
	}
	icache_lists_destroy(ic);
	free(ic);
	fs->fs_icache = NULL;
}
