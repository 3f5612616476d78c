/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * test_lsthreads.c - many threads take locks of three lockspaces over TCP while
 * members come and go, connections break and the lease comes and goes. Holds
 * are counted in memory, so that two that exclude each other are seen at once.
 * Most of all a subject for the thread sanitizer.
 *
 * Usage: test_lsthreads OPERATIONS, of each thread.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include <poll.h>
#include <stdatomic.h>
#include <time.h>
#include <unistd.h>

#include "base/prng.h"
#include "lsworld.h"

#define NODES 3
#define WORKERS 2
#define DISPATCHERS 2
#define RESOURCES 3

struct worker {
	pthread_t thread;
	struct ugdlm *ls;
	struct ug_prng prng;
	struct ugdlm_lksb lksb;
	pthread_mutex_t lock;
	pthread_cond_t cond;
	bool ended;
	unsigned operations;
};

struct node {
	struct ugdlm *ls;
	pthread_t dispatcher[DISPATCHERS];
	struct worker worker[WORKERS];
	_Atomic bool stopping;
};

/* One at a time may hold EX, and then nobody PR. */
static _Atomic int exclusive[RESOURCES], shared[RESOURCES];
static _Atomic unsigned busy;
static unsigned operations_max;

static void on_ast(void *ctx, struct ugdlm_lksb *lksb)
{
	struct worker *w = ctx;

	pthread_mutex_lock(&w->lock);
	w->ended = true;
	pthread_cond_signal(&w->cond);
	pthread_mutex_unlock(&w->lock);
}

static void on_bast(void *ctx, struct ugdlm_lksb *lksb, enum ugdlm_mode blocked)
{
}

static void await(struct worker *w, int result)
{
	ug_assert(result >= 0);
	pthread_mutex_lock(&w->lock);
	while (!result && !w->ended)
		pthread_cond_wait(&w->cond, &w->lock);
	w->ended = false;
	pthread_mutex_unlock(&w->lock);
}

static void ask(struct worker *w, unsigned resource, enum ugdlm_mode mode,
		uint32_t flags)
{
	char name = (char)('a' + resource);
	struct ugdlm_request req = {
		.mode = mode,
		.flags = flags,
		.name = &name,
		.name_len = 1,
		.lksb = &w->lksb,
		.ast = on_ast,
		.bast = on_bast,
		.ctx = w,
		.inline_ok = ug_prng_below(&w->prng, 2),
	};

	await(w, ugdlm_lock(w->ls, &req));
}

static void hold(unsigned resource, enum ugdlm_mode mode)
{
	if (mode == UGDLM_EX) {
		ug_assert(atomic_fetch_add(&exclusive[resource], 1) == 0);
		ug_assert(shared[resource] == 0);
	} else if (mode == UGDLM_PR) {
		atomic_fetch_add(&shared[resource], 1);
		ug_assert(exclusive[resource] == 0);
	}
}

static void unhold(unsigned resource, enum ugdlm_mode mode)
{
	if (mode == UGDLM_EX)
		atomic_fetch_sub(&exclusive[resource], 1);
	else if (mode == UGDLM_PR)
		atomic_fetch_sub(&shared[resource], 1);
}

static void *worker_main(void *arg)
{
	static const enum ugdlm_mode modes[] = { UGDLM_NL, UGDLM_PR, UGDLM_EX };
	struct worker *w = arg;

	while (w->operations < operations_max) {
		unsigned resource =
			(unsigned)ug_prng_below(&w->prng, RESOURCES);
		uint32_t flags = ug_prng_below(&w->prng, 4) ? 0 : UGDLM_NOQUEUE;

		ask(w, resource, modes[ug_prng_below(&w->prng, 3)], flags);
		w->operations++;
		if (w->lksb.mode == UGDLM_IV)
			continue;
		hold(resource, w->lksb.mode);
		unhold(resource, w->lksb.mode);
		if (ug_prng_below(&w->prng, 2)) {
			ask(w, resource, modes[ug_prng_below(&w->prng, 3)],
			    UGDLM_CONVERT | flags);
			hold(resource, w->lksb.mode);
			unhold(resource, w->lksb.mode);
		}
		await(w, ugdlm_unlock(w->ls, &w->lksb, 0, true));
	}
	busy--;
	return NULL;
}

static void *dispatcher_main(void *arg)
{
	struct node *node = arg;

	while (!node->stopping) {
		struct pollfd fd = { ugdlm_fd(node->ls), POLLIN, 0 };

		if (poll(&fd, 1, 20) > 0)
			ugdlm_dispatch(node->ls, 8);
	}
	return NULL;
}

static void start_dispatchers(struct node *node, struct ugdlm *ls)
{
	node->ls = ls;
	node->stopping = false;
	for (unsigned i = 0; i < DISPATCHERS; i++)
		pthread_create(&node->dispatcher[i], NULL, dispatcher_main,
			       node);
}

static void stop_dispatchers(struct node *node)
{
	node->stopping = true;
	for (unsigned i = 0; i < DISPATCHERS; i++)
		pthread_join(node->dispatcher[i], NULL);
}

static void start_workers(struct node *node, unsigned id)
{
	for (unsigned i = 0; i < WORKERS; i++) {
		struct worker *w = &node->worker[i];

		w->ls = node->ls;
		ug_prng_seed(&w->prng, id * 100 + i);
		pthread_mutex_init(&w->lock, NULL);
		pthread_cond_init(&w->cond, NULL);
		busy++;
		pthread_create(&w->thread, NULL, worker_main, w);
	}
}

static void join_workers(struct node *node)
{
	for (unsigned i = 0; i < WORKERS; i++)
		pthread_join(node->worker[i].thread, NULL);
}

/* While they work: a fourth member comes and goes, and other things happen. */
static void disturb(struct world *w, struct node *nodes, unsigned round)
{
	switch (round % 5) {
	case 0:
		world_join(w, 4);
		start_dispatchers(&nodes[4], w->node[4].ls);
		break;
	case 1:
		for (unsigned id = 1; id <= NODES; id++)
			links_break(w->node[id].ls->links);
		break;
	case 2:
		world_quorum(w, 1 + round % NODES, false);
		usleep(2000);
		world_quorum(w, 1 + round % NODES, true);
		break;
	case 3:
		world_missing(w, 4);
		usleep(2000);
		world_back(w, 4);
		break;
	case 4:
		stop_dispatchers(&nodes[4]);
		assert_int_equal(ugdlm_leave(nodes[4].ls, false), 0);
		break;
	}
	usleep(20000);
}

static void test_many_threads(void **state)
{
	struct world *w = world_new_real();
	struct node *nodes = calloc(WORLD_NODES + 1, sizeof(*nodes));
	unsigned round = 0;

	for (unsigned id = 1; id <= NODES; id++) {
		w->direct = id != 1;
		world_join(w, id);
		start_dispatchers(&nodes[id], w->node[id].ls);
	}
	for (unsigned id = 1; id <= NODES; id++)
		start_workers(&nodes[id], id);
	while (busy || round % 5)
		disturb(w, nodes, round++);
	for (unsigned id = 1; id <= NODES; id++) {
		join_workers(&nodes[id]);
		assert_int_equal(w->node[id].ls->locks, 0);
	}
	for (unsigned id = 1; id <= NODES; id++)
		stop_dispatchers(&nodes[id]);
	for (unsigned id = 1; id <= NODES; id++)
		assert_int_equal(ugdlm_leave(nodes[id].ls, id == 2), 0);
	world_free(w);
	free(nodes);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_many_threads),
	};

	operations_max = argc > 1 ? (unsigned)atoi(argv[1]) : 500;
	return cmocka_run_group_tests(tests, NULL, NULL);
}
