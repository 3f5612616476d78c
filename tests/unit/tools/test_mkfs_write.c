/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * test_mkfs_write.c - what is on the device when the writing is cut short.
 *
 * An old volume is on the device. At whatever moment the power fails, and
 * whatever then becomes of writes under way, a later look at the superblock
 * finds the old volume untouched, no volume, or the new one complete.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "block/fault.h"
#include "block/record.h"
#include "tools/mkfs_write.h"

#define SIZE_BYTES (17u << 20)
#define SB_OFFSET 65536u

enum found {
	FOUND_NOTHING,
	FOUND_OLD,
	FOUND_NEW,
};

static const struct mkfs_identity old_identity = {
	.lockproto = "lock_nolock",
	.locktable = "old:old",
	.uuid = { 1 },
	.time_sec = 1000,
	.seed = 1,
};
static const struct mkfs_identity new_identity = {
	.lockproto = "lock_dlm",
	.locktable = "new:new",
	.uuid = { 2 },
	.time_sec = 2000,
	.seed = 2,
};

static struct mkfs_plan plan;
static struct mkfs_result trial;

static int setup(void **state)
{
	struct mkfs_wishes wishes = { .journals = 1 };
	struct mkfs_device device = { .size_bytes = SIZE_BYTES,
				      .sector_bytes = 512 };

	assert_int_equal(mkfs_plan_make(&wishes, &device, &plan, NULL, 0), 0);
	assert_int_equal(mkfs_make_volume(&plan, &new_identity, NULL, &trial),
			 0);
	return 0;
}

static int teardown(void **state)
{
	mkfs_plan_free(&plan);
	return 0;
}

static int write_to(struct blkdev *dev, const struct mkfs_identity *identity)
{
	bool begun;

	return mkfs_write_volume(dev, &plan, identity, &trial, NULL, &begun);
}

static struct blkdev *old_volume(void)
{
	struct blkdev *dev;

	assert_int_equal(blkdev_open_memory(SIZE_BYTES, 512, &dev), 0);
	assert_int_equal(write_to(dev, &old_identity), 0);
	return dev;
}

static uint8_t *contents(struct blkdev *dev)
{
	uint8_t *buf = blkdev_alloc(SIZE_BYTES);

	assert_non_null(buf);
	assert_int_equal(blkdev_read(dev, buf, SIZE_BYTES, 0), 0);
	return buf;
}

static enum found what_is_there(const uint8_t *buf)
{
	struct gfs2_sb_info sb;

	if (gfs2_sb_decode(buf + SB_OFFSET, 512, &sb, NULL, 0))
		return FOUND_NOTHING;
	return sb.uuid[0] == 1 ? FOUND_OLD : FOUND_NEW;
}

static uint8_t *complete(const struct mkfs_identity *identity)
{
	struct blkdev *dev = old_volume();
	uint8_t *buf;

	assert_int_equal(write_to(dev, identity), 0);
	buf = contents(dev);
	blkdev_close(dev);
	return buf;
}

struct crash_world {
	struct record *rec;
	const uint8_t *old_bytes;
	const uint8_t *new_bytes;
	unsigned found[3];
};

static void check_crash(struct crash_world *world, size_t upto, uint64_t seed)
{
	struct record_loss losses[64];
	struct record_crash crash = { .upto = upto,
				      .last_in_flight = seed % 2 };
	struct blkdev *image;
	struct ug_prng prng;
	enum found found;
	uint8_t *buf;

	ug_prng_seed(&prng, seed);
	assert_true(record_pending(world->rec, &crash, NULL, 0) <= 64);
	crash.losses_count =
		record_losses_random(world->rec, &crash, &prng, losses);
	crash.losses = losses;
	assert_int_equal(record_image(world->rec, &crash, &image), 0);
	buf = contents(image);
	found = what_is_there(buf);
	/* Before the superblock nothing belongs to the volume. */
	if (found == FOUND_OLD)
		assert_memory_equal(buf + SB_OFFSET,
				    world->old_bytes + SB_OFFSET,
				    SIZE_BYTES - SB_OFFSET);
	if (found == FOUND_NEW)
		assert_memory_equal(buf, world->new_bytes, SIZE_BYTES);
	world->found[found]++;
	free(buf);
	blkdev_close(image);
}

static void test_power_fails_anywhere(void **state)
{
	uint8_t *old_bytes = complete(&old_identity);
	uint8_t *new_bytes = complete(&new_identity);
	struct crash_world world = { .old_bytes = old_bytes,
				     .new_bytes = new_bytes };
	struct blkdev *dev;
	size_t events;

	assert_int_equal(record_create(old_volume(), &world.rec, &dev), 0);
	assert_int_equal(write_to(dev, &new_identity), 0);
	events = record_count(world.rec);
	assert_true(events > 5);
	for (size_t upto = 0; upto <= events; upto++)
		for (uint64_t seed = 0; seed < 4; seed++)
			check_crash(&world, upto, seed);
	/* All three outcomes were met. */
	for (int i = 0; i < 3; i++)
		assert_true(world.found[i] > 0);
	blkdev_close(dev);
	record_destroy(world.rec);
	free(old_bytes);
	free(new_bytes);
}

/* The last event is durable: nothing can be lost after success. */
static void test_success_means_durable(void **state)
{
	struct record_crash crash = { 0 };
	struct record *rec;
	struct blkdev *dev;

	assert_int_equal(record_create(old_volume(), &rec, &dev), 0);
	assert_int_equal(write_to(dev, &new_identity), 0);
	crash.upto = record_count(rec);
	assert_int_equal(record_pending(rec, &crash, NULL, 0), 0);
	blkdev_close(dev);
	record_destroy(rec);
}

/* Each write and flush fails once, in turn: reported, and no new volume. */
static void test_every_request_fails_once(void **state)
{
	const unsigned kinds = LAYER_WRITE | LAYER_FLUSH;
	struct fault *fault;
	struct blkdev *dev;
	uint64_t requests;

	assert_int_equal(fault_open(old_volume(), &fault, &dev), 0);
	assert_int_equal(write_to(dev, &new_identity), 0);
	requests = fault_seen(fault, kinds);
	blkdev_close(dev);

	for (uint64_t i = 0; i < requests; i++) {
		struct fault_rule rule = { .ops = kinds, .pass = i, .fail = 1 };
		uint8_t *buf;

		assert_int_equal(fault_open(old_volume(), &fault, &dev), 0);
		fault_set(fault, &rule);
		assert_int_equal(write_to(dev, &new_identity), -EIO);
		buf = contents(dev);
		/* Only the very last flush may fail with all in place. */
		if (i + 1 < requests)
			assert_int_not_equal(what_is_there(buf), FOUND_NEW);
		free(buf);
		blkdev_close(dev);
	}
}

struct seen_progress {
	uint64_t last, total;
	unsigned calls;
};

static void see_progress(void *arg, uint64_t done, uint64_t total)
{
	struct seen_progress *seen = arg;

	assert_true(done > seen->last);
	assert_true(done <= total);
	seen->last = done;
	seen->total = total;
	seen->calls++;
}

static void test_progress_ends_with_all(void **state)
{
	struct seen_progress seen = { 0 };
	struct mkfs_progress progress = { see_progress, &seen };
	struct blkdev *dev;
	bool begun = false;

	assert_int_equal(blkdev_open_memory(SIZE_BYTES, 4096, &dev), 0);
	assert_int_equal(mkfs_write_volume(dev, &plan, &new_identity, &trial,
					   &progress, &begun),
			 0);
	assert_true(begun);
	assert_true(seen.calls > 3);
	assert_int_equal(seen.last, seen.total);
	blkdev_close(dev);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_power_fails_anywhere),
		cmocka_unit_test(test_success_means_durable),
		cmocka_unit_test(test_every_request_fails_once),
		cmocka_unit_test(test_progress_ends_with_all),
	};

	return cmocka_run_group_tests(tests, setup, teardown);
}
