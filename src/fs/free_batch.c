/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * free_batch.c - one transaction that frees blocks of an inode.
 *
 * Whether the blocks are in use is looked up before the transaction begins, so
 * that a damaged tree is found while nothing has been changed. What can still
 * fail within it (a block that occurs twice in one batch) withdraws the file
 * system before the transaction ends, and so before it can be committed.
 */
#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "fs/free_batch.h"

/* Revokes of one transaction: bounded by this, and by a share of the log. */
#define REVOKES_MAX 8192u
#define REVOKES_LOG_SHARE 8u

/* What else the transaction does. */
enum finish {
	FINISH_NONE,
	FINISH_EMPTIED,
	FINISH_DINODE,
};

static uint32_t revokes_max(struct fs *fs)
{
	uint64_t in_log = (uint64_t)fs->fs_logmap.blocks / REVOKES_LOG_SHARE *
			  fs->fs_geom.ldptrs;

	return (uint32_t)UG_MAX(UG_MIN(in_log, (uint64_t)REVOKES_MAX), 1u);
}

int free_batch_init(struct free_batch *fb, struct inode *ip)
{
	fb->fb_ip = ip;
	rgrp_hold_init(&fb->fb_hold);
	fb->fb_blocks = 0;
	fb->fb_revokes = 0;
	fb->fb_revokes_max = revokes_max(ip->i_fs);
	fb->fb_extents = 0;
	fb->fb_cuts = 0;
	fb->fb_eattr = false;
	return inode_dibuf(ip, false, &fb->fb_dibuf);
}

static void cuts_drop(struct free_batch *fb, unsigned keep)
{
	while (fb->fb_cuts > keep)
		buf_put(fb->fb_cut[--fb->fb_cuts].fc_buf);
}

static void batch_reset(struct free_batch *fb)
{
	rgrp_drop(&fb->fb_hold);
	cuts_drop(fb, 0);
	fb->fb_extents = 0;
	fb->fb_blocks = 0;
	fb->fb_revokes = 0;
	fb->fb_eattr = false;
}

void free_batch_fini(struct free_batch *fb)
{
	batch_reset(fb);
	buf_put(fb->fb_dibuf);
}

/* ---- the transaction ---- */

static int check_extents(const struct free_batch *fb)
{
	for (unsigned i = 0; i < fb->fb_extents; i++) {
		const struct free_extent *ext = &fb->fb_ext[i];
		int err = rgrp_check_used(&fb->fb_hold, ext->start, ext->len);

		if (err)
			return err;
	}
	return 0;
}

/* The dinode itself stays, or is the one block left. */
static int check_counts(const struct free_batch *fb, enum finish finish)
{
	struct inode *ip = fb->fb_ip;
	uint64_t owned = ip->i_blocks;

	if (fb->fb_blocks < owned &&
	    (finish != FINISH_DINODE || fb->fb_blocks + 1 == owned))
		return 0;
	return fs_bad_block(ip->i_fs, ip->i_addr,
			    "inode says that %" PRIu64
			    " blocks are left, found %s%" PRIu64,
			    owned, finish == FINISH_DINODE ? "" : "at least ",
			    fb->fb_blocks + 1);
}

static be64 *slots_of(const struct free_batch *fb, struct buf *b)
{
	return b == fb->fb_dibuf ? gfs2_dinode_ptrs(b->b_data)
				 : gfs2_indirect_ptrs(b->b_data);
}

static void cuts_apply(struct trans *tr, const struct free_batch *fb)
{
	for (unsigned i = 0; i < fb->fb_cuts; i++) {
		const struct free_cut *cut = &fb->fb_cut[i];

		trans_add_meta(tr, cut->fc_buf);
		memset(slots_of(fb, cut->fc_buf) + cut->fc_first, 0,
		       (cut->fc_end - cut->fc_first) * sizeof(be64));
	}
}

static int extents_free(struct trans *tr, struct free_batch *fb)
{
	int err = 0;

	for (unsigned i = 0; !err && i < fb->fb_extents; i++) {
		const struct free_extent *ext = &fb->fb_ext[i];

		err = rgrp_free(tr, &fb->fb_hold, fb->fb_ip, ext->start,
				ext->len, ext->metadata);
	}
	return err;
}

/* Nothing is left of the contents (3.7 step 4). */
static void become_empty(struct free_batch *fb)
{
	struct inode *ip = fb->fb_ip;

	ip->i_height = 0;
	ip->i_size = 0;
	ip->i_disksize = 0;
	ip->i_goal = ip->i_addr;
	memset(gfs2_dinode_area(fb->fb_dibuf->b_data), 0,
	       ip->i_fs->fs_geom.stuffed_max);
}

/* i_lock held. */
static int batch_apply(struct trans *tr, struct free_batch *fb,
		       enum finish finish)
{
	struct inode *ip = fb->fb_ip;
	int err;

	err = extents_free(tr, fb);
	if (!err && finish == FINISH_DINODE)
		return rgrp_free_dinode(tr, &fb->fb_hold, ip->i_addr);
	if (err)
		return err;
	trans_add_meta(tr, fb->fb_dibuf);
	cuts_apply(tr, fb);
	if (finish == FINISH_EMPTIED)
		become_empty(fb);
	if (fb->fb_eattr) {
		ip->i_eattr = 0;
		ip->i_flags &= ~GFS2_DIF_EA_INDIRECT;
	}
	inode_log(tr, ip, fb->fb_dibuf);
	return 0;
}

static unsigned blocks_wanted(const struct free_batch *fb, enum finish finish)
{
	unsigned blocks = 0;

	if (fb->fb_hold.rh_rg)
		blocks = rgrp_trans_blocks(
			&fb->fb_hold, (uint32_t)UG_MIN(fb->fb_blocks + 1,
						       (uint64_t)UINT32_MAX));
	if (finish != FINISH_DINODE)
		blocks += 1 + fb->fb_cuts;
	return blocks;
}

static int batch_commit(struct free_batch *fb, enum finish finish)
{
	struct inode *ip = fb->fb_ip;
	struct fs *fs = ip->i_fs;
	struct trans tr;
	int err;

	err = check_counts(fb, finish);
	if (!err)
		err = check_extents(fb);
	if (!err)
		err = trans_begin(
			fs->fs_journal, &tr, blocks_wanted(fb, finish),
			fb->fb_revokes + (finish == FINISH_DINODE), 0);
	if (err)
		return err;
	pthread_rwlock_wrlock(&ip->i_lock);
	err = batch_apply(&tr, fb, finish);
	pthread_rwlock_unlock(&ip->i_lock);
	if (err)
		fs_withdraw(fs, "freeing blocks of inode %" PRIu64, ip->i_addr);
	inode_logged(ip, trans_end(&tr), true);
	batch_reset(fb);
	return err;
}

int free_batch_commit(struct free_batch *fb)
{
	return fb->fb_extents ? batch_commit(fb, FINISH_NONE) : 0;
}

int free_batch_commit_emptied(struct free_batch *fb)
{
	return batch_commit(fb, FINISH_EMPTIED);
}

int free_batch_commit_dinode(struct free_batch *fb)
{
	struct inode *ip = fb->fb_ip;
	int err = 0;

	if (!rgrp_hold_covers(&fb->fb_hold, ip->i_addr)) {
		err = free_batch_commit(fb);
		if (!err)
			err = rgrp_hold_block(ip->i_fs, ip->i_addr, false,
					      &fb->fb_hold);
	}
	return err ? err : batch_commit(fb, FINISH_DINODE);
}

/* ---- collecting ---- */

/* The extent that a block continues, or NULL. */
static struct free_extent *extent_before(struct free_batch *fb, uint64_t start,
					 bool metadata)
{
	struct free_extent *last;

	if (!fb->fb_extents)
		return NULL;
	last = &fb->fb_ext[fb->fb_extents - 1];
	if (last->metadata != metadata || last->start + last->len != start)
		return NULL;
	return last;
}

/* Does the last cut end in holder? Then the slot's is the same cut. */
static bool is_last_holder(const struct free_batch *fb,
			   const struct buf *holder)
{
	return fb->fb_cuts && fb->fb_cut[fb->fb_cuts - 1].fc_buf == holder;
}

static bool has_room(const struct free_batch *fb, const struct buf *holder,
		     bool metadata)
{
	return fb->fb_extents < FREE_EXTENTS_MAX &&
	       (is_last_holder(fb, holder) || fb->fb_cuts < FREE_CUTS_MAX) &&
	       (!metadata || fb->fb_revokes < fb->fb_revokes_max);
}

/* Make the batch take blocks of start's group from holder. */
static int batch_open(struct free_batch *fb, const struct buf *holder,
		      uint64_t start, bool metadata)
{
	int err;

	if (fb->fb_extents && rgrp_hold_covers(&fb->fb_hold, start) &&
	    has_room(fb, holder, metadata))
		return 0;
	err = free_batch_commit(fb);
	if (err)
		return err;
	return rgrp_hold_block(fb->fb_ip->i_fs, start, false, &fb->fb_hold);
}

/*
 * Slots come in ascending order, and what lies between two of them is 0 or has
 * been zeroed by an earlier transaction: a cut may reach across.
 */
static void cut_add(struct free_batch *fb, struct buf *holder, uint32_t slot,
		    uint32_t count)
{
	if (!is_last_holder(fb, holder))
		fb->fb_cut[fb->fb_cuts++] = (struct free_cut){
			.fc_buf = buf_ref(holder),
			.fc_first = slot,
		};
	fb->fb_cut[fb->fb_cuts - 1].fc_end = slot + count;
}

static void extent_add(struct free_batch *fb, uint64_t start, uint32_t len,
		       bool metadata)
{
	struct free_extent *ext = extent_before(fb, start, metadata);

	if (ext)
		ext->len += len;
	else
		fb->fb_ext[fb->fb_extents++] =
			(struct free_extent){ start, len, metadata };
	fb->fb_blocks += len;
	if (metadata)
		fb->fb_revokes += len;
}

int free_batch_add(struct free_batch *fb, struct buf *holder, uint32_t slot,
		   uint64_t start, uint32_t len, bool metadata)
{
	while (len) {
		uint32_t n = len;
		int err = batch_open(fb, holder, start, metadata);

		if (err)
			return err;
		if (metadata)
			n = UG_MIN(n, fb->fb_revokes_max - fb->fb_revokes);
		extent_add(fb, start, n, metadata);
		cut_add(fb, holder, slot, n);
		start += n;
		slot += n;
		len -= n;
	}
	return 0;
}

int free_batch_add_node(struct free_batch *fb, struct buf *parent,
			uint32_t slot, struct buf *node)
{
	int err;

	/* Before its cut goes: if this commits, the node stays for a while. */
	err = batch_open(fb, parent, node->b_blkno, true);
	if (err)
		return err;
	if (is_last_holder(fb, node))
		cuts_drop(fb, fb->fb_cuts - 1);
	extent_add(fb, node->b_blkno, 1, true);
	cut_add(fb, parent, slot, 1);
	return 0;
}

int free_batch_add_eattr(struct free_batch *fb)
{
	uint64_t blkno = fb->fb_ip->i_eattr;
	int err;

	err = batch_open(fb, NULL, blkno, true);
	if (err)
		return err;
	extent_add(fb, blkno, 1, true);
	fb->fb_eattr = true;
	return 0;
}
