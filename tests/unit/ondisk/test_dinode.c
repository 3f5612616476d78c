/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * test_dinode.c - round trips, every bound, what the encoder leaves alone.
 * Source: docs/spec/gfs2-ondisk.md 3.1.
 */
#include <errno.h>
#include <sys/stat.h>

#include "testing.h"

static const struct gfs2_dinode_info good_file = {
	.formal = 7,
	.addr = 1000,
	.mode = S_IFREG | 0644,
	.nlink = 1,
	.size = 3000000,
	.blocks = 736,
	.height = 2,
	.goal_meta = 1000,
	.goal_data = 1000,
};

static const struct gfs2_dinode_info good_exhash = {
	.formal = 8,
	.addr = 1000,
	.mode = S_IFDIR | 0755,
	.nlink = 2,
	.size = 2048,
	.blocks = 15,
	.flags = GFS2_DIF_JDATA | GFS2_DIF_EXHASH,
	.depth = 8,
	.entries = 1002,
};

static void check_same(const struct gfs2_dinode_info *a,
		       const struct gfs2_dinode_info *b)
{
#define SAME(field) assert_int_equal(a->field, b->field)
	SAME(formal);
	SAME(addr);
	SAME(mode);
	SAME(uid);
	SAME(gid);
	SAME(nlink);
	SAME(size);
	SAME(blocks);
	SAME(atime.sec);
	SAME(atime.nsec);
	SAME(mtime.sec);
	SAME(mtime.nsec);
	SAME(ctime.sec);
	SAME(ctime.nsec);
	SAME(rdev_major);
	SAME(rdev_minor);
	SAME(goal_meta);
	SAME(goal_data);
	SAME(generation);
	SAME(flags);
	SAME(payload_format);
	SAME(height);
	SAME(depth);
	SAME(entries);
	SAME(eattr);
#undef SAME
}

static int decode(const struct gfs2_dinode_info *di, char *why, size_t len)
{
	struct gfs2_geom geom = geom_of(4096);
	struct gfs2_dinode_info out = { .addr = 42 };
	uint8_t *block = new_block(4096);
	int err;

	gfs2_dinode_encode(di, block);
	err = gfs2_dinode_decode(&geom, block, 1000, &out, why, len);
	if (err)
		assert_int_equal(out.addr, 42);
	else
		check_same(&out, di);
	free(block);
	return err;
}

static void check_refused(const struct gfs2_dinode_info *di, const char *words)
{
	char why[256] = "";

	assert_int_equal(decode(di, why, sizeof(why)), -EUCLEAN);
	if (!strstr(why, words))
		fail_msg("expected \"%s\" in \"%s\"", words, why);
}

#define WITH(base, field, value)                      \
	({                                            \
		struct gfs2_dinode_info di_ = (base); \
		di_.field = value;                    \
		di_;                                  \
	})

static void test_round_trips(void **state)
{
	static const uint32_t types[] = { S_IFREG, S_IFLNK, S_IFCHR,
					  S_IFBLK, S_IFIFO, S_IFSOCK };
	struct ug_prng prng;

	ug_prng_seed(&prng, 5);
	for (int i = 0; i < 5000; i++) {
		struct gfs2_dinode_info di;

		fill_random(&prng, &di, sizeof(di));
		di.addr = 1000;
		di.mode = types[di.mode % 6] | (di.mode & 07777);
		di.size >>= 1;
		di.flags &= ~GFS2_DIF_EXHASH;
		di.height = (uint16_t)(1 + di.height % 6);
		di.depth %= 18;
		assert_int_equal(decode(&di, NULL, 0), 0);
	}
}

static void test_file_bounds(void **state)
{
	struct gfs2_dinode_info di = good_file;

	assert_int_equal(decode(&di, NULL, 0), 0);
	di.addr = 1001;
	check_refused(&di, "at block 1000: its own address is given as 1001");
	di = WITH(good_file, height, 6);
	assert_int_equal(decode(&di, NULL, 0), 0);
	di.height = 7;
	check_refused(&di, "height is 7, expected at most 6");
	di = WITH(good_file, size, INT64_MAX);
	assert_int_equal(decode(&di, NULL, 0), 0);
	di.size++;
	check_refused(&di, "size is 9223372036854775808");
	di = WITH(good_file, height, 0);
	di.size = 3864;
	assert_int_equal(decode(&di, NULL, 0), 0);
	di.size = 3865;
	check_refused(&di, "size is 3865 with no pointers, expected at most "
			   "3864");
	di = WITH(good_file, mode, 0644);
	check_refused(&di, "mode is 0000644");
	di.mode = S_IFREG | S_IFIFO;
	check_refused(&di, "no type of file");
}

static void test_directory_bounds(void **state)
{
	struct gfs2_dinode_info di = good_exhash;

	assert_int_equal(decode(&di, NULL, 0), 0);
	di.depth = 7;
	di.size = 1024;
	check_refused(&di, "depth is 7, expected at least 8");
	di = WITH(good_exhash, size, 4096);
	di.height = 1;
	check_refused(&di, "size is 4096, expected 2048 for a hash table of "
			   "depth 8");
	di.depth = 9;
	assert_int_equal(decode(&di, NULL, 0), 0);
	di.depth = 17;
	di.size = 8 << 17;
	assert_int_equal(decode(&di, NULL, 0), 0);
	di.depth = 18;
	di.size = 8 << 18;
	check_refused(&di, "depth is 18, expected at most 17");
	di = WITH(good_exhash, mode, S_IFREG | 0644);
	check_refused(&di, "has a hash table, but mode 0100644");
	di = WITH(good_exhash, flags, GFS2_DIF_JDATA);
	di.height = 1;
	check_refused(&di, "directory of height 1 without a hash table");
}

static void test_other_blocks(void **state)
{
	struct gfs2_geom geom = geom_of(512);
	struct gfs2_dinode_info out;
	uint8_t *block = new_block(512);
	char why[128];

	assert_int_equal(
		gfs2_dinode_decode(&geom, block, 5, &out, why, sizeof(why)),
		-EUCLEAN);
	assert_string_equal(why, "block 5: no metadata, expected a dinode");
	gfs2_meta_init(block, GFS2_METATYPE_IN);
	assert_int_equal(
		gfs2_dinode_decode(&geom, block, 5, &out, why, sizeof(why)),
		-EUCLEAN);
	assert_string_equal(why, "block 5: type is 5 (indirect block), "
				 "expected a dinode");
	free(block);
}

/* jid, reserved bytes and payload belong to others. */
static void test_encoder_leaves_the_rest_alone(void **state)
{
	uint8_t *block = new_block(4096);
	struct gfs2_dinode *d = (struct gfs2_dinode *)block;

	memset(block, 0xa5, 4096);
	gfs2_dinode_encode(&good_file, block);
	assert_int_equal(be32_get(d->di_header.mh_jid), 0xa5a5a5a5);
	assert_int_equal(be64_get(d->di_header.__pad0), 0);
	for (size_t i = 0; i < sizeof(d->di_reserved); i++)
		assert_int_equal(d->di_reserved[i], 0xa5);
	for (size_t i = sizeof(*d); i < 4096; i++)
		assert_int_equal(block[i], 0xa5);
	assert_ptr_equal(gfs2_dinode_ptrs(block), block + 232);
	assert_ptr_equal(gfs2_indirect_ptrs(block), block + 24);
	free(block);
}

/* Each field alone, at the offset that the specification gives it. */
static void test_offsets(void **state)
{
#define AT(offset, width, field)                    \
	{                                           \
		offset, width, WITH(zero, field, 1) \
	}
	static const struct gfs2_dinode_info zero;
	struct {
		unsigned offset, width;
		struct gfs2_dinode_info di;
	} fields[] = {
		AT(24, 8, formal),	AT(32, 8, addr),
		AT(40, 4, mode),	AT(44, 4, uid),
		AT(48, 4, gid),		AT(52, 4, nlink),
		AT(56, 8, size),	AT(64, 8, blocks),
		AT(72, 8, atime.sec),	AT(80, 8, mtime.sec),
		AT(88, 8, ctime.sec),	AT(96, 4, rdev_major),
		AT(100, 4, rdev_minor), AT(104, 8, goal_meta),
		AT(112, 8, goal_data),	AT(120, 8, generation),
		AT(128, 4, flags),	AT(132, 4, payload_format),
		AT(138, 2, height),	AT(146, 2, depth),
		AT(148, 4, entries),	AT(168, 8, eattr),
		AT(176, 4, atime.nsec), AT(180, 4, mtime.nsec),
		AT(184, 4, ctime.nsec),
	};
#undef AT
	uint8_t got[232], expect[232];

	for (size_t i = 0; i < UG_ARRAY_SIZE(fields); i++) {
		memset(got, 0, sizeof(got));
		memset(expect, 0, sizeof(expect));
		gfs2_dinode_encode(&fields[i].di, got);
		gfs2_meta_init(expect, GFS2_METATYPE_DI);
		expect[fields[i].offset + fields[i].width - 1] = 1;
		assert_memory_equal(got, expect, sizeof(got));
	}
}

static void test_random_bytes(void **state)
{
	struct gfs2_geom geom = geom_of(512);
	struct gfs2_dinode_info out;
	uint8_t *block = new_block(512);
	struct ug_prng prng;

	ug_prng_seed(&prng, 6);
	for (int i = 0; i < 20000; i++) {
		int err;

		fill_random(&prng, block, 512);
		gfs2_meta_init(block, GFS2_METATYPE_DI);
		err = gfs2_dinode_decode(&geom, block, 5, &out, NULL, 0);
		assert_true(err == 0 || err == -EUCLEAN);
	}
	free(block);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_round_trips),
		cmocka_unit_test(test_file_bounds),
		cmocka_unit_test(test_directory_bounds),
		cmocka_unit_test(test_other_blocks),
		cmocka_unit_test(test_encoder_leaves_the_rest_alone),
		cmocka_unit_test(test_offsets),
		cmocka_unit_test(test_random_bytes),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
