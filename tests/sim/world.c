/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * world.c - the queue of events, the links, and steps of engines.
 *
 * A message has its time of arrival from the moment it is sent. If the link is
 * lost then, it waits until the link is back; so does all that is behind it.
 */
#include <errno.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "base/compiler.h"
#include "sim.h"

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

void event_put(struct event event)
{
	event.order = heap_order++;
	heap_put(event);
}

void event_post(uint64_t at_ns, enum kind kind, const struct node *node)
{
	event_put(
		(struct event){ .at_ns = at_ns,
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
uint64_t delay(struct world *w)
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
	struct event event = { .kind = EV_MESSAGE };

	event.at_ns = w->now_ns + delay(w);
	event.at_ns = UG_MAX(event.at_ns, *link_ns + 1);
	*link_ns = event.at_ns;
	event.node = msg->to;
	event.incarnation = msg->to_incarnation;
	event.from_incarnation = from->incarnation;
	event.msg = malloc(sizeof(*msg));
	*event.msg = *msg;
	event_put(event);
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
		dlm_check_grants(node->engine);
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
	dlm_check_grants(node->engine);
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
		dlm_check_grants(node->engine);
		carry_out(w, node, &out);
	}
	dlm_updates_clear(&out);
	blocks_step_done(w);
	slots_of_leavers(w, node);
	return error;
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
	uint64_t cut = w->cut_ns[e->from_incarnation % INCARNATIONS_MAX];

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
	event_post(wake, EV_TICK, node);
}

static void on_client(struct world *w, struct node *node)
{
	uint64_t pause_us = w->quiet ? 40000 : w->profile->act_us;

	event_post(w->now_ns + choose(w, pause_us * 1000), EV_CLIENT, node);
	slot_act(w, node);
	if (node->leaving)
		leave_act(w, node);
	else
		client_act(w, node);
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
		members_stop(w, node, e->change);
		break;
	case EV_START:
		members_start(w, node, e->change);
		break;
	case EV_TICK:
		on_tick(w, node);
		break;
	case EV_CLIENT:
		on_client(w, node);
		break;
	default:
		fault_happens(w, node, e->kind);
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

/* The order of what piles up is kept by e->order. */
static uint64_t not_before(const struct world *w, const struct node *node,
			   const struct event *e)
{
	if (e->kind == EV_KILL || e->kind == EV_FENCE)
		return 0;
	if (e->kind == EV_MESSAGE &&
	    w->down_ns[e->msg->from][e->node] > node->frozen_until_ns)
		return w->down_ns[e->msg->from][e->node];
	return node->frozen_until_ns;
}

static bool is_of_the_world(struct world *w, enum kind kind)
{
	if (kind == EV_CHANGE)
		members_change(w);
	else if (kind == EV_TRY_START)
		members_try_start(w);
	else
		return kind == EV_NONE;
	return true;
}

static void world_one(struct world *w)
{
	struct event e = heap_take();
	struct node *node = &w->nodes[e.node];

	w->now_ns = UG_MAX(w->now_ns, e.at_ns);
	if (is_of_the_world(w, e.kind))
		return;
	if (is_void(w, node, &e)) {
		drop_event(&e);
		return;
	}
	if (not_before(w, node, &e) > w->now_ns) {
		w->held_back += e.kind == EV_MESSAGE;
		e.at_ns = not_before(w, node, &e);
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

unsigned world_messages(void)
{
	unsigned n = 0;

	for (size_t i = 0; i < heap_count; i++)
		n += heap[i].kind == EV_MESSAGE;
	return n;
}

void world_run(struct world *w, uint64_t until_ns)
{
	while (heap_count && heap[0].at_ns <= until_ns)
		world_one(w);
	w->now_ns = until_ns;
}

static const struct profile profiles[] = {
	{ "general", 4000, 0, 20, 30, 4, 0, RESOURCES_MAX, 1000, 6, 0, 1000 },
	/* cancel, convert and unlock while the answers are on their way */
	{ "impatient", 200, 70, 40, 20, 4, 10, 3, 50, 3, 0, 80 },
	/* masters forget, others take over, the directory moves */
	{ "churn", 2000, 20, 20, 70, 4, 0, 2, 50, 14, 3000, 600 },
	/* writers mark, and die */
	{ "marks", 2000, 40, 10, 10, 30, 50, 1, 50, 10, 0, 500 },
};

static const struct profile *some_profile(struct world *w)
{
	unsigned others = UG_ARRAY_SIZE(profiles) - 1;

	return &profiles[chance(w, 50) ? 0 : 1 + choose(w, others)];
}

uint64_t world_run_ns(const struct world *w)
{
	return w->profile->run_ms * MS;
}

void world_setup(struct world *w, uint64_t seed)
{
	w->seed = seed;
	ug_prng_seed(&w->prng, seed);
	nomem_seed(seed);
	w->profile = some_profile(w);
	if (w->trace)
		printf("profile %s\n", w->profile->name);
	w->node_count = 1 + (unsigned)choose(w, NODES_MAX);
	w->resource_count = 1 + (unsigned)choose(w, w->profile->resources_max);
	w->nomem = chance(w, 25);
	w->next_value = 1;
	for (unsigned r = 0; r < w->resource_count; r++)
		w->blocks[r].used = r % 2 == 0;
	for (unsigned id = 1; id <= w->node_count; id++) {
		w->nodes[id].id = (int32_t)id;
		if (chance(w, 80))
			node_boot(w, &w->nodes[id]);
		else
			event_post(choose(w, world_run_ns(w)), EV_JOIN,
				   &w->nodes[id]);
	}
	event_post(choose(w, 5 * MS), EV_CHANGE, NULL);
	faults_plan(w, world_run_ns(w));
}

void world_heal(struct world *w)
{
	for (size_t i = 0; i < heap_count; i++) {
		if (is_fault(heap[i].kind))
			heap[i].kind = EV_NONE;
	}
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
