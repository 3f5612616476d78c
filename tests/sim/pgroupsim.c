/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * pgroupsim.c - run schedules of plock_mode=group: faults first, then peace,
 * then everything given back.
 *
 *   pgroupsim [--runs N] [--seed N] [--trace]
 */
#include <stdlib.h>
#include <string.h>

#include "pgroupsim.h"
#include "run.h"

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

static struct world totals;

static void one_schedule(uint64_t seed, bool trace)
{
	static struct world world;
	struct world *w = &world;

	memset(w, 0, sizeof(*w));
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
	totals.steps += w->steps;
	totals.calls += w->calls;
	totals.grants += w->grants;
	totals.cancelled += w->cancelled;
	totals.faults_done += w->faults_done;
	totals.epochs += w->epochs;
	totals.nomems += w->nomems;
	totals.moves += w->moves;
	totals.lends += w->lends;
	totals.recalls += w->recalls;
}

int main(int argc, char **argv)
{
	run_schedules(argc, argv, "pgroupsim", one_schedule);
	run_print("steps", totals.steps);
	run_print("calls", totals.calls);
	run_print("grants", totals.grants);
	run_print("cancelled", totals.cancelled);
	run_print("faults", totals.faults_done);
	run_print("changes", totals.epochs);
	run_print("records published", totals.moves);
	run_print("files dropped", totals.lends);
	run_print("tables compared", totals.recalls);
	run_print("times no memory", totals.nomems);
	printf("\n");
	return 0;
}
