/* SPDX-License-Identifier: GPL-2.0-or-later */
/* test_queues.c - grant rules, on one node (docs/spec/dlm.md 1.5 - 1.11) */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <errno.h>
#include <string.h>
#include <cmocka.h>

#include "ring.h"

#define N "r"

static void test_fifo(void **state)
{
	struct ring *r = ring_new(1);
	uint32_t pr, ex, pr2, pr3;

	(void)state;
	ring_lock(r, 1, N, LKM_PR, 0, NULL, &pr);
	ring_lock(r, 1, N, LKM_EX, 0, NULL, &ex);
	ring_lock(r, 1, N, LKM_PR, 0, NULL, &pr2);
	ring_expect(r, 1, pr, LKM_PR);
	assert_null(ring_cast(r, 1, ex));
	assert_null(ring_cast(r, 1, pr2)); /* compatible, but behind EX */
	assert_int_equal(ring_bast(r, 1, pr)->bast, LKM_EX);
	ring_lock(r, 1, N, LKM_PR, LKF_NOORDER, NULL, &pr3);
	ring_expect(r, 1, pr3, LKM_PR);
	ring_unlock(r, 1, pr3, 0, NULL);
	ring_unlock(r, 1, pr, 0, NULL);
	ring_expect(r, 1, ex, LKM_EX);
	assert_null(ring_cast(r, 1, pr2));
	ring_unlock(r, 1, ex, 0, NULL);
	ring_expect(r, 1, pr2, LKM_PR);
	ring_free(r);
}

static void test_conversions_go_first(void **state)
{
	struct ring *r = ring_new(1);
	uint32_t a, b, waiter;

	(void)state;
	ring_lock(r, 1, N, LKM_PR, 0, NULL, &a);
	ring_lock(r, 1, N, LKM_PR, 0, NULL, &b);
	ring_lock(r, 1, N, LKM_CW, 0, NULL, &waiter);
	ring_convert(r, 1, a, LKM_EX, 0, NULL);
	ring_unlock(r, 1, b, 0, NULL);
	ring_expect(r, 1, a, LKM_EX);
	assert_null(ring_cast(r, 1, waiter));
	/* the second time: there is a CW waiter behind a PR holder */
	ring_convert(r, 1, a, LKM_PR, 0, NULL);
	assert_int_equal(ring_bast(r, 1, a)->bast, LKM_CW);
	ring_free(r);
}

static void test_queue_order_of_conversions(void **state)
{
	struct ring *r = ring_new(1);
	uint32_t cr, a, b, c;

	(void)state;
	ring_lock(r, 1, N, LKM_CR, 0, NULL, &cr);
	ring_lock(r, 1, N, LKM_NL, 0, NULL, &a);
	ring_lock(r, 1, N, LKM_NL, 0, NULL, &b);
	ring_lock(r, 1, N, LKM_NL, 0, NULL, &c);
	ring_convert(r, 1, a, LKM_EX, 0, NULL);
	ring_convert(r, 1, b, LKM_CR, LKF_QUECVT, NULL);
	assert_int_equal(ring_cast(r, 1, b)->mode, LKM_NL); /* queued */
	ring_convert(r, 1, c, LKM_CR, 0, NULL);
	ring_expect(r, 1, c, LKM_CR); /* in place */
	ring_unlock(r, 1, c, 0, NULL);
	ring_unlock(r, 1, cr, 0, NULL);
	ring_expect(r, 1, a, LKM_EX);
	ring_convert(r, 1, a, LKM_NL, 0, NULL);
	ring_expect(r, 1, b, LKM_CR);
	assert_int_equal(ring_convert(r, 1, b, LKM_NL, LKF_QUECVT, NULL),
			 -EINVAL);
	ring_free(r);
}

static void test_noqueue(void **state)
{
	struct ring *r = ring_new(1);
	uint32_t ex, try, nl;

	(void)state;
	ring_lock(r, 1, N, LKM_EX, 0, NULL, &ex);
	ring_lock(r, 1, N, LKM_PR, LKF_NOQUEUE, NULL, &try);
	assert_int_equal(ring_cast(r, 1, try)->status, -EAGAIN);
	assert_null(ring_bast(r, 1, ex));
	ring_lock(r, 1, N, LKM_PR, LKF_NOQUEUE | LKF_NOQUEUEBAST, NULL, &try);
	assert_int_equal(ring_bast(r, 1, ex)->bast, LKM_PR);
	ring_lock(r, 1, N, LKM_NL, 0, NULL, &nl);
	ring_convert(r, 1, nl, LKM_PR, LKF_NOQUEUE, NULL);
	assert_int_equal(ring_cast(r, 1, nl)->status, -EAGAIN);
	assert_int_equal(ring_cast(r, 1, nl)->mode, LKM_NL);
	ring_free(r);
}

static void test_conversion_deadlock(void **state)
{
	struct ring *r = ring_new(1);
	uint32_t a, b, c;

	(void)state;
	ring_lock(r, 1, N, LKM_PR, 0, NULL, &a);
	ring_lock(r, 1, N, LKM_PR, 0, NULL, &b);
	ring_convert(r, 1, a, LKM_EX, 0, NULL);
	ring_convert(r, 1, b, LKM_EX, 0, NULL);
	assert_int_equal(ring_cast(r, 1, b)->status, -EDEADLK);
	assert_int_equal(ring_cast(r, 1, b)->mode, LKM_PR);
	ring_convert(r, 1, b, LKM_EX, LKF_CONVDEADLK, NULL);
	ring_expect(r, 1, a, LKM_EX);
	ring_convert(r, 1, a, LKM_NL, 0, NULL);
	ring_expect(r, 1, b, LKM_EX);
	assert_true(ring_cast(r, 1, b)->sbflags & SBF_DEMOTED);
	ring_convert(r, 1, b, LKM_PR, 0, NULL);
	ring_lock(r, 1, N, LKM_PR, 0, NULL, &c);
	ring_convert(r, 1, b, LKM_EX, 0, NULL);
	ring_convert(r, 1, c, LKM_EX, LKF_NODLCKWT, NULL);
	assert_int_equal(ring_bast(r, 1, c)->bast, LKM_EX); /* its own */
	ring_unlock(r, 1, c, LKF_CANCEL, NULL);
	assert_int_equal(ring_cast(r, 1, c)->status, -DLM_ECANCEL);
	ring_free(r);
}

/* A conversion to the head of the queue, before one that is in its way */
static void test_headque_gives_way(void **state)
{
	struct ring *r = ring_new(1);
	uint32_t cr, a, b;

	(void)state;
	ring_lock(r, 1, N, LKM_CR, 0, NULL, &cr);
	ring_lock(r, 1, N, LKM_PR, 0, NULL, &b);
	ring_lock(r, 1, N, LKM_NL, 0, NULL, &a);
	ring_convert(r, 1, b, LKM_EX, 0, NULL);
	ring_convert(r, 1, a, LKM_CW, LKF_HEADQUE, NULL);
	ring_unlock(r, 1, cr, 0, NULL);
	ring_expect(r, 1, b, LKM_EX);
	ring_unlock(r, 1, b, 0, NULL);
	ring_expect(r, 1, a, LKM_CW);
	ring_free(r);
}

static void test_alternate_and_expedite(void **state)
{
	struct ring *r = ring_new(1);
	uint32_t pr, ex, alt, nl;

	(void)state;
	ring_lock(r, 1, N, LKM_PR, 0, NULL, &pr);
	ring_lock(r, 1, N, LKM_EX, LKF_ALTPR, NULL, &alt);
	ring_expect(r, 1, alt, LKM_PR);
	assert_true(ring_cast(r, 1, alt)->sbflags & SBF_ALTMODE);
	ring_lock(r, 1, N, LKM_EX, 0, NULL, &ex);
	ring_lock(r, 1, N, LKM_NL, 0, NULL, &nl);
	assert_null(ring_cast(r, 1, nl)); /* NL waits, too */
	ring_lock(r, 1, N, LKM_NL, LKF_EXPEDITE, NULL, &nl);
	ring_expect(r, 1, nl, LKM_NL);
	ring_free(r);
}

static void test_refusals(void **state)
{
	struct ring *r = ring_new(1);
	uint32_t id, other;

	(void)state;
	assert_int_equal(ring_lock(r, 1, N, (enum dlm_mode)6, 0, NULL, &id),
			 -EINVAL);
	assert_int_equal(ring_lock(r, 1, N, LKM_PR, LKF_CANCEL, NULL, &id),
			 -EINVAL);
	assert_int_equal(ring_lock(r, 1, N, LKM_PR, LKF_QUECVT, NULL, &id),
			 -EINVAL);
	assert_int_equal(ring_lock(r, 1, N, LKM_PR, LKF_EXPEDITE, NULL, &id),
			 -EINVAL);
	assert_int_equal(ring_lock(r, 1, N, LKM_PR, LKF_VALBLK, NULL, &id),
			 -EINVAL);
	assert_int_equal(ring_convert(r, 1, 12345, LKM_PR, 0, NULL), -ENOENT);
	assert_int_equal(ring_unlock(r, 1, 12345, 0, NULL), -ENOENT);
	ring_lock(r, 1, N, LKM_EX, 0, NULL, &id);
	assert_int_equal(
		ring_unlock(r, 1, id, LKF_CANCEL | LKF_FORCEUNLOCK, NULL),
		-EINVAL);
	assert_int_equal(ring_unlock(r, 1, id, LKF_CANCEL, NULL), 0);
	assert_int_equal(ring_casts(r, 1, id), 1); /* an idle lock */
	ring_lock(r, 1, N, LKM_PR, 0, NULL, &other);
	assert_int_equal(ring_convert(r, 1, other, LKM_EX, 0, NULL), -EBUSY);
	ring_stop(r);
	assert_int_equal(ring_unlock(r, 1, id, 0, NULL), -EAGAIN);
	ring_free(r);
}

static void test_value_block(void **state)
{
	struct ring *r = ring_new(1);
	uint8_t block[32] = "first", zero[32] = { 0 };
	uint32_t a, b;

	(void)state;
	ring_lock(r, 1, N, LKM_EX, LKF_VALBLK, block, &a);
	assert_true(ring_cast(r, 1, a)->lvb_valid);
	assert_memory_equal(ring_cast(r, 1, a)->lvb, zero, 32);
	ring_convert(r, 1, a, LKM_NL, LKF_VALBLK, block);
	ring_lock(r, 1, N, LKM_PR, LKF_VALBLK, zero, &b);
	assert_memory_equal(ring_cast(r, 1, b)->lvb, block, 32);
	ring_convert(r, 1, b, LKM_EX, LKF_VALBLK, zero);
	ring_unlock(r, 1, b, LKF_IVVALBLK, NULL);
	ring_convert(r, 1, a, LKM_PR, LKF_VALBLK, zero);
	assert_true(ring_cast(r, 1, a)->sbflags & SBF_VALNOTVALID);
	ring_convert(r, 1, a, LKM_PW, LKF_VALBLK, zero);
	ring_convert(r, 1, a, LKM_CR, LKF_VALBLK, block);
	ring_convert(r, 1, a, LKM_CW, LKF_VALBLK, zero);
	assert_false(ring_cast(r, 1, a)->sbflags & SBF_VALNOTVALID);
	assert_memory_equal(ring_cast(r, 1, a)->lvb, block, 32);
	ring_free(r);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_fifo),
		cmocka_unit_test(test_conversions_go_first),
		cmocka_unit_test(test_queue_order_of_conversions),
		cmocka_unit_test(test_noqueue),
		cmocka_unit_test(test_conversion_deadlock),
		cmocka_unit_test(test_headque_gives_way),
		cmocka_unit_test(test_alternate_and_expedite),
		cmocka_unit_test(test_refusals),
		cmocka_unit_test(test_value_block),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
