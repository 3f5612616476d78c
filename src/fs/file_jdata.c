/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * file_jdata.c - files whose data goes through the log.
 *
 * Write-back of such a file puts whole blocks into the transaction that maps
 * them: the journal writes them to the log and, after the commit, in place.
 * Until then the buffer cache, not the device, has the truth, so reads look
 * there first; a buffer leaves the cache only when the device has its content.
 *
 * A block that is not in the cache is overwritten whole and needs no reading: a
 * new, zeroed buffer does. Nobody sees the zeros: as long as it is being
 * written back, every read finds the block in its page. If the transaction does
 * not come about, such buffers are forgotten. Source:
 * docs/spec/gfs2-ondisk.md 3.9, 7.7.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "fs/wb.h"

bool jdata_peek(struct inode *ip, uint64_t pblock, void *to)
{
	struct buf *b = buf_peek_owned(ip->i_fs->fs_cache, &ip->i_bufs, pblock);

	if (!b)
		return false;
	memcpy(to, b->b_data, ip->i_fs->fs_geom.bsize);
	buf_put(b);
	return true;
}

static uint32_t count_blocks(const struct wb_chunk *wc)
{
	uint32_t n = 0;

	for (unsigned i = 0; i < wc->wc_nruns; i++)
		n += wc->wc_runs[i].count;
	return n;
}

static int get_buffer(struct wb_chunk *wc, uint64_t pblock)
{
	struct inode *ip = wc->wc_ip;
	struct buf *b = buf_peek_owned(ip->i_fs->fs_cache, &ip->i_bufs, pblock);
	int err = 0;

	if (!b)
		err = buf_new(ip->i_fs->fs_cache, &ip->i_bufs, pblock, &b);
	if (!err)
		wc->wc_bufs[wc->wc_nbufs++] = b;
	return err;
}

int jdata_prepare(struct wb_chunk *wc)
{
	int err = 0;

	wc->wc_bufs =
		malloc(UG_MAX(count_blocks(wc), 1u) * sizeof(struct buf *));
	if (!wc->wc_bufs)
		return -ENOMEM;
	for (unsigned i = 0; !err && i < wc->wc_nruns; i++) {
		const struct wb_run *run = &wc->wc_runs[i];

		for (uint32_t k = 0; !err && k < run->count; k++)
			err = get_buffer(wc, run->pblock + k);
	}
	return err;
}

void jdata_log(struct trans *tr, struct wb_chunk *wc)
{
	uint32_t bsize = wc->wc_ip->i_fs->fs_geom.bsize;
	struct buf **bufp = wc->wc_bufs;

	for (unsigned i = 0; i < wc->wc_nruns; i++) {
		const struct wb_run *run = &wc->wc_runs[i];

		for (uint32_t k = 0; k < run->count; k++, bufp++) {
			struct page *pg;
			unsigned block;

			wb_piece(wc, run, k, &pg, &block);
			trans_add_jdata(tr, *bufp);
			memcpy((*bufp)->b_data, wb_memory(wc, pg, block),
			       bsize);
		}
	}
}

void jdata_release(struct wb_chunk *wc, bool logged)
{
	for (unsigned i = 0; i < wc->wc_nbufs; i++) {
		struct buf *b = wc->wc_bufs[i];

		/* One that the journal knows had its content before. */
		if (!logged && !atomic_load(&b->b_journal))
			buf_forget(b);
		buf_put(b);
	}
	free(wc->wc_bufs);
	wc->wc_bufs = NULL;
	wc->wc_nbufs = 0;
}
