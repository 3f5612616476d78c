/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * rangesearch.c - would this request wait for itself?
 *
 * From the request to the owners of all locks that are in its way; from an
 * owner that does nothing but wait to the owners that are in the way of that
 * wait; and so on. All of these have to give way before it can go on, so a way
 * back to the owner of the request is a deadlock. Those who only wait before
 * others are no part of it: rangewait.c. An owner that may go on by itself is
 * not followed: it has several waits at once, waits on another node, or is not
 * a process.
 */
#include "plock/range_impl.h"

struct search {
	struct ranges *ranges;
	const struct range_owner *from;
	uint32_t first; /* waits to be followed */
	uint32_t last;
	unsigned left; /* locks that may still be looked at */
	bool found;
};

/* The one wait that this owner is stuck in, or 0. */
static uint32_t stuck_in(const struct ranges *ranges,
			 const struct range_owner *who)
{
	uint32_t id = wait_first(ranges, who);

	if (!id || wait_next(ranges, id) ||
	    wait_at(ranges, id)->kind != RANGE_POSIX ||
	    !ranges->config.one_wait(ranges->config.arg, who))
		return 0;
	return id;
}

static bool follow(void *arg, const struct range_lock *lock)
{
	struct search *s = arg;
	uint32_t id;

	if (owner_is(&lock->who, s->from)) {
		s->found = true;
		return false;
	}
	if (!s->left)
		return false;
	s->left--;
	id = stuck_in(s->ranges, &lock->who);
	if (!id || wait_at(s->ranges, id)->search == s->ranges->searches)
		return true;
	wait_at(s->ranges, id)->search = s->ranges->searches;
	wait_at(s->ranges, id)->search_next = 0;
	if (s->last)
		wait_at(s->ranges, s->last)->search_next = id;
	else
		s->first = id;
	s->last = id;
	return true;
}

bool deadlock_would_be(struct ranges *ranges, const struct range_table *table,
		       const struct range_request *req)
{
	struct search s = { .ranges = ranges,
			    .from = &req->who,
			    .left = RANGE_SEARCH_MAX };

	if (req->kind != RANGE_POSIX || !ranges->config.one_wait ||
	    wait_first(ranges, &req->who) ||
	    !ranges->config.one_wait(ranges->config.arg, &req->who))
		return false;
	ranges->searches++;
	range_blockers(ranges, table, req, follow, &s);
	while (s.first && !s.found && s.left) {
		const struct wait *wait = wait_at(ranges, s.first);
		struct range_request next = {
			.who = wait->who,
			.mode = (enum range_mode)wait->mode,
			.start = wait->start,
			.end = wait->end
		};

		range_blockers(ranges, wait->table, &next, follow, &s);
		s.first = wait->search_next;
		if (!s.first)
			s.last = 0;
	}
	return s.found;
}
