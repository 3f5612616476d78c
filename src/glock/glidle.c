/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * glidle.c - what is not used leaves the cache.
 *
 * There is no list in the order of use: to keep one would cost the cached
 * request, which has one lock to take, a second one that all share. Instead a
 * walk through the table, some glocks at a time, finds what has been idle for
 * demote_secs. When more locks are cached than there should be, each step
 * also gives up the oldest quarter of the idle ones it has met, until there
 * are a little fewer than the bound: near enough to the least recently used,
 * and never many at once.
 */
#include <stdlib.h>

#include "glock/glock_impl.h"

/* Glocks looked at in a step: some tens of us. */
#define STEP_GLOCKS 1024u
/* How many glocks a shrink sorts at a time. */
#define SHRINK_BATCH 128u
#define NS_PER_SEC 1000000000u
/* A round is made at most this often in demote_secs. */
#define ROUNDS_PER_DEMOTE_SECS 8u

static bool is_idle(const struct glock *gl)
{
	return gl->gl_state != LM_ST_UNLOCKED && !gl->gl_granted &&
	       !gl->gl_waiting &&
	       !(gl->gl_flags & (GLF_BUSY | GLF_DEMOTE | GLF_PENDING_DEMOTE |
				 GLF_WITHDRAWN | GLF_ORPHAN | GLF_RETIRING));
}

/* ---- a batch of pinned glocks ---- */

struct batch_entry {
	struct glock *gl;
	uint32_t used_sec;
};

struct batch {
	unsigned count;
	struct batch_entry entry[STEP_GLOCKS];
};

static void batch_add(struct batch *batch, struct glock *gl)
{
	gl->gl_pins++;
	batch->entry[batch->count++] = (struct batch_entry){
		.gl = gl,
		.used_sec = gl->gl_used_sec,
	};
}

static int compare_numbers(const void *a, const void *b)
{
	uint64_t x = ((const struct batch_entry *)a)->gl->gl_number;
	uint64_t y = ((const struct batch_entry *)b)->gl->gl_number;

	return (x > y) - (x < y);
}

static int compare_used(const void *a, const void *b)
{
	uint32_t x = ((const struct batch_entry *)a)->used_sec;
	uint32_t y = ((const struct batch_entry *)b)->used_sec;

	return (x > y) - (x < y);
}

/*
 * Demote the first `count` of them and forget all. By number: what they have
 * dirtied is written in the order of the disk.
 */
static void batch_demote(struct batch *batch, unsigned count)
{
	qsort(batch->entry, count, sizeof(batch->entry[0]), compare_numbers);
	for (unsigned i = 0; i < batch->count; i++) {
		struct glock *gl = batch->entry[i].gl;

		pthread_mutex_lock(&gl->gl_lock);
		if (i < count && is_idle(gl)) {
			glock_request_demote(gl, LM_ST_UNLOCKED);
			glock_run(gl);
		}
		glock_unpin_unlock(gl);
	}
}

/* ---- by type and age, for who knows what is not needed ---- */

static void collect_type(struct batch *batch, struct glock_shard *shard,
			 enum lm_type type, uint64_t before_sec, unsigned max)
{
	struct glock *gl = NULL;

	batch->count = 0;
	pthread_mutex_lock(&shard->lock);
	while (batch->count < max && (gl = glock_shard_next(shard, gl))) {
		if (gl->gl_dying || gl->gl_ops->type != type)
			continue;
		pthread_mutex_lock(&gl->gl_lock);
		if (is_idle(gl) && gl->gl_used_sec < before_sec)
			batch_add(batch, gl);
		pthread_mutex_unlock(&gl->gl_lock);
	}
	pthread_mutex_unlock(&shard->lock);
}

void glock_table_shrink(struct glock_table *table, enum lm_type type,
			uint64_t idle_before_sec, unsigned max)
{
	struct batch batch;

	for (unsigned s = 0; s < GLOCK_SHARDS && max; s++) {
		do {
			collect_type(&batch, &table->shards[s], type,
				     idle_before_sec,
				     UG_MIN(max, SHRINK_BATCH));
			batch_demote(&batch, batch.count);
			max -= batch.count;
		} while (batch.count == SHRINK_BATCH && max);
	}
}

/* ---- the walk ---- */

struct step {
	uint32_t now_sec;
	unsigned demote_secs;
	uint64_t excess;  /* how many locks there are too many */
	unsigned expired; /* of the batch */
	unsigned visited;
	struct batch batch;
};

/* How many locks have to go, if there are too many, to be below the bound. */
static uint64_t excess_of(struct glock_table *table)
{
	uint64_t max = atomic_load(&table->cached_max);
	uint64_t cached = atomic_load(&table->cached);

	if (!max || cached <= max)
		return 0;
	return cached - (max - max / 32);
}

static void visit(struct glock_queue *q, struct step *step, struct glock *gl)
{
	step->visited++;
	if (gl->gl_dying)
		return;
	pthread_mutex_lock(&gl->gl_lock);
	if (is_idle(gl)) {
		bool expired =
			step->now_sec - gl->gl_used_sec >= step->demote_secs;

		step->expired += expired;
		if (expired || step->excess)
			batch_add(&step->batch, gl);
		else if (gl->gl_used_sec < q->idle_oldest_sec)
			q->idle_oldest_sec = gl->gl_used_sec;
	} else if (gl->gl_state != LM_ST_UNLOCKED &&
		   step->now_sec < q->idle_oldest_sec) {
		/* In use: it may become idle from now on. */
		q->idle_oldest_sec = step->now_sec;
	}
	pthread_mutex_unlock(&gl->gl_lock);
}

/* From where the last step has stopped. A bucket is never cut in two. */
static void collect_step(struct glock_table *table, struct step *step)
{
	struct glock_queue *q = &table->queue;

	while (q->idle_shard < GLOCK_SHARDS) {
		struct glock_shard *shard = &table->shards[q->idle_shard];

		pthread_mutex_lock(&shard->lock);
		while (q->idle_bucket < shard->buckets_count) {
			struct glock *gl = shard->buckets[q->idle_bucket++];

			for (; gl && step->batch.count < STEP_GLOCKS;
			     gl = gl->gl_hash_next)
				visit(q, step, gl);
			if (step->visited >= STEP_GLOCKS / 2) {
				pthread_mutex_unlock(&shard->lock);
				return;
			}
		}
		pthread_mutex_unlock(&shard->lock);
		q->idle_shard++;
		q->idle_bucket = 0;
	}
}

static unsigned choose_victims(struct step *step)
{
	unsigned quota =
		(unsigned)UG_MIN(step->excess, step->batch.count / 4u + 1u);

	/* The expired ones are the oldest. */
	qsort(step->batch.entry, step->batch.count,
	      sizeof(step->batch.entry[0]), compare_used);
	return UG_MIN(UG_MAX(step->expired, quota), step->batch.count);
}

/* A round is over: when does the next one begin? */
static uint64_t next_round_ns(struct glock_table *table, uint64_t now)
{
	struct glock_queue *q = &table->queue;
	uint64_t secs = atomic_load(&table->demote_secs);
	uint64_t pause = UG_MAX(secs / ROUNDS_PER_DEMOTE_SECS, 1u);
	uint64_t due;

	if (excess_of(table))
		return q->idle_demoted ? now : now + NS_PER_SEC;
	if (q->idle_oldest_sec == UINT32_MAX)
		return atomic_load(&table->cached) ? now + pause * NS_PER_SEC
						   : UINT64_MAX;
	due = (q->idle_oldest_sec + secs) * NS_PER_SEC;
	return UG_MAX(due, now + pause * NS_PER_SEC);
}

static bool begin_step(struct glock_queue *q, uint64_t now)
{
	bool begin;

	pthread_mutex_lock(&q->lock);
	begin = now >= q->idle_ns && !q->idle_walking;
	if (begin) {
		q->idle_walking = true;
		q->idle_ns = UINT64_MAX;
	}
	pthread_mutex_unlock(&q->lock);
	return begin;
}

static void end_step(struct glock_table *table, uint64_t now)
{
	struct glock_queue *q = &table->queue;
	uint64_t next = now;

	pthread_mutex_lock(&q->lock);
	if (q->idle_shard == GLOCK_SHARDS) {
		next = next_round_ns(table, now);
		q->idle_shard = 0;
		q->idle_demoted = 0;
		q->idle_oldest_sec = UINT32_MAX;
	}
	/* Somebody may have asked for it while we were at it. */
	q->idle_ns = UG_MIN(q->idle_ns, next);
	q->idle_walking = false;
	pthread_mutex_unlock(&q->lock);
}

bool glock_idle_walk(struct glock_table *table)
{
	struct glock_queue *q = &table->queue;
	uint64_t now = glock_now_ns();
	struct step step;
	unsigned victims;

	if (!begin_step(q, now))
		return false;
	step.now_sec = (uint32_t)(now / NS_PER_SEC);
	step.demote_secs = atomic_load(&table->demote_secs);
	step.excess = excess_of(table);
	step.expired = step.visited = step.batch.count = 0;
	collect_step(table, &step);
	victims = choose_victims(&step);
	batch_demote(&step.batch, victims);
	q->idle_demoted += victims;
	end_step(table, now);
	return true;
}

void glock_count_cached(struct glock *gl, enum lm_state from, enum lm_state to)
{
	struct glock_table *table = gl->gl_table;
	uint64_t before, max;

	if ((from == LM_ST_UNLOCKED) == (to == LM_ST_UNLOCKED))
		return;
	if (to == LM_ST_UNLOCKED) {
		atomic_fetch_sub(&table->cached, 1);
		return;
	}
	before = atomic_fetch_add(&table->cached, 1);
	max = atomic_load(&table->cached_max);
	if (before == 0)
		glock_queue_idle_at(
			table, glock_now_ns() + (uint64_t)atomic_load(
							&table->demote_secs) *
							NS_PER_SEC);
	if (max && before == max)
		glock_queue_idle_at(table, glock_now_ns());
}

void glock_table_set_idle(struct glock_table *table, unsigned demote_secs,
			  unsigned cached_max)
{
	atomic_store(&table->demote_secs, demote_secs);
	atomic_store(&table->cached_max, cached_max);
	if (atomic_load(&table->cached))
		glock_queue_idle_at(table, glock_now_ns());
}

uint64_t glock_table_cached(struct glock_table *table)
{
	return atomic_load(&table->cached);
}
