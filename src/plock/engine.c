/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * engine.c - the one door: events in, updates out.
 *
 * A step reserves memory, changes things, and leaves what may be much (answers
 * to many who waited, calls to be sent again) in lists. Then one thing after
 * the other is taken from these lists, each with memory reserved before. If
 * there is none, the rest stays there and comes first in the next step.
 *
 * Messages to ourselves are in such a list, too: a member is client, serialiser
 * and home of its own files as it is of others'. Only calls of a file that is
 * served here go without.
 */
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/grow.h"
#include "plock/engine.h"

/* Updates that the handling of one message or call causes at most: TABLEs. */
#define UPDATES_OF_A_STEP (64u + PLOCK_TABLES * MOVE_LOCKS_MAX / PLOCK_RECORDS)

int plock_tune(struct plock_engine *engine, const struct plock_tuning *tuning)
{
	struct plock_tuning *to = &engine->config.tuning;

	if (tuning->rate_limit > PLOCK_RATE_MAX)
		return -EINVAL;
	*to = *tuning;
	if (!to->idle_ns)
		to->idle_ns = PLOCK_IDLE_NS;
	if (!to->drop_count)
		to->drop_count = PLOCK_IDLE_BATCH;
	engine->drop_ns = 0; /* of another rhythm */
	return 0;
}

int plock_engine_new(const struct plock_config *config,
		     struct plock_engine **out)
{
	struct range_config ranges = { .one_wait = owner_is_stuck };
	struct plock_engine *engine;

	if (!config->node)
		return -EINVAL;
	engine = calloc(1, sizeof(*engine));
	if (!engine)
		return -ENOMEM;
	engine->config = *config;
	if (plock_tune(engine, &config->tuning)) {
		free(engine);
		return -EINVAL;
	}
	if (!engine->config.stay_ns)
		engine->config.stay_ns = PLOCK_STAY_NS;
	if (!engine->config.probe_ns)
		engine->config.probe_ns = PLOCK_PROBE_NS;
	if (!engine->config.kept_max)
		engine->config.kept_max = PLOCK_KEPT_MAX;
	CDS_INIT_LIST_HEAD(&engine->idle);
	CDS_INIT_LIST_HEAD(&engine->runnable);
	CDS_INIT_LIST_HEAD(&engine->throttled);
	CDS_INIT_LIST_HEAD(&engine->waiting);
	CDS_INIT_LIST_HEAD(&engine->probed);
	CDS_INIT_LIST_HEAD(&engine->future);
	CDS_INIT_LIST_HEAD(&engine->questions);
	ranges.arg = engine;
	if (ranges_new(&ranges, &engine->ranges) || files_init(engine) ||
	    calls_init(engine)) {
		plock_engine_free(engine);
		return -ENOMEM;
	}
	*out = engine;
	return 0;
}

void plock_engine_free(struct plock_engine *engine)
{
	if (!engine)
		return;
	calls_free(engine);
	files_free(engine);
	parked_free_all(engine, &engine->future);
	parked_free_all(engine, &engine->questions);
	ranges_free(engine->ranges);
	free(engine->own);
	free(engine->spare_file);
	free(engine->spare_call);
	free(engine->spare_parked);
	free(engine->nodes);
	free(engine->gone);
	free(engine->done);
	free(engine->seen);
	free(engine);
}

/* Memory */

static int reserve_out(struct plock_updates *out, size_t count)
{
	struct plock_update *list = ug_grow(out->list, &out->space,
					    out->count + count, sizeof(*list));

	if (!list)
		return -ENOMEM;
	out->list = list;
	return 0;
}

static int reserve_own(struct plock_engine *engine, size_t count)
{
	struct plock_msg *own;

	if (engine->own_first == engine->own_end)
		engine->own_first = engine->own_end = 0;
	own = ug_grow(engine->own, &engine->own_space, engine->own_end + count,
		      sizeof(*own));
	if (!own)
		return -ENOMEM;
	engine->own = own;
	return 0;
}

int plock_reserve_updates(struct plock_engine *engine, size_t count)
{
	if (reserve_out(engine->out, count) || reserve_own(engine, count))
		return -ENOMEM;
	return 0;
}

int plock_reserve(struct plock_engine *engine)
{
	if (!engine->spare_file)
		engine->spare_file = malloc(sizeof(struct file));
	if (!engine->spare_call)
		engine->spare_call = malloc(sizeof(struct call));
	if (!engine->spare_parked)
		engine->spare_parked = malloc(sizeof(struct parked));
	if (!engine->spare_file || !engine->spare_call || !engine->spare_parked)
		return -ENOMEM;
	/* No unlock may find that there is none: it may have been answered. */
	if (ranges_reserve(engine->ranges, 1) == -ENOMEM)
		return -ENOMEM;
	return plock_reserve_updates(engine,
				     UPDATES_OF_A_STEP + engine->node_count);
}

void plock_updates_free(struct plock_updates *out)
{
	free(out->list);
	*out = (struct plock_updates){ 0 };
}

/* Updates */

struct plock_msg *plock_send(struct plock_engine *engine, uint64_t to,
			     enum plock_msg_type type, const struct file *file)
{
	struct plock_updates *out = engine->out;
	struct plock_msg *msg;

	if (to == engine->config.node) {
		ug_assert(engine->own_end < engine->own_space);
		msg = &engine->own[engine->own_end++];
	} else {
		ug_assert(out->count < out->space);
		out->list[out->count].kind = PLOCK_UP_SEND;
		msg = &out->list[out->count++].msg;
		engine->counts.messages++;
	}
	memset(msg, 0, sizeof(*msg));
	msg->type = type;
	msg->from = engine->config.node;
	msg->to = to;
	msg->epoch = engine->epoch;
	if (file) {
		msg->number = file->number;
		msg->gen = file->gen;
	}
	return msg;
}

void plock_answer(struct plock_engine *engine, const struct call *call,
		  int status, const struct range_lock *found)
{
	struct plock_updates *out = engine->out;
	struct plock_update *up;

	ug_assert(out->count < out->space);
	up = &out->list[out->count++];
	up->kind = PLOCK_UP_ANSWER;
	up->answer =
		(struct plock_result){ .ctx = call->ctx, .status = status };
	if (found)
		up->answer.found = *found;
}

void plock_trace(struct plock_engine *engine, const char *fmt, ...)
{
	char line[256];
	va_list args;

	va_start(args, fmt);
	vsnprintf(line, sizeof(line), fmt, args);
	va_end(args);
	engine->config.trace(engine->config.trace_arg, line);
}

/* Messages */

/* Of these each epoch has its own: an old one has lost its meaning. */
static bool belongs_to_epoch(enum plock_msg_type type)
{
	switch (type) {
	case PLOCK_MSG_ACQUIRE:
	case PLOCK_MSG_SERVES:
	case PLOCK_MSG_RELEASE:
	case PLOCK_MSG_FREED:
	case PLOCK_MSG_MOVED:
	case PLOCK_MSG_TABLE:
	case PLOCK_MSG_CLAIM:
	case PLOCK_MSG_REGISTER:
	case PLOCK_MSG_DONE:
		return true;
	case PLOCK_MSG_OP:
	case PLOCK_MSG_CANCEL:
	case PLOCK_MSG_RESULT:
	case PLOCK_MSG_BOUNCE:
	case PLOCK_MSG_TAKEN:
	case PLOCK_MSG_LEND:
	case PLOCK_MSG_RECALL:
	case PLOCK_MSG_RETURN:
	case PLOCK_MSG_PROBE:
		return false;
	}
	return false;
}

static int dispatch(struct plock_engine *engine, const struct plock_msg *msg)
{
	switch (msg->type) {
	case PLOCK_MSG_ACQUIRE:
		return home_acquire(engine, msg);
	case PLOCK_MSG_SERVES:
		client_serves(engine, msg);
		return 0;
	case PLOCK_MSG_RELEASE:
		home_release(engine, msg);
		return 0;
	case PLOCK_MSG_FREED:
		home_freed(engine, msg);
		return 0;
	case PLOCK_MSG_MOVED:
	case PLOCK_MSG_CLAIM:
		home_moved(engine, msg);
		return 0;
	case PLOCK_MSG_OP:
		return serve_receive(engine, msg);
	case PLOCK_MSG_CANCEL:
		return serve_cancel(engine, msg);
	case PLOCK_MSG_RESULT:
		return client_result(engine, msg);
	case PLOCK_MSG_BOUNCE:
		client_bounced(engine, msg);
		return 0;
	case PLOCK_MSG_TABLE:
		return move_receive_table(engine, msg);
	case PLOCK_MSG_TAKEN:
		move_taken(engine, msg);
		return 0;
	case PLOCK_MSG_LEND:
		lend_lent(engine, msg);
		return 0;
	case PLOCK_MSG_RECALL:
		return lend_recalled(engine, msg);
	case PLOCK_MSG_RETURN:
		return lend_returned(engine, msg);
	case PLOCK_MSG_REGISTER:
		return home_register(engine, msg);
	case PLOCK_MSG_DONE:
		epoch_done(engine, msg);
		return 0;
	case PLOCK_MSG_PROBE:
		probe_receive(engine, msg);
		return 0;
	}
	return -EBADMSG;
}

int plock_handle(struct plock_engine *engine, const struct plock_msg *msg)
{
	int error = plock_reserve(engine);

	if (error)
		return error;
	if (belongs_to_epoch(msg->type) && msg->epoch > engine->epoch)
		return parked_keep(engine, &engine->future, msg,
				   engine->config.kept_max)
			       ? -EAGAIN
			       : 0;
	if (!member_is(engine, msg->from))
		return 0; /* gone: it says nothing that counts any more */
	if (belongs_to_epoch(msg->type) && msg->epoch < engine->epoch &&
	    msg->type != PLOCK_MSG_TABLE)
		return 0;
	return dispatch(engine, msg);
}

/* A message of another member means only what a member may say. */
static int receive(struct plock_engine *engine, const struct plock_msg *msg)
{
	unsigned most =
		msg->type == PLOCK_MSG_PROBE ? PLOCK_HOPS : PLOCK_RECORDS;

	if (msg->from == engine->config.node || msg->count > most ||
	    msg->at > msg->count || msg->op.table >= PLOCK_TABLES)
		return -EBADMSG;
	return plock_handle(engine, msg);
}

/* The lists */

static bool has_own(const struct plock_engine *engine)
{
	return engine->own_first != engine->own_end;
}

static bool handle_own(struct plock_engine *engine, int *error)
{
	struct plock_msg msg;

	if (!has_own(engine))
		return false;
	msg = engine->own[engine->own_first];
	*error = plock_handle(engine, &msg);
	if (*error != -ENOMEM)
		engine->own_first++;
	return true;
}

/*
 * Do what is in the lists; -ENOMEM: something is left. A file for which nothing
 * can be done asks its home meanwhile, which may be us.
 */
static int drain(struct plock_engine *engine)
{
	int error = 0;

	do {
		if (plock_reserve(engine))
			return -ENOMEM;
	} while (error != -ENOMEM &&
		 (serve_answer_done(engine) || handle_own(engine, &error) ||
		  serve_run(engine) || epoch_run(engine, &error) ||
		  has_own(engine)));
	return error == -ENOMEM ? -ENOMEM : 0;
}

static uint64_t probe_due(const struct cds_list_head *list)
{
	if (list_empty(list))
		return UINT64_MAX;
	return cds_list_first_entry(list, struct call, waiting)->probe_ns;
}

uint64_t plock_wake_ns(const struct plock_engine *engine)
{
	uint64_t wake, other;

	if (!engine->epoch || engine->stopped)
		return UINT64_MAX;
	wake = probe_due(&engine->waiting);
	other = probe_due(&engine->probed);
	wake = UG_MIN(wake, other);
	other = rate_wake_ns(engine);
	wake = UG_MIN(wake, other);
	if (list_empty(&engine->idle))
		return wake;
	other = cds_list_first_entry(&engine->idle, struct file, idle)->used_ns;
	other = UG_MAX(other + engine->config.tuning.idle_ns, engine->drop_ns);
	return UG_MIN(wake, other);
}

static int quorum(struct plock_engine *engine, bool quorate)
{
	struct file *file;
	int error;

	if (quorate == !engine->stopped)
		return 0;
	error = plock_reserve_updates(engine, engine->call_count);
	if (error)
		return error;
	engine->stopped = !quorate;
	cds_list_for_each_entry (file, &engine->idle, idle) {
		if (engine->stopped)
			client_answer_unlocks(engine, file);
		else
			file_run(engine, file);
	}
	return 0;
}

static int one_event(struct plock_engine *engine, struct plock_event *event)
{
	switch (event->kind) {
	case PLOCK_EV_CALL:
		return client_call(engine, event);
	case PLOCK_EV_CANCEL:
		return client_cancel(engine, event->cancel.id, -EINTR);
	case PLOCK_EV_MESSAGE:
		return receive(engine, event->msg);
	case PLOCK_EV_MEMBERS:
		return epoch_begin(engine, event);
	case PLOCK_EV_RELEASED:
		return epoch_released(engine, event->released.node);
	case PLOCK_EV_QUORUM:
		return quorum(engine, event->quorum.quorate);
	case PLOCK_EV_TICK:
		if (engine->epoch && !engine->stopped) {
			files_tick(engine);
			client_tick(engine);
			rate_tick(engine);
		}
		return 0;
	}
	return -EINVAL;
}

int plock_step(struct plock_engine *engine, struct plock_event *event,
	       struct plock_updates *out)
{
	int error;

	engine->out = out;
	engine->now_ns = event->now_ns;
	out->more = false;
	error = drain(engine);
	if (!error)
		error = plock_reserve(engine);
	if (!error)
		error = one_event(engine, event);
	if (!error && drain(engine))
		out->more = true;
	return error;
}

bool plock_is_settled(const struct plock_engine *engine)
{
	return engine->settled;
}
