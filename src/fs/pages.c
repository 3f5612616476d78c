/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * pages.c - states of a file's pages, and the space promised for them.
 *
 * A block of a page on its way through a delayed write:
 *
 *   write(2)        write-back           data written,      write-back
 *                   takes it             place committed    is over
 *   dirty,     ->   writing,       ->    writing,      ->   (clean)
 *   delayed         delayed              mapped             mapped
 *
 * A write in the meantime makes it dirty again, without a second promise; a
 * failure makes it dirty again as well. So nothing of a file is ever lost in
 * memory, and delayed and promised go together exactly.
 *
 * Promises for pointer blocks are made per leaf of the page table, for the
 * worst case of all its 256 KiB, when its first block becomes delayed, and
 * given back with the last. That the worst case at that time stays one is seen
 * to by tree_insert.c (a tree that grows keeps the way to low offsets) and by
 * file_size.c (a tree that shrinks is preceded by write-back).
 */
#include <errno.h>
#include <stdlib.h>

#include "fs/file.h"
#include "fs/tree.h"

/* ---- struct pages ---- */

static struct pages *pages_new(struct inode *ip)
{
	struct pages *pp = calloc(1, sizeof(*pp));

	if (!pp)
		return NULL;
	pp->pp_inode = ip;
	pp->pp_pool = ip->i_fs->fs_pages;
	pp->pp_table.base = pp->pp_pool->pl_pages;
	pthread_mutex_init(&pp->pp_lock, NULL);
	pthread_cond_init(&pp->pp_ended, NULL);
	return pp;
}

static void pages_destroy(struct pages *pp)
{
	pthread_mutex_destroy(&pp->pp_lock);
	pthread_cond_destroy(&pp->pp_ended);
	free(pp);
}

struct pages *pages_get(struct inode *ip)
{
	struct pages *pp = atomic_load(&ip->i_pages), *expected = NULL;

	if (ug_likely(pp))
		return pp;
	pp = pages_new(ip);
	if (!pp || atomic_compare_exchange_strong(&ip->i_pages, &expected, pp))
		return pp;
	/* Another thread was faster. */
	pages_destroy(pp);
	return expected;
}

void pages_free(struct inode *ip)
{
	struct pages *pp = atomic_load(&ip->i_pages);

	if (!pp)
		return;
	pages_drop_from(ip, 0);
	atomic_store(&ip->i_pages, NULL);
	pages_destroy(pp);
}

void pages_wb_lock(struct pages *pp)
{
	pthread_mutex_lock(&pp->pp_lock);
	while (pp->pp_wb)
		pthread_cond_wait(&pp->pp_ended, &pp->pp_lock);
	pp->pp_wb = true;
	pthread_mutex_unlock(&pp->pp_lock);
}

bool pages_wb_trylock(struct pages *pp)
{
	bool taken;

	pthread_mutex_lock(&pp->pp_lock);
	taken = !pp->pp_wb;
	pp->pp_wb = true;
	pthread_mutex_unlock(&pp->pp_lock);
	return taken;
}

void pages_wb_unlock(struct pages *pp)
{
	pthread_mutex_lock(&pp->pp_lock);
	pp->pp_wb = false;
	pthread_cond_broadcast(&pp->pp_ended);
	pthread_mutex_unlock(&pp->pp_lock);
}

bool file_is_dirty(struct inode *ip)
{
	struct pages *pp = atomic_load(&ip->i_pages);
	bool dirty = atomic_load(&ip->i_state) & INODE_DIRTY_TIMES;

	if (pp && !dirty) {
		pthread_mutex_lock(&pp->pp_lock);
		dirty = pp->pp_dirty || pp->pp_writing;
		pthread_mutex_unlock(&pp->pp_lock);
	}
	if (!dirty && inode_is_reg(ip)) {
		pthread_rwlock_rdlock(&ip->i_lock);
		dirty = ip->i_size != ip->i_disksize;
		inode_rwunlock(ip);
	}
	return dirty;
}

/* ---- the table; pp_lock held ---- */

int pages_insert(struct pages *pp, struct page *pg, uint64_t index)
{
	int err;

	pg->pg_index = index;
	pg->pg_uptodate = 0;
	pg->pg_dirty = 0;
	pg->pg_writing = 0;
	pg->pg_delayed = 0;
	pg->pg_mapped = 0;
	pg->pg_flags = 0;
	err = pagetable_insert(&pp->pp_table, pg);
	if (err)
		return err;
	atomic_store_explicit(&pg->pg_used, 0, memory_order_relaxed);
	atomic_store(&pg->pg_owner, pp);
	return 0;
}

static bool page_is_busy(const struct page *pg)
{
	return pg->pg_dirty || pg->pg_writing || pg->pg_delayed ||
	       (pg->pg_flags & PAGE_READING);
}

void pages_remove(struct pages *pp, struct page *pg)
{
	ug_assert(!page_is_busy(pg));
	pagetable_remove(&pp->pp_table, pg);
}

bool page_is_surplus(const struct inode *ip, const struct page *pg)
{
	uint64_t end = (pg->pg_index + 1) << PAGE_SHIFT;

	if (!(pg->pg_flags & PAGE_NOCACHE) || page_is_busy(pg))
		return false;
	/* What is appended to a page needs its beginning. */
	return end <= ip->i_size || !atomic_load(&ip->i_writers);
}

bool pages_trylock(struct pages *pp)
{
	return pthread_mutex_trylock(&pp->pp_lock) == 0;
}

void pages_unlock(struct pages *pp)
{
	pthread_mutex_unlock(&pp->pp_lock);
}

bool page_evict(struct page *pg)
{
	struct pages *pp = atomic_load(&pg->pg_owner);

	if (page_is_busy(pg))
		return false;
	pages_remove(pp, pg);
	return true;
}

/* ---- dirty, writing; pp_lock held ---- */

static bool page_counts_dirty(const struct page *pg)
{
	return pg->pg_dirty | pg->pg_writing;
}

/* The page was dirty or not, and may have changed. */
static void pool_recount(struct pages *pp, const struct page *pg, bool was)
{
	atomic_uint *count = &pp->pp_pool->pl_dirty;

	if (was == page_counts_dirty(pg))
		return;
	if (was)
		atomic_fetch_sub_explicit(count, 1, memory_order_relaxed);
	else
		atomic_fetch_add_explicit(count, 1, memory_order_relaxed);
}

void page_set_dirty(struct pages *pp, struct page *pg, uint8_t blocks)
{
	bool was = page_counts_dirty(pg);

	if (!blocks)
		return;
	if (!pg->pg_dirty) {
		pp->pp_dirty++;
		pagetable_set_dirty(&pp->pp_table, pg);
	}
	pg->pg_dirty |= blocks;
	pg->pg_uptodate |= blocks;
	pool_recount(pp, pg, was);
}

static void lower_dirty(struct pages *pp, struct page *pg, uint8_t blocks)
{
	if (!pg->pg_dirty)
		return;
	pg->pg_dirty &= (uint8_t)~blocks;
	if (pg->pg_dirty)
		return;
	pp->pp_dirty--;
	pagetable_clear_dirty(&pp->pp_table, pg);
}

void page_clear_dirty(struct pages *pp, struct page *pg, uint8_t blocks)
{
	bool was = page_counts_dirty(pg);

	lower_dirty(pp, pg, blocks);
	pool_recount(pp, pg, was);
}

void page_begin_write(struct pages *pp, struct page *pg)
{
	ug_assert(!pg->pg_writing);
	pg->pg_writing = pg->pg_dirty;
	pp->pp_writing++;
	lower_dirty(pp, pg, pg->pg_dirty);
}

void page_end_write(struct pages *pp, struct page *pg, uint8_t blocks)
{
	bool was = page_counts_dirty(pg);

	if (!pg->pg_writing)
		return;
	pg->pg_writing &= (uint8_t)~blocks;
	if (!pg->pg_writing)
		pp->pp_writing--;
	pool_recount(pp, pg, was);
}

void page_fail_write(struct pages *pp, struct page *pg, uint8_t blocks)
{
	page_set_dirty(pp, pg, pg->pg_writing & blocks);
	page_end_write(pp, pg, blocks);
}

/* ---- promised space; i_lock written, pp_lock held ---- */

uint32_t pages_promise_leaf(struct pages *pp, const struct pleaf *leaf)
{
	struct inode *ip = pp->pp_inode;
	unsigned shift = page_blocks_shift(ip);

	if (leaf->delayed)
		return 0;
	return tree_meta_max(ip, leaf->n.first << shift, LEAF_PAGES << shift);
}

void page_delay(struct pages *pp, struct page *pg, uint8_t blocks,
		uint32_t meta)
{
	struct pleaf *leaf = pagetable_leaf(&pp->pp_table, pg->pg_index);
	unsigned n = (unsigned)__builtin_popcount(blocks);

	pg->pg_delayed |= blocks;
	leaf->delayed = (uint16_t)(leaf->delayed + n);
	leaf->meta = (uint16_t)(leaf->meta + meta);
	pp->pp_inode->i_delayed += n;
}

uint64_t page_undelay(struct pages *pp, struct page *pg, uint8_t blocks,
		      bool mapped)
{
	struct pleaf *leaf = pagetable_leaf(&pp->pp_table, pg->pg_index);
	unsigned n = (unsigned)__builtin_popcount(blocks & pg->pg_delayed);
	uint64_t promised = n;

	if (mapped)
		pg->pg_mapped |= blocks;
	if (!n)
		return 0;
	pg->pg_delayed &= (uint8_t)~blocks;
	leaf->delayed = (uint16_t)(leaf->delayed - n);
	pp->pp_inode->i_delayed -= n;
	if (!leaf->delayed) {
		promised += leaf->meta;
		leaf->meta = 0;
	}
	return promised;
}

/* ---- dropping ---- */

void pages_wait_read(struct pages *pp, uint64_t index)
{
	for (;;) {
		struct page *pg = pagetable_get(&pp->pp_table, index);

		if (!pg || !(pg->pg_flags & PAGE_READING))
			return;
		pthread_cond_wait(&pp->pp_ended, &pp->pp_lock);
	}
}

/*
 * i_lock written and pp_lock held, with no page being read. Who reads has to
 * take i_lock in the middle, so the wait comes before i_lock.
 */
static void lock_without_reads(struct inode *ip, struct pages *pp)
{
	for (;;) {
		pthread_mutex_lock(&pp->pp_lock);
		while (pp->pp_reading)
			pthread_cond_wait(&pp->pp_ended, &pp->pp_lock);
		pthread_mutex_unlock(&pp->pp_lock);
		pthread_rwlock_wrlock(&ip->i_lock);
		pthread_mutex_lock(&pp->pp_lock);
		if (!pp->pp_reading)
			return;
		pthread_mutex_unlock(&pp->pp_lock);
		inode_rwunlock(ip);
	}
}

/* Forget blocks of a page; the page too if they are all it has. */
static uint64_t drop_blocks(struct pages *pp, struct page *pg, uint8_t blocks)
{
	uint64_t promised;

	page_clear_dirty(pp, pg, blocks);
	promised = page_undelay(pp, pg, blocks, false);
	pg->pg_uptodate &= (uint8_t)~blocks;
	pg->pg_mapped &= (uint8_t)~blocks;
	if (blocks == page_full(pp->pp_inode)) {
		pages_remove(pp, pg);
		pagepool_give(pp->pp_pool, &pg, 1);
	}
	return promised;
}

void pages_drop_from(struct inode *ip, uint64_t lblock)
{
	struct pages *pp = atomic_load(&ip->i_pages);
	unsigned shift = page_blocks_shift(ip), in_page = 1u << shift;
	uint64_t index = lblock >> shift, promised = 0;
	struct page *pg;

	if (!pp)
		return;
	lock_without_reads(ip, pp);
	while ((pg = pagetable_next(&pp->pp_table, index, false)) != NULL) {
		uint8_t blocks = page_full(ip);

		if (pg->pg_index == lblock >> shift)
			blocks = page_range(lblock & (in_page - 1), in_page);
		index = pg->pg_index + 1;
		promised += drop_blocks(pp, pg, blocks);
	}
	pthread_mutex_unlock(&pp->pp_lock);
	inode_rwunlock(ip);
	if (promised)
		space_unpromise(ip->i_fs, promised);
}

void file_drop_pages(struct inode *ip)
{
	struct pages *pp = atomic_load(&ip->i_pages);

	if (!pp)
		return;
	pages_wb_lock(pp);
	pages_drop_from(ip, 0);
	pages_wb_unlock(pp);
}
