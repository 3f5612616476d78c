/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * notifier.h - invalidating pages that the kernel keeps, from a thread of its
 * own.
 *
 * Dropping pages waits for unanswered READs of the file, and writes its dirty
 * mapped pages to us first (docs/spec/fuse.md 4.2, 4.4): nobody who
 * answers requests may wait for it.
 */
#ifndef UG_FUSE_NOTIFIER_H
#define UG_FUSE_NOTIFIER_H

#include <stdint.h>

#include "fuse/conn.h"

struct notifier;

/* conn and who are borrowed. 0, -EAGAIN, -ENOMEM. */
int notifier_create(struct fuse_conn *conn, const char *who,
		    struct notifier **notifierp);

/* What is queued is dropped: the mount is gone. NULL is accepted. */
void notifier_destroy(struct notifier *notifier);

/* Soon, the kernel has no page of the node that it has now. Never waits. */
void notifier_push(struct notifier *notifier, uint64_t nodeid);

#endif
