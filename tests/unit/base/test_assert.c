/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * test_assert.c - a failed assertion, seen from outside: the hook came first,
 * the reason and the ring follow, the process died of SIGABRT.
 */
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/assert.h"
#include "base/log.h"

struct outcome {
	int status;
	char text[8192];
};

/* Run fn in a child whose stderr we read. */
static void run_child(void (*fn)(void), struct outcome *out)
{
	int pipe_fd[2];
	size_t len = 0;
	ssize_t n;
	pid_t pid;

	assert_int_equal(pipe(pipe_fd), 0);
	pid = fork();
	assert_true(pid >= 0);
	if (pid == 0) {
		struct rlimit no_core = { 0, 0 };

		setrlimit(RLIMIT_CORE, &no_core);
		dup2(pipe_fd[1], STDERR_FILENO);
		signal(SIGABRT, SIG_DFL);
		fn();
		_exit(0);
	}
	close(pipe_fd[1]);
	while (len < sizeof(out->text) - 1 &&
	       (n = read(pipe_fd[0], out->text + len,
			 sizeof(out->text) - 1 - len)) > 0)
		len += (size_t)n;
	out->text[len] = '\0';
	close(pipe_fd[0]);
	assert_int_equal(waitpid(pid, &out->status, 0), pid);
}

static void hook_speaks(void *arg)
{
	dprintf(STDERR_FILENO, "hook: %s\n", (const char *)arg);
}

static void fail_with_hook(void)
{
	static char arg[] = "device shut";

	ug_assert_set_hook(hook_speaks, arg);
	ug_trace("before", "last words");
	ug_assert(1 + 1 == 3);
}

static void test_order_of_last_acts(void **state)
{
	static struct outcome out;
	char *hook, *why, *ring;

	run_child(fail_with_hook, &out);
	assert_true(WIFSIGNALED(out.status));
	assert_int_equal(WTERMSIG(out.status), SIGABRT);
	hook = strstr(out.text, "hook: device shut");
	why = strstr(out.text,
		     "assertion failed: 1 + 1 == 3, in fail_with_hook");
	ring = strstr(out.text, "before: last words");
	assert_non_null(hook);
	assert_non_null(why);
	assert_non_null(ring);
	assert_true(hook < why);
	assert_true(why < ring);
	assert_non_null(strstr(why, "test_assert.c"));
}

static void hook_fails(void *arg)
{
	dprintf(STDERR_FILENO, "hook ran\n");
	ug_assert(!"inside the hook");
}

static void fail_in_hook(void)
{
	ug_assert_set_hook(hook_fails, NULL);
	ug_assert(0);
}

static void test_failure_inside_the_hook_ends_it(void **state)
{
	static struct outcome out;
	char *first;

	run_child(fail_in_hook, &out);
	assert_true(WIFSIGNALED(out.status));
	assert_int_equal(WTERMSIG(out.status), SIGABRT);
	first = strstr(out.text, "hook ran");
	assert_non_null(first);
	assert_null(strstr(first + 1, "hook ran"));
}

static void *fail_in_thread(void *arg)
{
	ug_assert(arg == NULL);
	return NULL;
}

/* The second failing thread neither runs the hook again nor returns. */
static void hook_with_second_failure(void *arg)
{
	pthread_t thread;

	dprintf(STDERR_FILENO, "hook ran\n");
	pthread_create(&thread, NULL, fail_in_thread, (void *)1);
	usleep(100000);
}

static void fail_in_two_threads(void)
{
	ug_assert_set_hook(hook_with_second_failure, NULL);
	ug_assert(0);
}

static void test_second_thread_waits_for_the_end(void **state)
{
	static struct outcome out;
	char *first;

	run_child(fail_in_two_threads, &out);
	assert_true(WIFSIGNALED(out.status));
	first = strstr(out.text, "hook ran");
	assert_non_null(first);
	assert_null(strstr(first + 1, "hook ran"));
	assert_non_null(strstr(out.text, "in fail_in_two_threads"));
	assert_null(strstr(out.text, "in fail_in_thread("));
}

static void test_true_is_silent(void **state)
{
	ug_assert(1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_order_of_last_acts),
		cmocka_unit_test(test_failure_inside_the_hook_ends_it),
		cmocka_unit_test(test_second_thread_waits_for_the_end),
		cmocka_unit_test(test_true_is_silent),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
