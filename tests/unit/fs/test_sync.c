/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * test_sync.c - how often the device is flushed by what makes files durable:
 * never too seldom, and not twice for one thing.
 */
#include <fcntl.h>

#include "fs/inode.h"
#include "tests/unit/fs/names.h"

static const struct blkdev_ops *file_ops;
static struct blkdev_ops counting_ops;
static atomic_uint flushes;

/* Another thread makes this inode durable while the device is being flushed. */
static struct inode *within_flush;

static int counting_flush(struct blkdev *dev)
{
	struct inode *ip = within_flush;

	within_flush = NULL;
	if (ip)
		assert_int_equal(fs_fsync(&volume_req, ip, true), 0);
	atomic_fetch_add(&flushes, 1);
	return file_ops->flush(dev);
}

/* The times of this inode are made durable before the next write. */
static struct inode *before_write;

static int counting_writev(struct blkdev *dev, const struct iovec *iov,
			   int iovcnt, uint64_t offset_bytes, unsigned flags)
{
	struct inode *ip = before_write;

	before_write = NULL;
	if (ip) {
		assert_int_equal(inode_write_times(ip, false), 0);
		assert_int_equal(
			journal_flush(ip->i_fs->fs_journal, UINT64_MAX), 0);
	}
	return file_ops->writev(dev, iov, iovcnt, offset_bytes, flags);
}

/* A volume with one file of a block, everything of it durable. */
static struct inode *begin(struct volume *v)
{
	static char block[4096] __attribute__((aligned(4096)));
	struct inode *ip;

	volume_make(v, &(struct volume_geometry){ 0 });
	/* Nothing is written but by the test. */
	v->opt.commit_sec = 3600;
	v->opt.statfs_quantum_sec = 3600;
	volume_mount(v);
	file_ops = v->dev->ops;
	counting_ops = *file_ops;
	counting_ops.flush = counting_flush;
	counting_ops.writev = counting_writev;
	v->dev->ops = &counting_ops;

	ip = node(v, make_file(v, ROOT, "file"));
	assert_int_equal(fs_open(&volume_req, ip, O_RDWR), 0);
	assert_int_equal(fs_write(&volume_req, ip, block, 4096, 0, 0), 4096);
	assert_int_equal(fs_sync(v->fs), 0);
	atomic_store(&flushes, 0);
	return ip;
}

static void end(struct volume *v, struct inode *ip)
{
	fs_release(ip, O_RDWR);
	inode_put(ip);
	volume_unmount(v);
	volume_fsck(v);
	volume_remove(v);
}

static void overwrite(struct inode *ip, unsigned io_flags)
{
	static char block[4096] __attribute__((aligned(4096)));

	memset(block, 'x', sizeof(block));
	assert_int_equal(fs_write(&volume_req, ip, block, 4096, 0, io_flags),
			 4096);
}

/*
 * While a direct write is on its way, write-back logs the times and a flush of
 * the log begins and ends: the data is not covered by it, though no transaction
 * is left.
 */
static void test_direct_overwrite(void **state)
{
	struct volume v;
	struct inode *ip = begin(&v);

	before_write = ip;
	overwrite(ip, FS_IO_DIRECT);
	assert_null(before_write);
	atomic_store(&flushes, 0);
	assert_int_equal(fs_fsync(&volume_req, ip, true), 0);
	assert_int_equal(atomic_load(&flushes), 1);
	assert_int_equal(fs_fsync(&volume_req, ip, true), 0);
	assert_int_equal(atomic_load(&flushes), 1);
	end(&v, ip);
}

/* Who comes while the first flush is under way must not take it for his. */
static void test_two_at_once(void **state)
{
	struct volume v;
	struct inode *ip = begin(&v);

	before_write = ip;
	overwrite(ip, FS_IO_DIRECT);
	atomic_store(&flushes, 0);
	within_flush = ip;
	assert_int_equal(fs_fsync(&volume_req, ip, true), 0);
	assert_null(within_flush);
	assert_int_equal(atomic_load(&flushes), 2);
	end(&v, ip);
}

static void test_direct_overwrite_sync(void **state)
{
	struct volume v;
	struct inode *ip = begin(&v);

	before_write = ip;
	overwrite(ip, FS_IO_DIRECT);
	atomic_store(&flushes, 0);
	assert_int_equal(fs_sync(v.fs), 0);
	assert_int_equal(atomic_load(&flushes), 1);
	end(&v, ip);
}

/* Data and times: one flush of the device between log and header. */
static void test_overwrite(void **state)
{
	struct volume v;
	struct inode *ip = begin(&v);

	overwrite(ip, 0);
	assert_int_equal(fs_fsync(&volume_req, ip, false), 0);
	assert_int_equal(atomic_load(&flushes), 1);
	overwrite(ip, 0);
	assert_int_equal(fs_fsync(&volume_req, ip, true), 0);
	assert_int_equal(atomic_load(&flushes), 2);
	end(&v, ip);
}

static void test_overwrite_sync(void **state)
{
	struct volume v;
	struct inode *ip = begin(&v);

	overwrite(ip, 0);
	assert_int_equal(fs_sync(v.fs), 0);
	assert_int_equal(atomic_load(&flushes), 1);
	end(&v, ip);
}

/* Without barriers the log does not flush the device: sync does. */
static void test_nobarrier_sync(void **state)
{
	struct volume v;
	struct inode *ip = begin(&v);

	fs_release(ip, O_RDWR);
	inode_put(ip);
	v.dev->ops = file_ops;
	volume_unmount(&v);
	v.opt.barriers = false;
	volume_mount(&v);
	v.dev->ops = &counting_ops;
	assert_int_equal(make_as(&v, ROOT, "new", S_IFREG | 0600, NULL), 0);
	atomic_store(&flushes, 0);
	assert_int_equal(fs_sync(v.fs), 0);
	assert_int_equal(atomic_load(&flushes), 1);
	v.dev->ops = file_ops;
	volume_unmount(&v);
	volume_fsck(&v);
	volume_remove(&v);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_direct_overwrite),
		cmocka_unit_test(test_two_at_once),
		cmocka_unit_test(test_direct_overwrite_sync),
		cmocka_unit_test(test_overwrite),
		cmocka_unit_test(test_overwrite_sync),
		cmocka_unit_test(test_nobarrier_sync),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
