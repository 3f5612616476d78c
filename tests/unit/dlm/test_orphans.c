/* SPDX-License-Identifier: GPL-2.0-or-later */
/* test_orphans.c - owners that go: close, adopt, purge (spec 1.16) */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <errno.h>
#include <string.h>
#include <cmocka.h>

#include "ring.h"

static void test_close_marks_the_value_block(void **state)
{
	struct ring *r = ring_new(2);
	const char *name = ring_name(2, 2);
	uint8_t block[32] = "value";
	uint32_t nl, ex;

	(void)state;
	ring_lock(r, 2, name, LKM_NL, LKF_VALBLK, block, &nl);
	ring_lock(r, 1, name, LKM_EX, LKF_VALBLK, block, &ex);
	ring_settle(r);
	ring_expect(r, 1, ex, LKM_EX);
	assert_int_equal(ring_close(r, 1, 7), 0);
	ring_settle(r);
	assert_int_equal(ring_casts(r, 1, ex), 1); /* nobody is told */
	ring_convert(r, 2, nl, LKM_PR, LKF_VALBLK, block);
	ring_expect(r, 2, nl, LKM_PR);
	assert_true(ring_cast(r, 2, nl)->sbflags & SBF_VALNOTVALID);
	ring_free(r);
}

static void test_adopt(void **state)
{
	struct ring *r = ring_new(2);
	const char *name = ring_name(2, 2);
	uint32_t pr, adopted;

	(void)state;
	ring_lock(r, 1, name, LKM_PR, LKF_PERSISTENT, NULL, &pr);
	ring_settle(r);
	assert_int_equal(
		ring_lock(r, 1, name, LKM_PR, LKF_ORPHAN, NULL, &adopted),
		-ENOENT);
	ring_close(r, 1, 7);
	ring_settle(r);
	assert_int_equal(
		ring_lock(r, 1, name, LKM_EX, LKF_ORPHAN, NULL, &adopted),
		-EAGAIN);
	assert_int_equal(
		ring_lock(r, 1, name, LKM_PR, LKF_ORPHAN, NULL, &adopted), 0);
	assert_int_equal(adopted, pr);
	ring_unlock(r, 1, adopted, 0, NULL);
	ring_settle(r);
	assert_int_equal(ring_cast(r, 1, adopted)->status, -DLM_EUNLOCK);
	ring_free(r);
}

static void test_purge_from_another_node(void **state)
{
	struct ring *r = ring_new(2);
	const char *name = ring_name(2, 2);
	uint32_t ex, waiter;

	(void)state;
	ring_lock(r, 1, name, LKM_EX, LKF_PERSISTENT, NULL, &ex);
	ring_settle(r);
	ring_lock(r, 2, name, LKM_PR, 0, NULL, &waiter);
	ring_close(r, 1, 7);
	ring_settle(r);
	assert_null(ring_cast(r, 2, waiter)); /* the orphan still holds it */
	assert_int_equal(ring_purge(r, 2, 1, 9), 0); /* another pid */
	ring_settle(r);
	assert_null(ring_cast(r, 2, waiter));
	assert_int_equal(ring_purge(r, 2, 1, 7), 0);
	ring_settle(r);
	ring_expect(r, 2, waiter, LKM_PR);
	ring_free(r);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_close_marks_the_value_block),
		cmocka_unit_test(test_adopt),
		cmocka_unit_test(test_purge_from_another_node),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
