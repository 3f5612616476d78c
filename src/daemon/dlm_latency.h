/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * dlm_latency.h - how long operations took: a histogram with 16 steps for each
 * power of two, so percentiles are right to 6 percent. Pure; for one thread.
 */
#ifndef UG_DAEMON_DLM_LATENCY_H
#define UG_DAEMON_DLM_LATENCY_H

#include <stdint.h>

/* Up to 2^40 ns, 18 minutes; longer ones count as that. */
#define LATENCY_BUCKETS ((40 - 3) * 16)

struct latency {
	uint64_t count;
	uint64_t sum_ns;
	uint64_t max_ns;
	uint32_t bucket[LATENCY_BUCKETS];
};

void latency_add(struct latency *l, uint64_t ns);
void latency_merge(struct latency *to, const struct latency *from);
/* At least this share of all took at most so long; 0 if there are none. */
uint64_t latency_percentile(const struct latency *l, double percent);
double latency_mean(const struct latency *l);

#endif
