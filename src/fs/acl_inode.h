/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * acl_inode.h - access control lists of inodes: set, followed by chmod,
 * inherited. Without the acl option there are none.
 *
 * The kernel decides by them who may do what: it asks for the list
 * (fs_getxattr()) and keeps it until the inode is recalled.
 * Source: docs/spec/gfs2-ondisk.md 5.6, POSIX.1e draft 17, 23.3.
 */
#ifndef UG_FS_ACL_INODE_H
#define UG_FS_ACL_INODE_H

#include "fs/xattr.h"

/*
 * Set a list (or remove it: no entries); the mode follows an access list, and a
 * list that says no more than the mode is not stored. flags: those of
 * fs_setxattr(). Glock EX held. As fs_setxattr(), and -EOPNOTSUPP a symlink,
 * -EACCES a default list of what is no directory, -EINVAL no list, -E2BIG.
 */
int acl_set(const struct fs_req *req, struct inode *ip,
	    const struct xattr_key *key, const void *value, uint32_t size,
	    int flags);

/* The list follows a mode that is about to be set. */
struct acl_chmod {
	void *ac_value; /* NULL: there is none, all below is unused */
	struct xattr_key ac_key;
	struct xattr_change ac_change;
};
/*
 * Glock EX held. As xattr_change_plan(), and -EINVAL what is stored is no list.
 * Then within the transaction xattr_change_apply() of ac_change, if any;
 * acl_chmod_release() in any case.
 */
int acl_chmod_plan(struct inode *ip, uint32_t mode, bool nowait,
		   struct acl_chmod *ac);
unsigned acl_chmod_blocks(const struct acl_chmod *ac);
void acl_chmod_release(struct acl_chmod *ac);

/* What a new inode gets of its directory. */
struct acl_legacy {
	uint32_t al_mode;   /* with umask or list applied */
	uint32_t al_blocks; /* to be allocated */
	void *al_access;    /* NULL: none */
	void *al_default;   /* NULL: none */
	uint32_t al_size;   /* of each */
};
/* i_lock of the directory held (reading). -EINVAL as above. */
int acl_legacy_plan(struct inode *dir, uint32_t mode, uint32_t umask,
		    bool nowait, struct acl_legacy *al);
/* In the transaction that makes ip, al_blocks from hold. Errors: withdraw. */
int acl_legacy_apply(struct trans *tr, struct inode *ip,
		     const struct acl_legacy *al, struct rgrp_hold *hold);
void acl_legacy_release(struct acl_legacy *al);

#endif
