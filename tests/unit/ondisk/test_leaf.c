/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * test_leaf.c - leaves: new, filled, damaged.
 * Source: docs/spec/gfs2-ondisk.md 4.5.
 */
#include <errno.h>

#include "testing.h"

static const struct gfs2_leaf_info fresh = {
	.depth = 5,
	.inode = 1234,
	.dist = 1,
	.time = { -3, 999999999 },
};

static void test_new_leaf_is_empty(void **state)
{
	for (uint32_t bsize = 512; bsize <= 4096; bsize *= 2) {
		struct gfs2_geom geom = geom_of(bsize);
		uint8_t *block = new_block(bsize);
		const struct gfs2_dirent *de;
		struct gfs2_leaf_info leaf;

		memset(block, 0xff, bsize);
		gfs2_leaf_init(&geom, &fresh, block);
		assert_int_equal(gfs2_leaf_check(&geom, block), 0);
		assert_int_equal(gfs2_leaf_decode(&geom, block, &leaf), 0);
		assert_int_equal(leaf.depth, 5);
		assert_int_equal(leaf.entries, 0);
		assert_int_equal(leaf.inode, 1234);
		assert_int_equal(leaf.dist, 1);
		assert_int_equal(leaf.time.sec, -3);
		assert_int_equal(leaf.time.nsec, 999999999);
		assert_int_equal(gfs2_dirent_at(gfs2_leaf_area(block),
						gfs2_leaf_area_len(&geom), 0,
						&de),
				 0);
		assert_true(gfs2_dirent_is_sentinel(de));
		assert_int_equal(be16_get(de->de_rec_len), bsize - 104);
		free(block);
	}
}

static void test_entries_are_counted(void **state)
{
	struct gfs2_geom geom = geom_of(1024);
	uint8_t *block = new_block(1024);
	struct gfs2_leaf_info leaf = fresh;

	gfs2_leaf_init(&geom, &leaf, block);
	gfs2_dirent_insert(gfs2_leaf_area(block), gfs2_leaf_area_len(&geom),
			   "a", 1, 1, 1, 1, 8);
	assert_int_equal(gfs2_leaf_check(&geom, block), -EUCLEAN);
	leaf.entries = 1;
	gfs2_leaf_encode(&leaf, block);
	assert_int_equal(gfs2_leaf_check(&geom, block), 0);
	leaf.entries = 2;
	gfs2_leaf_encode(&leaf, block);
	assert_int_equal(gfs2_leaf_check(&geom, block), -EUCLEAN);
	free(block);
}

static void test_bounds(void **state)
{
	struct gfs2_geom geom = geom_of(4096);
	uint8_t *block = new_block(4096);
	struct gfs2_leaf_info leaf = fresh, out;

	leaf.depth = 17;
	leaf.entries = (4096 - 104) / 48;
	gfs2_leaf_init(&geom, &leaf, block);
	assert_int_equal(gfs2_leaf_decode(&geom, block, &out), 0);
	leaf.entries++;
	gfs2_leaf_encode(&leaf, block);
	assert_int_equal(gfs2_leaf_decode(&geom, block, &out), -EUCLEAN);
	leaf.entries = 0;
	leaf.depth = 18;
	gfs2_leaf_encode(&leaf, block);
	assert_int_equal(gfs2_leaf_decode(&geom, block, &out), -EUCLEAN);
	gfs2_leaf_init(&geom, &fresh, block);
	gfs2_meta_init(block, GFS2_METATYPE_JD);
	assert_int_equal(gfs2_leaf_decode(&geom, block, &out), -EUCLEAN);
	assert_int_equal(gfs2_leaf_check(&geom, block), -EUCLEAN);
	free(block);
}

static void test_encoder_keeps_entries_and_jid(void **state)
{
	struct gfs2_geom geom = geom_of(512);
	uint8_t *block = new_block(512);
	struct gfs2_leaf_info leaf = fresh;
	uint8_t area[512 - 104];

	gfs2_leaf_init(&geom, &leaf, block);
	gfs2_dirent_insert(gfs2_leaf_area(block), sizeof(area), "a", 1, 1, 1, 1,
			   8);
	memcpy(area, gfs2_leaf_area(block), sizeof(area));
	gfs2_meta_set_jid(block, 9);
	leaf.next = 77;
	gfs2_leaf_encode(&leaf, block);
	assert_memory_equal(area, gfs2_leaf_area(block), sizeof(area));
	assert_int_equal(
		be32_get(((struct gfs2_leaf *)block)->lf_header.mh_jid), 9);
	free(block);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_new_leaf_is_empty),
		cmocka_unit_test(test_entries_are_counted),
		cmocka_unit_test(test_bounds),
		cmocka_unit_test(test_encoder_keeps_entries_and_jid),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
