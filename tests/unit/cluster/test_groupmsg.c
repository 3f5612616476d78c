/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * test_groupmsg.c - group messages: round trips, truncations, single wrong
 * bytes, and what a message must not say.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/crc.h"
#include "base/prng.h"
#include "cluster/groupmsg.h"

static uint8_t buf[GROUP_MSG_MAX];
static struct group_state given, taken;

static struct incarnation some_incarnation(struct ug_prng *prng)
{
	struct incarnation inc;

	for (unsigned i = 0; i < sizeof(inc.boot_id); i++)
		inc.boot_id[i] = (uint8_t)ug_prng_u64(prng);
	inc.pid = (uint32_t)ug_prng_u64(prng) | 1;
	inc.start_ticks = ug_prng_u64(prng);
	return inc;
}

static struct member_info some_info(struct ug_prng *prng)
{
	struct member_info info = { .inc = some_incarnation(prng) };
	unsigned choice = (unsigned)ug_prng_below(prng, 3);

	info.minor = (uint16_t)ug_prng_u64(prng);
	info.addr.family = choice == 2 ? 6 : (uint8_t)(choice * 4);
	info.addr.port = (uint16_t)ug_prng_u64(prng);
	for (unsigned i = 0; i < (choice == 0	? 0u
				  : choice == 1 ? 4u
						: 16u);
	     i++)
		info.addr.bytes[i] = (uint8_t)ug_prng_u64(prng);
	return info;
}

static void fill_state(struct ug_prng *prng, uint32_t count)
{
	memset(&given, 0, sizeof(given));
	given.base.ring.node = 3;
	given.base.ring.seq = ug_prng_u64(prng);
	given.base.count = 1 + ug_prng_below(prng, 1000);
	given.generation = ug_prng_u64(prng);
	given.cleared = ug_prng_below(prng, 2);
	given.count = count;
	for (uint32_t i = 0; i < count; i++) {
		struct member *member = &given.members[i];

		member->proc.node = 1 + i / 2;
		member->proc.pid = (uint32_t)ug_prng_u64(prng);
		member->instance = (uint8_t)(i % 2);
		member->cause = (enum gone_cause)ug_prng_below(prng, 6);
		if (member->cause == GONE_LEFT)
			member->proof = PROOF_LEFT;
		else if (member->cause != GONE_NOT)
			member->proof =
				(enum death_proof)ug_prng_below(prng, 7);
		member->stopped = ug_prng_u64(prng);
		member->info = some_info(prng);
	}
}

static void fill_holders(struct ug_prng *prng, struct group_holders *holders)
{
	holders->uuid[3] = (uint8_t)ug_prng_u64(prng);
	holders->more = ug_prng_below(prng, 2);
	holders->count = (uint8_t)ug_prng_below(prng, GROUP_HOLDERS_MAX + 1);
	for (unsigned i = 0; i < holders->count; i++) {
		holders->list[i].inc = some_incarnation(prng);
		holders->list[i].instance =
			(uint8_t)ug_prng_below(prng, INSTANCE_MAX + 1);
	}
}

static struct group_msg some_message(struct ug_prng *prng,
				     enum group_msg_type type)
{
	struct group_msg msg = { .type = type, .major = GROUP_VERSION_MAJOR };

	msg.has_state = ug_prng_below(prng, 2);
	switch (type) {
	case GM_HELLO:
		msg.hello.info = some_info(prng);
		msg.hello.view.ring.seq = ug_prng_u64(prng);
		msg.hello.view.procs_crc = (uint32_t)ug_prng_u64(prng);
		msg.hello.base.ring.node = 7;
		msg.hello.base.count = ug_prng_u64(prng);
		msg.hello.quorum_known = ug_prng_below(prng, 2);
		msg.hello.quorate = msg.hello.quorum_known;
		break;
	case GM_STATE:
		fill_state(prng, (uint32_t)ug_prng_below(prng, 20));
		msg.state = &given;
		break;
	case GM_DEAD:
		msg.dead.inc = some_incarnation(prng);
		msg.dead.proof = 1 + (enum death_proof)ug_prng_below(prng, 6);
		break;
	case GM_EXPEL:
		msg.expel.proc.node = 12;
		msg.expel.proc.pid = (uint32_t)ug_prng_u64(prng);
		if (ug_prng_below(prng, 2))
			msg.expel.inc = some_incarnation(prng);
		break;
	case GM_STOPPED:
		msg.generation = ug_prng_u64(prng);
		break;
	case GM_LEASE:
		msg.stamp = ug_prng_u64(prng);
		break;
	case GM_ASK:
		msg.ask.proc.node = 3;
		msg.ask.inc = some_incarnation(prng);
		msg.ask.instance = (uint8_t)ug_prng_below(prng, 128);
		msg.ask.uuid[7] = (uint8_t)ug_prng_u64(prng);
		break;
	case GM_LINK:
		msg.link.about = some_incarnation(prng);
		msg.link.state = 1 + (enum link_state)ug_prng_below(prng, 3);
		break;
	case GM_JUDGE:
	case GM_CLEARED:
		break;
	case GM_SUPERVISOR:
		msg.supervisor.child = (uint32_t)ug_prng_u64(prng);
		msg.supervisor.fence = (enum fence_kind)ug_prng_below(prng, 3);
		break;
	case GM_FENCE:
		msg.fence.node = 4;
		msg.fence.state = 1 + (enum fence_state)ug_prng_below(prng, 3);
		msg.fence.tries = (uint32_t)ug_prng_u64(prng);
		if (msg.fence.state == FENCE_FAILED)
			msg.fence.status = ug_prng_below(prng, 2)
						   ? FENCE_END_TIMEOUT
						   : 255;
		break;
	case GM_FENCE_ACK:
		msg.node = 9;
		break;
	case GM_SURVEY:
		msg.uuid[15] = (uint8_t)ug_prng_u64(prng);
		break;
	case GM_HOLDERS:
		fill_holders(prng, &msg.holders);
		break;
	}
	return msg;
}

/* Fields are compared through their bytes: encoding is injective. */
static void check_round_trip(const struct group_msg *msg)
{
	static uint8_t again[GROUP_MSG_MAX];
	struct group_msg got;
	long len = group_msg_encode(msg, buf, sizeof(buf));

	assert_true(len > 0);
	assert_int_equal(group_msg_decode(buf, (size_t)len, &got, &taken), 0);
	assert_int_equal(got.type, msg->type);
	assert_int_equal(got.has_state, msg->has_state);
	assert_int_equal(group_msg_encode(&got, again, sizeof(again)), len);
	assert_memory_equal(buf, again, (size_t)len);
	assert_int_equal(group_msg_encode(msg, again, (size_t)len - 1),
			 -EMSGSIZE);
}

/* In memory of exactly that size, so that a sanitizer sees its end. */
static int decode_copy(const uint8_t *bytes, size_t len)
{
	uint8_t *copy = malloc(len ? len : 1);
	struct group_msg got;
	int err;

	assert_non_null(copy);
	memcpy(copy, bytes, len);
	err = group_msg_decode(copy, len, &got, &taken);
	free(copy);
	return err;
}

static void check_damage(size_t len)
{
	for (size_t cut = 0; cut < len; cut++)
		assert_int_equal(decode_copy(buf, cut), -EBADMSG);
	for (size_t at = 24; at < len; at++) {
		buf[at] ^= 0x10;
		assert_int_equal(decode_copy(buf, len), -EBADMSG);
		buf[at] ^= 0x10;
	}
}

static void test_round_trip(void **state)
{
	struct ug_prng prng;

	for (uint64_t seed = 0; seed < 200; seed++) {
		ug_prng_seed(&prng, seed);
		for (unsigned type = GM_HELLO; type <= GM_LAST; type++) {
			struct group_msg msg =
				some_message(&prng, (enum group_msg_type)type);

			check_round_trip(&msg);
		}
	}
	fill_state(&prng, GROUP_MEMBERS_MAX);
	check_round_trip(&(struct group_msg){ .type = GM_STATE,
					      .major = GROUP_VERSION_MAJOR,
					      .state = &given });
}

static void test_damage(void **state)
{
	struct ug_prng prng;

	ug_prng_seed(&prng, 1);
	for (unsigned type = GM_HELLO; type <= GM_LAST; type++) {
		struct group_msg msg =
			some_message(&prng, (enum group_msg_type)type);
		long len = group_msg_encode(&msg, buf, sizeof(buf));

		check_damage((size_t)len);
	}
}

static void repair_crc(size_t len)
{
	uint32_t crc = ug_crc32(buf + 24, len - 24);

	for (unsigned i = 0; i < 4; i++)
		buf[20 + i] = (uint8_t)(crc >> 8 * i);
}

/* What is accepted has one encoding only: nothing was overlooked in it. */
static void check_hostile(size_t len)
{
	static uint8_t again[GROUP_MSG_MAX];
	struct group_msg got;
	int err;

	repair_crc(len);
	err = group_msg_decode(buf, len, &got, &taken);
	if (err) {
		assert_true(err == -EBADMSG || err == -EPROTONOSUPPORT);
		return;
	}
	assert_int_equal(group_msg_encode(&got, again, sizeof(again)), len);
	assert_memory_equal(buf, again, len);
}

/* A member that means harm makes its checksums right. */
static void test_hostile(void **state)
{
	struct ug_prng prng;

	ug_prng_seed(&prng, 3);
	for (unsigned run = 0; run < 20000; run++) {
		struct group_msg msg = some_message(
			&prng, (enum group_msg_type)(1 + run % GM_LAST));
		long len = group_msg_encode(&msg, buf, sizeof(buf));
		unsigned changes = 1 + (unsigned)ug_prng_below(&prng, 3);

		while (changes--)
			buf[ug_prng_below(&prng, (uint64_t)len)] =
				(uint8_t)ug_prng_u64(&prng);
		check_hostile((size_t)len);
	}
}

static void test_other_version(void **state)
{
	struct group_msg msg = { .type = GM_STOPPED, .major = 9 }, got;
	long len;

	msg.has_state = true;
	len = group_msg_encode(&msg, buf, sizeof(buf));
	assert_int_equal(group_msg_decode(buf, (size_t)len, &got, &taken),
			 -EPROTONOSUPPORT);
	assert_int_equal(got.major, 9);
	assert_true(got.has_state);
}

static int decode_state(void)
{
	struct group_msg msg = { .type = GM_STATE,
				 .major = GROUP_VERSION_MAJOR,
				 .state = &given };
	long len = group_msg_encode(&msg, buf, sizeof(buf));

	return decode_copy(buf, (size_t)len);
}

/* Each is right but for one thing. */
static void test_impossible_tables(void **state)
{
	struct ug_prng prng;

	ug_prng_seed(&prng, 2);
	fill_state(&prng, 4);
	assert_int_equal(decode_state(), 0);
	given.members[3].info.inc = given.members[0].info.inc;
	assert_int_equal(decode_state(), -EBADMSG);

	fill_state(&prng, 4);
	given.members[1].instance = 0; /* as the first of this node */
	assert_int_equal(decode_state(), -EBADMSG);

	fill_state(&prng, 4);
	given.members[2].cause = GONE_NOT;
	given.members[2].proof = PROOF_REAPED;
	assert_int_equal(decode_state(), -EBADMSG);

	fill_state(&prng, 4);
	given.members[1].proc.node = NODE_ID_SMALL_MAX + 1;
	assert_int_equal(decode_state(), -EBADMSG);

	fill_state(&prng, 4);
	given.members[2].proc.node = 0;
	assert_int_equal(decode_state(), -EBADMSG);

	fill_state(&prng, 4);
	memset(&given.members[0].info.inc, 0,
	       sizeof(given.members[0].info.inc));
	assert_int_equal(decode_state(), -EBADMSG);

	fill_state(&prng, 4);
	given.base.count = 0;
	assert_int_equal(decode_state(), -EBADMSG);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_round_trip),
		cmocka_unit_test(test_damage),
		cmocka_unit_test(test_hostile),
		cmocka_unit_test(test_other_version),
		cmocka_unit_test(test_impossible_tables),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
