/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * engine.h - the structures of the lock engine and who does what, for the
 * files of this folder only.
 *
 * Memory: a step first reserves all it may need (step_reserve), which is the
 * only thing that can fail; after that it changes state and cannot fail. So
 * -ENOMEM always means that nothing has happened.
 */
#ifndef UG_DLM_ENGINE_H
#define UG_DLM_ENGINE_H

#include <urcu/list.h>

#include "base/assert.h"
#include "base/compiler.h"
#include "base/prng.h"
#include "dlm/dlm.h"
#include "dlm/modes.h"
#include "dlm/objects.h"

/* What is asked of a member in the present step of recovery. */
enum asking {
	ASK_NOTHING,
	ASK_STATUS,
	ASK_NAMES,
};

struct member {
	int32_t nodeid;
	uint32_t weight;
	uint64_t incarnation;
	uint16_t slot;
	uint16_t told_slot;	  /* its STATUS_REPLY */
	uint32_t told_generation; /* its STATUS_REPLY */
	/* the question under way */
	enum asking asking;
	uint64_t ask_id;
	uint64_t ask_due_ns; /* when to ask (again) */
	uint64_t pause_ns;
	bool done; /* the step needs nothing more from it */
	struct dlm_name last;
};

/* A member of an earlier list that is no longer one, until recovery is done */
struct gone {
	struct cds_list_head list;
	int32_t nodeid;
	uint64_t incarnation;
	uint16_t slot;
};

/* The slot of a member that is gone, which its journal keeps in use. */
struct held_slot {
	uint64_t incarnation;
	uint16_t slot;
	bool free;
};

struct saved_msg {
	struct cds_list_head list;
	uint64_t incarnation;
	struct dlm_msg msg;
};

/* The steps of spec 5.5, in order. */
enum recovery {
	REC_STOPPED,
	REC_PING,
	REC_NODES,
	REC_NAMES,
	REC_DIR,
	REC_WAITERS,
	REC_MASTERS,
	REC_LOCKS_SEND,
	REC_LOCKS,
	REC_RESOURCES,
	REC_DONE,
	REC_DRAIN,
	REC_RESEND,
	REC_GRANT,
	REC_RUNNING,
};

/* Recovery status bits (spec 5.3) */
enum {
	RS_NODES = 0x01,
	RS_NODES_ALL = 0x02,
	RS_DIR = 0x04,
	RS_DIR_ALL = 0x08,
	RS_LOCKS = 0x10,
	RS_LOCKS_ALL = 0x20,
	RS_DONE = 0x40,
	RS_DONE_ALL = 0x80,
};

struct spare_lvb {
	struct spare_lvb *next;
};

struct dlm_engine {
	struct dlm_config config;
	struct ug_prng prng;
	uint64_t now_ns;
	struct dlm_updates *out; /* of the step under way */

	struct rsb **rsb_table;
	uint32_t rsb_mask;
	uint32_t rsb_count;
	struct lkb **lkb_table; /* id & mask: at most one lock per place */
	uint32_t lkb_mask;
	uint32_t lkb_count;
	uint32_t lkb_last_id;
	struct cds_list_head keep;
	struct cds_list_head toss;
	struct cds_list_head records;
	struct cds_list_head waiters; /* newest first (spec 3.8) */
	uint32_t in_flight;

	/* reserved, for the step under way */
	struct lkb *spare_lkb;
	struct rsb *spare_rsb; /* room for the longest name */
	struct spare_lvb *spare_lvbs;
	unsigned spare_lvb_count;

	/* membership */
	struct member *members; /* ascending node id */
	unsigned member_count;
	int32_t *node_array; /* the directory by weight (spec 2.2) */
	unsigned node_total;
	struct cds_list_head gone;

	/* recovery */
	enum recovery state;
	uint32_t status;
	uint64_t seq; /* rises with every stop and start */
	uint32_t generation;
	uint16_t our_slot;
	struct held_slot held[DLM_SLOTS_MAX];
	unsigned held_count;
	bool was_running; /* since the last DLM_UP_PREPARE */
	bool anyone_gone;
	uint64_t next_ask_id;
	struct cds_list_head todo; /* resources of this step */
	struct cds_list_head waiters_todo;
	struct lkb **copies; /* made by recovery; NULL: none */
	uint32_t copies_mask;
	uint32_t copies_count;
	struct rsb **asked; /* by rc_id - 1 */
	unsigned asked_count;
	unsigned replies_due;
	struct cds_list_head saved;
	uint32_t saved_count;
	uint32_t saved_old; /* the first so many were sent before the start */
	bool old_message;   /* the one that is handled now is of these */
};

/* updates.c: memory for a step */
int step_reserve(struct dlm_engine *engine, size_t updates);
/* What an event on this resource can cause at most (may be NULL). */
int step_reserve_rsb(struct dlm_engine *engine, const struct rsb *rsb);
struct dlm_update *update_add(struct dlm_engine *engine,
			      enum dlm_update_kind kind);
struct lvb *lvb_alloc(struct dlm_engine *engine);
void lvb_free(struct dlm_engine *engine, struct lvb *lvb);
void trace(struct dlm_engine *engine, const char *fmt, ...) ug_printf(2, 3);
#define TRACE(engine, ...)                                       \
	do {                                                     \
		if (ug_unlikely((engine)->config.trace != NULL)) \
			trace(engine, __VA_ARGS__);              \
	} while (0)

/* rsb.c */
int rsb_table_init(struct dlm_engine *engine);
struct lvb *rsb_lvb(const struct rsb *rsb);
struct rsb *rsb_find(struct dlm_engine *engine, const uint8_t *name,
		     unsigned len, uint32_t hash);
struct rsb *rsb_create(struct dlm_engine *engine, const uint8_t *name,
		       unsigned len, uint32_t hash);
void rsb_set_where(struct dlm_engine *engine, struct rsb *rsb,
		   enum rsb_where where);
void rsb_free(struct dlm_engine *engine, struct rsb *rsb);
void rsb_forget_list(struct dlm_engine *engine, struct cds_list_head *list);
void rsb_check(const struct dlm_engine *engine, const struct rsb *rsb);
void rsb_check_grants(const struct rsb *rsb);

/* lkb.c */
int lkb_table_init(struct dlm_engine *engine);
struct lkb *lkb_find(const struct dlm_engine *engine, uint32_t id);
/* -ENOMEM if there is no place for one more lock; before lkb_create(). */
int lkb_make_room(struct dlm_engine *engine);
struct lkb *lkb_create(struct dlm_engine *engine, struct rsb *rsb);
void lkb_free(struct dlm_engine *engine, struct lkb *lkb);
void lkb_set_status(struct lkb *lkb, enum dlm_lock_status status);
void lkb_park(struct lkb *lkb);
void lkb_unpark(struct lkb *lkb);
void lkb_queue_in_flight(struct lkb *lkb);
void queue_append(struct lkb_queue *queue, struct lkb *lkb);
void queue_insert(struct lkb_queue *queue, struct lkb *lkb, struct lkb *before);
void queue_remove(struct lkb_queue *queue, struct lkb *lkb);
static inline struct lkb *queue_next(const struct lkb_queue *queue,
				     const struct lkb *lkb)
{
	return lkb->next == queue->first ? NULL : lkb->next;
}
#define queue_for_each(lkb, queue) \
	for ((lkb) = (queue)->first; (lkb); (lkb) = queue_next(queue, lkb))
static inline bool lkb_is_mstcpy(const struct lkb *lkb)
{
	return lkb->flags & LKB_MSTCPY;
}
static inline bool rsb_is_master(const struct dlm_engine *engine,
				 const struct rsb *rsb)
{
	return rsb->master == engine->config.nodeid;
}
/* 0: a process here */
static inline int32_t lkb_holder(const struct lkb *lkb)
{
	return lkb_is_mstcpy(lkb) ? lkb->nodeid : 0;
}
/* The lock of a process here whose master is elsewhere. */
static inline bool lkb_is_process_copy(const struct dlm_engine *engine,
				       const struct lkb *lkb)
{
	return !lkb_is_mstcpy(lkb) && !rsb_is_master(engine, lkb->rsb);
}

/* callback.c */
void cast_queue(struct dlm_engine *engine, struct lkb *lkb, int status);
void cast_cancelled(struct dlm_engine *engine, struct lkb *lkb);
void bast_queue(struct dlm_engine *engine, struct lkb *lkb, int mode);

/* copies.c */
int copies_make_room(struct dlm_engine *engine);
void copies_add(struct dlm_engine *engine, struct lkb *lkb);
struct lkb *copies_find(const struct dlm_engine *engine, const struct rsb *rsb,
			int32_t holder, uint32_t id);
void copies_remove(struct dlm_engine *engine, struct lkb *lkb);
void copies_forget(struct dlm_engine *engine);

/* grant.c: decisions of the master, and their effects */
int master_request(struct dlm_engine *engine, struct lkb *lkb);
int master_convert(struct dlm_engine *engine, struct lkb *lkb);
int master_unlock(struct dlm_engine *engine, struct lkb *lkb);
int master_cancel(struct lkb *lkb);
void master_request_effects(struct dlm_engine *engine, struct lkb *lkb,
			    int result);
void master_convert_effects(struct dlm_engine *engine, struct lkb *lkb,
			    int result);
void grant_pass(struct dlm_engine *engine, struct rsb *rsb, bool recovery);
void grant_order_conversions(struct rsb *rsb);
bool grant_is_due(const struct rsb *rsb);

/* lvb.c */
void lvb_on_grant(struct dlm_engine *engine, struct lkb *lkb, int from);
void lvb_wrote(struct lkb *lkb);
void lvb_on_unlock(struct dlm_engine *engine, struct lkb *lkb);
void lvb_take_argument(struct dlm_engine *engine, struct lkb *lkb,
		       const uint8_t *lvb);
void lvb_take_for_conversion(struct dlm_engine *engine, struct lkb *lkb,
			     const uint8_t *lvb);
void lvb_take_message(struct dlm_engine *engine, struct lkb *lkb,
		      const struct dlm_lockmsg *m);
void lvb_on_reply(struct dlm_engine *engine, struct lkb *lkb,
		  const struct dlm_lockmsg *m, int from, int to);
void lvb_recover(struct dlm_engine *engine, struct rsb *rsb);

/* request.c, convert.c, unlock.c: calls of processes here */
int call_lock(struct dlm_engine *engine, struct dlm_lock_args *args);
int call_convert(struct dlm_engine *engine, struct dlm_lock_args *args);
int call_unlock(struct dlm_engine *engine, struct dlm_unlock_args *args);
void request_go(struct dlm_engine *engine, struct lkb *lkb);
void convert_go(struct dlm_engine *engine, struct lkb *lkb);
void unlock_writes_nothing(struct lkb *lkb);
void unlock_go(struct dlm_engine *engine, struct lkb *lkb);
void cancel_go(struct dlm_engine *engine, struct lkb *lkb);
void cancel_any(struct dlm_engine *engine, struct lkb *lkb);
void force_unlock_any(struct dlm_engine *engine, struct lkb *lkb);
int lock_args_check(const struct dlm_engine *engine,
		    const struct dlm_lock_args *args);

/* orphan.c */
int call_adopt(struct dlm_engine *engine, struct dlm_lock_args *args);
int call_close(struct dlm_engine *engine, uint32_t owner);
int call_purge(struct dlm_engine *engine, int32_t nodeid, uint32_t pid);
int orphans_release(struct dlm_engine *engine, uint32_t pid);

/* directory.c */
int32_t directory_node(const struct dlm_engine *engine, uint32_t hash);
int32_t directory_pick(const int32_t *array, unsigned total, uint32_t hash);
void directory_receive_lookup(struct dlm_engine *engine, int32_t from,
			      const struct dlm_lockmsg *m);
void directory_receive_remove(struct dlm_engine *engine, int32_t from,
			      const struct dlm_lockmsg *m);
int32_t directory_recover_lookup(struct dlm_engine *engine, int32_t from,
				 const struct dlm_name *name, uint32_t hash);
int directory_record(struct dlm_engine *engine, int32_t from,
		     const uint8_t *name, unsigned len);
void directory_fill_names(struct dlm_engine *engine, int32_t from,
			  const struct dlm_name *last, struct dlm_names *names);

/* master.c: who masters a resource; the cache of idle ones */
struct rsb *master_open(struct dlm_engine *engine, const uint8_t *name,
			unsigned len, uint32_t hash);
bool master_known(struct dlm_engine *engine, struct lkb *lkb);
void master_confirm(struct dlm_engine *engine, struct rsb *rsb, int result);
void master_release_parked(struct dlm_engine *engine, struct rsb *rsb);
void master_first_gone(struct dlm_engine *engine, struct rsb *rsb);
int master_for_request(struct dlm_engine *engine, int32_t from,
		       const uint8_t *name, unsigned len, uint32_t hash,
		       struct rsb **out);
int toss_expire(struct dlm_engine *engine);

/* message.c */
int message_receive(struct dlm_engine *engine, const struct dlm_msg *msg,
		    uint64_t incarnation);
int message_handle(struct dlm_engine *engine, const struct dlm_msg *msg);
int message_check(const struct dlm_engine *engine, const struct dlm_msg *msg);
void message_receive_request(struct dlm_engine *engine, int32_t from,
			     const struct dlm_lockmsg *m);
bool saved_next(struct dlm_engine *engine, int *error);
void saved_mark_old(struct dlm_engine *engine);
void saved_purge(struct dlm_engine *engine);
void saved_free_all(struct dlm_engine *engine);

/* reply.c: answers of a master, at the holder */
void reply_request(struct dlm_engine *engine, struct lkb *lkb, int32_t from,
		   const struct dlm_lockmsg *m);
void reply_convert(struct dlm_engine *engine, struct lkb *lkb,
		   const struct dlm_lockmsg *m);
void reply_unlock(struct dlm_engine *engine, struct lkb *lkb,
		  const struct dlm_lockmsg *m);
void reply_cancel(struct dlm_engine *engine, struct lkb *lkb,
		  const struct dlm_lockmsg *m);
void reply_lookup(struct dlm_engine *engine, struct lkb *lkb,
		  const struct dlm_lockmsg *m);
void reply_grant(struct dlm_engine *engine, struct lkb *lkb,
		 const struct dlm_lockmsg *m);

/* send.c */
void send_lkb(struct dlm_engine *engine, struct lkb *lkb, int32_t to,
	      enum dlm_msg_type type, int result);
void send_name(struct dlm_engine *engine, const struct rsb *rsb, int32_t to,
	       enum dlm_msg_type type);
void send_bast(struct dlm_engine *engine, struct lkb *lkb, int mode);
void send_stub(struct dlm_engine *engine, int32_t to, enum dlm_msg_type type,
	       uint32_t their_lkid, int32_t nodeid, int result);
void send_purge(struct dlm_engine *engine, int32_t to, uint32_t pid);
struct dlm_rcom *send_rcom(struct dlm_engine *engine, int32_t to,
			   uint64_t to_incarnation, enum dlm_rcom_type type,
			   const struct dlm_rcom *question);
void waiter_add(struct dlm_engine *engine, struct lkb *lkb,
		enum dlm_msg_type type, int32_t to);
bool waiter_reply(struct dlm_engine *engine, struct lkb *lkb,
		  enum dlm_msg_type reply, int result);
void waiter_clear(struct dlm_engine *engine, struct lkb *lkb);

/* member.c */
struct member *member_find(const struct dlm_engine *engine, int32_t nodeid);
bool member_is_gone(const struct dlm_engine *engine, int32_t nodeid);
int members_replace(struct dlm_engine *engine, const struct dlm_member *list,
		    unsigned count);
void gone_forget(struct dlm_engine *engine);

/* slots.c */
void slots_assign(struct dlm_engine *engine);
void slots_take(struct dlm_engine *engine, const struct dlm_slots *slots,
		uint32_t generation);
void slots_merge(struct dlm_engine *engine, const struct dlm_slots *slots);
void slots_list(const struct dlm_engine *engine, bool assigned,
		struct dlm_slots *out);
void slot_hold(struct dlm_engine *engine, uint16_t slot, uint64_t incarnation);
int slot_free(struct dlm_engine *engine, uint16_t slot, uint64_t incarnation);

/* recover.c: the sequence */
int recover_stop(struct dlm_engine *engine);
int recover_start(struct dlm_engine *engine, const struct dlm_member *list,
		  unsigned count);
int recover_run(struct dlm_engine *engine);
uint64_t recover_wake_ns(const struct dlm_engine *engine);
int32_t recover_lowest(const struct dlm_engine *engine);
void recover_asked(struct dlm_engine *engine, struct member *member,
		   const struct dlm_rcom *reply);

/* rcom.c */
int rcom_receive(struct dlm_engine *engine, const struct dlm_msg *msg,
		 uint64_t incarnation);
void rcom_ask(struct dlm_engine *engine, struct member *member,
	      enum asking what);
void rcom_send_lookup(struct dlm_engine *engine, const struct rsb *rsb,
		      int32_t dir, uint64_t id);
void rcom_send_lock(struct dlm_engine *engine, struct lkb *lkb);

/* rebuild.c */
void rebuild_forget_gone(struct dlm_engine *engine, int32_t nodeid);
bool rebuild_outcome_unknown(const struct lkb *lkb);
bool rebuild_mode_is_doubtful(const struct lkb *lkb);
void rebuild_doubt_masters(struct dlm_engine *engine);
void rebuild_waiter(struct dlm_engine *engine, struct lkb *lkb);
void rebuild_set_master(struct dlm_engine *engine, struct rsb *rsb,
			int32_t master);
int rebuild_take_lock(struct dlm_engine *engine, int32_t from,
		      const struct dlm_rcom_lock *in, uint32_t *remid);
void rebuild_finish(struct dlm_engine *engine, struct rsb *rsb);
void rebuild_resend(struct dlm_engine *engine, struct lkb *lkb);

#endif
