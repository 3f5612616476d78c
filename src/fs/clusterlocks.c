/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * clusterlocks.c - see clusterlocks.h.
 *
 * Who gets MOUNTED in EX knows that no other node has the volume mounted. Who
 * dies while mounting loses both locks with the same change of members that
 * makes his journal one to be recovered, so the next one is first again, and
 * looks at all journals again.
 *
 * All requests carry GL_NOEXP: a node that mounts while a journal is dirty may
 * be the only one left to recover it.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "fs/clusterlocks.h"

#define MOUNT_NUMBER 0u
#define LIVE_NUMBER 1u
#define MOUNTED_NUMBER 5u
#define TELL_NS 1000000000u

struct cluster_lock {
	struct glock *gl;
	struct glock_holder gh;
};

struct cluster_locks {
	struct cluster_lock mount, live, mounted, journal;
};

static const struct glock_ops nondisk_glock_ops = {
	.type = LM_TYPE_NONDISK,
};

const struct glock_ops journal_glock_ops = {
	.type = LM_TYPE_JOURNAL,
};

static uint64_t now_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * 1000000000u + (uint64_t)ts.tv_nsec;
}

int cluster_lock_wait(struct fs *fs, struct glock_holder *gh, const char *what,
		      const struct why *why)
{
	int err;

	while ((err = glock_wait_until(gh, now_ns() + TELL_NS)) == -ETIMEDOUT) {
		if (!fs->fs_host->waits(fs->fs_host_arg, what))
			continue;
		glock_dq(gh);
		glock_holder_init(gh);
		return why_set(why, -EINTR, "interrupted: %s", what);
	}
	if (!err)
		return 0;
	glock_holder_init(gh);
	return why_set(why, err, "a lock of the volume cannot be had: %s",
		       strerror(-err));
}

static int get(struct fs *fs, struct cluster_lock *lock,
	       const struct glock_ops *ops, uint64_t number,
	       const struct why *why)
{
	int err = glock_get(fs->fs_shared_glocks, ops, number, NULL, &lock->gl);

	return err ? why_set(why, err, "out of memory") : 0;
}

static int take(struct fs *fs, struct cluster_lock *lock, enum lm_state state,
		unsigned flags, const char *what, const struct why *why)
{
	int err = glock_nq(lock->gl, state, flags | GL_NOEXP | GL_ASYNC,
			   &lock->gh);

	if (err) {
		glock_holder_init(&lock->gh);
		return why_set(why, err, "%s: %s", what, strerror(-err));
	}
	return cluster_lock_wait(fs, &lock->gh, what, why);
}

/* EX tells that there is nobody else. */
static int take_mounted(struct fs *fs, bool *first, const struct why *why)
{
	struct cluster_lock *lock = &fs->fs_locks->mounted;
	int err = glock_nq(lock->gl, LM_ST_EXCLUSIVE, GL_TRY | GL_NOEXP,
			   &lock->gh);

	*first = !err;
	if (!err)
		return 0;
	glock_holder_init(&lock->gh);
	if (err != -EAGAIN)
		return why_set(why, err, "the lock MOUNTED: %s",
			       strerror(-err));
	return take(fs, lock, LM_ST_SHARED, GL_EXACT,
		    "waiting for the nodes "
		    "that have the volume mounted",
		    why);
}

static int get_all(struct fs *fs, const struct why *why)
{
	struct cluster_locks *locks = fs->fs_locks;
	int err;

	err = get(fs, &locks->mount, &nondisk_glock_ops, MOUNT_NUMBER, why);
	if (!err)
		err = get(fs, &locks->live, &nondisk_glock_ops, LIVE_NUMBER,
			  why);
	if (!err)
		err = get(fs, &locks->mounted, &nondisk_glock_ops,
			  MOUNTED_NUMBER, why);
	if (!err && !fs->fs_opt.spectator)
		err = get(fs, &locks->journal, &journal_glock_ops,
			  fs->fs_opt.jid, why);
	return err;
}

int cluster_locks_take(struct fs *fs, bool *first, const struct why *why)
{
	struct cluster_locks *locks = calloc(1, sizeof(*locks));
	int err;

	if (!locks)
		return why_set(why, -ENOMEM, "out of memory");
	fs->fs_locks = locks;
	err = get_all(fs, why);
	if (!err)
		err = take(fs, &locks->mount, LM_ST_EXCLUSIVE, GL_NOCACHE,
			   "waiting for another node that mounts the volume",
			   why);
	if (!err)
		err = take(fs, &locks->live, LM_ST_SHARED, GL_EXACT,
			   "waiting for the lock LIVE", why);
	if (!err)
		err = take_mounted(fs, first, why);
	/* A survivor may be looking whether it is clean. */
	if (!err && locks->journal.gl)
		err = take(fs, &locks->journal, LM_ST_EXCLUSIVE, GL_NOCACHE,
			   "waiting for the node that recovers our journal",
			   why);
	return err;
}

/*
 * MOUNTED becomes SH before MOUNT is given up: in between nobody else can ask
 * for it, so that it is never free.
 */
int cluster_locks_mounted(struct fs *fs, const struct why *why)
{
	struct cluster_locks *locks = fs->fs_locks;
	int err = 0;

	if (locks->mounted.gh.gh_state == LM_ST_EXCLUSIVE) {
		glock_dq(&locks->mounted.gh);
		glock_holder_init(&locks->mounted.gh);
		err = take(fs, &locks->mounted, LM_ST_SHARED, GL_EXACT,
			   "waiting for the lock MOUNTED", why);
	}
	if (!err) {
		glock_dq(&locks->mount.gh);
		glock_holder_init(&locks->mount.gh);
	}
	return err;
}

static void drop(struct cluster_lock *lock)
{
	glock_dq_if_held(&lock->gh);
	if (lock->gl)
		glock_put(lock->gl);
}

void cluster_locks_drop(struct fs *fs)
{
	struct cluster_locks *locks = fs->fs_locks;

	if (!locks)
		return;
	drop(&locks->journal);
	drop(&locks->mounted);
	drop(&locks->live);
	drop(&locks->mount);
	free(locks);
	fs->fs_locks = NULL;
}
