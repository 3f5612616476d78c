/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * suplink.h - a connection to the group "ugfs:sup", where members ask for
 * proofs of death and supervisors give them.
 *
 * Used by one thread. A lost connection is opened anew when suplink_retry() is
 * called: nobody here is a member of anything, so nothing is lost by that; who
 * asks, asks again.
 */
#ifndef UG_CLUSTER_SUPLINK_H
#define UG_CLUSTER_SUPLINK_H

#include <corosync/cpg.h>

#include "cluster/groupmsg.h"

#define SUPLINK_GROUP "ugfs:sup"

struct suplink {
	cpg_handle_t cpg;
	int fd; /* poll for input; -1 = not connected */
	uint32_t node;
	void (*message)(void *arg, struct group_proc from,
			const struct group_msg *msg);
	void *arg;
};

/* Callbacks come from suplink_dispatch() only. */
void suplink_init(struct suplink *link,
		  void (*message)(void *arg, struct group_proc from,
				  const struct group_msg *msg),
		  void *arg);
void suplink_close(struct suplink *link);

/* Connect if not connected: 0, else negative errno. Blocks for moments only. */
int suplink_retry(struct suplink *link);

/* Take what has come. Closes the connection when corosync has. */
void suplink_dispatch(struct suplink *link);

/* False: not sent; try later. */
bool suplink_send(struct suplink *link, const struct group_msg *msg);

#endif
