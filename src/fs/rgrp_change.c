/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * rgrp_change.c - what transactions change in a group.
 *
 *   event              bitmap  rg_free  rg_dinodes  statfs free, dinodes
 *   rgrp_alloc         0 -> 1    -n                   -n
 *   rgrp_alloc_dinode  0 -> 3    -1       +1          -1   +1
 *   rgrp_free          1 -> 0    +n                   +n
 *   rgrp_unlink_dinode 3 -> 2
 *   rgrp_free_dinode   2 -> 0    +1       -1          +1   -1
 *
 * Order within each: buffers into the transaction, without rg_lock (the journal
 * may wait for a flush when memory is short, and the flush's callbacks take
 * rg_lock); then, under rg_lock, the states are checked, the bitmap changed
 * and the header encoded, its checksum last.
 *
 * Freed blocks are collected in a record per group and flush (a transaction
 * that is open names the flush it will be in), which the commit callback
 * carries over to avail. A crash before that commit brings the old owner back,
 * and nobody has used its blocks. Source: docs/spec/gfs2-ondisk.md 6.4, 6.5.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>

#include "base/assert.h"
#include "fs/rgrp_int.h"
#include "fs/statfs.h"

/* The header, and the bitmap blocks of [n, n + len), will be changed. */
static void bufs_add(struct trans *tr, struct rgrp *rg, uint32_t n,
		     uint32_t len)
{
	const struct gfs2_geom *geom = &rg->rg_fs->fs_geom;
	unsigned first, last, byte, shift;

	gfs2_rgrp_bitpos(geom, n, &first, &byte, &shift);
	gfs2_rgrp_bitpos(geom, n + len - 1, &last, &byte, &shift);
	trans_add_meta(tr, rg->rg_bufs[0]);
	for (unsigned i = UG_MAX(first, 1u); i <= last; i++)
		trans_add_meta(tr, rg->rg_bufs[i]);
	glock_set_dirty(atomic_load_explicit(&rg->rg_gl, memory_order_relaxed));
}

static void states_set(struct rgrp *rg, uint32_t n, uint32_t len,
		       enum gfs2_blkst state)
{
	const struct gfs2_geom *geom = &rg->rg_fs->fs_geom;
	unsigned i, byte, shift, start;
	uint32_t first, count;

	gfs2_rgrp_bitpos(geom, n, &i, &byte, &shift);
	for (; len; i++) {
		uint8_t *block = rg->rg_bufs[i]->b_data;
		uint32_t here;

		gfs2_rgrp_bitmap_span(geom, &rg->rg_ri, i, &start, &first,
				      &count);
		here = UG_MIN(len, first + count - n);
		rgrp_states_set(block + start, n - first, here, state);
		n += here;
		len -= here;
	}
}

static void header_write(struct rgrp *rg)
{
	gfs2_rgrp_encode(&rg->rg_info, rg->rg_bufs[0]->b_data);
	rgrp_lvb_set(rg);
}

/*
 * Check and change under one lock. -EUCLEAN, with nothing changed, if a block
 * is not in state from.
 */
static int change_states(struct rgrp *rg, uint32_t n, uint32_t len,
			 enum gfs2_blkst from, enum gfs2_blkst to)
{
	struct gfs2_rgrp_info *info = &rg->rg_info;
	bool dinode = from == GFS2_BLKST_UNLINKED || to == GFS2_BLKST_DINODE;

	if (!rgrp_all_in_state(rg, n, len, from))
		return -EUCLEAN;
	states_set(rg, n, len, to);
	rg->rg_unlinked += to == GFS2_BLKST_UNLINKED ? len : 0;
	rg->rg_unlinked -= from == GFS2_BLKST_UNLINKED ? len : 0;
	if (from == GFS2_BLKST_FREE) {
		info->free -= len;
		info->dinodes += dinode ? len : 0;
	} else if (to == GFS2_BLKST_FREE) {
		info->free += len;
		info->dinodes -= dinode ? len : 0;
		info->flags &= ~GFS2_RGF_TRIMMED;
	}
	header_write(rg);
	return 0;
}

static const char *state_name(enum gfs2_blkst state)
{
	switch (state) {
	case GFS2_BLKST_FREE:
		return "free";
	case GFS2_BLKST_USED:
		return "used";
	case GFS2_BLKST_UNLINKED:
		return "unlinked dinode";
	case GFS2_BLKST_DINODE:
		return "dinode";
	}
	return "?";
}

static int wrong_state(struct rgrp *rg, uint64_t start, uint32_t len,
		       enum gfs2_blkst expected)
{
	uint32_t n = rgrp_number(rg, start);

	while (len > 1 && rgrp_state(rg, n) == expected) {
		n++;
		len--;
	}
	return fs_bad_block(rg->rg_fs, rg->rg_ri.data0 + n,
			    "is %s in the bitmap, expected %s",
			    state_name(rgrp_state(rg, n)),
			    state_name(expected));
}

unsigned rgrp_trans_blocks(const struct rgrp_hold *hold, uint32_t n)
{
	/* statfs, header, bitmaps. */
	return 2 + UG_MIN(hold->rh_rg->rg_ri.length - 1, n);
}

/* ---- allocating ---- */

/* Take the first n blocks of the hold's first extent. */
static uint64_t hold_take(struct rgrp_hold *hold, uint32_t n)
{
	struct rgrp_extent *ext = &hold->rh_ext[hold->rh_first];
	uint64_t start = ext->start;

	ug_assert(hold->rh_first < hold->rh_count);
	ug_assert(n && n <= ext->len);
	ext->start += n;
	ext->len -= n;
	if (!ext->len)
		hold->rh_first++;
	hold->rh_blocks -= n;
	return start;
}

static void alloc_states(struct trans *tr, struct rgrp_hold *hold,
			 uint64_t start, uint32_t len, enum gfs2_blkst to)
{
	struct rgrp *rg = hold->rh_rg;
	uint32_t n = rgrp_number(rg, start);
	bool dinode = to == GFS2_BLKST_DINODE;
	int err;

	bufs_add(tr, rg, n, len);
	pthread_mutex_lock(&rg->rg_lock);
	err = change_states(rg, n, len, GFS2_BLKST_FREE, to);
	rgrp_usable_change(rg, -(int64_t)len);
	pthread_mutex_unlock(&rg->rg_lock);
	/* They were in avail, which was made from this bitmap. */
	ug_assert(!err);
	statfs_change(tr, rg->rg_fs, 0, -(int64_t)len, dinode ? 1 : 0);
	if (!hold->rh_data)
		space_unclaim(rg->rg_fs, len);
}

uint32_t rgrp_alloc(struct trans *tr, struct rgrp_hold *hold, struct inode *ip,
		    uint32_t max, uint64_t *start)
{
	uint32_t len = rgrp_peek(hold, max).len;

	*start = hold_take(hold, len);
	alloc_states(tr, hold, *start, len, GFS2_BLKST_USED);
	if (ip) {
		/* Read without i_lock for the goal and length of a window. */
		__atomic_store_n(&ip->i_goal, *start + len - 1,
				 __ATOMIC_RELAXED);
		__atomic_store_n(&ip->i_blocks, ip->i_blocks + len,
				 __ATOMIC_RELAXED);
	}
	return len;
}

/* The next value of the group's counter; 0 is skipped (3.10). */
static uint64_t next_formal(struct gfs2_rgrp_info *info)
{
	uint64_t formal = info->igeneration++;

	return formal ? formal : info->igeneration++;
}

uint64_t rgrp_alloc_dinode(struct trans *tr, struct rgrp_hold *hold,
			   uint64_t *formal)
{
	struct rgrp *rg = hold->rh_rg;
	uint64_t addr = hold_take(hold, 1);

	pthread_mutex_lock(&rg->rg_lock);
	*formal = next_formal(&rg->rg_info);
	pthread_mutex_unlock(&rg->rg_lock);
	alloc_states(tr, hold, addr, 1, GFS2_BLKST_DINODE);
	return addr;
}

/* ---- freeing ---- */

static void pending_done(struct commit_cb *cb, int err)
{
	struct rgrp_pending *rp =
		ug_container_of(cb, struct rgrp_pending, rp_cb);
	struct rgrp *rg = rp->rp_rg;

	pthread_mutex_lock(&rg->rg_lock);
	if (rg->rg_pending == rp)
		rg->rg_pending = NULL;
	/* After a withdraw the group may be out of memory already. */
	for (unsigned i = 0; !err && rg->rg_bufs && i < rp->rp_count; i++) {
		rgrp_avail_add(rg, rgrp_number(rg, rp->rp_ext[i].start),
			       rp->rp_ext[i].len);
		rgrp_usable_change(rg, rp->rp_ext[i].len);
	}
	pthread_mutex_unlock(&rg->rg_lock);
	if (!err)
		space_returned(rg->rg_fs, rp->rp_blocks);
	free(rp->rp_ext);
	free(rp);
}

static int pending_grow(struct rgrp_pending *rp)
{
	unsigned cap = rp->rp_cap ? rp->rp_cap * 2 : 8;
	void *ext = realloc(rp->rp_ext, cap * sizeof(*rp->rp_ext));

	if (!ext)
		return -ENOMEM;
	rp->rp_ext = ext;
	rp->rp_cap = cap;
	return 0;
}

static int pending_append(struct rgrp_pending *rp, uint64_t start, uint32_t len)
{
	struct rgrp_extent *last =
		rp->rp_count ? &rp->rp_ext[rp->rp_count - 1] : NULL;

	if (last && last->start + last->len == start) {
		last->len += len;
	} else {
		if (rp->rp_count == rp->rp_cap && pending_grow(rp))
			return -ENOMEM;
		rp->rp_ext[rp->rp_count++] = (struct rgrp_extent){ start, len };
	}
	rp->rp_blocks += len;
	return 0;
}

static struct rgrp_pending *pending_new(struct rgrp *rg, uint64_t sequence)
{
	struct rgrp_pending *rp = calloc(1, sizeof(*rp));

	if (rp) {
		rp->rp_cb.fn = pending_done;
		rp->rp_rg = rg;
		rp->rp_sequence = sequence;
	}
	return rp;
}

/*
 * Note freed blocks for the commit; rg_lock held. Returns a record that is new
 * and has yet to be handed to the journal, else NULL. Without memory, the
 * blocks stay out of avail until the group is read again.
 */
static struct rgrp_pending *pending_note(struct rgrp *rg, uint64_t start,
					 uint32_t len)
{
	uint64_t sequence = journal_sequence(rg->rg_fs->fs_journal);
	struct rgrp_pending *rp = rg->rg_pending;
	struct rgrp_pending *fresh = NULL;

	if (!rp || rp->rp_sequence != sequence) {
		fresh = pending_new(rg, sequence);
		if (!fresh) {
			rg->rg_lost += len;
			return NULL;
		}
		rg->rg_pending = rp = fresh;
	}
	if (pending_append(rp, start, len))
		rg->rg_lost += len;
	return fresh;
}

static int free_states(struct trans *tr, struct rgrp *rg, uint64_t start,
		       uint32_t len, enum gfs2_blkst from)
{
	bool dinode = from == GFS2_BLKST_UNLINKED;
	struct rgrp_pending *fresh = NULL;
	uint32_t n = rgrp_number(rg, start);
	bool refuses;
	int err;

	bufs_add(tr, rg, n, len);
	pthread_mutex_lock(&rg->rg_lock);
	refuses = rg->rg_info.flags & GFS2_RGF_NOALLOC;
	err = change_states(rg, n, len, from, GFS2_BLKST_FREE);
	if (err)
		wrong_state(rg, start, len, from);
	else
		fresh = pending_note(rg, start, len);
	pthread_mutex_unlock(&rg->rg_lock);
	if (err)
		return err;
	if (fresh)
		trans_on_commit(tr, &fresh->rp_cb);
	if (refuses)
		space_refused(rg->rg_fs, len);
	space_freed(rg->rg_fs, len);
	statfs_change(tr, rg->rg_fs, 0, len, dinode ? -1 : 0);
	return 0;
}

static int outside(struct rgrp *rg, uint64_t start, uint32_t len)
{
	return fs_bad_block(rg->rg_fs, start,
			    "%u blocks from here on are not in the resource "
			    "group at block %" PRIu64,
			    len, rg->rg_ri.addr);
}

static bool is_inside(const struct rgrp *rg, uint64_t start, uint32_t len)
{
	return rgrp_maps(rg, start) && len <= rg->rg_ri.data &&
	       rgrp_number(rg, start) <= rg->rg_ri.data - len;
}

int rgrp_check_used(const struct rgrp_hold *hold, uint64_t start, uint32_t len)
{
	struct rgrp *rg = hold->rh_rg;
	uint32_t n = rgrp_number(rg, start);
	int err = 0;

	if (!is_inside(rg, start, len))
		return outside(rg, start, len);
	pthread_mutex_lock(&rg->rg_lock);
	if (!rgrp_all_in_state(rg, n, len, GFS2_BLKST_USED))
		err = wrong_state(rg, start, len, GFS2_BLKST_USED);
	pthread_mutex_unlock(&rg->rg_lock);
	return err;
}

int rgrp_free(struct trans *tr, struct rgrp_hold *hold, struct inode *ip,
	      uint64_t start, uint32_t len, bool metadata)
{
	struct rgrp *rg = hold->rh_rg;
	int err;

	if (!is_inside(rg, start, len))
		return outside(rg, start, len);
	err = free_states(tr, rg, start, len, GFS2_BLKST_USED);
	if (err)
		return err;
	if (ip)
		__atomic_store_n(&ip->i_blocks, ip->i_blocks - len,
				 __ATOMIC_RELAXED);
	if (metadata)
		for (uint32_t i = 0; i < len; i++)
			trans_free_block(tr, start + i);
	return 0;
}

/* ---- dinodes ---- */

int rgrp_unlink_dinode(struct trans *tr, struct rgrp_hold *hold, uint64_t addr)
{
	struct rgrp *rg = hold->rh_rg;
	uint32_t n = rgrp_number(rg, addr);
	int err;

	if (!rgrp_maps(rg, addr))
		return outside(rg, addr, 1);
	bufs_add(tr, rg, n, 1);
	pthread_mutex_lock(&rg->rg_lock);
	err = change_states(rg, n, 1, GFS2_BLKST_DINODE, GFS2_BLKST_UNLINKED);
	if (err)
		wrong_state(rg, addr, 1, GFS2_BLKST_DINODE);
	pthread_mutex_unlock(&rg->rg_lock);
	return err;
}

int rgrp_free_dinode(struct trans *tr, struct rgrp_hold *hold, uint64_t addr)
{
	struct rgrp *rg = hold->rh_rg;
	int err;

	if (!rgrp_maps(rg, addr))
		return outside(rg, addr, 1);
	err = free_states(tr, rg, addr, 1, GFS2_BLKST_UNLINKED);
	if (!err)
		trans_free_block(tr, addr);
	return err;
}
