/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * prng.h - a seeded sequence of numbers: same seed, same numbers, everywhere.
 *
 * The generator is SplitMix64 (Steele, Lea, Flood: "Fast splittable
 * pseudorandom number generators", 2014). For tests, for spreading load; not
 * for secrets. Pure.
 */
#ifndef UG_BASE_PRNG_H
#define UG_BASE_PRNG_H

#include <stdint.h>

struct ug_prng {
	uint64_t state;
};

static inline void ug_prng_seed(struct ug_prng *prng, uint64_t seed)
{
	prng->state = seed;
}

static inline uint64_t ug_prng_u64(struct ug_prng *prng)
{
	uint64_t z = prng->state += 0x9e3779b97f4a7c15u;

	z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
	z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
	return z ^ (z >> 31);
}

/* A number below limit, which must not be 0. The bias is below limit/2^64. */
static inline uint64_t ug_prng_below(struct ug_prng *prng, uint64_t limit)
{
	return ug_prng_u64(prng) % limit;
}

#endif
