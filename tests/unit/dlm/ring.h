/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * ring.h - a few engines and links between them, moved by hand: directed
 * stories of the lock engine. Nothing is delivered until a test says so.
 */
#ifndef UG_TEST_DLM_RING_H
#define UG_TEST_DLM_RING_H

#include "dlm/dlm.h"

#define RING_NODES 5
#define RING_LOG 4096

struct ring_told {
	int node;
	enum dlm_update_kind kind;
	struct dlm_cast cast;
	struct dlm_running running;
};

struct ring {
	struct dlm_engine *engine[RING_NODES + 1]; /* by node id */
	uint64_t incarnation[RING_NODES + 1];
	struct dlm_msg *queue[RING_NODES + 1][RING_NODES + 1][RING_LOG];
	unsigned head[RING_NODES + 1][RING_NODES + 1];
	unsigned tail[RING_NODES + 1][RING_NODES + 1];
	struct ring_told told[RING_LOG];
	unsigned told_count;
	unsigned sent; /* messages, recovery not counted */
	uint64_t now_ns;
	bool hold_slots;
};

/* Nodes 1 to n are members and running. */
struct ring *ring_new(unsigned n);
/* The same, slots are held for the gone. */
struct ring *ring_new_holding(unsigned n);
void ring_free(struct ring *ring);

/* Deliver the oldest message of one link; false if there is none. */
bool ring_deliver(struct ring *ring, int from, int to);
/* Deliver, and let time pass, until nothing moves. */
void ring_settle(struct ring *ring);

/* Stop all, start all that are alive with the list of those. */
void ring_stop(struct ring *ring);
void ring_start(struct ring *ring);
/* The node and all that it has sent is gone. */
void ring_kill(struct ring *ring, int node);
/* A new incarnation of it, not yet a member. */
void ring_boot(struct ring *ring, int node);
void ring_tick(struct ring *ring, uint64_t ns);

int ring_lock(struct ring *ring, int node, const char *name, enum dlm_mode mode,
	      uint32_t flags, const uint8_t *lvb, uint32_t *lkid);
int ring_convert(struct ring *ring, int node, uint32_t lkid, enum dlm_mode mode,
		 uint32_t flags, const uint8_t *lvb);
int ring_unlock(struct ring *ring, int node, uint32_t lkid, uint32_t flags,
		const uint8_t *lvb);

int ring_close(struct ring *ring, int node, uint32_t owner);
int ring_purge(struct ring *ring, int node, int32_t target, uint32_t pid);

/* The last CAST (or BAST) of a lock; NULL if there is none. */
const struct dlm_cast *ring_cast(const struct ring *ring, int node,
				 uint32_t lkid);
const struct dlm_cast *ring_bast(const struct ring *ring, int node,
				 uint32_t lkid);
unsigned ring_casts(const struct ring *ring, int node, uint32_t lkid);

/* Give any event; what dlm_step() returned. */
int ring_step(struct ring *ring, int node, struct dlm_event *event);

/* Asserts that the lock was last granted in this mode. */
void ring_expect(const struct ring *ring, int node, uint32_t lkid,
		 enum dlm_mode mode);

/* A name whose directory node is the given one, in a ring of n. */
const char *ring_name(unsigned n, int dir);

#endif
