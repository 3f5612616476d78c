/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * callback.c - what the user of a lock is told, and what he need not hear.
 *
 * Callbacks of one lock leave in the order of updates, and are delivered in
 * that order. So the mode of the last CAST that left is the mode of the last
 * one that will have been delivered when a BAST arrives, and the rule of
 * delivery (a BAST that does not conflict with what the user believes to hold
 * is skipped) can be applied here. Between two CASTs each blocked mode is told
 * once. Source: docs/spec/dlm.md 1.12.
 */
#include <errno.h>
#include <string.h>

#include "dlm/engine.h"

/* A cancel that somebody else ordered has another name (spec 1.14). */
static int cast_status(const struct lkb *lkb, int status)
{
	if (status != -DLM_ECANCEL)
		return status;
	if (lkb->flags & LKB_DEADLOCK_CANCEL)
		return -EDEADLK;
	if (lkb->flags & LKB_TIMEOUT_CANCEL)
		return -ETIMEDOUT;
	return status;
}

void cast_queue(struct dlm_engine *engine, struct lkb *lkb, int status)
{
	struct dlm_cast *cast;
	uint32_t lvb_read = lkb->flags & LKB_LVB_READ;
	int shown = cast_status(lkb, status);

	ug_assert(!lkb_is_mstcpy(lkb));
	lkb->castmode = status == -DLM_EUNLOCK ? LKM_IV : lkb->grmode;
	lkb->basts_told = 0;
	lkb->flags &=
		~(LKB_DEADLOCK_CANCEL | LKB_TIMEOUT_CANCEL | LKB_LVB_READ);
	if (lkb->flags & LKB_DEAD)
		return;
	cast = &update_add(engine, DLM_UP_CAST)->cast;
	cast->ctx = lkb->ctx;
	cast->lkid = lkb->id;
	cast->status = shown;
	cast->sbflags = lkb->sbflags;
	cast->mode = lkb->castmode;
	cast->bast = LKM_IV;
	cast->lvb_valid = lvb_read && status == 0 && lkb->lvb;
	if (cast->lvb_valid)
		memcpy(cast->lvb, lkb->lvb->bytes, engine->config.lvblen);
	TRACE(engine, "cast %08x status %d mode %s flags %x", lkb->id, shown,
	      mode_name(cast->mode), cast->sbflags);
}

/* The end of a request that was given up on: by unlock or by cancel. */
void cast_cancelled(struct dlm_engine *engine, struct lkb *lkb)
{
	cast_queue(engine, lkb,
		   lkb->flags & LKB_OVERLAP_UNLOCK ? -DLM_EUNLOCK
						   : -DLM_ECANCEL);
}

/* A mode above PR that was told covers all that are lower. */
static bool bast_is_news(const struct lkb *lkb, int mode)
{
	unsigned covering = 1u << mode;

	for (int told = LKM_PW; told <= LKM_EX; told++) {
		if (told > mode)
			covering |= 1u << told;
	}
	return !(lkb->basts_told & covering);
}

void bast_queue(struct dlm_engine *engine, struct lkb *lkb, int mode)
{
	struct dlm_cast *cast;

	if ((lkb->flags & LKB_DEAD) || !(lkb->flags & LKB_WANTS_BAST))
		return;
	if (lkb->wait_type == DLM_MSG_UNLOCK)
		return;
	if (!modes_conflict(lkb->castmode, mode) || !bast_is_news(lkb, mode))
		return;
	lkb->basts_told |= 1u << mode;
	cast = &update_add(engine, DLM_UP_BAST)->cast;
	memset(cast, 0, sizeof(*cast));
	cast->ctx = lkb->ctx;
	cast->lkid = lkb->id;
	cast->mode = lkb->castmode;
	cast->bast = (int8_t)mode;
	TRACE(engine, "bast %08x mode %s", lkb->id, mode_name(mode));
}
