/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * journal.c - a journal's life: creation, failure, the clean end.
 *
 *   journal_create        writes nothing
 *   (trans.c, flush.c, writeback.c)
 *   journal_shutdown      all in place, a last header with UNMOUNT
 *   journal_destroy
 *
 * Failure is one word, set once under the lock, which every step looks at
 * before it writes: after it, nothing of this journal reaches the device, and
 * everybody who waits is woken. The owner is told at the end of the call
 * that met the error, when no lock and no turn is held, as he will want to
 * call journal_abort().
 *
 * Turns are locks that can be asked who has them: journal_abort() waits for the
 * I/O of others, and may itself be called (through the owner) from within a
 * flush.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/assert.h"
#include "base/checked.h"
#include "base/log.h"
#include "journal/jcore.h"

void jturn_init(struct jturn *turn)
{
	turn->jt_taken = false;
	pthread_cond_init(&turn->jt_free, NULL);
}

void jturn_fini(struct jturn *turn)
{
	ug_assert(!turn->jt_taken);
	pthread_cond_destroy(&turn->jt_free);
}

static bool jturn_is_mine(const struct jturn *turn)
{
	return turn->jt_taken && pthread_equal(turn->jt_thread, pthread_self());
}

void jturn_wait(struct journal *j, struct jturn *turn)
{
	/* From a commit callback it would wait for itself. */
	ug_assert(!jturn_is_mine(turn));
	pthread_cond_wait(&turn->jt_free, &j->lock);
}

void jturn_take(struct journal *j, struct jturn *turn)
{
	while (turn->jt_taken)
		jturn_wait(j, turn);
	turn->jt_taken = true;
	turn->jt_thread = pthread_self();
}

void jturn_give(struct jturn *turn)
{
	turn->jt_taken = false;
	pthread_cond_broadcast(&turn->jt_free);
}

void jturn_wait_free(struct journal *j, struct jturn *turn)
{
	while (turn->jt_taken && !jturn_is_mine(turn))
		jturn_wait(j, turn);
}

void journal_set_failed(struct journal *j, int err, const char *what)
{
	if (journal_has_failed(j))
		return;
	j->error_what = what;
	atomic_store_explicit(&j->error, err, memory_order_release);
	bufcache_set_failed(j->p.cache);
	pthread_cond_broadcast(&j->gate_opened);
	pthread_cond_broadcast(&j->trans_ended);
	pthread_cond_broadcast(&j->buffers_done);
	pthread_cond_broadcast(&j->flush.jt_free);
	pthread_cond_broadcast(&j->writeback.jt_free);
	pthread_cond_broadcast(&j->space.jt_free);
}

void journal_report_failure(struct journal *j)
{
	const char *what;
	int err;

	pthread_mutex_lock(&j->lock);
	what = j->error_what;
	j->error_what = NULL;
	err = atomic_load(&j->error);
	pthread_mutex_unlock(&j->lock);
	if (!what)
		return;
	ug_error(j->p.who, "%s: %s; the journal is stopped", what,
		 strerror(-err));
	j->p.ops->failed(j->p.arg, err, what);
}

static bool params_are_sound(const struct journal_params *params)
{
	struct gfs2_geom geom;

	return !gfs2_geom_init(&geom, params->block_bytes) &&
	       params->map->blocks >= JOURNAL_BLOCKS_MIN &&
	       params->head_blkno < params->map->blocks;
}

static void init_sync(struct journal *j)
{
	pthread_mutex_init(&j->lock, NULL);
	pthread_cond_init(&j->gate_opened, NULL);
	pthread_cond_init(&j->trans_ended, NULL);
	pthread_cond_init(&j->buffers_done, NULL);
	jturn_init(&j->space);
	jturn_init(&j->flush);
	jturn_init(&j->writeback);
}

static void fini_sync(struct journal *j)
{
	jturn_fini(&j->writeback);
	jturn_fini(&j->flush);
	jturn_fini(&j->space);
	pthread_cond_destroy(&j->buffers_done);
	pthread_cond_destroy(&j->trans_ended);
	pthread_cond_destroy(&j->gate_opened);
	pthread_mutex_destroy(&j->lock);
}

static int alloc_memory(struct journal *j)
{
	j->stage_blocks =
		UG_MIN(JOURNAL_STAGE_BYTES >> j->block_shift, j->blocks);
	j->bounce_blocks =
		UG_MIN(JOURNAL_BOUNCE_BYTES >> j->block_shift, j->blocks);
	j->stage = blkdev_alloc((size_t)j->stage_blocks << j->block_shift);
	j->bounce = blkdev_alloc((size_t)j->bounce_blocks << j->block_shift);
	j->inplace = inplace_new(j->bounce_blocks);
	j->running = batch_new();
	if (!j->stage || !j->bounce || !j->inplace || !j->running)
		return -ENOMEM;
	return 0;
}

static void free_all(struct journal *j)
{
	free(j->stage);
	free(j->bounce);
	inplace_free(j->inplace);
	fini_sync(j);
	free(j);
}

int journal_create(const struct journal_params *params, struct journal **jp)
{
	struct journal *j;

	if (!params_are_sound(params))
		return -EINVAL;
	j = calloc(1, sizeof(*j));
	if (!j)
		return -ENOMEM;
	j->p = *params;
	gfs2_geom_init(&j->geom, params->block_bytes);
	j->block_shift = ug_log2_u64(params->block_bytes);
	j->blocks = params->map->blocks;
	CDS_INIT_LIST_HEAD(&j->live);
	init_sync(j);
	if (alloc_memory(j)) {
		batch_free(j->running);
		free_all(j);
		return -ENOMEM;
	}
	/* Batch 0 is what was there before us. */
	j->running->bt_id = 1;
	j->sequence = params->head_sequence;
	j->tail = params->head_blkno;
	j->next = ring_add(j, params->head_blkno, 1);
	*jp = j;
	return 0;
}

/*
 * Nothing is left to be flushed or written: now say that the log is clean.
 * flags: of the header, beside that.
 */
static int write_unmount_header(struct journal *j, uint32_t flags)
{
	int err = 0;

	pthread_mutex_lock(&j->lock);
	jturn_take(j, &j->flush);
	ug_assert(j->open == 0);
	if (journal_has_failed(j)) {
		err = -EIO;
	} else if (j->dirty) {
		ug_assert(batch_is_empty(j->running));
		ug_assert(cds_list_empty(&j->live));
		err = journal_commit(j, GFS2_LOG_HEAD_UNMOUNT | flags);
	}
	if (!err && (flags & GFS2_LOG_HEAD_FLUSH_SHUTDOWN))
		j->ended = true;
	jturn_give(&j->flush);
	pthread_mutex_unlock(&j->lock);
	if (err == -EIO)
		journal_report_failure(j);
	return err;
}

int journal_shutdown(struct journal *j)
{
	int err = journal_writeback(j, 0);

	if (err)
		return err;
	return write_unmount_header(j, GFS2_LOG_HEAD_FLUSH_SHUTDOWN);
}

int journal_freeze(struct journal *j)
{
	int err;

	pthread_mutex_lock(&j->lock);
	j->frozen = true;
	while (j->open && !journal_has_failed(j))
		pthread_cond_wait(&j->trans_ended, &j->lock);
	pthread_mutex_unlock(&j->lock);
	err = journal_writeback(j, 0);
	if (!err)
		err = write_unmount_header(j, GFS2_LOG_HEAD_FLUSH_FREEZE);
	if (err)
		journal_thaw(j);
	return err;
}

/* The next flush makes the log dirty again, with the next sequence. */
void journal_thaw(struct journal *j)
{
	pthread_mutex_lock(&j->lock);
	j->frozen = false;
	pthread_cond_broadcast(&j->gate_opened);
	pthread_mutex_unlock(&j->lock);
}

void journal_abort(struct journal *j, int err)
{
	pthread_mutex_lock(&j->lock);
	if (!journal_has_failed(j))
		journal_set_failed(j, err ? err : -EIO, NULL);
	jturn_wait_free(j, &j->writeback);
	jturn_wait_free(j, &j->flush);
	pthread_mutex_unlock(&j->lock);
}

static void take_callbacks(struct batch *bt, struct cds_list_head *callbacks)
{
	if (!bt)
		return;
	cds_list_splice(&bt->bt_callbacks, callbacks);
	CDS_INIT_LIST_HEAD(&bt->bt_callbacks);
}

void journal_destroy(struct journal *j)
{
	CDS_LIST_HEAD(callbacks);

	ug_assert(j->ended || journal_has_failed(j));
	ug_assert(j->open == 0);
	take_callbacks(j->committing, &callbacks);
	take_callbacks(j->running, &callbacks);
	while (!cds_list_empty(&callbacks)) {
		struct commit_cb *cb = cds_list_first_entry(
			&callbacks, struct commit_cb, link);

		cds_list_del(&cb->link);
		cb->fn(cb, -EIO);
	}
	pthread_mutex_lock(&j->lock);
	journal_release_all(j);
	pthread_mutex_unlock(&j->lock);
	free_all(j);
}

void journal_stats(struct journal *j, struct journal_stats *stats)
{
	pthread_mutex_lock(&j->lock);
	*stats = j->stats;
	stats->live_blocks = journal_used(j);
	stats->total_blocks = j->blocks;
	pthread_mutex_unlock(&j->lock);
}
