/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * file.h - what the parts of file data know of each other.
 *
 *   pagetable.c, pagepool.c   pages by index; their memory
 *   pages.c       states of a file's pages, promised space
 *   fill.c        pages in from the device
 *   file_read.c, readahead.c, file_write.c, file_direct.c   requests
 *   piece.c, piece_plan.c     pages changed by a write
 *   writeback.c, wb_*.c, file_jdata.c   pages out
 *   file_size.c   the size; file_sync.c, file_open.c
 *
 * Only these, and tests, include this header. Who may change what:
 *
 *   glock EX      content and size change. Whoever holds SH knows that no new
 *                 dirty data appears, and none that is on disk changes.
 *   pp_wb         held by the one write-back or truncation of the inode: the
 *                 pointer tree changes only under it
 *   i_lock wr     i_size, i_delayed, and every step that takes both of them
 *                 and pages from one consistent state to the next
 *   pp_lock       the table and the masks of its pages; never across I/O
 */
#ifndef UG_FS_FILE_H
#define UG_FS_FILE_H

#include "base/assert.h"
#include "base/checked.h"
#include "fs/inode.h"
#include "fs/pagepool.h"
#include "fs/pages.h"
#include "fs/pagetable.h"
#include "fs/rgrp.h"

/* Read-ahead state of a file; guarded by pp_lock. */
struct readahead {
	uint64_t next;	/* page behind the last read */
	uint64_t end;	/* page behind the last one asked for ahead */
	uint64_t mark;	/* reading this page asks for the next window */
	uint32_t pages; /* window; 0: not sequential */
};

struct pages {
	struct inode *pp_inode;
	struct pagepool *pp_pool;
	pthread_mutex_t pp_lock;
	pthread_cond_t pp_ended; /* the read of a page has, or pp_wb */
	bool pp_wb;		 /* somebody has it, see pages_wb_lock() */
	struct pagetable pp_table;
	unsigned pp_reading; /* pages with PAGE_READING */
	unsigned pp_dirty;   /* pages with pg_dirty */
	unsigned pp_writing; /* pages with pg_writing */
	struct readahead pp_ra;

	/* Data written but perhaps not durable; see file_sync.c. */
	atomic_uint_fast64_t pp_written; /* how often */
	atomic_uint_fast64_t pp_flushed; /* as many of these are durable */
	atomic_uint_fast64_t pp_flush_seq;
};

/* ---- blocks and pages ---- */

static inline unsigned page_blocks_shift(const struct inode *ip)
{
	return PAGE_SHIFT - ip->i_fs->fs_geom.bshift;
}

/* All blocks of a page. */
static inline uint8_t page_full(const struct inode *ip)
{
	return (uint8_t)((1u << (1u << page_blocks_shift(ip))) - 1);
}

/* Blocks [from, to) of a page. */
static inline uint8_t page_range(unsigned from, unsigned to)
{
	return (uint8_t)((1u << to) - (1u << from));
}

/* The blocks of a page that bytes [from, to) of it touch; not empty. */
static inline uint8_t page_mask(const struct inode *ip, uint32_t from,
				uint32_t to)
{
	unsigned shift = ip->i_fs->fs_geom.bshift;

	return page_range(from >> shift, ((to - 1) >> shift) + 1);
}

/* Bytes to whole blocks. */
static inline uint64_t file_blocks(const struct inode *ip, uint64_t bytes)
{
	unsigned shift = ip->i_fs->fs_geom.bshift;

	return (bytes >> shift) + !!(bytes & ((1u << shift) - 1));
}

/* ---- pages.c ---- */

/* The inode's struct pages, made when first needed; NULL: no memory. */
struct pages *pages_get(struct inode *ip);

/*
 * pp_wb: a lock that is held across I/O, and of many inodes at once by one
 * thread. Takes pp_lock.
 */
void pages_wb_lock(struct pages *pp);
bool pages_wb_trylock(struct pages *pp);
void pages_wb_unlock(struct pages *pp);

/* Put a spare page into the file at index; nothing of it is valid. -ENOMEM. */
int pages_insert(struct pages *pp, struct page *pg, uint64_t index);
/* Take a page without dirty or delayed blocks out; the caller gives it back. */
void pages_remove(struct pages *pp, struct page *pg);

/* Clean, and the kernel has it as well: no need to keep it. i_lock held. */
bool page_is_surplus(const struct inode *ip, const struct page *pg);

/* These blocks have been changed in memory. */
void page_set_dirty(struct pages *pp, struct page *pg, uint8_t blocks);
/* Forget that they were. */
void page_clear_dirty(struct pages *pp, struct page *pg, uint8_t blocks);
/* All dirty blocks are on their way. */
void page_begin_write(struct pages *pp, struct page *pg);
/* These blocks did not get through: dirty again. */
void page_fail_write(struct pages *pp, struct page *pg, uint8_t blocks);
/* These blocks are no longer on their way. */
void page_end_write(struct pages *pp, struct page *pg, uint8_t blocks);

static inline void page_touch(struct page *pg)
{
	if (!atomic_load_explicit(&pg->pg_used, memory_order_relaxed))
		atomic_store_explicit(&pg->pg_used, 1, memory_order_relaxed);
}

/*
 * Space. A leaf (256 KiB) with delayed blocks holds, beside a promise for each
 * of them, one for all pointer blocks that they may need together. The
 * functions below keep leaf and i_delayed in step (i_lock written, pp_lock
 * held); the calls of space_promise() and space_unpromise() are the caller's.
 *
 * pages_promise_leaf: what the first delayed block of this leaf costs beside
 * itself; 0 if there are some already.
 */
uint32_t pages_promise_leaf(struct pages *pp, const struct pleaf *leaf);
/* Blocks become delayed; meta is what pages_promise_leaf() said. */
void page_delay(struct pages *pp, struct page *pg, uint8_t blocks,
		uint32_t meta);
/*
 * Blocks are delayed no longer (mapped: they have a place now). Returns how
 * much of the promise is no longer needed.
 */
uint64_t page_undelay(struct pages *pp, struct page *pg, uint8_t blocks,
		      bool mapped);

/*
 * Forget all data from block lblock on, dirty or not; nothing is being written
 * (pp_wb held). Waits for reads. Takes i_lock and pp_lock.
 */
void pages_drop_from(struct inode *ip, uint64_t lblock);

/* Wait until the page at index is not being read. pp_lock held. */
void pages_wait_read(struct pages *pp, uint64_t index);

/* ---- fill.c: pages in from the device ---- */

#define FILL_NOWAIT 0x1u /* metadata from memory only: -EAGAIN */
#define FILL_ASYNC 0x2u	 /* start it only; errors are nobody's */

/*
 * Read what is not up to date of the pages [index, index + count), count at
 * most FILL_PAGES_MAX. The glock is held (an asynchronous read may outlast
 * it: who drops pages waits for it). Neither i_lock nor pp_lock held. Pages
 * that another thread reads are left to it. On success every page was up to
 * date or being read by others at some time. -EIO, -EUCLEAN, -ENOMEM.
 */
#define FILL_PAGES_MAX 1024u
int pages_fill(struct inode *ip, uint64_t index, uint32_t count,
	       unsigned flags);

/*
 * Copy contents of a mapped journaled block out of the buffer cache if it is
 * there: it may be newer than the device.
 */
bool jdata_peek(struct inode *ip, uint64_t pblock, void *to);

/* ---- readahead.c ---- */

/*
 * Pages [index, index + count) are about to be read. Says what to ask for
 * ahead: *pages (0: nothing) from *start on. pp_lock held.
 */
void readahead_plan(struct pages *pp, uint64_t index, uint32_t count,
		    uint64_t *start, uint32_t *pages);

/* ---- file_direct.c ---- */

/*
 * Read len bytes, which end within the file, past the pages; glock SH held.
 * room: bytes of buf; whole blocks are read into it where they fit. len, or
 * -errno (-EAGAIN with nowait if the device is needed).
 */
ssize_t direct_read(const struct fs_req *req, struct inode *ip, void *buf,
		    size_t room, size_t len, uint64_t offset);
/*
 * Write over mapped blocks only, within the size; glock EX held, perhaps with
 * others that do the same. 0, or 1: not possible, use the pages; or -errno.
 */
int direct_write(const struct fs_req *req, struct inode *ip, const void *buf,
		 size_t len, uint64_t offset, unsigned io_flags);

/* ---- file_size.c ---- */

/*
 * The file grows beyond its old end by more than a write there: see that what
 * follows the old end in its block is zero on disk too. i_lock written, pp_lock
 * held. 0; -EAGAIN: the page at *need must be filled first, or (*need
 * UINT64_MAX) the tree be read.
 */
int tail_settle(struct inode *ip, uint64_t *need);

/* file_write.c: the file ends at size, beyond its old end. Glock EX held. */
int file_grow(const struct fs_req *req, struct inode *ip, uint64_t size);

/* ---- writing back (writeback.c) ---- */

/* As file_writeback(), with pp_wb held by the caller. */
int writeback_locked(struct inode *ip);
/* Some data of this inode or of older ones, to make room in the pool. */
int writeback_for_room(struct inode *ip);

/*
 * Everything of the file written and durable; datasync: the times need not be.
 * No lock held. -EIO: not everything.
 */
int file_make_durable(struct inode *ip, bool datasync);

/* Data has reached the device (not: its media) outside of the log. */
void file_note_written(struct inode *ip);

/* mtime and ctime now; i_lock written. */
void file_touch(struct inode *ip);
/* A write by req takes privileges away; i_lock written. */
void file_kill_priv(const struct fs_req *req, struct inode *ip,
		    unsigned io_flags);

#endif
