/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * test_linkmemory.c - links when there is no memory: what a caller is refused
 * has changed nothing, and what the thread lacks costs a connection, never a
 * message.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include <errno.h>

#include "cluster/limits.h"
#include "cluster/links_impl.h"
#include "linkworld.h"

#define MESSAGES 1000u

/* What is asked for, by its size. */
enum site {
	SITE_SET,	 /* struct links */
	SITE_LINK,	 /* struct link */
	SITE_CONNECTION, /* struct conn */
	SITE_CHUNK,	 /* a piece of a queue */
	SITE_REST,	 /* the beginning of a frame that was read */
	SITES,
};

/* Of so many there is memory for all but one; 0: for all. */
static _Atomic unsigned scarce[SITES];
static _Atomic unsigned asked[SITES], refused[SITES];

static bool refuse(enum site site)
{
	unsigned n = scarce[site], turn = asked[site]++;

	if (!n || turn % n)
		return false;
	refused[site]++;
	return true;
}

void *__real_malloc(size_t size);
void *__wrap_malloc(size_t size);

/* A chunk has room for 16 KiB, or for a longer frame. */
void *__wrap_malloc(size_t size)
{
	bool chunk = size > 16384;

	return refuse(chunk ? SITE_CHUNK : SITE_REST) ? NULL
						      : __real_malloc(size);
}

void *__real_calloc(size_t n, size_t size);
void *__wrap_calloc(size_t n, size_t size);

void *__wrap_calloc(size_t n, size_t size)
{
	if ((size == sizeof(struct links) && refuse(SITE_SET)) ||
	    (size == sizeof(struct link) && refuse(SITE_LINK)) ||
	    (size == sizeof(struct conn) && refuse(SITE_CONNECTION)))
		return NULL;
	return __real_calloc(n, size);
}

static void memory_for_all(void)
{
	for (unsigned i = 0; i < SITES; i++)
		scarce[i] = asked[i] = refused[i] = 0;
}

static struct world_node a, b;

static void test_refused_calls(void **state)
{
	const struct world_options options = { 0 };
	struct links_config config = {
		.table = WORLD_TABLE,
		.inc = world_incarnation(3),
		.addr = world_addr("127.0.0.1", 0),
	};
	unsigned descriptors = world_descriptors();
	struct link_addr addr;
	struct links *links;

	scarce[SITE_SET] = 1;
	assert_int_equal(links_open(&config, &links, &addr), -ENOMEM);
	assert_int_equal(world_descriptors(), descriptors);
	memory_for_all();

	node_open(&a, 1, &options);
	node_open(&b, 2, &options);
	scarce[SITE_LINK] = 1;
	assert_int_equal(links_add(a.links, &b.self), -ENOMEM);
	assert_int_equal(node_send(&a, 2, 0, 0, 100), -ENOENT);
	memory_for_all();
	node_add(&a, &b, 0);
	node_add(&b, &a, 0);

	/* Not queued: the same one again, before any later one. */
	scarce[SITE_CHUNK] = 1;
	assert_int_equal(node_send(&a, 2, 0, 0, 100), -ENOMEM);
	assert_int_equal(node_info(&a, 2).queued_bytes, 0);
	memory_for_all();
	assert_int_equal(node_send(&a, 2, 0, 0, 100), 0);
	links_push(a.links);
	await(b.next[1][0] == 1);
	node_close(&a);
	node_close(&b);
	assert_int_equal(world_descriptors(), descriptors);
}

/* Connections break, and neither new ones nor what they bring find memory. */
static void test_nothing_is_lost(void **state)
{
	const struct world_options options = { .timeout_ns =
						       60ull * SECOND_NS };

	node_open(&a, 1, &options);
	node_open(&b, 2, &options);
	scarce[SITE_CONNECTION] = 3;
	scarce[SITE_CHUNK] = 3;
	scarce[SITE_REST] = 20;
	node_add(&a, &b, 0);
	node_add(&b, &a, 0);
	for (unsigned i = 0; i < MESSAGES; i++) {
		size_t len = i % 8 ? i * 37 % 3000 : LINK_MESSAGE_MAX;

		while (node_send(&a, 2, 0, i, len))
			links_push(a.links);
		if (i % 16 == 0)
			links_push(a.links);
		if (i % 512 == 0)
			links_break(a.links);
	}
	links_push(a.links);
	await(b.next[1][0] == MESSAGES);
	for (unsigned i = SITE_CONNECTION; i < SITES; i++)
		assert_true(refused[i]);
	assert_true(node_info(&a, 2).connections > 1);
	assert_int_equal(world_logged("cannot be"), 0);
	memory_for_all();
	node_close(&a);
	node_close(&b);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_refused_calls),
		cmocka_unit_test(test_nothing_is_lost),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
