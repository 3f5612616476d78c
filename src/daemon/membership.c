/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * membership.c - a mount as a member of its cluster. See membership.h.
 *
 *	dispatcher	callbacks of the lockspace: answers for glocks, events.
 *			Events only note what has happened, freeze and thaw.
 *	keeper		what may wait: replay of dead members' journals; the end
 *			of a mount that has withdrawn
 *
 *	prepare		grants are frozen
 *	gone		its journal is on the list of dirty ones
 *	running		the keeper works on the list; when it is empty: thaw
 *
 * A journal that somebody else has locked is being recovered by another
 * survivor, or has been, and has a new owner by now: a slot is given away only
 * when some member has called its journal clean.
 */
#include <errno.h>
#include <jansson.h>
#include <poll.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <time.h>
#include <unistd.h>

#include "base/log.h"
#include "daemon/glworkers.h"
#include "daemon/membership.h"
#include "lockmod/dlm.h"
#include "ugfs/ugdlm.h"

#define NS_PER_SEC 1000000000u
#define NS_PER_MS 1000000u
#define SLOTS_MAX 256u
#define WHY_LEN 1024
/* Until a node with quorum must have heard us. */
#define JOIN_TIMEOUT_MS 60000u
/* Then a mount that waits says so. */
#define PATIENCE_NS (2u * (uint64_t)NS_PER_SEC)
#define LOOK_NS (200u * (uint64_t)NS_PER_MS)
/* Between attempts at a journal, and between complaints about one. */
#define RETRY_NS (200u * (uint64_t)NS_PER_MS)
#define COMPLAIN_NS (30u * (uint64_t)NS_PER_SEC)

struct membership {
	const struct membership_params params;
	char noted[WHY_LEN];
	struct ugdlm *ls;
	struct lockmod_dlm *dlm;
	struct lockmod lockmod;
	struct glworkers workers;
	struct blkdev *dev;
	struct gate *gate;
	pthread_t dispatcher, keeper;
	bool dispatching, keeping;
	int stop_fd; /* readable: the dispatcher ends */

	pthread_mutex_t lock; /* guards all below */
	pthread_cond_t changed;
	struct fs *fs; /* from opened() to closing() */
	bool mounted;  /* a fault of the lockspace withdraws fs */
	bool running;
	bool has_run;
	uint16_t slot;
	uint16_t dirty[SLOTS_MAX]; /* slots of dead members */
	unsigned dirty_count;
	bool recovering; /* the keeper is in fs_recover_journal() */
	uint64_t complained_ns;
	bool lost;
	char lost_why[WHY_LEN];
	bool withdrawn;
	bool quorate; /* as told last, and when */
	uint64_t quorate_ns;
	bool told_waiting; /* of its end there is a line in the log */
	bool left;	   /* dirty, by the keeper */
	bool ending;
	int leave_err;
};

static uint64_t now_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * NS_PER_SEC + (uint64_t)ts.tv_nsec;
}

/* The lock is held. */
static void wait_until(struct membership *m, uint64_t end_ns)
{
	struct timespec ts = {
		.tv_sec = (time_t)(end_ns / NS_PER_SEC),
		.tv_nsec = (long)(end_ns % NS_PER_SEC),
	};

	pthread_cond_timedwait(&m->changed, &m->lock, &ts);
}

/* ---- events, on the dispatcher ---- */

/* The lock is held. */
static void thaw_if_clean(struct membership *m)
{
	if (m->fs && m->running && !m->dirty_count && !m->lost)
		fs_thaw(m->fs);
}

static void on_prepare(void *arg)
{
	struct membership *m = arg;

	pthread_mutex_lock(&m->lock);
	m->running = false;
	if (m->fs)
		fs_freeze(m->fs);
	pthread_mutex_unlock(&m->lock);
}

static bool is_dirty(const struct membership *m, uint16_t slot)
{
	for (unsigned i = 0; i < m->dirty_count; i++)
		if (m->dirty[i] == slot)
			return true;
	return false;
}

static void on_gone(void *arg, const struct ugdlm_member *gone,
		    enum ugdlm_end end)
{
	struct membership *m = arg;

	if (end == UGDLM_END_CLEAN || !gone->slot)
		return;
	ug_warn(m->params.who, "node %u (%s) has %s: journal %u is recovered",
		gone->nodeid, gone->nodeid ? gone->name : "earlier member",
		end == UGDLM_END_DIRTY ? "withdrawn" : "died", gone->slot - 1u);
	pthread_mutex_lock(&m->lock);
	/* A lockspace has no more slots than that. */
	if (!is_dirty(m, gone->slot) && m->dirty_count < SLOTS_MAX)
		m->dirty[m->dirty_count++] = gone->slot;
	pthread_cond_broadcast(&m->changed);
	pthread_mutex_unlock(&m->lock);
}

static void on_running(void *arg, uint32_t generation,
		       const struct ugdlm_member *self)
{
	struct membership *m = arg;

	pthread_mutex_lock(&m->lock);
	m->running = m->has_run = true;
	m->slot = self->slot;
	thaw_if_clean(m);
	pthread_cond_broadcast(&m->changed);
	pthread_mutex_unlock(&m->lock);
}

static void on_quorate(void *arg, bool quorate)
{
	struct membership *m = arg;

	pthread_mutex_lock(&m->lock);
	m->quorate = quorate;
	m->quorate_ns = now_ns();
	if (quorate && m->told_waiting)
		ug_info(m->params.who, "has quorum: work goes on");
	m->told_waiting = false;
	if (m->gate)
		gate_poke(m->gate);
	pthread_cond_broadcast(&m->changed);
	pthread_mutex_unlock(&m->lock);
}

static void on_cleared(void *arg)
{
	struct membership *m = arg;

	pthread_mutex_lock(&m->lock);
	pthread_cond_broadcast(&m->changed);
	pthread_mutex_unlock(&m->lock);
}

/* Nothing is written from here on, whatever others are at. */
static void on_lost(void *arg, const char *why)
{
	struct membership *m = arg;
	struct fs *fs;

	pthread_mutex_lock(&m->lock);
	if (m->dev)
		blkdev_shut(m->dev);
	if (m->gate)
		gate_poke(m->gate);
	m->lost = true;
	snprintf(m->lost_why, sizeof(m->lost_why), "%s", why);
	fs = m->mounted ? m->fs : NULL;
	pthread_cond_broadcast(&m->changed);
	pthread_mutex_unlock(&m->lock);
	ug_error(m->params.who, "out of the cluster: %s", why);
	if (fs)
		fs_withdraw(fs, "out of the cluster: %s", why);
}

static const struct ugdlm_events events = {
	.prepare = on_prepare,
	.gone = on_gone,
	.running = on_running,
	.quorate = on_quorate,
	.cleared = on_cleared,
	.lost = on_lost,
};

static void *dispatcher_main(void *arg)
{
	struct membership *m = arg;
	struct pollfd fds[2] = {
		{ ugdlm_fd(m->ls), POLLIN, 0 },
		{ m->stop_fd, POLLIN, 0 },
	};

	pthread_setname_np(pthread_self(), "ugfs-dlm");
	while (!fds[1].revents) {
		ugdlm_dispatch(m->ls, 64);
		poll(fds, 2, -1);
	}
	return NULL;
}

static void stop_dispatcher(struct membership *m)
{
	if (!m->dispatching)
		return;
	m->dispatching = false;
	eventfd_write(m->stop_fd, 1);
	pthread_join(m->dispatcher, NULL);
}

/* ---- the keeper ---- */

static bool slot_has_member(const json_t *members, uint16_t slot)
{
	const json_t *member;
	size_t i;

	json_array_foreach(members, i, member)
	{
		const char *state =
			json_string_value(json_object_get(member, "state"));

		if (json_integer_value(json_object_get(member, "slot")) ==
			    slot &&
		    state && strcmp(state, "gone"))
			return true;
	}
	return false;
}

/* Then its journal has been clean since its member died. */
static bool slot_is_taken(struct membership *m, uint16_t slot)
{
	json_t *root;
	bool taken;
	char *text;

	if (ugdlm_status_json(m->ls, &text))
		return false;
	root = json_loads(text, 0, NULL);
	free(text);
	taken = slot_has_member(json_object_get(root, "members"), slot);
	json_decref(root);
	return taken;
}

static void complain(struct membership *m, uint16_t slot, const char *why)
{
	uint64_t t = now_ns();

	if (m->complained_ns && t - m->complained_ns < COMPLAIN_NS)
		return;
	m->complained_ns = t;
	ug_error(
		m->params.who,
		"journal %u is not recovered yet, and no lock is granted until "
		"then: %s",
		slot - 1u, why);
}

/*
 * A journal that was dirty before its last owner was a member could be that of
 * somebody who is alive, beyond our sight (DESIGN 4.7). Once any mount of this
 * group has got as far as ours there is none.
 */
static int may_repair(struct membership *m, char *why, size_t why_len)
{
	bool mounted;

	pthread_mutex_lock(&m->lock);
	mounted = m->mounted;
	pthread_mutex_unlock(&m->lock);
	return mounted ? 0 : ugdlm_may_repair(m->ls, why, why_len);
}

static int recover_slot(struct membership *m, struct fs *fs, uint16_t slot)
{
	char why[WHY_LEN] = "";
	int err = may_repair(m, why, sizeof(why));

	if (err) {
		complain(m, slot, why);
		return err;
	}
	err = fs_recover_journal(fs, slot - 1u);
	if (err == -EAGAIN && slot_is_taken(m, slot))
		err = 0;
	if (!err)
		ugdlm_slot_clean(m->ls, slot);
	else if (err != -EAGAIN)
		complain(m, slot,
			 err == -EUCLEAN ? "it is damaged, fsck.gfs2 can clear "
					   "it when nobody has it mounted"
					 : strerror(-err));
	return err;
}

/* The lock is held. */
static void forget_slot(struct membership *m, uint16_t slot)
{
	for (unsigned i = 0; i < m->dirty_count; i++)
		if (m->dirty[i] == slot)
			m->dirty[i] = m->dirty[--m->dirty_count];
}

/* The lock is held, and let go meanwhile. */
static void recover_one(struct membership *m)
{
	uint16_t slot = m->dirty[0];
	struct fs *fs = m->fs;
	int err;

	m->recovering = true;
	pthread_mutex_unlock(&m->lock);
	err = recover_slot(m, fs, slot);
	pthread_mutex_lock(&m->lock);
	m->recovering = false;
	pthread_cond_broadcast(&m->changed);
	if (!err) {
		forget_slot(m, slot);
		m->complained_ns = 0;
		thaw_if_clean(m);
	} else if (!m->ending && m->fs) {
		/* Others first: their owners may be known to be dead. */
		forget_slot(m, slot);
		m->dirty[m->dirty_count++] = slot;
		wait_until(m, now_ns() + RETRY_NS);
	}
}

/*
 * Withdrawn: the device is shut, and let go when the last request has come
 * back from it. Then the others may replay our journal.
 */
static void leave_dirty(struct membership *m)
{
	int err;

	lockmod_dlm_cut(m->dlm);
	stop_dispatcher(m);
	if (m->gate)
		gate_retire(m->gate);
	err = ugdlm_leave(m->ls, true);
	lockmod_dlm_fail(m->dlm);
	if (err && !m->lost)
		ug_error(m->params.who,
			 "the others have not heard that the "
			 "device is closed: %s",
			 strerror(-err));
	else if (!m->lost)
		ug_warn(m->params.who,
			"the device is closed and the cluster "
			"left; the other nodes recover journal %u",
			m->slot - 1u);
	pthread_mutex_lock(&m->lock);
	m->left = true;
	m->leave_err = err;
	pthread_cond_broadcast(&m->changed);
}

/* Each change of members ends the lease for a moment, which says nothing. */
static void rest(struct membership *m)
{
	uint64_t end_ns = m->quorate_ns + PATIENCE_NS;

	if (m->quorate || m->told_waiting || !m->has_run) {
		pthread_cond_wait(&m->changed, &m->lock);
	} else if (now_ns() < end_ns) {
		wait_until(m, end_ns);
	} else {
		ug_warn(m->params.who,
			"no quorum, or not heard by the cluster: all work "
			"waits");
		m->told_waiting = true;
	}
}

static void *keeper_main(void *arg)
{
	struct membership *m = arg;

	pthread_setname_np(pthread_self(), "ugfs-keeper");
	pthread_mutex_lock(&m->lock);
	while (!m->left) {
		if (m->withdrawn) {
			pthread_mutex_unlock(&m->lock);
			leave_dirty(m);
		} else if (m->ending) {
			break;
		} else if (m->fs && m->running && m->dirty_count && !m->lost) {
			recover_one(m);
		} else {
			rest(m);
		}
	}
	pthread_mutex_unlock(&m->lock);
	return NULL;
}

static void stop_keeper(struct membership *m)
{
	if (!m->keeping)
		return;
	m->keeping = false;
	pthread_mutex_lock(&m->lock);
	m->ending = true;
	pthread_cond_broadcast(&m->changed);
	pthread_mutex_unlock(&m->lock);
	pthread_join(m->keeper, NULL);
}

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

static int start_threads(struct membership *m)
{
	m->stop_fd = eventfd(0, EFD_CLOEXEC);
	if (m->stop_fd < 0)
		return -errno;
	m->dispatching =
		!pthread_create(&m->dispatcher, NULL, dispatcher_main, m);
	m->keeping = !pthread_create(&m->keeper, NULL, keeper_main, m);
	return m->dispatching && m->keeping ? 0 : -EAGAIN;
}

static struct membership *create(const struct membership_params *params)
{
	struct membership *m = calloc(1, sizeof(*m));
	pthread_condattr_t attr;

	if (!m)
		return NULL;
	memcpy((void *)&m->params, params, sizeof(*params));
	m->stop_fd = -1;
	glworkers_init(&m->workers);
	pthread_mutex_init(&m->lock, NULL);
	pthread_condattr_init(&attr);
	pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
	pthread_cond_init(&m->changed, &attr);
	pthread_condattr_destroy(&attr);
	return m;
}

static void destroy(struct membership *m)
{
	if (m->stop_fd >= 0)
		close(m->stop_fd);
	pthread_cond_destroy(&m->changed);
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

int membership_join(const struct membership_params *params,
		    struct membership **mp, char *why, size_t why_len)
{
	struct membership *m;
	struct ugdlm_config config = {
		.name = params->table,
		.key_file = params->key_file,
		.events = &events,
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
	memcpy(config.uuid, params->uuid, sizeof(config.uuid));
	err = ugdlm_join(&config, JOIN_TIMEOUT_MS, &m->ls, why, why_len);
	if (err) {
		destroy(m);
		return err;
	}
	err = lockmod_dlm_create(m->ls, params->who, &m->dlm);
	if (!err)
		err = start_threads(m);
	if (err) {
		snprintf(why, why_len, "no threads can be made");
	} else {
		m->lockmod = lockmod_dlm(m->dlm);
		err = wait_running(m, why, why_len);
	}
	if (!err)
		*mp = m;
	else
		membership_leave(m, false);
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

static uint64_t lease_ns(void *arg)
{
	struct membership *m = arg;

	return ugdlm_lease_ns(m->ls);
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
	thaw_if_clean(m);
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

int membership_may_repair(struct membership *m, char *why, size_t why_len)
{
	return ugdlm_may_repair(m->ls, why, why_len);
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
	pthread_mutex_unlock(&m->lock);
	if (lost)
		fs_withdraw(fs, "out of the cluster: %s", m->lost_why);
}

static bool may_serve(struct membership *m)
{
	return m->withdrawn || m->lost || now_ns() < ugdlm_lease_ns(m->ls);
}

bool membership_may_serve(struct membership *m, bool wait)
{
	bool may;

	pthread_mutex_lock(&m->lock);
	while (!(may = may_serve(m)) && wait)
		wait_until(m, now_ns() + LOOK_NS);
	pthread_mutex_unlock(&m->lock);
	return may;
}

void membership_leaving(struct membership *m)
{
	lockmod_dlm_leaving(m->dlm);
}

int membership_leave(struct membership *m, bool dirty)
{
	int err;

	stop_keeper(m);
	err = m->leave_err;
	if (!m->left) {
		stop_dispatcher(m);
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
	destroy(m);
	return err;
}
