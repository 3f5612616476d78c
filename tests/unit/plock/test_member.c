/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * test_member.c - one member's part, the others are played: what chance hardly
 * ever brings about, and what no member of ours would say.
 */
#include "nomem.h"
#include "story.h"

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
	assert_int_equal(
		say(&s, (struct plock_msg){ .type = PLOCK_MSG_OP,
					    .from = 2,
					    .epoch = 1,
					    .number = s.served,
					    .gen = gen_of(&s, s.served) - 1,
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

static struct plock_msg op_of_2(const struct story *s, uint64_t id,
				enum range_mode mode, uint64_t start,
				uint64_t end_byte)
{
	return (struct plock_msg){ .type = PLOCK_MSG_OP,
				   .from = 2,
				   .epoch = 1,
				   .number = s->served,
				   .gen = gen_of(s, s->served),
				   .id = id,
				   .op = { .kind = PLOCK_SET,
					   .mode = mode,
					   .owner = 7,
					   .start = start,
					   .end = end_byte } };
}

/* From here on there is no memory, and what was kept is in use. */
static void use_up(struct story *s, uint64_t number)
{
	struct plock_event event = { .kind = PLOCK_EV_CALL,
				     .call = { .number = number,
					       .op = { .kind = PLOCK_SET,
						       .mode = RANGE_READ } } };
	int error;

	nomem_after = 0;
	do {
		event.call.ctx = event.call.op.owner = ++s->next_id;
		s->out.count = 0;
		event.now_ns = s->now_ns;
		error = plock_step(s->engine, &event, &s->out);
	} while (!error && s->out.count && !s->out.list[0].answer.status);
}

/*
 * An unlock that was answered early must be done: it divides a lock, and there
 * is no memory for the second half.
 */
static void test_early_unlock_without_memory(void **state)
{
	static const uint64_t nodes[] = { 1, 2 }, gone[] = { 3 };
	struct plock_event members_event = { .kind = PLOCK_EV_MEMBERS,
					     .members = { .epoch = 2,
							  .nodes = nodes,
							  .count = 2,
							  .gone = gone,
							  .gone_count = 1 } };
	struct plock_event release = { .kind = PLOCK_EV_RELEASED,
				       .released.node = 3 };
	struct plock_event tick = { .kind = PLOCK_EV_TICK };
	uint64_t other = 2000;
	struct story s;
	unsigned before;
	int error;

	(void)state;
	begin(&s);
	do
		call(&s, ++other, RANGE_READ);
	while (!answers(&s));
	/* Lent to member 3, which dies: closed until it is released. */
	for (unsigned i = 0; i < 8; i++)
		assert_int_equal(say_op(&s, 3, RANGE_NONE), 0);
	assert_int_equal(say(&s, op_of_2(&s, 50, RANGE_READ, 0, 99)), 0);
	assert_int_equal(step(&s, &members_event), 0);
	assert_int_equal(say_done(&s, 2, 2), 0);
	assert_int_equal(say(&s, op_of_2(&s, 51, RANGE_NONE, 40, 49)), 0);
	assert_int_equal(count(&s, PLOCK_MSG_RESULT, PLOCK_LATER), 1);
	use_up(&s, other);
	before = locks(&s);
	s.out.count = 0;
	release.now_ns = tick.now_ns = s.now_ns;
	error = plock_step(s.engine, &release, &s.out);
	assert_int_equal(count(&s, PLOCK_MSG_RESULT, -ENOLCK), 0);
	assert_true(error == -ENOMEM || s.out.more);
	nomem_after = -1;
	if (error)
		assert_int_equal(plock_step(s.engine, &release, &s.out), 0);
	while (s.out.more)
		assert_int_equal(plock_step(s.engine, &tick, &s.out), 0);
	assert_int_equal(count(&s, PLOCK_MSG_RESULT, 0), 1);
	assert_int_equal(locks(&s), before + 1);
	end(&s);
}

/* The verdict on the longest deadlock that a probe can describe. */
static void test_longest_deadlock(void **state)
{
	struct plock_msg probe = { .type = PLOCK_MSG_PROBE,
				   .from = 2,
				   .epoch = 1,
				   .status = 3,
				   .confirm = true,
				   .count = PLOCK_HOPS,
				   .at = PLOCK_HOPS };
	struct story s;

	(void)state;
	begin(&s);
	call(&s, s.served, RANGE_NONE);
	assert_int_equal(say(&s, op_of_2(&s, 50, RANGE_WRITE, 0, 9)), 0);
	call_of(&s, s.served, 5, RANGE_WRITE);
	assert_int_equal(s.out.count, 0);
	probe.hops[0].who = (struct range_owner){ 1, 5 };
	probe.hops[0].id = s.call_id;
	assert_int_equal(say(&s, probe), 0);
	assert_int_equal(s.out.count, 1);
	assert_int_equal(s.out.list[0].answer.status, -EDEADLK);
	end(&s);
}

/*
 * We are the home of a file that member 2 serialised. It has given it to member
 * 3, which died before we heard of that: in the new epoch nobody claims it, and
 * what member 3 holds is not known.
 */
static void test_home_missed_a_move(void **state)
{
	static const uint64_t nodes[] = { 1, 2 }, gone[] = { 3 };
	struct plock_event without_3 = { .kind = PLOCK_EV_MEMBERS,
					 .members = { .epoch = 2,
						      .nodes = nodes,
						      .count = 2,
						      .gone = gone,
						      .gone_count = 1 } };
	struct plock_msg acquire = {
		.type = PLOCK_MSG_ACQUIRE, .from = 2, .epoch = 1, .number = 5000
	};
	struct story s;

	(void)state;
	begin(&s);
	do {
		acquire.number++;
		assert_int_equal(say(&s, acquire), 0);
	} while (!count(&s, PLOCK_MSG_SERVES, 0));
	assert_int_equal(step(&s, &without_3), 0);
	assert_int_equal(say_done(&s, 2, 2), 0);
	call(&s, acquire.number, RANGE_WRITE);
	assert_int_equal(answers(&s), 0);
	released(&s, 3);
	assert_int_equal(answers(&s), 1);
	end(&s);
}

/*
 * The last call of a window that says "move it to member 2" ends two waits, one
 * of ours and one of member 2: that one's answer must be there before the file.
 */
static void test_no_move_before_answers(void **state)
{
	struct plock_msg op;
	struct story s;

	(void)state;
	begin(&s);
	call(&s, s.served, RANGE_NONE);
	assert_int_equal(say(&s, op_of_2(&s, 50, RANGE_WRITE, 0, 9)), 0);
	call(&s, s.served, RANGE_READ);
	assert_int_equal(answers(&s), 0);
	op = op_of_2(&s, 51, RANGE_READ, 0, 9);
	op.op.owner = 8;
	op.op.wait = true;
	assert_int_equal(say(&s, op), 0);
	assert_int_equal(s.out.count, 0);
	s.now_ns += PLOCK_STAY_NS;
	for (unsigned i = 1; i < MOVE_WINDOW; i++) {
		op = op_of_2(&s, 51 + i, RANGE_NONE, 0, 9);
		op.op.owner = 9;
		assert_int_equal(say(&s, op), 0);
		assert_int_equal(count(&s, PLOCK_MSG_RESULT, 0), 1);
	}
	assert_int_equal(say(&s, op_of_2(&s, 99, RANGE_NONE, 0, 9)), 0);
	assert_int_equal(answers(&s), 1);
	assert_int_equal(count(&s, PLOCK_MSG_RESULT, 0), 2);
	assert_int_equal(count(&s, PLOCK_MSG_TABLE, 0), 0);
	end(&s);
}

/* What was asked of us as the home is answered in the step that asks. */
static void test_own_home_after_quorum(void **state)
{
	struct story s;

	(void)state;
	begin(&s);
	alone(&s, 2);
	released(&s, 2);
	released(&s, 3);
	quorum(&s, false);
	call(&s, 1000, RANGE_WRITE);
	assert_int_equal(answers(&s), 0);
	quorum(&s, true);
	assert_int_equal(answers(&s), 1);
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
		cmocka_unit_test(test_early_unlock_without_memory),
		cmocka_unit_test(test_own_home_after_quorum),
		cmocka_unit_test(test_longest_deadlock),
		cmocka_unit_test(test_home_missed_a_move),
		cmocka_unit_test(test_no_move_before_answers),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
