/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * pgroupworld.c - the order of the group, members and faults.
 *
 *	member --> its outbox --> the order --> each member, in its own time
 *
 * The order is an array; of each member it is known how far it has come. A
 * change of members is an entry like a message: those who come begin with it.
 */
#include <errno.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "base/compiler.h"
#include "pgroupsim.h"
#include "queue.h"

enum kind {
	EV_NONE,
	EV_ORDER,   /* the first of a member's outbox gets its place */
	EV_DELIVER, /* the next entry of the order */
	EV_RELEASED,
	EV_OTHERS, /* what the cluster knows of members */
	EV_QUORUM,
	EV_TICK,
	EV_ACT,
	EV_CHANGE,  /* the group sees who has come and gone */
	EV_RELEASE, /* one that is gone is fenced, its journal replayed */
	EV_KILL,
	EV_JOIN,
	EV_LEAVE,
	EV_LOSE_QUORUM,
};

struct event {
	struct queued q;
	enum kind kind;
	unsigned place; /* of the member */
	uint64_t node;	/* its incarnation; 0: any */
	uint64_t about;
	bool flag;
};

struct entry {
	uint64_t from; /* a process; 0: a change of members */
	struct pgroup_msg msg;
	uint64_t procs[NODES_MAX * 2];
	unsigned count;
	uint64_t digest; /* of those who have the tables, behind it */
};

struct outbox {
	struct pgroup_msg *msgs;
	size_t first, count, space;
};

struct gnode gnodes[NODES_MAX + 1];

static struct entry *entries;
static size_t entry_count, entry_space;
static struct outbox outboxes[NODES_MAX + 1];
static size_t positions[NODES_MAX + 1]; /* of the next to be delivered */
static uint64_t order_ns[NODES_MAX + 1], deliver_ns[NODES_MAX + 1];
static struct pgroup_config config;

/* Events */

static struct event *event_at(size_t i)
{
	return (struct event *)queue_at(i);
}

static struct event *post(uint64_t at_ns, enum kind kind, unsigned place,
			  uint64_t node)
{
	struct event *e = calloc(1, sizeof(*e));

	*e = (struct event){
		.q.at_ns = at_ns, .kind = kind, .place = place, .node = node
	};
	queue_put(&e->q);
	return e;
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

/* The order */

static struct pgroup_msg copy_of(const struct pgroup_msg *msg)
{
	struct pgroup_msg copy = *msg;
	size_t bytes = msg->count * sizeof(*msg->records);

	copy.start.ids = NULL;
	copy.records = NULL;
	if (bytes) {
		struct pgroup_record *records = malloc(bytes);

		memcpy(records, msg->records, bytes);
		copy.records = records;
	}
	return copy;
}

static struct entry *append(struct world *w)
{
	struct entry *e;

	if (entry_count == entry_space) {
		entry_space = entry_space ? entry_space * 2 : 1024;
		entries = realloc(entries, entry_space * sizeof(*entries));
	}
	e = &entries[entry_count++];
	memset(e, 0, sizeof(*e));
	for (unsigned i = 1; i <= w->node_count; i++) {
		if (!w->nodes[i].alive || !gnodes[i].in_group)
			continue;
		deliver_ns[i] = UG_MAX(deliver_ns[i] + 1, w->now_ns + delay(w));
		post(deliver_ns[i], EV_DELIVER, i, w->nodes[i].node);
	}
	return e;
}

static void order_one(struct world *w, unsigned place)
{
	struct outbox *box = &outboxes[place];
	struct entry *e;

	if (!box->count)
		return;
	e = append(w);
	e->from = gnodes[place].proc;
	e->msg = box->msgs[box->first++];
	box->count--;
	if (w->trace)
		printf("%.6f order %zu: %llx type %u file %llu word %x inc "
		       "%llx owner %u%s\n",
		       (double)w->now_ns / 1e9, entry_count - 1,
		       (unsigned long long)w->nodes[place].node, e->msg.type,
		       (unsigned long long)e->msg.number, e->msg.word,
		       (unsigned long long)e->msg.inc, e->msg.owner,
		       e->msg.cancel ? " cancel" : "");
}

static void send_out(struct world *w, unsigned place,
		     const struct pgroup_msg *msg)
{
	struct outbox *box = &outboxes[place];

	if (box->first + box->count == box->space) {
		box->space = box->space ? box->space * 2 : 64;
		box->msgs = realloc(box->msgs, box->space * sizeof(*box->msgs));
	}
	box->msgs[box->first + box->count++] = copy_of(msg);
	order_ns[place] = UG_MAX(order_ns[place] + 1, w->now_ns + delay(w));
	post(order_ns[place], EV_ORDER, place, w->nodes[place].node);
}

/* Of what a member that dies has sent last, some is in the order. */
static void empty_outbox(struct world *w, unsigned place)
{
	struct outbox *box = &outboxes[place];
	uint64_t keep = chance(w, 50) ? 0 : choose(w, box->count + 1);

	while (keep--)
		order_one(w, place);
	for (; box->count; box->count--)
		free((void *)box->msgs[box->first++].records);
	box->first = 0;
}

/* Steps */

static int step_failing(struct world *w, unsigned place,
			struct pgroup_event *event, struct pgroup_updates *out)
{
	int error;

	for (unsigned try = 0;; try++) {
		nomem_one_in = w->nomem && try < 3 ? 6 : 0;
		error = pgroup_step(gnodes[place].engine, event, out);
		nomem_one_in = 0;
		if (error != -ENOMEM)
			return error;
		w->nomems++;
		pgroup_check(gnodes[place].engine);
	}
}

/* Without quorum nobody is told that it has a lock. */
static void check_quorum(struct world *w, unsigned place,
			 const struct plock_result *answer)
{
	for (unsigned i = 0; gnodes[place].stopped && i < OWNERS; i++) {
		const struct proc *p = &w->nodes[place].procs[i];

		if (p->calling && p->ctx == answer->ctx && !answer->status &&
		    p->op.kind == PLOCK_SET && p->op.mode != RANGE_NONE)
			fail(w, "granted without quorum: ctx %llu",
			     (unsigned long long)p->ctx);
	}
}

static void carry_out(struct world *w, unsigned place,
		      struct pgroup_updates *out)
{
	for (size_t i = 0; i < out->count; i++) {
		switch (out->list[i].kind) {
		case PGROUP_UP_SEND:
			send_out(w, place, &out->list[i].msg);
			break;
		case PGROUP_UP_ANSWER:
			check_quorum(w, place, &out->list[i].answer);
			proc_answer(w, &w->nodes[place], &out->list[i].answer);
			break;
		case PGROUP_UP_REFUSED:
			fail(w, "refused");
		}
	}
	out->count = 0;
}

static void schedule_tick(struct world *w, unsigned place)
{
	struct node *n = &w->nodes[place];
	uint64_t wake = pgroup_wake_ns(gnodes[place].engine);

	if (wake == UINT64_MAX)
		return;
	wake = UG_MAX(wake, w->now_ns + 1);
	if (n->tick_ns > w->now_ns && n->tick_ns <= wake)
		return;
	n->tick_ns = wake;
	post(wake, EV_TICK, place, n->node);
}

static int gstep(struct world *w, unsigned place, struct pgroup_event *event)
{
	static struct pgroup_updates out;
	int error;

	event->now_ns = w->now_ns;
	w->steps++;
	error = step_failing(w, place, event, &out);
	carry_out(w, place, &out);
	while (out.more) {
		struct pgroup_event more = { .kind = PGROUP_EV_TICK,
					     .now_ns = w->now_ns };

		pgroup_check(gnodes[place].engine);
		step_failing(w, place, &more, &out);
		carry_out(w, place, &out);
	}
	pgroup_check(gnodes[place].engine);
	schedule_tick(w, place);
	return error;
}

/* What plockproc.c does is the same in both modes. */
int node_step(struct world *w, struct node *n, struct plock_event *event)
{
	struct pgroup_event e = { 0 };
	int error;

	if (event->kind == PLOCK_EV_CALL) {
		e.kind = PGROUP_EV_CALL;
		e.call.number = event->call.number;
		e.call.op = event->call.op;
		e.call.ctx = event->call.ctx;
	} else {
		e.kind = PGROUP_EV_CANCEL;
		e.cancel.id = event->cancel.id;
	}
	error = gstep(w, (unsigned)(n - w->nodes), &e);
	if (event->kind == PLOCK_EV_CALL)
		event->call.id = e.call.id;
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
	struct node *n = &w->nodes[place];
	struct gnode *g = &gnodes[place];

	memset(n, 0, sizeof(*n));
	n->alive = true;
	n->node = ++w->next_life << 8 | place;
	*g = (struct gnode){ .proc = pgroup_proc(place, (uint32_t)n->node) };
	config.proc = g->proc;
	config.nodeid = place;
	config.inc = n->node;
	config.trace = w->trace ? print_line : NULL;
	config.trace_arg = n;
	if (pgroup_engine_new(&config, &g->engine))
		fail(w, "no engine");
	procs_boot(w, place);
	post(w->now_ns + choose(w, 5 * MS), EV_ACT, place, n->node);
}

/* Those who have died since may still be in it: then another change follows. */
static void change(struct world *w)
{
	bool late = chance(w, 20);
	struct entry *e;
	uint64_t procs[NODES_MAX * 2];
	unsigned count = 0;

	w->epochs++;
	if (late && entry_count) {
		/* Only who has come: those who have gone are in it still. */
		for (size_t i = entry_count; i--;) {
			if (entries[i].from)
				continue;
			count = UG_MIN(entries[i].count, (unsigned)NODES_MAX);
			memcpy(procs, entries[i].procs, sizeof(procs));
			break;
		}
		post(w->now_ns + choose(w, 10 * MS), EV_CHANGE, 0, 0);
	}
	for (unsigned i = 1; i <= w->node_count; i++) {
		bool known = false;

		if (!w->nodes[i].alive)
			continue;
		if (!gnodes[i].in_group)
			positions[i] = entry_count;
		gnodes[i].in_group = true;
		for (unsigned p = 0; p < count; p++)
			known |= procs[p] == gnodes[i].proc;
		if (!known)
			procs[count++] = gnodes[i].proc;
	}
	e = append(w);
	memcpy(e->procs, procs, sizeof(procs));
	e->count = count;
	if (w->trace)
		printf("%.6f order %zu: change, %u members\n",
		       (double)w->now_ns / 1e9, entry_count - 1, count);
}

static void release(struct world *w, uint64_t node)
{
	for (unsigned i = 0; i < w->dead_count; i++) {
		if (w->dead[i].node != node || w->dead[i].released)
			continue;
		if (w->trace)
			printf("%.6f released %llx\n", (double)w->now_ns / 1e9,
			       (unsigned long long)node);
		w->dead[i].released = true;
		for (unsigned p = 1; p <= w->node_count; p++) {
			if (!w->nodes[p].alive)
				continue;
			post(w->now_ns + delay(w), EV_RELEASED, p,
			     w->nodes[p].node)
				->about = node;
			post(w->now_ns + delay(w), EV_OTHERS, p,
			     w->nodes[p].node);
		}
	}
}

static void die(struct world *w, unsigned place, bool clean)
{
	struct dead *dead = &w->dead[w->dead_count];
	struct node *n = &w->nodes[place];

	if (w->dead_count == DEAD_MAX)
		return;
	w->dead_count++;
	w->faults_done++;
	if (w->trace)
		printf("%.6f %llx dies\n", (double)w->now_ns / 1e9,
		       (unsigned long long)n->node);
	dead->node = n->node;
	dead->released = false;
	memcpy(dead->procs, n->procs, sizeof(n->procs));
	if (clean) /* nothing of it is relied upon any more */
		memset(dead->procs, 0, sizeof(dead->procs));
	empty_outbox(w, place);
	n->alive = false;
	pgroup_engine_free(gnodes[place].engine);
	gnodes[place].engine = NULL;
	post(w->now_ns + choose(w, 20 * MS), EV_CHANGE, 0, 0);
	post(w->now_ns + choose(w, 80 * MS), EV_RELEASE, 0, n->node);
}

/* Who is a member, with or without this group; who is gone, not released. */
static void hear_others(struct world *w, unsigned place)
{
	struct pgroup_event event = { .kind = PGROUP_EV_OTHERS };
	uint64_t procs[NODES_MAX + DEAD_MAX];

	for (unsigned i = 1; i <= w->node_count; i++) {
		if (w->nodes[i].alive)
			procs[event.others.count++] = gnodes[i].proc;
	}
	for (unsigned i = 0; i < w->dead_count; i++) {
		if (!w->dead[i].released)
			procs[event.others.count++] =
				pgroup_proc(w->dead[i].node & 255,
					    (uint32_t)w->dead[i].node);
	}
	event.others.procs = procs;
	gstep(w, place, &event);
}

/* The queue */

static void deliver(struct world *w, unsigned place)
{
	struct gnode *g = &gnodes[place];
	struct entry *e = &entries[positions[place]++];
	struct pgroup_event event = { 0 };
	uint64_t digest;
	int error;

	if (e->from) {
		event.kind = PGROUP_EV_MESSAGE;
		event.message.from = e->from;
		event.message.msg = &e->msg;
	} else {
		event.kind = PGROUP_EV_CONFIG;
		event.config.procs = e->procs;
		event.config.count = e->count;
	}
	error = gstep(w, place, &event);
	if (!e->from)
		post(w->now_ns + delay(w), EV_OTHERS, place,
		     w->nodes[place].node);
	if (error)
		fail(w, "entry %ld is refused by %llx: %d", (long)(e - entries),
		     (unsigned long long)w->nodes[place].node, error);
	if (!pgroup_is_live(g->engine))
		return;
	e = &entries[positions[place] - 1];
	digest = digest_of(g->engine);
	w->recalls++;
	if (e->digest && e->digest != digest)
		fail(w,
		     "behind entry %ld the tables of %llx are not those of "
		     "others",
		     (long)(e - entries),
		     (unsigned long long)w->nodes[place].node);
	e->digest = digest;
}

static void hear_released(struct world *w, const struct event *e)
{
	struct pgroup_event event = { .kind = PGROUP_EV_RELEASED };

	event.released.inc = e->about;
	if (gstep(w, e->place, &event) == -EAGAIN)
		post(w->now_ns + delay(w), EV_RELEASED, e->place, e->node)
			->about = e->about;
}

static void set_quorum(struct world *w, const struct event *e)
{
	struct pgroup_event event = { .kind = PGROUP_EV_QUORUM };

	if (w->trace)
		printf("%.6f %llx %s quorum\n", (double)w->now_ns / 1e9,
		       (unsigned long long)e->node, e->flag ? "has" : "loses");
	gnodes[e->place].stopped = !e->flag;
	event.quorum.quorate = e->flag;
	gstep(w, e->place, &event);
}

static void give(struct world *w, struct event *e)
{
	struct pgroup_event event = { .kind = PGROUP_EV_TICK };

	switch (e->kind) {
	case EV_ORDER:
		order_one(w, e->place);
		break;
	case EV_DELIVER:
		deliver(w, e->place);
		break;
	case EV_RELEASED:
		hear_released(w, e);
		break;
	case EV_OTHERS:
		hear_others(w, e->place);
		break;
	case EV_QUORUM:
		set_quorum(w, e);
		break;
	case EV_TICK:
		if (w->nodes[e->place].tick_ns == w->now_ns)
			gstep(w, e->place, &event);
		break;
	case EV_ACT:
		proc_act(w, e->place);
		post(w->now_ns + 1000 + choose(w, w->act_us * 1000ull), EV_ACT,
		     e->place, e->node);
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

static void lose_quorum(struct world *w, unsigned place)
{
	uint64_t at = w->now_ns + delay(w);
	uint64_t node = w->nodes[place].node;

	w->faults_done++;
	post(at, EV_QUORUM, place, node);
	post(at + 1 + choose(w, 30 * MS), EV_QUORUM, place, node)->flag = true;
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
			die(w, e->place, e->kind == EV_LEAVE);
		return;
	case EV_JOIN:
		if (n->alive)
			return;
		boot(w, e->place);
		post(w->now_ns + choose(w, 10 * MS), EV_CHANGE, 0, 0);
		return;
	case EV_LOSE_QUORUM:
		if (n->alive)
			lose_quorum(w, e->place);
		return;
	default:
		break;
	}
	if (n->alive && (!e->node || n->node == e->node))
		give(w, e);
}

void gworld_run(struct world *w, uint64_t until_ns)
{
	while (queue_count() && queue_at(0)->at_ns <= until_ns) {
		struct event *e = (struct event *)queue_take();

		w->now_ns = e->q.at_ns;
		happen(w, e);
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

static void choose_profile(struct world *w)
{
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
	w->next_ctx = 1;
	config = (struct pgroup_config){ .ownership = chance(w, 70) };
	config.tune = (struct plock_tuning){
		.rate_limit = chance(w, 20) ? 60 : 0,
		.drop_every_ns = 5 * MS,
		.drop_count = 3,
		.idle_ns = chance(w, 50) ? MS : 15 * MS,
	};
}

void gworld_setup(struct world *w, uint64_t seed)
{
	w->seed = seed;
	ug_prng_seed(&w->prng, seed);
	nomem_seed(seed);
	memset(positions, 0, sizeof(positions));
	memset(order_ns, 0, sizeof(order_ns));
	memset(deliver_ns, 0, sizeof(deliver_ns));
	memset(gnodes, 0, sizeof(gnodes));
	choose_profile(w);
	for (unsigned i = 1; i <= w->node_count; i++) {
		if (i == 1 || chance(w, 80))
			boot(w, i);
		else
			post(choose(w, 200 * MS), EV_JOIN, i, 0);
	}
	post(choose(w, 5 * MS), EV_CHANGE, 0, 0);
	plan_faults(w, 300 * MS);
}

void gworld_heal(struct world *w)
{
	struct pgroup_event event = { .kind = PGROUP_EV_TUNE };

	for (size_t i = 0; i < queue_count(); i++) {
		if (event_at(i)->kind >= EV_KILL)
			event_at(i)->kind = EV_NONE;
	}
	config.tune.rate_limit = 0;
	event.tune = config.tune;
	for (unsigned i = 1; i <= w->node_count; i++) {
		if (w->nodes[i].alive)
			gstep(w, i, &event);
	}
}

bool gworld_is_quiet(const struct world *w)
{
	for (unsigned i = 1; i <= w->node_count; i++) {
		if (w->nodes[i].alive &&
		    (!pgroup_is_live(gnodes[i].engine) || outboxes[i].count ||
		     positions[i] != entry_count))
			return false;
	}
	return true;
}

void gworld_end(struct world *w)
{
	while (queue_count())
		free(queue_take());
	for (size_t i = 0; i < entry_count; i++)
		free((void *)entries[i].msg.records);
	entry_count = 0;
	for (unsigned i = 1; i <= w->node_count; i++) {
		struct pgroup_counts counts;

		if (!w->nodes[i].alive)
			continue;
		pgroup_count(gnodes[i].engine, &counts);
		w->moves += counts.syncs;
		w->lends += counts.drops;
		pgroup_engine_free(gnodes[i].engine);
		outboxes[i].first = 0;
	}
	queue_reset();
}
