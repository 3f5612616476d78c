/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * plocks_impl.h - the inside of plocks.h.
 *
 *	plocks.c	life, the door for processes, the lock
 *	plockcalls.c	calls under way, and their answers
 *	plockstep.c	the door of the engine: updates carried out
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
 */
#ifndef UG_CLUSTER_PLOCKS_IMPL_H
#define UG_CLUSTER_PLOCKS_IMPL_H

#include <pthread.h>
#include <stdatomic.h>
#include <urcu/list.h>

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
	struct plock_result res;
};

struct plocks {
	struct ugdlm *ls; /* NULL: alone */

	pthread_mutex_t lock; /* all that follows, unless it says otherwise */
	pthread_cond_t told;  /* telling has become 0 */
	void (*done)(void *arg, const struct plock_result *res);
	void *arg;
	unsigned telling; /* threads in done() */
	bool failed;
	_Atomic bool used; /* there has been a call */

	struct plock_engine *engine;
	struct plock_updates updates; /* empty outside of a step, alone */
	uint64_t now_ns;

	struct plocks_call **calls_by_index;
	uint32_t calls_count;
	uint32_t calls_space;
	struct cds_list_head free_calls;
	struct cds_list_head calls;
	struct cds_list_head answers; /* oldest first */
};

/* plocks.c */
void plocks_lock(struct plocks *p);
/* Release it, then do what must not be done under it. */
void plocks_unlock(struct plocks *p);

/* plockcalls.c: under the lock */
/* It cannot be refused. */
bool plocks_op_unlocks(const struct plock_op *op);
/* One that the engine will answer. NULL: no memory. */
struct plocks_call *plocks_call_new(struct plocks *p, uint64_t ctx,
				    const struct plock_op *op);
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

#endif
