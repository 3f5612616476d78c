/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * send.c - messages out, and the list of those that wait for an answer.
 *
 *   holder                                   master
 *     | REQUEST / CONVERT up / UNLOCK / CANCEL |
 *     |--------------------------------------->|
 *     |<---------------------------------------| reply, always first
 *     |<---------------------------------------| GRANT, BAST: later
 *     | CONVERT down                           |
 *     |--------------------------------------->| no reply: it cannot fail
 *
 * A lock has one main operation in flight (wait_type), and over it one cancel
 * and one unlock may lie (OVERLAP flags); wait_count is the replies due.
 * Source: docs/spec/dlm.md 1.14, 3.1, 3.8.
 */
#include <errno.h>
#include <string.h>

#include "dlm/engine.h"

static struct dlm_msg *msg_new(struct dlm_engine *engine, int32_t to)
{
	struct dlm_msg *msg = &update_add(engine, DLM_UP_SEND)->msg;
	const struct member *member = member_find(engine, to);

	memset(msg, 0, sizeof(*msg));
	msg->from = engine->config.nodeid;
	msg->to = to;
	msg->to_incarnation = member ? member->incarnation : 0;
	return msg;
}

static struct dlm_lockmsg *lockmsg_new(struct dlm_engine *engine, int32_t to,
				       enum dlm_msg_type type)
{
	struct dlm_msg *msg = msg_new(engine, to);

	msg->kind = DLM_MSG;
	msg->m.type = type;
	msg->m.grmode = LKM_IV;
	msg->m.rqmode = LKM_IV;
	TRACE(engine, "send msg %d to %d", type, to);
	return &msg->m;
}

static void fill_lkb(struct dlm_lockmsg *m, const struct lkb *lkb)
{
	m->nodeid = lkb_is_mstcpy(lkb) ? lkb->nodeid : lkb->rsb->master;
	m->pid = lkb->pid;
	m->lkid = lkb->id;
	m->remid = lkb->remid;
	m->exflags = lkb->exflags;
	m->sbflags = lkb->sbflags;
	m->flags = lkb->flags & LKB_WIRE_MASK;
	m->lvbseq = lkb->lvb ? lkb->lvb->seq : 0;
	m->hash = lkb->rsb->hash;
	m->status = lkb->status;
	m->grmode = lkb->grmode;
	m->rqmode = lkb->rqmode;
	m->asts = DLM_WANTS_CAST |
		  (lkb->flags & LKB_WANTS_BAST ? DLM_WANTS_BAST : 0);
}

static void fill_name(struct dlm_lockmsg *m, const struct rsb *rsb)
{
	m->hash = rsb->hash;
	m->extra_len = rsb->namelen;
	memcpy(m->extra, rsb->name, rsb->namelen);
}

/* Spec 3.1: these carry the value block if the lock has a buffer. */
static bool carries_lvb(enum dlm_msg_type type)
{
	return type == DLM_MSG_CONVERT || type == DLM_MSG_UNLOCK ||
	       type == DLM_MSG_REQUEST_REPLY || type == DLM_MSG_CONVERT_REPLY ||
	       type == DLM_MSG_GRANT;
}

void send_lkb(struct dlm_engine *engine, struct lkb *lkb, int32_t to,
	      enum dlm_msg_type type, int result)
{
	struct dlm_lockmsg *m = lockmsg_new(engine, to, type);

	fill_lkb(m, lkb);
	m->result = result;
	if (type == DLM_MSG_REQUEST || type == DLM_MSG_LOOKUP) {
		m->remid = 0;
		fill_name(m, lkb->rsb);
		return;
	}
	if (!carries_lvb(type) || !lkb->lvb)
		return;
	m->extra_len = engine->config.lvblen;
	if (lkb->exflags & LKF_VALBLK)
		memcpy(m->extra, lkb->lvb->bytes, engine->config.lvblen);
}

void send_bast(struct dlm_engine *engine, struct lkb *lkb, int mode)
{
	struct dlm_lockmsg *m = lockmsg_new(engine, lkb->nodeid, DLM_MSG_BAST);

	fill_lkb(m, lkb);
	m->bastmode = mode;
}

void send_name(struct dlm_engine *engine, const struct rsb *rsb, int32_t to,
	       enum dlm_msg_type type)
{
	fill_name(lockmsg_new(engine, to, type), rsb);
}

/* An answer about a lock that is not here, or to a LOOKUP. */
void send_stub(struct dlm_engine *engine, int32_t to, enum dlm_msg_type type,
	       uint32_t their_lkid, int32_t nodeid, int result)
{
	struct dlm_lockmsg *m = lockmsg_new(engine, to, type);

	m->nodeid = nodeid;
	m->result = result;
	if (type == DLM_MSG_LOOKUP_REPLY)
		m->lkid = their_lkid;
	else
		m->remid = their_lkid;
}

void send_purge(struct dlm_engine *engine, int32_t to, uint32_t pid)
{
	struct dlm_lockmsg *m = lockmsg_new(engine, to, DLM_MSG_PURGE);

	m->nodeid = to;
	m->pid = pid;
}

struct dlm_rcom *send_rcom(struct dlm_engine *engine, int32_t to,
			   uint64_t to_incarnation, enum dlm_rcom_type type,
			   const struct dlm_rcom *question)
{
	struct dlm_msg *msg = msg_new(engine, to);

	msg->kind = DLM_RCOM;
	if (to_incarnation)
		msg->to_incarnation = to_incarnation;
	msg->rc.type = type;
	msg->rc.seq = engine->seq;
	if (question) {
		msg->rc.id = question->id;
		msg->rc.seq_reply = question->seq;
	}
	TRACE(engine, "send rcom %d to %d", type, to);
	return &msg->rc;
}

void waiter_add(struct dlm_engine *engine, struct lkb *lkb,
		enum dlm_msg_type type, int32_t to)
{
	ug_assert(lkb->wait_count < 3); /* main, cancel, unlock */
	if (lkb->wait_count == 0) {
		cds_list_add(&lkb->wait, &engine->waiters);
		engine->in_flight++;
		lkb_queue_in_flight(lkb);
	}
	lkb->wait_count++;
	lkb->wait_nodeid = to;
	if (!lkb->wait_type)
		lkb->wait_type = (uint8_t)type;
	else if (type == DLM_MSG_UNLOCK)
		lkb->flags |= LKB_OVERLAP_UNLOCK;
	else
		lkb->flags |= LKB_OVERLAP_CANCEL;
}

/* Nothing is in flight any more, whatever was. */
void waiter_clear(struct dlm_engine *engine, struct lkb *lkb)
{
	if (lkb->wait_count) {
		cds_list_del(&lkb->wait);
		engine->in_flight--;
	}
	lkb->wait_count = 0;
	lkb->wait_type = 0;
	lkb->flags &= ~(LKB_RESEND | LKB_OVERLAP);
}

static void waiter_drop(struct dlm_engine *engine, struct lkb *lkb)
{
	ug_assert(lkb->wait_count > 0);
	lkb->flags &= ~LKB_RESEND;
	if (--lkb->wait_count > 0)
		return;
	cds_list_del(&lkb->wait);
	engine->in_flight--;
}

static bool main_matches(const struct lkb *lkb, enum dlm_msg_type reply)
{
	switch (lkb->wait_type) {
	case DLM_MSG_REQUEST:
		return reply == DLM_MSG_REQUEST_REPLY;
	case DLM_MSG_LOOKUP:
		return reply == DLM_MSG_LOOKUP_REPLY ||
		       reply == DLM_MSG_REQUEST_REPLY;
	case DLM_MSG_CONVERT:
		return reply == DLM_MSG_CONVERT_REPLY;
	case DLM_MSG_UNLOCK:
		return reply == DLM_MSG_UNLOCK_REPLY;
	case DLM_MSG_CANCEL:
		return reply == DLM_MSG_CANCEL_REPLY;
	default:
		return false;
	}
}

/*
 * A conversion has ended while a cancel for it is on its way: that cancel can
 * only find a granted lock, and the user may go on at once. Its reply is still
 * to come. Replies keep their order: it comes before that of any operation that
 * is begun now, and none is taken but for the main one while that is in flight.
 */
static void forget_cancel(struct dlm_engine *engine, struct lkb *lkb)
{
	lkb->flags &= ~LKB_OVERLAP_CANCEL;
	waiter_drop(engine, lkb);
}

/*
 * Account a reply. False: nothing waits for it, ignore it. Any reply ends the
 * need to repeat the operation after recovery (spec 9.1 #7).
 */
bool waiter_reply(struct dlm_engine *engine, struct lkb *lkb,
		  enum dlm_msg_type reply, int result)
{
	if (main_matches(lkb, reply)) {
		lkb->wait_type = 0;
		if (reply == DLM_MSG_CONVERT_REPLY && result != -EINPROGRESS &&
		    (lkb->flags & LKB_OVERLAP_CANCEL))
			forget_cancel(engine, lkb);
		waiter_drop(engine, lkb);
		return true;
	}
	if (lkb->wait_type && lkb->wait_type != DLM_MSG_CANCEL)
		return false;
	if (reply == DLM_MSG_UNLOCK_REPLY && (lkb->flags & LKB_OVERLAP_UNLOCK))
		lkb->flags &= ~LKB_OVERLAP_UNLOCK;
	else if (reply == DLM_MSG_CANCEL_REPLY &&
		 (lkb->flags & LKB_OVERLAP_CANCEL))
		lkb->flags &= ~LKB_OVERLAP_CANCEL;
	else
		return false;
	waiter_drop(engine, lkb);
	return true;
}
