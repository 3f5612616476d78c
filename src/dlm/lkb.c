/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * lkb.c - locks: the table by id, the queues of a resource.
 *
 * Ids are given out in a circle, since a late message may still name the last
 * user of an id (docs/spec/dlm.md 1.1). The table is as simple as can be: the
 * low bits of the id are the place, and an id whose place is taken is skipped.
 * A table twice the size keeps that true for the ids in use.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "dlm/engine.h"

#define TABLE_FIRST 64

int lkb_table_init(struct dlm_engine *engine)
{
	engine->lkb_table = calloc(TABLE_FIRST, sizeof(struct lkb *));
	if (!engine->lkb_table)
		return -ENOMEM;
	engine->lkb_mask = TABLE_FIRST - 1;
	return 0;
}

static void lkb_table_grow(struct dlm_engine *engine)
{
	uint32_t size = (engine->lkb_mask + 1) * 2;
	struct lkb **table = calloc(size, sizeof(*table));

	if (!table)
		return;
	for (uint32_t i = 0; i <= engine->lkb_mask; i++) {
		struct lkb *lkb = engine->lkb_table[i];

		if (lkb)
			table[lkb->id & (size - 1)] = lkb;
	}
	free(engine->lkb_table);
	engine->lkb_table = table;
	engine->lkb_mask = size - 1;
}

struct lkb *lkb_find(const struct dlm_engine *engine, uint32_t id)
{
	struct lkb *lkb = engine->lkb_table[id & engine->lkb_mask];

	return lkb && lkb->id == id ? lkb : NULL;
}

/* 0 means none, and all ones is kept free for dumps. */
static uint32_t lkb_new_id(struct dlm_engine *engine)
{
	uint32_t id = engine->lkb_last_id;

	do {
		id++;
	} while (id == 0 || id == UINT32_MAX ||
		 engine->lkb_table[id & engine->lkb_mask]);
	engine->lkb_last_id = id;
	return id;
}

/* After lkb_make_room() and step_reserve(). */
struct lkb *lkb_create(struct dlm_engine *engine, struct rsb *rsb)
{
	struct lkb *lkb = engine->spare_lkb;

	ug_assert(lkb);
	engine->spare_lkb = NULL;
	memset(lkb, 0, sizeof(*lkb));
	lkb->id = lkb_new_id(engine);
	lkb->grmode = LKM_IV;
	lkb->rqmode = LKM_IV;
	lkb->highbast = LKM_IV;
	lkb->castmode = LKM_IV;
	lkb->rsb = rsb;
	rsb->nlocks++;
	engine->lkb_table[lkb->id & engine->lkb_mask] = lkb;
	engine->lkb_count++;
	return lkb;
}

/* Without memory to grow, a table is used to its last place but one. */
int lkb_make_room(struct dlm_engine *engine)
{
	if (engine->lkb_count >= DLM_LOCKS_MAX)
		return -ENOMEM;
	if (engine->lkb_count * 2 > engine->lkb_mask)
		lkb_table_grow(engine);
	return engine->lkb_count < engine->lkb_mask ? 0 : -ENOMEM;
}

/*
 * With the last lock gone the directory node keeps a record of who masters the
 * name. Not if that member may have forgotten it: a reply that was saved over
 * a recovery, in which an idle master drops what it caches, would leave a
 * record that no REMOVE ever takes away, and send everybody to a node that
 * sends everybody back.
 */
static void rsb_set_idle(struct dlm_engine *engine, struct rsb *rsb)
{
	bool ours = rsb_is_master(engine, rsb);
	bool dir = directory_node(engine, rsb->hash) == engine->config.nodeid;

	if (dir && !ours && (rsb->flags & RES_UNPROVED))
		rsb->master = 0;
	rsb_set_where(engine, rsb,
		      dir && !ours && rsb->master ? RSB_RECORD : RSB_TOSS);
}

static struct lkb_queue *queue_of(const struct lkb *lkb)
{
	struct rsb *rsb = lkb->rsb;

	switch ((enum dlm_lock_status)lkb->status) {
	case LKS_GRANTED:
		return &rsb->granted;
	case LKS_CONVERT:
		return &rsb->convert;
	case LKS_WAITING:
		return &rsb->waiting;
	case LKS_NONE:
		break;
	}
	return lkb->flags & LKB_PARKED ? &rsb->lookup : &rsb->in_flight;
}

static void lkb_unqueue(struct lkb *lkb)
{
	if (lkb->next)
		queue_remove(queue_of(lkb), lkb);
}

/*
 * The lock leaves everything it is on. The last one makes the resource idle,
 * which does not free it: callers may go on using it in this step.
 */
void lkb_free(struct dlm_engine *engine, struct lkb *lkb)
{
	struct rsb *rsb = lkb->rsb;

	lkb_unqueue(lkb);
	if (lkb_is_mstcpy(lkb))
		copies_remove(engine, lkb);
	waiter_clear(engine, lkb);
	engine->lkb_table[lkb->id & engine->lkb_mask] = NULL;
	engine->lkb_count--;
	if (rsb->first_lkid == lkb->id)
		master_first_gone(engine, rsb);
	lvb_free(engine, lkb->lvb);
	if (engine->spare_lkb)
		free(lkb);
	else
		engine->spare_lkb = lkb;
	if (--rsb->nlocks == 0)
		rsb_set_idle(engine, rsb);
}

static void queue_prepend(struct lkb_queue *queue, struct lkb *lkb)
{
	queue_append(queue, lkb);
	queue->first = lkb;
}

void queue_append(struct lkb_queue *queue, struct lkb *lkb)
{
	struct lkb *first = queue->first;

	if (!first) {
		queue->first = lkb->next = lkb->prev = lkb;
		return;
	}
	lkb->next = first;
	lkb->prev = first->prev;
	first->prev->next = lkb;
	first->prev = lkb;
}

/* before: NULL = at the end */
void queue_insert(struct lkb_queue *queue, struct lkb *lkb, struct lkb *before)
{
	if (!before) {
		queue_append(queue, lkb);
		return;
	}
	lkb->next = before;
	lkb->prev = before->prev;
	before->prev->next = lkb;
	before->prev = lkb;
	if (queue->first == before)
		queue->first = lkb;
}

void queue_remove(struct lkb_queue *queue, struct lkb *lkb)
{
	if (lkb->next == lkb) {
		queue->first = NULL;
	} else {
		lkb->prev->next = lkb->next;
		lkb->next->prev = lkb->prev;
		if (queue->first == lkb)
			queue->first = lkb->next;
	}
	lkb->next = lkb->prev = NULL;
}

/*
 * Newest first on the granted queue, tail of the others but for HEADQUE
 * (spec 1.8).
 */
void lkb_set_status(struct lkb *lkb, enum dlm_lock_status status)
{
	lkb_unqueue(lkb);
	lkb->status = status;
	if (status == LKS_NONE)
		return;
	if (status == LKS_GRANTED || (lkb->exflags & LKF_HEADQUE))
		queue_prepend(queue_of(lkb), lkb);
	else
		queue_append(queue_of(lkb), lkb);
}

void lkb_park(struct lkb *lkb)
{
	ug_assert(lkb->status == LKS_NONE && !(lkb->flags & LKB_PARKED));
	lkb_unqueue(lkb);
	lkb->flags |= LKB_PARKED;
	queue_append(&lkb->rsb->lookup, lkb);
}

void lkb_unpark(struct lkb *lkb)
{
	ug_assert(lkb->flags & LKB_PARKED);
	lkb_unqueue(lkb);
	lkb->flags &= ~LKB_PARKED;
}

/* The request of a new lock is on its way. */
void lkb_queue_in_flight(struct lkb *lkb)
{
	if (lkb->status == LKS_NONE && !lkb->next)
		queue_append(&lkb->rsb->in_flight, lkb);
}
