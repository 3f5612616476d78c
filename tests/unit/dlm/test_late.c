/* SPDX-License-Identifier: GPL-2.0-or-later */
/* test_late.c - what one has sent that is no member any more (spec 3.3, 5.5) */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "ring.h"

static bool resources_done;

static void watch(void *arg, const char *line)
{
	(void)arg;
	resources_done |= strstr(line, "recovery resources -> done") != NULL;
}

/* The oldest message of the link, which the ring forgets. */
static struct dlm_msg *intercept(struct ring *r, int from, int to)
{
	assert_true(r->head[from][to] < r->tail[from][to]);
	return r->queue[from][to][r->head[from][to]++];
}

static uint32_t locks_of(const struct ring *r, int node)
{
	struct dlm_counts counts;

	dlm_count(r->engine[node], &counts);
	return counts.locks;
}

/* Node 1 has thrown away what it has saved of the gone, node 3 not yet. */
static void recover_until_resources_are_done(struct ring *r)
{
	resources_done = false;
	dlm_set_trace(r->engine[1], watch);
	ring_start(r);
	for (unsigned i = 0; i < 1000 && !resources_done; i++) {
		ring_deliver(r, 1, 3);
		if (!ring_deliver(r, 3, 1))
			ring_tick(r, 1000000);
	}
	dlm_set_trace(r->engine[1], NULL);
	assert_true(resources_done);
	assert_false(dlm_is_running(r->engine[1]));
}

/*
 *  2 (dies)            1 (master)                    3
 *  | REQUEST ..........  | stop, start without 2     | the same
 *                        | resources -> done         |
 *   ................... >| saved                     |
 *                        | drain: of no member       | done
 */
static void test_request_of_the_dead_is_not_kept(void **state)
{
	struct ring *r = ring_new(3);
	struct dlm_event event = { .kind = DLM_EV_MESSAGE };
	struct dlm_msg *late;
	uint32_t lkid;

	(void)state;
	ring_lock(r, 1, "r", LKM_NL, 0, NULL, &lkid);
	ring_settle(r);
	ring_lock(r, 2, "r", LKM_NL, 0, NULL, &lkid);
	ring_settle(r);
	assert_int_equal(locks_of(r, 1), 2);
	ring_lock(r, 2, "r", LKM_PR, 0, NULL, &lkid);
	late = intercept(r, 2, 1);
	assert_int_equal(late->m.type, DLM_MSG_REQUEST);
	ring_stop(r);
	ring_kill(r, 2);
	recover_until_resources_are_done(r);
	event.message.msg = late;
	event.message.incarnation = r->incarnation[2];
	assert_int_equal(ring_step(r, 1, &event), 0);
	ring_settle(r);
	assert_int_equal(locks_of(r, 1), 1);
	free(late);
	ring_free(r);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_request_of_the_dead_is_not_kept),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
