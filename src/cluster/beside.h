/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * beside.h - keeps this mount and the kernel's GFS2 off one another's volume.
 *
 * Hosts that have the kernel's lockspace of a file system are in corosync's
 * group "dlm:ls:<fs>". A mount process joins it too. If one of the kernel's
 * hosts is there, it leaves again: the volume is in use. Else it stays and says
 * nothing: a kernel mount that comes later waits for it, as for a host that has
 * not started yet, for as long as the mount process lives (DESIGN 4.8).
 *
 * Others of our kind are known by being in "ugfs:sup" as well, which they join
 * before. All joins are in one order: of two that come at once, the second one
 * sees the first. Used by one thread.
 */
#ifndef UG_CLUSTER_BESIDE_H
#define UG_CLUSTER_BESIDE_H

#include <corosync/cpg.h>
#include <stdbool.h>

struct beside {
	cpg_handle_t cpg;
	int fd; /* poll for input */
	const char *who;
	struct cpg_name group;
	struct cpg_address members[CPG_MEMBERS_MAX];
	size_t members_count;
	bool changed; /* members, since they were looked at */
};

/*
 * The caller is in "ugfs:sup" already; who begins lines of the log. 0;
 * -EBUSY: *node has a kernel lockspace of this name; -ENAMETOOLONG;
 * -ETIMEDOUT: corosync does not finish the join; or as coro_error().
 */
int beside_open(struct beside *b, const char *fs, const char *who,
		unsigned *node);
void beside_close(struct beside *b);

/* Take what has come; a kernel mount that waits now is logged. As coro_error().
 */
int beside_dispatch(struct beside *b);

#endif
