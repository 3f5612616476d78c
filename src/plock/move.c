/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * move.c - a file goes to the member that uses it.
 *
 *	X serialises it			  N makes all the calls
 *	 | TABLE: X's own locks, gen+1 ---->|	X decides nothing any more
 *	 |<------------------- TAKEN -------|	N decides
 *	 | MOVED --> home		    |
 *	 | BOUNCE what came meanwhile	    |
 *
 * Only X and N may have locks of the file, and nobody may wait: so no third
 * member has anything to lose, and N has its own locks and the answers to all
 * of its calls before TABLE comes, on the same link: also those of waits that
 * have just ended. Until TAKEN comes X keeps all, and goes on if N dies or is
 *in another epoch. X does not say DONE in a new epoch before it knows, so the
 *home does not miss a claim.
 */
#include <errno.h>
#include <string.h>

#include "plock/engine.h"

struct collecting {
	struct plock_engine *engine;
	struct plock_msg *msg; /* the last one */
	const struct file *file;
	enum plock_table table;
	uint64_t owner_node;
	uint64_t to;
	enum plock_msg_type type;
	uint64_t gen;
};

static void collect_message(struct collecting *c, bool first)
{
	c->msg = plock_send(c->engine, c->to, c->type, c->file);
	c->msg->gen = c->gen;
	c->msg->first = first;
}

static void collect(void *arg, const struct range_lock *lock)
{
	struct collecting *c = arg;

	if (lock->who.node != c->owner_node)
		return;
	if (!c->msg || c->msg->count == PLOCK_RECORDS)
		collect_message(c, !c->msg);
	c->msg->records[c->msg->count++] =
		(struct plock_record){ .table = c->table,
				       .kind = lock->kind,
				       .mode = lock->mode,
				       .pid = lock->pid,
				       .owner = lock->who.owner,
				       .start = lock->start,
				       .end = lock->end };
}

void records_send(struct plock_engine *engine, struct file *file,
		  uint64_t owner_node, uint64_t to, enum plock_msg_type type,
		  uint64_t gen, bool even_none)
{
	struct collecting c = { .engine = engine,
				.file = file,
				.owner_node = owner_node,
				.to = to,
				.type = type,
				.gen = gen };

	for (unsigned t = 0; t < PLOCK_TABLES; t++) {
		c.table = (enum plock_table)t;
		range_visit(engine->ranges, &file->tables[t], collect, NULL,
			    &c);
	}
	if (!c.msg && even_none)
		collect_message(&c, true);
	if (c.msg)
		c.msg->last = true;
}

/* No member that keeps to the protocol has granted both. */
static bool is_in_conflict(const struct plock_engine *engine,
			   const struct range_table *table,
			   const struct range_lock *lock)
{
	struct range_request req = { .who = lock->who,
				     .kind = lock->kind,
				     .mode = lock->mode,
				     .start = lock->start,
				     .end = lock->end };
	struct range_lock other;

	return range_get(engine->ranges, table, &req, &other) == 1;
}

int records_put(struct plock_engine *engine, struct file *file,
		const struct plock_msg *msg)
{
	for (unsigned i = 0; i < msg->count; i++) {
		const struct plock_record *r = &msg->records[i];
		struct range_lock lock = { .who = { msg->from, r->owner },
					   .mode = r->mode,
					   .kind = r->kind,
					   .start = r->start,
					   .end = r->end,
					   .pid = r->pid };
		struct range_table *table = &file->tables[r->table & 1];
		int error;

		if (is_in_conflict(engine, table, &lock))
			return -EINVAL;
		error = range_put(engine->ranges, table, &lock);
		if (error)
			return error == -EINVAL ? -EINVAL : -ENOMEM;
	}
	return 0;
}

struct third {
	uint64_t a, b;
	bool found;
};

static void look_for_third(void *arg, const struct range_lock *lock)
{
	struct third *third = arg;

	third->found |=
		lock->who.node != third->a && lock->who.node != third->b;
}

static bool may_move(const struct plock_engine *engine, const struct file *file,
		     uint64_t to)
{
	struct third third = { engine->config.node, to, false };

	if (!engine->settled || file->role != FILE_SERVES || file->closed ||
	    file->lent_count || !list_empty(&file->parked) ||
	    range_has_done(engine->ranges) ||
	    engine->now_ns - file->serves_since_ns < engine->config.stay_ns)
		return false;
	for (unsigned t = 0; t < PLOCK_TABLES; t++) {
		if (file->tables[t].wait_count ||
		    file->tables[t].lock_count > MOVE_LOCKS_MAX)
			return false;
		range_visit(engine->ranges, &file->tables[t], look_for_third,
			    NULL, &third);
	}
	return !third.found;
}

static void move_begin(struct plock_engine *engine, struct file *file,
		       uint64_t to)
{
	TRACE(engine, "file %llu: moves to %llx",
	      (unsigned long long)file->number, (unsigned long long)to);
	file_set_role(engine, file, FILE_MOVING);
	file->moving_to = to;
	engine->moving++;
	records_send(engine, file, engine->config.node, to, PLOCK_MSG_TABLE,
		     file->gen + 1, true);
}

void move_consider(struct plock_engine *engine, struct file *file,
		   const struct plock_msg *msg)
{
	if (engine->config.tuning.at_home)
		return;
	if (!file->op_count) {
		file->busy_node = msg->from;
		file->busy_count = 0;
		file->own_count = 0;
	}
	file->op_count++;
	file->busy_count += msg->from == file->busy_node;
	file->own_count += msg->from == engine->config.node;
	if (file->op_count < MOVE_WINDOW)
		return;
	file->op_count = 0;
	if (file->own_count || file->busy_count < MOVE_OF ||
	    !member_is(engine, file->busy_node) ||
	    !may_move(engine, file, file->busy_node))
		return;
	move_begin(engine, file, file->busy_node);
}

void move_abort_taking(struct plock_engine *engine, struct file *file)
{
	file->taking_from = 0;
	file_drop_others(engine, file);
}

int move_receive_table(struct plock_engine *engine, const struct plock_msg *msg)
{
	struct file *file = file_open(engine, msg->number);
	struct plock_msg *reply;
	int error;

	if (msg->epoch == engine->epoch) {
		if (file->role != FILE_CLIENT)
			return -EBADMSG;
		file->taking_from = msg->from;
		error = records_put(engine, file, msg);
		if (error)
			return error == -EINVAL ? -EBADMSG : error;
	}
	if (!msg->last)
		return 0;
	if (msg->epoch == engine->epoch) {
		file->taking_from = 0;
		serve_start(engine, file, msg->gen);
	}
	reply = plock_send(engine, msg->from, PLOCK_MSG_TAKEN, NULL);
	reply->number = msg->number;
	reply->gen = msg->gen;
	reply->status = msg->epoch == engine->epoch ? 0 : -ESTALE;
	return 0;
}

void move_undo(struct plock_engine *engine, struct file *file)
{
	engine->moving--;
	file->moving_to = 0;
	file_set_role(engine, file, FILE_SERVES);
}

void move_taken(struct plock_engine *engine, const struct plock_msg *msg)
{
	struct file *file = file_find(engine, msg->number);
	struct plock_msg *moved;

	if (!file || file->role != FILE_MOVING ||
	    file->moving_to != msg->from || msg->gen != file->gen + 1)
		return;
	if (msg->status) {
		move_undo(engine, file);
		home_claim(engine, file);
		epoch_try_done(engine);
		return;
	}
	engine->moving--;
	engine->counts.moves++;
	file->moving_to = 0;
	file_drop_others(engine, file);
	file_set_role(engine, file, FILE_CLIENT);
	file->serialiser = msg->from;
	file->gen = msg->gen;
	client_recall_calls(engine, file);
	moved = plock_send(engine, home_of(engine, file->number),
			   PLOCK_MSG_MOVED, file);
	moved->node = msg->from;
	epoch_try_done(engine);
}
