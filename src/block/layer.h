/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * layer.h - what the devices that tests put on top of others share.
 *
 * A layer owns the device below from the moment it has been opened with
 * success; blkdev_close() of the layer closes both, and ends the life of the
 * handle through which the test controls it.
 */
#ifndef UG_BLOCK_LAYER_H
#define UG_BLOCK_LAYER_H

#include "block/block.h"

/* Kinds of requests, to be combined. */
#define LAYER_READ 0x1u
#define LAYER_WRITE 0x2u
#define LAYER_FLUSH 0x4u
#define LAYER_ALL (LAYER_READ | LAYER_WRITE | LAYER_FLUSH)

/* Make dev, zeroed before, a layer over lower: same size, same sectors. */
static inline void layer_init(struct blkdev *dev, const struct blkdev_ops *ops,
			      struct blkdev *lower, const char *name)
{
	dev->ops = ops;
	dev->size_bytes = lower->size_bytes;
	dev->sector_bytes = lower->sector_bytes;
	dev->readonly = lower->readonly;
	dev->is_blockdev = lower->is_blockdev;
	dev->lower = lower;
	dev->name = name;
}

static inline uint64_t layer_iov_bytes(const struct iovec *iov, int iovcnt)
{
	uint64_t total = 0;

	for (int i = 0; i < iovcnt; i++)
		total += iov[i].iov_len;
	return total;
}

#endif
