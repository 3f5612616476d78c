/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * glworkers.h - the threads that give locks back to other nodes.
 *
 * Two, and more while all of them are at work: each may wait for the disk, and
 * for requests of the kernel which other locks are wanted for
 * (docs/spec/glocks.md 13.1).
 */
#ifndef UG_DAEMON_GLWORKERS_H
#define UG_DAEMON_GLWORKERS_H

#include <pthread.h>
#include <stdbool.h>

#include "fs/fs.h"

#define GLWORKERS_MIN 2u
#define GLWORKERS_MAX 32u

struct glworkers {
	struct fs *fs;	      /* NULL: not started */
	pthread_mutex_t lock; /* guards all below */
	pthread_cond_t cond;
	bool wanted;
	bool stop;
	unsigned idle;
	unsigned count;
	pthread_t threads[GLWORKERS_MAX];
};

void glworkers_init(struct glworkers *w);
void glworkers_fini(struct glworkers *w);

/* For fs_host_ops.glock_wake: at any time after glworkers_init(). */
void glworkers_wake(struct glworkers *w);

/* 0, or -EAGAIN: no thread could be made; none runs then. */
int glworkers_start(struct glworkers *w, struct fs *fs);
/* Returns when no work is under way. Harmless without a start. */
void glworkers_stop(struct glworkers *w);

#endif
