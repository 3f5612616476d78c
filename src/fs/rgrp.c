/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * rgrp.c - a resource group in memory: read, held, given up.
 *
 * A group is read when its glock is first taken (instantiate): header and
 * bitmap blocks stay referenced, and avail is made from the bitmaps. Between
 * then and the next invalidate, the buffers are the truth of the disk format
 * and avail says which free blocks may be given away:
 *
 *     avail  =  free in the bitmap  -  in a hold  -  freed but not durable
 *
 *   rgrp_reserve:   avail -> hold           rgrp_drop:  hold -> avail
 *   rgrp_alloc:     hold -> used in the bitmap
 *   rgrp_free:      used -> free in the bitmap; commit callback -> avail
 *
 * Nothing is pending when a group is given up: sync has flushed the log.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/assert.h"
#include "fs/rgrp_int.h"

/* For users of a group of this node. */
#define OURS_WAIT_NS 20000000u

/* ---- reading a group ---- */

static int block_check(struct rgrp *rg, uint32_t i, const struct buf *b)
{
	enum gfs2_metatype type = i ? GFS2_METATYPE_RB : GFS2_METATYPE_RG;
	uint32_t found;

	if (!gfs2_check_meta(b->b_data, type))
		return 0;
	found = gfs2_meta_type(b->b_data);
	return fs_bad_block(rg->rg_fs, b->b_blkno,
			    "resource group %" PRIu64
			    " has a %s here, expected a %s",
			    rg->rg_ri.addr, gfs2_metatype_name(found),
			    gfs2_metatype_name(type));
}

static void blocks_put(struct buf **bufs, uint32_t count)
{
	for (uint32_t i = 0; i < count; i++)
		buf_put(bufs[i]);
}

static int blocks_read(struct rgrp *rg, bool nowait, struct buf **bufs)
{
	const struct gfs2_rindex_info *ri = &rg->rg_ri;
	struct bufcache *cache = rg->rg_fs->fs_cache;
	uint32_t i;
	int err = 0;

	if (!nowait && ri->length > 1)
		buf_readahead(cache, &rg->rg_owner, ri->addr, ri->length);
	for (i = 0; !err && i < ri->length; i++) {
		err = buf_read(cache, &rg->rg_owner, ri->addr + i,
			       nowait ? BUF_NOWAIT : 0, &bufs[i]);
		if (err)
			break;
		err = block_check(rg, i, bufs[i]);
	}
	if (err)
		blocks_put(bufs, i);
	return err;
}

static const uint8_t *map_of(const struct rgrp *rg, struct buf *const *bufs,
			     uint32_t i, uint32_t *first, uint32_t *count)
{
	unsigned start;

	gfs2_rgrp_bitmap_span(&rg->rg_fs->fs_geom, &rg->rg_ri, i, &start, first,
			      count);
	return (const uint8_t *)bufs[i]->b_data + start;
}

static uint32_t count_state(const struct rgrp *rg, struct buf *const *bufs,
			    enum gfs2_blkst state)
{
	uint32_t first, count, sum = 0;

	for (uint32_t i = 0; i < rg->rg_ri.length; i++) {
		const uint8_t *map = map_of(rg, bufs, i, &first, &count);

		sum += gfs2_bitmap_count(map, count, state);
	}
	return sum;
}

/*
 * Header against bitmaps: counters that do not fit would run below zero
 * sooner or later, in the middle of a change.
 */
static int header_check(const struct rgrp *rg, struct buf *const *bufs,
			struct gfs2_rgrp_info *info, uint32_t *unlinked)
{
	uint32_t free_, dinodes;

	if (gfs2_rgrp_decode(bufs[0]->b_data, &rg->rg_ri, info))
		return fs_bad_block(rg->rg_fs, rg->rg_ri.addr,
				    "resource group header: wrong checksum, "
				    "or counters beyond its %u blocks",
				    rg->rg_ri.data);
	free_ = count_state(rg, bufs, GFS2_BLKST_FREE);
	*unlinked = count_state(rg, bufs, GFS2_BLKST_UNLINKED);
	dinodes = count_state(rg, bufs, GFS2_BLKST_DINODE) + *unlinked;
	if (info->free != free_ || info->dinodes != dinodes)
		return fs_bad_block(rg->rg_fs, rg->rg_ri.addr,
				    "resource group header says %u free and "
				    "%u dinodes, its bitmap has %u and %u",
				    info->free, info->dinodes, free_, dinodes);
	return 0;
}

static void sets_free(struct rgrp *rg)
{
	free(rg->rg_avail);
	free(rg->rg_soft);
	rg->rg_avail = NULL;
	rg->rg_soft = NULL;
}

static int sets_make(struct rgrp *rg, struct buf *const *bufs)
{
	size_t words = rgrp_words(rg->rg_ri.data);
	uint32_t first, count;

	rg->rg_avail = calloc(words, sizeof(uint64_t));
	rg->rg_soft = calloc(words, sizeof(uint64_t));
	if (!rg->rg_avail || !rg->rg_soft) {
		sets_free(rg);
		return -ENOMEM;
	}
	for (uint32_t i = 0; i < rg->rg_ri.length; i++) {
		const uint8_t *map = map_of(rg, bufs, i, &first, &count);

		rgrp_states_to_set(map, count, rg->rg_avail, first);
	}
	return 0;
}

/*
 * Free blocks of a group that refuses allocation are nothing that could be
 * promised to anybody.
 */
static int64_t refused_blocks(const struct rgrp *rg)
{
	return rg->rg_info.flags & GFS2_RGF_NOALLOC ? rg->rg_info.free : 0;
}

/* Nobody holds the glock: nothing changes the group beneath us. */
static void group_enter(struct rgrp *rg, struct buf **bufs,
			const struct gfs2_rgrp_info *info, uint32_t unlinked)
{
	struct rgrp_hint *hint = rgrp_hint(rg);
	bool refuses = info->flags & GFS2_RGF_NOALLOC;
	uint32_t lost;

	pthread_mutex_lock(&rg->rg_lock);
	ug_assert(!rg->rg_bufs);
	rg->rg_bufs = bufs;
	rg->rg_info = *info;
	rg->rg_info.skip = rg->rg_skip;
	rg->rg_info.data0 = rg->rg_ri.data0;
	rg->rg_info.data = rg->rg_ri.data;
	rg->rg_info.bitbytes = rg->rg_ri.bitbytes;
	rg->rg_avail_count = info->free;
	rg->rg_usable = info->free;
	rg->rg_unlinked = unlinked;
	lost = rg->rg_lost;
	rg->rg_lost = 0;
	atomic_store(&hint->rt_room, refuses ? 0 : info->free);
	atomic_store(&hint->rt_run, UINT32_MAX);
	pthread_mutex_unlock(&rg->rg_lock);
	if (lost)
		space_returned(rg->rg_fs, lost);
	space_refused(rg->rg_fs, refused_blocks(rg));
}

static int rgrp_gl_instantiate(struct glock *gl, bool nowait)
{
	struct rgrp *rg = glock_object(gl);
	struct gfs2_rgrp_info info;
	struct buf **bufs;
	uint32_t unlinked;
	int err;

	bufs = calloc(rg->rg_ri.length, sizeof(*bufs));
	if (!bufs)
		return -ENOMEM;
	err = blocks_read(rg, nowait, bufs);
	if (err)
		goto out_free;
	err = header_check(rg, bufs, &info, &unlinked);
	if (!err)
		err = rgrp_lvb_check(rg, &info, unlinked);
	if (!err)
		err = sets_make(rg, bufs);
	if (err)
		goto out_put;
	group_enter(rg, bufs, &info, unlinked);
	return 0;
out_put:
	blocks_put(bufs, rg->rg_ri.length);
out_free:
	free(bufs);
	return err;
}

/* ---- giving it up ---- */

static bool in_journal(struct rgrp *rg)
{
	struct buf *b;

	if (!buf_owner_in_journal(&rg->rg_owner, &b, 1))
		return false;
	buf_put(b);
	return true;
}

/*
 * Whatever frees a block also changes its bitmap: when the buffers are in
 * place, the callbacks of their commits have run, and nothing is pending. With
 * other nodes the log may not have images of them either, though they are in
 * place.
 */
static int rgrp_gl_sync(struct glock *gl)
{
	struct rgrp *rg = glock_object(gl);
	struct journal *j = rg->rg_fs->fs_journal;

	pthread_mutex_lock(&rg->rg_lock);
	rgrp_not_ours(rg);
	pthread_mutex_unlock(&rg->rg_lock);
	if (!j || (rg->rg_fs->fs_alone && !in_journal(rg)))
		return 0;
	return journal_writeback_owner(j, &rg->rg_owner);
}

void rgrp_leave_memory(struct rgrp *rg)
{
	struct fs *fs = rg->rg_fs;
	struct buf **bufs;

	pthread_mutex_lock(&rg->rg_lock);
	bufs = rg->rg_bufs;
	rgrp_not_ours(rg);
	rgrp_windows_forget(rg);
	rg->rg_bufs = NULL;
	sets_free(rg);
	pthread_mutex_unlock(&rg->rg_lock);
	if (bufs) {
		space_refused(fs, -refused_blocks(rg));
		blocks_put(bufs, rg->rg_ri.length);
		free(bufs);
	}
	atomic_store(&rgrp_hint(rg)->rt_room, rg->rg_ri.data);
	atomic_store(&rgrp_hint(rg)->rt_run, UINT32_MAX);
	buf_invalidate_owner(fs->fs_cache, &rg->rg_owner);
}

static void rgrp_gl_invalidate(struct glock *gl, enum lm_state target)
{
	rgrp_leave_memory(glock_object(gl));
}

static const struct glock_ops rgrp_glock_ops = {
	.type = LM_TYPE_RGRP,
	.value_block = true,
	.hold = true,
	.recall = rgrp_gl_recall,
	.sync = rgrp_gl_sync,
	.invalidate = rgrp_gl_invalidate,
	.instantiate = rgrp_gl_instantiate,
};

/* ---- locking it ---- */

int rgrp_glock(struct rgrp *rg, struct glock **glp)
{
	struct rgrps *rgs = rg->rg_fs->fs_rgrps;
	struct glock *gl;
	int err = 0;

	gl = atomic_load_explicit(&rg->rg_gl, memory_order_acquire);
	if (ug_likely(gl)) {
		*glp = gl;
		return 0;
	}
	pthread_mutex_lock(&rgs->rgs_gl_lock);
	gl = atomic_load(&rg->rg_gl);
	if (!gl) {
		err = glock_get(rg->rg_fs->fs_glocks, &rgrp_glock_ops,
				rg->rg_ri.addr, rg, &gl);
		if (!err)
			atomic_store(&rg->rg_gl, gl);
	}
	pthread_mutex_unlock(&rgs->rgs_gl_lock);
	if (!err)
		*glp = gl;
	return err;
}

static int lock_group(struct rgrp *rg, enum lm_state state, unsigned flags,
		      struct glock_holder *gh)
{
	struct glock *gl;
	int err;

	err = rgrp_glock(rg, &gl);
	if (!err)
		err = glock_nq(gl, state, flags, gh);
	if (err)
		glock_holder_init(gh);
	return err;
}

int rgrp_lock_look(struct rgrp *rg, unsigned flags, struct glock_holder *gh)
{
	struct glock *gl;
	int err;

	err = rgrp_glock(rg, &gl);
	if (err)
		return err;
	if (glock_state(gl) == LM_ST_EXCLUSIVE)
		return lock_group(rg, LM_ST_EXCLUSIVE, flags | GL_NODE_SCOPE,
				  gh);
	return lock_group(rg, LM_ST_SHARED, flags, gh);
}

int rgrp_lock_unread(struct rgrp *rg, unsigned flags, struct glock_holder *gh)
{
	return lock_group(rg, LM_ST_EXCLUSIVE, flags | GL_NODE_SCOPE | GL_SKIP,
			  gh);
}

static void hold_begins(struct rgrp *rg, struct rgrp_hold *hold)
{
	hold->rh_rg = rg;
	if (!rg->rg_fs->fs_alone)
		rgrp_make_ours(rg);
}

int rgrp_hold_group(struct rgrp *rg, unsigned flags, struct rgrp_hold *hold)
{
	int err = lock_group(rg, LM_ST_EXCLUSIVE, flags | GL_NODE_SCOPE,
			     &hold->rh_gh);

	if (!err)
		hold_begins(rg, hold);
	return err;
}

static uint64_t now_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * 1000000000u + (uint64_t)ts.tv_nsec;
}

/*
 * It is granted by ourselves: at once, or when a look at the group ends; but
 * perhaps it is on its way to another node by now.
 */
int rgrp_hold_ours(struct rgrp *rg, struct rgrp_hold *hold)
{
	int err = rgrp_hold_group(rg, GL_NOWAIT, hold);

	if (err != -EAGAIN)
		return err;
	err = lock_group(rg, LM_ST_EXCLUSIVE, GL_NODE_SCOPE | GL_ASYNC,
			 &hold->rh_gh);
	if (!err)
		err = glock_wait_until(&hold->rh_gh, now_ns() + OURS_WAIT_NS);
	if (err == -ETIMEDOUT) {
		glock_dq(&hold->rh_gh);
		err = -EAGAIN;
	}
	if (err)
		glock_holder_init(&hold->rh_gh);
	else
		hold_begins(rg, hold);
	return err;
}

int rgrp_hold_block(struct fs *fs, uint64_t blkno, bool nowait,
		    struct rgrp_hold *hold)
{
	struct rgrp *rg = rgrps_find(fs->fs_rgrps, blkno);

	if (!rg)
		return fs_bad_block(fs, blkno,
				    "no resource group maps this block");
	return rgrp_hold_group(rg, nowait ? GL_NOWAIT : 0, hold);
}

bool rgrp_hold_covers(const struct rgrp_hold *hold, uint64_t blkno)
{
	return hold->rh_rg && rgrp_maps(hold->rh_rg, blkno);
}

/* ---- its blocks ---- */

void rgrp_avail_take(struct rgrp *rg, uint32_t start, uint32_t len)
{
	rgrp_bits_clear(rg->rg_avail, start, len);
	rg->rg_avail_count -= len;
	atomic_store_explicit(&rgrp_hint(rg)->rt_room, rg->rg_avail_count,
			      memory_order_relaxed);
}

void rgrp_run_grows(struct rgrp *rg, uint32_t len)
{
	struct rgrp_hint *hint = rgrp_hint(rg);
	uint64_t run =
		atomic_load_explicit(&hint->rt_run, memory_order_relaxed);

	/* The longest run was run - 1: with one of these at either side, and
	 * the new blocks between, there may be one of 2 * (run - 1) + len. */
	run = UG_MIN(2 * run + len, (uint64_t)UINT32_MAX);
	atomic_store_explicit(&hint->rt_run, (unsigned)run,
			      memory_order_relaxed);
}

void rgrp_avail_add(struct rgrp *rg, uint32_t start, uint32_t len)
{
	rgrp_bits_set(rg->rg_avail, start, len);
	rg->rg_avail_count += len;
	if (rg->rg_info.flags & GFS2_RGF_NOALLOC)
		return;
	atomic_store_explicit(&rgrp_hint(rg)->rt_room, rg->rg_avail_count,
			      memory_order_relaxed);
	rgrp_run_grows(rg, len);
}

enum gfs2_blkst rgrp_state(const struct rgrp *rg, uint32_t n)
{
	unsigned i, byte, shift;

	gfs2_rgrp_bitpos(&rg->rg_fs->fs_geom, n, &i, &byte, &shift);
	return gfs2_bitmap_get(rg->rg_bufs[i]->b_data, byte, shift);
}

bool rgrp_all_in_state(const struct rgrp *rg, uint32_t n, uint32_t len,
		       enum gfs2_blkst state)
{
	uint32_t first, count;
	unsigned i, byte, shift;

	gfs2_rgrp_bitpos(&rg->rg_fs->fs_geom, n, &i, &byte, &shift);
	for (; len; i++) {
		const uint8_t *map = map_of(rg, rg->rg_bufs, i, &first, &count);
		uint32_t here = UG_MIN(len, first + count - n);

		if (!rgrp_states_are(map, n - first, here, state))
			return false;
		n += here;
		len -= here;
	}
	return true;
}

int rgrp_block_state(struct fs *fs, uint64_t blkno, bool nowait,
		     enum gfs2_blkst *state)
{
	struct rgrp *rg = rgrps_find(fs->fs_rgrps, blkno);
	struct glock_holder gh;
	int err;

	if (!rg)
		return -ENOENT;
	err = rgrp_lock_look(rg, nowait ? GL_NOWAIT : 0, &gh);
	if (err)
		return err;
	pthread_mutex_lock(&rg->rg_lock);
	*state = rgrp_state(rg, rgrp_number(rg, blkno));
	pthread_mutex_unlock(&rg->rg_lock);
	glock_dq(&gh);
	return 0;
}

/* Dinodes of [n, end) onto the list. rg_lock held. */
static void dinode_runs(struct rgrp *rg, uint32_t n, uint32_t end,
			struct buf_ahead **list)
{
	while (n < end) {
		uint32_t len = 0;

		while (n + len < end &&
		       rgrp_state(rg, n + len) == GFS2_BLKST_DINODE)
			len++;
		if (len)
			buf_ahead_add(rg->rg_fs->fs_cache, NULL,
				      rg->rg_ri.data0 + n, len, list);
		n += UG_MAX(len, 1u);
	}
}

/*
 * The buffers enter the cache with rg_lock held. Who frees a dinode changes
 * its state first, under this lock, and takes the block out of the cache after
 * that: so nothing stays there that has become something else.
 */
int rgrp_dinodes_ahead(struct fs *fs, uint64_t first, uint32_t count,
		       struct buf_ahead **list)
{
	struct rgrp *rg = rgrps_find(fs->fs_rgrps, first);
	struct glock_holder gh;
	uint32_t n;
	int err;

	if (!rg)
		return -ENOENT;
	err = rgrp_lock_look(rg, GL_TRY, &gh);
	if (err)
		return err;
	n = rgrp_number(rg, first);
	pthread_mutex_lock(&rg->rg_lock);
	dinode_runs(rg, n, n + UG_MIN(count, rg->rg_ri.data - n), list);
	pthread_mutex_unlock(&rg->rg_lock);
	glock_dq(&gh);
	return 0;
}

/* ---- checking ---- */

static int windows_check(struct rgrp *rg)
{
	struct rgrp_window *rw;
	uint64_t sum = 0;

	cds_list_for_each_entry (rw, &rg->rg_windows, rw_list) {
		uint32_t n = rgrp_number(rg, rw->rw_start);

		if (!rw->rw_len || !rgrp_maps(rg, rw->rw_start) ||
		    rw->rw_len > rg->rg_ri.data - n ||
		    rgrp_run_length(rg->rg_soft, n, rw->rw_len) != rw->rw_len)
			return fs_bad_block(rg->rg_fs, rg->rg_ri.addr,
					    "window of %u blocks at %" PRIu64,
					    rw->rw_len, rw->rw_start);
		sum += rw->rw_len;
	}
	/* Each bit belongs to one window if the sums agree. */
	if (sum != rgrp_bits_count(rg->rg_soft, rg->rg_ri.data))
		return fs_bad_block(rg->rg_fs, rg->rg_ri.addr,
				    "windows overlap or have left bits");
	return 0;
}

static int avail_check(struct rgrp *rg)
{
	uint32_t n = 0, in_avail = 0;

	for (; n < rg->rg_ri.data; n++) {
		if (!(rg->rg_avail[n / 64] >> n % 64 & 1))
			continue;
		in_avail++;
		if (rgrp_state(rg, n) != GFS2_BLKST_FREE)
			return fs_bad_block(rg->rg_fs, rg->rg_ri.data0 + n,
					    "available, but not free");
	}
	if (in_avail != rg->rg_avail_count)
		return fs_bad_block(rg->rg_fs, rg->rg_ri.addr,
				    "%u blocks available, counted %u", in_avail,
				    rg->rg_avail_count);
	return 0;
}

int rgrp_check(struct rgrp *rg)
{
	struct gfs2_rgrp_info info;
	uint32_t unlinked;
	int err = 0;

	pthread_mutex_lock(&rg->rg_lock);
	if (rg->rg_bufs) {
		err = header_check(rg, rg->rg_bufs, &info, &unlinked);
		if (!err && (unlinked != rg->rg_unlinked ||
			     info.free != rg->rg_info.free ||
			     info.dinodes != rg->rg_info.dinodes))
			err = fs_bad_block(rg->rg_fs, rg->rg_ri.addr,
					   "header and memory differ");
		if (!err)
			err = avail_check(rg);
		if (!err)
			err = windows_check(rg);
	}
	pthread_mutex_unlock(&rg->rg_lock);
	return err;
}
