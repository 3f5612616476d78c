/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * hosts.h - what a member knows of hosts that somebody is waited for on: who is
 * searched for a proof of death there, how far a fence is, whether the host can
 * still hold the volume from before this group began (the start-up rule).
 *
 * Pure: no I/O, clock or threads; calls on one object are serialised by the
 * caller, who gives it what the cluster and SUPLINK_GROUP say, in that order.
 * Source: docs/spec/cluster.md 4.
 */
#ifndef UG_CLUSTER_HOSTS_H
#define UG_CLUSTER_HOSTS_H

#include "cluster/cluster.h"

struct hosts;

struct hosts_config {
	struct group_proc self;
	uint8_t uuid[16];
	uint64_t startup_delay_ns;
};

/* NULL: no memory. config is copied. */
struct hosts *hosts_new(const struct hosts_config *config);
void hosts_free(struct hosts *h);

/* The nodes that corosync is configured with. */
void hosts_nodes(struct hosts *h, const struct cluster_node *nodes,
		 unsigned count);

/* The nodes of the ring. */
void hosts_ring(struct hosts *h, const uint32_t *nodes, unsigned count);

/* The table of members, after each change of it. NULL = not known. */
void hosts_table(struct hosts *h, const struct group_state *table,
		 uint64_t now_ns);

/* The processes of SUPLINK_GROUP, and what one of them says. */
void hosts_procs(struct hosts *h, const struct group_proc *list,
		 unsigned count);
void hosts_message(struct hosts *h, struct group_proc from,
		   const struct group_msg *msg, uint64_t now_ns);

/* An incarnation that is proved dead now by a fence; false: no more. */
bool hosts_take_proof(struct hosts *h, struct incarnation *inc);

/* From now on the start-up rule is looked after. */
void hosts_begin_startup(struct hosts *h, uint64_t now_ns);

/* It is looked after, and fulfilled. */
bool hosts_are_clear(const struct hosts *h);

/* It is looked after, and not fulfilled: ask for life locks again. */
bool hosts_want_survey(const struct hosts *h);

/*
 * Whom to ask the supervisors for, beside the members of the table that are
 * gone: hosts, and processes from before. At most max; their number.
 */
unsigned hosts_asks(const struct hosts *h, uint64_t now_ns,
		    struct group_ask *asks, unsigned max);

/* Who is waited for on hosts; names are not filled in. As cluster_waits(). */
unsigned hosts_waits(const struct hosts *h, uint64_t now_ns,
		     struct cluster_wait *out, unsigned max);

#endif
