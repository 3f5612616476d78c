/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The record of writes: what may be missing after a crash at each point, and
 * images that show exactly that. A random history is compared with a naive
 * model that keeps, for every sector, all values it may have.
 */
#include <errno.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

#include "block/delay.h"
#include "block/fault.h"
#include "block/record.h"

#define SIZE (128 * 1024u)
#define SECTOR 512u

struct fixture {
	struct blkdev *dev;
	struct fault *fault;
	struct delay *delay;
	struct record *rec;
};

static int setup(void **state)
{
	struct fixture *f = calloc(1, sizeof(*f));
	char *buf = blkdev_alloc(SIZE);

	assert_int_equal(blkdev_open_memory(SIZE, SECTOR, &f->dev), 0);
	/* What is there before: one sector. */
	memset(buf, 'b', SECTOR);
	assert_int_equal(blkdev_write(f->dev, buf, SECTOR, 8192, 0), 0);
	free(buf);
	assert_int_equal(fault_open(f->dev, &f->fault, &f->dev), 0);
	assert_int_equal(delay_open(f->dev, &f->delay, &f->dev), 0);
	assert_int_equal(record_create(f->dev, &f->rec, &f->dev), 0);
	*state = f;
	return 0;
}

static int teardown(void **state)
{
	struct fixture *f = *state;

	blkdev_close(f->dev);
	record_destroy(f->rec);
	free(f);
	return 0;
}

static int put(struct fixture *f, uint64_t sector, uint64_t n, char c,
	       unsigned flags)
{
	char *buf = blkdev_alloc(n * SECTOR);
	int err;

	memset(buf, c, n * SECTOR);
	err = blkdev_write(f->dev, buf, n * SECTOR, sector * SECTOR, flags);
	free(buf);
	return err;
}

static char sector_of(struct blkdev *dev, uint64_t sector)
{
	char *buf = blkdev_alloc(SECTOR);
	char c;

	assert_int_equal(blkdev_read(dev, buf, SECTOR, sector * SECTOR), 0);
	c = buf[0];
	for (unsigned i = 0; i < SECTOR; i++)
		assert_int_equal(buf[i], c);
	free(buf);
	return c;
}

/* The first sectors of the disk after the crash, '.' for zeros. */
static void assert_disk(struct fixture *f, const struct record_crash *crash,
			const char *expected)
{
	struct blkdev *image;

	assert_int_equal(record_image(f->rec, crash, &image), 0);
	for (unsigned i = 0; expected[i]; i++) {
		char c = sector_of(image, i);

		assert_int_equal(c ? c : '.', expected[i]);
	}
	assert_int_equal(sector_of(image, 16), 'b');
	blkdev_close(image);
}

static void test_events(void **state)
{
	struct fixture *f = *state;
	struct record_event ev;

	put(f, 3, 2, 'A', 0);
	blkdev_flush(f->dev);
	put(f, 1, 1, 'B', BLK_FUA);
	assert_int_equal(record_count(f->rec), 3);
	record_event(f->rec, 0, &ev);
	assert_int_equal(ev.kind, RECORD_WRITE);
	assert_int_equal(ev.offset_bytes, 3 * SECTOR);
	assert_int_equal(ev.len_bytes, 2 * SECTOR);
	assert_false(ev.fua);
	assert_int_equal(((const char *)ev.data)[2 * SECTOR - 1], 'A');
	record_event(f->rec, 1, &ev);
	assert_int_equal(ev.kind, RECORD_FLUSH);
	record_event(f->rec, 2, &ev);
	assert_true(ev.fua);
	/* The data have also gone through. */
	assert_int_equal(sector_of(f->dev, 4), 'A');
}

static void test_each_point(void **state)
{
	struct fixture *f = *state;
	static const char *const disk[] = { "......", "AA....", "AAB...",
					    "AAB...", "ACCC..", "ACCC.D" };

	put(f, 0, 2, 'A', 0);
	put(f, 2, 1, 'B', 0);
	blkdev_flush(f->dev);
	put(f, 1, 3, 'C', 0);
	put(f, 5, 1, 'D', BLK_FUA);
	for (size_t n = 0; n < UG_ARRAY_SIZE(disk); n++)
		assert_disk(f, &(struct record_crash){ .upto = n }, disk[n]);
}

static void test_pending(void **state)
{
	struct fixture *f = *state;
	struct record_crash crash = { .upto = 2 };
	size_t events[8];

	put(f, 0, 1, 'A', 0);
	put(f, 1, 1, 'B', BLK_FUA);
	blkdev_flush(f->dev);
	put(f, 2, 1, 'C', 0);
	assert_int_equal(record_pending(f->rec, &crash, events, 8), 1);
	assert_int_equal(events[0], 0);
	crash.last_in_flight = true;
	assert_int_equal(record_pending(f->rec, &crash, events, 8), 2);
	assert_int_equal(events[1], 1);
	crash = (struct record_crash){ .upto = 3 };
	assert_int_equal(record_pending(f->rec, &crash, events, 8), 0);
	/* The flush was still under way: B is FUA and safe, A is not. */
	crash.last_in_flight = true;
	assert_int_equal(record_pending(f->rec, &crash, events, 8), 1);
	assert_int_equal(events[0], 0);
	crash = (struct record_crash){ .upto = 4 };
	assert_int_equal(record_pending(f->rec, &crash, events, 8), 1);
	assert_int_equal(events[0], 3);
	assert_int_equal(record_pending(f->rec, &crash, NULL, 0), 1);
}

static void test_losses(void **state)
{
	struct fixture *f = *state;
	struct record_loss dropped[] = { { .event = 1 } };
	struct record_loss torn[] = {
		{ .event = 1, .first_sector = 1, .sectors_count = 2 },
		{ .event = 2, .first_sector = 0, .sectors_count = 1 },
	};
	struct record_crash crash = { .upto = 3, .losses_count = 1 };

	put(f, 0, 4, 'A', BLK_FUA);
	put(f, 0, 4, 'B', 0);
	put(f, 3, 2, 'C', 0);
	crash.losses = dropped;
	assert_disk(f, &crash, "AAACC.");
	crash.losses = torn;
	assert_disk(f, &crash, "ABBCC.");
	crash.losses_count = 2;
	assert_disk(f, &crash, "ABBC..");
}

static void test_losses_refused(void **state)
{
	struct fixture *f = *state;
	struct record_loss loss = { .event = 0 };
	struct record_loss twice[] = { { .event = 2 }, { .event = 2 } };
	struct record_crash crash = { 3, false, &loss, 1 };
	struct blkdev *image;

	put(f, 0, 1, 'A', 0);
	blkdev_flush(f->dev);
	put(f, 1, 2, 'B', 0);
	/* Durable; a flush; out of range; too long; not there; twice. */
	assert_int_equal(record_image(f->rec, &crash, &image), -EINVAL);
	loss.event = 1;
	assert_int_equal(record_image(f->rec, &crash, &image), -EINVAL);
	loss = (struct record_loss){ 2, 2, 1 };
	assert_int_equal(record_image(f->rec, &crash, &image), -EINVAL);
	loss = (struct record_loss){ 2, 1, 2 };
	assert_int_equal(record_image(f->rec, &crash, &image), -EINVAL);
	loss = (struct record_loss){ 3, 0, 0 };
	assert_int_equal(record_image(f->rec, &crash, &image), -EINVAL);
	crash = (struct record_crash){ 3, false, twice, 2 };
	assert_int_equal(record_image(f->rec, &crash, &image), -EINVAL);
	crash = (struct record_crash){ .upto = 4 };
	assert_int_equal(record_image(f->rec, &crash, &image), -EINVAL);
}

static void test_failed_requests(void **state)
{
	struct fixture *f = *state;
	struct fault_rule rule = { .ops = LAYER_ALL };
	struct record_crash crash = { .upto = 4 };
	size_t events[4];

	put(f, 0, 1, 'A', 0);
	fault_set(f->fault, &rule);
	assert_int_equal(put(f, 1, 1, 'B', BLK_FUA), -EIO);
	assert_int_equal(blkdev_flush(f->dev), -EIO);
	fault_set(f->fault, NULL);
	blkdev_flush(f->dev);
	/* A failed flush covers nothing; a failed write stays in doubt. */
	assert_int_equal(record_pending(f->rec, &crash, events, 4), 1);
	assert_int_equal(events[0], 1);
	crash.upto = 3;
	assert_int_equal(record_pending(f->rec, &crash, events, 4), 2);
}

static void *flush_thread(void *arg)
{
	struct fixture *f = arg;

	assert_int_equal(blkdev_flush(f->dev), 0);
	return NULL;
}

/* A write issued while a flush is under way is not covered by it. */
static void test_concurrent_flush(void **state)
{
	struct fixture *f = *state;
	struct record_crash crash = { .upto = 3 };
	pthread_t thread;
	size_t events[4];

	put(f, 0, 1, 'A', 0);
	delay_hold(f->delay, LAYER_FLUSH);
	assert_int_equal(pthread_create(&thread, NULL, flush_thread, f), 0);
	delay_wait_held(f->delay, 1);
	put(f, 1, 1, 'B', 0);
	delay_release(f->delay);
	pthread_join(thread, NULL);
	assert_int_equal(record_count(f->rec), 3);
	assert_int_equal(record_pending(f->rec, &crash, events, 4), 1);
	assert_int_equal(events[0], 1);
}

static void *put_thread(void *arg)
{
	struct fixture *f = arg;

	assert_int_equal(put(f, 0, 1, 'A', BLK_FUA), 0);
	return NULL;
}

/* A write that is still under way is covered by no flush, nor by being FUA. */
static void test_concurrent_write(void **state)
{
	struct fixture *f = *state;
	struct record_crash crash = { .upto = 2 };
	pthread_t thread;
	size_t events[4];

	delay_hold(f->delay, LAYER_WRITE);
	assert_int_equal(pthread_create(&thread, NULL, put_thread, f), 0);
	delay_wait_held(f->delay, 1);
	blkdev_flush(f->dev);
	delay_release(f->delay);
	pthread_join(thread, NULL);
	/* It had returned before anything else was done ... */
	assert_int_equal(record_pending(f->rec, &crash, events, 4), 0);
	/* ... but not when the flush, which does not cover it, returned. */
	crash.last_in_flight = true;
	assert_int_equal(record_pending(f->rec, &crash, events, 4), 1);
	blkdev_flush(f->dev);
	crash.upto = 3;
	assert_int_equal(record_pending(f->rec, &crash, events, 4), 0);
}

static void test_image_is_a_device(void **state)
{
	struct fixture *f = *state;
	struct record_crash crash = { .upto = 1 };
	struct blkdev *image, *image2;
	struct record *rec2;
	char *buf = blkdev_alloc(4096);

	put(f, 0, 8, 'A', 0);
	assert_int_equal(record_image(f->rec, &crash, &image), 0);
	assert_int_equal(image->size_bytes, SIZE);
	assert_int_equal(image->sector_bytes, SECTOR);
	/* A crash during the recovery from a crash. */
	assert_int_equal(record_create(image, &rec2, &image2), 0);
	memset(buf, 'Z', 4096);
	assert_int_equal(blkdev_write(image2, buf, SECTOR, SECTOR, 0), 0);
	assert_int_equal(sector_of(image2, 1), 'Z');
	assert_int_equal(sector_of(image2, 2), 'A');
	assert_int_equal(record_count(rec2), 1);
	blkdev_close(image2);
	record_destroy(rec2);
	/* The record itself has not changed by that. */
	assert_disk(f, &crash, "AAAAAAAA.");
	free(buf);
}

static void test_replay_onto(void **state)
{
	struct fixture *f = *state;
	struct record_crash crash = { .upto = 2 };
	struct blkdev *copy, *small;

	put(f, 0, 1, 'A', 0);
	put(f, 255, 1, 'E', 0);
	assert_int_equal(blkdev_open_memory(2 * SIZE, SECTOR, &copy), 0);
	assert_int_equal(record_replay_onto(f->rec, &crash, copy), 0);
	assert_int_equal(sector_of(copy, 0), 'A');
	assert_int_equal(sector_of(copy, 1), 0);
	assert_int_equal(sector_of(copy, 16), 'b');
	assert_int_equal(sector_of(copy, 255), 'E');
	blkdev_close(copy);
	assert_int_equal(blkdev_open_memory(SIZE / 2, SECTOR, &small), 0);
	assert_int_equal(record_replay_onto(f->rec, &crash, small), -EINVAL);
	blkdev_close(small);
}

#define HISTORY 200
#define SECTORS (SIZE / SECTOR)

/*
 * Every value that a sector may have after a random crash must be one that
 * was written there, not older than the last one known to be durable.
 */
static void test_random_history(void **state)
{
	struct fixture *f = *state;
	struct ug_prng prng;
	static char value[HISTORY + 1][SECTORS];
	static size_t durable[HISTORY + 1]; /* events flushed at this point */
	struct record_loss losses[HISTORY];

	ug_prng_seed(&prng, 1);
	memset(value[0], 0, SECTORS);
	value[0][16] = 'b';
	for (size_t i = 0; i < HISTORY; i++) {
		uint64_t n = 1 + ug_prng_below(&prng, 20);
		uint64_t at = ug_prng_below(&prng, SECTORS - n);

		memcpy(value[i + 1], value[i], SECTORS);
		durable[i + 1] = durable[i];
		if (ug_prng_below(&prng, 8) == 0) {
			assert_int_equal(blkdev_flush(f->dev), 0);
			durable[i + 1] = i + 1;
			continue;
		}
		assert_int_equal(put(f, at, n, (char)(1 + i % 120), 0), 0);
		memset(&value[i + 1][at], (int)(1 + i % 120), n);
	}
	for (int round = 0; round < 300; round++) {
		struct record_crash crash = {
			.upto = ug_prng_below(&prng, HISTORY + 1),
		};
		struct blkdev *image;

		crash.losses = losses;
		crash.losses_count =
			record_losses_random(f->rec, &crash, &prng, losses);
		assert_int_equal(record_image(f->rec, &crash, &image), 0);
		for (unsigned s = 0; s < SECTORS; s++) {
			char c = sector_of(image, s);
			size_t i = crash.upto;

			while (i > durable[crash.upto] && value[i][s] != c)
				i--;
			assert_int_equal(value[i][s], c);
		}
		blkdev_close(image);
	}
}

#define T(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		T(test_events),
		T(test_each_point),
		T(test_pending),
		T(test_losses),
		T(test_losses_refused),
		T(test_failed_requests),
		T(test_concurrent_flush),
		T(test_concurrent_write),
		T(test_image_is_a_device),
		T(test_replay_onto),
		T(test_random_history),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
