/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * test_vectors.c - bytes of real volumes, decoded and encoded again.
 * Source: docs/spec/gfs2-ondisk.md chapter 11, whose numbers these are.
 */
#include <ctype.h>
#include <errno.h>
#include <sys/stat.h>

#include "testing.h"

/* Digits with anything between them that is not a digit; returns bytes. */
static size_t from_hex(const char *text, uint8_t *out, size_t max)
{
	size_t nibbles = 0;

	for (; *text; text++) {
		if (!isxdigit((unsigned char)*text))
			continue;
		assert_true(nibbles / 2 < max);
		out[nibbles / 2] =
			(uint8_t)(out[nibbles / 2] << 4 |
				  (isdigit((unsigned char)*text)
					   ? *text - '0'
					   : tolower(*text) - 'a' + 10));
		nibbles++;
	}
	assert_int_equal(nibbles % 2, 0);
	return nibbles / 2;
}

static void test_name_hashes(void **state)
{
	char x255[255];
	static const struct {
		const char *name;
		uint32_t hash;
	} names[] = {
		{ ".", 0x0ed4e242 },
		{ "..", 0x9608161c },
		{ "a", 0xe8b7be43 },
		{ "foo", 0x8c736521 },
		{ "bar", 0x76ff8caa },
		{ "hello", 0x3610a686 },
		{ "lost+found", 0x6ab47928 },
		{ "README.md", 0x099368d6 },
		{ "small.txt", 0xc96712b2 },
		{ "123456789", 0xcbf43926 },
		{ "\xc3\xa9", 0x0e048d3e },
		{ "jindex", 0x5efc1d83 },
		{ "per_node", 0x486eee32 },
		{ "inum", 0x446811e9 },
		{ "statfs", 0x1aef248e },
		{ "rindex", 0xb1799d75 },
		{ "quota", 0x6c1c0fed },
		{ "journal0", 0xfc7745eb },
		{ "journal1", 0x8b70757d },
		{ "inum_range0", 0xe1fd87d0 },
		{ "statfs_change0", 0x0bbce579 },
		{ "quota_change0", 0x7df6519f },
	};

	for (size_t i = 0; i < UG_ARRAY_SIZE(names); i++)
		assert_int_equal(
			gfs2_name_hash(names[i].name,
				       (unsigned)strlen(names[i].name)),
			names[i].hash);
	memset(x255, 'x', sizeof(x255));
	assert_int_equal(gfs2_name_hash(x255, 255), 0x3d66e3d9);
	assert_int_equal(gfs2_hash_index(0x8c736521, 8), 0x8c);
	assert_int_equal(gfs2_hash_index(0x8c736521, 17), 0x8c736521 >> 15);
	assert_int_equal(gfs2_hash_index(0xffffffff, 0), 0);
}

static const char sb_hex[] =
	"01161970 00000001 00000000 00000000 00000064 00000000"
	"0000070a 0000076c 00000000 00001000 0000000c 00000000"
	"00000000 00000003 00000000 00000818 00000000 00000000"
	"00000000 00000000 00000000 00000010 00000000 00001230"
	"6c6f636b 5f6e6f6c 6f636b00 00000000";
static const char sb_tail_hex[] = "00000000 00000000 00000000 00000000"
				  "11111111 22223333 44445555 55555555";

static void test_superblock(void **state)
{
	uint8_t disk[512] = { 0 }, again[512];
	struct gfs2_sb_info sb;

	assert_int_equal(from_hex(sb_hex, disk, 112), 112);
	assert_int_equal(from_hex(sb_tail_hex, disk + 240, 32), 32);
	assert_int_equal(gfs2_sb_decode(disk, sizeof(disk), &sb, NULL, 0), 0);
	assert_int_equal(sb.fs_format, 1802);
	assert_int_equal(sb.bsize, 4096);
	assert_int_equal(sb.bsize_shift, 12);
	assert_int_equal(sb.master_formal, 3);
	assert_int_equal(sb.master_addr, 2072);
	assert_int_equal(sb.root_formal, 16);
	assert_int_equal(sb.root_addr, 4656);
	assert_string_equal(sb.lockproto, "lock_nolock");
	assert_string_equal(sb.locktable, "");
	assert_int_equal(sb.uuid[0], 0x11);
	assert_int_equal(sb.uuid[15], 0x55);

	memset(again, 0xff, sizeof(again));
	gfs2_sb_encode(&sb, again);
	assert_memory_equal(disk, again, sizeof(disk));
}

/* One line of the table of 11.3: group addresses, counters and checksums. */
static const struct {
	struct gfs2_rindex_info ri;
	uint32_t free, dinodes, skip, crc;
} groups[] = {
	{ { 17, 1, 18, 2056, 514 }, 0, 3, 2057, 0x2491348d },
	{ { 2074, 1, 2075, 2056, 514 }, 0, 3, 2057, 0x5740822b },
	{ { 4131, 4, 4135, 63464, 15866 }, 62942, 10, 63470, 0xe6043950 },
	{ { 67601, 4, 67605, 63464, 15866 }, 63464, 0, 0, 0xf2527010 },
};

static void test_fresh_groups(void **state)
{
	struct gfs2_geom geom = geom_of(4096);

	for (size_t i = 0; i < UG_ARRAY_SIZE(groups); i++) {
		const struct gfs2_rindex_info *ri = &groups[i].ri;
		struct gfs2_rgrp_info rg = {
			.free = groups[i].free,
			.dinodes = groups[i].dinodes,
			.skip = groups[i].skip,
			.data0 = ri->data0,
			.data = ri->data,
			.bitbytes = ri->bitbytes,
		};
		uint8_t block[128] = { 0 };
		uint8_t entry[96];
		struct gfs2_rindex_info back;
		struct gfs2_rgrp_info rg_back;

		gfs2_rgrp_encode(&rg, block);
		assert_int_equal(be32_get(((struct gfs2_rgrp *)block)->rg_crc),
				 groups[i].crc);
		assert_int_equal(gfs2_rgrp_decode(block, ri, &rg_back), 0);
		assert_memory_equal(&rg, &rg_back, sizeof(rg));

		gfs2_rindex_encode(ri, entry);
		assert_int_equal(gfs2_rindex_decode(&geom, entry, &back), 0);
		assert_same_rindex(ri, &back);
	}
}

static const char used_rgrp_hex[] =
	"01161970 00000002 00000000 00000000 000000c8 00000000"
	"00000000 0000edd3 00000407 0000f7ee 00000000 000003fe"
	"00000000 00001027 0000f7e8 00003dfa d8c8da80";

static void test_group_used_by_a_kernel(void **state)
{
	struct gfs2_geom geom = geom_of(4096);
	const struct gfs2_rindex_info *ri = &groups[2].ri;
	static const enum gfs2_blkst states[] = {
		GFS2_BLKST_DINODE, GFS2_BLKST_DINODE, GFS2_BLKST_USED,
		GFS2_BLKST_USED,   GFS2_BLKST_USED,
	};
	uint8_t block[4096] = { 0 }, again[4096];
	struct gfs2_rgrp_info rg;

	from_hex(used_rgrp_hex, block, 128);
	from_hex("5f555555", block + 128, 4);
	assert_int_equal(gfs2_rgrp_decode(block, ri, &rg), 0);
	assert_int_equal(rg.free, 60883);
	assert_int_equal(rg.dinodes, 1031);
	assert_int_equal(rg.igeneration, 1022);
	assert_int_equal(rg.skip, 63470);
	for (uint32_t n = 0; n < UG_ARRAY_SIZE(states); n++) {
		unsigned index, byte, shift;

		gfs2_rgrp_bitpos(&geom, n, &index, &byte, &shift);
		assert_int_equal(index, 0);
		assert_int_equal(gfs2_bitmap_get(block, byte, shift),
				 states[n]);
	}
	memcpy(again, block, sizeof(again));
	memset(again + 24, 0xaa, 40);
	gfs2_rgrp_encode(&rg, again);
	assert_memory_equal(block, again, sizeof(block));
}

static const char mkfs_lh_hex[] =
	"01161970 00000008 00000000 00000000 00000320 00000000"
	"00000000 000007ff 80000001 00000000 00000290 122e630b"
	"ad5e83d9 00000000 00000000 00000000 00000000 000002a8"
	"00000000 00000012 00000000 00000000 00000000 00000000"
	"00000000 00000000 00000000 00000000 00000000 00000000";
static const char kernel_lh_hex[] =
	"01161970 00000008 00000000 00000000 00000320 00000000"
	"00000000 00000806 00000101 000006d6 000006d6 bc0cedac"
	"f76f07d2 27665594 00000000 6b0d9631 00000000 000006ee"
	"00000000 00000012 00000000 00001027 00000000 00001028"
	"00000000 00000000 00000000 00000000 00000000 00000000";

static void check_lh(const char *hex, struct gfs2_lh_info *lh)
{
	struct gfs2_geom geom = geom_of(4096);
	uint8_t block[4096] = { 0 }, again[4096];

	assert_int_equal(from_hex(hex, block, 120), 120);
	assert_int_equal(gfs2_lh_decode(&geom, block, lh), 0);
	memset(again, 0xff, sizeof(again));
	gfs2_lh_encode(&geom, lh, again);
	assert_memory_equal(block, again, sizeof(block));
}

static void test_log_headers(void **state)
{
	struct gfs2_lh_info lh;

	check_lh(mkfs_lh_hex, &lh);
	assert_true(lh.v2);
	assert_int_equal(lh.sequence, 2047);
	assert_int_equal(lh.flags, 0x80000001);
	assert_int_equal(lh.blkno, 656);
	assert_int_equal(lh.addr, 680);
	assert_int_equal(lh.jinode, 18);

	check_lh(kernel_lh_hex, &lh);
	assert_int_equal(lh.sequence, 2054);
	assert_int_equal(lh.flags, 0x101);
	assert_int_equal(lh.tail, 1750);
	assert_int_equal(lh.statfs_addr, 4135);
	assert_int_equal(lh.quota_addr, 4136);
	assert_int_equal(lh.time.sec, 0x6b0d9631);
	assert_int_equal(lh.time.nsec, 0x27665594);
}

static const char root_entries_hex[] =
	"0000000000000010 0000000000001230 0ed4e242 0030 0001 0004 0000"
	"000000000000000000000000 2e00000000000000"
	"0000000000000010 0000000000001230 9608161c 0030 0002 0004 0000"
	"000000000000000000000000 2e2e000000000000"
	"0000000000000001 0000000000001231 a0b977e7 0030 0003 0004 0000"
	"000000000000000000000000 6c696e0000000000";

/* What a kernel wrote for ".", ".." and "lin" is what we write. */
static void test_directory_entries(void **state)
{
	const uint32_t len = 4096 - 232;
	uint8_t disk[144] = { 0 };
	uint8_t *area = new_block(len);

	assert_int_equal(from_hex(root_entries_hex, disk, 144), 144);
	gfs2_dirent_init_dir(area, len, 16, 0x1230, 16, 0x1230);
	assert_non_null(gfs2_dirent_insert(
		area, len, "lin", 3, gfs2_name_hash("lin", 3), 1, 0x1231, 4));
	/* One more entry, as on the volume, gives "lin" its smallest length. */
	assert_non_null(gfs2_dirent_insert(area, len, "x", 1, 0, 2, 3, 8));
	assert_memory_equal(area, disk, sizeof(disk));
	free(area);
}

/* Order and lengths of the records of a fresh master directory: 11.3. */
static void test_master_directory(void **state)
{
	static const char *const names[] = { "jindex", "per_node", "inum",
					     "statfs", "rindex",   "quota" };
	static const unsigned lens[] = { 48, 48, 48, 48, 48, 48, 48, 3528 };
	const uint32_t len = 4096 - 232;
	uint8_t *area = new_block(len);
	const struct gfs2_dirent *de;
	uint32_t off = 0;

	gfs2_dirent_init_dir(area, len, 3, 2072, 3, 2072);
	for (int i = 0; i < 6; i++) {
		unsigned n = (unsigned)strlen(names[i]);

		gfs2_dirent_insert(area, len, names[i], n,
				   gfs2_name_hash(names[i], n), 4, 2073, 4);
	}
	for (int i = 0; i < 8; i++) {
		assert_int_equal(gfs2_dirent_at(area, len, off, &de), 0);
		assert_int_equal(be16_get(de->de_rec_len), lens[i]);
		off += lens[i];
	}
	assert_int_equal(off, len);
	free(area);
}

static void test_leaf_header(void **state)
{
	static const char hex[] = "0003 0052 000004b0 0000000000000000"
				  "0000000000001298 00000001";
	struct gfs2_geom geom = geom_of(4096);
	uint8_t *block = new_block(4096), *again = new_block(4096);
	struct gfs2_leaf_info leaf;

	gfs2_meta_init(block, GFS2_METATYPE_LF);
	from_hex(hex, block + 24, 28);
	assert_int_equal(gfs2_leaf_decode(&geom, block, &leaf), 0);
	assert_int_equal(leaf.depth, 3);
	assert_int_equal(leaf.entries, 82);
	assert_int_equal(leaf.next, 0);
	assert_int_equal(leaf.inode, 4760);
	assert_int_equal(leaf.dist, 1);
	gfs2_leaf_encode(&leaf, again);
	assert_memory_equal(block, again, 4096);
	free(block);
	free(again);
}

/* rec_len data_len name_len type flags num_ptrs, then the name. */
static const struct {
	uint32_t off;
	const char *hex;
	const char *name;
} ea_records[] = {
	{ 24, "00000020 0000000a 05010000", "small" },
	{ 56, "00000030 00002710 03010003", "big" },
	{ 104, "00000028 00000014 02040000", "t1" },
	{ 144, "00000f70 00000014 02030100", "s1" },
};

static void test_attribute_block(void **state)
{
	struct gfs2_geom geom = geom_of(4096);
	uint8_t *block = new_block(4096);
	struct gfs2_ea_info ea;

	gfs2_ea_init(&geom, block);
	for (size_t i = 0; i < UG_ARRAY_SIZE(ea_records); i++) {
		uint8_t *rec = block + ea_records[i].off;

		from_hex(ea_records[i].hex, rec, 12);
		memcpy(rec + 16, ea_records[i].name,
		       strlen(ea_records[i].name));
	}
	assert_int_equal(gfs2_ea_check(&geom, block, 1802), 0);
	/* Type 4 is corruption on a volume of the older format: 1.4. */
	assert_int_equal(gfs2_ea_check(&geom, block, 1801), -EUCLEAN);

	assert_int_equal(gfs2_ea_at(&geom, block, 1802, 56, &ea), 0);
	assert_int_equal(ea.num_ptrs, 3);
	assert_int_equal(ea.data_len, 10000);
	assert_ptr_equal(ea.ptrs, block + 56 + 16 + 8);
	assert_int_equal(gfs2_ea_at(&geom, block, 1802, 144, &ea), 0);
	assert_true(ea.last);
	assert_memory_equal(ea.name, "s1", 2);
	assert_ptr_equal(ea.value, block + 144 + 16 + 2);
	free(block);
}

static void test_metadata_headers(void **state)
{
	static const struct {
		enum gfs2_metatype type;
		uint32_t format;
	} kinds[] = {
		{ 1, 100 },   { 2, 200 },   { 3, 300 },	  { 4, 400 },
		{ 5, 500 },   { 6, 600 },   { 7, 700 },	  { 8, 800 },
		{ 9, 900 },   { 10, 1600 }, { 11, 1700 }, { 12, 1000 },
		{ 14, 1400 },
	};
	struct gfs2_meta_header mh;

	for (size_t i = 0; i < UG_ARRAY_SIZE(kinds); i++) {
		memset(&mh, 0xff, sizeof(mh));
		gfs2_meta_init(&mh, kinds[i].type);
		assert_int_equal(be32_get(mh.mh_magic), 0x01161970);
		assert_int_equal(be32_get(mh.mh_type), kinds[i].type);
		assert_int_equal(be64_get(mh.__pad0), 0);
		assert_int_equal(be32_get(mh.mh_format), kinds[i].format);
		assert_int_equal(be32_get(mh.mh_jid), 0);
		for (uint32_t t = 0; t < 20; t++)
			assert_int_equal(gfs2_check_meta(&mh, t),
					 t == kinds[i].type ? 0 : -EUCLEAN);
		assert_int_equal(gfs2_meta_type(&mh), kinds[i].type);
		mh.mh_magic = be32_of(0x01161971);
		assert_int_equal(gfs2_check_meta(&mh, kinds[i].type), -EUCLEAN);
		assert_int_equal(gfs2_meta_type(&mh), GFS2_METATYPE_NONE);
	}
	mh.__pad0 = be64_of(7);
	gfs2_meta_set_jid(&mh, 3);
	assert_int_equal(be64_get(mh.__pad0), 0);
	assert_int_equal(be32_get(mh.mh_jid), 3);
	assert_string_equal(gfs2_metatype_name(4), "dinode");
	assert_string_equal(gfs2_metatype_name(13), "unknown block");
	assert_string_equal(gfs2_metatype_name(UINT32_MAX), "unknown block");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_name_hashes),
		cmocka_unit_test(test_superblock),
		cmocka_unit_test(test_fresh_groups),
		cmocka_unit_test(test_group_used_by_a_kernel),
		cmocka_unit_test(test_log_headers),
		cmocka_unit_test(test_directory_entries),
		cmocka_unit_test(test_master_directory),
		cmocka_unit_test(test_leaf_header),
		cmocka_unit_test(test_attribute_block),
		cmocka_unit_test(test_metadata_headers),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
