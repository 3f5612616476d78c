/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * test_lssim.c - random schedules of several lockspaces: calls, deliveries,
 * deaths, joins, partings, lost leases, members missed and back, and memory
 * that is not there, in one thread. Two rules are checked after each step: no
 * two programs hold what excludes each other, a dead one included until it is
 * proved so; and when all is well again at the end, every operation ends.
 *
 * Usage: test_lssim FIRST COUNT [STEPS]. Prints the seed of a failure.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include <errno.h>

#include "base/prng.h"
#include "lsworld.h"

#define LOCKS 6
#define NAMES 3

enum life {
	OFF,
	ALIVE,
	DEAD,
	GONE
};

struct sim_node {
	enum life life;
	bool missing;
	struct test_lock lock[LOCKS];
	unsigned name[LOCKS];
	unsigned due[LOCKS]; /* asts that are to come, at most */
};

static struct world *w;
static struct sim_node nodes[WORLD_NODES + 1];
static struct ug_prng prng, memory_prng;
static uint64_t seed;
static unsigned memory_one_in; /* 0: there is memory */
static unsigned long operations, refusals;

/* Memory */

void *__real_malloc(size_t size);
void *__real_calloc(size_t n, size_t size);
void *__real_realloc(void *p, size_t size);
void *__wrap_malloc(size_t size);
void *__wrap_calloc(size_t n, size_t size);
void *__wrap_realloc(void *p, size_t size);

static bool no_memory(void)
{
	return memory_one_in && !ug_prng_below(&memory_prng, memory_one_in);
}

void *__wrap_malloc(size_t size)
{
	return no_memory() ? NULL : __real_malloc(size);
}

void *__wrap_calloc(size_t n, size_t size)
{
	return no_memory() ? NULL : __real_calloc(n, size);
}

void *__wrap_realloc(void *p, size_t size)
{
	return no_memory() ? NULL : __real_realloc(p, size);
}

static unsigned below(unsigned limit)
{
	return (unsigned)ug_prng_below(&prng, limit);
}

static void ug_printf(1, 2) wrong(const char *fmt, ...)
{
	va_list ap;

	memory_one_in = 0;
	printf("seed %llu: ", (unsigned long long)seed);
	va_start(ap, fmt);
	vprintf(fmt, ap);
	va_end(ap);
	printf("\n");
	for (unsigned id = 1; id <= WORLD_NODES; id++) {
		char *text;

		if (!w->node[id].ls || ugdlm_trace_text(w->node[id].ls, &text))
			continue;
		printf("--- node %u\n%s", id, text);
		free(text);
	}
	exit(1);
}

/* Checks */

static bool is_busy(const struct test_lock *lock)
{
	return lock->lksb.status == UGDLM_INPROGRESS;
}

static bool is_held(const struct sim_node *n, unsigned i)
{
	return (n->life == ALIVE || n->life == DEAD || n->life == GONE) &&
	       n->lock[i].ls && !is_busy(&n->lock[i]) &&
	       n->lock[i].lksb.mode != UGDLM_IV;
}

static void check_pair(unsigned a, unsigned i, unsigned b, unsigned j)
{
	const struct sim_node *x = &nodes[a], *y = &nodes[b];
	enum ugdlm_mode m = x->lock[i].lksb.mode, o = y->lock[j].lksb.mode;

	if (x->name[i] != y->name[j] || !is_held(x, i) || !is_held(y, j))
		return;
	if (!dlm_modes_compatible((enum dlm_mode)m, (enum dlm_mode)o))
		wrong("node %u holds %u in %d, node %u in %d", a, x->name[i], m,
		      b, o);
}

static void check(void)
{
	for (unsigned a = 1; a <= WORLD_NODES; a++)
		for (unsigned i = 0; i < LOCKS; i++)
			for (unsigned b = a; b <= WORLD_NODES; b++)
				for (unsigned j = a == b ? i + 1 : 0; j < LOCKS;
				     j++)
					check_pair(a, i, b, j);
	for (unsigned a = 1; a <= WORLD_NODES; a++) {
		const struct sim_node *n = &nodes[a];

		for (unsigned i = 0; n->life == ALIVE && i < LOCKS; i++)
			if (n->lock[i].asts > n->due[i])
				wrong("node %u lock %u: an ast too many", a, i);
	}
}

/* What programs do */

static enum ugdlm_mode any_mode(void)
{
	return (enum ugdlm_mode)below(UGDLM_EX + 1);
}

static uint32_t any_flags(void)
{
	uint32_t flags = below(2) ? UGDLM_VALBLK : 0;

	switch (below(8)) {
	case 0:
		return flags | UGDLM_NOQUEUE;
	case 1:
		return flags | UGDLM_TIMEOUT;
	case 2:
		return flags | UGDLM_ALTPR;
	default:
		return flags;
	}
}

static void ask(unsigned id, unsigned i, uint32_t flags)
{
	struct test_lock *lock = &nodes[id].lock[i];
	struct ugdlm_lksb before = lock->lksb;
	char name[4] = { 'r', (char)('0' + nodes[id].name[i]), 0, 0 };
	struct ugdlm_request req = {
		.mode = any_mode(),
		.flags = flags | any_flags(),
		.name = name,
		.name_len = 2,
		.lksb = &lock->lksb,
		.ast = test_lock_ast,
		.bast = test_lock_bast,
		.ctx = lock,
		.inline_ok = below(2),
	};
	int err;

	req.timeout_ms = req.flags & UGDLM_TIMEOUT ? 50 : 0;
	lock->ls = w->node[id].ls;
	err = ugdlm_lock(lock->ls, &req);
	operations++;
	if (err == 0)
		nodes[id].due[i]++;
	else if (err == -ENOMEM)
		refusals++;
	else if (err < 0)
		wrong("node %u lock %u: refused with %d", id, i, err);
	if (err < 0 && memcmp(&before, &lock->lksb, sizeof(before)) != 0)
		wrong("node %u lock %u: a refused call has written", id, i);
}

static void release(unsigned id, unsigned i, uint32_t flags)
{
	struct test_lock *lock = &nodes[id].lock[i];
	bool plain = !(flags & (UGDLM_CANCEL | UGDLM_FORCEUNLOCK));
	int err = ugdlm_unlock(lock->ls, &lock->lksb, flags, below(2));

	operations++;
	if (plain && err == 0)
		nodes[id].due[i]++;
	/* The operation's own end has been told by this. */
	if (!plain && err == 1)
		nodes[id].due[i]--;
	if (err == -ENOMEM)
		refusals++;
	else if (err < 0)
		wrong("node %u lock %u: unlock %x refused with %d", id, i,
		      flags, err);
}

static void program_step(unsigned id)
{
	unsigned i = below(LOCKS);
	struct test_lock *lock = &nodes[id].lock[i];

	if (is_busy(lock)) {
		if (below(8) == 0)
			release(id, i,
				below(2) ? UGDLM_CANCEL : UGDLM_FORCEUNLOCK);
	} else if (!lock->ls || lock->lksb.mode == UGDLM_IV) {
		nodes[id].name[i] = below(NAMES);
		ask(id, i, 0);
	} else if (below(2)) {
		ask(id, i, UGDLM_CONVERT);
	} else {
		release(id, i, below(2) ? UGDLM_VALBLK : 0);
	}
}

/* What happens to them */

static unsigned alive(void)
{
	unsigned n = 0;

	for (unsigned id = 1; id <= WORLD_NODES; id++)
		n += nodes[id].life == ALIVE;
	return n;
}

static void forget(unsigned id)
{
	memset(&nodes[id], 0, sizeof(nodes[id]));
	for (unsigned i = 0; i < LOCKS; i++)
		nodes[id].lock[i].lksb.mode = UGDLM_IV;
}

static void come_back(unsigned id)
{
	if (nodes[id].missing)
		world_back(w, id);
	nodes[id].missing = false;
}

static void die(unsigned id)
{
	come_back(id);
	world_kill(w, id);
	nodes[id].life = DEAD;
}

/* Told that it is out: all ends for it; the others hear of its death. */
static void expel(unsigned id)
{
	come_back(id);
	world_out(w, id, OUT_EXPELLED);
	while (world_dispatch(w, id))
		;
	for (unsigned i = 0; i < LOCKS; i++) {
		struct test_lock *lock = &nodes[id].lock[i];

		if (lock->ls && is_busy(lock))
			wrong("node %u lock %u: lost without an end", id, i);
	}
	die(id);
}

static void leave(unsigned id)
{
	int err;

	come_back(id);
	w->node[id].quorate = true;
	err = ugdlm_leave(w->node[id].ls, below(2));
	if (err)
		wrong("node %u: leaving gave %d", id, err);
	forget(id);
}

static void change_life(unsigned id)
{
	switch (nodes[id].life) {
	case OFF:
		if (w->started)
			world_join(w, id);
		if (w->node[id].ls)
			nodes[id].life = ALIVE;
		break;
	case ALIVE:
		if (alive() < 2 || !w->started)
			break;
		if (below(3) == 0)
			expel(id);
		else if (below(2))
			die(id);
		else
			leave(id);
		break;
	case DEAD:
		world_missing(w, id);
		world_gone(w, id, GONE_PROCESS);
		nodes[id].life = GONE;
		break;
	case GONE:
		forget(id);
		world_prove(w, id, PROOF_REAPED);
		break;
	}
}

static void disturb(void)
{
	unsigned id = 1 + below(WORLD_NODES);
	bool is_alive = nodes[id].life == ALIVE;

	switch (below(4)) {
	case 0:
		if (is_alive)
			world_quorum(w, id, !w->node[id].quorate);
		break;
	case 1:
		if (nodes[id].missing)
			come_back(id);
		else if (is_alive && alive() > 1) {
			world_missing(w, id);
			nodes[id].missing = true;
		}
		break;
	default:
		change_life(id);
		break;
	}
}

/* On some link on which there is something. */
static void deliver(void)
{
	for (unsigned tries = 0; tries < 32; tries++)
		if (world_deliver(w, 1 + below(WORLD_NODES),
				  1 + below(WORLD_NODES)))
			return;
	world_tick(w, below(5000000));
}

/* What does not last. */
static void recover(unsigned id)
{
	come_back(id);
	if (nodes[id].life == ALIVE && !w->node[id].quorate)
		world_quorum(w, id, true);
	else if (nodes[id].life == DEAD || nodes[id].life == GONE)
		change_life(id);
}

static void step(void)
{
	unsigned what = below(1000), id = 1 + below(WORLD_NODES);

	memory_one_in = seed % 3 == 0 ? 40 : 0;
	if (what < 500)
		deliver();
	else if (what < 750 && nodes[id].life == ALIVE)
		program_step(id);
	else if (what < 950)
		world_dispatch_some(w, id, 1 + below(3));
	else if (what < 980)
		world_tick(w, below(20000000));
	else if (what < 994)
		recover(id);
	else {
		memory_one_in = 0; /* those who make processes need some */
		disturb();
	}
	memory_one_in = 0;
	check();
}

static void heal(void)
{
	for (unsigned id = 1; id <= WORLD_NODES; id++) {
		come_back(id);
		if (nodes[id].life == DEAD)
			change_life(id);
	}
	for (unsigned id = 1; id <= WORLD_NODES; id++) {
		if (nodes[id].life == GONE)
			change_life(id);
		if (nodes[id].life == ALIVE && !w->node[id].quorate)
			world_quorum(w, id, true);
	}
	world_settle(w);
}

static unsigned release_all(void)
{
	unsigned busy = 0;

	for (unsigned id = 1; id <= WORLD_NODES; id++) {
		for (unsigned i = 0; i < LOCKS; i++) {
			struct test_lock *lock = &nodes[id].lock[i];

			if (nodes[id].life != ALIVE || !lock->ls)
				continue;
			busy += is_busy(lock);
			if (is_held(&nodes[id], i))
				release(id, i, 0);
		}
	}
	world_settle(w);
	return busy;
}

static void run(unsigned steps)
{
	ug_prng_seed(&prng, seed);
	ug_prng_seed(&memory_prng, seed);
	for (unsigned id = 1; id <= WORLD_NODES; id++)
		forget(id);
	w = world_new(0, seed % 2);
	w->direct = seed / 2 % 2;
	for (unsigned id = 1; id <= 3; id++) {
		world_join(w, id);
		nodes[id].life = ALIVE;
	}
	for (unsigned i = 0; i < steps; i++)
		step();
	heal();
	for (unsigned rounds = 0; release_all(); rounds++)
		if (rounds > 4 * LOCKS)
			wrong("something does not end");
	check();
	for (unsigned id = 1; id <= WORLD_NODES; id++)
		if (nodes[id].life == ALIVE && w->node[id].ls->locks)
			wrong("node %u: %u locks are left", id,
			      w->node[id].ls->locks);
	world_free(w);
}

int main(int argc, char **argv)
{
	uint64_t first = argc > 1 ? strtoull(argv[1], NULL, 10) : 1;
	uint64_t count = argc > 2 ? strtoull(argv[2], NULL, 10) : 100;
	unsigned steps = argc > 3 ? (unsigned)atoi(argv[3]) : 2000;

	ug_log_set_target(UG_LOG_SYSLOG); /* expected errors */
	for (seed = first; seed < first + count; seed++)
		run(steps);
	printf("%llu runs, %lu operations, %lu without memory\n",
	       (unsigned long long)count, operations, refusals);
	return 0;
}
