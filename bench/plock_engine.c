/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * plock_engine.c - what the range engine alone costs.
 *
 *	lock+unlock	one byte in the middle of a file on which HELD other
 *			locks of one byte each are held, by one owner, or each
 *			by its own
 *	memory		of these: bytes in use per lock, owners apart
 *	close		of that one owner
 *	hand-over	WAITERS wait for one byte: the holder unlocks, the next
 *			one is granted, until nobody waits; queueing them
 *
 * Usage: plock_engine [ROUNDS [WAITERS]]
 * The best of ROUNDS. CPU time of this thread.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "base/compiler.h"
#include "plock/range.h"

#define PAIRS 200000u

static struct ranges *ranges;
static struct range_table table;

static void die(const char *what, int error)
{
	fprintf(stderr, "plock_engine: %s: error %d\n", what, error);
	exit(1);
}

static double cpu_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &ts);
	return (double)ts.tv_sec * 1e9 + (double)ts.tv_nsec;
}

static void begin(void)
{
	struct range_config config = { 0 };

	if (ranges_new(&config, &ranges))
		die("ranges", ENOMEM);
	range_table_init(ranges, &table);
}

static int set(uint64_t owner, enum range_mode mode, uint64_t start, bool wait)
{
	struct range_request req = { .who = { .node = 1, .owner = owner },
				     .mode = mode,
				     .start = start,
				     .end = start,
				     .wait = wait,
				     .fair = true,
				     .ctx = owner };

	return range_set(ranges, &table, &req);
}

/* Every second byte is locked: nothing merges. */
static void hold(unsigned held, bool one_owner)
{
	for (unsigned i = 0; i < held; i++) {
		int error = set(one_owner ? 1 : i + 1, RANGE_WRITE, 2ull * i,
				false);

		if (error)
			die("hold", error);
	}
}

/* At places all over the file: what is not in the cache counts. */
static double pairs(unsigned held)
{
	uint64_t at = 1, span = held ? held : 1;
	double from = cpu_ns();

	for (unsigned i = 0; i < PAIRS; i++) {
		at = (at * 6364136223846793005u + 1442695040888963407u);
		if (set(1u << 30, RANGE_WRITE, (at >> 20) % span * 2 + 1,
			false) ||
		    set(1u << 30, RANGE_NONE, (at >> 20) % span * 2 + 1, false))
			die("lock", 0);
	}
	return (cpu_ns() - from) / PAIRS;
}

static void measure(unsigned held, bool one_owner, unsigned rounds)
{
	struct range_owner who = { .node = 1, .owner = 1 };
	struct range_counts counts;
	double best = 1e18, close;

	begin();
	hold(held, one_owner);
	for (unsigned r = 0; r < rounds; r++) {
		double ns = pairs(held);

		printf("round %u: %.0f ns\n", r + 1, ns);
		best = UG_MIN(best, ns);
	}
	ranges_count(ranges, &counts);
	printf("lock+unlock %.0f ns with %u held by %s", best, held,
	       one_owner ? "one owner" : "as many owners");
	if (held > 1)
		printf(", %.1f bytes per lock, all in all",
		       (double)counts.bytes / held);
	close = cpu_ns();
	range_close(ranges, &table, &who);
	printf(", close %.3f ms\n", (cpu_ns() - close) / 1e6);
	ranges_free(ranges);
}

static void hand_over(unsigned waiters)
{
	struct range_done done;
	double queue, over;

	begin();
	if (set(1, RANGE_WRITE, 0, false))
		die("lock", 0);
	queue = cpu_ns();
	for (unsigned i = 2; i < waiters + 2; i++) {
		if (set(i, RANGE_WRITE, 0, true) != -EINPROGRESS)
			die("wait", 0);
	}
	queue = cpu_ns() - queue;
	over = cpu_ns();
	for (unsigned i = 1; i < waiters + 1; i++) {
		if (set(i, RANGE_NONE, 0, false) ||
		    !range_next_done(ranges, &done) || done.ctx != i + 1 ||
		    range_next_done(ranges, &done))
			die("hand over", (int)i);
	}
	over = cpu_ns() - over;
	printf("%u waiters on one byte: queue %.0f ns each, hand over %.0f ns "
	       "each\n",
	       waiters, queue / waiters, over / waiters);
	ranges_free(ranges);
}

int main(int argc, char **argv)
{
	static const unsigned held[] = { 1, 1000, 1000000 };
	unsigned rounds = argc > 1 ? (unsigned)strtoul(argv[1], NULL, 0) : 3;
	unsigned waiters =
		argc > 2 ? (unsigned)strtoul(argv[2], NULL, 0) : 100000;

	if (!rounds || !waiters)
		die("usage: plock_engine [ROUNDS [WAITERS]]", 0);
	for (unsigned i = 0; i < UG_ARRAY_SIZE(held); i++) {
		measure(held[i], true, rounds);
		measure(held[i], false, rounds);
	}
	hand_over(waiters);
	return 0;
}
