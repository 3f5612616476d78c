/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * replay_scan.c - the head of a journal: finding it, marking it clean.
 *
 * Round the ring, sequence numbers of headers rise, except for one drop,
 * right behind the head:
 *
 *     block    0      7      31     40     ...     97
 *     header   2031   2032   2033 | 1977           2030     head: block 31
 *
 * All blocks are read. That is a second for a journal of the usual size, and
 * spares every shortcut that might be fooled: a fresh journal has a header in
 * every block and its head in the middle, a used one has gaps. If the numbers
 * drop twice, or two are equal, somebody has written out of turn; then no
 * head can be trusted.
 * Source: docs/spec/gfs2-ondisk.md 7.3, 7.4.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/checked.h"
#include "base/log.h"
#include "journal/replay.h"
#include "ondisk/codec.h"

#define SCAN_BYTES (1u << 20)

struct scan {
	struct blkdev *dev;
	const struct logmap *map;
	const char *who;
	struct gfs2_geom geom;
	uint32_t step; /* blocks read at once */

	uint32_t headers; /* found so far */
	uint64_t first;	  /* sequence of the first one */
	uint64_t last;	  /* of the latest one */
	unsigned drops;
	struct gfs2_lh_info head; /* the highest */
};

static void scan_header(struct scan *scan, const struct gfs2_lh_info *lh)
{
	if (scan->headers++ == 0) {
		scan->first = lh->sequence;
		scan->head = *lh;
	} else if (lh->sequence <= scan->last) {
		scan->drops++;
	}
	scan->last = lh->sequence;
	if (lh->sequence > scan->head.sequence)
		scan->head = *lh;
}

static void scan_block(struct scan *scan, const void *block, uint32_t lblock)
{
	struct gfs2_lh_info lh;

	if (!gfs2_lh_decode(&scan->geom, block, &lh) && lh.blkno == lblock)
		scan_header(scan, &lh);
}

static int scan_blocks(struct scan *scan, uint8_t *mem)
{
	uint32_t bsize = scan->geom.bsize;
	uint32_t at = 0;

	while (at < scan->map->blocks) {
		uint32_t run;
		uint64_t addr = logmap_addr(scan->map, at, &run);
		int err;

		run = UG_MIN(run, scan->step);
		err = blkdev_read(scan->dev, mem, (uint64_t)run * bsize,
				  addr * bsize);
		if (err)
			return err == -ENOMEM ? err : -EIO;
		for (uint32_t i = 0; i < run; i++)
			scan_block(scan, mem + (size_t)i * bsize, at + i);
		at += run;
	}
	return 0;
}

static int scan_verdict(struct scan *scan)
{
	if (!scan->headers) {
		ug_error(scan->who, "no log header in the whole journal");
		return -EUCLEAN;
	}
	/* From the last header on to the first: the ring is closed there. */
	if (scan->headers > 1 && scan->first <= scan->last)
		scan->drops++;
	if (scan->headers > 1 && scan->drops != 1) {
		ug_error(scan->who,
			 "log headers are out of order (%u drops in %u "
			 "headers); run fsck",
			 scan->drops, scan->headers);
		return -EUCLEAN;
	}
	return 0;
}

static void head_from_lh(const struct gfs2_lh_info *lh,
			 struct replay_head *head)
{
	*head = (struct replay_head){
		.sequence = lh->sequence,
		.blkno = lh->blkno,
		.tail = lh->tail,
		.flags = lh->flags,
		.clean = lh->flags & GFS2_LOG_HEAD_UNMOUNT,
		.v2 = lh->v2,
		.statfs_addr = lh->statfs_addr,
		.local_total = lh->local_total,
		.local_free = lh->local_free,
		.local_dinodes = lh->local_dinodes,
	};
}

int replay_scan(struct blkdev *dev, uint32_t block_bytes,
		const struct logmap *map, const char *who,
		struct replay_head *head)
{
	struct scan scan = { .dev = dev, .map = map, .who = who };
	uint8_t *mem;
	int err;

	if (gfs2_geom_init(&scan.geom, block_bytes))
		return -EINVAL;
	scan.step = UG_MIN(SCAN_BYTES / block_bytes, map->blocks);
	mem = blkdev_alloc((size_t)scan.step * block_bytes);
	if (!mem)
		return -ENOMEM;
	err = scan_blocks(&scan, mem);
	free(mem);
	if (!err)
		err = scan_verdict(&scan);
	if (err)
		return err;
	head_from_lh(&scan.head, head);
	return 0;
}

int replay_mark_clean(struct blkdev *dev, uint32_t block_bytes,
		      const struct logmap *map, uint32_t jid,
		      uint64_t jinode_addr, struct replay_head *head)
{
	struct gfs2_lh_info lh = {
		.jid = jid,
		.v2 = true,
		.sequence = head->sequence + 1,
		.flags = GFS2_LOG_HEAD_UNMOUNT | GFS2_LOG_HEAD_RECOVERY,
		.blkno = (head->blkno + 1) % map->blocks,
		.jinode = jinode_addr,
	};
	struct gfs2_geom geom;
	struct timespec now;
	uint8_t *block;
	uint32_t run;
	int err;

	if (gfs2_geom_init(&geom, block_bytes))
		return -EINVAL;
	block = blkdev_alloc(block_bytes);
	if (!block)
		return -ENOMEM;
	clock_gettime(CLOCK_REALTIME, &now);
	lh.time.sec = now.tv_sec;
	lh.time.nsec = (uint32_t)now.tv_nsec;
	lh.addr = logmap_addr(map, lh.blkno, &run);
	gfs2_lh_encode(&geom, &lh, block);
	/* What replay and the statfs merge have written comes first. */
	err = blkdev_flush(dev);
	if (!err)
		err = blkdev_write(dev, block, block_bytes,
				   lh.addr * block_bytes, BLK_FUA);
	free(block);
	if (err)
		return -EIO;
	head_from_lh(&lh, head);
	return 0;
}
