/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * rgrp_scan.c - looking through all groups: unlinked dinodes, sums.
 *
 * A scan does not instantiate the groups (GL_SKIP): on a large volume, avail
 * and the referenced bitmaps of all of them would fill the memory. It reads
 * blocks through the cache, which drops them again at leisure. So that a
 * scan does not wait for one read after another, it holds the locks of some
 * groups ahead of the one it looks at and lets their blocks be read:
 *
 *     index .. index + RGRP_SCAN_AHEAD     locked, being read
 *
 * in ascending order, as the order of locks asks for. Not with other nodes:
 * there nobody may wait for one of their groups with one of ours locked, which
 * they may be waiting for. Most need not be read there.
 */
#include <errno.h>
#include <inttypes.h>
#include <time.h>

#include "fs/evict.h"
#include "fs/icache.h"
#include "fs/rgrp_int.h"

/* Who needs space waits for the cleaner this long, and not again so soon. */
#define CLEAN_PATIENCE_SEC 2
#define CLEAN_PAUSE_NS 2000000000u

/* Addresses collected under a group's lock before fn gets them. */
#define UNLINKED_BATCH 128u

struct scan {
	struct fs *fs;
	bool header_only;
	uint32_t next; /* first group not locked yet */
	struct glock_holder holders[RGRP_SCAN_AHEAD];
	bool empty[RGRP_SCAN_AHEAD]; /* no unlinked dinodes: not to be read */
};

static struct glock_holder *holder_of(struct scan *sc, uint32_t index)
{
	return &sc->holders[index % RGRP_SCAN_AHEAD];
}

/* Its lock is held. With other nodes the value block may know. */
static bool has_no_unlinked(struct rgrp *rg)
{
	struct rgrp_lvb_info lvb;

	return rgrp_lvb_get(rg, &lvb) && !lvb.unlinked;
}

static bool *empty_of(struct scan *sc, uint32_t index)
{
	return &sc->empty[index % RGRP_SCAN_AHEAD];
}

/* Lock groups from index on, as far as may be, and start reading them. */
static int scan_ahead(struct scan *sc, uint32_t index)
{
	struct rgrps *rgs = sc->fs->fs_rgrps;
	uint32_t ahead = sc->fs->fs_alone ? RGRP_SCAN_AHEAD : 1;
	uint32_t end = index + UG_MIN(ahead, rgs->rgs_count - index);

	while (sc->next < end) {
		struct rgrp *rg = &rgs->rgs_groups[sc->next];
		int err = rgrp_lock_look(rg, GL_SKIP, holder_of(sc, sc->next));

		if (err)
			return err;
		*empty_of(sc, sc->next) =
			!sc->header_only && has_no_unlinked(rg);
		if (*empty_of(sc, sc->next++))
			continue;
		buf_readahead(sc->fs->fs_cache, &rg->rg_owner, rg->rg_ri.addr,
			      sc->header_only ? 1 : rg->rg_ri.length);
	}
	return 0;
}

/* The group at index is done with. */
static void scan_release(struct scan *sc, uint32_t index)
{
	glock_dq(holder_of(sc, index));
}

/* Locks from index on, as far as they are held. */
static void scan_end(struct scan *sc, uint32_t index)
{
	while (index < sc->next)
		scan_release(sc, index++);
}

static int read_meta(struct rgrp *rg, uint32_t i, struct buf **bp)
{
	enum gfs2_metatype type = i ? GFS2_METATYPE_RB : GFS2_METATYPE_RG;
	struct buf *b;
	int err;

	err = buf_read(rg->rg_fs->fs_cache, &rg->rg_owner, rg->rg_ri.addr + i,
		       0, &b);
	if (err)
		return err;
	if (gfs2_check_meta(b->b_data, type)) {
		err = fs_bad_block(rg->rg_fs, b->b_blkno,
				   "resource group %" PRIu64 " has no %s here",
				   rg->rg_ri.addr, gfs2_metatype_name(type));
		buf_put(b);
		return err;
	}
	*bp = b;
	return 0;
}

/* ---- sums ---- */

static int header_read(struct rgrp *rg, struct gfs2_rgrp_info *info)
{
	struct buf *b;
	int err;

	err = read_meta(rg, 0, &b);
	if (err)
		return err;
	pthread_mutex_lock(&rg->rg_lock);
	if (gfs2_rgrp_decode(b->b_data, &rg->rg_ri, info))
		err = fs_bad_block(rg->rg_fs, rg->rg_ri.addr,
				   "resource group header: wrong checksum, or "
				   "counters beyond its %u blocks",
				   rg->rg_ri.data);
	pthread_mutex_unlock(&rg->rg_lock);
	buf_put(b);
	return err;
}

int rgrps_sum(struct fs *fs, uint64_t *total, uint64_t *free_,
	      uint64_t *dinodes)
{
	struct rgrps *rgs = fs->fs_rgrps;
	struct scan sc = { .fs = fs, .header_only = true };
	struct gfs2_rgrp_info info;
	uint64_t sum_free = 0, sum_dinodes = 0;
	uint32_t i;
	int err = 0;

	for (i = 0; i < rgs->rgs_count; i++) {
		err = scan_ahead(&sc, i);
		if (!err)
			err = header_read(&rgs->rgs_groups[i], &info);
		if (err)
			break;
		sum_free += info.free;
		sum_dinodes += info.dinodes;
		scan_release(&sc, i);
	}
	scan_end(&sc, i);
	if (err)
		return err;
	*total = rgs->rgs_total;
	*free_ = sum_free;
	*dinodes = sum_dinodes;
	return 0;
}

/* ---- unlinked dinodes ---- */

struct unlinked {
	uint32_t next; /* number in the group to go on at */
	unsigned count;
	uint64_t addrs[UNLINKED_BATCH];
};

/* Those in one bitmap block, from ul->next on. rg_lock held. */
static void collect_block(struct rgrp *rg, struct buf *b, uint32_t index,
			  struct unlinked *ul)
{
	uint32_t first, count, n;
	const uint8_t *map;
	unsigned start;

	gfs2_rgrp_bitmap_span(&rg->rg_fs->fs_geom, &rg->rg_ri, index, &start,
			      &first, &count);
	map = (const uint8_t *)b->b_data + start;
	n = ul->next > first ? ul->next - first : 0;
	while (ul->count < UNLINKED_BATCH) {
		n = gfs2_bitmap_find(map, n, count, GFS2_BLKST_UNLINKED);
		if (n >= count)
			break;
		ul->addrs[ul->count++] = rg->rg_ri.data0 + first + n;
		n++;
	}
	ul->next = first + UG_MIN(n, count);
}

/* A batch from ul->next on; ul->next is then where the next one begins. */
static int collect(struct rgrp *rg, struct unlinked *ul)
{
	unsigned i, byte, shift;
	struct buf *b;
	int err;

	ul->count = 0;
	gfs2_rgrp_bitpos(&rg->rg_fs->fs_geom, ul->next, &i, &byte, &shift);
	for (; i < rg->rg_ri.length && ul->count < UNLINKED_BATCH; i++) {
		err = read_meta(rg, i, &b);
		if (err)
			return err;
		pthread_mutex_lock(&rg->rg_lock);
		collect_block(rg, b, i, ul);
		pthread_mutex_unlock(&rg->rg_lock);
		buf_put(b);
	}
	return 0;
}

typedef int (*unlinked_fn)(struct fs *fs, uint64_t addr, void *arg);

static int call_each(struct fs *fs, const struct unlinked *ul, unlinked_fn fn,
		     void *arg)
{
	int err = 0;

	for (unsigned k = 0; !err && k < ul->count; k++)
		err = fn(fs, ul->addrs[k], arg);
	return err;
}

/*
 * What fn could not release stays unlinked: each batch begins behind the one
 * before, so that this ends.
 */
static int rest_of_group(struct rgrp *rg, struct unlinked *ul, unlinked_fn fn,
			 void *arg)
{
	struct glock_holder gh;
	int err;

	while (ul->count == UNLINKED_BATCH && ul->next < rg->rg_ri.data) {
		err = rgrp_lock_look(rg, GL_SKIP, &gh);
		if (err)
			return err;
		err = collect(rg, ul);
		glock_dq(&gh);
		if (!err)
			err = call_each(rg->rg_fs, ul, fn, arg);
		if (err)
			return err;
	}
	return 0;
}

/*
 * fn locks groups of its own, so nothing may be held across it: the locks
 * ahead go too, and are taken anew (the blocks are in memory by then).
 */
int rgrps_each_unlinked(struct fs *fs, unlinked_fn fn, void *arg)
{
	struct rgrps *rgs = fs->fs_rgrps;
	struct scan sc = { .fs = fs };
	struct unlinked ul;
	uint32_t i;
	int err = 0;

	for (i = 0; !err && i < rgs->rgs_count; i++) {
		struct rgrp *rg = &rgs->rgs_groups[i];

		ul.next = 0;
		ul.count = 0;
		err = scan_ahead(&sc, i);
		if (!err && !*empty_of(&sc, i))
			err = collect(rg, &ul);
		if (err)
			break;
		scan_release(&sc, i);
		if (!ul.count)
			continue;
		scan_end(&sc, i + 1);
		sc.next = i + 1;
		err = call_each(fs, &ul, fn, arg);
		if (!err)
			err = rest_of_group(rg, &ul, fn, arg);
	}
	if (i < sc.next)
		scan_end(&sc, i);
	return err;
}

/* ---- cleaning up after other nodes ---- */

void rgrps_cleaner_init(struct rgrps_cleaner *rc)
{
	pthread_condattr_t attr;

	pthread_mutex_init(&rc->rc_lock, NULL);
	pthread_condattr_init(&attr);
	pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
	pthread_cond_init(&rc->rc_cond, &attr);
	pthread_condattr_destroy(&attr);
}

void rgrps_cleaner_fini(struct rgrps_cleaner *rc)
{
	pthread_cond_destroy(&rc->rc_cond);
	pthread_mutex_destroy(&rc->rc_lock);
}

static uint64_t now_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * 1000000000u + (uint64_t)ts.tv_nsec;
}

/* Until walk number n is over, or for long enough. rc_lock held. */
static void wait_walk(struct rgrps_cleaner *rc, uint64_t n)
{
	struct timespec end;

	clock_gettime(CLOCK_MONOTONIC, &end);
	end.tv_sec += CLEAN_PATIENCE_SEC;
	while (rc->rc_done < n &&
	       pthread_cond_timedwait(&rc->rc_cond, &rc->rc_lock, &end) == 0)
		;
}

void rgrps_want_clean(struct fs *fs, bool wait)
{
	struct rgrps_cleaner *rc = &fs->fs_rgrps->rgs_cleaner;
	uint64_t n;

	pthread_mutex_lock(&rc->rc_lock);
	if (!wait || !rc->rc_done_ns ||
	    now_ns() - rc->rc_done_ns > CLEAN_PAUSE_NS) {
		n = ++rc->rc_wanted;
		fs_wake(fs, FS_WORK_EVICT);
		if (wait)
			wait_walk(rc, n);
	}
	pthread_mutex_unlock(&rc->rc_lock);
}

void rgrps_clean(struct fs *fs)
{
	struct rgrps_cleaner *rc = &fs->fs_rgrps->rgs_cleaner;
	uint64_t n, done;

	pthread_mutex_lock(&rc->rc_lock);
	n = rc->rc_wanted;
	done = rc->rc_done;
	pthread_mutex_unlock(&rc->rc_lock);
	if (n == done)
		return;
	fs_fault(fs, rgrps_each_unlinked(fs, evict_left_behind, NULL));
	pthread_mutex_lock(&rc->rc_lock);
	rc->rc_done = n;
	rc->rc_done_ns = now_ns();
	pthread_cond_broadcast(&rc->rc_cond);
	pthread_mutex_unlock(&rc->rc_lock);
}
