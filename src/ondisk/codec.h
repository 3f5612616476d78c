/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * codec.h - the format in and out of blocks: decode, encode, check.
 *
 * Pure: no I/O, no allocation, no state; safe from any thread. Total: whatever
 * the bytes of a block are, a decoder reads only inside it and returns 0 or
 * -EUCLEAN. Outputs are written on success only. Blocks are bsize bytes at
 * any alignment and stay the caller's.
 *
 * Functions with why and why_len put a sentence there when they fail: what is
 * wrong, what was found, what was expected. why may be NULL.
 *
 * Encoders write the fields they know and leave __pad and reserved bytes as
 * they are; a new block begins zeroed. They keep mh_jid: the journal sets it.
 * Source: docs/spec/gfs2-ondisk.md.
 */
#ifndef UG_ONDISK_CODEC_H
#define UG_ONDISK_CODEC_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/compiler.h"
#include "ondisk/ondisk.h"

/* ---- metadata header: 1.3 ---------------------------------------------- */

/* 0, or -EUCLEAN if the block does not begin with the magic and this type. */
int gfs2_check_meta(const void *block, enum gfs2_metatype type);

/* The type of a metadata block; GFS2_METATYPE_NONE without the magic. */
uint32_t gfs2_meta_type(const void *block);

/* Write a header of this type: format derived from it, jid 0. */
void gfs2_meta_init(void *block, enum gfs2_metatype type);

/* What the writer of a journaled block stamps into its header. */
void gfs2_meta_set_jid(void *block, uint32_t jid);

/* "dinode", "resource group header", ...; "unknown block" for others. */
const char *gfs2_metatype_name(uint32_t type);

/* ---- superblock: 2.1 --------------------------------------------------- */

struct gfs2_sb_info {
	uint32_t fs_format;
	uint32_t multihost_format;
	uint32_t bsize;
	uint32_t bsize_shift;
	uint64_t master_formal;
	uint64_t master_addr;
	uint64_t root_formal;
	uint64_t root_addr;
	char lockproto[GFS2_LOCKNAME_LEN + 1]; /* terminated */
	char locktable[GFS2_LOCKNAME_LEN + 1]; /* terminated */
	uint8_t uuid[16];
};

/*
 * buf holds len bytes read at GFS2_SB_OFFSET_BYTES.
 *
 * Returns 0; -EINVAL if this is no GFS2 volume or one that we cannot use (no
 * magic, GFS1, another format, blocks beyond GFS2_BSIZE_MAX, len too small);
 * -EUCLEAN if it is a damaged one, or one that fsck is or was working on.
 * Which lock protocols exist is the caller's business.
 */
int gfs2_sb_decode(const void *buf, size_t len, struct gfs2_sb_info *out,
		   char *why, size_t why_len);

/* Writes 512 bytes: the superblock and zeroes. */
void gfs2_sb_encode(const struct gfs2_sb_info *sb, void *block_512);

/* ---- dinode: 3.1 ------------------------------------------------------- */

struct gfs2_time {
	int64_t sec;
	uint32_t nsec; /* as found on disk: may be a billion or more */
};

struct gfs2_dinode_info {
	uint64_t formal;
	uint64_t addr;
	uint32_t mode;
	uint32_t uid;
	uint32_t gid;
	uint32_t nlink;
	uint64_t size;	 /* bytes, at most INT64_MAX */
	uint64_t blocks; /* file system blocks */
	struct gfs2_time atime;
	struct gfs2_time mtime;
	struct gfs2_time ctime;
	uint32_t rdev_major;
	uint32_t rdev_minor;
	uint64_t goal_meta;
	uint64_t goal_data;
	uint64_t generation;
	uint32_t flags; /* GFS2_DIF_* */
	uint32_t payload_format;
	uint16_t height;
	uint16_t depth;
	uint32_t entries;
	uint64_t eattr; /* block address, 0 = none */
};

/*
 * addr is where the block was read. Returns 0 or -EUCLEAN (3.1: wrong block
 * type or address, impossible height, depth, size or file type).
 */
int gfs2_dinode_decode(const struct gfs2_geom *geom, const void *block,
		       uint64_t addr, struct gfs2_dinode_info *out, char *why,
		       size_t why_len);

/* Writes the fields of the first 232 bytes; the payload is not touched. */
void gfs2_dinode_encode(const struct gfs2_dinode_info *di, void *block);

/* ---- pointer tree: 3.5 ------------------------------------------------- */

/*
 * The smallest height, at least 1, that maps logical block lblock; -EFBIG if
 * its end lies beyond the greatest file size, 2^63 - 1.
 */
int gfs2_height_for(const struct gfs2_geom *geom, uint64_t lblock);

/*
 * The way to lblock in a tree of this height (1 to height_max): path[0] is
 * the index in the dinode, path[height - 1] that in the last pointer block.
 * Returns height, or 0 if a tree of this height does not reach lblock.
 */
unsigned gfs2_tree_path(const struct gfs2_geom *geom, unsigned height,
			uint64_t lblock, uint16_t path[GFS2_HEIGHT_MAX]);

/* geom->diptrs pointers; also the first table of an exhash directory. */
static inline be64 *gfs2_dinode_ptrs(void *block)
{
	return (be64 *)((char *)block + sizeof(struct gfs2_dinode));
}

/* geom->inptrs pointers: of IN, JD and EA indirect blocks, slots of LB. */
static inline be64 *gfs2_indirect_ptrs(void *block)
{
	return (be64 *)((char *)block + sizeof(struct gfs2_meta_header));
}

/* geom->stuffed_max bytes: stuffed data, or entries of a linear directory. */
static inline void *gfs2_dinode_area(void *block)
{
	return (char *)block + sizeof(struct gfs2_dinode);
}

/* ---- directory entries: 4.2, 4.4 ---------------------------------------
 *
 * An area is what the records of one block tile: behind the dinode or the
 * leaf header. Offsets count from its start. Everything below that takes an
 * area keeps inside it, whatever its bytes are.
 */

uint32_t gfs2_name_hash(const char *name, unsigned len);

/* Slot of the hash table; depth at most GFS2_HASH_DEPTH_MAX. */
static inline uint32_t gfs2_hash_index(uint32_t hash, unsigned depth)
{
	return depth ? hash >> (32 - depth) : 0;
}

/* An unused record: either word of its inum is zero. */
static inline bool gfs2_dirent_is_sentinel(const struct gfs2_dirent *de)
{
	return de->de_inum.no_addr.raw == 0 ||
	       de->de_inum.no_formal_ino.raw == 0;
}

/* de_name_len bytes, not terminated. */
static inline const char *gfs2_dirent_name(const struct gfs2_dirent *de)
{
	return (const char *)(de + 1);
}

/*
 * The whole chain of block bytes [start_off, end_off): each record sound, the
 * last one ending exactly at the end, none but the first unused. Hashes are
 * not computed. Returns 0 or -EUCLEAN.
 */
int gfs2_dirents_check(const void *block, uint32_t start_off, uint32_t end_off);

/*
 * The record at off, checked by itself: 0 and *out, or -EUCLEAN. Walk with
 * off += be16_get(de->de_rec_len) while off < area_len.
 */
int gfs2_dirent_at(const void *area, uint32_t area_len, uint32_t off,
		   const struct gfs2_dirent **out);

/*
 * Find a name. Returns its record, with *off its offset and *prev_off that of
 * the record before it (meaningless if *off is 0), *err 0; or NULL with
 * *err 0 if it is not there, or -EUCLEAN. off and prev_off may be NULL.
 */
const struct gfs2_dirent *gfs2_dirent_search(const void *area,
					     uint32_t area_len, uint32_t hash,
					     const char *name, unsigned len,
					     uint32_t *off, uint32_t *prev_off,
					     int *err);

/* There is room for a name of this length (1 to GFS2_NAME_MAX). */
bool gfs2_dirent_fits(const void *area, uint32_t area_len, unsigned len);

/*
 * Add a name that is not there yet; neither formal nor addr is 0, type is the
 * mode's type bits >> 12. The caller may still set de_rahead. NULL, with
 * nothing changed, if there is no room; an area whose chain is broken has no
 * room either (the search before has reported it).
 */
struct gfs2_dirent *gfs2_dirent_insert(void *area, uint32_t area_len,
				       const char *name, unsigned len,
				       uint32_t hash, uint64_t formal,
				       uint64_t addr, uint16_t type);

/* Remove the record that gfs2_dirent_search() has just found there. */
void gfs2_dirent_delete(void *area, uint32_t area_len, uint32_t off,
			uint32_t prev_off);

/* No entries: zeroes and one unused record. */
void gfs2_dirent_init_area(void *area, uint32_t area_len);

/* "." and ".." of a new directory: 4.3. */
void gfs2_dirent_init_dir(void *area, uint32_t area_len, uint64_t formal,
			  uint64_t addr, uint64_t parent_formal,
			  uint64_t parent_addr);

/* ---- leaf: 4.5 --------------------------------------------------------- */

struct gfs2_leaf_info {
	uint16_t depth;
	uint16_t entries;
	uint64_t next;	       /* block address, 0 = last of the chain */
	uint64_t inode;	       /* address of the directory; 0 in old leaves */
	uint32_t dist;	       /* 1 = hangs on the table; 0 in old leaves */
	struct gfs2_time time; /* of the last insert or delete */
};

static inline void *gfs2_leaf_area(void *block)
{
	return (char *)block + sizeof(struct gfs2_leaf);
}

static inline uint32_t gfs2_leaf_area_len(const struct gfs2_geom *geom)
{
	return geom->bsize - (uint32_t)sizeof(struct gfs2_leaf);
}

/* The header only: 0, or -EUCLEAN (type, depth, more entries than fit). */
int gfs2_leaf_decode(const struct gfs2_geom *geom, const void *block,
		     struct gfs2_leaf_info *out);

void gfs2_leaf_encode(const struct gfs2_leaf_info *leaf, void *block);

/* The whole block anew: header, zeroes, one unused record. */
void gfs2_leaf_init(const struct gfs2_geom *geom,
		    const struct gfs2_leaf_info *leaf, void *block);

/* Header, chain, and that lf_entries counts its live entries: 0, -EUCLEAN. */
int gfs2_leaf_check(const struct gfs2_geom *geom, const void *block);

/* ---- resource groups: 6.1, 6.2 ----------------------------------------- */

struct gfs2_rindex_info {
	uint64_t addr;
	uint32_t length; /* header and bitmap blocks */
	uint64_t data0;
	uint32_t data; /* data blocks */
	uint32_t bitbytes;
};

/* 0, or -EUCLEAN if the numbers contradict each other. */
int gfs2_rindex_decode(const struct gfs2_geom *geom, const void *entry,
		       struct gfs2_rindex_info *out);

/* Writes all 96 bytes. */
void gfs2_rindex_encode(const struct gfs2_rindex_info *ri, void *entry);

/* Header and bitmap blocks that data blocks need. */
uint32_t gfs2_rgrp_length_for(const struct gfs2_geom *geom, uint32_t data);

/*
 * The group that fills total blocks from addr on; the rule of mkfs, which can
 * leave some blocks at the end unused. Returns 0, or -EINVAL if total is too
 * small to hold any data.
 */
int gfs2_rgrp_layout(const struct gfs2_geom *geom, uint64_t addr,
		     uint32_t total, struct gfs2_rindex_info *out);

struct gfs2_rgrp_info {
	uint32_t flags; /* GFS2_RGF_* */
	uint32_t free;
	uint32_t dinodes; /* in state "dinode" or "unlinked" */
	uint32_t skip;	  /* blocks to the next group, 0 = last or unknown */
	uint64_t igeneration;
	uint64_t data0; /* copies of the rindex entry; 0 in old groups */
	uint32_t data;
	uint32_t bitbytes;
};

/*
 * The header block of group ri. 0, or -EUCLEAN: wrong type, wrong checksum
 * (0 means none), counters that exceed the group. The copies of rindex fields
 * are handed out unchecked, as nobody relies on them.
 */
int gfs2_rgrp_decode(const void *block, const struct gfs2_rindex_info *ri,
		     struct gfs2_rgrp_info *out);

/*
 * Writes the fields, and last the checksum, which covers mh_jid as well: set
 * that first, or seal the block again after it.
 */
void gfs2_rgrp_encode(const struct gfs2_rgrp_info *rg, void *block);

/* Compute rg_crc over the header as it stands. */
void gfs2_rgrp_seal(void *block);

/*
 * Where block n of the group (address data0 + n) has its two bits: block of
 * the group, byte within that block, shift within that byte.
 */
void gfs2_rgrp_bitpos(const struct gfs2_geom *geom, uint32_t n, unsigned *block,
		      unsigned *byte, unsigned *shift);

/*
 * The part of the bitmap in block index (0 = header) of group ri: it begins
 * at byte *start of the block and describes *count blocks from *first on.
 */
void gfs2_rgrp_bitmap_span(const struct gfs2_geom *geom,
			   const struct gfs2_rindex_info *ri, unsigned index,
			   unsigned *start, uint32_t *first, uint32_t *count);

static inline enum gfs2_blkst gfs2_bitmap_get(const void *block, unsigned byte,
					      unsigned shift)
{
	return (enum gfs2_blkst)((((const uint8_t *)block)[byte] >> shift) & 3);
}

static inline void gfs2_bitmap_set(void *block, unsigned byte, unsigned shift,
				   enum gfs2_blkst state)
{
	uint8_t *p = (uint8_t *)block + byte;

	*p = (uint8_t)((*p & ~(3u << shift)) | ((unsigned)state << shift));
}

/* How many of the count blocks that begin with bits' lowest are in state. */
uint32_t gfs2_bitmap_count(const uint8_t *bits, uint32_t count,
			   enum gfs2_blkst state);

/* First of the blocks [from, count) in state, or count if there is none. */
uint32_t gfs2_bitmap_find(const uint8_t *bits, uint32_t from, uint32_t count,
			  enum gfs2_blkst state);

/* ---- journal: 7.2, 7.3 ------------------------------------------------- */

struct gfs2_lh_info {
	uint32_t jid; /* of the writer */
	bool v2;      /* false: what follows blkno is not there and reads 0 */
	uint64_t sequence;
	uint32_t flags; /* GFS2_LOG_HEAD_* */
	uint32_t tail;
	uint32_t blkno;
	struct gfs2_time time;
	uint64_t addr;
	uint64_t jinode;
	uint64_t statfs_addr;
	uint64_t quota_addr;
	int64_t local_total;
	int64_t local_free;
	int64_t local_dinodes;
};

/*
 * 0, or -EUCLEAN if the block is no valid log header: type, hash, checksum.
 * That blkno is the block's position is for the caller to compare.
 */
int gfs2_lh_decode(const struct gfs2_geom *geom, const void *block,
		   struct gfs2_lh_info *out);

/* Writes the whole block: fields, zeroes to the end, hash and checksum. */
void gfs2_lh_encode(const struct gfs2_geom *geom, const struct gfs2_lh_info *lh,
		    void *block);

struct gfs2_ld_info {
	uint32_t type;	 /* enum gfs2_log_desc_type; readers skip others */
	uint32_t length; /* blocks to the next descriptor or header */
	uint32_t data1;	 /* entries */
};

/* Journal blocks of a descriptor with n entries, itself included. */
uint32_t gfs2_ld_length_for(const struct gfs2_geom *geom,
			    enum gfs2_log_desc_type type, uint32_t n);

/*
 * 0, or -EUCLEAN: not a descriptor, length 0, more entries than one holds, a
 * length that does not fit the entries.
 */
int gfs2_ld_decode(const struct gfs2_geom *geom, const void *block,
		   struct gfs2_ld_info *out);

/* Writes the whole block, slots zero. */
void gfs2_ld_encode(const struct gfs2_geom *geom, const struct gfs2_ld_info *ld,
		    void *block);

/* geom->ldptrs slots: an address each, or pairs of address and escape flag. */
static inline be64 *gfs2_ld_slots(void *block)
{
	return (be64 *)((char *)block + sizeof(struct gfs2_log_descriptor));
}

/* ---- statfs, quota: 6.8, 8 --------------------------------------------- */

struct gfs2_statfs_info {
	int64_t total;
	int64_t free;
	int64_t dinodes;
};

void gfs2_statfs_decode(const void *entry, struct gfs2_statfs_info *out);
void gfs2_statfs_encode(const struct gfs2_statfs_info *sc, void *entry);

struct gfs2_quota_info {
	uint64_t limit; /* file system blocks, 0 = none */
	uint64_t warn;
	int64_t value;
};

void gfs2_quota_decode(const void *entry, struct gfs2_quota_info *out);
void gfs2_quota_encode(const struct gfs2_quota_info *qu, void *entry);

#define GFS2_QCF_USER 0x1u /* else a group */

struct gfs2_quota_change_info {
	int64_t change; /* file system blocks; 0: the slot is free */
	uint32_t flags;
	uint32_t id;
};

void gfs2_quota_change_decode(const void *slot,
			      struct gfs2_quota_change_info *out);
void gfs2_quota_change_encode(const struct gfs2_quota_change_info *qc,
			      void *slot);

/* ---- extended attributes: 5.1, 5.2 ------------------------------------- */

#define GFS2_EA_DATA_MAX 65536u

struct gfs2_ea_info {
	uint32_t rec_len;
	uint32_t data_len;
	uint8_t name_len;
	uint8_t type; /* GFS2_EATYPE_UNUSED: nothing but rec_len has meaning */
	uint8_t num_ptrs; /* 0 = the value is inline */
	bool last;
	const char *name;     /* name_len bytes of the block */
	const uint8_t *value; /* inline: data_len bytes of the block */
	const be64 *ptrs;     /* else num_ptrs ED blocks */
};

/* First record of an EA block. Walk with off += rec_len until last. */
#define GFS2_EA_FIRST_OFF ((uint32_t)sizeof(struct gfs2_meta_header))

/*
 * The record at byte off of an EA block: 0 and *out, or -EUCLEAN. fs_format
 * decides which types exist (1.4).
 */
int gfs2_ea_at(const struct gfs2_geom *geom, const void *block,
	       uint32_t fs_format, uint32_t off, struct gfs2_ea_info *out);

/* The whole block, header included: 0 or -EUCLEAN. */
int gfs2_ea_check(const struct gfs2_geom *geom, const void *block,
		  uint32_t fs_format);

/*
 * Smallest record for an attribute, in bytes, and the number of ED blocks of
 * its value. 0; -ERANGE if no block can hold it, its name is empty or too
 * long, or its value too big.
 */
int gfs2_ea_size(const struct gfs2_geom *geom, unsigned name_len,
		 uint32_t data_len, uint32_t *rec_len, unsigned *num_ptrs);

/*
 * Changing a block (ea_change.c). It has passed gfs2_ea_check(), and offsets
 * are those of its records.
 *
 * The first record with room for a new one of that length (gfs2_ea_size());
 * false: none. A retired record has none.
 */
bool gfs2_ea_room(const void *block, uint32_t rec_len, uint32_t *off);
/*
 * Enter a record there: type, name, and value or num_ptrs pointers, which are
 * 0 at first (last and rec_len do not matter). Returns where it is.
 */
uint32_t gfs2_ea_insert(void *block, uint32_t off,
			const struct gfs2_ea_info *ea);
/* The record has no ED blocks (any more): it goes, its bytes are free. */
void gfs2_ea_remove(void *block, uint32_t off);
/*
 * It does not count any more, but still leads to its ED blocks, until they are
 * freed.
 */
void gfs2_ea_retire(void *block, uint32_t off);
/* The pointers of a record, live or retired. */
be64 *gfs2_ea_ptrs(void *block, uint32_t off, unsigned *count);

/* The whole block anew: header, zeroes, one unused record. */
void gfs2_ea_init(const struct gfs2_geom *geom, void *block);

#endif
