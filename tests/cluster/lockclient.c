/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * lockclient.c - a program that takes random locks as fast as it can.
 *
 * Usage: lockclient [-s] [-f FENCE] [-u] CLUSTER:NAME HISTORY SECONDS THREADS
 * RESOURCES. Joins, and when locks are granted each thread takes locks on names
 * of a small set, in random modes, converts, cancels and releases them, and
 * reads and writes their value blocks. What it held is written down in HISTORY
 * (lockhistory.h). Events are printed as lines. -s: with a supervisor; -u: the
 * lockspace protects something (its slots are held). SIGTERM ends it early.
 *
 * Exits 0 when it has left, 3 when the lockspace was lost, 4 when it could not
 * join.
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include "base/prng.h"
#include "lockhistory.h"
#include "ugfs/ugdlm.h"

#define DISPATCHERS 2

struct worker {
	pthread_t thread;
	uint32_t id;
	struct ug_prng prng;
	struct ugdlm_lksb lksb;
	pthread_mutex_t lock;
	pthread_cond_t ended_cond;
	bool ended; /* the operation under way */
};

static struct ugdlm *ls;
static struct history *history;
static unsigned resources;
static _Atomic bool stopping, lost;
static _Atomic unsigned runs; /* running() so far */
static pthread_mutex_t runs_lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t runs_cond = PTHREAD_COND_INITIALIZER;

static uint64_t now_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * 1000000000u + (uint64_t)ts.tv_nsec;
}

/* Events */

/* Events come one at a time. */
static void note_change(enum change_kind kind)
{
	uint32_t i = history->changes;

	if (i == CHANGES_MAX)
		return;
	history->change[i].kind = kind;
	history->change[i].ns = now_ns();
	history->changes = i + 1;
}

static void on_prepare(void *arg)
{
	note_change(CHANGE_PREPARE);
	printf("prepare\n");
}

static void on_gone(void *arg, const struct ugdlm_member *m, enum ugdlm_end end)
{
	static const char *const ends[] = { "clean", "dirty", "died" };

	printf("gone %u slot %u %s\n", m->nodeid, m->slot, ends[end]);
	ugdlm_slot_clean(ls, m->slot);
}

static void on_running(void *arg, uint32_t generation,
		       const struct ugdlm_member *self)
{
	note_change(CHANGE_RUNNING);
	printf("running slot %u\n", self->slot);
	pthread_mutex_lock(&runs_lock);
	runs++;
	pthread_cond_broadcast(&runs_cond);
	pthread_mutex_unlock(&runs_lock);
}

static void on_quorate(void *arg, bool quorate)
{
	printf("quorate %s\n", quorate ? "yes" : "no");
}

static void on_lost(void *arg, const char *why)
{
	printf("lost: %s\n", why);
	lost = true;
	stopping = true;
}

static const struct ugdlm_events events = {
	.prepare = on_prepare,
	.gone = on_gone,
	.running = on_running,
	.quorate = on_quorate,
	.lost = on_lost,
};

static _Atomic bool dispatching = true;

static void *dispatch_main(void *arg)
{
	while (dispatching) {
		struct pollfd fd = { ugdlm_fd(ls), POLLIN, 0 };

		if (poll(&fd, 1, 50) > 0)
			ugdlm_dispatch(ls, 64);
		history->alive_ns = now_ns();
	}
	return NULL;
}

/* Operations, as calls that wait for their end */

static void on_ast(void *ctx, struct ugdlm_lksb *lksb)
{
	struct worker *w = ctx;

	pthread_mutex_lock(&w->lock);
	w->ended = true;
	pthread_cond_signal(&w->ended_cond);
	pthread_mutex_unlock(&w->lock);
}

static void on_bast(void *ctx, struct ugdlm_lksb *lksb, enum ugdlm_mode blocked)
{
}

static void die(const char *what, int err)
{
	printf("%s: %s\n", what, strerror(-err));
	fflush(stdout);
	_exit(5);
}

/* Sometimes it is cancelled on the way. */
static void await(struct worker *w, bool cancel)
{
	if (cancel) {
		int err = ugdlm_unlock(ls, &w->lksb, UGDLM_CANCEL, false);

		/* -ENOENT: the request has ended and left nothing. */
		if (err && err != -ENOENT && err != -ESHUTDOWN)
			die("cancel", err);
	}
	pthread_mutex_lock(&w->lock);
	while (!w->ended)
		pthread_cond_wait(&w->ended_cond, &w->lock);
	pthread_mutex_unlock(&w->lock);
	history->operations++;
}

/* False: the lockspace is lost. */
static bool lock(struct worker *w, unsigned resource, enum ugdlm_mode mode,
		 uint32_t flags, bool cancel)
{
	struct ugdlm_request req = {
		.mode = mode,
		.flags = flags | UGDLM_VALBLK,
		.lksb = &w->lksb,
		.ast = on_ast,
		.bast = on_bast,
		.ctx = w,
		.inline_ok = ug_prng_below(&w->prng, 2),
		.timeout_ms = flags & UGDLM_TIMEOUT ? 20 : 0,
	};
	char name[16];
	int err;

	req.name_len = (size_t)snprintf(name, sizeof(name), "r%u", resource);
	req.name = name;
	w->ended = false;
	err = ugdlm_lock(ls, &req);
	if (err == 0)
		await(w, cancel);
	else if (err != 1 && err != -ESHUTDOWN)
		die("lock", err);
	return err != -ESHUTDOWN && w->lksb.status != UGDLM_LOST;
}

static bool unlock(struct worker *w, uint32_t flags)
{
	int err;

	w->ended = false;
	err = ugdlm_unlock(ls, &w->lksb, flags, true);
	if (err == 0)
		await(w, false);
	else if (err != 1 && err != -ESHUTDOWN)
		die("unlock", err);
	return err != -ESHUTDOWN && w->lksb.status != UGDLM_LOST;
}

static struct hold *begin_hold(struct worker *w, unsigned resource)
{
	uint32_t i = atomic_fetch_add(&history->count, 1);
	struct hold *hold;

	if (i >= HISTORY_MAX) {
		history->count = HISTORY_MAX;
		stopping = true;
		return NULL;
	}
	hold = &history->hold[i];
	hold->resource = (uint16_t)resource;
	hold->mode = (int8_t)w->lksb.mode;
	hold->thread = w->id;
	hold->did_read =
		w->lksb.lvb_valid && !(w->lksb.sbflags & UGDLM_SB_VALNOTVALID);
	memcpy(&hold->read, w->lksb.lvb, sizeof(hold->read));
	hold->begin_ns = now_ns();
	return hold;
}

static void linger(struct worker *w)
{
	struct timespec ts = { 0, (long)ug_prng_below(&w->prng, 200000) };

	if (ug_prng_below(&w->prng, 4) == 0)
		nanosleep(&ts, NULL);
}

/* A value that nobody else writes. */
static void end_hold(struct worker *w, struct hold *hold, bool write)
{
	static _Atomic uint32_t serial;
	uint64_t value = (uint64_t)history->node << 56 |
			 (uint64_t)(history->pid & 0xffffff) << 32 |
			 (atomic_fetch_add(&serial, 1) + 1);

	if (write) {
		hold->written = value;
		memcpy(w->lksb.lvb, &value, sizeof(value));
	}
	hold->end_ns = now_ns();
}

static enum ugdlm_mode any_mode(struct worker *w)
{
	static const enum ugdlm_mode modes[] = {
		UGDLM_NL, UGDLM_CR, UGDLM_CW, UGDLM_PR,
		UGDLM_PR, UGDLM_PW, UGDLM_EX, UGDLM_EX,
	};

	return modes[ug_prng_below(&w->prng, 8)];
}

static uint32_t any_flags(struct worker *w)
{
	switch (ug_prng_below(&w->prng, 6)) {
	case 0:
		return UGDLM_NOQUEUE;
	case 1:
		return UGDLM_TIMEOUT;
	default:
		return 0;
	}
}

/* Held: for a moment, perhaps in several modes, then not any more. */
static bool use_lock(struct worker *w, unsigned resource)
{
	while (w->lksb.mode != UGDLM_IV) {
		struct hold *hold = begin_hold(w, resource);
		enum ugdlm_mode held = w->lksb.mode;
		enum ugdlm_mode next = any_mode(w);
		bool convert = !stopping && ug_prng_below(&w->prng, 3);

		if (!hold)
			return false;
		linger(w);
		/* PW to EX reads, all else from a write mode writes. */
		end_hold(w, hold,
			 held >= UGDLM_PW && !(convert && held == UGDLM_PW &&
					       next == UGDLM_EX));
		if (!convert) {
			if (!unlock(w, UGDLM_VALBLK))
				return false;
			continue;
		}
		if (!lock(w, resource, next, UGDLM_CONVERT | any_flags(w),
			  ug_prng_below(&w->prng, 8) == 0))
			return false;
		/* Still held as before: nothing has been written. */
		if (w->lksb.status != UGDLM_OK)
			hold->written = 0;
	}
	return true;
}

static void *worker_main(void *arg)
{
	struct worker *w = arg;

	while (!stopping) {
		unsigned resource =
			(unsigned)ug_prng_below(&w->prng, resources);

		memset(&w->lksb, 0, sizeof(w->lksb));
		if (!lock(w, resource, any_mode(w), any_flags(w),
			  ug_prng_below(&w->prng, 8) == 0) ||
		    !use_lock(w, resource))
			break;
	}
	return NULL;
}

/* Life */

static void make_history(const char *path)
{
	int fd = open(path, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);

	if (fd < 0 || ftruncate(fd, sizeof(*history)))
		die(path, -errno);
	history = mmap(NULL, sizeof(*history), PROT_READ | PROT_WRITE,
		       MAP_SHARED, fd, 0);
	if (history == MAP_FAILED)
		die(path, -errno);
	close(fd);
	history->magic = HISTORY_MAGIC;
	history->pid = (uint32_t)getpid();
	history->node = (uint32_t)atoi(getenv("LAB_NODE") ?: "0");
}

static void on_term(int signo)
{
	stopping = true;
}

static void run_for(unsigned seconds)
{
	uint64_t end = now_ns() + seconds * (uint64_t)1000000000u;

	pthread_mutex_lock(&runs_lock);
	while (!runs && !stopping) {
		struct timespec ts;

		clock_gettime(CLOCK_REALTIME, &ts);
		ts.tv_nsec += 50000000;
		ts.tv_sec += ts.tv_nsec / 1000000000;
		ts.tv_nsec %= 1000000000;
		pthread_cond_timedwait(&runs_cond, &runs_lock, &ts);
	}
	pthread_mutex_unlock(&runs_lock);
	while (!stopping && now_ns() < end)
		usleep(20000);
	stopping = true;
}

/* A value block lasts as long as somebody has a lock: this one is for that. */
static struct worker *anchor(unsigned resource)
{
	struct worker *w = calloc(1, sizeof(*w));

	pthread_mutex_init(&w->lock, NULL);
	pthread_cond_init(&w->ended_cond, NULL);
	if (!lock(w, resource, UGDLM_NL, UGDLM_EXPEDITE, false))
		stopping = true;
	return w;
}

static void work(unsigned seconds, unsigned threads)
{
	struct worker *workers = calloc(threads, sizeof(*workers));
	struct worker **anchors = calloc(resources, sizeof(*anchors));

	for (unsigned i = 0; i < resources; i++)
		anchors[i] = anchor(i);
	for (unsigned i = 0; i < threads; i++) {
		struct worker *w = &workers[i];

		w->id = i;
		ug_prng_seed(&w->prng, now_ns() ^ (uint64_t)getpid() << 32 ^ i);
		pthread_mutex_init(&w->lock, NULL);
		pthread_cond_init(&w->ended_cond, NULL);
		pthread_create(&w->thread, NULL, worker_main, w);
	}
	run_for(seconds);
	for (unsigned i = 0; i < threads; i++)
		pthread_join(workers[i].thread, NULL);
	for (unsigned i = 0; i < resources; i++) {
		unlock(anchors[i], 0);
		free(anchors[i]);
	}
	free(anchors);
	free(workers);
}

static int run(const char *name, bool with_uuid, unsigned seconds,
	       unsigned threads)
{
	struct ugdlm_config config = { .name = name, .events = &events };
	pthread_t dispatchers[DISPATCHERS];
	char why[512];
	int err;

	if (with_uuid)
		memcpy(config.uuid, "lockclient's own", 16);
	err = ugdlm_join(&config, 60000, &ls, why, sizeof(why));
	if (err) {
		printf("not joined: %s\n", why);
		return 4;
	}
	printf("joined\n");
	for (unsigned i = 0; i < DISPATCHERS; i++)
		pthread_create(&dispatchers[i], NULL, dispatch_main, NULL);
	work(seconds, threads);
	dispatching = false;
	for (unsigned i = 0; i < DISPATCHERS; i++)
		pthread_join(dispatchers[i], NULL);
	printf("operations %llu\n", (unsigned long long)history->operations);
	err = ugdlm_leave(ls, false);
	if (err)
		printf("not left: %s\n", strerror(-err));
	return err || lost ? 3 : 0;
}

int main(int argc, char **argv)
{
	struct ugdlm_supervise sup = { 0 };
	bool supervised = false, with_uuid = false;
	int opt;

	setvbuf(stdout, NULL, _IOLBF, 0);
	while ((opt = getopt(argc, argv, "sf:u")) != -1) {
		supervised |= opt == 's';
		with_uuid |= opt == 'u';
		if (opt == 'f')
			sup.fence = optarg;
	}
	if (argc - optind != 5)
		return 2;
	if (supervised && ugdlm_supervise(&sup))
		return 2;
	signal(SIGTERM, on_term);
	resources = (unsigned)atoi(argv[optind + 4]);
	make_history(argv[optind + 1]);
	return run(argv[optind], with_uuid, (unsigned)atoi(argv[optind + 2]),
		   (unsigned)atoi(argv[optind + 3]));
}
