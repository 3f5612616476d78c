/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * test_links.c - links between members in one process, over loopback: who is
 * let in, what is said to those who are not, silence, back-pressure, removal.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/log.h"
#include "cluster/limits.h"
#include "linkworld.h"

#define KEY "a key that both members have"

static struct world_node a, b;

static void meet(struct world_node *x, struct world_node *y)
{
	node_add(x, y, 0);
	node_add(y, x, 0);
}

static bool connected(struct world_node *x, struct world_node *y)
{
	return node_info(x, y->self.id).connected &&
	       node_info(y, x->self.id).connected;
}

static void send_some(struct world_node *from, const struct world_node *to,
		      uint64_t first, uint64_t count)
{
	for (uint64_t i = first; i < first + count; i++)
		assert_int_equal(
			node_send(from, to->self.id, 0, i, i * 37 % 3000), 0);
	links_push(from->links);
}

static void exchange(const struct world_options *options)
{
	node_open(&a, 1, options);
	node_open(&b, 2, options);
	meet(&a, &b);
	send_some(&a, &b, 0, 1000);
	send_some(&b, &a, 0, 1000);
	await(a.next[2][0] == 1000 && b.next[1][0] == 1000);
	assert_true(connected(&a, &b));
	assert_int_equal(node_info(&a, 2).connections, 1);
	assert_int_equal(node_info(&a, 2).sent, 1000);
	assert_int_equal(node_info(&a, 2).received, 1000);
	/* All is acknowledged, at the next ping at the latest. */
	await(!node_info(&a, 2).queued_bytes && !node_info(&b, 1).queued_bytes);
	node_close(&a);
	node_close(&b);
}

static void test_exchange(void **state)
{
	exchange(&(struct world_options){ .ping_ns = SECOND_NS / 20 });
}

static void test_exchange_with_key(void **state)
{
	exchange(&(struct world_options){ .ping_ns = SECOND_NS / 20,
					  .key = KEY });
}

static void test_exchange_ipv6(void **state)
{
	exchange(&(struct world_options){
		.ping_ns = SECOND_NS / 20, .host = "::1", .key = KEY });
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_exchange),
		cmocka_unit_test(test_exchange_with_key),
		cmocka_unit_test(test_exchange_ipv6),
	};

	ug_log_set_level(UG_ERROR);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
