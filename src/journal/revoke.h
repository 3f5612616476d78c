/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * revoke.h - a set of block addresses, each with a number.
 *
 * The journal collects the revokes of a batch in it; replay notes where in the
 * log each revoke stood. Pure. Not safe for concurrent use. Address 0 cannot
 * be a member: no block of a volume that is ever freed has it.
 */
#ifndef UG_JOURNAL_REVOKE_H
#define UG_JOURNAL_REVOKE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct revoke {
	uint64_t rv_blkno; /* 0: the place is free */
	uint64_t rv_value;
};

struct revoke_set {
	struct revoke *rs_table; /* owned; NULL as long as it is empty */
	size_t rs_size;		 /* places: 0 or a power of two */
	size_t rs_count;	 /* members */
};

void revoke_set_init(struct revoke_set *set);
void revoke_set_fini(struct revoke_set *set);

/* Make room for this many members in all: 0 or -ENOMEM, set unchanged. */
int revoke_set_reserve(struct revoke_set *set, size_t count);

/*
 * Add a member, or give it another value. There must be room. Returns true if
 * it is new.
 */
bool revoke_set_put(struct revoke_set *set, uint64_t blkno, uint64_t value);

/* NULL if it is not a member. Valid until the set changes. */
const struct revoke *revoke_set_find(const struct revoke_set *set,
				     uint64_t blkno);

/* Returns true if it was a member. */
bool revoke_set_remove(struct revoke_set *set, uint64_t blkno);

/*
 * Walk over all members, in no particular order: *cursor begins as 0. NULL
 * at the end. The set must not change meanwhile.
 */
const struct revoke *revoke_set_next(const struct revoke_set *set,
				     size_t *cursor);

#endif
