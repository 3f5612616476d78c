/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * lssupervise.c - a program splits into itself and its supervisor.
 *
 * The parent stays behind: it is what a shell or a service manager waits for
 * and sends signals to. So it hands SIGTERM, SIGINT and SIGHUP on, and ends as
 * the child has ended.
 */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/compiler.h"
#include "base/log.h"
#include "cluster/supervisor.h"
#include "ugfs/ugdlm.h"

static const int signals[] = { SIGTERM, SIGINT, SIGHUP };
static volatile sig_atomic_t child_pid;

static void hand_on(int signo)
{
	int saved = errno;

	if (child_pid > 0)
		kill((pid_t)child_pid, signo);
	errno = saved;
}

static void mask(int how, sigset_t *old)
{
	sigset_t set;

	sigemptyset(&set);
	for (unsigned i = 0; i < UG_ARRAY_SIZE(signals); i++)
		sigaddset(&set, signals[i]);
	sigprocmask(how, &set, old);
}

/* A signal of a terminal goes to the child by itself; twice does no harm. */
static void catch_signals(void)
{
	struct sigaction action = { .sa_handler = hand_on,
				    .sa_flags = SA_RESTART };

	sigemptyset(&action.sa_mask);
	for (unsigned i = 0; i < UG_ARRAY_SIZE(signals); i++)
		sigaction(signals[i], &action, NULL);
}

static ug_noreturn void supervise(const struct supervisor_config *config)
{
	int status, err = supervisor_run(config, &status);

	if (err) {
		ug_error("supervisor", "process %d cannot be watched: %s",
			 (int)config->child, strerror(-err));
		_exit(EXIT_FAILURE);
	}
	_exit(WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status));
}

int ugdlm_supervise(const struct ugdlm_supervise *config)
{
	struct supervisor_config sup = {
		.fence = config->fence,
		.fence_action = config->fence_action,
		.kill_timeout_ms = config->kill_timeout_ms,
		.fence_delay_ms = config->fence_delay_ms,
		.fence_timeout_ms = config->fence_timeout_ms,
	};
	const char *action = config->fence_action;
	sigset_t before;
	pid_t pid;

	if (action && strcmp(action, "off") != 0 &&
	    strcmp(action, "reboot") != 0)
		return -EINVAL;
	fflush(NULL);
	/* A signal between fork and handler would end the parent alone. */
	mask(SIG_BLOCK, &before);
	pid = fork();
	if (pid < 0) {
		pid = -errno;
		sigprocmask(SIG_SETMASK, &before, NULL);
		return (int)pid;
	}
	if (pid > 0) {
		sup.child = pid;
		child_pid = pid;
		catch_signals();
		sigprocmask(SIG_SETMASK, &before, NULL);
		supervise(&sup);
	}
	sigprocmask(SIG_SETMASK, &before, NULL);
	return 0;
}
