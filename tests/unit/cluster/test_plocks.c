/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * test_plocks.c - application locks of one member that is alone: what a call
 * returns, what done() tells, cancel, the end.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include <errno.h>
#include <pthread.h>

#include "cluster/plocks.h"

/* The next so many allocations of this thread fail. */
static _Thread_local unsigned failures;

void *__real_malloc(size_t size);
void *__real_calloc(size_t n, size_t size);
void *__real_realloc(void *p, size_t size);
void *__wrap_malloc(size_t size);
void *__wrap_calloc(size_t n, size_t size);
void *__wrap_realloc(void *p, size_t size);

static bool fails(void)
{
	return failures && failures--;
}

void *__wrap_malloc(size_t size)
{
	return fails() ? NULL : __real_malloc(size);
}

void *__wrap_calloc(size_t n, size_t size)
{
	return fails() ? NULL : __real_calloc(n, size);
}

void *__wrap_realloc(void *p, size_t size)
{
	return fails() ? NULL : __real_realloc(p, size);
}

#define CTX_MAX 8

struct test {
	struct plocks *p;
	unsigned told[CTX_MAX]; /* how often */
	int status[CTX_MAX];
	uint64_t id;
};

static void done(void *arg, const struct plock_result *res)
{
	struct test *t = arg;

	t->told[res->ctx]++;
	t->status[res->ctx] = res->status;
}

static void begin(struct test *t)
{
	struct plocks_params params = { .done = done, .arg = t };

	*t = (struct test){ 0 };
	assert_int_equal(plocks_create(&params, &t->p), 0);
}

static struct plock_op set(uint64_t owner, enum range_mode mode, uint64_t start,
			   uint64_t end, bool wait)
{
	return (struct plock_op){ .kind = PLOCK_SET,
				  .table = PLOCK_FCNTL,
				  .owner_kind = RANGE_POSIX,
				  .mode = mode,
				  .owner = owner,
				  .start = start,
				  .end = end,
				  .pid = (uint32_t)owner,
				  .wait = wait };
}

/* 1 if it is under way, else its answer. */
static int call(struct test *t, struct plock_op op, uint64_t ctx)
{
	struct plock_result res = { 0 };
	int err = plocks_call(t->p, 7, &op, ctx, &t->id, &res);

	if (err == -EINPROGRESS)
		return 1;
	if (err)
		return err;
	assert_int_equal(res.ctx, ctx);
	return res.status;
}

static void test_at_once(void **state)
{
	struct test t;

	begin(&t);
	assert_false(plocks_knows(t.p, PLOCK_FCNTL, 1));
	assert_int_equal(call(&t, set(1, RANGE_WRITE, 0, 9, false), 1), 0);
	assert_true(plocks_knows(t.p, PLOCK_FCNTL, 1));
	assert_false(plocks_knows(t.p, PLOCK_FCNTL, 2));
	assert_int_equal(call(&t, set(2, RANGE_READ, 5, 5, false), 1), -EAGAIN);
	assert_int_equal(call(&t, set(2, RANGE_READ, 6, 5, false), 1), -EINVAL);
	assert_int_equal(call(&t, set(1, RANGE_NONE, 0, 9, false), 1), 0);
	assert_false(plocks_knows(t.p, PLOCK_FCNTL, 1));
	assert_int_equal(t.told[1], 0);
	plocks_destroy(t.p);
}

static void test_get(void **state)
{
	struct plock_op op = set(2, RANGE_READ, 0, RANGE_END, false);
	struct plock_result res;
	struct test t;

	begin(&t);
	call(&t, set(1, RANGE_WRITE, 3, 4, false), 1);
	op.kind = PLOCK_GET;
	assert_int_equal(plocks_call(t.p, 7, &op, 1, &t.id, &res), 0);
	assert_int_equal(res.status, 0);
	assert_int_equal(res.found.mode, RANGE_WRITE);
	assert_int_equal(res.found.start, 3);
	assert_int_equal(res.found.end, 4);
	assert_int_equal(res.found.pid, 1);
	plocks_destroy(t.p);
}

static void test_waits(void **state)
{
	struct test t;

	begin(&t);
	call(&t, set(1, RANGE_WRITE, 0, 9, false), 1);
	assert_int_equal(call(&t, set(2, RANGE_WRITE, 0, 0, true), 2), 1);
	assert_true(plocks_knows(t.p, PLOCK_FCNTL, 2));
	assert_int_equal(t.told[2], 0);
	assert_int_equal(call(&t, set(1, RANGE_NONE, 0, 0, false), 1), 0);
	assert_int_equal(t.told[2], 1);
	assert_int_equal(t.status[2], 0);
	/* Of one that has been answered an old id means nothing. */
	assert_int_equal(plocks_cancel(t.p, t.id), -ENOENT);
	plocks_destroy(t.p);
}

static void test_cancel(void **state)
{
	struct test t;

	begin(&t);
	call(&t, set(1, RANGE_WRITE, 0, 9, false), 1);
	call(&t, set(2, RANGE_WRITE, 20, 20, false), 1);
	assert_int_equal(call(&t, set(2, RANGE_WRITE, 0, 0, true), 2), 1);
	assert_int_equal(plocks_cancel(t.p, t.id), 0);
	assert_int_equal(t.told[2], 1);
	assert_int_equal(t.status[2], -EINTR);
	assert_int_equal(plocks_cancel(t.p, t.id), -ENOENT);
	/* No ghost of it, and what it had it has. */
	call(&t, set(1, RANGE_NONE, 0, 9, false), 1);
	assert_int_equal(call(&t, set(3, RANGE_WRITE, 0, 9, false), 1), 0);
	assert_int_equal(call(&t, set(3, RANGE_WRITE, 20, 20, false), 1),
			 -EAGAIN);
	plocks_destroy(t.p);
}

static void test_close(void **state)
{
	struct plock_op op = set(1, RANGE_NONE, 0, 0, false);
	struct test t;

	begin(&t);
	call(&t, set(1, RANGE_WRITE, 0, 0, false), 1);
	call(&t, set(1, RANGE_READ, 5, 9, false), 1);
	assert_int_equal(call(&t, set(2, RANGE_WRITE, 0, 9, true), 2), 1);
	op.kind = PLOCK_CLOSE;
	assert_int_equal(call(&t, op, 1), 0);
	assert_int_equal(t.told[2], 1);
	assert_false(plocks_knows(t.p, PLOCK_FCNTL, 1));
	plocks_destroy(t.p);
}

static void test_fail(void **state)
{
	struct test t;

	begin(&t);
	call(&t, set(1, RANGE_WRITE, 0, 9, false), 1);
	assert_int_equal(call(&t, set(2, RANGE_WRITE, 0, 0, true), 2), 1);
	plocks_fail(t.p);
	assert_int_equal(t.told[2], 1);
	assert_int_equal(t.status[2], -EIO);
	assert_int_equal(plocks_cancel(t.p, t.id), -ENOENT);
	assert_int_equal(call(&t, set(3, RANGE_WRITE, 50, 50, false), 1), -EIO);
	assert_int_equal(call(&t, set(1, RANGE_NONE, 0, 9, false), 1), 0);
	assert_false(plocks_knows(t.p, PLOCK_FCNTL, 1));
	plocks_fail(t.p);
	assert_int_equal(t.told[2], 1);
	plocks_destroy(t.p);
}

/* Whoever still waits at the end is not told any more. */
static void test_destroy(void **state)
{
	struct test t;

	begin(&t);
	call(&t, set(1, RANGE_WRITE, 0, 9, false), 1);
	assert_int_equal(call(&t, set(2, RANGE_WRITE, 0, 0, true), 2), 1);
	plocks_destroy(t.p);
	assert_int_equal(t.told[2], 0);
}

/* done() may give the next call, as a program does that was waiting. */
static void unlock_again(void *arg, const struct plock_result *res)
{
	struct test *t = arg;

	done(arg, res);
	assert_int_equal(call(t, set(res->ctx, RANGE_NONE, 0, 9, false), 1), 0);
}

static void test_calls_in_done(void **state)
{
	struct plocks_params params = { .done = unlock_again };
	struct test t = { 0 };

	params.arg = &t;
	assert_int_equal(plocks_create(&params, &t.p), 0);
	call(&t, set(1, RANGE_WRITE, 0, 9, false), 1);
	for (uint64_t i = 2; i < CTX_MAX; i++)
		assert_int_equal(call(&t, set(i, RANGE_WRITE, 0, 9, true), i),
				 1);
	call(&t, set(1, RANGE_NONE, 0, 9, false), 1);
	for (uint64_t i = 2; i < CTX_MAX; i++)
		assert_int_equal(t.told[i], 1);
	plocks_destroy(t.p);
}

/* An unlock waits for memory, and is done; a lock is refused. */
static void test_memory(void **state)
{
	struct plock_op op = set(1, RANGE_NONE, 0, 0, false);

	op.kind = PLOCK_CLOSE;
	for (unsigned n = 1; n < 12; n++) {
		struct test t;

		begin(&t);
		failures = 1;
		assert_int_equal(call(&t, set(1, RANGE_WRITE, 0, 9, false), 1),
				 -ENOMEM);
		assert_int_equal(failures, 0);
		assert_int_equal(call(&t, set(2, RANGE_WRITE, 0, 9, false), 1),
				 0);
		failures = n;
		assert_int_equal(call(&t, set(2, RANGE_NONE, 3, 4, false), 1),
				 0);
		assert_int_equal(call(&t, op, 1), 0);
		failures = 0;
		assert_int_equal(call(&t, set(3, RANGE_WRITE, 3, 4, false), 1),
				 0);
		plocks_destroy(t.p);
	}
}

/* Threads that count under a lock, as programs on one file do. */
#define THREADS 4
#define ROUNDS 500

struct counter {
	struct plocks *p;
	pthread_mutex_t lock;
	pthread_cond_t cond;
	unsigned answers[THREADS];
	unsigned value;
};

static void wake_up(void *arg, const struct plock_result *res)
{
	struct counter *c = arg;

	assert_int_equal(res->status, 0);
	pthread_mutex_lock(&c->lock);
	c->answers[res->ctx]++;
	pthread_cond_broadcast(&c->cond);
	pthread_mutex_unlock(&c->lock);
}

static void count_under_lock(struct counter *c, unsigned me, unsigned *waited)
{
	struct plock_op op = set(me + 1, RANGE_WRITE, 0, 0, true);
	struct plock_result res;
	unsigned value;
	uint64_t id;
	int err = plocks_call(c->p, 7, &op, me, &id, &res);

	if (err == -EINPROGRESS) {
		++*waited;
		pthread_mutex_lock(&c->lock);
		while (c->answers[me] < *waited)
			pthread_cond_wait(&c->cond, &c->lock);
		pthread_mutex_unlock(&c->lock);
	} else {
		assert_int_equal(err, 0);
		assert_int_equal(res.status, 0);
	}
	value = __atomic_load_n(&c->value, __ATOMIC_RELAXED);
	sched_yield();
	__atomic_store_n(&c->value, value + 1, __ATOMIC_RELAXED);
	op.mode = RANGE_NONE;
	assert_int_equal(plocks_call(c->p, 7, &op, me, &id, &res), 0);
}

static struct counter counter = {
	.lock = PTHREAD_MUTEX_INITIALIZER,
	.cond = PTHREAD_COND_INITIALIZER,
};

static void *count(void *arg)
{
	unsigned waited = 0;

	for (unsigned i = 0; i < ROUNDS; i++)
		count_under_lock(&counter, (unsigned)(uintptr_t)arg, &waited);
	return NULL;
}

static void test_threads(void **state)
{
	struct plocks_params params = { .done = wake_up, .arg = &counter };
	pthread_t threads[THREADS];

	assert_int_equal(plocks_create(&params, &counter.p), 0);
	for (uintptr_t i = 0; i < THREADS; i++)
		assert_int_equal(
			pthread_create(&threads[i], NULL, count, (void *)i), 0);
	for (unsigned i = 0; i < THREADS; i++)
		pthread_join(threads[i], NULL);
	assert_int_equal(counter.value, THREADS * ROUNDS);
	plocks_destroy(counter.p);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_at_once),
		cmocka_unit_test(test_get),
		cmocka_unit_test(test_waits),
		cmocka_unit_test(test_cancel),
		cmocka_unit_test(test_close),
		cmocka_unit_test(test_fail),
		cmocka_unit_test(test_destroy),
		cmocka_unit_test(test_calls_in_done),
		cmocka_unit_test(test_memory),
		cmocka_unit_test(test_threads),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
