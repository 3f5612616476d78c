/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * test_runfile.c - the file by which umount awaits a mount process.
 *
 * In /run/ugfs, with numbers that no mount has; skipped for others than root.
 */
#include <errno.h>
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

#include "daemon/runfile.h"

#define MAJOR 4095u /* too large for a device */
#define SOURCE "/proc/self/exe"

static void need_run(void)
{
	if (geteuid() != 0)
		skip();
}

/* A process that has a run file, until it is told to go. */
struct holder {
	pid_t pid;
	int go; /* closing it makes it exit */
	int ready;
};

static void holder_main(unsigned minor, int ready, int go)
{
	struct runfile rf;
	char c;

	if (runfile_create(&rf) ||
	    runfile_publish(&rf, MAJOR, minor, SOURCE, "/some/where"))
		_exit(1);
	if (write(ready, "", 1) != 1 || read(go, &c, 1) != 1)
		_exit(2);
	runfile_set_state(&rf, RUNFILE_ENDING);
	if (write(ready, "", 1) != 1 || read(go, &c, 1) != 1)
		_exit(3);
	runfile_set_state(&rf, RUNFILE_CLEAN);
	runfile_remove(&rf);
	_exit(0);
}

static void holder_start(struct holder *h, unsigned minor)
{
	int ready[2], go[2];
	char c;

	assert_int_equal(0, pipe(ready));
	assert_int_equal(0, pipe(go));
	h->pid = fork();
	assert_true(h->pid >= 0);
	if (!h->pid) {
		close(ready[0]);
		close(go[1]);
		holder_main(minor, ready[1], go[0]);
	}
	close(ready[1]);
	close(go[0]);
	h->ready = ready[0];
	h->go = go[1];
	assert_int_equal(1, read(h->ready, &c, 1));
}

static void holder_step(struct holder *h)
{
	assert_int_equal(1, write(h->go, "", 1));
}

static void holder_await(struct holder *h)
{
	char c;

	assert_int_equal(1, read(h->ready, &c, 1));
}

static void holder_end(struct holder *h)
{
	close(h->go);
	close(h->ready);
	assert_int_equal(h->pid, waitpid(h->pid, NULL, 0));
}

static void test_life(void **state)
{
	struct holder h;
	int fd;

	need_run();
	holder_start(&h, (unsigned)getpid());
	fd = runfile_open(MAJOR, (unsigned)getpid());
	assert_true(fd >= 0);
	assert_int_equal(RUNFILE_MOUNTED, runfile_state(fd));
	assert_false(runfile_is_gone(fd));
	holder_step(&h);
	holder_await(&h);
	assert_int_equal(RUNFILE_ENDING, runfile_state(fd));
	assert_false(runfile_is_gone(fd));
	holder_step(&h);
	assert_int_equal(0, runfile_wait(fd));
	assert_true(runfile_is_gone(fd));
	assert_int_equal(RUNFILE_CLEAN, runfile_state(fd));
	assert_int_equal(-ENOENT, runfile_open(MAJOR, (unsigned)getpid()));
	close(fd);
	holder_end(&h);
}

/* Its file stays, and says nothing; the next mount of this number has its own.
 */
static void test_killed(void **state)
{
	struct holder first, second;
	int fd, fd2;

	need_run();
	holder_start(&first, (unsigned)getpid());
	fd = runfile_open(MAJOR, (unsigned)getpid());
	assert_true(fd >= 0);
	kill(first.pid, SIGKILL);
	assert_int_equal(0, runfile_wait(fd));
	assert_int_equal(RUNFILE_MOUNTED, runfile_state(fd));
	holder_end(&first);

	holder_start(&second, (unsigned)getpid());
	fd2 = runfile_open(MAJOR, (unsigned)getpid());
	assert_true(fd2 >= 0);
	assert_true(runfile_is_gone(fd));
	assert_false(runfile_is_gone(fd2));
	holder_step(&second);
	holder_await(&second);
	holder_step(&second);
	assert_int_equal(0, runfile_wait(fd2));
	holder_end(&second);
	close(fd);
	close(fd2);
}

/* Two with one number: the first must not take the second's name away. */
static void test_number_is_reused(void **state)
{
	struct holder first, second;
	int fd;

	need_run();
	holder_start(&first, (unsigned)getpid());
	holder_start(&second, (unsigned)getpid());
	holder_step(&first);
	holder_await(&first);
	holder_step(&first);
	holder_end(&first);
	fd = runfile_open(MAJOR, (unsigned)getpid());
	assert_true(fd >= 0);
	assert_false(runfile_is_gone(fd));
	holder_step(&second);
	holder_await(&second);
	holder_step(&second);
	assert_int_equal(0, runfile_wait(fd));
	holder_end(&second);
	close(fd);
}

static void test_find_source(void **state)
{
	struct runfile_info info;
	struct holder h;

	need_run();
	holder_start(&h, (unsigned)getpid());
	assert_int_equal(0, runfile_find_source(SOURCE, &info));
	assert_int_equal(info.pid, h.pid);
	assert_string_equal(info.dir, "/some/where");
	runfile_info_free(&info);
	assert_int_equal(-ENOENT, runfile_find_source("/etc/passwd", &info));
	kill(h.pid, SIGKILL);
	holder_end(&h);
	assert_int_equal(-ENOENT, runfile_find_source(SOURCE, &info));
}

/* What the killed ones have left. */
static int clean_up(void **state)
{
	char path[64];

	snprintf(path, sizeof(path), "/run/ugfs/%u:%u", MAJOR,
		 (unsigned)getpid());
	unlink(path);
	return 0;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_life),
		cmocka_unit_test(test_killed),
		cmocka_unit_test(test_number_is_reused),
		cmocka_unit_test(test_find_source),
	};

	return cmocka_run_group_tests(tests, NULL, clean_up);
}
