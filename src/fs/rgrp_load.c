/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * rgrp_load.c - the resource index, and finding a group by block.
 *
 * rindex is a journaled file of 96-byte entries that straddle block borders. It
 * is read once, a block at a time, into an array sorted by address. Of the
 * groups themselves nothing is read here: a volume of many terabytes has
 * tens of thousands, of which a mount uses few.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "fs/rgrp_int.h"
#include "fs/tree.h"

#define ENTRY_BYTES ((uint32_t)sizeof(struct gfs2_rindex))

/* ---- the contents of rindex ---- */

/* Copies of the file's blocks, one at a time. */
struct rindex_reader {
	struct inode *ip;
	struct buf *b;
	uint64_t lblock; /* of b */
};

static int rindex_map(struct inode *ip, uint64_t lblock, uint64_t *blkno)
{
	struct tree_run run;
	int err;

	pthread_rwlock_rdlock(&ip->i_lock);
	err = tree_map(ip, lblock, 1, false, &run);
	pthread_rwlock_unlock(&ip->i_lock);
	if (err)
		return err;
	if (!run.pblock)
		return fs_bad_block(ip->i_fs, ip->i_addr,
				    "rindex has a hole at block %" PRIu64,
				    lblock);
	*blkno = run.pblock;
	return 0;
}

static int rindex_block(struct inode *ip, uint64_t lblock, struct buf **bp)
{
	uint64_t blkno = 0;
	int err;

	if (inode_is_stuffed(ip))
		return inode_dibuf(ip, false, bp);
	err = rindex_map(ip, lblock, &blkno);
	if (err)
		return err;
	return buf_read(ip->i_fs->fs_cache, &ip->i_bufs, blkno, 0, bp);
}

/* The bytes of the file from offset on, as far as their block reaches. */
static int rindex_at(struct rindex_reader *rd, uint64_t offset,
		     const uint8_t **p, uint32_t *len)
{
	const struct gfs2_geom *geom = &rd->ip->i_fs->fs_geom;
	bool stuffed = inode_is_stuffed(rd->ip);
	uint32_t start = stuffed ? geom->bsize - geom->stuffed_max : 0;
	uint64_t lblock = stuffed ? 0 : offset >> geom->bshift;
	int err;

	if (!rd->b || rd->lblock != lblock) {
		buf_put(rd->b);
		rd->b = NULL;
		err = rindex_block(rd->ip, lblock, &rd->b);
		if (err)
			return err;
		rd->lblock = lblock;
	}
	start += offset & (geom->bsize - 1);
	*p = (const uint8_t *)rd->b->b_data + start;
	*len = geom->bsize - start;
	return 0;
}

static int rindex_read(struct rindex_reader *rd, uint64_t offset, void *out,
		       uint32_t len)
{
	uint8_t *to = out;

	while (len) {
		const uint8_t *p;
		uint32_t n;
		int err = rindex_at(rd, offset, &p, &n);

		if (err)
			return err;
		n = UG_MIN(n, len);
		memcpy(to, p, n);
		to += n;
		offset += n;
		len -= n;
	}
	return 0;
}

/* ---- checking it ---- */

static int entry_check(struct fs *fs, uint32_t index,
		       const struct gfs2_rindex_info *ri,
		       const struct gfs2_rindex_info *prev)
{
	uint64_t sb = GFS2_SB_OFFSET_BYTES >> fs->fs_geom.bshift;
	uint64_t first = prev ? prev->data0 + prev->data : sb + 1;

	if (ri->addr < first)
		return fs_bad_block(fs, fs->fs_rindex->i_addr,
				    "rindex entry %u: group at block %" PRIu64
				    " begins before block %" PRIu64,
				    index, ri->addr, first);
	if (ri->data0 + ri->data > fs->fs_blocks)
		return fs_bad_block(
			fs, fs->fs_rindex->i_addr,
			"rindex entry %u: group at block %" PRIu64
			" ends at block %" PRIu64 ", the device has %" PRIu64,
			index, ri->addr, ri->data0 + ri->data, fs->fs_blocks);
	return 0;
}

static int entries_read(struct fs *fs, struct rgrps *rgs)
{
	struct rindex_reader rd = { .ip = fs->fs_rindex };
	const struct gfs2_rindex_info *prev = NULL;
	struct gfs2_rindex entry;
	int err = 0;

	for (uint32_t i = 0; !err && i < rgs->rgs_count; i++) {
		struct rgrp *rg = &rgs->rgs_groups[i];

		err = rindex_read(&rd, (uint64_t)i * ENTRY_BYTES, &entry,
				  ENTRY_BYTES);
		if (err)
			break;
		if (gfs2_rindex_decode(&fs->fs_geom, &entry, &rg->rg_ri))
			err = fs_bad_block(fs, fs->fs_rindex->i_addr,
					   "rindex entry %u contradicts itself",
					   i);
		else
			err = entry_check(fs, i, &rg->rg_ri, prev);
		prev = &rg->rg_ri;
	}
	buf_put(rd.b);
	return err;
}

/* ---- the array ---- */

static void groups_init(struct fs *fs, struct rgrps *rgs)
{
	for (uint32_t i = 0; i < rgs->rgs_count; i++) {
		struct rgrp *rg = &rgs->rgs_groups[i];
		bool last = i + 1 == rgs->rgs_count;

		rg->rg_fs = fs;
		rg->rg_index = i;
		rg->rg_skip =
			last ? 0
			     : (uint32_t)(rg[1].rg_ri.addr - rg->rg_ri.addr);
		buf_owner_init(&rg->rg_owner);
		pthread_mutex_init(&rg->rg_lock, NULL);
		CDS_INIT_LIST_HEAD(&rg->rg_windows);
		atomic_init(&rgs->rgs_hints[i].rt_room, rg->rg_ri.data);
		atomic_init(&rgs->rgs_hints[i].rt_run, UINT32_MAX);
		rgs->rgs_total += rg->rg_ri.data;
	}
}

static void rgrps_free(struct rgrps *rgs)
{
	free(rgs->rgs_groups);
	free(rgs->rgs_hints);
	free(rgs);
}

static int rgrps_alloc(uint32_t count, struct rgrps **rgsp)
{
	struct rgrps *rgs = calloc(1, sizeof(*rgs));

	if (!rgs)
		return -ENOMEM;
	rgs->rgs_count = count;
	rgs->rgs_groups = calloc(count, sizeof(*rgs->rgs_groups));
	rgs->rgs_hints = calloc(count, sizeof(*rgs->rgs_hints));
	if (!rgs->rgs_groups || !rgs->rgs_hints) {
		rgrps_free(rgs);
		return -ENOMEM;
	}
	*rgsp = rgs;
	return 0;
}

/* rindex is locked. */
static int rgrps_read(struct fs *fs)
{
	/* What is behind the last whole entry is ignored (2.4). */
	uint64_t count = fs->fs_rindex->i_size / ENTRY_BYTES;
	struct rgrps *rgs;
	int err;

	/* A group has a block of its own at least: bounds the memory. */
	if (!count || count >= UG_MIN(fs->fs_blocks, (uint64_t)UINT32_MAX))
		return fs_bad_block(fs, fs->fs_rindex->i_addr,
				    "rindex has %" PRIu64 " entries", count);
	err = rgrps_alloc((uint32_t)count, &rgs);
	if (err)
		return err;
	err = entries_read(fs, rgs);
	if (err) {
		rgrps_free(rgs);
		return err;
	}
	groups_init(fs, rgs);
	pthread_mutex_init(&rgs->rgs_gl_lock, NULL);
	rgrps_cleaner_init(&rgs->rgs_cleaner);
	space_init(rgs);
	fs->fs_rgrps = rgs;
	return 0;
}

int rgrps_load(struct fs *fs)
{
	static const struct fs_req req = { 0 };
	struct glock_holder gh;
	int err;

	err = inode_lock(&req, fs->fs_rindex, LM_ST_SHARED, &gh);
	if (err)
		return err;
	err = rgrps_read(fs);
	inode_unlock(&gh);
	return err;
}

/*
 * The journal has been shut down or destroyed, so that no commit callback is
 * left that names a group.
 */
void rgrps_unload(struct fs *fs)
{
	struct rgrps *rgs = fs->fs_rgrps;

	if (!rgs)
		return;
	for (uint32_t i = 0; i < rgs->rgs_count; i++) {
		struct rgrp *rg = &rgs->rgs_groups[i];
		struct glock *gl = atomic_load(&rg->rg_gl);

		if (gl)
			glock_put(gl);
		/* After a withdraw the glock has not done it. */
		rgrp_leave_memory(rg);
		buf_owner_destroy(&rg->rg_owner);
		pthread_mutex_destroy(&rg->rg_lock);
	}
	pthread_mutex_destroy(&rgs->rgs_gl_lock);
	rgrps_cleaner_fini(&rgs->rgs_cleaner);
	space_fini(rgs);
	fs->fs_rgrps = NULL;
	rgrps_free(rgs);
}

/* ---- finding ---- */

/* Index of the last group whose address is not above the block; it may be 0. */
static uint32_t group_below(const struct rgrps *rgs, uint64_t blkno)
{
	uint32_t lo = 0, hi = rgs->rgs_count;

	while (hi - lo > 1) {
		uint32_t mid = lo + (hi - lo) / 2;

		if (rgs->rgs_groups[mid].rg_ri.addr <= blkno)
			lo = mid;
		else
			hi = mid;
	}
	return lo;
}

struct rgrp *rgrps_find(struct rgrps *rgs, uint64_t blkno)
{
	uint32_t index =
		atomic_load_explicit(&rgs->rgs_found, memory_order_relaxed);
	struct rgrp *rg = &rgs->rgs_groups[index];

	if (rgrp_maps(rg, blkno))
		return rg;
	index = group_below(rgs, blkno);
	rg = &rgs->rgs_groups[index];
	if (!rgrp_maps(rg, blkno))
		return NULL;
	atomic_store_explicit(&rgs->rgs_found, index, memory_order_relaxed);
	return rg;
}

bool rgrps_valid_block(struct fs *fs, uint64_t blkno)
{
	/* While the mount reads rindex itself, nothing better is known. */
	if (!fs->fs_rgrps)
		return blkno > GFS2_SB_OFFSET_BYTES >> fs->fs_geom.bshift &&
		       blkno < fs->fs_blocks;
	return rgrps_find(fs->fs_rgrps, blkno) != NULL;
}
