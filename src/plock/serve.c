/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * serve.c - the serialiser: one member decides for a file, one call after the
 * other.
 *
 * What cannot be decided now is parked, and all that comes after it: until
 * read locks that are lent have been recalled, until it is known whether the
 * file moves, until nobody unknown can hold a lock of it. What comes where the
 * file is not served any more is bounced.
 */
#include <errno.h>
#include <stdlib.h>

#include "plock/engine.h"

void serve_start(struct plock_engine *engine, struct file *file, uint64_t gen)
{
	file->gen = gen;
	file->serialiser = 0;
	file->asking = false;
	file->lent = false;
	file->recalling = false;
	file->closed = false;
	file->lent_count = 0;
	file->op_count = 0;
	file->read_streak = 0;
	file->serves_since_ns = engine->now_ns;
	rate_forget(engine, file);
	file_set_role(engine, file, FILE_SERVES);
	client_recall_calls(engine, file);
}

bool serve_is_blocked(const struct plock_engine *engine,
		      const struct file *file)
{
	if (file->role == FILE_CLIENT)
		return file->asking;
	return file->role != FILE_SERVES || file->closed || file->recalling ||
	       engine->stopped;
}

static void respond(struct plock_engine *engine, uint64_t to, uint64_t id,
		    int status, const struct range_lock *found)
{
	struct plock_msg *msg;
	struct call *call;

	if (to == engine->config.node) {
		call = call_find(engine, id);
		if (!call || call->sent_to != to)
			return;
		if (status == PLOCK_LATER)
			client_answer_unlock(engine, call);
		else
			client_finish(engine, call, status, found);
		return;
	}
	if (!member_is(engine, to))
		return;
	msg = plock_send(engine, to, PLOCK_MSG_RESULT, NULL);
	msg->id = id;
	msg->status = status;
	if (!found)
		return;
	msg->node = found->who.node;
	msg->found = (struct plock_record){ .kind = found->kind,
					    .mode = found->mode,
					    .pid = found->pid,
					    .owner = found->who.owner,
					    .start = found->start,
					    .end = found->end };
}

bool serve_answer_done(struct plock_engine *engine)
{
	struct range_done done;

	if (!range_next_done(engine->ranges, &done))
		return false;
	respond(engine, done.who.node, done.ctx, done.status, NULL);
	return true;
}

void serve_bounce(struct plock_engine *engine, const struct plock_msg *msg)
{
	struct file *file = file_find(engine, msg->number);
	struct plock_msg *bounce;

	if (!member_is(engine, msg->from))
		return;
	bounce = plock_send(engine, msg->from, PLOCK_MSG_BOUNCE, NULL);
	bounce->number = msg->number;
	bounce->gen = msg->gen;
	bounce->id = msg->id;
	if (!file)
		return;
	bounce->node = file->role == FILE_CLIENT ? file->serialiser
						 : engine->config.node;
	bounce->node_gen = bounce->node ? file->gen : 0;
}

static struct range_request request_of(const struct plock_engine *engine,
				       const struct plock_msg *msg)
{
	const struct plock_op *op = &msg->op;

	return (struct range_request){ .who = { msg->from, op->owner },
				       .kind = op->owner_kind,
				       .mode = op->mode,
				       .start = op->start,
				       .end = op->end,
				       .pid = op->pid,
				       .wait = op->wait,
				       .fair = op->fair,
				       .now_ns = engine->now_ns,
				       .ctx = msg->id };
}

static void decide(struct plock_engine *engine, struct file *file,
		   const struct plock_msg *msg)
{
	struct range_request req = request_of(engine, msg);
	struct range_table *table = &file->tables[msg->op.table];
	struct range_lock found = { 0 };
	int status = 0;

	switch (msg->op.kind) {
	case PLOCK_SET:
		status = range_set(engine->ranges, table, &req);
		break;
	case PLOCK_GET:
		range_get(engine->ranges, table, &req, &found);
		break;
	case PLOCK_CLOSE:
		range_close(engine->ranges, table, &req.who);
		break;
	}
	if (status == -EINPROGRESS)
		return;
	if (status == -ENOMEM)
		status = -ENOLCK;
	respond(engine, msg->from, msg->id, status, &found);
}

static void execute(struct plock_engine *engine, struct file *file,
		    const struct plock_msg *msg)
{
	file_used(engine, file);
	decide(engine, file, msg);
	move_consider(engine, file, msg);
	lend_consider(engine, file, msg);
}

/*
 * An unlock of a file that is closed changes nothing that anybody could see
 * before it is open: who asked may go on. A lock can be refused if too much is
 * kept of its sender; an unlock cannot.
 */
static int park(struct plock_engine *engine, struct file *file,
		const struct plock_msg *msg)
{
	bool unlock = msg->op.kind == PLOCK_CLOSE ||
		      (msg->op.kind == PLOCK_SET && msg->op.mode == RANGE_NONE);
	size_t most = engine->config.kept_max;

	if (parked_keep(engine, &file->parked, msg, unlock ? 2 * most : most)) {
		if (unlock)
			return -EBADMSG;
		respond(engine, msg->from, msg->id, -ENOLCK, NULL);
		return 0;
	}
	file->parked_count++;
	if (file->role == FILE_SERVES && file->closed && unlock)
		respond(engine, msg->from, msg->id, PLOCK_LATER, NULL);
	return 0;
}

static bool op_is_legal(const struct plock_op *op)
{
	return op->kind == PLOCK_CLOSE ||
	       ((op->kind == PLOCK_SET || op->kind == PLOCK_GET) &&
		op->start <= op->end && op->end <= RANGE_END);
}

int serve_receive(struct plock_engine *engine, const struct plock_msg *msg)
{
	struct file *file = file_find(engine, msg->number);

	if (!op_is_legal(&msg->op))
		return -EBADMSG;
	if (!file || (file->role == FILE_CLIENT && !file->asking) ||
	    (file->role != FILE_CLIENT && msg->gen != file->gen)) {
		serve_bounce(engine, msg);
		return 0;
	}
	if (!serve_is_blocked(engine, file) && list_empty(&file->parked) &&
	    lend_needs_recall(file, &msg->op))
		lend_recall(engine, file);
	if (serve_is_blocked(engine, file) || !list_empty(&file->parked))
		return park(engine, file, msg);
	execute(engine, file, msg);
	return 0;
}

static void unpark(struct plock_engine *engine, struct file *file,
		   struct parked *parked)
{
	file->parked_count--;
	parked_free(engine, parked);
}

static void unpark_node(struct plock_engine *engine, struct file *file,
			uint64_t node)
{
	struct parked *parked, *next;

	cds_list_for_each_entry_safe (parked, next, &file->parked, list) {
		if (parked->msg.from == node)
			unpark(engine, file, parked);
	}
}

void serve_unpark_own(struct plock_engine *engine, struct file *file)
{
	unpark_node(engine, file, engine->config.node);
}

int serve_cancel(struct plock_engine *engine, const struct plock_msg *msg)
{
	struct range_owner who = { msg->from, msg->op.owner };
	struct file *file = file_find(engine, msg->number);
	struct parked *parked, *next;

	if (!file)
		return 0;
	cds_list_for_each_entry_safe (parked, next, &file->parked, list) {
		if (parked->msg.from != msg->from || parked->msg.id != msg->id)
			continue;
		unpark(engine, file, parked);
		respond(engine, msg->from, msg->id, msg->status, NULL);
		return 0;
	}
	if (range_cancel(engine->ranges, &file->tables[msg->op.table], &who,
			 msg->id))
		return 0; /* it is answered, and that is on the way */
	respond(engine, msg->from, msg->id, msg->status, NULL);
	return 0;
}

static bool run_parked(struct plock_engine *engine, struct file *file)
{
	struct parked *parked;
	struct plock_msg msg;

	if (list_empty(&file->parked) || serve_is_blocked(engine, file))
		return false;
	parked = cds_list_first_entry(&file->parked, struct parked, list);
	if (file->role == FILE_SERVES && parked->msg.gen == file->gen &&
	    lend_needs_recall(file, &parked->msg.op)) {
		lend_recall(engine, file);
		if (file->recalling)
			return true;
	}
	msg = parked->msg;
	unpark(engine, file, parked);
	if (file->role == FILE_SERVES && msg.gen == file->gen)
		execute(engine, file, &msg);
	else
		serve_bounce(engine, &msg);
	return true;
}

bool serve_run(struct plock_engine *engine)
{
	struct file *file;

	while (!list_empty(&engine->runnable)) {
		file = cds_list_first_entry(&engine->runnable, struct file,
					    runnable);
		if (run_parked(engine, file) || client_send_next(engine, file))
			return true;
		cds_list_del(&file->runnable);
		CDS_INIT_LIST_HEAD(&file->runnable);
	}
	return false;
}

void serve_forget_node(struct plock_engine *engine, struct file *file,
		       uint64_t node)
{
	unpark_node(engine, file, node);
	for (unsigned t = 0; t < PLOCK_TABLES; t++)
		range_drop_waits(engine->ranges, &file->tables[t], node);
}

bool serve_has_writers(const struct plock_engine *engine,
		       const struct file *file)
{
	struct range_request all = { .mode = RANGE_READ, .end = RANGE_END };
	struct range_lock lock;

	for (unsigned t = 0; t < PLOCK_TABLES; t++) {
		if (file->tables[t].wait_count ||
		    range_get(engine->ranges, &file->tables[t], &all, &lock))
			return true;
	}
	return false;
}
