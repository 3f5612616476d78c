/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * pagepool.c - slabs of pages, and the clock that takes clean ones back.
 *
 *   empty     64 free pages     a large request takes one whole
 *   partial   some free pages   small requests fill the first of these, lowest
 *                               page first: a sequential writer gets neighbours
 *   full      on no list
 *
 * The memory of slabs beyond the highest one ever used has not been touched.
 * A slab that has become empty is used again first, while the processor still
 * has it in its caches.
 *
 * The clock goes from slab to slab. A page used since its last visit is left
 * for another round; one that is clean and idle is taken out of its file. The
 * owner that a page names stays in memory as long as pl_lock is held, since
 * pages_free() gives its pages back, under pl_lock, before anything else.
 */
#include <errno.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <time.h>

#include "fs/pagepool.h"
#include "fs/pages.h"
#include "fs/work.h"

/* Room for a few requests of 1 MiB, whatever the caller thinks is enough. */
#define SLABS_MIN 64u
/* A clock that runs runs for some pages more than are wanted now. */
#define RECLAIM_BATCH 64u
/* How long memory is kept for those who write in bursts. */
#define CALM_SEC 5
/* Requests of this size prefer a slab of their own. */
#define LARGE_PAGES 16u
#define HUGE_BYTES (2u << 20)
#define SLAB_BYTES ((uint64_t)SLAB_PAGES * PAGE_BYTES)

static void *reserve(uint64_t bytes)
{
	void *p = mmap(NULL, bytes, PROT_READ | PROT_WRITE,
		       MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

	return p == MAP_FAILED ? NULL : p;
}

/* Aligned for huge pages: a page fault per 2 MiB instead of one per page. */
static unsigned char *reserve_memory(uint64_t bytes)
{
	unsigned char *p = reserve(bytes + HUGE_BYTES);
	size_t head;

	if (!p)
		return NULL;
	head = -(uintptr_t)p % HUGE_BYTES;
	if (head)
		munmap(p, head);
	munmap(p + head + bytes, HUGE_BYTES - head);
	madvise(p + head, bytes, MADV_HUGEPAGE);
	return p + head;
}

static void pool_init(struct pagepool *pool, uint32_t slabs)
{
	pool->pl_slabs_max = slabs;
	pool->pl_pages_max = slabs * SLAB_PAGES;
	pool->pl_dirty_max = pool->pl_pages_max / 2;
	pool->pl_dirty_background = pool->pl_pages_max / 4;
	CDS_INIT_LIST_HEAD(&pool->pl_partial);
	CDS_INIT_LIST_HEAD(&pool->pl_empty);
	pthread_mutex_init(&pool->pl_lock, NULL);
	pthread_mutex_init(&pool->pl_wb_lock, NULL);
	pthread_cond_init(&pool->pl_wb_done, NULL);
}

static void pool_free(struct pagepool *pool)
{
	if (pool->pl_memory)
		munmap(pool->pl_memory, pool->pl_slabs_max * SLAB_BYTES);
	if (pool->pl_pages)
		munmap(pool->pl_pages,
		       pool->pl_pages_max * sizeof(*pool->pl_pages));
	free(pool->pl_slabs);
	pthread_mutex_destroy(&pool->pl_lock);
	pthread_mutex_destroy(&pool->pl_wb_lock);
	pthread_cond_destroy(&pool->pl_wb_done);
	free(pool);
}

int pagepool_create(struct fs *fs, uint64_t limit_bytes)
{
	uint64_t slabs = UG_MAX(limit_bytes / SLAB_BYTES, SLABS_MIN);
	struct pagepool *pool = calloc(1, sizeof(*pool));

	if (!pool)
		return -ENOMEM;
	/* The number of a page has 32 bits. */
	pool_init(pool, (uint32_t)UG_MIN(slabs, UINT32_MAX / SLAB_PAGES));
	pool->pl_memory = reserve_memory(pool->pl_slabs_max * SLAB_BYTES);
	pool->pl_pages = reserve(pool->pl_pages_max * sizeof(*pool->pl_pages));
	pool->pl_slabs = calloc(pool->pl_slabs_max, sizeof(*pool->pl_slabs));
	if (!pool->pl_memory || !pool->pl_pages || !pool->pl_slabs) {
		pool_free(pool);
		return -ENOMEM;
	}
	fs->fs_pages = pool;
	return 0;
}

void pagepool_destroy(struct fs *fs)
{
	pool_free(fs->fs_pages);
	fs->fs_pages = NULL;
}

void pagepool_stats(struct fs *fs, uint64_t *bytes, uint64_t *dirty_bytes)
{
	struct pagepool *pool = fs->fs_pages;

	*bytes = (uint64_t)atomic_load(&pool->pl_used) << PAGE_SHIFT;
	*dirty_bytes = (uint64_t)atomic_load(&pool->pl_dirty) << PAGE_SHIFT;
}

/* ---- slabs; pl_lock held ---- */

static struct slab *slab_empty(struct pagepool *pool)
{
	struct slab *slab;

	if (!cds_list_empty(&pool->pl_empty))
		return cds_list_first_entry(&pool->pl_empty, struct slab, list);
	if (pool->pl_slabs_touched == pool->pl_slabs_max)
		return NULL;
	slab = &pool->pl_slabs[pool->pl_slabs_touched++];
	slab->free = ~UINT64_C(0);
	cds_list_add(&slab->list, &pool->pl_empty);
	return slab;
}

static struct slab *slab_choose(struct pagepool *pool, unsigned n)
{
	struct slab *slab = NULL;

	if (n >= LARGE_PAGES || cds_list_empty(&pool->pl_partial))
		slab = slab_empty(pool);
	if (!slab && !cds_list_empty(&pool->pl_partial))
		slab = cds_list_first_entry(&pool->pl_partial, struct slab,
					    list);
	return slab;
}

static void slab_relist(struct pagepool *pool, struct slab *slab)
{
	if (slab->free == ~UINT64_C(0))
		cds_list_add(&slab->list, &pool->pl_empty);
	else if (slab->free)
		cds_list_add(&slab->list, &pool->pl_partial);
}

static unsigned slab_take(struct pagepool *pool, struct slab *slab, unsigned n,
			  struct page **out)
{
	struct page *first =
		pool->pl_pages + (slab - pool->pl_slabs) * SLAB_PAGES;
	unsigned got = 0;

	cds_list_del(&slab->list);
	slab->released = false;
	for (; got < n && slab->free; got++) {
		out[got] = first + __builtin_ctzll(slab->free);
		slab->free &= slab->free - 1;
	}
	slab_relist(pool, slab);
	return got;
}

static void slab_give(struct pagepool *pool, struct page *pg)
{
	uint32_t nr = (uint32_t)(pg - pool->pl_pages);
	struct slab *slab = &pool->pl_slabs[nr / SLAB_PAGES];
	bool listed = slab->free;

	slab->free |= UINT64_C(1) << nr % SLAB_PAGES;
	/* On a list already, unless it was full; moves if it is empty now. */
	if (listed && slab->free != ~UINT64_C(0))
		return;
	if (listed)
		cds_list_del(&slab->list);
	slab_relist(pool, slab);
}

static void page_free(struct pagepool *pool, struct page *pg)
{
	atomic_store_explicit(&pg->pg_owner, NULL, memory_order_relaxed);
	slab_give(pool, pg);
	atomic_fetch_sub_explicit(&pool->pl_used, 1, memory_order_relaxed);
}

void pagepool_give(struct pagepool *pool, struct page *const *pages, unsigned n)
{
	if (!n)
		return;
	pthread_mutex_lock(&pool->pl_lock);
	for (unsigned i = 0; i < n; i++)
		page_free(pool, pages[i]);
	pthread_mutex_unlock(&pool->pl_lock);
}

/* ---- the clock; pl_lock held ---- */

/* Take what can be taken of one slab. */
static unsigned reclaim_slab(struct pagepool *pool, uint32_t nr)
{
	struct page *first = pool->pl_pages + (uint64_t)nr * SLAB_PAGES;
	uint64_t used = ~pool->pl_slabs[nr].free;
	struct pages *locked = NULL;
	unsigned got = 0;

	for (; used; used &= used - 1) {
		struct page *pg = first + __builtin_ctzll(used);
		struct pages *owner = atomic_load(&pg->pg_owner);

		if (!owner || atomic_exchange(&pg->pg_used, 0))
			continue;
		if (owner != locked) {
			if (locked)
				pages_unlock(locked);
			locked = pages_trylock(owner) ? owner : NULL;
		}
		if (locked && page_evict(pg)) {
			page_free(pool, pg);
			got++;
		}
	}
	if (locked)
		pages_unlock(locked);
	return got;
}

static unsigned reclaim(struct pagepool *pool, unsigned want)
{
	/* Two rounds: the first may find every page just used. */
	uint64_t visits = 2 * (uint64_t)pool->pl_slabs_touched;
	unsigned got = 0;

	while (got < want && visits--) {
		if (pool->pl_hand >= pool->pl_slabs_touched)
			pool->pl_hand = 0;
		got += reclaim_slab(pool, pool->pl_hand++);
	}
	return got;
}

unsigned pagepool_take(struct pagepool *pool, unsigned n, struct page **out)
{
	unsigned got = 0;

	pthread_mutex_lock(&pool->pl_lock);
	while (got < n) {
		struct slab *slab = slab_choose(pool, n - got);

		if (slab)
			got += slab_take(pool, slab, n - got, out + got);
		else if (!reclaim(pool, n - got + RECLAIM_BATCH))
			break;
	}
	pthread_mutex_unlock(&pool->pl_lock);
	atomic_fetch_add_explicit(&pool->pl_used, got, memory_order_relaxed);
	return got;
}

/* ---- little memory ---- */

/*
 * Give the memory of empty slabs back to the system. The mount process has its
 * memory locked, and MADV_DONTNEED refuses locked pages.
 */
static void release_empty(struct pagepool *pool)
{
	struct slab *slab;

	cds_list_for_each_entry (slab, &pool->pl_empty, list) {
		uint64_t nr = (uint64_t)(slab - pool->pl_slabs);

		if (!slab->released)
			madvise(pool->pl_memory + nr * SLAB_BYTES, SLAB_BYTES,
				MADV_DONTNEED_LOCKED);
		slab->released = true;
	}
}

/*
 * Have few pages been in use for a while? Memory that is given back and wanted
 * again at once costs more than the writing.
 */
static bool is_calm(struct pagepool *pool, uint32_t used)
{
	struct timespec now;
	bool calm;

	if (used >= pool->pl_slabs_touched * (SLAB_PAGES / 4)) {
		pool->pl_calm_sec = 0;
		return false;
	}
	clock_gettime(CLOCK_MONOTONIC, &now);
	if (pool->pl_calm_sec && now.tv_sec - pool->pl_calm_sec < CALM_SEC)
		return false;
	calm = pool->pl_calm_sec != 0;
	pool->pl_calm_sec = now.tv_sec;
	return calm;
}

void pagepool_shrink(struct fs *fs)
{
	struct pagepool *pool = fs->fs_pages;
	uint32_t target = pool->pl_pages_max / 4 * 3;
	uint32_t used = atomic_load(&pool->pl_used);

	if (fs->fs_journal &&
	    atomic_load(&pool->pl_dirty) > pool->pl_dirty_background)
		fs_writeback_all(fs);
	atomic_store(&pool->pl_woken, false);
	pthread_mutex_lock(&pool->pl_lock);
	if (used > target)
		reclaim(pool, used - target);
	if (is_calm(pool, used))
		release_empty(pool);
	pthread_mutex_unlock(&pool->pl_lock);
}

/* ---- write-backs under way ---- */

unsigned pagepool_writeback_begin(struct pagepool *pool)
{
	unsigned epoch;

	pthread_mutex_lock(&pool->pl_wb_lock);
	epoch = pool->pl_wb_epoch;
	pool->pl_wb_active[epoch % 2]++;
	pthread_mutex_unlock(&pool->pl_wb_lock);
	return epoch;
}

void pagepool_writeback_end(struct pagepool *pool, unsigned epoch)
{
	pthread_mutex_lock(&pool->pl_wb_lock);
	if (--pool->pl_wb_active[epoch % 2] == 0)
		pthread_cond_broadcast(&pool->pl_wb_done);
	pthread_mutex_unlock(&pool->pl_wb_lock);
}

void pagepool_writeback_progress(struct pagepool *pool)
{
	pthread_mutex_lock(&pool->pl_wb_lock);
	pthread_cond_broadcast(&pool->pl_wb_done);
	pthread_mutex_unlock(&pool->pl_wb_lock);
}

static bool has_room(struct pagepool *pool)
{
	return atomic_load(&pool->pl_dirty) <= pool->pl_dirty_max;
}

bool pagepool_wait_room(struct pagepool *pool)
{
	pthread_mutex_lock(&pool->pl_wb_lock);
	while (!has_room(pool) &&
	       (pool->pl_wb_active[0] || pool->pl_wb_active[1]))
		pthread_cond_wait(&pool->pl_wb_done, &pool->pl_wb_lock);
	pthread_mutex_unlock(&pool->pl_wb_lock);
	return has_room(pool);
}

void pagepool_wait_writeback(struct fs *fs)
{
	struct pagepool *pool = fs->fs_pages;
	unsigned epoch;

	pthread_mutex_lock(&pool->pl_wb_lock);
	/* The other counter must be free before new ones may use it. */
	while (pool->pl_wb_active[(pool->pl_wb_epoch + 1) % 2])
		pthread_cond_wait(&pool->pl_wb_done, &pool->pl_wb_lock);
	epoch = pool->pl_wb_epoch++;
	while (pool->pl_wb_active[epoch % 2])
		pthread_cond_wait(&pool->pl_wb_done, &pool->pl_wb_lock);
	pthread_mutex_unlock(&pool->pl_wb_lock);
}
