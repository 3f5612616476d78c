/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * cluster_impl.h - the inside of a struct cluster, for cluster.c, corosync.c.
 *
 * All of it belongs to the cluster's thread but what is said to be shared.
 */
#ifndef UG_CLUSTER_CLUSTER_IMPL_H
#define UG_CLUSTER_CLUSTER_IMPL_H

#include <corosync/cpg.h>
#include <pthread.h>

#include "cluster/beside.h"
#include "cluster/cluster.h"
#include "cluster/lease.h"
#include "cluster/outqueue.h"
#include "cluster/proofs.h"
#include "cluster/quorumlink.h"

#define WAITS_MAX 64

enum command_kind {
	COMMAND_EVENT,
	COMMAND_REPAIR,	  /* look after the start-up rule */
	COMMAND_REPAIRED, /* of before the group there is nothing left */
	COMMAND_ACK,	  /* an administrator says that a node is down */
};

struct command {
	struct command *next;
	enum command_kind kind;
	struct member_event ev;
	uint32_t node; /* ACK */
};

struct cluster {
	struct cluster_config config;
	char who[96]; /* begins every line of the log */
	struct incarnation self;
	struct group_proc proc;
	struct membership *membership;
	struct member_updates updates;
	struct group_state *incoming;

	cpg_handle_t cpg;
	struct quorum_link quorum;
	struct proofs proofs;
	struct hosts *hosts;
	struct beside beside;
	unsigned nodes_count;
	struct cluster_node nodes[GROUP_PROCS_MAX];
	int cpg_fd, bell;
	int lost; /* negative errno */
	bool quorate;
	struct outqueue queue;

	struct command *unsaid; /* acknowledgements that could not be sent */
	uint64_t unsaid_next_ns;

	uint64_t changed_ns; /* when the group changed last */
	bool startup;	     /* the start-up rule is looked after */
	bool repaired;	     /* it has no matter any more */
	uint64_t clear_next_ns;

	uint64_t token_ns, lease_next_ns;
	struct lease lease; /* shared */

	pthread_t thread;
	pthread_mutex_t telling; /* held while the callback runs */
	pthread_mutex_t lock;	 /* guards what follows, which is shared */
	bool stopping;
	struct command *commands, **commands_tail;
	bool cleared, repair_wanted;
	unsigned waits_count;
	struct cluster_wait waits[WAITS_MAX];
};

/* corosync.c */

/* Connect and join: as cluster_join(). Nothing is open after an error. */
int corosync_open(struct cluster *c, char *why, size_t why_len);
void corosync_close(struct cluster *c);

/* What corosync has told on these two; as coro_error(). */
int corosync_dispatch(struct cluster *c, bool group, bool quorum);

/* waits.c */

/* The nodes that corosync is configured with may have changed. */
void waits_read_nodes(struct cluster *c);

/* What is waited for, anew, for cluster_waits(); what is new of it is logged.
 */
void waits_publish(struct cluster *c);

/* What holds the start-up rule up, in one sentence. With c->lock held. */
void waits_explain(const struct cluster *c, char *why, size_t why_len);

/* cluster.c */
void cluster_ring(struct cluster *c, struct member_event *ev);
void cluster_step(struct cluster *c, struct member_event *ev);
void cluster_lease_back(struct cluster *c, uint64_t stamp);
void cluster_quorum(struct cluster *c, struct ring_id ring, bool quorate);
void cluster_lose(struct cluster *c, const char *what, int err);

#endif
