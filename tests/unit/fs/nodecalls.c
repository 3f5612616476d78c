/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * nodecalls.c - see nodecalls.h.
 */
#include <fcntl.h>

#include "tests/unit/fs/nodecalls.h"

struct inode *get(struct fs *fs, uint64_t id)
{
	struct inode *ip = fs_inode_get(fs, id);

	assert_non_null(ip);
	return ip;
}

/* Counts a lookup. */
int look_at(struct fs *fs, uint64_t dir, const char *name, struct fs_entry *e)
{
	struct inode *d = get(fs, dir);
	int err = fs_lookup(&volume_req, d, name, strlen(name), e);

	inode_put(d);
	return err;
}

uint64_t walk(struct fs *fs, uint64_t dir, const char *name)
{
	struct fs_entry e;

	assert_int_equal(look_at(fs, dir, name, &e), 0);
	return e.nodeid;
}

/* Counts a lookup. */
int make_at(struct fs *fs, uint64_t dir, const char *name, uint32_t mode,
	    struct fs_entry *e)
{
	const struct fs_make mk = {
		.name = name,
		.len = strlen(name),
		.mode = mode,
		.target = name,
		.target_len = strlen(name),
	};
	struct inode *d = get(fs, dir);
	int err = fs_make(&volume_req, d, &mk, e);

	inode_put(d);
	return err;
}

int unlink_at(struct fs *fs, uint64_t dir, const char *name)
{
	struct inode *d = get(fs, dir);
	int err = fs_unlink(&volume_req, d, name, strlen(name));

	inode_put(d);
	return err;
}

int rename_at(struct fs *fs, uint64_t from, const char *old, uint64_t to,
	      const char *new)
{
	struct inode *a = get(fs, from), *b = get(fs, to);
	int err = fs_rename(&volume_req, a, old, strlen(old), b, new,
			    strlen(new), 0);

	inode_put(a);
	inode_put(b);
	return err;
}

/* The kernel opens for the write, and closes. */
void write_at(struct fs *fs, uint64_t id, const void *data, size_t len,
	      uint64_t offset, unsigned flags)
{
	struct inode *ip = get(fs, id);

	assert_int_equal(fs_open(&volume_req, ip, O_WRONLY), 0);
	assert_int_equal(fs_write(&volume_req, ip, data, len, offset, flags),
			 len);
	fs_release(ip, O_WRONLY);
	inode_put(ip);
}

ssize_t read_at(struct fs *fs, uint64_t id, void *buf, size_t len)
{
	struct inode *ip = get(fs, id);
	ssize_t n = fs_read(&volume_req, ip, buf, len, 0, 0);

	inode_put(ip);
	return n;
}

struct fs_attr attr_at(struct fs *fs, uint64_t id)
{
	struct inode *ip = get(fs, id);
	struct fs_attr attr;

	assert_int_equal(fs_getattr(&volume_req, ip, &attr), 0);
	inode_put(ip);
	return attr;
}

void truncate_at(struct fs *fs, uint64_t id, uint64_t size)
{
	const struct fs_setattr set = { .valid = FS_SET_SIZE, .size = size };
	struct inode *ip = get(fs, id);
	struct fs_attr attr;

	assert_int_equal(fs_setattr(&volume_req, ip, &set, &attr), 0);
	assert_int_equal(attr.size, size);
	inode_put(ip);
}
