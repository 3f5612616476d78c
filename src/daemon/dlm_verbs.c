/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * dlm_verbs.c - see dlm_verbs.h.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <signal.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "base/log.h"
#include "daemon/dlm_verbs.h"

int dlm_server_init(struct dlm_server *server, const char *name)
{
	memset(server, 0, sizeof(*server));
	server->name = name;
	server->quit_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	server->left_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (server->quit_fd < 0 || server->left_fd < 0)
		return -errno;
	server->hand = hand_new();
	if (!server->hand)
		return -ENOMEM;
	pthread_rwlock_init(&server->ls_lock, NULL);
	pthread_mutex_init(&server->lock, NULL);
	return 0;
}

void dlm_server_free(struct dlm_server *server)
{
	hand_free(server->hand);
	server->hand = NULL;
}

void dlm_server_set(struct dlm_server *server, struct ugdlm *ls)
{
	pthread_rwlock_wrlock(&server->ls_lock);
	server->ls = ls;
	pthread_rwlock_unlock(&server->ls_lock);
	hand_set_lockspace(server->hand, ls);
}

static void signal_fd(int fd)
{
	if (eventfd_write(fd, 1))
		ug_error("control", "eventfd: %s", strerror(errno));
}

void dlm_server_quit(struct dlm_server *server)
{
	pthread_mutex_lock(&server->lock);
	server->quitting = true;
	pthread_mutex_unlock(&server->lock);
	signal_fd(server->quit_fd);
}

bool dlm_server_is_quitting(struct dlm_server *server)
{
	bool quitting;

	pthread_mutex_lock(&server->lock);
	quitting = server->quitting;
	pthread_mutex_unlock(&server->lock);
	return quitting;
}

void dlm_server_left(struct dlm_server *server, int err)
{
	pthread_mutex_lock(&server->lock);
	server->left_err = err;
	pthread_mutex_unlock(&server->lock);
	signal_fd(server->left_fd);
}

/* Reading */

/* One of ugdlm.h's functions that look inside. */
static int look(struct dlm_server *server, struct control_call *call,
		int (*function)(struct ugdlm *ls, char **text), char **text)
{
	int err = -EAGAIN;

	pthread_rwlock_rdlock(&server->ls_lock);
	if (server->ls)
		err = function(server->ls, text);
	pthread_rwlock_unlock(&server->ls_lock);
	if (err == -EAGAIN)
		return control_fail(call, err, "%s is being joined or left",
				    server->name);
	return err ? control_fail(call, err, "%s", strerror(-err)) : 0;
}

static int run_status(void *arg, struct control_call *call, const json_t *args)
{
	struct dlm_server *server = arg;
	json_t *root = NULL;
	char *text = NULL;
	int err = control_args(call, args, "{}");

	if (err)
		return err;
	err = look(server, call, ugdlm_status_json, &text);
	if (err == -EAGAIN)
		root = json_pack(
			"{s:s,s:s}", "lockspace", server->name, "state",
			dlm_server_is_quitting(server) ? "leaving" : "joining");
	else if (err)
		return err;
	else
		root = json_loads(text, 0, NULL);
	free(text);
	json_object_set_new(root, "pid", json_integer(getpid()));
	json_object_set_new(root, "version", json_string(UGFS_VERSION));
	json_object_set_new(root, "held_by_hand", hand_json(server->hand));
	return control_result(call, root);
}

static int run_lockdump(void *arg, struct control_call *call,
			const json_t *args)
{
	char *text = NULL;
	int err = control_args(call, args, "{}");

	if (!err)
		err = look(arg, call, ugdlm_locks_json, &text);
	return err ? err : control_result_text(call, text);
}

static int run_dump(void *arg, struct control_call *call, const json_t *args)
{
	char *text = NULL;
	json_t *string;
	int err = control_args(call, args, "{}");

	if (!err)
		err = look(arg, call, ugdlm_trace_text, &text);
	if (err)
		return err;
	string = json_string(text);
	free(text);
	return control_result(call, string);
}

/* Doing */

static int run_fence_ack(void *arg, struct control_call *call,
			 const json_t *args)
{
	struct dlm_server *server = arg;
	const char *node;
	int err = control_args(call, args, "{s:s}", "node", &node);

	if (err)
		return err;
	err = -EAGAIN;
	pthread_rwlock_rdlock(&server->ls_lock);
	if (server->ls)
		err = ugdlm_fence_ack(server->ls, node);
	pthread_rwlock_unlock(&server->ls_lock);
	if (err == -ENOENT)
		return control_fail(call, err,
				    "corosync is configured with no node "
				    "\"%s\"",
				    node);
	if (err == -EBUSY)
		return control_fail(call, err,
				    "%s is this host, which is not down", node);
	if (err)
		return control_fail(call, err, "%s", strerror(-err));
	return control_result(call, json_pack("{s:s}", "acknowledged", node));
}

static int run_lock(void *arg, struct control_call *call, const json_t *args)
{
	struct dlm_server *server = arg;

	return hand_lock(server->hand, call, args);
}

static int run_unlock(void *arg, struct control_call *call, const json_t *args)
{
	struct dlm_server *server = arg;

	return hand_unlock(server->hand, call, args);
}

/* Answered when it has left; the end of the process is seen by the client. */
static int run_leave(void *arg, struct control_call *call, const json_t *args)
{
	struct dlm_server *server = arg;
	int force = 0, err;
	unsigned count;
	bool joined;

	err = control_args(call, args, "{s?b}", "force", &force);
	if (err)
		return err;
	count = hand_count(server->hand);
	if (count && !force)
		return control_fail(call, -EBUSY,
				    "%u lock%s held by hand: unlock %s, or "
				    "say --force",
				    count, count == 1 ? " is" : "s are",
				    count == 1 ? "it" : "them");
	pthread_rwlock_rdlock(&server->ls_lock);
	joined = server->ls;
	pthread_rwlock_unlock(&server->ls_lock);
	if (!joined && !dlm_server_is_quitting(server)) {
		/* As if by a signal: joining ends, and the process with it. */
		kill(getpid(), SIGTERM);
		return control_result(call, json_pack("{s:b}", "left", 1));
	}
	dlm_server_quit(server);
	err = control_wait(call, server->left_fd, -1);
	if (err)
		return control_fail(call, err, "%s", strerror(-err));
	pthread_mutex_lock(&server->lock);
	err = server->left_err;
	pthread_mutex_unlock(&server->lock);
	if (err)
		return control_fail(call, err,
				    "the others could not be told that %s is "
				    "left; to them its process has died",
				    server->name);
	return control_result(call, json_pack("{s:b}", "left", 1));
}

const struct control_verb dlm_verbs[] = {
	{ "status", run_status }, { "lockdump", run_lockdump },
	{ "dump", run_dump },	  { "fence_ack", run_fence_ack },
	{ "lock", run_lock },	  { "unlock", run_unlock },
	{ "leave", run_leave },	  { NULL, NULL },
};
