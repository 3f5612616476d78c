/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * lockwait.c - requests that wait for something without a thread.
 *
 *	lane: handle() returns FUSE_LOCKWAIT --> session->lockwaits
 *	                                          |  fuse_reply_resume()
 *	                                          +--> granted lane: handle()
 *	                                          |  INTERRUPT, a second later
 *	                                          +--> give_up(), EINTR
 *
 * fuse_reply_resume() comes once for each FUSE_LOCKWAIT, from a thread that may
 * hold locks of whoever it comes from; it may be faster than the lane's
 * thread, which then finds the slot resumed when it comes to the list. What has
 * been taken off the list is the taker's: a resume() that is still to come does
 * nothing more, and give_up() waits for it.
 */
#include <errno.h>

#include "base/compiler.h"
#include "fuse/session_impl.h"
#include "fuse/thread.h"

static struct fuse_slot *slot_of(struct fuse_reply *reply)
{
	return ug_container_of(reply, struct fuse_slot, reply);
}

void fuse_reply_resume(struct fuse_reply *reply)
{
	struct fuse_slot *slot = slot_of(reply);
	struct fuse_session *session = slot->session;

	pthread_mutex_lock(&session->lock);
	if (slot->parked) {
		cds_list_del(&slot->link);
		slot->parked = false;
		lane_push(session->lanes[LANE_GRANTED].lane, slot);
	} else {
		slot->resumed = true;
	}
	pthread_mutex_unlock(&session->lock);
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
	ended = session->lockwaits_ended;
	if (!ended && slot->resumed) {
		lane_push(session->lanes[LANE_GRANTED].lane, slot);
	} else if (!ended) {
		slot->parked = true;
		cds_list_add_tail(&slot->link, &session->lockwaits);
		if (interrupts_take(&session->interrupts, slot->req.unique))
			slot->interrupted = true;
		if (slot->interrupted) {
			session->interrupts_queued = true;
			pthread_cond_signal(&session->changed);
		}
	}
	pthread_mutex_unlock(&session->lock);
	if (ended)
		give_up(session, slot, -ENODEV);
}

bool lockwait_interrupt_locked(struct fuse_session *session, uint64_t unique)
{
	struct fuse_slot *slot;

	cds_list_for_each_entry (slot, &session->lockwaits, link) {
		if (slot->req.unique == unique) {
			slot->interrupted = true;
			return true;
		}
	}
	return false;
}

unsigned lockwait_reap_locked(struct fuse_session *session, uint64_t before_ns,
			      struct cds_list_head *list)
{
	struct fuse_slot *slot, *next;
	unsigned left = 0;

	cds_list_for_each_entry_safe (slot, next, &session->lockwaits, link) {
		if (!slot->interrupted)
			continue;
		if (slot->read_ns >= before_ns) {
			left++;
			continue;
		}
		cds_list_del(&slot->link);
		slot->parked = false;
		cds_list_add_tail(&slot->link, list);
	}
	return left;
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
	session->lockwaits_ended = true;
	cds_list_for_each_entry_safe (slot, next, &session->lockwaits, link) {
		cds_list_del(&slot->link);
		slot->parked = false;
		cds_list_add_tail(&slot->link, &list);
	}
	pthread_mutex_unlock(&session->lock);
	lockwait_answer(session, &list, -ENODEV);
}
