/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * test_rgrp.c - group geometry, headers, and bitmaps against an array with a
 * state per block. Source: docs/spec/gfs2-ondisk.md 6.1, 6.2.
 */
#include <errno.h>

#include "testing.h"

/* Every total from the smallest up: the group is sound and fits its place. */
static void test_layout_of_any_length(void **state)
{
	for (uint32_t bsize = 512; bsize <= 4096; bsize *= 2) {
		struct gfs2_geom geom = geom_of(bsize);

		for (uint32_t total = 5; total < 20000; total++) {
			struct gfs2_rindex_info ri, back;
			uint8_t entry[96];
			uint64_t end;

			assert_int_equal(
				gfs2_rgrp_layout(&geom, 99, total, &ri), 0);
			end = ri.data0 + ri.data;
			assert_true(end <= 99 + (uint64_t)total);
			gfs2_rindex_encode(&ri, entry);
			assert_int_equal(
				gfs2_rindex_decode(&geom, entry, &back), 0);
			assert_same_rindex(&ri, &back);
		}
	}
}

static void test_layout_known_cases(void **state)
{
	struct gfs2_geom geom = geom_of(4096);
	struct gfs2_rindex_info ri;

	for (uint32_t total = 0; total < 5; total++)
		assert_int_equal(gfs2_rgrp_layout(&geom, 1, total, &ri),
				 -EINVAL);
	/* 6.2: 63470 blocks gave 4 + 63464. */
	assert_int_equal(gfs2_rgrp_layout(&geom, 4131, 63470, &ri), 0);
	assert_int_equal(ri.length, 4);
	assert_int_equal(ri.data0, 4135);
	assert_int_equal(ri.data, 63464);
	/* 10.3: a grown volume had 3 + 48124. */
	assert_int_equal(gfs2_rgrp_layout(&geom, 131070, 48130, &ri), 0);
	assert_int_equal(ri.length, 3);
	assert_int_equal(ri.data, 48124);
	assert_int_equal(gfs2_rgrp_layout(&geom, 1, UINT32_MAX, &ri), 0);
}

static void test_length_for(void **state)
{
	struct gfs2_geom geom = geom_of(4096);

	assert_int_equal(gfs2_rgrp_length_for(&geom, 4), 1);
	assert_int_equal(gfs2_rgrp_length_for(&geom, 15872), 1);
	assert_int_equal(gfs2_rgrp_length_for(&geom, 15876), 2);
	assert_int_equal(gfs2_rgrp_length_for(&geom, 15872 + 16288), 2);
	assert_int_equal(gfs2_rgrp_length_for(&geom, 15876 + 16288), 3);
	assert_int_equal(gfs2_rgrp_length_for(&geom, UINT32_MAX), 263690);
}

static const struct gfs2_rindex_info good = { 17, 2, 19, 16000, 4000 };

static void check_rindex(const struct gfs2_rindex_info *ri, int err)
{
	struct gfs2_geom geom = geom_of(4096);
	struct gfs2_rindex_info out = { .addr = 42 };
	uint8_t entry[96];

	gfs2_rindex_encode(ri, entry);
	/* Padding and reserved bytes may hold anything: 2.3. */
	memset(entry + 12, 0xff, 4);
	memset(entry + 32, 0xff, 64);
	assert_int_equal(gfs2_rindex_decode(&geom, entry, &out), err);
	assert_int_equal(out.addr, err ? 42 : ri->addr);
}

#define WITH(field, value)                          \
	({                                          \
		struct gfs2_rindex_info ri_ = good; \
		ri_.field = value;                  \
		ri_;                                \
	})

static void test_rindex_relations(void **state)
{
	struct gfs2_rindex_info ri = good;

	check_rindex(&ri, 0);
	ri = WITH(addr, 18);
	check_rindex(&ri, -EUCLEAN);
	ri = WITH(addr, 0);
	check_rindex(&ri, -EUCLEAN);
	ri = WITH(data0, 20);
	check_rindex(&ri, -EUCLEAN);
	ri = WITH(bitbytes, 4001);
	check_rindex(&ri, -EUCLEAN);
	ri = WITH(data, 16001);
	check_rindex(&ri, -EUCLEAN);
	ri = (struct gfs2_rindex_info){ 17, 1, 18, 0, 0 };
	check_rindex(&ri, -EUCLEAN);
	ri = (struct gfs2_rindex_info){ 17, 1, 18, 16000, 4000 };
	check_rindex(&ri, -EUCLEAN); /* one bitmap block is too few */
	ri = (struct gfs2_rindex_info){ 17, 3, 20, 16000, 4000 };
	check_rindex(&ri, -EUCLEAN); /* the last one would be empty */
	ri = WITH(addr, UINT64_MAX - 1);
	ri.data0 = 0;
	check_rindex(&ri, -EUCLEAN); /* wraps around */
	ri.addr = UINT64_MAX >> 12;
	ri.data0 = ri.addr + 2;
	check_rindex(&ri, -EUCLEAN); /* ends beyond the last byte */
}

static void test_header_checks(void **state)
{
	struct gfs2_rgrp_info rg = { .free = 15000, .dinodes = 1000 }, out;
	struct gfs2_rgrp *disk;
	uint8_t *block = new_block(512);

	disk = (struct gfs2_rgrp *)block;
	gfs2_rgrp_encode(&rg, block);
	assert_int_equal(gfs2_rgrp_decode(block, &good, &out), 0);
	rg.dinodes = 1001;
	gfs2_rgrp_encode(&rg, block);
	assert_int_equal(gfs2_rgrp_decode(block, &good, &out), -EUCLEAN);
	rg.free = UINT32_MAX;
	gfs2_rgrp_encode(&rg, block);
	assert_int_equal(gfs2_rgrp_decode(block, &good, &out), -EUCLEAN);

	rg.free = 1;
	gfs2_rgrp_encode(&rg, block);
	disk->rg_free = be32_of(2);
	assert_int_equal(gfs2_rgrp_decode(block, &good, &out), -EUCLEAN);
	gfs2_rgrp_seal(block);
	assert_int_equal(gfs2_rgrp_decode(block, &good, &out), 0);
	assert_int_equal(out.free, 2);
	disk->rg_free = be32_of(3);
	disk->rg_crc = be32_of(0); /* 0 means "not recorded": 1.5 */
	assert_int_equal(gfs2_rgrp_decode(block, &good, &out), 0);
	gfs2_meta_init(block, GFS2_METATYPE_RB);
	assert_int_equal(gfs2_rgrp_decode(block, &good, &out), -EUCLEAN);
	free(block);
}

/* Trap 2: the checksum covers the header as it goes to the disk. */
static void test_seal_covers_jid(void **state)
{
	struct gfs2_rgrp_info rg = { .free = 1 }, out;
	uint8_t *block = new_block(512);

	memset(block, 0x77, 512);
	gfs2_rgrp_encode(&rg, block);
	assert_int_equal(gfs2_rgrp_decode(block, &good, &out), 0);
	gfs2_meta_set_jid(block, 5);
	assert_int_equal(gfs2_rgrp_decode(block, &good, &out), -EUCLEAN);
	gfs2_rgrp_seal(block);
	assert_int_equal(gfs2_rgrp_decode(block, &good, &out), 0);
	for (unsigned i = 68; i < 512; i++)
		assert_int_equal(block[i], 0x77);
	free(block);
}

/*
 * A group's blocks in memory, set bit by bit through gfs2_rgrp_bitpos(), read
 * back by every other way.
 */
static void check_bitmap(uint32_t bsize, uint32_t total, uint64_t seed)
{
	struct gfs2_geom geom = geom_of(bsize);
	struct gfs2_rindex_info ri;
	struct ug_prng prng;
	uint8_t *blocks, *states;
	uint32_t counts[4] = { 0 }, seen = 0;

	ug_prng_seed(&prng, seed);
	assert_int_equal(gfs2_rgrp_layout(&geom, 50, total, &ri), 0);
	blocks = new_block((size_t)ri.length * bsize);
	states = new_block(ri.data);
	for (uint32_t n = 0; n < ri.data; n++) {
		unsigned index, byte, shift;

		states[n] = (uint8_t)ug_prng_below(&prng, 4);
		counts[states[n]]++;
		gfs2_rgrp_bitpos(&geom, n, &index, &byte, &shift);
		assert_true(index < ri.length);
		assert_true(byte < bsize);
		gfs2_bitmap_set(blocks + (size_t)index * bsize, byte, shift,
				states[n]);
	}
	for (unsigned i = 0; i < ri.length; i++) {
		const uint8_t *block = blocks + (size_t)i * bsize;
		uint32_t first, count, found;
		unsigned start;

		gfs2_rgrp_bitmap_span(&geom, &ri, i, &start, &first, &count);
		assert_int_equal(first, seen);
		assert_true(count > 0);
		assert_true(start + UG_DIV_UP(count, 4u) <= bsize);
		seen += count;
		for (unsigned s = 0; s < 4; s++) {
			found = gfs2_bitmap_count(block + start, count, s);
			assert_true(found <= counts[s]);
			counts[s] -= found;
		}
		for (uint32_t n = 0; n < count; n++)
			assert_int_equal(gfs2_bitmap_get(block, start + n / 4,
							 n % 4 * 2),
					 states[first + n]);
		/* Nothing outside the map was touched. */
		for (unsigned b = 0; b < start; b++)
			assert_int_equal(block[b], 0);
	}
	assert_int_equal(seen, ri.data);
	for (unsigned s = 0; s < 4; s++)
		assert_int_equal(counts[s], 0);
	free(blocks);
	free(states);
}

static void test_bitmaps(void **state)
{
	uint64_t seed = 0;

	for (uint32_t bsize = 512; bsize <= 4096; bsize *= 2) {
		check_bitmap(bsize, 5, seed++);
		check_bitmap(bsize, 1000, seed++);
		check_bitmap(bsize, 4 * (bsize - 128) + 1, seed++);
		check_bitmap(bsize, 4 * (bsize - 128) + 6, seed++);
		check_bitmap(bsize, 60001, seed++);
	}
}

static void test_find(void **state)
{
	struct ug_prng prng;

	ug_prng_seed(&prng, 8);
	for (int round = 0; round < 300; round++) {
		uint32_t count = 1 + (uint32_t)ug_prng_below(&prng, 200);
		uint8_t *bits = new_block(UG_DIV_UP(count, 4u));

		/* Sparse, so that finds cross several words. */
		for (int i = 0; i < 3; i++) {
			uint32_t n = (uint32_t)ug_prng_below(&prng, count);

			gfs2_bitmap_set(
				bits, n / 4, n % 4 * 2,
				(enum gfs2_blkst)ug_prng_below(&prng, 4));
		}
		for (unsigned s = 0; s < 4; s++)
			for (uint32_t from = 0; from <= count; from++) {
				uint32_t n = from;

				while (n < count &&
				       gfs2_bitmap_get(bits, n / 4,
						       n % 4 * 2) != s)
					n++;
				assert_int_equal(
					gfs2_bitmap_find(bits, from, count, s),
					n);
			}
		assert_int_equal(gfs2_bitmap_find(bits, UINT32_MAX, count, 0),
				 count);
		free(bits);
	}
	assert_int_equal(gfs2_bitmap_count(NULL, 0, GFS2_BLKST_FREE), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_layout_of_any_length),
		cmocka_unit_test(test_layout_known_cases),
		cmocka_unit_test(test_length_for),
		cmocka_unit_test(test_rindex_relations),
		cmocka_unit_test(test_header_checks),
		cmocka_unit_test(test_seal_covers_jid),
		cmocka_unit_test(test_bitmaps),
		cmocka_unit_test(test_find),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
