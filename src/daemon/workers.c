/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * workers.c - the threads that do the file system's background work.
 */
#include <errno.h>
#include <string.h>
#include <time.h>

#include "base/assert.h"
#include "daemon/workers.h"

/* The period that fs_work_run() asks of its host. */
#define TICK_SEC 1

static const char *const work_names[FS_WORK_COUNT] = {
	[FS_WORK_WRITEBACK] = "ugfs-write",
	[FS_WORK_COMMIT] = "ugfs-commit",
	[FS_WORK_CHECKPOINT] = "ugfs-checkpt",
	[FS_WORK_EVICT] = "ugfs-evict",
};

void workers_init(struct workers *w)
{
	pthread_condattr_t attr;

	memset(w, 0, sizeof(*w));
	pthread_condattr_init(&attr);
	pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
	for (unsigned i = 0; i < FS_WORK_COUNT; i++) {
		struct worker *wk = &w->worker[i];

		wk->all = w;
		wk->work = (enum fs_work)i;
		pthread_mutex_init(&wk->lock, NULL);
		pthread_cond_init(&wk->cond, &attr);
	}
	pthread_condattr_destroy(&attr);
}

void workers_fini(struct workers *w)
{
	for (unsigned i = 0; i < FS_WORK_COUNT; i++) {
		pthread_cond_destroy(&w->worker[i].cond);
		pthread_mutex_destroy(&w->worker[i].lock);
	}
}

void workers_wake(struct workers *w, enum fs_work work)
{
	struct worker *wk = &w->worker[work];

	ug_assert(work < FS_WORK_COUNT);
	pthread_mutex_lock(&wk->lock);
	if (!wk->wanted) {
		wk->wanted = true;
		pthread_cond_signal(&wk->cond);
	}
	pthread_mutex_unlock(&wk->lock);
}

/* Wait for a request or the tick. false: stop. *now: it was a request. */
static bool worker_wait(struct worker *wk, bool *now)
{
	struct timespec until;
	bool go_on;
	int err = 0;

	clock_gettime(CLOCK_MONOTONIC, &until);
	until.tv_sec += TICK_SEC;
	pthread_mutex_lock(&wk->lock);
	while (!wk->wanted && !wk->stop && err != ETIMEDOUT)
		err = pthread_cond_timedwait(&wk->cond, &wk->lock, &until);
	*now = wk->wanted;
	wk->wanted = false;
	go_on = !wk->stop;
	pthread_mutex_unlock(&wk->lock);
	return go_on;
}

static void *worker_main(void *arg)
{
	struct worker *wk = arg;
	bool now;

	pthread_setname_np(pthread_self(), work_names[wk->work]);
	while (worker_wait(wk, &now))
		fs_work_run(wk->all->fs, wk->work, now);
	return NULL;
}

int workers_start(struct workers *w, struct fs *fs)
{
	w->fs = fs;
	for (unsigned i = 0; i < FS_WORK_COUNT; i++) {
		struct worker *wk = &w->worker[i];

		if (pthread_create(&wk->thread, NULL, worker_main, wk)) {
			workers_stop(w);
			return -EAGAIN;
		}
		wk->started = true;
	}
	return 0;
}

void workers_stop(struct workers *w)
{
	for (unsigned i = 0; i < FS_WORK_COUNT; i++) {
		struct worker *wk = &w->worker[i];

		pthread_mutex_lock(&wk->lock);
		wk->stop = true;
		pthread_cond_signal(&wk->cond);
		pthread_mutex_unlock(&wk->lock);
	}
	for (unsigned i = 0; i < FS_WORK_COUNT; i++) {
		struct worker *wk = &w->worker[i];

		if (wk->started)
			pthread_join(wk->thread, NULL);
		wk->started = false;
	}
}
