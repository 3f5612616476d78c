/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * plock.h - application locks of one volume between its members.
 *
 * One struct plock_engine is one member's part: calls of its processes, the
 * files that it serialises, the files that it is the home of. Events go in
 * through plock_step(), updates come out. Pure: no I/O, clock, threads or
 * globals. Calls on one engine are serialised by the caller.
 *
 * What the edge owes the engine:
 *  - messages of one (from, to) pair arrive once and in order, for as long as
 *    both are members, over changes of the other members as well;
 *  - PLOCK_EV_MEMBERS with the same list for the same epoch at every member,
 *    epochs rising; PLOCK_EV_RELEASED for each that is gone, at every member,
 *    after that list, when its host cannot write any more and its journal is
 *    replayed;
 *  - PLOCK_EV_TICK at plock_wake_ns(), and at once while updates say "more".
 *
 * Ownership: an event and what it points to stay the caller's; updates belong
 * to the caller, who empties them.
 * Source: docs/spec/plocks.md 5 to 9.
 */
#ifndef UG_PLOCK_PLOCK_H
#define UG_PLOCK_PLOCK_H

#include "plock/range.h"

/* The highest rate limit; beyond it there is none. */
#define PLOCK_RATE_MAX 1000000u

/* The tables of a file; the values are those of messages. */
enum plock_table {
	PLOCK_FCNTL = 0,
	PLOCK_FLOCK = 1,
};
#define PLOCK_TABLES 2

enum plock_op_kind {
	PLOCK_SET = 1,	 /* lock or unlock */
	PLOCK_GET = 2,	 /* what would be in the way? */
	PLOCK_CLOSE = 3, /* all of an owner in one table */
};

struct plock_op {
	enum plock_op_kind kind;
	enum plock_table table;
	enum range_kind owner_kind;
	enum range_mode mode; /* SET: RANGE_NONE unlocks */
	bool wait;
	bool fair;
	uint64_t owner;
	uint64_t start;
	uint64_t end;
	uint32_t pid;
};

/* Messages */
enum plock_msg_type {
	PLOCK_MSG_ACQUIRE = 1,	 /* to the home: who serialises this file? */
	PLOCK_MSG_SERVES = 2,	 /* node does, by this gen; perhaps you */
	PLOCK_MSG_RELEASE = 3,	 /* to the home: I would forget this file */
	PLOCK_MSG_FREED = 4,	 /* do so (status 0), or not (-ESTALE) */
	PLOCK_MSG_MOVED = 5,	 /* to the home: node does from now on */
	PLOCK_MSG_OP = 6,	 /* to the serialiser */
	PLOCK_MSG_CANCEL = 7,	 /* take back one that waits: status */
	PLOCK_MSG_RESULT = 8,	 /* the one answer to an OP */
	PLOCK_MSG_BOUNCE = 9,	 /* not here; node does, if not 0 */
	PLOCK_MSG_TABLE = 10,	 /* be the serialiser: my own locks */
	PLOCK_MSG_TAKEN = 11,	 /* status 0: I am; else I am not */
	PLOCK_MSG_LEND = 12,	 /* grant read locks yourself */
	PLOCK_MSG_RECALL = 13,	 /* no more */
	PLOCK_MSG_RETURN = 14,	 /* these I have */
	PLOCK_MSG_CLAIM = 15,	 /* to the home: I serialise this file */
	PLOCK_MSG_REGISTER = 16, /* to the home: I hold these; who is gone? */
	PLOCK_MSG_DONE = 17,	 /* that was all for this epoch */
	PLOCK_MSG_PROBE = 18,	 /* does this wait come back to itself? */
};
#define PLOCK_MSG_LAST PLOCK_MSG_PROBE

/*
 * RESULT of an unlock: it will be done, its caller may go on; the real RESULT
 * comes later, in the order of the calls.
 */
#define PLOCK_LATER 1

/* A lock of the sender, or of the one the message is about. */
struct plock_record {
	enum plock_table table;
	enum range_kind kind;
	enum range_mode mode;
	uint32_t pid;
	uint64_t owner;
	uint64_t start;
	uint64_t end;
};

/* One wait on the way of a probe. */
struct plock_hop {
	struct range_owner who;
	uint64_t id;	 /* of the call */
	uint64_t number; /* of the file */
	enum plock_table table;
};

/* What of it means something, the type says: spec 6. */
struct plock_msg {
	enum plock_msg_type type;
	uint64_t from; /* incarnations */
	uint64_t to;
	uint64_t epoch;
	uint64_t number; /* of the file */
	uint64_t gen;
	uint64_t id; /* of a call of the client */
	uint64_t node;
	uint64_t node_gen; /* BOUNCE: by which node serves */
	int32_t status;
	struct plock_op op;	   /* OP, CANCEL: table, owner */
	struct plock_record found; /* RESULT of a GET: the lock, node its */
	bool first;		   /* RETURN */
	bool last;		   /* TABLE, RETURN */
	uint8_t count;		   /* of records, or of hops */
	uint8_t at;		   /* PROBE: of which hop we speak */
	bool confirm;		   /* PROBE: the second time around */
	union {
		struct plock_record records[PLOCK_RECORDS];
		struct plock_hop hops[PLOCK_HOPS];
	};
};

enum plock_update_kind {
	PLOCK_UP_SEND,
	PLOCK_UP_ANSWER,
};

/*
 * The answer to a call, once. status: 0, -EAGAIN, -EDEADLK, -EINTR, -ENOLCK.
 * GET: 0, and found.mode is RANGE_NONE if nothing is in the way; else the lock,
 * and whose it is. A pid of another node means nothing here.
 */
struct plock_result {
	uint64_t ctx;
	int status;
	struct range_lock found;
};

struct plock_update {
	enum plock_update_kind kind;
	union {
		struct plock_msg msg;
		struct plock_result answer;
	};
};

/* Zero-initialised by the caller, who sets count to 0 when all is done. */
struct plock_updates {
	struct plock_update *list;
	size_t count;
	size_t space;
	bool more; /* there was no memory for all: give PLOCK_EV_TICK soon */
};

void plock_updates_free(struct plock_updates *out);

enum plock_event_kind {
	PLOCK_EV_CALL,
	PLOCK_EV_CANCEL, /* the caller of a SET that waits was interrupted */
	PLOCK_EV_MESSAGE,
	PLOCK_EV_MEMBERS,
	PLOCK_EV_RELEASED, /* whoever is gone is fenced, its journal replayed */
	PLOCK_EV_QUORUM,   /* lost, or back */
	PLOCK_EV_TICK,
};

struct plock_event {
	enum plock_event_kind kind;
	uint64_t now_ns; /* monotonic */
	union {
		struct {
			uint64_t number;    /* of the file */
			struct plock_op op; /* fair is set by the engine */
			uint64_t ctx;
			uint64_t id; /* out: names the call for CANCEL */
		} call;
		struct {
			uint64_t id;
		} cancel;
		const struct plock_msg *msg;
		struct {
			uint64_t epoch;
			const uint64_t *nodes; /* with this one */
			unsigned count;
			/* gone, but not released yet; also before our time */
			const uint64_t *gone;
			unsigned gone_count;
		} members;
		struct {
			uint64_t node;
		} released;
		struct {
			bool quorate;
		} quorum;
	};
};

/* What an administrator can ask for: spec 5.7. */
struct plock_tuning {
	uint64_t idle_ns; /* a file unused for so long is forgotten; 0: 10 s */
	/* Such files are looked for so often; 0: when there may be one */
	uint64_t drop_every_ns;
	uint32_t drop_count; /* so many each time; 0: PLOCK_IDLE_BATCH */
	uint32_t rate_limit; /* calls a second that leave us; 0: all */
	/*
	 * Files stay with their homes: no moves, no loans from now on. All
	 * members should say the same.
	 */
	bool at_home;
};

struct plock_config {
	uint64_t node; /* incarnation of this member, not 0 */
	struct plock_tuning tuning;
	uint64_t stay_ns;  /* a file moves not before; 0: 10 ms */
	uint64_t probe_ns; /* who waits so long looks for a deadlock; 0: 1 s */
	size_t kept_max;   /* messages kept of one member; 0: PLOCK_KEPT_MAX */
	/* One line without newline per decision; NULL = none. */
	void (*trace)(void *arg, const char *line);
	void *trace_arg;
};

struct plock_engine;

/* -EINVAL, -ENOMEM. Calls wait until PLOCK_EV_MEMBERS. */
int plock_engine_new(const struct plock_config *config,
		     struct plock_engine **out);
void plock_engine_free(struct plock_engine *engine);

/*
 * From now on; give PLOCK_EV_TICK then, for what has waited for it. -EINVAL:
 * more than PLOCK_RATE_MAX.
 */
int plock_tune(struct plock_engine *engine, const struct plock_tuning *tuning);

/*
 * Take one event; updates are appended to out. 0; -ENOMEM: nothing has changed
 * that giving the event again would not mend. -EINVAL: no such call, no legal
 * range; MEMBERS without us, or of an old epoch. -ENOENT: CANCEL: it has been
 * answered. -EBADMSG: no member says that, or so much. -EAGAIN: MESSAGE of an
 * epoch to come, and enough of its sender is kept: give it again after the next
 * MEMBERS, and nothing of that sender before it.
 */
int plock_step(struct plock_engine *engine, struct plock_event *event,
	       struct plock_updates *out);

/* When PLOCK_EV_TICK is due at the latest; UINT64_MAX = never. */
uint64_t plock_wake_ns(const struct plock_engine *engine);

/* This owner of ours holds something, or has a call that has not ended. */
bool plock_knows(const struct plock_engine *engine, uint64_t owner);

/* Looking inside */

struct plock_file_info {
	uint64_t number;
	bool serves;	     /* its serialiser is here */
	bool closed;	     /* until all that are gone are released */
	uint64_t serialiser; /* as far as known here; 0: not */
	uint64_t gen;
	uint64_t home;
	bool lent; /* read locks are granted here */
	unsigned calls;
	unsigned parked;
};

struct plock_counts {
	uint64_t calls, messages, moves, lends, recalls, bounces, deadlocks;
	uint64_t delayed; /* times a file had to wait for the rate limit */
	uint32_t files, pending;
	uint32_t throttled; /* files that wait for it now */
	struct range_counts ranges;
};

void plock_count(const struct plock_engine *engine, struct plock_counts *out);

/* Each file; then what is known of its locks here. Both may be NULL. */
void plock_visit(const struct plock_engine *engine,
		 void (*file)(void *arg, const struct plock_file_info *info),
		 void (*lock)(void *arg, const struct plock_file_info *info,
			      enum plock_table table,
			      const struct range_lock *lock),
		 void (*wait)(void *arg, const struct plock_file_info *info,
			      enum plock_table table,
			      const struct range_wait *wait),
		 void *arg);

/* All members have registered what they had. */
bool plock_is_settled(const struct plock_engine *engine);

void plock_check(const struct plock_engine *engine);

#endif
