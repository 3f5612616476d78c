/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * test_pgroupwire.c - messages of plock_mode=group: there and back, every
 * truncation, every bound; bytes that are the same for ever.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <errno.h>
#include <string.h>
#include <cmocka.h>

#include "base/compiler.h"
#include "base/prng.h"
#include "wire/dlmwire.h"
#include "wire/pgroupwire.h"

#define VOLUME 0x12345678u

static const enum pgroup_msg_type types[] = {
	PGROUP_START,	  PGROUP_OP,	      PGROUP_OWN,   PGROUP_DROP,
	PGROUP_SYNC_LOCK, PGROUP_SYNC_WAITER, PGROUP_DONE,  PGROUP_DATA,
	PGROUP_GONE,	  PGROUP_RELEASE,     PGROUP_BEGIN,
};

static struct ug_prng prng;

static uint64_t some(uint64_t limit)
{
	return ug_prng_below(&prng, limit);
}

static uint32_t some_id(void)
{
	return 1 + (uint32_t)some(0x7fffffff);
}

static enum range_kind some_kind(enum plock_table table)
{
	return table == PLOCK_FLOCK ? RANGE_FLOCK : (enum range_kind)some(2);
}

static void some_op(struct pgroup_msg *msg)
{
	static const enum plock_op_kind kinds[] = { PLOCK_SET, PLOCK_GET,
						    PLOCK_CLOSE };
	struct plock_op *op = &msg->op;

	op->kind = msg->type == PGROUP_OP ? kinds[some(3)] : PLOCK_SET;
	op->table = (enum plock_table)some(2);
	op->owner_kind = some_kind(op->table);
	op->mode = op->kind == PLOCK_CLOSE ? RANGE_NONE
					   : (enum range_mode)(1 + some(2));
	if (op->kind == PLOCK_SET && msg->type == PGROUP_OP && !some(3))
		op->mode = RANGE_NONE;
	op->wait = msg->type == PGROUP_SYNC_WAITER ||
		   (msg->type == PGROUP_OP && op->kind == PLOCK_SET &&
		    op->mode != RANGE_NONE && some(2));
	msg->cancel = msg->type == PGROUP_OP && op->wait && some(2);
	op->owner = ug_prng_u64(&prng);
	op->pid = (uint32_t)ug_prng_u64(&prng);
	op->start = op->kind == PLOCK_CLOSE ? 0 : some(100);
	op->end = op->kind == PLOCK_CLOSE ? RANGE_END : 100 + some(100);
}

static void some_data(struct pgroup_msg *msg, struct pgroup_parts *parts)
{
	msg->owner = some(2) ? PGROUP_GONE_BIT | 5 : some_id();
	msg->gen = (uint32_t)ug_prng_u64(&prng);
	msg->more = some(2);
	msg->count = (uint32_t)some(PGROUP_RECORDS + 1);
	msg->records = parts->records;
	for (uint32_t i = 0; i < msg->count; i++)
		parts->records[i] = (struct pgroup_record){
			.start = some(100),
			.end = some(2) ? RANGE_END : 100,
			.owner = ug_prng_u64(&prng),
			.pid = (uint32_t)ug_prng_u64(&prng),
			.nodeid = some(2) ? PGROUP_GONE_BIT | 7 : some_id(),
			.mode = (enum range_mode)(1 + some(2)),
			.kind = some_kind(msg->table),
			.waiter = some(2),
		};
}

static void some_start(struct pgroup_msg *msg, struct pgroup_parts *parts)
{
	msg->flags = (uint32_t)some(4) | (some(2) ? PGROUP_OWNERSHIP : 0);
	msg->word = (uint32_t)ug_prng_u64(&prng);
	msg->start.started = (uint32_t)ug_prng_u64(&prng);
	msg->start.joined = (uint32_t)some(9);
	msg->start.removed = (uint32_t)some(9);
	msg->start.failed = (uint32_t)some(9);
	msg->start.count = 1 + (uint32_t)some(PLOCK_NODES_MAX);
	msg->start.ids = parts->ids;
	for (uint32_t i = 0; i < msg->start.count; i++)
		parts->ids[i] = some_id();
}

static void some_msg(struct pgroup_msg *msg, struct pgroup_parts *parts)
{
	memset(msg, 0, sizeof(*msg));
	msg->type = types[some(UG_ARRAY_SIZE(types))];
	msg->nodeid = some_id();
	msg->to = some(2) ? some_id() : 0;
	switch (msg->type) {
	case PGROUP_START:
		some_start(msg, parts);
		break;
	case PGROUP_OP:
		msg->word = (uint32_t)ug_prng_u64(&prng);
		some_op(msg);
		break;
	case PGROUP_SYNC_LOCK:
	case PGROUP_SYNC_WAITER:
		some_op(msg);
		break;
	case PGROUP_OWN:
		msg->owner = some(2) ? msg->nodeid : 0;
		msg->table = (enum plock_table)some(2);
		break;
	case PGROUP_DROP:
		msg->table = (enum plock_table)some(2);
		break;
	case PGROUP_DATA:
		msg->table = (enum plock_table)some(2);
		some_data(msg, parts);
		break;
	case PGROUP_DONE:
	case PGROUP_GONE:
		msg->word = (uint32_t)some(PGROUP_GONE_BIT);
		break;
	case PGROUP_RELEASE:
	case PGROUP_BEGIN:
		break;
	}
	if (msg->type == PGROUP_START || msg->type == PGROUP_DATA ||
	    msg->type == PGROUP_DONE || msg->type == PGROUP_GONE ||
	    msg->type == PGROUP_BEGIN)
		msg->change = (uint32_t)ug_prng_u64(&prng);
	if (msg->type == PGROUP_START || msg->type == PGROUP_GONE ||
	    msg->type == PGROUP_RELEASE || msg->type == PGROUP_DONE)
		msg->inc = ug_prng_u64(&prng);
	if (msg->type != PGROUP_START && msg->type != PGROUP_DONE &&
	    msg->type != PGROUP_BEGIN && msg->type != PGROUP_GONE &&
	    msg->type != PGROUP_RELEASE)
		msg->number = ug_prng_u64(&prng);
}

static void assert_same_op(const struct plock_op *a, const struct plock_op *b)
{
	assert_int_equal(a->kind, b->kind);
	assert_int_equal(a->table, b->table);
	assert_int_equal(a->owner_kind, b->owner_kind);
	assert_int_equal(a->mode, b->mode);
	assert_int_equal(a->wait, b->wait);
	assert_int_equal(a->owner, b->owner);
	assert_int_equal(a->start, b->start);
	assert_int_equal(a->end, b->end);
	assert_int_equal(a->pid, b->pid);
}

static void assert_same_record(const struct pgroup_record *a,
			       const struct pgroup_record *b)
{
	assert_int_equal(a->start, b->start);
	assert_int_equal(a->end, b->end);
	assert_int_equal(a->owner, b->owner);
	assert_int_equal(a->pid, b->pid);
	assert_int_equal(a->nodeid, b->nodeid);
	assert_int_equal(a->mode, b->mode);
	assert_int_equal(a->kind, b->kind);
	assert_int_equal(a->waiter, b->waiter);
}

static void assert_same(const struct pgroup_msg *a, const struct pgroup_msg *b)
{
	assert_int_equal(a->type, b->type);
	assert_int_equal(a->nodeid, b->nodeid);
	assert_int_equal(a->to, b->to);
	assert_int_equal(a->flags, b->flags);
	assert_int_equal(a->change, b->change);
	assert_int_equal(a->word, b->word);
	assert_int_equal(a->inc, b->inc);
	assert_int_equal(a->number, b->number);
	assert_int_equal(a->table, b->table);
	assert_int_equal(a->cancel, b->cancel);
	assert_int_equal(a->owner, b->owner);
	assert_int_equal(a->gen, b->gen);
	assert_int_equal(a->more, b->more);
	assert_same_op(&a->op, &b->op);
	assert_int_equal(a->start.started, b->start.started);
	assert_int_equal(a->start.joined, b->start.joined);
	assert_int_equal(a->start.removed, b->start.removed);
	assert_int_equal(a->start.failed, b->start.failed);
	assert_int_equal(a->start.count, b->start.count);
	for (uint32_t i = 0; i < a->start.count; i++)
		assert_int_equal(a->start.ids[i], b->start.ids[i]);
	assert_int_equal(a->count, b->count);
	for (uint32_t i = 0; i < a->count; i++)
		assert_same_record(&a->records[i], &b->records[i]);
}

static void test_there_and_back(void **state)
{
	static uint8_t bytes[PGROUP_WIRE_MAX + 1], again[PGROUP_WIRE_MAX];
	static struct pgroup_parts parts, out_parts;
	struct pgroup_msg msg, out;
	uint64_t seen = 0;

	(void)state;
	ug_prng_seed(&prng, 1);
	for (unsigned n = 0; n < 5000; n++) {
		long len;

		some_msg(&msg, &parts);
		seen |= 1ull << (msg.type & 31);
		len = pgroup_wire_encode(&msg, VOLUME, bytes, PGROUP_WIRE_MAX);
		assert_true(len > 0);
		assert_int_equal(pgroup_wire_encode(&msg, VOLUME, again,
						    (size_t)len - 1),
				 -EMSGSIZE);
		assert_int_equal(pgroup_wire_decode(bytes, (size_t)len, VOLUME,
						    &out, &out_parts),
				 0);
		assert_same(&msg, &out);
		assert_int_equal(
			pgroup_wire_encode(&out, VOLUME, again, sizeof(again)),
			len);
		assert_memory_equal(bytes, again, (size_t)len);
		for (long cut = 0; cut <= len + 1; cut++) {
			if (cut != len)
				assert_int_equal(
					pgroup_wire_decode(bytes, (size_t)cut,
							   VOLUME, &out,
							   &out_parts),
					-EBADMSG);
		}
		assert_int_equal(pgroup_wire_decode(bytes, (size_t)len,
						    VOLUME + 1, &out,
						    &out_parts),
				 -EBADMSG);
		bytes[2]++; /* 3.2 */
		assert_int_equal(pgroup_wire_decode(bytes, (size_t)len, VOLUME,
						    &out, &out_parts),
				 -EPROTONOSUPPORT);
	}
	assert_int_equal(seen, 0x3ff);
}

/* Whatever is accepted is encoded to the same bytes. */
static void test_changed_bytes(void **state)
{
	static uint8_t bytes[PGROUP_WIRE_MAX], again[PGROUP_WIRE_MAX];
	static struct pgroup_parts parts, out_parts;
	struct pgroup_msg msg, out;
	unsigned refused = 0;

	(void)state;
	ug_prng_seed(&prng, 2);
	for (unsigned n = 0; n < 100000; n++) {
		long len;

		some_msg(&msg, &parts);
		len = pgroup_wire_encode(&msg, VOLUME, bytes, sizeof(bytes));
		bytes[some((uint64_t)len)] = (uint8_t)ug_prng_u64(&prng);
		if (pgroup_wire_decode(bytes, (size_t)len, VOLUME, &out,
				       &out_parts)) {
			refused++;
			continue;
		}
		assert_int_equal(
			pgroup_wire_encode(&out, VOLUME, again, sizeof(again)),
			len);
		assert_memory_equal(bytes, again, (size_t)len);
	}
	assert_true(refused > 20000);
}

static long encode(const struct pgroup_msg *msg)
{
	uint8_t bytes[PGROUP_WIRE_MAX];

	return pgroup_wire_encode(msg, VOLUME, bytes, sizeof(bytes));
}

static void test_bounds(void **state)
{
	static struct pgroup_parts parts;
	struct pgroup_msg msg = { .type = PGROUP_OP, .nodeid = 1 };

	(void)state;
	assert_int_equal(encode(&msg), -EINVAL); /* no kind */
	msg.op = (struct plock_op){ .kind = PLOCK_SET,
				    .mode = RANGE_READ,
				    .start = 1,
				    .end = RANGE_END };
	assert_int_equal(encode(&msg), 104);
	msg.op.end = RANGE_END + 1;
	assert_int_equal(encode(&msg), -EINVAL);
	msg.op.end = 0; /* before start */
	assert_int_equal(encode(&msg), -EINVAL);
	msg.op.end = 1;
	msg.op.owner_kind = RANGE_FLOCK; /* in the fcntl table */
	assert_int_equal(encode(&msg), -EINVAL);
	msg.op.owner_kind = RANGE_POSIX;
	msg.cancel = true; /* of what does not wait */
	assert_int_equal(encode(&msg), -EINVAL);
	msg.op.wait = true;
	assert_int_equal(encode(&msg), 104);
	msg.nodeid = PGROUP_GONE_BIT | 1;
	assert_int_equal(encode(&msg), -EINVAL);
	msg = (struct pgroup_msg){ .type = PGROUP_OWN,
				   .nodeid = 1,
				   .owner = 2 }; /* another's */
	assert_int_equal(encode(&msg), -EINVAL);
	msg.owner = 1;
	assert_int_equal(encode(&msg), 104);
	msg = (struct pgroup_msg){ .type = PGROUP_DATA,
				   .nodeid = 1,
				   .count = PGROUP_RECORDS + 1,
				   .records = parts.records };
	assert_int_equal(encode(&msg), -EINVAL);
	msg.count = 1; /* a lock without a mode */
	assert_int_equal(encode(&msg), -EINVAL);
	msg.type = (enum pgroup_msg_type)20;
	assert_int_equal(encode(&msg), -EINVAL);
}

/* docs/spec/dlm.md 12.2: a START of a stock daemon */
static void test_bytes_of_a_start(void **state)
{
	static const uint8_t bytes[] = {
		3,    0,    1,	  0,	1, 0, 2, 0, 1,	  0, 0, 0, 0, 0, 0, 0,
		0xaf, 0x88, 0x78, 0x53, 1, 0, 0, 0, 1,	  0, 0, 0, 0, 0, 0, 0,
		0,    0,    0,	  0,	0, 0, 0, 0, 0x20, 0, 0, 0, 4, 0, 0, 0,
		2,    0,    0,	  0,	0, 0, 0, 0, 2,	  0, 0, 0, 1, 0, 0, 0,
		0,    0,    0,	  0,	0, 0, 0, 0, 1,	  0, 0, 0, 2, 0, 0, 0,
	};
	uint32_t volume = dlm_wire_lockspace_id("default", 7);
	static struct pgroup_parts parts;
	uint8_t again[sizeof(bytes)];
	struct pgroup_msg msg;

	(void)state;
	assert_int_equal(
		pgroup_wire_decode(bytes, sizeof(bytes), volume, &msg, &parts),
		0);
	assert_int_equal(msg.type, PGROUP_START);
	assert_int_equal(msg.nodeid, 1);
	assert_int_equal(msg.flags, PGROUP_JOINING);
	assert_int_equal(msg.change, 1);
	assert_int_equal(msg.start.joined, 1);
	assert_int_equal(msg.start.count, 2);
	assert_int_equal(msg.start.ids[0], 1);
	assert_int_equal(msg.start.ids[1], 2);
	assert_int_equal(pgroup_wire_encode(&msg, volume, again, sizeof(again)),
			 sizeof(again));
	assert_memory_equal(bytes, again, sizeof(again));
}

static void test_bytes_of_an_op(void **state)
{
	static const uint8_t expected[] = {
		3,    0,    1,	  0,	1,
		0,    3,    0, /* version, type */
		2,    0,    0,	  0,	0,
		0,    0,    0, /* nodeid, to */
		0xaf, 0x88, 0x78, 0x53, 0,
		0,    0,    0, /* id, flags */
		0,    0,    0,	  0,	9,
		0,    0,    0, /* msgdata, 2 */
		0,    0,    0,	  0,	0,
		0,    0,    0, /* pad */
		1,    0,    0,	  0,	2,
		0,    0,    0, /* version */
		0,    0,    0,	  0,	1,
		1,    1,    4, /* lock, ex, wait,
				  OFD */
		0xd2, 4,    0,	  0,	2,
		0,    0,    0, /* pid, nodeid */
		0,    0,    0,	  0,	0xaf,
		0x88, 0x78, 0x53, /* rv, fsid */
		0x34, 0x12, 0,	  0,	0,
		0,    0,    0, /* number */
		16,   0,    0,	  0,	0,
		0,    0,    0, /* start */
		0xff, 0xff, 0xff, 0xff, 0xff,
		0xff, 0xff, 0x7f, /* end */
		0xef, 0xbe, 0,	  0,	0,
		0,    0,    0, /* owner */
	};
	struct pgroup_msg msg = {
		.type = PGROUP_OP,
		.nodeid = 2,
		.word = 9,
		.number = 0x1234,
		.op = { .kind = PLOCK_SET,
			.owner_kind = RANGE_OFD,
			.mode = RANGE_WRITE,
			.wait = true,
			.owner = 0xbeef,
			.start = 16,
			.end = RANGE_END,
			.pid = 1234 },
	};
	uint8_t bytes[PGROUP_WIRE_MAX];

	(void)state;
	assert_int_equal(
		pgroup_wire_encode(&msg, 0x537888af, bytes, sizeof(bytes)),
		sizeof(expected));
	assert_memory_equal(bytes, expected, sizeof(expected));
}

static void test_bytes_of_data(void **state)
{
	static const uint8_t expected[] = {
		3,    0,    1,	  0,	1, 0, 9, 0, /* version, type */
		1,    0,    0,	  0,	3, 0, 0, 0, /* nodeid, to */
		0xaf, 0x88, 0x78, 0x53, 0, 0, 0, 0, /* id, flags */
		4,    0,    0,	  0,	0, 0, 0, 0, /* msgdata, 2 */
		0,    0,    0,	  0,	0, 0, 0, 0, /* pad */
		0x34, 0x12, 0,	  0,	0, 0, 0, 0, /* number */
		0,    0,    0,	  0,	1, 0, 0, 0, /* owner, count */
		1,    0,    0,	  0,	6, 0, 0, 0, /* more, gen */
		16,   0,    0,	  0,	0, 0, 0, 0, /* start */
		31,   0,    0,	  0,	0, 0, 0, 0, /* end */
		0xef, 0xbe, 0,	  0,	0, 0, 0, 0, /* owner */
		0xd2, 4,    0,	  0,	2, 0, 0, 0, /* pid, nodeid */
		1,    1,    0,	  0,	0, 0, 0, 0, /* ex, waiter */
	};
	struct pgroup_record record = { .start = 16,
					.end = 31,
					.owner = 0xbeef,
					.pid = 1234,
					.nodeid = 2,
					.mode = RANGE_WRITE,
					.waiter = true };
	struct pgroup_msg msg = { .type = PGROUP_DATA,
				  .nodeid = 1,
				  .to = 3,
				  .change = 4,
				  .number = 0x1234,
				  .gen = 6,
				  .more = true,
				  .count = 1,
				  .records = &record };
	uint8_t bytes[PGROUP_WIRE_MAX];

	(void)state;
	assert_int_equal(
		pgroup_wire_encode(&msg, 0x537888af, bytes, sizeof(bytes)),
		sizeof(expected));
	assert_memory_equal(bytes, expected, sizeof(expected));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_there_and_back),
		cmocka_unit_test(test_changed_bytes),
		cmocka_unit_test(test_bounds),
		cmocka_unit_test(test_bytes_of_a_start),
		cmocka_unit_test(test_bytes_of_an_op),
		cmocka_unit_test(test_bytes_of_data),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
