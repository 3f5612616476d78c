/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * dlm_recovery.c - what a change of members costs the lock engines.
 *
 * NODES engines in one thread, each with COUNT NL locks of resources that it
 * masters, and with locks of every fourth resource of its neighbour. Messages
 * are moved by hand, in waves: what has been sent in one wave is delivered in
 * the next, so that waves times the latency of a link is what recovery waits
 * for, and the time of the slowest engine is what it works. Cases:
 *
 *	join		another member comes, without locks
 *	death		one dies: the directory is rebuilt, a quarter of what
 *			it mastered gets new masters
 *	requests	one dies with BUSY requests under way to it, each for a
 *			resource of its own
 *	waiting		one dies that mastered a resource, with BUSY requests
 *			for EX queued behind an EX of the next master
 *	converting	the same with BUSY conversions from NL to EX
 *
 * A dump is dlm_visit(), at the moment of the stop, by the one with most locks.
 * CPU time of this thread.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/compiler.h"
#include "dlm_engine.h"

#define NODES_MAX 16

struct letter {
	struct letter *next;
	struct dlm_msg msg;
};

struct engine {
	struct dlm_engine *engine; /* NULL: not there */
	double spent_ns, longest_ns;
	unsigned long steps;
};

static struct engine engines[NODES_MAX + 1]; /* by node id */
static struct letter *first, **last = &first;
static unsigned long letters, waves, dump_locks;
static uint64_t now_ns;

static void post(struct dlm_update *up)
{
	struct letter *letter = malloc(sizeof(*letter));

	if (!letter)
		bench_die("memory", 0);
	letter->next = NULL;
	letter->msg = up->msg;
	up->msg.kind = DLM_MSG; /* what it owns has moved */
	*last = letter;
	last = &letter->next;
	letters++;
}

static void step(int node, struct dlm_event *event)
{
	static struct dlm_updates out;
	struct dlm_event more = { .kind = DLM_EV_CONTINUE, .now_ns = now_ns };
	struct engine *e = &engines[node];

	event->now_ns = now_ns;
	do {
		double from = bench_cpu_ns(), took;
		int error;

		dlm_updates_clear(&out);
		error = dlm_step(e->engine, event, &out);
		took = bench_cpu_ns() - from;
		e->spent_ns += took;
		e->longest_ns = UG_MAX(e->longest_ns, took);
		e->steps++;
		if (error)
			bench_die("step", error);
		for (size_t i = 0; i < out.count; i++) {
			if (out.list[i].kind == DLM_UP_SEND)
				post(&out.list[i]);
		}
		event = &more;
	} while (out.more);
	dlm_updates_clear(&out);
}

static void deliver(struct letter *letter)
{
	struct dlm_event event = { .kind = DLM_EV_MESSAGE };
	int to = letter->msg.to;

	event.message.msg = &letter->msg;
	event.message.incarnation = (uint64_t)letter->msg.from;
	if (engines[to].engine)
		step(to, &event);
	dlm_msg_release(&letter->msg);
	free(letter);
}

static bool wave(void)
{
	struct letter *letter = first;

	if (!letter)
		return false;
	first = NULL;
	last = &first;
	waves++;
	while (letter) {
		struct letter *next = letter->next;

		deliver(letter);
		letter = next;
	}
	return true;
}

static bool all_running(void)
{
	for (int node = 1; node <= NODES_MAX; node++) {
		if (engines[node].engine &&
		    !dlm_is_running(engines[node].engine))
			return false;
	}
	return true;
}

static void tick(void)
{
	now_ns += 1000000;
	for (int node = 1; node <= NODES_MAX; node++) {
		struct dlm_event event = { .kind = DLM_EV_TICK };

		if (engines[node].engine &&
		    dlm_wake_ns(engines[node].engine) <= now_ns)
			step(node, &event);
	}
}

static void settle(void)
{
	for (;;) {
		while (wave())
			;
		if (all_running())
			return;
		tick();
	}
}

static void boot(int node)
{
	struct dlm_config config = { .nodeid = node,
				     .incarnation = (uint64_t)node,
				     .lvblen = 32,
				     .toss_ns = 1000000000000000u,
				     .seed = (uint64_t)node };
	int error = dlm_engine_new(&config, &engines[node].engine);

	if (error)
		bench_die("engine", error);
}

static void stop(void)
{
	for (int node = 1; node <= NODES_MAX; node++) {
		struct dlm_event event = { .kind = DLM_EV_STOP };

		if (engines[node].engine)
			step(node, &event);
	}
}

static void start(void)
{
	struct dlm_member members[NODES_MAX];
	unsigned count = 0;

	for (int node = 1; node <= NODES_MAX; node++) {
		if (engines[node].engine)
			members[count++] =
				(struct dlm_member){ node, 1, (uint64_t)node };
	}
	for (int node = 1; node <= NODES_MAX; node++) {
		struct dlm_event event = { .kind = DLM_EV_START };

		event.start.members = members;
		event.start.count = count;
		if (engines[node].engine)
			step(node, &event);
	}
}

/* What it has sent is lost with it, what was sent to it goes nowhere. */
static void kill_node(int node)
{
	struct letter **place = &first;

	dlm_engine_free(engines[node].engine);
	engines[node].engine = NULL;
	while (*place) {
		struct letter *letter = *place;

		if (letter->msg.from != node) {
			place = &letter->next;
			continue;
		}
		*place = letter->next;
		dlm_msg_release(&letter->msg);
		free(letter);
	}
	last = place;
}

static uint32_t lock(int node, unsigned kind, unsigned n, enum dlm_mode mode,
		     uint32_t flags)
{
	struct dlm_event event = { .kind = DLM_EV_LOCK };

	event.lock.mode = mode;
	event.lock.flags = flags;
	event.lock.wants_bast = true;
	bench_name(&event.lock.name, kind, n);
	step(node, &event);
	return event.lock.lkid;
}

static void convert(int node, uint32_t lkid, enum dlm_mode mode)
{
	struct dlm_event event = { .kind = DLM_EV_LOCK };

	event.lock.mode = mode;
	event.lock.flags = LKF_CONVERT;
	event.lock.lkid = lkid;
	event.lock.wants_bast = true;
	step(node, &event);
}

/* Many requests, without holding all their messages in memory at once. */
static void settle_now_and_then(unsigned n)
{
	if (n % 1000 == 999)
		settle();
}

static void populate(unsigned nodes, unsigned count)
{
	for (unsigned i = 0; i < count; i++) {
		for (unsigned node = 1; node <= nodes; node++)
			lock((int)node, node, i, LKM_NL, 0);
		settle_now_and_then(i);
	}
	settle();
	for (unsigned i = 0; i < count; i += 4) {
		for (unsigned node = 1; node <= nodes; node++)
			lock((int)node, node % nodes + 1, i, LKM_NL, 0);
		settle_now_and_then(i / 4);
	}
	settle();
}

static void reset(void)
{
	for (int node = 1; node <= NODES_MAX; node++) {
		engines[node].spent_ns = engines[node].longest_ns = 0;
		engines[node].steps = 0;
	}
	letters = waves = 0;
}

static void count_lock(void *arg, const struct dlm_resource_info *resource,
		       const struct dlm_lock_info *lock_info)
{
	dump_locks += resource->locks && lock_info->lkid;
}

/* By the one that has most locks. */
static double dump(void)
{
	const struct dlm_engine *engine = NULL;
	uint32_t most = 0;
	double from;

	for (int node = 1; node <= NODES_MAX; node++) {
		struct dlm_counts counts;

		if (!engines[node].engine)
			continue;
		dlm_count(engines[node].engine, &counts);
		if (counts.locks < most)
			continue;
		most = counts.locks;
		engine = engines[node].engine;
	}
	from = bench_cpu_ns();
	dump_locks = 0;
	dlm_visit(engine, NULL, count_lock, NULL);
	return bench_cpu_ns() - from;
}

static void change(const char *name, int dead)
{
	double slowest = 0, longest = 0, dumped;
	unsigned long steps = 0;

	if (dead)
		kill_node(dead);
	stop();
	dumped = dump();
	reset();
	start();
	settle();
	for (int node = 1; node <= NODES_MAX; node++) {
		slowest = UG_MAX(slowest, engines[node].spent_ns);
		longest = UG_MAX(longest, engines[node].longest_ns);
		steps = UG_MAX(steps, engines[node].steps);
	}
	printf("%-16s %9.1f ms work, longest step %8.1f ms, %lu waves, "
	       "%lu messages; dump of %lu locks %.1f ms\n",
	       name, slowest / 1e6, longest / 1e6, waves, letters, dump_locks,
	       dumped / 1e6);
}

static void boot_all(unsigned nodes)
{
	for (unsigned node = 1; node <= nodes; node++)
		boot((int)node);
	start();
	settle();
}

static void free_all(void)
{
	for (int node = 1; node <= NODES_MAX; node++) {
		if (engines[node].engine)
			kill_node(node);
	}
}

/* It masters what it has locked first; then it does not answer any more. */
static void case_requests(unsigned nodes, unsigned busy)
{
	boot_all(nodes);
	for (unsigned i = 0; i < busy; i++) {
		lock(2, 2, i, LKM_EX, 0);
		settle_now_and_then(i);
	}
	settle();
	kill_node(2);
	for (unsigned i = 0; i < busy; i++)
		lock(1, 2, i, LKM_EX, 0);
	while (wave())
		;
	change("requests", 0);
	free_all();
}

/* Of which the last of them is directory node when one of the others is gone.
 */
static unsigned hot_resource(unsigned nodes)
{
	struct dlm_name name;
	unsigned n = 0;

	do {
		bench_name(&name, 2, ++n);
	} while ((dlm_hash(name.bytes, name.len) >> 16) % (nodes - 1));
	return n;
}

static void case_hot(const char *name, unsigned nodes, unsigned busy,
		     bool converting)
{
	uint32_t *ids = calloc(busy, sizeof(*ids));
	unsigned hot = hot_resource(nodes);

	if (!ids)
		bench_die("memory", 0);
	boot_all(nodes);
	lock(2, 2, hot, LKM_NL, 0);
	settle();
	lock(1, 2, hot, LKM_EX, 0);
	settle();
	for (unsigned i = 0; i < busy; i++) {
		ids[i] = lock((int)nodes, 2, hot, converting ? LKM_NL : LKM_EX,
			      converting ? LKF_EXPEDITE : 0);
		settle_now_and_then(i);
	}
	settle();
	for (unsigned i = 0; converting && i < busy; i++) {
		convert((int)nodes, ids[i], LKM_EX);
		settle_now_and_then(i);
	}
	settle();
	change(name, 2);
	free_all();
	free(ids);
}

void measure_recovery(unsigned count, unsigned nodes, unsigned busy)
{
	if (nodes < 3 || nodes >= NODES_MAX)
		bench_die("NODES must be 3 to 15", 0);
	printf("%u members, %u resources and %u more locks each, %u busy\n",
	       nodes, count, count / 4, busy);
	boot_all(nodes);
	populate(nodes, count);
	boot((int)nodes + 1);
	change("join", 0);
	change("death", 2);
	free_all();
	case_requests(nodes, busy);
	case_hot("waiting", nodes, busy, false);
	case_hot("converting", nodes, busy, true);
}
