/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * dlm_join.c - the command that starts a lock process (dlm_process.h). As with
 * a mount, it forks before anything is opened and waits for the outcome.
 */
#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/compiler.h"
#include "daemon/control_client.h"
#include "daemon/dlm_cmd.h"
#include "daemon/dlm_process.h"
#include "daemon/exitcode.h"
#include "daemon/report.h"

#define VERB "join"
#define TIMEOUT_MAX_SEC 86400

static void usage(FILE *out)
{
	fputs("usage: ugfs dlm join [-f] [-o OPTIONS] [-t SECONDS] [-L FILE] "
	      "CLUSTER:NAME\n"
	      "\n"
	      "Join a lockspace, with a process of its own that holds the "
	      "locks that\n"
	      "are taken by hand. Returns when locks are granted, or says what "
	      "is\n"
	      "wrong; meanwhile it says what is waited for.\n"
	      "\n"
	      "  -f, --foreground    stay, and log to standard error\n"
	      "  -o, --options LIST  options, separated by commas\n"
	      "  -t, --timeout SEC   give up when no lock is granted by then\n"
	      "  -L, --log FILE      add log lines to FILE, not to syslog\n"
	      "  -h, --help          this text\n"
	      "\n"
	      "Options:\n"
	      "\n"
	      "  key_file=FILE       the cluster's secret; no default\n"
	      "  ports=FIRST-LAST    where to listen (21064-21191)\n"
	      "  member_timeout=SEC  a member that is silent for so long is\n"
	      "                      expelled (10)\n"
	      "  toss=SEC            how long idle resources are kept (10)\n"
	      "  trace_all           trace decisions in normal running too\n"
	      "  fence=HOW           none (default), manual, or a command; "
	      "the\n"
	      "                      rest of LIST, commas too, belongs to it\n"
	      "  fence_action=WHAT   off (default) or reboot\n"
	      "  fence_timeout=SEC   of one run of the command (60)\n"
	      "  fence_delay=SEC     of the higher one of two nodes (2)\n"
	      "  kill_timeout=SEC    for a host to prove a death, before it "
	      "is\n"
	      "                      fenced (5)\n"
	      "\n"
	      "Exit status: 0 joined, 1 wrong usage or no permission, 2 "
	      "system\n"
	      "error, 4 the lock process died, 8 interrupted, 32 not joined.\n",
	      out);
}

static int add_options(struct dlm_request *req, const char *text)
{
	char why[512];
	int err = dlm_options_parse(&req->opt, text, why, sizeof(why));

	if (!err)
		return EXIT_OK;
	return dlm_say(VERB, err == -ENOMEM ? EXIT_SYSTEM : EXIT_USAGE, "%s",
		       why);
}

static int set_timeout(struct dlm_request *req, const char *text)
{
	if (dlm_parse_seconds(text, 0.1, TIMEOUT_MAX_SEC, &req->timeout_ms))
		return EXIT_OK;
	return dlm_say(VERB, EXIT_USAGE,
		       "timeout: expected seconds from 0.1 to %d, not \"%s\"",
		       TIMEOUT_MAX_SEC, text);
}

static int parse(struct dlm_request *req, int argc, char **argv, bool *done)
{
	static const struct option long_options[] = {
		{ "foreground", no_argument, NULL, 'f' },
		{ "options", required_argument, NULL, 'o' },
		{ "timeout", required_argument, NULL, 't' },
		{ "log", required_argument, NULL, 'L' },
		{ "help", no_argument, NULL, 'h' },
		{ 0 },
	};
	int c, code = EXIT_OK;

	while (!code && (c = getopt_long(argc, argv, "fo:t:L:h", long_options,
					 NULL)) != -1) {
		switch (c) {
		case 'f':
			req->foreground = true;
			break;
		case 'o':
			code = add_options(req, optarg);
			break;
		case 't':
			code = set_timeout(req, optarg);
			break;
		case 'L':
			req->log_path = optarg;
			break;
		case 'h':
			usage(stdout);
			*done = true;
			return EXIT_OK;
		default:
			usage(stderr);
			return EXIT_USAGE;
		}
	}
	if (!code && argc - optind != 1) {
		usage(stderr);
		return EXIT_USAGE;
	}
	req->name = argv[optind];
	return code;
}

static int system_error(const char *what)
{
	return dlm_say(VERB, EXIT_SYSTEM, "%s: %s", what, strerror(errno));
}

static int wait_as(const struct dlm_request *req, int fd, pid_t pid,
		   bool is_child)
{
	const struct report_wait rw = {
		.fd = fd,
		.pid = pid,
		.is_child = is_child,
		.what = "lock process",
	};
	int code = report_wait(&rw);

	if (code == EXIT_OK)
		printf("%s: joined\n", req->name);
	fflush(stdout);
	return code;
}

static int start(const struct dlm_request *req)
{
	int pipe_fds[2];
	pid_t pid, self = getpid();

	if (pipe2(pipe_fds, O_CLOEXEC))
		return system_error("pipe");
	fflush(NULL);
	pid = fork();
	if (pid < 0)
		return system_error("fork");
	/* In the foreground this process stays, and the child tells. */
	if (!pid && req->foreground) {
		close(pipe_fds[1]);
		_exit(wait_as(req, pipe_fds[0], self, false));
	}
	if (!pid || req->foreground) {
		int code;

		close(pipe_fds[0]);
		code = dlm_process(req, pipe_fds[1]);
		if (!pid)
			_exit(code);
		return code;
	}
	close(pipe_fds[1]);
	return wait_as(req, pipe_fds[0], pid, true);
}

static int check(const struct dlm_request *req)
{
	const char *colon = strchr(req->name, ':');
	struct control_peers peers;
	int code = EXIT_OK;

	if (!colon || colon == req->name || !colon[1] || strchr(colon + 1, ':'))
		return dlm_say(
			VERB, EXIT_USAGE,
			"\"%s\" is not the name of a lockspace: expected "
			"CLUSTER:NAME",
			req->name);
	if (strlen(req->name) > DLM_NAME_BYTES_MAX)
		return dlm_say(VERB, EXIT_USAGE,
			       "the name has %zu bytes: expected at most %u",
			       strlen(req->name), DLM_NAME_BYTES_MAX);
	if (geteuid() != 0)
		return dlm_say(VERB, EXIT_USAGE,
			       "only root can join a lockspace");
	if (control_find(CONTROL_DIR, DLM_KIND, req->name, &peers))
		return EXIT_OK;
	if (peers.count)
		code = dlm_say(VERB, EXIT_MOUNT,
			       "%s is joined already, by process %d", req->name,
			       peers.peer[0].pid);
	control_peers_free(&peers);
	return code;
}

/* It leaves this directory. */
static int full_path(const char **path, char *buf)
{
	ug_autofree char *cwd = NULL;

	if (!*path || **path == '/')
		return EXIT_OK;
	cwd = getcwd(NULL, 0);
	if (!cwd || snprintf(buf, PATH_MAX, "%s/%s", cwd, *path) >= PATH_MAX)
		return dlm_say(VERB, EXIT_SYSTEM, "%s: %s", *path,
			       cwd ? strerror(ENAMETOOLONG) : strerror(errno));
	*path = buf;
	return EXIT_OK;
}

int dlm_join_main(int argc, char **argv)
{
	char log_path[PATH_MAX], key_path[PATH_MAX];
	struct dlm_request req = { 0 };
	const char *key = NULL;
	bool done = false;
	int code = parse(&req, argc, argv, &done);

	if (!code && !done)
		code = check(&req);
	if (!code && !done)
		code = full_path(&req.log_path, log_path);
	if (!code && !done && req.opt.config.key_file) {
		key = req.opt.config.key_file;
		code = full_path(&key, key_path);
		if (!code && key == key_path) {
			free((char *)req.opt.config.key_file);
			req.opt.config.key_file = strdup(key_path);
			if (!req.opt.config.key_file)
				code = system_error("key_file");
		}
	}
	if (!code && !done)
		code = start(&req);
	dlm_options_free(&req.opt);
	return code;
}
