/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * fill.c - pages in from the device.
 *
 *   claim    missing pages enter the table; those with missing blocks are
 *            marked PAGE_READING: nobody else touches them now
 *   map      holes, what lies beyond the end of file, stuffed contents and
 *            journaled blocks are put into memory; the rest becomes requests
 *   read     in this thread and the pool's, or (read-ahead) in the pool's only
 *   finish   blocks up to date, marks off, waiters woken
 *
 * Only blocks that are not up to date are read, so a page may have dirty
 * blocks, on their way to the disk even, while others of it are read. What is
 * mapped cannot change meanwhile: a truncation waits for the reads, and
 * write-back maps only blocks that are dirty, thus up to date.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "fs/file.h"
#include "fs/iolist.h"
#include "fs/tree.h"

struct fill_page {
	struct page *pg;
	uint8_t want;	/* blocks that are missing */
	uint8_t mapped; /* of these, what the tree maps */
	bool failed;
};

struct fill {
	struct inode *ip;
	struct pages *pp;
	uint64_t size;	     /* of the file, in bytes */
	struct tree_run run; /* mapping found last, */
	uint64_t run_lblock; /* from this block on */
	struct iolist list;
	struct fill_span {
		unsigned first, last; /* pages that a request has part in */
	} * spans;
	unsigned spans_cap;
	atomic_uint left; /* requests not done yet */
	unsigned count;
	struct fill_page pages[];
};

/* ---- claim ---- */

/* Pages of the range that are not in the table. pp_lock held. */
static unsigned count_missing(struct pages *pp, uint64_t index, uint32_t count)
{
	unsigned missing = 0;

	for (uint32_t i = 0; i < count; i++)
		missing += !pagetable_get(&pp->pp_table, index + i);
	return missing;
}

/* The page at index, from the spare ones if need be; NULL: no memory. */
static struct page *get_or_insert(struct pages *pp, uint64_t index,
				  struct page **spare, unsigned *spares)
{
	struct page *pg = pagetable_get(&pp->pp_table, index);

	if (pg || !*spares)
		return pg;
	pg = spare[*spares - 1];
	if (pages_insert(pp, pg, index))
		return NULL;
	--*spares;
	return pg;
}

static void claim_page(struct fill *f, struct page *pg)
{
	uint8_t want = page_full(f->ip) & (uint8_t)~pg->pg_uptodate;

	if (!want || (pg->pg_flags & PAGE_READING))
		return;
	pg->pg_flags |= PAGE_READING;
	f->pp->pp_reading++;
	f->pages[f->count++] = (struct fill_page){ .pg = pg, .want = want };
}

/*
 * Short of pages, the beginning of the range has to do. Spare pages come
 * lowest first and are used from the end: turn them round, so that neighbours
 * in the file are neighbours in memory.
 */
static int claim(struct fill *f, uint64_t index, uint32_t count)
{
	struct pages *pp = f->pp;
	struct page **spare;
	unsigned spares = 0, missing;
	uint32_t i;

	pthread_mutex_lock(&pp->pp_lock);
	missing = count_missing(pp, index, count);
	pthread_mutex_unlock(&pp->pp_lock);
	spare = malloc(UG_MAX(missing, 1u) * sizeof(*spare));
	if (!spare)
		return -ENOMEM;
	spares = pagepool_take(pp->pp_pool, missing, spare);
	for (i = 0; i < spares / 2; i++) {
		struct page *other = spare[spares - 1 - i];

		spare[spares - 1 - i] = spare[i];
		spare[i] = other;
	}
	pthread_mutex_lock(&pp->pp_lock);
	for (i = 0; i < count; i++) {
		struct page *pg = get_or_insert(pp, index + i, spare, &spares);

		if (!pg)
			break;
		claim_page(f, pg);
	}
	pthread_mutex_unlock(&pp->pp_lock);
	pagepool_give(pp->pp_pool, spare, spares);
	free(spare);
	return i ? 0 : -ENOMEM;
}

/* ---- map; i_lock held for reading ---- */

static unsigned char *block_memory(const struct fill *f,
				   const struct fill_page *fp, unsigned block)
{
	return page_data(f->pp->pp_pool, fp->pg) +
	       ((size_t)block << f->ip->i_fs->fs_geom.bshift);
}

/* Contents of a stuffed inode, into block 0. */
static int map_stuffed(struct fill *f, unsigned char *memory, bool nowait)
{
	const struct gfs2_geom *geom = &f->ip->i_fs->fs_geom;
	struct buf *b;
	int err = inode_dibuf(f->ip, nowait, &b);

	if (err)
		return err;
	memcpy(memory, gfs2_dinode_area(b->b_data), geom->stuffed_max);
	memset(memory + geom->stuffed_max, 0, geom->bsize - geom->stuffed_max);
	buf_put(b);
	return 0;
}

/* Which pages a request fills, for when it fails. */
static int note_span(struct fill *f, unsigned req, unsigned page)
{
	if (req >= f->spans_cap) {
		unsigned cap = UG_MAX(2 * f->spans_cap, 8u);
		struct fill_span *spans =
			realloc(f->spans, cap * sizeof(*spans));

		if (!spans)
			return -ENOMEM;
		memset(spans + f->spans_cap, 0xff,
		       (cap - f->spans_cap) * sizeof(*spans));
		f->spans = spans;
		f->spans_cap = cap;
	}
	if (f->spans[req].first == UINT32_MAX)
		f->spans[req].first = page;
	f->spans[req].last = page;
	return 0;
}

/* n blocks of page nr, mapped at pblock: from the log's cache or the device. */
static int map_blocks(struct fill *f, unsigned nr, unsigned block, unsigned n,
		      uint64_t pblock)
{
	struct fill_page *fp = &f->pages[nr];
	unsigned shift = f->ip->i_fs->fs_geom.bshift;

	fp->mapped |= page_range(block, block + n);
	while (n && inode_is_jdata(f->ip) &&
	       jdata_peek(f->ip, pblock, block_memory(f, fp, block))) {
		block++;
		pblock++;
		n--;
	}
	if (n) {
		unsigned once = inode_is_jdata(f->ip) ? 1 : n;
		int req = iolist_add(&f->list, block_memory(f, fp, block),
				     (size_t)once << shift, pblock << shift);

		if (req < 0)
			return req;
		if (note_span(f, (unsigned)req, nr))
			return -ENOMEM;
		if (once < n)
			return map_blocks(f, nr, block + 1, n - 1, pblock + 1);
	}
	return 0;
}

/* The mapping of lblock, asked for once per run. Blocks of it in *n. */
static int find_run(struct fill *f, uint64_t lblock, uint32_t ahead,
		    bool nowait, uint64_t *pblock, unsigned *n)
{
	uint64_t skip = lblock - f->run_lblock;

	if (lblock < f->run_lblock || skip >= f->run.count) {
		int err = tree_map(f->ip, lblock, ahead, nowait, &f->run);

		if (err)
			return err;
		f->run_lblock = lblock;
		skip = 0;
	}
	*pblock = f->run.pblock ? f->run.pblock + skip : 0;
	*n = (unsigned)UG_MIN((uint64_t)*n, f->run.count - skip);
	return 0;
}

/* Missing blocks of page nr from block on, in one piece: *n of them. */
static int map_piece(struct fill *f, unsigned nr, unsigned block, unsigned *n,
		     bool nowait)
{
	struct fill_page *fp = &f->pages[nr];
	unsigned shift = page_blocks_shift(f->ip);
	unsigned bshift = f->ip->i_fs->fs_geom.bshift;
	uint64_t lblock = (fp->pg->pg_index << shift) + block;
	uint64_t end = file_blocks(f->ip, f->size), pblock = 0;
	uint32_t ahead = (f->count - nr) << shift;

	if (lblock < end) {
		int err;

		*n = (unsigned)UG_MIN((uint64_t)*n, end - lblock);
		if (!f->ip->i_height && !lblock) {
			*n = 1;
			return map_stuffed(f, block_memory(f, fp, 0), nowait);
		}
		err = find_run(f, lblock, ahead, nowait, &pblock, n);
		if (err)
			return err;
	}
	if (pblock)
		return map_blocks(f, nr, block, *n, pblock);
	memset(block_memory(f, fp, block), 0, (size_t)*n << bshift);
	return 0;
}

static int map_page(struct fill *f, unsigned nr, bool nowait)
{
	uint8_t want = f->pages[nr].want;

	while (want) {
		unsigned block = (unsigned)__builtin_ctz(want);
		unsigned n = (unsigned)__builtin_ctz(~(want >> block));
		int err = map_piece(f, nr, block, &n, nowait);

		if (err)
			return err;
		want &= (uint8_t)~page_range(block, block + n);
	}
	return 0;
}

/*
 * All pages, or with an error (-EAGAIN above all) none: the claim of those
 * that have not been mapped would be given up anyway.
 */
static int map(struct fill *f, unsigned flags)
{
	const struct fs_req req = { .nowait = flags & FILL_NOWAIT };
	int err = inode_rdlock(&req, f->ip);

	if (err)
		return err;
	f->size = f->ip->i_size;
	for (unsigned i = 0; !err && i < f->count; i++)
		err = map_page(f, i, req.nowait);
	inode_rwunlock(f->ip);
	return err;
}

/* ---- finish ---- */

/* Requests that failed leave their pages as they were. */
static int note_failures(struct fill *f)
{
	int err = 0;

	for (unsigned r = 0; r < f->list.il_count; r++) {
		int result = f->list.il_reqs[r].result;

		if (!result)
			continue;
		err = err ? err : result;
		for (unsigned i = f->spans[r].first; i <= f->spans[r].last; i++)
			f->pages[i].failed = true;
	}
	return err;
}

/*
 * What a crash or another implementation has left behind the end of file must
 * not show when the file grows.
 */
static void zero_tail(struct fill *f, const struct fill_page *fp)
{
	uint64_t start = fp->pg->pg_index << PAGE_SHIFT;
	uint32_t from;

	if (f->size <= start || f->size >= start + PAGE_BYTES)
		return;
	from = (uint32_t)(f->size - start);
	if (fp->want & page_mask(f->ip, from, from + 1))
		memset(page_data(f->pp->pp_pool, fp->pg) + from, 0,
		       f->ip->i_fs->fs_geom.bsize -
			       (from & (f->ip->i_fs->fs_geom.bsize - 1)));
}

static void finish(struct fill *f, bool ok)
{
	struct pages *pp = f->pp;

	pthread_mutex_lock(&pp->pp_lock);
	for (unsigned i = 0; i < f->count; i++) {
		struct fill_page *fp = &f->pages[i];

		if (ok && !fp->failed) {
			zero_tail(f, fp);
			fp->pg->pg_uptodate |= fp->want;
			fp->pg->pg_mapped |= fp->mapped;
		}
		fp->pg->pg_flags &= (uint8_t)~PAGE_READING;
	}
	pp->pp_reading -= f->count;
	/* Whoever waits for the last read may free pp: signal under the lock.
	 */
	pthread_cond_broadcast(&pp->pp_ended);
	pthread_mutex_unlock(&pp->pp_lock);
}

static void fill_free(struct fill *f)
{
	iolist_free(&f->list);
	free(f->spans);
	free(f);
}

static void async_done(struct ioreq *req)
{
	struct fill *f = req->private;

	if (atomic_fetch_sub(&f->left, 1) != 1)
		return;
	note_failures(f);
	finish(f, true);
	fill_free(f);
}

/* Afterwards the requests own the fill. */
static void submit(struct fill *f)
{
	struct iopool *pool = f->ip->i_fs->fs_pool;
	unsigned n = f->list.il_count;
	struct ioreq *reqs = f->list.il_reqs;

	iolist_seal(&f->list);
	atomic_store(&f->left, n);
	for (unsigned i = 0; i < n; i++) {
		reqs[i].done = async_done;
		reqs[i].private = f;
	}
	for (unsigned i = 0; i < n; i++)
		iopool_submit(pool, &reqs[i]);
}

int pages_fill(struct inode *ip, uint64_t index, uint32_t count, unsigned flags)
{
	struct pages *pp = pages_get(ip);
	struct fill *f;
	int err, err2;

	f = pp ? calloc(1, sizeof(*f) + count * sizeof(f->pages[0])) : NULL;
	if (!f)
		return -ENOMEM;
	f->ip = ip;
	f->pp = pp;
	iolist_init(&f->list, IOREQ_READ);
	err = claim(f, index, count);
	if (!err && f->count)
		err = map(f, flags);
	if (!err && f->list.il_count) {
		if (flags & FILL_ASYNC) {
			submit(f);
			return 0;
		}
		if (flags & FILL_NOWAIT)
			err = -EAGAIN;
	}
	if (!err && f->list.il_count) {
		iolist_run(&f->list, ip->i_fs->fs_pool);
		err2 = note_failures(f);
		finish(f, true);
		err = err2;
	} else {
		finish(f, !err);
	}
	fill_free(f);
	return err;
}
