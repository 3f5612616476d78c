/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * freezer.h - the thread that freezes a mount, and thaws it.
 *
 * For an administrator (freezer_freeze(), freezer_thaw(), on the threads of the
 * control socket) and for other nodes (freezer_wanted(), on any thread).
 * Requests of programs that would change something are parked in the session
 * meanwhile.
 *
 * A mount that is unmounted while it is frozen ends when it is thawed, as the
 * kernel's GFS2 does: freezer_stop() waits for that.
 */
#ifndef UG_DAEMON_FREEZER_H
#define UG_DAEMON_FREEZER_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

#include "daemon/control.h"
#include "fs/fs.h"
#include "fuse/session.h"

enum freezer_state {
	FREEZER_THAWED,
	FREEZER_FREEZING,  /* by us */
	FREEZER_FROZEN,	   /* by us */
	FREEZER_FOLLOWING, /* another node wants it, or has it frozen */
};

struct freezer {
	const char *who; /* for the log */
	struct fs *fs;
	struct fuse_session *session;
	pthread_t thread;
	bool started;
	pthread_mutex_t lock; /* all that follows */
	pthread_cond_t changed;
	enum freezer_state state;
	uint64_t state_ns;
	bool at_rest;	   /* following: nothing is written any more */
	unsigned slot;	   /* of the member that froze it; 0: not known */
	bool wanted;	   /* by another node */
	bool freeze, thaw; /* asked for by an administrator */
	bool asking;	   /* for freeze, and has not had the answer */
	bool give_up;	   /* ... who does not wait any more */
	bool withdrawn;
	bool stop;
	int result; /* of freeze or thaw */
	char why[512];
	int done_fd; /* readable: there is a result */
};

void freezer_init(struct freezer *fz, const char *who);
void freezer_fini(struct freezer *fz);
/* 0 or -EAGAIN: no thread. What has been wanted before is done now. */
int freezer_start(struct freezer *fz, struct fs *fs,
		  struct fuse_session *session);
/* Returns when the volume is thawed, or has withdrawn. */
void freezer_stop(struct freezer *fz);

/* fs_host_ops.freeze_wanted. */
void freezer_wanted(struct freezer *fz);
void freezer_withdrawn(struct freezer *fz);

/*
 * Freeze the volume in the whole cluster; thaw it. 0, or a sentence as by
 * control_fail(): -EBUSY, -EINTR, -EIO, -EALREADY (thaw: it is not frozen).
 * If the client goes away, it is thawed again.
 */
int freezer_freeze(struct freezer *fz, struct control_call *call);
int freezer_thaw(struct freezer *fz, struct control_call *call);

struct freezer_status {
	enum freezer_state state;
	bool at_rest;
	unsigned slot;
	uint64_t since_ns; /* CLOCK_MONOTONIC */
};
void freezer_status(struct freezer *fz, struct freezer_status *out);

#endif
