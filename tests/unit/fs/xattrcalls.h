/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * xattrcalls.h - attributes of an inode by its node id, on a given mount.
 */
#ifndef TESTS_UNIT_FS_XATTRCALLS_H
#define TESTS_UNIT_FS_XATTRCALLS_H

#include <sys/xattr.h>

#include "tests/unit/fs/names.h"

static inline int set_attr(struct volume *v, uint64_t id, const char *name,
			   const void *value, size_t size, int flags)
{
	struct inode *ip = node(v, id);
	int err = fs_setxattr(&volume_req, ip, name, value, size, flags);

	inode_put(ip);
	return err;
}

static inline int remove_attr(struct volume *v, uint64_t id, const char *name)
{
	struct inode *ip = node(v, id);
	int err = fs_removexattr(&volume_req, ip, name);

	inode_put(ip);
	return err;
}

static inline ssize_t get_attr(struct volume *v, uint64_t id, const char *name,
			       void *buf, size_t size)
{
	struct inode *ip = node(v, id);
	ssize_t n = fs_getxattr(&volume_req, ip, name, buf, size);

	inode_put(ip);
	return n;
}

static inline ssize_t list_attrs(struct volume *v, uint64_t id, char *buf,
				 size_t size)
{
	struct inode *ip = node(v, id);
	ssize_t n = fs_listxattr(&volume_req, ip, buf, size);

	inode_put(ip);
	return n;
}

#endif
