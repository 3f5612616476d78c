/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * probe.c - deadlocks across members.
 *
 *	 A waits for B's lock	  B waits for C's	 C waits for A's
 *
 *	client of A -> serialiser -> client of B -> serialiser -> client of C
 *	     ^						   |
 *	     '------------------ serialiser <--------------------'
 *
 * A call that has waited for a second sends a probe along what it waits for. A
 * serialiser passes it on to the members of all owners of locks in the way, the
 * client of such an owner only if that has exactly one call, one that waits.
 * The probe notes each of these calls. If the way comes back to the owner that
 * it began with, it is followed once more, exactly: every one of these calls
 * must still be the only one of its owner, and still be kept from going on by
 * the next. All that the second round finds was so at the end of the first, as
 * who waits all the time releases nothing. So at that moment it was a deadlock.
 * The first call then ends with -EDEADLK, if it still waits.
 */
#include <errno.h>
#include <string.h>

#include "plock/engine.h"

static bool is_candidate(const struct call *call)
{
	return call->op.kind == PLOCK_SET && call->op.wait &&
	       call->op.mode != RANGE_NONE &&
	       call->op.owner_kind == RANGE_POSIX && call->sent_to;
}

static struct plock_msg *send_probe(struct plock_engine *engine, uint64_t to,
				    const struct plock_msg *probe)
{
	struct plock_msg *msg = plock_send(engine, to, PLOCK_MSG_PROBE, NULL);

	msg->number = probe->number;
	msg->gen = probe->gen; /* which attempt */
	msg->id = probe->id;
	msg->node = probe->node;
	msg->status = probe->status;
	msg->op = probe->op;
	msg->confirm = probe->confirm;
	msg->count = probe->count;
	msg->at = probe->at;
	memcpy(msg->hops, probe->hops, sizeof(msg->hops));
	return msg;
}

/* What a probe is to do where it arrives: msg->status. */
enum {
	AT_SERIALISER = 1, /* who is in the way of hop "at"? */
	AT_CLIENT = 2,	   /* what does op.owner wait for? */
	AT_VICTIM = 3,	   /* the first hop is in a deadlock */
};

void probe_start(struct plock_engine *engine, struct call *call)
{
	struct plock_msg probe = { .status = AT_SERIALISER, .count = 1 };

	if (!is_candidate(call) || call_only(engine, call->op.owner) != call)
		return;
	probe.gen = engine->now_ns;
	probe.number = call->file->number;
	probe.hops[0] = (struct plock_hop){
		.who = { engine->config.node, call->op.owner },
		.id = call->id,
		.number = call->file->number,
		.table = call->op.table,
	};
	send_probe(engine, call->sent_to, &probe);
}

struct blockers {
	struct plock_engine *engine;
	struct range_owner list[PROBE_BLOCKERS_MAX];
	unsigned count;
};

static bool collect(void *arg, const struct range_lock *lock)
{
	struct blockers *b = arg;

	for (unsigned i = 0; i < b->count; i++) {
		if (b->list[i].node == lock->who.node &&
		    b->list[i].owner == lock->who.owner)
			return true;
	}
	if (lock->kind == RANGE_POSIX && member_is(b->engine, lock->who.node))
		b->list[b->count++] = lock->who;
	return b->count < PROBE_BLOCKERS_MAX;
}

static bool same(const struct range_owner *a, const struct range_owner *b)
{
	return a->node == b->node && a->owner == b->owner;
}

static void to_client(struct plock_engine *engine, struct plock_msg *probe,
		      const struct range_owner *who)
{
	probe->status = AT_CLIENT;
	probe->op.owner = who->owner;
	send_probe(engine, who->node, probe);
}

/* The way is closed: once more, from the first. */
static void confirm(struct plock_engine *engine, struct plock_msg *probe)
{
	probe->confirm = true;
	probe->at = 0;
	to_client(engine, probe, &probe->hops[0].who);
}

static void go_on(struct plock_engine *engine, struct plock_msg *probe,
		  const struct range_owner *blocker)
{
	const struct range_owner *first = &probe->hops[0].who;
	const struct range_owner *next;

	if (!probe->confirm && same(blocker, first)) {
		confirm(engine, probe);
	} else if (!probe->confirm && probe->count < PLOCK_HOPS) {
		to_client(engine, probe, blocker);
	} else if (probe->confirm) {
		next = &probe->hops[(probe->at + 1) % probe->count].who;
		if (!same(blocker, next))
			return;
		probe->at++;
		probe->status = AT_VICTIM;
		if (probe->at == probe->count)
			send_probe(engine, first->node, probe);
		else
			to_client(engine, probe, next);
	}
}

static void at_serialiser(struct plock_engine *engine, struct plock_msg *probe)
{
	const struct plock_hop *hop = &probe->hops[probe->at];
	struct file *file = file_find(engine, hop->number);
	struct blockers b = { .engine = engine };
	struct range_wait wait;

	if (!file || file->role == FILE_CLIENT ||
	    !range_wait_find(engine->ranges, &file->tables[hop->table & 1],
			     &hop->who, hop->id, &wait))
		return;
	range_blockers(engine->ranges, &file->tables[hop->table & 1], &wait.req,
		       collect, &b);
	for (unsigned i = 0; i < b.count; i++) {
		struct plock_msg copy = *probe;

		go_on(engine, &copy, &b.list[i]);
	}
}

/* Ways that meet are followed once. */
static bool seen_before(struct call *call, const struct plock_msg *probe)
{
	const struct plock_hop *first = &probe->hops[0];

	if (call->seen_node == first->who.node && call->seen_id == first->id &&
	    call->seen_try == probe->gen)
		return true;
	call->seen_node = first->who.node;
	call->seen_id = first->id;
	call->seen_try = probe->gen;
	return false;
}

static void at_client(struct plock_engine *engine, struct plock_msg *probe)
{
	struct call *call = call_only(engine, probe->op.owner);

	if (!call || !is_candidate(call))
		return;
	if (probe->confirm) {
		if (probe->hops[probe->at].id != call->id)
			return;
	} else {
		if (seen_before(call, probe) || probe->count >= PLOCK_HOPS)
			return;
		probe->at = probe->count;
		probe->hops[probe->count++] = (struct plock_hop){
			.who = { engine->config.node, call->op.owner },
			.id = call->id,
			.number = call->file->number,
			.table = call->op.table,
		};
	}
	probe->status = AT_SERIALISER;
	send_probe(engine, call->sent_to, probe);
}

void probe_receive(struct plock_engine *engine, const struct plock_msg *msg)
{
	struct plock_msg probe = *msg;
	struct call *call;

	if (!probe.count ||
	    (probe.at >= probe.count && probe.status != AT_VICTIM))
		return;
	switch (probe.status) {
	case AT_SERIALISER:
		at_serialiser(engine, &probe);
		break;
	case AT_CLIENT:
		at_client(engine, &probe);
		break;
	case AT_VICTIM:
		call = call_find(engine, probe.hops[0].id);
		if (call && probe.hops[0].who.node == engine->config.node &&
		    call->op.owner == probe.hops[0].who.owner)
			client_cancel(engine, call->id, -EDEADLK);
		break;
	}
}
