/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * test_rgrp_bits.c - sets, state maps and the search for runs, against an
 * array with one byte per block.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "base/prng.h"
#include "fs/rgrp_bits.h"
#include "ondisk/codec.h"

#define BITS_MAX 700u
#define ROUNDS 20000u

static struct ug_prng prng;

static uint32_t below(uint32_t limit)
{
	return (uint32_t)ug_prng_below(&prng, limit);
}

/* A range [start, start + len) within bits, len at least 1. */
static void any_range(uint32_t bits, uint32_t *start, uint32_t *len)
{
	*start = below(bits);
	*len = 1 + below(bits - *start);
	if (below(2))
		*len = 1 + below(UG_MIN(*len, 6u));
}

/* ---- sets ---- */

static void set_to_bytes(const uint64_t *set, uint8_t *bytes, uint32_t bits)
{
	for (uint32_t i = 0; i < bits; i++)
		bytes[i] = set[i / 64] >> i % 64 & 1;
}

static void test_ranges(void **state)
{
	uint64_t set[BITS_MAX / 64 + 1] = { 0 };
	uint8_t want[BITS_MAX] = { 0 }, got[BITS_MAX];
	uint32_t start, len, sum, i;

	ug_prng_seed(&prng, 1);
	for (unsigned r = 0; r < ROUNDS; r++) {
		uint8_t value = (uint8_t)below(2);

		any_range(BITS_MAX, &start, &len);
		memset(want + start, value, len);
		if (value)
			rgrp_bits_set(set, start, len);
		else
			rgrp_bits_clear(set, start, len);
		set_to_bytes(set, got, BITS_MAX);
		assert_memory_equal(want, got, BITS_MAX);
		for (sum = 0, i = 0; i < BITS_MAX; i++)
			sum += want[i];
		assert_int_equal(rgrp_bits_count(set, BITS_MAX), sum);
	}
}

/* ---- state maps ---- */

static enum gfs2_blkst state_at(const uint8_t *map, uint32_t n)
{
	return gfs2_bitmap_get(map, n / 4, 2 * (n % 4));
}

static bool all_are(const uint8_t *map, uint32_t start, uint32_t len,
		    enum gfs2_blkst want)
{
	while (len--)
		if (state_at(map, start++) != want)
			return false;
	return true;
}

static void test_states(void **state)
{
	uint8_t map[BITS_MAX / 4] = { 0 }, want[BITS_MAX] = { 0 };
	uint32_t start, len, i;

	ug_prng_seed(&prng, 2);
	for (unsigned r = 0; r < ROUNDS; r++) {
		enum gfs2_blkst to = (enum gfs2_blkst)below(4);

		any_range(BITS_MAX, &start, &len);
		rgrp_states_set(map, start, len, to);
		memset(want + start, to, len);
		for (i = 0; i < BITS_MAX; i++)
			assert_int_equal(state_at(map, i), want[i]);
		any_range(BITS_MAX, &start, &len);
		to = (enum gfs2_blkst)below(4);
		assert_int_equal(rgrp_states_are(map, start, len, to),
				 all_are(map, start, len, to));
		assert_true(
			rgrp_states_are(map, start, 1, state_at(map, start)));
	}
}

static void test_states_to_set(void **state)
{
	uint8_t map[BITS_MAX / 4];
	uint64_t set[2 * (BITS_MAX / 64 + 1)];
	uint32_t i;

	ug_prng_seed(&prng, 3);
	for (unsigned r = 0; r < 2000; r++) {
		uint32_t count = 4 * (1 + below(BITS_MAX / 4));
		uint32_t first = 32 * below(8);

		for (i = 0; i < sizeof(map); i++)
			map[i] = (uint8_t)(below(3) ? below(256) : 0);
		memset(set, 0, sizeof(set));
		rgrp_states_to_set(map, count, set, first);
		for (i = 0; i < 64 * UG_ARRAY_SIZE(set); i++) {
			bool in = i >= first && i < first + count;
			bool free_ = in && state_at(map, i - first) ==
						   GFS2_BLKST_FREE;

			assert_int_equal(set[i / 64] >> i % 64 & 1, free_);
		}
	}
}

/* ---- search ---- */

static bool usable(const uint8_t *avail, const uint8_t *avoid, uint32_t i)
{
	return avail[i] && !(avoid && avoid[i]);
}

static uint32_t length_at(const uint8_t *avail, const uint8_t *avoid,
			  uint32_t bits, uint32_t i)
{
	uint32_t n = 0;

	while (i + n < bits && usable(avail, avoid, i + n))
		n++;
	return n;
}

static uint32_t longest(const uint8_t *avail, const uint8_t *avoid,
			uint32_t bits)
{
	uint32_t best = 0, i;

	for (i = 0; i < bits; i++)
		best = UG_MAX(best, length_at(avail, avoid, bits, i));
	return best;
}

/* The first place, from the goal on and round, with want blocks in a row. */
static uint32_t first_fit(const uint8_t *avail, const uint8_t *avoid,
			  uint32_t bits, uint32_t from, uint32_t want)
{
	for (uint32_t k = 0; k < bits; k++) {
		uint32_t i = (from + k) % bits;

		if (length_at(avail, avoid, bits, i) >= want)
			return i;
	}
	return bits;
}

static void check_find(const uint64_t *set, const uint64_t *soft,
		       const uint8_t *avail, const uint8_t *avoid,
		       uint32_t bits)
{
	uint32_t from = below(bits + 2), want = 1 + below(60);
	struct rgrp_run run = rgrp_run_find(set, soft, bits, from, want);
	uint32_t max = longest(avail, avoid, bits);
	uint32_t start =
		first_fit(avail, avoid, bits, from >= bits ? 0 : from, want);

	assert_int_equal(run.len, UG_MIN(max, want));
	if (!run.len)
		return;
	assert_true(length_at(avail, avoid, bits, run.start) >= run.len);
	if (max >= want)
		assert_int_equal(run.start, start);
}

/* Runs of random lengths; dense says how much of it is set. */
static void fill(uint64_t *set, uint8_t *bytes, uint32_t bits, unsigned dense)
{
	uint32_t i = 0;

	memset(set, 0, 8 * rgrp_words(bits));
	memset(bytes, 0, bits);
	while (i < bits) {
		uint32_t n = 1 + below(below(4) ? 5 : 150);

		n = UG_MIN(n, bits - i);
		if (below(100) < dense) {
			rgrp_bits_set(set, i, n);
			memset(bytes + i, 1, n);
		}
		i += n;
	}
}

static void test_find(void **state)
{
	uint64_t set[BITS_MAX / 64 + 1], soft[BITS_MAX / 64 + 1];
	uint8_t avail[BITS_MAX], avoid[BITS_MAX];

	ug_prng_seed(&prng, 4);
	for (unsigned r = 0; r < ROUNDS / 4; r++) {
		uint32_t bits = 4 * (1 + below(BITS_MAX / 4));
		unsigned dense = below(101);

		fill(set, avail, bits, dense);
		fill(soft, avoid, bits, below(60));
		check_find(set, NULL, avail, NULL, bits);
		check_find(set, soft, avail, avoid, bits);
	}
}

static void test_run_length(void **state)
{
	uint64_t set[BITS_MAX / 64 + 1];
	uint8_t avail[BITS_MAX];

	ug_prng_seed(&prng, 5);
	for (unsigned r = 0; r < ROUNDS / 4; r++) {
		uint32_t start = below(BITS_MAX);
		uint32_t max = 1 + below(BITS_MAX - start);

		fill(set, avail, BITS_MAX, 90);
		assert_int_equal(
			rgrp_run_length(set, start, max),
			UG_MIN(max, length_at(avail, NULL, BITS_MAX, start)));
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_ranges),
		cmocka_unit_test(test_states),
		cmocka_unit_test(test_states_to_set),
		cmocka_unit_test(test_find),
		cmocka_unit_test(test_run_length),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
