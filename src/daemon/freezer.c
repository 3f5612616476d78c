/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * freezer.c - see freezer.h.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/eventfd.h>
#include <time.h>
#include <unistd.h>

#include "base/log.h"
#include "daemon/freezer.h"

/*
 * Another node wants it and it could not be done: until the next try. What
 * waited for the thaw goes on meanwhile; that node waits for a minute.
 */
#define RETRY_NS 1000000000u

static uint64_t now_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * 1000000000u + (uint64_t)ts.tv_nsec;
}

/* ---- the thread ---- */

/* The lock is held, as for all that follows but the callbacks. */
static void set_state(struct freezer *fz, enum freezer_state state)
{
	fz->state = state;
	fz->state_ns = now_ns();
	fz->at_rest = false;
	pthread_cond_broadcast(&fz->changed);
}

static bool admin_gives_up(void *arg)
{
	struct freezer *fz = arg;
	bool give_up;

	pthread_mutex_lock(&fz->lock);
	give_up = fz->give_up || fz->stop;
	pthread_mutex_unlock(&fz->lock);
	return give_up;
}

static bool never(void *arg)
{
	return false;
}

static void on_frozen(void *arg, unsigned slot)
{
	struct freezer *fz = arg;

	pthread_mutex_lock(&fz->lock);
	fz->at_rest = true;
	fz->slot = slot;
	fz->state_ns = now_ns();
	pthread_mutex_unlock(&fz->lock);
	ug_info(fz->who, "frozen by another node: all changes wait");
}

static void tell(struct freezer *fz, int result)
{
	fz->result = result;
	pthread_cond_broadcast(&fz->changed);
	if (eventfd_write(fz->done_fd, 1))
		ug_error(fz->who, "eventfd: %s", strerror(errno));
}

static void do_freeze(struct freezer *fz)
{
	const struct fs_freezer who = { .give_up = admin_gives_up, .arg = fz };
	char why[sizeof(fz->why)];
	int err;

	fz->freeze = false;
	set_state(fz, FREEZER_FREEZING);
	pthread_mutex_unlock(&fz->lock);
	fuse_session_park(fz->session, true);
	err = fs_freeze_writes(fz->fs, &who, why, sizeof(why));
	if (err)
		fuse_session_park(fz->session, false);
	else
		ug_info(fz->who, "frozen: all changes wait");
	pthread_mutex_lock(&fz->lock);
	snprintf(fz->why, sizeof(fz->why), "%s", why);
	set_state(fz, err ? FREEZER_THAWED : FREEZER_FROZEN);
	tell(fz, err);
}

/* What an administrator has frozen; also if it has withdrawn meanwhile. */
static void do_thaw(struct freezer *fz)
{
	pthread_mutex_unlock(&fz->lock);
	fs_thaw_writes(fz->fs);
	fuse_session_park(fz->session, false);
	ug_info(fz->who, "thawed");
	pthread_mutex_lock(&fz->lock);
	set_state(fz, FREEZER_THAWED);
	if (fz->thaw)
		tell(fz, 0);
	fz->thaw = false;
}

/* Until the next try, if there is anything to be tried again. */
static void rest_before_retry(struct freezer *fz)
{
	uint64_t ns = now_ns() + RETRY_NS;
	struct timespec until = { (time_t)(ns / 1000000000u),
				  (long)(ns % 1000000000u) };

	while (!fz->stop && !fz->withdrawn && !fz->freeze && now_ns() < ns)
		pthread_cond_timedwait(&fz->changed, &fz->lock, &until);
}

static void do_follow(struct freezer *fz)
{
	const struct fs_freezer who = {
		.give_up = never,
		.frozen = on_frozen,
		.arg = fz,
	};
	bool was_at_rest;
	int err;

	fz->wanted = false;
	fz->slot = 0;
	set_state(fz, FREEZER_FOLLOWING);
	pthread_mutex_unlock(&fz->lock);
	fuse_session_park(fz->session, true);
	err = fs_freeze_follow(fz->fs, &who);
	fuse_session_park(fz->session, false);
	pthread_mutex_lock(&fz->lock);
	was_at_rest = fz->at_rest;
	set_state(fz, FREEZER_THAWED);
	if (!err && was_at_rest)
		ug_info(fz->who, "thawed");
	if (!err)
		return;
	/* The one who froze is still waiting for us, perhaps. */
	fz->wanted = true;
	rest_before_retry(fz);
}

/* Stopped before it was begun. */
static void refuse_freeze(struct freezer *fz)
{
	fz->freeze = false;
	snprintf(fz->why, sizeof(fz->why), "it is being unmounted");
	tell(fz, -EBUSY);
}

static void *freezer_main(void *arg)
{
	struct freezer *fz = arg;

	pthread_setname_np(pthread_self(), "ugfs-freezer");
	pthread_mutex_lock(&fz->lock);
	while (!fz->stop || fz->state == FREEZER_FROZEN) {
		if (fz->state == FREEZER_FROZEN && (fz->thaw || fz->withdrawn))
			do_thaw(fz);
		else if (fz->freeze)
			do_freeze(fz);
		else if (fz->wanted && fz->state == FREEZER_THAWED &&
			 !fz->withdrawn)
			do_follow(fz);
		else
			pthread_cond_wait(&fz->changed, &fz->lock);
	}
	if (fz->freeze)
		refuse_freeze(fz);
	pthread_mutex_unlock(&fz->lock);
	return NULL;
}

/* ---- life ---- */

void freezer_init(struct freezer *fz, const char *who)
{
	pthread_condattr_t attr;

	*fz = (struct freezer){ .who = who, .state_ns = now_ns() };
	fz->done_fd = -1;
	pthread_mutex_init(&fz->lock, NULL);
	pthread_condattr_init(&attr);
	pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
	pthread_cond_init(&fz->changed, &attr);
	pthread_condattr_destroy(&attr);
}

void freezer_fini(struct freezer *fz)
{
	if (fz->done_fd >= 0)
		close(fz->done_fd);
	pthread_cond_destroy(&fz->changed);
	pthread_mutex_destroy(&fz->lock);
}

int freezer_start(struct freezer *fz, struct fs *fs,
		  struct fuse_session *session)
{
	fz->fs = fs;
	fz->session = session;
	fz->done_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (fz->done_fd < 0)
		return -EAGAIN;
	fz->started = !pthread_create(&fz->thread, NULL, freezer_main, fz);
	return fz->started ? 0 : -EAGAIN;
}

void freezer_stop(struct freezer *fz)
{
	if (!fz->started)
		return;
	pthread_mutex_lock(&fz->lock);
	fz->stop = true;
	pthread_cond_broadcast(&fz->changed);
	if (fz->state == FREEZER_FROZEN || fz->at_rest)
		ug_warn(fz->who, "frozen: the unmount ends when it is thawed");
	pthread_mutex_unlock(&fz->lock);
	pthread_join(fz->thread, NULL);
	fz->started = false;
}

void freezer_wanted(struct freezer *fz)
{
	pthread_mutex_lock(&fz->lock);
	fz->wanted = true;
	pthread_cond_broadcast(&fz->changed);
	pthread_mutex_unlock(&fz->lock);
}

void freezer_withdrawn(struct freezer *fz)
{
	pthread_mutex_lock(&fz->lock);
	fz->withdrawn = true;
	pthread_cond_broadcast(&fz->changed);
	pthread_mutex_unlock(&fz->lock);
}

/* ---- for administrators ---- */

static int refuse(struct freezer *fz, struct control_call *call)
{
	switch (fz->state) {
	case FREEZER_THAWED:
		return control_fail(call, -EALREADY, "it is not frozen");
	case FREEZER_FREEZING:
		return control_fail(call, -EBUSY, "it is being frozen");
	case FREEZER_FROZEN:
		return control_fail(call, -EBUSY, "it is frozen already");
	case FREEZER_FOLLOWING:
		return control_fail(call, -EBUSY,
				    "another node has frozen it (\"ugfs "
				    "status\" tells which)");
	}
	return -EINVAL;
}

/* The client does not wait any more; the lock is held. */
static void undo(struct freezer *fz)
{
	fz->give_up = true;
	while (fz->freeze || fz->state == FREEZER_FREEZING)
		pthread_cond_wait(&fz->changed, &fz->lock);
	if (fz->state == FREEZER_FROZEN && !fz->result) {
		fz->thaw = true;
		pthread_cond_broadcast(&fz->changed);
	}
}

int freezer_freeze(struct freezer *fz, struct control_call *call)
{
	eventfd_t count;
	int err, gone;

	pthread_mutex_lock(&fz->lock);
	if (fz->asking || fz->stop || fz->state != FREEZER_THAWED) {
		err = fz->state == FREEZER_THAWED
			      ? control_fail(call, -EBUSY,
					     "it is being frozen or unmounted")
			      : refuse(fz, call);
		pthread_mutex_unlock(&fz->lock);
		return err;
	}
	fz->freeze = fz->asking = true;
	fz->give_up = false;
	eventfd_read(fz->done_fd, &count);
	pthread_cond_broadcast(&fz->changed);
	pthread_mutex_unlock(&fz->lock);
	gone = control_wait(call, fz->done_fd, -1);
	pthread_mutex_lock(&fz->lock);
	if (gone)
		undo(fz);
	err = gone ? gone : fz->result;
	if (err)
		control_fail(call, err, "%s", fz->why);
	fz->asking = false;
	pthread_mutex_unlock(&fz->lock);
	return err;
}

int freezer_thaw(struct freezer *fz, struct control_call *call)
{
	eventfd_t count;
	int err;

	pthread_mutex_lock(&fz->lock);
	if (fz->state != FREEZER_FROZEN) {
		err = refuse(fz, call);
		pthread_mutex_unlock(&fz->lock);
		return err;
	}
	eventfd_read(fz->done_fd, &count);
	fz->thaw = true;
	pthread_cond_broadcast(&fz->changed);
	pthread_mutex_unlock(&fz->lock);
	err = control_wait(call, fz->done_fd, -1);
	return err ? control_fail(call, err, "%s", strerror(-err)) : 0;
}

void freezer_status(struct freezer *fz, struct freezer_status *out)
{
	pthread_mutex_lock(&fz->lock);
	*out = (struct freezer_status){
		.state = fz->state,
		.at_rest = fz->at_rest,
		.slot = fz->slot,
		.since_ns = fz->state_ns,
	};
	pthread_mutex_unlock(&fz->lock);
}
