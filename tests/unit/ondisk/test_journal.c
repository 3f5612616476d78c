/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * test_journal.c - log headers and descriptors, statfs and quota records.
 * Source: docs/spec/gfs2-ondisk.md 7.2, 7.3, 6.8, 8.
 */
#include <errno.h>

#include "testing.h"

static struct gfs2_lh_info random_header(struct ug_prng *prng)
{
	return (struct gfs2_lh_info){
		.jid = (uint32_t)ug_prng_u64(prng),
		.v2 = true,
		.sequence = ug_prng_u64(prng),
		.flags = (uint32_t)ug_prng_u64(prng),
		.tail = (uint32_t)ug_prng_u64(prng),
		.blkno = (uint32_t)ug_prng_u64(prng),
		.time = { (int64_t)ug_prng_u64(prng),
			  (uint32_t)ug_prng_u64(prng) },
		.addr = ug_prng_u64(prng),
		.jinode = ug_prng_u64(prng),
		.statfs_addr = ug_prng_u64(prng),
		.quota_addr = ug_prng_u64(prng),
		.local_total = (int64_t)ug_prng_u64(prng),
		.local_free = (int64_t)ug_prng_u64(prng),
		.local_dinodes = (int64_t)ug_prng_u64(prng),
	};
}

static void check_same_header(const struct gfs2_lh_info *a,
			      const struct gfs2_lh_info *b)
{
	assert_int_equal(a->jid, b->jid);
	assert_int_equal(a->v2, b->v2);
	assert_int_equal(a->sequence, b->sequence);
	assert_int_equal(a->flags, b->flags);
	assert_int_equal(a->tail, b->tail);
	assert_int_equal(a->blkno, b->blkno);
	assert_int_equal(a->time.sec, b->time.sec);
	assert_int_equal(a->time.nsec, b->time.nsec);
	assert_int_equal(a->addr, b->addr);
	assert_int_equal(a->jinode, b->jinode);
	assert_int_equal(a->statfs_addr, b->statfs_addr);
	assert_int_equal(a->quota_addr, b->quota_addr);
	assert_int_equal(a->local_total, b->local_total);
	assert_int_equal(a->local_free, b->local_free);
	assert_int_equal(a->local_dinodes, b->local_dinodes);
}

static void test_header_round_trips(void **state)
{
	struct ug_prng prng;

	for (uint64_t seed = 0; seed < 2000; seed++) {
		struct gfs2_geom geom = geom_of(512u << seed % 4);
		struct gfs2_lh_info lh, back;
		uint8_t *block = new_block(geom.bsize);

		ug_prng_seed(&prng, seed);
		lh = random_header(&prng);
		memset(block, 0xff, geom.bsize);
		gfs2_lh_encode(&geom, &lh, block);
		assert_int_equal(gfs2_lh_decode(&geom, block, &back), 0);
		check_same_header(&lh, &back);
		free(block);
	}
}

/* A change of any one bit makes it a block that is no log header. */
static void test_header_every_bit_counts(void **state)
{
	struct gfs2_geom geom = geom_of(512);
	uint8_t *block = new_block(512);
	struct gfs2_lh_info lh, back;
	struct ug_prng prng;

	ug_prng_seed(&prng, 9);
	lh = random_header(&prng);
	gfs2_lh_encode(&geom, &lh, block);
	for (unsigned bit = 0; bit < 512 * 8; bit++) {
		block[bit / 8] ^= (uint8_t)(1 << bit % 8);
		assert_int_equal(gfs2_lh_decode(&geom, block, &back), -EUCLEAN);
		block[bit / 8] ^= (uint8_t)(1 << bit % 8);
	}
	assert_int_equal(gfs2_lh_decode(&geom, block, &back), 0);
	free(block);
}

/* As fsck writes them: 7.3, last paragraph. */
static void test_old_style_header(void **state)
{
	struct gfs2_geom geom = geom_of(1024);
	uint8_t *block = new_block(1024);
	struct gfs2_lh_info lh = { .sequence = 9, .flags = 1, .blkno = 3 };
	struct gfs2_lh_info back;

	memset(block, 0xff, 1024);
	lh.local_free = 77; /* must neither be written nor read */
	gfs2_lh_encode(&geom, &lh, block);
	for (unsigned i = 48; i < 1024; i++)
		assert_int_equal(block[i], 0);
	assert_int_equal(gfs2_lh_decode(&geom, block, &back), 0);
	assert_false(back.v2);
	assert_int_equal(back.sequence, 9);
	assert_int_equal(back.local_free, 0);
	/* Whatever stands where the new fields would be means nothing. */
	memset(block + 52, 0xee, 1024 - 52);
	assert_int_equal(gfs2_lh_decode(&geom, block, &back), 0);
	assert_int_equal(back.local_free, 0);
	assert_int_equal(back.time.sec, 0);
	free(block);
}

static void check_ld(const struct gfs2_geom *geom, uint32_t type,
		     uint32_t length, uint32_t data1, int err)
{
	struct gfs2_ld_info ld = { type, length, data1 };
	struct gfs2_ld_info back = { .type = 42 };
	uint8_t *block = new_block(geom->bsize);

	memset(block, 0xff, geom->bsize);
	gfs2_ld_encode(geom, &ld, block);
	assert_int_equal(gfs2_ld_decode(geom, block, &back), err);
	assert_int_equal(back.type, err ? 42 : type);
	for (unsigned i = 72; i < geom->bsize; i++)
		assert_int_equal(block[i], 0);
	assert_ptr_equal(gfs2_ld_slots(block), block + 72);
	free(block);
}

static void test_descriptor_bounds(void **state)
{
	struct gfs2_geom geom = geom_of(4096);

	check_ld(&geom, GFS2_LOG_DESC_METADATA, 504, 503, 0);
	check_ld(&geom, GFS2_LOG_DESC_METADATA, 505, 504, -EUCLEAN);
	check_ld(&geom, GFS2_LOG_DESC_METADATA, 503, 503, -EUCLEAN);
	check_ld(&geom, GFS2_LOG_DESC_METADATA, 0, UINT32_MAX, -EUCLEAN);
	check_ld(&geom, GFS2_LOG_DESC_JDATA, 252, 251, 0);
	check_ld(&geom, GFS2_LOG_DESC_JDATA, 253, 252, -EUCLEAN);
	check_ld(&geom, GFS2_LOG_DESC_REVOKE, 1, 503, 0);
	check_ld(&geom, GFS2_LOG_DESC_REVOKE, 2, 736, 0); /* 7.2 */
	check_ld(&geom, GFS2_LOG_DESC_REVOKE, 2, 503 + 509, 0);
	check_ld(&geom, GFS2_LOG_DESC_REVOKE, 2, 503 + 510, -EUCLEAN);
	check_ld(&geom, GFS2_LOG_DESC_REVOKE, 1, UINT32_MAX, -EUCLEAN);
	check_ld(&geom, 303, 7, UINT32_MAX, 0); /* skipped by readers */
	check_ld(&geom, 303, 0, 0, -EUCLEAN);	/* would never end */
}

static void test_descriptor_lengths(void **state)
{
	struct gfs2_geom geom = geom_of(512);

	assert_int_equal(gfs2_ld_length_for(&geom, GFS2_LOG_DESC_METADATA, 5),
			 6);
	assert_int_equal(gfs2_ld_length_for(&geom, GFS2_LOG_DESC_JDATA, 5), 6);
	assert_int_equal(gfs2_ld_length_for(&geom, GFS2_LOG_DESC_REVOKE, 55),
			 1);
	assert_int_equal(gfs2_ld_length_for(&geom, GFS2_LOG_DESC_REVOKE, 56),
			 2);
	assert_int_equal(
		gfs2_ld_length_for(&geom, GFS2_LOG_DESC_REVOKE, 55 + 61 + 1),
		3);
}

static void test_descriptor_is_not_a_header(void **state)
{
	struct gfs2_geom geom = geom_of(512);
	struct gfs2_ld_info ld = { GFS2_LOG_DESC_METADATA, 2, 1 };
	struct gfs2_lh_info lh;
	uint8_t *block = new_block(512);

	gfs2_ld_encode(&geom, &ld, block);
	assert_int_equal(gfs2_lh_decode(&geom, block, &lh), -EUCLEAN);
	gfs2_meta_init(block, GFS2_METATYPE_LB);
	assert_int_equal(gfs2_ld_decode(&geom, block, &ld), -EUCLEAN);
	free(block);
}

static void test_statfs(void **state)
{
	struct gfs2_statfs_info sc = { 131040, -126406, INT64_MIN }, back;
	uint8_t entry[24];

	gfs2_statfs_encode(&sc, entry);
	assert_memory_equal(entry, "\0\0\0\0\0\1\xff\xe0", 8);
	assert_memory_equal(entry + 16, "\x80\0\0\0\0\0\0\0", 8);
	gfs2_statfs_decode(entry, &back);
	assert_memory_equal(&sc, &back, sizeof(sc));
}

static void test_quota(void **state)
{
	struct gfs2_quota_info qu = { 100, 90, -5 }, qu_back;
	struct gfs2_quota_change_info qc = { -7, GFS2_QCF_USER, 1000 }, qc_back;
	uint8_t entry[88], slot[16];

	memset(entry, 0xaa, sizeof(entry));
	gfs2_quota_encode(&qu, entry);
	assert_memory_equal(entry,
			    "\0\0\0\0\0\0\0\x64\0\0\0\0\0\0\0\x5a"
			    "\xff\xff\xff\xff\xff\xff\xff\xfb",
			    24);
	assert_int_equal(entry[24], 0xaa);
	gfs2_quota_decode(entry, &qu_back);
	assert_memory_equal(&qu, &qu_back, sizeof(qu));

	gfs2_quota_change_encode(&qc, slot);
	assert_memory_equal(slot,
			    "\xff\xff\xff\xff\xff\xff\xff\xf9"
			    "\0\0\0\1\0\0\3\xe8",
			    16);
	gfs2_quota_change_decode(slot, &qc_back);
	assert_memory_equal(&qc, &qc_back, sizeof(qc));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_header_round_trips),
		cmocka_unit_test(test_header_every_bit_counts),
		cmocka_unit_test(test_old_style_header),
		cmocka_unit_test(test_descriptor_bounds),
		cmocka_unit_test(test_descriptor_lengths),
		cmocka_unit_test(test_descriptor_is_not_a_header),
		cmocka_unit_test(test_statfs),
		cmocka_unit_test(test_quota),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
