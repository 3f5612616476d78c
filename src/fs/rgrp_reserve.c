/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * rgrp_reserve.c - which group, which places.
 *
 * The search begins in the group of the inode's window, or of its goal, and
 * goes round the groups in order of address, up to three times:
 *
 *   PASS_RUN   a long run outside others' windows; only some groups are
 *              looked into, those that hints rule out are not even locked
 *   PASS_ROOM  any places outside others' windows
 *   PASS_ANY   any places
 *
 * Within a group: first the inode's own window, then the first run behind the
 * goal that is long enough for the request and a new window, or for the
 * request alone; else the longest runs there are, one after another.
 *
 * When all groups fail, blocks that were freed but not yet committed, and
 * inodes without a name, are made to yield, once; then it is ENOSPC.
 *
 * With other nodes the search looks at groups that are ours, and tries locks of
 * those that nobody seems to use; only when all that yields nothing is another
 * node asked for one (rgrp_seek.c).
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/assert.h"
#include "fs/rgrp_int.h"
#include "fs/work.h"

/* Until a lock that we have is granted to us again. */
#define PROMISED_PAUSE_NS 2000000
#define PROMISED_TRIES 10000u

/* ---- extents of a hold ---- */

void rgrp_hold_init(struct rgrp_hold *hold)
{
	memset(hold, 0, sizeof(*hold));
	glock_holder_init(&hold->rh_gh);
	hold->rh_ext = hold->rh_inline;
	hold->rh_cap = RGRP_HOLD_INLINE;
}

static int hold_grow(struct rgrp_hold *hold)
{
	unsigned cap = hold->rh_cap * 2;
	struct rgrp_extent *ext;

	if (hold->rh_ext == hold->rh_inline) {
		ext = malloc(cap * sizeof(*ext));
		if (ext)
			memcpy(ext, hold->rh_inline, sizeof(hold->rh_inline));
	} else {
		ext = realloc(hold->rh_ext, cap * sizeof(*ext));
	}
	if (!ext)
		return -ENOMEM;
	hold->rh_ext = ext;
	hold->rh_cap = cap;
	return 0;
}

static struct rgrp_extent *last_extent(const struct rgrp_hold *hold)
{
	return hold->rh_count ? &hold->rh_ext[hold->rh_count - 1] : NULL;
}

/* rg_lock held: places out of avail into the hold. */
static int hold_add(struct rgrp *rg, struct rgrp_hold *hold, uint32_t start,
		    uint32_t len)
{
	uint64_t block = rg->rg_ri.data0 + start;
	struct rgrp_extent *last = last_extent(hold);

	if (last && last->start + last->len == block) {
		last->len += len;
	} else {
		if (hold->rh_count == hold->rh_cap && hold_grow(hold))
			return -ENOMEM;
		hold->rh_ext[hold->rh_count++] =
			(struct rgrp_extent){ block, len };
	}
	hold->rh_blocks += len;
	rgrp_avail_take(rg, start, len);
	return 0;
}

/*
 * rg_lock held: what is left goes back to avail; to the front of the inode's
 * window as well if that was what it was taken for, so that the next places
 * continue where these were not used.
 */
static void hold_return(struct rgrp *rg, struct rgrp_hold *hold, bool to_window)
{
	while (hold->rh_count > hold->rh_first) {
		struct rgrp_extent *ext = &hold->rh_ext[--hold->rh_count];
		uint32_t n = rgrp_number(rg, ext->start);

		rgrp_avail_add(rg, n, ext->len);
		if (to_window)
			rgrp_window_return(rg, hold->rh_ip, n, ext->len);
	}
	hold->rh_blocks = 0;
	hold->rh_count = hold->rh_first = 0;
}

void rgrp_hold_release(struct rgrp_hold *hold)
{
	if (hold->rh_ext != hold->rh_inline)
		free(hold->rh_ext);
	glock_dq(&hold->rh_gh);
	rgrp_hold_init(hold);
}

void rgrp_drop(struct rgrp_hold *hold)
{
	struct rgrp *rg = hold->rh_rg;
	uint32_t left = hold->rh_blocks;

	if (!rg)
		return;
	if (left) {
		pthread_mutex_lock(&rg->rg_lock);
		hold_return(rg, hold, hold->rh_data);
		pthread_mutex_unlock(&rg->rg_lock);
		if (!hold->rh_data)
			space_unclaim(rg->rg_fs, left);
	}
	rgrp_hold_release(hold);
}

struct rgrp_extent rgrp_peek(const struct rgrp_hold *hold, uint32_t max)
{
	struct rgrp_extent ext = hold->rh_ext[hold->rh_first];

	ug_assert(hold->rh_first < hold->rh_count);
	ext.len = UG_MIN(ext.len, max);
	return ext;
}

/* ---- places within a group; rg_lock held ---- */

static uint32_t lacking(const struct rgrp_ask *ask,
			const struct rgrp_hold *hold)
{
	return ask->want - hold->rh_blocks;
}

/* Number of the block where the search in this group begins. */
static uint32_t search_from(const struct rgrp_ask *ask, struct rgrp *rg,
			    const struct rgrp_hold *hold)
{
	const struct rgrp_extent *last = last_extent(hold);

	if (last)
		return rgrp_number(rg, last->start) + last->len;
	if (rgrp_maps(rg, ask->goal))
		return rgrp_number(rg, ask->goal) + 1;
	return 0;
}

static int take_window(const struct rgrp_ask *ask, struct rgrp *rg,
		       struct rgrp_hold *hold)
{
	uint32_t start, len;
	int err;

	if (ask->why != RGRP_DATA)
		return 0;
	len = rgrp_window_peek(rg, ask->ip, lacking(ask, hold), &start);
	if (!len)
		return 0;
	err = hold_add(rg, hold, start, len);
	if (!err)
		rgrp_window_advance(rg, ask->ip, len);
	return err;
}

/*
 * The best run for what is lacking: one with a window behind it if there is
 * one. avoid NULL: nothing but avail counts, and no window is made.
 */
static struct rgrp_run best_run(const struct rgrp_ask *ask, struct rgrp *rg,
				const uint64_t *avoid, uint32_t from,
				uint32_t lack)
{
	uint32_t window = 0;
	struct rgrp_run run;

	if (ask->why == RGRP_DATA && avoid)
		window = rgrp_window_wanted(ask->ip);
	run = rgrp_run_find(rg->rg_avail, avoid, rg->rg_ri.data, from,
			    lack + window);
	if (run.len == lack + window)
		return run;
	if (run.len >= lack && window)
		return rgrp_run_find(rg->rg_avail, avoid, rg->rg_ri.data, from,
				     lack);
	return run;
}

/* Nothing as long as len + 1 was found: remember it for the next search. */
static void note_failed(struct rgrp *rg, uint32_t len)
{
	atomic_store_explicit(&rgrp_hint(rg)->rt_run, len + 1,
			      memory_order_relaxed);
}

/* Take a run, or the front of it; the rest becomes the window. */
static int take_run(const struct rgrp_ask *ask, struct rgrp *rg,
		    struct rgrp_hold *hold, struct rgrp_run run)
{
	uint32_t len = UG_MIN(run.len, lacking(ask, hold));
	int err;

	err = hold_add(rg, hold, run.start, len);
	if (!err && run.len > len)
		rgrp_window_set(rg, ask->ip, run.start + len, run.len - len);
	return err;
}

/* Runs until there is enough, or too many, or no more. */
static int take_runs(const struct rgrp_ask *ask, struct rgrp *rg,
		     enum rgrp_pass pass, struct rgrp_hold *hold)
{
	const uint64_t *avoid = pass == PASS_ANY ? NULL : rg->rg_soft;
	int err = 0;

	while (!err && lacking(ask, hold)) {
		uint32_t lack = lacking(ask, hold);
		struct rgrp_run run;

		if (hold->rh_count >= RGRP_EXTENTS_MAX &&
		    hold->rh_blocks >= ask->min)
			break;
		run = best_run(ask, rg, avoid, search_from(ask, rg, hold),
			       lack);
		if (avoid && run.len < lack)
			note_failed(rg, run.len);
		if (!run.len)
			break;
		if (pass == PASS_RUN && run.len < UG_MIN(lack, ask->good))
			break;
		err = take_run(ask, rg, hold, run);
	}
	return err;
}

/*
 * Of a group that is leaving nothing counts, so nothing can be claimed; what
 * has been promised may need it.
 */
static bool may_take(const struct rgrp_ask *ask, const struct rgrp *rg)
{
	return rg->rg_fs->fs_alone || ask->why == RGRP_DATA ||
	       rgrp_whose(rgrp_hint(rg)) == RGRP_OURS;
}

int rgrp_take_places(const struct rgrp_ask *ask, struct rgrp *rg,
		     enum rgrp_pass pass, struct rgrp_hold *hold)
{
	int err = -ENOSPC;

	pthread_mutex_lock(&rg->rg_lock);
	if (rg->rg_info.flags & GFS2_RGF_NOALLOC ||
	    rg->rg_avail_count < ask->min || !may_take(ask, rg))
		goto out;
	err = take_window(ask, rg, hold);
	if (!err)
		err = take_runs(ask, rg, pass, hold);
	/* Short of memory for a further extent: do with what there is. */
	if (hold->rh_blocks >= ask->min)
		err = 0;
	else if (!err)
		err = -ENOSPC;
	if (err)
		hold_return(rg, hold, false);
out:
	pthread_mutex_unlock(&rg->rg_lock);
	return err;
}

/* ---- the search through the groups ---- */

static uint64_t window_of(const struct rgrp_ask *ask)
{
	return ask->why != RGRP_DATA
		       ? 0
		       : __atomic_load_n(&ask->ip->i_window.rw_start,
					 __ATOMIC_RELAXED);
}

/*
 * With other nodes: can its lock be had without waiting for any of them, as
 * far as is known?
 */
static bool may_ask(const struct rgrp_ask *ask, const struct rgrp_hint *hint)
{
	if (ask->ip->i_fs->fs_alone)
		return true;
	switch (rgrp_whose(hint)) {
	case RGRP_OURS:
		return true;
	case RGRP_LEAVING:
		return ask->why == RGRP_DATA;
	case RGRP_OTHERS:
		break;
	}
	return !ask->nowait && !rgrp_is_shunned(hint);
}

/* Can the group have what the pass asks for, as far as can be seen? */
static bool looks_promising(const struct rgrp_ask *ask, uint32_t index,
			    enum rgrp_pass pass)
{
	struct rgrp_hint *hint = &ask->rgs->rgs_hints[index];
	uint32_t room =
		atomic_load_explicit(&hint->rt_room, memory_order_relaxed);

	if (room < ask->min || !may_ask(ask, hint))
		return false;
	/* The inode's own window is not part of what rt_run speaks of. */
	if (pass != PASS_RUN ||
	    rgrp_maps(&ask->rgs->rgs_groups[index], window_of(ask)))
		return true;
	return room >= ask->good &&
	       atomic_load_explicit(&hint->rt_run, memory_order_relaxed) >
		       ask->good;
}

/* With other nodes: -ENOSPC also if one of them has it. */
static int hold_shared(const struct rgrp_ask *ask, struct rgrp *rg,
		       struct rgrp_hold *hold)
{
	int err;

	if (ask->nowait) {
		err = rgrp_hold_group(rg, GL_NOWAIT, hold);
	} else if (rgrp_whose(rgrp_hint(rg)) != RGRP_OTHERS) {
		err = rgrp_hold_ours(rg, hold);
	} else {
		err = rgrp_hold_group(rg, GL_TRY, hold);
		if (err == -EAGAIN)
			rgrp_shun(rg);
	}
	return err == -EAGAIN ? -ENOSPC : err;
}

/* 0 with the hold filled, -ENOSPC nothing here, or another error. */
static int try_group(const struct rgrp_ask *ask, uint32_t index,
		     enum rgrp_pass pass, struct rgrp_hold *hold)
{
	struct rgrp *rg = &ask->rgs->rgs_groups[index];
	int err;

	if (rg->rg_fs->fs_alone)
		err = rgrp_hold_group(rg, ask->nowait ? GL_NOWAIT : 0, hold);
	else
		err = hold_shared(ask, rg, hold);
	if (err)
		return err;
	hold->rh_ip = ask->ip;
	hold->rh_data = ask->why == RGRP_DATA;
	err = rgrp_take_places(ask, rg, pass, hold);
	if (err)
		rgrp_hold_release(hold);
	return err;
}

static int try_pass(const struct rgrp_ask *ask, uint32_t first,
		    enum rgrp_pass pass, struct rgrp_hold *hold)
{
	uint32_t count = ask->rgs->rgs_count, index = first;
	unsigned locked = 0;

	for (uint32_t i = 0; i < count; i++) {
		if (looks_promising(ask, index, pass)) {
			int err = try_group(ask, index, pass, hold);

			if (err != -ENOSPC)
				return err;
			if (pass == PASS_RUN && ++locked == RGRP_NEAR_GROUPS)
				break;
		}
		if (++index == count)
			index = 0;
	}
	return -ENOSPC;
}

/*
 * Directories that are to be spread: some candidates from a sequence that
 * visits all groups evenly (multiples of the golden section), the roomiest of
 * them. A group that has not been read yet counts as empty.
 *
 * With other nodes each has groups of its own for this, every so manieth, so
 * that directories of different nodes do not begin in the same one.
 */
static uint32_t spread_candidate(struct fs *fs, uint32_t n)
{
	const struct rgrps *rgs = fs->fs_rgrps;
	uint32_t index =
		(uint32_t)((uint64_t)(n * 0x9e3779b9u) * rgs->rgs_count >> 32);
	uint32_t own = index - index % fs->fs_journals + fs->fs_opt.jid;

	return !fs->fs_alone && own < rgs->rgs_count ? own : index;
}

static uint32_t spread_group(struct fs *fs)
{
	struct rgrps *rgs = fs->fs_rgrps;
	uint32_t best = 0, best_room = 0;

	for (unsigned i = 0; i < RGRP_SPREAD_CANDIDATES; i++) {
		uint32_t n = atomic_fetch_add_explicit(&rgs->rgs_spread, 1,
						       memory_order_relaxed);
		uint32_t index = spread_candidate(fs, n);
		uint32_t room = atomic_load_explicit(
			&rgs->rgs_hints[index].rt_room, memory_order_relaxed);

		if (room > best_room) {
			best = index;
			best_room = room;
		}
	}
	return best;
}

uint32_t rgrp_first_group(const struct rgrp_ask *ask)
{
	uint64_t window = window_of(ask);
	struct rgrp *rg;

	if (ask->why == RGRP_SPREAD)
		return spread_group(ask->ip->i_fs);
	rg = rgrps_find(ask->rgs, window ? window : ask->goal);
	return rg ? rg->rg_index : 0;
}

static int search_groups(const struct rgrp_ask *ask, struct rgrp_hold *hold)
{
	uint32_t first = rgrp_first_group(ask);
	int err = -ENOSPC;

	for (int pass = PASS_RUN; err == -ENOSPC && pass < PASS_COUNT; pass++)
		err = try_pass(ask, first, (enum rgrp_pass)pass, hold);
	return err;
}

/* ---- counts ---- */

/* Metadata must not take what is promised to data. */
int rgrp_claim(struct rgrp_ask *ask)
{
	struct fs *fs = ask->ip->i_fs;

	if (ask->why == RGRP_DATA)
		return 0;
	if (ask->want > ask->min && space_claim(fs, ask->want) == 0)
		return 0;
	ask->want = ask->min;
	return space_claim(fs, ask->min);
}

static int reserve_once(const struct rgrp_ask *request, struct rgrp_hold *hold)
{
	struct rgrp_ask ask = *request;
	uint32_t unused;
	int err;

	err = rgrp_claim(&ask);
	if (err)
		return err;
	err = search_groups(&ask, hold);
	unused = ask.want - (err ? 0 : hold->rh_blocks);
	if (ask.why != RGRP_DATA && unused)
		space_unclaim(ask.ip->i_fs, unused);
	return err;
}

uint64_t rgrp_goal_of(struct inode *ip)
{
	/* i_lock is not held: an old goal is as good. */
	uint64_t goal = __atomic_load_n(&ip->i_goal, __ATOMIC_RELAXED);

	if (rgrps_find(ip->i_fs->fs_rgrps, goal))
		return goal;
	return ip->i_addr;
}

/*
 * With other nodes, the first search having failed. What has been promised is
 * in our groups (space.c), unless their locks could not be had for a moment.
 */
static int reserve_promised(const struct rgrp_ask *ask, struct rgrp_hold *hold)
{
	const struct timespec pause = { .tv_nsec = PROMISED_PAUSE_NS };
	int err = -ENOSPC;

	for (unsigned i = 0; err == -ENOSPC && i < PROMISED_TRIES; i++) {
		if (fs_is_withdrawn(ask->ip->i_fs))
			return -EIO;
		nanosleep(&pause, NULL);
		err = reserve_once(ask, hold);
	}
	return err;
}

/*
 * The same for metadata: from other nodes; when these have nothing either, what
 * is promised for more than it will need is settled, and what is on its way to
 * be free is made free, once.
 */
static int reserve_shared(const struct rgrp_ask *ask, struct rgrp_hold *hold)
{
	struct fs *fs = ask->ip->i_fs;
	int err;

	if (ask->why == RGRP_DATA)
		return reserve_promised(ask, hold);
	err = rgrp_seek_places(ask, hold);
	if (err != -ENOSPC)
		return err;
	fs_writeback_unlocked(fs);
	err = fs_reclaim_space(fs);
	if (!err)
		err = reserve_once(ask, hold);
	return err == -ENOSPC ? rgrp_seek_places(ask, hold) : err;
}

int rgrp_reserve(struct inode *ip, uint32_t want, uint32_t min,
		 enum rgrp_why why, bool nowait, struct rgrp_hold *hold)
{
	struct fs *fs = ip->i_fs;
	uint32_t good = why == RGRP_DATA ? RGRP_RUN_GOOD : RGRP_META_GOOD;
	struct rgrp_ask ask = {
		.ip = ip,
		.rgs = fs->fs_rgrps,
		.why = why,
		.want = UG_MAX(want, min),
		.min = UG_MAX(min, 1u),
		.goal = why == RGRP_SPREAD ? 0 : rgrp_goal_of(ip),
		.nowait = nowait,
	};
	uint64_t returns;
	int err;

	ug_assert(want && !hold->rh_rg);
	ask.good = UG_MAX(ask.min, UG_MIN(ask.want, good));
	returns = space_returns(fs);
	err = reserve_once(&ask, hold);
	if (err != -ENOSPC)
		return err;
	if (nowait)
		return -EAGAIN;
	if (!fs->fs_alone)
		return reserve_shared(&ask, hold);
	/* Blocks may also have come back since their group was searched. */
	if (!space_may_grow(fs) && returns == space_returns(fs))
		return -ENOSPC;
	err = fs_reclaim_space(fs);
	return err ? err : reserve_once(&ask, hold);
}
