/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * fuzz_replay.c - replay of a journal made of hostile bytes.
 *
 * Input: a byte of choices, then the journal's blocks, filled up with zeroes.
 * The choices: bits 0-1 into how many extents it is cut, less one; bit 7
 * repairs positions and checksums of headers first, so that what lies
 * behind them is reached.
 *
 * The device aborts on a write outside the volume, on any write during the
 * scan, and on one into the journal during replay. A log that is refused must
 * have been refused before the first write.
 *
 * Every refusal logs a line: -close_fd_mask=2 keeps libFuzzer fast.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/crc.h"
#include "journal/replay.h"
#include "ondisk/codec.h"

#define BSIZE 512u
#define LOG_BLOCKS 32u
#define LOG_FIRST 8u
#define FS_BLOCKS 240u
#define DEVICE_BLOCKS 256u /* more than the volume */

enum phase {
	PHASE_SCAN,
	PHASE_REPLAY,
	PHASE_MARK,
};

struct volume {
	struct blkdev dev;
	struct logmap map;
	enum phase phase;
	unsigned writes;
	uint8_t bytes[DEVICE_BLOCKS * BSIZE];
};

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void must(bool holds)
{
	if (!holds)
		abort();
}

static int volume_readv(struct blkdev *dev, const struct iovec *iov, int iovcnt,
			uint64_t offset_bytes)
{
	struct volume *vol = ug_container_of(dev, struct volume, dev);

	for (int i = 0; i < iovcnt; i++) {
		memcpy(iov[i].iov_base, vol->bytes + offset_bytes,
		       iov[i].iov_len);
		offset_bytes += iov[i].iov_len;
	}
	return 0;
}

static void check_write(const struct volume *vol, uint64_t blkno)
{
	bool in_log = logmap_contains(&vol->map, blkno);

	must(blkno != 0 && blkno < FS_BLOCKS);
	must(vol->phase == (in_log ? PHASE_MARK : PHASE_REPLAY));
}

static int volume_writev(struct blkdev *dev, const struct iovec *iov,
			 int iovcnt, uint64_t offset_bytes, unsigned flags)
{
	struct volume *vol = ug_container_of(dev, struct volume, dev);

	for (int i = 0; i < iovcnt; i++) {
		for (uint64_t at = 0; at < iov[i].iov_len; at += BSIZE)
			check_write(vol, (offset_bytes + at) / BSIZE);
		memcpy(vol->bytes + offset_bytes, iov[i].iov_base,
		       iov[i].iov_len);
		offset_bytes += iov[i].iov_len;
	}
	vol->writes++;
	return 0;
}

static int volume_flush(struct blkdev *dev)
{
	return 0;
}

static const struct blkdev_ops volume_ops = {
	.readv = volume_readv,
	.writev = volume_writev,
	.flush = volume_flush,
};

static void repair_header(void *block, uint32_t pos)
{
	struct gfs2_log_header *lh = block;

	if (gfs2_check_meta(block, GFS2_METATYPE_LH))
		return;
	lh->lh_blkno = be32_of(pos);
	lh->lh_hash = be32_of(0);
	lh->lh_hash = be32_of(ug_crc32(block, 48));
	lh->lh_crc = be32_of(ug_crc32c_raw((char *)block + 52, BSIZE - 52));
}

static void lay_down(struct volume *vol, uint8_t choices, const uint8_t *data,
		     size_t size)
{
	unsigned extents = 1 + (choices & 3);
	uint32_t left = LOG_BLOCKS, pos = 0, run;
	uint64_t addr = LOG_FIRST;

	for (; extents; extents--) {
		uint32_t count = left / extents;

		must(logmap_add(&vol->map, addr, count) == 0);
		addr += count + 3;
		left -= count;
	}
	for (; pos < LOG_BLOCKS; pos++) {
		uint8_t *block =
			vol->bytes + logmap_addr(&vol->map, pos, &run) * BSIZE;
		size_t n = UG_MIN(size, (size_t)BSIZE);

		memcpy(block, data, n);
		data += n;
		size -= n;
		if (choices & 0x80)
			repair_header(block, pos);
	}
}

static void replay(struct volume *vol)
{
	struct replay_result result;
	struct replay_head head, again;
	int err;

	vol->phase = PHASE_SCAN;
	if (replay_scan(&vol->dev, BSIZE, &vol->map, "fuzz", &head))
		return;
	must(head.blkno < LOG_BLOCKS);
	vol->phase = PHASE_REPLAY;
	err = replay_journal(&vol->dev, BSIZE, &vol->map, FS_BLOCKS, &head,
			     "fuzz", &result);
	must(err == 0 || err == -EUCLEAN);
	must(!err || !vol->writes);
	if (err || head.sequence == UINT64_MAX)
		return;
	vol->phase = PHASE_MARK;
	must(!replay_mark_clean(&vol->dev, BSIZE, &vol->map, 0, 17, &head));
	must(head.clean);
	vol->phase = PHASE_SCAN;
	must(!replay_scan(&vol->dev, BSIZE, &vol->map, "fuzz", &again));
	must(again.sequence == head.sequence && again.blkno == head.blkno);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static struct volume vol;

	if (!size)
		return 0;
	memset(&vol, 0, sizeof(vol));
	vol.dev.ops = &volume_ops;
	vol.dev.size_bytes = sizeof(vol.bytes);
	vol.dev.sector_bytes = BSIZE;
	logmap_init(&vol.map);
	lay_down(&vol, data[0], data + 1, size - 1);
	replay(&vol);
	logmap_fini(&vol.map);
	return 0;
}
