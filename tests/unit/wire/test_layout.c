/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * test_layout.c - packets against the tables and vectors of the specification:
 * each byte is put where docs/spec/dlm.md says, by number, and must be found
 * there by the codec.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "wire/dlmwire.h"

#define DEFAULT_ID 0x537888afu /* of the lockspace "default" */

static uint8_t packet[DLM_WIRE_MAX], again[DLM_WIRE_MAX];

/* An integer of size bytes, little-endian. */
static void put(unsigned offset, unsigned size, uint64_t value)
{
	for (unsigned i = 0; i < size; i++)
		packet[offset + i] = (uint8_t)(value >> 8 * i);
}

static void begin(unsigned len, uint8_t command)
{
	memset(packet, 0, sizeof(packet));
	put(0, 4, 0x00030001);
	put(4, 4, DEFAULT_ID);
	put(8, 4, 0x01020304);
	put(12, 2, len);
	put(14, 1, command);
}

static struct dlm_msg decode(unsigned len)
{
	struct dlm_msg msg;

	memset(&msg, 0xa5, sizeof(msg));
	assert_int_equal(dlm_wire_length(packet, len), len);
	assert_int_equal(dlm_wire_decode(packet, len, DEFAULT_ID, &msg), 0);
	return msg;
}

static void expect_packet(const struct dlm_msg *msg, unsigned len)
{
	memset(again, 0x5a, sizeof(again));
	assert_int_equal(dlm_wire_encode(msg, DEFAULT_ID, again, sizeof(again)),
			 len);
	assert_memory_equal(packet, again, len);
	assert_int_equal(again[len], 0x5a);
}

/* 12.1 */
static void test_lockspace_ids(void **state)
{
	static const struct {
		const char *name;
		uint32_t id;
	} vectors[] = {
		{ "clvmd", 0x4104eefa },      { "default", DEFAULT_ID },
		{ "lvm_global", 0x12aabd2d }, { "rgmanager", 0x5231f3eb },
		{ "test", 0x77222027 },	      { "gfs2test", 0x92b21727 },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(vectors) / sizeof(vectors[0]); i++)
		assert_int_equal(dlm_wire_lockspace_id(vectors[i].name,
						       strlen(vectors[i].name)),
				 vectors[i].id);
}

/* 12.3; the packets of the vectors are stamped 3.2, ours 3.1. */
static void take_vector(const uint8_t *bytes, unsigned len)
{
	memset(packet, 0, sizeof(packet));
	memcpy(packet, bytes, len);
	assert_int_equal(packet[0], 2);
}

static void test_vector_status(void **state)
{
	static const uint8_t bytes[64] = {
		0x02, 0x00, 0x03, 0x00, 0xaf, 0x88, 0x78, 0x53, 0x01,
		0x00, 0x00, 0x00, 0x40, 0x00, 0x02, 0x00, 0x01, 0x00,
		0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x88, 0x77, 0x66,
		0x55, 0x44, 0x33, 0x22, 0x11, 0x02, 0x00, 0x00, 0x00,
	};
	struct dlm_msg msg;

	(void)state;
	take_vector(bytes, sizeof(bytes));
	msg = decode(sizeof(bytes));
	assert_int_equal(msg.kind, DLM_RCOM);
	assert_int_equal(msg.from, 1);
	assert_int_equal(msg.rc.type, DLM_RCOM_STATUS);
	assert_int_equal(msg.rc.id, 0x1122334455667788);
	assert_int_equal(msg.rc.seq, 2);
	assert_int_equal(msg.rc.seq_reply, 0);
	assert_false(msg.rc.need_slots);
	packet[0] = 1;
	expect_packet(&msg, sizeof(bytes));
}

static void test_vector_status_reply(void **state)
{
	static const uint8_t bytes[80] = {
		0x02, 0x00, 0x03, 0x00, 0xaf, 0x88, 0x78, 0x53, 0x02, 0x00,
		0x00, 0x00, 0x50, 0x00, 0x02, 0x00, 0x05, 0x00, 0x00, 0x00,
		0x01, 0x00, 0x00, 0x00, 0x88, 0x77, 0x66, 0x55, 0x44, 0x33,
		0x22, 0x11, 0x04, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00,
		0x02, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x20,
	};
	struct dlm_msg msg;

	(void)state;
	take_vector(bytes, sizeof(bytes));
	msg = decode(sizeof(bytes));
	assert_int_equal(msg.from, 2);
	assert_int_equal(msg.rc.type, DLM_RCOM_STATUS_REPLY);
	assert_int_equal(msg.rc.result, 1);
	assert_int_equal(msg.rc.id, 0x1122334455667788);
	assert_int_equal(msg.rc.seq, 4);
	assert_int_equal(msg.rc.seq_reply, 2);
	assert_int_equal(msg.rc.status.lvblen, 32);
	assert_int_equal(msg.rc.status.our_slot, 0);
	assert_null(msg.rc.slots);
	packet[0] = 1;
	expect_packet(&msg, sizeof(bytes));
}

static void test_vector_request(void **state)
{
	static const uint8_t bytes[96] = {
		0x02, 0x00, 0x03, 0x00, 0xaf, 0x88, 0x78, 0x53, 0x01, 0x00,
		0x00, 0x00, 0x60, 0x00, 0x01, 0x00, 0x01, 0x00, 0x00, 0x00,
		0x02, 0x00, 0x00, 0x00, 0xe8, 0x03, 0x00, 0x00, 0x01, 0x00,
		0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00,
		0x00, 0x00, 0x00, 0x00, 0x08, 0x00, 0x00, 0x00, 0x00, 0x00,
		0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00,
		0x58, 0xba, 0xec, 0x6d, 0x00, 0x00, 0x00, 0x00, 0xff, 0xff,
		0xff, 0xff, 0x03, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00,
		0x03, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x74, 0x65,
		0x73, 0x74, 0x30, 0x30, 0x30, 0x31,
	};
	struct dlm_msg msg;

	(void)state;
	take_vector(bytes, sizeof(bytes));
	msg = decode(sizeof(bytes));
	assert_int_equal(msg.kind, DLM_MSG);
	assert_int_equal(msg.from, 1);
	assert_int_equal(msg.m.type, DLM_MSG_REQUEST);
	assert_int_equal(msg.m.nodeid, 2);
	assert_int_equal(msg.m.pid, 1000);
	assert_int_equal(msg.m.lkid, 1);
	assert_int_equal(msg.m.exflags, LKF_VALBLK);
	assert_int_equal(msg.m.hash, dlm_hash("test0001", 8));
	assert_int_equal(msg.m.grmode, LKM_IV);
	assert_int_equal(msg.m.rqmode, LKM_PR);
	assert_int_equal(msg.m.asts, DLM_WANTS_CAST | DLM_WANTS_BAST);
	assert_int_equal(msg.m.extra_len, 8);
	assert_memory_equal(msg.m.extra, "test0001", 8);
	packet[0] = 1;
	expect_packet(&msg, sizeof(bytes));
}

static void test_vector_names(void **state)
{
	static const uint8_t records[] = {
		0x00, 0x08, 0x74, 0x65, 0x73, 0x74, 0x30, 0x30, 0x30,
		0x31, 0x00, 0x03, 0x61, 0x62, 0x63, 0xff, 0xff,
	};
	struct dlm_msg msg;

	(void)state;
	begin(4072, 2);
	put(16, 4, 6);
	memcpy(packet + 48, records, sizeof(records));
	msg = decode(4072);
	assert_int_equal(msg.rc.type, DLM_RCOM_NAMES_REPLY);
	assert_true(msg.rc.names->last);
	assert_int_equal(msg.rc.names->len, 15);
	assert_memory_equal(msg.rc.names->bytes, records, 15);
	expect_packet(&msg, 4072);
	dlm_msg_release(&msg);

	/* the same without an end to the list: zero bytes instead */
	packet[48 + 15] = packet[48 + 16] = 0;
	msg = decode(4072);
	assert_false(msg.rc.names->last);
	assert_int_equal(msg.rc.names->len, 15);
	expect_packet(&msg, 4072);
	dlm_msg_release(&msg);
}

/* 4.2: every integer has a value of its own. */
static void test_msg_offsets(void **state)
{
	struct dlm_msg msg;

	(void)state;
	begin(88 + 16, 1);
	put(16, 4, 9); /* GRANT */
	put(20, 4, 0x20212223);
	put(24, 4, 0x24252627);
	put(28, 4, 0x28292a2b);
	put(32, 4, 0x32333435);
	put(44, 4, 0x44454647);
	put(48, 4, 0x48494a4b);
	put(52, 4, 0x52535455);
	put(56, 4, 0x56575859);
	put(60, 4, 0x60616263);
	put(64, 4, 2);
	put(68, 4, 3);
	put(72, 4, 0xffffffff);
	put(76, 4, 5);
	put(80, 4, 0x80818283);
	put(84, 4, 0xfffefffe);
	for (unsigned i = 0; i < 16; i++)
		packet[88 + i] = (uint8_t)(0xe0 + i);
	msg = decode(88 + 16);
	assert_int_equal(msg.from, 0x01020304);
	assert_int_equal(msg.to, 0);
	assert_int_equal(msg.to_incarnation, 0);
	assert_int_equal(msg.m.type, DLM_MSG_GRANT);
	assert_int_equal(msg.m.nodeid, 0x20212223);
	assert_int_equal(msg.m.pid, 0x24252627);
	assert_int_equal(msg.m.lkid, 0x28292a2b);
	assert_int_equal(msg.m.remid, 0x32333435);
	assert_int_equal(msg.m.exflags, 0x44454647);
	assert_int_equal(msg.m.sbflags, 0x48494a4b);
	assert_int_equal(msg.m.flags, 0x52535455);
	assert_int_equal(msg.m.lvbseq, 0x56575859);
	assert_int_equal(msg.m.hash, 0x60616263);
	assert_int_equal(msg.m.status, LKS_GRANTED);
	assert_int_equal(msg.m.grmode, LKM_PR);
	assert_int_equal(msg.m.rqmode, LKM_IV);
	assert_int_equal(msg.m.bastmode, LKM_EX);
	assert_int_equal(msg.m.asts, 0x80818283);
	assert_int_equal(msg.m.result, -0x10002); /* DLM_EUNLOCK */
	assert_int_equal(msg.m.extra_len, 16);
	assert_memory_equal(msg.m.extra, packet + 88, 16);
	expect_packet(&msg, 88 + 16);
}

/* 4.3, the table of STATUS_REPLY */
static void test_status_reply_offsets(void **state)
{
	struct dlm_msg msg;

	(void)state;
	begin(48 + 32 + 2 * 16, 2);
	put(16, 4, 5);
	put(20, 4, 0xc0);
	put(24, 8, 0x2425262728292a2b);
	put(32, 8, 0x3233343536373839);
	put(40, 8, 0x4041424344454647);
	put(48 + 0, 4, 64);
	put(48 + 4, 4, 0x05060708);
	put(48 + 12, 2, 0x1213);
	put(48 + 14, 2, 2);
	put(48 + 16, 4, 0x16171819);
	put(48 + 32, 4, 0x01020304);
	put(48 + 36, 2, 0x1213);
	put(48 + 48, 4, 0x7fffffff);
	put(48 + 52, 2, 1);
	msg = decode(48 + 32 + 2 * 16);
	assert_int_equal(msg.rc.result, 0xc0);
	assert_int_equal(msg.rc.id, 0x2425262728292a2b);
	assert_int_equal(msg.rc.seq, 0x3233343536373839);
	assert_int_equal(msg.rc.seq_reply, 0x4041424344454647);
	assert_int_equal(msg.rc.status.lvblen, 64);
	assert_int_equal(msg.rc.status.lsflags, 0x05060708);
	assert_int_equal(msg.rc.status.our_slot, 0x1213);
	assert_int_equal(msg.rc.status.generation, 0x16171819);
	assert_int_equal(msg.rc.slots->count, 2);
	assert_int_equal(msg.rc.slots->slot[0].nodeid, 0x01020304);
	assert_int_equal(msg.rc.slots->slot[0].slot, 0x1213);
	assert_int_equal(msg.rc.slots->slot[1].nodeid, 0x7fffffff);
	assert_int_equal(msg.rc.slots->slot[1].slot, 1);
	expect_packet(&msg, 48 + 32 + 2 * 16);
	dlm_msg_release(&msg);
}

/* 4.3: bit 0 of the flags of STATUS */
static void test_status_need_slots(void **state)
{
	struct dlm_msg msg;

	(void)state;
	begin(64, 2);
	put(16, 4, 1);
	put(48, 4, 1);
	msg = decode(64);
	assert_true(msg.rc.need_slots);
	expect_packet(&msg, 64);
}

/* 4.3, the table of LOCK */
static void test_lock_offsets(void **state)
{
	struct dlm_msg msg;

	(void)state;
	begin(48 + 108 + 8, 2);
	put(16, 4, 4);
	put(48 + 0, 4, 0x00010203);
	put(48 + 4, 4, 0x04050607);
	put(48 + 8, 4, 0x08090a0b);
	put(48 + 20, 4, 0x20212223);
	put(48 + 24, 4, 0x24252627);
	put(48 + 28, 4, 0x28292a2b);
	put(48 + 32, 4, 0xffffffcb); /* EBADR */
	put(48 + 36, 1, 4);
	put(48 + 37, 1, 0xff);
	put(48 + 38, 1, 1);
	put(48 + 39, 1, 3);
	put(48 + 40, 2, 2);
	put(48 + 42, 2, 5);
	memcpy(packet + 48 + 44, "n\0me!", 5);
	memcpy(packet + 48 + 108, "lvb-lvb-", 8);
	msg = decode(48 + 108 + 8);
	assert_int_equal(msg.rc.type, DLM_RCOM_LOCK);
	assert_int_equal(msg.rc.lock.ownpid, 0x00010203);
	assert_int_equal(msg.rc.lock.lkid, 0x04050607);
	assert_int_equal(msg.rc.lock.remid, 0x08090a0b);
	assert_int_equal(msg.rc.lock.exflags, 0x20212223);
	assert_int_equal(msg.rc.lock.flags, 0x24252627);
	assert_int_equal(msg.rc.lock.lvbseq, 0x28292a2b);
	assert_int_equal(msg.rc.lock.result, -EBADR);
	assert_int_equal(msg.rc.lock.rqmode, LKM_PW);
	assert_int_equal(msg.rc.lock.grmode, LKM_IV);
	assert_int_equal(msg.rc.lock.status, LKS_WAITING);
	assert_int_equal(msg.rc.lock.asts, 3);
	assert_int_equal(msg.rc.lock.wait_type, DLM_MSG_CONVERT);
	assert_int_equal(msg.rc.lock.name.len, 5);
	assert_memory_equal(msg.rc.lock.name.bytes, "n\0me!", 5);
	assert_int_equal(msg.rc.lock.lvb_len, 8);
	assert_memory_equal(msg.rc.lock.lvb, "lvb-lvb-", 8);
	expect_packet(&msg, 48 + 108 + 8);
}

/* 4.3: the name of LOOKUP and NAMES is what is left of the packet. */
static void test_name_is_the_rest(void **state)
{
	struct dlm_msg msg;

	(void)state;
	for (unsigned type = DLM_RCOM_NAMES; type <= DLM_RCOM_LOOKUP; type++) {
		begin(48 + 3, 2);
		put(16, 4, type);
		memcpy(packet + 48, "abc", 3);
		msg = decode(48 + 3);
		assert_int_equal(msg.rc.name.len, 3);
		assert_memory_equal(msg.rc.name.bytes, "abc", 3);
		expect_packet(&msg, 48 + 3);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_lockspace_ids),
		cmocka_unit_test(test_vector_status),
		cmocka_unit_test(test_vector_status_reply),
		cmocka_unit_test(test_vector_request),
		cmocka_unit_test(test_vector_names),
		cmocka_unit_test(test_msg_offsets),
		cmocka_unit_test(test_status_reply_offsets),
		cmocka_unit_test(test_status_need_slots),
		cmocka_unit_test(test_lock_offsets),
		cmocka_unit_test(test_name_is_the_rest),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
