/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * batch.c - batches and the records of buffers in them: who is where.
 *
 * Only moves and counts; when which move is right is decided by trans.c,
 * flush.c and writeback.c. All of it with the journal's lock held, and none of
 * it can fail once a transaction has begun: trans_begin() has reserved the
 * records that its additions may need.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/assert.h"
#include "journal/jcore.h"

struct batch *batch_new(void)
{
	struct batch *bt = calloc(1, sizeof(*bt));

	if (!bt)
		return NULL;
	CDS_INIT_LIST_HEAD(&bt->bt_meta);
	CDS_INIT_LIST_HEAD(&bt->bt_jdata);
	CDS_INIT_LIST_HEAD(&bt->bt_callbacks);
	CDS_INIT_LIST_HEAD(&bt->bt_home);
	revoke_set_init(&bt->bt_revokes);
	return bt;
}

void batch_free(struct batch *bt)
{
	if (!bt)
		return;
	ug_assert(cds_list_empty(&bt->bt_meta));
	ug_assert(cds_list_empty(&bt->bt_jdata));
	ug_assert(cds_list_empty(&bt->bt_home));
	revoke_set_fini(&bt->bt_revokes);
	free(bt);
}

uint32_t batch_log_blocks(const struct journal *j, struct batch *bt)
{
	uint32_t jdata_per_desc = j->geom.ldptrs / 2;
	uint32_t meta_per_desc = j->geom.ldptrs;
	uint32_t revokes = (uint32_t)bt->bt_revokes.rs_count;
	uint32_t blocks = 1;

	if (batch_is_empty(bt))
		return 0;
	blocks += bt->bt_jdata_count +
		  UG_DIV_UP(bt->bt_jdata_count, jdata_per_desc);
	blocks +=
		bt->bt_meta_count + UG_DIV_UP(bt->bt_meta_count, meta_per_desc);
	if (revokes)
		blocks += gfs2_ld_length_for(&j->geom, GFS2_LOG_DESC_REVOKE,
					     revokes);
	return blocks;
}

int jbufs_reserve(struct journal *j, unsigned n)
{
	while (j->spare_count < j->spare_needed + n) {
		struct jbuf *jb = malloc(sizeof(*jb));

		if (!jb)
			return -ENOMEM;
		jb->jb_next = j->spare;
		j->spare = jb;
		j->spare_count++;
	}
	j->spare_needed += n;
	return 0;
}

void jbufs_unreserve(struct journal *j, unsigned n)
{
	ug_assert(n <= j->spare_needed);
	j->spare_needed -= n;
}

static struct jbuf *spare_pop(struct journal *j)
{
	struct jbuf *jb = j->spare;

	ug_assert(jb != NULL);
	j->spare = jb->jb_next;
	j->spare_count--;
	return jb;
}

static void spare_push(struct journal *j, struct jbuf *jb)
{
	if (j->spare_count >= j->spare_needed + JBUFS_KEPT) {
		free(jb);
		return;
	}
	jb->jb_next = j->spare;
	j->spare = jb;
	j->spare_count++;
}

struct jbuf *jbuf_attach(struct journal *j, struct buf *b)
{
	struct jbuf *jb = spare_pop(j);

	memset(jb, 0, sizeof(*jb));
	jb->jb_slots[0].js_jbuf = jb;
	jb->jb_slots[1].js_jbuf = jb;
	jb->jb_buf = buf_ref(b);
	atomic_store_explicit(&b->b_journal, jb, memory_order_release);
	return jb;
}

void jbuf_release_if_unused(struct journal *j, struct jbuf *jb)
{
	struct buf *b = jb->jb_buf;

	if (jb->jb_slots[0].js_batch || jb->jb_slots[1].js_batch ||
	    jb->jb_home || jb->jb_writing)
		return;
	/* Or a later journal over this cache would take it for its own. */
	atomic_store_explicit(&b->b_batch, 0, memory_order_relaxed);
	atomic_store_explicit(&b->b_journal, NULL, memory_order_release);
	buf_put(b);
	spare_push(j, jb);
}

/* The tail may move past a batch that nothing calls home any more. */
static void batch_drop_if_in_place(struct batch *bt)
{
	if (!cds_list_empty(&bt->bt_home))
		return;
	cds_list_del(&bt->bt_live);
	batch_free(bt);
}

void jbuf_set_home(struct journal *j, struct jbuf *jb, struct batch *bt)
{
	struct batch *old = jb->jb_home;

	if (old) {
		cds_list_del(&jb->jb_home_link);
		batch_drop_if_in_place(old);
	}
	jb->jb_home = bt;
	if (bt)
		cds_list_add_tail(&jb->jb_home_link, &bt->bt_home);
}

void jslot_enter(struct journal *j, struct jslot *slot,
		 struct cds_list_head *list)
{
	/* The batch with the same lowest bit has been durable for long. */
	ug_assert(slot->js_batch == 0);
	slot->js_batch = j->running->bt_id;
	slot->js_freed = false;
	slot->js_copied = false;
	cds_list_add_tail(&slot->js_link, list);
}

void jslot_leave(struct jslot *slot)
{
	cds_list_del(&slot->js_link);
	slot->js_batch = 0;
	free(slot->js_frozen);
	slot->js_frozen = NULL;
}

static void release_slots(struct journal *j, struct cds_list_head *list)
{
	struct jslot *slot, *next;

	cds_list_for_each_entry_safe (slot, next, list, js_link) {
		jslot_leave(slot);
		jbuf_release_if_unused(j, slot->js_jbuf);
	}
}

static void batch_release(struct journal *j, struct batch *bt)
{
	if (!bt)
		return;
	release_slots(j, &bt->bt_meta);
	release_slots(j, &bt->bt_jdata);
	batch_free(bt);
}

void journal_release_all(struct journal *j)
{
	while (!cds_list_empty(&j->live)) {
		struct batch *bt =
			cds_list_first_entry(&j->live, struct batch, bt_live);
		struct jbuf *jb = cds_list_first_entry(
			&bt->bt_home, struct jbuf, jb_home_link);

		jbuf_set_home(j, jb, NULL);
		jbuf_release_if_unused(j, jb);
	}
	batch_release(j, j->committing);
	batch_release(j, j->running);
	while (j->spare)
		free(spare_pop(j));
}
