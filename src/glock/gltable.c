/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * gltable.c - all glocks of a mount: find, make, put away; withdraw, freeze.
 *
 * The table is an array of shards, each a hash table with its own lock that
 * grows with what is in it. Nothing on the way of a cached request comes here.
 *
 * Putting the last reference runs in two parts. While the glock is `dying`, the
 * putting thread syncs and invalidates, with the object still there; who wants
 * the glock waits. Then only the lock manager's answer may be outstanding:
 * the glock is an orphan, which the answer frees, or a new reference revives.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "glock/glock_impl.h"

#define BUCKETS_MIN 16u
/* How many glocks a thaw runs without going back to the table. */
#define THAW_BATCH 128u

/* The finaliser of SplitMix64: every bit of the number counts. */
static uint64_t hash_name(enum lm_type type, uint64_t number)
{
	uint64_t h = number + (uint64_t)type * 0x9e3779b97f4a7c15u;

	h = (h ^ (h >> 30)) * 0xbf58476d1ce4e5b9u;
	h = (h ^ (h >> 27)) * 0x94d049bb133111ebu;
	return h ^ (h >> 31);
}

static uint64_t hash_of(const struct glock *gl)
{
	return hash_name(gl->gl_ops->type, gl->gl_number);
}

/* The high bits choose the shard, the low ones the bucket. */
static struct glock_shard *shard_at(struct glock_table *table, uint64_t hash)
{
	return &table->shards[hash >> 32 & (GLOCK_SHARDS - 1)];
}

static struct glock_shard *shard_of(const struct glock *gl)
{
	return shard_at(gl->gl_table, hash_of(gl));
}

static struct glock **bucket_of(const struct glock_shard *shard, uint64_t hash)
{
	return &shard->buckets[hash & (shard->buckets_count - 1)];
}

struct glock *glock_shard_next(const struct glock_shard *shard,
			       const struct glock *gl)
{
	size_t i = 0;

	if (gl && gl->gl_hash_next)
		return gl->gl_hash_next;
	if (gl)
		i = (hash_of(gl) & (shard->buckets_count - 1)) + 1;
	while (i < shard->buckets_count && !shard->buckets[i])
		i++;
	return i < shard->buckets_count ? shard->buckets[i] : NULL;
}

/* Twice as many buckets; without memory it goes on with those it has. */
static void shard_grow(struct glock_shard *shard)
{
	struct glock_shard grown = {
		.buckets_count = 2 * shard->buckets_count,
	};

	grown.buckets = calloc(grown.buckets_count, sizeof(*grown.buckets));
	if (!grown.buckets)
		return;
	for (size_t i = 0; i < shard->buckets_count; i++) {
		struct glock *gl = shard->buckets[i];

		while (gl) {
			struct glock *next = gl->gl_hash_next;
			struct glock **bucket = bucket_of(&grown, hash_of(gl));

			gl->gl_hash_next = *bucket;
			*bucket = gl;
			gl = next;
		}
	}
	free(shard->buckets);
	shard->buckets = grown.buckets;
	shard->buckets_count = grown.buckets_count;
}

static void shard_insert(struct glock_shard *shard, struct glock *gl)
{
	struct glock **bucket;

	if (shard->count >= shard->buckets_count)
		shard_grow(shard);
	bucket = bucket_of(shard, hash_of(gl));
	gl->gl_hash_next = *bucket;
	*bucket = gl;
	shard->count++;
}

static void shard_remove(struct glock_shard *shard, struct glock *gl)
{
	struct glock **at = bucket_of(shard, hash_of(gl));

	while (*at != gl)
		at = &(*at)->gl_hash_next;
	*at = gl->gl_hash_next;
	shard->count--;
}

static struct glock *shard_find(const struct glock_shard *shard, uint64_t hash,
				enum lm_type type, uint64_t number)
{
	struct glock *gl = *bucket_of(shard, hash);

	while (gl && (gl->gl_number != number || gl->gl_ops->type != type))
		gl = gl->gl_hash_next;
	return gl;
}

static struct glock *glock_new(struct glock_table *table,
			       const struct glock_ops *ops, uint64_t number,
			       void *object)
{
	struct glock *gl = calloc(1, sizeof(*gl));

	if (!gl)
		return NULL;
	/* Held for some tens of ns: to spin is cheaper than to sleep. */
	gl->gl_lock = (pthread_mutex_t)PTHREAD_ADAPTIVE_MUTEX_INITIALIZER_NP;
	CDS_INIT_LIST_HEAD(&gl->gl_holders);
	if (ops->instantiate)
		gl->gl_flags |= GLF_INSTANTIATE_NEEDED;
	if (atomic_load(&table->withdrawn))
		gl->gl_flags |= GLF_WITHDRAWN;
	gl->gl_demote_state = LM_ST_EXCLUSIVE;
	gl->gl_refs = 1;
	gl->gl_number = number;
	gl->gl_ops = ops;
	gl->gl_table = table;
	gl->gl_object = object;
	CDS_INIT_LIST_HEAD(&gl->gl_work);
	glock_hold_init(gl);
	return gl;
}

/* The shard lock is held. An orphan is as good as new: its object is gone. */
static void glock_ref(struct glock *gl, void *object)
{
	pthread_mutex_lock(&gl->gl_lock);
	if (gl->gl_flags & GLF_ORPHAN) {
		gl->gl_flags &= ~(GLF_ORPHAN | GLF_RETIRING);
		glock_set_object(gl, object);
	}
	gl->gl_refs++;
	pthread_mutex_unlock(&gl->gl_lock);
}

int glock_get(struct glock_table *table, const struct glock_ops *ops,
	      uint64_t number, void *object, struct glock **glp)
{
	uint64_t hash = hash_name(ops->type, number);
	struct glock_shard *shard = shard_at(table, hash);
	struct glock *gl;

	pthread_mutex_lock(&shard->lock);
	for (;;) {
		gl = shard_find(shard, hash, ops->type, number);
		if (!gl || !gl->gl_dying)
			break;
		pthread_cond_wait(&shard->settled, &shard->lock);
	}
	if (gl) {
		glock_ref(gl, object);
	} else {
		gl = glock_new(table, ops, number, object);
		if (gl)
			shard_insert(shard, gl);
	}
	pthread_mutex_unlock(&shard->lock);
	if (!gl)
		return -ENOMEM;
	*glp = gl;
	return 0;
}

/* The glock is dying, idle, and nobody else knows it but the hash table. */
static void glock_free(struct glock *gl)
{
	struct glock_shard *shard = shard_of(gl);
	const struct lockmod *mod = &gl->gl_table->mod;

	ug_assert(cds_list_empty(&gl->gl_holders));
	ug_assert(!(gl->gl_flags & GLF_BUSY));
	/* First this: a new glock of the name may ask for the lock at once. */
	mod->ops->put(mod->mod, gl, gl->gl_flags & GLF_WITHDRAWN);
	if (glock_has_workers(gl->gl_table))
		glock_count_cached(gl, gl->gl_state, LM_ST_UNLOCKED);
	pthread_mutex_lock(&shard->lock);
	shard_remove(shard, gl);
	pthread_cond_broadcast(&shard->settled);
	pthread_mutex_unlock(&shard->lock);
	pthread_mutex_destroy(&gl->gl_lock);
	free(gl);
}

static bool is_free_orphan(const struct glock *gl)
{
	return (gl->gl_flags & GLF_ORPHAN) && !(gl->gl_flags & GLF_BUSY) &&
	       !gl->gl_pins;
}

void glock_unpin_unlock(struct glock *gl)
{
	struct glock_shard *shard = shard_of(gl);
	bool last;

	if (!(gl->gl_flags & GLF_ORPHAN) || gl->gl_pins > 1) {
		gl->gl_pins--;
		if (gl->gl_retirer)
			pthread_cond_signal(&gl->gl_retirer->wake);
		pthread_mutex_unlock(&gl->gl_lock);
		return;
	}
	/* Our pin keeps it while the locks are taken in their order. */
	pthread_mutex_unlock(&gl->gl_lock);
	pthread_mutex_lock(&shard->lock);
	pthread_mutex_lock(&gl->gl_lock);
	gl->gl_pins--;
	/*
	 * Dying: another thread is freeing it already, and what we had was a
	 * late call of the lock manager, which put() waits for.
	 */
	last = is_free_orphan(gl) && !gl->gl_dying;
	gl->gl_dying |= last;
	if (gl->gl_retirer)
		pthread_cond_signal(&gl->gl_retirer->wake);
	pthread_mutex_unlock(&gl->gl_lock);
	pthread_mutex_unlock(&shard->lock);
	if (last)
		glock_free(gl);
}

/*
 * Have the lock released. Afterwards the glock is unlocked, or on the way from
 * invalidated to unlocked, or withdrawn. What others have begun (a request that
 * was given up, a demotion) is waited for, except the answer to an unlock.
 */
static void glock_release(struct glock *gl)
{
	pthread_mutex_lock(&gl->gl_lock);
	ug_assert(cds_list_empty(&gl->gl_holders));
	gl->gl_flags |= GLF_RETIRING;
	for (;;) {
		/* Also what an answer that is kept back will bring. */
		glock_request_demote(gl, LM_ST_UNLOCKED);
		if (!(gl->gl_flags & GLF_BACKOFF))
			glock_queue_drop(gl);
		glock_run_working(gl);
		if (!gl->gl_pins && !(gl->gl_flags & GLF_RUNNING) &&
		    (!(gl->gl_flags & GLF_LOCK) ||
		     gl->gl_target == LM_ST_UNLOCKED ||
		     (gl->gl_flags & GLF_WITHDRAWN)))
			break;
		glock_sleep_retirer(gl);
	}
	pthread_mutex_unlock(&gl->gl_lock);
}

/* The glock is dying, and this is the thread that put the last reference. */
static void glock_retire(struct glock *gl)
{
	struct glock_shard *shard = shard_of(gl);
	bool last;

	glock_release(gl);
	pthread_mutex_lock(&shard->lock);
	pthread_mutex_lock(&gl->gl_lock);
	gl->gl_flags |= GLF_ORPHAN;
	last = is_free_orphan(gl);
	if (!last) {
		gl->gl_dying = false;
		pthread_cond_broadcast(&shard->settled);
	}
	pthread_mutex_unlock(&gl->gl_lock);
	pthread_mutex_unlock(&shard->lock);
	if (last)
		glock_free(gl);
}

/* Returns false if it is the last reference, which it then still is. */
static bool drop_unless_last(struct glock *gl)
{
	unsigned refs = atomic_load(&gl->gl_refs);

	while (refs > 1) {
		if (atomic_compare_exchange_weak(&gl->gl_refs, &refs, refs - 1))
			return true;
	}
	return false;
}

void glock_put(struct glock *gl)
{
	struct glock_shard *shard;
	bool last;

	if (drop_unless_last(gl))
		return;
	shard = shard_of(gl);
	pthread_mutex_lock(&shard->lock);
	last = atomic_fetch_sub(&gl->gl_refs, 1) == 1;
	if (last)
		gl->gl_dying = true;
	pthread_mutex_unlock(&shard->lock);
	if (last)
		glock_retire(gl);
}

static void glock_withdraw(struct glock *gl)
{
	pthread_mutex_lock(&gl->gl_lock);
	gl->gl_flags |= GLF_WITHDRAWN;
	glock_fail_without_noexp(gl);
	if (gl->gl_retirer)
		pthread_cond_signal(&gl->gl_retirer->wake);
	pthread_mutex_unlock(&gl->gl_lock);
}

void glock_table_freeze(struct glock_table *table)
{
	atomic_store(&table->frozen, true);
}

/* Pinned glocks, to be run without the locks of the table. */
struct thaw_batch {
	struct glock *gl[THAW_BATCH];
	unsigned count;
};

static void collect_frozen(struct thaw_batch *batch, struct glock_shard *shard)
{
	struct glock *gl = NULL;

	batch->count = 0;
	pthread_mutex_lock(&shard->lock);
	while (batch->count < THAW_BATCH &&
	       (gl = glock_shard_next(shard, gl))) {
		if (gl->gl_dying)
			continue;
		pthread_mutex_lock(&gl->gl_lock);
		if (gl->gl_flags & GLF_FROZEN) {
			/* Seen: the next batch begins behind it. */
			gl->gl_flags &= ~GLF_FROZEN;
			gl->gl_pins++;
			batch->gl[batch->count++] = gl;
		}
		pthread_mutex_unlock(&gl->gl_lock);
	}
	pthread_mutex_unlock(&shard->lock);
}

static bool keeps_frozen(struct glock_table *table)
{
	return atomic_load(&table->frozen) && !atomic_load(&table->withdrawn);
}

static void run_frozen(struct glock_table *table, struct glock_shard *shard)
{
	struct thaw_batch batch;

	do {
		collect_frozen(&batch, shard);
		for (unsigned i = 0; i < batch.count; i++) {
			struct glock *gl = batch.gl[i];

			pthread_mutex_lock(&gl->gl_lock);
			glock_run(gl);
			glock_unpin_unlock(gl);
		}
	} while (batch.count == THAW_BATCH && !keeps_frozen(table));
}

void glock_table_thaw(struct glock_table *table)
{
	/* First this: an answer behind the walk is not kept back. */
	atomic_store(&table->frozen, false);
	for (unsigned s = 0; s < GLOCK_SHARDS; s++)
		run_frozen(table, &table->shards[s]);
}

void glock_table_withdraw(struct glock_table *table)
{
	/* First this: a glock made behind the walk has the flag from birth. */
	atomic_store(&table->withdrawn, true);
	for (unsigned s = 0; s < GLOCK_SHARDS; s++) {
		struct glock_shard *shard = &table->shards[s];
		struct glock *gl = NULL;

		pthread_mutex_lock(&shard->lock);
		while ((gl = glock_shard_next(shard, gl)))
			glock_withdraw(gl);
		pthread_mutex_unlock(&shard->lock);
		/* Answers that were kept back: nobody will use them now. */
		run_frozen(table, shard);
	}
}

static int shard_init(struct glock_shard *shard)
{
	shard->buckets_count = BUCKETS_MIN;
	shard->buckets = calloc(BUCKETS_MIN, sizeof(*shard->buckets));
	if (!shard->buckets)
		return -ENOMEM;
	pthread_mutex_init(&shard->lock, NULL);
	pthread_cond_init(&shard->settled, NULL);
	return 0;
}

static void shard_fini(struct glock_shard *shard)
{
	pthread_cond_destroy(&shard->settled);
	pthread_mutex_destroy(&shard->lock);
	free(shard->buckets);
}

int glock_table_create(const struct lockmod *mod, const char *who,
		       struct glock_table **tablep)
{
	struct glock_table *table = calloc(1, sizeof(*table));
	unsigned inited = 0;

	if (!table)
		return -ENOMEM;
	table->mod = *mod;
	table->who = strdup(who);
	if (!table->who)
		goto free_table;
	glock_queue_init(&table->queue);
	atomic_store(&table->demote_secs, GLOCK_DEMOTE_SECS);
	atomic_store(&table->cached_max, GLOCK_CACHED_MAX);
	atomic_store(&table->hold_max_ms, GLOCK_HOLD_MS);
	while (inited < GLOCK_SHARDS) {
		if (shard_init(&table->shards[inited]))
			goto fini_shards;
		inited++;
	}
	*tablep = table;
	return 0;

fini_shards:
	while (inited)
		shard_fini(&table->shards[--inited]);
	glock_queue_fini(&table->queue);
	free(table->who);
free_table:
	free(table);
	return -ENOMEM;
}

void glock_table_set_host(struct glock_table *table,
			  const struct glock_host *host)
{
	table->host = *host;
}

/* Every glock that is left must be an orphan; wait until it is gone. */
static void shard_drain(struct glock_table *table, struct glock_shard *shard)
{
	const struct glock *gl = NULL;

	pthread_mutex_lock(&shard->lock);
	while ((gl = glock_shard_next(shard, gl))) {
		if (!gl->gl_refs)
			continue;
		ug_error(table->who, "glock %u/%llx is still in use",
			 gl->gl_ops->type, (unsigned long long)gl->gl_number);
		ug_assert(!gl->gl_refs);
	}
	while (shard->count)
		pthread_cond_wait(&shard->settled, &shard->lock);
	pthread_mutex_unlock(&shard->lock);
}

void glock_table_destroy(struct glock_table *table)
{
	for (unsigned s = 0; s < GLOCK_SHARDS; s++) {
		shard_drain(table, &table->shards[s]);
		shard_fini(&table->shards[s]);
	}
	glock_queue_fini(&table->queue);
	free(table->who);
	free(table);
}
