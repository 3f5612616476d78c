/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * engine.c - the one door: events in, updates out; and the views from outside.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "dlm/engine.h"

static bool config_is_valid(const struct dlm_config *config)
{
	return config->nodeid > 0 && config->lvblen <= DLM_LVB_MAX &&
	       config->lvblen % 8 == 0;
}

static void init_lists(struct dlm_engine *engine)
{
	CDS_INIT_LIST_HEAD(&engine->keep);
	CDS_INIT_LIST_HEAD(&engine->toss);
	CDS_INIT_LIST_HEAD(&engine->records);
	CDS_INIT_LIST_HEAD(&engine->todo);
	CDS_INIT_LIST_HEAD(&engine->waiters);
	CDS_INIT_LIST_HEAD(&engine->waiters_todo);
	CDS_INIT_LIST_HEAD(&engine->saved);
	CDS_INIT_LIST_HEAD(&engine->gone);
}

int dlm_engine_new(const struct dlm_config *config, struct dlm_engine **out)
{
	struct dlm_engine *engine;

	if (!config_is_valid(config))
		return -EINVAL;
	engine = calloc(1, sizeof(*engine));
	if (!engine)
		return -ENOMEM;
	engine->config = *config;
	if (!engine->config.toss_ns)
		engine->config.toss_ns = DLM_TOSS_NS;
	init_lists(engine);
	ug_prng_seed(&engine->prng, config->seed);
	engine->next_ask_id = ug_prng_u64(&engine->prng);
	engine->lkb_last_id = (uint32_t)ug_prng_u64(&engine->prng);
	engine->asked = calloc(DLM_ASKED_MAX, sizeof(*engine->asked));
	if (!engine->asked || rsb_table_init(engine) ||
	    lkb_table_init(engine)) {
		dlm_engine_free(engine);
		return -ENOMEM;
	}
	*out = engine;
	return 0;
}

static void free_spares(struct dlm_engine *engine)
{
	while (engine->spare_lvbs) {
		struct spare_lvb *spare = engine->spare_lvbs;

		engine->spare_lvbs = spare->next;
		free(spare);
	}
	free(engine->spare_lkb);
	free(engine->spare_rsb);
}

static void free_locks(struct dlm_engine *engine)
{
	for (uint32_t i = 0; engine->lkb_table && i <= engine->lkb_mask; i++) {
		if (!engine->lkb_table[i])
			continue;
		free(engine->lkb_table[i]->lvb);
		free(engine->lkb_table[i]);
	}
	free(engine->lkb_table);
}

static void free_resources(struct dlm_engine *engine)
{
	for (uint32_t i = 0; engine->rsb_table && i <= engine->rsb_mask; i++) {
		struct rsb *rsb = engine->rsb_table[i];

		while (rsb) {
			struct rsb *next = rsb->hash_next;

			free(rsb_lvb(rsb));
			free(rsb);
			rsb = next;
		}
	}
	free(engine->rsb_table);
}

void dlm_engine_free(struct dlm_engine *engine)
{
	if (!engine)
		return;
	free_locks(engine);
	free_resources(engine);
	free_spares(engine);
	saved_free_all(engine);
	gone_forget(engine);
	copies_forget(engine);
	free(engine->asked);
	free(engine->members);
	free(engine->node_array);
	free(engine);
}

static int step_lock(struct dlm_engine *engine, struct dlm_lock_args *args)
{
	int error = lock_args_check(engine, args);

	if (error)
		return error;
	if (engine->state != REC_RUNNING)
		return -EAGAIN;
	if (args->flags & LKF_CONVERT)
		return call_convert(engine, args);
	if (args->flags & LKF_ORPHAN)
		return call_adopt(engine, args);
	return call_lock(engine, args);
}

static int step_when_running(struct dlm_engine *engine, struct dlm_event *event)
{
	if (engine->state != REC_RUNNING)
		return -EAGAIN;
	switch (event->kind) {
	case DLM_EV_UNLOCK:
		return call_unlock(engine, &event->unlock);
	case DLM_EV_CLOSE:
		return call_close(engine, event->close.owner);
	default:
		return call_purge(engine, event->purge.nodeid,
				  event->purge.pid);
	}
}

/* Time and CONTINUE: errors of recovery are errors of the event. */
static int step_time(struct dlm_engine *engine)
{
	if (engine->state == REC_RUNNING)
		return toss_expire(engine);
	return recover_run(engine);
}

static int step_event(struct dlm_engine *engine, struct dlm_event *event)
{
	switch (event->kind) {
	case DLM_EV_LOCK:
		return step_lock(engine, &event->lock);
	case DLM_EV_UNLOCK:
	case DLM_EV_CLOSE:
	case DLM_EV_PURGE:
		return step_when_running(engine, event);
	case DLM_EV_MESSAGE:
		return message_receive(engine, event->message.msg,
				       event->message.incarnation);
	case DLM_EV_STOP:
		return recover_stop(engine);
	case DLM_EV_START:
		return recover_start(engine, event->start.members,
				     event->start.count);
	case DLM_EV_TICK:
	case DLM_EV_CONTINUE:
		return step_time(engine);
	case DLM_EV_SLOT_FREE:
		return slot_free(engine, event->slot_free.slot,
				 event->slot_free.incarnation);
	}
	return -EINVAL;
}

int dlm_step(struct dlm_engine *engine, struct dlm_event *event,
	     struct dlm_updates *out)
{
	int error;

	engine->out = out;
	engine->now_ns = UG_MAX(engine->now_ns, event->now_ns);
	error = step_event(engine, event);
	/*
	 * The event itself has been taken; recovery goes on with it, and lacks
	 * of memory are for the next event to overcome.
	 */
	if (!error && engine->state != REC_RUNNING && recover_run(engine))
		out->more = true;
	engine->out = NULL;
	return error;
}

uint64_t dlm_wake_ns(const struct dlm_engine *engine)
{
	const struct rsb *rsb;

	if (engine->state != REC_RUNNING)
		return recover_wake_ns(engine);
	if (engine->toss.next == &engine->toss)
		return UINT64_MAX;
	rsb = cds_list_first_entry(&engine->toss, struct rsb, list);
	return rsb->master ? rsb->toss_ns + engine->config.toss_ns : 0;
}

bool dlm_is_running(const struct dlm_engine *engine)
{
	return engine->state == REC_RUNNING;
}

void dlm_set_trace(struct dlm_engine *engine,
		   void (*hook)(void *arg, const char *line))
{
	engine->config.trace = hook;
}

void dlm_count(const struct dlm_engine *engine, struct dlm_counts *out)
{
	out->resources = engine->rsb_count;
	out->locks = engine->lkb_count;
	out->in_flight = engine->in_flight;
	out->saved_messages = engine->saved_count;
	out->generation = engine->generation;
}

static void fill_resource(const struct dlm_engine *engine,
			  const struct rsb *rsb, struct dlm_resource_info *info)
{
	memset(info, 0, sizeof(*info));
	info->name.len = rsb->namelen;
	memcpy(info->name.bytes, rsb->name, rsb->namelen);
	info->master = rsb->master;
	info->dir = directory_node(engine, rsb->hash);
	info->in_use = rsb->where == RSB_KEEP;
	info->lvb_invalid = rsb->flags & RES_LVB_INVALID;
	info->grant_pending = rsb_is_master(engine, rsb) && grant_is_due(rsb);
	info->locks = rsb->nlocks;
	if (!rsb_lvb(rsb))
		return;
	info->lvb = rsb->lvb->bytes;
	info->lvb_seq = rsb->lvb->seq;
}

static void fill_lock(const struct dlm_engine *engine, const struct lkb *lkb,
		      struct dlm_lock_info *info)
{
	*info = (struct dlm_lock_info){
		.lkid = lkb->id,
		.remid = lkb->remid,
		.nodeid = lkb_holder(lkb),
		.master_copy = lkb_is_mstcpy(lkb),
		.in_flight = lkb->wait_count > 0,
		.status = (enum dlm_lock_status)lkb->status,
		.grmode = lkb->grmode,
		.rqmode = lkb->rqmode,
		.exflags = lkb->exflags,
		.pid = lkb->pid,
	};
	if (lkb_is_process_copy(engine, lkb))
		info->nodeid = lkb->rsb->master;
}

void dlm_slots_view(const struct dlm_engine *engine, struct dlm_slots *out)
{
	slots_list(engine, true, out);
}

struct visit {
	const struct dlm_engine *engine;
	void (*lock)(void *arg, const struct dlm_resource_info *,
		     const struct dlm_lock_info *);
	void *arg;
};

static void visit_queue(const struct visit *visit,
			const struct dlm_resource_info *resource,
			const struct lkb_queue *queue)
{
	struct dlm_lock_info info;
	struct lkb *lkb;

	queue_for_each(lkb, queue)
	{
		fill_lock(visit->engine, lkb, &info);
		visit->lock(visit->arg, resource, &info);
	}
}

static void visit_rsb(const struct visit *visit, const struct rsb *rsb,
		      void (*resource)(void *,
				       const struct dlm_resource_info *))
{
	struct dlm_resource_info info;

	fill_resource(visit->engine, rsb, &info);
	if (resource)
		resource(visit->arg, &info);
	if (!visit->lock || !rsb->nlocks)
		return;
	visit_queue(visit, &info, &rsb->granted);
	visit_queue(visit, &info, &rsb->convert);
	visit_queue(visit, &info, &rsb->waiting);
	visit_queue(visit, &info, &rsb->lookup);
	visit_queue(visit, &info, &rsb->in_flight);
}

void dlm_visit(const struct dlm_engine *engine,
	       void (*resource)(void *arg, const struct dlm_resource_info *),
	       void (*lock)(void *arg, const struct dlm_resource_info *,
			    const struct dlm_lock_info *),
	       void *arg)
{
	struct visit visit = { engine, lock, arg };

	for (uint32_t i = 0; i <= engine->rsb_mask; i++) {
		const struct rsb *rsb = engine->rsb_table[i];

		for (; rsb; rsb = rsb->hash_next)
			visit_rsb(&visit, rsb, resource);
	}
}

static void check_lkb(const struct dlm_engine *engine, const struct lkb *lkb)
{
	ug_assert(lkb_find(engine, lkb->id) == lkb);
	ug_assert(lkb->rsb->nlocks > 0);
	ug_assert(!lkb_is_mstcpy(lkb) || lkb->nodeid > 0);
	ug_assert(!lkb_is_mstcpy(lkb) || lkb->wait_count == 0);
	ug_assert(!lkb->wait_type || lkb->wait_count > 0);
	ug_assert(!(lkb->flags & LKB_RESEND) || lkb->wait_count > 0);
	if (engine->state != REC_RUNNING)
		return;
	ug_assert(!(lkb->flags & (LKB_RESEND | LKB_CONVERTING)));
	ug_assert(lkb->status != LKS_NONE || lkb->wait_count > 0 ||
		  (lkb->flags & LKB_PARKED));
	if (lkb_is_mstcpy(lkb))
		ug_assert(rsb_is_master(engine, lkb->rsb));
}

static uint32_t list_length(const struct cds_list_head *list)
{
	const struct cds_list_head *pos;
	uint32_t n = 0;

	for (pos = list->next; pos != list; pos = pos->next)
		n++;
	return n;
}

void dlm_check(const struct dlm_engine *engine)
{
	uint32_t locks = 0, resources = 0, nlocks = 0;

	for (uint32_t i = 0; i <= engine->lkb_mask; i++) {
		if (!engine->lkb_table[i])
			continue;
		check_lkb(engine, engine->lkb_table[i]);
		locks++;
	}
	for (uint32_t i = 0; i <= engine->rsb_mask; i++) {
		const struct rsb *rsb = engine->rsb_table[i];

		for (; rsb; rsb = rsb->hash_next) {
			rsb_check(engine, rsb);
			nlocks += rsb->nlocks;
			resources++;
		}
	}
	ug_assert(locks == engine->lkb_count && nlocks == locks);
	ug_assert(resources == engine->rsb_count);
	ug_assert(list_length(&engine->waiters) +
			  list_length(&engine->waiters_todo) ==
		  engine->in_flight);
	ug_assert(list_length(&engine->saved) == engine->saved_count);
}

void dlm_check_grants(const struct dlm_engine *engine)
{
	if (engine->state != REC_RUNNING)
		return;
	for (uint32_t i = 0; i <= engine->rsb_mask; i++) {
		const struct rsb *rsb = engine->rsb_table[i];

		for (; rsb; rsb = rsb->hash_next) {
			if (rsb_is_master(engine, rsb))
				rsb_check_grants(rsb);
		}
	}
}
