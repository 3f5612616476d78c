/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * quorumlink.h - corosync's quorum as it changes: is there one, and which nodes
 * are in the ring. Used by one thread.
 */
#ifndef UG_CLUSTER_QUORUMLINK_H
#define UG_CLUSTER_QUORUMLINK_H

#include <corosync/quorum.h>
#include <stdbool.h>

#include "cluster/groupmsg.h"

struct quorum_link {
	quorum_handle_t handle;
	int fd; /* poll for input; -1 = not connected */
	void (*told)(void *arg, struct ring_id ring, bool quorate,
		     const uint32_t *nodes, unsigned count);
	void *arg;
};

/* told() comes from quorum_link_dispatch() only, soon once. As coro_error(). */
int quorum_link_open(struct quorum_link *link,
		     void (*told)(void *arg, struct ring_id ring, bool quorate,
				  const uint32_t *nodes, unsigned count),
		     void *arg);
void quorum_link_close(struct quorum_link *link);

/* As coro_error(). */
int quorum_link_dispatch(struct quorum_link *link);

/* Asked now, and not what was told last. False also if it cannot be known. */
bool quorum_link_is_quorate(struct quorum_link *link);

#endif
