/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * file.c - a block special file, or an image on a local file system.
 *
 * Every request is one or more positioned system calls on an O_DIRECT
 * descriptor, made by the calling thread and over when it returns: the kernel
 * keeps nothing of ours in flight that outlives the process (DESIGN D8). A
 * page cache of the device would hold what other nodes have overwritten
 * (docs/spec/glocks.md 10.6), hence O_DIRECT also for reads.
 *
 * Images of network, cluster and FUSE file systems are refused: their writes
 * may land after the death of the process, from a server or another daemon.
 */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/fs.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/vfs.h>

#include "base/log.h"
#include "block/block.h"

#define SECTOR_BYTES_MIN 512u
/* A device that is dying fails every request; the log needs a few of them. */
#define ERRORS_LOGGED_MAX 16u

struct filedev {
	struct blkdev dev;
	int fd;
	char *name;
	atomic_bool no_dsync; /* RWF_DSYNC is not known here, or no good */
	atomic_uint errors;   /* of requests, for ERRORS_LOGGED_MAX */
};

/* Where a transfer stands: skip bytes of iov[0] are done. */
struct xfer {
	const struct iovec *iov;
	int iovcnt;
	size_t skip;
	uint64_t offset_bytes;
};

static struct filedev *filedev_of(struct blkdev *dev)
{
	return ug_container_of(dev, struct filedev, dev);
}

/* The few codes that callers can act on; the rest is a device that failed. */
static int request_error(int err)
{
	switch (err) {
	case ENOSPC:
	case EDQUOT:
		return -ENOSPC;
	case EINVAL:
		return -EINVAL;
	case ENOMEM:
		return -ENOMEM;
	default:
		return -EIO;
	}
}

static int request_failed(struct filedev *fdev, const char *what,
			  uint64_t offset_bytes, int err)
{
	unsigned seen = atomic_fetch_add(&fdev->errors, 1);

	if (seen < ERRORS_LOGGED_MAX)
		ug_error(fdev->name, "%s at byte %llu: %s", what,
			 (unsigned long long)offset_bytes, strerror(err));
	if (seen + 1 == ERRORS_LOGGED_MAX)
		ug_error(fdev->name, "further errors are not logged");
	return request_error(err);
}

/*
 * The pieces that the next system call takes: the rest of a piece that a short
 * count has cut goes alone, so that the caller's array is used as it is.
 */
static const struct iovec *xfer_next(const struct xfer *x, struct iovec *cut,
				     int *iovcnt)
{
	if (!x->skip) {
		*iovcnt = UG_MIN(x->iovcnt, IOV_MAX);
		return x->iov;
	}
	cut->iov_base = (char *)x->iov->iov_base + x->skip;
	cut->iov_len = x->iov->iov_len - x->skip;
	*iovcnt = 1;
	return cut;
}

static void xfer_advance(struct xfer *x, size_t done)
{
	x->offset_bytes += done;
	done += x->skip;
	while (x->iovcnt && done >= x->iov->iov_len) {
		done -= x->iov->iov_len;
		x->iov++;
		x->iovcnt--;
	}
	x->skip = done;
}

/*
 * Account for what a system call returned. A short count that ends inside a
 * sector is taken back to its start, to keep the next call aligned. 0, or the
 * positive errno.
 */
static int xfer_result(const struct filedev *fdev, struct xfer *x, ssize_t n)
{
	if (n < 0)
		return errno == EINTR ? 0 : errno;
	n &= ~(ssize_t)(fdev->dev.sector_bytes - 1);
	/* The image has shrunk below the size that it had when opened. */
	if (!n)
		return EIO;
	xfer_advance(x, (size_t)n);
	return 0;
}

static int file_readv(struct blkdev *dev, const struct iovec *iov, int iovcnt,
		      uint64_t offset_bytes)
{
	struct filedev *fdev = filedev_of(dev);
	struct xfer x = { iov, iovcnt, 0, offset_bytes };

	while (x.iovcnt) {
		struct iovec cut;
		int cnt, err;
		const struct iovec *next = xfer_next(&x, &cut, &cnt);

		err = xfer_result(
			fdev, &x,
			preadv(fdev->fd, next, cnt, (off_t)x.offset_bytes));
		if (err)
			return request_failed(fdev, "read", x.offset_bytes,
					      err);
	}
	return 0;
}

/* One system call; with RWF_DSYNC where that is of use. */
static ssize_t write_once(struct filedev *fdev, const struct iovec *iov,
			  int iovcnt, uint64_t offset_bytes, bool fua)
{
	if (fua && !atomic_load(&fdev->no_dsync)) {
		ssize_t n = pwritev2(fdev->fd, iov, iovcnt, (off_t)offset_bytes,
				     RWF_DSYNC);

		if (n >= 0 || (errno != EOPNOTSUPP && errno != ENOSYS))
			return n;
		atomic_store(&fdev->no_dsync, true);
	}
	return pwritev(fdev->fd, iov, iovcnt, (off_t)offset_bytes);
}

static int file_flush(struct blkdev *dev)
{
	struct filedev *fdev = filedev_of(dev);
	int ret;

	/* fdatasync() of an image writes the mappings that the data needs. */
	if (dev->is_blockdev)
		ret = fsync(fdev->fd);
	else
		ret = fdatasync(fdev->fd);
	if (ret)
		return request_failed(fdev, "flush", 0, errno);
	return 0;
}

static int file_writev(struct blkdev *dev, const struct iovec *iov, int iovcnt,
		       uint64_t offset_bytes, unsigned flags)
{
	struct filedev *fdev = filedev_of(dev);
	struct xfer x = { iov, iovcnt, 0, offset_bytes };
	bool fua = flags & BLK_FUA;

	while (x.iovcnt) {
		struct iovec cut;
		int cnt, err;
		const struct iovec *next = xfer_next(&x, &cut, &cnt);

		err = xfer_result(
			fdev, &x,
			write_once(fdev, next, cnt, x.offset_bytes, fua));
		if (err)
			return request_failed(fdev, "write", x.offset_bytes,
					      err);
	}
	/* Also when only the last of several went without RWF_DSYNC. */
	if (fua && atomic_load(&fdev->no_dsync))
		return file_flush(dev);
	return 0;
}

static void file_close(struct blkdev *dev)
{
	struct filedev *fdev = filedev_of(dev);

	close(fdev->fd);
	free(fdev->name);
	free(fdev);
}

static const struct blkdev_ops file_ops = {
	.readv = file_readv,
	.writev = file_writev,
	.flush = file_flush,
	.close = file_close,
};

/*
 * File systems whose files do not lie on a disk of this machine alone. The
 * numbers are the kernel's (statfs(2)); <linux/magic.h> has not all of them.
 */
static const struct {
	uint32_t magic;
	const char *name;
} remote_fs[] = {
	{ 0x6969, "nfs" },	  { 0x517b, "smb" },
	{ 0xff534d42, "cifs" },	  { 0xfe534d42, "smb2" },
	{ 0x65735546, "fuse" },	  { 0x00c36400, "ceph" },
	{ 0x5346414f, "afs" },	  { 0x6b414653, "kafs" },
	{ 0x73757245, "coda" },	  { 0x01021997, "9p" },
	{ 0x564c, "ncp" },	  { 0x01161970, "gfs2" },
	{ 0x7461636f, "ocfs2" },  { 0x0bd00bd0, "lustre" },
	{ 0x47504653, "gpfs" },	  { 0x20030528, "orangefs" },
	{ 0x786f4256, "vboxsf" }, { 0xbacbacbc, "vmhgfs" },
	{ 0x19830326, "beegfs" },
};

static int image_check_local(int fd, const char *path)
{
	struct statfs st;

	if (fstatfs(fd, &st))
		return -errno;
	for (size_t i = 0; i < UG_ARRAY_SIZE(remote_fs); i++) {
		if ((uint32_t)st.f_type != remote_fs[i].magic)
			continue;
		ug_error(path, "image lies on a %s file system, not on a disk",
			 remote_fs[i].name);
		return -EREMOTE;
	}
	return 0;
}

/*
 * The smallest aligned read that the kernel takes, for kernels whose statx
 * does not tell (before 6.1). An empty image says nothing: 512.
 */
static uint32_t image_probe_sector(int fd)
{
	uint32_t sector_bytes = SECTOR_BYTES_MIN;
	char *mem = blkdev_alloc(2 * BLKDEV_ALIGN);

	/* Offset the memory as well: its alignment counts like the offset's. */
	while (mem && sector_bytes < BLKDEV_ALIGN &&
	       pread(fd, mem + sector_bytes, sector_bytes, sector_bytes) < 0 &&
	       errno == EINVAL)
		sector_bytes *= 2;
	free(mem);
	return sector_bytes;
}

static uint32_t image_sector(int fd)
{
#ifdef STATX_DIOALIGN
	struct statx stx;

	if (!statx(fd, "", AT_EMPTY_PATH, STATX_DIOALIGN, &stx) &&
	    (stx.stx_mask & STATX_DIOALIGN) && stx.stx_dio_offset_align) {
		uint32_t align =
			UG_MAX(stx.stx_dio_mem_align, stx.stx_dio_offset_align);

		return UG_MAX(align, SECTOR_BYTES_MIN);
	}
#endif
	return image_probe_sector(fd);
}

/*
 * An open file description lock belongs to our descriptor, not to the
 * process: it stays when a library opens and closes the same file.
 */
static int lock_bytes(int fd, short type, off_t start, off_t len)
{
	struct flock fl = {
		.l_type = type,
		.l_whence = SEEK_SET,
		.l_start = start,
		.l_len = len,
	};

	if (!fcntl(fd, F_OFD_SETLK, &fl))
		return 0;
	return errno == EAGAIN || errno == EACCES ? -EBUSY : -errno;
}

/* Has anybody a lock on this byte? */
static int test_byte(int fd, off_t byte)
{
	struct flock fl = {
		.l_type = F_WRLCK,
		.l_whence = SEEK_SET,
		.l_start = byte,
		.l_len = 1,
	};

	if (fcntl(fd, F_OFD_GETLK, &fl))
		return -errno;
	return fl.l_type == F_UNLCK ? 0 : -EBUSY;
}

/*
 *			byte 0	byte 1
 *	alone		write	write
 *	alone, reading	read	nobody?
 *	shared		nobody?	read
 *
 * Who is to be alone in his way locks first and looks then: of two that come
 * together at least one sees the other.
 */
static int image_lock(int fd, unsigned flags)
{
	bool shared = flags & BLK_OPEN_SHARED;
	int err;

	if (!shared && !(flags & BLK_OPEN_READONLY))
		return lock_bytes(fd, F_WRLCK, 0, 0);
	err = lock_bytes(fd, F_RDLCK, shared ? 1 : 0, 1);
	return err ? err : test_byte(fd, shared ? 0 : 1);
}

int blkdev_lock_image(const char *path, unsigned flags)
{
	bool readonly = flags & BLK_OPEN_READONLY;
	int fd = open(path, (readonly ? O_RDONLY : O_RDWR) | O_CLOEXEC);
	int err;

	if (fd < 0)
		return -errno;
	err = image_lock(fd, flags);
	if (err)
		close(fd);
	return err ? err : fd;
}

static int image_setup(struct filedev *fdev, const struct stat *st,
		       unsigned flags)
{
	int err = image_check_local(fdev->fd, fdev->name);

	if (err)
		return err;
	if (flags & (BLK_OPEN_EXCL | BLK_OPEN_SHARED)) {
		err = image_lock(fdev->fd, flags);
		if (err)
			return err;
	}
	fdev->dev.sector_bytes = image_sector(fdev->fd);
	fdev->dev.size_bytes = (uint64_t)st->st_size;
	return 0;
}

static int bdev_setup(struct filedev *fdev, unsigned flags)
{
	uint64_t size_bytes;
	int sector_bytes, readonly = 0;

	if (ioctl(fdev->fd, BLKGETSIZE64, &size_bytes) ||
	    ioctl(fdev->fd, BLKSSZGET, &sector_bytes) ||
	    ioctl(fdev->fd, BLKROGET, &readonly))
		return -errno;
	if (readonly && !(flags & BLK_OPEN_READONLY))
		return -EROFS;
	fdev->dev.sector_bytes = (uint32_t)sector_bytes;
	fdev->dev.size_bytes = size_bytes;
	fdev->dev.is_blockdev = true;
	/*
	 * On a block device the kernel flushes behind RWF_DSYNC in any case
	 * (6.18), and once more where the device has no FUA of its own.
	 */
	atomic_store(&fdev->no_dsync, true);
	return 0;
}

static int filedev_setup(struct filedev *fdev, unsigned flags)
{
	struct blkdev *dev = &fdev->dev;
	struct stat st;
	int err;

	if (fstat(fdev->fd, &st))
		return -errno;
	if (S_ISBLK(st.st_mode))
		err = bdev_setup(fdev, flags);
	else if (S_ISREG(st.st_mode))
		err = image_setup(fdev, &st, flags);
	else
		err = -ENOTBLK;
	if (err)
		return err;
	if (dev->sector_bytes < SECTOR_BYTES_MIN ||
	    dev->sector_bytes > BLKDEV_ALIGN ||
	    (dev->sector_bytes & (dev->sector_bytes - 1)))
		return -EOPNOTSUPP;
	dev->size_bytes &= ~(uint64_t)(dev->sector_bytes - 1);
	dev->readonly = flags & BLK_OPEN_READONLY;
	return 0;
}

/*
 * A write-protected block device refuses O_RDWR with EACCES or EPERM, as a
 * lack of permission does.
 */
static int bdev_open_error(const char *path, int err)
{
	ug_autoclose int fd = -1;
	int readonly = 0;

	if (err != EACCES && err != EPERM)
		return -err;
	fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	if (fd >= 0 && !ioctl(fd, BLKROGET, &readonly) && readonly)
		return -EROFS;
	return -err;
}

/* The descriptor, or -errno. */
static int open_path(const char *path, unsigned flags)
{
	int oflags = O_DIRECT | O_CLOEXEC;
	struct stat st;
	int fd;

	/* Opening something else can wait for ever (a FIFO) or act (a tape). */
	if (stat(path, &st))
		return -errno;
	if (!S_ISBLK(st.st_mode) && !S_ISREG(st.st_mode))
		return -ENOTBLK;
	oflags |= flags & BLK_OPEN_READONLY ? O_RDONLY : O_RDWR;
	if (S_ISBLK(st.st_mode) && (flags & BLK_OPEN_EXCL))
		oflags |= O_EXCL;
	fd = open(path, oflags);
	if (fd >= 0)
		return fd;
	return S_ISBLK(st.st_mode) ? bdev_open_error(path, errno) : -errno;
}

int blkdev_open_file(const char *path, unsigned flags, struct blkdev **devp)
{
	struct filedev *fdev = calloc(1, sizeof(*fdev));
	int err = -ENOMEM;

	if (!fdev)
		return -ENOMEM;
	fdev->name = strdup(path);
	if (!fdev->name)
		goto free_dev;
	fdev->dev.ops = &file_ops;
	fdev->dev.name = fdev->name;
	err = open_path(path, flags);
	if (err < 0)
		goto free_name;
	fdev->fd = err;
	err = filedev_setup(fdev, flags);
	if (err)
		goto close_fd;
	*devp = &fdev->dev;
	return 0;

close_fd:
	close(fdev->fd);
free_name:
	free(fdev->name);
free_dev:
	free(fdev);
	return err;
}
