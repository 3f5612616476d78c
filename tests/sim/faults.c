/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * faults.c - what happens to nodes and links.
 *
 *   death       at once; its last messages may get lost
 *   leave       gives its locks back first; its journal is clean
 *   freeze      nothing moves; it may be expelled meanwhile, come back without
 *               knowing it, act and send, until it is fenced
 *   lost link   of two members, both ways: messages wait, none is lost
 *   flap        membership changes again and again, to the same, so that
 *               recoveries are broken off in all of their steps
 *   partition   every link between two sides is lost. Nobody decides, and all
 *               goes on when it heals; or none has quorum, so that all stop
 *               and start again as they were; or one side decides, and the
 *               other is out, though it goes on until it is fenced, which may
 *               be after the partition has healed
 */
#include "sim.h"

bool is_fault(enum kind kind)
{
	return kind == EV_KILL || kind == EV_LEAVE || kind == EV_FREEZE ||
	       kind == EV_FLAP || kind == EV_LOSE_LINK || kind == EV_PARTITION;
}

static void comes_back(struct world *w, struct node *node, uint64_t within_ns)
{
	if (chance(w, 80))
		event_post(w->now_ns + choose(w, within_ns), EV_JOIN, node);
}

static void on_kill(struct world *w, struct node *node)
{
	node_die(w, node);
	event_post(w->now_ns + choose(w, 30 * MS), EV_CHANGE, NULL);
	comes_back(w, node, 300 * MS);
}

static void on_join(struct world *w, struct node *node)
{
	if (node->alive)
		return;
	node_boot(w, node);
	event_post(w->now_ns + choose(w, 30 * MS), EV_CHANGE, NULL);
}

static void on_fence(struct world *w, struct node *node)
{
	node_die(w, node);
	members_try_start(w);
	comes_back(w, node, 300 * MS);
}

/* The others go on without it; it does not know. */
static void expel(struct world *w, struct node *node)
{
	node->expelled = true;
	event_post(w->now_ns + choose(w, 400 * MS), EV_FENCE, node);
}

static void on_freeze(struct world *w, struct node *node)
{
	node->frozen_until_ns = w->now_ns + choose(w, 500 * MS);
	if (node->expelled || !chance(w, 40))
		return;
	expel(w, node);
	event_post(w->now_ns + choose(w, 100 * MS), EV_CHANGE, NULL);
}

static void on_flap(struct world *w)
{
	for (unsigned n = 1 + (unsigned)choose(w, 4); n; n--)
		event_post(w->now_ns + choose(w, 40 * MS), EV_CHANGE, NULL);
}

static void lose_link(struct world *w, int32_t a, int32_t b, uint64_t until_ns)
{
	if (w->down_ns[a][b] < until_ns)
		w->down_ns[a][b] = w->down_ns[b][a] = until_ns;
}

static void on_lose_link(struct world *w, const struct node *node)
{
	lose_link(w, node->id, 1 + (int32_t)choose(w, w->node_count),
		  w->now_ns + choose(w, 300 * MS));
}

/* Without quorum on any side all stop, and start again when it is over. */
static void nobody_has_quorum(struct world *w, uint64_t until_ns)
{
	w->no_start_ns = until_ns;
	event_post(w->now_ns + choose(w, 30 * MS), EV_CHANGE, NULL);
}

static void side_is_out(struct world *w, unsigned side)
{
	bool told = chance(w, 50);

	for (unsigned id = 1; id <= w->node_count; id++) {
		struct node *node = &w->nodes[id];

		if (!(side >> id & 1) || !node->alive || node->expelled)
			continue;
		if (told)
			members_tell(w, node, EV_STOP);
		expel(w, node);
	}
	event_post(w->now_ns + choose(w, 30 * MS), EV_CHANGE, NULL);
}

static void on_partition(struct world *w)
{
	unsigned all = (1u << (w->node_count + 1)) - 2;
	unsigned side = (unsigned)choose(w, all) & all;
	uint64_t until_ns = w->now_ns + choose(w, 400 * MS);
	unsigned how = (unsigned)choose(w, 100);

	if (side == 0 || side == all)
		return;
	for (unsigned a = 1; a <= w->node_count; a++) {
		for (unsigned b = 1; b <= w->node_count; b++) {
			if ((side >> a & 1) && !(side >> b & 1))
				lose_link(w, (int32_t)a, (int32_t)b, until_ns);
		}
	}
	if (how < 20)
		nobody_has_quorum(w, until_ns);
	else if (how < 70)
		side_is_out(w, side);
}

void leave_act(struct world *w, struct node *node)
{
	if (client_gives_back(w, node) || node->expelled)
		return;
	w->left[node->incarnation % INCARNATIONS_MAX] = true;
	node_die(w, node);
	event_post(w->now_ns + choose(w, 30 * MS), EV_CHANGE, NULL);
	comes_back(w, node, chance(w, 50) ? 5 * MS : 200 * MS);
}

void fault_happens(struct world *w, struct node *node, enum kind kind)
{
	w->faults += is_fault(kind);
	switch (kind) {
	case EV_KILL:
		on_kill(w, node);
		break;
	case EV_JOIN:
		on_join(w, node);
		break;
	case EV_LEAVE:
		node->leaving = true;
		break;
	case EV_FREEZE:
		on_freeze(w, node);
		break;
	case EV_FENCE:
		on_fence(w, node);
		break;
	case EV_FLAP:
		on_flap(w);
		break;
	case EV_LOSE_LINK:
		on_lose_link(w, node);
		break;
	case EV_PARTITION:
		on_partition(w);
		break;
	default:
		fail(w, "an event of no kind: %d", kind);
	}
}

static enum kind some_fault(struct world *w)
{
	unsigned how = (unsigned)choose(w, 100);

	if (how < 35)
		return EV_KILL;
	if (how < 50)
		return EV_FLAP;
	if (how < 62)
		return EV_FREEZE;
	if (how < 74)
		return EV_LEAVE;
	if (how < 85)
		return EV_LOSE_LINK;
	return EV_PARTITION;
}

static void plan_one(struct world *w, uint64_t at_ns)
{
	event_put((struct event){
		.at_ns = at_ns,
		.kind = some_fault(w),
		.node = 1 + (int32_t)choose(w, w->node_count),
	});
}

void faults_plan(struct world *w, uint64_t until_ns)
{
	unsigned faults = (unsigned)choose(w, w->profile->faults_max + 1);

	if (chance(w, 20))
		faults = 0;
	for (unsigned i = 0; i < faults; i++) {
		uint64_t at_ns = choose(w, until_ns);

		plan_one(w, at_ns);
		/* another blow while the first is being dealt with */
		if (chance(w, 50))
			plan_one(w, at_ns + choose(w, 40 * MS));
	}
}
