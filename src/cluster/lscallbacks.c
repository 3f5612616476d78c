/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * lscallbacks.c - what the program is to be told, and ugdlm_dispatch().
 *
 * Casts and basts are in a queue of their lock; a lock with such a queue, of
 * which no callback is running, is in ls->ready. A dispatcher takes one lock
 * from there and runs one callback of it, so that callbacks of a lock are in
 * order and one at a time, and those of different locks run at once. Events are
 * in a queue of their own.
 *
 * The gate. From prepare() to running(), and from quorate(false) to
 * quorate(true), no cast or bast is delivered. It closes when the event is
 * queued; prepare() and quorate(false) themselves wait for callbacks that are
 * running, so that a program that has returned from them knows that it is told
 * nothing any more. It opens when running() has returned.
 *
 * The eventfd is set by the first one that finds something to deliver and no
 * mark, and cleared by a dispatcher that finds nothing. So while dispatchers
 * are busy a callback costs no system call. The write is done without the lock;
 * one that comes late only wakes a dispatcher in vain.
 *
 * What callbacks ask for is written to the links together, when BATCH_NS are
 * over or nothing is left to deliver: a write costs as much as several locks.
 *
 * With ugdlm_config.direct the links' thread delivers casts and basts itself,
 * when it has pushed the answers to what it has read:
 *
 *	  asks			links' thread		dispatcher
 *	   |  -- message -->	   |
 *	   |			   | reply read, cast queued
 *	   |   <--- ast --------   | ls_dispatch_direct()
 *	   |			   |   or: eventfd -->	   |
 *	   |   <--------------------------------- ast ---  |
 *
 * An event that waits goes before them, so they are left to the dispatcher.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "base/assert.h"
#include "cluster/lockspace.h"

/* How long what callbacks have asked for waits for more of it. */
#define BATCH_NS 20000u
/* Callbacks that the links' thread runs before it reads again. */
#define DIRECT_MAX 1024u

#define SPARE_EVENTS 8u
#define SPARE_CALLBACKS 256u

/* The lockspace that this thread runs callbacks of. */
static _Thread_local const struct ugdlm *dispatching;

bool ls_is_dispatching(const struct ugdlm *ls)
{
	return dispatching == ls;
}

/* Memory */

static struct ls_callback *get_callback(struct ugdlm *ls)
{
	struct ls_callback *cb = ls->spare_callbacks;

	if (!cb)
		return malloc(sizeof(*cb));
	ls->spare_callbacks = cb->next;
	ls->spare_callbacks_count--;
	return cb;
}

static void put_callback(struct ugdlm *ls, struct ls_callback *cb)
{
	if (ls->spare_callbacks_count == SPARE_CALLBACKS) {
		free(cb);
		return;
	}
	cb->next = ls->spare_callbacks;
	ls->spare_callbacks = cb;
	ls->spare_callbacks_count++;
}

static void fill_spare_events(struct ugdlm *ls)
{
	while (ls->spare_events_count < SPARE_EVENTS) {
		struct ls_event *event = malloc(sizeof(*event));

		if (!event)
			return;
		cds_list_add(&event->list, &ls->spare_events);
		ls->spare_events_count++;
	}
}

int ls_callbacks_init(struct ugdlm *ls)
{
	ls->gate = LS_GATE_RECOVERY | LS_GATE_LEASE;
	ls->fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (ls->fd < 0)
		return -errno;
	ls->lost_event = calloc(1, sizeof(*ls->lost_event));
	fill_spare_events(ls);
	return ls->lost_event && ls->spare_events_count ? 0 : -ENOMEM;
}

static void free_events(struct cds_list_head *list)
{
	struct ls_event *event, *next;

	cds_list_for_each_entry_safe (event, next, list, list)
		free(event);
}

void ls_callbacks_free(struct ugdlm *ls)
{
	while (ls->spare_callbacks) {
		struct ls_callback *cb = ls->spare_callbacks;

		ls->spare_callbacks = cb->next;
		free(cb);
	}
	free_events(&ls->event_queue);
	free_events(&ls->spare_events);
	free(ls->lost_event);
	if (ls->fd >= 0)
		close(ls->fd);
}

void ls_callbacks_drop(struct ugdlm *ls, struct ls_lock *lock)
{
	while (lock->callbacks) {
		struct ls_callback *cb = lock->callbacks;

		lock->callbacks = cb->next;
		put_callback(ls, cb);
	}
	lock->casts = 0;
	if (lock->in_ready)
		cds_list_del(&lock->ready);
	lock->in_ready = false;
}

/* What may be delivered now */

static struct ls_event *next_event(const struct ugdlm *ls)
{
	struct ls_event *event;
	bool last;

	if (ls->event_running || ls_list_empty(&ls->event_queue))
		return NULL;
	event = cds_list_first_entry(&ls->event_queue, struct ls_event, list);
	last = event->kind == LS_EVENT_PREPARE ||
	       event->kind == LS_EVENT_LOST ||
	       (event->kind == LS_EVENT_QUORATE && !event->quorate);
	if (last && ls->callbacks_running)
		return NULL;
	if (event->kind == LS_EVENT_LOST && !ls_list_empty(&ls->ready))
		return NULL;
	return event;
}

static bool lock_is_ready(const struct ugdlm *ls)
{
	return !ls->gate && !ls_list_empty(&ls->ready);
}

void ls_ring(struct ugdlm *ls)
{
	if (ls->fd_is_set || (!lock_is_ready(ls) && !next_event(ls)))
		return;
	ls->fd_is_set = true;
	ls->need_ring = true;
}

static void make_ready(struct ugdlm *ls, struct ls_lock *lock)
{
	if (!lock->in_ready && !lock->running) {
		lock->in_ready = true;
		cds_list_add_tail(&lock->ready, &ls->ready);
	}
	ls_ring(ls);
}

/* Casts */

static enum ugdlm_status status_of(int status)
{
	switch (status) {
	case 0:
		return UGDLM_OK;
	case -EAGAIN:
		return UGDLM_NOTQUEUED;
	case -EDEADLK:
		return UGDLM_DEADLOCK;
	case -ETIMEDOUT:
		return UGDLM_TIMEDOUT;
	case -DLM_EUNLOCK:
		return UGDLM_UNLOCKED;
	default: /* -DLM_ECANCEL, or a master that knows other reasons */
		return UGDLM_CANCELLED;
	}
}

static void write_lksb(struct ls_lock *lock, const struct ls_callback *cb)
{
	struct ugdlm_lksb *lksb = lock->lksb;

	lksb->status = cb->status;
	lksb->mode = (enum ugdlm_mode)cb->mode;
	lksb->lkid = cb->mode == LKM_IV ? 0 : lock->lkid;
	lksb->sbflags = cb->sbflags;
	lksb->lvb_valid = cb->lvb_valid;
	if (cb->lvb_valid)
		memcpy(lksb->lvb, cb->lvb, sizeof(lksb->lvb));
}

static void append(struct ls_lock *lock, struct ls_callback *cb)
{
	cb->next = NULL;
	if (lock->callbacks)
		lock->callbacks_last->next = cb;
	else
		lock->callbacks = cb;
	lock->callbacks_last = cb;
}

static bool is_cancel(const struct ls_call *call)
{
	return call->kind == LS_CALL_UNLOCK && (call->flags & UGDLM_CANCEL);
}

/*
 * The operation has ended; a cancel of it that waits has nothing to do, and
 * must not be in the way of what the program asks next.
 */
static void end_operation(struct ugdlm *ls, struct ls_lock *lock, int8_t mode)
{
	bool gone = mode == LKM_IV;

	ls_timeout_end(ls, lock);
	lock->mode = mode;
	lock->pending &= (uint8_t)~LS_OP;
	if (gone) {
		lock->pending = 0;
		lock->gone = true;
	}
	if (lock->waiting && (gone || is_cancel(lock->waiting)))
		ls_wait_end(ls, lock->waiting);
}

static bool may_be_inline(const struct ugdlm *ls, const struct ls_lock *lock)
{
	return ls->inline_lock == lock && !ls->inline_done &&
	       !lock->callbacks && !ls->gate;
}

static int cast(struct ugdlm *ls, struct ls_lock *lock,
		const struct ls_callback *told)
{
	struct ls_callback *cb;

	/*
	 * Whoever has forced the unlock must not take a grant that crosses it
	 * for a lock: the master has forgotten it, perhaps.
	 */
	if ((lock->pending & LS_UNLOCK) && told->mode != LKM_IV) {
		end_operation(ls, lock, told->mode);
		return 0;
	}
	if (may_be_inline(ls, lock)) {
		end_operation(ls, lock, told->mode);
		write_lksb(lock, told);
		ls->inline_done = true;
		if (lock->gone)
			ls_lock_forget(ls, lock);
		return 0;
	}
	cb = get_callback(ls);
	if (!cb)
		return -ENOMEM;
	*cb = *told;
	if (told->status == UGDLM_UNLOCKED)
		ls_callbacks_drop(ls, lock); /* that it was granted before */
	end_operation(ls, lock, told->mode);
	append(lock, cb);
	lock->casts++;
	make_ready(ls, lock);
	return 0;
}

int ls_cast(struct ugdlm *ls, struct ls_lock *lock, const struct dlm_cast *up)
{
	struct ls_callback told = {
		.status = status_of(up->status),
		.mode = up->mode,
		.sbflags = up->sbflags,
		.lvb_valid = up->lvb_valid,
	};
	int err;

	if (up->lvb_valid)
		memcpy(told.lvb, up->lvb, sizeof(told.lvb));
	err = cast(ls, lock, &told);
	if (!err)
		ls_trace(ls, LS_TR_CAST, up->lkid, (int)told.status, told.mode,
			 (int)told.sbflags);
	return err;
}

int ls_cast_status(struct ugdlm *ls, struct ls_lock *lock,
		   enum ugdlm_status status, int8_t mode)
{
	struct ls_callback told = { .status = status, .mode = mode };
	uint32_t lkid = lock->lkid;
	int err = cast(ls, lock, &told);

	if (!err)
		ls_trace(ls, LS_TR_CAST, lkid, (int)status, mode, 0);
	return err;
}

int ls_bast(struct ugdlm *ls, struct ls_lock *lock, const struct dlm_cast *up)
{
	struct ls_callback *cb = get_callback(ls);

	if (!cb)
		return -ENOMEM;
	memset(cb, 0, sizeof(*cb));
	cb->is_bast = true;
	cb->mode = up->bast;
	append(lock, cb);
	ls_trace(ls, LS_TR_BAST, up->lkid, up->bast, 0, 0);
	make_ready(ls, lock);
	return 0;
}

/* One end for all that was under way, whatever was queued before. */
void ls_cast_lost(struct ugdlm *ls, struct ls_lock *lock)
{
	bool waits = lock->pending || lock->casts;

	ls_callbacks_drop(ls, lock);
	lock->pending = 0;
	lock->mode = LKM_IV;
	lock->gone = true;
	if (!waits)
		return;
	lock->lost = true;
	make_ready(ls, lock);
}

/* Events */

void ls_event_push(struct ugdlm *ls, const struct ls_event *event)
{
	struct ls_event *copy;

	if (ls->lost)
		return; /* that was the last one */
	fill_spare_events(ls);
	if (ls_list_empty(&ls->spare_events)) {
		ls_lose(ls, -ENOMEM, "no memory for events");
		return;
	}
	copy = cds_list_first_entry(&ls->spare_events, struct ls_event, list);
	cds_list_del(&copy->list);
	ls->spare_events_count--;
	*copy = *event;
	cds_list_add_tail(&copy->list, &ls->event_queue);
	ls_ring(ls);
}

void ls_event_push_lost(struct ugdlm *ls)
{
	struct ls_event *event = ls->lost_event;

	ls->lost_event = NULL;
	event->kind = LS_EVENT_LOST;
	cds_list_add_tail(&event->list, &ls->event_queue);
	ls_ring(ls);
}

static void call_event(struct ugdlm *ls, const struct ls_event *event)
{
	const struct ugdlm_events *ops = &ls->events;

	switch (event->kind) {
	case LS_EVENT_PREPARE:
		if (ops->prepare)
			ops->prepare(ls->arg);
		return;
	case LS_EVENT_GONE:
		if (ops->gone)
			ops->gone(ls->arg, &event->member, event->end);
		return;
	case LS_EVENT_RUNNING:
		if (ops->running)
			ops->running(ls->arg, event->generation,
				     &event->member);
		return;
	case LS_EVENT_QUORATE:
		if (ops->quorate)
			ops->quorate(ls->arg, event->quorate);
		return;
	case LS_EVENT_CLEARED:
		if (ops->cleared)
			ops->cleared(ls->arg);
		return;
	case LS_EVENT_LOST:
		if (ops->lost)
			ops->lost(ls->arg, ls->lost_why);
		return;
	}
}

/* Before gone() is called: the program may say in it that all is clean. */
static void slot_is_told(struct ugdlm *ls, const struct ls_event *event)
{
	struct ls_held_slot *held;

	cds_list_for_each_entry (held, &ls->held_slots, list)
		if (held->slot == event->member.slot &&
		    held->incarnation == event->incarnation)
			held->told = true;
}

static bool is_queued(const struct ugdlm *ls, enum ls_event_kind kind)
{
	const struct ls_event *event;

	cds_list_for_each_entry (event, &ls->event_queue, list)
		if (event->kind == kind)
			return true;
	return false;
}

/* What the event opens, unless it has been closed again meanwhile. */
static void open_gate(struct ugdlm *ls, const struct ls_event *event)
{
	if (event->kind == LS_EVENT_RUNNING && !is_queued(ls, LS_EVENT_PREPARE))
		ls->gate &= ~(unsigned)LS_GATE_RECOVERY;
	if (event->kind == LS_EVENT_QUORATE && event->quorate &&
	    !is_queued(ls, LS_EVENT_QUORATE))
		ls->gate &= ~(unsigned)LS_GATE_LEASE;
}

/* An event may take its time: what was asked for before goes out first. */
static void run_event(struct ugdlm *ls, struct ls_event *event)
{
	cds_list_del(&event->list);
	ls->event_running = true;
	if (event->kind == LS_EVENT_GONE)
		slot_is_told(ls, event);
	dispatching = NULL;
	ls_unlock(ls);
	call_event(ls, event);
	ls_lock(ls);
	dispatching = ls;
	ls->event_running = false;
	open_gate(ls, event);
	free(event);
	ls_ring(ls);
}

/* Dispatching */

static void finish(struct ugdlm *ls, struct ls_lock *lock)
{
	lock->running = false;
	ls->callbacks_running--;
	if (lock->callbacks || lock->lost)
		make_ready(ls, lock);
	else if (lock->gone)
		ls_lock_forget(ls, lock);
}

static void run_lost(struct ugdlm *ls, struct ls_lock *lock)
{
	static const struct ls_callback lost = { .status = UGDLM_LOST,
						 .mode = LKM_IV };

	lock->lost = false;
	write_lksb(lock, &lost);
	ls_unlock(ls);
	lock->ast(lock->ctx, lock->lksb);
	ls_lock(ls);
}

static void run_callback(struct ugdlm *ls, struct ls_lock *lock)
{
	struct ls_callback *cb = lock->callbacks;
	void (*ast)(void *, struct ugdlm_lksb *) = lock->ast;
	void (*bast)(void *, struct ugdlm_lksb *, enum ugdlm_mode) = lock->bast;
	struct ugdlm_lksb *lksb = lock->lksb;
	void *ctx = lock->ctx;

	lock->callbacks = cb->next;
	if (!cb->is_bast) {
		lock->casts--;
		write_lksb(lock, cb);
	}
	ls_unlock(ls);
	if (!cb->is_bast)
		ast(ctx, lksb);
	else if (bast)
		bast(ctx, lksb, (enum ugdlm_mode)cb->mode);
	ls_lock(ls);
	put_callback(ls, cb);
}

static void run_lock(struct ugdlm *ls)
{
	struct ls_lock *lock =
		cds_list_first_entry(&ls->ready, struct ls_lock, ready);

	cds_list_del(&lock->ready);
	lock->in_ready = false;
	lock->running = true;
	ls->callbacks_running++;
	if (lock->lost)
		run_lost(ls, lock);
	else
		run_callback(ls, lock);
	finish(ls, lock);
}

static void clear_fd(struct ugdlm *ls, bool read_it)
{
	uint64_t count;

	ls->fd_is_set = false;
	ls->need_ring = false;
	/* Nothing to read: whoever set the mark has not written yet. */
	if (read_it && read(ls->fd, &count, sizeof(count)) < 0)
		return;
}

/* When something has waited for long enough. */
static void push_batch(struct ugdlm *ls, uint64_t *pushed_ns)
{
	if (ls->now_ns - *pushed_ns < BATCH_NS)
		return;
	*pushed_ns = ls->now_ns;
	if (!ls->need_push)
		return;
	dispatching = NULL;
	ls_unlock(ls);
	ls_lock(ls);
	dispatching = ls;
}

/* Under the lock: at most max callbacks; their number. */
static unsigned run_callbacks(struct ugdlm *ls, unsigned max, bool events)
{
	const struct ugdlm *outer = dispatching;
	uint64_t pushed_ns = ls->now_ns;
	unsigned n = 0;

	dispatching = ls;
	ls_check_lease(ls);
	while (n < max) {
		struct ls_event *event = next_event(ls);

		if (event && !events)
			break;
		if (event)
			run_event(ls, event);
		else if (lock_is_ready(ls))
			run_lock(ls);
		else
			break;
		n++;
		ls_check_lease(ls);
		push_batch(ls, &pushed_ns);
	}
	/* A dispatcher has found it readable; else only who wrote knows. */
	if (!next_event(ls) && !lock_is_ready(ls))
		clear_fd(ls, events || (ls->fd_is_set && !ls->need_ring));
	else
		ls_ring(ls);
	dispatching = outer;
	return n;
}

int ugdlm_dispatch(struct ugdlm *ls, unsigned max)
{
	unsigned n;

	ls_lock(ls);
	n = run_callbacks(ls, max, true);
	ls_unlock(ls);
	return (int)n;
}

void ls_dispatch_direct(struct ugdlm *ls)
{
	if (ls->direct)
		run_callbacks(ls, DIRECT_MAX, false);
}

int ugdlm_fd(const struct ugdlm *ls)
{
	return ls->fd;
}
