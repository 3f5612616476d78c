/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * pgroupapply.c - operations, in the order of the group.
 *
 * An operation counts if its file is shared, and still is what it was when the
 * operation was sent (gen). All members that have the tables know that alike.
 * If it does not count nobody applies it, and its sender tries again:
 *
 *	A: OP ------.			    all: the file is forgotten
 *	B: DROP --------> delivered first;  OP: all ignore it, A asks for the
 *					    file, and does it then
 *
 * Who waits is granted as soon as nothing is in the way, the oldest first; a
 * later reader passes an earlier writer (the historic rule: there is no
 * fairness). The range engine finds them in an order that depends on nothing
 * but the tables, so it is the same everywhere.
 */
#include <errno.h>
#include <stdlib.h>

#include "plock/pgroup_impl.h"

static struct range_request request_of(const struct plock_op *op, uint64_t inc)
{
	return (struct range_request){ .who = { inc, op->owner },
				       .kind = op->owner_kind,
				       .mode = op->mode,
				       .start = op->start,
				       .end = op->end,
				       .pid = op->pid,
				       .wait = op->wait };
}

void gapply_done(struct pgroup_engine *engine)
{
	struct range_done done;

	while (range_next_done(engine->ranges, &done)) {
		struct gcall *call;

		if (done.who.node != engine->config.inc)
			continue;
		call = gcall_of_wait(engine, done.ctx);
		ug_assert(call && call->state == GCALL_WAITING);
		if (done.status)
			gcall_end(engine, call, done.status, NULL);
		else
			gcall_granted(engine, call);
	}
}

/*
 * Into the table. call: of ours, or NULL. 0, or -ENOMEM: nothing has changed.
 */
static int apply(struct pgroup_engine *engine, struct gfile *file,
		 const struct plock_op *op, uint64_t inc, struct gcall *call)
{
	struct range_request req = request_of(op, inc);
	struct range_lock found = { 0 };
	int result;

	if (op->kind == PLOCK_GET) {
		if (!call)
			return 0;
		range_get(engine->ranges, &file->table, &req, &found);
		gcall_end(engine, call, 0, &found);
		return 0;
	}
	if (op->kind == PLOCK_CLOSE) {
		range_close(engine->ranges, &file->table, &req.who);
		gapply_done(engine);
		if (call)
			gcall_end(engine, call, 0, NULL);
		return 0;
	}
	req.ctx = engine->next_wait;
	req.now_ns = engine->arrivals;
	result = range_set(engine->ranges, &file->table, &req);
	if (result == -ENOMEM || result == -ENOLCK)
		return -ENOMEM;
	engine->next_wait++;
	engine->arrivals++;
	gapply_done(engine);
	if (!call)
		return 0;
	if (result == -EINPROGRESS)
		gcall_waits(engine, call, req.ctx);
	else if (!result)
		gcall_granted(engine, call);
	else
		gcall_end(engine, call, result, NULL);
	return 0;
}

int gapply_local(struct pgroup_engine *engine, struct gcall *call)
{
	return apply(engine, call->file, &call->op, engine->config.inc, call);
}

/* Cancel: the oldest wait that is like this */

struct search {
	const struct plock_op *op;
	uint64_t inc;
	uint64_t wait_id;
	uint64_t came;
};

static void compare(void *arg, const struct range_wait *wait)
{
	const struct range_request *req = &wait->req;
	struct search *s = arg;

	if (req->who.node != s->inc || req->who.owner != s->op->owner ||
	    req->pid != s->op->pid || req->mode != s->op->mode ||
	    req->start != s->op->start || req->end != s->op->end ||
	    (s->wait_id && req->now_ns > s->came))
		return;
	s->wait_id = req->ctx;
	s->came = req->now_ns;
}

static uint64_t take_back(struct pgroup_engine *engine, struct gfile *file,
			  const struct plock_op *op, uint64_t inc)
{
	struct range_owner who = { inc, op->owner };
	struct search s = { .op = op, .inc = inc };

	range_visit(engine->ranges, &file->table, NULL, compare, &s);
	if (s.wait_id)
		ug_assert(!range_cancel(engine->ranges, &file->table, &who,
					s.wait_id));
	return s.wait_id;
}

/*
 * Our own cancel has come. The wait that it has ended may be that of another
 * call, which is like this one: two threads of a process. Then they change
 * places; and if there is no call any more that was meant, the other is done
 * once more.
 */
static void cancelled(struct pgroup_engine *engine, uint64_t wait_id)
{
	struct gcancel *cancel =
		cds_list_first_entry(&engine->cancels, struct gcancel, list);
	struct gcall *call = gcall_find(engine, cancel->id);
	struct gcall *other = wait_id ? gcall_of_wait(engine, wait_id) : NULL;

	cds_list_del(&cancel->list);
	free(cancel);
	if (!other)
		return;
	if (call && call != other && call->state == GCALL_WAITING) {
		gcall_swap_waits(engine, call, other);
		other = call;
	}
	if (other == call)
		gcall_end(engine, call, -EINTR, NULL);
	else
		gcall_requeue(engine, other);
}

static void apply_cancel(struct pgroup_engine *engine, struct gfile *file,
			 const struct pgroup_msg *msg, uint64_t inc, bool own)
{
	uint64_t wait_id = 0;

	if (file && file->state == PGROUP_SHARED)
		wait_id = take_back(engine, file, &msg->op, inc);
	if (own)
		cancelled(engine, wait_id);
	gapply_done(engine);
	if (file)
		gfile_put(engine, file);
}

/* An operation */

static bool counts(const struct pgroup_engine *engine, const struct gfile *file,
		   const struct pgroup_msg *msg)
{
	return !engine->config.ownership ||
	       (file && file->state == PGROUP_SHARED && file->gen == msg->word);
}

static void not_applied(struct pgroup_engine *engine, struct gcall *call)
{
	GTRACE(engine, "call %llu comes back", (unsigned long long)call->id);
	call->file->in_flight--;
	ug_assert(call->file->stale);
	call->file->stale--;
	gfile_run(engine, call->file);
	gcall_requeue(engine, call);
}

int gapply_op(struct pgroup_engine *engine, uint64_t from,
	      const struct gmember *member, const struct pgroup_msg *msg)
{
	struct gfile *file = gfile_find(engine, msg->number, msg->op.table);
	bool own = from == engine->config.proc;
	struct gcall *call = NULL;
	int error;

	if (msg->cancel) {
		apply_cancel(engine, file, msg, member->inc, own);
		return 0;
	}
	if (own) {
		ug_assert(!glist_empty(&engine->sent));
		call = cds_list_first_entry(&engine->sent, struct gcall, list);
	}
	if (!counts(engine, file, msg)) {
		if (call)
			not_applied(engine, call);
		return 0;
	}
	file = gfile_open(engine, msg->number, msg->op.table);
	error = apply(engine, file, &msg->op, member->inc, call);
	if (!error) {
		gfile_used(engine, file);
		file->in_flight -= own;
	}
	gfile_put(engine, file);
	return error;
}

/* A lock or a wait as another one had it, that must be possible. */
int gapply_record(struct pgroup_engine *engine, struct gfile *file,
		  const struct pgroup_record *record, uint64_t inc)
{
	struct range_request req = { .who = { inc, record->owner },
				     .kind = record->kind,
				     .mode = record->mode,
				     .start = record->start,
				     .end = record->end,
				     .pid = record->pid,
				     .wait = record->waiter,
				     .ctx = engine->next_wait,
				     .now_ns = engine->arrivals };
	struct range_lock found;
	int result;

	if (range_get(engine->ranges, &file->table, &req, &found) !=
	    record->waiter)
		return -EBADMSG;
	result = range_set(engine->ranges, &file->table, &req);
	if (result == -ENOMEM || result == -ENOLCK)
		return -ENOMEM;
	engine->next_wait++;
	engine->arrivals++;
	return 0;
}
