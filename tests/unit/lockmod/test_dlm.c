/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * lock_dlm: what each glock request is to the DLM, and what the DLM's answers
 * and calls are to glocks; three members in one thread among a lock server in
 * memory (docs/spec/glocks.md 1.2, 1.5, 2.15, 13.2, 13.8, 13.9).
 */
#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/compiler.h"
#include "fakedlm.h"
#include "glock/glock.h"
#include "glock/glstat.h"
#include "lockmod/dlm.h"

#define SH LM_ST_SHARED
#define EX LM_ST_EXCLUSIVE
#define DF LM_ST_DEFERRED
#define UN LM_ST_UNLOCKED

#define NODES 3u
#define NUMBER 0x2015cu

struct node {
	struct ugdlm *ls; /* NULL: it has left */
	struct lockmod_dlm *dlm;
	struct glock_table *table;
	struct glock *gl;
	char done[512]; /* by the glock: "sync, invalidate UN" */
	bool evict;	/* asked for by another node */
};

struct cluster {
	struct fakedlm *server;
	struct node node[NODES];
};

static const char *const state_name[] = { "UN", "EX", "DF", "SH" };

static void did(struct glock *gl, const char *what, const char *more)
{
	struct node *n = glock_object(gl);
	size_t len = strlen(n->done);

	snprintf(n->done + len, sizeof(n->done) - len, "%s%s%s",
		 len ? ", " : "", what, more);
}

static int node_sync(struct glock *gl)
{
	did(gl, "sync", "");
	return 0;
}

static void node_invalidate(struct glock *gl, enum lm_state target)
{
	did(gl, "invalidate ", state_name[target]);
}

static int node_instantiate(struct glock *gl, bool nowait)
{
	did(gl, "instantiate", "");
	return 0;
}

static const struct glock_ops rgrp_ops = {
	.type = LM_TYPE_RGRP,
	.value_block = true,
	.sync = node_sync,
	.invalidate = node_invalidate,
	.instantiate = node_instantiate,
};

static void iopen_callback(struct glock *gl, enum lm_state wanted)
{
	((struct node *)glock_object(gl))->evict = wanted == EX;
}

static const struct glock_ops iopen_ops = {
	.type = LM_TYPE_IOPEN,
	.callback = iopen_callback,
};

static void no_wake(void *arg)
{
}

static void node_start(struct cluster *c, struct node *n)
{
	struct glock_host host = { .wake = no_wake };
	struct lockmod mod;

	n->ls = fakedlm_join(c->server);
	assert_int_equal(lockmod_dlm_create(n->ls, "test", &n->dlm), 0);
	mod = lockmod_dlm(n->dlm);
	assert_int_equal(glock_table_create(&mod, "test", &n->table), 0);
	glock_table_set_host(n->table, &host);
	assert_int_equal(glock_get(n->table, &rgrp_ops, NUMBER, n, &n->gl), 0);
}

/* Whatever is to be done, until there is nothing. */
static void pump(struct cluster *c)
{
	bool any;

	do {
		any = false;
		for (unsigned i = 0; i < NODES; i++) {
			struct node *n = &c->node[i];

			if (n->ls && ugdlm_dispatch(n->ls, 100))
				any = true;
			while (n->ls && glock_table_work(n->table))
				any = true;
			if (n->ls)
				glock_table_check(n->table);
		}
		fakedlm_check(c->server);
	} while (any);
}

static int setup(void **state)
{
	struct cluster *c = calloc(1, sizeof(*c));

	alarm(30);
	c->server = fakedlm_new(1);
	for (unsigned i = 0; i < NODES; i++)
		node_start(c, &c->node[i]);
	*state = c;
	return 0;
}

/* The last reference is put without waiting for an answer. */
static void node_stop(struct cluster *c, struct node *n, bool kill)
{
	if (n->gl)
		glock_put(n->gl);
	n->gl = NULL;
	pump(c);
	glock_table_destroy(n->table);
	if (kill)
		fakedlm_kill(n->ls);
	else
		fakedlm_leave(n->ls);
	n->ls = NULL;
	lockmod_dlm_destroy(n->dlm);
}

static int teardown(void **state)
{
	struct cluster *c = *state;

	for (unsigned i = 0; i < NODES; i++) {
		if (c->node[i].ls)
			node_stop(c, &c->node[i], false);
	}
	fakedlm_free(c->server);
	free(c);
	return 0;
}

static void expect_calls(struct cluster *c, const char *expected)
{
	char text[2048];

	fakedlm_trace(c->server, text, sizeof(text));
	assert_string_equal(text, expected);
}

static void expect_done(struct node *n, const char *expected)
{
	assert_string_equal(n->done, expected);
	n->done[0] = '\0';
}

/* Queue, and see it through. */
static int take(struct cluster *c, struct node *n, enum lm_state state,
		unsigned flags, struct glock_holder *gh)
{
	int err = glock_nq(n->gl, state, flags | GL_ASYNC, gh);

	pump(c);
	return err ? err : glock_wait_until(gh, 1);
}

static void cache(struct cluster *c, struct node *n, enum lm_state state)
{
	struct glock_holder gh;

	assert_int_equal(take(c, n, state, GL_EXACT, &gh), 0);
	glock_dq(&gh);
	pump(c);
}

static void forget(struct cluster *c)
{
	char text[2048];

	fakedlm_trace(c->server, text, sizeof(text));
	for (unsigned i = 0; i < NODES; i++)
		c->node[i].done[0] = '\0';
}

static void test_names(void **state)
{
	static const struct {
		enum lm_type type;
		uint64_t number;
		const char *name;
	} names[] = {
		{ LM_TYPE_NONDISK, 2, "       1               2" },
		{ LM_TYPE_NONDISK, 0, "       1               0" },
		{ LM_TYPE_INODE, 0x2015c, "       2           2015c" },
		{ LM_TYPE_RGRP, UINT64_MAX, "       3ffffffffffffffff" },
		{ LM_TYPE_JOURNAL, 2, "       9               2" },
	};
	char name[LOCKMOD_DLM_NAME_LEN + 1] = "";

	for (unsigned i = 0; i < UG_ARRAY_SIZE(names); i++) {
		lockmod_dlm_name(names[i].type, names[i].number, name);
		assert_string_equal(name, names[i].name);
	}
}

/* New, converted, kept in NL, unlocked at the end. */
static void test_life_of_a_lock(void **state)
{
	struct cluster *c = *state;
	struct node *n = &c->node[0];

	cache(c, n, SH);
	expect_calls(c, "lock PR valblk");
	cache(c, n, EX);
	expect_calls(c, "convert EX quecvt valblk");
	cache(c, n, DF);
	expect_calls(c, "convert CW valblk");
	glock_table_shrink(n->table, LM_TYPE_RGRP, UINT32_MAX, 1);
	pump(c);
	expect_calls(c, "convert NL valblk");
	assert_int_equal(glock_state(n->gl), UN);
	cache(c, n, EX);
	expect_calls(c, "convert EX quecvt valblk");
	glock_put(n->gl);
	pump(c);
	expect_calls(c, "convert NL valblk, unlock valblk");
	assert_int_equal(fakedlm_locks(c->server), 0);
	/* And again. */
	assert_int_equal(glock_get(n->table, &rgrp_ops, NUMBER, n, &n->gl), 0);
	cache(c, n, DF);
	expect_calls(c, "lock CW valblk");
}

static void test_types_without_value_block(void **state)
{
	struct cluster *c = *state;
	struct node *n = &c->node[0];
	struct glock_holder gh;
	struct glock *gl;

	assert_int_equal(glock_get(n->table, &iopen_ops, 1, n, &gl), 0);
	assert_int_equal(glock_nq(gl, SH, GL_ASYNC, &gh), 0);
	pump(c);
	assert_int_equal(glock_wait(&gh), 0);
	assert_null(glock_lvb(gl));
	glock_dq(&gh);
	glock_put(gl);
	pump(c);
	expect_calls(c, "lock PR, convert NL, unlock");
}

static void test_others_want_it(void **state)
{
	static const struct {
		enum lm_state has, wants;
		const char *done;
		const char *calls;
		enum lm_state left;
	} cases[] = {
		{ EX, SH, "sync", "lock PR valblk, convert PR valblk", SH },
		{ EX, EX, "sync, invalidate UN",
		  "lock EX valblk, convert NL valblk", UN },
		{ EX, DF, "sync, invalidate DF",
		  "lock CW valblk, convert CW valblk", DF },
		{ SH, EX, "invalidate UN", "lock EX valblk, convert NL valblk",
		  UN },
		{ SH, SH, "", "lock PR valblk", SH },
		{ DF, DF, "", "lock CW valblk", DF },
		{ DF, EX, "invalidate UN", "lock EX valblk, convert NL valblk",
		  UN },
		{ SH, DF, "invalidate DF",
		  "lock CW valblk, convert CW quecvt valblk", DF },
		{ DF, SH, "", "lock PR valblk, convert PR quecvt valblk", SH },
	};
	struct cluster *c = *state;

	for (unsigned i = 0; i < UG_ARRAY_SIZE(cases); i++) {
		struct node *a = &c->node[0], *b = &c->node[1];

		cache(c, a, cases[i].has);
		if (cases[i].has == EX)
			glock_set_dirty(a->gl);
		forget(c);
		cache(c, b, cases[i].wants);
		expect_done(a, cases[i].done);
		expect_calls(c, cases[i].calls);
		assert_int_equal(glock_state(a->gl), cases[i].left);
		assert_int_equal(glock_state(b->gl), cases[i].wants);
		for (unsigned k = 0; k < NODES; k++) {
			glock_put(c->node[k].gl);
			pump(c);
			assert_int_equal(glock_get(c->node[k].table, &rgrp_ops,
						   NUMBER, &c->node[k],
						   &c->node[k].gl),
					 0);
		}
	}
}

/* In use: the other one waits, and gets it afterwards. */
static void test_held(void **state)
{
	struct cluster *c = *state;
	struct node *a = &c->node[0], *b = &c->node[1];
	struct glock_holder gh, waiter;

	assert_int_equal(take(c, a, EX, 0, &gh), 0);
	assert_int_equal(take(c, b, EX, 0, &waiter), -ETIMEDOUT);
	assert_true(glock_is_wanted(a->gl));
	glock_dq(&gh);
	pump(c);
	assert_int_equal(glock_wait(&waiter), 0);
	glock_dq(&waiter);
}

static void test_tries(void **state)
{
	struct cluster *c = *state;
	struct node *a = &c->node[0], *b = &c->node[1];
	struct glock_holder gh;

	cache(c, a, EX);
	forget(c);
	assert_int_equal(take(c, b, SH, GL_TRY, &gh), -EAGAIN);
	expect_calls(c, "lock PR noqueue valblk");
	assert_int_equal(glock_state(a->gl), EX);
	/* The second kind asks the other one, for the next time. */
	assert_int_equal(take(c, b, EX, GL_TRY_1CB, &gh), -EAGAIN);
	expect_calls(c, "lock EX noqueue bast valblk, convert NL valblk");
	assert_int_equal(glock_state(a->gl), UN);
	assert_int_equal(take(c, b, EX, GL_TRY, &gh), 0);
	expect_calls(c, "lock EX noqueue valblk");
	glock_dq(&gh);
	/* As a conversion: not behind others, since it does not wait. */
	cache(c, b, SH);
	forget(c);
	assert_int_equal(take(c, b, EX, GL_TRY, &gh), 0);
	expect_calls(c, "convert EX noqueue valblk");
	glock_dq(&gh);
}

/* Both have SH and want EX: one loses what it has cached, both get it. */
static void test_conversion_deadlock(void **state)
{
	struct cluster *c = *state;
	struct node *a = &c->node[0], *b = &c->node[1];
	struct glock_holder ga, gb;
	struct glock_type_stats st;

	cache(c, a, SH);
	cache(c, b, SH);
	forget(c);
	assert_int_equal(glock_nq(a->gl, EX, GL_ASYNC, &ga), 0);
	assert_int_equal(glock_nq(b->gl, EX, GL_ASYNC, &gb), 0);
	pump(c);
	assert_true(ga.gh_granted != gb.gh_granted);
	if (gb.gh_granted) {
		assert_int_equal(glock_wait(&gb), 0);
		glock_dq(&gb);
	} else {
		assert_int_equal(glock_wait(&ga), 0);
		glock_dq(&ga);
	}
	pump(c);
	if (glock_held(&gb)) {
		assert_int_equal(glock_wait(&gb), 0);
		glock_dq(&gb);
		expect_done(b, "invalidate UN, instantiate");
	} else {
		assert_int_equal(glock_wait(&ga), 0);
		glock_dq(&ga);
		expect_done(a, "invalidate UN, instantiate");
	}
	glock_table_stats(b->table, LM_TYPE_RGRP, &st);
	assert_int_equal(st.deadlocks, 1);
}

/* ---- value blocks ---- */

static void write_lvb(struct cluster *c, struct node *n, const char *text)
{
	struct glock_holder gh;

	assert_int_equal(take(c, n, EX, 0, &gh), 0);
	snprintf(glock_lvb(n->gl), GLOCK_LVB_BYTES, "%s", text);
	glock_dq(&gh);
	pump(c);
}

static void expect_lvb(struct cluster *c, struct node *n, const char *text)
{
	struct glock_holder gh;
	char expected[GLOCK_LVB_BYTES] = "";

	assert_int_equal(take(c, n, SH, 0, &gh), 0);
	memcpy(expected, text, strlen(text));
	assert_memory_equal(glock_lvb(n->gl), expected, sizeof(expected));
	glock_dq(&gh);
	pump(c);
}

static void test_lvb(void **state)
{
	struct cluster *c = *state;
	struct node *a = &c->node[0], *b = &c->node[1];

	/* Nobody has written one. */
	expect_lvb(c, b, "");
	write_lvb(c, a, "first");
	expect_lvb(c, b, "first");
	write_lvb(c, b, "second");
	expect_lvb(c, a, "second");
	/* Also when it is put while EX, and all that is left is an NL. */
	write_lvb(c, a, "third");
	glock_put(a->gl);
	a->gl = NULL;
	pump(c);
	expect_lvb(c, b, "third");
}

static void test_lvb_is_lost(void **state)
{
	struct cluster *c = *state;
	struct node *a = &c->node[0], *b = &c->node[1];
	struct lockmod_dlm_stats st;

	write_lvb(c, a, "old");
	expect_lvb(c, b, "old");
	write_lvb(c, a, "new");
	/* It dies with EX. */
	glock_table_withdraw(a->table);
	node_stop(c, a, true);
	expect_lvb(c, b, "");
	lockmod_dlm_stats(b->dlm, &st);
	assert_int_equal(st.lvbs_lost, 1);
	/* Until somebody writes the next one. */
	write_lvb(c, b, "again");
	expect_lvb(c, &c->node[2], "again");
}

/* What was read long ago is not what is there now. */
static void test_lvb_of_a_forgotten_resource(void **state)
{
	struct cluster *c = *state;
	struct node *a = &c->node[0];
	struct glock_holder gh;

	write_lvb(c, a, "mine");
	glock_put(a->gl);
	pump(c);
	assert_int_equal(fakedlm_locks(c->server), 0);
	assert_int_equal(glock_get(a->table, &rgrp_ops, NUMBER, a, &a->gl), 0);
	assert_null(glock_lvb(a->gl));
	assert_int_equal(take(c, a, SH, 0, &gh), 0);
	glock_dq(&gh);
	expect_lvb(c, a, "");
}

/* ---- ends ---- */

static void test_cancel(void **state)
{
	struct cluster *c = *state;
	struct node *a = &c->node[0], *b = &c->node[1];
	struct glock_holder gh, gb, behind;

	assert_int_equal(take(c, a, EX, 0, &gh), 0);
	assert_int_equal(take(c, b, EX, 0, &gb), -ETIMEDOUT);
	assert_int_equal(take(c, b, SH, 0, &behind), -ETIMEDOUT);
	forget(c);
	glock_dq(&gb);
	pump(c);
	/* The next one asks for himself. */
	expect_calls(c, "cancel, lock PR valblk");
	glock_dq(&gh);
	pump(c);
	assert_int_equal(glock_wait(&behind), 0);
	glock_dq(&behind);
	/* A conversion that is cancelled leaves what there was. */
	cache(c, a, SH);
	assert_int_equal(take(c, a, SH, 0, &gh), 0);
	cache(c, b, SH);
	assert_int_equal(take(c, b, EX, 0, &gb), -ETIMEDOUT);
	glock_dq(&gb);
	pump(c);
	assert_int_equal(glock_state(b->gl), SH);
	glock_dq(&gh);
}

/* The grant is already on its way. */
static void test_cancel_comes_too_late(void **state)
{
	struct cluster *c = *state;
	struct node *a = &c->node[0];
	struct glock_holder gh;

	assert_int_equal(glock_nq(a->gl, EX, GL_ASYNC, &gh), 0);
	glock_dq(&gh);
	pump(c);
	assert_int_equal(glock_state(a->gl), EX);
	expect_calls(c, "lock EX valblk, cancel");
	cache(c, &c->node[1], EX);
	assert_int_equal(glock_state(a->gl), UN);
}

static void test_withdrawn_locks_stay(void **state)
{
	struct cluster *c = *state;
	struct node *a = &c->node[0], *b = &c->node[1];
	struct glock_holder gh;

	cache(c, a, EX);
	glock_set_dirty(a->gl);
	glock_table_withdraw(a->table);
	assert_int_equal(take(c, b, SH, 0, &gh), -ETIMEDOUT);
	glock_put(a->gl);
	a->gl = NULL;
	pump(c);
	/* Not by the end of the glock, not by its end here. */
	assert_int_equal(glock_wait_until(&gh, 1), -ETIMEDOUT);
	assert_string_equal(a->done, "instantiate");
	node_stop(c, a, true);
	pump(c);
	assert_int_equal(glock_wait(&gh), 0);
	glock_dq(&gh);
}

static void test_leaving_unlocks_nothing(void **state)
{
	struct cluster *c = *state;
	struct node *a = &c->node[0];

	cache(c, a, EX);
	glock_set_dirty(a->gl);
	forget(c);
	lockmod_dlm_leaving(a->dlm);
	glock_put(a->gl);
	a->gl = NULL;
	pump(c);
	expect_calls(c, "convert NL valblk");
	expect_done(a, "sync, invalidate UN");
	node_stop(c, a, false);
	expect_calls(c, "");
}

static void test_lost(void **state)
{
	struct cluster *c = *state;
	struct node *a = &c->node[0], *b = &c->node[1];
	struct glock_holder gh, waiter;

	assert_int_equal(take(c, a, EX, 0, &gh), 0);
	assert_int_equal(take(c, b, EX, 0, &waiter), -ETIMEDOUT);
	fakedlm_lose(b->ls);
	pump(c);
	assert_int_equal(glock_wait(&waiter), -EIO);
	assert_int_equal(take(c, b, SH, 0, &waiter), -EIO);
	glock_dq(&gh);
	glock_table_withdraw(b->table);
	node_stop(c, b, true);
	cache(c, a, SH);
}

/* ---- withdrawn while others ask ---- */

struct asker {
	struct node *node;
	atomic_uint asked;
};

static void *ask_on(void *arg)
{
	struct asker *asker = arg;
	struct node *n = asker->node;
	int err = 0;

	while (!err) {
		uint64_t number = atomic_fetch_add(&asker->asked, 1);
		struct glock_holder gh;
		struct glock *gl;

		assert_int_equal(
			glock_get(n->table, &iopen_ops, number, n, &gl), 0);
		err = glock_nq(gl, EX, 0, &gh);
		if (!err)
			glock_dq(&gh);
		else
			assert_int_equal(err, -EIO);
		glock_put(gl);
	}
	return NULL;
}

/* A glock asserts that its request is answered once. */
static void withdraw_at(struct cluster *c, struct node *n, unsigned asked)
{
	struct asker asker = { .node = n };
	pthread_t thread;

	assert_int_equal(pthread_create(&thread, NULL, ask_on, &asker), 0);
	while (atomic_load(&asker.asked) < asked)
		sched_yield();
	lockmod_dlm_cut(n->dlm);
	fakedlm_kill(n->ls);
	n->ls = NULL;
	lockmod_dlm_fail(n->dlm);
	pthread_join(thread, NULL);
	glock_table_withdraw(n->table);
	glock_put(n->gl);
	n->gl = NULL;
	glock_table_destroy(n->table);
	lockmod_dlm_destroy(n->dlm);
}

static void test_each_request_is_answered_once(void **state)
{
	struct cluster *c = *state;
	struct node *n = &c->node[0];

	for (unsigned i = 0; i < 200; i++) {
		/* All at once, or the last one never. */
		fakedlm_set_inline(c->server, i % 2 ? 100 : 0);
		withdraw_at(c, n, i % 2 ? 5 + i % 7 : 1);
		memset(n, 0, sizeof(*n));
		node_start(c, n);
	}
}

static void test_no_memory(void **state)
{
	struct cluster *c = *state;
	struct node *a = &c->node[0], *b = &c->node[1];
	struct glock_holder gh;

	fakedlm_no_memory(a->ls, 1);
	assert_int_equal(take(c, a, EX, 0, &gh), -ENOMEM);
	cache(c, a, EX);
	/* Others get it in spite of that, when there is some again. */
	fakedlm_no_memory(a->ls, 2);
	assert_int_equal(glock_nq(b->gl, EX, GL_ASYNC, &gh), 0);
	while (!gh.gh_granted)
		pump(c);
	assert_int_equal(glock_wait(&gh), 0);
	glock_dq(&gh);
}

/* ---- answers within the call ---- */

static void test_at_once(void **state)
{
	struct cluster *c = *state;
	struct node *a = &c->node[0];
	struct lockmod_dlm_stats st;
	struct glock_holder gh;
	struct glock *gl;
	unsigned i = 0;
	int err;

	/* Nobody knows yet, so nobody is asked. */
	assert_int_equal(glock_nq(a->gl, EX, GL_NOWAIT, &gh), -EAGAIN);
	expect_calls(c, "");
	fakedlm_set_inline(c->server, 100);
	do {
		assert_int_equal(glock_get(a->table, &rgrp_ops, ++i, a, &gl),
				 0);
		err = glock_nq(gl, EX, GL_NOWAIT, &gh);
		if (err)
			assert_int_equal(glock_nq(gl, EX, 0, &gh), 0);
		glock_dq(&gh);
		glock_put(gl);
		forget(c);
	} while (err && i < 1000);
	assert_int_equal(err, 0);
	lockmod_dlm_stats(a->dlm, &st);
	assert_int_equal(st.requests, st.at_once);
	/* From the first one that is late, it is as before. */
	fakedlm_set_inline(c->server, 0);
	cache(c, a, EX);
	glock_put(a->gl);
	pump(c);
	assert_int_equal(glock_get(a->table, &rgrp_ops, NUMBER, a, &a->gl), 0);
	assert_int_equal(glock_nq(a->gl, EX, GL_NOWAIT, &gh), -EAGAIN);
	assert_int_equal(glock_state(a->gl), UN);
}

/* ---- iopen ---- */

static void hold_iopen(struct cluster *c, struct node *n, struct glock **gl,
		       struct glock_holder *gh)
{
	assert_int_equal(glock_get(n->table, &iopen_ops, NUMBER, n, gl), 0);
	assert_int_equal(glock_nq(*gl, SH, GL_EXACT | GL_ASYNC, gh), 0);
	pump(c);
	assert_int_equal(glock_wait_until(gh, 1), 0);
}

/* One wants to free the inode, the other has it in memory and lets it go. */
static void test_iopen(void **state)
{
	struct cluster *c = *state;
	struct node *a = &c->node[0], *b = &c->node[1];
	struct glock_holder ga, gb;
	struct glock *gla, *glb;

	hold_iopen(c, a, &gla, &ga);
	hold_iopen(c, b, &glb, &gb);
	/* The deleter: SH away, EX tried, with a call to the others. */
	ga.gh_flags |= GL_NOCACHE;
	glock_dq(&ga);
	pump(c);
	assert_int_equal(glock_nq(gla, EX, GL_TRY_1CB | GL_ASYNC, &ga), 0);
	pump(c);
	assert_int_equal(glock_wait(&ga), -EAGAIN);
	assert_true(b->evict);
	assert_true(glock_is_wanted(glb));
	assert_int_equal(glock_nq(gla, EX, GL_ASYNC | GL_NOCACHE, &ga), 0);
	pump(c);
	assert_int_equal(glock_wait_until(&ga, 1), -ETIMEDOUT);
	glock_dq(&gb);
	pump(c);
	assert_int_equal(glock_wait_until(&ga, 1), 0);
	glock_dq(&ga);
	pump(c);
	glock_put(gla);
	glock_put(glb);
	pump(c);
}

static void take_line(void *arg, const char *text)
{
	strcat(arg, text);
	strcat(arg, "|");
}

static void test_dump(void **state)
{
	struct cluster *c = *state;
	struct node *a = &c->node[0];
	struct glock_holder held, gh;
	char text[1024] = "";
	struct glock_dump out = { .line = take_line, .arg = text };

	assert_int_equal(take(c, &c->node[1], SH, 0, &held), 0);
	cache(c, a, SH);
	assert_false(glock_table_dump(a->table, &out));
	assert_string_equal(text, "G:  s:SH n:3/2015c f:o t:SH d:EX/0 r:1 m:0|"
				  " D: m:PR k:2|");
	assert_int_equal(take(c, a, EX, 0, &gh), -ETIMEDOUT);
	text[0] = '\0';
	assert_false(glock_table_dump(a->table, &out));
	assert_non_null(strstr(text, "| D: m:PR k:2 q:EX|"));
	glock_dq(&held);
	pump(c);
	assert_int_equal(glock_wait(&gh), 0);
	glock_dq(&gh);
}

#define T(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		T(test_names),
		T(test_life_of_a_lock),
		T(test_types_without_value_block),
		T(test_others_want_it),
		T(test_held),
		T(test_tries),
		T(test_conversion_deadlock),
		T(test_lvb),
		T(test_lvb_is_lost),
		T(test_lvb_of_a_forgotten_resource),
		T(test_cancel),
		T(test_cancel_comes_too_late),
		T(test_withdrawn_locks_stay),
		T(test_leaving_unlocks_nothing),
		T(test_lost),
		T(test_each_request_is_answered_once),
		T(test_no_memory),
		T(test_at_once),
		T(test_iopen),
		T(test_dump),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
