/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * file_direct.c - reading and writing past the pages.
 *
 * A read must see delayed data, which is in pages only, and must not see the
 * old content of a block that write-back is just writing. Write-back runs
 * without the glock, so the order of looking matters:
 *
 *   1. under pp_lock: copy every block that is up to date in a page
 *   2. look up the mapping of the others, read them from the device
 *
 * A block not covered in step 1 was neither dirty nor on its way at that
 * moment. The glock (SH) keeps writers and truncation away, so it stays so: its
 * mapping and its content on the device are final for the rest of the read.
 * The other way round a block could be found a hole, then be given a place, be
 * written and leave the pages, all between the two looks.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "fs/file.h"
#include "fs/iolist.h"
#include "fs/tree.h"

/* Whole blocks of a file and the memory that they go to or come from. */
struct extent {
	uint64_t lblock;
	uint32_t count;
	char *memory;
};

static void extent_advance(struct inode *ip, struct extent *ext, uint32_t n)
{
	ext->lblock += n;
	ext->count -= n;
	ext->memory += (size_t)n << ip->i_fs->fs_geom.bshift;
}

/* ---- reading ---- */

/* Copy a block if it is up to date in a page. pp_lock held. */
static bool copy_block(struct pages *pp, const struct extent *ext, uint32_t i)
{
	struct inode *ip = pp->pp_inode;
	unsigned shift = page_blocks_shift(ip),
		 bshift = ip->i_fs->fs_geom.bshift;
	uint64_t lblock = ext->lblock + i;
	unsigned block = lblock & ((1u << shift) - 1);
	struct page *pg = pagetable_get(&pp->pp_table, lblock >> shift);

	if (!pg || !(pg->pg_uptodate >> block & 1))
		return false;
	memcpy(ext->memory + ((size_t)i << bshift),
	       page_data(pp->pp_pool, pg) + ((size_t)block << bshift),
	       (size_t)1 << bshift);
	page_touch(pg);
	return true;
}

/* Blocks from the extent's first on that no page has. pp_lock held. */
static uint32_t count_uncovered(struct pages *pp, const struct extent *ext)
{
	unsigned shift = page_blocks_shift(pp->pp_inode);
	uint32_t n = 0;

	while (n < ext->count) {
		uint64_t lblock = ext->lblock + n;
		unsigned block = lblock & ((1u << shift) - 1);
		struct page *pg =
			pagetable_next(&pp->pp_table, lblock >> shift, false);
		uint64_t skip;

		if (!pg)
			return ext->count;
		skip = (pg->pg_index << shift) > lblock
			       ? (pg->pg_index << shift) - lblock
			       : 0;
		if (!skip && pg->pg_uptodate >> block & 1)
			break;
		n += (uint32_t)UG_MIN(UG_MAX(skip, UINT64_C(1)),
				      (uint64_t)(ext->count - n));
	}
	return n;
}

/*
 * Copy what pages have at the beginning of the extent, and cut what they do
 * not have behind it off to *rest.
 */
static void split_covered(struct inode *ip, struct extent *ext,
			  struct extent *rest)
{
	struct pages *pp = atomic_load(&ip->i_pages);
	uint32_t n = 0;

	*rest = *ext;
	if (pp) {
		pthread_mutex_lock(&pp->pp_lock);
		while (n < ext->count && copy_block(pp, ext, n))
			n++;
		extent_advance(ip, rest, n);
		rest->count = count_uncovered(pp, rest);
		pthread_mutex_unlock(&pp->pp_lock);
	}
	extent_advance(ip, ext, n + rest->count);
}

static int read_stuffed(struct inode *ip, bool nowait, char *memory)
{
	const struct gfs2_geom *geom = &ip->i_fs->fs_geom;
	struct buf *b;
	int err = inode_dibuf(ip, nowait, &b);

	if (err)
		return err;
	memcpy(memory, gfs2_dinode_area(b->b_data), geom->stuffed_max);
	memset(memory + geom->stuffed_max, 0, geom->bsize - geom->stuffed_max);
	buf_put(b);
	return 0;
}

/* Blocks at the beginning of the extent that are mapped in one way. */
static int read_mapped(struct inode *ip, struct extent *ext,
		       const struct tree_run *run, struct iolist *list)
{
	unsigned bshift = ip->i_fs->fs_geom.bshift;
	uint32_t n = run->count;
	int req = 0;

	if (!run->pblock) {
		memset(ext->memory, 0, (size_t)n << bshift);
	} else if (inode_is_jdata(ip)) {
		n = 1;
		if (!jdata_peek(ip, run->pblock, ext->memory))
			req = iolist_add(list, ext->memory, (size_t)1 << bshift,
					 run->pblock << bshift);
	} else {
		req = iolist_add(list, ext->memory, (size_t)n << bshift,
				 run->pblock << bshift);
	}
	extent_advance(ip, ext, n);
	return req < 0 ? req : 0;
}

static int read_uncovered(const struct fs_req *req, struct inode *ip,
			  struct extent ext, struct iolist *list)
{
	int err = inode_rdlock(req, ip);

	if (err)
		return err;
	while (!err && ext.count) {
		struct tree_run run;

		if (!ip->i_height && !ext.lblock) {
			err = read_stuffed(ip, req->nowait, ext.memory);
			extent_advance(ip, &ext, 1);
			continue;
		}
		err = tree_map(ip, ext.lblock, ext.count, req->nowait, &run);
		if (!err)
			err = read_mapped(ip, &ext, &run, list);
	}
	inode_rwunlock(ip);
	return err;
}

static int read_blocks(const struct fs_req *req, struct inode *ip,
		       struct extent ext)
{
	struct iolist list;
	int err = 0;

	iolist_init(&list, IOREQ_READ);
	while (!err && ext.count) {
		struct extent rest;

		split_covered(ip, &ext, &rest);
		if (rest.count)
			err = read_uncovered(req, ip, rest, &list);
	}
	if (!err && list.il_count)
		err = req->nowait ? -EAGAIN
				  : iolist_run(&list, ip->i_fs->fs_pool);
	iolist_free(&list);
	return err;
}

/* What cannot be read in place: through memory of our own. */
static int read_bounced(const struct fs_req *req, struct inode *ip, char *buf,
			size_t len, uint64_t offset)
{
	unsigned bshift = ip->i_fs->fs_geom.bshift;
	uint64_t first = offset >> bshift;
	uint64_t count = file_blocks(ip, offset + len) - first;
	char *memory = blkdev_alloc(count << bshift);
	int err;

	if (!memory)
		return -ENOMEM;
	err = read_blocks(req, ip,
			  (struct extent){ first, (uint32_t)count, memory });
	if (!err)
		memcpy(buf, memory + (offset - (first << bshift)), len);
	free(memory);
	return err;
}

static bool is_aligned(const struct inode *ip, const void *buf, uint64_t offset)
{
	const struct fs *fs = ip->i_fs;

	return !(offset & (fs->fs_geom.bsize - 1)) &&
	       !((uintptr_t)buf & (fs->fs_dev->sector_bytes - 1));
}

ssize_t direct_read(const struct fs_req *req, struct inode *ip, void *buf,
		    size_t room, size_t len, uint64_t offset)
{
	unsigned bshift = ip->i_fs->fs_geom.bshift;
	size_t direct = 0;
	int err = 0;

	if (is_aligned(ip, buf, offset)) {
		uint64_t count = file_blocks(ip, len);

		if (count << bshift > room)
			count--;
		direct = UG_MIN((size_t)(count << bshift), len);
		err = read_blocks(req, ip,
				  (struct extent){ offset >> bshift,
						   (uint32_t)count, buf });
	}
	if (!err && direct < len)
		err = read_bounced(req, ip, (char *)buf + direct, len - direct,
				   offset + direct);
	return err ? err : (ssize_t)len;
}

/* ---- writing ---- */

/* Requests for an extent that is mapped throughout; 1: it is not. */
static int map_all(const struct fs_req *req, struct inode *ip,
		   struct extent ext, struct iolist *list)
{
	unsigned bshift = ip->i_fs->fs_geom.bshift;
	int err = inode_rdlock(req, ip);

	if (err)
		return err;
	while (!err && ext.count) {
		struct tree_run run;

		err = tree_map(ip, ext.lblock, ext.count, req->nowait, &run);
		if (!err && !run.pblock)
			err = 1;
		if (err)
			break;
		if (iolist_add(list, ext.memory, (size_t)run.count << bshift,
			       run.pblock << bshift) < 0)
			err = -ENOMEM;
		extent_advance(ip, &ext, run.count);
	}
	inode_rwunlock(ip);
	return err;
}

/* Is any page of the range dirty or on its way? pp_lock held. */
static bool range_is_dirty(struct pages *pp, uint64_t first, uint64_t last)
{
	struct page *pg;

	while ((pg = pagetable_next(&pp->pp_table, first, false)) != NULL &&
	       pg->pg_index <= last) {
		if (pg->pg_dirty || pg->pg_writing)
			return true;
		first = pg->pg_index + 1;
	}
	return false;
}

/* Clean pages of the range lose the blocks. pp_lock held. */
static void range_forget(struct pages *pp, const struct extent *ext)
{
	unsigned shift = page_blocks_shift(pp->pp_inode);
	uint64_t index = ext->lblock >> shift;
	uint64_t end = ext->lblock + ext->count;
	struct page *pg;

	while ((pg = pagetable_next(&pp->pp_table, index, false)) != NULL &&
	       pg->pg_index << shift < end) {
		uint64_t start = pg->pg_index << shift;
		uint64_t from = UG_MAX(start, ext->lblock);
		uint64_t to = UG_MIN(start + (1u << shift), end);

		index = pg->pg_index;
		if (pg->pg_flags & PAGE_READING) {
			pages_wait_read(pp, index);
			continue;
		}
		pg->pg_uptodate &= (uint8_t)~page_range(
			(unsigned)(from - start), (unsigned)(to - start));
		index++;
	}
}

/*
 * No page has the blocks from now on (the glock EX is held): what is dirty
 * there is written first.
 */
static int clear_pages(struct inode *ip, const struct extent *ext)
{
	struct pages *pp = atomic_load(&ip->i_pages);
	unsigned shift = page_blocks_shift(ip);
	uint64_t first = ext->lblock >> shift;
	uint64_t last = (ext->lblock + ext->count - 1) >> shift;
	bool dirty;

	if (!pp)
		return 0;
	pthread_mutex_lock(&pp->pp_lock);
	dirty = range_is_dirty(pp, first, last);
	pthread_mutex_unlock(&pp->pp_lock);
	if (dirty) {
		int err = file_writeback(ip);

		if (err)
			return err;
	}
	pthread_mutex_lock(&pp->pp_lock);
	range_forget(pp, ext);
	pthread_mutex_unlock(&pp->pp_lock);
	return 0;
}

static void touch(const struct fs_req *req, struct inode *ip, unsigned io_flags)
{
	pthread_rwlock_wrlock(&ip->i_lock);
	file_kill_priv(req, ip, io_flags);
	file_touch(ip);
	inode_rwunlock(ip);
}

int direct_write(const struct fs_req *req, struct inode *ip, const void *buf,
		 size_t len, uint64_t offset, unsigned io_flags)
{
	const struct gfs2_geom *geom = &ip->i_fs->fs_geom;
	struct extent ext = { offset >> geom->bshift,
			      (uint32_t)(len >> geom->bshift), (char *)buf };
	struct iolist list;
	int err;

	if (!ip->i_height || inode_is_jdata(ip) ||
	    !is_aligned(ip, buf, offset | len) ||
	    !ug_range_within(offset, len, ip->i_size))
		return 1;
	iolist_init(&list, IOREQ_WRITE);
	err = map_all(req, ip, ext, &list);
	if (!err && req->nowait)
		err = -EAGAIN;
	if (!err)
		err = clear_pages(ip, &ext);
	if (!err) {
		touch(req, ip, io_flags);
		err = iolist_run(&list, ip->i_fs->fs_pool);
		file_note_written(ip);
	}
	iolist_free(&list);
	return err;
}
