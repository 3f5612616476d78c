/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * ondisk.h - the structures of GFS2 formats 1801 and 1802 as they lie on disk.
 *
 * Every integer is a wrapped big-endian type; field names are those of the
 * specification, so that one grep finds all uses. Sizes and offsets are held
 * against the kernel's linux/gfs2_ondisk.h by static assertions in
 * ondisk_check.c. Decoders and encoders are in codec.h.
 * Source: docs/spec/gfs2-ondisk.md.
 */
#ifndef UG_ONDISK_ONDISK_H
#define UG_ONDISK_ONDISK_H

#include <stdint.h>

#include "base/be.h"

#define GFS2_MAGIC 0x01161970u
#define GFS2_SB_OFFSET_BYTES 65536u
#define GFS2_BSIZE_MIN 512u
#define GFS2_BSIZE_MAX 4096u
#define GFS2_NAME_MAX 255u
#define GFS2_FORMAT_FS_MIN 1801u
#define GFS2_FORMAT_FS_MAX 1802u
#define GFS2_FORMAT_MULTI 1900u
#define GFS2_HASH_DEPTH_MAX 17u
#define GFS2_HEIGHT_MAX 10u
#define GFS2_LOCKNAME_LEN 64u

enum gfs2_metatype {
	GFS2_METATYPE_NONE = 0,
	GFS2_METATYPE_SB = 1,
	GFS2_METATYPE_RG = 2,
	GFS2_METATYPE_RB = 3,
	GFS2_METATYPE_DI = 4,
	GFS2_METATYPE_IN = 5,
	GFS2_METATYPE_LF = 6,
	GFS2_METATYPE_JD = 7,
	GFS2_METATYPE_LH = 8,
	GFS2_METATYPE_LD = 9,
	GFS2_METATYPE_EA = 10,
	GFS2_METATYPE_ED = 11,
	GFS2_METATYPE_LB = 12,
	GFS2_METATYPE_QC = 14,
};

enum gfs2_format {
	GFS2_FORMAT_NONE = 0,
	GFS2_FORMAT_SB = 100,
	GFS2_FORMAT_RG = 200,
	GFS2_FORMAT_RB = 300,
	GFS2_FORMAT_DI = 400,
	GFS2_FORMAT_IN = 500,
	GFS2_FORMAT_LF = 600,
	GFS2_FORMAT_JD = 700,
	GFS2_FORMAT_LH = 800,
	GFS2_FORMAT_LD = 900,
	GFS2_FORMAT_LB = 1000,
	GFS2_FORMAT_RI = 1100,
	GFS2_FORMAT_DE = 1200,
	GFS2_FORMAT_QC = 1400,
	GFS2_FORMAT_QU = 1500,
	GFS2_FORMAT_EA = 1600,
	GFS2_FORMAT_ED = 1700,
};

struct gfs2_inum {
	be64 no_formal_ino;
	be64 no_addr;
};

struct gfs2_meta_header {
	be32 mh_magic;
	be32 mh_type;
	be64 __pad0;
	be32 mh_format;
	be32 mh_jid;
};

struct gfs2_sb {
	struct gfs2_meta_header sb_header;
	be32 sb_fs_format;
	be32 sb_multihost_format;
	be32 __pad0;
	be32 sb_bsize;
	be32 sb_bsize_shift;
	be32 __pad1;
	struct gfs2_inum sb_master_dir;
	struct gfs2_inum __pad2;
	struct gfs2_inum sb_root_dir;
	char sb_lockproto[GFS2_LOCKNAME_LEN];
	char sb_locktable[GFS2_LOCKNAME_LEN];
	struct gfs2_inum __pad3;
	struct gfs2_inum __pad4;
	uint8_t sb_uuid[16];
};

struct gfs2_rindex {
	be64 ri_addr;
	be32 ri_length;
	be32 __pad;
	be64 ri_data0;
	be32 ri_data;
	be32 ri_bitbytes;
	uint8_t ri_reserved[64];
};

#define GFS2_NBBY 4u /* blocks per bitmap byte */
enum gfs2_blkst {
	GFS2_BLKST_FREE = 0,
	GFS2_BLKST_USED = 1,
	GFS2_BLKST_UNLINKED = 2,
	GFS2_BLKST_DINODE = 3,
};

#define GFS2_RGF_NOALLOC 0x00000008u
#define GFS2_RGF_TRIMMED 0x00000010u

struct gfs2_rgrp {
	struct gfs2_meta_header rg_header;
	be32 rg_flags;
	be32 rg_free;
	be32 rg_dinodes;
	be32 rg_skip;
	be64 rg_igeneration;
	be64 rg_data0;
	be32 rg_data;
	be32 rg_bitbytes;
	be32 rg_crc;
	uint8_t rg_reserved[60];
};

struct gfs2_quota {
	be64 qu_limit;
	be64 qu_warn;
	be64 qu_value;
	uint8_t qu_reserved[64];
};

#define GFS2_DIF_JDATA 0x00000001u
#define GFS2_DIF_EXHASH 0x00000002u
#define GFS2_DIF_EA_INDIRECT 0x00000008u
#define GFS2_DIF_DIRECTIO 0x00000010u
#define GFS2_DIF_IMMUTABLE 0x00000020u
#define GFS2_DIF_APPENDONLY 0x00000040u
#define GFS2_DIF_NOATIME 0x00000080u
#define GFS2_DIF_SYNC 0x00000100u
#define GFS2_DIF_SYSTEM 0x00000200u
#define GFS2_DIF_TOPDIR 0x00000400u
#define GFS2_DIF_TRUNC_IN_PROG 0x20000000u
#define GFS2_DIF_INHERIT_JDATA 0x80000000u

struct gfs2_dinode {
	struct gfs2_meta_header di_header;
	struct gfs2_inum di_num;
	be32 di_mode;
	be32 di_uid;
	be32 di_gid;
	be32 di_nlink;
	be64 di_size;
	be64 di_blocks;
	be64 di_atime;
	be64 di_mtime;
	be64 di_ctime;
	be32 di_major;
	be32 di_minor;
	be64 di_goal_meta;
	be64 di_goal_data;
	be64 di_generation;
	be32 di_flags;
	be32 di_payload_format;
	be16 __pad1;
	be16 di_height;
	be32 __pad2;
	be16 __pad3;
	be16 di_depth;
	be32 di_entries;
	struct gfs2_inum __pad4;
	be64 di_eattr;
	be32 di_atime_nsec;
	be32 di_mtime_nsec;
	be32 di_ctime_nsec;
	uint8_t di_reserved[44];
};

struct gfs2_dirent {
	struct gfs2_inum de_inum;
	be32 de_hash;
	be16 de_rec_len;
	be16 de_name_len;
	be16 de_type;
	be16 de_rahead;
	be32 de_cookie;
	uint8_t pad3[8];
};

/* Smallest record for a name of this length, in bytes. */
#define GFS2_DIRENT_SIZE(name_len) \
	((uint32_t)((sizeof(struct gfs2_dirent) + (name_len) + 7) & ~7ul))

struct gfs2_leaf {
	struct gfs2_meta_header lf_header;
	be16 lf_depth;
	be16 lf_entries;
	be32 lf_dirent_format;
	be64 lf_next;
	be64 lf_inode;
	be32 lf_dist;
	be32 lf_nsec;
	be64 lf_sec;
	uint8_t lf_reserved2[40];
};

enum gfs2_eatype {
	GFS2_EATYPE_UNUSED = 0,
	GFS2_EATYPE_USR = 1,
	GFS2_EATYPE_SYS = 2,
	GFS2_EATYPE_SECURITY = 3,
	GFS2_EATYPE_TRUSTED = 4,
};
#define GFS2_EAFLAG_LAST 0x01u

struct gfs2_ea_header {
	be32 ea_rec_len;
	be32 ea_data_len;
	uint8_t ea_name_len;
	uint8_t ea_type;
	uint8_t ea_flags;
	uint8_t ea_num_ptrs;
	be32 __pad;
};

#define GFS2_LOG_HEAD_UNMOUNT 0x00000001u
#define GFS2_LOG_HEAD_FLUSH_NORMAL 0x00000002u
#define GFS2_LOG_HEAD_FLUSH_SYNC 0x00000004u
#define GFS2_LOG_HEAD_FLUSH_SHUTDOWN 0x00000008u
#define GFS2_LOG_HEAD_FLUSH_FREEZE 0x00000010u
#define GFS2_LOG_HEAD_RECOVERY 0x00000020u
#define GFS2_LOG_HEAD_USERSPACE 0x80000000u

struct gfs2_log_header {
	struct gfs2_meta_header lh_header;
	be64 lh_sequence;
	be32 lh_flags;
	be32 lh_tail;
	be32 lh_blkno;
	be32 lh_hash;
	be32 lh_crc;
	be32 lh_nsec;
	be64 lh_sec;
	be64 lh_addr;
	be64 lh_jinode;
	be64 lh_statfs_addr;
	be64 lh_quota_addr;
	be64 lh_local_total;
	be64 lh_local_free;
	be64 lh_local_dinodes;
};

enum gfs2_log_desc_type {
	GFS2_LOG_DESC_METADATA = 300,
	GFS2_LOG_DESC_REVOKE = 301,
	GFS2_LOG_DESC_JDATA = 302,
};

struct gfs2_log_descriptor {
	struct gfs2_meta_header ld_header;
	be32 ld_type;
	be32 ld_length;
	be32 ld_data1;
	be32 ld_data2;
	uint8_t ld_reserved[32];
};

struct gfs2_inum_range {
	be64 ir_start;
	be64 ir_length;
};

struct gfs2_statfs_change {
	be64 sc_total;
	be64 sc_free;
	be64 sc_dinodes;
};

struct gfs2_quota_change {
	be64 qc_change;
	be32 qc_flags;
	be32 qc_id;
};

/*
 * Derived constants of one block size. Filled once by gfs2_geom_init().
 * Source: docs/spec/gfs2-ondisk.md 1.1, 3.5.
 */
struct gfs2_geom {
	uint32_t bsize;
	uint32_t bshift;
	uint32_t diptrs;	 /* pointers in a dinode */
	uint32_t inptrs;	 /* pointers in an indirect block */
	uint32_t ldptrs;	 /* 8-byte slots in a log descriptor */
	uint32_t jbsize;	 /* payload of a block with a header */
	uint32_t stuffed_max;	 /* bytes that fit in the dinode */
	uint32_t hash_ptrs;	 /* entries of the first hash table */
	uint32_t hash_depth_min; /* log2 of it */
	uint32_t qc_per_block;
	uint32_t rg_blocks_first; /* blocks mapped by an rgrp header block */
	uint32_t rg_blocks_next;  /* blocks mapped by a further bitmap block */
	uint32_t height_max;	  /* highest usable height */
	uint64_t size_at_height[GFS2_HEIGHT_MAX + 1]; /* bytes, saturating */
};

/*
 * Returns 0, or -EINVAL if bsize is not a power of two between
 * GFS2_BSIZE_MIN and GFS2_BSIZE_MAX.
 */
int gfs2_geom_init(struct gfs2_geom *geom, uint32_t bsize);

#endif
