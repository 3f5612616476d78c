/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * request.c - new locks of processes here.
 *
 *   call_lock -> request_go -> master here:      decide, CAST, effects
 *                           -> master elsewhere: REQUEST, reply.c goes on
 *                           -> unknown:          LOOKUP or parked (master.c)
 *
 * Source: docs/spec/dlm.md 1.5, 1.6, 2.5, 3.9.
 */
#include <errno.h>

#include "dlm/engine.h"

static bool expedite_misused(const struct dlm_lock_args *args)
{
	return (args->flags & LKF_EXPEDITE) &&
	       (args->mode != LKM_NL ||
		(args->flags & (LKF_CONVERT | LKF_QUECVT | LKF_NOQUEUE)));
}

int lock_args_check(const struct dlm_engine *engine,
		    const struct dlm_lock_args *args)
{
	uint32_t flags = args->flags;

	if (!mode_valid(args->mode) || (flags & LKF_CANCEL))
		return -EINVAL;
	if (!(flags & LKF_CONVERT) &&
	    ((flags & (LKF_QUECVT | LKF_CONVDEADLK)) ||
	     args->name.len > DLM_NAME_MAX))
		return -EINVAL;
	if ((flags & LKF_CONVDEADLK) && (flags & LKF_NOQUEUE))
		return -EINVAL;
	if (expedite_misused(args))
		return -EINVAL;
	if ((flags & LKF_VALBLK) && (!args->lvb || engine->config.lvblen == 0))
		return -EINVAL;
	if ((flags & LKF_CONVERT) && args->lkid == 0)
		return -EINVAL;
	return 0;
}

static struct lkb *lkb_for_call(struct dlm_engine *engine, struct rsb *rsb,
				const struct dlm_lock_args *args)
{
	struct lkb *lkb = lkb_create(engine, rsb);

	lkb->exflags = args->flags;
	lkb->rqmode = (int8_t)args->mode;
	lkb->ctx = args->ctx;
	lkb->pid = args->pid;
	lkb->owner = args->owner;
	if (args->wants_bast)
		lkb->flags |= LKB_WANTS_BAST;
	if (args->user)
		lkb->flags |= LKB_USER;
	lvb_take_argument(engine, lkb, args->lvb);
	return lkb;
}

int call_lock(struct dlm_engine *engine, struct dlm_lock_args *args)
{
	uint32_t hash = dlm_hash(args->name.bytes, args->name.len);
	struct rsb *rsb =
		rsb_find(engine, args->name.bytes, args->name.len, hash);
	struct lkb *lkb;
	int error;

	error = lkb_make_room(engine);
	if (!error)
		error = step_reserve_rsb(engine, rsb);
	if (error)
		return error;
	rsb = master_open(engine, args->name.bytes, args->name.len, hash);
	lkb = lkb_for_call(engine, rsb, args);
	args->lkid = lkb->id;
	TRACE(engine, "request %08x %s flags %x name %08x", lkb->id,
	      mode_name(args->mode), args->flags, hash);
	request_go(engine, lkb);
	return 0;
}

static void request_here(struct dlm_engine *engine, struct lkb *lkb)
{
	int result = master_request(engine, lkb);

	if (result != -EINPROGRESS)
		cast_queue(engine, lkb, result);
	master_request_effects(engine, lkb, result);
	if (result == -EAGAIN)
		lkb_free(engine, lkb);
}

/*
 * Also for requests that were parked, that were sent to a node which is not
 * the master, or that recovery repeats. The lock may be gone on return.
 */
void request_go(struct dlm_engine *engine, struct lkb *lkb)
{
	struct rsb *rsb = lkb->rsb;

	if (!master_known(engine, lkb))
		return;
	if (!rsb_is_master(engine, rsb)) {
		waiter_add(engine, lkb, DLM_MSG_REQUEST, rsb->master);
		send_lkb(engine, lkb, rsb->master, DLM_MSG_REQUEST, 0);
		return;
	}
	if (rsb->first_lkid == lkb->id)
		rsb->first_lkid = 0;
	request_here(engine, lkb);
	if (rsb->lookup.first && !rsb->first_lkid)
		master_release_parked(engine, rsb);
}
