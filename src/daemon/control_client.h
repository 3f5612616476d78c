/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * control_client.h - find the processes of ugfs on this host, and ask them.
 *
 * A socket that nobody listens on is left over from a killed process and is
 * removed. For one thread.
 */
#ifndef UG_DAEMON_CONTROL_CLIENT_H
#define UG_DAEMON_CONTROL_CLIENT_H

#include "daemon/control.h"
#include "daemon/exitcode.h"

struct control_peer {
	char *name; /* of what it serves */
	int pid;
	char file[108]; /* of the socket */
};

struct control_peers {
	struct control_peer *peer;
	size_t count;
};

/*
 * Those of this kind, by name, then pid; name NULL: all. 0, even if there are
 * none; -ENOMEM, or the errno of reading dir.
 */
int control_find(const char *dir, const char *kind, const char *name,
		 struct control_peers *out);
void control_peers_free(struct control_peers *peers);

struct control_question {
	const char *dir;
	const struct control_peer *peer;
	const char *verb;
	json_t *args;	/* taken over; NULL: none */
	int timeout_ms; /* for each line of the answer; below 0: none */
	/* Notes on the way; NULL: not wanted. */
	void (*note)(const char *text);
	/*
	 * Pieces of an answer that is a text, len bytes each; false: no more
	 * of it, control_ask() returns -EPIPE. NULL: they are passed over.
	 */
	bool (*text)(const char *text, size_t len);
};

/*
 * Ask, and wait for the answer: 0 and *result, to be given back by
 * json_decref(); else a negative errno, the peer's or one of the way
 * (-ECONNRESET: it has ended meanwhile, -ETIMEDOUT), and a sentence.
 */
int control_ask(const struct control_question *question, json_t **result,
		char *why, size_t why_len);

/* What a command that asks exits with after this error. */
enum exit_code control_exit_code(int err);

#endif
