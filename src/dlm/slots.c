/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * slots.c - a small number per member, which is its for as long as it is one,
 * and longer if its journal is not clean.
 *
 *           assigned            gone             DLM_EV_SLOT_FREE anywhere
 *   unused ---------> member's -----> held -------------------> free
 *      ^                                                          |
 *      `------------- next assignment ---------------------------'
 *
 * The member with the lowest node id assigns at the first barrier: who has a
 * slot keeps it, who is new gets the lowest that is neither a member's nor
 * held. The others copy the table, held slots included, so that all have seen
 * what one may have to remember for all.
 *
 * A held slot is named by its number and the incarnation that had it. That
 * makes holding and freeing facts, which may be told in any order, late and
 * twice: the assigner adds up what the members tell it. One that the assigner
 * of an aborted recovery has freed and given away can come up again from a
 * member that had not heard of it. That is only a slot not used for a while:
 * nobody can have run with it before all had that table.
 * Source: docs/spec/dlm.md 5.11.
 */
#include <errno.h>

#include "dlm/engine.h"

/* Held slots */

static struct held_slot *held_find(struct dlm_engine *engine, uint16_t slot,
				   uint64_t incarnation)
{
	for (unsigned i = 0; i < engine->held_count; i++) {
		struct held_slot *held = &engine->held[i];

		if (held->slot == slot && held->incarnation == incarnation)
			return held;
	}
	return NULL;
}

/*
 * slot_unused() leaves room for the slots of all members; what more members
 * tell than there is room for, they remember themselves.
 */
static struct held_slot *held_add(struct dlm_engine *engine, uint16_t slot,
				  uint64_t incarnation)
{
	struct held_slot *held = held_find(engine, slot, incarnation);

	if (held || engine->held_count == DLM_SLOTS_MAX)
		return held;
	TRACE(engine, "slot %u is held", slot);
	held = &engine->held[engine->held_count++];
	*held = (struct held_slot){ .slot = slot, .incarnation = incarnation };
	return held;
}

void slot_hold(struct dlm_engine *engine, uint16_t slot, uint64_t incarnation)
{
	if (engine->config.hold_slots && slot)
		held_add(engine, slot, incarnation);
}

int slot_free(struct dlm_engine *engine, uint16_t slot, uint64_t incarnation)
{
	struct held_slot *held = held_find(engine, slot, incarnation);

	if (!held)
		return -ENOENT;
	TRACE(engine, "slot %u may be used again", slot);
	held->free = true;
	return 0;
}

/* Not known here before: whoever waits for clean journals must hear of it. */
static void held_learn(struct dlm_engine *engine, const struct dlm_slot *told)
{
	bool known = held_find(engine, told->slot, told->incarnation);
	struct held_slot *held =
		held_add(engine, told->slot, told->incarnation);

	if (held)
		held->free |= told->free;
	if (!held || known || held->free)
		return;
	update_add(engine, DLM_UP_SLOT_GONE)->running = (struct dlm_running){
		.slot = told->slot,
		.incarnation = told->incarnation,
	};
}

static bool is_held(const struct dlm_engine *engine,
		    const struct dlm_slot *entry)
{
	return engine->config.hold_slots && entry->nodeid == 0 && entry->slot;
}

/* At the assigner: what a member knows. Updates have been reserved. */
void slots_merge(struct dlm_engine *engine, const struct dlm_slots *slots)
{
	for (unsigned i = 0; slots && i < slots->count; i++) {
		if (is_held(engine, &slots->slot[i]))
			held_learn(engine, &slots->slot[i]);
	}
}

static void forget_free(struct dlm_engine *engine)
{
	unsigned kept = 0;

	for (unsigned i = 0; i < engine->held_count; i++) {
		if (!engine->held[i].free)
			engine->held[kept++] = engine->held[i];
	}
	engine->held_count = kept;
}

static bool is_listed(const struct dlm_slots *slots,
		      const struct held_slot *held)
{
	for (unsigned i = 0; i < slots->count; i++) {
		const struct dlm_slot *entry = &slots->slot[i];

		if (entry->nodeid == 0 && entry->slot == held->slot &&
		    entry->incarnation == held->incarnation)
			return true;
	}
	return false;
}

/* What the assigner has dropped somebody has freed. */
static void forget_unlisted(struct dlm_engine *engine,
			    const struct dlm_slots *slots)
{
	unsigned kept = 0;

	for (unsigned i = 0; i < engine->held_count; i++) {
		if (is_listed(slots, &engine->held[i]))
			engine->held[kept++] = engine->held[i];
	}
	engine->held_count = kept;
}

/* Assigning */

static bool slot_taken(const struct dlm_engine *engine, unsigned count,
		       uint16_t slot)
{
	for (unsigned i = 0; i < engine->held_count; i++) {
		if (engine->held[i].slot == slot)
			return true;
	}
	for (unsigned i = 0; i < count; i++) {
		if (engine->members[i].slot == slot)
			return true;
	}
	return false;
}

/* 0: none, as the table would be too long. */
static uint16_t slot_unused(const struct dlm_engine *engine)
{
	unsigned used = engine->held_count;
	uint16_t slot = 1;

	for (unsigned i = 0; i < engine->member_count; i++)
		used += engine->members[i].slot != 0;
	if (used >= DLM_SLOTS_MAX)
		return 0;
	while (slot_taken(engine, engine->member_count, slot))
		slot++;
	return slot;
}

/* Of two that claim one slot the higher node id is given another. */
static void take_claims(struct dlm_engine *engine)
{
	for (unsigned i = 0; i < engine->member_count; i++) {
		struct member *member = &engine->members[i];
		uint16_t claim = member->told_slot;

		if (member->nodeid == engine->config.nodeid)
			claim = engine->our_slot;
		member->slot =
			claim && !slot_taken(engine, i, claim) ? claim : 0;
	}
}

static void set_ours(struct dlm_engine *engine)
{
	const struct member *us = member_find(engine, engine->config.nodeid);

	engine->our_slot = us->slot;
}

void slots_assign(struct dlm_engine *engine)
{
	uint32_t generation = engine->generation;

	forget_free(engine);
	take_claims(engine);
	for (unsigned i = 0; i < engine->member_count; i++) {
		struct member *member = &engine->members[i];

		if (!member->slot)
			member->slot = slot_unused(engine);
		if (member->nodeid != engine->config.nodeid)
			generation =
				UG_MAX(generation, member->told_generation);
	}
	engine->generation = generation + 1;
	set_ours(engine);
}

/* At the others. Updates have been reserved. */
void slots_take(struct dlm_engine *engine, const struct dlm_slots *slots,
		uint32_t generation)
{
	if (slots)
		forget_unlisted(engine, slots);
	for (unsigned i = 0; slots && i < engine->member_count; i++)
		engine->members[i].slot = 0;
	for (unsigned i = 0; slots && i < slots->count; i++) {
		const struct dlm_slot *entry = &slots->slot[i];
		struct member *member = member_find(engine, entry->nodeid);

		if (member)
			member->slot = entry->slot;
		else if (is_held(engine, entry))
			held_learn(engine, entry);
	}
	engine->generation = generation;
	set_ours(engine);
}

/* assigned: with those of the members, else what only we may know. */
void slots_list(const struct dlm_engine *engine, bool assigned,
		struct dlm_slots *out)
{
	unsigned members = assigned ? engine->member_count : 0;
	struct dlm_slot *slot = out->slot;

	for (unsigned i = 0; i < members; i++) {
		if (!engine->members[i].slot)
			continue;
		*slot++ = (struct dlm_slot){
			.nodeid = engine->members[i].nodeid,
			.slot = engine->members[i].slot,
		};
	}
	for (unsigned i = 0; i < engine->held_count; i++) {
		if (slot == out->slot + DLM_SLOTS_MAX)
			break;
		*slot++ = (struct dlm_slot){
			.slot = engine->held[i].slot,
			.free = engine->held[i].free,
			.incarnation = engine->held[i].incarnation,
		};
	}
	out->count = (uint32_t)(slot - out->slot);
}
