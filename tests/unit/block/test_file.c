/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Images: what is opened and what is refused, and how requests survive a
 * system that does them in pieces, is interrupted, or lacks RWF_DSYNC.
 *
 * The system calls are replaced by the linker (--wrap) with ones that first do
 * what `sys` says. Skipped where the directory has no O_DIRECT (tmpfs).
 */
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/vfs.h>

#include <cmocka.h>

#include "base/log.h"
#include "block/block.h"

#define SIZE (1024 * 1024u)

static struct {
	uint32_t fs_magic;   /* what fstatfs reports; 0: the truth */
	size_t cut_bytes;    /* a call transfers at most so much; 0: all */
	unsigned interrupts; /* so many calls fail with EINTR first */
	int error;	     /* every call fails with it */
	bool no_dsync;
	unsigned calls;
	unsigned dsync_calls;
	unsigned syncs;
} sys;

int __real_fstatfs64(int fd, struct statfs *st);
int __wrap_fstatfs64(int fd, struct statfs *st);
ssize_t __wrap_preadv64(int fd, const struct iovec *iov, int cnt, off_t off);
ssize_t __wrap_pwritev64(int fd, const struct iovec *iov, int cnt, off_t off);
ssize_t __wrap_pwritev64v2(int fd, const struct iovec *iov, int cnt, off_t off,
			   int flags);
ssize_t __real_preadv64(int fd, const struct iovec *iov, int cnt, off_t off);
ssize_t __real_pwritev64(int fd, const struct iovec *iov, int cnt, off_t off);
int __wrap_fdatasync(int fd);

int __wrap_fstatfs64(int fd, struct statfs *st)
{
	int ret = __real_fstatfs64(fd, st);

	if (!ret && sys.fs_magic)
		st->f_type = sys.fs_magic;
	return ret;
}

/* Applies `sys`; *iov and *cnt become what is to be transferred. */
static int sys_before(const struct iovec **iov, int *cnt, struct iovec *cut)
{
	sys.calls++;
	if (sys.error) {
		errno = sys.error;
		return -1;
	}
	if (sys.interrupts) {
		sys.interrupts--;
		errno = EINTR;
		return -1;
	}
	if (sys.cut_bytes) {
		*cut = (*iov)[0];
		cut->iov_len = UG_MIN(cut->iov_len, sys.cut_bytes & ~511ul);
		*iov = cut;
		*cnt = 1;
	}
	return 0;
}

/* A cut in the middle of a sector is reported as such, though more was done. */
static ssize_t sys_after(ssize_t n)
{
	if (n > 0 && sys.cut_bytes && (size_t)n > (sys.cut_bytes & ~511ul) - 1)
		n += (ssize_t)(sys.cut_bytes & 511);
	return n;
}

ssize_t __wrap_preadv64(int fd, const struct iovec *iov, int cnt, off_t off)
{
	struct iovec cut;

	if (sys_before(&iov, &cnt, &cut))
		return -1;
	return sys_after(__real_preadv64(fd, iov, cnt, off));
}

ssize_t __wrap_pwritev64(int fd, const struct iovec *iov, int cnt, off_t off)
{
	struct iovec cut;

	if (sys_before(&iov, &cnt, &cut))
		return -1;
	return sys_after(__real_pwritev64(fd, iov, cnt, off));
}

ssize_t __wrap_pwritev64v2(int fd, const struct iovec *iov, int cnt, off_t off,
			   int flags)
{
	assert_int_equal(flags, RWF_DSYNC);
	if (sys.no_dsync) {
		errno = EOPNOTSUPP;
		return -1;
	}
	sys.dsync_calls++;
	return __wrap_pwritev64(fd, iov, cnt, off);
}

int __wrap_fdatasync(int fd)
{
	sys.syncs++;
	if (sys.error) {
		errno = sys.error;
		return -1;
	}
	return 0;
}

static char path[] = "blocktest.XXXXXX";

static int setup(void **state)
{
	int fd;

	memset(&sys, 0, sizeof(sys));
	strcpy(path, "blocktest.XXXXXX");
	fd = mkstemp(path);
	assert_true(fd >= 0);
	assert_int_equal(ftruncate(fd, SIZE + 100), 0);
	close(fd);
	return 0;
}

static int teardown(void **state)
{
	unlink(path);
	return 0;
}

static struct blkdev *open_image(unsigned flags)
{
	struct blkdev *dev;
	int err = blkdev_open_file(path, flags, &dev);

	if (err == -EINVAL)
		skip();
	assert_int_equal(err, 0);
	return dev;
}

static void test_geometry(void **state)
{
	struct blkdev *dev = open_image(0);

	assert_int_equal(dev->size_bytes, SIZE);
	assert_true(dev->sector_bytes >= 512 && dev->sector_bytes <= 4096);
	assert_false(dev->is_blockdev);
	assert_false(dev->readonly);
	assert_string_equal(dev->name, path);
	blkdev_close(dev);
}

static void test_not_a_device(void **state)
{
	struct blkdev *dev;

	assert_int_equal(blkdev_open_file("/dev/null", 0, &dev), -ENOTBLK);
	assert_int_equal(blkdev_open_file("/", 0, &dev), -ENOTBLK);
	assert_int_equal(blkdev_open_file("blocktest.none", 0, &dev), -ENOENT);
	unlink(path);
	/* Nobody ever opens the other end: this must not wait. */
	assert_int_equal(mkfifo(path, 0600), 0);
	assert_int_equal(blkdev_open_file(path, 0, &dev), -ENOTBLK);
}

static void test_remote(void **state)
{
	static const uint32_t magics[] = { 0x6969, 0xff534d42, 0x65735546 };
	struct blkdev *dev = open_image(0);

	blkdev_close(dev);
	ug_log_set_level(UG_ERROR);
	for (unsigned i = 0; i < UG_ARRAY_SIZE(magics); i++) {
		sys.fs_magic = magics[i];
		assert_int_equal(blkdev_open_file(path, 0, &dev), -EREMOTE);
	}
}

static void test_exclusive(void **state)
{
	struct blkdev *dev = open_image(BLK_OPEN_EXCL);
	struct blkdev *dev2;

	assert_int_equal(blkdev_open_file(path, BLK_OPEN_EXCL, &dev2), -EBUSY);
	assert_int_equal(blkdev_open_file(path,
					  BLK_OPEN_EXCL | BLK_OPEN_READONLY,
					  &dev2),
			 -EBUSY);
	/* Who does not ask may look (fsck -n). */
	dev2 = open_image(BLK_OPEN_READONLY);
	blkdev_close(dev2);
	/* An unrelated close of the same file has not dropped the lock. */
	assert_int_equal(blkdev_open_file(path, BLK_OPEN_EXCL, &dev2), -EBUSY);
	blkdev_close(dev);
	dev = open_image(BLK_OPEN_EXCL | BLK_OPEN_READONLY);
	dev2 = open_image(BLK_OPEN_EXCL | BLK_OPEN_READONLY);
	blkdev_close(dev);
	blkdev_close(dev2);
}

static void test_cloexec(void **state)
{
	struct blkdev *dev = open_image(0);
	bool found = false;

	for (int fd = 3; fd < 64; fd++) {
		struct stat st, st2;

		if (fstat(fd, &st) || stat(path, &st2) ||
		    st.st_ino != st2.st_ino || st.st_dev != st2.st_dev)
			continue;
		found = true;
		assert_true(fcntl(fd, F_GETFD) & FD_CLOEXEC);
		assert_true(fcntl(fd, F_GETFL) & O_DIRECT);
	}
	assert_true(found);
	blkdev_close(dev);
}

static void test_readonly(void **state)
{
	struct blkdev *dev = open_image(BLK_OPEN_READONLY);
	char *buf = blkdev_alloc(4096);

	assert_int_equal(blkdev_write(dev, buf, 4096, 0, 0), -EROFS);
	assert_int_equal(blkdev_read(dev, buf, 4096, 0), 0);
	free(buf);
	blkdev_close(dev);
}

static char *pattern(void)
{
	char *buf = blkdev_alloc(SIZE);

	for (unsigned i = 0; i < SIZE; i++)
		buf[i] = (char)(i * 13 + i / 511);
	return buf;
}

/* Pieces of uneven length over the whole image. */
static int make_iov(struct iovec *iov, char *buf)
{
	size_t len[] = { 4096, 8192, 4096, 0, 65536 };
	size_t pos = 0;
	int n = 0;

	while (pos < SIZE) {
		size_t want = UG_MIN(len[n % 5], SIZE - pos);

		iov[n].iov_base = buf + pos;
		iov[n].iov_len = want;
		pos += want;
		n++;
	}
	return n;
}

static void whole_round_trip(unsigned flags)
{
	struct blkdev *dev = open_image(0);
	char *buf = pattern(), *buf2 = blkdev_alloc(SIZE);
	struct iovec iov[1024];

	assert_int_equal(blkdev_writev(dev, iov, make_iov(iov, buf), 0, flags),
			 0);
	memset(buf2, 0, SIZE);
	assert_int_equal(blkdev_readv(dev, iov, make_iov(iov, buf2), 0), 0);
	assert_memory_equal(buf, buf2, SIZE);
	free(buf);
	free(buf2);
	blkdev_close(dev);
}

static void test_round_trip(void **state)
{
	whole_round_trip(0);
	assert_int_equal(sys.calls, 2);
	assert_int_equal(sys.syncs, 0);
}

static void test_short_counts(void **state)
{
	sys.cut_bytes = 12288;
	whole_round_trip(0);
	assert_true(sys.calls > 2 * SIZE / 65536);
}

static void test_short_inside_sector(void **state)
{
	sys.cut_bytes = 8192 + 100;
	whole_round_trip(0);
}

static void test_interrupted(void **state)
{
	sys.interrupts = 3;
	whole_round_trip(0);
	assert_int_equal(sys.calls, 5);
}

static void test_many_pieces(void **state)
{
	struct blkdev *dev = open_image(0);
	char *buf = pattern(), *buf2 = blkdev_alloc(SIZE);
	int n = SIZE / 512;
	struct iovec *iov = calloc((size_t)n, sizeof(*iov));

	if (dev->sector_bytes > 512) {
		free(buf);
		free(buf2);
		free(iov);
		blkdev_close(dev);
		skip();
	}
	/* Twice what one system call takes. */
	assert_true(n > 1024);
	for (int i = 0; i < n; i++)
		iov[i] = (struct iovec){ buf + 512 * i, 512 };
	assert_int_equal(blkdev_writev(dev, iov, n, 0, 0), 0);
	assert_int_equal(blkdev_read(dev, buf2, SIZE, 0), 0);
	assert_memory_equal(buf, buf2, SIZE);
	free(buf);
	free(buf2);
	free(iov);
	blkdev_close(dev);
}

static void test_fua(void **state)
{
	whole_round_trip(BLK_FUA);
	assert_int_equal(sys.dsync_calls, 1);
	assert_int_equal(sys.syncs, 0);
}

static void test_fua_without_dsync(void **state)
{
	sys.no_dsync = true;
	whole_round_trip(BLK_FUA);
	assert_int_equal(sys.dsync_calls, 0);
	assert_int_equal(sys.syncs, 1);
}

static void test_flush(void **state)
{
	struct blkdev *dev = open_image(0);

	assert_int_equal(blkdev_flush(dev), 0);
	assert_int_equal(sys.syncs, 1);
	sys.error = EIO;
	assert_int_equal(blkdev_flush(dev), -EIO);
	blkdev_close(dev);
}

static void test_errors(void **state)
{
	static const struct {
		int err;
		int result;
	} codes[] = {
		{ EIO, -EIO },	     { ENOSPC, -ENOSPC }, { EDQUOT, -ENOSPC },
		{ ENXIO, -EIO },     { ENODEV, -EIO },	  { EINVAL, -EINVAL },
		{ ENOMEM, -ENOMEM }, { EBADF, -EIO },
	};
	struct blkdev *dev = open_image(0);
	char *buf = pattern();

	for (unsigned i = 0; i < UG_ARRAY_SIZE(codes); i++) {
		sys.error = codes[i].err;
		assert_int_equal(blkdev_read(dev, buf, 4096, 0),
				 codes[i].result);
		assert_int_equal(blkdev_write(dev, buf, 4096, 0, 0),
				 codes[i].result);
		assert_int_equal(blkdev_write(dev, buf, 4096, 0, BLK_FUA),
				 codes[i].result);
	}
	free(buf);
	blkdev_close(dev);
}

static void test_image_shrunk(void **state)
{
	struct blkdev *dev = open_image(0);
	char *buf = pattern();

	assert_int_equal(truncate(path, SIZE / 2), 0);
	assert_int_equal(blkdev_read(dev, buf, 8192, SIZE / 2 - 4096), -EIO);
	assert_int_equal(blkdev_read(dev, buf, 4096, SIZE / 2 - 4096), 0);
	free(buf);
	blkdev_close(dev);
}

#define T(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		T(test_geometry),
		T(test_not_a_device),
		T(test_remote),
		T(test_exclusive),
		T(test_cloexec),
		T(test_readonly),
		T(test_round_trip),
		T(test_short_counts),
		T(test_short_inside_sector),
		T(test_interrupted),
		T(test_many_pieces),
		T(test_fua),
		T(test_fua_without_dsync),
		T(test_flush),
		T(test_errors),
		T(test_image_shrunk),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
