/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * file_size.c - changing the size of a file.
 *
 * Growing happens in memory (file_grow): the new part is a hole, and the size
 * is logged by write-back. Shrinking gives blocks back and goes to disk:
 *
 *   tail of the new last block zero, written          (data)
 *   size, TRUNC_IN_PROG                               transaction
 *   blocks beyond freed, with what pointed to them    transactions
 *   flag off                                          transaction
 *
 * A crash leaves the old size (its bytes behind the new end may be zero), or
 * the new size with the flag, whose finder frees the rest.
 *
 * With blocks that stay delayed below the new end and a tree of pointer
 * blocks, the delayed ones are written before anything is freed: what was
 * promised for them counts on pointer blocks that the truncation might free.
 * With other nodes always: while we wait for a group of theirs, nobody can
 * write this inode, and they may wait for what was promised for it.
 * Source: docs/spec/gfs2-ondisk.md 3.4, 3.7.
 */
#include <errno.h>
#include <string.h>

#include "fs/file.h"
#include "fs/tree.h"
#include "fs/xattr.h"

/* Attempts to keep a page in memory while it is wanted. */
#define TAIL_TRIES 16u

/* ---- the block with the end of file ---- */

static bool ends_in_block(const struct inode *ip, uint64_t size)
{
	return size & (ip->i_fs->fs_geom.bsize - 1);
}

/* The page with byte `size`, and the bit of its block. */
static struct page *tail_page(struct inode *ip, uint64_t size, uint8_t *bit)
{
	struct pages *pp = atomic_load(&ip->i_pages);
	uint32_t in_page = size % PAGE_BYTES;

	*bit = page_mask(ip, in_page, in_page + 1);
	return pagetable_get(&pp->pp_table, size >> PAGE_SHIFT);
}

int tail_settle(struct inode *ip, uint64_t *need)
{
	struct pages *pp = atomic_load(&ip->i_pages);
	struct tree_run run;
	struct page *pg;
	uint8_t bit;
	int err;

	/* A dinode is written whole, with zeros behind the contents. */
	if (!ip->i_height || !ends_in_block(ip, ip->i_size))
		return 0;
	pg = tail_page(ip, ip->i_size, &bit);
	if (pg && (pg->pg_dirty & bit))
		return 0;
	err = tree_map(ip, ip->i_size >> ip->i_fs->fs_geom.bshift, 1, true,
		       &run);
	*need = UINT64_MAX;
	if (err || !run.pblock)
		return err;
	if (!pg || !(pg->pg_uptodate & bit)) {
		*need = ip->i_size >> PAGE_SHIFT;
		return -EAGAIN;
	}
	/* Zero in memory; whether it is on disk, nobody knows. */
	pg->pg_mapped |= bit;
	page_set_dirty(pp, pg, bit);
	return 0;
}

/* Bring the page with the new end in. Waits; no lock but the glock held. */
static int tail_fill(struct inode *ip, uint64_t size)
{
	struct pages *pp = atomic_load(&ip->i_pages);
	uint64_t index = size >> PAGE_SHIFT;
	int err;

	pthread_mutex_lock(&pp->pp_lock);
	pages_wait_read(pp, index);
	pthread_mutex_unlock(&pp->pp_lock);
	err = pages_fill(ip, index, 1, 0);
	return err == -ENOMEM ? writeback_for_room(ip) : err;
}

/*
 * i_lock written, pp_lock held. Is the tail zero in memory, and will it be on
 * disk after write-back? False: its page is not in memory. mapped: the block
 * is.
 */
static bool tail_zero(struct inode *ip, uint64_t size, bool mapped)
{
	struct pages *pp = atomic_load(&ip->i_pages);
	uint32_t mask = ip->i_fs->fs_geom.bsize - 1, in_page;
	struct page *pg;
	uint8_t bit;

	if (!ends_in_block(ip, size))
		return true;
	pg = tail_page(ip, size, &bit);
	if (!pg || !(pg->pg_uptodate & bit))
		return false;
	in_page = size % PAGE_BYTES;
	memset(page_data(pp->pp_pool, pg) + in_page, 0,
	       (mask + 1) - (in_page & mask));
	if (mapped && !(pg->pg_dirty & bit)) {
		pg->pg_mapped |= bit;
		page_set_dirty(pp, pg, bit);
	}
	return true;
}

/* ---- shrinking ---- */

/* With the glock EX held no new reads begin. */
static void wait_reads(struct pages *pp)
{
	pthread_mutex_lock(&pp->pp_lock);
	while (pp->pp_reading)
		pthread_cond_wait(&pp->pp_ended, &pp->pp_lock);
	pthread_mutex_unlock(&pp->pp_lock);
}

/* The size in memory. i_lock written, pp_lock held; false as tail_zero. */
static bool cut(struct inode *ip, uint64_t size, bool mapped)
{
	if (!tail_zero(ip, size, mapped))
		return false;
	ip->i_size = size;
	file_touch(ip);
	return true;
}

/* i_lock written, within the transaction. */
static void change_stuffed(struct trans *tr, struct inode *ip,
			   struct buf *dibuf, uint64_t size)
{
	uint32_t max = ip->i_fs->fs_geom.stuffed_max;
	struct pages *pp = atomic_load(&ip->i_pages);
	struct page *pg;

	trans_add_meta(tr, dibuf);
	pthread_mutex_lock(&pp->pp_lock);
	pg = pagetable_get(&pp->pp_table, size >> PAGE_SHIFT);
	if (pg && pg->pg_uptodate && size)
		tail_zero(ip, size, false);
	ip->i_size = size;
	file_touch(ip);
	pthread_mutex_unlock(&pp->pp_lock);
	ip->i_disksize = UG_MIN(ip->i_disksize, size);
	memset((char *)gfs2_dinode_area(dibuf->b_data) + ip->i_disksize, 0,
	       max - ip->i_disksize);
	inode_log(tr, ip, dibuf);
}

/* No blocks yet: contents in the dinode, or in memory only. pp_wb held. */
static int shrink_stuffed(struct inode *ip, uint64_t size)
{
	struct pages *pp = atomic_load(&ip->i_pages);
	struct buf *dibuf;
	struct trans tr;
	int err = inode_dibuf(ip, false, &dibuf);

	if (err)
		return err;
	wait_reads(pp);
	err = trans_begin(ip->i_fs->fs_journal, &tr, 1, 0, 0);
	if (!err) {
		pages_drop_from(ip, file_blocks(ip, size));
		pthread_rwlock_wrlock(&ip->i_lock);
		change_stuffed(&tr, ip, dibuf, size);
		inode_rwunlock(ip);
		inode_logged(ip, trans_end(&tr), true);
	}
	buf_put(dibuf);
	return err;
}

/* One transaction for the dinode alone: flags, and the size as far as known. */
static int log_truncation(struct inode *ip, bool begin)
{
	struct pages *pp = atomic_load(&ip->i_pages);
	struct buf *dibuf;
	struct trans tr;
	bool dirty;
	int err = inode_dibuf(ip, false, &dibuf);

	if (err)
		return err;
	err = trans_begin(ip->i_fs->fs_journal, &tr, 1, 0, 0);
	if (err)
		goto out;
	pthread_rwlock_wrlock(&ip->i_lock);
	pthread_mutex_lock(&pp->pp_lock);
	dirty = pp->pp_dirty;
	pthread_mutex_unlock(&pp->pp_lock);
	if (begin) {
		ip->i_flags |= GFS2_DIF_TRUNC_IN_PROG;
		/* Data that is not written yet: the size follows it. */
		ip->i_disksize =
			dirty ? UG_MIN(ip->i_disksize, ip->i_size) : ip->i_size;
	} else {
		ip->i_flags &= ~GFS2_DIF_TRUNC_IN_PROG;
		if (!ip->i_size)
			ip->i_goal = ip->i_addr;
	}
	inode_log(&tr, ip, dibuf);
	inode_rwunlock(ip);
	inode_logged(ip, trans_end(&tr), true);
out:
	buf_put(dibuf);
	return err;
}

/* Free what is beyond the end. pp_wb held. */
static int free_beyond(struct inode *ip)
{
	int err = tree_free_from(ip, file_blocks(ip, ip->i_size));

	return err ? err : log_truncation(ip, false);
}

/* Does anything have to be written before blocks are freed? */
static bool must_write_first(struct inode *ip, struct pages *pp)
{
	bool must, delayed;

	pthread_rwlock_rdlock(&ip->i_lock);
	pthread_mutex_lock(&pp->pp_lock);
	delayed = ip->i_delayed && (ip->i_height > 1 || !ip->i_fs->fs_alone);
	must = pp->pp_dirty && (ends_in_block(ip, ip->i_size) || delayed);
	pthread_mutex_unlock(&pp->pp_lock);
	inode_rwunlock(ip);
	return must;
}

/*
 * pp_wb held. -EAGAIN: the page with the new end has left memory. From the cut
 * on errors are those of a device that has failed, or of the log.
 */
static int shrink_tree(struct inode *ip, uint64_t size)
{
	struct pages *pp = atomic_load(&ip->i_pages);
	struct tree_run run = { 0 };
	bool done;
	int err = 0;

	pthread_rwlock_rdlock(&ip->i_lock);
	if (ends_in_block(ip, size))
		err = tree_map(ip, size >> ip->i_fs->fs_geom.bshift, 1, false,
			       &run);
	inode_rwunlock(ip);
	if (err)
		return err;
	pthread_rwlock_wrlock(&ip->i_lock);
	pthread_mutex_lock(&pp->pp_lock);
	done = cut(ip, size, run.pblock);
	pthread_mutex_unlock(&pp->pp_lock);
	inode_rwunlock(ip);
	if (!done)
		return -EAGAIN;
	pages_drop_from(ip, file_blocks(ip, size));
	/* A failure is remembered for fsync; the data stays in memory. */
	if (must_write_first(ip, pp))
		(void)writeback_locked(ip);
	err = log_truncation(ip, true);
	return err ? err : free_beyond(ip);
}

static int shrink(struct inode *ip, uint64_t size)
{
	struct pages *pp = pages_get(ip);
	int err = -EAGAIN;

	if (!pp)
		return -ENOMEM;
	for (unsigned i = 0; err == -EAGAIN && i < TAIL_TRIES; i++) {
		err = 0;
		if (ip->i_height && ends_in_block(ip, size))
			err = tail_fill(ip, size);
		if (err)
			return err;
		pages_wb_lock(pp);
		err = ip->i_height ? shrink_tree(ip, size)
				   : shrink_stuffed(ip, size);
		pages_wb_unlock(pp);
	}
	return err == -EAGAIN ? -ENOMEM : err;
}

int file_set_size(const struct fs_req *req, struct inode *ip, uint64_t size)
{
	int err = fs_may_write(ip->i_fs);

	if (err)
		return err;
	if (size > INT64_MAX)
		return -EFBIG;
	err = xattr_drop_capability(req, ip);
	if (err)
		return err;
	if (size > ip->i_size)
		return file_grow(req, ip, size);
	if (size < ip->i_size)
		return req->nowait ? -EAGAIN : shrink(ip, size);
	err = inode_wrlock(req, ip);
	if (!err) {
		file_touch(ip);
		inode_rwunlock(ip);
	}
	return err;
}

int file_finish_truncate(struct inode *ip)
{
	struct pages *pp = pages_get(ip);
	int err;

	if (!pp)
		return -ENOMEM;
	pages_wb_lock(pp);
	err = free_beyond(ip);
	pages_wb_unlock(pp);
	return err;
}
