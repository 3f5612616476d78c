/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * logdesc.c - the block in front of the images, or revokes, of a flush.
 * Source: docs/spec/gfs2-ondisk.md 7.2.
 */
#include <errno.h>
#include <string.h>

#include "ondisk/codec.h"

uint32_t gfs2_ld_length_for(const struct gfs2_geom *geom,
			    enum gfs2_log_desc_type type, uint32_t n)
{
	if (type != GFS2_LOG_DESC_REVOKE)
		return 1 + n;
	if (n <= geom->ldptrs)
		return 1;
	return 1 + UG_DIV_UP(n - geom->ldptrs, geom->inptrs);
}

static bool ld_is_sound(const struct gfs2_geom *geom,
			const struct gfs2_ld_info *ld)
{
	/* Most entries that one descriptor has slots for. */
	uint32_t max;

	switch (ld->type) {
	case GFS2_LOG_DESC_METADATA:
		max = geom->ldptrs;
		break;
	case GFS2_LOG_DESC_JDATA:
		max = geom->ldptrs / 2;
		break;
	case GFS2_LOG_DESC_REVOKE:
		/* Goes on in as many blocks as it takes; no sum overflows. */
		max = UINT32_MAX / 2;
		break;
	default:
		return ld->length != 0;
	}
	return ld->data1 <= max &&
	       ld->length == gfs2_ld_length_for(geom, ld->type, ld->data1);
}

int gfs2_ld_decode(const struct gfs2_geom *geom, const void *block,
		   struct gfs2_ld_info *out)
{
	const struct gfs2_log_descriptor *d = block;
	struct gfs2_ld_info ld = {
		.type = be32_get(d->ld_type),
		.length = be32_get(d->ld_length),
		.data1 = be32_get(d->ld_data1),
	};

	if (gfs2_check_meta(block, GFS2_METATYPE_LD) || !ld_is_sound(geom, &ld))
		return -EUCLEAN;
	*out = ld;
	return 0;
}

void gfs2_ld_encode(const struct gfs2_geom *geom, const struct gfs2_ld_info *ld,
		    void *block)
{
	struct gfs2_log_descriptor *d = block;

	memset(block, 0, geom->bsize);
	gfs2_meta_init(block, GFS2_METATYPE_LD);
	d->ld_type = be32_of(ld->type);
	d->ld_length = be32_of(ld->length);
	d->ld_data1 = be32_of(ld->data1);
}
