/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * nodecalls.h - calls at one of several mounts, as the kernel makes them. What
 * is not returned must succeed.
 */
#ifndef TESTS_UNIT_FS_NODECALLS_H
#define TESTS_UNIT_FS_NODECALLS_H

#include "tests/unit/fs/names.h"
#include "tests/unit/fs/nodes.h"

/* With a reference. */
struct inode *get(struct fs *fs, uint64_t id);

/* These three count a lookup. */
int look_at(struct fs *fs, uint64_t dir, const char *name, struct fs_entry *e);
uint64_t walk(struct fs *fs, uint64_t dir, const char *name);
int make_at(struct fs *fs, uint64_t dir, const char *name, uint32_t mode,
	    struct fs_entry *e);

int unlink_at(struct fs *fs, uint64_t dir, const char *name);
int rename_at(struct fs *fs, uint64_t from, const char *old, uint64_t to,
	      const char *new);

/* The kernel opens for the write, and closes. */
void write_at(struct fs *fs, uint64_t id, const void *data, size_t len,
	      uint64_t offset, unsigned flags);
/* From the beginning. */
ssize_t read_at(struct fs *fs, uint64_t id, void *buf, size_t len);
struct fs_attr attr_at(struct fs *fs, uint64_t id);
void truncate_at(struct fs *fs, uint64_t id, uint64_t size);

#endif
