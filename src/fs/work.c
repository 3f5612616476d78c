/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * work.c - what happens behind the requests: write-back, commit, checkpoint,
 * eviction.
 *
 * The file system has no threads. Its host calls fs_work_run() for each kind
 * of work once a second and whenever fs_wake() asked for it, from one thread
 * per kind. Each kind may wait for the device and for transactions; none holds
 * a lock while it waits for another kind.
 *
 *   write-back   inodes dirty for longer than commit= seconds (all, when
 *                woken because memory is short), oldest first, in batches
 *   commit       every commit= seconds: merge of statfs, one log flush
 *   checkpoint   committed blocks in place while much of the log is live
 *   evict        inodes without links; memory of unreferenced inodes
 *
 * All of it rests while the volume is frozen.
 */
#include <errno.h>
#include <malloc.h>
#include <time.h>

#include "fs/icache.h"
#include "fs/inode.h"
#include "fs/pagepool.h"
#include "fs/pages.h"
#include "fs/rgrp.h"
#include "fs/statfs.h"
#include "fs/work.h"

#define WRITEBACK_BATCH 256u
/* The log is written back in place down to this share when asked to. */
#define CHECKPOINT_TARGET_PERCENT 30u
#define CHECKPOINT_TRIGGER_PERCENT 60u
#define GLOCK_SHRINK_MAX 64u
/* Until the merge of statfs is left to the next time. */
#define MERGE_PATIENCE_SEC 1u
/* Idle groups are looked for so often, or eight times in demote_secs. */
#define GLOCK_WALK_SEC 30u
/* The allocator's free memory goes back after so many inodes, so often. */
#define TRIM_INODES 10000u
#define TRIM_SEC 10u

static uint64_t now_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * 1000000000u + (uint64_t)ts.tv_nsec;
}

static unsigned take_batch(struct fs *fs, uint64_t before_ns,
			   struct inode **batch)
{
	unsigned n = 0;

	while (n < WRITEBACK_BATCH &&
	       (batch[n] = icache_next_dirty(fs, before_ns)) != NULL)
		n++;
	return n;
}

/*
 * Write one batch of inodes dirtied before the time; how many there were. It
 * counts as a write-back from before the list is touched: a sync that finds an
 * inode on no list any more waits for who has taken it off.
 */
static unsigned writeback_batch(struct fs *fs, uint64_t before_ns, bool wait,
				int *err)
{
	unsigned epoch = pagepool_writeback_begin(fs->fs_pages);
	struct inode *batch[WRITEBACK_BATCH];
	unsigned n = take_batch(fs, before_ns, batch), i;
	int e = n ? file_writeback_many(batch, n, wait) : 0;

	if (e && !*err)
		*err = e;
	for (i = 0; i < n; i++) {
		if (file_is_dirty(batch[i]) && !fs_is_withdrawn(fs))
			inode_mark_dirty(batch[i]);
		inode_put(batch[i]);
	}
	pagepool_writeback_end(fs->fs_pages, epoch);
	return n;
}

/*
 * before_ns is a time in the past: what is dirtied (again) meanwhile is younger
 * and left alone, so this ends.
 */
static int writeback_before(struct fs *fs, uint64_t before_ns, bool wait)
{
	int err = 0;

	while (!fs_is_withdrawn(fs) &&
	       writeback_batch(fs, before_ns, wait, &err))
		;
	return fs_fault(fs, err);
}

static void run_writeback(struct fs *fs, bool now)
{
	uint64_t age_ns =
		(uint64_t)tune_get(fs, TUNE_LOG_FLUSH_SECS) * 1000000000u;
	uint64_t t = now_ns();

	writeback_before(fs, now ? t : t > age_ns ? t - age_ns : 0, true);
	pagepool_shrink(fs);
}

static bool is_due(uint64_t *last_ns, unsigned period_sec)
{
	uint64_t t = now_ns();

	if (t - *last_ns < (uint64_t)period_sec * 1000000000u)
		return false;
	*last_ns = t;
	return true;
}

static void run_commit(struct fs *fs, bool now)
{
	struct work_clock *wc = &fs->fs_work_clock;

	if (!now && !is_due(&wc->commit_ns, tune_get(fs, TUNE_LOG_FLUSH_SECS)))
		return;
	/* First: other nodes may keep the master file for a while. */
	journal_flush(fs->fs_journal, UINT64_MAX);
	if (is_due(&wc->statfs_ns, tune_get(fs, TUNE_STATFS_QUANTUM)) ||
	    statfs_merge_is_due(fs)) {
		fs_fault(fs, statfs_merge(fs, MERGE_PATIENCE_SEC));
		journal_flush(fs->fs_journal, UINT64_MAX);
	}
}

static void run_checkpoint(struct fs *fs, bool now)
{
	struct journal_stats st;

	journal_stats(fs->fs_journal, &st);
	if (now ||
	    (uint64_t)st.live_blocks * 100 >
		    (uint64_t)st.total_blocks * CHECKPOINT_TRIGGER_PERCENT)
		journal_writeback(fs->fs_journal, CHECKPOINT_TARGET_PERCENT);
}

/*
 * Groups that are not used give back their bitmaps. Inodes leave memory with
 * the inode cache, and those of system files hold buffers for the whole mount.
 * A walk over all glocks is too much for each time that an inode is freed.
 */
static void drop_idle_groups(struct fs *fs)
{
	unsigned secs = tune_get(fs, TUNE_DEMOTE_SECS);
	struct timespec ts;

	if (!is_due(&fs->fs_work_clock.glocks_ns,
		    UG_MIN(secs / 8, GLOCK_WALK_SEC)))
		return;
	clock_gettime(CLOCK_MONOTONIC, &ts);
	if (ts.tv_sec > secs)
		glock_table_shrink(fs->fs_glocks, LM_TYPE_RGRP,
				   (uint64_t)ts.tv_sec - secs,
				   GLOCK_SHRINK_MAX);
}

/*
 * What the kernel forgets in great numbers leaves holes all over the heap,
 * which the allocator keeps for ever unless it is told.
 */
static void shrink_inodes(struct fs *fs)
{
	struct work_clock *clock = &fs->fs_work_clock;

	clock->trim_inodes += icache_shrink(fs);
	if (clock->trim_inodes < TRIM_INODES ||
	    !is_due(&clock->trim_ns, TRIM_SEC))
		return;
	clock->trim_inodes = 0;
	malloc_trim(0);
}

static void run_evict(struct fs *fs)
{
	icache_run_evict(fs);
	orphans_look(fs, false);
	rgrps_clean(fs);
	shrink_inodes(fs);
	drop_idle_groups(fs);
}

/* Of a mount that writes nothing. */
static void run_readonly(struct fs *fs, enum fs_work work)
{
	if (work == FS_WORK_EVICT)
		shrink_inodes(fs);
	else if (work == FS_WORK_WRITEBACK)
		pagepool_shrink(fs);
}

static void run(struct fs *fs, enum fs_work work, bool now)
{
	switch (work) {
	case FS_WORK_WRITEBACK:
		run_writeback(fs, now);
		break;
	case FS_WORK_COMMIT:
		run_commit(fs, now);
		break;
	case FS_WORK_CHECKPOINT:
		run_checkpoint(fs, now);
		break;
	case FS_WORK_EVICT:
		run_evict(fs);
		break;
	case FS_WORK_COUNT:
		break;
	}
}

void fs_work_run(struct fs *fs, enum fs_work work, bool now)
{
	if (fs_is_withdrawn(fs))
		return;
	if (!fs->fs_journal) {
		run_readonly(fs, work);
		return;
	}
	/* What it is not done now for is done in the seconds after the thaw. */
	if (!freeze_work_begin(fs))
		return;
	run(fs, work, now);
	freeze_work_end(fs);
}

int fs_writeback_all(struct fs *fs)
{
	return writeback_before(fs, now_ns(), true);
}

int fs_writeback_unlocked(struct fs *fs)
{
	return writeback_before(fs, now_ns(), false);
}

/*
 * The log, and the device for what was written to it without a transaction,
 * unless the flush of the log has done that.
 */
static int flush_all(struct fs *fs)
{
	uint64_t seq = journal_sequence(fs->fs_journal);
	int err = journal_flush(fs->fs_journal, UINT64_MAX);

	if (err ||
	    (fs->fs_opt.barriers && journal_has_flushed(fs->fs_journal, seq)))
		return err;
	return blkdev_flush(fs->fs_dev);
}

int fs_sync(struct fs *fs)
{
	int err, err2;

	if (fs_is_withdrawn(fs))
		return -EIO;
	if (!fs->fs_journal)
		return 0;
	err = fs_writeback_all(fs);
	/* Another thread may be in the middle of a batch that was dirty before
	 * we were called. */
	pagepool_wait_writeback(fs);
	err2 = flush_all(fs);
	return err ? err : err2;
}

int fs_reclaim_space(struct fs *fs)
{
	icache_drain_orphans(fs);
	if (!fs->fs_alone)
		rgrps_want_clean(fs, true);
	return journal_flush(fs->fs_journal, UINT64_MAX);
}
