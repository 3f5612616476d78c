/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * fencer.h - which supervisor fences which host, and when.
 *
 * One struct fencer is one supervisor's view. It hears what is said in
 * SUPLINK_GROUP, in the same order as all others, and says itself when it has
 * begun to fence a host and how that ended. Pure: no I/O, clock or threads.
 *
 * What the edge owes it: FENCER_PROCS and FENCER_MESSAGE in the order of
 * delivery, own messages included; FENCER_QUORUM when it changes; FENCER_TICK
 * at fencer_wake_ns(); one FENCER_ENDED for each FENCER_RUN; and that every
 * FENCER_SEND is multicast, in order.
 * Source: docs/spec/cluster.md 4.
 */
#ifndef UG_CLUSTER_FENCER_H
#define UG_CLUSTER_FENCER_H

#include "cluster/groupmsg.h"

struct fencer_config {
	uint32_t child; /* pid of the mount process */
	enum fence_kind kind;
	uint64_t kill_timeout_ns; /* for the host's own proof */
	uint64_t delay_ns;	  /* of the higher of two nodes */
	uint64_t run_max_ns;	  /* longest run of a fence command */
};

enum fencer_event_kind {
	FENCER_PROCS,	/* the processes of SUPLINK_GROUP; none: no corosync */
	FENCER_MESSAGE, /* ordered */
	FENCER_QUORUM,	/* quorum, and the nodes of the ring */
	FENCER_ENDED,	/* the command that FENCER_RUN began */
	FENCER_TICK,
};

struct fencer_event {
	enum fencer_event_kind kind;
	uint64_t now_ns; /* monotonic */
	union {
		struct {
			struct group_proc self;
			const struct group_proc *list;
			unsigned count;
		} procs;
		struct {
			struct group_proc from;
			const struct group_msg *msg;
		} message;
		struct {
			bool quorate;
			bool two_node; /* both of two nodes are quorate alone */
			const uint32_t *nodes;
			unsigned count;
		} quorum;
		struct {
			uint32_t node;
			int status; /* exit status, or enum fence_end */
		} ended;
	};
};

enum fencer_update_kind {
	FENCER_SEND, /* multicast this */
	FENCER_RUN,  /* begin the fence command for this node */
	FENCER_STOP, /* kill it; FENCER_ENDED comes all the same */
};

struct fencer_update {
	enum fencer_update_kind kind;
	union {
		struct group_msg send;
		uint32_t node;
	};
};

struct fencer_updates {
	unsigned count;
	struct fencer_update list[2 * FENCE_TARGETS_MAX + 2];
};

struct fencer;

/* NULL: no memory. config is copied. */
struct fencer *fencer_new(const struct fencer_config *config);
void fencer_free(struct fencer *f);

/* Take one event; out is emptied first. */
void fencer_step(struct fencer *f, const struct fencer_event *ev,
		 struct fencer_updates *out);

/* When FENCER_TICK is due; UINT64_MAX = never. */
uint64_t fencer_wake_ns(const struct fencer *f);

#endif
