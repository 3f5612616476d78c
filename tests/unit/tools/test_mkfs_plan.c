/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * test_mkfs_plan.c - sizes and places: known ones, limits, and rules that hold
 * for any device and any wishes. Source: docs/spec/gfs2-ondisk.md 6.2, 10.1,
 * 11.3; that plans are those of mkfs.gfs2 is test_mkfs_reference.c's business.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/prng.h"
#include "tools/mkfs_image.h"

#define MB ((uint64_t)1 << 20)
#define TB ((uint64_t)1 << 40)

static struct mkfs_device device_of(uint64_t size_bytes)
{
	return (struct mkfs_device){
		.size_bytes = size_bytes,
		.sector_bytes = 512,
		.physical_bytes = 512,
		.io_min_bytes = 512,
	};
}

static int make(const struct mkfs_wishes *w, const struct mkfs_device *dev,
		struct mkfs_plan *plan)
{
	return mkfs_plan_make(w, dev, plan, NULL, 0);
}

static void check_refused(struct mkfs_wishes w, struct mkfs_device dev, int err,
			  const char *words)
{
	struct mkfs_plan plan;
	char why[512] = "";

	assert_int_equal(mkfs_plan_make(&w, &dev, &plan, why, sizeof(why)),
			 err);
	assert_null(plan.groups);
	if (!strstr(why, words))
		fail_msg("expected \"%s\" in \"%s\"", words, why);
}

/* The volume of 11.3: groups, inodes, totals. */
static void test_known_volume(void **state)
{
	static const struct gfs2_rindex_info groups[] = {
		{ 17, 1, 18, 2056, 514 },
		{ 2074, 1, 2075, 2056, 514 },
		{ 4131, 4, 4135, 63464, 15866 },
		{ 67601, 4, 67605, 63464, 15866 },
	};
	struct mkfs_wishes w = { .journals = 2, .jsize_mb = 8 };
	struct mkfs_device dev = device_of(512 * MB);
	struct mkfs_identity id = { .lockproto = "lock_nolock" };
	struct mkfs_result result;
	struct mkfs_plan plan;

	assert_int_equal(make(&w, &dev, &plan), 0);
	assert_int_equal(plan.group_count, 4);
	for (int i = 0; i < 4; i++) {
		assert_int_equal(plan.groups[i].addr, groups[i].addr);
		assert_int_equal(plan.groups[i].length, groups[i].length);
		assert_int_equal(plan.groups[i].data, groups[i].data);
	}
	assert_int_equal(plan.jblocks, 2048);
	assert_int_equal(plan.jtotal, 2054);
	assert_int_equal(mkfs_make_volume(&plan, &id, NULL, &result), 0);
	assert_int_equal(result.master.formal, 3);
	assert_int_equal(result.master.addr, 2072);
	assert_int_equal(result.root.formal, 16);
	assert_int_equal(result.root.addr, 4656);
	assert_int_equal(result.totals.total, 131040);
	assert_int_equal(result.totals.free, 126406);
	assert_int_equal(result.totals.dinodes, 16);
	mkfs_plan_free(&plan);
}

static void test_default_journal_sizes(void **state)
{
	static const struct {
		uint64_t volume_mb;
		unsigned jsize_mb;
	} rows[] = {
		{ 16, 8 },	    { 511, 8 },		 { 512, 16 },
		{ 2047, 16 },	    { 2048, 32 },	 { 8191, 32 },
		{ 8192, 64 },	    { 16383, 64 },	 { 16384, 128 },
		{ 1048575, 128 },   { 1048576, 512 },	 { 10485759, 512 },
		{ 10485760, 1024 }, { 104857600, 1024 },
	};

	for (size_t i = 0; i < UG_ARRAY_SIZE(rows); i++)
		assert_int_equal(
			mkfs_default_jsize_mb(4096, rows[i].volume_mb * 256),
			rows[i].jsize_mb);
	assert_int_equal(mkfs_default_jsize_mb(512, UINT64_MAX), 128);
	assert_int_equal(mkfs_default_jsize_mb(512, 0), 8);
}

static void test_smallest_volumes(void **state)
{
	struct mkfs_wishes w = { .journals = 3 };
	struct mkfs_device dev = device_of(3 * 16 * MB);
	struct mkfs_plan plan;

	assert_int_equal(make(&w, &dev, &plan), 0);
	mkfs_plan_free(&plan);
	dev.size_bytes -= 512;
	check_refused(w, dev, -ENOSPC,
		      "the volume has 12287 blocks of 4096 bytes, expected at "
		      "least 12288 for 3 journals of 8 MB");
	check_refused(w, device_of(0), -ENOSPC, "the volume has 0 blocks");
}

static void test_limits(void **state)
{
	struct mkfs_device dev = device_of(1024 * MB);
	struct mkfs_device big_sectors = dev;

	check_refused((struct mkfs_wishes){ .bsize = 3000 }, dev, -EINVAL,
		      "block size is 3000, expected a power of two");
	check_refused((struct mkfs_wishes){ .bsize = 8192 }, dev, -EINVAL,
		      "block size is 8192");
	big_sectors.sector_bytes = 4096;
	check_refused((struct mkfs_wishes){ .bsize = 1024 }, big_sectors,
		      -EINVAL,
		      "block size is 1024, expected at least the device's "
		      "sector size of 4096");
	check_refused((struct mkfs_wishes){ .journals = 1001 }, dev, -EINVAL,
		      "number of journals is 1001, expected 1 to 1000");
	check_refused((struct mkfs_wishes){ .format = 1803 }, dev, -EINVAL,
		      "format is 1803, expected 1801 or 1802");
	check_refused((struct mkfs_wishes){ .jsize_mb = 7 }, dev, -EINVAL,
		      "journal size is 7 MB, expected 8 to 1024 MB");
	check_refused((struct mkfs_wishes){ .jsize_mb = 1025 }, dev, -EINVAL,
		      "journal size is 1025 MB");
	check_refused((struct mkfs_wishes){ .rgsize_mb = 31 }, dev, -EINVAL,
		      "resource group size is 31 MB, expected 32 to 2048");
	check_refused((struct mkfs_wishes){ .qcsize_mb = 65 }, dev, -EINVAL,
		      "quota change file size is 65 MB, expected 1 to 64");
	check_refused((struct mkfs_wishes){ .size_blocks = 262145 }, dev,
		      -EINVAL,
		      "size is 262145 blocks, but the device has only 262144 "
		      "blocks of 4096 bytes");
	check_refused((struct mkfs_wishes){ .rgsize_mb = 32 },
		      device_of(64 * TB), -EFBIG,
		      "the volume would have 2097121 resource groups of 32 MB, "
		      "at most 1048576 are supported");
}

static void test_stripes_given(void **state)
{
	struct mkfs_device dev = device_of(1024 * MB);
	struct mkfs_wishes w = { .sunit_bytes = 65536, .swidth_bytes = 262144 };
	struct mkfs_plan plan;

	check_refused((struct mkfs_wishes){ .sunit_bytes = 65536 }, dev,
		      -EINVAL, "expected both or neither");
	check_refused((struct mkfs_wishes){ .swidth_bytes = 65536 }, dev,
		      -EINVAL, "expected both or neither");
	check_refused((struct mkfs_wishes){ .sunit_bytes = 1000,
					    .swidth_bytes = 2000 },
		      dev, -EINVAL, "multiple of the block size, 4096");
	check_refused((struct mkfs_wishes){ .sunit_bytes = 65536,
					    .swidth_bytes = 65537 },
		      dev, -EINVAL, "multiple of the stripe unit, 65536");
	check_refused((struct mkfs_wishes){ .sunit_bytes = 4096,
					    .swidth_bytes = 1ull << 62 },
		      dev, -ENOSPC, "stripe width is");
	check_refused((struct mkfs_wishes){ .sunit_bytes = 4096,
					    .swidth_bytes = 1024 * MB },
		      dev, -ENOSPC, "no room for a resource group");

	assert_int_equal(make(&w, &dev, &plan), 0);
	for (uint32_t g = 0; g < plan.group_count; g++)
		assert_int_equal(plan.groups[g].addr % 16, 0);
	mkfs_plan_free(&plan);
	w.no_align = true;
	assert_int_equal(make(&w, &dev, &plan), 0);
	assert_int_equal(plan.groups[0].addr, 17);
	mkfs_plan_free(&plan);
}

/* min, opt and physical of a device, and the stripe unit that comes of it. */
static void test_stripes_probed(void **state)
{
	static const struct {
		uint32_t physical, min, opt;
		uint64_t sunit;
	} rows[] = {
		{ 512, 0, 0, 0 },	    { 512, 512, 0, 0 },
		{ 512, 65536, 262144, 16 }, { 4096, 65536, 262144, 16 },
		{ 4096, 4096, 1048576, 0 }, { 512, 512, 33553920, 0 },
		{ 512, 65536, 100000, 0 },  { 512, 65536, 0, 0 },
		{ 512, 1024, 1048576, 0 },  { 512, 0, 1048576, 0 },
	};
	struct mkfs_wishes w = { .journals = 1 };

	for (size_t i = 0; i < UG_ARRAY_SIZE(rows); i++) {
		struct mkfs_device dev = device_of(1024 * MB);
		struct mkfs_plan plan;

		dev.physical_bytes = rows[i].physical;
		dev.io_min_bytes = rows[i].min;
		dev.io_opt_bytes = rows[i].opt;
		assert_int_equal(make(&w, &dev, &plan), 0);
		assert_int_equal(plan.sunit, rows[i].sunit);
		mkfs_plan_free(&plan);
	}
}

/* What holds for every plan. */
static void check_sound(const struct mkfs_plan *plan)
{
	uint64_t end = 65536 / plan->geom.bsize + 1;

	for (uint32_t g = 0; g < plan->group_count; g++) {
		struct gfs2_rindex_info ri;
		uint8_t entry[96];

		gfs2_rindex_encode(&plan->groups[g], entry);
		assert_int_equal(gfs2_rindex_decode(&plan->geom, entry, &ri),
				 0);
		assert_true(ri.addr >= end);
		end = ri.data0 + ri.data;
		if (g < plan->journals)
			assert_true(ri.data >= plan->jtotal);
		if (plan->sunit)
			assert_int_equal(ri.addr % plan->sunit, 0);
	}
	assert_int_equal(plan->fs_blocks, end);
	assert_true(end <= plan->device_blocks);
	assert_true(plan->group_count > plan->journals);
}

static struct mkfs_wishes random_wishes(struct ug_prng *prng)
{
	struct mkfs_wishes w = {
		.bsize = 512u << ug_prng_below(prng, 4),
		.journals = (unsigned)(ug_prng_u64(prng) >>
				       (54 + ug_prng_below(prng, 10))),
		.jsize_mb = (unsigned)(ug_prng_below(prng, 2)
					       ? 0
					       : 8 + ug_prng_below(prng, 1017)),
		.rgsize_mb = (unsigned)(32 + ug_prng_below(prng, 2017)),
	};

	if (ug_prng_below(prng, 2)) {
		w.sunit_bytes = w.bsize * (1 + ug_prng_below(prng, 1000));
		w.swidth_bytes =
			w.sunit_bytes * (1 + ug_prng_below(prng, 1000));
	}
	return w;
}

static void test_any_wishes(void **state)
{
	unsigned planned = 0;
	struct ug_prng prng;

	ug_prng_seed(&prng, 11);
	for (int i = 0; i < 1500; i++) {
		struct mkfs_device dev = device_of(
			ug_prng_u64(&prng) >> (24 + ug_prng_below(&prng, 20)));
		struct mkfs_wishes w = random_wishes(&prng);
		struct mkfs_plan plan;
		char why[512] = "";
		int err;

		err = mkfs_plan_make(&w, &dev, &plan, why, sizeof(why));
		if (err) {
			assert_true(err == -ENOSPC || err == -EFBIG ||
				    err == -EINVAL);
			assert_true(strlen(why) > 20);
			continue;
		}
		check_sound(&plan);
		planned++;
		mkfs_plan_free(&plan);
	}
	assert_true(planned > 200);
}

/* The largest device that there can be is planned or refused, not worse. */
static void test_largest_device(void **state)
{
	struct mkfs_wishes w = { .rgsize_mb = 2048 };
	struct mkfs_plan plan;
	struct mkfs_device dev = device_of(2040 * TB - 1);

	assert_int_equal(make(&w, &dev, &plan), 0);
	check_sound(&plan);
	mkfs_plan_free(&plan);
	check_refused(w, device_of(UINT64_MAX), -EFBIG, "resource groups");
}

static void test_out_of_space_is_known_beforehand(void **state)
{
	struct mkfs_wishes w = { .qcsize_mb = 10 };
	struct mkfs_device dev = device_of(17 * MB);
	struct mkfs_identity id = { .lockproto = "lock_nolock" };
	struct mkfs_result result;
	struct mkfs_plan plan;

	assert_int_equal(make(&w, &dev, &plan), 0);
	assert_int_equal(mkfs_make_volume(&plan, &id, NULL, &result), -ENOSPC);
	mkfs_plan_free(&plan);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_known_volume),
		cmocka_unit_test(test_default_journal_sizes),
		cmocka_unit_test(test_smallest_volumes),
		cmocka_unit_test(test_limits),
		cmocka_unit_test(test_stripes_given),
		cmocka_unit_test(test_stripes_probed),
		cmocka_unit_test(test_any_wishes),
		cmocka_unit_test(test_largest_device),
		cmocka_unit_test(test_out_of_space_is_known_beforehand),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
