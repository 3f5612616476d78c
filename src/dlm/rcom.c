/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * rcom.c - recovery messages, in and out.
 *
 * A reply counts only if it echoes the number of this try (seq): one that was
 * asked for in a recovery since aborted says nothing about this one (docs/spec
 * /dlm.md 9.1 #5). A question is heard only when our own step is far enough to
 * answer it (5.4); whoever asks has passed the same barrier. Nor is a LOOKUP or
 * a LOCK heard once all are known to have sent theirs: a mode that comes with a
 * LOCK is not judged, since it is what the lost master had granted.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "dlm/engine.h"

static bool question_is_heard(const struct dlm_engine *engine,
			      enum dlm_rcom_type type)
{
	switch (type) {
	case DLM_RCOM_STATUS:
		return true;
	case DLM_RCOM_NAMES:
		return engine->status & RS_NODES;
	case DLM_RCOM_LOOKUP:
	case DLM_RCOM_LOCK:
		return (engine->status & RS_DIR) &&
		       !(engine->status & RS_LOCKS_ALL);
	default:
		return false;
	}
}

void rcom_ask(struct dlm_engine *engine, struct member *member,
	      enum asking what)
{
	enum dlm_rcom_type type =
		what == ASK_NAMES ? DLM_RCOM_NAMES : DLM_RCOM_STATUS;
	struct dlm_rcom *rc = send_rcom(engine, member->nodeid,
					member->incarnation, type, NULL);

	rc->id = ++engine->next_ask_id;
	if (what == ASK_NAMES)
		rc->name = member->last;
	else
		rc->need_slots = true;
	member->asking = what;
	member->ask_id = rc->id;
	member->ask_due_ns = engine->now_ns + DLM_ASK_AGAIN_NS;
}

static void name_of(struct dlm_name *name, const struct rsb *rsb)
{
	name->len = rsb->namelen;
	memcpy(name->bytes, rsb->name, rsb->namelen);
}

void rcom_send_lookup(struct dlm_engine *engine, const struct rsb *rsb,
		      int32_t dir, uint64_t id)
{
	struct dlm_rcom *rc = send_rcom(engine, dir, 0, DLM_RCOM_LOOKUP, NULL);

	rc->id = id;
	name_of(&rc->name, rsb);
}

void rcom_send_lock(struct dlm_engine *engine, struct lkb *lkb)
{
	struct dlm_rcom *rc =
		send_rcom(engine, lkb->rsb->master, 0, DLM_RCOM_LOCK, NULL);
	struct dlm_rcom_lock *out = &rc->lock;

	rc->id = lkb->id;
	name_of(&out->name, lkb->rsb);
	out->ownpid = lkb->pid;
	out->lkid = lkb->id;
	out->exflags = lkb->exflags;
	out->flags = lkb->flags & LKB_WIRE_MASK;
	out->rqmode = lkb->rqmode;
	out->grmode = lkb->grmode;
	out->status = (int8_t)lkb->status;
	out->asts = DLM_WANTS_CAST |
		    (lkb->flags & LKB_WANTS_BAST ? DLM_WANTS_BAST : 0);
	out->wait_type = lkb->wait_type;
	if (lkb->lvb) {
		out->lvbseq = lkb->lvb->seq;
		out->lvb_len = (uint16_t)engine->config.lvblen;
		memcpy(out->lvb, lkb->lvb->bytes, engine->config.lvblen);
	}
	lkb->flags |= LKB_REBUILD;
	engine->replies_due++;
}

/* Questions */

static int answer_status(struct dlm_engine *engine, const struct dlm_msg *msg,
			 uint64_t incarnation)
{
	bool assigned = engine->status & RS_NODES_ALL;
	struct dlm_slots *slots = NULL;
	struct dlm_rcom *rc;

	if (step_reserve(engine, 1))
		return -ENOMEM;
	if (msg->rc.need_slots && (assigned || engine->held_count)) {
		slots = malloc(sizeof(*slots));
		if (!slots)
			return -ENOMEM;
		slots_list(engine, assigned, slots);
	}
	rc = send_rcom(engine, msg->from, incarnation, DLM_RCOM_STATUS_REPLY,
		       &msg->rc);
	rc->result = (int32_t)engine->status;
	rc->slots = slots;
	rc->status.lvblen = engine->config.lvblen;
	rc->status.our_slot = engine->our_slot;
	rc->status.generation = engine->generation;
	return 0;
}

static int answer_names(struct dlm_engine *engine, const struct dlm_msg *msg)
{
	struct dlm_names *names;
	struct dlm_rcom *rc;

	if (step_reserve(engine, 1))
		return -ENOMEM;
	names = malloc(sizeof(*names));
	if (!names)
		return -ENOMEM;
	directory_fill_names(engine, msg->from, &msg->rc.name, names);
	rc = send_rcom(engine, msg->from, 0, DLM_RCOM_NAMES_REPLY, &msg->rc);
	rc->names = names;
	return 0;
}

/* -1: the asker takes us for the directory node, and we do not. */
static int answer_lookup(struct dlm_engine *engine, const struct dlm_msg *msg)
{
	const struct dlm_name *name = &msg->rc.name;
	uint32_t hash = dlm_hash(name->bytes, name->len);
	struct dlm_rcom *rc;
	int32_t master = -1;

	if (step_reserve(engine, 1))
		return -ENOMEM;
	if (directory_node(engine, hash) == engine->config.nodeid)
		master =
			directory_recover_lookup(engine, msg->from, name, hash);
	rc = send_rcom(engine, msg->from, 0, DLM_RCOM_LOOKUP_REPLY, &msg->rc);
	rc->result = master;
	return 0;
}

static int answer_lock(struct dlm_engine *engine, const struct dlm_msg *msg)
{
	const struct dlm_rcom_lock *in = &msg->rc.lock;
	struct dlm_rcom *rc;
	uint32_t remid = 0;
	int result;

	if (lkb_make_room(engine) || copies_make_room(engine) ||
	    step_reserve(engine, 1))
		return -ENOMEM;
	result = rebuild_take_lock(engine, msg->from, in, &remid);
	rc = send_rcom(engine, msg->from, 0, DLM_RCOM_LOCK_REPLY, &msg->rc);
	rc->lock = *in;
	rc->lock.lvb_len = 0;
	rc->lock.remid = remid;
	rc->lock.result = result;
	return 0;
}

/* Replies */

/* Each slot can be news. */
static int take_status(struct dlm_engine *engine, struct member *member,
		       const struct dlm_rcom *rc)
{
	if (member->asking != ASK_STATUS || member->ask_id != rc->id)
		return 0;
	if (step_reserve(engine, 1 + (rc->slots ? rc->slots->count : 0)))
		return -ENOMEM;
	recover_asked(engine, member, rc);
	return 0;
}

static int names_next(const struct dlm_names *names, uint32_t *pos,
		      const uint8_t **name, unsigned *len)
{
	if (names->len - *pos < 2 || names->bytes[*pos])
		return -EBADMSG;
	*len = names->bytes[*pos + 1];
	*name = names->bytes + *pos + 2;
	if (*len > DLM_NAME_MAX || names->len - *pos - 2 < *len)
		return -EBADMSG;
	*pos += 2 + *len;
	return 0;
}

static int names_check(const struct dlm_names *names, uint32_t *last_pos)
{
	uint32_t pos = 0;

	while (pos < names->len) {
		const uint8_t *name;
		unsigned len;

		*last_pos = pos;
		if (names_next(names, &pos, &name, &len))
			return -EBADMSG;
	}
	return names->len || names->last ? 0 : -EBADMSG;
}

/* Recording a name twice does no harm: after -ENOMEM all come again. */
static int take_names(struct dlm_engine *engine, struct member *member,
		      const struct dlm_rcom *rc)
{
	uint32_t last_pos = 0;
	const uint8_t *name;
	unsigned len;

	if (member->asking != ASK_NAMES || member->ask_id != rc->id)
		return 0;
	if (names_check(rc->names, &last_pos))
		return -EBADMSG;
	for (uint32_t pos = 0; pos < rc->names->len;) {
		if (names_next(rc->names, &pos, &name, &len))
			return -EBADMSG;
		if (directory_record(engine, member->nodeid, name, len))
			return -ENOMEM;
	}
	if (rc->names->len) {
		if (names_next(rc->names, &last_pos, &name, &len))
			return -EBADMSG;
		member->last.len = (uint8_t)len;
		memcpy(member->last.bytes, name, len);
	}
	recover_asked(engine, member, rc);
	return 0;
}

static int take_lookup(struct dlm_engine *engine, const struct dlm_msg *msg)
{
	uint64_t id = msg->rc.id;
	struct rsb *rsb;

	if (engine->state != REC_MASTERS || id == 0 ||
	    id > engine->asked_count || !engine->asked[id - 1])
		return 0;
	rsb = engine->asked[id - 1];
	if (directory_node(engine, rsb->hash) != msg->from ||
	    !member_find(engine, msg->rc.result))
		return -EBADMSG;
	engine->asked[id - 1] = NULL;
	engine->replies_due--;
	rebuild_set_master(engine, rsb, msg->rc.result);
	return 0;
}

/* -EBADR: the new master does not have the resource yet; tell it again. */
static int take_lock(struct dlm_engine *engine, const struct dlm_msg *msg)
{
	const struct dlm_rcom_lock *in = &msg->rc.lock;
	struct lkb *lkb = lkb_find(engine, in->lkid);

	if (!lkb || !(lkb->flags & LKB_REBUILD) || !engine->replies_due ||
	    lkb->rsb->master != msg->from)
		return 0;
	if (step_reserve(engine, 1))
		return -ENOMEM;
	lkb->flags &= ~LKB_REBUILD;
	engine->replies_due--;
	if (in->result == -EBADR)
		rcom_send_lock(engine, lkb);
	else
		lkb->remid = in->remid;
	return 0;
}

static int receive_reply(struct dlm_engine *engine, struct member *member,
			 const struct dlm_msg *msg)
{
	const struct dlm_rcom *rc = &msg->rc;

	if (rc->seq_reply != engine->seq || engine->state == REC_STOPPED)
		return 0;
	switch (rc->type) {
	case DLM_RCOM_STATUS_REPLY:
		return take_status(engine, member, rc);
	case DLM_RCOM_NAMES_REPLY:
		return take_names(engine, member, rc);
	case DLM_RCOM_LOOKUP_REPLY:
		return take_lookup(engine, msg);
	case DLM_RCOM_LOCK_REPLY:
		return take_lock(engine, msg);
	default:
		return 0;
	}
}

int rcom_receive(struct dlm_engine *engine, const struct dlm_msg *msg,
		 uint64_t incarnation)
{
	struct member *member = member_find(engine, msg->from);
	bool current = member && member->incarnation == incarnation;

	TRACE(engine, "rcom %d of %d result %d", msg->rc.type, msg->from,
	      msg->rc.result);
	if (msg->rc.type == DLM_RCOM_STATUS)
		return answer_status(engine, msg, incarnation);
	if (!current)
		return 0;
	if (msg->rc.type > DLM_RCOM_LOCK)
		return receive_reply(engine, member, msg);
	if (!question_is_heard(engine, msg->rc.type))
		return 0;
	switch (msg->rc.type) {
	case DLM_RCOM_NAMES:
		return answer_names(engine, msg);
	case DLM_RCOM_LOOKUP:
		return answer_lookup(engine, msg);
	default:
		return answer_lock(engine, msg);
	}
}
