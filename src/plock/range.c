/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * range.c - the calls of the range engine.
 *
 * Each call first makes sure of all the memory that it may need; then it cannot
 * fail. A request that waits keeps the promise of the locks that its grant will
 * take, so that a grant cannot fail either.
 */
#include <errno.h>
#include <stdlib.h>

#include "plock/range_impl.h"

int ranges_new(const struct range_config *config, struct ranges **out)
{
	struct ranges *ranges = calloc(1, sizeof(*ranges));

	if (!ranges)
		return -ENOMEM;
	ranges->config = *config;
	ranges->next_table = 1;
	ranges->next_seq = 1;
	pool_init(&ranges->locks, sizeof(struct lock));
	pool_init(&ranges->owners, sizeof(struct owner));
	pool_init(&ranges->parties, sizeof(struct party));
	pool_init(&ranges->waits, sizeof(struct wait));
	*out = ranges;
	return 0;
}

void ranges_free(struct ranges *ranges)
{
	if (!ranges)
		return;
	pool_free(&ranges->locks);
	pool_free(&ranges->owners);
	pool_free(&ranges->parties);
	pool_free(&ranges->waits);
	heads_free(ranges);
	free(ranges);
}

void range_table_init(struct ranges *ranges, struct range_table *table)
{
	*table = (struct range_table){ .number = ranges->next_table++ };
}

static void drop_waits_of(struct ranges *ranges, uint32_t owner_id, int status)
{
	const struct owner *owner = owner_at(ranges, owner_id);
	uint32_t id = wait_first(ranges, &owner->who), next;

	for (; id; id = next) {
		next = wait_next(ranges, id);
		if (wait_at(ranges, id)->owner != owner_id)
			continue;
		if (status)
			wait_end(ranges, id, status);
		else
			wait_drop(ranges, id);
	}
}

/*
 * Owners of this node (0: of all). Their waits first leave what they hang on:
 * then none of them is among those that are let go by the end of another.
 */
static void drop_waits(struct ranges *ranges, struct range_table *table,
		       uint64_t node)
{
	uint32_t id, wait;

	for (id = table->owners; id; id = owner_at(ranges, id)->next) {
		const struct range_owner *who = &owner_at(ranges, id)->who;

		if (node && who->node != node)
			continue;
		for (wait = wait_first(ranges, who); wait;
		     wait = wait_next(ranges, wait)) {
			if (wait_at(ranges, wait)->owner == id)
				wait_unhang(ranges, wait);
		}
	}
	for (id = table->owners; id; id = owner_at(ranges, id)->next) {
		if (!node || owner_at(ranges, id)->who.node == node)
			drop_waits_of(ranges, id, 0);
	}
}

/* Owners of this node that have nothing any more, with their locks if asked. */
static void put_owners(struct ranges *ranges, struct range_table *table,
		       uint64_t node, bool with_locks)
{
	uint32_t id = table->owners, next;

	for (; id; id = next) {
		next = owner_at(ranges, id)->next;
		if (node && owner_at(ranges, id)->who.node != node)
			continue;
		if (with_locks)
			locks_drop(ranges, table, id);
		owner_put(ranges, table, id);
	}
}

void range_table_clear(struct ranges *ranges, struct range_table *table)
{
	drop_waits(ranges, table, 0);
	put_owners(ranges, table, 0, true);
}

void range_drop_waits(struct ranges *ranges, struct range_table *table,
		      uint64_t node)
{
	drop_waits(ranges, table, node);
	put_owners(ranges, table, node, false);
	waits_grant(ranges);
}

void range_drop_node(struct ranges *ranges, struct range_table *table,
		     uint64_t node)
{
	drop_waits(ranges, table, node);
	put_owners(ranges, table, node, true);
	waits_grant(ranges);
}

void range_keep_node(struct ranges *ranges, struct range_table *table,
		     uint64_t node)
{
	uint32_t id = table->owners;

	while (id) {
		uint64_t other = owner_at(ranges, id)->who.node;

		if (other == node) {
			id = owner_at(ranges, id)->next;
			continue;
		}
		range_drop_node(ranges, table, other);
		id = table->owners;
	}
}

static int make_room(struct ranges *ranges, bool wait)
{
	int error = pool_ready(&ranges->locks, LOCKS_OF_A_REQUEST);

	if (!error)
		error = pool_ready(&ranges->owners, 1);
	if (!error)
		error = pool_ready(&ranges->parties, 1);
	if (!error && wait)
		error = pool_ready(&ranges->waits, 1);
	return error ? error : heads_make_room(ranges);
}

int ranges_reserve(struct ranges *ranges, uint32_t n)
{
	int error = make_room(ranges, false);

	return error ? error
		     : pool_ready(&ranges->locks, n * LOCKS_OF_A_REQUEST);
}

static bool range_is_legal(uint64_t start, uint64_t end)
{
	return start <= end && end <= RANGE_END;
}

static int unlock(struct ranges *ranges, struct range_table *table,
		  const struct range_request *req)
{
	uint32_t owner = owner_find(ranges, table, &req->who);

	if (!owner)
		return 0;
	lock_replace(ranges, table, owner, RANGE_NONE, req->start, req->end);
	owner_put(ranges, table, owner);
	waits_grant(ranges);
	return 0;
}

static void grant(struct ranges *ranges, struct range_table *table,
		  const struct range_request *req)
{
	uint32_t owner = owner_open(ranges, table, &req->who, req->kind);

	owner_at(ranges, owner)->pid = req->pid;
	owner_take(ranges, table, owner, req->mode, req->start, req->end);
	waits_grant(ranges);
}

/* An flock that is not granted at once: give back what it has. */
static void release_first(struct ranges *ranges, struct range_table *table,
			  uint32_t owner)
{
	locks_drop(ranges, table, owner);
	owner_put(ranges, table, owner);
	waits_grant(ranges);
}

int range_set(struct ranges *ranges, struct range_table *table,
	      const struct range_request *req)
{
	uint32_t owner;
	int error;

	if (!range_is_legal(req->start, req->end))
		return -EINVAL;
	error = make_room(ranges, req->wait && req->mode != RANGE_NONE);
	if (error)
		return error;
	if (req->mode == RANGE_NONE)
		return unlock(ranges, table, req);
	owner = owner_find(ranges, table, &req->who);
	if (req->kind == RANGE_FLOCK && owner &&
	    wait_is_held_up(ranges, table, owner, req)) {
		release_first(ranges, table, owner);
		owner = owner_find(ranges, table, &req->who);
	}
	if (!wait_is_held_up(ranges, table, owner, req)) {
		grant(ranges, table, req);
		return 0;
	}
	if (!req->wait)
		return -EAGAIN;
	if (deadlock_would_be(ranges, table, req))
		return -EDEADLK;
	owner = owner_open(ranges, table, &req->who, req->kind);
	wait_add(ranges, table, owner, req);
	return -EINPROGRESS;
}

int range_get(const struct ranges *ranges, const struct range_table *table,
	      const struct range_request *req, struct range_lock *out)
{
	uint32_t id = lock_conflict(ranges, table,
				    owner_find(ranges, table, &req->who),
				    req->mode, req->start, req->end);

	if (!id)
		return 0;
	lock_describe(ranges, id, out);
	return 1;
}

int range_put(struct ranges *ranges, struct range_table *table,
	      const struct range_lock *lock)
{
	uint32_t owner;
	int error;

	if (!range_is_legal(lock->start, lock->end) || lock->mode == RANGE_NONE)
		return -EINVAL;
	error = make_room(ranges, false);
	if (error)
		return error;
	owner = owner_open(ranges, table, &lock->who, lock->kind);
	owner_at(ranges, owner)->pid = lock->pid;
	owner_take(ranges, table, owner, lock->mode, lock->start, lock->end);
	waits_grant(ranges);
	return 0;
}

bool range_lower(struct ranges *ranges, struct range_table *table,
		 const struct range_owner *who, uint64_t start, uint64_t end)
{
	uint32_t owner = owner_find(ranges, table, who), id;
	bool lowered = false;

	if (!owner)
		return false;
	for (id = lock_first_own(ranges, owner_at(ranges, owner), start); id;
	     id = lock_first_own(ranges, owner_at(ranges, owner), start)) {
		const struct lock *lock = lock_at(ranges, id);
		uint64_t from = UG_MAX(lock->start, start);
		uint64_t last = UG_MIN(lock->end, end);

		if (from > end)
			break;
		start = last + 1;
		if (lock->mode != RANGE_WRITE)
			continue;
		lock_replace(ranges, table, owner, RANGE_READ, from, last);
		lowered = true;
	}
	waits_grant(ranges);
	return lowered;
}

void range_close(struct ranges *ranges, struct range_table *table,
		 const struct range_owner *who)
{
	uint32_t owner = owner_find(ranges, table, who);

	if (!owner)
		return;
	drop_waits_of(ranges, owner, -EINTR);
	locks_drop(ranges, table, owner);
	owner_put(ranges, table, owner);
	waits_grant(ranges);
}

int range_cancel(struct ranges *ranges, struct range_table *table,
		 const struct range_owner *who, uint64_t ctx)
{
	uint32_t id = wait_find(ranges, table, who, ctx), owner;

	if (!id)
		return -ENOENT;
	owner = wait_at(ranges, id)->owner;
	wait_drop(ranges, id);
	owner_put(ranges, table, owner);
	waits_grant(ranges);
	return 0;
}

bool range_holds(const struct ranges *ranges, const struct range_table *table,
		 const struct range_owner *who)
{
	uint32_t owner = owner_find(ranges, table, who);

	return owner && owner_at(ranges, owner)->lock_count;
}

unsigned range_waits(const struct ranges *ranges, const struct range_owner *who)
{
	uint32_t id = wait_first(ranges, who);
	unsigned count = 0;

	for (; id; id = wait_next(ranges, id))
		count++;
	return count;
}

bool range_wait_find(const struct ranges *ranges,
		     const struct range_table *table,
		     const struct range_owner *who, uint64_t ctx,
		     struct range_wait *out)
{
	uint32_t id = wait_find(ranges, table, who, ctx);

	if (!id)
		return false;
	wait_describe(ranges, id, out);
	return true;
}
