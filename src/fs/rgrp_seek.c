/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * rgrp_seek.c - with other nodes: groups for what ours have no room for.
 *
 * The search of rgrp_reserve.c asks nobody to give anything up. Here, first
 * every group that nobody uses is tried, then each is waited for, in order of
 * address from where the blocks should be. What the value block of a lock
 * says spares reading a group that is full. Whoever has to give a group up
 * first writes what it has promised (rgrp_own.c), so that what is found free
 * is free; and what is found is taken before the lock is let go.
 *
 * Nothing is claimed while we wait: other nodes may be waiting for our groups,
 * which are not given up before they can be spared.
 */
#include <errno.h>
#include <time.h>

#include "fs/rgrp_int.h"

enum round {
	ROUND_TRY,
	ROUND_WAIT,
	ROUND_COUNT,
};

/* A group that is leaving is ours again, or another's, within this. */
#define LEAVING_PAUSE_NS 1000000
#define LEAVING_TRIES 30000u

struct seek {
	struct rgrp_ask ask;
	/* Take what is wanted of the group. 0; -ENOSPC: go on. */
	int (*take)(struct seek *s, struct rgrp_hold *hold);
};

static struct fs *fs_of(const struct seek *s)
{
	return s->ask.ip->i_fs;
}

/* May the group be worth its lock? */
static bool is_candidate(const struct seek *s, uint32_t index, enum round round)
{
	const struct rgrp_hint *hint = &s->ask.rgs->rgs_hints[index];

	if (atomic_load_explicit(&hint->rt_room, memory_order_relaxed) <
	    s->ask.min)
		return false;
	return round == ROUND_WAIT ||
	       (rgrp_whose(hint) == RGRP_OTHERS && !rgrp_is_shunned(hint));
}

/* -ENOSPC: it is known to have too little. */
static int look(const struct seek *s, struct rgrp *rg, unsigned flags)
{
	struct rgrp_lvb_info lvb;
	struct glock_holder gh;
	int err = rgrp_lock_unread(rg, flags, &gh);

	if (err)
		return err;
	if (rgrp_whose(rgrp_hint(rg)) == RGRP_OTHERS &&
	    rgrp_lvb_get(rg, &lvb) && lvb.free < s->ask.min)
		err = -ENOSPC;
	glock_dq(&gh);
	return err;
}

/* Another node has asked for it: until it has it, and again has given it up. */
static int hold_staying(struct rgrp *rg, unsigned flags, struct rgrp_hold *hold)
{
	const struct timespec pause = { .tv_nsec = LEAVING_PAUSE_NS };

	for (unsigned i = 0; i < LEAVING_TRIES; i++) {
		int err = rgrp_hold_group(rg, flags, hold);

		if (err || rgrp_whose(rgrp_hint(rg)) == RGRP_OURS)
			return err;
		rgrp_hold_release(hold);
		if (flags & GL_TRY)
			break;
		nanosleep(&pause, NULL);
	}
	return -EAGAIN;
}

static int visit(struct seek *s, uint32_t index, enum round round,
		 struct rgrp_hold *hold)
{
	struct rgrp *rg = &s->ask.rgs->rgs_groups[index];
	unsigned flags = round == ROUND_TRY ? GL_TRY : 0;
	int err = look(s, rg, flags);

	if (!err)
		err = hold_staying(rg, flags, hold);
	if (err == -EAGAIN) {
		rgrp_shun(rg);
		return -ENOSPC;
	}
	return err ? err : s->take(s, hold);
}

static int seek(struct seek *s, struct rgrp_hold *hold)
{
	uint32_t count = s->ask.rgs->rgs_count;
	uint32_t first = rgrp_first_group(&s->ask);

	for (int round = ROUND_TRY; round < ROUND_COUNT; round++) {
		for (uint32_t i = 0; i < count; i++) {
			uint32_t index =
				(uint32_t)(((uint64_t)first + i) % count);
			int err;

			if (!is_candidate(s, index, (enum round)round))
				continue;
			err = visit(s, index, (enum round)round, hold);
			if (err != -ENOSPC)
				return err;
		}
	}
	return -ENOSPC;
}

/* ---- places for metadata ---- */

static int take_places(struct seek *s, struct rgrp_hold *hold)
{
	struct rgrp_ask ask = s->ask;
	uint32_t unused;
	int err = rgrp_claim(&ask);

	if (!err) {
		hold->rh_ip = ask.ip;
		hold->rh_data = false;
		err = rgrp_take_places(&ask, hold->rh_rg, PASS_ANY, hold);
		unused = ask.want - (err ? 0 : hold->rh_blocks);
		if (unused)
			space_unclaim(fs_of(s), unused);
	}
	if (err)
		rgrp_hold_release(hold);
	return err;
}

int rgrp_seek_places(const struct rgrp_ask *ask, struct rgrp_hold *hold)
{
	struct seek s = { .ask = *ask, .take = take_places };

	return seek(&s, hold);
}

/* ---- promises ---- */

/* The group is ours: it has been counted in. */
static int take_promise(struct seek *s, struct rgrp_hold *hold)
{
	int err = space_promise(fs_of(s), s->ask.want);

	rgrp_hold_release(hold);
	return err;
}

int space_promise_wait(struct inode *ip, uint64_t blocks)
{
	struct seek s = {
		.ask = {
			.ip = ip,
			.rgs = ip->i_fs->fs_rgrps,
			.why = RGRP_DATA,
			.want = (uint32_t)blocks,
			.min = RGRP_MIN_PROMISED,
			.goal = rgrp_goal_of(ip),
		},
		.take = take_promise,
	};
	struct rgrp_hold hold;
	int err;

	if (ip->i_fs->fs_alone)
		return -ENOSPC;
	err = space_promise(ip->i_fs, blocks);
	if (err != -ENOSPC)
		return err;
	rgrp_hold_init(&hold);
	return seek(&s, &hold);
}
