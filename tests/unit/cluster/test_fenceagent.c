/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * test_fenceagent.c - fence commands: what they are told, how they end, and
 * that nothing of them is left when they are killed.
 */
#include <errno.h>
#include <poll.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "cluster/clock.h"
#include "cluster/fenceagent.h"

#define LONG_NS (600 * (uint64_t)NS_PER_SEC)

static char dir[] = "/tmp/ugfs-agent.XXXXXX";

static void start(struct fence_agent *a, const char *command)
{
	struct fence_order order = { command, "off", 3, "node3" };

	assert_int_equal(fence_agent_start(a, &order, LONG_NS), 0);
	assert_int_equal(a->node, 3);
}

/* As a supervisor does it; the number of times that it was woken. */
static unsigned wait_for_end(struct fence_agent *a, int *status)
{
	unsigned wakes = 0;

	while (!fence_agent_ended(a, status)) {
		struct pollfd fds[] = { { a->pidfd, POLLIN, 0 },
					{ a->output, POLLIN, 0 } };

		poll(fds, 2, -1);
		fence_agent_read(a);
		wakes++;
	}
	assert_int_equal(a->pidfd, -1);
	return wakes;
}

static int run(const char *command)
{
	struct fence_agent a;
	int status;

	start(&a, command);
	wait_for_end(&a, &status);
	return status;
}

static void test_status(void **state)
{
	assert_int_equal(run("exit 0"), 0);
	assert_int_equal(run("exit 7"), 7);
	assert_int_equal(run("kill -TERM $$"), FENCE_END_KILLED);
	assert_int_equal(run("/nonexistent/agent"), 127);
	/* Without reading what it is told. */
	assert_int_equal(run("exec <&-; exit 0"), 0);
}

static void test_parameters(void **state)
{
	char command[256], text[256] = "", path[64];
	FILE *file;

	snprintf(path, sizeof(path), "%s/told", dir);
	snprintf(command, sizeof(command), "cat > %s", path);
	assert_int_equal(run(command), 0);
	file = fopen(path, "r");
	assert_non_null(file);
	assert_true(fread(text, 1, sizeof(text) - 1, file) > 0);
	fclose(file);
	unlink(path);
	assert_string_equal(text, "action=off\nport=node3\nplug=node3\n"
				  "nodename=node3\nnodeid=3\n");
}

/* No descriptor of ours, no signal that is ignored here. */
static void test_clean(void **state)
{
	char command[256];
	int fds[2];

	assert_int_equal(pipe(fds), 0); /* not close-on-exec */
	snprintf(command, sizeof(command),
		 "[ ! -e /proc/self/fd/%d ] && [ ! -e /proc/self/fd/%d ]",
		 fds[0], fds[1]);
	assert_int_equal(run(command), 0);
	signal(SIGTERM, SIG_IGN);
	assert_int_equal(run("kill -TERM $$; exit 0"), FENCE_END_KILLED);
	signal(SIGTERM, SIG_DFL);
	close(fds[0]);
	close(fds[1]);
}

/* Its children, too: they might finish the work after others have begun. */
static void test_killed(void **state)
{
	char command[256], path[64], text[32] = "";
	struct fence_agent a;
	FILE *file = NULL;
	int status;

	snprintf(path, sizeof(path), "%s/pid", dir);
	snprintf(command, sizeof(command),
		 "sleep 1000 & echo $! > %s.new; mv %s.new %s; wait", path,
		 path, path);
	start(&a, command);
	while (!file) {
		usleep(1000);
		file = fopen(path, "r");
	}
	assert_non_null(fgets(text, sizeof(text), file));
	fclose(file);
	unlink(path);
	fence_agent_kill(&a, FENCE_END_TIMEOUT);
	fence_agent_kill(&a, FENCE_END_NO_QUORUM);
	wait_for_end(&a, &status);
	assert_int_equal(status, FENCE_END_TIMEOUT);
	/* Killed, and reaped by whoever has inherited it. */
	while (kill(atoi(text), 0) == 0) {
		char stat[64], line[256] = "", kind = 0;

		snprintf(stat, sizeof(stat), "/proc/%d/stat", atoi(text));
		file = fopen(stat, "r");
		if (!file)
			break;
		if (fgets(line, sizeof(line), file))
			sscanf(strrchr(line, ')') + 1, " %c", &kind);
		fclose(file);
		if (kind == 'Z')
			break;
		usleep(1000);
	}
}

/* Lines of any length, and an output that is closed long before the end. */
static void test_output(void **state)
{
	struct fence_agent a;
	int status;

	assert_int_equal(run("echo one; printf two; "
			     "head -c 5000 /dev/zero | tr '\\0' x; echo"),
			 0);
	start(&a, "exec > /dev/null 2>&1; sleep 0.3; exit 4");
	assert_true(wait_for_end(&a, &status) < 10);
	assert_int_equal(status, 4);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_status),
		cmocka_unit_test(test_parameters),
		cmocka_unit_test(test_clean),
		cmocka_unit_test(test_killed),
		cmocka_unit_test(test_output),
	};
	int failed;

	if (!mkdtemp(dir))
		return 1;
	failed = cmocka_run_group_tests(tests, NULL, NULL);
	rmdir(dir);
	return failed;
}
