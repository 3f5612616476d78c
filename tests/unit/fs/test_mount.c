/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * test_mount.c - mounting and unmounting volumes of every geometry changes
 * nothing that fsck.gfs2 could complain about; what cannot be mounted is
 * refused with a sentence and not written to.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "block/block.h"
#include "tests/unit/fs/volume.h"

static const struct volume_geometry geometries[] = {
	{ .bsize = 4096, .journals = 1 },
	{ .bsize = 4096, .journals = 8, .size_mib = 256 },
	{ .bsize = 2048, .journals = 2, .format = 1801 },
	{ .bsize = 1024, .journals = 3 },
	{ .bsize = 512, .journals = 2, .format = 1801 },
};

static void test_geometries(void **state)
{
	unsigned i;

	for (i = 0; i < UG_ARRAY_SIZE(geometries); i++) {
		struct fs_statfs sf;
		struct volume v;

		volume_make(&v, &geometries[i]);
		volume_mount(&v);
		fs_statfs(v.fs, &sf);
		assert_int_equal(sf.bsize, geometries[i].bsize);
		assert_true(sf.bfree > 0 && sf.bfree < sf.blocks);
		volume_unmount(&v);
		volume_fsck(&v);
		volume_mount(&v);
		volume_crash(&v);
		volume_fsck(&v);
		volume_remove(&v);
	}
}

static void test_root_attributes(void **state)
{
	struct volume_geometry g = { 0 };
	struct fs_attr attr;
	struct inode *root;
	struct volume v;

	volume_make(&v, &g);
	volume_mount(&v);
	root = fs_inode_get(v.fs, FS_ROOT_NODEID);
	assert_non_null(root);
	assert_int_equal(fs_getattr(&volume_req, root, &attr), 0);
	assert_int_equal(attr.mode, 040755);
	assert_int_equal(attr.nlink, 2);
	inode_put(root);
	volume_unmount(&v);
	volume_remove(&v);
}

static void wake_nothing(void *arg, enum fs_work work)
{
}

static const struct fs_host_ops no_host = { .wake = wake_nothing };

/* Mount a device in memory with these bytes at the superblock's place. */
static int mount_bytes(const void *sb, size_t len, char *why, size_t why_len)
{
	struct fs_params params = { .who = "test", .host = &no_host };
	struct blkdev *dev;
	struct fs *fs;
	char *block = blkdev_alloc(4096);
	int err;

	fs_options_init(&params.opt);
	memset(block, 0, 4096);
	memcpy(block, sb, len);
	assert_int_equal(blkdev_open_memory(8 << 20, 512, &dev), 0);
	assert_int_equal(blkdev_write(dev, block, 4096, 65536, 0), 0);
	params.dev = dev;
	err = fs_mount(&params, &fs, why, why_len);
	blkdev_close(dev);
	free(block);
	return err;
}

static void test_not_a_volume(void **state)
{
	char why[300] = "";

	assert_int_equal(mount_bytes("hello", 5, why, sizeof(why)), -EINVAL);
	assert_true(strlen(why) > 20);
}

static void test_lock_dlm_is_refused(void **state)
{
	struct volume_geometry g = { 0 };
	char cmd[200], why[300] = "";
	struct volume v;
	struct fs_params params = { .who = "test", .host = &no_host };
	struct fs *fs;

	volume_make(&v, &g);
	snprintf(cmd, sizeof(cmd),
		 "mkfs.gfs2 -O -q -p lock_dlm -t a:b -j 1 -J 8 %s >/dev/null",
		 v.path);
	assert_int_equal(system(cmd), 0);
	assert_int_equal(blkdev_open_file(v.path, BLK_OPEN_EXCL, &params.dev),
			 0);
	fs_options_init(&params.opt);
	assert_int_equal(fs_mount(&params, &fs, why, sizeof(why)), -ENOTSUP);
	assert_non_null(strstr(why, "lock_dlm"));
	params.opt.lockproto = "lock_nolock";
	assert_int_equal(fs_mount(&params, &fs, why, sizeof(why)), -ENOTSUP);
	assert_non_null(strstr(why, "force"));
	params.opt.force = true;
	assert_int_equal(fs_mount(&params, &fs, why, sizeof(why)), 0);
	assert_int_equal(fs_unmount(fs), 0);
	blkdev_close(params.dev);
	volume_remove(&v);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_geometries),
		cmocka_unit_test(test_root_attributes),
		cmocka_unit_test(test_not_a_volume),
		cmocka_unit_test(test_lock_dlm_is_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
