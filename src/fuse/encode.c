/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * encode.c - answers and notifications to the kernel: structures to bytes.
 */
#include <assert.h>
#include <string.h>

#include "fuse/encode.h"

uint32_t fuse_encode_dev(uint32_t major, uint32_t minor)
{
	return (minor & 0xffu) | (major & 0xfffu) << 8 |
	       (minor & 0xfff00u) << 12;
}

void fuse_decode_dev(uint32_t dev, uint32_t *major, uint32_t *minor)
{
	*major = (dev >> 8) & 0xfffu;
	*minor = (dev & 0xffu) | ((dev >> 12) & 0xfff00u);
}

void fuse_encode_attr(struct fuse_attr *out, const struct fs_attr *attr)
{
	*out = (struct fuse_attr){
		.ino = attr->ino,
		.size = attr->size,
		.blocks = attr->blocks_512,
		.atime = (uint64_t)attr->atime.sec,
		.mtime = (uint64_t)attr->mtime.sec,
		.ctime = (uint64_t)attr->ctime.sec,
		.atimensec = attr->atime.nsec,
		.mtimensec = attr->mtime.nsec,
		.ctimensec = attr->ctime.nsec,
		.mode = attr->mode,
		.nlink = attr->nlink,
		.uid = attr->uid,
		.gid = attr->gid,
		.rdev = fuse_encode_dev(attr->rdev_major, attr->rdev_minor),
		.blksize = attr->blksize,
	};
}

void fuse_encode_attr_out(struct fuse_attr_out *out, const struct fs_attr *attr,
			  struct fuse_timeout valid)
{
	out->attr_valid = valid.sec;
	out->attr_valid_nsec = valid.nsec;
	out->dummy = 0;
	fuse_encode_attr(&out->attr, attr);
}

void fuse_encode_entry(struct fuse_entry_out *out, const struct fs_entry *entry,
		       struct fuse_timeout entry_valid,
		       struct fuse_timeout attr_valid)
{
	out->nodeid = entry->nodeid;
	/* The root is never reused, and the kernel insists on this. */
	out->generation = entry->nodeid == FUSE_ROOT_ID ? 0 : entry->generation;
	out->entry_valid = entry_valid.sec;
	out->entry_valid_nsec = entry_valid.nsec;
	out->attr_valid = attr_valid.sec;
	out->attr_valid_nsec = attr_valid.nsec;
	fuse_encode_attr(&out->attr, &entry->attr);
}

void fuse_encode_no_entry(struct fuse_entry_out *out, struct fuse_timeout valid)
{
	*out = (struct fuse_entry_out){
		.entry_valid = valid.sec,
		.entry_valid_nsec = valid.nsec,
	};
}

void fuse_encode_statfs(struct fuse_statfs_out *out, const struct fs_statfs *st)
{
	*out = (struct fuse_statfs_out){
		.st =
			{
				.blocks = st->blocks,
				.bfree = st->bfree,
				.bavail = st->bavail,
				.files = st->files,
				.ffree = st->ffree,
				.bsize = st->bsize,
				.namelen = st->namelen,
				.frsize = st->bsize,
			},
	};
}

/* Room for a record of len bytes and its padding, which is cleared. */
static char *dirbuf_take(struct fuse_dirbuf *buf, size_t len)
{
	size_t padded = FUSE_REC_ALIGN(len);
	char *at = buf->bytes + buf->used;

	if (padded > buf->size - buf->used)
		return NULL;
	memset(at + len, 0, padded - len);
	buf->used += padded;
	return at;
}

static void dirent_fill(struct fuse_dirent *out, const struct fs_dirent *de)
{
	out->ino = de->ino;
	out->off = de->next;
	out->namelen = de->len;
	out->type = de->type;
	memcpy(out->name, de->name, de->len);
}

bool fuse_dirbuf_put(struct fuse_dirbuf *buf, const struct fs_dirent *de)
{
	void *at = dirbuf_take(buf, FUSE_NAME_OFFSET + de->len);

	if (!at)
		return false;
	dirent_fill(at, de);
	return true;
}

bool fuse_dirbuf_put_plus(struct fuse_dirbuf *buf, const struct fs_dirent *de,
			  const struct fs_entry *entry,
			  struct fuse_timeout entry_valid,
			  struct fuse_timeout attr_valid)
{
	struct fuse_direntplus *plus;

	plus = (void *)dirbuf_take(buf, FUSE_NAME_OFFSET_DIRENTPLUS + de->len);
	if (!plus)
		return false;
	/* Node 0: a name alone, whose inode the kernel will look up itself. */
	if (entry->nodeid)
		fuse_encode_entry(&plus->entry_out, entry, entry_valid,
				  attr_valid);
	else
		memset(&plus->entry_out, 0, sizeof(plus->entry_out));
	dirent_fill(&plus->dirent, de);
	return true;
}

static_assert(sizeof(struct fuse_notify_inval) ==
		      sizeof(struct fuse_out_header) +
			      sizeof(struct fuse_notify_inval_inode_out),
	      "written to the device without padding");

static void inval_fill(struct fuse_notify_inval *out, uint64_t nodeid,
		       int64_t offset, int64_t len)
{
	*out = (struct fuse_notify_inval){
		/* unique 0 makes it a notification, error says which. */
		.head = { .len = sizeof(*out),
			  .error = FUSE_NOTIFY_INVAL_INODE },
		.body = { .ino = nodeid, .off = offset, .len = len },
	};
}

void fuse_encode_inval_attr(struct fuse_notify_inval *out, uint64_t nodeid)
{
	/* A negative offset: docs/spec/fuse.md 4.4. */
	inval_fill(out, nodeid, -1, 0);
}

void fuse_encode_inval_data(struct fuse_notify_inval *out, uint64_t nodeid,
			    uint64_t offset, uint64_t len)
{
	/* What does not fit is beyond the end of any file. */
	if (offset > INT64_MAX)
		offset = INT64_MAX;
	if (len > INT64_MAX - offset)
		len = 0;
	inval_fill(out, nodeid, (int64_t)offset, (int64_t)len);
}
