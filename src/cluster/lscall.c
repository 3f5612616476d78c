/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * lscall.c - ugdlm_lock() and ugdlm_unlock().
 *
 * A call is checked completely before anything happens, so that one that has to
 * wait in the library cannot fail later. Then it is given to the engine, if it
 * may go there, and what the engine decides at once can be handed back by the
 * return value (inline): a lock that is mastered here and free costs no queue,
 * no system call and no other thread.
 *
 * What is asked of a lock while a call of it waits in the library:
 *
 *   waits \ asked   cancel               force-unlock
 *   request         ends: cancelled      ends: unlocked
 *   conversion      ends: cancelled      takes its place
 *   cancel          nothing              takes its place
 *   unlock          nothing              is forced then
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/assert.h"
#include "cluster/lockspace.h"

#define TABLE_FIRST 64u

static_assert(UGDLM_NAME_MAX == DLM_NAME_MAX && UGDLM_LVB_LEN <= DLM_LVB_MAX,
	      "the engine's limits");
static_assert((int)UGDLM_IV == (int)LKM_IV && (int)UGDLM_EX == (int)LKM_EX,
	      "the engine's modes");
static_assert(UGDLM_NOQUEUE == LKF_NOQUEUE && UGDLM_CANCEL == LKF_CANCEL &&
		      UGDLM_CONVERT == LKF_CONVERT &&
		      UGDLM_VALBLK == LKF_VALBLK &&
		      UGDLM_QUECVT == LKF_QUECVT &&
		      UGDLM_IVVALBLK == LKF_IVVALBLK &&
		      UGDLM_CONVDEADLK == LKF_CONVDEADLK &&
		      UGDLM_PERSISTENT == LKF_PERSISTENT &&
		      UGDLM_NODLCKWT == LKF_NODLCKWT &&
		      UGDLM_EXPEDITE == LKF_EXPEDITE &&
		      UGDLM_NOQUEUEBAST == LKF_NOQUEUEBAST &&
		      UGDLM_HEADQUE == LKF_HEADQUE &&
		      UGDLM_NOORDER == LKF_NOORDER &&
		      UGDLM_ORPHAN == LKF_ORPHAN && UGDLM_ALTPR == LKF_ALTPR &&
		      UGDLM_ALTCW == LKF_ALTCW &&
		      UGDLM_FORCEUNLOCK == LKF_FORCEUNLOCK &&
		      UGDLM_TIMEOUT == LKF_TIMEOUT,
	      "the engine's flags");

#define LOCK_FLAGS                                                             \
	(UGDLM_NOQUEUE | UGDLM_CONVERT | UGDLM_VALBLK | UGDLM_QUECVT |         \
	 UGDLM_IVVALBLK | UGDLM_CONVDEADLK | UGDLM_PERSISTENT |                \
	 UGDLM_NODLCKWT | UGDLM_EXPEDITE | UGDLM_NOQUEUEBAST | UGDLM_HEADQUE | \
	 UGDLM_NOORDER | UGDLM_ORPHAN | UGDLM_ALTPR | UGDLM_ALTCW |            \
	 UGDLM_TIMEOUT)
#define UNLOCK_FLAGS \
	(UGDLM_CANCEL | UGDLM_VALBLK | UGDLM_IVVALBLK | UGDLM_FORCEUNLOCK)

/* The table of locks, by the engine's id */

static uint32_t place(const struct ugdlm *ls, uint32_t lkid)
{
	return (lkid * 0x9e3779b1u >> 7) & ls->table_mask;
}

/* Its request has not been given to the engine, or has ended before. */
static struct ls_lock *find_without_id(const struct ugdlm *ls,
				       const struct ugdlm_lksb *lksb)
{
	struct ls_call *call;
	struct ls_lock *lock;

	cds_list_for_each_entry (call, &ls->waiting, list)
		if (call->lock->lksb == lksb && !call->lock->lkid)
			return call->lock;
	cds_list_for_each_entry (lock, &ls->ready, ready)
		if (lock->lksb == lksb && !lock->lkid)
			return lock;
	return NULL;
}

static struct ls_lock *find(const struct ugdlm *ls,
			    const struct ugdlm_lksb *lksb)
{
	struct ls_lock *lock;

	if (lksb->lkid) {
		lock = ls->table[place(ls, lksb->lkid)];
		while (lock && (lock->lkid != lksb->lkid || lock->lksb != lksb))
			lock = lock->hash_next;
		return lock;
	}
	return find_without_id(ls, lksb);
}

static int table_grow(struct ugdlm *ls)
{
	uint32_t size = ls->table ? 2 * (ls->table_mask + 1) : TABLE_FIRST;
	struct ls_lock **old = ls->table, **new;
	uint32_t old_size = old ? ls->table_mask + 1 : 0;

	if (ug_likely(ls->locks < old_size))
		return 0;
	new = calloc(size, sizeof(struct ls_lock *));
	if (!new)
		return -ENOMEM;
	ls->table = new;
	ls->table_mask = size - 1;
	for (uint32_t i = 0; i < old_size; i++) {
		while (old[i]) {
			struct ls_lock *lock = old[i];
			struct ls_lock **head = &new[place(ls, lock->lkid)];

			old[i] = lock->hash_next;
			lock->hash_next = *head;
			*head = lock;
		}
	}
	free(old);
	return 0;
}

static void table_insert(struct ugdlm *ls, struct ls_lock *lock)
{
	struct ls_lock **head = &ls->table[place(ls, lock->lkid)];

	lock->hash_next = *head;
	*head = lock;
}

static void table_remove(struct ugdlm *ls, struct ls_lock *lock)
{
	struct ls_lock **at = &ls->table[place(ls, lock->lkid)];

	while (*at != lock)
		at = &(*at)->hash_next;
	*at = lock->hash_next;
}

/* Locks */

static struct ls_lock *new_lock(struct ugdlm *ls)
{
	struct ls_lock *lock;

	if (table_grow(ls))
		return NULL;
	lock = calloc(1, sizeof(*lock));
	if (!lock)
		return NULL;
	lock->mode = LKM_IV;
	ls->locks++;
	return lock;
}

static void free_lock(struct ugdlm *ls, struct ls_lock *lock)
{
	ls_timeout_end(ls, lock);
	ls_callbacks_drop(ls, lock);
	if (lock->waiting)
		ls_wait_end(ls, lock->waiting);
	if (lock->lkid)
		table_remove(ls, lock);
	ls->locks--;
	free(lock);
}

/* One that is gone and told so; a callback that runs frees it at its end. */
void ls_lock_forget(struct ugdlm *ls, struct ls_lock *lock)
{
	if (!lock->running)
		free_lock(ls, lock);
}

static void lose_lock(struct ugdlm *ls, struct ls_lock *lock)
{
	ls_timeout_end(ls, lock);
	ls_cast_lost(ls, lock);
	if (lock->waiting)
		ls_wait_end(ls, lock->waiting);
}

void ls_locks_lose(struct ugdlm *ls)
{
	struct ls_call *call, *next;

	for (uint32_t i = 0; ls->table && i <= ls->table_mask; i++)
		for (struct ls_lock *l = ls->table[i]; l; l = l->hash_next)
			lose_lock(ls, l);
	cds_list_for_each_entry_safe (call, next, &ls->waiting, list)
		lose_lock(ls, call->lock);
}

/* Those that were lost before they were in the table are in ls->ready. */
void ls_locks_free(struct ugdlm *ls)
{
	struct ls_lock *lock, *next;
	struct ls_call *call, *next_call;

	cds_list_for_each_entry_safe (call, next_call, &ls->waiting, list)
		if (!call->lock->lkid)
			free_lock(ls, call->lock);
	cds_list_for_each_entry_safe (lock, next, &ls->ready, ready)
		if (!lock->lkid)
			free_lock(ls, lock);
	for (uint32_t i = 0; ls->table && i <= ls->table_mask; i++)
		while (ls->table[i])
			free_lock(ls, ls->table[i]);
	free(ls->table);
}

/* Giving a call to the engine */

static void fill_lock_event(const struct ugdlm *ls, const struct ls_call *call,
			    struct dlm_event *event)
{
	struct dlm_lock_args *args = &event->lock;

	event->kind = DLM_EV_LOCK;
	args->mode = call->mode;
	args->flags = call->flags;
	args->lkid = call->lock->lkid;
	args->wants_bast = call->lock->bast != NULL;
	args->user = false;
	args->pid = ls->self.pid;
	args->owner = 0;
	args->ctx = (uintptr_t)call->lock;
	args->lvb = call->flags & UGDLM_VALBLK ? call->lvb : NULL;
	args->name.len = call->name.len;
	memcpy(args->name.bytes, call->name.bytes, call->name.len);
}

static void fill_unlock_event(const struct ls_call *call,
			      struct dlm_event *event)
{
	event->kind = DLM_EV_UNLOCK;
	event->unlock.lkid = call->lock->lkid;
	event->unlock.flags = call->flags;
	event->unlock.cancel_status = call->cancel_status;
	event->unlock.lvb = call->flags & UGDLM_VALBLK ? call->lvb : NULL;
}

static void note_given(struct ugdlm *ls, const struct ls_call *call)
{
	static const enum ls_trace_kind kinds[] = {
		[LS_CALL_REQUEST] = LS_TR_REQUEST,
		[LS_CALL_CONVERT] = LS_TR_CONVERT,
		[LS_CALL_UNLOCK] = LS_TR_UNLOCK,
	};
	struct ls_lock *lock = call->lock;

	ls_trace(ls, kinds[call->kind], lock->lkid, call->mode,
		 (int)call->flags, 0);
	if (call->kind != LS_CALL_UNLOCK)
		lock->pending |= LS_OP;
	else if (!(call->flags & UGDLM_CANCEL))
		lock->pending |= LS_UNLOCK;
}

int ls_give(struct ugdlm *ls, struct ls_call *call)
{
	struct dlm_event event;
	int err;

	if (call->kind == LS_CALL_UNLOCK)
		fill_unlock_event(call, &event);
	else
		fill_lock_event(ls, call, &event);
	err = ls_step_only(ls, &event);
	if (!err) {
		if (call->kind == LS_CALL_REQUEST) {
			/* Also to be found by, if it had to wait. */
			call->lock->lksb->lkid = event.lock.lkid;
			call->lock->lkid = event.lock.lkid;
			table_insert(ls, call->lock);
		}
		note_given(ls, call);
	}
	ls_flush(ls);
	return err;
}

/* To the engine, or into the queue. 1: it has ended, inline. */
static int enter(struct ugdlm *ls, struct ls_call *call, bool inline_ok)
{
	int err = -EAGAIN;

	if (!ls_must_wait(ls, call)) {
		ls->inline_lock = inline_ok ? call->lock : NULL;
		ls->inline_done = false;
		err = ls_give(ls, call);
		ls->inline_lock = NULL;
	}
	if (!err)
		return ls->inline_done && inline_ok;
	if (err == -EAGAIN || err == -EBUSY)
		return ls_wait(ls, call, err == -EBUSY);
	ug_assert(err == -ENOMEM);
	return err;
}

/* ugdlm_lock() */

static bool may_queue(int from, int to)
{
	return to > from || (from == UGDLM_PR && to == UGDLM_CW);
}

static bool flags_fit(const struct ugdlm_request *req)
{
	uint32_t flags = req->flags;
	bool convert = flags & UGDLM_CONVERT;

	if (flags & ~LOCK_FLAGS)
		return false;
	if (!convert && (flags & (UGDLM_QUECVT | UGDLM_CONVDEADLK)))
		return false;
	if ((flags & UGDLM_CONVDEADLK) && (flags & UGDLM_NOQUEUE))
		return false;
	if ((flags & UGDLM_EXPEDITE) &&
	    (convert || req->mode != UGDLM_NL || (flags & UGDLM_NOQUEUE)))
		return false;
	return !(flags & UGDLM_TIMEOUT) == !req->timeout_ms;
}

static int check_request(const struct ugdlm_request *req)
{
	if (req->mode < UGDLM_NL || req->mode > UGDLM_EX || !req->lksb ||
	    !req->ast || !flags_fit(req))
		return -EINVAL;
	if (req->flags & UGDLM_CONVERT)
		return 0;
	if (req->name_len > UGDLM_NAME_MAX || (req->name_len && !req->name))
		return -EINVAL;
	return req->flags & UGDLM_ORPHAN ? -ENOENT : 0;
}

static void fill_call(struct ls_call *call, struct ls_lock *lock,
		      const struct ugdlm_request *req)
{
	call->lock = lock;
	call->mode = (enum dlm_mode)req->mode;
	call->flags = req->flags & ~(UGDLM_TIMEOUT | UGDLM_ORPHAN);
	call->cancel_status = 0;
	call->name.len = 0;
	if (req->flags & UGDLM_VALBLK)
		memcpy(call->lvb, req->lksb->lvb, sizeof(call->lvb));
	if (req->flags & UGDLM_CONVERT) {
		call->kind = LS_CALL_CONVERT;
		return;
	}
	call->kind = LS_CALL_REQUEST;
	call->name.len = (uint8_t)req->name_len;
	if (req->name_len)
		memcpy(call->name.bytes, req->name, req->name_len);
}

static void set_callbacks(struct ls_lock *lock, const struct ugdlm_request *req)
{
	lock->lksb = req->lksb;
	lock->ast = req->ast;
	lock->bast = req->bast;
	lock->ctx = req->ctx;
}

static bool is_shut(const struct ugdlm *ls)
{
	return ls->lost || ls->leaving || !ls->engine;
}

static int request(struct ugdlm *ls, const struct ugdlm_request *req)
{
	struct ls_lock *lock = new_lock(ls);
	struct ls_call call;
	int err;

	if (!lock)
		return -ENOMEM;
	set_callbacks(lock, req);
	fill_call(&call, lock, req);
	if ((req->flags & UGDLM_TIMEOUT) &&
	    ls_timeout_set(ls, lock, req->timeout_ms)) {
		free_lock(ls, lock);
		return -ENOMEM;
	}
	err = enter(ls, &call, req->inline_ok);
	if (err < 0)
		free_lock(ls, lock);
	if (err)
		return err;
	req->lksb->status = UGDLM_INPROGRESS;
	req->lksb->mode = UGDLM_IV;
	req->lksb->sbflags = 0;
	req->lksb->lvb_valid = false;
	req->lksb->lkid = lock->lkid; /* 0 while it waits here */
	return 0;
}

static int convert(struct ugdlm *ls, const struct ugdlm_request *req)
{
	struct ls_lock *lock = find(ls, req->lksb);
	struct ugdlm_request before = { .lksb = req->lksb };
	struct ls_call call;
	int err = 0;

	if (!lock)
		return -ENOENT;
	if (lock->gone || lock->pending || lock->casts || lock->waiting)
		return -EBUSY;
	if ((req->flags & UGDLM_QUECVT) && !may_queue(lock->mode, req->mode))
		return -EINVAL;
	before.ast = lock->ast;
	before.bast = lock->bast;
	before.ctx = lock->ctx;
	set_callbacks(lock, req);
	fill_call(&call, lock, req);
	if (req->flags & UGDLM_TIMEOUT)
		err = ls_timeout_set(ls, lock, req->timeout_ms);
	if (!err)
		err = enter(ls, &call, req->inline_ok);
	if (!err)
		req->lksb->status = UGDLM_INPROGRESS;
	if (err < 0) {
		ls_timeout_end(ls, lock);
		set_callbacks(lock, &before);
	}
	return err;
}

int ugdlm_lock(struct ugdlm *ls, const struct ugdlm_request *req)
{
	int err = check_request(req);

	if (err)
		return err;
	ls_lock(ls);
	ls_check_lease(ls);
	if (is_shut(ls))
		err = -ESHUTDOWN;
	else if (req->flags & UGDLM_CONVERT)
		err = convert(ls, req);
	else
		err = request(ls, req);
	ls_unlock(ls);
	return err;
}

/* ugdlm_unlock() */

/* An end that needs no engine. 1: inline. */
static int end_here(struct ugdlm *ls, struct ls_lock *lock,
		    enum ugdlm_status status, bool inline_ok)
{
	struct ls_call *waiting = lock->waiting;
	bool stays = waiting->kind == LS_CALL_CONVERT;
	int err;

	ls->inline_lock = inline_ok ? lock : NULL;
	ls->inline_done = false;
	err = ls_cast_status(ls, lock, status, lock->mode);
	ls->inline_lock = NULL;
	if (err)
		return err;
	if (stays)
		ls_wait_end(ls, waiting);
	return ls->inline_done && inline_ok;
}

static int cancel(struct ugdlm *ls, struct ls_lock *lock, struct ls_call *call,
		  bool inline_ok)
{
	if (lock->waiting && lock->waiting->kind != LS_CALL_UNLOCK)
		return end_here(ls, lock, UGDLM_CANCELLED, inline_ok);
	if (lock->waiting || lock->pending != LS_OP)
		return 0;
	return enter(ls, call, inline_ok);
}

static int force(struct ugdlm *ls, struct ls_lock *lock, struct ls_call *call,
		 bool inline_ok)
{
	struct ls_call *waiting = lock->waiting;
	int err;

	if (lock->gone)
		return 0;
	if (!waiting && (lock->pending & LS_UNLOCK))
		return 0;
	/* A grant that has not been told yet will not be told. */
	if (!waiting) {
		err = enter(ls, call, inline_ok);
		if (!err && !lock->gone)
			ls_callbacks_drop(ls, lock);
		return err;
	}
	if (waiting->kind == LS_CALL_REQUEST)
		return end_here(ls, lock, UGDLM_UNLOCKED, inline_ok);
	if (waiting->kind == LS_CALL_UNLOCK && (lock->pending & LS_UNLOCK)) {
		waiting->flags |= UGDLM_FORCEUNLOCK;
		return 0;
	}
	/* A conversion that the engine has not seen ends with the lock. */
	if (waiting->kind == LS_CALL_CONVERT)
		lock->pending = 0;
	lock->pending |= LS_UNLOCK;
	ls_callbacks_drop(ls, lock);
	waiting->kind = LS_CALL_UNLOCK;
	waiting->flags = call->flags;
	memcpy(waiting->lvb, call->lvb, sizeof(waiting->lvb));
	ls_timeout_end(ls, lock);
	return 0;
}

static int unlock(struct ugdlm *ls, struct ugdlm_lksb *lksb, uint32_t flags,
		  bool inline_ok)
{
	struct ls_lock *lock = find(ls, lksb);
	struct ls_call call = {
		.lock = lock,
		.kind = LS_CALL_UNLOCK,
		.flags = flags,
	};
	int err;

	if (!lock)
		return -ENOENT;
	if (flags & UGDLM_VALBLK)
		memcpy(call.lvb, lksb->lvb, sizeof(call.lvb));
	if (flags & UGDLM_CANCEL)
		return cancel(ls, lock, &call, inline_ok);
	if (flags & UGDLM_FORCEUNLOCK)
		err = force(ls, lock, &call, inline_ok);
	else if (lock->gone || lock->pending || lock->casts || lock->waiting)
		err = -EBUSY;
	else
		err = enter(ls, &call, inline_ok);
	if (!err)
		lksb->status = UGDLM_INPROGRESS;
	return err;
}

int ugdlm_unlock(struct ugdlm *ls, struct ugdlm_lksb *lksb, uint32_t flags,
		 bool inline_ok)
{
	int err;

	if (!lksb || (flags & ~UNLOCK_FLAGS) ||
	    ((flags & UGDLM_CANCEL) && (flags & ~UGDLM_CANCEL)))
		return -EINVAL;
	ls_lock(ls);
	ls_check_lease(ls);
	err = is_shut(ls) ? -ESHUTDOWN : unlock(ls, lksb, flags, inline_ok);
	ls_unlock(ls);
	return err;
}
