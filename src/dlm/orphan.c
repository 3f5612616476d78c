/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * orphan.c - locks of owners that are gone: kept, adopted, purged.
 *
 * Closing or purging touches many locks, each of them completely or not at
 * all: after -ENOMEM the call is given again and finds the rest. They go
 * through the table by place, which is the order of ids.
 * Source: docs/spec/dlm.md 1.16.
 */
#include <errno.h>

#include "dlm/engine.h"

static struct lkb *orphan_in_queue(const struct lkb_queue *queue, int mode,
				   bool *other_mode)
{
	struct lkb *lkb;

	queue_for_each(lkb, queue)
	{
		if (!(lkb->flags & LKB_ORPHAN) || lkb_is_mstcpy(lkb) ||
		    lkb->wait_count)
			continue;
		if (lkb->grmode == mode)
			return lkb;
		*other_mode = true;
	}
	return NULL;
}

static void adopt(struct lkb *lkb, const struct dlm_lock_args *args)
{
	lkb->flags &= ~(LKB_ORPHAN | LKB_DEAD | LKB_WANTS_BAST);
	if (args->wants_bast)
		lkb->flags |= LKB_WANTS_BAST;
	lkb->ctx = args->ctx;
	lkb->owner = args->owner;
	lkb->pid = args->pid;
	lkb->basts_told = 0;
}

/* Synchronous: no CAST. -ENOENT: no orphan; -EAGAIN: in another mode. */
int call_adopt(struct dlm_engine *engine, struct dlm_lock_args *args)
{
	struct rsb *rsb = rsb_find(engine, args->name.bytes, args->name.len,
				   dlm_hash(args->name.bytes, args->name.len));
	bool other_mode = false;
	struct lkb *lkb;

	if (!rsb)
		return -ENOENT;
	lkb = orphan_in_queue(&rsb->granted, args->mode, &other_mode);
	if (!lkb)
		return other_mode ? -EAGAIN : -ENOENT;
	adopt(lkb, args);
	args->lkid = lkb->id;
	return 0;
}

/*
 * A dead owner cannot say what it had in mind for the value block: unlock_go()
 * marks it invalid.
 */
static void close_lock(struct dlm_engine *engine, struct lkb *lkb)
{
	lkb->owner = 0;
	if (lkb->exflags & LKF_PERSISTENT) {
		lkb->flags |= LKB_ORPHAN;
		cancel_any(engine, lkb);
		return;
	}
	force_unlock_any(engine, lkb);
}

static void release_orphan(struct dlm_engine *engine, struct lkb *lkb)
{
	lkb->flags |= LKB_DEAD;
	lkb->exflags &= ~(uint32_t)LKF_PERSISTENT;
	force_unlock_any(engine, lkb);
}

static bool is_owned(const struct lkb *lkb, uint32_t owner)
{
	return lkb && !lkb_is_mstcpy(lkb) && owner && lkb->owner == owner;
}

/* All fall silent first: releasing one may grant another of the same owner. */
int call_close(struct dlm_engine *engine, uint32_t owner)
{
	for (uint32_t i = 0; i <= engine->lkb_mask; i++) {
		if (is_owned(engine->lkb_table[i], owner))
			engine->lkb_table[i]->flags |= LKB_DEAD;
	}
	for (uint32_t i = 0; i <= engine->lkb_mask; i++) {
		struct lkb *lkb = engine->lkb_table[i];

		if (!is_owned(lkb, owner))
			continue;
		if (step_reserve_rsb(engine, lkb->rsb))
			return -ENOMEM;
		close_lock(engine, lkb);
	}
	return 0;
}

int orphans_release(struct dlm_engine *engine, uint32_t pid)
{
	for (uint32_t i = 0; i <= engine->lkb_mask; i++) {
		struct lkb *lkb = engine->lkb_table[i];

		if (!lkb || lkb_is_mstcpy(lkb) || !(lkb->flags & LKB_ORPHAN) ||
		    (pid && lkb->pid != pid))
			continue;
		if (step_reserve_rsb(engine, lkb->rsb))
			return -ENOMEM;
		release_orphan(engine, lkb);
	}
	return 0;
}

int call_purge(struct dlm_engine *engine, int32_t nodeid, uint32_t pid)
{
	if (nodeid == 0 || nodeid == engine->config.nodeid)
		return orphans_release(engine, pid);
	if (!member_find(engine, nodeid))
		return -EINVAL;
	if (step_reserve(engine, 1))
		return -ENOMEM;
	send_purge(engine, nodeid, pid);
	return 0;
}
