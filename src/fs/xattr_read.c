/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * xattr_read.c - walking the blocks of attributes, and reading values.
 *
 *   di_eattr -> block of records
 *   di_eattr -> IN block -> blocks of records
 *
 * Every block is checked whole before its records are looked at, so whatever
 * goes on with them needs no check of its own. Damage withdraws, and the log
 * says which block. Source: docs/spec/gfs2-ondisk.md 5.1 to 5.3, 5.5.
 */
#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "base/assert.h"
#include "fs/xattr.h"

/* Blocks of the largest value with the smallest blocks. */
#define VALUE_BLOCKS_MAX \
	UG_DIV_UP(GFS2_EA_DATA_MAX, 512u - sizeof(struct gfs2_meta_header))

static int block_get(struct inode *ip, uint64_t blkno, bool nowait,
		     struct buf **bp)
{
	struct fs *fs = ip->i_fs;
	int err;

	if (!rgrps_valid_block(fs, blkno))
		return fs_bad_block(fs, ip->i_addr,
				    "attributes lead to block %" PRIu64, blkno);
	err = inode_meta(ip, blkno, GFS2_METATYPE_EA, nowait, bp);
	if (err)
		return err;
	if (ug_likely(!gfs2_ea_check(&fs->fs_geom, (*bp)->b_data,
				     fs->fs_sb.fs_format)))
		return 0;
	buf_put(*bp);
	return fs_bad_block(fs, blkno,
			    "inode %" PRIu64
			    ": a record of its attributes is damaged",
			    ip->i_addr);
}

struct block_fn {
	int (*fn)(struct inode *ip, struct buf *b, void *arg);
	void *arg;
};

static int one_block(struct inode *ip, uint64_t blkno, bool nowait,
		     const struct block_fn *fn)
{
	struct buf *b;
	int err = block_get(ip, blkno, nowait, &b);

	if (err)
		return err;
	err = fn->fn(ip, b, fn->arg);
	buf_put(b);
	return err;
}

static int indirect_blocks(struct inode *ip, bool nowait,
			   const struct block_fn *fn)
{
	struct buf *ind;
	const be64 *ptrs;
	int err;

	err = inode_meta(ip, ip->i_eattr, GFS2_METATYPE_IN, nowait, &ind);
	if (err)
		return err;
	ptrs = gfs2_indirect_ptrs(ind->b_data);
	for (unsigned i = 0;
	     !err && i < ip->i_fs->fs_geom.inptrs && ptrs[i].raw; i++)
		err = one_block(ip, be64_get(ptrs[i]), nowait, fn);
	buf_put(ind);
	return err;
}

int xattr_each_block(struct inode *ip, bool nowait,
		     int (*fn)(struct inode *ip, struct buf *b, void *arg),
		     void *arg)
{
	const struct block_fn block_fn = { fn, arg };

	if (!ip->i_eattr)
		return 0;
	if (!(ip->i_flags & GFS2_DIF_EA_INDIRECT))
		return one_block(ip, ip->i_eattr, nowait, &block_fn);
	if (!rgrps_valid_block(ip->i_fs, ip->i_eattr))
		return fs_bad_block(ip->i_fs, ip->i_addr,
				    "attributes are at block %" PRIu64,
				    ip->i_eattr);
	return indirect_blocks(ip, nowait, &block_fn);
}

void xattr_record(const struct inode *ip, const struct buf *b, uint32_t off,
		  struct gfs2_ea_info *ea)
{
	const struct fs *fs = ip->i_fs;
	int err = gfs2_ea_at(&fs->fs_geom, b->b_data, fs->fs_sb.fs_format, off,
			     ea);

	ug_assert(!err);
}

/* ---- finding ---- */

struct finder {
	const struct xattr_key *key;
	struct xattr_place *place;
};

#define FOUND 1

static int find_in_block(struct inode *ip, struct buf *b, void *arg)
{
	struct finder *f = arg;
	uint32_t off = GFS2_EA_FIRST_OFF;
	struct gfs2_ea_info ea;

	do {
		xattr_record(ip, b, off, &ea);
		if (ea.type == f->key->type && ea.name_len == f->key->len &&
		    memcmp(ea.name, f->key->text, ea.name_len) == 0) {
			*f->place = (struct xattr_place){ buf_ref(b), off, ea };
			return FOUND;
		}
		off += ea.rec_len;
	} while (!ea.last);
	return 0;
}

int xattr_find(struct inode *ip, const struct xattr_key *key, bool nowait,
	       struct xattr_place *place)
{
	struct finder f = { key, place };
	int err = xattr_each_block(ip, nowait, find_in_block, &f);

	if (err == FOUND)
		return 0;
	return err ? err : -ENODATA;
}

/* ---- values ---- */

static void value_copy(const struct gfs2_geom *geom, struct buf *const *eds,
		       uint32_t len, char *value)
{
	for (unsigned i = 0; len; i++) {
		uint32_t n = UG_MIN(len, geom->jbsize);

		memcpy(value,
		       (char *)eds[i]->b_data + sizeof(struct gfs2_meta_header),
		       n);
		value += n;
		len -= n;
	}
}

/* All blocks are there before the first byte is copied. */
static int value_read(struct inode *ip, const struct xattr_place *place,
		      bool nowait, char *value)
{
	const struct gfs2_geom *geom = &ip->i_fs->fs_geom;
	unsigned count = UG_DIV_UP(place->ea.data_len, geom->jbsize), have;
	struct buf *eds[VALUE_BLOCKS_MAX];
	int err = 0;

	ug_assert(count <= VALUE_BLOCKS_MAX && count <= place->ea.num_ptrs);
	for (have = 0; have < count; have++) {
		uint64_t blkno = be64_get(place->ea.ptrs[have]);

		if (!rgrps_valid_block(ip->i_fs, blkno))
			err = fs_bad_block(ip->i_fs, place->b->b_blkno,
					   "a value leads to block %" PRIu64,
					   blkno);
		else
			err = inode_meta(ip, blkno, GFS2_METATYPE_ED, nowait,
					 &eds[have]);
		if (err)
			break;
	}
	if (!err)
		value_copy(geom, eds, place->ea.data_len, value);
	while (have)
		buf_put(eds[--have]);
	return err;
}

int xattr_value(struct inode *ip, const struct xattr_place *place, bool nowait,
		void *value)
{
	if (place->ea.num_ptrs)
		return value_read(ip, place, nowait, value);
	if (place->ea.data_len)
		memcpy(value, place->ea.value, place->ea.data_len);
	return 0;
}
