/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * test_geom.c - constants of every block size, heights and paths of trees.
 * Source: docs/spec/gfs2-ondisk.md 1.1, 3.5.
 */
#include <errno.h>

#include "testing.h"

static void test_constants(void **state)
{
	/* A column of the table of 1.1 in each line. */
	static const struct gfs2_geom rows[] = {
		{ 512, 9, 35, 61, 55, 488, 280, 32, 5, 30, 1536, 1952, 10 },
		{ 1024, 10, 99, 125, 119, 1000, 792, 64, 6, 62, 3584, 4000, 8 },
		{ 2048, 11, 227, 253, 247, 2024, 1816, 128, 7, 126, 7680, 8096,
		  7 },
		{ 4096, 12, 483, 509, 503, 4072, 3864, 256, 8, 254, 15872,
		  16288, 6 },
	};

	for (size_t i = 0; i < UG_ARRAY_SIZE(rows); i++) {
		struct gfs2_geom geom = geom_of(rows[i].bsize);

		assert_memory_equal(&geom, &rows[i],
				    offsetof(struct gfs2_geom, height_max) +
					    sizeof(geom.height_max));
	}
}

static void test_sizes(void **state)
{
	struct gfs2_geom g4 = geom_of(4096), g05 = geom_of(512);

	assert_int_equal(g4.size_at_height[0], 3864);
	assert_int_equal(g4.size_at_height[1], 1978368);
	assert_int_equal(g4.size_at_height[2], 1006989312);
	assert_int_equal(g4.size_at_height[3], 512557559808);
	assert_int_equal(g4.size_at_height[4], 260891797942272);
	assert_int_equal(g4.size_at_height[6], UINT64_MAX);
	assert_int_equal(g4.size_at_height[10], UINT64_MAX);
	assert_int_equal(g05.size_at_height[3], 66680320);
	assert_int_equal(g05.size_at_height[10], UINT64_MAX);
}

static void test_refused_block_sizes(void **state)
{
	static const uint32_t bad[] = { 0,    1,    256,  511,	 513,	  1536,
					4095, 4097, 8192, 65536, 1u << 31 };
	struct gfs2_geom geom = { .bsize = 42 };

	for (size_t i = 0; i < UG_ARRAY_SIZE(bad); i++)
		assert_int_equal(gfs2_geom_init(&geom, bad[i]), -EINVAL);
	assert_int_equal(geom.bsize, 42);
}

/* At the border of each height: the last block that fits, the first beyond. */
static void test_heights(void **state)
{
	for (uint32_t bsize = 512; bsize <= 4096; bsize *= 2) {
		struct gfs2_geom geom = geom_of(bsize);
		uint64_t last = (uint64_t)INT64_MAX / bsize;

		assert_int_equal(gfs2_height_for(&geom, 0), 1);
		for (unsigned h = 1; h < geom.height_max; h++) {
			uint64_t blocks = geom.size_at_height[h] / bsize;

			assert_int_equal(gfs2_height_for(&geom, blocks - 1), h);
			if (blocks <= last)
				assert_int_equal(gfs2_height_for(&geom, blocks),
						 h + 1);
		}
		assert_int_equal(gfs2_height_for(&geom, last), geom.height_max);
		assert_int_equal(gfs2_height_for(&geom, last + 1), -EFBIG);
		assert_int_equal(gfs2_height_for(&geom, UINT64_MAX), -EFBIG);
	}
}

/* Following a path back gives the block number; it exists iff it fits. */
static void check_path(const struct gfs2_geom *geom, unsigned height,
		       uint64_t lblock)
{
	bool fits = lblock < geom->size_at_height[height] >> geom->bshift ||
		    height == geom->height_max;
	uint16_t path[GFS2_HEIGHT_MAX];
	uint64_t back = 0;

	if (!fits) {
		assert_int_equal(gfs2_tree_path(geom, height, lblock, path), 0);
		return;
	}
	assert_int_equal(gfs2_tree_path(geom, height, lblock, path), height);
	assert_true(path[0] < geom->diptrs);
	for (unsigned i = 0; i < height; i++) {
		assert_true(i == 0 || path[i] < geom->inptrs);
		back = back * geom->inptrs + path[i];
	}
	assert_int_equal(back, lblock);
}

static void test_paths(void **state)
{
	struct ug_prng prng;
	uint16_t path[GFS2_HEIGHT_MAX];

	ug_prng_seed(&prng, 3);
	for (uint32_t bsize = 512; bsize <= 4096; bsize *= 2) {
		struct gfs2_geom geom = geom_of(bsize);

		for (int i = 0; i < 20000; i++) {
			unsigned h = 1 + (unsigned)ug_prng_below(
						 &prng, geom.height_max);
			uint64_t lblock =
				ug_prng_u64(&prng) >>
				(geom.bshift + 1 + ug_prng_below(&prng, 50));

			check_path(&geom, h, lblock);
		}
		assert_int_equal(gfs2_tree_path(&geom, 0, 0, path), 0);
		assert_int_equal(
			gfs2_tree_path(&geom, geom.height_max + 1, 0, path), 0);
	}
}

/* The height chosen for a block always reaches it. */
static void test_height_and_path_agree(void **state)
{
	struct ug_prng prng;
	uint16_t path[GFS2_HEIGHT_MAX];

	ug_prng_seed(&prng, 4);
	for (int i = 0; i < 50000; i++) {
		struct gfs2_geom geom =
			geom_of(512u << ug_prng_below(&prng, 4));
		uint64_t lblock = ug_prng_u64(&prng) >>
				  (geom.bshift + 1 + ug_prng_below(&prng, 50));
		int h = gfs2_height_for(&geom, lblock);

		assert_true(h >= 1);
		assert_int_equal(
			gfs2_tree_path(&geom, (unsigned)h, lblock, path), h);
		if (h > 1)
			assert_int_equal(gfs2_tree_path(&geom, (unsigned)h - 1,
							lblock, path),
					 0);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_constants),
		cmocka_unit_test(test_sizes),
		cmocka_unit_test(test_refused_block_sizes),
		cmocka_unit_test(test_heights),
		cmocka_unit_test(test_paths),
		cmocka_unit_test(test_height_and_path_agree),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
