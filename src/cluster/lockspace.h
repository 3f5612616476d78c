/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * lockspace.h - the inside of a joined lockspace (include/ugfs/ugdlm.h), for
 * the files ls*.c and their tests.
 *
 *   ugdlm_lock()     links: messages      cluster: members     timer
 *        |                 |                    |                |
 *        '--------- whoever has an event takes ls->lock ---------'
 *                                 |
 *                     dlm_step() of the engine
 *                                 |
 *            updates: sends -> links, in order, under the lock
 *                     casts, basts -> queue of their lock
 *                     prepare, running .. -> queue of events
 *                                 |
 *                          lock released
 *                    links_push()      eventfd -> ugdlm_dispatch()
 *
 * So nothing that a program does in a callback runs on the engine's stack, on
 * the links' thread or under the lock (DESIGN 6, rule 5).
 *
 * The environment (cluster, links, clock) is a table, so that tests run many
 * lockspaces in one thread.
 */
#ifndef UG_CLUSTER_LOCKSPACE_H
#define UG_CLUSTER_LOCKSPACE_H

#include <assert.h>
#include <pthread.h>
#include <stdio.h>
#include <urcu/list.h>

#include "base/assert.h"
#include "base/compiler.h"
#include "base/log.h"
#include "cluster/cluster.h"
#include "cluster/lifelock.h"
#include "cluster/links.h"
#include "dlm/dlm.h"
#include "ugfs/ugdlm.h"

/* Nodes that a configuration of corosync can have. */
#define LS_NODES_MAX 256

/* Lines of the trace. */
#define LS_TRACE_LINES 4096u

/* How soon something is tried again that found no memory. */
#define LS_RETRY_NS 10000000u

/* How long leaving waits for the others, each time. */
#define LS_LEAVE_NS 30000000000u

/* How often a silent link is looked at. */
#define LS_SILENT_NS 1000000000u

struct ls_cluster_ops {
	int (*join)(const struct cluster_config *config, struct cluster **out,
		    char *why, size_t why_len);
	void (*close)(struct cluster *c);
	void (*say_stopped)(struct cluster *c, uint64_t generation);
	void (*say_left)(struct cluster *c, bool dirty);
	void (*say_link)(struct cluster *c, const struct incarnation *inc,
			 bool silent);
	void (*expel)(struct cluster *c, const struct incarnation *inc);
	uint64_t (*lease_ns)(const struct cluster *c);
	const struct group_state *(*table)(const struct cluster *c);
	int (*may_repair)(struct cluster *c, char *why, size_t why_len);
	void (*say_repaired)(struct cluster *c);
	int (*fence_ack)(struct cluster *c, const char *node);
	unsigned (*waits)(struct cluster *c, struct cluster_wait *out,
			  unsigned max);
	void (*wait_text)(const struct cluster_wait *wait, char *buf,
			  size_t len);
	int (*nodes)(struct cluster_node *nodes, unsigned max);
	int (*incarnation)(struct incarnation *out);
	int (*life_lock)(const struct life_lock_name *name,
			 const struct incarnation *holder);
};

struct ls_links_ops {
	int (*open)(const struct links_config *config, struct links **out,
		    struct link_addr *addr);
	void (*close)(struct links *links);
	int (*add)(struct links *links, const struct link_peer *peer);
	void (*remove)(struct links *links, const struct incarnation *inc);
	int (*send)(struct links *links, uint32_t id, enum link_channel channel,
		    const uint8_t *bytes, size_t len);
	void (*push)(struct links *links);
	bool (*full)(const struct links *links, uint32_t id);
	unsigned (*info)(struct links *links, struct link_info *out,
			 unsigned max);
};

struct ls_env {
	const struct ls_cluster_ops *cluster;
	const struct ls_links_ops *links;
	/* Where this host listens; of corosync's configuration. */
	int (*own_addr)(struct link_addr *out);
	uint64_t (*now_ns)(void);
	/* Wait a little: there was no memory. */
	void (*rest)(void);
	/* Under the lock: wait until something has changed, or this time. */
	void (*wait)(struct ugdlm *ls, uint64_t until_ns);
	bool threads; /* false: a test calls ls_tick() */
};

/* ---- members (lsevents.c) ---- */

struct ls_member {
	struct cds_list_head list;
	struct member m;
	uint32_t id;
	uint64_t inc_short; /* what the engine calls its incarnation */
	uint16_t slot;	    /* as of the last running() */
	bool missing;
	bool linked;	      /* links know it */
	bool full;	      /* links_full(): no new requests until room() */
	bool asked;	      /* leaving: it has not answered yet */
	bool silent;	      /* as the cluster has been told of its link */
	bool started_without; /* gone: forgotten when all updates are done */
	char name[NODE_NAME_MAX + 1];
};

/* A slot that is taken by one that is gone. */
struct ls_held_slot {
	struct cds_list_head list;
	uint16_t slot;
	uint64_t incarnation;
	bool told; /* gone() has been called */
};

/* ---- locks (lscall.c, lswait.c) ---- */

/* A callback that waits for ugdlm_dispatch(). */
struct ls_callback {
	struct ls_callback *next;
	bool is_bast;
	int8_t mode; /* bast: the one that is blocked */
	bool lvb_valid;
	enum ugdlm_status status;
	uint32_t sbflags;
	uint8_t lvb[UGDLM_LVB_LEN];
};

/* Operations whose end the program has not been told: pending. */
enum {
	LS_OP = 1,     /* a request or a conversion */
	LS_UNLOCK = 2, /* an unlock, perhaps over the former */
};

/*
 * A lock of this process. Found by its lksb's lkid in ls->table, or, while its
 * request has not been given to the engine, by the lksb in ls->waiting.
 */
struct ls_lock {
	struct ls_lock *hash_next;
	struct ugdlm_lksb *lksb;
	void (*ast)(void *ctx, struct ugdlm_lksb *lksb);
	void (*bast)(void *ctx, struct ugdlm_lksb *lksb,
		     enum ugdlm_mode blocked);
	void *ctx;
	struct ls_call *waiting;       /* a call that waits in the library */
	struct ls_timeout *timeout;    /* of the operation under way */
	struct ls_callback *callbacks; /* oldest first */
	struct ls_callback *callbacks_last;
	struct cds_list_head ready; /* in ls->ready: callbacks, none running */
	uint32_t lkid;		    /* the engine's; 0: not known to it */
	int8_t mode;		    /* of the last cast */
	uint8_t pending;
	uint8_t casts; /* among the callbacks */
	bool in_ready;
	bool running; /* a callback of it */
	bool gone;    /* freed after the last callback */
	bool lost;    /* its one cast is UGDLM_LOST, without memory */
};

enum ls_call_kind {
	LS_CALL_REQUEST,
	LS_CALL_CONVERT,
	LS_CALL_UNLOCK, /* cancel, force-unlock */
};

struct ls_call {
	struct cds_list_head list; /* in ls->waiting or ls->refused */
	struct ls_lock *lock;
	enum ls_call_kind kind;
	enum dlm_mode mode;
	uint32_t flags;
	int cancel_status;
	struct dlm_name name;
	uint8_t lvb[UGDLM_LVB_LEN];
	bool refused; /* which of the two lists */
};

struct ls_timeout {
	struct cds_list_head list;
	struct ls_lock *lock;
	uint64_t due_ns; /* of the clock of lswait.c */
	bool asked;	 /* the engine has been told to cancel */
};

/* ---- events for the program (lscallbacks.c) ---- */

enum ls_event_kind {
	LS_EVENT_PREPARE,
	LS_EVENT_GONE,
	LS_EVENT_RUNNING,
	LS_EVENT_QUORATE,
	LS_EVENT_CLEARED,
	LS_EVENT_LOST,
};

struct ls_event {
	struct cds_list_head list;
	enum ls_event_kind kind;
	struct ugdlm_member member;
	enum ugdlm_end end;
	uint64_t incarnation; /* GONE: names the slot */
	uint32_t generation;
	bool quorate;
};

/* Why no ast and bast is delivered: the program must hear of the end first. */
enum {
	LS_GATE_RECOVERY = 1, /* from prepare until running() has returned */
	LS_GATE_LEASE = 2,    /* from quorate(false) until quorate(true) has */
};

struct ls_trace;
struct plocks;

struct ugdlm {
	struct ls_env env;
	char name[256];
	char who[288]; /* begins every line of the log */
	uint8_t uuid[16];
	bool hold_slots;
	bool trace_all;
	bool direct; /* the links' thread runs casts and basts */
	uint64_t toss_ns;
	uint64_t member_timeout_ns;
	struct ugdlm_events events;
	void *arg;
	uint32_t wire_id;

	pthread_mutex_t lock; /* all that follows, unless it says otherwise */
	pthread_cond_t cond;  /* admitted, lost, flushed: for join and leave */
	pthread_cond_t timer; /* wakes the thread before its time */
	pthread_t thread;
	bool has_thread;
	bool stopping;
	uint64_t thread_wake_ns;

	struct cluster *cluster;
	struct links *links;
	struct link_addr addr;
	struct incarnation inc;
	struct cluster_node *nodes;
	unsigned nodes_count;
	int life_fd;

	/* life */
	bool admitted;
	int join_err; /* admitted, but of no use: it has to leave again */
	bool leaving;
	bool left; /* our own words have been delivered */
	bool lost;
	_Atomic bool no_lease; /* lost, for who does not take the lock */
	int lost_err;
	char lost_why[256];
	struct ugdlm_member self;

	/* the engine, and what it has said that is not done yet */
	struct dlm_engine *engine;
	struct dlm_updates updates;
	size_t updates_done;
	bool flushing;
	bool more;
	bool need_resume;  /* calls that wait may go on */
	bool forget_due;   /* ls_members_forget() is to follow */
	uint64_t retry_ns; /* no memory: again then; 0: nothing to do again */
	uint64_t now_ns;   /* of the event under way */

	/* members */
	struct cds_list_head members;
	struct cds_list_head held_slots;
	struct ls_member *last_member; /* that was looked up */
	unsigned missing;
	unsigned full;
	unsigned silent;
	uint64_t silent_check_ns;
	bool changing; /* somebody is gone, MUP_CHANGE has not come yet */
	bool running;  /* the engine is */
	bool prepared; /* prepare has been told, running has not */
	bool has_lease;
	uint32_t generation;
	uint64_t flush_id; /* leaving: the question to all members */
	unsigned flush_due;

	/* locks */
	struct ls_lock **table;
	uint32_t table_mask;
	uint32_t locks;
	struct cds_list_head waiting; /* calls, in order */
	struct cds_list_head refused; /* calls that found a cancel on its way */
	uint32_t waiting_count;
	struct cds_list_head timeouts;
	uint64_t closed_since_ns; /* 0: calls go to the engine now */
	uint64_t closed_ns;	  /* before that, all in all */
	struct ls_lock *inline_lock;
	bool inline_done;

	/* callbacks */
	struct cds_list_head ready;
	struct cds_list_head event_queue;
	struct cds_list_head spare_events;
	unsigned spare_events_count;
	struct ls_event *lost_event;
	struct ls_callback *spare_callbacks;
	unsigned spare_callbacks_count;
	unsigned gate;
	unsigned callbacks_running;
	bool event_running;
	int fd;
	bool fd_is_set;

	bool need_push;
	bool need_ring;

	/* The links' thread's */
	bool receiving; /* it has the lock, until its pause */
	unsigned received;

	/* Application locks; NULL: of a lockspace that protects no volume. */
	struct plocks *plocks;
	size_t plocks_kept_max; /* of its engine; 0: the usual */
	bool need_plocks;	/* plocks_catch_up() */
	bool received_plocks;	/* the links' thread's */

	struct ls_trace *trace;
	uint8_t encoded[4096];
};

static inline bool ls_list_empty(const struct cds_list_head *list)
{
	return list->next == list;
}

/* lockspace.c: life, the lock, the thread */

int ls_new(const struct ugdlm_config *config, const struct ls_env *env,
	   struct ugdlm **out, char *why, size_t why_len);
void ls_free(struct ugdlm *ls);
/* Start links and cluster: membership comes later. */
int ls_connect(struct ugdlm *ls, const struct ugdlm_config *config, char *why,
	       size_t why_len);
void ls_disconnect(struct ugdlm *ls);

void ls_lock(struct ugdlm *ls);
/*
 * Release it, then do what must not be done under it: push, ring. In a callback
 * of the program both are left to whoever runs it.
 */
void ls_unlock(struct ugdlm *ls);
/* On the links' thread, which pushes and rings at its pause. */
void ls_unlock_quietly(struct ugdlm *ls);

/* Under the lock: all that time brings. When it has to be called next. */
uint64_t ls_tick(struct ugdlm *ls);
/* Under the lock: until the condition is signalled, or this time. */
void ls_wait_until(struct ugdlm *ls, pthread_cond_t *cond, uint64_t ns);
/* The thread has something to do before it would wake up by itself. */
void ls_wake_thread(struct ugdlm *ls, uint64_t due_ns);

/* Everything ends; why is for the program. The first one counts. */
void ls_lose(struct ugdlm *ls, int err, const char *fmt, ...) ug_printf(3, 4);

/* Room for a sentence of len bytes, or NULL. */
void ls_say(char *why, size_t why_len, const char *fmt, ...) ug_printf(3, 4);

/* lsupdates.c: the engine's door */

/*
 * One event, and what comes of it. As dlm_step(); -ENOMEM is the caller's to
 * repeat.
 */
int ls_step(struct ugdlm *ls, struct dlm_event *event);
/* Without the latter: ls_flush() is to follow. */
int ls_step_only(struct ugdlm *ls, struct dlm_event *event);
/* The same, until there is memory or the lockspace is lost. */
int ls_step_surely(struct ugdlm *ls, struct dlm_event *event);
/* Go on with updates that found no memory. */
void ls_flush(struct ugdlm *ls);
/* The engine has stopped: that it ran, if not done yet, is not true any more.
 */
void ls_updates_stopped(struct ugdlm *ls);

/* lsevents.c: members */

void ls_on_cluster(void *arg, struct cluster *c,
		   const struct cluster_event *ev);
struct ls_member *ls_member_find(struct ugdlm *ls, uint32_t id);
struct ls_member *ls_member_of(struct ugdlm *ls, const struct incarnation *inc);
void ls_members_free(struct ugdlm *ls);
/* Those without whom the engine has started: nothing names them any more. */
void ls_members_forget(struct ugdlm *ls);
/* Updates of the engine: */
void ls_on_prepare(struct ugdlm *ls);
void ls_on_running(struct ugdlm *ls, const struct dlm_running *up);
int ls_on_slot_gone(struct ugdlm *ls, struct dlm_running up);

/* lslinks.c: what the links tell */

extern const struct links_ops ls_links_callbacks;
/* Whether silent links are well again. When to be called next. */
uint64_t ls_check_silent(struct ugdlm *ls);
/* Leaving: a question to all; ls->flush_due counts the answers to come. */
int ls_ask_all(struct ugdlm *ls);

/* lscall.c: calls of the program */

/* Give a call to the engine. As dlm_step(). */
int ls_give(struct ugdlm *ls, struct ls_call *call);
void ls_lock_forget(struct ugdlm *ls, struct ls_lock *lock);
void ls_locks_lose(struct ugdlm *ls);
void ls_locks_free(struct ugdlm *ls);

/* lswait.c: calls that wait; whether they have to */

/* Calls may go to the engine, and what it grants may be told. */
bool ls_is_open(const struct ugdlm *ls);
/* Look whether the lease has run out or come back, and do what follows. */
void ls_check_lease(struct ugdlm *ls);
/* After a change of what ls_is_open() looks at. */
void ls_open_or_close(struct ugdlm *ls);
/* The call cannot go to the engine now. */
bool ls_must_wait(const struct ugdlm *ls, const struct ls_call *call);
/* Let a copy of the call wait. -ENOMEM. */
int ls_wait(struct ugdlm *ls, const struct ls_call *call, bool refused);
void ls_wait_end(struct ugdlm *ls, struct ls_call *call);
/* Give waiting calls to the engine, in order, as far as it may be. */
void ls_resume(struct ugdlm *ls);
/* What a cancel has refused may go now. */
void ls_resume_refused(struct ugdlm *ls);
int ls_timeout_set(struct ugdlm *ls, struct ls_lock *lock, uint32_t ms);
void ls_timeout_end(struct ugdlm *ls, struct ls_lock *lock);
/* End what has waited too long. When to be called next. */
uint64_t ls_timeouts_run(struct ugdlm *ls);

/* lscallbacks.c: what waits for ugdlm_dispatch() */

/* -ENOMEM: give the update again. */
int ls_cast(struct ugdlm *ls, struct ls_lock *lock,
	    const struct dlm_cast *cast);
int ls_bast(struct ugdlm *ls, struct ls_lock *lock,
	    const struct dlm_cast *cast);
/* An end that the library decides; the lock is gone if mode is LKM_IV. */
int ls_cast_status(struct ugdlm *ls, struct ls_lock *lock,
		   enum ugdlm_status status, int8_t mode);
/* Instead of all that waits to be told; needs no memory. */
void ls_cast_lost(struct ugdlm *ls, struct ls_lock *lock);
int ls_callbacks_init(struct ugdlm *ls);
void ls_callbacks_free(struct ugdlm *ls);
void ls_callbacks_drop(struct ugdlm *ls, struct ls_lock *lock);
/* A copy of what is to be told. Without memory the lockspace is lost. */
void ls_event_push(struct ugdlm *ls, const struct ls_event *event);
void ls_event_push_lost(struct ugdlm *ls);
/* Somebody has to dispatch, if there is anything that may be delivered. */
void ls_ring(struct ugdlm *ls);
/* This thread runs callbacks of it, and pushes and rings afterwards. */
bool ls_is_dispatching(const struct ugdlm *ls);
/* On the links' thread, under the lock: what it may deliver itself. */
void ls_dispatch_direct(struct ugdlm *ls);

/* lstrace.c: the last LS_TRACE_LINES things that happened */

enum ls_trace_kind {
	LS_TR_TEXT,
	LS_TR_REQUEST, /* a: mode, b: flags */
	LS_TR_CONVERT, /* the same */
	LS_TR_UNLOCK,  /* b: flags */
	LS_TR_WAIT,    /* the call waits in the library */
	LS_TR_CAST,    /* a: status, b: mode, c: sbflags */
	LS_TR_BAST,    /* a: blocked mode */
	LS_TR_SEND,    /* a: to, b: kind << 8 | type, c: result */
	LS_TR_RECEIVE, /* a: from, b, c: the same */
};

int ls_trace_init(struct ugdlm *ls);
void ls_trace_free(struct ugdlm *ls);
void ls_trace(struct ugdlm *ls, enum ls_trace_kind kind, uint32_t lkid, int a,
	      int b, int c);
void ls_trace_text(struct ugdlm *ls, const char *fmt, ...) ug_printf(2, 3);
/* For the engine. */
void ls_trace_line(void *arg, const char *line);

/* lsaddr.c */
int ls_own_addr(struct link_addr *out);
int ls_read_key(const char *path, uint8_t **key, size_t *len, char *why,
		size_t why_len);

#endif
