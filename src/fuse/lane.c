/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * lane.c - threads that serve requests which have to wait.
 *
 *	push --> queue --+--> thread, serving (may sleep in a read of the disk)
 *			 +--> thread, serving
 *			 +--> idle: latest first, its stack is warm
 *
 * A push wakes an idle thread, or starts one if none is idle and the maximum
 * is not reached; a thread that has been idle for IDLE_SEC ends, unless it
 * belongs to the minimum. A start that fails (no memory, a limit of the system)
 * leaves the request to the threads there are.
 *
 * lane->lock guards everything; nothing is served under it.
 */
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <time.h>

#include "fuse/lane.h"
#include "fuse/thread.h"

/* Longer than the interval of commits (5 s): not a new thread for each. */
#define IDLE_SEC 8

/* An idle thread; on its stack. */
struct idler {
	struct cds_list_head link; /* lane->idle */
	pthread_cond_t wake;
	bool woken; /* off the list */
};

/* What a thread is at; on its stack. */
struct serving {
	struct cds_list_head link; /* lane->serving */
	struct fuse_wait request;
};

struct lane {
	struct lane_params params;
	pthread_mutex_t lock;
	pthread_condattr_t monotonic;
	pthread_cond_t ended; /* threads has become 0 */
	struct cds_list_head queue;
	struct cds_list_head idle;
	struct cds_list_head serving;
	unsigned threads; /* that run or are being started */
	bool stopping;
	struct lane_stats stats;
};

static bool wake_one(struct lane *lane)
{
	struct idler *idler;

	if (cds_list_empty(&lane->idle))
		return false;
	idler = cds_list_first_entry(&lane->idle, struct idler, link);
	cds_list_del(&idler->link);
	idler->woken = true;
	pthread_cond_signal(&idler->wake);
	return true;
}

static struct fuse_slot *queue_pop(struct lane *lane)
{
	struct fuse_slot *slot;

	slot = cds_list_first_entry(&lane->queue, struct fuse_slot, link);
	cds_list_del(&slot->link);
	lane->stats.queued--;
	return slot;
}

/* The lane's lock is held, and let go meanwhile. */
static void await_service(struct lane *lane)
{
	if (!lane->params.await)
		return;
	pthread_mutex_unlock(&lane->lock);
	lane->params.await(lane->params.arg);
	pthread_mutex_lock(&lane->lock);
}

/* The first of the queue when it may be served; NULL: there is none. */
static struct fuse_slot *next_slot(struct lane *lane)
{
	if (cds_list_empty(&lane->queue))
		return NULL;
	await_service(lane);
	return cds_list_empty(&lane->queue) ? NULL : queue_pop(lane);
}

/* Sleep until woken. False: nobody has wanted this thread, it should end. */
static bool thread_idle(struct lane *lane, struct idler *idler)
{
	struct timespec until;
	int err = 0;

	clock_gettime(CLOCK_MONOTONIC, &until);
	until.tv_sec += IDLE_SEC;
	idler->woken = false;
	cds_list_add(&idler->link, &lane->idle);
	while (!idler->woken) {
		bool surplus = lane->threads > lane->params.threads_min;

		if (err == ETIMEDOUT && surplus) {
			cds_list_del(&idler->link);
			return false;
		}
		/* The minimum sleeps without an alarm clock. */
		if (surplus)
			err = pthread_cond_timedwait(&idler->wake, &lane->lock,
						     &until);
		else
			err = pthread_cond_wait(&idler->wake, &lane->lock);
	}
	return true;
}

static void thread_loop(struct lane *lane, struct idler *idler)
{
	struct fuse_slot *slot;

	for (;;) {
		while ((slot = next_slot(lane))) {
			struct serving serving = {
				.request =
					fuse_wait_of(&slot->req, slot->read_ns),
			};

			cds_list_add(&serving.link, &lane->serving);
			pthread_mutex_unlock(&lane->lock);
			lane->params.serve(lane->params.arg, slot);
			pthread_mutex_lock(&lane->lock);
			cds_list_del(&serving.link);
		}
		if (lane->stopping || !thread_idle(lane, idler))
			return;
	}
}

static void *thread_main(void *arg)
{
	struct lane *lane = arg;
	struct idler idler;

	pthread_mutex_lock(&lane->lock);
	pthread_cond_init(&idler.wake, &lane->monotonic);
	thread_loop(lane, &idler);
	pthread_cond_destroy(&idler.wake);
	if (--lane->threads == 0)
		pthread_cond_signal(&lane->ended);
	pthread_mutex_unlock(&lane->lock);
	return NULL;
}

/* One more thread. lane->lock held: the thread begins by taking it. */
static int thread_add(struct lane *lane)
{
	int err = fuse_thread_detached(lane->params.name, thread_main, lane);

	if (err)
		return err;
	lane->threads++;
	lane->stats.threads_peak =
		UG_MAX(lane->stats.threads_peak, lane->threads);
	return 0;
}

static int threads_begin(struct lane *lane)
{
	int err = 0;

	pthread_mutex_lock(&lane->lock);
	while (!err && lane->threads < lane->params.threads_min)
		err = thread_add(lane);
	pthread_mutex_unlock(&lane->lock);
	return err;
}

int lane_create(const struct lane_params *params, struct lane **lanep)
{
	struct lane *lane = calloc(1, sizeof(*lane));
	int err;

	if (!lane)
		return -ENOMEM;
	lane->params = *params;
	pthread_mutex_init(&lane->lock, NULL);
	pthread_condattr_init(&lane->monotonic);
	pthread_condattr_setclock(&lane->monotonic, CLOCK_MONOTONIC);
	pthread_cond_init(&lane->ended, NULL);
	CDS_INIT_LIST_HEAD(&lane->queue);
	CDS_INIT_LIST_HEAD(&lane->idle);
	CDS_INIT_LIST_HEAD(&lane->serving);
	err = threads_begin(lane);
	if (err) {
		lane_destroy(lane);
		return err;
	}
	*lanep = lane;
	return 0;
}

void lane_stop(struct lane *lane)
{
	if (!lane)
		return;
	pthread_mutex_lock(&lane->lock);
	lane->stopping = true;
	while (wake_one(lane))
		;
	while (lane->threads)
		pthread_cond_wait(&lane->ended, &lane->lock);
	pthread_mutex_unlock(&lane->lock);
}

void lane_destroy(struct lane *lane)
{
	if (!lane)
		return;
	lane_stop(lane);
	pthread_cond_destroy(&lane->ended);
	pthread_condattr_destroy(&lane->monotonic);
	pthread_mutex_destroy(&lane->lock);
	free(lane);
}

void lane_push(struct lane *lane, struct fuse_slot *slot)
{
	struct lane_stats *stats = &lane->stats;

	pthread_mutex_lock(&lane->lock);
	cds_list_add_tail(&slot->link, &lane->queue);
	stats->queued++;
	stats->queued_peak = UG_MAX(stats->queued_peak, stats->queued);
	if (!wake_one(lane) && lane->threads < lane->params.threads_max)
		thread_add(lane);
	pthread_mutex_unlock(&lane->lock);
}

bool lane_interrupt(struct lane *lane, uint64_t unique)
{
	struct fuse_slot *slot;
	bool found = false;

	pthread_mutex_lock(&lane->lock);
	cds_list_for_each_entry (slot, &lane->queue, link) {
		if (slot->req.unique == unique) {
			slot->interrupted = true;
			found = true;
			break;
		}
	}
	pthread_mutex_unlock(&lane->lock);
	return found;
}

unsigned lane_reap(struct lane *lane, uint64_t before_ns,
		   struct cds_list_head *list)
{
	struct fuse_slot *slot, *next;
	unsigned left = 0;

	pthread_mutex_lock(&lane->lock);
	cds_list_for_each_entry_safe (slot, next, &lane->queue, link) {
		if (!slot->interrupted || slot_has_had_effect(slot))
			continue;
		if (slot->read_ns >= before_ns) {
			left++;
			continue;
		}
		cds_list_del(&slot->link);
		cds_list_add_tail(&slot->link, list);
		lane->stats.queued--;
	}
	pthread_mutex_unlock(&lane->lock);
	return left;
}

void lane_waits(struct lane *lane, struct fuse_waits *waits)
{
	struct serving *serving;
	struct fuse_slot *slot;

	pthread_mutex_lock(&lane->lock);
	cds_list_for_each_entry (serving, &lane->serving, link)
		fuse_waits_add(waits, &serving->request);
	cds_list_for_each_entry (slot, &lane->queue, link)
		fuse_waits_add_queued(waits, &slot->req, slot->read_ns);
	pthread_mutex_unlock(&lane->lock);
}

void lane_get_stats(struct lane *lane, struct lane_stats *out)
{
	pthread_mutex_lock(&lane->lock);
	*out = lane->stats;
	out->threads = lane->threads;
	pthread_mutex_unlock(&lane->lock);
}
