/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * rebuild.c - what a recovery does to locks and resources.
 *
 *   holder                    directory              new master
 *     | LOOKUP name              |                      |
 *     |------------------------->| who asks first       |
 *     |<-------------------------| becomes master       |
 *     | LOCK (modes, flags, lvb) for each lock, in order of the queues
 *     |------------------------------------------------>|
 *     |<------------------------------------------------| LOCK_REPLY: its id
 *
 * What the old master had decided but could not say is lost. That is harmless
 * for a mode that includes the old one, and a contradiction otherwise:
 *
 *   A: PR, asks for CW        master          B asks for CW
 *     |        granted CW, said: lost |            |
 *     |                               | granted CW |
 *     |                               |----------->|
 *     |            crash; A tells PR, B tells CW
 *
 * The one whose conversion is under way has given its old mode up by asking;
 * it is taken to have what makes both true (repair below; spec 5.7).
 * Source: docs/spec/dlm.md 5.5 - 5.10.
 */
#include <errno.h>
#include <string.h>

#include "dlm/engine.h"

static bool could_have_written(const struct lkb *lkb)
{
	return lkb->grmode >= LKM_PW && (lkb->exflags & LKF_VALBLK);
}

/* Free the master copies of one node, or of all (0). */
static bool drop_copies(struct dlm_engine *engine, struct lkb_queue *queue,
			int32_t nodeid)
{
	struct lkb *lkb, *next;
	bool dropped = false;

	for (lkb = queue->first; lkb; lkb = next) {
		next = queue_next(queue, lkb);
		if (!lkb_is_mstcpy(lkb) || (nodeid && lkb->nodeid != nodeid))
			continue;
		if (could_have_written(lkb))
			lkb->rsb->flags |= RES_LVB_LOST;
		lkb->rsb->flags |= RES_GRANT;
		lkb_free(engine, lkb);
		dropped = true;
	}
	return dropped;
}

static void drop_all_copies(struct dlm_engine *engine, struct rsb *rsb,
			    int32_t nodeid)
{
	drop_copies(engine, &rsb->granted, nodeid);
	drop_copies(engine, &rsb->convert, nodeid);
	drop_copies(engine, &rsb->waiting, nodeid);
}

/*
 * Before anything of the new membership arrives: afterwards the node id may
 * mean its next incarnation. A resource that loses its last lock here goes to
 * the cache of idle ones, which is emptied next.
 */
void rebuild_forget_gone(struct dlm_engine *engine, int32_t nodeid)
{
	struct rsb *rsb, *next;

	cds_list_for_each_entry_safe (rsb, next, &engine->keep, list) {
		if (rsb->master == nodeid) {
			rsb->master = 0;
			rsb->flags |= RES_REMASTER;
			rsb->flags &= (uint8_t)~RES_UNCERTAIN;
		}
		drop_all_copies(engine, rsb, nodeid);
	}
}

/* Also where none is known yet: the answer that names it may be saved. */
void rebuild_doubt_masters(struct dlm_engine *engine)
{
	struct rsb *rsb;

	cds_list_for_each_entry (rsb, &engine->keep, list) {
		if (!rsb_is_master(engine, rsb))
			rsb->flags |= RES_UNPROVED;
	}
}

static void end_unlocked(struct dlm_engine *engine, struct lkb *lkb)
{
	cast_queue(engine, lkb, -DLM_EUNLOCK);
	lkb_free(engine, lkb);
}

static void end_cancelled(struct dlm_engine *engine, struct lkb *lkb)
{
	cast_queue(engine, lkb, -DLM_ECANCEL);
	lkb_free(engine, lkb);
}

static void mark_resend(struct lkb *lkb)
{
	lkb->flags |= LKB_RESEND;
	lkb->wait_count = 1;
}

/*
 * The cancel of a conversion is repeated rather than taken as done: the lost
 * master may have granted it, and somebody else after it.
 */
static void lost_cancel(struct dlm_engine *engine, struct lkb *lkb)
{
	if (lkb->status == LKS_CONVERT) {
		lkb->flags &= ~LKB_OVERLAP;
		lkb->wait_type = DLM_MSG_CANCEL;
		mark_resend(lkb);
	} else if (lkb->status == LKS_WAITING) {
		waiter_clear(engine, lkb);
		end_cancelled(engine, lkb);
	} else {
		waiter_clear(engine, lkb);
	}
}

/*
 * Asked of a member that lives and is not the master any more (directory.c):
 * it has forgotten the resource, so it has answered, and that ended the lock.
 * The answer is among the messages that are saved; it will find no lock.
 */
static bool ended_elsewhere(const struct lkb *lkb, bool lost)
{
	return !lost && lkb->status != LKS_NONE &&
	       lkb->wait_nodeid != lkb->rsb->master;
}

/* Spec 5.9, first part: an operation in flight when the membership changed */
void rebuild_waiter(struct dlm_engine *engine, struct lkb *lkb)
{
	bool lost = member_is_gone(engine, lkb->wait_nodeid);

	if (lkb->wait_type == DLM_MSG_LOOKUP) {
		lkb->flags |= LKB_RESEND;
		return;
	}
	if (ended_elsewhere(lkb, lost)) {
		if (lkb->wait_type == DLM_MSG_UNLOCK ||
		    (lkb->flags & LKB_OVERLAP_UNLOCK))
			end_unlocked(engine, lkb);
		else
			end_cancelled(engine, lkb);
		return;
	}
	if (!lost || (lkb->flags & LKB_RESEND))
		return;
	if (lkb->wait_type == DLM_MSG_REQUEST) {
		lkb->flags |= LKB_RESEND;
		return;
	}
	if (lkb->wait_type == DLM_MSG_UNLOCK ||
	    (lkb->flags & LKB_OVERLAP_UNLOCK))
		end_unlocked(engine, lkb);
	else if (lkb->wait_type == DLM_MSG_CONVERT)
		mark_resend(lkb);
	else
		lost_cancel(engine, lkb);
}

static void own_lock_moves(struct lkb_queue *queue)
{
	struct lkb *lkb;

	queue_for_each(lkb, queue)
	{
		if (lkb_is_mstcpy(lkb))
			continue;
		lkb->remid = 0;
		lkb->highbast = LKM_IV;
	}
}

/*
 * Copies that others have sent us in a recovery that was aborted are worth
 * something only if we are master after all.
 */
void rebuild_set_master(struct dlm_engine *engine, struct rsb *rsb,
			int32_t master)
{
	rsb->master = master;
	rsb->flags &= (uint8_t) ~(RES_REMASTER | RES_UNPROVED);
	rsb->flags |= RES_NEW_MASTER;
	TRACE(engine, "resource %08x: new master %d", rsb->hash, master);
	own_lock_moves(&rsb->granted);
	own_lock_moves(&rsb->convert);
	own_lock_moves(&rsb->waiting);
	if (master != engine->config.nodeid)
		drop_all_copies(engine, rsb, 0);
}

static void copy_fill(struct dlm_engine *engine, struct lkb *lkb,
		      const struct dlm_rcom_lock *in)
{
	lkb->exflags = in->exflags;
	lkb->flags = LKB_MSTCPY | (in->flags & LKB_WIRE_MASK);
	if (in->asts & DLM_WANTS_BAST)
		lkb->flags |= LKB_WANTS_BAST;
	lkb->pid = in->ownpid;
	lkb->grmode = in->grmode;
	lkb->rqmode = in->rqmode;
	lkb->highbast = LKM_IV;
	if (in->status == LKS_GRANTED && in->wait_type == DLM_MSG_CONVERT &&
	    mode_valid(in->rqmode))
		lkb->flags |= LKB_CONVERTING;
	else if (in->status == LKS_GRANTED)
		lkb->rqmode = LKM_IV;
	if (!(in->exflags & LKF_VALBLK) || !in->lvb_len)
		return;
	if (!lkb->lvb)
		lkb->lvb = lvb_alloc(engine);
	lkb->lvb->seq = in->lvbseq;
	memcpy(lkb->lvb->bytes, in->lvb,
	       UG_MIN((uint32_t)in->lvb_len, engine->config.lvblen));
}

/*
 * A LOCK has come. -EBADR: no such resource here; -EEXIST: it was here from an
 * earlier try, and has been brought up to date.
 */
int rebuild_take_lock(struct dlm_engine *engine, int32_t from,
		      const struct dlm_rcom_lock *in, uint32_t *remid)
{
	struct rsb *rsb = rsb_find(engine, in->name.bytes, in->name.len,
				   dlm_hash(in->name.bytes, in->name.len));
	struct lkb *lkb;
	int result = -EEXIST;

	if (!rsb || rsb->where != RSB_KEEP)
		return -EBADR;
	lkb = copies_find(engine, rsb, from, in->lkid);
	if (!lkb) {
		lkb = lkb_create(engine, rsb);
		lkb->flags = LKB_MSTCPY;
		lkb->nodeid = from;
		lkb->remid = in->lkid;
		copies_add(engine, lkb);
		result = 0;
	}
	copy_fill(engine, lkb, in);
	if (lkb->status != (unsigned)in->status)
		lkb_set_status(lkb, (enum dlm_lock_status)in->status);
	*remid = lkb->id;
	return result;
}

/* A conversion whose outcome its holder has not heard. */
bool rebuild_outcome_unknown(const struct lkb *lkb)
{
	return lkb->status == LKS_CONVERT || (lkb->flags & LKB_CONVERTING) ||
	       (lkb->status == LKS_GRANTED &&
		lkb->wait_type == DLM_MSG_CONVERT);
}

/* The lost master may have taken its mode away, and others have written. */
bool rebuild_mode_is_doubtful(const struct lkb *lkb)
{
	return rebuild_outcome_unknown(lkb) && (lkb->exflags & LKF_CONVDEADLK);
}

/* How many locks of a resource hold each mode. */
struct held {
	unsigned count[LKM_EX + 1];
};

static void held_count(struct held *held, const struct lkb_queue *queue)
{
	const struct lkb *lkb;

	queue_for_each(lkb, queue) held->count[lkb->grmode]++;
}

/* Is the mode in conflict with those of all others than lkb? */
static bool mode_conflicts(const struct held *held, const struct lkb *lkb,
			   int mode)
{
	for (int other = LKM_NL; other <= LKM_EX; other++) {
		unsigned ours = lkb->grmode == other;

		if (held->count[other] > ours && modes_conflict(other, mode))
			return true;
	}
	return false;
}

/* The modes the lost master can have changed this one to: LKM_IV ends them. */
static void possible_modes(const struct lkb *lkb, int modes[5])
{
	unsigned n = 0;

	if (mode_is_middle(lkb->grmode, lkb->rqmode))
		modes[n++] = lkb->rqmode;
	if (lkb->exflags & LKF_ALTPR)
		modes[n++] = LKM_PR;
	if (lkb->exflags & LKF_ALTCW)
		modes[n++] = LKM_CW;
	if (lkb->exflags & LKF_CONVDEADLK)
		modes[n++] = LKM_NL;
	modes[n] = LKM_IV;
}

static void repair_conversion(struct dlm_engine *engine, struct held *held,
			      struct lkb *lkb)
{
	int modes[5];

	if (!rebuild_outcome_unknown(lkb) ||
	    !mode_conflicts(held, lkb, lkb->grmode))
		return;
	possible_modes(lkb, modes);
	for (unsigned i = 0; modes[i] != LKM_IV; i++) {
		if (mode_conflicts(held, lkb, modes[i]))
			continue;
		TRACE(engine, "repair %08x %s to %s", lkb->id,
		      mode_name(lkb->grmode), mode_name(modes[i]));
		held->count[lkb->grmode]--;
		held->count[modes[i]]++;
		lkb->grmode = (int8_t)modes[i];
		if (modes[i] == LKM_NL)
			lkb->sbflags |= SBF_DEMOTED;
		return;
	}
}

static void repair_queue(struct dlm_engine *engine, struct held *held,
			 struct lkb_queue *queue)
{
	struct lkb *lkb;

	queue_for_each(lkb, queue) repair_conversion(engine, held, lkb);
}

static void repair_conversions(struct dlm_engine *engine, struct rsb *rsb)
{
	struct held held = { 0 };

	held_count(&held, &rsb->granted);
	held_count(&held, &rsb->convert);
	repair_queue(engine, &held, &rsb->granted);
	repair_queue(engine, &held, &rsb->convert);
}

static void end_repair(struct rsb *rsb)
{
	struct lkb *lkb;

	queue_for_each(lkb, &rsb->granted)
	{
		if (lkb->flags & LKB_CONVERTING)
			lkb->rqmode = LKM_IV;
		lkb->flags &= ~LKB_CONVERTING;
	}
}

/* All locks are here (spec 5.5 step 15). */
void rebuild_finish(struct dlm_engine *engine, struct rsb *rsb)
{
	if (!rsb_is_master(engine, rsb)) {
		rsb->flags &= (uint8_t) ~(RES_LVB_INVALID | RES_LVB_LOST |
					  RES_NEW_MASTER | RES_GRANT);
		return;
	}
	if (rsb->flags & RES_NEW_MASTER) {
		repair_conversions(engine, rsb);
		grant_order_conversions(rsb);
		if (rsb->convert.first || rsb->waiting.first)
			rsb->flags |= RES_GRANT;
	}
	lvb_recover(engine, rsb);
	end_repair(rsb);
	rsb->flags &= (uint8_t) ~(RES_NEW_MASTER | RES_LVB_LOST);
}

static void resend_request(struct dlm_engine *engine, struct lkb *lkb,
			   uint32_t overlap)
{
	if (!overlap) {
		request_go(engine, lkb);
		return;
	}
	cast_queue(engine, lkb,
		   overlap & LKB_OVERLAP_UNLOCK ? -DLM_EUNLOCK : -DLM_ECANCEL);
	lkb_free(engine, lkb);
}

/* Spec 5.9, second part: normal operation has begun again. */
void rebuild_resend(struct dlm_engine *engine, struct lkb *lkb)
{
	uint32_t overlap = lkb->flags & LKB_OVERLAP;
	unsigned type = lkb->wait_type;

	waiter_clear(engine, lkb);
	TRACE(engine, "resend %08x type %u overlap %x", lkb->id, type, overlap);
	if (type == DLM_MSG_LOOKUP || type == DLM_MSG_REQUEST) {
		resend_request(engine, lkb, overlap);
		return;
	}
	if (overlap & LKB_OVERLAP_UNLOCK) {
		force_unlock_any(engine, lkb);
		return;
	}
	if (type == DLM_MSG_CONVERT)
		convert_go(engine, lkb);
	if (type == DLM_MSG_CANCEL || overlap)
		cancel_any(engine, lkb);
}
