/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * test_linkstorm.c - three members, each with several threads that send to both
 * others, while connections are cut at random bytes by the network and by the
 * members: every message comes once, in the order of its thread.
 *
 * Usage: test_linkstorm [messages per thread and peer [seed]]
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/log.h"
#include "base/prng.h"
#include "cluster/limits.h"
#include "linkproxy.h"
#include "linkworld.h"

#define NODES 3
#define SENDERS 2
#define PAIRS (NODES * (NODES - 1) / 2)
#define BATCH 16
#define BREAK_US 30000

static uint64_t messages = 20000, seed = 1;
static struct world_node nodes[NODES];
static struct link_proxy *proxies[PAIRS];
static _Atomic unsigned running, refused;

struct sender {
	struct world_node *node;
	uint32_t to;
	unsigned thread;
	pthread_t id;
};

/* Small ones as of locks, and now and then the longest. */
static size_t some_length(struct ug_prng *prng)
{
	switch (ug_prng_below(prng, 1024)) {
	case 0:
		return LINK_MESSAGE_MAX;
	case 1:
		return ug_prng_below(prng, LINK_MESSAGE_MAX);
	default:
		return ug_prng_below(prng, 200);
	}
}

static void *send_all(void *arg)
{
	struct sender *sender = arg;
	struct ug_prng prng;

	ug_prng_seed(&prng, seed * 1000 + sender->to * 10 + sender->thread);
	for (uint64_t i = 0; i < messages; i++) {
		while (links_full(sender->node->links, sender->to))
			usleep(100);
		if (node_send(sender->node, sender->to, sender->thread, i,
			      some_length(&prng)))
			refused++;
		if (ug_prng_below(&prng, BATCH) == 0)
			links_push(sender->node->links);
	}
	links_push(sender->node->links);
	running--;
	return NULL;
}

static void open_world(void)
{
	struct world_options options = { .key = "the key of the storm test",
					 .ping_ns = SECOND_NS / 10,
					 .timeout_ns = 60ull * SECOND_NS };
	unsigned pair = 0;
	uint16_t port;

	for (unsigned i = 0; i < NODES; i++)
		node_open(&nodes[i], i + 1, &options);
	for (unsigned i = 0; i < NODES; i++) {
		for (unsigned j = i + 1; j < NODES; j++) {
			proxies[pair] = proxy_open(nodes[i].self.addr.port,
						   seed + pair, &port);
			pair++;
			node_add(&nodes[i], &nodes[j], 0);
			node_add(&nodes[j], &nodes[i], port);
		}
	}
}

static bool all_have_come(void)
{
	for (unsigned i = 0; i < NODES; i++)
		for (unsigned from = 1; from <= NODES; from++)
			for (unsigned t = 0; t < SENDERS; t++)
				if (from != i + 1 &&
				    nodes[i].next[from][t] != messages)
					return false;
	return true;
}

/* Goes on for as long as there is something to break. */
static void break_things(void)
{
	struct ug_prng prng;

	ug_prng_seed(&prng, seed);
	while (running || !all_have_come()) {
		uint64_t before = 0, after = 0;

		links_break(nodes[ug_prng_below(&prng, NODES)].links);
		usleep((useconds_t)ug_prng_below(&prng, BREAK_US));
		for (unsigned i = 1; i < NODES; i++)
			before += nodes[0].next[i + 1][0];
		/* Never faster than messages come. */
		for (unsigned i = 0; i < 100 && after <= before; i++) {
			usleep(BREAK_US / 3);
			after = 0;
			for (unsigned j = 1; j < NODES; j++)
				after += nodes[0].next[j + 1][0];
		}
		for (unsigned i = 0; i < NODES; i++)
			assert_int_equal(nodes[i].wrong, 0);
	}
}

static void test_storm(void **state)
{
	struct sender senders[NODES * (NODES - 1) * SENDERS];
	unsigned count = 0, cuts = 0;
	uint64_t connections = 0;

	open_world();
	for (unsigned i = 0; i < NODES; i++)
		for (unsigned j = 0; j < NODES; j++)
			for (unsigned t = 0; t < SENDERS && i != j; t++)
				senders[count++] =
					(struct sender){ &nodes[i], j + 1, t,
							 0 };
	running = count;
	for (unsigned i = 0; i < count; i++)
		assert_int_equal(pthread_create(&senders[i].id, NULL, send_all,
						&senders[i]),
				 0);
	break_things();
	for (unsigned i = 0; i < count; i++)
		pthread_join(senders[i].id, NULL);
	assert_int_equal(refused, 0);
	for (unsigned i = 0; i < PAIRS; i++)
		proxy_heal(proxies[i]);
	for (unsigned i = 0; i < NODES; i++)
		for (unsigned j = 0; j < NODES; j++)
			if (i != j) {
				await(!node_info(&nodes[i], j + 1)
					       .queued_bytes);
				connections +=
					node_info(&nodes[i], j + 1).connections;
			}
	for (unsigned i = 0; i < NODES; i++)
		node_close(&nodes[i]);
	for (unsigned i = 0; i < PAIRS; i++)
		cuts += proxy_close(proxies[i]);
	print_message("%u cuts of the network, %llu connections\n", cuts,
		      (unsigned long long)connections);
	assert_true(cuts > 0 && connections > 2 * PAIRS);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_storm),
	};

	if (argc > 1)
		messages = strtoull(argv[1], NULL, 10);
	if (argc > 2)
		seed = strtoull(argv[2], NULL, 10);
	ug_log_set_level(UG_WARN);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
