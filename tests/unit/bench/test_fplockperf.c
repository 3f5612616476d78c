/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * test_fplockperf.c - what fplockperf understands, and that it really locks.
 */
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "filelock.h"
#include "perfargs.h"

#define WORDS_MAX 16

static int parse(const char *line, struct perf_args *args, char *why,
		 size_t len)
{
	static char copy[512];
	static char name[] = "fplockperf";
	char *argv[WORDS_MAX] = { name };
	char *save, *word;
	int argc = 1;

	strcpy(copy, line);
	for (word = strtok_r(copy, " ", &save); word;
	     word = strtok_r(NULL, " ", &save))
		argv[argc++] = word;
	return perf_args_parse(argc, argv, args, why, len);
}

static struct perf_args good(const char *line)
{
	struct perf_args args;
	char why[256];

	if (parse(line, &args, why, sizeof(why)))
		fail_msg("%s: %s", line, why);
	return args;
}

static void refused(const char *line, const char *words)
{
	struct perf_args args;
	char why[256] = "";

	assert_int_equal(parse(line, &args, why, sizeof(why)), -EINVAL);
	if (!strstr(why, words))
		fail_msg("%s: expected \"%s\" in \"%s\"", line, words, why);
}

static void test_defaults(void **state)
{
	static const unsigned counts[] = { 100, 500, 1000, 2000, 5000 };
	struct perf_args args = good("");

	assert_int_equal(args.action, PERF_RUN);
	assert_string_equal(args.dir, ".");
	assert_int_equal(args.counts_used, 5);
	assert_memory_equal(args.counts, counts, sizeof(counts));
	assert_int_equal(args.iterations, 5);
	assert_int_equal(args.delay_sec, 0);
	assert_int_equal(args.kinds_used, 2);
	assert_int_equal(args.kinds[0], FILE_LOCK_FLOCK);
	assert_int_equal(args.kinds[1], FILE_LOCK_PLOCK);
	assert_false(args.shared || args.reopen || args.json);
	assert_int_equal(good("20").delay_sec, 20);
}

static void test_options(void **state)
{
	struct perf_args args = good("-n 7,3 -i 2 -d /x -t ofd -srj 1");

	assert_int_equal(args.counts_used, 2);
	assert_int_equal(args.counts[0], 7);
	assert_int_equal(args.counts[1], 3);
	assert_int_equal(args.iterations, 2);
	assert_string_equal(args.dir, "/x");
	assert_int_equal(args.kinds_used, 1);
	assert_int_equal(args.kinds[0], FILE_LOCK_OFD);
	assert_true(args.shared && args.reopen && args.json);
	assert_int_equal(args.delay_sec, 1);
	assert_int_equal(good("-t flock").kinds[0], FILE_LOCK_FLOCK);
	assert_int_equal(good("-t plock").kinds[0], FILE_LOCK_PLOCK);
	assert_int_equal(good("-t ofd -t both").kinds_used, 2);
	assert_int_equal(good("-h").action, PERF_HELP);
	assert_int_equal(good("-V").action, PERF_VERSION);
}

static void test_refused(void **state)
{
	refused("x", "the delay: \"x\" is not a number");
	refused("-1x", "-1: unknown option");
	refused("1.5", "is not a number");
	refused("1 2", "\"2\" is one argument too many");
	refused("86401", "is not from 0 to 86400");
	refused("-n", "-n: needs a value");
	refused("-n 0", "-n: 0 is not from 1");
	refused("-n 10,,20", "-n: \"\" is not a number");
	refused("-n 10,x", "-n: \"x\" is not a number");
	refused("-n 1000001", "is not from 1 to 1000000");
	refused("-n 99999999999999999999", "is not from 1 to 1000000");
	refused("-n 1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,"
		"1,1,1,1",
		"more than 32 counts");
	refused("-i 0", "-i: 0 is not from 1");
	refused("-i +1", "is not a number");
	refused("-t posix", "\"posix\" is not flock, plock, ofd or both");
	refused("-x", "-x: unknown option");
}

/* Would a process of its own get this lock of the file now? */
static bool others_get(const char *path, enum file_lock_kind kind, bool shared)
{
	struct flock lock = {
		.l_type = shared ? F_RDLCK : F_WRLCK,
		.l_whence = SEEK_SET,
	};
	int status;
	pid_t pid = fork();

	if (pid == 0) {
		int fd = open(path, O_RDWR);
		int ret = kind == FILE_LOCK_FLOCK
				  ? flock(fd, (shared ? LOCK_SH : LOCK_EX) |
						      LOCK_NB)
				  : fcntl(fd, F_OFD_SETLK, &lock);

		_exit(fd < 0 ? 2 : ret ? 1 : 0);
	}
	assert_true(pid > 0);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFEXITED(status) && WEXITSTATUS(status) < 2);
	return WEXITSTATUS(status) == 0;
}

static void test_locks(void **state)
{
	char path[] = "/tmp/fplockperf-XXXXXX";
	int fd = mkstemp(path);

	assert_true(fd >= 0);
	for (unsigned i = 0; i < FILE_LOCK_KINDS; i++) {
		enum file_lock_kind kind = (enum file_lock_kind)i;

		assert_int_equal(file_lock(fd, kind, false), 0);
		assert_false(others_get(path, kind, true));
		assert_int_equal(file_unlock(fd, kind), 0);
		assert_true(others_get(path, kind, false));
		assert_int_equal(file_lock(fd, kind, true), 0);
		assert_true(others_get(path, kind, true));
		assert_false(others_get(path, kind, false));
		assert_int_equal(file_unlock(fd, kind), 0);
		assert_true(others_get(path, kind, false));
		assert_int_equal(file_lock(-1, kind, true), -EBADF);
	}
	close(fd);
	unlink(path);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_defaults),
		cmocka_unit_test(test_options),
		cmocka_unit_test(test_refused),
		cmocka_unit_test(test_locks),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
