/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * mount_ask.h - find the process of a mount, and ask it. For commands.
 *
 * A mount is named by its directory, its device or image, or the name of its
 * lock table. The mount itself is never touched: its process may hang.
 */
#ifndef UG_DAEMON_MOUNT_ASK_H
#define UG_DAEMON_MOUNT_ASK_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>

#include "daemon/control_client.h"

/* "ugfs VERB: SENTENCE" on standard error; returns code. */
int mount_say(const char *command, int code, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));

/* All mount processes of this host. EXIT_OK, or it has been said. */
int mount_peers(const char *command, struct control_peers *peers);

struct mount_question {
	const char *command; /* what the user has called */
	const char *verb;
	json_t *args; /* taken over; NULL: none */
	int timeout_ms;
	bool (*text)(const char *text, size_t len); /* see control_client.h */
};

/* EXIT_OK and *result, or it has been said what is wrong. */
int mount_ask(const struct mount_question *question, const char *name,
	      json_t **result);
int mount_ask_peer(const struct mount_question *question,
		   const struct control_peer *peer, json_t **result);

#endif
