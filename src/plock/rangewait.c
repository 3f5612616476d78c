/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * rangewait.c - who waits, and for what.
 *
 * A wait hangs on the last of the waits before it that it may not pass, else on
 * the first lock that is in its way. Whatever changes a lock takes it out of
 * its trees, and whatever ends a wait takes that out: then those that hang on
 * it go into the heap, and waits_grant() looks at each, the oldest first. So
 * nobody who could be granted is ever left hanging.
 *
 * Who is fair does not pass others, with two exceptions. Who holds a lock in
 * this table passes everybody: those others may be waiting for it. And a reader
 * passes a writer that came less than RANGE_BATCH_NS before it. Both keep
 * fairness from making a deadlock: who waits behind others holds nothing, so
 * nobody waits for it but those who came later and hold nothing either.
 */
#include "plock/range_impl.h"

/* Waits by start, with summaries */

static struct treap_links *wait_links(const void *arg, uint32_t id)
{
	return &wait_at(arg, id)->by_start;
}

static bool wait_before(const void *arg, uint32_t a, uint32_t b)
{
	const struct wait *wa = wait_at(arg, a), *wb = wait_at(arg, b);

	return wa->start != wb->start ? wa->start < wb->start
				      : wa->seq < wb->seq;
}

static void wait_take_child(const struct ranges *ranges, struct wait *wait,
			    uint32_t child)
{
	const struct wait *below;

	if (!child)
		return;
	below = wait_at(ranges, child);
	wait->max_end = UG_MAX(wait->max_end, below->max_end);
	wait->min_seq = UG_MIN(wait->min_seq, below->min_seq);
	wait->max_seq = UG_MAX(wait->max_seq, below->max_seq);
	wait->max_write_seq = UG_MAX(wait->max_write_seq, below->max_write_seq);
}

static void wait_update(const void *arg, uint32_t id)
{
	struct wait *wait = wait_at(arg, id);

	wait->max_end = wait->end;
	wait->min_seq = wait->seq;
	wait->max_seq = wait->seq;
	wait->max_write_seq = wait->mode == RANGE_WRITE ? wait->seq : 0;
	wait_take_child(arg, wait, wait->by_start.left);
	wait_take_child(arg, wait, wait->by_start.right);
}

static const struct treap_ops in_table = {
	.links = wait_links,
	.before = wait_before,
	.update = wait_update,
};

/* The last of those before a request that it may not pass */

struct ahead {
	const struct ranges *ranges;
	uint32_t owner;
	unsigned mode;
	uint64_t start;
	uint64_t end;
	uint64_t seq;
	uint64_t arrived_ns;
	uint32_t found;
	uint64_t found_seq;
};

static bool may_pass(const struct ahead *a, const struct wait *wait)
{
	if (a->owner == wait->owner || !modes_conflict(a->mode, wait->mode))
		return true;
	return a->mode == RANGE_READ &&
	       a->arrived_ns - wait->arrived_ns < RANGE_BATCH_NS;
}

static bool ahead_may_be_below(const struct ahead *a, uint32_t id)
{
	const struct wait *wait;

	if (!id)
		return false;
	wait = wait_at(a->ranges, id);
	return wait->max_end >= a->start && wait->min_seq < a->seq &&
	       a->found_seq < (a->mode == RANGE_WRITE ? wait->max_seq
						      : wait->max_write_seq);
}

static void ahead_below(struct ahead *a, uint32_t id)
{
	while (ahead_may_be_below(a, id)) {
		const struct wait *wait = wait_at(a->ranges, id);

		if (wait->start <= a->end)
			ahead_below(a, wait->by_start.right);
		if (wait->seq < a->seq && wait->seq > a->found_seq &&
		    ranges_overlap(wait->start, wait->end, a->start, a->end) &&
		    !may_pass(a, wait)) {
			a->found = id;
			a->found_seq = wait->seq;
		}
		id = wait->by_start.left;
	}
}

bool wait_is_held_up(const struct ranges *ranges,
		     const struct range_table *table, uint32_t owner,
		     const struct range_request *req)
{
	struct ahead a = { .ranges = ranges,
			   .owner = owner,
			   .mode = req->mode,
			   .start = req->start,
			   .end = req->end,
			   .seq = ranges->next_seq,
			   .arrived_ns = req->now_ns };

	if (lock_conflict(ranges, table, owner, req->mode, req->start,
			  req->end))
		return true;
	if (!req->wait || !req->fair ||
	    (owner && owner_at(ranges, owner)->lock_count))
		return false;
	ahead_below(&a, table->waits);
	return a.found;
}

/* The heap of those to be looked at: a pairing heap, oldest on top */

static uint32_t heap_meld(struct ranges *ranges, uint32_t a, uint32_t b)
{
	struct wait *top, *other;
	uint32_t swap;

	if (!a || !b)
		return a ? a : b;
	if (wait_at(ranges, a)->seq > wait_at(ranges, b)->seq) {
		swap = a;
		a = b;
		b = swap;
	}
	top = wait_at(ranges, a);
	other = wait_at(ranges, b);
	other->next = top->on;
	top->on = b;
	return a;
}

static uint32_t heap_pop(struct ranges *ranges)
{
	uint32_t top = ranges->heap, pairs = 0, root = 0;
	uint32_t child = wait_at(ranges, top)->on;

	while (child) {
		uint32_t a = child, b = wait_at(ranges, a)->next, pair;

		child = b ? wait_at(ranges, b)->next : 0;
		wait_at(ranges, a)->next = 0;
		if (b)
			wait_at(ranges, b)->next = 0;
		pair = heap_meld(ranges, a, b);
		wait_at(ranges, pair)->next = pairs;
		pairs = pair;
	}
	while (pairs) {
		uint32_t next = wait_at(ranges, pairs)->next;

		wait_at(ranges, pairs)->next = 0;
		root = heap_meld(ranges, root, pairs);
		pairs = next;
	}
	ranges->heap = root;
	wait_at(ranges, top)->on = 0;
	return top;
}

void waits_release(struct ranges *ranges, uint32_t first)
{
	while (first) {
		struct wait *wait = wait_at(ranges, first);
		uint32_t next = wait->next;

		wait->state = WAIT_LOOKED_AT;
		wait->on = 0;
		wait->next = 0;
		wait->prev = 0;
		ranges->heap = heap_meld(ranges, ranges->heap, first);
		first = next;
	}
}

/* To hang on something */

static uint32_t hanging_on(const struct ranges *ranges, const struct wait *wait)
{
	if (wait->state == WAIT_ON_WAIT)
		return wait_at(ranges, wait->on)->hanging;
	return lock_at(ranges, wait->on)->hanging;
}

static void set_hanging_on(struct ranges *ranges, const struct wait *wait,
			   uint32_t first)
{
	if (wait->state == WAIT_ON_WAIT)
		wait_at(ranges, wait->on)->hanging = first;
	else
		lock_at(ranges, wait->on)->hanging = first & 0x3fffffff;
}

static void hang(struct ranges *ranges, uint32_t id, enum wait_state state,
		 uint32_t on)
{
	struct wait *wait = wait_at(ranges, id);

	wait->state = (uint8_t)state;
	wait->on = on;
	wait->prev = 0;
	wait->next = hanging_on(ranges, wait);
	if (wait->next)
		wait_at(ranges, wait->next)->prev = id;
	set_hanging_on(ranges, wait, id);
}

void wait_unhang(struct ranges *ranges, uint32_t id)
{
	struct wait *wait = wait_at(ranges, id);

	if (wait->state != WAIT_ON_WAIT && wait->state != WAIT_ON_LOCK)
		return;
	if (wait->prev)
		wait_at(ranges, wait->prev)->next = wait->next;
	else
		set_hanging_on(ranges, wait, wait->next);
	if (wait->next)
		wait_at(ranges, wait->next)->prev = wait->prev;
	wait->state = WAIT_LOOKED_AT;
	wait->on = 0;
	wait->next = 0;
	wait->prev = 0;
}

/* Let it hang on what is in its way; false: nothing is. */
static bool hang_if_held_up(struct ranges *ranges, uint32_t id)
{
	const struct wait *wait = wait_at(ranges, id);
	struct ahead a = { .ranges = ranges,
			   .owner = wait->owner,
			   .mode = wait->mode,
			   .start = wait->start,
			   .end = wait->end,
			   .seq = wait->seq,
			   .arrived_ns = wait->arrived_ns };
	uint32_t conflict;

	if (wait->fair && !owner_at(ranges, wait->owner)->lock_count)
		ahead_below(&a, wait->table->waits);
	if (a.found) {
		hang(ranges, id, WAIT_ON_WAIT, a.found);
		return true;
	}
	conflict = lock_conflict(ranges, wait->table, wait->owner,
				 (enum range_mode)wait->mode, wait->start,
				 wait->end);
	if (conflict)
		hang(ranges, id, WAIT_ON_LOCK, conflict);
	return conflict;
}

/* Life of a wait */

void wait_add(struct ranges *ranges, struct range_table *table, uint32_t owner,
	      const struct range_request *req)
{
	uint32_t id = pool_take(&ranges->waits);
	struct wait *wait = wait_at(ranges, id);
	uint32_t slot = heads_slot(&ranges->wait_heads, &req->who, 0);

	*wait = (struct wait){ .start = req->start,
			       .end = req->end,
			       .mode = (uint8_t)req->mode,
			       .kind = (uint8_t)req->kind,
			       .fair = req->fair,
			       .pid = req->pid,
			       .who = req->who,
			       .ctx = req->ctx,
			       .arrived_ns = req->now_ns,
			       .seq = ranges->next_seq++,
			       .owner = owner,
			       .table = table,
			       .hash_next = ranges->wait_heads.first[slot] };
	ranges->wait_heads.first[slot] = id;
	ranges->wait_heads.count++;
	ranges->locks.promised += LOCKS_OF_A_REQUEST;
	owner_at(ranges, owner)->wait_count++;
	table->wait_count++;
	table->waits = treap_insert(&in_table, ranges, table->waits, id);
	ug_assert(hang_if_held_up(ranges, id));
}

/* Out of its table and of the owner; the record stays. */
static void wait_leave(struct ranges *ranges, uint32_t id)
{
	struct wait *wait = wait_at(ranges, id);
	struct range_table *table = wait->table;
	uint32_t *at;

	wait_unhang(ranges, id);
	table->waits = treap_remove(&in_table, ranges, table->waits, id);
	table->wait_count--;
	at = &ranges->wait_heads
		      .first[heads_slot(&ranges->wait_heads, &wait->who, 0)];
	while (*at != id)
		at = &wait_at(ranges, *at)->hash_next;
	*at = wait->hash_next;
	ranges->wait_heads.count--;
	ranges->locks.promised -= LOCKS_OF_A_REQUEST;
	owner_at(ranges, wait->owner)->wait_count--;
	waits_release(ranges, wait->hanging);
	wait->hanging = 0;
}

void wait_end(struct ranges *ranges, uint32_t id, int status)
{
	struct wait *wait = wait_at(ranges, id);

	wait_leave(ranges, id);
	wait->state = WAIT_DONE;
	wait->status = status;
	wait->next = 0;
	if (ranges->done_last)
		wait_at(ranges, ranges->done_last)->next = id;
	else
		ranges->done_first = id;
	ranges->done_last = id;
}

void wait_drop(struct ranges *ranges, uint32_t id)
{
	wait_leave(ranges, id);
	pool_give(&ranges->waits, id);
}

bool range_has_done(const struct ranges *ranges)
{
	return ranges->done_first != 0;
}

bool range_next_done(struct ranges *ranges, struct range_done *out)
{
	uint32_t id = ranges->done_first;
	const struct wait *wait;

	if (!id)
		return false;
	wait = wait_at(ranges, id);
	*out = (struct range_done){ .who = wait->who,
				    .ctx = wait->ctx,
				    .number = wait->table->number,
				    .status = wait->status };
	ranges->done_first = wait->next;
	if (!ranges->done_first)
		ranges->done_last = 0;
	pool_give(&ranges->waits, id);
	return true;
}

/*
 * Replace what the owner has. If it had nothing, and another thread of it waits
 * behind others, that wait may pass them from now on.
 */
void owner_take(struct ranges *ranges, struct range_table *table,
		uint32_t owner_id, enum range_mode mode, uint64_t start,
		uint64_t end)
{
	const struct owner *owner = owner_at(ranges, owner_id);
	bool had_none = !owner->lock_count;
	uint32_t id;

	lock_replace(ranges, table, owner_id, mode, start, end);
	if (!had_none || !owner->wait_count)
		return;
	for (id = wait_first(ranges, &owner->who); id;
	     id = wait_next(ranges, id)) {
		const struct wait *wait = wait_at(ranges, id);

		if (wait->owner != owner_id || wait->state != WAIT_ON_WAIT)
			continue;
		wait_unhang(ranges, id);
		ranges->heap = heap_meld(ranges, ranges->heap, id);
	}
}

void waits_grant(struct ranges *ranges)
{
	while (ranges->heap) {
		uint32_t id = heap_pop(ranges);
		struct wait *wait = wait_at(ranges, id);

		if (hang_if_held_up(ranges, id))
			continue;
		owner_at(ranges, wait->owner)->pid = wait->pid;
		/* Before the lock: what hangs on it must not find it here. */
		wait_end(ranges, id, 0);
		owner_take(ranges, wait->table, wait->owner,
			   (enum range_mode)wait->mode, wait->start, wait->end);
	}
}

/* Waits of an owner, in all tables */

static uint32_t wait_of(const struct ranges *ranges, uint32_t id,
			const struct range_owner *who)
{
	while (id && !owner_is(&wait_at(ranges, id)->who, who))
		id = wait_at(ranges, id)->hash_next;
	return id;
}

uint32_t wait_first(const struct ranges *ranges, const struct range_owner *who)
{
	const struct heads *heads = &ranges->wait_heads;

	if (!heads->first)
		return 0;
	return wait_of(ranges, heads->first[heads_slot(heads, who, 0)], who);
}

uint32_t wait_next(const struct ranges *ranges, uint32_t id)
{
	const struct wait *wait = wait_at(ranges, id);

	return wait_of(ranges, wait->hash_next, &wait->who);
}

uint32_t wait_find(const struct ranges *ranges, const struct range_table *table,
		   const struct range_owner *who, uint64_t ctx)
{
	uint32_t id = wait_first(ranges, who);

	while (id && (wait_at(ranges, id)->table->number != table->number ||
		      wait_at(ranges, id)->ctx != ctx))
		id = wait_next(ranges, id);
	return id;
}

void wait_describe(const struct ranges *ranges, uint32_t id,
		   struct range_wait *out)
{
	const struct wait *wait = wait_at(ranges, id);

	*out = (struct range_wait){
		.req = { .who = wait->who,
			 .kind = (enum range_kind)wait->kind,
			 .mode = (enum range_mode)wait->mode,
			 .start = wait->start,
			 .end = wait->end,
			 .pid = wait->pid,
			 .wait = true,
			 .fair = wait->fair,
			 .now_ns = wait->arrived_ns,
			 .ctx = wait->ctx },
		.behind = wait->state == WAIT_ON_WAIT &&
			  !lock_conflict(ranges, wait->table, wait->owner,
					 (enum range_mode)wait->mode,
					 wait->start, wait->end),
	};
}
