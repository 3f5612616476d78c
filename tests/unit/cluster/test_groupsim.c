/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * test_groupsim.c - random lives of a group: processes come, leave, die and
 * freeze, the cluster breaks and heals, at any moment of anything else.
 *
 * Usage: test_groupsim FIRST_SEED COUNT [trace]. Each seed is a run; the first
 * that fails is printed. groupworld.c checks safety throughout; at the end the
 * cluster is healed, and then all who are alive must be members of one group
 * that runs.
 */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "groupworld.h"

static uint64_t current_seed;

static void on_abort(int sig)
{
	fprintf(stderr, "seed %llu\n", (unsigned long long)current_seed);
}

static struct wproc *random_proc(struct world *w)
{
	unsigned first = (unsigned)ug_prng_below(&w->prng, WPROCS_MAX);

	for (unsigned i = 0; i < WPROCS_MAX; i++) {
		struct wproc *p = &w->procs[(first + i) % WPROCS_MAX];

		if (p->used && p->alive)
			return p;
	}
	return NULL;
}

static void random_partition(struct world *w)
{
	unsigned part[NODES_MAX];
	unsigned parts = 1 + (unsigned)ug_prng_below(&w->prng, w->nodes);

	for (unsigned i = 0; i < w->nodes; i++)
		part[i] = (unsigned)ug_prng_below(&w->prng, parts);
	world_partition(w, part);
}

static void leave(struct world *w, struct wproc *p)
{
	struct member_event ev = { .kind = MEV_LEAVE };

	if (!p->admitted || p->frozen || p->out)
		return;
	ev.dirty = ug_prng_below(&w->prng, 2);
	p->leaving = true;
	world_give(w, p, &ev);
}

static void expel(struct world *w, struct wproc *p, struct wproc *target)
{
	struct member_event ev = { .kind = MEV_EXPEL };

	if (p->out || p->frozen || p == target)
		return;
	ev.inc = target->inc;
	target->was_disturbed = true;
	world_give(w, p, &ev);
}

/* Between two, seen by one of them or by both. */
static void break_link(struct world *w, struct wproc *p, struct wproc *q)
{
	if (p->out || q->out || p->frozen || p == q)
		return;
	world_link(w, p, q, true);
	if (!q->frozen && ug_prng_below(&w->prng, 2))
		world_link(w, q, p, true);
}

static void mend_links(struct world *w, struct wproc *p)
{
	for (unsigned i = 0; i < WPROCS_MAX && !p->out && !p->frozen; i++)
		if (w->procs[i].used)
			world_link(w, p, &w->procs[i], false);
}

static void clear(struct world *w, struct wproc *p)
{
	struct member_event ev = { .kind = MEV_CLEARED };

	if (!p->out && !p->frozen)
		world_give(w, p, &ev);
}

static void disturb(struct world *w, bool calm)
{
	struct wproc *p = random_proc(w);

	switch (ug_prng_below(&w->prng, calm ? 8 : 18)) {
	case 0:
	case 1:
	case 2:
	case 3:
		world_spawn(w, 1 + (unsigned)ug_prng_below(&w->prng, w->nodes));
		break;
	case 4:
		if (p)
			world_crash(w, p);
		break;
	case 5:
		if (p)
			leave(w, p);
		break;
	case 6:
		break;
	case 7:
		if (p)
			clear(w, p);
		break;
	case 8:
	case 9:
		random_partition(w);
		break;
	case 10:
		world_heal(w);
		break;
	case 11:
	case 12:
		if (p) {
			p->frozen = true;
			p->was_disturbed = true;
		}
		break;
	case 13:
		if (p)
			p->frozen = false;
		break;
	case 14:
	case 15:
		if (p)
			break_link(w, p, random_proc(w));
		break;
	case 16:
		if (p)
			mend_links(w, p);
		break;
	case 17:
		if (p)
			expel(w, p, random_proc(w));
		break;
	}
}

/* What the runs have met, so that a test of nothing is seen. */
static struct {
	unsigned long starts, gone, back, states, expelled, overtaken, left,
		judged, cleared;
} met;

static void check_end(struct world *w)
{
	const struct group_state *first = NULL;
	unsigned alive = 0, live = 0;

	for (unsigned i = 0; i < WPROCS_MAX; i++) {
		struct wproc *p = &w->procs[i];
		const struct group_state *table;

		if (!p->used || !p->alive || p->frozen)
			continue;
		alive++;
		table = membership_table(p->m);
		if (!membership_settled(p->m) || !p->admitted ||
		    p->started != table->generation) {
			fprintf(stderr,
				"%u/%u: out %d settled %d started %llu\n",
				p->name.node, p->name.pid, p->out,
				membership_settled(p->m),
				(unsigned long long)p->started);
			abort();
		}
		if (!first)
			first = table;
		else if (first->generation != table->generation ||
			 first->cleared != table->cleared)
			abort();
		met.cleared += table->cleared;
	}
	for (uint32_t i = 0; first && i < first->count; i++)
		live += first->members[i].cause == GONE_NOT;
	if (live != alive) {
		fprintf(stderr, "%u members, %u alive\n", live, alive);
		abort();
	}
}

static void count(const struct world *w)
{
	met.starts += w->starts;
	met.gone += w->gone;
	met.back += w->back;
	met.states += w->states;
	met.expelled += w->out[OUT_EXPELLED];
	met.overtaken += w->out[OUT_GONE];
	met.left += w->out[OUT_LEFT];
	met.judged += w->judged;
}

static void run(uint64_t seed, bool trace)
{
	static struct world w;
	bool calm = seed % 4 == 0;
	unsigned rounds;

	current_seed = seed;
	world_init(&w, seed, 1 + (unsigned)(seed % NODES_MAX));
	w.trace = trace;
	rounds = 3 + (unsigned)ug_prng_below(&w.prng, 30);
	for (unsigned i = 0; i < w.nodes; i++)
		world_spawn(&w, i + 1);
	for (unsigned r = 0; r < rounds; r++) {
		unsigned steps = (unsigned)ug_prng_below(
			&w.prng, ug_prng_below(&w.prng, 2) ? 20 : 800);

		for (unsigned i = 0; i < steps; i++)
			world_step(&w);
		disturb(&w, calm);
	}
	world_heal(&w);
	for (unsigned i = 0; i < WPROCS_MAX; i++)
		if (ug_prng_below(&w.prng, 2))
			w.procs[i].frozen = false;
	for (unsigned i = 0; i < WPROCS_MAX; i++)
		if (w.procs[i].used && w.procs[i].alive &&
		    ug_prng_below(&w.prng, 2))
			mend_links(&w, &w.procs[i]);
	world_run_dry(&w);
	check_end(&w);
	count(&w);
	world_fini(&w);
}

int main(int argc, char **argv)
{
	uint64_t first, runs;

	if (argc < 3)
		return 2;
	setvbuf(stdout, NULL, _IOLBF, 0);
	signal(SIGABRT, on_abort);
	first = strtoull(argv[1], NULL, 10);
	runs = strtoull(argv[2], NULL, 10);
	for (uint64_t seed = first; seed < first + runs; seed++)
		run(seed, argc > 3);
	printf("%llu runs: %lu starts, %lu gone, %lu back, %lu tables sent, ",
	       (unsigned long long)runs, met.starts, met.gone, met.back,
	       met.states);
	printf("%lu expelled, %lu overtaken, %lu left, ", met.expelled,
	       met.overtaken, met.left);
	printf("%lu judgements, %lu members of cleared groups\n", met.judged,
	       met.cleared);
	return met.starts && met.gone && met.back && met.states &&
			       met.expelled && met.overtaken && met.left &&
			       met.judged && met.cleared
		       ? 0
		       : 1;
}
