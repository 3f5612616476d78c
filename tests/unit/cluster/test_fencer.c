/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * test_fencer.c - who fences a lost host: stories of a few supervisors that
 * hear one another in one order, with fence commands that do as they are told.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/prng.h"
#include "cluster/fencer.h"

#define NODES 5
#define SEC UINT64_C(1000000000)
#define STEP (SEC / 10)
#define QUEUE 4096

/* Node n: its supervisor has pid 100 + n, its mount process 200 + n. */
struct node {
	struct fencer *f;
	bool alive, frozen, member;
	bool running[NODES + 1]; /* its command, for that node */
};

static struct {
	struct node nodes[NODES + 1];
	unsigned count;
	bool in_ring[NODES + 1];
	bool quorate, two_node;
	uint64_t now;
	struct {
		struct group_proc from;
		struct group_msg msg;
	} queue[QUEUE];
	unsigned queued;
	unsigned heard[NODES + 1]; /* of the queue, by each */
	unsigned lost;		   /* the node that members ask about, or 0 */
	uint8_t boot;		   /* of that node */
	unsigned begun[NODES + 1], done, failed;
	int last_status;
} w;

static struct group_proc sup_of(unsigned n)
{
	return (struct group_proc){ n, 100 + n };
}

static void put(struct group_proc from, const struct group_msg *msg)
{
	assert_true(w.queued < QUEUE);
	w.queue[w.queued].from = from;
	w.queue[w.queued++].msg = *msg;
	if (msg->type != GM_FENCE)
		return;
	w.done += msg->fence.state == FENCE_DONE;
	if (msg->fence.state == FENCE_FAILED) {
		w.failed++;
		w.last_status = msg->fence.status;
	}
}

static void give(unsigned n, struct fencer_event *ev)
{
	static struct fencer_updates out;
	struct node *node = &w.nodes[n];

	ev->now_ns = w.now;
	fencer_step(node->f, ev, &out);
	for (unsigned i = 0; i < out.count; i++) {
		const struct fencer_update *up = &out.list[i];

		if (up->kind == FENCER_SEND) {
			put(sup_of(n), &up->send);
		} else if (up->kind == FENCER_RUN) {
			/* The one thing that must never be. */
			for (unsigned m = 1; m <= w.count; m++)
				assert_false(w.nodes[m].alive &&
					     w.nodes[m].running[up->node]);
			node->running[up->node] = true;
			w.begun[n]++;
		} else {
			assert_true(node->running[up->node]);
		}
	}
}

static void tell_procs(void)
{
	struct group_proc list[NODES];
	struct fencer_event ev = { .kind = FENCER_PROCS };

	ev.procs.list = list;
	for (unsigned n = 1; n <= w.count; n++)
		if (w.nodes[n].alive)
			list[ev.procs.count++] = sup_of(n);
	for (unsigned n = 1; n <= w.count; n++) {
		ev.procs.self = sup_of(n);
		if (w.nodes[n].alive)
			give(n, &ev);
	}
}

static void tell_quorum(void)
{
	uint32_t ring[NODES];
	struct fencer_event ev = { .kind = FENCER_QUORUM };

	ev.quorum.nodes = ring;
	ev.quorum.quorate = w.quorate;
	ev.quorum.two_node = w.two_node;
	for (unsigned n = 1; n <= NODES; n++)
		if (w.in_ring[n])
			ring[ev.quorum.count++] = n;
	for (unsigned n = 1; n <= w.count; n++)
		if (w.nodes[n].alive)
			give(n, &ev);
}

static void start(unsigned count, enum fence_kind kind)
{
	memset(&w, 0, sizeof(w));
	w.count = count;
	w.quorate = true;
	w.now = SEC;
	for (unsigned n = 1; n <= count; n++) {
		struct fencer_config config = {
			.child = 200 + n,
			.kind = kind,
			.kill_timeout_ns = 5 * SEC,
			.delay_ns = 2 * SEC,
			.run_max_ns = 60 * SEC,
		};

		w.nodes[n].f = fencer_new(&config);
		assert_non_null(w.nodes[n].f);
		w.nodes[n].alive = w.nodes[n].member = true;
		w.in_ring[n] = true;
	}
	tell_procs();
	tell_quorum();
}

static void end(void)
{
	for (unsigned n = 1; n <= w.count; n++)
		fencer_free(w.nodes[n].f);
}

static void die(unsigned n)
{
	w.nodes[n].alive = w.nodes[n].member = false;
	tell_procs();
}

static void hear(unsigned n)
{
	while (w.heard[n] < w.queued) {
		struct fencer_event ev = { .kind = FENCER_MESSAGE };

		ev.message.from = w.queue[w.heard[n]].from;
		ev.message.msg = &w.queue[w.heard[n]++].msg;
		give(n, &ev);
	}
}

static void ask_for(uint32_t pid)
{
	struct group_msg msg = { .type = GM_ASK };

	msg.ask.proc.node = w.lost;
	msg.ask.inc.pid = pid;
	msg.ask.inc.boot_id[0] = w.boot;
	for (unsigned n = 1; n <= w.count; n++)
		if (w.nodes[n].member && n != w.lost)
			put((struct group_proc){ n, 200 + n }, &msg);
}

static void ask(void)
{
	ask_for(200 + w.lost);
}

static void run(double seconds)
{
	uint64_t until = w.now + (uint64_t)(seconds * (double)SEC);

	for (; w.now < until; w.now += STEP) {
		if (w.lost && w.now % SEC < STEP)
			ask();
		for (unsigned n = 1; n <= w.count; n++) {
			struct fencer_event tick = { .kind = FENCER_TICK };

			if (!w.nodes[n].alive || w.nodes[n].frozen)
				continue;
			hear(n);
			if (fencer_wake_ns(w.nodes[n].f) <= w.now)
				give(n, &tick);
		}
	}
}

static void lose(unsigned n)
{
	w.lost = n;
	w.in_ring[n] = false;
	die(n);
	tell_quorum();
}

static void agent_ends(unsigned n, unsigned lost, int status)
{
	struct fencer_event ev = { .kind = FENCER_ENDED };

	assert_true(w.nodes[n].running[lost]);
	w.nodes[n].running[lost] = false;
	ev.ended.node = lost;
	ev.ended.status = status;
	give(n, &ev);
}

/* It has left the ring: nobody would hear its answer. */
static void test_lowest_at_once(void **state)
{
	start(4, FENCE_COMMAND);
	lose(3);
	run(0.2);
	assert_int_equal(w.begun[1], 0);
	run(0.5);
	assert_int_equal(w.begun[1], 1);
	agent_ends(1, 3, 0);
	run(1);
	assert_int_equal(w.done, 1);
	w.lost = 0;
	run(60);
	assert_int_equal(w.begun[1] + w.begun[2] + w.begun[4], 1);
	for (unsigned n = 1; n <= 4; n++)
		if (w.nodes[n].alive)
			assert_true(fencer_wake_ns(w.nodes[n].f) == UINT64_MAX);
	end();
}

/* It has booted again, joined, and is lost a moment later. */
static void test_lost_again(void **state)
{
	start(4, FENCE_COMMAND);
	lose(3);
	run(0.5);
	assert_int_equal(w.begun[1], 1);
	agent_ends(1, 3, 0);
	/* Some have not heard of it, and ask for the boot that has ended. */
	run(0.6);
	assert_int_equal(w.done, 1);
	assert_int_equal(w.begun[1] + w.begun[2] + w.begun[4], 1);
	w.boot++;
	w.in_ring[3] = true;
	tell_quorum();
	w.in_ring[3] = false;
	tell_quorum();
	run(1.4);
	assert_int_equal(w.begun[1], 2);
	run(1.1);
	agent_ends(1, 3, 1);
	run(1.2);
	assert_int_equal(w.begun[1], 3);
	end();
}

/* It is still asked for, long after everybody must have heard. */
static void test_asked_for_again(void **state)
{
	start(4, FENCE_COMMAND);
	lose(3);
	run(0.5);
	agent_ends(1, 3, 0);
	run(4.5);
	assert_int_equal(w.begun[1], 1);
	run(2.5);
	assert_int_equal(w.begun[1], 2);
	end();
}

/* It hangs, in the ring: it has the time to answer. */
static void test_lowest_after_timeout(void **state)
{
	start(4, FENCE_COMMAND);
	w.lost = 3;
	w.nodes[3].member = false;
	run(4.8);
	assert_int_equal(w.begun[1], 0);
	run(0.5);
	assert_int_equal(w.begun[1], 1);
	end();
}

/* It hangs, and a second later it is lost. */
static void test_lost_while_asked(void **state)
{
	start(4, FENCE_COMMAND);
	w.lost = 3;
	run(1);
	lose(3);
	run(0.2);
	assert_int_equal(w.begun[1], 1);
	end();
}

/* Out of the ring for a moment that the question falls into: it can answer. */
static void test_back_in_ring(void **state)
{
	start(4, FENCE_COMMAND);
	w.lost = 3;
	w.in_ring[3] = false;
	tell_quorum();
	run(0.2);
	w.in_ring[3] = true;
	tell_quorum();
	run(4.6);
	assert_int_equal(w.begun[1], 0);
	run(0.5);
	assert_int_equal(w.begun[1], 1);
	end();
}

/* All were cut from each other: the ring grows together one by one. */
static void test_quorum_regained(void **state)
{
	start(4, FENCE_COMMAND);
	w.quorate = false;
	lose(3);
	w.lost = 0;
	run(60);
	w.quorate = true;
	tell_quorum();
	w.lost = 3;
	run(4.8);
	assert_int_equal(w.begun[1], 0);
	run(0.5);
	assert_int_equal(w.begun[1], 1);
	end();
}

/* It has come to the ring since, and left: that is a loss. */
static void test_lost_after_regained(void **state)
{
	start(4, FENCE_COMMAND);
	w.quorate = false;
	w.in_ring[3] = false;
	tell_quorum();
	run(1);
	w.quorate = true;
	tell_quorum();
	w.in_ring[3] = true;
	tell_quorum();
	lose(3);
	run(0.5);
	assert_int_equal(w.begun[1], 1);
	end();
}

/* Its own supervisor's answer comes in time: nobody is fenced. */
static void test_proof_in_time(void **state)
{
	start(3, FENCE_COMMAND);
	w.lost = 3;
	run(3);
	w.lost = 0;
	run(60);
	assert_int_equal(w.begun[1] + w.begun[2] + w.begun[3], 0);
	end();
}

/* The answer crosses a question, when the time is just up. */
static void test_proof_crosses(void **state)
{
	struct group_msg dead = { .type = GM_DEAD };

	start(3, FENCE_COMMAND);
	w.lost = 3;
	run(4.5);
	dead.dead.inc.pid = 203;
	put(sup_of(3), &dead);
	ask();
	w.lost = 0;
	run(60);
	assert_int_equal(w.begun[1] + w.begun[2] + w.begun[3], 0);
	end();
}

/* One of node 3 dies, and is proved dead at once. */
static void die_and_prove(uint32_t pid)
{
	struct group_msg dead = { .type = GM_DEAD };
	unsigned lost = w.lost;

	w.lost = 3;
	ask_for(pid);
	w.lost = lost;
	run(0.3);
	dead.dead.inc.pid = pid;
	put(sup_of(3), &dead);
	run(1.7);
}

/* A mount process that dies again and again: each one has all the time. */
static void test_deaths_in_a_row(void **state)
{
	start(3, FENCE_COMMAND);
	for (uint32_t i = 0; i < 20; i++)
		die_and_prove(1000 + i);
	assert_int_equal(w.begun[1] + w.begun[2] + w.begun[3], 0);
	end();
}

/* ... which does not spare the host one that hangs beside them. */
static void test_hangs_among_deaths(void **state)
{
	unsigned i;

	start(3, FENCE_COMMAND);
	die_and_prove(1000);
	w.lost = 3;
	for (i = 0; i < 20 && !w.begun[1]; i++)
		die_and_prove(1001 + i);
	assert_in_range(i, 3, 5);
	end();
}

static void test_failing_command(void **state)
{
	start(3, FENCE_COMMAND);
	lose(3);
	run(6.5);
	agent_ends(1, 3, 1);
	assert_int_equal(w.last_status, 1);
	run(2);
	assert_int_equal(w.begun[1], 2);
	agent_ends(1, 3, FENCE_END_TIMEOUT);
	run(6);
	/* Twice is enough: another host may reach it. */
	assert_int_equal(w.begun[1], 2);
	assert_int_equal(w.begun[2], 1);
	agent_ends(2, 3, 0);
	run(1);
	assert_int_equal(w.done, 1);
	assert_int_equal(w.failed, 2);
	end();
}

static void test_actor_dies(void **state)
{
	start(4, FENCE_COMMAND);
	lose(4);
	run(6.5);
	assert_int_equal(w.begun[1], 1);
	die(1);
	run(1);
	assert_int_equal(w.begun[2], 1);
	end();
}

static void test_frozen_is_passed_over(void **state)
{
	start(4, FENCE_COMMAND);
	lose(4);
	w.nodes[1].frozen = true;
	run(12);
	assert_int_equal(w.begun[2], 1);
	/* Awake again it finds that it is too late. */
	w.nodes[1].frozen = false;
	run(1);
	assert_int_equal(w.begun[1], 0);
	end();
}

/* Frozen while its command runs: given up after the longest time. */
static void test_frozen_in_run(void **state)
{
	start(3, FENCE_COMMAND);
	lose(3);
	run(6.5);
	assert_int_equal(w.begun[1], 1);
	w.nodes[1].frozen = true;
	run(60);
	assert_int_equal(w.begun[2], 0);
	w.nodes[1].running[3] = false;
	run(60);
	assert_int_equal(w.begun[2], 1);
	end();
}

static void test_two_nodes(void **state)
{
	/* Node 1 alone begins at once, node 2 alone with a delay. */
	for (unsigned alone = 1; alone <= 2; alone++) {
		start(2, FENCE_COMMAND);
		w.two_node = true;
		lose(3 - alone);
		run(1.5);
		assert_int_equal(w.begun[alone], alone == 1);
		run(2);
		assert_int_equal(w.begun[alone], 1);
		end();
	}
}

static void test_wrong_plug(void **state)
{
	start(3, FENCE_COMMAND);
	w.lost = 3; /* hangs, but its host is there */
	w.nodes[3].member = false;
	run(6.5);
	agent_ends(1, 3, 0);
	run(20);
	assert_int_equal(w.done + w.failed, 0);
	run(15);
	assert_int_equal(w.failed, 1);
	assert_int_equal(w.last_status, FENCE_END_IN_RING);
	run(3);
	assert_int_equal(w.begun[1], 2);
	w.in_ring[3] = false;
	tell_quorum();
	/* Up again before the command says so: it was off. */
	w.in_ring[3] = true;
	tell_quorum();
	agent_ends(1, 3, 0);
	run(1);
	assert_int_equal(w.done, 1);
	end();
}

static void test_no_command(void **state)
{
	start(3, FENCE_MANUAL);
	lose(3);
	run(60);
	assert_int_equal(w.begun[1] + w.begun[2], 0);
	end();
	start(3, FENCE_NONE);
	lose(3);
	run(60);
	assert_int_equal(w.begun[1] + w.begun[2], 0);
	end();
}

static void test_quorum(void **state)
{
	start(3, FENCE_COMMAND);
	lose(3);
	w.quorate = false;
	tell_quorum();
	run(60);
	assert_int_equal(w.begun[1] + w.begun[2], 0);
	w.quorate = true;
	tell_quorum();
	run(1);
	assert_int_equal(w.begun[1], 1);
	w.quorate = false;
	tell_quorum();
	agent_ends(1, 3, FENCE_END_NO_QUORUM);
	run(60);
	assert_int_equal(w.begun[1] + w.begun[2], 1);
	end();
}

/* An acknowledgement, or a host without a member that asks: nothing to do. */
static void test_acknowledged(void **state)
{
	struct group_msg ack = { .type = GM_FENCE_ACK, .node = 3 };

	start(3, FENCE_COMMAND);
	lose(3);
	run(0.2);
	put(sup_of(2), &ack);
	w.lost = 0;
	run(60);
	assert_int_equal(w.begun[1] + w.begun[2], 0);
	end();
}

/* Whatever dies, freezes and fails: one command at a time, and in the end. */
static void test_random(void **state)
{
	for (unsigned seed = 1; seed <= 300; seed++) {
		struct ug_prng prng;

		ug_prng_seed(&prng, seed);
		start(NODES, FENCE_COMMAND);
		lose(NODES);
		for (unsigned i = 0; i < 60; i++) {
			unsigned n = 1 + (unsigned)ug_prng_below(&prng, 4);

			run((double)ug_prng_below(&prng, 60) / 10);
			if (w.nodes[n].running[NODES] && !w.nodes[n].frozen)
				agent_ends(n, NODES, 1);
			else if (n != 2 && ug_prng_below(&prng, 20) == 0 &&
				 w.nodes[n].alive)
				die(n);
			else if (n != 2 && !w.nodes[n].running[NODES])
				w.nodes[n].frozen = !w.nodes[n].frozen;
		}
		for (unsigned i = 0; i < 4000 && !w.done; i++) {
			run(0.1);
			for (unsigned n = 1; n < NODES; n++)
				if (w.nodes[n].running[NODES] &&
				    w.nodes[n].alive && !w.nodes[n].frozen)
					agent_ends(n, NODES, 0);
		}
		assert_int_equal(w.done, 1);
		end();
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_lowest_at_once),
		cmocka_unit_test(test_lost_again),
		cmocka_unit_test(test_asked_for_again),
		cmocka_unit_test(test_lost_after_regained),
		cmocka_unit_test(test_lowest_after_timeout),
		cmocka_unit_test(test_lost_while_asked),
		cmocka_unit_test(test_back_in_ring),
		cmocka_unit_test(test_quorum_regained),
		cmocka_unit_test(test_proof_in_time),
		cmocka_unit_test(test_proof_crosses),
		cmocka_unit_test(test_deaths_in_a_row),
		cmocka_unit_test(test_hangs_among_deaths),
		cmocka_unit_test(test_failing_command),
		cmocka_unit_test(test_actor_dies),
		cmocka_unit_test(test_frozen_is_passed_over),
		cmocka_unit_test(test_frozen_in_run),
		cmocka_unit_test(test_two_nodes),
		cmocka_unit_test(test_wrong_plug),
		cmocka_unit_test(test_no_command),
		cmocka_unit_test(test_quorum),
		cmocka_unit_test(test_acknowledged),
		cmocka_unit_test(test_random),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
