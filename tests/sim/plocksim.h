/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * plocksim.h - the service for application locks, many members in one thread.
 *
 * As in sim.h everything that happens is an event in one queue, and all choices
 * come from one seed.
 *
 *   plocksim.c     runs: faults, then peace, then everything given back
 *   plockworld.c   links, members, faults
 *   queue.c        what happens next
 *   run.c          the command line
 *   plockproc.c    processes that lock, and what they must never be told
 *   plocktruth.c   what must hold: all the time, and when nothing moves
 *
 * The truth stands outside of the engines: what processes have been told, and
 * not taken back. An owner relies on a lock from its answer until it asks for
 * something else; that of a dead member until the member is released.
 */
#ifndef UG_PLOCKSIM_H
#define UG_PLOCKSIM_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "base/prng.h"
#include "plock/plock.h"

#define NODES_MAX 5
#define FILES_MAX 3
#define BYTES 6
#define OWNERS 4 /* of each member: two POSIX, one OFD, one flock */
#define DEAD_MAX 64

#define MS 1000000ull
#define SEC 1000000000ull

/* One owner: a process, or an open file, that makes one call at a time. */
struct proc {
	unsigned node;
	uint64_t owner;
	enum range_kind kind;
	enum plock_table table;
	/* what it may rely on; [file][byte], for flock byte 0 only */
	uint8_t holds[FILES_MAX][BYTES];
	uint8_t before[BYTES]; /* of the file of the call: if it is refused */
	bool doubt[FILES_MAX]; /* an flock that found no memory may be there or
				  not */
	/* the call under way */
	bool calling;
	bool cancelled;
	bool was_stuck; /* at some time it was in a deadlock */
	uint64_t ctx;
	uint64_t id;
	unsigned file;
	unsigned first, last; /* bytes */
	struct plock_op op;
	uint64_t since_ns;
	/* a close behind the call under way, 0 = none */
	uint64_t close_ctx;
	bool closed; /* that one has been answered first */
};

struct node {
	bool alive;
	uint64_t node; /* incarnation */
	struct plock_engine *engine;
	struct proc procs[OWNERS];
	uint64_t member_ns; /* its membership events keep order */
	uint64_t tick_ns;
	uint64_t boot_ns;
	uint64_t ops; /* calls sent to others */
};

/* What a dead member held, until it is released. */
struct dead {
	uint64_t node;
	bool released;
	struct proc procs[OWNERS];
};

struct world {
	uint64_t seed;
	struct ug_prng prng;
	uint64_t now_ns;
	struct plock_updates out; /* of the step under way */
	bool trace;
	bool nomem;
	/* the profile of the run */
	unsigned node_count, file_count;
	unsigned act_us;
	unsigned reads;	  /* %: ask for read */
	unsigned waits;	  /* %: wait */
	unsigned cancels; /* %: of acts while a call waits */
	unsigned homely;  /* %: use the node's own file */
	bool turns;	  /* mostly one node acts at a time */
	unsigned unlocks; /* % */
	unsigned faults;
	struct plock_tuning tuning;
	struct node nodes[NODES_MAX + 1];
	struct dead dead[DEAD_MAX];
	unsigned dead_count;
	uint64_t next_life;
	uint64_t next_ctx;
	uint64_t epoch;
	bool quiet; /* no new locks */
	bool draining;
	/*
	 * plock_mode=group: deadlocks end by a cancel only; a close ends what
	 * waits for the quorum.
	 */
	bool group;
	uint64_t link_ns[NODES_MAX + 1][NODES_MAX + 1];
	/* statistics */
	uint64_t steps, calls, grants, deadlocks, cancelled, faults_done,
		epochs, nomems, moves, lends, recalls, bounces, delayed;
};

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

/* plockworld.c */
void world_setup(struct world *w, uint64_t seed);
void world_run(struct world *w, uint64_t until_ns);
void world_heal(struct world *w);
void world_end(struct world *w);
bool world_is_settled(const struct world *w);
unsigned world_messages(void);
/* Files that wait for the rate limit. */
unsigned world_throttled(const struct world *w);
/* No limits any more. */
void world_untune(struct world *w);
int node_step(struct world *w, struct node *n, struct plock_event *event);

/* plockproc.c */
void procs_boot(struct world *w, unsigned node);
void proc_act(struct world *w, unsigned node);
void proc_answer(struct world *w, struct node *n,
		 const struct plock_result *answer);
unsigned procs_left(const struct world *w);
void procs_print(const struct world *w);

/* plocktruth.c */
bool clash(unsigned a, unsigned b);
/* Its call waits for a lock that this owner relies on. */
bool waits_for(const struct proc *p, const struct proc *other);
void truth_check_grant(struct world *w, const struct proc *p);
/* Before something changes that could end a deadlock: who is in one? */
void truth_mark_stuck(struct world *w);
void truth_check_deadlock(struct world *w, struct proc *p);
void truth_check_step(struct world *w);
void truth_check_quiet(struct world *w);
void truth_check_empty(struct world *w);

/* nomem.c: while set, allocations fail with one in that number */
extern unsigned nomem_one_in;
void nomem_seed(uint64_t seed);

#endif
