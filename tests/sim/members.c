/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * members.c - membership as the cluster layer gives it (docs/spec/cluster.md).
 *
 * A change has a number and a list. Every member of the list stops, and only
 * when all have stopped, and all who have been expelled are proved dead, each
 * is started; another change may come at any moment in between.
 */
#include <string.h>

#include "base/compiler.h"
#include "sim.h"

static void trace_line(void *arg, const char *line)
{
	const struct node *node = arg;

	printf("  node %d: %s\n", node->id, line);
}

void node_boot(struct world *w, struct node *node)
{
	struct dlm_config config = { .nodeid = node->id, .lvblen = LVBLEN };

	*node = (struct node){
		.id = node->id,
		.alive = true,
		.incarnation = ++w->next_incarnation,
		.tick_ns = UINT64_MAX,
		.member_event_ns = node->member_event_ns,
	};
	config.hold_slots = true;
	config.incarnation = node->incarnation;
	config.seed = ug_prng_u64(&w->prng);
	/* short, so that REMOVE meets requests, or long */
	config.toss_ns = w->profile->toss_us
				 ? 1 + choose(w, w->profile->toss_us * 1000)
			 : w->seed % 2 ? 1 + choose(w, 20 * MS)
				       : 200 * MS + choose(w, 2000 * MS);
	if (w->trace) {
		config.trace = trace_line;
		config.trace_arg = node;
	}
	if (dlm_engine_new(&config, &node->engine))
		fail(w, "no engine");
	event_post(w->now_ns + choose(w, 10 * MS), EV_CLIENT, node);
}

/* What it has sent last may get lost, unless it has left in peace. */
void node_die(struct world *w, struct node *node)
{
	uint64_t incarnation = node->incarnation % INCARNATIONS_MAX;

	node->alive = false;
	if (!w->left[incarnation])
		w->cut_ns[incarnation] = w->now_ns + choose(w, 3 * MS);
	slot_died(w, node);
	dlm_engine_free(node->engine);
	node->engine = NULL;
	client_node_died(w, node);
}

/* The list of each change, for those who start late. */
#define LISTS 1024
static struct member_list {
	struct dlm_member members[NODES_MAX];
	unsigned count;
} lists[LISTS];

/* Everybody alive is a member, sooner or later; who is expelled never again. */
static void change_list(struct world *w)
{
	w->member_count = 0;
	for (unsigned id = 1; id <= w->node_count; id++) {
		const struct node *node = &w->nodes[id];

		if (!node->alive || node->expelled)
			continue;
		w->members[w->member_count++] = (struct dlm_member){
			.nodeid = node->id,
			.weight = w->seed % 7 == 0 ? id % 3 : 1,
			.incarnation = node->incarnation,
		};
	}
}

/* Membership events of a node keep their order. */
void members_tell(struct world *w, const struct node *to, enum kind kind)
{
	struct node *node = &w->nodes[to->id];
	uint64_t at_ns = w->now_ns + delay(w);

	at_ns = UG_MAX(at_ns, node->member_event_ns + 1);
	node->member_event_ns = at_ns;
	event_put((struct event){ .at_ns = at_ns,
				  .kind = kind,
				  .node = node->id,
				  .incarnation = node->incarnation,
				  .change = w->change });
}

static void tell_members(struct world *w, enum kind kind)
{
	for (unsigned i = 0; i < w->member_count; i++) {
		const struct node *node = &w->nodes[w->members[i].nodeid];

		if (node->incarnation == w->members[i].incarnation)
			members_tell(w, node, kind);
	}
}

void members_change(struct world *w)
{
	change_list(w);
	w->change++;
	w->started = false;
	memcpy(lists[w->change % LISTS].members, w->members,
	       sizeof(w->members));
	lists[w->change % LISTS].count = w->member_count;
	tell_members(w, EV_STOP);
}

static bool somebody_is_not_proved_dead(const struct world *w)
{
	for (unsigned id = 1; id <= w->node_count; id++) {
		if (w->nodes[id].alive && w->nodes[id].expelled)
			return true;
	}
	return false;
}

static bool all_have_stopped(const struct world *w)
{
	for (unsigned i = 0; i < w->member_count; i++) {
		const struct node *node = &w->nodes[w->members[i].nodeid];

		if (node->incarnation != w->members[i].incarnation ||
		    node->stopped_for != w->change)
			return false;
	}
	return true;
}

void members_try_start(struct world *w)
{
	if (w->started || !all_have_stopped(w) ||
	    somebody_is_not_proved_dead(w))
		return;
	if (w->no_start_ns > w->now_ns) {
		event_post(w->no_start_ns, EV_TRY_START, NULL);
		return;
	}
	w->started = true;
	tell_members(w, EV_START);
}

void members_stop(struct world *w, struct node *node, unsigned change)
{
	struct dlm_event event = { .kind = DLM_EV_STOP };

	node_step(w, node, &event);
	if (node->expelled)
		return;
	node->stopped_for = change;
	if (change == w->change)
		members_try_start(w);
}

void members_start(struct world *w, struct node *node, unsigned change)
{
	const struct member_list *list = &lists[change % LISTS];
	struct dlm_event event = { .kind = DLM_EV_START };

	event.start.members = list->members;
	event.start.count = list->count;
	if (node_step(w, node, &event))
		fail(w, "start refused by node %d", node->id);
}
