/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * groupworld.c - see groupworld.h.
 *
 * Checked all the time, for all processes that can decide:
 *  - the same base has the same table everywhere;
 *  - who is gone for a base is no member for any later one;
 *  - an engine starts only when the engines of all members have stopped for
 * that generation, and none of the gone is alive.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cluster/member_impl.h"
#include "groupworld.h"

#define SEEN_MAX 4096
#define STEP_NS 1000000u

struct seen_table {
	struct group_base base;
	uint64_t sum;
};

struct checker {
	unsigned tables_count;
	struct seen_table tables[SEEN_MAX];
};

static void must(bool holds, const char *what, const struct wproc *p)
{
	if (holds)
		return;
	fprintf(stderr, "broken: %s (process %u/%u)\n", what,
		p ? p->name.node : 0, p ? p->name.pid : 0);
	abort();
}

static unsigned below(struct world *w, unsigned limit)
{
	return (unsigned)ug_prng_below(&w->prng, limit);
}

/* Queues */

static void queue_put(struct queue *q, struct delivery *d)
{
	if (!q->tail)
		q->tail = &q->head;
	d->next = NULL;
	*q->tail = d;
	q->tail = &d->next;
	q->count++;
}

static struct delivery *queue_get(struct queue *q)
{
	struct delivery *d = q->head;

	if (!d)
		return NULL;
	q->head = d->next;
	if (!q->head)
		q->tail = &q->head;
	q->count--;
	return d;
}

static void delivery_free(struct delivery *d)
{
	free(d->bytes);
	free(d);
}

static void queue_empty(struct queue *q)
{
	struct delivery *d;

	while ((d = queue_get(q)))
		delivery_free(d);
}

static struct delivery *delivery_new(enum member_event_kind kind)
{
	struct delivery *d = calloc(1, sizeof(*d));

	if (!d)
		abort();
	d->ev.kind = kind;
	return d;
}

/* Checks */

static uint64_t table_sum(const struct group_state *table)
{
	uint64_t sum = table->generation * 2 + table->cleared;

	for (uint32_t i = 0; i < table->count; i++) {
		const struct member *member = &table->members[i];

		/* What is proved may be forgotten at different times. */
		if (member->cause != GONE_NOT)
			continue;
		sum += incarnation_short(&member->info.inc) * 31 +
		       member_id(member);
	}
	return sum;
}

static void check_known(struct world *w, const struct wproc *p)
{
	const struct group_state *table = membership_table(p->m);
	struct checker *c = w->checker;
	uint64_t sum = table_sum(table);
	unsigned i;

	for (i = 0; i < c->tables_count; i++)
		if (base_compare(&c->tables[i].base, &table->base) == 0)
			break;
	if (i < c->tables_count) {
		must(c->tables[i].sum == sum, "one base, two tables", p);
	} else if (c->tables_count < SEEN_MAX) {
		c->tables[c->tables_count].base = table->base;
		c->tables[c->tables_count++].sum = sum;
	}
}

static struct wproc *proc_of(struct world *w, const struct incarnation *inc)
{
	for (unsigned i = 0; i < WPROCS_MAX; i++)
		if (w->procs[i].used &&
		    incarnation_equal(&w->procs[i].inc, inc))
			return &w->procs[i];
	return NULL;
}

/* Whoever has once seen a member gone never sees it a member again. */
static void check_gone(struct world *w, struct wproc *p)
{
	const struct group_state *table = membership_table(p->m);

	for (uint32_t i = 0; i < table->count; i++) {
		const struct member *member = &table->members[i];
		const struct wproc *other = proc_of(w, &member->info.inc);
		uint64_t bit;

		if (!other)
			continue;
		bit = UINT64_C(1) << (other - w->procs);
		if (member->cause != GONE_NOT)
			p->seen_gone |= bit;
		else
			must(!(p->seen_gone & bit), "a gone member is back", p);
	}
}

static void check_start(struct world *w, const struct wproc *p,
			uint64_t generation)
{
	const struct group_state *table = membership_table(p->m);

	must(table->generation == generation, "start of another generation", p);
	for (uint32_t i = 0; i < table->count; i++) {
		const struct member *member = &table->members[i];
		const struct wproc *other = proc_of(w, &member->info.inc);

		if (member->cause == GONE_NOT)
			must(other && other->stopped >= generation,
			     "started before all had stopped", p);
		else
			must(!other || !other->alive || other->leaving,
			     "started beside one who is alive", p);
	}
	/* Not beside one either that the table has never heard of. */
	for (unsigned i = 0; i < WPROCS_MAX && !w->refounded; i++) {
		const struct wproc *other = &w->procs[i];
		const struct member *member =
			membership_find(p->m, &other->inc);

		if (other->used && other->alive && other->started &&
		    !other->leaving)
			must(member && member->cause == GONE_NOT,
			     "started beside another group", p);
	}
}

/* Processes */

static unsigned node_part(const struct world *w, uint32_t node)
{
	return w->part[node - w->node_base - 1];
}

static bool connected(const struct world *w, const struct wproc *p,
		      const struct wproc *q)
{
	return q->used && q->alive &&
	       node_part(w, p->name.node) == node_part(w, q->name.node);
}

static void send_bytes(struct world *w, struct wproc *p,
		       const struct group_msg *msg)
{
	struct delivery *d = delivery_new(MEV_MESSAGE);
	long len;

	d->from = p->name;
	d->alien = p->alien;
	d->bytes = malloc(GROUP_MSG_MAX);
	if (!d->bytes)
		abort();
	len = group_msg_encode(msg, d->bytes, GROUP_MSG_MAX);
	must(len > 0, "a message does not fit", p);
	d->len = (size_t)len;
	if (msg->type == GM_STATE)
		w->states++;
	if (msg->type == GM_JUDGE)
		w->judged++;
	queue_put(&p->out_queue, d);
}

/*
 * A group that begins anew uses bases again. It knows nothing of an earlier one
 * that is cut off: there the start-up rule has to keep it from the disk.
 */
static void founded(struct world *w, const struct wproc *p)
{
	w->checker->tables_count = 0;
	for (unsigned i = 0; i < WPROCS_MAX; i++) {
		const struct wproc *other = &w->procs[i];

		if (other->alive && other->admitted &&
		    !membership_find(p->m, &other->inc))
			w->refounded = true;
	}
}

static void do_update(struct world *w, struct wproc *p,
		      const struct member_update *up)
{
	switch (up->kind) {
	case MUP_SEND:
		send_bytes(w, p, &up->send);
		break;
	case MUP_ADMITTED:
		must(!p->admitted, "admitted twice", p);
		must(incarnation_equal(&up->member.info.inc, &p->inc),
		     "admitted as another", p);
		p->admitted = true;
		if (up->founder)
			founded(w, p);
		break;
	case MUP_GONE:
		w->gone++;
		break;
	case MUP_SETTLED:
		break;
	case MUP_CHANGE:
		must(up->generation > p->stop_wanted || !p->stop_wanted,
		     "generations go back", p);
		p->stop_wanted = up->generation;
		break;
	case MUP_START:
		check_start(w, p, up->generation);
		must(up->generation > p->started, "started twice", p);
		p->started = up->generation;
		w->starts++;
		break;
	case MUP_OUT:
		must(up->out.cause != OUT_BEHIND, "out because behind", p);
		must(up->out.cause == OUT_LEFT || p->was_disturbed,
		     "out without a reason", p);
		p->out = true;
		w->out[up->out.cause]++;
		break;
	case MUP_BACK:
		w->back++;
		break;
	case MUP_JOINED:
	case MUP_MISSING:
	case MUP_PROVED:
	case MUP_MINOR:
		break;
	case MUP_CLEARED:
		must(!p->cleared, "cleared twice", p);
		p->cleared = true;
		break;
	}
	if (w->trace)
		printf("  %u/%u: update %d generation %llu\n", p->name.node,
		       p->name.pid, up->kind,
		       (unsigned long long)up->generation);
}

void world_give(struct world *w, struct wproc *p, struct member_event *ev)
{
	struct member_updates out = { 0 };
	int err;

	ev->now_ns = w->now_ns;
	err = membership_step(p->m, ev, &out);
	must(err == 0 || (err == -22 &&
			  (ev->kind == MEV_LEAVE || ev->kind == MEV_STOPPED)),
	     "an event is refused", p);
	for (size_t i = 0; i < out.count; i++)
		do_update(w, p, &out.list[i]);
	member_updates_free(&out);
	if (membership_settled(p->m)) {
		check_known(w, p);
		check_gone(w, p);
	}
}

static void trace_event(const struct world *w, const struct wproc *p,
			const struct delivery *d)
{
	const struct group_msg *msg = d->ev.message.msg;

	if (!w->trace)
		return;
	printf("%u/%u: ", p->name.node, p->name.pid);
	if (d->ev.kind == MEV_CONFIG)
		printf("%u processes, %u left\n", d->ev.config.procs_count,
		       d->ev.config.left_count);
	else if (d->ev.kind == MEV_RING)
		printf("ring %u.%llu\n", d->ev.ring.id.node,
		       (unsigned long long)d->ev.ring.id.seq);
	else if (msg)
		printf("message %d of %u/%u, base %u.%llu.%llu\n", msg->type,
		       d->from.node, d->from.pid, msg->hello.base.ring.node,
		       (unsigned long long)msg->hello.base.ring.seq,
		       (unsigned long long)msg->hello.base.count);
}

static void receive(struct world *w, struct wproc *p)
{
	static struct group_state state;
	struct delivery *d = queue_get(&p->in);
	struct group_msg msg;

	if (d->ev.kind == MEV_MESSAGE) {
		int err = group_msg_decode(d->bytes, d->len, &msg, &state);

		must(err == 0, "a message cannot be read", p);
		d->ev.message.from = d->from;
		d->ev.message.msg = d->alien == p->alien ? &msg : NULL;
		d->ev.message.major = d->alien ? 2 : 1;
		d->ev.message.has_state = msg.has_state;
	}
	trace_event(w, p, d);
	world_give(w, p, &d->ev);
	delivery_free(d);
}

/* The group, seen from p: those it is connected with. */
static struct delivery *config_for(struct world *w, const struct wproc *p,
				   const bool *kept)
{
	struct delivery *d = delivery_new(MEV_CONFIG);
	unsigned n = 0;

	for (unsigned i = 0; i < WPROCS_MAX; i++)
		if (connected(w, p, &w->procs[i]) && (!kept || kept[i]))
			d->procs[n++] = w->procs[i].name;
	d->ev.config.procs = d->procs;
	d->ev.config.procs_count = n;
	d->ev.config.left = d->left;
	return d;
}

static void ring_for(struct world *w, struct wproc *p)
{
	struct delivery *d = delivery_new(MEV_RING);
	unsigned n = 0, node;

	for (node = w->node_base + 1; node <= w->node_base + w->nodes; node++)
		if (node_part(w, node) == node_part(w, p->name.node))
			d->nodes[n++] = node;
	d->ev.ring.id = w->ring[p->name.node - w->node_base - 1];
	d->ev.ring.nodes = d->nodes;
	d->ev.ring.nodes_count = n;
	queue_put(&p->in, d);
	p->quorum_ring = d->ev.ring.id;
	p->quorate = w->two_node || 2 * n > w->nodes;
}

struct wproc *world_spawn(struct world *w, unsigned node)
{
	struct membership_config config = { 0 };
	struct wproc *p = NULL;

	for (unsigned i = 0; i < WPROCS_MAX && !p; i++)
		if (!w->procs[i].used)
			p = &w->procs[i];
	if (!p)
		return NULL;
	*p = (struct wproc){ .used = true, .alive = true };
	p->alien = w->alien;
	p->name = (struct group_proc){ w->node_base + node, w->next_pid++ };
	p->inc.boot_id[0] = (uint8_t)node;
	p->inc.pid = p->name.pid;
	p->inc.start_ticks = w->now_ns;
	config.self = p->name;
	config.info.inc = p->inc;
	must(membership_new(&config, &p->m) == 0, "new", p);
	for (unsigned i = 0; i < WPROCS_MAX; i++)
		if (connected(w, p, &w->procs[i]))
			queue_put(&w->procs[i].in,
				  config_for(w, &w->procs[i], NULL));
	ring_for(w, p);
	return p;
}

void world_crash(struct world *w, struct wproc *p)
{
	p->alive = false;
	for (unsigned i = 0; i < WPROCS_MAX; i++) {
		struct wproc *q = &w->procs[i];
		struct delivery *d;

		if (!connected(w, p, q))
			continue;
		d = config_for(w, q, NULL);
		d->left[0] = (struct group_left){ p->name, LEAVE_PROCESS };
		d->ev.config.left_count = 1;
		queue_put(&q->in, d);
	}
	queue_empty(&p->in);
	queue_empty(&p->out_queue);
	membership_free(p->m);
	p->m = NULL;
}

/* As the links layer reports it; either of the two may have to go for it. */
void world_link(struct world *w, struct wproc *from, struct wproc *about,
		bool silent)
{
	struct member_event ev = { .kind = MEV_LINK };

	if (silent)
		from->was_disturbed = about->was_disturbed = true;
	ev.link.inc = about->inc;
	ev.link.silent = silent;
	world_give(w, from, &ev);
}

static struct delivery *delivery_copy(const struct delivery *d)
{
	struct delivery *copy = delivery_new(d->ev.kind);

	copy->from = d->from;
	copy->alien = d->alien;
	copy->len = d->len;
	copy->bytes = malloc(d->len);
	if (!copy->bytes)
		abort();
	memcpy(copy->bytes, d->bytes, d->len);
	return copy;
}

/* Order the oldest message of p among those of its partition in part[]. */
static void order_one(struct world *w, struct wproc *p, const unsigned *part)
{
	struct delivery *d = queue_get(&p->out_queue);

	for (unsigned i = 0; d && i < WPROCS_MAX; i++) {
		struct wproc *q = &w->procs[i];

		if (connected(w, p, q) &&
		    part[p->name.node - w->node_base - 1] ==
			    part[q->name.node - w->node_base - 1])
			queue_put(&q->in, delivery_copy(d));
	}
	if (d)
		delivery_free(d);
}

/* Last words of the old rings: heard only by those who stay together. */
static void last_words(struct world *w, const unsigned *part)
{
	for (unsigned i = 0; i < WPROCS_MAX; i++) {
		struct wproc *p = &w->procs[i];
		unsigned n;

		if (!p->used || !p->alive)
			continue;
		for (n = below(w, p->out_queue.count + 1); n; n--)
			order_one(w, p, part);
	}
}

static void new_rings(struct world *w, const unsigned *part)
{
	uint64_t seq[NODES_MAX] = { 0 };

	for (unsigned i = 0; i < w->nodes; i++)
		if (w->ring[i].seq >= seq[part[i]])
			seq[part[i]] = w->ring[i].seq + 4;
	for (unsigned i = w->nodes; i-- > 0;) {
		w->part[i] = part[i];
		for (unsigned j = 0; j < w->nodes; j++)
			if (part[j] == part[i])
				w->ring[j] =
					(struct ring_id){ i + 1, seq[part[i]] };
	}
}

void world_partition(struct world *w, const unsigned *part)
{
	bool met[WPROCS_MAX][WPROCS_MAX];

	last_words(w, part);
	for (unsigned i = 0; i < WPROCS_MAX; i++)
		for (unsigned j = 0; j < WPROCS_MAX; j++)
			met[i][j] = w->procs[i].used && w->procs[i].alive &&
				    connected(w, &w->procs[i], &w->procs[j]);
	new_rings(w, part);
	for (unsigned i = 0; i < WPROCS_MAX; i++) {
		struct wproc *p = &w->procs[i];
		unsigned left = 0, joined = 0;
		struct delivery *d;

		if (!p->used || !p->alive)
			continue;
		d = config_for(w, p, met[i]);
		for (unsigned j = 0; j < WPROCS_MAX; j++) {
			bool now = connected(w, p, &w->procs[j]);

			joined += now && !met[i][j];
			if (met[i][j] && !now)
				d->left[left++] =
					(struct group_left){ w->procs[j].name,
							     LEAVE_HOST };
		}
		d->ev.config.left_count = left;
		if (left)
			queue_put(&p->in, d);
		else
			delivery_free(d);
		if (joined)
			queue_put(&p->in, config_for(w, p, NULL));
		ring_for(w, p);
		p->was_disturbed = true;
	}
}

void world_heal(struct world *w)
{
	static const unsigned together[NODES_MAX];

	world_partition(w, together);
}

/* By its supervisor, who hears of it; or with all of its host, by a fence. */
static enum death_proof end_process(struct world *w, struct wproc *by,
				    struct wproc *dead)
{
	bool reachable =
		node_part(w, by->name.node) == node_part(w, dead->name.node);

	for (unsigned i = 0; i < WPROCS_MAX; i++) {
		struct wproc *p = &w->procs[i];

		if (p->alive &&
		    (p == dead ||
		     (!reachable && p->name.node == dead->name.node)))
			world_crash(w, p);
	}
	return reachable ? PROOF_REAPED : PROOF_FENCED;
}

static bool prove_one(struct world *w, struct wproc *p)
{
	const struct group_state *table = membership_table(p->m);

	if (w->no_proofs)
		return false;
	for (uint32_t i = 0; table && i < table->count; i++) {
		const struct member *member = &table->members[i];
		struct member_event ev = { .kind = MEV_PROOF };
		struct wproc *dead;

		if (member->cause == GONE_NOT || member->proof)
			continue;
		ev.proof.inc = member->info.inc;
		ev.proof.proof = PROOF_REAPED;
		dead = proc_of(w, &member->info.inc);
		if (dead)
			ev.proof.proof = end_process(w, p, dead);
		world_give(w, p, &ev);
		return true;
	}
	return false;
}

static bool proc_step(struct world *w, struct wproc *p)
{
	struct member_event ev = { 0 };

	if (p->out_queue.count && below(w, 2)) {
		order_one(w, p, w->part);
		return true;
	}
	if (p->frozen)
		return false;
	if (p->out && below(w, 4) == 0) {
		world_crash(w, p);
		return true;
	}
	if (p->quorum_ring.seq && below(w, 3) == 0) {
		ev.kind = MEV_QUORUM;
		ev.quorum.ring = p->quorum_ring;
		ev.quorum.quorate = p->quorate;
		p->quorum_ring.seq = 0;
		world_give(w, p, &ev);
		return true;
	}
	if (p->stop_wanted > p->stopped && below(w, 3) == 0) {
		ev.kind = MEV_STOPPED;
		ev.generation = p->stopped = p->stop_wanted;
		world_give(w, p, &ev);
		return true;
	}
	if (membership_wake_ns(p->m) <= w->now_ns) {
		ev.kind = MEV_TICK;
		world_give(w, p, &ev);
		return true;
	}
	if (membership_settled(p->m) && below(w, 20) == 0 && prove_one(w, p))
		return true;
	if (p->in.count) {
		receive(w, p);
		return true;
	}
	return false;
}

bool world_step(struct world *w)
{
	unsigned first = below(w, WPROCS_MAX);

	w->now_ns += STEP_NS;
	for (unsigned i = 0; i < WPROCS_MAX; i++) {
		struct wproc *p = &w->procs[(first + i) % WPROCS_MAX];

		if (p->used && p->alive && proc_step(w, p))
			return true;
	}
	return false;
}

void world_run_dry(struct world *w)
{
	unsigned idle = 0;

	/* Choices are random: one idle step does not mean that all is done. */
	while (idle < 200) {
		if (world_step(w)) {
			idle = 0;
		} else {
			w->now_ns += 300000000u;
			idle++;
		}
	}
}

void world_init(struct world *w, uint64_t seed, unsigned nodes)
{
	memset(w, 0, sizeof(*w));
	ug_prng_seed(&w->prng, seed);
	w->nodes = nodes;
	w->next_pid = 100;
	w->two_node = nodes == 2;
	w->checker = calloc(1, sizeof(*w->checker));
	if (!w->checker)
		abort();
	for (unsigned i = 0; i < nodes; i++)
		w->ring[i] = (struct ring_id){ 1, 4 };
}

void world_fini(struct world *w)
{
	for (unsigned i = 0; i < WPROCS_MAX; i++) {
		struct wproc *p = &w->procs[i];

		queue_empty(&p->in);
		queue_empty(&p->out_queue);
		if (p->m)
			membership_free(p->m);
	}
	free(w->checker);
}
