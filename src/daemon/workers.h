/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * workers.h - the threads that do the file system's background work.
 *
 * One thread for each enum fs_work. It runs once a second, and at once when
 * the file system asks by workers_wake(), which any thread may call at any
 * time after workers_init(): what is asked for before workers_start() is
 * kept. A thread runs its work again if it was asked for meanwhile, so no
 * request is lost.
 */
#ifndef UG_DAEMON_WORKERS_H
#define UG_DAEMON_WORKERS_H

#include <pthread.h>
#include <stdbool.h>

#include "fs/fs.h"

struct worker {
	struct workers *all;
	enum fs_work work;
	pthread_t thread;
	bool started;
	pthread_mutex_t lock; /* guards wanted and stop */
	pthread_cond_t cond;
	bool wanted;
	bool stop;
};

struct workers {
	struct fs *fs;
	struct worker worker[FS_WORK_COUNT];
};

void workers_init(struct workers *w);
void workers_wake(struct workers *w, enum fs_work work);

/* 0, or -EAGAIN: no thread could be made; nothing runs then. */
int workers_start(struct workers *w, struct fs *fs);

/* Returns when all work under way is done. Harmless without a start. */
void workers_stop(struct workers *w);
void workers_fini(struct workers *w);

#endif
