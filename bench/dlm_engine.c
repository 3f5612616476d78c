/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * dlm_engine.c - what the lock engine alone costs: one member, no messages.
 *
 *	lock+unlock	an EX lock and its unlock of a resource that is mastered
 *			here and cached, others being held (HELD of them)
 *	convert		NL to EX and EX to NL of a held lock, per conversion
 *	first lock	of a resource that is not known yet, in the run that
 *			measures memory, so with the page faults
 *	memory		per held NL lock, of COUNT resources with names as GFS2
 *			has them (24 bytes), without a value block (inodes) and
 *			with one of 32 bytes (resource groups); what malloc()
 *			has given out, and the resident size
 *
 * Usage: dlm_engine [COUNT [ROUNDS [HELD]]]
 *	  dlm_engine --recovery [COUNT [NODES [BUSY]]]	(dlm_recovery.c)
 * Prints each round, and the best. CPU time of this thread, so that others on
 * the machine count as little as possible.
 */
#include <malloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/compiler.h"
#include "dlm_engine.h"

#define PAIRS 1000000u

static struct dlm_engine *engine;
static struct dlm_updates out;
static unsigned held = 10000;
static uint8_t lvb[DLM_LVB_MAX];

void bench_die(const char *what, int error)
{
	fprintf(stderr, "dlm_engine: %s: error %d\n", what, error);
	exit(1);
}

double bench_cpu_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &ts);
	return (double)ts.tv_sec * 1e9 + (double)ts.tv_nsec;
}

void bench_name(struct dlm_name *name, unsigned kind, unsigned n)
{
	char text[32];

	snprintf(text, sizeof(text), "%8x%16x", kind, n);
	name->len = 24;
	memcpy(name->bytes, text, 24);
}

/* Every call here is granted or done at once. */
static void give(struct dlm_event *event, const char *what)
{
	int error = dlm_step(engine, event, &out);

	if (error)
		bench_die(what, error);
	if (event->kind == DLM_EV_LOCK &&
	    (out.count != 1 || out.list[0].cast.status))
		bench_die(what, (int)out.count);
	dlm_updates_clear(&out);
}

static void start(void)
{
	struct dlm_config config = {
		.nodeid = 1, .incarnation = 1, .lvblen = 32, .seed = 1
	};
	struct dlm_member self = { .nodeid = 1, .weight = 1, .incarnation = 1 };
	struct dlm_event event = { .kind = DLM_EV_START };
	int error = dlm_engine_new(&config, &engine);

	if (error)
		bench_die("engine", error);
	event.start.members = &self;
	event.start.count = 1;
	give(&event, "start");
	if (!dlm_is_running(engine))
		bench_die("start", 0);
}

static uint32_t lock(unsigned n, enum dlm_mode mode, bool block)
{
	struct dlm_event event = { .kind = DLM_EV_LOCK };

	event.lock.mode = mode;
	event.lock.wants_bast = true;
	if (block) {
		event.lock.flags = LKF_VALBLK;
		event.lock.lvb = lvb;
	}
	bench_name(&event.lock.name, 2, n);
	give(&event, "lock");
	return event.lock.lkid;
}

static void unlock(uint32_t lkid)
{
	struct dlm_event event = { .kind = DLM_EV_UNLOCK };

	event.unlock.lkid = lkid;
	give(&event, "unlock");
}

static void convert(uint32_t lkid, enum dlm_mode mode)
{
	struct dlm_event event = { .kind = DLM_EV_LOCK };

	event.lock.mode = mode;
	event.lock.flags = LKF_CONVERT;
	event.lock.lkid = lkid;
	event.lock.wants_bast = true;
	give(&event, "convert");
}

/* The name is made outside of the measured part. */
static double lock_unlock(void)
{
	struct dlm_event event = { .kind = DLM_EV_LOCK };
	double from;

	event.lock.mode = LKM_EX;
	event.lock.wants_bast = true;
	event.lock.name.len = 24;
	memset(event.lock.name.bytes, 'n', 24);
	from = bench_cpu_ns();
	for (unsigned i = 0; i < PAIRS; i++) {
		give(&event, "lock");
		unlock(event.lock.lkid);
	}
	return (bench_cpu_ns() - from) / PAIRS;
}

static double convert_pairs(void)
{
	uint32_t lkid = lock(held, LKM_NL, false);
	double from = bench_cpu_ns();

	for (unsigned i = 0; i < PAIRS; i++) {
		convert(lkid, LKM_EX);
		convert(lkid, LKM_NL);
	}
	from = bench_cpu_ns() - from;
	unlock(lkid);
	return from / PAIRS / 2;
}

static size_t allocated(void)
{
	struct mallinfo2 info = mallinfo2();

	return info.uordblks + info.hblkhd;
}

static size_t resident(void)
{
	FILE *statm = fopen("/proc/self/statm", "r");
	size_t total, pages = 0;

	if (!statm || fscanf(statm, "%zu %zu", &total, &pages) != 2)
		bench_die("/proc/self/statm", 0);
	fclose(statm);
	return pages * 4096;
}

static void memory(unsigned count, bool block)
{
	size_t given, before = allocated(), rss = resident();
	double from;

	start();
	from = bench_cpu_ns();
	for (unsigned i = 0; i < count; i++)
		lock(i, LKM_NL, block);
	from = bench_cpu_ns() - from;
	given = allocated() - before;
	printf("memory %s value block: %.0f bytes allocated, %.0f resident, "
	       "per lock of %u; first lock %.0f ns\n",
	       block ? "with" : "without", (double)given / count,
	       (double)(resident() - rss) / count, count, from / count);
	dlm_engine_free(engine);
	malloc_trim(0);
}

static unsigned argument(int argc, char **argv, int n, unsigned preset)
{
	return argc > n ? (unsigned)strtoul(argv[n], NULL, 0) : preset;
}

static void measure_calls(unsigned count, unsigned rounds)
{
	double best_lock = 1e12, best_convert = 1e12;

	if (!count || !rounds)
		bench_die("COUNT and ROUNDS must not be 0", 0);
	memory(count, false);
	memory(count, true);
	start();
	for (unsigned i = 0; i < held; i++)
		lock(i, LKM_NL, true);
	for (unsigned r = 0; r < rounds; r++) {
		double a = lock_unlock(), b = convert_pairs();

		printf("round %u: lock+unlock %.0f ns, convert %.0f ns\n",
		       r + 1, a, b);
		best_lock = UG_MIN(best_lock, a);
		best_convert = UG_MIN(best_convert, b);
	}
	printf("best: lock+unlock %.0f ns, convert %.0f ns, with %u held\n",
	       best_lock, best_convert, held);
	dlm_engine_free(engine);
	dlm_updates_free(&out);
}

int main(int argc, char **argv)
{
	if (argc > 1 && strcmp(argv[1], "--recovery") == 0) {
		measure_recovery(argument(argc, argv, 2, 100000),
				 argument(argc, argv, 3, 3),
				 argument(argc, argv, 4, 10000));
		return 0;
	}
	held = argument(argc, argv, 3, held);
	measure_calls(argument(argc, argv, 1, 1000000),
		      argument(argc, argv, 2, 5));
	return 0;
}
