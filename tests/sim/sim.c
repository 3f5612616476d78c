/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * sim.c - run schedules: faults first, then peace, then everything given back.
 *
 *   sim [--runs N] [--seed N] [--trace]
 *
 * Seeds run from --seed upwards. Safety is checked all the time, the rest when
 * nothing has been asked for a while and no fault is left (check.c).
 */
#include <getopt.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/compiler.h"
#include "sim.h"

struct totals {
	uint64_t steps, operations, grants, recoveries, faults, nomems,
		held_back;
};

static uint64_t seed_under_way;

/* An assertion of the engine has failed: say how to see it again. */
static void on_abort(int signal)
{
	(void)signal;
	printf("FAILED: the engine has aborted; replay: --seed %llu --trace\n",
	       (unsigned long long)seed_under_way);
	fflush(stdout);
}

/*
 * Nothing may be under way, either: what has been idle for long is forgotten
 * without anybody asking for it, and until the REMOVE has come the directory
 * node rightly has a record of a master that knows nothing of it.
 */
static void wait_for_peace(struct world *w)
{
	for (unsigned i = 0; i < 300; i++) {
		world_run(w, w->now_ns + 100 * MS);
		if (i >= 20 && all_running(w) && !world_messages())
			return;
	}
	if (all_running(w))
		fail(w, "%u messages are always under way", world_messages());
	fail(w, "recovery does not end");
}

/*
 * The same members recover once more, with nothing lost: all is as it was, and
 * slots whose journals have become clean are free.
 */
static void once_more(struct world *w)
{
	for (unsigned i = 0; i < 300 && slots_gone(w); i++)
		world_run(w, w->now_ns + 100 * MS);
	if (slots_gone(w))
		fail(w, "journals are not replayed");
	event_post(w->now_ns, EV_CHANGE, NULL);
	wait_for_peace(w);
	check_quiet(w);
	check_none_held(w);
}

static void wait_for_drain(struct world *w)
{
	for (unsigned i = 0; i < 300 && clients_left(w); i++)
		world_run(w, w->now_ns + 100 * MS);
	if (clients_left(w))
		clients_print(w);
	if (clients_left(w))
		fail(w, "%u locks are not granted or not given back",
		     clients_left(w));
}

static void one_schedule(uint64_t seed, bool trace, struct totals *totals)
{
	static struct world world;
	struct world *w = &world;

	memset(w, 0, sizeof(*w));
	seed_under_way = seed;
	w->trace = trace;
	world_setup(w, seed);
	world_run(w, world_run_ns(w));
	world_heal(w);
	world_run(w, w->now_ns + 100 * MS);
	w->quiet = true;
	wait_for_peace(w);
	check_quiet(w);
	if (seed % 4 == 0)
		once_more(w);
	w->draining = true;
	wait_for_drain(w);
	world_run(w, w->now_ns + 5 * SEC);
	check_empty(w);
	world_end(w);
	totals->steps += w->steps;
	totals->operations += w->operations;
	totals->grants += w->grants;
	totals->recoveries += w->recoveries;
	totals->faults += w->faults;
	totals->nomems += w->nomems;
	totals->held_back += w->held_back;
}

static void usage(void)
{
	printf("usage: sim [--runs N] [--seed N] [--trace]\n");
	exit(2);
}

int main(int argc, char **argv)
{
	static const struct option options[] = {
		{ "runs", required_argument, NULL, 'r' },
		{ "seed", required_argument, NULL, 's' },
		{ "trace", no_argument, NULL, 't' },
		{ 0 },
	};
	uint64_t runs = 1, seed = 1;
	struct totals totals = { 0 };
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
	printf("%llu schedules from seed %llu: %llu steps, %llu calls, %llu "
	       "grants, %llu recoveries, %llu faults, %llu times no memory, "
	       "%llu messages held back\n",
	       (unsigned long long)runs, (unsigned long long)seed,
	       (unsigned long long)totals.steps,
	       (unsigned long long)totals.operations,
	       (unsigned long long)totals.grants,
	       (unsigned long long)totals.recoveries,
	       (unsigned long long)totals.faults,
	       (unsigned long long)totals.nomems,
	       (unsigned long long)totals.held_back);
	return 0;
}
