/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * xmote.c - the state machine of a glock: grant, request, give back.
 *
 * One thread at a time runs it (GLF_RUNNING): whoever has something new for
 * the glock. Others leave their news under gl_lock and go; the runner looks
 * again after every step. A step that calls out drops gl_lock.
 *
 *                     +------------------------- GLF_LOCK ------------------+
 *   demote wanted,    |                                                     |
 *   nobody holds  --> | [sync] -> [invalidate] -> ops->lock ... answer      |
 *   head waiter   --> |                                           |         |
 *   not grantable     +-------------------------------------------|---------+
 *                                                                 v
 *     done: new state, grant (before any demotion that came meanwhile)
 *     busy: fail the tries    cancelled: ask for the new head
 *     deadlock: demote to unlocked, ask again    error: fail all
 *
 * Before a demotion, ops->recall, during which the glock is as ever
 * (gldemote.c).
 *
 * Order of the work before a request (docs/spec/glocks.md 2.7): what was
 * changed under EX is durable before it is forgotten, and forgotten before the
 * lock manager hears that we give way. A failed sync stops there: to tell the
 * lock manager would show others a disk without our changes.
 *
 * A lock manager that answers within ops->lock (lock_nolock) finds the runner
 * at work, and leaves the answer for it: no recursion.
 *
 * With workers (glwork.c) a runner that is none of them stops before sync and
 * invalidate, and has one go on from there.
 */
#include <errno.h>
#include <time.h>

#include "base/log.h"
#include "glock/glock_impl.h"

#define GL_TRIES (GL_TRY | GL_TRY_1CB)

static const char *const outcome_name[] = {
	[LM_OUT_DONE] = "done",		  [LM_OUT_BUSY] = "busy",
	[LM_OUT_CANCELLED] = "cancelled", [LM_OUT_DEADLOCK] = "deadlock",
	[LM_OUT_NOMEM] = "out of memory", [LM_OUT_ERROR] = "error",
};

/* Until a demotion is tried again. */
#define NO_MEMORY_MS 20u
static_assert(NO_MEMORY_MS < GLOCK_WHEEL_SLOTS, "a delay must fit the wheel");

/* The outcome of a queued request is known: tell whoever waits for it. */
static void tell(struct glock_holder *gh)
{
	if (gh->gh_waiter)
		pthread_cond_signal(&gh->gh_waiter->wake);
	if (gh->gh_notify)
		gh->gh_notify(gh);
}

/* Source: docs/spec/glocks.md 2.4 rule 2. */
bool glock_may_grant(const struct glock *gl, const struct glock_holder *gh)
{
	enum lm_state cached = gl->gl_state;

	if ((gh->gh_flags & GL_EXACT) && cached != gh->gh_state)
		return false;
	if (gl->gl_granted) {
		if (gl->gl_granted_state != gh->gh_state)
			return false;
		if (gh->gh_state != LM_ST_EXCLUSIVE)
			return true;
		return gl->gl_granted_share && (gh->gh_flags & GL_NODE_SCOPE);
	}
	if (cached == gh->gh_state || cached == LM_ST_EXCLUSIVE)
		return true;
	return (gh->gh_flags & GL_ANY) && cached != LM_ST_UNLOCKED &&
	       gh->gh_state != LM_ST_EXCLUSIVE;
}

void glock_grant(struct glock *gl, struct glock_holder *gh)
{
	gh->gh_granted = true;
	gl->gl_granted_state = gh->gh_state;
	gl->gl_granted_share = gh->gh_flags & GL_NODE_SCOPE;
	gl->gl_granted++;
}

struct glock_holder *glock_first_waiter(const struct glock *gl)
{
	struct glock_holder *gh;

	if (!gl->gl_waiting)
		return NULL;
	cds_list_for_each_entry (gh, &gl->gl_holders, gh_list) {
		if (!gh->gh_granted)
			return gh;
	}
	return NULL;
}

void glock_unqueue(struct glock *gl, struct glock_holder *gh, int err)
{
	cds_list_del(&gh->gh_list);
	gl->gl_waiting--;
	gh->gh_error = err;
	if (err)
		tell(gh);
}

bool glock_has_firm_waiter(const struct glock *gl)
{
	const struct glock_holder *gh;

	if (!gl->gl_waiting)
		return false;
	cds_list_for_each_entry (gh, &gl->gl_holders, gh_list) {
		if (!gh->gh_granted && !(gh->gh_flags & GL_TRIES))
			return true;
	}
	return false;
}

/*
 * Fail the waiters that have one of the flags `with` (0: whatever they have)
 * and none of `without`. Returns whether there was one.
 */
static bool fail_waiters(struct glock *gl, unsigned with, unsigned without,
			 int err)
{
	struct glock_holder *gh, *next;
	bool any = false;

	if (!gl->gl_waiting)
		return false;
	cds_list_for_each_entry_safe (gh, next, &gl->gl_holders, gh_list) {
		if (gh->gh_granted || (gh->gh_flags & without))
			continue;
		if (with && !(gh->gh_flags & with))
			continue;
		glock_unqueue(gl, gh, err);
		any = true;
	}
	return any;
}

static bool fail_tries(struct glock *gl)
{
	return fail_waiters(gl, GL_TRIES, 0, -EAGAIN);
}

void glock_fail_without_noexp(struct glock *gl)
{
	fail_waiters(gl, 0, GL_NOEXP, -EIO);
}

static void grant_waiter(struct glock *gl, struct glock_holder *gh)
{
	gl->gl_waiting--;
	glock_grant(gl, gh);
	if (gh->gh_queued_ns)
		glock_hist_add(glock_counters(gl)->wait_ns,
			       glock_now_ns() - gh->gh_queued_ns);
	tell(gh);
}

/* Grant from the head of the waiters on, and stop at the first that cannot. */
static void grant_in_order(struct glock *gl)
{
	struct glock_holder *gh = glock_first_waiter(gl);

	while (gh && glock_may_grant(gl, gh)) {
		grant_waiter(gl, gh);
		gh = !gl->gl_waiting
			     ? NULL
			     : cds_list_entry(gh->gh_list.next,
					      struct glock_holder, gh_list);
	}
}

/*
 * During a recall: whoever can be granted is, past those who cannot. The recall
 * may wait for him, and they wait for the demotion, which waits for the recall.
 */
static void grant_any(struct glock *gl)
{
	struct glock_holder *first = glock_first_waiter(gl);
	struct glock_holder *gh, *next;

	cds_list_for_each_entry_safe (gh, next, &gl->gl_holders, gh_list) {
		if (gh->gh_granted || !glock_may_grant(gl, gh))
			continue;
		if (gh == first) {
			first = cds_list_entry(gh->gh_list.next,
					       struct glock_holder, gh_list);
		} else {
			/* The granted ones stand in front. */
			cds_list_del(&gh->gh_list);
			cds_list_add_tail(&gh->gh_list, &first->gh_list);
		}
		grant_waiter(gl, gh);
	}
}

/*
 * Behind a holder, tries fail. Who waited behind a try that has failed may be
 * grantable now.
 */
static void promote(struct glock *gl)
{
	do {
		grant_in_order(gl);
	} while (gl->gl_waiting && gl->gl_granted && fail_tries(gl));
	if (gl->gl_waiting && glock_is_in_recall(gl))
		grant_any(gl);
}

static bool wants_sync(const struct glock *gl, enum lm_state target)
{
	return gl->gl_state == LM_ST_EXCLUSIVE && target != LM_ST_EXCLUSIVE &&
	       atomic_load_explicit(&gl->gl_dirty, memory_order_relaxed) &&
	       gl->gl_ops->sync;
}

static bool wants_invalidate(const struct glock *gl, enum lm_state target)
{
	return gl->gl_state != LM_ST_UNLOCKED && gl->gl_ops->invalidate &&
	       (target == LM_ST_UNLOCKED || target == LM_ST_DEFERRED);
}

bool glock_change_needs_work(const struct glock *gl, enum lm_state target)
{
	return wants_sync(gl, target) || wants_invalidate(gl, target);
}

static void set_state(struct glock *gl, enum lm_state state)
{
	if (glock_has_workers(gl->gl_table))
		glock_count_cached(gl, gl->gl_state, state);
	atomic_store_explicit(&gl->gl_state, (uint8_t)state,
			      memory_order_relaxed);
	gl->gl_target = (uint8_t)state;
}

/*
 * What sync could not write exists in memory only. The glock is withdrawn on
 * its own; the sync callback has the rest of the mount follow.
 */
static void sync_failed(struct glock *gl, int err)
{
	ug_error(gl->gl_table->who, "glock %u/%llx: sync failed: error %d",
		 gl->gl_ops->type, (unsigned long long)gl->gl_number, -err);
	gl->gl_flags |= GLF_WITHDRAWN;
	glock_fail_without_noexp(gl);
}

/*
 * Sync and invalidate as the change of state demands. GLF_LOCK is set, so the
 * state stays as it is while gl_lock is dropped.
 */
static int work_before_request(struct glock *gl, enum lm_state target)
{
	bool sync = wants_sync(gl, target);
	bool invalidate = wants_invalidate(gl, target);
	int err = 0;

	if (!sync && !invalidate)
		return 0;
	if (invalidate) {
		gl->gl_flags |= GLF_INVALIDATE_IN_PROGRESS;
		fail_tries(gl);
	}
	pthread_mutex_unlock(&gl->gl_lock);
	if (sync)
		err = gl->gl_ops->sync(gl);
	if (!err && invalidate)
		gl->gl_ops->invalidate(gl, target);
	pthread_mutex_lock(&gl->gl_lock);
	gl->gl_flags &= ~GLF_INVALIDATE_IN_PROGRESS;
	/* Write-back during the sync may have set it again: done, too. */
	if (sync && !err)
		atomic_store(&gl->gl_dirty, false);
	return err;
}

static void end_request(struct glock *gl)
{
	gl->gl_flags &= ~(GLF_LOCK | GLF_REPLY_PENDING | GLF_CANCELLED |
			  GLF_DEMOTE_IN_PROGRESS);
	gl->gl_target = gl->gl_state;
}

/*
 * What has to be done before the lock manager is asked, and may take long, is
 * the workers' when there are any.
 */
static bool left_to_workers(struct glock *gl, enum lm_state target,
			    bool working)
{
	if (working || !glock_has_workers(gl->gl_table) ||
	    (gl->gl_flags & GLF_WITHDRAWN) ||
	    !glock_change_needs_work(gl, target))
		return false;
	/* They would wait for it. */
	fail_tries(gl);
	glock_queue_now(gl);
	return true;
}

/* With lock_nolock there is nothing to tell, and it would cost as much. */
static void count_request(struct glock *gl, const struct glock_holder *gh)
{
	struct glock_counters *c = glock_counters(gl);

	if (!glock_has_workers(gl->gl_table))
		return;
	glock_count(&c->requests);
	if (!gh)
		glock_count(gl->gl_flags & GLF_REMOTE ? &c->given_away
						      : &c->put_away);
	gl->gl_asked_ns = glock_now_ns();
}

/*
 * Ask the lock manager for another state: for the head waiter gh, or, with gh
 * NULL, because of a demotion. False: it is left to the workers.
 */
static bool request(struct glock *gl, enum lm_state target,
		    const struct glock_holder *gh, bool working)
{
	const struct lockmod *mod = &gl->gl_table->mod;
	unsigned flags = gh ? gh->gh_flags & (GL_TRIES | GL_NOEXP) : 0;
	bool withdrawn = gl->gl_flags & GLF_WITHDRAWN;

	if (left_to_workers(gl, target, working))
		return false;
	gl->gl_flags |= GLF_LOCK | (gh ? 0 : GLF_DEMOTE_IN_PROGRESS);
	gl->gl_target = (uint8_t)target;
	gl->gl_target_try = flags & GL_TRIES;
	if (!gl->gl_target_try)
		fail_tries(gl);
	if (!withdrawn) {
		int err = work_before_request(gl, target);

		if (err) {
			end_request(gl);
			sync_failed(gl, err);
			return true;
		}
		/* Withdrawn meanwhile: what is dirty now, nobody may see. */
		if (gl->gl_flags & GLF_WITHDRAWN) {
			end_request(gl);
			return true;
		}
	}
	if (target == LM_ST_UNLOCKED && gl->gl_ops->instantiate)
		gl->gl_flags |= GLF_INSTANTIATE_NEEDED;
	count_request(gl, gh);
	pthread_mutex_unlock(&gl->gl_lock);
	mod->ops->lock(mod->mod, gl, target, flags);
	pthread_mutex_lock(&gl->gl_lock);
	return true;
}

static void reply_error(struct glock *gl, enum lm_outcome outcome, bool demote)
{
	ug_error(gl->gl_table->who, "glock %u/%llx: lock manager answered %s",
		 gl->gl_ops->type, (unsigned long long)gl->gl_number,
		 outcome_name[outcome]);
	/* Asking again and again would not help. */
	if (demote)
		glock_clear_demote(gl);
	fail_waiters(gl, 0, 0, -EIO);
}

/* Requests fail; but others wait for a demotion, which has to be done. */
static void reply_no_memory(struct glock *gl, bool demote)
{
	if (!demote)
		fail_waiters(gl, 0, 0, -ENOMEM);
	else if (glock_has_workers(gl->gl_table))
		glock_back_off(gl, NO_MEMORY_MS);
	else
		glock_clear_demote(gl);
}

/*
 * Two nodes that hold SH and want EX wait for each other; one of them is told.
 * It gives up what it has, with all that was cached under it, and then asks
 * from unlocked (docs/spec/glocks.md 2.15). From unlocked, just ask again.
 */
static void reply_deadlock(struct glock *gl, bool demote)
{
	glock_count(&glock_counters(gl)->deadlocks);
	promote(gl);
	if (gl->gl_granted || gl->gl_state == LM_ST_UNLOCKED)
		return;
	if (demote || gl->gl_waiting)
		glock_request_demote(gl, LM_ST_UNLOCKED);
}

static void answered(struct glock *gl, bool granted)
{
	uint64_t now = glock_now_ns();

	glock_hist_add(glock_counters(gl)->answer_ns, now - gl->gl_asked_ns);
	glock_hold_begins(gl, now, granted);
}

/* Source: docs/spec/glocks.md 2.8. */
static void process_reply(struct glock *gl)
{
	enum lm_state state = gl->gl_reply_state;
	enum lm_state target = gl->gl_target;
	enum lm_outcome outcome = gl->gl_reply_outcome;
	bool demote = gl->gl_flags & GLF_DEMOTE_IN_PROGRESS;
	bool cancelled = gl->gl_flags & GLF_CANCELLED;

	end_request(gl);
	set_state(gl, state);
	if (glock_has_workers(gl->gl_table))
		answered(gl, outcome == LM_OUT_DONE && !demote);
	switch (outcome) {
	case LM_OUT_DONE:
		ug_assert(state == target);
		/*
		 * Before a demotion that has come meanwhile: who has waited
		 * for the lock uses it once, or two nodes would pass it
		 * back and forth and get nowhere.
		 */
		if (!demote)
			promote(gl);
		break;
	case LM_OUT_BUSY:
		glock_count(&glock_counters(gl)->busy);
		if (gl->gl_target_try)
			fail_tries(gl);
		else
			reply_error(gl, outcome, demote);
		break;
	case LM_OUT_CANCELLED:
		/* He who cancelled has left; the next one asks for himself. */
		glock_count(&glock_counters(gl)->cancelled);
		if (!cancelled)
			reply_error(gl, outcome, demote);
		break;
	case LM_OUT_DEADLOCK:
		reply_deadlock(gl, demote);
		break;
	case LM_OUT_NOMEM:
		reply_no_memory(gl, demote);
		break;
	case LM_OUT_ERROR:
		reply_error(gl, outcome, demote);
		break;
	}
}

static bool has_noexp_waiter(const struct glock *gl)
{
	const struct glock_holder *gh;

	cds_list_for_each_entry (gh, &gl->gl_holders, gh_list) {
		if (!gh->gh_granted && (gh->gh_flags & GL_NOEXP))
			return true;
	}
	return false;
}

/*
 * Must the answer be kept back until another node's journal is replayed? Not
 * if nobody will use the lock: it is refused, or on its way to unlocked. Nor
 * if the recovery itself waits (docs/spec/glocks.md 2.13).
 */
static bool is_frozen(const struct glock *gl)
{
	if (!atomic_load(&gl->gl_table->frozen) ||
	    (gl->gl_flags & (GLF_WITHDRAWN | GLF_RETIRING)))
		return false;
	if (gl->gl_reply_outcome == LM_OUT_ERROR ||
	    gl->gl_reply_outcome == LM_OUT_NOMEM ||
	    gl->gl_reply_outcome == LM_OUT_CANCELLED)
		return false;
	if ((gl->gl_flags & GLF_DEMOTE_IN_PROGRESS) &&
	    gl->gl_demote_state == LM_ST_UNLOCKED)
		return false;
	return !has_noexp_waiter(gl);
}

/* Returns false when nothing is to be done now. */
static bool step(struct glock *gl, bool working)
{
	const struct glock_holder *gh;

	if (gl->gl_flags & (GLF_CANCELLING | GLF_BACKOFF))
		return false;
	if (gl->gl_flags & GLF_REPLY_PENDING) {
		if (is_frozen(gl)) {
			gl->gl_flags |= GLF_FROZEN;
			return false;
		}
		gl->gl_flags &= ~GLF_FROZEN;
		process_reply(gl);
		return true;
	}
	if (gl->gl_flags & GLF_LOCK)
		return false;
	if (glock_demote_due(gl)) {
		if (gl->gl_granted) {
			fail_tries(gl);
			return false;
		}
		return request(gl, gl->gl_demote_state, NULL, working);
	}
	promote(gl);
	gh = glock_first_waiter(gl);
	if (!gh || gl->gl_granted || glock_is_in_recall(gl))
		return false;
	return request(gl, gh->gh_state, gh, working);
}

static void run(struct glock *gl, bool working)
{
	if (gl->gl_flags & GLF_RUNNING)
		return;
	gl->gl_flags |= GLF_RUNNING;
	while (step(gl, working))
		;
	gl->gl_flags &= ~GLF_RUNNING;
	if (gl->gl_retirer)
		pthread_cond_signal(&gl->gl_retirer->wake);
}

void glock_run(struct glock *gl)
{
	run(gl, false);
}

void glock_run_working(struct glock *gl)
{
	run(gl, true);
}

void glock_complete(struct glock *gl, enum lm_state state,
		    enum lm_outcome outcome)
{
	pthread_mutex_lock(&gl->gl_lock);
	ug_assert(gl->gl_flags & GLF_LOCK);
	ug_assert(!(gl->gl_flags & GLF_REPLY_PENDING));
	gl->gl_pins++;
	gl->gl_reply_state = (uint8_t)state;
	gl->gl_reply_outcome = (uint8_t)outcome;
	gl->gl_flags |= GLF_REPLY_PENDING;
	glock_run(gl);
	glock_unpin_unlock(gl);
}
