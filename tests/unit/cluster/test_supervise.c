/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * test_supervise.c - a program and its supervisor where no corosync answers:
 * who waits for the two is not kept waiting.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <cmocka.h>

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "cluster/asked.h"
#include "ugfs/ugdlm.h"

#define WAIT_MS 20000
#define STATUS 3

/* The supervisor's pid; *end: a pipe whose other end only the two had. */
static pid_t start(bool asks, bool admitted, int *end)
{
	const struct ugdlm_supervise config = { 0 };
	int fds[2];
	pid_t pid;

	assert_int_equal(pipe2(fds, O_CLOEXEC), 0);
	pid = fork();
	assert_true(pid >= 0);
	if (!pid) {
		close(fds[0]);
		if (ugdlm_supervise(&config))
			_exit(EXIT_FAILURE);
		if (asks)
			asked_note();
		if (admitted)
			asked_note_admitted();
		_exit(STATUS);
	}
	close(fds[1]);
	*end = fds[0];
	return pid;
}

static bool has_ended(pid_t pid, int signo, int *status)
{
	static const struct timespec pause = { .tv_nsec = 5000000 };

	for (unsigned i = 0; i < WAIT_MS / 5; i++) {
		if (waitpid(pid, status, WNOHANG) == pid)
			return true;
		kill(pid, signo); /* 0 does nothing */
		nanosleep(&pause, NULL);
	}
	kill(pid, SIGKILL);
	waitpid(pid, status, 0);
	return false;
}

/* Nobody has ever heard of it, so that nobody has to hear of its end. */
static void test_never_asked(void **state)
{
	int end, status;
	pid_t pid = start(false, false, &end);

	assert_true(has_ended(pid, 0, &status));
	assert_true(WIFEXITED(status));
	assert_int_equal(WEXITSTATUS(status), STATUS);
	close(end);
}

/* It may be a member: its end is told until a signal says that it may rest. */
static void test_may_be_a_member(void **state)
{
	int end, status;
	pid_t pid = start(true, true, &end);
	struct pollfd fd = { end, POLLIN, 0 };
	char byte;

	assert_int_equal(poll(&fd, 1, WAIT_MS), 1);
	assert_int_equal(read(end, &byte, 1), 0);
	/* One that comes before the child is reaped is the child's. */
	assert_true(has_ended(pid, SIGTERM, &status));
	assert_true(WIFEXITED(status));
	assert_int_equal(WEXITSTATUS(status), STATUS);
	close(end);
}

/* It has asked, and ends before it has heard an answer: no signal is needed. */
static void test_gave_up(void **state)
{
	int end, status;
	pid_t pid = start(true, false, &end);

	assert_true(has_ended(pid, 0, &status));
	assert_true(WIFEXITED(status));
	assert_int_equal(WEXITSTATUS(status), STATUS);
	close(end);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_never_asked),
		cmocka_unit_test(test_may_be_a_member),
		cmocka_unit_test(test_gave_up),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
