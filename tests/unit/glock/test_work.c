/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What a cluster adds: work left to workers, hold times, answers kept back
 * during recovery, requests that wait without a thread, and what leaves the
 * cache by itself (docs/spec/glocks.md 2.9 to 2.13 and 13).
 *
 * The clock is the test's own (clock_gettime() is wrapped): a slow machine
 * changes nothing.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <cmocka.h>

#include "fakelm.h"
#include "glock/glock_impl.h"

#define SH LM_ST_SHARED
#define EX LM_ST_EXCLUSIVE
#define DF LM_ST_DEFERRED
#define UN LM_ST_UNLOCKED

#define MS 1000000u
#define SEC (1000 * (uint64_t)MS)

static uint64_t clock_ns = 1000 * SEC;

int __wrap_clock_gettime(clockid_t id, struct timespec *ts);
int __wrap_clock_gettime(clockid_t id, struct timespec *ts)
{
	ts->tv_sec = (time_t)(clock_ns / SEC);
	ts->tv_nsec = (long)(clock_ns % SEC);
	return 0;
}

static void pass(uint64_t ns)
{
	clock_ns += ns;
}

static int nq(struct fake *f, enum lm_state state, unsigned flags,
	      struct glock_holder *gh)
{
	return glock_nq(f->gl, state, flags, gh);
}

/* The lock manager grants the state now. */
static void cache(struct fake *f, enum lm_state state)
{
	struct glock_holder gh;

	f->at_once = true;
	assert_int_equal(nq(f, state, GL_EXACT, &gh), 0);
	glock_dq(&gh);
	fake_work(f);
	f->at_once = false;
	f->trace[0] = '\0';
}

static void use(struct fake *f, enum lm_state state)
{
	struct glock_holder gh;

	assert_int_equal(nq(f, state, GL_NOWAIT, &gh), 0);
	glock_dq(&gh);
}

/* ---- work for workers ---- */

static void test_callback_leaves_the_work(void **state)
{
	struct fake *f = *state;
	unsigned woken;

	cache(f, EX);
	glock_set_dirty(f->gl);
	pass(SEC);
	woken = f->woken;
	glock_callback(f->gl, EX);
	fake_expect(f, "callback EX");
	assert_true(f->woken > woken);
	assert_int_equal(glock_table_wake_ns(f->table), 0);
	assert_true(glock_is_wanted(f->gl));
	f->at_once = true;
	fake_work(f);
	fake_expect(f, "sync, invalidate UN, lock UN");
	assert_false(glock_is_wanted(f->gl));
	assert_false(glock_table_work(f->table));
}

/* No need of a worker when there is nothing to write or forget. */
static void test_callback_without_work(void **state)
{
	struct fake *f = *state;

	cache(f, EX);
	pass(SEC);
	f->at_once = true;
	glock_callback(f->gl, SH);
	fake_expect(f, "callback SH, lock SH");
}

static void test_release_leaves_the_work(void **state)
{
	struct fake *f = *state;
	struct glock_holder gh;

	cache(f, EX);
	assert_int_equal(nq(f, EX, 0, &gh), 0);
	pass(SEC);
	glock_callback(f->gl, EX);
	fake_work(f);
	fake_expect(f, "callback EX");
	glock_dq(&gh);
	fake_expect(f, "");
	f->at_once = true;
	fake_work(f);
	fake_expect(f, "invalidate UN, lock UN");
}

/* Neither does a request that others' cached data stand in the way of. */
static void test_request_leaves_the_work(void **state)
{
	struct fake *f = *state;
	struct glock_holder a, try;

	cache(f, SH);
	assert_int_equal(nq(f, DF, GL_ASYNC, &a), 0);
	fake_expect(f, "");
	/* Nobody passes, and who may not wait does not. */
	assert_int_equal(nq(f, SH, GL_NOWAIT, &try), -EAGAIN);
	glock_table_check(f->table);
	fake_work(f);
	fake_expect(f, "invalidate DF, lock DF");
	fake_grant(f, DF);
	assert_int_equal(glock_wait(&a), 0);
	glock_dq(&a);
}

static void test_given_up_before_the_work(void **state)
{
	struct fake *f = *state;
	struct glock_holder a;

	cache(f, SH);
	assert_int_equal(nq(f, DF, GL_ASYNC, &a), 0);
	glock_dq(&a);
	fake_work(f);
	fake_expect(f, "");
	use(f, SH);
}

static void test_put_does_the_work(void **state)
{
	struct fake *f = *state;

	cache(f, EX);
	glock_set_dirty(f->gl);
	pass(SEC);
	glock_callback(f->gl, EX);
	f->at_once = true;
	glock_put(f->gl);
	f->gl = NULL;
	fake_expect(f, "callback EX, sync, invalidate UN, lock UN, put");
	assert_false(glock_table_work(f->table));
}

static void test_put_ends_the_hold(void **state)
{
	struct fake *f = *state;

	cache(f, EX);
	glock_callback(f->gl, EX);
	f->at_once = true;
	glock_put(f->gl);
	f->gl = NULL;
	fake_expect(f, "callback EX, invalidate UN, lock UN, put");
	pass(SEC);
	assert_false(glock_table_work(f->table));
}

static void test_shrink_leaves_the_work(void **state)
{
	struct fake *f = *state;

	cache(f, EX);
	pass(2 * SEC);
	glock_table_shrink(f->table, LM_TYPE_INODE, clock_ns / SEC, 10);
	fake_expect(f, "");
	f->at_once = true;
	fake_work(f);
	fake_expect(f, "invalidate UN, lock UN");
}

/* ---- recall ---- */

static void (*during_recall)(struct fake *f);

static void fake_recall(struct glock *gl, enum lm_state target)
{
	struct fake *f = glock_object(gl);
	void (*during)(struct fake * f) = during_recall;

	fake_trace(f, "recall %s", target == UN ? "UN" : "SH");
	during_recall = NULL;
	if (during)
		during(f);
}

static int no_sync(struct glock *gl)
{
	fake_trace(glock_object(gl), "sync");
	return 0;
}

static void no_invalidate(struct glock *gl, enum lm_state target)
{
	fake_trace(glock_object(gl), "invalidate");
}

static const struct glock_ops recalled_ops = {
	.type = LM_TYPE_FLOCK,
	.sync = no_sync,
	.invalidate = no_invalidate,
	.recall = fake_recall,
};

/* Another glock in the place of the usual one. */
static void take_recalled(struct fake *f)
{
	f->at_once = true;
	glock_put(f->gl);
	assert_int_equal(
		glock_get(f->table, &recalled_ops, FAKE_NUMBER, f, &f->gl), 0);
	f->trace[0] = '\0';
}

/* What the kernel has comes back by a request, also by one that waits. */
static void come_back(struct fake *f)
{
	struct glock_holder gh;

	use(f, EX);
	assert_int_equal(nq(f, SH, 0, &gh), 0);
	glock_dq(&gh);
	fake_trace(f, "came back");
}

static void test_recall(void **state)
{
	struct fake *f = *state;

	take_recalled(f);
	cache(f, EX);
	glock_set_dirty(f->gl);
	f->at_once = true;
	during_recall = come_back;
	glock_callback(f->gl, SH);
	/* Not before somebody is at it, either. */
	use(f, EX);
	fake_work(f);
	fake_expect(f, "recall SH, came back, sync, lock SH");
	glock_callback(f->gl, EX);
	fake_work(f);
	fake_expect(f, "recall UN, invalidate, lock UN");
}

static void want_more(struct fake *f)
{
	struct glock_holder gh;

	glock_callback(f->gl, EX);
	/* This can only be had from the others: after the demotion. */
	assert_int_equal(nq(f, SH, GL_ASYNC, &gh), 0);
	assert_true(gh.gh_granted);
	glock_dq(&gh);
}

static void test_recall_of_more(void **state)
{
	struct fake *f = *state;

	take_recalled(f);
	cache(f, EX);
	f->at_once = true;
	during_recall = want_more;
	glock_callback(f->gl, SH);
	fake_work(f);
	fake_expect(f, "recall SH, recall UN, invalidate, lock UN");
}

static struct glock_holder upgrade;

static void want_upgrade(struct fake *f)
{
	struct glock_holder a, b;

	assert_int_equal(nq(f, EX, GL_ASYNC, &upgrade), 0);
	assert_false(upgrade.gh_granted);
	/* Others are not held up by it: the recall may need them. */
	assert_int_equal(nq(f, SH, 0, &a), 0);
	assert_int_equal(nq(f, SH, 0, &b), 0);
	assert_false(upgrade.gh_granted);
	glock_table_check(f->table);
	glock_dq(&a);
	glock_table_check(f->table);
	glock_dq(&b);
}

/* No request to the lock manager before the demotion, which it would wait for.
 */
static void test_recall_and_upgrade(void **state)
{
	struct fake *f = *state;

	take_recalled(f);
	cache(f, SH);
	during_recall = want_upgrade;
	glock_callback(f->gl, EX);
	f->at_once = true;
	fake_work(f);
	fake_expect(f, "recall UN, invalidate, lock UN, lock EX");
	assert_int_equal(glock_wait(&upgrade), 0);
	glock_dq(&upgrade);
}

/* Both want EX: the loser recalls as well, and does not ask meanwhile. */
static void test_recall_and_deadlock(void **state)
{
	struct fake *f = *state;
	struct glock_holder gh;

	take_recalled(f);
	cache(f, SH);
	assert_int_equal(nq(f, EX, GL_ASYNC, &gh), 0);
	fake_answer(f, SH, LM_OUT_DEADLOCK);
	fake_expect(f, "lock EX");
	f->at_once = true;
	fake_work(f);
	fake_expect(f, "recall UN, invalidate, lock UN, lock EX");
	assert_int_equal(glock_wait(&gh), 0);
	glock_dq(&gh);
}

static void test_recall_before_the_answer(void **state)
{
	struct fake *f = *state;
	struct glock_holder gh;

	take_recalled(f);
	f->at_once = false;
	assert_int_equal(nq(f, SH, GL_ASYNC, &gh), 0);
	glock_callback(f->gl, EX);
	fake_work(f);
	fake_grant(f, SH);
	assert_int_equal(glock_wait(&gh), 0);
	f->at_once = true;
	fake_work(f);
	fake_expect(f, "lock SH, recall UN");
	/* Now it is for good. */
	assert_int_equal(nq(f, SH, GL_NOWAIT, &upgrade), -EAGAIN);
	glock_dq(&gh);
	fake_work(f);
	fake_expect(f, "invalidate, lock UN");
}

static void test_recall_not_at_the_end(void **state)
{
	struct fake *f = *state;

	take_recalled(f);
	cache(f, EX);
	glock_set_dirty(f->gl);
	glock_callback(f->gl, SH);
	f->at_once = true;
	glock_put(f->gl);
	f->gl = NULL;
	fake_expect(f, "sync, invalidate, lock UN, put");
}

/* ---- hold time ---- */

static unsigned hold_ms(struct fake *f)
{
	return f->gl->gl_hold_ms;
}

/* Granted a moment ago, but not in use: given away after a look or two. */
static void test_hold_of_no_use(void **state)
{
	struct fake *f = *state;
	unsigned before = hold_ms(f);

	cache(f, EX);
	pass(MS);
	glock_callback(f->gl, EX);
	fake_work(f);
	fake_expect(f, "callback EX");
	assert_in_range(glock_table_wake_ns(f->table), clock_ns,
			clock_ns + 2 * MS);
	pass(2 * MS);
	f->at_once = true;
	fake_work(f);
	fake_expect(f, "invalidate UN, lock UN");
	assert_int_equal(hold_ms(f), before / 2);
}

static void test_hold_in_use(void **state)
{
	struct fake *f = *state;
	unsigned before = hold_ms(f);

	cache(f, EX);
	glock_callback(f->gl, EX);
	for (unsigned ms = 0; ms + 1 < before; ms++) {
		pass(MS);
		use(f, EX);
		fake_work(f);
	}
	fake_expect(f, "callback EX");
	/* The time is over, whether it is in use or not. */
	pass(2 * MS);
	use(f, EX);
	f->at_once = true;
	fake_work(f);
	fake_expect(f, "invalidate UN, lock UN");
	assert_int_equal(hold_ms(f), 2 * before);
}

static void test_hold_of_a_holder(void **state)
{
	struct fake *f = *state;
	struct glock_holder gh;

	cache(f, EX);
	assert_int_equal(nq(f, EX, 0, &gh), 0);
	glock_callback(f->gl, EX);
	pass(3 * MS);
	fake_work(f);
	/* He has used it all the time: the next one may have it as well. */
	glock_dq(&gh);
	assert_int_equal(nq(f, EX, GL_NOWAIT, &gh), 0);
	pass(SEC);
	fake_work(f);
	fake_expect(f, "callback EX");
	/* After the hold time, others pass us by no longer. */
	f->at_once = true;
	glock_dq(&gh);
	fake_work(f);
	fake_expect(f, "invalidate UN, lock UN");
}

/* An old grant gives no right to delay. */
static void test_hold_is_of_the_grant(void **state)
{
	struct fake *f = *state;

	cache(f, EX);
	pass(SEC);
	use(f, EX);
	glock_callback(f->gl, EX);
	f->at_once = true;
	fake_work(f);
	fake_expect(f, "callback EX, invalidate UN, lock UN");
}

static void test_hold_before_the_answer(void **state)
{
	struct fake *f = *state;
	struct glock_holder gh;

	assert_int_equal(nq(f, EX, GL_ASYNC, &gh), 0);
	glock_callback(f->gl, EX);
	pass(SEC);
	fake_work(f);
	fake_grant(f, EX);
	assert_int_equal(glock_wait(&gh), 0);
	glock_dq(&gh);
	fake_work(f);
	fake_expect(f, "lock EX, callback EX, instantiate");
	pass(2 * MS);
	use(f, EX);
	f->at_once = true;
	fake_work(f);
	fake_expect(f, "");
	pass(SEC);
	fake_work(f);
	fake_expect(f, "invalidate UN, lock UN");
}

/* A refusal ends it: there is nothing to hold. */
static void test_hold_without_a_grant(void **state)
{
	struct fake *f = *state;
	struct glock_holder gh;

	cache(f, SH);
	pass(SEC);
	assert_int_equal(nq(f, EX, GL_TRY | GL_ASYNC, &gh), 0);
	glock_callback(f->gl, EX);
	fake_answer(f, SH, LM_OUT_BUSY);
	assert_int_equal(glock_wait(&gh), -EAGAIN);
	f->at_once = true;
	fake_work(f);
	fake_expect(f, "lock EX try, callback EX, invalidate UN, lock UN");
}

static void lose_it_unused(struct fake *f)
{
	cache(f, EX);
	glock_callback(f->gl, EX);
	pass(2 * MS);
	f->at_once = true;
	fake_work(f);
	f->at_once = false;
	f->trace[0] = '\0';
}

/* Who takes turns with another node is not delayed; who wants it back is. */
static void test_hold_adapts(void **state)
{
	struct fake *f = *state;
	struct glock_holder gh;

	for (int i = 0; i < 10 && hold_ms(f); i++)
		lose_it_unused(f);
	assert_int_equal(hold_ms(f), 0);
	cache(f, EX);
	glock_callback(f->gl, EX);
	fake_work(f);
	fake_expect(f, "callback EX, invalidate UN, lock UN");
	/* Wanted back before it has gone. */
	assert_int_equal(nq(f, EX, GL_ASYNC, &gh), 0);
	assert_int_equal(hold_ms(f), 1);
	fake_grant(f, UN);
	fake_grant(f, EX);
	assert_int_equal(glock_wait(&gh), 0);
	glock_dq(&gh);
	for (int i = 0; i < 20; i++) {
		glock_callback(f->gl, EX);
		use(f, EX);
		pass(SEC);
		f->at_once = true;
		fake_work(f);
		cache(f, EX);
	}
	/* But not for ever. */
	assert_in_range(hold_ms(f), 20, 63);
}

/* Others of our own do not wait for the hold time. */
static void test_nocache_ends_the_hold(void **state)
{
	struct fake *f = *state;
	struct glock_holder gh;

	cache(f, EX);
	glock_callback(f->gl, EX);
	assert_int_equal(nq(f, EX, GL_NOCACHE, &gh), 0);
	f->at_once = true;
	glock_dq(&gh);
	fake_work(f);
	fake_expect(f, "callback EX, invalidate UN, lock UN");
}

/* Once by the clock, once by need: it is in the queue once. */
static void test_ready_twice(void **state)
{
	struct fake *f = *state;
	struct glock_holder gh;
	struct glock *other;

	assert_int_equal(glock_get(f->table, &fake_worked_ops, 7, f, &other),
			 0);
	cache(f, EX);
	f->at_once = true;
	assert_int_equal(glock_nq(other, EX, GL_SKIP, &gh), 0);
	glock_dq(&gh);
	glock_callback(f->gl, EX);
	pass(3 * MS);
	/* This looks at the clock. */
	glock_callback(other, EX);
	assert_int_equal(nq(f, EX, GL_NOCACHE, &gh), 0);
	glock_dq(&gh);
	f->trace[0] = '\0';
	fake_work(f);
	fake_expect(f, "invalidate UN, lock UN");
	glock_put(other);
	f->trace[0] = '\0';
}

static void test_two_wishes_during_the_hold(void **state)
{
	struct fake *f = *state;

	cache(f, EX);
	glock_callback(f->gl, SH);
	glock_callback(f->gl, DF);
	pass(SEC);
	f->at_once = true;
	fake_work(f);
	fake_expect(f, "callback SH, callback DF, invalidate UN, lock UN");
}

static void test_clock_leaps(void **state)
{
	struct fake *f = *state;

	cache(f, EX);
	glock_callback(f->gl, EX);
	/* Much more than the wheel has slots. */
	pass(100000 * SEC);
	f->at_once = true;
	fake_work(f);
	fake_expect(f, "callback EX, invalidate UN, lock UN");
}

/* ---- recovery ---- */

static void test_freeze(void **state)
{
	struct fake *f = *state;
	struct glock_holder a;

	assert_int_equal(nq(f, SH, GL_ASYNC, &a), 0);
	glock_table_freeze(f->table);
	glock_table_freeze(f->table);
	fake_grant(f, SH);
	assert_false(a.gh_granted);
	glock_table_check(f->table);
	glock_table_thaw(f->table);
	assert_true(a.gh_granted);
	assert_int_equal(glock_wait(&a), 0);
	glock_dq(&a);
	fake_expect(f, "lock SH, instantiate");
}

static void test_freeze_leaves_what_we_have(void **state)
{
	struct fake *f = *state;

	cache(f, EX);
	glock_set_dirty(f->gl);
	glock_table_freeze(f->table);
	use(f, EX);
	pass(SEC);
	glock_callback(f->gl, EX);
	f->at_once = true;
	fake_work(f);
	fake_expect(f, "callback EX, sync, invalidate UN, lock UN");
	assert_int_equal(glock_state(f->gl), UN);
	glock_table_thaw(f->table);
}

static void test_freeze_keeps_refusals(void **state)
{
	struct fake *f = *state;
	struct glock_holder try;

	assert_int_equal(nq(f, SH, GL_TRY | GL_ASYNC, &try), 0);
	glock_table_freeze(f->table);
	fake_answer(f, UN, LM_OUT_BUSY);
	assert_int_equal(try.gh_error, 0);
	glock_table_thaw(f->table);
	assert_int_equal(glock_wait(&try), -EAGAIN);
}

static void test_freeze_lets_recovery_pass(void **state)
{
	struct fake *f = *state;
	struct glock_holder a, b;

	glock_table_freeze(f->table);
	assert_int_equal(nq(f, SH, GL_ASYNC | GL_NOEXP, &a), 0);
	fake_grant(f, SH);
	assert_int_equal(glock_wait(&a), 0);
	glock_dq(&a);
	/* Also when it comes after the answer. */
	assert_int_equal(nq(f, EX, GL_ASYNC, &a), 0);
	fake_grant(f, EX);
	assert_false(a.gh_granted);
	assert_int_equal(nq(f, EX, GL_ASYNC | GL_NOEXP, &b), 0);
	assert_true(a.gh_granted);
	glock_dq(&a);
	assert_int_equal(glock_wait(&b), 0);
	glock_dq(&b);
	glock_table_thaw(f->table);
}

static void test_freeze_of_a_demotion(void **state)
{
	struct fake *f = *state;
	struct glock_holder gh;

	cache(f, EX);
	pass(SEC);
	glock_table_freeze(f->table);
	glock_callback(f->gl, SH);
	fake_expect(f, "callback SH, lock SH");
	fake_grant(f, SH);
	/* Busy until the thaw: nobody can use it. */
	assert_int_equal(nq(f, SH, GL_NOWAIT, &gh), -EAGAIN);
	assert_int_equal(glock_state(f->gl), EX);
	/* But on its way to unlocked it may go on. */
	glock_callback(f->gl, EX);
	f->at_once = true;
	fake_work(f);
	fake_expect(f, "callback EX, invalidate UN, lock UN");
	glock_table_thaw(f->table);
}

static void test_freeze_and_put(void **state)
{
	struct fake *f = *state;
	struct glock_holder gh;

	assert_int_equal(nq(f, EX, GL_ASYNC, &gh), 0);
	glock_table_freeze(f->table);
	fake_grant(f, EX);
	glock_dq(&gh);
	/* Nobody has it, nobody will: it need not wait for the thaw. */
	f->at_once = true;
	glock_put(f->gl);
	f->gl = NULL;
	fake_expect(f, "lock EX, invalidate UN, lock UN, put");
	glock_table_thaw(f->table);
}

static void test_freeze_and_withdraw(void **state)
{
	struct fake *f = *state;
	struct glock_holder gh;

	assert_int_equal(nq(f, EX, GL_ASYNC, &gh), 0);
	glock_table_freeze(f->table);
	fake_grant(f, EX);
	glock_table_withdraw(f->table);
	assert_int_equal(glock_wait(&gh), -EIO);
	glock_put(f->gl);
	f->gl = NULL;
	fake_expect(f, "lock EX, put keep");
}

static void test_thaw_of_many(void **state)
{
	struct fake *f = *state;
	struct glock *gl[700];
	struct glock_holder *gh = calloc(700, sizeof(*gh));

	for (unsigned i = 0; i < 700; i++) {
		assert_int_equal(
			glock_get(f->table, &fake_worked_ops, i, f, &gl[i]), 0);
		assert_int_equal(
			glock_nq(gl[i], SH, GL_ASYNC | GL_SKIP, &gh[i]), 0);
		f->trace[0] = '\0';
	}
	glock_table_freeze(f->table);
	for (unsigned i = 0; i < 700; i++)
		glock_complete(gl[i], SH, LM_OUT_DONE);
	for (unsigned i = 0; i < 700; i++)
		assert_false(gh[i].gh_granted);
	glock_table_thaw(f->table);
	f->at_once = true;
	for (unsigned i = 0; i < 700; i++) {
		assert_int_equal(glock_wait(&gh[i]), 0);
		glock_dq(&gh[i]);
		glock_put(gl[i]);
		f->trace[0] = '\0';
	}
	free(gh);
}

/* ---- without a thread ---- */

static struct glock_holder *told;
static unsigned tellings;

static void on_notify(struct glock_holder *gh)
{
	told = gh;
	tellings++;
}

static int park(struct fake *f, enum lm_state state, unsigned flags,
		struct glock_holder *gh)
{
	told = NULL;
	tellings = 0;
	return glock_nq_notify(f->gl, state, flags, gh, on_notify);
}

static void test_notify(void **state)
{
	struct fake *f = *state;
	struct glock_holder parked, gh;

	assert_int_equal(park(f, EX, 0, &parked), -EINPROGRESS);
	fake_expect(f, "lock EX");
	assert_int_equal(tellings, 0);
	fake_grant(f, EX);
	assert_int_equal(tellings, 1);
	assert_ptr_equal(told, &parked);
	/* Without waiting for the device, first. */
	f->instantiate_error = -EAGAIN;
	assert_int_equal(glock_adopt(&parked, GL_NOWAIT, &gh), -EAGAIN);
	assert_true(glock_held(&parked));
	f->instantiate_error = 0;
	assert_int_equal(glock_adopt(&parked, 0, &gh), 0);
	assert_false(glock_held(&parked));
	assert_true(glock_held(&gh));
	fake_expect(f, "instantiate nowait, instantiate");
	glock_table_check(f->table);
	/* It is the holder, with all that this means. */
	assert_int_equal(nq(f, SH, GL_NOWAIT, &parked), -EAGAIN);
	glock_dq(&gh);
	assert_int_equal(tellings, 1);
}

static void test_notify_keeps_the_place(void **state)
{
	struct fake *f = *state;
	struct glock_holder parked, behind, gh;

	cache(f, EX);
	assert_int_equal(nq(f, EX, 0, &gh), 0);
	assert_int_equal(park(f, EX, 0, &parked), -EINPROGRESS);
	assert_int_equal(nq(f, EX, GL_ASYNC, &behind), 0);
	glock_dq(&gh);
	assert_int_equal(tellings, 1);
	assert_int_equal(glock_adopt(&parked, GL_NOWAIT, &gh), 0);
	glock_table_check(f->table);
	assert_false(behind.gh_granted);
	glock_dq(&gh);
	assert_true(behind.gh_granted);
	glock_dq(&behind);
}

static void test_notify_granted_at_once(void **state)
{
	struct fake *f = *state;
	struct glock_holder parked, gh;

	f->at_once = true;
	assert_int_equal(park(f, EX, 0, &parked), 0);
	assert_int_equal(glock_adopt(&parked, 0, &gh), 0);
	glock_dq(&gh);
	assert_int_equal(tellings, 0);
}

static void test_notify_of_failure(void **state)
{
	struct fake *f = *state;
	struct glock_holder parked, gh;

	assert_int_equal(park(f, EX, 0, &parked), -EINPROGRESS);
	fake_answer(f, UN, LM_OUT_ERROR);
	assert_int_equal(tellings, 1);
	assert_int_equal(glock_adopt(&parked, 0, &gh), -EIO);
	assert_false(glock_held(&parked));
	/* The device fails the holder, and nobody else. */
	f->at_once = true;
	assert_int_equal(park(f, EX, 0, &parked), 0);
	f->instantiate_error = -EUCLEAN;
	assert_int_equal(glock_adopt(&parked, GL_NOWAIT, &gh), -EUCLEAN);
	assert_false(glock_held(&parked));
	glock_table_withdraw(f->table);
	assert_int_equal(park(f, EX, 0, &parked), -EIO);
	assert_false(glock_held(&parked));
	f->trace[0] = '\0';
}

static void test_notify_given_up(void **state)
{
	struct fake *f = *state;
	struct glock_holder parked;

	assert_int_equal(park(f, EX, 0, &parked), -EINPROGRESS);
	glock_dq(&parked);
	fake_answer(f, UN, LM_OUT_CANCELLED);
	assert_int_equal(tellings, 0);
	fake_expect(f, "lock EX, cancel");
}

static void test_wait_until(void **state)
{
	struct fake *f = *state;
	struct glock_holder gh;

	assert_int_equal(nq(f, EX, GL_ASYNC, &gh), 0);
	assert_int_equal(glock_wait_until(&gh, 1), -ETIMEDOUT);
	assert_true(glock_held(&gh));
	fake_grant(f, EX);
	assert_int_equal(glock_wait_until(&gh, 1), 0);
	glock_dq(&gh);
}

/* ---- the lock manager has no memory ---- */

static void test_no_memory(void **state)
{
	struct fake *f = *state;
	struct glock_holder gh;

	assert_int_equal(nq(f, SH, GL_ASYNC, &gh), 0);
	fake_answer(f, UN, LM_OUT_NOMEM);
	assert_int_equal(glock_wait(&gh), -ENOMEM);
	cache(f, EX);
	pass(SEC);
	/* The other node gets it all the same. */
	glock_callback(f->gl, SH);
	fake_answer(f, EX, LM_OUT_NOMEM);
	fake_work(f);
	fake_expect(f, "callback SH, lock SH");
	pass(SEC);
	fake_work(f);
	fake_expect(f, "lock SH");
	fake_grant(f, SH);
	assert_int_equal(glock_state(f->gl), SH);
}

/* ---- what is not used ---- */

static void test_idle(void **state)
{
	struct fake *f = *state;

	assert_int_equal(glock_table_wake_ns(f->table), UINT64_MAX);
	cache(f, SH);
	pass(GLOCK_DEMOTE_SECS / 2 * SEC);
	use(f, SH);
	pass(GLOCK_DEMOTE_SECS / 2 * SEC + 5 * SEC);
	fake_work(f);
	fake_expect(f, "");
	/* Nobody looks before the time. */
	assert_true(glock_table_wake_ns(f->table) > clock_ns + 10 * SEC);
	clock_ns = glock_table_wake_ns(f->table);
	assert_int_not_equal(clock_ns, UINT64_MAX);
	f->at_once = true;
	fake_work(f);
	fake_expect(f, "invalidate UN, lock UN");
	assert_int_equal(glock_table_cached(f->table), 0);
	/* One more look, and then none. */
	clock_ns = glock_table_wake_ns(f->table);
	fake_work(f);
	assert_int_equal(glock_table_wake_ns(f->table), UINT64_MAX);
}

static void test_idle_is_changed(void **state)
{
	struct fake *f = *state;

	cache(f, SH);
	pass(10 * SEC);
	fake_work(f);
	f->at_once = true;
	glock_table_set_idle(f->table, 20, 0);
	fake_work(f);
	fake_expect(f, "");
	pass(11 * SEC);
	fake_work(f);
	fake_expect(f, "invalidate UN, lock UN");
}

static void test_idle_spares_holders(void **state)
{
	struct fake *f = *state;
	struct glock_holder gh;

	cache(f, SH);
	assert_int_equal(nq(f, SH, 0, &gh), 0);
	pass(3 * GLOCK_DEMOTE_SECS * SEC);
	fake_work(f);
	fake_expect(f, "");
	glock_dq(&gh);
	fake_work(f);
	fake_expect(f, "");
	pass(2 * GLOCK_DEMOTE_SECS * SEC);
	f->at_once = true;
	fake_work(f);
	fake_expect(f, "invalidate UN, lock UN");
}

#define MANY 5000u
#define BOUND 1000u

/* The oldest go first, more or less, and not all at once. */
static void test_bound(void **state)
{
	struct fake *f = *state;
	struct glock **gl = calloc(MANY, sizeof(*gl));
	struct glock_holder gh, held;
	unsigned young = 0, old = 0;

	f->at_once = true;
	glock_table_set_idle(f->table, GLOCK_DEMOTE_SECS, BOUND);
	for (unsigned i = 0; i < MANY; i++) {
		/* Half of them at the time of the later use. */
		if (i == MANY / 2)
			pass(10 * SEC);
		assert_int_equal(
			glock_get(f->table, &fake_worked_ops, i, f, &gl[i]), 0);
		assert_int_equal(glock_nq(gl[i], SH, GL_SKIP, &gh), 0);
		glock_dq(&gh);
		f->trace[0] = '\0';
	}
	assert_int_equal(glock_nq(gl[0], SH, GL_SKIP, &held), 0);
	assert_int_equal(glock_table_cached(f->table), MANY);
	f->trace[0] = '\0';
	while (glock_table_work(f->table)) {
		f->trace[0] = '\0';
		if (glock_table_cached(f->table) > MANY / 2 &&
		    glock_table_cached(f->table) < MANY / 2 + 300)
			for (unsigned i = old = young = 0; i < MANY; i++) {
				old += i < MANY / 2 && glock_state(gl[i]) == SH;
				young += i >= MANY / 2 &&
					 glock_state(gl[i]) == SH;
			}
	}
	assert_true(young > 2 * old);
	assert_in_range(glock_table_cached(f->table), BOUND * 3 / 4, BOUND);
	assert_int_equal(glock_state(gl[0]), SH);
	glock_dq(&held);
	for (unsigned i = 0; i < MANY; i++) {
		glock_put(gl[i]);
		f->trace[0] = '\0';
	}
	free(gl);
}

/* If all are held, that is so; nobody tries without end. */
static void test_bound_without_idle_ones(void **state)
{
	struct fake *f = *state;
	struct glock_holder *gh = calloc(50, sizeof(*gh));
	struct glock *gl[50];

	f->at_once = true;
	glock_table_set_idle(f->table, GLOCK_DEMOTE_SECS, 10);
	for (unsigned i = 0; i < 50; i++) {
		assert_int_equal(
			glock_get(f->table, &fake_worked_ops, i, f, &gl[i]), 0);
		assert_int_equal(glock_nq(gl[i], SH, GL_SKIP, &gh[i]), 0);
		f->trace[0] = '\0';
	}
	fake_work(f);
	assert_int_equal(glock_table_cached(f->table), 50);
	assert_true(glock_table_wake_ns(f->table) > clock_ns);
	for (unsigned i = 0; i < 50; i++) {
		glock_dq(&gh[i]);
		f->trace[0] = '\0';
	}
	pass(2 * SEC);
	while (glock_table_work(f->table))
		f->trace[0] = '\0';
	assert_in_range(glock_table_cached(f->table), 1, 10);
	for (unsigned i = 0; i < 50; i++) {
		glock_put(gl[i]);
		f->trace[0] = '\0';
	}
	free(gh);
}

/* ---- for people ---- */

static void test_stats(void **state)
{
	struct fake *f = *state;
	struct glock_type_stats st;
	struct glock_holder gh;
	uint64_t waits = 0;

	assert_int_equal(nq(f, EX, GL_ASYNC | GL_SKIP, &gh), 0);
	pass(3 * MS);
	fake_grant(f, EX);
	glock_dq(&gh);
	glock_callback(f->gl, EX);
	pass(SEC);
	f->at_once = true;
	fake_work(f);
	cache(f, SH);
	glock_table_stats(f->table, LM_TYPE_INODE, &st);
	assert_int_equal(st.in_state[SH], 1);
	assert_int_equal(st.in_state[EX], 0);
	assert_int_equal(st.requests, 3);
	assert_int_equal(st.callbacks, 1);
	assert_int_equal(st.delayed, 1);
	assert_int_equal(st.given_away, 1);
	assert_int_equal(st.put_away, 0);
	for (unsigned i = 0; i < GLOCK_HIST_SLOTS; i++)
		waits += st.wait_ns[i];
	assert_int_equal(waits, 1);
	/* 3 ms are between 2^21 and 2^22 ns. */
	assert_int_equal(st.wait_ns[21], 1);
	assert_int_equal(st.answer_ns[21], 1);
	glock_table_stats(f->table, LM_TYPE_RGRP, &st);
	assert_int_equal(st.requests, 0);
}

static void take_line(void *arg, const char *text)
{
	strcat(arg, text);
	strcat(arg, "|");
}

static void test_dump(void **state)
{
	struct fake *f = *state;
	struct glock_holder gh;
	char text[1024] = "";
	struct glock_dump out = { .line = take_line, .arg = text };

	glock_table_freeze(f->table);
	assert_int_equal(nq(f, EX, GL_ASYNC, &gh), 0);
	glock_callback(f->gl, SH);
	pass(350000);
	fake_grant(f, EX);
	assert_false(glock_table_dump(f->table, &out));
	assert_string_equal(
		text, "G:  s:UN n:2/2015c f:ldrFnqo t:EX d:SH/350 r:1 m:10|"
		      " H: s:EX f:aW e:0 w:350|");
	glock_table_thaw(f->table);
	f->at_once = true;
	glock_dq(&gh);
}

#define DUMPED 3000u

/* Counts the glocks of one kind by number, each below DUMPED. */
static void count_line(void *arg, const char *text)
{
	unsigned char *seen = arg;
	unsigned long number;
	const char *name = strstr(text, " n:3/");

	if (!name)
		return;
	number = strtoul(name + 5, NULL, 16);
	assert_true(number < 2 * DUMPED);
	seen[number]++;
}

static void get_many(struct fake *f, struct glock **gl, unsigned from)
{
	static const struct glock_ops ops = { .type = LM_TYPE_RGRP };

	for (unsigned i = from; i < from + DUMPED; i++)
		assert_int_equal(glock_get(f->table, &ops, i, NULL, &gl[i]), 0);
}

/*
 * In steps, between which the table grows: what was there all the time is
 * dumped once, what has come meanwhile at most once.
 */
static void test_dump_of_many(void **state)
{
	static unsigned char seen[2 * DUMPED];
	static struct glock *gl[2 * DUMPED];
	struct glock_dump out = { .line = count_line, .arg = seen };
	struct fake *f = *state;

	get_many(f, gl, 0);
	assert_true(glock_table_dump(f->table, &out));
	get_many(f, gl, DUMPED);
	while (glock_table_dump(f->table, &out))
		;
	for (unsigned i = 0; i < DUMPED; i++)
		assert_int_equal(seen[i], 1);
	for (unsigned i = DUMPED; i < 2 * DUMPED; i++)
		assert_true(seen[i] <= 1);
	/* The next one begins anew. */
	memset(seen, 0, sizeof(seen));
	while (glock_table_dump(f->table, &out))
		;
	for (unsigned i = 0; i < 2 * DUMPED; i++) {
		assert_int_equal(seen[i], 1);
		glock_put(gl[i]);
		f->trace[0] = '\0';
	}
}

/* Who waits is told with the time, oldest first; the young are not. */
static void test_waits(void **state)
{
	struct glock_wait waits[2];
	struct glock_holder a, b;
	struct fake *f = *state;
	uint64_t begun = clock_ns;

	assert_int_equal(nq(f, SH, GL_ASYNC, &a), 0);
	pass(SEC);
	assert_int_equal(nq(f, EX, GL_ASYNC, &b), 0);
	pass(SEC);
	assert_int_equal(glock_table_waits(f->table, begun, waits, 2), 0);
	assert_int_equal(glock_table_waits(f->table, begun + 1, waits, 2), 1);
	assert_int_equal(waits[0].state, SH);
	assert_int_equal(waits[0].number, FAKE_NUMBER);
	assert_false(waits[0].demotion);
	assert_true(waits[0].since_ns == begun);
	assert_int_equal(glock_table_waits(f->table, clock_ns, waits, 1), 2);
	assert_int_equal(waits[0].state, SH);
	/* Granted, and wanted by others. */
	fake_grant(f, SH);
	glock_dq(&b);
	pass(SEC);
	glock_callback(f->gl, EX);
	begun = clock_ns;
	pass(SEC);
	assert_int_equal(glock_table_waits(f->table, clock_ns, waits, 2), 1);
	assert_true(waits[0].demotion);
	assert_int_equal(waits[0].state, UN);
	assert_true(waits[0].since_ns == begun);
	f->at_once = true;
	glock_dq(&a);
	fake_work(f);
	assert_int_equal(glock_table_waits(f->table, clock_ns, waits, 2), 0);
}

/* An administrator has said that locks are given away at once. */
static void test_hold_is_changed(void **state)
{
	struct fake *f = *state;

	cache(f, EX);
	glock_table_set_hold(f->table, 0);
	glock_callback(f->gl, EX);
	fake_work(f);
	fake_expect(f, "callback EX, invalidate UN, lock UN");
	fake_grant(f, UN);
}

#define T(name) \
	cmocka_unit_test_setup_teardown(name, fake_setup_worked, fake_teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		T(test_callback_leaves_the_work),
		T(test_callback_without_work),
		T(test_release_leaves_the_work),
		T(test_request_leaves_the_work),
		T(test_given_up_before_the_work),
		T(test_put_does_the_work),
		T(test_put_ends_the_hold),
		T(test_shrink_leaves_the_work),
		T(test_recall),
		T(test_recall_of_more),
		T(test_recall_and_upgrade),
		T(test_recall_and_deadlock),
		T(test_recall_before_the_answer),
		T(test_recall_not_at_the_end),
		T(test_hold_of_no_use),
		T(test_hold_in_use),
		T(test_hold_of_a_holder),
		T(test_hold_is_of_the_grant),
		T(test_hold_before_the_answer),
		T(test_hold_without_a_grant),
		T(test_hold_adapts),
		T(test_nocache_ends_the_hold),
		T(test_ready_twice),
		T(test_two_wishes_during_the_hold),
		T(test_clock_leaps),
		T(test_freeze),
		T(test_freeze_leaves_what_we_have),
		T(test_freeze_keeps_refusals),
		T(test_freeze_lets_recovery_pass),
		T(test_freeze_of_a_demotion),
		T(test_freeze_and_put),
		T(test_freeze_and_withdraw),
		T(test_thaw_of_many),
		T(test_notify),
		T(test_notify_keeps_the_place),
		T(test_notify_granted_at_once),
		T(test_notify_of_failure),
		T(test_notify_given_up),
		T(test_wait_until),
		T(test_no_memory),
		T(test_idle),
		T(test_idle_is_changed),
		T(test_idle_spares_holders),
		T(test_bound),
		T(test_bound_without_idle_ones),
		T(test_stats),
		T(test_dump),
		T(test_dump_of_many),
		T(test_waits),
		T(test_hold_is_changed),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
