/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * rate.c - how many calls may leave this member in a second.
 *
 * A bucket of tokens, as many as come in a second: a call takes one when it is
 * sent to another member, or when its file's serialiser is asked for elsewhere.
 * What is decided here costs none; answers, cancels and all that members need
 * for coming and going neither. Without a token the file queues, with all its
 * calls behind it, in order; each tick gives the first files one each.
 *
 * rate_ns is the time at which all tokens would be back: the bucket in one
 * number. It is at most a second ahead.
 */
#include "plock/engine.h"

#define SECOND_NS 1000000000u

static uint64_t interval_ns(const struct plock_engine *engine)
{
	return SECOND_NS / engine->config.tuning.rate_limit;
}

/* When the next token is there. */
static uint64_t token_ns(const struct plock_engine *engine)
{
	uint64_t full = SECOND_NS - interval_ns(engine);

	return engine->rate_ns > full ? engine->rate_ns - full : 0;
}

static bool take(struct plock_engine *engine)
{
	if (!engine->config.tuning.rate_limit)
		return true;
	if (token_ns(engine) > engine->now_ns)
		return false;
	engine->rate_ns =
		UG_MAX(engine->rate_ns, engine->now_ns) + interval_ns(engine);
	return true;
}

bool rate_may_send(struct plock_engine *engine, struct file *file, uint64_t to)
{
	if (!engine->config.tuning.rate_limit || to == engine->config.node)
		return true;
	if (file->paid) {
		file->paid = false;
		return true;
	}
	if (list_empty(&engine->throttled) && take(engine))
		return true;
	if (list_empty(&file->throttled)) {
		cds_list_add_tail(&file->throttled, &engine->throttled);
		engine->counts.throttled++;
		engine->counts.delayed++;
	}
	return false;
}

void rate_forget(struct plock_engine *engine, struct file *file)
{
	file->paid = false;
	if (list_empty(&file->throttled))
		return;
	cds_list_del(&file->throttled);
	CDS_INIT_LIST_HEAD(&file->throttled);
	engine->counts.throttled--;
}

void rate_tick(struct plock_engine *engine)
{
	while (!list_empty(&engine->throttled) && take(engine)) {
		struct file *file = cds_list_first_entry(
			&engine->throttled, struct file, throttled);

		rate_forget(engine, file);
		file->paid = true;
		file_run(engine, file);
	}
}

uint64_t rate_wake_ns(const struct plock_engine *engine)
{
	if (list_empty(&engine->throttled))
		return UINT64_MAX;
	return engine->config.tuning.rate_limit ? token_ns(engine) : 0;
}
