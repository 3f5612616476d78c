/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * member.c - the door of the membership: events to what they mean.
 *
 *   A, B members           C new
 *     |    corosync: A, B, C   |      a view begins; all say HELLO: who, in
 *     |--HELLO--HELLO--HELLO---|      which view, how old their knowledge is
 *     |    ... all heard       |      settled: everyone decides the same, from
 *     |                        |      the same HELLOs: C is admitted, those who
 *     |                        |      are not in the view are gone
 *     |---------STATE--------->|      the lowest of those who know tells the
 * rest
 *
 * Only a settled view decides, and only a quorate one settles. So a partition
 * without quorum decides nothing: when it is healed its processes either know
 * just what the others know and go on, or others have decided meanwhile, and
 * then their knowledge is the older one: they get the table, and leave if they
 * are not in it. Which knowledge is later needs no clock: two quorate rings
 * always share a node, so the later one has the higher sequence number.
 *
 * Proofs (GM_DEAD) are not decisions but facts, believed at once whoever says
 * them and wherever. Whoever knows facts says them again in every view before
 * its HELLO, so that all have them when it settles.
 * Source: docs/spec/cluster.md 2.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/grow.h"
#include "base/assert.h"
#include "cluster/member_impl.h"

bool proc_equal(struct group_proc a, struct group_proc b)
{
	return a.node == b.node && a.pid == b.pid;
}

int membership_new(const struct membership_config *config,
		   struct membership **out)
{
	struct membership *m;

	if (!config->self.node || config->self.node > NODE_ID_MAX ||
	    incarnation_is_zero(&config->info.inc))
		return -EINVAL;
	m = calloc(1, sizeof(*m));
	if (!m)
		return -ENOMEM;
	m->config = *config;
	if (!m->config.timeout_ns)
		m->config.timeout_ns = MEMBER_TIMEOUT_NS;
	*out = m;
	return 0;
}

void membership_free(struct membership *m)
{
	free(m);
}

void member_updates_free(struct member_updates *out)
{
	free(out->list);
	memset(out, 0, sizeof(*out));
}

/* Never NULL: an update that finds no memory is written nowhere, and told. */
struct member_update *member_update_add(struct membership *m,
					enum member_update_kind kind)
{
	static _Thread_local struct member_update nowhere;
	struct member_updates *out = m->updates;
	struct member_update *list, *up;

	list = ug_grow(out->list, &out->space, out->count + 1, sizeof(*list));
	if (!list) {
		m->failed = true;
		return &nowhere;
	}
	out->list = list;
	up = &out->list[out->count++];
	memset(up, 0, sizeof(*up));
	up->kind = kind;
	return up;
}

struct group_msg *send_add(struct membership *m, enum group_msg_type type)
{
	struct group_msg *msg = &member_update_add(m, MUP_SEND)->send;

	msg->type = type;
	msg->major = GROUP_VERSION_MAJOR;
	msg->has_state = m->has_state;
	return msg;
}

void member_update(struct membership *m, enum member_update_kind kind,
		   const struct member *member)
{
	member_update_add(m, kind)->member = *member;
}

void go_out(struct membership *m, enum out_cause cause)
{
	if (m->out)
		return;
	m->out = true;
	member_update_add(m, MUP_OUT)->out.cause = cause;
}

static bool is_self(const struct membership *m, const struct incarnation *inc)
{
	return incarnation_equal(inc, &m->config.info.inc);
}

static void do_dead(struct membership *m, const struct group_dead *dead)
{
	bool left =
		dead->proof == PROOF_LEFT || dead->proof == PROOF_LEFT_DIRTY;
	struct member *member = roster_find(m, &dead->inc);

	if (!member || !m->has_state)
		return;
	if (member->cause == GONE_NOT) {
		roster_gone(m, member, left ? GONE_LEFT : GONE_FOUND_DEAD);
		roster_prove(m, member, dead->proof);
		if (m->deciding)
			roster_decided(m);
	} else if (!member->proof) {
		roster_prove(m, member, dead->proof);
	}
	roster_start_if_ready(m);
}

static void do_expel(struct membership *m, const struct group_expel *expel)
{
	struct member *member;

	if (!m->deciding || !m->has_state)
		return;
	member = roster_find_live(m, expel->proc);
	if (!member || (!incarnation_is_zero(&expel->inc) &&
			!incarnation_equal(&expel->inc, &member->info.inc)))
		return;
	roster_gone(m, member, GONE_EXPELLED);
	roster_decided(m);
}

static void do_stopped(struct membership *m, struct group_proc from,
		       uint64_t generation)
{
	struct member *member = roster_find_live(m, from);

	if (!m->has_state || !member || generation != m->table.generation)
		return;
	member->stopped = generation;
	roster_start_if_ready(m);
}

/* Quorum that goes and comes again in one view: decisions rest meanwhile. */
static void do_quorum(struct membership *m, const struct group_hello *hello)
{
	if (!m->view.settled || !hello->quorum_known ||
	    hello->quorate == m->deciding)
		return;
	m->deciding = hello->quorate;
	member_update_add(m, MUP_SETTLED)->settled = m->deciding;
	if (m->deciding && m->changed)
		roster_decided(m);
	roster_start_if_ready(m);
}

static void do_cleared(struct membership *m)
{
	if (!m->deciding || !m->has_state || m->table.cleared)
		return;
	m->table.cleared = true;
	member_update_add(m, MUP_CLEARED);
	roster_decided(m);
}

static void apply(struct membership *m, struct group_proc from,
		  const struct group_msg *msg, uint64_t now_ns)
{
	switch (msg->type) {
	case GM_DEAD:
		do_dead(m, &msg->dead);
		break;
	case GM_EXPEL:
		do_expel(m, &msg->expel);
		break;
	case GM_STOPPED:
		do_stopped(m, from, msg->generation);
		break;
	case GM_HELLO:
		do_quorum(m, &msg->hello);
		break;
	case GM_LINK:
		reach_report(m, from, &msg->link, now_ns);
		break;
	case GM_JUDGE:
		reach_judge(m);
		break;
	case GM_CLEARED:
		do_cleared(m);
		break;
	default: /* the supervisors', or looked at before */
		break;
	}
}

static void save(struct membership *m, struct group_proc from,
		 const struct group_msg *msg)
{
	if (m->saved_count == GROUP_SAVED_MAX) {
		go_out(m, OUT_BEHIND);
		return;
	}
	m->saved[m->saved_count++] = (struct saved_msg){ from, *msg };
}

/* What came between the decision and the table is to be done after it. */
static void take_state(struct membership *m, const struct group_state *state,
		       uint64_t now_ns)
{
	if (!m->waiting || base_compare(&state->base, &m->expected) != 0)
		return;
	roster_adopt(m, state);
	for (unsigned i = 0; i < m->saved_count && !m->out; i++)
		apply(m, m->saved[i].from, &m->saved[i].msg, now_ns);
	m->saved_count = 0;
	if (!m->out)
		roster_start_if_ready(m);
}

/* Words about this very process count at once, whatever else it knows. */
static bool about_self(struct membership *m, const struct group_msg *msg)
{
	if (msg->type == GM_DEAD && is_self(m, &msg->dead.inc)) {
		bool left = msg->dead.proof == PROOF_LEFT ||
			    msg->dead.proof == PROOF_LEFT_DIRTY;

		go_out(m, left ? OUT_LEFT : OUT_EXPELLED);
		return true;
	}
	/* Of another incarnation: a dead one of this pid. Not as this pid. */
	if (msg->type == GM_EXPEL &&
	    proc_equal(msg->expel.proc, m->config.self)) {
		go_out(m, OUT_EXPELLED);
		return true;
	}
	return false;
}

static void step_message(struct membership *m, const struct member_event *ev)
{
	const struct group_msg *msg = ev->message.msg;
	struct group_proc from = ev->message.from;
	struct view_proc *vp = view_find(m, from);

	if (!vp)
		return;
	if (!msg) {
		view_alien(m, from, ev->message.major, ev->message.has_state);
		view_settle_if_complete(m);
		return;
	}
	if (vp->excluded || about_self(m, msg))
		return;
	if (msg->type == GM_STATE) {
		take_state(m, msg->state, ev->now_ns);
		return;
	}
	if (msg->type == GM_EXPEL)
		view_exclude(m, &msg->expel);
	if (msg->type == GM_HELLO)
		view_hello(m, from, &msg->hello, ev->now_ns);
	if (m->waiting && msg->type != GM_LEASE)
		save(m, from, msg);
	else
		apply(m, from, msg, ev->now_ns);
	view_settle_if_complete(m);
}

static int step_stopped(struct membership *m, uint64_t generation)
{
	if (!m->has_state || generation > m->table.generation)
		return -EINVAL;
	if (generation < m->table.generation)
		return 0; /* overtaken */
	m->own_stopped = generation;
	send_add(m, GM_STOPPED)->generation = generation;
	return 0;
}

static int step_leave(struct membership *m, bool dirty)
{
	struct group_msg *msg;

	if (!m->has_state)
		return -EINVAL;
	msg = send_add(m, GM_DEAD);
	msg->dead.inc = m->config.info.inc;
	msg->dead.proof = dirty ? PROOF_LEFT_DIRTY : PROOF_LEFT;
	return 0;
}

static void step_expel(struct membership *m, const struct incarnation *inc)
{
	const struct member *member = roster_find(m, inc);
	struct group_msg *msg;

	if (!m->has_state || !member || member->cause != GONE_NOT)
		return;
	msg = send_add(m, GM_EXPEL);
	msg->expel.proc = member->proc;
	msg->expel.inc = *inc;
}

static void step_proof(struct membership *m, const struct group_dead *proof)
{
	const struct member *member = roster_find(m, &proof->inc);

	if (m->has_state && member && !member->proof)
		send_add(m, GM_DEAD)->dead = *proof;
}

/* Only who knows the table of this view can say so: see cluster.md 2.13. */
static void step_cleared(struct membership *m)
{
	if (membership_settled(m) && !m->table.cleared)
		send_add(m, GM_CLEARED);
}

static int dispatch(struct membership *m, const struct member_event *ev)
{
	switch (ev->kind) {
	case MEV_CONFIG:
		if (ev->config.procs_count > GROUP_PROCS_MAX)
			return -EINVAL;
		view_config(m, ev);
		return 0;
	case MEV_RING:
		if (ev->ring.nodes_count > GROUP_PROCS_MAX)
			return -EINVAL;
		view_ring(m, ev);
		return 0;
	case MEV_MESSAGE:
		step_message(m, ev);
		return 0;
	case MEV_QUORUM:
		view_quorum(m, ev);
		return 0;
	case MEV_TICK:
		view_expel_silent(m, ev->now_ns);
		reach_tick(m, ev->now_ns);
		return 0;
	case MEV_STOPPED:
		return step_stopped(m, ev->generation);
	case MEV_LEAVE:
		return step_leave(m, ev->dirty);
	case MEV_EXPEL:
		step_expel(m, &ev->inc);
		return 0;
	case MEV_PROOF:
		step_proof(m, &ev->proof);
		return 0;
	case MEV_LINK:
		reach_own(m, &ev->link.inc, ev->link.silent);
		return 0;
	case MEV_CLEARED:
		step_cleared(m);
		return 0;
	}
	return -EINVAL;
}

int membership_step(struct membership *m, const struct member_event *ev,
		    struct member_updates *out)
{
	int err;

	if (m->out)
		return 0;
	m->updates = out;
	err = dispatch(m, ev);
	m->updates = NULL;
	return m->failed ? -ENOMEM : err;
}

const struct group_state *membership_table(const struct membership *m)
{
	return m->has_state ? &m->table : NULL;
}

bool membership_settled(const struct membership *m)
{
	return m->deciding && m->has_state && !m->waiting && !m->out;
}

unsigned membership_silent(const struct membership *m, struct group_proc *procs,
			   unsigned max)
{
	unsigned n = 0;

	for (unsigned i = 0; i < m->view.count && n < max; i++)
		if (proc_is_silent(&m->view.procs[i]))
			procs[n++] = m->view.procs[i].proc;
	return n;
}

const struct member *membership_find(const struct membership *m,
				     const struct incarnation *inc)
{
	for (uint32_t i = 0; m->has_state && i < m->table.count; i++)
		if (incarnation_equal(&m->table.members[i].info.inc, inc))
			return &m->table.members[i];
	return NULL;
}
