/* SPDX-License-Identifier: GPL-2.0-or-later */
/* test_range.c - rules of the range engine, one story each (spec plocks.md) */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <errno.h>
#include <string.h>
#include <cmocka.h>

#include "nomem.h"
#include "plock/range.h"

#define MS 1000000ull
#define FILES 3

struct story {
	struct ranges *ranges;
	struct range_table table[FILES];
	uint64_t now_ns;
	uint64_t runs_elsewhere; /* this owner is not stuck in its one wait */
};

static bool is_stuck(void *arg, const struct range_owner *who)
{
	const struct story *s = arg;

	return who->owner != s->runs_elsewhere;
}

static void begin(struct story *s)
{
	struct range_config config = { .one_wait = is_stuck, .arg = s };

	memset(s, 0, sizeof(*s));
	assert_int_equal(ranges_new(&config, &s->ranges), 0);
	for (unsigned i = 0; i < FILES; i++)
		range_table_init(s->ranges, &s->table[i]);
}

/* Everybody has been answered, and the rules hold. */
static void end(struct story *s)
{
	struct range_done done;

	assert_false(range_next_done(s->ranges, &done));
	for (unsigned i = 0; i < FILES; i++)
		range_check(s->ranges, &s->table[i]);
	ranges_free(s->ranges);
}

static struct range_request request(const struct story *s, uint64_t owner,
				    enum range_mode mode, uint64_t start,
				    uint64_t last)
{
	return (struct range_request){ .who = { .node = 1, .owner = owner },
				       .mode = mode,
				       .start = start,
				       .end = last,
				       .fair = true,
				       .now_ns = s->now_ns,
				       .ctx = owner };
}

static int try(struct story *s, unsigned file, uint64_t owner,
	       enum range_mode mode, uint64_t start, uint64_t last)
{
	struct range_request req = request(s, owner, mode, start, last);

	return range_set(s->ranges, &s->table[file], &req);
}

static int wait(struct story *s, unsigned file, uint64_t owner,
		enum range_mode mode, uint64_t start, uint64_t last)
{
	struct range_request req = request(s, owner, mode, start, last);

	req.wait = true;
	return range_set(s->ranges, &s->table[file], &req);
}

static int unlock(struct story *s, unsigned file, uint64_t owner)
{
	return try(s, file, owner, RANGE_NONE, 0, RANGE_END);
}

static void expect_done(struct story *s, uint64_t owner, int status)
{
	struct range_done done;

	assert_true(range_next_done(s->ranges, &done));
	assert_int_equal(done.ctx, owner);
	assert_int_equal(done.who.owner, owner);
	assert_int_equal(done.status, status);
}

static void expect_none(struct story *s)
{
	struct range_done done;

	assert_false(range_next_done(s->ranges, &done));
}

/* Each of a long queue is served in its turn, one at a time. */
static void test_fifo(void **state)
{
	struct story s;

	(void)state;
	begin(&s);
	assert_int_equal(try(&s, 0, 1, RANGE_WRITE, 5, 5), 0);
	for (uint64_t o = 2; o <= 500; o++)
		assert_int_equal(wait(&s, 0, o, RANGE_WRITE, 5, 5),
				 -EINPROGRESS);
	for (uint64_t o = 1; o < 500; o++) {
		expect_none(&s);
		assert_int_equal(unlock(&s, 0, o), 0);
		expect_done(&s, o + 1, 0);
	}
	end(&s);
}

static void test_reader_waits_behind_writer(void **state)
{
	struct story s;

	(void)state;
	begin(&s);
	assert_int_equal(try(&s, 0, 1, RANGE_READ, 0, 9), 0);
	assert_int_equal(wait(&s, 0, 2, RANGE_WRITE, 5, 9), -EINPROGRESS);
	/* with the first reader, as it comes soon after the writer */
	s.now_ns += 9 * MS;
	assert_int_equal(wait(&s, 0, 3, RANGE_READ, 0, 9), 0);
	s.now_ns += MS;
	assert_int_equal(wait(&s, 0, 4, RANGE_READ, 0, 9), -EINPROGRESS);
	/* where no writer waits */
	assert_int_equal(wait(&s, 0, 5, RANGE_READ, 0, 4), 0);
	/* one who does not wait takes what is free */
	assert_int_equal(try(&s, 0, 6, RANGE_READ, 9, 9), 0);
	assert_int_equal(unlock(&s, 0, 1), 0);
	assert_int_equal(unlock(&s, 0, 3), 0);
	expect_none(&s);
	assert_int_equal(unlock(&s, 0, 6), 0);
	expect_done(&s, 2, 0);
	expect_none(&s);
	assert_int_equal(unlock(&s, 0, 2), 0);
	expect_done(&s, 4, 0);
	end(&s);
}

/* Else the writer waits for the holder, and the holder behind the writer. */
static void test_holder_passes_waiters(void **state)
{
	struct story s;

	(void)state;
	begin(&s);
	assert_int_equal(try(&s, 0, 1, RANGE_READ, 0, 0), 0);
	assert_int_equal(wait(&s, 0, 2, RANGE_WRITE, 0, 9), -EINPROGRESS);
	s.now_ns += 100 * MS;
	assert_int_equal(wait(&s, 0, 1, RANGE_READ, 5, 5), 0);
	assert_int_equal(unlock(&s, 0, 1), 0);
	expect_done(&s, 2, 0);
	end(&s);
}

static void test_cancel(void **state)
{
	struct range_owner who = { .node = 1, .owner = 2 };
	struct story s;

	(void)state;
	begin(&s);
	assert_int_equal(try(&s, 0, 1, RANGE_READ, 0, 9), 0);
	assert_int_equal(wait(&s, 0, 2, RANGE_WRITE, 0, 9), -EINPROGRESS);
	s.now_ns += 100 * MS;
	assert_int_equal(wait(&s, 0, 3, RANGE_READ, 0, 9), -EINPROGRESS);
	assert_int_equal(range_cancel(s.ranges, &s.table[0], &who, 7), -ENOENT);
	assert_int_equal(range_cancel(s.ranges, &s.table[1], &who, 2), -ENOENT);
	assert_int_equal(range_cancel(s.ranges, &s.table[0], &who, 2), 0);
	expect_done(&s, 3, 0); /* only the writer was in its way */
	assert_int_equal(range_cancel(s.ranges, &s.table[0], &who, 2), -ENOENT);
	end(&s);
}

static void test_close(void **state)
{
	struct range_owner who = { .node = 1, .owner = 1 };
	struct story s;

	(void)state;
	begin(&s);
	assert_int_equal(try(&s, 0, 1, RANGE_WRITE, 0, 0), 0);
	assert_int_equal(try(&s, 0, 1, RANGE_READ, 7, 9), 0);
	assert_int_equal(try(&s, 0, 2, RANGE_WRITE, 5, 5), 0);
	assert_int_equal(wait(&s, 0, 1, RANGE_WRITE, 5, 5), -EINPROGRESS);
	assert_int_equal(wait(&s, 0, 3, RANGE_WRITE, 9, 9), -EINPROGRESS);
	assert_true(range_holds(s.ranges, &s.table[0], &who));
	assert_int_equal(range_waits(s.ranges, &who), 1);
	range_close(s.ranges, &s.table[0], &who);
	assert_false(range_holds(s.ranges, &s.table[0], &who));
	assert_int_equal(range_waits(s.ranges, &who), 0);
	expect_done(&s, 1, -EINTR);
	expect_done(&s, 3, 0);
	end(&s);
}

/* Two readers that both want to write */
static void test_deadlock_of_upgrades(void **state)
{
	struct story s;

	(void)state;
	begin(&s);
	assert_int_equal(wait(&s, 0, 1, RANGE_READ, 0, 9), 0);
	assert_int_equal(wait(&s, 0, 2, RANGE_READ, 0, 9), 0);
	assert_int_equal(wait(&s, 0, 1, RANGE_WRITE, 0, 9), -EINPROGRESS);
	assert_int_equal(wait(&s, 0, 2, RANGE_WRITE, 0, 9), -EDEADLK);
	expect_none(&s);
	assert_int_equal(unlock(&s, 0, 2), 0);
	expect_done(&s, 1, 0);
	end(&s);
}

/* 1 has file 0, 2 has 1, 3 has 2; each wants the next */
static void hold_a_ring(struct story *s)
{
	begin(s);
	for (unsigned o = 1; o <= 3; o++)
		assert_int_equal(wait(s, o - 1, o, RANGE_WRITE, 0, 0), 0);
}

static void test_deadlock_of_three_files(void **state)
{
	struct story s;

	(void)state;
	hold_a_ring(&s);
	assert_int_equal(wait(&s, 1, 1, RANGE_READ, 0, 0), -EINPROGRESS);
	assert_int_equal(wait(&s, 2, 2, RANGE_READ, 0, 0), -EINPROGRESS);
	/* somebody else may well wait there */
	assert_int_equal(wait(&s, 0, 4, RANGE_READ, 0, 0), -EINPROGRESS);
	assert_int_equal(wait(&s, 0, 3, RANGE_READ, 0, 0), -EDEADLK);
	assert_int_equal(try(&s, 0, 3, RANGE_READ, 0, 0), -EAGAIN);
	assert_int_equal(unlock(&s, 2, 3), 0);
	expect_done(&s, 2, 0);
	end(&s);
}

/* Who can go on by itself is in no deadlock. */
static void test_no_false_deadlock(void **state)
{
	struct range_request req;
	struct story s;

	(void)state;
	hold_a_ring(&s);
	assert_int_equal(wait(&s, 1, 1, RANGE_READ, 0, 0), -EINPROGRESS);
	assert_int_equal(wait(&s, 2, 2, RANGE_READ, 0, 0), -EINPROGRESS);
	/* 2 has another thread, which waits as well */
	assert_int_equal(try(&s, 0, 5, RANGE_WRITE, 9, 9), 0);
	req = request(&s, 2, RANGE_WRITE, 9, 9);
	req.wait = true;
	req.ctx = 22;
	assert_int_equal(range_set(s.ranges, &s.table[0], &req), -EINPROGRESS);
	assert_int_equal(wait(&s, 0, 3, RANGE_READ, 0, 0), -EINPROGRESS);
	ranges_free(s.ranges);

	hold_a_ring(&s);
	s.runs_elsewhere = 2;
	assert_int_equal(wait(&s, 1, 1, RANGE_READ, 0, 0), -EINPROGRESS);
	assert_int_equal(wait(&s, 2, 2, RANGE_READ, 0, 0), -EINPROGRESS);
	assert_int_equal(wait(&s, 0, 3, RANGE_READ, 0, 0), -EINPROGRESS);
	end(&s);
}

static void test_ofd_has_no_deadlock(void **state)
{
	struct range_request req;
	struct story s;

	(void)state;
	begin(&s);
	for (uint64_t o = 1; o <= 2; o++) {
		req = request(&s, o, RANGE_READ, 0, 9);
		req.kind = RANGE_OFD;
		req.wait = true;
		assert_int_equal(range_set(s.ranges, &s.table[0], &req), 0);
	}
	for (uint64_t o = 1; o <= 2; o++) {
		req = request(&s, o, RANGE_WRITE, 0, 9);
		req.kind = RANGE_OFD;
		req.wait = true;
		assert_int_equal(range_set(s.ranges, &s.table[0], &req),
				 -EINPROGRESS);
	}
	end(&s);
}

static struct range_request flock_request(uint64_t owner, enum range_mode mode,
					  bool wait)
{
	return (struct range_request){ .who = { .node = 1, .owner = owner },
				       .kind = RANGE_FLOCK,
				       .mode = mode,
				       .end = RANGE_END,
				       .fair = true,
				       .wait = wait,
				       .ctx = owner };
}

static int flock_set(struct story *s, uint64_t owner, enum range_mode mode,
		     bool wait)
{
	struct range_request req = flock_request(owner, mode, wait);

	return range_set(s->ranges, &s->table[0], &req);
}

/* At once if it can be; else the old lock is given back first. */
static void test_flock_conversion(void **state)
{
	struct range_owner who = { .node = 1, .owner = 1 };
	struct story s;

	(void)state;
	begin(&s);
	assert_int_equal(flock_set(&s, 1, RANGE_READ, true), 0);
	assert_int_equal(flock_set(&s, 3, RANGE_WRITE, true), -EINPROGRESS);
	assert_int_equal(flock_set(&s, 1, RANGE_WRITE, true), 0);
	assert_int_equal(flock_set(&s, 1, RANGE_READ, true), 0);
	assert_int_equal(flock_set(&s, 2, RANGE_READ, false), 0);
	/* both convert: the first goes behind those that wait */
	assert_int_equal(flock_set(&s, 1, RANGE_WRITE, true), -EINPROGRESS);
	assert_false(range_holds(s.ranges, &s.table[0], &who));
	assert_int_equal(flock_set(&s, 2, RANGE_WRITE, true), 0);
	assert_int_equal(flock_set(&s, 2, RANGE_NONE, false), 0);
	expect_done(&s, 3, 0);
	assert_int_equal(flock_set(&s, 3, RANGE_NONE, false), 0);
	expect_done(&s, 1, 0);
	/* one who may not wait has lost it then, as on other file systems */
	assert_int_equal(flock_set(&s, 1, RANGE_READ, false), 0);
	assert_int_equal(flock_set(&s, 2, RANGE_READ, false), 0);
	assert_int_equal(flock_set(&s, 1, RANGE_WRITE, false), -EAGAIN);
	assert_false(range_holds(s.ranges, &s.table[0], &who));
	end(&s);
}

struct seen {
	struct range_lock locks[16];
	unsigned count;
};

static void see(void *arg, const struct range_lock *lock)
{
	struct seen *seen = arg;

	seen->locks[seen->count++] = *lock;
}

/* A lock that divides another needs memory: each allocation fails once. */
static void test_no_memory_changes_nothing(void **state)
{
	struct seen after;
	struct story s;
	int error = -ENOMEM;
	long fails = 0;

	(void)state;
	begin(&s);
	assert_int_equal(try(&s, 0, 1, RANGE_WRITE, 0, 99), 0);
	while (error) {
		nomem_after = fails;
		error = try(&s, 0, 1, RANGE_READ, 40, 49);
		nomem_after = -1;
		if (!error)
			break;
		assert_int_equal(error, -ENOMEM);
		fails++;
		range_check(s.ranges, &s.table[0]);
		memset(&after, 0, sizeof(after));
		range_visit(s.ranges, &s.table[0], see, NULL, &after);
		assert_int_equal(after.count, 1);
		assert_int_equal(after.locks[0].mode, RANGE_WRITE);
		assert_int_equal(after.locks[0].start, 0);
		assert_int_equal(after.locks[0].end, 99);
	}
	assert_true(fails > 0);
	end(&s);
}

/* F_SETLKW with F_UNLCK is an unlock: it takes no memory to wait. */
static void test_unlock_that_may_wait(void **state)
{
	struct story s;

	(void)state;
	begin(&s);
	assert_int_equal(try(&s, 0, 1, RANGE_WRITE, 0, 99), 0);
	assert_int_equal(ranges_reserve(s.ranges, 1), 0);
	nomem_after = 0;
	assert_int_equal(wait(&s, 0, 1, RANGE_NONE, 40, 49), 0);
	nomem_after = -1;
	end(&s);
}

static void test_get(void **state)
{
	struct range_request req;
	struct range_lock lock;
	struct story s;

	(void)state;
	begin(&s);
	assert_int_equal(try(&s, 0, 1, RANGE_READ, 30, 39), 0);
	assert_int_equal(try(&s, 0, 2, RANGE_WRITE, 20, 29), 0);
	assert_int_equal(try(&s, 0, 3, RANGE_READ, 40, RANGE_END), 0);
	req = request(&s, 4, RANGE_READ, 25, RANGE_END);
	assert_int_equal(range_get(s.ranges, &s.table[0], &req, &lock), 1);
	assert_int_equal(lock.who.owner, 2);
	req = request(&s, 4, RANGE_READ, 30, RANGE_END);
	assert_int_equal(range_get(s.ranges, &s.table[0], &req, &lock), 0);
	req = request(&s, 1, RANGE_WRITE, 30, RANGE_END);
	assert_int_equal(range_get(s.ranges, &s.table[0], &req, &lock), 1);
	assert_int_equal(lock.who.owner, 3);
	assert_int_equal(lock.end, RANGE_END);
	assert_int_equal(try(&s, 0, 1, RANGE_READ, 5, 4), -EINVAL);
	assert_int_equal(try(&s, 0, 1, RANGE_READ, 5, RANGE_END + 1), -EINVAL);
	end(&s);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_fifo),
		cmocka_unit_test(test_reader_waits_behind_writer),
		cmocka_unit_test(test_holder_passes_waiters),
		cmocka_unit_test(test_cancel),
		cmocka_unit_test(test_close),
		cmocka_unit_test(test_deadlock_of_upgrades),
		cmocka_unit_test(test_deadlock_of_three_files),
		cmocka_unit_test(test_no_false_deadlock),
		cmocka_unit_test(test_ofd_has_no_deadlock),
		cmocka_unit_test(test_flock_conversion),
		cmocka_unit_test(test_no_memory_changes_nothing),
		cmocka_unit_test(test_unlock_that_may_wait),
		cmocka_unit_test(test_get),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
