/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * metatree.c - caches and system files, see metatree.h.
 * Source: docs/spec/gfs2-ondisk.md 2.2, 2.4.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "fs/dir.h"
#include "fs/icache.h"
#include "fs/inode.h"
#include "fs/metatree.h"
#include "fs/pages.h"
#include "fs/rgrp.h"
#include "fs/statfs.h"
#include "lockmod/nolock.h"

#define CACHE_BYTES_MIN (16ull << 20)

static int open_inode(struct fs *fs, uint64_t addr, uint64_t formal,
		      bool directory, const char *name, struct inode **ipp,
		      const struct why *why)
{
	static const struct fs_req req = { 0 };
	struct glock_holder gh;
	struct inode *ip;
	int err;

	err = inode_get(fs, addr, formal, false, &ip);
	if (err)
		return why_set(why, err, "%s: %s", name, strerror(-err));
	err = inode_lock(&req, ip, LM_ST_SHARED, &gh);
	if (!err) {
		if (inode_is_dir(ip) != directory)
			err = fs_bad_block(fs, addr, "%s is %sa directory",
					   name, directory ? "not " : "");
		inode_unlock(&gh);
	}
	if (err) {
		inode_put(ip);
		return why_set(why, err,
			       "%s (dinode at block %" PRIu64
			       ") cannot be used: %s; fsck.gfs2 may repair it",
			       name, addr,
			       err == -EUCLEAN ? "its contents are damaged"
					       : strerror(-err));
	}
	*ipp = ip;
	return 0;
}

int metatree_open(struct inode *dir, const char *name, bool directory,
		  struct inode **ipp, const struct why *why)
{
	static const struct fs_req req = { 0 };
	struct glock_holder gh;
	struct dir_found found;
	int err;

	err = inode_lock(&req, dir, LM_ST_SHARED, &gh);
	if (err)
		return why_set(why, err, "%s: %s", name, strerror(-err));
	pthread_rwlock_rdlock(&dir->i_lock);
	err = dir_search(dir, name, strlen(name), false, &found);
	pthread_rwlock_unlock(&dir->i_lock);
	inode_unlock(&gh);
	if (err == -ENOENT)
		return why_set(why, err,
			       "the system file %s is missing; fsck.gfs2 may "
			       "repair the volume",
			       name);
	if (err)
		return why_set(why, err, "%s: %s", name, strerror(-err));
	return open_inode(dir->i_fs, found.addr, found.formal, directory, name,
			  ipp, why);
}

int metatree_open_numbered(struct inode *dir, const char *stem, unsigned number,
			   struct inode **ipp, const struct why *why)
{
	char name[64];

	snprintf(name, sizeof(name), "%s%u", stem, number);
	return metatree_open(dir, name, false, ipp, why);
}

int metatree_load_index(struct fs *fs, const struct why *why)
{
	const struct gfs2_sb_info *sb = &fs->fs_sb;
	int err;

	err = open_inode(fs, sb->master_addr, sb->master_formal, true,
			 "the master directory", &fs->fs_master, why);
	return err ? err
		   : metatree_open(fs->fs_master, "jindex", true,
				   &fs->fs_jindex, why);
}

int metatree_load(struct fs *fs, const struct why *why)
{
	const struct gfs2_sb_info *sb = &fs->fs_sb;
	int err = 0;

	if (!fs->fs_jindex)
		err = metatree_load_index(fs, why);
	if (!err)
		err = open_inode(fs, sb->root_addr, sb->root_formal, true,
				 "the root directory", &fs->fs_root, why);
	if (!err)
		err = metatree_open(fs->fs_master, "per_node", true,
				    &fs->fs_per_node, why);
	if (!err)
		err = metatree_open(fs->fs_master, "rindex", false,
				    &fs->fs_rindex, why);
	if (!err)
		err = metatree_open(fs->fs_master, "statfs", false,
				    &fs->fs_statfs_ip, why);
	if (err)
		return err;
	err = rgrps_load(fs);
	return err ? why_set(why, err,
			     "the resource index cannot be used (see the "
			     "log); fsck.gfs2 may repair it")
		   : 0;
}

static int create_glocks(struct fs *fs, enum metatree_locks locks)
{
	struct lockmod mod = lockmod_nolock();

	fs->fs_alone = locks == METATREE_PRIVATE || !fs->fs_shared_glocks;
	if (fs->fs_alone)
		return glock_table_create(&mod, fs->fs_who, &fs->fs_glocks);
	fs->fs_glocks = fs->fs_shared_glocks;
	return 0;
}

int metatree_create_caches(struct fs *fs, enum metatree_locks locks,
			   const struct why *why)
{
	uint64_t bytes = UG_MAX(fs->fs_opt.cache_bytes, CACHE_BYTES_MIN);
	int err;

	/*
	 * Half for metadata, half for data. A dinode is a whole block: the
	 * default holds as many as inodes that nobody references are kept.
	 */
	err = bufcache_create(fs->fs_dev, fs->fs_geom.bsize, bytes / 2,
			      &fs->fs_cache);
	if (!err) {
		bufcache_set_pool(fs->fs_cache, fs->fs_pool);
		err = create_glocks(fs, locks);
	}
	if (!err)
		err = pagepool_create(fs, bytes - bytes / 2);
	if (!err)
		err = icache_create(fs, fs->fs_opt.inodes_max);
	return err ? why_set(why, err, "out of memory") : 0;
}

static void put_inode(struct inode **ipp)
{
	inode_put(*ipp);
	*ipp = NULL;
}

/* Everything that metatree_create_caches() and metatree_load() made, in any
 * state. */
void metatree_unload(struct fs *fs)
{
	statfs_unload(fs);
	put_inode(&fs->fs_qc_ip);
	put_inode(&fs->fs_sc_ip);
	put_inode(&fs->fs_statfs_ip);
	put_inode(&fs->fs_rindex);
	put_inode(&fs->fs_per_node);
	put_inode(&fs->fs_jindex);
	put_inode(&fs->fs_root);
	put_inode(&fs->fs_master);
	/* Inodes have windows in the groups: they go first. */
	if (fs->fs_icache)
		icache_destroy(fs);
	rgrps_unload(fs);
	if (fs->fs_rename_gl)
		glock_put(fs->fs_rename_gl);
	fs->fs_rename_gl = NULL;
	if (fs->fs_pages)
		pagepool_destroy(fs);
	if (fs->fs_glocks && fs->fs_glocks != fs->fs_shared_glocks)
		glock_table_destroy(fs->fs_glocks);
	fs->fs_glocks = NULL;
	if (fs->fs_cache)
		bufcache_destroy(fs->fs_cache);
	fs->fs_cache = NULL;
}
