/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * client.c - processes that lock at random, and remember what they were told.
 *
 * The rules that hold at any moment are checked here, from what clients know:
 * no two incompatible modes (P1), one completion per call (P6), a BAST only
 * for a mode in the way (P10); value blocks are in blocks.c (P5). Names as in
 * docs/spec/dlm.md 9.3.
 */
#include <errno.h>
#include <string.h>

#include "base/compiler.h"
#include "sim.h"

/* Made once: names are compared at every step. */
const struct dlm_name *resource_name(unsigned resource)
{
	static struct dlm_name names[RESOURCES_MAX];
	struct dlm_name *name = &names[resource];

	if (name->bytes[0])
		return name;
	name->len =
		(uint8_t)snprintf((char *)name->bytes, DLM_NAME_MAX, "%8x%16x",
				  resource % 3, resource * 77u + 5);
	if (resource == 5)
		name->len = 0; /* the empty name is a name */
	return name;
}

bool client_lives(const struct world *w, const struct client *c)
{
	return c->used && w->nodes[c->node].alive;
}

/* The mode that the client can rely on at this moment. */
int client_relies_on(const struct client *c)
{
	if (c->unlocking || c->orphan)
		return LKM_IV;
	if (!c->converting)
		return c->held;
	if (c->flags & LKF_CONVDEADLK)
		return LKM_IV;
	/* PR and CW have CR in common; an alternate may be a lower mode */
	if ((c->held == LKM_PR && c->wanted == LKM_CW) ||
	    (c->held == LKM_CW && c->wanted == LKM_PR) ||
	    (c->held > LKM_CR && (c->flags & (LKF_ALTPR | LKF_ALTCW))))
		return LKM_CR;
	return c->held;
}

static bool conflict(int a, int b)
{
	return a >= 0 && b >= 0 &&
	       !dlm_modes_compatible((enum dlm_mode)a, (enum dlm_mode)b);
}

static void check_safety(struct world *w, const struct client *c)
{
	for (unsigned i = 0; i < w->client_high; i++) {
		const struct client *other = &w->clients[i];

		if (other == c || !client_lives(w, other) ||
		    other->resource != c->resource)
			continue;
		if (conflict(client_relies_on(c), client_relies_on(other)))
			fail(w,
			     "resource %u: node %d lock %08x has mode %d, "
			     "node %d lock %08x has mode %d",
			     c->resource, c->node, c->lkid, c->held,
			     other->node, other->lkid, other->held);
	}
}

void client_node_died(struct world *w, const struct node *node)
{
	for (unsigned i = 0; i < w->client_high; i++) {
		struct client *c = &w->clients[i];

		if (!c->used || c->node != node->id)
			continue;
		block_vanishes(w, c);
		c->used = false;
	}
	blocks_step_done(w);
}

/* What comes back */

static struct client *client_of(struct world *w, const struct node *node,
				uint64_t ctx)
{
	struct client *c = &w->clients[ctx % CLIENTS_MAX];

	if (!c->used || c->serial != ctx / CLIENTS_MAX || c->node != node->id)
		return NULL;
	return c;
}

static void told_bast(struct world *w, struct client *c,
		      const struct dlm_cast *bast)
{
	if (!c->wants_bast)
		fail(w, "lock %08x: bast without a blocking function", c->lkid);
	if (!conflict(c->held, bast->bast))
		fail(w, "lock %08x: bast for mode %d, which %d allows", c->lkid,
		     bast->bast, c->held);
	c->basts |= 1u << bast->bast;
}

static bool status_is_due(const struct client *c, int status)
{
	switch (status) {
	case 0:
		return true;
	case -EAGAIN:
		return c->flags & LKF_NOQUEUE;
	case -EDEADLK:
		return (c->converting && !(c->flags & LKF_NODLCKWT) &&
			!(c->flags & LKF_CONVDEADLK)) ||
		       c->cancelled;
	case -ETIMEDOUT:
	case -DLM_ECANCEL:
		return c->cancelled;
	default:
		return false;
	}
}

static void check_granted(struct world *w, struct client *c,
			  const struct dlm_cast *cast)
{
	bool alternate = cast->sbflags & SBF_ALTMODE;

	if (!alternate && cast->mode != c->wanted)
		fail(w, "lock %08x: granted %d, asked for %d", c->lkid,
		     cast->mode, c->wanted);
	if (alternate && !((c->flags & LKF_ALTPR) && cast->mode == LKM_PR) &&
	    !((c->flags & LKF_ALTCW) && cast->mode == LKM_CW))
		fail(w, "lock %08x: strange alternate %d", c->lkid, cast->mode);
	w->grants++;
	/* the mode has stayed: the master has answered, so the mark is set */
	if (c->held == cast->mode && (c->flags & LKF_IVVALBLK) && !c->unlocking)
		w->blocks[c->resource].marked_ns = w->now_ns;
	c->held = cast->mode;
	c->basts = 0;
	check_safety(w, c);
	/* over an unlock that is on its way the news may be old */
	if (w->blocks[c->resource].used && cast->lvb_valid && !c->unlocking)
		block_read(w, c, cast);
}

static void told_cast(struct world *w, struct client *c,
		      const struct dlm_cast *cast)
{
	if (cast->status == -DLM_EUNLOCK) {
		if (!c->unlocking)
			fail(w, "lock %08x: unlocked by nobody", c->lkid);
		c->used = false;
		return;
	}
	if (!c->requesting && !c->converting)
		fail(w, "lock %08x: status %d, and nothing was asked", c->lkid,
		     cast->status);
	if (!status_is_due(c, cast->status))
		fail(w, "lock %08x: status %d, flags %x", c->lkid, cast->status,
		     c->flags);
	if (cast->status == 0) {
		check_granted(w, c, cast);
	} else {
		c->held = cast->mode;
		check_safety(w, c);
	}
	c->used = cast->status == 0 || c->converting;
	c->requesting = c->converting = c->cancelled = false;
}

void client_told(struct world *w, struct node *node,
		 const struct dlm_update *up)
{
	struct client *c = client_of(w, node, up->cast.ctx);

	if (!c)
		fail(w, "node %d: callback for a lock that is gone (%08x)",
		     node->id, up->cast.lkid);
	if (c->orphan)
		fail(w, "lock %08x: callback to a dead owner", c->lkid);
	w->last_told[node->id] = (unsigned)(c - w->clients);
	if (up->kind == DLM_UP_BAST)
		told_bast(w, c, &up->cast);
	else
		told_cast(w, c, &up->cast);
}

/* What clients do */

static uint32_t request_flags(struct world *w, int mode)
{
	uint32_t flags = 0;

	if (mode == LKM_NL && chance(w, 30))
		return LKF_EXPEDITE;
	if (chance(w, 20))
		flags |= LKF_NOQUEUE | (chance(w, 40) ? LKF_NOQUEUEBAST : 0);
	if (chance(w, 5))
		flags |= LKF_HEADQUE;
	if (chance(w, 5))
		flags |= LKF_NOORDER;
	if (chance(w, 4))
		flags |= LKF_ALTPR;
	if (chance(w, 4))
		flags |= LKF_ALTCW;
	if (chance(w, 5))
		flags |= LKF_PERSISTENT;
	return flags;
}

static uint32_t convert_flags(struct world *w, int from, int to)
{
	static const uint8_t queue_to[6] = { 0x3e, 0x3c, 0x38, 0x34, 0x20, 0 };
	uint32_t flags = LKF_CONVERT;

	if ((queue_to[from] >> to & 1) && chance(w, 40))
		flags |= LKF_QUECVT;
	if (chance(w, 15))
		flags |= LKF_NOQUEUE | (chance(w, 40) ? LKF_NOQUEUEBAST : 0);
	else if (chance(w, 15))
		flags |= LKF_CONVDEADLK;
	if (chance(w, 15))
		flags |= LKF_NODLCKWT;
	if (chance(w, 4))
		flags |= LKF_HEADQUE;
	if (chance(w, 4))
		flags |= LKF_ALTPR;
	if (chance(w, 4))
		flags |= LKF_ALTCW;
	return flags;
}

static int call(struct world *w, struct node *node, struct dlm_event *event)
{
	int error = node_step(w, node, event);

	if (error == 0)
		w->operations++;
	else if (error != -EAGAIN && error != -EBUSY)
		fail(w, "node %d: call refused: %d", node->id, error);
	return error;
}

static struct client *client_new(struct world *w)
{
	unsigned i = 0;

	while (i < w->client_high && w->clients[i].used)
		i++;
	if (i == CLIENTS_MAX)
		return NULL;
	if (i == w->client_high)
		w->client_high++;
	memset(&w->clients[i], 0, sizeof(w->clients[i]));
	w->clients[i].serial = ++w->next_serial;
	return &w->clients[i];
}

static uint64_t ctx_of(const struct world *w, const struct client *c)
{
	return c->serial * CLIENTS_MAX + (uint64_t)(c - w->clients);
}

static int some_mode(struct world *w)
{
	if (chance(w, w->profile->writes))
		return LKM_PW + (int)choose(w, 2);
	return (int)choose(w, 6);
}

static void do_request(struct world *w, struct node *node)
{
	struct client *c = client_new(w);
	struct dlm_event event = { .kind = DLM_EV_LOCK };
	uint8_t lvb[DLM_LVB_MAX];

	if (!c)
		return;
	c->node = node->id;
	c->resource = (unsigned)choose(w, w->resource_count);
	c->held = LKM_IV;
	c->wanted = some_mode(w);
	c->flags = request_flags(w, c->wanted);
	c->wants_bast = chance(w, 80);
	c->owner = 1 + (uint32_t)choose(w, 4);
	c->since_ns = w->now_ns;
	if (w->blocks[c->resource].used)
		c->flags |= LKF_VALBLK;
	block_pack(lvb, block_value(w, c, c->wanted, 0));
	event.lock = (struct dlm_lock_args){
		.mode = (enum dlm_mode)c->wanted,
		.flags = c->flags,
		.wants_bast = c->wants_bast,
		.owner = c->owner,
		.pid = c->owner,
		.ctx = ctx_of(w, c),
		.lvb = lvb,
	};
	event.lock.name = *resource_name(c->resource);
	/* the completion may come before the call returns */
	c->used = c->requesting = true;
	if (call(w, node, &event))
		c->used = false;
	else
		c->lkid = event.lock.lkid;
}

static void do_convert(struct world *w, struct node *node, struct client *c,
		       int to)
{
	struct dlm_event event = { .kind = DLM_EV_LOCK };
	struct client old = *c;
	struct block old_block = w->blocks[c->resource];
	uint8_t lvb[DLM_LVB_MAX];
	uint64_t value;

	c->wanted = to;
	c->flags = convert_flags(w, c->held, to);
	value = block_value(w, c, to, c->flags);
	if (w->blocks[c->resource].used)
		c->flags |= LKF_VALBLK;
	if (block_writes(c->held, to) && chance(w, w->profile->marks))
		c->flags |= LKF_IVVALBLK;
	block_pack(lvb, value);
	event.lock = (struct dlm_lock_args){
		.mode = (enum dlm_mode)to,
		.flags = c->flags,
		.lkid = c->lkid,
		.wants_bast = c->wants_bast,
		.ctx = ctx_of(w, c),
		.lvb = lvb,
	};
	block_written(w, c, to, c->flags, value);
	/* an alternate below PW writes what is passed, the last value */
	if (c->held == LKM_PW && (c->flags & (LKF_ALTPR | LKF_ALTCW)))
		block_trust(&w->blocks[c->resource]);
	c->converting = true;
	c->since_ns = w->now_ns;
	if (call(w, node, &event) == 0)
		return;
	*c = old;
	w->blocks[c->resource] = old_block;
}

static void do_unlock(struct world *w, struct node *node, struct client *c,
		      uint32_t flags)
{
	struct dlm_event event = { .kind = DLM_EV_UNLOCK };
	struct block old_block = w->blocks[c->resource];
	uint64_t old_since_ns = c->since_ns;
	bool idle = !c->requesting && !c->converting;
	/* whether it counts over a conversion depends on what is in flight */
	uint64_t value = idle ? block_value(w, c, LKM_NL, 0)
			      : w->blocks[c->resource].last;
	uint8_t lvb[DLM_LVB_MAX];

	if (w->blocks[c->resource].used)
		flags |= LKF_VALBLK;
	if (chance(w, w->profile->marks) && idle)
		flags |= LKF_IVVALBLK;
	block_pack(lvb, value);
	event.unlock = (struct dlm_unlock_args){ .lkid = c->lkid,
						 .flags = flags,
						 .lvb = lvb };
	if (idle)
		block_written(w, c, LKM_NL, flags, value);
	else if (c->held >= LKM_PW)
		block_trust(&w->blocks[c->resource]);
	c->unlocking = true;
	c->since_ns = w->now_ns;
	if (call(w, node, &event) == 0)
		return;
	c->unlocking = false;
	c->since_ns = old_since_ns;
	w->blocks[c->resource] = old_block;
}

static void do_cancel(struct world *w, struct node *node, struct client *c)
{
	static const int names[] = { 0, 0, 0, -EDEADLK, -ETIMEDOUT };
	struct dlm_event event = { .kind = DLM_EV_UNLOCK };
	bool was = c->cancelled;

	event.unlock = (struct dlm_unlock_args){
		.lkid = c->lkid,
		.flags = LKF_CANCEL,
		.cancel_status = names[choose(w, UG_ARRAY_SIZE(names))],
	};
	c->cancelled = c->requesting || c->converting;
	if (call(w, node, &event))
		c->cancelled = was;
}

/* An owner goes: what it has is unlocked, or stays as an orphan. */
static void do_close(struct world *w, struct node *node, uint32_t owner)
{
	struct dlm_event event = { .kind = DLM_EV_CLOSE };

	if (!dlm_is_running(node->engine))
		return;
	for (unsigned i = 0; i < w->client_high; i++) {
		struct client *c = &w->clients[i];

		if (!c->used || c->node != node->id || c->owner != owner)
			continue;
		block_vanishes(w, c);
		w->blocks[c->resource].may_doubt = true;
		c->used = false;
	}
	event.close.owner = owner;
	call(w, node, &event);
	if (chance(w, 50) || w->draining)
		return;
	event = (struct dlm_event){ .kind = DLM_EV_PURGE };
	event.purge.nodeid = 0;
	call(w, node, &event);
}

static struct client *pick(struct world *w, const struct node *node)
{
	struct client *found = &w->clients[w->last_told[node->id]];
	unsigned n = 0;

	if (found->used && found->node == node->id && !found->unlocking &&
	    chance(w, w->profile->again))
		return found;
	found = NULL;

	for (unsigned i = 0; i < w->client_high; i++) {
		struct client *c = &w->clients[i];

		if (c->used && c->node == node->id && !c->unlocking &&
		    choose(w, ++n) == 0)
			found = c;
	}
	return found;
}

static void act_on(struct world *w, struct node *node, struct client *c)
{
	unsigned how = (unsigned)choose(w, 100);

	if (c->requesting || c->converting) {
		if (how < w->profile->cancels)
			do_cancel(w, node, c);
		else if (how < w->profile->cancels + 10)
			do_unlock(w, node, c, LKF_FORCEUNLOCK);
		else if (how < w->profile->cancels + 14)
			do_unlock(w, node, c, 0);
	} else if (c->basts && how < 60) {
		do_convert(w, node, c, LKM_NL);
	} else if (how < w->profile->unlocks) {
		do_unlock(w, node, c, how < 5 ? LKF_FORCEUNLOCK : 0);
	} else {
		do_convert(w, node, c, some_mode(w));
	}
}

/* Give everything back; who has chosen to sit in a deadlock must get out. */
static void drain(struct world *w, struct node *node)
{
	struct dlm_event purge = { .kind = DLM_EV_PURGE };

	for (unsigned i = 0; i < w->client_high; i++) {
		struct client *c = &w->clients[i];
		bool busy = c->requesting || c->converting;

		if (!c->used || c->node != node->id || c->unlocking)
			continue;
		if (!busy)
			do_unlock(w, node, c, 0);
		else if ((c->flags & LKF_NODLCKWT) &&
			 w->now_ns - c->since_ns > SEC)
			do_unlock(w, node, c, LKF_FORCEUNLOCK);
	}
	if (dlm_is_running(node->engine) && chance(w, 10))
		call(w, node, &purge);
}

bool client_gives_back(struct world *w, struct node *node)
{
	bool any = false;

	for (unsigned i = 0; i < w->client_high; i++) {
		struct client *c = &w->clients[i];

		if (!c->used || c->node != node->id)
			continue;
		any = true;
		if (!c->unlocking)
			do_unlock(w, node, c, LKF_FORCEUNLOCK);
	}
	return any;
}

void client_act(struct world *w, struct node *node)
{
	struct client *c;

	if (w->draining) {
		drain(w, node);
		return;
	}
	if (w->quiet)
		return;
	for (unsigned n = 1 + (unsigned)choose(w, 3); n; n--) {
		c = pick(w, node);
		if (!c ||
		    (chance(w, 25) && w->client_high < w->profile->locks_max))
			do_request(w, node);
		else if (chance(w, 1))
			do_close(w, node, 1 + (uint32_t)choose(w, 4));
		else
			act_on(w, node, c);
	}
}

unsigned clients_left(const struct world *w)
{
	unsigned n = 0;

	for (unsigned i = 0; i < w->client_high; i++)
		n += w->clients[i].used;
	return n;
}

void clients_print(const struct world *w)
{
	for (unsigned i = 0; i < w->client_high; i++) {
		const struct client *c = &w->clients[i];

		if (c->used)
			printf("  node %d lock %08x resource %u: held %d, "
			       "wanted %d, flags %x%s%s%s\n",
			       c->node, c->lkid, c->resource, c->held,
			       c->wanted, c->flags,
			       c->requesting ? " requesting" : "",
			       c->converting ? " converting" : "",
			       c->unlocking ? " unlocking" : "");
	}
}
