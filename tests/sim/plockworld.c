/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * plockworld.c - the queue of events, links, members and faults.
 *
 * Links keep order between two incarnations. What a killed member sent last may
 * be lost, from some message on; nothing of it arrives where its end is known.
 */
#include <errno.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "base/compiler.h"
#include "plocksim.h"
#include "queue.h"

enum kind {
	EV_NONE,
	EV_MESSAGE,
	EV_MEMBERS,
	EV_RELEASED,
	EV_QUORUM,
	EV_TICK,
	EV_ACT,
	EV_CHANGE,  /* the group has seen what happened */
	EV_RELEASE, /* one that is gone is fenced, its journal replayed */
	EV_KILL,
	EV_JOIN,
	EV_LEAVE,
	EV_LOSE_QUORUM,
};

struct event {
	struct queued q;
	enum kind kind;
	unsigned place; /* of the node */
	uint64_t node;	/* its incarnation; 0: any */
	uint64_t from;
	bool flag;
	struct plock_msg *msg;
	/* MEMBERS */
	uint64_t epoch;
	uint64_t nodes[NODES_MAX];
	unsigned count;
	uint64_t gone[DEAD_MAX];
	unsigned gone_count;
};

static struct event *event_at(size_t i)
{
	return (struct event *)queue_at(i);
}

static void put(const struct event *event)
{
	struct event *e = malloc(sizeof(*e));

	*e = *event;
	queue_put(&e->q);
}

static void post(uint64_t at_ns, enum kind kind, unsigned place, uint64_t node)
{
	struct event e = {
		.q.at_ns = at_ns, .kind = kind, .place = place, .node = node
	};

	put(&e);
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

static uint64_t delay(struct world *w)
{
	unsigned how = (unsigned)choose(w, 100);

	if (how < 80)
		return 20000 + choose(w, 200000);
	if (how < 98)
		return 200000 + choose(w, 3 * MS);
	return choose(w, 30 * MS);
}

unsigned world_messages(void)
{
	unsigned count = 0;

	for (size_t i = 0; i < queue_count(); i++)
		count += event_at(i)->kind == EV_MESSAGE;
	return count;
}

unsigned world_throttled(const struct world *w)
{
	unsigned count = 0;

	for (unsigned i = 1; i <= w->node_count; i++) {
		struct plock_counts counts;

		if (!w->nodes[i].alive)
			continue;
		plock_count(w->nodes[i].engine, &counts);
		count += counts.throttled;
	}
	return count;
}

/* Links */

static unsigned place_of(const struct world *w, uint64_t node)
{
	for (unsigned i = 1; i <= w->node_count; i++) {
		if (w->nodes[i].alive && w->nodes[i].node == node)
			return i;
	}
	return 0;
}

/* In any time so many calls as a second's plus its own. */
static void check_rate(struct world *w, struct node *n,
		       const struct plock_msg *msg)
{
	uint64_t limit = w->tuning.rate_limit, most;

	if (msg->type != PLOCK_MSG_OP || !limit)
		return;
	most = limit + limit * (w->now_ns - n->boot_ns) / SEC + 1;
	if (++n->ops > most)
		fail(w, "%llx has sent %llu calls, not %llu",
		     (unsigned long long)n->node, (unsigned long long)n->ops,
		     (unsigned long long)most);
}

static void send_out(struct world *w, struct node *n,
		     const struct plock_msg *msg)
{
	unsigned from = (unsigned)(n - w->nodes), to = place_of(w, msg->to);
	struct event e = { .kind = EV_MESSAGE,
			   .place = to,
			   .node = msg->to,
			   .from = n->node };

	check_rate(w, n, msg);
	if (!to)
		return;
	if (w->trace)
		printf("%.6f %llx to %llx: type %d file %llu gen %llx id %llu "
		       "node %llx status %d\n",
		       (double)w->now_ns / 1e9, (unsigned long long)n->node,
		       (unsigned long long)msg->to, msg->type,
		       (unsigned long long)msg->number,
		       (unsigned long long)msg->gen,
		       (unsigned long long)msg->id,
		       (unsigned long long)msg->node, msg->status);
	e.q.at_ns = w->now_ns + delay(w);
	e.q.at_ns = UG_MAX(e.q.at_ns, w->link_ns[from][to] + 1);
	w->link_ns[from][to] = e.q.at_ns;
	e.msg = malloc(sizeof(*msg));
	*e.msg = *msg;
	put(&e);
}

/* What a member that dies has sent arrives up to some moment, at each. */
static void cut_links(struct world *w, uint64_t node)
{
	uint64_t until[NODES_MAX + 1];

	for (unsigned i = 1; i <= w->node_count; i++)
		until[i] = w->now_ns + (chance(w, 50) ? 0 : delay(w));
	for (size_t i = 0; i < queue_count(); i++) {
		if (event_at(i)->kind == EV_MESSAGE &&
		    event_at(i)->from == node &&
		    event_at(i)->q.at_ns > until[event_at(i)->place])
			event_at(i)->kind = EV_NONE;
	}
}

/* Steps */

static int step_failing(struct world *w, struct node *n,
			struct plock_event *event, struct plock_updates *out)
{
	int error;

	for (unsigned try = 0;; try++) {
		nomem_one_in = w->nomem && try < 3 ? 6 : 0;
		error = plock_step(n->engine, event, out);
		nomem_one_in = 0;
		if (error != -ENOMEM)
			return error;
		w->nomems++;
		plock_check(n->engine);
	}
}

static void carry_out(struct world *w, struct node *n,
		      struct plock_updates *out)
{
	for (size_t i = 0; i < out->count; i++) {
		if (out->list[i].kind == PLOCK_UP_SEND)
			send_out(w, n, &out->list[i].msg);
		else
			proc_answer(w, n, &out->list[i].answer);
	}
	out->count = 0;
}

static void schedule_tick(struct world *w, struct node *n)
{
	uint64_t wake = plock_wake_ns(n->engine);

	if (wake == UINT64_MAX)
		return;
	wake = UG_MAX(wake, w->now_ns + 1);
	if (n->tick_ns > w->now_ns && n->tick_ns <= wake)
		return;
	n->tick_ns = wake;
	post(wake, EV_TICK, (unsigned)(n - w->nodes), n->node);
}

int node_step(struct world *w, struct node *n, struct plock_event *event)
{
	struct plock_updates *out = &w->out;
	int error;

	event->now_ns = w->now_ns;
	w->steps++;
	error = step_failing(w, n, event, out);
	while (out->more) {
		struct plock_event more = { .kind = PLOCK_EV_TICK,
					    .now_ns = w->now_ns };

		plock_check(n->engine);
		step_failing(w, n, &more, out);
	}
	plock_check(n->engine);
	carry_out(w, n, out);
	truth_check_step(w);
	schedule_tick(w, n);
	return error;
}

/* Members */

static void print_line(void *arg, const char *line)
{
	const struct node *n = arg;

	printf("  %llx: %s\n", (unsigned long long)n->node, line);
}

static void boot(struct world *w, unsigned place)
{
	struct plock_config config = { .tuning = w->tuning,
				       .stay_ns = MS,
				       .probe_ns = 100 * MS };
	struct node *n = &w->nodes[place];

	memset(n, 0, sizeof(*n));
	n->alive = true;
	n->boot_ns = w->now_ns;
	n->node = ++w->next_life << 8 | place;
	config.node = n->node;
	config.trace = w->trace ? print_line : NULL;
	config.trace_arg = n;
	if (plock_engine_new(&config, &n->engine))
		fail(w, "no engine");
	memset(w->link_ns[place], 0, sizeof(w->link_ns[place]));
	for (unsigned i = 0; i <= NODES_MAX; i++)
		w->link_ns[i][place] = 0;
	procs_boot(w, place);
	post(w->now_ns + choose(w, 5 * MS), EV_ACT, place, n->node);
}

static void member_event(struct world *w, struct node *n, struct event *e)
{
	e->place = (unsigned)(n - w->nodes);
	e->node = n->node;
	e->q.at_ns = w->now_ns + delay(w);
	e->q.at_ns = UG_MAX(e->q.at_ns, n->member_ns + 1);
	n->member_ns = e->q.at_ns;
	put(e);
}

static void change(struct world *w)
{
	struct event e = { .kind = EV_MEMBERS, .epoch = ++w->epoch };

	w->epochs++;
	for (unsigned i = 1; i <= w->node_count; i++) {
		if (w->nodes[i].alive)
			e.nodes[e.count++] = w->nodes[i].node;
	}
	for (unsigned i = 0; i < w->dead_count; i++) {
		if (!w->dead[i].released)
			e.gone[e.gone_count++] = w->dead[i].node;
	}
	if (w->trace)
		printf("%.6f change %llu: %u members, %u gone\n",
		       (double)w->now_ns / 1e9, (unsigned long long)e.epoch,
		       e.count, e.gone_count);
	for (unsigned i = 1; i <= w->node_count; i++) {
		if (w->nodes[i].alive)
			member_event(w, &w->nodes[i], &e);
	}
	for (unsigned i = 0; i < w->dead_count; i++) {
		if (!w->dead[i].released)
			post(w->now_ns + delay(w) + choose(w, 60 * MS),
			     EV_RELEASE, 0, w->dead[i].node);
	}
}

static void release(struct world *w, uint64_t node)
{
	struct event e = { .kind = EV_RELEASED, .from = node };

	for (unsigned i = 0; i < w->dead_count; i++) {
		if (w->dead[i].node != node || w->dead[i].released)
			continue;
		if (w->trace)
			printf("%.6f released %llx\n", (double)w->now_ns / 1e9,
			       (unsigned long long)node);
		w->dead[i].released = true;
		for (unsigned p = 1; p <= w->node_count; p++) {
			if (w->nodes[p].alive)
				member_event(w, &w->nodes[p], &e);
		}
	}
}

static void die(struct world *w, struct node *n, bool clean)
{
	struct dead *dead = &w->dead[w->dead_count];

	if (w->dead_count == DEAD_MAX)
		return;
	truth_mark_stuck(w);
	w->dead_count++;
	w->faults_done++;
	if (w->trace)
		printf("%.6f %llx dies\n", (double)w->now_ns / 1e9,
		       (unsigned long long)n->node);
	dead->node = n->node;
	dead->released = false;
	memcpy(dead->procs, n->procs, sizeof(n->procs));
	n->alive = false;
	cut_links(w, n->node);
	plock_engine_free(n->engine);
	n->engine = NULL;
	post(w->now_ns + choose(w, 20 * MS), EV_CHANGE, 0, 0);
	if (clean) /* nothing of it is relied upon any more */
		memset(dead->procs, 0, sizeof(dead->procs));
}

/* The queue */

static void give_members(struct world *w, struct node *n, struct event *e)
{
	struct plock_event event = { .kind = PLOCK_EV_MEMBERS };

	event.members.epoch = e->epoch;
	event.members.nodes = e->nodes;
	event.members.count = e->count;
	event.members.gone = e->gone;
	event.members.gone_count = e->gone_count;
	/* Links to those who are gone are closed before. */
	for (size_t i = 0; i < queue_count(); i++) {
		bool known = false;

		if (event_at(i)->kind != EV_MESSAGE ||
		    event_at(i)->node != n->node)
			continue;
		for (unsigned m = 0; m < w->dead_count; m++)
			known |= event_at(i)->from == w->dead[m].node;
		for (unsigned m = 0; m < e->count; m++)
			known &= event_at(i)->from != e->nodes[m];
		if (known)
			event_at(i)->kind = EV_NONE;
	}
	if (node_step(w, n, &event))
		fail(w, "members are refused");
}

static void give(struct world *w, struct node *n, struct event *e)
{
	struct plock_event event = { 0 };
	int error;

	switch (e->kind) {
	case EV_MESSAGE:
		event.kind = PLOCK_EV_MESSAGE;
		event.msg = e->msg;
		error = node_step(w, n, &event);
		if (error)
			fail(w, "message %d is refused: %d", e->msg->type,
			     error);
		break;
	case EV_MEMBERS:
		give_members(w, n, e);
		break;
	case EV_RELEASED:
		event.kind = PLOCK_EV_RELEASED;
		event.released.node = e->from;
		if (node_step(w, n, &event))
			fail(w, "a release is refused");
		break;
	case EV_QUORUM:
		event.kind = PLOCK_EV_QUORUM;
		event.quorum.quorate = e->flag;
		if (w->trace)
			printf("%.6f %llx %s quorum\n", (double)w->now_ns / 1e9,
			       (unsigned long long)n->node,
			       e->flag ? "has" : "loses");
		if (node_step(w, n, &event))
			fail(w, "quorum is refused");
		break;
	case EV_TICK:
		if (n->tick_ns != w->now_ns)
			break;
		event.kind = PLOCK_EV_TICK;
		node_step(w, n, &event);
		break;
	case EV_ACT:
		proc_act(w, e->place);
		post(w->now_ns + 1000 + choose(w, w->act_us * 1000ull), EV_ACT,
		     e->place, n->node);
		break;
	default:
		break;
	}
}

static unsigned alive(const struct world *w)
{
	unsigned count = 0;

	for (unsigned i = 1; i <= w->node_count; i++)
		count += w->nodes[i].alive;
	return count;
}

static void lose_quorum(struct world *w, struct node *n)
{
	struct event e = { .kind = EV_QUORUM };

	w->faults_done++;
	member_event(w, n, &e);
	e.flag = true;
	n->member_ns += choose(w, 30 * MS);
	member_event(w, n, &e);
}

static void happen(struct world *w, struct event *e)
{
	struct node *n = &w->nodes[e->place];

	switch (e->kind) {
	case EV_CHANGE:
		change(w);
		return;
	case EV_RELEASE:
		release(w, e->node);
		return;
	case EV_KILL:
	case EV_LEAVE:
		if (n->alive && alive(w) > 1)
			die(w, n, e->kind == EV_LEAVE);
		return;
	case EV_JOIN:
		if (n->alive)
			return;
		boot(w, e->place);
		post(w->now_ns + choose(w, 10 * MS), EV_CHANGE, 0, 0);
		return;
	case EV_LOSE_QUORUM:
		if (n->alive)
			lose_quorum(w, n);
		return;
	default:
		break;
	}
	if (n->alive && (!e->node || n->node == e->node))
		give(w, n, e);
}

void world_run(struct world *w, uint64_t until_ns)
{
	while (queue_count() && queue_at(0)->at_ns <= until_ns) {
		struct event *e = (struct event *)queue_take();

		w->now_ns = e->q.at_ns;
		happen(w, e);
		free(e->msg);
		free(e);
	}
	w->now_ns = until_ns;
}

static void plan_faults(struct world *w, uint64_t until_ns)
{
	static const enum kind kinds[] = { EV_KILL, EV_JOIN, EV_JOIN, EV_LEAVE,
					   EV_LOSE_QUORUM };

	for (unsigned i = 0; i < w->faults; i++) {
		uint64_t at = choose(w, until_ns);
		unsigned n = chance(w, 30) ? 2 : 1;

		/* Sometimes several at nearly the same time */
		while (n--)
			post(at + choose(w, 10 * MS),
			     kinds[choose(w, UG_ARRAY_SIZE(kinds))],
			     1 + (unsigned)choose(w, w->node_count), 0);
	}
}

void world_setup(struct world *w, uint64_t seed)
{
	w->seed = seed;
	ug_prng_seed(&w->prng, seed);
	nomem_seed(seed);
	w->node_count = 1 + (unsigned)choose(w, NODES_MAX);
	w->file_count = 1 + (unsigned)choose(w, FILES_MAX);
	w->act_us = chance(w, 50) ? 3000 : 500;
	w->reads = chance(w, 30) ? 95 : 50;
	w->waits = chance(w, 50) ? 80 : 40;
	w->cancels = chance(w, 50) ? 5 : 30;
	w->homely = chance(w, 40) ? 85 : 0;
	w->turns = chance(w, 40);
	w->unlocks = chance(w, 50) ? 40 : 60;
	w->faults = (unsigned)choose(w, 8);
	w->nomem = chance(w, 25);
	w->tuning.at_home = chance(w, 25);
	w->tuning.idle_ns = 15 * MS;
	if (chance(w, 30))
		w->tuning.rate_limit = 10 + (uint32_t)choose(w, 200);
	if (chance(w, 30)) {
		w->tuning.drop_every_ns = choose(w, 20 * MS);
		w->tuning.drop_count = 1 + (uint32_t)choose(w, 3);
	}
	w->next_ctx = 1;
	for (unsigned i = 1; i <= w->node_count; i++) {
		if (i == 1 || chance(w, 80))
			boot(w, i);
		else
			post(choose(w, 200 * MS), EV_JOIN, i, 0);
	}
	post(choose(w, 5 * MS), EV_CHANGE, 0, 0);
	plan_faults(w, 300 * MS);
}

void world_untune(struct world *w)
{
	struct plock_event event = { .kind = PLOCK_EV_TICK };

	w->tuning.rate_limit = 0;
	w->tuning.drop_every_ns = 0;
	w->tuning.drop_count = 0;
	for (unsigned i = 1; i <= w->node_count; i++) {
		if (!w->nodes[i].alive)
			continue;
		if (plock_tune(w->nodes[i].engine, &w->tuning))
			fail(w, "a change of limits is refused");
		node_step(w, &w->nodes[i], &event);
	}
}

void world_heal(struct world *w)
{
	(void)w;
	for (size_t i = 0; i < queue_count(); i++) {
		if (event_at(i)->kind >= EV_KILL)
			event_at(i)->kind = EV_NONE;
	}
}

bool world_is_settled(const struct world *w)
{
	for (unsigned i = 1; i <= w->node_count; i++) {
		if (w->nodes[i].alive && !plock_is_settled(w->nodes[i].engine))
			return false;
	}
	return true;
}

void world_end(struct world *w)
{
	while (queue_count()) {
		struct event *e = (struct event *)queue_take();

		free(e->msg);
		free(e);
	}
	for (unsigned i = 1; i <= w->node_count; i++) {
		struct plock_counts counts;

		if (!w->nodes[i].alive)
			continue;
		plock_count(w->nodes[i].engine, &counts);
		w->moves += counts.moves;
		w->lends += counts.lends;
		w->recalls += counts.recalls;
		w->bounces += counts.bounces;
		w->delayed += counts.delayed;
		plock_engine_free(w->nodes[i].engine);
	}
	queue_reset();
	plock_updates_free(&w->out);
}
