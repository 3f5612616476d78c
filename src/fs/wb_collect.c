/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * wb_collect.c - the dirty pages of an inode that go into one round.
 *
 * In file order, and marked as being written: a page that is changed from now
 * on is dirty again, and goes once more.
 */
#include <errno.h>
#include <stdlib.h>

#include "fs/wb.h"

static int add_page(struct wb_chunk *wc, struct page *pg)
{
	if (wc->wc_npages == wc->wc_pages_cap) {
		unsigned cap = UG_MAX(2 * wc->wc_pages_cap, 8u);
		struct page **pages =
			realloc(wc->wc_pages, cap * sizeof(*pages));

		if (!pages)
			return -ENOMEM;
		wc->wc_pages = pages;
		wc->wc_pages_cap = cap;
	}
	wc->wc_pages[wc->wc_npages++] = pg;
	return 0;
}

/* Runs of the dirty blocks of the page just added. */
static int add_runs(struct wb_chunk *wc, const struct page *pg, uint8_t dirty)
{
	unsigned shift = page_blocks_shift(wc->wc_ip);

	while (dirty) {
		unsigned block = (unsigned)__builtin_ctz(dirty);
		unsigned n = (unsigned)__builtin_ctz(~(dirty >> block));
		struct wb_run run = {
			.lblock = (pg->pg_index << shift) + block,
			.count = n,
			.page = wc->wc_npages - 1,
		};
		struct wb_run *last =
			wc->wc_nruns ? &wc->wc_runs[wc->wc_nruns - 1] : NULL;

		if (last && last->lblock + last->count == run.lblock)
			last->count += n;
		else if (wb_add_run(wc, &run))
			return -ENOMEM;
		dirty &= (uint8_t)~page_range(block, block + n);
	}
	return 0;
}

/*
 * Pointer blocks that mapping the leaf's blocks may change, if there are any to
 * map.
 */
static uint32_t leaf_meta(struct wb_chunk *wc, const struct pleaf *leaf)
{
	unsigned shift = page_blocks_shift(wc->wc_ip);

	if (!leaf->delayed)
		return 0;
	return tree_meta_max(wc->wc_ip, leaf->n.first << shift,
			     LEAF_PAGES << shift);
}

static unsigned pages_max(const struct inode *ip)
{
	return inode_is_jdata(ip) ? WB_PAGES_JDATA : WB_PAGES_MAX;
}

/* i_lock and pp_lock held. On failure what has been collected stays so. */
static int collect_pages(struct wb_chunk *wc)
{
	struct pagetable *t = &wc->wc_pp->pp_table;
	unsigned max = pages_max(wc->wc_ip);
	struct pleaf *leaf = NULL;
	struct page *pg;
	int err = 0;

	while (!err && wc->wc_npages < max &&
	       (pg = pagetable_next(t, wc->wc_next, true)) != NULL &&
	       pg->pg_index < wc->wc_end) {
		struct pleaf *its = pagetable_leaf(t, pg->pg_index);
		uint32_t meta = its != leaf ? leaf_meta(wc, its) : 0;
		uint8_t dirty = pg->pg_dirty;

		if (wc->wc_npages && wc->wc_meta + meta > WB_META_MAX)
			break;
		err = add_page(wc, pg);
		if (err)
			break;
		page_begin_write(wc->wc_pp, pg);
		err = add_runs(wc, pg, dirty);
		wc->wc_meta += meta;
		wc->wc_next = pg->pg_index + 1;
		leaf = its;
	}
	return err;
}

int wb_collect(struct wb_chunk *wc)
{
	struct inode *ip = wc->wc_ip;
	struct pages *pp = wc->wc_pp;
	int err = 0;

	wc->wc_kind = WB_NOTHING;
	pthread_rwlock_rdlock(&ip->i_lock);
	pthread_mutex_lock(&pp->pp_lock);
	wc->wc_size = ip->i_size;
	if (pagetable_next(&pp->pp_table, wc->wc_next, true)) {
		bool in_dinode = !ip->i_height;

		if (in_dinode && ip->i_size <= ip->i_fs->fs_geom.stuffed_max)
			wc->wc_kind = WB_STUFFED;
		/* What leaves the dinode must be in the transaction that
		 * clears it. */
		else if (in_dinode)
			wc->wc_next = 0;
		if (wc->wc_kind == WB_NOTHING)
			err = collect_pages(wc);
	}
	pthread_mutex_unlock(&pp->pp_lock);
	inode_rwunlock(ip);
	if (wc->wc_npages)
		wc->wc_kind = inode_is_jdata(ip) ? WB_JDATA : WB_DATA;
	return err;
}
