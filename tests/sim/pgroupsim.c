/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * pgroupsim.c - run schedules of plock_mode=group: faults first, then peace,
 * then everything given back.
 *
 *   pgroupsim [--runs N] [--seed N] [--trace]
 */
#include <getopt.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>

#include "pgroupsim.h"

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
	for (unsigned i = 0; i < 400; i++) {
		gworld_run(w, w->now_ns + 50 * MS);
		if (i >= 10 && gworld_is_quiet(w))
			return;
	}
	fail(w, "messages are always under way, or a newcomer gets no tables");
}

static void wait_for_drain(struct world *w)
{
	for (unsigned i = 0; i < 400 && procs_left(w); i++)
		gworld_run(w, w->now_ns + 100 * MS);
	if (!procs_left(w))
		return;
	procs_print(w);
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
	w->group = true;
	gworld_setup(w, seed);
	gworld_run(w, 350 * MS);
	gworld_heal(w);
	gworld_run(w, w->now_ns + 100 * MS);
	w->quiet = true;
	wait_for_peace(w);
	gtruth_check_quiet(w);
	w->draining = true;
	wait_for_drain(w);
	gworld_run(w, w->now_ns + SEC);
	wait_for_peace(w);
	gtruth_check_quiet(w);
	gtruth_check_empty(w);
	gworld_end(w);
	totals->steps += w->steps;
	totals->calls += w->calls;
	totals->grants += w->grants;
	totals->cancelled += w->cancelled;
	totals->faults_done += w->faults_done;
	totals->epochs += w->epochs;
	totals->nomems += w->nomems;
	totals->moves += w->moves;
	totals->lends += w->lends;
	totals->recalls += w->recalls;
}

static void usage(void)
{
	printf("usage: pgroupsim [--runs N] [--seed N] [--trace]\n");
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
	print("faults", totals.faults_done);
	print("changes", totals.epochs);
	print("records published", totals.moves);
	print("files dropped", totals.lends);
	print("tables compared", totals.recalls);
	print("times no memory", totals.nomems);
	printf("\n");
	return 0;
}
