/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * rangeview.c - the range engine seen from outside: dumps, counts, rules.
 */
#include "plock/range_impl.h"

struct visit {
	const struct ranges *ranges;
	void (*lock)(void *arg, const struct range_lock *lock);
	void (*wait)(void *arg, const struct range_wait *wait);
	void *arg;
};

static void visit_locks(const struct visit *v, uint32_t id)
{
	while (id) {
		struct range_lock lock;

		visit_locks(v, lock_at(v->ranges, id)->by_start.left);
		lock_describe(v->ranges, id, &lock);
		v->lock(v->arg, &lock);
		id = lock_at(v->ranges, id)->by_start.right;
	}
}

static void visit_waits(const struct visit *v, uint32_t id)
{
	while (id) {
		struct range_wait wait;

		visit_waits(v, wait_at(v->ranges, id)->by_start.left);
		wait_describe(v->ranges, id, &wait);
		v->wait(v->arg, &wait);
		id = wait_at(v->ranges, id)->by_start.right;
	}
}

void range_visit(const struct ranges *ranges, const struct range_table *table,
		 void (*lock)(void *arg, const struct range_lock *lock),
		 void (*wait)(void *arg, const struct range_wait *wait),
		 void *arg)
{
	struct visit v = { ranges, lock, wait, arg };

	if (lock)
		visit_locks(&v, table->locks);
	if (wait)
		visit_waits(&v, table->waits);
}

static uint64_t pool_bytes(const struct pool *pool)
{
	return (uint64_t)pool->chunk_count * POOL_CHUNK * pool->size +
	       pool->chunk_space * sizeof(*pool->chunks);
}

static uint64_t heads_bytes(const struct heads *heads)
{
	return heads->first ? (heads->mask + 1ull) * sizeof(*heads->first) : 0;
}

void ranges_count(const struct ranges *ranges, struct range_counts *out)
{
	*out = (struct range_counts){
		.locks = ranges->locks.used,
		.waits = ranges->waits.used,
		.owners = ranges->owners.used,
		.bytes = pool_bytes(&ranges->locks) +
			 pool_bytes(&ranges->owners) +
			 pool_bytes(&ranges->parties) +
			 pool_bytes(&ranges->waits) +
			 heads_bytes(&ranges->owner_heads) +
			 heads_bytes(&ranges->party_heads) +
			 heads_bytes(&ranges->wait_heads),
	};
}

/* Rules */

struct sums {
	uint32_t count;
	uint64_t max_end, max_write_end;
	uint64_t min_seq, max_seq, max_write_seq;
};

static void check_hanging(const struct ranges *ranges, uint32_t id,
			  enum wait_state state, uint32_t first)
{
	uint32_t prev = 0;

	for (; first; first = wait_at(ranges, first)->next) {
		const struct wait *wait = wait_at(ranges, first);

		ug_assert(wait->state == state && wait->on == id);
		ug_assert(wait->prev == prev);
		prev = first;
	}
}

static void check_lock(const struct ranges *ranges,
		       const struct range_table *table, uint32_t id)
{
	const struct lock *lock = lock_at(ranges, id);
	const struct owner *owner = owner_at(ranges, lock->owner);

	ug_assert(lock->start <= lock->end && lock->end <= RANGE_END);
	ug_assert(lock->mode == RANGE_READ || lock->mode == RANGE_WRITE);
	ug_assert(owner->table == table->number);
	ug_assert(!lock_conflict(ranges, table, lock->owner,
				 (enum range_mode)lock->mode, lock->start,
				 lock->end));
	check_hanging(ranges, id, WAIT_ON_LOCK, lock->hanging);
}

static void check_locks(const struct ranges *ranges,
			const struct range_table *table, uint32_t id,
			struct sums *sums)
{
	const struct lock *lock;
	struct sums below = { 0 };

	if (!id)
		return;
	lock = lock_at(ranges, id);
	check_lock(ranges, table, id);
	check_locks(ranges, table, lock->by_start.left, &below);
	check_locks(ranges, table, lock->by_start.right, &below);
	below.count++;
	below.max_end = UG_MAX(below.max_end, lock->end);
	if (lock->mode == RANGE_WRITE)
		below.max_write_end = UG_MAX(below.max_write_end, lock->end);
	ug_assert(below.max_end == lock->max_end);
	ug_assert(below.max_write_end == lock->max_write_end);
	sums->count += below.count;
	sums->max_end = UG_MAX(sums->max_end, below.max_end);
	sums->max_write_end = UG_MAX(sums->max_write_end, below.max_write_end);
}

/* In order, not overlapping, not touching with one mode. Their number. */
static uint32_t check_own(const struct ranges *ranges, uint32_t owner_id)
{
	const struct owner *owner = owner_at(ranges, owner_id);
	uint32_t id = lock_first_own(ranges, owner, 0), count = 0;

	while (id) {
		const struct lock *lock = lock_at(ranges, id), *next;

		ug_assert(lock->owner == owner_id);
		count++;
		id = lock_first_own(ranges, owner, lock->end + 1);
		if (!id)
			break;
		next = lock_at(ranges, id);
		ug_assert(next->start > lock->end);
		ug_assert(next->start > lock->end + 1 ||
			  next->mode != lock->mode);
	}
	return count;
}

static void check_wait(const struct ranges *ranges,
		       const struct range_table *table, uint32_t id)
{
	const struct wait *wait = wait_at(ranges, id), *other;
	const struct lock *lock;

	ug_assert(wait->table == table);
	ug_assert(owner_is(&owner_at(ranges, wait->owner)->who, &wait->who));
	ug_assert(wait_find(ranges, table, &wait->who, wait->ctx));
	check_hanging(ranges, id, WAIT_ON_WAIT, wait->hanging);
	if (wait->state == WAIT_ON_WAIT) {
		other = wait_at(ranges, wait->on);
		ug_assert(other->table == table && other->seq < wait->seq);
		ug_assert(other->owner != wait->owner);
		ug_assert(modes_conflict(wait->mode, other->mode));
		ug_assert(ranges_overlap(wait->start, wait->end, other->start,
					 other->end));
		return;
	}
	ug_assert(wait->state == WAIT_ON_LOCK);
	lock = lock_at(ranges, wait->on);
	ug_assert(lock->owner != wait->owner);
	ug_assert(modes_conflict(wait->mode, lock->mode));
	ug_assert(
		ranges_overlap(wait->start, wait->end, lock->start, lock->end));
}

static void check_waits(const struct ranges *ranges,
			const struct range_table *table, uint32_t id,
			struct sums *sums)
{
	const struct wait *wait;
	struct sums below = { .min_seq = UINT64_MAX };

	if (!id)
		return;
	wait = wait_at(ranges, id);
	check_wait(ranges, table, id);
	check_waits(ranges, table, wait->by_start.left, &below);
	check_waits(ranges, table, wait->by_start.right, &below);
	below.max_end = UG_MAX(below.max_end, wait->end);
	below.min_seq = UG_MIN(below.min_seq, wait->seq);
	below.max_seq = UG_MAX(below.max_seq, wait->seq);
	if (wait->mode == RANGE_WRITE)
		below.max_write_seq = UG_MAX(below.max_write_seq, wait->seq);
	ug_assert(below.max_end == wait->max_end);
	ug_assert(below.min_seq == wait->min_seq);
	ug_assert(below.max_seq == wait->max_seq);
	ug_assert(below.max_write_seq == wait->max_write_seq);
	sums->count += below.count + 1;
	sums->max_end = UG_MAX(sums->max_end, below.max_end);
	sums->min_seq = UG_MIN(sums->min_seq, below.min_seq);
	sums->max_seq = UG_MAX(sums->max_seq, below.max_seq);
	sums->max_write_seq = UG_MAX(sums->max_write_seq, below.max_write_seq);
}

void range_check(const struct ranges *ranges, const struct range_table *table)
{
	struct sums locks = { 0 }, waits = { .min_seq = UINT64_MAX };
	uint32_t own_locks = 0, own_waits = 0, id;

	ug_assert(!ranges->heap);
	ug_assert(ranges->parties.used <= ranges->owners.used);
	ug_assert(ranges->locks.promised ==
		  ranges->wait_heads.count * LOCKS_OF_A_REQUEST);
	check_locks(ranges, table, table->locks, &locks);
	check_waits(ranges, table, table->waits, &waits);
	for (id = table->owners; id; id = owner_at(ranges, id)->next) {
		const struct owner *owner = owner_at(ranges, id);

		ug_assert(owner->lock_count || owner->wait_count);
		ug_assert(owner_find(ranges, table, &owner->who) == id);
		ug_assert(range_knows(ranges, &owner->who));
		ug_assert(check_own(ranges, id) == owner->lock_count);
		own_locks += owner->lock_count;
		own_waits += owner->wait_count;
	}
	ug_assert(locks.count == table->lock_count);
	ug_assert(own_locks == table->lock_count);
	ug_assert(waits.count == table->wait_count);
	ug_assert(own_waits == table->wait_count);
}
