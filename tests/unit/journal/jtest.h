/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * jtest.h - a small volume with a journal, for tests.
 *
 *   block    0        JT_LOG_FIRST              JT_META_FIRST
 *            | unused | journal (some extents)  | blocks of the test ...
 *
 * The journal is laid down as mkfs does: a clean header in every block, the
 * numbers starting anywhere. It can be opened, "crashed" (journal_abort), and
 * opened again after replay, on the same device.
 */
#ifndef UG_TESTS_JTEST_H
#define UG_TESTS_JTEST_H

#include <stdatomic.h>

#include "block/block.h"
#include "block/iopool.h"
#include "buf/buf.h"
#include "journal/journal.h"
#include "journal/logmap.h"
#include "journal/replay.h"
#include "ondisk/codec.h"

#define JT_LOG_FIRST 64u
#define JT_JID 3u
#define JT_JINODE 17u

struct jtest {
	uint32_t bsize;
	uint32_t log_blocks;
	uint64_t meta_first; /* address */
	uint64_t fs_blocks;
	struct gfs2_geom geom;
	uint64_t cache_bytes; /* bound of the buffer cache; may be changed */
	bool shared;	      /* may be changed before jt_open() */

	struct blkdev *dev; /* the test's, borrowed */
	struct logmap map;
	struct replay_head head; /* as found by jt_open() */
	struct replay_result replayed;
	struct iopool *pool;
	struct bufcache *cache;
	struct buf_owner owner;
	struct journal *j;

	atomic_int failed_calls;
	atomic_int failed_err;
	atomic_int want_flush;
	atomic_int want_writeback;
	int64_t local[3];
	void (*on_failed)(struct jtest *jt); /* may be NULL */
};

/* The geometry; extents: into how many pieces the journal is cut. */
void jt_init(struct jtest *jt, uint32_t bsize, uint32_t log_blocks,
	     unsigned extents, uint32_t meta_blocks);
void jt_fini(struct jtest *jt);
uint64_t jt_device_bytes(const struct jtest *jt);

/* Lay the journal down; the first block gets this number. */
void jt_format(struct jtest *jt, struct blkdev *dev, uint64_t sequence);

/* Scan, replay and mark clean if dirty: 0 or an error. jt->head is set. */
int jt_recover(struct jtest *jt, struct blkdev *dev);

/* Recover, then cache and journal over dev. Asserts that it works. */
void jt_open(struct jtest *jt, struct blkdev *dev);
/* Shut down: the log is clean. */
void jt_close(struct jtest *jt);
/* Stop without a word, as a killed process would. */
void jt_crash(struct jtest *jt);
/* For a journal that has ended in one way or another. */
void jt_teardown(struct jtest *jt);

/* Content of a metadata block of the test: a header, then the value. */
void jt_fill(const struct jtest *jt, void *block, uint64_t value);
uint64_t jt_value(const void *block);
/* Is the block whole: every byte as jt_fill() leaves it, except mh_jid? */
bool jt_is_whole(const struct jtest *jt, const void *block);

/* A buffer of test block i (0 = the first), new and zero, or read. */
struct buf *jt_new(struct jtest *jt, uint32_t i);
struct buf *jt_read(struct jtest *jt, uint32_t i);

/* One transaction that sets test block i to the value. Returns trans_end(). */
uint64_t jt_set(struct jtest *jt, uint32_t i, uint64_t value);
/* What the device has there now. */
uint64_t jt_on_device(struct jtest *jt, uint32_t i);

/* The device's blocks, to look at them or to damage them. */
void jt_read_block(struct jtest *jt, uint64_t addr, void *block);
void jt_write_block(struct jtest *jt, uint64_t addr, const void *block);

#endif
