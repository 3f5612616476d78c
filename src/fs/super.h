/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * super.h - one mounted volume, as the parts of src/fs see it.
 *
 * Filled by fs_mount() and constant from then on, but for what stands with its
 * own lock. Ownership: fs owns everything it points to, except the
 * device and the host's callbacks.
 */
#ifndef UG_FS_SUPER_H
#define UG_FS_SUPER_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "block/iopool.h"
#include "buf/buf.h"
#include "fs/dinode_ahead.h"
#include "fs/freeze.h"
#include "fs/fs.h"
#include "fs/orphans.h"
#include "fs/tune.h"
#include "glock/glock.h"
#include "journal/journal.h"
#include "ondisk/codec.h"
#include "ondisk/ondisk.h"

struct icache;
struct rgrps;
struct pagepool;
struct statfs_state;
struct journals;
struct cluster_locks;

/* When periodic work was last done; each field one worker's alone. */
struct work_clock {
	uint64_t commit_ns;
	uint64_t statfs_ns;
	uint64_t glocks_ns;
	uint64_t trim_ns;
	uint64_t trim_inodes; /* gone from memory since */
};

struct fs {
	char *fs_who;
	struct fs_options fs_opt;
	bool fs_rdonly; /* option, spectator, or write-protected device */
	atomic_uint fs_tune[FS_TUNES]; /* tune.h */
	const struct fs_host_ops *fs_host;
	void *fs_host_arg;

	struct blkdev *fs_dev;	   /* borrowed */
	struct lockmod fs_lockmod; /* ops NULL: lock_nolock */
	struct iopool *fs_pool;
	struct bufcache *fs_cache;
	/* Of the tree that is open: the same, or a private one (metatree.h). */
	struct glock_table *fs_glocks;
	struct glock_table *fs_shared_glocks; /* of lockmod; NULL: nolock */
	struct journal *fs_journal;	      /* NULL when read-only */
	/* Read by work on glocks, which can come until the last one is put;
	 * written when the journal comes and goes. */
	pthread_rwlock_t fs_journal_lock;
	struct logmap fs_logmap;	 /* of the own journal */
	struct journals *fs_js;		 /* of all nodes, for recovery */
	struct cluster_locks *fs_locks;	 /* clusterlocks.h; NULL: nolock */
	pthread_mutex_t fs_recover_lock; /* held by who recovers a journal */
	bool fs_recover_over;		 /* our own journal ends */
	/* A member has died that may have had inodes open without names. */
	bool fs_left_behind;
	bool fs_mounted; /* recover_mounted() */

	struct gfs2_geom fs_geom;
	struct gfs2_sb_info fs_sb;
	uint64_t fs_blocks; /* device size in blocks */
	unsigned fs_journals;

	struct icache *fs_icache;  /* icache.h */
	struct rgrps *fs_rgrps;	   /* rgrp.h */
	struct pagepool *fs_pages; /* pages.h: memory of all files' pages */
	struct statfs_state *fs_statfs; /* statfs.h */

	/* Referenced for the whole mount. */
	struct inode *fs_root;
	struct inode *fs_master;
	struct inode *fs_jindex;
	struct inode *fs_per_node;
	struct inode *fs_rindex;
	struct inode *fs_statfs_ip; /* master statfs */
	struct inode *fs_sc_ip;	    /* own statfs_change */
	struct inode *fs_qc_ip;	    /* own quota_change */
	struct glock *fs_rename_gl;

	struct freeze fs_freeze;   /* freeze.h */
	struct orphans fs_orphans; /* orphans.h */
	struct work_clock fs_work_clock;
	struct dinode_ahead fs_ahead; /* dinode_ahead.h */
	bool fs_alone; /* no other node can take a lock: lock_nolock */
	atomic_bool fs_withdrawn;
};

/* The lock that every rename between two directories holds. */
extern const struct glock_ops fs_rename_glock_ops;
#define FS_RENAME_NUMBER 3u

/*
 * Turn what an operation found into what a user sees: -EUCLEAN withdraws
 * (the finder has logged block, expected and found) and becomes -EIO.
 */
int fs_fault(struct fs *fs, int err);

/* Log what is wrong with a block, and return -EUCLEAN. */
int fs_bad_block(struct fs *fs, uint64_t blkno, const char *fmt, ...)
	ug_printf(3, 4);

/*
 * May a metadata block be read ahead of the glock that covers it? As long as
 * no other node can change the block before the glock is taken, what has been
 * read then is still the truth.
 */
static inline bool fs_may_read_unlocked(const struct fs *fs)
{
	return fs->fs_alone;
}

/* -EROFS, -EIO (withdrawn) or 0: first call of every change. */
int fs_may_write(struct fs *fs);

/*
 * Space is short: release every inode that waits for it and make it durable,
 * so that its blocks can be used (work.c). The caller may hold glocks of
 * inodes with links and of groups; no transaction, no i_lock. 0 or -EIO.
 */
int fs_reclaim_space(struct fs *fs);

/* Wall clock for timestamps. */
struct fs_time fs_now(void);

static inline void fs_wake(struct fs *fs, enum fs_work work)
{
	fs->fs_host->wake(fs->fs_host_arg, work);
}

#endif
