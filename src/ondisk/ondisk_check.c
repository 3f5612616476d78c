/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * ondisk_check.c - our structures against the kernel's header, at compile
 * time: sizes, offsets of every field, every constant. Nothing of this is
 * left in the object file.
 *
 * Both headers use the same names. Ours come first, and the values of our
 * constants are kept as OUR_...; then the kernel's structures are renamed
 * while its header is read.
 */
#include <assert.h>
#include <stddef.h>

#include "ondisk/codec.h"

/* Named alike by both. Enumerators of ours are simply hidden by macros. */
#define SHARED_CONSTANTS(X)             \
	X(GFS2_MAGIC)                   \
	X(GFS2_LOCKNAME_LEN)            \
	X(GFS2_FORMAT_MULTI)            \
	X(GFS2_METATYPE_NONE)           \
	X(GFS2_METATYPE_SB)             \
	X(GFS2_METATYPE_RG)             \
	X(GFS2_METATYPE_RB)             \
	X(GFS2_METATYPE_DI)             \
	X(GFS2_METATYPE_IN)             \
	X(GFS2_METATYPE_LF)             \
	X(GFS2_METATYPE_JD)             \
	X(GFS2_METATYPE_LH)             \
	X(GFS2_METATYPE_LD)             \
	X(GFS2_METATYPE_LB)             \
	X(GFS2_METATYPE_EA)             \
	X(GFS2_METATYPE_ED)             \
	X(GFS2_METATYPE_QC)             \
	X(GFS2_FORMAT_NONE)             \
	X(GFS2_FORMAT_SB)               \
	X(GFS2_FORMAT_RG)               \
	X(GFS2_FORMAT_RB)               \
	X(GFS2_FORMAT_DI)               \
	X(GFS2_FORMAT_IN)               \
	X(GFS2_FORMAT_LF)               \
	X(GFS2_FORMAT_JD)               \
	X(GFS2_FORMAT_LH)               \
	X(GFS2_FORMAT_LD)               \
	X(GFS2_FORMAT_LB)               \
	X(GFS2_FORMAT_RI)               \
	X(GFS2_FORMAT_DE)               \
	X(GFS2_FORMAT_QC)               \
	X(GFS2_FORMAT_QU)               \
	X(GFS2_FORMAT_EA)               \
	X(GFS2_FORMAT_ED)               \
	X(GFS2_NBBY)                    \
	X(GFS2_BLKST_FREE)              \
	X(GFS2_BLKST_USED)              \
	X(GFS2_BLKST_UNLINKED)          \
	X(GFS2_BLKST_DINODE)            \
	X(GFS2_RGF_NOALLOC)             \
	X(GFS2_RGF_TRIMMED)             \
	X(GFS2_DIF_JDATA)               \
	X(GFS2_DIF_EXHASH)              \
	X(GFS2_DIF_EA_INDIRECT)         \
	X(GFS2_DIF_DIRECTIO)            \
	X(GFS2_DIF_IMMUTABLE)           \
	X(GFS2_DIF_APPENDONLY)          \
	X(GFS2_DIF_NOATIME)             \
	X(GFS2_DIF_SYNC)                \
	X(GFS2_DIF_SYSTEM)              \
	X(GFS2_DIF_TOPDIR)              \
	X(GFS2_DIF_TRUNC_IN_PROG)       \
	X(GFS2_DIF_INHERIT_JDATA)       \
	X(GFS2_EATYPE_UNUSED)           \
	X(GFS2_EATYPE_USR)              \
	X(GFS2_EATYPE_SYS)              \
	X(GFS2_EATYPE_SECURITY)         \
	X(GFS2_EATYPE_TRUSTED)          \
	X(GFS2_EAFLAG_LAST)             \
	X(GFS2_LOG_HEAD_UNMOUNT)        \
	X(GFS2_LOG_HEAD_FLUSH_NORMAL)   \
	X(GFS2_LOG_HEAD_FLUSH_SYNC)     \
	X(GFS2_LOG_HEAD_FLUSH_SHUTDOWN) \
	X(GFS2_LOG_HEAD_FLUSH_FREEZE)   \
	X(GFS2_LOG_HEAD_RECOVERY)       \
	X(GFS2_LOG_HEAD_USERSPACE)      \
	X(GFS2_LOG_DESC_METADATA)       \
	X(GFS2_LOG_DESC_REVOKE)         \
	X(GFS2_LOG_DESC_JDATA)          \
	X(GFS2_QCF_USER)

#define KEEP_OURS(name) OUR_##name = name,
enum our_constants {
	SHARED_CONSTANTS(KEEP_OURS) OUR_FORMAT_FS_MAX = GFS2_FORMAT_FS_MAX,
	OUR_SB_OFFSET_BYTES = GFS2_SB_OFFSET_BYTES,
	OUR_NAME_MAX = GFS2_NAME_MAX,
	OUR_HASH_DEPTH_MAX = GFS2_HASH_DEPTH_MAX,
	OUR_HEIGHT_MAX = GFS2_HEIGHT_MAX,
	OUR_EA_DATA_MAX = GFS2_EA_DATA_MAX,
	OUR_DIRENT_SIZE_1 = GFS2_DIRENT_SIZE(1),
	OUR_DIRENT_SIZE_8 = GFS2_DIRENT_SIZE(8),
	OUR_DIRENT_SIZE_255 = GFS2_DIRENT_SIZE(255),
};

/* Every macro of ours that the kernel's header defines again. */
#undef GFS2_MAGIC
#undef GFS2_LOCKNAME_LEN
#undef GFS2_FORMAT_MULTI
#undef GFS2_NBBY
#undef GFS2_RGF_NOALLOC
#undef GFS2_RGF_TRIMMED
#undef GFS2_DIF_JDATA
#undef GFS2_DIF_EXHASH
#undef GFS2_DIF_EA_INDIRECT
#undef GFS2_DIF_DIRECTIO
#undef GFS2_DIF_IMMUTABLE
#undef GFS2_DIF_APPENDONLY
#undef GFS2_DIF_NOATIME
#undef GFS2_DIF_SYNC
#undef GFS2_DIF_SYSTEM
#undef GFS2_DIF_TOPDIR
#undef GFS2_DIF_TRUNC_IN_PROG
#undef GFS2_DIF_INHERIT_JDATA
#undef GFS2_DIRENT_SIZE
#undef GFS2_EAFLAG_LAST
#undef GFS2_LOG_HEAD_UNMOUNT
#undef GFS2_LOG_HEAD_FLUSH_NORMAL
#undef GFS2_LOG_HEAD_FLUSH_SYNC
#undef GFS2_LOG_HEAD_FLUSH_SHUTDOWN
#undef GFS2_LOG_HEAD_FLUSH_FREEZE
#undef GFS2_LOG_HEAD_RECOVERY
#undef GFS2_LOG_HEAD_USERSPACE
#undef GFS2_QCF_USER

#define gfs2_inum uapi_gfs2_inum
#define gfs2_meta_header uapi_gfs2_meta_header
#define gfs2_sb uapi_gfs2_sb
#define gfs2_rindex uapi_gfs2_rindex
#define gfs2_rgrp uapi_gfs2_rgrp
#define gfs2_quota uapi_gfs2_quota
#define gfs2_dinode uapi_gfs2_dinode
#define gfs2_dirent uapi_gfs2_dirent
#define gfs2_leaf uapi_gfs2_leaf
#define gfs2_ea_header uapi_gfs2_ea_header
#define gfs2_log_header uapi_gfs2_log_header
#define gfs2_log_descriptor uapi_gfs2_log_descriptor
#define gfs2_inum_range uapi_gfs2_inum_range
#define gfs2_statfs_change uapi_gfs2_statfs_change
#define gfs2_quota_change uapi_gfs2_quota_change
#include <linux/gfs2_ondisk.h>
#undef gfs2_inum
#undef gfs2_meta_header
#undef gfs2_sb
#undef gfs2_rindex
#undef gfs2_rgrp
#undef gfs2_quota
#undef gfs2_dinode
#undef gfs2_dirent
#undef gfs2_leaf
#undef gfs2_ea_header
#undef gfs2_log_header
#undef gfs2_log_descriptor
#undef gfs2_inum_range
#undef gfs2_statfs_change
#undef gfs2_quota_change

#define SAME_CONSTANT(name) static_assert(OUR_##name == (name), #name);
SHARED_CONSTANTS(SAME_CONSTANT)

/* A kernel newer than us may know a newer format; none may know an older. */
static_assert(OUR_FORMAT_FS_MAX <= GFS2_FORMAT_FS, "newest format");
static_assert(OUR_SB_OFFSET_BYTES == GFS2_SB_ADDR * 512, "superblock");
static_assert(OUR_NAME_MAX == GFS2_FNAMESIZE, "longest name");
static_assert(OUR_HASH_DEPTH_MAX == GFS2_DIR_MAX_DEPTH, "hash depth");
static_assert(OUR_HEIGHT_MAX == GFS2_MAX_META_HEIGHT, "height");
static_assert(OUR_EA_DATA_MAX == GFS2_EA_MAX_DATA_LEN, "attribute value");
static_assert(OUR_DIRENT_SIZE_1 == GFS2_DIRENT_SIZE(1), "shortest name");
static_assert(OUR_DIRENT_SIZE_8 == GFS2_DIRENT_SIZE(8), "full slot");
static_assert(OUR_DIRENT_SIZE_255 == GFS2_DIRENT_SIZE(255), "longest name");

#define SAME_SIZE(type, bytes)                                            \
	static_assert(sizeof(struct gfs2_##type) == (bytes), #type);      \
	static_assert(sizeof(struct uapi_gfs2_##type) == (bytes), #type); \
	static_assert(_Alignof(struct gfs2_##type) == 1, #type)

#define SAME(type, field)                                                    \
	static_assert(offsetof(struct gfs2_##type, field) ==                 \
			      offsetof(struct uapi_gfs2_##type, field),      \
		      #type "." #field);                                     \
	static_assert(sizeof(((struct gfs2_##type *)0)->field) ==            \
			      sizeof(((struct uapi_gfs2_##type *)0)->field), \
		      #type "." #field)

SAME_SIZE(inum, 16);
SAME(inum, no_formal_ino);
SAME(inum, no_addr);

SAME_SIZE(meta_header, 24);
SAME(meta_header, mh_magic);
SAME(meta_header, mh_type);
SAME(meta_header, __pad0);
SAME(meta_header, mh_format);
SAME(meta_header, mh_jid);

SAME_SIZE(sb, 272);
SAME(sb, sb_header);
SAME(sb, sb_fs_format);
SAME(sb, sb_multihost_format);
SAME(sb, __pad0);
SAME(sb, sb_bsize);
SAME(sb, sb_bsize_shift);
SAME(sb, __pad1);
SAME(sb, sb_master_dir);
SAME(sb, __pad2);
SAME(sb, sb_root_dir);
SAME(sb, sb_lockproto);
SAME(sb, sb_locktable);
SAME(sb, __pad3);
SAME(sb, __pad4);
SAME(sb, sb_uuid);

SAME_SIZE(rindex, 96);
SAME(rindex, ri_addr);
SAME(rindex, ri_length);
SAME(rindex, __pad);
SAME(rindex, ri_data0);
SAME(rindex, ri_data);
SAME(rindex, ri_bitbytes);
SAME(rindex, ri_reserved);

SAME_SIZE(rgrp, 128);
SAME(rgrp, rg_header);
SAME(rgrp, rg_flags);
SAME(rgrp, rg_free);
SAME(rgrp, rg_dinodes);
SAME(rgrp, rg_skip);
SAME(rgrp, rg_igeneration);
SAME(rgrp, rg_data0);
SAME(rgrp, rg_data);
SAME(rgrp, rg_bitbytes);
SAME(rgrp, rg_crc);
SAME(rgrp, rg_reserved);

SAME_SIZE(quota, 88);
SAME(quota, qu_limit);
SAME(quota, qu_warn);
SAME(quota, qu_value);
SAME(quota, qu_reserved);

SAME_SIZE(dinode, 232);
SAME(dinode, di_header);
SAME(dinode, di_num);
SAME(dinode, di_mode);
SAME(dinode, di_uid);
SAME(dinode, di_gid);
SAME(dinode, di_nlink);
SAME(dinode, di_size);
SAME(dinode, di_blocks);
SAME(dinode, di_atime);
SAME(dinode, di_mtime);
SAME(dinode, di_ctime);
SAME(dinode, di_major);
SAME(dinode, di_minor);
SAME(dinode, di_goal_meta);
SAME(dinode, di_goal_data);
SAME(dinode, di_generation);
SAME(dinode, di_flags);
SAME(dinode, di_payload_format);
SAME(dinode, __pad1);
SAME(dinode, di_height);
SAME(dinode, __pad2);
SAME(dinode, __pad3);
SAME(dinode, di_depth);
SAME(dinode, di_entries);
SAME(dinode, __pad4);
SAME(dinode, di_eattr);
SAME(dinode, di_atime_nsec);
SAME(dinode, di_mtime_nsec);
SAME(dinode, di_ctime_nsec);
SAME(dinode, di_reserved);

SAME_SIZE(dirent, 40);
SAME(dirent, de_inum);
SAME(dirent, de_hash);
SAME(dirent, de_rec_len);
SAME(dirent, de_name_len);
SAME(dirent, de_type);
SAME(dirent, de_rahead);

SAME_SIZE(leaf, 104);
SAME(leaf, lf_header);
SAME(leaf, lf_depth);
SAME(leaf, lf_entries);
SAME(leaf, lf_dirent_format);
SAME(leaf, lf_next);
SAME(leaf, lf_inode);
SAME(leaf, lf_dist);
SAME(leaf, lf_nsec);
SAME(leaf, lf_sec);
SAME(leaf, lf_reserved2);

SAME_SIZE(ea_header, 16);
SAME(ea_header, ea_rec_len);
SAME(ea_header, ea_data_len);
SAME(ea_header, ea_name_len);
SAME(ea_header, ea_type);
SAME(ea_header, ea_flags);
SAME(ea_header, ea_num_ptrs);
SAME(ea_header, __pad);

SAME_SIZE(log_header, 120);
SAME(log_header, lh_header);
SAME(log_header, lh_sequence);
SAME(log_header, lh_flags);
SAME(log_header, lh_tail);
SAME(log_header, lh_blkno);
SAME(log_header, lh_hash);
SAME(log_header, lh_crc);
SAME(log_header, lh_nsec);
SAME(log_header, lh_sec);
SAME(log_header, lh_addr);
SAME(log_header, lh_jinode);
SAME(log_header, lh_statfs_addr);
SAME(log_header, lh_quota_addr);
SAME(log_header, lh_local_total);
SAME(log_header, lh_local_free);
SAME(log_header, lh_local_dinodes);

SAME_SIZE(log_descriptor, 72);
SAME(log_descriptor, ld_header);
SAME(log_descriptor, ld_type);
SAME(log_descriptor, ld_length);
SAME(log_descriptor, ld_data1);
SAME(log_descriptor, ld_data2);
SAME(log_descriptor, ld_reserved);

SAME_SIZE(inum_range, 16);
SAME(inum_range, ir_start);
SAME(inum_range, ir_length);

SAME_SIZE(statfs_change, 24);
SAME(statfs_change, sc_total);
SAME(statfs_change, sc_free);
SAME(statfs_change, sc_dinodes);

SAME_SIZE(quota_change, 16);
SAME(quota_change, qc_change);
SAME(quota_change, qc_flags);
SAME(quota_change, qc_id);
