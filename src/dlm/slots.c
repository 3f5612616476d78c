/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * slots.c - a small number per member, which is its for as long as it is one.
 *
 * The member with the lowest node id assigns them at the first barrier: who
 * has one keeps it, who is new gets the lowest that is free. The others copy
 * the table. Source: docs/spec/dlm.md 5.11.
 */
#include "dlm/engine.h"

static bool slot_taken(const struct dlm_engine *engine, unsigned count,
		       uint16_t slot)
{
	for (unsigned i = 0; i < count; i++) {
		if (engine->members[i].slot == slot)
			return true;
	}
	return false;
}

static uint16_t slot_free(const struct dlm_engine *engine)
{
	uint16_t slot = 1;

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

	take_claims(engine);
	for (unsigned i = 0; i < engine->member_count; i++) {
		struct member *member = &engine->members[i];

		if (!member->slot)
			member->slot = slot_free(engine);
		if (member->nodeid != engine->config.nodeid)
			generation =
				UG_MAX(generation, member->told_generation);
	}
	engine->generation = generation + 1;
	set_ours(engine);
}

void slots_take(struct dlm_engine *engine, const struct dlm_slots *slots,
		uint32_t generation)
{
	for (unsigned i = 0; slots && i < slots->count; i++) {
		struct member *member =
			member_find(engine, slots->slot[i].nodeid);

		if (member)
			member->slot = slots->slot[i].slot;
	}
	engine->generation = generation;
	set_ours(engine);
}

void slots_list(const struct dlm_engine *engine, struct dlm_slots *out)
{
	out->count = engine->member_count;
	for (unsigned i = 0; i < engine->member_count; i++) {
		out->slot[i].nodeid = engine->members[i].nodeid;
		out->slot[i].slot = engine->members[i].slot;
	}
}
