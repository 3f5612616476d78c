/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * test_logmap.c - the two small structures of the journal, against naive ones.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "base/prng.h"
#include "journal/logmap.h"
#include "journal/revoke.h"

static void test_one_extent(void **state)
{
	struct logmap map;
	uint32_t run;

	logmap_init(&map);
	assert_int_equal(logmap_add(&map, 100, 10), 0);
	assert_int_equal(logmap_add(&map, 110, 0), 0);
	assert_int_equal(logmap_add(&map, 110, 5), 0);
	assert_int_equal(map.extents_count, 1);
	assert_int_equal(map.blocks, 15);
	assert_int_equal(logmap_addr(&map, 0, &run), 100);
	assert_int_equal(run, 15);
	assert_int_equal(logmap_addr(&map, 14, &run), 114);
	assert_int_equal(run, 1);
	assert_true(logmap_contains(&map, 114));
	assert_false(logmap_contains(&map, 115));
	assert_false(logmap_contains(&map, 99));
	logmap_fini(&map);
}

static void test_many_extents(void **state)
{
	uint64_t oracle[1000];
	struct ug_prng prng;
	struct logmap map;
	uint32_t n = 0, run;

	ug_prng_seed(&prng, 1);
	logmap_init(&map);
	while (n < 900) {
		uint32_t count = 1 + (uint32_t)ug_prng_below(&prng, 9);
		uint64_t addr = ug_prng_below(&prng, 1u << 30);

		assert_int_equal(logmap_add(&map, addr, count), 0);
		for (uint32_t i = 0; i < count; i++)
			oracle[n++] = addr + i;
	}
	assert_int_equal(map.blocks, n);
	for (uint32_t i = 0; i < n; i++) {
		uint32_t expected = 1;

		while (i + expected < n &&
		       oracle[i + expected] == oracle[i] + expected)
			expected++;
		assert_int_equal(logmap_addr(&map, i, &run), oracle[i]);
		assert_int_equal(run, expected);
		assert_true(logmap_contains(&map, oracle[i]));
	}
	logmap_fini(&map);
}

static void test_too_big(void **state)
{
	struct logmap map;

	logmap_init(&map);
	assert_int_equal(logmap_add(&map, 0, UINT32_MAX), 0);
	assert_int_equal(logmap_add(&map, 1ull << 40, 1), -EFBIG);
	assert_int_equal(map.blocks, UINT32_MAX);
	logmap_fini(&map);
}

/* Members are 1 to MEMBERS; 0 in the oracle: not a member. */
#define MEMBERS 300u

static void check_set(const struct revoke_set *set, const uint64_t *oracle)
{
	size_t cursor = 0, found = 0, expected = 0;
	const struct revoke *rv;

	for (uint64_t i = 1; i <= MEMBERS; i++) {
		rv = revoke_set_find(set, i * 8);
		assert_int_equal(rv ? rv->rv_value : 0, oracle[i]);
		expected += oracle[i] != 0;
	}
	while ((rv = revoke_set_next(set, &cursor))) {
		assert_int_equal(rv->rv_value, oracle[rv->rv_blkno / 8]);
		found++;
	}
	assert_int_equal(found, expected);
	assert_int_equal(set->rs_count, expected);
}

static void test_revoke_set(void **state)
{
	uint64_t oracle[MEMBERS + 1] = { 0 };
	struct revoke_set set;
	struct ug_prng prng;

	ug_prng_seed(&prng, 2);
	revoke_set_init(&set);
	check_set(&set, oracle);
	for (unsigned i = 0; i < 20000; i++) {
		uint64_t n = 1 + ug_prng_below(&prng, MEMBERS);

		/* Grows and shrinks by turns. */
		if (ug_prng_below(&prng, 1000) < (i / 2000 % 2 ? 300 : 700)) {
			uint64_t value = 1 + ug_prng_below(&prng, 1000);

			assert_int_equal(
				revoke_set_reserve(&set, set.rs_count + 1), 0);
			assert_int_equal(revoke_set_put(&set, n * 8, value),
					 oracle[n] == 0);
			oracle[n] = value;
		} else {
			assert_int_equal(revoke_set_remove(&set, n * 8),
					 oracle[n] != 0);
			oracle[n] = 0;
		}
		if (i % 100 == 0)
			check_set(&set, oracle);
	}
	revoke_set_fini(&set);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_one_extent),
		cmocka_unit_test(test_many_extents),
		cmocka_unit_test(test_too_big),
		cmocka_unit_test(test_revoke_set),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
