/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * rgrp_lvb.c - the value block of a group's lock: what its header says, so that
 * a node that has the lock knows without reading whether there is anything to
 * be had.
 *
 * It is written with every change of the header, by whoever holds EX, goes out
 * when that is lowered, and is lost with a node that dies holding EX. Nobody
 * has changed the group since, then, but the replay of that node's journal:
 * the header is the truth, and the next holder of EX writes the block anew.
 * Source: docs/spec/glocks.md 1.4, 3.3.
 */
#include <assert.h>
#include <errno.h>
#include <inttypes.h>

#include "fs/rgrp_int.h"

struct rgrp_lvb {
	be32 rl_magic;
	be32 rl_flags;
	be32 rl_free;
	be32 rl_dinodes;
	be64 rl_igeneration;
	be32 rl_unlinked;
	be32 pad;
};
static_assert(sizeof(struct rgrp_lvb) == GLOCK_LVB_BYTES, "32 bytes");

static struct rgrp_lvb *lvb_of(struct rgrp *rg)
{
	if (rg->rg_fs->fs_alone)
		return NULL;
	return glock_lvb(
		atomic_load_explicit(&rg->rg_gl, memory_order_relaxed));
}

bool rgrp_lvb_get(struct rgrp *rg, struct rgrp_lvb_info *info)
{
	const struct rgrp_lvb *there = lvb_of(rg);
	struct rgrp_lvb lvb;

	if (!there)
		return false;
	/* Others of this node may share EX. */
	pthread_mutex_lock(&rg->rg_lock);
	lvb = *there;
	pthread_mutex_unlock(&rg->rg_lock);
	if (be32_get(lvb.rl_magic) != GFS2_MAGIC)
		return false;
	*info = (struct rgrp_lvb_info){
		.flags = be32_get(lvb.rl_flags),
		.free = be32_get(lvb.rl_free),
		.dinodes = be32_get(lvb.rl_dinodes),
		.unlinked = be32_get(lvb.rl_unlinked),
		.igeneration = be64_get(lvb.rl_igeneration),
	};
	return true;
}

void rgrp_lvb_set(struct rgrp *rg)
{
	const struct gfs2_rgrp_info *info = &rg->rg_info;
	struct rgrp_lvb *lvb = lvb_of(rg);

	if (!lvb)
		return;
	*lvb = (struct rgrp_lvb){
		.rl_magic = be32_of(GFS2_MAGIC),
		.rl_flags = be32_of(info->flags),
		.rl_free = be32_of(info->free),
		.rl_dinodes = be32_of(info->dinodes),
		.rl_igeneration = be64_of(info->igeneration),
		.rl_unlinked = be32_of(rg->rg_unlinked),
	};
}

int rgrp_lvb_check(struct rgrp *rg, const struct gfs2_rgrp_info *info,
		   uint32_t unlinked)
{
	struct rgrp_lvb_info lvb;

	if (!rgrp_lvb_get(rg, &lvb))
		return 0;
	if (lvb.flags == info->flags && lvb.free == info->free &&
	    lvb.dinodes == info->dinodes && lvb.unlinked == unlinked &&
	    lvb.igeneration == info->igeneration)
		return 0;
	return fs_bad_block(rg->rg_fs, rg->rg_ri.addr,
			    "resource group has flags %x, %u free, %u dinodes "
			    "and %u of them unlinked, generation %" PRIu64
			    "; its lock says %x, %u, %u, %u, %" PRIu64,
			    info->flags, info->free, info->dinodes, unlinked,
			    info->igeneration, lvb.flags, lvb.free, lvb.dinodes,
			    lvb.unlinked, lvb.igeneration);
}
