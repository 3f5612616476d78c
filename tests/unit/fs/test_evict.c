/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * test_evict.c - freeing trees and unlinked inodes, on real volumes.
 *
 * Files get their blocks by reserving and inserting, without data pages, so
 * that trees of any shape can be made quickly. What is left must be what
 * fsck.gfs2 counts; what is released must give back every block.
 */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "fs/dir.h"
#include "fs/evict_ea.h"
#include "fs/icache.h"
#include "fs/rgrp_int.h"
#include "fs/statfs.h"
#include "fs/tree.h"
#include "tests/unit/fs/volume.h"

static struct volume vol;
static struct inode *root;

static void mount_it(void)
{
	volume_mount(&vol);
	root = fs_inode_get(vol.fs, FS_ROOT_NODEID);
}

static void unmount_it(void)
{
	inode_put(root);
	volume_unmount(&vol);
}

static void start(const struct volume_geometry *g)
{
	volume_make(&vol, g);
	mount_it();
}

static void finish(void)
{
	unmount_it();
	volume_fsck(&vol);
	volume_remove(&vol);
}

/* fsck in between. Inodes are gone from memory afterwards. */
static void check_now(void)
{
	unmount_it();
	volume_fsck(&vol);
	mount_it();
}

static int64_t free_blocks(void)
{
	icache_drain_evict(vol.fs);
	return statfs_free(vol.fs);
}

/* ---- files ---- */

static struct inode *make(const char *name, uint32_t mode)
{
	struct fs_make mk = { .name = name, .len = strlen(name), .mode = mode };
	struct fs_entry e;
	struct inode *ip;

	assert_int_equal(fs_make(&volume_req, root, &mk, &e), 0);
	ip = fs_inode_get(vol.fs, e.nodeid);
	assert_non_null(ip);
	/* The test's reference is all that keeps it. */
	fs_forget(vol.fs, e.nodeid, 1);
	return ip;
}

static struct inode *find(const char *name)
{
	struct fs_entry e;
	struct inode *ip;

	assert_int_equal(fs_lookup(&volume_req, root, name, strlen(name), &e),
			 0);
	ip = fs_inode_get(vol.fs, e.nodeid);
	fs_forget(vol.fs, e.nodeid, 1);
	return ip;
}

static void remove_name(const char *name)
{
	assert_int_equal(fs_unlink(&volume_req, root, name, strlen(name)), 0);
}

/* Unlink and let go: the inode is to be released. */
static void remove_file(const char *name, struct inode *ip)
{
	remove_name(name);
	inode_put(ip);
}

/* Set flags, and the first height. */
static void prepare(struct inode *ip, uint32_t flags)
{
	struct buf *dibuf;
	struct trans tr;

	assert_int_equal(inode_dibuf(ip, false, &dibuf), 0);
	assert_int_equal(trans_begin(vol.fs->fs_journal, &tr, 1, 0, 0), 0);
	pthread_rwlock_wrlock(&ip->i_lock);
	ip->i_flags |= flags;
	ip->i_height = UG_MAX(ip->i_height, 1);
	inode_log(&tr, ip, dibuf);
	pthread_rwlock_unlock(&ip->i_lock);
	inode_logged(ip, trans_end(&tr), true);
	buf_put(dibuf);
}

/* Map up to count blocks at lblock; how many there were places for. */
static uint32_t map_some(struct inode *ip, uint64_t lblock, uint32_t count)
{
	struct tree_set set = { 0 };
	struct rgrp_hold hold;
	struct buf *dibuf;
	struct trans tr;
	uint32_t meta, n;
	uint64_t start;

	rgrp_hold_init(&hold);
	pthread_rwlock_rdlock(&ip->i_lock);
	meta = tree_meta_max(ip, lblock, count);
	pthread_rwlock_unlock(&ip->i_lock);
	assert_int_equal(rgrp_reserve(ip, count + meta, 1 + meta, RGRP_DATA,
				      false, &hold),
			 0);
	assert_int_equal(inode_dibuf(ip, false, &dibuf), 0);
	assert_int_equal(tree_prepare(ip, lblock, count, false, &set), 0);
	assert_int_equal(
		trans_begin(vol.fs->fs_journal, &tr,
			    2 + tree_trans_blocks(ip, lblock, count) +
				    rgrp_trans_blocks(&hold, hold.rh_blocks),
			    0, 0),
		0);
	pthread_rwlock_wrlock(&ip->i_lock);
	trans_add_meta(&tr, dibuf);
	n = rgrp_alloc(&tr, &hold, ip, UG_MIN(count, hold.rh_blocks - meta),
		       &start);
	assert_int_equal(tree_insert(&tr, ip, dibuf, &hold, lblock, start, n),
			 0);
	inode_log(&tr, ip, dibuf);
	pthread_rwlock_unlock(&ip->i_lock);
	inode_logged(ip, trans_end(&tr), true);
	tree_set_release(&set);
	buf_put(dibuf);
	rgrp_drop(&hold);
	return n;
}

static void map_blocks(struct inode *ip, uint64_t lblock, uint32_t count)
{
	struct glock_holder gh;

	assert_int_equal(inode_lock(&volume_req, ip, LM_ST_EXCLUSIVE, &gh), 0);
	if (!ip->i_height)
		prepare(ip, 0);
	while (count) {
		uint32_t n = map_some(ip, lblock, UG_MIN(count, 1000u));

		lblock += n;
		count -= n;
	}
	inode_unlock(&gh);
}

static bool is_mapped(struct inode *ip, uint64_t lblock)
{
	struct tree_run run;

	pthread_rwlock_rdlock(&ip->i_lock);
	assert_int_equal(tree_map(ip, lblock, 1, false, &run), 0);
	pthread_rwlock_unlock(&ip->i_lock);
	return run.pblock != 0;
}

static void free_from(struct inode *ip, uint64_t lblock)
{
	struct glock_holder gh;

	assert_int_equal(inode_lock(&volume_req, ip, LM_ST_EXCLUSIVE, &gh), 0);
	assert_int_equal(tree_free_from(ip, lblock), 0);
	inode_unlock(&gh);
}

/* ---- whole inodes ---- */

static void test_every_block_comes_back(void **state)
{
	static const struct volume_geometry geometries[] = {
		{ 0 },
		{ .bsize = 1024, .format = 1801 },
		{ .bsize = 512 },
	};
	static const uint64_t places[] = { 0,	 34,	35,	 482,	   483,
					   6000, 70000, 1000000, 400000000 };

	for (unsigned i = 0; i < UG_ARRAY_SIZE(geometries); i++) {
		int64_t before;
		struct inode *ip;

		start(&geometries[i]);
		before = free_blocks();
		for (unsigned k = 1; k <= UG_ARRAY_SIZE(places); k++) {
			ip = make("f", S_IFREG | 0644);
			for (unsigned n = 0; n < k; n++)
				map_blocks(ip, places[n], n > 4 ? 50 : 1);
			assert_true(free_blocks() < before);
			if (k == UG_ARRAY_SIZE(places)) {
				inode_put(ip);
				check_now();
				ip = find("f");
			}
			remove_file("f", ip);
			assert_int_equal(free_blocks(), before);
		}
		finish();
	}
}

static uint64_t transactions(void)
{
	struct journal_stats st;

	journal_stats(vol.fs->fs_journal, &st);
	return st.transactions;
}

/* What "rm -rf" of a source tree consists of. */
static void test_small_files_take_one_transaction(void **state)
{
	struct volume_geometry g = { 0 };
	struct inode *ips[40];
	char name[16];
	uint64_t before;
	unsigned i;

	start(&g);
	for (i = 0; i < UG_ARRAY_SIZE(ips); i++) {
		snprintf(name, sizeof(name), "f%u", i);
		ips[i] = make(name, i % 4 ? S_IFREG | 0644 : S_IFIFO | 0600);
		if (i % 4)
			map_blocks(ips[i], 0, i);
	}
	for (i = 0; i < UG_ARRAY_SIZE(ips); i++) {
		snprintf(name, sizeof(name), "f%u", i);
		remove_name(name);
	}
	before = transactions();
	for (i = 0; i < UG_ARRAY_SIZE(ips); i++)
		inode_put(ips[i]);
	icache_drain_evict(vol.fs);
	assert_int_equal(transactions() - before, UG_ARRAY_SIZE(ips));
	finish();
}

static void test_file_in_several_groups(void **state)
{
	struct volume_geometry g = { .size_mib = 1500 };
	struct inode *ip, *other;
	int64_t before;

	start(&g);
	before = free_blocks();
	/* Two files interleaved, more than the first groups hold. */
	ip = make("big", S_IFREG | 0644);
	other = make("other", S_IFREG | 0644);
	for (unsigned i = 0; i < 90; i++) {
		map_blocks(ip, 1000 * i, 1000);
		map_blocks(other, 1500 * i, 1000);
	}
	inode_put(other);
	inode_put(ip);
	check_now();
	ip = find("big");
	remove_file("big", ip);
	icache_drain_evict(vol.fs);
	check_now();
	ip = find("other");
	free_from(ip, 40000);
	assert_true(is_mapped(ip, 39999));
	assert_false(is_mapped(ip, 40500));
	inode_put(ip);
	check_now();
	ip = find("other");
	remove_file("other", ip);
	assert_int_equal(free_blocks(), before);
	finish();
}

static void test_journaled_file(void **state)
{
	struct volume_geometry g = { 0 };
	struct journal_stats st;
	struct inode *ip;
	int64_t before;
	uint64_t revokes;

	start(&g);
	before = free_blocks();
	ip = make("j", S_IFREG | 0644);
	prepare(ip, GFS2_DIF_JDATA);
	map_blocks(ip, 0, 10000);
	remove_file("j", ip);
	assert_int_equal(free_blocks(), before);
	assert_int_equal(journal_flush(vol.fs->fs_journal, UINT64_MAX), 0);
	journal_stats(vol.fs->fs_journal, &st);
	revokes = st.revokes;
	assert_true(revokes >= 10000);
	finish();
}

/* ---- parts of a tree ---- */

static void test_cutting_at_every_place(void **state)
{
	static const uint64_t cuts[] = { 100000, 70001, 70000, 6600, 6599, 6001,
					 2000,	 483,	482,   100,  3,	   1 };
	struct volume_geometry g = { .bsize = 1024, .size_mib = 128 };
	struct inode *ip;

	start(&g);
	ip = make("f", S_IFREG | 0644);
	map_blocks(ip, 0, 8000);
	map_blocks(ip, 70000, 500);
	for (unsigned i = 0; i < UG_ARRAY_SIZE(cuts); i++) {
		uint64_t cut = cuts[i];

		free_from(ip, cut);
		assert_true(is_mapped(ip, UG_MIN(cut, 8000u) - 1));
		for (uint64_t l = cut; l < cut + 3000; l += 7)
			assert_false(is_mapped(ip, l));
		inode_put(ip);
		check_now();
		ip = find("f");
		assert_true(is_mapped(ip, UG_MIN(cut, 8000u) - 1));
	}
	assert_true(ip->i_height > 1);
	free_from(ip, 0);
	assert_int_equal(ip->i_height, 0);
	assert_int_equal(ip->i_blocks, 1);
	/* And it can grow again. */
	map_blocks(ip, 5, 3);
	inode_put(ip);
	finish();
}

/*
 * Of a long file's rear, only what stays is logged; each pointer block that
 * goes is revoked, as its older image must not come back over its next use.
 */
static void test_cutting_logs_little(void **state)
{
	struct volume_geometry g = { 0 };
	struct journal_stats before, after;
	struct inode *ip;
	uint32_t inptrs;

	start(&g);
	inptrs = vol.fs->fs_geom.inptrs;
	ip = make("f", S_IFREG | 0644);
	map_blocks(ip, 0, 20 * inptrs);
	assert_int_equal(journal_flush(vol.fs->fs_journal, UINT64_MAX), 0);
	journal_stats(vol.fs->fs_journal, &before);
	free_from(ip, 1);
	assert_int_equal(journal_flush(vol.fs->fs_journal, UINT64_MAX), 0);
	journal_stats(vol.fs->fs_journal, &after);
	assert_int_equal(after.revokes - before.revokes, 19);
	/* dinode, first pointer block, statfs, header; no further bitmaps */
	assert_int_equal(after.blocks_logged - before.blocks_logged, 4);
	inode_put(ip);
	finish();
}

static void test_holes_only(void **state)
{
	struct volume_geometry g = { 0 };
	struct inode *ip;

	start(&g);
	ip = make("f", S_IFREG | 0644);
	prepare(ip, 0);
	free_from(ip, 7);
	assert_int_equal(ip->i_height, 1);
	free_from(ip, 0);
	assert_int_equal(ip->i_height, 0);
	free_from(ip, 0);
	inode_put(ip);
	finish();
}

/* ---- directories ---- */

/* Long names: leaves fill up quickly. */
static size_t long_name(char name[256], unsigned i)
{
	memset(name, 'x', 200);
	return 200 + (size_t)sprintf(name + 200, "%u", i);
}

static void make_many(struct inode *dir, unsigned n)
{
	struct fs_make mk = { .mode = S_IFREG | 0600 };
	char name[256];
	struct fs_entry e;

	mk.name = name;
	for (unsigned i = 0; i < n; i++) {
		mk.len = long_name(name, i);
		assert_int_equal(fs_make(&volume_req, dir, &mk, &e), 0);
		fs_forget(vol.fs, e.nodeid, 1);
	}
}

static void remove_many(struct inode *dir, unsigned n)
{
	char name[256];

	for (unsigned i = 0; i < n; i++) {
		size_t len = long_name(name, i);

		assert_int_equal(fs_unlink(&volume_req, dir, name, len), 0);
	}
}

static void test_hashed_directory(void **state)
{
	struct volume_geometry g = { .bsize = 1024, .size_mib = 128 };
	struct inode *dir;
	int64_t before;

	start(&g);
	before = free_blocks();
	dir = make("d", S_IFDIR | 0755);
	make_many(dir, 3000);
	assert_true(dir->i_flags & GFS2_DIF_EXHASH);
	assert_true(dir->i_height >= 1);
	inode_put(dir);
	check_now();
	dir = find("d");
	remove_many(dir, 3000);
	assert_int_equal(fs_rmdir(&volume_req, root, "d", 1), 0);
	inode_put(dir);
	assert_int_equal(free_blocks(), before);
	finish();
}

/* ---- extended attributes, as other implementations leave them ---- */

/* One block for the inode, initialised by init, entered in the bitmap. */
static uint64_t ea_block(struct trans *tr, struct rgrp_hold *hold,
			 struct inode *ip, enum gfs2_metatype type,
			 struct buf **bp)
{
	uint64_t blkno;

	assert_int_equal(rgrp_alloc(tr, hold, ip, 1, &blkno), 1);
	assert_int_equal(buf_new(vol.fs->fs_cache, &ip->i_bufs, blkno, bp), 0);
	if (type == GFS2_METATYPE_EA)
		gfs2_ea_init(&vol.fs->fs_geom, (*bp)->b_data);
	else
		gfs2_meta_init((*bp)->b_data, type);
	trans_add_meta(tr, *bp);
	return blkno;
}

/* A record "user.<c>" at off with its value in n blocks; where the next is. */
static uint32_t ea_record(struct trans *tr, struct rgrp_hold *hold,
			  struct inode *ip, struct buf *b, uint32_t off,
			  unsigned n, bool last)
{
	struct gfs2_ea_header *ea = (void *)((char *)b->b_data + off);
	uint32_t bsize = vol.fs->fs_geom.bsize;
	be64 *ptrs = (be64 *)((char *)ea + 24);
	struct buf *ed;

	ea->ea_rec_len = be32_of(last ? bsize - off : 24 + 8 * n);
	ea->ea_data_len = be32_of(n ? n * vol.fs->fs_geom.jbsize : 8);
	ea->ea_name_len = 1;
	ea->ea_type = GFS2_EATYPE_USR;
	ea->ea_flags = last ? GFS2_EAFLAG_LAST : 0;
	ea->ea_num_ptrs = (uint8_t)n;
	*(char *)(ea + 1) = (char)('a' + off / 8 % 26);
	for (unsigned i = 0; i < n; i++) {
		ptrs[i] =
			be64_of(ea_block(tr, hold, ip, GFS2_METATYPE_ED, &ed));
		buf_put(ed);
	}
	return off + be32_get(ea->ea_rec_len);
}

static void ea_fill(struct trans *tr, struct rgrp_hold *hold, struct inode *ip,
		    struct buf *b)
{
	uint32_t off = GFS2_EA_FIRST_OFF, second;
	struct gfs2_ea_header *ea;

	off = ea_record(tr, hold, ip, b, off, 3, false);
	second = off;
	off = ea_record(tr, hold, ip, b, off, 16, false);
	ea_record(tr, hold, ip, b, off, 1, true);
	/* As a release that was interrupted leaves it. */
	ea = (struct gfs2_ea_header *)((char *)b->b_data + second);
	ea->ea_type = GFS2_EATYPE_UNUSED;
}

/* blocks 0: a single EA block; else so many below an indirect block. */
static void give_attributes(struct inode *ip, unsigned blocks)
{
	unsigned i, want = 2 + 21 * UG_MAX(blocks, 1u);
	struct glock_holder gh;
	struct rgrp_hold hold;
	struct buf *dibuf, *b, *ind;
	struct trans tr;

	rgrp_hold_init(&hold);
	assert_int_equal(inode_lock(&volume_req, ip, LM_ST_EXCLUSIVE, &gh), 0);
	assert_int_equal(inode_dibuf(ip, false, &dibuf), 0);
	assert_int_equal(rgrp_reserve(ip, want, want, RGRP_META, false, &hold),
			 0);
	assert_int_equal(trans_begin(vol.fs->fs_journal, &tr,
				     want + 1 + rgrp_trans_blocks(&hold, want),
				     0, 0),
			 0);
	pthread_rwlock_wrlock(&ip->i_lock);
	if (!blocks) {
		ip->i_eattr = ea_block(&tr, &hold, ip, GFS2_METATYPE_EA, &b);
		ea_fill(&tr, &hold, ip, b);
		buf_put(b);
	} else {
		ip->i_eattr = ea_block(&tr, &hold, ip, GFS2_METATYPE_IN, &ind);
		ip->i_flags |= GFS2_DIF_EA_INDIRECT;
		for (i = 0; i < blocks; i++) {
			gfs2_indirect_ptrs(ind->b_data)[i] = be64_of(
				ea_block(&tr, &hold, ip, GFS2_METATYPE_EA, &b));
			ea_fill(&tr, &hold, ip, b);
			buf_put(b);
		}
		buf_put(ind);
	}
	inode_log(&tr, ip, dibuf);
	pthread_rwlock_unlock(&ip->i_lock);
	inode_logged(ip, trans_end(&tr), true);
	rgrp_drop(&hold);
	buf_put(dibuf);
	inode_unlock(&gh);
}

static void test_attributes(void **state)
{
	struct volume_geometry g = { 0 };
	struct inode *ip;
	int64_t before;

	start(&g);
	before = free_blocks();
	ip = make("single", S_IFREG | 0644);
	give_attributes(ip, 0);
	map_blocks(ip, 0, 600);
	inode_put(ip);
	ip = make("indirect", S_IFREG | 0644);
	give_attributes(ip, 7);
	inode_put(ip);
	check_now();
	remove_file("single", find("single"));
	remove_file("indirect", find("indirect"));
	assert_int_equal(free_blocks(), before);
	finish();
}

/*
 * A record whose blocks lie by turns in two groups: count of them. Returns its
 * EA block, referenced.
 */
static struct buf *scatter_attribute(struct inode *ip, unsigned count)
{
	struct rgrps *rgs = vol.fs->fs_rgrps;
	struct gfs2_ea_header *ea;
	struct glock_holder gh;
	struct rgrp_hold hold;
	struct buf *dibuf, *b = NULL, *ed;
	struct trans tr;
	be64 *ptrs;

	assert_true(rgs->rgs_count >= 3);
	assert_int_equal(inode_lock(&volume_req, ip, LM_ST_EXCLUSIVE, &gh), 0);
	assert_int_equal(inode_dibuf(ip, false, &dibuf), 0);
	for (unsigned i = 0; i <= count; i++) {
		/* Behind the journal. */
		struct rgrp *rg = &rgs->rgs_groups[rgs->rgs_count - 1 - i % 2];

		rgrp_window_drop(ip);
		ip->i_goal = rg->rg_ri.data0;
		rgrp_hold_init(&hold);
		assert_int_equal(
			rgrp_reserve(ip, 1, 1, RGRP_META, false, &hold), 0);
		assert_ptr_equal(hold.rh_rg, rg);
		assert_int_equal(trans_begin(vol.fs->fs_journal, &tr,
					     4 + rgrp_trans_blocks(&hold, 1), 0,
					     0),
				 0);
		pthread_rwlock_wrlock(&ip->i_lock);
		if (!i) {
			ip->i_eattr =
				ea_block(&tr, &hold, ip, GFS2_METATYPE_EA, &b);
			ea_record(&tr, &hold, ip, b, GFS2_EA_FIRST_OFF, 0,
				  true);
		} else {
			trans_add_meta(&tr, b);
			ea = (void *)((char *)b->b_data + GFS2_EA_FIRST_OFF);
			ptrs = (be64 *)((char *)ea + 24);
			ptrs[i - 1] = be64_of(ea_block(&tr, &hold, ip,
						       GFS2_METATYPE_ED, &ed));
			buf_put(ed);
			ea->ea_num_ptrs = (uint8_t)i;
			ea->ea_data_len = be32_of(i * vol.fs->fs_geom.jbsize);
		}
		inode_log(&tr, ip, dibuf);
		pthread_rwlock_unlock(&ip->i_lock);
		inode_logged(ip, trans_end(&tr), true);
		rgrp_drop(&hold);
	}
	buf_put(dibuf);
	inode_unlock(&gh);
	return b;
}

/*
 * Each change of group is a transaction, after each of which a crash may come:
 * made by a pointer that leads nowhere, which is mended before the flush.
 */
static void test_attribute_in_two_groups(void **state)
{
	const unsigned count = 8;
	struct volume_geometry g = { .size_mib = 600 };
	struct gfs2_ea_header *ea;
	struct glock_holder gh;
	struct inode *ip;
	int64_t before;
	struct buf *b;
	be64 *ptr, saved;

	start(&g);
	before = free_blocks();
	for (unsigned left = 0; left <= count; left++) {
		ip = make("f", S_IFREG | 0644);
		b = scatter_attribute(ip, count);
		ea = (void *)((char *)b->b_data + GFS2_EA_FIRST_OFF);
		if (!left) {
			buf_put(b);
			inode_put(ip);
			check_now();
			remove_file("f", find("f"));
			assert_int_equal(free_blocks(), before);
			continue;
		}
		remove_name("f");
		ptr = (be64 *)((char *)ea + 24) + left - 1;
		saved = *ptr;
		*ptr = be64_of(3);
		assert_int_equal(glock_nq(ip->i_gl, LM_ST_EXCLUSIVE, 0, &gh),
				 0);
		assert_int_equal(evict_ea_contents(ip), -EUCLEAN);
		glock_dq(&gh);
		*ptr = saved;
		assert_int_equal(ea->ea_num_ptrs, left);
		buf_put(b);
		assert_int_equal(journal_flush(vol.fs->fs_journal, UINT64_MAX),
				 0);
		volume_crash(&vol);
		mount_it();
		assert_int_equal(free_blocks(), before);
		check_now();
	}
	finish();
}

/* ---- a full volume ---- */

#define CHUNK_BYTES (1u << 20)

/* Write a file until there is no room; how many bytes it took. */
static uint64_t fill_up(const char *name)
{
	struct fs_make mk = {
		.name = name,
		.len = strlen(name),
		.mode = S_IFREG | 0644,
	};
	void *data = blkdev_alloc(CHUNK_BYTES);
	struct inode *ip;
	struct fs_entry e;
	uint64_t size = 0;
	bool created;
	ssize_t n;

	assert_non_null(data);
	memset(data, 'x', CHUNK_BYTES);
	assert_int_equal(
		fs_create(&volume_req, root, &mk, O_RDWR, &e, &created), 0);
	ip = fs_inode_get(vol.fs, e.nodeid);
	while ((n = fs_write(&volume_req, ip, data, CHUNK_BYTES, size, 0)) > 0)
		size += (uint64_t)n;
	assert_int_equal(n, -ENOSPC);
	/* What was accepted gets to the disk. */
	assert_int_equal(fs_fsync(&volume_req, ip, false), 0);
	fs_release(ip, O_RDWR);
	inode_put(ip);
	fs_forget(vol.fs, e.nodeid, 1);
	free(data);
	return size;
}

/* What one file gives back, the next one can have at once. */
static void test_full_volume(void **state)
{
	struct volume_geometry g = { .size_mib = 80 };
	uint64_t first, again;
	int64_t before;

	start(&g);
	before = free_blocks();
	first = fill_up("a");
	assert_true(first >= (uint64_t)(before - 600) * 4096);
	for (unsigned i = 0; i < 4; i++) {
		remove_name("a");
		again = fill_up("a");
		assert_int_equal(again, first);
	}
	remove_name("a");
	assert_int_equal(free_blocks(), before);
	assert_int_equal(space_promised(vol.fs), 0);
	finish();
}

static void *fill_thread(void *arg)
{
	fill_up(arg);
	return NULL;
}

/* Promises to one hold against the allocations of all others. */
static void test_full_by_many(void **state)
{
	static const char *const names[] = { "a", "b", "c", "d" };
	struct volume_geometry g = { .bsize = 1024, .size_mib = 60 };
	pthread_t threads[UG_ARRAY_SIZE(names)];
	int64_t before;
	unsigned i;

	start(&g);
	before = free_blocks();
	for (i = 0; i < UG_ARRAY_SIZE(names); i++)
		assert_int_equal(pthread_create(&threads[i], NULL, fill_thread,
						(void *)names[i]),
				 0);
	for (i = 0; i < UG_ARRAY_SIZE(names); i++)
		pthread_join(threads[i], NULL);
	assert_int_equal(space_promised(vol.fs), 0);
	check_now();
	for (i = 0; i < UG_ARRAY_SIZE(names); i++)
		remove_name(names[i]);
	assert_int_equal(free_blocks(), before);
	finish();
}

/* ---- crashes ---- */

/* Removed while open, then the machine dies: the next mount releases it. */
static void test_recovery_releases(void **state)
{
	struct volume_geometry g = { 0 };
	struct inode *ips[5];
	char name[8];
	int64_t before;

	start(&g);
	before = free_blocks();
	for (unsigned i = 0; i < 5; i++) {
		snprintf(name, sizeof(name), "f%u", i);
		ips[i] = make(name, S_IFREG | 0644);
		map_blocks(ips[i], 1000 * i, 10 + i);
		if (i == 2)
			give_attributes(ips[i], 2);
		remove_name(name);
	}
	assert_int_equal(journal_flush(vol.fs->fs_journal, UINT64_MAX), 0);
	assert_true(free_blocks() < before);
	volume_crash(&vol);
	mount_it();
	assert_int_equal(free_blocks(), before);
	finish();
}

/* The machine dies in the middle of releasing: the next mount goes on. */
static void test_recovery_goes_on(void **state)
{
	struct volume_geometry g = { .bsize = 1024 };
	struct inode *file, *attrs, *dir;
	struct glock_holder gh;
	int64_t before;

	start(&g);
	before = free_blocks();
	file = make("file", S_IFREG | 0644);
	map_blocks(file, 0, 3000);
	attrs = make("attrs", S_IFREG | 0644);
	give_attributes(attrs, 5);
	map_blocks(attrs, 0, 10);
	dir = make("dir", S_IFDIR | 0755);
	make_many(dir, 1500);
	remove_many(dir, 1500);
	assert_true(dir->i_flags & GFS2_DIF_EXHASH);
	remove_name("file");
	remove_name("attrs");
	assert_int_equal(fs_rmdir(&volume_req, root, "dir", 3), 0);

	free_from(file, 1234);
	assert_int_equal(glock_nq(attrs->i_gl, LM_ST_EXCLUSIVE, 0, &gh), 0);
	assert_int_equal(evict_ea_contents(attrs), 0);
	glock_dq(&gh);
	assert_int_equal(glock_nq(dir->i_gl, LM_ST_EXCLUSIVE, 0, &gh), 0);
	assert_int_equal(dir_free_leaves(dir), 0);
	glock_dq(&gh);
	assert_int_equal(journal_flush(vol.fs->fs_journal, UINT64_MAX), 0);
	volume_crash(&vol);
	mount_it();
	assert_int_equal(free_blocks(), before);
	finish();
}

/* In the bitmap it looks unlinked, but it has a name: leave it alone. */
static void test_linked_inode_is_left_alone(void **state)
{
	struct volume_geometry g = { 0 };
	struct rgrp_hold hold;
	struct inode *ip;
	struct trans tr;
	enum gfs2_blkst st;
	uint64_t addr;

	start(&g);
	ip = make("f", S_IFREG | 0644);
	addr = ip->i_addr;
	inode_put(ip);
	rgrp_hold_init(&hold);
	assert_int_equal(rgrp_hold_block(vol.fs, addr, false, &hold), 0);
	assert_int_equal(trans_begin(vol.fs->fs_journal, &tr,
				     rgrp_trans_blocks(&hold, 1), 0, 0),
			 0);
	assert_int_equal(rgrp_unlink_dinode(&tr, &hold, addr), 0);
	trans_end(&tr);
	rgrp_drop(&hold);
	assert_int_equal(journal_flush(vol.fs->fs_journal, UINT64_MAX), 0);
	volume_crash(&vol);
	mount_it();
	assert_int_equal(rgrp_block_state(vol.fs, addr, false, &st), 0);
	assert_int_equal(st, GFS2_BLKST_UNLINKED);
	unmount_it();
	volume_remove(&vol);
}

/* A tree that leads out of the groups: nothing of it gets to the disk. */
static void test_damaged_tree(void **state)
{
	struct volume_geometry g = { 0 };
	struct inode *ip;
	struct buf *dibuf;

	start(&g);
	ip = make("f", S_IFREG | 0644);
	map_blocks(ip, 0, 3);
	assert_int_equal(journal_flush(vol.fs->fs_journal, UINT64_MAX), 0);
	assert_int_equal(inode_dibuf(ip, false, &dibuf), 0);
	gfs2_dinode_ptrs(dibuf->b_data)[1] = be64_of(3);
	buf_put(dibuf);
	remove_file("f", ip);
	icache_drain_evict(vol.fs);
	assert_true(fs_is_withdrawn(vol.fs));
	volume_crash(&vol);
	mount_it();
	ip = find("f");
	assert_true(is_mapped(ip, 2));
	inode_put(ip);
	finish();
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_every_block_comes_back),
		cmocka_unit_test(test_small_files_take_one_transaction),
		cmocka_unit_test(test_file_in_several_groups),
		cmocka_unit_test(test_journaled_file),
		cmocka_unit_test(test_cutting_at_every_place),
		cmocka_unit_test(test_cutting_logs_little),
		cmocka_unit_test(test_holes_only),
		cmocka_unit_test(test_hashed_directory),
		cmocka_unit_test(test_attributes),
		cmocka_unit_test(test_attribute_in_two_groups),
		cmocka_unit_test(test_full_volume),
		cmocka_unit_test(test_full_by_many),
		cmocka_unit_test(test_recovery_releases),
		cmocka_unit_test(test_recovery_goes_on),
		cmocka_unit_test(test_linked_inode_is_left_alone),
		cmocka_unit_test(test_damaged_tree),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
