/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * sim.h - a cluster in one thread: engines, links, membership, clients, time.
 *
 * Everything that happens is an event in one queue, ordered by virtual time;
 * all choices come from one seed, so a seed replays a run exactly.
 *
 *   world.c    the queue of events, links, steps of engines
 *   members.c  who is a member: lists, stop and start
 *   faults.c   deaths, leaves, freezes, lost links, partitions
 *   journals.c whose journal is clean, and who may have its slot
 *   blocks.c   who has written which value block, who may read what
 *   client.c   processes that lock, and what they must never be told
 *   check.c    what must hold when nothing moves any more
 *   nomem.c    allocations that fail
 *   run.c      the command line
 *
 * Links are what TCP with the membership layer gives: in order, without loss
 * between two members, at a stand while the connection is lost; what a killed
 * member sent last may arrive late or never. Checkers stand outside the
 * engines.
 */
#ifndef UG_SIM_H
#define UG_SIM_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "base/prng.h"
#include "dlm/dlm.h"

#define NODES_MAX 5
#define RESOURCES_MAX 6
#define CLIENTS_MAX 4096
#define LVBLEN 32
#define SLOTS_MAX 64
#define INCARNATIONS_MAX 4096

#define MS 1000000ull
#define SEC 1000000000ull

enum kind {
	EV_NONE,
	EV_MESSAGE,
	EV_STOP,
	EV_START,
	EV_TICK,
	EV_CLIENT,
	EV_CHANGE,    /* the membership layer has seen what happened */
	EV_TRY_START, /* what had kept a start back may be over */
	EV_KILL,
	EV_JOIN,
	EV_LEAVE, /* gives everything back, then goes */
	EV_FREEZE,
	EV_FLAP,
	EV_FENCE,     /* the end of one that has been expelled */
	EV_LOSE_LINK, /* of this node and another */
	EV_PARTITION,
};

struct event {
	uint64_t at_ns;
	uint64_t order;
	enum kind kind;
	int32_t node;
	uint64_t incarnation; /* of the node; 0 = any */
	unsigned change;
	uint64_t from_incarnation;
	struct dlm_msg *msg;
};

/* How much of what happens in a run. */
struct profile {
	const char *name;
	unsigned act_us;  /* between two acts of a node, at most */
	unsigned again;	  /* %: act on the lock that was told something last */
	unsigned cancels; /* %: cancel what is under way */
	unsigned unlocks; /* %: give an idle lock back */
	unsigned marks;	  /* %: mark the block in place of writing it */
	unsigned writes;  /* %: ask for PW or EX, not for any mode */
	unsigned resources_max;
	unsigned locks_max; /* about */
	unsigned faults_max;
	unsigned toss_us; /* idle resources, at most; 0: by seed */
	unsigned run_ms;
};

/* One lock of a client, from its request until it is gone. */
struct client {
	bool used;
	uint64_t serial; /* with the place: the ctx of its calls */
	int32_t node;
	unsigned resource;
	uint32_t lkid;
	uint32_t flags; /* of the operation under way, or of the last */
	int held;	/* what the client has been told: LKM_IV, a mode */
	int wanted;
	bool requesting;
	bool converting;
	bool unlocking;
	bool cancelled; /* a cancel was accepted for the operation */
	bool orphan;	/* its owner is gone */
	bool wants_bast;
	unsigned basts; /* modes told since the last grant */
	uint32_t owner;
	uint64_t since_ns;
};

/* What the clients know of a value block. */
struct block {
	bool used;	    /* this resource has value blocks on every lock */
	uint64_t last;	    /* last value written, 0 = never */
	bool may_be_lost;   /* at some time since nobody had a lock */
	bool must_doubt;    /* a writer died or marked it */
	bool may_doubt;	    /* there was a reason once */
	uint64_t marked_ns; /* since when a holder knows its mark is set */
};

/* The slot of one that is gone, until its journal is known to be clean. */
struct gone_slot {
	unsigned slot;
	uint64_t incarnation;
};

struct node {
	int32_t id;
	bool alive;
	bool expelled; /* no member any more, and does not know it yet */
	bool leaving;
	uint64_t incarnation;
	uint64_t frozen_until_ns;
	uint64_t member_event_ns; /* membership events of a node keep order */
	uint64_t tick_ns;
	unsigned stopped_for; /* the last change it has stopped for */
	unsigned slot;	      /* as of the last recovery, 0 = none yet */
	uint32_t generation;
	struct gone_slot gone[SLOTS_MAX];
	unsigned gone_count;
	struct dlm_engine *engine;
};

struct world {
	uint64_t seed;
	struct ug_prng prng;
	uint64_t now_ns;
	bool trace;
	const struct profile *profile;
	bool nomem; /* allocations may fail */
	unsigned node_count;
	unsigned resource_count;
	struct node nodes[NODES_MAX + 1]; /* by id */
	uint64_t next_incarnation;
	/* membership: the change under way and whom it names */
	unsigned change;
	bool started;
	struct dlm_member members[NODES_MAX];
	unsigned member_count;
	uint64_t no_start_ns; /* no start before this time */
	uint64_t link_ns[NODES_MAX + 1][NODES_MAX + 1];
	uint64_t down_ns[NODES_MAX + 1][NODES_MAX + 1]; /* lost until then */
	/* by incarnation: when its last message came; that it left in peace */
	uint64_t cut_ns[INCARNATIONS_MAX];
	bool left[INCARNATIONS_MAX];
	/* by slot: the incarnation whose journal is not clean, 0 = none */
	uint64_t dirty[SLOTS_MAX];
	/* clients */
	struct client clients[CLIENTS_MAX];
	unsigned client_high;
	unsigned last_told[NODES_MAX + 1]; /* by node: whom */
	struct block blocks[RESOURCES_MAX];
	uint64_t next_value;
	uint64_t next_serial;
	bool quiet;    /* no new operations */
	bool draining; /* everything held is given back */
	/* statistics */
	uint64_t steps, operations, grants, recoveries, faults, nomems;
	uint64_t held_back; /* messages that waited for a lost link */
};

/* A rule is broken: print what and the seed, and exit with 1. */
void fail(const struct world *w, const char *fmt, ...)
	__attribute__((format(printf, 2, 3), noreturn));

static inline uint64_t choose(struct world *w, uint64_t limit)
{
	return ug_prng_below(&w->prng, limit);
}
static inline bool chance(struct world *w, unsigned percent)
{
	return choose(w, 100) < percent;
}

/* world.c */
void world_setup(struct world *w, uint64_t seed);
void world_run(struct world *w, uint64_t until_ns);
void world_end(struct world *w);
/* How many are on their way, or held back by a lost link. */
unsigned world_messages(void);
/* No more faults; what has begun ends in its time. */
void world_heal(struct world *w);
void event_put(struct event event);
void event_post(uint64_t at_ns, enum kind kind, const struct node *node);
/* Until when faults begin. */
uint64_t world_run_ns(const struct world *w);
/* How long anything takes: mostly short. */
uint64_t delay(struct world *w);
/* Give an event; updates are carried out. Returns what dlm_step() did. */
int node_step(struct world *w, struct node *node, struct dlm_event *event);

/* members.c */
void node_boot(struct world *w, struct node *node);
void node_die(struct world *w, struct node *node);
void members_change(struct world *w);
void members_try_start(struct world *w);
void members_stop(struct world *w, struct node *node, unsigned change);
void members_start(struct world *w, struct node *node, unsigned change);
void members_tell(struct world *w, const struct node *node, enum kind kind);

/* faults.c */
void faults_plan(struct world *w, uint64_t until_ns);
bool is_fault(enum kind kind);
void fault_happens(struct world *w, struct node *node, enum kind kind);
void leave_act(struct world *w, struct node *node);

/* journals.c */
void slot_running(struct world *w, struct node *node,
		  const struct dlm_running *running);
void slot_gone(struct world *w, struct node *node,
	       const struct dlm_running *running);
void slot_died(struct world *w, const struct node *node);
void slot_act(struct world *w, struct node *node);
void slots_of_leavers(struct world *w, struct node *node);
void check_slots(struct world *w);
void check_none_held(struct world *w);
bool slots_gone(const struct world *w);

/* client.c */
void client_act(struct world *w, struct node *node);
/* False: nothing is left. */
bool client_gives_back(struct world *w, struct node *node);
void client_told(struct world *w, struct node *node,
		 const struct dlm_update *up);
void client_node_died(struct world *w, const struct node *node);
/* The mode that the client can rely on at this moment. */
int client_relies_on(const struct client *c);
bool client_lives(const struct world *w, const struct client *c);
unsigned clients_left(const struct world *w);
void clients_print(const struct world *w);
const struct dlm_name *resource_name(unsigned resource);

/* blocks.c */
void block_pack(uint8_t lvb[DLM_LVB_MAX], uint64_t value);
bool block_writes(int from, int to);
uint64_t block_value(struct world *w, const struct client *c, int to,
		     uint32_t flags);
void block_read(struct world *w, const struct client *c,
		const struct dlm_cast *cast);
void block_trust(struct block *block);
void block_written(struct world *w, const struct client *c, int to,
		   uint32_t flags, uint64_t value);
void block_vanishes(struct world *w, struct client *c);
void blocks_step_done(struct world *w);

/* check.c */
void check_quiet(struct world *w);
void check_empty(struct world *w);
void order_before(struct world *w, const struct node *node);
void order_after(struct world *w, const struct node *node);
bool all_running(const struct world *w);

/* nomem.c: while set, allocations fail with one in that number */
extern unsigned nomem_one_in;
extern uint64_t nomem_count;
void nomem_seed(uint64_t seed);

#endif
