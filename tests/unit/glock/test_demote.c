/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Giving way: order of sync, invalidate and the request, demotions that meet
 * holders, requests and each other, conversion deadlock, withdrawal, and what
 * has to be read again (docs/spec/glocks.md 2.7 to 2.9, 2.15).
 */
#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

#include "fakelm.h"
#include "glock/glock_impl.h"

#define SH LM_ST_SHARED
#define EX LM_ST_EXCLUSIVE
#define DF LM_ST_DEFERRED
#define UN LM_ST_UNLOCKED

static void cache(struct fake *f, enum lm_state state)
{
	struct glock_holder gh;

	f->at_once = true;
	assert_int_equal(glock_nq(f->gl, state, GL_EXACT, &gh), 0);
	glock_dq(&gh);
	f->at_once = false;
	f->trace[0] = '\0';
}

static int nq(struct fake *f, enum lm_state state, unsigned flags,
	      struct glock_holder *gh)
{
	return glock_nq(f->gl, state, flags, gh);
}

static void test_work_of_each_change(void **state)
{
	static const struct {
		enum lm_state from;
		bool dirty;
		enum lm_state wanted; /* by the other node */
		const char *trace;
		enum lm_state to;
	} changes[] = {
		{ EX, true, EX, "sync, invalidate UN, lock UN", UN },
		{ EX, true, SH, "sync, lock SH", SH },
		{ EX, true, DF, "sync, invalidate DF, lock DF", DF },
		{ EX, false, EX, "invalidate UN, lock UN", UN },
		{ EX, false, SH, "lock SH", SH },
		{ SH, false, EX, "invalidate UN, lock UN", UN },
		{ SH, false, DF, "invalidate DF, lock DF", DF },
		{ DF, false, SH, "lock SH", SH },
		{ DF, false, EX, "invalidate UN, lock UN", UN },
		/* Nothing that stands in the way of the other node. */
		{ SH, false, SH, "", SH },
		{ DF, false, DF, "", DF },
	};
	struct fake *f = *state;

	for (unsigned i = 0; i < UG_ARRAY_SIZE(changes); i++) {
		cache(f, changes[i].from);
		if (changes[i].dirty)
			glock_set_dirty(f->gl);
		f->at_once = true;
		glock_callback(f->gl, changes[i].wanted);
		fake_expect(f, changes[i].trace);
		assert_int_equal(glock_state(f->gl), changes[i].to);
	}
}

static void test_clean_after_sync(void **state)
{
	struct fake *f = *state;
	struct glock_holder gh;

	cache(f, EX);
	glock_set_dirty(f->gl);
	f->at_once = true;
	glock_callback(f->gl, SH);
	assert_int_equal(nq(f, EX, 0, &gh), 0);
	glock_dq(&gh);
	glock_callback(f->gl, SH);
	fake_expect(f, "sync, lock SH, lock EX, lock SH");
}

static void test_demote_while_held(void **state)
{
	struct fake *f = *state;
	struct glock_holder a, b, c;

	cache(f, SH);
	assert_int_equal(nq(f, SH, 0, &a), 0);
	assert_int_equal(nq(f, SH, 0, &b), 0);
	glock_callback(f->gl, EX);
	fake_expect(f, "");
	/* New ones wait, or the other node would never get it. */
	assert_int_equal(nq(f, SH, GL_TRY, &c), -EAGAIN);
	assert_int_equal(nq(f, SH, GL_NOWAIT, &c), -EAGAIN);
	assert_int_equal(nq(f, SH, GL_ASYNC, &c), 0);
	assert_false(c.gh_granted);
	glock_dq(&a);
	fake_expect(f, "");
	glock_dq(&b);
	fake_expect(f, "invalidate UN, lock UN");
	fake_grant(f, UN);
	fake_expect(f, "lock SH");
	fake_grant(f, SH);
	assert_int_equal(glock_wait(&c), 0);
	fake_expect(f, "instantiate");
	glock_dq(&c);
}

static void test_demote_during_request(void **state)
{
	struct fake *f = *state;
	struct glock_holder gh;

	cache(f, SH);
	assert_int_equal(nq(f, EX, GL_ASYNC, &gh), 0);
	glock_callback(f->gl, EX);
	fake_expect(f, "lock EX");
	fake_grant(f, EX);
	/* Who has waited for it has it once. */
	assert_true(gh.gh_granted);
	assert_int_equal(glock_wait(&gh), 0);
	fake_expect(f, "");
	glock_dq(&gh);
	fake_expect(f, "invalidate UN, lock UN");
	fake_grant(f, UN);
}

/* The call for it can arrive before the answer that it is about. */
static void test_demote_before_first_answer(void **state)
{
	struct fake *f = *state;
	struct glock_holder gh;

	assert_int_equal(nq(f, EX, GL_ASYNC, &gh), 0);
	glock_callback(f->gl, SH);
	fake_grant(f, EX);
	assert_int_equal(glock_wait(&gh), 0);
	fake_expect(f, "lock EX, instantiate");
	glock_dq(&gh);
	fake_expect(f, "lock SH");
	fake_grant(f, SH);
}

static void test_two_demotes(void **state)
{
	struct fake *f = *state;
	struct glock_holder gh;

	cache(f, EX);
	assert_int_equal(nq(f, EX, 0, &gh), 0);
	glock_callback(f->gl, SH);
	glock_callback(f->gl, DF);
	glock_dq(&gh);
	/* SH and DF exclude each other. */
	fake_expect(f, "invalidate UN, lock UN");
	fake_grant(f, UN);

	cache(f, EX);
	glock_set_dirty(f->gl);
	glock_callback(f->gl, SH);
	fake_expect(f, "sync, lock SH");
	/* The second one comes while the first is under way. */
	glock_callback(f->gl, EX);
	fake_grant(f, SH);
	fake_expect(f, "invalidate UN, lock UN");
	fake_grant(f, UN);
	fake_expect(f, "");
}

static void test_request_during_demote(void **state)
{
	struct fake *f = *state;
	struct glock_holder a, b;

	cache(f, EX);
	glock_callback(f->gl, SH);
	assert_int_equal(nq(f, SH, GL_ASYNC, &a), 0);
	assert_int_equal(nq(f, EX, GL_ASYNC, &b), 0);
	fake_expect(f, "lock SH");
	fake_grant(f, SH);
	assert_int_equal(glock_wait(&a), 0);
	glock_dq(&a);
	fake_expect(f, "lock EX");
	fake_grant(f, EX);
	assert_int_equal(glock_wait(&b), 0);
	glock_dq(&b);
}

static void test_try_before_demote(void **state)
{
	struct fake *f = *state;
	struct glock_holder gh, try;

	cache(f, DF);
	assert_int_equal(nq(f, EX, GL_ASYNC, &gh), 0);
	glock_dq(&gh);
	glock_callback(f->gl, SH);
	assert_int_equal(nq(f, DF, GL_TRY | GL_ASYNC, &try), 0);
	fake_expect(f, "lock EX, cancel");
	fake_answer(f, DF, LM_OUT_CANCELLED);
	/* It would have to wait for the other node. */
	assert_int_equal(glock_wait(&try), -EAGAIN);
	fake_expect(f, "lock SH");
	fake_grant(f, SH);
}

static void test_callback_without_lock(void **state)
{
	struct fake *f = *state;
	struct glock_holder gh;

	glock_callback(f->gl, EX);
	fake_expect(f, "");
	f->at_once = true;
	assert_int_equal(nq(f, SH, 0, &gh), 0);
	glock_dq(&gh);
	fake_expect(f, "lock SH, instantiate");
	assert_int_equal(glock_state(f->gl), SH);
}

static void test_deadlock(void **state)
{
	struct fake *f = *state;
	struct glock_holder gh, behind;

	cache(f, SH);
	assert_int_equal(nq(f, EX, GL_ASYNC, &gh), 0);
	assert_int_equal(nq(f, SH, GL_ASYNC, &behind), 0);
	fake_expect(f, "lock EX");
	fake_answer(f, SH, LM_OUT_DEADLOCK);
	fake_expect(f, "invalidate UN, lock UN");
	fake_grant(f, UN);
	fake_expect(f, "lock EX");
	/* From unlocked, it just asks again. */
	fake_answer(f, UN, LM_OUT_DEADLOCK);
	fake_expect(f, "lock EX");
	fake_grant(f, EX);
	assert_int_equal(glock_wait(&gh), 0);
	/* The cache went, so it is read again. */
	fake_expect(f, "instantiate");
	glock_dq(&gh);
	assert_int_equal(glock_wait(&behind), 0);
	glock_dq(&behind);
}

static void test_deadlock_with_a_good_state(void **state)
{
	struct fake *f = *state;
	struct glock_holder a, b;

	cache(f, SH);
	assert_int_equal(nq(f, EX, GL_ASYNC, &a), 0);
	assert_int_equal(nq(f, SH, GL_ASYNC, &b), 0);
	glock_dq(&a);
	fake_expect(f, "lock EX, cancel");
	/* Too late for the cancel; but for b the state is good as it is. */
	fake_answer(f, SH, LM_OUT_DEADLOCK);
	assert_int_equal(glock_wait(&b), 0);
	fake_expect(f, "");
	glock_dq(&b);
}

static void test_middle_conversion_deadlock(void **state)
{
	struct fake *f = *state;

	cache(f, SH);
	glock_callback(f->gl, DF);
	fake_expect(f, "invalidate DF, lock DF");
	fake_answer(f, SH, LM_OUT_DEADLOCK);
	fake_expect(f, "invalidate UN, lock UN");
	fake_grant(f, UN);
	fake_expect(f, "");
}

static void test_demote_error(void **state)
{
	struct fake *f = *state;
	struct glock_holder gh;

	cache(f, EX);
	glock_callback(f->gl, SH);
	assert_int_equal(nq(f, SH, GL_ASYNC, &gh), 0);
	fake_answer(f, EX, LM_OUT_ERROR);
	assert_int_equal(glock_wait(&gh), -EIO);
	/* Not asked for ever. */
	fake_expect(f, "lock SH");
}

static void test_nocache(void **state)
{
	struct fake *f = *state;
	struct glock_holder a, b;

	cache(f, EX);
	glock_set_dirty(f->gl);
	f->at_once = true;
	assert_int_equal(nq(f, SH, GL_NOCACHE, &a), 0);
	assert_int_equal(nq(f, SH, 0, &b), 0);
	glock_dq(&a);
	fake_expect(f, "");
	glock_dq(&b);
	fake_expect(f, "sync, invalidate UN, lock UN");
}

static void test_sync_fails(void **state)
{
	struct fake *f = *state;
	struct glock_holder gh, waiter;

	cache(f, EX);
	glock_set_dirty(f->gl);
	f->sync_error = -EIO;
	assert_int_equal(nq(f, EX, 0, &gh), 0);
	glock_callback(f->gl, EX);
	assert_int_equal(nq(f, EX, GL_ASYNC, &waiter), 0);
	glock_dq(&gh);
	/* Nothing is forgotten, nobody gets to see the disk as it is. */
	fake_expect(f, "sync");
	assert_int_equal(glock_wait(&waiter), -EIO);
	assert_int_equal(nq(f, SH, 0, &gh), -EIO);
	assert_int_equal(glock_state(f->gl), EX);
	glock_put(f->gl);
	f->gl = NULL;
	fake_expect(f, "put keep");
}

static void test_withdraw(void **state)
{
	struct fake *f = *state;
	struct glock_holder held, waiter, recovery;
	struct glock *gl2;

	cache(f, EX);
	glock_set_dirty(f->gl);
	assert_int_equal(nq(f, EX, 0, &held), 0);
	assert_int_equal(nq(f, EX, GL_ASYNC, &waiter), 0);
	assert_int_equal(nq(f, SH, GL_ASYNC | GL_NOEXP, &recovery), 0);
	glock_table_withdraw(f->table);
	assert_int_equal(glock_wait(&waiter), -EIO);
	assert_int_equal(nq(f, SH, 0, &waiter), -EIO);
	assert_int_equal(nq(f, SH, GL_NOWAIT, &waiter), -EIO);
	assert_false(glock_held(&waiter));
	glock_callback(f->gl, EX);
	glock_dq(&held);
	assert_int_equal(glock_wait(&recovery), 0);
	glock_dq(&recovery);
	/* Also a glock made later. */
	assert_int_equal(glock_get(f->table, &fake_inode_ops, 7, f, &gl2), 0);
	assert_int_equal(glock_nq(gl2, SH, 0, &waiter), -EIO);
	glock_put(gl2);
	fake_expect(f, "put keep");
	glock_put(f->gl);
	f->gl = NULL;
	fake_expect(f, "put keep");
}

static void test_withdraw_with_a_request_under_way(void **state)
{
	struct fake *f = *state;
	struct glock_holder gh;

	assert_int_equal(nq(f, EX, GL_ASYNC, &gh), 0);
	glock_table_withdraw(f->table);
	assert_int_equal(glock_wait(&gh), -EIO);
	glock_put(f->gl);
	/* The answer finds it still there, and it goes then. */
	fake_expect(f, "lock EX");
	fake_grant(f, EX);
	f->gl = NULL;
	fake_expect(f, "put keep");
}

static void test_instantiate_fails(void **state)
{
	struct fake *f = *state;
	struct glock_holder a, b;

	f->at_once = true;
	f->instantiate_error = -EUCLEAN;
	assert_int_equal(nq(f, SH, 0, &a), -EUCLEAN);
	assert_false(glock_held(&a));
	fake_expect(f, "lock SH, instantiate");
	/* Who does not want to read is not troubled. */
	assert_int_equal(nq(f, SH, GL_SKIP, &a), 0);
	fake_expect(f, "");
	f->instantiate_error = 0;
	assert_int_equal(nq(f, SH, 0, &b), 0);
	fake_expect(f, "instantiate");
	glock_dq(&a);
	glock_dq(&b);
	assert_int_equal(nq(f, SH, 0, &a), 0);
	fake_expect(f, "");
	glock_dq(&a);
}

static void test_instantiate_fails_before_others(void **state)
{
	struct fake *f = *state;
	struct glock_holder a, b;

	f->at_once = true;
	f->instantiate_error = -EIO;
	assert_int_equal(nq(f, SH, GL_ASYNC, &a), 0);
	assert_int_equal(nq(f, EX, GL_ASYNC, &b), 0);
	assert_int_equal(glock_wait(&a), -EIO);
	assert_true(b.gh_granted);
	f->instantiate_error = 0;
	assert_int_equal(glock_wait(&b), 0);
	fake_expect(f, "lock SH, instantiate, lock EX, instantiate");
	glock_dq(&b);
}

static void test_instantiate_nowait(void **state)
{
	struct fake *f = *state;
	struct glock_holder gh;

	f->at_once = true;
	f->instantiate_error = -EAGAIN;
	assert_int_equal(nq(f, SH, GL_NOWAIT, &gh), -EAGAIN);
	assert_false(glock_held(&gh));
	f->instantiate_error = 0;
	assert_int_equal(nq(f, SH, 0, &gh), 0);
	fake_expect(f, "lock SH try, instantiate nowait, instantiate");
	glock_dq(&gh);
}

static void test_instantiate_by_hand(void **state)
{
	struct fake *f = *state;
	struct glock_holder gh;

	f->at_once = true;
	/* A dinode just made: what is in memory is right. */
	assert_int_equal(nq(f, EX, GL_SKIP, &gh), 0);
	glock_set_instantiate(f->gl, false);
	glock_dq(&gh);
	assert_int_equal(nq(f, SH, 0, &gh), 0);
	glock_dq(&gh);
	fake_expect(f, "lock EX");
	glock_set_instantiate(f->gl, true);
	/* Without an object it waits for one. */
	glock_set_object(f->gl, NULL);
	assert_int_equal(nq(f, SH, 0, &gh), 0);
	glock_dq(&gh);
	fake_expect(f, "");
	glock_set_object(f->gl, f);
	assert_int_equal(nq(f, SH, 0, &gh), 0);
	glock_dq(&gh);
	fake_expect(f, "instantiate");
}

struct reader {
	struct fake *f;
	int err;
};

static void *read_thread(void *arg)
{
	struct reader *r = arg;
	struct glock_holder gh;

	r->err = nq(r->f, SH, 0, &gh);
	if (!r->err)
		glock_dq(&gh);
	return NULL;
}

/* One reads, the others wait for him, who may not wait does not. */
static void test_instantiate_together(void **state)
{
	struct fake *f = *state;
	struct reader readers[3] = { { f, 1 }, { f, 1 }, { f, 1 } };
	pthread_t threads[3];
	struct glock_holder gh;

	f->at_once = true;
	fake_close_gate(f);
	for (int i = 0; i < 3; i++)
		assert_int_equal(pthread_create(&threads[i], NULL, read_thread,
						&readers[i]),
				 0);
	fake_wait_at_gate(f);
	assert_int_equal(nq(f, SH, GL_NOWAIT, &gh), -EAGAIN);
	fake_open_gate(f);
	for (int i = 0; i < 3; i++) {
		pthread_join(threads[i], NULL);
		assert_int_equal(readers[i].err, 0);
	}
	fake_expect(f, "lock SH, instantiate");
}

static void *put_thread(void *arg)
{
	struct fake *f = arg;

	glock_put(f->gl);
	fake_trace(f, "returned");
	return NULL;
}

static void test_put(void **state)
{
	struct fake *f = *state;

	cache(f, EX);
	glock_set_dirty(f->gl);
	f->at_once = true;
	glock_put(f->gl);
	f->gl = NULL;
	fake_expect(f, "sync, invalidate UN, lock UN, put");
}

static void test_put_before_answer(void **state)
{
	struct fake *f = *state;

	cache(f, SH);
	glock_put(f->gl);
	/* The object may go now: all that concerns it has been done. */
	fake_expect(f, "invalidate UN, lock UN");
	fake_grant(f, UN);
	f->gl = NULL;
	fake_expect(f, "put");
}

static void test_get_revives(void **state)
{
	struct fake *f = *state;
	struct glock_holder gh;
	struct glock *gl;

	cache(f, SH);
	glock_put(f->gl);
	assert_int_equal(
		glock_get(f->table, &fake_inode_ops, FAKE_NUMBER, NULL, &gl),
		0);
	assert_ptr_equal(gl, f->gl);
	/* The old object has gone with the old reference. */
	assert_null(glock_object(gl));
	glock_set_object(gl, f);
	assert_int_equal(glock_nq(gl, SH, GL_ASYNC, &gh), 0);
	fake_expect(f, "invalidate UN, lock UN");
	fake_grant(f, UN);
	fake_expect(f, "lock SH");
	fake_grant(f, SH);
	assert_int_equal(glock_wait(&gh), 0);
	fake_expect(f, "instantiate");
	glock_dq(&gh);
}

/* A request that was given up is waited for: it may bring a lock. */
static void test_put_with_a_request_under_way(void **state)
{
	struct fake *f = *state;
	struct glock_holder gh;
	pthread_t thread;

	assert_int_equal(nq(f, EX, GL_ASYNC, &gh), 0);
	glock_dq(&gh);
	fake_expect(f, "lock EX, cancel");
	f->at_once = true;
	assert_int_equal(pthread_create(&thread, NULL, put_thread, f), 0);
	fake_grant(f, EX);
	pthread_join(thread, NULL);
	f->gl = NULL;
	fake_expect(f, "invalidate UN, lock UN, put, returned");
}

static void *callback_thread(void *arg)
{
	struct fake *f = arg;

	glock_callback(f->gl, EX);
	return NULL;
}

/* Has put_thread() gone to sleep, or returned? */
static bool put_waits_or_returned(struct fake *f)
{
	bool waits, returned;

	pthread_mutex_lock(&f->lock);
	returned = strstr(f->trace, "returned");
	pthread_mutex_unlock(&f->lock);
	if (returned)
		return true;
	pthread_mutex_lock(&f->gl->gl_lock);
	waits = f->gl->gl_retirer;
	pthread_mutex_unlock(&f->gl->gl_lock);
	return waits;
}

/* While another thread syncs, the object must not go. */
static void test_put_during_demote(void **state)
{
	struct fake *f = *state;
	pthread_t demoter, putter;

	cache(f, EX);
	glock_set_dirty(f->gl);
	f->at_once = true;
	fake_close_gate(f);
	pthread_create(&demoter, NULL, callback_thread, f);
	fake_wait_at_gate(f);
	pthread_create(&putter, NULL, put_thread, f);
	while (!put_waits_or_returned(f))
		sched_yield();
	fake_open_gate(f);
	pthread_join(putter, NULL);
	pthread_join(demoter, NULL);
	f->gl = NULL;
	fake_expect(f, "sync, invalidate UN, lock UN, put, returned");
}

static void test_shrink(void **state)
{
	struct fake *f = *state;
	struct glock *gl[300];
	struct glock_holder gh, held;
	unsigned unlocked = 0;

	f->at_once = true;
	for (uint64_t i = 0; i < 300; i++) {
		assert_int_equal(
			glock_get(f->table, &fake_inode_ops, i, f, &gl[i]), 0);
		assert_int_equal(glock_nq(gl[i], SH, GL_SKIP, &gh), 0);
		glock_dq(&gh);
		f->trace[0] = '\0';
	}
	assert_int_equal(glock_nq(gl[0], SH, GL_SKIP, &held), 0);
	/* Nothing is that old. */
	glock_table_shrink(f->table, LM_TYPE_INODE, 1, 1000);
	fake_expect(f, "");
	for (int round = 0; round < 3; round++) {
		glock_table_shrink(f->table, LM_TYPE_INODE, UINT32_MAX, 10);
		f->trace[0] = '\0';
	}
	for (uint64_t i = 0; i < 300; i++)
		unlocked += glock_state(gl[i]) == UN;
	assert_int_equal(unlocked, 30);
	for (int round = 0; round < 30; round++) {
		glock_table_shrink(f->table, LM_TYPE_INODE, UINT32_MAX, 10);
		f->trace[0] = '\0';
	}
	for (uint64_t i = 1; i < 300; i++)
		assert_int_equal(glock_state(gl[i]), UN);
	assert_int_equal(glock_state(gl[0]), SH);
	glock_dq(&held);
	for (uint64_t i = 0; i < 300; i++) {
		glock_put(gl[i]);
		f->trace[0] = '\0';
	}
}

static void test_same_number_other_type(void **state)
{
	static const struct glock_ops iopen_ops = { .type = LM_TYPE_IOPEN };
	struct fake *f = *state;
	struct glock *gl;

	assert_int_equal(
		glock_get(f->table, &iopen_ops, FAKE_NUMBER, NULL, &gl), 0);
	assert_ptr_not_equal(gl, f->gl);
	assert_int_equal(glock_type(gl), LM_TYPE_IOPEN);
	assert_int_equal(glock_number(gl), FAKE_NUMBER);
	glock_put(gl);
	fake_expect(f, "put");
	assert_int_equal(
		glock_get(f->table, &fake_inode_ops, FAKE_NUMBER, NULL, &gl),
		0);
	assert_ptr_equal(gl, f->gl);
	/* The object is that of the one who made it. */
	assert_ptr_equal(glock_object(gl), f);
	glock_put(gl);
	fake_expect(f, "");
}

/* How long somebody has waited is not known beforehand. */
static void take_line(void *arg, const char *text)
{
	const char *waited = strstr(text, " w:");
	char *all = arg;

	strncat(all, text, waited ? (size_t)(waited - text) + 3 : strlen(text));
	strcat(all, "|");
}

static void test_dump(void **state)
{
	struct fake *f = *state;
	struct glock_holder a, b;
	char text[1024] = "";
	struct glock_dump out = { .line = take_line, .arg = text };

	cache(f, EX);
	glock_set_dirty(f->gl);
	assert_false(glock_table_dump(f->table, &out));
	assert_string_equal(text,
			    "G:  s:EX n:2/2015c f:yo t:EX d:EX/0 r:1 m:0|");
	text[0] = '\0';
	assert_int_equal(nq(f, SH, GL_NOCACHE, &a), 0);
	assert_int_equal(nq(f, EX, GL_ASYNC | GL_NODE_SCOPE, &b), 0);
	assert_false(glock_table_dump(f->table, &out));
	assert_string_equal(text,
			    "G:  s:EX n:2/2015c f:yqo t:EX d:EX/0 r:1 m:0|"
			    " H: s:SH f:cH e:0| H: s:EX f:anW e:0 w:|");
	glock_dq(&b);
	f->at_once = true;
	glock_dq(&a);
}

#define T(name) cmocka_unit_test_setup_teardown(name, fake_setup, fake_teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		T(test_work_of_each_change),
		T(test_clean_after_sync),
		T(test_demote_while_held),
		T(test_demote_during_request),
		T(test_demote_before_first_answer),
		T(test_two_demotes),
		T(test_request_during_demote),
		T(test_try_before_demote),
		T(test_callback_without_lock),
		T(test_deadlock),
		T(test_deadlock_with_a_good_state),
		T(test_middle_conversion_deadlock),
		T(test_demote_error),
		T(test_nocache),
		T(test_sync_fails),
		T(test_withdraw),
		T(test_withdraw_with_a_request_under_way),
		T(test_instantiate_fails),
		T(test_instantiate_fails_before_others),
		T(test_instantiate_nowait),
		T(test_instantiate_by_hand),
		T(test_instantiate_together),
		T(test_put),
		T(test_put_before_answer),
		T(test_get_revives),
		T(test_put_with_a_request_under_way),
		T(test_put_during_demote),
		T(test_shrink),
		T(test_same_number_other_type),
		T(test_dump),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
