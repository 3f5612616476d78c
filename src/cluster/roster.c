/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * roster.c - the table of members: who is in it, and how it changes.
 *
 * All who know the table change it in the same way: when a view settles, from
 * the HELLOs of that view; by an EXPEL in a settled view; by proofs. Each
 * decision moves the base, so that a process that missed one is told by its
 * base that it did. A change of members moves the generation: then every engine
 * stops and says so, and when all have and the gone are proved dead, all start
 * at the same message. No engine starts before every other has stopped
 * (docs/spec/dlm.md 5.1).
 *
 * A process without the table, or with an old one, decides nothing itself; it
 * waits for the table as it stood after this view's decision.
 * Source: docs/spec/cluster.md 2.3, 2.4, 2.6.
 */
#include <string.h>

#include "base/assert.h"
#include "cluster/member_impl.h"

/*
 * The later ring has the higher seq. Two rings of one seq can both have been
 * quorate only in a cluster of two nodes; then the lower node is right.
 */
int base_compare(const struct group_base *a, const struct group_base *b)
{
	if (!a->count || !b->count)
		return (a->count != 0) - (b->count != 0);
	if (a->ring.seq != b->ring.seq)
		return a->ring.seq < b->ring.seq ? -1 : 1;
	if (a->ring.node != b->ring.node)
		return a->ring.node > b->ring.node ? -1 : 1;
	return a->count < b->count ? -1 : a->count > b->count;
}

static struct member *table_find(struct group_state *table,
				 const struct incarnation *inc)
{
	for (uint32_t i = 0; i < table->count; i++)
		if (incarnation_equal(&table->members[i].info.inc, inc))
			return &table->members[i];
	return NULL;
}

struct member *roster_find(struct membership *m, const struct incarnation *inc)
{
	return table_find(&m->table, inc);
}

struct member *roster_find_live(struct membership *m, struct group_proc proc)
{
	for (uint32_t i = 0; i < m->table.count; i++) {
		struct member *member = &m->table.members[i];

		if (member->cause == GONE_NOT && proc_equal(member->proc, proc))
			return member;
	}
	return NULL;
}

static bool id_is_taken(const struct group_state *table,
			const struct member *candidate)
{
	for (uint32_t i = 0; i < table->count; i++)
		if (member_id(&table->members[i]) == member_id(candidate))
			return true;
	return false;
}

/* 0, or why the candidate cannot be a member; its instance is chosen. */
static int choose_instance(const struct group_state *table,
			   struct member *candidate)
{
	unsigned last =
		candidate->proc.node > NODE_ID_SMALL_MAX ? 0 : INSTANCE_MAX;

	if (table->count == GROUP_MEMBERS_MAX)
		return OUT_FULL;
	for (unsigned i = 0; i <= last; i++) {
		candidate->instance = (uint8_t)i;
		if (!id_is_taken(table, candidate))
			return 0;
	}
	return OUT_NODE_ID;
}

void roster_gone(struct membership *m, struct member *member,
		 enum gone_cause cause)
{
	ug_assert(member->cause == GONE_NOT);
	member->cause = cause;
	m->missing[member - m->table.members] = false;
	m->changed = true;
	member_update(m, MUP_GONE, member);
}

void roster_prove(struct membership *m, struct member *member,
		  enum death_proof proof)
{
	ug_assert(member->cause != GONE_NOT && !member->proof);
	member->proof = proof;
	member_update(m, MUP_PROVED, member);
}

void roster_missing(struct membership *m, const struct group_left *left)
{
	struct member *member = roster_find_live(m, left->proc);
	struct member_update *up;

	if (!m->has_state || !member)
		return;
	m->missing[member - m->table.members] = true;
	up = member_update_add(m, MUP_MISSING);
	up->member = *member;
	up->reason = left->reason;
}

/* Proved and told: nobody needs to know any more. */
static void forget_proved(struct membership *m)
{
	uint32_t kept = 0;

	for (uint32_t i = 0; i < m->table.count; i++) {
		if (m->table.members[i].proof)
			continue;
		m->table.members[kept] = m->table.members[i];
		m->missing[kept++] = m->missing[i];
	}
	m->table.count = kept;
}

static bool node_is_in_ring(const struct view *view, uint32_t node)
{
	for (unsigned i = 0; i < view->nodes_count; i++)
		if (view->nodes[i] == node)
			return true;
	return false;
}

/* Not by the reason that corosync gave: that may differ between partitions. */
static enum gone_cause judge(struct membership *m, const struct member *member)
{
	const struct view_proc *vp = view_find(m, member->proc);

	if (!vp)
		return node_is_in_ring(&m->view, member->proc.node)
			       ? GONE_PROCESS
			       : GONE_HOST;
	if (vp->excluded)
		return GONE_EXPELLED;
	/* The pid is used again. */
	if (vp->alien ||
	    !incarnation_equal(&vp->hello.info.inc, &member->info.inc))
		return GONE_PROCESS;
	return GONE_NOT;
}

static void drop_absent(struct membership *m)
{
	for (uint32_t i = 0; i < m->table.count; i++) {
		struct member *member = &m->table.members[i];
		enum gone_cause cause;

		if (member->cause != GONE_NOT)
			continue;
		cause = judge(m, member);
		if (cause != GONE_NOT) {
			roster_gone(m, member, cause);
		} else if (m->missing[i]) {
			m->missing[i] = false;
			member_update(m, MUP_BACK, member);
		}
	}
}

static const struct view_proc *proc_of_order(const struct view *view,
					     unsigned order)
{
	for (unsigned i = 0; i < view->count; i++)
		if (view->procs[i].order == order)
			return &view->procs[i];
	return NULL;
}

/* The order of HELLOs gives out the instances (DESIGN D5). */
static void admit_new(struct membership *m, bool founding)
{
	for (unsigned order = 1; order <= m->view.heard; order++) {
		const struct view_proc *vp = proc_of_order(&m->view, order);
		struct member candidate = { 0 };
		struct member_update *up;
		bool self;

		if (!vp || vp->excluded || vp->alien || vp->hello.base.count ||
		    roster_find(m, &vp->hello.info.inc))
			continue;
		self = proc_equal(vp->proc, m->config.self);
		candidate.proc = vp->proc;
		candidate.info = vp->hello.info;
		if (choose_instance(&m->table, &candidate)) {
			if (self)
				go_out(m,
				       choose_instance(&m->table, &candidate));
			continue;
		}
		m->missing[m->table.count] = false;
		m->table.members[m->table.count++] = candidate;
		m->changed = true;
		up = member_update_add(m, self ? MUP_ADMITTED : MUP_JOINED);
		up->member = candidate;
		up->founder = self && founding;
	}
}

static void tell_minor(struct membership *m)
{
	uint16_t minor = UINT16_MAX;

	for (uint32_t i = 0; i < m->table.count; i++) {
		const struct member *member = &m->table.members[i];

		if (member->cause == GONE_NOT && member->info.minor < minor)
			minor = member->info.minor;
	}
	if (minor == UINT16_MAX || minor == m->minor)
		return;
	m->minor = minor;
	member_update_add(m, MUP_MINOR)->minor = minor;
}

static void next_generation(struct membership *m)
{
	if (!m->changed)
		return;
	m->changed = false;
	m->table.generation++;
	tell_minor(m);
	member_update_add(m, MUP_CHANGE)->generation = m->table.generation;
}

void roster_decided(struct membership *m)
{
	m->table.base.count++;
	next_generation(m);
	roster_start_if_ready(m);
}

/* The latest knowledge in the view; count 0 = nobody has any. */
static struct group_base best_base(const struct view *view)
{
	struct group_base best = { 0 };

	for (unsigned i = 0; i < view->count; i++) {
		const struct view_proc *vp = &view->procs[i];

		if (vp->heard && !vp->excluded && !vp->alien &&
		    base_compare(&vp->hello.base, &best) > 0)
			best = vp->hello.base;
	}
	return best;
}

/* The lowest process that knows the table tells those who do not. */
static void send_state_if_needed(struct membership *m,
				 const struct group_base *best)
{
	const struct view *view = &m->view;
	bool needed = false, first = true, mine = false;

	for (unsigned i = 0; i < view->count; i++) {
		const struct view_proc *vp = &view->procs[i];

		if (!vp->heard || vp->excluded || vp->alien)
			continue;
		if (base_compare(&vp->hello.base, best) != 0) {
			needed = true;
			continue;
		}
		if (first)
			mine = proc_equal(vp->proc, m->config.self);
		first = false;
	}
	if (needed && mine)
		send_add(m, GM_STATE)->state = &m->table;
}

void roster_settle(struct membership *m)
{
	struct group_base best = best_base(&m->view), own = { 0 }, next;

	if (m->has_state)
		own = m->table.base;
	next = (struct group_base){ m->view.id.ring, best.count + 1 };
	m->deciding = true;
	if (base_compare(&own, &best) != 0) {
		m->waiting = true;
		m->expected = next;
		return;
	}
	forget_proved(m);
	drop_absent(m);
	admit_new(m, !best.count);
	if (m->out)
		return;
	m->has_state = true;
	m->table.base = next;
	if (best.count)
		send_state_if_needed(m, &best);
	member_update_add(m, MUP_SETTLED)->settled = true;
	next_generation(m);
	/* The table that was sent is the one after the last change of it. */
	roster_start_if_ready(m);
}

static void adopt_member(struct membership *m, const struct member *now)
{
	const struct member *was =
		m->has_state ? roster_find(m, &now->info.inc) : NULL;

	if (!was && now->cause == GONE_NOT) {
		member_update(m, MUP_JOINED, now);
	} else if (now->cause != GONE_NOT && (!was || was->cause == GONE_NOT)) {
		member_update(m, MUP_GONE, now);
		if (now->proof)
			member_update(m, MUP_PROVED, now);
	} else if (was && now->proof && !was->proof) {
		member_update(m, MUP_PROVED, now);
	}
}

/* One that the others have forgotten: it was gone and proved. */
static void adopt_absence(struct membership *m, const struct member *was)
{
	struct member now = *was;

	if (was->proof)
		return;
	if (was->cause == GONE_NOT) {
		now.cause = GONE_FOUND_DEAD;
		member_update(m, MUP_GONE, &now);
	}
	now.proof = PROOF_OF_OTHERS;
	member_update(m, MUP_PROVED, &now);
}

static void refuse_self(struct membership *m, const struct group_state *state)
{
	struct member candidate = { .proc = m->config.self };
	int why = choose_instance(state, &candidate);

	go_out(m, m->has_state || !why ? OUT_GONE : (enum out_cause)why);
}

void roster_adopt(struct membership *m, const struct group_state *state)
{
	static const struct member none;
	const struct member *self = &none;
	bool was_member = m->has_state;

	for (uint32_t i = 0; i < state->count; i++)
		if (incarnation_equal(&state->members[i].info.inc,
				      &m->config.info.inc))
			self = &state->members[i];
	if (self == &none || self->cause != GONE_NOT) {
		refuse_self(m, state);
		return;
	}
	if (!was_member)
		member_update(m, MUP_ADMITTED, self);
	for (uint32_t i = 0; i < state->count; i++)
		if (&state->members[i] != self)
			adopt_member(m, &state->members[i]);
	for (uint32_t i = 0; was_member && i < m->table.count; i++) {
		const struct member *was = &m->table.members[i];
		bool kept = false;

		for (uint32_t j = 0; j < state->count; j++)
			kept |= incarnation_equal(&state->members[j].info.inc,
						  &was->info.inc);
		if (!kept)
			adopt_absence(m, was);
	}
	m->changed = !was_member || m->table.generation != state->generation;
	if (state->cleared && !(was_member && m->table.cleared))
		member_update_add(m, MUP_CLEARED);
	memcpy(&m->table, state, sizeof(*state));
	memset(m->missing, 0, sizeof(m->missing));
	m->has_state = true;
	m->table.generation -= m->changed; /* told, and counted, below */
	member_update_add(m, MUP_SETTLED)->settled = true;
	m->waiting = false;
	next_generation(m);
}

void roster_start_if_ready(struct membership *m)
{
	if (!membership_settled(m) || m->started == m->table.generation)
		return;
	for (uint32_t i = 0; i < m->table.count; i++) {
		const struct member *member = &m->table.members[i];

		if (member->cause == GONE_NOT
			    ? member->stopped != m->table.generation
			    : !member->proof)
			return;
	}
	m->started = m->table.generation;
	member_update_add(m, MUP_START)->generation = m->started;
}
