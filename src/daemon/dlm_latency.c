/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * dlm_latency.c - see dlm_latency.h.
 */
#include "base/compiler.h"
#include "daemon/dlm_latency.h"

static unsigned bucket_of(uint64_t ns)
{
	unsigned power;

	if (ns < 16)
		return (unsigned)ns;
	power = 63u - (unsigned)__builtin_clzll(ns);
	if (power >= 40)
		return LATENCY_BUCKETS - 1;
	return (power - 3) * 16 + ((ns >> (power - 4)) & 15);
}

/* The highest value that falls into it. */
static uint64_t bucket_top(unsigned bucket)
{
	unsigned power = bucket / 16 + 3;

	if (bucket < 16)
		return bucket;
	return ((uint64_t)(bucket % 16 + 17) << (power - 4)) - 1;
}

void latency_add(struct latency *l, uint64_t ns)
{
	l->count++;
	l->sum_ns += ns;
	l->max_ns = UG_MAX(l->max_ns, ns);
	l->bucket[bucket_of(ns)]++;
}

void latency_merge(struct latency *to, const struct latency *from)
{
	to->count += from->count;
	to->sum_ns += from->sum_ns;
	to->max_ns = UG_MAX(to->max_ns, from->max_ns);
	for (unsigned i = 0; i < LATENCY_BUCKETS; i++)
		to->bucket[i] += from->bucket[i];
}

uint64_t latency_percentile(const struct latency *l, double percent)
{
	double want = (double)l->count * percent / 100;
	uint64_t seen = 0;

	for (unsigned i = 0; l->count && i < LATENCY_BUCKETS; i++) {
		seen += l->bucket[i];
		if (seen && (double)seen >= want)
			return UG_MIN(bucket_top(i), l->max_ns);
	}
	return l->max_ns;
}

double latency_mean(const struct latency *l)
{
	return l->count ? (double)l->sum_ns / (double)l->count : 0;
}
