/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * unlock.c - unlock, cancel, force-unlock, at any moment of a lock's life.
 *
 * What a cancel or a force-unlock does depends on what is in flight (docs/spec
 * /dlm.md 1.14):
 *
 *   parked                     ended here and now
 *   to be repeated (recovery)  marked; recovery finishes it
 *   LOOKUP, REQUEST            marked; acted on when the answer comes, since
 *                              the master's id of the lock is not known yet
 *   CONVERT                    sent at once, over the conversion
 *   UNLOCK, CANCEL             the same again: nothing; an unlock over a
 *                              cancel: sent
 *   nothing                    sent, or done here
 */
#include <errno.h>

#include "dlm/engine.h"

/*
 * Over a conversion that is in flight: what has been passed for that one is
 * written by it, if it writes. The lock's own copy may be what it has read, and
 * read as invalid; written back it would count as valid.
 */
void unlock_writes_nothing(struct lkb *lkb)
{
	lkb->exflags &= ~(uint32_t)(LKF_VALBLK | LKF_IVVALBLK);
}

void unlock_go(struct dlm_engine *engine, struct lkb *lkb)
{
	struct rsb *rsb = lkb->rsb;
	int result;

	if (lkb->wait_type == DLM_MSG_CONVERT)
		unlock_writes_nothing(lkb);
	if ((lkb->flags & LKB_DEAD) && !(lkb->exflags & LKF_PERSISTENT))
		lkb->exflags = LKF_IVVALBLK | LKF_FORCEUNLOCK;
	/*
	 * Who does not know of a write lock has nothing to write, even if the
	 * master has granted one in the meantime.
	 */
	if (lkb->grmode < LKM_PW)
		unlock_writes_nothing(lkb);
	if (!rsb_is_master(engine, rsb)) {
		waiter_add(engine, lkb, DLM_MSG_UNLOCK, rsb->master);
		send_lkb(engine, lkb, rsb->master, DLM_MSG_UNLOCK, 0);
		return;
	}
	result = master_unlock(engine, lkb);
	cast_queue(engine, lkb, result);
	lkb_free(engine, lkb);
	if (rsb->where == RSB_KEEP)
		grant_pass(engine, rsb, false);
}

void cancel_go(struct dlm_engine *engine, struct lkb *lkb)
{
	struct rsb *rsb = lkb->rsb;

	if (!rsb_is_master(engine, rsb)) {
		waiter_add(engine, lkb, DLM_MSG_CANCEL, rsb->master);
		send_lkb(engine, lkb, rsb->master, DLM_MSG_CANCEL, 0);
		return;
	}
	if (master_cancel(lkb) == 0)
		return;
	cast_queue(engine, lkb, -DLM_ECANCEL);
	if (lkb->status == LKS_NONE)
		lkb_free(engine, lkb);
	if (rsb->where == RSB_KEEP)
		grant_pass(engine, rsb, false);
}

static bool request_in_flight(const struct lkb *lkb)
{
	return lkb->wait_type == DLM_MSG_LOOKUP ||
	       lkb->wait_type == DLM_MSG_REQUEST;
}

static void end_parked(struct dlm_engine *engine, struct lkb *lkb, int status)
{
	cast_queue(engine, lkb, status);
	lkb_free(engine, lkb);
}

void cancel_any(struct dlm_engine *engine, struct lkb *lkb)
{
	if (lkb->flags & LKB_PARKED) {
		end_parked(engine, lkb, -DLM_ECANCEL);
		return;
	}
	if (lkb->flags & LKB_OVERLAP)
		return;
	if ((lkb->flags & LKB_RESEND) || request_in_flight(lkb)) {
		lkb->flags |= LKB_OVERLAP_CANCEL;
		return;
	}
	if (lkb->wait_type == DLM_MSG_UNLOCK ||
	    lkb->wait_type == DLM_MSG_CANCEL)
		return;
	if (lkb->status == LKS_GRANTED && !lkb->wait_type)
		return;
	cancel_go(engine, lkb);
}

void force_unlock_any(struct dlm_engine *engine, struct lkb *lkb)
{
	if (lkb->flags & LKB_PARKED) {
		end_parked(engine, lkb, -DLM_EUNLOCK);
		return;
	}
	if (lkb->flags & LKB_OVERLAP_UNLOCK)
		return;
	if ((lkb->flags & LKB_RESEND) || request_in_flight(lkb)) {
		lkb->flags |= LKB_OVERLAP_UNLOCK;
		return;
	}
	if (lkb->wait_type == DLM_MSG_UNLOCK)
		return;
	unlock_go(engine, lkb);
}

#define UNLOCK_FLAGS (LKF_CANCEL | LKF_VALBLK | LKF_IVVALBLK | LKF_FORCEUNLOCK)

static int unlock_check(const struct lkb *lkb,
			const struct dlm_unlock_args *args)
{
	uint32_t flags = args->flags;

	if ((flags & ~(uint32_t)UNLOCK_FLAGS) ||
	    ((flags & LKF_CANCEL) && (flags & LKF_FORCEUNLOCK)) ||
	    ((flags & LKF_VALBLK) && !args->lvb))
		return -EINVAL;
	if (!lkb || lkb_is_mstcpy(lkb))
		return -ENOENT;
	if (flags & (LKF_CANCEL | LKF_FORCEUNLOCK))
		return 0;
	if (lkb->wait_count || (lkb->flags & LKB_PARKED))
		return -EBUSY;
	return 0;
}

static void cancel_named(struct dlm_engine *engine, struct lkb *lkb,
			 int cancel_status)
{
	uint32_t name = cancel_status == -EDEADLK     ? LKB_DEADLOCK_CANCEL
			: cancel_status == -ETIMEDOUT ? LKB_TIMEOUT_CANCEL
						      : 0;

	if (lkb->status != LKS_GRANTED || lkb->wait_type)
		lkb->flags |= name;
	cancel_any(engine, lkb);
}

/*
 * An unlock has flags and a value block of its own; they replace those of the
 * last operation unless that is in flight and still needs them.
 */
int call_unlock(struct dlm_engine *engine, struct dlm_unlock_args *args)
{
	struct lkb *lkb = lkb_find(engine, args->lkid);
	int error = unlock_check(lkb, args);

	if (!error)
		error = step_reserve_rsb(engine, lkb->rsb);
	if (error)
		return error;
	TRACE(engine, "unlock %08x flags %x", lkb->id, args->flags);
	if (args->flags & LKF_CANCEL) {
		cancel_named(engine, lkb, args->cancel_status);
		return 0;
	}
	if (!lkb->wait_type || lkb->wait_type == DLM_MSG_CANCEL) {
		lkb->exflags = args->flags | (lkb->exflags & LKF_PERSISTENT);
		lkb->sbflags = 0;
		lvb_take_argument(engine, lkb, args->lvb);
	}
	if (args->flags & LKF_FORCEUNLOCK)
		force_unlock_any(engine, lkb);
	else
		unlock_go(engine, lkb);
	return 0;
}
