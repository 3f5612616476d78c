/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * test_rgrp.c - allocation on real volumes: places, windows, the life of a
 * freed block, the arithmetic of a full volume.
 *
 * The tests reserve and allocate for inodes that exist in memory only, and free
 * everything again, so that fsck.gfs2 must find nothing in the end.
 */
#include <errno.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/prng.h"
#include "fs/rgrp_int.h"
#include "fs/statfs.h"
#include "tests/unit/fs/volume.h"

#define STEP_BLOCKS 8u

static struct volume vol;

static void start(const struct volume_geometry *g)
{
	volume_make(&vol, g);
	volume_mount(&vol);
}

static void check_groups(struct fs *fs)
{
	for (uint32_t i = 0; i < fs->fs_rgrps->rgs_count; i++)
		assert_int_equal(rgrp_check(&fs->fs_rgrps->rgs_groups[i]), 0);
}

/* Nothing is promised, claimed or pending any more; the volume is clean. */
static void finish(void)
{
	struct space *sp = &vol.fs->fs_rgrps->rgs_space;

	assert_int_equal(journal_flush(vol.fs->fs_journal, UINT64_MAX), 0);
	assert_int_equal(sp->sp_promised, 0);
	assert_int_equal(sp->sp_claimed, 0);
	assert_int_equal(sp->sp_pending, 0);
	check_groups(vol.fs);
	volume_unmount(&vol);
	volume_fsck(&vol);
	volume_remove(&vol);
}

/* A file that is open for writing and exists nowhere else. */
static void fake_inode(struct inode *ip, unsigned writers)
{
	memset(ip, 0, sizeof(*ip));
	ip->i_fs = vol.fs;
	ip->i_addr = vol.fs->fs_root->i_addr;
	ip->i_goal = ip->i_addr;
	atomic_init(&ip->i_writers, writers);
	CDS_INIT_LIST_HEAD(&ip->i_window.rw_list);
}

/* ---- extents that a test owns ---- */

#define OWNED_MAX 4096u

struct owned {
	unsigned count;
	struct rgrp_extent ext[OWNED_MAX];
};

static uint64_t owned_blocks(const struct owned *o)
{
	uint64_t sum = 0;

	for (unsigned i = 0; i < o->count; i++)
		sum += o->ext[i].len;
	return sum;
}

static void own(struct owned *o, uint64_t start, uint32_t len)
{
	struct rgrp_extent *last = o->count ? &o->ext[o->count - 1] : NULL;

	if (last && last->start + last->len == start) {
		last->len += len;
		return;
	}
	assert_true(o->count < OWNED_MAX);
	o->ext[o->count++] = (struct rgrp_extent){ start, len };
}

/* Enter all places of the hold into the bitmap. */
static void alloc_all(struct rgrp_hold *hold, struct inode *ip, struct owned *o)
{
	struct journal *j = vol.fs->fs_journal;
	struct trans tr;
	uint64_t start;
	uint32_t n;

	assert_int_equal(trans_begin(j, &tr,
				     rgrp_trans_blocks(hold, hold->rh_blocks),
				     0, 0),
			 0);
	while (hold->rh_blocks) {
		n = rgrp_alloc(&tr, hold, ip, UINT32_MAX, &start);
		own(o, start, n);
	}
	trans_end(&tr);
}

static int take(struct inode *ip, uint32_t want, uint32_t min,
		enum rgrp_why why, struct owned *o)
{
	struct rgrp_hold hold;
	int err;

	rgrp_hold_init(&hold);
	err = rgrp_reserve(ip, want, min, why, false, &hold);
	if (err)
		return err;
	alloc_all(&hold, ip, o);
	rgrp_drop(&hold);
	return 0;
}

static void give_back(uint64_t start, uint32_t len, bool metadata)
{
	struct rgrp_hold hold;
	struct trans tr;

	rgrp_hold_init(&hold);
	assert_int_equal(rgrp_hold_block(vol.fs, start, false, &hold), 0);
	assert_true(rgrp_hold_covers(&hold, start));
	assert_int_equal(rgrp_check_used(&hold, start, len), 0);
	assert_int_equal(trans_begin(vol.fs->fs_journal, &tr,
				     rgrp_trans_blocks(&hold, len),
				     metadata ? len : 0, 0),
			 0);
	assert_int_equal(rgrp_free(&tr, &hold, NULL, start, len, metadata), 0);
	trans_end(&tr);
	rgrp_drop(&hold);
}

static void give_back_all(struct owned *o)
{
	while (o->count) {
		o->count--;
		give_back(o->ext[o->count].start, o->ext[o->count].len, false);
	}
}

static enum gfs2_blkst state_of(uint64_t blkno)
{
	enum gfs2_blkst st;

	assert_int_equal(rgrp_block_state(vol.fs, blkno, false, &st), 0);
	return st;
}

/* ---- reserving ---- */

static void test_hold_is_memory_only(void **state)
{
	struct volume_geometry g = { 0 };
	struct rgrp_hold hold, other;
	struct rgrp_extent ext;
	struct inode ip;
	int64_t before;

	start(&g);
	fake_inode(&ip, 0);
	before = statfs_free(vol.fs);
	rgrp_hold_init(&hold);
	rgrp_hold_init(&other);
	assert_int_equal(rgrp_reserve(&ip, 100, 10, RGRP_META, false, &hold),
			 0);
	assert_int_equal(hold.rh_blocks, 100);
	ext = rgrp_peek(&hold, 50);
	assert_int_equal(ext.len, 50);
	assert_int_equal(state_of(ext.start), GFS2_BLKST_FREE);
	assert_int_equal(statfs_free(vol.fs), before);
	/* Held once is held: the next one gets other places. */
	assert_int_equal(rgrp_reserve(&ip, 1, 1, RGRP_META, false, &other), 0);
	assert_true(rgrp_peek(&other, 1).start >= ext.start + 100 ||
		    rgrp_peek(&other, 1).start < ext.start);
	rgrp_drop(&other);
	rgrp_drop(&hold);
	rgrp_drop(&hold);
	/* Given back, they are the first choice again. */
	assert_int_equal(rgrp_reserve(&ip, 100, 10, RGRP_META, false, &hold),
			 0);
	assert_int_equal(rgrp_peek(&hold, 1).start, ext.start);
	rgrp_drop(&hold);
	finish();
}

static void test_random_life(void **state)
{
	static const struct volume_geometry geometries[] = {
		{ .bsize = 4096, .size_mib = 300 },
		{ .bsize = 1024, .size_mib = 64, .format = 1801 },
		{ .bsize = 512, .size_mib = 64 },
	};
	static struct owned o;
	struct ug_prng prng;
	struct inode ip;
	int64_t before;

	for (unsigned i = 0; i < UG_ARRAY_SIZE(geometries); i++) {
		start(&geometries[i]);
		fake_inode(&ip, 0);
		ug_prng_seed(&prng, i);
		o.count = 0;
		before = statfs_free(vol.fs);
		for (unsigned k = 0; k < 1500; k++) {
			unsigned victim = o.count;

			if (o.count && ug_prng_below(&prng, 5) < 2)
				victim =
					(unsigned)ug_prng_below(&prng, o.count);
			if (victim < o.count) {
				struct rgrp_extent *e = &o.ext[victim];
				uint32_t n = 1 + (uint32_t)ug_prng_below(
							 &prng, e->len);

				/* The rear part: the front stays ours. */
				give_back(e->start + e->len - n, n,
					  n < 64 && n & 1);
				e->len -= n;
				if (!e->len)
					*e = o.ext[--o.count];
			} else if (o.count < OWNED_MAX - 64) {
				uint32_t want =
					1 + (uint32_t)ug_prng_below(&prng, 300);

				assert_int_equal(
					take(&ip, want, 1, RGRP_META, &o), 0);
			}
			assert_int_equal(statfs_free(vol.fs),
					 before - (int64_t)owned_blocks(&o));
			if (k % 100 == 0)
				check_groups(vol.fs);
		}
		give_back_all(&o);
		assert_int_equal(statfs_free(vol.fs), before);
		finish();
	}
}

/* ---- freed blocks ---- */

/* Take everything that can be had. */
static void take_all(struct inode *ip, struct owned *o)
{
	int err;

	do
		err = take(ip, 4096, 1, RGRP_DATA, o);
	while (!err);
	assert_int_equal(err, -ENOSPC);
}

static void test_freed_waits_for_commit(void **state)
{
	struct volume_geometry g = { 0 };
	struct rgrp_hold hold;
	static struct owned o;
	struct inode ip;
	uint64_t block;

	start(&g);
	fake_inode(&ip, 0);
	o.count = 0;
	take_all(&ip, &o);
	assert_int_equal(journal_flush(vol.fs->fs_journal, UINT64_MAX), 0);
	block = o.ext[0].start;
	o.ext[0].start++;
	o.ext[0].len--;
	give_back(block, 1, false);
	assert_int_equal(state_of(block), GFS2_BLKST_FREE);
	/* Not before the commit ... */
	rgrp_hold_init(&hold);
	assert_int_equal(rgrp_reserve(&ip, 1, 1, RGRP_DATA, true, &hold),
			 -EAGAIN);
	assert_null(hold.rh_rg);
	/* ... which a request that may wait brings about. */
	assert_int_equal(rgrp_reserve(&ip, 1, 1, RGRP_DATA, false, &hold), 0);
	assert_int_equal(rgrp_peek(&hold, 1).start, block);
	rgrp_drop(&hold);
	give_back_all(&o);
	finish();
}

static void test_wrong_states(void **state)
{
	struct volume_geometry g = { 0 };
	struct rgrp_hold hold;
	struct inode ip;
	struct trans tr;
	uint64_t block;

	start(&g);
	fake_inode(&ip, 0);
	rgrp_hold_init(&hold);
	assert_int_equal(rgrp_reserve(&ip, 1, 1, RGRP_META, false, &hold), 0);
	block = rgrp_peek(&hold, 1).start;
	rgrp_drop(&hold);
	assert_int_equal(rgrp_hold_block(vol.fs, block, false, &hold), 0);
	assert_int_equal(trans_begin(vol.fs->fs_journal, &tr,
				     rgrp_trans_blocks(&hold, 8), 4, 0),
			 0);
	assert_int_equal(rgrp_free(&tr, &hold, NULL, block, 1, false),
			 -EUCLEAN);
	assert_int_equal(rgrp_free(&tr, &hold, NULL, block - 1, 2, false),
			 -EUCLEAN);
	assert_int_equal(rgrp_free(&tr, &hold, NULL, 16, 1, false), -EUCLEAN);
	assert_int_equal(rgrp_free_dinode(&tr, &hold, block), -EUCLEAN);
	assert_int_equal(rgrp_unlink_dinode(&tr, &hold, block), -EUCLEAN);
	trans_end(&tr);
	rgrp_drop(&hold);
	assert_int_equal(rgrp_hold_block(vol.fs, 3, false, &hold), -EUCLEAN);
	assert_false(rgrps_valid_block(vol.fs, 3));
	assert_false(rgrps_valid_block(vol.fs, UINT64_MAX));
	assert_true(rgrps_valid_block(vol.fs, block));
	finish();
}

/* ---- dinodes ---- */

struct found {
	unsigned count;
	uint64_t addrs[300];
};

static int note_unlinked(struct fs *fs, uint64_t addr, void *arg)
{
	struct found *found = arg;

	assert_true(found->count < UG_ARRAY_SIZE(found->addrs));
	found->addrs[found->count++] = addr;
	return 0;
}

/* One transaction for one dinode: make, unlink or free it. */
static uint64_t dinode_step(char step, uint64_t addr, uint64_t *formal)
{
	struct rgrp_hold hold;
	struct inode ip;
	struct trans tr;

	rgrp_hold_init(&hold);
	fake_inode(&ip, 0);
	if (step == 'm')
		assert_int_equal(
			rgrp_reserve(&ip, 1, 1, RGRP_META, false, &hold), 0);
	else
		assert_int_equal(rgrp_hold_block(vol.fs, addr, false, &hold),
				 0);
	assert_int_equal(trans_begin(vol.fs->fs_journal, &tr,
				     rgrp_trans_blocks(&hold, 1), 1, 0),
			 0);
	if (step == 'm')
		addr = rgrp_alloc_dinode(&tr, &hold, formal);
	else if (step == 'u')
		assert_int_equal(rgrp_unlink_dinode(&tr, &hold, addr), 0);
	else
		assert_int_equal(rgrp_free_dinode(&tr, &hold, addr), 0);
	trans_end(&tr);
	rgrp_drop(&hold);
	return addr;
}

static void test_dinodes(void **state)
{
	struct volume_geometry g = { 0 };
	uint64_t total, free_, dinodes, free2, dinodes2;
	uint64_t addrs[280], formal, last = 0;
	struct found found = { 0 };
	unsigned i, n = UG_ARRAY_SIZE(addrs);

	start(&g);
	assert_int_equal(rgrps_sum(vol.fs, &total, &free_, &dinodes), 0);
	for (i = 0; i < n; i++) {
		addrs[i] = dinode_step('m', 0, &formal);
		assert_int_equal(state_of(addrs[i]), GFS2_BLKST_DINODE);
		assert_true(formal > last);
		last = formal;
	}
	assert_int_equal(rgrps_sum(vol.fs, &total, &free2, &dinodes2), 0);
	assert_int_equal(free2, free_ - n);
	assert_int_equal(dinodes2, dinodes + n);
	for (i = 0; i < n; i++)
		dinode_step('u', addrs[i], NULL);
	assert_int_equal(rgrps_each_unlinked(vol.fs, note_unlinked, &found), 0);
	assert_int_equal(found.count, n);
	assert_memory_equal(found.addrs, addrs, sizeof(addrs));
	for (i = 0; i < n; i++)
		dinode_step('f', addrs[i], NULL);
	found.count = 0;
	assert_int_equal(rgrps_each_unlinked(vol.fs, note_unlinked, &found), 0);
	assert_int_equal(found.count, 0);
	assert_int_equal(rgrps_sum(vol.fs, &total, &free2, &dinodes2), 0);
	assert_int_equal(free2, free_);
	assert_int_equal(dinodes2, dinodes);
	finish();
}

/* ---- windows ---- */

/* Extents of files that grow in turns, step by step. */
static unsigned grow_in_turns(unsigned files, unsigned writers, unsigned steps)
{
	static struct owned o[8];
	struct inode ip[8];
	unsigned i, k, most = 0;

	for (i = 0; i < files; i++) {
		fake_inode(&ip[i], writers);
		o[i].count = 0;
	}
	for (k = 0; k < steps; k++)
		for (i = 0; i < files; i++)
			assert_int_equal(
				take(&ip[i], STEP_BLOCKS, 1, RGRP_DATA, &o[i]),
				0);
	check_groups(vol.fs);
	for (i = 0; i < files; i++) {
		most = UG_MAX(most, o[i].count);
		assert_int_equal(owned_blocks(&o[i]), steps * STEP_BLOCKS);
		rgrp_window_drop(&ip[i]);
		give_back_all(&o[i]);
	}
	return most;
}

static void test_growing_files_keep_apart(void **state)
{
	struct volume_geometry g = { .size_mib = 512 };

	start(&g);
	/* 2,000 blocks each: windows double, so some dozen pieces at most. */
	assert_true(grow_in_turns(5, 1, 250) <= 12);
	/* Closed files have no windows: the test can tell. */
	assert_true(grow_in_turns(5, 0, 250) > 12);
	finish();
}

static void test_leftovers_continue(void **state)
{
	struct volume_geometry g = { 0 };
	static struct owned o;
	struct rgrp_hold hold;
	struct inode ip;

	start(&g);
	fake_inode(&ip, 1);
	o.count = 0;
	/* Asked for more than was used, as the worst case of pointer blocks. */
	for (unsigned k = 0; k < 50; k++) {
		struct trans tr;
		uint64_t at;

		rgrp_hold_init(&hold);
		assert_int_equal(rgrp_reserve(&ip, STEP_BLOCKS + 3, 1,
					      RGRP_DATA, false, &hold),
				 0);
		assert_int_equal(trans_begin(vol.fs->fs_journal, &tr,
					     rgrp_trans_blocks(&hold, 8), 0, 0),
				 0);
		assert_int_equal(rgrp_alloc(&tr, &hold, &ip, STEP_BLOCKS, &at),
				 STEP_BLOCKS);
		own(&o, at, STEP_BLOCKS);
		trans_end(&tr);
		rgrp_drop(&hold);
	}
	assert_int_equal(o.count, 1);
	rgrp_window_drop(&ip);
	give_back_all(&o);
	finish();
}

static void test_windows_yield_when_full(void **state)
{
	struct volume_geometry g = { 0 };
	static struct owned mine, theirs;
	struct inode writer, taker;

	start(&g);
	fake_inode(&writer, 1);
	fake_inode(&taker, 0);
	mine.count = theirs.count = 0;
	assert_int_equal(take(&writer, 1, 1, RGRP_DATA, &mine), 0);
	assert_true(writer.i_window.rw_len > 0);
	take_all(&taker, &theirs);
	check_groups(vol.fs);
	/* The window has been eaten; its owner is told like everybody, and
	 * finds room again when others do. */
	assert_int_equal(take(&writer, 1, 1, RGRP_DATA, &mine), -ENOSPC);
	theirs.count--;
	give_back(theirs.ext[theirs.count].start, theirs.ext[theirs.count].len,
		  false);
	assert_int_equal(take(&writer, 1, 1, RGRP_DATA, &mine), 0);
	rgrp_window_drop(&writer);
	assert_int_equal(writer.i_window.rw_start, 0);
	give_back_all(&mine);
	give_back_all(&theirs);
	finish();
}

static void test_spread(void **state)
{
	struct volume_geometry g = { .size_mib = 2048 };
	struct rgrp *seen[8] = { NULL };
	struct inode ip;
	unsigned different = 0;

	start(&g);
	fake_inode(&ip, 0);
	for (unsigned i = 0; i < UG_ARRAY_SIZE(seen); i++) {
		struct rgrp_hold hold;
		unsigned k = 0;

		rgrp_hold_init(&hold);
		assert_int_equal(
			rgrp_reserve(&ip, 2, 2, RGRP_SPREAD, false, &hold), 0);
		seen[i] = hold.rh_rg;
		while (seen[k] != seen[i])
			k++;
		different += k == i;
		rgrp_drop(&hold);
	}
	assert_true(different >= 4);
	finish();
}

/* ---- many at once ---- */

struct party {
	pthread_t thread;
	unsigned seed;
	struct owned o;
};

/* Grow with a window, lose pieces, close, open again. */
static void *party_run(void *arg)
{
	struct party *p = arg;
	struct ug_prng prng;
	struct inode ip;

	ug_prng_seed(&prng, p->seed);
	fake_inode(&ip, 1);
	for (unsigned k = 0; k < 600; k++) {
		uint32_t want = 1 + (uint32_t)ug_prng_below(&prng, 40);
		struct rgrp_extent *last;

		switch (ug_prng_below(&prng, 6)) {
		case 0:
			rgrp_window_drop(&ip);
			break;
		case 1:
			if (!p->o.count)
				break;
			last = &p->o.ext[--p->o.count];
			give_back(last->start, last->len, k & 1);
			break;
		case 2:
			assert_int_equal(take(&ip, want, 1, RGRP_META, &p->o),
					 0);
			break;
		default:
			assert_int_equal(take(&ip, want, 1, RGRP_DATA, &p->o),
					 0);
		}
	}
	rgrp_window_drop(&ip);
	return NULL;
}

static void test_many_at_once(void **state)
{
	struct volume_geometry g = { .bsize = 1024, .size_mib = 100 };
	static struct party parties[4];
	uint64_t sum = 0;
	int64_t before;

	start(&g);
	before = statfs_free(vol.fs);
	for (unsigned i = 0; i < UG_ARRAY_SIZE(parties); i++) {
		parties[i].seed = i;
		parties[i].o.count = 0;
		assert_int_equal(pthread_create(&parties[i].thread, NULL,
						party_run, &parties[i]),
				 0);
	}
	for (unsigned i = 0; i < UG_ARRAY_SIZE(parties); i++) {
		pthread_join(parties[i].thread, NULL);
		sum += owned_blocks(&parties[i].o);
	}
	check_groups(vol.fs);
	assert_int_equal(statfs_free(vol.fs), before - (int64_t)sum);
	/* Freeing checks that each block is in use: none was given twice. */
	for (unsigned i = 0; i < UG_ARRAY_SIZE(parties); i++)
		give_back_all(&parties[i].o);
	finish();
}

/* ---- the arithmetic ---- */

static void promises_are_kept(const struct volume_geometry *g)
{
	static struct owned data, meta;
	uint64_t promised = 0, step;
	struct inode ip;
	int err;

	start(g);
	fake_inode(&ip, 0);
	data.count = meta.count = 0;
	for (step = 1024; step; step /= 2)
		while (space_promise(vol.fs, step) == 0)
			promised += step;
	assert_int_equal(space_promised(vol.fs), promised);
	/* All that is left is promised: metadata is refused. */
	assert_int_equal(take(&ip, 1, 1, RGRP_META, &meta), -ENOSPC);
	assert_int_equal(take(&ip, 1, 1, RGRP_SPREAD, &meta), -ENOSPC);
	/* Give back a little: that much metadata, and no more. */
	space_unpromise(vol.fs, 5);
	promised -= 5;
	assert_int_equal(take(&ip, 5, 5, RGRP_META, &meta), 0);
	assert_int_equal(take(&ip, 1, 1, RGRP_META, &meta), -ENOSPC);
	/* Every promise is good for a way of blocks in one group. */
	while (promised) {
		uint32_t n = (uint32_t)UG_MIN(promised, RGRP_MIN_PROMISED);

		err = take(&ip, n, n, RGRP_DATA, &data);
		assert_int_equal(err, 0);
		space_unpromise(vol.fs, n);
		promised -= n;
	}
	assert_int_equal(space_promise(vol.fs, 1), -ENOSPC);
	/* Freed, but not committed: not yet to be promised. */
	give_back_all(&data);
	assert_int_equal(space_promise(vol.fs, 1), -ENOSPC);
	assert_int_equal(journal_flush(vol.fs->fs_journal, UINT64_MAX), 0);
	assert_int_equal(space_promise(vol.fs, 1), 0);
	space_unpromise(vol.fs, 1);
	give_back_all(&meta);
	finish();
}

static void test_promises_are_kept(void **state)
{
	static const struct volume_geometry geometries[] = {
		{ 0 },
		{ .size_mib = 600 },
		{ .bsize = 1024, .size_mib = 128, .journals = 3 },
	};

	for (unsigned i = 0; i < UG_ARRAY_SIZE(geometries); i++)
		promises_are_kept(&geometries[i]);
}

static void test_holds_of_metadata_count(void **state)
{
	struct volume_geometry g = { 0 };
	struct rgrp_hold hold;
	struct inode ip;
	uint64_t left = 0, again = 0, step;

	start(&g);
	fake_inode(&ip, 0);
	rgrp_hold_init(&hold);
	for (step = 1024; step; step /= 2)
		while (space_promise(vol.fs, step) == 0)
			left += step;
	space_unpromise(vol.fs, left);
	assert_int_equal(rgrp_reserve(&ip, 100, 100, RGRP_META, false, &hold),
			 0);
	for (step = 1024; step; step /= 2)
		while (space_promise(vol.fs, step) == 0)
			again += step;
	assert_int_equal(again, left - 100);
	space_unpromise(vol.fs, again);
	rgrp_drop(&hold);
	finish();
}

/* ---- damage ---- */

static void flip_byte(uint64_t offset)
{
	struct blkdev *dev;
	uint64_t base = offset & ~4095ull;
	uint8_t *block = blkdev_alloc(4096);

	assert_int_equal(blkdev_open_file(vol.path, BLK_OPEN_EXCL, &dev), 0);
	assert_int_equal(blkdev_read(dev, block, 4096, base), 0);
	block[offset - base] ^= 0x03;
	assert_int_equal(blkdev_write(dev, block, 4096, base, 0), 0);
	blkdev_close(dev);
	free(block);
}

/* Damage at this byte of the last group is found when the group is used. */
static void damaged_group(uint64_t byte)
{
	struct volume_geometry g = { 0 };
	struct rgrp_hold hold;
	uint64_t data0, addr;
	struct rgrps *rgs;

	start(&g);
	rgs = vol.fs->fs_rgrps;
	data0 = rgs->rgs_groups[rgs->rgs_count - 1].rg_ri.data0;
	addr = rgs->rgs_groups[rgs->rgs_count - 1].rg_ri.addr;
	volume_unmount(&vol);
	flip_byte(addr * 4096 + byte);
	volume_mount(&vol);
	rgrp_hold_init(&hold);
	assert_int_equal(rgrp_hold_block(vol.fs, data0, false, &hold),
			 -EUCLEAN);
	assert_null(hold.rh_rg);
	/* Nothing is held: the volume can still be unmounted. */
	volume_unmount(&vol);
	volume_remove(&vol);
}

static void test_damaged_group(void **state)
{
	damaged_group(7);   /* type */
	damaged_group(31);  /* free count: checksum */
	damaged_group(200); /* bitmap: disagrees with the header */
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_hold_is_memory_only),
		cmocka_unit_test(test_random_life),
		cmocka_unit_test(test_freed_waits_for_commit),
		cmocka_unit_test(test_wrong_states),
		cmocka_unit_test(test_dinodes),
		cmocka_unit_test(test_growing_files_keep_apart),
		cmocka_unit_test(test_leftovers_continue),
		cmocka_unit_test(test_windows_yield_when_full),
		cmocka_unit_test(test_spread),
		cmocka_unit_test(test_many_at_once),
		cmocka_unit_test(test_promises_are_kept),
		cmocka_unit_test(test_holds_of_metadata_count),
		cmocka_unit_test(test_damaged_group),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
