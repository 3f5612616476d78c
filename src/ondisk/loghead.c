/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * loghead.c - the block that commits a flush.
 *
 * Two checksums: the hash covers bytes 0 to 47 with its own field as zero,
 * the CRC everything behind itself up to the end of the block, so the order in
 * which they are computed does not matter. A header with CRC 0 is of the old
 * kind, which ended at the hash. Source: docs/spec/gfs2-ondisk.md 7.3, 1.5.
 */
#include <errno.h>
#include <string.h>

#include "base/crc.h"
#include "ondisk/codec.h"

#define LH_HASHED_BYTES 48u
#define LH_CRC_START offsetof(struct gfs2_log_header, lh_nsec)

static uint32_t lh_hash(const struct gfs2_log_header *lh)
{
	static const uint8_t zeroes[sizeof(lh->lh_hash)];
	uint32_t crc = ug_crc32(lh, LH_HASHED_BYTES - sizeof(zeroes));

	return ug_crc32_add(crc, zeroes, sizeof(zeroes));
}

static uint32_t lh_crc(const struct gfs2_geom *geom, const void *block)
{
	return ug_crc32c_raw((const char *)block + LH_CRC_START,
			     geom->bsize - LH_CRC_START);
}

static void lh_read_v2(const struct gfs2_log_header *lh,
		       struct gfs2_lh_info *out)
{
	out->v2 = true;
	out->time.sec = (int64_t)be64_get(lh->lh_sec);
	out->time.nsec = be32_get(lh->lh_nsec);
	out->addr = be64_get(lh->lh_addr);
	out->jinode = be64_get(lh->lh_jinode);
	out->statfs_addr = be64_get(lh->lh_statfs_addr);
	out->quota_addr = be64_get(lh->lh_quota_addr);
	out->local_total = (int64_t)be64_get(lh->lh_local_total);
	out->local_free = (int64_t)be64_get(lh->lh_local_free);
	out->local_dinodes = (int64_t)be64_get(lh->lh_local_dinodes);
}

int gfs2_lh_decode(const struct gfs2_geom *geom, const void *block,
		   struct gfs2_lh_info *out)
{
	const struct gfs2_log_header *lh = block;
	uint32_t crc = be32_get(lh->lh_crc);

	if (gfs2_check_meta(block, GFS2_METATYPE_LH) ||
	    be32_get(lh->lh_hash) != lh_hash(lh) ||
	    (crc != 0 && crc != lh_crc(geom, block)))
		return -EUCLEAN;
	*out = (struct gfs2_lh_info){
		.jid = be32_get(lh->lh_header.mh_jid),
		.sequence = be64_get(lh->lh_sequence),
		.flags = be32_get(lh->lh_flags),
		.tail = be32_get(lh->lh_tail),
		.blkno = be32_get(lh->lh_blkno),
	};
	if (crc != 0)
		lh_read_v2(lh, out);
	return 0;
}

static void lh_put_v2(const struct gfs2_lh_info *info,
		      struct gfs2_log_header *lh)
{
	lh->lh_sec = be64_of((uint64_t)info->time.sec);
	lh->lh_nsec = be32_of(info->time.nsec);
	lh->lh_addr = be64_of(info->addr);
	lh->lh_jinode = be64_of(info->jinode);
	lh->lh_statfs_addr = be64_of(info->statfs_addr);
	lh->lh_quota_addr = be64_of(info->quota_addr);
	lh->lh_local_total = be64_of((uint64_t)info->local_total);
	lh->lh_local_free = be64_of((uint64_t)info->local_free);
	lh->lh_local_dinodes = be64_of((uint64_t)info->local_dinodes);
}

void gfs2_lh_encode(const struct gfs2_geom *geom,
		    const struct gfs2_lh_info *info, void *block)
{
	struct gfs2_log_header *lh = block;

	memset(block, 0, geom->bsize);
	gfs2_meta_init(block, GFS2_METATYPE_LH);
	lh->lh_header.mh_jid = be32_of(info->jid);
	lh->lh_sequence = be64_of(info->sequence);
	lh->lh_flags = be32_of(info->flags);
	lh->lh_tail = be32_of(info->tail);
	lh->lh_blkno = be32_of(info->blkno);
	lh->lh_hash = be32_of(lh_hash(lh));
	if (info->v2) {
		lh_put_v2(info, lh);
		lh->lh_crc = be32_of(lh_crc(geom, block));
	}
}
