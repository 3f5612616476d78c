/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * updates.c - the output of a step, and the memory that a step may need.
 *
 * A step reserves before it changes anything: room for its updates, one lock,
 * one resource, value blocks. Taking what was reserved cannot fail. What is
 * left over stays for the next step, so a lock costs one allocation.
 */
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/grow.h"
#include "dlm/engine.h"

/* Value blocks of one step: the lock's and the resource's. */
#define SPARE_LVBS 3

static int reserve_updates(struct dlm_updates *out, size_t count)
{
	struct dlm_update *list = ug_grow(out->list, &out->space,
					  out->count + count, sizeof(*list));

	if (!list)
		return -ENOMEM;
	out->list = list;
	return 0;
}

static int reserve_lvbs(struct dlm_engine *engine)
{
	size_t size = UG_MAX(sizeof(struct lvb) + engine->config.lvblen,
			     sizeof(struct spare_lvb));

	while (engine->spare_lvb_count < SPARE_LVBS) {
		struct spare_lvb *spare = malloc(size);

		if (!spare)
			return -ENOMEM;
		spare->next = engine->spare_lvbs;
		engine->spare_lvbs = spare;
		engine->spare_lvb_count++;
	}
	return 0;
}

int step_reserve(struct dlm_engine *engine, size_t updates)
{
	if (!engine->spare_lkb) {
		engine->spare_lkb = malloc(sizeof(struct lkb));
		if (!engine->spare_lkb)
			return -ENOMEM;
	}
	if (!engine->spare_rsb) {
		engine->spare_rsb = malloc(sizeof(struct rsb) + DLM_NAME_MAX);
		if (!engine->spare_rsb)
			return -ENOMEM;
	}
	if (reserve_lvbs(engine))
		return -ENOMEM;
	return reserve_updates(engine->out, updates);
}

/*
 * On one resource a step can release the parked requests, each of which is
 * answered; grant each lock once; and send each lock a BAST for each of the
 * modes, since highbast only rises between grants. Twice that covers a grant
 * between two BASTs.
 */
int step_reserve_rsb(struct dlm_engine *engine, const struct rsb *rsb)
{
	size_t locks = rsb ? rsb->nlocks : 0;

	return step_reserve(engine, 16 + 16 * (locks + 1));
}

struct dlm_update *update_add(struct dlm_engine *engine,
			      enum dlm_update_kind kind)
{
	struct dlm_updates *out = engine->out;
	struct dlm_update *up;

	ug_assert(out->count < out->space);
	up = &out->list[out->count++];
	up->kind = kind;
	return up;
}

void dlm_msg_release(struct dlm_msg *msg)
{
	if (msg->kind != DLM_RCOM)
		return;
	free(msg->rc.slots);
	free(msg->rc.names);
	msg->rc.slots = NULL;
	msg->rc.names = NULL;
}

void dlm_updates_clear(struct dlm_updates *out)
{
	for (size_t i = 0; i < out->count; i++) {
		if (out->list[i].kind == DLM_UP_SEND)
			dlm_msg_release(&out->list[i].msg);
	}
	out->count = 0;
	out->more = false;
}

void dlm_updates_free(struct dlm_updates *out)
{
	dlm_updates_clear(out);
	free(out->list);
	out->list = NULL;
	out->space = 0;
}

struct lvb *lvb_alloc(struct dlm_engine *engine)
{
	struct spare_lvb *spare = engine->spare_lvbs;

	ug_assert(spare);
	engine->spare_lvbs = spare->next;
	engine->spare_lvb_count--;
	return memset(spare, 0, sizeof(struct lvb) + engine->config.lvblen);
}

void lvb_free(struct dlm_engine *engine, struct lvb *lvb)
{
	struct spare_lvb *spare = (struct spare_lvb *)lvb;

	if (!lvb)
		return;
	if (engine->spare_lvb_count >= SPARE_LVBS) {
		free(lvb);
		return;
	}
	spare->next = engine->spare_lvbs;
	engine->spare_lvbs = spare;
	engine->spare_lvb_count++;
}

void trace(struct dlm_engine *engine, const char *fmt, ...)
{
	char line[256];
	va_list args;

	va_start(args, fmt);
	vsnprintf(line, sizeof(line), fmt, args);
	va_end(args);
	engine->config.trace(engine->config.trace_arg, line);
}
