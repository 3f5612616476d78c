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

#endif
