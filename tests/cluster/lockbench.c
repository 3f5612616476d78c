/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * lockbench.c - what a lock costs.
 *
 * Usage: lockbench CLUSTER:NAME hold|SECONDS. With "hold" it takes a lock in NL
 * on the resource "remote", so that it is mastered here, says "held" and waits
 * for SIGTERM. Otherwise it measures, one thread, nanoseconds of time and of
 * the thread's own processor time: locking and unlocking, and converting
 * between NL and EX, of a resource that is mastered here and known; the same of
 * "remote", if another one holds it.
 */
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "ugfs/ugdlm.h"

static struct ugdlm *ls;
static _Atomic bool running, stopping;
static _Atomic unsigned asts;

static uint64_t now_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * 1000000000u + (uint64_t)ts.tv_nsec;
}

static void on_running(void *arg, uint32_t generation,
		       const struct ugdlm_member *self)
{
	running = true;
}

static const struct ugdlm_events events = { .running = on_running };

static void on_ast(void *ctx, struct ugdlm_lksb *lksb)
{
	asts++;
}

static void on_term(int signo)
{
	stopping = true;
}

static void dispatch_until(_Atomic bool *flag)
{
	while (!*flag) {
		struct pollfd fd = { ugdlm_fd(ls), POLLIN, 0 };

		if (poll(&fd, 1, 100) > 0)
			ugdlm_dispatch(ls, 64);
	}
}

/* The end of an operation; this thread dispatches. */
static void finish(int err, unsigned before)
{
	if (err < 0) {
		printf("refused: %s\n", strerror(-err));
		exit(5);
	}
	while (!err && asts == before) {
		struct pollfd fd = { ugdlm_fd(ls), POLLIN, 0 };

		if (poll(&fd, 1, 1000) > 0)
			ugdlm_dispatch(ls, 1);
	}
}

static void lock(struct ugdlm_lksb *lksb, const char *name,
		 enum ugdlm_mode mode, uint32_t flags)
{
	struct ugdlm_request req = {
		.mode = mode,
		.flags = flags,
		.name = name,
		.name_len = strlen(name),
		.lksb = lksb,
		.ast = on_ast,
		.inline_ok = true,
	};
	unsigned before = asts;

	finish(ugdlm_lock(ls, &req), before);
	if (lksb->status != UGDLM_OK) {
		printf("status %d\n", (int)lksb->status);
		exit(5);
	}
}

static void unlock(struct ugdlm_lksb *lksb)
{
	unsigned before = asts;

	finish(ugdlm_unlock(ls, lksb, 0, true), before);
}

static uint64_t cpu_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &ts);
	return (uint64_t)ts.tv_sec * 1000000000u + (uint64_t)ts.tv_nsec;
}

static void print(const char *name, const char *what, uint64_t start,
		  uint64_t cpu_start, uint64_t n)
{
	printf("%s: %s %.0f, processor %.0f\n", name, what,
	       (double)(now_ns() - start) / (double)n,
	       (double)(cpu_ns() - cpu_start) / (double)n);
}

static void measure(const char *name, uint64_t time_ns)
{
	struct ugdlm_lksb lksb = { 0 };
	uint64_t start = now_ns(), end = start + time_ns, n = 0;
	uint64_t cpu = cpu_ns();

	do {
		for (unsigned i = 0; i < 16; i++) {
			lock(&lksb, name, UGDLM_EX, 0);
			unlock(&lksb);
		}
		n += 16;
	} while (now_ns() < end);
	print(name, "lock and unlock", start, cpu, n);

	lock(&lksb, name, UGDLM_NL, 0);
	n = 0;
	start = now_ns();
	cpu = cpu_ns();
	end = start + time_ns;
	do {
		for (unsigned i = 0; i < 8; i++) {
			lock(&lksb, name, UGDLM_EX, UGDLM_CONVERT);
			lock(&lksb, name, UGDLM_NL, UGDLM_CONVERT);
		}
		n += 16;
	} while (now_ns() < end);
	print(name, "convert", start, cpu, n);
	unlock(&lksb);
}

int main(int argc, char **argv)
{
	struct ugdlm_config config = { .events = &events };
	struct ugdlm_lksb held = { 0 };
	char why[512];

	if (argc != 3)
		return 2;
	setvbuf(stdout, NULL, _IOLBF, 0);
	config.name = argv[1];
	if (ugdlm_join(&config, 60000, &ls, why, sizeof(why))) {
		printf("not joined: %s\n", why);
		return 4;
	}
	signal(SIGTERM, on_term);
	dispatch_until(&running);
	if (!strcmp(argv[2], "hold")) {
		lock(&held, "remote", UGDLM_NL, 0);
		printf("held\n");
		dispatch_until(&stopping);
	} else {
		uint64_t ns = (uint64_t)atoi(argv[2]) * 1000000000u;

		measure("local", ns);
		measure("remote", ns);
	}
	return ugdlm_leave(ls, false) ? 3 : 0;
}
