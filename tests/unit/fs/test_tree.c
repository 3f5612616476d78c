/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * test_tree.c - the pointer tree against a list of what was put in, and the
 * table of pages against a bitmap.
 */
#include "fs/file.h"
#include "fs/tree.h"
#include "tests/unit/fs/names.h"

/* ---- table of pages ---- */

#define POOL_PAGES 3000u

static uint64_t far_index(struct ug_prng *prng)
{
	static const unsigned bits[] = { 6, 12, 18, 30, 51 };

	return ug_prng_u64(prng) >>
	       (64 - bits[ug_prng_below(prng, UG_ARRAY_SIZE(bits))]);
}

static int by_index(const void *a, const void *b)
{
	uint64_t x = (*(struct page *const *)a)->pg_index;
	uint64_t y = (*(struct page *const *)b)->pg_index;

	return (x > y) - (x < y);
}

/* Walk the table and compare with the sorted list. */
static void check_walk(struct pagetable *t, struct page **in, unsigned n,
		       bool dirty_only)
{
	uint64_t index = 0;

	for (unsigned i = 0; i < n; i++) {
		struct page *pg;

		if (dirty_only && !in[i]->pg_dirty)
			continue;
		pg = pagetable_next(t, index, dirty_only);
		assert_ptr_equal(pg, in[i]);
		index = pg->pg_index + 1;
	}
	assert_null(pagetable_next(t, index, dirty_only));
}

static void toggle_dirty(struct pagetable *t, struct page *pg)
{
	if (pg->pg_dirty)
		pagetable_clear_dirty(t, pg);
	else
		pagetable_set_dirty(t, pg);
	pg->pg_dirty ^= 1;
}

static void take_out(struct pagetable *t, struct page *pg)
{
	if (pg->pg_dirty)
		toggle_dirty(t, pg);
	pagetable_remove(t, pg);
	assert_null(pagetable_get(t, pg->pg_index));
}

static void test_pagetable(void **state)
{
	struct page *pages = calloc(POOL_PAGES, sizeof(*pages));
	struct page **in = calloc(POOL_PAGES, sizeof(struct page *));
	struct pagetable t = { .base = pages };
	struct ug_prng prng;
	unsigned n = 0;

	ug_prng_seed(&prng, 42);
	for (unsigned i = 0; i < POOL_PAGES; i++) {
		pages[i].pg_index = far_index(&prng);
		if (pagetable_get(&t, pages[i].pg_index))
			continue;
		assert_int_equal(pagetable_insert(&t, &pages[i]), 0);
		assert_ptr_equal(pagetable_get(&t, pages[i].pg_index),
				 &pages[i]);
		in[n++] = &pages[i];
	}
	qsort(in, n, sizeof(struct page *), by_index);
	check_walk(&t, in, n, false);
	for (unsigned i = 0; i < 2 * n; i++)
		toggle_dirty(&t, in[ug_prng_below(&prng, n)]);
	check_walk(&t, in, n, true);
	while (n) {
		unsigned k = (unsigned)ug_prng_below(&prng, n);

		take_out(&t, in[k]);
		memmove(in + k, in + k + 1, (n - k - 1) * sizeof(*in));
		n--;
		if (n % 100 == 0) {
			check_walk(&t, in, n, false);
			check_walk(&t, in, n, true);
		}
	}
	/* All memory has gone with the pages. */
	assert_null(t.root);
	free(in);
	free(pages);
}

/* A small file costs a leaf, wherever its pages are. */
static void test_pagetable_is_small(void **state)
{
	struct page pg = { .pg_index = UINT64_C(1) << 50 };
	struct pagetable t = { .base = &pg };

	assert_int_equal(pagetable_insert(&t, &pg), 0);
	assert_int_equal(t.root->level, 0);
	pagetable_remove(&t, &pg);
	assert_null(t.root);
}

/* ---- pointer tree ---- */

static struct volume vol;

struct mapping {
	uint64_t lblock;
	uint64_t pblock;
	uint32_t count;
};

/* Unstuffed and empty: what write-back does before the first block. */
static void make_tall(struct inode *ip)
{
	pthread_rwlock_wrlock(&ip->i_lock);
	ip->i_height = 1;
	inode_rwunlock(ip);
}

/* Map count blocks of real places at lblock, in one transaction. */
static void map_at(struct inode *ip, uint64_t lblock, uint32_t count,
		   struct mapping *m)
{
	uint32_t meta = tree_meta_max(ip, lblock, count);
	struct tree_set set = { 0 };
	struct rgrp_hold hold;
	struct buf *dibuf;
	struct trans tr;
	uint64_t blocks = ip->i_blocks;

	assert_int_equal(space_promise(vol.fs, count + meta), 0);
	rgrp_hold_init(&hold);
	assert_int_equal(rgrp_reserve(ip, count + meta, count + meta, RGRP_DATA,
				      false, &hold),
			 0);
	assert_int_equal(inode_dibuf(ip, false, &dibuf), 0);
	assert_int_equal(tree_prepare(ip, lblock, count, false, &set), 0);
	assert_int_equal(
		trans_begin(vol.fs->fs_journal, &tr,
			    1 + tree_trans_blocks(ip, lblock, count) +
				    rgrp_trans_blocks(&hold, count + meta),
			    0, 0),
		0);
	pthread_rwlock_wrlock(&ip->i_lock);
	m->lblock = lblock;
	m->count = rgrp_alloc(&tr, &hold, ip, count, &m->pblock);
	assert_int_equal(m->count, count);
	trans_add_meta(&tr, dibuf);
	assert_int_equal(
		tree_insert(&tr, ip, dibuf, &hold, lblock, m->pblock, count),
		0);
	ip->i_size =
		UG_MAX(ip->i_size, (lblock + count) << vol.fs->fs_geom.bshift);
	ip->i_disksize = ip->i_size;
	inode_log(&tr, ip, dibuf);
	inode_rwunlock(ip);
	inode_logged(ip, trans_end(&tr), true);
	/* The estimate was enough, and what was taken is counted. */
	assert_true(ip->i_blocks >= blocks + count);
	assert_true(ip->i_blocks <= blocks + count + meta);
	space_unpromise(vol.fs, count + meta);
	rgrp_drop(&hold);
	tree_set_release(&set);
	buf_put(dibuf);
}

static void check_mapped(struct inode *ip, const struct mapping *m)
{
	uint32_t done = 0;

	while (done < m->count) {
		struct tree_run run;

		assert_int_equal(tree_map(ip, m->lblock + done, m->count - done,
					  false, &run),
				 0);
		assert_true(run.count >= 1 && run.count <= m->count - done);
		assert_int_equal(run.pblock, m->pblock + done);
		done += run.count;
	}
}

/* From `from` to before `to` there is nothing. */
static void check_hole(struct inode *ip, uint64_t from, uint64_t to)
{
	unsigned steps = 0;

	while (from < to) {
		uint32_t max =
			(uint32_t)UG_MIN(to - from, (uint64_t)UINT32_MAX);
		struct tree_run run;

		assert_int_equal(tree_map(ip, from, max, false, &run), 0);
		assert_int_equal(run.pblock, 0);
		assert_true(run.count >= 1 && run.count <= max);
		from += run.count;
		/* Holes are crossed in large steps; far ones not to the end. */
		if (++steps > 5000)
			return;
	}
}

static void tree_run(uint32_t bsize)
{
	struct volume_geometry g = { .bsize = bsize };
	struct mapping m[16];
	uint64_t lblocks[16], at = 0;
	unsigned n = 0;
	uint64_t id;
	struct inode *ip;

	volume_make(&vol, &g);
	volume_mount(&vol);
	/* Edges of the levels, and far away. */
	lblocks[n++] = vol.fs->fs_geom.diptrs - 3;
	lblocks[n++] = 0;
	lblocks[n++] = vol.fs->fs_geom.inptrs - 2;
	for (unsigned h = 2; h < vol.fs->fs_geom.height_max; h++)
		lblocks[n++] = vol.fs->fs_geom.size_at_height[h] / bsize - 4;
	lblocks[n++] = (INT64_MAX >> vol.fs->fs_geom.bshift) - 20;
	id = make_file(&vol, ROOT, "tree");
	ip = node(&vol, id);
	make_tall(ip);
	for (unsigned i = 0; i < n; i++)
		map_at(ip, lblocks[i], lblocks[i] ? 8 : 5, &m[i]);
	for (unsigned i = 0; i < n; i++)
		check_mapped(ip, &m[i]);
	check_hole(ip, 5, lblocks[0]);
	at = m[2].lblock + m[2].count;
	for (unsigned i = 3; i < n; i++) {
		check_hole(ip, at, lblocks[i]);
		at = lblocks[i] + 8;
	}
	inode_put(ip);
	volume_unmount(&vol);
	volume_fsck(&vol);
	volume_mount(&vol);
	ip = node(&vol, id);
	assert_true(attr_of(&vol, id).size > 0);
	for (unsigned i = 0; i < n; i++)
		check_mapped(ip, &m[i]);
	inode_put(ip);
	volume_unmount(&vol);
	volume_remove(&vol);
}

static void test_tree_512(void **state)
{
	tree_run(512);
}

static void test_tree_1024(void **state)
{
	tree_run(1024);
}

static void test_tree_4096(void **state)
{
	tree_run(4096);
}

/* A pointer that leads nowhere is found, and not followed. */
static void test_damaged_pointer(void **state)
{
	struct volume_geometry g = { 0 };
	struct tree_run run;
	struct mapping m;
	struct buf *dibuf;
	struct inode *ip;

	volume_make(&vol, &g);
	volume_mount(&vol);
	ip = node(&vol, make_file(&vol, ROOT, "f"));
	make_tall(ip);
	map_at(ip, 0, 3, &m);
	assert_int_equal(inode_dibuf(ip, false, &dibuf), 0);
	gfs2_dinode_ptrs(dibuf->b_data)[1] = be64_of(3);
	assert_int_equal(tree_map(ip, 1, 1, false, &run), -EUCLEAN);
	gfs2_dinode_ptrs(dibuf->b_data)[1] = be64_of(UINT64_MAX);
	assert_int_equal(tree_map(ip, 0, 3, false, &run), 0);
	assert_int_equal(run.count, 1);
	assert_int_equal(tree_map(ip, 1, 2, false, &run), -EUCLEAN);
	gfs2_dinode_ptrs(dibuf->b_data)[1] = be64_of(m.pblock + 1);
	buf_put(dibuf);
	inode_put(ip);
	volume_unmount(&vol);
	volume_fsck(&vol);
	volume_remove(&vol);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_pagetable),
		cmocka_unit_test(test_pagetable_is_small),
		cmocka_unit_test(test_tree_4096),
		cmocka_unit_test(test_tree_1024),
		cmocka_unit_test(test_tree_512),
		cmocka_unit_test(test_damaged_pointer),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
