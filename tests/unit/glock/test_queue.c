/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The queue of holders: who is granted beside whom, who waits, which tries
 * fail (docs/spec/glocks.md 2.4), and what the lock manager is asked.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

#include "fakelm.h"

#define SH LM_ST_SHARED
#define EX LM_ST_EXCLUSIVE
#define DF LM_ST_DEFERRED
#define UN LM_ST_UNLOCKED

/* Take and release at once, to have the state cached; clears the trace. */
static void cache(struct fake *f, enum lm_state state)
{
	struct glock_holder gh;

	f->at_once = true;
	assert_int_equal(glock_nq(f->gl, state, GL_EXACT, &gh), 0);
	glock_dq(&gh);
	f->at_once = false;
	assert_int_equal(glock_state(f->gl), state);
	f->trace[0] = '\0';
}

static int nq(struct fake *f, enum lm_state state, unsigned flags,
	      struct glock_holder *gh)
{
	return glock_nq(f->gl, state, flags, gh);
}

static void test_first_request(void **state)
{
	struct fake *f = *state;
	struct glock_holder gh;

	assert_int_equal(nq(f, SH, GL_ASYNC, &gh), 0);
	assert_true(glock_held(&gh));
	assert_false(gh.gh_granted);
	fake_expect(f, "lock SH");
	fake_grant(f, SH);
	assert_int_equal(glock_wait(&gh), 0);
	fake_expect(f, "instantiate");
	glock_dq(&gh);
	assert_false(glock_held(&gh));
	assert_int_equal(glock_state(f->gl), SH);
	/* Cached: nobody is asked, nothing is read. */
	assert_int_equal(nq(f, SH, GL_NOWAIT, &gh), 0);
	glock_dq(&gh);
	fake_expect(f, "");
}

static void test_stronger_cached_state_serves(void **state)
{
	struct fake *f = *state;
	struct glock_holder a, b;

	cache(f, EX);
	assert_int_equal(nq(f, SH, 0, &a), 0);
	assert_int_equal(nq(f, SH, 0, &b), 0);
	glock_dq(&a);
	glock_dq(&b);
	assert_int_equal(nq(f, DF, 0, &a), 0);
	glock_dq(&a);
	fake_expect(f, "");
	/* But not if exactly SH is wanted. */
	assert_int_equal(nq(f, SH, GL_EXACT | GL_ASYNC, &a), 0);
	fake_expect(f, "lock SH");
	fake_grant(f, SH);
	assert_int_equal(glock_wait(&a), 0);
	glock_dq(&a);
	assert_int_equal(glock_state(f->gl), SH);
}

static void test_exact_beside_holders(void **state)
{
	struct fake *f = *state;
	struct glock_holder a, b;

	cache(f, EX);
	assert_int_equal(nq(f, SH, 0, &a), 0);
	assert_int_equal(nq(f, SH, GL_EXACT | GL_ASYNC, &b), 0);
	fake_expect(f, "");
	glock_dq(&a);
	fake_expect(f, "lock SH");
	fake_grant(f, SH);
	assert_int_equal(glock_wait(&b), 0);
	glock_dq(&b);
}

static void test_up_conversion_keeps_the_cache(void **state)
{
	struct fake *f = *state;
	struct glock_holder gh;

	cache(f, SH);
	assert_int_equal(nq(f, EX, GL_ASYNC, &gh), 0);
	fake_grant(f, EX);
	assert_int_equal(glock_wait(&gh), 0);
	fake_expect(f, "lock EX");
	glock_dq(&gh);
}

static void test_fifo(void **state)
{
	struct fake *f = *state;
	struct glock_holder r1, w, r2;

	cache(f, SH);
	assert_int_equal(nq(f, SH, 0, &r1), 0);
	assert_int_equal(nq(f, EX, GL_ASYNC, &w), 0);
	/* Compatible with the holder, but the writer was first. */
	assert_int_equal(nq(f, SH, GL_ASYNC, &r2), 0);
	assert_false(r2.gh_granted);
	fake_expect(f, "");
	glock_dq(&r1);
	fake_expect(f, "lock EX");
	assert_false(r2.gh_granted);
	fake_grant(f, EX);
	assert_int_equal(glock_wait(&w), 0);
	assert_false(r2.gh_granted);
	glock_dq(&w);
	assert_int_equal(glock_wait(&r2), 0);
	glock_dq(&r2);
	fake_expect(f, "");
}

static void test_readers_together_after_writer(void **state)
{
	struct fake *f = *state;
	struct glock_holder w, r[3], w2;

	cache(f, EX);
	assert_int_equal(nq(f, EX, 0, &w), 0);
	for (int i = 0; i < 3; i++)
		assert_int_equal(nq(f, SH, GL_ASYNC, &r[i]), 0);
	assert_int_equal(nq(f, EX, GL_ASYNC, &w2), 0);
	glock_dq(&w);
	for (int i = 0; i < 3; i++)
		assert_true(r[i].gh_granted);
	assert_false(w2.gh_granted);
	for (int i = 0; i < 3; i++)
		glock_dq(&r[i]);
	assert_true(w2.gh_granted);
	glock_dq(&w2);
	fake_expect(f, "");
}

static void test_deferred_and_shared_exclude(void **state)
{
	struct fake *f = *state;
	struct glock_holder d1, d2, s;

	cache(f, DF);
	assert_int_equal(nq(f, DF, 0, &d1), 0);
	assert_int_equal(nq(f, DF, 0, &d2), 0);
	assert_int_equal(nq(f, SH, GL_TRY, &s), -EAGAIN);
	assert_int_equal(nq(f, SH, GL_ASYNC, &s), 0);
	glock_dq(&d1);
	fake_expect(f, "");
	glock_dq(&d2);
	/* Nothing of SH was cached under DF: nothing to be forgotten. */
	fake_expect(f, "lock SH");
	fake_grant(f, SH);
	assert_int_equal(glock_wait(&s), 0);
	glock_dq(&s);
}

static void test_node_scope(void **state)
{
	struct fake *f = *state;
	struct glock_holder a, b, c;

	cache(f, EX);
	assert_int_equal(nq(f, EX, GL_NODE_SCOPE, &a), 0);
	assert_int_equal(nq(f, EX, GL_NODE_SCOPE, &b), 0);
	assert_int_equal(nq(f, EX, GL_TRY, &c), -EAGAIN);
	assert_int_equal(nq(f, SH, GL_TRY, &c), -EAGAIN);
	glock_dq(&a);
	glock_dq(&b);
	/* The other way round. */
	assert_int_equal(nq(f, EX, 0, &a), 0);
	assert_int_equal(nq(f, EX, GL_NODE_SCOPE | GL_TRY, &b), -EAGAIN);
	assert_false(glock_held(&b));
	glock_dq(&a);
	fake_expect(f, "");
}

static void test_any(void **state)
{
	struct fake *f = *state;
	struct glock_holder a;

	cache(f, DF);
	assert_int_equal(nq(f, SH, GL_ANY, &a), 0);
	fake_expect(f, "");
	glock_dq(&a);
	cache(f, SH);
	assert_int_equal(nq(f, DF, GL_ANY, &a), 0);
	fake_expect(f, "");
	glock_dq(&a);
}

static void test_try_behind_holder(void **state)
{
	struct fake *f = *state;
	struct glock_holder a, b;

	cache(f, EX);
	assert_int_equal(nq(f, EX, 0, &a), 0);
	assert_int_equal(nq(f, SH, GL_TRY, &b), -EAGAIN);
	assert_int_equal(nq(f, SH, GL_TRY_1CB, &b), -EAGAIN);
	assert_int_equal(nq(f, SH, GL_NOWAIT, &b), -EAGAIN);
	glock_dq(&a);
	assert_int_equal(nq(f, SH, GL_TRY, &b), 0);
	glock_dq(&b);
}

static void test_try_behind_waiter(void **state)
{
	struct fake *f = *state;
	struct glock_holder a, b;

	cache(f, SH);
	assert_int_equal(nq(f, EX, GL_ASYNC, &a), 0);
	assert_int_equal(nq(f, SH, GL_TRY, &b), -EAGAIN);
	fake_expect(f, "lock EX");
	fake_grant(f, EX);
	assert_int_equal(glock_wait(&a), 0);
	glock_dq(&a);
}

static void test_try_outcomes(void **state)
{
	struct fake *f = *state;
	struct glock_holder gh;

	assert_int_equal(nq(f, EX, GL_TRY | GL_ASYNC, &gh), 0);
	fake_expect(f, "lock EX try");
	fake_answer(f, UN, LM_OUT_BUSY);
	assert_int_equal(glock_wait(&gh), -EAGAIN);
	assert_false(glock_held(&gh));
	assert_int_equal(nq(f, EX, GL_TRY_1CB | GL_ASYNC, &gh), 0);
	fake_expect(f, "lock EX try1cb");
	fake_grant(f, EX);
	assert_int_equal(glock_wait(&gh), 0);
	glock_dq(&gh);
}

/* A try that waits is failed by a firm request behind it that can be asked. */
static void test_try_before_firm(void **state)
{
	struct fake *f = *state;
	struct glock_holder try, firm;

	assert_int_equal(nq(f, SH, GL_TRY | GL_ASYNC, &try), 0);
	assert_int_equal(nq(f, EX, GL_ASYNC, &firm), 0);
	fake_answer(f, UN, LM_OUT_BUSY);
	assert_int_equal(glock_wait(&try), -EAGAIN);
	fake_expect(f, "lock SH try, lock EX");
	fake_grant(f, EX);
	assert_int_equal(glock_wait(&firm), 0);
	glock_dq(&firm);
}

/* Refused without a trace: it will be queued, or not, by another call. */
static void test_nowait_does_not_ask(void **state)
{
	struct fake *f = *state;
	struct glock_holder gh;

	assert_int_equal(nq(f, SH, GL_NOWAIT, &gh), -EAGAIN);
	assert_false(glock_held(&gh));
	fake_expect(f, "");
}

/* The lock manager was expected to answer at once, and does not. */
static void test_nowait_leaves_the_request(void **state)
{
	struct fake *f = *state;
	struct glock_holder gh;

	f->says_at_once = true;
	assert_int_equal(nq(f, SH, GL_NOWAIT, &gh), -EAGAIN);
	assert_false(glock_held(&gh));
	fake_expect(f, "lock SH try");
	/* Under way: not asked again, and no waiting. */
	assert_int_equal(nq(f, SH, GL_NOWAIT, &gh), -EAGAIN);
	fake_expect(f, "");
	fake_grant(f, SH);
	assert_int_equal(nq(f, SH, GL_NOWAIT, &gh), 0);
	fake_expect(f, "instantiate nowait");
	glock_dq(&gh);
}

static void test_nowait_granted_at_once(void **state)
{
	struct fake *f = *state;
	struct glock_holder gh;

	f->at_once = true;
	assert_int_equal(nq(f, EX, GL_NOWAIT, &gh), 0);
	fake_expect(f, "lock EX try, instantiate nowait");
	glock_dq(&gh);
}

static void test_nowait_does_no_work(void **state)
{
	struct fake *f = *state;
	struct glock_holder gh;

	cache(f, EX);
	glock_set_dirty(f->gl);
	assert_int_equal(nq(f, SH, GL_EXACT | GL_NOWAIT, &gh), -EAGAIN);
	cache(f, SH);
	assert_int_equal(nq(f, DF, GL_NOWAIT, &gh), -EAGAIN);
	fake_expect(f, "");
}

static void test_cancel(void **state)
{
	struct fake *f = *state;
	struct glock_holder gh;

	assert_int_equal(nq(f, EX, GL_ASYNC, &gh), 0);
	glock_dq(&gh);
	assert_false(glock_held(&gh));
	fake_expect(f, "lock EX, cancel");
	fake_answer(f, UN, LM_OUT_CANCELLED);
	fake_expect(f, "");
	assert_int_equal(glock_state(f->gl), UN);
}

static void test_cancel_comes_too_late(void **state)
{
	struct fake *f = *state;
	struct glock_holder gh;

	assert_int_equal(nq(f, EX, GL_ASYNC, &gh), 0);
	glock_dq(&gh);
	fake_grant(f, EX);
	fake_expect(f, "lock EX, cancel");
	/* Nobody holds it, but it is cached. */
	assert_int_equal(nq(f, EX, GL_NOWAIT | GL_SKIP, &gh), 0);
	glock_dq(&gh);
}

static void test_cancel_with_others_waiting(void **state)
{
	struct fake *f = *state;
	struct glock_holder a, b, c;

	assert_int_equal(nq(f, EX, GL_ASYNC, &a), 0);
	assert_int_equal(nq(f, EX, GL_ASYNC, &b), 0);
	assert_int_equal(nq(f, SH, GL_ASYNC, &c), 0);
	glock_dq(&a);
	/* b wants the same. */
	fake_expect(f, "lock EX");
	glock_dq(&b);
	fake_expect(f, "cancel");
	fake_answer(f, UN, LM_OUT_CANCELLED);
	fake_expect(f, "lock SH");
	fake_grant(f, SH);
	assert_int_equal(glock_wait(&c), 0);
	glock_dq(&c);
}

/* The next request is not made before the call that cancels has returned. */
static void test_answer_within_cancel(void **state)
{
	struct fake *f = *state;
	struct glock_holder a, b;

	f->cancel_at_once = true;
	assert_int_equal(nq(f, EX, GL_ASYNC, &a), 0);
	assert_int_equal(nq(f, SH, GL_ASYNC, &b), 0);
	glock_dq(&a);
	fake_expect(f, "lock EX, cancel, cancel returns, lock SH");
	fake_grant(f, SH);
	assert_int_equal(glock_wait(&b), 0);
	glock_dq(&b);
}

static void test_give_up_in_the_queue(void **state)
{
	struct fake *f = *state;
	struct glock_holder r1, w, r2;

	cache(f, SH);
	assert_int_equal(nq(f, SH, 0, &r1), 0);
	assert_int_equal(nq(f, EX, GL_ASYNC, &w), 0);
	assert_int_equal(nq(f, SH, GL_ASYNC, &r2), 0);
	/* The writer leaves: the reader behind it may go. */
	glock_dq(&w);
	assert_int_equal(glock_wait(&r2), 0);
	fake_expect(f, "");
	glock_dq(&r1);
	glock_dq(&r2);
}

static void test_dq_of_a_failed_one(void **state)
{
	struct fake *f = *state;
	struct glock_holder gh;

	assert_int_equal(nq(f, EX, GL_TRY | GL_ASYNC, &gh), 0);
	fake_answer(f, UN, LM_OUT_BUSY);
	glock_dq_if_held(&gh);
	assert_false(glock_held(&gh));
	fake_expect(f, "lock EX try");
}

static void test_error(void **state)
{
	struct fake *f = *state;
	struct glock_holder a, b;

	assert_int_equal(nq(f, EX, GL_ASYNC, &a), 0);
	assert_int_equal(nq(f, SH, GL_ASYNC, &b), 0);
	fake_answer(f, UN, LM_OUT_ERROR);
	assert_int_equal(glock_wait(&a), -EIO);
	assert_int_equal(glock_wait(&b), -EIO);
	/* A later request is a new chance. */
	f->at_once = true;
	assert_int_equal(nq(f, SH, 0, &a), 0);
	glock_dq(&a);
}

/* Answers that make no sense must end the wait, not loop. */
static void test_nonsense_answers(void **state)
{
	struct fake *f = *state;
	struct glock_holder gh;

	assert_int_equal(nq(f, EX, GL_ASYNC, &gh), 0);
	fake_answer(f, UN, LM_OUT_BUSY);
	assert_int_equal(glock_wait(&gh), -EIO);
	assert_int_equal(nq(f, EX, GL_ASYNC, &gh), 0);
	fake_answer(f, UN, LM_OUT_CANCELLED);
	assert_int_equal(glock_wait(&gh), -EIO);
	fake_expect(f, "lock EX, lock EX");
}

#define T(name) cmocka_unit_test_setup_teardown(name, fake_setup, fake_teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		T(test_first_request),
		T(test_stronger_cached_state_serves),
		T(test_exact_beside_holders),
		T(test_up_conversion_keeps_the_cache),
		T(test_fifo),
		T(test_readers_together_after_writer),
		T(test_deferred_and_shared_exclude),
		T(test_node_scope),
		T(test_any),
		T(test_try_behind_holder),
		T(test_try_behind_waiter),
		T(test_try_outcomes),
		T(test_try_before_firm),
		T(test_nowait_does_not_ask),
		T(test_nowait_leaves_the_request),
		T(test_nowait_granted_at_once),
		T(test_nowait_does_no_work),
		T(test_cancel),
		T(test_cancel_comes_too_late),
		T(test_cancel_with_others_waiting),
		T(test_answer_within_cancel),
		T(test_give_up_in_the_queue),
		T(test_dq_of_a_failed_one),
		T(test_error),
		T(test_nonsense_answers),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
