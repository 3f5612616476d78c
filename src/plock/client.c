/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * client.c - calls of processes here, from first to last.
 *
 *	held --> sent --> RESULT: answered
 *	  ^        |
 *	  '--------'	BOUNCE, the serialiser is gone, the file comes here
 *
 * Calls of one file go to its serialiser in order of issue, and so reach it,
 * as links keep order. A call is held while an earlier one is. When a call has
 * to be sent again, all that were sent are, in order: who serialises a file
 * gives it away only when nobody waits there, so of ours it has either answered
 * a call before (and the answer is here) or will bounce it.
 *
 * What processes here hold is in the tables of the file, too, when another
 * member serialises it: for that one's end.
 */
#include <errno.h>
#include <stdlib.h>

#include "plock/engine.h"

#define CALLS_FIRST 64u

int calls_init(struct plock_engine *engine)
{
	engine->calls_by_id = calloc(CALLS_FIRST, sizeof(struct call *));
	engine->calls_by_owner = calloc(CALLS_FIRST, sizeof(struct call *));
	engine->call_mask = CALLS_FIRST - 1;
	return engine->calls_by_id && engine->calls_by_owner ? 0 : -ENOMEM;
}

void calls_free(struct plock_engine *engine)
{
	for (uint32_t i = 0; engine->calls_by_id && i <= engine->call_mask;
	     i++) {
		while (engine->calls_by_id[i]) {
			struct call *call = engine->calls_by_id[i];

			engine->calls_by_id[i] = call->id_next;
			free(call);
		}
	}
	free(engine->calls_by_id);
	free(engine->calls_by_owner);
}

static uint32_t id_slot(uint64_t id, uint32_t mask)
{
	return (uint32_t)id & mask;
}

static uint32_t owner_slot(uint64_t owner, uint32_t mask)
{
	return (uint32_t)((owner * 0x9e3779b97f4a7c15u) >> 32) & mask;
}

static void calls_grow(struct plock_engine *engine)
{
	uint32_t size = (engine->call_mask + 1) * 2;
	struct call **ids = calloc(size, sizeof(*ids));
	struct call **owners = calloc(size, sizeof(*owners));

	if (!ids || !owners) {
		free(ids);
		free(owners);
		return;
	}
	for (uint32_t i = 0; i <= engine->call_mask; i++) {
		struct call *call, *next;

		for (call = engine->calls_by_id[i]; call; call = next) {
			uint32_t by_id = id_slot(call->id, size - 1);
			uint32_t by_owner =
				owner_slot(call->op.owner, size - 1);

			next = call->id_next;
			call->id_next = ids[by_id];
			ids[by_id] = call;
			call->owner_next = owners[by_owner];
			owners[by_owner] = call;
		}
	}
	free(engine->calls_by_id);
	free(engine->calls_by_owner);
	engine->calls_by_id = ids;
	engine->calls_by_owner = owners;
	engine->call_mask = size - 1;
}

struct call *call_find(const struct plock_engine *engine, uint64_t id)
{
	struct call *call = engine->calls_by_id[id_slot(id, engine->call_mask)];

	while (call && call->id != id)
		call = call->id_next;
	return call;
}

struct call *call_only(const struct plock_engine *engine, uint64_t owner)
{
	struct call *call = engine->calls_by_owner[owner_slot(
			    owner, engine->call_mask)],
		    *only = NULL;

	for (; call; call = call->owner_next) {
		if (call->op.owner != owner)
			continue;
		if (only)
			return NULL;
		only = call;
	}
	return only;
}

bool plock_knows(const struct plock_engine *engine, uint64_t owner)
{
	struct range_owner who = { engine->config.node, owner };
	const struct call *call =
		engine->calls_by_owner[owner_slot(owner, engine->call_mask)];

	while (call && call->op.owner != owner)
		call = call->owner_next;
	return call || range_knows(engine->ranges, &who);
}

/* For the search of range.h: of others' owners we do not know enough. */
bool owner_is_stuck(void *arg, const struct range_owner *who)
{
	const struct plock_engine *engine = arg;

	return who->node == engine->config.node &&
	       call_only(engine, who->owner);
}

static bool may_wait(const struct plock_op *op)
{
	return op->kind == PLOCK_SET && op->mode != RANGE_NONE && op->wait;
}

static bool is_unlock(const struct plock_op *op)
{
	return op->kind == PLOCK_CLOSE ||
	       (op->kind == PLOCK_SET && op->mode == RANGE_NONE);
}

static struct call *call_add(struct plock_engine *engine, struct file *file,
			     const struct plock_event *event)
{
	struct call *call = engine->spare_call;
	struct call **slot;

	if (engine->call_count > engine->call_mask)
		calls_grow(engine);
	engine->spare_call = NULL;
	*call = (struct call){ .file = file,
			       .ctx = event->call.ctx,
			       .op = event->call.op,
			       .id = ++engine->next_id,
			       .probe_ns = engine->now_ns +
					   engine->config.probe_ns };
	slot = &engine->calls_by_id[id_slot(call->id, engine->call_mask)];
	call->id_next = *slot;
	*slot = call;
	slot = &engine->calls_by_owner[owner_slot(call->op.owner,
						  engine->call_mask)];
	call->owner_next = *slot;
	*slot = call;
	engine->call_count++;
	cds_list_add_tail(&call->list, &file->held);
	CDS_INIT_LIST_HEAD(&call->waiting);
	if (may_wait(&call->op))
		cds_list_add_tail(&call->waiting, &engine->waiting);
	return call;
}

static void call_free(struct plock_engine *engine, struct call *call)
{
	struct call **at =
		&engine->calls_by_id[id_slot(call->id, engine->call_mask)];

	while (*at != call)
		at = &(*at)->id_next;
	*at = call->id_next;
	at = &engine->calls_by_owner[owner_slot(call->op.owner,
						engine->call_mask)];
	while (*at != call)
		at = &(*at)->owner_next;
	*at = call->owner_next;
	engine->call_count--;
	engine->answered_count -= call->answered;
	cds_list_del(&call->list);
	cds_list_del(&call->waiting);
	if (!engine->spare_call)
		engine->spare_call = call;
	else
		free(call);
}

void client_finish(struct plock_engine *engine, struct call *call, int status,
		   const struct range_lock *found)
{
	struct file *file = call->file;

	if (!call->answered)
		plock_answer(engine, call,
			     status && call->lowered ? -EIO : status, found);
	if (status == -EDEADLK)
		engine->counts.deadlocks++;
	call_free(engine, call);
	/* One that has the right to decide here waits for the last RESULT. */
	if (!list_empty(&file->held))
		file_run(engine, file);
}

static bool call_is_legal(const struct plock_op *op)
{
	if (op->table != PLOCK_FCNTL && op->table != PLOCK_FLOCK)
		return false;
	if ((op->table == PLOCK_FLOCK) != (op->owner_kind == RANGE_FLOCK))
		return false;
	if (op->kind == PLOCK_CLOSE)
		return true;
	return op->start <= op->end && op->end <= RANGE_END &&
	       (op->kind == PLOCK_SET || op->mode != RANGE_NONE);
}

int client_call(struct plock_engine *engine, struct plock_event *event)
{
	struct range_owner who = { .node = engine->config.node,
				   .owner = event->call.op.owner };
	struct file *file;
	struct call *call;
	bool first;

	if (!call_is_legal(&event->call.op))
		return -EINVAL;
	event->call.op.fair = !range_knows(engine->ranges, &who);
	file = file_open(engine, event->call.number);
	file_used(engine, file);
	first = list_empty(&file->held);
	call = call_add(engine, file, event);
	event->call.id = call->id;
	engine->counts.calls++;
	if (engine->stopped)
		client_answer_unlock(engine, call);
	if (first)
		client_send_next(engine, file);
	return 0;
}

/*
 * An flock that asks for more gives the old one back if it has to wait: so it
 * is no lock any more that we would swear to (spec 1.7).
 */
static void forget_converted(struct plock_engine *engine, struct file *file,
			     const struct plock_op *op)
{
	struct range_owner who = { .node = engine->config.node,
				   .owner = op->owner };
	struct range_request req = { .who = who,
				     .mode = RANGE_READ,
				     .end = RANGE_END };
	struct range_lock lock;

	req.who.owner = ~op->owner;
	if (op->kind != PLOCK_SET || op->table != PLOCK_FLOCK ||
	    op->mode != RANGE_WRITE ||
	    range_get(engine->ranges, &file->tables[PLOCK_FLOCK], &req, &lock))
		return;
	range_close(engine->ranges, &file->tables[PLOCK_FLOCK], &who);
}

static void send_op(struct plock_engine *engine, struct call *call, uint64_t to)
{
	struct plock_msg *msg =
		plock_send(engine, to, PLOCK_MSG_OP, call->file);

	msg->id = call->id;
	msg->op = call->op;
}

/* It is decided here, or waits here until it can be. */
static void serve_own(struct plock_engine *engine, struct call *call)
{
	struct plock_msg msg = { .type = PLOCK_MSG_OP,
				 .from = engine->config.node,
				 .to = engine->config.node,
				 .epoch = engine->epoch,
				 .number = call->file->number,
				 .gen = call->file->gen,
				 .id = call->id,
				 .op = call->op };

	serve_receive(engine, &msg);
}

/* A call that asks first needs one token for both. */
static void ask_for_call(struct plock_engine *engine, struct file *file)
{
	uint64_t home;

	if (file->asking || !engine->epoch)
		return;
	home = home_of(engine, file->number);
	if (!rate_may_send(engine, file, home))
		return;
	file->paid =
		engine->config.tuning.rate_limit && home != engine->config.node;
	client_ask(engine, file);
}

bool client_send_next(struct plock_engine *engine, struct file *file)
{
	struct call *call;

	if (list_empty(&file->held))
		return false;
	call = cds_list_first_entry(&file->held, struct call, list);
	if (call->cancelled) {
		client_finish(engine, call, -EINTR, NULL);
		return true;
	}
	if (engine->stopped || file->role == FILE_REBUILT)
		return false;
	if (file->lent && list_empty(&file->calls) &&
	    lend_call(engine, file, call))
		return true;
	if (file->role == FILE_CLIENT && !file->serialiser) {
		ask_for_call(engine, file);
		return false;
	}
	if (file->role == FILE_CLIENT &&
	    !rate_may_send(engine, file, file->serialiser))
		return false;
	cds_list_del(&call->list);
	cds_list_add_tail(&call->list, &file->calls);
	call->sent_gen = file->gen;
	if (file->role != FILE_CLIENT) {
		call->sent_to = engine->config.node;
		serve_own(engine, call);
		return true;
	}
	call->sent_to = file->serialiser;
	forget_converted(engine, file, &call->op);
	send_op(engine, call, file->serialiser);
	return true;
}

void client_ask(struct plock_engine *engine, struct file *file)
{
	if (file->asking || !engine->epoch)
		return;
	file->asking = true;
	plock_send(engine, home_of(engine, file->number), PLOCK_MSG_ACQUIRE,
		   file);
}

/* Locks of a file that another member serialises, as it has decided. */
static int note(struct plock_engine *engine, const struct call *call)
{
	const struct plock_op *op = &call->op;
	struct range_table *table = &call->file->tables[op->table];
	struct range_request req = { .who = { .node = engine->config.node,
					      .owner = op->owner },
				     .kind = op->owner_kind,
				     .mode = op->mode,
				     .start = op->start,
				     .end = op->end,
				     .pid = op->pid };
	struct range_lock lock = { .who = req.who,
				   .mode = op->mode,
				   .kind = op->owner_kind,
				   .start = op->start,
				   .end = op->end,
				   .pid = op->pid };

	switch (op->kind) {
	case PLOCK_SET:
		if (op->mode == RANGE_NONE)
			return range_set(engine->ranges, table, &req);
		return range_put(engine->ranges, table, &lock);
	case PLOCK_CLOSE:
		range_close(engine->ranges, table, &req.who);
		return 0;
	case PLOCK_GET:
		return 0;
	}
	return 0;
}

/*
 * The serialiser is gone, and may have done what was sent to it without that
 * the answer came here: then what we had before may be another's now. So of
 * what we swear to the calls under way take what they would take, or lower.
 * Should one that lowers be refused after all, -EIO says that it is lowered
 * nevertheless. There is memory: epoch_begin().
 */
void client_doubt_calls(struct plock_engine *engine, struct file *file)
{
	struct call *call;

	cds_list_for_each_entry (call, &file->calls, list) {
		struct range_owner who = { engine->config.node,
					   call->op.owner };
		struct range_table *table = &file->tables[call->op.table];

		if (is_unlock(&call->op)) {
			ug_assert(!note(engine, call));
			continue;
		}
		if (call->op.kind == PLOCK_SET && call->op.mode == RANGE_READ &&
		    range_lower(engine->ranges, table, &who, call->op.start,
				call->op.end))
			call->lowered = true;
	}
}

int client_result(struct plock_engine *engine, const struct plock_msg *msg)
{
	struct call *call = call_find(engine, msg->id);
	struct range_lock found = { 0 };

	if (!call || call->sent_to != msg->from)
		return 0;
	if (msg->status == PLOCK_LATER) {
		client_answer_unlock(engine, call);
		return 0;
	}
	if (msg->status == 0 && call->file->role == FILE_CLIENT &&
	    note(engine, call))
		return -ENOMEM;
	found = (struct range_lock){ .who = { msg->node, msg->found.owner },
				     .mode = msg->found.mode,
				     .kind = msg->found.kind,
				     .start = msg->found.start,
				     .end = msg->found.end,
				     .pid = msg->found.pid };
	client_finish(engine, call, msg->status, &found);
	return 0;
}

void client_recall_calls(struct plock_engine *engine, struct file *file)
{
	struct call *call;

	serve_unpark_own(engine, file);
	cds_list_for_each_entry (call, &file->calls, list)
		call->sent_to = 0;
	/* All that were sent are older than all that are held. */
	cds_list_splice(&file->calls, &file->held);
	CDS_INIT_LIST_HEAD(&file->calls);
	file_run(engine, file);
}

void client_bounced(struct plock_engine *engine, const struct plock_msg *msg)
{
	struct call *call = call_find(engine, msg->id);
	struct file *file;

	if (!call || call->sent_to != msg->from || call->sent_gen != msg->gen)
		return;
	file = call->file;
	engine->counts.bounces++;
	client_recall_calls(engine, file);
	if (file->role != FILE_CLIENT)
		return;
	if (file->serialiser == msg->from && file->gen == msg->gen) {
		file->serialiser = 0;
		file->lent = false;
	}
	if (msg->node_gen > file->gen && msg->node != engine->config.node &&
	    member_is(engine, msg->node)) {
		file->serialiser = msg->node;
		file->gen = msg->node_gen;
	}
}

void client_serves(struct plock_engine *engine, const struct plock_msg *msg)
{
	struct file *file = file_find(engine, msg->number);

	if (!file || !file->asking)
		return;
	file->asking = false;
	file_run(engine, file);
	if (file->role != FILE_CLIENT)
		return;
	if (msg->node == engine->config.node) {
		serve_start(engine, file, msg->gen);
	} else if (member_is(engine, msg->node)) {
		file->serialiser = msg->node;
		file->gen = msg->gen;
	}
}

int client_cancel(struct plock_engine *engine, uint64_t id, int status)
{
	struct call *call = call_find(engine, id);
	struct plock_msg *msg, own;

	if (!call)
		return -ENOENT;
	if (!may_wait(&call->op) || call->cancelled)
		return 0; /* its answer is on the way */
	if (!call->sent_to) {
		if (status == -EINTR)
			client_finish(engine, call, status, NULL);
		return 0;
	}
	call->cancelled = status == -EINTR;
	own = (struct plock_msg){ .type = PLOCK_MSG_CANCEL,
				  .from = engine->config.node,
				  .number = call->file->number,
				  .gen = call->sent_gen,
				  .id = call->id,
				  .status = status,
				  .op = call->op };
	if (call->sent_to == engine->config.node)
		return serve_cancel(engine, &own);
	msg = plock_send(engine, call->sent_to, PLOCK_MSG_CANCEL, call->file);
	msg->id = call->id;
	msg->status = status;
	msg->op = call->op;
	return 0;
}

/*
 * Its caller goes on; the call ends when it is done. Who does nothing but
 * unlock while this lasts would make ever more of them: at some number it
 * waits.
 */
void client_answer_unlock(struct plock_engine *engine, struct call *call)
{
	if (call->answered || !is_unlock(&call->op) ||
	    engine->answered_count >= engine->config.kept_max)
		return;
	plock_answer(engine, call, 0, NULL);
	call->answered = true;
	engine->answered_count++;
}

void client_answer_unlocks(struct plock_engine *engine, struct file *file)
{
	struct cds_list_head *lists[] = { &file->calls, &file->held };

	for (unsigned i = 0; i < UG_ARRAY_SIZE(lists); i++) {
		struct call *call;

		cds_list_for_each_entry (call, lists[i], list)
			client_answer_unlock(engine, call);
	}
}

static struct call *probe_next(struct plock_engine *engine)
{
	struct cds_list_head *lists[] = { &engine->waiting, &engine->probed };

	for (unsigned i = 0; i < UG_ARRAY_SIZE(lists); i++) {
		struct call *call;

		if (list_empty(lists[i]))
			continue;
		call = cds_list_first_entry(lists[i], struct call, waiting);
		if (call->probe_ns <= engine->now_ns)
			return call;
	}
	return NULL;
}

/* Each list is in order of probe_ns, as its delay is always the same. */
void client_tick(struct plock_engine *engine)
{
	struct call *call;

	for (unsigned n = 0; n < PROBE_BATCH; n++) {
		call = probe_next(engine);
		if (!call || plock_reserve(engine))
			return;
		call->probe_ns = engine->now_ns + PROBE_AGAIN_NS;
		cds_list_del(&call->waiting);
		cds_list_add_tail(&call->waiting, &engine->probed);
		probe_start(engine, call);
	}
}
