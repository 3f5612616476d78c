/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * dlm_process.c - see dlm_process.h. Three kinds of threads: the main thread
 * joins, dispatches callbacks and leaves; one takes signals, since joining can
 * last; those of the control socket call into the lockspace from the moment it
 * is there until the main thread takes it away.
 */
#include <errno.h>
#include <jansson.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <time.h>
#include <unistd.h>

#include "base/log.h"
#include "daemon/control_server.h"
#include "daemon/dlm_process.h"
#include "daemon/dlm_verbs.h"
#include "daemon/exitcode.h"
#include "daemon/isolate.h"
#include "daemon/report.h"

/* From when on the user hears what is waited for, and how often it is asked. */
#define PATIENCE_MS 2000

struct process {
	const struct dlm_request *req;
	int report_fd; /* -1: the command has been told */
	struct dlm_server server;
	struct control_server *control;
	pthread_t signals;
	bool joining; /* under server.lock */
	bool running;
	bool lost;
	char lost_why[512];
	char last_wait[512];
};

static uint64_t now_ms(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * 1000 + (uint64_t)ts.tv_nsec / 1000000;
}

/* Events of the lockspace, on the main thread */

static void on_running(void *arg, uint32_t generation,
		       const struct ugdlm_member *self)
{
	struct process *p = arg;

	p->running = true;
}

static void on_lost(void *arg, const char *why)
{
	struct process *p = arg;

	p->lost = true;
	snprintf(p->lost_why, sizeof(p->lost_why), "%s", why);
}

static const struct ugdlm_events events = {
	.running = on_running,
	.lost = on_lost,
};

/* Signals */

static void tell_failed(struct process *p, enum exit_code code, const char *why)
{
	if (p->report_fd >= 0)
		report_failed(p->report_fd, code, "%s", why);
	else
		ug_error(p->req->name, "%s", why);
}

static void *signals_main(void *arg)
{
	struct timespec patience = { PATIENCE_MS / 1000, 0 };
	struct process *p = arg;
	bool joining;
	sigset_t set;
	int signo;

	pthread_setname_np(pthread_self(), "signals");
	sigemptyset(&set);
	sigaddset(&set, SIGTERM);
	sigaddset(&set, SIGINT);
	signo = sigtimedwait(&set, NULL, &patience);
	while (true) {
		pthread_mutex_lock(&p->server.lock);
		joining = p->joining;
		if (signo < 0 && joining && p->report_fd >= 0)
			report_note(p->report_fd,
				    "%s: waiting to be admitted: the cluster "
				    "has no quorum, or its members are "
				    "changing (\"ugfs dlm status\" tells on "
				    "a node that is one)",
				    p->req->name);
		pthread_mutex_unlock(&p->server.lock);
		if (signo > 0)
			dlm_server_quit(&p->server);
		signo = sigwaitinfo(&set, NULL);
	}
	return NULL;
}

static int start_signals(struct process *p)
{
	sigset_t set;

	sigemptyset(&set);
	sigaddset(&set, SIGTERM);
	sigaddset(&set, SIGINT);
	sigaddset(&set, SIGHUP);
	pthread_sigmask(SIG_BLOCK, &set, NULL);
	return -pthread_create(&p->signals, NULL, signals_main, p);
}

/* Up */

static int start(struct process *p, char *why, size_t why_len)
{
	struct control_server_config config = {
		.dir = CONTROL_DIR,
		.kind = DLM_KIND,
		.name = p->req->name,
		.verbs = dlm_verbs,
		.arg = &p->server,
	};
	int err = dlm_server_init(&p->server, p->req->name);

	if (!err)
		err = start_signals(p);
	if (err) {
		snprintf(why, why_len, "%s: %s", p->req->name, strerror(-err));
		return err;
	}
	return control_server_start(&config, &p->control, why, why_len);
}

static bool is_quitting(void *arg)
{
	struct process *p = arg;

	return dlm_server_is_quitting(&p->server);
}

static int join(struct process *p, char *why, size_t why_len)
{
	struct ugdlm_config config = p->req->opt.config;
	struct ugdlm *ls = NULL;
	int err;

	config.name = p->req->name;
	config.events = &events;
	config.arg = p;
	config.interrupted = is_quitting;
	err = ugdlm_join(&config, p->req->timeout_ms, &ls, why, why_len);
	pthread_mutex_lock(&p->server.lock);
	p->joining = false;
	pthread_mutex_unlock(&p->server.lock);
	if (!err)
		dlm_server_set(&p->server, ls);
	return err;
}

/* What is waited for, as one sentence. */
static void waits_text(struct process *p, char *buf, size_t len)
{
	char *text = NULL;
	json_t *root, *wait;
	size_t i, used = 0;

	snprintf(buf, len, "members agree on the lockspace");
	if (ugdlm_status_json(p->server.ls, &text))
		return;
	root = json_loads(text, 0, NULL);
	json_array_foreach(json_object_get(root, "waiting_for"), i, wait)
	{
		const char *words =
			json_string_value(json_object_get(wait, "text"));

		if (words && used < len)
			used += (size_t)snprintf(buf + used, len - used, "%s%s",
						 used ? "; " : "", words);
	}
	json_decref(root);
	free(text);
}

static void tell_waits(struct process *p)
{
	char text[sizeof(p->last_wait)];

	waits_text(p, text, sizeof(text));
	if (!strcmp(text, p->last_wait))
		return;
	strcpy(p->last_wait, text);
	report_note(p->report_fd, "%s: waiting: %s", p->req->name, text);
}

/* Callbacks for at most ms, or until told to end. */
static void dispatch(struct process *p, int ms)
{
	struct pollfd fds[] = { { ugdlm_fd(p->server.ls), POLLIN, 0 },
				{ p->server.quit_fd, POLLIN, 0 } };

	if (poll(fds, 2, ms) > 0 && fds[0].revents)
		ugdlm_dispatch(p->server.ls, 256);
}

/* Until locks are granted. EXIT_OK, or it has been told why not. */
static int await_running(struct process *p, uint64_t begin)
{
	uint64_t end =
		p->req->timeout_ms ? begin + p->req->timeout_ms : UINT64_MAX;
	uint64_t tell = now_ms() + PATIENCE_MS;
	char why[1024];

	while (!p->running && !p->lost) {
		if (dlm_server_is_quitting(&p->server)) {
			tell_failed(p, EXIT_INTERRUPTED, "told to end");
			return EXIT_INTERRUPTED;
		}
		if (now_ms() >= end) {
			waits_text(p, p->last_wait, sizeof(p->last_wait));
			snprintf(why, sizeof(why),
				 "%s: locks are not granted yet: %s",
				 p->req->name, p->last_wait);
			tell_failed(p, EXIT_MOUNT, why);
			return EXIT_MOUNT;
		}
		if (now_ms() >= tell)
			tell_waits(p);
		dispatch(p, 100);
	}
	if (!p->lost)
		return EXIT_OK;
	snprintf(why, sizeof(why), "%s: %s", p->req->name, p->lost_why);
	tell_failed(p, EXIT_MOUNT, why);
	return EXIT_MOUNT;
}

static void serve(struct process *p)
{
	report_ready(p->report_fd);
	pthread_mutex_lock(&p->server.lock);
	close(p->report_fd);
	p->report_fd = -1;
	pthread_mutex_unlock(&p->server.lock);
	ug_info(p->req->name, "lock process: joined");
	while (!p->lost && !dlm_server_is_quitting(&p->server))
		dispatch(p, -1);
}

/* Down */

static int leave(struct process *p)
{
	struct ugdlm *ls = p->server.ls;
	int err;

	dlm_server_set(&p->server, NULL);
	err = ugdlm_leave(ls, false);
	dlm_server_left(&p->server, err);
	if (p->lost) {
		ug_error(p->req->name, "lock process: lost: %s", p->lost_why);
		return EXIT_INTERNAL;
	}
	if (err) {
		ug_error(p->req->name, "lock process: could not leave: %s",
			 strerror(-err));
		return EXIT_INTERNAL;
	}
	ug_info(p->req->name, "lock process: left");
	return EXIT_OK;
}

static int live(struct process *p)
{
	uint64_t begin = now_ms();
	char why[1024];
	int left, code, err = start(p, why, sizeof(why));

	if (!err)
		err = join(p, why, sizeof(why));
	if (err) {
		code = err == -ENOMEM  ? EXIT_SYSTEM
		       : err == -EINTR ? EXIT_INTERRUPTED
				       : EXIT_MOUNT;
		tell_failed(p, code, why);
		control_server_stop(p->control);
		return code;
	}
	code = await_running(p, begin);
	if (!code)
		serve(p);
	left = leave(p);
	control_server_stop(p->control);
	dlm_server_free(&p->server);
	return code ? code : left;
}

int dlm_process(const struct dlm_request *req, int report_fd)
{
	static struct process p;
	int err = isolate_process(req->foreground, req->log_path, report_fd);

	p.req = req;
	p.report_fd = report_fd;
	p.joining = true;
	if (err) {
		report_failed(report_fd, EXIT_SYSTEM, "%s: %s",
			      req->log_path ? req->log_path : "/dev/null",
			      strerror(-err));
		return EXIT_SYSTEM;
	}
	isolate_memory(req->name);
	err = ugdlm_supervise(&req->opt.supervise);
	if (err) {
		report_failed(report_fd, EXIT_SYSTEM, "supervisor: %s",
			      strerror(-err));
		return EXIT_SYSTEM;
	}
	return live(&p);
}
