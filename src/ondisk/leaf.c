/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * leaf.c - a leaf block of a hashed directory.
 * Source: docs/spec/gfs2-ondisk.md 4.5.
 */
#include <errno.h>
#include <string.h>

#include "ondisk/codec.h"

int gfs2_leaf_decode(const struct gfs2_geom *geom, const void *block,
		     struct gfs2_leaf_info *out)
{
	const struct gfs2_leaf *lf = block;
	uint32_t entries_max = gfs2_leaf_area_len(geom) / GFS2_DIRENT_SIZE(1);

	if (gfs2_check_meta(block, GFS2_METATYPE_LF) ||
	    be16_get(lf->lf_depth) > GFS2_HASH_DEPTH_MAX ||
	    be16_get(lf->lf_entries) > entries_max)
		return -EUCLEAN;
	*out = (struct gfs2_leaf_info){
		.depth = be16_get(lf->lf_depth),
		.entries = be16_get(lf->lf_entries),
		.next = be64_get(lf->lf_next),
		.inode = be64_get(lf->lf_inode),
		.dist = be32_get(lf->lf_dist),
		.time.sec = (int64_t)be64_get(lf->lf_sec),
		.time.nsec = be32_get(lf->lf_nsec),
	};
	return 0;
}

void gfs2_leaf_encode(const struct gfs2_leaf_info *leaf, void *block)
{
	struct gfs2_leaf *lf = block;
	be32 jid = lf->lf_header.mh_jid;

	gfs2_meta_init(block, GFS2_METATYPE_LF);
	lf->lf_header.mh_jid = jid;
	lf->lf_depth = be16_of(leaf->depth);
	lf->lf_entries = be16_of(leaf->entries);
	lf->lf_dirent_format = be32_of(GFS2_FORMAT_DE);
	lf->lf_next = be64_of(leaf->next);
	lf->lf_inode = be64_of(leaf->inode);
	lf->lf_dist = be32_of(leaf->dist);
	lf->lf_nsec = be32_of(leaf->time.nsec);
	lf->lf_sec = be64_of((uint64_t)leaf->time.sec);
}

void gfs2_leaf_init(const struct gfs2_geom *geom,
		    const struct gfs2_leaf_info *leaf, void *block)
{
	memset(block, 0, sizeof(struct gfs2_leaf));
	gfs2_leaf_encode(leaf, block);
	gfs2_dirent_init_area(gfs2_leaf_area(block), gfs2_leaf_area_len(geom));
}

int gfs2_leaf_check(const struct gfs2_geom *geom, const void *block)
{
	const void *area = (const char *)block + sizeof(struct gfs2_leaf);
	uint32_t area_len = gfs2_leaf_area_len(geom);
	const struct gfs2_dirent *de;
	struct gfs2_leaf_info leaf;
	uint32_t off = 0, live = 0;
	int err;

	err = gfs2_leaf_decode(geom, block, &leaf);
	while (!err && off < area_len) {
		err = gfs2_dirent_at(area, area_len, off, &de);
		if (err)
			break;
		live += !gfs2_dirent_is_sentinel(de);
		off += be16_get(de->de_rec_len);
	}
	if (!err && live != leaf.entries)
		err = -EUCLEAN;
	return err;
}
