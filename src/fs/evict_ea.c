/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * evict_ea.c - taking extended attributes apart.
 *
 *   di_eattr -> EA block                      (usual: nothing to do here)
 *   di_eattr -> EA block -> ED blocks         values that are too big
 *   di_eattr -> IN block -> EA blocks -> ED blocks
 *
 * Arrays of pointers are emptied from their end, as many in one transaction as
 * lie in one resource group. A record that loses pointers becomes an unused one
 * first; the pointers that it still has count (ea_num_ptrs), for fsck as for
 * the next attempt after a crash.
 * Source: docs/spec/gfs2-ondisk.md 5.1, 5.2, 5.4, 6.7 step 2.
 */
#include <errno.h>
#include <inttypes.h>

#include "fs/evict_ea.h"
#include "fs/rgrp.h"

/* An array of block pointers within a metadata block. */
struct ptr_array {
	struct buf *b;
	be64 *ptrs;
	unsigned count;		   /* those in use; none of them 0 */
	struct gfs2_ea_header *ea; /* its record, or NULL */
};

/* ---- one transaction ---- */

/* How many pointers at the end of the array lead into the held group. */
static unsigned tail_in_group(const struct ptr_array *pa,
			      const struct rgrp_hold *hold)
{
	unsigned n = 0;

	while (n < pa->count &&
	       rgrp_hold_covers(hold, be64_get(pa->ptrs[pa->count - 1 - n])))
		n++;
	return n;
}

static int check_tail(const struct ptr_array *pa, struct rgrp_hold *hold,
		      unsigned n)
{
	int err = 0;

	for (unsigned i = pa->count - n; !err && i < pa->count; i++)
		err = rgrp_check_used(hold, be64_get(pa->ptrs[i]), 1);
	return err;
}

/* i_lock held, the array's block in the transaction. */
static int tail_free(struct trans *tr, struct inode *ip, struct ptr_array *pa,
		     struct rgrp_hold *hold, unsigned n)
{
	while (n--) {
		be64 *ptr = &pa->ptrs[--pa->count];
		int err = rgrp_free(tr, hold, ip, be64_get(*ptr), 1, true);

		if (err)
			return err;
		*ptr = be64_of(0);
	}
	if (pa->ea) {
		pa->ea->ea_type = GFS2_EATYPE_UNUSED;
		pa->ea->ea_num_ptrs = (uint8_t)pa->count;
	}
	return 0;
}

static int tail_commit(struct inode *ip, struct buf *dibuf,
		       struct ptr_array *pa, struct rgrp_hold *hold, unsigned n)
{
	struct fs *fs = ip->i_fs;
	struct trans tr;
	int err;

	if (ip->i_blocks <= n)
		return fs_bad_block(fs, ip->i_addr,
				    "inode says that it has %" PRIu64
				    " blocks, found more",
				    ip->i_blocks);
	err = trans_begin(fs->fs_journal, &tr, 2 + rgrp_trans_blocks(hold, n),
			  n, 0);
	if (err)
		return err;
	pthread_rwlock_wrlock(&ip->i_lock);
	trans_add_meta(&tr, pa->b);
	err = tail_free(&tr, ip, pa, hold, n);
	if (!err)
		inode_log(&tr, ip, dibuf);
	pthread_rwlock_unlock(&ip->i_lock);
	if (err)
		fs_withdraw(fs, "freeing attributes of inode %" PRIu64,
			    ip->i_addr);
	inode_logged(ip, trans_end(&tr), true);
	return err;
}

/* Free what the array leads to. */
static int array_free(struct inode *ip, struct ptr_array *pa)
{
	struct buf *dibuf;
	int err;

	if (!pa->count)
		return 0;
	err = inode_dibuf(ip, false, &dibuf);
	if (err)
		return err;
	while (!err && pa->count) {
		uint64_t last = be64_get(pa->ptrs[pa->count - 1]);
		struct rgrp_hold hold;
		unsigned n;

		rgrp_hold_init(&hold);
		err = rgrp_hold_block(ip->i_fs, last, false, &hold);
		if (err)
			break;
		n = tail_in_group(pa, &hold);
		err = check_tail(pa, &hold, n);
		if (!err)
			err = tail_commit(ip, dibuf, pa, &hold, n);
		rgrp_drop(&hold);
	}
	buf_put(dibuf);
	return err;
}

/* ---- records ---- */

/*
 * The pointers of the record at off, also of one that has become unused: that
 * one's lengths are leftovers, so they are held against the record. The codec
 * has checked that the record lies within the block.
 */
static int record_array(struct inode *ip, struct buf *b, uint32_t off,
			struct ptr_array *pa)
{
	struct gfs2_ea_header *ea =
		(struct gfs2_ea_header *)((char *)b->b_data + off);
	uint32_t start =
		UG_ALIGN_UP((uint32_t)sizeof(*ea) + ea->ea_name_len, 8u);

	*pa = (struct ptr_array){
		.b = b,
		.ptrs = (be64 *)((char *)ea + start),
		.count = ea->ea_num_ptrs,
		.ea = ea,
	};
	if (pa->count &&
	    start + pa->count * sizeof(be64) > be32_get(ea->ea_rec_len))
		return fs_bad_block(ip->i_fs, b->b_blkno,
				    "attribute record at byte %u has %u "
				    "pointers, more than fit",
				    off, pa->count);
	return 0;
}

int evict_ea_value(struct inode *ip, struct buf *b, uint32_t off)
{
	struct ptr_array pa;
	int err = record_array(ip, b, off, &pa);

	return err ? err : array_free(ip, &pa);
}

/* The ED blocks of all records of one EA block. */
static int values_free(struct inode *ip, struct buf *b)
{
	struct fs *fs = ip->i_fs;
	uint32_t off = GFS2_EA_FIRST_OFF;
	struct gfs2_ea_info info;
	bool last;
	int err;

	do {
		if (gfs2_ea_at(&fs->fs_geom, b->b_data, fs->fs_sb.fs_format,
			       off, &info))
			return fs_bad_block(fs, b->b_blkno,
					    "attribute record at byte %u is "
					    "damaged",
					    off);
		/* Before the record changes. */
		last = info.last;
		err = evict_ea_value(ip, b, off);
		off += info.rec_len;
	} while (!err && !last);
	return err;
}

static int block_values_free(struct inode *ip, uint64_t blkno)
{
	struct buf *b;
	int err;

	if (!rgrps_valid_block(ip->i_fs, blkno))
		return fs_bad_block(ip->i_fs, ip->i_addr,
				    "attributes lead to block %" PRIu64, blkno);
	err = inode_meta(ip, blkno, GFS2_METATYPE_EA, false, &b);
	if (err)
		return err;
	err = values_free(ip, b);
	buf_put(b);
	return err;
}

/* ---- the indirect block ---- */

static int indirect_free(struct inode *ip)
{
	const struct gfs2_geom *geom = &ip->i_fs->fs_geom;
	struct ptr_array pa = { 0 };
	int err;

	err = inode_meta(ip, ip->i_eattr, GFS2_METATYPE_IN, false, &pa.b);
	if (err)
		return err;
	pa.ptrs = gfs2_indirect_ptrs(pa.b->b_data);
	while (!err && pa.count < geom->inptrs && pa.ptrs[pa.count].raw)
		err = block_values_free(ip, be64_get(pa.ptrs[pa.count++]));
	if (!err)
		err = array_free(ip, &pa);
	buf_put(pa.b);
	return err;
}

int evict_ea_contents(struct inode *ip)
{
	if (!rgrps_valid_block(ip->i_fs, ip->i_eattr))
		return fs_bad_block(ip->i_fs, ip->i_addr,
				    "attributes are at block %" PRIu64,
				    ip->i_eattr);
	if (ip->i_flags & GFS2_DIF_EA_INDIRECT)
		return indirect_free(ip);
	return block_values_free(ip, ip->i_eattr);
}
