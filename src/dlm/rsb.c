/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * rsb.c - resources: the table by name, and the three lists.
 *
 *      first lock            last lock gone             toss_ns later
 *   new -----> RSB_KEEP ---------------------> RSB_TOSS -----> free
 *                 ^  `-- mastered elsewhere,     |  (REMOVE to the directory)
 *                 |      directory here -----> RSB_RECORD --REMOVE--> free
 *                 `----- used again --------------'
 *
 * Source: docs/spec/dlm.md 2.3.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "dlm/engine.h"

#define TABLE_FIRST 64

int rsb_table_init(struct dlm_engine *engine)
{
	engine->rsb_table = calloc(TABLE_FIRST, sizeof(struct rsb *));
	if (!engine->rsb_table)
		return -ENOMEM;
	engine->rsb_mask = TABLE_FIRST - 1;
	return 0;
}

/* A table that cannot grow works, only slower. */
static void rsb_table_grow(struct dlm_engine *engine)
{
	uint32_t size = (engine->rsb_mask + 1) * 2;
	struct rsb **table = calloc(size, sizeof(*table));

	if (!table)
		return;
	for (uint32_t i = 0; i <= engine->rsb_mask; i++) {
		struct rsb *rsb = engine->rsb_table[i];

		while (rsb) {
			struct rsb *next = rsb->hash_next;
			struct rsb **place = &table[rsb->hash & (size - 1)];

			rsb->hash_next = *place;
			*place = rsb;
			rsb = next;
		}
	}
	free(engine->rsb_table);
	engine->rsb_table = table;
	engine->rsb_mask = size - 1;
}

/* An idle resource has none; there its place is taken. */
struct lvb *rsb_lvb(const struct rsb *rsb)
{
	return rsb->where == RSB_KEEP ? rsb->lvb : NULL;
}

struct rsb *rsb_find(struct dlm_engine *engine, const uint8_t *name,
		     unsigned len, uint32_t hash)
{
	struct rsb *rsb = engine->rsb_table[hash & engine->rsb_mask];

	while (rsb) {
		if (rsb->hash == hash && rsb->namelen == len &&
		    memcmp(rsb->name, name, len) == 0)
			return rsb;
		rsb = rsb->hash_next;
	}
	return NULL;
}

/*
 * The reserved object has room for the longest name; the resource keeps only
 * what its name needs. Shrinking in place cannot lose it.
 */
struct rsb *rsb_create(struct dlm_engine *engine, const uint8_t *name,
		       unsigned len, uint32_t hash)
{
	struct rsb *rsb = engine->spare_rsb;
	struct rsb *small;
	struct rsb **place;

	ug_assert(rsb && len <= DLM_NAME_MAX);
	engine->spare_rsb = NULL;
	small = realloc(rsb, offsetof(struct rsb, name) + len);
	if (small)
		rsb = small;
	memset(rsb, 0, offsetof(struct rsb, name));
	rsb->hash = hash;
	rsb->namelen = (uint8_t)len;
	memcpy(rsb->name, name, len);
	rsb->where = RSB_KEEP;
	cds_list_add_tail(&rsb->list, &engine->keep);

	if (engine->rsb_count > engine->rsb_mask)
		rsb_table_grow(engine);
	place = &engine->rsb_table[hash & engine->rsb_mask];
	rsb->hash_next = *place;
	*place = rsb;
	engine->rsb_count++;
	return rsb;
}

/*
 * An idle resource has no value block and no question open: what remains is
 * who masters it.
 */
static void rsb_make_idle(struct dlm_engine *engine, struct rsb *rsb)
{
	ug_assert(rsb->nlocks == 0);
	lvb_free(engine, rsb_lvb(rsb));
	rsb->flags = 0;
	rsb->first_lkid = 0;
	rsb->toss_ns = engine->now_ns;
}

void rsb_set_where(struct dlm_engine *engine, struct rsb *rsb,
		   enum rsb_where where)
{
	TRACE(engine, "resource %08x: %s, master %d", rsb->hash,
	      where == RSB_KEEP	  ? "in use"
	      : where == RSB_TOSS ? "idle"
				  : "record",
	      rsb->master);
	cds_list_del(&rsb->list);
	if (where != RSB_KEEP)
		rsb_make_idle(engine, rsb);
	else if (rsb->where != RSB_KEEP)
		rsb->lvb = NULL;
	switch (where) {
	case RSB_KEEP:
		cds_list_add_tail(&rsb->list, &engine->keep);
		break;
	case RSB_TOSS:
		cds_list_add_tail(&rsb->list, &engine->toss);
		break;
	case RSB_RECORD:
		cds_list_add_tail(&rsb->list, &engine->records);
		break;
	}
	rsb->where = where;
}

void rsb_free(struct dlm_engine *engine, struct rsb *rsb)
{
	struct rsb **place = &engine->rsb_table[rsb->hash & engine->rsb_mask];

	ug_assert(rsb->nlocks == 0);
	TRACE(engine, "resource %08x: freed, master %d", rsb->hash,
	      rsb->master);
	while (*place != rsb)
		place = &(*place)->hash_next;
	*place = rsb->hash_next;
	cds_list_del(&rsb->list);
	lvb_free(engine, rsb_lvb(rsb));
	free(rsb);
	engine->rsb_count--;
}

void rsb_forget_list(struct dlm_engine *engine, struct cds_list_head *list)
{
	struct rsb *rsb, *next;

	cds_list_for_each_entry_safe (rsb, next, list, list)
		rsb_free(engine, rsb);
}

static unsigned check_queue(const struct rsb *rsb,
			    const struct lkb_queue *queue,
			    enum dlm_lock_status status)
{
	bool parked = queue == &rsb->lookup;
	const struct lkb *lkb;
	unsigned count = 0;

	queue_for_each(lkb, queue)
	{
		ug_assert(lkb->rsb == rsb);
		ug_assert(lkb->status == status);
		ug_assert(lkb->next->prev == lkb);
		ug_assert(parked == !!(lkb->flags & LKB_PARKED));
		ug_assert(lkb->grmode >= LKM_IV && lkb->grmode <= LKM_EX);
		if (status == LKS_GRANTED || status == LKS_CONVERT)
			ug_assert(mode_valid(lkb->grmode));
		if (status == LKS_WAITING || status == LKS_CONVERT)
			ug_assert(mode_valid(lkb->rqmode));
		count++;
	}
	return count;
}

/* Whoever masters a resource has granted only what can stand together. */
void rsb_check_grants(const struct rsb *rsb)
{
	const struct lkb_queue *queues[] = { &rsb->granted, &rsb->convert };
	unsigned held[LKM_EX + 1] = { 0 };
	const struct lkb *lkb;

	for (unsigned q = 0; q < 2; q++)
		queue_for_each(lkb, queues[q]) held[lkb->grmode]++;
	for (int a = LKM_NL; a <= LKM_EX; a++) {
		for (int b = a; b <= LKM_EX; b++) {
			unsigned need_b = a == b ? 2 : 1;

			if (held[a] && held[b] >= need_b)
				ug_assert(!modes_conflict(a, b));
		}
	}
}

void rsb_check(const struct dlm_engine *engine, const struct rsb *rsb)
{
	unsigned queued = check_queue(rsb, &rsb->granted, LKS_GRANTED) +
			  check_queue(rsb, &rsb->convert, LKS_CONVERT) +
			  check_queue(rsb, &rsb->waiting, LKS_WAITING) +
			  check_queue(rsb, &rsb->lookup, LKS_NONE) +
			  check_queue(rsb, &rsb->in_flight, LKS_NONE);
	bool running = engine->state == REC_RUNNING;

	ug_assert(queued == rsb->nlocks);
	ug_assert((rsb->nlocks > 0) == (rsb->where == RSB_KEEP));
	ug_assert(!rsb->lookup.first || rsb->first_lkid || !running);
	if (running && !rsb->master)
		ug_assert(!rsb->granted.first && !rsb->convert.first &&
			  !rsb->waiting.first);
	if (running)
		ug_assert(!(rsb->flags & (RES_REMASTER | RES_NEW_MASTER)));
	if (rsb->where != RSB_KEEP)
		ug_assert(!rsb->first_lkid);
}
