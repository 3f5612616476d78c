/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * pgroupcall.c - calls of processes here, from first to last.
 *
 *	pending --> outgoing --> sent --> answered
 *	   |  ^-------'   ^-------'  |--> waiting --> answered
 *	   |	(the file was dropped)	      (granted, without quorum)
 *	   '--> done here: the file is ours
 *
 * Calls of one file are sent in the order in which they came, also those that
 * have to be sent once more: a close that overtook the lock before it would
 * leave that lock to nobody.
 */
#include <errno.h>
#include <stdlib.h>

#include "plock/pgroup_impl.h"

#define CALLS_FIRST 64u

/* Tables by id, and by the name of the wait */

static uint32_t slot_of(uint64_t id, uint32_t mask)
{
	id *= 0x9e3779b97f4a7c15u;
	return (uint32_t)(id >> 32) & mask;
}

int gcalls_init(struct pgroup_engine *engine)
{
	engine->calls_by_id = calloc(CALLS_FIRST, sizeof(struct gcall *));
	engine->calls_by_wait = calloc(CALLS_FIRST, sizeof(struct gcall *));
	engine->call_mask = CALLS_FIRST - 1;
	return engine->calls_by_id && engine->calls_by_wait ? 0 : -ENOMEM;
}

void gcalls_free(struct pgroup_engine *engine)
{
	struct gcancel *cancel, *next;

	for (uint32_t i = 0; engine->calls_by_id && i <= engine->call_mask;
	     i++) {
		while (engine->calls_by_id[i]) {
			struct gcall *call = engine->calls_by_id[i];

			engine->calls_by_id[i] = call->id_next;
			free(call);
		}
	}
	free(engine->calls_by_id);
	free(engine->calls_by_wait);
	cds_list_for_each_entry_safe (cancel, next, &engine->cancels, list)
		free(cancel);
}

static void link_id(struct gcall **table, uint32_t mask, struct gcall *call)
{
	struct gcall **at = &table[slot_of(call->id, mask)];

	call->id_next = *at;
	*at = call;
}

static void link_wait(struct gcall **table, uint32_t mask, struct gcall *call)
{
	struct gcall **at = &table[slot_of(call->wait_id, mask)];

	call->wait_next = *at;
	*at = call;
}

/* Without memory the chains get longer. */
static void calls_grow(struct pgroup_engine *engine)
{
	uint32_t size = (engine->call_mask + 1) * 2;
	struct gcall **by_id = calloc(size, sizeof(struct gcall *));
	struct gcall **by_wait = calloc(size, sizeof(struct gcall *));

	if (!by_id || !by_wait) {
		free(by_id);
		free(by_wait);
		return;
	}
	for (uint32_t i = 0; i <= engine->call_mask; i++) {
		struct gcall *call = engine->calls_by_id[i], *next;

		for (; call; call = next) {
			next = call->id_next;
			link_id(by_id, size - 1, call);
			if (call->wait_id)
				link_wait(by_wait, size - 1, call);
		}
	}
	free(engine->calls_by_id);
	free(engine->calls_by_wait);
	engine->calls_by_id = by_id;
	engine->calls_by_wait = by_wait;
	engine->call_mask = size - 1;
}

struct gcall *gcall_find(const struct pgroup_engine *engine, uint64_t id)
{
	struct gcall *call =
		engine->calls_by_id[slot_of(id, engine->call_mask)];

	while (call && call->id != id)
		call = call->id_next;
	return call;
}

struct gcall *gcall_of_wait(const struct pgroup_engine *engine,
			    uint64_t wait_id)
{
	struct gcall *call =
		engine->calls_by_wait[slot_of(wait_id, engine->call_mask)];

	while (call && call->wait_id != wait_id)
		call = call->wait_next;
	return call;
}

static void unlink_wait(struct pgroup_engine *engine, struct gcall *call)
{
	struct gcall **at;

	if (!call->wait_id)
		return;
	at = &engine->calls_by_wait[slot_of(call->wait_id, engine->call_mask)];
	while (*at != call)
		at = &(*at)->wait_next;
	*at = call->wait_next;
	call->wait_id = 0;
}

/* States */

static bool is_lock(const struct gcall *call)
{
	return call->op.kind == PLOCK_SET && call->op.mode != RANGE_NONE;
}

static void leave(struct gcall *call)
{
	cds_list_del(&call->list);
	CDS_INIT_LIST_HEAD(&call->list);
}

void gcall_end(struct pgroup_engine *engine, struct gcall *call, int status,
	       const struct range_lock *found)
{
	struct gfile *file = call->file;
	struct gcall **at =
		&engine->calls_by_id[slot_of(call->id, engine->call_mask)];

	pgroup_answer(engine, call->ctx, status, found);
	leave(call);
	unlink_wait(engine, call);
	while (*at != call)
		at = &(*at)->id_next;
	*at = call->id_next;
	engine->call_count--;
	file->calls--;
	free(call);
}

void gcall_granted(struct pgroup_engine *engine, struct gcall *call)
{
	if (!engine->stopped || !is_lock(call)) {
		gcall_end(engine, call, 0, NULL);
		return;
	}
	unlink_wait(engine, call);
	leave(call);
	call->state = GCALL_GRANTED;
	cds_list_add_tail(&call->list, &engine->granted);
}

void gcall_waits(struct pgroup_engine *engine, struct gcall *call,
		 uint64_t wait_id)
{
	leave(call);
	call->state = GCALL_WAITING;
	call->wait_id = wait_id;
	link_wait(engine->calls_by_wait, engine->call_mask, call);
}

void gcall_swap_waits(struct pgroup_engine *engine, struct gcall *a,
		      struct gcall *b)
{
	uint64_t a_wait = a->wait_id, b_wait = b->wait_id;

	unlink_wait(engine, a);
	unlink_wait(engine, b);
	gcall_waits(engine, a, b_wait);
	gcall_waits(engine, b, a_wait);
}

static void make_pending(struct pgroup_engine *engine, struct gcall *call)
{
	struct cds_list_head *after = call->file->pending.prev;

	while (after != &call->file->pending &&
	       cds_list_entry(after, struct gcall, list)->id > call->id)
		after = after->prev;
	cds_list_add(&call->list, after);
	call->state = GCALL_PENDING;
	gfile_run(engine, call->file);
}

void gcall_requeue(struct pgroup_engine *engine, struct gcall *call)
{
	if (call->cancelled) {
		gcall_end(engine, call, -EINTR, NULL);
		return;
	}
	leave(call);
	unlink_wait(engine, call);
	make_pending(engine, call);
}

void gcalls_unsend(struct pgroup_engine *engine, struct gfile *file)
{
	struct gcall *call, *next;

	if (!file->calls)
		return;
	cds_list_for_each_entry_safe (call, next, &engine->outgoing, list) {
		if (call->file != file)
			continue;
		leave(call);
		make_pending(engine, call);
	}
}

/* A call comes */

static bool op_is_legal(const struct plock_op *op)
{
	return op->start <= op->end && op->end <= RANGE_END;
}

int gcall_begin(struct pgroup_engine *engine, struct pgroup_event *event)
{
	struct gcall *call = engine->spare_call;

	if (!op_is_legal(&event->call.op))
		return -EINVAL;
	if (engine->call_count > engine->call_mask)
		calls_grow(engine);
	engine->spare_call = NULL;
	*call = (struct gcall){ .ctx = event->call.ctx,
				.id = engine->next_id++,
				.op = event->call.op };
	call->op.fair = false;
	if (call->op.kind == PLOCK_CLOSE) {
		call->op.mode = RANGE_NONE;
		call->op.wait = false;
		call->op.start = 0;
		call->op.end = RANGE_END;
	} else if (!is_lock(call)) {
		call->op.wait = false;
	}
	CDS_INIT_LIST_HEAD(&call->list);
	call->file = gfile_open(engine, event->call.number, call->op.table);
	call->file->calls++;
	link_id(engine->calls_by_id, engine->call_mask, call);
	engine->call_count++;
	engine->counts.calls++;
	event->call.id = call->id;
	make_pending(engine, call);
	return 0;
}

/* Calls go on */

static bool owner_is(const struct gcall *a, const struct gcall *b)
{
	return a->op.owner == b->op.owner;
}

/* Nothing is locked without quorum. Who closes does not wait for that. */
static bool is_held(struct pgroup_engine *engine, struct gfile *file,
		    const struct gcall *call)
{
	struct gcall *other, *next;

	if (!engine->stopped)
		return false;
	if (call->op.kind != PLOCK_CLOSE)
		return is_lock(call);
	cds_list_for_each_entry_safe (other, next, &file->pending, list) {
		if (other == call)
			break;
		if (is_lock(other) && owner_is(other, call))
			gcall_end(engine, other, -EINTR, NULL);
	}
	return false;
}

static void to_be_sent(struct pgroup_engine *engine, struct gfile *file)
{
	struct cds_list_head *at = file->pending.next, *next;

	for (; at != &file->pending; at = next) {
		struct gcall *call = cds_list_entry(at, struct gcall, list);
		bool held = is_held(engine, file, call);

		next = at->next;
		if (held)
			continue;
		leave(call);
		call->state = GCALL_OUTGOING;
		cds_list_add_tail(&call->list, &engine->outgoing);
	}
}

static int done_here(struct pgroup_engine *engine, struct gfile *file)
{
	struct cds_list_head *at = file->pending.next, *next;

	for (; at != &file->pending; at = next) {
		struct gcall *call = cds_list_entry(at, struct gcall, list);
		bool held = is_held(engine, file, call);

		next = at->next;
		if (!held && gapply_local(engine, call))
			return -ENOMEM;
	}
	gfile_used(engine, file);
	return 0;
}

/* Nobody here has a lock in it: an unlock has nothing to do. */
static void end_unlocks(struct pgroup_engine *engine, struct gfile *file)
{
	while (!glist_empty(&file->pending)) {
		struct gcall *call = cds_list_first_entry(&file->pending,
							  struct gcall, list);

		if (is_lock(call) || call->op.kind == PLOCK_GET)
			return;
		gcall_end(engine, call, 0, NULL);
	}
}

int gcalls_run(struct pgroup_engine *engine, struct gfile *file)
{
	if (glist_empty(&file->pending) || file->stale)
		return 0;
	switch (file->state) {
	case PGROUP_SHARED:
		to_be_sent(engine, file);
		return 0;
	case PGROUP_GIVING:
		return 0;
	case PGROUP_OWNED:
		if (gfile_is_ours(engine, file))
			return done_here(engine, file);
		break;
	case PGROUP_UNKNOWN:
		break;
	}
	end_unlocks(engine, file);
	if (!glist_empty(&file->pending))
		gown_claim(engine, file);
	return 0;
}

/*
 * The rate: a bucket of as many operations as may leave in a window, kept as
 * the time up to which it is used up.
 */
static bool may_leave(struct pgroup_engine *engine)
{
	uint32_t limit = engine->config.tune.rate_limit;
	uint64_t used = UG_MAX(engine->rate_ns, engine->now_ns);

	if (!limit)
		return true;
	used += PGROUP_RATE_WINDOW_NS / limit;
	if (used - engine->now_ns > PGROUP_RATE_WINDOW_NS)
		return false;
	engine->rate_ns = used;
	return true;
}

void gcalls_pump(struct pgroup_engine *engine)
{
	while (!glist_empty(&engine->outgoing)) {
		struct gcall *call = cds_list_first_entry(&engine->outgoing,
							  struct gcall, list);
		struct pgroup_msg *msg;

		if (!may_leave(engine)) {
			engine->counts.delays++;
			return;
		}
		msg = pgroup_send(engine, PGROUP_OP);
		msg->word = call->file->gen;
		msg->number = call->file->number;
		msg->op = call->op;
		call->gen = call->file->gen;
		call->file->in_flight++;
		leave(call);
		call->state = GCALL_SENT;
		cds_list_add_tail(&call->list, &engine->sent);
		engine->counts.ops_sent++;
	}
}

uint64_t gcalls_wake_ns(const struct pgroup_engine *engine)
{
	uint32_t limit = engine->config.tune.rate_limit;

	if (glist_empty(&engine->outgoing) || !limit)
		return UINT64_MAX;
	return engine->rate_ns + PGROUP_RATE_WINDOW_NS / limit -
	       PGROUP_RATE_WINDOW_NS;
}

/* Cancel */

static void send_cancel(struct pgroup_engine *engine, struct gcall *call)
{
	struct pgroup_msg *msg = pgroup_send(engine, PGROUP_OP);
	struct gcancel *cancel = engine->spare_cancel;

	engine->spare_cancel = NULL;
	cancel->id = call->id;
	cds_list_add_tail(&cancel->list, &engine->cancels);
	msg->number = call->file->number;
	msg->op = call->op;
	msg->cancel = true;
	call->cancelled = true;
}

int gcall_cancel(struct pgroup_engine *engine, uint64_t id)
{
	struct gcall *call = gcall_find(engine, id);
	struct range_owner who;

	if (!call)
		return -ENOENT;
	if (!call->op.wait || call->cancelled)
		return 0;
	switch (call->state) {
	case GCALL_PENDING:
	case GCALL_OUTGOING:
		gfile_run(engine, call->file);
		gcall_end(engine, call, -EINTR, NULL);
		return 0;
	case GCALL_WAITING:
		if (!gfile_is_ours(engine, call->file))
			break;
		who = (struct range_owner){ engine->config.inc,
					    call->op.owner };
		ug_assert(!range_cancel(engine->ranges, &call->file->table,
					&who, call->wait_id));
		gcall_end(engine, call, -EINTR, NULL);
		gapply_done(engine);
		return 0;
	case GCALL_SENT:
		break;
	case GCALL_GRANTED:
		return 0;
	}
	send_cancel(engine, call);
	return 0;
}

/* Quorum */

static void run_again(struct pgroup_engine *engine, struct gfile *file,
		      uint64_t arg)
{
	(void)arg;
	if (!glist_empty(&file->pending))
		gfile_run(engine, file);
}

void gcalls_quorate(struct pgroup_engine *engine, bool quorate)
{
	engine->stopped = !quorate;
	while (quorate && !glist_empty(&engine->granted))
		gcall_end(engine,
			  cds_list_first_entry(&engine->granted, struct gcall,
					       list),
			  0, NULL);
	gfiles_each(engine, run_again, 0);
}
