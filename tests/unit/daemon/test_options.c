/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * test_options.c - what each mount option does, and how the others are refused.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>

#include <cmocka.h>

#include "daemon/options.h"

static char why[512];

static int parse(struct mount_options *opt, const char *text)
{
	int ret;

	why[0] = '\0';
	mount_options_init(opt);
	ret = mount_options_parse(opt, text, why, sizeof(why));
	return ret ? ret : mount_options_finish(opt, why, sizeof(why));
}

static void accept(struct mount_options *opt, const char *text)
{
	if (parse(opt, text))
		fail_msg("\"%s\" refused: %s", text, why);
}

/* Refused with a sentence in which the needle occurs. */
static void refuse(const char *text, const char *needle)
{
	struct mount_options opt;

	if (!parse(&opt, text))
		fail_msg("\"%s\" accepted", text);
	if (!strstr(why, needle))
		fail_msg("\"%s\": \"%s\" is not in \"%s\"", text, needle, why);
	mount_options_free(&opt);
}

static void test_defaults(void **state)
{
	struct mount_options opt;

	accept(&opt, "");
	assert_int_equal(opt.mount_flags, 0);
	assert_false(opt.fs.readonly);
	assert_true(opt.fs.barriers);
	assert_false(opt.fs.data_writeback);
	assert_int_equal(opt.fs.atime, FS_ATIME_RELATIME);
	assert_int_equal(opt.page_cache, PAGE_CACHE_KERNEL);
	assert_null(opt.fs.lockproto);
	accept(&opt, ",,defaults,,");
	assert_int_equal(opt.mount_flags, 0);
}

static void test_generic_flags(void **state)
{
	static const struct {
		const char *text;
		unsigned long flags;
	} cases[] = {
		{ "ro", MS_RDONLY },
		{ "ro,rw", 0 },
		{ "nosuid,nodev,noexec", MS_NOSUID | MS_NODEV | MS_NOEXEC },
		{ "nosuid,nodev,noexec,suid,dev,exec", 0 },
		{ "sync,dirsync", MS_SYNCHRONOUS | MS_DIRSYNC },
		{ "sync,async", 0 },
		{ "noatime", MS_NOATIME },
		{ "noatime,relatime", MS_RELATIME },
		{ "relatime,strictatime", MS_STRICTATIME },
		{ "strictatime,noatime,nodiratime",
		  MS_NOATIME | MS_NODIRATIME },
		{ "nodiratime,diratime", 0 },
	};
	struct mount_options opt;

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		accept(&opt, cases[i].text);
		if (opt.mount_flags != cases[i].flags)
			fail_msg("\"%s\": flags %#lx", cases[i].text,
				 opt.mount_flags);
	}
}

static void test_flags_reach_the_file_system(void **state)
{
	struct mount_options opt;

	accept(&opt, "ro,sync,dirsync,nodiratime,noatime");
	assert_true(opt.fs.readonly);
	assert_true(opt.fs.sync);
	assert_true(opt.fs.dirsync);
	assert_true(opt.fs.nodiratime);
	assert_int_equal(opt.fs.atime, FS_ATIME_NOATIME);
	accept(&opt, "strictatime");
	assert_int_equal(opt.fs.atime, FS_ATIME_STRICT);
	accept(&opt, "spectator");
	assert_true(opt.fs.spectator);
	assert_true(opt.fs.readonly);
	assert_true(opt.mount_flags & MS_RDONLY);
	accept(&opt, "norecovery");
	assert_true(opt.fs.spectator);
}

static void test_gfs2_values(void **state)
{
	struct mount_options opt;

	accept(&opt, "data=writeback,commit=7,statfs_quantum=0,"
		     "statfs_percent=12,suiddir,nobarrier,meta,errors=panic");
	assert_true(opt.fs.data_writeback);
	assert_int_equal(opt.fs.commit_sec, 7);
	assert_int_equal(opt.fs.statfs_quantum_sec, 0);
	assert_int_equal(opt.fs.statfs_percent, 12);
	assert_true(opt.fs.suiddir);
	assert_false(opt.fs.barriers);
	assert_true(opt.fs.meta);
	assert_true(opt.fs.errors_panic);
	accept(&opt, "startup_delay=5");
	assert_int_equal(opt.startup_delay_sec, 5);
	accept(&opt, "plock_ownership=0,plock_rate_limit=100,plock_mode=group,"
		     "enable_plock=0,plock_rate_limit=7,clusterconf=/a/b");
	assert_int_equal(opt.plocks.value[PLOCKSET_OWNERSHIP], 0);
	assert_int_equal(opt.plocks.value[PLOCKSET_RATE_LIMIT], 7);
	assert_int_equal(opt.plocks.from[PLOCKSET_RATE_LIMIT],
			 PLOCK_MOUNT_OPTION);
	assert_int_equal(opt.plocks.value[PLOCKSET_MODE], PLOCK_MODE_GROUP);
	assert_int_equal(opt.plocks.from[PLOCKSET_DROP_AGE], PLOCK_BUILT_IN);
	assert_string_equal(opt.cluster_conf, "/a/b");
	mount_options_free(&opt);
	accept(&opt, "data=writeback,data=ordered,suiddir,nosuiddir,"
		     "nobarrier,barrier,errors=panic,errors=withdraw");
	assert_false(opt.fs.data_writeback);
	assert_false(opt.fs.suiddir);
	assert_true(opt.fs.barriers);
	assert_false(opt.fs.errors_panic);
}

static void test_lock_strings(void **state)
{
	struct mount_options opt;

	accept(&opt, "lockproto=lock_dlm,locktable=a:b,lockproto=lock_nolock,"
		     "force,hostdata=jid=3:id=77:first=1:nodir");
	assert_string_equal(opt.fs.lockproto, "lock_nolock");
	assert_string_equal(opt.fs.locktable, "a:b");
	assert_true(opt.fs.force);
	assert_int_equal(opt.fs.jid, 3);
	mount_options_free(&opt);
	accept(&opt, "locktable=\"a:b,c\",hostdata=");
	assert_string_equal(opt.fs.locktable, "a:b,c");
	mount_options_free(&opt);
}

static void test_own_options(void **state)
{
	struct mount_options opt;

	accept(&opt, "cache=64M,inodes=5000,threads=3,pagecache=own");
	assert_int_equal(opt.fs.cache_bytes, 64 << 20);
	assert_int_equal(opt.fs.inodes_max, 5000);
	assert_int_equal(opt.threads, 3);
	assert_int_equal(opt.page_cache, PAGE_CACHE_OWN);
	accept(&opt, "cache=1g,pagecache=own,pagecache=kernel");
	assert_int_equal(opt.fs.cache_bytes, 1 << 30);
	assert_int_equal(opt.page_cache, PAGE_CACHE_KERNEL);
	accept(&opt, "cache=16777216");
	assert_int_equal(opt.fs.cache_bytes, 16 << 20);
}

static void test_without_effect(void **state)
{
	struct mount_options opt;

	accept(&opt, "_netdev,auto,noauto,nofail,user=joe,users,owner,group,"
		     "comment=x,x-systemd.requires=a.service,X-mount.mkdir,"
		     "lazytime,nomand,iversion");
	accept(&opt, "localflocks,ignore_local_fs,localcaching,upgrade,"
		     "loccookie,noloccookie,rgrplvb,norgrplvb,noacl,"
		     "nodiscard,quota=off,noquota,quota_quantum=60,"
		     "oopses_ok,num_glockd=16,nodebug");
	assert_int_equal(opt.mount_flags, 0);
}

static void test_unknown_is_named(void **state)
{
	struct mount_options opt;

	refuse("rw,frobnicate=3", "frobnicate: unknown");
	refuse("noatim", "noatim: unknown");
	refuse("=", "unknown");
	mount_options_init(&opt);
	opt.sloppy = true;
	assert_int_equal(0, mount_options_parse(&opt, "frobnicate,ro", why,
						sizeof(why)));
	assert_int_equal(opt.mount_flags, MS_RDONLY);
}

static void test_refused_by_a_sentence(void **state)
{
	refuse("remount,ro", "remount: a mounted volume cannot be changed");
	refuse("discard", "discard: ");
	refuse("mand", "mand: ");
	refuse("quota=on", "quota=on: ");
	refuse("quota=account", "quota=account: ");
	refuse("quota=sometimes", "quota=sometimes: unknown value");
	refuse("debug,errors=withdraw", "exclude each other");
	refuse("lockproto=lock_best", "lock_best: unknown lock protocol");
	refuse("hostdata=jid=x", "jid=x");
	refuse("hostdata=colour=red", "colour=red: unknown");
	refuse("data=journal", "data=journal");
	refuse("errors=ignore", "errors=ignore");
	refuse("pagecache=none", "pagecache=none");
}

static void test_values_are_checked(void **state)
{
	refuse("commit=0", "commit=0: must be from 1 to");
	refuse("commit=86401", "must be from");
	refuse("commit=", "not a number");
	refuse("commit=-1", "not a number");
	refuse("commit= 5", "not a number");
	refuse("commit=5s", "not a number");
	refuse("commit=99999999999999999999", "not a number");
	refuse("commit", "commit: needs a value");
	refuse("ro=1", "ro: takes no value");
	refuse("meta=yes", "meta: takes no value");
	refuse("statfs_percent=101", "must be from 0 to 100");
	refuse("quota_quantum=0", "must be from");
	refuse("startup_delay=0", "must be from 1 to");
	refuse("plock_ownership=2", "plock_ownership=2: must be a number from "
				    "0 to 1");
	refuse("plock_mode=both", "must be direct or group");
	refuse("drop_resources_age=", "must be a number from 1 to");
	refuse("clusterconf=x", "must be a full path");
	refuse("cache=1M", "must be from 16M");
	refuse("cache=20x", "not a size");
	refuse("cache=20MB", "not a size");
	refuse("cache=9999999T", "must be from");
	refuse("cache=18446744073709551615T", "must be from");
	refuse("inodes=10", "must be from");
	refuse("threads=0", "must be from");
	refuse("hostdata=jid=4294967296", "jid=");
	refuse("locktable=", "1 to 63");
}

static void test_too_long(void **state)
{
	char *text = malloc(OPTIONS_LEN_MAX + 2);

	assert_non_null(text);
	memset(text, ',', OPTIONS_LEN_MAX + 1);
	text[OPTIONS_LEN_MAX + 1] = '\0';
	refuse(text, "characters");
	free(text);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_defaults),
		cmocka_unit_test(test_generic_flags),
		cmocka_unit_test(test_flags_reach_the_file_system),
		cmocka_unit_test(test_gfs2_values),
		cmocka_unit_test(test_lock_strings),
		cmocka_unit_test(test_own_options),
		cmocka_unit_test(test_without_effect),
		cmocka_unit_test(test_unknown_is_named),
		cmocka_unit_test(test_refused_by_a_sentence),
		cmocka_unit_test(test_values_are_checked),
		cmocka_unit_test(test_too_long),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
