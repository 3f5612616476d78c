/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * rgrp_int.h - what the parts of the allocator know of each other.
 *
 *   rgrp_load.c     the resource index, finding a group by block
 *   rgrp.c          glock operations: reading a group, giving it up; holds
 *   rgrp_scan.c     looking through all groups
 *   rgrp_reserve.c  which group, which places
 *   rgrp_seek.c     with other nodes: when what is ours does not do
 *   rgrp_own.c      with other nodes: which groups are ours
 *   rgrp_lvb.c      the value block of a group's lock
 *   rgrp_window.c   soft reservations of growing files
 *   rgrp_change.c   what a transaction changes
 *   rgrp_bits.c, rgrp_search.c   the bitmaps (pure)
 *   space.c         counts: promised, claimed, not yet usable
 *
 * Nobody outside src/fs/rgrp*.c and space.c includes this, except tests.
 */
#ifndef UG_FS_RGRP_INT_H
#define UG_FS_RGRP_INT_H

#include <pthread.h>
#include <stdatomic.h>
#include <urcu/list.h>

#include "fs/rgrp.h"
#include "fs/rgrp_bits.h"

/* ---- bounds ---- */

/*
 * Extents of one hold, unless its min asks for more. Beyond this a group is so
 * fragmented that the caller does better with what there is.
 */
#define RGRP_EXTENTS_MAX 64u
/* Groups that are locked in search of a long run before short ones do. */
#define RGRP_NEAR_GROUPS 16u
/* A run of this length is worth no further search: data, metadata. */
#define RGRP_RUN_GOOD 256u
#define RGRP_META_GOOD 4u
/* Windows, in blocks. */
#define RGRP_WINDOW_MIN 32u
#define RGRP_WINDOW_MAX 2048u
/* Candidates among which a directory that is to be spread chooses. */
#define RGRP_SPREAD_CANDIDATES 4u
/* Groups that a scan has locked and is reading ahead. */
#define RGRP_SCAN_AHEAD 16u
/*
 * Places in one group that a promise is good for (see space.c): a data block
 * and the pointer blocks on its way, which are at most GFS2_HEIGHT_MAX.
 */
#define RGRP_MIN_PROMISED 16u
/* For how long a group that another node uses is not even asked for. */
#define RGRP_SHUN_MS 2000u

/* ---- a group ---- */

/* Freed blocks that wait for the log (one per group and flush). */
struct rgrp_pending {
	struct commit_cb rp_cb;
	struct rgrp *rp_rg;
	uint64_t rp_sequence;
	uint32_t rp_blocks;
	unsigned rp_count;
	unsigned rp_cap;
	struct rgrp_extent *rp_ext;
};

/*
 * With other nodes: whose blocks are they to give away? Ours: we have the lock
 * in EX, and what is free counts in what may be promised (space.c). Leaving:
 * somebody wants the lock; what has been promised may still go there.
 */
enum rgrp_whose {
	RGRP_OTHERS,
	RGRP_OURS,
	RGRP_LEAVING,
};

struct rgrp {
	struct fs *rg_fs;
	struct gfs2_rindex_info rg_ri;
	uint32_t rg_index;	       /* in rgs_groups */
	uint32_t rg_skip;	       /* for the header */
	_Atomic(struct glock *) rg_gl; /* NULL until first used */
	struct buf_owner rg_owner;

	pthread_mutex_t rg_lock; /* guards what follows */
	/*
	 * While the group is in memory ("instantiated"): its ri_length blocks,
	 * referenced; else NULL, and nothing below has a meaning. Changes
	 * only while nobody holds the glock.
	 */
	struct buf **rg_bufs;
	struct gfs2_rgrp_info rg_info; /* as the header in rg_bufs[0] */
	uint64_t *rg_avail;
	uint64_t *rg_soft; /* union of the windows */
	uint32_t rg_avail_count;
	uint32_t rg_usable;   /* avail, and what is in holds */
	uint32_t rg_unlinked; /* dinodes without links in the bitmaps */
	struct rgrp_pending *rg_pending; /* of the next flush */
	/* Freed blocks for which there was no memory: usable again only when
	 * the group is next read. */
	uint32_t rg_lost;
	struct cds_list_head rg_windows;
};

/*
 * What is known of a group without its locks, packed so that a search over
 * thousands of full groups stays in the cache. Hints: they may be stale.
 */
struct rgrp_hint {
	atomic_uint rt_room; /* blocks in avail; not read yet: all */
	atomic_uint rt_run;  /* no run of this length; UINT_MAX: not known */
	/* With other nodes: */
	atomic_uint rt_whose;	/* enum rgrp_whose; changed under rg_lock */
	atomic_uint rt_shun_ms; /* somebody else uses it: since when; 0 never */
};

/* Counts of space.c. */
struct space {
	pthread_mutex_t sp_lock; /* before sc_lock */
	uint64_t sp_keep;	 /* never given away */
	uint64_t sp_promised;
	uint64_t sp_claimed;  /* by holds for metadata, not yet allocated */
	uint64_t sp_pending;  /* freed, but not durably */
	uint64_t sp_refused;  /* free, in groups that say NOALLOC */
	uint64_t sp_returned; /* how often pending blocks became usable */
	uint64_t sp_ours;     /* with other nodes: to be given away */
};

/* Walks through the groups for unlinked dinodes (rgrp_scan.c). */
struct rgrps_cleaner {
	pthread_mutex_t rc_lock; /* a leaf */
	pthread_cond_t rc_cond;
	uint64_t rc_wanted, rc_done; /* numbers of walks */
	uint64_t rc_done_ns;
};

struct rgrps {
	uint32_t rgs_count;
	struct rgrp *rgs_groups; /* ascending addresses */
	struct rgrp_hint *rgs_hints;
	uint64_t rgs_total;	/* data blocks of all groups */
	atomic_uint rgs_found;	/* index that the last look-up found */
	atomic_uint rgs_spread; /* directories spread so far */
	struct rgrps_cleaner rgs_cleaner;
	pthread_mutex_t rgs_gl_lock; /* making glocks */
	struct space rgs_space;
};

static inline struct rgrp_hint *rgrp_hint(const struct rgrp *rg)
{
	return &rg->rg_fs->fs_rgrps->rgs_hints[rg->rg_index];
}

/* Is the block one of the group's data blocks? */
static inline bool rgrp_maps(const struct rgrp *rg, uint64_t blkno)
{
	return blkno >= rg->rg_ri.data0 &&
	       blkno - rg->rg_ri.data0 < rg->rg_ri.data;
}

/* Number of a block in its group. */
static inline uint32_t rgrp_number(const struct rgrp *rg, uint64_t blkno)
{
	return (uint32_t)(blkno - rg->rg_ri.data0);
}

/* ---- rgrp_load.c ---- */

/* The group that maps a block, or NULL. */
struct rgrp *rgrps_find(struct rgrps *rgs, uint64_t blkno);

/* ---- rgrp_scan.c ---- */

void rgrps_cleaner_init(struct rgrps_cleaner *rc);
void rgrps_cleaner_fini(struct rgrps_cleaner *rc);

/* ---- rgrp.c ---- */

/* The group's glock, made when first asked for. 0 or -ENOMEM. */
int rgrp_glock(struct rgrp *rg, struct glock **glp);

/* Bitmaps, buffers and windows go. Nobody holds the glock. */
void rgrp_leave_memory(struct rgrp *rg);

/*
 * Lock the group EX (node scope) and have it in memory; with other nodes it is
 * ours from then on, unless it is leaving. flags: GL_NOWAIT, GL_TRY.
 */
int rgrp_hold_group(struct rgrp *rg, unsigned flags, struct rgrp_hold *hold);
/* The same for a group that is ours, or leaving; not for long: -EAGAIN. */
int rgrp_hold_ours(struct rgrp *rg, struct rgrp_hold *hold);
/* Lock the group for its value block, EX, without reading it. */
int rgrp_lock_unread(struct rgrp *rg, unsigned flags, struct glock_holder *gh);

/*
 * Lock the group for looking: SH, or EX shared with its users of this node if
 * that is cached, so as not to wait for a write under way.
 */
int rgrp_lock_look(struct rgrp *rg, unsigned flags, struct glock_holder *gh);

/*
 * Does everything fit together: header and bitmaps, avail, windows? Takes
 * rg_lock. For tests. -EUCLEAN with a line in the log.
 */
int rgrp_check(struct rgrp *rg);

/* rg_lock held: blocks into avail (they were not there), out of it. */
void rgrp_avail_add(struct rgrp *rg, uint32_t start, uint32_t len);
void rgrp_avail_take(struct rgrp *rg, uint32_t start, uint32_t len);
/* len more contiguous blocks may be had: the hint of failed runs fades. */
void rgrp_run_grows(struct rgrp *rg, uint32_t len);

/* Usable blocks: header and bitmaps say so, durably. rg_lock held. */
void rgrp_usable_change(struct rgrp *rg, int64_t change);

/* State of block n of the group. rg_lock held, in memory. */
enum gfs2_blkst rgrp_state(const struct rgrp *rg, uint32_t n);
/* Are all blocks of [n, n + len) in this state? */
bool rgrp_all_in_state(const struct rgrp *rg, uint32_t n, uint32_t len,
		       enum gfs2_blkst state);

/* ---- rgrp_own.c ---- */

/* EX is held by the caller. */
void rgrp_make_ours(struct rgrp *rg);
/* The lock goes, and nobody holds it. rg_lock held. */
void rgrp_not_ours(struct rgrp *rg);
/* glock_ops.recall */
void rgrp_gl_recall(struct glock *gl, enum lm_state target);
/* Another node uses it: nothing is to be looked for there for a while. */
void rgrp_shun(struct rgrp *rg);
bool rgrp_is_shunned(const struct rgrp_hint *hint);
enum rgrp_whose rgrp_whose(const struct rgrp_hint *hint);

/* ---- rgrp_lvb.c ---- */

/* What the value block says. */
struct rgrp_lvb_info {
	uint32_t flags, free, dinodes, unlinked;
	uint64_t igeneration;
};
/* A holder asks: false if there is none, or it is lost. Takes rg_lock. */
bool rgrp_lvb_get(struct rgrp *rg, struct rgrp_lvb_info *info);
/* As the group is now. EX held, in memory, rg_lock held. */
void rgrp_lvb_set(struct rgrp *rg);
/* What was read must be what the value block says. -EUCLEAN, logged. */
int rgrp_lvb_check(struct rgrp *rg, const struct gfs2_rgrp_info *info,
		   uint32_t unlinked);

/* ---- rgrp_reserve.c, rgrp_seek.c ---- */

enum rgrp_pass {
	PASS_RUN,
	PASS_ROOM,
	PASS_ANY,
	PASS_COUNT,
};

/* One request for places, as the search sees it. */
struct rgrp_ask {
	struct inode *ip;
	struct rgrps *rgs;
	enum rgrp_why why;
	uint32_t want;
	uint32_t min;
	uint32_t good; /* shorter runs do not end PASS_RUN */
	uint64_t goal; /* the block before the wanted one; 0: none */
	bool nowait;
};

/* Where an inode's next blocks should be. */
uint64_t rgrp_goal_of(struct inode *ip);
/* Index of the group where a search begins. */
uint32_t rgrp_first_group(const struct rgrp_ask *ask);
/*
 * Fill the hold, which has the group but no places. With less than min in the
 * end, nothing is taken and -ENOSPC is returned. (Or -ENOMEM.)
 */
int rgrp_take_places(const struct rgrp_ask *ask, struct rgrp *rg,
		     enum rgrp_pass pass, struct rgrp_hold *hold);
/* Release the group; there are no places in the hold. */
void rgrp_hold_release(struct rgrp_hold *hold);
/* Claim want, or at least min, for what is no data; want is what it was. */
int rgrp_claim(struct rgrp_ask *ask);

/*
 * Metadata has found no place where nobody has to be asked: groups of other
 * nodes, one after another, waiting for them. -ENOSPC.
 */
int rgrp_seek_places(const struct rgrp_ask *ask, struct rgrp_hold *hold);

/* ---- rgrp_window.c; rg_lock held ---- */

/* Blocks that a window of this inode should have now; 0: no window. */
uint32_t rgrp_window_wanted(struct inode *ip);
/* How many places, at most max, the inode's window in rg offers at *start. */
uint32_t rgrp_window_peek(struct rgrp *rg, struct inode *ip, uint32_t max,
			  uint32_t *start);
/* The first len blocks of the window have been taken. */
void rgrp_window_advance(struct rgrp *rg, struct inode *ip, uint32_t len);
/* A window of [start, start + len), unless the inode has one elsewhere. */
void rgrp_window_set(struct rgrp *rg, struct inode *ip, uint32_t start,
		     uint32_t len);
/* Places that its window had and that were not used after all. */
void rgrp_window_return(struct rgrp *rg, struct inode *ip, uint32_t start,
			uint32_t len);
/* All windows of the group go. */
void rgrp_windows_forget(struct rgrp *rg);

/* ---- space.c ---- */

void space_init(struct rgrps *rgs);
void space_fini(struct rgrps *rgs);
/* Metadata wants blocks: -ENOSPC if promises would be in danger. */
int space_claim(struct fs *fs, uint64_t blocks);
void space_unclaim(struct fs *fs, uint64_t blocks);
/* Blocks were freed by a transaction; became usable by its commit. */
void space_freed(struct fs *fs, uint64_t blocks);
void space_returned(struct fs *fs, uint64_t blocks);
/* The free blocks of groups that refuse allocation. */
void space_refused(struct fs *fs, int64_t change);
/* With other nodes: what our groups have to give has changed. */
void space_ours(struct fs *fs, int64_t change);
/* More is promised and claimed than they have? *promised: the former. */
bool space_overdrawn(struct fs *fs, uint64_t *promised);
/* Would a log flush, or the release of inodes, yield blocks? */
bool space_may_grow(struct fs *fs);
uint64_t space_returns(struct fs *fs);

#endif
