/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * view.c - the processes of the group, and what each has said since the last
 * change of the group or the cluster.
 *
 * A view is complete when each of its processes has said HELLO in it; those not
 * waited for are the expelled ones, who may be stopped and never speak again,
 * and those of another major version, who leave by themselves unless they were
 * here first. A process that stays silent would hold up everybody, and corosync
 * does not report it (a stopped process is still connected): after the timeout
 * it is expelled by the lowest process that has been heard, and should that one
 * fall silent too, a second later by the next.
 * Source: docs/spec/cluster.md 2.2, 2.5.
 */
#include <endian.h>
#include <string.h>

#include "base/compiler.h"
#include "base/crc.h"
#include "cluster/member_impl.h"

static int proc_compare(struct group_proc a, struct group_proc b)
{
	if (a.node != b.node)
		return a.node < b.node ? -1 : 1;
	return a.pid < b.pid ? -1 : a.pid > b.pid;
}

struct view_proc *view_find(struct membership *m, struct group_proc proc)
{
	for (unsigned i = 0; i < m->view.count; i++)
		if (proc_equal(m->view.procs[i].proc, proc))
			return &m->view.procs[i];
	return NULL;
}

bool proc_is_silent(const struct view_proc *vp)
{
	return !vp->heard && !vp->alien && !vp->excluded;
}

static void insert_proc(struct view *view, struct group_proc proc)
{
	unsigned at = view->count++;

	while (at > 0 && proc_compare(view->procs[at - 1].proc, proc) > 0) {
		view->procs[at] = view->procs[at - 1];
		at--;
	}
	view->procs[at] = (struct view_proc){ .proc = proc };
}

static uint32_t procs_crc(const struct view *view)
{
	uint32_t words[2 * GROUP_PROCS_MAX];

	for (unsigned i = 0; i < view->count; i++) {
		words[2 * i] = htole32(view->procs[i].proc.node);
		words[2 * i + 1] = htole32(view->procs[i].proc.pid);
	}
	return ug_crc32(words, view->count * 2 * sizeof(*words));
}

static void send_hello(struct membership *m)
{
	struct group_hello *hello = &send_add(m, GM_HELLO)->hello;
	const struct view *view = &m->view;

	hello->info = m->config.info;
	hello->view = view->id;
	if (m->has_state)
		hello->base = m->table.base;
	hello->quorum_known = m->quorum.ring.seq == view->id.ring.seq &&
			      m->quorum.ring.node == view->id.ring.node;
	hello->quorate = hello->quorum_known && m->quorum.quorate;
}

/* Facts go before the HELLO: a view in which it is heard has them all. */
static void send_facts(struct membership *m)
{
	for (uint32_t i = 0; i < m->table.count; i++) {
		const struct member *member = &m->table.members[i];

		if (member->proof) {
			struct group_msg *msg = send_add(m, GM_DEAD);

			msg->dead.inc = member->info.inc;
			msg->dead.proof = member->proof;
		} else if (member->cause != GONE_NOT &&
			   view_find(m, member->proc)) {
			struct group_msg *msg = send_add(m, GM_EXPEL);

			msg->expel.proc = member->proc;
			msg->expel.inc = member->info.inc;
		}
	}
	reach_say_again(m);
	if (m->own_stopped && m->own_stopped == m->table.generation)
		send_add(m, GM_STOPPED)->generation = m->own_stopped;
}

static void unsettle(struct membership *m)
{
	bool told = membership_settled(m);

	m->view.settled = false;
	m->deciding = false;
	m->waiting = false;
	m->saved_count = 0;
	if (told)
		member_update_add(m, MUP_SETTLED)->settled = false;
}

static void begin_view(struct membership *m, uint64_t now_ns)
{
	struct view *view = &m->view;

	unsettle(m);
	for (unsigned i = 0; i < view->count; i++) {
		struct group_proc proc = view->procs[i].proc;

		view->procs[i] = (struct view_proc){ .proc = proc };
	}
	view->heard = 0;
	view->quorate = false;
	view->since_ns = now_ns;
	view->expelled_ns = 0;
	reach_view_begins(m);
	view->id.procs_crc = procs_crc(view);
	/* corosync tells the processes first, then the ring. */
	if (!view->id.ring.seq || !view->count)
		return;
	if (m->has_state)
		send_facts(m);
	send_hello(m);
}

void view_config(struct membership *m, const struct member_event *ev)
{
	for (unsigned i = 0; i < ev->config.left_count; i++)
		roster_missing(m, &ev->config.left[i]);
	m->view.count = 0;
	for (unsigned i = 0; i < ev->config.procs_count; i++)
		if (!view_find(m, ev->config.procs[i]))
			insert_proc(&m->view, ev->config.procs[i]);
	begin_view(m, ev->now_ns);
}

void view_ring(struct membership *m, const struct member_event *ev)
{
	m->view.id.ring = ev->ring.id;
	m->view.nodes_count = ev->ring.nodes_count;
	memcpy(m->view.nodes, ev->ring.nodes,
	       ev->ring.nodes_count * sizeof(*ev->ring.nodes));
	begin_view(m, ev->now_ns);
}

void view_quorum(struct membership *m, const struct member_event *ev)
{
	const struct ring_id *ring = &m->view.id.ring;

	m->quorum.ring = ev->quorum.ring;
	m->quorum.quorate = ev->quorum.quorate;
	if (ring->seq && m->view.count && ring->seq == ev->quorum.ring.seq &&
	    ring->node == ev->quorum.ring.node)
		send_hello(m);
}

static bool is_of_view(const struct view *view, const struct view_id *id)
{
	return id->ring.seq == view->id.ring.seq &&
	       id->ring.node == view->id.ring.node &&
	       id->procs_crc == view->id.procs_crc;
}

/* One that was sent before the last change is void: another one follows. */
void view_hello(struct membership *m, struct group_proc from,
		const struct group_hello *hello, uint64_t now_ns)
{
	struct view_proc *vp = view_find(m, from);
	struct view *view = &m->view;

	if (vp->excluded || !is_of_view(view, &hello->view))
		return;
	if (!vp->heard) {
		vp->order = ++view->heard;
		vp->heard = true;
		vp->hello = *hello;
	}
	if (hello->quorum_known) {
		if (hello->quorate && !view->quorate)
			view->since_ns = now_ns;
		view->quorate = hello->quorate;
	}
}

/*
 * Who was here first stays: one that knows the table, else the one that spoke
 * first. The other one goes by itself; both see the same order.
 */
void view_alien(struct membership *m, struct group_proc from, uint16_t major,
		bool has_state)
{
	struct view_proc *self = view_find(m, m->config.self);
	struct view_proc *vp = view_find(m, from);

	vp->alien = true;
	if (!m->has_state && (has_state || !self || !self->heard)) {
		go_out(m, OUT_VERSION);
		if (!m->failed)
			m->updates->list[m->updates->count - 1].out.major =
				major;
	}
}

/* By its name in the group: see about_self() for a pid that is used again. */
void view_exclude(struct membership *m, const struct group_expel *expel)
{
	struct view_proc *vp = view_find(m, expel->proc);

	if (vp)
		vp->excluded = true;
}

void view_settle_if_complete(struct membership *m)
{
	struct view *view = &m->view;

	if (view->settled || !view->quorate || m->out)
		return;
	for (unsigned i = 0; i < view->count; i++)
		if (proc_is_silent(&view->procs[i]))
			return;
	view->settled = true;
	roster_settle(m);
}

int view_rank(const struct membership *m)
{
	int rank = 0;

	for (unsigned i = 0; i < m->view.count; i++) {
		const struct view_proc *vp = &m->view.procs[i];

		if (proc_equal(vp->proc, m->config.self))
			return vp->heard && !vp->excluded ? rank : -1;
		rank += vp->heard && !vp->excluded;
	}
	return -1;
}

static uint64_t expel_wake_ns(const struct membership *m)
{
	const struct view *view = &m->view;
	int rank = view_rank(m);

	if (m->out || view->settled || !view->quorate || rank < 0)
		return UINT64_MAX;
	if (view->expelled_ns)
		return view->expelled_ns + m->config.timeout_ns;
	return view->since_ns + m->config.timeout_ns + (uint64_t)rank * RANK_NS;
}

uint64_t membership_wake_ns(const struct membership *m)
{
	return UG_MIN(expel_wake_ns(m), reach_wake_ns(m));
}

void view_expel_silent(struct membership *m, uint64_t now_ns)
{
	struct view *view = &m->view;

	if (now_ns < expel_wake_ns(m))
		return;
	view->expelled_ns = now_ns;
	for (unsigned i = 0; i < view->count; i++) {
		struct group_msg *msg;
		struct member *member;

		if (!proc_is_silent(&view->procs[i]))
			continue;
		msg = send_add(m, GM_EXPEL);
		msg->expel.proc = view->procs[i].proc;
		member = roster_find_live(m, msg->expel.proc);
		if (m->has_state && member)
			msg->expel.inc = member->info.inc;
	}
}
