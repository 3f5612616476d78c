/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * writeback.c - committed images to their places, and the tail after them.
 *
 *   pick     jbufs that are at home and in no slot, oldest batch first; marked
 *            jb_writing
 *   copy     to the bounce memory, sorted by address: b_data may be changed by
 *            a new transaction from then on
 *   write    neighbours together, many requests at once; wait
 *   finish   home is given up, unless a newer image has been committed
 *
 * One thread at a time does this, so one block has one write in place under
 * way. trans_free_block() waits for it, as the block may soon hold file
 * data, which a late write would destroy.
 *
 * A buffer in a slot is left out: b_data is not the committed image. It keeps
 * the tail where it is, until its batch is committed and it moves to the new
 * home. So whoever needs the space flushes, and goes on.
 *
 * The space is free only when a header with the new tail is durable. The
 * device flush that precedes every header comes after these writes, so what
 * the log forgets is on stable media.
 * Source: docs/spec/gfs2-ondisk.md 7.5, 7.7.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/assert.h"
#include "journal/jcore.h"

struct inplace_item {
	uint64_t blkno;
	struct jbuf *jb;
	uint64_t home_id; /* when it was picked */
};

/* What is being written in place. Allocated once, for bounce_blocks items. */
struct inplace {
	unsigned count;
	struct inplace_item *items;
	struct ioreq *reqs;
	struct iovec *iov;
	struct buf **bufs;
};

struct inplace *inplace_new(uint32_t blocks)
{
	struct inplace *ip = calloc(1, sizeof(*ip));

	if (!ip)
		return NULL;
	ip->items = calloc(blocks, sizeof(*ip->items));
	ip->reqs = calloc(blocks, sizeof(*ip->reqs));
	ip->iov = calloc(blocks, sizeof(*ip->iov));
	ip->bufs = calloc(blocks, sizeof(struct buf *));
	if (ip->items && ip->reqs && ip->iov && ip->bufs)
		return ip;
	inplace_free(ip);
	return NULL;
}

void inplace_free(struct inplace *ip)
{
	if (!ip)
		return;
	free(ip->items);
	free(ip->reqs);
	free(ip->iov);
	free(ip->bufs);
	free(ip);
}

static bool is_in_slot(const struct jbuf *jb)
{
	return jb->jb_slots[0].js_batch || jb->jb_slots[1].js_batch;
}

/* Lock held, as for all that picks. */
static void pick(struct inplace *ip, struct jbuf *jb)
{
	struct inplace_item *item = &ip->items[ip->count++];

	item->blkno = jb->jb_buf->b_blkno;
	item->jb = jb;
	item->home_id = jb->jb_home->bt_id;
	jb->jb_writing = true;
}

/* What can be written of the batches up to goal, oldest first. */
static void pick_oldest(struct journal *j, uint64_t goal)
{
	struct inplace *ip = j->inplace;
	struct batch *bt;
	struct jbuf *jb;

	ip->count = 0;
	cds_list_for_each_entry (bt, &j->live, bt_live) {
		if (bt->bt_id > goal)
			return;
		cds_list_for_each_entry (jb, &bt->bt_home, jb_home_link) {
			if (ip->count == j->bounce_blocks)
				return;
			if (!is_in_slot(jb))
				pick(ip, jb);
		}
	}
}

/* Of one owner. Returns false if it has no buffer in the journal. */
static bool pick_owner(struct journal *j, struct buf_owner *owner)
{
	struct inplace *ip = j->inplace;
	unsigned n = buf_owner_in_journal(owner, ip->bufs, j->bounce_blocks);

	ip->count = 0;
	for (unsigned i = 0; i < n; i++) {
		struct jbuf *jb = atomic_load(&ip->bufs[i]->b_journal);

		if (jb && jb->jb_home && !is_in_slot(jb))
			pick(ip, jb);
		buf_put(ip->bufs[i]);
	}
	return n != 0;
}

static int by_address(const void *a, const void *b)
{
	const struct inplace_item *x = a, *y = b;

	return x->blkno < y->blkno ? -1 : x->blkno > y->blkno;
}

/*
 * Copy the images, a few for each taking of the lock. What a transaction has
 * taken since it was picked is left out: its b_data may have changed.
 */
static void copy_to_bounce(struct journal *j)
{
	struct inplace *ip = j->inplace;
	uint8_t *to = j->bounce;
	unsigned kept = 0;

	for (unsigned i = 0; i < ip->count; i++) {
		struct jbuf *jb = ip->items[i].jb;

		if (i % JOURNAL_COPY_BLOCKS == 0)
			pthread_mutex_lock(&j->lock);
		if (is_in_slot(jb)) {
			jb->jb_writing = false;
			pthread_cond_broadcast(&j->buffers_done);
		} else {
			memcpy(to, jb->jb_buf->b_data, j->p.block_bytes);
			to += j->p.block_bytes;
			ip->items[kept++] = ip->items[i];
		}
		if ((i + 1) % JOURNAL_COPY_BLOCKS == 0 || i + 1 == ip->count)
			pthread_mutex_unlock(&j->lock);
	}
	ip->count = kept;
}

/* One request for each run of neighbours. Returns how many requests. */
static unsigned make_requests(struct journal *j)
{
	struct inplace *ip = j->inplace;
	uint8_t *from = j->bounce;
	unsigned n = 0;

	for (unsigned i = 0; i < ip->count; i++) {
		uint64_t blkno = ip->items[i].blkno;

		if (i && ip->items[i - 1].blkno + 1 == blkno) {
			ip->iov[n - 1].iov_len += j->p.block_bytes;
		} else {
			ip->iov[n].iov_base = from;
			ip->iov[n].iov_len = j->p.block_bytes;
			ip->reqs[n] = (struct ioreq){
				.op = IOREQ_WRITE,
				.iov = &ip->iov[n],
				.iovcnt = 1,
				.offset_bytes = blkno << j->block_shift,
			};
			n++;
		}
		from += j->p.block_bytes;
	}
	return n;
}

/* Lock held. */
static void finish_writing(struct journal *j, bool written)
{
	struct inplace *ip = j->inplace;

	for (unsigned i = 0; i < ip->count; i++) {
		struct jbuf *jb = ip->items[i].jb;

		jb->jb_writing = false;
		if (!written)
			continue;
		/* A newer image may have been committed; that one waits. */
		if (jb->jb_home && jb->jb_home->bt_id == ip->items[i].home_id)
			jbuf_set_home(j, jb, NULL);
		jbuf_release_if_unused(j, jb);
	}
	if (written)
		j->stats.blocks_in_place += ip->count;
	pthread_cond_broadcast(&j->buffers_done);
}

/*
 * Write what has been picked. Lock held, released meanwhile. 0, or -EIO and
 * the journal has failed.
 */
static int write_picked(struct journal *j)
{
	struct inplace *ip = j->inplace;
	unsigned n;
	int err;

	pthread_mutex_unlock(&j->lock);
	qsort(ip->items, ip->count, sizeof(*ip->items), by_address);
	copy_to_bounce(j);
	n = make_requests(j);
	err = journal_has_failed(j) ? -EIO : iopool_run(j->p.pool, ip->reqs, n);
	pthread_mutex_lock(&j->lock);
	finish_writing(j, !err);
	if (!err)
		return 0;
	journal_set_failed(j, err, "a write of metadata in place failed");
	return -EIO;
}

/* What cannot be written now belongs to the running or committing batch. */
static int flush_what_blocks(struct journal *j)
{
	int err;

	pthread_mutex_unlock(&j->lock);
	err = journal_flush(j, UINT64_MAX);
	pthread_mutex_lock(&j->lock);
	return err;
}

/* Log blocks from the oldest image that is not in place. */
static uint32_t live_blocks(struct journal *j)
{
	if (cds_list_empty(&j->live))
		return 0;
	return ring_distance(
		j,
		cds_list_first_entry(&j->live, struct batch, bt_live)->bt_first,
		j->next);
}

/*
 * The goal is what makes this end under load: batches that are committed
 * after the beginning do not count.
 */
static bool is_reached(struct journal *j, uint64_t goal, uint32_t target)
{
	if (live_blocks(j) <= target)
		return true;
	return cds_list_first_entry(&j->live, struct batch, bt_live)->bt_id >
	       goal;
}

/* Lock held and turn taken. */
static int write_until(struct journal *j, uint64_t goal, uint32_t target)
{
	int err = 0;

	while (!err && !is_reached(j, goal, target)) {
		if (journal_has_failed(j))
			return -EIO;
		pick_oldest(j, goal);
		if (j->inplace->count)
			err = write_picked(j);
		else
			err = flush_what_blocks(j);
	}
	return err;
}

/* Lock held. A header that frees what the live log no longer needs. */
static int advance_tail(struct journal *j)
{
	int err = 0;

	jturn_take(j, &j->flush);
	if (journal_has_failed(j))
		err = -EIO;
	else if (journal_tail_lags(j))
		err = journal_commit(j, GFS2_LOG_HEAD_FLUSH_NORMAL);
	jturn_give(&j->flush);
	return err;
}

int journal_writeback(struct journal *j, unsigned target_percent)
{
	uint32_t target = (uint32_t)((uint64_t)j->blocks *
				     UG_MIN(target_percent, 100u) / 100);
	int err = 0;

	if (!target)
		err = journal_flush(j, UINT64_MAX);
	if (err)
		return err;
	pthread_mutex_lock(&j->lock);
	jturn_take(j, &j->writeback);
	err = write_until(j, j->running->bt_id - 1, target);
	if (!err && journal_used(j) > UG_MAX(target, 1u))
		err = advance_tail(j);
	jturn_give(&j->writeback);
	pthread_mutex_unlock(&j->lock);
	if (err == -EIO)
		journal_report_failure(j);
	return err;
}

/* Lock held and turn taken. *wrote: something has been written. */
static int write_owner(struct journal *j, struct buf_owner *owner, bool *wrote)
{
	int err = 0;

	while (!err && pick_owner(j, owner)) {
		if (j->inplace->count) {
			*wrote = true;
			err = write_picked(j);
		} else if (journal_has_failed(j)) {
			err = -EIO;
		} else {
			err = flush_what_blocks(j);
		}
	}
	return err;
}

/* Nothing of the owner may be left to be replayed. Lock held, turn taken. */
static int clear_from_log(struct journal *j, struct buf_owner *owner)
{
	uint64_t last = atomic_load(&owner->bo_batch);
	int err;

	if (last < j->tail_id)
		return 0;
	err = write_until(j, last, 0);
	return err ? err : advance_tail(j);
}

static int flush_device(struct journal *j)
{
	if (!j->p.barriers || !blkdev_flush(j->p.dev))
		return 0;
	pthread_mutex_lock(&j->lock);
	journal_set_failed(j, -EIO, "a device flush failed");
	pthread_mutex_unlock(&j->lock);
	return -EIO;
}

int journal_writeback_owner(struct journal *j, struct buf_owner *owner)
{
	bool wrote = false;
	int err;

	/* Frees of the owner's blocks leave no buffer behind: all of it. */
	err = journal_flush(j, UINT64_MAX);
	if (err)
		return err;
	pthread_mutex_lock(&j->lock);
	jturn_take(j, &j->writeback);
	err = write_owner(j, owner, &wrote);
	if (!err && j->p.shared)
		err = clear_from_log(j, owner);
	jturn_give(&j->writeback);
	pthread_mutex_unlock(&j->lock);
	if (!err && wrote)
		err = flush_device(j);
	if (err == -EIO)
		journal_report_failure(j);
	return err;
}
