/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * control_server.h - the control socket of a process.
 *
 *   server thread: poll, accept, root only  --->  a worker per connection:
 *                                                 read, dispatch, answer
 *
 * So a verb that waits, a client that reads slowly, or one that says nothing
 * holds up its own connection only. Everything is bounded: connections
 * (CONTROL_CONNECTIONS, further ones are told so), bytes of a request, the time
 * for it to arrive and for an answer to be taken.
 *
 * The socket's name says whose it is, so that a process that is stopped, or
 * does not answer, is still found: KIND.NAME.PID.control.
 */
#ifndef UG_DAEMON_CONTROL_SERVER_H
#define UG_DAEMON_CONTROL_SERVER_H

#include "daemon/control.h"

#define CONTROL_CONNECTIONS 32u
/* A request has to be there in this time after its connection. */
#define CONTROL_REQUEST_MS 10000
/* An answer of which nothing is taken for so long is given up. */
#define CONTROL_ANSWER_MS 30000

struct control_server_config {
	const char *dir;  /* made if need be */
	const char *kind; /* "dlm" */
	const char *name; /* of what the process serves, for people */
	const struct control_verb *verbs;
	void *arg;
};

struct control_server;

/*
 * -ENAMETOOLONG, -ENOMEM, or the errno of what failed, with a sentence. What
 * the configuration points to is to last until the stop, but dir, kind, name.
 */
int control_server_start(const struct control_server_config *config,
			 struct control_server **out, char *why,
			 size_t why_len);

/*
 * Take the name away, end what waits (-ESHUTDOWN), let answers under way go
 * out, and free it. NULL is nothing.
 */
void control_server_stop(struct control_server *server);

/*
 * The socket's file for this process: bytes that a file name should not have
 * are %XX. -ENAMETOOLONG: it does not fit into a socket's address.
 */
int control_socket_name(const char *kind, const char *name, int pid, char *buf,
			size_t len);

#endif
