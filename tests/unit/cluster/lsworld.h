/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * lsworld.h - several lockspaces in one process, with a cluster that does what
 * a test says. In a world of world_new() so do the links, and nothing moves but
 * by calls of this header. In that of world_new_real() the links are TCP on
 * loopback, and each lockspace has its threads; the test makes those that
 * dispatch, and calls only what changes members and quorum.
 */
#ifndef UG_TEST_LSWORLD_H
#define UG_TEST_LSWORLD_H

#include "cluster/lockspace.h"

#define WORLD_NODES 4
#define WORLD_NAME "lab:test"

struct world;
struct world_message;

struct world_node {
	struct world *world;
	unsigned id;
	unsigned boots;
	struct ugdlm *ls; /* NULL: no process */
	struct incarnation inc;
	const struct links_ops *links_ops;
	void (*event)(void *arg, struct cluster *c,
		      const struct cluster_event *ev);
	struct member peers[WORLD_NODES + 1]; /* by id, that links know */
	bool peer_known[WORLD_NODES + 1];
	bool full; /* everything that it sends to is full */
	unsigned pushes;
	_Atomic bool quorate;
	uint64_t stopped;
	int said_left; /* 0, 1 clean, 2 dirty */
	bool expelled_itself;
	bool admitted_at_close; /* the last that it hears of the cluster */
	char log[4096];		/* events, as "prepare;running 2;" */
};

struct world {
	uint64_t now_ns;
	struct world_node node[WORLD_NODES + 1];
	struct group_state table;
	bool started;  /* this generation */
	unsigned late; /* who starts only by world_start(), 0: nobody */
	uint64_t late_generation; /* what it has missed */
	struct group_state late_table;
	struct world_message *queue[WORLD_NODES + 1][WORLD_NODES + 1];
	unsigned rests;
	/* Who waits for memory or a member; NULL: only counted. */
	void (*rest)(struct world *w);
	size_t plocks_kept_max; /* of who joins next */
	bool with_uuid;
	bool real;
	int life_lock_err; /* of who joins next */
	bool direct;	   /* who joins next takes callbacks so */
	bool refusing;	   /* a handshake is refused among the messages */
	bool dispatching;  /* world_settle() dispatches, too */
};

/* Nodes 1 to n are members and running, and have dispatched that. */
struct world *world_new(unsigned n, bool with_uuid);
/* Without any node. */
struct world *world_new_real(void);
void world_free(struct world *w);

/* A process on this node joins; it is a member when it returns. */
void world_join(struct world *w, unsigned id);
/* A process on this node asks to join; nobody lets it in. */
void world_ask(struct world *w, unsigned id);
/* It ends; nobody has noticed. */
void world_kill(struct world *w, unsigned id);
/* corosync's report about it, or its return. */
void world_missing(struct world *w, unsigned id);
void world_back(struct world *w, unsigned id);
/* All agree that it is gone: the engines stop. */
void world_gone(struct world *w, unsigned id, enum gone_cause cause);
/* ... and that its I/O is over: they start, if nobody else is missing. */
void world_prove(struct world *w, unsigned id, enum death_proof proof);
/* It starts some time later than the others: world_start(). */
void world_start_later(struct world *w, unsigned id);
void world_start(struct world *w);
void world_quorum(struct world *w, unsigned id, bool quorate);
void world_cleared(struct world *w, unsigned id);
/* It is told that it is out. */
void world_out(struct world *w, unsigned id, enum out_cause cause);

/* Its own words, if it has said them, are delivered. */
bool world_leave_if_said(struct world *w, unsigned id);

/* Deliver the oldest message of one link; false if there is none. */
bool world_deliver(struct world *w, unsigned from, unsigned to);
/* Deliver, tick, dispatch until nothing moves. */
void world_settle(struct world *w);
/* The same without dispatching. */
void world_move(struct world *w);
void world_tick(struct world *w, uint64_t ns);
unsigned world_dispatch(struct world *w, unsigned id);
void world_dispatch_some(struct world *w, unsigned id, unsigned max);
void world_room(struct world *w, unsigned id);

/* The log of events since the last call. */
const char *world_log(struct world *w, unsigned id);

/* ---- locks ---- */

struct test_lock {
	struct ugdlm_lksb lksb;
	struct ugdlm *ls;
	unsigned asts;
	unsigned basts;
	enum ugdlm_mode blocked;
};

/* Of such a lock, which is their ctx. */
void test_lock_ast(void *ctx, struct ugdlm_lksb *lksb);
void test_lock_bast(void *ctx, struct ugdlm_lksb *lksb,
		    enum ugdlm_mode blocked);

int lock_request(struct world *w, unsigned id, struct test_lock *lock,
		 const char *name, enum ugdlm_mode mode, uint32_t flags);
int lock_convert(struct test_lock *lock, enum ugdlm_mode mode, uint32_t flags);
int lock_unlock(struct test_lock *lock, uint32_t flags);
/* Asserts how the last operation ended and what is held. */
void lock_expect(const struct test_lock *lock, enum ugdlm_status status,
		 enum ugdlm_mode mode);
/* A name that this node will master if it asks first, of n. */
const char *world_name(unsigned n, unsigned dir);

#endif
