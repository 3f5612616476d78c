/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * meta.c - the header in front of every metadata block.
 * Source: docs/spec/gfs2-ondisk.md 1.3.
 */
#include <errno.h>

#include "ondisk/codec.h"

/* Indexed by type. Readers look at the type only; writers fill in both. */
static const struct {
	enum gfs2_format format;
	const char *name;
} meta_kinds[] = {
	[GFS2_METATYPE_SB] = { GFS2_FORMAT_SB, "superblock" },
	[GFS2_METATYPE_RG] = { GFS2_FORMAT_RG, "resource group header" },
	[GFS2_METATYPE_RB] = { GFS2_FORMAT_RB, "resource group bitmap" },
	[GFS2_METATYPE_DI] = { GFS2_FORMAT_DI, "dinode" },
	[GFS2_METATYPE_IN] = { GFS2_FORMAT_IN, "indirect block" },
	[GFS2_METATYPE_LF] = { GFS2_FORMAT_LF, "directory leaf" },
	[GFS2_METATYPE_JD] = { GFS2_FORMAT_JD, "hash table block" },
	[GFS2_METATYPE_LH] = { GFS2_FORMAT_LH, "log header" },
	[GFS2_METATYPE_LD] = { GFS2_FORMAT_LD, "log descriptor" },
	[GFS2_METATYPE_EA] = { GFS2_FORMAT_EA, "attribute block" },
	[GFS2_METATYPE_ED] = { GFS2_FORMAT_ED, "attribute data" },
	[GFS2_METATYPE_LB] = { GFS2_FORMAT_LB, "log continuation" },
	[GFS2_METATYPE_QC] = { GFS2_FORMAT_QC, "quota changes" },
};

static const struct gfs2_meta_header *header_of(const void *block)
{
	return block;
}

int gfs2_check_meta(const void *block, enum gfs2_metatype type)
{
	const struct gfs2_meta_header *mh = header_of(block);

	if (be32_get(mh->mh_magic) != GFS2_MAGIC ||
	    be32_get(mh->mh_type) != (uint32_t)type)
		return -EUCLEAN;
	return 0;
}

uint32_t gfs2_meta_type(const void *block)
{
	const struct gfs2_meta_header *mh = header_of(block);

	if (be32_get(mh->mh_magic) != GFS2_MAGIC)
		return GFS2_METATYPE_NONE;
	return be32_get(mh->mh_type);
}

static bool type_is_known(uint32_t type)
{
	return type < UG_ARRAY_SIZE(meta_kinds) && meta_kinds[type].name;
}

void gfs2_meta_init(void *block, enum gfs2_metatype type)
{
	struct gfs2_meta_header *mh = block;
	uint32_t format = type_is_known(type) ? meta_kinds[type].format
					      : GFS2_FORMAT_NONE;

	*mh = (struct gfs2_meta_header){
		.mh_magic = be32_of(GFS2_MAGIC),
		.mh_type = be32_of(type),
		.mh_format = be32_of(format),
	};
}

void gfs2_meta_set_jid(void *block, uint32_t jid)
{
	struct gfs2_meta_header *mh = block;

	mh->__pad0 = be64_of(0);
	mh->mh_jid = be32_of(jid);
}

const char *gfs2_metatype_name(uint32_t type)
{
	return type_is_known(type) ? meta_kinds[type].name : "unknown block";
}
