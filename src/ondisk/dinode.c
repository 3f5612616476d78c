/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * dinode.c - the first 232 bytes of an inode's block.
 * Source: docs/spec/gfs2-ondisk.md 3.1, 3.4, 4.5.
 */
#include <errno.h>
#include <sys/stat.h>

#include "ondisk/codec.h"
#include "ondisk/why.h"

#define LLU(x) ((unsigned long long)(x))

static struct gfs2_time time_of(be64 sec, be32 nsec)
{
	return (struct gfs2_time){ (int64_t)be64_get(sec), be32_get(nsec) };
}

static void dinode_read(const struct gfs2_dinode *d,
			struct gfs2_dinode_info *out)
{
	*out = (struct gfs2_dinode_info){
		.formal = be64_get(d->di_num.no_formal_ino),
		.addr = be64_get(d->di_num.no_addr),
		.mode = be32_get(d->di_mode),
		.uid = be32_get(d->di_uid),
		.gid = be32_get(d->di_gid),
		.nlink = be32_get(d->di_nlink),
		.size = be64_get(d->di_size),
		.blocks = be64_get(d->di_blocks),
		.atime = time_of(d->di_atime, d->di_atime_nsec),
		.mtime = time_of(d->di_mtime, d->di_mtime_nsec),
		.ctime = time_of(d->di_ctime, d->di_ctime_nsec),
		.rdev_major = be32_get(d->di_major),
		.rdev_minor = be32_get(d->di_minor),
		.goal_meta = be64_get(d->di_goal_meta),
		.goal_data = be64_get(d->di_goal_data),
		.generation = be64_get(d->di_generation),
		.flags = be32_get(d->di_flags),
		.payload_format = be32_get(d->di_payload_format),
		.height = be16_get(d->di_height),
		.depth = be16_get(d->di_depth),
		.entries = be32_get(d->di_entries),
		.eattr = be64_get(d->di_eattr),
	};
}

static bool mode_has_type(uint32_t mode)
{
	switch (mode & S_IFMT) {
	case S_IFREG:
	case S_IFDIR:
	case S_IFLNK:
	case S_IFCHR:
	case S_IFBLK:
	case S_IFIFO:
	case S_IFSOCK:
		return true;
	}
	return false;
}

/* Everything that does not concern directories alone. */
static int dinode_check(const struct gfs2_geom *geom,
			const struct gfs2_dinode_info *di, uint64_t addr,
			char *why, size_t len)
{
	if (di->addr != addr)
		return why_return(why, len, -EUCLEAN,
				  "dinode at block %llu: its own address is "
				  "given as %llu",
				  LLU(addr), LLU(di->addr));
	if (!mode_has_type(di->mode))
		return why_return(why, len, -EUCLEAN,
				  "dinode at block %llu: mode is %07o, which "
				  "is no type of file",
				  LLU(addr), di->mode);
	if (di->height > geom->height_max)
		return why_return(why, len, -EUCLEAN,
				  "dinode at block %llu: height is %u, "
				  "expected at most %u",
				  LLU(addr), di->height, geom->height_max);
	if (di->size > INT64_MAX)
		return why_return(why, len, -EUCLEAN,
				  "dinode at block %llu: size is %llu, "
				  "expected at most 2^63 - 1",
				  LLU(addr), LLU(di->size));
	if (di->height == 0 && di->size > geom->stuffed_max)
		return why_return(why, len, -EUCLEAN,
				  "dinode at block %llu: size is %llu with no "
				  "pointers, expected at most %u",
				  LLU(addr), LLU(di->size), geom->stuffed_max);
	return 0;
}

static int dinode_check_exhash(const struct gfs2_geom *geom,
			       const struct gfs2_dinode_info *di, char *why,
			       size_t len)
{
	uint64_t table = (uint64_t)sizeof(be64) << di->depth;

	/* A kernel that was releasing a directory has left it so: 6.7. */
	if (S_ISREG(di->mode) && di->nlink == 0)
		return 0;
	if (!S_ISDIR(di->mode))
		return why_return(why, len, -EUCLEAN,
				  "dinode at block %llu: has a hash table, but "
				  "mode %07o is no directory",
				  LLU(di->addr), di->mode);
	if (di->depth < geom->hash_depth_min)
		return why_return(why, len, -EUCLEAN,
				  "dinode at block %llu: depth is %u, expected "
				  "at least %u with a hash table",
				  LLU(di->addr), di->depth,
				  geom->hash_depth_min);
	if (di->size != table)
		return why_return(why, len, -EUCLEAN,
				  "dinode at block %llu: size is %llu, "
				  "expected %llu for a hash table of depth %u",
				  LLU(di->addr), LLU(di->size), LLU(table),
				  di->depth);
	return 0;
}

static int dinode_check_dir(const struct gfs2_geom *geom,
			    const struct gfs2_dinode_info *di, char *why,
			    size_t len)
{
	if (di->depth > GFS2_HASH_DEPTH_MAX)
		return why_return(why, len, -EUCLEAN,
				  "dinode at block %llu: depth is %u, expected "
				  "at most %u",
				  LLU(di->addr), di->depth,
				  GFS2_HASH_DEPTH_MAX);
	if (di->flags & GFS2_DIF_EXHASH)
		return dinode_check_exhash(geom, di, why, len);
	/* Its entries are in the dinode, where a tree would have pointers. */
	if (S_ISDIR(di->mode) && di->height != 0)
		return why_return(why, len, -EUCLEAN,
				  "dinode at block %llu: directory of height "
				  "%u without a hash table, expected height 0",
				  LLU(di->addr), di->height);
	return 0;
}

int gfs2_dinode_decode(const struct gfs2_geom *geom, const void *block,
		       uint64_t addr, struct gfs2_dinode_info *out, char *why,
		       size_t why_len)
{
	struct gfs2_dinode_info di;
	uint32_t type = gfs2_meta_type(block);
	int err;

	if (type == GFS2_METATYPE_NONE)
		return why_return(why, why_len, -EUCLEAN,
				  "block %llu: no metadata, expected a dinode",
				  LLU(addr));
	if (type != GFS2_METATYPE_DI)
		return why_return(why, why_len, -EUCLEAN,
				  "block %llu: type is %u (%s), expected a "
				  "dinode",
				  LLU(addr), type, gfs2_metatype_name(type));
	dinode_read(block, &di);
	err = dinode_check(geom, &di, addr, why, why_len);
	if (!err)
		err = dinode_check_dir(geom, &di, why, why_len);
	if (err)
		return err;
	*out = di;
	return 0;
}

static void dinode_put_times(const struct gfs2_dinode_info *di,
			     struct gfs2_dinode *d)
{
	d->di_atime = be64_of((uint64_t)di->atime.sec);
	d->di_mtime = be64_of((uint64_t)di->mtime.sec);
	d->di_ctime = be64_of((uint64_t)di->ctime.sec);
	d->di_atime_nsec = be32_of(di->atime.nsec);
	d->di_mtime_nsec = be32_of(di->mtime.nsec);
	d->di_ctime_nsec = be32_of(di->ctime.nsec);
}

void gfs2_dinode_encode(const struct gfs2_dinode_info *di, void *block)
{
	struct gfs2_dinode *d = block;
	be32 jid = d->di_header.mh_jid;

	gfs2_meta_init(block, GFS2_METATYPE_DI);
	d->di_header.mh_jid = jid;
	d->di_num.no_formal_ino = be64_of(di->formal);
	d->di_num.no_addr = be64_of(di->addr);
	d->di_mode = be32_of(di->mode);
	d->di_uid = be32_of(di->uid);
	d->di_gid = be32_of(di->gid);
	d->di_nlink = be32_of(di->nlink);
	d->di_size = be64_of(di->size);
	d->di_blocks = be64_of(di->blocks);
	d->di_major = be32_of(di->rdev_major);
	d->di_minor = be32_of(di->rdev_minor);
	d->di_goal_meta = be64_of(di->goal_meta);
	d->di_goal_data = be64_of(di->goal_data);
	d->di_generation = be64_of(di->generation);
	d->di_flags = be32_of(di->flags);
	d->di_payload_format = be32_of(di->payload_format);
	d->di_height = be16_of(di->height);
	d->di_depth = be16_of(di->depth);
	d->di_entries = be32_of(di->entries);
	d->di_eattr = be64_of(di->eattr);
	dinode_put_times(di, d);
}
