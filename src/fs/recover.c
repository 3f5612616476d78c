/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * recover.c - see recover.h.
 *
 * Recovery, journal by journal: images in place, durable. Then, once for all of
 * them: the master statfs values are computed anew from the group headers,
 * the local values zeroed, durable; only then are the journals marked clean.
 * A crash at any point of it leaves dirty journals, and all of it is done again
 * with the same outcome, because nothing in it depends on the old statfs
 * values.
 *
 * What the metadata tree cached before a replay may be wrong afterwards:
 * everything in memory is thrown away and read again. The tree has private
 * locks: nobody else has the volume mounted.
 *
 * Of a member that has died beside others its survivors recover the one
 * journal, under its lock. The blocks in it are those that the member held
 * locks of, which nobody is granted before all such journals are clean.
 * Source: docs/spec/gfs2-ondisk.md 7.8.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/log.h"
#include "fs/clusterlocks.h"
#include "fs/inode.h"
#include "fs/metatree.h"
#include "fs/recover.h"
#include "fs/rgrp.h"
#include "fs/statfs.h"

/* How long one attempt at another member's journal waits for its lock. */
#define PATIENCE_NS 1000000000u

static uint64_t now_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * 1000000000u + (uint64_t)ts.tv_nsec;
}

static int reopen_tree(struct fs *fs, const struct why *why)
{
	int err;

	metatree_unload(fs);
	err = metatree_create_caches(fs, METATREE_PRIVATE, why);
	return err ? err : metatree_load(fs, why);
}

static int replay_all(struct fs *fs, struct journals *js, const struct why *why)
{
	unsigned i;

	for (i = 0; i < js->count; i++) {
		struct journal_info *ji = &js->infos[i];
		struct replay_result res;
		int err;

		if (ji->head.clean)
			continue;
		err = replay_journal(fs->fs_dev, fs->fs_geom.bsize, &ji->map,
				     fs->fs_blocks, &ji->head, ji->who, &res);
		if (err)
			return why_set(
				why, err,
				"journal %u cannot be replayed (%s); the "
				"log says where; fsck.gfs2 can clear it",
				i,
				err == -EUCLEAN ? "it is damaged"
						: strerror(-err));
		ug_info(ji->who, "replayed: %u blocks written, %u revoked",
			res.blocks_replayed, res.blocks_revoked);
	}
	return 0;
}

/* Write a statfs file's three values straight to its block. */
static int write_statfs(struct fs *fs, uint64_t addr,
			const struct gfs2_statfs_info *values)
{
	uint32_t bsize = fs->fs_geom.bsize;
	uint64_t offset = addr << fs->fs_geom.bshift;
	void *block = blkdev_alloc(bsize);
	int err;

	if (!block)
		return -ENOMEM;
	err = blkdev_read(fs->fs_dev, block, bsize, offset);
	if (!err) {
		gfs2_statfs_encode(values, gfs2_dinode_area(block));
		err = blkdev_write(fs->fs_dev, block, bsize, offset, 0);
	}
	free(block);
	return err;
}

/* The tree has been opened after the replay: totals from the groups. */
static int rebuild_statfs(struct fs *fs, struct journals *js)
{
	static const struct gfs2_statfs_info zero;
	struct gfs2_statfs_info sum;
	uint64_t total, free_, dinodes;
	unsigned i;
	int err;

	err = rgrps_sum(fs, &total, &free_, &dinodes);
	if (err)
		return err;
	sum = (struct gfs2_statfs_info){ (int64_t)total, (int64_t)free_,
					 (int64_t)dinodes };
	err = write_statfs(fs, fs->fs_statfs_ip->i_addr, &sum);
	for (i = 0; !err && i < js->count; i++)
		err = write_statfs(fs, js->infos[i].statfs_addr, &zero);
	return err ? err : blkdev_flush(fs->fs_dev);
}

static int mark_clean(struct fs *fs, struct journals *js)
{
	unsigned i;
	int err = 0;

	for (i = 0; !err && i < js->count; i++) {
		struct journal_info *ji = &js->infos[i];

		if (!ji->head.clean)
			err = replay_mark_clean(fs->fs_dev, fs->fs_geom.bsize,
						&ji->map, fs->fs_opt.jid,
						ji->addr, &ji->head);
	}
	return err;
}

int recover_journals(struct fs *fs, struct journals *js, const struct why *why)
{
	int err;

	if (fs->fs_dev->readonly)
		return why_set(
			why, -EROFS,
			"a journal is dirty and must be replayed, but the "
			"device is write-protected");
	err = replay_all(fs, js, why);
	if (!err)
		err = reopen_tree(fs, why);
	if (err)
		return err;
	err = journals_find_statfs(fs, js, why);
	if (err)
		return err;
	err = rebuild_statfs(fs, js);
	if (!err)
		err = mark_clean(fs, js);
	if (err)
		return why_set(why, err, "recovery: %s",
			       err == -EUCLEAN ? "a resource group is damaged"
					       : strerror(-err));
	return 0;
}

int recover_journal(struct fs *fs, struct journal_info *ji)
{
	struct replay_result res;
	int err = replay_scan(fs->fs_dev, fs->fs_geom.bsize, &ji->map, ji->who,
			      &ji->head);

	if (err || ji->head.clean)
		return err;
	if (fs->fs_dev->readonly || fs->fs_opt.spectator)
		return -EROFS;
	/* Nothing is written; who froze it will see, and thaw. */
	if (freeze_is_still(fs))
		return -EAGAIN;
	err = replay_journal(fs->fs_dev, fs->fs_geom.bsize, &ji->map,
			     fs->fs_blocks, &ji->head, ji->who, &res);
	if (!err)
		err = replay_mark_clean(fs->fs_dev, fs->fs_geom.bsize, &ji->map,
					fs->fs_opt.jid, ji->addr, &ji->head);
	if (err)
		return err;
	ug_info(ji->who, "replayed: %u blocks written, %u revoked",
		res.blocks_replayed, res.blocks_revoked);
	fs->fs_left_behind = true;
	return 0;
}

/*
 * The totals of the dead member go into the master file in a transaction of
 * ours, when its own journal is clean: whoever replayed that one again would
 * count them twice. If that cannot be done now, the next owner of the journal
 * finds them in its statfs_change file.
 */
static void adopt_statfs(struct fs *fs, struct journal_info *ji)
{
	int err;

	if (!fs->fs_journal || fs_is_withdrawn(fs) || freeze_is_still(fs))
		return;
	err = statfs_adopt(fs, ji->statfs_addr);
	if (err)
		ug_warn(ji->who,
			"its statfs values are left to its next "
			"owner: %s",
			strerror(-err));
}

/*
 * Every survivor, replay or not: the journal of a node that has only had inodes
 * open is clean, and one that is clean says nothing about who made it so.
 * fs_recover_lock held.
 */
static void clean_up(struct fs *fs)
{
	if (!fs->fs_left_behind || !fs->fs_mounted)
		return;
	fs->fs_left_behind = false;
	if (fs->fs_journal)
		rgrps_want_clean(fs, false);
}

void recover_mounted(struct fs *fs)
{
	pthread_mutex_lock(&fs->fs_recover_lock);
	fs->fs_mounted = true;
	clean_up(fs);
	pthread_mutex_unlock(&fs->fs_recover_lock);
}

static int recover_locked(struct fs *fs, unsigned jid)
{
	struct journal_info *ji = &fs->fs_js->infos[jid];
	struct glock_holder gh;
	struct glock *gl;
	int err;

	err = glock_get(fs->fs_shared_glocks, &journal_glock_ops, jid, NULL,
			&gl);
	if (err)
		return err;
	err = glock_nq(gl, LM_ST_EXCLUSIVE, GL_NOEXP | GL_NOCACHE | GL_ASYNC,
		       &gh);
	if (!err)
		err = glock_wait_until(&gh, now_ns() + PATIENCE_NS);
	if (err == -ETIMEDOUT) {
		glock_dq(&gh);
		err = -EAGAIN;
	} else if (!err) {
		err = recover_journal(fs, ji);
		if (!err) {
			adopt_statfs(fs, ji);
			fs->fs_left_behind = true;
			clean_up(fs);
		}
		glock_dq(&gh);
	}
	glock_put(gl);
	return err;
}

int fs_recover_journal(struct fs *fs, unsigned jid)
{
	int err = -EAGAIN;

	if (jid >= fs->fs_js->count)
		return 0;
	pthread_mutex_lock(&fs->fs_recover_lock);
	if (fs_is_withdrawn(fs))
		err = -EIO;
	else if (!fs->fs_recover_over)
		err = recover_locked(fs, jid);
	pthread_mutex_unlock(&fs->fs_recover_lock);
	return err;
}

void recover_end(struct fs *fs)
{
	pthread_mutex_lock(&fs->fs_recover_lock);
	fs->fs_recover_over = true;
	pthread_mutex_unlock(&fs->fs_recover_lock);
}
