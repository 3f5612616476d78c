/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * fenceagent.c - see fenceagent.h.
 */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/pidfd.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/log.h"
#include "cluster/clock.h"
#include "cluster/fenceagent.h"

#define PARAMETERS_MAX 1536 /* less than a pipe takes at once */

/* In the child: nothing of the supervisor's but the two pipes. */
__attribute__((noreturn)) static void run(const char *command, int input,
					  int output)
{
	char *argv[] = { "sh", "-c", (char *)command, NULL };
	sigset_t none;

	setsid();
	prctl(PR_SET_PDEATHSIG, SIGKILL); /* another one takes over then */
	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
	for (int sig = 1; sig < NSIG; sig++)
		signal(sig, SIG_DFL);
	if (dup2(input, STDIN_FILENO) < 0 || dup2(output, STDOUT_FILENO) < 0 ||
	    dup2(output, STDERR_FILENO) < 0)
		_exit(126);
	close_range(STDERR_FILENO + 1, ~0u, 0);
	execv("/bin/sh", argv);
	_exit(127);
}

/* A pipe with the parameters in it, for the child to read to its end. */
static int make_input(const struct fence_order *order)
{
	char text[PARAMETERS_MAX];
	int fds[2], n, err = 0;

	n = snprintf(text, sizeof(text),
		     "action=%s\nport=%s\nplug=%s\nnodename=%s\nnodeid=%u\n",
		     order->action, order->name, order->name, order->name,
		     order->node);
	if (n < 0 || (size_t)n >= sizeof(text))
		return -ENAMETOOLONG;
	if (pipe2(fds, O_CLOEXEC))
		return -errno;
	if (write(fds[1], text, (size_t)n) != n)
		err = -EIO;
	close(fds[1]);
	if (!err)
		return fds[0];
	close(fds[0]);
	return err;
}

static int start_child(struct fence_agent *a, const char *command, int input,
		       int output)
{
	a->pid = fork();
	if (a->pid < 0)
		return -errno;
	if (a->pid == 0)
		run(command, input, output);
	a->pidfd = pidfd_open(a->pid, 0);
	if (a->pidfd >= 0)
		return 0;
	kill(a->pid, SIGKILL);
	waitpid(a->pid, NULL, 0);
	return -EMFILE;
}

int fence_agent_start(struct fence_agent *a, const struct fence_order *order,
		      uint64_t run_max_ns)
{
	int input, output[2], err;

	*a = (struct fence_agent){ .node = order->node, .pidfd = -1 };
	a->end_ns = clock_now_ns() + run_max_ns;
	input = make_input(order);
	if (input < 0)
		return input;
	if (pipe2(output, O_CLOEXEC | O_NONBLOCK)) {
		err = -errno;
		goto close_input;
	}
	a->output = output[0];
	/* O_NONBLOCK is of each end; programs do not expect it. */
	fcntl(output[1], F_SETFL, 0);
	err = start_child(a, order->command, input, output[1]);
	close(output[1]);
	if (err)
		close(output[0]);
close_input:
	close(input);
	return err;
}

static void log_line(struct fence_agent *a)
{
	a->line[a->used] = '\0';
	if (a->used)
		ug_info("fence", "node %u: %s", a->node, a->line);
	a->used = 0;
}

/* It may go on without: an end of file would wake the caller for ever. */
static void close_output(struct fence_agent *a)
{
	if (a->output >= 0)
		close(a->output);
	a->output = -1;
}

void fence_agent_read(struct fence_agent *a)
{
	char buf[512];
	ssize_t n;

	if (a->output < 0)
		return;
	while ((n = read(a->output, buf, sizeof(buf))) > 0) {
		for (ssize_t i = 0; i < n; i++) {
			if (buf[i] == '\n' || a->used == sizeof(a->line) - 1)
				log_line(a);
			if (buf[i] != '\n')
				a->line[a->used++] = buf[i];
		}
	}
	if (n == 0 || errno != EAGAIN)
		close_output(a);
}

void fence_agent_kill(struct fence_agent *a, enum fence_end why)
{
	if (a->killed)
		return;
	a->killed = true;
	a->why = why;
	a->end_ns = UINT64_MAX;
	kill(-a->pid, SIGKILL);
	kill(a->pid, SIGKILL); /* it may not have come to setsid() yet */
}

bool fence_agent_ended(struct fence_agent *a, int *status)
{
	int wait_status;

	if (waitpid(a->pid, &wait_status, WNOHANG) != a->pid)
		return false;
	fence_agent_read(a);
	log_line(a);
	close_output(a);
	close(a->pidfd);
	a->pidfd = -1;
	if (a->killed)
		*status = a->why;
	else if (WIFEXITED(wait_status))
		*status = WEXITSTATUS(wait_status);
	else
		*status = FENCE_END_KILLED;
	return true;
}

void fence_end_text(int status, char *buf, size_t len)
{
	switch (status) {
	case FENCE_END_KILLED:
		snprintf(buf, len, "was killed");
		break;
	case FENCE_END_TIMEOUT:
		snprintf(buf, len, "ran for too long");
		break;
	case FENCE_END_NOT_RUN:
		snprintf(buf, len, "could not be run");
		break;
	case FENCE_END_IN_RING:
		snprintf(buf, len,
			 "said that the host was off, but it was not");
		break;
	case FENCE_END_NO_QUORUM:
		snprintf(buf, len, "was stopped for want of quorum");
		break;
	default:
		snprintf(buf, len, "ended with status %d", status);
		break;
	}
}
