/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * file_write.c - writing into pages; the disk comes later (writeback.c).
 *
 * A write goes in pieces of at most 1 MiB. For each piece everything that can
 * fail or wait is looked at first, then all takes effect in one step, with
 * i_lock written and pp_lock held:
 *
 *   pages      in the table; missing ones are taken from the pool
 *   mapping    of each block: mapped, or delayed with this write
 *   old bytes  of blocks that are covered in part: up to date, or zero
 *   space      promised for blocks that become delayed
 *   -------    from here on nothing fails
 *   copy, marks, size, times
 *
 * What is missing is named (enum want) and supplied with these locks
 * released, and the piece is tried again; in no-wait mode only what memory can
 * supply. The glock EX is held all the time, so that nobody but write-back and
 * the pool's clock changes anything in between.
 *
 * Write-back sees the size and the pages change together: it must not take a
 * page for clean whose last bytes it did not know to be part of the file.
 */
#include <errno.h>
#include <string.h>

#include "fs/file.h"
#include "fs/tree.h"
#include "fs/work.h"

#define PIECE_BYTES_MAX (1u << 20)
#define PIECE_PAGES_MAX (PIECE_BYTES_MAX / PAGE_BYTES + 1)
/* Attempts to find memory for a piece before the writer is told. */
#define MEMORY_TRIES 16u

enum want {
	WANT_NOTHING,
	WANT_FILL,   /* the page at want_at filled */
	WANT_TREE,   /* pointer blocks of the block at want_at in memory */
	WANT_SPACE,  /* blocks to promise */
	WANT_MEMORY, /* free pages */
};

struct piece_page {
	struct page *pg;
	uint8_t cover;	/* blocks that the write touches */
	uint8_t fresh;	/* of these, those that become delayed */
	uint8_t mapped; /* those found to be mapped */
	uint8_t zero;	/* those whose old content is zero */
};

struct piece {
	const struct fs_req *req;
	struct inode *ip;
	struct pages *pp;
	const char *buf;
	uint64_t offset;
	size_t len;
	unsigned io_flags;
	bool stuffed; /* the file stays so */

	enum want want;
	uint64_t want_at;
	unsigned tries;
	bool space_tried;

	struct tree_run run; /* mapping found last, */
	uint64_t run_lblock; /* from this block on */

	unsigned spares;
	struct page *spare[PIECE_PAGES_MAX];
	unsigned count;
	struct piece_page pages[PIECE_PAGES_MAX];
};

static int wants(struct piece *p, enum want want, uint64_t at)
{
	p->want = want;
	p->want_at = at;
	return -EAGAIN;
}

static uint64_t first_index(const struct piece *p)
{
	return p->offset >> PAGE_SHIFT;
}

/* The bytes of page i that the piece covers: [*from, *to). */
static void piece_bytes(const struct piece *p, unsigned i, uint32_t *from,
			uint32_t *to)
{
	uint64_t start = (first_index(p) + i) << PAGE_SHIFT;
	uint64_t end = p->offset + p->len;

	*from = p->offset > start ? (uint32_t)(p->offset - start) : 0;
	*to = (uint32_t)UG_MIN(end - start, (uint64_t)PAGE_BYTES);
}

/* ---- looking; i_lock written, pp_lock held ---- */

static unsigned find_pages(struct piece *p)
{
	unsigned missing = 0;

	for (unsigned i = 0; i < p->count; i++) {
		p->pages[i].pg =
			pagetable_get(&p->pp->pp_table, first_index(p) + i);
		missing += !p->pages[i].pg;
	}
	return missing;
}

/* Neighbours in the file become neighbours in memory: lowest page first. */
static int insert_spares(struct piece *p, unsigned missing)
{
	unsigned used = 0;
	int err = 0;

	for (unsigned i = 0; used < missing; i++) {
		struct page *pg = p->spare[used];

		if (p->pages[i].pg)
			continue;
		err = pages_insert(p->pp, pg, first_index(p) + i);
		if (err)
			break;
		p->pages[i].pg = pg;
		used++;
	}
	p->spares -= used;
	memmove(p->spare, p->spare + used, p->spares * sizeof(p->spare[0]));
	return err;
}

/* All pages of the piece in the table. Drops pp_lock to get new ones. */
static int get_pages(struct piece *p)
{
	struct pages *pp = p->pp;
	unsigned missing;

	while ((missing = find_pages(p)) > p->spares) {
		unsigned need = missing - p->spares, got;

		pthread_mutex_unlock(&pp->pp_lock);
		got = pagepool_take(pp->pp_pool, need, p->spare + p->spares);
		pthread_mutex_lock(&pp->pp_lock);
		p->spares += got;
		if (got < need)
			return wants(p, WANT_MEMORY, 0);
	}
	return missing ? insert_spares(p, missing) : 0;
}

/* Is lblock a hole? The tree is asked once per run. */
static int is_hole(struct piece *p, uint64_t lblock, bool *hole)
{
	uint64_t skip = lblock - p->run_lblock;

	/* Behind the end a place may exist (preallocation), but promising
	 * space for it does no harm, and saves the look for every append. */
	if (lblock >= file_blocks(p->ip, p->ip->i_size)) {
		*hole = true;
		return 0;
	}
	if (lblock < p->run_lblock || skip >= p->run.count) {
		uint32_t ahead = p->count << page_blocks_shift(p->ip);
		int err = tree_map(p->ip, lblock, ahead, true, &p->run);

		if (err == -EAGAIN)
			return wants(p, WANT_TREE, lblock);
		if (err)
			return err;
		p->run_lblock = lblock;
	}
	*hole = !p->run.pblock;
	return 0;
}

/* Which of the covered blocks have a place, and which need one. */
static int plan_places(struct piece *p, struct piece_page *pp)
{
	uint64_t first = pp->pg->pg_index << page_blocks_shift(p->ip);
	uint8_t unknown =
		pp->cover & (uint8_t) ~(pp->pg->pg_delayed | pp->pg->pg_mapped);

	pp->fresh = 0;
	pp->mapped = 0;
	if (p->stuffed)
		return 0;
	for (; unknown; unknown &= (uint8_t)(unknown - 1)) {
		unsigned block = (unsigned)__builtin_ctz(unknown);
		bool hole;
		int err = is_hole(p, first + block, &hole);

		if (err)
			return err;
		if (hole)
			pp->fresh |= (uint8_t)(1u << block);
		else
			pp->mapped |= (uint8_t)(1u << block);
	}
	return 0;
}

/* Blocks of which bytes [from, to) leave something as it was. */
static uint8_t partial_blocks(const struct piece *p, uint32_t from, uint32_t to)
{
	uint32_t mask = p->ip->i_fs->fs_geom.bsize - 1;
	uint8_t blocks = 0;

	if (from & mask)
		blocks |= page_mask(p->ip, from, from + 1);
	if (to & mask)
		blocks |= page_mask(p->ip, to, to + 1);
	return blocks;
}

/* The old content of blocks covered in part. */
static int plan_content(struct piece *p, struct piece_page *pp, uint32_t from,
			uint32_t to)
{
	unsigned shift = page_blocks_shift(p->ip);
	uint64_t end = file_blocks(p->ip, p->ip->i_size);
	uint8_t part = partial_blocks(p, from, to);

	pp->zero = 0;
	part &= (uint8_t)~pp->pg->pg_uptodate;
	for (; part; part &= (uint8_t)(part - 1)) {
		unsigned block = (unsigned)__builtin_ctz(part);
		uint8_t bit = (uint8_t)(1u << block);

		if (!(pp->fresh & bit) &&
		    (pp->pg->pg_index << shift) + block < end)
			return wants(p, WANT_FILL, pp->pg->pg_index);
		pp->zero |= bit;
	}
	return 0;
}

static int plan_page(struct piece *p, unsigned i)
{
	struct piece_page *pp = &p->pages[i];
	uint32_t from, to;
	int err;

	if (pp->pg->pg_flags & PAGE_READING)
		return wants(p, WANT_FILL, pp->pg->pg_index);
	piece_bytes(p, i, &from, &to);
	pp->cover = page_mask(p->ip, from, to);
	err = plan_places(p, pp);
	return err ? err : plan_content(p, pp, from, to);
}

static int promise(struct piece *p, uint64_t blocks)
{
	int err = blocks ? space_promise(p->ip->i_fs, blocks) : 0;

	return err == -ENOSPC ? wants(p, WANT_SPACE, 0) : err;
}

/*
 * The file will not fit into its dinode any more: the contents that it has
 * there become a delayed block like any other.
 */
static int unstuff(struct piece *p)
{
	struct page *pg = pagetable_get(&p->pp->pp_table, 0);
	uint32_t meta;
	int err;

	if (p->ip->i_height || p->stuffed || !p->ip->i_size)
		return 0;
	if (!pg || !(pg->pg_uptodate & 1))
		return wants(p, WANT_FILL, 0);
	if (pg->pg_delayed & 1)
		return 0;
	meta = pages_promise_leaf(p->pp, pagetable_leaf(&p->pp->pp_table, 0));
	err = promise(p, 1 + meta);
	if (err)
		return err;
	page_delay(p->pp, pg, 1, meta);
	page_set_dirty(p->pp, pg, 1);
	return 0;
}

static int settle_tail(struct piece *p)
{
	uint64_t need;
	int err;

	if (p->offset <= p->ip->i_size)
		return 0;
	err = tail_settle(p->ip, &need);
	if (err != -EAGAIN)
		return err;
	if (need == UINT64_MAX)
		return wants(p, WANT_TREE,
			     p->ip->i_size >> p->ip->i_fs->fs_geom.bshift);
	return wants(p, WANT_FILL, need);
}

/* Blocks that become delayed, and what their leaves need beside. */
static int promise_all(struct piece *p)
{
	struct pleaf *leaf = NULL;
	uint64_t blocks = 0;

	for (unsigned i = 0; i < p->count; i++) {
		struct piece_page *pp = &p->pages[i];
		struct pleaf *its;

		if (!pp->fresh)
			continue;
		blocks += (unsigned)__builtin_popcount(pp->fresh);
		its = pagetable_leaf(&p->pp->pp_table, pp->pg->pg_index);
		if (its != leaf)
			blocks += pages_promise_leaf(p->pp, its);
		leaf = its;
	}
	return promise(p, blocks);
}

static int plan(struct piece *p)
{
	int err = settle_tail(p);

	if (!err)
		err = unstuff(p);
	if (!err)
		err = get_pages(p);
	for (unsigned i = 0; !err && i < p->count; i++)
		err = plan_page(p, i);
	return err ? err : promise_all(p);
}

/* ---- doing ---- */

static void zero_blocks(const struct piece *p, const struct piece_page *pp)
{
	unsigned bshift = p->ip->i_fs->fs_geom.bshift;
	unsigned char *data = page_data(p->pp->pp_pool, pp->pg);

	for (uint8_t left = pp->zero; left; left &= (uint8_t)(left - 1))
		memset(data + ((size_t)__builtin_ctz(left) << bshift), 0,
		       (size_t)1 << bshift);
}

/*
 * All bytes of the piece into its pages: pages next to each other in memory in
 * one go, which is what the copy of a large write is fastest at.
 */
static void copy_in(struct piece *p)
{
	unsigned char *start = NULL;
	const char *buf = p->buf;
	size_t len = 0;

	for (unsigned i = 0; i < p->count; i++) {
		unsigned char *data;
		uint32_t from, to;

		piece_bytes(p, i, &from, &to);
		data = page_data(p->pp->pp_pool, p->pages[i].pg) + from;
		if (start && start + len == data) {
			len += to - from;
			continue;
		}
		if (start)
			memcpy(start, buf, len);
		buf += len;
		start = data;
		len = to - from;
	}
	if (start)
		memcpy(start, buf, len);
}

static void mark_page(struct piece *p, struct piece_page *pp)
{
	struct page *pg = pp->pg;

	if (pp->fresh) {
		struct pleaf *leaf =
			pagetable_leaf(&p->pp->pp_table, pg->pg_index);

		page_delay(p->pp, pg, pp->fresh,
			   pages_promise_leaf(p->pp, leaf));
	}
	pg->pg_mapped |= pp->mapped;
	page_set_dirty(p->pp, pg, pp->cover);
	if (p->io_flags & FS_IO_NOCACHE)
		pg->pg_flags |= PAGE_NOCACHE;
	page_touch(pg);
}

void file_touch(struct inode *ip)
{
	ip->i_mtime = fs_now();
	ip->i_ctime = ip->i_mtime;
	if (!(atomic_load_explicit(&ip->i_state, memory_order_relaxed) &
	      INODE_DIRTY_TIMES))
		inode_dirty_times(ip);
	/* The times may have been dirty before, with the inode not listed. */
	inode_mark_dirty(ip);
	glock_set_dirty(ip->i_gl);
}

void file_kill_priv(const struct fs_req *req, struct inode *ip,
		    unsigned io_flags)
{
	if (io_flags & FS_IO_MAPPED)
		return;
	if (!(io_flags & FS_IO_KILLPRIV) && req->uid == 0)
		return;
	ip->i_mode &= ~(uint32_t)S_ISUID;
	if (ip->i_mode & S_IXGRP)
		ip->i_mode &= ~(uint32_t)S_ISGID;
}

static void carry_out(struct piece *p)
{
	uint64_t end = p->offset + p->len;

	for (unsigned i = 0; i < p->count; i++) {
		if (p->pages[i].zero)
			zero_blocks(p, &p->pages[i]);
	}
	copy_in(p);
	for (unsigned i = 0; i < p->count; i++)
		mark_page(p, &p->pages[i]);
	if (end > p->ip->i_size)
		p->ip->i_size = end;
	if (p->len)
		file_kill_priv(p->req, p->ip, p->io_flags);
	file_touch(p->ip);
}

static int try_piece(struct piece *p)
{
	const struct gfs2_geom *geom = &p->ip->i_fs->fs_geom;
	uint64_t end = p->offset + p->len;
	int err = inode_wrlock(p->req, p->ip);

	p->want = WANT_NOTHING;
	if (err)
		return err;
	pthread_mutex_lock(&p->pp->pp_lock);
	p->stuffed = !p->ip->i_height && end <= geom->stuffed_max &&
		     p->ip->i_size <= geom->stuffed_max;
	p->run.count = 0;
	err = plan(p);
	if (!err)
		carry_out(p);
	pthread_mutex_unlock(&p->pp->pp_lock);
	inode_rwunlock(p->ip);
	return err;
}

/* ---- supplying what was missing; no lock but the glock held ---- */

static int supply_page(struct piece *p)
{
	bool reading;

	pthread_mutex_lock(&p->pp->pp_lock);
	if (!p->req->nowait)
		pages_wait_read(p->pp, p->want_at);
	reading = p->pp->pp_reading;
	pthread_mutex_unlock(&p->pp->pp_lock);
	if (reading && p->req->nowait)
		return -EAGAIN;
	return pages_fill(p->ip, p->want_at, 1,
			  p->req->nowait ? FILL_NOWAIT : 0);
}

static int supply_tree(struct piece *p)
{
	struct tree_run run;
	int err;

	pthread_rwlock_rdlock(&p->ip->i_lock);
	err = tree_map(p->ip, p->want_at, 1, false, &run);
	inode_rwunlock(p->ip);
	return err;
}

/*
 * Delayed data holds more promises than it will need blocks, and freed blocks
 * become usable with the commit: both once, then it is the truth.
 */
static int supply_space(struct piece *p)
{
	struct fs *fs = p->ip->i_fs;

	if (p->space_tried)
		return -ENOSPC;
	p->space_tried = true;
	(void)fs_writeback_all(fs);
	pagepool_wait_writeback(fs);
	return fs_reclaim_space(fs);
}

static int supply_memory(struct piece *p)
{
	if (p->tries++ == MEMORY_TRIES)
		return -ENOMEM;
	return writeback_for_room(p->ip);
}

static int supply(struct piece *p)
{
	int err;

	if (p->want == WANT_FILL) {
		err = supply_page(p);
		if (err != -ENOMEM)
			return err;
		p->want = WANT_MEMORY;
	}
	if (p->req->nowait)
		return -EAGAIN;
	switch (p->want) {
	case WANT_TREE:
		return supply_tree(p);
	case WANT_SPACE:
		return supply_space(p);
	case WANT_MEMORY:
		return supply_memory(p);
	case WANT_NOTHING:
	case WANT_FILL:
		break;
	}
	return -EAGAIN;
}

static int write_piece(struct piece *p)
{
	int err;

	p->count = 0;
	if (p->len)
		p->count = (unsigned)((p->offset + p->len - 1) / PAGE_BYTES -
				      first_index(p) + 1);
	p->spares = 0;
	p->tries = 0;
	for (;;) {
		err = try_piece(p);
		if (err != -EAGAIN || p->want == WANT_NOTHING)
			break;
		err = supply(p);
		if (err)
			break;
	}
	pagepool_give(p->pp->pp_pool, p->spare, p->spares);
	return err;
}

static int piece_init(struct piece *p, const struct fs_req *req,
		      struct inode *ip, uint64_t offset, unsigned io_flags)
{
	p->req = req;
	p->ip = ip;
	p->pp = pages_get(ip);
	p->buf = NULL;
	p->offset = offset;
	p->len = 0;
	p->io_flags = io_flags;
	p->space_tried = false;
	return p->pp ? 0 : -ENOMEM;
}

/* Growing is a write of no bytes at the new end. */
int file_grow(const struct fs_req *req, struct inode *ip, uint64_t size)
{
	struct piece p;
	int err = piece_init(&p, req, ip, size, 0);

	return err ? err : write_piece(&p);
}

/* ---- the whole write ---- */

/*
 * Out of space: half as much may fit, down to a block. What has been found too
 * much is not tried again for this write.
 */
static bool shorten(struct piece *p, size_t *limit)
{
	uint32_t bsize = p->ip->i_fs->fs_geom.bsize;

	if (p->len <= bsize)
		return false;
	*limit = UG_MAX(p->len / 2 & ~(size_t)(bsize - 1), (size_t)bsize);
	return true;
}

/* Through the pages, in pieces. Bytes written, or -errno if there are none. */
static ssize_t write_pages(struct piece *p, size_t len)
{
	size_t done = 0, limit = PIECE_BYTES_MAX;
	int err = 0;

	while (done < len) {
		p->len = UG_MIN(len - done, limit);
		err = write_piece(p);
		if (err == -ENOSPC && shorten(p, &limit))
			continue;
		if (err)
			break;
		p->buf += p->len;
		p->offset += p->len;
		done += p->len;
	}
	return done ? (ssize_t)done : err;
}

/*
 * Direct writes of what has its place already go at the same time: they change
 * neither size nor mapping, and leave no page, so all they need is that nobody
 * else does. Two of them for one block end in any order, as on any device.
 * 1: not of this kind, nothing has been done.
 */
static int write_in_place(struct piece *p, size_t len)
{
	struct glock_holder gh;
	int err;

	if (!(p->io_flags & FS_IO_DIRECT) || (p->io_flags & FS_IO_APPEND) ||
	    !len)
		return 1;
	err = inode_lock_together(p->req, p->ip, &gh);
	if (err)
		return err;
	err = direct_write(p->req, p->ip, p->buf, len, p->offset, p->io_flags);
	inode_unlock(&gh);
	return err;
}

/* What is not in place: by way of the pages. */
static ssize_t write_through(struct piece *p, size_t len)
{
	ssize_t n = write_pages(p, len);
	int err;

	if (n <= 0)
		return n;
	err = file_writeback(p->ip);
	return err ? err : n;
}

/* Where and how much, once the size is known. 0: nothing to do. */
static int clip(struct piece *p, size_t *len)
{
	uint64_t size = p->ip->i_size;

	if (p->io_flags & FS_IO_APPEND)
		p->offset = size;
	if (p->io_flags & FS_IO_MAPPED) {
		if (p->offset >= size)
			*len = 0;
		else if (*len > size - p->offset)
			*len = size - p->offset;
		return 0;
	}
	if (p->offset >= INT64_MAX)
		return -EFBIG;
	*len = UG_MIN(*len, (size_t)(INT64_MAX - p->offset));
	return 0;
}

static ssize_t write_locked(struct piece *p, size_t len)
{
	size_t wanted = len;
	int err = clip(p, &len);
	ssize_t n;

	if (err)
		return err;
	if (!len)
		return (ssize_t)wanted;
	if (p->io_flags & FS_IO_DIRECT)
		return write_through(p, len);
	n = write_pages(p, len);
	/* What a mapping has beyond the size is not part of the file. */
	return n == (ssize_t)len && p->io_flags & FS_IO_MAPPED ? (ssize_t)wanted
							       : n;
}

static bool must_wait(const struct inode *ip, size_t len, unsigned io_flags)
{
	return (io_flags & (FS_IO_DIRECT | FS_IO_SYNC | FS_IO_DSYNC)) ||
	       ip->i_fs->fs_opt.sync || len > PIECE_BYTES_MAX;
}

/* Before any lock is taken: not too much dirty data in memory. */
static int dirty_room(const struct fs_req *req, struct inode *ip)
{
	struct pagepool *pool = ip->i_fs->fs_pages;
	uint32_t dirty =
		atomic_load_explicit(&pool->pl_dirty, memory_order_relaxed);

	if (ug_likely(dirty <= pool->pl_dirty_background))
		return 0;
	if (!atomic_exchange(&pool->pl_woken, true))
		fs_wake(ip->i_fs, FS_WORK_WRITEBACK);
	if (dirty <= pool->pl_dirty_max)
		return 0;
	return req->nowait ? -EAGAIN : writeback_for_room(ip);
}

static ssize_t make_durable(struct inode *ip, ssize_t n, unsigned io_flags)
{
	bool times = (io_flags & FS_IO_SYNC) || ip->i_fs->fs_opt.sync;
	int err = file_make_durable(ip, !times);

	return err ? err : n;
}

ssize_t fs_write(const struct fs_req *req, struct inode *ip, const void *buf,
		 size_t len, uint64_t offset, unsigned io_flags)
{
	struct piece p;
	struct glock_holder gh;
	ssize_t n;
	int err = fs_may_write(ip->i_fs);

	if (err)
		return err;
	if (req->nowait && must_wait(ip, len, io_flags))
		return -EAGAIN;
	err = dirty_room(req, ip);
	if (err)
		return fs_fault(ip->i_fs, err);
	err = piece_init(&p, req, ip, offset, io_flags);
	if (err)
		return err;
	p.buf = buf;
	len = UG_MIN(len, (size_t)INT32_MAX);
	err = write_in_place(&p, len);
	n = err ? err : (ssize_t)len;
	if (err == 1) {
		err = inode_lock(req, ip, LM_ST_EXCLUSIVE, &gh);
		if (err)
			return fs_fault(ip->i_fs, err);
		n = write_locked(&p, len);
		inode_unlock(&gh);
	}
	if (n > 0 && (must_wait(ip, 0, io_flags & ~FS_IO_DIRECT)))
		n = make_durable(ip, n, io_flags);
	return n < 0 ? fs_fault(ip->i_fs, (int)n) : n;
}
