/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * test_mkfs_args.c - which command lines are understood, and what is said of
 * those that are not.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "tools/mkfs_args.h"

#define ARGS_MAX 32

static int parse(const char *line, struct mkfs_args *args, char *why,
		 size_t len)
{
	static char copy[512];
	static char name[] = "mkfs";
	char *argv[ARGS_MAX] = { name };
	char *save, *word;
	int argc = 1;

	strcpy(copy, line);
	for (word = strtok_r(copy, " ", &save); word;
	     word = strtok_r(NULL, " ", &save))
		argv[argc++] = word;
	return mkfs_args_parse(argc, argv, args, why, len);
}

static void check_refused(const char *line, const char *words)
{
	struct mkfs_args args;
	char why[512] = "";

	assert_int_equal(parse(line, &args, why, sizeof(why)), -EINVAL);
	if (!strstr(why, words))
		fail_msg("%s: expected \"%s\" in \"%s\"", line, words, why);
}

static struct mkfs_args good(const char *line)
{
	struct mkfs_args args;
	char why[512];

	if (parse(line, &args, why, sizeof(why)))
		fail_msg("%s: %s", line, why);
	return args;
}

static void test_defaults(void **state)
{
	struct mkfs_args args = good("-t clu:fs /dev/x");

	assert_int_equal(args.action, MKFS_RUN);
	assert_string_equal(args.device, "/dev/x");
	assert_string_equal(args.identity.lockproto, "lock_dlm");
	assert_string_equal(args.identity.locktable, "clu:fs");
	assert_false(args.have_uuid || args.debug || args.quiet ||
		     args.override || args.keep);
	assert_memory_equal(&args.wishes, &(struct mkfs_wishes){ 0 },
			    sizeof(args.wishes));
}

static void test_all_options(void **state)
{
	struct mkfs_args args =
		good("-b 1024 -c 5 -D -J 64 -j 7 -K -O -o "
		     "sunit=64k,swidth=256k,align=0,format=1801 -p lock_gulm "
		     "-q -r 100 -t a-b_C9:d -U "
		     "11111111-2222-3333-4444-5555555555ff img 12345");
	const struct mkfs_wishes *w = &args.wishes;

	assert_int_equal(w->bsize, 1024);
	assert_int_equal(w->qcsize_mb, 5);
	assert_int_equal(w->jsize_mb, 64);
	assert_int_equal(w->journals, 7);
	assert_int_equal(w->rgsize_mb, 100);
	assert_int_equal(w->sunit_bytes, 65536);
	assert_int_equal(w->swidth_bytes, 262144);
	assert_true(w->no_align);
	assert_int_equal(w->format, 1801);
	assert_int_equal(w->size_blocks, 12345);
	assert_true(args.debug && args.keep && args.override && args.quiet);
	assert_string_equal(args.identity.lockproto, "lock_gulm");
	assert_string_equal(args.identity.locktable, "a-b_C9:d");
	assert_true(args.have_uuid);
	assert_int_equal(args.identity.uuid[15], 0xff);
	assert_string_equal(args.device, "img");
}

static void test_actions(void **state)
{
	assert_int_equal(good("-h").action, MKFS_HELP);
	assert_int_equal(good("--help nonsense more").action, MKFS_HELP);
	assert_int_equal(good("-V").action, MKFS_VERSION);
	assert_int_equal(good("--version").action, MKFS_VERSION);
	assert_int_equal(good("-o help").action, MKFS_HELP_EXTENDED);
}

static void test_nolock_needs_no_table(void **state)
{
	struct mkfs_args args = good("-p lock_nolock x");

	assert_string_equal(args.identity.locktable, "");
	args = good("-p lock_nolock -t clu:fs x");
	assert_string_equal(args.identity.locktable, "clu:fs");
	check_refused("x", "lock_dlm needs a lock table");
	check_refused("-p lock_gulm x", "lock_gulm needs a lock table");
}

static void test_lock_tables(void **state)
{
	char line[256];

	check_refused("-t abc x", "\"abc\", expected CLUSTER:FSNAME");
	check_refused("-t a:b:c x", "with one colon");
	check_refused("-t :b x", "cluster name in the lock table is empty");
	check_refused("-t a: x", "file system name in the lock table is empty");
	check_refused("-t a.b:c x", "contains \".\"");
	check_refused("-t a:c\xc3\xa9 x", "file system name in the lock table");
	snprintf(line, sizeof(line), "-t %033d:%030d x", 0, 0);
	check_refused(line, "has 33 characters, expected at most 32");
	snprintf(line, sizeof(line), "-t %032d:%031d x", 0, 0);
	check_refused(line, "has 31 characters, expected at most 30");
	snprintf(line, sizeof(line), "-t %032d:%030d x", 0, 0);
	assert_int_equal(strlen(good(line).identity.locktable), 63);
}

static void test_numbers(void **state)
{
	check_refused("-j 0 x", "number of journals (-j) is \"0\"");
	check_refused("-j -1 x", "number of journals (-j) is \"-1\"");
	check_refused("-j 3x x", "\"3x\", expected a number");
	check_refused("-j 1001 x", "1001, expected 1 to 1000");
	check_refused("-j 99999999999999999999 x", "expected a number");
	check_refused("-J 7 x", "journal size (-J, in MB) is 7, expected 8 to");
	check_refused("-J 1025 x", "1025, expected 8 to 1024");
	check_refused("-r 31 x", "expected 32 to 2048");
	check_refused("-r 33.5 x", "\"33.5\"");
	check_refused("-c 65 x", "expected 1 to 64");
	check_refused("-b 500 x", "block size is \"500\", expected a power");
	check_refused("-b 8192 x", "from 512 to 4096");
	check_refused("-b 4kk x", "expected a number of bytes");
	check_refused("-b 99999999999999999999 x", "number of bytes");
	assert_int_equal(good("-p lock_nolock -b 4k x").wishes.bsize, 4096);
	check_refused("-t a:b x 0", "size in blocks is \"0\"");
	check_refused("-t a:b x 12k", "size in blocks is \"12k\"");
	check_refused("-t a:b x 99999999999999999999", "size in blocks");
}

static void test_extended_options(void **state)
{
	check_refused("-o bogus=1 x", "extended option \"bogus\" is unknown");
	check_refused("-o sunit x", "\"sunit\" has no value");
	check_refused("-o format= x", "\"format\" has no value");
	check_refused("-o format=1803 x", "expected 1801 to 1802");
	check_refused("-o align=2 x", "align is \"2\", expected 0 or 1");
	check_refused("-o sunit=99999999999999999t,swidth=1 x", "number of");
	check_refused("-o , x", "extended option \"\" is unknown");
}

static void test_other_mistakes(void **state)
{
	check_refused("", "no device was given");
	check_refused("-t a:b", "no device was given");
	check_refused("-t a:b x 100 y", "\"y\" is one argument too many");
	check_refused("-p lock_foo x", "\"lock_foo\", expected lock_dlm");
	check_refused("-U 123 x", "the UUID is \"123\"");
	check_refused("-z x", "option -z is unknown");
	check_refused("--frobnicate x", "option --frobnicate is unknown");
	check_refused("-t", "option -t needs a value");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_defaults),
		cmocka_unit_test(test_all_options),
		cmocka_unit_test(test_actions),
		cmocka_unit_test(test_nolock_needs_no_table),
		cmocka_unit_test(test_lock_tables),
		cmocka_unit_test(test_numbers),
		cmocka_unit_test(test_extended_options),
		cmocka_unit_test(test_other_mistakes),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
