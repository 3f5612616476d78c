/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * suplink.h - a connection to the group "ugfs:sup", where members ask for
 * proofs of death and supervisors give them, and agree on who fences.
 *
 * Used by one thread. A lost connection is opened anew when suplink_retry() is
 * called: nobody here is a member of anything, so nothing is lost by that; who
 * asks, asks again.
 */
#ifndef UG_CLUSTER_SUPLINK_H
#define UG_CLUSTER_SUPLINK_H

#include "cluster/groupmsg.h"
#include "cluster/outqueue.h"

#define SUPLINK_GROUP "ugfs:sup"

struct suplink {
	cpg_handle_t cpg;
	int fd;			/* poll for input; -1 = not connected */
	struct group_proc self; /* known once connected */
	struct outqueue queue;
	const struct suplink_ops *ops;
	void *arg;
};

/* They come from suplink_dispatch() and, when it closes, suplink_close(). */
struct suplink_ops {
	void (*message)(void *arg, struct group_proc from,
			const struct group_msg *msg);
	/* The processes of the group; none: the connection is lost. */
	void (*procs)(void *arg, const struct group_proc *list, unsigned count);
};

void suplink_init(struct suplink *link, const struct suplink_ops *ops,
		  void *arg);
void suplink_close(struct suplink *link);

/* Connect if not connected: 0, else negative errno. Blocks for moments only. */
int suplink_retry(struct suplink *link);

/* Take what has come. Closes the connection when corosync has. */
void suplink_dispatch(struct suplink *link);

/*
 * It goes out in order, and comes back as everybody's. False: there is no
 * connection, or it cannot be queued: as if it had been lost.
 */
bool suplink_send(struct suplink *link, const struct group_msg *msg);

/* When suplink_flush() is due, for what corosync has not taken yet. */
uint64_t suplink_due_ns(const struct suplink *link);
void suplink_flush(struct suplink *link);

#endif
