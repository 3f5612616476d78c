/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * test_lsmemory.c - members change while something that was to be told before
 * finds no memory. Random cases are test_lssim.c's.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include <errno.h>
#include <sys/resource.h>

#include "lsworld.h"

static bool no_callbacks; /* no memory for one more callback */

void *__real_malloc(size_t size);
void *__wrap_malloc(size_t size);

void *__wrap_malloc(size_t size)
{
	if (no_callbacks && size == sizeof(struct ls_callback))
		return NULL;
	return __real_malloc(size);
}

static bool no_nodes; /* nor for the table of nodes */

void *__real_calloc(size_t n, size_t size);
void *__wrap_calloc(size_t n, size_t size);

void *__wrap_calloc(size_t n, size_t size)
{
	if (no_nodes && size == sizeof(struct cluster_node))
		return NULL;
	return __real_calloc(n, size);
}

static uint64_t zero_ns(void)
{
	return 0;
}

static void use_up_callbacks(struct ugdlm *ls)
{
	while (ls->spare_callbacks) {
		struct ls_callback *cb = ls->spare_callbacks;

		ls->spare_callbacks = cb->next;
		ls->spare_callbacks_count--;
		free(cb);
	}
	no_callbacks = true;
}

static void test_no_descriptor(void **state)
{
	struct ugdlm_config config = { .name = WORLD_NAME };
	struct rlimit limit, none;
	struct ls_env env = { .now_ns = zero_ns };
	struct ugdlm *ls;
	char why[256];
	int err;

	getrlimit(RLIMIT_NOFILE, &limit);
	none = limit;
	none.rlim_cur = 0;
	setrlimit(RLIMIT_NOFILE, &none);
	err = ls_new(&config, &env, &ls, why, sizeof(why));
	setrlimit(RLIMIT_NOFILE, &limit);
	assert_int_equal(err, -EMFILE);
	assert_string_equal(why, WORLD_NAME ": Too many open files");
}

static void test_no_memory(void **state)
{
	struct ugdlm_config config = { .name = WORLD_NAME };
	struct ls_env env = { .now_ns = zero_ns };
	struct ugdlm *ls;
	char why[256];
	int err;

	no_nodes = true;
	err = ls_new(&config, &env, &ls, why, sizeof(why));
	no_nodes = false;
	assert_int_equal(err, -ENOMEM);
}

static void die(struct world *w, unsigned id)
{
	world_kill(w, id);
	world_missing(w, id);
	world_gone(w, id, GONE_PROCESS);
}

/* The engine ran for a moment, of which nothing may come any more. */
static void test_running_is_overtaken(void **state)
{
	struct world *w = world_new(3, false);
	struct ugdlm *ls = w->node[1].ls;
	const char *name = world_name(3, 1);
	struct test_lock a = { 0 }, b = { 0 }, c = { 0 }, d = { 0 };

	lock_request(w, 1, &a, name, UGDLM_NL, 0);
	lock_request(w, 3, &b, name, UGDLM_EX, 0);
	world_settle(w);
	lock_request(w, 1, &c, name, UGDLM_EX, 0);
	world_settle(w);
	use_up_callbacks(ls);
	die(w, 3);
	world_prove(w, 3, PROOF_REAPED);
	world_move(w);
	assert_int_equal(c.lksb.status, UGDLM_INPROGRESS);
	assert_true(ls->updates_done < ls->updates.count);

	die(w, 2);
	no_callbacks = false;
	world_move(w);
	assert_int_equal(ls->updates.count, 0);
	assert_int_equal(lock_request(w, 1, &d, "d", UGDLM_EX, 0), 0);
	world_move(w);
	world_prove(w, 2, PROOF_REAPED);
	world_settle(w);
	lock_expect(&c, UGDLM_OK, UGDLM_EX);
	lock_expect(&d, UGDLM_OK, UGDLM_EX);
	assert_string_equal(world_log(w, 1),
			    "prepare;gone 3 slot 3 died;gone 2 slot 2 died;"
			    "running slot 1;");
	world_free(w);
}

/* How a member has ended is told also if that has to wait. */
static void test_gone_has_to_wait(void **state)
{
	struct world *w = world_new(3, true);
	struct test_lock a = { 0 };

	use_up_callbacks(w->node[1].ls);
	lock_request(w, 1, &a, world_name(3, 1), UGDLM_EX, 0);
	assert_int_equal(ugdlm_leave(w->node[2].ls, false), 0);
	world_move(w);
	no_callbacks = false;
	world_settle(w);
	lock_expect(&a, UGDLM_OK, UGDLM_EX);
	assert_string_equal(world_log(w, 1),
			    "prepare;gone 2 slot 2 clean;running slot 1;");
	world_free(w);
}

/*
 * A cancel that waits is overtaken by the end of its operation, and then what
 * was said before finds no memory: the lock can be used all the same.
 */
static void test_cancel_is_overtaken(void **state)
{
	struct world *w = world_new(2, false);
	struct ugdlm *ls = w->node[1].ls;
	const char *name = world_name(2, 2);
	struct test_lock master = { 0 }, a = { 0 }, b = { 0 };

	lock_request(w, 2, &master, name, UGDLM_NL, 0);
	world_settle(w);
	lock_request(w, 1, &a, name, UGDLM_NL, 0);
	lock_request(w, 1, &b, name, UGDLM_NL, 0);
	world_settle(w);
	lock_convert(&a, UGDLM_PR, 0);
	lock_convert(&b, UGDLM_PR, 0);
	world_quorum(w, 1, false);
	assert_int_equal(lock_unlock(&a, UGDLM_CANCEL), 0);
	while (world_deliver(w, 1, 2))
		;
	assert_true(world_deliver(w, 2, 1));
	use_up_callbacks(ls);
	assert_true(world_deliver(w, 2, 1));
	assert_true(ls->updates_done < ls->updates.count);

	world_quorum(w, 1, true);
	world_dispatch(w, 1);
	lock_expect(&a, UGDLM_OK, UGDLM_PR);
	assert_int_equal(lock_unlock(&a, 0), 0);
	no_callbacks = false;
	world_settle(w);
	lock_expect(&a, UGDLM_UNLOCKED, UGDLM_IV);
	lock_expect(&b, UGDLM_OK, UGDLM_PR);
	world_free(w);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_running_is_overtaken),
		cmocka_unit_test(test_gone_has_to_wait),
		cmocka_unit_test(test_cancel_is_overtaken),
		cmocka_unit_test(test_no_descriptor),
		cmocka_unit_test(test_no_memory),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
