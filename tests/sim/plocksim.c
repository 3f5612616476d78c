/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * plocksim.c - run schedules: faults first, then peace, then everything given
 * back.
 *
 *   plocksim [--runs N] [--seed N] [--trace]
 */
#include <stdlib.h>
#include <string.h>

#include "base/compiler.h"
#include "plocksim.h"
#include "run.h"

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

static struct world totals;

static void one_schedule(uint64_t seed, bool trace)
{
	static struct world world;
	struct world *w = &world;

	memset(w, 0, sizeof(*w));
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
	totals.steps += w->steps;
	totals.calls += w->calls;
	totals.grants += w->grants;
	totals.deadlocks += w->deadlocks;
	totals.cancelled += w->cancelled;
	totals.faults_done += w->faults_done;
	totals.epochs += w->epochs;
	totals.nomems += w->nomems;
	totals.moves += w->moves;
	totals.lends += w->lends;
	totals.recalls += w->recalls;
	totals.bounces += w->bounces;
	totals.delayed += w->delayed;
}

int main(int argc, char **argv)
{
	run_schedules(argc, argv, "plocksim", one_schedule);
	run_print("steps", totals.steps);
	run_print("calls", totals.calls);
	run_print("grants", totals.grants);
	run_print("cancelled", totals.cancelled);
	run_print("deadlocks", totals.deadlocks);
	run_print("faults", totals.faults_done);
	run_print("epochs", totals.epochs);
	run_print("moves", totals.moves);
	run_print("lends", totals.lends);
	run_print("recalls", totals.recalls);
	run_print("bounces", totals.bounces);
	run_print("delays", totals.delayed);
	run_print("times no memory", totals.nomems);
	printf("\n");
	return 0;
}
