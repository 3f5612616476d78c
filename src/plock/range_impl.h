/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * range_impl.h - the inside of the range engine.
 *
 *	table --> tree of locks, by start; in each the highest end below it
 *	  |   --> tree of waits, by start; the same, and who came when
 *	  '-----> list of owners --> tree of its own locks, by start
 *
 * A lock is in two trees: conflicts are looked for among all, what a request
 * replaces among the owner's own. Locks of one owner in one table never touch
 * with the same mode, and never overlap.
 *
 * Whoever waits hangs on exactly one thing that is in its way: a wait that came
 * before it, or a lock. When that ends or gets weaker, what hangs on it is
 * looked at again, and nothing else: of 100,000 who wait for one byte, each
 * hangs on the one before.
 */
#ifndef UG_PLOCK_RANGE_IMPL_H
#define UG_PLOCK_RANGE_IMPL_H

#include <assert.h>

#include "base/assert.h"
#include "base/compiler.h"
#include "plock/pool.h"
#include "plock/range.h"
#include "plock/treap.h"

struct lock {
	struct treap_links by_start; /* in the table */
	struct treap_links own;	     /* in the owner */
	uint64_t start;
	uint64_t end;
	/* Of the subtree in the table: of all locks, of write locks (or 0). */
	uint64_t max_end;
	uint64_t max_write_end;
	uint32_t owner;
	uint32_t hanging : 30; /* first of the waits on it */
	uint32_t mode : 2;
};
static_assert(sizeof(struct lock) == 56, "a lock takes at most 64 bytes");
static_assert(RANGE_RECORDS_MAX < 1u << 30, "hanging is too small");

struct owner {
	struct range_owner who;
	uint64_t table;	    /* number */
	uint32_t hash_next; /* in ranges->owner_heads */
	uint32_t next;	    /* in the table */
	uint32_t prev;
	uint32_t locks; /* tree */
	uint32_t lock_count;
	uint32_t wait_count;
	uint32_t pid;
	uint8_t kind;
};

/* An owner in all tables: there is one as long as it has something. */
struct party {
	struct range_owner who;
	uint32_t hash_next; /* in ranges->party_heads */
	uint32_t tables;    /* in which it has something */
};

/* Where a wait is. */
enum wait_state {
	WAIT_LOOKED_AT, /* hangs on nothing: being tested, or in ranges->heap */
	WAIT_ON_WAIT,
	WAIT_ON_LOCK,
	WAIT_DONE, /* out of its table; in the list of ranges->done_first */
};

struct wait {
	struct treap_links by_start;
	uint64_t start;
	uint64_t end;
	uint64_t seq; /* who came first */
	uint64_t arrived_ns;
	uint64_t ctx;
	/* of the subtree */
	uint64_t max_end;
	uint64_t min_seq;
	uint64_t max_seq;
	uint64_t max_write_seq;
	struct range_table *table;
	uint32_t owner;
	uint32_t pid;
	uint32_t on;	    /* what it hangs on; heap: first child */
	uint32_t next;	    /* with it on the same; heap: sibling; done list */
	uint32_t prev;	    /* on the same */
	uint32_t hanging;   /* first of the waits on it */
	uint32_t hash_next; /* in ranges->wait_heads */
	uint32_t search;    /* the last search for a deadlock that saw it */
	uint32_t search_next;
	uint8_t mode;
	uint8_t kind;
	uint8_t state;
	bool fair;
	int status;		/* WAIT_DONE */
	struct range_owner who; /* its owner's record may be gone then */
};

/* Heads of chains; a power of two, 0 before the first. */
struct heads {
	uint32_t *first;
	uint32_t mask;
	uint32_t count;
};

struct ranges {
	struct range_config config;
	struct pool locks;
	struct pool owners;
	struct pool parties;
	struct pool waits;
	struct heads owner_heads;
	struct heads party_heads;
	struct heads wait_heads; /* by owner, in all tables */
	uint64_t next_table;
	uint64_t next_seq;
	uint32_t heap; /* waits to be looked at: the oldest on top */
	uint32_t done_first;
	uint32_t done_last;
	uint32_t searches;
};

/*
 * Locks that a request needs at most, beside those that it frees: what it asks
 * for, and a half of one that it divides.
 */
#define LOCKS_OF_A_REQUEST 2

static inline struct lock *lock_at(const struct ranges *ranges, uint32_t id)
{
	return pool_at(&ranges->locks, id);
}
static inline struct owner *owner_at(const struct ranges *ranges, uint32_t id)
{
	return pool_at(&ranges->owners, id);
}
static inline struct party *party_at(const struct ranges *ranges, uint32_t id)
{
	return pool_at(&ranges->parties, id);
}
static inline struct wait *wait_at(const struct ranges *ranges, uint32_t id)
{
	return pool_at(&ranges->waits, id);
}

static inline bool ranges_overlap(uint64_t a_start, uint64_t a_end,
				  uint64_t b_start, uint64_t b_end)
{
	return a_start <= b_end && b_start <= a_end;
}
static inline bool modes_conflict(unsigned a, unsigned b)
{
	return a == RANGE_WRITE || b == RANGE_WRITE;
}
static inline bool owner_is(const struct range_owner *a,
			    const struct range_owner *b)
{
	return a->node == b->node && a->owner == b->owner;
}

/* rangehash.c */
uint32_t heads_slot(const struct heads *heads, const struct range_owner *who,
		    uint64_t table);
int heads_make_room(struct ranges *ranges);
void heads_free(struct ranges *ranges);

/* rangeowner.c */
uint32_t owner_find(const struct ranges *ranges,
		    const struct range_table *table,
		    const struct range_owner *who);
/* After pool_ready() and heads_make_room(). */
uint32_t owner_open(struct ranges *ranges, struct range_table *table,
		    const struct range_owner *who, enum range_kind kind);
/* Forget it if it has nothing. */
void owner_put(struct ranges *ranges, struct range_table *table, uint32_t id);

/* rangelock.c: locks in their trees */
void lock_insert(struct ranges *ranges, struct range_table *table,
		 uint32_t owner, enum range_mode mode, uint64_t start,
		 uint64_t end);
/* Who hangs on it is to be looked at. */
void lock_remove(struct ranges *ranges, struct range_table *table, uint32_t id);
/* The first lock of this owner that ends at start or later, or 0. */
uint32_t lock_first_own(const struct ranges *ranges, const struct owner *owner,
			uint64_t start);
/* The first lock that conflicts with a request of this owner (0: none). */
uint32_t lock_conflict(const struct ranges *ranges,
		       const struct range_table *table, uint32_t owner,
		       enum range_mode mode, uint64_t start, uint64_t end);
/* Replace what the owner has on these bytes; RANGE_NONE: unlock. */
void lock_replace(struct ranges *ranges, struct range_table *table,
		  uint32_t owner, enum range_mode mode, uint64_t start,
		  uint64_t end);
void locks_drop(struct ranges *ranges, struct range_table *table,
		uint32_t owner);
void lock_describe(const struct ranges *ranges, uint32_t id,
		   struct range_lock *out);

/* rangewait.c: who waits, and for what */
bool wait_is_held_up(const struct ranges *ranges,
		     const struct range_table *table, uint32_t owner,
		     const struct range_request *req);
void wait_add(struct ranges *ranges, struct range_table *table, uint32_t owner,
	      const struct range_request *req);
/* Let go of what it hangs on; it stays in its table. */
void wait_unhang(struct ranges *ranges, uint32_t id);
void wait_end(struct ranges *ranges, uint32_t id, int status);
void wait_drop(struct ranges *ranges, uint32_t id);
/* Replace what the owner has, by a lock. */
void owner_take(struct ranges *ranges, struct range_table *table,
		uint32_t owner, enum range_mode mode, uint64_t start,
		uint64_t end);
/* What hangs there is to be looked at again. */
void waits_release(struct ranges *ranges, uint32_t first);
/* Look at all that is to be looked at; grant what can be. */
void waits_grant(struct ranges *ranges);
uint32_t wait_first(const struct ranges *ranges, const struct range_owner *who);
uint32_t wait_next(const struct ranges *ranges, uint32_t id);
uint32_t wait_find(const struct ranges *ranges, const struct range_table *table,
		   const struct range_owner *who, uint64_t ctx);
void wait_describe(const struct ranges *ranges, uint32_t id,
		   struct range_wait *out);

/* rangesearch.c */
bool deadlock_would_be(struct ranges *ranges, const struct range_table *table,
		       const struct range_request *req);

#endif
