/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * piece.c - a piece of a write: tried, given what it lacks, tried again.
 */
#include <errno.h>
#include <string.h>

#include "fs/piece.h"
#include "fs/work.h"

/* Attempts to find memory for a piece before the writer is told. */
#define MEMORY_TRIES 16u

/* ---- doing; i_lock written, pp_lock held ---- */

static void zero_blocks(const struct piece *p, const struct piece_page *pp)
{
	unsigned bshift = p->ip->i_fs->fs_geom.bshift;
	unsigned char *data = page_data(p->pp->pp_pool, pp->pg);

	for (uint8_t left = pp->zero; left; left &= (uint8_t)(left - 1))
		memset(data + ((size_t)__builtin_ctz(left) << bshift), 0,
		       (size_t)1 << bshift);
}

/*
 * All bytes of the piece into its pages: pages next to each other in memory in
 * one go, which is what the copy of a large write is fastest at.
 */
static void copy_in(struct piece *p)
{
	unsigned char *start = NULL;
	const char *buf = p->buf;
	size_t len = 0;

	for (unsigned i = 0; i < p->count; i++) {
		unsigned char *data;
		uint32_t from, to;

		piece_bytes(p, i, &from, &to);
		data = page_data(p->pp->pp_pool, p->pages[i].pg) + from;
		if (start && start + len == data) {
			len += to - from;
			continue;
		}
		if (start)
			memcpy(start, buf, len);
		buf += len;
		start = data;
		len = to - from;
	}
	if (start)
		memcpy(start, buf, len);
}

static void mark_page(struct piece *p, struct piece_page *pp)
{
	struct page *pg = pp->pg;

	if (pp->fresh) {
		struct pleaf *leaf =
			pagetable_leaf(&p->pp->pp_table, pg->pg_index);

		page_delay(p->pp, pg, pp->fresh,
			   pages_promise_leaf(p->pp, leaf));
	}
	pg->pg_mapped |= pp->mapped;
	page_set_dirty(p->pp, pg, pp->cover);
	if (p->io_flags & FS_IO_NOCACHE)
		pg->pg_flags |= PAGE_NOCACHE;
	page_touch(pg);
}

static void carry_out(struct piece *p)
{
	uint64_t end = p->offset + p->len;

	for (unsigned i = 0; i < p->count; i++) {
		if (p->pages[i].zero)
			zero_blocks(p, &p->pages[i]);
	}
	copy_in(p);
	for (unsigned i = 0; i < p->count; i++)
		mark_page(p, &p->pages[i]);
	if (end > p->ip->i_size)
		p->ip->i_size = end;
	if (p->len)
		file_kill_priv(p->req, p->ip, p->io_flags);
	file_touch(p->ip);
}

static int try_piece(struct piece *p)
{
	const struct gfs2_geom *geom = &p->ip->i_fs->fs_geom;
	uint64_t end = p->offset + p->len;
	int err = inode_wrlock(p->req, p->ip);

	p->want = WANT_NOTHING;
	if (err)
		return err;
	pthread_mutex_lock(&p->pp->pp_lock);
	p->stuffed = !p->ip->i_height && end <= geom->stuffed_max &&
		     p->ip->i_size <= geom->stuffed_max;
	p->run.count = 0;
	err = piece_plan(p);
	if (!err)
		carry_out(p);
	pthread_mutex_unlock(&p->pp->pp_lock);
	inode_rwunlock(p->ip);
	return err;
}

/* ---- supplying what was missing; no lock but the glock held ---- */

static int supply_page(struct piece *p)
{
	bool reading;

	pthread_mutex_lock(&p->pp->pp_lock);
	if (!p->req->nowait)
		pages_wait_read(p->pp, p->want_at);
	reading = p->pp->pp_reading;
	pthread_mutex_unlock(&p->pp->pp_lock);
	if (reading && p->req->nowait)
		return -EAGAIN;
	return pages_fill(p->ip, p->want_at, 1,
			  p->req->nowait ? FILL_NOWAIT : 0);
}

static int supply_tree(struct piece *p)
{
	struct tree_run run;
	int err;

	pthread_rwlock_rdlock(&p->ip->i_lock);
	err = tree_map(p->ip, p->want_at, 1, false, &run);
	inode_rwunlock(p->ip);
	return err;
}

/* Nothing is promised to us while we wait for other nodes, which may want it.
 */
static void give_back_space(struct piece *p)
{
	if (p->prepaid)
		space_unpromise(p->ip->i_fs, p->prepaid);
	p->prepaid = 0;
}

/*
 * Other nodes may have what we need. Delayed data holds more promises than it
 * will need blocks, and freed blocks become usable with the commit: both
 * once, then it is the truth.
 */
static int supply_space(struct piece *p)
{
	struct fs *fs = p->ip->i_fs;
	int err;

	give_back_space(p);
	err = space_promise_wait(p->ip, p->want_at);
	if (!err)
		p->prepaid = p->want_at;
	if (err != -ENOSPC)
		return err;
	if (p->space_tried)
		return -ENOSPC;
	p->space_tried = true;
	(void)fs_writeback_all(fs);
	pagepool_wait_writeback(fs);
	return fs_reclaim_space(fs);
}

static int supply_memory(struct piece *p)
{
	if (p->tries++ == MEMORY_TRIES)
		return -ENOMEM;
	return writeback_for_room(p->ip);
}

static int supply(struct piece *p)
{
	int err;

	if (p->want == WANT_FILL) {
		err = supply_page(p);
		if (err != -ENOMEM)
			return err;
		p->want = WANT_MEMORY;
	}
	if (p->req->nowait)
		return -EAGAIN;
	switch (p->want) {
	case WANT_TREE:
		return supply_tree(p);
	case WANT_SPACE:
		return supply_space(p);
	case WANT_MEMORY:
		return supply_memory(p);
	case WANT_NOTHING:
	case WANT_FILL:
		break;
	}
	return -EAGAIN;
}

int piece_write(struct piece *p)
{
	int err;

	p->count = 0;
	if (p->len)
		p->count = (unsigned)((p->offset + p->len - 1) / PAGE_BYTES -
				      piece_index(p) + 1);
	p->spares = 0;
	p->tries = 0;
	for (;;) {
		err = try_piece(p);
		if (err != -EAGAIN || p->want == WANT_NOTHING)
			break;
		err = supply(p);
		if (err)
			break;
	}
	pagepool_give(p->pp->pp_pool, p->spare, p->spares);
	give_back_space(p);
	return err;
}

int piece_init(struct piece *p, const struct fs_req *req, struct inode *ip,
	       uint64_t offset, unsigned io_flags)
{
	p->req = req;
	p->ip = ip;
	p->pp = pages_get(ip);
	p->buf = NULL;
	p->offset = offset;
	p->len = 0;
	p->io_flags = io_flags;
	p->space_tried = false;
	p->prepaid = 0;
	return p->pp ? 0 : -ENOMEM;
}
