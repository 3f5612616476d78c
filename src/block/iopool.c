/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * iopool.c - the pool of I/O threads.
 *
 * One queue, first in first out. A submitter wakes the thread that went idle
 * last (its stack is warm, and the others can reach their idle time and
 * end), or starts one when none is idle. One thread never ends, so that what
 * is queued is always done, however short of threads the system is.
 *
 *            submit                     queue empty for IDLE_SECS
 *   queue  ----------> wake or start -> running <-> idle ----------> ended
 *
 * Locks: pool->lock guards all fields of the pool and of its workers; no
 * request is carried out, and nothing of a submitter called, under it.
 */
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <time.h>
#include <urcu/list.h>

#include "block/iopool.h"

/*
 * Shorter than the interval of periodic write-back and log commit (5 s), a
 * thread would be made anew for each of them.
 */
#define IDLE_SECS 6

/* An idle thread; lives on its stack. */
struct worker {
	struct cds_list_head link; /* pool->idle, latest first */
	pthread_cond_t wake;
	bool woken; /* taken off the list by who woke it */
};

/* The requests of one iopool_run(); lives on the caller's stack. */
struct iobatch {
	pthread_mutex_t lock;
	pthread_cond_t all_done;
	unsigned left;
};

struct iopool {
	struct blkdev *dev;
	unsigned threads_max;

	pthread_mutex_t lock;
	pthread_cond_t ended; /* threads and starting have become 0 */
	pthread_condattr_t monotonic;
	struct ioreq *head;
	struct ioreq **tail;
	struct cds_list_head idle;
	unsigned threads;  /* that run */
	unsigned starting; /* that are being made, and may fail to be */
	bool stopping;
	/* The thread that ended last: joined by the next one, or at the end. */
	bool has_zombie;
	pthread_t zombie;
};

static int ioreq_execute(struct blkdev *dev, const struct ioreq *req)
{
	switch (req->op) {
	case IOREQ_READ:
		return blkdev_readv(dev, req->iov, req->iovcnt,
				    req->offset_bytes);
	case IOREQ_WRITE:
		return blkdev_writev(dev, req->iov, req->iovcnt,
				     req->offset_bytes, req->flags);
	case IOREQ_FLUSH:
		return blkdev_flush(dev);
	}
	return -EINVAL;
}

static void batch_done(struct iobatch *batch)
{
	/* The waiter frees the batch: signal before the lock is released. */
	pthread_mutex_lock(&batch->lock);
	if (--batch->left == 0)
		pthread_cond_signal(&batch->all_done);
	pthread_mutex_unlock(&batch->lock);
}

static void ioreq_run(struct iopool *pool, struct ioreq *req)
{
	struct iobatch *batch = req->batch;

	req->result = ioreq_execute(pool->dev, req);
	/* After either call the request may be gone. */
	if (batch)
		batch_done(batch);
	else
		req->done(req);
}

static struct ioreq *queue_pop(struct iopool *pool)
{
	struct ioreq *req = pool->head;

	pool->head = req->next;
	if (!pool->head)
		pool->tail = &pool->head;
	return req;
}

static void queue_push(struct iopool *pool, struct ioreq *req)
{
	req->next = NULL;
	*pool->tail = req;
	pool->tail = &req->next;
}

static bool wake_one(struct iopool *pool)
{
	struct worker *worker;

	if (cds_list_empty(&pool->idle))
		return false;
	worker = cds_list_first_entry(&pool->idle, struct worker, link);
	cds_list_del(&worker->link);
	worker->woken = true;
	pthread_cond_signal(&worker->wake);
	return true;
}

/*
 * Sleep until woken. Returns false when nobody has wanted this thread for so
 * long that it should end. The last one waits without a limit: those being
 * started do not count, they may never come.
 */
static bool worker_idle(struct iopool *pool, struct worker *worker)
{
	struct timespec until;
	int err = 0;

	clock_gettime(CLOCK_MONOTONIC, &until);
	until.tv_sec += IDLE_SECS;
	worker->woken = false;
	cds_list_add(&worker->link, &pool->idle);
	while (!worker->woken) {
		if (err == ETIMEDOUT && pool->threads > 1) {
			cds_list_del(&worker->link);
			return false;
		}
		if (pool->threads > 1)
			err = pthread_cond_timedwait(&worker->wake, &pool->lock,
						     &until);
		else
			err = pthread_cond_wait(&worker->wake, &pool->lock);
	}
	return true;
}

static void worker_loop(struct iopool *pool, struct worker *worker)
{
	for (;;) {
		while (pool->head) {
			struct ioreq *req = queue_pop(pool);

			pthread_mutex_unlock(&pool->lock);
			ioreq_run(pool, req);
			pthread_mutex_lock(&pool->lock);
		}
		if (pool->stopping || !worker_idle(pool, worker))
			return;
	}
}

/*
 * Join whoever ended before, and be joined by whoever ends next: at any time
 * at most one ended thread keeps its stack.
 */
static void worker_end(struct iopool *pool)
{
	bool has_zombie = pool->has_zombie;
	pthread_t zombie = pool->zombie;

	pool->has_zombie = true;
	pool->zombie = pthread_self();
	if (--pool->threads == 0 && !pool->starting)
		pthread_cond_signal(&pool->ended);
	pthread_mutex_unlock(&pool->lock);
	if (has_zombie)
		pthread_join(zombie, NULL);
}

static void *worker_main(void *arg)
{
	struct iopool *pool = arg;
	struct worker worker;

	pthread_mutex_lock(&pool->lock);
	pool->starting--;
	pool->threads++;
	pthread_cond_init(&worker.wake, &pool->monotonic);
	worker_loop(pool, &worker);
	pthread_cond_destroy(&worker.wake);
	worker_end(pool);
	return NULL;
}

/*
 * Start a thread that the caller has counted in pool->starting. Signals are
 * for the program's own threads: all are blocked here.
 */
static int worker_start(struct iopool *pool)
{
	sigset_t all, old;
	pthread_t thread;
	int err;

	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &old);
	err = pthread_create(&thread, NULL, worker_main, pool);
	pthread_sigmask(SIG_SETMASK, &old, NULL);
	if (!err)
		return 0;
	pthread_mutex_lock(&pool->lock);
	pool->starting--;
	pthread_mutex_unlock(&pool->lock);
	return -err;
}

/* Queue n requests of an array, and see that somebody comes for them. */
static void submit(struct iopool *pool, struct ioreq *reqs, unsigned n)
{
	unsigned wanted = 0;

	pthread_mutex_lock(&pool->lock);
	for (unsigned i = 0; i < n; i++) {
		queue_push(pool, &reqs[i]);
		if (!wake_one(pool))
			wanted++;
	}
	wanted = UG_MIN(wanted,
			pool->threads_max - pool->threads - pool->starting);
	pool->starting += wanted;
	pthread_mutex_unlock(&pool->lock);
	/* A thread that cannot be had is not needed: others empty the queue. */
	while (wanted--)
		worker_start(pool);
}

void iopool_submit(struct iopool *pool, struct ioreq *req)
{
	req->batch = NULL;
	submit(pool, req, 1);
}

int iopool_run(struct iopool *pool, struct ioreq *reqs, unsigned n)
{
	struct iobatch batch = { .left = n };

	if (!n)
		return 0;
	pthread_mutex_init(&batch.lock, NULL);
	pthread_cond_init(&batch.all_done, NULL);
	for (unsigned i = 0; i < n; i++)
		reqs[i].batch = &batch;
	if (n > 1)
		submit(pool, reqs, n - 1);
	ioreq_run(pool, &reqs[n - 1]);

	pthread_mutex_lock(&batch.lock);
	while (batch.left)
		pthread_cond_wait(&batch.all_done, &batch.lock);
	pthread_mutex_unlock(&batch.lock);
	pthread_cond_destroy(&batch.all_done);
	pthread_mutex_destroy(&batch.lock);

	for (unsigned i = 0; i < n; i++) {
		if (reqs[i].result)
			return reqs[i].result;
	}
	return 0;
}

int iopool_create(struct blkdev *dev, unsigned threads_max,
		  struct iopool **poolp)
{
	struct iopool *pool;
	int err;

	if (!threads_max)
		return -EINVAL;
	pool = calloc(1, sizeof(*pool));
	if (!pool)
		return -ENOMEM;
	pool->dev = dev;
	pool->threads_max = threads_max;
	pool->tail = &pool->head;
	CDS_INIT_LIST_HEAD(&pool->idle);
	pthread_mutex_init(&pool->lock, NULL);
	pthread_cond_init(&pool->ended, NULL);
	pthread_condattr_init(&pool->monotonic);
	pthread_condattr_setclock(&pool->monotonic, CLOCK_MONOTONIC);
	pool->starting = 1;
	err = worker_start(pool);
	if (err) {
		iopool_destroy(pool);
		return err;
	}
	*poolp = pool;
	return 0;
}

void iopool_destroy(struct iopool *pool)
{
	pthread_mutex_lock(&pool->lock);
	pool->stopping = true;
	while (wake_one(pool))
		;
	while (pool->threads || pool->starting)
		pthread_cond_wait(&pool->ended, &pool->lock);
	pthread_mutex_unlock(&pool->lock);
	if (pool->has_zombie)
		pthread_join(pool->zombie, NULL);
	pthread_condattr_destroy(&pool->monotonic);
	pthread_cond_destroy(&pool->ended);
	pthread_mutex_destroy(&pool->lock);
	free(pool);
}
