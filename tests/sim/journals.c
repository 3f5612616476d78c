/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * journals.c - journals by slot: dirty when their owner dies, clean when one
 * who is left has replayed them, never in use before (docs/spec/dlm.md 5.11).
 *
 * Here stands which journals are dirty in truth. Engines know only what their
 * own file system has told them, each at its own time.
 */
#include <errno.h>
#include <string.h>

#include "sim.h"

/* P9: a member keeps its slot, and gets none whose journal is dirty. */
void slot_running(struct world *w, struct node *node,
		  const struct dlm_running *running)
{
	unsigned slot = running->slot;

	if (!slot || slot >= SLOTS_MAX || (node->slot && node->slot != slot))
		fail(w, "node %d: slot %u becomes %u", node->id, node->slot,
		     slot);
	if (w->dirty[slot])
		fail(w, "node %d: slot %u, whose journal is dirty", node->id,
		     slot);
	node->slot = slot;
	node->generation = running->generation;
}

void slot_gone(struct world *w, struct node *node,
	       const struct dlm_running *running)
{
	if (!running->slot)
		return;
	if (node->gone_count == SLOTS_MAX)
		fail(w, "node %d: too many slots are gone", node->id);
	node->gone[node->gone_count++] = (struct gone_slot){
		.slot = running->slot,
		.incarnation = running->incarnation,
	};
}

/*
 * Of those that have had a slot none is left: who mounts next replays all
 * journals before it uses one.
 */
static void nobody_knows(struct world *w)
{
	for (unsigned id = 1; id <= w->node_count; id++) {
		if (w->nodes[id].alive && w->nodes[id].slot)
			return;
	}
	memset(w->dirty, 0, sizeof(w->dirty));
}

/* The node is not alive any more. */
void slot_died(struct world *w, const struct node *node)
{
	if (node->slot && !w->left[node->incarnation % INCARNATIONS_MAX])
		w->dirty[node->slot] = node->incarnation;
	nobody_knows(w);
}

static bool freed_by(const struct node *node, const struct gone_slot *gone)
{
	struct dlm_slots slots;

	dlm_slots_view(node->engine, &slots);
	for (unsigned i = 0; i < slots.count; i++) {
		const struct dlm_slot *entry = &slots.slot[i];

		if (entry->free && entry->slot == gone->slot &&
		    entry->incarnation == gone->incarnation)
			return true;
	}
	return false;
}

/* When nobody goes any more it is enough that one member frees a slot. */
static bool need_not_free(const struct world *w, const struct gone_slot *gone)
{
	for (unsigned id = 1; w->quiet && id <= w->node_count; id++) {
		const struct node *node = &w->nodes[id];

		if (node->alive && !node->leaving && !node->expelled &&
		    freed_by(node, gone))
			return true;
	}
	return false;
}

static void replay_one(struct world *w, struct node *node, unsigned which)
{
	struct dlm_event event = { .kind = DLM_EV_SLOT_FREE };
	struct gone_slot gone = node->gone[which];
	int error;

	node->gone[which] = node->gone[--node->gone_count];
	if (w->dirty[gone.slot] == gone.incarnation)
		w->dirty[gone.slot] = 0;
	if (need_not_free(w, &gone))
		return;
	event.slot_free.slot = (uint16_t)gone.slot;
	event.slot_free.incarnation = gone.incarnation;
	error = node_step(w, node, &event);
	if (error && error != -ENOENT)
		fail(w, "node %d: slot %u cannot be freed: %d", node->id,
		     gone.slot, error);
}

/* Journals are replayed when the locks for it can be had. */
void slot_act(struct world *w, struct node *node)
{
	if (!node->alive || !node->gone_count)
		return;
	if (dlm_is_running(node->engine) && (w->quiet || chance(w, 10)))
		replay_one(w, node, (unsigned)choose(w, node->gone_count));
}

/* After a step: who has left in peace leaves nothing to replay. */
void slots_of_leavers(struct world *w, struct node *node)
{
	for (unsigned i = 0; i < node->gone_count; i++) {
		if (w->left[node->gone[i].incarnation % INCARNATIONS_MAX])
			replay_one(w, node, i--);
	}
}

static void check_pair(struct world *w, const struct node *one,
		       const struct node *other)
{
	if (one->slot == other->slot || one->generation != other->generation)
		fail(w, "nodes %d and %d: slots %u and %u, generations %u, %u",
		     one->id, other->id, one->slot, other->slot,
		     one->generation, other->generation);
}

static bool is_listed(const struct dlm_slots *slots,
		      const struct dlm_slot *wanted)
{
	for (unsigned i = 0; i < slots->count; i++) {
		const struct dlm_slot *entry = &slots->slot[i];

		if (entry->nodeid == wanted->nodeid &&
		    entry->slot == wanted->slot &&
		    entry->incarnation == wanted->incarnation)
			return true;
	}
	return false;
}

/* P9: one generation, a slot for each, and all know the same of all slots. */
static void check_tables(struct world *w, const struct node *one,
			 const struct node *other)
{
	struct dlm_slots ours, theirs;

	dlm_slots_view(one->engine, &ours);
	dlm_slots_view(other->engine, &theirs);
	if (ours.count != theirs.count)
		fail(w, "nodes %d and %d know %u and %u slots", one->id,
		     other->id, ours.count, theirs.count);
	for (unsigned i = 0; i < ours.count; i++) {
		if (!is_listed(&theirs, &ours.slot[i]))
			fail(w, "slot %u of node %d: not so at node %d",
			     ours.slot[i].slot, one->id, other->id);
	}
}

void check_slots(struct world *w)
{
	for (unsigned a = 1; a <= w->node_count; a++) {
		for (unsigned b = a + 1; b <= w->node_count; b++) {
			const struct node *one = &w->nodes[a];
			const struct node *other = &w->nodes[b];

			if (!one->alive || !other->alive)
				continue;
			check_pair(w, one, other);
			check_tables(w, one, other);
		}
	}
}

/* Somebody has a journal to replay. */
bool slots_gone(const struct world *w)
{
	for (unsigned id = 1; id <= w->node_count; id++) {
		if (w->nodes[id].alive && w->nodes[id].gone_count)
			return true;
	}
	return false;
}

/* All journals are clean and a recovery has been since. */
void check_none_held(struct world *w)
{
	for (unsigned id = 1; id <= w->node_count; id++) {
		struct dlm_slots slots;

		if (!w->nodes[id].alive)
			continue;
		dlm_slots_view(w->nodes[id].engine, &slots);
		for (unsigned i = 0; i < slots.count; i++) {
			if (!slots.slot[i].nodeid)
				fail(w, "node %u: slot %u is still held", id,
				     slots.slot[i].slot);
		}
	}
}
