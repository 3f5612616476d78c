/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * trans.c - transactions: room in the log, additions, frees, the end.
 *
 * The invariant that keeps the log from filling up (all in log blocks):
 *
 *   used by the live log + the flush under way + what the running batch would
 *   take now + what open transactions have reserved + JOURNAL_SPARE_BLOCKS
 *   <= size of the ring - 1
 *
 * trans_begin() reserves the worst case and waits as long as that would break
 * the invariant; nothing after it can run out of space. While a transaction is
 * open its additions count twice, in the running batch and in what it has
 * reserved, which errs on the safe side.
 *
 * Who waits for space makes it himself: he writes back, flushes, writes a
 * header with the new tail. He holds no transaction, and neither job takes
 * a lock of the file system, so this ends. He holds the "space" turn
 * meanwhile, and who comes later waits behind him: a large transaction is not
 * starved by a stream of small ones.
 *
 * A frozen journal is as one whose gate is closed until the thaw.
 *
 * The gate: a flush closes it, waits until no transaction is open, splices,
 * opens it. So no flush can contain half a transaction.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/assert.h"
#include "journal/jcore.h"

/*
 * More than a transaction can add to its batch, whatever is in it already:
 * images; descriptors, of jdata and of metadata, each rounded up; revokes;
 * the header, should the batch be empty.
 */
static uint64_t worst_case(const struct journal *j, unsigned blocks,
			   unsigned revokes)
{
	uint64_t sum = 1;

	if (blocks)
		sum += (uint64_t)blocks + 1 +
		       UG_DIV_UP(blocks, j->geom.ldptrs / 2);
	if (revokes)
		sum += 1 + UG_DIV_UP(revokes, j->geom.ldptrs);
	return sum;
}

/* The log must keep one block free, or full would look like empty. */
static bool log_has_room(struct journal *j, uint64_t wanted)
{
	uint64_t sum = wanted + j->reserved + JOURNAL_SPARE_BLOCKS;

	sum += journal_used(j) + j->committing_blocks;
	sum += batch_log_blocks(j, j->running);
	return sum <= j->blocks - 1;
}

static int check_can_begin(struct journal *j, uint64_t wanted)
{
	if (journal_has_failed(j) || j->ended)
		return -EIO;
	/* An empty log still has its head. */
	if (wanted + JOURNAL_SPARE_BLOCKS + 1 > j->blocks - 1)
		return -ENOSPC;
	return 0;
}

/*
 * Free log space, the turn for it taken. Lock held, released meanwhile. Half
 * of the log is enough for most; if that was not (again), all of it.
 */
static int make_room(struct journal *j, bool again)
{
	int err;

	/* Nothing to free: open transactions have reserved the rest. */
	if (again && j->open && batch_is_empty(j->running) && !j->committing &&
	    cds_list_empty(&j->live) && !journal_tail_lags(j)) {
		pthread_cond_wait(&j->trans_ended, &j->lock);
		return 0;
	}
	pthread_mutex_unlock(&j->lock);
	err = journal_writeback(j, again ? 0 : 50);
	pthread_mutex_lock(&j->lock);
	return err;
}

/* Wait until the gate is open and there is room. Lock held. */
static int wait_to_begin(struct journal *j, uint64_t wanted, unsigned flags)
{
	bool have_turn = false, again = false;
	int err;

	for (;;) {
		err = check_can_begin(j, wanted);
		if (err)
			break;
		if (flags & TRANS_NOWAIT) {
			err = -EAGAIN;
			break;
		}
		if (j->gate_closed || j->frozen) {
			pthread_cond_wait(&j->gate_opened, &j->lock);
			continue;
		}
		if (!have_turn) {
			jturn_take(j, &j->space);
			have_turn = true;
			continue;
		}
		if (log_has_room(j, wanted))
			break;
		err = make_room(j, again);
		again = true;
		if (err)
			break;
	}
	if (have_turn)
		jturn_give(&j->space);
	return err;
}

static bool can_begin_now(struct journal *j, uint64_t wanted)
{
	return !check_can_begin(j, wanted) && !j->gate_closed && !j->frozen &&
	       !j->space.jt_taken && log_has_room(j, wanted);
}

int trans_begin(struct journal *j, struct trans *tr, unsigned blocks,
		unsigned revokes, unsigned flags)
{
	uint64_t wanted = worst_case(j, blocks, revokes);
	int err = 0;

	pthread_mutex_lock(&j->lock);
	if (ug_unlikely(!can_begin_now(j, wanted))) {
		err = wait_to_begin(j, wanted, flags);
		if (err)
			goto unlock;
	}
	err = jbufs_reserve(j, blocks);
	if (err)
		goto unlock;
	err = revoke_set_reserve(&j->running->bt_revokes,
				 j->running->bt_revokes.rs_count +
					 j->revokes_reserved + revokes);
	if (err) {
		jbufs_unreserve(j, blocks);
		goto unlock;
	}
	j->open++;
	j->reserved += (uint32_t)wanted;
	j->revokes_reserved += revokes;
	*tr = (struct trans){
		.tr_journal = j,
		.tr_batch = j->running->bt_id,
		.tr_reserved = (uint32_t)wanted,
		.tr_blocks = blocks,
		.tr_revokes = revokes,
	};
unlock:
	pthread_mutex_unlock(&j->lock);
	return err;
}

/*
 * The flush under way may not have copied the image yet, and it is about to
 * be changed: keep it. False if there is no memory for that; the flush, which
 * needs nothing of ours, will have copied it soon. Lock held.
 */
static bool keep_image(struct journal *j, struct jbuf *jb)
{
	struct jslot *slot = jbuf_slot(jb, j->running->bt_id - 1);

	if (!slot->js_batch || slot->js_copied || slot->js_frozen ||
	    journal_has_failed(j))
		return true;
	slot->js_frozen = malloc(j->p.block_bytes);
	if (!slot->js_frozen)
		return false;
	memcpy(slot->js_frozen, jb->jb_buf->b_data, j->p.block_bytes);
	return true;
}

static void add_to_running(struct trans *tr, struct buf *b, bool jdata)
{
	struct journal *j = tr->tr_journal;
	struct batch *bt = j->running;
	struct jbuf *jb =
		atomic_load_explicit(&b->b_journal, memory_order_relaxed);

	ug_assert(tr->tr_touched < tr->tr_blocks);
	tr->tr_touched++;
	jbufs_unreserve(j, 1);
	if (!jb)
		jb = jbuf_attach(j, b);
	if (jdata) {
		atomic_fetch_or(&b->b_state, BUF_JDATA);
		bt->bt_jdata_count++;
	} else {
		atomic_fetch_and(&b->b_state, ~BUF_JDATA);
		bt->bt_meta_count++;
	}
	jslot_enter(j, jbuf_slot(jb, bt->bt_id),
		    jdata ? &bt->bt_jdata : &bt->bt_meta);
	if (!jdata && block_has_magic(b->b_data))
		gfs2_meta_set_jid(b->b_data, j->p.jid);
	/*
	 * A revoke of this very batch would hide the image: in the log, revokes
	 * stand behind images.
	 */
	revoke_set_remove(&bt->bt_revokes, b->b_blkno);
	if (b->b_owner)
		atomic_store_explicit(&b->b_owner->bo_batch, bt->bt_id,
				      memory_order_relaxed);
	atomic_store_explicit(&b->b_batch, bt->bt_id, memory_order_release);
}

/*
 * If the buffer is in the batch already, it stays until the flush, which cannot
 * begin while we are open: no lock is needed to see that. Two transactions may
 * add one buffer at the same time, so the second looks again. Both return
 * only when the header and the image of the flush under way are settled.
 */
static void trans_add(struct trans *tr, struct buf *b, bool jdata)
{
	struct journal *j = tr->tr_journal;

	tr->tr_changed = true;
	if (atomic_load_explicit(&b->b_batch, memory_order_acquire) ==
	    tr->tr_batch)
		return;
	pthread_mutex_lock(&j->lock);
	while (atomic_load_explicit(&b->b_batch, memory_order_relaxed) !=
	       tr->tr_batch) {
		struct jbuf *jb = atomic_load(&b->b_journal);

		if (!jb || keep_image(j, jb))
			add_to_running(tr, b, jdata);
		else
			pthread_cond_wait(&j->buffers_done, &j->lock);
	}
	pthread_mutex_unlock(&j->lock);
}

void trans_add_meta(struct trans *tr, struct buf *b)
{
	trans_add(tr, b, false);
}

void trans_add_jdata(struct trans *tr, struct buf *b)
{
	trans_add(tr, b, true);
}

static void leave_running(struct journal *j, struct jbuf *jb)
{
	struct batch *bt = j->running;

	if (atomic_load(&jb->jb_buf->b_state) & BUF_JDATA)
		bt->bt_jdata_count--;
	else
		bt->bt_meta_count--;
	jslot_leave(jbuf_slot(jb, bt->bt_id));
	atomic_store_explicit(&jb->jb_buf->b_batch, 0, memory_order_release);
}

/*
 * Take a buffer out of the journal because its block is freed: what is new in
 * it is not logged at all, what is committed not written in place any more.
 * Its image must stay in the live log until the free is durable, as a crash
 * takes the free back until then; it does, because the next header is the
 * one that commits the free. Lock held; released while the block is being
 * written in place.
 */
static void free_buffer(struct journal *j, struct buf *b)
{
	uint64_t id = j->running->bt_id;
	struct jbuf *jb;

	while ((jb = atomic_load(&b->b_journal)) && jb->jb_writing)
		pthread_cond_wait(&j->buffers_done, &j->lock);
	if (!jb)
		return;
	if (jbuf_slot(jb, id)->js_batch)
		leave_running(j, jb);
	jbuf_slot(jb, id - 1)->js_freed = true;
	jbuf_set_home(j, jb, NULL);
	jbuf_release_if_unused(j, jb);
}

void trans_free_block(struct trans *tr, uint64_t blkno)
{
	struct journal *j = tr->tr_journal;
	struct buf *b = buf_peek(j->p.cache, blkno);

	pthread_mutex_lock(&j->lock);
	tr->tr_changed = true;
	if (b)
		free_buffer(j, b);
	/*
	 * Always, as older images may be in the live log, long written in
	 * place, that nobody remembers.
	 */
	if (revoke_set_put(&j->running->bt_revokes, blkno, 0)) {
		ug_assert(tr->tr_freed < tr->tr_revokes);
		tr->tr_freed++;
		j->revokes_reserved--;
	}
	pthread_mutex_unlock(&j->lock);
	buf_forget_block(j->p.cache, blkno);
	buf_put(b);
}

void trans_on_commit(struct trans *tr, struct commit_cb *cb)
{
	struct journal *j = tr->tr_journal;

	pthread_mutex_lock(&j->lock);
	tr->tr_changed = true;
	cds_list_add_tail(&cb->link, &j->running->bt_callbacks);
	pthread_mutex_unlock(&j->lock);
}

/* Once for a batch: so much is waiting that a flush would be good. */
static bool flush_becomes_wanted(struct journal *j)
{
	struct batch *bt = j->running;

	if (bt->bt_flush_wanted ||
	    (uint64_t)batch_log_blocks(j, bt) * 5 <= (uint64_t)j->blocks * 2)
		return false;
	bt->bt_flush_wanted = true;
	return true;
}

uint64_t trans_end(struct trans *tr)
{
	struct journal *j = tr->tr_journal;
	uint64_t sequence = tr->tr_batch;
	bool want_flush = false;

	pthread_mutex_lock(&j->lock);
	j->reserved -= tr->tr_reserved;
	j->revokes_reserved -= tr->tr_revokes - tr->tr_freed;
	jbufs_unreserve(j, tr->tr_blocks - tr->tr_touched);
	j->open--;
	if (tr->tr_changed) {
		j->stats.transactions++;
		want_flush = flush_becomes_wanted(j);
	}
	if (ug_unlikely(j->gate_closed || j->frozen || j->space.jt_taken))
		pthread_cond_broadcast(&j->trans_ended);
	pthread_mutex_unlock(&j->lock);
	tr->tr_journal = NULL;
	if (want_flush)
		j->p.ops->want_flush(j->p.arg);
	return sequence;
}
