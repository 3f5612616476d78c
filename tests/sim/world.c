/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * world.c - the queue of events, the links, the membership, the faults.
 *
 * Membership as the cluster layer gives it: a change has a number and a list.
 * Every member of the list stops, and only when all have stopped each is
 * started; another change may come at any moment in between.
 */
#include <errno.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "base/compiler.h"
#include "sim.h"

enum kind {
	EV_MESSAGE,
	EV_STOP,
	EV_START,
	EV_TICK,
	EV_CLIENT,
	EV_KILL,
	EV_JOIN,
	EV_FREEZE,
	EV_CHANGE, /* the membership layer has seen what happened */
};

struct event {
	uint64_t at_ns;
	uint64_t order;
	enum kind kind;
	int32_t node;
	uint64_t incarnation; /* of the node; 0 = any */
	unsigned change;
	uint64_t from_incarnation;
	struct dlm_msg *msg;
};

static struct event *heap;
static size_t heap_count, heap_space;
static uint64_t heap_order;

static bool before(const struct event *a, const struct event *b)
{
	if (a->at_ns != b->at_ns)
		return a->at_ns < b->at_ns;
	return a->order < b->order;
}

static void heap_swap(size_t a, size_t b)
{
	struct event tmp = heap[a];

	heap[a] = heap[b];
	heap[b] = tmp;
}

static void heap_put(struct event event)
{
	size_t i = heap_count++;

	if (heap_count > heap_space) {
		heap_space = heap_space ? heap_space * 2 : 256;
		heap = realloc(heap, heap_space * sizeof(*heap));
	}
	heap[i] = event;
	while (i && before(&heap[i], &heap[(i - 1) / 2])) {
		heap_swap(i, (i - 1) / 2);
		i = (i - 1) / 2;
	}
}

static struct event heap_take(void)
{
	struct event first = heap[0];
	size_t i = 0;

	heap[0] = heap[--heap_count];
	for (;;) {
		size_t least = i, l = 2 * i + 1, r = l + 1;

		if (l < heap_count && before(&heap[l], &heap[least]))
			least = l;
		if (r < heap_count && before(&heap[r], &heap[least]))
			least = r;
		if (least == i)
			return first;
		heap_swap(i, least);
		i = least;
	}
}

static void post(struct world *w, uint64_t at_ns, enum kind kind,
		 const struct node *node)
{
	(void)w;
	heap_put((struct event){ .at_ns = at_ns,
				 .order = heap_order++,
				 .kind = kind,
				 .node = node ? node->id : 0,
				 .incarnation = node ? node->incarnation : 0 });
}

void fail(const struct world *w, const char *fmt, ...)
{
	va_list args;

	printf("FAILED: ");
	va_start(args, fmt);
	vprintf(fmt, args);
	va_end(args);
	printf("\n  at %.6f s; replay: --seed %llu --trace\n",
	       (double)w->now_ns / 1e9, (unsigned long long)w->seed);
	fflush(stdout);
	exit(1);
}

/* Mostly fast, sometimes slow, rarely very slow. */
static uint64_t delay(struct world *w)
{
	unsigned how = (unsigned)choose(w, 100);

	if (how < 80)
		return 20000 + choose(w, 200000);
	if (how < 98)
		return 200000 + choose(w, 3 * MS);
	return choose(w, 60 * MS);
}

/* Links */

static void send_out(struct world *w, const struct node *from,
		     const struct dlm_msg *msg)
{
	uint64_t *link_ns = &w->link_ns[from->id][msg->to];
	struct event event = { .order = heap_order++, .kind = EV_MESSAGE };

	event.at_ns = w->now_ns + delay(w);
	event.at_ns = UG_MAX(event.at_ns, *link_ns + 1);
	*link_ns = event.at_ns;
	event.node = msg->to;
	event.incarnation = msg->to_incarnation;
	event.from_incarnation = from->incarnation;
	event.msg = malloc(sizeof(*msg));
	*event.msg = *msg;
	heap_put(event);
}

/* Steps */

static void carry_out(struct world *w, struct node *node,
		      struct dlm_updates *out)
{
	for (size_t i = 0; i < out->count; i++) {
		struct dlm_update *up = &out->list[i];

		switch (up->kind) {
		case DLM_UP_SEND:
			send_out(w, node, &up->msg);
			up->msg.kind = DLM_MSG; /* what it owns has moved */
			break;
		case DLM_UP_CAST:
		case DLM_UP_BAST:
			client_told(w, node, up);
			break;
		case DLM_UP_RUNNING:
			w->recoveries++;
			slot_running(w, node, &up->running);
			break;
		case DLM_UP_SLOT_GONE:
			slot_gone(w, node, &up->running);
			break;
		case DLM_UP_MISMATCH:
			fail(w, "mismatch reported by node %d", node->id);
		case DLM_UP_PREPARE:
			break;
		}
	}
}

/* Lack of memory must leave no trace. */
static int step_failing(struct world *w, struct node *node,
			struct dlm_event *event, struct dlm_updates *out)
{
	struct dlm_counts before_step, after;
	bool whole = event->kind != DLM_EV_CONTINUE &&
		     event->kind != DLM_EV_TICK && event->kind != DLM_EV_CLOSE;
	size_t updates = out->count;
	int error;

	if (!w->nomem)
		return dlm_step(node->engine, event, out);
	for (unsigned try = 0;; try++) {
		dlm_count(node->engine, &before_step);
		nomem_one_in = try < 3 ? 8 : 0;
		error = dlm_step(node->engine, event, out);
		nomem_one_in = 0;
		if (error != -ENOMEM)
			return error;
		w->nomems++;
		dlm_count(node->engine, &after);
		dlm_check(node->engine);
		if (whole && event->kind == DLM_EV_MESSAGE &&
		    event->message.msg->kind == DLM_RCOM)
			continue; /* names are recorded one by one */
		if (whole && (out->count != updates ||
			      memcmp(&before_step, &after, sizeof(after))))
			fail(w, "-ENOMEM changed the state, event %d",
			     event->kind);
	}
}

int node_step(struct world *w, struct node *node, struct dlm_event *event)
{
	static struct dlm_updates out;
	int error;

	event->now_ns = w->now_ns;
	w->steps++;
	order_before(w, node);
	error = step_failing(w, node, event, &out);
	dlm_check(node->engine);
	order_after(w, node);
	carry_out(w, node, &out);
	for (unsigned n = 0; out.more; n++) {
		struct dlm_event more = { .kind = DLM_EV_CONTINUE,
					  .now_ns = w->now_ns };

		if (n > 100000)
			fail(w, "recovery of node %d does not end", node->id);
		dlm_updates_clear(&out);
		step_failing(w, node, &more, &out);
		dlm_check(node->engine);
		carry_out(w, node, &out);
	}
	dlm_updates_clear(&out);
	client_step_done(w);
	return error;
}

/* Membership */

static void trace_line(void *arg, const char *line)
{
	const struct node *node = arg;

	printf("  node %d: %s\n", node->id, line);
}

static void node_boot(struct world *w, struct node *node)
{
	struct dlm_config config = { .nodeid = node->id, .lvblen = LVBLEN };

	node->alive = true;
	node->incarnation = ++w->next_incarnation;
	node->frozen_until_ns = 0;
	node->tick_ns = UINT64_MAX;
	node->stopped_for = 0;
	node->slot = 0;
	node->generation = 0;
	node->gone_count = 0;
	config.hold_slots = true;
	config.incarnation = node->incarnation;
	config.seed = ug_prng_u64(&w->prng);
	/* short, so that REMOVE meets requests, or long */
	config.toss_ns = w->seed % 2 ? 1 + choose(w, 20 * MS)
				     : 200 * MS + choose(w, 2000 * MS);
	if (w->trace) {
		config.trace = trace_line;
		config.trace_arg = node;
	}
	if (dlm_engine_new(&config, &node->engine))
		fail(w, "no engine");
	post(w, w->now_ns + choose(w, 10 * MS), EV_CLIENT, node);
}

static void node_die(struct world *w, struct node *node)
{
	node->alive = false;
	slot_died(w, node);
	w->cut_ns[node->incarnation % 4096] = w->now_ns + choose(w, 3 * MS);
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

/* Everybody alive is a member, sooner or later. */
static void change_list(struct world *w)
{
	w->member_count = 0;
	for (unsigned id = 1; id <= w->node_count; id++) {
		const struct node *node = &w->nodes[id];

		if (!node->alive)
			continue;
		w->members[w->member_count++] = (struct dlm_member){
			.nodeid = node->id,
			.weight = w->seed % 7 == 0 ? id % 3 : 1,
			.incarnation = node->incarnation,
		};
	}
}

static void tell_members(struct world *w, enum kind kind)
{
	for (unsigned i = 0; i < w->member_count; i++) {
		struct node *node = &w->nodes[w->members[i].nodeid];
		struct event event = { .order = heap_order++, .kind = kind };

		if (node->incarnation != w->members[i].incarnation)
			continue;
		event.at_ns = w->now_ns + delay(w);
		event.at_ns = UG_MAX(event.at_ns, node->member_event_ns + 1);
		node->member_event_ns = event.at_ns;
		event.node = node->id;
		event.incarnation = node->incarnation;
		event.change = w->change;
		heap_put(event);
	}
}

static void on_change(struct world *w)
{
	change_list(w);
	w->change++;
	w->started = false;
	memcpy(lists[w->change % LISTS].members, w->members,
	       sizeof(w->members));
	lists[w->change % LISTS].count = w->member_count;
	tell_members(w, EV_STOP);
}

static void on_stop(struct world *w, struct node *node, unsigned change)
{
	struct dlm_event event = { .kind = DLM_EV_STOP };

	node_step(w, node, &event);
	node->stopped_for = change;
	if (change != w->change || w->started)
		return;
	for (unsigned i = 0; i < w->member_count; i++) {
		const struct node *other = &w->nodes[w->members[i].nodeid];

		if (other->incarnation != w->members[i].incarnation ||
		    other->stopped_for != change)
			return;
	}
	w->started = true;
	tell_members(w, EV_START);
}

static void on_start(struct world *w, struct node *node, unsigned change)
{
	const struct member_list *list = &lists[change % LISTS];
	struct dlm_event event = { .kind = DLM_EV_START };

	event.start.members = list->members;
	event.start.count = list->count;
	if (node_step(w, node, &event))
		fail(w, "start refused by node %d", node->id);
}

/* Faults */

static void on_kill(struct world *w, struct node *node)
{
	if (!node->alive)
		return;
	w->faults++;
	node_die(w, node);
	post(w, w->now_ns + choose(w, 30 * MS), EV_CHANGE, NULL);
	if (chance(w, 80))
		post(w, w->now_ns + choose(w, 300 * MS), EV_JOIN, node);
}

static void on_join(struct world *w, struct node *node)
{
	if (node->alive)
		return;
	node_boot(w, node);
	post(w, w->now_ns + choose(w, 30 * MS), EV_CHANGE, NULL);
}

static void on_freeze(struct world *w, struct node *node)
{
	w->faults++;
	node->frozen_until_ns = w->now_ns + choose(w, 500 * MS);
}

/* The queue */

static void deliver(struct world *w, struct node *node, struct event *e)
{
	struct dlm_event event = { .kind = DLM_EV_MESSAGE };
	int error;

	event.message.msg = e->msg;
	event.message.incarnation = e->from_incarnation;
	error = node_step(w, node, &event);
	if (error)
		fail(w, "node %d refused message %d/%d of %d: %d", node->id,
		     e->msg->kind, e->msg->m.type, e->msg->from, error);
}

static bool link_is_cut(const struct world *w, const struct event *e)
{
	uint64_t cut = w->cut_ns[e->from_incarnation % 4096];

	return cut && e->at_ns > cut;
}

static void drop_event(struct event *e)
{
	if (!e->msg)
		return;
	dlm_msg_release(e->msg);
	free(e->msg);
}

static void rearm_tick(struct world *w, struct node *node)
{
	uint64_t wake;

	if (!node->alive)
		return;
	wake = UG_MAX(dlm_wake_ns(node->engine), w->now_ns + 1000);
	if (wake >= node->tick_ns || dlm_wake_ns(node->engine) == UINT64_MAX)
		return;
	node->tick_ns = wake;
	post(w, wake, EV_TICK, node);
}

static void on_client(struct world *w, struct node *node)
{
	client_act(w, node);
	slot_act(w, node);
	post(w, w->now_ns + choose(w, w->quiet ? 40 * MS : 4 * MS), EV_CLIENT,
	     node);
}

static void on_tick(struct world *w, struct node *node)
{
	struct dlm_event event = { .kind = DLM_EV_TICK };

	node->tick_ns = UINT64_MAX;
	node_step(w, node, &event);
}

static void dispatch(struct world *w, struct node *node, struct event *e)
{
	switch (e->kind) {
	case EV_MESSAGE:
		deliver(w, node, e);
		break;
	case EV_STOP:
		on_stop(w, node, e->change);
		break;
	case EV_START:
		on_start(w, node, e->change);
		break;
	case EV_TICK:
		on_tick(w, node);
		break;
	case EV_CLIENT:
		on_client(w, node);
		break;
	case EV_KILL:
		on_kill(w, node);
		break;
	case EV_JOIN:
		on_join(w, node);
		break;
	case EV_FREEZE:
		on_freeze(w, node);
		break;
	case EV_CHANGE:
		break;
	}
}

/* Is the event for this life of the node, and can it happen now? */
static bool is_void(const struct world *w, const struct node *node,
		    const struct event *e)
{
	if (e->kind == EV_JOIN)
		return false;
	if (!node->alive ||
	    (e->incarnation && e->incarnation != node->incarnation))
		return true;
	return e->kind == EV_MESSAGE && link_is_cut(w, e);
}

static void world_one(struct world *w)
{
	struct event e = heap_take();
	struct node *node = &w->nodes[e.node];

	w->now_ns = UG_MAX(w->now_ns, e.at_ns);
	if (e.kind == EV_CHANGE) {
		on_change(w);
		return;
	}
	if (is_void(w, node, &e)) {
		drop_event(&e);
		return;
	}
	if (node->frozen_until_ns > w->now_ns && e.kind != EV_KILL) {
		/* the order of what piles up is kept by e.order */
		e.at_ns = node->frozen_until_ns;
		heap_put(e);
		return;
	}
	if (w->trace && e.kind != EV_CLIENT && e.kind != EV_TICK)
		printf("%.6f node %d event %d\n", (double)w->now_ns / 1e9,
		       e.node, e.kind);
	dispatch(w, node, &e);
	drop_event(&e);
	rearm_tick(w, node);
}

void world_run(struct world *w, uint64_t until_ns)
{
	while (heap_count && heap[0].at_ns <= until_ns)
		world_one(w);
	w->now_ns = until_ns;
}

static void plan_faults(struct world *w, uint64_t until_ns)
{
	unsigned faults = (unsigned)choose(w, 7);

	if (chance(w, 20))
		faults = 0;
	for (unsigned i = 0; i < faults; i++) {
		struct node *node = &w->nodes[1 + choose(w, w->node_count)];
		struct event event = {
			.at_ns = choose(w, until_ns),
			.order = heap_order++,
			.kind = chance(w, 75) ? EV_KILL : EV_FREEZE,
			.node = node->id,
		};

		heap_put(event);
		/* another blow while the first is being dealt with */
		if (chance(w, 50)) {
			event.at_ns += choose(w, 40 * MS);
			event.order = heap_order++;
			event.node = 1 + (int32_t)choose(w, w->node_count);
			heap_put(event);
		}
	}
}

void world_setup(struct world *w, uint64_t seed)
{
	w->seed = seed;
	ug_prng_seed(&w->prng, seed);
	nomem_seed(seed);
	w->node_count = 1 + (unsigned)choose(w, NODES_MAX);
	w->resource_count = 1 + (unsigned)choose(w, RESOURCES_MAX);
	w->nomem = chance(w, 25);
	w->next_value = 1;
	for (unsigned r = 0; r < w->resource_count; r++)
		w->blocks[r].used = r % 2 == 0;
	for (unsigned id = 1; id <= w->node_count; id++) {
		w->nodes[id].id = (int32_t)id;
		if (chance(w, 80))
			node_boot(w, &w->nodes[id]);
		else
			heap_put((struct event){ .at_ns = choose(w, 900 * MS),
						 .order = heap_order++,
						 .kind = EV_JOIN,
						 .node = (int32_t)id });
	}
	post(w, choose(w, 5 * MS), EV_CHANGE, NULL);
	plan_faults(w, 1000 * MS);
}

/* No more faults; what was frozen thaws in its time. */
void world_heal(struct world *w)
{
	for (size_t i = 0; i < heap_count; i++) {
		if (heap[i].kind == EV_KILL || heap[i].kind == EV_FREEZE)
			heap[i].incarnation = UINT64_MAX;
	}
}

void world_change(struct world *w)
{
	post(w, w->now_ns, EV_CHANGE, NULL);
}

void world_end(struct world *w)
{
	while (heap_count) {
		struct event e = heap_take();

		drop_event(&e);
	}
	for (unsigned id = 1; id <= w->node_count; id++)
		dlm_engine_free(w->nodes[id].engine);
	heap_order = 0;
}
