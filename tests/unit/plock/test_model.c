/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * test_model.c - the range engine against a map of bytes.
 *
 * A few owners of two nodes lock, wait, cancel, close and die at random on 24
 * bytes, at the beginning or at the end of what can be locked. The model has
 * the mode of each owner on each byte and a list of those that wait, and knows
 * no ranges: after each step all must agree, answers and their order included.
 * Now and then memory is missing; then nothing may have changed.
 *
 *   test_plock_model [STEPS [SEED]]	by hand: more of them
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "base/compiler.h"
#include "base/prng.h"
#include "nomem.h"
#include "plock/range.h"

#define BYTES 24
#define OWNERS 6
#define WAITS_MAX 40
#define MS 1000000u

struct model_wait {
	struct range_request req;
	unsigned owner;
	unsigned first, last; /* bytes */
};

struct model {
	struct ug_prng prng;
	struct ranges *ranges;
	struct range_table table;
	uint64_t base;
	enum range_kind kind;
	unsigned step;
	uint64_t now_ns;
	uint64_t next_ctx;
	uint8_t map[OWNERS][BYTES];
	struct model_wait waits[WAITS_MAX + 1]; /* in order of arrival */
	unsigned wait_count;
	/* answers that are due */
	struct range_done done[WAITS_MAX + 1];
	unsigned done_count;
	/* seen */
	unsigned grants, deadlocks, refusals, nomems;
};

static unsigned long steps = 150000, first_seed = 1;

static uint64_t choose(struct model *m, uint64_t limit)
{
	return ug_prng_below(&m->prng, limit);
}

static struct range_owner who(unsigned owner)
{
	return (struct range_owner){ .node = 1 + owner % 2, .owner = owner };
}

static bool is_stuck(void *arg, const struct range_owner *o)
{
	(void)arg;
	(void)o;
	return true;
}

static void must(const struct model *m, bool holds, const char *what)
{
	if (holds)
		return;
	printf("step %u: %s\n", m->step, what);
	fail();
}

/* The model's own words */

static bool clash(unsigned a, unsigned b)
{
	return a && b && (a == RANGE_WRITE || b == RANGE_WRITE);
}

static bool byte_conflict(const struct model *m, unsigned owner, unsigned other,
			  unsigned mode, unsigned first, unsigned last)
{
	if (owner == other)
		return false;
	for (unsigned b = first; b <= last; b++) {
		if (clash(m->map[other][b], mode))
			return true;
	}
	return false;
}

static bool any_conflict(const struct model *m, unsigned owner, unsigned mode,
			 unsigned first, unsigned last)
{
	for (unsigned o = 0; o < OWNERS; o++) {
		if (byte_conflict(m, owner, o, mode, first, last))
			return true;
	}
	return false;
}

static bool holds_any(const struct model *m, unsigned owner)
{
	for (unsigned b = 0; b < BYTES; b++) {
		if (m->map[owner][b])
			return true;
	}
	return false;
}

static bool is_behind(const struct model *m, const struct model_wait *w,
		      unsigned before)
{
	if (!w->req.fair || holds_any(m, w->owner))
		return false;
	for (unsigned i = 0; i < before; i++) {
		const struct model_wait *other = &m->waits[i];

		if (other->owner == w->owner || other->last < w->first ||
		    w->last < other->first ||
		    !clash(other->req.mode, w->req.mode))
			continue;
		if (w->req.mode == RANGE_READ &&
		    w->req.now_ns - other->req.now_ns < 10 * MS)
			continue;
		return true;
	}
	return false;
}

static void set_bytes(struct model *m, unsigned owner, unsigned mode,
		      unsigned first, unsigned last)
{
	for (unsigned b = first; b <= last; b++)
		m->map[owner][b] = (uint8_t)mode;
}

static void remove_wait(struct model *m, unsigned i)
{
	memmove(&m->waits[i], &m->waits[i + 1],
		(m->wait_count - i - 1) * sizeof(m->waits[0]));
	m->wait_count--;
}

static void answer(struct model *m, unsigned i, int status)
{
	m->done[m->done_count++] =
		(struct range_done){ .who = m->waits[i].req.who,
				     .ctx = m->waits[i].req.ctx,
				     .number = m->table.number,
				     .status = status };
	remove_wait(m, i);
}

/* The first that can go goes, again and again. */
static void grant_all(struct model *m)
{
	unsigned i = 0;

	while (i < m->wait_count) {
		struct model_wait w = m->waits[i];

		if (any_conflict(m, w.owner, w.req.mode, w.first, w.last) ||
		    is_behind(m, &w, i)) {
			i++;
			continue;
		}
		set_bytes(m, w.owner, w.req.mode, w.first, w.last);
		answer(m, i, 0);
		m->grants++;
		i = 0;
	}
}

/* From whom can one not go on? By waits of owners that have one. */
static bool comes_back(const struct model *m, const struct model_wait *w,
		       unsigned goal, bool *seen)
{
	for (unsigned o = 0; o < OWNERS; o++) {
		const struct model_wait *next = NULL;
		unsigned count = 0;

		if (!byte_conflict(m, w->owner, o, w->req.mode, w->first,
				   w->last))
			continue;
		if (o == goal)
			return true;
		for (unsigned i = 0; i < m->wait_count; i++) {
			if (m->waits[i].owner == o)
				next = &m->waits[i];
			count += m->waits[i].owner == o;
		}
		if (count != 1 || seen[o])
			continue;
		seen[o] = true;
		if (comes_back(m, next, goal, seen))
			return true;
	}
	return false;
}

static bool is_deadlock(const struct model *m, const struct model_wait *w)
{
	bool seen[OWNERS] = { false };

	if (m->kind != RANGE_POSIX)
		return false;
	for (unsigned i = 0; i < m->wait_count; i++) {
		if (m->waits[i].owner == w->owner)
			return false;
	}
	return comes_back(m, w, w->owner, seen);
}

static int model_set(struct model *m, struct model_wait *w)
{
	if (m->kind == RANGE_FLOCK && w->req.mode &&
	    any_conflict(m, w->owner, w->req.mode, w->first, w->last)) {
		set_bytes(m, w->owner, RANGE_NONE, 0, BYTES - 1);
		grant_all(m);
	}
	if (w->req.mode &&
	    (any_conflict(m, w->owner, w->req.mode, w->first, w->last) ||
	     (w->req.wait && is_behind(m, w, m->wait_count)))) {
		if (!w->req.wait)
			return -EAGAIN;
		if (is_deadlock(m, w))
			return -EDEADLK;
		m->waits[m->wait_count++] = *w;
		return -EINPROGRESS;
	}
	set_bytes(m, w->owner, w->req.mode, w->first, w->last);
	grant_all(m);
	return 0;
}

/* Engine and model side by side */

static void compare_lock(void *arg, const struct range_lock *lock)
{
	struct model *seen = arg;

	assert_true(lock->start >= seen->base);
	for (uint64_t at = lock->start; at <= lock->end; at++) {
		assert_true(at - seen->base < BYTES);
		assert_int_equal(seen->map[lock->who.owner][at - seen->base],
				 0);
		seen->map[lock->who.owner][at - seen->base] =
			(uint8_t)lock->mode;
	}
	assert_int_equal(lock->kind, seen->kind);
}

static void compare_wait(void *arg, const struct range_wait *wait)
{
	struct model *seen = arg;

	seen->waits[seen->wait_count++].req = wait->req;
}

static void compare(struct model *m)
{
	static struct model seen;
	struct range_done done;
	bool found;

	range_check(m->ranges, &m->table);
	for (unsigned i = 0; i < m->done_count; i++) {
		must(m, range_next_done(m->ranges, &done), "an answer fails");
		must(m, done.ctx == m->done[i].ctx, "another is answered");
		must(m, done.status == m->done[i].status, "a wrong answer");
		must(m, done.number == m->table.number, "of another table");
	}
	must(m, !range_next_done(m->ranges, &done), "an answer too many");
	m->done_count = 0;
	memset(&seen, 0, sizeof(seen));
	seen.base = m->base;
	seen.kind = m->kind;
	range_visit(m->ranges, &m->table, compare_lock, compare_wait, &seen);
	must(m, !memcmp(seen.map, m->map, sizeof(m->map)), "other bytes");
	must(m, seen.wait_count == m->wait_count, "other waits");
	for (unsigned i = 0; i < m->wait_count; i++) {
		found = false;
		for (unsigned j = 0; j < seen.wait_count; j++)
			found |= seen.waits[j].req.ctx == m->waits[i].req.ctx;
		must(m, found, "a wait is lost");
	}
}

static struct model_wait some_request(struct model *m)
{
	struct model_wait w = { .owner = (unsigned)choose(m, OWNERS) };
	unsigned a = (unsigned)choose(m, BYTES), b = (unsigned)choose(m, BYTES);

	w.first = UG_MIN(a, b);
	w.last =
		choose(m, 3) ? UG_MIN(UG_MAX(a, b), w.first + 3) : UG_MAX(a, b);
	if (m->kind == RANGE_FLOCK) {
		w.first = 0;
		w.last = BYTES - 1;
	}
	w.req = (struct range_request){
		.who = who(w.owner),
		.kind = m->kind,
		.mode = (enum range_mode)choose(m, 3),
		.start = m->base + w.first,
		.end = m->base + w.last,
		.pid = 100 + w.owner,
		.fair = choose(m, 4),
		.wait = m->wait_count < WAITS_MAX && choose(m, 2),
		.now_ns = m->now_ns,
		.ctx = m->next_ctx++,
	};
	return w;
}

static void step_set(struct model *m)
{
	struct model_wait w = some_request(m);
	int error, expected;

	nomem_after = choose(m, 4) ? -1 : (long)choose(m, 3);
	error = range_set(m->ranges, &m->table, &w.req);
	nomem_after = -1;
	if (error == -ENOMEM) {
		m->nomems++;
		compare(m);
		error = range_set(m->ranges, &m->table, &w.req);
	}
	expected = model_set(m, &w);
	m->deadlocks += error == -EDEADLK;
	m->refusals += error == -EAGAIN;
	must(m, error == expected, "another result");
}

static void step_get(struct model *m)
{
	struct model_wait w = some_request(m);
	struct range_lock lock;
	unsigned first = BYTES;

	if (!w.req.mode)
		return;
	for (unsigned b = w.first; b <= w.last && first == BYTES; b++) {
		if (any_conflict(m, w.owner, w.req.mode, b, b))
			first = b;
	}
	if (!range_get(m->ranges, &m->table, &w.req, &lock)) {
		must(m, first == BYTES, "a conflict is not seen");
		return;
	}
	must(m, first < BYTES, "a conflict where none is");
	must(m,
	     lock.start <= lock.end && lock.end >= w.req.start &&
		     lock.start <= w.req.end,
	     "a lock elsewhere");
	must(m,
	     byte_conflict(m, w.owner, (unsigned)lock.who.owner, w.req.mode,
			   w.first, w.last),
	     "no conflict with this owner");
	must(m, lock.pid == 100 + lock.who.owner, "a wrong pid");
}

static void step_close(struct model *m)
{
	unsigned owner = (unsigned)choose(m, OWNERS);
	struct range_owner o = who(owner);
	unsigned i = 0;

	/* Answers of a close come in no particular order: one at most here. */
	for (unsigned n = 0, j = 0; j < m->wait_count; j++) {
		n += m->waits[j].owner == owner;
		if (n > 1)
			return;
	}
	range_close(m->ranges, &m->table, &o);
	while (i < m->wait_count) {
		if (m->waits[i].owner == owner)
			answer(m, i, -EINTR);
		else
			i++;
	}
	set_bytes(m, owner, RANGE_NONE, 0, BYTES - 1);
	grant_all(m);
}

static void step_cancel(struct model *m)
{
	struct range_request req;
	unsigned i;

	if (!m->wait_count)
		return;
	i = (unsigned)choose(m, m->wait_count);
	req = m->waits[i].req;
	must(m, !range_cancel(m->ranges, &m->table, &req.who, req.ctx),
	     "what waits cannot be cancelled");
	must(m,
	     range_cancel(m->ranges, &m->table, &req.who, req.ctx) == -ENOENT,
	     "cancelled twice");
	remove_wait(m, i);
	grant_all(m);
}

static void step_node_dies(struct model *m)
{
	uint64_t node = 1 + choose(m, 2);
	bool with_locks = choose(m, 2);
	unsigned i = 0;

	if (with_locks)
		range_drop_node(m->ranges, &m->table, node);
	else
		range_drop_waits(m->ranges, &m->table, node);
	while (i < m->wait_count) {
		if (m->waits[i].req.who.node == node)
			remove_wait(m, i);
		else
			i++;
	}
	for (unsigned o = 0; o < OWNERS; o++) {
		if (with_locks && who(o).node == node)
			set_bytes(m, o, RANGE_NONE, 0, BYTES - 1);
	}
	grant_all(m);
}

static void one_step(struct model *m)
{
	unsigned what = (unsigned)choose(m, 100);

	m->now_ns += choose(m, 3) ? choose(m, MS) : choose(m, 20 * MS);
	if (what < 75)
		step_set(m);
	else if (what < 82)
		step_get(m);
	else if (what < 90)
		step_cancel(m);
	else if (what < 98)
		step_close(m);
	else
		step_node_dies(m);
	compare(m);
}

static void run(enum range_kind kind, uint64_t seed, struct model *m)
{
	struct range_config config = { .one_wait = is_stuck };
	struct range_counts counts;

	memset(m, 0, sizeof(*m));
	ug_prng_seed(&m->prng, seed);
	m->base = seed % 2 ? 0 : RANGE_END - (BYTES - 1);
	m->kind = kind;
	assert_int_equal(ranges_new(&config, &m->ranges), 0);
	range_table_init(m->ranges, &m->table);
	for (m->step = 0; m->step < steps / 10; m->step++)
		one_step(m);
	range_table_clear(m->ranges, &m->table);
	ranges_count(m->ranges, &counts);
	assert_int_equal(counts.locks + counts.waits + counts.owners, 0);
	range_check(m->ranges, &m->table);
	ranges_free(m->ranges);
}

static void run_all(enum range_kind kind, bool deadlocks)
{
	unsigned grants = 0, locked = 0, refusals = 0, nomems = 0;
	static struct model m;

	for (uint64_t seed = first_seed; seed < first_seed + 10; seed++) {
		run(kind, seed, &m);
		grants += m.grants;
		locked += m.deadlocks;
		refusals += m.refusals;
		nomems += m.nomems;
	}
	printf("%u grants, %u refusals, %u deadlocks, %u times no memory\n",
	       grants, refusals, locked, nomems);
	assert_true(grants > 100 && refusals > 100 && nomems > 0);
	assert_true(!!locked == deadlocks);
}

static void test_posix(void **state)
{
	(void)state;
	run_all(RANGE_POSIX, true);
}

static void test_ofd(void **state)
{
	(void)state;
	run_all(RANGE_OFD, false);
}

static void test_flock(void **state)
{
	(void)state;
	run_all(RANGE_FLOCK, false);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_posix),
		cmocka_unit_test(test_ofd),
		cmocka_unit_test(test_flock),
	};

	if (argc > 1)
		steps = strtoul(argv[1], NULL, 0);
	if (argc > 2)
		first_seed = strtoul(argv[2], NULL, 0);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
