/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Who may have locks of which file, and through which handle.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "fuse/lockowners.h"

static int setup(void **state)
{
	struct lockowners *lo;

	assert_int_equal(lockowners_create(&lo), 0);
	*state = lo;
	return 0;
}

static int teardown(void **state)
{
	lockowners_destroy(*state);
	return 0;
}

static void locks(struct lockowners *lo, uint64_t nodeid, uint64_t owner,
		  uint64_t fh, uint32_t pid)
{
	struct lockowner *who = lockowners_begin(lo, nodeid, owner, fh, pid);

	assert_non_null(who);
	lockowners_end(lo, who);
}

static void test_flush_forgets(void **state)
{
	struct lockowners *lo = *state;

	assert_false(lockowners_flush(lo, 10, 1, 5, 100));
	locks(lo, 10, 1, 5, 100);
	locks(lo, 10, 2, 5, 101);
	locks(lo, 11, 1, 6, 100);
	assert_int_equal(lockowners_count(lo), 3);
	/* Through whatever handle; of this file and owner only. */
	assert_true(lockowners_flush(lo, 10, 1, 7, 100));
	assert_false(lockowners_flush(lo, 10, 1, 5, 100));
	assert_true(lockowners_flush(lo, 10, 2, 5, 101));
	assert_true(lockowners_flush(lo, 11, 1, 6, 100));
	assert_int_equal(lockowners_count(lo), 0);
}

static void test_release_finds_by_handle(void **state)
{
	struct lockowners *lo = *state;
	uint64_t owner, sum = 0;

	locks(lo, 10, 1, 5, 100);
	locks(lo, 10, 2, 5, 100);
	locks(lo, 10, 3, 6, 100);
	assert_false(lockowners_release(lo, 7, &owner));
	for (int i = 0; i < 2; i++) {
		assert_true(lockowners_release(lo, 5, &owner));
		sum += owner;
	}
	assert_int_equal(sum, 3);
	assert_false(lockowners_release(lo, 5, &owner));
	assert_true(lockowners_release(lo, 6, &owner));
	assert_int_equal(owner, 3);
}

/* The latest one counts: whoever locks through another handle has it. */
static void test_latest_handle_counts(void **state)
{
	struct lockowners *lo = *state;
	uint64_t owner;

	locks(lo, 10, 1, 5, 100);
	locks(lo, 10, 1, 6, 100);
	assert_int_equal(lockowners_count(lo), 1);
	assert_false(lockowners_release(lo, 5, &owner));
	assert_true(lockowners_release(lo, 6, &owner));
}

/* A SETLK that is under way may be done after the FLUSH. */
static void test_busy_stays_known(void **state)
{
	struct lockowners *lo = *state;
	struct lockowner *who = lockowners_begin(lo, 10, 1, 5, 100);
	uint64_t owner;

	assert_true(lockowners_flush(lo, 10, 1, 5, 100));
	assert_int_equal(lockowners_count(lo), 1);
	assert_false(lockowners_release(lo, 5, &owner));
	lockowners_end(lo, who);
	assert_true(lockowners_flush(lo, 10, 1, 5, 100));
	assert_int_equal(lockowners_count(lo), 0);
}

/* What a process has locked for another owner than its own may outlive it. */
static void test_pid_of_ofd(void **state)
{
	struct lockowners *lo = *state;

	locks(lo, 10, 77, 5, 100);
	assert_true(lockowners_has_pid(lo, 10, 77));
	assert_false(lockowners_has_pid(lo, 11, 77));
	assert_false(lockowners_flush(lo, 10, 1, 6, 100)); /* another handle */
	assert_false(lockowners_flush(lo, 10, 2, 5, 101)); /* its child */
	assert_true(lockowners_has_pid(lo, 10, 77));
	assert_false(lockowners_flush(lo, 10, 1, 5, 100));
	assert_false(lockowners_has_pid(lo, 10, 77));
	locks(lo, 10, 77, 5, 101);
	assert_true(lockowners_has_pid(lo, 10, 77));
}

static void test_many(void **state)
{
	struct lockowners *lo = *state;
	uint64_t owner;

	for (uint64_t i = 0; i < 20000; i++)
		locks(lo, i / 100, i, i % 1000, 1);
	assert_int_equal(lockowners_count(lo), 20000);
	for (uint64_t i = 0; i < 20000; i += 2)
		assert_true(lockowners_flush(lo, i / 100, i, 0, 2));
	for (uint64_t fh = 0; fh < 1000; fh++)
		while (lockowners_release(lo, fh, &owner))
			assert_int_equal(owner % 2, 1);
	assert_int_equal(lockowners_count(lo), 0);
}

int main(void)
{
#define TEST(test) cmocka_unit_test_setup_teardown(test, setup, teardown)
	const struct CMUnitTest tests[] = {
		TEST(test_flush_forgets),
		TEST(test_release_finds_by_handle),
		TEST(test_latest_handle_counts),
		TEST(test_busy_stays_known),
		TEST(test_pid_of_ofd),
		TEST(test_many),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
