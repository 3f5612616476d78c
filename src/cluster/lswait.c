/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * lswait.c - calls that cannot go to the engine yet.
 *
 * They wait in one queue, in order, while
 *   - members change: from the first report that one is missing to running();
 *   - the lease has run out: without it nothing is granted, not even what is
 *     mastered here (DESIGN 4.6);
 *   - what the engine said before has found no memory;
 *   - the queue to some member is full. Then only what begins something new
 *     waits; an unlock or a conversion downwards makes others go on, and goes.
 * A lock has one call that waits at most: what is asked while it waits ends it
 * or takes its place (lscall.c).
 *
 * A second, mostly empty queue has calls that the engine refuses with -EBUSY: a
 * cancel has crossed the end of its operation, and its reply is still to come.
 * The program knows nothing of that; they are given again after each message.
 *
 * Timeouts run on a clock that stands still while calls wait for all.
 */
#include <errno.h>
#include <stdlib.h>

#include "base/assert.h"
#include "cluster/lockspace.h"
#include "cluster/plocks_impl.h"

bool ls_is_open(const struct ugdlm *ls)
{
	return ls->running && ls->has_lease && !ls->missing && !ls->changing &&
	       !ls->lost;
}

void ls_open_or_close(struct ugdlm *ls)
{
	bool open = ls_is_open(ls);

	if (!open && !ls->closed_since_ns) {
		ls->closed_since_ns = ls->now_ns;
		return;
	}
	if (!open || !ls->closed_since_ns)
		return;
	ls->closed_ns += ls->now_ns - ls->closed_since_ns;
	ls->closed_since_ns = 0;
	ls->need_resume = true;
	if (!ls->flushing)
		ls_resume(ls);
	if (!ls_list_empty(&ls->timeouts))
		ls_wake_thread(ls, ls->now_ns);
}

void ls_check_lease(struct ugdlm *ls)
{
	struct ls_event event = { .kind = LS_EVENT_QUORATE };
	uint64_t lease_ns;

	if (!ls->cluster || ls->lost)
		return;
	lease_ns = ls->env.cluster->lease_ns(ls->cluster);
	event.quorate = lease_ns > ls->now_ns;
	if (ug_likely(event.quorate == ls->has_lease))
		return;
	ls->has_lease = event.quorate;
	if (!event.quorate)
		ls->gate |= LS_GATE_LEASE;
	ls_trace_text(ls, "lease %s", event.quorate ? "begins" : "ends");
	ls_event_push(ls, &event);
	ls_open_or_close(ls);
	plocks_on_lease(ls);
}

static bool is_stuck(const struct ugdlm *ls)
{
	return ls->updates_done < ls->updates.count && !ls->flushing;
}

static bool begins_something(const struct ls_call *call)
{
	int held = call->lock->mode;

	if (call->kind == LS_CALL_UNLOCK)
		return false;
	if (call->kind == LS_CALL_REQUEST)
		return true;
	return (int)call->mode >= held ||
	       (held == LKM_PR && call->mode == LKM_CW);
}

bool ls_must_wait(const struct ugdlm *ls, const struct ls_call *call)
{
	if (!ls_is_open(ls) || is_stuck(ls))
		return true;
	if (ug_likely(!ls->full && ls_list_empty(&ls->waiting)))
		return false;
	return begins_something(call);
}

static void note_pending(const struct ls_call *call)
{
	if (call->kind != LS_CALL_UNLOCK)
		call->lock->pending |= LS_OP;
	else if (!(call->flags & LKF_CANCEL))
		call->lock->pending |= LS_UNLOCK;
}

int ls_wait(struct ugdlm *ls, const struct ls_call *call, bool refused)
{
	struct ls_call *copy = malloc(sizeof(*copy));

	if (!copy)
		return -ENOMEM;
	*copy = *call;
	copy->refused = refused;
	cds_list_add_tail(&copy->list, refused ? &ls->refused : &ls->waiting);
	ls->waiting_count++;
	copy->lock->waiting = copy;
	note_pending(copy);
	ls_trace(ls, LS_TR_WAIT, copy->lock->lkid, 0, 0, 0);
	return 0;
}

void ls_wait_end(struct ugdlm *ls, struct ls_call *call)
{
	cds_list_del(&call->list);
	call->lock->waiting = NULL;
	ls->waiting_count--;
	free(call);
}

/*
 * The call leaves its queue before it is given: what it causes may end the
 * lock. False: it is back in the queue that it has to be in, the first of it.
 */
static bool give_again(struct ugdlm *ls, struct ls_call *call)
{
	struct ls_lock *lock = call->lock;
	int err;

	cds_list_del(&call->list);
	lock->waiting = NULL;
	err = ls_give(ls, call);
	if (!err) {
		ls->waiting_count--;
		free(call);
		return true;
	}
	/* Arguments were checked; the lock is there as long as the call is. */
	ug_assert(err == -EAGAIN || err == -ENOMEM || err == -EBUSY);
	lock->waiting = call;
	call->refused = err == -EBUSY;
	cds_list_add(&call->list, err == -EBUSY ? &ls->refused : &ls->waiting);
	if (err == -ENOMEM) {
		ls->retry_ns = ls->now_ns + LS_RETRY_NS;
		ls_wake_thread(ls, ls->retry_ns);
	}
	return err == -EBUSY;
}

void ls_resume(struct ugdlm *ls)
{
	CDS_LIST_HEAD(kept);

	ls->need_resume = false;
	while (!ls_list_empty(&ls->waiting) && ls_is_open(ls) &&
	       !is_stuck(ls)) {
		struct ls_call *call = cds_list_first_entry(
			&ls->waiting, struct ls_call, list);

		if (ls->full && begins_something(call)) {
			cds_list_del(&call->list);
			cds_list_add_tail(&call->list, &kept);
			continue;
		}
		if (!give_again(ls, call))
			break;
	}
	cds_list_splice(&kept, &ls->waiting);
	ls_resume_refused(ls);
}

void ls_resume_refused(struct ugdlm *ls)
{
	CDS_LIST_HEAD(again);

	if (ug_likely(ls_list_empty(&ls->refused)))
		return;
	cds_list_splice(&ls->refused, &again);
	CDS_INIT_LIST_HEAD(&ls->refused);
	while (!ls_list_empty(&again) && ls_is_open(ls) && !is_stuck(ls))
		give_again(ls,
			   cds_list_first_entry(&again, struct ls_call, list));
	cds_list_splice(&again, &ls->refused);
}

/* Timeouts */

static uint64_t open_clock(const struct ugdlm *ls)
{
	uint64_t now = ls->closed_since_ns ? ls->closed_since_ns : ls->now_ns;

	return now - ls->closed_ns;
}

int ls_timeout_set(struct ugdlm *ls, struct ls_lock *lock, uint32_t ms)
{
	struct ls_timeout *t = calloc(1, sizeof(*t));

	if (!t)
		return -ENOMEM;
	t->lock = lock;
	t->due_ns = open_clock(ls) + ms * (uint64_t)1000000u;
	cds_list_add_tail(&t->list, &ls->timeouts);
	lock->timeout = t;
	ls_wake_thread(ls, ls->now_ns + ms * (uint64_t)1000000u);
	return 0;
}

void ls_timeout_end(struct ugdlm *ls, struct ls_lock *lock)
{
	if (ug_likely(!lock->timeout))
		return;
	cds_list_del(&lock->timeout->list);
	free(lock->timeout);
	lock->timeout = NULL;
}

/* The cast that comes of it ends the timeout. */
static void time_out(struct ugdlm *ls, struct ls_lock *lock)
{
	struct ls_call cancel = {
		.lock = lock,
		.kind = LS_CALL_UNLOCK,
		.flags = LKF_CANCEL,
		.cancel_status = -ETIMEDOUT,
	};
	struct ls_timeout *t = lock->timeout;
	struct ls_call *waiting = lock->waiting;

	t->due_ns = open_clock(ls) + LS_RETRY_NS;
	if (waiting && waiting->kind != LS_CALL_UNLOCK) {
		if (!ls_cast_status(ls, lock, UGDLM_TIMEDOUT, lock->mode) &&
		    lock->waiting == waiting)
			ls_wait_end(ls, waiting);
		return;
	}
	/* Another end is coming, or this one has been asked for already. */
	if (waiting || (lock->pending & LS_UNLOCK) || t->asked) {
		ls_timeout_end(ls, lock);
		return;
	}
	if (is_stuck(ls))
		return;
	t->asked = true;
	if (ls_give(ls, &cancel) && lock->timeout)
		lock->timeout->asked = false;
}

uint64_t ls_timeouts_run(struct ugdlm *ls)
{
	uint64_t clock = open_clock(ls), next = UINT64_MAX;
	struct ls_timeout *t;

	if (ls->closed_since_ns)
		return UINT64_MAX;
again:
	cds_list_for_each_entry (t, &ls->timeouts, list) {
		if (t->due_ns <= clock) {
			time_out(ls, t->lock);
			goto again;
		}
		next = UG_MIN(next, t->due_ns);
	}
	return next == UINT64_MAX ? next : ls->now_ns + (next - clock);
}
