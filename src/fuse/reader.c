/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * reader.c - the path of a request: read, decode, try, answer or hand over.
 *
 * An inline request costs one read(), the handler and one write(); nothing is
 * allocated and no lock of the session is taken.
 *
 * INTERRUPT names a request that may be served, queued, answered already or
 * not even looked at yet. What waits for a program's lock is cancelled at once
 * (lockwait.c). Nothing else here waits longer than a disk takes, and
 * programs do not expect EINTR from stat() or unlink() because a timer went
 * off; so an interrupted request is answered EINTR only when it has not
 * begun after interrupt_patience_ms in the queue (session.c reaps it). That
 * frees the tasks that were killed because the disk does not answer.
 */
#include <errno.h>
#include <signal.h>
#include <string.h>
#include <unistd.h>

#include "base/log.h"
#include "fuse/session_impl.h"
#include "fuse/thread.h"

/* Every so many requests of a reader are timed: two reads of the clock. */
#define TIMED_INTERVAL 32u

void session_answer(struct fuse_session *session, struct fuse_slot *slot,
		    int err)
{
	int sent;

	if (!fuse_request_answered(&slot->req))
		return;
	sent = slot_answer(slot, err);
	/* Not waited for any more, or the mount is gone: nobody to tell. */
	if (!sent || sent == -ENOENT || sent == -ENODEV)
		return;
	ug_error(session->params.who, "fuse: answer to %s refused: %s",
		 fuse_opcode_name(slot->req.opcode), strerror(-sent));
}

static int slot_handle(struct fuse_session *session, struct fuse_slot *slot,
		       enum fuse_place place)
{
	slot->reply.body_len = 0;
	slot->reply.data_len = 0;
	return session->params.handler->handle(session->params.ctx, &slot->req,
					       &slot->reply, place);
}

/* The result to answer with, FUSE_TO_NOTIFIER, FUSE_LATER; inline -EAGAIN. */
static int slot_serve(struct fuse_session *session, struct fuse_slot *slot,
		      enum fuse_place place)
{
	const struct fuse_handler *handler = session->params.handler;
	int result = slot->result;

	if (!slot->served)
		result = slot_handle(session, slot, place);
	if (result > 0 || (result == -EAGAIN && place == FUSE_INLINE) ||
	    !handler->answer)
		return result;
	slot->result = result;
	result = handler->answer(session->params.ctx, &slot->req, result);
	slot->served = result == FUSE_LATER;
	return result;
}

/* What others may be waiting for: DESIGN 6.4. */
static bool request_is_urgent(const struct fuse_request *req)
{
	switch (req->opcode) {
	case FUSE_WRITE:
		return req->write.write_flags & FUSE_WRITE_CACHE;
	case FUSE_RELEASE:
	case FUSE_RELEASEDIR:
	case FUSE_FLUSH:
	case FUSE_FORGET:
	case FUSE_BATCH_FORGET:
		return true;
	default:
		return false;
	}
}

static void slot_refuse(struct fuse_session *session, struct fuse_slot *slot)
{
	session_answer(session, slot, -ENODEV);
	slot_put(session->pool, slot);
}

/* One that comes from a lane may have been interrupted there. */
void session_interrupts_take(struct fuse_session *session,
			     struct fuse_slot *slot)
{
	slot->interrupted |=
		interrupts_take(&session->interrupts, slot->req.unique);
	if (slot->interrupted) {
		session->interrupts_queued = true;
		pthread_cond_signal(&session->changed);
	}
}

static void slot_hand_over(struct fuse_session *session, struct fuse_slot *slot,
			   int why)
{
	enum lane_kind kind = LANE_WORK;

	if (why == FUSE_LATER)
		kind = LANE_LATER;
	else if (why == FUSE_TO_NOTIFIER)
		kind = LANE_NOTIFIER;
	else if (why == FUSE_TO_PATIENT)
		kind = LANE_PATIENT;
	else if (request_is_urgent(&slot->req))
		kind = LANE_URGENT;

	pthread_mutex_lock(&session->lock);
	if ((kind == LANE_NOTIFIER && session->notifier_closed) ||
	    ((kind == LANE_PATIENT || why == FUSE_PARK) &&
	     session->parking_over)) {
		pthread_mutex_unlock(&session->lock);
		slot_refuse(session, slot);
		return;
	}
	session_interrupts_take(session, slot);
	if (why == FUSE_PARK && session->frozen)
		lockwait_thaw_locked(session, slot);
	else
		lane_push(session->lanes[kind].lane, slot);
	pthread_mutex_unlock(&session->lock);
}

/* A lane has come to this request. */
void session_serve_queued(void *arg, struct fuse_slot *slot)
{
	struct session_lane *own = arg;
	struct fuse_session *session = own->session;
	int result;

	slot->resumed = false;
	result = slot_serve(session, slot, own->place);
	if (result == FUSE_LOCKWAIT) {
		session_lockwait(session, slot);
		return;
	}
	if (result == FUSE_UNDERWAY) {
		session_underway(session, slot);
		return;
	}
	if (result > 0) {
		slot_hand_over(session, slot, result);
		return;
	}
	session_answer(session, slot, result);
	counter_inc_shared(&session->count.lane_ns[histogram_slot(
		fuse_now_ns() - slot->read_ns)]);
	slot_put(session->pool, slot);
}

/*
 * Answers leave again: to where it would have been tried at once. At the end
 * of the session that is nowhere but here.
 */
void session_serve_later(void *arg, struct fuse_slot *slot)
{
	struct session_lane *own = arg;
	bool closed;

	pthread_mutex_lock(&own->session->lock);
	closed = own->session->lanes_closed;
	pthread_mutex_unlock(&own->session->lock);
	if (closed || slot->served)
		session_serve_queued(arg, slot);
	else
		slot_hand_over(own->session, slot, -EAGAIN);
}

static void session_interrupt(struct fuse_session *session, uint64_t unique)
{
	uint64_t cancel_id = 0;
	bool found = false;

	pthread_mutex_lock(&session->lock);
	for (unsigned i = 0; i < LANES && !found; i++)
		found = lane_interrupt(session->lanes[i].lane, unique);
	if (!found)
		found = lockwait_interrupt_locked(session, unique, &cancel_id);
	if (found) {
		session->interrupts_queued = true;
		pthread_cond_signal(&session->changed);
	} else {
		interrupts_keep(&session->interrupts, unique);
	}
	pthread_mutex_unlock(&session->lock);
	if (cancel_id)
		session->params.handler->cancel(session->params.ctx, cancel_id);
}

/*
 * umount of a fuseblk mount: it waits for the answer, which is sent when the
 * volume is at rest (fuse_session_destroy()).
 */
static void session_destroy_read(struct fuse_session *session,
				 const struct fuse_slot *slot)
{
	pthread_mutex_lock(&session->lock);
	session->has_destroy = true;
	session->destroy_fd = slot->fd;
	session->destroy_unique = slot->req.unique;
	session_end_locked(session, 0);
	pthread_mutex_unlock(&session->lock);
}

static void reader_hand_over(struct reader *reader, int why)
{
	struct fuse_slot *slot = reader->slot;

	counter_inc(&reader->count.handed_over);
	slot->read_ns = fuse_now_ns();
	/*
	 * Waits when requests_max requests are in progress. All of them
	 * wait for the disk, none for a request that we would read.
	 */
	reader->slot = slot_get(reader->session->pool);
	if (why == FUSE_UNDERWAY)
		session_underway(reader->session, slot);
	else
		slot_hand_over(reader->session, slot, why);
}

/* A request for the handler: answer it now, or hand it over. */
static void reader_try(struct reader *reader)
{
	struct fuse_slot *slot = reader->slot;
	bool timed = reader->serial++ % TIMED_INTERVAL == 0;
	uint64_t begin_ns = timed ? fuse_now_ns() : 0;
	int result;

	slot->reply.carry = 0;
	slot->reply.parks = 0;
	slot->reply.fill.begun = false;
	slot->served = false;
	slot->resumed = false;
	slot->interrupted = false;
	result = slot_serve(reader->session, slot, FUSE_INLINE);
	if (result == -EAGAIN || result > 0) {
		reader_hand_over(reader, result);
		return;
	}
	session_answer(reader->session, slot, result);
	counter_inc(&reader->count.inline_done);
	if (timed)
		counter_inc(&reader->count.inline_ns[histogram_slot(
			fuse_now_ns() - begin_ns)]);
}

static void reader_malformed(struct reader *reader, int err)
{
	/* An opcode that we do not know: the kernel goes the older way. */
	if (err != -ENOSYS) {
		counter_inc(&reader->count.malformed);
		ug_warn(reader->session->params.who,
			"fuse: malformed %s request",
			fuse_opcode_name(reader->slot->req.opcode));
		err = -EIO;
	}
	session_answer(reader->session, reader->slot, err);
}

static void reader_serve(struct reader *reader, size_t len)
{
	struct fuse_slot *slot = reader->slot;
	const struct fuse_request *req = &slot->req;
	int err;

	slot->fd = reader->fd;
	slot->session = reader->session;
	counter_inc(&reader->count.requests);
	err = fuse_request_decode(slot_in(slot), len, &slot->req);
	if (ug_unlikely(err)) {
		reader_malformed(reader, err);
		return;
	}
	counter_inc(&reader->count.by_opcode[req->opcode]);
	switch (req->opcode) {
	case FUSE_INTERRUPT:
		counter_inc(&reader->count.interrupts);
		session_interrupt(reader->session, req->interrupt.unique);
		break;
	case FUSE_DESTROY:
		session_destroy_read(reader->session, slot);
		break;
	case FUSE_INIT: /* answered long ago */
		session_answer(reader->session, slot, -EPROTO);
		break;
	default:
		reader_try(reader);
	}
}

/* 0: read again. Else why there is nothing more to read. */
static int read_error(const struct fuse_session *session, int err)
{
	switch (err) {
	case EINTR: /* our signal, or a debugger's */
	case EAGAIN:
	case ENOENT: /* the request was taken back while it was copied */
		return 0;
	case ENODEV: /* unmounted */
		return ENODEV;
	case ECONNABORTED:
		return ECONNABORTED;
	default:
		ug_error(session->params.who, "fuse: reading requests: %s",
			 strerror(err));
		return err;
	}
}

static void reader_ended(struct reader *reader, int err)
{
	struct fuse_session *session = reader->session;

	pthread_mutex_lock(&session->lock);
	if (err)
		session_end_locked(session, err == ENODEV ? 0 : -err);
	session->readers_alive--;
	pthread_cond_signal(&session->changed);
	pthread_mutex_unlock(&session->lock);
}

void *reader_main(void *arg)
{
	struct reader *reader = arg;
	struct fuse_session *session = reader->session;
	sigset_t kick;
	int err = 0;

	sigemptyset(&kick);
	sigaddset(&kick, READER_SIGNAL);
	pthread_sigmask(SIG_UNBLOCK, &kick, NULL);

	while (!err && !atomic_load_explicit(&session->readers_stop,
					     memory_order_relaxed)) {
		ssize_t n =
			read(reader->fd, slot_in(reader->slot), SLOT_IN_MAX);

		if (ug_likely(n >= 0))
			reader_serve(reader, (size_t)n);
		else
			err = read_error(session, errno);
	}
	reader_ended(reader, err);
	return NULL;
}
