/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * glstat.c - counters of the slow paths, and times as powers of two.
 */
#include "glock/glstat.h"
#include "glock/glock_impl.h"

void glock_hist_add(atomic_uint_fast64_t *slots, uint64_t ns)
{
	unsigned slot = 63u - (unsigned)__builtin_clzll(ns | 1);

	glock_count(&slots[UG_MIN(slot, GLOCK_HIST_SLOTS - 1)]);
}

static uint64_t value(const atomic_uint_fast64_t *counter)
{
	return atomic_load_explicit(counter, memory_order_relaxed);
}

static void count_states(struct glock_table *table, enum lm_type type,
			 uint64_t *in_state)
{
	for (unsigned s = 0; s < GLOCK_SHARDS; s++) {
		struct glock_shard *shard = &table->shards[s];
		const struct glock *gl = NULL;

		pthread_mutex_lock(&shard->lock);
		while ((gl = glock_shard_next(shard, gl))) {
			if (gl->gl_ops->type == type)
				in_state[glock_state(gl)]++;
		}
		pthread_mutex_unlock(&shard->lock);
	}
}

void glock_table_stats(struct glock_table *table, enum lm_type type,
		       struct glock_type_stats *stats)
{
	const struct glock_counters *c = &table->counters[type];

	*stats = (struct glock_type_stats){
		.requests = value(&c->requests),
		.busy = value(&c->busy),
		.deadlocks = value(&c->deadlocks),
		.cancelled = value(&c->cancelled),
		.callbacks = value(&c->callbacks),
		.delayed = value(&c->delayed),
		.given_away = value(&c->given_away),
		.put_away = value(&c->put_away),
	};
	count_states(table, type, stats->in_state);
	for (unsigned i = 0; i < GLOCK_HIST_SLOTS; i++) {
		stats->wait_ns[i] = value(&c->wait_ns[i]);
		stats->answer_ns[i] = value(&c->answer_ns[i]);
	}
}
