/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * check.c - what holds when nothing moves: masters, directory, twins, nobody
 * waits for what could be granted, holders in the way have been told.
 * Source: docs/spec/dlm.md 9.3, P2, P4, P5, P8, P10, P12.
 */
#include <string.h>

#include "base/compiler.h"
#include "sim.h"

/* Everything that all engines know, in one table. */
struct seen_lock {
	int32_t node;
	unsigned resource;
	struct dlm_lock_info info;
};

struct seen {
	struct world *w;
	int32_t node;
	struct seen_lock locks[8192];
	unsigned lock_count;
	struct dlm_resource_info res[NODES_MAX + 1][RESOURCES_MAX];
	bool known[NODES_MAX + 1][RESOURCES_MAX];
};

static struct seen seen;

bool all_running(const struct world *w)
{
	for (unsigned id = 1; id <= w->node_count; id++) {
		const struct node *node = &w->nodes[id];

		if (node->alive && !dlm_is_running(node->engine))
			return false;
	}
	return true;
}

static unsigned resource_of(const struct world *w, const struct dlm_name *name)
{
	for (unsigned r = 0; r < w->resource_count; r++) {
		const struct dlm_name *ours = resource_name(r);

		if (ours->len == name->len &&
		    memcmp(ours->bytes, name->bytes, name->len) == 0)
			return r;
	}
	fail(w, "a resource that nobody has named");
}

static void see_resource(void *arg, const struct dlm_resource_info *info)
{
	struct seen *s = arg;
	unsigned r = resource_of(s->w, &info->name);

	s->res[s->node][r] = *info;
	s->known[s->node][r] = true;
}

static void see_lock(void *arg, const struct dlm_resource_info *resource,
		     const struct dlm_lock_info *info)
{
	struct seen *s = arg;

	if (s->lock_count >= UG_ARRAY_SIZE(s->locks))
		fail(s->w, "too many locks");
	s->locks[s->lock_count++] = (struct seen_lock){
		.node = s->node,
		.resource = resource_of(s->w, &resource->name),
		.info = *info,
	};
}

static void look(struct world *w)
{
	memset(&seen, 0, sizeof(seen));
	seen.w = w;
	for (unsigned id = 1; id <= w->node_count; id++) {
		const struct node *node = &w->nodes[id];

		if (!node->alive)
			continue;
		seen.node = node->id;
		dlm_visit(node->engine, see_resource, see_lock, &seen);
	}
}

/* P8: users agree on the master, and the directory on a living one. */
static void check_master(struct world *w, unsigned r)
{
	int32_t master = 0, dir = 0;

	for (unsigned id = 1; id <= w->node_count; id++) {
		const struct dlm_resource_info *info = &seen.res[id][r];

		if (!seen.known[id][r])
			continue;
		if (dir && info->dir != dir)
			fail(w, "resource %u: two directory nodes", r);
		dir = info->dir;
		if (info->in_use && !info->master)
			fail(w, "resource %u: node %u knows no master", r, id);
		if (info->master == (int32_t)id) {
			if (master)
				fail(w, "resource %u: masters %d and %u", r,
				     master, id);
			master = info->master;
		}
	}
	for (unsigned id = 1; id <= w->node_count; id++) {
		const struct dlm_resource_info *info = &seen.res[id][r];

		if (!seen.known[id][r])
			continue;
		if ((info->in_use || (int32_t)id == dir) &&
		    info->master != master)
			fail(w,
			     "resource %u: node %u takes %d for the master, "
			     "it is %d (%u locks, directory %d)",
			     r, id, info->master, master, info->locks, dir);
	}
	if (master && !seen.known[dir][r])
		fail(w, "resource %u: no record in the directory", r);
}

static const struct seen_lock *find_lock(int32_t node, uint32_t lkid)
{
	for (unsigned i = 0; i < seen.lock_count; i++) {
		if (seen.locks[i].node == node &&
		    seen.locks[i].info.lkid == lkid)
			return &seen.locks[i];
	}
	return NULL;
}

/* Both ends of a lock agree (P5); nothing is left of the dead. */
static void check_twin(struct world *w, const struct seen_lock *lock)
{
	const struct seen_lock *twin;
	bool demotable;

	if (lock->info.in_flight)
		fail(w, "node %d lock %08x: still waits for an answer",
		     lock->node, lock->info.lkid);
	if (!lock->info.nodeid)
		return;
	twin = find_lock(lock->info.nodeid, lock->info.remid);
	if (!twin || twin->info.remid != lock->info.lkid ||
	    twin->resource != lock->resource)
		fail(w, "node %d lock %08x: no twin on node %d", lock->node,
		     lock->info.lkid, lock->info.nodeid);
	/* one that was demoted in the queue hears of it when it is granted */
	demotable = lock->info.status == LKS_CONVERT &&
		    (lock->info.exflags & LKF_CONVDEADLK);
	if (twin->info.status != lock->info.status ||
	    (twin->info.grmode != lock->info.grmode && !demotable) ||
	    (lock->info.status != LKS_GRANTED &&
	     twin->info.rqmode != lock->info.rqmode))
		fail(w, "node %d lock %08x: the twins differ", lock->node,
		     lock->info.lkid);
}

static bool conflict(int a, int b)
{
	return a >= 0 && b >= 0 &&
	       !dlm_modes_compatible((enum dlm_mode)a, (enum dlm_mode)b);
}

/* P4: no two queued conversions block each other unless they chose to. */
static void check_deadlock(struct world *w, const struct seen_lock *a,
			   const struct seen_lock *b)
{
	if (a->resource != b->resource || a->info.status != LKS_CONVERT ||
	    b->info.status != LKS_CONVERT || a->info.master_copy ||
	    b->info.master_copy || a == b)
		return;
	if (((a->info.exflags | b->info.exflags) & LKF_NODLCKWT) == 0 &&
	    w->faults == 0 && conflict(a->info.grmode, b->info.rqmode) &&
	    conflict(b->info.grmode, a->info.rqmode))
		fail(w, "locks %08x and %08x: a silent conversion deadlock",
		     a->info.lkid, b->info.lkid);
}

/* P6: a cancel that was accepted ends what it was for, or comes too late. */
static void check_cancelled(struct world *w, const struct client *c)
{
	if (client_lives(w, c) && c->cancelled && !c->unlocking)
		fail(w, "lock %08x of node %d: its cancel was forgotten",
		     c->lkid, c->node);
}

/* P10: who is in the way of somebody has heard of it. */
static void check_told(struct world *w, const struct client *holder)
{
	if (!holder->used || holder->requesting || holder->converting ||
	    holder->unlocking || !holder->wants_bast || holder->basts)
		return;
	for (unsigned i = 0; i < w->client_high; i++) {
		const struct client *waiter = &w->clients[i];

		if (!waiter->used || waiter == holder ||
		    waiter->resource != holder->resource ||
		    (!waiter->requesting && !waiter->converting))
			continue;
		if (conflict(holder->held, waiter->wanted))
			fail(w,
			     "lock %08x of node %d is in the way of %08x "
			     "of node %d and has not been told",
			     holder->lkid, holder->node, waiter->lkid,
			     waiter->node);
	}
}

void check_quiet(struct world *w)
{
	look(w);
	check_slots(w);
	for (unsigned r = 0; r < w->resource_count; r++)
		check_master(w, r);
	for (unsigned i = 0; i < seen.lock_count; i++) {
		check_twin(w, &seen.locks[i]);
		for (unsigned j = 0; j < seen.lock_count; j++)
			check_deadlock(w, &seen.locks[i], &seen.locks[j]);
	}
	for (unsigned id = 1; id <= w->node_count; id++) {
		for (unsigned r = 0; r < w->resource_count; r++) {
			if (seen.known[id][r] && seen.res[id][r].grant_pending)
				fail(w,
				     "resource %u: a lock waits that could "
				     "be granted",
				     r);
		}
	}
	for (unsigned i = 0; i < w->client_high; i++) {
		check_told(w, &w->clients[i]);
		check_cancelled(w, &w->clients[i]);
	}
}

/* P6, P12: when all is given back and idle nothing is left. */
void check_empty(struct world *w)
{
	for (unsigned id = 1; id <= w->node_count; id++) {
		const struct node *node = &w->nodes[id];
		struct dlm_counts counts;

		if (!node->alive)
			continue;
		dlm_count(node->engine, &counts);
		if (counts.locks || counts.resources || counts.in_flight ||
		    counts.saved_messages)
			fail(w,
			     "node %u: %u locks, %u resources, %u in "
			     "flight, %u saved are left",
			     id, counts.locks, counts.resources,
			     counts.in_flight, counts.saved_messages);
	}
}

/* P3: order, seen as the queues of one master before and after a step. */

struct queued {
	uint32_t lkid;
	unsigned resource;
	enum dlm_lock_status status;
	uint32_t exflags;
};

struct order {
	struct world *w;
	int32_t node;
	struct queued locks[1024];
	unsigned count;
};

static struct order was, is;
static bool order_counts;

static void order_lock(void *arg, const struct dlm_resource_info *resource,
		       const struct dlm_lock_info *info)
{
	struct order *order = arg;

	if (resource->master != order->node ||
	    order->count == UG_ARRAY_SIZE(order->locks))
		return;
	order->locks[order->count++] = (struct queued){
		.lkid = info->lkid,
		.resource = resource_of(order->w, &resource->name),
		.status = info->status,
		.exflags = info->exflags,
	};
}

static void order_look(struct world *w, const struct node *node,
		       struct order *order)
{
	order->w = w;
	order->node = node->id;
	order->count = 0;
	dlm_visit(node->engine, NULL, order_lock, order);
}

static const struct queued *order_find(const struct order *order, uint32_t lkid)
{
	for (unsigned i = 0; i < order->count; i++) {
		if (order->locks[i].lkid == lkid)
			return &order->locks[i];
	}
	return NULL;
}

void order_before(struct world *w, const struct node *node)
{
	/* looking twice at every step is dear: in one run of three */
	order_counts = w->seed % 3 == 0 && dlm_is_running(node->engine);
	if (order_counts)
		order_look(w, node, &was);
}

/* Somebody who was before the new holder in its queues, and still is there */
static void order_check(struct world *w, const struct queued *granted,
			const struct queued *old)
{
	for (unsigned i = 0; i < was.count; i++) {
		const struct queued *first = &was.locks[i];
		const struct queued *now;

		if (first == old)
			return; /* the rest was behind it */
		if (first->resource != granted->resource ||
		    (first->status != LKS_WAITING &&
		     first->status != LKS_CONVERT))
			continue;
		now = order_find(&is, first->lkid);
		if (now && now->status == first->status)
			fail(w, "node %d: lock %08x was granted before %08x",
			     was.node, granted->lkid, first->lkid);
	}
}

void order_after(struct world *w, const struct node *node)
{
	uint32_t free_to_pass = LKF_NOORDER | LKF_EXPEDITE | LKF_HEADQUE |
				LKF_CONVERT | LKF_ORPHAN;

	if (!order_counts || !dlm_is_running(node->engine))
		return;
	order_look(w, node, &is);
	for (unsigned i = 0; i < is.count; i++) {
		const struct queued *lock = &is.locks[i];
		const struct queued *old = order_find(&was, lock->lkid);

		if (lock->status == LKS_GRANTED &&
		    (!old || old->status == LKS_WAITING) &&
		    !(lock->exflags & free_to_pass))
			order_check(w, lock, old);
	}
}
