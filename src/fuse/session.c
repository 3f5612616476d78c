/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * session.c - the life of a session: beginning, waiting, ending.
 *
 * The end has an order:
 *
 *   1. recalls, the notifier and its lane: a notification may wait for a
 *      request that a reader has yet to read, so the readers still run;
 *   2. the readers: nothing new comes;
 *   3. what is parked is refused; the other lanes, with what is queued;
 *   4. for the caller: the volume is brought to rest;
 *   5. DESTROY is answered: umount(2) returns.
 */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/log.h"
#include "fuse/session_impl.h"
#include "fuse/thread.h"

#define URGENT_THREADS 2u
#define GRANTED_THREADS_MIN 2u
#define NOTIFIER_THREADS_MIN 1u
#define NOTIFIER_THREADS_MAX 8u

/* Between two looks at interrupted requests. */
#define REAP_INTERVAL_MS 1000u

/* Between two tries to get readers out of read(). */
#define KICK_INTERVAL_MS 5

/* ---- making ---- */

static int params_fill(struct fuse_session_params *params)
{
	if (!params->readers)
		params->readers = FUSE_READERS_DEFAULT;
	if (!params->workers_max)
		params->workers_max = FUSE_WORKERS_DEFAULT;
	if (!params->requests_max)
		params->requests_max = FUSE_REQUESTS_DEFAULT;
	if (!params->interrupt_patience_ms)
		params->interrupt_patience_ms =
			FUSE_INTERRUPT_PATIENCE_MS_DEFAULT;
	params->workers_max = UG_MAX(params->workers_max, FUSE_WORKERS_MIN);
	params->requests_max = UG_MAX(params->requests_max, FUSE_REQUESTS_MIN);
	/* A reader keeps one slot, and needs another to hand one over. */
	if (params->readers > FUSE_READERS_MAX ||
	    params->requests_max < 2 * params->readers)
		return -EINVAL;
	return 0;
}

static int readers_create(struct fuse_session *session)
{
	session->readers =
		calloc(session->params.readers, sizeof(*session->readers));
	if (!session->readers)
		return -ENOMEM;
	for (unsigned i = 0; i < session->params.readers; i++) {
		struct reader *reader = &session->readers[i];

		reader->session = session;
		reader->slot = slot_try_get(session->pool);
		if (!reader->slot)
			return -ENOMEM;
	}
	return 0;
}

static void readers_free(struct fuse_session *session)
{
	if (!session->readers)
		return;
	for (unsigned i = 0; i < session->params.readers; i++)
		if (session->readers[i].slot)
			slot_put(session->pool, session->readers[i].slot);
	free(session->readers);
}

int fuse_session_create(const struct fuse_session_params *params,
			struct fuse_session **sessionp)
{
	struct fuse_session *session = calloc(1, sizeof(*session));
	pthread_condattr_t monotonic;
	int err;

	if (!session)
		return -ENOMEM;
	session->params = *params;
	pthread_mutex_init(&session->lock, NULL);
	pthread_condattr_init(&monotonic);
	pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
	CDS_INIT_LIST_HEAD(&session->parked);
	pthread_cond_init(&session->changed, &monotonic);
	pthread_condattr_destroy(&monotonic);

	err = params_fill(&session->params);
	if (!err)
		err = slot_pool_create(session->params.requests_max,
				       &session->pool);
	if (!err)
		err = readers_create(session);
	if (err) {
		fuse_session_destroy(session);
		return err;
	}
	*sessionp = session;
	return 0;
}

/* umount(2) is waiting for this. */
static void destroy_answer(const struct fuse_session *session)
{
	struct fuse_out_header head = {
		.len = sizeof(head),
		.unique = session->destroy_unique,
	};

	if (write(session->destroy_fd, &head, sizeof(head)) < 0)
		ug_warn(session->params.who, "fuse: answer to DESTROY: %s",
			strerror(errno));
}

void fuse_session_destroy(struct fuse_session *session)
{
	if (!session)
		return;
	if (session->has_destroy)
		destroy_answer(session);
	readers_free(session);
	slot_pool_destroy(session->pool);
	pthread_cond_destroy(&session->changed);
	pthread_mutex_destroy(&session->lock);
	free(session);
}

/* ---- beginning ---- */

static void await_service(void *arg)
{
	const struct session_lane *own = arg;
	const struct fuse_session_params *params = &own->session->params;

	params->handler->await(params->ctx);
}

static int lanes_begin(struct fuse_session *session)
{
	const struct {
		const char *name;
		unsigned min, max;
		enum fuse_place place;
	} kinds[LANES] = {
		[LANE_WORK] = { "ugfs-work", FUSE_WORKERS_MIN,
				session->params.workers_max, FUSE_WORKER },
		[LANE_URGENT] = { "ugfs-urgent", URGENT_THREADS, URGENT_THREADS,
				  FUSE_WORKER },
		[LANE_GRANTED] = { "ugfs-granted", GRANTED_THREADS_MIN,
				   session->params.workers_max, FUSE_WORKER },
		[LANE_PATIENT] = { "ugfs-patient", 1,
				   session->params.workers_max, FUSE_PATIENT },
		[LANE_NOTIFIER] = { "ugfs-inval", NOTIFIER_THREADS_MIN,
				    NOTIFIER_THREADS_MAX, FUSE_NOTIFIER },
		[LANE_LATER] = { "ugfs-later", 1, 1, FUSE_WORKER },
	};
	bool later = session->params.handler->await;
	int err = 0;

	for (unsigned i = 0; i < LANES && !err; i++) {
		struct session_lane *own = &session->lanes[i];
		struct lane_params params = {
			.name = kinds[i].name,
			.threads_min = kinds[i].min,
			.threads_max = kinds[i].max,
			.serve = session_serve_queued,
			.arg = own,
		};

		if (i == LANE_LATER && later) {
			params.await = await_service;
			params.serve = session_serve_later;
		}

		own->session = session;
		own->place = kinds[i].place;
		err = lane_create(&params, &own->lane);
	}
	return err;
}

/*
 * The first reader has the connection's own descriptor, further ones clones:
 * the kernel keeps a list of requests in progress, with a lock, for each.
 */
static int reader_begin(struct fuse_session *session, unsigned i)
{
	struct reader *reader = &session->readers[i];
	char name[32];
	int err = 0;

	if (i == 0)
		reader->fd = fuse_conn_fd(session->params.conn);
	else
		err = fuse_conn_clone(session->params.conn, &reader->fd);
	if (err)
		return err;
	snprintf(name, sizeof(name), "ugfs-read%u", i);
	pthread_mutex_lock(&session->lock);
	err = fuse_thread(name, reader_main, reader, &reader->thread);
	if (!err)
		session->readers_alive++;
	pthread_mutex_unlock(&session->lock);
	return err;
}

static void reader_signal(int signo)
{
	/* Its only effect is the EINTR of the system call it interrupts. */
}

/* Returns how many were begun: they must be joined. */
static unsigned readers_begin(struct fuse_session *session, int *err)
{
	struct sigaction action = { .sa_handler = reader_signal };
	unsigned begun = 0;

	*err = sigaction(READER_SIGNAL, &action, NULL) ? -errno : 0;
	while (!*err && begun < session->params.readers) {
		*err = reader_begin(session, begun);
		if (!*err)
			begun++;
	}
	return begun;
}

/* ---- waiting ---- */

void session_end_locked(struct fuse_session *session, int result)
{
	if (session->ending)
		return;
	session->ending = true;
	session->result = result;
	pthread_cond_signal(&session->changed);
}

void fuse_session_stop(struct fuse_session *session)
{
	pthread_mutex_lock(&session->lock);
	session_end_locked(session, 0);
	pthread_mutex_unlock(&session->lock);
}

static uint64_t ms_ago_ns(uint64_t now_ns, unsigned ms)
{
	uint64_t ns = ms * UINT64_C(1000000);

	return now_ns > ns ? now_ns - ns : 0;
}

static void count_interrupted(struct fuse_session *session,
			      const struct cds_list_head *list)
{
	const struct fuse_slot *slot;

	cds_list_for_each_entry (slot, list, link)
		counter_inc_shared(&session->count.interrupted);
}

/*
 * Answer EINTR to what was interrupted and has been waiting for so long that
 * the disk must be ailing, or another node. lock held; dropped in between.
 */
static void interrupted_reap(struct fuse_session *session)
{
	unsigned patience_ms = session->params.interrupt_patience_ms;
	uint64_t now_ns = fuse_now_ns();
	CDS_LIST_HEAD(reaped);
	unsigned left;

	left = lockwait_reap_locked(
		session,
		ms_ago_ns(now_ns, UG_MIN(patience_ms, FUSE_PARK_PATIENCE_MS)),
		&reaped);
	for (unsigned i = 0; i < LANES; i++)
		left += lane_reap(session->lanes[i].lane,
				  ms_ago_ns(now_ns, patience_ms), &reaped);
	session->interrupts_queued = left > 0;
	count_interrupted(session, &reaped);
	pthread_mutex_unlock(&session->lock);
	lockwait_answer(session, &reaped, -EINTR);
	pthread_mutex_lock(&session->lock);
}

static void wait_ms(struct fuse_session *session, unsigned ms)
{
	struct timespec until;

	clock_gettime(CLOCK_MONOTONIC, &until);
	until.tv_nsec += (long)ms * 1000000;
	until.tv_sec += until.tv_nsec / 1000000000;
	until.tv_nsec %= 1000000000;
	pthread_cond_timedwait(&session->changed, &session->lock, &until);
}

static void session_wait(struct fuse_session *session)
{
	pthread_mutex_lock(&session->lock);
	while (!session->ending) {
		/* Without interrupted requests nothing wakes up here. */
		if (!session->interrupts_queued) {
			pthread_cond_wait(&session->changed, &session->lock);
			continue;
		}
		wait_ms(session, UG_MIN(REAP_INTERVAL_MS,
					session->params.interrupt_patience_ms));
		interrupted_reap(session);
	}
	pthread_mutex_unlock(&session->lock);
}

/* ---- ending ---- */

/* In the order of their numbers: what any of them puts off ends in the last. */
static void lanes_end(struct fuse_session *session)
{
	pthread_mutex_lock(&session->lock);
	session->lanes_closed = true;
	pthread_mutex_unlock(&session->lock);
	for (unsigned i = 0; i < LANES; i++) {
		struct session_lane *own = &session->lanes[i];
		struct lane *lane;

		lane_stop(own->lane);
		pthread_mutex_lock(&session->lock);
		lane = own->lane;
		own->lane = NULL;
		pthread_mutex_unlock(&session->lock);
		lane_destroy(lane);
	}
}

static void notifiers_end(struct fuse_session *session)
{
	struct notifier *notifier;

	pthread_mutex_lock(&session->lock);
	session->notifier_closed = true;
	notifier = session->notifier;
	session->notifier = NULL;
	pthread_mutex_unlock(&session->lock);
	notifier_destroy(notifier);
	lane_stop(session->lanes[LANE_NOTIFIER].lane);
}

/*
 * A signal that comes between a reader's look at readers_stop and its read()
 * has no effect: so again and again until all have left.
 */
static void readers_end(struct fuse_session *session, unsigned begun)
{
	atomic_store(&session->readers_stop, true);
	pthread_mutex_lock(&session->lock);
	while (session->readers_alive) {
		for (unsigned i = 0; i < begun; i++)
			pthread_kill(session->readers[i].thread, READER_SIGNAL);
		wait_ms(session, KICK_INTERVAL_MS);
	}
	pthread_mutex_unlock(&session->lock);
	for (unsigned i = 0; i < begun; i++)
		pthread_join(session->readers[i].thread, NULL);
}

static void session_log_totals(struct fuse_session *session)
{
	struct fuse_session_stats stats;

	fuse_session_get_stats(session, &stats);
	ug_info(session->params.who,
		"fuse: %llu requests served, %llu of them had to wait",
		(unsigned long long)stats.requests,
		(unsigned long long)stats.handed_over);
}

static int session_serve(struct fuse_session *session)
{
	unsigned begun;
	int err;

	begun = readers_begin(session, &err);
	pthread_mutex_lock(&session->lock);
	if (err)
		session_end_locked(session, err);
	pthread_mutex_unlock(&session->lock);
	if (!err && session->params.ready)
		session->params.ready(session->params.ready_arg);
	session_wait(session);
	if (session->params.handler->stop)
		session->params.handler->stop(session->params.ctx);
	notifiers_end(session);
	readers_end(session, begun);
	session_log_totals(session);
	return session->result;
}

int fuse_session_run(struct fuse_session *session)
{
	struct fuse_session_params *params = &session->params;
	struct fuse_agreed agreed;
	int err;

	err = fuse_conn_negotiate(params->conn, &params->wants, &agreed);
	if (!err)
		err = params->handler->start(params->ctx, &agreed);
	if (err)
		return err;
	err = notifier_create(params->conn, params->who, &session->notifier);
	if (!err)
		err = lanes_begin(session);
	if (!err)
		err = session_serve(session);
	notifiers_end(session);
	lockwait_end(session);
	lanes_end(session);
	return err;
}

/* ---- for others ---- */

void fuse_session_invalidate(struct fuse_session *session, uint64_t nodeid,
			     bool data)
{
	if (!data) {
		fuse_conn_inval_attr(session->params.conn, nodeid);
		return;
	}
	pthread_mutex_lock(&session->lock);
	if (session->notifier)
		notifier_push(session->notifier, nodeid);
	pthread_mutex_unlock(&session->lock);
}

static void stats_add_lanes(struct fuse_session *session,
			    struct fuse_session_stats *out)
{
	struct lane_stats lane;

	pthread_mutex_lock(&session->lock);
	if (session->lanes[LANE_WORK].lane) {
		lane_get_stats(session->lanes[LANE_WORK].lane, &lane);
		out->workers = lane.threads;
		out->workers_peak = lane.threads_peak;
		out->queued = lane.queued;
		out->queued_peak = lane.queued_peak;
	}
	out->readers = session->readers_alive;
	pthread_mutex_unlock(&session->lock);
}

void fuse_session_get_stats(struct fuse_session *session,
			    struct fuse_session_stats *out)
{
	memset(out, 0, sizeof(*out));
	counters_add(out, &session->count);
	for (unsigned i = 0; i < session->params.readers; i++)
		counters_add(out, &session->readers[i].count);
	stats_add_lanes(session, out);
	out->slots = slot_pool_count(session->pool);
}

void fuse_session_waits(struct fuse_session *session, struct fuse_waits *waits)
{
	pthread_mutex_lock(&session->lock);
	for (unsigned i = 0; i < LANES; i++)
		if (session->lanes[i].lane)
			lane_waits(session->lanes[i].lane, waits);
	lockwait_waits_locked(session, waits);
	pthread_mutex_unlock(&session->lock);
}
