/* SPDX-License-Identifier: GPL-2.0-or-later */
/* test_slots.c - slots, and those held for the gone (docs/spec/dlm.md 5.11) */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <errno.h>
#include <string.h>
#include <cmocka.h>

#include "ring.h"

static const struct dlm_running *last(const struct ring *r, int node,
				      enum dlm_update_kind kind)
{
	for (unsigned i = r->told_count; i-- > 0;) {
		if (r->told[i].node == node && r->told[i].kind == kind)
			return &r->told[i].running;
	}
	return NULL;
}

static void recover(struct ring *r)
{
	r->told_count = 0;
	ring_start(r);
	ring_settle(r);
}

static unsigned slot_of(const struct ring *r, int node)
{
	const struct dlm_running *running = last(r, node, DLM_UP_RUNNING);

	assert_non_null(running);
	return running->slot;
}

static int free_slot(struct ring *r, int node, unsigned slot,
		     uint64_t incarnation)
{
	struct dlm_event event = { .kind = DLM_EV_SLOT_FREE };

	event.slot_free.slot = (uint16_t)slot;
	event.slot_free.incarnation = incarnation;
	return ring_step(r, node, &event);
}

/* The node dies; it comes back in the same change. */
static void replace(struct ring *r, int node)
{
	ring_stop(r);
	ring_kill(r, node);
	ring_boot(r, node);
	recover(r);
}

static void test_reused_at_once_if_not_held(void **state)
{
	struct ring *r = ring_new(3);

	(void)state;
	replace(r, 2);
	assert_int_equal(slot_of(r, 1), 1);
	assert_int_equal(slot_of(r, 2), 2);
	assert_int_equal(slot_of(r, 3), 3);
	assert_int_equal(free_slot(r, 1, 2, 2), -ENOENT);
	ring_free(r);
}

/* Until somebody, not the assigner, says that its journal is clean. */
static void test_held_until_freed(void **state)
{
	struct ring *r = ring_new_holding(3);
	uint64_t gone = r->incarnation[2];

	(void)state;
	replace(r, 2);
	assert_int_equal(slot_of(r, 2), 4);
	assert_int_equal(last(r, 1, DLM_UP_SLOT_GONE)->slot, 2);
	assert_int_equal(last(r, 1, DLM_UP_SLOT_GONE)->nodeid, 2);
	assert_true(last(r, 3, DLM_UP_SLOT_GONE)->incarnation == gone);
	assert_int_equal(free_slot(r, 3, 2, gone + 1), -ENOENT);
	replace(r, 2);
	assert_int_equal(slot_of(r, 2), 5);
	assert_int_equal(free_slot(r, 3, 2, gone), 0);
	replace(r, 2);
	assert_int_equal(slot_of(r, 2), 2);
	assert_int_equal(slot_of(r, 1), 1);
	assert_int_equal(slot_of(r, 3), 3);
	ring_free(r);
}

/* A clean leaver: freed as soon as it is known to be gone. */
static void test_freed_before_the_assignment(void **state)
{
	struct ring *r = ring_new_holding(3);
	uint64_t gone = r->incarnation[2];

	(void)state;
	ring_stop(r);
	ring_kill(r, 2);
	ring_boot(r, 2);
	r->told_count = 0;
	ring_start(r);
	assert_int_equal(free_slot(r, 1, 2, gone), 0);
	assert_int_equal(free_slot(r, 3, 2, gone), 0);
	ring_settle(r);
	assert_int_equal(slot_of(r, 2), 2);
	ring_free(r);
}

/* Who comes later knows the dirty journals when all others are gone. */
static void test_a_new_member_remembers(void **state)
{
	struct ring *r = ring_new_holding(2);
	uint64_t gone = r->incarnation[2];

	(void)state;
	ring_stop(r);
	ring_kill(r, 2);
	ring_boot(r, 3);
	recover(r);
	assert_int_equal(slot_of(r, 3), 3);
	assert_int_equal(last(r, 3, DLM_UP_SLOT_GONE)->nodeid, 0);
	assert_int_equal(last(r, 3, DLM_UP_SLOT_GONE)->slot, 2);
	assert_true(last(r, 3, DLM_UP_SLOT_GONE)->incarnation == gone);
	ring_stop(r);
	ring_kill(r, 1);
	ring_boot(r, 2);
	recover(r);
	assert_int_equal(slot_of(r, 2), 4);
	assert_int_equal(free_slot(r, 3, 2, gone), 0);
	ring_boot(r, 1);
	ring_stop(r);
	recover(r);
	assert_int_equal(slot_of(r, 1), 2);
	assert_int_equal(slot_of(r, 3), 3);
	ring_free(r);
}

/* The slot had a new owner, who is gone as well: old news frees nothing. */
static void test_freeing_names_the_owner(void **state)
{
	struct ring *r = ring_new_holding(2);
	uint64_t first = r->incarnation[2], second;

	(void)state;
	ring_stop(r);
	ring_kill(r, 2);
	recover(r);
	assert_int_equal(free_slot(r, 1, 2, first), 0);
	ring_stop(r);
	ring_boot(r, 2);
	recover(r);
	assert_int_equal(slot_of(r, 2), 2);
	second = r->incarnation[2];
	replace(r, 2);
	assert_int_equal(slot_of(r, 2), 3);
	assert_int_equal(free_slot(r, 1, 2, first), -ENOENT);
	assert_int_equal(free_slot(r, 1, 2, second), 0);
	ring_free(r);
}

/* What was said while stopped, or in a recovery that was aborted, counts. */
static void test_freed_while_stopped(void **state)
{
	struct ring *r = ring_new_holding(3);
	uint64_t gone = r->incarnation[3];

	(void)state;
	ring_stop(r);
	ring_kill(r, 3);
	ring_start(r);
	for (unsigned i = 0; i < 3; i++) {
		ring_deliver(r, 1, 2);
		ring_deliver(r, 2, 1);
	}
	ring_stop(r);
	assert_int_equal(free_slot(r, 2, 3, gone), 0);
	ring_boot(r, 3);
	recover(r);
	assert_int_equal(slot_of(r, 3), 3);
	ring_free(r);
}

/* A table has an end: who finds it full gets none, and the others keep theirs.
 */
static void test_full_table(void **state)
{
	struct ring *r = ring_new_holding(2);
	struct dlm_slots slots;
	unsigned n = 0;

	(void)state;
	do {
		assert_true(++n < 2 * DLM_SLOTS_MAX);
		replace(r, 2);
	} while (slot_of(r, 2));
	assert_int_equal(n, DLM_SLOTS_MAX - 1);
	assert_int_equal(slot_of(r, 1), 1);
	dlm_slots_view(r->engine[2], &slots);
	assert_int_equal(slots.count, DLM_SLOTS_MAX);
	ring_free(r);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_reused_at_once_if_not_held),
		cmocka_unit_test(test_held_until_freed),
		cmocka_unit_test(test_freed_before_the_assignment),
		cmocka_unit_test(test_a_new_member_remembers),
		cmocka_unit_test(test_freeing_names_the_owner),
		cmocka_unit_test(test_freed_while_stopped),
		cmocka_unit_test(test_full_table),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
