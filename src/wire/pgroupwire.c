/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * pgroupwire.c - a header of 40 bytes, then what the type says.
 *
 *	 0  version 3.1.1   12  to	  24  change
 *	 6  type	    16  global id 28  word
 *	 8  nodeid	    20  flags	  32  an incarnation, or zero
 *
 *	START: 32 bytes, then ids	OP, OWN, DROP, SYNC_*: a record of 64
 *	DATA: 24 bytes of the file, then up to 24 records of 40
 *	DONE, GONE, RELEASE, BEGIN: nothing
 *
 * As in plockwire.c one test says what is legal, for both directions, and what
 * is decoded is encoded to the same bytes.
 * Source: docs/spec/plocks.md 12.5.
 */
#include <assert.h>
#include <errno.h>
#include <string.h>

#include "base/compiler.h"
#include "base/le.h"
#include "wire/pgroupwire.h"

struct wire_head {
	le16 version[3];
	le16 type;
	le32 nodeid;
	le32 to;
	le32 global_id;
	le32 flags;
	le32 change;
	le32 word;
	le64 inc;
};
static_assert(sizeof(struct wire_head) == 40, "header of a message");

static const uint16_t head_version[3] = { 3, 1, 1 };

struct wire_start {
	le32 info_size;
	le32 id_size;
	le32 ids;
	le32 started;
	le32 members;
	le32 joined;
	le32 removed;
	le32 failed;
};
static_assert(sizeof(struct wire_start) == 32, "a START");

/* What a process asked for, as it once came from the kernel. */
struct wire_op {
	le32 version[3];
	uint8_t optype;
	uint8_t ex;
	uint8_t wait;
	uint8_t flags;
	le32 pid;
	le32 nodeid;
	le32 rv;
	le32 fsid;
	le64 number;
	le64 start;
	le64 end;
	le64 owner;
};
static_assert(sizeof(struct wire_op) == 64, "a record");

static const uint32_t op_version[3] = { 1, 2, 0 };

enum {
	OPTYPE_NONE = 0, /* OWN, DROP */
	OPTYPE_LOCK = 1,
	OPTYPE_UNLOCK = 2,
	OPTYPE_GET = 3,
	OPTYPE_CANCEL = 4,
};

enum {
	OP_CLOSE = 1,
	OP_FLOCK = 2, /* ours: of the flock table */
	OP_OFD = 4,   /* ours: the owner is an open file */
};

struct wire_data {
	le64 number;
	le32 owner;
	le32 count;
	le32 flags;
	le32 gen;
};
static_assert(sizeof(struct wire_data) == 24, "a file");

enum {
	DATA_MORE = 1,
	DATA_FLOCK = 2, /* ours */
};

struct wire_record {
	le64 start;
	le64 end;
	le64 owner;
	le32 pid;
	le32 nodeid;
	uint8_t ex;
	uint8_t waiter;
	le16 kind; /* ours */
	uint8_t zero[4];
};
static_assert(sizeof(struct wire_record) == 40, "a lock or a wait");
static_assert(sizeof(struct wire_head) + sizeof(struct wire_data) +
			      PGROUP_RECORDS * sizeof(struct wire_record) ==
		      PGROUP_WIRE_MAX,
	      "the longest message");
static_assert(sizeof(struct wire_head) + sizeof(struct wire_start) +
			      PLOCK_NODES_MAX * sizeof(le32) <=
		      PGROUP_WIRE_MAX,
	      "all members");

enum body {
	BODY_NONE,
	BODY_START,
	BODY_OP,
	BODY_DATA,
	BODY_BAD, /* no such type */
};

static enum body body_of(unsigned type)
{
	switch ((enum pgroup_msg_type)type) {
	case PGROUP_START:
		return BODY_START;
	case PGROUP_OP:
	case PGROUP_OWN:
	case PGROUP_DROP:
	case PGROUP_SYNC_LOCK:
	case PGROUP_SYNC_WAITER:
		return BODY_OP;
	case PGROUP_DATA:
		return BODY_DATA;
	case PGROUP_DONE:
	case PGROUP_GONE:
	case PGROUP_RELEASE:
	case PGROUP_BEGIN:
		return BODY_NONE;
	}
	return BODY_BAD;
}

/* Legal */

static bool nodeid_is_legal(uint32_t nodeid)
{
	return nodeid && !(nodeid & PGROUP_GONE_BIT);
}

static bool range_is_legal(uint64_t start, uint64_t end)
{
	return start <= end && end <= RANGE_END;
}

static bool kind_is_legal(enum plock_table table, enum range_kind kind)
{
	return table == PLOCK_FLOCK ? kind == RANGE_FLOCK : kind <= RANGE_OFD;
}

static bool lock_is_legal(const struct plock_op *op)
{
	return op->mode == RANGE_READ || op->mode == RANGE_WRITE;
}

static bool op_is_legal(const struct pgroup_msg *msg)
{
	const struct plock_op *op = &msg->op;

	if (!kind_is_legal(op->table, op->owner_kind) ||
	    !range_is_legal(op->start, op->end) || op->fair)
		return false;
	if (msg->type == PGROUP_SYNC_LOCK || msg->type == PGROUP_SYNC_WAITER)
		return op->kind == PLOCK_SET && lock_is_legal(op) &&
		       op->wait == (msg->type == PGROUP_SYNC_WAITER);
	switch (op->kind) {
	case PLOCK_SET:
		return lock_is_legal(op) ||
		       (op->mode == RANGE_NONE && !op->wait);
	case PLOCK_GET:
		return lock_is_legal(op) && !op->wait;
	case PLOCK_CLOSE:
		return op->mode == RANGE_NONE && !op->wait && !op->start &&
		       op->end == RANGE_END;
	}
	return false;
}

static bool start_is_legal(const struct pgroup_msg *msg)
{
	if (!msg->start.count || msg->start.count > PLOCK_NODES_MAX ||
	    msg->flags &
		    ~(PGROUP_JOINING | PGROUP_HAVE_PLOCKS | PGROUP_OWNERSHIP))
		return false;
	for (uint32_t i = 0; i < msg->start.count; i++) {
		if (!nodeid_is_legal(msg->start.ids[i]))
			return false;
	}
	return true;
}

static bool record_is_legal(const struct pgroup_record *r,
			    enum plock_table table)
{
	return r->nodeid && kind_is_legal(table, r->kind) &&
	       (r->mode == RANGE_READ || r->mode == RANGE_WRITE) &&
	       range_is_legal(r->start, r->end);
}

static bool data_is_legal(const struct pgroup_msg *msg)
{
	if (msg->count > PGROUP_RECORDS)
		return false;
	for (uint32_t i = 0; i < msg->count; i++) {
		if (!record_is_legal(&msg->records[i], msg->table))
			return false;
	}
	return true;
}

static bool cancel_is_legal(const struct pgroup_msg *msg)
{
	return !msg->cancel ||
	       (msg->type == PGROUP_OP && msg->op.kind == PLOCK_SET &&
		lock_is_legal(&msg->op) && msg->op.wait);
}

static bool msg_is_legal(const struct pgroup_msg *msg)
{
	bool transfer = msg->type == PGROUP_DATA || msg->type == PGROUP_DONE ||
			msg->type == PGROUP_GONE || msg->type == PGROUP_BEGIN;

	if (!nodeid_is_legal(msg->nodeid) || msg->to & PGROUP_GONE_BIT ||
	    !cancel_is_legal(msg) ||
	    (msg->change && msg->type != PGROUP_START && !transfer))
		return false;
	switch (msg->type) {
	case PGROUP_START:
		return start_is_legal(msg);
	case PGROUP_OP:
		return !msg->inc && op_is_legal(msg);
	case PGROUP_SYNC_LOCK:
	case PGROUP_SYNC_WAITER:
		return !msg->inc && !msg->word && op_is_legal(msg);
	case PGROUP_OWN:
		return !msg->inc && !msg->word && msg->table <= PLOCK_FLOCK &&
		       (!msg->owner || msg->owner == msg->nodeid);
	case PGROUP_DROP:
		return !msg->inc && !msg->word && msg->table <= PLOCK_FLOCK;
	case PGROUP_DATA:
		return !msg->inc && !msg->word && msg->table <= PLOCK_FLOCK &&
		       data_is_legal(msg);
	case PGROUP_GONE:
		return msg->word < PGROUP_GONE_BIT;
	case PGROUP_RELEASE:
		return !msg->word;
	case PGROUP_BEGIN:
		return !msg->word && !msg->inc;
	case PGROUP_DONE:
		return true;
	}
	return false;
}

/* To bytes */

static size_t length_of(const struct pgroup_msg *msg)
{
	switch (body_of(msg->type)) {
	case BODY_NONE:
		return sizeof(struct wire_head);
	case BODY_START:
		return sizeof(struct wire_head) + sizeof(struct wire_start) +
		       msg->start.count * sizeof(le32);
	case BODY_OP:
		return sizeof(struct wire_head) + sizeof(struct wire_op);
	case BODY_DATA:
		return sizeof(struct wire_head) + sizeof(struct wire_data) +
		       msg->count * sizeof(struct wire_record);
	case BODY_BAD:
		break;
	}
	return 0;
}

static void put_head(const struct pgroup_msg *msg, uint32_t global_id,
		     uint8_t *buf)
{
	struct wire_head head = { .type = le16_of((uint16_t)msg->type),
				  .nodeid = le32_of(msg->nodeid),
				  .to = le32_of(msg->to),
				  .global_id = le32_of(global_id),
				  .flags = le32_of(msg->flags),
				  .change = le32_of(msg->change),
				  .word = le32_of(msg->word),
				  .inc = le64_of(msg->inc) };

	for (unsigned i = 0; i < 3; i++)
		head.version[i] = le16_of(head_version[i]);
	memcpy(buf, &head, sizeof(head));
}

static void put_start(const struct pgroup_msg *msg, uint8_t *buf)
{
	struct wire_start w = { .info_size = le32_of(sizeof(w)),
				.id_size = le32_of(sizeof(le32)),
				.ids = le32_of(msg->start.count),
				.started = le32_of(msg->start.started),
				.members = le32_of(msg->start.count),
				.joined = le32_of(msg->start.joined),
				.removed = le32_of(msg->start.removed),
				.failed = le32_of(msg->start.failed) };

	memcpy(buf, &w, sizeof(w));
	for (uint32_t i = 0; i < msg->start.count; i++) {
		le32 id = le32_of(msg->start.ids[i]);

		memcpy(buf + sizeof(w) + i * sizeof(id), &id, sizeof(id));
	}
}

static uint8_t optype_of(const struct pgroup_msg *msg)
{
	if (msg->type == PGROUP_OWN || msg->type == PGROUP_DROP)
		return OPTYPE_NONE;
	if (msg->cancel)
		return OPTYPE_CANCEL;
	if (msg->op.kind == PLOCK_GET)
		return OPTYPE_GET;
	return msg->op.mode == RANGE_NONE ? OPTYPE_UNLOCK : OPTYPE_LOCK;
}

static void put_op(const struct pgroup_msg *msg, uint32_t global_id,
		   uint8_t *buf)
{
	const struct plock_op *op = &msg->op;
	struct wire_op w = { .optype = optype_of(msg),
			     .nodeid = le32_of(msg->nodeid),
			     .fsid = le32_of(global_id),
			     .number = le64_of(msg->number) };

	for (unsigned i = 0; i < 3; i++)
		w.version[i] = le32_of(op_version[i]);
	if (w.optype == OPTYPE_NONE) {
		w.rv = le32_of(msg->owner);
		w.flags = msg->table == PLOCK_FLOCK ? OP_FLOCK : 0;
	} else {
		w.ex = op->mode == RANGE_WRITE;
		w.wait = op->wait;
		w.flags = (uint8_t)((op->kind == PLOCK_CLOSE ? OP_CLOSE : 0) |
				    (op->table == PLOCK_FLOCK ? OP_FLOCK : 0) |
				    (op->owner_kind == RANGE_OFD ? OP_OFD : 0));
		w.pid = le32_of(op->pid);
		w.start = le64_of(op->start);
		w.end = le64_of(op->end);
		w.owner = le64_of(op->owner);
	}
	memcpy(buf, &w, sizeof(w));
}

static void put_data(const struct pgroup_msg *msg, uint8_t *buf)
{
	struct wire_data w = {
		.number = le64_of(msg->number),
		.owner = le32_of(msg->owner),
		.count = le32_of(msg->count),
		.flags = le32_of((msg->more ? DATA_MORE : 0) |
				 (msg->table == PLOCK_FLOCK ? DATA_FLOCK : 0)),
		.gen = le32_of(msg->gen)
	};

	memcpy(buf, &w, sizeof(w));
	buf += sizeof(w);
	for (uint32_t i = 0; i < msg->count; i++) {
		const struct pgroup_record *r = &msg->records[i];
		struct wire_record wr = { .start = le64_of(r->start),
					  .end = le64_of(r->end),
					  .owner = le64_of(r->owner),
					  .pid = le32_of(r->pid),
					  .nodeid = le32_of(r->nodeid),
					  .ex = r->mode == RANGE_WRITE,
					  .waiter = r->waiter,
					  .kind = le16_of((uint16_t)r->kind) };

		memcpy(buf + i * sizeof(wr), &wr, sizeof(wr));
	}
}

long pgroup_wire_encode(const struct pgroup_msg *msg, uint32_t global_id,
			uint8_t *buf, size_t size)
{
	size_t len;

	if (!msg_is_legal(msg))
		return -EINVAL;
	len = length_of(msg);
	if (len > size)
		return -EMSGSIZE;
	put_head(msg, global_id, buf);
	buf += sizeof(struct wire_head);
	if (body_of(msg->type) == BODY_START)
		put_start(msg, buf);
	else if (body_of(msg->type) == BODY_OP)
		put_op(msg, global_id, buf);
	else if (body_of(msg->type) == BODY_DATA)
		put_data(msg, buf);
	return (long)len;
}

/* From bytes; false: what means nothing is not zero, or a length is wrong */

static bool get_start(const uint8_t *bytes, size_t len, struct pgroup_msg *msg,
		      struct pgroup_parts *parts)
{
	struct wire_start w;
	uint32_t count;

	if (len < sizeof(w))
		return false;
	memcpy(&w, bytes, sizeof(w));
	count = le32_get(w.ids);
	if (le32_get(w.info_size) != sizeof(w) ||
	    le32_get(w.id_size) != sizeof(le32) || count > PLOCK_NODES_MAX ||
	    le32_get(w.members) != count ||
	    len != sizeof(w) + count * sizeof(le32))
		return false;
	for (uint32_t i = 0; i < count; i++) {
		le32 id;

		memcpy(&id, bytes + sizeof(w) + i * sizeof(id), sizeof(id));
		parts->ids[i] = le32_get(id);
	}
	msg->start.count = count;
	msg->start.ids = parts->ids;
	msg->start.started = le32_get(w.started);
	msg->start.joined = le32_get(w.joined);
	msg->start.removed = le32_get(w.removed);
	msg->start.failed = le32_get(w.failed);
	return true;
}

static bool get_bare_op(const struct wire_op *w, struct pgroup_msg *msg)
{
	msg->owner = le32_get(w->rv);
	msg->table = w->flags & OP_FLOCK ? PLOCK_FLOCK : PLOCK_FCNTL;
	return w->optype == OPTYPE_NONE && !w->ex && !w->wait &&
	       !(w->flags & ~OP_FLOCK) && !le32_get(w->pid) &&
	       !le64_get(w->start) && !le64_get(w->end) &&
	       !le64_get(w->owner) && (msg->type == PGROUP_OWN || !msg->owner);
}

static bool get_full_op(const struct wire_op *w, struct pgroup_msg *msg)
{
	struct plock_op *op = &msg->op;
	bool closes = w->flags & OP_CLOSE;

	if (w->optype < OPTYPE_LOCK || w->optype > OPTYPE_CANCEL || w->ex > 1 ||
	    w->wait > 1 || w->flags > (OP_CLOSE | OP_FLOCK | OP_OFD) ||
	    (closes && w->optype != OPTYPE_UNLOCK) ||
	    ((w->flags & OP_FLOCK) && (w->flags & OP_OFD)) || le32_get(w->rv) ||
	    (w->optype == OPTYPE_UNLOCK && w->ex))
		return false;
	*op = (struct plock_op){
		.kind = closes			  ? PLOCK_CLOSE
			: w->optype == OPTYPE_GET ? PLOCK_GET
						  : PLOCK_SET,
		.table = w->flags & OP_FLOCK ? PLOCK_FLOCK : PLOCK_FCNTL,
		.owner_kind = w->flags & OP_FLOCK ? RANGE_FLOCK
			      : w->flags & OP_OFD ? RANGE_OFD
						  : RANGE_POSIX,
		.mode = w->optype == OPTYPE_UNLOCK ? RANGE_NONE
			: w->ex			   ? RANGE_WRITE
						   : RANGE_READ,
		.wait = w->wait,
		.owner = le64_get(w->owner),
		.start = le64_get(w->start),
		.end = le64_get(w->end),
		.pid = le32_get(w->pid),
	};
	msg->cancel = w->optype == OPTYPE_CANCEL;
	return true;
}

static bool get_op(const uint8_t *bytes, size_t len, uint32_t global_id,
		   struct pgroup_msg *msg)
{
	struct wire_op w;

	if (len != sizeof(w))
		return false;
	memcpy(&w, bytes, sizeof(w));
	for (unsigned i = 0; i < 3; i++) {
		if (le32_get(w.version[i]) != op_version[i])
			return false;
	}
	if (le32_get(w.nodeid) != msg->nodeid || le32_get(w.fsid) != global_id)
		return false;
	msg->number = le64_get(w.number);
	if (msg->type == PGROUP_OWN || msg->type == PGROUP_DROP)
		return get_bare_op(&w, msg);
	return get_full_op(&w, msg);
}

static bool get_record(const uint8_t *bytes, struct pgroup_record *r)
{
	static const uint8_t zero[4];
	struct wire_record w;

	memcpy(&w, bytes, sizeof(w));
	*r = (struct pgroup_record){
		.start = le64_get(w.start),
		.end = le64_get(w.end),
		.owner = le64_get(w.owner),
		.pid = le32_get(w.pid),
		.nodeid = le32_get(w.nodeid),
		.mode = w.ex ? RANGE_WRITE : RANGE_READ,
		.kind = (enum range_kind)le16_get(w.kind),
		.waiter = w.waiter,
	};
	return w.ex <= 1 && w.waiter <= 1 && !memcmp(w.zero, zero, 4);
}

static bool get_data(const uint8_t *bytes, size_t len, struct pgroup_msg *msg,
		     struct pgroup_parts *parts)
{
	struct wire_data w;
	uint32_t count, flags;

	if (len < sizeof(w))
		return false;
	memcpy(&w, bytes, sizeof(w));
	count = le32_get(w.count);
	flags = le32_get(w.flags);
	if (count > PGROUP_RECORDS || flags > (DATA_MORE | DATA_FLOCK) ||
	    len != sizeof(w) + count * sizeof(struct wire_record))
		return false;
	for (uint32_t i = 0; i < count; i++) {
		if (!get_record(bytes + sizeof(w) +
					i * sizeof(struct wire_record),
				&parts->records[i]))
			return false;
	}
	msg->number = le64_get(w.number);
	msg->owner = le32_get(w.owner);
	msg->gen = le32_get(w.gen);
	msg->more = flags & DATA_MORE;
	msg->table = flags & DATA_FLOCK ? PLOCK_FLOCK : PLOCK_FCNTL;
	msg->count = count;
	msg->records = parts->records;
	return true;
}

static bool get_body(const uint8_t *bytes, size_t len, uint32_t global_id,
		     struct pgroup_msg *msg, struct pgroup_parts *parts)
{
	switch (body_of(msg->type)) {
	case BODY_NONE:
		return !len;
	case BODY_START:
		return get_start(bytes, len, msg, parts);
	case BODY_OP:
		return get_op(bytes, len, global_id, msg);
	case BODY_DATA:
		return get_data(bytes, len, msg, parts);
	case BODY_BAD:
		break;
	}
	return false;
}

int pgroup_wire_decode(const uint8_t *bytes, size_t len, uint32_t global_id,
		       struct pgroup_msg *msg, struct pgroup_parts *parts)
{
	struct pgroup_msg out = { 0 };
	struct wire_head head;

	if (len < sizeof(head))
		return -EBADMSG;
	memcpy(&head, bytes, sizeof(head));
	for (unsigned i = 0; i < 3; i++) {
		if (le16_get(head.version[i]) != head_version[i])
			return -EPROTONOSUPPORT;
	}
	out.type = (enum pgroup_msg_type)le16_get(head.type);
	out.nodeid = le32_get(head.nodeid);
	out.to = le32_get(head.to);
	out.flags = le32_get(head.flags);
	out.change = le32_get(head.change);
	out.word = le32_get(head.word);
	out.inc = le64_get(head.inc);
	if (le32_get(head.global_id) != global_id ||
	    (out.flags && out.type != PGROUP_START) ||
	    !get_body(bytes + sizeof(head), len - sizeof(head), global_id, &out,
		      parts) ||
	    !msg_is_legal(&out))
		return -EBADMSG;
	*msg = out;
	return 0;
}
