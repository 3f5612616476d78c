/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * clock.h - the one clock of the edges in this folder: monotonic, in ns.
 */
#ifndef UG_CLUSTER_CLOCK_H
#define UG_CLUSTER_CLOCK_H

#include <stdint.h>
#include <time.h>

#define NS_PER_SEC 1000000000u
#define NS_PER_MS 1000000u

static inline uint64_t clock_now_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * NS_PER_SEC + (uint64_t)ts.tv_nsec;
}

/* For poll(2): until then, rounded up; 0 if it is past, at most a minute. */
static inline int clock_poll_ms(uint64_t due_ns)
{
	uint64_t now = clock_now_ns();

	if (due_ns <= now)
		return 0;
	if (due_ns - now > 60 * (uint64_t)NS_PER_SEC)
		return 60000;
	return (int)((due_ns - now) / NS_PER_MS + 1);
}

#endif
