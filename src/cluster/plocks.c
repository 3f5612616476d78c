/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * plocks.c - life of the application locks of a mount, and the door for its
 * processes.
 */
#include <errno.h>
#include <stdlib.h>

#include "base/assert.h"
#include "base/compiler.h"
#include "cluster/clock.h"
#include "cluster/lockspace.h"
#include "cluster/plocks_impl.h"

/* The lock */

/* Nothing is granted without a look at the lease. */
void plocks_lock(struct plocks *p)
{
	pthread_mutex_lock(&p->lock);
	p->now_ns = p->ls ? p->ls->env.now_ns() : clock_now_ns();
	plocks_look(p);
	while (p->look_again && !p->lost) {
		plocks_rest(p);
		plocks_look(p);
	}
}

/* One after the other: no thread has to wait until all are told. */
static void tell(struct plocks *p)
{
	struct plock_result res;

	while (plocks_next_answer(p, &res)) {
		void (*done)(void *arg, const struct plock_result *res) =
			p->done;
		void *arg = p->arg;

		if (!done)
			continue;

		p->telling++;
		pthread_mutex_unlock(&p->lock);
		done(arg, &res);
		pthread_mutex_lock(&p->lock);
		if (!--p->telling)
			pthread_cond_broadcast(&p->told);
	}
}

/* The lockspace's thread has to look earlier than it would. */
static bool arm(struct plocks *p, uint64_t *wake)
{
	*wake = plocks_wake_ns(p);
	if (ug_likely(!p->ls || *wake >= p->armed_ns))
		return false;
	p->armed_ns = *wake;
	return true;
}

static void wake_thread(struct ugdlm *ls, uint64_t wake)
{
	ls_lock(ls);
	ls_wake_thread(ls, wake);
	ls_unlock(ls);
}

void plocks_unlock(struct plocks *p)
{
	struct ugdlm *ls = p->ls;
	uint64_t wake;
	bool push, early;

	plocks_send(p);
	push = p->need_push;
	p->need_push = false;
	early = arm(p, &wake);
	if (push) {
		pthread_mutex_unlock(&p->lock);
		ls->env.links->push(ls->links);
		pthread_mutex_lock(&p->lock);
	}
	tell(p);
	pthread_mutex_unlock(&p->lock);
	if (early)
		wake_thread(ls, wake);
}

void plocks_unlock_quietly(struct plocks *p)
{
	pthread_mutex_unlock(&p->lock);
}

/* Life */

static int new_one(struct ugdlm *ls, uint64_t node, size_t kept_max,
		   struct plocks **out)
{
	struct plock_config config = { .node = node, .kept_max = kept_max };
	struct plocks *p = calloc(1, sizeof(*p));

	if (!p)
		return -ENOMEM;
	if (plock_engine_new(&config, &p->engine)) {
		free(p);
		return -ENOMEM;
	}
	p->ls = ls;
	p->node = node;
	p->quorate = true;
	p->armed_ns = UINT64_MAX;
	pthread_mutex_init(&p->lock, NULL);
	pthread_cond_init(&p->told, NULL);
	CDS_INIT_LIST_HEAD(&p->free_calls);
	CDS_INIT_LIST_HEAD(&p->calls);
	CDS_INIT_LIST_HEAD(&p->answers);
	*out = p;
	return 0;
}

int plocks_new(struct ugdlm *ls, uint64_t node, struct plocks **out)
{
	return new_one(ls, node, ls->plocks_kept_max, out);
}

void plocks_free(struct plocks *p)
{
	if (!p)
		return;
	plock_engine_free(p->engine);
	plock_updates_free(&p->updates);
	plocks_calls_free(p);
	pthread_cond_destroy(&p->told);
	pthread_mutex_destroy(&p->lock);
	free(p);
}

static int new_alone(struct plocks **out)
{
	struct plock_event members = { .kind = PLOCK_EV_MEMBERS };
	uint64_t self = 1;
	struct plocks *p;
	int err = new_one(NULL, self, 0, &p);

	if (err)
		return err;
	members.members.epoch = 1;
	members.members.nodes = &self;
	members.members.count = 1;
	p->now_ns = clock_now_ns();
	err = plocks_step(p, &members);
	if (err)
		plocks_free(p);
	else
		*out = p;
	return err;
}

static int attach(struct plocks *p, const struct plocks_params *params)
{
	int err = 0;

	plocks_lock(p);
	if (p->done)
		err = -EBUSY;
	else
		err = plock_tune(p->engine, &params->tuning);
	if (!err) {
		p->done = params->done;
		p->arg = params->arg;
	}
	plocks_unlock(p);
	return err;
}

int plocks_create(const struct plocks_params *params, struct plocks **out)
{
	struct plocks *p = params->ls ? params->ls->plocks : NULL;
	int err = 0;

	if (!p)
		err = params->ls ? -EINVAL : new_alone(&p);
	if (!err)
		err = attach(p, params);
	if (err && p && !p->ls)
		plocks_free(p);
	if (!err)
		*out = p;
	return err;
}

void plocks_destroy(struct plocks *p)
{
	if (!p)
		return;
	plocks_lock(p);
	p->done = NULL;
	while (p->telling)
		pthread_cond_wait(&p->told, &p->lock);
	plocks_unlock(p);
	if (!p->ls)
		plocks_free(p);
}

/* Calls */

/* The answer is here already: nobody else is to be told. */
static int take_answer(struct plocks *p, struct plocks_call *call,
		       struct plock_result *res)
{
	*res = call->res;
	p->stats.at_once++;
	plocks_call_free(p, call);
	return 0;
}

static int give(struct plocks *p, struct plocks_call *call)
{
	struct plock_event event = { .kind = PLOCK_EV_CALL };
	int err;

	event.call.number = call->number;
	event.call.op = call->op;
	event.call.ctx = call->id;
	err = call->unlocks ? plocks_step_surely(p, &event)
			    : plocks_step(p, &event);
	call->engine_id = event.call.id;
	return err;
}

static int answer_failed(const struct plock_op *op, uint64_t ctx,
			 struct plock_result *res)
{
	*res = (struct plock_result){ .ctx = ctx };
	res->status = plocks_op_unlocks(op) ? 0 : -EIO;
	return 0;
}

/* While it waited for memory plocks_fail() may have answered it. */
static int refused(struct plocks *p, struct plocks_call *call, int err)
{
	struct plock_result none = { .ctx = call->id };

	if (call->state != CALL_GIVEN) {
		plocks_call_answered(p, &none);
		return -EINPROGRESS;
	}
	plocks_call_free(p, call);
	return err;
}

static int make_call(struct plocks *p, uint64_t number,
		     const struct plock_op *op, uint64_t ctx, uint64_t *id,
		     struct plock_result *res)
{
	struct plocks_call *call;
	int err;

	if (p->failed)
		return answer_failed(op, ctx, res);
	call = plocks_call_new(p, number, op, ctx);
	while (!call && plocks_op_unlocks(op)) {
		plocks_rest(p);
		call = plocks_call_new(p, number, op, ctx);
	}
	if (!call)
		return -ENOMEM;
	err = give(p, call);
	if (err)
		return refused(p, call, err);
	if (call->state == CALL_ANSWERED)
		return take_answer(p, call, res);
	*id = call->id;
	return -EINPROGRESS;
}

int plocks_call(struct plocks *p, uint64_t number, const struct plock_op *op,
		uint64_t ctx, uint64_t *id, struct plock_result *res)
{
	int err;

	atomic_store_explicit(&p->used, true, memory_order_release);
	plocks_lock(p);
	err = make_call(p, number, op, ctx, id, res);
	plocks_unlock(p);
	return err;
}

int plocks_cancel(struct plocks *p, uint64_t id)
{
	struct plock_event event = { .kind = PLOCK_EV_CANCEL };
	struct plocks_call *call;
	int err = -ENOENT;

	plocks_lock(p);
	call = plocks_call_find(p, id);
	if (call && call->state == CALL_GIVEN) {
		event.cancel.id = call->engine_id;
		err = plocks_step_surely(p, &event);
	}
	plocks_unlock(p);
	return err;
}

bool plocks_knows(struct plocks *p, enum plock_table table, uint64_t owner)
{
	bool knows;

	if (!atomic_load_explicit(&p->used, memory_order_acquire))
		return false;
	pthread_mutex_lock(&p->lock);
	knows = !p->failed && plock_knows(p->engine, owner);
	pthread_mutex_unlock(&p->lock);
	return knows;
}

uint64_t plocks_node(const struct plocks *p)
{
	return p->node;
}

void plocks_fail(struct plocks *p)
{
	plocks_lock(p);
	p->failed = true;
	plocks_calls_fail(p);
	plocks_unlock(p);
}

uint64_t plocks_tick(struct plocks *p)
{
	struct plock_event event = { .kind = PLOCK_EV_TICK };
	uint64_t wake;

	plocks_lock(p);
	if (plocks_wake_ns(p) <= p->now_ns || p->more)
		plocks_step(p, &event);
	wake = plocks_wake_ns(p);
	plocks_unlock(p);
	return wake;
}

int plocks_tune(struct plocks *p, const struct plock_tuning *tuning)
{
	struct plock_event event = { .kind = PLOCK_EV_TICK };
	int err;

	plocks_lock(p);
	err = plock_tune(p->engine, tuning);
	if (!err && !p->lost)
		plocks_step(p, &event);
	plocks_unlock(p);
	return err;
}

/* Looking inside */

void plocks_count(struct plocks *p, struct plock_counts *out)
{
	pthread_mutex_lock(&p->lock);
	plock_count(p->engine, out);
	pthread_mutex_unlock(&p->lock);
}
