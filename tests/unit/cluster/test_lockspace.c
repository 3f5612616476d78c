/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * test_lockspace.c - locks as a program sees them: grants, callbacks, what
 * waits and why, changes of members, the end.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include <errno.h>
#include <poll.h>

#include "lsworld.h"

#define MS 1000000u

static bool fd_is_readable(struct ugdlm *ls)
{
	struct pollfd fd = { ugdlm_fd(ls), POLLIN, 0 };

	return poll(&fd, 1, 0) > 0;
}

/* Nothing runs on the stack of the call; poll() tells that there is something
 */
static void test_callbacks_are_dispatched(void **state)
{
	struct world *w = world_new(1, false);
	struct test_lock lock = { 0 };

	assert_false(fd_is_readable(w->node[1].ls));
	assert_int_equal(lock_request(w, 1, &lock, "a", UGDLM_EX, 0), 0);
	assert_int_equal(lock.lksb.status, UGDLM_INPROGRESS);
	assert_int_equal(lock.asts, 0);
	assert_true(fd_is_readable(w->node[1].ls));
	assert_int_equal(ugdlm_dispatch(w->node[1].ls, 10), 1);
	lock_expect(&lock, UGDLM_OK, UGDLM_EX);
	assert_false(fd_is_readable(w->node[1].ls));

	assert_int_equal(lock_unlock(&lock, 0), 0);
	assert_int_equal(ugdlm_dispatch(w->node[1].ls, 10), 1);
	lock_expect(&lock, UGDLM_UNLOCKED, UGDLM_IV);
	assert_int_equal(lock_unlock(&lock, 0), -ENOENT);
	world_free(w);
}

static void no_ast(void *ctx, struct ugdlm_lksb *lksb)
{
	fail_msg("an ast of what had ended inline");
}

static void test_inline(void **state)
{
	struct world *w = world_new(1, false);
	struct ugdlm_lksb lksb = { 0 }, other = { 0 };
	struct ugdlm_request req = {
		.mode = UGDLM_PR,
		.name = "a",
		.name_len = 1,
		.lksb = &lksb,
		.ast = no_ast,
		.inline_ok = true,
	};

	assert_int_equal(ugdlm_lock(w->node[1].ls, &req), 1);
	assert_int_equal(lksb.status, UGDLM_OK);
	assert_int_equal(lksb.mode, UGDLM_PR);
	req.mode = UGDLM_EX;
	req.lksb = &other;
	req.flags = UGDLM_NOQUEUE;
	assert_int_equal(ugdlm_lock(w->node[1].ls, &req), 1);
	assert_int_equal(other.status, UGDLM_NOTQUEUED);
	assert_int_equal(other.mode, UGDLM_IV);
	req.lksb = &lksb;
	req.flags = UGDLM_CONVERT;
	assert_int_equal(ugdlm_lock(w->node[1].ls, &req), 1);
	assert_int_equal(lksb.mode, UGDLM_EX);
	assert_int_equal(ugdlm_unlock(w->node[1].ls, &lksb, 0, true), 1);
	assert_int_equal(lksb.status, UGDLM_UNLOCKED);
	assert_false(fd_is_readable(w->node[1].ls));
	world_free(w);
}

static void test_two_nodes(void **state)
{
	struct world *w = world_new(2, false);
	struct test_lock a = { 0 }, b = { 0 };

	lock_request(w, 1, &a, "x", UGDLM_EX, 0);
	world_settle(w);
	lock_expect(&a, UGDLM_OK, UGDLM_EX);
	lock_request(w, 2, &b, "x", UGDLM_EX, UGDLM_NOQUEUE);
	world_settle(w);
	lock_expect(&b, UGDLM_NOTQUEUED, UGDLM_IV);
	assert_int_equal(a.basts, 0);

	lock_request(w, 2, &b, "x", UGDLM_PR, 0);
	world_settle(w);
	assert_int_equal(b.lksb.status, UGDLM_INPROGRESS);
	assert_int_equal(a.basts, 1);
	assert_int_equal(a.blocked, UGDLM_PR);
	lock_convert(&a, UGDLM_PR, 0);
	world_settle(w);
	lock_expect(&a, UGDLM_OK, UGDLM_PR);
	lock_expect(&b, UGDLM_OK, UGDLM_PR);
	world_free(w);
}

/*
 * With direct, what a message brings is told when that has been read, without a
 * dispatcher; an event that waits goes before it.
 */
static void test_direct(void **state)
{
	struct world *w = world_new(2, false);
	const char *name = world_name(2, 2);
	struct test_lock lock = { 0 }, other = { 0 };

	world_kill(w, 1);
	world_gone(w, 1, GONE_PROCESS);
	world_prove(w, 1, PROOF_REAPED);
	w->direct = true;
	world_join(w, 1);
	world_settle(w);
	lock_request(w, 2, &other, name, UGDLM_NL, 0);
	world_settle(w);

	assert_int_equal(lock_request(w, 1, &lock, name, UGDLM_EX, 0), 0);
	while (world_deliver(w, 1, 2) || world_deliver(w, 2, 1))
		;
	assert_int_equal(lock.asts, 1);
	lock_expect(&lock, UGDLM_OK, UGDLM_EX);
	assert_false(fd_is_readable(w->node[1].ls));

	/* Blocking is told in the same way; to the other one it is not. */
	lock_convert(&other, UGDLM_PR, 0);
	while (world_deliver(w, 1, 2) || world_deliver(w, 2, 1))
		;
	assert_int_equal(lock.basts, 1);
	lock_convert(&lock, UGDLM_NL, 0);
	while (world_deliver(w, 1, 2) || world_deliver(w, 2, 1))
		;
	assert_int_equal(other.asts, 1);
	world_dispatch(w, 2);
	lock_expect(&other, UGDLM_OK, UGDLM_PR);

	/* What a call of the program itself ends is for a dispatcher. */
	assert_int_equal(lock.asts, 1);
	world_dispatch(w, 1);
	assert_int_equal(lock.asts, 2);

	world_cleared(w, 1);
	assert_int_equal(lock_convert(&lock, UGDLM_PR, 0), 0);
	while (world_deliver(w, 1, 2) || world_deliver(w, 2, 1))
		;
	assert_int_equal(lock.lksb.status, UGDLM_INPROGRESS);
	assert_true(fd_is_readable(w->node[1].ls));
	world_dispatch(w, 1);
	lock_expect(&lock, UGDLM_OK, UGDLM_PR);
	world_free(w);
}

/*
 * The links' thread reads of a newcomer with another key between messages of a
 * member, which have taken the lock: a member that has run goes on.
 */
static void test_refused_among_messages(void **state)
{
	struct world *w = world_new(2, false);
	const char *name = world_name(2, 2);
	struct test_lock lock = { 0 };

	w->refusing = true;
	lock_request(w, 1, &lock, name, UGDLM_EX, 0);
	world_settle(w);
	lock_expect(&lock, UGDLM_OK, UGDLM_EX);
	world_free(w);
}

struct asker {
	struct world *w;
	struct test_lock again;
	struct ugdlm_lksb lksb;
	const char *name;
};

static void ask_again(void *ctx, struct ugdlm_lksb *lksb)
{
	struct asker *a = ctx;

	lock_request(a->w, 1, &a->again, a->name, UGDLM_PR, 0);
}

/* What callbacks ask for goes out in one piece. */
static void test_callbacks_push_once(void **state)
{
	struct world *w = world_new(2, false);
	const char *name = world_name(2, 2);
	struct test_lock master = { 0 };
	struct asker askers[5];
	unsigned before;

	lock_request(w, 2, &master, name, UGDLM_NL, 0);
	world_settle(w);

	for (unsigned i = 0; i < 5; i++) {
		struct asker *a = &askers[i];
		struct ugdlm_request req = {
			.mode = UGDLM_PR,
			.name = name,
			.name_len = strlen(name),
			.lksb = &a->lksb,
			.ast = ask_again,
			.ctx = a,
		};

		*a = (struct asker){ .w = w, .name = name };
		assert_int_equal(ugdlm_lock(w->node[1].ls, &req), 0);
	}
	world_move(w);
	before = w->node[1].pushes;
	assert_int_equal(world_dispatch(w, 1), 5);
	assert_int_equal(w->node[1].pushes, before + 1);
	world_settle(w);
	for (unsigned i = 0; i < 5; i++)
		lock_expect(&askers[i].again, UGDLM_OK, UGDLM_PR);
	world_free(w);
}

static void test_value_block(void **state)
{
	struct world *w = world_new(2, false);
	struct test_lock a = { 0 }, b = { 0 };

	lock_request(w, 1, &a, "x", UGDLM_EX, UGDLM_VALBLK);
	world_settle(w);
	memcpy(a.lksb.lvb, "a value", 8);
	lock_convert(&a, UGDLM_NL, UGDLM_VALBLK);
	lock_request(w, 2, &b, "x", UGDLM_PR, UGDLM_VALBLK);
	world_settle(w);
	lock_expect(&b, UGDLM_OK, UGDLM_PR);
	assert_true(b.lksb.lvb_valid);
	assert_string_equal((char *)b.lksb.lvb, "a value");
	assert_false(b.lksb.sbflags & UGDLM_SB_VALNOTVALID);
	world_free(w);
}

static void test_bad_arguments(void **state)
{
	struct world *w = world_new(1, false);
	struct test_lock lock = { 0 };
	char name[UGDLM_NAME_MAX + 2];

	memset(name, 'n', sizeof(name) - 1);
	name[sizeof(name) - 1] = '\0';
	assert_int_equal(lock_request(w, 1, &lock, name, UGDLM_EX, 0), -EINVAL);
	assert_int_equal(lock_request(w, 1, &lock, "a", 6, 0), -EINVAL);
	assert_int_equal(lock_request(w, 1, &lock, "a", UGDLM_EX, UGDLM_CANCEL),
			 -EINVAL);
	assert_int_equal(lock_request(w, 1, &lock, "a", UGDLM_EX, UGDLM_QUECVT),
			 -EINVAL);
	assert_int_equal(lock_request(w, 1, &lock, "a", UGDLM_EX, 0x80000000u),
			 -EINVAL);
	assert_int_equal(
		lock_request(w, 1, &lock, "a", UGDLM_EX, UGDLM_EXPEDITE),
		-EINVAL);
	assert_int_equal(lock_request(w, 1, &lock, "a", UGDLM_EX, UGDLM_ORPHAN),
			 -ENOENT);
	assert_int_equal(lock_convert(&lock, UGDLM_EX, 0), -ENOENT);
	assert_int_equal(lock_unlock(&lock, UGDLM_NOQUEUE), -EINVAL);

	lock_request(w, 1, &lock, "a", UGDLM_PR, 0);
	assert_int_equal(lock_convert(&lock, UGDLM_EX, 0), -EBUSY);
	assert_int_equal(lock_unlock(&lock, 0), -EBUSY);
	world_settle(w);
	assert_int_equal(lock_convert(&lock, UGDLM_NL, UGDLM_QUECVT), -EINVAL);
	lock_expect(&lock, UGDLM_OK, UGDLM_PR);
	world_free(w);
}

static void test_cancel_and_force(void **state)
{
	struct world *w = world_new(2, false);
	struct test_lock a = { 0 }, b = { 0 }, c = { 0 };

	lock_request(w, 1, &a, "x", UGDLM_EX, 0);
	world_settle(w);
	lock_request(w, 2, &b, "x", UGDLM_EX, 0);
	world_settle(w);
	assert_int_equal(lock_unlock(&b, 0), -EBUSY);
	assert_int_equal(lock_unlock(&b, UGDLM_CANCEL), 0);
	world_settle(w);
	lock_expect(&b, UGDLM_CANCELLED, UGDLM_IV);
	assert_int_equal(b.asts, 1);

	lock_request(w, 2, &c, "x", UGDLM_PR, 0);
	world_settle(w);
	assert_int_equal(lock_unlock(&c, UGDLM_FORCEUNLOCK), 0);
	world_settle(w);
	lock_expect(&c, UGDLM_UNLOCKED, UGDLM_IV);
	assert_int_equal(c.asts, 1);
	/* A cancel with nothing to cancel says nothing. */
	assert_int_equal(lock_unlock(&a, UGDLM_CANCEL), 0);
	world_settle(w);
	assert_int_equal(a.asts, 1);
	world_free(w);
}

/* Members change: calls wait in the library, and go on in order. */
static void test_join(void **state)
{
	struct world *w = world_new(2, false);
	struct test_lock a = { 0 }, b = { 0 };

	lock_request(w, 1, &a, "x", UGDLM_EX, 0);
	world_settle(w);
	world_log(w, 1);
	world_join(w, 3);
	assert_int_equal(lock_request(w, 2, &b, "x", UGDLM_EX, 0), 0);
	assert_int_equal(lock_unlock(&a, 0), 0);
	world_settle(w);
	lock_expect(&a, UGDLM_UNLOCKED, UGDLM_IV);
	lock_expect(&b, UGDLM_OK, UGDLM_EX);
	assert_string_equal(world_log(w, 1), "prepare;running slot 1;");
	assert_string_equal(world_log(w, 3), "quorate 1;running slot 3;");
	world_free(w);
}

/* The dead holder's lock stands until its death is proved. */
static void test_death(void **state)
{
	struct world *w = world_new(3, true);
	const char *name = world_name(3, 1);
	struct test_lock a = { 0 }, b = { 0 }, c = { 0 };

	lock_request(w, 1, &b, name, UGDLM_NL, UGDLM_VALBLK);
	lock_request(w, 3, &a, name, UGDLM_EX, UGDLM_VALBLK);
	world_settle(w);
	lock_expect(&a, UGDLM_OK, UGDLM_EX);
	lock_request(w, 2, &c, name, UGDLM_PR, UGDLM_VALBLK);
	world_settle(w);
	world_log(w, 1);

	world_kill(w, 3);
	world_missing(w, 3);
	world_settle(w);
	assert_string_equal(world_log(w, 1), "prepare;");
	world_gone(w, 3, GONE_PROCESS);
	world_settle(w);
	assert_int_equal(c.lksb.status, UGDLM_INPROGRESS);
	world_prove(w, 3, PROOF_REAPED);
	world_settle(w);
	assert_string_equal(world_log(w, 1),
			    "gone 3 slot 3 died;running slot 1;");
	lock_expect(&c, UGDLM_OK, UGDLM_PR);
	assert_true(c.lksb.sbflags & UGDLM_SB_VALNOTVALID);

	/* Its slot is taken until somebody says that its journal is clean. */
	assert_true(ugdlm_slot_has_member(w->node[2].ls, 1));
	assert_true(ugdlm_slot_has_member(w->node[2].ls, 2));
	assert_false(ugdlm_slot_has_member(w->node[2].ls, 3));
	world_join(w, 3);
	world_settle(w);
	assert_non_null(strstr(world_log(w, 3), "running slot 4;"));
	assert_int_equal(ugdlm_slot_clean(w->node[2].ls, 3), 0);
	assert_int_equal(ugdlm_slot_clean(w->node[2].ls, 3), -ENOENT);
	world_join(w, 4);
	world_settle(w);
	assert_non_null(strstr(world_log(w, 4), "running slot 3;"));
	assert_true(ugdlm_slot_has_member(w->node[2].ls, 3));
	world_free(w);
}

/* Missed and back again, and nobody has decided anything. */
static void test_missing_and_back(void **state)
{
	struct world *w = world_new(2, false);
	struct test_lock a = { 0 }, b = { 0 };

	lock_request(w, 1, &a, "x", UGDLM_PR, 0);
	world_settle(w);
	world_missing(w, 2);
	lock_request(w, 1, &b, "y", UGDLM_EX, 0);
	world_settle(w);
	assert_int_equal(b.lksb.status, UGDLM_INPROGRESS);
	assert_string_equal(world_log(w, 1), "prepare;");
	world_back(w, 2);
	world_settle(w);
	lock_expect(&b, UGDLM_OK, UGDLM_EX);
	assert_string_equal(world_log(w, 1), "running slot 1;");
	world_free(w);
}

/* What is decided while the gate is closed is told after running(). */
static void test_gate(void **state)
{
	struct world *w = world_new(2, false);
	struct test_lock a = { 0 };

	lock_request(w, 1, &a, "x", UGDLM_EX, 0);
	world_move(w);
	world_missing(w, 2);
	assert_int_equal(world_dispatch(w, 1), 1);
	assert_string_equal(world_log(w, 1), "prepare;");
	assert_int_equal(a.asts, 0);
	assert_false(fd_is_readable(w->node[1].ls));
	world_back(w, 2);
	assert_true(fd_is_readable(w->node[1].ls));
	assert_int_equal(world_dispatch(w, 1), 2);
	assert_string_equal(world_log(w, 1), "running slot 1;");
	assert_int_equal(a.asts, 1);
	world_free(w);
}

/* Without the lease not even a lock that is mastered here is granted. */
static void test_lease(void **state)
{
	struct world *w = world_new(1, false);
	struct test_lock a = { 0 }, b = { 0 };

	lock_request(w, 1, &a, "x", UGDLM_PR, 0);
	world_settle(w);
	w->node[1].quorate = false; /* nobody says so */
	assert_int_equal(ugdlm_lease_ns(w->node[1].ls), 0);
	assert_int_equal(lock_request(w, 1, &b, "y", UGDLM_EX, 0), 0);
	assert_int_equal(lock_convert(&a, UGDLM_NL, 0), 0);
	world_settle(w);
	assert_string_equal(world_log(w, 1), "quorate 0;");
	assert_int_equal(b.asts, 0);
	assert_int_equal(a.asts, 1);
	world_quorum(w, 1, true);
	world_settle(w);
	assert_string_equal(world_log(w, 1), "quorate 1;");
	lock_expect(&a, UGDLM_OK, UGDLM_NL);
	lock_expect(&b, UGDLM_OK, UGDLM_EX);
	world_free(w);
}

/* Calls that wait in the library can be ended like any other. */
static void test_waiting_calls(void **state)
{
	struct world *w = world_new(1, false);
	struct test_lock l[6] = { 0 };

	for (unsigned i = 1; i < 6; i++)
		lock_request(w, 1, &l[i], "x", UGDLM_NL, 0);
	world_settle(w);
	w->node[1].quorate = false;
	lock_request(w, 1, &l[0], "x", UGDLM_EX, 0);
	assert_int_equal(lock_unlock(&l[0], 0), -EBUSY);
	assert_int_equal(lock_unlock(&l[0], UGDLM_CANCEL), 0);
	lock_convert(&l[1], UGDLM_EX, 0);
	assert_int_equal(lock_unlock(&l[1], UGDLM_CANCEL), 0);
	lock_convert(&l[2], UGDLM_EX, 0);
	assert_int_equal(lock_unlock(&l[2], UGDLM_FORCEUNLOCK), 0);
	assert_int_equal(lock_unlock(&l[2], UGDLM_FORCEUNLOCK), 0);
	lock_unlock(&l[3], 0);
	assert_int_equal(lock_unlock(&l[3], UGDLM_CANCEL), 0);
	assert_int_equal(lock_unlock(&l[3], UGDLM_FORCEUNLOCK), 0);
	lock_convert(&l[4], UGDLM_CR, UGDLM_TIMEOUT);
	lock_convert(&l[5], UGDLM_CR, 0);
	world_quorum(w, 1, true);
	world_settle(w);
	lock_expect(&l[0], UGDLM_CANCELLED, UGDLM_IV);
	lock_expect(&l[1], UGDLM_CANCELLED, UGDLM_NL);
	lock_expect(&l[2], UGDLM_UNLOCKED, UGDLM_IV);
	lock_expect(&l[3], UGDLM_UNLOCKED, UGDLM_IV);
	lock_expect(&l[4], UGDLM_OK, UGDLM_CR);
	lock_expect(&l[5], UGDLM_OK, UGDLM_CR);
	assert_int_equal(l[0].asts, 1);
	for (unsigned i = 1; i < 6; i++)
		assert_int_equal(l[i].asts, 2);
	world_free(w);
}

static void test_timeout(void **state)
{
	struct world *w = world_new(2, false);
	struct test_lock a = { 0 }, b = { 0 };

	lock_request(w, 1, &a, "x", UGDLM_EX, 0);
	world_settle(w);
	lock_request(w, 2, &b, "x", UGDLM_EX, UGDLM_TIMEOUT);
	world_tick(w, 1);
	world_deliver(w, 2, 1);
	world_tick(w, 900 * MS);
	world_dispatch(w, 2);
	assert_int_equal(b.asts, 0);
	/* Time without the lease does not count. */
	world_quorum(w, 2, false);
	world_tick(w, 5000 * MS);
	world_quorum(w, 2, true);
	world_tick(w, 50 * MS);
	world_dispatch(w, 2);
	assert_int_equal(b.lksb.status, UGDLM_INPROGRESS);
	world_tick(w, 60 * MS);
	world_settle(w);
	lock_expect(&b, UGDLM_TIMEDOUT, UGDLM_IV);
	assert_int_equal(b.asts, 1);
	lock_expect(&a, UGDLM_OK, UGDLM_EX);
	world_free(w);
}

/* With a full queue new requests wait; what makes others go on does not. */
static void test_back_pressure(void **state)
{
	struct world *w = world_new(2, false);
	const char *name = world_name(2, 2);
	struct test_lock a = { 0 }, b = { 0 }, c = { 0 };

	lock_request(w, 2, &a, name, UGDLM_NL, 0);
	world_settle(w);
	lock_request(w, 1, &b, name, UGDLM_EX, 0);
	world_settle(w);
	lock_expect(&b, UGDLM_OK, UGDLM_EX);
	w->node[1].full = true;
	lock_convert(&b, UGDLM_PR, 0); /* its message finds that it is full */
	lock_request(w, 1, &c, name, UGDLM_PR, 0);
	world_settle(w);
	lock_expect(&b, UGDLM_OK, UGDLM_PR);
	assert_int_equal(c.lksb.status, UGDLM_INPROGRESS);
	lock_unlock(&b, 0);
	world_settle(w);
	lock_expect(&b, UGDLM_UNLOCKED, UGDLM_IV);
	assert_int_equal(c.lksb.status, UGDLM_INPROGRESS);
	world_room(w, 1);
	world_settle(w);
	lock_expect(&c, UGDLM_OK, UGDLM_PR);
	world_free(w);
}

/* Out for good: every operation ends, once, and the event comes last. */
static void test_lost(void **state)
{
	struct world *w = world_new(2, false);
	struct test_lock idle = { 0 }, queued = { 0 }, untold = { 0 };
	struct test_lock waits = { 0 }, later = { 0 };
	const char *log;

	lock_request(w, 2, &idle, "x", UGDLM_EX, 0);
	world_settle(w);
	lock_request(w, 2, &queued, "x", UGDLM_EX, 0);
	lock_request(w, 2, &untold, "y", UGDLM_EX, 0);
	world_move(w);
	w->node[2].quorate = false;
	lock_request(w, 2, &waits, "z", UGDLM_EX, 0);
	world_out(w, 2, OUT_EXPELLED);
	world_cleared(w, 2); /* nothing comes after the end */
	assert_int_equal(lock_request(w, 2, &later, "x", UGDLM_NL, 0),
			 -ESHUTDOWN);
	assert_int_equal(lock_unlock(&idle, 0), -ESHUTDOWN);
	world_settle(w);
	lock_expect(&queued, UGDLM_LOST, UGDLM_IV);
	lock_expect(&untold, UGDLM_LOST, UGDLM_IV);
	lock_expect(&waits, UGDLM_LOST, UGDLM_IV);
	assert_int_equal(queued.asts + untold.asts + waits.asts, 3);
	assert_int_equal(idle.asts, 1);
	log = strstr(world_log(w, 2), "lost: the other members have expelled");
	assert_non_null(log);
	assert_string_equal(strchr(log, ';'), ";");
	assert_int_equal(ugdlm_lease_ns(w->node[2].ls), 0);
	assert_int_equal(ugdlm_leave(w->node[2].ls, false), -ESHUTDOWN);
	w->node[2].ls = NULL;
	world_free(w);
}

/* A conversion downwards has no reply; what it wrote must not be lost. */
static void test_leave_clean(void **state)
{
	struct world *w = world_new(2, true);
	const char *name = world_name(2, 1);
	struct test_lock a = { 0 }, b = { 0 };

	lock_request(w, 1, &b, name, UGDLM_NL, UGDLM_VALBLK);
	lock_request(w, 2, &a, name, UGDLM_EX, UGDLM_VALBLK);
	world_settle(w);
	memcpy(a.lksb.lvb, "last word", 10);
	lock_convert(&a, UGDLM_NL, UGDLM_VALBLK);
	world_log(w, 1);
	assert_int_equal(ugdlm_leave(w->node[2].ls, false), 0);
	world_settle(w);
	assert_string_equal(world_log(w, 1),
			    "prepare;gone 2 slot 2 clean;running slot 1;");
	lock_convert(&b, UGDLM_PR, UGDLM_VALBLK);
	world_settle(w);
	assert_string_equal((char *)b.lksb.lvb, "last word");
	assert_false(b.lksb.sbflags & UGDLM_SB_VALNOTVALID);
	world_join(w, 3);
	world_settle(w);
	assert_non_null(strstr(world_log(w, 3), "running slot 2;"));
	world_free(w);
}

static void test_leave_dirty(void **state)
{
	struct world *w = world_new(2, true);
	struct test_lock a = { 0 }, b = { 0 };

	lock_request(w, 2, &a, "x", UGDLM_EX, 0);
	lock_request(w, 1, &b, "x", UGDLM_EX, 0);
	world_settle(w);
	world_log(w, 1);
	assert_int_equal(ugdlm_leave(w->node[2].ls, true), 0);
	world_settle(w);
	assert_string_equal(world_log(w, 1),
			    "prepare;gone 2 slot 2 dirty;running slot 1;");
	lock_expect(&b, UGDLM_OK, UGDLM_EX);
	world_join(w, 3);
	world_settle(w);
	/* It has never met the one whose slot is taken. */
	assert_string_equal(world_log(w, 3),
			    "quorate 1;gone 0 slot 2 died;running slot 3;");
	world_free(w);
}

/* Admitted, but of no use: it leaves again, and holds nobody up. */
static void test_no_life_lock(void **state)
{
	struct world *w = world_new(1, true);

	w->life_lock_err = -EBUSY;
	world_join(w, 2);
	assert_int_equal(w->node[2].ls->join_err, -EBUSY);
	assert_int_equal(ugdlm_leave(w->node[2].ls, false), 0);
	world_settle(w);
	assert_string_equal(world_log(w, 1), "prepare;running slot 1;");
	world_free(w);
}

/* Let in when it has given up: it says that it has left. */
static void test_admitted_too_late(void **state)
{
	struct world *w = world_new(1, true);

	world_ask(w, 2);
	w->node[2].admitted_at_close = true;
	assert_int_equal(ugdlm_leave(w->node[2].ls, false), 0);
	w->node[2].ls = NULL;
	assert_int_equal(w->node[2].said_left, 1);
	world_free(w);
}

static void test_bad_ports(void **state)
{
	struct ugdlm_config config = { .name = WORLD_NAME, .port_last = 9 };
	struct ls_env env = { 0 };
	struct ugdlm *ls;
	char why[256];

	assert_int_equal(ls_new(&config, &env, &ls, why, sizeof(why)), -EINVAL);
	assert_string_equal(why, "ports 0 to 9: expected 1 or higher");
}

static void test_looking_inside(void **state)
{
	struct world *w = world_new(2, false);
	struct test_lock a = { 0 };
	char *text;

	lock_request(w, 1, &a, "na%\x01me", UGDLM_EX, 0);
	world_settle(w);
	assert_int_equal(ugdlm_status_json(w->node[1].ls, &text), 0);
	assert_non_null(strstr(text, "\"state\": \"running\""));
	assert_non_null(strstr(text, "\"name\": \"node2\""));
	assert_non_null(strstr(text, "a proof of its death"));
	free(text);
	assert_int_equal(ugdlm_locks_json(w->node[1].ls, &text), 0);
	assert_non_null(strstr(text, "\"na%25%01me\""));
	assert_non_null(strstr(text, "\"granted\": \"EX\""));
	free(text);
	assert_int_equal(ugdlm_trace_text(w->node[1].ls, &text), 0);
	assert_non_null(strstr(text, "request"));
	assert_non_null(strstr(text, "recovery"));
	free(text);
	world_free(w);
}

/* Each is told under its own resource. */
static void test_many_locks(void **state)
{
	static struct test_lock locks[600];
	struct world *w = world_new(1, false);
	unsigned found = 0;
	char *text, *at, name[16];

	memset(locks, 0, sizeof(locks));
	for (unsigned i = 0; i < 600; i++) {
		snprintf(name, sizeof(name), "n%u", i / 3);
		lock_request(w, 1, &locks[i], name, UGDLM_CR, 0);
	}
	world_settle(w);
	assert_int_equal(ugdlm_locks_json(w->node[1].ls, &text), 0);
	for (at = text; (at = strstr(at, "\"lkid\"")); at++)
		found++;
	assert_int_equal(found, 600);
	for (unsigned i = 0; i < 200; i++) {
		char *end;

		snprintf(name, sizeof(name), "\"n%u\"", i);
		at = strstr(text, name);
		assert_non_null(at);
		end = strstr(at, "\"name\"");
		found = 0;
		while ((at = strstr(at, "\"granted\": \"CR\"")) &&
		       (!end || at < end)) {
			found++;
			at++;
		}
		assert_int_equal(found, 3);
	}
	free(text);
	world_free(w);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_callbacks_are_dispatched),
		cmocka_unit_test(test_inline),
		cmocka_unit_test(test_two_nodes),
		cmocka_unit_test(test_direct),
		cmocka_unit_test(test_refused_among_messages),
		cmocka_unit_test(test_callbacks_push_once),
		cmocka_unit_test(test_value_block),
		cmocka_unit_test(test_bad_arguments),
		cmocka_unit_test(test_cancel_and_force),
		cmocka_unit_test(test_join),
		cmocka_unit_test(test_death),
		cmocka_unit_test(test_missing_and_back),
		cmocka_unit_test(test_gate),
		cmocka_unit_test(test_lease),
		cmocka_unit_test(test_waiting_calls),
		cmocka_unit_test(test_timeout),
		cmocka_unit_test(test_back_pressure),
		cmocka_unit_test(test_lost),
		cmocka_unit_test(test_leave_clean),
		cmocka_unit_test(test_leave_dirty),
		cmocka_unit_test(test_no_life_lock),
		cmocka_unit_test(test_admitted_too_late),
		cmocka_unit_test(test_bad_ports),
		cmocka_unit_test(test_looking_inside),
		cmocka_unit_test(test_many_locks),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
