/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * test_ints.c - big-endian integers byte by byte, checked arithmetic at its
 * bounds, the random sequence against its published values.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/be.h"
#include "base/checked.h"
#include "base/prng.h"

static void test_big_endian(void **state)
{
	be16 a = be16_of(0x0102);
	be32 b = be32_of(0x01020304);
	be64 c = be64_of(0x0102030405060708);

	assert_memory_equal(&a, "\1\2", 2);
	assert_memory_equal(&b, "\1\2\3\4", 4);
	assert_memory_equal(&c, "\1\2\3\4\5\6\7\10", 8);
	assert_int_equal(be16_get(a), 0x0102);
	assert_int_equal(be32_get(b), 0x01020304);
	assert_int_equal(be64_get(c), 0x0102030405060708);
}

static void test_any_byte_address(void **state)
{
	uint8_t bytes[16] = { 0 };
	be64 *odd = (be64 *)(bytes + 3);

	*odd = be64_of(UINT64_MAX - 1);
	assert_int_equal(be64_get(*odd), UINT64_MAX - 1);
	assert_int_equal(bytes[2], 0);
	assert_int_equal(bytes[11], 0);
}

static void test_checked_arithmetic(void **state)
{
	uint64_t out = 42;

	assert_false(ug_add_u64(UINT64_MAX, 1, &out));
	assert_false(ug_mul_u64(UINT64_MAX, 2, &out));
	assert_int_equal(out, 42);
	assert_true(ug_add_u64(UINT64_MAX - 1, 1, &out));
	assert_int_equal(out, UINT64_MAX);
	assert_true(ug_mul_u64(1ull << 32, 1ull << 31, &out));
	assert_int_equal(out, 1ull << 63);
}

static void test_ranges(void **state)
{
	assert_true(ug_range_within(0, 10, 10));
	assert_true(ug_range_within(10, 0, 10));
	assert_false(ug_range_within(1, 10, 10));
	assert_false(ug_range_within(11, 0, 10));
	assert_false(ug_range_within(2, UINT64_MAX, 10));
	assert_false(ug_range_within(UINT64_MAX, 2, 10));
}

static void test_powers(void **state)
{
	assert_false(ug_is_power_of_2(0));
	assert_true(ug_is_power_of_2(1));
	assert_false(ug_is_power_of_2(3));
	assert_true(ug_is_power_of_2(1ull << 63));
	assert_int_equal(ug_log2_u64(1), 0);
	assert_int_equal(ug_log2_u64(4096), 12);
	assert_int_equal(ug_log2_u64(UINT64_MAX), 63);
}

static void test_prng_is_the_published_one(void **state)
{
	struct ug_prng prng;

	ug_prng_seed(&prng, 1234567);
	assert_int_equal(ug_prng_u64(&prng), 6457827717110365317u);
	assert_int_equal(ug_prng_u64(&prng), 3203168211198807973u);
	assert_int_equal(ug_prng_u64(&prng), 9817491932198370423u);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_big_endian),
		cmocka_unit_test(test_any_byte_address),
		cmocka_unit_test(test_checked_arithmetic),
		cmocka_unit_test(test_ranges),
		cmocka_unit_test(test_powers),
		cmocka_unit_test(test_prng_is_the_published_one),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
