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
 * Prints each round, and the best. CPU time of this thread, so that others on
 * the machine count as little as possible.
 */
#include <malloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/compiler.h"
#include "dlm/dlm.h"

#define PAIRS 1000000u

static struct dlm_engine *engine;
static struct dlm_updates out;
static unsigned held = 10000;
static uint8_t lvb[DLM_LVB_MAX];

static void die(const char *what, int error)
{
	fprintf(stderr, "dlm_engine: %s: error %d\n", what, error);
	exit(1);
}

static double cpu_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &ts);
	return (double)ts.tv_sec * 1e9 + (double)ts.tv_nsec;
}

/* Every call here is granted or done at once. */
static void give(struct dlm_event *event, const char *what)
{
	int error = dlm_step(engine, event, &out);

	if (error)
		die(what, error);
	if (event->kind == DLM_EV_LOCK &&
	    (out.count != 1 || out.list[0].cast.status))
		die(what, (int)out.count);
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
		die("engine", error);
	event.start.members = &self;
	event.start.count = 1;
	give(&event, "start");
	if (!dlm_is_running(engine))
		die("start", 0);
}

static uint32_t lock(unsigned n, enum dlm_mode mode, bool block)
{
	struct dlm_event event = { .kind = DLM_EV_LOCK };
	char name[32];

	event.lock.mode = mode;
	event.lock.wants_bast = true;
	if (block) {
		event.lock.flags = LKF_VALBLK;
		event.lock.lvb = lvb;
	}
	snprintf(name, sizeof(name), "%8x%16x", 2, n);
	event.lock.name.len = 24;
	memcpy(event.lock.name.bytes, name, 24);
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
	from = cpu_ns();
	for (unsigned i = 0; i < PAIRS; i++) {
		give(&event, "lock");
		unlock(event.lock.lkid);
	}
	return (cpu_ns() - from) / PAIRS;
}

static double convert_pairs(void)
{
	uint32_t lkid = lock(held, LKM_NL, false);
	double from = cpu_ns();

	for (unsigned i = 0; i < PAIRS; i++) {
		convert(lkid, LKM_EX);
		convert(lkid, LKM_NL);
	}
	from = cpu_ns() - from;
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
		die("/proc/self/statm", 0);
	fclose(statm);
	return pages * 4096;
}

static void memory(unsigned count, bool block)
{
	size_t given, before = allocated(), rss = resident();
	double from;

	start();
	from = cpu_ns();
	for (unsigned i = 0; i < count; i++)
		lock(i, LKM_NL, block);
	from = cpu_ns() - from;
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

int main(int argc, char **argv)
{
	unsigned count = argument(argc, argv, 1, 1000000);
	unsigned rounds = argument(argc, argv, 2, 5);
	double best_lock = 1e12, best_convert = 1e12;

	held = argument(argc, argv, 3, held);
	if (!count || !rounds)
		die("usage: dlm_engine [COUNT [ROUNDS [HELD]]]", 0);
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
	return 0;
}
