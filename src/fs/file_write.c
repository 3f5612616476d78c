/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * file_write.c - write requests.
 *
 * A write goes in pieces of at most 1 MiB into pages (piece.h); the disk comes
 * later (writeback.c). Only direct writes of what has its place already go past
 * the pages.
 */
#include <errno.h>

#include "fs/piece.h"
#include "fs/work.h"
#include "fs/xattr.h"

void file_touch(struct inode *ip)
{
	ip->i_mtime = fs_now();
	ip->i_ctime = ip->i_mtime;
	if (!(atomic_load_explicit(&ip->i_state, memory_order_relaxed) &
	      INODE_DIRTY_TIMES))
		inode_dirty_times(ip);
	/* The times may have been dirty before, with the inode not listed. */
	inode_mark_dirty(ip);
	glock_set_dirty(ip->i_gl);
}

void file_kill_priv(const struct fs_req *req, struct inode *ip,
		    unsigned io_flags)
{
	if (io_flags & FS_IO_MAPPED)
		return;
	if (!(io_flags & FS_IO_KILLPRIV) && req->uid == 0)
		return;
	ip->i_mode &= ~(uint32_t)S_ISUID;
	if (ip->i_mode & S_IXGRP)
		ip->i_mode &= ~(uint32_t)S_ISGID;
}

/* Growing is a write of no bytes at the new end. */
int file_grow(const struct fs_req *req, struct inode *ip, uint64_t size)
{
	struct piece p;
	int err = piece_init(&p, req, ip, size, 0);

	return err ? err : piece_write(&p);
}

/*
 * Out of space: half as much may fit, down to a block. What has been found too
 * much is not tried again for this write.
 */
static bool shorten(struct piece *p, size_t *limit)
{
	uint32_t bsize = p->ip->i_fs->fs_geom.bsize;

	if (p->len <= bsize)
		return false;
	*limit = UG_MAX(p->len / 2 & ~(size_t)(bsize - 1), (size_t)bsize);
	return true;
}

/* Through the pages, in pieces. Bytes written, or -errno if there are none. */
static ssize_t write_pages(struct piece *p, size_t len)
{
	size_t done = 0, limit = PIECE_BYTES_MAX;
	int err = 0;

	while (done < len) {
		p->len = UG_MIN(len - done, limit);
		err = piece_write(p);
		if (err == -ENOSPC && shorten(p, &limit))
			continue;
		if (err)
			break;
		p->buf += p->len;
		p->offset += p->len;
		done += p->len;
	}
	return done ? (ssize_t)done : err;
}

/*
 * Direct writes of what has its place already go at the same time: they change
 * neither size nor mapping, and leave no page, so all they need is that nobody
 * else does. Two of them for one block end in any order, as on any device.
 * 1: not of this kind, nothing has been done.
 */
static int write_in_place(struct piece *p, size_t len)
{
	struct glock_holder gh;
	int err;

	if (!(p->io_flags & FS_IO_DIRECT) || (p->io_flags & FS_IO_APPEND) ||
	    !len)
		return 1;
	err = inode_lock_together(p->req, p->ip, &gh);
	if (err)
		return err;
	/* Taking it away is for who has the inode for himself. */
	err = 1;
	if (!xattr_may_have_capability(p->ip))
		err = direct_write(p->req, p->ip, p->buf, len, p->offset,
				   p->io_flags);
	inode_unlock(&gh);
	return err;
}

/* What is not in place: by way of the pages. */
static ssize_t write_through(struct piece *p, size_t len)
{
	ssize_t n = write_pages(p, len);
	int err;

	if (n <= 0)
		return n;
	err = file_writeback(p->ip);
	return err ? err : n;
}

/* Where and how much, once the size is known. 0: nothing to do. */
static int clip(struct piece *p, size_t *len)
{
	uint64_t size = p->ip->i_size;

	if (p->io_flags & FS_IO_APPEND)
		p->offset = size;
	if (p->io_flags & FS_IO_MAPPED) {
		if (p->offset >= size)
			*len = 0;
		else if (*len > size - p->offset)
			*len = size - p->offset;
		return 0;
	}
	if (p->offset >= INT64_MAX)
		return -EFBIG;
	*len = UG_MIN(*len, (size_t)(INT64_MAX - p->offset));
	return 0;
}

static ssize_t write_locked(struct piece *p, size_t len)
{
	size_t wanted = len;
	int err = clip(p, &len);
	ssize_t n;

	if (err)
		return err;
	if (!len)
		return (ssize_t)wanted;
	if (p->io_flags & FS_IO_DIRECT)
		return write_through(p, len);
	n = write_pages(p, len);
	/* What a mapping has beyond the size is not part of the file. */
	return n == (ssize_t)len && p->io_flags & FS_IO_MAPPED ? (ssize_t)wanted
							       : n;
}

static bool must_wait(const struct inode *ip, size_t len, unsigned io_flags)
{
	return (io_flags & (FS_IO_DIRECT | FS_IO_SYNC | FS_IO_DSYNC)) ||
	       ip->i_fs->fs_opt.sync || len > PIECE_BYTES_MAX;
}

/* Before any lock is taken: not too much dirty data in memory. */
static int dirty_room(const struct fs_req *req, struct inode *ip)
{
	struct pagepool *pool = ip->i_fs->fs_pages;
	uint32_t dirty =
		atomic_load_explicit(&pool->pl_dirty, memory_order_relaxed);

	if (ug_likely(dirty <= pool->pl_dirty_background))
		return 0;
	if (!atomic_exchange(&pool->pl_woken, true))
		fs_wake(ip->i_fs, FS_WORK_WRITEBACK);
	if (dirty <= pool->pl_dirty_max)
		return 0;
	return req->nowait ? -EAGAIN : writeback_for_room(ip);
}

static ssize_t make_durable(struct inode *ip, ssize_t n, unsigned io_flags)
{
	bool times = (io_flags & FS_IO_SYNC) || ip->i_fs->fs_opt.sync;
	int err = file_make_durable(ip, !times);

	return err ? err : n;
}

ssize_t fs_write(const struct fs_req *req, struct inode *ip, const void *buf,
		 size_t len, uint64_t offset, unsigned io_flags)
{
	struct piece p;
	struct glock_holder gh;
	ssize_t n;
	int err = fs_may_write(ip->i_fs);

	if (err)
		return err;
	if (req->nowait && must_wait(ip, len, io_flags))
		return -EAGAIN;
	err = dirty_room(req, ip);
	if (err)
		return fs_fault(ip->i_fs, err);
	err = piece_init(&p, req, ip, offset, io_flags);
	if (err)
		return err;
	p.buf = buf;
	len = UG_MIN(len, (size_t)INT32_MAX);
	err = write_in_place(&p, len);
	n = err ? err : (ssize_t)len;
	if (err == 1) {
		err = inode_lock(req, ip, LM_ST_EXCLUSIVE, &gh);
		if (err)
			return fs_fault(ip->i_fs, err);
		/* What a mapping has was taken away when it was stored. */
		n = 0;
		if (len && !(io_flags & FS_IO_MAPPED))
			n = xattr_drop_capability(req, ip);
		if (!n)
			n = write_locked(&p, len);
		inode_unlock(&gh);
	}
	if (n > 0 && (must_wait(ip, 0, io_flags & ~FS_IO_DIRECT)))
		n = make_durable(ip, n, io_flags);
	return n < 0 ? fs_fault(ip->i_fs, (int)n) : n;
}
