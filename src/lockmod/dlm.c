/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * dlm.c - lock_dlm: glock requests to DLM requests, and back.
 *
 *   glock           this file                        lockspace
 *   lock EX   --->  new lock, or conversion  ------>  ugdlm_lock
 *   complete  <---  outcome, value block     <------  its return value, or ast
 *   callback  <---  mode to state            <------  bast
 *   cancel    --->                           ------>  ugdlm_unlock CANCEL
 *   put       --->  unlock; let go           ------>  ugdlm_unlock
 *                   free                     <------  ast
 *
 * A lock outlives its glock until the DLM has confirmed the unlock, or, of a
 * withdrawn mount, until the lockspace is left. Meanwhile it is in `left`.
 *
 * What GFS2's DLM interface offers and is not used: CONVDEADLK, which would
 * drop a mode while what it protects is still cached; ALTPR and ALTCW, since a
 * glock with GL_ANY asks for one state; NOORDER, HEADQUE, EXPEDITE, which pass
 * others by; PERSISTENT, since the locks of a dead member must go
 * (docs/spec/glocks.md 1.5, 13.2).
 */
#include <assert.h>
#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <urcu/list.h>

#include "base/assert.h"
#include "base/log.h"
#include "glock/glock.h"
#include "lockmod/dlm.h"

static_assert(GLOCK_LVB_BYTES == UGDLM_LVB_LEN, "a value block is one");

#define STRIPES 16u
/* So many answers in a row came at once: so will the next one. */
#define AT_ONCE_RUN 64u

/* Guards dl_gl and dl_calling of the locks that belong to it. */
struct stripe {
	pthread_mutex_t lock;
	pthread_cond_t called;	    /* a call is over */
	struct cds_list_head locks; /* with a glock */
};

struct lockmod_dlm {
	struct ugdlm *ls;
	char *who;
	struct stripe stripes[STRIPES];
	pthread_mutex_t left_lock;
	struct cds_list_head left; /* locks without a glock */
	atomic_bool leaving;
	atomic_bool cut;     /* the lockspace is not asked any more */
	atomic_uint calling; /* threads that are asking it */
	atomic_uint at_once_run;
	atomic_uint_fast64_t requests, at_once, asts, basts, cancels, unlocks,
		lvbs_lost;
};

struct dlm_lock {
	struct lockmod_dlm *dl_dlm;
	struct glock *dl_gl; /* NULL: it has gone */
	pthread_t dl_caller; /* runs glock_callback(), if dl_calling */
	bool dl_calling;
	bool dl_has_lvb;
	bool dl_unlocking; /* the next ast is the end of it */
	uint8_t dl_state;  /* enum lm_state before the request under way */
	uint8_t dl_target; /* ... and the one asked for */
	/* For dumps, which look without a lock. */
	_Atomic int8_t dl_mode;
	_Atomic int8_t dl_asked_mode; /* UGDLM_IV: no request, see ask() */
	atomic_uint dl_lkid;
	/* The DLM's while a request is under way. */
	_Alignas(uint64_t) struct ugdlm_lksb dl_lksb;
	struct cds_list_head dl_left; /* or of its stripe, with a glock */
};
static_assert(offsetof(struct dlm_lock, dl_lksb.lvb) % sizeof(uint64_t) == 0,
	      "glock_lvb() is aligned");

static const enum ugdlm_mode mode_of_state[] = {
	[LM_ST_UNLOCKED] = UGDLM_NL,
	[LM_ST_EXCLUSIVE] = UGDLM_EX,
	[LM_ST_DEFERRED] = UGDLM_CW,
	[LM_ST_SHARED] = UGDLM_PR,
};

/* Does the value block come with this change? docs/spec/glocks.md 0.4 */
static const bool reads_lvb[4][4] = {
	[LM_ST_UNLOCKED] = { [LM_ST_EXCLUSIVE] = true,
			     [LM_ST_DEFERRED] = true,
			     [LM_ST_SHARED] = true },
	[LM_ST_DEFERRED] = { [LM_ST_EXCLUSIVE] = true, [LM_ST_SHARED] = true },
	[LM_ST_SHARED] = { [LM_ST_EXCLUSIVE] = true },
};

static const char *mode_name(int mode)
{
	static const char *const names[] = {
		"NL", "CR", "CW", "PR", "PW", "EX"
	};

	return mode < 0 ? "--" : names[mode];
}

static enum lm_state state_of_mode(enum ugdlm_mode mode)
{
	switch (mode) {
	case UGDLM_EX:
	case UGDLM_PW:
		return LM_ST_EXCLUSIVE;
	case UGDLM_PR:
		return LM_ST_SHARED;
	case UGDLM_CW:
	case UGDLM_CR:
		return LM_ST_DEFERRED;
	case UGDLM_IV:
	case UGDLM_NL:
		break;
	}
	return LM_ST_UNLOCKED;
}

static void count(atomic_uint_fast64_t *counter)
{
	atomic_fetch_add_explicit(counter, 1, memory_order_relaxed);
}

static struct stripe *stripe_of(struct dlm_lock *dl)
{
	return &dl->dl_dlm->stripes[(uintptr_t)dl / sizeof(*dl) % STRIPES];
}

void lockmod_dlm_name(enum lm_type type, uint64_t number,
		      char name[LOCKMOD_DLM_NAME_LEN])
{
	char text[LOCKMOD_DLM_NAME_LEN + 1];

	snprintf(text, sizeof(text), "%8x%16llx", (unsigned)type & 0xffff,
		 (unsigned long long)number);
	memcpy(name, text, LOCKMOD_DLM_NAME_LEN);
}

/* ---- answers ---- */

/*
 * A value block that nobody has written, or whose last writer has died, is all
 * zero: without its magic number nobody takes it for anything.
 */
static void take_lvb(struct dlm_lock *dl)
{
	struct ugdlm_lksb *lksb = &dl->dl_lksb;

	if (!dl->dl_has_lvb || !reads_lvb[dl->dl_state][dl->dl_target])
		return;
	if (lksb->sbflags & UGDLM_SB_VALNOTVALID)
		count(&dl->dl_dlm->lvbs_lost);
	else if (lksb->lvb_valid)
		return;
	memset(lksb->lvb, 0, sizeof(lksb->lvb));
}

static void log_strange(const struct dlm_lock *dl, const char *what, int found)
{
	ug_error(dl->dl_dlm->who,
		 "lock %u/%llx: %s %d of the DLM for a request from %s to %s",
		 glock_type(dl->dl_gl),
		 (unsigned long long)glock_number(dl->dl_gl), what, found,
		 mode_name(mode_of_state[dl->dl_state]),
		 mode_name(mode_of_state[dl->dl_target]));
}

static enum lm_outcome outcome_done(struct dlm_lock *dl)
{
	/* A mode that nobody asked for was not prepared for either. */
	if (dl->dl_lksb.mode != mode_of_state[dl->dl_target]) {
		log_strange(dl, "mode", dl->dl_lksb.mode);
		return LM_OUT_ERROR;
	}
	take_lvb(dl);
	return LM_OUT_DONE;
}

static enum lm_outcome outcome_of(struct dlm_lock *dl)
{
	switch (dl->dl_lksb.status) {
	case UGDLM_OK:
		return outcome_done(dl);
	case UGDLM_NOTQUEUED:
		return LM_OUT_BUSY;
	case UGDLM_DEADLOCK:
		return LM_OUT_DEADLOCK;
	case UGDLM_CANCELLED:
		return LM_OUT_CANCELLED;
	case UGDLM_LOST:
		return LM_OUT_ERROR;
	case UGDLM_TIMEDOUT:
	case UGDLM_UNLOCKED:
	case UGDLM_INPROGRESS:
		break;
	}
	log_strange(dl, "status", dl->dl_lksb.status);
	return LM_OUT_ERROR;
}

/* The request under way has ended. The lock may be gone afterwards. */
static void complete(struct dlm_lock *dl, enum lm_outcome outcome)
{
	enum lm_state state = dl->dl_state;

	if (outcome == LM_OUT_DONE)
		state = dl->dl_target;
	atomic_store(&dl->dl_mode, (int8_t)dl->dl_lksb.mode);
	atomic_store(&dl->dl_lkid, dl->dl_lksb.lkid);
	atomic_store(&dl->dl_asked_mode, (int8_t)UGDLM_IV);
	glock_complete(dl->dl_gl, state, outcome);
}

static void end_unlock(struct dlm_lock *dl)
{
	struct lockmod_dlm *dlm = dl->dl_dlm;

	pthread_mutex_lock(&dlm->left_lock);
	cds_list_del(&dl->dl_left);
	pthread_mutex_unlock(&dlm->left_lock);
	free(dl);
}

static void on_ast(void *ctx, struct ugdlm_lksb *lksb)
{
	struct dlm_lock *dl = ctx;

	if (dl->dl_unlocking) {
		end_unlock(dl);
		return;
	}
	count(&dl->dl_dlm->asts);
	complete(dl, outcome_of(dl));
}

/*
 * Whoever puts the glock waits for the end of the call, unless he is called by
 * it. The lock itself stays: its last ast cannot come while this runs.
 */
static void on_bast(void *ctx, struct ugdlm_lksb *lksb, enum ugdlm_mode blocked)
{
	struct dlm_lock *dl = ctx;
	struct stripe *stripe = stripe_of(dl);
	struct glock *gl;

	count(&dl->dl_dlm->basts);
	pthread_mutex_lock(&stripe->lock);
	gl = dl->dl_gl;
	dl->dl_calling = gl;
	dl->dl_caller = pthread_self();
	pthread_mutex_unlock(&stripe->lock);
	if (!gl)
		return;
	glock_callback(gl, state_of_mode(blocked));
	pthread_mutex_lock(&stripe->lock);
	dl->dl_calling = false;
	pthread_cond_broadcast(&stripe->called);
	pthread_mutex_unlock(&stripe->lock);
}

/* ---- requests ---- */

static struct dlm_lock *lock_of(struct lockmod_dlm *dlm, struct glock *gl)
{
	struct dlm_lock *dl = glock_lm_data(gl);

	if (dl)
		return dl;
	dl = calloc(1, sizeof(*dl));
	if (!dl)
		return NULL;
	dl->dl_dlm = dlm;
	dl->dl_gl = gl;
	dl->dl_has_lvb = glock_has_lvb(gl);
	dl->dl_lksb.mode = UGDLM_IV;
	dl->dl_mode = dl->dl_asked_mode = UGDLM_IV;
	pthread_mutex_lock(&stripe_of(dl)->lock);
	cds_list_add(&dl->dl_left, &stripe_of(dl)->locks);
	pthread_mutex_unlock(&stripe_of(dl)->lock);
	glock_set_lm_data(gl, dl);
	return dl;
}

/* False: it must not be asked any more. Else end_call() follows. */
static bool begin_call(struct lockmod_dlm *dlm)
{
	atomic_fetch_add(&dlm->calling, 1);
	if (!atomic_load(&dlm->cut))
		return true;
	atomic_fetch_sub(&dlm->calling, 1);
	return false;
}

static void end_call(struct lockmod_dlm *dlm)
{
	atomic_fetch_sub(&dlm->calling, 1);
}

/*
 * A conversion that may have to wait queues behind the others (QUECVT), or a
 * stream of conversions would pass one by for ever. The DLM refuses the flag
 * with one that cannot wait (docs/spec/glocks.md 7.2).
 */
static bool may_wait(const struct dlm_lock *dl, unsigned flags)
{
	return dl->dl_target != LM_ST_UNLOCKED &&
	       dl->dl_state != LM_ST_EXCLUSIVE && !(flags & UGDLM_NOQUEUE);
}

static unsigned dlm_flags(const struct dlm_lock *dl, unsigned flags)
{
	unsigned f = 0;

	if (flags & (GL_TRY | GL_TRY_1CB))
		f |= UGDLM_NOQUEUE;
	if (flags & GL_TRY_1CB)
		f |= UGDLM_NOQUEUEBAST;
	if (dl->dl_has_lvb)
		f |= UGDLM_VALBLK;
	if (dl->dl_lksb.mode != UGDLM_IV) {
		f |= UGDLM_CONVERT;
		if (may_wait(dl, f))
			f |= UGDLM_QUECVT;
	}
	return f;
}

static void answered_at_once(struct lockmod_dlm *dlm)
{
	count(&dlm->at_once);
	if (atomic_load_explicit(&dlm->at_once_run, memory_order_relaxed) <
	    AT_ONCE_RUN)
		atomic_fetch_add_explicit(&dlm->at_once_run, 1,
					  memory_order_relaxed);
}

static enum lm_outcome outcome_of_refusal(struct dlm_lock *dl, int err)
{
	if (err == -ENOMEM)
		return LM_OUT_NOMEM;
	if (err != -ESHUTDOWN)
		log_strange(dl, "error", -err);
	return LM_OUT_ERROR;
}

/*
 * Asked is marked between the two ends of the call only, and stays marked if
 * another thread is to answer: lockmod_dlm_fail(), which comes when no call is
 * under way, must not answer what the caller does.
 */
static int ask(struct dlm_lock *dl, unsigned flags)
{
	char name[LOCKMOD_DLM_NAME_LEN];
	struct ugdlm_request req = {
		.mode = mode_of_state[dl->dl_target],
		.flags = dlm_flags(dl, flags),
		.name = name,
		.name_len = sizeof(name),
		.lksb = &dl->dl_lksb,
		.ast = on_ast,
		.bast = on_bast,
		.ctx = dl,
		.inline_ok = true,
	};

	struct lockmod_dlm *dlm = dl->dl_dlm;
	int ret;

	lockmod_dlm_name(glock_type(dl->dl_gl), glock_number(dl->dl_gl), name);
	dl->dl_lksb.lvb_valid = false;
	if (!begin_call(dlm))
		return -ESHUTDOWN;
	atomic_store(&dl->dl_asked_mode, (int8_t)req.mode);
	ret = ugdlm_lock(dlm->ls, &req);
	if (ret)
		atomic_store(&dl->dl_asked_mode, (int8_t)UGDLM_IV);
	end_call(dlm);
	return ret;
}

static void dlm_lock(void *mod, struct glock *gl, enum lm_state state,
		     unsigned flags)
{
	struct lockmod_dlm *dlm = mod;
	struct dlm_lock *dl = lock_of(dlm, gl);
	int ret;

	if (!dl) {
		glock_complete(gl, LM_ST_UNLOCKED, LM_OUT_NOMEM);
		return;
	}
	count(&dlm->requests);
	dl->dl_state = (uint8_t)state_of_mode(dl->dl_lksb.mode);
	dl->dl_target = (uint8_t)state;
	ret = ask(dl, flags);
	if (ret == 0) {
		/* The lock is the dispatcher's now, and may be gone. */
		atomic_store_explicit(&dlm->at_once_run, 0,
				      memory_order_relaxed);
	} else if (ret == 1) {
		answered_at_once(dlm);
		complete(dl, outcome_of(dl));
	} else {
		complete(dl, outcome_of_refusal(dl, ret));
	}
}

/* What it cannot cancel has been answered, and the answer is on its way. */
static void dlm_cancel(void *mod, struct glock *gl)
{
	struct lockmod_dlm *dlm = mod;
	struct dlm_lock *dl = glock_lm_data(gl);

	count(&dlm->cancels);
	if (!begin_call(dlm))
		return;
	ugdlm_unlock(dlm->ls, &dl->dl_lksb, UGDLM_CANCEL, false);
	end_call(dlm);
}

static void detach(struct dlm_lock *dl)
{
	struct stripe *stripe = stripe_of(dl);

	pthread_mutex_lock(&stripe->lock);
	while (dl->dl_calling && !pthread_equal(dl->dl_caller, pthread_self()))
		pthread_cond_wait(&stripe->called, &stripe->lock);
	dl->dl_gl = NULL;
	cds_list_del(&dl->dl_left);
	pthread_mutex_unlock(&stripe->lock);
}

static void unlock(struct dlm_lock *dl)
{
	struct lockmod_dlm *dlm = dl->dl_dlm;
	int err;

	if (!begin_call(dlm))
		return;
	count(&dlm->unlocks);
	dl->dl_unlocking = true;
	err = ugdlm_unlock(dlm->ls, &dl->dl_lksb,
			   dl->dl_has_lvb ? UGDLM_VALBLK : 0, false);
	end_call(dlm);
	/* In NL it is in nobody's way; leaving the lockspace ends it. */
	if (err && err != -ESHUTDOWN)
		ug_error(dlm->who, "lock %x stays in NL: error %d",
			 dl->dl_lksb.lkid, -err);
}

static void dlm_put(void *mod, struct glock *gl, bool keep)
{
	struct lockmod_dlm *dlm = mod;
	struct dlm_lock *dl = glock_lm_data(gl);

	if (!dl)
		return;
	glock_set_lm_data(gl, NULL);
	detach(dl);
	if (dl->dl_lksb.mode == UGDLM_IV) {
		free(dl);
		return;
	}
	pthread_mutex_lock(&dlm->left_lock);
	cds_list_add(&dl->dl_left, &dlm->left);
	pthread_mutex_unlock(&dlm->left_lock);
	if (!keep && !atomic_load(&dlm->leaving))
		unlock(dl);
}

static bool dlm_at_once(void *mod)
{
	struct lockmod_dlm *dlm = mod;

	return atomic_load_explicit(&dlm->at_once_run, memory_order_relaxed) >=
	       AT_ONCE_RUN;
}

static void *dlm_lvb(void *mod, struct glock *gl)
{
	struct dlm_lock *dl = glock_lm_data(gl);

	return dl && dl->dl_has_lvb ? dl->dl_lksb.lvb : NULL;
}

static size_t dlm_describe(void *mod, const struct glock *gl, char *line,
			   size_t size)
{
	struct dlm_lock *dl = glock_lm_data(gl);
	int asked;

	if (!dl)
		return 0;
	asked = atomic_load(&dl->dl_asked_mode);
	return (size_t)snprintf(line, size, "m:%s k:%x%s%s",
				mode_name(atomic_load(&dl->dl_mode)),
				atomic_load(&dl->dl_lkid),
				asked == UGDLM_IV ? "" : " q:",
				asked == UGDLM_IV ? "" : mode_name(asked));
}

static const struct lockmod_ops dlm_ops = {
	.name = "lock_dlm",
	.lock = dlm_lock,
	.cancel = dlm_cancel,
	.put = dlm_put,
	.at_once = dlm_at_once,
	.lvb = dlm_lvb,
	.describe = dlm_describe,
};

/* ---- life ---- */

struct lockmod lockmod_dlm(struct lockmod_dlm *dlm)
{
	return (struct lockmod){ .ops = &dlm_ops, .mod = dlm };
}

int lockmod_dlm_create(struct ugdlm *ls, const char *who,
		       struct lockmod_dlm **out)
{
	struct lockmod_dlm *dlm = calloc(1, sizeof(*dlm));

	if (!dlm)
		return -ENOMEM;
	dlm->who = strdup(who);
	if (!dlm->who) {
		free(dlm);
		return -ENOMEM;
	}
	dlm->ls = ls;
	for (unsigned i = 0; i < STRIPES; i++) {
		pthread_mutex_init(&dlm->stripes[i].lock, NULL);
		pthread_cond_init(&dlm->stripes[i].called, NULL);
		CDS_INIT_LIST_HEAD(&dlm->stripes[i].locks);
	}
	pthread_mutex_init(&dlm->left_lock, NULL);
	CDS_INIT_LIST_HEAD(&dlm->left);
	*out = dlm;
	return 0;
}

void lockmod_dlm_leaving(struct lockmod_dlm *dlm)
{
	atomic_store(&dlm->leaving, true);
}

void lockmod_dlm_cut(struct lockmod_dlm *dlm)
{
	static const struct timespec pause = { .tv_nsec = 1000000 };

	atomic_store(&dlm->cut, true);
	/* They do not wait: ugdlm_lock() never blocks. */
	while (atomic_load(&dlm->calling))
		nanosleep(&pause, NULL);
}

/* One with a request under way: its glock stays until it is answered. */
static struct dlm_lock *find_asked(struct stripe *stripe)
{
	struct dlm_lock *dl, *found = NULL;

	pthread_mutex_lock(&stripe->lock);
	cds_list_for_each_entry (dl, &stripe->locks, dl_left) {
		if (atomic_load(&dl->dl_asked_mode) != UGDLM_IV) {
			found = dl;
			break;
		}
	}
	pthread_mutex_unlock(&stripe->lock);
	return found;
}

void lockmod_dlm_fail(struct lockmod_dlm *dlm)
{
	struct dlm_lock *dl;

	for (unsigned i = 0; i < STRIPES; i++)
		while ((dl = find_asked(&dlm->stripes[i])))
			complete(dl, LM_OUT_ERROR);
}

void lockmod_dlm_destroy(struct lockmod_dlm *dlm)
{
	struct dlm_lock *dl, *next;

	cds_list_for_each_entry_safe (dl, next, &dlm->left, dl_left)
		free(dl);
	pthread_mutex_destroy(&dlm->left_lock);
	for (unsigned i = 0; i < STRIPES; i++) {
		pthread_cond_destroy(&dlm->stripes[i].called);
		pthread_mutex_destroy(&dlm->stripes[i].lock);
	}
	free(dlm->who);
	free(dlm);
}

void lockmod_dlm_stats(struct lockmod_dlm *dlm, struct lockmod_dlm_stats *stats)
{
	*stats = (struct lockmod_dlm_stats){
		.requests = dlm->requests,
		.at_once = dlm->at_once,
		.asts = dlm->asts,
		.basts = dlm->basts,
		.cancels = dlm->cancels,
		.unlocks = dlm->unlocks,
		.lvbs_lost = dlm->lvbs_lost,
	};
}
