/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * flush.c - group commit.
 *
 *   close the gate, wait until no transaction is open
 *   splice: the running batch becomes the committing one; tail and statfs
 *           values for the header are taken now
 *   open the gate: transactions go on from here
 *   descriptors, images, revokes to the log; wait          (logwrite.c)
 *   device flush; header; durable                          the commit
 *   images get their home in this batch
 *   commit callbacks; those who wait for this flush
 *
 * One thread flushes at a time. Who comes meanwhile with transactions that are
 * not part of it waits for it, and then one of them takes all of theirs along
 * in the next flush: the slower the device, the larger the groups.
 *
 * The tail of the header is the oldest live batch at the splice, or this very
 * flush. What is written in place later than the splice does not count yet:
 * the device flush before the header covers only what was in place before it
 * began. Nor does what later transactions free, see free_buffer() in trans.c:
 * that leaves its live batch after the splice, and is not committed by
 * this header.
 *
 * A crash before the header is durable: the log ends with the header before,
 * nothing of this flush is there. After it: all of it is.
 * Source: docs/spec/gfs2-ondisk.md 7.5 to 7.7.
 */
#include <errno.h>
#include <stdlib.h>

#include "base/assert.h"
#include "base/log.h"
#include "journal/jcore.h"

/* No transaction is open afterwards. -EIO if the journal fails meanwhile. */
static int gate_close(struct journal *j)
{
	j->gate_closed = true;
	/*
	 * Whoever withdraws the mount from within a transaction waits for us
	 * (journal_abort()): when the journal has failed, do not wait for him.
	 */
	while (j->open && !journal_has_failed(j))
		pthread_cond_wait(&j->trans_ended, &j->lock);
	return journal_has_failed(j) ? -EIO : 0;
}

static void gate_open(struct journal *j)
{
	j->gate_closed = false;
	pthread_cond_broadcast(&j->gate_opened);
}

static bool batch_has_images(struct batch *bt)
{
	return bt->bt_meta_count || bt->bt_jdata_count;
}

/* The oldest batch with images that are not in place, or NULL. */
static struct batch *oldest_live(struct journal *j)
{
	if (cds_list_empty(&j->live))
		return NULL;
	return cds_list_first_entry(&j->live, struct batch, bt_live);
}

bool journal_tail_lags(struct journal *j)
{
	struct batch *oldest = oldest_live(j);

	return oldest ? oldest->bt_first != j->tail : journal_used(j) > 1;
}

/* For a flush of bt whose header will be at this block. */
static void set_tail(struct journal *j, struct batch *bt, uint32_t header,
		     struct commit_info *info)
{
	struct batch *oldest = oldest_live(j);

	if (!oldest && batch_has_images(bt))
		oldest = bt;
	info->ci_tail = oldest ? oldest->bt_first : header;
	info->ci_tail_id = oldest ? oldest->bt_id : bt->bt_id + 1;
}

/* Lock held, gate closed. next: the batch for the transactions to come. */
static void splice(struct journal *j, struct batch *next,
		   struct commit_info *info)
{
	struct batch *bt = j->running;
	uint32_t header;

	info->ci_first = j->next;
	info->ci_blocks = UG_MAX(batch_log_blocks(j, bt), 1u);
	header = ring_add(j, info->ci_first, info->ci_blocks - 1);
	bt->bt_first = info->ci_first;
	set_tail(j, bt, header, info);
	ug_assert(journal_used(j) + info->ci_blocks <= j->blocks - 1);

	next->bt_id = bt->bt_id + 1;
	j->running = next;
	j->committing = bt;
	j->committing_blocks = info->ci_blocks;
}

/*
 * Take the running batch for the flush. Lock held on entry and return.
 * statfs_local() may take a lock that is held around trans_add_meta(): it is
 * called without ours, but before the gate opens.
 */
static int begin_commit(struct journal *j, struct commit_info *info)
{
	struct batch *next;
	int err;

	pthread_mutex_unlock(&j->lock);
	next = batch_new();
	pthread_mutex_lock(&j->lock);
	if (!next)
		return -ENOMEM;
	err = gate_close(j);
	if (err) {
		batch_free(next);
		gate_open(j);
		return err;
	}
	splice(j, next, info);
	pthread_mutex_unlock(&j->lock);
	j->p.ops->statfs_local(j->p.arg, &info->ci_total, &info->ci_free,
			       &info->ci_dinodes);
	pthread_mutex_lock(&j->lock);
	gate_open(j);
	return 0;
}

/* Their newest committed image is in this flush, whatever older one waits. */
static void bring_home(struct journal *j, struct batch *bt,
		       struct cds_list_head *list)
{
	struct jslot *slot, *next;

	cds_list_for_each_entry_safe (slot, next, list, js_link) {
		struct jbuf *jb = slot->js_jbuf;

		jslot_leave(slot);
		jbuf_set_home(j, jb, slot->js_freed ? NULL : bt);
		jbuf_release_if_unused(j, jb);
	}
}

/* The header is durable. Lock held. Returns the callbacks to run. */
static void finish_commit(struct journal *j, const struct commit_info *info,
			  struct cds_list_head *callbacks)
{
	struct batch *bt = j->committing;

	j->sequence++;
	j->next = ring_add(j, info->ci_first, info->ci_blocks);
	j->tail = info->ci_tail;
	j->tail_id = info->ci_tail_id;
	j->dirty = !(info->ci_flags & GFS2_LOG_HEAD_UNMOUNT);
	j->committing = NULL;
	j->committing_blocks = 0;
	j->writeback_wanted = false;
	j->stats.flushes++;
	j->stats.blocks_logged += bt->bt_meta_count + bt->bt_jdata_count;
	j->stats.revokes += bt->bt_revokes.rs_count;

	cds_list_splice(&bt->bt_callbacks, callbacks);
	bring_home(j, bt, &bt->bt_meta);
	bring_home(j, bt, &bt->bt_jdata);
	if (cds_list_empty(&bt->bt_home))
		batch_free(bt);
	else
		cds_list_add_tail(&bt->bt_live, &j->live);
}

static void run_callbacks(struct cds_list_head *callbacks, int err)
{
	while (!cds_list_empty(callbacks)) {
		struct commit_cb *cb =
			cds_list_first_entry(callbacks, struct commit_cb, link);

		cds_list_del(&cb->link);
		cb->fn(cb, err);
	}
}

static const char *failure_text(int err)
{
	if (err == -EUCLEAN)
		return "a metadata block in a transaction has no header";
	return "a write of the log failed";
}

/* The batch stays as it is, for journal_release_all(). Lock held. */
static void fail_commit(struct journal *j, int err,
			struct cds_list_head *callbacks)
{
	journal_set_failed(j, err, failure_text(err));
	cds_list_splice(&j->committing->bt_callbacks, callbacks);
	CDS_INIT_LIST_HEAD(&j->committing->bt_callbacks);
}

int journal_commit(struct journal *j, uint32_t lh_flags)
{
	struct commit_info info = { .ci_flags = lh_flags };
	CDS_LIST_HEAD(callbacks);
	uint64_t id;
	int err;

	err = begin_commit(j, &info);
	if (err)
		return err;
	id = j->committing->bt_id;
	pthread_mutex_unlock(&j->lock);
	err = log_write_batch(j, j->committing, &info);
	if (!err)
		err = log_write_header(j, &info);
	ug_trace(j->p.who, "flush %llu: blocks %u+%u, tail %u: %d",
		 (unsigned long long)id, info.ci_first, info.ci_blocks,
		 info.ci_tail, err);
	pthread_mutex_lock(&j->lock);
	if (err)
		fail_commit(j, err, &callbacks);
	else
		finish_commit(j, &info, &callbacks);
	pthread_mutex_unlock(&j->lock);
	run_callbacks(&callbacks, err ? atomic_load(&j->error) : 0);
	pthread_mutex_lock(&j->lock);
	if (!err)
		j->durable_id = id;
	return err ? -EIO : 0;
}

/* The last batch that a flush until now must take along. */
static uint64_t last_with_changes(struct journal *j)
{
	uint64_t id = j->running->bt_id;

	return batch_is_empty(j->running) ? id - 1 : id;
}

/* Once for each header: so much is live that writing back would be good. */
static bool writeback_becomes_wanted(struct journal *j)
{
	if (j->writeback_wanted ||
	    (uint64_t)journal_used(j) * 5 <= (uint64_t)j->blocks * 4)
		return false;
	j->writeback_wanted = true;
	return true;
}

int journal_flush(struct journal *j, uint64_t sequence)
{
	bool want_writeback = false;
	int err = 0;

	pthread_mutex_lock(&j->lock);
	sequence = UG_MIN(sequence, last_with_changes(j));
	while (j->durable_id < sequence) {
		if (journal_has_failed(j)) {
			err = -EIO;
			break;
		}
		if (j->flush.jt_taken) {
			jturn_wait(j, &j->flush);
			continue;
		}
		jturn_take(j, &j->flush);
		err = journal_commit(j, GFS2_LOG_HEAD_FLUSH_NORMAL);
		jturn_give(&j->flush);
		if (err)
			break;
		want_writeback = writeback_becomes_wanted(j);
	}
	pthread_mutex_unlock(&j->lock);
	if (err == -EIO)
		journal_report_failure(j);
	if (want_writeback)
		j->p.ops->want_writeback(j->p.arg);
	return err;
}

uint64_t journal_sequence(struct journal *j)
{
	uint64_t sequence;

	pthread_mutex_lock(&j->lock);
	sequence = j->running->bt_id;
	pthread_mutex_unlock(&j->lock);
	return sequence;
}

bool journal_is_durable(struct journal *j, uint64_t sequence)
{
	bool durable;

	pthread_mutex_lock(&j->lock);
	durable = j->durable_id >= UG_MIN(sequence, last_with_changes(j));
	pthread_mutex_unlock(&j->lock);
	return durable;
}

bool journal_has_flushed(struct journal *j, uint64_t sequence)
{
	bool flushed;

	pthread_mutex_lock(&j->lock);
	flushed = j->durable_id >= sequence;
	pthread_mutex_unlock(&j->lock);
	return flushed;
}
