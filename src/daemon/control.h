/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * control.h - what a running process of ugfs can be asked to do.
 *
 * Requests and answers are JSON objects, one per line, over a UNIX socket:
 *
 *   {"version":"1.0","verb":"lock","args":{"resource":"a","mode":"EX"}}
 *                              {"version":"1.1","note":"waiting: ..."}   any
 *                              {"version":"1.1","text":"G:  s:SH .."}    any
 *                              {"version":"1.1","result":{..}}           one
 *                           or {"version":"1.1","error":{"code":"EBUSY",
 *                                                       "text":".."}}
 *
 * Minor version 1 has brought "text", a piece of an answer that nobody wants to
 * hold in memory as a whole: pieces together are the text, and the result tells
 * that it is complete. Only verbs that are younger than it answer so.
 *
 * Another major version is refused by name; of a higher minor one, what is not
 * known in the outer object is passed over (DESIGN D13). A process has a table
 * of verbs; control_dispatch() is pure, sockets and threads are in
 * control_server.c, the other end is control_client.c.
 */
#ifndef UG_DAEMON_CONTROL_H
#define UG_DAEMON_CONTROL_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>

#include "base/compiler.h"

#define CONTROL_MAJOR 1
#define CONTROL_MINOR 1

/* Where the sockets are; see control_name(). */
#define CONTROL_DIR "/run/ugfs"

/* Bytes of a request, with its newline. */
#define CONTROL_REQUEST_MAX 65536u
/* Bytes of an answer that a client takes: a million locks have about 250 MB. */
#define CONTROL_ANSWER_MAX ((size_t)1 << 30)
#define CONTROL_WHY_LEN 1024

struct control_call;

/* What whoever runs a verb can do for it while it runs. */
struct control_call_ops {
	/* One line, with its newline, to the client; -ECONNRESET: it is gone.
	 */
	int (*send)(struct control_call *call, const char *line, size_t len);
	/* See control_wait(). */
	int (*wait)(struct control_call *call, int fd, int timeout_ms);
};

/* A request under way; made by who dispatches, given to the verb. */
struct control_call {
	const struct control_call_ops *ops;
	char *result; /* JSON text */
	char why[CONTROL_WHY_LEN];
};

struct control_verb {
	const char *name;
	/*
	 * Do it: 0 after control_result(), or control_fail(). May take long,
	 * and run on several threads at once. args is an object, borrowed.
	 */
	int (*run)(void *arg, struct control_call *call, const json_t *args);
};

/* ---- for verbs ---- */

/* Takes value over. 0, or -ENOMEM: also if value is NULL. */
int control_result(struct control_call *call, json_t *value);
/* The same with text of a JSON value, from malloc(), taken over. */
int control_result_text(struct control_call *call, char *text);
/* The sentence for the user; err is returned. */
int control_fail(struct control_call *call, int err, const char *fmt, ...)
	ug_printf(3, 4);
/* A sentence for the user before the answer. */
void control_note(struct control_call *call, const char *fmt, ...)
	ug_printf(2, 3);
/*
 * A piece of an answer that is a text. Waits for a client that is slow: with
 * nothing held that others may want. 0; -ECONNRESET: nobody reads it any more;
 * -ENOMEM.
 */
int control_text(struct control_call *call, const char *text, size_t len);
/*
 * Until fd is readable (0), the time is up (-ETIMEDOUT; below 0: never), the
 * client is gone (-ECONNRESET) or the process is to end (-ESHUTDOWN).
 */
int control_wait(struct control_call *call, int fd, int timeout_ms);
/*
 * The arguments, by json_unpack()'s format; -EINVAL with a sentence that names
 * what is missing, of another type, or not known.
 */
int control_args(struct control_call *call, const json_t *args, const char *fmt,
		 ...);

/* ---- for who dispatches ---- */

/*
 * Answer one request of len bytes, without its newline: a line with its
 * newline, from malloc(). NULL: no memory. The table ends with a NULL name.
 */
char *control_dispatch(const struct control_verb *verbs, void *arg,
		       struct control_call *call, const char *text, size_t len);

/* An answer that is an error; as control_dispatch(). */
char *control_error(int err, const char *text);

/* ---- for clients ---- */

/* A request line; args is taken over, NULL: none. NULL: no memory. */
char *control_request(const char *verb, json_t *args);

enum control_answer {
	CONTROL_NOTE,	/* *value: the sentence */
	CONTROL_TEXT,	/* *value: the piece */
	CONTROL_RESULT, /* *value: the result */
	CONTROL_ERROR,	/* why and *err */
};

/*
 * Read an answer. -EBADMSG with a sentence in why: not an answer, or one of
 * another major version.
 */
int control_parse_answer(const char *text, size_t len,
			 enum control_answer *kind, json_t **value, int *err,
			 char *why, size_t why_len);

#endif
