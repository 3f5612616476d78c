/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * mkfs_probe.h - what the device is, and what is on it now.
 */
#ifndef UG_TOOLS_MKFS_PROBE_H
#define UG_TOOLS_MKFS_PROBE_H

#include <sys/types.h>

#include "tools/mkfs_plan.h"

struct mkfs_probe {
	bool is_blockdev;
	dev_t rdev;		   /* of a block device */
	struct mkfs_device device; /* size_bytes and sector_bytes not filled */
	bool misaligned;    /* its sectors do not begin where its media's do */
	char contents[256]; /* "a gfs2 file system", ...; "" = nothing known */
};

/*
 * Look at path, read only. 0 or the errno of open(2) and stat(2). What cannot
 * be found out is left 0 or empty: nothing depends on it but comfort.
 */
int mkfs_probe_path(const char *path, struct mkfs_probe *probe);

/*
 * The image is the backing file of a loop device: name it ("/dev/loop3") and
 * return true.
 */
bool mkfs_probe_loop(const char *path, char *name, size_t len);

/*
 * Tell a block device that nothing of its contents is wanted. 0; -EOPNOTSUPP
 * it cannot be told; or another error. The caller has the device exclusively.
 */
int mkfs_discard(const char *path, const struct mkfs_probe *probe,
		 uint64_t size_bytes);

#endif
