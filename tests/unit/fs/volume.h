/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * volume.h - a real volume for tests of src/fs: made by mkfs.gfs2 in a
 * temporary file, mounted in this process, checked by fsck.gfs2 at the end.
 *
 * A test that cannot run here (no mkfs.gfs2) exits with status 77.
 */
#ifndef TESTS_UNIT_FS_VOLUME_H
#define TESTS_UNIT_FS_VOLUME_H

#include <pthread.h>
#include <stdbool.h>

#include "fs/fs.h"

struct volume {
	char path[64]; /* of the image */
	struct blkdev *dev;
	struct fs *fs;
	struct fs_options opt;
	/* Background work: one thread, woken by the file system. */
	pthread_t thread;
	pthread_mutex_t lock;
	pthread_cond_t cond;
	unsigned wanted; /* bit per enum fs_work */
	bool stop;
	bool running;
};

/*
 * What mkfs.gfs2 is told. Zero: 4096, 64 MiB, 1 journal of 8 MiB, 1802, one
 * group for what the journals leave.
 */
struct volume_geometry {
	unsigned bsize;
	unsigned size_mib;
	unsigned journals;
	unsigned format;
	unsigned group_mib; /* 32 at least */
};

/* Make the image. opt starts with fs_options_init(). */
void volume_make(struct volume *v, const struct volume_geometry *geometry);

/* Open the device and mount. Fails the test with the sentence if it cannot. */
void volume_mount(struct volume *v);

/* The same on a device that has been opened, for one with layers on it. */
void volume_mount_on(struct volume *v, struct blkdev *dev);

/* Unmount cleanly and close the device. */
void volume_unmount(struct volume *v);

/*
 * Stop as a killed process would: the device is shut, then everything is thrown
 * away. The journal stays dirty.
 */
void volume_crash(struct volume *v);

/* fsck.gfs2 -n must exit 0 and print nothing but what its passes are. */
void volume_fsck(struct volume *v);

/* Remove the image. */
void volume_remove(struct volume *v);

/* The request of a patient root. */
extern const struct fs_req volume_req;

#endif
