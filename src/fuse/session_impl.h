/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * session_impl.h - a session from inside: for session.c and reader.c only.
 *
 *	reader.c	read, decode, try, answer or hand over
 *	lockwait.c	requests that wait without a thread
 *	session.c	life: lanes and threads begin, wait for the end, stop
 */
#ifndef UG_FUSE_SESSION_IMPL_H
#define UG_FUSE_SESSION_IMPL_H

#include <pthread.h>
#include <stdatomic.h>

#include "fuse/counters.h"
#include "fuse/interrupts.h"
#include "fuse/lane.h"
#include "fuse/notifier.h"
#include "fuse/session.h"

enum lane_kind {
	LANE_WORK,     /* what waits for the disk */
	LANE_URGENT,   /* what others wait for: never behind the former */
	LANE_GRANTED,  /* what was parked, and has got what it waited for */
	LANE_PATIENT,  /* what waits for several locks of other nodes */
	LANE_NOTIFIER, /* what waits for the kernel */
	LANE_LATER,    /* what waits for the right to answer at all */
	LANES,
};

struct reader {
	struct fuse_session *session;
	pthread_t thread;
	int fd;			/* of the connection */
	struct fuse_slot *slot; /* read into; replaced when handed over */
	unsigned serial;	/* which request is timed */
	struct counters count;
};

/* A lane and what its threads need to know. */
struct session_lane {
	struct fuse_session *session;
	struct lane *lane;
	enum fuse_place place;
};

struct fuse_session {
	struct fuse_session_params params;
	struct slot_pool *pool;
	struct session_lane lanes[LANES];
	struct notifier *notifier;
	struct reader *readers;
	struct counters count; /* of the lanes */

	atomic_bool readers_stop;

	/*
	 * Guards the rest, and makes "look for an early interrupt, queue" and
	 * "look in the queues, remember" atomic against each other. Taken
	 * before a lane's lock.
	 */
	pthread_mutex_t lock;
	pthread_cond_t changed; /* ending, readers_alive, interrupts_queued */
	struct interrupts interrupts;
	bool interrupts_queued; /* one that is queued, or waits, is marked */
	struct cds_list_head parked; /* slots, lockwait.c */
	bool parking_over;	     /* nobody is put there any more */
	bool frozen;		     /* fuse_session_park() */
	unsigned underway; /* that wait for fuse_reply_done(), or are in it */
	unsigned readers_alive;
	bool notifier_closed; /* no request goes there any more */
	bool lanes_closed;    /* nor from one of the others to another */
	bool ending;
	int result; /* of fuse_session_run() */
	/* DESTROY has been read, and is answered last of all. */
	bool has_destroy;
	int destroy_fd;
	uint64_t destroy_unique;
};

/* What runs on the threads: reader.c. */
void *reader_main(void *arg);
void session_serve_queued(void *arg, struct fuse_slot *slot);
void session_serve_later(void *arg, struct fuse_slot *slot);

/* An interrupt that has come before it is queued. lock held. */
void session_interrupts_take(struct fuse_session *session,
			     struct fuse_slot *slot);

/* The signal that gets a reader out of read(). */
#define READER_SIGNAL SIGURG

/* The session ends, for this reason (the first one counts). lock held. */
void session_end_locked(struct fuse_session *session, int result);

/* ---- lockwait.c ---- */

/* The handler has parked it (FUSE_LOCKWAIT). */
void session_lockwait(struct fuse_session *session, struct fuse_slot *slot);
/* It waits for the thaw (FUSE_PARK); not when parking is over. lock held. */
void lockwait_thaw_locked(struct fuse_session *session, struct fuse_slot *slot);
/* The handler has given it to somebody else (FUSE_UNDERWAY). */
void session_underway(struct fuse_session *session, struct fuse_slot *slot);
/*
 * Mark it interrupted; false: it is not parked. *cancel_id is set if there is
 * something to cancel. lock held.
 */
bool lockwait_interrupt_locked(struct fuse_session *session, uint64_t unique,
			       uint64_t *cancel_id);
/*
 * Take those that are interrupted and were read before that time off the list,
 * to list. Returns how many interrupted ones stay. lock held.
 */
unsigned lockwait_reap_locked(struct fuse_session *session, uint64_t before_ns,
			      struct cds_list_head *list);
/* For fuse_session_waits(). lock held. */
void lockwait_waits_locked(struct fuse_session *session,
			   struct fuse_waits *waits);
/* Give up and answer what was taken off a list. lock not held. */
void lockwait_answer(struct fuse_session *session, struct cds_list_head *list,
		     int err);
/*
 * The end: all of them, and those to come. What is under way is waited for: the
 * handler's stop() has seen to its end.
 */
void lockwait_end(struct fuse_session *session);

/* Send an answer, and note what goes wrong. */
void session_answer(struct fuse_session *session, struct fuse_slot *slot,
		    int err);

#endif
