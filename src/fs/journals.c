/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * journals.c - find the journals, map them, find their heads. See journals.h.
 * Source: docs/spec/gfs2-ondisk.md 2.2, 2.4 steps 3 and 4.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fs/inode.h"
#include "fs/journals.h"
#include "fs/metatree.h"
#include "fs/tree.h"

#define JOURNALS_MAX 1000u /* names have at most three digits */
#define JOURNAL_BYTES_MIN (8ull << 20)
#define JOURNAL_BYTES_MAX (1ull << 30)

static const struct fs_req no_req;

/* The inode of journal i; -ENOENT behind the last. */
static int open_journal(struct fs *fs, unsigned i, struct inode **ipp,
			const struct why *why)
{
	return metatree_open_numbered(fs->fs_jindex, "journal", i, ipp, why);
}

static int map_blocks(struct inode *ip, struct logmap *map)
{
	uint64_t blocks = ip->i_size >> ip->i_fs->fs_geom.bshift;
	uint64_t lblock = 0;
	int err = 0;

	while (!err && lblock < blocks) {
		struct tree_run run;

		err = tree_map(ip, lblock, (uint32_t)(blocks - lblock), false,
			       &run);
		if (err)
			break;
		if (!run.pblock)
			return fs_bad_block(ip->i_fs, ip->i_addr,
					    "the journal has a hole at its "
					    "block %" PRIu64,
					    lblock);
		err = logmap_add(map, run.pblock, run.count);
		lblock += run.count;
	}
	return err;
}

static int map_journal(struct inode *ip, unsigned i, struct journal_info *ji,
		       const struct why *why)
{
	struct fs *fs = ip->i_fs;
	struct glock_holder gh;
	int err;

	err = inode_lock(&no_req, ip, LM_ST_SHARED, &gh);
	if (err)
		return why_set(why, err, "journal %u: %s", i, strerror(-err));
	ji->addr = ip->i_addr;
	if (ip->i_size < JOURNAL_BYTES_MIN || ip->i_size > JOURNAL_BYTES_MAX ||
	    ip->i_size & (fs->fs_geom.bsize - 1)) {
		err = why_set(why, -EUCLEAN,
			      "journal %u has %" PRIu64
			      " bytes, expected a multiple of the block size "
			      "between 8 MiB and 1 GiB",
			      i, ip->i_size);
	} else {
		pthread_rwlock_rdlock(&ip->i_lock);
		err = map_blocks(ip, &ji->map);
		pthread_rwlock_unlock(&ip->i_lock);
		if (err)
			why_set(why, err, "journal %u cannot be mapped: %s", i,
				err == -EUCLEAN ? "its pointers are damaged"
						: strerror(-err));
	}
	inode_unlock(&gh);
	return err;
}

static void name_journal(struct fs *fs, unsigned i, struct journal_info *ji)
{
	snprintf(ji->who, sizeof(ji->who), "%.64s: journal %u", fs->fs_who, i);
}

static int find_head(struct fs *fs, unsigned i, struct journal_info *ji,
		     const struct why *why)
{
	int err;

	err = replay_scan(fs->fs_dev, fs->fs_geom.bsize, &ji->map, ji->who,
			  &ji->head);
	return err ? why_set(why, err,
			     "journal %u cannot be read: %s; fsck.gfs2 can "
			     "clear it",
			     i,
			     err == -EUCLEAN ? "its headers are damaged"
					     : strerror(-err))
		   : 0;
}

static int grow(struct journals *js)
{
	struct journal_info *more;

	more = realloc(js->infos, (js->count + 1) * sizeof(*more));
	if (!more)
		return -ENOMEM;
	memset(&more[js->count], 0, sizeof(*more));
	logmap_init(&more[js->count].map);
	js->infos = more;
	js->count++;
	return 0;
}

int journals_open(struct fs *fs, struct journals *js, const struct why *why)
{
	unsigned i;

	*js = (struct journals){ 0 };
	for (i = 0; i < JOURNALS_MAX; i++) {
		struct inode *ip;
		int err = open_journal(fs, i, &ip, why);

		if (err == -ENOENT && i)
			break;
		if (err)
			return err == -ENOENT
				       ? why_set(why, -EUCLEAN,
						 "the volume has no journal0")
				       : err;
		err = grow(js);
		if (!err)
			err = map_journal(ip, i, &js->infos[i], why);
		inode_put(ip);
		if (err)
			return err;
		name_journal(fs, i, &js->infos[i]);
	}
	return 0;
}

int journals_find_heads(struct fs *fs, struct journals *js,
			const struct why *why)
{
	int err = 0;

	for (unsigned i = 0; !err && i < js->count; i++)
		err = find_head(fs, i, &js->infos[i], why);
	return err;
}

bool journals_any_dirty(const struct journals *js)
{
	unsigned i;

	for (i = 0; i < js->count; i++)
		if (!js->infos[i].head.clean)
			return true;
	return false;
}

int journals_find_statfs(struct fs *fs, struct journals *js,
			 const struct why *why)
{
	struct inode *per_node = NULL;
	int err =
		metatree_open(fs->fs_master, "per_node", true, &per_node, why);

	for (unsigned i = 0; !err && i < js->count; i++) {
		struct inode *ip;

		err = metatree_open_numbered(per_node, "statfs_change", i, &ip,
					     why);
		if (err)
			break;
		js->infos[i].statfs_addr = ip->i_addr;
		inode_put(ip);
	}
	inode_put(per_node);
	return err == -ENOENT ? -EUCLEAN : err;
}

void journals_fini(struct journals *js)
{
	unsigned i;

	for (i = 0; i < js->count; i++)
		logmap_fini(&js->infos[i].map);
	free(js->infos);
	*js = (struct journals){ 0 };
}
