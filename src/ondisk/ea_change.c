/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * ea_change.c - entering records into an extended attribute block, and taking
 * them out.
 *
 *   | live ..... slack |  -> | live | new ........ |     the slack is split off
 *   | unused ......... |  -> | new .............. |     taken over whole
 *
 *   | before | record |   -> | before ........... |     removed
 *   | record (first) |    -> | unused ........... |
 *
 * All of it changes one block, so that a transaction that logs it does all or
 * nothing. Source: docs/spec/gfs2-ondisk.md 5.3, 5.4.
 */
#include <errno.h>
#include <string.h>

#include "base/assert.h"
#include "ondisk/codec.h"

#define EA_BYTES ((uint32_t)sizeof(struct gfs2_ea_header))

static struct gfs2_ea_header *ea_at(void *block, uint32_t off)
{
	return (struct gfs2_ea_header *)((char *)block + off);
}

/* Where pointers begin, counted from the record. */
static uint32_t ptrs_off(const struct gfs2_ea_header *ea)
{
	return EA_BYTES + UG_ALIGN_UP((uint32_t)ea->ea_name_len, 8u);
}

/* What a live record needs itself. */
static uint32_t own_len(const struct gfs2_ea_header *ea)
{
	if (ea->ea_num_ptrs)
		return ptrs_off(ea) + ea->ea_num_ptrs * (uint32_t)sizeof(be64);
	return UG_ALIGN_UP(
		EA_BYTES + ea->ea_name_len + be32_get(ea->ea_data_len), 8u);
}

/* Bytes at the end of the record that a new one can have. */
static uint32_t free_len(const struct gfs2_ea_header *ea)
{
	uint32_t rec_len = be32_get(ea->ea_rec_len);

	if (ea->ea_type == GFS2_EATYPE_UNUSED)
		return ea->ea_num_ptrs ? 0 : rec_len;
	/* The slack to 8 may be missing in the last record of the block. */
	return rec_len > own_len(ea) ? rec_len - own_len(ea) : 0;
}

static bool is_last(const struct gfs2_ea_header *ea)
{
	return ea->ea_flags & GFS2_EAFLAG_LAST;
}

bool gfs2_ea_room(const void *block, uint32_t rec_len, uint32_t *off)
{
	uint32_t at = GFS2_EA_FIRST_OFF;

	for (;;) {
		const struct gfs2_ea_header *ea =
			(const struct gfs2_ea_header *)((const char *)block +
							at);

		if (free_len(ea) >= rec_len) {
			*off = at;
			return true;
		}
		if (is_last(ea))
			return false;
		at += be32_get(ea->ea_rec_len);
	}
}

/* The record at off gives its free bytes to a new one: where that is. */
static uint32_t split_off(void *block, uint32_t off)
{
	struct gfs2_ea_header *ea = ea_at(block, off), *fresh;
	uint32_t rec_len = be32_get(ea->ea_rec_len), own;

	if (ea->ea_type == GFS2_EATYPE_UNUSED)
		return off;
	own = own_len(ea);
	fresh = ea_at(block, off + own);
	*fresh = (struct gfs2_ea_header){
		.ea_rec_len = be32_of(rec_len - own),
		.ea_flags = ea->ea_flags,
	};
	ea->ea_rec_len = be32_of(own);
	ea->ea_flags &= (uint8_t)~GFS2_EAFLAG_LAST;
	return off + own;
}

uint32_t gfs2_ea_insert(void *block, uint32_t off,
			const struct gfs2_ea_info *ea)
{
	struct gfs2_ea_header *to;
	char *name;

	off = split_off(block, off);
	to = ea_at(block, off);
	to->ea_data_len = be32_of(ea->data_len);
	to->ea_name_len = ea->name_len;
	to->ea_type = ea->type;
	to->ea_num_ptrs = ea->num_ptrs;
	name = (char *)(to + 1);
	memcpy(name, ea->name, ea->name_len);
	if (ea->num_ptrs)
		memset((char *)to + ptrs_off(to), 0,
		       ea->num_ptrs * sizeof(be64));
	else if (ea->data_len)
		memcpy(name + ea->name_len, ea->value, ea->data_len);
	ug_assert(own_len(to) <= be32_get(to->ea_rec_len));
	return off;
}

void gfs2_ea_retire(void *block, uint32_t off)
{
	ea_at(block, off)->ea_type = GFS2_EATYPE_UNUSED;
}

void gfs2_ea_remove(void *block, uint32_t off)
{
	struct gfs2_ea_header *ea = ea_at(block, off), *before = NULL;
	uint32_t at = GFS2_EA_FIRST_OFF;

	while (at != off) {
		before = ea_at(block, at);
		at += be32_get(before->ea_rec_len);
	}
	if (!before) {
		ea->ea_type = GFS2_EATYPE_UNUSED;
		ea->ea_num_ptrs = 0;
		return;
	}
	before->ea_flags |= ea->ea_flags & GFS2_EAFLAG_LAST;
	before->ea_rec_len = be32_of(be32_get(before->ea_rec_len) +
				     be32_get(ea->ea_rec_len));
}

be64 *gfs2_ea_ptrs(void *block, uint32_t off, unsigned *count)
{
	struct gfs2_ea_header *ea = ea_at(block, off);

	*count = ea->ea_num_ptrs;
	return (be64 *)((char *)ea + ptrs_off(ea));
}
