/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * dirent.c - the records that tile an area of a directory block.
 *
 *   | rec_len 48 | rec_len 48 | rec_len 3768 ........ |
 *   | ".", inum  | "..", inum | "name", inum |  free  |
 *
 * Free space belongs to the record before it; only the first record may be
 * unused altogether. rec_len is the one field that leads out of a record, so
 * every walk checks it before it trusts it, and needs no more than that to
 * stay inside the area. Source: docs/spec/gfs2-ondisk.md 4.2, 4.4.
 */
#include <errno.h>
#include <string.h>

#include "base/crc.h"
#include "ondisk/codec.h"

#define DE_BYTES ((uint32_t)sizeof(struct gfs2_dirent))

uint32_t gfs2_name_hash(const char *name, unsigned len)
{
	return ug_crc32(name, len);
}

static inline const struct gfs2_dirent *de_at(const void *area, uint32_t off)
{
	return (const struct gfs2_dirent *)((const char *)area + off);
}

/*
 * The length of the record at off, or 0 if it cannot be one: no room for its
 * fixed part, not a multiple of 8, or reaching beyond the area.
 */
static inline uint32_t rec_len_at(const void *area, uint32_t area_len,
				  uint32_t off)
{
	uint32_t left = area_len - off;
	uint32_t rec_len;

	if (ug_unlikely(left < DE_BYTES))
		return 0;
	rec_len = be16_get(de_at(area, off)->de_rec_len);
	if (ug_unlikely((rec_len & 7) || rec_len < DE_BYTES || rec_len > left))
		return 0;
	return rec_len;
}

int gfs2_dirent_at(const void *area, uint32_t area_len, uint32_t off,
		   const struct gfs2_dirent **out)
{
	const struct gfs2_dirent *de;
	uint32_t rec_len, name_len;

	if (off >= area_len)
		return -EUCLEAN;
	rec_len = rec_len_at(area, area_len, off);
	if (rec_len == 0)
		return -EUCLEAN;
	de = de_at(area, off);
	name_len = be16_get(de->de_name_len);
	if (gfs2_dirent_is_sentinel(de)) {
		/* Its name is a leftover, and may even be longer. */
		if (off != 0)
			return -EUCLEAN;
	} else if (name_len == 0 || name_len > GFS2_NAME_MAX ||
		   GFS2_DIRENT_SIZE(name_len) > rec_len) {
		return -EUCLEAN;
	}
	*out = de;
	return 0;
}

int gfs2_dirents_check(const void *block, uint32_t start_off, uint32_t end_off)
{
	const void *area = (const char *)block + start_off;
	uint32_t area_len = end_off - start_off;
	const struct gfs2_dirent *de;
	uint32_t off = 0;

	if (start_off >= end_off)
		return -EUCLEAN;
	/* No record reaches beyond the area, so this ends exactly at its end.
	 */
	while (off < area_len) {
		int err = gfs2_dirent_at(area, area_len, off, &de);

		if (err)
			return err;
		off += be16_get(de->de_rec_len);
	}
	return 0;
}

/*
 * The name of a record can be compared once it is known to lie within the
 * record; what its other fields claim plays no part.
 */
static bool de_matches(const struct gfs2_dirent *de, uint32_t rec_len,
		       const char *name, unsigned len)
{
	return be16_get(de->de_name_len) == len && DE_BYTES + len <= rec_len &&
	       memcmp(gfs2_dirent_name(de), name, len) == 0 &&
	       !gfs2_dirent_is_sentinel(de);
}

const struct gfs2_dirent *gfs2_dirent_search(const void *area,
					     uint32_t area_len, uint32_t hash,
					     const char *name, unsigned len,
					     uint32_t *off, uint32_t *prev_off,
					     int *err)
{
	const uint32_t wanted = be32_of(hash).raw;
	uint32_t at = 0, prev = 0, rec_len;

	for (; at < area_len; prev = at, at += rec_len) {
		const struct gfs2_dirent *de = de_at(area, at);

		rec_len = rec_len_at(area, area_len, at);
		if (ug_unlikely(rec_len == 0)) {
			*err = -EUCLEAN;
			return NULL;
		}
		if (ug_likely(de->de_hash.raw != wanted) ||
		    !de_matches(de, rec_len, name, len))
			continue;
		if (off)
			*off = at;
		if (prev_off)
			*prev_off = prev;
		*err = 0;
		return de;
	}
	*err = 0;
	return NULL;
}

/*
 * The first record with size bytes to spare: its offset, with *own set to what
 * it needs itself; area_len if there is none.
 */
static uint32_t find_room(const void *area, uint32_t area_len, uint32_t size,
			  uint32_t *own)
{
	const struct gfs2_dirent *de;
	uint32_t off = 0, rec_len;

	while (off < area_len) {
		if (gfs2_dirent_at(area, area_len, off, &de))
			break;
		rec_len = be16_get(de->de_rec_len);
		*own = gfs2_dirent_is_sentinel(de)
			       ? 0
			       : GFS2_DIRENT_SIZE(be16_get(de->de_name_len));
		if (rec_len - *own >= size)
			return off;
		off += rec_len;
	}
	return area_len;
}

bool gfs2_dirent_fits(const void *area, uint32_t area_len, unsigned len)
{
	uint32_t own;

	return find_room(area, area_len, GFS2_DIRENT_SIZE(len), &own) <
	       area_len;
}

struct gfs2_dirent *gfs2_dirent_insert(void *area, uint32_t area_len,
				       const char *name, unsigned len,
				       uint32_t hash, uint64_t formal,
				       uint64_t addr, uint16_t type)
{
	uint32_t size = GFS2_DIRENT_SIZE(len);
	uint32_t own, rec_len, off;
	struct gfs2_dirent *de;

	off = find_room(area, area_len, size, &own);
	if (off >= area_len)
		return NULL;
	de = (struct gfs2_dirent *)((char *)area + off);
	rec_len = be16_get(de->de_rec_len) - own;
	if (own != 0) {
		de->de_rec_len = be16_of((uint16_t)own);
		de = (struct gfs2_dirent *)((char *)de + own);
	}
	memset(de, 0, size);
	de->de_inum.no_formal_ino = be64_of(formal);
	de->de_inum.no_addr = be64_of(addr);
	de->de_hash = be32_of(hash);
	de->de_rec_len = be16_of((uint16_t)rec_len);
	de->de_name_len = be16_of((uint16_t)len);
	de->de_type = be16_of(type);
	memcpy(de + 1, name, len);
	return de;
}

void gfs2_dirent_delete(void *area, uint32_t area_len, uint32_t off,
			uint32_t prev_off)
{
	struct gfs2_dirent *de = (struct gfs2_dirent *)((char *)area + off);
	struct gfs2_dirent *prev;

	if (off == 0) {
		de->de_inum = (struct gfs2_inum){ be64_of(0), be64_of(0) };
		return;
	}
	prev = (struct gfs2_dirent *)((char *)area + prev_off);
	prev->de_rec_len = be16_of((uint16_t)(be16_get(prev->de_rec_len) +
					      be16_get(de->de_rec_len)));
}

void gfs2_dirent_init_area(void *area, uint32_t area_len)
{
	struct gfs2_dirent *de = area;

	memset(area, 0, area_len);
	de->de_rec_len = be16_of((uint16_t)area_len);
}

void gfs2_dirent_init_dir(void *area, uint32_t area_len, uint64_t formal,
			  uint64_t addr, uint64_t parent_formal,
			  uint64_t parent_addr)
{
	const uint16_t dt_dir = 4;

	gfs2_dirent_init_area(area, area_len);
	gfs2_dirent_insert(area, area_len, ".", 1, gfs2_name_hash(".", 1),
			   formal, addr, dt_dir);
	gfs2_dirent_insert(area, area_len, "..", 2, gfs2_name_hash("..", 2),
			   parent_formal, parent_addr, dt_dir);
}
