/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * lock_nolock: a glock is a fair shared/exclusive lock of this machine, also
 * for a thread that may not wait, and nothing is ever written or forgotten
 * because of others.
 */
#include <errno.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>

#include <cmocka.h>

#include "glock/glock.h"
#include "lockmod/nolock.h"

struct fixture {
	struct glock_table *table;
	struct glock *gl;
	atomic_uint syncs;
	atomic_uint invalidates;
	atomic_uint instantiates;
	long counter; /* under EX */
};

static int count_sync(struct glock *gl)
{
	((struct fixture *)glock_object(gl))->syncs++;
	return 0;
}

static void count_invalidate(struct glock *gl, enum lm_state target)
{
	((struct fixture *)glock_object(gl))->invalidates++;
}

static int count_instantiate(struct glock *gl, bool nowait)
{
	((struct fixture *)glock_object(gl))->instantiates++;
	return 0;
}

static const struct glock_ops ops = {
	.type = LM_TYPE_RGRP,
	.sync = count_sync,
	.invalidate = count_invalidate,
	.instantiate = count_instantiate,
};

static int setup(void **state)
{
	struct fixture *f = calloc(1, sizeof(*f));
	struct lockmod mod = lockmod_nolock();

	assert_string_equal(mod.ops->name, "lock_nolock");
	assert_int_equal(glock_table_create(&mod, "test", &f->table), 0);
	assert_int_equal(glock_get(f->table, &ops, 17, f, &f->gl), 0);
	*state = f;
	return 0;
}

static int teardown(void **state)
{
	struct fixture *f = *state;

	if (f->gl)
		glock_put(f->gl);
	glock_table_destroy(f->table);
	free(f);
	return 0;
}

static void test_never_waits_for_others(void **state)
{
	static const enum lm_state states[] = { LM_ST_SHARED, LM_ST_EXCLUSIVE,
						LM_ST_DEFERRED, LM_ST_SHARED };
	struct fixture *f = *state;
	struct glock_holder gh;

	for (unsigned i = 0; i < UG_ARRAY_SIZE(states); i++) {
		assert_int_equal(glock_nq(f->gl, states[i], GL_NOWAIT, &gh), 0);
		glock_set_dirty(f->gl);
		glock_dq(&gh);
	}
	assert_int_equal(f->instantiates, 1);
	assert_int_equal(f->syncs, 0);
	assert_int_equal(f->invalidates, 0);
	/* The end of it is the only time. */
	glock_put(f->gl);
	f->gl = NULL;
	assert_int_equal(f->syncs, 1);
	assert_int_equal(f->invalidates, 1);
}

struct client {
	struct fixture *f;
	enum lm_state state;
	pthread_t thread;
	atomic_bool granted;
};

static void *client_main(void *arg)
{
	struct client *c = arg;
	struct glock_holder gh;

	if (glock_nq(c->f->gl, c->state, 0, &gh))
		return arg;
	c->granted = true;
	if (c->state == LM_ST_EXCLUSIVE)
		c->f->counter++;
	glock_dq(&gh);
	return NULL;
}

/* A holder for ourselves that shows who is queued: it fails behind a waiter. */
static void wait_for_waiter(struct fixture *f)
{
	struct glock_holder gh;

	while (!glock_nq(f->gl, LM_ST_SHARED, GL_TRY, &gh))
		glock_dq(&gh);
}

static void test_reader_behind_writer(void **state)
{
	struct fixture *f = *state;
	struct client writer = { f, LM_ST_EXCLUSIVE, .granted = false };
	struct client reader = { f, LM_ST_SHARED, .granted = false };
	struct glock_holder gh;
	void *ret;

	assert_int_equal(glock_nq(f->gl, LM_ST_SHARED, 0, &gh), 0);
	pthread_create(&writer.thread, NULL, client_main, &writer);
	wait_for_waiter(f);
	pthread_create(&reader.thread, NULL, client_main, &reader);
	assert_false(writer.granted);
	assert_false(reader.granted);
	glock_dq(&gh);
	pthread_join(writer.thread, &ret);
	assert_null(ret);
	pthread_join(reader.thread, &ret);
	assert_null(ret);
	assert_true(writer.granted && reader.granted);
	assert_int_equal(f->counter, 1);
}

static void *count_main(void *arg)
{
	struct fixture *f = arg;

	for (int i = 0; i < 20000; i++) {
		struct glock_holder gh;
		bool write = i % 3 == 0;

		if (glock_nq(f->gl, write ? LM_ST_EXCLUSIVE : LM_ST_SHARED, 0,
			     &gh))
			return arg;
		if (write)
			f->counter++;
		glock_dq(&gh);
	}
	return NULL;
}

static void test_exclusion(void **state)
{
	struct fixture *f = *state;
	pthread_t threads[4];
	void *ret;

	for (int i = 0; i < 4; i++)
		pthread_create(&threads[i], NULL, count_main, f);
	for (int i = 0; i < 4; i++) {
		pthread_join(threads[i], &ret);
		assert_null(ret);
	}
	assert_int_equal(f->counter, 4 * (20000 / 3 + 1));
}

/* Glocks come and go while others are looked up. */
static void *get_put_main(void *arg)
{
	struct fixture *f = arg;

	for (uint64_t i = 0; i < 20000; i++) {
		struct glock_holder gh;
		struct glock *gl;

		if (glock_get(f->table, &ops, i % 50, f, &gl))
			return arg;
		if (glock_nq(gl, LM_ST_EXCLUSIVE, GL_SKIP, &gh))
			return arg;
		glock_dq(&gh);
		glock_put(gl);
	}
	return NULL;
}

static void test_get_put(void **state)
{
	struct fixture *f = *state;
	pthread_t threads[3];
	void *ret;

	for (int i = 0; i < 3; i++)
		pthread_create(&threads[i], NULL, get_put_main, f);
	for (int i = 0; i < 3; i++) {
		pthread_join(threads[i], &ret);
		assert_null(ret);
	}
	glock_table_check(f->table);
}

#define T(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		T(test_never_waits_for_others),
		T(test_reader_behind_writer),
		T(test_exclusion),
		T(test_get_put),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
