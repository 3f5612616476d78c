/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * device.c - what all block devices share: checks, the stop flag, closing.
 *
 * Callers come here, never to the operations of a device, so that every layer
 * of a stack sees aligned requests inside the device only, and a shut layer
 * lets no write through:
 *
 *   blkdev_writev -> check -> shut? -> ops->writev (a layer) -> blkdev_writev
 *                 -> check -> shut? -> ops->writev (the file) -> pwritev2
 */
#include <errno.h>
#include <stdlib.h>

#include "block/block.h"

/*
 * The bytes that iov describes, or -EINVAL when one piece is not made of whole
 * aligned sectors, or the sum is not a valid length.
 */
static int iov_total(const struct blkdev *dev, const struct iovec *iov,
		     int iovcnt, uint64_t *total_bytes)
{
	uint64_t mask = dev->sector_bytes - 1;
	uint64_t total = 0;

	if (iovcnt < 0)
		return -EINVAL;
	for (int i = 0; i < iovcnt; i++) {
		if (((uintptr_t)iov[i].iov_base | iov[i].iov_len) & mask)
			return -EINVAL;
		if (__builtin_add_overflow(total, iov[i].iov_len, &total))
			return -EINVAL;
	}
	*total_bytes = total;
	return 0;
}

/* 1: there is something to do; 0: nothing; -EINVAL. */
static int check_request(const struct blkdev *dev, const struct iovec *iov,
			 int iovcnt, uint64_t offset_bytes)
{
	uint64_t total;
	int err = iov_total(dev, iov, iovcnt, &total);

	if (err)
		return err;
	if (offset_bytes & (dev->sector_bytes - 1))
		return -EINVAL;
	if (offset_bytes > dev->size_bytes ||
	    total > dev->size_bytes - offset_bytes)
		return -EINVAL;
	return total != 0;
}

static bool is_shut(struct blkdev *dev)
{
	return atomic_load_explicit(&dev->shut, memory_order_acquire);
}

int blkdev_readv(struct blkdev *dev, const struct iovec *iov, int iovcnt,
		 uint64_t offset_bytes)
{
	int todo = check_request(dev, iov, iovcnt, offset_bytes);

	if (todo <= 0)
		return todo;
	return dev->ops->readv(dev, iov, iovcnt, offset_bytes);
}

int blkdev_writev(struct blkdev *dev, const struct iovec *iov, int iovcnt,
		  uint64_t offset_bytes, unsigned flags)
{
	int todo = check_request(dev, iov, iovcnt, offset_bytes);

	if (todo < 0)
		return todo;
	if (dev->readonly)
		return -EROFS;
	if (is_shut(dev))
		return -EIO;
	if (!todo)
		return 0;
	return dev->ops->writev(dev, iov, iovcnt, offset_bytes, flags);
}

int blkdev_read(struct blkdev *dev, void *buf, uint64_t len_bytes,
		uint64_t offset_bytes)
{
	struct iovec iov = { .iov_base = buf, .iov_len = len_bytes };

	return blkdev_readv(dev, &iov, 1, offset_bytes);
}

int blkdev_write(struct blkdev *dev, const void *buf, uint64_t len_bytes,
		 uint64_t offset_bytes, unsigned flags)
{
	/* An iovec has no const; no device writes to what it is to store. */
	struct iovec iov = { .iov_base = (void *)buf, .iov_len = len_bytes };

	return blkdev_writev(dev, &iov, 1, offset_bytes, flags);
}

int blkdev_flush(struct blkdev *dev)
{
	if (is_shut(dev))
		return -EIO;
	/* Nothing of ours can be in its cache. */
	if (dev->readonly)
		return 0;
	return dev->ops->flush(dev);
}

void blkdev_shut(struct blkdev *dev)
{
	for (; dev; dev = dev->lower)
		atomic_store_explicit(&dev->shut, true, memory_order_release);
}

void blkdev_close(struct blkdev *dev)
{
	while (dev) {
		struct blkdev *lower = dev->lower;

		dev->ops->close(dev);
		dev = lower;
	}
}

void *blkdev_alloc(size_t len_bytes)
{
	void *mem = NULL;

	if (posix_memalign(&mem, BLKDEV_ALIGN, len_bytes))
		return NULL;
	return mem;
}
