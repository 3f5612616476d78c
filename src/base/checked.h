/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * checked.h - arithmetic on numbers that came from outside.
 *
 * Each function returns true and writes *out if the mathematical result fits,
 * else false and leaves *out alone. Pure.
 */
#ifndef UG_BASE_CHECKED_H
#define UG_BASE_CHECKED_H

#include <stdbool.h>
#include <stdint.h>

#include "base/compiler.h"

static inline ug_must_check bool ug_add_u64(uint64_t a, uint64_t b,
					    uint64_t *out)
{
	uint64_t sum;

	if (__builtin_add_overflow(a, b, &sum))
		return false;
	*out = sum;
	return true;
}

static inline ug_must_check bool ug_mul_u64(uint64_t a, uint64_t b,
					    uint64_t *out)
{
	uint64_t product;

	if (__builtin_mul_overflow(a, b, &product))
		return false;
	*out = product;
	return true;
}

/* [offset, offset + len) lies within [0, limit). Never overflows. */
static inline bool ug_range_within(uint64_t offset, uint64_t len,
				   uint64_t limit)
{
	return offset <= limit && len <= limit - offset;
}

static inline bool ug_is_power_of_2(uint64_t x)
{
	return x != 0 && (x & (x - 1)) == 0;
}

/* x must not be 0. */
static inline unsigned ug_log2_u64(uint64_t x)
{
	return 63u - (unsigned)__builtin_clzll(x);
}

#endif
