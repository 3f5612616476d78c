/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * sb.c - the superblock: what volume is this, and can we use it?
 *
 * The checks go from "is it GFS2 at all" to "is it whole", so that the first
 * sentence an administrator gets is the one that helps.
 * Source: docs/spec/gfs2-ondisk.md 2.1, 1.4.
 */
#include <errno.h>
#include <string.h>

#include "base/checked.h"
#include "ondisk/codec.h"
#include "ondisk/why.h"

#define SB_BLOCK_BYTES 512u

/* What the first GFS wrote into the two format fields. */
#define GFS1_FORMAT_FS 1309u
#define GFS1_FORMAT_MULTI 1401u

static int sb_check_formats(const struct gfs2_sb *sb, char *why, size_t len)
{
	uint32_t fs = be32_get(sb->sb_fs_format);
	uint32_t multi = be32_get(sb->sb_multihost_format);

	if (fs == GFS1_FORMAT_FS || multi == GFS1_FORMAT_MULTI)
		return why_return(why, len, -EINVAL,
				  "superblock: this is a GFS (version 1) "
				  "volume, format %u/%u; expected GFS2, "
				  "format %u or %u/%u",
				  fs, multi, GFS2_FORMAT_FS_MIN,
				  GFS2_FORMAT_FS_MAX, GFS2_FORMAT_MULTI);
	if (multi != GFS2_FORMAT_MULTI)
		return why_return(why, len, -EINVAL,
				  "superblock: multihost format is %u, "
				  "expected %u",
				  multi, GFS2_FORMAT_MULTI);
	if (fs < GFS2_FORMAT_FS_MIN || fs > GFS2_FORMAT_FS_MAX)
		return why_return(why, len, -EINVAL,
				  "superblock: file system format is %u, "
				  "expected %u or %u",
				  fs, GFS2_FORMAT_FS_MIN, GFS2_FORMAT_FS_MAX);
	return 0;
}

static int sb_check_bsize(const struct gfs2_sb *sb, char *why, size_t len)
{
	uint32_t bsize = be32_get(sb->sb_bsize);
	uint32_t shift = be32_get(sb->sb_bsize_shift);

	if (!ug_is_power_of_2(bsize) || bsize < GFS2_BSIZE_MIN)
		return why_return(why, len, -EUCLEAN,
				  "superblock: block size is %u, expected a "
				  "power of two from %u up",
				  bsize, GFS2_BSIZE_MIN);
	if (shift != ug_log2_u64(bsize))
		return why_return(why, len, -EUCLEAN,
				  "superblock: block size shift is %u, "
				  "expected %u for blocks of %u bytes",
				  shift, ug_log2_u64(bsize), bsize);
	if (bsize > GFS2_BSIZE_MAX)
		return why_return(why, len, -EINVAL,
				  "superblock: block size is %u, at most %u "
				  "is supported",
				  bsize, GFS2_BSIZE_MAX);
	return 0;
}

static int sb_check_inum(const char *what, const struct gfs2_inum *inum,
			 uint32_t bsize, char *why, size_t len)
{
	uint64_t first = GFS2_SB_OFFSET_BYTES / bsize + 1;
	uint64_t addr = be64_get(inum->no_addr);

	if (addr < first || be64_get(inum->no_formal_ino) == 0)
		return why_return(
			why, len, -EUCLEAN,
			"superblock: %s directory is inode %llu at "
			"block %llu, expected a number from 1 and a "
			"block from %llu up",
			what, (unsigned long long)be64_get(inum->no_formal_ino),
			(unsigned long long)addr, (unsigned long long)first);
	return 0;
}

static int sb_check_names(const struct gfs2_sb *sb, char *why, size_t len)
{
	const char *table = sb->sb_locktable;

	if (!memchr(sb->sb_lockproto, '\0', GFS2_LOCKNAME_LEN))
		return why_return(why, len, -EUCLEAN,
				  "superblock: the lock protocol has no end; "
				  "expected at most %u characters",
				  GFS2_LOCKNAME_LEN - 1);
	if (!memchr(table, '\0', GFS2_LOCKNAME_LEN))
		return why_return(why, len, -EUCLEAN,
				  "superblock: the lock table has no end; "
				  "expected at most %u characters",
				  GFS2_LOCKNAME_LEN - 1);
	/* fsck puts "lock_" back when it is done: 2.1. */
	if (strncmp(sb->sb_lockproto, "fsck_", 5) == 0)
		return why_return(why, len, -EUCLEAN,
				  "superblock: the lock protocol is \"%s\": "
				  "fsck.gfs2 is checking this volume, or was "
				  "interrupted and must be run again",
				  sb->sb_lockproto);
	return 0;
}

static int sb_check(const struct gfs2_sb *sb, char *why, size_t len)
{
	uint32_t bsize;
	int err;

	if (be32_get(sb->sb_header.mh_magic) != GFS2_MAGIC)
		return why_return(why, len, -EINVAL,
				  "not a GFS2 volume: byte %u holds %08x, "
				  "expected the magic %08x",
				  GFS2_SB_OFFSET_BYTES,
				  be32_get(sb->sb_header.mh_magic), GFS2_MAGIC);
	if (gfs2_check_meta(sb, GFS2_METATYPE_SB))
		return why_return(why, len, -EUCLEAN,
				  "superblock: block type is %u (%s), expected "
				  "%u",
				  gfs2_meta_type(sb),
				  gfs2_metatype_name(gfs2_meta_type(sb)),
				  GFS2_METATYPE_SB);
	err = sb_check_formats(sb, why, len);
	if (!err)
		err = sb_check_bsize(sb, why, len);
	if (err)
		return err;
	bsize = be32_get(sb->sb_bsize);
	err = sb_check_inum("master", &sb->sb_master_dir, bsize, why, len);
	if (!err)
		err = sb_check_inum("root", &sb->sb_root_dir, bsize, why, len);
	if (!err)
		err = sb_check_names(sb, why, len);
	return err;
}

int gfs2_sb_decode(const void *buf, size_t len, struct gfs2_sb_info *out,
		   char *why, size_t why_len)
{
	const struct gfs2_sb *sb = buf;
	int err;

	if (len < sizeof(*sb))
		return why_return(why, why_len, -EINVAL,
				  "not a GFS2 volume: it ends within the "
				  "superblock at byte %u",
				  GFS2_SB_OFFSET_BYTES);
	err = sb_check(sb, why, why_len);
	if (err)
		return err;

	*out = (struct gfs2_sb_info){
		.fs_format = be32_get(sb->sb_fs_format),
		.multihost_format = be32_get(sb->sb_multihost_format),
		.bsize = be32_get(sb->sb_bsize),
		.bsize_shift = be32_get(sb->sb_bsize_shift),
		.master_formal = be64_get(sb->sb_master_dir.no_formal_ino),
		.master_addr = be64_get(sb->sb_master_dir.no_addr),
		.root_formal = be64_get(sb->sb_root_dir.no_formal_ino),
		.root_addr = be64_get(sb->sb_root_dir.no_addr),
	};
	memcpy(out->lockproto, sb->sb_lockproto, GFS2_LOCKNAME_LEN);
	memcpy(out->locktable, sb->sb_locktable, GFS2_LOCKNAME_LEN);
	memcpy(out->uuid, sb->sb_uuid, sizeof(out->uuid));
	return 0;
}

/* Zero-padded; a name that fills the field is cut, so that it stays one. */
static void sb_put_name(char *field, const char *name)
{
	size_t len = strnlen(name, GFS2_LOCKNAME_LEN - 1);

	memset(field, 0, GFS2_LOCKNAME_LEN);
	memcpy(field, name, len);
}

void gfs2_sb_encode(const struct gfs2_sb_info *info, void *block_512)
{
	struct gfs2_sb *sb = block_512;

	memset(block_512, 0, SB_BLOCK_BYTES);
	gfs2_meta_init(sb, GFS2_METATYPE_SB);
	sb->sb_fs_format = be32_of(info->fs_format);
	sb->sb_multihost_format = be32_of(info->multihost_format);
	sb->sb_bsize = be32_of(info->bsize);
	sb->sb_bsize_shift = be32_of(info->bsize_shift);
	sb->sb_master_dir.no_formal_ino = be64_of(info->master_formal);
	sb->sb_master_dir.no_addr = be64_of(info->master_addr);
	sb->sb_root_dir.no_formal_ino = be64_of(info->root_formal);
	sb->sb_root_dir.no_addr = be64_of(info->root_addr);
	sb_put_name(sb->sb_lockproto, info->lockproto);
	sb_put_name(sb->sb_locktable, info->locktable);
	memcpy(sb->sb_uuid, info->uuid, sizeof(sb->sb_uuid));
}
