/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * sim.c - run schedules: faults first, then peace, then everything given back.
 *
 *   sim [--runs N] [--seed N] [--trace]
 *
 * Seeds run from --seed upwards. Safety is checked all the time, the rest when
 * nothing has been asked for a while and no fault is left (check.c).
 */
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/compiler.h"
#include "run.h"
#include "sim.h"

struct totals {
	uint64_t steps, operations, grants, recoveries, faults, nomems,
		held_back;
};

/* An assertion of the engine has failed: say how to see it again. */
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

static struct totals totals;

static void one_schedule(uint64_t seed, bool trace)
{
	static struct world world;
	struct world *w = &world;

	memset(w, 0, sizeof(*w));
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
	totals.steps += w->steps;
	totals.operations += w->operations;
	totals.grants += w->grants;
	totals.recoveries += w->recoveries;
	totals.faults += w->faults;
	totals.nomems += w->nomems;
	totals.held_back += w->held_back;
}

int main(int argc, char **argv)
{
	run_schedules(argc, argv, "sim", one_schedule);
	run_print("steps", totals.steps);
	run_print("calls", totals.operations);
	run_print("grants", totals.grants);
	run_print("recoveries", totals.recoveries);
	run_print("faults", totals.faults);
	run_print("times no memory", totals.nomems);
	run_print("messages held back", totals.held_back);
	printf("\n");
	return 0;
}
