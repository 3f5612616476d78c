/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * nolock.c - the lock manager of a machine that is alone with its disk.
 *
 * Nothing ever stands against a request, so each is granted within the call
 * that makes it; nobody else exists who could ask for a lock back.
 */
#include "lockmod/nolock.h"

static void nolock_lock(void *mod, struct glock *gl, enum lm_state state,
			unsigned flags)
{
	glock_complete(gl, state, LM_OUT_DONE);
}

/* What was to be cancelled has been answered before lock() returned. */
static void nolock_cancel(void *mod, struct glock *gl)
{
}

static void nolock_put(void *mod, struct glock *gl, bool keep)
{
}

static bool nolock_at_once(void *mod)
{
	return true;
}

static const struct lockmod_ops nolock_ops = {
	.name = "lock_nolock",
	.lock = nolock_lock,
	.cancel = nolock_cancel,
	.put = nolock_put,
	.at_once = nolock_at_once,
};

struct lockmod lockmod_nolock(void)
{
	return (struct lockmod){ .ops = &nolock_ops };
}
