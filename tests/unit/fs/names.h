/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * names.h - short ways to work on names of a test volume, by node id.
 *
 * Node ids are dinode addresses, so a test may keep them over a remount. No
 * lookup is kept counted, but for directories that a test has opened.
 */
#ifndef TESTS_UNIT_FS_NAMES_H
#define TESTS_UNIT_FS_NAMES_H

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include <cmocka.h>

#include "base/prng.h"
#include "fs/fs.h"
#include "tests/unit/fs/volume.h"

#define ROOT FS_ROOT_NODEID

/* Referenced; to be inode_put(). */
static inline struct inode *node(struct volume *v, uint64_t id)
{
	struct inode *ip = fs_inode_get(v->fs, id);
	struct fs_entry e;

	if (!ip && !fs_lookup_nodeid(v->fs, &volume_req, id, &e)) {
		ip = fs_inode_get(v->fs, id);
		fs_forget(v->fs, id, 1);
	}
	assert_non_null(ip);
	return ip;
}

static inline int try_make(struct volume *v, const struct fs_req *req,
			   uint64_t dir, const struct fs_make *mk,
			   struct fs_entry *e)
{
	struct inode *d = node(v, dir);
	int err = fs_make(req, d, mk, e);

	if (!err)
		fs_forget(v->fs, e->nodeid, 1);
	inode_put(d);
	return err;
}

/* 0 and *id, or the error. */
static inline int make_as(struct volume *v, uint64_t dir, const char *name,
			  uint32_t mode, uint64_t *id)
{
	const struct fs_make mk = {
		.name = name,
		.len = strlen(name),
		.mode = mode,
		.target = "target",
		.target_len = 6,
	};
	struct fs_entry e;
	int err = try_make(v, &volume_req, dir, &mk, &e);

	if (!err && id)
		*id = e.nodeid;
	return err;
}

static inline uint64_t make_file(struct volume *v, uint64_t dir,
				 const char *name)
{
	uint64_t id = 0;

	assert_int_equal(make_as(v, dir, name, S_IFREG | 0644, &id), 0);
	return id;
}

static inline uint64_t make_dir(struct volume *v, uint64_t dir,
				const char *name)
{
	uint64_t id = 0;

	assert_int_equal(make_as(v, dir, name, S_IFDIR | 0755, &id), 0);
	return id;
}

static inline int look(struct volume *v, uint64_t dir, const char *name,
		       struct fs_entry *e)
{
	struct inode *d = node(v, dir);
	int err = fs_lookup(&volume_req, d, name, strlen(name), e);

	if (!err)
		fs_forget(v->fs, e->nodeid, 1);
	inode_put(d);
	return err;
}

static inline int unlink_name(struct volume *v, uint64_t dir, const char *name)
{
	struct inode *d = node(v, dir);
	int err = fs_unlink(&volume_req, d, name, strlen(name));

	inode_put(d);
	return err;
}

static inline int rmdir_name(struct volume *v, uint64_t dir, const char *name)
{
	struct inode *d = node(v, dir);
	int err = fs_rmdir(&volume_req, d, name, strlen(name));

	inode_put(d);
	return err;
}

static inline int rename_flags(struct volume *v, uint64_t from, const char *old,
			       uint64_t to, const char *new, unsigned flags)
{
	struct inode *a = node(v, from), *b = node(v, to);
	int err = fs_rename(&volume_req, a, old, strlen(old), b, new,
			    strlen(new), flags);

	inode_put(a);
	inode_put(b);
	return err;
}

static inline int rename_name(struct volume *v, uint64_t from, const char *old,
			      uint64_t to, const char *new)
{
	return rename_flags(v, from, old, to, new, 0);
}

static inline int link_name(struct volume *v, uint64_t id, uint64_t dir,
			    const char *name)
{
	struct inode *ip = node(v, id), *d = node(v, dir);
	struct fs_entry e;
	int err = fs_link(&volume_req, ip, d, name, strlen(name), &e);

	if (!err) {
		assert_int_equal(e.nodeid, id);
		fs_forget(v->fs, id, 1);
	}
	inode_put(ip);
	inode_put(d);
	return err;
}

static inline struct fs_attr attr_of(struct volume *v, uint64_t id)
{
	struct inode *ip = node(v, id);
	struct fs_attr attr;

	assert_int_equal(fs_getattr(&volume_req, ip, &attr), 0);
	inode_put(ip);
	return attr;
}

#endif
