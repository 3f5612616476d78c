/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * test_packets.c - the codec against itself: round trips, and everything that
 * can be wrong with a packet. test_layout.c has the specification.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/compiler.h"
#include "packets.h"
#include "wire/dlmwire.h"

#define LOCKSPACE 0x12345678u
#define SEEDS 300
#define RCOM(type) (DLM_MSG_PURGE + (type))

static uint8_t packet[DLM_WIRE_MAX + 1], other[DLM_WIRE_MAX + 1];
static struct ug_prng prng;

/* Allocations to come before one fails; below 0: none does. */
static int allocations_left = -1;

void *__real_calloc(size_t count, size_t size);
void *__wrap_calloc(size_t count, size_t size);

void *__wrap_calloc(size_t count, size_t size)
{
	if (allocations_left == 0)
		return NULL;
	if (allocations_left > 0)
		allocations_left--;
	return __real_calloc(count, size);
}

static void set16(unsigned offset, unsigned value)
{
	packet[offset] = (uint8_t)value;
	packet[offset + 1] = (uint8_t)(value >> 8);
}

static void set32(unsigned offset, uint32_t value)
{
	set16(offset, value & 0xffff);
	set16(offset + 2, value >> 16);
}

/* In memory of exactly this size, so that a sanitizer sees its end. */
static int decode(size_t len, struct dlm_msg *msg)
{
	uint8_t *copy = malloc(len ? len : 1);
	int error;

	assert_non_null(copy);
	memcpy(copy, packet, len);
	error = dlm_wire_decode(copy, len, LOCKSPACE, msg);
	free(copy);
	return error;
}

static void expect_refused(size_t len, int expected)
{
	struct dlm_msg msg, before;

	memset(&msg, 0xa5, sizeof(msg));
	before = msg;
	assert_int_equal(decode(len, &msg), expected);
	assert_memory_equal(&msg, &before, sizeof(msg));
}

/* Refused, or taken for what it is: nothing in it gets lost. */
static void expect_sound(size_t len)
{
	struct dlm_msg msg;
	int error = decode(len, &msg);

	if (error) {
		assert_true(error == -EBADMSG || error == -EPROTONOSUPPORT);
		return;
	}
	assert_int_equal(dlm_wire_encode(&msg, LOCKSPACE, other, DLM_WIRE_MAX),
			 len);
	other[0] = packet[0]; /* minor version */
	assert_memory_equal(packet, other, len);
	dlm_msg_release(&msg);
}

/* A random message of this type in packet[]; its length. */
static size_t make(unsigned which)
{
	struct dlm_msg msg;
	long len;

	packets_make(&prng, which, &msg);
	len = dlm_wire_encode(&msg, LOCKSPACE, packet, DLM_WIRE_MAX);
	assert_in_range(len, 48, DLM_WIRE_MAX);
	dlm_msg_release(&msg);
	return (size_t)len;
}

static void round_trip(unsigned which)
{
	struct dlm_msg msg, got;
	long len;

	packets_make(&prng, which, &msg);
	memset(packet, 0x00, sizeof(packet));
	memset(other, 0xff, sizeof(other));
	len = dlm_wire_encode(&msg, LOCKSPACE, packet, DLM_WIRE_MAX);
	assert_in_range(len, 48, DLM_WIRE_MAX);
	/* the buffer does not shine through, and ends where it ends */
	assert_int_equal(dlm_wire_encode(&msg, LOCKSPACE, other, (size_t)len),
			 len);
	assert_memory_equal(packet, other, len);
	assert_int_equal(other[len], 0xff);
	assert_int_equal(dlm_wire_length(packet, (size_t)len), len);
	assert_int_equal(decode((size_t)len, &got), 0);
	packets_expect_equal(&msg, &got);
	assert_int_equal(got.to, 0);
	assert_int_equal(got.to_incarnation, 0);
	/* nor does what the message does not say */
	assert_int_equal(dlm_wire_encode(&got, LOCKSPACE, other, DLM_WIRE_MAX),
			 len);
	assert_memory_equal(packet, other, len);
	dlm_msg_release(&msg);
	dlm_msg_release(&got);
}

static void test_round_trip(void **state)
{
	(void)state;
	for (uint64_t seed = 1; seed <= SEEDS; seed++) {
		ug_prng_seed(&prng, seed);
		for (unsigned w = PACKETS_FIRST; w <= PACKETS_LAST; w++)
			round_trip(w);
	}
}

static bool ends_with_name(unsigned which)
{
	return which == DLM_MSG_REQUEST || which == DLM_MSG_LOOKUP ||
	       which == DLM_MSG_REMOVE || which == RCOM(DLM_RCOM_NAMES) ||
	       which == RCOM(DLM_RCOM_LOOKUP);
}

static bool ends_with_lvb(unsigned which)
{
	return which == DLM_MSG_CONVERT || which == DLM_MSG_UNLOCK ||
	       which == DLM_MSG_REQUEST_REPLY ||
	       which == DLM_MSG_CONVERT_REPLY || which == DLM_MSG_GRANT ||
	       which == RCOM(DLM_RCOM_LOCK);
}

static size_t fixed_part(unsigned which)
{
	if (which == RCOM(DLM_RCOM_LOCK))
		return 48 + 108;
	return which <= DLM_MSG_PURGE ? 88 : 48;
}

/* Would a packet of this type be whole with this length? */
static bool length_is_legal(unsigned which, size_t len, size_t made)
{
	if (ends_with_name(which))
		return len >= fixed_part(which) &&
		       len - fixed_part(which) <= 64;
	if (ends_with_lvb(which))
		return len >= fixed_part(which) &&
		       len - fixed_part(which) <= 64 &&
		       (len - fixed_part(which)) % 8 == 0;
	return len == made;
}

static void test_every_truncation(void **state)
{
	(void)state;
	ug_prng_seed(&prng, 1);
	for (unsigned w = PACKETS_FIRST; w <= PACKETS_LAST; w++) {
		size_t whole = make(w);

		for (size_t len = 0; len < whole; len++) {
			assert_int_equal(dlm_wire_length(packet, len),
					 len < DLM_WIRE_PEEK ? 0 : (long)whole);
			expect_refused(len, -EBADMSG);
		}
	}
}

/* The header tells the truth about a length that is wrong. */
static void test_every_length(void **state)
{
	(void)state;
	ug_prng_seed(&prng, 2);
	for (unsigned w = PACKETS_FIRST; w <= PACKETS_LAST; w++) {
		size_t made = make(w);
		uint8_t whole[DLM_WIRE_MAX] = { 0 };

		memcpy(whole, packet, made);
		for (size_t len = 16; len <= made + 80 && len <= DLM_WIRE_MAX;
		     len++) {
			memset(packet, 0, sizeof(packet));
			memcpy(packet, whole, UG_MIN(len, made));
			set16(12, (unsigned)len);
			if (length_is_legal(w, len, made))
				expect_sound(len);
			else
				expect_refused(len, -EBADMSG);
		}
	}
}

static void test_one_byte_more(void **state)
{
	(void)state;
	ug_prng_seed(&prng, 3);
	for (unsigned w = PACKETS_FIRST; w <= PACKETS_LAST; w++) {
		size_t len = make(w);

		packet[len] = 0;
		expect_refused(len + 1, -EBADMSG);
	}
}

static void test_every_byte(void **state)
{
	(void)state;
	ug_prng_seed(&prng, 4);
	for (unsigned round = 0; round < 8; round++) {
		for (unsigned w = PACKETS_FIRST; w <= PACKETS_LAST; w++) {
			size_t len = make(w);

			for (size_t i = 0; i < len; i++) {
				uint8_t saved = packet[i];

				packet[i] ^= (uint8_t)(1 + ug_prng_below(&prng,
									 255));
				expect_sound(len);
				packet[i] = saved;
			}
		}
	}
}

static void expect_enum(unsigned which, unsigned offset, uint32_t first,
			uint32_t last)
{
	uint32_t wrong[] = { first - 1, last + 1,   last + 0x100,
			     0x10000,	0x7fffffff, 0x80000000 };

	for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
		size_t len = make(which);

		set32(offset, wrong[i]);
		expect_refused(len, -EBADMSG);
	}
}

/* A type, a mode or a status that there is not */
static void test_wrong_enums(void **state)
{
	(void)state;
	ug_prng_seed(&prng, 5);
	for (unsigned w = PACKETS_FIRST; w <= PACKETS_LAST; w++) {
		if (w <= DLM_MSG_PURGE) {
			expect_enum(w, 16, 1, 14);
			expect_enum(w, 64, 0, 3);
			expect_enum(w, 68, (uint32_t)LKM_IV, LKM_EX);
			expect_enum(w, 72, (uint32_t)LKM_IV, LKM_EX);
			expect_enum(w, 76, (uint32_t)LKM_IV, LKM_EX);
		} else {
			expect_enum(w, 16, 1, 8);
		}
	}
}

static void test_wrong_enums_of_lock(void **state)
{
	static const unsigned types[] = { RCOM(DLM_RCOM_LOCK),
					  RCOM(DLM_RCOM_LOCK_REPLY) };
	static const uint8_t modes[] = { 6, 0x7f, 0x80, 0xfe };
	static const uint8_t statuses[] = { 4, 0x7f, 0x80, 0xff };

	(void)state;
	ug_prng_seed(&prng, 6);
	for (unsigned t = 0; t < 2; t++) {
		size_t len = make(types[t]);

		for (unsigned i = 0; i < 4; i++) {
			uint8_t saved[8];

			memcpy(saved, packet + 84, sizeof(saved));
			packet[84] = modes[i];
			expect_refused(len, -EBADMSG);
			memcpy(packet + 84, saved, sizeof(saved));
			packet[85] = modes[i];
			expect_refused(len, -EBADMSG);
			memcpy(packet + 84, saved, sizeof(saved));
			packet[86] = statuses[i];
			expect_refused(len, -EBADMSG);
			memcpy(packet + 84, saved, sizeof(saved));
			set16(88, i == 0 ? 15 : 0x100u << i); /* wait type */
			expect_refused(len, -EBADMSG);
			memcpy(packet + 84, saved, sizeof(saved));
			set16(90, i == 0 ? 65 : 0x100u << i); /* name */
			expect_refused(len, -EBADMSG);
			memcpy(packet + 84, saved, sizeof(saved));
			expect_sound(len);
		}
	}
}

static void test_versions(void **state)
{
	static const uint32_t spoken[] = { 0x00030001, 0x00030002 };
	static const uint32_t wrong[] = { 0,	      0x00030000, 0x00030003,
					  0x0003ffff, 0x00020001, 0x00040001,
					  0x01030001, 0x03000100 };
	struct dlm_msg msg;

	(void)state;
	ug_prng_seed(&prng, 7);
	for (unsigned w = PACKETS_FIRST; w <= PACKETS_LAST; w++) {
		size_t len = make(w);

		for (unsigned i = 0; i < sizeof(wrong) / 4; i++) {
			set32(0, wrong[i]);
			assert_int_equal(dlm_wire_length(packet, len),
					 -EPROTONOSUPPORT);
			expect_refused(len, -EPROTONOSUPPORT);
		}
		for (unsigned i = 0; i < 2; i++) {
			set32(0, spoken[i]);
			assert_int_equal(dlm_wire_length(packet, len), len);
			assert_int_equal(decode(len, &msg), 0);
			dlm_msg_release(&msg);
		}
	}
}

/* Lengths that no packet has are known from the first 16 bytes. */
static void test_wrong_headers(void **state)
{
	static const unsigned lengths[] = { 0, 15, 16, 47, 4097, 0xffff };

	(void)state;
	ug_prng_seed(&prng, 8);
	for (unsigned w = PACKETS_FIRST; w <= PACKETS_LAST; w++) {
		size_t len = make(w);

		for (unsigned i = 0; i < sizeof(lengths) / sizeof(lengths[0]);
		     i++) {
			set16(12, lengths[i]);
			assert_int_equal(dlm_wire_length(packet, 16), -EBADMSG);
		}
		set16(12, (unsigned)len);
		for (unsigned command = 0; command < 256; command++) {
			if (command == 1 || command == 2)
				continue;
			packet[14] = (uint8_t)command;
			assert_int_equal(dlm_wire_length(packet, 16), -EBADMSG);
			expect_refused(len, -EBADMSG);
		}
		packet[14] = w <= DLM_MSG_PURGE ? 1 : 2;
		packet[15] = 1;
		assert_int_equal(dlm_wire_length(packet, 16), -EBADMSG);
		expect_refused(len, -EBADMSG);
	}
	make(DLM_MSG_CANCEL);
	set16(12, 87);
	assert_int_equal(dlm_wire_length(packet, 87), -EBADMSG);
}

static void test_wrong_lockspace(void **state)
{
	(void)state;
	ug_prng_seed(&prng, 9);
	for (unsigned w = PACKETS_FIRST; w <= PACKETS_LAST; w++) {
		size_t len = make(w);

		for (unsigned i = 4; i < 8; i++) {
			packet[i] ^= 0x40;
			expect_refused(len, -EBADMSG);
			packet[i] ^= 0x40;
		}
	}
}

static void test_wrong_sender(void **state)
{
	(void)state;
	ug_prng_seed(&prng, 10);
	for (unsigned w = PACKETS_FIRST; w <= PACKETS_LAST; w++) {
		size_t len = make(w);

		set32(8, 0);
		expect_refused(len, -EBADMSG);
		set32(8, 0x80000000);
		expect_refused(len, -EBADMSG);
		set32(8, 0xffffffff);
		expect_refused(len, -EBADMSG);
	}
}

/* Bytes that have no meaning: each must be zero. */
static void expect_zero(unsigned which, size_t from, size_t to)
{
	size_t len = make(which);

	for (size_t i = from; i < UG_MIN(to, len); i++) {
		assert_int_equal(packet[i], 0);
		for (unsigned bit = 0; bit < 8; bit++) {
			packet[i] = (uint8_t)(1u << bit);
			expect_refused(len, -EBADMSG);
		}
		packet[i] = 0;
	}
}

static void test_wrong_paddings(void **state)
{
	(void)state;
	ug_prng_seed(&prng, 11);
	for (unsigned w = PACKETS_FIRST; w <= DLM_MSG_PURGE; w++)
		expect_zero(w, 36, 44); /* parents */
	expect_zero(RCOM(DLM_RCOM_STATUS), 48 + 1, 64);
	expect_zero(RCOM(DLM_RCOM_STATUS_REPLY), 48 + 8, 48 + 12);
	expect_zero(RCOM(DLM_RCOM_STATUS_REPLY), 48 + 20, 48 + 32);
	expect_zero(RCOM(DLM_RCOM_LOCK), 48 + 12, 48 + 20);
	expect_zero(RCOM(DLM_RCOM_LOCK_REPLY), 48 + 12, 48 + 20);
	make(RCOM(DLM_RCOM_STATUS));
	packet[48] = 2;
	expect_refused(64, -EBADMSG);
}

static void test_wrong_padding_of_slots(void **state)
{
	struct dlm_slots slots = { .count = 3,
				   .slot = { { 1, 1 }, { 2, 2 }, { 3, 3 } } };
	struct dlm_msg msg = { .kind = DLM_RCOM, .from = 1 };

	(void)state;
	msg.rc.type = DLM_RCOM_STATUS_REPLY;
	msg.rc.slots = &slots;
	assert_int_equal(dlm_wire_encode(&msg, LOCKSPACE, packet, DLM_WIRE_MAX),
			 128);
	for (unsigned slot = 80; slot < 128; slot += 16) {
		for (unsigned i = slot + 6; i < slot + 16; i++) {
			packet[i] = 1;
			expect_refused(128, -EBADMSG);
			packet[i] = 0;
		}
		set32(slot, 0); /* held: then it has a number, */
		set16(slot + 4, 0);
		expect_refused(128, -EBADMSG);
		set16(slot + 4, 1);
		packet[slot + 6] = 2; /* and one flag */
		expect_refused(128, -EBADMSG);
		packet[slot + 6] = 0;
		set32(slot, 0x80000001); /* no such node */
		expect_refused(128, -EBADMSG);
		set32(slot, 1);
	}
	/* as many as there are, and no more than a lockspace has */
	set16(48 + 14, 2);
	expect_refused(128, -EBADMSG);
	set16(48 + 14, 4);
	expect_refused(128, -EBADMSG);
	memset(packet + 80, 0, sizeof(packet) - 80);
	for (unsigned i = 0; i < 250; i++)
		set32(80 + i * 16, 1);
	set16(48 + 14, 249);
	set16(12, 80 + 249 * 16);
	expect_sound(80 + 249 * 16);
	set16(48 + 14, 250);
	set16(12, 80 + 250 * 16);
	expect_refused(80 + 250 * 16, -EBADMSG);
}

static void test_wrong_padding_of_name(void **state)
{
	struct dlm_msg msg = { .kind = DLM_RCOM, .from = 1 };

	(void)state;
	msg.rc.type = DLM_RCOM_LOCK;
	msg.rc.lock.name.len = 3;
	memset(msg.rc.lock.name.bytes, 0xff, DLM_NAME_MAX);
	assert_int_equal(dlm_wire_encode(&msg, LOCKSPACE, packet, DLM_WIRE_MAX),
			 156);
	for (unsigned i = 48 + 44 + 3; i < 156; i++) {
		packet[i] = 1;
		expect_refused(156, -EBADMSG);
		packet[i] = 0;
	}
	expect_sound(156);
}

/* A record, a word that ends the block or the list, in the buffer of names */
static unsigned put_record(unsigned at, unsigned len)
{
	packet[at] = (uint8_t)(len >> 8);
	packet[at + 1] = (uint8_t)len;
	memset(packet + at + 2, 'n', len == 0xffff ? 0 : len);
	return at + 2 + len;
}

static void begin_names(void)
{
	make(RCOM(DLM_RCOM_NAMES_REPLY));
	memset(packet + 48, 0, 4024);
}

static void test_names_of_any_shape(void **state)
{
	unsigned at;

	(void)state;
	ug_prng_seed(&prng, 12);
	/* longer than a name may be */
	begin_names();
	put_record(put_record(48, 65), 0xffff);
	expect_refused(4072, -EBADMSG);
	begin_names();
	put_record(put_record(48, 0x0105), 0xffff);
	expect_refused(4072, -EBADMSG);
	/* something after the end of the list */
	begin_names();
	put_record(put_record(48, 5), 0xffff);
	expect_sound(4072);
	packet[4071] = 1;
	expect_refused(4072, -EBADMSG);
	/* something after the end of a block: an empty name before it */
	begin_names();
	put_record(48, 5);
	packet[4071] = 1;
	expect_refused(4072, -EBADMSG);
	/* filled to the last byte, with and without room for the end */
	for (unsigned spare = 0; spare <= 3; spare++) {
		begin_names();
		for (at = 48; at < 48 + 4024 - 4 * 66;)
			at = put_record(at, 64);
		while (4072 - at - spare > 66)
			at = put_record(at, 30);
		at = put_record(at, 4072 - at - spare - 2);
		assert_int_equal(at, 4072 - spare);
		if (spare < 2)
			expect_refused(4072, -EBADMSG);
		else
			expect_sound(4072);
		if (spare < 2)
			continue;
		packet[at] = packet[at + 1] = 0xff;
		expect_sound(4072);
	}
}

/* The empty name is a name (1.1), though a record of it looks like an end. */
static void test_empty_name(void **state)
{
	struct dlm_names names = { .len = 7, .bytes = { 0, 0, 0, 1, 'a' } };
	struct dlm_msg msg = { .kind = DLM_RCOM, .from = 1 };
	struct dlm_msg got;

	(void)state;
	msg.rc.type = DLM_RCOM_NAMES_REPLY;
	msg.rc.names = &names;
	/* a block that goes on elsewhere would end one record early */
	assert_int_equal(dlm_wire_encode(&msg, LOCKSPACE, packet, DLM_WIRE_MAX),
			 -EINVAL);
	for (unsigned i = 0; i < 2; i++) {
		names.last = i == 0;
		names.len = i == 0 ? 7 : 5;
		assert_int_equal(
			dlm_wire_encode(&msg, LOCKSPACE, packet, DLM_WIRE_MAX),
			4072);
		assert_int_equal(decode(4072, &got), 0);
		packets_expect_equal(&msg, &got);
		dlm_msg_release(&got);
	}
}

static void test_too_small(void **state)
{
	(void)state;
	ug_prng_seed(&prng, 13);
	for (unsigned w = PACKETS_FIRST; w <= PACKETS_LAST; w++) {
		struct dlm_msg msg;
		size_t len;

		packets_make(&prng, w, &msg);
		memset(other, 0, sizeof(other));
		memset(packet, 0, sizeof(packet));
		len = (size_t)dlm_wire_encode(&msg, LOCKSPACE, other,
					      DLM_WIRE_MAX);
		for (size_t size = 0; size < len; size++)
			assert_int_equal(
				dlm_wire_encode(&msg, LOCKSPACE, packet, size),
				-EMSGSIZE);
		for (size_t i = 0; i < sizeof(packet); i++)
			assert_int_equal(packet[i], 0);
		dlm_msg_release(&msg);
	}
}

static void expect_no_message(const struct dlm_msg *msg)
{
	memset(packet, 0x77, sizeof(packet));
	assert_int_equal(dlm_wire_encode(msg, LOCKSPACE, packet, DLM_WIRE_MAX),
			 -EINVAL);
	for (size_t i = 0; i < sizeof(packet); i++)
		assert_int_equal(packet[i], 0x77);
}

#define WRONG(which, field, value)                         \
	do {                                               \
		struct dlm_msg msg_;                       \
		packets_make(&prng, which, &msg_);         \
		msg_.field = value;                        \
		expect_no_message(&msg_);                  \
		if (msg_.kind == DLM_RCOM && (which) > 14) \
			dlm_msg_release(&msg_);            \
	} while (0)

static void test_no_such_message(void **state)
{
	(void)state;
	ug_prng_seed(&prng, 14);
	for (unsigned w = PACKETS_FIRST; w <= DLM_MSG_PURGE; w++) {
		WRONG(w, from, 0);
		WRONG(w, from, -1);
		WRONG(w, kind, (enum dlm_msg_kind)0);
		WRONG(w, kind, (enum dlm_msg_kind)3);
		WRONG(w, m.type, (enum dlm_msg_type)0);
		WRONG(w, m.type, (enum dlm_msg_type)15);
		WRONG(w, m.status, 4);
		WRONG(w, m.status, -1);
		WRONG(w, m.grmode, 6);
		WRONG(w, m.rqmode, -2);
		WRONG(w, m.bastmode, 6);
		WRONG(w, m.extra_len, 65);
		WRONG(w, m.extra_len, UINT32_MAX);
		if (!ends_with_name(w))
			WRONG(w, m.extra_len, 33);
		if (!ends_with_name(w) && !ends_with_lvb(w))
			WRONG(w, m.extra_len, 32);
	}
	WRONG(RCOM(DLM_RCOM_STATUS), rc.type, (enum dlm_rcom_type)0);
	WRONG(RCOM(DLM_RCOM_STATUS), rc.type, (enum dlm_rcom_type)9);
	WRONG(RCOM(DLM_RCOM_LOOKUP_REPLY), rc.need_slots, true);
	WRONG(RCOM(DLM_RCOM_NAMES), rc.name.len, 65);
	WRONG(RCOM(DLM_RCOM_LOOKUP), rc.name.len, 255);
	WRONG(RCOM(DLM_RCOM_LOCK), rc.lock.name.len, 65);
	WRONG(RCOM(DLM_RCOM_LOCK), rc.lock.lvb_len, 72);
	WRONG(RCOM(DLM_RCOM_LOCK), rc.lock.lvb_len, 31);
	WRONG(RCOM(DLM_RCOM_LOCK), rc.lock.grmode, 6);
	WRONG(RCOM(DLM_RCOM_LOCK), rc.lock.rqmode, -2);
	WRONG(RCOM(DLM_RCOM_LOCK), rc.lock.status, 4);
	WRONG(RCOM(DLM_RCOM_LOCK), rc.lock.status, -1);
	WRONG(RCOM(DLM_RCOM_LOCK), rc.lock.wait_type, 15);
	WRONG(RCOM(DLM_RCOM_LOCK_REPLY), rc.lock.lvb_len, 32);
}

static void test_no_such_tables(void **state)
{
	struct dlm_slots slots = { .count = 1, .slot = { { 1, 1 } } };
	struct dlm_names names = { .last = true, .len = 4024 };
	struct dlm_msg msg = { .kind = DLM_RCOM, .from = 1 };

	(void)state;
	msg.rc.type = DLM_RCOM_STATUS_REPLY;
	msg.rc.slots = &slots;
	slots.slot[0].nodeid = -1;
	expect_no_message(&msg);
	slots.slot[0] = (struct dlm_slot){ .nodeid = 1, .free = true };
	expect_no_message(&msg);
	slots.slot[0] = (struct dlm_slot){ .nodeid = 1, .incarnation = 1 };
	expect_no_message(&msg);
	slots.slot[0] = (struct dlm_slot){ .slot = 0, .incarnation = 1 };
	expect_no_message(&msg);
	for (unsigned i = 0; i < DLM_SLOTS_MAX; i++)
		slots.slot[i] = (struct dlm_slot){ .nodeid = 1 };
	slots.count = DLM_SLOTS_MAX + 1;
	expect_no_message(&msg);
	slots.count = 1;
	msg.rc.type = DLM_RCOM_LOOKUP_REPLY; /* has no place for slots */
	expect_no_message(&msg);
	msg.rc.slots = NULL;
	msg.rc.names = &names;
	expect_no_message(&msg);
	msg.rc.type = DLM_RCOM_NAMES_REPLY;
	expect_no_message(&msg);
	names.len = 3; /* half a record */
	names.bytes[1] = 2;
	expect_no_message(&msg);
	names.len = 1;
	expect_no_message(&msg);
	msg.rc.names = NULL;
	expect_no_message(&msg);
}

static void test_no_memory(void **state)
{
	unsigned failed = 0;

	(void)state;
	ug_prng_seed(&prng, 15);
	for (unsigned round = 0; round < 20; round++) {
		for (unsigned w = PACKETS_FIRST; w <= PACKETS_LAST; w++) {
			size_t len = make(w);
			struct dlm_msg msg, before;
			int error;

			memset(&msg, 0xa5, sizeof(msg));
			before = msg;
			allocations_left = 0;
			error = dlm_wire_decode(packet, len, LOCKSPACE, &msg);
			allocations_left = -1;
			if (!error)
				continue; /* it needs none */
			failed++;
			assert_int_equal(error, -ENOMEM);
			assert_memory_equal(&msg, &before, sizeof(msg));
			expect_sound(len);
		}
	}
	assert_in_range(failed, 21, 40); /* names, and most of the slots */
}

/* Packets follow each other without a gap; each tells where the next begins. */
static void test_stream(void **state)
{
	static uint8_t stream[64 * DLM_WIRE_MAX];
	static struct dlm_msg sent[64];
	size_t end = 0, at = 0;

	(void)state;
	ug_prng_seed(&prng, 16);
	for (unsigned i = 0; i < 64; i++) {
		packets_make(&prng,
			     PACKETS_FIRST + (unsigned)ug_prng_below(
						     &prng, PACKETS_LAST),
			     &sent[i]);
		end += (size_t)dlm_wire_encode(&sent[i], LOCKSPACE,
					       stream + end, DLM_WIRE_MAX);
	}
	for (unsigned i = 0; i < 64; i++) {
		struct dlm_msg got;
		long len = dlm_wire_length(stream + at, end - at);

		assert_in_range(len, 48, DLM_WIRE_MAX);
		assert_int_equal(dlm_wire_decode(stream + at, (size_t)len,
						 LOCKSPACE, &got),
				 0);
		packets_expect_equal(&sent[i], &got);
		dlm_msg_release(&sent[i]);
		dlm_msg_release(&got);
		at += (size_t)len;
	}
	assert_int_equal(at, end);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_round_trip),
		cmocka_unit_test(test_every_truncation),
		cmocka_unit_test(test_every_length),
		cmocka_unit_test(test_one_byte_more),
		cmocka_unit_test(test_every_byte),
		cmocka_unit_test(test_wrong_enums),
		cmocka_unit_test(test_wrong_enums_of_lock),
		cmocka_unit_test(test_versions),
		cmocka_unit_test(test_wrong_headers),
		cmocka_unit_test(test_wrong_lockspace),
		cmocka_unit_test(test_wrong_sender),
		cmocka_unit_test(test_wrong_paddings),
		cmocka_unit_test(test_wrong_padding_of_slots),
		cmocka_unit_test(test_wrong_padding_of_name),
		cmocka_unit_test(test_names_of_any_shape),
		cmocka_unit_test(test_empty_name),
		cmocka_unit_test(test_too_small),
		cmocka_unit_test(test_no_such_message),
		cmocka_unit_test(test_no_such_tables),
		cmocka_unit_test(test_no_memory),
		cmocka_unit_test(test_stream),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
