/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * test_settings.c - what an administrator can ask for: limits of calls, files
 * that stay at home, how files are forgotten.
 */
#include "plock/limits.h"
#include "story.h"

#define MS 1000000ull
#define S 1000000000ull

static void tick(struct story *s, uint64_t later_ns)
{
	struct plock_event event = { .kind = PLOCK_EV_TICK };

	s->now_ns += later_ns;
	assert_int_equal(step(s, &event), 0);
}

static void tune(struct story *s, struct plock_tuning tuning)
{
	assert_int_equal(plock_tune(s->engine, &tuning), 0);
}

static struct plock_counts counts_of(const struct story *s)
{
	struct plock_counts counts;

	plock_count(s->engine, &counts);
	return counts;
}

static unsigned ops(const struct story *s)
{
	return count(s, PLOCK_MSG_OP, 0);
}

/* A file that member 2 serves, with our first call sent there. */
static uint64_t file_of_2(struct story *s)
{
	uint64_t number = home_at_2(s);

	assert_int_equal(say_serves(s, number, 2, 5), 0);
	assert_int_equal(ops(s), 1);
	return number;
}

/* As many as a second has are free, then one comes after the other. */
static void test_rate(void **state)
{
	struct story s;
	uint64_t number;

	begin(&s);
	number = file_of_2(&s);
	tune(&s, (struct plock_tuning){ .rate_limit = 2 });
	for (unsigned i = 0; i < 2; i++) {
		call(&s, number, RANGE_NONE);
		assert_int_equal(ops(&s), 1);
	}
	call(&s, number, RANGE_NONE);
	assert_int_equal(s.out.count, 0);
	call(&s, number, RANGE_READ);
	assert_int_equal(s.out.count, 0);
	assert_int_equal(counts_of(&s).throttled, 1);
	assert_int_equal(plock_wake_ns(s.engine), s.now_ns + 500 * MS);

	/* What is decided here is not counted. */
	for (unsigned i = 0; i < 5; i++) {
		call(&s, s.served, RANGE_NONE);
		assert_int_equal(answers(&s), 1);
	}
	tick(&s, 499 * MS);
	assert_int_equal(s.out.count, 0);
	tick(&s, 1 * MS);
	assert_int_equal(ops(&s), 1);
	assert_int_equal(plock_wake_ns(s.engine), s.now_ns + 500 * MS);
	tick(&s, 500 * MS);
	assert_int_equal(ops(&s), 1);
	assert_int_equal(counts_of(&s).throttled, 0);

	/* Idle for long: no more than a second's. */
	s.now_ns += 5 * S;
	for (unsigned i = 0; i < 3; i++)
		call(&s, number, RANGE_NONE);
	assert_int_equal(s.out.count, 0);

	/* Without the limit nothing is kept. */
	tune(&s, (struct plock_tuning){ 0 });
	tick(&s, 0);
	assert_int_equal(ops(&s), 1);
	assert_int_equal(
		plock_tune(s.engine,
			   &(struct plock_tuning){ .rate_limit = 1000001 }),
		-EINVAL);
	end(&s);
}

/* Files wait in line; who is cancelled there has never been sent. */
static void test_rate_of_two_files(void **state)
{
	struct plock_event cancel = { .kind = PLOCK_EV_CANCEL };
	uint64_t a, b, c;
	struct story s;

	begin(&s);
	a = file_of_2(&s);
	b = file_of_2(&s);
	c = file_of_2(&s);
	tune(&s, (struct plock_tuning){ .rate_limit = 1 });
	call(&s, a, RANGE_NONE);
	assert_int_equal(ops(&s), 1);
	call(&s, a, RANGE_READ);
	cancel.cancel.id = s.call_id;
	call(&s, b, RANGE_NONE);
	call(&s, a, RANGE_NONE);
	assert_int_equal(s.out.count, 0);
	assert_int_equal(step(&s, &cancel), 0);
	assert_int_equal(s.out.count, 1);
	assert_int_equal(s.out.list[0].answer.status, -EINTR);
	tick(&s, 1 * S);
	assert_int_equal(ops(&s), 1);
	assert_int_equal(s.out.list[0].msg.number, a);
	s.now_ns += S; /* there is a token, and b was there first */
	call(&s, c, RANGE_NONE);
	assert_int_equal(s.out.count, 0);
	tick(&s, 0);
	assert_int_equal(ops(&s), 1);
	assert_int_equal(s.out.list[0].msg.number, b);
	end(&s);
}

/* Who is asked first, and then told, has been paid for once. */
static void test_rate_of_questions(void **state)
{
	uint64_t number = 1000;
	struct story s;

	begin(&s);
	tune(&s, (struct plock_tuning){ .rate_limit = 1 });
	do {
		s.now_ns += S;
		call(&s, ++number, RANGE_READ);
	} while (!count(&s, PLOCK_MSG_ACQUIRE, 0) || s.out.list[0].msg.to != 2);
	call(&s, number, RANGE_NONE);
	assert_int_equal(s.out.count, 0);
	assert_int_equal(say_serves(&s, number, 2, 5), 0);
	assert_int_equal(ops(&s), 1);
	tick(&s, 1 * S);
	assert_int_equal(ops(&s), 1);
	end(&s);
}

static struct plock_msg acquire(uint64_t number)
{
	return (struct plock_msg){ .type = PLOCK_MSG_ACQUIRE,
				   .from = 2,
				   .epoch = 1,
				   .number = number };
}

/* Member 2 asks for a file whose home we are: who is to serve it? */
static uint64_t first_serves(struct story *s)
{
	for (uint64_t number = 5000;; number++) {
		assert_int_equal(say(s, acquire(number)), 0);
		if (count(s, PLOCK_MSG_SERVES, 0))
			return s->out.list[0].msg.node;
	}
}

/* What member 2 gets for using a file alone: it, or the right to grant. */
static unsigned given_away(struct story *s, enum range_mode mode)
{
	unsigned given = 0;

	for (unsigned i = 0; i < 3 * MOVE_WINDOW; i++) {
		s->now_ns += 20 * MS;
		assert_int_equal(say_op(s, 2, mode), 0);
		given += count(s, PLOCK_MSG_TABLE, 0) +
			 count(s, PLOCK_MSG_LEND, 0);
	}
	return given;
}

static void test_at_home(void **state)
{
	struct story s;

	for (unsigned at_home = 0; at_home < 2; at_home++) {
		begin_with(&s,
			   (struct plock_config){ .tuning.at_home = at_home });
		assert_int_equal(first_serves(&s), at_home ? 1 : 2);
		assert_int_equal(given_away(&s, RANGE_READ) > 0, !at_home);
		end(&s);
		begin_with(&s,
			   (struct plock_config){ .tuning.at_home = at_home });
		call(&s, s.served, RANGE_NONE);
		assert_int_equal(given_away(&s, RANGE_NONE) > 0, !at_home);
		end(&s);
	}
}

/* So many at a time, so often. */
static void test_forgetting(void **state)
{
	struct plock_tuning tuning = { .idle_ns = S,
				       .drop_every_ns = 5 * S,
				       .drop_count = 2 };
	uint32_t files, all;
	struct story s;

	begin_with(&s, (struct plock_config){ .tuning = tuning });
	alone(&s, 2);
	released(&s, 2);
	released(&s, 3);
	for (uint64_t number = 3000; number < 3006; number++)
		call(&s, number, RANGE_NONE);
	tick(&s, 5 * S);
	all = counts_of(&s).files;
	for (unsigned i = 0; i < 20; i++) {
		files = counts_of(&s).files;
		tick(&s, 4 * S);
		assert_int_equal(counts_of(&s).files, files);
		tick(&s, 1 * S);
		assert_in_range(files - counts_of(&s).files, 0, 2);
	}
	assert_true(counts_of(&s).files + 4 <= all);
	end(&s);
}

#define LENT_FILES 100u

/* All files of a tick may be lent, each to many. */
static void test_idle_files_that_are_lent(void **state)
{
	static const uint64_t nodes[] = { 1, 2, 3, 4, 5, 6, 7, 8, 9 };
	struct plock_event event = {
		.kind = PLOCK_EV_MEMBERS,
		.members = { .epoch = 2, .nodes = nodes, .count = 9 }
	};
	unsigned recalls = 0, files = 0;
	struct story s;

	begin(&s);
	tune(&s, (struct plock_tuning){ .drop_count = LENT_FILES });
	assert_int_equal(step(&s, &event), 0);
	for (uint64_t n = 2; n <= 9; n++)
		assert_int_equal(say_done(&s, n, 2), 0);
	for (uint64_t number = 2000; files < LENT_FILES; number++) {
		s.served = number;
		call(&s, number, RANGE_READ);
		if (!answers(&s)) {
			/* Its home says that it is ours. */
			struct plock_msg serves = {
				.type = PLOCK_MSG_SERVES,
				.from = s.out.list[0].msg.to,
				.epoch = 2,
				.number = number,
				.node = 1,
				.gen = 2ull << 32,
			};

			assert_int_equal(say(&s, serves), 0);
			assert_int_equal(answers(&s), 1);
		}
		files++;
		for (unsigned i = 0; i < 4 * 8; i++)
			assert_int_equal(say_op(&s, 2 + i % 8, RANGE_READ), 0);
	}
	assert_true(counts_of(&s).lends >= LENT_FILES * 8);
	for (unsigned i = 0; i < 4; i++) {
		tick(&s, PLOCK_IDLE_NS);
		recalls += count(&s, PLOCK_MSG_RECALL, 0);
	}
	assert_true(recalls >= LENT_FILES * 8);
	end(&s);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_rate),
		cmocka_unit_test(test_rate_of_two_files),
		cmocka_unit_test(test_rate_of_questions),
		cmocka_unit_test(test_at_home),
		cmocka_unit_test(test_forgetting),
		cmocka_unit_test(test_idle_files_that_are_lent),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
