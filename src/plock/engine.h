/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * engine.h - the inside of the service between members.
 *
 *	engine.c    the door: events, memory, messages to ourselves
 *	file.c	    files: table, list of the idle ones
 *	client.c    calls of processes here, from first to last
 *	serve.c	    the one that decides for a file
 *	home.c	    who that is
 *	move.c	    it goes where the calls come from
 *	lend.c	    read locks that others grant
 *	epoch.c	    members come and go
 *	probe.c	    deadlocks across members
 *	rate.c	    how many calls may leave
 *	parked.c    messages that wait
 */
#ifndef UG_PLOCK_ENGINE_H
#define UG_PLOCK_ENGINE_H

#include <urcu/list.h>

#include "base/assert.h"
#include "base/compiler.h"
#include "plock/plock.h"

/* A call of a process here that has not ended. */
struct call {
	struct cds_list_head list;    /* in its file: calls or held */
	struct cds_list_head waiting; /* engine: waiting or probed */
	struct call *id_next;
	struct call *owner_next;
	struct file *file;
	uint64_t ctx;
	uint64_t id;
	struct plock_op op;
	uint64_t sent_to; /* 0: not sent; perhaps to ourselves */
	uint64_t sent_gen;
	uint64_t probe_ns;  /* when to look for a deadlock */
	uint64_t seen_node; /* the last probe that came by */
	uint64_t seen_id;
	uint64_t seen_try;
	bool lowered;  /* it may have been done by one that is gone */
	bool answered; /* told that it is done, though it is not yet */
	bool cancelled;
};

/* A message that waits for its file, or for its epoch. */
struct parked {
	struct cds_list_head list;
	struct plock_msg msg;
};

/* Who has sent messages that are parked. */
struct sender {
	uint64_t node;
	size_t kept; /* 0: this record is unused */
};

enum file_role {
	FILE_CLIENT,	/* tables: what processes here hold */
	FILE_SERVES,	/* tables: what anybody holds */
	FILE_MOVING,	/* TABLE is sent, TAKEN has not come */
	FILE_RELEASING, /* RELEASE is sent, FREED has not come */
	FILE_REBUILT,	/* what REGISTERs bring, before the barrier */
};

struct file {
	struct file *hash_next;
	struct cds_list_head idle;	/* engine: least used first */
	struct cds_list_head runnable;	/* engine: parked may go on */
	struct cds_list_head throttled; /* engine: wait for the rate limit */
	uint64_t number;
	struct range_table tables[PLOCK_TABLES];
	enum file_role role;
	uint64_t used_ns;

	/* client */
	uint64_t serialiser; /* 0: not known */
	uint64_t gen;
	struct cds_list_head calls; /* sent, in order of issue */
	struct cds_list_head held;  /* to be sent, after those */
	bool asking;		    /* ACQUIRE is under way */
	bool lent;		    /* read locks are granted here */
	bool paid;		    /* the next call has its token */
	uint64_t taking_from;	    /* TABLE comes in parts */

	/* serialiser */
	struct cds_list_head parked;
	unsigned parked_count;
	bool closed; /* somebody unknown may hold what we do not know of */
	bool recalling;
	uint64_t moving_to;
	uint64_t lent_to[LENT_MAX];
	unsigned lent_count;
	uint64_t recalled_ns;
	uint64_t serves_since_ns;
	uint64_t busy_node;
	uint8_t busy_count;
	uint8_t op_count;
	uint8_t own_count;
	uint8_t read_streak;

	/* home */
	uint64_t home_node; /* who serialises it; 0: nobody */
	uint64_t home_gen;
	bool home_stale; /* not claimed in this epoch yet */
};

struct plock_engine {
	struct plock_config config;
	struct ranges *ranges;
	struct plock_updates *out; /* of the step under way */
	uint64_t now_ns;
	struct plock_counts counts;

	struct file **files;
	uint32_t file_mask;
	uint32_t file_count;
	struct cds_list_head idle;
	struct cds_list_head runnable;
	struct cds_list_head throttled; /* in order of arrival */
	uint64_t rate_ns;		/* rate.c */
	uint64_t drop_ns; /* idle files are looked for not before */

	struct call **calls_by_id;
	struct call **calls_by_owner;
	uint32_t call_mask;
	uint32_t call_count;
	size_t answered_count; /* of them those that are answered */
	uint64_t next_id;
	struct cds_list_head waiting; /* SETs that may wait, in order of */
	struct cds_list_head probed;  /* probe_ns; those that have probed */

	/* messages to ourselves, one after the other, after each step */
	struct plock_msg *own;
	size_t own_first;
	size_t own_end;
	size_t own_space;

	/* memory for a step */
	struct file *spare_file;
	struct call *spare_call;
	struct parked *spare_parked;

	/* members, and those that are none yet or no more */
	struct sender senders[2 * PLOCK_NODES_MAX];

	/* members */
	uint64_t epoch; /* 0: none yet */
	uint64_t *nodes;
	unsigned node_count;
	uint64_t *gone;
	unsigned gone_count;
	uint64_t *done; /* who has said DONE for this epoch */
	unsigned done_count;
	bool done_sent;
	bool settled;	 /* all have */
	bool stopped;	 /* no quorum */
	unsigned moving; /* files with a TAKEN to come */
	uint64_t last_gen;
	struct cds_list_head future;	/* messages of epochs to come */
	bool future_due;		/* some may be of this one by now */
	struct cds_list_head questions; /* ACQUIREs before the barrier */
	/*
	 * Who was a member at any time since we last knew all serialisers of
	 * the files whose home we are; NULL: we never did.
	 */
	uint64_t *seen;
	unsigned seen_count;
};

static inline bool list_empty(const struct cds_list_head *list)
{
	return list->next == list;
}

/* engine.c */
/* One file, one call, one parked message, some updates: for all but epochs. */
int plock_reserve(struct plock_engine *engine);
int plock_reserve_updates(struct plock_engine *engine, size_t count);
struct plock_msg *plock_send(struct plock_engine *engine, uint64_t to,
			     enum plock_msg_type type, const struct file *file);
void plock_answer(struct plock_engine *engine, const struct call *call,
		  int status, const struct range_lock *found);
void plock_trace(struct plock_engine *engine, const char *fmt, ...)
	ug_printf(2, 3);
#define TRACE(engine, ...)                                       \
	do {                                                     \
		if (ug_unlikely((engine)->config.trace != NULL)) \
			plock_trace(engine, __VA_ARGS__);        \
	} while (0)
int plock_handle(struct plock_engine *engine, const struct plock_msg *msg);

/* file.c */
int files_init(struct plock_engine *engine);
void files_free(struct plock_engine *engine);
struct file *file_find(const struct plock_engine *engine, uint64_t number);
/* After plock_reserve(). */
struct file *file_open(struct plock_engine *engine, uint64_t number);
void file_used(struct plock_engine *engine, struct file *file);
void file_set_role(struct plock_engine *engine, struct file *file,
		   enum file_role role);
bool file_has_locks(const struct file *file);
/* What others than processes here hold. */
void file_drop_others(struct plock_engine *engine, struct file *file);
void files_tick(struct plock_engine *engine);
void files_each(struct plock_engine *engine,
		void (*each)(struct plock_engine *engine, struct file *file));
/* There may be something to do for it, after this step. */
void file_run(struct plock_engine *engine, struct file *file);

/* client.c */
int calls_init(struct plock_engine *engine);
void calls_free(struct plock_engine *engine);
struct call *call_find(const struct plock_engine *engine, uint64_t id);
/* The only call of this owner that has not ended, or NULL. */
struct call *call_only(const struct plock_engine *engine, uint64_t owner);
bool owner_is_stuck(void *arg, const struct range_owner *who);
int client_call(struct plock_engine *engine, struct plock_event *event);
int client_cancel(struct plock_engine *engine, uint64_t id, int status);
int client_result(struct plock_engine *engine, const struct plock_msg *msg);
void client_finish(struct plock_engine *engine, struct call *call, int status,
		   const struct range_lock *found);
void client_bounced(struct plock_engine *engine, const struct plock_msg *msg);
void client_serves(struct plock_engine *engine, const struct plock_msg *msg);
void client_doubt_calls(struct plock_engine *engine, struct file *file);
/* What was sent is to be sent again, to whom it may concern. */
void client_recall_calls(struct plock_engine *engine, struct file *file);
/* Send the next one. False: there is none, or it cannot be sent. */
bool client_send_next(struct plock_engine *engine, struct file *file);
void client_ask(struct plock_engine *engine, struct file *file);
void client_answer_unlock(struct plock_engine *engine, struct call *call);
void client_answer_unlocks(struct plock_engine *engine, struct file *file);
void client_tick(struct plock_engine *engine);

/* serve.c */
int serve_receive(struct plock_engine *engine, const struct plock_msg *msg);
int serve_cancel(struct plock_engine *engine, const struct plock_msg *msg);
void serve_start(struct plock_engine *engine, struct file *file, uint64_t gen);
/* Answer one whose wait has ended. False: there is none. */
bool serve_answer_done(struct plock_engine *engine);
void serve_bounce(struct plock_engine *engine, const struct plock_msg *msg);
bool serve_is_blocked(const struct plock_engine *engine,
		      const struct file *file);
/* Do one thing of a file that can go on. False: there is none. */
bool serve_run(struct plock_engine *engine);
void serve_forget_node(struct plock_engine *engine, struct file *file,
		       uint64_t node);
/* Calls of ours are to be sent again. */
void serve_unpark_own(struct plock_engine *engine, struct file *file);
bool serve_has_writers(const struct plock_engine *engine,
		       const struct file *file);

/* home.c */
uint64_t home_of(const struct plock_engine *engine, uint64_t number);
void home_freed(struct plock_engine *engine, const struct plock_msg *msg);
int home_acquire(struct plock_engine *engine, const struct plock_msg *msg);
void home_release(struct plock_engine *engine, const struct plock_msg *msg);
void home_moved(struct plock_engine *engine, const struct plock_msg *msg);
int home_register(struct plock_engine *engine, const struct plock_msg *msg);
void home_claim(struct plock_engine *engine, const struct file *file);
void home_settle(struct plock_engine *engine);
void home_new_epoch(struct plock_engine *engine, struct file *file);

/* move.c */
void move_consider(struct plock_engine *engine, struct file *file,
		   const struct plock_msg *msg);
int move_receive_table(struct plock_engine *engine,
		       const struct plock_msg *msg);
void move_taken(struct plock_engine *engine, const struct plock_msg *msg);
void move_abort_taking(struct plock_engine *engine, struct file *file);
/* The other end is gone: we go on. */
void move_undo(struct plock_engine *engine, struct file *file);
int records_put(struct plock_engine *engine, struct file *file,
		const struct plock_msg *msg);
/* All locks of this node, in messages; at least one if even_none. */
void records_send(struct plock_engine *engine, struct file *file,
		  uint64_t owner_node, uint64_t to, enum plock_msg_type type,
		  uint64_t gen, bool even_none);

/* lend.c */
void lend_consider(struct plock_engine *engine, struct file *file,
		   const struct plock_msg *msg);
bool lend_needs_recall(const struct file *file, const struct plock_op *op);
void lend_recall(struct plock_engine *engine, struct file *file);
void lend_lent(struct plock_engine *engine, const struct plock_msg *msg);
int lend_recalled(struct plock_engine *engine, const struct plock_msg *msg);
int lend_returned(struct plock_engine *engine, const struct plock_msg *msg);
/* Done here, without the serialiser? Then the call has ended, and is no more.
 */
bool lend_call(struct plock_engine *engine, struct file *file,
	       struct call *call);
void lend_forget(struct plock_engine *engine, struct file *file, uint64_t node);

/* epoch.c */
bool member_is(const struct plock_engine *engine, uint64_t node);
bool gone_is(const struct plock_engine *engine, uint64_t node);
int epoch_begin(struct plock_engine *engine, const struct plock_event *event);
void epoch_done(struct plock_engine *engine, const struct plock_msg *msg);
void epoch_try_done(struct plock_engine *engine);
int epoch_released(struct plock_engine *engine, uint64_t node);
/* Handle one message that has waited for its epoch. False: there is none. */
bool epoch_run(struct plock_engine *engine, int *error);

/* parked.c */
/*
 * Keep a copy at the end of the list, after plock_reserve(). -ENOBUFS: "most"
 * of its sender are kept, in whatever list.
 */
int parked_keep(struct plock_engine *engine, struct cds_list_head *list,
		const struct plock_msg *msg, size_t most);
/* Out of its list. */
void parked_free(struct plock_engine *engine, struct parked *parked);
void parked_free_all(struct plock_engine *engine, struct cds_list_head *list);

/* rate.c */
/* False: the file is run again when it may. */
bool rate_may_send(struct plock_engine *engine, struct file *file, uint64_t to);
/* It waits no more, and has nothing in advance. */
void rate_forget(struct plock_engine *engine, struct file *file);
void rate_tick(struct plock_engine *engine);
uint64_t rate_wake_ns(const struct plock_engine *engine);

/* probe.c */
void probe_start(struct plock_engine *engine, struct call *call);
void probe_receive(struct plock_engine *engine, const struct plock_msg *msg);

#endif
