/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * lockspace.c - a lockspace's life, its lock, and its thread.
 *
 *   ugdlm_join     links listen; the group is joined with that address
 *                  (MUP_ADMITTED: life lock, engine)
 *   ...
 *   ugdlm_leave    1. no new calls
 *                  2. a question to every member, and its answer: behind it
 *                     nothing of ours is on the way (a conversion downwards has
 *                     no reply, and may carry the last value of a value block)
 *                  3. LEFT, and its delivery: from then on we are gone for all
 *                  4. threads end, memory is freed
 *
 * The thread does what time brings: ticks of the engine, long recoveries,
 * timeouts, what found no memory. It sleeps until the
 * earliest of them; whoever makes an earlier one wakes it.
 */
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>
#include <uuid/uuid.h>

#include "base/assert.h"
#include "cluster/lockspace.h"
#include "cluster/plocks_impl.h"
#include "wire/dlmwire.h"

#define NS_PER_MS 1000000u
#define NS_PER_S 1000000000u

void ls_say(char *why, size_t why_len, const char *fmt, ...)
{
	va_list ap;

	if (!why || !why_len)
		return;
	va_start(ap, fmt);
	vsnprintf(why, why_len, fmt, ap);
	va_end(ap);
}

/* The lock */

void ls_lock(struct ugdlm *ls)
{
	pthread_mutex_lock(&ls->lock);
	ls->now_ns = ls->env.now_ns();
}

void ls_wake_thread(struct ugdlm *ls, uint64_t due_ns)
{
	if (ug_likely(due_ns >= ls->thread_wake_ns))
		return;
	ls->thread_wake_ns = due_ns;
	pthread_cond_signal(&ls->timer);
}

static void wake_for_engine(struct ugdlm *ls)
{
	if (ls->engine && !ls->lost)
		ls_wake_thread(ls, dlm_wake_ns(ls->engine));
}

/* A full counter has been rung already. */
static void ring_fd(struct ugdlm *ls)
{
	uint64_t one = 1;

	if (write(ls->fd, &one, sizeof(one)) < 0)
		return;
}

void ls_unlock(struct ugdlm *ls)
{
	bool ring = ls->need_ring, push = ls->need_push;
	bool plocks = ls->need_plocks;

	if (ls_is_dispatching(ls)) {
		ls_unlock_quietly(ls);
		return;
	}
	ls->need_ring = false;
	ls->need_push = false;
	ls->need_plocks = false;
	ls_unlock_quietly(ls);
	if (push)
		ls->env.links->push(ls->links);
	if (ring)
		ring_fd(ls);
	if (plocks)
		plocks_catch_up(ls->plocks);
}

void ls_unlock_quietly(struct ugdlm *ls)
{
	wake_for_engine(ls);
	pthread_mutex_unlock(&ls->lock);
}

/* The end */

void ls_lose(struct ugdlm *ls, int err, const char *fmt, ...)
{
	va_list ap;

	if (ls->lost)
		return;
	va_start(ap, fmt);
	vsnprintf(ls->lost_why, sizeof(ls->lost_why), fmt, ap);
	va_end(ap);
	ug_error(ls->who, "the lockspace is lost: %s", ls->lost_why);
	ls_trace_text(ls, "lost: %s", ls->lost_why);
	ls->lost = true;
	ls->no_lease = true;
	ls->lost_err = err;
	ls->running = false;
	ls->gate = 0;
	ls_locks_lose(ls);
	plocks_on_lost(ls);
	ls_event_push_lost(ls);
	/*
	 * If only we know, the others must not wait for our answers. Who never
	 * held a lock has the time to say why it ends.
	 */
	if (ls->cluster && ls->admitted && ls->generation)
		ls->env.cluster->expel(ls->cluster, &ls->inc);
	pthread_cond_broadcast(&ls->cond);
	pthread_cond_broadcast(&ls->timer);
}

/* Time */

static void continue_recovery(struct ugdlm *ls)
{
	while (ls->more && !ls->lost) {
		struct dlm_event event = { .kind = DLM_EV_CONTINUE };

		ls->more = false;
		if (ls_step(ls, &event)) {
			ls->more = true;
			ls->retry_ns = ls->now_ns + LS_RETRY_NS;
			return;
		}
		/* Let others in: messages, and calls that then wait. */
		ls_unlock(ls);
		ls_lock(ls);
	}
}

static void tick_engine(struct ugdlm *ls)
{
	struct dlm_event event = { .kind = DLM_EV_TICK };

	if (dlm_wake_ns(ls->engine) <= ls->now_ns && ls_step(ls, &event))
		ls->retry_ns = ls->now_ns + LS_RETRY_NS;
}

static uint64_t tick_locks(struct ugdlm *ls)
{
	uint64_t wake = UINT64_MAX;

	if (ls->retry_ns && ls->retry_ns > ls->now_ns)
		return ls->retry_ns;
	if (ls->retry_ns) {
		ls->retry_ns = 0;
		ls_flush(ls);
		ls_resume(ls);
	}
	continue_recovery(ls);
	if (ls->lost)
		return wake;
	tick_engine(ls);
	wake = ls_timeouts_run(ls);
	wake = UG_MIN(wake, ls_check_silent(ls));
	wake = UG_MIN(wake, dlm_wake_ns(ls->engine));
	if (ls->retry_ns)
		wake = UG_MIN(wake, ls->retry_ns);
	return ls->more ? 0 : wake;
}

uint64_t ls_tick(struct ugdlm *ls)
{
	uint64_t plocks, wake;

	ls_check_lease(ls);
	if (ls->lost || !ls->engine)
		return UINT64_MAX;
	plocks = plocks_on_tick(ls);
	wake = tick_locks(ls);
	return UG_MIN(wake, plocks);
}

void ls_wait_until(struct ugdlm *ls, pthread_cond_t *cond, uint64_t ns)
{
	uint64_t last = ls->now_ns + 3600ull * NS_PER_S;
	struct timespec ts;

	ns = UG_MIN(ns, last);
	ts.tv_sec = (time_t)(ns / NS_PER_S);
	ts.tv_nsec = (long)(ns % NS_PER_S);
	pthread_cond_timedwait(cond, &ls->lock, &ts);
	ls->now_ns = ls->env.now_ns();
}

static void *thread_main(void *arg)
{
	struct ugdlm *ls = arg;

	pthread_setname_np(pthread_self(), "ugdlm");
	ls_lock(ls);
	while (!ls->stopping) {
		ls->thread_wake_ns = UINT64_MAX;
		ls_wake_thread(ls, ls_tick(ls));
		if (ls->need_push || ls->need_ring || ls->need_plocks) {
			ls_unlock(ls);
			ls_lock(ls);
		}
		if (!ls->stopping && ls->thread_wake_ns > ls->now_ns)
			ls_wait_until(ls, &ls->timer, ls->thread_wake_ns);
	}
	ls_unlock(ls);
	return NULL;
}

/* Making one */

static int check_config(const struct ugdlm_config *config, char *why,
			size_t why_len)
{
	const char *colon = config->name ? strchr(config->name, ':') : NULL;

	if (!colon || colon == config->name || !colon[1] ||
	    strchr(colon + 1, ':')) {
		ls_say(why, why_len,
		       "\"%s\" is not the name of a lockspace: expected "
		       "CLUSTER:NAME",
		       config->name ? config->name : "");
		return -EINVAL;
	}
	if (config->port_first > config->port_last) {
		ls_say(why, why_len, "ports %u to %u: the first is the higher",
		       config->port_first, config->port_last);
		return -EINVAL;
	}
	if (!config->port_first && config->port_last) {
		ls_say(why, why_len, "ports 0 to %u: expected 1 or higher",
		       config->port_last);
		return -EINVAL;
	}
	return 0;
}

/* A lockspace that protects nothing still needs life locks of its own. */
static void set_uuid(struct ugdlm *ls, const struct ugdlm_config *config)
{
	static const uint8_t none[16];

	ls->hold_slots = memcmp(config->uuid, none, sizeof(none)) != 0;
	memcpy(ls->uuid, config->uuid, sizeof(ls->uuid));
	if (!ls->hold_slots)
		uuid_generate_sha1(ls->uuid, *uuid_get_template("url"),
				   ls->name, strlen(ls->name));
}

static int init_sync(struct ugdlm *ls)
{
	pthread_condattr_t attr;
	int err;

	pthread_condattr_init(&attr);
	pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
	err = -pthread_mutex_init(&ls->lock, NULL);
	if (!err)
		err = -pthread_cond_init(&ls->cond, &attr);
	if (!err)
		err = -pthread_cond_init(&ls->timer, &attr);
	pthread_condattr_destroy(&attr);
	return err;
}

static void init_lists(struct ugdlm *ls)
{
	CDS_INIT_LIST_HEAD(&ls->members);
	CDS_INIT_LIST_HEAD(&ls->held_slots);
	CDS_INIT_LIST_HEAD(&ls->waiting);
	CDS_INIT_LIST_HEAD(&ls->refused);
	CDS_INIT_LIST_HEAD(&ls->timeouts);
	CDS_INIT_LIST_HEAD(&ls->ready);
	CDS_INIT_LIST_HEAD(&ls->event_queue);
	CDS_INIT_LIST_HEAD(&ls->spare_events);
}

static int init_parts(struct ugdlm *ls)
{
	int err = init_sync(ls);

	ls->nodes = calloc(LS_NODES_MAX, sizeof(*ls->nodes));
	if (!err && !ls->nodes)
		err = -ENOMEM;
	if (!err)
		err = ls_callbacks_init(ls);
	return err ? err : ls_trace_init(ls);
}

int ls_new(const struct ugdlm_config *config, const struct ls_env *env,
	   struct ugdlm **out, char *why, size_t why_len)
{
	struct ugdlm *ls;
	int err = check_config(config, why, why_len);

	if (err)
		return err;
	ls = calloc(1, sizeof(*ls));
	if (!ls) {
		err = -ENOMEM;
		goto failed;
	}
	ls->env = *env;
	ls->fd = -1;
	ls->life_fd = -1;
	ls->thread_wake_ns = UINT64_MAX;
	ls->prepared = true;
	snprintf(ls->name, sizeof(ls->name), "%s", config->name);
	snprintf(ls->who, sizeof(ls->who), "%s: locks", config->name);
	set_uuid(ls, config);
	ls->trace_all = config->trace_all;
	ls->direct = config->direct;
	ls->toss_ns = config->toss_sec * (uint64_t)NS_PER_S;
	ls->member_timeout_ns = config->member_timeout_ms * (uint64_t)NS_PER_MS;
	if (config->events)
		ls->events = *config->events;
	ls->arg = config->arg;
	ls->wire_id = dlm_wire_lockspace_id(ls->name, strlen(ls->name));
	ls->now_ns = ls->closed_since_ns = env->now_ns();
	init_lists(ls);
	err = init_parts(ls);
	if (err) {
		ls_free(ls);
		goto failed;
	}
	*out = ls;
	return 0;
failed:
	ls_say(why, why_len, "%s: %s", config->name, strerror(-err));
	return err;
}

void ls_free(struct ugdlm *ls)
{
	ls_locks_free(ls);
	dlm_updates_free(&ls->updates);
	dlm_engine_free(ls->engine);
	plocks_free(ls->plocks);
	ls_members_free(ls);
	ls_callbacks_free(ls);
	ls_trace_free(ls);
	free(ls->nodes);
	/* Who has not left holds it until its process ends (lifelock.h). */
	if (ls->left && ls->life_fd >= 0)
		close(ls->life_fd);
	pthread_cond_destroy(&ls->timer);
	pthread_cond_destroy(&ls->cond);
	pthread_mutex_destroy(&ls->lock);
	free(ls);
}

/* Joining */

static int open_links(struct ugdlm *ls, const struct ugdlm_config *config,
		      char *why, size_t why_len)
{
	struct links_config lc = {
		.table = ls->name,
		.inc = ls->inc,
		.port_first = config->port_first,
		.port_last = config->port_last,
		.timeout_ns = ls->member_timeout_ns,
		.ops = &ls_links_callbacks,
		.arg = ls,
	};
	uint8_t *key = NULL;
	int err;

	if (config->key_file) {
		err = ls_read_key(config->key_file, &key, &lc.key_len, why,
				  why_len);
		if (err)
			return err;
	}
	lc.key = key;
	err = ls->env.own_addr(&lc.addr);
	if (err)
		ls_say(why, why_len,
		       "this node has no address in corosync's list of nodes");
	if (!err)
		err = ls->env.links->open(&lc, &ls->links, &ls->addr);
	if (err == -EADDRINUSE)
		ls_say(why, why_len, "no port is free for links of %s",
		       ls->name);
	else if (err)
		ls_say(why, why_len, "links of %s: %s", ls->name,
		       strerror(-err));
	if (key)
		explicit_bzero(key, lc.key_len);
	free(key);
	return err;
}

static int join_cluster(struct ugdlm *ls, const struct ugdlm_config *config,
			char *why, size_t why_len)
{
	struct cluster_config cc = {
		.table = ls->name,
		.addr = ls->addr,
		.member_timeout_ns = ls->member_timeout_ns,
		.lease_ns = (_Atomic uint64_t *)config->lease_ns,
		.startup_delay_ns =
			config->startup_delay_ms * (uint64_t)NS_PER_MS,
		.event = ls_on_cluster,
		.arg = ls,
	};
	struct cluster *c;
	int err;

	memcpy(cc.uuid, ls->uuid, sizeof(cc.uuid));
	err = ls->env.cluster->join(&cc, &c, why, why_len);
	if (err)
		return err;
	ls_lock(ls);
	ls->cluster = c;
	ls_unlock(ls);
	return 0;
}

int ls_connect(struct ugdlm *ls, const struct ugdlm_config *config, char *why,
	       size_t why_len)
{
	int count, err = ls->env.cluster->incarnation(&ls->inc);

	if (err) {
		ls_say(why, why_len, "/proc does not tell about this process");
		return err;
	}
	count = ls->env.cluster->nodes(ls->nodes, LS_NODES_MAX);
	ls->nodes_count = count < 0 ? 0 : (unsigned)count;
	if (count < 0) {
		ls_say(why, why_len, "corosync is not running");
		return -ECONNREFUSED;
	}
	err = open_links(ls, config, why, why_len);
	if (err)
		return err;
	if (ls->env.threads) {
		err = -pthread_create(&ls->thread, NULL, thread_main, ls);
		ls->has_thread = !err;
	}
	if (err)
		ls_say(why, why_len, "no thread: %s", strerror(-err));
	else
		err = join_cluster(ls, config, why, why_len);
	if (err)
		ls_disconnect(ls);
	return err;
}

void ls_disconnect(struct ugdlm *ls)
{
	struct cluster *cluster;

	ls_lock(ls);
	/* Whatever comes from now on is not wanted any more. */
	ls->lost = true;
	ls->no_lease = true;
	ls->stopping = true;
	plocks_on_lost(ls);
	cluster = ls->cluster;
	pthread_cond_broadcast(&ls->timer);
	ls_unlock(ls);
	if (ls->has_thread)
		pthread_join(ls->thread, NULL);
	if (cluster)
		ls->env.cluster->close(cluster);
	if (ls->links)
		ls->env.links->close(ls->links);
}

/* Leaving */

/* What was said before must have arrived before they hear that we left. */
static void wait_flushed(struct ugdlm *ls)
{
	uint64_t end = ls->now_ns + LS_LEAVE_NS;

	while (ls_ask_all(ls) && !ls->lost && ls->now_ns < end)
		ls->env.wait(ls, ls->now_ns + LS_RETRY_NS);
	while (ls->flush_due && !ls->lost && ls->now_ns < end)
		ls->env.wait(ls, end);
}

static int say_left(struct ugdlm *ls, bool dirty)
{
	uint64_t end;

	if (ls->engine)
		wait_flushed(ls);
	if (ls->lost)
		return -ESHUTDOWN;
	ls_trace_text(ls, "leaving%s", dirty ? ", dirty" : "");
	ls->env.cluster->say_left(ls->cluster, dirty);
	end = ls->now_ns + LS_LEAVE_NS;
	while (!ls->left && !ls->lost && ls->now_ns < end)
		ls->env.wait(ls, end);
	if (ls->left)
		return 0;
	return ls->lost ? -ESHUTDOWN : -ETIMEDOUT;
}

int ugdlm_leave(struct ugdlm *ls, bool dirty)
{
	int err = 0;

	ls_lock(ls);
	ls->leaving = true;
	if (ls->lost)
		err = -ESHUTDOWN;
	else if (ls->admitted)
		err = say_left(ls, dirty);
	else
		ls->lost = true; /* it is not taken in any more: lsevents.c */
	ls_unlock(ls);
	ls_disconnect(ls);
	ls_free(ls);
	return err;
}

/* Not under the lock: it may ask corosync. */
int ugdlm_may_repair(struct ugdlm *ls, char *why, size_t why_len)
{
	if (ls->no_lease) {
		ls_say(why, why_len, "%s: the lockspace is lost", ls->name);
		return -ESHUTDOWN;
	}
	return ls->env.cluster->may_repair(ls->cluster, why, why_len);
}

void ugdlm_repaired(struct ugdlm *ls)
{
	if (!ls->no_lease)
		ls->env.cluster->say_repaired(ls->cluster);
}

int ugdlm_fence_ack(struct ugdlm *ls, const char *node)
{
	return ls->no_lease ? -ESHUTDOWN
			    : ls->env.cluster->fence_ack(ls->cluster, node);
}

uint64_t ugdlm_lease_ns(const struct ugdlm *ls)
{
	return ls->no_lease ? 0 : ls->env.cluster->lease_ns(ls->cluster);
}
