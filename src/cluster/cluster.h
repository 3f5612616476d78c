/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * cluster.h - the face of the folder: corosync as events for a mount process.
 *
 * cluster_join() starts a thread that joins the group "ugfs:<cluster:fs>" and
 * calls back with every event, one at a time. Every other function may be
 * called from any thread, in the callback too, unless it says otherwise.
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
	CLUSTER_UPDATE,	 /* decided by all; never MUP_SEND, MUP_CLEARED */
	CLUSTER_QUORUM,	 /* this host has quorum, or not; at once, unordered */
	CLUSTER_LEASE,	 /* the right to write begins, or has ended */
	CLUSTER_CLEARED, /* from now on cluster_may_repair() is 0 */
	CLUSTER_LOST,	 /* no corosync any more: as MUP_OUT */
};

struct cluster_event {
	enum cluster_event_kind kind;
	union {
		const struct member_update *update;
		bool quorate;
		bool lease; /* see cluster_lease_ns() */
		int error;  /* LOST: negative errno */
	};
};

struct cluster;

struct cluster_config {
	const char *table;	    /* "cluster:fs" */
	struct link_addr addr;	    /* where this member listens */
	uint8_t uuid[16];	    /* of the volume: names the life locks */
	const char *life_dir;	    /* NULL = LIFE_LOCK_DIR */
	uint64_t member_timeout_ns; /* 0 = MEMBER_TIMEOUT_NS */
	uint64_t startup_delay_ns;  /* 0 = STARTUP_DELAY_NS */
	/* Where the time of cluster_lease_ns() is kept; NULL: nowhere else */
	_Atomic uint64_t *lease_ns;
	/*
	 * CLUSTER_LEASE with false can come on a thread of its own, since
	 * corosync may have stopped the other one; but not during another call.
	 */
	void (*event)(void *arg, struct cluster *c,
		      const struct cluster_event *ev);
	void *arg;
};

/*
 * Join. Membership comes later, as MUP_ADMITTED, when there is quorum.
 *
 * On error a sentence for the user is in why. -EINVAL: not a table's name;
 * -EXDEV: the table is another cluster's; -ECONNREFUSED: corosync is not
 * running; -EPERM: this process may not speak with it; -ENOTUNIQ: two_node
 * without wait_for_all, so that each of two nodes could start alone (DESIGN
 * 4.7); -EBUSY: kernel mounts of this file system are there (DESIGN 4.8);
 * -ENAMETOOLONG, -ENOMEM; -EIO: any other answer of corosync, logged.
 */
int cluster_join(const struct cluster_config *config, struct cluster **out,
		 char *why, size_t why_len);

/*
 * Leave at once, wait for the threads, release all. Never in the callback. For
 * the others this is a process that died, unless cluster_say_left() came first
 * and MUP_OUT with OUT_LEFT has been seen.
 */
void cluster_close(struct cluster *c);

/* The lock engine has stopped for this generation (MUP_CHANGE). */
void cluster_say_stopped(struct cluster *c, uint64_t generation);

/* The last write has returned and the device is closed. */
void cluster_say_left(struct cluster *c, bool dirty);

/*
 * The link to this member is silent and cannot be restored; or it is well
 * again. Members whose links stay broken are expelled a few seconds later, the
 * same ones for all (docs/spec/cluster.md 2.12).
 */
void cluster_say_link(struct cluster *c, const struct incarnation *inc,
		      bool silent);

/* Make this member gone for all, whatever others say of it. */
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

/* The table of members, NULL if not known. In CLUSTER_UPDATE only. */
const struct group_state *cluster_table(const struct cluster *c);

struct incarnation cluster_self(const struct cluster *c);

/*
 * The start-up rule (DESIGN 4.7): may what members of an earlier group left
 * behind be repaired? Members of this group that are proved dead are no matter
 * of it. 0: yes. -EAGAIN: not yet; why names the nodes and what they are
 * waited for; the first such call begins with asking and fencing, and
 * CLUSTER_CLEARED tells the end.
 */
int cluster_may_repair(struct cluster *c, char *why, size_t why_len);

/*
 * What members of an earlier group may have left behind has been looked at by
 * this member, and is in order or repaired: the group is cleared by that.
 */
void cluster_say_repaired(struct cluster *c);

enum cluster_wait_reason {
	CLUSTER_WAIT_QUORUM,  /* of the cluster; node 0 */
	CLUSTER_WAIT_HELLO,   /* a process is silent since the last change */
	CLUSTER_WAIT_STOP,    /* a member's lock engine is to stop */
	CLUSTER_WAIT_DEATH,   /* its host has been asked for a proof of death */
	CLUSTER_WAIT_FENCE,   /* node by runs its fence command */
	CLUSTER_WAIT_RETRY,   /* which has failed, last with this status */
	CLUSTER_WAIT_MANUAL,  /* fence=manual: for an acknowledgement */
	CLUSTER_WAIT_NOFENCE, /* no fence command: likewise */
	CLUSTER_WAIT_ALONE, /* a process of this host, and no other is there */
	CLUSTER_WAIT_STARTUP, /* it may hold the volume since before */
};

/* Who or what holds the group up. */
struct cluster_wait {
	enum cluster_wait_reason reason;
	uint32_t node;
	struct incarnation inc; /* zero: the host as a whole */
	uint64_t since_ns;	/* monotonic */
	uint32_t by;		/* FENCE, RETRY: a node */
	unsigned tries;		/* FENCE, RETRY: fences begun so far */
	int status;		/* RETRY: exit status, or an enum fence_end */
	char name[NODE_NAME_MAX + 1]; /* of the node */
};

/* At most max of them; their number. Nothing is waited for: 0. */
unsigned cluster_waits(struct cluster *c, struct cluster_wait *out,
		       unsigned max);

/* A sentence of it, without its end: "node2 (2): process 77 is ...". */
void cluster_wait_text(const struct cluster_wait *wait, char *buf, size_t len);

/*
 * An administrator says that this node (name, address or number) is down, and
 * has been since it was missed: as good as a fence. 0: everybody will be
 * told. -ENOENT: not a node of this cluster; -EBUSY: it is this one; -EIO.
 */
int cluster_fence_ack(struct cluster *c, const char *node);

/*
 * The same from any process of any node, also one without mounts; but not from
 * one that has joined. 0: everybody has been told; why: as cluster_join().
 */
int fence_ack_send(const char *node, char *why, size_t why_len);

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
