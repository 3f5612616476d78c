/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * nodes.h - one volume mounted several times in this process, as by the nodes
 * of a cluster: each mount has its own caches, its own journal, lock_dlm over
 * a lock server in memory (fakedlm.h), and the threads that a mount process
 * has.
 */
#ifndef TESTS_UNIT_FS_NODES_H
#define TESTS_UNIT_FS_NODES_H

#include <pthread.h>

#include "daemon/glworkers.h"
#include "tests/unit/fs/volume.h"

#define NODES_MAX 3u

struct ugdlm;
struct lockmod_dlm;
struct fakedlm;

struct node {
	struct fs *fs; /* NULL: not mounted */
	unsigned jid;
	struct blkdev *dev;
	struct ugdlm *ls;
	struct lockmod_dlm *dlm;
	struct glworkers glworkers;
	pthread_t dispatcher;
	pthread_t workers[FS_WORK_COUNT]; /* of fs_work_run() */
	pthread_mutex_t lock;
	pthread_cond_t cond;
	unsigned wanted;  /* bit per enum fs_work */
	unsigned at_work; /* the same */
	bool stop;
};

struct nodes {
	struct volume volume; /* the image; its own mount is not used */
	struct fakedlm *server;
	struct node node[NODES_MAX];
};

/*
 * Make a volume of so many MiB (0: 96), in groups of 32, with a journal for
 * each node, and the lock server. The seed decides the order of callbacks.
 */
void nodes_make(struct nodes *n, uint64_t seed, unsigned size_mib);

/* Mount as node i. Fails the test with the sentence if it cannot. */
void nodes_mount(struct nodes *n, unsigned i);
void nodes_mount_readonly(struct nodes *n, unsigned i);
void nodes_unmount(struct nodes *n, unsigned i);

/*
 * Node i dies, in two steps. nodes_cut(): from now on nothing of it reaches the
 * volume, and its calls fail; the others' grants are frozen. nodes_bury(), when
 * no call is running on it any more: it is gone with its memory and its locks,
 * another node replays its journal, all look for what it has left, and go on.
 */
void nodes_cut(struct nodes *n, unsigned i);
void nodes_bury(struct nodes *n, unsigned i);
void nodes_kill(struct nodes *n, unsigned i);

/* All that are mounted leave, the image must be clean and is removed. */
void nodes_end(struct nodes *n);

/* Wait until the background work of every node that was asked for is done. */
void nodes_settle(struct nodes *n);

#endif
