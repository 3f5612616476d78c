/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * cluster_impl.h - the inside of a struct cluster, for cluster.c, corosync.c.
 *
 * All of it belongs to the cluster's thread but what is said to be shared.
 */
#ifndef UG_CLUSTER_CLUSTER_IMPL_H
#define UG_CLUSTER_CLUSTER_IMPL_H

#include <corosync/cpg.h>
#include <corosync/quorum.h>
#include <pthread.h>

#include "cluster/beside.h"
#include "cluster/cluster.h"
#include "cluster/lease.h"
#include "cluster/outqueue.h"
#include "cluster/proofs.h"

struct command {
	struct command *next;
	struct member_event ev;
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
	quorum_handle_t quorum;
	struct proofs proofs;
	struct beside beside;
	int cpg_fd, quorum_fd, bell;
	int lost; /* negative errno */
	bool quorate;
	struct outqueue queue;

	uint64_t token_ns, lease_next_ns;
	struct lease lease; /* shared */

	pthread_t thread;
	pthread_mutex_t telling; /* held while the callback runs */
	pthread_mutex_t lock;	 /* guards what follows, which is shared */
	bool stopping;
	struct command *commands, **commands_tail;
};

/* corosync.c */

/* Connect and join: as cluster_join(). Nothing is open after an error. */
int corosync_open(struct cluster *c, char *why, size_t why_len);
void corosync_close(struct cluster *c);

/* What corosync has told on these two; as coro_error(). */
int corosync_dispatch(struct cluster *c, bool group, bool quorum);

/* cluster.c */
void cluster_step(struct cluster *c, struct member_event *ev);
void cluster_lease_back(struct cluster *c, uint64_t stamp);
void cluster_quorum(struct cluster *c, struct ring_id ring, bool quorate);
void cluster_lose(struct cluster *c, const char *what, int err);

#endif
