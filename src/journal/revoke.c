/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * revoke.c - a set of block addresses, each with a number.
 *
 * Open addressing with linear probing, never more than half full. Removal
 * closes the gap: members that were pushed past it move back, so there are
 * no tombstones and a set that lives long does not slow down.
 *
 * Not one of the libraries' tables, as adding must not fail here: all memory
 * is had by revoke_set_reserve(), before a transaction begins.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/assert.h"
#include "journal/revoke.h"

#define REVOKE_SIZE_MIN 16u

void revoke_set_init(struct revoke_set *set)
{
	memset(set, 0, sizeof(*set));
}

void revoke_set_fini(struct revoke_set *set)
{
	free(set->rs_table);
	revoke_set_init(set);
}

/* Where probing for this address begins. */
static size_t home_of(const struct revoke_set *set, uint64_t blkno)
{
	return (size_t)((blkno * 0x9e3779b97f4a7c15u) >> 32) &
	       (set->rs_size - 1);
}

/* Its place, or the free place where it would go. */
static size_t place_of(const struct revoke_set *set, uint64_t blkno)
{
	size_t i = home_of(set, blkno);

	while (set->rs_table[i].rv_blkno && set->rs_table[i].rv_blkno != blkno)
		i = (i + 1) & (set->rs_size - 1);
	return i;
}

int revoke_set_reserve(struct revoke_set *set, size_t count)
{
	size_t size = set->rs_size ? set->rs_size : REVOKE_SIZE_MIN;
	struct revoke_set bigger;

	if (!count || count * 2 <= set->rs_size)
		return 0;
	while (size < count * 2)
		size *= 2;
	bigger.rs_table = calloc(size, sizeof(struct revoke));
	if (!bigger.rs_table)
		return -ENOMEM;
	bigger.rs_size = size;
	bigger.rs_count = set->rs_count;
	for (size_t i = 0; i < set->rs_size; i++) {
		const struct revoke *rv = &set->rs_table[i];

		if (rv->rv_blkno)
			bigger.rs_table[place_of(&bigger, rv->rv_blkno)] = *rv;
	}
	free(set->rs_table);
	*set = bigger;
	return 0;
}

bool revoke_set_put(struct revoke_set *set, uint64_t blkno, uint64_t value)
{
	struct revoke *rv;
	bool is_new;

	ug_assert(blkno != 0);
	ug_assert((set->rs_count + 1) * 2 <= set->rs_size ||
		  revoke_set_find(set, blkno));
	rv = &set->rs_table[place_of(set, blkno)];
	is_new = rv->rv_blkno == 0;
	rv->rv_blkno = blkno;
	rv->rv_value = value;
	if (is_new)
		set->rs_count++;
	return is_new;
}

const struct revoke *revoke_set_find(const struct revoke_set *set,
				     uint64_t blkno)
{
	const struct revoke *rv;

	if (!set->rs_count)
		return NULL;
	rv = &set->rs_table[place_of(set, blkno)];
	return rv->rv_blkno ? rv : NULL;
}

bool revoke_set_remove(struct revoke_set *set, uint64_t blkno)
{
	const struct revoke *rv = revoke_set_find(set, blkno);
	size_t mask = set->rs_size - 1;
	size_t gap;

	if (!rv)
		return false;
	gap = (size_t)(rv - set->rs_table);
	for (size_t i = (gap + 1) & mask; set->rs_table[i].rv_blkno;
	     i = (i + 1) & mask) {
		size_t home = home_of(set, set->rs_table[i].rv_blkno);

		/* It may move back to the gap unless that is before its home.
		 */
		if (((i - home) & mask) >= ((i - gap) & mask)) {
			set->rs_table[gap] = set->rs_table[i];
			gap = i;
		}
	}
	set->rs_table[gap].rv_blkno = 0;
	set->rs_count--;
	return true;
}

const struct revoke *revoke_set_next(const struct revoke_set *set,
				     size_t *cursor)
{
	while (*cursor < set->rs_size) {
		const struct revoke *rv = &set->rs_table[(*cursor)++];

		if (rv->rv_blkno)
			return rv;
	}
	return NULL;
}
