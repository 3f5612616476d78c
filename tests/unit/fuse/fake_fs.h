/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * fake_fs.h - a file system that answers what a test says, and notes what it
 * was asked: in place of src/fs, at link time.
 */
#ifndef TEST_FUSE_FAKE_FS_H
#define TEST_FUSE_FAKE_FS_H

#include "fs/fs.h"

struct inode {
	uint64_t nodeid;
	int refs;
};

#define FAKE_NODES 8u

struct fake_fs {
	struct inode inodes[FAKE_NODES]; /* node ids from 1 on; others: NULL */
	bool withdrawn;
	int result; /* of the next calls */
	struct fs_entry entry;
	struct fs_attr attr;
	bool created;
	unsigned emit;	/* entries that readdir has */
	bool known;	/* what fs_is_known() says */
	bool leaving;	/* the lock of a read_fill is */
	unsigned parks; /* so many calls wait for a lock */

	/* The last call. */
	const char *call;
	struct fs_req req;
	uint64_t nodeid, nodeid2;
	char name[256], name2[256];
	struct fs_make make;
	struct fs_setattr set;
	int flags;
	unsigned io_flags;
	uint64_t offset;
	size_t len;
	uint64_t forgotten;
	int opens; /* open handles */
	unsigned calls;
	bool exclusive; /* the lock that a read_fill takes */
	struct fs_park *parked;
	unsigned unparked;
};

extern struct fake_fs fake;

void fake_reset(void);

#endif
