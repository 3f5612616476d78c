/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * copies.c - the master copies that a recovery makes, by holder and its id.
 *
 * A recovery that is broken off leaves copies here whose holders will send
 * them again, perhaps ten thousand of one resource: each LOCK finds its copy in
 * a table. It exists from the first LOCK until all members are known to have
 * taken their marks off (RS_DONE_ALL), since until then any of them may send
 * its locks once more. A chain goes through the copies themselves, in the place
 * of what only locks of processes here have.
 *
 * Source: docs/spec/dlm.md 5.10.
 */
#include <errno.h>
#include <stdlib.h>

#include "dlm/engine.h"

#define TABLE_FIRST 64

static struct lkb **place_of(struct lkb **table, uint32_t mask, int32_t holder,
			     uint32_t id)
{
	uint32_t hash = (id + (uint32_t)holder * 0x9e3779b1u) * 0x85ebca6bu;

	return &table[(hash ^ hash >> 16) & mask];
}

static void copies_put(struct lkb **table, uint32_t mask, struct lkb *lkb)
{
	struct lkb **place = place_of(table, mask, lkb->nodeid, lkb->remid);

	lkb->copy_next = *place;
	*place = lkb;
}

static void copies_move(struct dlm_engine *engine, struct lkb **table,
			uint32_t mask)
{
	for (uint32_t i = 0; i <= engine->copies_mask; i++) {
		struct lkb *lkb = engine->copies[i];

		while (lkb) {
			struct lkb *next = lkb->copy_next;

			copies_put(table, mask, lkb);
			lkb = next;
		}
	}
}

/* Before copies_add(). -ENOMEM: no table; one that cannot grow works. */
int copies_make_room(struct dlm_engine *engine)
{
	uint32_t size =
		engine->copies ? (engine->copies_mask + 1) * 2 : TABLE_FIRST;
	struct lkb **table;

	if (engine->copies && engine->copies_count <= engine->copies_mask)
		return 0;
	table = calloc(size, sizeof(struct lkb *));
	if (!table)
		return engine->copies ? 0 : -ENOMEM;
	if (engine->copies)
		copies_move(engine, table, size - 1);
	free(engine->copies);
	engine->copies = table;
	engine->copies_mask = size - 1;
	return 0;
}

void copies_add(struct dlm_engine *engine, struct lkb *lkb)
{
	ug_assert(engine->copies && lkb_is_mstcpy(lkb));
	copies_put(engine->copies, engine->copies_mask, lkb);
	engine->copies_count++;
}

struct lkb *copies_find(const struct dlm_engine *engine, const struct rsb *rsb,
			int32_t holder, uint32_t id)
{
	struct lkb *lkb;

	if (!engine->copies)
		return NULL;
	lkb = *place_of(engine->copies, engine->copies_mask, holder, id);
	while (lkb &&
	       (lkb->nodeid != holder || lkb->remid != id || lkb->rsb != rsb))
		lkb = lkb->copy_next;
	return lkb;
}

/* A master copy is being freed, which may be one of these. */
void copies_remove(struct dlm_engine *engine, struct lkb *lkb)
{
	struct lkb **place;

	if (!engine->copies)
		return;
	place = place_of(engine->copies, engine->copies_mask, lkb->nodeid,
			 lkb->remid);
	while (*place && *place != lkb)
		place = &(*place)->copy_next;
	if (!*place)
		return;
	*place = lkb->copy_next;
	engine->copies_count--;
}

void copies_forget(struct dlm_engine *engine)
{
	free(engine->copies);
	engine->copies = NULL;
	engine->copies_count = 0;
}
