/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * piece_plan.c - what a piece of a write needs: pages, places, old bytes,
 * space.
 */
#include <errno.h>
#include <string.h>

#include "fs/piece.h"

static int wants(struct piece *p, enum want want, uint64_t at)
{
	p->want = want;
	p->want_at = at;
	return -EAGAIN;
}

static unsigned find_pages(struct piece *p)
{
	unsigned missing = 0;

	for (unsigned i = 0; i < p->count; i++) {
		p->pages[i].pg =
			pagetable_get(&p->pp->pp_table, piece_index(p) + i);
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
		err = pages_insert(p->pp, pg, piece_index(p) + i);
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
	uint64_t paid = UG_MIN(blocks, p->prepaid);
	int err = 0;

	if (blocks > paid)
		err = space_promise(p->ip->i_fs, blocks - paid);
	if (err)
		return err == -ENOSPC ? wants(p, WANT_SPACE, blocks) : err;
	p->prepaid -= paid;
	return 0;
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

int piece_plan(struct piece *p)
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
