/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * test_blocks.c - what is left of a value block when conversions fail, unlocks
 * overtake them, and the master dies (docs/spec/dlm.md 1.13, 5.6, 13).
 *
 * Node 3 masters the resource and has written "last". Node 2 does something
 * with another value, "other", node 1 reads. Whatever has happened, it reads
 * the last value that was written, or the mark.
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

static const uint8_t last[32] = "last";
static const uint8_t other[32] = "other";

struct story {
	struct ring *r;
	const char *name;
	uint32_t master; /* NL on node 3 */
	uint32_t holder; /* on node 2 */
	uint32_t reader; /* on node 1 */
};

/* Its directory node is 1, of three and of the first two. */
static const char *name_for_story(void)
{
	static char name[8];

	for (unsigned i = 0; i < 100; i++) {
		uint32_t hash;

		snprintf(name, sizeof(name), "b%u", i);
		hash = dlm_hash(name, strlen(name)) >> 16;
		if (hash % 6 == 0)
			return name;
	}
	return NULL;
}

/* mark: the block is marked invalid as well. */
static struct story begin(enum dlm_mode holder, enum dlm_mode reader, bool mark)
{
	struct story s = { .r = ring_new(3), .name = name_for_story() };

	ring_lock(s.r, 3, s.name, LKM_EX, LKF_VALBLK, last, &s.master);
	ring_settle(s.r);
	ring_convert(s.r, 3, s.master, LKM_NL, LKF_VALBLK, last);
	if (mark) {
		ring_convert(s.r, 3, s.master, LKM_EX, LKF_VALBLK, other);
		ring_convert(s.r, 3, s.master, LKM_NL,
			     LKF_VALBLK | LKF_IVVALBLK, other);
	}
	ring_lock(s.r, 2, s.name, holder, LKF_VALBLK, other, &s.holder);
	ring_lock(s.r, 1, s.name, reader, LKF_VALBLK, other, &s.reader);
	ring_settle(s.r);
	ring_expect(s.r, 2, s.holder, holder);
	ring_expect(s.r, 1, s.reader, reader);
	assert_memory_equal(ring_cast(s.r, 2, s.holder)->lvb, last, 32);
	return s;
}

static void master_dies(struct story *s)
{
	ring_stop(s->r);
	ring_kill(s->r, 3);
	ring_start(s->r);
	ring_settle(s->r);
}

static void read_marked(struct story *s, enum dlm_mode mode)
{
	ring_convert(s->r, 1, s->reader, mode, LKF_VALBLK, other);
	ring_settle(s->r);
	ring_expect(s->r, 1, s->reader, mode);
	assert_true(ring_cast(s->r, 1, s->reader)->sbflags & SBF_VALNOTVALID);
}

/* The mark is set and the mode stays; the holder is the only donor. */
static void mark_survives(unsigned delivered)
{
	struct story s = begin(LKM_PW, LKM_NL, false);

	ring_convert(s.r, 2, s.holder, LKM_PW, LKF_VALBLK | LKF_IVVALBLK,
		     other);
	if (delivered > 0)
		ring_deliver(s.r, 2, 3);
	if (delivered > 1)
		ring_deliver(s.r, 3, 2);
	master_dies(&s);
	read_marked(&s, LKM_CR);
	assert_memory_equal(ring_cast(s.r, 1, s.reader)->lvb, last, 32);
	ring_free(s.r);
}

static void test_mark_survives_the_master(void **state)
{
	(void)state;
	mark_survives(0);
	mark_survives(1);
	mark_survives(2);
}

/*
 * Node 1 has seen the mark, the master dies, and node 1 is the next one: it
 * reads again before the conversion that marks is repeated.
 */
static void test_mark_that_was_seen_stays(void **state)
{
	struct story s = begin(LKM_PW, LKM_NL, false);

	(void)state;
	ring_convert(s.r, 2, s.holder, LKM_PW, LKF_VALBLK | LKF_IVVALBLK,
		     other);
	ring_deliver(s.r, 2, 3);
	ring_convert(s.r, 1, s.reader, LKM_CR, LKF_VALBLK, other);
	while (ring_deliver(s.r, 1, 3) || ring_deliver(s.r, 3, 1))
		;
	ring_expect(s.r, 1, s.reader, LKM_CR);
	assert_true(ring_cast(s.r, 1, s.reader)->sbflags & SBF_VALNOTVALID);
	ring_stop(s.r);
	ring_kill(s.r, 3);
	ring_start(s.r);
	for (unsigned i = 0; i < 200 && !dlm_is_running(s.r->engine[1]); i++) {
		if (!ring_deliver(s.r, 1, 2) && !ring_deliver(s.r, 2, 1))
			ring_tick(s.r, 200000000);
	}
	ring_convert(s.r, 1, s.reader, LKM_NL, LKF_VALBLK, other);
	ring_convert(s.r, 1, s.reader, LKM_CR, LKF_VALBLK, other);
	ring_expect(s.r, 1, s.reader, LKM_CR);
	assert_true(ring_cast(s.r, 1, s.reader)->sbflags & SBF_VALNOTVALID);
	ring_free(s.r);
}

/* PW to EX reads: what is passed is nobody's value. */
static void passed_value_ignored(unsigned delivered)
{
	struct story s = begin(LKM_PW, LKM_NL, false);

	ring_convert(s.r, 2, s.holder, LKM_EX, LKF_VALBLK, other);
	if (delivered)
		ring_deliver(s.r, 2, 3);
	master_dies(&s);
	ring_expect(s.r, 2, s.holder, LKM_EX);
	assert_memory_equal(ring_cast(s.r, 2, s.holder)->lvb, last, 32);
	assert_false(ring_cast(s.r, 2, s.holder)->sbflags & SBF_VALNOTVALID);
	ring_convert(s.r, 2, s.holder, LKM_NL, 0, NULL);
	ring_convert(s.r, 1, s.reader, LKM_PR, LKF_VALBLK, other);
	ring_settle(s.r);
	ring_expect(s.r, 1, s.reader, LKM_PR);
	assert_memory_equal(ring_cast(s.r, 1, s.reader)->lvb, last, 32);
	ring_free(s.r);
}

static void test_passed_value_of_a_read(void **state)
{
	(void)state;
	passed_value_ignored(0);
	passed_value_ignored(1);
}

/* The unlock overtakes the conversion; what the lock has read is no write. */
static void unlock_over_conversion(uint32_t flags)
{
	struct story s = begin(LKM_PW, LKM_NL, true);

	ring_convert(s.r, 2, s.holder, LKM_EX, LKF_VALBLK | flags, other);
	ring_unlock(s.r, 2, s.holder, LKF_FORCEUNLOCK | LKF_VALBLK, other);
	ring_settle(s.r);
	assert_int_equal(ring_cast(s.r, 2, s.holder)->status, -DLM_EUNLOCK);
	read_marked(&s, LKM_PR);
	ring_free(s.r);
}

static void test_unlock_over_conversion(void **state)
{
	(void)state;
	unlock_over_conversion(0);
	unlock_over_conversion(LKF_CONVDEADLK);
}

/*
 * Refused with EDEADLK: an alternate would have written, so the passed value
 * was the lock's own copy for a while. It may not be donated.
 */
static void test_refused_alternate(void **state)
{
	struct story s = begin(LKM_PW, LKM_CR, false);

	(void)state;
	ring_convert(s.r, 1, s.reader, LKM_PR, LKF_VALBLK, other);
	ring_settle(s.r);
	ring_convert(s.r, 2, s.holder, LKM_EX, LKF_VALBLK | LKF_ALTPR, other);
	ring_settle(s.r);
	assert_int_equal(ring_cast(s.r, 2, s.holder)->status, -EDEADLK);
	master_dies(&s);
	ring_convert(s.r, 2, s.holder, LKM_NL, 0, NULL);
	ring_settle(s.r);
	ring_expect(s.r, 1, s.reader, LKM_PR);
	assert_true(ring_cast(s.r, 1, s.reader)->sbflags & SBF_VALNOTVALID);
	ring_free(s.r);
}

/* The alternate is granted: then the passed value is the last. */
static void test_granted_alternate_writes(void **state)
{
	struct story s = begin(LKM_PW, LKM_CR, false);

	(void)state;
	ring_convert(s.r, 2, s.holder, LKM_EX, LKF_VALBLK | LKF_ALTPR, other);
	ring_settle(s.r);
	ring_expect(s.r, 2, s.holder, LKM_PR);
	master_dies(&s);
	ring_convert(s.r, 1, s.reader, LKM_PR, LKF_VALBLK, last);
	ring_settle(s.r);
	ring_expect(s.r, 1, s.reader, LKM_PR);
	assert_false(ring_cast(s.r, 1, s.reader)->sbflags & SBF_VALNOTVALID);
	assert_memory_equal(ring_cast(s.r, 1, s.reader)->lvb, other, 32);
	ring_free(s.r);
}

/*
 * The master demotes node 2 to break a deadlock, node 1 gets EX and writes, the
 * master dies before node 2 has heard anything. Its copy is old.
 */
static void test_demoted_lock_is_no_donor(void **state)
{
	struct story s = begin(LKM_PR, LKM_PR, false);
	const struct dlm_cast *cast;

	(void)state;
	ring_convert(s.r, 1, s.reader, LKM_EX, LKF_VALBLK, last);
	ring_settle(s.r);
	ring_convert(s.r, 2, s.holder, LKM_EX, LKF_VALBLK | LKF_CONVDEADLK,
		     last);
	ring_deliver(s.r, 2, 3);
	while (ring_deliver(s.r, 3, 1))
		;
	ring_expect(s.r, 1, s.reader, LKM_EX);
	ring_convert(s.r, 1, s.reader, LKM_NL, LKF_VALBLK, other);
	while (ring_deliver(s.r, 1, 3))
		;
	master_dies(&s);
	ring_expect(s.r, 2, s.holder, LKM_EX);
	cast = ring_cast(s.r, 2, s.holder);
	assert_true((cast->sbflags & SBF_VALNOTVALID) ||
		    memcmp(cast->lvb, other, 32) == 0);
	ring_free(s.r);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_mark_survives_the_master),
		cmocka_unit_test(test_mark_that_was_seen_stays),
		cmocka_unit_test(test_passed_value_of_a_read),
		cmocka_unit_test(test_unlock_over_conversion),
		cmocka_unit_test(test_refused_alternate),
		cmocka_unit_test(test_granted_alternate_writes),
		cmocka_unit_test(test_demoted_lock_is_no_donor),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
