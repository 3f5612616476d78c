/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * recover.c - the sequence from a new member list to normal operation.
 *
 *   STOPPED -start-> PING        every member answers, from this incarnation
 *                    NODES       barrier; slots
 *                    NAMES       our part of the directory, from every master
 *                    DIR         barrier
 *                    WAITERS     what was in flight to the gone
 *                    MASTERS     new masters for what the gone mastered
 *                    LOCKS_SEND  our locks, to the new masters
 *                    LOCKS       barrier
 *                    RESOURCES   conversions, value blocks
 *                    DONE        barrier
 *                    DRAIN       messages saved since the stop
 *                    RESEND      operations that nobody has answered
 *                    GRANT       what the gone were in the way of
 *                    RUNNING
 *
 * A stop may come in any of them; marks on locks and resources say what is
 * still owed, and the next start begins anew. A barrier X is passed when the
 * member with the lowest id has seen X on all and shows X_ALL; everybody asks
 * (docs/spec/dlm.md 5.3). STATUS and NAMES travel behind all that a member
 * sent before its stop: after NAMES no old message of a living member is on
 * the way. WAITERS, the purge of saved messages and RESEND rest on that (5.5).
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "dlm/engine.h"

/* What a step says: done, or not yet. Errors are negative. */
enum {
	STEP_WAIT = 0,
	STEP_NEXT = 1,
};

struct step {
	const char *name;
	void (*begin)(struct dlm_engine *engine);
	int (*run)(struct dlm_engine *engine);
};

int32_t recover_lowest(const struct dlm_engine *engine)
{
	return engine->members[0].nodeid;
}

static bool we_are_lowest(const struct dlm_engine *engine)
{
	return recover_lowest(engine) == engine->config.nodeid;
}

/* Asking members */

static void asking_begin(struct dlm_engine *engine)
{
	for (unsigned i = 0; i < engine->member_count; i++) {
		struct member *member = &engine->members[i];

		member->asking = ASK_NOTHING;
		member->ask_due_ns = engine->now_ns;
		member->pause_ns = DLM_POLL_FIRST_NS;
		member->done = member->nodeid == engine->config.nodeid;
		member->last.len = 0;
	}
}

static int ask_all(struct dlm_engine *engine, enum asking what)
{
	bool all = true;

	if (step_reserve(engine, engine->member_count))
		return -ENOMEM;
	for (unsigned i = 0; i < engine->member_count; i++) {
		struct member *member = &engine->members[i];

		if (member->done)
			continue;
		all = false;
		if (engine->now_ns >= member->ask_due_ns)
			rcom_ask(engine, member, what);
	}
	return all ? STEP_NEXT : STEP_WAIT;
}

static int ping_run(struct dlm_engine *engine)
{
	return ask_all(engine, ASK_STATUS);
}

static int names_run(struct dlm_engine *engine)
{
	return ask_all(engine, ASK_NAMES);
}

/* Barriers */

static uint32_t barrier_bit(const struct dlm_engine *engine)
{
	switch (engine->state) {
	case REC_NODES:
		return RS_NODES;
	case REC_DIR:
		return RS_DIR;
	case REC_LOCKS:
		return RS_LOCKS;
	case REC_DONE:
		return RS_DONE;
	default:
		return 0;
	}
}

/* All but the lowest ask the lowest only. */
static void barrier_begin(struct dlm_engine *engine)
{
	engine->status |= barrier_bit(engine);
	asking_begin(engine);
	for (unsigned i = 1; i < engine->member_count; i++)
		engine->members[i].done |= !we_are_lowest(engine);
}

static int barrier_run(struct dlm_engine *engine)
{
	int result = ask_all(engine, ASK_STATUS);

	if (result != STEP_NEXT)
		return result;
	if (we_are_lowest(engine) && engine->state == REC_NODES)
		slots_assign(engine);
	engine->status |= barrier_bit(engine) << 1;
	return STEP_NEXT;
}

static void ask_later(struct dlm_engine *engine, struct member *member)
{
	member->ask_due_ns = engine->now_ns + member->pause_ns;
	member->pause_ns = UG_MIN(member->pause_ns * 2, DLM_POLL_LAST_NS);
}

static bool mismatch(struct dlm_engine *engine, struct member *member,
		     const struct dlm_rcom *reply)
{
	struct dlm_update *up;

	if (reply->result < 0 || reply->status.lvblen == engine->config.lvblen)
		return false;
	if (step_reserve(engine, 1) == 0) {
		up = update_add(engine, DLM_UP_MISMATCH);
		up->running = (struct dlm_running){ .nodeid = member->nodeid };
	}
	return true;
}

static bool status_suffices(struct dlm_engine *engine, struct member *member,
			    const struct dlm_rcom *reply)
{
	uint32_t status = reply->result > 0 ? (uint32_t)reply->result : 0;
	uint32_t bit = barrier_bit(engine);

	if (mismatch(engine, member, reply))
		return false;
	if (engine->state == REC_PING)
		return true;
	if (!we_are_lowest(engine)) {
		if (!(status & (bit << 1)))
			return false;
		if (engine->state == REC_NODES)
			slots_take(engine, reply->slots,
				   reply->status.generation);
		return true;
	}
	if (!(status & bit))
		return false;
	if (engine->state == REC_NODES)
		slots_merge(engine, reply->slots);
	member->told_slot = reply->status.our_slot;
	member->told_generation = reply->status.generation;
	return true;
}

/* A member has answered the question that was put to it. */
void recover_asked(struct dlm_engine *engine, struct member *member,
		   const struct dlm_rcom *reply)
{
	member->asking = ASK_NOTHING;
	if (reply->type == DLM_RCOM_NAMES_REPLY) {
		member->done = reply->names->last;
		member->ask_due_ns = engine->now_ns;
	} else if (status_suffices(engine, member, reply)) {
		member->done = true;
	} else {
		ask_later(engine, member);
	}
}

/* Going through all resources, a batch at a time */

static void todo_begin(struct dlm_engine *engine)
{
	cds_list_splice(&engine->keep, &engine->todo);
	CDS_INIT_LIST_HEAD(&engine->keep);
}

/* The numbers of questions are used up until all have been answered. */
static bool asked_enough(const struct dlm_engine *engine)
{
	return engine->replies_due >= DLM_ASKED_MAX ||
	       engine->asked_count >= DLM_ASKED_MAX;
}

static int todo_run(struct dlm_engine *engine,
		    void (*unit)(struct dlm_engine *, struct rsb *))
{
	for (unsigned n = 0; n < DLM_BATCH; n++) {
		struct rsb *rsb;

		if (cds_list_empty(&engine->todo))
			return STEP_NEXT;
		if (asked_enough(engine))
			return STEP_WAIT;
		rsb = cds_list_first_entry(&engine->todo, struct rsb, list);
		if (step_reserve_rsb(engine, rsb))
			return -ENOMEM;
		cds_list_del(&rsb->list);
		cds_list_add_tail(&rsb->list, &engine->keep);
		unit(engine, rsb);
	}
	engine->out->more = true;
	return STEP_WAIT;
}

/* Without anybody gone the masters are as they were. */
static void lost_begin(struct dlm_engine *engine)
{
	engine->asked_count = 0;
	engine->replies_due = 0;
	if (engine->anyone_gone)
		todo_begin(engine);
}

/* Waiters */

static void waiters_begin(struct dlm_engine *engine)
{
	cds_list_splice(&engine->waiters, &engine->waiters_todo);
	CDS_INIT_LIST_HEAD(&engine->waiters);
}

static int waiters_run(struct dlm_engine *engine,
		       void (*unit)(struct dlm_engine *, struct lkb *))
{
	for (unsigned n = 0; n < DLM_BATCH; n++) {
		struct lkb *lkb;

		if (cds_list_empty(&engine->waiters_todo))
			return STEP_NEXT;
		lkb = cds_list_first_entry(&engine->waiters_todo, struct lkb,
					   wait);
		if (step_reserve_rsb(engine, lkb->rsb))
			return -ENOMEM;
		cds_list_del(&lkb->wait);
		cds_list_add_tail(&lkb->wait, &engine->waiters);
		unit(engine, lkb);
	}
	engine->out->more = true;
	return STEP_WAIT;
}

static int wait_run(struct dlm_engine *engine)
{
	return waiters_run(engine, rebuild_waiter);
}

static void resend_unit(struct dlm_engine *engine, struct lkb *lkb)
{
	if (lkb->flags & LKB_RESEND)
		rebuild_resend(engine, lkb);
}

static int resend_run(struct dlm_engine *engine)
{
	return waiters_run(engine, resend_unit);
}

/* Masters: also what was begun in a recovery that was aborted (9.1 #6) */
static void masters_unit(struct dlm_engine *engine, struct rsb *rsb)
{
	int32_t dir = directory_node(engine, rsb->hash);

	if (!(rsb->flags & (RES_REMASTER | RES_NEW_MASTER)))
		return;
	if (dir == engine->config.nodeid) {
		rebuild_set_master(engine, rsb,
				   rsb->master ? rsb->master : dir);
		return;
	}
	engine->asked[engine->asked_count++] = rsb;
	engine->replies_due++;
	rcom_send_lookup(engine, rsb, dir, engine->asked_count);
}

static int masters_run(struct dlm_engine *engine)
{
	int result;

	if (engine->replies_due == 0)
		engine->asked_count = 0;
	result = todo_run(engine, masters_unit);
	return result == STEP_NEXT && engine->replies_due ? STEP_WAIT : result;
}

static void send_queue(struct dlm_engine *engine, struct lkb_queue *queue)
{
	struct lkb *lkb;

	queue_for_each(lkb, queue)
	{
		if (!lkb_is_mstcpy(lkb))
			rcom_send_lock(engine, lkb);
	}
}

static void locks_unit(struct dlm_engine *engine, struct rsb *rsb)
{
	if (!(rsb->flags & RES_NEW_MASTER) || rsb_is_master(engine, rsb))
		return;
	send_queue(engine, &rsb->granted);
	send_queue(engine, &rsb->convert);
	send_queue(engine, &rsb->waiting);
}

static int locks_run(struct dlm_engine *engine)
{
	int result = todo_run(engine, locks_unit);

	return result == STEP_NEXT && engine->replies_due ? STEP_WAIT : result;
}

static int resources_run(struct dlm_engine *engine)
{
	int result = todo_run(engine, rebuild_finish);

	if (result == STEP_NEXT) {
		saved_purge(engine);
		saved_mark_old(engine);
	}
	return result;
}

/* Back to normal */

static void drain_begin(struct dlm_engine *engine)
{
	gone_forget(engine);
	copies_forget(engine);
	engine->anyone_gone = false;
}

static int drain_run(struct dlm_engine *engine)
{
	int error;

	for (unsigned n = 0; n < DLM_BATCH; n++) {
		if (!saved_next(engine, &error))
			return error ? error : STEP_NEXT;
	}
	engine->out->more = true;
	return STEP_WAIT;
}

static void grant_unit(struct dlm_engine *engine, struct rsb *rsb)
{
	if (!(rsb->flags & RES_GRANT))
		return;
	rsb->flags &= (uint8_t)~RES_GRANT;
	if (rsb_is_master(engine, rsb))
		grant_pass(engine, rsb, true);
}

static int grant_run(struct dlm_engine *engine)
{
	struct dlm_update *up;
	int result = todo_run(engine, grant_unit);

	if (result != STEP_NEXT)
		return result;
	if (step_reserve(engine, 1))
		return -ENOMEM;
	up = update_add(engine, DLM_UP_RUNNING);
	up->running = (struct dlm_running){
		.nodeid = engine->config.nodeid,
		.slot = engine->our_slot,
		.generation = engine->generation,
	};
	engine->was_running = true;
	return STEP_NEXT;
}

static const struct step steps[] = {
	[REC_STOPPED] = { "stopped", NULL, NULL },
	[REC_PING] = { "ping", asking_begin, ping_run },
	[REC_NODES] = { "nodes", barrier_begin, barrier_run },
	[REC_NAMES] = { "names", asking_begin, names_run },
	[REC_DIR] = { "dir", barrier_begin, barrier_run },
	[REC_WAITERS] = { "waiters", waiters_begin, wait_run },
	[REC_MASTERS] = { "masters", lost_begin, masters_run },
	[REC_LOCKS_SEND] = { "locks-send", lost_begin, locks_run },
	[REC_LOCKS] = { "locks", barrier_begin, barrier_run },
	[REC_RESOURCES] = { "resources", lost_begin, resources_run },
	[REC_DONE] = { "done", barrier_begin, barrier_run },
	[REC_DRAIN] = { "drain", drain_begin, drain_run },
	[REC_RESEND] = { "resend", waiters_begin, resend_run },
	[REC_GRANT] = { "grant", todo_begin, grant_run },
	[REC_RUNNING] = { "running", NULL, NULL },
};

/* The next one, or back to stopped from anywhere; a start leaves stopped. */
static void set_state(struct dlm_engine *engine, enum recovery state)
{
	ug_assert(state == engine->state + 1 || state == REC_STOPPED);
	TRACE(engine, "recovery %s -> %s (seq %llu)", steps[engine->state].name,
	      steps[state].name, (unsigned long long)engine->seq);
	engine->state = state;
	if (steps[state].begin)
		steps[state].begin(engine);
}

/*
 * Go as far as possible. -ENOMEM: DLM_EV_CONTINUE goes on where this one
 * stopped; what has been done is done.
 */
int recover_run(struct dlm_engine *engine)
{
	while (engine->state != REC_STOPPED && engine->state != REC_RUNNING) {
		int result = steps[engine->state].run(engine);

		if (result != STEP_NEXT)
			return result;
		set_state(engine, engine->state + 1);
	}
	return 0;
}

/* What a step had set aside goes back; order is of no importance here. */
static void put_back(struct dlm_engine *engine)
{
	cds_list_splice(&engine->todo, &engine->keep);
	CDS_INIT_LIST_HEAD(&engine->todo);
	cds_list_splice(&engine->waiters_todo, &engine->waiters);
	CDS_INIT_LIST_HEAD(&engine->waiters_todo);
	engine->asked_count = 0;
	engine->replies_due = 0;
}

int recover_stop(struct dlm_engine *engine)
{
	if (step_reserve(engine, 1))
		return -ENOMEM;
	engine->seq++;
	engine->status = 0;
	put_back(engine);
	if (engine->state != REC_STOPPED)
		set_state(engine, REC_STOPPED);
	if (engine->was_running)
		update_add(engine, DLM_UP_PREPARE);
	engine->was_running = false;
	return 0;
}

/*
 * The gone are forgotten at once, before a message of the new membership can
 * be heard; then what is cached, since the directory is rebuilt from what is
 * in use (spec 5.5 steps 2 to 5).
 */
int recover_start(struct dlm_engine *engine, const struct dlm_member *list,
		  unsigned count)
{
	int error;

	if (engine->state != REC_STOPPED)
		return -EPROTO;
	error = members_replace(engine, list, count);
	if (error)
		return error;
	rsb_forget_list(engine, &engine->toss);
	rsb_forget_list(engine, &engine->records);
	rebuild_doubt_masters(engine);
	engine->seq++;
	engine->anyone_gone = !cds_list_empty(&engine->gone);
	set_state(engine, REC_PING);
	return 0;
}

uint64_t recover_wake_ns(const struct dlm_engine *engine)
{
	uint64_t wake = UINT64_MAX;

	if (engine->state < REC_PING || engine->state > REC_DONE)
		return wake;
	for (unsigned i = 0; i < engine->member_count; i++) {
		const struct member *member = &engine->members[i];

		if (!member->done)
			wake = UG_MIN(wake, member->ask_due_ns);
	}
	return wake;
}
