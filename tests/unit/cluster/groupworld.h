/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * groupworld.h - a cluster in memory: nodes, processes of one group,
 * partitions.
 *
 * It keeps corosync's promises and no others: the processes of one ring get
 * configurations, rings and messages in one order; when a ring breaks, those
 * that stay together have had the same messages, but others may have missed
 * the last ones; a process gets what is due to it whenever it gets to it. A
 * message is bytes on its way, so the codec is part of it. Everything is
 * decided by one seed.
 */
#ifndef TEST_GROUPWORLD_H
#define TEST_GROUPWORLD_H

#include "base/prng.h"
#include "cluster/member.h"

#define NODES_MAX 6
#define WPROCS_MAX 64

struct delivery {
	struct delivery *next;
	struct member_event ev; /* but for a message, which is bytes */
	struct group_proc procs[WPROCS_MAX];
	struct group_left left[WPROCS_MAX];
	uint32_t nodes[NODES_MAX];
	struct group_proc from;
	bool alien; /* of a process that speaks version 2 */
	size_t len;
	uint8_t *bytes;
};

struct queue {
	struct delivery *head;
	struct delivery **tail;
	unsigned count;
};

struct wproc {
	bool used, alive, frozen, out, admitted, leaving, alien;
	struct group_proc name;
	struct incarnation inc;
	struct membership *m;
	struct queue in, out_queue;
	struct ring_id quorum_ring; /* seq 0: told already */
	bool quorate;
	uint64_t stop_wanted; /* generation */
	uint64_t stopped;
	uint64_t started;
	uint64_t seen_gone; /* a bit for each process of the world */
	bool was_disturbed; /* frozen, cut off, or with a broken link */
	bool cleared;
};

struct world {
	struct ug_prng prng;
	unsigned nodes;
	unsigned part[NODES_MAX]; /* of node i + 1 */
	struct ring_id ring[NODES_MAX];
	bool two_node;
	bool refounded; /* while members of an earlier group were alive */
	uint64_t now_ns;
	uint32_t next_pid;
	struct wproc procs[WPROCS_MAX];
	unsigned long starts, gone, back, states, judged, out[OUT_LEFT + 1];
	bool trace;
	/* For stories */
	uint32_t node_base; /* added to the ids of nodes */
	bool no_proofs;	    /* nobody finds out that the gone are dead */
	bool alien;	    /* new processes speak version 2 */
	struct checker *checker;
};

void world_init(struct world *w, uint64_t seed, unsigned nodes);
void world_fini(struct world *w);

struct wproc *world_spawn(struct world *w, unsigned node);
void world_crash(struct world *w, struct wproc *p);
void world_partition(struct world *w, const unsigned *part);
void world_heal(struct world *w);

void world_link(struct world *w, struct wproc *from, struct wproc *about,
		bool silent);

/* One random small thing; false when there is nothing to do but wait. */
bool world_step(struct world *w);

/* Until nothing happens any more, time included up to some minutes. */
void world_run_dry(struct world *w);

void world_give(struct world *w, struct wproc *p, struct member_event *ev);

#endif
