/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * mkfs_files.c - the system files of a new volume, in the order that gives
 * them their numbers and places.
 *
 *   journals | master, jindex, per_node | per journal: inum_range,
 *   statfs_change, quota_change | inum, statfs, rindex, quota | root
 *
 * Source: docs/spec/gfs2-ondisk.md 2.2, 2.3, 7.3, 8.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/prng.h"
#include "tools/mkfs_image.h"

#define SYSTEM GFS2_DIF_SYSTEM
#define SYSTEM_JDATA (GFS2_DIF_SYSTEM | GFS2_DIF_JDATA)
#define FILE_MODE (S_IFREG | 0600)
#define NAME_BYTES 32

/* ---- journals ---------------------------------------------------------- */

/*
 * A journal fills the beginning of its group: the dinode, then one level of
 * pointers after the other, then the contents. So each address is computed.
 */
struct journal {
	struct mkfs_journal_shape shape;
	uint64_t base[GFS2_HEIGHT_MAX]; /* first block of each level */
	struct mkfs_inum inum;
};

static void journal_place(const struct mkfs_image *image, unsigned k,
			  struct journal *j)
{
	uint64_t addr = image->plan->groups[k].data0;

	mkfs_journal_shape(image->geom, image->plan->jblocks, &j->shape);
	j->inum = (struct mkfs_inum){ k + 1, addr++ };
	for (unsigned level = 0; level < j->shape.height; level++) {
		j->base[level] = addr;
		addr += j->shape.count[level];
	}
}

/* Pointers number first to first + room of the level, as many as there are. */
static void put_pointers(const struct journal *j, unsigned level,
			 uint32_t first, uint32_t room, be64 *ptrs)
{
	uint32_t count = j->shape.count[level];

	for (uint32_t i = 0; i < room && first + i < count; i++)
		ptrs[i] = be64_of(j->base[level] + first + i);
}

static void journal_dinode(const struct mkfs_image *image,
			   const struct journal *j, void *block)
{
	unsigned last = j->shape.height - 1;
	struct gfs2_time now = { .sec = image->identity->time_sec };
	struct gfs2_dinode_info di = {
		.formal = j->inum.formal,
		.addr = j->inum.addr,
		.mode = FILE_MODE,
		.nlink = 1,
		.size = (uint64_t)image->plan->jblocks << image->geom->bshift,
		.blocks = j->shape.total,
		.atime = now,
		.mtime = now,
		.ctime = now,
		.goal_meta = j->base[last] - 1,
		.goal_data = j->base[last] + j->shape.count[last] - 1,
		.flags = SYSTEM,
		.height = (uint16_t)j->shape.height,
	};

	gfs2_dinode_encode(&di, block);
	put_pointers(j, 0, 0, image->geom->diptrs, gfs2_dinode_ptrs(block));
}

static int emit_pointers(struct mkfs_image *image, const struct journal *j,
			 void *block)
{
	uint32_t inptrs = image->geom->inptrs;
	int err = 0;

	for (unsigned level = 0; level + 1 < j->shape.height; level++)
		for (uint32_t i = 0; !err && i < j->shape.count[level]; i++) {
			memset(block, 0, image->geom->bsize);
			gfs2_meta_init(block, GFS2_METATYPE_IN);
			put_pointers(j, level + 1, i * inptrs, inptrs,
				     gfs2_indirect_ptrs(block));
			err = mkfs_emit(image, j->base[level] + i, block);
		}
	return err;
}

/*
 * Every block a header that says "clean". The numbers go round the ring from a
 * start anywhere, so that the head of a new journal is anywhere too, and a
 * header left over from an older volume is not mistaken for it.
 */
static int emit_log(struct mkfs_image *image, const struct journal *j,
		    uint64_t start, void *block)
{
	uint32_t count = image->plan->jblocks;
	uint64_t base = j->base[j->shape.height - 1];
	int err = 0;

	for (uint32_t b = 0; !err && b < count; b++) {
		struct gfs2_lh_info lh = {
			.v2 = true,
			.sequence = (start + b) % count,
			.flags =
				GFS2_LOG_HEAD_UNMOUNT | GFS2_LOG_HEAD_USERSPACE,
			.blkno = b,
			.addr = base + b,
			.jinode = j->inum.addr,
		};

		gfs2_lh_encode(image->geom, &lh, block);
		err = mkfs_emit(image, base + b, block);
	}
	return err;
}

static int make_journal(struct mkfs_image *image, unsigned k, uint64_t start,
			void *block)
{
	struct journal j;
	int err;

	journal_place(image, k, &j);
	err = mkfs_note_dinode(image, j.inum.addr);
	if (err || !image->sink)
		return err;
	if (image->sink->journal)
		image->sink->journal(image->sink->arg, k);
	memset(block, 0, image->geom->bsize);
	journal_dinode(image, &j, block);
	err = mkfs_emit(image, j.inum.addr, block);
	if (!err)
		err = emit_pointers(image, &j, block);
	if (!err)
		err = emit_log(image, &j, start, block);
	return err;
}

static int make_journals(struct mkfs_image *image)
{
	void *block = malloc(image->geom->bsize);
	int err = block ? 0 : -ENOMEM;
	struct ug_prng prng;

	ug_prng_seed(&prng, image->identity->seed);
	for (unsigned k = 0; !err && k < image->plan->journals; k++)
		err = make_journal(image, k,
				   ug_prng_below(&prng, image->plan->jblocks),
				   block);
	image->next_formal += image->plan->journals;
	free(block);
	return err;
}

/* ---- jindex, per_node -------------------------------------------------- */

/* A directory within another. */
static int make_subdir(struct mkfs_image *image, const struct mkfs_inum *parent,
		       const char *name, struct mkfs_inum *inum)
{
	const uint32_t mode = S_IFDIR | 0700;
	int err = mkfs_dir_new(image, mode, SYSTEM_JDATA, parent, inum);

	return err ? err : mkfs_dir_add(image, parent->addr, name, inum, mode);
}

static int make_jindex(struct mkfs_image *image, const struct mkfs_inum *master)
{
	struct mkfs_inum jindex;
	char name[NAME_BYTES];
	int err = make_subdir(image, master, "jindex", &jindex);

	for (unsigned k = 0; !err && k < image->plan->journals; k++) {
		struct journal j;

		journal_place(image, k, &j);
		snprintf(name, sizeof(name), "journal%u", k);
		err = mkfs_dir_add(image, jindex.addr, name, &j.inum,
				   FILE_MODE);
	}
	return err;
}

/* An empty file in a directory; then len bytes, if any. */
static int make_file(struct mkfs_image *image, uint64_t dir, const char *name,
		     uint32_t flags, const void *data, uint32_t len,
		     struct mkfs_inum *inum)
{
	int err = mkfs_inode_new(image, FILE_MODE, flags, inum);

	if (!err)
		err = mkfs_dir_add(image, dir, name, inum, FILE_MODE);
	if (!err && len)
		err = mkfs_file_append(image, inum->addr, data, len);
	return err;
}

/*
 * A tree that is written as it grows: of each level only the pointer block in
 * use is in memory; it goes out when the next one begins.
 */
struct stream {
	struct gfs2_dinode_info di;
	be64 *dinode_ptrs;
	unsigned height;
	struct {
		uint64_t addr; /* 0: none yet */
		void *block;
	} level[GFS2_HEIGHT_MAX]; /* [0] below the dinode */
};

static int stream_alloc(struct mkfs_image *image, struct stream *s,
			uint64_t *addr)
{
	int err = mkfs_alloc(image, addr);

	s->di.blocks++;
	s->di.goal_meta = *addr;
	return err;
}

/* A fresh pointer block at this level, entered in the one above. */
static int stream_next_block(struct mkfs_image *image, struct stream *s,
			     unsigned level, const uint16_t *path)
{
	be64 *above = level ? gfs2_indirect_ptrs(s->level[level - 1].block)
			    : s->dinode_ptrs;
	int err = 0;

	if (s->level[level].addr)
		err = mkfs_emit(image, s->level[level].addr,
				s->level[level].block);
	if (!err)
		err = stream_alloc(image, s, &s->level[level].addr);
	if (err)
		return err;
	memset(s->level[level].block, 0, image->geom->bsize);
	gfs2_meta_init(s->level[level].block, GFS2_METATYPE_IN);
	above[path[level]] = be64_of(s->level[level].addr);
	return 0;
}

static int stream_put(struct mkfs_image *image, struct stream *s,
		      uint32_t lblock, const void *contents)
{
	unsigned leaf = s->height - 1;
	uint16_t path[GFS2_HEIGHT_MAX];
	bool fresh = lblock == 0;
	uint64_t addr;
	int err = 0;

	gfs2_tree_path(image->geom, s->height, lblock, path);
	for (unsigned level = 0; !err && level < leaf; level++) {
		/* New when all indices below it start over. */
		bool start = true;

		for (unsigned i = level + 1; i < s->height; i++)
			start = start && path[i] == 0;
		fresh = fresh || start;
		if (fresh)
			err = stream_next_block(image, s, level, path);
	}
	if (!err)
		err = stream_alloc(image, s, &addr);
	if (err)
		return err;
	if (leaf)
		gfs2_indirect_ptrs(s->level[leaf - 1].block)[path[leaf]] =
			be64_of(addr);
	else
		s->dinode_ptrs[path[leaf]] = be64_of(addr);
	return mkfs_emit(image, addr, contents);
}

static int stream_run(struct mkfs_image *image, struct stream *s,
		      uint32_t count, void *contents)
{
	int err = 0;

	gfs2_meta_init(contents, GFS2_METATYPE_QC);
	for (uint32_t i = 0; !err && i < count; i++)
		err = stream_put(image, s, i, contents);
	for (unsigned level = 0; !err && level + 1 < s->height; level++)
		err = mkfs_emit(image, s->level[level].addr,
				s->level[level].block);
	return err;
}

static int fill_quota_change(struct mkfs_image *image, uint64_t addr)
{
	uint32_t bsize = image->geom->bsize;
	uint64_t size = (uint64_t)image->plan->qcsize_mb << 20;
	struct stream s = { .height = 0 };
	uint32_t count = (uint32_t)(size >> image->geom->bshift);
	char *memory;
	int err;

	s.height = (unsigned)gfs2_height_for(image->geom, count - 1);
	/* One block of contents and one for each level of pointers. */
	memory = calloc(s.height, bsize);
	if (!memory)
		return -ENOMEM;
	for (unsigned level = 0; level + 1 < s.height; level++)
		s.level[level].block = memory + (level + 1) * bsize;
	mkfs_inode_load(image, addr, &s.di);
	s.dinode_ptrs = gfs2_dinode_ptrs(mkfs_block_get(image, addr));
	err = stream_run(image, &s, count, memory);
	s.di.size = size;
	s.di.height = (uint16_t)s.height;
	mkfs_inode_store(image, &s.di);
	free(memory);
	return err;
}

static int make_per_node_files(struct mkfs_image *image, uint64_t per_node,
			       unsigned k)
{
	static const struct gfs2_inum_range no_range;
	static const struct gfs2_statfs_change no_change;
	struct mkfs_inum inum;
	char name[NAME_BYTES];
	int err;

	snprintf(name, sizeof(name), "inum_range%u", k);
	err = make_file(image, per_node, name, SYSTEM_JDATA, &no_range,
			sizeof(no_range), &inum);
	if (err)
		return err;
	snprintf(name, sizeof(name), "statfs_change%u", k);
	err = make_file(image, per_node, name, SYSTEM_JDATA, &no_change,
			sizeof(no_change), &inum);
	if (err)
		return err;
	snprintf(name, sizeof(name), "quota_change%u", k);
	err = make_file(image, per_node, name, SYSTEM, NULL, 0, &inum);
	return err ? err : fill_quota_change(image, inum.addr);
}

static int make_per_node(struct mkfs_image *image,
			 const struct mkfs_inum *master)
{
	struct mkfs_inum per_node;
	int err = make_subdir(image, master, "per_node", &per_node);

	for (unsigned k = 0; !err && k < image->plan->journals; k++)
		err = make_per_node_files(image, per_node.addr, k);
	return err;
}

/* ---- the files of master ----------------------------------------------- */

static void set_payload_format(struct mkfs_image *image, uint64_t addr,
			       enum gfs2_format format)
{
	struct gfs2_dinode_info di;

	mkfs_inode_load(image, addr, &di);
	di.payload_format = format;
	mkfs_inode_store(image, &di);
}

/*
 * The list of groups, and room for one entry more: the first step of growing
 * a volume must not itself need a block.
 */
static int make_rindex(struct mkfs_image *image, uint64_t master)
{
	const struct mkfs_plan *plan = image->plan;
	struct gfs2_rindex entry;
	struct mkfs_inum inum;
	int err;

	err = make_file(image, master, "rindex", SYSTEM_JDATA, NULL, 0, &inum);
	for (uint32_t g = 0; !err && g < plan->group_count; g++) {
		gfs2_rindex_encode(&plan->groups[g], &entry);
		err = mkfs_file_append(image, inum.addr, &entry, sizeof(entry));
	}
	if (!err)
		err = mkfs_file_reserve(
			image, inum.addr,
			(plan->group_count + 1ull) * sizeof(entry) - 1);
	if (!err)
		set_payload_format(image, inum.addr, GFS2_FORMAT_RI);
	return err;
}

/* Entries of user 0 and group 0, who own one block so far: 8. */
static int make_quota(struct mkfs_image *image, uint64_t master)
{
	struct gfs2_quota_info one = { .value = 1 };
	struct gfs2_quota entries[2];
	struct mkfs_inum inum;
	int err;

	memset(entries, 0, sizeof(entries));
	gfs2_quota_encode(&one, &entries[0]);
	gfs2_quota_encode(&one, &entries[1]);
	err = make_file(image, master, "quota", SYSTEM_JDATA, entries,
			sizeof(entries), &inum);
	if (!err)
		set_payload_format(image, inum.addr, GFS2_FORMAT_QU);
	return err;
}

/* Overwrite the beginning of a stuffed file with what is known at last. */
static void fill_in(struct mkfs_image *image, uint64_t addr, const void *data,
		    size_t len)
{
	memcpy(gfs2_dinode_area(mkfs_block_get(image, addr)), data, len);
}

static int make_master(struct mkfs_image *image, struct mkfs_result *result,
		       struct mkfs_inum *inum_file, struct mkfs_inum *statfs)
{
	static const struct gfs2_statfs_change later;
	struct mkfs_inum *master = &result->master;
	int err;

	err = mkfs_dir_new(image, S_IFDIR | 0755, SYSTEM_JDATA, NULL, master);
	if (!err)
		err = make_jindex(image, master);
	if (!err)
		err = make_per_node(image, master);
	if (!err)
		err = make_file(image, master->addr, "inum", SYSTEM_JDATA,
				&later, sizeof(be64), inum_file);
	if (!err)
		err = make_file(image, master->addr, "statfs", SYSTEM_JDATA,
				&later, sizeof(later), statfs);
	if (!err)
		err = make_rindex(image, master->addr);
	if (!err)
		err = make_quota(image, master->addr);
	return err;
}

static int make_all(struct mkfs_image *image, struct mkfs_result *result)
{
	struct mkfs_inum inum_file, statfs;
	struct gfs2_statfs_change sc;
	be64 next;
	int err;

	err = make_journals(image);
	if (!err)
		err = make_master(image, result, &inum_file, &statfs);
	if (!err)
		err = mkfs_dir_new(image, S_IFDIR | 0755, GFS2_DIF_JDATA, NULL,
				   &result->root);
	if (err)
		return err;
	next = be64_of(image->next_formal);
	fill_in(image, inum_file.addr, &next, sizeof(next));
	mkfs_totals(image, &result->totals);
	gfs2_statfs_encode(&result->totals, &sc);
	fill_in(image, statfs.addr, &sc, sizeof(sc));
	if (!image->sink)
		return 0;
	err = mkfs_emit_blocks(image);
	return err ? err : mkfs_emit_groups(image);
}

int mkfs_make_volume(const struct mkfs_plan *plan,
		     const struct mkfs_identity *identity,
		     const struct mkfs_sink *sink, struct mkfs_result *result)
{
	struct mkfs_image image;
	int err = mkfs_image_open(plan, identity, sink, &image);

	if (!err)
		err = make_all(&image, result);
	mkfs_image_close(&image);
	return err;
}

void mkfs_make_sb(const struct mkfs_plan *plan,
		  const struct mkfs_identity *identity,
		  const struct mkfs_result *result, void *block_512)
{
	struct gfs2_sb_info sb = {
		.fs_format = plan->format,
		.multihost_format = GFS2_FORMAT_MULTI,
		.bsize = plan->geom.bsize,
		.bsize_shift = plan->geom.bshift,
		.master_formal = result->master.formal,
		.master_addr = result->master.addr,
		.root_formal = result->root.formal,
		.root_addr = result->root.addr,
	};

	snprintf(sb.lockproto, sizeof(sb.lockproto), "%s", identity->lockproto);
	snprintf(sb.locktable, sizeof(sb.locktable), "%s", identity->locktable);
	memcpy(sb.uuid, identity->uuid, sizeof(sb.uuid));
	gfs2_sb_encode(&sb, block_512);
}
