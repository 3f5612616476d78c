/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * wb_commit.c - the transactions of write-back.
 *
 * One transaction per inode and round enters what wb_place.c has chosen: bits,
 * pointers, di_blocks, the size. The data is on the device by then (but for
 * data=writeback, and for journaled data, which is in the transaction itself),
 * so a crash leaves either the old mapping or the new one with its data.
 *
 * The size on disk follows the data: it never covers bytes that a write has put
 * into memory and that have not been written, so that after a crash a file
 * does not end in zeros. Growth by truncation is hole and may be logged at
 * once. Source: docs/spec/gfs2-ondisk.md 3.6, 7.7.
 */
#include <errno.h>
#include <string.h>

#include "fs/wb.h"

/* ---- the size ---- */

/* Where the last run ends, or what had to be left out begins. */
static uint64_t written_to(const struct wb_chunk *wc)
{
	const struct wb_run *last;
	uint64_t lblock = 0;

	if (wc->wc_nruns) {
		last = &wc->wc_runs[wc->wc_nruns - 1];
		lblock = last->lblock + last->count;
	}
	lblock = UG_MIN(lblock, wc->wc_stop);
	return UG_MIN(lblock << wc->wc_ip->i_fs->fs_geom.bshift, wc->wc_size);
}

/* Up to where nothing is dirty. pp_lock held. */
static uint64_t clean_to(struct inode *ip, struct pages *pp)
{
	struct page *pg = pagetable_next(&pp->pp_table, 0, true);

	if (!pg)
		return ip->i_size;
	return UG_MIN(pg->pg_index << PAGE_SHIFT, ip->i_size);
}

/*
 * The size that may be logged once this chunk is written: both bounds are
 * safe, the greater one holds. i_lock held.
 */
static uint64_t new_disksize(const struct wb_chunk *wc)
{
	struct inode *ip = wc->wc_ip;
	uint64_t clean;

	pthread_mutex_lock(&wc->wc_pp->pp_lock);
	clean = clean_to(ip, wc->wc_pp);
	pthread_mutex_unlock(&wc->wc_pp->pp_lock);
	return UG_MAX(ip->i_disksize, UG_MAX(clean, written_to(wc)));
}

static bool size_advances(struct wb_chunk *wc)
{
	bool advances;

	pthread_rwlock_rdlock(&wc->wc_ip->i_lock);
	advances = new_disksize(wc) > wc->wc_ip->i_disksize;
	inode_rwunlock(wc->wc_ip);
	return advances;
}

/* ---- settling ---- */

static void settle_run(struct wb_chunk *wc, const struct wb_run *run)
{
	uint32_t done = 0;

	while (done < run->count) {
		struct page *pg;
		unsigned block;
		uint32_t n = wb_piece(wc, run, done, &pg, &block);

		wc->wc_promised += page_undelay(
			wc->wc_pp, pg, page_range(block, block + n), true);
		done += n;
	}
}

void wb_settle(struct wb_chunk *wc)
{
	for (unsigned i = 0; i < wc->wc_nruns; i++)
		settle_run(wc, &wc->wc_runs[i]);
	wc->wc_settled = true;
}

/* ---- data ---- */

/* Bits for all data first: the hold gives its places in this order. */
static void allocate(struct trans *tr, struct wb_chunk *wc)
{
	for (unsigned i = 0; i < wc->wc_nruns; i++) {
		const struct wb_run *run = &wc->wc_runs[i];
		uint32_t done = 0;

		while (run->fresh && done < run->count) {
			uint64_t start;
			uint32_t n = rgrp_alloc(tr, &wc->wc_hold, wc->wc_ip,
						run->count - done, &start);

			ug_assert(start == run->pblock + done);
			done += n;
		}
	}
}

/* The contents are on their way to a block, or there are none. */
static void unstuff(struct inode *ip, struct buf *dibuf)
{
	const struct gfs2_geom *geom = &ip->i_fs->fs_geom;

	memset(gfs2_dinode_area(dibuf->b_data), 0, geom->stuffed_max);
	ip->i_height = 1;
}

/* i_lock written, within the transaction. */
static int change(struct trans *tr, struct wb_chunk *wc)
{
	struct inode *ip = wc->wc_ip;
	int err = 0;

	trans_add_meta(tr, wc->wc_dibuf);
	if (wc->wc_fresh && !ip->i_height)
		unstuff(ip, wc->wc_dibuf);
	allocate(tr, wc);
	for (unsigned i = 0; !err && i < wc->wc_nruns; i++) {
		const struct wb_run *run = &wc->wc_runs[i];

		if (run->fresh)
			err = tree_insert(tr, ip, wc->wc_dibuf, &wc->wc_hold,
					  run->lblock, run->pblock, run->count);
	}
	if (wc->wc_kind == WB_JDATA)
		jdata_log(tr, wc);
	ip->i_disksize = new_disksize(wc);
	inode_log(tr, ip, wc->wc_dibuf);
	pthread_mutex_lock(&wc->wc_pp->pp_lock);
	wb_settle(wc);
	pthread_mutex_unlock(&wc->wc_pp->pp_lock);
	return err;
}

static unsigned trans_blocks(const struct wb_chunk *wc)
{
	unsigned n = 1 + wc->wc_nbufs;

	if (wc->wc_fresh)
		n += wc->wc_meta +
		     rgrp_trans_blocks(&wc->wc_hold,
				       wc->wc_fresh + wc->wc_meta);
	return n;
}

int wb_commit(struct wb_chunk *wc)
{
	struct inode *ip = wc->wc_ip;
	struct trans tr;
	uint64_t seq;
	int err;

	if (!wc->wc_fresh && wc->wc_kind != WB_JDATA && !size_advances(wc))
		return 0;
	err = trans_begin(ip->i_fs->fs_journal, &tr, trans_blocks(wc), 0, 0);
	if (err)
		return err;
	pthread_rwlock_wrlock(&ip->i_lock);
	err = change(&tr, wc);
	inode_rwunlock(ip);
	if (err)
		fs_withdraw(ip->i_fs, "inode %llu: blocks cannot be entered",
			    (unsigned long long)ip->i_addr);
	seq = trans_end(&tr);
	inode_logged(ip, seq, true);
	return err ? -EIO : 0;
}

/* ---- stuffed contents, size and times ---- */

/* i_lock written and pp_lock held, within the transaction. */
static void change_stuffed(struct trans *tr, struct wb_chunk *wc)
{
	const struct gfs2_geom *geom = &wc->wc_ip->i_fs->fs_geom;
	struct page *pg = pagetable_get(&wc->wc_pp->pp_table, 0);
	char *area = gfs2_dinode_area(wc->wc_dibuf->b_data);
	size_t size = wc->wc_ip->i_size;

	trans_add_meta(tr, wc->wc_dibuf);
	if (pg && pg->pg_dirty) {
		memcpy(area, page_data(wc->wc_pp->pp_pool, pg), size);
		memset(area + size, 0, geom->stuffed_max - size);
		/* Delayed after all, if it was larger in the meantime. */
		wc->wc_promised +=
			page_undelay(wc->wc_pp, pg, pg->pg_delayed, false);
		page_clear_dirty(wc->wc_pp, pg, pg->pg_dirty);
		if (page_is_surplus(wc->wc_ip, pg)) {
			pages_remove(wc->wc_pp, pg);
			pagepool_give(wc->wc_pp->pp_pool, &pg, 1);
		}
	}
	wc->wc_ip->i_disksize = size;
	inode_log(tr, wc->wc_ip, wc->wc_dibuf);
	wc->wc_next = 1;
}

int wb_commit_stuffed(struct wb_chunk *wc)
{
	struct inode *ip = wc->wc_ip;
	struct trans tr;
	int err = inode_dibuf(ip, false, &wc->wc_dibuf);

	if (err)
		return err;
	err = trans_begin(ip->i_fs->fs_journal, &tr, 1, 0, 0);
	if (err)
		return err;
	pthread_rwlock_wrlock(&ip->i_lock);
	pthread_mutex_lock(&wc->wc_pp->pp_lock);
	/* It may have grown out of its dinode: the next chunk's business. */
	if (!ip->i_height && ip->i_size <= ip->i_fs->fs_geom.stuffed_max)
		change_stuffed(&tr, wc);
	pthread_mutex_unlock(&wc->wc_pp->pp_lock);
	inode_rwunlock(ip);
	inode_logged(ip, trans_end(&tr), true);
	return 0;
}

/*
 * Nothing dirty: the whole size. Else what was there when this write-back
 * began; a hole that has been filled in memory since then may read as zeros.
 */
static uint64_t final_disksize(struct inode *ip, uint64_t size)
{
	struct pages *pp = atomic_load(&ip->i_pages);
	uint64_t clean = ip->i_size;

	if (pp) {
		pthread_mutex_lock(&pp->pp_lock);
		clean = clean_to(ip, pp);
		pthread_mutex_unlock(&pp->pp_lock);
	}
	return UG_MAX(ip->i_disksize, UG_MIN(UG_MAX(clean, size), ip->i_size));
}

/* Height 0 and a size that does not fit is no dinode: only holes are left. */
static void change_size(struct trans *tr, struct inode *ip, struct buf *dibuf,
			uint64_t size)
{
	uint64_t disksize = final_disksize(ip, size);

	trans_add_meta(tr, dibuf);
	if (!ip->i_height && disksize > ip->i_fs->fs_geom.stuffed_max) {
		if (ip->i_disksize)
			disksize = ip->i_disksize;
		else
			unstuff(ip, dibuf);
	}
	ip->i_disksize = disksize;
	inode_log(tr, ip, dibuf);
}

static int commit_size(struct inode *ip, uint64_t size)
{
	struct trans tr;
	struct buf *dibuf;
	int err = inode_dibuf(ip, false, &dibuf);

	if (err)
		return err;
	err = trans_begin(ip->i_fs->fs_journal, &tr, 1, 0, 0);
	if (!err) {
		pthread_rwlock_wrlock(&ip->i_lock);
		change_size(&tr, ip, dibuf, size);
		inode_rwunlock(ip);
		inode_logged(ip, trans_end(&tr), true);
	}
	buf_put(dibuf);
	return err;
}

int wb_commit_inode(struct inode *ip, uint64_t size)
{
	bool advances;

	if (!inode_is_reg(ip))
		return inode_write_times(ip, false);
	pthread_rwlock_rdlock(&ip->i_lock);
	advances = final_disksize(ip, size) > ip->i_disksize;
	inode_rwunlock(ip);
	inode_check_shown(ip);
	return advances ? commit_size(ip, size) : inode_write_times(ip, false);
}
