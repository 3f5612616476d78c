/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * jcore.h - inside the journal: batches, buffers in it, and its own state.
 *
 * Only for the files of this folder.
 *
 * A *batch* is what one flush commits: all transactions that ended since the
 * flush before. One batch is running (transactions add to it), at most one is
 * committing (a flush writes it to the log), and any number are live: they are
 * committed, and the log still has images of them that are not in place.
 *
 *   trans_add        splice          header durable       written in place
 *  ----------> running ---> committing ---------> live ------------------> gone
 *
 * A *jbuf* is the journal's record of a buffer. It can be in the running
 * batch, in the committing one, and at home in a live one, all at a time. The
 * first two have a slot each: their ids differ by one, so the lowest bit of
 * the id tells which. Rules that hold whenever the lock is free:
 *
 *  - In a slot of the running batch, b_data may be uncommitted: it is never
 *    written in place from there.
 *  - In a slot of the committing batch whose image has not been copied to the
 *    log: b_data is the image, unless js_frozen holds it, because a later
 *    transaction wanted to change it.
 *  - Home is the batch of its latest committed image, if that is not in place
 *    yet. In no slot: b_data is that image.
 *  - A block freed by the running batch is in none of these, save for an
 *    image that the committing batch has still to log. Giving up its home
 *    lets the tail move on, but only with the next header, and that one
 *    commits the free.
 *
 * Locks: j->lock guards everything here, unless noted. It is held for list
 * work and for the copying of a few blocks, never across I/O. Order: j->lock,
 * then the locks of the buffer cache.
 */
#ifndef UG_JOURNAL_JCORE_H
#define UG_JOURNAL_JCORE_H

#include <pthread.h>
#include <stdatomic.h>

#include "journal/journal.h"
#include "journal/revoke.h"
#include "ondisk/codec.h"

/*
 * Log blocks that no transaction gets: the header that moves the tail when the
 * log is full of images that have been written in place, and the last header.
 */
#define JOURNAL_SPARE_BLOCKS 4u
#define JOURNAL_BLOCKS_MIN 16u

/* Memory for images on the way to the log, and on the way to their place. */
#define JOURNAL_STAGE_BYTES (4u << 20)
#define JOURNAL_BOUNCE_BYTES (1u << 20)
/* One request to the device. */
#define JOURNAL_REQUEST_BYTES (1u << 20)

/* Blocks copied for one taking of the lock: some microseconds. */
#define JOURNAL_COPY_BLOCKS 16u

/* Unused jbufs that are kept. */
#define JBUFS_KEPT 256u

struct batch {
	uint64_t bt_id;
	struct cds_list_head bt_meta; /* jslots, to be logged */
	struct cds_list_head bt_jdata;
	uint32_t bt_meta_count;
	uint32_t bt_jdata_count;
	struct revoke_set bt_revokes;
	struct cds_list_head bt_callbacks;
	bool bt_flush_wanted; /* want_flush() has been called */

	/* When it is live. */
	struct cds_list_head bt_live; /* j->live */
	struct cds_list_head bt_home; /* jbufs */
	uint32_t bt_first;	      /* journal block */
};

struct jslot {
	struct jbuf *js_jbuf;
	uint64_t js_batch;	      /* id; 0: the slot is not used */
	struct cds_list_head js_link; /* bt_meta, bt_jdata or bt_freed */
	void *js_frozen;	      /* owned; the image, or NULL: b_data is */
	bool js_freed;		      /* on bt_freed */
	bool js_copied; /* the image is in the staging memory of the flush */
};

struct jbuf {
	struct buf *jb_buf;	  /* referenced */
	struct jslot jb_slots[2]; /* by batch id & 1 */
	struct batch *jb_home;	  /* NULL: none */
	struct cds_list_head jb_home_link;
	bool jb_writing; /* being written in place; not released meanwhile */
	struct jbuf *jb_next; /* among the spare ones */
};

/* A job that one thread does at a time. */
struct jturn {
	bool jt_taken;
	pthread_t jt_thread; /* who has it */
	pthread_cond_t jt_free;
};

struct journal {
	struct journal_params p;
	struct gfs2_geom geom;
	unsigned block_shift;
	uint32_t blocks; /* of the log */

	pthread_mutex_t lock;

	/* Transactions. */
	unsigned open;
	bool gate_closed; /* a flush is about to splice */
	pthread_cond_t gate_opened;
	pthread_cond_t trans_ended; /* for who waits for open to go down */
	bool ended;		    /* journal_shutdown() */
	bool frozen;		    /* from journal_freeze() to the thaw */
	uint32_t reserved; /* log blocks promised to open transactions */
	uint32_t revokes_reserved;
	struct jturn space; /* who makes room in the log for a transaction */

	/* Batches. */
	struct batch *running;
	struct batch *committing;   /* NULL: none */
	uint32_t committing_blocks; /* of the log, header included */
	struct cds_list_head live;  /* ascending ids, none without a jbuf */
	uint64_t durable_id;
	struct jturn flush;
	struct jturn writeback;
	pthread_cond_t buffers_done; /* js_copied set, or jb_writing cleared */

	/* The log. */
	uint64_t sequence;     /* of the last header */
	uint32_t next;	       /* block that will be written next */
	uint32_t tail;	       /* as of the last durable header */
	uint64_t tail_id;      /* images of older batches are not replayed */
	bool dirty;	       /* the last header has no UNMOUNT flag */
	bool writeback_wanted; /* want_writeback() has been called */

	/* Spare jbufs: at least as many as open transactions may need. */
	struct jbuf *spare;
	unsigned spare_count;
	unsigned spare_needed;

	/* End in failure; set once, under the lock, read anywhere. */
	atomic_int error;
	const char *error_what; /* until ops->failed() has been called */

	/* Of the one who flushes, and of the one who writes back. */
	uint8_t *stage;
	uint32_t stage_blocks;
	uint8_t *bounce;
	uint32_t bounce_blocks;
	struct inplace *inplace;

	struct journal_stats stats;
};

static inline struct jslot *jbuf_slot(struct jbuf *jb, uint64_t batch_id)
{
	return &jb->jb_slots[batch_id & 1];
}

static inline bool batch_is_empty(struct batch *bt)
{
	return !bt->bt_meta_count && !bt->bt_jdata_count &&
	       !bt->bt_revokes.rs_count && cds_list_empty(&bt->bt_callbacks);
}

/* Blocks of the ring from one position on until before another. */
static inline uint32_t ring_distance(const struct journal *j, uint32_t from,
				     uint32_t to)
{
	return to >= from ? to - from : to + j->blocks - from;
}

static inline uint32_t ring_add(const struct journal *j, uint32_t pos,
				uint32_t n)
{
	uint64_t sum = (uint64_t)pos + n;

	return (uint32_t)(sum >= j->blocks ? sum - j->blocks : sum);
}

/* Log blocks that must not be overwritten. Never 0: the head is one. */
static inline uint32_t journal_used(const struct journal *j)
{
	return ring_distance(j, j->tail, j->next);
}

/* All that replay and readers of the log go by. */
static inline bool block_has_magic(const void *block)
{
	return be32_get(*(const be32 *)block) == GFS2_MAGIC;
}

static inline bool journal_has_failed(struct journal *j)
{
	return atomic_load_explicit(&j->error, memory_order_acquire) != 0;
}

/* ---- batch.c ---- */

/* NULL if there is no memory. */
struct batch *batch_new(void);
/* No jbuf is in it. NULL is accepted. */
void batch_free(struct batch *bt);

/* Log blocks of a flush of this batch, header included. 0 if it is empty. */
uint32_t batch_log_blocks(const struct journal *j, struct batch *bt);

/* n more spare jbufs for a transaction: 0, or -ENOMEM with nothing changed. */
int jbufs_reserve(struct journal *j, unsigned n);
/* It has not needed so many. */
void jbufs_unreserve(struct journal *j, unsigned n);

/* A record for a buffer that has none, out of those reserved. */
struct jbuf *jbuf_attach(struct journal *j, struct buf *b);

/* Let go of the buffer if it is in no slot and has no home. */
void jbuf_release_if_unused(struct journal *j, struct jbuf *jb);

/* bt: live, or about to be; NULL: the image is in place, or not wanted. */
void jbuf_set_home(struct journal *j, struct jbuf *jb, struct batch *bt);

/* Into the running batch. */
void jslot_enter(struct journal *j, struct jslot *slot,
		 struct cds_list_head *list);
/* Out of whatever list it is on; a frozen image is freed. */
void jslot_leave(struct jslot *slot);

/* Everything out of the journal, for its end. */
void journal_release_all(struct journal *j);

/* ---- journal.c ---- */

void jturn_init(struct jturn *turn);
void jturn_fini(struct jturn *turn);
/* Wait for the turn. Lock held; released while waiting. */
void jturn_take(struct journal *j, struct jturn *turn);
void jturn_give(struct jturn *turn);
/* Wait until it is given by somebody else. */
void jturn_wait(struct journal *j, struct jturn *turn);
/* Wait until it is free, or return at once if the caller has it. */
void jturn_wait_free(struct journal *j, struct jturn *turn);

/*
 * The journal is at its end. Lock held. err negative; what: a constant string.
 * Only the first call counts. Everybody who waits is woken.
 */
void journal_set_failed(struct journal *j, int err, const char *what);

/* Tell the owner, if nobody has yet. Called without locks or turns. */
void journal_report_failure(struct journal *j);

/* ---- flush.c ---- */

/*
 * One flush, even of an empty batch. Lock held and flush turn taken; the lock
 * is released meanwhile. 0; -EIO; -ENOMEM with nothing changed.
 */
int journal_commit(struct journal *j, uint32_t lh_flags);

/* Would a header written now free log blocks? Lock held. */
bool journal_tail_lags(struct journal *j);

/* ---- writeback.c ---- */

/* For so many blocks at a time. NULL if there is no memory. */
struct inplace *inplace_new(uint32_t blocks);
void inplace_free(struct inplace *ip);

/* ---- logwrite.c ---- */

/* What the splice has found out for the header. */
struct commit_info {
	uint32_t ci_first;  /* journal block where the flush begins */
	uint32_t ci_blocks; /* header included */
	uint32_t ci_tail;
	uint64_t ci_tail_id; /* the batch that begins there, or a later one */
	uint32_t ci_flags;
	int64_t ci_total;
	int64_t ci_free;
	int64_t ci_dinodes;
};

/*
 * Write the committing batch to the log, descriptors to revokes, and wait.
 * 0; -EIO; -EUCLEAN a metadata block has no header; -ECANCELED the journal
 * has failed meanwhile. No locks.
 */
int log_write_batch(struct journal *j, struct batch *bt,
		    const struct commit_info *info);

/* Device flush, then the header, durable: the commit. 0, -EIO, -ECANCELED. */
int log_write_header(struct journal *j, const struct commit_info *info);

#endif
