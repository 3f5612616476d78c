/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The layers that fail and delay: which request fails, what it has done, and
 * that a request at the gate stands still until the gate opens.
 */
#include <errno.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <string.h>
#include <time.h>

#include <cmocka.h>

#include "block/delay.h"
#include "block/fault.h"

#define SIZE (64 * 1024u)

struct fixture {
	struct blkdev *dev;
	struct fault *fault;
	struct delay *delay;
	char *buf;
};

static int setup(void **state)
{
	struct fixture *f = calloc(1, sizeof(*f));

	assert_int_equal(blkdev_open_memory(SIZE, 512, &f->dev), 0);
	assert_int_equal(fault_open(f->dev, &f->fault, &f->dev), 0);
	assert_int_equal(delay_open(f->dev, &f->delay, &f->dev), 0);
	f->buf = blkdev_alloc(SIZE);
	memset(f->buf, 'x', SIZE);
	*state = f;
	return 0;
}

static int teardown(void **state)
{
	struct fixture *f = *state;

	blkdev_close(f->dev);
	free(f->buf);
	free(f);
	return 0;
}

static int put(struct fixture *f, uint64_t offset)
{
	return blkdev_write(f->dev, f->buf, 512, offset, 0);
}

static char get(struct fixture *f, uint64_t offset)
{
	char *sector = blkdev_alloc(512);
	char c;

	assert_int_equal(blkdev_read(f->dev, sector, 512, offset), 0);
	c = sector[0];
	free(sector);
	return c;
}

static void test_nth_write(void **state)
{
	struct fixture *f = *state;
	struct fault_rule rule = { .ops = LAYER_WRITE, .pass = 2, .fail = 1 };

	fault_set(f->fault, &rule);
	assert_int_equal(put(f, 0), 0);
	assert_int_equal(blkdev_flush(f->dev), 0);
	assert_int_equal(put(f, 512), 0);
	assert_int_equal(put(f, 1024), -EIO);
	assert_int_equal(put(f, 2048), 0);
	assert_int_equal(fault_failed(f->fault), 1);
	assert_int_equal(get(f, 512), 'x');
	assert_int_equal(get(f, 1024), 0);
	assert_int_equal(get(f, 2048), 'x');
	assert_int_equal(fault_seen(f->fault, LAYER_WRITE), 4);
	assert_int_equal(fault_seen(f->fault, LAYER_FLUSH), 1);
	assert_int_equal(fault_seen(f->fault, LAYER_ALL), 8);
}

static void test_all_from_now(void **state)
{
	struct fixture *f = *state;
	struct fault_rule rule = { .ops = LAYER_ALL, .error = -ENOSPC };

	assert_int_equal(put(f, 0), 0);
	fault_set(f->fault, &rule);
	for (int i = 0; i < 3; i++) {
		assert_int_equal(put(f, 0), -ENOSPC);
		assert_int_equal(blkdev_flush(f->dev), -ENOSPC);
		assert_int_equal(blkdev_read(f->dev, f->buf, 512, 0), -ENOSPC);
	}
	assert_int_equal(fault_failed(f->fault), 9);
	fault_set(f->fault, NULL);
	assert_int_equal(put(f, 0), 0);
	assert_int_equal(blkdev_flush(f->dev), 0);
}

static void test_range(void **state)
{
	struct fixture *f = *state;
	struct fault_rule rule = {
		.ops = LAYER_READ,
		.from_bytes = 4096,
		.to_bytes = 8192,
	};

	fault_set(f->fault, &rule);
	assert_int_equal(put(f, 4096), 0);
	assert_int_equal(blkdev_read(f->dev, f->buf, 4096, 0), 0);
	assert_int_equal(blkdev_read(f->dev, f->buf, 512, 8192), 0);
	assert_int_equal(blkdev_read(f->dev, f->buf, 512, 7680), -EIO);
	assert_int_equal(blkdev_read(f->dev, f->buf, 4608, 0), -EIO);
	assert_int_equal(blkdev_read(f->dev, f->buf, SIZE, 0), -EIO);
}

static void test_carried_out(void **state)
{
	struct fixture *f = *state;
	struct fault_rule rule = { .ops = LAYER_WRITE, .carried_out = true };

	fault_set(f->fault, &rule);
	assert_int_equal(put(f, 0), -EIO);
	assert_int_equal(get(f, 0), 'x');
}

static void *put_first(void *arg)
{
	struct fixture *f = arg;

	return (void *)(intptr_t)put(f, 0);
}

static void test_gate(void **state)
{
	struct fixture *f = *state;
	pthread_t thread;
	void *ret;

	delay_hold(f->delay, LAYER_WRITE);
	assert_int_equal(pthread_create(&thread, NULL, put_first, f), 0);
	delay_wait_held(f->delay, 1);
	/* It stands there; reads and flushes pass it. */
	assert_int_equal(get(f, 0), 0);
	assert_int_equal(blkdev_flush(f->dev), 0);
	delay_release(f->delay);
	assert_int_equal(pthread_join(thread, &ret), 0);
	assert_null(ret);
	assert_int_equal(get(f, 0), 'x');
	assert_int_equal(put(f, 512), 0);
}

static void test_delay(void **state)
{
	struct fixture *f = *state;
	struct timespec a, b;

	delay_set(f->delay, LAYER_FLUSH, 20000);
	clock_gettime(CLOCK_MONOTONIC, &a);
	assert_int_equal(blkdev_flush(f->dev), 0);
	clock_gettime(CLOCK_MONOTONIC, &b);
	assert_true((b.tv_sec - a.tv_sec) * 1000000000 + b.tv_nsec -
			    a.tv_nsec >=
		    20000000);
}

#define T(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		T(test_nth_write),   T(test_all_from_now), T(test_range),
		T(test_carried_out), T(test_gate),	   T(test_delay),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
