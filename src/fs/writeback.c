/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * writeback.c - dirty pages to the disk.
 *
 * A round takes one chunk of each of its inodes and goes through these steps:
 *
 *   collect   dirty pages in file order, marked as being written (wb_collect.c)
 *   place     where the blocks are, or will be (wb_place.c)
 *   write     all chunks' runs, and wait (wb_io.c)
 *   commit    one transaction per inode (wb_commit.c)
 *   finish    marks off; after a failure everything is dirty again
 *
 * With data=writeback, commit comes before write. Journaled files have no
 * write, stuffed ones only a commit.
 *
 * No glock holder is kept: whoever made the pages dirty had the glock EX, and
 * it cannot be given away before they are written (its sync calls us). The lock
 * of a resource group is held from place to commit. pp_wb of every inode of the
 * round is held throughout; all but the first are only tried, so that rounds
 * cannot wait for each other in a circle.
 *
 * A failed write keeps the data in memory, dirty, for the next attempt; fsync
 * hears of it once (i_wb_error).
 */
#include <errno.h>
#include <stdlib.h>

#include "fs/wb.h"
#include "fs/work.h"

/* Pages of one round. */
#define ROUND_PAGES_MAX 4096u
#define ROUND_INODES_MAX 256u

/* ---- finish ---- */

/* i_lock written, pp_lock held. */
static void finish_pages(struct wb_chunk *wc)
{
	struct pages *pp = wc->wc_pp;
	uint8_t full = page_full(wc->wc_ip);
	unsigned drop = 0;

	if (!wc->wc_err && !wc->wc_settled)
		wb_settle(wc);
	for (unsigned i = 0; i < wc->wc_npages; i++) {
		struct page *pg = wc->wc_pages[i];

		if (wc->wc_err) {
			page_fail_write(pp, pg, full);
			continue;
		}
		page_end_write(pp, pg, full);
		if (page_is_surplus(wc->wc_ip, pg)) {
			pages_remove(pp, pg);
			wc->wc_pages[drop++] = pg;
		}
	}
	pagepool_give(pp->pp_pool, wc->wc_pages, drop);
}

static void finish(struct wb_chunk *wc)
{
	struct inode *ip = wc->wc_ip;

	if (wc->wc_npages) {
		pthread_rwlock_wrlock(&ip->i_lock);
		pthread_mutex_lock(&wc->wc_pp->pp_lock);
		finish_pages(wc);
		pthread_mutex_unlock(&wc->wc_pp->pp_lock);
		inode_rwunlock(ip);
	}
	if (wc->wc_promised)
		space_unpromise(ip->i_fs, wc->wc_promised);
	jdata_release(wc, wc->wc_settled);
	rgrp_drop(&wc->wc_hold);
	tree_set_release(&wc->wc_set);
	buf_put(wc->wc_dibuf);
	wc->wc_dibuf = NULL;
	wc->wc_next = UG_MIN(wc->wc_next, wc->wc_stop >> page_blocks_shift(ip));
}

/* ---- a round ---- */

/* For the next chunk of the same inode. */
static void chunk_reset(struct wb_chunk *wc)
{
	wc->wc_err = 0;
	wc->wc_npages = 0;
	wc->wc_nruns = 0;
	wc->wc_fresh = 0;
	wc->wc_meta = 0;
	wc->wc_stop = UINT64_MAX;
	wc->wc_settled = false;
	wc->wc_promised = 0;
}

static void chunk_init(struct wb_chunk *wc, struct inode *ip)
{
	*wc = (struct wb_chunk){
		.wc_ip = ip,
		.wc_pp = atomic_load(&ip->i_pages),
		.wc_end = UINT64_MAX,
	};
	rgrp_hold_init(&wc->wc_hold);
}

static void chunk_free(struct wb_chunk *wc)
{
	free(wc->wc_pages);
	free(wc->wc_runs);
}

static void commit(struct wb_chunk *wc)
{
	if (wc->wc_err)
		return;
	if (wc->wc_kind == WB_STUFFED)
		wc->wc_err = wb_commit_stuffed(wc);
	else if (wc->wc_kind != WB_NOTHING)
		wc->wc_err = wb_commit(wc);
}

/*
 * One round over chunks that have been collected. Each chunk's outcome is in
 * its wc_err; -EAGAIN: not now, alone.
 */
static void run_round(struct wb_chunk *chunks, unsigned n)
{
	bool writeback = chunks->wc_ip->i_fs->fs_opt.data_writeback;
	bool placed = false;

	for (unsigned i = 0; i < n; i++) {
		struct wb_chunk *wc = &chunks[i];

		if (wc->wc_err || !wc->wc_npages)
			continue;
		wc->wc_err = wb_place(wc, placed);
		placed = placed || glock_held(&wc->wc_hold.rh_gh);
	}
	if (!writeback)
		wb_write(chunks, n);
	for (unsigned i = 0; i < n; i++)
		commit(&chunks[i]);
	if (writeback)
		wb_write(chunks, n);
	for (unsigned i = 0; i < n; i++)
		finish(&chunks[i]);
	pagepool_writeback_progress(chunks->wc_ip->i_fs->fs_pages);
}

/* The next chunk of one inode; false when nothing of the pass is left. */
static bool next_chunk(struct wb_chunk *wc)
{
	chunk_reset(wc);
	wc->wc_err = wb_collect(wc);
	if (wc->wc_kind == WB_NOTHING && !wc->wc_err)
		return false;
	run_round(wc, 1);
	return true;
}

/* ---- whole inodes ---- */

static uint64_t size_now(struct inode *ip)
{
	uint64_t size;

	pthread_rwlock_rdlock(&ip->i_lock);
	size = ip->i_size;
	inode_rwunlock(ip);
	return size;
}

/* After the last chunk, or an error. pp_wb is held, if there are pages. */
static int conclude(struct inode *ip, int err, uint64_t size)
{
	if (!err)
		err = wb_commit_inode(ip, size);
	if (err)
		atomic_store(&ip->i_wb_error, err);
	/* Nobody will append: what was kept free behind the file is for all. */
	if (!atomic_load(&ip->i_writers))
		rgrp_window_drop(ip);
	return err;
}

/* The rest of the inode's pages, from where the chunk stands. */
static int write_rest(struct wb_chunk *wc, uint64_t size)
{
	wc->wc_end = (size >> PAGE_SHIFT) + 1;
	while (next_chunk(wc) && !wc->wc_err)
		;
	return conclude(wc->wc_ip, wc->wc_err, size);
}

int writeback_locked(struct inode *ip)
{
	uint64_t size = size_now(ip);
	struct wb_chunk wc;
	int err;

	chunk_init(&wc, ip);
	err = write_rest(&wc, size);
	chunk_free(&wc);
	return err;
}

static int may_write_back(struct fs *fs)
{
	if (fs_is_withdrawn(fs))
		return -EIO;
	/* Read-only: nothing can be dirty. */
	return fs->fs_journal ? 0 : -EROFS;
}

/*
 * The pages of an inode that is to be written; NULL: there are none, and it is
 * not locked by pp_wb. With other nodes that must not be, if there is anything
 * to write: a demotion, which writes too, waits for pp_wb, and nothing may be
 * logged behind it.
 */
static int pages_to_write(struct inode *ip, struct pages **ppp)
{
	struct pages *pp = atomic_load(&ip->i_pages);

	if (!pp && !ip->i_fs->fs_alone && file_is_dirty(ip)) {
		pp = pages_get(ip);
		if (!pp)
			return -ENOMEM;
	}
	*ppp = pp;
	return 0;
}

/* There are no pages. */
static int conclude_without(struct inode *ip)
{
	/* It was clean a moment ago. What is not clean now is not ours. */
	return ip->i_fs->fs_alone ? conclude(ip, 0, size_now(ip)) : 0;
}

int file_writeback(struct inode *ip)
{
	struct pages *pp;
	struct pagepool *pool = ip->i_fs->fs_pages;
	unsigned epoch;
	int err = may_write_back(ip->i_fs);

	if (err)
		return err == -EROFS ? 0 : err;
	err = pages_to_write(ip, &pp);
	if (err)
		return err;
	epoch = pagepool_writeback_begin(pool);
	if (!pp) {
		err = conclude_without(ip);
	} else {
		pages_wb_lock(pp);
		err = writeback_locked(ip);
		pages_wb_unlock(pp);
	}
	pagepool_writeback_end(pool, epoch);
	return err;
}

/* ---- batches ---- */

/* Inodes that go together in one round. */
struct batch {
	struct wb_chunk *chunks;
	uint64_t *sizes; /* of the files, before anything was collected */
	unsigned n;
	unsigned pages;
	struct inode **busy; /* somebody else is writing them: later */
	unsigned nbusy;
	int err; /* the first one */
};

static void batch_note(struct batch *b, int err)
{
	if (err && !b->err)
		b->err = err;
}

/* Write what the batch has, and whatever else these inodes have. */
static void batch_run(struct batch *b)
{
	if (b->n)
		run_round(b->chunks, b->n);
	for (unsigned i = 0; i < b->n; i++) {
		struct wb_chunk *wc = &b->chunks[i];
		int err = wc->wc_err;

		if (err == -EAGAIN)
			wc->wc_next = 0;
		if (!err || err == -EAGAIN)
			err = write_rest(wc, b->sizes[i]);
		else
			err = conclude(wc->wc_ip, err, 0);
		batch_note(b, err);
		pages_wb_unlock(wc->wc_pp);
		chunk_free(wc);
	}
	b->n = 0;
	b->pages = 0;
}

/* Collect the first chunk of an inode into the batch. */
static void batch_add(struct batch *b, struct inode *ip)
{
	struct wb_chunk *wc = &b->chunks[b->n];
	struct pages *pp = NULL;
	int err = pages_to_write(ip, &pp);

	if (err) {
		batch_note(b, err);
		return;
	}
	if (!pp) {
		batch_note(b, conclude_without(ip));
		return;
	}
	if (!pages_wb_trylock(pp)) {
		b->busy[b->nbusy++] = ip;
		return;
	}
	b->sizes[b->n] = size_now(ip);
	chunk_init(wc, ip);
	chunk_reset(wc);
	wc->wc_err = wb_collect(wc);
	b->pages += wc->wc_npages;
	b->n++;
	if (b->n == ROUND_INODES_MAX || b->pages >= ROUND_PAGES_MAX)
		batch_run(b);
}

static int batch_write(struct batch *b, struct inode **ips, unsigned n,
		       bool wait)
{
	for (unsigned i = 0; i < n; i++)
		batch_add(b, ips[i]);
	batch_run(b);
	if (!wait)
		return b->err;
	/* Only now may we wait: none of our own is held. */
	for (unsigned i = 0; i < b->nbusy; i++)
		batch_note(b, file_writeback(b->busy[i]));
	return b->err;
}

int file_writeback_many(struct inode **ips, unsigned n, bool wait)
{
	unsigned max = UG_MIN(n, ROUND_INODES_MAX), epoch;
	struct batch b = { 0 };
	struct fs *fs;
	int err;

	if (!n)
		return 0;
	fs = ips[0]->i_fs;
	err = may_write_back(fs);
	if (err)
		return err == -EROFS ? 0 : err;
	b.chunks = malloc(max * sizeof(*b.chunks));
	b.sizes = malloc(max * sizeof(*b.sizes));
	b.busy = malloc(n * sizeof(struct inode *));
	epoch = pagepool_writeback_begin(fs->fs_pages);
	err = -ENOMEM;
	if (b.chunks && b.sizes && b.busy)
		err = batch_write(&b, ips, n, wait);
	pagepool_writeback_end(fs->fs_pages, epoch);
	free(b.chunks);
	free(b.sizes);
	free(b.busy);
	return err;
}

/* ---- for writers ---- */

/* One chunk of the inode, if nobody else is writing it. */
static int write_some(struct inode *ip)
{
	struct pages *pp = atomic_load(&ip->i_pages);
	struct wb_chunk wc;
	unsigned epoch;

	if (!pp || !pages_wb_trylock(pp))
		return 0;
	epoch = pagepool_writeback_begin(pp->pp_pool);
	chunk_init(&wc, ip);
	next_chunk(&wc);
	if (wc.wc_err)
		atomic_store(&ip->i_wb_error, wc.wc_err);
	pages_wb_unlock(pp);
	pagepool_writeback_end(pp->pp_pool, epoch);
	chunk_free(&wc);
	return wc.wc_err;
}

int writeback_for_room(struct inode *ip)
{
	struct pagepool *pool = ip->i_fs->fs_pages;
	int err = may_write_back(ip->i_fs);

	if (err)
		return err;
	err = write_some(ip);
	fs_wake(ip->i_fs, FS_WORK_WRITEBACK);
	if (pagepool_wait_room(pool))
		return 0;
	/* Nobody writes: others' data, by ourselves. */
	if (!err)
		err = fs_writeback_all(ip->i_fs);
	return pagepool_wait_room(pool) ? 0 : err;
}
