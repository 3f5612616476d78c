/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * reply.c - what the master answers, at the holder of a lock.
 *
 * The master's word on the mode counts (m_grmode): a process copy that kept
 * its own idea after a demotion or an alternate grant would differ from its
 * twin (docs/spec/dlm.md 9.1 #2, 1.10). Source: 1.14, 3.5 - 3.7.
 */
#include <errno.h>

#include "dlm/engine.h"

static void adopt_mode(struct lkb *lkb, const struct dlm_lockmsg *m)
{
	if (mode_valid(m->grmode) && lkb->grmode != LKM_IV)
		lkb->grmode = (int8_t)m->grmode;
}

static void granted(struct dlm_engine *engine, struct lkb *lkb,
		    const struct dlm_lockmsg *m)
{
	int to = mode_valid(m->grmode) ? m->grmode : lkb->rqmode;
	int from = lkb->grmode;

	if ((m->sbflags & SBF_DEMOTED) && from != LKM_IV)
		from = LKM_NL;
	lkb->sbflags = m->sbflags;
	lvb_on_reply(engine, lkb, m, from, to);
	lkb->grmode = (int8_t)to;
	lkb->rqmode = LKM_IV;
	lkb_set_status(lkb, LKS_GRANTED);
	cast_queue(engine, lkb, 0);
}

/* The old mode stays, whatever it was at the master. */
static void conversion_failed(struct dlm_engine *engine, struct lkb *lkb,
			      const struct dlm_lockmsg *m, int status)
{
	adopt_mode(lkb, m);
	lkb->sbflags = m->sbflags;
	lkb->rqmode = LKM_IV;
	if (lkb->status != LKS_GRANTED)
		lkb_set_status(lkb, LKS_GRANTED);
	cast_queue(engine, lkb, status);
}

/* The request is known to the master now: what was asked meanwhile follows. */
static void request_overlap(struct dlm_engine *engine, struct lkb *lkb,
			    int result)
{
	uint32_t overlap = lkb->flags & LKB_OVERLAP;

	lkb->flags &= ~LKB_OVERLAP;
	/* nobody has had this lock: it has nothing to write */
	if (overlap & LKB_OVERLAP_UNLOCK) {
		unlock_writes_nothing(lkb);
		unlock_go(engine, lkb);
	} else if (overlap && result == -EINPROGRESS) {
		cancel_go(engine, lkb);
	}
}

/*
 * Who has our lock is the master, whatever we heard since we asked. Of two
 * requests under way to a master that has just forgotten the resource, the
 * first comes back, and the directory is asked; it may name another. By the
 * time the second arrives, that one may have forgotten as well, and the old one
 * be the master again.
 */
static void request_accepted(struct dlm_engine *engine, struct lkb *lkb,
			     int32_t from, const struct dlm_lockmsg *m)
{
	struct rsb *rsb = lkb->rsb;

	if (!rsb_is_master(engine, rsb))
		rsb->master = from;
	lkb->remid = m->lkid;
	rsb->flags &= (uint8_t)~RES_UNPROVED;
	if (m->result == 0) {
		granted(engine, lkb, m);
	} else {
		lkb->sbflags = m->sbflags;
		lkb_set_status(lkb, LKS_WAITING);
	}
	if (rsb->first_lkid == lkb->id)
		master_confirm(engine, rsb, m->result);
	request_overlap(engine, lkb, m->result);
}

/*
 * Whom we took for the master is not. The directory knows; if we are the
 * directory node, or have become master meanwhile, we know ourselves.
 */
static void request_misdirected(struct dlm_engine *engine, struct lkb *lkb,
				int32_t from)
{
	struct rsb *rsb = lkb->rsb;
	bool in_use =
		rsb->granted.first || rsb->convert.first || rsb->waiting.first;

	if (rsb->master == from && !in_use &&
	    directory_node(engine, rsb->hash) != engine->config.nodeid)
		rsb->master = 0;
	if (lkb->flags & LKB_OVERLAP) {
		cast_cancelled(engine, lkb);
		lkb_free(engine, lkb);
		return;
	}
	if (!rsb->first_lkid)
		rsb->first_lkid = lkb->id;
	request_go(engine, lkb);
}

void reply_request(struct dlm_engine *engine, struct lkb *lkb, int32_t from,
		   const struct dlm_lockmsg *m)
{
	bool from_lookup = lkb->wait_type == DLM_MSG_LOOKUP;

	if (!waiter_reply(engine, lkb, DLM_MSG_REQUEST_REPLY, m->result))
		return;
	if (from_lookup)
		lkb->rsb->master = from;
	switch (m->result) {
	case 0:
	case -EINPROGRESS:
		request_accepted(engine, lkb, from, m);
		break;
	case -EBADR:
	case -ENOTBLK:
		request_misdirected(engine, lkb, from);
		break;
	default:
		cast_queue(engine, lkb, m->result);
		lkb_free(engine, lkb);
		break;
	}
}

/*
 * The directory has named the master. A request that has been given up in the
 * meantime is never sent.
 */
void reply_lookup(struct dlm_engine *engine, struct lkb *lkb,
		  const struct dlm_lockmsg *m)
{
	struct rsb *rsb = lkb->rsb;

	if (!waiter_reply(engine, lkb, DLM_MSG_LOOKUP_REPLY, m->result))
		return;
	if (m->result == 0 && !rsb->master)
		rsb->master = m->nodeid;
	if (lkb->flags & LKB_OVERLAP) {
		cast_cancelled(engine, lkb);
		lkb_free(engine, lkb);
		return;
	}
	request_go(engine, lkb);
}

void reply_convert(struct dlm_engine *engine, struct lkb *lkb,
		   const struct dlm_lockmsg *m)
{
	if (!waiter_reply(engine, lkb, DLM_MSG_CONVERT_REPLY, m->result))
		return;
	switch (m->result) {
	case 0:
		granted(engine, lkb, m);
		break;
	case -EINPROGRESS:
		adopt_mode(lkb, m);
		lkb->sbflags = m->sbflags;
		lkb_set_status(lkb, LKS_CONVERT);
		break;
	default:
		conversion_failed(engine, lkb, m, m->result);
		break;
	}
}

void reply_unlock(struct dlm_engine *engine, struct lkb *lkb,
		  const struct dlm_lockmsg *m)
{
	if (!waiter_reply(engine, lkb, DLM_MSG_UNLOCK_REPLY, m->result))
		return;
	cast_queue(engine, lkb, -DLM_EUNLOCK);
	lkb_free(engine, lkb);
}

void reply_cancel(struct dlm_engine *engine, struct lkb *lkb,
		  const struct dlm_lockmsg *m)
{
	if (!waiter_reply(engine, lkb, DLM_MSG_CANCEL_REPLY, m->result) ||
	    m->result != -DLM_ECANCEL)
		return;
	switch (lkb->status) {
	case LKS_CONVERT:
		conversion_failed(engine, lkb, m, -DLM_ECANCEL);
		break;
	case LKS_WAITING:
		cast_queue(engine, lkb, -DLM_ECANCEL);
		lkb_free(engine, lkb);
		break;
	default:
		break;
	}
}

/* One that arrives when nothing is asked for has lost a race with an unlock. */
void reply_grant(struct dlm_engine *engine, struct lkb *lkb,
		 const struct dlm_lockmsg *m)
{
	if (lkb->status == LKS_WAITING || lkb->status == LKS_CONVERT)
		granted(engine, lkb, m);
}
