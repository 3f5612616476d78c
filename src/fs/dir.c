/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * dir.c - finding a name in a directory, and changing the entry found.
 *
 *   linear:  dinode | records ......... |
 *   hashed:  table, indexed by the upper bits of the name's hash
 *               -> leaf | records .... | -> (rarely) next leaf of the chain
 *
 * Adding is in dir_plan.c and dir_add.c, the table in dir_hash.c. The number
 * of records in a block is small (at most 83), so a block is searched from its
 * start. Source: docs/spec/gfs2-ondisk.md 4.1 to 4.5.
 */
#include <errno.h>
#include <inttypes.h>

#include "fs/dir_block.h"

int dir_bad_record(struct inode *dir, const struct buf *b)
{
	return fs_bad_block(dir->i_fs, b->b_blkno,
			    "directory %" PRIu64 ": a record does not fit into "
			    "its block",
			    dir->i_addr);
}

int dir_chain_step(struct inode *dir, uint64_t addr, uint64_t *steps)
{
	if (ug_likely((*steps)++ < dir->i_blocks))
		return 0;
	return fs_bad_block(dir->i_fs, addr,
			    "directory %" PRIu64
			    ": a chain of leaves is longer "
			    "than its %" PRIu64 " blocks",
			    dir->i_addr, dir->i_blocks);
}

int dir_leaf_get(struct inode *dir, uint64_t addr, bool nowait, struct buf **bp,
		 struct gfs2_leaf_info *leaf)
{
	struct buf *b;
	int err;

	/* A block in memory has been through the check of its address. */
	err = inode_meta(dir, addr, GFS2_METATYPE_LF, true, &b);
	if (err == -EAGAIN && !nowait) {
		if (!rgrps_valid_block(dir->i_fs, addr))
			return fs_bad_block(dir->i_fs, dir->i_addr,
					    "directory: a leaf is given as "
					    "block %" PRIu64
					    ", outside all resource groups",
					    addr);
		err = inode_meta(dir, addr, GFS2_METATYPE_LF, false, &b);
	}
	if (err)
		return err;
	err = gfs2_leaf_decode(&dir->i_fs->fs_geom, b->b_data, leaf);
	if (ug_unlikely(err || leaf->depth > dir->i_depth)) {
		buf_put(b);
		return fs_bad_block(dir->i_fs, addr,
				    "directory %" PRIu64
				    ": leaf header is wrong, or deeper than "
				    "the table's %u",
				    dir->i_addr, dir->i_depth);
	}
	*bp = b;
	return 0;
}

/* ---- searching ---- */

struct dir_name {
	const char *name;
	unsigned len;
	uint32_t hash;
};

/* Takes over the reference to b. */
static int find_in_block(struct inode *dir, struct buf *b, struct dir_area area,
			 const struct dir_name *dn, struct dir_slot *slot)
{
	const struct gfs2_dirent *de;
	int err;

	de = gfs2_dirent_search(area.da_start, area.da_len, dn->hash, dn->name,
				dn->len, &slot->ds_off, &slot->ds_prev, &err);
	if (!de) {
		err = err ? dir_bad_record(dir, b) : -ENOENT;
		buf_put(b);
		return err;
	}
	slot->ds_found = (struct dir_found){
		.formal = be64_get(de->de_inum.no_formal_ino),
		.addr = be64_get(de->de_inum.no_addr),
		.type = be16_get(de->de_type),
	};
	slot->ds_buf = b;
	return 0;
}

static int find_in_chain(struct inode *dir, const struct dir_name *dn,
			 bool nowait, struct dir_slot *slot)
{
	struct gfs2_leaf_info leaf;
	uint64_t steps = 0, addr;
	struct buf *b;
	int err;

	err = dir_table_leaf(dir, gfs2_hash_index(dn->hash, dir->i_depth),
			     nowait, &addr);
	if (err)
		return err;
	do {
		err = dir_chain_step(dir, addr, &steps);
		if (!err)
			err = dir_leaf_get(dir, addr, nowait, &b, &leaf);
		if (err)
			return err;
		err = find_in_block(dir, b, dir_leaf_area(dir, b), dn, slot);
		addr = leaf.next;
	} while (err == -ENOENT && addr);
	return err;
}

int dir_find(struct inode *dir, const char *name, size_t len, bool nowait,
	     struct dir_slot *slot)
{
	const struct dir_name dn = {
		.name = name,
		.len = (unsigned)len,
		.hash = gfs2_name_hash(name, (unsigned)len),
	};
	struct buf *b;
	int err;

	dir_slot_init(slot);
	if (dir_is_hashed(dir))
		return find_in_chain(dir, &dn, nowait, slot);
	err = inode_dibuf(dir, nowait, &b);
	if (err)
		return err;
	return find_in_block(dir, b, dir_dinode_area(dir, b), &dn, slot);
}

int dir_search(struct inode *dir, const char *name, size_t len, bool nowait,
	       struct dir_found *out)
{
	struct dir_slot slot;
	int err;

	err = dir_find(dir, name, len, nowait, &slot);
	if (err)
		return err;
	*out = slot.ds_found;
	dir_slot_release(&slot);
	return 0;
}

/* ---- changing what was found ---- */

static struct dir_area area_of(const struct inode *dir, struct buf *b)
{
	return dir_is_hashed(dir) ? dir_leaf_area(dir, b)
				  : dir_dinode_area(dir, b);
}

void dir_set(struct trans *tr, struct inode *dir, struct dir_slot *slot,
	     uint64_t formal, uint64_t addr, uint32_t mode)
{
	struct dir_area area = area_of(dir, slot->ds_buf);
	struct gfs2_dirent *de;

	trans_add_meta(tr, slot->ds_buf);
	de = (struct gfs2_dirent *)((char *)area.da_start + slot->ds_off);
	de->de_inum.no_formal_ino = be64_of(formal);
	de->de_inum.no_addr = be64_of(addr);
	de->de_type = be16_of((uint16_t)((mode & S_IFMT) >> 12));
	de->de_rahead = be16_of(0);
}

int dir_del(struct trans *tr, struct inode *dir, struct buf *dibuf,
	    struct dir_slot *slot)
{
	struct dir_area area = area_of(dir, slot->ds_buf);
	struct fs_time now = fs_now();
	struct gfs2_leaf_info leaf;

	trans_add_meta(tr, slot->ds_buf);
	gfs2_dirent_delete(area.da_start, area.da_len, slot->ds_off,
			   slot->ds_prev);
	if (dir_is_hashed(dir)) {
		if (gfs2_leaf_decode(&dir->i_fs->fs_geom, slot->ds_buf->b_data,
				     &leaf) ||
		    leaf.entries == 0)
			return fs_bad_block(dir->i_fs, slot->ds_buf->b_blkno,
					    "directory %" PRIu64
					    ": leaf has more entries than it "
					    "counts",
					    dir->i_addr);
		leaf.entries--;
		leaf.time = (struct gfs2_time){ now.sec, now.nsec };
		gfs2_leaf_encode(&leaf, slot->ds_buf->b_data);
	}
	dir_slot_release(slot);
	dir->i_entries--;
	dir->i_mtime = now;
	dir->i_ctime = now;
	inode_log(tr, dir, dibuf);
	return 0;
}

void dir_init(struct inode *dir, void *diblock, const struct inode *parent)
{
	gfs2_dirent_init_dir(gfs2_dinode_area(diblock),
			     dir->i_fs->fs_geom.stuffed_max, dir->i_formal,
			     dir->i_addr, parent->i_formal, parent->i_addr);
}
