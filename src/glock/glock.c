/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * glock.c - requests for a glock: queue, wait, instantiate, release.
 *
 * The common case is a request that the cached state answers: one lock and
 * unlock of gl_lock each for queuing and release, nobody to wake, no clock but
 * the coarse one. Everything else goes through the state machine (xmote.c).
 *
 * A thread that sleeps does so on a condition variable on its own stack, which
 * the glock knows only as long as it sleeps.
 */
#include <errno.h>
#include <time.h>

#include "glock/glock_impl.h"

uint64_t glock_now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

/* To some milliseconds, but five times faster. */
static uint32_t now_coarse_sec(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC_COARSE, &now);
	return (uint32_t)now.tv_sec;
}

void *glock_object(const struct glock *gl)
{
	return atomic_load_explicit(&gl->gl_object, memory_order_acquire);
}

void glock_set_object(struct glock *gl, void *object)
{
	atomic_store_explicit(&gl->gl_object, object, memory_order_release);
}

uint64_t glock_number(const struct glock *gl)
{
	return gl->gl_number;
}

enum lm_type glock_type(const struct glock *gl)
{
	return gl->gl_ops->type;
}

bool glock_has_lvb(const struct glock *gl)
{
	return gl->gl_ops->value_block;
}

void *glock_lvb(struct glock *gl)
{
	const struct lockmod *mod = &gl->gl_table->mod;

	return mod->ops->lvb ? mod->ops->lvb(mod->mod, gl) : NULL;
}

void *glock_lm_data(const struct glock *gl)
{
	return atomic_load_explicit(&gl->gl_lm_data, memory_order_acquire);
}

void glock_set_lm_data(struct glock *gl, void *data)
{
	atomic_store_explicit(&gl->gl_lm_data, data, memory_order_release);
}

enum lm_state glock_state(const struct glock *gl)
{
	return atomic_load_explicit(&gl->gl_state, memory_order_relaxed);
}

void glock_set_instantiate(struct glock *gl, bool needed)
{
	pthread_mutex_lock(&gl->gl_lock);
	if (needed)
		gl->gl_flags |= GLF_INSTANTIATE_NEEDED;
	else
		gl->gl_flags &= ~GLF_INSTANTIATE_NEEDED;
	pthread_mutex_unlock(&gl->gl_lock);
}

void glock_set_dirty(struct glock *gl)
{
	/* Asked for by every transaction: do not write what is there. */
	if (!atomic_load_explicit(&gl->gl_dirty, memory_order_relaxed))
		atomic_store(&gl->gl_dirty, true);
}

/* Sleep once, with gl_lock. Whoever changes what is waited for wakes *slot. */
static void sleep_in(struct glock *gl, struct glock_waiter **slot)
{
	struct glock_waiter waiter;

	pthread_cond_init(&waiter.wake, NULL);
	*slot = &waiter;
	pthread_cond_wait(&waiter.wake, &gl->gl_lock);
	*slot = NULL;
	pthread_cond_destroy(&waiter.wake);
}

/* The same for a holder, until a time at most. Returns false then. */
static bool sleep_until(struct glock *gl, struct glock_holder *gh, uint64_t ns)
{
	const struct timespec until = {
		.tv_sec = (time_t)(ns / 1000000000u),
		.tv_nsec = (long)(ns % 1000000000u),
	};
	struct glock_waiter waiter;
	int err;

	pthread_cond_init(&waiter.wake, NULL);
	gh->gh_waiter = &waiter;
	err = pthread_cond_clockwait(&waiter.wake, &gl->gl_lock,
				     CLOCK_MONOTONIC, &until);
	gh->gh_waiter = NULL;
	pthread_cond_destroy(&waiter.wake);
	return err != ETIMEDOUT;
}

void glock_sleep_retirer(struct glock *gl)
{
	sleep_in(gl, &gl->gl_retirer);
}

void glock_ungrant(struct glock *gl, struct glock_holder *gh)
{
	cds_list_del(&gh->gh_list);
	if (--gl->gl_granted == 0)
		gl->gl_used_sec = now_coarse_sec();
	if (gh->gh_flags & GL_NOCACHE)
		glock_request_demote(gl, LM_ST_UNLOCKED);
}

static void wake_granted(struct glock *gl)
{
	struct glock_holder *gh;

	cds_list_for_each_entry (gh, &gl->gl_holders, gh_list) {
		if (!gh->gh_granted)
			break;
		if (gh->gh_waiter)
			pthread_cond_signal(&gh->gh_waiter->wake);
	}
}

/* One attempt to read the object, for all holders. gl_lock is dropped. */
static int instantiate(struct glock *gl, bool nowait)
{
	int err;

	gl->gl_flags &= ~GLF_INSTANTIATE_NEEDED;
	gl->gl_flags |= GLF_INSTANTIATE_IN_PROG;
	pthread_mutex_unlock(&gl->gl_lock);
	err = gl->gl_ops->instantiate(gl, nowait);
	pthread_mutex_lock(&gl->gl_lock);
	gl->gl_flags &= ~GLF_INSTANTIATE_IN_PROG;
	if (err)
		gl->gl_flags |= GLF_INSTANTIATE_NEEDED;
	wake_granted(gl);
	return err;
}

/*
 * The object is needed as it is on disk. The first holder reads it, the others
 * wait; if he fails, the next one tries for himself.
 */
int glock_holder_instantiate(struct glock *gl, struct glock_holder *gh)
{
	bool nowait = gh->gh_flags & GL_NOWAIT;

	if (gh->gh_flags & GL_SKIP)
		return 0;
	for (;;) {
		if (gl->gl_flags & GLF_INSTANTIATE_IN_PROG) {
			if (nowait)
				return -EAGAIN;
			sleep_in(gl, &gh->gh_waiter);
			continue;
		}
		if (!(gl->gl_flags & GLF_INSTANTIATE_NEEDED))
			return 0;
		/* Without an object the need stays, for one that comes later.
		 */
		if (!gl->gl_ops->instantiate || !glock_object(gl))
			return 0;
		return instantiate(gl, nowait);
	}
}

/*
 * Wait for the outcome of a queued request, and end it if it is an error.
 * gl_lock is held, and released.
 */
static int wait_unlock(struct glock *gl, struct glock_holder *gh)
{
	int err;

	while (!gh->gh_granted && !gh->gh_error) {
		if (gh->gh_flags & GL_NOWAIT) {
			glock_unqueue(gl, gh, -EAGAIN);
			glock_run(gl);
		} else {
			sleep_in(gl, &gh->gh_waiter);
		}
	}
	err = gh->gh_error;
	if (!err) {
		err = glock_holder_instantiate(gl, gh);
		if (err) {
			glock_ungrant(gl, gh);
			glock_run(gl);
		}
	}
	if (err)
		gh->gh_gl = NULL;
	pthread_mutex_unlock(&gl->gl_lock);
	return err;
}

/*
 * Must a try fail at once? It may wait for an answer that is on its way to us
 * or to other tries, but not behind somebody who waits
 * (docs/spec/glocks.md 2.4 rule 5).
 */
static bool try_refused(const struct glock *gl)
{
	return (gl->gl_flags & GLF_INVALIDATE_IN_PROGRESS) ||
	       glock_has_firm_waiter(gl);
}

static bool lm_answers_at_once(const struct glock *gl)
{
	const struct lockmod *mod = &gl->gl_table->mod;

	return mod->ops->at_once && mod->ops->at_once(mod->mod) &&
	       !atomic_load(&gl->gl_table->frozen);
}

/*
 * Can the request be answered without waiting? Either by the cached state, or
 * by a lock manager that answers at once, if nothing has to be written or
 * forgotten before it is asked.
 */
static bool nowait_possible(const struct glock *gl,
			    const struct glock_holder *gh)
{
	if ((gl->gl_flags & GLF_BUSY) || gl->gl_waiting ||
	    ((gl->gl_flags & GLF_DEMOTE) && !glock_is_in_recall(gl)))
		return false;
	if (glock_may_grant(gl, gh))
		return true;
	return !gl->gl_granted && !glock_change_needs_work(gl, gh->gh_state) &&
	       lm_answers_at_once(gl);
}

/* What can be said before the request is queued: 0 or the error. */
static int refuse(const struct glock *gl, const struct glock_holder *gh)
{
	if ((gl->gl_flags & GLF_WITHDRAWN) && !(gh->gh_flags & GL_NOEXP))
		return -EIO;
	if ((gh->gh_flags & (GL_TRY | GL_TRY_1CB)) && try_refused(gl))
		return -EAGAIN;
	if ((gh->gh_flags & GL_NOWAIT) && !nowait_possible(gl, gh))
		return -EAGAIN;
	return 0;
}

/* The cached state does not answer at once: the slow way. */
static int enqueue_slowly(struct glock *gl, struct glock_holder *gh)
{
	int err = refuse(gl, gh);

	if (err) {
		gh->gh_gl = NULL;
		return err;
	}
	if (gl->gl_flags & GLF_DEMOTE_IN_PROGRESS)
		glock_hold_missed(gl);
	if (gl->gl_flags & GLF_PENDING_DEMOTE)
		gl->gl_flags |= GLF_USED;
	gh->gh_notify = NULL;
	gh->gh_queued_ns = 0;
	cds_list_add_tail(&gh->gh_list, &gl->gl_holders);
	gl->gl_waiting++;
	glock_run(gl);
	if (!gh->gh_granted && !gh->gh_error)
		gh->gh_queued_ns = glock_now_ns();
	return 0;
}

void glock_holder_set(struct glock_holder *gh, struct glock *gl,
		      enum lm_state state, unsigned flags)
{
	ug_assert(state != LM_ST_UNLOCKED);
	ug_assert(state != LM_ST_DEFERRED || !gl->gl_ops->recall);
	if (flags & GL_NOWAIT)
		flags |= GL_TRY;
	gh->gh_gl = gl;
	gh->gh_state = state;
	gh->gh_flags = flags;
	gh->gh_granted = false;
	gh->gh_error = 0;
	gh->gh_waiter = NULL;
}

static bool granted_at_once(struct glock *gl, struct glock_holder *gh)
{
	if (ug_unlikely((gl->gl_flags & GLF_SLOW) || gl->gl_waiting ||
			!glock_may_grant(gl, gh)))
		return false;
	cds_list_add_tail(&gh->gh_list, &gl->gl_holders);
	glock_grant(gl, gh);
	return true;
}

int glock_enqueue(struct glock *gl, struct glock_holder *gh)
{
	return granted_at_once(gl, gh) ? 0 : enqueue_slowly(gl, gh);
}

int glock_nq(struct glock *gl, enum lm_state state, unsigned flags,
	     struct glock_holder *gh)
{
	int err;

	glock_holder_set(gh, gl, state, flags);
	pthread_mutex_lock(&gl->gl_lock);
	if (ug_likely(granted_at_once(gl, gh))) {
		pthread_mutex_unlock(&gl->gl_lock);
		return 0;
	}
	err = enqueue_slowly(gl, gh);
	if (!err && !(flags & GL_ASYNC))
		return wait_unlock(gl, gh);
	pthread_mutex_unlock(&gl->gl_lock);
	return err;
}

int glock_wait(struct glock_holder *gh)
{
	struct glock *gl = gh->gh_gl;

	pthread_mutex_lock(&gl->gl_lock);
	return wait_unlock(gl, gh);
}

int glock_wait_until(struct glock_holder *gh, uint64_t deadline_ns)
{
	struct glock *gl = gh->gh_gl;

	pthread_mutex_lock(&gl->gl_lock);
	while (!gh->gh_granted && !gh->gh_error) {
		if (!sleep_until(gl, gh, deadline_ns) && !gh->gh_granted &&
		    !gh->gh_error) {
			pthread_mutex_unlock(&gl->gl_lock);
			return -ETIMEDOUT;
		}
	}
	return wait_unlock(gl, gh);
}

/*
 * Tell the lock manager that nobody wants its answer any more, unless the next
 * waiter wants the same. gl_lock is dropped; GLF_CANCELLING keeps the answer
 * from being processed and a new request from being made meanwhile, which
 * would be cancelled instead.
 */
static void cancel_request(struct glock *gl)
{
	const struct lockmod *mod = &gl->gl_table->mod;
	const struct glock_holder *next = glock_first_waiter(gl);

	if ((gl->gl_flags & (GLF_CANCELLING | GLF_CANCELLED |
			     GLF_REPLY_PENDING | GLF_WITHDRAWN)) ||
	    (next && next->gh_state == gl->gl_target))
		return;
	gl->gl_flags |= GLF_CANCELLING | GLF_CANCELLED;
	pthread_mutex_unlock(&gl->gl_lock);
	mod->ops->cancel(mod->mod, gl);
	pthread_mutex_lock(&gl->gl_lock);
	gl->gl_flags &= ~GLF_CANCELLING;
}

/* Is the request under way for this waiter? GLF_RUNNING: it is not yet made. */
static bool is_asked_for(const struct glock *gl, const struct glock_holder *gh)
{
	return (gl->gl_flags & GLF_LOCK) &&
	       !(gl->gl_flags & (GLF_DEMOTE_IN_PROGRESS | GLF_RUNNING)) &&
	       glock_first_waiter(gl) == gh;
}

/* Give up a request that has not been granted. */
static void give_up(struct glock *gl, struct glock_holder *gh)
{
	bool asked_for = is_asked_for(gl, gh);

	if (gh->gh_error)
		return;
	glock_unqueue(gl, gh, 0);
	if (asked_for)
		cancel_request(gl);
	glock_run(gl);
}

void glock_dq(struct glock_holder *gh)
{
	struct glock *gl = gh->gh_gl;

	pthread_mutex_lock(&gl->gl_lock);
	if (ug_likely(gh->gh_granted)) {
		glock_ungrant(gl, gh);
		if (ug_unlikely(
			    !gl->gl_granted &&
			    (gl->gl_waiting || (gl->gl_flags & GLF_DEMOTE))))
			glock_run(gl);
	} else {
		give_up(gl, gh);
	}
	pthread_mutex_unlock(&gl->gl_lock);
	gh->gh_gl = NULL;
}
