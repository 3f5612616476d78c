/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * logwrite.c - one flush on its way to the log.
 *
 * Blocks are put together in staging memory in ring order, and go out in
 * large requests whenever it is full:
 *
 *   | LD 302 | data ... | LD 300 | images ... | LD 301 | LB ... |      LH
 *   '------------------ staged, requests up to 1 MiB -----------'   by itself
 *
 * Images are copied, never written from b_data: a transaction of the next
 * batch may change a buffer the moment the lock is free (its image is kept
 * then, see freeze_image() in trans.c), also while the device reads.
 *
 * In what order the device takes the staged blocks does not matter, as the
 * header is not written before all have returned and the device has been
 * flushed.
 * Source: docs/spec/gfs2-ondisk.md 7.1 to 7.3.
 */
#include <errno.h>
#include <string.h>
#include <time.h>

#include "base/assert.h"
#include "journal/jcore.h"

/* Requests under way at once. */
#define LOGW_REQUESTS 16u

struct logw {
	struct journal *j;
	uint32_t pos;	 /* journal block of the first staged block */
	uint32_t filled; /* blocks staged */
	uint32_t total;	 /* blocks staged since the beginning */
	int err;	 /* the first error; nothing is written after it */
};

/* What can be written by one request from here: ring and extents end it. */
static uint32_t request_blocks(const struct journal *j, uint32_t pos,
			       uint32_t left, uint64_t *addr)
{
	uint32_t run;

	*addr = logmap_addr(j->p.map, pos, &run);
	run = UG_MIN(run, j->blocks - pos);
	run = UG_MIN(run, JOURNAL_REQUEST_BYTES >> j->block_shift);
	return UG_MIN(run, left);
}

/* Write out the next staged blocks; returns how many. */
static uint32_t logw_write_some(struct logw *lw, uint32_t done)
{
	struct journal *j = lw->j;
	struct ioreq reqs[LOGW_REQUESTS];
	struct iovec iov[LOGW_REQUESTS];
	uint32_t begin = done;
	unsigned n;

	for (n = 0; n < LOGW_REQUESTS && done < lw->filled; n++) {
		uint64_t addr;
		uint32_t blocks = request_blocks(j, ring_add(j, lw->pos, done),
						 lw->filled - done, &addr);

		iov[n].iov_base = j->stage + ((size_t)done << j->block_shift);
		iov[n].iov_len = (size_t)blocks << j->block_shift;
		reqs[n] = (struct ioreq){
			.op = IOREQ_WRITE,
			.iov = &iov[n],
			.iovcnt = 1,
			.offset_bytes = addr << j->block_shift,
		};
		done += blocks;
	}
	lw->err = iopool_run(j->p.pool, reqs, n);
	return done - begin;
}

static void logw_write_out(struct logw *lw)
{
	uint32_t done = 0;

	while (done < lw->filled) {
		if (!lw->err && journal_has_failed(lw->j))
			lw->err = -ECANCELED;
		if (lw->err)
			break;
		done += logw_write_some(lw, done);
	}
	lw->pos = ring_add(lw->j, lw->pos, lw->filled);
	lw->filled = 0;
}

/* Staging memory for up to want blocks; *got says for how many, at least 1. */
static uint8_t *logw_room(struct logw *lw, uint32_t want, uint32_t *got)
{
	struct journal *j = lw->j;
	uint8_t *room;

	if (lw->filled == j->stage_blocks)
		logw_write_out(lw);
	room = j->stage + ((size_t)lw->filled << j->block_shift);
	*got = UG_MIN(want, j->stage_blocks - lw->filled);
	lw->filled += *got;
	lw->total += *got;
	return room;
}

static const void *slot_image(const struct jslot *slot)
{
	return slot->js_frozen ? slot->js_frozen
			       : slot->js_jbuf->jb_buf->b_data;
}

/*
 * Addresses of the n images that follow, from slot on. A data block that begins
 * with the magic would look like a block of the log: its copy loses these
 * bytes, and a flag remembers them.
 */
static void put_descriptor(struct logw *lw, enum gfs2_log_desc_type type,
			   const struct jslot *slot, uint32_t n)
{
	struct journal *j = lw->j;
	const struct gfs2_ld_info ld = {
		.type = type,
		.length = gfs2_ld_length_for(&j->geom, type, n),
		.data1 = n,
	};
	uint32_t got;
	uint8_t *block = logw_room(lw, 1, &got);
	be64 *addr;

	gfs2_ld_encode(&j->geom, &ld, block);
	addr = gfs2_ld_slots(block);
	pthread_mutex_lock(&j->lock);
	for (; n; n--) {
		bool magic = block_has_magic(slot_image(slot));

		*addr++ = be64_of(slot->js_jbuf->jb_buf->b_blkno);
		if (type == GFS2_LOG_DESC_JDATA)
			*addr++ = be64_of(magic);
		else if (!magic && !lw->err)
			lw->err = -EUCLEAN;
		slot = cds_list_entry(slot->js_link.next, struct jslot,
				      js_link);
	}
	pthread_mutex_unlock(&j->lock);
}

/* Lock held. Afterwards the buffer may be changed without keeping a copy. */
static void copy_image(struct journal *j, struct jslot *slot, bool jdata,
		       uint8_t *to)
{
	memcpy(to, slot_image(slot), j->p.block_bytes);
	if (jdata && block_has_magic(to))
		memset(to, 0, sizeof(be32));
	slot->js_copied = true;
}

/* Stage n images; returns the slot behind the last. */
static struct jslot *put_images(struct logw *lw, bool jdata, struct jslot *slot,
				uint32_t n)
{
	struct journal *j = lw->j;

	while (n) {
		uint32_t got;
		uint8_t *to =
			logw_room(lw, UG_MIN(n, JOURNAL_COPY_BLOCKS), &got);

		n -= got;
		pthread_mutex_lock(&j->lock);
		for (; got; got--, to += j->p.block_bytes) {
			copy_image(j, slot, jdata, to);
			slot = cds_list_entry(slot->js_link.next, struct jslot,
					      js_link);
		}
		pthread_cond_broadcast(&j->buffers_done);
		pthread_mutex_unlock(&j->lock);
	}
	return slot;
}

/* Nobody changes the list of a committing batch. */
static void put_list(struct logw *lw, enum gfs2_log_desc_type type,
		     struct cds_list_head *list, uint32_t count)
{
	bool jdata = type == GFS2_LOG_DESC_JDATA;
	uint32_t max = lw->j->geom.ldptrs / (jdata ? 2 : 1);
	struct jslot *slot = cds_list_entry(list->next, struct jslot, js_link);

	while (count) {
		uint32_t n = UG_MIN(count, max);

		put_descriptor(lw, type, slot, n);
		slot = put_images(lw, jdata, slot, n);
		count -= n;
	}
}

static uint32_t put_revoke_slots(be64 *slots, uint32_t n,
				 const struct revoke_set *revokes,
				 size_t *cursor)
{
	const struct revoke *rv;
	uint32_t i = 0;

	while (i < n && (rv = revoke_set_next(revokes, cursor)))
		slots[i++] = be64_of(rv->rv_blkno);
	return i;
}

/* One descriptor, and as many continuations as it takes. */
static void put_revokes(struct logw *lw, const struct revoke_set *revokes)
{
	const struct gfs2_geom *geom = &lw->j->geom;
	uint32_t left = (uint32_t)revokes->rs_count;
	const struct gfs2_ld_info ld = {
		.type = GFS2_LOG_DESC_REVOKE,
		.length = gfs2_ld_length_for(geom, GFS2_LOG_DESC_REVOKE, left),
		.data1 = left,
	};
	size_t cursor = 0;
	uint32_t got;
	uint8_t *block;

	if (!left)
		return;
	block = logw_room(lw, 1, &got);
	gfs2_ld_encode(geom, &ld, block);
	left -= put_revoke_slots(gfs2_ld_slots(block), geom->ldptrs, revokes,
				 &cursor);
	while (left) {
		block = logw_room(lw, 1, &got);
		memset(block, 0, geom->bsize);
		gfs2_meta_init(block, GFS2_METATYPE_LB);
		left -= put_revoke_slots(gfs2_indirect_ptrs(block),
					 geom->inptrs, revokes, &cursor);
	}
}

int log_write_batch(struct journal *j, struct batch *bt,
		    const struct commit_info *info)
{
	struct logw lw = { .j = j, .pos = info->ci_first };

	put_list(&lw, GFS2_LOG_DESC_JDATA, &bt->bt_jdata, bt->bt_jdata_count);
	put_list(&lw, GFS2_LOG_DESC_METADATA, &bt->bt_meta, bt->bt_meta_count);
	put_revokes(&lw, &bt->bt_revokes);
	logw_write_out(&lw);
	ug_assert(lw.total + 1 == info->ci_blocks);
	return lw.err;
}

static void header_fill(struct journal *j, const struct commit_info *info,
			struct gfs2_lh_info *lh)
{
	struct timespec now;
	uint32_t run;

	clock_gettime(CLOCK_REALTIME, &now);
	*lh = (struct gfs2_lh_info){
		.jid = j->p.jid,
		.v2 = true,
		.sequence = j->sequence + 1,
		.flags = info->ci_flags,
		.tail = info->ci_tail,
		.blkno = ring_add(j, info->ci_first, info->ci_blocks - 1),
		.time = { .sec = now.tv_sec, .nsec = (uint32_t)now.tv_nsec },
		.jinode = j->p.jinode_addr,
		.statfs_addr = j->p.statfs_addr,
		.quota_addr = j->p.quota_addr,
		.local_total = info->ci_total,
		.local_free = info->ci_free,
		.local_dinodes = info->ci_dinodes,
	};
	lh->addr = logmap_addr(j->p.map, lh->blkno, &run);
}

int log_write_header(struct journal *j, const struct commit_info *info)
{
	struct gfs2_lh_info lh;
	int err;

	header_fill(j, info, &lh);
	gfs2_lh_encode(&j->geom, &lh, j->stage);
	if (j->p.barriers) {
		err = blkdev_flush(j->p.dev);
		if (err)
			return -EIO;
	}
	if (journal_has_failed(j))
		return -ECANCELED;
	err = blkdev_write(j->p.dev, j->stage, j->p.block_bytes,
			   lh.addr << j->block_shift,
			   j->p.barriers ? BLK_FUA : 0);
	return err ? -EIO : 0;
}
