/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * readahead.c - what to read before it is asked for.
 *
 *        read so far      asked for ahead
 *      ...............|====================|
 *                     ^ mark               ^ end
 *
 * A read that begins where the last one ended (or in its last page) is
 * sequential. The first such read asks for a window behind it; the one that
 * touches the mark, the first page of the window, asks for the next window,
 * twice as long, so that the device works while the reader copies. A read
 * elsewhere starts anew. What is in memory already costs a look at the table.
 */
#include "fs/file.h"

#define AHEAD_PAGES_MIN 32u /* 128 KiB */

static uint32_t next_window(const struct pages *pp, uint32_t count)
{
	const struct readahead *ra = &pp->pp_ra;
	uint32_t pages = UG_MAX(2 * ra->pages, AHEAD_PAGES_MIN);
	/* Several readers must not push each other's pages out. */
	uint32_t share = pp->pp_pool->pl_pages_max / 16;
	uint32_t max =
		tune_get(pp->pp_inode->i_fs, TUNE_MAX_READAHEAD) >> PAGE_SHIFT;

	pages = UG_MAX(pages, count);
	return UG_MIN(pages, UG_MIN(share, max));
}

/* Nothing behind the end of file. */
static uint32_t clip(const struct pages *pp, uint64_t start, uint32_t pages)
{
	uint64_t size = pp->pp_inode->i_size;
	uint64_t end = (size >> PAGE_SHIFT) + !!(size % PAGE_BYTES);

	if (start >= end)
		return 0;
	return (uint32_t)UG_MIN((uint64_t)pages, end - start);
}

void readahead_plan(struct pages *pp, uint64_t index, uint32_t count,
		    uint64_t *start, uint32_t *pages)
{
	struct readahead *ra = &pp->pp_ra;
	bool sequential = index == ra->next || index + 1 == ra->next;
	uint64_t behind = index + count;

	*pages = 0;
	ra->next = behind;
	if (!sequential) {
		ra->pages = 0;
		ra->mark = behind;
		ra->end = behind;
		return;
	}
	if (behind <= ra->mark)
		return;
	*start = UG_MAX(ra->end, behind);
	ra->pages = next_window(pp, count);
	*pages = clip(pp, *start, ra->pages);
	ra->mark = *start;
	ra->end = *start + *pages;
}
