/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * mount_server.h - what a mount process can be asked over its control socket.
 *
 * Answers while the mount hangs, or has withdrawn, and while it is being made
 * and unmade: what it looks into comes and goes by mount_server_set(), which
 * waits for those who are in it.
 *
 * Verbs (mount_verbs.c, mount_status.c) run on threads of the control socket,
 * several at once; the rest is for the process itself.
 */
#ifndef UG_DAEMON_MOUNT_SERVER_H
#define UG_DAEMON_MOUNT_SERVER_H

#include <pthread.h>
#include <stdint.h>

#include "daemon/control.h"
#include "daemon/freezer.h"
#include "daemon/membership.h"
#include "fs/fs.h"
#include "fuse/session.h"

#define MOUNT_KIND "mount" /* of its control socket */

enum mount_state {
	MOUNT_JOINING,	/* the cluster */
	MOUNT_MOUNTING, /* journals, locks */
	MOUNT_SERVING,
	MOUNT_ENDING, /* the kernel has ended it: writing back */
};

/* Each NULL: not there (any more). */
struct mount_parts {
	struct membership *membership;
	struct fs *fs;
	struct fuse_session *session;
};

struct mount_server {
	const char *who;
	const char *source;
	const char *dir;
	pthread_rwlock_t parts_lock; /* parts; state is written with both */
	struct mount_parts parts;
	struct freezer freezer; /* with a lock of its own */
	pthread_mutex_t lock;	/* all that follows; inside of parts_lock */
	enum mount_state state;
	uint64_t state_ns;
	bool withdrawn;
	uint64_t withdrawn_ns;
	char withdrawn_why[512];
	char waits[512]; /* what mounting waits for */
};

/* Strings stay the caller's. */
void mount_server_init(struct mount_server *server, const char *who,
		       const char *source, const char *dir);
void mount_server_fini(struct mount_server *server);

/* These two wait for verbs that are in one of the parts. */
void mount_server_set(struct mount_server *server,
		      const struct mount_parts *parts);
void mount_server_state(struct mount_server *server, enum mount_state state);
void mount_server_withdrawn(struct mount_server *server, const char *why);
void mount_server_waits(struct mount_server *server, const char *why);

/* Their argument is a struct mount_server. */
extern const struct control_verb mount_verbs[];

/* mount_status.c. parts_lock is held. NULL: no memory. */
json_t *mount_status(struct mount_server *server);

#endif
