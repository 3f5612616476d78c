/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * volume.c - see volume.h.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/unit/fs/volume.h"

const struct fs_req volume_req = { .uid = 0, .gid = 0, .pid = 1 };

static void die(const char *what, const char *detail)
{
	fprintf(stderr, "volume: %s: %s\n", what, detail);
	abort();
}

static int run(const char *cmd)
{
	int status = system(cmd);

	return WIFEXITED(status) ? WEXITSTATUS(status) : 128;
}

void volume_make(struct volume *v, const struct volume_geometry *g)
{
	unsigned size_mib = g->size_mib ? g->size_mib : 64;
	char cmd[400], group[16] = "";
	int fd;

	if (run("command -v mkfs.gfs2 >/dev/null && "
		"command -v fsck.gfs2 >/dev/null"))
		exit(77);
	memset(v, 0, sizeof(*v));
	fs_options_init(&v->opt);
	strcpy(v->path, "/var/tmp/ugfs-test-XXXXXX");
	fd = mkstemp(v->path);
	if (fd < 0 || ftruncate(fd, (off_t)size_mib << 20))
		die("temporary image", strerror(errno));
	close(fd);
	if (g->group_mib)
		snprintf(group, sizeof(group), "-r %u", g->group_mib);
	snprintf(cmd, sizeof(cmd),
		 "mkfs.gfs2 -O -q -p lock_nolock -j %u -J 8 -b %u "
		 "-o format=%u %s %s >/dev/null",
		 g->journals ? g->journals : 1, g->bsize ? g->bsize : 4096,
		 g->format ? g->format : 1802, group, v->path);
	if (run(cmd))
		die("failed", cmd);
}

static void *work_thread(void *arg)
{
	struct volume *v = arg;
	unsigned wanted, w;

	pthread_mutex_lock(&v->lock);
	while (!v->stop) {
		if (!v->wanted) {
			pthread_cond_wait(&v->cond, &v->lock);
			continue;
		}
		wanted = v->wanted;
		v->wanted = 0;
		pthread_mutex_unlock(&v->lock);
		for (w = 0; w < FS_WORK_COUNT; w++)
			if (wanted & (1u << w))
				fs_work_run(v->fs, (enum fs_work)w, true);
		pthread_mutex_lock(&v->lock);
	}
	pthread_mutex_unlock(&v->lock);
	return NULL;
}

static void wake(void *arg, enum fs_work work)
{
	struct volume *v = arg;

	pthread_mutex_lock(&v->lock);
	v->wanted |= 1u << work;
	pthread_cond_signal(&v->cond);
	pthread_mutex_unlock(&v->lock);
}

static const struct fs_host_ops host_ops = { .wake = wake };

void volume_mount_on(struct volume *v, struct blkdev *dev)
{
	struct fs_params params = {
		.dev = dev,
		.who = "test",
		.opt = v->opt,
		.host = &host_ops,
		.arg = v,
	};
	char why[400] = "";
	int err;

	pthread_mutex_init(&v->lock, NULL);
	pthread_cond_init(&v->cond, NULL);
	v->wanted = 0;
	v->stop = false;
	v->dev = dev;
	err = fs_mount(&params, &v->fs, why, sizeof(why));
	if (err)
		die("mount", why);
	if (pthread_create(&v->thread, NULL, work_thread, v))
		die("thread", "cannot be made");
	v->running = true;
}

void volume_mount(struct volume *v)
{
	struct blkdev *dev;
	int err = blkdev_open_file(v->path, BLK_OPEN_EXCL, &dev);

	if (err)
		die("open", strerror(-err));
	volume_mount_on(v, dev);
}

static void stop_thread(struct volume *v)
{
	pthread_mutex_lock(&v->lock);
	v->stop = true;
	pthread_cond_signal(&v->cond);
	pthread_mutex_unlock(&v->lock);
	pthread_join(v->thread, NULL);
	v->running = false;
}

void volume_unmount(struct volume *v)
{
	int err;

	stop_thread(v);
	err = fs_unmount(v->fs);
	if (err)
		die("unmount", strerror(-err));
	blkdev_close(v->dev);
}

void volume_crash(struct volume *v)
{
	blkdev_shut(v->dev);
	fs_withdraw(v->fs, "the test crashes it");
	stop_thread(v);
	fs_unmount(v->fs);
	blkdev_close(v->dev);
}

void volume_fsck(struct volume *v)
{
	char cmd[600];
	int rc;

	snprintf(cmd, sizeof(cmd), "fsck.gfs2 -n %s >%s.fsck 2>&1", v->path,
		 v->path);
	rc = run(cmd);
	snprintf(cmd, sizeof(cmd),
		 "sed 's/\\r*[0-9]* percent complete\\.\\r*//g' %s.fsck | "
		 "grep -vE '^(|Initializing fsck|Validating resource group "
		 "index\\.|Level 1 resource group check: Checking if all rgrp "
		 "and rindex values are good\\.|\\(level 1 passed\\)|"
		 "Starting (pass[1-4]b?|check_statfs)|Reconciling bitmaps\\.|"
		 "(pass[1-4]b?|reconcile_bitmaps|check_statfs) completed in "
		 ".*|fsck\\.gfs2 complete)$'",
		 v->path);
	if (rc || !run(cmd)) {
		snprintf(cmd, sizeof(cmd), "cat %s.fsck >&2", v->path);
		run(cmd);
		die("fsck.gfs2 -n complains", v->path);
	}
	snprintf(cmd, sizeof(cmd), "%s.fsck", v->path);
	unlink(cmd);
}

void volume_remove(struct volume *v)
{
	unlink(v->path);
}
