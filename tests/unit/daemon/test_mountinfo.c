/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * test_mountinfo.c - lines of /proc/self/mountinfo, and the list itself.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "daemon/mountinfo.h"

static bool parse(const char *text, struct mount_entry *entry, char *line,
		  size_t len)
{
	snprintf(line, len, "%s", text);
	return mount_entry_parse(line, entry);
}

static void test_fields(void **state)
{
	struct mount_entry e;
	char line[256];

	assert_true(parse("55 43 0:51 / /mnt/a rw,nosuid shared:7 master:1 - "
			  "fuse.ugfs /img rw,user_id=0\n",
			  &e, line, sizeof(line)));
	assert_int_equal(e.major, 0);
	assert_int_equal(e.minor, 51);
	assert_string_equal(e.root, "/");
	assert_string_equal(e.dir, "/mnt/a");
	assert_string_equal(e.type, "fuse.ugfs");
	assert_string_equal(e.source, "/img");
	assert_true(mount_entry_is_ours(&e));
}

static void test_no_optional_fields(void **state)
{
	struct mount_entry e;
	char line[256];

	assert_true(parse("1 2 7:3 /sub / ro - fuseblk.ugfs /dev/loop3 ro", &e,
			  line, sizeof(line)));
	assert_int_equal(e.major, 7);
	assert_string_equal(e.root, "/sub");
	assert_true(mount_entry_is_ours(&e));
}

static void test_escapes(void **state)
{
	struct mount_entry e;
	char line[256];

	assert_true(parse("1 2 0:3 / /a\\040b\\134c\\012d\\09 rw - ext4 "
			  "/dev/x\\011y rw",
			  &e, line, sizeof(line)));
	assert_string_equal(e.dir, "/a b\\c\nd\\09");
	assert_string_equal(e.source, "/dev/x\ty");
	assert_false(mount_entry_is_ours(&e));
}

static void test_broken_lines(void **state)
{
	static const char *const broken[] = {
		"",
		"\n",
		"1 2 0:3 / /a rw",
		"1 2 0:3 / /a rw -",
		"1 2 0:3 / /a rw - ext4",
		"1 2 03 / /a rw - ext4 /dev/x rw",
		"1 2 0:3 / /a rw shared:1 ext4 /dev/x rw",
	};
	struct mount_entry e;
	char line[256];

	for (size_t i = 0; i < sizeof(broken) / sizeof(broken[0]); i++)
		if (parse(broken[i], &e, line, sizeof(line)))
			fail_msg("\"%s\" taken for a mount", broken[i]);
}

static void test_proc_is_found(void **state)
{
	struct mount_query query = { .dir = "/proc" };
	struct mount_query again;

	assert_int_equal(0, mountinfo_find(&query));
	assert_true(query.count >= 1);
	assert_string_equal(query.top.type, "proc");
	again = (struct mount_query){ .major = query.top.major,
				      .minor = query.top.minor };
	assert_int_equal(0, mountinfo_find(&again));
	assert_true(again.count >= 1);
	mount_query_free(&query);
	mount_query_free(&again);

	query = (struct mount_query){ .dir = "/nothing/is/mounted/here" };
	assert_int_equal(0, mountinfo_find(&query));
	assert_int_equal(query.count, 0);
	mount_query_free(&query);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_fields),
		cmocka_unit_test(test_no_optional_fields),
		cmocka_unit_test(test_escapes),
		cmocka_unit_test(test_broken_lines),
		cmocka_unit_test(test_proc_is_found),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
