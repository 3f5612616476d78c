/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * file_sync.c - making a file durable.
 *
 * After write-back the data has been given to the device and the metadata to
 * the log. A flush of the log makes both durable, since it flushes the device
 * between its blocks and its header. It is needed if a transaction of this
 * inode is not durable yet. If all are, data may still have been
 * written after the last flush (an overwrite of mapped blocks has no
 * transaction): then the device is flushed alone.
 *
 * pp_flush_seq is the journal's sequence after the last data write: a flush
 * that makes it durable began later than that write ended. Writes are counted,
 * so that a second fsync does not rely on the flush of the first before it
 * has ended, and several may write at a time.
 */
#include <errno.h>

#include "fs/file.h"

static void raise_to(atomic_uint_fast64_t *number, uint_fast64_t value)
{
	uint_fast64_t old = atomic_load(number);

	while (old < value &&
	       !atomic_compare_exchange_weak(number, &old, value))
		;
}

/* The sequence first: who sees the count sees one that is late enough. */
void file_note_written(struct inode *ip)
{
	struct pages *pp = atomic_load(&ip->i_pages);
	struct journal *j = ip->i_fs->fs_journal;

	if (!pp)
		pp = pages_get(ip);
	if (!pp)
		return;
	raise_to(&pp->pp_flush_seq, journal_sequence(j));
	atomic_fetch_add(&pp->pp_written, 1);
}

/* The device, if data has been written that no flush of the log has covered. */
static int flush_data(struct inode *ip)
{
	struct pages *pp = atomic_load(&ip->i_pages);
	struct fs *fs = ip->i_fs;
	uint64_t written;
	int err = 0;

	if (!pp || !fs->fs_opt.barriers)
		return 0;
	written = atomic_load(&pp->pp_written);
	if (atomic_load(&pp->pp_flushed) >= written)
		return 0;
	if (!journal_has_flushed(fs->fs_journal,
				 atomic_load(&pp->pp_flush_seq)))
		err = blkdev_flush(fs->fs_dev);
	if (!err)
		raise_to(&pp->pp_flushed, written);
	return err;
}

int file_make_durable(struct inode *ip, bool datasync)
{
	struct journal *j = ip->i_fs->fs_journal;
	int err, lost;
	uint64_t seq;

	if (!j)
		return 0;
	err = file_writeback(ip);
	/* A failure of an earlier attempt counts, once. */
	lost = atomic_exchange(&ip->i_wb_error, 0);
	if (err || lost)
		return err ? err : lost;
	seq = atomic_load(datasync ? &ip->i_seq_data : &ip->i_seq);
	if (!journal_is_durable(j, seq))
		err = journal_flush(j, seq);
	return err ? err : flush_data(ip);
}

int fs_fsync(const struct fs_req *req, struct inode *ip, bool datasync)
{
	if (fs_is_withdrawn(ip->i_fs))
		return -EIO;
	if (req->nowait)
		return -EAGAIN;
	return fs_fault(ip->i_fs, file_make_durable(ip, datasync));
}
