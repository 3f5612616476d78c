/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * rindex.c - where a resource group lies, and how big its bitmap must be.
 *
 *   addr          data0 = addr + length
 *   | RG | RB | RB | data blocks ..............................|(unused)|
 *   |<--- length ->|<-- data = 4 * bitbytes ------------------>|
 *
 * Source: docs/spec/gfs2-ondisk.md 6.1, 6.2.
 */
#include <errno.h>
#include <string.h>

#include "base/checked.h"
#include "ondisk/codec.h"

static uint64_t round_down_4(uint64_t blocks)
{
	return blocks & ~(uint64_t)(GFS2_NBBY - 1);
}

uint32_t gfs2_rgrp_length_for(const struct gfs2_geom *geom, uint32_t data)
{
	if (data <= geom->rg_blocks_first)
		return 1;
	return 1 + (uint32_t)UG_DIV_UP((uint64_t)data - geom->rg_blocks_first,
				       geom->rg_blocks_next);
}

/*
 * mkfs and grow arrive at the length from the total by a rule of their own,
 * which can leave the last blocks of the total unused. Volumes must come out
 * the same, so it is followed to the letter: b further bitmap blocks make
 * room for the total; one is given back if the data does not need it.
 */
int gfs2_rgrp_layout(const struct gfs2_geom *geom, uint64_t addr,
		     uint32_t total, struct gfs2_rindex_info *out)
{
	uint64_t first = geom->rg_blocks_first, next = geom->rg_blocks_next;
	uint64_t b = 0, capacity, data, length;

	if (total < 1 + GFS2_NBBY)
		return -EINVAL;
	while (b < total && first + next * b < round_down_4(total - b))
		b++;
	capacity = b ? first + next * (b - 1) : 0;
	data = round_down_4(total - b - 1);
	length = capacity < data ? b + 1 : b;

	*out = (struct gfs2_rindex_info){
		.addr = addr,
		.length = (uint32_t)length,
		.data0 = addr + length,
		.data = (uint32_t)data,
		.bitbytes = (uint32_t)(data / GFS2_NBBY),
	};
	return 0;
}

int gfs2_rindex_decode(const struct gfs2_geom *geom, const void *entry,
		       struct gfs2_rindex_info *out)
{
	const struct gfs2_rindex *e = entry;
	struct gfs2_rindex_info ri = {
		.addr = be64_get(e->ri_addr),
		.length = be32_get(e->ri_length),
		.data0 = be64_get(e->ri_data0),
		.data = be32_get(e->ri_data),
		.bitbytes = be32_get(e->ri_bitbytes),
	};
	uint64_t data0, end;

	if (ri.addr == 0 || ri.data == 0 || ri.data % GFS2_NBBY != 0 ||
	    ri.bitbytes != ri.data / GFS2_NBBY)
		return -EUCLEAN;
	if (!ug_add_u64(ri.addr, ri.length, &data0) || ri.data0 != data0 ||
	    !ug_add_u64(data0, ri.data, &end) ||
	    end > UINT64_MAX >> geom->bshift)
		return -EUCLEAN;
	if (ri.length != gfs2_rgrp_length_for(geom, ri.data))
		return -EUCLEAN;
	*out = ri;
	return 0;
}

void gfs2_rindex_encode(const struct gfs2_rindex_info *ri, void *entry)
{
	struct gfs2_rindex *e = entry;

	memset(e, 0, sizeof(*e));
	e->ri_addr = be64_of(ri->addr);
	e->ri_length = be32_of(ri->length);
	e->ri_data0 = be64_of(ri->data0);
	e->ri_data = be32_of(ri->data);
	e->ri_bitbytes = be32_of(ri->bitbytes);
}
