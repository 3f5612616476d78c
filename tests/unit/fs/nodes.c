/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * nodes.c - see nodes.h.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "lockmod/dlm.h"
#include "tests/unit/fs/nodes.h"
#include "tests/unit/lockmod/fakedlm.h"

static void die(const char *what, const char *detail)
{
	fprintf(stderr, "nodes: %s: %s\n", what, detail);
	abort();
}

/* ---- what a mount process does for its file system ---- */

static void wake(void *arg, enum fs_work work)
{
	struct node *node = arg;

	pthread_mutex_lock(&node->lock);
	node->wanted |= 1u << work;
	pthread_cond_broadcast(&node->cond);
	pthread_mutex_unlock(&node->lock);
}

static void opened(void *arg, struct fs *fs)
{
	struct node *node = arg;

	if (glworkers_start(&node->glworkers, fs))
		die("threads", "cannot be made");
	fs_thaw(fs);
}

static void closing(void *arg)
{
	struct node *node = arg;

	glworkers_stop(&node->glworkers);
}

static void glock_wake(void *arg)
{
	struct node *node = arg;

	glworkers_wake(&node->glworkers);
}

static int may_repair(void *arg, char *why, size_t why_len)
{
	return 0;
}

static int waits(void *arg, const char *why)
{
	return 0;
}

static const struct fs_host_ops host_ops = {
	.wake = wake,
	.opened = opened,
	.closing = closing,
	.glock_wake = glock_wake,
	.may_repair = may_repair,
	.waits = waits,
};

static void *dispatch_thread(void *arg)
{
	struct node *node = arg;

	while (fakedlm_wait(node->ls))
		ugdlm_dispatch(node->ls, 16);
	return NULL;
}

/* Bit of the work that is being done, while it is. */
#define AT_WORK (1u << FS_WORK_COUNT)

static void *work_thread(void *arg)
{
	struct node *node = arg;
	unsigned wanted;

	pthread_mutex_lock(&node->lock);
	while (!node->stop) {
		wanted = node->wanted;
		node->wanted = wanted ? AT_WORK : 0;
		pthread_cond_broadcast(&node->cond);
		if (!wanted) {
			pthread_cond_wait(&node->cond, &node->lock);
			continue;
		}
		pthread_mutex_unlock(&node->lock);
		for (unsigned w = 0; w < FS_WORK_COUNT; w++)
			if (wanted & (1u << w))
				fs_work_run(node->fs, (enum fs_work)w, true);
		pthread_mutex_lock(&node->lock);
		node->wanted &= ~AT_WORK;
	}
	pthread_mutex_unlock(&node->lock);
	return NULL;
}

void nodes_settle(struct nodes *n)
{
	for (unsigned i = 0; i < NODES_MAX; i++) {
		struct node *node = &n->node[i];

		if (!node->fs)
			continue;
		pthread_mutex_lock(&node->lock);
		while (node->wanted)
			pthread_cond_wait(&node->cond, &node->lock);
		pthread_mutex_unlock(&node->lock);
	}
}

/* ---- mounts ---- */

void nodes_make(struct nodes *n, uint64_t seed)
{
	const struct volume_geometry geometry = {
		.journals = NODES_MAX,
		.size_mib = 96,
	};

	memset(n, 0, sizeof(*n));
	volume_make(&n->volume, &geometry);
	/* Nothing crashes here. */
	n->volume.opt.barriers = false;
	n->server = fakedlm_new(seed);
	fakedlm_set_inline(n->server, 30);
	/* A test that hangs says so. */
	alarm(240);
}

void nodes_mount(struct nodes *n, unsigned i)
{
	struct node *node = &n->node[i];
	struct lockmod mod;
	struct fs_params params = {
		.who = "test",
		.opt = n->volume.opt,
		.host = &host_ops,
		.arg = node,
		.lockmod = &mod,
	};
	char why[400] = "", who[16];

	memset(node, 0, sizeof(*node));
	node->jid = params.opt.jid = i;
	snprintf(who, sizeof(who), "node%u", i);
	params.who = who;
	pthread_mutex_init(&node->lock, NULL);
	pthread_cond_init(&node->cond, NULL);
	glworkers_init(&node->glworkers);
	if (blkdev_open_file(n->volume.path, 0, &node->dev))
		die("open", n->volume.path);
	params.dev = node->dev;
	node->ls = fakedlm_join(n->server);
	if (lockmod_dlm_create(node->ls, who, &node->dlm))
		die("lock_dlm", "cannot be made");
	mod = lockmod_dlm(node->dlm);
	if (pthread_create(&node->dispatcher, NULL, dispatch_thread, node))
		die("thread", "cannot be made");
	if (fs_mount(&params, &node->fs, why, sizeof(why)))
		die("mount", why);
	if (pthread_create(&node->worker, NULL, work_thread, node))
		die("thread", "cannot be made");
}

static void stop_worker(struct node *node)
{
	pthread_mutex_lock(&node->lock);
	node->stop = true;
	pthread_cond_broadcast(&node->cond);
	pthread_mutex_unlock(&node->lock);
	pthread_join(node->worker, NULL);
}

void nodes_unmount(struct nodes *n, unsigned i)
{
	struct node *node = &n->node[i];
	int err;

	stop_worker(node);
	lockmod_dlm_leaving(node->dlm);
	err = fs_unmount(node->fs);
	if (err)
		die("unmount", strerror(-err));
	node->fs = NULL;
	fakedlm_wake(node->ls);
	pthread_join(node->dispatcher, NULL);
	fakedlm_leave(node->ls);
	lockmod_dlm_destroy(node->dlm);
	glworkers_fini(&node->glworkers);
	blkdev_close(node->dev);
	pthread_mutex_destroy(&node->lock);
	pthread_cond_destroy(&node->cond);
}

void nodes_end(struct nodes *n)
{
	for (unsigned i = 0; i < NODES_MAX; i++)
		if (n->node[i].fs)
			nodes_unmount(n, i);
	fakedlm_free(n->server);
	volume_fsck(&n->volume);
	volume_remove(&n->volume);
	alarm(0);
}
