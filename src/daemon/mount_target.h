/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * mount_target.h - which mount a user means by a directory, device or image.
 *
 * Reads the list of mounts and never the mount itself: its process may be dead,
 * or not answer.
 */
#ifndef UG_DAEMON_MOUNT_TARGET_H
#define UG_DAEMON_MOUNT_TARGET_H

#include <limits.h>
#include <stdbool.h>

struct mount_target {
	const char *name; /* as given; borrowed */
	bool found;
	bool ours;	       /* a mount of ugfs */
	unsigned count;	       /* how many file systems have this source */
	char dir[PATH_MAX];    /* of the last one, which is on top */
	unsigned major, minor; /* st_dev of it */
};

/*
 * A mount point, else the source of a mount of ours. 0, also if there is none
 * (found), or the errno of reading the list.
 */
int mount_target_find(const char *name, struct mount_target *out);

#endif
