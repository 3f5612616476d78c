/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * test_history.c - bugs that lock managers have had (docs/spec/dlm.md 9.1, by
 * number), and the deaths of 9.4.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "ring.h"

/* Whatever is on its way to and from the node, but for what it sends itself. */
static void recover_without(struct ring *r, int node)
{
	ring_stop(r);
	ring_kill(r, node);
	ring_start(r);
	ring_settle(r);
}

static void assert_no_locks(struct ring *r)
{
	for (int node = 1; node <= RING_NODES; node++) {
		struct dlm_counts counts;

		if (!r->engine[node])
			continue;
		dlm_count(r->engine[node], &counts);
		assert_int_equal(counts.locks, 0);
		assert_int_equal(counts.in_flight, 0);
	}
}

/* 1: who was passed over can be granted after one behind it was granted. */
static void test_scan_begins_anew(void **state)
{
	struct ring *r = ring_new(1);
	uint32_t a, b, c;

	(void)state;
	ring_lock(r, 1, "r", LKM_NL, 0, NULL, &a);
	ring_lock(r, 1, "r", LKM_PR, 0, NULL, &b);
	ring_lock(r, 1, "r", LKM_PR, 0, NULL, &c);
	ring_convert(r, 1, a, LKM_CW, 0, NULL);
	ring_convert(r, 1, b, LKM_CW, LKF_NOORDER | LKF_NODLCKWT, NULL);
	ring_unlock(r, 1, c, 0, NULL);
	ring_expect(r, 1, b, LKM_CW);
	ring_expect(r, 1, a, LKM_CW);
	ring_free(r);
}

/* Node 1 asks node 2 who is to be master of the first of its resources. */
static bool asks_for_master(const struct ring *r)
{
	const struct dlm_msg *msg;

	if (r->head[1][2] == r->tail[1][2])
		return false;
	msg = r->queue[1][2][r->tail[1][2] - 1];
	return msg->kind == DLM_RCOM && msg->rc.type == DLM_RCOM_LOOKUP;
}

/*
 * 5: an answer to a question of a recovery that was aborted comes late. Links
 * keep their order, so no member does that; the rule is the wire's (5.4).
 */
static void test_old_recovery_reply(void **state)
{
	struct ring *r = ring_new(3);
	struct dlm_event event = { .kind = DLM_EV_MESSAGE };
	struct dlm_msg late = { .kind = DLM_RCOM, .from = 2, .to = 1 };
	const char *name = ring_name(2, 2);
	uint32_t m, a, b;

	(void)state;
	ring_lock(r, 3, name, LKM_NL, 0, NULL, &m);
	ring_settle(r);
	ring_lock(r, 1, name, LKM_EX, 0, NULL, &a);
	ring_settle(r);
	ring_lock(r, 2, name, LKM_PR, 0, NULL, &b);
	ring_settle(r);
	ring_stop(r);
	ring_kill(r, 3);
	ring_start(r);
	for (unsigned i = 0; i < 200 && !asks_for_master(r); i++) {
		if (!ring_deliver(r, 2, 1) && !ring_deliver(r, 1, 2))
			ring_tick(r, 200000000);
	}
	assert_true(asks_for_master(r));
	late.rc.type = DLM_RCOM_LOOKUP_REPLY;
	late.rc.id = 1;
	late.rc.seq_reply = 1;
	late.rc.result = 2;
	event.message.msg = &late;
	event.message.incarnation = r->incarnation[2];
	assert_int_equal(ring_step(r, 1, &event), 0);
	ring_settle(r);
	ring_unlock(r, 1, a, 0, NULL);
	ring_settle(r);
	ring_expect(r, 2, b, LKM_PR);
	ring_free(r);
}

/*
 * 7: the answer was saved when the membership changed: the operation is neither
 * lost nor done twice. 21: it may be the REQUEST_REPLY to a LOOKUP.
 */
static void answer_is_saved(bool request)
{
	struct ring *r = ring_new(3);
	const char *name = ring_name(3, 2);
	uint32_t m, a;

	ring_lock(r, 2, name, LKM_NL, 0, NULL, &m);
	if (!request) {
		ring_lock(r, 1, name, LKM_NL, 0, NULL, &a);
		ring_settle(r);
		ring_convert(r, 1, a, LKM_EX, 0, NULL);
	} else {
		ring_lock(r, 1, name, LKM_EX, 0, NULL, &a);
	}
	assert_true(ring_deliver(r, 1, 2)); /* granted; the answer waits */
	recover_without(r, 3);
	ring_expect(r, 1, a, LKM_EX);
	assert_int_equal(ring_casts(r, 1, a), request ? 1 : 2);
	ring_unlock(r, 1, a, 0, NULL);
	ring_unlock(r, 2, m, 0, NULL);
	ring_settle(r);
	assert_no_locks(r);
	ring_free(r);
}

static void test_answer_saved_over_a_recovery(void **state)
{
	(void)state;
	answer_is_saved(false);
	answer_is_saved(true);
}

/* 12: thousands of resources lose their master; all are found again. */
static void test_many_resources(void **state)
{
	enum {
		MANY = 3000
	};
	struct ring *r = ring_new(3);
	uint32_t *mine = calloc(MANY, sizeof(*mine));
	uint32_t other;
	char name[16];

	(void)state;
	for (unsigned i = 0; i < MANY; i++) {
		snprintf(name, sizeof(name), "many%u", i);
		ring_lock(r, 3, name, LKM_NL, 0, NULL, &other);
		ring_settle(r);
		ring_lock(r, 1, name, LKM_EX, 0, NULL, &mine[i]);
		ring_settle(r);
		r->told_count = 0;
	}
	recover_without(r, 3);
	for (unsigned i = 0; i < MANY; i += 100) {
		snprintf(name, sizeof(name), "many%u", i);
		ring_lock(r, 2, name, LKM_PR, LKF_NOQUEUE, NULL, &other);
		ring_settle(r);
		assert_int_equal(ring_cast(r, 2, other)->status, -EAGAIN);
		ring_unlock(r, 1, mine[i], 0, NULL);
		ring_settle(r);
		ring_lock(r, 2, name, LKM_PR, LKF_NOQUEUE, NULL, &other);
		ring_settle(r);
		ring_expect(r, 2, other, LKM_PR);
	}
	free(mine);
	ring_free(r);
}

/*
 * 15: the queue of conversions comes back in another order: PR to EX behind NL
 * to EX, while a third lock holds both up, so that no pass can help.
 */
static void test_order_of_conversions_after_recovery(void **state)
{
	struct ring *r = ring_new(3);
	const char *name = ring_name(3, 3);
	uint32_t cr, a, b, m;

	(void)state;
	ring_lock(r, 3, name, LKM_NL, 0, NULL, &m);
	ring_lock(r, 1, name, LKM_NL, 0, NULL, &a);
	ring_lock(r, 2, name, LKM_PR, 0, NULL, &b);
	ring_lock(r, 1, name, LKM_CR, 0, NULL, &cr);
	ring_settle(r);
	ring_convert(r, 2, b, LKM_EX, 0, NULL);
	ring_settle(r);
	ring_convert(r, 1, a, LKM_EX, 0, NULL);
	ring_settle(r);
	recover_without(r, 3);
	ring_unlock(r, 1, cr, 0, NULL);
	ring_settle(r);
	ring_expect(r, 2, b, LKM_EX);
	ring_unlock(r, 2, b, 0, NULL);
	ring_settle(r);
	ring_expect(r, 1, a, LKM_EX);
	ring_free(r);
}

/* Where in the queue the first LOOKUP of a recovery is; -1: nowhere. */
static int lookup_place(const struct ring *r, int from, int to)
{
	for (unsigned i = r->head[from][to]; i < r->tail[from][to]; i++) {
		const struct dlm_msg *msg = r->queue[from][to][i];

		if (msg->kind == DLM_RCOM && msg->rc.type == DLM_RCOM_LOOKUP)
			return (int)(i - r->head[from][to]);
	}
	return -1;
}

/* Everything but a LOOKUP to "dir" moves, until node "first" has sent one. */
static void until_first_asks(struct ring *r, int first, int dir)
{
	for (unsigned n = 0; n < 2000 && lookup_place(r, first, dir); n++) {
		bool any = false;

		for (int from = 1; from <= RING_NODES; from++) {
			for (int to = 1; to <= RING_NODES; to++) {
				if (to != dir || lookup_place(r, from, to))
					any |= ring_deliver(r, from, to);
			}
		}
		if (!any)
			ring_tick(r, 1000000);
	}
	assert_int_equal(lookup_place(r, first, dir), 0);
}

/*
 * 6, 9: node 4, the directory node, makes node 2 the new master, and dies
 * before that knows; node 3 has heard of it and has sent its lock there. In the
 * next recovery node 1 becomes the master, and node 2 has a copy too many.
 */
static void test_copy_for_a_master_that_is_none(void **state)
{
	struct ring *r = ring_new(5);
	char name[8];
	uint32_t m, x, y, z;

	(void)state;
	for (unsigned i = 0; i < 100; i++) {
		snprintf(name, sizeof(name), "c%u", i);
		/* directory: node 4 of four, node 1 of three */
		if ((dlm_hash(name, strlen(name)) >> 16) % 12 == 3)
			break;
	}
	ring_lock(r, 5, name, LKM_NL, 0, NULL, &m);
	ring_settle(r);
	ring_lock(r, 1, name, LKM_NL, 0, NULL, &y);
	ring_lock(r, 2, name, LKM_NL, 0, NULL, &x);
	ring_lock(r, 3, name, LKM_PR, 0, NULL, &z);
	ring_settle(r);
	ring_stop(r);
	ring_kill(r, 5);
	ring_start(r);
	until_first_asks(r, 2, 4);
	assert_true(ring_deliver(r, 2, 4)); /* the answer stays on the way */
	while (lookup_place(r, 3, 4) >= 0)
		assert_true(ring_deliver(r, 3, 4));
	while (ring_deliver(r, 4, 3) || ring_deliver(r, 3, 2))
		;
	ring_stop(r);
	ring_kill(r, 4);
	ring_start(r);
	ring_settle(r);
	ring_convert(r, 1, y, LKM_EX, LKF_NOQUEUE, NULL);
	ring_settle(r);
	assert_int_equal(ring_cast(r, 1, y)->status, -EAGAIN);
	ring_unlock(r, 3, z, 0, NULL);
	ring_unlock(r, 2, x, 0, NULL);
	ring_unlock(r, 1, y, 0, NULL);
	ring_settle(r);
	assert_no_locks(r);
	ring_free(r);
}

/* 9.4 1: the master dies with something of each kind on the way. */
static void master_dies_after(unsigned delivered)
{
	struct ring *r = ring_new(3);
	const char *name = ring_name(3, 2);
	uint32_t m, waits, cancelled, unlocked, converts;

	ring_lock(r, 3, name, LKM_NL, 0, NULL, &m);
	ring_settle(r);
	ring_lock(r, 1, name, LKM_PR, 0, NULL, &unlocked);
	ring_lock(r, 1, name, LKM_PR, 0, NULL, &converts);
	ring_settle(r);
	ring_lock(r, 1, name, LKM_EX, 0, NULL, &waits);
	ring_lock(r, 1, name, LKM_EX, 0, NULL, &cancelled);
	ring_settle(r);
	ring_unlock(r, 1, unlocked, 0, NULL);
	ring_unlock(r, 1, cancelled, LKF_CANCEL, NULL);
	ring_convert(r, 1, converts, LKM_CW, 0, NULL);
	for (unsigned i = 0; i < delivered; i++) {
		if (!ring_deliver(r, 1, 3))
			ring_deliver(r, 3, 1);
	}
	recover_without(r, 3);
	assert_int_equal(ring_cast(r, 1, unlocked)->status, -DLM_EUNLOCK);
	assert_int_equal(ring_cast(r, 1, cancelled)->status, -DLM_ECANCEL);
	assert_int_equal(ring_casts(r, 1, cancelled), 1);
	ring_expect(r, 1, converts, LKM_CW);
	assert_int_equal(ring_casts(r, 1, waits), 0);
	ring_unlock(r, 1, converts, 0, NULL);
	ring_settle(r);
	ring_expect(r, 1, waits, LKM_EX);
	ring_unlock(r, 1, waits, 0, NULL);
	ring_settle(r);
	assert_no_locks(r);
	ring_free(r);
}

static void test_master_dies_with_all_in_flight(void **state)
{
	(void)state;
	for (unsigned n = 0; n < 8; n++)
		master_dies_after(n);
}

/* 9.4 2: the directory node dies with a LOOKUP, or after its answer. */
static void test_directory_node_dies_at_lookup(void **state)
{
	(void)state;
	for (unsigned n = 0; n < 3; n++) {
		struct ring *r = ring_new(3);
		const char *name = ring_name(3, 3);
		uint32_t a, b;

		ring_lock(r, 1, name, LKM_EX, 0, NULL, &a);
		if (n > 0)
			ring_deliver(r, 1, 3);
		if (n > 1)
			ring_deliver(r, 3, 1);
		recover_without(r, 3);
		ring_expect(r, 1, a, LKM_EX);
		assert_int_equal(ring_casts(r, 1, a), 1);
		ring_lock(r, 2, name, LKM_EX, LKF_NOQUEUE, NULL, &b);
		ring_settle(r);
		assert_int_equal(ring_cast(r, 2, b)->status, -EAGAIN);
		ring_free(r);
	}
}

static void steps_of_recovery(struct ring *r, unsigned count)
{
	for (unsigned i = 0; i < count; i++) {
		bool any = false;

		for (int from = 1; !any && from <= RING_NODES; from++) {
			for (int to = 1; !any && to <= RING_NODES; to++)
				any = ring_deliver(r, from, to);
		}
		if (!any)
			ring_tick(r, 200000000);
	}
}

/*
 * 9.4 2: in a recovery after the death of one, another dies after each number
 * of messages: the lowest, who passes the barriers, or one that has joined.
 */
static void second_death(int second, unsigned after)
{
	struct ring *r = ring_new(3);
	const char *name = ring_name(3, 1);
	uint32_t m, a, b;

	ring_lock(r, 3, name, LKM_NL, 0, NULL, &m);
	ring_settle(r);
	ring_lock(r, 2, name, LKM_EX, 0, NULL, &a);
	ring_settle(r);
	ring_stop(r);
	ring_kill(r, 3);
	ring_boot(r, 4);
	ring_start(r);
	steps_of_recovery(r, after);
	ring_stop(r);
	ring_kill(r, second);
	ring_boot(r, 3);
	ring_start(r);
	ring_settle(r);
	r->told_count = 0;
	ring_lock(r, 3, name, LKM_PR, 0, NULL, &b);
	ring_settle(r);
	assert_null(ring_cast(r, 3, b));
	ring_unlock(r, 2, a, 0, NULL);
	ring_settle(r);
	ring_expect(r, 3, b, LKM_PR);
	ring_free(r);
}

static void test_death_in_every_step(void **state)
{
	(void)state;
	for (unsigned after = 0; after < 90; after += 3) {
		second_death(1, after);
		second_death(4, after + 1);
	}
}

/* 9.4 12: gone and back in one change; what it had sent before is void. */
static void test_back_at_once(void **state)
{
	struct ring *r = ring_new(3);
	const char *name = ring_name(3, 2);
	struct dlm_event event = { .kind = DLM_EV_MESSAGE };
	uint64_t before;
	struct dlm_msg *old;
	uint32_t m, a, b;

	(void)state;
	ring_lock(r, 3, name, LKM_NL, 0, NULL, &m);
	ring_settle(r);
	ring_lock(r, 1, name, LKM_EX, 0, NULL, &a);
	ring_settle(r);
	ring_lock(r, 2, name, LKM_EX, 0, NULL, &b);
	ring_settle(r);
	ring_convert(r, 1, a, LKM_NL, 0, NULL);
	old = r->queue[1][3][--r->tail[1][3]];
	before = r->incarnation[1];
	ring_stop(r);
	ring_kill(r, 1);
	ring_boot(r, 1);
	ring_start(r);
	event.message.msg = old;
	event.message.incarnation = before;
	assert_int_equal(ring_step(r, 3, &event), 0);
	ring_settle(r);
	assert_int_equal(ring_step(r, 3, &event), 0);
	free(old);
	ring_expect(r, 2, b, LKM_EX);
	ring_lock(r, 1, name, LKM_PR, LKF_NOQUEUE, NULL, &a);
	ring_settle(r);
	assert_int_equal(ring_cast(r, 1, a)->status, -EAGAIN);
	ring_free(r);
}

/* 9.4 5: a lock that two members want in turn costs three messages a turn. */
static void test_ping_pong(void **state)
{
	struct ring *r = ring_new(2);
	const char *name = ring_name(2, 2);
	unsigned before;
	uint32_t a, b;

	(void)state;
	ring_lock(r, 2, name, LKM_NL, 0, NULL, &b);
	ring_lock(r, 1, name, LKM_EX, 0, NULL, &a);
	ring_settle(r);
	before = r->sent;
	for (unsigned i = 0; i < 1000; i++) {
		ring_convert(r, 2, b, LKM_EX, 0, NULL); /* BAST to 1 */
		ring_settle(r);
		ring_convert(r, 1, a, LKM_NL, 0, NULL); /* down */
		ring_settle(r);
		ring_expect(r, 2, b, LKM_EX);
		ring_convert(r, 1, a, LKM_EX, 0, NULL); /* up, and its reply */
		ring_settle(r);
		ring_convert(r, 2, b, LKM_NL, 0, NULL); /* GRANT to 1 */
		ring_settle(r);
		ring_expect(r, 1, a, LKM_EX);
		r->told_count = 0;
	}
	assert_int_equal(r->sent - before, 5 * 1000);
	ring_free(r);
}

/* 9.4 6: the BAST is on its way when the holder unlocks. */
static void test_bast_after_unlock(void **state)
{
	struct ring *r = ring_new(2);
	const char *name = ring_name(2, 2);
	uint32_t a, b;

	(void)state;
	ring_lock(r, 2, name, LKM_NL, 0, NULL, &b);
	ring_lock(r, 1, name, LKM_EX, 0, NULL, &a);
	ring_settle(r);
	ring_convert(r, 2, b, LKM_EX, 0, NULL);
	ring_unlock(r, 1, a, 0, NULL);
	ring_settle(r);
	assert_null(ring_bast(r, 1, a));
	ring_expect(r, 2, b, LKM_EX);
	ring_free(r);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_scan_begins_anew),
		cmocka_unit_test(test_old_recovery_reply),
		cmocka_unit_test(test_answer_saved_over_a_recovery),
		cmocka_unit_test(test_many_resources),
		cmocka_unit_test(test_order_of_conversions_after_recovery),
		cmocka_unit_test(test_copy_for_a_master_that_is_none),
		cmocka_unit_test(test_master_dies_with_all_in_flight),
		cmocka_unit_test(test_directory_node_dies_at_lookup),
		cmocka_unit_test(test_death_in_every_step),
		cmocka_unit_test(test_back_at_once),
		cmocka_unit_test(test_ping_pong),
		cmocka_unit_test(test_bast_after_unlock),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
