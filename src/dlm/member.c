/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * member.c - who is in, who has gone, and the directory's node table.
 *
 * A member that comes back with another incarnation is gone and new at once.
 * The gone are remembered until a recovery ends, since one that was aborted
 * has not dealt with what was in flight to them.
 * Source: docs/spec/dlm.md 2.2, 5.5 step 4.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "dlm/engine.h"

struct member *member_find(const struct dlm_engine *engine, int32_t nodeid)
{
	for (unsigned i = 0; i < engine->member_count; i++) {
		if (engine->members[i].nodeid == nodeid)
			return &engine->members[i];
	}
	return NULL;
}

bool member_is_gone(const struct dlm_engine *engine, int32_t nodeid)
{
	const struct gone *gone;

	cds_list_for_each_entry (gone, &engine->gone, list) {
		if (gone->nodeid == nodeid)
			return true;
	}
	return member_find(engine, nodeid) == NULL;
}

static int list_check(const struct dlm_engine *engine,
		      const struct dlm_member *list, unsigned count)
{
	bool us = false;

	if (count == 0 || count > DLM_NODES_MAX)
		return -EPROTO;
	for (unsigned i = 0; i < count; i++) {
		if (list[i].nodeid <= 0 || list[i].weight > DLM_WEIGHT_MAX ||
		    (i && list[i].nodeid <= list[i - 1].nodeid))
			return -EPROTO;
		us |= list[i].nodeid == engine->config.nodeid &&
		      list[i].incarnation == engine->config.incarnation;
	}
	return us ? 0 : -EPROTO;
}

/* Each member as often as it weighs; if nobody weighs anything, once each. */
static unsigned fill_node_array(int32_t *array, const struct dlm_member *list,
				unsigned count)
{
	unsigned total = 0;

	for (unsigned i = 0; i < count; i++) {
		for (unsigned w = 0; w < list[i].weight; w++)
			array[total++] = list[i].nodeid;
	}
	if (total)
		return total;
	for (unsigned i = 0; i < count; i++)
		array[total++] = list[i].nodeid;
	return total;
}

static const struct dlm_member *list_find(const struct dlm_member *list,
					  unsigned count,
					  const struct member *old)
{
	for (unsigned i = 0; i < count; i++) {
		if (list[i].nodeid == old->nodeid &&
		    list[i].incarnation == old->incarnation)
			return &list[i];
	}
	return NULL;
}

static void note_gone(struct dlm_engine *engine, const struct member *old,
		      struct gone *gone)
{
	struct dlm_update *up = update_add(engine, DLM_UP_SLOT_GONE);

	gone->nodeid = old->nodeid;
	gone->incarnation = old->incarnation;
	gone->slot = old->slot;
	cds_list_add_tail(&gone->list, &engine->gone);
	up->running = (struct dlm_running){ .nodeid = old->nodeid,
					    .slot = old->slot,
					    .incarnation = old->incarnation };
	slot_hold(engine, old->slot, old->incarnation);
	rebuild_forget_gone(engine, old->nodeid);
}

struct new_members {
	struct member *members;
	int32_t *node_array;
	struct gone *gone[DLM_NODES_MAX];
	unsigned gone_count;
};

static int prepare(struct dlm_engine *engine, const struct dlm_member *list,
		   unsigned count, struct new_members *new)
{
	new->members = calloc(count, sizeof(*new->members));
	new->node_array =
		calloc(count * (DLM_WEIGHT_MAX + 1), sizeof(*new->node_array));
	if (!new->members || !new->node_array)
		return -ENOMEM;
	for (unsigned i = 0; i < engine->member_count; i++) {
		if (list_find(list, count, &engine->members[i]))
			continue;
		new->gone[new->gone_count] = calloc(1, sizeof(struct gone));
		if (!new->gone[new->gone_count])
			return -ENOMEM;
		new->gone_count++;
	}
	return step_reserve(engine, new->gone_count + 1);
}

static void keep_old(const struct dlm_engine *engine, struct member *member)
{
	const struct member *old = member_find(engine, member->nodeid);

	if (old && old->incarnation == member->incarnation)
		member->slot = old->slot;
}

static void commit(struct dlm_engine *engine, const struct dlm_member *list,
		   unsigned count, struct new_members *new)
{
	unsigned used = 0;

	for (unsigned i = 0; i < count; i++) {
		new->members[i].nodeid = list[i].nodeid;
		new->members[i].weight = list[i].weight;
		new->members[i].incarnation = list[i].incarnation;
		keep_old(engine, &new->members[i]);
	}
	for (unsigned i = 0; i < engine->member_count; i++) {
		if (!list_find(list, count, &engine->members[i]))
			note_gone(engine, &engine->members[i],
				  new->gone[used++]);
	}
	free(engine->members);
	free(engine->node_array);
	engine->members = new->members;
	engine->member_count = count;
	engine->node_array = new->node_array;
	engine->node_total = fill_node_array(new->node_array, list, count);
}

int members_replace(struct dlm_engine *engine, const struct dlm_member *list,
		    unsigned count)
{
	struct new_members new = { 0 };
	int error = list_check(engine, list, count);

	if (error)
		return error;
	error = prepare(engine, list, count, &new);
	if (!error) {
		commit(engine, list, count, &new);
		return 0;
	}
	free(new.members);
	free(new.node_array);
	for (unsigned i = 0; i < new.gone_count; i++)
		free(new.gone[i]);
	return error;
}

void gone_forget(struct dlm_engine *engine)
{
	struct gone *gone, *next;

	cds_list_for_each_entry_safe (gone, next, &engine->gone, list) {
		cds_list_del(&gone->list);
		free(gone);
	}
}
