/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * range.h - byte-range locks of files: who holds what, who waits for whom.
 *
 * One struct ranges is the memory of one node; a struct range_table is one kind
 * of lock of one file, embedded by the caller. A file has two tables that know
 * nothing of each other: fcntl (POSIX and OFD owners, which do conflict) and
 * flock. Pure: no I/O, clock, threads or globals. Calls on one struct ranges
 * are serialised by the caller.
 *
 * Requests that waited and have ended are handed out by range_next_done(), once
 * each; it is to be called until it says that there is none.
 * Ownership: arguments stay the caller's; results are copied out.
 * Source: docs/spec/plocks.md 1, 2.
 */
#ifndef UG_PLOCK_RANGE_H
#define UG_PLOCK_RANGE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "plock/limits.h"

/* The last byte that a lock can have: "to the end of the file, and beyond". */
#define RANGE_END 0x7fffffffffffffffull

enum range_mode {
	RANGE_NONE = 0, /* asked for: unlock */
	RANGE_READ = 1,
	RANGE_WRITE = 2,
};

enum range_kind {
	RANGE_POSIX = 0, /* a process; the only kind with EDEADLK */
	RANGE_OFD = 1,	 /* an open file description */
	RANGE_FLOCK = 2, /* the same, whole files, in tables of their own */
};

/* Whose locks these are. Of one owner there are never two kinds. */
struct range_owner {
	uint64_t node; /* an incarnation of a member */
	uint64_t owner;
};

/* The conflict test knows owners and nothing else: no pid, no thread. */
struct range_request {
	struct range_owner who;
	enum range_kind kind;
	enum range_mode mode;
	uint64_t start;
	uint64_t end; /* inclusive, at most RANGE_END */
	uint32_t pid; /* told by range_get() */
	bool wait;
	/*
	 * Do not pass others that wait: to be set if who is known to hold no
	 * lock in any file. One who holds some might be waited for by those.
	 */
	bool fair;
	uint64_t now_ns;
	uint64_t ctx; /* names the request when it waits */
};

struct range_lock {
	struct range_owner who;
	enum range_mode mode;
	enum range_kind kind;
	uint64_t start;
	uint64_t end;
	uint32_t pid;
};

struct range_table {
	uint64_t number; /* of the table, in its struct ranges */
	uint32_t locks;	 /* tree */
	uint32_t waits;	 /* tree */
	uint32_t owners; /* list */
	uint32_t lock_count;
	uint32_t wait_count;
};

struct range_config {
	/*
	 * This owner has no other way to go on than its one wait here: it does
	 * not wait, and does not run, elsewhere. NULL: nobody has.
	 */
	bool (*one_wait)(void *arg, const struct range_owner *who);
	void *arg;
};

struct ranges;

/* -ENOMEM */
int ranges_new(const struct range_config *config, struct ranges **out);
/* Tables need not be empty. */
void ranges_free(struct ranges *ranges);

void range_table_init(struct ranges *ranges, struct range_table *table);
/* Forget all locks; whoever waits is forgotten as well, unanswered. */
void range_table_clear(struct ranges *ranges, struct range_table *table);

/*
 * Lock or unlock. What the owner had on these bytes is replaced.
 *
 * 0: done; an unlock of what is not locked is. -EAGAIN: another owner has a
 * lock in the way, and it does not want to wait. -EINPROGRESS: it waits; its
 * end comes by range_next_done(). -EDEADLK: waiting would never end.
 * -EINVAL: start is beyond end, or end beyond RANGE_END. -ENOMEM, -ENOLCK: no
 * room. On every error nothing has changed, except that an flock which is not
 * granted at once is given back first: waiting with it would make two that
 * convert wait for each other (docs/spec/plocks.md 1.7).
 */
int range_set(struct ranges *ranges, struct range_table *table,
	      const struct range_request *req);

/*
 * What stands in the way of this request: 1, and *out is the one with the
 * lowest start; 0: nothing does. who, mode, start and end are read.
 */
int range_get(const struct ranges *ranges, const struct range_table *table,
	      const struct range_request *req, struct range_lock *out);

/*
 * Put a lock without a test, as another table had it. -EINVAL, -ENOMEM,
 * -ENOLCK.
 */
int range_put(struct ranges *ranges, struct range_table *table,
	      const struct range_lock *lock);

/* The next n requests find memory, if nothing waits. -ENOMEM, -ENOLCK */
int ranges_reserve(struct ranges *ranges, uint32_t n);

/*
 * Make read locks of the owner's write locks in this range. There must be
 * memory. False: there are none.
 */
bool range_lower(struct ranges *ranges, struct range_table *table,
		 const struct range_owner *who, uint64_t start, uint64_t end);

/* The owner's last close: its locks go, its waits end with -EINTR. */
void range_close(struct ranges *ranges, struct range_table *table,
		 const struct range_owner *who);

/*
 * Take back a request that waits. 0: it is gone, the caller answers it.
 * -ENOENT: it does not wait (any more).
 */
int range_cancel(struct ranges *ranges, struct range_table *table,
		 const struct range_owner *who, uint64_t ctx);

/* A member is gone. Its requests are dropped, unanswered; and its locks. */
void range_drop_waits(struct ranges *ranges, struct range_table *table,
		      uint64_t node);
void range_drop_node(struct ranges *ranges, struct range_table *table,
		     uint64_t node);

/* The opposite: all others', requests and locks. */
void range_keep_node(struct ranges *ranges, struct range_table *table,
		     uint64_t node);

struct range_done {
	struct range_owner who;
	uint64_t ctx;
	uint64_t number; /* of the table */
	int status;	 /* 0: granted; -EINTR: closed */
};

bool range_next_done(struct ranges *ranges, struct range_done *out);
bool range_has_done(const struct ranges *ranges);

/* What the owner holds in this table. */
bool range_holds(const struct ranges *ranges, const struct range_table *table,
		 const struct range_owner *who);
/* It holds something, or waits, in any table. */
bool range_knows(const struct ranges *ranges, const struct range_owner *who);
/* Its requests that wait, in all tables. */
unsigned range_waits(const struct ranges *ranges,
		     const struct range_owner *who);

/* A request that waits, and what it waits for. */
struct range_wait {
	struct range_request req;
	bool behind; /* only others that wait are in its way */
};

/* False: it does not wait. */
bool range_wait_find(const struct ranges *ranges,
		     const struct range_table *table,
		     const struct range_owner *who, uint64_t ctx,
		     struct range_wait *out);

/*
 * Call for each lock that is in the way of this request, in order of start,
 * until it returns false.
 */
void range_blockers(const struct ranges *ranges,
		    const struct range_table *table,
		    const struct range_request *req,
		    bool (*each)(void *arg, const struct range_lock *lock),
		    void *arg);

/* All locks in order of start, then all waits in order of start. */
void range_visit(const struct ranges *ranges, const struct range_table *table,
		 void (*lock)(void *arg, const struct range_lock *lock),
		 void (*wait)(void *arg, const struct range_wait *wait),
		 void *arg);

struct range_counts {
	uint32_t locks, waits, owners; /* in all tables */
	uint64_t bytes;		       /* of memory, free records included */
};

void ranges_count(const struct ranges *ranges, struct range_counts *out);

/* Assert every rule of this table. */
void range_check(const struct ranges *ranges, const struct range_table *table);

#endif
