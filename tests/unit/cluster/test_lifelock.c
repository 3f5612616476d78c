/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * test_lifelock.c - a life lock is held until its process has ended, and says
 * whose death it proves.
 */
#include <errno.h>
#include <fcntl.h>
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

#include "cluster/cluster.h"
#include "cluster/lifelock.h"

static char dir[] = "/tmp/ugfs-life.XXXXXX";
static const uint8_t uuid[16] = { 1, 2, 3 };
static struct life_lock_name name = {
	.dir = dir, .uuid = uuid, .node = 7, .instance = 1
};

static void remove_file(void)
{
	char path[128];

	snprintf(path, sizeof(path),
		 "%s/01020300-0000-0000-0000-000000000000.7.1.life", dir);
	assert_int_equal(unlink(path), 0);
}

/* A process that takes the lock, says so, and waits to be killed. */
static pid_t start_holder(struct incarnation *inc)
{
	int ready[2];
	char byte = 0;
	pid_t pid;

	assert_int_equal(pipe(ready), 0);
	pid = fork();
	assert_true(pid >= 0);
	if (pid == 0) {
		struct incarnation self;

		if (incarnation_self(&self) ||
		    life_lock_take(&name, &self) < 0 ||
		    write(ready[1], &byte, 1) != 1)
			_exit(1);
		pause();
		_exit(0);
	}
	assert_int_equal(read(ready[0], &byte, 1), 1);
	close(ready[0]);
	close(ready[1]);
	assert_int_equal(incarnation_of(pid, inc), 0);
	return pid;
}

static void kill_holder(pid_t pid)
{
	int status;

	assert_int_equal(kill(pid, SIGKILL), 0);
	assert_int_equal(waitpid(pid, &status, 0), pid);
}

static void test_held_until_the_end(void **state)
{
	struct incarnation inc = { 0 }, self;
	int fd = -1, again;
	pid_t pid;

	assert_int_equal(life_lock_prove(&name, &inc, &fd), -ENOENT);
	pid = start_holder(&inc);
	assert_int_equal(incarnation_self(&self), 0);
	assert_int_equal(life_lock_prove(&name, &inc, &fd), -EBUSY);
	assert_int_equal(life_lock_take(&name, &self), -EBUSY);
	kill(pid, SIGSTOP);
	assert_int_equal(life_lock_prove(&name, &inc, &fd), -EBUSY);
	kill_holder(pid);
	assert_int_equal(life_lock_prove(&name, &inc, &fd), 0);
	/* Whoever proves keeps a new one out meanwhile. */
	assert_int_equal(life_lock_take(&name, &self), -EBUSY);
	close(fd);
	again = life_lock_take(&name, &self);
	assert_true(again >= 0);
	assert_true(fcntl(again, F_GETFD) & FD_CLOEXEC);
	close(again);
	remove_file();
}

/* Free, but held last by another one: the asked one may be about to begin. */
static void test_proves_its_holder_only(void **state)
{
	struct incarnation inc, other;
	int fd = -1;
	pid_t pid = start_holder(&inc);

	kill_holder(pid);
	other = inc;
	other.start_ticks++;
	assert_int_equal(life_lock_prove(&name, &other, &fd), -ESTALE);
	other = inc;
	other.pid++;
	assert_int_equal(life_lock_prove(&name, &other, &fd), -ESTALE);
	assert_int_equal(life_lock_prove(&name, &inc, &fd), 0);
	close(fd);
	remove_file();
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_held_until_the_end),
		cmocka_unit_test(test_proves_its_holder_only),
	};
	int failed;

	if (!mkdtemp(dir))
		return 1;
	failed = cmocka_run_group_tests(tests, NULL, NULL);
	rmdir(dir);
	return failed;
}
