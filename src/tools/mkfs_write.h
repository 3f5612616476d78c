/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * mkfs_write.h - a planned volume onto a device.
 */
#ifndef UG_TOOLS_MKFS_WRITE_H
#define UG_TOOLS_MKFS_WRITE_H

#include "block/block.h"
#include "tools/mkfs_image.h"

/* Called now and then while blocks are written; the last time with all. */
struct mkfs_progress {
	void (*report)(void *arg, uint64_t done, uint64_t total);
	void *arg;
};

/*
 * Write the volume. result is that of a trial, mkfs_make_volume() without
 * sink, and is not changed. progress may be NULL.
 *
 * Returns 0 when everything is on stable media. After an error (of the device,
 * or -ENOMEM) there is neither the old volume nor a new one, unless the error
 * is -ENOMEM before the first write: *begun tells.
 */
int mkfs_write_volume(struct blkdev *dev, const struct mkfs_plan *plan,
		      const struct mkfs_identity *identity,
		      const struct mkfs_result *result,
		      const struct mkfs_progress *progress, bool *begun);

#endif
