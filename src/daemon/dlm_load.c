/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * dlm_load.c - see dlm_load.h.
 */
#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "daemon/dlm_load.h"

/* What a slot does next, or has under way. */
enum step {
	STEP_LOCK,
	STEP_UP,
	STEP_DOWN,
	STEP_UNLOCK,
};

struct load {
	const struct load_config *config;
	_Atomic bool stop;
	_Atomic unsigned active; /* slots that have not ended */
	_Atomic uint64_t next;	 /* name */
	_Atomic int err;
};

struct slot {
	struct load *load;
	unsigned index;
	enum step step;
	struct ugdlm_lksb own, *lksb;
	uint64_t begin_ns; /* 0: this one is not timed */
	uint64_t operations, pairs;
	struct latency up, down;
	char name[UGDLM_NAME_MAX + 1];
	size_t name_len;
};

struct worker {
	pthread_t thread;
	struct load *load;
	struct slot *slots;
};

uint64_t load_now_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * 1000000000u + (uint64_t)ts.tv_nsec;
}

uint64_t load_cpu_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &ts);
	return (uint64_t)ts.tv_sec * 1000000000u + (uint64_t)ts.tv_nsec;
}

static void fail(struct load *load, int err)
{
	int none = 0;

	atomic_compare_exchange_strong(&load->err, &none, err);
	load->stop = true;
}

static void slot_run(struct slot *s);

/* Deciding */

static void set_name(struct slot *s, uint64_t number)
{
	int n = snprintf(s->name, sizeof(s->name), "%s%llu",
			 s->load->config->prefix,
			 (unsigned long long)(s->load->config->first + number));

	s->name_len = n < UGDLM_NAME_MAX ? (size_t)n : UGDLM_NAME_MAX;
}

/* False: there is none left. */
static bool new_name(struct slot *s)
{
	const struct load_config *config = s->load->config;
	uint64_t number = atomic_fetch_add(&s->load->next, 1);

	if (number >= config->names)
		return false;
	set_name(s, number);
	if (config->kind == LOAD_HOLD)
		s->lksb = &config->held[number];
	return true;
}

/* False: the slot has ended. Nothing is held then, but by HOLD. */
static bool decide(struct slot *s)
{
	enum load_kind kind = s->load->config->kind;

	if (s->step != STEP_LOCK) {
		if (s->step == STEP_UP && s->load->stop)
			s->step = STEP_UNLOCK;
		return true;
	}
	if (s->load->stop)
		return false;
	if (kind == LOAD_NEW || kind == LOAD_HOLD)
		return new_name(s);
	return true;
}

/* What comes after what has ended now. */
static void advance(struct slot *s)
{
	enum load_kind kind = s->load->config->kind;
	bool timed = s->begin_ns, down = false;

	switch (s->step) {
	case STEP_LOCK:
		timed &= kind != LOAD_CONVERT;
		s->step = kind == LOAD_CONVERT ? STEP_UP
			  : kind == LOAD_HOLD  ? STEP_LOCK
					       : STEP_UNLOCK;
		s->pairs += kind == LOAD_HOLD;
		break;
	case STEP_UP:
		s->step = STEP_DOWN;
		break;
	case STEP_DOWN:
		down = true;
		s->step = STEP_UP;
		s->pairs++;
		break;
	case STEP_UNLOCK:
		down = true;
		timed &= kind != LOAD_CONVERT;
		s->pairs += kind != LOAD_CONVERT;
		s->step = STEP_LOCK;
		break;
	}
	if (timed)
		latency_add(down ? &s->down : &s->up,
			    load_now_ns() - s->begin_ns);
}

/* Doing */

static void ended(struct slot *s)
{
	enum ugdlm_status good =
		s->step == STEP_UNLOCK ? UGDLM_UNLOCKED : UGDLM_OK;

	if (s->lksb->status == good) {
		advance(s);
		return;
	}
	fail(s->load, -EIO);
	s->step = STEP_LOCK;
}

static void on_ast(void *ctx, struct ugdlm_lksb *lksb)
{
	struct slot *s = ctx;

	ended(s);
	slot_run(s);
}

static int issue(struct slot *s)
{
	const struct load_config *config = s->load->config;
	struct ugdlm_request req = {
		.lksb = s->lksb,
		.ast = on_ast,
		.ctx = s,
		.inline_ok = true,
	};

	if (s->step == STEP_UNLOCK)
		return ugdlm_unlock(config->ls, s->lksb, 0, true);
	if (s->step == STEP_LOCK) {
		req.mode = config->kind == LOAD_LOCK || config->kind == LOAD_NEW
				   ? UGDLM_EX
				   : UGDLM_NL;
		req.name = s->name;
		req.name_len = s->name_len;
	} else {
		req.mode = s->step == STEP_UP ? UGDLM_EX : UGDLM_NL;
		req.flags = UGDLM_CONVERT;
	}
	return ugdlm_lock(config->ls, &req);
}

static void slot_run(struct slot *s)
{
	struct load *load = s->load;

	while (decide(s)) {
		bool timed = s->operations++ / 2 % load->config->sample == 0;
		int err;

		s->begin_ns = timed ? load_now_ns() : 0;
		err = issue(s);
		/* From here on it may be another thread's. */
		if (err == 0)
			return;
		if (err < 0) {
			fail(load, err);
			break;
		}
		ended(s);
	}
	load->active--;
}

static void *worker_main(void *arg)
{
	struct worker *w = arg;
	const struct load_config *config = w->load->config;

	for (unsigned i = 0; i < config->depth; i++)
		slot_run(&w->slots[i]);
	while (w->load->active) {
		struct pollfd fd = { ugdlm_fd(config->ls), POLLIN, 0 };

		if (poll(&fd, 1, 20) > 0)
			ugdlm_dispatch(config->ls, 256);
	}
	return NULL;
}

/* Running */

static void init_slots(struct load *load, struct slot *slots, unsigned count)
{
	for (unsigned i = 0; i < count; i++) {
		slots[i].load = load;
		slots[i].index = i;
		slots[i].lksb = &slots[i].own;
		set_name(&slots[i], i);
	}
	load->active = count;
}

static void wait_for_time(struct load *load, uint64_t begin)
{
	uint64_t time_ns = load->config->time_ms * (uint64_t)1000000u;

	while (load->active && !load->stop) {
		struct timespec pause = { 0, 5000000 };

		nanosleep(&pause, NULL);
		if (time_ns && load_now_ns() - begin >= time_ns)
			load->stop = true;
	}
}

static void sum_up(const struct slot *slots, unsigned count,
		   struct load_result *result)
{
	for (unsigned i = 0; i < count; i++) {
		result->pairs += slots[i].pairs;
		latency_merge(&result->up, &slots[i].up);
		latency_merge(&result->down, &slots[i].down);
	}
}

int load_run(const struct load_config *config, struct load_result *result)
{
	unsigned count = config->threads * config->depth, started = 0;
	struct worker *workers = calloc(config->threads, sizeof(*workers));
	struct slot *slots = calloc(count, sizeof(*slots));
	struct load load = { .config = config };
	uint64_t begin, cpu_begin;

	memset(result, 0, sizeof(*result));
	if (!workers || !slots) {
		load.err = -ENOMEM;
		goto out;
	}
	init_slots(&load, slots, count);
	begin = load_now_ns();
	cpu_begin = load_cpu_ns();
	for (; started < config->threads; started++) {
		workers[started].load = &load;
		workers[started].slots = slots + started * config->depth;
		if (pthread_create(&workers[started].thread, NULL, worker_main,
				   &workers[started])) {
			fail(&load, -EAGAIN);
			load.active -=
				(config->threads - started) * config->depth;
			break;
		}
	}
	wait_for_time(&load, begin);
	for (unsigned i = 0; i < started; i++)
		pthread_join(workers[i].thread, NULL);
	result->ns = load_now_ns() - begin;
	result->cpu_ns = load_cpu_ns() - cpu_begin;
	result->used = load.next < config->names ? load.next : config->names;
	sum_up(slots, count, result);
out:
	free(slots);
	free(workers);
	return load.err;
}
