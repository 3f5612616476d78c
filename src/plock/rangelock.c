/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * rangelock.c - locks in their trees, and what a request makes of those that
 * its owner has already.
 *
 * Locks do not change while they are in a tree: a request takes out all that it
 * touches and puts back what is left of the first and of the last.
 *
 *	has	rrrrrr	  wwww	 rrrr
 *	asks	   [--- read ---]		the same mode: it grows over
 *	then	rrrrrrrrrrrrrrrrrrrrr		the border, and swallows it
 */
#include "plock/range_impl.h"

static struct treap_links *table_links(const void *arg, uint32_t id)
{
	return &lock_at(arg, id)->by_start;
}

static bool table_before(const void *arg, uint32_t a, uint32_t b)
{
	uint64_t a_start = lock_at(arg, a)->start;
	uint64_t b_start = lock_at(arg, b)->start;

	return a_start != b_start ? a_start < b_start : a < b;
}

static void table_take_child(const struct ranges *ranges, struct lock *lock,
			     uint32_t child)
{
	const struct lock *below;

	if (!child)
		return;
	below = lock_at(ranges, child);
	lock->max_end = UG_MAX(lock->max_end, below->max_end);
	lock->max_write_end = UG_MAX(lock->max_write_end, below->max_write_end);
}

static void table_update(const void *arg, uint32_t id)
{
	struct lock *lock = lock_at(arg, id);

	lock->max_end = lock->end;
	lock->max_write_end = lock->mode == RANGE_WRITE ? lock->end : 0;
	table_take_child(arg, lock, lock->by_start.left);
	table_take_child(arg, lock, lock->by_start.right);
}

static const struct treap_ops in_table = {
	.links = table_links,
	.before = table_before,
	.update = table_update,
};

static struct treap_links *own_links(const void *arg, uint32_t id)
{
	return &lock_at(arg, id)->own;
}

static void own_update(const void *arg, uint32_t id)
{
	(void)arg;
	(void)id;
}

static const struct treap_ops in_owner = {
	.links = own_links,
	.before = table_before,
	.update = own_update,
};

void lock_insert(struct ranges *ranges, struct range_table *table,
		 uint32_t owner_id, enum range_mode mode, uint64_t start,
		 uint64_t end)
{
	struct owner *owner = owner_at(ranges, owner_id);
	uint32_t id = pool_take(&ranges->locks);

	*lock_at(ranges, id) = (struct lock){ .start = start,
					      .end = end,
					      .mode = (unsigned)mode & 3,
					      .owner = owner_id };
	table->locks = treap_insert(&in_table, ranges, table->locks, id);
	table->lock_count++;
	owner->locks = treap_insert(&in_owner, ranges, owner->locks, id);
	owner->lock_count++;
}

void lock_remove(struct ranges *ranges, struct range_table *table, uint32_t id)
{
	struct lock *lock = lock_at(ranges, id);
	struct owner *owner = owner_at(ranges, lock->owner);

	table->locks = treap_remove(&in_table, ranges, table->locks, id);
	table->lock_count--;
	owner->locks = treap_remove(&in_owner, ranges, owner->locks, id);
	owner->lock_count--;
	waits_release(ranges, lock->hanging);
	pool_give(&ranges->locks, id);
}

uint32_t lock_first_own(const struct ranges *ranges, const struct owner *owner,
			uint64_t start)
{
	uint32_t at = owner->locks, found = 0;

	while (at) {
		const struct lock *lock = lock_at(ranges, at);

		if (lock->end >= start)
			found = at;
		at = lock->end >= start ? lock->own.left : lock->own.right;
	}
	return found;
}

struct conflict {
	const struct ranges *ranges;
	uint32_t owner;
	enum range_mode mode;
	uint64_t start;
	uint64_t end;
};

static bool is_conflict(const struct conflict *c, const struct lock *lock)
{
	return lock->owner != c->owner && lock->end >= c->start &&
	       modes_conflict(lock->mode, c->mode);
}

static bool may_be_below(const struct conflict *c, uint32_t id)
{
	const struct lock *lock;

	if (!id)
		return false;
	lock = lock_at(c->ranges, id);
	return c->start <=
	       (c->mode == RANGE_WRITE ? lock->max_end : lock->max_write_end);
}

/* In order of start, those after the lock named by past. */
static uint32_t conflict_below(const struct conflict *c, uint32_t id,
			       const struct lock *past, uint32_t past_id)
{
	while (may_be_below(c, id)) {
		const struct lock *lock = lock_at(c->ranges, id);
		bool after = !past || lock->start > past->start ||
			     (lock->start == past->start && id > past_id);
		uint32_t found = 0;

		if (after)
			found = conflict_below(c, lock->by_start.left, past,
					       past_id);
		if (found)
			return found;
		if (lock->start > c->end)
			return 0;
		if (after && is_conflict(c, lock))
			return id;
		id = lock->by_start.right;
	}
	return 0;
}

uint32_t lock_conflict(const struct ranges *ranges,
		       const struct range_table *table, uint32_t owner,
		       enum range_mode mode, uint64_t start, uint64_t end)
{
	struct conflict c = { ranges, owner, mode, start, end };

	return conflict_below(&c, table->locks, NULL, 0);
}

void range_blockers(const struct ranges *ranges,
		    const struct range_table *table,
		    const struct range_request *req,
		    bool (*each)(void *arg, const struct range_lock *lock),
		    void *arg)
{
	struct conflict c = { ranges, owner_find(ranges, table, &req->who),
			      req->mode, req->start, req->end };
	uint32_t id = conflict_below(&c, table->locks, NULL, 0);
	struct range_lock lock;

	while (id) {
		lock_describe(ranges, id, &lock);
		if (!each(arg, &lock))
			return;
		id = conflict_below(&c, table->locks, lock_at(ranges, id), id);
	}
}

/* What the request grows to, and what is left of the first and the last. */
struct replacing {
	enum range_mode mode;
	uint64_t start;
	uint64_t end;
	bool head, tail;
	enum range_mode head_mode, tail_mode;
	uint64_t head_start, tail_end;
};

static void swallow(struct replacing *r, const struct lock *lock,
		    uint64_t start, uint64_t end)
{
	enum range_mode mode = (enum range_mode)lock->mode;

	if (lock->start < start && mode == r->mode) {
		r->start = lock->start;
	} else if (lock->start < start) {
		r->head = true;
		r->head_mode = mode;
		r->head_start = lock->start;
	}
	if (lock->end > end && mode == r->mode) {
		r->end = lock->end;
	} else if (lock->end > end) {
		r->tail = true;
		r->tail_mode = mode;
		r->tail_end = lock->end;
	}
}

/* It touches the request, or only its border with another mode. */
static bool is_neighbour(const struct lock *lock, enum range_mode mode,
			 uint64_t start, uint64_t end)
{
	return !ranges_overlap(lock->start, lock->end, start, end) &&
	       (enum range_mode)lock->mode != mode;
}

void lock_replace(struct ranges *ranges, struct range_table *table,
		  uint32_t owner_id, enum range_mode mode, uint64_t start,
		  uint64_t end)
{
	struct replacing r = { .mode = mode, .start = start, .end = end };
	const struct owner *owner = owner_at(ranges, owner_id);
	uint64_t from = start ? start - 1 : 0;
	uint32_t id;

	for (id = lock_first_own(ranges, owner, from); id;
	     id = lock_first_own(ranges, owner, from)) {
		const struct lock *lock = lock_at(ranges, id);

		if (lock->start > end + 1)
			break;
		from = lock->end + 1;
		if (is_neighbour(lock, mode, start, end))
			continue;
		if (mode != RANGE_NONE && (enum range_mode)lock->mode == mode &&
		    lock->start <= start && lock->end >= end)
			return; /* has it already */
		swallow(&r, lock, start, end);
		lock_remove(ranges, table, id);
	}
	if (r.head)
		lock_insert(ranges, table, owner_id, r.head_mode, r.head_start,
			    start - 1);
	if (mode != RANGE_NONE)
		lock_insert(ranges, table, owner_id, mode, r.start, r.end);
	if (r.tail)
		lock_insert(ranges, table, owner_id, r.tail_mode, end + 1,
			    r.tail_end);
}

static void drop_below(struct ranges *ranges, struct range_table *table,
		       uint32_t id)
{
	while (id) {
		const struct lock *lock = lock_at(ranges, id);
		uint32_t next = lock->own.right;

		drop_below(ranges, table, lock->own.left);
		if (table->locks)
			table->locks = treap_remove(&in_table, ranges,
						    table->locks, id);
		waits_release(ranges, lock->hanging);
		pool_give(&ranges->locks, id);
		id = next;
	}
}

/* Of the only owner in a table the tree is not kept in order for its end. */
void locks_drop(struct ranges *ranges, struct range_table *table,
		uint32_t owner_id)
{
	struct owner *owner = owner_at(ranges, owner_id);

	if (owner->lock_count == table->lock_count)
		table->locks = 0;
	drop_below(ranges, table, owner->locks);
	table->lock_count -= owner->lock_count;
	owner->lock_count = 0;
	owner->locks = 0;
}

void lock_describe(const struct ranges *ranges, uint32_t id,
		   struct range_lock *out)
{
	const struct lock *lock = lock_at(ranges, id);
	const struct owner *owner = owner_at(ranges, lock->owner);

	*out = (struct range_lock){ .who = owner->who,
				    .mode = (enum range_mode)lock->mode,
				    .kind = (enum range_kind)owner->kind,
				    .start = lock->start,
				    .end = lock->end,
				    .pid = owner->pid };
}
