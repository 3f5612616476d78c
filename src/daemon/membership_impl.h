/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * membership_impl.h - a membership from inside: for the files below only.
 *
 *	membership.c	joins, leaves, and answers what the mount asks
 *	dispatcher.c	callbacks of the lockspace: answers for glocks, events.
 *			Events only note what has happened, freeze and thaw.
 *	keeper.c	what may wait: replay of dead members' journals; the end
 *			of a mount that has withdrawn
 *	membership_status.c	for people
 *
 *	prepare		grants are frozen
 *	gone		its journal is on the list of dirty ones
 *	running		the keeper works on the list; when it is empty: thaw
 */
#ifndef UG_DAEMON_MEMBERSHIP_IMPL_H
#define UG_DAEMON_MEMBERSHIP_IMPL_H

#include <pthread.h>
#include <stdatomic.h>
#include <time.h>

#include "daemon/agreement.h"
#include "daemon/applocks.h"
#include "daemon/glworkers.h"
#include "daemon/membership.h"
#include "lockmod/dlm.h"
#include "ugfs/ugdlm.h"

#define NS_PER_SEC 1000000000u
#define NS_PER_MS 1000000u
#define SLOTS_MAX 256u
#define WHY_LEN 1024
/* Then a mount that waits says so. */
#define PATIENCE_NS (2u * (uint64_t)NS_PER_SEC)

struct membership {
	const struct membership_params params;
	char noted[WHY_LEN];
	struct ugdlm *ls;
	struct lockmod_dlm *dlm;
	struct lockmod lockmod;
	struct applocks *applocks;
	pthread_mutex_t plocks_lock;  /* guards plocks; outside of applocks */
	struct plock_settings plocks; /* what is in force */
	struct agreement *agreement;  /* outlives the lockspace */
	struct glworkers workers;
	struct blkdev *dev;
	struct gate *gate;
	pthread_t dispatcher, keeper;
	bool dispatching, keeping;
	int stop_fd;		   /* readable: the dispatcher ends */
	_Atomic uint64_t lease_ns; /* outlives the lockspace */
	/* Written under the lock. Requests do not wait, they fail. */
	atomic_bool lost;      /* the cluster goes on without us */
	atomic_bool withdrawn; /* the volume cannot be used any more */

	pthread_mutex_t lock; /* guards all below */
	pthread_cond_t changed;
	struct fs *fs; /* from opened() to closing() */
	bool mounted;  /* a fault of the lockspace withdraws fs */
	bool running;
	bool has_run;
	uint16_t slot;
	uint16_t dirty[SLOTS_MAX]; /* slots of dead members */
	unsigned dirty_count;
	bool recovering;	     /* the keeper is in fs_recover_journal() */
	uint64_t gone_ns[SLOTS_MAX]; /* when its member has gone, by slot - 1 */
	uint64_t complained_ns;
	char complaint[WHY_LEN]; /* why a journal is not recovered yet */
	unsigned asking; /* threads that ask the lockspace for its state */
	bool ls_going;	 /* nobody may any more */
	char lost_why[WHY_LEN];
	bool quorate; /* as told last, and when */
	uint64_t quorate_ns;
	bool told_waiting; /* of its end there is a line in the log */
	bool left;	   /* dirty, by the keeper */
	bool ending;
	int leave_err;
};

/* CLOCK_MONOTONIC */
static inline uint64_t now_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * NS_PER_SEC + (uint64_t)ts.tv_nsec;
}

/* The lock is held. */
static inline void wait_until(struct membership *m, uint64_t end_ns)
{
	struct timespec ts = {
		.tv_sec = (time_t)(end_ns / NS_PER_SEC),
		.tv_nsec = (long)(end_ns % NS_PER_SEC),
	};

	pthread_cond_timedwait(&m->changed, &m->lock, &ts);
}

/* The lock is held: grants may be told if no journal is dirty. */
static inline void membership_thaw_if_clean(struct membership *m)
{
	if (m->fs && m->running && !m->dirty_count && !m->lost)
		fs_thaw(m->fs);
}

extern const struct ugdlm_events membership_events;

/* The other members' names, "fs1, fs2", for people. */
void membership_others(struct membership *m, char *buf, size_t len);

/* From its return on nobody asks the lockspace for its state. */
void membership_await_askers(struct membership *m);

/* 0 or -EAGAIN. */
int dispatcher_start(struct membership *m);
void dispatcher_stop(struct membership *m); /* also of one that never ran */
int keeper_start(struct membership *m);
void keeper_stop(struct membership *m); /* likewise */

#endif
