/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * convert.c - another mode for a lock that is held here.
 *
 * A down conversion cannot be refused, so its holder does not wait: the
 * message goes out and the mode has changed. Everything else waits for the
 * master. Source: docs/spec/dlm.md 1.5, 1.6, 3.6.
 */
#include <errno.h>

#include "dlm/engine.h"

static int convert_check(const struct lkb *lkb,
			 const struct dlm_lock_args *args)
{
	if (lkb_is_mstcpy(lkb))
		return -EINVAL;
	if (lkb->status != LKS_GRANTED || lkb->wait_count)
		return -EBUSY;
	if ((args->flags & LKF_QUECVT) &&
	    !mode_may_queue(lkb->grmode, args->mode))
		return -EINVAL;
	return 0;
}

static void convert_here(struct dlm_engine *engine, struct lkb *lkb)
{
	int result = master_convert(engine, lkb);

	if (result != -EINPROGRESS)
		cast_queue(engine, lkb, result);
	master_convert_effects(engine, lkb, result);
}

static void convert_down(struct dlm_engine *engine, struct lkb *lkb)
{
	int from = lkb->grmode;

	send_lkb(engine, lkb, lkb->rsb->master, DLM_MSG_CONVERT, 0);
	if (mode_lvb(from, lkb->rqmode) == LVB_WRITE) {
		lvb_wrote(lkb);
		if (lkb->exflags & LKF_VALBLK)
			lkb->lvb->seq++;
	}
	lkb->grmode = lkb->rqmode;
	lkb->rqmode = LKM_IV;
	cast_queue(engine, lkb, 0);
}

/* The requested mode is set; also to repeat a conversion after recovery. */
void convert_go(struct dlm_engine *engine, struct lkb *lkb)
{
	if (rsb_is_master(engine, lkb->rsb)) {
		convert_here(engine, lkb);
		return;
	}
	if (mode_is_down(lkb->grmode, lkb->rqmode)) {
		convert_down(engine, lkb);
		return;
	}
	waiter_add(engine, lkb, DLM_MSG_CONVERT, lkb->rsb->master);
	send_lkb(engine, lkb, lkb->rsb->master, DLM_MSG_CONVERT, 0);
}

int call_convert(struct dlm_engine *engine, struct dlm_lock_args *args)
{
	struct lkb *lkb = lkb_find(engine, args->lkid);
	int error;

	if (!lkb)
		return -ENOENT;
	error = convert_check(lkb, args);
	if (!error)
		error = step_reserve_rsb(engine, lkb->rsb);
	if (error)
		return error;
	lkb->exflags = args->flags | (lkb->exflags & LKF_PERSISTENT);
	lkb->sbflags = 0;
	lkb->rqmode = (int8_t)args->mode;
	lkb->ctx = args->ctx;
	if (args->wants_bast)
		lkb->flags |= LKB_WANTS_BAST;
	lvb_take_for_conversion(engine, lkb, args->lvb);
	TRACE(engine, "convert %08x %s to %s flags %x", lkb->id,
	      mode_name(lkb->grmode), mode_name(args->mode), args->flags);
	convert_go(engine, lkb);
	return 0;
}
