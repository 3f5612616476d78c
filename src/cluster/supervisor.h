/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * supervisor.h - the parent of a mount process: ends it when the cluster asks,
 * and proves to the cluster that it has ended (DESIGN 4.2 b, 4.4).
 *
 * It holds neither the device nor any descriptor of the mount, and has one
 * thread. For members of its host whose own supervisor is gone it tries their
 * life lock, and after a reboot its boot id is the proof.
 */
#ifndef UG_CLUSTER_SUPERVISOR_H
#define UG_CLUSTER_SUPERVISOR_H

#include <sys/types.h>

#include "cluster/groupmsg.h"

/*
 * After the child's end: how long it tries to tell a quorate cluster so. On a
 * node that is cut off nobody hears it who needs it, so it waits for the
 * network longer than an administrator would.
 */
#define SUPERVISOR_REPORT_MS 600000

/*
 * Watch the child until it has ended and that has been told; an exit with
 * status 0 means that it has left by its own words, which is known already. It
 * must be a child of the calling process, and nobody else may wait for it.
 * life_dir is where life locks are, see lifelock.h. Returns 0 and the child's
 * wait(2) status, or a negative errno when the child could not be watched at
 * all.
 *
 * Without corosync it goes on watching, and connects when corosync is there.
 */
int supervisor_run(pid_t child, const char *life_dir, int *wait_status);

#endif
