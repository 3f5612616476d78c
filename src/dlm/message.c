/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * message.c - messages in: who may say what, and the queue for later.
 *
 * A message names both ends of the lock by id and both must fit, because ids
 * are used again (docs/spec/dlm.md 1.1, 3.3). What fails is dropped, or refused
 * with -EBADMSG if no correct member could have sent it. While the lockspace
 * is stopped messages are saved with the sender's incarnation: after the
 * recovery only those of members that are still the same ones count.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "dlm/engine.h"

static bool mode_or_none(int mode)
{
	return mode == LKM_IV || mode_valid(mode);
}

/* Rule 1 of granting ignores everybody else: only NL may use it. */
static bool expedite_is_legal(const struct dlm_lockmsg *m)
{
	return !(m->exflags & LKF_EXPEDITE) ||
	       (m->type != DLM_MSG_CONVERT && m->rqmode == LKM_NL);
}

static int lockmsg_check(const struct dlm_lockmsg *m)
{
	if (m->type < DLM_MSG_REQUEST || m->type > DLM_MSG_PURGE ||
	    m->extra_len > DLM_NAME_MAX || !mode_or_none(m->grmode) ||
	    !mode_or_none(m->rqmode))
		return -EBADMSG;
	switch (m->type) {
	case DLM_MSG_REQUEST:
	case DLM_MSG_LOOKUP:
	case DLM_MSG_CONVERT:
		return mode_valid(m->rqmode) && expedite_is_legal(m) ? 0
								     : -EBADMSG;
	case DLM_MSG_BAST:
		return mode_valid(m->bastmode) ? 0 : -EBADMSG;
	case DLM_MSG_REQUEST_REPLY:
		return m->result <= 0 &&
				       (m->result != 0 || mode_valid(m->grmode))
			       ? 0
			       : -EBADMSG;
	case DLM_MSG_LOOKUP_REPLY:
		return m->result || m->nodeid > 0 ? 0 : -EBADMSG;
	default:
		return 0;
	}
}

static bool rcom_lock_is_legal(const struct dlm_rcom_lock *lock)
{
	return lock->name.len <= DLM_NAME_MAX && lock->lvb_len <= DLM_LVB_MAX &&
	       mode_or_none(lock->grmode) && mode_or_none(lock->rqmode) &&
	       lock->status >= LKS_WAITING && lock->status <= LKS_CONVERT &&
	       !(lock->exflags & LKF_EXPEDITE && lock->status != LKS_GRANTED) &&
	       (lock->status == LKS_WAITING || mode_valid(lock->grmode)) &&
	       (lock->status == LKS_GRANTED || mode_valid(lock->rqmode));
}

static int rcom_check(const struct dlm_rcom *rc)
{
	switch (rc->type) {
	case DLM_RCOM_NAMES:
	case DLM_RCOM_LOOKUP:
		return rc->name.len <= DLM_NAME_MAX ? 0 : -EBADMSG;
	case DLM_RCOM_LOCK:
		return rcom_lock_is_legal(&rc->lock) ? 0 : -EBADMSG;
	case DLM_RCOM_NAMES_REPLY:
		return rc->names && rc->names->len <= DLM_NAMES_BYTES
			       ? 0
			       : -EBADMSG;
	case DLM_RCOM_STATUS_REPLY:
		return !rc->slots || rc->slots->count <= DLM_SLOTS_MAX
			       ? 0
			       : -EBADMSG;
	case DLM_RCOM_STATUS:
	case DLM_RCOM_LOOKUP_REPLY:
	case DLM_RCOM_LOCK_REPLY:
		return 0;
	}
	return -EBADMSG;
}

int message_check(const struct dlm_engine *engine, const struct dlm_msg *msg)
{
	if (msg->from <= 0 || msg->from == engine->config.nodeid ||
	    msg->to != engine->config.nodeid)
		return -EBADMSG;
	switch (msg->kind) {
	case DLM_MSG:
		return lockmsg_check(&msg->m);
	case DLM_RCOM:
		return rcom_check(&msg->rc);
	}
	return -EBADMSG;
}

static struct lkb *master_copy(struct dlm_engine *engine, int32_t from,
			       const struct dlm_lockmsg *m)
{
	struct lkb *lkb = lkb_find(engine, m->remid);

	if (!lkb || !lkb_is_mstcpy(lkb) || lkb->nodeid != from ||
	    lkb->remid != m->lkid || !rsb_is_master(engine, lkb->rsb))
		return NULL;
	return lkb;
}

/*
 * Nobody else answers for what we master ourselves, unless it sends a request
 * back; and a master is a member, or no recovery would ever take it away.
 */
static bool answers_request(const struct dlm_engine *engine, int32_t from,
			    const struct lkb *lkb, const struct dlm_lockmsg *m)
{
	bool sent_back = lkb->wait_type == DLM_MSG_REQUEST && m->result &&
			 m->result != -EINPROGRESS;

	if (lkb->wait_nodeid != from)
		return false;
	if (m->type == DLM_MSG_LOOKUP_REPLY)
		return lkb->wait_type == DLM_MSG_LOOKUP &&
		       (m->result || member_find(engine, m->nodeid));
	return sent_back || !rsb_is_master(engine, lkb->rsb);
}

static struct lkb *process_copy(struct dlm_engine *engine, int32_t from,
				const struct dlm_lockmsg *m)
{
	uint32_t id = m->type == DLM_MSG_LOOKUP_REPLY ? m->lkid : m->remid;
	struct lkb *lkb = lkb_find(engine, id);

	if (!lkb || lkb_is_mstcpy(lkb))
		return NULL;
	if (m->type == DLM_MSG_LOOKUP_REPLY || m->type == DLM_MSG_REQUEST_REPLY)
		return answers_request(engine, from, lkb, m) ? lkb : NULL;
	if (lkb->rsb->master != from || (m->lkid && lkb->remid != m->lkid))
		return NULL;
	return lkb;
}

/* Spec 3.3, 7: what a request says about the lock replaces what we knew. */
static void take_request(struct dlm_engine *engine, struct lkb *lkb,
			 const struct dlm_lockmsg *m)
{
	lkb->exflags = m->exflags;
	lkb->sbflags = m->sbflags;
	lkb->flags &= ~(uint32_t)LKB_WIRE_MASK;
	lkb->flags |= m->flags & LKB_WIRE_MASK;
	if (m->asts & DLM_WANTS_BAST)
		lkb->flags |= LKB_WANTS_BAST;
	lvb_take_message(engine, lkb, m);
}

void message_receive_request(struct dlm_engine *engine, int32_t from,
			     const struct dlm_lockmsg *m)
{
	uint32_t hash = dlm_hash(m->extra, m->extra_len);
	struct rsb *rsb;
	struct lkb *lkb;
	int result;

	result = master_for_request(engine, from, m->extra, m->extra_len, hash,
				    &rsb);
	if (result) {
		send_stub(engine, from, DLM_MSG_REQUEST_REPLY, m->lkid, 0,
			  result);
		return;
	}
	lkb = lkb_create(engine, rsb);
	lkb->flags = LKB_MSTCPY;
	lkb->nodeid = from;
	lkb->remid = m->lkid;
	lkb->pid = m->pid;
	lkb->rqmode = (int8_t)m->rqmode;
	take_request(engine, lkb, m);
	result = master_request(engine, lkb);
	send_lkb(engine, lkb, from, DLM_MSG_REQUEST_REPLY, result);
	master_request_effects(engine, lkb, result);
	if (result == -EAGAIN)
		lkb_free(engine, lkb);
}

static void receive_convert(struct dlm_engine *engine, int32_t from,
			    const struct dlm_lockmsg *m)
{
	struct lkb *lkb = master_copy(engine, from, m);
	bool down;
	int result;

	if (!lkb || lkb->status != LKS_GRANTED) {
		send_stub(engine, from, DLM_MSG_CONVERT_REPLY, m->lkid, 0,
			  lkb ? -EBUSY : -ENOENT);
		return;
	}
	take_request(engine, lkb, m);
	lkb->rqmode = (int8_t)m->rqmode;
	down = mode_is_down(lkb->grmode, lkb->rqmode);
	result = master_convert(engine, lkb);
	if (!down || result)
		send_lkb(engine, lkb, from, DLM_MSG_CONVERT_REPLY, result);
	master_convert_effects(engine, lkb, result);
}

static void receive_unlock(struct dlm_engine *engine, int32_t from,
			   const struct dlm_lockmsg *m)
{
	struct lkb *lkb = master_copy(engine, from, m);
	struct rsb *rsb;
	int result;

	if (!lkb) {
		send_stub(engine, from, DLM_MSG_UNLOCK_REPLY, m->lkid, 0,
			  -ENOENT);
		return;
	}
	rsb = lkb->rsb;
	take_request(engine, lkb, m);
	result = master_unlock(engine, lkb);
	send_lkb(engine, lkb, from, DLM_MSG_UNLOCK_REPLY, result);
	lkb_free(engine, lkb);
	if (rsb->where == RSB_KEEP)
		grant_pass(engine, rsb, false);
}

static void receive_cancel(struct dlm_engine *engine, int32_t from,
			   const struct dlm_lockmsg *m)
{
	struct lkb *lkb = master_copy(engine, from, m);
	struct rsb *rsb;
	int result;

	if (!lkb) {
		send_stub(engine, from, DLM_MSG_CANCEL_REPLY, m->lkid, 0, 0);
		return;
	}
	rsb = lkb->rsb;
	result = master_cancel(lkb);
	send_lkb(engine, lkb, from, DLM_MSG_CANCEL_REPLY, result);
	if (result == 0)
		return;
	if (lkb->status == LKS_NONE)
		lkb_free(engine, lkb);
	if (rsb->where == RSB_KEEP)
		grant_pass(engine, rsb, false);
}

/* GRANTs and BASTs for locks that are gone are normal (spec 3.3). */
static void receive_answer(struct dlm_engine *engine, int32_t from,
			   const struct dlm_lockmsg *m)
{
	struct lkb *lkb = process_copy(engine, from, m);

	if (!lkb) {
		TRACE(engine, "msg %d of %d: no lock", m->type, from);
		return;
	}
	switch (m->type) {
	case DLM_MSG_REQUEST_REPLY:
		reply_request(engine, lkb, from, m);
		break;
	case DLM_MSG_CONVERT_REPLY:
		reply_convert(engine, lkb, m);
		break;
	case DLM_MSG_UNLOCK_REPLY:
		reply_unlock(engine, lkb, m);
		break;
	case DLM_MSG_CANCEL_REPLY:
		reply_cancel(engine, lkb, m);
		break;
	case DLM_MSG_LOOKUP_REPLY:
		reply_lookup(engine, lkb, m);
		break;
	case DLM_MSG_GRANT:
		reply_grant(engine, lkb, m);
		break;
	default:
		bast_queue(engine, lkb, m->bastmode);
		break;
	}
}

/* The resource that the message is about, if it is here. */
static struct rsb *rsb_named(struct dlm_engine *engine,
			     const struct dlm_lockmsg *m)
{
	struct lkb *lkb;

	switch (m->type) {
	case DLM_MSG_REQUEST:
	case DLM_MSG_LOOKUP:
	case DLM_MSG_REMOVE:
		return rsb_find(engine, m->extra, m->extra_len,
				dlm_hash(m->extra, m->extra_len));
	case DLM_MSG_LOOKUP_REPLY:
		lkb = lkb_find(engine, m->lkid);
		break;
	default:
		lkb = lkb_find(engine, m->remid);
		break;
	}
	return lkb ? lkb->rsb : NULL;
}

int message_handle(struct dlm_engine *engine, const struct dlm_msg *msg)
{
	const struct dlm_lockmsg *m = &msg->m;
	int error = lkb_make_room(engine);

	if (!error)
		error = step_reserve_rsb(engine, rsb_named(engine, m));
	if (error)
		return error;
	TRACE(engine, "msg %d of %d lkid %08x remid %08x result %d", m->type,
	      msg->from, m->lkid, m->remid, m->result);
	switch (m->type) {
	case DLM_MSG_REQUEST:
		message_receive_request(engine, msg->from, m);
		return 0;
	case DLM_MSG_CONVERT:
		receive_convert(engine, msg->from, m);
		return 0;
	case DLM_MSG_UNLOCK:
		receive_unlock(engine, msg->from, m);
		return 0;
	case DLM_MSG_CANCEL:
		receive_cancel(engine, msg->from, m);
		return 0;
	case DLM_MSG_LOOKUP:
		directory_receive_lookup(engine, msg->from, m);
		return 0;
	case DLM_MSG_REMOVE:
		directory_receive_remove(engine, msg->from, m);
		return 0;
	case DLM_MSG_PURGE:
		return orphans_release(engine, m->pid);
	default:
		receive_answer(engine, msg->from, m);
		return 0;
	}
}

static bool is_current(const struct dlm_engine *engine, int32_t nodeid,
		       uint64_t incarnation)
{
	const struct member *member = member_find(engine, nodeid);

	return member && member->incarnation == incarnation;
}

static int message_save(struct dlm_engine *engine, const struct dlm_msg *msg,
			uint64_t incarnation)
{
	struct saved_msg *saved;

	if (engine->saved_count >= DLM_QUEUE_MAX)
		return -ENOMEM;
	saved = malloc(sizeof(*saved));
	if (!saved)
		return -ENOMEM;
	saved->incarnation = incarnation;
	saved->msg = *msg;
	cds_list_add_tail(&saved->list, &engine->saved);
	engine->saved_count++;
	return 0;
}

/*
 * Before the first recovery is under way (generation 0) nothing can be meant
 * for this incarnation of us.
 */
int message_receive(struct dlm_engine *engine, const struct dlm_msg *msg,
		    uint64_t incarnation)
{
	int error = message_check(engine, msg);

	if (error)
		return error;
	if (msg->kind == DLM_RCOM)
		return rcom_receive(engine, msg, incarnation);
	if (engine->state < REC_RESEND) {
		if (engine->generation == 0)
			return 0;
		return message_save(engine, msg, incarnation);
	}
	if (!is_current(engine, msg->from, incarnation)) {
		TRACE(engine, "msg %d of %d: not a member", msg->m.type,
		      msg->from);
		return 0;
	}
	return message_handle(engine, msg);
}

/*
 * Whoever goes on in the new membership has seen that we are done: what is
 * saved up to then was sent before the start.
 */
void saved_mark_old(struct dlm_engine *engine)
{
	engine->saved_old = engine->saved_count;
}

static void saved_drop(struct dlm_engine *engine, struct saved_msg *saved)
{
	cds_list_del(&saved->list);
	engine->saved_count--;
	free(saved);
}

/* The oldest saved message. False: there is none, or *error. */
bool saved_next(struct dlm_engine *engine, int *error)
{
	struct saved_msg *saved;

	*error = 0;
	if (cds_list_empty(&engine->saved))
		return false;
	saved = cds_list_first_entry(&engine->saved, struct saved_msg, list);
	engine->old_message = engine->saved_old > 0;
	if (is_current(engine, saved->msg.from, saved->incarnation))
		*error = message_handle(engine, &saved->msg);
	engine->old_message = false;
	if (*error)
		return false;
	engine->saved_old -= engine->saved_old > 0;
	saved_drop(engine, saved);
	return true;
}

/* The directory has been rebuilt: what was said to the old one is void. */
static bool directory_talk(enum dlm_msg_type type)
{
	return type == DLM_MSG_LOOKUP || type == DLM_MSG_LOOKUP_REPLY ||
	       type == DLM_MSG_REMOVE;
}

void saved_purge(struct dlm_engine *engine)
{
	struct saved_msg *saved, *next;

	cds_list_for_each_entry_safe (saved, next, &engine->saved, list) {
		if (directory_talk(saved->msg.m.type) ||
		    !is_current(engine, saved->msg.from, saved->incarnation))
			saved_drop(engine, saved);
	}
}

void saved_free_all(struct dlm_engine *engine)
{
	struct saved_msg *saved, *next;

	cds_list_for_each_entry_safe (saved, next, &engine->saved, list)
		saved_drop(engine, saved);
}
