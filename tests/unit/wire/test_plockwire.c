/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * test_plockwire.c - messages of application locks: there and back, every
 * truncation, every bound; bytes that are the same for ever.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <errno.h>
#include <string.h>
#include <cmocka.h>

#include "base/prng.h"
#include "wire/plockwire.h"

static struct ug_prng prng;

static uint64_t some(uint64_t limit)
{
	return ug_prng_below(&prng, limit);
}

static struct plock_record some_record(bool found)
{
	struct plock_record r = { .pid = (uint32_t)ug_prng_u64(&prng),
				  .owner = ug_prng_u64(&prng),
				  .start = some(100),
				  .end = some(2) ? RANGE_END : 100 };

	r.table = found ? PLOCK_FCNTL : (enum plock_table)some(2);
	r.kind =
		r.table == PLOCK_FLOCK ? RANGE_FLOCK : (enum range_kind)some(2);
	r.mode = (enum range_mode)(1 + some(2));
	return r;
}

static struct plock_op some_op(void)
{
	struct plock_op op = { .kind = (enum plock_op_kind)(1 + some(3)),
			       .table = (enum plock_table)some(2),
			       .mode = (enum range_mode)some(3),
			       .wait = some(2),
			       .fair = some(2),
			       .owner = ug_prng_u64(&prng),
			       .start = some(100),
			       .end = 100 + some(100),
			       .pid = (uint32_t)ug_prng_u64(&prng) };

	op.owner_kind = op.table == PLOCK_FLOCK ? RANGE_FLOCK
						: (enum range_kind)some(2);
	return op;
}

static void fill_body(struct plock_msg *msg)
{
	switch (msg->type) {
	case PLOCK_MSG_OP:
	case PLOCK_MSG_CANCEL:
		msg->op = some_op();
		break;
	case PLOCK_MSG_RESULT:
		msg->found = some_record(true);
		break;
	case PLOCK_MSG_TABLE:
	case PLOCK_MSG_RETURN:
	case PLOCK_MSG_REGISTER:
		msg->first = some(2);
		msg->last = some(2);
		msg->count = (uint8_t)some(PLOCK_RECORDS + 1);
		for (unsigned i = 0; i < msg->count; i++)
			msg->records[i] = some_record(false);
		break;
	case PLOCK_MSG_PROBE:
		msg->confirm = some(2);
		msg->op.owner = ug_prng_u64(&prng);
		msg->count = (uint8_t)(1 + some(PLOCK_HOPS));
		msg->at = (uint8_t)some(msg->count + 1u);
		for (unsigned i = 0; i < msg->count; i++)
			msg->hops[i] = (struct plock_hop){
				.who = { ug_prng_u64(&prng),
					 ug_prng_u64(&prng) },
				.id = ug_prng_u64(&prng),
				.number = ug_prng_u64(&prng),
				.table = (enum plock_table)some(2),
			};
		break;
	default:
		break;
	}
}

static void some_msg(struct plock_msg *msg)
{
	memset(msg, 0, sizeof(*msg));
	msg->type = (enum plock_msg_type)(1 + some(PLOCK_MSG_LAST));
	msg->epoch = ug_prng_u64(&prng);
	msg->number = ug_prng_u64(&prng);
	msg->gen = ug_prng_u64(&prng);
	msg->id = ug_prng_u64(&prng);
	msg->node = ug_prng_u64(&prng);
	msg->node_gen = ug_prng_u64(&prng);
	msg->status = -(int32_t)some(200);
	fill_body(msg);
}

static void test_there_and_back(void **state)
{
	uint8_t bytes[PLOCK_WIRE_MAX], again[PLOCK_WIRE_MAX];
	struct plock_msg msg, out;
	unsigned types = 0;

	(void)state;
	ug_prng_seed(&prng, 1);
	for (unsigned n = 0; n < 20000; n++) {
		long len;

		some_msg(&msg);
		types |= 1u << msg.type;
		len = plock_wire_encode(&msg, bytes, sizeof(bytes));
		assert_true(len > 0);
		assert_int_equal(
			plock_wire_encode(&msg, again, (size_t)len - 1),
			-EMSGSIZE);
		assert_int_equal(plock_wire_decode(bytes, sizeof(bytes), &out),
				 len);
		assert_int_equal(out.type, msg.type);
		assert_int_equal(out.status, msg.status);
		assert_int_equal(out.gen, msg.gen);
		assert_int_equal(plock_wire_encode(&out, again, sizeof(again)),
				 len);
		assert_memory_equal(bytes, again, (size_t)len);
		for (long cut = 0; cut < len; cut++)
			assert_int_equal(
				plock_wire_decode(bytes, (size_t)cut, &out),
				-EBADMSG);
	}
	assert_int_equal(types, (2u << PLOCK_MSG_LAST) - 2);
}

/* Whatever is accepted is encoded to the same bytes. */
static void test_changed_bytes(void **state)
{
	uint8_t bytes[PLOCK_WIRE_MAX], again[PLOCK_WIRE_MAX];
	struct plock_msg msg, out;
	unsigned refused = 0;

	(void)state;
	ug_prng_seed(&prng, 2);
	for (unsigned n = 0; n < 100000; n++) {
		long len, got;

		some_msg(&msg);
		len = plock_wire_encode(&msg, bytes, sizeof(bytes));
		bytes[some((uint64_t)len)] = (uint8_t)ug_prng_u64(&prng);
		got = plock_wire_decode(bytes, (size_t)len, &out);
		if (got < 0) {
			assert_int_equal(got, -EBADMSG);
			refused++;
			continue;
		}
		assert_int_equal(plock_wire_encode(&out, again, sizeof(again)),
				 got);
		assert_memory_equal(bytes, again, (size_t)got);
	}
	assert_true(refused > 5000);
}

static void test_bounds(void **state)
{
	uint8_t bytes[PLOCK_WIRE_MAX];
	struct plock_msg msg;

	(void)state;
	memset(&msg, 0, sizeof(msg));
	assert_int_equal(plock_wire_encode(&msg, bytes, sizeof(bytes)),
			 -EINVAL);
	msg.type = PLOCK_MSG_TABLE;
	msg.count = PLOCK_RECORDS + 1;
	assert_int_equal(plock_wire_encode(&msg, bytes, sizeof(bytes)),
			 -EINVAL);
	msg.count = 1; /* a lock without a mode */
	assert_int_equal(plock_wire_encode(&msg, bytes, sizeof(bytes)),
			 -EINVAL);
	msg.type = PLOCK_MSG_OP;
	msg.count = 0;
	msg.op = (struct plock_op){ .kind = PLOCK_SET,
				    .start = 1,
				    .end = RANGE_END };
	assert_true(plock_wire_encode(&msg, bytes, sizeof(bytes)) > 0);
	msg.op.end = RANGE_END + 1;
	assert_int_equal(plock_wire_encode(&msg, bytes, sizeof(bytes)),
			 -EINVAL);
	msg.op.end = 0;
	assert_int_equal(plock_wire_encode(&msg, bytes, sizeof(bytes)),
			 -EINVAL);
	msg.op.end = 1;
	msg.op.owner_kind = RANGE_FLOCK; /* in the fcntl table */
	assert_int_equal(plock_wire_encode(&msg, bytes, sizeof(bytes)),
			 -EINVAL);
}

static void test_bytes(void **state)
{
	static const uint8_t expected[] = {
		104,  0,    1,	  6,	0,    0,    0,	  0, /* length, version,
								type, status */
		7,    0,    0,	  0,	0,    0,    0,	  0, /* epoch */
		0x34, 0x12, 0,	  0,	0,    0,    0,	  0, /* file */
		1,    0,    0,	  0,	7,    0,    0,	  0, /* gen */
		9,    0,    0,	  0,	0,    0,    0,	  0, /* id */
		0,    0,    0,	  0,	0,    0,    0,	  0,	0,
		0,    0,    0,	  0,	0,    0,    0,	     /* node, gen */
		0,    0,    0,	  0,	0,    0,    0,	  0, /* flags, count, at
							      */
		1,    0,    1,	  2,	1,    0,    0,	  0, /* SET, fcntl, OFD,
								write, wait */
		0xef, 0xbe, 0,	  0,	0,    0,    0,	  0, /* owner */
		16,   0,    0,	  0,	0,    0,    0,	  0, /* start */
		0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x7f, /* end */
		0xd2, 4,    0,	  0,	0,    0,    0,	  0,	/* pid */
	};
	struct plock_msg msg = {
		.type = PLOCK_MSG_OP,
		.epoch = 7,
		.number = 0x1234,
		.gen = 7ull << 32 | 1,
		.id = 9,
		.op = { .kind = PLOCK_SET,
			.owner_kind = RANGE_OFD,
			.mode = RANGE_WRITE,
			.wait = true,
			.owner = 0xbeef,
			.start = 16,
			.end = RANGE_END,
			.pid = 1234 },
	};
	uint8_t bytes[PLOCK_WIRE_MAX];

	(void)state;
	assert_int_equal(plock_wire_encode(&msg, bytes, sizeof(bytes)),
			 sizeof(expected));
	assert_memory_equal(bytes, expected, sizeof(expected));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_there_and_back),
		cmocka_unit_test(test_changed_bytes),
		cmocka_unit_test(test_bounds),
		cmocka_unit_test(test_bytes),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
