/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * test_linkqueue.c - the queue of one stream against a naive one: whatever is
 * written in whatever pieces, acknowledged and begun anew, the other side gets
 * whole frames, in order, none lost.
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
#include "base/prng.h"
#include "cluster/linkqueue.h"
#include "cluster/linkwire.h"

#define STEPS 20000
#define SEEDS 20

/* The other side: what the connection has brought. */
struct far {
	uint8_t bytes[4 * (LINK_MESSAGE_MAX + LINK_FRAME_BYTES)];
	size_t len;
	uint64_t received;
};

static struct link_queue queue;
static struct far far;
static struct ug_prng prng;

/* Made of the number alone, so that nothing needs to be remembered. */
static size_t message_length(uint64_t number)
{
	struct ug_prng own;

	ug_prng_seed(&own, number);
	return ug_prng_below(&own, 50) ? ug_prng_below(&own, 300)
				       : ug_prng_below(&own, 40000);
}

static void add(void)
{
	static uint8_t bytes[LINK_MESSAGE_MAX];
	uint64_t number = queue.added + 1;
	size_t len = message_length(number);

	memset(bytes, (uint8_t)number, len);
	assert_int_equal(link_queue_add(&queue, 1 + number % 2, 0, bytes, len),
			 0);
	assert_int_equal(queue.added, number);
}

static void take_frames(void)
{
	size_t at = 0;

	while (far.len - at >= LINK_FRAME_BYTES) {
		struct link_frame frame;

		assert_int_equal(link_frame_decode(far.bytes + at, &frame), 0);
		if (far.len - at < LINK_FRAME_BYTES + frame.len)
			break;
		far.received++;
		assert_int_equal(frame.number, (uint32_t)far.received);
		assert_int_equal(frame.len, message_length(far.received));
		assert_int_equal(frame.kind, 1 + far.received % 2);
		at += LINK_FRAME_BYTES;
		for (uint32_t i = 0; i < frame.len; i++)
			assert_int_equal(far.bytes[at + i],
					 (uint8_t)far.received);
		at += frame.len;
	}
	far.len -= at;
	memmove(far.bytes, far.bytes + at, far.len);
}

static void acknowledge(void)
{
	uint64_t some = queue.acked +
			ug_prng_below(&prng, far.received - queue.acked + 1);

	assert_int_equal(link_queue_ack(&queue, (uint32_t)some), 0);
	assert_true(queue.acked >= some);
}

/* A write of which the socket takes a part; others go on meanwhile. */
static void write_some(void)
{
	struct iovec iov[4];
	unsigned max = 1 + (unsigned)ug_prng_below(&prng, 4), count;
	bool one = link_queue_mid_frame(&queue) && ug_prng_below(&prng, 2);
	size_t total = 0, part, done = 0;

	if (!link_queue_more(&queue))
		return;
	count = link_queue_iov(&queue, iov, max, one);
	assert_true(count > 0 && count <= max);
	for (unsigned i = 0; i < count; i++)
		total += iov[i].iov_len;
	part = ug_prng_below(&prng, 3) ? total : ug_prng_below(&prng, total);
	part = UG_MIN(part, sizeof(far.bytes) - far.len);
	for (unsigned i = 0; i < count && done < part; i++) {
		size_t n = UG_MIN(part - done, iov[i].iov_len);

		memcpy(far.bytes + far.len, iov[i].iov_base, n);
		far.len += n;
		done += n;
	}
	/* The answer can be here before the write is said to be over. */
	if (ug_prng_below(&prng, 2)) {
		add();
		take_frames();
		acknowledge();
	}
	link_queue_wrote(&queue, part);
	take_frames();
	if (one && part == total)
		assert_false(link_queue_mid_frame(&queue));
}

static void new_connection(void)
{
	far.len = 0;
	assert_int_equal(link_queue_check(&queue, far.received), 0);
	if (queue.acked)
		assert_int_equal(link_queue_check(&queue, queue.acked - 1),
				 -ESTALE);
	assert_int_equal(link_queue_check(&queue, queue.handed + 1), -EBADMSG);
	link_queue_resume(&queue, far.received);
	assert_false(link_queue_mid_frame(&queue));
	assert_int_equal(queue.acked, far.received);
}

static void drain(void)
{
	while (far.received < queue.added)
		write_some();
	assert_int_equal(link_queue_ack(&queue, (uint32_t)far.received), 0);
	assert_int_equal(queue.bytes, 0);
	assert_false(link_queue_more(&queue));
}

static void test_against_naive(void **state)
{
	for (uint64_t seed = 0; seed < SEEDS; seed++) {
		ug_prng_seed(&prng, seed);
		link_queue_init(&queue);
		memset(&far, 0, sizeof(far));
		for (unsigned i = 0; i < STEPS; i++) {
			switch (ug_prng_below(&prng, 100)) {
			case 0:
				new_connection();
				break;
			case 1:
				drain();
				break;
			case 2 ... 20:
				acknowledge();
				break;
			case 21 ... 60:
				add();
				break;
			default:
				write_some();
			}
		}
		drain();
		link_queue_free(&queue);
	}
}

static void test_wrong_acks(void **state)
{
	struct iovec iov;

	link_queue_init(&queue);
	assert_int_equal(link_queue_ack(&queue, 1), -EBADMSG);
	add();
	add();
	/* Added is not sent. */
	assert_int_equal(link_queue_ack(&queue, 1), -EBADMSG);
	assert_int_equal(link_queue_iov(&queue, &iov, 1, false), 1);
	assert_int_equal(link_queue_ack(&queue, 3), -EBADMSG);
	assert_int_equal(link_queue_ack(&queue, 2), 0);
	/* Old ones are no news. */
	assert_int_equal(link_queue_ack(&queue, 1), 0);
	assert_int_equal(link_queue_ack(&queue, 0), 0);
	assert_int_equal(queue.acked, 2);
	/* Half the circle away is old, too. */
	assert_int_equal(link_queue_ack(&queue, 0x80000002u), 0);
	link_queue_free(&queue);
}

/* Counts go on beyond 32 bits: frames have only the low half. */
static void test_wrap(void **state)
{
	link_queue_init(&queue);
	memset(&far, 0, sizeof(far));
	ug_prng_seed(&prng, 7);
	queue.added = queue.acked = queue.handed = far.received = 0xfffffff0u;
	for (unsigned i = 0; i < 100; i++) {
		add();
		add();
		write_some();
		acknowledge();
	}
	new_connection();
	drain();
	assert_true(queue.acked > UINT32_MAX);
	link_queue_free(&queue);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_against_naive),
		cmocka_unit_test(test_wrong_acks),
		cmocka_unit_test(test_wrap),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
