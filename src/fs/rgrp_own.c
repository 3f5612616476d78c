/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * rgrp_own.c - with other nodes: whose blocks are those of a group.
 *
 * A delayed write has been answered with nothing but a number, so that number
 * must be of blocks that nobody else can take: those of groups whose lock we
 * have in EX (space.c). When another node wants such a lock:
 *
 *   others wants it   OURS -> LEAVING     its blocks no longer count
 *   recall            promised > what is left: delayed data is written, into
 *                     this group, too, until that is true no more
 *   sync, invalidate  LEAVING -> OTHERS   nothing of it is promised
 *
 * From the first line on nothing is promised that would need the group, so the
 * second one ends. It waits for no other node: data in write-back finds its
 * places in groups that are ours or leaving, and an inode that somebody else
 * writes, or truncates, is passed by: a truncation waits for groups with the
 * inode locked, after everything promised for it has been written.
 * Source: docs/spec/glocks.md 13.11.
 */
#include <inttypes.h>
#include <time.h>

#include "base/log.h"
#include "fs/rgrp_int.h"
#include "fs/work.h"

/* Between looks whether requests under way have used what was promised. */
#define SETTLE_PAUSE_NS 1000000
/* Without any progress; nothing that is known takes so long. */
#define SETTLE_PATIENCE_NS 20000000000u

static uint64_t now_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * 1000000000u + (uint64_t)ts.tv_nsec;
}

enum rgrp_whose rgrp_whose(const struct rgrp_hint *hint)
{
	return atomic_load_explicit(&hint->rt_whose, memory_order_relaxed);
}

static void set_whose(struct rgrp *rg, enum rgrp_whose whose)
{
	atomic_store_explicit(&rgrp_hint(rg)->rt_whose, whose,
			      memory_order_relaxed);
}

/* ---- what others use ---- */

/* Never 0. */
static unsigned now_ms(void)
{
	return (unsigned)(now_ns() / 1000000u) | 1u;
}

void rgrp_shun(struct rgrp *rg)
{
	atomic_store_explicit(&rgrp_hint(rg)->rt_shun_ms, now_ms(),
			      memory_order_relaxed);
}

bool rgrp_is_shunned(const struct rgrp_hint *hint)
{
	unsigned since =
		atomic_load_explicit(&hint->rt_shun_ms, memory_order_relaxed);

	return since && now_ms() - since < RGRP_SHUN_MS;
}

/* ---- what may be promised of a group ---- */

static int64_t share(const struct rgrp *rg)
{
	uint32_t kept = RGRP_MIN_PROMISED - 1;

	if (rg->rg_info.flags & GFS2_RGF_NOALLOC || rg->rg_usable <= kept)
		return 0;
	return rg->rg_usable - kept;
}

void rgrp_usable_change(struct rgrp *rg, int64_t change)
{
	int64_t before = share(rg);

	rg->rg_usable = (uint32_t)((int64_t)rg->rg_usable + change);
	if (rgrp_whose(rgrp_hint(rg)) == RGRP_OURS)
		space_ours(rg->rg_fs, share(rg) - before);
}

void rgrp_make_ours(struct rgrp *rg)
{
	if (rgrp_whose(rgrp_hint(rg)) != RGRP_OTHERS)
		return;
	pthread_mutex_lock(&rg->rg_lock);
	if (rg->rg_bufs && rgrp_whose(rgrp_hint(rg)) == RGRP_OTHERS) {
		rgrp_lvb_set(rg);
		set_whose(rg, RGRP_OURS);
		space_ours(rg->rg_fs, share(rg));
	}
	pthread_mutex_unlock(&rg->rg_lock);
}

void rgrp_not_ours(struct rgrp *rg)
{
	/* A last reference is put without a recall. */
	if (rgrp_whose(rgrp_hint(rg)) == RGRP_OURS)
		space_ours(rg->rg_fs, -share(rg));
	set_whose(rg, RGRP_OTHERS);
}

/* ---- giving it up ---- */

/*
 * Also of one that is not ours yet: who has been granted the lock a moment ago
 * may be about to make it so, and it would leave without another recall.
 */
static bool begin_leaving(struct rgrp *rg)
{
	bool ours;

	pthread_mutex_lock(&rg->rg_lock);
	ours = rgrp_whose(rgrp_hint(rg)) == RGRP_OURS;
	if (ours)
		space_ours(rg->rg_fs, -share(rg));
	set_whose(rg, RGRP_LEAVING);
	pthread_mutex_unlock(&rg->rg_lock);
	return ours;
}

/* Until our other groups have what is promised. */
static void settle(struct fs *fs)
{
	const struct timespec pause = { .tv_nsec = SETTLE_PAUSE_NS };
	uint64_t began = now_ns(), before = UINT64_MAX, promised;

	while (space_overdrawn(fs, &promised) && !fs_is_withdrawn(fs)) {
		if (promised != before) {
			before = promised;
			began = now_ns();
		} else if (now_ns() - began > SETTLE_PATIENCE_NS) {
			ug_error(fs->fs_who,
				 "%" PRIu64 " blocks are promised to data that "
				 "cannot be written; a resource group is given "
				 "up all the same",
				 promised);
			return;
		}
		fs_writeback_unlocked(fs);
		nanosleep(&pause, NULL);
	}
}

void rgrp_gl_recall(struct glock *gl, enum lm_state target)
{
	struct rgrp *rg = glock_object(gl);

	bool ours = begin_leaving(rg);

	/* Sync ends it, also if nothing was changed and SH is the target. */
	glock_set_dirty(gl);
	if (!ours)
		return;
	rgrp_shun(rg);
	settle(rg->rg_fs);
}
