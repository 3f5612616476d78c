/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * replay.h - find the head of a journal, replay it, mark it clean.
 *
 * Works on the device alone, without cache or file system, so that mount,
 * tools and tests share it. Nothing is written by replay_scan(). The caller
 * holds the journal's lock (nobody else writes it).
 * Source: docs/spec/gfs2-ondisk.md 7.4, 7.8.
 */
#ifndef UG_JOURNAL_REPLAY_H
#define UG_JOURNAL_REPLAY_H

#include <stdbool.h>
#include <stdint.h>

#include "block/block.h"
#include "journal/logmap.h"

struct replay_head {
	uint64_t sequence;
	uint32_t blkno; /* journal block of the head */
	uint32_t tail;
	uint32_t flags;
	bool clean;
	bool v2; /* the fields below were recorded */
	uint64_t statfs_addr;
	int64_t local_total;
	int64_t local_free;
	int64_t local_dinodes;
};

struct replay_result {
	uint32_t blocks_replayed; /* different blocks written */
	uint32_t blocks_revoked;  /* images not written for a revoke */
	uint32_t revokes;	  /* entries read */
};

/*
 * Find the head. Returns 0; -EIO; -ENOMEM; -EUCLEAN if there is no valid
 * header or the order of the headers is broken (message logged under who).
 */
int replay_scan(struct blkdev *dev, uint32_t block_bytes,
		const struct logmap *map, const char *who,
		struct replay_head *head);

/*
 * Write the committed images of a dirty journal in place, and make them
 * durable. The head stays as it is: call replay_mark_clean() when the
 * statfs values have been dealt with. Idempotent. Addresses must lie below
 * fs_blocks. 0; -EIO; -ENOMEM; -EUCLEAN if the log is malformed (nothing of
 * it has been written then: the whole log is checked first).
 */
int replay_journal(struct blkdev *dev, uint32_t block_bytes,
		   const struct logmap *map, uint64_t fs_blocks,
		   const struct replay_head *head, const char *who,
		   struct replay_result *result);

/*
 * Write a clean header after the head, durable; *head becomes that header.
 * jid: the writer's journal; jinode_addr: of the journal marked.
 */
int replay_mark_clean(struct blkdev *dev, uint32_t block_bytes,
		      const struct logmap *map, uint32_t jid,
		      uint64_t jinode_addr, struct replay_head *head);

#endif
