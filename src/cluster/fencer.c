/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * fencer.c - see fencer.h.
 *
 *   members           supervisors of 1      of 2
 *	|--ASK(3)---------->|-------------->|	each second, from all members
 *	|   ... kill_timeout without a proof ...
 *	|<--FENCE begun(3)--|-------------->|	1 is the lowest that can
 *	|		    | runs its fence command
 *	|<--FENCE failed----|-------------->|	again later; after two failures
 *	|<--FENCE begun(3)------------------|	the next one has its turn
 *	|<--FENCE done(3)-------------------|
 *
 * Each supervisor finds out by itself whose turn it is, but begins only at the
 * delivery of its own "begun", if nobody else's came before it and has not
 * ended: so there is one at a time however the clocks run. Those with a turn
 * are the supervisors of members that ask, on other hosts than the lost one,
 * with a fence command. One that does not begin when it should (it may be
 * frozen) is passed over after GRACE_NS.
 *
 * A host that has left the ring is heard by nobody: it is not waited for. But
 * one that has not been there since quorum came, or since this supervisor
 * began, may be about to come: a ring grows together step by step.
 *
 * A command that says "off" is believed when the host is, or was meanwhile, out
 * of the ring: an agent that is set up for the wrong plug says so too.
 */
#include <stdlib.h>
#include <string.h>

#include "base/compiler.h"
#include "cluster/fencer.h"

#define SEC_NS 1000000000u

/* Members ask each second. Who has not for so long does not any more. */
#define FRESH_NS (5 * (uint64_t)SEC_NS)
/* A fence begins on a question that is no older: it may have been answered. */
#define PRESENT_NS (2 * (uint64_t)SEC_NS)
#define DEAD_MAX 64
/* Late with a turn. */
#define GRACE_NS (3 * (uint64_t)SEC_NS)
/*
 * The ring's changes and the group's messages come on two connections: which of
 * them is heard first is left to chance.
 */
#define ABSENT_NS ((uint64_t)SEC_NS * 3 / 10)
#define TRIES_EACH 2
#define BACKOFF_MAX_SHIFT 6 /* 1, 2, 4 .. 64 s */
/* For a host that was switched off to be missed: token and consensus. */
#define OUT_OF_RING_NS (30 * (uint64_t)SEC_NS)

struct sup {
	struct group_proc proc;
	uint32_t child; /* 0: has not said it yet */
	enum fence_kind kind;
};

struct asker {
	struct group_proc proc;
	uint64_t last_ns;
};

enum run_state {
	RUN_NONE,
	RUN_CLAIMED, /* own "begun" is on its way */
	RUN_OTHER,   /* another supervisor's */
	RUN_OWN,     /* the command runs */
	RUN_CHECK,   /* it says off: waiting for the ring to say so too */
};

struct target {
	uint32_t node;
	/* The question that the time runs from; 0: none that is unanswered. */
	uint64_t asked_ns;
	struct incarnation asked_inc;
	uint64_t open_ns;    /* asked last without an answer since, or 0 */
	uint8_t boot_id[16]; /* that it was asked for last */
	uint64_t off_ns;     /* that boot has ended then; 0: not, or long ago */
	uint64_t due_ns;     /* not before: the pause after a run */
	unsigned tries;
	enum run_state run;
	struct group_proc actor;
	uint64_t run_end_ns; /* when it is given up */
	bool seen_out;	     /* of the ring, since the run began */
	unsigned askers_count;
	struct asker askers[GROUP_PROCS_MAX];
};

struct fencer {
	struct fencer_config config;
	struct group_proc self;
	bool quorate, two_node;
	uint64_t quorate_ns; /* since when */
	unsigned seen_count;
	uint32_t seen[GROUP_PROCS_MAX]; /* in the ring, since then */
	unsigned nodes_count;
	uint32_t nodes[GROUP_PROCS_MAX];
	unsigned sups_count;
	struct sup sups[GROUP_PROCS_MAX];
	unsigned targets_count;
	struct target targets[FENCE_TARGETS_MAX];
	/* Answered lately: a question can cross its answer. */
	unsigned dead_next;
	struct {
		struct incarnation inc;
		uint64_t said_ns;
	} dead[DEAD_MAX];
	struct fencer_updates *updates; /* of the current step */
	uint64_t now_ns;
};

struct fencer *fencer_new(const struct fencer_config *config)
{
	struct fencer *f = calloc(1, sizeof(*f));

	if (f)
		f->config = *config;
	return f;
}

void fencer_free(struct fencer *f)
{
	free(f);
}

static bool same_proc(struct group_proc a, struct group_proc b)
{
	return a.node == b.node && a.pid == b.pid;
}

static struct fencer_update *update_add(struct fencer *f,
					enum fencer_update_kind kind)
{
	struct fencer_updates *out = f->updates;
	struct fencer_update *up = &out->list[out->count];

	/* At most two a target and one announcement a step. */
	if (out->count < UG_ARRAY_SIZE(out->list) - 1)
		out->count++;
	memset(up, 0, sizeof(*up));
	up->kind = kind;
	return up;
}

static struct group_msg *send_add(struct fencer *f, enum group_msg_type type)
{
	struct group_msg *msg = &update_add(f, FENCER_SEND)->send;

	msg->type = type;
	msg->major = GROUP_VERSION_MAJOR;
	return msg;
}

static void say_fence(struct fencer *f, const struct target *t,
		      enum fence_state state, int status)
{
	struct group_msg *msg = send_add(f, GM_FENCE);

	msg->fence.node = t->node;
	msg->fence.state = state;
	msg->fence.tries = t->tries + (state == FENCE_BEGUN);
	msg->fence.status = status;
}

static bool has_node(const uint32_t *nodes, unsigned count, uint32_t node)
{
	for (unsigned i = 0; i < count; i++)
		if (nodes[i] == node)
			return true;
	return false;
}

static bool is_in_ring(const struct fencer *f, uint32_t node)
{
	return has_node(f->nodes, f->nodes_count, node);
}

/* Targets */

static struct target *find_target(struct fencer *f, uint32_t node)
{
	for (unsigned i = 0; i < f->targets_count; i++)
		if (f->targets[i].node == node)
			return &f->targets[i];
	return NULL;
}

static struct target *get_target(struct fencer *f, uint32_t node)
{
	struct target *t = find_target(f, node);

	if (t || f->targets_count == FENCE_TARGETS_MAX)
		return t;
	t = &f->targets[f->targets_count++];
	memset(t, 0, sizeof(*t));
	t->node = node;
	return t;
}

static void drop_target(struct fencer *f, struct target *t)
{
	*t = f->targets[--f->targets_count];
}

static bool is_own_run(const struct target *t)
{
	return t->run == RUN_OWN || t->run == RUN_CHECK;
}

static bool is_fresh(const struct fencer *f, const struct asker *asker)
{
	return f->now_ns < asker->last_ns + FRESH_NS;
}

static void drop_stale_askers(const struct fencer *f, struct target *t)
{
	unsigned kept = 0;

	for (unsigned i = 0; i < t->askers_count; i++)
		if (is_fresh(f, &t->askers[i]))
			t->askers[kept++] = t->askers[i];
	t->askers_count = kept;
}

/* By now everybody has heard of it. */
static void forget_off(const struct fencer *f, struct target *t)
{
	if (t->off_ns && f->now_ns >= t->off_ns + FRESH_NS)
		t->off_ns = 0;
}

static void note_asker(struct fencer *f, struct target *t,
		       struct group_proc from)
{
	for (unsigned i = 0; i < t->askers_count; i++) {
		if (!same_proc(t->askers[i].proc, from))
			continue;
		t->askers[i].last_ns = f->now_ns;
		return;
	}
	if (t->askers_count < GROUP_PROCS_MAX)
		t->askers[t->askers_count++] =
			(struct asker){ from, f->now_ns };
}

/* Turns */

static bool has_turn(const struct target *t, const struct sup *sup)
{
	if (!sup->child || sup->kind != FENCE_COMMAND ||
	    sup->proc.node == t->node)
		return false;
	for (unsigned i = 0; i < t->askers_count; i++)
		if (t->askers[i].proc.node == sup->proc.node &&
		    t->askers[i].proc.pid == sup->child)
			return true;
	return false;
}

static bool is_before(const struct sup *a, const struct sup *b)
{
	return a->proc.node != b->proc.node ? a->proc.node < b->proc.node
					    : a->child < b->child;
}

/* How many turns come before the own one; -1: it has none. */
static int own_turn(const struct fencer *f, const struct target *t)
{
	const struct sup *own = NULL;
	unsigned count = 0, before = 0, first;

	for (unsigned i = 0; i < f->sups_count; i++)
		if (same_proc(f->sups[i].proc, f->self))
			own = &f->sups[i];
	if (!own || !has_turn(t, own))
		return -1;
	for (unsigned i = 0; i < f->sups_count; i++) {
		const struct sup *sup = &f->sups[i];

		count += has_turn(t, sup);
		before += has_turn(t, sup) && is_before(sup, own);
	}
	first = t->tries / TRIES_EACH % count;
	return (int)((before + count - first) % count);
}

/* Of two that are cut from each other, one has to be first (DESIGN 4.7). */
static uint64_t handicap_ns(const struct fencer *f, const struct target *t)
{
	return f->two_node && f->self.node > t->node && !is_in_ring(f, t->node)
		       ? f->config.delay_ns
		       : 0;
}

/* Until when the host itself may say that its member is dead. */
static uint64_t answer_due_ns(const struct fencer *f, const struct target *t)
{
	uint64_t timeout_ns = f->config.kill_timeout_ns;
	uint64_t absent_ns = t->asked_ns + ABSENT_NS;

	if (is_in_ring(f, t->node))
		return t->asked_ns + timeout_ns;
	if (!has_node(f->seen, f->seen_count, t->node))
		absent_ns = UG_MAX(absent_ns, f->quorate_ns + timeout_ns);
	return UG_MIN(absent_ns, t->asked_ns + timeout_ns);
}

static uint64_t own_due_ns(const struct fencer *f, const struct target *t)
{
	int turn = own_turn(f, t);

	if (turn < 0 || !f->quorate || t->run != RUN_NONE || !t->open_ns ||
	    f->now_ns > t->open_ns + PRESENT_NS)
		return UINT64_MAX;
	return UG_MAX(t->due_ns, answer_due_ns(f, t)) +
	       (uint64_t)turn * GRACE_NS + handicap_ns(f, t);
}

/* Runs */

static void run_over(struct fencer *f, struct target *t, uint64_t pause_ns)
{
	t->run = RUN_NONE;
	t->due_ns = f->now_ns + pause_ns;
}

static uint64_t backoff_ns(unsigned tries)
{
	unsigned shift = tries ? tries - 1 : 0;

	return (uint64_t)SEC_NS << UG_MIN(shift, BACKOFF_MAX_SHIFT);
}

/* The update may be the last that is heard of it here. */
static void run_failed(struct fencer *f, struct target *t, int status)
{
	say_fence(f, t, FENCE_FAILED, status);
	run_over(f, t, backoff_ns(t->tries));
}

/* It is down. */
static void run_answered(struct fencer *f, struct target *t)
{
	t->off_ns = f->now_ns;
	t->asked_ns = 0;
	t->open_ns = 0;
	t->tries = 0;
	run_over(f, t, 0);
}

static void check_ring(struct fencer *f, struct target *t)
{
	if (!is_in_ring(f, t->node))
		t->seen_out = true;
	if (t->run != RUN_CHECK)
		return;
	if (t->seen_out) {
		say_fence(f, t, FENCE_DONE, 0);
		run_over(f, t, backoff_ns(t->tries));
	} else if (f->now_ns >= t->run_end_ns) {
		run_failed(f, t, FENCE_END_IN_RING);
	}
}

static void on_begun(struct fencer *f, struct group_proc from,
		     const struct group_fence *fence)
{
	struct target *t = get_target(f, fence->node);
	bool own = same_proc(from, f->self);

	if (!t || t->run > RUN_CLAIMED)
		return; /* somebody else was first */
	t->tries = fence->tries;
	t->actor = from;
	t->run = own ? RUN_OWN : RUN_OTHER;
	t->seen_out = !is_in_ring(f, t->node);
	t->run_end_ns =
		f->now_ns + f->config.run_max_ns + OUT_OF_RING_NS + GRACE_NS;
	if (own && !f->quorate)
		run_failed(f, t, FENCE_END_NO_QUORUM);
	else if (own)
		update_add(f, FENCER_RUN)->node = t->node;
}

static void on_fence(struct fencer *f, struct group_proc from,
		     const struct group_fence *fence)
{
	struct target *t;

	if (fence->state == FENCE_BEGUN) {
		on_begun(f, from, fence);
		return;
	}
	t = find_target(f, fence->node);
	if (!t || is_own_run(t))
		return;
	if (fence->state == FENCE_DONE) {
		run_answered(f, t);
		return;
	}
	/* Of one that took too long: another one is at it by now. */
	if (t->run == RUN_OTHER && !same_proc(from, t->actor))
		return;
	t->tries = fence->tries;
	run_over(f, t, backoff_ns(t->tries));
}

static bool is_dead(const struct fencer *f, const struct incarnation *inc)
{
	for (unsigned i = 0; i < DEAD_MAX; i++)
		if (f->dead[i].said_ns &&
		    f->now_ns < f->dead[i].said_ns + FRESH_NS &&
		    incarnation_equal(&f->dead[i].inc, inc))
			return true;
	return false;
}

/* Others may be missed on that host: then they are asked for again. */
static void on_dead(struct fencer *f, struct group_proc from,
		    const struct group_dead *dead)
{
	struct target *t = find_target(f, from.node);

	if (!is_dead(f, &dead->inc)) {
		unsigned at = f->dead_next++ % DEAD_MAX;

		f->dead[at].inc = dead->inc;
		f->dead[at].said_ns = f->now_ns;
	}
	if (!t)
		return;
	t->open_ns = 0;
	if (incarnation_equal(&dead->inc, &t->asked_inc))
		t->asked_ns = 0;
}

/* Who asks has not heard yet that it is down. It may have booted since. */
static bool is_off(const struct target *t, const struct incarnation *inc)
{
	return t && t->off_ns &&
	       !memcmp(t->boot_id, inc->boot_id, sizeof(t->boot_id));
}

static void on_ask(struct fencer *f, struct group_proc from,
		   const struct group_ask *ask)
{
	struct target *t = find_target(f, ask->proc.node);

	if (is_dead(f, &ask->inc) || is_off(t, &ask->inc))
		return;
	t = get_target(f, ask->proc.node);
	if (!t)
		return;
	memcpy(t->boot_id, ask->inc.boot_id, sizeof(t->boot_id));
	t->off_ns = 0;
	t->open_ns = f->now_ns;
	if (!t->asked_ns) {
		t->asked_ns = f->now_ns;
		t->asked_inc = ask->inc;
	}
	note_asker(f, t, from);
}

static void on_supervisor(struct fencer *f, struct group_proc from,
			  const struct group_supervisor *said)
{
	for (unsigned i = 0; i < f->sups_count; i++) {
		if (!same_proc(f->sups[i].proc, from))
			continue;
		f->sups[i].child = said->child;
		f->sups[i].kind = said->fence;
	}
}

static void on_message(struct fencer *f, struct group_proc from,
		       const struct group_msg *msg)
{
	struct target *t;

	switch (msg->type) {
	case GM_SUPERVISOR:
		on_supervisor(f, from, &msg->supervisor);
		break;
	case GM_ASK:
		on_ask(f, from, &msg->ask);
		break;
	case GM_DEAD:
		on_dead(f, from, &msg->dead);
		break;
	case GM_FENCE:
		on_fence(f, from, &msg->fence);
		break;
	case GM_FENCE_ACK:
		t = find_target(f, msg->node);
		if (t && !is_own_run(t))
			run_answered(f, t);
		break;
	default:
		break;
	}
}

/* The processes of the group */

static const struct sup *find_sup(const struct sup *list, unsigned count,
				  struct group_proc proc)
{
	for (unsigned i = 0; i < count; i++)
		if (same_proc(list[i].proc, proc))
			return &list[i];
	return NULL;
}

/* Whoever is new does not know what this one watches. */
static void announce(struct fencer *f)
{
	struct group_msg *msg = send_add(f, GM_SUPERVISOR);

	msg->supervisor.child = f->config.child;
	msg->supervisor.fence = f->config.kind;
}

static void drop_lost_runs(struct fencer *f)
{
	for (unsigned i = 0; i < f->targets_count; i++) {
		struct target *t = &f->targets[i];
		bool claimed_in_vain = t->run == RUN_CLAIMED && !f->sups_count;

		if (claimed_in_vain ||
		    (t->run == RUN_OTHER &&
		     !find_sup(f->sups, f->sups_count, t->actor)))
			run_over(f, t, 0);
	}
}

static void on_procs(struct fencer *f, const struct group_proc *list,
		     unsigned count)
{
	struct sup before[GROUP_PROCS_MAX];
	unsigned before_count = f->sups_count;
	bool joined = false;

	memcpy(before, f->sups, sizeof(before));
	f->sups_count = 0;
	for (unsigned i = 0; i < count && i < GROUP_PROCS_MAX; i++) {
		const struct sup *was = find_sup(before, before_count, list[i]);

		f->sups[f->sups_count++] =
			was ? *was : (struct sup){ .proc = list[i] };
		joined |= !was;
	}
	drop_lost_runs(f);
	if (joined)
		announce(f);
}

static void note_seen(struct fencer *f)
{
	for (unsigned i = 0; i < f->nodes_count; i++)
		if (f->seen_count < GROUP_PROCS_MAX &&
		    !has_node(f->seen, f->seen_count, f->nodes[i]))
			f->seen[f->seen_count++] = f->nodes[i];
}

static void on_quorum(struct fencer *f, const struct fencer_event *ev)
{
	if (!f->quorate) {
		f->quorate_ns = f->now_ns;
		f->seen_count = 0;
	}
	f->quorate = ev->quorum.quorate;
	f->two_node = ev->quorum.two_node;
	f->nodes_count = UG_MIN(ev->quorum.count, (unsigned)GROUP_PROCS_MAX);
	for (unsigned i = 0; i < f->nodes_count; i++)
		f->nodes[i] = ev->quorum.nodes[i];
	note_seen(f);
	for (unsigned i = 0; i < f->targets_count; i++) {
		check_ring(f, &f->targets[i]);
		if (f->targets[i].run == RUN_OWN && !f->quorate)
			update_add(f, FENCER_STOP)->node = f->targets[i].node;
	}
}

static void on_ended(struct fencer *f, uint32_t node, int status)
{
	struct target *t = find_target(f, node);

	if (!t || t->run != RUN_OWN)
		return;
	if (status) {
		run_failed(f, t, status);
		return;
	}
	t->run = RUN_CHECK;
	t->run_end_ns = f->now_ns + OUT_OF_RING_NS;
	check_ring(f, t);
}

/* Nobody asks any more, and nobody is at it. */
static bool is_over(const struct target *t)
{
	return !t->askers_count && t->run == RUN_NONE && !t->off_ns;
}

static void work(struct fencer *f)
{
	for (unsigned i = f->targets_count; i-- > 0;) {
		struct target *t = &f->targets[i];

		drop_stale_askers(f, t);
		forget_off(f, t);
		check_ring(f, t);
		if (t->run == RUN_OTHER && f->now_ns >= t->run_end_ns)
			run_over(f, t, 0);
		if (f->now_ns >= own_due_ns(f, t)) {
			t->run = RUN_CLAIMED;
			say_fence(f, t, FENCE_BEGUN, 0);
		} else if (is_over(t)) {
			drop_target(f, t);
		}
	}
}

void fencer_step(struct fencer *f, const struct fencer_event *ev,
		 struct fencer_updates *out)
{
	out->count = 0;
	f->updates = out;
	f->now_ns = ev->now_ns;
	switch (ev->kind) {
	case FENCER_PROCS:
		f->self = ev->procs.self;
		on_procs(f, ev->procs.list, ev->procs.count);
		break;
	case FENCER_MESSAGE:
		on_message(f, ev->message.from, ev->message.msg);
		break;
	case FENCER_QUORUM:
		on_quorum(f, ev);
		break;
	case FENCER_ENDED:
		on_ended(f, ev->ended.node, ev->ended.status);
		break;
	case FENCER_TICK:
		break;
	}
	work(f);
	f->updates = NULL;
}

static uint64_t target_wake_ns(const struct fencer *f, const struct target *t)
{
	uint64_t due = own_due_ns(f, t);

	for (unsigned i = 0; i < t->askers_count; i++)
		due = UG_MIN(due, t->askers[i].last_ns + FRESH_NS);
	if (t->run == RUN_OTHER || t->run == RUN_CHECK)
		due = UG_MIN(due, t->run_end_ns);
	if (t->off_ns)
		due = UG_MIN(due, t->off_ns + FRESH_NS);
	return due;
}

uint64_t fencer_wake_ns(const struct fencer *f)
{
	uint64_t due = UINT64_MAX;

	for (unsigned i = 0; i < f->targets_count; i++)
		due = UG_MIN(due, target_wake_ns(f, &f->targets[i]));
	return due;
}
