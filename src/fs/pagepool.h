/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * pagepool.h - memory for the pages of all files of a volume.
 *
 * One reserved stretch of address space, used in slabs of 64 pages. Pages
 * handed out together, or one after the other to a sequential writer, lie one
 * behind the other, so that a vectored write of them has few elements.
 *
 * A page is free, spare (taken, in no file), or in the table of one file. Clean
 * pages are taken away from files again, by a clock, when no free one is left.
 *
 * Locks: pl_lock guards slabs and clock and is a leaf, but for one thing: the
 * clock tries (never waits for) the locks of files while it holds it. The
 * fields of a page that is in a file are guarded by that file's pp_lock.
 */
#ifndef UG_FS_PAGEPOOL_H
#define UG_FS_PAGEPOOL_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <urcu/list.h>

#include "fs/super.h"

#define PAGE_BYTES 4096u
#define PAGE_SHIFT 12u
#define SLAB_PAGES 64u

struct pages;

/* pg_flags */
#define PAGE_READING 0x1u /* a read of missing blocks is under way */
#define PAGE_NOCACHE 0x2u /* the kernel has it too: drop it once written */

/*
 * 4096 bytes of a file at pg_index * 4096. The masks have one bit per block of
 * the page (one for 4096-byte blocks, eight for 512).
 *
 * A dirty or written block is delayed (no place on disk, space promised) or
 * mapped; in a stuffed file it is neither. A clean block is mapped, or nothing
 * is known. What lies beyond the end of file is zero in every up-to-date block.
 */
struct page {
	_Atomic(struct pages *) pg_owner; /* NULL: free or spare */
	uint64_t pg_index;
	uint8_t pg_uptodate; /* content valid */
	uint8_t pg_dirty;    /* newer than what is on the disk, or on its way */
	uint8_t pg_writing;  /* on its way to the disk */
	uint8_t pg_delayed;  /* waits for a place */
	uint8_t pg_mapped;   /* known to have a place */
	uint8_t pg_flags;
	atomic_uchar pg_used; /* since the clock came by */
};

struct slab {
	uint64_t free; /* bit per page */
	bool released; /* its memory has been given back to the system */
	struct cds_list_head list; /* of partial or empty slabs, or none */
};

struct pagepool {
	unsigned char *pl_memory;
	struct page *pl_pages;
	uint32_t pl_pages_max;
	uint32_t pl_dirty_max;	      /* beyond, writers wait */
	uint32_t pl_dirty_background; /* beyond, write-back is woken */
	atomic_uint pl_dirty;	      /* pages dirty or being written */
	atomic_uint pl_used;	      /* pages not free */
	atomic_bool pl_woken;	      /* write-back has been asked for */

	pthread_mutex_t pl_lock;
	struct slab *pl_slabs;
	uint32_t pl_slabs_max;
	uint32_t pl_slabs_touched; /* below: used at some time */
	struct cds_list_head pl_partial;
	struct cds_list_head pl_empty; /* last used first */
	uint32_t pl_hand;	       /* of the clock: a slab */
	int64_t pl_calm_sec; /* few pages are used since; 0: many are */

	/* Write-backs under way, by the parity of when they began. */
	pthread_mutex_t pl_wb_lock;
	pthread_cond_t pl_wb_done; /* also: made progress */
	unsigned pl_wb_epoch;
	unsigned pl_wb_active[2];
};

static inline unsigned char *page_data(const struct pagepool *pool,
				       const struct page *pg)
{
	return pool->pl_memory +
	       ((uint64_t)(pg - pool->pl_pages) << PAGE_SHIFT);
}

/*
 * Take up to n (at most SLAB_PAGES at a time are contiguous) spare pages, away
 * from clean files if need be. How many: less than n only if the rest of
 * the pool is dirty or busy. Never waits for I/O. No pp_lock held.
 */
unsigned pagepool_take(struct pagepool *pool, unsigned n, struct page **out);

/* Free pages: spare ones, or just taken out of a file (its lock is held). */
void pagepool_give(struct pagepool *pool, struct page *const *pages,
		   unsigned n);

/* pages.c: take a clean, idle page out of its file's table; pp_lock held. */
bool page_evict(struct page *pg);
/* pages.c: try the lock of a file; release it. */
bool pages_trylock(struct pages *pp);
void pages_unlock(struct pages *pp);

/* A write-back begins, and ends: for pagepool_wait_writeback(). */
unsigned pagepool_writeback_begin(struct pagepool *pool);
void pagepool_writeback_end(struct pagepool *pool, unsigned epoch);
/* Some of it is done. */
void pagepool_writeback_progress(struct pagepool *pool);
/*
 * Wait until there is room for dirty pages, or nobody writes back. Returns
 * whether there is room.
 */
bool pagepool_wait_room(struct pagepool *pool);

#endif
