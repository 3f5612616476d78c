/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * test_linkwire.c - handshake messages and frame headers: round trips,
 * truncations, wrong bytes; and what a MAC depends on.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/prng.h"
#include "cluster/linkauth.h"
#include "cluster/linkwire.h"

#define SEEDS 2000

static void some_bytes(struct ug_prng *prng, void *bytes, size_t len)
{
	for (size_t i = 0; i < len; i++)
		((uint8_t *)bytes)[i] = (uint8_t)ug_prng_u64(prng);
}

static struct incarnation some_incarnation(struct ug_prng *prng)
{
	struct incarnation inc = { .pid = (uint32_t)ug_prng_u64(prng),
				   .start_ticks = ug_prng_u64(prng) };

	some_bytes(prng, inc.boot_id, sizeof(inc.boot_id));
	return inc;
}

static struct link_shake some_shake(struct ug_prng *prng,
				    enum link_shake_type type)
{
	struct link_shake shake = { .type = type, .major = LINK_VERSION_MAJOR };
	size_t len = ug_prng_below(prng, LINK_TABLE_MAX + 1);

	shake.minor = (uint16_t)ug_prng_u64(prng);
	shake.keyed = ug_prng_below(prng, 2);
	if (type == LS_HELLO || type == LS_WELCOME) {
		shake.from = some_incarnation(prng);
		shake.to = some_incarnation(prng);
		shake.stream = ug_prng_u64(prng) | 1;
		some_bytes(prng, shake.nonce, sizeof(shake.nonce));
		memset(shake.table, 'a' + (int)ug_prng_below(prng, 26), len);
	}
	if (type == LS_WELCOME || type == LS_PROOF) {
		shake.received = ug_prng_u64(prng);
		some_bytes(prng, shake.mac, sizeof(shake.mac));
	}
	if (type == LS_REFUSE)
		shake.refusal = LR_MAJOR +
				(enum link_refusal)ug_prng_below(prng, LR_LAST);
	return shake;
}

/* In memory of exactly that size, so that a sanitizer sees its end. */
static int decode_copy(const uint8_t *bytes, size_t len,
		       struct link_shake *shake)
{
	uint8_t *copy = malloc(len ? len : 1);
	int err;

	assert_non_null(copy);
	memcpy(copy, bytes, len);
	err = link_shake_decode(copy, len, shake);
	free(copy);
	return err;
}

static void test_shake_round_trips(void **state)
{
	uint8_t bytes[LINK_SHAKE_MAX], again[LINK_SHAKE_MAX];
	struct ug_prng prng;

	ug_prng_seed(&prng, 1);
	for (unsigned i = 0; i < SEEDS; i++) {
		struct link_shake shake = some_shake(&prng,
						     LS_HELLO + i % LS_REFUSE),
				  got;
		size_t len = link_shake_encode(&shake, bytes);

		assert_int_equal(link_shake_length(bytes), len);
		assert_int_equal(decode_copy(bytes, len, &got), 0);
		assert_int_equal(got.type, shake.type);
		assert_int_equal(got.keyed, shake.keyed);
		assert_int_equal(got.minor, shake.minor);
		assert_string_equal(got.table, shake.table);
		assert_true(incarnation_equal(&got.to, &shake.to));
		assert_true(got.received == shake.received &&
			    got.stream == shake.stream);
		assert_int_equal(got.refusal, shake.refusal);
		assert_int_equal(link_shake_encode(&got, again), len);
		assert_memory_equal(bytes, again, len);
		if (shake.type == LS_WELCOME || shake.type == LS_PROOF)
			assert_memory_equal(bytes + len - LINK_MAC_BYTES,
					    shake.mac, LINK_MAC_BYTES);
	}
}

static void test_shake_truncations(void **state)
{
	uint8_t bytes[LINK_SHAKE_MAX];
	struct link_shake shake, got;
	struct ug_prng prng;

	ug_prng_seed(&prng, 2);
	for (unsigned type = LS_HELLO; type <= LS_REFUSE; type++) {
		size_t len;

		shake = some_shake(&prng, type);
		len = link_shake_encode(&shake, bytes);
		for (size_t cut = 0; cut < len; cut++) {
			assert_int_equal(decode_copy(bytes, cut, &got),
					 -EBADMSG);
			/* The same with a length that agrees. */
			bytes[10] = (uint8_t)cut;
			bytes[11] = (uint8_t)(cut >> 8);
			assert_int_equal(decode_copy(bytes, cut, &got),
					 -EBADMSG);
			link_shake_encode(&shake, bytes);
		}
		bytes[len] = 0;
		assert_int_equal(decode_copy(bytes, len + 1, &got), -EBADMSG);
	}
}

static void test_shake_nonsense(void **state)
{
	uint8_t bytes[LINK_SHAKE_MAX];
	struct link_shake shake, got;
	struct ug_prng prng;
	size_t len;

	ug_prng_seed(&prng, 3);
	shake = some_shake(&prng, LS_HELLO);
	len = link_shake_encode(&shake, bytes);
	bytes[0] ^= 1; /* magic */
	assert_int_equal(link_shake_length(bytes), -EBADMSG);
	assert_int_equal(decode_copy(bytes, len, &got), -EBADMSG);
	bytes[0] ^= 1;
	bytes[9] |= 2; /* a flag that nobody has defined */
	assert_int_equal(decode_copy(bytes, len, &got), -EBADMSG);
	bytes[9] &= 1;
	bytes[8] = LS_REFUSE + 1;
	assert_int_equal(decode_copy(bytes, len, &got), -EBADMSG);
	shake.stream = 0;
	len = link_shake_encode(&shake, bytes);
	assert_int_equal(decode_copy(bytes, len, &got), -EBADMSG);
	shake = some_shake(&prng, LS_REFUSE);
	len = link_shake_encode(&shake, bytes);
	bytes[len - 1] = LR_LAST + 1;
	assert_int_equal(decode_copy(bytes, len, &got), -EBADMSG);
	bytes[len - 1] = 0;
	assert_int_equal(decode_copy(bytes, len, &got), -EBADMSG);
	/* A table with a zero byte would be another one after a copy. */
	shake = some_shake(&prng, LS_HELLO);
	strcpy(shake.table, "alpha:vol1");
	len = link_shake_encode(&shake, bytes);
	bytes[len - 3] = 0;
	assert_int_equal(decode_copy(bytes, len, &got), -EBADMSG);
}

/* Any later protocol begins alike and refuses alike; the rest is its own. */
static void test_other_major(void **state)
{
	struct link_shake shake, got;
	uint8_t bytes[LINK_SHAKE_MAX];
	struct ug_prng prng;
	size_t len;

	ug_prng_seed(&prng, 4);
	shake = some_shake(&prng, LS_HELLO);
	shake.major = LINK_VERSION_MAJOR + 1;
	shake.minor = 7;
	len = link_shake_encode(&shake, bytes);
	memset(bytes + LINK_SHAKE_HEAD, 0xee, len - LINK_SHAKE_HEAD);
	bytes[8] = 77;
	assert_int_equal(decode_copy(bytes, len, &got), -EPROTONOSUPPORT);
	assert_int_equal(got.major, LINK_VERSION_MAJOR + 1);
	assert_int_equal(got.minor, 7);
	shake = some_shake(&prng, LS_REFUSE);
	shake.major = LINK_VERSION_MAJOR + 1;
	len = link_shake_encode(&shake, bytes);
	assert_int_equal(decode_copy(bytes, len, &got), 0);
	assert_int_equal(got.major, LINK_VERSION_MAJOR + 1);
	assert_int_equal(got.refusal, shake.refusal);
}

static void test_frames(void **state)
{
	uint8_t head[LINK_FRAME_BYTES], again[LINK_FRAME_BYTES];
	struct link_frame frame, got;
	struct ug_prng prng;
	unsigned good = 0;

	ug_prng_seed(&prng, 5);
	for (unsigned i = 0; i < SEEDS; i++) {
		frame.kind = (uint8_t)ug_prng_below(&prng, 3);
		frame.len =
			(uint32_t)ug_prng_below(&prng, LINK_MESSAGE_MAX + 1);
		frame.number = (uint32_t)ug_prng_u64(&prng);
		frame.ack = (uint32_t)ug_prng_u64(&prng);
		if (frame.kind == LINK_PING)
			frame.len = frame.number = 0;
		link_frame_encode(&frame, head);
		assert_int_equal(link_frame_decode(head, &got), 0);
		assert_int_equal(got.len, frame.len);
		assert_int_equal(got.number, frame.number);
		assert_int_equal(got.ack, frame.ack);
		assert_int_equal(got.kind, frame.kind);
	}
	/* What is taken is what would be sent. */
	for (unsigned i = 0; i < SEEDS * 100; i++) {
		some_bytes(&prng, head, sizeof(head));
		head[2] &= 1;
		head[3] = head[5] = head[6] = head[7] = 0;
		head[4] &= 3;
		if (link_frame_decode(head, &got))
			continue;
		good++;
		assert_true(got.len <= LINK_MESSAGE_MAX);
		assert_true(got.kind <= LINK_CHANNEL_LAST);
		link_frame_encode(&got, again);
		assert_memory_equal(head, again, sizeof(head));
	}
	assert_true(good > 0);
}

static void expect_bad_frame(struct link_frame frame, unsigned at, uint8_t flip)
{
	uint8_t head[LINK_FRAME_BYTES];
	struct link_frame got;

	link_frame_encode(&frame, head);
	head[at] ^= flip;
	assert_int_equal(link_frame_decode(head, &got), -EBADMSG);
}

static void test_bad_frames(void **state)
{
	struct link_frame good = { .len = 10, .kind = 1, .number = 3 };
	struct link_frame ping = { .ack = 7 }, frame = good;

	expect_bad_frame(good, 5, 1);
	expect_bad_frame(good, 6, 1);
	expect_bad_frame(good, 7, 1);
	frame.kind = LINK_CHANNEL_LAST + 1;
	expect_bad_frame(frame, 0, 0);
	frame = good;
	frame.len = LINK_MESSAGE_MAX + 1;
	expect_bad_frame(frame, 0, 0);
	expect_bad_frame(ping, 0, 1);
	expect_bad_frame(ping, 8, 1);
}

static void mac_of(const struct link_key *key, const char *hello,
		   const char *welcome, const char *proof, uint8_t *mac)
{
	struct link_talk talk = {
		.hello = (const uint8_t *)hello,
		.hello_len = strlen(hello),
		.welcome = (const uint8_t *)welcome,
		.welcome_len = strlen(welcome),
		.proof = (const uint8_t *)proof,
		.proof_len = proof ? strlen(proof) : 0,
	};

	link_mac(key, &talk, mac);
}

/* The key, each message, and whose proof it is. */
static void test_mac(void **state)
{
	uint8_t mac[8][LINK_MAC_BYTES];
	struct link_key *key, *other;

	assert_int_equal(link_auth_init(), 0);
	assert_int_equal(
		link_key_new((const uint8_t *)"sixteen bytes ok", 15, &key),
		-EINVAL);
	assert_int_equal(
		link_key_new((const uint8_t *)"sixteen bytes ok", 16, &key), 0);
	assert_int_equal(
		link_key_new((const uint8_t *)"sixteen bytes oK", 16, &other),
		0);
	mac_of(key, "hello", "welcome", NULL, mac[0]);
	mac_of(key, "hello", "welcome", NULL, mac[1]);
	assert_true(link_mac_equal(mac[0], mac[1]));
	mac_of(other, "hello", "welcome", NULL, mac[1]);
	mac_of(key, "hallo", "welcome", NULL, mac[2]);
	mac_of(key, "hello", "welcame", NULL, mac[3]);
	mac_of(key, "hello", "welcome", "", mac[4]);
	mac_of(key, "hello", "welcome", "proof", mac[5]);
	mac_of(key, "hello", "welcome", "praof", mac[6]);
	mac_of(other, "hello", "welcome", "proof", mac[7]);
	for (unsigned i = 0; i < 8; i++)
		for (unsigned j = 0; j < i; j++)
			assert_false(link_mac_equal(mac[i], mac[j]));
	link_key_free(key);
	link_key_free(other);
}

/* Against OpenSSL: openssl dgst -sha256 -mac HMAC. */
static void test_mac_vector(void **state)
{
	static const uint8_t expected[LINK_MAC_BYTES] = {
		0xe7, 0xa0, 0x1a, 0xf1, 0xd2, 0x16, 0x1e, 0x82,
		0x06, 0x93, 0x02, 0x84, 0x32, 0x00, 0x0b, 0x49,
		0x7f, 0xba, 0xd8, 0x1d, 0xff, 0x81, 0x11, 0xdf,
		0xdc, 0x7c, 0xb1, 0xcc, 0xda, 0xc7, 0xd8, 0xa7
	};
	uint8_t mac[LINK_MAC_BYTES];
	struct link_key *key;

	assert_int_equal(link_auth_init(), 0);
	assert_int_equal(
		link_key_new((const uint8_t *)"sixteen bytes ok", 16, &key), 0);
	mac_of(key, "hello", "welcome", "proof", mac);
	assert_memory_equal(mac, expected, sizeof(mac));
	link_key_free(key);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_shake_round_trips),
		cmocka_unit_test(test_shake_truncations),
		cmocka_unit_test(test_shake_nonsense),
		cmocka_unit_test(test_other_major),
		cmocka_unit_test(test_frames),
		cmocka_unit_test(test_bad_frames),
		cmocka_unit_test(test_mac),
		cmocka_unit_test(test_mac_vector),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
