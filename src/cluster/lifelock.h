/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * lifelock.h - the lock that a member holds for as long as its I/O can land.
 *
 * A member takes an exclusive flock on RUNDIR/<uuid>.<node>.<instance>.life
 * after it was admitted and before it opens the device. The kernel drops it in
 * the same exit that waits for the process's I/O, so whoever gets the lock on
 * that host afterwards has a proof of death (DESIGN 4.2 b). The file stays; it
 * says who held it last, in lines "pid N" and "start TICKS".
 */
#ifndef UG_CLUSTER_LIFELOCK_H
#define UG_CLUSTER_LIFELOCK_H

#include "cluster/groupmsg.h"

#define LIFE_LOCK_DIR "/run/ugfs"

struct life_lock_name {
	const char *dir;     /* made if it is not there */
	const uint8_t *uuid; /* 16 bytes */
	uint32_t node;
	uint8_t instance;
};

/*
 * Take it and write the holder down. The descriptor is the lock, and is never
 * inherited. Who has left closes it; else the end of the process does.
 *
 * Waits for a moment, since others may just be trying whether it is held. A
 * descriptor; -EBUSY: an earlier member of this name has not ended yet;
 * -ENAMETOOLONG or what open(2) says.
 */
int life_lock_take(const struct life_lock_name *name,
		   const struct incarnation *holder);

/*
 * Is the I/O of this incarnation over? 0: yes, and *fd holds the lock, so that
 * nobody of this name begins before the caller closes it. -EBUSY: the lock is
 * held. -ESTALE: free, but its last holder was another one, so that it says
 * nothing about this one. -ENOENT: there never was one since the host started.
 */
int life_lock_prove(const struct life_lock_name *name,
		    const struct incarnation *inc, int *fd);

/*
 * Those that hold a life lock of this volume on this host, which has this boot
 * id; out->more if one cannot be named, or the directory cannot be read.
 */
void life_lock_holders(const char *dir, const uint8_t *uuid, uint32_t node,
		       const uint8_t *boot_id, struct group_holders *out);

#endif
