/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * test_report.c - what the mounting command says and returns, whatever becomes
 * of the mount process.
 */
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "daemon/report.h"

static char printed[8192];

/* The mount process of a test; gets the writing end. */
typedef void (*process_fn)(int fd);

/*
 * Run the command against such a process; its exit code, and in printed what it
 * has said. In a process of its own, since it changes signal handlers.
 */
static int command(process_fn process, const char *dir)
{
	FILE *out = tmpfile();
	int fds[2], status;
	pid_t pid = fork();

	assert_non_null(out);
	assert_true(pid >= 0);
	if (!pid) {
		struct report_wait rw = { .is_child = true,
					  .verbose = true,
					  .dir = dir };

		if (pipe(fds))
			_exit(99);
		rw.pid = fork();
		if (!rw.pid) {
			close(fds[0]);
			process(fds[1]);
			_exit(0);
		}
		close(fds[1]);
		rw.fd = fds[0];
		dup2(fileno(out), STDERR_FILENO);
		_exit(report_wait(&rw));
	}
	assert_int_equal(pid, waitpid(pid, &status, 0));
	assert_true(WIFEXITED(status));
	rewind(out);
	printed[fread(printed, 1, sizeof(printed) - 1, out)] = '\0';
	fclose(out);
	return WEXITSTATUS(status);
}

static void process_ready(int fd)
{
	report_note(fd, "a word on %s", "the way");
	report_ready(fd);
}

static void test_ready(void **state)
{
	assert_int_equal(EXIT_OK, command(process_ready, "/"));
	assert_non_null(strstr(printed, "ugfs: a word on the way\n"));
	assert_non_null(strstr(printed, "ugfs: mounted on /\n"));
}

static void process_ready_forever(int fd)
{
	report_ready(fd);
	close(fd);
	pause();
}

/* Mounted, but not usable: the process is told to undo it. */
static void test_not_usable(void **state)
{
	assert_int_equal(EXIT_MOUNT,
			 command(process_ready_forever, "/nothing/is/here"));
	assert_non_null(strstr(printed, "does not answer"));
}

static void process_fails(int fd)
{
	report_failed(fd, EXIT_SYSTEM, "two\nlines of %d", 7);
}

static void test_failure(void **state)
{
	assert_int_equal(EXIT_SYSTEM, command(process_fails, "/"));
	assert_string_equal(printed, "ugfs: two lines of 7\n");
}

static void process_says_too_much(int fd)
{
	char text[3 * REPORT_LEN_MAX];

	memset(text, 'x', sizeof(text) - 1);
	text[sizeof(text) - 1] = '\0';
	report_failed(fd, EXIT_MOUNT, "%s", text);
}

static void test_long_sentence(void **state)
{
	assert_int_equal(EXIT_MOUNT, command(process_says_too_much, "/"));
	assert_true(strlen(printed) > REPORT_LEN_MAX / 2);
	assert_int_equal(printed[strlen(printed) - 1], '\n');
}

static void process_dies(int fd)
{
	report_note(fd, "last words");
	raise(SIGKILL);
}

static void test_death(void **state)
{
	assert_int_equal(EXIT_INTERNAL, command(process_dies, "/"));
	assert_non_null(strstr(printed, "ended by signal 9"));
}

static void process_leaves(int fd)
{
}

static void test_silent_end(void **state)
{
	assert_int_equal(EXIT_INTERNAL, command(process_leaves, "/"));
	assert_non_null(strstr(printed, "has ended early"));
}

/* Has the process a handler for SIGINT? */
static int catches_sigint(pid_t pid)
{
	unsigned long long caught = 0;
	char path[64], line[256];
	FILE *file;

	snprintf(path, sizeof(path), "/proc/%d/status", (int)pid);
	file = fopen(path, "r");
	while (file && fgets(line, sizeof(line), file))
		sscanf(line, "SigCgt: %llx", &caught);
	if (file)
		fclose(file);
	return caught >> (SIGINT - 1) & 1;
}

/* Interrupts the command, waits for what that sends, and obeys. */
static void process_interrupted(int fd)
{
	sigset_t set;
	int sig;

	sigemptyset(&set);
	sigaddset(&set, SIGTERM);
	sigprocmask(SIG_BLOCK, &set, NULL);
	/* Before it catches signals it would just die. */
	while (!catches_sigint(getppid()))
		usleep(1000);
	kill(getppid(), SIGINT);
	sigwait(&set, &sig);
	report_failed(fd, EXIT_INTERRUPTED, "interrupted");
}

static void test_interrupt(void **state)
{
	assert_int_equal(EXIT_INTERRUPTED, command(process_interrupted, "/"));
	assert_non_null(strstr(printed, "ugfs: interrupted\n"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_ready),
		cmocka_unit_test(test_not_usable),
		cmocka_unit_test(test_failure),
		cmocka_unit_test(test_long_sentence),
		cmocka_unit_test(test_death),
		cmocka_unit_test(test_silent_end),
		cmocka_unit_test(test_interrupt),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
