/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * lsupdates.c - the engine's one door: an event in, its updates carried out.
 *
 * Updates are done in order and never overtaken: messages to one member, and
 * casts of one lock, leave as the engine said them. One that finds no memory
 * stays where it is, and all later ones behind it, until there is some; the
 * list of updates is the queue, so that waiting needs no memory. Only that the
 * engine runs is dropped when it has been stopped before that was its turn.
 *
 * Messages of an older generation. The engine takes messages that were sent
 * before the last change of members only if they still mean something, and the
 * edge need not look at them, for these reasons:
 *  - A stream of the links is between two incarnations. When either is removed
 *    it ends; a message of the gone that had been read before is given to the
 *    engine with that incarnation, which is in no later list of members.
 *  - Between two that stay members all messages come in order. Nobody starts
 *    before all have stopped; STATUS and NAMES of the new recovery are behind
 *    whatever was sent before the stop, so when the engine has its NAMES no old
 *    message is on its way any more: it is among those the engine has saved.
 *  - Answers to questions of an aborted recovery carry its number (rc_seq).
 *  - A member that starts earlier may speak before this one's MUP_START. It
 *    is a member of both lists; its stream was made at MUP_JOINED, before this
 *    one said that it has stopped. The engine saves what it says.
 */
#include <errno.h>
#include <string.h>

#include "base/assert.h"
#include "cluster/lockspace.h"
#include "wire/dlmwire.h"

static_assert(sizeof(((struct ugdlm *)0)->encoded) >= DLM_WIRE_MAX,
	      "every message fits");

/* So much is under way to it that nothing new should begin. */
static void note_full(struct ugdlm *ls, struct ls_member *member)
{
	if (member->full || !ls->env.links->full(ls->links, member->id))
		return;
	member->full = true;
	ls->full++;
	ls_trace_text(ls, "node %u: its queue is full", member->id);
}

static int send_message(struct ugdlm *ls, const struct dlm_msg *msg)
{
	struct ls_member *member = ls_member_find(ls, (uint32_t)msg->to);
	bool lockmsg = msg->kind == DLM_MSG;
	long len;
	int err;

	/* Gone, or another one by now: as if it had been lost under way. */
	if (!member || member->inc_short != msg->to_incarnation)
		return 0;
	len = dlm_wire_encode(msg, ls->wire_id, ls->encoded,
			      sizeof(ls->encoded));
	ug_assert(len > 0);
	err = ls->env.links->send(ls->links, member->id, LINK_DLM, ls->encoded,
				  (size_t)len);
	if (err == -ENOMEM)
		return err;
	ls_trace(ls, LS_TR_SEND, lockmsg ? msg->m.lkid : 0, msg->to,
		 msg->kind << 8 |
			 (lockmsg ? (int)msg->m.type : (int)msg->rc.type),
		 lockmsg ? msg->m.result : msg->rc.result);
	ls->need_push = true;
	note_full(ls, member);
	return 0;
}

static void mismatch(struct ugdlm *ls, const struct dlm_running *up)
{
	ug_error(ls->who,
		 "node %d has another length of value blocks: nothing is "
		 "granted until it is gone",
		 up->nodeid);
	ls_trace_text(ls, "node %d: another length of value blocks",
		      up->nodeid);
}

static struct ls_lock *lock_of(const struct dlm_cast *cast)
{
	return (struct ls_lock *)(uintptr_t)cast->ctx;
}

static int carry_out(struct ugdlm *ls, const struct dlm_update *up)
{
	switch (up->kind) {
	case DLM_UP_SEND:
		return send_message(ls, &up->msg);
	case DLM_UP_CAST:
		return ls_cast(ls, lock_of(&up->cast), &up->cast);
	case DLM_UP_BAST:
		return ls_bast(ls, lock_of(&up->cast), &up->cast);
	case DLM_UP_PREPARE:
		ls_on_prepare(ls);
		return 0;
	case DLM_UP_SLOT_GONE:
		return ls_on_slot_gone(ls, up->running);
	case DLM_UP_RUNNING:
		ls_on_running(ls, &up->running);
		return 0;
	case DLM_UP_MISMATCH:
		mismatch(ls, &up->running);
		return 0;
	}
	return 0;
}

static void retry_later(struct ugdlm *ls)
{
	ls->retry_ns = ls->now_ns + LS_RETRY_NS;
	ls_wake_thread(ls, ls->retry_ns);
}

/*
 * Carrying an update out may step the engine again (a slot that is free at
 * once): what that says is done by the loop that is under way.
 */
void ls_flush(struct ugdlm *ls)
{
	struct dlm_updates *updates = &ls->updates;

	if (ls->flushing)
		return;
	ls->flushing = true;
	while (ls->updates_done < updates->count && !ls->lost) {
		if (carry_out(ls, &updates->list[ls->updates_done])) {
			retry_later(ls);
			ls->flushing = false;
			return;
		}
		ls->updates_done++;
	}
	ls->flushing = false;
	if (updates->more) {
		ls->more = true;
		ls_wake_thread(ls, ls->now_ns);
	}
	dlm_updates_clear(updates);
	ls->updates_done = 0;
	if (ls->forget_due)
		ls_members_forget(ls);
	if (ls->need_resume)
		ls_resume(ls);
}

void ls_updates_stopped(struct ugdlm *ls)
{
	struct dlm_updates *updates = &ls->updates;
	size_t kept = ls->updates_done;

	for (size_t i = kept; i < updates->count; i++)
		if (updates->list[i].kind != DLM_UP_RUNNING)
			updates->list[kept++] = updates->list[i];
	updates->count = kept;
}

int ls_step_only(struct ugdlm *ls, struct dlm_event *event)
{
	event->now_ns = ls->now_ns;
	return dlm_step(ls->engine, event, &ls->updates);
}

int ls_step(struct ugdlm *ls, struct dlm_event *event)
{
	int err = ls_step_only(ls, event);

	ls_flush(ls);
	return err;
}

int ls_step_surely(struct ugdlm *ls, struct dlm_event *event)
{
	int err = ls_step(ls, event);

	while (err == -ENOMEM && !ls->lost) {
		ls_unlock(ls);
		ls->env.rest();
		ls_lock(ls);
		if (!ls->lost)
			err = ls_step(ls, event);
	}
	return ls->lost ? 0 : err;
}
