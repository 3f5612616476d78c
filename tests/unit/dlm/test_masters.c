/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * test_masters.c - masters that forget, and who still believes in them (spec
 * 2.5, 2.7, 5.5)
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>

#include "ring.h"

/*
 * Node 3 masters the name and node 1 knows it; nobody has a lock any more, but
 * the unlock of node 1 is still on its way.
 */
static void use_and_give_back(struct ring *r, const char *name)
{
	uint32_t m, nl;

	ring_lock(r, 3, name, LKM_NL, 0, NULL, &m);
	ring_settle(r);
	ring_lock(r, 1, name, LKM_NL, 0, NULL, &nl);
	ring_settle(r);
	ring_unlock(r, 3, m, 0, NULL);
	ring_unlock(r, 1, nl, 0, NULL);
}

/* REMOVE crosses the directory node's own REQUEST (spec 2.7). */
static void test_remove_crosses_request(void **state)
{
	struct ring *r = ring_new(3);
	const char *name = ring_name(3, 2);
	uint32_t a, b, c;

	(void)state;
	ring_lock(r, 1, name, LKM_EX, 0, NULL, &a);
	ring_settle(r);
	ring_lock(r, 3, name, LKM_NL, 0, NULL, &c); /* 3 caches the master */
	ring_settle(r);
	ring_unlock(r, 3, c, 0, NULL);
	ring_unlock(r, 1, a, 0, NULL);
	ring_settle(r);
	ring_tick(r, DLM_TOSS_NS - 1000);
	ring_lock(r, 2, name, LKM_PR, 0, NULL, &b);
	ring_lock(r, 3, name, LKM_PR, 0, NULL, &c);
	ring_tick(r, 2000); /* the REMOVE is behind nothing */
	ring_settle(r);
	ring_expect(r, 2, b, LKM_PR);
	ring_expect(r, 3, c, LKM_PR);
	ring_free(r);
}

/*
 * Two requests of node 1 are on the way to node 3, which forgets the resource
 * before the first and is made its master again by node 2 before the second.
 */
static void test_master_forgets_between_requests(void **state)
{
	struct ring *r = ring_new(3);
	const char *name = ring_name(3, 2);
	uint32_t a, b, c;

	(void)state;
	use_and_give_back(r, name);
	ring_lock(r, 1, name, LKM_NL, 0, NULL, &a);
	assert_true(ring_deliver(r, 1, 3)); /* the unlock: idle there */
	ring_tick(r, DLM_TOSS_NS);
	ring_lock(r, 2, name, LKM_NL, 0, NULL, &c);
	assert_true(ring_deliver(r, 1, 3)); /* a: unknown here */
	ring_lock(r, 1, name, LKM_NL, 0, NULL, &b);
	assert_true(ring_deliver(r, 2, 3)); /* c: from the directory node */
	assert_true(ring_deliver(r, 3, 1));
	assert_true(ring_deliver(r, 3, 1)); /* a asks the directory node */
	assert_true(ring_deliver(r, 1, 3)); /* b: known again */
	assert_true(ring_deliver(r, 3, 1));
	ring_expect(r, 1, b, LKM_NL);
	ring_convert(r, 1, b, LKM_PR, 0, NULL);
	ring_settle(r);
	ring_expect(r, 1, a, LKM_NL);
	ring_expect(r, 1, b, LKM_PR);
	ring_expect(r, 2, c, LKM_NL);
	ring_free(r);
}

/* Its place among n directory nodes is index % n, for all n that "of" is a
 * multiple of. */
static const char *name_at(unsigned index, unsigned of)
{
	static char name[8];

	for (unsigned i = 0; i < 100; i++) {
		snprintf(name, sizeof(name), "m%u", i);
		if ((dlm_hash(name, strlen(name)) >> 16) % of == index)
			return name;
	}
	return NULL;
}

/*
 * Node 1 has a request on the way to node 3, which has forgotten the resource;
 * node 2 has become its master. Then node 4, the directory node, dies, and
 * node 1 is the next one: what it had sent is not the word of the directory.
 */
static void test_old_request_of_the_new_directory_node(void **state)
{
	struct ring *r = ring_new(4);
	const char *name = name_at(3, 12); /* node 4 of 4, 1 of 3 */
	uint32_t a, t, x;

	(void)state;
	use_and_give_back(r, name);
	assert_true(ring_deliver(r, 1, 3));
	ring_tick(r, DLM_TOSS_NS);
	assert_true(ring_deliver(r, 3, 4)); /* REMOVE */
	ring_lock(r, 1, name, LKM_NL, 0, NULL, &a);
	ring_lock(r, 2, name, LKM_PR, 0, NULL, &t);
	assert_true(ring_deliver(r, 2, 4));
	assert_true(ring_deliver(r, 4, 2));
	ring_expect(r, 2, t, LKM_PR);
	ring_stop(r);
	ring_kill(r, 4);
	ring_start(r);
	ring_settle(r);
	ring_expect(r, 1, a, LKM_NL);
	ring_lock(r, 3, name, LKM_EX, LKF_NOQUEUE, NULL, &x);
	ring_settle(r);
	assert_int_equal(ring_cast(r, 3, x)->status, -EAGAIN);
	ring_convert(r, 2, t, LKM_NL, 0, NULL);
	ring_lock(r, 3, name, LKM_EX, 0, NULL, &x);
	ring_settle(r);
	ring_expect(r, 3, x, LKM_EX);
	ring_free(r);
}

static void deliver_all(struct ring *r, int from, int to)
{
	while (ring_deliver(r, from, to))
		;
}

/*
 * The second of two requests of node 1 to node 3 arrives when node 3 has
 * forgotten the resource, node 4 has been its master and has forgotten it, too,
 * and node 3 is its master again. Node 1 has been told of node 4.
 */
static void test_old_master_is_the_new_one(void **state)
{
	struct ring *r = ring_new(4);
	const char *name = ring_name(4, 2);
	uint32_t m, a, b, other;

	(void)state;
	use_and_give_back(r, name);
	ring_lock(r, 1, name, LKM_NL, 0, NULL, &a);
	ring_lock(r, 1, name, LKM_PR, 0, NULL, &b);
	assert_true(ring_deliver(r, 1, 3)); /* the unlock: idle there */
	ring_tick(r, DLM_TOSS_NS);
	assert_true(ring_deliver(r, 1, 3)); /* a: unknown here */
	deliver_all(r, 3, 2);		    /* REMOVE */
	ring_lock(r, 4, name, LKM_NL, 0, NULL, &other);
	deliver_all(r, 4, 2);
	deliver_all(r, 2, 4);
	ring_expect(r, 4, other, LKM_NL);
	deliver_all(r, 3, 1);
	deliver_all(r, 1, 2); /* a asks the directory node */
	deliver_all(r, 2, 1);
	ring_unlock(r, 4, other, 0, NULL);
	ring_tick(r, DLM_TOSS_NS);
	deliver_all(r, 4, 2);
	ring_lock(r, 3, name, LKM_NL, 0, NULL, &m);
	deliver_all(r, 3, 2);
	deliver_all(r, 2, 3);
	ring_expect(r, 3, m, LKM_NL);
	deliver_all(r, 1, 3); /* b: known again */
	deliver_all(r, 3, 1);
	ring_expect(r, 1, b, LKM_PR);
	ring_unlock(r, 1, b, 0, NULL);
	ring_settle(r);
	ring_lock(r, 3, name, LKM_EX, 0, NULL, &other);
	ring_settle(r);
	ring_expect(r, 3, other, LKM_EX);
	ring_expect(r, 1, a, LKM_NL);
	ring_free(r);
}

static unsigned resources(const struct ring *r, int node)
{
	struct dlm_counts counts;

	dlm_count(r->engine[node], &counts);
	return counts.resources;
}

/*
 * From the moment node 2 forgets the resource until its REMOVE comes, node 3
 * has a record of a master that knows nothing. Who asks meanwhile is sent
 * round; with the REMOVE that ends, and nothing is left behind.
 */
static void test_record_until_the_remove_comes(void **state)
{
	struct ring *r = ring_new(3);
	const char *name = ring_name(3, 3);
	uint32_t a, m;

	(void)state;
	ring_lock(r, 2, name, LKM_NL, 0, NULL, &m);
	ring_settle(r);
	ring_unlock(r, 2, m, 0, NULL);
	ring_tick(r, DLM_TOSS_NS);
	assert_int_equal(resources(r, 2), 0);
	assert_int_equal(resources(r, 3), 1);
	ring_lock(r, 1, name, LKM_EX, 0, NULL, &a);
	for (unsigned round = 0; round < 2; round++) {
		assert_true(ring_deliver(r, 1, 3)); /* LOOKUP */
		assert_true(ring_deliver(r, 3, 1));
		assert_true(ring_deliver(r, 1, 2)); /* REQUEST */
		assert_true(ring_deliver(r, 2, 1));
		assert_null(ring_cast(r, 1, a));
	}
	assert_true(ring_deliver(r, 2, 3)); /* REMOVE */
	assert_int_equal(resources(r, 3), 0);
	ring_settle(r);
	ring_expect(r, 1, a, LKM_EX);
	assert_int_equal(resources(r, 2), 0);
	ring_unlock(r, 1, a, 0, NULL);
	ring_tick(r, DLM_TOSS_NS);
	ring_settle(r);
	for (int node = 1; node <= 3; node++)
		assert_int_equal(resources(r, node), 0);
	ring_free(r);
}

/*
 * Nodes 1 and 2 have given up requests to node 3, which dies. Node 1 becomes
 * master, for nothing, and forgets it before node 2, the directory node, is so
 * far: its REMOVE comes when that still has its own request to end.
 */
static void test_remove_before_a_request_is_given_up(void **state)
{
	struct ring *r = ring_new(3);
	const char *name = ring_name(2, 2);
	uint32_t m, nl, a, b;

	(void)state;
	ring_lock(r, 3, name, LKM_NL, 0, NULL, &m);
	ring_settle(r);
	ring_lock(r, 1, name, LKM_NL, 0, NULL, &nl);
	ring_lock(r, 2, name, LKM_NL, 0, NULL, &b);
	ring_settle(r);
	ring_unlock(r, 1, nl, 0, NULL);
	ring_unlock(r, 2, b, 0, NULL);
	ring_lock(r, 1, name, LKM_EX, 0, NULL, &a);
	ring_lock(r, 2, name, LKM_EX, 0, NULL, &b);
	ring_unlock(r, 1, a, LKF_FORCEUNLOCK, NULL);
	ring_unlock(r, 2, b, LKF_FORCEUNLOCK, NULL);
	ring_stop(r);
	ring_kill(r, 3);
	ring_start(r);
	while (!dlm_is_running(r->engine[1])) {
		if (!ring_deliver(r, 2, 1) && !ring_deliver(r, 1, 2))
			ring_tick(r, 1000000);
	}
	assert_false(dlm_is_running(r->engine[2]));
	ring_tick(r, DLM_TOSS_NS);
	ring_settle(r);
	ring_tick(r, DLM_TOSS_NS);
	ring_settle(r);
	assert_int_equal(resources(r, 1), 0);
	assert_int_equal(resources(r, 2), 0);
	ring_free(r);
}

/*
 * Node 1 does not know the master of a name when the membership changes: that
 * refuses its request by the answer to the LOOKUP, which is saved, and forgets
 * the resource. Node 1, its directory node now, keeps no record of it.
 */
static void test_refused_by_a_master_that_forgets(void **state)
{
	const char *name = name_at(4, 6); /* node 2 of 3, 1 of 2 */
	struct ring *r = ring_new(3);
	uint32_t m, a;

	(void)state;
	ring_lock(r, 2, name, LKM_EX, 0, NULL, &m);
	ring_settle(r);
	ring_lock(r, 1, name, LKM_PR, LKF_NOQUEUE, NULL, &a);
	assert_true(ring_deliver(r, 1, 2));
	ring_unlock(r, 2, m, 0, NULL);
	ring_stop(r);
	ring_kill(r, 3);
	ring_start(r);
	ring_settle(r);
	assert_int_equal(ring_cast(r, 1, a)->status, -EAGAIN);
	ring_tick(r, DLM_TOSS_NS);
	ring_settle(r);
	assert_int_equal(resources(r, 2), 0);
	assert_int_equal(resources(r, 1), 0);
	ring_free(r);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_remove_crosses_request),
		cmocka_unit_test(test_master_forgets_between_requests),
		cmocka_unit_test(test_old_request_of_the_new_directory_node),
		cmocka_unit_test(test_old_master_is_the_new_one),
		cmocka_unit_test(test_record_until_the_remove_comes),
		cmocka_unit_test(test_remove_before_a_request_is_given_up),
		cmocka_unit_test(test_refused_by_a_master_that_forgets),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
