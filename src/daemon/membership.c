/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * membership.c - a mount joins its cluster, and leaves it. See membership.h,
 * membership_impl.h.
 */
#include <errno.h>
#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "daemon/membership_impl.h"

/* Until a node with quorum must have heard us. */
#define JOIN_TIMEOUT_MS 60000u
#define LOOK_NS (200u * (uint64_t)NS_PER_MS)

/* ---- joining ---- */

static void note(struct membership *m, const char *text)
{
	if (!strcmp(text, m->noted))
		return;
	snprintf(m->noted, sizeof(m->noted), "%s", text);
	m->params.note(m->params.arg, text);
}

/* Whom the lockspace waits for, in its words. */
static void note_waiting(struct membership *m)
{
	char line[WHY_LEN] = "waiting for the other members of the cluster";
	const char *first;
	json_t *root;
	char *text;

	if (ugdlm_status_json(m->ls, &text))
		return;
	root = json_loads(text, 0, NULL);
	free(text);
	first = json_string_value(json_object_get(
		json_array_get(json_object_get(root, "waiting_for"), 0),
		"text"));
	if (first)
		snprintf(line, sizeof(line), "waiting: %s", first);
	json_decref(root);
	note(m, line);
}

static int wait_running(struct membership *m, char *why, size_t why_len)
{
	uint64_t begun = now_ns();
	int err = 0;

	pthread_mutex_lock(&m->lock);
	while (!m->has_run && !m->lost && !err) {
		wait_until(m, now_ns() + LOOK_NS);
		pthread_mutex_unlock(&m->lock);
		if (m->params.interrupted())
			err = -EINTR;
		else if (now_ns() - begun > PATIENCE_NS)
			note_waiting(m);
		pthread_mutex_lock(&m->lock);
	}
	if (err)
		snprintf(why, why_len, "interrupted");
	else if (m->lost)
		snprintf(why, why_len, "%s", m->lost_why);
	if (m->lost)
		err = -EIO;
	pthread_mutex_unlock(&m->lock);
	return err;
}

static struct membership *create(const struct membership_params *params)
{
	struct membership *m = calloc(1, sizeof(*m));
	pthread_condattr_t attr;

	if (!m)
		return NULL;
	memcpy((void *)&m->params, params, sizeof(*params));
	m->plocks = params->plocks;
	m->stop_fd = -1;
	glworkers_init(&m->workers);
	pthread_mutex_init(&m->lock, NULL);
	pthread_mutex_init(&m->plocks_lock, NULL);
	pthread_condattr_init(&attr);
	pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
	pthread_cond_init(&m->changed, &attr);
	pthread_condattr_destroy(&attr);
	return m;
}

static void destroy(struct membership *m)
{
	pthread_cond_destroy(&m->changed);
	pthread_mutex_destroy(&m->plocks_lock);
	pthread_mutex_destroy(&m->lock);
	glworkers_fini(&m->workers);
	free(m);
}

static int check_table(const char *table, char *why, size_t why_len)
{
	const char *colon = strchr(table, ':');

	if (colon && colon != table && colon[1] && !strchr(colon + 1, ':') &&
	    strlen(table) <= 63)
		return 0;
	snprintf(why, why_len,
		 "the lock table is \"%s\", expected CLUSTER:NAME of at most "
		 "63 bytes",
		 table);
	return -EINVAL;
}

static bool is_interrupted(void *arg)
{
	struct membership *m = arg;

	return m->params.interrupted();
}

static void others(void *arg, char *buf, size_t len)
{
	membership_others(arg, buf, len);
}

static bool is_over(void *arg)
{
	struct membership *m = arg;

	return m->lost || m->params.interrupted();
}

static int agree(struct membership *m, char *why, size_t why_len)
{
	const struct agreement_params params = {
		.ls = m->ls,
		.set = &m->params.plocks,
		.others = others,
		.interrupted = is_over,
		.arg = m,
	};
	int err = agreement_reach(&params, &m->agreement, why, why_len);

	pthread_mutex_lock(&m->lock);
	if (err && m->lost) {
		snprintf(why, why_len, "%s", m->lost_why);
		err = -EIO;
	}
	pthread_mutex_unlock(&m->lock);
	return err;
}

int membership_join(const struct membership_params *params,
		    struct membership **mp, char *why, size_t why_len)
{
	struct membership *m;
	struct ugdlm_config config = {
		.name = params->table,
		.key_file = params->key_file,
		.startup_delay_ms = params->startup_delay_sec * 1000u,
		.events = &membership_events,
		.interrupted = is_interrupted,
	};
	int err = check_table(params->table, why, why_len);

	if (err)
		return err;
	m = create(params);
	if (!m) {
		snprintf(why, why_len, "out of memory");
		return -ENOMEM;
	}
	config.arg = m;
	config.lease_ns = (uint64_t *)&m->lease_ns;
	memcpy(config.uuid, params->uuid, sizeof(config.uuid));
	err = ugdlm_join(&config, JOIN_TIMEOUT_MS, &m->ls, why, why_len);
	if (err) {
		destroy(m);
		return err;
	}
	err = lockmod_dlm_create(m->ls, params->who, &m->dlm);
	if (!err)
		err = applocks_create(m->ls, &params->plocks, &m->applocks);
	if (!err)
		err = dispatcher_start(m);
	if (!err)
		err = keeper_start(m);
	if (err) {
		snprintf(why, why_len, "%s",
			 err == -ENOMEM ? "out of memory"
					: "no threads can be made");
	} else {
		m->lockmod = lockmod_dlm(m->dlm);
		err = wait_running(m, why, why_len);
	}
	if (!err)
		err = agree(m, why, why_len);
	/* Leaving is not done before the reason has been told. */
	*mp = m;
	return err;
}

unsigned membership_slot(const struct membership *m)
{
	return m->slot;
}

const struct lockmod *membership_lockmod(const struct membership *m)
{
	return &m->lockmod;
}

struct applocks *membership_applocks(struct membership *m)
{
	return m->applocks;
}

struct plock_settings membership_settings(struct membership *m)
{
	struct plock_settings set;

	pthread_mutex_lock(&m->plocks_lock);
	set = m->plocks;
	pthread_mutex_unlock(&m->plocks_lock);
	return set;
}

/* Of two that come together the later one is in force. */
void membership_tune(struct membership *m, enum plock_setting which,
		     uint32_t value)
{
	struct plock_tuning tuning;

	pthread_mutex_lock(&m->plocks_lock);
	m->plocks.value[which] = value;
	tuning = plock_settings_tuning(&m->plocks);
	applocks_tune(m->applocks, &tuning);
	pthread_mutex_unlock(&m->plocks_lock);
}

static uint64_t lease_ns(void *arg)
{
	struct membership *m = arg;

	return atomic_load(&m->lease_ns);
}

int membership_guard(struct membership *m, struct blkdev **devp)
{
	struct gate *gate;
	int err = gate_open(*devp, lease_ns, m, &gate, devp);

	if (err)
		return err;
	pthread_mutex_lock(&m->lock);
	m->gate = gate;
	m->dev = *devp;
	if (m->lost)
		blkdev_shut(m->dev);
	pthread_mutex_unlock(&m->lock);
	return 0;
}

/* ---- what the file system asks ---- */

void membership_opened(struct membership *m, struct fs *fs)
{
	/* Without threads the mount fails when it needs one. */
	if (glworkers_start(&m->workers, fs))
		ug_error(m->params.who, "no threads can be made");
	pthread_mutex_lock(&m->lock);
	m->fs = fs;
	membership_thaw_if_clean(m);
	pthread_cond_broadcast(&m->changed);
	pthread_mutex_unlock(&m->lock);
}

void membership_closing(struct membership *m)
{
	pthread_mutex_lock(&m->lock);
	m->fs = NULL;
	m->mounted = false;
	while (m->recovering)
		pthread_cond_wait(&m->changed, &m->lock);
	pthread_mutex_unlock(&m->lock);
	glworkers_stop(&m->workers);
}

void membership_glock_wake(struct membership *m)
{
	glworkers_wake(&m->workers);
}

/* The lockspace is not there any more when the keeper has left it. */
int membership_may_repair(struct membership *m, char *why, size_t why_len)
{
	int err = -EIO;

	pthread_mutex_lock(&m->lock);
	if (!m->withdrawn)
		err = ugdlm_may_repair(m->ls, why, why_len);
	pthread_mutex_unlock(&m->lock);
	return err;
}

int membership_waits(struct membership *m, const char *why)
{
	note(m, why);
	return m->params.interrupted() ? -EINTR : 0;
}

void membership_withdrawn(struct membership *m)
{
	pthread_mutex_lock(&m->lock);
	m->withdrawn = true;
	if (m->gate)
		gate_poke(m->gate);
	pthread_cond_broadcast(&m->changed);
	pthread_mutex_unlock(&m->lock);
}

void membership_mounted(struct membership *m, struct fs *fs)
{
	bool lost;

	pthread_mutex_lock(&m->lock);
	m->mounted = true;
	lost = m->lost;
	/* All journals have been looked at, by us or by the first to mount. */
	if (!lost && !m->withdrawn)
		ugdlm_repaired(m->ls);
	pthread_mutex_unlock(&m->lock);
	if (lost)
		fs_withdraw(fs, "out of the cluster: %s", m->lost_why);
}

/*
 * From any thread, for every request: nothing but two reads of memory and one
 * of the clock.
 */
bool membership_may_serve(struct membership *m)
{
	return now_ns() < lease_ns(m) ||
	       atomic_load_explicit(&m->lost, memory_order_relaxed) ||
	       atomic_load_explicit(&m->withdrawn, memory_order_relaxed);
}

void membership_await_service(struct membership *m)
{
	pthread_mutex_lock(&m->lock);
	while (!membership_may_serve(m))
		wait_until(m, now_ns() + LOOK_NS);
	pthread_mutex_unlock(&m->lock);
}

void membership_leaving(struct membership *m)
{
	lockmod_dlm_leaving(m->dlm);
}

int membership_leave(struct membership *m, bool dirty)
{
	int err;

	keeper_stop(m);
	err = m->leave_err;
	if (!m->left) {
		applocks_leave(m->applocks);
		dispatcher_stop(m);
		err = ugdlm_leave(m->ls, dirty);
		if (err)
			ug_error(m->params.who,
				 "the others have not heard "
				 "that this node has unmounted: %s",
				 strerror(-err));
	}
	if (m->lost)
		err = -EIO;
	if (m->dlm)
		lockmod_dlm_destroy(m->dlm);
	applocks_destroy(m->applocks);
	agreement_free(m->agreement);
	destroy(m);
	return err;
}
