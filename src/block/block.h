/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * block.h - a block device: positioned synchronous reads and writes, flush.
 *
 * Devices stack: a layer for tests records, fails, delays or cuts what
 * passes through it. All calls are safe from many threads at once and
 * return when the system call has returned; nothing is queued, so that a
 * process that has died has no I/O under way (DESIGN D8).
 *
 * Buffers, lengths and offsets given to a device are multiples of
 * sector_bytes, buffers aligned to it (4096 is always enough). Transfers
 * are whole or fail: short counts of the system are continued.
 * Ownership: blkdev_close() releases the device and the devices below it.
 */
#ifndef UG_BLOCK_BLOCK_H
#define UG_BLOCK_BLOCK_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/uio.h>

#include "base/compiler.h"

#define BLKDEV_ALIGN 4096u

/* With a write: return only when these bytes are on stable media. */
#define BLK_FUA 0x1u

struct blkdev;

/*
 * What a kind of device does. Called only by the functions below, with
 * arguments that have been checked; close() releases this layer alone.
 */
struct blkdev_ops {
	int (*readv)(struct blkdev *dev, const struct iovec *iov, int iovcnt,
		     uint64_t offset_bytes);
	int (*writev)(struct blkdev *dev, const struct iovec *iov, int iovcnt,
		      uint64_t offset_bytes, unsigned flags);
	int (*flush)(struct blkdev *dev);
	void (*close)(struct blkdev *dev);
};

struct blkdev {
	const struct blkdev_ops *ops;
	uint64_t size_bytes;
	uint32_t sector_bytes; /* logical sector: unit of alignment */
	bool readonly;
	bool is_blockdev; /* a block special file, not an image */
	/* Set by blkdev_shut(): every write and flush fails, -EIO. */
	atomic_bool shut;
	struct blkdev *lower; /* the device below a layer, owned; else NULL */
	const char *name;     /* for messages; owned by the device */
};

/* How blkdev_open_file() opens. */
#define BLK_OPEN_READONLY 0x1u
/*
 * Take an open file description lock on an image file (exclusive; shared with
 * BLK_OPEN_READONLY), or O_EXCL on a block device, held until close, so that
 * a second user of ours is refused: -EBUSY.
 */
#define BLK_OPEN_EXCL 0x2u
/*
 * An image that several mounts of this host use at once, as the nodes of a
 * cluster that they are: each says so, and none may have it with BLK_OPEN_EXCL.
 * Nothing for a block device.
 */
#define BLK_OPEN_SHARED 0x4u

/*
 * Open a block special file or an image on a local file system, O_DIRECT,
 * CLOEXEC. Returns 0; -EBUSY in use; -ENOTBLK neither a regular file nor a
 * block device; -EREMOTE an image on a network, cluster or FUSE file system;
 * -EROFS write-protected; -EOPNOTSUPP sectors larger than BLKDEV_ALIGN;
 * -ENOMEM; or the errno of open(2) (-EINVAL: no O_DIRECT there). The size is
 * that of now, rounded down to whole sectors.
 */
int blkdev_open_file(const char *path, unsigned flags, struct blkdev **devp);

/*
 * Only the lock on an image that blkdev_open_file() with these flags would
 * take. Returns a descriptor that holds it until it is closed; -EBUSY in use;
 * or the errno of open(2).
 */
int blkdev_lock_image(const char *path, unsigned flags);

/*
 * A device in memory, zeroed, for tests. sector_bytes: a power of two from 512
 * to BLKDEV_ALIGN, else -EINVAL. Sparse: memory is used by what is written.
 */
int blkdev_open_memory(uint64_t size_bytes, uint32_t sector_bytes,
		       struct blkdev **devp);

/*
 * All of [offset, offset + sum of iov), or an error after which any part may
 * have been transferred: -EIO; -ENOSPC an image that cannot grow into a hole;
 * -EINVAL unaligned, or beyond the end; -EROFS; -ENOMEM.
 */
int blkdev_readv(struct blkdev *dev, const struct iovec *iov, int iovcnt,
		 uint64_t offset_bytes);
int blkdev_writev(struct blkdev *dev, const struct iovec *iov, int iovcnt,
		  uint64_t offset_bytes, unsigned flags);
int blkdev_read(struct blkdev *dev, void *buf, uint64_t len_bytes,
		uint64_t offset_bytes);
int blkdev_write(struct blkdev *dev, const void *buf, uint64_t len_bytes,
		 uint64_t offset_bytes, unsigned flags);

/*
 * Everything whose write returned before this call is on stable media. 0 or
 * -EIO. After an error it is unknown what is there: calling again proves
 * nothing.
 */
int blkdev_flush(struct blkdev *dev);

/*
 * Emergency stop: from now on writes and flushes return -EIO, at every layer
 * and for good. A call already in the kernel is not recalled. Async-signal-
 * safe, takes no lock. Used by withdraw and by failed assertions.
 */
void blkdev_shut(struct blkdev *dev);

/* The device and all below it; nothing may be under way. NULL is accepted. */
void blkdev_close(struct blkdev *dev);

/* BLKDEV_ALIGN-aligned memory; NULL if there is none. Released by free(). */
void *blkdev_alloc(size_t len_bytes);

#endif
