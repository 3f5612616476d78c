/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * test_member.c - stories of a group, each with what its members must say.
 * Random ones are in test_groupsim.c.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "groupworld.h"

static struct world w;

static int setup(void **state)
{
	world_init(&w, 42, 3);
	return 0;
}

static int teardown(void **state)
{
	world_fini(&w);
	return 0;
}

static unsigned live_count(const struct wproc *p)
{
	const struct group_state *table = membership_table(p->m);
	unsigned n = 0;

	for (uint32_t i = 0; table && i < table->count; i++)
		n += table->members[i].cause == GONE_NOT;
	return n;
}

static const struct member *record(const struct wproc *of,
				   const struct wproc *who)
{
	return membership_find(of->m, &who->inc);
}

static void freeze(struct wproc *p)
{
	p->frozen = true;
	p->was_disturbed = true;
}

/* Quorum is a matter of nodes, not of members. */
static void test_first_member(void **state)
{
	struct wproc *a = world_spawn(&w, 2);

	world_run_dry(&w);
	assert_true(membership_settled(a->m));
	assert_int_equal(live_count(a), 1);
	assert_int_equal(a->started, 1);
}

static void test_instances(void **state)
{
	struct wproc *a = world_spawn(&w, 2), *b, *c;

	world_run_dry(&w);
	b = world_spawn(&w, 2);
	world_run_dry(&w);
	assert_int_equal(member_id(record(a, a)), 2);
	assert_int_equal(member_id(record(a, b)), 2 | 1 << INSTANCE_SHIFT);
	world_crash(&w, a);
	world_run_dry(&w);
	/* The sim proves deaths; the lowest instance is free again. */
	c = world_spawn(&w, 2);
	world_run_dry(&w);
	assert_int_equal(member_id(record(b, c)), 2);
	assert_int_equal(membership_table(b->m)->count, 2);
}

static void test_unproved_keeps_instance(void **state)
{
	struct wproc *a = world_spawn(&w, 1), *b, *c;
	struct member_event ev = { .kind = MEV_EXPEL };

	world_run_dry(&w);
	b = world_spawn(&w, 2);
	world_run_dry(&w);
	w.no_proofs = true;
	freeze(b);
	ev.inc = b->inc;
	world_give(&w, a, &ev);
	world_run_dry(&w);
	assert_int_equal(record(a, b)->cause, GONE_EXPELLED);
	c = world_spawn(&w, 2);
	world_run_dry(&w);
	assert_int_equal(member_id(record(a, c)), 2 | 1 << INSTANCE_SHIFT);
	assert_true(a->started < membership_table(a->m)->generation);
	w.no_proofs = false;
	world_run_dry(&w);
	assert_int_equal(a->started, membership_table(a->m)->generation);
	assert_null(b->m);
}

static void test_big_node_id(void **state)
{
	struct wproc *a, *b;

	w.node_base = NODE_ID_SMALL_MAX;
	a = world_spawn(&w, 1);
	world_run_dry(&w);
	assert_true(a->admitted);
	b = world_spawn(&w, 1);
	b->was_disturbed = true;
	world_run_dry(&w);
	assert_false(b->alive);
	assert_int_equal(w.out[OUT_NODE_ID], 1);
	assert_int_equal(live_count(a), 1);
}

static void test_left_needs_no_proof(void **state)
{
	struct wproc *a = world_spawn(&w, 1), *b = world_spawn(&w, 2);
	struct member_event ev = { .kind = MEV_LEAVE };

	w.no_proofs = true;
	world_run_dry(&w);
	b->leaving = true;
	world_give(&w, b, &ev);
	world_run_dry(&w);
	assert_int_equal(w.out[OUT_LEFT], 1);
	assert_int_equal(live_count(a), 1);
	assert_int_equal(a->started, membership_table(a->m)->generation);
}

/* A minority decides nothing; healed, it finds that others did. */
static void test_minority(void **state)
{
	static const unsigned cut[NODES_MAX] = { 0, 0, 1 };
	struct wproc *a = world_spawn(&w, 1), *b = world_spawn(&w, 2);
	struct wproc *c = world_spawn(&w, 3);
	uint64_t generation;

	world_run_dry(&w);
	w.no_proofs = true;
	generation = membership_table(c->m)->generation;
	world_partition(&w, cut);
	world_run_dry(&w);
	assert_int_equal(record(a, c)->cause, GONE_HOST);
	assert_int_equal(live_count(b), 2);
	assert_int_equal(membership_table(c->m)->generation, generation);
	assert_false(membership_settled(c->m));
	assert_false(c->out);
	world_heal(&w);
	world_run_dry(&w);
	assert_int_equal(w.out[OUT_EXPELLED] + w.out[OUT_GONE], 1);
	assert_int_equal(live_count(a), 2);
}

/* Nobody had quorum: nothing has happened to anybody. */
static void test_even_split(void **state)
{
	static const unsigned cut[NODES_MAX] = { 0, 1, 2 };
	struct wproc *p[3];
	uint64_t generation, started;

	for (unsigned i = 0; i < 3; i++)
		p[i] = world_spawn(&w, i + 1);
	world_run_dry(&w);
	generation = membership_table(p[0]->m)->generation;
	started = p[0]->started;
	world_partition(&w, cut);
	world_run_dry(&w);
	world_heal(&w);
	world_run_dry(&w);
	for (unsigned i = 0; i < 3; i++) {
		assert_true(membership_settled(p[i]->m));
		assert_int_equal(membership_table(p[i]->m)->generation,
				 generation);
		assert_int_equal(p[i]->started, started);
	}
	assert_int_equal(w.back, 6);
	assert_int_equal(w.gone, 0);
}

/* A stopped process is reported by nobody, but holds up a change. */
static void test_silent_one_is_expelled(void **state)
{
	struct wproc *a = world_spawn(&w, 1), *b = world_spawn(&w, 2), *c;

	world_run_dry(&w);
	freeze(b);
	c = world_spawn(&w, 3);
	for (unsigned i = 0; i < 500; i++)
		world_step(&w);
	assert_false(membership_settled(a->m));
	assert_false(c->admitted);
	world_run_dry(&w);
	assert_true(c->admitted);
	assert_int_equal(live_count(a), 2);
}

/* Another major version finds the group and is refused, by name. */
static void test_other_version(void **state)
{
	struct wproc *a = world_spawn(&w, 1), *b;

	world_run_dry(&w);
	w.alien = true;
	b = world_spawn(&w, 2);
	w.alien = false;
	b->was_disturbed = true;
	world_run_dry(&w);
	assert_int_equal(w.out[OUT_VERSION], 1);
	assert_int_equal(live_count(a), 1);
	assert_true(membership_settled(a->m));
}

static void spawn_three(struct wproc **p)
{
	for (unsigned i = 0; i < 3; i++)
		p[i] = world_spawn(&w, i + 1);
	world_run_dry(&w);
}

/* Of two that do not reach each other and are both alive, the higher goes. */
static void test_link_of_two(void **state)
{
	struct wproc *p[3];

	spawn_three(p);
	world_link(&w, p[0], p[1], true);
	world_link(&w, p[1], p[0], true);
	world_run_dry(&w);
	assert_true(p[0]->alive);
	assert_false(p[1]->alive);
	assert_int_equal(w.out[OUT_EXPELLED], 1);
	assert_int_equal(live_count(p[2]), 2);
	assert_int_equal(p[2]->started, membership_table(p[2]->m)->generation);
}

/* The one with more broken links goes, though its id is the lowest. */
static void test_link_connectivity(void **state)
{
	struct wproc *p[3];

	spawn_three(p);
	world_link(&w, p[1], p[0], true);
	world_link(&w, p[2], p[0], true);
	world_run_dry(&w);
	assert_false(p[0]->alive);
	assert_true(p[1]->alive && p[2]->alive);
	assert_int_equal(w.out[OUT_EXPELLED], 1);
}

/* One that hangs goes, though the other's id is higher. */
static void test_link_hanging(void **state)
{
	struct wproc *p[3];

	spawn_three(p);
	freeze(p[0]);
	world_link(&w, p[1], p[0], true);
	world_run_dry(&w);
	assert_int_equal(live_count(p[2]), 2);
	assert_false(p[0]->alive);
	assert_true(p[1]->alive);
}

/* A link that comes back in time costs nobody anything. */
static void test_link_mended(void **state)
{
	struct wproc *p[3];

	spawn_three(p);
	world_link(&w, p[0], p[1], true);
	world_link(&w, p[0], p[1], false);
	world_run_dry(&w);
	assert_int_equal(live_count(p[2]), 3);
	assert_int_equal(w.judged, 0);
}

/* A change of the group in between: the reports are made again, one joins. */
static void test_link_across_views(void **state)
{
	struct wproc *p[3], *late;

	spawn_three(p);
	world_link(&w, p[2], p[1], true);
	for (unsigned i = 0; i < 100; i++)
		world_step(&w); /* all have heard it, in this view */
	late = world_spawn(&w, 1);
	world_run_dry(&w);
	assert_false(p[2]->alive);
	assert_int_equal(live_count(late), 3);
	assert_int_equal(live_count(p[0]), 3);
}

/* The start-up rule is met once for a group, also for those who come later. */
static void test_cleared(void **state)
{
	struct wproc *a = world_spawn(&w, 1), *b;
	struct member_event ev = { .kind = MEV_CLEARED };

	world_run_dry(&w);
	assert_false(membership_table(a->m)->cleared);
	world_give(&w, a, &ev);
	world_run_dry(&w);
	assert_true(membership_table(a->m)->cleared);
	b = world_spawn(&w, 2);
	world_run_dry(&w);
	assert_true(b->cleared && membership_table(b->m)->cleared);
	world_crash(&w, a);
	world_run_dry(&w);
	world_crash(&w, b);
	/* A group that begins anew knows nothing. */
	a = world_spawn(&w, 1);
	world_run_dry(&w);
	assert_false(membership_table(a->m)->cleared);
}

#define STORY(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		STORY(test_first_member),
		STORY(test_instances),
		STORY(test_unproved_keeps_instance),
		STORY(test_big_node_id),
		STORY(test_left_needs_no_proof),
		STORY(test_minority),
		STORY(test_even_split),
		STORY(test_silent_one_is_expelled),
		STORY(test_other_version),
		STORY(test_link_of_two),
		STORY(test_link_connectivity),
		STORY(test_link_hanging),
		STORY(test_link_mended),
		STORY(test_link_across_views),
		STORY(test_cleared),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
