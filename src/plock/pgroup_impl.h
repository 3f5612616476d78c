/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * pgroup_impl.h - the inside of plock_mode=group.
 *
 *	pgroup.c	 the door: events, memory, updates
 *	pgroupfile.c	 files: table, list of the idle ones
 *	pgroupcall.c	 calls of processes here, from first to last
 *	pgroupapply.c	 operations, in the order of the group
 *	pgroupown.c	 files that one member has for itself
 *	pgroupmember.c	 members come and go
 *	pgrouptransfer.c the tables go to newcomers
 *	pgroupview.c	 counts, dumps, rules
 */
#ifndef UG_PLOCK_PGROUP_IMPL_H
#define UG_PLOCK_PGROUP_IMPL_H

#include <urcu/list.h>

#include "base/assert.h"
#include "base/compiler.h"
#include "plock/pgroup.h"

enum gcall_state {
	GCALL_PENDING,	/* in its file, until that can take it */
	GCALL_OUTGOING, /* to be sent, when the rate allows it */
	GCALL_SENT,	/* on its way */
	GCALL_WAITING,	/* for a lock */
	GCALL_GRANTED,	/* not told yet: there is no quorum */
};

/* A call of a process here that has not been answered. */
struct gcall {
	struct cds_list_head list; /* by its state; WAITING: none */
	struct gcall *id_next;
	struct gcall *wait_next;
	struct gfile *file;
	uint64_t ctx;
	uint64_t id;	  /* rising: the order in which calls came */
	uint64_t wait_id; /* names its wait in the table */
	struct plock_op op;
	uint32_t gen; /* SENT: of the file then */
	enum gcall_state state;
	bool cancelled; /* a cancel of it is on its way */
};

/* A cancel on its way. */
struct gcancel {
	struct cds_list_head list;
	uint64_t id; /* of the call */
};

/* A message that came while the tables were on their way. */
struct gsaved {
	struct cds_list_head list;
	uint64_t from;
	struct pgroup_msg msg;
};

/* A file in one of its two tables: all it has is for that table. */
struct gfile {
	struct gfile *hash_next;
	struct cds_list_head idle;     /* engine: least used first */
	struct cds_list_head runnable; /* engine: pending may go on */
	uint64_t number;
	enum plock_table kind;
	struct range_table table;
	enum pgroup_file_state state;
	uint64_t owner;		      /* OWNED: an incarnation */
	uint32_t gen;		      /* SHARED */
	struct cds_list_head pending; /* by id */
	unsigned calls;		      /* that name this file */
	unsigned in_flight;	      /* operations on their way; */
	unsigned stale;		      /* those that nobody will apply */
	uint32_t synced;	      /* GIVING: those that came back */
	bool claimed;		      /* our OWN is, or was, on its way */
	uint64_t used_ns;
};

struct gmember {
	uint64_t proc;
	uint32_t nodeid; /* 0: no START has come yet */
	uint64_t inc;
	uint32_t change; /* as it counts, of its last START */
	/*
	 * STARTs that have to come, one for each change that it has seen. Who
	 * was there before us may have some on their way that are for changes
	 * of before our time: until one comes that is for our first.
	 */
	unsigned due;
	bool counted;
	bool has_plocks; /* its last START says so */
	bool ownership;
	bool heard; /* here, that it is released, though it has not left yet */
};

enum gphase {
	GPHASE_OUT,	/* no CONFIG yet */
	GPHASE_STARTS,	/* not all have seen that we are here */
	GPHASE_FIRST,	/* nobody has tables: are those who had any released? */
	GPHASE_LOADING, /* tables are on their way, messages are kept */
	GPHASE_REPLAY,	/* those messages are done */
	GPHASE_LIVE,
	GPHASE_REFUSED, /* never */
};

/* What is told to newcomers: as it was when the change was complete. */
struct gpiece {
	uint64_t number;
	enum plock_table table;
	uint32_t owner;
	uint32_t gen;
	size_t first; /* in records */
	size_t count;
};

struct gtransfer {
	bool active;
	uint64_t *gone;
	struct gpiece *pieces;
	struct pgroup_record *records;
	size_t gone_count, piece_count;
	size_t gone_at, piece_at, record_at;
	uint32_t last_gen;
};

struct pgroup_engine {
	struct pgroup_config config;
	struct ranges *ranges;
	struct pgroup_updates *out; /* of the step under way */
	uint64_t now_ns;
	struct pgroup_counts counts;

	struct gfile **files;
	uint32_t file_mask;
	uint32_t file_count;
	struct cds_list_head idle;
	struct cds_list_head runnable;
	uint64_t drop_at_ns;

	struct gcall **calls_by_id;
	struct gcall **calls_by_wait;
	uint32_t call_mask;
	uint32_t call_count;
	uint64_t next_id;
	uint64_t next_wait;
	uint64_t arrivals; /* waits, in the order in which they came */
	struct cds_list_head outgoing;
	struct cds_list_head sent;
	struct cds_list_head cancels;
	struct cds_list_head granted;
	uint64_t rate_ns; /* up to when the rate is used up */
	bool stopped;	  /* no quorum */

	enum gphase phase;
	struct gmember members[PLOCK_NODES_MAX];
	unsigned member_count;
	uint64_t gone[PGROUP_GONE_MAX]; /* incarnations, not released yet */
	unsigned gone_count;
	bool alone;	 /* nobody else can have locks: as far as known here */
	bool begun;	 /* BEGIN is on its way */
	uint32_t change; /* ours: how many there were */
	uint32_t completed; /* of them */
	uint32_t procs_crc; /* of the last change, */
	uint32_t first_crc; /* of our first one */
	uint32_t start_ids[PLOCK_NODES_MAX];
	uint32_t last_gen; /* the same for all who have the tables */

	/* LOADING */
	uint64_t data_from;
	uint32_t data_change;
	uint32_t data_files;
	uint32_t data_records; /* done of the message under way */
	struct cds_list_head saved;
	size_t saved_count;

	struct gtransfer transfer;

	/* memory for a step */
	struct gfile *spare_file;
	struct gcall *spare_call;
	struct gcancel *spare_cancel;
	struct gsaved *spare_saved;
	struct pgroup_record *scratch;
	size_t scratch_space;
};

static inline bool glist_empty(const struct cds_list_head *list)
{
	return list->next == list;
}

/* pgroup.c */
/* One file, call, cancel, kept message; updates for all calls. -ENOMEM */
int pgroup_ready(struct pgroup_engine *engine);
/* Room for that many updates, beside what calls may need. */
int pgroup_reserve(struct pgroup_engine *engine, size_t updates);
int pgroup_scratch(struct pgroup_engine *engine, size_t records);
struct pgroup_msg *pgroup_send(struct pgroup_engine *engine,
			       enum pgroup_msg_type type);
void pgroup_answer(struct pgroup_engine *engine, uint64_t ctx, int status,
		   const struct range_lock *found);
void pgroup_refuse(struct pgroup_engine *engine);
/* A message of those that all keep in order, at one who has the tables. */
int pgroup_ordered(struct pgroup_engine *engine, uint64_t from,
		   const struct pgroup_msg *msg);
void pgroup_trace(struct pgroup_engine *engine, const char *fmt, ...)
	ug_printf(2, 3);
#define GTRACE(engine, ...)                                      \
	do {                                                     \
		if (ug_unlikely((engine)->config.trace != NULL)) \
			pgroup_trace(engine, __VA_ARGS__);       \
	} while (0)

/* pgroupfile.c */
int gfiles_init(struct pgroup_engine *engine);
void gfiles_free(struct pgroup_engine *engine);
struct gfile *gfile_find(const struct pgroup_engine *engine, uint64_t number,
			 enum plock_table kind);
/* Takes the spare one if there is none yet. */
struct gfile *gfile_open(struct pgroup_engine *engine, uint64_t number,
			 enum plock_table kind);
/* Forget it if nothing needs it. */
void gfile_put(struct pgroup_engine *engine, struct gfile *file);
void gfile_used(struct pgroup_engine *engine, struct gfile *file);
void gfile_set_state(struct pgroup_engine *engine, struct gfile *file,
		     enum pgroup_file_state state, uint64_t owner);
/* There may be something to do for it, after this step. */
void gfile_run(struct pgroup_engine *engine, struct gfile *file);
/* Each file, which may end by that. */
void gfiles_each(struct pgroup_engine *engine,
		 void (*each)(struct pgroup_engine *engine, struct gfile *file,
			      uint64_t arg),
		 uint64_t arg);
/* All locks, then all waits as they came; their number. After pgroup_scratch().
 */
size_t gfile_gather(const struct pgroup_engine *engine,
		    const struct gfile *file, struct pgroup_record *out);

/* pgroupcall.c */
int gcalls_init(struct pgroup_engine *engine);
void gcalls_free(struct pgroup_engine *engine);
int gcall_begin(struct pgroup_engine *engine, struct pgroup_event *event);
int gcall_cancel(struct pgroup_engine *engine, uint64_t id);
struct gcall *gcall_find(const struct pgroup_engine *engine, uint64_t id);
struct gcall *gcall_of_wait(const struct pgroup_engine *engine,
			    uint64_t wait_id);
/* The answer: the call is no more. */
void gcall_end(struct pgroup_engine *engine, struct gcall *call, int status,
	       const struct range_lock *found);
/* A SET is done; without quorum the answer waits. */
void gcall_granted(struct pgroup_engine *engine, struct gcall *call);
void gcall_waits(struct pgroup_engine *engine, struct gcall *call,
		 uint64_t wait_id);
/* From now on the wait of one is the wait of the other. */
void gcall_swap_waits(struct pgroup_engine *engine, struct gcall *a,
		      struct gcall *b);
/* Nobody has applied it: once more, in its place. */
void gcall_requeue(struct pgroup_engine *engine, struct gcall *call);
/* What is not sent yet of this file is to be looked at again. */
void gcalls_unsend(struct pgroup_engine *engine, struct gfile *file);
/* -ENOMEM: the rest of its calls later. */
int gcalls_run(struct pgroup_engine *engine, struct gfile *file);
void gcalls_pump(struct pgroup_engine *engine);
void gcalls_quorate(struct pgroup_engine *engine, bool quorate);
uint64_t gcalls_wake_ns(const struct pgroup_engine *engine);

/* pgroupapply.c */
int gapply_op(struct pgroup_engine *engine, uint64_t from,
	      const struct gmember *member, const struct pgroup_msg *msg);
int gapply_local(struct pgroup_engine *engine, struct gcall *call);
int gapply_record(struct pgroup_engine *engine, struct gfile *file,
		  const struct pgroup_record *record, uint64_t inc);
/* Waits that have ended. */
void gapply_done(struct pgroup_engine *engine);

/* pgroupown.c */
int gown_receive(struct pgroup_engine *engine, const struct gmember *member,
		 const struct pgroup_msg *msg);
int gown_sync(struct pgroup_engine *engine, const struct gmember *member,
	      const struct pgroup_msg *msg);
int gown_drop(struct pgroup_engine *engine, const struct pgroup_msg *msg);
void gown_claim(struct pgroup_engine *engine, struct gfile *file);
int gown_tick(struct pgroup_engine *engine);
uint64_t gown_wake_ns(const struct pgroup_engine *engine);
/* A member that is gone is released: what it had is nobody's. */
void gown_released(struct pgroup_engine *engine, struct gfile *file,
		   uint64_t inc);
bool gfile_is_ours(const struct pgroup_engine *engine,
		   const struct gfile *file);

/* pgroupmember.c */
struct gmember *gmember_find(struct pgroup_engine *engine, uint64_t proc);
int gmember_config(struct pgroup_engine *engine,
		   const struct pgroup_event *event);
int gmember_start(struct pgroup_engine *engine, struct gmember *member,
		  const struct pgroup_msg *msg);
int gmember_released(struct pgroup_engine *engine, uint64_t inc);
/* By the order of the group. */
void gmember_release(struct pgroup_engine *engine, uint64_t inc);
/* Its id in messages, also of one that is gone. */
uint32_t gmember_id(const struct pgroup_engine *engine, uint64_t inc);
/* The opposite; 0: there is none. */
uint64_t gmember_inc(const struct pgroup_engine *engine, uint32_t id);
void gmember_others(struct pgroup_engine *engine,
		    const struct pgroup_event *event);
void gmember_begin(struct pgroup_engine *engine, const struct gmember *member,
		   const struct pgroup_msg *msg);
void gmember_live(struct pgroup_engine *engine);

/* pgrouptransfer.c */
/* Remember all as it is now. -ENOMEM */
int gtransfer_prepare(struct pgroup_engine *engine);
void gtransfer_abort(struct pgroup_engine *engine);
/* Some more of it, into the updates. */
void gtransfer_send(struct pgroup_engine *engine);
int gtransfer_receive(struct pgroup_engine *engine,
		      const struct pgroup_msg *msg);
/* Keep a message for later. -ENOBUFS */
int gtransfer_save(struct pgroup_engine *engine, uint64_t from,
		   const struct pgroup_msg *msg);
/* What was kept, up to the end: then we are live. -ENOMEM */
int gtransfer_replay(struct pgroup_engine *engine);
void gtransfer_forget(struct pgroup_engine *engine);
#endif
