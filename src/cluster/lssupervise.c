/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * lssupervise.c - a program splits into itself and its supervisor.
 *
 * The parent stays behind: it is what a shell or a service manager waits for
 * and sends signals to. So it hands SIGTERM, SIGINT and SIGHUP on, and ends as
 * the child has ended. After that such a signal means the parent itself.
 *
 * It keeps no descriptor but the standard ones, and one that it was told to:
 * whoever reads a pipe of the child must see its end when the child ends.
 */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/pidfd.h>
#include <sys/wait.h>
#include <syslog.h>
#include <unistd.h>

#include "base/compiler.h"
#include "base/log.h"
#include "cluster/asked.h"
#include "cluster/supervisor.h"
#include "ugfs/ugdlm.h"

static const int signals[] = { SIGTERM, SIGINT, SIGHUP };
static int child_fd;
static volatile sig_atomic_t hurry;

/* By its descriptor: the number of one that was reaped may be another's. */
static void hand_on(int signo)
{
	int saved = errno;

	if (pidfd_send_signal(child_fd, signo, NULL, 0) && errno == ESRCH)
		hurry = 1;
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

/* The log would go on with a number that is soon something else's. */
static void close_inherited(int keep_fd)
{
	unsigned first = STDERR_FILENO + 1;

	closelog();
	if (keep_fd > STDERR_FILENO) {
		if ((unsigned)keep_fd > first)
			close_range(first, (unsigned)keep_fd - 1, 0);
		first = (unsigned)keep_fd + 1;
	}
	close_range(first, ~0u, 0);
}

/* Nothing is waited for any more that others depend on: a signal ends it. */
static void stay(const struct ugdlm_supervise *config)
{
	for (unsigned i = 0; i < UG_ARRAY_SIZE(signals); i++)
		signal(signals[i], SIG_DFL);
	if (config->last)
		config->last(config->arg);
}

static ug_noreturn void supervise(const struct supervisor_config *sup,
				  const struct ugdlm_supervise *config)
{
	int status, err = supervisor_run(sup, &status);

	if (err) {
		ug_error("supervisor", "process %d cannot be watched: %s",
			 (int)sup->child, strerror(-err));
		_exit(EXIT_FAILURE);
	}
	stay(config);
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
		.ended = config->ended,
		.arg = config->arg,
	};
	const char *action = config->fence_action;
	sigset_t before;
	pid_t pid;
	int err;

	if (action && strcmp(action, "off") != 0 &&
	    strcmp(action, "reboot") != 0)
		return -EINVAL;
	err = asked_share();
	if (err)
		return err;
	fflush(NULL);
	/* A signal between fork and handler would end the parent alone. */
	mask(SIG_BLOCK, &before);
	pid = fork();
	if (pid < 0) {
		err = -errno;
		sigprocmask(SIG_SETMASK, &before, NULL);
		return err;
	}
	if (pid > 0) {
		close_inherited(config->keep_fd);
		sup.child = pid;
		sup.hurry = &hurry;
		child_fd = pidfd_open(pid, 0);
		catch_signals();
		sigprocmask(SIG_SETMASK, &before, NULL);
		supervise(&sup, config);
	}
	sigprocmask(SIG_SETMASK, &before, NULL);
	return 0;
}
