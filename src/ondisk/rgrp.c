/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * rgrp.c - header and bitmap of a resource group.
 *
 * The bitmap has two bits per block, the lowest two of a byte first, and runs
 * through the group's blocks: behind the 128 bytes of the header, then behind
 * the 24 bytes of each further block. Scans take 32 blocks at a time.
 * Source: docs/spec/gfs2-ondisk.md 6.1, 6.2, 1.5.
 */
#include <endian.h>
#include <errno.h>
#include <string.h>

#include "base/crc.h"
#include "ondisk/codec.h"

#define RG_BYTES ((unsigned)sizeof(struct gfs2_rgrp))
#define RB_BYTES ((unsigned)sizeof(struct gfs2_meta_header))

static uint32_t rgrp_crc(const void *block)
{
	struct gfs2_rgrp rg;

	memcpy(&rg, block, sizeof(rg));
	rg.rg_crc = be32_of(0);
	return ug_crc32(&rg, sizeof(rg));
}

int gfs2_rgrp_decode(const void *block, const struct gfs2_rindex_info *ri,
		     struct gfs2_rgrp_info *out)
{
	const struct gfs2_rgrp *rg = block;
	uint32_t free = be32_get(rg->rg_free);
	uint32_t dinodes = be32_get(rg->rg_dinodes);
	uint32_t crc = be32_get(rg->rg_crc);

	if (gfs2_check_meta(block, GFS2_METATYPE_RG) ||
	    (crc != 0 && crc != rgrp_crc(block)) ||
	    (uint64_t)free + dinodes > ri->data)
		return -EUCLEAN;
	*out = (struct gfs2_rgrp_info){
		.flags = be32_get(rg->rg_flags),
		.free = free,
		.dinodes = dinodes,
		.skip = be32_get(rg->rg_skip),
		.igeneration = be64_get(rg->rg_igeneration),
		.data0 = be64_get(rg->rg_data0),
		.data = be32_get(rg->rg_data),
		.bitbytes = be32_get(rg->rg_bitbytes),
	};
	return 0;
}

void gfs2_rgrp_seal(void *block)
{
	struct gfs2_rgrp *rg = block;

	rg->rg_crc = be32_of(rgrp_crc(block));
}

void gfs2_rgrp_encode(const struct gfs2_rgrp_info *info, void *block)
{
	struct gfs2_rgrp *rg = block;
	be32 jid = rg->rg_header.mh_jid;

	gfs2_meta_init(block, GFS2_METATYPE_RG);
	rg->rg_header.mh_jid = jid;
	rg->rg_flags = be32_of(info->flags);
	rg->rg_free = be32_of(info->free);
	rg->rg_dinodes = be32_of(info->dinodes);
	rg->rg_skip = be32_of(info->skip);
	rg->rg_igeneration = be64_of(info->igeneration);
	rg->rg_data0 = be64_of(info->data0);
	rg->rg_data = be32_of(info->data);
	rg->rg_bitbytes = be32_of(info->bitbytes);
	gfs2_rgrp_seal(block);
}

void gfs2_rgrp_bitpos(const struct gfs2_geom *geom, uint32_t n, unsigned *block,
		      unsigned *byte, unsigned *shift)
{
	uint32_t pos = n / GFS2_NBBY;
	uint32_t in_header = geom->rg_blocks_first / GFS2_NBBY;
	uint32_t in_next = geom->rg_blocks_next / GFS2_NBBY;

	*shift = 2 * (n % GFS2_NBBY);
	if (pos < in_header) {
		*block = 0;
		*byte = RG_BYTES + pos;
		return;
	}
	pos -= in_header;
	*block = 1 + pos / in_next;
	*byte = RB_BYTES + pos % in_next;
}

void gfs2_rgrp_bitmap_span(const struct gfs2_geom *geom,
			   const struct gfs2_rindex_info *ri, unsigned index,
			   unsigned *start, uint32_t *first, uint32_t *count)
{
	uint64_t begin = 0, room = geom->rg_blocks_first;

	*start = RG_BYTES;
	if (index > 0) {
		begin = room + (uint64_t)geom->rg_blocks_next * (index - 1);
		room = geom->rg_blocks_next;
		*start = RB_BYTES;
	}
	begin = UG_MIN(begin, ri->data);
	*first = (uint32_t)begin;
	*count = (uint32_t)UG_MIN(room, ri->data - begin);
}

#define EVEN_BITS 0x5555555555555555u
#define BLOCKS_PER_WORD 32u

/*
 * Up to 32 blocks from block n on, a multiple of 4, of a map of count: a set
 * even bit for each block that is in state. Bits beyond count are zero.
 */
static uint64_t match_word(const uint8_t *bits, uint32_t n, uint32_t count,
			   enum gfs2_blkst state)
{
	uint32_t blocks = UG_MIN(count - n, BLOCKS_PER_WORD);
	uint64_t differ, word = 0;

	memcpy(&word, bits + n / GFS2_NBBY, UG_DIV_UP(blocks, GFS2_NBBY));
	differ = le64toh(word) ^ EVEN_BITS * (uint64_t)state;
	differ = (differ | differ >> 1) & EVEN_BITS;
	if (blocks < BLOCKS_PER_WORD)
		differ |= ~0ull << (2 * blocks);
	return ~differ & EVEN_BITS;
}

uint32_t gfs2_bitmap_count(const uint8_t *bits, uint32_t count,
			   enum gfs2_blkst state)
{
	uint32_t found = 0;

	/* Not n += 32: count may be near 2^32. */
	for (uint32_t left = count; left > 0;) {
		uint32_t step = UG_MIN(left, BLOCKS_PER_WORD);

		found += (uint32_t)__builtin_popcountll(
			match_word(bits, count - left, count, state));
		left -= step;
	}
	return found;
}

uint32_t gfs2_bitmap_find(const uint8_t *bits, uint32_t from, uint32_t count,
			  enum gfs2_blkst state)
{
	uint32_t n = from - from % GFS2_NBBY;

	if (from >= count)
		return count;
	for (;;) {
		uint64_t match = match_word(bits, n, count, state);

		if (from > n)
			match &= ~0ull << (2 * (from - n));
		if (match)
			return n + (uint32_t)__builtin_ctzll(match) / 2;
		if (count - n <= BLOCKS_PER_WORD)
			return count;
		n += BLOCKS_PER_WORD;
	}
}
