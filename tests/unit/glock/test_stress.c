/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Many threads and another node that wants the same locks, with an oracle.
 *
 * Each of a few objects is a counter on a "disk" with a copy in a cache. This
 * node's threads add to the copy under EX and look at it under SH and DF;
 * the other node adds to the disk when it has the lock alone. sync copies to
 * the disk, instantiate from it, invalidate spoils the copy. All of these
 * are plain variables: a wrong grant, a missing or late sync, invalidate or
 * instantiate shows as a lost addition, a spoilt copy, or (under TSan) a race.
 *
 * The other node is one thread, which is also the lock manager: it answers
 * when it likes, refuses tries, reports conversion deadlocks, cancels.
 *
 * Usage: test_stress [seed [operations per thread]]
 */
#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/assert.h"
#include "base/prng.h"
#include "glock/glock.h"

#define OBJECTS 4u
#define THREADS 4u
#define SPOILT UINT64_MAX

#define SH LM_ST_SHARED
#define EX LM_ST_EXCLUSIVE
#define DF LM_ST_DEFERRED
#define UN LM_ST_UNLOCKED

/* What the lock protects. */
struct object {
	uint64_t disk;
	uint64_t copy;
	uint64_t shadow; /* equal to copy, but for a moment under EX */
};

/* The lock manager's side of a lock; guarded by other.lock. */
struct lock {
	struct glock *gl; /* NULL: not known here */
	enum lm_state ours;
	bool asked; /* a request is under way */
	bool cancelled;
	enum lm_state target;
	unsigned flags;
	bool wanted; /* by the other node; the call has been sent */
};

static struct object objects[OBJECTS];
static struct glock_table *table;
static uint64_t operations = 3000;

static struct {
	pthread_mutex_t lock;
	pthread_cond_t changed;
	struct lock locks[OBJECTS];
	struct glock *calling; /* glock_callback() is running for it */
	pthread_t thread;
	bool stop;
	uint64_t added[OBJECTS];
} other = {
	.lock = PTHREAD_MUTEX_INITIALIZER,
	.changed = PTHREAD_COND_INITIALIZER,
};

static int object_sync(struct glock *gl)
{
	struct object *obj = glock_object(gl);

	ug_assert(obj->copy == obj->shadow);
	ug_assert(obj->copy != SPOILT);
	obj->disk = obj->copy;
	return 0;
}

static void object_invalidate(struct glock *gl, enum lm_state target)
{
	struct object *obj = glock_object(gl);

	/* DF: only "data" goes, the copy is metadata here. */
	if (target == UN)
		obj->copy = obj->shadow = SPOILT;
}

static int object_instantiate(struct glock *gl, bool nowait)
{
	struct object *obj = glock_object(gl);

	if (nowait)
		return -EAGAIN;
	obj->copy = obj->shadow = obj->disk;
	return 0;
}

static const struct glock_ops object_ops = {
	.type = LM_TYPE_INODE,
	.sync = object_sync,
	.invalidate = object_invalidate,
	.instantiate = object_instantiate,
};

static void lm_lock(void *mod, struct glock *gl, enum lm_state state,
		    unsigned flags)
{
	struct lock *lk = &other.locks[glock_number(gl)];

	pthread_mutex_lock(&other.lock);
	ug_assert(!lk->asked);
	ug_assert(!lk->gl || lk->gl == gl);
	lk->gl = gl;
	lk->asked = true;
	lk->cancelled = false;
	lk->target = state;
	lk->flags = flags;
	pthread_cond_broadcast(&other.changed);
	pthread_mutex_unlock(&other.lock);
}

static void lm_cancel(void *mod, struct glock *gl)
{
	pthread_mutex_lock(&other.lock);
	other.locks[glock_number(gl)].cancelled = true;
	pthread_mutex_unlock(&other.lock);
}

static void lm_put(void *mod, struct glock *gl, bool keep)
{
	struct lock *lk = &other.locks[glock_number(gl)];

	pthread_mutex_lock(&other.lock);
	ug_assert(!lk->asked);
	ug_assert(lk->ours == UN);
	/* A call for it that is running on another thread must be over. */
	while (other.calling == gl &&
	       !pthread_equal(pthread_self(), other.thread))
		pthread_cond_wait(&other.changed, &other.lock);
	lk->gl = NULL;
	pthread_mutex_unlock(&other.lock);
}

static const struct lockmod_ops lm_ops = {
	.name = "lock_stress",
	.lock = lm_lock,
	.cancel = lm_cancel,
	.put = lm_put,
};

static enum lm_outcome choose_outcome(const struct lock *lk,
				      struct ug_prng *prng)
{
	bool up = lk->target == EX || lk->ours == UN;
	bool conversion = lk->ours != UN && lk->target != UN;

	if (lk->cancelled && ug_prng_below(prng, 2))
		return LM_OUT_CANCELLED;
	if (up && (lk->flags & (GL_TRY | GL_TRY_1CB)) &&
	    (lk->wanted || ug_prng_below(prng, 4) == 0))
		return LM_OUT_BUSY;
	if (conversion && lk->ours != EX && ug_prng_below(prng, 4) == 0)
		return LM_OUT_DEADLOCK;
	return LM_OUT_DONE;
}

/* other.lock is held, and dropped for the answer. */
static void answer(struct lock *lk, struct ug_prng *prng)
{
	struct glock *gl = lk->gl;
	enum lm_outcome outcome = choose_outcome(lk, prng);
	enum lm_state state = outcome == LM_OUT_DONE ? lk->target : lk->ours;

	lk->asked = false;
	lk->ours = state;
	pthread_mutex_unlock(&other.lock);
	glock_complete(gl, state, outcome);
	pthread_mutex_lock(&other.lock);
}

/* The other node asks for a lock that we have. */
static void call(struct lock *lk, enum lm_state wanted)
{
	struct glock *gl = lk->gl;

	if (wanted == EX)
		lk->wanted = true;
	other.calling = gl;
	pthread_mutex_unlock(&other.lock);
	glock_callback(gl, wanted);
	pthread_mutex_lock(&other.lock);
	other.calling = NULL;
	pthread_cond_broadcast(&other.changed);
}

/* One thing that the other node or the lock manager does with this lock. */
static void other_step(unsigned i, struct ug_prng *prng)
{
	static const enum lm_state wishes[] = { EX, EX, SH, DF };
	struct lock *lk = &other.locks[i];

	if (lk->wanted && lk->ours == UN) {
		objects[i].disk++;
		other.added[i]++;
		lk->wanted = false;
	} else if (lk->asked && ug_prng_below(prng, 3)) {
		answer(lk, prng);
	} else if (lk->gl && lk->ours != UN && !lk->wanted &&
		   ug_prng_below(prng, 8) == 0) {
		call(lk, wishes[ug_prng_below(prng, 4)]);
	}
}

static void *other_main(void *arg)
{
	struct ug_prng prng;

	ug_prng_seed(&prng, *(uint64_t *)arg);
	pthread_mutex_lock(&other.lock);
	while (!other.stop) {
		other_step((unsigned)ug_prng_below(&prng, OBJECTS), &prng);
		pthread_mutex_unlock(&other.lock);
		sched_yield();
		pthread_mutex_lock(&other.lock);
	}
	pthread_mutex_unlock(&other.lock);
	return NULL;
}

struct worker {
	pthread_t thread;
	struct ug_prng prng;
	struct glock *kept[OBJECTS]; /* references kept for a while */
	uint64_t added[OBJECTS];
	uint64_t failed;
	uint64_t given_up;
};

static void use(struct worker *w, struct glock *gl, enum lm_state state)
{
	struct object *obj = glock_object(gl);

	ug_assert(obj->copy != SPOILT);
	ug_assert(obj->copy == obj->shadow);
	if (state == EX) {
		obj->copy++;
		glock_set_dirty(gl);
		sched_yield();
		obj->shadow++;
		w->added[glock_number(gl)]++;
	}
	if (ug_prng_below(&w->prng, 8) == 0)
		sched_yield();
	ug_assert(obj->copy == obj->shadow);
}

static unsigned choose_flags(struct ug_prng *prng, enum lm_state state)
{
	static const unsigned flags[] = {
		0, 0, 0, 0, GL_TRY, GL_TRY_1CB, GL_NOWAIT, GL_NOCACHE, GL_EXACT,
	};

	return flags[ug_prng_below(prng, UG_ARRAY_SIZE(flags))];
}

static void one_request(struct worker *w, struct glock *gl)
{
	static const enum lm_state states[] = { SH, SH, EX, EX, DF };
	enum lm_state state = states[ug_prng_below(&w->prng, 5)];
	unsigned flags = choose_flags(&w->prng, state);
	struct glock_holder gh;
	int err;

	if (ug_prng_below(&w->prng, 4) == 0) {
		err = glock_nq(gl, state, flags | GL_ASYNC, &gh);
		if (!err && ug_prng_below(&w->prng, 2)) {
			glock_dq(&gh);
			w->given_up++;
			return;
		}
		if (!err)
			err = glock_wait(&gh);
	} else {
		err = glock_nq(gl, state, flags, &gh);
	}
	ug_assert(glock_held(&gh) == !err);
	if (err) {
		ug_assert(err == -EAGAIN);
		ug_assert(flags & (GL_TRY | GL_TRY_1CB | GL_NOWAIT));
		w->failed++;
		return;
	}
	use(w, gl, state);
	glock_dq(&gh);
}

static void *worker_main(void *arg)
{
	struct worker *w = arg;

	for (uint64_t n = 0; n < operations; n++) {
		uint64_t i = ug_prng_below(&w->prng, OBJECTS);
		struct glock *gl = w->kept[i];

		if (!gl)
			ug_assert(!glock_get(table, &object_ops, i, &objects[i],
					     &gl));
		w->kept[i] = gl;
		one_request(w, gl);
		if (ug_prng_below(&w->prng, 4) == 0) {
			w->kept[i] = NULL;
			glock_put(gl);
		}
		if (n % 64 == 0)
			glock_table_check(table);
		if (n % 256 == 0)
			glock_table_shrink(table, LM_TYPE_INODE, UINT32_MAX, 2);
	}
	for (unsigned i = 0; i < OBJECTS; i++) {
		if (w->kept[i])
			glock_put(w->kept[i]);
	}
	return NULL;
}

/* Nothing was lost: neither ours nor the other node's. */
static int compare(const struct worker *workers)
{
	int bad = 0;

	for (unsigned i = 0; i < OBJECTS; i++) {
		uint64_t ours = 0;

		for (unsigned t = 0; t < THREADS; t++)
			ours += workers[t].added[i];
		printf("object %u: %llu here, %llu there, disk %llu\n", i,
		       (unsigned long long)ours,
		       (unsigned long long)other.added[i],
		       (unsigned long long)objects[i].disk);
		if (objects[i].disk != ours + other.added[i])
			bad = 1;
		/* A run in which one side did nothing has shown nothing. */
		if (!ours || !other.added[i])
			bad = 1;
	}
	return bad;
}

int main(int argc, char **argv)
{
	uint64_t seed = argc > 1 ? strtoull(argv[1], NULL, 0) : 1;
	struct lockmod mod = { .ops = &lm_ops };
	static struct worker workers[THREADS];
	uint64_t failed = 0, given_up = 0;

	if (argc > 2)
		operations = strtoull(argv[2], NULL, 0);
	ug_assert(!glock_table_create(&mod, "stress", &table));
	for (unsigned i = 0; i < OBJECTS; i++)
		objects[i].copy = objects[i].shadow = SPOILT;
	pthread_mutex_lock(&other.lock);
	pthread_create(&other.thread, NULL, other_main, &seed);
	pthread_mutex_unlock(&other.lock);
	for (unsigned t = 0; t < THREADS; t++) {
		ug_prng_seed(&workers[t].prng, seed * 1000 + t);
		pthread_create(&workers[t].thread, NULL, worker_main,
			       &workers[t]);
	}
	for (unsigned t = 0; t < THREADS; t++) {
		pthread_join(workers[t].thread, NULL);
		failed += workers[t].failed;
		given_up += workers[t].given_up;
	}
	glock_table_destroy(table);
	pthread_mutex_lock(&other.lock);
	other.stop = true;
	pthread_mutex_unlock(&other.lock);
	pthread_join(other.thread, NULL);
	printf("seed %llu: %llu tries failed, %llu given up\n",
	       (unsigned long long)seed, (unsigned long long)failed,
	       (unsigned long long)given_up);
	return compare(workers);
}
