/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * ea.c - the records of an extended attribute block.
 *
 *   | header | name | value (inline, unaligned)       | slack to 8 |
 *   | header | name, to 8 | pointers to ED blocks     |
 *
 * As with directory entries, rec_len leads to the next record and what a
 * record does not need is free; but the last record says that it is the last,
 * and must then end with the block. Source: docs/spec/gfs2-ondisk.md 5.1, 5.2,
 * 5.5.
 */
#include <errno.h>
#include <string.h>

#include "ondisk/codec.h"

#define EA_BYTES ((uint32_t)sizeof(struct gfs2_ea_header))
#define EA_NAME_MAX 255u

static uint32_t ptrs_off(uint32_t name_len)
{
	return EA_BYTES + UG_ALIGN_UP(name_len, 8u);
}

static bool type_is_valid(uint8_t type, uint32_t fs_format)
{
	return type <= (fs_format > GFS2_FORMAT_FS_MIN ? GFS2_EATYPE_TRUSTED
						       : GFS2_EATYPE_SECURITY);
}

/* rec_len and the last flag, which place the record in the block. */
static int ea_check_place(const struct gfs2_geom *geom,
			  const struct gfs2_ea_header *ea, uint32_t off)
{
	uint32_t rec_len = be32_get(ea->ea_rec_len);
	bool last = ea->ea_flags & GFS2_EAFLAG_LAST;

	if (rec_len < EA_BYTES || rec_len > geom->bsize - off)
		return -EUCLEAN;
	if (last != (rec_len == geom->bsize - off))
		return -EUCLEAN;
	return 0;
}

/* Name and value lie within the record, or are led to by enough pointers. */
static int ea_check_contents(const struct gfs2_geom *geom,
			     const struct gfs2_ea_header *ea)
{
	uint32_t rec_len = be32_get(ea->ea_rec_len);
	uint32_t data_len = be32_get(ea->ea_data_len);

	if (ea->ea_name_len == 0 || data_len > GFS2_EA_DATA_MAX)
		return -EUCLEAN;
	if (ea->ea_num_ptrs == 0)
		return EA_BYTES + ea->ea_name_len + data_len <= rec_len
			       ? 0
			       : -EUCLEAN;
	if (ptrs_off(ea->ea_name_len) + ea->ea_num_ptrs * sizeof(be64) >
	    rec_len)
		return -EUCLEAN;
	if (data_len > ea->ea_num_ptrs * geom->jbsize)
		return -EUCLEAN;
	return 0;
}

static void ea_read_contents(const struct gfs2_ea_header *ea,
			     struct gfs2_ea_info *out)
{
	const char *bytes = (const char *)ea;

	out->data_len = be32_get(ea->ea_data_len);
	out->name_len = ea->ea_name_len;
	out->num_ptrs = ea->ea_num_ptrs;
	out->name = bytes + EA_BYTES;
	if (ea->ea_num_ptrs == 0)
		out->value =
			(const uint8_t *)bytes + EA_BYTES + ea->ea_name_len;
	else
		out->ptrs = (const be64 *)(bytes + ptrs_off(ea->ea_name_len));
}

int gfs2_ea_at(const struct gfs2_geom *geom, const void *block,
	       uint32_t fs_format, uint32_t off, struct gfs2_ea_info *out)
{
	const struct gfs2_ea_header *ea;
	int err;

	if (off < GFS2_EA_FIRST_OFF || off > geom->bsize - EA_BYTES)
		return -EUCLEAN;
	ea = (const struct gfs2_ea_header *)((const char *)block + off);
	err = ea_check_place(geom, ea, off);
	if (err)
		return err;
	if (!type_is_valid(ea->ea_type, fs_format))
		return -EUCLEAN;
	if (ea->ea_type != GFS2_EATYPE_UNUSED) {
		err = ea_check_contents(geom, ea);
		if (err)
			return err;
	}
	*out = (struct gfs2_ea_info){
		.rec_len = be32_get(ea->ea_rec_len),
		.type = ea->ea_type,
		.last = ea->ea_flags & GFS2_EAFLAG_LAST,
	};
	if (ea->ea_type != GFS2_EATYPE_UNUSED)
		ea_read_contents(ea, out);
	return 0;
}

int gfs2_ea_check(const struct gfs2_geom *geom, const void *block,
		  uint32_t fs_format)
{
	struct gfs2_ea_info ea = { .last = false };
	uint32_t off = GFS2_EA_FIRST_OFF;

	if (gfs2_check_meta(block, GFS2_METATYPE_EA))
		return -EUCLEAN;
	for (; !ea.last; off += ea.rec_len) {
		int err = gfs2_ea_at(geom, block, fs_format, off, &ea);

		if (err)
			return err;
	}
	return 0;
}

int gfs2_ea_size(const struct gfs2_geom *geom, unsigned name_len,
		 uint32_t data_len, uint32_t *rec_len, unsigned *num_ptrs)
{
	uint32_t size;
	unsigned ptrs = 0;

	if (name_len == 0 || name_len > EA_NAME_MAX ||
	    data_len > GFS2_EA_DATA_MAX)
		return -ERANGE;
	size = UG_ALIGN_UP(EA_BYTES + name_len + data_len, 8u);
	if (size > geom->jbsize) {
		ptrs = UG_DIV_UP(data_len, geom->jbsize);
		size = ptrs_off(name_len) + ptrs * (uint32_t)sizeof(be64);
	}
	if (size > geom->jbsize)
		return -ERANGE;
	*rec_len = size;
	*num_ptrs = ptrs;
	return 0;
}

void gfs2_ea_init(const struct gfs2_geom *geom, void *block)
{
	struct gfs2_ea_header *ea;

	memset(block, 0, geom->bsize);
	gfs2_meta_init(block, GFS2_METATYPE_EA);
	ea = (struct gfs2_ea_header *)((char *)block + GFS2_EA_FIRST_OFF);
	ea->ea_rec_len = be32_of(geom->jbsize);
	ea->ea_flags = GFS2_EAFLAG_LAST;
}
