/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * dlm_verbs.h - what a lock process can be asked over its control socket.
 *
 * Verbs run on threads of the control socket, several at once. They reach the
 * lockspace between dlm_server_set() with it and dlm_server_set() with NULL,
 * which waits for those that are in it.
 */
#ifndef UG_DAEMON_DLM_VERBS_H
#define UG_DAEMON_DLM_VERBS_H

#include <pthread.h>
#include <stdbool.h>

#include "daemon/control.h"
#include "daemon/dlm_hand.h"
#include "ugfs/ugdlm.h"

struct dlm_server {
	const char *name;
	struct hand *hand;
	pthread_rwlock_t ls_lock; /* ls */
	struct ugdlm *ls;
	int quit_fd;	      /* readable: the process is to leave */
	int left_fd;	      /* readable: it has left */
	pthread_mutex_t lock; /* all that follows */
	bool quitting;
	int left_err;
};

/* 0; -ENOMEM, -EMFILE. name stays the caller's. */
int dlm_server_init(struct dlm_server *server, const char *name);
void dlm_server_free(struct dlm_server *server);
void dlm_server_set(struct dlm_server *server, struct ugdlm *ls);
void dlm_server_quit(struct dlm_server *server);
bool dlm_server_is_quitting(struct dlm_server *server);
/* What has become of leaving; the answer of the verb "leave" waits for it. */
void dlm_server_left(struct dlm_server *server, int err);

/* Their argument is a struct dlm_server. */
extern const struct control_verb dlm_verbs[];

#endif
