/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * fuzz_engine.c - the lock engine against members that say what they like.
 *
 * Input: a byte of choices, then a script. An operation is a byte and what it
 * reads after it: a message from another member, a call of a process here, a
 * change of membership, time. Messages go through the codec in both
 * directions: what it refuses the engine never sees, and what the engine sends
 * it must be able to send. Ids are taken from those that have been seen, so
 * that lies hit something; questions can be answered as an honest member would.
 *
 * After each step the rules of the engine's structures hold. At the end the
 * others are gone, for good: then it must recover by itself and every lock that
 * is left must go when it is told to.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/compiler.h"
#include "wire/dlmwire.h"

#define LOCKSPACE 1u
#define IDS 16u
#define TALKS 16u
#define OPERATIONS_MAX 400u
#define CONTINUES_MAX 10000u
#define UPDATES_MAX 100000u
#define HEAL_LOCKS_MAX 1000u

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* A master copy that the engine has told of: its id, theirs, whose it is. */
struct twin {
	uint32_t ours;
	uint32_t theirs;
	int32_t nodeid;
};

struct world {
	const uint8_t *script;
	size_t left;
	struct dlm_engine *engine;
	struct dlm_updates out;
	int32_t us;
	bool honest; /* questions of recovery are answered at once */
	uint32_t lvblen;
	uint64_t now_ns;
	uint64_t incarnations[4]; /* by node id */
	uint32_t ids[IDS];
	unsigned id_count;
	struct dlm_msg asked[TALKS]; /* of the engine, without slots, names */
	unsigned asked_count;
	struct twin twins[TALKS];
	unsigned twin_count;
};

static void must(bool holds)
{
	if (!holds)
		abort();
}

static uint8_t byte(struct world *w)
{
	if (!w->left)
		return 0;
	w->left--;
	return *w->script++;
}

static uint32_t word(struct world *w)
{
	uint32_t v = byte(w);

	v |= (uint32_t)byte(w) << 8;
	v |= (uint32_t)byte(w) << 16;
	return v | (uint32_t)byte(w) << 24;
}

static uint32_t some_id(struct world *w)
{
	uint8_t which = byte(w);

	if (which == 0xff)
		return word(w);
	return which < 0xf0 ? w->ids[which % IDS] : which - 0xf0u;
}

/* Directory nodes of three equal members: 2, 1, 0, 1, 2. */
static void some_name(struct world *w, struct dlm_name *name)
{
	static const char *const names[] = { "a", "MyLock", "test0001", NULL,
					     "" };
	const char *text = names[byte(w) % 5];

	memset(name, 0, sizeof(*name));
	name->len = text ? (uint8_t)strlen(text) : DLM_NAME_MAX;
	memset(name->bytes, 'x', name->len);
	if (text)
		memcpy(name->bytes, text, name->len);
}

static int32_t some_mode(struct world *w)
{
	return (int32_t)(byte(w) % 7) - 1;
}

/* Mostly without flags, the common ones by a single byte, or any. */
static uint32_t some_flags(struct world *w)
{
	static const uint32_t common[] = {
		0,
		LKF_VALBLK,
		LKF_NOQUEUE,
		LKF_QUECVT,
		LKF_IVVALBLK,
		LKF_CONVDEADLK | LKF_VALBLK,
		LKF_NOORDER,
		LKF_HEADQUE,
		LKF_ALTPR,
		LKF_ALTCW,
		LKF_NODLCKWT,
		LKF_PERSISTENT,
		LKF_EXPEDITE,
		LKF_NOQUEUE | LKF_NOQUEUEBAST,
	};
	uint8_t which = byte(w);

	return which < UG_ARRAY_SIZE(common) ? common[which]
	       : which & 1		     ? word(w)
					     : 0;
}

static int32_t some_result(struct world *w)
{
	static const int32_t results[] = {
		0,
		-EINPROGRESS,
		-EAGAIN,
		-EDEADLK,
		-EBADR,
		-ENOTBLK,
		-ENOENT,
		-EBUSY,
		-EEXIST,
		-DLM_ECANCEL,
		-DLM_EUNLOCK,
		-3,
		1,
		2,
		3,
		0xff,
	};
	uint8_t which = byte(w);

	return which == 0xff ? (int32_t)word(w) : results[which % 16];
}

/* Steps */

static void note_id(struct world *w, uint32_t id)
{
	if (id)
		w->ids[w->id_count++ % IDS] = id;
}

static void note_sent(struct world *w, const struct dlm_msg *msg)
{
	struct dlm_msg copy = *msg;

	if (msg->kind == DLM_MSG) {
		note_id(w, msg->m.lkid);
		if (msg->m.type == DLM_MSG_REQUEST_REPLY && msg->m.lkid)
			w->twins[w->twin_count++ % TALKS] =
				(struct twin){ msg->m.lkid, msg->m.remid,
					       msg->to };
	} else {
		copy.rc.slots = NULL;
		copy.rc.names = NULL;
		if (msg->rc.type == DLM_RCOM_LOCK)
			note_id(w, msg->rc.lock.lkid);
	}
	w->asked[w->asked_count++ % TALKS] = copy;
}

/* What is sent can be sent, and arrives. */
static void check_sent(struct world *w, const struct dlm_msg *msg)
{
	uint8_t packet[DLM_WIRE_MAX];
	struct dlm_msg got;
	long len = dlm_wire_encode(msg, LOCKSPACE, packet, sizeof(packet));

	must(len > 0 && msg->from == w->us && msg->to > 0);
	must(dlm_wire_decode(packet, (size_t)len, LOCKSPACE, &got) == 0);
	dlm_msg_release(&got);
}

static void take_updates(struct world *w)
{
	must(w->out.count < UPDATES_MAX);
	for (size_t i = 0; i < w->out.count; i++) {
		if (w->out.list[i].kind != DLM_UP_SEND)
			continue;
		check_sent(w, &w->out.list[i].msg);
		note_sent(w, &w->out.list[i].msg);
	}
}

static int step_once(struct world *w, struct dlm_event *event, bool *more)
{
	int error;

	event->now_ns = w->now_ns;
	error = dlm_step(w->engine, event, &w->out);
	dlm_check(w->engine);
	take_updates(w);
	*more = w->out.more;
	dlm_updates_clear(&w->out);
	return error;
}

static int step(struct world *w, struct dlm_event *event)
{
	struct dlm_event go_on = { .kind = DLM_EV_CONTINUE };
	unsigned continues = 0;
	bool more;
	int error = step_once(w, event, &more);

	while (more) {
		step_once(w, &go_on, &more);
		must(++continues < CONTINUES_MAX);
	}
	return error;
}

static void give_message(struct world *w, struct dlm_msg *msg,
			 uint64_t incarnation)
{
	uint8_t packet[DLM_WIRE_MAX];
	struct dlm_event event = { .kind = DLM_EV_MESSAGE };
	struct dlm_msg got;
	long len = dlm_wire_encode(msg, LOCKSPACE, packet, sizeof(packet));

	if (len < 0)
		return;
	must(dlm_wire_decode(packet, (size_t)len, LOCKSPACE, &got) == 0);
	got.to = w->us;
	event.message.incarnation = incarnation;
	event.message.msg = &got;
	step(w, &event);
	dlm_msg_release(&got);
}

static void send_lie(struct world *w, struct dlm_msg *msg)
{
	uint64_t incarnation = w->incarnations[msg->from & 3];

	give_message(w, msg, incarnation);
}

static int32_t some_node(struct world *w)
{
	static const int32_t others[4][3] = {
		{ 1, 2, 3 }, { 2, 3, 2 }, { 1, 3, 1 }, { 1, 2, 1 }
	};

	return others[w->us][byte(w) % 3];
}

/* Messages */

static void fill_modes(struct world *w, struct dlm_lockmsg *m)
{
	m->grmode = some_mode(w);
	m->rqmode = some_mode(w);
	m->bastmode = some_mode(w);
}

static void lie_lockmsg(struct world *w)
{
	struct dlm_msg msg = { .kind = DLM_MSG, .from = some_node(w) };
	struct dlm_lockmsg *m = &msg.m;
	struct dlm_name name;

	m->type = (enum dlm_msg_type)(1 + byte(w) % 14);
	m->nodeid = (int32_t)(byte(w) % 5) - 1;
	m->pid = byte(w) % 3;
	m->lkid = some_id(w);
	m->remid = some_id(w);
	m->exflags = some_flags(w);
	m->sbflags = byte(w) & 7u;
	m->flags = byte(w) & 7u;
	m->asts = 3;
	m->lvbseq = byte(w);
	m->result = some_result(w);
	fill_modes(w, m);
	if (m->type == DLM_MSG_REQUEST || m->type == DLM_MSG_LOOKUP ||
	    m->type == DLM_MSG_REMOVE) {
		some_name(w, &name);
		m->extra_len = name.len;
		memcpy(m->extra, name.bytes, name.len);
	} else {
		m->extra_len = 8u * (byte(w) % 9);
	}
	send_lie(w, &msg);
}

/* A member that holds a lock here goes on with it. */
static void lie_twin(struct world *w)
{
	static const enum dlm_msg_type types[] = {
		DLM_MSG_CONVERT, DLM_MSG_UNLOCK, DLM_MSG_CANCEL, DLM_MSG_CONVERT
	};
	const struct twin *twin = &w->twins[byte(w) % TALKS];
	struct dlm_msg msg = { .kind = DLM_MSG, .from = twin->nodeid };

	if (!twin->nodeid || twin->nodeid == w->us)
		return;
	msg.m.type = types[byte(w) % 4];
	msg.m.lkid = twin->theirs;
	msg.m.remid = twin->ours;
	msg.m.exflags = some_flags(w);
	msg.m.flags = byte(w) & 7u;
	msg.m.asts = 3;
	msg.m.rqmode = some_mode(w);
	msg.m.extra_len = msg.m.exflags & LKF_VALBLK ? w->lvblen : 0;
	if (msg.m.type == DLM_MSG_CANCEL)
		msg.m.extra_len = 0;
	send_lie(w, &msg);
}

static void fill_slots(struct world *w, struct dlm_rcom *rc)
{
	uint8_t choice = byte(w);

	rc->status.lvblen = choice & 0x80 ? byte(w) : w->lvblen;
	rc->status.our_slot = choice & 3u;
	rc->status.generation = choice >> 2 & 7u;
	if (!(choice & 0x20))
		return;
	rc->slots = calloc(1, sizeof(*rc->slots));
	must(rc->slots != NULL);
	rc->slots->count = 3;
	for (int32_t i = 0; i < 3; i++) {
		rc->slots->slot[i].nodeid = i + 1;
		rc->slots->slot[i].slot = byte(w) % 5;
	}
}

static void fill_names(struct world *w, struct dlm_rcom *rc)
{
	unsigned count = byte(w);
	struct dlm_name name;

	rc->names = calloc(1, sizeof(*rc->names));
	must(rc->names != NULL);
	rc->names->last = !(count & 0x80);
	for (count &= 7; count; count--) {
		some_name(w, &name);
		rc->names->bytes[rc->names->len + 1] = name.len;
		memcpy(rc->names->bytes + rc->names->len + 2, name.bytes,
		       name.len);
		rc->names->len += 2u + name.len;
	}
}

static void fill_lock(struct world *w, struct dlm_rcom_lock *lock)
{
	lock->lkid = some_id(w);
	lock->remid = some_id(w);
	lock->exflags = some_flags(w);
	lock->flags = byte(w) & 7u;
	lock->lvbseq = byte(w);
	lock->result = some_result(w);
	lock->grmode = (int8_t)some_mode(w);
	lock->rqmode = (int8_t)some_mode(w);
	lock->status = (int8_t)(byte(w) & 3);
	lock->wait_type = byte(w) % 15;
	lock->asts = 3;
	lock->lvb_len = (uint16_t)(lock->exflags & LKF_VALBLK ? w->lvblen : 0);
	some_name(w, &lock->name);
}

static void fill_rcom(struct world *w, struct dlm_rcom *rc)
{
	switch (rc->type) {
	case DLM_RCOM_STATUS_REPLY:
		fill_slots(w, rc);
		break;
	case DLM_RCOM_NAMES_REPLY:
		fill_names(w, rc);
		break;
	case DLM_RCOM_LOCK:
		fill_lock(w, &rc->lock);
		break;
	case DLM_RCOM_LOCK_REPLY:
		fill_lock(w, &rc->lock);
		rc->lock.lvb_len = 0;
		break;
	case DLM_RCOM_NAMES:
	case DLM_RCOM_LOOKUP:
		some_name(w, &rc->name);
		break;
	case DLM_RCOM_STATUS:
	case DLM_RCOM_LOOKUP_REPLY:
		break;
	}
}

static void lie_rcom(struct world *w)
{
	const struct dlm_msg *asked = &w->asked[byte(w) % TALKS];
	struct dlm_msg msg = { .kind = DLM_RCOM, .from = some_node(w) };

	msg.rc.type = (enum dlm_rcom_type)(1 + byte(w) % 8);
	msg.rc.result = some_result(w);
	if (asked->kind == DLM_RCOM) {
		msg.rc.id = asked->rc.id;
		msg.rc.seq_reply = asked->rc.seq;
	}
	msg.rc.seq = byte(w);
	fill_rcom(w, &msg.rc);
	send_lie(w, &msg);
	dlm_msg_release(&msg);
}

/* To one of the last questions: a reply of the kind that is due. */
static void answer_lockmsg(struct world *w, const struct dlm_msg *asked)
{
	struct dlm_msg msg = { .kind = DLM_MSG, .from = asked->to };
	struct dlm_lockmsg *m = &msg.m;

	if (asked->m.type > DLM_MSG_CANCEL && asked->m.type != DLM_MSG_LOOKUP)
		return;
	*m = asked->m;
	m->extra_len = 0;
	m->type = asked->m.type == DLM_MSG_LOOKUP
			  ? DLM_MSG_LOOKUP_REPLY
			  : (enum dlm_msg_type)(asked->m.type + 4);
	m->remid = asked->m.lkid;
	m->lkid = asked->m.remid ? asked->m.remid : 0x100u + byte(w);
	if (m->type == DLM_MSG_LOOKUP_REPLY) {
		m->lkid = asked->m.lkid;
		m->nodeid = byte(w) % 4;
	}
	m->result = some_result(w);
	m->grmode = m->result ? m->grmode : asked->m.rqmode;
	m->sbflags = byte(w) & 7u;
	send_lie(w, &msg);
}

static void answer_rcom(struct world *w, const struct dlm_msg *asked)
{
	struct dlm_msg msg = { .kind = DLM_RCOM, .from = asked->to };

	if (asked->rc.type > DLM_RCOM_LOCK)
		return;
	msg.rc.type = (enum dlm_rcom_type)(asked->rc.type + 4);
	msg.rc.id = asked->rc.id;
	msg.rc.seq_reply = asked->rc.seq;
	msg.rc.result = 0xff;
	switch (msg.rc.type) {
	case DLM_RCOM_STATUS_REPLY:
	case DLM_RCOM_NAMES_REPLY:
		fill_rcom(w, &msg.rc);
		break;
	case DLM_RCOM_LOOKUP_REPLY:
		msg.rc.result = 1 + byte(w) % 3;
		break;
	default:
		msg.rc.lock = asked->rc.lock;
		msg.rc.lock.lvb_len = 0;
		msg.rc.lock.remid = 0x200u + byte(w);
		msg.rc.lock.result = 0;
		break;
	}
	send_lie(w, &msg);
	dlm_msg_release(&msg);
}

static void answer(struct world *w)
{
	struct dlm_msg asked = w->asked[byte(w) % TALKS];

	if (!asked.kind)
		return;
	if (asked.kind == DLM_MSG)
		answer_lockmsg(w, &asked);
	else
		answer_rcom(w, &asked);
}

/* All that recovery asks, until it asks nothing more: all bits, no names */
static void answer_recovery(struct world *w)
{
	for (unsigned i = 0; i < 64 && !dlm_is_running(w->engine); i++) {
		struct dlm_msg asked = w->asked[i % TALKS];
		struct dlm_msg msg = { .kind = DLM_RCOM, .from = asked.to };

		if (asked.kind != DLM_RCOM || asked.rc.type > DLM_RCOM_NAMES)
			continue;
		msg.rc.type = (enum dlm_rcom_type)(asked.rc.type + 4);
		msg.rc.id = asked.rc.id;
		msg.rc.seq_reply = asked.rc.seq;
		msg.rc.result = 0xff;
		msg.rc.status.lvblen = w->lvblen;
		if (msg.rc.type == DLM_RCOM_NAMES_REPLY) {
			msg.rc.names = calloc(1, sizeof(*msg.rc.names));
			must(msg.rc.names != NULL);
			msg.rc.names->last = true;
		}
		send_lie(w, &msg);
		dlm_msg_release(&msg);
	}
}

/* Calls of processes here */

static void call_lock(struct world *w, bool convert)
{
	static const uint8_t lvb[DLM_LVB_MAX] = { 1, 2, 3 };
	struct dlm_event event = { .kind = DLM_EV_LOCK };

	event.lock.mode = (enum dlm_mode)some_mode(w);
	event.lock.flags = some_flags(w);
	event.lock.flags &= ~(uint32_t)LKF_CONVERT;
	event.lock.flags |= convert ? LKF_CONVERT : 0;
	if (convert)
		event.lock.lkid = some_id(w);
	else
		some_name(w, &event.lock.name);
	event.lock.wants_bast = true;
	event.lock.owner = byte(w) % 3;
	event.lock.pid = event.lock.owner;
	event.lock.lvb = lvb;
	if (step(w, &event) == 0)
		note_id(w, event.lock.lkid);
}

static void call_unlock(struct world *w)
{
	static const uint8_t lvb[DLM_LVB_MAX] = { 4, 5, 6 };
	static const uint32_t flags[] = { 0, LKF_CANCEL, LKF_FORCEUNLOCK,
					  LKF_VALBLK };
	struct dlm_event event = { .kind = DLM_EV_UNLOCK };

	event.unlock.lkid = some_id(w);
	event.unlock.flags = flags[byte(w) % 4];
	event.unlock.lvb = lvb;
	event.unlock.cancel_status = 0;
	step(w, &event);
}

static void call_close_or_purge(struct world *w)
{
	struct dlm_event event = { .kind = DLM_EV_CLOSE };
	uint8_t choice = byte(w);

	if (choice & 1) {
		event.kind = DLM_EV_PURGE;
		event.purge.nodeid = choice >> 1 & 3;
		event.purge.pid = choice >> 3 & 3;
	} else {
		event.close.owner = choice >> 1 & 3;
	}
	step(w, &event);
}

static void change_members(struct world *w, uint8_t choice)
{
	struct dlm_event event = { .kind = DLM_EV_STOP };
	struct dlm_member members[3] = { 0 };
	unsigned count = 0;

	step(w, &event);
	if (choice & 0x80)
		return;
	for (int32_t id = 1; id <= 3; id++) {
		if (id != w->us && !(choice >> (id - 1) & 1))
			continue;
		if (id != w->us && choice >> (id + 2) & 1)
			w->incarnations[id]++;
		members[count++] =
			(struct dlm_member){ id, 1, w->incarnations[id] };
	}
	event.kind = DLM_EV_START;
	event.start.members = members;
	event.start.count = count;
	must(step(w, &event) == 0);
	if (w->honest)
		answer_recovery(w);
}

static void pass_time(struct world *w)
{
	static const uint64_t pauses_ns[] = { 0, 1000000, 200000000,
					      20000000000 };
	struct dlm_event event = { .kind = DLM_EV_TICK };

	w->now_ns += pauses_ns[byte(w) & 3];
	step(w, &event);
}

static void operate(struct world *w)
{
	uint8_t operation = byte(w);

	switch (operation % 16) {
	case 0:
	case 1:
		lie_lockmsg(w);
		break;
	case 2:
	case 3:
		lie_twin(w);
		break;
	case 4:
		lie_rcom(w);
		break;
	case 5:
	case 6:
		answer(w);
		break;
	case 7:
		answer_recovery(w);
		break;
	case 8:
	case 9:
		call_lock(w, false);
		break;
	case 10:
		call_lock(w, true);
		break;
	case 11:
	case 12:
		call_unlock(w);
		break;
	case 13:
		call_close_or_purge(w);
		break;
	case 14:
		change_members(w, byte(w));
		break;
	default:
		pass_time(w);
		break;
	}
}

/* The end: alone in the lockspace */

struct leftovers {
	uint32_t ids[HEAL_LOCKS_MAX];
	unsigned count;
};

static void collect(void *arg, const struct dlm_resource_info *resource,
		    const struct dlm_lock_info *lock)
{
	struct leftovers *left = arg;

	must(!lock->master_copy);
	must(!lock->in_flight);
	must(resource->in_use);
	must(left->count < HEAL_LOCKS_MAX);
	left->ids[left->count++] = lock->lkid;
}

static void unlock_all(struct world *w, const struct leftovers *left)
{
	for (unsigned i = 0; i < left->count; i++) {
		struct dlm_event event = { .kind = DLM_EV_UNLOCK };

		event.unlock.lkid = left->ids[i];
		event.unlock.flags = LKF_FORCEUNLOCK;
		must(step(w, &event) == 0);
	}
}

static void heal(struct world *w)
{
	struct leftovers left = { .count = 0 };
	struct dlm_counts counts;
	struct dlm_event tick = { .kind = DLM_EV_TICK };

	change_members(w, 0);
	must(dlm_is_running(w->engine));
	dlm_visit(w->engine, NULL, collect, &left);
	unlock_all(w, &left);
	w->now_ns += 60000000000;
	step(w, &tick);
	dlm_count(w->engine, &counts);
	must(counts.locks == 0 && counts.in_flight == 0);
	must(counts.resources == 0 && counts.saved_messages == 0);
}

static void begin(struct world *w)
{
	static const uint32_t lvblens[] = { 32, 32, 8, 64 };
	uint8_t choice = byte(w);
	struct dlm_config config = { .incarnation = 1, .seed = 1 };

	w->us = 1 + choice % 3;
	w->honest = choice & 0x80;
	for (unsigned i = 0; i < 4; i++)
		w->incarnations[i] = 1;
	config.nodeid = w->us;
	w->lvblen = lvblens[choice >> 2 & 3];
	config.lvblen = w->lvblen;
	must(dlm_engine_new(&config, &w->engine) == 0);
	change_members(w, 7);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct world w = { .script = data, .left = size };
	unsigned operations = 0;

	begin(&w);
	while (w.left && operations++ < OPERATIONS_MAX)
		operate(&w);
	heal(&w);
	dlm_updates_free(&w.out);
	dlm_engine_free(w.engine);
	return 0;
}
