/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * cluster.h - the face of the folder: corosync as events for a mount process.
 *
 * cluster_join() starts a thread that joins the group "ugfs:<cluster:fs>" and
 * calls back with every event, one at a time and in order. Every other function
 * may be called from any thread, in the callback too, unless it says otherwise.
 *
 * A member whose connection to corosync ends is out: the others are told that
 * it is gone, and do not take it back (DESIGN 4.3). So nothing reconnects;
 * CLUSTER_LOST is the last event.
 * Source: docs/spec/cluster.md.
 */
#ifndef UG_CLUSTER_CLUSTER_H
#define UG_CLUSTER_CLUSTER_H

#include <sys/types.h>

#include "cluster/member.h"

enum cluster_event_kind {
	CLUSTER_UPDATE, /* what all members decided, but never MUP_SEND */
	CLUSTER_QUORUM, /* this host has quorum, or not; at once, unordered */
	CLUSTER_LEASE,	/* an own message has come back: see cluster_lease_ns()
			 */
	CLUSTER_LOST,	/* no corosync any more: as MUP_OUT */
};

struct cluster_event {
	enum cluster_event_kind kind;
	union {
		const struct member_update *update;
		bool quorate;
		int error; /* LOST: negative errno */
	};
};

struct cluster;

struct cluster_config {
	const char *table;	    /* "cluster:fs" */
	struct link_addr addr;	    /* where this member listens */
	uint8_t uuid[16];	    /* of the volume: names the life locks */
	uint64_t member_timeout_ns; /* 0 = MEMBER_TIMEOUT_NS */
	void (*event)(void *arg, struct cluster *c,
		      const struct cluster_event *ev);
	void *arg;
};

/*
 * Join. Membership comes later, as MUP_ADMITTED, when there is quorum.
 *
 * -ECONNREFUSED: corosync is not running. -EPERM: this process may not speak
 * with it. -ENAMETOOLONG, -ENOMEM. -ENOTUNIQ: two_node without wait_for_all, so
 * that each of two nodes could start alone (DESIGN 4.7). -EIO: any other answer
 * of corosync, logged.
 */
int cluster_join(const struct cluster_config *config, struct cluster **out);

/*
 * Leave at once, wait for the thread, release all. Never in the callback. For
 * the others this is a process that died, unless cluster_say_left() came first
 * and MUP_OUT with OUT_LEFT has been seen.
 */
void cluster_close(struct cluster *c);

/* The lock engine has stopped for this generation (MUP_CHANGE). */
void cluster_say_stopped(struct cluster *c, uint64_t generation);

/* The last write has returned and the device is closed. */
void cluster_say_left(struct cluster *c, bool dirty);

/* This member is silent on its links: make it gone for all. */
void cluster_expel(struct cluster *c, const struct incarnation *inc);

/* Its I/O is over, known by this proof. */
void cluster_prove(struct cluster *c, const struct incarnation *inc,
		   enum death_proof proof);

/*
 * Until this monotonic time the process may act as a member: half the token
 * timeout after it sent the last message that it has seen return (DESIGN 4.6).
 * 0 = no longer, or not yet. Costs one read of memory.
 */
uint64_t cluster_lease_ns(const struct cluster *c);

/* The table of members, NULL if not known. In the callback only. */
const struct group_state *cluster_table(const struct cluster *c);

/* Who holds a change up. In the callback only. */
unsigned cluster_silent(const struct cluster *c, struct group_proc *procs,
			unsigned max);

struct incarnation cluster_self(const struct cluster *c);

/* One node of corosync's configuration. */
struct cluster_node {
	uint32_t id;
	char name[NODE_NAME_MAX + 1]; /* its first address if it has none */
	char addr[NODE_NAME_MAX + 1]; /* of its first link */
};

/*
 * The nodes that corosync is configured with, at most max. Their number, or
 * -EIO.
 */
int cluster_nodes(struct cluster_node *nodes, unsigned max);

/* This process, or another one of this host. -EIO: not found in /proc. */
int incarnation_self(struct incarnation *out);
int incarnation_of(pid_t pid, struct incarnation *out);

#endif
