/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * gldemote.c - who wants a glock lowered, and when it is done.
 *
 * Another node's wish for a lock that was granted a moment ago, and is in use
 * all the time, is put off: this node has waited for the lock, and does
 * several things with it instead of one. Otherwise two busy nodes would pay a
 * flush and a message for each operation (docs/spec/glocks.md 13.3).
 *
 *   granted       wanted by another node                hold time over
 *      |              |                                       |
 *      |              |-- look -- look -- look --...          v
 *      |              |    used?   used?   no: given away    given away
 *
 * A wait in which nobody used the lock was of no use, and the glock's hold time
 * is halved, down to nothing; one that was used doubles it. A request that
 * comes while the lock is on its way out shows that it should have been kept,
 * and is how a hold time of nothing grows again. Two nodes that take turns
 * (each waits for what the other does) so end with no delay, a node with a
 * stream of requests with the longest one.
 */
#include "glock/glock_impl.h"

/*
 * A move costs a flush of some ms and a few round trips: at 40 ms it takes a
 * tenth of the time. GFS2 has up to 200 ms, for slower disks. An administrator
 * may choose another bound.
 */
#define HOLD_START_MS 10u
/*
 * Between looks, 1 to 2 ms, since the clock is cut to whole ones: several times
 * what passes between two requests of a busy process.
 */
#define LOOK_MS 2u
static_assert(GLOCK_HOLD_MS_LIMIT < GLOCK_WHEEL_SLOTS,
	      "a delay must fit the wheel");

static uint64_t now_ms(void)
{
	return glock_now_ns() / 1000000u;
}

static bool may_hold(const struct glock *gl)
{
	return gl->gl_ops->hold && glock_has_workers(gl->gl_table);
}

void glock_hold_init(struct glock *gl)
{
	gl->gl_hold_ms = may_hold(gl) ? HOLD_START_MS : 0;
}

static unsigned hold_max_ms(const struct glock *gl)
{
	return atomic_load_explicit(&gl->gl_table->hold_max_ms,
				    memory_order_relaxed);
}

void glock_table_set_hold(struct glock_table *table, unsigned max_ms)
{
	atomic_store(&table->hold_max_ms, UG_MIN(max_ms, GLOCK_HOLD_MS_LIMIT));
}

/* How much of the hold time is left. */
static unsigned hold_left_ms(const struct glock *gl, uint64_t now)
{
	uint32_t passed = (uint32_t)now - gl->gl_granted_ms;
	unsigned hold = UG_MIN((unsigned)gl->gl_hold_ms, hold_max_ms(gl));

	return passed < hold ? hold - passed : 0;
}

static void merge_demote(struct glock *gl, enum lm_state state)
{
	if (!(gl->gl_flags & (GLF_DEMOTE | GLF_PENDING_DEMOTE))) {
		gl->gl_demote_state = (uint8_t)state;
		gl->gl_demote_ns = glock_now_ns();
	} else if (gl->gl_demote_state != state) {
		/* Two wishes that differ: only unlocked meets both. */
		gl->gl_demote_state = LM_ST_UNLOCKED;
	}
}

/* From now on the demotion waits for the holders only. */
static void demote_now(struct glock *gl)
{
	gl->gl_flags &= ~(GLF_PENDING_DEMOTE | GLF_USED | GLF_HOLD_PAID);
	gl->gl_flags |= GLF_DEMOTE;
}

void glock_request_demote(struct glock *gl, enum lm_state state)
{
	merge_demote(gl, state);
	demote_now(gl);
}

void glock_clear_demote(struct glock *gl)
{
	gl->gl_flags &= ~(GLF_DEMOTE | GLF_PENDING_DEMOTE | GLF_REMOTE |
			  GLF_USED | GLF_HOLD_PAID | GLF_RECALLED);
	/* Nobody wants anything: the strongest state will do. */
	gl->gl_demote_state = LM_ST_EXCLUSIVE;
}

bool glock_is_in_recall(const struct glock *gl)
{
	if (!gl->gl_ops->recall || !glock_has_workers(gl->gl_table) ||
	    !(gl->gl_flags & GLF_DEMOTE) ||
	    (gl->gl_flags & (GLF_RETIRING | GLF_WITHDRAWN)) ||
	    gl->gl_state == LM_ST_UNLOCKED ||
	    gl->gl_state == gl->gl_demote_state)
		return false;
	return !(gl->gl_flags & GLF_RECALLED) ||
	       gl->gl_recalled_state != gl->gl_demote_state;
}

void glock_recall(struct glock *gl)
{
	enum lm_state target = gl->gl_demote_state;

	if (!glock_is_in_recall(gl) || (gl->gl_flags & GLF_RECALLING) ||
	    (gl->gl_flags & GLF_BUSY))
		return;
	gl->gl_flags |= GLF_RECALLING;
	pthread_mutex_unlock(&gl->gl_lock);
	gl->gl_ops->recall(gl, target);
	pthread_mutex_lock(&gl->gl_lock);
	gl->gl_flags &= ~GLF_RECALLING;
	gl->gl_flags |= GLF_RECALLED;
	gl->gl_recalled_state = (uint8_t)target;
}

bool glock_demote_due(struct glock *gl)
{
	if (!(gl->gl_flags & GLF_DEMOTE))
		return false;
	if (gl->gl_state == gl->gl_demote_state ||
	    gl->gl_state == LM_ST_UNLOCKED || (gl->gl_flags & GLF_WITHDRAWN)) {
		glock_clear_demote(gl);
		return false;
	}
	if (glock_is_in_recall(gl)) {
		/* Who is at it goes on himself. */
		if (!(gl->gl_flags & GLF_RECALLING))
			glock_queue_now(gl);
		return false;
	}
	return true;
}

bool glock_is_wanted(struct glock *gl)
{
	bool wanted;

	pthread_mutex_lock(&gl->gl_lock);
	wanted = gl->gl_flags & (GLF_DEMOTE | GLF_PENDING_DEMOTE);
	pthread_mutex_unlock(&gl->gl_lock);
	return wanted;
}

bool glock_is_leaving(struct glock *gl)
{
	bool leaving;

	pthread_mutex_lock(&gl->gl_lock);
	leaving = gl->gl_flags & (GLF_RECALLING | GLF_RECALLED);
	pthread_mutex_unlock(&gl->gl_lock);
	return leaving;
}

static void look_again(struct glock *gl, uint64_t now, unsigned left)
{
	glock_queue_at(gl, now + UG_MIN(left, LOOK_MS));
}

static void end_hold(struct glock *gl)
{
	unsigned hold = gl->gl_hold_ms;

	if (gl->gl_flags & (GLF_USED | GLF_HOLD_PAID))
		hold = UG_MIN(2 * hold, hold_max_ms(gl));
	else
		hold /= 2;
	gl->gl_hold_ms = (uint8_t)hold;
	demote_now(gl);
}

void glock_hold_look(struct glock *gl)
{
	uint64_t now;
	unsigned left;

	/* While an answer is awaited, the time has not begun. */
	if (!(gl->gl_flags & GLF_PENDING_DEMOTE) || (gl->gl_flags & GLF_LOCK))
		return;
	now = now_ms();
	left = hold_left_ms(gl, now);
	if (gl->gl_granted)
		gl->gl_flags |= GLF_USED;
	if (!left || !(gl->gl_flags & GLF_USED)) {
		end_hold(gl);
		return;
	}
	gl->gl_flags &= ~GLF_USED;
	gl->gl_flags |= GLF_HOLD_PAID;
	look_again(gl, now, left);
}

void glock_hold_begins(struct glock *gl, uint64_t now_ns, bool granted)
{
	uint64_t now = now_ns / 1000000u;

	if (granted) {
		gl->gl_granted_ms = (uint32_t)now;
		gl->gl_used_sec = (uint32_t)(now_ns / 1000000000u);
	}
	if (!(gl->gl_flags & GLF_PENDING_DEMOTE))
		return;
	if (granted && gl->gl_hold_ms)
		look_again(gl, now, gl->gl_hold_ms);
	else
		demote_now(gl);
}

void glock_hold_missed(struct glock *gl)
{
	if (!(gl->gl_flags & GLF_REMOTE) || gl->gl_waiting || !may_hold(gl))
		return;
	if (gl->gl_hold_ms < HOLD_START_MS)
		gl->gl_hold_ms = (uint8_t)UG_MIN(
			UG_MAX(2u * gl->gl_hold_ms, 1u), HOLD_START_MS);
}

void glock_back_off(struct glock *gl, unsigned ms)
{
	gl->gl_flags |= GLF_BACKOFF;
	glock_queue_at(gl, now_ms() + ms);
}

/*
 * Another node's wish. Is it put off? An answer that is outstanding counts as
 * granted just now: the news of it is on another way, and may come later.
 */
static bool put_off(struct glock *gl)
{
	uint64_t now;
	unsigned left;

	if ((gl->gl_flags & (GLF_DEMOTE | GLF_WITHDRAWN | GLF_RETIRING)) ||
	    !gl->gl_hold_ms)
		return false;
	if (gl->gl_flags & GLF_LOCK) {
		gl->gl_flags |= GLF_PENDING_DEMOTE;
		return true;
	}
	now = now_ms();
	left = hold_left_ms(gl, now);
	if (gl->gl_state == LM_ST_UNLOCKED || !left)
		return false;
	if (!(gl->gl_flags & GLF_PENDING_DEMOTE)) {
		gl->gl_flags |= GLF_PENDING_DEMOTE;
		look_again(gl, now, left);
	}
	return true;
}

void glock_callback(struct glock *gl, enum lm_state wanted)
{
	enum lm_state state =
		wanted == LM_ST_EXCLUSIVE ? LM_ST_UNLOCKED : wanted;

	pthread_mutex_lock(&gl->gl_lock);
	gl->gl_pins++;
	glock_count(&glock_counters(gl)->callbacks);
	merge_demote(gl, state);
	gl->gl_flags |= GLF_REMOTE;
	if (put_off(gl))
		glock_count(&glock_counters(gl)->delayed);
	else
		demote_now(gl);
	if (gl->gl_ops->callback) {
		pthread_mutex_unlock(&gl->gl_lock);
		gl->gl_ops->callback(gl, wanted);
		pthread_mutex_lock(&gl->gl_lock);
	}
	glock_run(gl);
	glock_unpin_unlock(gl);
}
