/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * tune.h - values that an administrator changes while a volume is mounted.
 *
 * Read wherever they matter, each time anew, without a lock: a change works at
 * once. Names and meanings are those of GFS and GFS2 where they had them.
 * Source: docs/spec/glocks.md 8.4.
 */
#ifndef UG_FS_TUNE_H
#define UG_FS_TUNE_H

#include <stdatomic.h>

struct fs;

enum fs_tune {
	TUNE_DEMOTE_SECS,    /* unused glocks are given up */
	TUNE_LOG_FLUSH_SECS, /* commit= */
	TUNE_MAX_READAHEAD,  /* bytes */
	TUNE_STATFS_QUANTUM,
	TUNE_STATFS_PERCENT,
	TUNE_GLOCKS_CACHED_MAX, /* with other nodes only, as the next */
	TUNE_HOLD_MAX_MS,
	FS_TUNES,
};

/* From fs_opt, which has been completed. */
void tune_init(struct fs *fs);
/* The glocks of a table for several nodes have these from the beginning on. */
void tune_glocks(struct fs *fs);

#define tune_get(fs, i) \
	atomic_load_explicit(&(fs)->fs_tune[i], memory_order_relaxed)

#endif
