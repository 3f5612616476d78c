/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * piece.h - a part of a write, small enough to take effect in one step.
 *
 * Everything that can fail or wait is looked at first, then all takes effect at
 * once, with i_lock written and pp_lock held:
 *
 *   pages      in the table; missing ones are taken from the pool
 *   mapping    of each block: mapped, or delayed with this write
 *   old bytes  of blocks that are covered in part: up to date, or zero
 *   space      promised for blocks that become delayed
 *   -------    from here on nothing fails
 *   copy, marks, size, times
 *
 * What is missing is named (enum want) and supplied with these locks
 * released, and the piece is tried again; in no-wait mode only what memory can
 * supply. The glock EX is held all the time, so that nobody but write-back and
 * the pool's clock changes anything in between.
 *
 * Write-back sees the size and the pages change together: it must not take a
 * page for clean whose last bytes it did not know to be part of the file.
 */
#ifndef UG_FS_PIECE_H
#define UG_FS_PIECE_H

#include "fs/file.h"
#include "fs/tree.h"

#define PIECE_BYTES_MAX (1u << 20)
#define PIECE_PAGES_MAX (PIECE_BYTES_MAX / PAGE_BYTES + 1)

enum want {
	WANT_NOTHING,
	WANT_FILL,   /* the page at want_at filled */
	WANT_TREE,   /* pointer blocks of the block at want_at in memory */
	WANT_SPACE,  /* blocks to promise */
	WANT_MEMORY, /* free pages */
};

struct piece_page {
	struct page *pg;
	uint8_t cover;	/* blocks that the write touches */
	uint8_t fresh;	/* of these, those that become delayed */
	uint8_t mapped; /* those found to be mapped */
	uint8_t zero;	/* those whose old content is zero */
};

struct piece {
	const struct fs_req *req;
	struct inode *ip;
	struct pages *pp;
	const char *buf;
	uint64_t offset;
	size_t len;
	unsigned io_flags;
	bool stuffed; /* the file stays so */

	enum want want;
	uint64_t want_at; /* WANT_SPACE: how much */
	unsigned tries;
	bool space_tried;
	uint64_t prepaid; /* promised to the piece, and to no page yet */

	struct tree_run run; /* mapping found last, */
	uint64_t run_lblock; /* from this block on */

	unsigned spares;
	struct page *spare[PIECE_PAGES_MAX];
	unsigned count;
	struct piece_page pages[PIECE_PAGES_MAX];
};

/* No bytes yet, at offset. -ENOMEM. */
int piece_init(struct piece *p, const struct fs_req *req, struct inode *ip,
	       uint64_t offset, unsigned io_flags);

/*
 * Carry out what buf, offset and len say. -EAGAIN (req->nowait), -ENOSPC,
 * -ENOMEM, -EIO, -EUCLEAN: nothing has been done.
 */
int piece_write(struct piece *p);

/* Of the first page. */
static inline uint64_t piece_index(const struct piece *p)
{
	return p->offset >> PAGE_SHIFT;
}

/* The bytes of page i that the piece covers: [*from, *to). */
static inline void piece_bytes(const struct piece *p, unsigned i,
			       uint32_t *from, uint32_t *to)
{
	uint64_t start = (piece_index(p) + i) << PAGE_SHIFT;
	uint64_t end = p->offset + p->len;

	*from = p->offset > start ? (uint32_t)(p->offset - start) : 0;
	*to = (uint32_t)UG_MIN(end - start, (uint64_t)PAGE_BYTES);
}

/*
 * piece_plan.c: find everything that the piece needs; i_lock written, pp_lock
 * held (and released in between). -EAGAIN: want says what is missing.
 */
int piece_plan(struct piece *p);

#endif
