/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * test_member.c - one member's part, the others are played: what chance hardly
 * ever brings about, and what no member of ours would say.
 *
 * One engine, member 1, that keeps MOST messages of one sender; 2 and 3 are
 * played.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <errno.h>
#include <string.h>
#include <cmocka.h>

#include "plock/plock.h"

#define MOST 8u

struct story {
	struct plock_engine *engine;
	struct plock_updates out;
	uint64_t now_ns;
	uint64_t next_id;
	uint64_t call_id; /* of the last call */
	uint64_t served;  /* a file that member 1 serialises */
};

static int step(struct story *s, struct plock_event *event)
{
	int error;

	s->out.count = 0;
	event->now_ns = s->now_ns;
	error = plock_step(s->engine, event, &s->out);
	assert_false(s->out.more);
	plock_check(s->engine);
	return error;
}

static void members(struct story *s, uint64_t epoch)
{
	static const uint64_t nodes[] = { 1, 2, 3 };
	struct plock_event event = {
		.kind = PLOCK_EV_MEMBERS,
		.members = { .epoch = epoch, .nodes = nodes, .count = 3 }
	};

	assert_int_equal(step(s, &event), 0);
}

/* The others are gone. */
static void alone(struct story *s, uint64_t epoch)
{
	static const uint64_t nodes[] = { 1 }, gone[] = { 2, 3 };
	struct plock_event event = { .kind = PLOCK_EV_MEMBERS,
				     .members = { .epoch = epoch,
						  .nodes = nodes,
						  .count = 1,
						  .gone = gone,
						  .gone_count = 2 } };

	assert_int_equal(step(s, &event), 0);
	assert_true(plock_is_settled(s->engine));
}

static void released(struct story *s, uint64_t node)
{
	struct plock_event event = { .kind = PLOCK_EV_RELEASED,
				     .released.node = node };

	assert_int_equal(step(s, &event), 0);
}

static void quorum(struct story *s, bool quorate)
{
	struct plock_event event = { .kind = PLOCK_EV_QUORUM,
				     .quorum.quorate = quorate };

	assert_int_equal(step(s, &event), 0);
}

static int say(struct story *s, struct plock_msg msg)
{
	struct plock_event event = { .kind = PLOCK_EV_MESSAGE, .msg = &msg };

	msg.to = 1;
	return step(s, &event);
}

static int say_done(struct story *s, uint64_t from, uint64_t epoch)
{
	return say(s, (struct plock_msg){ .type = PLOCK_MSG_DONE,
					  .from = from,
					  .epoch = epoch });
}

static unsigned count(const struct story *s, enum plock_msg_type type,
		      int status)
{
	unsigned n = 0;

	for (size_t i = 0; i < s->out.count; i++)
		n += s->out.list[i].kind == PLOCK_UP_SEND &&
		     s->out.list[i].msg.type == type &&
		     s->out.list[i].msg.status == status;
	return n;
}

static unsigned answers(const struct story *s)
{
	unsigned n = 0;

	for (size_t i = 0; i < s->out.count; i++)
		n += s->out.list[i].kind == PLOCK_UP_ANSWER &&
		     !s->out.list[i].answer.status;
	return n;
}

static void call_of(struct story *s, uint64_t number, uint64_t owner,
		    enum range_mode mode)
{
	struct plock_event event = { .kind = PLOCK_EV_CALL };

	event.call.number = number;
	event.call.ctx = ++s->next_id;
	event.call.op = (struct plock_op){ .kind = PLOCK_SET,
					   .mode = mode,
					   .wait = true,
					   .owner = owner,
					   .end = 9 };
	assert_int_equal(step(s, &event), 0);
	s->call_id = event.call.id;
}

static void call(struct story *s, uint64_t number, enum range_mode mode)
{
	call_of(s, number, 1, mode);
}

static void see(void *arg, const struct plock_file_info *info)
{
	struct story *s = arg;

	if (info->serves)
		s->served = info->number;
}

static void begin(struct story *s)
{
	struct plock_config config = { .node = 1, .kept_max = MOST };

	memset(s, 0, sizeof(*s));
	s->now_ns = 1000;
	assert_int_equal(plock_engine_new(&config, &s->engine), 0);
	members(s, 1);
	assert_int_equal(say_done(s, 2, 1), 0);
	assert_int_equal(say_done(s, 3, 1), 0);
	assert_true(plock_is_settled(s->engine));
	/* The first one whose home is member 1, too. */
	for (uint64_t number = 1; !s->served; number++) {
		call(s, number, RANGE_READ);
		plock_visit(s->engine, see, NULL, NULL, s);
	}
}

static void end(struct story *s)
{
	plock_engine_free(s->engine);
	plock_updates_free(&s->out);
}

static uint64_t gen;

static void see_gen(void *arg, const struct plock_file_info *info)
{
	const struct story *s = arg;

	if (info->number == s->served)
		gen = info->gen;
}

static int say_op(struct story *s, uint64_t from, enum range_mode mode)
{
	plock_visit(s->engine, see_gen, NULL, NULL, s);
	return say(s, (struct plock_msg){ .type = PLOCK_MSG_OP,
					  .from = from,
					  .epoch = 1,
					  .number = s->served,
					  .gen = gen,
					  .id = ++s->next_id,
					  .op = { .kind = PLOCK_SET,
						  .mode = mode,
						  .wait = true,
						  .owner = s->next_id,
						  .end = 9 } });
}

/* The link of a member that is ahead waits; that of another does not. */
static void test_epochs_to_come(void **state)
{
	struct story s;

	(void)state;
	begin(&s);
	for (unsigned i = 0; i < MOST; i++)
		assert_int_equal(say_done(&s, 2, 2), 0);
	assert_int_equal(say_done(&s, 2, 2), -EAGAIN);
	assert_int_equal(say_done(&s, 2, 3), -EAGAIN);
	assert_int_equal(say_done(&s, 3, 2), 0);
	members(&s, 2);
	assert_true(plock_is_settled(s.engine));
	assert_int_equal(say_done(&s, 2, 3), 0);
	end(&s);
}

/* Locks are refused, unlocks are not: until it is more than a member says. */
static void test_calls_of_members(void **state)
{
	struct story s;

	(void)state;
	begin(&s);
	quorum(&s, false);
	for (unsigned i = 0; i < MOST; i++) {
		assert_int_equal(say_op(&s, 2, RANGE_READ), 0);
		assert_int_equal(s.out.count, 0);
	}
	assert_int_equal(say_op(&s, 2, RANGE_READ), 0);
	assert_int_equal(count(&s, PLOCK_MSG_RESULT, -ENOLCK), 1);
	assert_int_equal(say_op(&s, 3, RANGE_READ), 0);
	assert_int_equal(s.out.count, 0);
	for (unsigned i = 0; i < MOST; i++) {
		assert_int_equal(say_op(&s, 2, RANGE_NONE), 0);
		assert_int_equal(s.out.count, 0);
	}
	assert_int_equal(say_op(&s, 2, RANGE_NONE), -EBADMSG);
	quorum(&s, true);
	assert_int_equal(count(&s, PLOCK_MSG_RESULT, 0), 2 * MOST + 1);
	assert_int_equal(say_op(&s, 2, RANGE_READ), 0);
	assert_int_equal(count(&s, PLOCK_MSG_RESULT, 0), 1);
	end(&s);
}

static int ask(struct story *s, uint64_t epoch)
{
	return say(s, (struct plock_msg){ .type = PLOCK_MSG_ACQUIRE,
					  .from = 2,
					  .epoch = epoch,
					  .number = s->served });
}

static void test_questions_before_the_barrier(void **state)
{
	struct story s;

	(void)state;
	begin(&s);
	members(&s, 2);
	assert_int_equal(say_done(&s, 3, 2), 0);
	for (unsigned i = 0; i < 2 * MOST; i++)
		assert_int_equal(ask(&s, 2), 0);
	assert_int_equal(ask(&s, 2), -EBADMSG);
	assert_int_equal(say_done(&s, 2, 2), 0);
	assert_int_equal(count(&s, PLOCK_MSG_SERVES, 0), 2 * MOST);
	/* A new epoch forgets the questions of the last one. */
	members(&s, 3);
	for (unsigned i = 0; i < 2 * MOST; i++)
		assert_int_equal(ask(&s, 3), 0);
	members(&s, 4);
	assert_int_equal(ask(&s, 4), 0);
	end(&s);
}

/* Who unlocks all the time while nothing can be done waits in the end. */
static void test_unlocks_of_processes_here(void **state)
{
	struct story s;

	(void)state;
	begin(&s);
	quorum(&s, false);
	for (unsigned i = 0; i < MOST; i++) {
		call(&s, s.served, RANGE_NONE);
		assert_int_equal(answers(&s), 1);
	}
	call(&s, s.served, RANGE_NONE);
	assert_int_equal(answers(&s), 0);
	quorum(&s, true);
	assert_int_equal(answers(&s), 1);
	quorum(&s, false);
	call(&s, s.served, RANGE_NONE);
	assert_int_equal(answers(&s), 1);
	end(&s);
}

/* A file whose home is member 2: its number. */
static uint64_t home_at_2(struct story *s)
{
	for (uint64_t number = 1000;; number++) {
		call(s, number, RANGE_READ);
		if (count(s, PLOCK_MSG_ACQUIRE, 0) &&
		    s->out.list[0].msg.to == 2)
			return number;
	}
}

static int say_serves(struct story *s, uint64_t number, uint64_t node,
		      uint64_t its_gen)
{
	return say(s, (struct plock_msg){ .type = PLOCK_MSG_SERVES,
					  .from = 2,
					  .epoch = 1,
					  .number = number,
					  .node = node,
					  .gen = its_gen });
}

static int say_bounce(struct story *s, uint64_t number, uint64_t id,
		      uint64_t old_gen, uint64_t new_gen)
{
	return say(s, (struct plock_msg){ .type = PLOCK_MSG_BOUNCE,
					  .from = 2,
					  .epoch = 1,
					  .number = number,
					  .id = id,
					  .gen = old_gen,
					  .node = 2,
					  .node_gen = new_gen });
}

/*
 * Member 2 has forgotten the file and serves it again, so both calls come back;
 * with the first all are sent again, in order, those behind them after them,
 * and the second means nothing.
 */
static void test_two_calls_come_back(void **state)
{
	uint64_t number, first, second, third;
	struct story s;

	(void)state;
	begin(&s);
	number = home_at_2(&s);
	first = s.call_id;
	call(&s, number, RANGE_NONE);
	second = s.call_id;
	assert_int_equal(say_serves(&s, number, 2, 5), 0);
	assert_int_equal(count(&s, PLOCK_MSG_OP, 0), 2);

	quorum(&s, false);
	call(&s, number, RANGE_NONE);
	third = s.call_id;
	assert_int_equal(say_bounce(&s, number, first, 5, 7), 0);
	assert_int_equal(s.out.count, 0);
	quorum(&s, true);
	assert_int_equal(s.out.count, 3);
	assert_int_equal(s.out.list[0].msg.id, first);
	assert_int_equal(s.out.list[1].msg.id, second);
	assert_int_equal(s.out.list[2].msg.id, third);
	assert_int_equal(s.out.list[1].msg.gen, 7);
	assert_int_equal(say_bounce(&s, number, second, 5, 7), 0);
	assert_int_equal(s.out.count, 0);
	end(&s);
}

/* Its earlier calls may have been bounced: it is to send all again. */
static void test_call_of_an_old_gen(void **state)
{
	struct story s;

	(void)state;
	begin(&s);
	plock_visit(s.engine, see_gen, NULL, NULL, &s);
	assert_int_equal(say(&s, (struct plock_msg){ .type = PLOCK_MSG_OP,
						     .from = 2,
						     .epoch = 1,
						     .number = s.served,
						     .gen = gen - 1,
						     .id = 1,
						     .op = { .kind = PLOCK_SET,
							     .mode = RANGE_READ,
							     .owner = 1,
							     .end = 9 } }),
			 0);
	assert_int_equal(s.out.count, 1);
	assert_int_equal(count(&s, PLOCK_MSG_BOUNCE, 0), 1);
	end(&s);
}

/* Who is gone holds what it held, but does not get what it waited for. */
static void test_waits_of_the_gone(void **state)
{
	struct story s;

	(void)state;
	begin(&s);
	assert_int_equal(say_op(&s, 2, RANGE_WRITE), 0);
	assert_int_equal(s.out.count, 0);
	alone(&s, 2);
	call(&s, s.served, RANGE_NONE);
	assert_int_equal(answers(&s), 1);
	call_of(&s, s.served, 2, RANGE_WRITE);
	assert_int_equal(answers(&s), 1);
	end(&s);
}

static unsigned locks(const struct story *s)
{
	struct plock_counts counts;

	plock_count(s->engine, &counts);
	return counts.ranges.locks;
}

/*
 * A call that waits for the end of a release is sent again when all others are
 * gone and the file comes back, closed. It is there once: cancelled it is no
 * more.
 */
static void test_call_while_released(void **state)
{
	struct plock_event cancel = { .kind = PLOCK_EV_CANCEL };
	struct plock_event tick = { .kind = PLOCK_EV_TICK };
	struct story s;
	uint64_t number;

	(void)state;
	begin(&s);
	number = home_at_2(&s);
	assert_int_equal(say_serves(&s, number, 1, 5), 0);
	call(&s, number, RANGE_NONE);
	assert_int_equal(answers(&s), 1);
	s.now_ns += PLOCK_IDLE_NS;
	assert_int_equal(step(&s, &tick), 0);
	assert_int_equal(count(&s, PLOCK_MSG_RELEASE, 0), 1);
	call(&s, number, RANGE_READ);
	cancel.cancel.id = s.call_id;
	quorum(&s, false);
	call_of(&s, number, 2, RANGE_READ);
	alone(&s, 2);
	quorum(&s, true);
	assert_int_equal(step(&s, &cancel), 0);
	assert_int_equal(s.out.count, 1);
	assert_int_equal(s.out.list[0].answer.status, -EINTR);
	number = locks(&s);
	released(&s, 2);
	released(&s, 3);
	assert_int_equal(answers(&s), 1);
	assert_int_equal(locks(&s), number + 1);
	end(&s);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_epochs_to_come),
		cmocka_unit_test(test_calls_of_members),
		cmocka_unit_test(test_questions_before_the_barrier),
		cmocka_unit_test(test_unlocks_of_processes_here),
		cmocka_unit_test(test_two_calls_come_back),
		cmocka_unit_test(test_call_of_an_old_gen),
		cmocka_unit_test(test_waits_of_the_gone),
		cmocka_unit_test(test_call_while_released),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
