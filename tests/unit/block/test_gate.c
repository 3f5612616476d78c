/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Writes through a gate: they wait for the lease, go on with it, and fail when
 * the device has been shut; reads pass; a retired gate fails everything.
 */
#include <errno.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <cmocka.h>

#include "block/delay.h"
#include "block/gate.h"

#define BLOCK 4096u

struct fixture {
	struct gate *gate;
	struct delay *delay;
	struct blkdev *dev;
	_Atomic uint64_t until_ns;
	atomic_bool ended;
	int result;
	pthread_t thread;
};

static uint64_t until_ns(void *arg)
{
	struct fixture *f = arg;

	return f->until_ns;
}

static int setup(void **state)
{
	struct fixture *f = calloc(1, sizeof(*f));
	struct blkdev *mem, *delayed;

	assert_non_null(f);
	assert_int_equal(blkdev_open_memory(1 << 20, 512, &mem), 0);
	assert_int_equal(delay_open(mem, &f->delay, &delayed), 0);
	assert_int_equal(gate_open(delayed, until_ns, f, &f->gate, &f->dev), 0);
	f->until_ns = UINT64_MAX;
	*state = f;
	return 0;
}

static int teardown(void **state)
{
	struct fixture *f = *state;

	blkdev_close(f->dev);
	free(f);
	return 0;
}

static int write_block(struct fixture *f, uint8_t fill)
{
	void *block = blkdev_alloc(BLOCK);
	int err;

	memset(block, fill, BLOCK);
	err = blkdev_write(f->dev, block, BLOCK, 0, 0);
	free(block);
	return err;
}

static int first_byte(struct fixture *f)
{
	uint8_t *block = blkdev_alloc(BLOCK);
	int err = blkdev_read(f->dev, block, BLOCK, 0);
	int byte = err ? err : block[0];

	free(block);
	return byte;
}

static void *writer_main(void *arg)
{
	struct fixture *f = arg;

	f->result = write_block(f, 2);
	f->ended = true;
	return NULL;
}

static void begin_write(struct fixture *f)
{
	assert_int_equal(pthread_create(&f->thread, NULL, writer_main, f), 0);
}

static int end_write(struct fixture *f)
{
	pthread_join(f->thread, NULL);
	return f->result;
}

/* Nothing can be seen of a thread that waits: it is given time to go wrong. */
static void stays_waiting(struct fixture *f)
{
	nanosleep(&(struct timespec){ .tv_nsec = 150000000 }, NULL);
	assert_false(f->ended);
}

static void test_waits_for_the_lease(void **state)
{
	struct fixture *f = *state;

	assert_int_equal(write_block(f, 1), 0);
	f->until_ns = 0;
	begin_write(f);
	stays_waiting(f);
	assert_int_equal(first_byte(f), 1);
	f->until_ns = UINT64_MAX;
	gate_poke(f->gate);
	assert_int_equal(end_write(f), 0);
	assert_int_equal(first_byte(f), 2);
}

/* Nobody pokes: blkdev_shut() may come from a signal handler. */
static void test_fails_when_shut(void **state)
{
	struct fixture *f = *state;

	f->until_ns = 1;
	begin_write(f);
	stays_waiting(f);
	blkdev_shut(f->dev);
	f->until_ns = UINT64_MAX;
	assert_int_equal(end_write(f), -EIO);
	assert_int_equal(first_byte(f), 0);
}

static void *retire_main(void *arg)
{
	struct fixture *f = arg;

	gate_retire(f->gate);
	f->ended = true;
	return NULL;
}

static void test_retires_behind_the_last_request(void **state)
{
	struct fixture *f = *state;
	pthread_t retirer;

	delay_hold(f->delay, ~0u);
	begin_write(f);
	delay_wait_held(f->delay, 1);
	blkdev_shut(f->dev);
	f->ended = false;
	assert_int_equal(pthread_create(&retirer, NULL, retire_main, f), 0);
	stays_waiting(f);
	delay_release(f->delay);
	end_write(f);
	pthread_join(retirer, NULL);
	assert_int_equal(first_byte(f), -EIO);
	assert_int_equal(write_block(f, 3), -EIO);
	assert_int_equal(blkdev_flush(f->dev), -EIO);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_waits_for_the_lease, setup,
						teardown),
		cmocka_unit_test_setup_teardown(test_fails_when_shut, setup,
						teardown),
		cmocka_unit_test_setup_teardown(
			test_retires_behind_the_last_request, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
