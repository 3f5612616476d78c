/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * plocks_impl.h - the inside of plocks.h.
 *
 *	plocks.c	life, the door for processes, the lock
 *	plockcalls.c	calls under way, and their answers
 *	plockstep.c	the door of the engine: updates carried out
 *	plockmembers.c	members come and go, quorum, time
 *	plocklinks.c	messages of other members
 *	plockview.c	all of it as text
 *
 *	plocks_call()	  links: messages	cluster: members    timer
 *	     |			 |		     |		      |
 *	     '----- whoever has an event takes the lock (p->lock) ----'
 *				 |
 *		     plock_step() of the engine
 *				 |
 *	    sends -> links, in order, all to one member in one frame
 *	    answers -> p->answers
 *				 |
 *			  lock released
 *	       links_push()		 done() of each answer
 *
 * With a lockspace it is made when that is admitted, and ends with it: a member
 * that has no mount yet, or no more, still decides and remembers for others. A
 * mount attaches to it. The lockspace's lock, if somebody has it, is outside of
 * this one (ARCHITECTURE.md, order of locks); what is to be done without locks
 * is then left to ls_unlock().
 */
#ifndef UG_CLUSTER_PLOCKS_IMPL_H
#define UG_CLUSTER_PLOCKS_IMPL_H

#include <pthread.h>
#include <stdatomic.h>
#include <urcu/list.h>

#include "cluster/limits.h"
#include "cluster/plocks.h"

enum plocks_call_state {
	CALL_FREE,     /* in free_calls */
	CALL_GIVEN,    /* the engine has it; in calls */
	CALL_ANSWERED, /* the engine has no more to say; in answers */
	CALL_FAILED,   /* answered without the engine; in answers */
	CALL_TOLD,     /* that has been told, the engine has it; in calls */
};

struct plocks_call {
	struct cds_list_head list;
	enum plocks_call_state state;
	uint64_t id; /* serial << 32 | index; the engine's ctx */
	uint64_t engine_id;
	bool unlocks; /* it cannot fail */
	uint64_t number;
	struct plock_op op;
	uint64_t since_ns;
	uint64_t end_ns; /* when it was answered */
	struct plock_result res;
};

struct plocks_stats {
	uint64_t at_once; /* calls with the answer as return value */
	/* The others, [i]: of 2^i up to 2^(i+1) ns, and longer. */
	uint64_t answer_ns[PLOCKS_HIST_SLOTS]; /* those that do not wait */
	uint64_t wait_ns[PLOCKS_HIST_SLOTS];   /* SETs that do */
};

/* A member that can be sent to. */
struct plocks_peer {
	uint64_t node; /* incarnation */
	uint32_t id;   /* of its link */
};

struct plocks {
	struct ugdlm *ls; /* NULL: alone */
	uint64_t node;	  /* our incarnation */

	pthread_mutex_t lock; /* all that follows, unless it says otherwise */
	pthread_cond_t told;  /* telling has become 0 */
	void (*done)(void *arg, const struct plock_result *res);
	void *arg;
	unsigned telling;  /* threads in done() */
	bool failed;	   /* no calls any more */
	bool lost;	   /* the same, and nothing from or to others */
	_Atomic bool used; /* there has been a call */

	struct plock_engine *engine;
	struct plock_updates updates; /* those before sent are done */
	size_t sent;
	uint64_t now_ns;
	bool more;	   /* the engine has not done all it could */
	bool stuck;	   /* a send has found no memory */
	bool look_again;   /* the change of the lease has found none */
	bool need_push;	   /* something was sent */
	uint64_t armed_ns; /* the lockspace's thread looks by then */
	uint8_t frame[LINK_MESSAGE_MAX];

	/* members */
	bool quorate; /* as the engine knows */
	bool begun;   /* it has had MEMBERS */
	bool giving;  /* it is about to have them: memory is waited for */
	uint64_t epoch;
	uint64_t nodes[PLOCK_NODES_MAX];
	unsigned nodes_count;
	struct plocks_peer peers[PLOCK_NODES_MAX];
	unsigned peers_count;
	uint64_t gone[PLOCK_NODES_MAX]; /* and not released */
	unsigned gone_count;

	struct plocks_call **calls_by_index;
	uint32_t calls_count;
	uint32_t calls_space;
	struct cds_list_head free_calls;
	struct cds_list_head calls;
	struct cds_list_head answers; /* oldest first */
	struct plocks_stats stats;
};

/* plocks.c */

/* Of a lockspace; quorum is what it says now. -ENOMEM. */
int plocks_new(struct ugdlm *ls, uint64_t node, struct plocks **out);
void plocks_free(struct plocks *p);
/* Without the lockspace's lock. */
void plocks_lock(struct plocks *p);
/* Release it, then do what must not be done under it. */
void plocks_unlock(struct plocks *p);
/* The same where that is left to somebody else. */
void plocks_unlock_quietly(struct plocks *p);

/* plockcalls.c: under the lock */
/* It cannot be refused. */
bool plocks_op_unlocks(const struct plock_op *op);
/* One that the engine will answer. NULL: no memory. */
struct plocks_call *plocks_call_new(struct plocks *p, uint64_t number,
				    const struct plock_op *op, uint64_t ctx);
void plocks_call_free(struct plocks *p, struct plocks_call *call);
void plocks_calls_free(struct plocks *p);
/* NULL: it is free. */
struct plocks_call *plocks_call_find(struct plocks *p, uint64_t id);
void plocks_call_answered(struct plocks *p, const struct plock_result *res);
void plocks_calls_fail(struct plocks *p);
/* Take the first answer to tell. False: there is none. */
bool plocks_next_answer(struct plocks *p, struct plock_result *out);

/* plockstep.c: under the lock */
/* One event, and what comes of it. As plock_step(). */
int plocks_step(struct plocks *p, struct plock_event *event);
/* The same; -ENOMEM is waited for, with the lock released. */
int plocks_step_surely(struct plocks *p, struct plock_event *event);
/* Release the lock, wait a little, take it again. */
void plocks_rest(struct plocks *p);
/* Give to the links what there is to send, as far as there is memory. */
void plocks_send(struct plocks *p);
/* It is no member any more: what would be sent to it is dropped. */
void plocks_forget_peer(struct plocks *p, uint64_t node);
uint64_t plocks_wake_ns(const struct plocks *p);

/* plockmembers.c: under the lockspace's lock; p may be NULL */

struct group_state;
/* All engines are to start with these members. */
void plocks_on_start(struct ugdlm *ls, uint64_t generation,
		     const struct group_state *table);
/* The lock manager runs: all slots that are held have been told. */
void plocks_on_running(struct ugdlm *ls);
/* The member is gone; its link will be removed. */
void plocks_on_gone(struct ugdlm *ls, uint64_t node);
/* What the member has left behind is in order. */
void plocks_on_released(struct ugdlm *ls, uint64_t node);
void plocks_on_lost(struct ugdlm *ls);
/* The lease has run out, or is back. */
void plocks_on_lease(struct ugdlm *ls);
/* What time brings. When to be called next. */
uint64_t plocks_on_tick(struct ugdlm *ls);
/* Under the lock of plocks: has the lease run out, or come back? */
void plocks_look(struct plocks *p);

/* plocklinks.c: without any lock */

struct link_peer;
/* As links_ops.receive(). */
int plocks_receive(struct ugdlm *ls, const struct link_peer *from,
		   const uint8_t *bytes, size_t len);
/* Send and tell what is left of before. p may be NULL. */
void plocks_catch_up(struct plocks *p);

#endif
