/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * freeze.h - a frozen volume, as the parts of src/fs see it. Its face is fs.h.
 *
 * Two gates, since requests may wait for background work and not the other way
 * round: first no request begins a change, then no work; then what is left is
 * written, and the log ended as by an unmount.
 */
#ifndef UG_FS_FREEZE_H
#define UG_FS_FREEZE_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>

#include "fs/why.h"
#include "glock/glock.h"

struct fs;

#define FREEZE_STRIPES 16u

/* Counts who is inside; each thread has a counter of its own, or nearly so. */
struct freeze_gate {
	struct {
		_Alignas(64) atomic_uint inside;
	} stripe[FREEZE_STRIPES];
	atomic_bool closed;
	pthread_mutex_t lock;
	pthread_cond_t left; /* somebody, while it is closed */
};

struct freeze {
	struct freeze_gate changes, work;
	/* Nothing may be written: set and cleared with fs_recover_lock. */
	atomic_bool still;
	/* With other nodes; see freeze.c. */
	struct glock *gl, *who_gl;
	struct glock_holder gh, who_gh;
};

void freeze_init(struct fs *fs);
void freeze_fini(struct fs *fs);

/*
 * Mounting: wait for the volume to be thawed, and from then on be told when
 * another node wants to freeze it. With shared glocks; as cluster_locks_take().
 */
int freeze_join(struct fs *fs, const struct why *why);
/* The end, in any state. */
void freeze_leave(struct fs *fs);

/* The mount has withdrawn: nobody waits for a thaw any more. */
void freeze_withdrawn(struct fs *fs);

/* As fs_change_begin() and fs_change_end(), for background work. */
bool freeze_work_begin(struct fs *fs);
void freeze_work_end(struct fs *fs);

/* May nothing be written? Held against changes by fs_recover_lock. */
bool freeze_is_still(const struct fs *fs);

#endif
