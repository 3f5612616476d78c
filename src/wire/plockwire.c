/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * plockwire.c - a header that all messages have, then what the type says.
 *
 *	 0  length of all    8  epoch		   32  id
 *	 2  version 1	    16  number of the file 40  node
 *	 3  type	    24  gen		   48  node's gen
 *	 4  status				   56  flags, count, at, zero
 *
 *	OP, CANCEL: an op of 40 bytes	RESULT: a record of 32 bytes
 *	TABLE, REGISTER, RETURN: count records
 *	PROBE: 8 bytes of owner, then count hops of 40 bytes
 *
 * Fields that a type does not use are zero. As in dlmwire.c one test says what
 * is legal, for both directions; so what is decoded is encoded to the same
 * bytes.
 * Source: docs/spec/plocks.md 10.
 */
#include <assert.h>
#include <errno.h>
#include <stdbool.h>
#include <string.h>

#include "base/le.h"
#include "wire/plockwire.h"

#define VERSION 1

/* Status values travel as errno values, as those of dlmwire.c do. */
static_assert(EDEADLK == 35 && ENOLCK == 37 && ESTALE == 116,
	      "this architecture's errno values are not those of messages");

struct wire_head {
	le16 len;
	uint8_t version;
	uint8_t type;
	le32 status;
	le64 epoch;
	le64 number;
	le64 gen;
	le64 id;
	le64 node;
	le64 node_gen;
	uint8_t flags;
	uint8_t count;
	uint8_t at;
	uint8_t zero[5];
};
static_assert(sizeof(struct wire_head) == 64, "header of a message");

enum {
	WIRE_FIRST = 1,
	WIRE_LAST = 2,
	WIRE_CONFIRM = 4,
};

struct wire_op {
	uint8_t kind;
	uint8_t table;
	uint8_t owner_kind;
	uint8_t mode;
	uint8_t wait;
	uint8_t fair;
	uint8_t zero[2];
	le64 owner;
	le64 start;
	le64 end;
	le32 pid;
	uint8_t zero2[4];
};
static_assert(sizeof(struct wire_op) == 40, "an op");

struct wire_record {
	uint8_t table;
	uint8_t kind;
	uint8_t mode;
	uint8_t zero;
	le32 pid;
	le64 owner;
	le64 start;
	le64 end;
};
static_assert(sizeof(struct wire_record) == 32, "a record");

struct wire_hop {
	le64 node;
	le64 owner;
	le64 id;
	le64 number;
	uint8_t table;
	uint8_t zero[7];
};
static_assert(sizeof(struct wire_hop) == 40, "a hop");
static_assert(sizeof(struct wire_head) + 8 +
			      PLOCK_HOPS * sizeof(struct wire_hop) <=
		      PLOCK_WIRE_MAX,
	      "the longest message");

/* What follows the header */
enum body {
	BODY_NONE,
	BODY_OP,
	BODY_FOUND,
	BODY_RECORDS,
	BODY_HOPS,
	BODY_BAD, /* no such type */
};

static enum body body_of(unsigned type)
{
	switch ((enum plock_msg_type)type) {
	case PLOCK_MSG_ACQUIRE:
	case PLOCK_MSG_SERVES:
	case PLOCK_MSG_RELEASE:
	case PLOCK_MSG_FREED:
	case PLOCK_MSG_MOVED:
	case PLOCK_MSG_BOUNCE:
	case PLOCK_MSG_TAKEN:
	case PLOCK_MSG_LEND:
	case PLOCK_MSG_RECALL:
	case PLOCK_MSG_CLAIM:
	case PLOCK_MSG_DONE:
		return BODY_NONE;
	case PLOCK_MSG_OP:
	case PLOCK_MSG_CANCEL:
		return BODY_OP;
	case PLOCK_MSG_RESULT:
		return BODY_FOUND;
	case PLOCK_MSG_TABLE:
	case PLOCK_MSG_RETURN:
	case PLOCK_MSG_REGISTER:
		return BODY_RECORDS;
	case PLOCK_MSG_PROBE:
		return BODY_HOPS;
	}
	return BODY_BAD;
}

static size_t length_of(unsigned type, unsigned count)
{
	switch (body_of(type)) {
	case BODY_NONE:
		return sizeof(struct wire_head);
	case BODY_OP:
		return sizeof(struct wire_head) + sizeof(struct wire_op);
	case BODY_FOUND:
		return sizeof(struct wire_head) + sizeof(struct wire_record);
	case BODY_RECORDS:
		return sizeof(struct wire_head) +
		       count * sizeof(struct wire_record);
	case BODY_HOPS:
		return sizeof(struct wire_head) + 8 +
		       count * sizeof(struct wire_hop);
	case BODY_BAD:
		break;
	}
	return 0;
}

/* Legal */

static bool range_is_legal(uint64_t start, uint64_t end)
{
	return start <= end && end <= RANGE_END;
}

static bool kind_is_legal(enum plock_table table, enum range_kind kind)
{
	return table == PLOCK_FLOCK ? kind == RANGE_FLOCK
				    : table == PLOCK_FCNTL && kind <= RANGE_OFD;
}

static bool op_is_legal(const struct plock_op *op)
{
	return op->kind >= PLOCK_SET && op->kind <= PLOCK_CLOSE &&
	       op->mode <= RANGE_WRITE &&
	       kind_is_legal(op->table, op->owner_kind) &&
	       range_is_legal(op->start, op->end);
}

static bool record_is_legal(const struct plock_record *r)
{
	return (r->mode == RANGE_READ || r->mode == RANGE_WRITE) &&
	       kind_is_legal(r->table, r->kind) &&
	       range_is_legal(r->start, r->end);
}

/* RESULT: the table is not told, and there may be none. */
static bool found_is_legal(const struct plock_record *r)
{
	return r->mode <= RANGE_WRITE && r->kind <= RANGE_FLOCK && !r->table &&
	       range_is_legal(r->start, r->end);
}

static bool count_is_legal(const struct plock_msg *msg)
{
	switch (body_of(msg->type)) {
	case BODY_RECORDS:
		return msg->count <= PLOCK_RECORDS && !msg->at;
	case BODY_HOPS:
		return msg->count && msg->count <= PLOCK_HOPS &&
		       msg->at <= msg->count;
	case BODY_NONE:
	case BODY_OP:
	case BODY_FOUND:
	case BODY_BAD:
		break;
	}
	return !msg->count && !msg->at;
}

static bool body_is_legal(const struct plock_msg *msg)
{
	switch (body_of(msg->type)) {
	case BODY_NONE:
		return true;
	case BODY_OP:
		return op_is_legal(&msg->op);
	case BODY_FOUND:
		return found_is_legal(&msg->found);
	case BODY_RECORDS:
		for (unsigned i = 0; i < msg->count; i++) {
			if (!record_is_legal(&msg->records[i]))
				return false;
		}
		return true;
	case BODY_HOPS:
		for (unsigned i = 0; i < msg->count; i++) {
			if (msg->hops[i].table > PLOCK_FLOCK)
				return false;
		}
		return true;
	case BODY_BAD:
		break;
	}
	return false;
}

static bool msg_is_legal(const struct plock_msg *msg)
{
	return count_is_legal(msg) && body_is_legal(msg);
}

/* To bytes */

static void put_head(const struct plock_msg *msg, size_t len, uint8_t *buf)
{
	struct wire_head head = {
		.len = le16_of((uint16_t)len),
		.version = VERSION,
		.type = (uint8_t)msg->type,
		.status = le32_of((uint32_t)msg->status),
		.epoch = le64_of(msg->epoch),
		.number = le64_of(msg->number),
		.gen = le64_of(msg->gen),
		.id = le64_of(msg->id),
		.node = le64_of(msg->node),
		.node_gen = le64_of(msg->node_gen),
		.flags = (uint8_t)((msg->first ? WIRE_FIRST : 0) |
				   (msg->last ? WIRE_LAST : 0) |
				   (msg->confirm ? WIRE_CONFIRM : 0)),
		.count = msg->count,
		.at = msg->at,
	};

	memcpy(buf, &head, sizeof(head));
}

static void put_op(const struct plock_op *op, uint8_t *buf)
{
	struct wire_op w = { .kind = (uint8_t)op->kind,
			     .table = (uint8_t)op->table,
			     .owner_kind = (uint8_t)op->owner_kind,
			     .mode = (uint8_t)op->mode,
			     .wait = op->wait,
			     .fair = op->fair,
			     .owner = le64_of(op->owner),
			     .start = le64_of(op->start),
			     .end = le64_of(op->end),
			     .pid = le32_of(op->pid) };

	memcpy(buf, &w, sizeof(w));
}

static void put_record(const struct plock_record *r, uint8_t *buf)
{
	struct wire_record w = { .table = (uint8_t)r->table,
				 .kind = (uint8_t)r->kind,
				 .mode = (uint8_t)r->mode,
				 .pid = le32_of(r->pid),
				 .owner = le64_of(r->owner),
				 .start = le64_of(r->start),
				 .end = le64_of(r->end) };

	memcpy(buf, &w, sizeof(w));
}

static void put_hop(const struct plock_hop *hop, uint8_t *buf)
{
	struct wire_hop w = { .node = le64_of(hop->who.node),
			      .owner = le64_of(hop->who.owner),
			      .id = le64_of(hop->id),
			      .number = le64_of(hop->number),
			      .table = (uint8_t)hop->table };

	memcpy(buf, &w, sizeof(w));
}

static void put_body(const struct plock_msg *msg, uint8_t *buf)
{
	le64 owner = le64_of(msg->op.owner);

	switch (body_of(msg->type)) {
	case BODY_NONE:
	case BODY_BAD:
		return;
	case BODY_OP:
		put_op(&msg->op, buf);
		return;
	case BODY_FOUND:
		put_record(&msg->found, buf);
		return;
	case BODY_RECORDS:
		for (unsigned i = 0; i < msg->count; i++)
			put_record(&msg->records[i],
				   buf + i * sizeof(struct wire_record));
		return;
	case BODY_HOPS:
		memcpy(buf, &owner, sizeof(owner));
		for (unsigned i = 0; i < msg->count; i++)
			put_hop(&msg->hops[i],
				buf + 8 + i * sizeof(struct wire_hop));
		return;
	}
}

long plock_wire_encode(const struct plock_msg *msg, uint8_t *buf, size_t size)
{
	size_t len = length_of(msg->type, msg->count);

	if (!len || !msg_is_legal(msg))
		return -EINVAL;
	if (len > size)
		return -EMSGSIZE;
	put_head(msg, len, buf);
	put_body(msg, buf + sizeof(struct wire_head));
	return (long)len;
}

/* From bytes; false: a byte that means nothing is not zero, or a bool not 0, 1
 */

static bool all_zero(const uint8_t *bytes, size_t len)
{
	for (size_t i = 0; i < len; i++) {
		if (bytes[i])
			return false;
	}
	return true;
}

static bool get_op(const uint8_t *bytes, struct plock_op *op)
{
	struct wire_op w;

	memcpy(&w, bytes, sizeof(w));
	*op = (struct plock_op){ .kind = (enum plock_op_kind)w.kind,
				 .table = (enum plock_table)w.table,
				 .owner_kind = (enum range_kind)w.owner_kind,
				 .mode = (enum range_mode)w.mode,
				 .wait = w.wait,
				 .fair = w.fair,
				 .owner = le64_get(w.owner),
				 .start = le64_get(w.start),
				 .end = le64_get(w.end),
				 .pid = le32_get(w.pid) };
	return w.wait <= 1 && w.fair <= 1 && all_zero(w.zero, sizeof(w.zero)) &&
	       all_zero(w.zero2, sizeof(w.zero2));
}

static bool get_record(const uint8_t *bytes, struct plock_record *r)
{
	struct wire_record w;

	memcpy(&w, bytes, sizeof(w));
	*r = (struct plock_record){ .table = (enum plock_table)w.table,
				    .kind = (enum range_kind)w.kind,
				    .mode = (enum range_mode)w.mode,
				    .pid = le32_get(w.pid),
				    .owner = le64_get(w.owner),
				    .start = le64_get(w.start),
				    .end = le64_get(w.end) };
	return !w.zero;
}

static bool get_hop(const uint8_t *bytes, struct plock_hop *hop)
{
	struct wire_hop w;

	memcpy(&w, bytes, sizeof(w));
	*hop = (struct plock_hop){
		.who = { le64_get(w.node), le64_get(w.owner) },
		.id = le64_get(w.id),
		.number = le64_get(w.number),
		.table = (enum plock_table)w.table,
	};
	return all_zero(w.zero, sizeof(w.zero));
}

static bool get_body(const uint8_t *bytes, struct plock_msg *msg)
{
	bool good = true;
	le64 owner;

	switch (body_of(msg->type)) {
	case BODY_NONE:
		return true;
	case BODY_BAD:
		return false;
	case BODY_OP:
		return get_op(bytes, &msg->op);
	case BODY_FOUND:
		return get_record(bytes, &msg->found);
	case BODY_RECORDS:
		for (unsigned i = 0; i < msg->count; i++)
			good &= get_record(
				bytes + i * sizeof(struct wire_record),
				&msg->records[i]);
		return good;
	case BODY_HOPS:
		memcpy(&owner, bytes, sizeof(owner));
		msg->op.owner = le64_get(owner);
		for (unsigned i = 0; i < msg->count; i++)
			good &= get_hop(bytes + 8 + i * sizeof(struct wire_hop),
					&msg->hops[i]);
		return good;
	}
	return false;
}

static struct plock_msg msg_of(const struct wire_head *head)
{
	return (struct plock_msg){
		.type = (enum plock_msg_type)head->type,
		.epoch = le64_get(head->epoch),
		.number = le64_get(head->number),
		.gen = le64_get(head->gen),
		.id = le64_get(head->id),
		.node = le64_get(head->node),
		.node_gen = le64_get(head->node_gen),
		.status = (int32_t)le32_get(head->status),
		.first = head->flags & WIRE_FIRST,
		.last = head->flags & WIRE_LAST,
		.confirm = head->flags & WIRE_CONFIRM,
		.count = head->count,
		.at = head->at,
	};
}

long plock_wire_decode(const uint8_t *bytes, size_t len, struct plock_msg *msg)
{
	struct wire_head head;
	struct plock_msg out;

	if (len < sizeof(head))
		return -EBADMSG;
	memcpy(&head, bytes, sizeof(head));
	if (head.version != VERSION || le16_get(head.len) > len ||
	    head.flags > (WIRE_FIRST | WIRE_LAST | WIRE_CONFIRM) ||
	    !all_zero(head.zero, sizeof(head.zero)))
		return -EBADMSG;
	out = msg_of(&head);
	if (body_of(out.type) == BODY_BAD || !count_is_legal(&out) ||
	    le16_get(head.len) != length_of(out.type, out.count))
		return -EBADMSG;
	if (!get_body(bytes + sizeof(head), &out) || !body_is_legal(&out))
		return -EBADMSG;
	*msg = out;
	return le16_get(head.len);
}
