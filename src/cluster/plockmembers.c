/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * plockmembers.c - members come and go, quorum, time: events of the engine of
 * application locks.
 *
 *	lockspace		     engine
 *	MUP_GONE	   --------> (nothing is sent to it any more)
 *	MUP_START	   --------> MEMBERS; RELEASED for who left cleanly
 *	running		   --------> MEMBERS, if it is the first one
 *				     RELEASED for the gone without a slot
 *	ugdlm_slot_clean() --------> RELEASED
 *	lease		   --------> QUORUM
 *
 * A newcomer has to know who was gone before its time and is not released: it
 * may become the home of files that one of those had locked. That is told with
 * the slots of the lock manager, so its first MEMBERS waits until that runs.
 * The others have theirs at once; their engines wait for the newcomer's DONE
 * where they must.
 *
 * Who is gone and has no slot never ran, and so has locked nothing. Whether it
 * had one is known when we run.
 *
 * All here but plocks_look() is under the lock of the lockspace.
 */
#include <errno.h>

#include "base/assert.h"
#include "base/compiler.h"
#include "cluster/lockspace.h"
#include "cluster/plocks_impl.h"

/* ls_unlock() does what is not to be done here. */
static void leave_rest(struct plocks *p)
{
	if (p->updates.count || p->need_push || p->answers.next != &p->answers)
		p->ls->need_plocks = true;
}

static void leave(struct plocks *p)
{
	uint64_t wake = plocks_wake_ns(p);

	if (wake < p->armed_ns) {
		p->armed_ns = wake;
		ls_wake_thread(p->ls, wake);
	}
	leave_rest(p);
	plocks_unlock_quietly(p);
}

static void enter(struct plocks *p)
{
	pthread_mutex_lock(&p->lock);
	p->now_ns = p->ls->now_ns;
}

/* Who waits lets others have both locks. */
static void rest(struct plocks *p)
{
	struct ugdlm *ls = p->ls;

	leave(p);
	ls_unlock(ls);
	ls->env.rest();
	ls_lock(ls);
	enter(p);
}

static void step_surely(struct plocks *p, struct plock_event *event)
{
	int err = plocks_step(p, event);

	while (err == -ENOMEM && !p->lost) {
		rest(p);
		err = plocks_step(p, event);
	}
	ug_assert(!err || p->lost);
}

/* The gone */

static bool add_gone(struct plocks *p, uint64_t node)
{
	for (unsigned i = 0; i < p->gone_count; i++)
		if (p->gone[i] == node)
			return true;
	if (p->gone_count == PLOCK_NODES_MAX)
		return false;
	p->gone[p->gone_count++] = node;
	return true;
}

/* Not before the MEMBERS without it. */
static void release(struct plocks *p, uint64_t node)
{
	struct plock_event event = { .kind = PLOCK_EV_RELEASED };

	while (p->giving && !p->lost)
		rest(p);
	for (unsigned i = 0; i < p->gone_count; i++)
		if (p->gone[i] == node)
			p->gone[i] = p->gone[--p->gone_count];
	event.released.node = node;
	if (p->begun)
		step_surely(p, &event);
}

void plocks_on_released(struct ugdlm *ls, uint64_t node)
{
	struct plocks *p = ls->plocks;

	if (!p)
		return;
	enter(p);
	release(p, node);
	leave(p);
}

static bool has_left(const struct ls_member *member)
{
	return member->m.proof == PROOF_LEFT;
}

/* Since the last change; those who left cleanly are released at once. */
static bool note_gone(struct plocks *p)
{
	const struct ls_member *member;

	cds_list_for_each_entry (member, &p->ls->members, list)
		if (member->m.cause != GONE_NOT && !has_left(member) &&
		    !add_gone(p, member->inc_short))
			return false;
	return true;
}

/* To release may let the lock go: members are forgotten meanwhile. */
static void release_left(struct plocks *p)
{
	uint64_t left[GROUP_MEMBERS_MAX];
	const struct ls_member *member;
	unsigned count = 0;

	cds_list_for_each_entry (member, &p->ls->members, list)
		if (member->m.cause != GONE_NOT && has_left(member) &&
		    count < GROUP_MEMBERS_MAX)
			left[count++] = member->inc_short;
	while (count)
		release(p, left[--count]);
}

/* Members */

static bool note_members(struct plocks *p, const struct group_state *table)
{
	p->nodes_count = 0;
	p->peers_count = 0;
	for (uint32_t i = 0; i < table->count; i++) {
		const struct member *m = &table->members[i];
		uint64_t node = incarnation_short(&m->info.inc);

		if (m->cause != GONE_NOT)
			continue;
		if (p->nodes_count == PLOCK_NODES_MAX)
			return false;
		p->nodes[p->nodes_count++] = node;
		if (node != p->node)
			p->peers[p->peers_count++] =
				(struct plocks_peer){ .node = node,
						      .id = member_id(m) };
	}
	return true;
}

static void give_members(struct plocks *p)
{
	struct plock_event event = { .kind = PLOCK_EV_MEMBERS };

	event.members.epoch = p->epoch;
	event.members.nodes = p->nodes;
	event.members.count = p->nodes_count;
	event.members.gone = p->gone;
	event.members.gone_count = p->gone_count;
	p->giving = true;
	step_surely(p, &event);
	p->giving = false;
	p->begun = true;
}

static void too_many(struct ugdlm *ls)
{
	ls_lose(ls, -ENOSPC, "more than %d members, or gone ones",
		PLOCK_NODES_MAX);
}

void plocks_on_start(struct ugdlm *ls, uint64_t generation,
		     const struct group_state *table)
{
	struct plocks *p = ls->plocks;
	bool fits;

	if (!p)
		return;
	enter(p);
	p->epoch = generation;
	fits = note_members(p, table) && note_gone(p);
	if (fits && p->begun) {
		give_members(p);
		release_left(p);
	}
	leave(p);
	if (!fits)
		too_many(ls);
}

static bool is_held(const struct ugdlm *ls, uint64_t node)
{
	const struct ls_held_slot *held;

	cds_list_for_each_entry (held, &ls->held_slots, list)
		if (held->incarnation == node)
			return true;
	return false;
}

static bool note_held(struct plocks *p)
{
	const struct ls_held_slot *held;

	cds_list_for_each_entry (held, &p->ls->held_slots, list)
		if (!add_gone(p, held->incarnation))
			return false;
	return true;
}

static void release_unheld(struct plocks *p)
{
	unsigned i = 0;

	while (i < p->gone_count) {
		if (is_held(p->ls, p->gone[i]))
			i++;
		else
			release(p, p->gone[i]);
	}
}

void plocks_on_running(struct ugdlm *ls)
{
	struct plocks *p = ls->plocks;
	bool fits = true;

	if (!p)
		return;
	enter(p);
	release_unheld(p);
	if (!p->begun)
		fits = note_held(p);
	if (fits && !p->begun)
		give_members(p);
	leave(p);
	if (!fits)
		too_many(ls);
}

void plocks_on_gone(struct ugdlm *ls, uint64_t node)
{
	struct plocks *p = ls->plocks;

	if (!p)
		return;
	enter(p);
	plocks_forget_peer(p, node);
	leave(p);
}

void plocks_on_lost(struct ugdlm *ls)
{
	struct plocks *p = ls->plocks;

	if (!p)
		return;
	enter(p);
	p->lost = true;
	p->failed = true;
	plocks_calls_fail(p);
	leave(p);
}

/* Quorum and time */

void plocks_look(struct plocks *p)
{
	struct plock_event event = { .kind = PLOCK_EV_QUORUM };

	if (!p->ls || p->lost)
		return;
	event.quorum.quorate = ugdlm_lease_ns(p->ls) > p->now_ns;
	p->look_again = false;
	if (ug_likely(event.quorum.quorate == p->quorate))
		return;
	if (plocks_step(p, &event))
		p->look_again = true;
	else
		p->quorate = event.quorum.quorate;
}

void plocks_on_lease(struct ugdlm *ls)
{
	struct plocks *p = ls->plocks;

	if (!p)
		return;
	enter(p);
	plocks_look(p);
	leave(p);
}

uint64_t plocks_on_tick(struct ugdlm *ls)
{
	struct plock_event event = { .kind = PLOCK_EV_TICK };
	struct plocks *p = ls->plocks;
	uint64_t wake;

	if (!p)
		return UINT64_MAX;
	enter(p);
	plocks_look(p);
	if (!p->lost && (p->more || plock_wake_ns(p->engine) <= p->now_ns))
		plocks_step(p, &event);
	wake = p->armed_ns = plocks_wake_ns(p);
	leave_rest(p);
	plocks_unlock_quietly(p);
	return wake;
}
