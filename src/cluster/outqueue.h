/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * outqueue.h - group messages on their way to corosync, in order: it refuses
 * them for a moment while its ring is being formed. Used by one thread.
 */
#ifndef UG_CLUSTER_OUTQUEUE_H
#define UG_CLUSTER_OUTQUEUE_H

#include <corosync/cpg.h>

#include "cluster/groupmsg.h"

struct outqueue {
	cpg_handle_t cpg;
	struct out_bytes *head, **tail;
	unsigned count;
	uint64_t retry_ns; /* when to flush again; UINT64_MAX = never */
	uint8_t encoded[GROUP_MSG_MAX];
};

void outqueue_init(struct outqueue *q);
void outqueue_free(struct outqueue *q);

/* -ENOBUFS: as much as a group can have to say is waiting; -ENOMEM. */
int outqueue_add(struct outqueue *q, const struct group_msg *msg);

/* Send as far as corosync takes it. 0, or negative errno as coro_error(). */
int outqueue_flush(struct outqueue *q);

/* Now or never: not sent behind a queue, nor when corosync refuses it. */
void outqueue_try(struct outqueue *q, const struct group_msg *msg);

#endif
