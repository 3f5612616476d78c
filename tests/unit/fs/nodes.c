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

struct work_of {
	struct node *node;
	enum fs_work work;
};

/* False: a second has gone by. The lock is held. */
static bool wait_wanted(struct node *node, unsigned bit)
{
	struct timespec end;

	clock_gettime(CLOCK_MONOTONIC, &end);
	end.tv_sec++;
	while (!(node->wanted & bit) && !node->stop)
		if (pthread_cond_timedwait(&node->cond, &node->lock, &end))
			return false;
	return true;
}

static void *work_thread(void *arg)
{
	struct work_of *of = arg;
	struct node *node = of->node;
	unsigned bit = 1u << of->work;
	bool wanted;

	pthread_mutex_lock(&node->lock);
	while (!node->stop) {
		wanted = wait_wanted(node, bit);
		if (node->stop)
			break;
		node->wanted &= ~bit;
		node->at_work |= bit;
		pthread_mutex_unlock(&node->lock);
		fs_work_run(node->fs, of->work, wanted);
		pthread_mutex_lock(&node->lock);
		node->at_work &= ~bit;
		pthread_cond_broadcast(&node->cond);
	}
	pthread_mutex_unlock(&node->lock);
	free(of);
	return NULL;
}

static void start_workers(struct node *node)
{
	for (unsigned w = 0; w < FS_WORK_COUNT; w++) {
		struct work_of *of = malloc(sizeof(*of));

		*of = (struct work_of){ node, (enum fs_work)w };
		if (pthread_create(&node->workers[w], NULL, work_thread, of))
			die("thread", "cannot be made");
	}
}

void nodes_settle(struct nodes *n)
{
	for (unsigned i = 0; i < NODES_MAX; i++) {
		struct node *node = &n->node[i];

		if (!node->fs)
			continue;
		pthread_mutex_lock(&node->lock);
		while (node->wanted || node->at_work)
			pthread_cond_wait(&node->cond, &node->lock);
		pthread_mutex_unlock(&node->lock);
	}
}

/* ---- mounts ---- */

void nodes_make(struct nodes *n, uint64_t seed, unsigned size_mib)
{
	const struct volume_geometry geometry = {
		.journals = NODES_MAX,
		.size_mib = size_mib ? size_mib : 96,
		.group_mib = 32,
	};

	memset(n, 0, sizeof(*n));
	volume_make(&n->volume, &geometry);
	/* Who dies here leaves the machine, and its device, alive. */
	n->volume.opt.barriers = false;
	n->server = fakedlm_new(seed);
	fakedlm_set_inline(n->server, 30);
	/* A test that hangs says so. */
	alarm(240);
}

static void init_node(struct node *node)
{
	pthread_condattr_t attr;

	memset(node, 0, sizeof(*node));
	pthread_mutex_init(&node->lock, NULL);
	pthread_condattr_init(&attr);
	pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
	pthread_cond_init(&node->cond, &attr);
	pthread_condattr_destroy(&attr);
	glworkers_init(&node->glworkers);
}

static void mount_node(struct nodes *n, unsigned i, bool readonly)
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

	init_node(node);
	node->jid = params.opt.jid = i;
	params.opt.readonly = readonly;
	snprintf(who, sizeof(who), "node%u", i);
	params.who = who;
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
	start_workers(node);
}

void nodes_mount(struct nodes *n, unsigned i)
{
	mount_node(n, i, false);
}

void nodes_mount_readonly(struct nodes *n, unsigned i)
{
	mount_node(n, i, true);
}

static void stop_workers(struct node *node)
{
	pthread_mutex_lock(&node->lock);
	node->stop = true;
	pthread_cond_broadcast(&node->cond);
	pthread_mutex_unlock(&node->lock);
	for (unsigned w = 0; w < FS_WORK_COUNT; w++)
		pthread_join(node->workers[w], NULL);
}

/* Neither callback nor call of the lock server comes any more. */
static void stop_dispatcher(struct node *node)
{
	fakedlm_wake(node->ls);
	pthread_join(node->dispatcher, NULL);
}

static void free_node(struct node *node)
{
	lockmod_dlm_destroy(node->dlm);
	glworkers_fini(&node->glworkers);
	blkdev_close(node->dev);
	pthread_mutex_destroy(&node->lock);
	pthread_cond_destroy(&node->cond);
}

void nodes_unmount(struct nodes *n, unsigned i)
{
	struct node *node = &n->node[i];
	int err;

	stop_workers(node);
	lockmod_dlm_leaving(node->dlm);
	err = fs_unmount(node->fs);
	if (err)
		die("unmount", strerror(-err));
	node->fs = NULL;
	stop_dispatcher(node);
	fakedlm_leave(node->ls);
	free_node(node);
}

/* ---- death ---- */

void nodes_cut(struct nodes *n, unsigned i)
{
	for (unsigned k = 0; k < NODES_MAX; k++)
		if (k != i && n->node[k].fs)
			fs_freeze(n->node[k].fs);
	blkdev_shut(n->node[i].dev);
	fs_withdraw(n->node[i].fs, "the test kills it");
}

/* Every survivor, as in life: one replays, all clean up. */
static void recover(struct node *node, unsigned jid)
{
	int err;

	do {
		err = fs_recover_journal(node->fs, jid);
	} while (err == -EAGAIN);
	if (err)
		die("recovery", strerror(-err));
}

void nodes_bury(struct nodes *n, unsigned i)
{
	struct node *node = &n->node[i];
	unsigned jid = node->jid;

	stop_workers(node);
	lockmod_dlm_cut(node->dlm);
	stop_dispatcher(node);
	fakedlm_kill(node->ls);
	lockmod_dlm_fail(node->dlm);
	/* Waits for the last request to come back from the device. */
	fs_unmount(node->fs);
	node->fs = NULL;
	free_node(node);
	for (unsigned k = 0; k < NODES_MAX; k++)
		if (n->node[k].fs)
			recover(&n->node[k], jid);
	for (unsigned k = 0; k < NODES_MAX; k++)
		if (n->node[k].fs)
			fs_thaw(n->node[k].fs);
}

void nodes_kill(struct nodes *n, unsigned i)
{
	nodes_cut(n, i);
	nodes_bury(n, i);
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
