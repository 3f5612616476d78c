/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * test_replay.c - replay of logs laid down by hand, good ones and bad ones.
 *
 * The logs are put together here block by block, after the specification, and
 * not by the journal, so that an error common to writer and reader is seen.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "block/fault.h"
#include "jtest.h"

#define BSIZE 4096u

struct fixture {
	struct jtest jt;
	struct blkdev *dev;
	struct fault *fault;
};

static int setup_with(void **state, uint32_t log_blocks, unsigned extents)
{
	struct fixture *f = calloc(1, sizeof(*f));
	struct blkdev *memory;

	jt_init(&f->jt, BSIZE, log_blocks, extents, 2000);
	assert_int_equal(
		blkdev_open_memory(jt_device_bytes(&f->jt), 512, &memory), 0);
	assert_int_equal(fault_open(memory, &f->fault, &f->dev), 0);
	f->jt.dev = f->dev;
	jt_format(&f->jt, f->dev, 0);
	*state = f;
	return 0;
}

/* The head of the fresh journal is the last block, 63, with that number. */
static int setup(void **state)
{
	return setup_with(state, 64, 1);
}

static int setup_2048(void **state)
{
	return setup_with(state, 2048, 3);
}

static int teardown(void **state)
{
	struct fixture *f = *state;

	jt_fini(&f->jt);
	blkdev_close(f->dev);
	free(f);
	return 0;
}

/* ---- laying down a log ------------------------------------------------- */

static uint64_t log_addr(struct fixture *f, uint32_t pos)
{
	uint32_t run;

	return logmap_addr(&f->jt.map, pos % f->jt.log_blocks, &run);
}

static void put_lh(struct fixture *f, uint32_t pos, uint64_t sequence,
		   uint32_t flags, uint32_t tail)
{
	uint8_t block[BSIZE];
	struct gfs2_lh_info lh = {
		.jid = JT_JID,
		.v2 = true,
		.sequence = sequence,
		.flags = flags,
		.tail = tail,
		.blkno = pos % f->jt.log_blocks,
		.addr = log_addr(f, pos),
		.jinode = JT_JINODE,
		.local_free = 251,
		.local_dinodes = 299,
	};

	gfs2_lh_encode(&f->jt.geom, &lh, block);
	jt_write_block(&f->jt, log_addr(f, pos), block);
}

/* A descriptor of n entries: test blocks first, first + 1, ... */
static void put_ld(struct fixture *f, uint32_t pos,
		   enum gfs2_log_desc_type type, uint32_t first, uint32_t n,
		   uint32_t escaped)
{
	uint8_t block[BSIZE];
	struct gfs2_ld_info ld = {
		.type = type,
		.length = gfs2_ld_length_for(&f->jt.geom, type, n),
		.data1 = n,
	};
	be64 *slot = gfs2_ld_slots(block);

	gfs2_ld_encode(&f->jt.geom, &ld, block);
	for (uint32_t i = 0; i < UG_MIN(n, f->jt.geom.ldptrs); i++) {
		*slot++ = be64_of(f->jt.meta_first + first + i);
		if (type == GFS2_LOG_DESC_JDATA)
			*slot++ = be64_of(i < escaped);
	}
	jt_write_block(&f->jt, log_addr(f, pos), block);
}

static void put_image(struct fixture *f, uint32_t pos, uint64_t value)
{
	uint8_t block[BSIZE] = { 0 };

	jt_fill(&f->jt, block, value);
	jt_write_block(&f->jt, log_addr(f, pos), block);
}

static void put_data(struct fixture *f, uint32_t pos, uint8_t byte,
		     bool escaped)
{
	uint8_t block[BSIZE];

	memset(block, byte, sizeof(block));
	if (escaped)
		memset(block, 0, 4);
	jt_write_block(&f->jt, log_addr(f, pos), block);
}

static int recover(struct fixture *f)
{
	return jt_recover(&f->jt, f->dev);
}

/* Refused, and not one byte written. */
static void check_refused(struct fixture *f)
{
	uint64_t writes = fault_seen(f->fault, LAYER_WRITE);

	assert_int_equal(recover(f), -EUCLEAN);
	assert_int_equal(fault_seen(f->fault, LAYER_WRITE), writes);
}

/* ---- the head ---------------------------------------------------------- */

static void test_head_of_fresh_journal(void **state)
{
	struct fixture *f = *state;

	for (uint64_t s = 0; s < 64; s++) {
		jt_format(&f->jt, f->dev, s);
		assert_int_equal(recover(f), 0);
		assert_true(f->jt.head.clean);
		assert_int_equal(f->jt.head.sequence, 63);
		assert_int_equal(f->jt.head.blkno, 63 - s);
	}
}

static void test_head_moves_on(void **state)
{
	struct fixture *f = *state;

	for (uint32_t n = 64; n < 300; n += 3) {
		put_data(f, n - 2, 0x11, false);
		put_data(f, n - 1, 0x11, false);
		put_lh(f, n, n, GFS2_LOG_HEAD_UNMOUNT, n % 64);
		assert_int_equal(recover(f), 0);
		assert_int_equal(f->jt.head.sequence, n);
		assert_int_equal(f->jt.head.blkno, n % 64);
	}
}

static void test_no_header(void **state)
{
	struct fixture *f = *state;

	for (uint32_t b = 0; b < 64; b++)
		put_data(f, b, 0x11, false);
	check_refused(f);
	/* A single one is a head. */
	put_lh(f, 7, 0, GFS2_LOG_HEAD_UNMOUNT, 7);
	assert_int_equal(recover(f), 0);
	assert_int_equal(f->jt.head.blkno, 7);
}

/* A header copied to another place, or damaged, is none. */
static void test_invalid_headers_do_not_count(void **state)
{
	struct fixture *f = *state;
	uint8_t block[BSIZE];

	put_lh(f, 0, 1000, 0, 0);
	jt_read_block(&f->jt, log_addr(f, 0), block);
	put_lh(f, 0, 64, GFS2_LOG_HEAD_UNMOUNT, 0);
	jt_write_block(&f->jt, log_addr(f, 5), block);
	put_lh(f, 1, 1000, 0, 0);
	jt_read_block(&f->jt, log_addr(f, 1), block);
	block[4000] ^= 1;
	jt_write_block(&f->jt, log_addr(f, 1), block);
	assert_int_equal(recover(f), 0);
	assert_int_equal(f->jt.head.sequence, 64);
}

static void test_headers_out_of_order(void **state)
{
	struct fixture *f = *state;

	put_lh(f, 20, 500, GFS2_LOG_HEAD_UNMOUNT, 20);
	put_lh(f, 40, 600, GFS2_LOG_HEAD_UNMOUNT, 40);
	check_refused(f);
	jt_format(&f->jt, f->dev, 0);
	/* The number of the head once more. */
	put_lh(f, 0, 63, GFS2_LOG_HEAD_UNMOUNT, 0);
	check_refused(f);
}

static void test_old_style_header(void **state)
{
	struct fixture *f = *state;
	struct gfs2_lh_info lh = {
		.sequence = 64,
		.flags = GFS2_LOG_HEAD_UNMOUNT,
	};
	uint8_t block[BSIZE];

	gfs2_lh_encode(&f->jt.geom, &lh, block);
	jt_write_block(&f->jt, log_addr(f, 0), block);
	assert_int_equal(recover(f), 0);
	assert_int_equal(f->jt.head.sequence, 64);
	assert_false(f->jt.head.v2);
}

static void test_mark_clean(void **state)
{
	struct fixture *f = *state;
	struct gfs2_lh_info lh;
	uint8_t block[BSIZE];

	put_lh(f, 0, 64, GFS2_LOG_HEAD_FLUSH_NORMAL, 0);
	assert_int_equal(recover(f), 0);
	jt_read_block(&f->jt, log_addr(f, 1), block);
	assert_int_equal(gfs2_lh_decode(&f->jt.geom, block, &lh), 0);
	assert_int_equal(lh.sequence, 65);
	assert_int_equal(lh.flags, 0x21);
	assert_int_equal(lh.tail, 0);
	assert_int_equal(lh.blkno, 1);
	assert_int_equal(lh.jid, JT_JID);
	assert_int_equal(lh.jinode, JT_JINODE);
	assert_int_equal(lh.addr, log_addr(f, 1));
	assert_int_equal(lh.local_free, 0);
	assert_int_equal(lh.statfs_addr, 0);
	assert_int_equal(recover(f), 0);
	assert_true(f->jt.head.clean);
	assert_int_equal(f->jt.head.blkno, 1);
}

/* ---- replay ------------------------------------------------------------ */

static void test_later_image_wins(void **state)
{
	struct fixture *f = *state;

	put_ld(f, 0, GFS2_LOG_DESC_METADATA, 5, 2, 0);
	put_image(f, 1, 10);
	put_image(f, 2, 11);
	put_lh(f, 3, 64, 0, 0);
	put_ld(f, 4, GFS2_LOG_DESC_METADATA, 6, 2, 0);
	put_image(f, 5, 20);
	put_image(f, 6, 21);
	put_lh(f, 7, 65, 0, 0);
	assert_int_equal(recover(f), 0);
	assert_int_equal(jt_on_device(&f->jt, 5), 10);
	assert_int_equal(jt_on_device(&f->jt, 6), 20);
	assert_int_equal(jt_on_device(&f->jt, 7), 21);
	assert_int_equal(f->jt.replayed.blocks_replayed, 3);
}

static void test_tail_is_respected(void **state)
{
	struct fixture *f = *state;

	put_ld(f, 0, GFS2_LOG_DESC_METADATA, 5, 1, 0);
	put_image(f, 1, 10);
	put_lh(f, 2, 64, 0, 0);
	put_lh(f, 3, 65, 0, 3);
	assert_int_equal(recover(f), 0);
	assert_int_equal(jt_on_device(&f->jt, 5), 0);
}

/* All four orders of image and revoke, and the ring's end between them. */
static void revoke_at(struct fixture *f, uint32_t start)
{
	jt_format(&f->jt, f->dev, (64 - start % 64) % 64);
	assert_int_equal(recover(f), 0);
	put_ld(f, start, GFS2_LOG_DESC_METADATA, 5, 2, 0);
	put_image(f, start + 1, 10);
	put_image(f, start + 2, 11);
	put_ld(f, start + 3, GFS2_LOG_DESC_REVOKE, 5, 1, 0);
	put_lh(f, start + 4, 64, 0, start % 64);
	put_ld(f, start + 5, GFS2_LOG_DESC_REVOKE, 6, 1, 0);
	put_ld(f, start + 6, GFS2_LOG_DESC_METADATA, 6, 1, 0);
	put_image(f, start + 7, 20);
	put_lh(f, start + 8, 65, 0, start % 64);
	jt_write_block(&f->jt, f->jt.meta_first + 5, (uint8_t[BSIZE]){ 0 });
	jt_write_block(&f->jt, f->jt.meta_first + 6, (uint8_t[BSIZE]){ 0 });
	assert_int_equal(recover(f), 0);
	assert_int_equal(f->jt.replayed.blocks_revoked, 2);
	assert_int_equal(jt_on_device(&f->jt, 5), 0);
	assert_int_equal(jt_on_device(&f->jt, 6), 20);
}

static void test_revokes(void **state)
{
	for (uint32_t start = 0; start < 64; start++)
		revoke_at(*state, start);
}

/* 736 revokes, as found in a kernel's log: 503 and 233. */
static void test_continued_revokes(void **state)
{
	struct fixture *f = *state;
	uint8_t block[BSIZE] = { 0 };

	put_ld(f, 0, GFS2_LOG_DESC_METADATA, 700, 20, 0);
	for (uint32_t i = 0; i < 20; i++)
		put_image(f, 1 + i, i + 1);
	put_ld(f, 21, GFS2_LOG_DESC_REVOKE, 0, 736, 0);
	gfs2_meta_init(block, GFS2_METATYPE_LB);
	for (uint32_t i = 0; i < 233; i++)
		gfs2_indirect_ptrs(block)[i] =
			be64_of(f->jt.meta_first + 503 + i);
	jt_write_block(&f->jt, log_addr(f, 22), block);
	put_lh(f, 23, 64, 0, 0);
	assert_int_equal(recover(f), 0);
	assert_int_equal(f->jt.replayed.revokes, 736);
	assert_int_equal(f->jt.replayed.blocks_revoked, 20);
	assert_int_equal(f->jt.replayed.blocks_replayed, 0);
}

/* The dirty journal of the specification's section 11.6, rebuilt. */
static void test_kernel_example(void **state)
{
	struct fixture *f = *state;
	uint8_t block[BSIZE];

	/* Numbers up to 2053 in front of the clean head. */
	for (uint32_t b = 0; b < 2048; b++)
		put_data(f, b, 0, false);
	put_lh(f, 1749, 2053, GFS2_LOG_HEAD_FLUSH_NORMAL, 1749);
	put_lh(f, 1750, 2054, 0x101, 1750);
	put_ld(f, 1751, GFS2_LOG_DESC_JDATA, 1000, 9, 4);
	for (uint32_t i = 0; i < 9; i++)
		put_data(f, 1752 + i, 0x77, i < 4);
	put_ld(f, 1761, GFS2_LOG_DESC_METADATA, 0, 317, 0);
	for (uint32_t i = 0; i < 317; i++)
		put_image(f, 1762 + i, i + 1);
	put_lh(f, 2048 + 31, 2055, 0x100002, 1751);
	put_ld(f, 2048 + 32, GFS2_LOG_DESC_REVOKE, 300, 1, 0);
	put_lh(f, 2048 + 33, 2056, 0x1002, 1751);

	assert_int_equal(recover(f), 0);
	assert_int_equal(f->jt.replayed.blocks_replayed, 325);
	assert_int_equal(f->jt.replayed.blocks_revoked, 1);
	for (uint32_t i = 0; i < 317; i++)
		assert_int_equal(jt_on_device(&f->jt, i), i == 300 ? 0 : i + 1);
	for (uint32_t i = 0; i < 9; i++) {
		const be32 magic = be32_of(GFS2_MAGIC);

		jt_read_block(&f->jt, f->jt.meta_first + 1000 + i, block);
		if (i < 4)
			assert_memory_equal(block, &magic, 4);
		else
			assert_int_equal(block[0], 0x77);
		assert_int_equal(block[4], 0x77);
		assert_int_equal(block[BSIZE - 1], 0x77);
	}
	assert_int_equal(f->jt.head.blkno, 34);
	assert_int_equal(f->jt.head.sequence, 2057);
}

/* The caller may go on with the statfs merge: images are durable by then. */
static void test_replay_is_durable(void **state)
{
	struct fixture *f = *state;
	struct replay_result result;
	uint64_t flushes;

	put_ld(f, 0, GFS2_LOG_DESC_METADATA, 5, 1, 0);
	put_image(f, 1, 10);
	put_lh(f, 2, 64, 0, 0);
	assert_int_equal(
		replay_scan(f->dev, BSIZE, &f->jt.map, "test", &f->jt.head), 0);
	flushes = fault_seen(f->fault, LAYER_FLUSH);
	assert_int_equal(replay_journal(f->dev, BSIZE, &f->jt.map,
					f->jt.fs_blocks, &f->jt.head, "test",
					&result),
			 0);
	assert_int_equal(fault_seen(f->fault, LAYER_FLUSH), flushes + 1);
}

static void test_replay_twice(void **state)
{
	struct fixture *f = *state;
	const struct fault_rule rule = { .ops = LAYER_WRITE, .pass = 1 };

	put_ld(f, 0, GFS2_LOG_DESC_METADATA, 5, 1, 0);
	put_image(f, 1, 10);
	put_ld(f, 2, GFS2_LOG_DESC_METADATA, 7, 1, 0);
	put_image(f, 3, 11);
	put_lh(f, 4, 64, 0, 0);
	fault_set(f->fault, &rule);
	assert_int_equal(recover(f), -EIO);
	fault_set(f->fault, NULL);
	assert_int_equal(recover(f), 0);
	assert_int_equal(jt_on_device(&f->jt, 5), 10);
	assert_int_equal(jt_on_device(&f->jt, 7), 11);
}

static void test_unknown_descriptor_is_skipped(void **state)
{
	struct fixture *f = *state;

	put_ld(f, 0, (enum gfs2_log_desc_type)305, 5, 2, 0);
	put_image(f, 1, 10);
	put_image(f, 2, 11);
	put_ld(f, 3, GFS2_LOG_DESC_METADATA, 7, 1, 0);
	put_image(f, 4, 12);
	put_lh(f, 5, 64, 0, 0);
	assert_int_equal(recover(f), 0);
	assert_int_equal(jt_on_device(&f->jt, 5), 0);
	assert_int_equal(jt_on_device(&f->jt, 7), 12);
}

/* ---- logs that must be refused ----------------------------------------- */

/* A good image first, which must not be written either. */
static void good_start(struct fixture *f)
{
	put_ld(f, 0, GFS2_LOG_DESC_METADATA, 5, 1, 0);
	put_image(f, 1, 10);
}

static void test_tail_outside(void **state)
{
	struct fixture *f = *state;

	good_start(f);
	put_lh(f, 2, 64, 0, 64);
	check_refused(f);
	put_lh(f, 2, 64, 0, UINT32_MAX);
	check_refused(f);
	/* Into the middle of images. */
	put_lh(f, 2, 64, 0, 1);
	check_refused(f);
}

static void test_descriptor_past_the_head(void **state)
{
	struct fixture *f = *state;

	good_start(f);
	put_ld(f, 2, GFS2_LOG_DESC_METADATA, 6, 3, 0);
	put_image(f, 3, 11);
	put_image(f, 4, 12);
	put_lh(f, 5, 64, 0, 0);
	check_refused(f);
	put_ld(f, 2, GFS2_LOG_DESC_REVOKE, 6, 503 + 509 * 40, 0);
	check_refused(f);
}

static void test_impossible_addresses(void **state)
{
	struct fixture *f = *state;
	const uint64_t bad[] = {
		0,
		f->jt.fs_blocks,
		UINT64_MAX,
		1ull << 52,
		JT_LOG_FIRST, /* the journal itself */
		JT_LOG_FIRST + 63,
	};

	for (size_t i = 0; i < UG_ARRAY_SIZE(bad); i++) {
		good_start(f);
		put_ld(f, 2, GFS2_LOG_DESC_METADATA,
		       (uint32_t)(bad[i] - f->jt.meta_first), 1, 0);
		/* The difference does not fit: put it there as it is. */
		uint8_t block[BSIZE];

		jt_read_block(&f->jt, log_addr(f, 2), block);
		gfs2_ld_slots(block)[0] = be64_of(bad[i]);
		jt_write_block(&f->jt, log_addr(f, 2), block);
		put_image(f, 3, 11);
		put_lh(f, 4, 64, 0, 0);
		check_refused(f);
	}
}

static void test_other_blocks_in_the_log(void **state)
{
	struct fixture *f = *state;

	good_start(f);
	put_image(f, 2, 11); /* not a descriptor */
	put_lh(f, 3, 64, 0, 0);
	check_refused(f);
	put_data(f, 2, 0x11, false);
	check_refused(f);
	/* A header of another place. */
	uint8_t block[BSIZE];

	jt_read_block(&f->jt, log_addr(f, 40), block);
	jt_write_block(&f->jt, log_addr(f, 2), block);
	check_refused(f);
}

static void test_image_without_magic(void **state)
{
	struct fixture *f = *state;

	good_start(f);
	put_ld(f, 2, GFS2_LOG_DESC_METADATA, 6, 1, 0);
	put_data(f, 3, 0x11, false);
	put_lh(f, 4, 64, 0, 0);
	check_refused(f);
}

static void test_broken_continuation(void **state)
{
	struct fixture *f = *state;

	good_start(f);
	put_ld(f, 2, GFS2_LOG_DESC_REVOKE, 0, 600, 0);
	put_image(f, 3, 11);
	put_lh(f, 4, 64, 0, 0);
	check_refused(f);
}

static void test_device_errors(void **state)
{
	struct fixture *f = *state;
	struct fault_rule rule = { .ops = LAYER_READ };
	uint64_t reads;

	good_start(f);
	put_lh(f, 2, 64, 0, 0);
	reads = fault_seen(f->fault, LAYER_READ);
	assert_int_equal(recover(f), 0);
	reads = fault_seen(f->fault, LAYER_READ) - reads;
	for (uint64_t i = 0; i < reads; i++) {
		jt_format(&f->jt, f->dev, 0);
		good_start(f);
		put_lh(f, 2, 64, 0, 0);
		rule.pass = i;
		fault_set(f->fault, &rule);
		assert_int_equal(recover(f), -EIO);
		fault_set(f->fault, NULL);
	}
}

#define T(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
#define T_2048(name) cmocka_unit_test_setup_teardown(name, setup_2048, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		T(test_head_of_fresh_journal),
		T(test_head_moves_on),
		T(test_no_header),
		T(test_invalid_headers_do_not_count),
		T(test_headers_out_of_order),
		T(test_old_style_header),
		T(test_mark_clean),
		T(test_later_image_wins),
		T(test_tail_is_respected),
		T(test_revokes),
		T(test_continued_revokes),
		T_2048(test_kernel_example),
		T(test_replay_is_durable),
		T(test_replay_twice),
		T(test_unknown_descriptor_is_skipped),
		T(test_tail_outside),
		T(test_descriptor_past_the_head),
		T(test_impossible_addresses),
		T(test_other_blocks_in_the_log),
		T(test_image_without_magic),
		T(test_broken_continuation),
		T(test_device_errors),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
