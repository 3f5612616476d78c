/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * memory.c - a device in memory, for tests.
 *
 * One private mapping without reserved swap: pages come into being when they
 * are written, so a device of a terabyte costs nothing. Requests copy without
 * a lock; overlapping ones at the same time give either content, byte by
 * byte, as a disk would sector by sector.
 */
#include <errno.h>
#include <string.h>
#include <sys/mman.h>

#include "block/block.h"

struct memdev {
	struct blkdev dev;
	char *mem;
};

static struct memdev *memdev_of(struct blkdev *dev)
{
	return ug_container_of(dev, struct memdev, dev);
}

static int mem_readv(struct blkdev *dev, const struct iovec *iov, int iovcnt,
		     uint64_t offset_bytes)
{
	const char *from = memdev_of(dev)->mem + offset_bytes;

	for (int i = 0; i < iovcnt; i++) {
		memcpy(iov[i].iov_base, from, iov[i].iov_len);
		from += iov[i].iov_len;
	}
	return 0;
}

static int mem_writev(struct blkdev *dev, const struct iovec *iov, int iovcnt,
		      uint64_t offset_bytes, unsigned flags)
{
	char *to = memdev_of(dev)->mem + offset_bytes;

	for (int i = 0; i < iovcnt; i++) {
		memcpy(to, iov[i].iov_base, iov[i].iov_len);
		to += iov[i].iov_len;
	}
	return 0;
}

static int mem_flush(struct blkdev *dev)
{
	return 0;
}

static void mem_close(struct blkdev *dev)
{
	struct memdev *mdev = memdev_of(dev);

	munmap(mdev->mem, dev->size_bytes);
	free(mdev);
}

static const struct blkdev_ops mem_ops = {
	.readv = mem_readv,
	.writev = mem_writev,
	.flush = mem_flush,
	.close = mem_close,
};

int blkdev_open_memory(uint64_t size_bytes, uint32_t sector_bytes,
		       struct blkdev **devp)
{
	struct memdev *mdev;

	if (sector_bytes < 512 || sector_bytes > BLKDEV_ALIGN ||
	    (sector_bytes & (sector_bytes - 1)) || !size_bytes ||
	    (size_bytes & (sector_bytes - 1)))
		return -EINVAL;
	mdev = calloc(1, sizeof(*mdev));
	if (!mdev)
		return -ENOMEM;
	mdev->mem = mmap(NULL, size_bytes, PROT_READ | PROT_WRITE,
			 MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (mdev->mem == MAP_FAILED) {
		free(mdev);
		return -ENOMEM;
	}
	mdev->dev.ops = &mem_ops;
	mdev->dev.size_bytes = size_bytes;
	mdev->dev.sector_bytes = sector_bytes;
	mdev->dev.name = "memory";
	*devp = &mdev->dev;
	return 0;
}
