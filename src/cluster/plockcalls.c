/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * plockcalls.c - calls under way, and answers that are to be told.
 *
 *	free -> given -> answered -> told: free
 *		  |			^
 *		  '---> failed -> told -'	plocks_fail(): the engine has
 *						the call longer than its caller
 *
 * Records are kept for later, and have a number that finds them; so to answer
 * needs no memory, and an id that is too old is known as such.
 */
#include <errno.h>
#include <stdlib.h>

#include "base/assert.h"
#include "base/compiler.h"
#include "cluster/plocks_impl.h"

#define ID_SERIAL (UINT64_C(1) << 32)

static bool list_is_empty(const struct cds_list_head *list)
{
	return list->next == list;
}

static bool add_record(struct plocks *p)
{
	struct plocks_call *call;

	if (p->calls_count == p->calls_space) {
		uint32_t space = p->calls_space ? p->calls_space * 2 : 64;
		struct plocks_call **list =
			realloc(p->calls_by_index, space * sizeof(*list));

		if (!list)
			return false;
		p->calls_by_index = list;
		p->calls_space = space;
	}
	call = calloc(1, sizeof(*call));
	if (!call)
		return false;
	call->id = p->calls_count;
	p->calls_by_index[p->calls_count++] = call;
	cds_list_add(&call->list, &p->free_calls);
	return true;
}

bool plocks_op_unlocks(const struct plock_op *op)
{
	return op->kind == PLOCK_CLOSE ||
	       (op->kind == PLOCK_SET && op->mode == RANGE_NONE);
}

struct plocks_call *plocks_call_new(struct plocks *p, uint64_t number,
				    const struct plock_op *op, uint64_t ctx)
{
	struct plocks_call *call;

	if (list_is_empty(&p->free_calls) && !add_record(p))
		return NULL;
	call = cds_list_first_entry(&p->free_calls, struct plocks_call, list);
	cds_list_del(&call->list);
	cds_list_add_tail(&call->list, &p->calls);
	call->state = CALL_GIVEN;
	call->id += ID_SERIAL;
	call->unlocks = plocks_op_unlocks(op);
	call->number = number;
	call->op = *op;
	call->since_ns = p->now_ns;
	call->res = (struct plock_result){ .ctx = ctx };
	return call;
}

void plocks_call_free(struct plocks *p, struct plocks_call *call)
{
	cds_list_del(&call->list);
	cds_list_add(&call->list, &p->free_calls);
	call->state = CALL_FREE;
}

void plocks_calls_free(struct plocks *p)
{
	for (uint32_t i = 0; i < p->calls_count; i++)
		free(p->calls_by_index[i]);
	free(p->calls_by_index);
}

struct plocks_call *plocks_call_find(struct plocks *p, uint64_t id)
{
	uint32_t index = (uint32_t)id;
	struct plocks_call *call;

	if (index >= p->calls_count)
		return NULL;
	call = p->calls_by_index[index];
	return call->id == id && call->state != CALL_FREE ? call : NULL;
}

static void to_tell(struct plocks *p, struct plocks_call *call,
		    enum plocks_call_state state)
{
	call->state = state;
	call->end_ns = p->now_ns;
	cds_list_del(&call->list);
	cds_list_add_tail(&call->list, &p->answers);
}

void plocks_call_answered(struct plocks *p, const struct plock_result *res)
{
	struct plocks_call *call = plocks_call_find(p, res->ctx);
	uint64_t ctx;

	ug_assert(call);
	switch (call->state) {
	case CALL_GIVEN:
		ctx = call->res.ctx;
		call->res = *res;
		call->res.ctx = ctx;
		to_tell(p, call, CALL_ANSWERED);
		return;
	case CALL_FAILED:
		call->state = CALL_ANSWERED;
		return;
	case CALL_TOLD:
		plocks_call_free(p, call);
		return;
	case CALL_FREE:
	case CALL_ANSWERED:
		break;
	}
	ug_assert(!"a call is answered once");
}

/* Nobody wants it any more, so it should not be granted to its owner. */
static void take_back(struct plocks *p, const struct plocks_call *call)
{
	struct plock_event event = { .kind = PLOCK_EV_CANCEL };

	event.cancel.id = call->engine_id;
	if (!call->unlocks && !p->lost)
		plocks_step(p, &event);
}

void plocks_calls_fail(struct plocks *p)
{
	struct plocks_call *call, *next;

	cds_list_for_each_entry_safe (call, next, &p->calls, list) {
		if (call->state != CALL_GIVEN)
			continue;
		call->res.status = call->unlocks ? 0 : -EIO;
		to_tell(p, call, CALL_FAILED);
	}
	cds_list_for_each_entry (call, &p->answers, list)
		if (call->state == CALL_FAILED)
			take_back(p, call);
}

static void count_time(struct plocks *p, const struct plocks_call *call)
{
	bool waits = call->op.kind == PLOCK_SET && call->op.wait;
	uint64_t ns = call->end_ns - call->since_ns;
	unsigned slot = ns ? 63u - (unsigned)__builtin_clzll(ns) : 0;

	slot = UG_MIN(slot, PLOCKS_HIST_SLOTS - 1);
	if (waits && !call->unlocks)
		p->stats.wait_ns[slot]++;
	else
		p->stats.answer_ns[slot]++;
}

bool plocks_next_answer(struct plocks *p, struct plock_result *out)
{
	struct plocks_call *call;

	if (ug_likely(list_is_empty(&p->answers)))
		return false;
	call = cds_list_first_entry(&p->answers, struct plocks_call, list);
	*out = call->res;
	count_time(p, call);
	if (call->state == CALL_ANSWERED) {
		plocks_call_free(p, call);
		return true;
	}
	call->state = CALL_TOLD;
	cds_list_del(&call->list);
	cds_list_add_tail(&call->list, &p->calls);
	return true;
}
