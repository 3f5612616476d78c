/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * lockwait.c - requests that wait for something without a thread.
 *
 *	lane: FUSE_LOCKWAIT --+
 *	any: FUSE_PARK -------+--> session->parked
 *	any: FUSE_UNDERWAY ---+     |  fuse_reply_resume()
 *	                            +--> granted lane: handle()
 *	                            |  fuse_session_park(false)
 *	                            +--> work lane: handle()
 *	                            |  INTERRUPT, a second later
 *	                            +--> give_up(), EINTR
 *	                            |  fuse_reply_done()
 *	                            +--> answer, in the thread that calls it
 *
 * fuse_reply_resume() comes once for each FUSE_LOCKWAIT, from a thread that may
 * hold locks of whoever it comes from; it may be faster than the lane's
 * thread, which then finds the slot resumed when it comes to the list. What has
 * been taken off the list is the taker's: a resume() that is still to come does
 * nothing more, and give_up() waits for it.
 *
 * What is under way may have its effect at any time, so only fuse_reply_done()
 * ends it, EINTR included: an INTERRUPT asks the handler to see to that.
 */
#include <errno.h>

#include "base/compiler.h"
#include "fuse/session_impl.h"
#include "fuse/thread.h"

static struct fuse_slot *slot_of(struct fuse_reply *reply)
{
	return ug_container_of(reply, struct fuse_slot, reply);
}

static void park(struct fuse_session *session, struct fuse_slot *slot,
		 enum slot_wait wait)
{
	slot->parked = true;
	slot->wait = wait;
	session->underway += wait == WAIT_CALL;
	cds_list_add_tail(&slot->link, &session->parked);
}

static void unpark(struct fuse_slot *slot)
{
	cds_list_del(&slot->link);
	slot->parked = false;
}

/* One of those that lockwait_end() waits for is through. lock held. */
static void underway_ended(struct fuse_session *session)
{
	if (!--session->underway && session->parking_over)
		pthread_cond_broadcast(&session->changed);
}

static void resume_locked(struct fuse_session *session, struct fuse_slot *slot)
{
	if (!slot->parked) {
		slot->resumed = true;
		return;
	}
	unpark(slot);
	lane_push(session->lanes[LANE_GRANTED].lane, slot);
	if (slot->wait == WAIT_CALL)
		underway_ended(session);
}

void fuse_reply_resume(struct fuse_reply *reply)
{
	struct fuse_slot *slot = slot_of(reply);
	struct fuse_session *session = slot->session;

	pthread_mutex_lock(&session->lock);
	resume_locked(session, slot);
	pthread_mutex_unlock(&session->lock);
}

/* In whatever thread this is, which may not wait. */
static void answer_done(struct fuse_session *session, struct fuse_slot *slot)
{
	session_serve_queued(&session->lanes[LANE_GRANTED], slot);
}

void fuse_reply_done(struct fuse_reply *reply, int result)
{
	struct fuse_slot *slot = slot_of(reply);
	struct fuse_session *session = slot->session;
	bool parked;

	pthread_mutex_lock(&session->lock);
	/* Nobody has been interrupted: a program would see errno 512. */
	if (result == -EINTR && !slot->interrupted) {
		resume_locked(session, slot);
		pthread_mutex_unlock(&session->lock);
		return;
	}
	slot->served = true;
	slot->result = result;
	parked = slot->parked;
	if (parked)
		unpark(slot);
	else
		slot->resumed = true;
	pthread_mutex_unlock(&session->lock);
	if (!parked)
		return;
	answer_done(session, slot);
	pthread_mutex_lock(&session->lock);
	underway_ended(session);
	pthread_mutex_unlock(&session->lock);
}

void session_underway(struct fuse_session *session, struct fuse_slot *slot)
{
	const struct fuse_handler *handler = session->params.handler;
	uint64_t cancel_id = 0;
	bool done;

	pthread_mutex_lock(&session->lock);
	done = slot->resumed && slot->served;
	if (!done && slot->resumed) {
		lane_push(session->lanes[LANE_GRANTED].lane, slot);
	} else if (!done) {
		session_interrupts_take(session, slot);
		park(session, slot, WAIT_CALL);
		if (slot->interrupted)
			cancel_id = slot->reply.call.cancel_id;
	}
	pthread_mutex_unlock(&session->lock);
	if (done)
		answer_done(session, slot);
	else if (cancel_id)
		handler->cancel(session->params.ctx, cancel_id);
}

static void give_up(struct fuse_session *session, struct fuse_slot *slot,
		    int err)
{
	const struct fuse_handler *handler = session->params.handler;

	if (handler->give_up)
		handler->give_up(session->params.ctx, &slot->reply);
	session_answer(session, slot, err);
	slot_put(session->pool, slot);
}

void session_lockwait(struct fuse_session *session, struct fuse_slot *slot)
{
	bool ended;

	pthread_mutex_lock(&session->lock);
	ended = session->parking_over;
	if (!ended && slot->resumed) {
		lane_push(session->lanes[LANE_GRANTED].lane, slot);
	} else if (!ended) {
		session_interrupts_take(session, slot);
		park(session, slot, WAIT_RESUME);
	}
	pthread_mutex_unlock(&session->lock);
	if (ended)
		give_up(session, slot, -ENODEV);
}

void lockwait_thaw_locked(struct fuse_session *session, struct fuse_slot *slot)
{
	park(session, slot, WAIT_THAW);
}

void fuse_session_park(struct fuse_session *session, bool frozen)
{
	struct fuse_slot *slot, *next;

	pthread_mutex_lock(&session->lock);
	session->frozen = frozen;
	cds_list_for_each_entry_safe (slot, next, &session->parked, link) {
		if (frozen || slot->wait != WAIT_THAW)
			continue;
		unpark(slot);
		lane_push(session->lanes[LANE_WORK].lane, slot);
	}
	pthread_mutex_unlock(&session->lock);
}

bool lockwait_interrupt_locked(struct fuse_session *session, uint64_t unique,
			       uint64_t *cancel_id)
{
	struct fuse_slot *slot;

	cds_list_for_each_entry (slot, &session->parked, link) {
		if (slot->req.unique != unique)
			continue;
		slot->interrupted = true;
		if (slot->wait == WAIT_CALL)
			*cancel_id = slot->reply.call.cancel_id;
		return true;
	}
	return false;
}

unsigned lockwait_reap_locked(struct fuse_session *session, uint64_t before_ns,
			      struct cds_list_head *list)
{
	struct fuse_slot *slot, *next;
	unsigned left = 0;

	cds_list_for_each_entry_safe (slot, next, &session->parked, link) {
		if (!slot->interrupted || slot->wait == WAIT_CALL)
			continue;
		if (slot->read_ns >= before_ns) {
			left++;
			continue;
		}
		unpark(slot);
		cds_list_add_tail(&slot->link, list);
	}
	return left;
}

void lockwait_waits_locked(struct fuse_session *session,
			   struct fuse_waits *waits)
{
	const struct fuse_slot *slot;

	/* Who wants a lock that a program holds waits as long as that likes. */
	cds_list_for_each_entry (slot, &session->parked, link)
		if (slot->req.opcode != FUSE_SETLKW)
			fuse_waits_add_queued(waits, &slot->req, slot->read_ns);
}

void lockwait_answer(struct fuse_session *session, struct cds_list_head *list,
		     int err)
{
	struct fuse_slot *slot, *next;

	cds_list_for_each_entry_safe (slot, next, list, link) {
		cds_list_del(&slot->link);
		give_up(session, slot, err);
	}
}

void lockwait_end(struct fuse_session *session)
{
	struct fuse_slot *slot, *next;
	CDS_LIST_HEAD(list);

	pthread_mutex_lock(&session->lock);
	session->parking_over = true;
	cds_list_for_each_entry_safe (slot, next, &session->parked, link) {
		if (slot->wait == WAIT_CALL)
			continue;
		unpark(slot);
		cds_list_add_tail(&slot->link, &list);
	}
	while (session->underway)
		pthread_cond_wait(&session->changed, &session->lock);
	pthread_mutex_unlock(&session->lock);
	lockwait_answer(session, &list, -ENODEV);
}
