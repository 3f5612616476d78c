/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * encode.h - answers and notifications to the kernel: structures to bytes.
 *
 * Pure. Every field of what is written is set, so that no byte of our memory
 * leaks. Source: linux/fuse.h, docs/spec/fuse.md 5, 9.
 */
#ifndef UG_FUSE_ENCODE_H
#define UG_FUSE_ENCODE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "fs/fs.h"
#include "fuse/kabi.h"

/* How long the kernel may believe something without asking. */
struct fuse_timeout {
	uint64_t sec;
	uint32_t nsec;
};

/* "For ever": the kernel cuts it to the longest time it can count. */
#define FUSE_TIMEOUT_INFINITE ((struct fuse_timeout){ INT32_MAX, 0 })
#define FUSE_TIMEOUT_NONE ((struct fuse_timeout){ 0, 0 })

static inline struct fuse_timeout fuse_timeout_ms(uint32_t ms)
{
	return (struct fuse_timeout){ ms / 1000, ms % 1000 * 1000000u };
}

/* Device numbers as the kernel packs them into 32 bits: 12 and 20 bits. */
uint32_t fuse_encode_dev(uint32_t major, uint32_t minor);
void fuse_decode_dev(uint32_t dev, uint32_t *major, uint32_t *minor);

void fuse_encode_attr(struct fuse_attr *out, const struct fs_attr *attr);
void fuse_encode_attr_out(struct fuse_attr_out *out, const struct fs_attr *attr,
			  struct fuse_timeout valid);
void fuse_encode_entry(struct fuse_entry_out *out, const struct fs_entry *entry,
		       struct fuse_timeout entry_valid,
		       struct fuse_timeout attr_valid);

/* "There is no such name, and there will be none for that long." */
void fuse_encode_no_entry(struct fuse_entry_out *out,
			  struct fuse_timeout valid);

void fuse_encode_statfs(struct fuse_statfs_out *out,
			const struct fs_statfs *st);

/*
 * Entries of a directory, one behind the other, each padded to 8 bytes.
 * put() returns false, and leaves the buffer alone, if the entry does not fit.
 */
struct fuse_dirbuf {
	char *bytes; /* aligned to 8 */
	size_t size;
	size_t used;
};

bool fuse_dirbuf_put(struct fuse_dirbuf *buf, const struct fs_dirent *de);
bool fuse_dirbuf_put_plus(struct fuse_dirbuf *buf, const struct fs_dirent *de,
			  const struct fs_entry *entry,
			  struct fuse_timeout entry_valid,
			  struct fuse_timeout attr_valid);

/* A notification: header and body, to be written to the device as it is. */
struct fuse_notify_inval {
	struct fuse_out_header head;
	struct fuse_notify_inval_inode_out body;
};

/* Drop what the kernel knows of the node's attributes; no page is touched. */
void fuse_encode_inval_attr(struct fuse_notify_inval *out, uint64_t nodeid);
/* The same and its pages in [offset, offset + len); len 0: to the end. */
void fuse_encode_inval_data(struct fuse_notify_inval *out, uint64_t nodeid,
			    uint64_t offset, uint64_t len);

#endif
