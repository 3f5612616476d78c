/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * grant.c - the master decides: grant, queue, refuse; and what follows.
 *
 *   granted   newest first; a converting lock leaves it for
 *   convert   its granted mode goes on blocking others, and it goes before
 *   waiting   new requests, first come first served
 *
 * One decision is master_request() .. master_cancel(): they change the queues
 * and return the result. The caller tells the requester, and only then runs
 * the effects (BASTs, grants to others), so that a reply is always ahead of
 * what the same event causes. Source: docs/spec/dlm.md 1.8 - 1.11.
 */
#include <errno.h>

#include "dlm/engine.h"

enum when {
	AT_ARRIVAL,
	PENDING,
	RECOVERY, /* the order of the queues was lost with the old master */
};

enum verdict {
	VERDICT_NO,
	VERDICT_YES,
	VERDICT_DEMOTED, /* a conversion deadlock; our granted mode is NL now */
	VERDICT_DEADLOCK, /* a conversion deadlock; nothing has changed */
};

static bool conflicts_with_queue(const struct lkb_queue *queue,
				 const struct lkb *lkb)
{
	const struct lkb *other;

	queue_for_each(other, queue)
	{
		if (other != lkb && modes_conflict(other->grmode, lkb->rqmode))
			return true;
	}
	return false;
}

/* The table of spec 1.8, rule by rule. */
static bool may_grant(const struct lkb *lkb, enum when when)
{
	const struct rsb *rsb = lkb->rsb;
	bool conversion = lkb->grmode != LKM_IV;

	if (lkb->exflags & LKF_EXPEDITE)
		return true;
	if (conflicts_with_queue(&rsb->granted, lkb) ||
	    conflicts_with_queue(&rsb->convert, lkb))
		return false;
	if (conversion && when == RECOVERY)
		return true;
	if (conversion && when == AT_ARRIVAL)
		return !(lkb->exflags & LKF_QUECVT) || !rsb->convert.first;
	if (lkb->exflags & LKF_NOORDER)
		return true;
	if (conversion)
		return rsb->convert.first == lkb;
	if (when == AT_ARRIVAL)
		return !rsb->convert.first && !rsb->waiting.first;
	return !rsb->convert.first && rsb->waiting.first == lkb;
}

/*
 * Two conversions that wait for each other's granted mode (spec 1.9). One that
 * is ahead of us also goes first, so that it is enough that we block it.
 */
static bool in_conversion_deadlock(const struct lkb *lkb)
{
	bool ahead = true;
	const struct lkb *other;

	if (lkb->grmode == LKM_NL)
		return false; /* in nobody's way */
	queue_for_each(other, &lkb->rsb->convert)
	{
		if (other == lkb) {
			ahead = false;
			continue;
		}
		if (!modes_conflict(lkb->grmode, other->rqmode))
			continue;
		if (ahead || modes_conflict(other->grmode, lkb->rqmode))
			return true;
	}
	return false;
}

/* Spec 1.10; the requested mode stays replaced only if that is granted. */
static bool may_grant_alternate(struct lkb *lkb, enum when when)
{
	int8_t asked = lkb->rqmode;

	if ((lkb->exflags & LKF_ALTPR) && asked != LKM_PR)
		lkb->rqmode = LKM_PR;
	else if ((lkb->exflags & LKF_ALTCW) && asked != LKM_CW)
		lkb->rqmode = LKM_CW;
	else
		return false;
	if (may_grant(lkb, when == RECOVERY ? PENDING : when)) {
		lkb->sbflags |= SBF_ALTMODE;
		return true;
	}
	lkb->rqmode = asked;
	return false;
}

static enum verdict decide(struct dlm_engine *engine, struct lkb *lkb,
			   enum when when)
{
	if (may_grant(lkb, when))
		return VERDICT_YES;
	if (lkb->grmode != LKM_IV && !(lkb->exflags & LKF_NOQUEUE) &&
	    in_conversion_deadlock(lkb)) {
		if (!(lkb->exflags & LKF_CONVDEADLK))
			return VERDICT_DEADLOCK;
		TRACE(engine, "demote %08x from %s", lkb->id,
		      mode_name(lkb->grmode));
		lkb->grmode = LKM_NL;
		lkb->sbflags |= SBF_DEMOTED;
		return VERDICT_DEMOTED;
	}
	return may_grant_alternate(lkb, when) ? VERDICT_YES : VERDICT_NO;
}

static void grant(struct dlm_engine *engine, struct lkb *lkb)
{
	lvb_on_grant(engine, lkb, lkb->grmode);
	lkb->grmode = lkb->rqmode;
	lkb->rqmode = LKM_IV;
	lkb->highbast = LKM_IV;
	lkb_set_status(lkb, LKS_GRANTED);
	TRACE(engine, "grant %08x %s node %d", lkb->id, mode_name(lkb->grmode),
	      lkb_holder(lkb));
}

static void grant_queued(struct dlm_engine *engine, struct lkb *lkb)
{
	grant(engine, lkb);
	if (lkb_is_mstcpy(lkb))
		send_lkb(engine, lkb, lkb->nodeid, DLM_MSG_GRANT, 0);
	else
		cast_queue(engine, lkb, 0);
}

/* Tell a lock that it blocks mode, unless it has heard as much or more. */
static void blocks(struct dlm_engine *engine, struct lkb *lkb, int mode)
{
	if (!(lkb->flags & LKB_WANTS_BAST) || lkb->highbast >= mode)
		return;
	lkb->highbast = (int8_t)mode;
	if (lkb_is_mstcpy(lkb))
		send_bast(engine, lkb, mode);
	else
		bast_queue(engine, lkb, mode);
}

static void blocks_queue(struct dlm_engine *engine,
			 const struct lkb_queue *queue,
			 const struct lkb *blocked)
{
	struct lkb *lkb;

	queue_for_each(lkb, queue)
	{
		if (lkb != blocked &&
		    modes_conflict(lkb->grmode, blocked->rqmode))
			blocks(engine, lkb, blocked->rqmode);
	}
}

/* What the queues wait for, after a pass. */
struct blocked {
	int high; /* LKM_IV: nobody waits */
	bool cw;
};

static void blocked_add(struct blocked *blocked, const struct lkb *lkb)
{
	blocked->high = UG_MAX(blocked->high, (int)lkb->rqmode);
	blocked->cw |= lkb->rqmode == LKM_CW;
}

/*
 * A deadlock found late is one that its owner chose to resolve himself, and
 * who is told by a BAST of his own mode (NODLCKWT, spec 9.1 #10).
 */
static bool convert_walk(struct dlm_engine *engine, struct rsb *rsb,
			 enum when when, struct blocked *blocked, bool *demoted)
{
	bool granted = false;
	struct lkb *lkb, *next;

	*blocked = (struct blocked){ .high = LKM_IV };
	for (lkb = rsb->convert.first; lkb; lkb = next) {
		next = queue_next(&rsb->convert, lkb);
		switch (decide(engine, lkb, when)) {
		case VERDICT_YES:
			grant_queued(engine, lkb);
			granted = true;
			continue;
		case VERDICT_DEMOTED:
			*demoted = true;
			break;
		case VERDICT_DEADLOCK:
			if (lkb->exflags & LKF_NODLCKWT)
				blocks(engine, lkb, lkb->rqmode);
			break;
		case VERDICT_NO:
			break;
		}
		blocked_add(blocked, lkb);
	}
	return granted;
}

/*
 * Every grant and every demotion changes what the locks before it in the queue
 * may have, so the walk begins anew (spec 9.1 #1). A demotion can happen once
 * per lock, since NL is in nobody's way.
 */
static void convert_pass(struct dlm_engine *engine, struct rsb *rsb,
			 enum when when, struct blocked *blocked)
{
	bool again;

	do {
		bool demoted = false;

		again = convert_walk(engine, rsb, when, blocked, &demoted);
		again |= demoted;
	} while (again);
}

static void wait_pass(struct dlm_engine *engine, struct rsb *rsb,
		      enum when when, struct blocked *blocked)
{
	struct lkb *lkb, *next;

	for (lkb = rsb->waiting.first; lkb; lkb = next) {
		next = queue_next(&rsb->waiting, lkb);
		if (decide(engine, lkb, when) == VERDICT_YES)
			grant_queued(engine, lkb);
		else
			blocked_add(blocked, lkb);
	}
}

/*
 * PR holders are in the way of CW, which is below PR: "high" alone would not
 * say so.
 */
static int mode_to_tell(const struct lkb *lkb, const struct blocked *blocked)
{
	if (blocked->cw && !modes_conflict(lkb->grmode, blocked->high))
		return LKM_CW;
	return blocked->high;
}

void grant_pass(struct dlm_engine *engine, struct rsb *rsb, bool recovery)
{
	enum when when = recovery ? RECOVERY : PENDING;
	struct blocked blocked;
	struct lkb *lkb;

	ug_assert(rsb_is_master(engine, rsb));
	convert_pass(engine, rsb, when, &blocked);
	wait_pass(engine, rsb, when, &blocked);
	if (blocked.high == LKM_IV)
		return;
	queue_for_each(lkb, &rsb->granted)
	{
		int mode = mode_to_tell(lkb, &blocked);

		if (modes_conflict(lkb->grmode, mode))
			blocks(engine, lkb, mode);
	}
}

/* The first that lkb is in the way of; asked: the modes in the queue */
static struct lkb *first_blocked(const struct lkb_queue *queue,
				 const bool *asked, const struct lkb *lkb)
{
	struct lkb *other;
	bool any = false;

	for (int mode = LKM_NL; mode <= LKM_EX; mode++)
		any |= asked[mode] && modes_conflict(lkb->grmode, mode);
	if (!any)
		return NULL;
	queue_for_each(other, queue)
	{
		if (modes_conflict(lkb->grmode, other->rqmode))
			return other;
	}
	return NULL;
}

/*
 * A recovery gets the queue in the order in which holders sent their locks,
 * which can put one before another that is in its way (PR to EX behind NL to
 * EX). While anything third holds both up, the pass of the recovery cannot
 * help (spec 9.1 #15), so the order itself is mended: who is in the way of
 * another goes before it.
 */
void grant_order_conversions(struct rsb *rsb)
{
	struct lkb *lkb = rsb->convert.first;
	struct lkb_queue ordered = { NULL };
	bool asked[LKM_EX + 1] = { false };

	for (; lkb; lkb = rsb->convert.first) {
		queue_remove(&rsb->convert, lkb);
		queue_insert(&ordered, lkb,
			     first_blocked(&ordered, asked, lkb));
		asked[lkb->rqmode] = true;
	}
	rsb->convert = ordered;
}

/* For checkers: a pass would grant something. */
bool grant_is_due(const struct rsb *rsb)
{
	const struct lkb *lkb;

	queue_for_each(lkb, &rsb->convert)
	{
		if (may_grant(lkb, PENDING))
			return true;
	}
	queue_for_each(lkb, &rsb->waiting)
	{
		if (may_grant(lkb, PENDING))
			return true;
	}
	return false;
}

int master_request(struct dlm_engine *engine, struct lkb *lkb)
{
	if (decide(engine, lkb, AT_ARRIVAL) == VERDICT_YES) {
		grant(engine, lkb);
		return 0;
	}
	if (lkb->exflags & LKF_NOQUEUE)
		return -EAGAIN;
	lkb_set_status(lkb, LKS_WAITING);
	return -EINPROGRESS;
}

/*
 * The rules for one that waits differ from those at arrival: who has gone to
 * the head of its queue is the first there and may be grantable; who sits in
 * a deadlock by choice is told; who was demoted has made room.
 */
static void queued_effects(struct dlm_engine *engine, struct lkb *lkb)
{
	uint32_t again = LKF_HEADQUE | LKF_NODLCKWT | LKF_CONVDEADLK;

	blocks_queue(engine, &lkb->rsb->granted, lkb);
	if (lkb->exflags & again)
		grant_pass(engine, lkb->rsb, false);
}

void master_request_effects(struct dlm_engine *engine, struct lkb *lkb,
			    int result)
{
	struct rsb *rsb = lkb->rsb;

	if (result == -EINPROGRESS)
		queued_effects(engine, lkb);
	/* who has overtaken others (NOORDER) may be in their way now */
	if (result == 0 && (rsb->convert.first || rsb->waiting.first))
		grant_pass(engine, rsb, false);
	if (result != -EAGAIN || !(lkb->exflags & LKF_NOQUEUEBAST))
		return;
	blocks_queue(engine, &rsb->granted, lkb);
	blocks_queue(engine, &rsb->convert, lkb);
}

/*
 * A lock that was demoted to break a deadlock has made room: the conversions
 * it blocked go first, then it is judged once more as if it came now.
 */
static enum verdict convert_verdict(struct dlm_engine *engine, struct lkb *lkb)
{
	struct blocked blocked;
	enum verdict verdict = decide(engine, lkb, AT_ARRIVAL);

	if (verdict != VERDICT_DEMOTED)
		return verdict;
	convert_pass(engine, lkb->rsb, PENDING, &blocked);
	return may_grant(lkb, AT_ARRIVAL) ? VERDICT_YES : VERDICT_NO;
}

/*
 * To the head of the queue, before a conversion whose granted mode is in the
 * way, would stop both for ever: that one cannot be granted before us, nor we
 * before it. HEADQUE gives way then.
 */
int master_convert(struct dlm_engine *engine, struct lkb *lkb)
{
	enum verdict verdict = convert_verdict(engine, lkb);

	if (verdict == VERDICT_YES) {
		grant(engine, lkb);
		return 0;
	}
	if (verdict == VERDICT_DEADLOCK && !(lkb->exflags & LKF_NODLCKWT)) {
		lkb->rqmode = LKM_IV;
		return -EDEADLK;
	}
	if (lkb->exflags & LKF_NOQUEUE)
		return -EAGAIN;
	if (conflicts_with_queue(&lkb->rsb->convert, lkb))
		lkb->exflags &= ~(uint32_t)LKF_HEADQUE;
	lkb_set_status(lkb, LKS_CONVERT);
	return -EINPROGRESS;
}

void master_convert_effects(struct dlm_engine *engine, struct lkb *lkb,
			    int result)
{
	struct rsb *rsb = lkb->rsb;

	switch (result) {
	case 0:
		grant_pass(engine, rsb, false);
		break;
	case -EINPROGRESS:
		queued_effects(engine, lkb);
		break;
	case -EAGAIN:
		if (lkb->exflags & LKF_NOQUEUEBAST) {
			blocks_queue(engine, &rsb->granted, lkb);
			blocks_queue(engine, &rsb->convert, lkb);
		}
		lkb->rqmode = LKM_IV;
		break;
	default:
		break;
	}
}

/* The lock leaves the queues; the caller frees it and runs a grant pass. */
int master_unlock(struct dlm_engine *engine, struct lkb *lkb)
{
	lvb_on_unlock(engine, lkb);
	lkb_set_status(lkb, LKS_NONE);
	lkb->grmode = LKM_IV;
	lkb->rqmode = LKM_IV;
	return -DLM_EUNLOCK;
}

/*
 * 0: nothing was waiting. A request that is cancelled has left the queues, the
 * caller frees it; a conversion is granted in the old mode.
 */
int master_cancel(struct lkb *lkb)
{
	switch (lkb->status) {
	case LKS_CONVERT:
		lkb->rqmode = LKM_IV;
		lkb_set_status(lkb, LKS_GRANTED);
		return -DLM_ECANCEL;
	case LKS_WAITING:
		lkb->rqmode = LKM_IV;
		lkb_set_status(lkb, LKS_NONE);
		return -DLM_ECANCEL;
	default:
		return 0;
	}
}
