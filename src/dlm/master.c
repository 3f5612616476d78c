/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * master.c - finding the master of a resource, and the cache of idle ones.
 *
 * Until the master is known one lock (first_lkid) asks, and all others of the
 * resource are parked behind it. A cached answer may be out of date: the first
 * request goes to that node, the others wait until it has proved right.
 *
 * Who forgets a resource can be asked for it a moment later:
 *
 *   third node           old master              directory
 *      |  REQUEST (cached) | idle: freed  REMOVE   |
 *      |------------------>| --------------------->|
 *      |<--- EBADR --------|                       |
 *      |  LOOKUP ------------------------------->  | becomes master itself
 *
 *   directory node       old master
 *      |<--- REMOVE -------| in use here: ignored
 *      |---- REQUEST ----->| from the directory node: master again
 *
 * Source: docs/spec/dlm.md 2.5 - 2.7, 3.4.
 */
#include <errno.h>

#include "dlm/engine.h"

/* For a new lock of a process here: the resource is in use from now on. */
struct rsb *master_open(struct dlm_engine *engine, const uint8_t *name,
			unsigned len, uint32_t hash)
{
	struct rsb *rsb = rsb_find(engine, name, len, hash);

	if (!rsb) {
		rsb = rsb_create(engine, name, len, hash);
	} else if (rsb->where != RSB_KEEP) {
		rsb_set_where(engine, rsb, RSB_KEEP);
		if (rsb->master && !rsb_is_master(engine, rsb))
			rsb->flags |= RES_UNCERTAIN;
	}
	return rsb;
}

/*
 * Is the master known, so that this request can go on? Otherwise it is parked,
 * or it has sent the LOOKUP.
 */
bool master_known(struct dlm_engine *engine, struct lkb *lkb)
{
	struct rsb *rsb = lkb->rsb;
	int32_t dir;

	if (rsb->first_lkid && rsb->first_lkid != lkb->id) {
		lkb_park(lkb);
		return false;
	}
	if (rsb->master) {
		if (rsb->flags & RES_UNCERTAIN)
			rsb->first_lkid = lkb->id;
		rsb->flags &= (uint8_t)~RES_UNCERTAIN;
		return true;
	}
	dir = directory_node(engine, rsb->hash);
	if (dir == engine->config.nodeid) {
		rsb->master = dir;
		return true;
	}
	rsb->first_lkid = lkb->id;
	waiter_add(engine, lkb, DLM_MSG_LOOKUP, dir);
	send_lkb(engine, lkb, dir, DLM_MSG_LOOKUP, 0);
	return false;
}

void master_release_parked(struct dlm_engine *engine, struct rsb *rsb)
{
	rsb->first_lkid = 0;
	while (rsb->lookup.first && !rsb->first_lkid) {
		struct lkb *lkb = rsb->lookup.first;

		lkb_unpark(lkb);
		request_go(engine, lkb);
	}
}

/* The lock that asked for the master is gone: the next one asks. */
void master_first_gone(struct dlm_engine *engine, struct rsb *rsb)
{
	struct lkb *lkb = rsb->lookup.first;

	rsb->first_lkid = 0;
	if (!lkb)
		return;
	if (rsb_is_master(engine, rsb)) {
		master_release_parked(engine, rsb);
		return;
	}
	lkb_unpark(lkb);
	rsb->first_lkid = lkb->id;
	request_go(engine, lkb);
}

/* The first request has been answered by the master: it is the right one. */
void master_confirm(struct dlm_engine *engine, struct rsb *rsb, int result)
{
	if (rsb->first_lkid && (result == 0 || result == -EINPROGRESS))
		master_release_parked(engine, rsb);
}

static bool has_queued(const struct rsb *rsb)
{
	return rsb->granted.first || rsb->convert.first || rsb->waiting.first;
}

/*
 * A REQUEST has come: are we the master (spec 3.4)? -EBADR: the resource is
 * unknown here; -ENOTBLK: we use it, but another is master, or we do not know
 * yet. The directory node knows best, whatever it sends here is ours; but not
 * what was sent before a recovery, when it may not have been one, to whom it
 * took for the master then; nor what another has granted us locks on.
 */
int master_for_request(struct dlm_engine *engine, int32_t from,
		       const uint8_t *name, unsigned len, uint32_t hash,
		       struct rsb **out)
{
	struct rsb *rsb = rsb_find(engine, name, len, hash);
	int32_t dir = directory_node(engine, hash);
	int32_t us = engine->config.nodeid;
	bool from_dir = from == dir && !engine->old_message;

	if (!rsb) {
		if (!from_dir && us != dir)
			return -EBADR;
		rsb = rsb_create(engine, name, len, hash);
		rsb->master = us;
	} else if (rsb->master != us) {
		if (!from_dir || has_queued(rsb))
			return -ENOTBLK;
		rsb->master = us;
	}
	if (rsb->where != RSB_KEEP)
		rsb_set_where(engine, rsb, RSB_KEEP);
	*out = rsb;
	return 0;
}

static bool toss_due(const struct dlm_engine *engine, const struct rsb *rsb)
{
	return !rsb->master ||
	       engine->now_ns - rsb->toss_ns >= engine->config.toss_ns;
}

/*
 * Free what has been idle for long. FIFO of the link to the directory node
 * keeps this REMOVE before any later LOOKUP of the same name (spec 9.1 #14).
 */
int toss_expire(struct dlm_engine *engine)
{
	for (unsigned i = 0; !cds_list_empty(&engine->toss); i++) {
		struct rsb *rsb =
			cds_list_first_entry(&engine->toss, struct rsb, list);
		int32_t dir = directory_node(engine, rsb->hash);

		if (!toss_due(engine, rsb))
			return 0;
		if (i == DLM_TOSS_BATCH) {
			engine->out->more = true;
			return 0;
		}
		if (step_reserve(engine, 1))
			return -ENOMEM;
		if (rsb_is_master(engine, rsb) && dir != engine->config.nodeid)
			send_name(engine, rsb, dir, DLM_MSG_REMOVE);
		rsb_free(engine, rsb);
	}
	return 0;
}
