/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * test_hosts.c - what a fence proves and what it does not, and when a group is
 * clear of those from before: stories of one member on node 1 of three.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "cluster/hosts.h"

#define SEC UINT64_C(1000000000)

static struct hosts *h;
static struct group_state table;
static uint64_t now;

static const struct group_proc sup1 = { 1, 101 }, sup2 = { 2, 102 };

static void ring(unsigned mask)
{
	uint32_t nodes[3];
	unsigned n = 0;

	for (uint32_t i = 1; i <= 3; i++)
		if (mask & 1u << i)
			nodes[n++] = i;
	hosts_ring(h, nodes, n);
}

static void procs(void)
{
	struct group_proc list[] = { sup1, sup2 };

	hosts_procs(h, list, 2);
}

static int setup(void **state)
{
	struct cluster_node nodes[3] = { { .id = 1 },
					 { .id = 2 },
					 { .id = 3 } };
	struct hosts_config config = { .self = { 1, 201 },
				       .uuid = { 7 },
				       .startup_delay_ns = 30 * SEC };

	now = SEC;
	memset(&table, 0, sizeof(table));
	h = hosts_new(&config);
	assert_non_null(h);
	hosts_nodes(h, nodes, 3);
	ring(1 << 1 | 1 << 2 | 1 << 3);
	procs();
	return 0;
}

static int teardown(void **state)
{
	hosts_free(h);
	return 0;
}

/* The member with this pid: its record, added if it is not there. */
static struct member *member(uint32_t node, uint32_t pid)
{
	struct member *m;

	for (uint32_t i = 0; i < table.count; i++)
		if (table.members[i].info.inc.pid == pid)
			return &table.members[i];
	m = &table.members[table.count++];
	m->proc = (struct group_proc){ node, pid };
	m->info.inc.pid = pid;
	return m;
}

static void changed(void)
{
	hosts_table(h, &table, now);
}

static void gone(uint32_t node, uint32_t pid)
{
	member(node, pid)->cause = GONE_HOST;
	changed();
}

static void say(struct group_proc from, const struct group_msg *msg)
{
	hosts_message(h, from, msg, now);
}

static void fence(struct group_proc from, uint32_t node, enum fence_state state,
		  int status)
{
	struct group_msg msg = { .type = GM_FENCE };

	msg.fence.node = node;
	msg.fence.state = state;
	msg.fence.tries = 1;
	msg.fence.status = status;
	say(from, &msg);
}

static void supervisor(struct group_proc from, uint32_t child,
		       enum fence_kind kind)
{
	struct group_msg msg = { .type = GM_SUPERVISOR };

	msg.supervisor.child = child;
	msg.supervisor.fence = kind;
	say(from, &msg);
}

/* The pid of the one that is proved next; 0: nobody is. */
static uint32_t proved(void)
{
	struct incarnation inc;

	return hosts_take_proof(h, &inc) ? inc.pid : 0;
}

static struct cluster_wait wait_for_one(void)
{
	struct cluster_wait waits[4] = { 0 };

	assert_int_equal(hosts_waits(h, now, waits, 4), 1);
	return waits[0];
}

static void test_begun_after_the_failure(void **state)
{
	gone(3, 203);
	fence(sup1, 3, FENCE_BEGUN, 0);
	gone(3, 213); /* too late, if the host comes back at once */
	gone(2, 202); /* another host */
	assert_int_equal(proved(), 0);
	fence(sup1, 3, FENCE_DONE, 0);
	assert_int_equal(proved(), 203);
	assert_int_equal(proved(), 0);
}

static void test_host_stays_down(void **state)
{
	gone(3, 203);
	fence(sup1, 3, FENCE_BEGUN, 0);
	ring(1 << 1 | 1 << 2);
	gone(3, 213);
	fence(sup1, 3, FENCE_DONE, 0);
	assert_int_equal(proved(), 203);
	assert_int_equal(proved(), 213);
	gone(3, 223); /* found later, by another view */
	assert_int_equal(proved(), 223);
	ring(1 << 1 | 1 << 2 | 1 << 3);
	gone(3, 233); /* of its next life */
	assert_int_equal(proved(), 0);
}

/* Whose begin was not heard may have begun before the failure. */
static void test_unheard_begin(void **state)
{
	gone(3, 203);
	fence(sup1, 3, FENCE_DONE, 0);
	fence(sup1, 3, FENCE_BEGUN, 0);
	fence(sup2, 3, FENCE_DONE, 0);
	assert_int_equal(proved(), 0);
}

/* Both say that they begin; the first one does, and its end counts. */
static void test_two_begin(void **state)
{
	gone(3, 203);
	fence(sup1, 3, FENCE_BEGUN, 0);
	gone(3, 213);
	fence(sup2, 3, FENCE_BEGUN, 0);
	fence(sup1, 3, FENCE_DONE, 0);
	assert_int_equal(proved(), 203);
	assert_int_equal(proved(), 0);
}

static void test_acknowledged(void **state)
{
	struct group_msg msg = { .type = GM_FENCE_ACK, .node = 3 };

	say(sup2, &msg); /* nobody is missed yet, and it is in the ring */
	gone(3, 203);
	assert_int_equal(proved(), 0);
	gone(2, 202);
	say(sup2, &msg);
	assert_int_equal(proved(), 203);
	assert_int_equal(proved(), 0);
}

static void test_reasons(void **state)
{
	member(1, 201);
	gone(3, 203);
	assert_int_equal(wait_for_one().reason, CLUSTER_WAIT_DEATH);
	assert_int_equal(wait_for_one().node, 3);
	assert_int_equal(wait_for_one().inc.pid, 203);
	now += 6 * SEC;
	assert_int_equal(wait_for_one().since_ns, SEC);
	assert_int_equal(wait_for_one().reason, CLUSTER_WAIT_NOFENCE);
	supervisor(sup1, 201, FENCE_MANUAL);
	assert_int_equal(wait_for_one().reason, CLUSTER_WAIT_MANUAL);
	supervisor(sup2, 999, FENCE_COMMAND); /* of no member of this group */
	assert_int_equal(wait_for_one().reason, CLUSTER_WAIT_MANUAL);
	supervisor(sup1, 201, FENCE_COMMAND);
	assert_int_equal(wait_for_one().reason, CLUSTER_WAIT_DEATH);
	fence(sup1, 3, FENCE_BEGUN, 0);
	assert_int_equal(wait_for_one().reason, CLUSTER_WAIT_FENCE);
	assert_int_equal(wait_for_one().by, 1);
	fence(sup1, 3, FENCE_FAILED, 5);
	assert_int_equal(wait_for_one().reason, CLUSTER_WAIT_RETRY);
	assert_int_equal(wait_for_one().status, 5);
	/* Who fences dies: it is nobody's business for a moment. */
	fence(sup2, 3, FENCE_BEGUN, 0);
	hosts_procs(h, &sup1, 1);
	assert_int_equal(wait_for_one().reason, CLUSTER_WAIT_DEATH);
	member(3, 203)->proof = PROOF_REAPED;
	changed();
	assert_int_equal(hosts_waits(h, now, NULL, 0), 0);
}

/* The last host that is left cannot be fenced by anybody. */
static void test_alone(void **state)
{
	member(1, 201);
	gone(1, 211);
	now += 6 * SEC;
	assert_int_equal(wait_for_one().reason, CLUSTER_WAIT_ALONE);
	member(2, 202);
	changed();
	assert_int_equal(wait_for_one().reason, CLUSTER_WAIT_NOFENCE);
}

static void holders(uint32_t node, const uint32_t *pids, unsigned count,
		    bool more)
{
	struct group_msg msg = { .type = GM_HOLDERS };

	msg.holders.uuid[0] = 7;
	msg.holders.more = more;
	msg.holders.count = (uint8_t)count;
	for (unsigned i = 0; i < count; i++)
		msg.holders.list[i].inc.pid = pids[i];
	say((struct group_proc){ node, 300 }, &msg);
}

static void test_clear_by_survey(void **state)
{
	const uint32_t own[] = { 201 }, second[] = { 202, 203 };
	struct group_ask asks[8];

	member(1, 201);
	member(2, 202);
	changed();
	holders(3, NULL, 0, false); /* nobody has asked yet */
	hosts_begin_startup(h, now);
	assert_true(hosts_want_survey(h));
	holders(1, own, 1, false);
	holders(2, own, 0, true); /* it cannot tell */
	holders(3, NULL, 0, false);
	assert_false(hosts_are_clear(h));
	/* 203 is of before: asked for when it stays. */
	holders(2, second, 2, false);
	assert_int_equal(hosts_asks(h, now, asks, 8), 0);
	now += 4 * SEC;
	holders(2, second, 2, false);
	assert_int_equal(hosts_asks(h, now, asks, 8), 1);
	assert_int_equal(asks[0].inc.pid, 203);
	assert_int_equal(asks[0].proc.node, 2);
	assert_int_equal(wait_for_one().inc.pid, 203);
	holders(2, second, 1, false);
	assert_true(hosts_are_clear(h));
	assert_false(hosts_want_survey(h));
}

/* Its supervisor has ended it, and is gone itself. */
static void test_stranger_is_ended(void **state)
{
	const uint32_t pids[] = { 203, 204 };
	struct group_msg dead = { .type = GM_DEAD };

	hosts_begin_startup(h, now);
	holders(1, NULL, 0, false);
	holders(2, pids, 2, false);
	holders(3, NULL, 0, false);
	dead.dead.inc.pid = 204;
	say(sup2, &dead);
	assert_false(hosts_are_clear(h));
	dead.dead.inc.pid = 203;
	say(sup2, &dead);
	assert_true(hosts_are_clear(h));
}

/* Gone, but not proved: looked after as a member, and no stranger. */
static void test_holder_that_is_gone(void **state)
{
	const uint32_t pid = 202;

	gone(2, 202);
	hosts_begin_startup(h, now);
	holders(1, NULL, 0, false);
	holders(2, &pid, 1, false);
	holders(3, NULL, 0, false);
	assert_true(hosts_are_clear(h));
}

static void test_clear_by_fence(void **state)
{
	struct group_msg ack = { .type = GM_FENCE_ACK, .node = 2 };
	struct group_ask asks[8];

	hosts_begin_startup(h, now);
	holders(1, NULL, 0, false);
	assert_int_equal(hosts_asks(h, now + 29 * SEC, asks, 8), 0);
	now += 30 * SEC;
	assert_int_equal(hosts_asks(h, now, asks, 8), 2);
	assert_int_equal(asks[0].proc.node, 2);
	assert_int_equal(asks[1].proc.node, 3);
	assert_true(incarnation_is_zero(&asks[0].inc));
	fence(sup1, 3, FENCE_BEGUN, 0);
	fence(sup1, 3, FENCE_DONE, 0);
	assert_false(hosts_are_clear(h));
	assert_int_equal(hosts_asks(h, now, asks, 8), 1);
	say(sup2, &ack);
	assert_true(hosts_are_clear(h));
}

int main(void)
{
#define STORY(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
	const struct CMUnitTest tests[] = {
		STORY(test_begun_after_the_failure),
		STORY(test_host_stays_down),
		STORY(test_unheard_begin),
		STORY(test_two_begin),
		STORY(test_acknowledged),
		STORY(test_reasons),
		STORY(test_alone),
		STORY(test_clear_by_survey),
		STORY(test_stranger_is_ended),
		STORY(test_holder_that_is_gone),
		STORY(test_clear_by_fence),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
