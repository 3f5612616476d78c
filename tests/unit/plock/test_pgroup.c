/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * test_pgroup.c - stories of plock_mode=group: one member, or two, whose
 * messages come back at once. Schedules are in tests/sim/pgroupsim.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <errno.h>
#include <string.h>
#include <cmocka.h>

#include "plock/pgroup.h"

#define MS 1000000ull
#define SEC 1000000000ull

struct member {
	struct pgroup_engine *engine;
	struct pgroup_updates out;
	unsigned calls, answers;
	int last_status;
	uint64_t last_ctx;
	bool refused;
};

static struct member members[2];
static unsigned member_count, ops;
static uint64_t now_ns;

static void deliver(struct member *from, const struct pgroup_msg *msg);

static void carry_out(struct member *m)
{
	for (size_t i = 0; i < m->out.count; i++) {
		struct pgroup_update up = m->out.list[i];

		if (up.kind == PGROUP_UP_SEND) {
			ops += up.msg.type == PGROUP_OP;
			deliver(m, &up.msg);
		} else if (up.kind == PGROUP_UP_ANSWER) {
			m->answers++;
			m->last_status = up.answer.status;
			m->last_ctx = up.answer.ctx;
		} else {
			m->refused = true;
		}
	}
	m->out.count = 0;
}

/* The updates of the step under way are set aside: it sends more. */
static int step(struct member *m, struct pgroup_event *event)
{
	struct pgroup_updates before = m->out;
	int error;

	m->out = (struct pgroup_updates){ 0 };
	event->now_ns = now_ns;
	error = pgroup_step(m->engine, event, &m->out);
	pgroup_check(m->engine);
	carry_out(m);
	pgroup_updates_free(&m->out);
	m->out = before;
	return error;
}

static void deliver(struct member *from, const struct pgroup_msg *msg)
{
	uint32_t node = (uint32_t)(from - members) + 1;

	for (unsigned i = 0; i < member_count; i++) {
		struct pgroup_event event = { .kind = PGROUP_EV_MESSAGE };

		event.message.from = pgroup_proc(node, 1);
		event.message.msg = msg;
		assert_int_equal(step(&members[i], &event), 0);
	}
}

static void add(bool ownership, uint32_t rate)
{
	struct member *m = &members[member_count++];
	struct pgroup_config config = { .nodeid = member_count,
					.inc = 100 + member_count,
					.ownership = ownership };

	memset(m, 0, sizeof(*m));
	config.proc = pgroup_proc(member_count, 1);
	config.tune.rate_limit = rate;
	assert_int_equal(pgroup_engine_new(&config, &m->engine), 0);
}

/* All get the change before anybody's START. */
static void change(void)
{
	uint64_t procs[] = { pgroup_proc(1, 1), pgroup_proc(2, 1) };
	struct pgroup_event event = { .kind = PGROUP_EV_CONFIG };

	event.now_ns = now_ns;
	event.config.procs = procs;
	event.config.count = member_count;
	for (unsigned i = 0; i < member_count; i++)
		assert_int_equal(
			pgroup_step(members[i].engine, &event, &members[i].out),
			0);
	for (unsigned i = 0; i < member_count; i++) {
		struct pgroup_updates out = members[i].out;

		members[i].out = (struct pgroup_updates){ 0 };
		for (size_t u = 0; u < out.count; u++)
			deliver(&members[i], &out.list[u].msg);
		pgroup_updates_free(&out);
	}
	event.kind = PGROUP_EV_OTHERS;
	event.others.procs = procs;
	event.others.count = member_count;
	for (unsigned i = 0; i < member_count; i++)
		step(&members[i], &event);
}

/* What CANCEL names it by. Calls of one member have ctx 1, 2 .. */
static uint64_t call(struct member *m, enum range_mode mode, bool waits)
{
	struct pgroup_event event = { .kind = PGROUP_EV_CALL };

	event.call.ctx = ++m->calls;
	event.call.number = 7;
	event.call.op = (struct plock_op){ .kind = PLOCK_SET,
					   .mode = mode,
					   .wait = waits,
					   .owner = 1,
					   .end = 9 };
	assert_int_equal(step(m, &event), 0);
	return event.call.id;
}

static void cancel(struct member *m, uint64_t id)
{
	struct pgroup_event event = { .kind = PGROUP_EV_CANCEL };

	event.cancel.id = id;
	assert_int_equal(step(m, &event), 0);
}

static int teardown(void **state)
{
	(void)state;
	for (unsigned i = 0; i < member_count; i++) {
		pgroup_engine_free(members[i].engine);
		pgroup_updates_free(&members[i].out);
	}
	memset(members, 0, sizeof(members));
	member_count = ops = 0;
	now_ns = 0;
	return 0;
}

/* One call after the other, each when the one before is answered: 97 a second.
 */
static void test_rate(void **state)
{
	struct pgroup_event tick = { .kind = PGROUP_EV_TICK };
	unsigned after_1s = 0, after_11s = 0;

	(void)state;
	add(false, 100);
	now_ns = 5 * SEC;
	change();
	for (unsigned n = 0; now_ns < 16 * SEC; n++) {
		call(&members[0], n % 2 ? RANGE_NONE : RANGE_WRITE, false);
		while (members[0].answers <= n && now_ns < 16 * SEC) {
			uint64_t wake = pgroup_wake_ns(members[0].engine);

			assert_true(wake > now_ns);
			now_ns = wake;
			step(&members[0], &tick);
		}
		if (now_ns <= 6 * SEC)
			after_1s = ops;
		if (now_ns <= 16 * SEC)
			after_11s = ops;
	}
	/* The first hundred are free, as after every pause. */
	assert_in_range(after_1s, 196, 198);
	assert_in_range(after_11s - after_1s, 970, 976);
}

static void test_rate_changes_at_run_time(void **state)
{
	struct pgroup_event tune = { .kind = PGROUP_EV_TUNE };

	(void)state;
	add(false, 2);
	change();
	for (unsigned n = 0; n < 10; n++)
		call(&members[0], RANGE_READ, false);
	assert_int_equal(ops, 2);
	step(&members[0], &tune);
	assert_int_equal(ops, 10);
	assert_int_equal(members[0].answers, 10);
}

static void test_owned_files_cost_no_message(void **state)
{
	(void)state;
	add(true, 1); /* nothing of it counts */
	change();
	for (unsigned n = 0; n < 1000; n++)
		call(&members[0], n % 2 ? RANGE_NONE : RANGE_WRITE, false);
	assert_int_equal(members[0].answers, 1000);
	assert_int_equal(ops, 0);
}

/* The first has it for itself; then the second asks, and waits for its turn. */
static void test_second_user_shares(void **state)
{
	(void)state;
	add(true, 0);
	add(true, 0);
	change();
	call(&members[0], RANGE_WRITE, false);
	call(&members[1], RANGE_WRITE, false);
	assert_int_equal(members[1].answers, 1);
	assert_int_equal(members[1].last_status, -EAGAIN);
	call(&members[1], RANGE_WRITE, true);
	assert_int_equal(members[1].answers, 1);
	call(&members[0], RANGE_NONE, false);
	assert_int_equal(members[0].last_status, 0);
	assert_int_equal(members[1].answers, 2);
	assert_int_equal(members[1].last_status, 0);
	assert_int_equal(ops, 3);
}

/*
 * A cancel names no call, only what it asks for: of two threads that ask for
 * the same the one that was interrupted is told so.
 */
static void test_cancel_of_two_that_are_alike(void **state)
{
	uint64_t second;

	(void)state;
	add(false, 0);
	add(false, 0);
	change();
	call(&members[0], RANGE_WRITE, false);
	call(&members[1], RANGE_WRITE, true);
	second = call(&members[1], RANGE_WRITE, true);
	cancel(&members[1], second);
	assert_int_equal(members[1].answers, 1);
	assert_int_equal(members[1].last_ctx, 2);
	assert_int_equal(members[1].last_status, -EINTR);
	call(&members[0], RANGE_NONE, false);
	assert_int_equal(members[1].answers, 2);
	assert_int_equal(members[1].last_ctx, 1);
	assert_int_equal(members[1].last_status, 0);
}

static void test_cancel_of_one_mode(void **state)
{
	struct pgroup_counts counts;
	uint64_t reader;

	(void)state;
	add(true, 0);
	add(true, 0);
	change();
	call(&members[0], RANGE_WRITE, false);
	call(&members[1], RANGE_WRITE, true);
	reader = call(&members[1], RANGE_READ, true);
	cancel(&members[1], reader);
	assert_int_equal(members[1].last_ctx, 2);
	assert_int_equal(members[1].last_status, -EINTR);
	for (unsigned i = 0; i < 2; i++) {
		pgroup_count(members[i].engine, &counts);
		assert_int_equal(counts.ranges.waits, 1);
	}
	call(&members[0], RANGE_NONE, false);
	assert_int_equal(members[1].answers, 2);
	assert_int_equal(members[1].last_ctx, 1);
	assert_int_equal(members[1].last_status, 0);
}

static void test_another_setting_is_refused(void **state)
{
	(void)state;
	add(true, 0);
	change();
	add(false, 0);
	change();
	assert_true(pgroup_is_live(members[0].engine));
	assert_false(members[0].refused);
	assert_false(pgroup_is_live(members[1].engine));
	assert_true(members[1].refused);
}

/* Somebody else may have had tables: he is gone, not released. */
static void test_nothing_is_granted_beside_the_dead(void **state)
{
	uint64_t procs[] = { pgroup_proc(1, 1), pgroup_proc(9, 1) };
	struct pgroup_event event = { .kind = PGROUP_EV_CONFIG };

	(void)state;
	add(false, 0);
	event.config.procs = procs;
	event.config.count = 1;
	step(&members[0], &event);
	event.kind = PGROUP_EV_OTHERS;
	event.others.procs = procs;
	event.others.count = 2;
	step(&members[0], &event);
	call(&members[0], RANGE_WRITE, false);
	assert_int_equal(members[0].answers, 0);
	event.others.count = 1;
	step(&members[0], &event);
	assert_int_equal(members[0].answers, 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_teardown(test_rate, teardown),
		cmocka_unit_test_teardown(test_rate_changes_at_run_time,
					  teardown),
		cmocka_unit_test_teardown(test_owned_files_cost_no_message,
					  teardown),
		cmocka_unit_test_teardown(test_second_user_shares, teardown),
		cmocka_unit_test_teardown(test_cancel_of_two_that_are_alike,
					  teardown),
		cmocka_unit_test_teardown(test_cancel_of_one_mode, teardown),
		cmocka_unit_test_teardown(test_another_setting_is_refused,
					  teardown),
		cmocka_unit_test_teardown(
			test_nothing_is_granted_beside_the_dead, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
