/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Several members with lock_dlm, many threads each, with an oracle.
 *
 * Each of a few objects is a counter on a shared "disk" with a copy in each
 * member's cache. Requests add to the copy under EX and look at it under SH
 * and DF. sync copies to the disk, instantiate from it, invalidate spoils the
 * copy; where there is a value block, it has the count as well. All of these
 * are plain variables: a wrong grant, a missing or late sync, invalidate or
 * instantiate shows as a lost addition, a spoilt copy or (under TSan) a race;
 * when no request has ended for STUCK_SECS, all tables are printed.
 *
 * Members are frozen and thawed meanwhile, their caches are bounded, requests
 * wait with a thread and without, are tried, given up, timed out.
 *
 * Usage: test_cluster [seed [operations per thread]]
 */
#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/assert.h"
#include "base/compiler.h"
#include "base/prng.h"
#include "fakedlm.h"
#include "glock/glock.h"
#include "glock/glstat.h"
#include "lockmod/dlm.h"

#define NODES 3u
#define OBJECTS 4u
#define REQUESTERS 3u
#define WORKERS 2u
#define SPOILT UINT64_MAX
#define STUCK_SECS 20u
#define LVB_MAGIC 0x01161970u

#define SH LM_ST_SHARED
#define EX LM_ST_EXCLUSIVE
#define DF LM_ST_DEFERRED
#define UN LM_ST_UNLOCKED

struct object {
	uint64_t *disk;
	uint64_t copy;
	uint64_t shadow; /* equal to copy, but for a moment under EX */
};

struct lvb {
	uint32_t magic;
	uint32_t zero;
	uint64_t count;
};

struct requester {
	pthread_t thread;
	struct node *node;
	struct ug_prng prng;
	struct glock *kept[OBJECTS];
	uint64_t added[OBJECTS];
	uint64_t outcomes[4]; /* done, refused, given up, timed out */
	uint64_t longest_ns;
	pthread_mutex_t lock;
	pthread_cond_t told;
	bool is_told;
};

struct node {
	struct ugdlm *ls;
	struct lockmod_dlm *dlm;
	struct glock_table *table;
	struct object objects[OBJECTS];
	struct glock *kept[OBJECTS]; /* who comes back has a reference */
	struct requester requesters[REQUESTERS];
	pthread_t dispatcher;
	pthread_t workers[WORKERS];
	pthread_mutex_t lock;
	pthread_cond_t woken;
	unsigned wakes;
	bool stop;
};

static uint64_t disk[OBJECTS];
static struct node nodes[NODES];
static uint64_t operations = 400;
static atomic_bool over;
static atomic_uint ended; /* requests */

static uint64_t now_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * 1000000000u + (uint64_t)ts.tv_nsec;
}

/* ---- what the glocks protect ---- */

static int object_sync(struct glock *gl)
{
	struct object *obj = glock_object(gl);

	ug_assert(obj->copy == obj->shadow && obj->copy != SPOILT);
	*obj->disk = obj->copy;
	return 0;
}

static void object_invalidate(struct glock *gl, enum lm_state target)
{
	struct object *obj = glock_object(gl);

	if (target == UN)
		obj->copy = obj->shadow = SPOILT;
}

static int object_instantiate(struct glock *gl, bool nowait)
{
	struct object *obj = glock_object(gl);

	if (nowait)
		return -EAGAIN;
	obj->copy = obj->shadow = *obj->disk;
	return 0;
}

static atomic_uint callbacks, recalls;

static void object_callback(struct glock *gl, enum lm_state wanted)
{
	ug_assert(glock_object(gl));
	atomic_fetch_add(&callbacks, 1);
}

/*
 * What the kernel has of it comes back by requests for this very glock, and the
 * recall waits for them. Afterwards it has none.
 */
static void object_recall(struct glock *gl, enum lm_state target)
{
	struct glock_holder gh;
	int err = glock_nq(gl, SH, GL_SKIP, &gh);

	ug_assert(err == 0);
	/* It is not one that would have to be asked for. */
	ug_assert(glock_state(gl) != UN);
	sched_yield();
	glock_dq(&gh);
	atomic_fetch_add(&recalls, 1);
}

/* Half of them are inodes, half resource groups. */
static const struct glock_ops ops[2] = {
	{
		.type = LM_TYPE_INODE,
		.hold = true,
		.recall = object_recall,
		.sync = object_sync,
		.invalidate = object_invalidate,
		.instantiate = object_instantiate,
		.callback = object_callback,
	},
	{
		.type = LM_TYPE_RGRP,
		.value_block = true,
		.sync = object_sync,
		.invalidate = object_invalidate,
		.instantiate = object_instantiate,
	},
};

/* ---- requests ---- */

static void check_lvb(struct glock *gl, uint64_t count)
{
	const struct lvb *lvb = glock_lvb(gl);

	if (lvb && lvb->magic == LVB_MAGIC)
		ug_assert(lvb->count == count);
	else
		ug_assert(!lvb || !lvb->magic);
}

static void use(struct requester *r, struct glock *gl, enum lm_state state)
{
	struct object *obj = glock_object(gl);
	struct lvb *lvb;

	ug_assert(obj->copy != SPOILT && obj->copy == obj->shadow);
	/* Under DF and, with EX cached, under SH it may be behind the copy. */
	if (state != DF && glock_state(gl) == state)
		check_lvb(gl, obj->copy);
	if (state == EX) {
		obj->copy++;
		glock_set_dirty(gl);
		if (ug_prng_below(&r->prng, 4) == 0)
			sched_yield();
		obj->shadow++;
		r->added[glock_number(gl)]++;
		lvb = glock_lvb(gl);
		if (lvb)
			*lvb = (struct lvb){ .magic = LVB_MAGIC,
					     .count = obj->copy };
	}
	if (ug_prng_below(&r->prng, 8) == 0)
		sched_yield();
	ug_assert(obj->copy == obj->shadow);
}

/* A request that waits without a thread; which is this one's, here. */
struct parked {
	struct glock_holder gh;
	struct requester *r;
};

static void on_told(struct glock_holder *gh)
{
	struct requester *r = ug_container_of(gh, struct parked, gh)->r;

	pthread_mutex_lock(&r->lock);
	ug_assert(!r->is_told);
	r->is_told = true;
	pthread_cond_signal(&r->told);
	pthread_mutex_unlock(&r->lock);
}

static void wait_to_be_told(struct requester *r)
{
	pthread_mutex_lock(&r->lock);
	while (!r->is_told)
		pthread_cond_wait(&r->told, &r->lock);
	pthread_mutex_unlock(&r->lock);
}

static int request_parked(struct requester *r, struct glock *gl,
			  enum lm_state state, unsigned flags,
			  struct glock_holder *gh)
{
	struct parked parked = { .r = r };
	int err;

	r->is_told = false;
	err = glock_nq_notify(gl, state, flags, &parked.gh, on_told);
	if (err && err != -EINPROGRESS)
		return err;
	if (err && ug_prng_below(&r->prng, 8) == 0) {
		glock_dq(&parked.gh);
		return -ECANCELED;
	}
	if (err)
		wait_to_be_told(r);
	err = glock_adopt(&parked.gh, GL_NOWAIT, gh);
	if (err == -EAGAIN && glock_held(&parked.gh))
		err = glock_adopt(&parked.gh, 0, gh);
	return err;
}

static int request_async(struct requester *r, struct glock *gl,
			 enum lm_state state, unsigned flags,
			 struct glock_holder *gh)
{
	int err = glock_nq(gl, state, flags | GL_ASYNC, gh);

	if (err)
		return err;
	switch (ug_prng_below(&r->prng, 3)) {
	case 0:
		glock_dq(gh);
		return -ECANCELED;
	case 1:
		err = glock_wait_until(
			gh, now_ns() + ug_prng_below(&r->prng, 3000000));
		if (err == -ETIMEDOUT)
			glock_dq(gh);
		return err;
	}
	return glock_wait(gh);
}

static int request(struct requester *r, struct glock *gl, enum lm_state state,
		   unsigned flags, struct glock_holder *gh)
{
	/* They take each other's place. */
	if (!(flags & GL_NOWAIT) && ug_prng_below(&r->prng, 4) == 0)
		return request_parked(r, gl, state, flags, gh);
	if (ug_prng_below(&r->prng, 5) == 0)
		return request_async(r, gl, state, flags, gh);
	return glock_nq(gl, state, flags, gh);
}

static void one_request(struct requester *r, struct glock *gl)
{
	static const enum lm_state states[] = { SH, SH, SH, EX, EX, DF };
	static const unsigned flag_sets[] = {
		0,	    0,	       0,	   0,	     0,	       GL_TRY,
		GL_TRY_1CB, GL_NOWAIT, GL_NOCACHE, GL_EXACT, GL_NOEXP,
	};
	enum lm_state state =
		states[ug_prng_below(&r->prng, UG_ARRAY_SIZE(states))];
	unsigned flags =
		flag_sets[ug_prng_below(&r->prng, UG_ARRAY_SIZE(flag_sets))];
	uint64_t begin = now_ns();
	struct glock_holder gh;
	int err;

	/* No direct I/O beside mapped pages. */
	if (state == DF && glock_type(gl) == LM_TYPE_INODE)
		state = SH;
	err = request(r, gl, state, flags, &gh);

	r->longest_ns = UG_MAX(r->longest_ns, now_ns() - begin);
	atomic_fetch_add(&ended, 1);
	switch (err) {
	case 0:
		use(r, gl, state);
		glock_dq(&gh);
		r->outcomes[0]++;
		return;
	case -EAGAIN:
		ug_assert(flags & (GL_TRY | GL_TRY_1CB | GL_NOWAIT));
		r->outcomes[1]++;
		return;
	case -ECANCELED:
		r->outcomes[2]++;
		return;
	case -ETIMEDOUT:
		r->outcomes[3]++;
		return;
	}
	ug_assert(err == 0);
}

static struct glock *get(struct requester *r, uint64_t i)
{
	struct glock *gl;

	ug_assert(!glock_get(r->node->table, &ops[i % 2], i,
			     &r->node->objects[i], &gl));
	return gl;
}

static void *requester_main(void *arg)
{
	struct requester *r = arg;

	for (uint64_t n = 0; n < operations; n++) {
		uint64_t i = ug_prng_below(&r->prng, OBJECTS);

		if (!r->kept[i])
			r->kept[i] = get(r, i);
		/* A burst, as a program makes them. */
		for (uint64_t k = ug_prng_below(&r->prng, 6); k < 6; k++)
			one_request(r, r->kept[i]);
		if (ug_prng_below(&r->prng, 16) == 0) {
			glock_put(r->kept[i]);
			r->kept[i] = NULL;
		}
		if (n % 64 == 0)
			glock_table_check(r->node->table);
	}
	for (unsigned i = 0; i < OBJECTS; i++) {
		if (r->kept[i])
			glock_put(r->kept[i]);
	}
	return NULL;
}

/* ---- the members' threads ---- */

static void *dispatcher_main(void *arg)
{
	struct node *n = arg;

	while (fakedlm_wait(n->ls)) {
		ugdlm_dispatch(n->ls, 3);
		sched_yield();
	}
	return NULL;
}

static void on_wake(void *arg)
{
	struct node *n = arg;

	pthread_mutex_lock(&n->lock);
	n->wakes++;
	pthread_cond_broadcast(&n->woken);
	pthread_mutex_unlock(&n->lock);
}

static void sleep_until(struct node *n, unsigned seen, uint64_t ns)
{
	struct timespec until = {
		.tv_sec = (time_t)(ns / 1000000000u),
		.tv_nsec = (long)(ns % 1000000000u),
	};

	while (!n->stop && n->wakes == seen) {
		if (ns == UINT64_MAX)
			pthread_cond_wait(&n->woken, &n->lock);
		else if (pthread_cond_clockwait(&n->woken, &n->lock,
						CLOCK_MONOTONIC, &until))
			return;
	}
}

static void *worker_main(void *arg)
{
	struct node *n = arg;

	pthread_mutex_lock(&n->lock);
	while (!n->stop) {
		unsigned seen = n->wakes;
		uint64_t ns;

		pthread_mutex_unlock(&n->lock);
		while (glock_table_work(n->table))
			;
		ns = glock_table_wake_ns(n->table);
		pthread_mutex_lock(&n->lock);
		sleep_until(n, seen, ns);
	}
	pthread_mutex_unlock(&n->lock);
	return NULL;
}

/* Members are frozen for a moment, as if others were being recovered. */
static void *freezer_main(void *arg)
{
	struct ug_prng prng;

	ug_prng_seed(&prng, *(uint64_t *)arg + 77);
	while (!atomic_load(&over)) {
		struct node *n = &nodes[ug_prng_below(&prng, NODES)];

		glock_table_freeze(n->table);
		usleep((useconds_t)ug_prng_below(&prng, 2000));
		glock_table_check(n->table);
		glock_table_thaw(n->table);
		usleep((useconds_t)ug_prng_below(&prng, 10000));
	}
	return NULL;
}

static void print_line(void *arg, const char *text)
{
	printf("%u %s\n", *(unsigned *)arg, text);
}

/* Nothing moves any more: show why, and fail. */
static void *watchdog_main(void *arg)
{
	unsigned before = 0, same = 0;

	while (!atomic_load(&over)) {
		unsigned now = atomic_load(&ended);

		same = now == before ? same + 1 : 0;
		before = now;
		if (same < STUCK_SECS * 10) {
			usleep(100000);
			continue;
		}
		for (unsigned n = 0; n < NODES; n++) {
			struct glock_dump out = { .line = print_line,
						  .arg = &n };

			printf("member %u is %p\n", n, (void *)nodes[n].ls);
			while (glock_table_dump(nodes[n].table, &out))
				;
		}
		fakedlm_print(arg);
		fflush(stdout);
		abort();
	}
	return NULL;
}

static void node_start(struct fakedlm *server, struct node *n)
{
	struct glock_host host = { .wake = on_wake, .arg = n };
	struct lockmod mod;

	pthread_mutex_init(&n->lock, NULL);
	pthread_cond_init(&n->woken, NULL);
	n->ls = fakedlm_join(server);
	ug_assert(!lockmod_dlm_create(n->ls, "cluster", &n->dlm));
	mod = lockmod_dlm(n->dlm);
	ug_assert(!glock_table_create(&mod, "cluster", &n->table));
	glock_table_set_host(n->table, &host);
	glock_table_set_idle(n->table, 1, OBJECTS - 1);
	for (unsigned i = 0; i < OBJECTS; i++)
		n->objects[i] = (struct object){ &disk[i], SPOILT, SPOILT };
	for (unsigned i = 0; i < OBJECTS; i += 2)
		ug_assert(!glock_get(n->table, &ops[0], i, &n->objects[i],
				     &n->kept[i]));
	pthread_create(&n->dispatcher, NULL, dispatcher_main, n);
	for (unsigned i = 0; i < WORKERS; i++)
		pthread_create(&n->workers[i], NULL, worker_main, n);
}

static void requesters_start(struct node *n, uint64_t seed)
{
	for (unsigned i = 0; i < REQUESTERS; i++) {
		struct requester *r = &n->requesters[i];

		r->node = n;
		ug_prng_seed(&r->prng, seed * 100 + i);
		pthread_mutex_init(&r->lock, NULL);
		pthread_cond_init(&r->told, NULL);
		pthread_create(&r->thread, NULL, requester_main, r);
	}
}

static void node_stop(struct node *n)
{
	pthread_mutex_lock(&n->lock);
	n->stop = true;
	pthread_cond_broadcast(&n->woken);
	pthread_mutex_unlock(&n->lock);
	for (unsigned i = 0; i < WORKERS; i++)
		pthread_join(n->workers[i], NULL);
	for (unsigned i = 0; i < OBJECTS; i += 2)
		glock_put(n->kept[i]);
	glock_table_destroy(n->table);
	fakedlm_wake(n->ls);
	pthread_join(n->dispatcher, NULL);
	fakedlm_leave(n->ls);
	lockmod_dlm_destroy(n->dlm);
	pthread_cond_destroy(&n->woken);
	pthread_mutex_destroy(&n->lock);
}

/* ---- the outcome ---- */

static uint64_t added_by(const struct node *n, unsigned object)
{
	uint64_t added = 0;

	for (unsigned i = 0; i < REQUESTERS; i++)
		added += n->requesters[i].added[object];
	return added;
}

static int compare(void)
{
	int bad = 0;

	for (unsigned i = 0; i < OBJECTS; i++) {
		uint64_t all = 0;

		printf("object %u:", i);
		for (unsigned n = 0; n < NODES; n++) {
			uint64_t added = added_by(&nodes[n], i);

			printf(" %llu", (unsigned long long)added);
			all += added;
			bad |= !added;
		}
		printf(", disk %llu\n", (unsigned long long)disk[i]);
		bad |= disk[i] != all;
	}
	return bad;
}

static void print_requests(void)
{
	uint64_t outcomes[4] = { 0 }, longest = 0;

	for (unsigned n = 0; n < NODES; n++) {
		for (unsigned i = 0; i < REQUESTERS; i++) {
			const struct requester *r = &nodes[n].requesters[i];

			for (unsigned k = 0; k < 4; k++)
				outcomes[k] += r->outcomes[k];
			longest = UG_MAX(longest, r->longest_ns);
		}
	}
	printf("%llu done, %llu refused, %llu given up, %llu timed out; "
	       "longest %llu ms\n",
	       (unsigned long long)outcomes[0], (unsigned long long)outcomes[1],
	       (unsigned long long)outcomes[2], (unsigned long long)outcomes[3],
	       (unsigned long long)longest / 1000000);
}

static void print_stats(void)
{
	for (unsigned n = 0; n < NODES; n++) {
		struct glock_type_stats st[2];

		glock_table_stats(nodes[n].table, LM_TYPE_INODE, &st[0]);
		glock_table_stats(nodes[n].table, LM_TYPE_RGRP, &st[1]);
		for (unsigned i = 0; i < 2; i++)
			printf("node %u %s: %llu requests, %llu busy, %llu "
			       "deadlocks, %llu callbacks, %llu delayed, %llu "
			       "given away, %llu put away\n",
			       n, i ? "rgrp" : "inode",
			       (unsigned long long)st[i].requests,
			       (unsigned long long)st[i].busy,
			       (unsigned long long)st[i].deadlocks,
			       (unsigned long long)st[i].callbacks,
			       (unsigned long long)st[i].delayed,
			       (unsigned long long)st[i].given_away,
			       (unsigned long long)st[i].put_away);
	}
}

int main(int argc, char **argv)
{
	uint64_t seed = argc > 1 ? strtoull(argv[1], NULL, 0) : 1;
	struct fakedlm *server = fakedlm_new(seed);
	pthread_t freezer, watchdog;

	if (argc > 2)
		operations = strtoull(argv[2], NULL, 0);
	fakedlm_set_inline(server, (unsigned)(seed * 37 % 101));
	for (unsigned n = 0; n < NODES; n++)
		node_start(server, &nodes[n]);
	for (unsigned n = 0; n < NODES; n++)
		requesters_start(&nodes[n], seed * 10 + n);
	pthread_create(&freezer, NULL, freezer_main, &seed);
	pthread_create(&watchdog, NULL, watchdog_main, server);
	for (unsigned n = 0; n < NODES; n++) {
		for (unsigned i = 0; i < REQUESTERS; i++)
			pthread_join(nodes[n].requesters[i].thread, NULL);
		fakedlm_check(server);
	}
	atomic_store(&over, true);
	pthread_join(freezer, NULL);
	pthread_join(watchdog, NULL);
	printf("seed %llu: %u callbacks, %u recalls of inodes\n",
	       (unsigned long long)seed, atomic_load(&callbacks),
	       atomic_load(&recalls));
	print_requests();
	print_stats();
	for (unsigned n = 0; n < NODES; n++)
		node_stop(&nodes[n]);
	fakedlm_free(server);
	return compare();
}
