/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * glworkers.c - the threads that give locks back to other nodes.
 *
 * The loop is the one that glock.h asks for. Whoever finds all of them at work
 * when there is more makes another one, which stays.
 */
#include <errno.h>
#include <string.h>
#include <time.h>

#include "daemon/glworkers.h"

#define NS_PER_SEC 1000000000u

static void *worker_main(void *arg);

void glworkers_init(struct glworkers *w)
{
	pthread_condattr_t attr;

	memset(w, 0, sizeof(*w));
	pthread_mutex_init(&w->lock, NULL);
	pthread_condattr_init(&attr);
	pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
	pthread_cond_init(&w->cond, &attr);
	pthread_condattr_destroy(&attr);
}

void glworkers_fini(struct glworkers *w)
{
	pthread_cond_destroy(&w->cond);
	pthread_mutex_destroy(&w->lock);
}

/* The lock is held. */
static int add_worker(struct glworkers *w)
{
	if (pthread_create(&w->threads[w->count], NULL, worker_main, w))
		return -EAGAIN;
	w->count++;
	return 0;
}

void glworkers_wake(struct glworkers *w)
{
	pthread_mutex_lock(&w->lock);
	w->wanted = true;
	if (w->idle)
		pthread_cond_signal(&w->cond);
	else if (w->fs && !w->stop && w->count < GLWORKERS_MAX)
		add_worker(w);
	pthread_mutex_unlock(&w->lock);
}

/* The lock is held. Until somebody asks, or it is time. */
static void rest(struct glworkers *w)
{
	struct timespec ts;
	uint64_t when_ns;

	pthread_mutex_unlock(&w->lock);
	when_ns = fs_glock_wake_ns(w->fs);
	pthread_mutex_lock(&w->lock);
	if (w->wanted || w->stop)
		return;
	w->idle++;
	if (when_ns == UINT64_MAX) {
		pthread_cond_wait(&w->cond, &w->lock);
	} else {
		ts.tv_sec = (time_t)(when_ns / NS_PER_SEC);
		ts.tv_nsec = (long)(when_ns % NS_PER_SEC);
		pthread_cond_timedwait(&w->cond, &w->lock, &ts);
	}
	w->idle--;
}

static void *worker_main(void *arg)
{
	struct glworkers *w = arg;

	pthread_setname_np(pthread_self(), "ugfs-glock");
	pthread_mutex_lock(&w->lock);
	while (!w->stop) {
		w->wanted = false;
		pthread_mutex_unlock(&w->lock);
		while (fs_glock_work(w->fs))
			;
		pthread_mutex_lock(&w->lock);
		if (!w->wanted && !w->stop)
			rest(w);
	}
	pthread_mutex_unlock(&w->lock);
	return NULL;
}

int glworkers_start(struct glworkers *w, struct fs *fs)
{
	int err = 0;

	pthread_mutex_lock(&w->lock);
	w->fs = fs;
	while (!err && w->count < GLWORKERS_MIN)
		err = add_worker(w);
	pthread_mutex_unlock(&w->lock);
	if (err)
		glworkers_stop(w);
	return err;
}

void glworkers_stop(struct glworkers *w)
{
	pthread_mutex_lock(&w->lock);
	w->stop = true;
	pthread_cond_broadcast(&w->cond);
	pthread_mutex_unlock(&w->lock);
	/* Nobody adds to them any more. */
	for (unsigned i = 0; i < w->count; i++)
		pthread_join(w->threads[i], NULL);
	w->count = 0;
}
