/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * epoch.c - members come and go.
 *
 *	each member, in the new epoch	  the home of a file
 *	 CLAIM what it serialises	   |
 *	 REGISTER its locks of files whose |
 *	   serialiser is gone		   |
 *	 DONE, to all ------------------->| all have said it: now it knows
 *	 ACQUIRE what it has calls for --->| waits until then
 *
 * Who serialises a file goes on at once: the locks of those who are gone stay
 * in its tables until they are released, their waits go. A file whose
 * serialiser is gone is built again by its home out of what the clients hold;
 * what that one held itself, and third ones that are gone, nobody knows: it
 * stays closed until all of them are released.
 *
 * A gone member may have locked files whose home has no record, because the
 * home was another one then. What we can be sure of: home.c, nobody_unknown().
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "plock/engine.h"

static bool list_has(const uint64_t *nodes, unsigned count, uint64_t node)
{
	for (unsigned i = 0; i < count; i++) {
		if (nodes[i] == node)
			return true;
	}
	return false;
}

bool member_is(const struct plock_engine *engine, uint64_t node)
{
	return list_has(engine->nodes, engine->node_count, node);
}

bool gone_is(const struct plock_engine *engine, uint64_t node)
{
	return list_has(engine->gone, engine->gone_count, node);
}

/* Room for count of them, and these if there are any. */
static uint64_t *copy(const uint64_t *nodes, unsigned count)
{
	uint64_t *list = malloc((count + 1) * sizeof(*list));

	if (list && nodes && count)
		memcpy(list, nodes, count * sizeof(*list));
	return list;
}

/* What the members' coming and going makes us say, at most. */
static size_t updates_due(const struct plock_engine *engine)
{
	size_t count = engine->node_count + PLOCK_NODES_MAX;
	const struct file *file;

	count += engine->call_count;
	cds_list_for_each_entry (file, &engine->idle, idle) {
		count += 4;
		for (unsigned t = 0; t < PLOCK_TABLES; t++)
			count += file->tables[t].lock_count / PLOCK_RECORDS;
	}
	return count;
}

/* Those who were members and are none any more lose what is only theirs. */
struct change {
	uint64_t *old;
	unsigned old_count;
};

static void forget_gone(struct plock_engine *engine, struct file *file,
			const struct change *change)
{
	for (unsigned i = 0; i < change->old_count; i++) {
		if (member_is(engine, change->old[i]))
			continue;
		serve_forget_node(engine, file, change->old[i]);
		lend_forget(engine, file, change->old[i]);
	}
}

static void served_file(struct plock_engine *engine, struct file *file,
			const struct change *change)
{
	forget_gone(engine, file, change);
	switch (file->role) {
	case FILE_CLIENT:
	case FILE_REBUILT:
		return;
	case FILE_RELEASING:
		/* It is empty; the home may have agreed already. */
		file_set_role(engine, file, FILE_CLIENT);
		return;
	case FILE_MOVING:
		if (member_is(engine, file->moving_to))
			return; /* DONE waits for TAKEN */
		/* It may have taken it, and granted locks to itself. */
		move_undo(engine, file);
		file->closed = engine->gone_count > 0;
		break;
	case FILE_SERVES:
		break;
	}
	home_claim(engine, file);
}

static void client_file(struct plock_engine *engine, struct file *file)
{
	if (file->role != FILE_CLIENT)
		return;
	if (file->taking_from)
		move_abort_taking(engine, file);
	if (file->serialiser && !member_is(engine, file->serialiser)) {
		file->serialiser = 0;
		file->lent = false;
		client_doubt_calls(engine, file);
		client_recall_calls(engine, file);
		client_answer_unlocks(engine, file);
	}
	if (file->serialiser)
		return;
	if (file_has_locks(file))
		records_send(engine, file, engine->config.node,
			     home_of(engine, file->number), PLOCK_MSG_REGISTER,
			     file->gen, false);
	if (file_has_locks(file) || !list_empty(&file->held))
		client_ask(engine, file);
}

static void see(struct plock_engine *engine)
{
	for (unsigned i = 0; engine->seen && i < engine->node_count; i++) {
		if (list_has(engine->seen, engine->seen_count,
			     engine->nodes[i]))
			continue;
		if (engine->seen_count == 2 * PLOCK_NODES_MAX) {
			free(engine->seen);
			engine->seen = NULL;
			return;
		}
		engine->seen[engine->seen_count++] = engine->nodes[i];
	}
}

static void begin(struct plock_engine *engine, const struct change *change)
{
	struct file *file;

	engine->settled = false;
	engine->done_sent = false;
	engine->done_count = 0;
	engine->future_due = true;
	parked_free_all(engine, &engine->questions);
	see(engine);
	cds_list_for_each_entry (file, &engine->idle, idle) {
		file->asking = false;
		home_new_epoch(engine, file);
		served_file(engine, file, change);
		client_file(engine, file);
		file_run(engine, file);
	}
	epoch_try_done(engine);
}

static bool list_is_legal(const struct plock_engine *engine,
			  const struct plock_event *event)
{
	return event->members.epoch > engine->epoch &&
	       event->members.count <= PLOCK_NODES_MAX &&
	       event->members.gone_count <= PLOCK_NODES_MAX &&
	       list_has(event->members.nodes, event->members.count,
			engine->config.node);
}

int epoch_begin(struct plock_engine *engine, const struct plock_event *event)
{
	struct change change = { engine->nodes, engine->node_count };
	uint64_t *nodes, *gone, *done;

	if (!list_is_legal(engine, event))
		return -EINVAL;
	if (plock_reserve_updates(engine, updates_due(engine)) ||
	    ranges_reserve(engine->ranges, engine->call_count))
		return -ENOMEM;
	nodes = copy(event->members.nodes, event->members.count);
	gone = copy(event->members.gone, event->members.gone_count);
	done = copy(NULL, event->members.count);
	if (!nodes || !gone || !done)
		goto no_memory;
	free(engine->gone);
	free(engine->done);
	engine->nodes = nodes;
	engine->node_count = event->members.count;
	engine->gone = gone;
	engine->gone_count = event->members.gone_count;
	engine->done = done;
	engine->epoch = event->members.epoch;
	TRACE(engine, "epoch %llu: %u members, %u gone",
	      (unsigned long long)engine->epoch, engine->node_count,
	      engine->gone_count);
	begin(engine, &change);
	free(change.old);
	return 0;
no_memory:
	free(nodes);
	free(gone);
	free(done);
	return -ENOMEM;
}

void epoch_try_done(struct plock_engine *engine)
{
	if (!engine->epoch || engine->done_sent || engine->moving)
		return;
	engine->done_sent = true;
	for (unsigned i = 0; i < engine->node_count; i++)
		plock_send(engine, engine->nodes[i], PLOCK_MSG_DONE, NULL);
}

/* From here on we know the serialisers of all files whose home we are. */
static void know_all(struct plock_engine *engine)
{
	uint64_t *seen;

	if (!engine->settled || engine->gone_count)
		return;
	seen = malloc(2 * PLOCK_NODES_MAX * sizeof(*seen));
	free(engine->seen);
	engine->seen = seen;
	engine->seen_count = 0;
	see(engine);
}

void epoch_done(struct plock_engine *engine, const struct plock_msg *msg)
{
	if (list_has(engine->done, engine->done_count, msg->from))
		return;
	engine->done[engine->done_count++] = msg->from;
	if (engine->done_count < engine->node_count)
		return;
	engine->settled = true;
	TRACE(engine, "epoch %llu: settled", (unsigned long long)engine->epoch);
	home_settle(engine);
	know_all(engine);
}

int epoch_released(struct plock_engine *engine, uint64_t node)
{
	struct file *file;

	if (member_is(engine, node))
		return -EINVAL;
	for (unsigned i = 0; i < engine->gone_count; i++) {
		if (engine->gone[i] == node)
			engine->gone[i] = engine->gone[--engine->gone_count];
	}
	cds_list_for_each_entry (file, &engine->idle, idle) {
		for (unsigned t = 0; t < PLOCK_TABLES; t++)
			range_drop_node(engine->ranges, &file->tables[t], node);
		if (file->closed && !engine->gone_count) {
			file->closed = false;
			file_run(engine, file);
		}
	}
	know_all(engine);
	return 0;
}

static bool handle_first(struct plock_engine *engine, struct parked *parked,
			 int *error)
{
	struct plock_msg msg = parked->msg;

	*error = plock_handle(engine, &msg);
	if (*error == -ENOMEM)
		return true;
	parked_free(engine, parked);
	return true;
}

/*
 * Of the messages of epochs to come the first one is looked at: those of one
 * member are in order, and of one epoch all are of one meaning.
 */
bool epoch_run(struct plock_engine *engine, int *error)
{
	struct parked *parked;

	if (engine->future_due) {
		cds_list_for_each_entry (parked, &engine->future, list) {
			if (parked->msg.epoch <= engine->epoch)
				return handle_first(engine, parked, error);
		}
		engine->future_due = false;
	}
	if (!engine->settled || list_empty(&engine->questions))
		return false;
	parked = cds_list_first_entry(&engine->questions, struct parked, list);
	return handle_first(engine, parked, error);
}
