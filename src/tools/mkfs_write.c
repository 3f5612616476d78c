/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * mkfs_write.c - a planned volume onto a device.
 *
 * Order: first everything up to and including the place of the superblock is
 * zeroed, so that nobody takes what follows for the old volume; then all
 * blocks, then, when they are on stable media, the superblock. A crash in
 * between leaves a device that is nothing.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/assert.h"
#include "tools/mkfs_write.h"

#define BUFFER_BYTES (1u << 20)

/* Collects blocks that follow each other into one write. */
struct writer {
	struct blkdev *dev;
	uint32_t bsize;
	char *buffer;
	uint64_t addr;	/* of the first block in the buffer */
	uint32_t count; /* blocks in it */
	uint64_t done, total;
	const struct mkfs_progress *progress;
};

static int writer_flush(struct writer *w)
{
	int err;

	if (w->count == 0)
		return 0;
	err = blkdev_write(w->dev, w->buffer, (uint64_t)w->count * w->bsize,
			   w->addr * w->bsize, 0);
	w->done += w->count;
	w->count = 0;
	if (!err && w->progress)
		w->progress->report(w->progress->arg, w->done, w->total);
	return err;
}

static int writer_put(void *arg, uint64_t addr, const void *block)
{
	struct writer *w = arg;
	int err = 0;

	if (addr != w->addr + w->count ||
	    (uint64_t)w->count * w->bsize == BUFFER_BYTES)
		err = writer_flush(w);
	if (err)
		return err;
	if (w->count == 0)
		w->addr = addr;
	memcpy(w->buffer + (uint64_t)w->count * w->bsize, block, w->bsize);
	w->count++;
	return 0;
}

/* Blocks that will pass through the sink: all used ones, and the groups' own.
 */
static uint64_t count_blocks(const struct mkfs_plan *plan,
			     const struct mkfs_result *result)
{
	uint64_t blocks =
		(uint64_t)(result->totals.total - result->totals.free);

	for (uint32_t g = 0; g < plan->group_count; g++)
		blocks += plan->groups[g].length;
	return blocks;
}

/* Whatever was found there before, including its superblock, is gone now. */
static int wipe_start(struct writer *w)
{
	uint64_t bytes = GFS2_SB_OFFSET_BYTES + (uint64_t)w->bsize;
	int err;

	memset(w->buffer, 0, bytes);
	err = blkdev_write(w->dev, w->buffer, bytes, 0, 0);
	return err ? err : blkdev_flush(w->dev);
}

static int write_blocks(struct writer *w, const struct mkfs_plan *plan,
			const struct mkfs_identity *identity,
			const struct mkfs_result *trial)
{
	struct mkfs_sink sink = { .put = writer_put, .arg = w };
	struct mkfs_result result;
	int err = mkfs_make_volume(plan, identity, &sink, &result);

	if (!err)
		err = writer_flush(w);
	if (!err)
		err = blkdev_flush(w->dev);
	/* The same steps from the same start end in the same place. */
	ug_assert(err || result.root.addr == trial->root.addr);
	return err;
}

static int write_sb(struct writer *w, const struct mkfs_plan *plan,
		    const struct mkfs_identity *identity,
		    const struct mkfs_result *result)
{
	int err;

	memset(w->buffer, 0, w->bsize);
	mkfs_make_sb(plan, identity, result, w->buffer);
	err = blkdev_write(w->dev, w->buffer, w->bsize, GFS2_SB_OFFSET_BYTES,
			   BLK_FUA);
	return err ? err : blkdev_flush(w->dev);
}

int mkfs_write_volume(struct blkdev *dev, const struct mkfs_plan *plan,
		      const struct mkfs_identity *identity,
		      const struct mkfs_result *result,
		      const struct mkfs_progress *progress, bool *begun)
{
	struct writer w = {
		.dev = dev,
		.bsize = plan->geom.bsize,
		.total = count_blocks(plan, result),
		.progress = progress,
	};
	int err;

	*begun = false;
	w.buffer = blkdev_alloc(BUFFER_BYTES);
	if (!w.buffer)
		return -ENOMEM;
	*begun = true;
	err = wipe_start(&w);
	if (!err)
		err = write_blocks(&w, plan, identity, result);
	if (!err)
		err = write_sb(&w, plan, identity, result);
	free(w.buffer);
	return err;
}
