/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * test_crc.c - both checksums against known values and against each other's
 * ways of computing. Vectors: docs/spec/gfs2-ondisk.md 1.5, 11.1.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/crc.h"
#include "base/prng.h"

static void test_vectors(void **state)
{
	static const uint8_t zeroes[4044];

	assert_int_equal(ug_crc32("123456789", 9), 0xcbf43926);
	assert_int_equal(ug_crc32("", 0), 0);
	assert_int_equal(ug_crc32c_raw("123456789", 9), 0x1cf96d7c);
	assert_int_equal(ug_crc32c_raw(zeroes, sizeof(zeroes)), 0x53f759ce);
	assert_int_equal(ug_crc32c_raw_portable("123456789", 9), 0x1cf96d7c);
	assert_int_equal(ug_crc32c_raw("", 0), UINT32_MAX);
}

static void test_parts_equal_the_whole(void **state)
{
	uint8_t data[257];
	struct ug_prng prng;

	ug_prng_seed(&prng, 1);
	for (size_t i = 0; i < sizeof(data); i++)
		data[i] = (uint8_t)ug_prng_u64(&prng);
	for (size_t cut = 0; cut <= sizeof(data); cut++) {
		uint32_t crc = ug_crc32(data, cut);

		crc = ug_crc32_add(crc, data + cut, sizeof(data) - cut);
		assert_int_equal(crc, ug_crc32(data, sizeof(data)));
	}
}

static void test_both_ways_agree(void **state)
{
	uint8_t data[8192];
	struct ug_prng prng;

	ug_prng_seed(&prng, 2);
	for (size_t i = 0; i < sizeof(data); i++)
		data[i] = (uint8_t)ug_prng_u64(&prng);
	for (int i = 0; i < 2000; i++) {
		size_t start = ug_prng_below(&prng, 64);
		size_t len = ug_prng_below(&prng, sizeof(data) - start + 1);

		assert_int_equal(ug_crc32c_raw(data + start, len),
				 ug_crc32c_raw_portable(data + start, len));
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_vectors),
		cmocka_unit_test(test_parts_equal_the_whole),
		cmocka_unit_test(test_both_ways_agree),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
