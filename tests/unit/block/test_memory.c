/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The generic calls over a device in memory: what goes in comes out, and what
 * is not made of whole sectors inside the device is refused untouched.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

#include "block/block.h"
#include "block/fault.h"

#define SIZE (64 * 1024u)
#define SECTOR 512u

struct fixture {
	struct blkdev *dev;
	char *a;
	char *b;
};

static int setup(void **state)
{
	struct fixture *f = calloc(1, sizeof(*f));

	assert_int_equal(blkdev_open_memory(SIZE, SECTOR, &f->dev), 0);
	f->a = blkdev_alloc(SIZE);
	f->b = blkdev_alloc(SIZE);
	for (unsigned i = 0; i < SIZE; i++)
		f->a[i] = (char)(i * 7 + i / 512);
	*state = f;
	return 0;
}

static int teardown(void **state)
{
	struct fixture *f = *state;

	blkdev_close(f->dev);
	free(f->a);
	free(f->b);
	free(f);
	return 0;
}

static void test_round_trip(void **state)
{
	struct fixture *f = *state;
	struct iovec out[3] = {
		{ f->a, 512 },
		{ f->a + 4096, 0 },
		{ f->a + 8192, 1024 },
	};

	assert_int_equal(blkdev_read(f->dev, f->b, SIZE, 0), 0);
	for (unsigned i = 0; i < SIZE; i++)
		assert_int_equal(f->b[i], 0);
	assert_int_equal(blkdev_writev(f->dev, out, 3, 1024, BLK_FUA), 0);
	assert_int_equal(blkdev_flush(f->dev), 0);
	assert_int_equal(blkdev_read(f->dev, f->b, 2560, 512), 0);
	assert_int_equal(f->b[511], 0);
	assert_memory_equal(f->b + 512, f->a, 512);
	assert_memory_equal(f->b + 1024, f->a + 8192, 1024);
	assert_int_equal(f->b[2048], 0);
}

static void test_last_sector(void **state)
{
	struct fixture *f = *state;

	assert_int_equal(blkdev_write(f->dev, f->a, SECTOR, SIZE - SECTOR, 0),
			 0);
	assert_int_equal(blkdev_read(f->dev, f->b, SECTOR, SIZE - SECTOR), 0);
	assert_memory_equal(f->a, f->b, SECTOR);
	/* Nothing at the very end is a valid place for nothing. */
	assert_int_equal(blkdev_write(f->dev, f->a, 0, SIZE, 0), 0);
}

static void test_refused(void **state)
{
	static const struct {
		unsigned buf_off;
		uint64_t len;
		uint64_t offset;
	} bad[] = {
		{ 0, 512, 100 },	      /* place */
		{ 0, 100, 0 },		      /* length */
		{ 8, 512, 0 },		      /* memory */
		{ 0, 512, SIZE },	      /* behind the end */
		{ 0, 1024, SIZE - 512 },      /* across the end */
		{ 0, 512, UINT64_MAX - 511 }, /* the sum overflows */
		{ 0, UINT64_MAX - 511, 512 },
	};
	struct fixture *f = *state;

	for (unsigned i = 0; i < UG_ARRAY_SIZE(bad); i++) {
		assert_int_equal(blkdev_read(f->dev, f->b + bad[i].buf_off,
					     bad[i].len, bad[i].offset),
				 -EINVAL);
		assert_int_equal(blkdev_write(f->dev, f->a + bad[i].buf_off,
					      bad[i].len, bad[i].offset, 0),
				 -EINVAL);
	}
	assert_int_equal(blkdev_readv(f->dev, NULL, -1, 0), -EINVAL);
	assert_int_equal(blkdev_read(f->dev, f->b, SIZE, 0), 0);
	for (unsigned i = 0; i < SIZE; i++)
		assert_int_equal(f->b[i], 0);
}

static void test_iov_sum_overflow(void **state)
{
	struct fixture *f = *state;
	struct iovec iov[2] = {
		{ f->a, SIZE_MAX - 511 },
		{ f->a, 1024 },
	};

	assert_int_equal(blkdev_readv(f->dev, iov, 2, 0), -EINVAL);
}

static void test_readonly(void **state)
{
	struct fixture *f = *state;

	f->dev->readonly = true;
	assert_int_equal(blkdev_write(f->dev, f->a, 512, 0, 0), -EROFS);
	assert_int_equal(blkdev_flush(f->dev), 0);
	assert_int_equal(blkdev_read(f->dev, f->b, 512, 0), 0);
}

static void test_shut_reaches_the_bottom(void **state)
{
	struct fixture *f = *state;
	struct blkdev *bottom = f->dev;
	struct fault *fault;

	assert_int_equal(fault_open(bottom, &fault, &f->dev), 0);
	assert_int_equal(blkdev_write(f->dev, f->a, 512, 0, 0), 0);
	blkdev_shut(f->dev);
	assert_int_equal(blkdev_write(f->dev, f->a, 512, 512, 0), -EIO);
	assert_int_equal(blkdev_write(bottom, f->a, 512, 512, 0), -EIO);
	assert_int_equal(blkdev_flush(f->dev), -EIO);
	assert_int_equal(blkdev_flush(bottom), -EIO);
	/* Reading goes on: a dump may want to look. */
	assert_int_equal(blkdev_read(f->dev, f->b, 1024, 0), 0);
	assert_memory_equal(f->b, f->a, 512);
	assert_int_equal(f->b[512], 0);
}

static void test_bad_geometry(void **state)
{
	struct blkdev *dev;

	assert_int_equal(blkdev_open_memory(SIZE, 100, &dev), -EINVAL);
	assert_int_equal(blkdev_open_memory(SIZE, 8192, &dev), -EINVAL);
	assert_int_equal(blkdev_open_memory(SIZE, 768, &dev), -EINVAL);
	assert_int_equal(blkdev_open_memory(0, 512, &dev), -EINVAL);
	assert_int_equal(blkdev_open_memory(SIZE + 512, 4096, &dev), -EINVAL);
	blkdev_close(NULL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_round_trip, setup,
						teardown),
		cmocka_unit_test_setup_teardown(test_last_sector, setup,
						teardown),
		cmocka_unit_test_setup_teardown(test_refused, setup, teardown),
		cmocka_unit_test_setup_teardown(test_iov_sum_overflow, setup,
						teardown),
		cmocka_unit_test_setup_teardown(test_readonly, setup, teardown),
		cmocka_unit_test_setup_teardown(test_shut_reaches_the_bottom,
						setup, teardown),
		cmocka_unit_test(test_bad_geometry),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
