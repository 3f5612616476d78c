/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * plocksim.c - run schedules: faults first, then peace, then everything given
 * back.
 *
 *   plocksim [--runs N] [--seed N] [--trace]
 */
#include <getopt.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>

#include "base/compiler.h"
#include "plocksim.h"

static uint64_t seed_under_way;

static void on_abort(int signal)
{
	(void)signal;
	printf("FAILED: the engine has aborted; replay: --seed %llu --trace\n",
	       (unsigned long long)seed_under_way);
	fflush(stdout);
}

static void wait_for_peace(struct world *w)
{
	for (unsigned i = 0; i < 300; i++) {
		world_run(w, w->now_ns + 50 * MS);
		if (i >= 10 && world_is_settled(w) && !world_messages() &&
		    !world_throttled(w))
			return;
	}
	fail(w, "%s",
	     world_is_settled(w) ? "messages are always under way"
				 : "an epoch does not settle");
}

static void wait_for_drain(struct world *w)
{
	for (unsigned i = 0; i < 200 && procs_left(w); i++)
		world_run(w, w->now_ns + 100 * MS);
	if (procs_left(w))
		procs_print(w);
	if (procs_left(w))
		fail(w, "%u owners get no answer, or do not get rid of locks",
		     procs_left(w));
}

static void one_schedule(uint64_t seed, bool trace, struct world *totals)
{
	static struct world world;
	struct world *w = &world;

	memset(w, 0, sizeof(*w));
	seed_under_way = seed;
	w->trace = trace;
	world_setup(w, seed);
	world_run(w, 350 * MS);
	world_heal(w);
	world_run(w, w->now_ns + 100 * MS);
	w->quiet = true;
	wait_for_peace(w);
	truth_check_quiet(w);
	w->draining = true;
	if (chance(w, 50))
		world_untune(w);
	wait_for_drain(w);
	wait_for_peace(w);
	truth_check_quiet(w);
	world_run(w, w->now_ns + SEC);
	truth_check_empty(w);
	world_end(w);
	totals->steps += w->steps;
	totals->calls += w->calls;
	totals->grants += w->grants;
	totals->deadlocks += w->deadlocks;
	totals->cancelled += w->cancelled;
	totals->faults_done += w->faults_done;
	totals->epochs += w->epochs;
	totals->nomems += w->nomems;
	totals->moves += w->moves;
	totals->lends += w->lends;
	totals->recalls += w->recalls;
	totals->bounces += w->bounces;
	totals->delayed += w->delayed;
}

static void usage(void)
{
	printf("usage: plocksim [--runs N] [--seed N] [--trace]\n");
	exit(2);
}

static void print(const char *what, uint64_t count)
{
	printf(", %llu %s", (unsigned long long)count, what);
}

int main(int argc, char **argv)
{
	static const struct option options[] = {
		{ "runs", required_argument, NULL, 'r' },
		{ "seed", required_argument, NULL, 's' },
		{ "trace", no_argument, NULL, 't' },
		{ 0 },
	};
	static struct world totals;
	uint64_t runs = 1, seed = 1;
	bool trace = false;
	int option;

	while ((option = getopt_long(argc, argv, "", options, NULL)) != -1) {
		if (option == 'r')
			runs = strtoull(optarg, NULL, 0);
		else if (option == 's')
			seed = strtoull(optarg, NULL, 0);
		else if (option == 't')
			trace = true;
		else
			usage();
	}
	signal(SIGABRT, on_abort);
	for (uint64_t i = 0; i < runs; i++)
		one_schedule(seed + i, trace, &totals);
	printf("%llu schedules from seed %llu", (unsigned long long)runs,
	       (unsigned long long)seed);
	print("steps", totals.steps);
	print("calls", totals.calls);
	print("grants", totals.grants);
	print("cancelled", totals.cancelled);
	print("deadlocks", totals.deadlocks);
	print("faults", totals.faults_done);
	print("epochs", totals.epochs);
	print("moves", totals.moves);
	print("lends", totals.lends);
	print("recalls", totals.recalls);
	print("bounces", totals.bounces);
	print("delays", totals.delayed);
	print("times no memory", totals.nomems);
	printf("\n");
	return 0;
}
