/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * wb_io.c - the data of a round to the device.
 *
 * The runs of all chunks, sorted by address, neighbours merged, several
 * requests at once.
 */
#include <errno.h>
#include <stdlib.h>

#include "fs/iolist.h"
#include "fs/wb.h"

struct run_ref {
	struct wb_chunk *wc;
	struct wb_run *run;
};

static int ref_compare(const void *a, const void *b)
{
	uint64_t x = ((const struct run_ref *)a)->run->pblock;
	uint64_t y = ((const struct run_ref *)b)->run->pblock;

	return (x > y) - (x < y);
}

static bool has_data(const struct wb_chunk *wc)
{
	return !wc->wc_err && wc->wc_kind == WB_DATA;
}

/* All runs of the round by address; NULL: no memory. */
static struct run_ref *sorted_runs(struct wb_chunk *chunks, unsigned n,
				   unsigned *count)
{
	struct run_ref *refs;
	unsigned total = 0, k = 0;

	for (unsigned i = 0; i < n; i++)
		total += has_data(&chunks[i]) ? chunks[i].wc_nruns : 0;
	*count = total;
	refs = malloc(UG_MAX(total, 1u) * sizeof(*refs));
	if (!refs)
		return NULL;
	for (unsigned i = 0; i < n; i++) {
		struct wb_chunk *wc = &chunks[i];

		if (!has_data(wc))
			continue;
		for (unsigned r = 0; r < wc->wc_nruns; r++)
			refs[k++] = (struct run_ref){ wc, &wc->wc_runs[r] };
	}
	if (total)
		qsort(refs, total, sizeof(*refs), ref_compare);
	return refs;
}

static int list_run(struct iolist *list, struct wb_chunk *wc,
		    struct wb_run *run)
{
	unsigned bshift = wc->wc_ip->i_fs->fs_geom.bshift;
	uint32_t done = 0;

	while (done < run->count) {
		struct page *pg;
		unsigned block;
		uint32_t n = wb_piece(wc, run, done, &pg, &block);
		int req = iolist_add(list, wb_memory(wc, pg, block),
				     (size_t)n << bshift,
				     (run->pblock + done) << bshift);

		if (req < 0)
			return req;
		if (!done)
			run->req_first = (unsigned)req;
		run->req_last = (unsigned)req;
		done += n;
	}
	return 0;
}

/* A chunk has failed if any of its requests has. */
static void note_results(const struct iolist *list, const struct run_ref *refs,
			 unsigned count)
{
	for (unsigned i = 0; i < count; i++) {
		const struct wb_run *run = refs[i].run;

		for (unsigned r = run->req_first; r <= run->req_last; r++) {
			if (list->il_reqs[r].result)
				refs[i].wc->wc_err = list->il_reqs[r].result;
		}
	}
}

static void fail_all(struct wb_chunk *chunks, unsigned n, int err)
{
	for (unsigned i = 0; i < n; i++) {
		if (has_data(&chunks[i]))
			chunks[i].wc_err = err;
	}
}

void wb_write(struct wb_chunk *chunks, unsigned n)
{
	struct iolist list;
	unsigned count;
	struct run_ref *refs = sorted_runs(chunks, n, &count);
	int err = refs ? 0 : -ENOMEM;

	iolist_init(&list, IOREQ_WRITE);
	for (unsigned i = 0; !err && i < count; i++)
		err = list_run(&list, refs[i].wc, refs[i].run);
	if (err) {
		fail_all(chunks, n, err);
	} else if (count) {
		iolist_run(&list, chunks->wc_ip->i_fs->fs_pool);
		note_results(&list, refs, count);
	}
	iolist_free(&list);
	free(refs);
	for (unsigned i = 0; i < n; i++) {
		if (has_data(&chunks[i]))
			file_note_written(chunks[i].wc_ip);
	}
}
