/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * journal.h - transactions, group commit, write-back in place, the clean end.
 *
 *   trans_begin     reserve log space; holds the flush off
 *   trans_add_meta  before the first change of a buffer in this transaction
 *   trans_free_block, trans_on_commit
 *   trans_end       now it will be committed, whole, with the next flush
 *   journal_flush   write a flush: descriptors, images, revokes; device
 *                   flush; header; device flush. Now it is committed
 *   (write-back)    committed images are written in place, oldest first
 *   (tail)          the next header frees their log space
 *
 * A flush takes every ended transaction. It holds new transactions off only
 * while it splices their buffers off; a buffer that a later transaction
 * changes while its committed image is still being written to the log gets a
 * copy for the log first. The tail that a header carries is computed at the
 * splice, never later: what a running transaction takes out of the write-back
 * list (trans_free_block) may not move the tail before that transaction is
 * itself committed.
 *
 * Crash at any point: transactions of headers that are durable are there,
 * whole; the others are not there at all. Ordered data needs nothing here: the
 * file system writes data before it begins the transaction that maps it.
 *
 * Locks: called with glocks and inode locks held; takes neither. A failed
 * write of the log, or of a committed block in place, ends the journal: ops->
 * failed() is called once, every later trans_begin and journal_flush
 * returns -EIO, and the log stays dirty.
 * Source: docs/spec/gfs2-ondisk.md chapter 7.
 */
#ifndef UG_JOURNAL_JOURNAL_H
#define UG_JOURNAL_JOURNAL_H

#include <stdbool.h>
#include <stdint.h>
#include <urcu/list.h>

#include "base/compiler.h"
#include "block/block.h"
#include "block/iopool.h"
#include "buf/buf.h"
#include "journal/logmap.h"

struct journal;

/* Called by the journal; arg is journal_params.arg. */
struct journal_ops {
	/* The journal has failed; runs once, without journal locks held. */
	void (*failed)(void *arg, int err, const char *what);
	/*
	 * More of the log is used than is good: call journal_flush() or
	 * journal_writeback() soon, from a thread that may wait.
	 */
	void (*want_flush)(void *arg);
	void (*want_writeback)(void *arg);
	/* The local statfs values as of now, for the log header. */
	void (*statfs_local)(void *arg, int64_t *total, int64_t *free,
			     int64_t *dinodes);
};

struct journal_params {
	struct blkdev *dev; /* borrowed, like all below */
	struct bufcache *cache;
	struct iopool *pool;
	const struct logmap *map; /* where the journal's blocks are */
	uint32_t block_bytes;
	uint32_t jid;
	uint64_t jinode_addr; /* for the header fields */
	uint64_t statfs_addr;
	uint64_t quota_addr;
	uint64_t head_sequence; /* of the clean head found at mount */
	uint32_t head_blkno;	/* its journal block */
	bool barriers;		/* false: no device flushes (nobarrier) */
	/*
	 * Other nodes change the same blocks when we have given up their
	 * glock: see journal_writeback_owner().
	 */
	bool shared;
	const char *who; /* for the log, e.g. "vol1: journal 0" */
	const struct journal_ops *ops;
	void *arg;
};

/*
 * Writes nothing: the log becomes dirty with the first flush. params is
 * copied, what it points to must stay. 0; -ENOMEM; -EINVAL: the journal is too
 * small, or a parameter is out of range.
 */
int journal_create(const struct journal_params *params, struct journal **jp);

struct commit_cb {
	/*
	 * Runs once the transaction is durable, in the flushing thread,
	 * before journal_flush() returns to anybody; err is 0, or the error
	 * that ended the journal. May free the structure. Must not begin
	 * transactions or flush.
	 */
	void (*fn)(struct commit_cb *cb, int err);
	struct cds_list_head link;
};

/* One transaction, on the caller's stack. Fields are the journal's. */
struct trans {
	struct journal *tr_journal;
	uint64_t tr_batch;    /* which flush it will be part of */
	uint32_t tr_reserved; /* log blocks */
	uint32_t tr_blocks;   /* as asked for */
	uint32_t tr_revokes;
	uint32_t tr_touched; /* of tr_blocks, used */
	uint32_t tr_freed;   /* of tr_revokes */
	bool tr_changed;
};

#define TRANS_NOWAIT 0x1u /* -EAGAIN instead of waiting for log space */

/*
 * blocks: how many different blocks the transaction may add (metadata and
 * journaled data); revokes: how many it may free. Waits for log space if need
 * be. Returns 0; -EAGAIN with TRANS_NOWAIT; -ENOSPC if it can never fit the
 * journal; -EIO when the journal has failed or ended; -ENOMEM. One thread has
 * at most one transaction open and must not wait for a glock within it.
 */
int trans_begin(struct journal *j, struct trans *tr, unsigned blocks,
		unsigned revokes, unsigned flags);

/*
 * The buffer will be changed; call before the first byte changes (again is
 * harmless). The caller's references are his own; the journal takes its own.
 * Never fails: short of memory it waits for the flush under way. Sets mh_jid
 * and zeroes __pad0 of blocks with a metadata header; a new block should have
 * its header (gfs2_meta_init()) before it is added. At the flush every
 * metadata block must have one.
 */
void trans_add_meta(struct trans *tr, struct buf *b);

/* The same for a data block of a journaled file (no header; escaped). */
void trans_add_jdata(struct trans *tr, struct buf *b);

/*
 * The metadata or journaled block blkno is freed by this transaction: its
 * buffer leaves cache and journal, and a revoke is queued. Waits for a
 * write in place of this very block that is under way. The block may be given
 * to another use only when this transaction is durable (trans_on_commit()).
 */
void trans_free_block(struct trans *tr, uint64_t blkno);

/* cb->fn runs when this transaction is durable. */
void trans_on_commit(struct trans *tr, struct commit_cb *cb);

/*
 * The changes are complete. Returns a sequence for journal_flush(): the
 * transaction is durable once that sequence is. Never waits.
 */
uint64_t trans_end(struct trans *tr);

/* The sequence that a transaction ended now would get. */
uint64_t journal_sequence(struct journal *j);

/* True if everything up to this sequence is durable. */
bool journal_is_durable(struct journal *j, uint64_t sequence);

/*
 * True if a flush of the log has begun and ended since journal_sequence() gave
 * this number. With params.barriers it has also flushed the device, so what
 * had been written to it by then is on stable media. (A sequence without
 * changes is durable by itself: that says nothing about the device.)
 */
bool journal_has_flushed(struct journal *j, uint64_t sequence);

/*
 * Make everything up to the sequence durable (UINT64_MAX: all that has ended
 * until now). Callers at the same time share one flush. 0; -EIO; -ENOMEM: try
 * again, nothing has been lost.
 */
int journal_flush(struct journal *j, uint64_t sequence);

/*
 * Write committed blocks in place, oldest first, until at most target_percent
 * of the log is live (0: all that has ended until now), flushing as needed;
 * then a header with the new tail, if that frees log space that is wanted. What
 * is committed later is not waited for. 0; -EIO; -ENOMEM as above.
 */
int journal_writeback(struct journal *j, unsigned target_percent);

/*
 * Make all that has ended until now durable, and the buffers of one owner in
 * their places as well: for lowering the state of its glock, which keeps
 * others from changing them meanwhile. With params.shared the live log has no
 * image of the owner's blocks afterwards, or a replay of this journal would
 * overwrite what another node has made of them: all that was committed up to
 * the last change of the owner is written in place, and the tail moved.
 * 0; -EIO; -ENOMEM as above.
 */
int journal_writeback_owner(struct journal *j, struct buf_owner *owner);

/*
 * Everything committed and in place, then a header with the UNMOUNT flag. No
 * transaction may be open; none may follow. Writes nothing if nothing ever
 * was. 0; -EIO (the log stays dirty); -ENOMEM as above.
 */
int journal_shutdown(struct journal *j);

/*
 * The same, but for a while: from now on trans_begin() waits, and when this
 * returns nothing is written any more until journal_thaw(), as long as nobody
 * frees or flushes what he has not begun. 0; -EIO; -ENOMEM: it goes on.
 */
int journal_freeze(struct journal *j);
void journal_thaw(struct journal *j);

/*
 * Stop without writing anything more (withdraw, tests): as if the journal had
 * failed with err, but ops->failed() is not called. Waits for I/O under way,
 * except its caller's. May be called from anywhere: within a transaction, from
 * ops->failed(), from a commit callback.
 */
void journal_abort(struct journal *j, int err);

/*
 * After journal_shutdown or journal_abort. Pinned buffers are released.
 * Commit callbacks that have not run, run with -EIO.
 */
void journal_destroy(struct journal *j);

struct journal_stats {
	uint64_t flushes;
	uint64_t transactions;
	uint64_t blocks_logged;
	uint64_t revokes;
	uint64_t blocks_in_place;
	uint32_t live_blocks;
	uint32_t total_blocks;
};
void journal_stats(struct journal *j, struct journal_stats *stats);

#endif
