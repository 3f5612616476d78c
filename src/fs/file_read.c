/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * file_read.c - reading files.
 *
 * The glock is held SH for the whole length of a read, so no content and no
 * size changes meanwhile. What is in pages wins over the device; what is not
 * comes through the pages (direct mode: we are the only cache), or goes past
 * them (file_direct.c: the kernel keeps the pages, or O_DIRECT).
 */
#include <errno.h>
#include <string.h>

#include "fs/file.h"

/* Bytes of a read still wanted, and where they go. */
struct todo {
	char *buf;
	uint64_t offset;
	size_t len;
};

/*
 * The bytes wanted of one page, in place, and how many they are; NULL if a
 * block of them is not there.
 */
static unsigned char *page_bytes(struct inode *ip, struct page *pg,
				 uint64_t offset, size_t len, uint32_t *n)
{
	uint32_t from = offset % PAGE_BYTES;
	uint8_t blocks;

	*n = (uint32_t)UG_MIN(len, (size_t)(PAGE_BYTES - from));
	blocks = page_mask(ip, from, from + *n);
	if ((pg->pg_uptodate & blocks) != blocks)
		return NULL;
	page_touch(pg);
	return page_data(ip->i_fs->fs_pages, pg) + from;
}

static void copy_out(struct todo *todo, const unsigned char *from, size_t n)
{
	memcpy(todo->buf, from, n);
	todo->buf += n;
	todo->offset += n;
	todo->len -= n;
}

/*
 * Copy what is there, up to the end of the leaf: the lock is not held for long.
 * Pages next to each other in memory go in one piece. False: the page at
 * todo->offset has to be brought in first.
 */
static bool copy_leaf(struct pages *pp, struct todo *todo)
{
	uint64_t index = todo->offset >> PAGE_SHIFT;
	struct pleaf *leaf = pagetable_leaf(&pp->pp_table, index);
	unsigned char *start = NULL;
	unsigned slot = index % LEAF_PAGES;
	size_t len = 0;

	for (; leaf && slot < LEAF_PAGES && len < todo->len; slot++) {
		struct page *pg = pleaf_page(&pp->pp_table, leaf, slot);
		unsigned char *data = NULL;
		uint32_t n;

		if (pg)
			data = page_bytes(pp->pp_inode, pg, todo->offset + len,
					  todo->len - len, &n);
		if (!data)
			break;
		if (start && start + len != data) {
			copy_out(todo, start, len);
			len = 0;
		}
		start = len ? start : data;
		len += n;
	}
	if (len)
		copy_out(todo, start, len);
	return leaf && (!todo->len || slot == LEAF_PAGES);
}

static uint32_t pages_of(uint64_t offset, size_t len)
{
	return (uint32_t)((offset + len - 1) / PAGE_BYTES -
			  offset / PAGE_BYTES + 1);
}

/* See that the page at todo->offset comes in, and what follows of the read. */
static int bring_in(const struct fs_req *req, struct inode *ip,
		    struct pages *pp, const struct todo *todo)
{
	uint64_t index = todo->offset >> PAGE_SHIFT;
	uint32_t count =
		UG_MIN(pages_of(todo->offset, todo->len), FILL_PAGES_MAX);
	bool reading;

	pthread_mutex_lock(&pp->pp_lock);
	if (!req->nowait)
		pages_wait_read(pp, index);
	reading = pp->pp_reading;
	pthread_mutex_unlock(&pp->pp_lock);
	if (reading && req->nowait)
		return -EAGAIN;
	return pages_fill(ip, index, count, req->nowait ? FILL_NOWAIT : 0);
}

static void ask_ahead(struct inode *ip, struct pages *pp, uint64_t offset,
		      size_t len)
{
	uint64_t start;
	uint32_t pages;

	pthread_mutex_lock(&pp->pp_lock);
	readahead_plan(pp, offset >> PAGE_SHIFT, pages_of(offset, len), &start,
		       &pages);
	pthread_mutex_unlock(&pp->pp_lock);
	/* Nobody waits for it, so nobody is told when it fails. */
	if (pages)
		(void)pages_fill(ip, start, pages, FILL_NOWAIT | FILL_ASYNC);
}

static ssize_t cached_read(const struct fs_req *req, struct inode *ip,
			   void *buf, size_t len, uint64_t offset)
{
	struct pages *pp = pages_get(ip);
	struct todo todo = { buf, offset, len };
	bool ahead = false;

	if (!pp)
		return -ENOMEM;
	while (todo.len) {
		bool there;
		int err;

		pthread_mutex_lock(&pp->pp_lock);
		there = copy_leaf(pp, &todo);
		pthread_mutex_unlock(&pp->pp_lock);
		if (there)
			continue;
		err = bring_in(req, ip, pp, &todo);
		/* No page to be had: the rest without one. */
		if (err == -ENOMEM)
			err = (int)direct_read(req, ip, todo.buf, todo.len,
					       todo.len, todo.offset);
		if (err < 0)
			return err;
		todo.len = err ? 0 : todo.len;
		if (!ahead)
			ask_ahead(ip, pp, offset, len);
		ahead = true;
	}
	if (!ahead)
		ask_ahead(ip, pp, offset, len);
	return (ssize_t)len;
}

/* Glock held. */
static ssize_t read_locked(const struct fs_req *req, struct inode *ip,
			   void *buf, size_t len, uint64_t offset,
			   unsigned io_flags)
{
	uint64_t size = ip->i_size;
	size_t room = len;

	if (inode_is_dir(ip))
		return -EISDIR;
	if (offset >= size)
		return 0;
	if (len > size - offset)
		len = size - offset;
	if (!len)
		return 0;
	if (io_flags & (FS_IO_DIRECT | FS_IO_NOCACHE))
		return direct_read(req, ip, buf, room, len, offset);
	return cached_read(req, ip, buf, len, offset);
}

/* fill may be NULL. */
static ssize_t read_file(const struct fs_req *req, struct inode *ip,
			 struct todo *todo, unsigned io_flags,
			 struct fs_fill *fill)
{
	enum lm_state state =
		fill && fill->exclusive ? LM_ST_EXCLUSIVE : LM_ST_SHARED;
	struct glock_holder gh;
	ssize_t n;
	int err;

	if (fs_is_withdrawn(ip->i_fs))
		return -EIO;
	err = inode_lock(req, ip, state, &gh);
	if (err)
		return fs_fault(ip->i_fs, err);
	n = fill ? fill->admit(fill, glock_is_leaving(ip->i_gl)) : 0;
	if (!n)
		n = read_locked(req, ip, todo->buf, todo->len, todo->offset,
				io_flags);
	inode_unlock(&gh);
	if (n >= 0)
		inode_touch_atime(req, ip);
	return n < 0 ? fs_fault(ip->i_fs, (int)n) : n;
}

ssize_t fs_read(const struct fs_req *req, struct inode *ip, void *buf,
		size_t len, uint64_t offset, unsigned io_flags)
{
	struct todo todo = { buf, offset, UG_MIN(len, (size_t)INT32_MAX) };

	return read_file(req, ip, &todo, io_flags, NULL);
}

ssize_t fs_read_fill(const struct fs_req *req, struct inode *ip, void *buf,
		     size_t len, uint64_t offset, struct fs_fill *fill)
{
	struct todo todo = { buf, offset, UG_MIN(len, (size_t)INT32_MAX) };

	return read_file(req, ip, &todo, FS_IO_NOCACHE, fill);
}
