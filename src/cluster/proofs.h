/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * proofs.h - a member's search for proofs of death: the question is put to all
 * supervisors again and again until there is an answer.
 *
 * Used by the cluster's thread only.
 */
#ifndef UG_CLUSTER_PROOFS_H
#define UG_CLUSTER_PROOFS_H

#include "cluster/hosts.h"
#include "cluster/suplink.h"

struct proofs {
	struct suplink link;
	uint8_t uuid[16]; /* of the volume */
	uint64_t next_ns; /* UINT64_MAX = nothing to ask */
};

/* Answers are given to ops, from suplink_dispatch(&p->link). */
void proofs_init(struct proofs *p, const uint8_t *uuid,
		 const struct suplink_ops *ops, void *arg);

/*
 * The table has changed, or p->next_ns has come: ask for all who lack proof;
 * and while the start-up rule is looked after, for the hosts that it is about.
 */
void proofs_ask(struct proofs *p, const struct group_state *table,
		const struct hosts *hosts, bool startup, uint64_t now_ns);

#endif
