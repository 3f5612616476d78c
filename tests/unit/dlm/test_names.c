/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * test_names.c - the directory is rebuilt from blocks of names
 * (docs/spec/dlm.md 4.3), whatever bytes are in these.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "ring.h"

/* A third of a half of them is more than a block of the longest names. */
#define NAMES 500

static struct dlm_name binary_name(unsigned number, unsigned zeros)
{
	struct dlm_name name = { .len = DLM_NAME_MAX };

	memset(name.bytes, 'n', DLM_NAME_MAX - zeros);
	name.bytes[0] = (uint8_t)number;
	name.bytes[1] = (uint8_t)(number >> 8);
	return name;
}

static void lock_name(struct ring *ring, int node, const struct dlm_name *name,
		      enum dlm_mode mode)
{
	struct dlm_event event = { .kind = DLM_EV_LOCK };

	event.lock.mode = mode;
	event.lock.name = *name;
	assert_int_equal(ring_step(ring, node, &event), 0);
	ring_settle(ring);
	ring_expect(ring, node, event.lock.lkid, mode);
}

/*
 * Node 3 joins, and gets its part of the directory from the masters. If it did
 * not get all, it would take itself for the master of what it did not get.
 */
static void join_with(unsigned zeros)
{
	struct ring *ring = ring_new(2);

	for (unsigned i = 0; i < NAMES; i++) {
		struct dlm_name name = binary_name(i, zeros);

		lock_name(ring, 1 + (int)(i % 2), &name, LKM_PR);
	}
	ring_boot(ring, 3);
	ring_stop(ring);
	ring_start(ring);
	ring_settle(ring);
	for (int node = 1; node <= 3; node++)
		assert_true(dlm_is_running(ring->engine[node]));
	for (unsigned i = 0; i < NAMES; i++) {
		struct dlm_name name = binary_name(i, zeros);
		struct dlm_event event = { .kind = DLM_EV_LOCK };

		event.lock.mode = LKM_EX;
		event.lock.flags = LKF_NOQUEUE;
		event.lock.name = name;
		assert_int_equal(ring_step(ring, 3, &event), 0);
		ring_settle(ring);
		assert_int_equal(ring_cast(ring, 3, event.lock.lkid)->status,
				 -EAGAIN);
	}
	ring_free(ring);
}

static void test_full_blocks(void **state)
{
	(void)state;
	join_with(0);
}

/* A block ends with zero bytes that are the end of a name. */
static void test_names_that_end_with_zeros(void **state)
{
	(void)state;
	join_with(1);
	join_with(2);
	join_with(40);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_full_blocks),
		cmocka_unit_test(test_names_that_end_with_zeros),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
