/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * wb_place.c - places for the blocks of a write-back.
 *
 *   runs as collected    [......................]
 *   by mapping           [mapped][hole.........][mapped]
 *   by places            [mapped][ext 1][ext 2.][mapped]
 *
 * Nobody else maps blocks of this inode (pp_wb), so what the tree says stays
 * true until our transaction. Places for data are the first ones of the hold,
 * in its order; the rest of it is for pointer blocks. The transaction takes
 * them in the same order.
 *
 * If the group that was found has less room than all runs need, as many of them
 * as fit are done now. The rest becomes dirty again.
 */
#include <errno.h>
#include <stdlib.h>

#include "fs/wb.h"

int wb_add_run(struct wb_chunk *wc, const struct wb_run *run)
{
	if (wc->wc_nruns == wc->wc_runs_cap) {
		unsigned cap = UG_MAX(2 * wc->wc_runs_cap, 8u);
		struct wb_run *runs = realloc(wc->wc_runs, cap * sizeof(*runs));

		if (!runs)
			return -ENOMEM;
		wc->wc_runs = runs;
		wc->wc_runs_cap = cap;
	}
	wc->wc_runs[wc->wc_nruns++] = *run;
	return 0;
}

/* The part of a run from block `from` on, count blocks of it. */
static struct wb_run run_part(const struct wb_chunk *wc,
			      const struct wb_run *run, uint32_t from,
			      uint32_t count)
{
	unsigned shift = page_blocks_shift(wc->wc_ip);
	struct wb_run part = *run;

	part.lblock += from;
	part.pblock += run->pblock ? from : 0;
	part.count = count;
	part.page +=
		(uint32_t)((part.lblock >> shift) - (run->lblock >> shift));
	return part;
}

/* Take the list of runs out of the chunk, to build another one from it. */
static struct wb_run *runs_take(struct wb_chunk *wc, unsigned *n)
{
	struct wb_run *runs = wc->wc_runs;

	*n = wc->wc_nruns;
	wc->wc_runs = NULL;
	wc->wc_nruns = 0;
	wc->wc_runs_cap = 0;
	return runs;
}

/* ---- by mapping ---- */

static int map_run(struct wb_chunk *wc, const struct wb_run *run)
{
	uint32_t done = 0;
	int err = 0;

	while (!err && done < run->count) {
		struct tree_run tr;
		struct wb_run part;

		err = tree_map(wc->wc_ip, run->lblock + done, run->count - done,
			       false, &tr);
		if (err)
			return err;
		part = run_part(wc, run, done, tr.count);
		part.pblock = tr.pblock;
		part.fresh = !tr.pblock;
		if (part.fresh)
			wc->wc_fresh += tr.count;
		err = wb_add_run(wc, &part);
		done += tr.count;
	}
	return err;
}

static int map_runs(struct wb_chunk *wc)
{
	unsigned n;
	struct wb_run *runs = runs_take(wc, &n);
	int err = 0;

	pthread_rwlock_rdlock(&wc->wc_ip->i_lock);
	for (unsigned i = 0; !err && i < n; i++)
		err = map_run(wc, &runs[i]);
	inode_rwunlock(wc->wc_ip);
	free(runs);
	return err;
}

/* ---- by places ---- */

static const struct wb_run *first_fresh(const struct wb_chunk *wc)
{
	const struct wb_run *run = wc->wc_runs;

	while (!run->fresh)
		run++;
	return run;
}

static uint32_t meta_max(struct wb_chunk *wc, uint64_t lblock, uint32_t count)
{
	uint32_t n;

	pthread_rwlock_rdlock(&wc->wc_ip->i_lock);
	n = tree_meta_max(wc->wc_ip, lblock, count);
	inode_rwunlock(wc->wc_ip);
	return n;
}

/* How many blocks of a run fit into room with their pointer blocks. */
static uint32_t blocks_that_fit(struct wb_chunk *wc, const struct wb_run *run,
				uint32_t room)
{
	uint32_t n = UG_MIN(run->count, room);

	while (n) {
		uint32_t need = n + meta_max(wc, run->lblock, n);

		if (need <= room)
			break;
		n -= UG_MIN(need - room, n);
	}
	return n;
}

/* These blocks must wait: dirty again. */
static void put_off(struct wb_chunk *wc, const struct wb_run *run)
{
	uint32_t done = 0;

	wc->wc_stop = UG_MIN(wc->wc_stop, run->lblock);
	wc->wc_fresh -= run->count;
	pthread_mutex_lock(&wc->wc_pp->pp_lock);
	while (done < run->count) {
		struct page *pg;
		unsigned block;
		uint32_t n = wb_piece(wc, run, done, &pg, &block);

		page_fail_write(wc->wc_pp, pg, page_range(block, block + n));
		done += n;
	}
	pthread_mutex_unlock(&wc->wc_pp->pp_lock);
}

/*
 * The hold has less than all want: keep the fresh runs that fit, and the
 * beginning of the first that does not. The others wait, however short they
 * are, so that the file grows in order. The hold has room for one block at
 * least.
 */
static int keep_fitting(struct wb_chunk *wc)
{
	uint32_t room = wc->wc_hold.rh_blocks;
	unsigned count;
	struct wb_run *runs = runs_take(wc, &count);
	int err = 0;

	wc->wc_meta = 0;
	for (unsigned i = 0; i < count; i++) {
		struct wb_run *run = &runs[i], rest;
		uint32_t n = run->count, meta = 0;

		if (run->fresh) {
			n = blocks_that_fit(wc, run, room);
			meta = n ? meta_max(wc, run->lblock, n) : 0;
			room = n < run->count ? 0 : room - n - meta;
		}
		rest = run_part(wc, run, n, run->count - n);
		run->count = n;
		wc->wc_meta += meta;
		if (n && !err)
			err = wb_add_run(wc, run);
		if (rest.count)
			put_off(wc, &rest);
	}
	free(runs);
	return err;
}

/* Give the fresh runs their places, in the order of the hold. */
static int assign(struct wb_chunk *wc)
{
	const struct rgrp_extent *ext =
		wc->wc_hold.rh_ext + wc->wc_hold.rh_first;
	uint32_t used = 0;
	unsigned count;
	struct wb_run *runs = runs_take(wc, &count);
	int err = 0;

	for (unsigned i = 0; !err && i < count; i++) {
		uint32_t done = 0;

		if (!runs[i].fresh)
			err = wb_add_run(wc, &runs[i]);
		while (!err && runs[i].fresh && done < runs[i].count) {
			uint32_t n =
				UG_MIN(runs[i].count - done, ext->len - used);
			struct wb_run part = run_part(wc, &runs[i], done, n);

			part.pblock = ext->start + used;
			err = wb_add_run(wc, &part);
			done += n;
			used += n;
			if (used == ext->len) {
				ext++;
				used = 0;
			}
		}
	}
	free(runs);
	return err;
}

static int reserve(struct wb_chunk *wc, bool nowait)
{
	const struct wb_run *run = first_fresh(wc);
	uint32_t want = wc->wc_fresh + wc->wc_meta;
	uint32_t min = 1 + meta_max(wc, run->lblock, 1);
	int err;

	err = rgrp_reserve(wc->wc_ip, UG_MAX(want, min), min, RGRP_DATA, nowait,
			   &wc->wc_hold);
	if (err)
		return err;
	if (wc->wc_hold.rh_blocks < want)
		err = keep_fitting(wc);
	return err ? err : assign(wc);
}

/* The blocks that the transaction will change, in memory. */
static int prepare(struct wb_chunk *wc)
{
	struct inode *ip = wc->wc_ip;
	int err = inode_dibuf(ip, false, &wc->wc_dibuf);

	pthread_rwlock_rdlock(&ip->i_lock);
	for (unsigned i = 0; !err && i < wc->wc_nruns; i++) {
		const struct wb_run *run = &wc->wc_runs[i];

		if (run->fresh)
			err = tree_prepare(ip, run->lblock, run->count, false,
					   &wc->wc_set);
	}
	inode_rwunlock(ip);
	return err;
}

int wb_place(struct wb_chunk *wc, bool nowait)
{
	int err = map_runs(wc);

	if (!err && wc->wc_fresh)
		err = reserve(wc, nowait);
	if (!err)
		err = prepare(wc);
	if (!err && wc->wc_kind == WB_JDATA)
		err = jdata_prepare(wc);
	return err;
}
