/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * test_stories.c - directed scenarios between members (docs/spec/dlm.md 9.4).
 * Node 1 asks, the directory node is 2, node 3 is the third.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <errno.h>
#include <string.h>
#include <cmocka.h>

#include "ring.h"

/* What operations cost in messages (spec 2.8). */
static void test_message_cost(void **state)
{
	struct ring *r = ring_new(2);
	const char *name = ring_name(2, 2);
	uint32_t a, b, c;

	(void)state;
	ring_lock(r, 1, name, LKM_EX, 0, NULL, &a); /* LOOKUP: we master it */
	ring_settle(r);
	assert_int_equal(r->sent, 2);
	ring_convert(r, 1, a, LKM_NL, 0, NULL);
	ring_convert(r, 1, a, LKM_EX, 0, NULL);
	ring_unlock(r, 1, a, 0, NULL);
	ring_lock(r, 1, name, LKM_EX, 0, NULL, &b); /* cached */
	ring_expect(r, 1, b, LKM_EX);
	assert_int_equal(r->sent, 2);
	ring_lock(r, 2, name, LKM_PR, 0, NULL, &c); /* known master */
	ring_settle(r);
	assert_int_equal(r->sent, 4);
	/* contention: BAST (local here), down, GRANT */
	ring_convert(r, 1, b, LKM_NL, 0, NULL);
	ring_settle(r);
	ring_expect(r, 2, c, LKM_PR);
	assert_int_equal(r->sent, 5);
	ring_convert(r, 2, c, LKM_NL, 0, NULL); /* down: one message */
	ring_settle(r);
	assert_int_equal(r->sent, 6);
	ring_free(r);
}

static void test_bast_crosses_down_conversion(void **state)
{
	struct ring *r = ring_new(2);
	const char *name = ring_name(2, 2);
	uint32_t a, b;

	(void)state;
	ring_lock(r, 2, name, LKM_NL, 0, NULL, &b);
	ring_lock(r, 1, name, LKM_EX, 0, NULL, &a);
	ring_settle(r);
	ring_expect(r, 1, a, LKM_EX);
	ring_convert(r, 2, b, LKM_PR, 0, NULL); /* BAST on its way to 1 */
	ring_convert(r, 1, a, LKM_NL, 0, NULL);
	ring_settle(r);
	assert_null(ring_bast(r, 1, a)); /* no news for a holder of NL */
	ring_expect(r, 2, b, LKM_PR);
	ring_free(r);
}

/* Cancel, force-unlock or both after each number of delivered messages. */
static void end_request_at(unsigned delivered, uint32_t flags, bool both)
{
	struct ring *r = ring_new(3);
	const char *name = ring_name(3, 2);
	uint32_t holder, id;
	struct dlm_counts counts;

	ring_lock(r, 3, name, LKM_EX, 0, NULL, &holder);
	ring_settle(r);
	ring_lock(r, 1, name, LKM_EX, 0, NULL, &id);
	for (unsigned i = 0; i < delivered; i++) {
		if (!ring_deliver(r, 1, 2) && !ring_deliver(r, 2, 1) &&
		    !ring_deliver(r, 1, 3))
			ring_deliver(r, 3, 1);
	}
	assert_int_equal(ring_unlock(r, 1, id, flags, NULL), 0);
	if (both && ring_casts(r, 1, id) == 0)
		assert_int_equal(ring_unlock(r, 1, id, LKF_FORCEUNLOCK, NULL),
				 0);
	ring_settle(r);
	assert_int_equal(ring_casts(r, 1, id), 1);
	assert_int_equal(ring_cast(r, 1, id)->mode, LKM_IV);
	dlm_count(r->engine[1], &counts);
	assert_int_equal(counts.locks, 0);
	assert_int_equal(counts.in_flight, 0);
	ring_unlock(r, 3, holder, 0, NULL);
	dlm_count(r->engine[3], &counts);
	assert_int_equal(counts.locks, 0);
	ring_free(r);
}

static void test_cancel_at_every_point(void **state)
{
	(void)state;
	for (unsigned n = 0; n < 6; n++) {
		end_request_at(n, LKF_CANCEL, false);
		end_request_at(n, LKF_FORCEUNLOCK, false);
		end_request_at(n, LKF_CANCEL, true);
	}
}

/*
 * A cancel that came too late, and the lock is converted and cancelled again:
 * the reply to the first is not taken for that to the second.
 */
static void test_reply_to_a_moot_cancel(void **state)
{
	struct ring *r = ring_new(2);
	const char *name = ring_name(2, 2);
	uint32_t m, a;

	(void)state;
	ring_lock(r, 2, name, LKM_PR, 0, NULL, &m);
	ring_lock(r, 1, name, LKM_NL, 0, NULL, &a);
	ring_settle(r);
	ring_convert(r, 1, a, LKM_PR, 0, NULL);
	ring_unlock(r, 1, a, LKF_CANCEL, NULL);
	while (ring_deliver(r, 1, 2))
		;
	assert_true(ring_deliver(r, 2, 1));
	ring_expect(r, 1, a, LKM_PR);
	ring_convert(r, 1, a, LKM_EX, 0, NULL);
	ring_unlock(r, 1, a, LKF_CANCEL, NULL);
	assert_true(ring_deliver(r, 2, 1)); /* to the first: nothing done */
	ring_settle(r);
	assert_int_equal(ring_cast(r, 1, a)->status, -DLM_ECANCEL);
	assert_int_equal(ring_cast(r, 1, a)->mode, LKM_PR);
	ring_convert(r, 1, a, LKM_NL, 0, NULL);
	ring_expect(r, 1, a, LKM_NL);
	ring_free(r);
}

static void test_master_dies(void **state)
{
	struct ring *r = ring_new(3);
	const char *name = ring_name(3, 2);
	uint8_t block[32] = "value";
	uint32_t m, pw, waiter;

	(void)state;
	ring_lock(r, 3, name, LKM_EX, LKF_VALBLK, block, &m); /* master */
	ring_settle(r);
	ring_convert(r, 3, m, LKM_NL, LKF_VALBLK, block);
	ring_lock(r, 1, name, LKM_PW, LKF_VALBLK, block, &pw);
	ring_settle(r);
	ring_lock(r, 2, name, LKM_PR, LKF_VALBLK, block, &waiter);
	ring_settle(r);
	ring_expect(r, 1, pw, LKM_PW);
	ring_stop(r);
	ring_kill(r, 3);
	ring_start(r);
	ring_settle(r);
	assert_null(ring_cast(r, 2, waiter)); /* PW is still PW */
	ring_convert(r, 1, pw, LKM_NL, LKF_VALBLK, block);
	ring_settle(r);
	ring_expect(r, 2, waiter, LKM_PR);
	assert_memory_equal(ring_cast(r, 2, waiter)->lvb, block, 32);
	assert_false(ring_cast(r, 2, waiter)->sbflags & SBF_VALNOTVALID);
	ring_free(r);
}

/* The writer dies, or the master with it: nobody knows the value any more. */
static void writer_dies(int writer)
{
	struct ring *r = ring_new(3);
	const char *name = ring_name(3, 2);
	uint8_t block[32] = "value";
	uint32_t nl, first, ex;

	ring_lock(r, 3, name, LKM_NL, LKF_VALBLK, block, &first);
	ring_settle(r);
	ring_lock(r, 1, name, LKM_NL, LKF_VALBLK, block, &nl);
	ring_lock(r, writer, name, LKM_EX, LKF_VALBLK, block, &ex);
	ring_settle(r);
	ring_expect(r, writer, ex, LKM_EX);
	ring_stop(r);
	ring_kill(r, writer);
	ring_start(r);
	ring_settle(r);
	ring_convert(r, 1, nl, LKM_PR, LKF_VALBLK, block);
	ring_settle(r);
	ring_expect(r, 1, nl, LKM_PR);
	assert_true(ring_cast(r, 1, nl)->sbflags & SBF_VALNOTVALID);
	ring_free(r);
}

static void test_writer_dies(void **state)
{
	(void)state;
	writer_dies(2);
	writer_dies(3);
}

/*
 * PR to CW: granted by the master, the word lost with it, another CW granted
 * after it (spec 5.7).
 */
static void middle_conversion_lost(int asks, int other)
{
	struct ring *r = ring_new(3);
	const char *name = ring_name(3, 1);
	uint32_t m, a, b;

	ring_lock(r, 3, name, LKM_NL, 0, NULL, &m); /* master */
	ring_settle(r);
	ring_lock(r, asks, name, LKM_PR, 0, NULL, &a);
	ring_settle(r);
	ring_convert(r, asks, a, LKM_CW, 0, NULL);
	ring_deliver(r, asks, 3); /* granted; the reply stays on the way */
	ring_lock(r, other, name, LKM_CW, 0, NULL, &b);
	while (ring_deliver(r, 2, 1) || ring_deliver(r, 1, 2) ||
	       ring_deliver(r, other, 3) || ring_deliver(r, 3, other))
		;
	ring_expect(r, other, b, LKM_CW);
	ring_stop(r);
	ring_kill(r, 3);
	ring_start(r);
	ring_settle(r);
	ring_expect(r, asks, a, LKM_CW);
	assert_int_equal(ring_casts(r, asks, a), 2);
	ring_free(r);
}

/* The next master is the one who asks, or the other. */
static void test_middle_conversion_lost(void **state)
{
	(void)state;
	middle_conversion_lost(1, 2);
	middle_conversion_lost(2, 1);
}

/* A stop after each number of delivered messages of a recovery, twice. */
static void test_stop_in_every_step(void **state)
{
	(void)state;
	for (unsigned cut = 0; cut < 60; cut++) {
		struct ring *r = ring_new(3);
		const char *name = ring_name(3, 1);
		uint32_t m, a, b;

		ring_lock(r, 3, name, LKM_NL, 0, NULL, &m);
		ring_settle(r);
		ring_lock(r, 1, name, LKM_EX, 0, NULL, &a);
		ring_settle(r);
		ring_lock(r, 2, name, LKM_PR, 0, NULL, &b);
		ring_settle(r);
		ring_stop(r);
		ring_kill(r, 3);
		for (unsigned twice = 0; twice < 2; twice++) {
			ring_start(r);
			for (unsigned i = 0; i < cut + twice; i++) {
				if (!ring_deliver(r, 1, 2) &&
				    !ring_deliver(r, 2, 1))
					ring_tick(r, 200000000);
			}
			ring_stop(r);
		}
		ring_start(r);
		ring_settle(r);
		assert_null(ring_cast(r, 2, b));
		ring_unlock(r, 1, a, 0, NULL);
		ring_settle(r);
		ring_expect(r, 2, b, LKM_PR);
		ring_free(r);
	}
}

struct seen {
	const char *name;
	unsigned in_flight, parked;
};

static void see(void *arg, const struct dlm_resource_info *resource,
		const struct dlm_lock_info *lock)
{
	struct seen *seen = arg;

	if (resource->name.len != strlen(seen->name) ||
	    memcmp(resource->name.bytes, seen->name, resource->name.len) != 0)
		return;
	assert_int_equal(lock->status, LKS_NONE);
	assert_int_equal(lock->grmode, LKM_IV);
	seen->in_flight += lock->in_flight;
	seen->parked += !lock->in_flight;
}

/* Requests that no master has put in a queue are seen, each once. */
static void test_requests_under_way_are_seen(void **state)
{
	struct ring *r = ring_new(2);
	struct seen here = { .name = ring_name(2, 2) };
	struct seen other = { .name = "other" };
	uint32_t lkid;

	(void)state;
	ring_lock(r, 1, here.name, LKM_PR, 0, NULL, &lkid);
	ring_lock(r, 1, here.name, LKM_PR, 0, NULL, &lkid);
	ring_lock(r, 1, here.name, LKM_PR, 0, NULL, &lkid);
	dlm_visit(r->engine[1], NULL, see, &here);
	assert_int_equal(here.in_flight, 1);
	assert_int_equal(here.parked, 2);
	dlm_visit(r->engine[1], NULL, see, &other);
	assert_int_equal(other.in_flight + other.parked, 0);
	/* and while recovery deals with them */
	ring_stop(r);
	here.in_flight = here.parked = 0;
	dlm_visit(r->engine[1], NULL, see, &here);
	assert_int_equal(here.in_flight + here.parked, 3);
	ring_start(r);
	ring_settle(r);
	ring_expect(r, 1, lkid, LKM_PR);
	ring_free(r);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_message_cost),
		cmocka_unit_test(test_bast_crosses_down_conversion),
		cmocka_unit_test(test_cancel_at_every_point),
		cmocka_unit_test(test_reply_to_a_moot_cancel),
		cmocka_unit_test(test_master_dies),
		cmocka_unit_test(test_writer_dies),
		cmocka_unit_test(test_middle_conversion_lost),
		cmocka_unit_test(test_stop_in_every_step),
		cmocka_unit_test(test_requests_under_way_are_seen),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
