/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * xattr.h - extended attributes of an inode: finding, reading, changing.
 *
 *	xattr_name.c	names as programs write them, and as the disk does
 *	xattr_read.c	walking the blocks; values
 *	xattr_change.c	setting and removing, in one transaction each
 *	xattr.c		what a front end calls (fs.h)
 *
 * The blocks are metadata of the inode, under its glock; a reader holds i_lock
 * as well, as for everything else that transactions change.
 * Source: docs/spec/gfs2-ondisk.md 5.
 */
#ifndef UG_FS_XATTR_H
#define UG_FS_XATTR_H

#include "fs/inode.h"
#include "fs/rgrp.h"

#define XATTR_ACL_ACCESS "system.posix_acl_access"
#define XATTR_ACL_DEFAULT "system.posix_acl_default"
#define XATTR_CAPABILITY "security.capability"

/* ---- names ---- */

/* A name without its prefix, which is the type; text is borrowed. */
struct xattr_key {
	uint8_t type; /* GFS2_EATYPE_* */
	uint8_t len;
	const char *text; /* not terminated */
};

/*
 * -EOPNOTSUPP: no such name space, or none of this volume; of "system." there
 * are ACLs only, with the acl option. -EINVAL nothing behind the prefix,
 * -ERANGE too long.
 */
int xattr_key_parse(const struct fs *fs, const char *name,
		    struct xattr_key *key);
/* One of the three above, whatever the options. */
struct xattr_key xattr_key_of(const char *name);
bool xattr_key_is(const struct xattr_key *key, const char *name);
/*
 * The prefix of what is on disk; NULL if the user has no such attribute:
 * "system." other than xattr_key_parse() takes, "trusted." of another than
 * root.
 */
const char *xattr_prefix(const struct fs_req *req, const struct fs *fs,
			 const struct xattr_key *key);

/* ---- reading: i_lock held (reading) ---- */

/* A record; its block is referenced. */
struct xattr_place {
	struct buf *b; /* NULL: none */
	uint32_t off;
	struct gfs2_ea_info ea;
};

/*
 * Call fn for each block of records, checked, until it returns something else
 * than 0, which is returned. -EAGAIN with nowait; -EUCLEAN, -EIO, -ENOMEM.
 */
int xattr_each_block(struct inode *ip, bool nowait,
		     int (*fn)(struct inode *ip, struct buf *b, void *arg),
		     void *arg);

/* The record at off of such a block: it has been found sound. */
void xattr_record(const struct inode *ip, const struct buf *b, uint32_t off,
		  struct gfs2_ea_info *ea);

/* -ENODATA, else as xattr_each_block(). The block is the caller's to put. */
int xattr_find(struct inode *ip, const struct xattr_key *key, bool nowait,
	       struct xattr_place *place);

/* All of the value, place->ea.data_len bytes; nothing is written on error. */
int xattr_value(struct inode *ip, const struct xattr_place *place, bool nowait,
		void *value);

/* ---- changing ---- */

/* One change, planned. */
struct xattr_change {
	const struct xattr_key *xc_key;
	const void *xc_value; /* NULL: remove */
	uint32_t xc_size;
	bool xc_set_mode; /* the caller's: with it in one transaction */
	uint32_t xc_mode; /* all of i_mode */

	struct xattr_place xc_old; /* what is there */
	bool xc_retires;	   /* its value has blocks to be freed */
	struct buf *xc_room; /* the block that has room; NULL: a new one */
	struct buf *xc_ind;  /* and then the indirect block, if any */
	uint32_t xc_slot;    /* in that */
	uint32_t xc_rec_len;
	unsigned xc_ptrs;
	uint32_t xc_alloc; /* blocks to be taken from xc_from */
	struct rgrp_hold *xc_from;
	struct rgrp_hold xc_hold; /* the usual one */
};

/*
 * Prepare to set (or, value NULL, remove) an attribute. Glock EX held, i_lock
 * not. flags: XATTR_CREATE, XATTR_REPLACE. Key and value stay the caller's,
 * until xattr_change_release(), which follows also after an error. -ENODATA,
 * -EEXIST, -ERANGE no block can hold the record, -ENOSPC; -EAGAIN with
 * nowait; -EUCLEAN, -EIO, -ENOMEM.
 */
int xattr_change_plan(struct inode *ip, const struct xattr_key *key,
		      const void *value, uint32_t size, int flags, bool nowait,
		      struct xattr_change *ch);
/* Blocks that a transaction counts for it, the dinode not among them. */
unsigned xattr_change_blocks(const struct xattr_change *ch);
/*
 * Do it, with i_lock held for writing; the caller logs the inode afterwards. An
 * error is the end of the volume: withdraw before the transaction ends.
 */
int xattr_change_apply(struct trans *tr, struct inode *ip,
		       struct xattr_change *ch);
/* After trans_end(): free what the old value had; xc_hold has been dropped. */
void xattr_change_finish(struct inode *ip, struct xattr_change *ch);
void xattr_change_release(struct xattr_change *ch);

/* All of it as one transaction, with ctime, and durable if it must be. */
int xattr_change_commit(const struct fs_req *req, struct inode *ip,
			struct xattr_change *ch);

/*
 * A write, a truncation or a change of owner: what the file could do as a
 * program goes first. Glock EX held. The common case costs nothing.
 */
int xattr_drop_capability(const struct fs_req *req, struct inode *ip);
/* Would it have to look? */
bool xattr_may_have_capability(const struct inode *ip);

#endif
