/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * lend.c - read locks that others grant.
 *
 *	serialiser		     D, a reader
 *	 | LEND ---------------------->|  grants and drops read locks
 *	 |			       |  of its processes by itself
 *	 | RECALL -------------------->|  a writer is there
 *	 |<---- RETURN: D's locks -----|  no more
 *
 * While it is lent nobody has a write lock, and nobody waits. The table of the
 * serialiser says nothing of D's read locks until RETURN, which replaces all
 * that it knows of them. D does without the serialiser only when none of its
 * calls is under way there, so all that is answered is in what it returns.
 */
#include <errno.h>

#include "plock/engine.h"

static bool only_reads(const struct plock_op *op)
{
	return op->kind == PLOCK_CLOSE || op->mode != RANGE_WRITE;
}

static unsigned lent_index(const struct file *file, uint64_t node)
{
	unsigned i = 0;

	while (i < file->lent_count && file->lent_to[i] != node)
		i++;
	return i;
}

void lend_consider(struct plock_engine *engine, struct file *file,
		   const struct plock_msg *msg)
{
	if (!only_reads(&msg->op)) {
		file->read_streak = 0;
		return;
	}
	if (file->read_streak < LEND_AFTER) {
		file->read_streak++;
		return;
	}
	if (engine->config.tuning.at_home || msg->from == engine->config.node ||
	    !engine->settled || !member_is(engine, msg->from) ||
	    file->role != FILE_SERVES || file->lent_count == LENT_MAX ||
	    lent_index(file, msg->from) < file->lent_count ||
	    (file->recalled_ns &&
	     engine->now_ns - file->recalled_ns < LEND_PAUSE_NS) ||
	    serve_has_writers(engine, file))
		return;
	file->lent_to[file->lent_count++] = msg->from;
	engine->counts.lends++;
	plock_send(engine, msg->from, PLOCK_MSG_LEND, file);
}

bool lend_needs_recall(const struct file *file, const struct plock_op *op)
{
	return file->role == FILE_SERVES && file->lent_count && !only_reads(op);
}

void lend_recall(struct plock_engine *engine, struct file *file)
{
	if (file->recalling || !file->lent_count)
		return;
	file->recalling = true;
	file->read_streak = 0;
	file->recalled_ns = engine->now_ns;
	engine->counts.recalls++;
	for (unsigned i = 0; i < file->lent_count; i++)
		plock_send(engine, file->lent_to[i], PLOCK_MSG_RECALL, file);
}

void lend_lent(struct plock_engine *engine, const struct plock_msg *msg)
{
	struct file *file = file_find(engine, msg->number);

	if (file && file->role == FILE_CLIENT &&
	    file->serialiser == msg->from && file->gen == msg->gen)
		file->lent = true;
}

int lend_recalled(struct plock_engine *engine, const struct plock_msg *msg)
{
	struct file *file = file_open(engine, msg->number);
	size_t locks = file->tables[PLOCK_FCNTL].lock_count +
		       (size_t)file->tables[PLOCK_FLOCK].lock_count;

	if (file->role != FILE_CLIENT)
		return 0;
	if (plock_reserve_updates(engine, locks / PLOCK_RECORDS + 2))
		return -ENOMEM;
	file->lent = false;
	records_send(engine, file, engine->config.node, msg->from,
		     PLOCK_MSG_RETURN, msg->gen, true);
	return 0;
}

static void returned(struct plock_engine *engine, struct file *file, unsigned i)
{
	file->lent_to[i] = file->lent_to[--file->lent_count];
	if (file->lent_count)
		return;
	file->recalling = false;
	file_run(engine, file);
}

int lend_returned(struct plock_engine *engine, const struct plock_msg *msg)
{
	struct file *file = file_find(engine, msg->number);
	unsigned i;
	int error;

	if (!file || file->role != FILE_SERVES || file->gen != msg->gen ||
	    !file->recalling)
		return 0;
	i = lent_index(file, msg->from);
	if (i == file->lent_count)
		return 0;
	if (msg->first) {
		for (unsigned t = 0; t < PLOCK_TABLES; t++)
			range_drop_node(engine->ranges, &file->tables[t],
					msg->from);
	}
	error = records_put(engine, file, msg);
	if (error)
		return error == -EINVAL ? -EBADMSG : error;
	if (msg->last)
		returned(engine, file, i);
	return 0;
}

bool lend_call(struct plock_engine *engine, struct file *file,
	       struct call *call)
{
	const struct plock_op *op = &call->op;
	struct range_request req = { .who = { engine->config.node, op->owner },
				     .kind = op->owner_kind,
				     .mode = op->mode,
				     .start = op->start,
				     .end = op->end,
				     .pid = op->pid };
	struct range_lock none = { 0 };
	int status = 0;

	if (!only_reads(op))
		return false;
	if (op->kind == PLOCK_SET)
		status = range_set(engine->ranges, &file->tables[op->table],
				   &req);
	if (op->kind == PLOCK_CLOSE)
		range_close(engine->ranges, &file->tables[op->table], &req.who);
	if (status == -ENOMEM)
		status = -ENOLCK;
	client_finish(engine, call, status, &none);
	return true;
}

/*
 * A reader that had this right is gone: what it held we do not know. Until it
 * is released the file is closed.
 */
void lend_forget(struct plock_engine *engine, struct file *file, uint64_t node)
{
	unsigned i = lent_index(file, node);

	if (i == file->lent_count)
		return;
	file->closed |= engine->gone_count > 0;
	returned(engine, file, i);
}
