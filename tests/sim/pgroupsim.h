/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * pgroupsim.h - plock_mode=group, many members in one thread.
 *
 *   pgroupsim.c    runs: faults, then peace, then everything given back
 *   pgroupworld.c  the group's order, members, faults
 *   pgrouptruth.c  what must hold of the tables
 *   plockproc.c    processes that lock, and what they must never be told
 *   plocktruth.c   of these, what no two may rely on
 *
 * What is put into the group's order is delivered to all members of then, in
 * that order, to each in its own time. What one that dies has sent last is not
 * in it. At the same point of the order all who have the tables must have the
 * same ones.
 */
#ifndef UG_PGROUPSIM_H
#define UG_PGROUPSIM_H

#include "plock/pgroup.h"
#include "plocksim.h"

struct gnode {
	struct pgroup_engine *engine;
	uint64_t proc;
	bool in_group;
	bool stopped; /* no quorum */
};

extern struct gnode gnodes[NODES_MAX + 1];

/* pgroupworld.c */
void gworld_setup(struct world *w, uint64_t seed);
void gworld_run(struct world *w, uint64_t until_ns);
void gworld_heal(struct world *w);
void gworld_end(struct world *w);
bool gworld_is_quiet(const struct world *w);

/* pgrouptruth.c */
/* Of what all who have the tables have in common. */
uint64_t digest_of(const struct pgroup_engine *engine);
void gtruth_check_quiet(struct world *w);
void gtruth_check_empty(struct world *w);

#endif
