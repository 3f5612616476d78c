/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * wb.h - one inode's part of a write-back, between the files that do it.
 *
 *   writeback.c   which inodes, in rounds; the steps of a round
 *   wb_collect.c  dirty pages
 *   wb_place.c    where the blocks are, or will be
 *   wb_io.c       the data to the device
 *   wb_commit.c   the transactions
 *   file_jdata.c  the contents of journaled blocks, in the transaction
 */
#ifndef UG_FS_WB_H
#define UG_FS_WB_H

#include "fs/file.h"
#include "fs/tree.h"

/* Pages of one inode in a round, 8 MiB: enough to keep a device busy. */
#define WB_PAGES_MAX 2048u
/* Of a journaled file: every block goes through the log. */
#define WB_PAGES_JDATA 64u
/*
 * Pointer blocks that one transaction may change: an eighth of the smallest
 * journal (8 MiB) with 4096-byte blocks.
 */
#define WB_META_MAX 256u

/* Blocks next to each other in the file and, once placed, on the device. */
struct wb_run {
	uint64_t lblock;
	uint64_t pblock; /* 0: not known yet */
	uint32_t count;
	uint32_t page; /* index in wc_pages of the page with lblock */
	bool fresh;    /* not mapped yet */
	unsigned req_first, req_last; /* requests that write it */
};

enum wb_kind {
	WB_NOTHING, /* no dirty page was left */
	WB_DATA,
	WB_JDATA,
	WB_STUFFED, /* page 0 goes into the dinode */
};

struct wb_chunk {
	struct inode *wc_ip;
	struct pages *wc_pp;
	enum wb_kind wc_kind;
	int wc_err;
	uint64_t wc_next; /* page from which to collect */
	uint64_t wc_end;  /* pages from here on are not this pass's */
	uint64_t wc_size; /* of the file, when collected */

	unsigned wc_npages, wc_pages_cap;
	struct page **wc_pages; /* ascending; all marked as being written */
	unsigned wc_nruns, wc_runs_cap;
	struct wb_run *wc_runs; /* ascending */

	uint32_t wc_fresh; /* blocks of fresh runs */
	uint32_t wc_meta;  /* pointer blocks that these may need or change */
	uint64_t wc_stop;  /* first block that had to be left for later */
	struct rgrp_hold wc_hold;
	struct tree_set wc_set; /* pointer blocks kept in memory */
	struct buf *wc_dibuf;

	bool wc_settled;      /* pages know that they are mapped */
	uint64_t wc_promised; /* space no longer needed */

	/* Journaled files: buffer per block, in the order of the runs. */
	struct buf **wc_bufs;
	unsigned wc_nbufs;
};

/* A piece of a run within one page: its blocks [*block, *block + result). */
static inline uint32_t wb_piece(const struct wb_chunk *wc,
				const struct wb_run *run, uint32_t done,
				struct page **pg, unsigned *block)
{
	unsigned shift = page_blocks_shift(wc->wc_ip);
	uint64_t lblock = run->lblock + done;
	uint32_t in_page = 1u << shift;

	*block = (unsigned)(lblock & (in_page - 1));
	*pg = wc->wc_pages[run->page + (lblock >> shift) -
			   (run->lblock >> shift)];
	return UG_MIN(run->count - done, in_page - *block);
}

static inline void *wb_memory(const struct wb_chunk *wc, const struct page *pg,
			      unsigned block)
{
	return page_data(wc->wc_pp->pp_pool, pg) +
	       ((size_t)block << wc->wc_ip->i_fs->fs_geom.bshift);
}

/*
 * The next dirty pages of the inode, up to a bound; says of what kind they are.
 * -ENOMEM: what has been collected stays so.
 */
int wb_collect(struct wb_chunk *wc);

/* Append a run. -ENOMEM. */
int wb_add_run(struct wb_chunk *wc, const struct wb_run *run);

/*
 * Find the place of every run, taking new ones for those without. Runs for
 * which there is no place now are left out: dirty again, to be collected later.
 * Everything that the transaction will change is in memory afterwards. nowait:
 * -EAGAIN rather than wait for the lock of a group.
 */
int wb_place(struct wb_chunk *wc, bool nowait);

/*
 * Write the data of all chunks that have some, and wait. A chunk has failed, in
 * its wc_err, if any of its requests has.
 */
void wb_write(struct wb_chunk *chunks, unsigned n);

/*
 * Enter the new places and the size into the metadata, if there is anything to
 * enter. An error after the first change has withdrawn the file system.
 */
int wb_commit(struct wb_chunk *wc);

/* The contents of a stuffed file into its dinode. */
int wb_commit_stuffed(struct wb_chunk *wc);

/*
 * All that was dirty when the file had this size has been written: log size and
 * times as far as nothing has done so.
 */
int wb_commit_inode(struct inode *ip, uint64_t size);

/* The pages of the runs have places. i_lock written, pp_lock held. */
void wb_settle(struct wb_chunk *wc);

/* ---- file_jdata.c ---- */

/* Buffers for all blocks of the runs, before the transaction. */
int jdata_prepare(struct wb_chunk *wc);
/* Copy the pages into them, in the transaction; i_lock written. */
void jdata_log(struct trans *tr, struct wb_chunk *wc);
/* Let go of them; not logged: contents that never were are forgotten. */
void jdata_release(struct wb_chunk *wc, bool logged);

#endif
