/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * test_sb.c - which superblocks are refused, with which words.
 * Source: docs/spec/gfs2-ondisk.md 2.1, 1.4.
 */
#include <errno.h>

#include "testing.h"

static const struct gfs2_sb_info good = {
	.fs_format = 1802,
	.multihost_format = 1900,
	.bsize = 4096,
	.bsize_shift = 12,
	.master_formal = 3,
	.master_addr = 2072,
	.root_formal = 16,
	.root_addr = 4656,
	.lockproto = "lock_dlm",
	.locktable = "cluster:volume",
	.uuid = { 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16 },
};

/* Decode after one change; the sentence must contain the given words. */
static void check_refused(const struct gfs2_sb_info *sb, int err,
			  const char *words)
{
	struct gfs2_sb_info out = { .bsize = 42 };
	uint8_t block[512];
	char why[256] = "";

	gfs2_sb_encode(sb, block);
	assert_int_equal(gfs2_sb_decode(block, 512, &out, why, sizeof(why)),
			 err);
	assert_int_equal(out.bsize, 42);
	if (!strstr(why, words))
		fail_msg("expected \"%s\" in \"%s\"", words, why);
}

static void test_round_trip(void **state)
{
	struct gfs2_sb_info out;
	uint8_t block[512];

	gfs2_sb_encode(&good, block);
	assert_int_equal(
		gfs2_sb_decode(block, sizeof(struct gfs2_sb), &out, NULL, 0),
		0);
	/* The structure ends in padding. */
	assert_memory_equal(&out, &good,
			    offsetof(struct gfs2_sb_info, uuid) +
				    sizeof(out.uuid));
}

static void test_not_gfs2(void **state)
{
	static const uint8_t zeroes[512];
	struct gfs2_sb_info out;
	char why[256];

	assert_int_equal(gfs2_sb_decode(zeroes, 512, &out, why, sizeof(why)),
			 -EINVAL);
	assert_string_equal(why, "not a GFS2 volume: byte 65536 holds "
				 "00000000, expected the magic 01161970");
	for (size_t len = 0; len < sizeof(struct gfs2_sb); len++) {
		void *cut = malloc(len ? len : 1);

		assert_int_equal(
			gfs2_sb_decode(cut, len, &out, why, sizeof(why)),
			-EINVAL);
		assert_non_null(strstr(why, "it ends within the superblock"));
		free(cut);
	}
}

static void test_wrong_block_type(void **state)
{
	struct gfs2_sb_info out;
	uint8_t block[512];
	char why[256];

	gfs2_sb_encode(&good, block);
	gfs2_meta_init(block, GFS2_METATYPE_DI);
	assert_int_equal(gfs2_sb_decode(block, 512, &out, why, sizeof(why)),
			 -EUCLEAN);
	assert_string_equal(why, "superblock: block type is 4 (dinode), "
				 "expected 1");
}

#define WITH(field, value)                      \
	({                                      \
		struct gfs2_sb_info sb_ = good; \
		sb_.field = value;              \
		sb_;                            \
	})

static void test_formats(void **state)
{
	struct gfs2_sb_info sb = WITH(fs_format, 1800);

	check_refused(&sb, -EINVAL, "format is 1800, expected 1801 or 1802");
	sb = WITH(fs_format, 1803);
	check_refused(&sb, -EINVAL, "format is 1803");
	sb = WITH(multihost_format, 1901);
	check_refused(&sb, -EINVAL, "multihost format is 1901, expected 1900");
	sb.multihost_format = 1401;
	sb.fs_format = 1309;
	check_refused(&sb, -EINVAL, "GFS (version 1) volume, format 1309/1401");
}

static void test_block_sizes(void **state)
{
	struct gfs2_sb_info sb = WITH(bsize, 4095);

	check_refused(&sb, -EUCLEAN, "block size is 4095, expected a power");
	sb = WITH(bsize, 0);
	check_refused(&sb, -EUCLEAN, "block size is 0");
	sb = WITH(bsize, 256);
	sb.bsize_shift = 8;
	check_refused(&sb, -EUCLEAN, "block size is 256");
	sb = WITH(bsize_shift, 11);
	check_refused(&sb, -EUCLEAN,
		      "shift is 11, expected 12 for blocks of "
		      "4096 bytes");
	sb = WITH(bsize, 65536);
	sb.bsize_shift = 16;
	check_refused(&sb, -EINVAL, "block size is 65536, at most 4096");
}

static void test_directories(void **state)
{
	struct gfs2_sb_info sb = WITH(master_addr, 0);

	check_refused(&sb, -EUCLEAN, "master directory is inode 3 at block 0");
	sb = WITH(master_addr, 16);
	check_refused(&sb, -EUCLEAN, "from 17 up");
	sb = WITH(master_formal, 0);
	check_refused(&sb, -EUCLEAN, "master directory is inode 0");
	sb = WITH(root_addr, 16);
	check_refused(&sb, -EUCLEAN, "root directory is inode 16 at block 16");
	sb = WITH(root_formal, 0);
	check_refused(&sb, -EUCLEAN, "root directory");
}

static void test_names(void **state)
{
	struct gfs2_sb_info out, sb = good;
	struct gfs2_sb *disk;
	uint8_t block[512];
	char why[256];

	strcpy(sb.lockproto, "fsck_dlm");
	check_refused(&sb, -EUCLEAN, "\"fsck_dlm\": fsck.gfs2 is checking");

	gfs2_sb_encode(&good, block);
	disk = (struct gfs2_sb *)block;
	memset(disk->sb_lockproto, 'x', 64);
	assert_int_equal(gfs2_sb_decode(block, 512, &out, why, sizeof(why)),
			 -EUCLEAN);
	assert_non_null(strstr(why, "lock protocol has no end"));

	gfs2_sb_encode(&good, block);
	memset(disk->sb_locktable, 'x', 64);
	assert_int_equal(gfs2_sb_decode(block, 512, &out, why, sizeof(why)),
			 -EUCLEAN);
	assert_non_null(strstr(why, "lock table has no end"));
	disk->sb_locktable[63] = '\0';
	assert_int_equal(gfs2_sb_decode(block, 512, &out, why, sizeof(why)), 0);
	assert_int_equal(strlen(out.locktable), 63);
}

/* A sentence is cut, never written beyond its place. */
static void test_short_why(void **state)
{
	static const uint8_t zeroes[512];
	struct gfs2_sb_info out;
	char *why = new_block(8);

	gfs2_sb_decode(zeroes, 512, &out, why, 8);
	assert_string_equal(why, "not a G");
	free(why);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_round_trip),
		cmocka_unit_test(test_not_gfs2),
		cmocka_unit_test(test_wrong_block_type),
		cmocka_unit_test(test_formats),
		cmocka_unit_test(test_block_sizes),
		cmocka_unit_test(test_directories),
		cmocka_unit_test(test_names),
		cmocka_unit_test(test_short_why),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
