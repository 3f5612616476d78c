/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * signals.h - how a mount process is told to end.
 *
 *   SIGTERM, SIGINT   the mount is taken away (lazily: users keep what they
 *                     have open), and the process ends with the last user
 *   again, or 10 s    it ends now; what users still have open fails
 *
 * In either case everything written so far reaches the disk. SIGHUP is ignored.
 * The signals are blocked from the beginning and taken by one thread, so that
 * no handler ever runs among the file system's threads.
 */
#ifndef UG_DAEMON_SIGNALS_H
#define UG_DAEMON_SIGNALS_H

#include <pthread.h>
#include <stdbool.h>

#include "fuse/session.h"

struct signals {
	pthread_mutex_t lock;  /* guards over */
	bool over;	       /* the session may be destroyed any time */
	unsigned major, minor; /* st_dev of the mount */
	struct fuse_session *session;
	pthread_t thread;
};

/* Before any thread is made. */
void signals_block(void);

/* Has the process been told to end before there was a session? */
bool signals_pending(void);

/* 0 or -EAGAIN. */
int signals_start(struct signals *s, unsigned major, unsigned minor,
		  struct fuse_session *session);

/* The session has ended: it is not touched any more. */
void signals_session_over(struct signals *s);

/* After that; a fuseblk mount must have been released by then. */
void signals_stop(struct signals *s);

#endif
