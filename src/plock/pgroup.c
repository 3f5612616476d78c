/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * pgroup.c - the one door: events in, updates out.
 *
 * All tables are changed by messages of the group, in their order, so that they
 * are the same at the same point of that order. Only a file that this member
 * owns is changed by its calls alone: of such a file the others know nothing
 * but whose it is.
 *
 * A step reserves memory, then takes its event, then lets calls go on that can.
 * What memory is missing for stays in lists and comes first in the next step.
 */
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/grow.h"
#include "plock/pgroup_impl.h"

/* Of one call in one step: claim, operation, cancel, answer. */
#define UPDATES_OF_A_CALL 4u
#define UPDATES_OF_A_STEP (16u + PGROUP_TRANSFER_BATCH)

int pgroup_engine_new(const struct pgroup_config *config,
		      struct pgroup_engine **out)
{
	/* No deadlock is looked for: each member would find another one. */
	struct range_config ranges = { 0 };
	struct pgroup_engine *engine;

	if (!config->inc || !config->nodeid ||
	    config->nodeid & PGROUP_GONE_BIT ||
	    config->tune.rate_limit > PLOCK_RATE_MAX)
		return -EINVAL;
	engine = calloc(1, sizeof(*engine));
	if (!engine)
		return -ENOMEM;
	engine->config = *config;
	engine->next_id = 1;
	engine->next_wait = 1;
	CDS_INIT_LIST_HEAD(&engine->idle);
	CDS_INIT_LIST_HEAD(&engine->runnable);
	CDS_INIT_LIST_HEAD(&engine->outgoing);
	CDS_INIT_LIST_HEAD(&engine->sent);
	CDS_INIT_LIST_HEAD(&engine->cancels);
	CDS_INIT_LIST_HEAD(&engine->granted);
	CDS_INIT_LIST_HEAD(&engine->saved);
	if (ranges_new(&ranges, &engine->ranges) || gfiles_init(engine) ||
	    gcalls_init(engine)) {
		pgroup_engine_free(engine);
		return -ENOMEM;
	}
	*out = engine;
	return 0;
}

void pgroup_engine_free(struct pgroup_engine *engine)
{
	if (!engine)
		return;
	gcalls_free(engine);
	gfiles_free(engine);
	gtransfer_abort(engine);
	gtransfer_forget(engine);
	ranges_free(engine->ranges);
	free(engine->scratch);
	free(engine->spare_file);
	free(engine->spare_call);
	free(engine->spare_cancel);
	free(engine->spare_saved);
	free(engine);
}

/* Memory */

int pgroup_reserve(struct pgroup_engine *engine, size_t updates)
{
	struct pgroup_updates *out = engine->out;
	struct pgroup_update *list;

	updates += UPDATES_OF_A_STEP +
		   (size_t)engine->call_count * UPDATES_OF_A_CALL;
	list = ug_grow(out->list, &out->space, out->count + updates,
		       sizeof(*list));
	if (!list)
		return -ENOMEM;
	out->list = list;
	return 0;
}

int pgroup_scratch(struct pgroup_engine *engine, size_t records)
{
	struct pgroup_record *scratch;

	if (records <= engine->scratch_space)
		return 0;
	scratch = realloc(engine->scratch, records * sizeof(*scratch));
	if (!scratch)
		return -ENOMEM;
	engine->scratch = scratch;
	engine->scratch_space = records;
	return 0;
}

int pgroup_ready(struct pgroup_engine *engine)
{
	if (!engine->spare_file)
		engine->spare_file = malloc(sizeof(struct gfile));
	if (!engine->spare_call)
		engine->spare_call = malloc(sizeof(struct gcall));
	if (!engine->spare_cancel)
		engine->spare_cancel = malloc(sizeof(struct gcancel));
	if (!engine->spare_saved)
		engine->spare_saved = malloc(sizeof(struct gsaved));
	if (!engine->spare_file || !engine->spare_call ||
	    !engine->spare_cancel || !engine->spare_saved)
		return -ENOMEM;
	return pgroup_reserve(engine, 0);
}

void pgroup_updates_free(struct pgroup_updates *out)
{
	free(out->list);
	*out = (struct pgroup_updates){ 0 };
}

/* Updates */

static struct pgroup_update *update(struct pgroup_engine *engine,
				    enum pgroup_update_kind kind)
{
	struct pgroup_updates *out = engine->out;
	struct pgroup_update *up;

	ug_assert(out->count < out->space);
	up = &out->list[out->count++];
	*up = (struct pgroup_update){ .kind = kind };
	return up;
}

struct pgroup_msg *pgroup_send(struct pgroup_engine *engine,
			       enum pgroup_msg_type type)
{
	struct pgroup_msg *msg = &update(engine, PGROUP_UP_SEND)->msg;

	*msg = (struct pgroup_msg){ .type = type,
				    .nodeid = engine->config.nodeid };
	return msg;
}

void pgroup_answer(struct pgroup_engine *engine, uint64_t ctx, int status,
		   const struct range_lock *found)
{
	struct plock_result *answer = &update(engine, PGROUP_UP_ANSWER)->answer;

	*answer = (struct plock_result){ .ctx = ctx, .status = status };
	if (found)
		answer->found = *found;
}

void pgroup_refuse(struct pgroup_engine *engine)
{
	update(engine, PGROUP_UP_REFUSED);
}

void pgroup_trace(struct pgroup_engine *engine, const char *fmt, ...)
{
	char line[256];
	va_list args;

	va_start(args, fmt);
	vsnprintf(line, sizeof(line), fmt, args);
	va_end(args);
	engine->config.trace(engine->config.trace_arg, line);
}

/* Messages */

int pgroup_ordered(struct pgroup_engine *engine, uint64_t from,
		   const struct pgroup_msg *msg)
{
	const struct gmember *member = gmember_find(engine, from);

	if (!member || member->nodeid != msg->nodeid)
		return -EBADMSG;
	switch (msg->type) {
	case PGROUP_OP:
		return gapply_op(engine, from, member, msg);
	case PGROUP_OWN:
		return gown_receive(engine, member, msg);
	case PGROUP_SYNC_LOCK:
	case PGROUP_SYNC_WAITER:
		return gown_sync(engine, member, msg);
	case PGROUP_DROP:
		return gown_drop(engine, msg);
	case PGROUP_RELEASE:
		gmember_release(engine, msg->inc);
		return 0;
	case PGROUP_START:
	case PGROUP_DONE:
	case PGROUP_DATA:
	case PGROUP_GONE:
	case PGROUP_BEGIN:
		break;
	}
	return -EBADMSG;
}

static int receive(struct pgroup_engine *engine,
		   const struct pgroup_event *event)
{
	const struct pgroup_msg *msg = event->message.msg;
	uint64_t from = event->message.from;
	struct gmember *member = gmember_find(engine, from);

	if (!member)
		return -EBADMSG;
	if (msg->type == PGROUP_START)
		return gmember_start(engine, member, msg);
	if (msg->type == PGROUP_BEGIN) {
		gmember_begin(engine, member, msg);
		return 0;
	}
	if (msg->type == PGROUP_DATA || msg->type == PGROUP_DONE ||
	    msg->type == PGROUP_GONE) {
		if (engine->phase != GPHASE_LOADING ||
		    from != engine->data_from ||
		    msg->change != engine->data_change)
			return 0;
		return gtransfer_receive(engine, msg);
	}
	switch (engine->phase) {
	case GPHASE_LOADING:
		return gtransfer_save(engine, from, msg);
	case GPHASE_LIVE:
		return pgroup_ordered(engine, from, msg);
	case GPHASE_OUT:
	case GPHASE_STARTS:
	case GPHASE_FIRST:
	case GPHASE_REPLAY:
	case GPHASE_REFUSED:
		break;
	}
	return 0;
}

/* Steps */

static int tune(struct pgroup_engine *engine, const struct plock_tuning *to)
{
	if (to->rate_limit > PLOCK_RATE_MAX)
		return -EINVAL;
	engine->config.tune = *to;
	engine->rate_ns = engine->now_ns;
	engine->drop_at_ns = 0;
	return 0;
}

static int handle(struct pgroup_engine *engine, struct pgroup_event *event)
{
	switch (event->kind) {
	case PGROUP_EV_CALL:
		return gcall_begin(engine, event);
	case PGROUP_EV_CANCEL:
		return gcall_cancel(engine, event->cancel.id);
	case PGROUP_EV_CONFIG:
		return gmember_config(engine, event);
	case PGROUP_EV_MESSAGE:
		engine->counts.messages++;
		return receive(engine, event);
	case PGROUP_EV_OTHERS:
		gmember_others(engine, event);
		return 0;
	case PGROUP_EV_RELEASED:
		return gmember_released(engine, event->released.inc);
	case PGROUP_EV_QUORUM:
		gcalls_quorate(engine, event->quorum.quorate);
		return 0;
	case PGROUP_EV_TUNE:
		return tune(engine, &event->tune);
	case PGROUP_EV_TICK:
		return gown_tick(engine);
	}
	return -EINVAL;
}

static void run(struct pgroup_engine *engine)
{
	struct gfile *file;

	if (engine->phase != GPHASE_LIVE)
		return;
	while (!glist_empty(&engine->runnable)) {
		file = cds_list_first_entry(&engine->runnable, struct gfile,
					    runnable);
		if (gcalls_run(engine, file)) {
			engine->out->more = true;
			break;
		}
		cds_list_del(&file->runnable);
		CDS_INIT_LIST_HEAD(&file->runnable);
		gfile_put(engine, file);
	}
	gcalls_pump(engine);
	gtransfer_send(engine);
}

int pgroup_step(struct pgroup_engine *engine, struct pgroup_event *event,
		struct pgroup_updates *out)
{
	int error;

	engine->out = out;
	engine->now_ns = event->now_ns;
	out->more = false;
	if (pgroup_ready(engine))
		return -ENOMEM;
	error = gtransfer_replay(engine);
	if (!error)
		error = handle(engine, event);
	if (!error && gtransfer_replay(engine))
		out->more = true;
	if (!pgroup_reserve(engine, 0))
		run(engine);
	else
		out->more = true;
	return error;
}

uint64_t pgroup_wake_ns(const struct pgroup_engine *engine)
{
	return UG_MIN(gcalls_wake_ns(engine), gown_wake_ns(engine));
}
