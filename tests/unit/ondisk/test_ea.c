/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * test_ea.c - attribute records: sizes, walking, every rule broken once.
 * Source: docs/spec/gfs2-ondisk.md 5.1, 5.2, 5.5.
 */
#include <errno.h>

#include "testing.h"

static struct gfs2_ea_header *ea_hdr(uint8_t *block, uint32_t off)
{
	return (struct gfs2_ea_header *)(block + off);
}

/* Two records at 24 and 64: "abc" with an inline value, "last" with ED. */
static void fill(uint8_t *block, const struct gfs2_geom *geom)
{
	gfs2_ea_init(geom, block);
	*ea_hdr(block, 24) = (struct gfs2_ea_header){
		.ea_rec_len = be32_of(40),
		.ea_data_len = be32_of(21),
		.ea_name_len = 3,
		.ea_type = GFS2_EATYPE_USR,
	};
	memcpy(block + 40, "abcVALUE", 8);
	*ea_hdr(block, 64) = (struct gfs2_ea_header){
		.ea_rec_len = be32_of(geom->bsize - 64),
		.ea_data_len = be32_of(2 * geom->jbsize),
		.ea_name_len = 4,
		.ea_type = GFS2_EATYPE_SECURITY,
		.ea_flags = GFS2_EAFLAG_LAST,
		.ea_num_ptrs = 2,
	};
	memcpy(block + 80, "last", 4);
}

static void test_walk(void **state)
{
	struct gfs2_geom geom = geom_of(512);
	uint8_t *block = new_block(512);
	struct gfs2_ea_info ea;

	fill(block, &geom);
	assert_int_equal(gfs2_ea_check(&geom, block, 1801), 0);
	assert_int_equal(gfs2_ea_at(&geom, block, 1801, GFS2_EA_FIRST_OFF, &ea),
			 0);
	assert_int_equal(ea.rec_len, 40);
	assert_int_equal(ea.data_len, 21);
	assert_false(ea.last);
	assert_null(ea.ptrs);
	assert_memory_equal(ea.name, "abc", ea.name_len);
	assert_memory_equal(ea.value, "VALUE", 5);
	assert_int_equal(gfs2_ea_at(&geom, block, 1801, 64, &ea), 0);
	assert_true(ea.last);
	assert_null(ea.value);
	assert_int_equal(ea.num_ptrs, 2);
	assert_ptr_equal(ea.ptrs, block + 64 + 16 + 8);
	free(block);
}

static void test_new_block(void **state)
{
	struct gfs2_geom geom = geom_of(2048);
	uint8_t *block = new_block(2048);
	struct gfs2_ea_info ea;

	memset(block, 0xff, 2048);
	gfs2_ea_init(&geom, block);
	assert_int_equal(gfs2_ea_check(&geom, block, 1801), 0);
	assert_int_equal(gfs2_ea_at(&geom, block, 1801, 24, &ea), 0);
	assert_int_equal(ea.type, GFS2_EATYPE_UNUSED);
	assert_int_equal(ea.rec_len, 2024);
	assert_true(ea.last);
	free(block);
}

/* Leftovers of a removed attribute are not looked at: 5.4. */
static void test_unused_leftovers(void **state)
{
	struct gfs2_geom geom = geom_of(512);
	uint8_t *block = new_block(512);
	struct gfs2_ea_info ea;

	fill(block, &geom);
	ea_hdr(block, 24)->ea_type = GFS2_EATYPE_UNUSED;
	ea_hdr(block, 24)->ea_name_len = 255;
	ea_hdr(block, 24)->ea_data_len = be32_of(UINT32_MAX);
	assert_int_equal(gfs2_ea_check(&geom, block, 1801), 0);
	assert_int_equal(gfs2_ea_at(&geom, block, 1801, 24, &ea), 0);
	assert_int_equal(ea.name_len, 0);
	assert_null(ea.name);
	free(block);
}

struct breakage {
	uint32_t off;  /* of the record */
	uint32_t byte; /* of the field within it */
	uint8_t len;
	uint32_t value;
};

static void test_every_rule(void **state)
{
	static const struct breakage cases[] = {
		{ 24, 0, 4, 0 },   /* rec_len 0 */
		{ 24, 0, 4, 15 },  /* smaller than a header */
		{ 24, 0, 4, 32 },  /* smaller than name and value */
		{ 24, 0, 4, 489 }, /* beyond the block */
		{ 24, 0, 4, UINT32_MAX },
		{ 24, 0, 4, 488 }, /* to the end, but not flagged last */
		{ 24, 4, 4, 22 },  /* value beyond the record */
		{ 24, 4, 4, UINT32_MAX },
		{ 24, 8, 1, 0 },     /* no name */
		{ 24, 8, 1, 4 },     /* name and value beyond the record */
		{ 24, 9, 1, 4 },     /* trusted, on the older format */
		{ 24, 9, 1, 5 },     /* no such type */
		{ 24, 10, 1, 1 },    /* last, but not at the end */
		{ 64, 10, 1, 0 },    /* at the end, but not last */
		{ 64, 0, 4, 440 },   /* last one stops short */
		{ 64, 4, 4, 977 },   /* more data than pointers */
		{ 64, 4, 4, 65537 }, /* more than any value */
		{ 64, 11, 1, 255 },  /* pointers beyond the record */
		{ 64, 11, 1, 0 },    /* inline, and beyond the record */
	};
	struct gfs2_geom geom = geom_of(512);
	uint8_t *block = new_block(512);

	for (size_t i = 0; i < UG_ARRAY_SIZE(cases); i++) {
		const struct breakage *c = &cases[i];
		be32 value = be32_of(c->value);

		fill(block, &geom);
		memcpy(block + c->off + c->byte, (uint8_t *)&value + 4 - c->len,
		       c->len);
		if (gfs2_ea_check(&geom, block, 1801) != -EUCLEAN)
			fail_msg("case %zu passed", i);
	}
	fill(block, &geom);
	gfs2_meta_init(block, GFS2_METATYPE_ED);
	assert_int_equal(gfs2_ea_check(&geom, block, 1801), -EUCLEAN);
	free(block);
}

static void test_offsets(void **state)
{
	struct gfs2_geom geom = geom_of(512);
	uint8_t *block = new_block(512);
	struct gfs2_ea_info ea;

	fill(block, &geom);
	assert_int_equal(gfs2_ea_at(&geom, block, 1801, 0, &ea), -EUCLEAN);
	for (uint32_t off = 497; off < 600; off++)
		assert_int_equal(gfs2_ea_at(&geom, block, 1801, off, &ea),
				 -EUCLEAN);
	assert_int_equal(gfs2_ea_at(&geom, block, 1801, UINT32_MAX, &ea),
			 -EUCLEAN);
	free(block);
}

static void test_sizes(void **state)
{
	struct gfs2_geom g4 = geom_of(4096), g05 = geom_of(512);
	uint32_t rec_len;
	unsigned ptrs;

	/* 11.7: "small" with 10 bytes, "big" with 10000. */
	assert_int_equal(gfs2_ea_size(&g4, 5, 10, &rec_len, &ptrs), 0);
	assert_int_equal(rec_len, 32);
	assert_int_equal(ptrs, 0);
	assert_int_equal(gfs2_ea_size(&g4, 3, 10000, &rec_len, &ptrs), 0);
	assert_int_equal(rec_len, 48);
	assert_int_equal(ptrs, 3);
	/* The largest inline value, and one byte more. */
	assert_int_equal(gfs2_ea_size(&g4, 3, 4072 - 19, &rec_len, &ptrs), 0);
	assert_int_equal(rec_len, 4072);
	assert_int_equal(ptrs, 0);
	assert_int_equal(gfs2_ea_size(&g4, 3, 4072 - 18, &rec_len, &ptrs), 0);
	assert_int_equal(ptrs, 1);
	assert_int_equal(gfs2_ea_size(&g4, 255, 65536, &rec_len, &ptrs), 0);
	assert_int_equal(ptrs, 17);
	assert_int_equal(gfs2_ea_size(&g4, 1, 65537, &rec_len, &ptrs), -ERANGE);
	assert_int_equal(gfs2_ea_size(&g4, 0, 1, &rec_len, &ptrs), -ERANGE);
	assert_int_equal(gfs2_ea_size(&g4, 256, 1, &rec_len, &ptrs), -ERANGE);
	assert_int_equal(gfs2_ea_size(&g05, 100, 65536, &rec_len, &ptrs),
			 -ERANGE);
	assert_int_equal(gfs2_ea_size(&g4, 1, 0, &rec_len, &ptrs), 0);
	assert_int_equal(rec_len, 24);
}

/* The vector of 11.7, made by inserting; and taken apart in another order. */
static void test_change(void **state)
{
	static const struct gfs2_ea_info eas[] = {
		{ .type = 1,
		  .name = "small",
		  .name_len = 5,
		  .data_len = 10,
		  .value = (const uint8_t *)"0123456789" },
		{ .type = 1,
		  .name = "big",
		  .name_len = 3,
		  .data_len = 10000,
		  .num_ptrs = 3 },
		{ .type = 4,
		  .name = "t1",
		  .name_len = 2,
		  .data_len = 20,
		  .value = (const uint8_t *)"01234567890123456789" },
		{ .type = 3,
		  .name = "s1",
		  .name_len = 2,
		  .data_len = 20,
		  .value = (const uint8_t *)"01234567890123456789" },
	};
	static const uint32_t offs[] = { 24, 56, 104, 144 };
	struct gfs2_geom geom = geom_of(4096);
	uint8_t *block = new_block(4096);
	struct gfs2_ea_info ea;
	uint32_t off, len;
	unsigned count;

	gfs2_ea_init(&geom, block);
	for (unsigned i = 0; i < 4; i++) {
		assert_int_equal(gfs2_ea_size(&geom, eas[i].name_len,
					      eas[i].data_len, &len, &count),
				 0);
		assert_true(gfs2_ea_room(block, len, &off));
		assert_int_equal(gfs2_ea_insert(block, off, &eas[i]), offs[i]);
		assert_int_equal(gfs2_ea_check(&geom, block, 1802), 0);
	}
	assert_int_equal(gfs2_ea_at(&geom, block, 1802, 144, &ea), 0);
	assert_true(ea.last);
	assert_int_equal(ea.rec_len, 3952);
	assert_memory_equal(ea.value, eas[3].value, 20);
	assert_int_equal(gfs2_ea_at(&geom, block, 1802, 56, &ea), 0);
	assert_int_equal(ea.rec_len, 48);
	assert_ptr_equal(gfs2_ea_ptrs(block, 56, &count), ea.ptrs);
	assert_int_equal(count, 3);
	assert_false(gfs2_ea_room(block, 3952 - 40 + 1, &off));

	/* In the middle, at the end, at the beginning. */
	gfs2_ea_remove(block, 104);
	assert_int_equal(gfs2_ea_at(&geom, block, 1802, 56, &ea), 0);
	assert_int_equal(ea.rec_len, 88);
	gfs2_ea_remove(block, 144);
	assert_int_equal(gfs2_ea_at(&geom, block, 1802, 56, &ea), 0);
	assert_true(ea.last);
	gfs2_ea_remove(block, 24);
	assert_int_equal(gfs2_ea_at(&geom, block, 1802, 24, &ea), 0);
	assert_int_equal(ea.type, GFS2_EATYPE_UNUSED);
	assert_int_equal(ea.rec_len, 32);
	assert_int_equal(gfs2_ea_check(&geom, block, 1802), 0);

	/* It leads to blocks, and so gives no room. */
	gfs2_ea_retire(block, 56);
	assert_true(gfs2_ea_room(block, 32, &off));
	assert_int_equal(off, 24);
	assert_false(gfs2_ea_room(block, 40, &off));
	assert_int_equal(gfs2_ea_check(&geom, block, 1802), 0);
	gfs2_ea_remove(block, 56);
	assert_int_equal(gfs2_ea_at(&geom, block, 1802, 24, &ea), 0);
	assert_int_equal(ea.rec_len, 4072);
	assert_true(ea.last);
	free(block);
}

static void test_hostile_bytes(void **state)
{
	struct gfs2_geom geom = geom_of(512);
	uint8_t *block = new_block(512);
	const struct gfs2_ea_info tiny = {
		.type = GFS2_EATYPE_USR,
		.name = "t",
		.name_len = 1,
	};
	struct ug_prng prng;
	unsigned passed = 0;

	ug_prng_seed(&prng, 10);
	for (int i = 0; i < 100000; i++) {
		struct gfs2_ea_info ea;

		fill(block, &geom);
		for (int j = 0; j < 3; j++)
			block[24 + ug_prng_below(&prng, 72)] =
				(uint8_t)ug_prng_u64(&prng);
		if (!gfs2_ea_check(&geom, block, 1802)) {
			uint32_t off;

			passed++;
			if (gfs2_ea_room(block, 24, &off))
				gfs2_ea_insert(block, off, &tiny);
			assert_int_equal(gfs2_ea_check(&geom, block, 1802), 0);
			gfs2_ea_remove(block, GFS2_EA_FIRST_OFF);
			assert_int_equal(gfs2_ea_check(&geom, block, 1802), 0);
		}
		gfs2_ea_at(&geom, block, 1802,
			   (uint32_t)ug_prng_below(&prng, 600), &ea);
	}
	assert_true(passed > 0);
	free(block);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_walk),
		cmocka_unit_test(test_new_block),
		cmocka_unit_test(test_unused_leftovers),
		cmocka_unit_test(test_every_rule),
		cmocka_unit_test(test_offsets),
		cmocka_unit_test(test_sizes),
		cmocka_unit_test(test_change),
		cmocka_unit_test(test_hostile_bytes),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
