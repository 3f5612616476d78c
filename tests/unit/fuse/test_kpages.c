/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Pages of a file in the kernel against a lock that others want.
 *
 * First single rules, then schedules: a kernel with a few pages, tasks that
 * load and store through mappings, READs in every stage of their way, handles
 * that come and go, and another node that wants the lock again and again. Each
 * choice comes from one seed. What must hold: the lock moves with no page left
 * behind, stores happen with EX only, and every demand for the lock is met.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/compiler.h"
#include "fuse/kpages.h"

#define P 4096u

static struct krange pages(uint64_t first, uint64_t count)
{
	return krange_of(first * P, count * P);
}

static void admit(struct kpages *kp, struct krange range)
{
	bool exclusive = kpages_read(kp, range);

	assert_int_equal(kpages_admit(kp, range, exclusive, false),
			 KPAGES_ADMITTED);
}

/* ---- ranges ---- */

static void test_ranges_are_whole_pages(void **ctx)
{
	struct krange r = krange_of(4095, 2);

	assert_int_equal(r.start, 0);
	assert_int_equal(r.end, 2 * P);
	r = krange_of(4096, 4096);
	assert_int_equal(r.start, P);
	assert_int_equal(r.end, 2 * P);
	r = krange_of(UINT64_MAX - 10, 100);
	assert_true(r.end == UINT64_MAX);
}

/* Against a map of bits: never too small, exact while there is room. */
static void test_set_is_never_too_small(void **ctx)
{
	for (unsigned seed = 0; seed < 300; seed++) {
		struct kpages kp = { 0 };
		bool model[64] = { false };

		srand(seed);
		for (unsigned i = 0; i < 200; i++) {
			unsigned first = (unsigned)rand() % 60;
			unsigned count = 1 + (unsigned)rand() % 4;
			bool read = rand() % 2;

			if (read)
				kpages_fail(&kp, pages(first, count));
			else
				admit(&kp, pages(first, count));
			for (unsigned k = first; k < first + count; k++)
				model[k] = !read;
			assert_true(kp.count <= KPAGES_RANGES);
			for (unsigned k = 0; k < 64; k++)
				if (model[k])
					assert_true(kpages_overlap(
						&kp, pages(k, 1)));
			for (unsigned k = 1; k < kp.count; k++)
				assert_true(kp.ranges[k - 1].end <
					    kp.ranges[k].start);
		}
	}
}

static void test_far_parts_stay_apart(void **ctx)
{
	struct kpages kp = { 0 };

	admit(&kp, pages(0, 1));
	admit(&kp, pages(100, 1));
	assert_false(kpages_overlap(&kp, pages(1, 99)));
	assert_false(kpages_read(&kp, pages(100, 1)));
	assert_false(kpages_overlap(&kp, pages(100, 1)));
	assert_true(kpages_overlap(&kp, pages(0, 1)));
}

static void test_dropped_leaves_what_is_newer(void **ctx)
{
	struct kpages kp = { 0 };

	admit(&kp, pages(0, 4));
	kpages_dropped(&kp, pages(0, 2), kp.admitted);
	assert_false(kpages_overlap(&kp, pages(0, 2)));
	assert_true(kpages_overlap(&kp, pages(2, 2)));
	kpages_dropped(&kp, pages(0, 4), kp.admitted - 1);
	assert_true(kpages_overlap(&kp, pages(2, 2)));
}

/* ---- rules ---- */

static void test_nothing_to_notify(void **ctx)
{
	struct kpages kp = { 0 };
	struct krange r;

	kpages_recall(&kp);
	assert_false(kpages_next(&kp, &r));
	/* Who has the lock from before gets no page any more, */
	assert_int_equal(kpages_admit(&kp, pages(0, 1), false, true),
			 KPAGES_AGAIN);
	/* who has it after the demotion does. */
	assert_int_equal(kpages_admit(&kp, pages(0, 1), false, false),
			 KPAGES_ADMITTED);
	assert_int_equal(kpages_admit(&kp, pages(1, 1), false, true),
			 KPAGES_ADMITTED);
}

static void test_passes(void **ctx)
{
	struct kpages kp = { 0 };
	struct krange r;

	admit(&kp, pages(0, 1));
	admit(&kp, pages(9, 1));
	kpages_recall(&kp);
	assert_true(kpages_next(&kp, &r));
	assert_int_equal(r.start, 0);
	assert_int_equal(r.end, 10 * P);
	/* READs of the first pass are served, and need another one. */
	admit(&kp, pages(3, 1));
	admit(&kp, pages(5, 1));
	kpages_notified(&kp);
	assert_true(kpages_next(&kp, &r));
	assert_int_equal(r.start, 3 * P);
	assert_int_equal(r.end, 4 * P);
	/* Now they are parked, and what they show to be gone needs nothing. */
	kpages_read(&kp, pages(5, 1));
	assert_int_equal(kpages_admit(&kp, pages(5, 1), false, true),
			 KPAGES_PARKED);
	kpages_notified(&kp);
	assert_false(kpages_next(&kp, &r));
	assert_true(kpages_may_go_on(&kp, pages(5, 1)));
}

static void test_late_notification(void **ctx)
{
	struct kpages kp = { 0 };
	struct krange r;

	admit(&kp, pages(0, 1));
	kpages_recall(&kp);
	assert_true(kpages_next(&kp, &r));
	admit(&kp, pages(2, 1));
	kpages_notified(&kp);
	assert_true(kpages_next(&kp, &r));
	kpages_read(&kp, pages(2, 1));
	assert_int_equal(kpages_admit(&kp, pages(2, 1), false, true),
			 KPAGES_PARKED);
	assert_false(kpages_may_go_on(&kp, pages(2, 1)));
	kpages_late(&kp, false);
	assert_true(kpages_may_go_on(&kp, pages(2, 1)));
	assert_false(kpages_may_go_on(&kp, pages(3, 1)));
	kpages_late(&kp, true);
	assert_true(kpages_may_go_on(&kp, pages(3, 1)));
	assert_int_equal(kpages_admit(&kp, pages(2, 1), false, true),
			 KPAGES_ADMITTED);
	kpages_notified(&kp);
	/* Once more, and nothing is late any longer. */
	assert_true(kpages_next(&kp, &r));
	assert_int_equal(kpages_admit(&kp, pages(3, 1), false, true),
			 KPAGES_PARKED);
}

static void test_writers_want_exclusive(void **ctx)
{
	struct kpages kp = { 0 };

	assert_true(kpages_writer(&kp, false));
	assert_int_equal(kpages_admit(&kp, pages(0, 1), false, false),
			 KPAGES_AGAIN);
	assert_true(kpages_read(&kp, pages(0, 1)));
	kpages_writer_gone(&kp);
	/* One waits for EX: so does everybody. */
	assert_true(kpages_read(&kp, pages(1, 1)));
	kpages_unread(&kp, true);
	assert_int_equal(kpages_admit(&kp, pages(2, 1), false, false),
			 KPAGES_AGAIN);
	assert_int_equal(kpages_admit(&kp, pages(0, 1), true, false),
			 KPAGES_ADMITTED);
	assert_int_equal(kpages_admit(&kp, pages(0, 1), false, false),
			 KPAGES_ADMITTED);
	/* There are pages that only SH protects. */
	assert_false(kpages_writer(&kp, false));
	assert_true(kpages_writer(&kp, true));
}

/* ---- schedules ---- */

#define PAGES 6
#define READS 5
#define HANDLES 2
#define STEPS 6000u
/* A demand is met in that many steps of a fair schedule. */
#define PATIENCE 3000u
#define LATE 20u
#define VERY_LATE 60u

enum lock {
	NL,
	SH,
	EX
};
enum stage {
	AT_REST,
	RECALLING,
	RETURNED,
	RECALLED
};
enum read_state {
	IDLE,
	CAME,
	WANTS,
	HAS,
	ADMITTED,
	READ,
	PARKED
};

struct sim_read {
	enum read_state state;
	unsigned page;
	bool exclusive;
};

enum handle_state {
	CLOSED,
	OPENING,
	OPENING_EX,
	OPEN
};

struct sim {
	struct kpages kp;
	enum lock lock, target;
	enum stage stage;
	unsigned sh_holders, ex_holders;
	struct {
		bool locked, present, dirty;
	} page[PAGES];
	struct sim_read reads[READS];
	enum handle_state handles[HANDLES];
	bool notifying;
	struct krange range;
	unsigned at; /* the page that the notification has come to */
	unsigned waited;
	unsigned since_demand;
	unsigned moves, stores;
};

static bool is_open(const struct sim *s)
{
	bool open = false;

	for (unsigned i = 0; i < HANDLES; i++)
		open |= s->handles[i] == OPEN;
	return open;
}

/* Lock it, as the glock layer would. False: not now. */
static bool lock(struct sim *s, bool exclusive)
{
	if (s->stage == RECALLED || s->ex_holders ||
	    (exclusive && s->sh_holders))
		return false;
	if (s->lock < (exclusive ? EX : SH)) {
		/* The other node is asked, unless it waits for us. */
		if (s->stage != AT_REST || s->sh_holders)
			return false;
		s->lock = exclusive ? EX : SH;
	}
	if (exclusive)
		s->ex_holders++;
	else
		s->sh_holders++;
	return true;
}

static void unlock(struct sim *s, bool exclusive)
{
	if (exclusive)
		s->ex_holders--;
	else
		s->sh_holders--;
}

/* A task touches a page of its mapping. */
static void touch(struct sim *s, struct sim_read *r)
{
	unsigned p = (unsigned)rand() % PAGES;

	if (s->page[p].locked)
		return;
	if (!s->page[p].present) {
		s->page[p].locked = true;
		r->page = p;
		r->state = CAME;
	} else if (is_open(s) && rand() % 2) {
		assert_int_equal(s->lock, EX);
		s->page[p].dirty = true;
		s->stores++;
	} else {
		assert_true(s->lock != NL);
		/* Or memory is short. */
		if (!(rand() % 8) && !s->page[p].dirty)
			s->page[p].present = false;
	}
}

static void sim_admit(struct sim *s, struct sim_read *r)
{
	switch (kpages_admit(&s->kp, pages(r->page, 1), r->exclusive,
			     s->stage == RECALLING || s->stage == RETURNED ||
				     s->stage == RECALLED)) {
	case KPAGES_ADMITTED:
		r->state = ADMITTED;
		break;
	case KPAGES_AGAIN:
		unlock(s, r->exclusive);
		r->state = CAME;
		break;
	case KPAGES_PARKED:
		unlock(s, r->exclusive);
		r->state = PARKED;
		break;
	}
}

static void step_read(struct sim *s, struct sim_read *r)
{
	switch (r->state) {
	case IDLE:
		touch(s, r);
		break;
	case CAME:
		r->exclusive = kpages_read(&s->kp, pages(r->page, 1));
		r->state = WANTS;
		break;
	case WANTS:
		if (lock(s, r->exclusive)) {
			r->state = HAS;
		} else if (!(rand() % 16)) {
			/* Interrupted; the task tries again. */
			kpages_unread(&s->kp, r->exclusive);
			r->state = CAME;
		}
		break;
	case HAS:
		sim_admit(s, r);
		break;
	case ADMITTED:
		unlock(s, r->exclusive);
		r->state = READ;
		/* It would have to wait for the disk: once more. */
		if (!(rand() % 4)) {
			kpages_fail(&s->kp, pages(r->page, 1));
			r->state = CAME;
		}
		break;
	case READ:
		s->page[r->page].locked = false;
		s->page[r->page].present = true;
		s->page[r->page].dirty = false;
		r->state = IDLE;
		break;
	case PARKED:
		break;
	}
}

static void resume(struct sim *s)
{
	for (unsigned i = 0; i < READS; i++)
		if (s->reads[i].state == PARKED &&
		    kpages_may_go_on(&s->kp, pages(s->reads[i].page, 1)))
			s->reads[i].state = CAME;
}

static void step_handle(struct sim *s, enum handle_state *h)
{
	bool ex = *h == OPENING_EX;

	switch (*h) {
	case CLOSED:
		*h = OPENING;
		break;
	case OPENING:
	case OPENING_EX:
		if (!lock(s, ex))
			break;
		*h = kpages_writer(&s->kp, ex) ? OPEN : OPENING_EX;
		unlock(s, ex);
		break;
	case OPEN:
		/* The kernel writes dirty pages before it closes. */
		for (unsigned p = 0; p < PAGES; p++)
			if (s->page[p].dirty)
				return;
		*h = CLOSED;
		kpages_writer_gone(&s->kp);
		break;
	}
}

/* A WRITE of a dirty page; needs EX. False: not now. */
static bool write_page(struct sim *s, unsigned p)
{
	assert_int_equal(s->lock, EX);
	if (!lock(s, true))
		return false;
	unlock(s, true);
	s->page[p].dirty = false;
	return true;
}

static void flush_some(struct sim *s)
{
	unsigned p = (unsigned)rand() % PAGES;

	if (s->page[p].dirty && !s->page[p].locked)
		write_page(s, p);
}

/* One page further. */
static void step_notification(struct sim *s)
{
	unsigned p = s->at;

	if (p == PAGES || p * P >= s->range.end) {
		s->notifying = false;
		kpages_notified(&s->kp);
		return;
	}
	if (s->page[p].locked || (s->page[p].dirty && !write_page(s, p))) {
		if (++s->waited >= LATE)
			kpages_late(&s->kp, s->waited >= VERY_LATE);
		resume(s);
		return;
	}
	s->page[p].present = false;
	s->at++;
}

static void step_recall(struct sim *s)
{
	if (s->notifying) {
		step_notification(s);
	} else if (kpages_next(&s->kp, &s->range)) {
		s->notifying = true;
		s->waited = 0;
		s->at = (unsigned)(s->range.start / P);
	} else {
		resume(s);
		s->stage = RETURNED;
	}
}

static void move_lock(struct sim *s)
{
	if (s->sh_holders || s->ex_holders)
		return;
	for (unsigned p = 0; p < PAGES; p++)
		assert_false(s->page[p].present);
	for (unsigned i = 0; i < READS; i++)
		assert_int_not_equal(s->reads[i].state, READ);
	s->lock = s->target;
	s->stage = AT_REST;
	s->moves++;
}

static void step_lock(struct sim *s)
{
	switch (s->stage) {
	case AT_REST:
		if (s->lock == NL || rand() % 40)
			break;
		s->target = s->lock == EX && rand() % 2 ? SH : NL;
		s->stage = RECALLING;
		s->since_demand = 0;
		kpages_recall(&s->kp);
		step_recall(s);
		break;
	case RECALLING:
		step_recall(s);
		break;
	case RETURNED:
		s->stage = RECALLED;
		break;
	case RECALLED:
		move_lock(s);
		break;
	}
}

static void sim_step(struct sim *s)
{
	switch (rand() % 8) {
	case 0:
		step_handle(s, &s->handles[rand() % HANDLES]);
		break;
	case 1:
		flush_some(s);
		break;
	case 2:
	case 3:
	case 4:
		step_lock(s);
		break;
	default:
		step_read(s, &s->reads[rand() % READS]);
	}
	if (s->stage != AT_REST)
		s->since_demand++;
	assert_true(s->since_demand < PATIENCE);
}

static void run(unsigned seed, unsigned *moves, unsigned *stores)
{
	struct sim s = { .stage = AT_REST };

	srand(seed);
	for (unsigned i = 0; i < STEPS; i++)
		sim_step(&s);
	*moves += s.moves;
	*stores += s.stores;
}

static void test_schedules(void **ctx)
{
	const char *first = getenv("KPAGES_SEED");
	unsigned from = first ? (unsigned)strtoul(first, NULL, 0) : 1;
	unsigned moves = 0, stores = 0;

	for (unsigned seed = from; seed < from + (first ? 1 : 400); seed++) {
		if (first)
			print_message("seed %u\n", seed);
		run(seed, &moves, &stores);
	}
	/* It was about something. */
	assert_true(first || (moves > 4000 && stores > 4000));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_ranges_are_whole_pages),
		cmocka_unit_test(test_set_is_never_too_small),
		cmocka_unit_test(test_far_parts_stay_apart),
		cmocka_unit_test(test_dropped_leaves_what_is_newer),
		cmocka_unit_test(test_nothing_to_notify),
		cmocka_unit_test(test_passes),
		cmocka_unit_test(test_late_notification),
		cmocka_unit_test(test_writers_want_exclusive),
		cmocka_unit_test(test_schedules),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
