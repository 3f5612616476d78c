/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * pgroup.h - application locks the historic way: plock_mode=group.
 *
 * Every operation is an ordered message to the group of a volume's members, and
 * each of them applies all of these, in their order, to its own tables. With
 * ownership a file that one member uses costs no message. One struct
 * pgroup_engine is one member's part. Events go in through pgroup_step(),
 * updates come out. Pure: no I/O, clock, threads or globals. Calls on one
 * engine are serialised by the caller.
 *
 * What the edge owes the engine:
 *  - PGROUP_EV_CONFIG and PGROUP_EV_MESSAGE in the order of delivery, which is
 *    the same for all; own messages included; the first CONFIG is the one that
 *    this member came with;
 *  - every PGROUP_UP_SEND is multicast, in order;
 *  - PGROUP_EV_RELEASED for each member that is gone, when its host cannot
 *    write any more and its journal is replayed; also for those of before our
 *    time that had not been released when we came;
 *  - PGROUP_EV_OTHERS after each CONFIG, when a message that this member has
 *    sent to the cluster's group since then has come back; and with each change
 *    of what it tells;
 *  - PGROUP_EV_TICK at pgroup_wake_ns(), and at once while updates say "more".
 *
 * Ownership: an event and what it points to stay the caller's; updates belong
 * to the caller, who empties them.
 * Source: docs/spec/plocks.md 12.
 */
#ifndef UG_PLOCK_PGROUP_H
#define UG_PLOCK_PGROUP_H

#include "plock/plock.h"

/* Messages; the values are those of the wire. */
enum pgroup_msg_type {
	PGROUP_START = 2,	/* I have seen this change of members */
	PGROUP_OP = 3,		/* of a process of the sender */
	PGROUP_OWN = 4,		/* the file is mine; or nobody's any more */
	PGROUP_DROP = 5,	/* forget a file that nobody owns or locks */
	PGROUP_SYNC_LOCK = 6,	/* a lock that was private so far */
	PGROUP_SYNC_WAITER = 7, /* the same of one that waits */
	PGROUP_DONE = 8,	/* to a newcomer: those were all files */
	PGROUP_DATA = 9,	/* to a newcomer: a file */
	/* Not of the historic set: */
	PGROUP_GONE = 64,    /* to a newcomer: gone, not released yet */
	PGROUP_RELEASE = 65, /* one that is gone is released */
	PGROUP_BEGIN = 66,   /* nobody has tables: let them be empty */
};

/* START */
#define PGROUP_JOINING 1u     /* the sender has completed no change yet */
#define PGROUP_HAVE_PLOCKS 2u /* it has the tables */
#define PGROUP_OWNERSHIP 16u  /* its setting of plock_ownership */

/* Locks, waits of one DATA: what fits into 1,024 bytes. */
#define PGROUP_RECORDS 24u

/* In a record or as owner: this bit, and the number that a GONE has given. */
#define PGROUP_GONE_BIT 0x80000000u

/* A lock or a wait of one file. */
struct pgroup_record {
	uint64_t start;
	uint64_t end;
	uint64_t owner;
	uint32_t pid;
	uint32_t nodeid;
	enum range_mode mode;
	enum range_kind kind;
	bool waiter;
	uint64_t came; /* in this order, at one member: not sent */
};

/* What of it means something, the type says. */
struct pgroup_msg {
	enum pgroup_msg_type type;
	uint32_t nodeid; /* the sender's */
	uint32_t to;	 /* 0: all */
	uint32_t flags;	 /* START */
	uint32_t change; /* START, GONE, DATA, DONE: as its sender counts */
	/*
	 * START: checksum of the processes of the change. OP: gen of the file.
	 * DONE: how many files. GONE: the number that stands for it.
	 */
	uint32_t word;
	/* START, GONE, RELEASE: an incarnation. DONE: the last gen */
	uint64_t inc;
	struct {
		uint32_t started; /* changes that the sender has completed */
		uint32_t joined, removed, failed;
		uint32_t count; /* of members */
		const uint32_t *ids;
	} start;
	uint64_t number;	/* of the file */
	enum plock_table table; /* OWN, DROP, DATA */
	struct plock_op op;	/* OP, SYNC_*; never fair */
	bool cancel;		/* OP: take back the wait that is like op */
	/* OWN: who has it from now on, 0: nobody. DATA: 0 or who has it */
	uint32_t owner;
	uint32_t gen; /* DATA */
	bool more;    /* DATA: of this file */
	uint32_t count;
	const struct pgroup_record *records; /* DATA */
};

/* Where a decoder puts what a message points to. */
struct pgroup_parts {
	uint32_t ids[PLOCK_NODES_MAX];
	struct pgroup_record records[PGROUP_RECORDS];
};

enum pgroup_update_kind {
	PGROUP_UP_SEND,	   /* multicast it */
	PGROUP_UP_ANSWER,  /* to a call, once */
	PGROUP_UP_REFUSED, /* the others' plock_ownership differs: leave */
};

/* What a message points to is the engine's, valid until its next step. */
struct pgroup_update {
	enum pgroup_update_kind kind;
	union {
		struct pgroup_msg msg;
		struct plock_result answer;
	};
};

/* Zero-initialised by the caller, who sets count to 0 when all is done. */
struct pgroup_updates {
	struct pgroup_update *list;
	size_t count;
	size_t space;
	bool more; /* that was not all: give PGROUP_EV_TICK soon */
};

void pgroup_updates_free(struct pgroup_updates *out);

enum pgroup_event_kind {
	PGROUP_EV_CALL,
	PGROUP_EV_CANCEL, /* the caller of a SET that waits was interrupted */
	PGROUP_EV_CONFIG, /* the processes of the group */
	PGROUP_EV_MESSAGE,
	PGROUP_EV_OTHERS,   /* who may have locks that are not known here */
	PGROUP_EV_RELEASED, /* one is gone, fenced, its journal replayed */
	PGROUP_EV_QUORUM,   /* lost, or back */
	PGROUP_EV_TUNE,
	PGROUP_EV_TICK,
};

/* A process of the group, as its messages are known to come from. */
static inline uint64_t pgroup_proc(uint32_t node, uint32_t pid)
{
	return (uint64_t)node << 32 | pid;
}

struct pgroup_event {
	enum pgroup_event_kind kind;
	uint64_t now_ns; /* monotonic */
	union {
		struct {
			uint64_t number;    /* of the file */
			struct plock_op op; /* never fair */
			uint64_t ctx;
			uint64_t id; /* out: names the call for CANCEL */
		} call;
		struct {
			uint64_t id;
		} cancel;
		struct {
			const uint64_t *procs; /* with this one */
			unsigned count;
			unsigned failed; /* of those that are gone since */
		} config;
		struct {
			uint64_t from; /* a process */
			const struct pgroup_msg *msg;
		} message;
		/* All members of the volume, and who is gone, not released */
		struct {
			const uint64_t *procs;
			unsigned count;
		} others;
		struct {
			uint64_t inc;
		} released;
		struct {
			bool quorate;
		} quorum;
		struct plock_tuning tune;
	};
};

struct pgroup_config {
	uint64_t proc;		  /* of this member, */
	uint32_t nodeid;	  /* its id, 1 to 2^31-1, */
	uint64_t inc;		  /* and its incarnation, not 0 */
	bool ownership;		  /* plock_ownership: all must agree */
	struct plock_tuning tune; /* 0: 10 files every 10 s, idle for 10 s */
	/* One line without newline per decision; NULL = none. */
	void (*trace)(void *arg, const char *line);
	void *trace_arg;
};

struct pgroup_engine;

/* -EINVAL, -ENOMEM. Calls wait until this member has the tables. */
int pgroup_engine_new(const struct pgroup_config *config,
		      struct pgroup_engine **out);
void pgroup_engine_free(struct pgroup_engine *engine);

/*
 * Take one event; updates are appended to out. 0; -ENOMEM: nothing has changed
 * that giving the event again would not mend, and nothing else may be given
 * before. -EINVAL: no legal range; a rate beyond PLOCK_RATE_MAX; CONFIG
 * without us, or with too many. -ENOENT: CANCEL: it has been answered.
 * -EBADMSG: MESSAGE: no member says that; all others ignore it as well.
 * -EAGAIN: RELEASED before the first CONFIG: give it again. -ENOBUFS: so much
 * has happened while the tables were on their way that this member must leave.
 *
 * Answers have the status 0, -EAGAIN, -EINTR. GET: 0, and found as in plock.h.
 */
int pgroup_step(struct pgroup_engine *engine, struct pgroup_event *event,
		struct pgroup_updates *out);

/* When PGROUP_EV_TICK is due at the latest; UINT64_MAX = never. */
uint64_t pgroup_wake_ns(const struct pgroup_engine *engine);

/* Looking inside */

enum pgroup_file_state {
	PGROUP_UNKNOWN, /* nobody has locks; calls here want it */
	PGROUP_OWNED,	/* one member has it for itself */
	PGROUP_GIVING,	/* we had; what we have is on its way to all */
	PGROUP_SHARED,	/* all members have all of it */
};

struct pgroup_file_info {
	uint64_t number;
	enum plock_table table;
	enum pgroup_file_state state;
	uint64_t owner;	 /* OWNED: an incarnation */
	uint32_t gen;	 /* SHARED */
	uint32_t synced; /* GIVING: records that all have seen */
	unsigned calls;	 /* of processes here, without an answer */
};

struct pgroup_counts {
	uint64_t calls, ops_sent, messages, delays, syncs, drops;
	uint32_t files, pending;
	struct range_counts ranges;
};

void pgroup_count(const struct pgroup_engine *engine,
		  struct pgroup_counts *out);

/*
 * Each file; then its locks in order of start; then its waits, req.now_ns of
 * which says in which order they came. Each function may be NULL.
 */
void pgroup_visit(const struct pgroup_engine *engine,
		  void (*file)(void *arg, const struct pgroup_file_info *info),
		  void (*lock)(void *arg, const struct pgroup_file_info *info,
			       const struct range_lock *lock),
		  void (*wait)(void *arg, const struct pgroup_file_info *info,
			       const struct range_wait *wait),
		  void *arg);

/* It has the tables. */
bool pgroup_is_live(const struct pgroup_engine *engine);

void pgroup_check(const struct pgroup_engine *engine);

#endif
