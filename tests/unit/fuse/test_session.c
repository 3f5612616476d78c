/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A session against a kernel made of a socket: what is answered by whom, what
 * does not wait for what, and how it ends.
 *
 * Datagrams keep the boundaries that /dev/fuse has. There is one reader, as
 * a socket cannot be cloned like the device.
 */
#include <errno.h>
#include <poll.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmocka.h>

#include "fuse/conn_impl.h"
#include "fuse/session.h"
#include "fuse/thread.h"
#include "request_bytes.h"

#define PARKED_MAX 64u

struct rig {
	struct fuse_conn conn;
	int kernel; /* the other end */
	struct fuse_session *session;
	pthread_t thread;
	int result; /* of fuse_session_run() */
	bool running;
	uint64_t unique;
	struct request_bytes rb;

	pthread_mutex_t lock; /* guards the rest */
	pthread_cond_t changed;
	bool gate_open;
	unsigned at_gate;
	bool park; /* FSYNCs are to wait */
	bool mute; /* nothing may be answered but FORGET, so to say */
	unsigned forgets;
	unsigned put_off; /* served, and not to be answered yet */
	bool ready;
	enum fuse_place last_place;
	bool data_aligned;
	bool stale; /* a request saw what an earlier one had left */
	int start_result;
	struct fuse_reply *parked[PARKED_MAX]; /* STATFS: all that ever were */
	unsigned nr_parked;
	bool granted;	/* from now on they are answered */
	bool overtakes; /* what they wait for comes while they are parked */
	unsigned given_up;
	struct fuse_reply *underway[PARKED_MAX]; /* SETLKW: likewise */
	unsigned nr_underway;
	int overtakes_with; /* ended with this before it is parked; 1: not */
	uint64_t cancelled; /* the latest one */
};

/* ---- the handler: what a request does depends on its opcode ---- */

static int rig_start(void *ctx, const struct fuse_agreed *agreed)
{
	struct rig *rig = ctx;

	return rig->start_result;
}

static int wait_at_gate(struct rig *rig, enum fuse_place place)
{
	if (place == FUSE_INLINE)
		return -EAGAIN;
	rig->at_gate++;
	pthread_cond_broadcast(&rig->changed);
	while (!rig->gate_open)
		pthread_cond_wait(&rig->changed, &rig->lock);
	return 0;
}

/* Waits without a thread until it is granted. */
static int handle_parking(struct rig *rig, struct fuse_reply *reply,
			  enum fuse_place place)
{
	if (place == FUSE_INLINE)
		return -EAGAIN;
	if (rig->granted)
		return 0;
	assert_true(rig->nr_parked < PARKED_MAX);
	rig->parked[rig->nr_parked++] = reply;
	pthread_cond_broadcast(&rig->changed);
	if (rig->overtakes) {
		rig->granted = true;
		fuse_reply_resume(reply);
	}
	return FUSE_LOCKWAIT;
}

static void rig_give_up(void *ctx, struct fuse_reply *reply)
{
	struct rig *rig = ctx;

	pthread_mutex_lock(&rig->lock);
	rig->given_up++;
	pthread_mutex_unlock(&rig->lock);
}

/* Is given to somebody else; cancel_id is 1 and up. */
static int handle_underway(struct rig *rig, struct fuse_reply *reply)
{
	assert_true(rig->nr_underway < PARKED_MAX);
	rig->underway[rig->nr_underway++] = reply;
	reply->call.cancel_id = rig->nr_underway;
	pthread_cond_broadcast(&rig->changed);
	if (rig->overtakes_with <= 0) {
		fuse_reply_done(reply, rig->overtakes_with);
		rig->overtakes_with = 1;
	}
	return FUSE_UNDERWAY;
}

static void rig_cancel(void *ctx, uint64_t cancel_id)
{
	struct rig *rig = ctx;

	pthread_mutex_lock(&rig->lock);
	rig->cancelled = cancel_id;
	pthread_cond_broadcast(&rig->changed);
	pthread_mutex_unlock(&rig->lock);
}

/* What is under way ends. */
static void rig_stop(void *ctx)
{
	struct rig *rig = ctx;

	for (unsigned i = 0; i < rig->nr_underway; i++)
		if (rig->underway[i])
			fuse_reply_done(rig->underway[i], -EIO);
}

static int handle_locked(struct rig *rig, const struct fuse_request *req,
			 struct fuse_reply *reply, enum fuse_place place)
{
	rig->last_place = place;
	if (rig->mute && req->opcode != FUSE_FORGET)
		return FUSE_LATER;
	if (rig->park && req->opcode == FUSE_FSYNC)
		return FUSE_PARK;
	switch (req->opcode) {
	case FUSE_FSYNC:
		return wait_at_gate(rig, place);
	case FUSE_OPEN: /* done inline, answered by the notifier lane */
		if (place == FUSE_INLINE) {
			rig->stale |= reply->carry != 0;
			reply->open = (struct fuse_open_out){ .fh = 5 };
			reply->carry = 1;
			return FUSE_TO_NOTIFIER;
		}
		if (place != FUSE_NOTIFIER || reply->carry != 1)
			return -EPROTO;
		reply->body_len = sizeof(reply->open);
		return 0;
	case FUSE_WRITE: /* waits, but others wait for it */
		if (place == FUSE_INLINE)
			return -EAGAIN;
		rig->data_aligned = (uintptr_t)req->data % 4096 == 0;
		reply->write.size = (uint32_t)req->data_len;
		reply->body_len = sizeof(reply->write);
		return 0;
	case FUSE_READ:
		memset(reply->data, 'x', req->read.size);
		reply->data_len = req->read.size;
		return 0;
	case FUSE_STATFS:
		return handle_parking(rig, reply, place);
	case FUSE_MKDIR: /* wants several locks */
		if (place == FUSE_INLINE)
			return -EAGAIN;
		return place == FUSE_PATIENT ? 0 : FUSE_TO_PATIENT;
	case FUSE_SETLKW:
		return handle_underway(rig, reply);
	case FUSE_SETLK:
		return FUSE_WOULD_BLOCK;
	case FUSE_FORGET:
		rig->forgets++;
		return 0;
	case FUSE_GETATTR:
		rig->stale |= reply->body_len || reply->carry;
		return 0;
	default:
		return -ENOTTY;
	}
}

static int rig_handle(void *ctx, const struct fuse_request *req,
		      struct fuse_reply *reply, enum fuse_place place)
{
	struct rig *rig = ctx;
	int result;

	pthread_mutex_lock(&rig->lock);
	result = handle_locked(rig, req, reply, place);
	pthread_mutex_unlock(&rig->lock);
	return result;
}

static int rig_may_answer(void *ctx, const struct fuse_request *req, int result)
{
	struct rig *rig = ctx;
	bool mute;

	pthread_mutex_lock(&rig->lock);
	mute = rig->mute;
	rig->put_off += mute;
	pthread_cond_broadcast(&rig->changed);
	pthread_mutex_unlock(&rig->lock);
	return mute ? FUSE_LATER : result;
}

static void rig_await(void *ctx)
{
	struct rig *rig = ctx;

	pthread_mutex_lock(&rig->lock);
	while (rig->mute)
		pthread_cond_wait(&rig->changed, &rig->lock);
	pthread_mutex_unlock(&rig->lock);
}

static const struct fuse_handler rig_handler = {
	.start = rig_start,
	.handle = rig_handle,
	.answer = rig_may_answer,
	.await = rig_await,
	.give_up = rig_give_up,
	.cancel = rig_cancel,
	.stop = rig_stop,
};

/* ---- the kernel ---- */

static uint64_t rig_send(struct rig *rig, uint32_t opcode, const void *args,
			 size_t len, const void *data, size_t data_len)
{
	uint64_t unique = rig->unique += 2;

	request_begin(&rig->rb, opcode, 1);
	memcpy(rig->rb.bytes + offsetof(struct fuse_in_header, unique), &unique,
	       sizeof(unique));
	request_add(&rig->rb, args, len);
	request_add(&rig->rb, data, data_len);
	assert_int_equal(write(rig->kernel, rig->rb.bytes, rig->rb.len),
			 rig->rb.len);
	return unique;
}

static uint64_t rig_send_getattr(struct rig *rig)
{
	struct fuse_getattr_in in = { 0 };

	return rig_send(rig, FUSE_GETATTR, &in, sizeof(in), "", 0);
}

static uint64_t rig_send_fsync(struct rig *rig)
{
	struct fuse_fsync_in in = { 0 };

	return rig_send(rig, FUSE_FSYNC, &in, sizeof(in), "", 0);
}

/* The next answer, within 20 s. */
static size_t rig_answer(struct rig *rig, uint64_t *unique, int *error)
{
	static char bytes[70000];
	struct pollfd pfd = { .fd = rig->kernel, .events = POLLIN };
	struct fuse_out_header head;
	ssize_t n;

	assert_int_equal(poll(&pfd, 1, 20000), 1);
	n = read(rig->kernel, bytes, sizeof(bytes));
	assert_true(n >= (ssize_t)sizeof(head));
	memcpy(&head, bytes, sizeof(head));
	assert_int_equal(head.len, n);
	*unique = head.unique;
	*error = head.error;
	return (size_t)n - sizeof(head);
}

static size_t rig_expect(struct rig *rig, uint64_t unique, int error)
{
	uint64_t got;
	int got_error;
	size_t len = rig_answer(rig, &got, &got_error);

	assert_int_equal(got, unique);
	assert_int_equal(got_error, error);
	return len;
}

static void rig_send_init(struct rig *rig, uint32_t minor)
{
	struct fuse_init_in in = {
		.major = 7,
		.minor = minor,
		.flags = FUSE_MAX_PAGES,
	};

	rig_send(rig, FUSE_INIT, &in, sizeof(in), "", 0);
}

/* ---- beginning and end ---- */

static void rig_ready(void *arg)
{
	struct rig *rig = arg;

	pthread_mutex_lock(&rig->lock);
	rig->ready = true;
	pthread_mutex_unlock(&rig->lock);
}

static void *rig_main(void *arg)
{
	struct rig *rig = arg;

	rig->result = fuse_session_run(rig->session);
	return NULL;
}

static void rig_run(struct rig *rig, uint32_t minor)
{
	rig_send_init(rig, minor);
	assert_int_equal(fuse_thread("run", rig_main, rig, &rig->thread), 0);
	rig->running = true;
	rig_expect(rig, 2, minor < FUSE_MINOR_MIN ? -EPROTO : 0);
}

static int rig_join(struct rig *rig)
{
	if (rig->running)
		pthread_join(rig->thread, NULL);
	rig->running = false;
	return rig->result;
}

static void rig_open_gate(struct rig *rig)
{
	pthread_mutex_lock(&rig->lock);
	rig->gate_open = true;
	pthread_cond_broadcast(&rig->changed);
	pthread_mutex_unlock(&rig->lock);
}

static void rig_set_mute(struct rig *rig, bool mute)
{
	pthread_mutex_lock(&rig->lock);
	rig->mute = mute;
	pthread_cond_broadcast(&rig->changed);
	pthread_mutex_unlock(&rig->lock);
}

static void rig_set_park(struct rig *rig, bool park)
{
	pthread_mutex_lock(&rig->lock);
	rig->park = park;
	pthread_mutex_unlock(&rig->lock);
}

static void rig_wait_at_gate(struct rig *rig, unsigned n)
{
	pthread_mutex_lock(&rig->lock);
	while (rig->at_gate < n)
		pthread_cond_wait(&rig->changed, &rig->lock);
	pthread_mutex_unlock(&rig->lock);
}

static void rig_create(struct rig *rig, unsigned requests_max,
		       unsigned patience_ms)
{
	struct fuse_session_params params = {
		.conn = &rig->conn,
		.handler = &rig_handler,
		.ctx = rig,
		.wants = { .max_write = FUSE_MAX_WRITE },
		.who = "test",
		.ready = rig_ready,
		.ready_arg = rig,
		.readers = 1,
		.workers_max = 3,
		.requests_max = requests_max,
		.interrupt_patience_ms = patience_ms,
	};
	int fds[2];

	assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET, 0, fds), 0);
	pthread_mutex_init(&rig->lock, NULL);
	pthread_cond_init(&rig->changed, NULL);
	pthread_mutex_init(&rig->conn.lock, NULL);
	rig->conn.fds[0] = fds[0];
	rig->conn.nr_fds = 1;
	rig->kernel = fds[1];
	assert_int_equal(fuse_session_create(&params, &rig->session), 0);
}

static int setup(void **state)
{
	struct rig *rig = calloc(1, sizeof(*rig));

	*state = rig;
	rig->overtakes_with = 1;
	rig_create(rig, 0, 0);
	return 0;
}

static int setup_running(void **state)
{
	setup(state);
	rig_run(*state, 45);
	return 0;
}

static int teardown(void **state)
{
	struct rig *rig = *state;

	rig_open_gate(rig);
	rig_set_mute(rig, false);
	fuse_session_stop(rig->session);
	rig_join(rig);
	fuse_session_destroy(rig->session);
	close(rig->kernel);
	close(rig->conn.fds[0]);
	free(rig);
	return 0;
}

/* ---- tests ---- */

static void test_answers_inline(void **state)
{
	struct rig *rig = *state;
	struct fuse_session_stats stats;

	for (unsigned i = 0; i < 100; i++)
		rig_expect(rig, rig_send_getattr(rig), 0);
	assert_int_equal(rig->last_place, FUSE_INLINE);
	assert_true(rig->ready);
	fuse_session_stop(rig->session);
	assert_int_equal(rig_join(rig), 0);
	fuse_session_get_stats(rig->session, &stats);
	assert_int_equal(stats.requests, 100);
	assert_int_equal(stats.inline_done, 100);
	assert_int_equal(stats.by_opcode[FUSE_GETATTR], 100);
}

/* The reader goes on while more requests wait than there are workers. */
static void test_waiting_holds_up_nobody(void **state)
{
	struct fuse_write_in in = {
		.size = 50000,
		.write_flags = FUSE_WRITE_CACHE,
	};
	struct rig *rig = *state;
	static char data[50000];
	uint64_t fsyncs[10], unique;
	uint64_t sum = 0;
	int error;

	for (unsigned i = 0; i < 10; i++)
		fsyncs[i] = rig_send_fsync(rig);
	rig_wait_at_gate(rig, 3);
	rig_expect(rig, rig_send_getattr(rig), 0);
	/* What others wait for has threads of its own. */
	unique = rig_send(rig, FUSE_WRITE, &in, sizeof(in), data, sizeof(data));
	rig_expect(rig, unique, 0);
	assert_true(rig->data_aligned);

	rig_open_gate(rig);
	for (unsigned i = 0; i < 10; i++) {
		rig_answer(rig, &unique, &error);
		assert_int_equal(error, 0);
		sum += unique;
	}
	for (unsigned i = 0; i < 10; i++)
		sum -= fsyncs[i];
	assert_int_equal(sum, 0); /* each was answered once */
}

static void test_notifier_lane(void **state)
{
	struct fuse_open_in in = { 0 };
	struct rig *rig = *state;

	for (unsigned i = 0; i < 10; i++) {
		uint64_t unique =
			rig_send(rig, FUSE_OPEN, &in, sizeof(in), "", 0);

		assert_int_equal(rig_expect(rig, unique, 0),
				 sizeof(struct fuse_open_out));
		/* Its slot is used again without a trace of it. */
		rig_expect(rig, rig_send_getattr(rig), 0);
	}
	assert_false(rig->stale);
}

static void test_read_answers_data(void **state)
{
	struct fuse_read_in in = { .size = 60000 };
	struct rig *rig = *state;
	uint64_t unique = rig_send(rig, FUSE_READ, &in, sizeof(in), "", 0);

	assert_int_equal(rig_expect(rig, unique, 0), 60000);
}

static void test_no_answer_to_forget(void **state)
{
	struct fuse_forget_in in = { .nlookup = 1 };
	struct rig *rig = *state;

	rig_send(rig, FUSE_FORGET, &in, sizeof(in), "", 0);
	rig_expect(rig, rig_send_getattr(rig), 0);
	assert_int_equal(rig->forgets, 1);
}

static void test_strange_requests(void **state)
{
	struct rig *rig = *state;
	struct fuse_session_stats stats;

	rig_expect(rig, rig_send(rig, 52, "statx...", 8, "", 0), -ENOSYS);
	rig_expect(rig, rig_send(rig, 9999, "", 0, "", 0), -ENOSYS);
	rig_expect(rig, rig_send(rig, FUSE_LOOKUP, "a/b", 4, "", 0), -EIO);
	rig_expect(rig, rig_send(rig, FUSE_IOCTL, "", 0, "", 0), -ENOTTY);
	fuse_session_get_stats(rig->session, &stats);
	assert_int_equal(stats.malformed, 1);
	rig_expect(rig, rig_send_getattr(rig), 0);
}

/* Nothing here waits long: an interrupted request simply goes on. */
static void test_interrupt(void **state)
{
	struct fuse_interrupt_in in;
	struct rig *rig = *state;
	struct fuse_session_stats stats;
	uint64_t fsync = rig_send_fsync(rig);

	rig_wait_at_gate(rig, 1);
	in.unique = fsync;
	rig_send(rig, FUSE_INTERRUPT, &in, sizeof(in), "", 0);
	rig_expect(rig, rig_send_getattr(rig), 0);
	rig_open_gate(rig);
	rig_expect(rig, fsync, 0);
	fuse_session_get_stats(rig->session, &stats);
	assert_int_equal(stats.interrupts, 1);
	assert_int_equal(stats.interrupted, 0);
}

static uint64_t rig_send_parking(struct rig *rig)
{
	return rig_send(rig, FUSE_STATFS, "", 0, "", 0);
}

static void rig_wait_parked(struct rig *rig, unsigned n)
{
	pthread_mutex_lock(&rig->lock);
	while (rig->nr_parked < n)
		pthread_cond_wait(&rig->changed, &rig->lock);
	pthread_mutex_unlock(&rig->lock);
}

static void rig_grant(struct rig *rig)
{
	pthread_mutex_lock(&rig->lock);
	rig->granted = true;
	pthread_mutex_unlock(&rig->lock);
}

/* More than ten times as many wait as there are workers. */
static void test_parked_hold_no_thread(void **state)
{
	struct fuse_mkdir_in in = { 0 };
	struct rig *rig = *state;
	uint64_t uniques[40], unique, sum = 0;
	int error;

	for (unsigned i = 0; i < 40; i++)
		uniques[i] = rig_send_parking(rig);
	rig_wait_parked(rig, 40);
	/* All lanes are free for others. */
	rig_expect(rig, rig_send(rig, FUSE_MKDIR, &in, sizeof(in), "d", 2), 0);
	assert_int_equal(rig->last_place, FUSE_PATIENT);
	rig_grant(rig);
	for (unsigned i = 0; i < 40; i++)
		fuse_reply_resume(rig->parked[i]);
	for (unsigned i = 0; i < 40; i++) {
		rig_answer(rig, &unique, &error);
		assert_int_equal(error, 0);
		sum += unique - uniques[i];
	}
	assert_int_equal(sum, 0);
	assert_int_equal(rig->given_up, 0);
}

/* What a request waits for may come before it is on the list. */
static void test_resumed_before_parked(void **state)
{
	struct rig *rig = *state;

	rig->overtakes = true;
	for (unsigned i = 0; i < 20; i++) {
		pthread_mutex_lock(&rig->lock);
		rig->granted = false;
		pthread_mutex_unlock(&rig->lock);
		rig_expect(rig, rig_send_parking(rig), 0);
	}
	assert_int_equal(rig->nr_parked, 20);
}

static void test_interrupt_of_parked(void **state)
{
	struct fuse_interrupt_in in;
	struct rig *rig = *state;
	uint64_t first = rig_send_parking(rig);
	uint64_t second;

	rig_wait_parked(rig, 1);
	second = rig_send_parking(rig);
	rig_wait_parked(rig, 2);
	in.unique = first;
	rig_send(rig, FUSE_INTERRUPT, &in, sizeof(in), "", 0);
	rig_expect(rig, first, -EINTR);
	assert_int_equal(rig->given_up, 1);
	/* The other one waits on, */
	rig_grant(rig);
	fuse_reply_resume(rig->parked[1]);
	rig_expect(rig, second, 0);
	/* and INTERRUPT may be read before the request that it names. */
	rig->granted = false;
	in.unique = rig->unique + 4;
	rig_send(rig, FUSE_INTERRUPT, &in, sizeof(in), "", 0);
	rig_expect(rig, rig_send_parking(rig), -EINTR);
}

static void test_stop_gives_up_parked(void **state)
{
	struct rig *rig = *state;
	uint64_t unique = rig_send_parking(rig);

	rig_wait_parked(rig, 1);
	fuse_session_stop(rig->session);
	assert_int_equal(rig_join(rig), 0);
	rig_expect(rig, unique, -ENODEV);
	assert_int_equal(rig->given_up, 1);
}

/* ---- what is under way elsewhere ---- */

static uint64_t rig_send_lock(struct rig *rig, uint32_t opcode)
{
	struct fuse_lk_in in = { 0 };

	return rig_send(rig, opcode, &in, sizeof(in), "", 0);
}

static void rig_wait_underway(struct rig *rig, unsigned n)
{
	pthread_mutex_lock(&rig->lock);
	while (rig->nr_underway < n)
		pthread_cond_wait(&rig->changed, &rig->lock);
	pthread_mutex_unlock(&rig->lock);
}

static void rig_wait_cancelled(struct rig *rig, uint64_t id)
{
	pthread_mutex_lock(&rig->lock);
	while (rig->cancelled != id)
		pthread_cond_wait(&rig->changed, &rig->lock);
	pthread_mutex_unlock(&rig->lock);
}

static void rig_done(struct rig *rig, unsigned i, int result)
{
	struct fuse_reply *reply = rig->underway[i];

	rig->underway[i] = NULL;
	fuse_reply_done(reply, result);
}

static void test_underway(void **state)
{
	struct rig *rig = *state;
	uint64_t first = rig_send_lock(rig, FUSE_SETLKW);
	uint64_t second = rig_send_lock(rig, FUSE_SETLKW);

	rig_wait_underway(rig, 2);
	rig_expect(rig, rig_send_getattr(rig), 0);
	rig_done(rig, 1, 0);
	rig_expect(rig, second, 0);
	rig_done(rig, 0, FUSE_WOULD_BLOCK);
	rig_expect(rig, first, -EAGAIN);
}

/* EAGAIN is an answer, too, and comes from the reader. */
static void test_would_block(void **state)
{
	struct rig *rig = *state;

	rig_expect(rig, rig_send_lock(rig, FUSE_SETLK), -EAGAIN);
	assert_int_equal(rig->last_place, FUSE_INLINE);
}

static void test_done_before_parked(void **state)
{
	struct rig *rig = *state;

	for (int i = 0; i < 20; i++) {
		int result = i % 2 ? -EDEADLK : 0;

		rig->overtakes_with = result;
		rig->nr_underway = 0;
		rig_expect(rig, rig_send_lock(rig, FUSE_SETLKW), result);
		rig->underway[0] = NULL;
	}
}

/* It is answered by who ends it, and by nobody else. */
static void test_interrupt_of_underway(void **state)
{
	struct fuse_interrupt_in in;
	struct rig *rig = *state;
	uint64_t unique = rig_send_lock(rig, FUSE_SETLKW), parked;

	rig_wait_underway(rig, 1);
	in.unique = unique;
	rig_send(rig, FUSE_INTERRUPT, &in, sizeof(in), "", 0);
	rig_wait_cancelled(rig, 1);
	/* This one is given up when its time has come. */
	parked = rig_send_parking(rig);
	rig_wait_parked(rig, 1);
	in.unique = parked;
	rig_send(rig, FUSE_INTERRUPT, &in, sizeof(in), "", 0);
	rig_expect(rig, parked, -EINTR);
	/* The grant was faster. */
	rig_done(rig, 0, 0);
	rig_expect(rig, unique, 0);

	in.unique = rig->unique + 4;
	rig_send(rig, FUSE_INTERRUPT, &in, sizeof(in), "", 0);
	unique = rig_send_lock(rig, FUSE_SETLKW);
	rig_wait_cancelled(rig, 2);
	rig_done(rig, 1, -EINTR);
	rig_expect(rig, unique, -EINTR);
}

/* Nobody has sent a signal: errno 512 is not for programs. */
static void test_no_eintr_without_interrupt(void **state)
{
	struct fuse_interrupt_in in;
	struct rig *rig = *state;
	uint64_t unique = rig_send_lock(rig, FUSE_SETLKW);

	rig_wait_underway(rig, 1);
	rig_done(rig, 0, -EINTR);
	rig_wait_underway(rig, 2);
	in.unique = unique;
	rig_send(rig, FUSE_INTERRUPT, &in, sizeof(in), "", 0);
	rig_wait_cancelled(rig, 2);
	rig_done(rig, 1, -EINTR);
	rig_expect(rig, unique, -EINTR);

	rig->overtakes_with = -EINTR;
	unique = rig_send_lock(rig, FUSE_SETLKW);
	rig_wait_underway(rig, 4);
	rig->underway[2] = NULL;
	rig_done(rig, 3, 0);
	rig_expect(rig, unique, 0);
}

static void test_stop_ends_underway(void **state)
{
	struct rig *rig = *state;
	uint64_t unique = rig_send_lock(rig, FUSE_SETLKW);

	rig_wait_underway(rig, 1);
	fuse_session_stop(rig->session);
	assert_int_equal(rig_join(rig), 0);
	rig_expect(rig, unique, -EIO);
	rig->underway[0] = NULL;
}

/* The disk does not answer: what has not begun is given back. */
static void test_interrupt_of_the_stuck(void **state)
{
	struct fuse_interrupt_in in;
	struct rig *rig = *state;
	struct fuse_session_stats stats;
	uint64_t fsyncs[5];

	for (unsigned i = 0; i < 5; i++)
		fsyncs[i] = rig_send_fsync(rig);
	rig_wait_at_gate(rig, 3);
	in.unique = fsyncs[4];
	rig_send(rig, FUSE_INTERRUPT, &in, sizeof(in), "", 0);
	rig_expect(rig, fsyncs[4], -EINTR);
	fuse_session_get_stats(rig->session, &stats);
	assert_int_equal(stats.interrupted, 1);
	rig_open_gate(rig);
	for (unsigned i = 0; i < 4; i++) {
		uint64_t unique;
		int error;

		rig_answer(rig, &unique, &error);
		assert_int_equal(error, 0);
		assert_int_not_equal(unique, fsyncs[4]);
	}
}

static int setup_impatient(void **state)
{
	struct rig *rig = calloc(1, sizeof(*rig));

	*state = rig;
	rig->overtakes_with = 1;
	rig_create(rig, 0, 20);
	rig_run(rig, 45);
	return 0;
}

/* More requests than may be in progress: the rest waits in the kernel. */
static void test_bounded_requests(void **state)
{
	struct rig *rig = *state;
	struct fuse_session_stats stats;
	uint64_t unique;
	int error;

	for (unsigned i = 0; i < 40; i++)
		rig_send_fsync(rig);
	rig_wait_at_gate(rig, 3);
	fuse_session_get_stats(rig->session, &stats);
	assert_true(stats.slots <= FUSE_REQUESTS_MIN);
	rig_open_gate(rig);
	for (unsigned i = 0; i < 40; i++) {
		rig_answer(rig, &unique, &error);
		assert_int_equal(error, 0);
	}
}

static int setup_bounded(void **state)
{
	struct rig *rig = calloc(1, sizeof(*rig));

	*state = rig;
	rig_create(rig, FUSE_REQUESTS_MIN, 0);
	rig_run(rig, 45);
	return 0;
}

/* What has been read is answered before run() returns. */
static void test_stop_answers_all(void **state)
{
	struct rig *rig = *state;
	uint64_t unique;
	int error;

	for (unsigned i = 0; i < 8; i++)
		rig_send_fsync(rig);
	rig_wait_at_gate(rig, 3);
	rig_expect(rig, rig_send_getattr(rig), 0); /* all have been read */
	fuse_session_stop(rig->session);
	rig_open_gate(rig);
	assert_int_equal(rig_join(rig), 0);
	for (unsigned i = 0; i < 8; i++)
		rig_answer(rig, &unique, &error);
}

/* The reader has come to all that was sent, and nothing has been answered. */
static void rig_expect_silence(struct rig *rig)
{
	struct pollfd pfd = { .fd = rig->kernel, .events = POLLIN };
	struct fuse_forget_in in = { .nlookup = 1 };
	bool seen = false;

	rig_send(rig, FUSE_FORGET, &in, sizeof(in), "", 0);
	while (!seen) {
		pthread_mutex_lock(&rig->lock);
		seen = rig->forgets;
		pthread_mutex_unlock(&rig->lock);
	}
	assert_int_equal(poll(&pfd, 1, 0), 0);
}

/* No thread waits for the right to answer but one, whatever comes. */
static void test_later(void **state)
{
	struct rig *rig = *state;
	uint64_t unique;
	int error;

	rig_set_mute(rig, true);
	for (unsigned i = 0; i < 20; i++)
		rig_send_fsync(rig);
	rig_expect_silence(rig);
	rig_open_gate(rig);
	rig_set_mute(rig, false);
	for (unsigned i = 0; i < 20; i++) {
		rig_answer(rig, &unique, &error);
		assert_int_equal(error, 0);
	}
	assert_int_equal(rig->at_gate, 20);
}

/* What was served while the right was lost is not served a second time. */
static void test_answer_is_late(void **state)
{
	struct rig *rig = *state;
	uint64_t unique = rig_send_fsync(rig);

	rig_wait_at_gate(rig, 1);
	rig_set_mute(rig, true);
	rig_open_gate(rig);
	rig_expect_silence(rig);
	rig_set_mute(rig, false);
	rig_expect(rig, unique, 0);
	assert_int_equal(rig->at_gate, 1);
}

static void test_later_is_interrupted(void **state)
{
	struct rig *rig = *state;
	struct fuse_interrupt_in in;
	uint64_t first, second;

	rig_set_mute(rig, true);
	first = rig_send_getattr(rig);
	second = rig_send_getattr(rig);
	in.unique = first;
	rig_send(rig, FUSE_INTERRUPT, &in, sizeof(in), "", 0);
	rig_expect(rig, first, -EINTR);
	rig_set_mute(rig, false);
	rig_expect(rig, second, 0);
}

/*
 * What has been served has had its effect (a file is open, say), and is never
 * answered EINTR.
 */
static void test_served_is_not_interrupted(void **state)
{
	struct rig *rig = *state;
	struct fuse_interrupt_in in;
	uint64_t served, fresh;

	served = rig_send_fsync(rig);
	rig_wait_at_gate(rig, 1);
	rig_set_mute(rig, true);
	rig_open_gate(rig);
	pthread_mutex_lock(&rig->lock);
	while (!rig->put_off)
		pthread_cond_wait(&rig->changed, &rig->lock);
	pthread_mutex_unlock(&rig->lock);
	in.unique = served;
	rig_send(rig, FUSE_INTERRUPT, &in, sizeof(in), "", 0);
	/* It is the turn of the older one before this one. */
	fresh = rig_send_getattr(rig);
	in.unique = fresh;
	rig_send(rig, FUSE_INTERRUPT, &in, sizeof(in), "", 0);
	rig_expect(rig, fresh, -EINTR);
	rig_set_mute(rig, false);
	rig_expect(rig, served, 0);
	assert_int_equal(rig->at_gate, 1);
}

/* Who looks for what has been waiting finds both kinds of parked ones. */
static void test_parked_are_seen(void **state)
{
	struct rig *rig = *state;
	struct fuse_wait oldest[4];
	struct fuse_waits waits;
	uint64_t first, second;

	first = rig_send_parking(rig);
	rig_wait_parked(rig, 1);
	fuse_session_park(rig->session, true);
	rig_set_park(rig, true);
	second = rig_send_fsync(rig);
	rig_expect_silence(rig);
	do {
		waits = (struct fuse_waits){
			.before_ns = UINT64_MAX,
			.oldest = oldest,
			.max = 4,
		};
		fuse_session_waits(rig->session, &waits);
	} while (waits.found && !oldest[0].queued);
	assert_int_equal(waits.found, 2);
	assert_int_equal(oldest[0].opcode, FUSE_STATFS);
	assert_int_equal(oldest[1].opcode, FUSE_FSYNC);
	assert_true(oldest[1].queued);
	/* A thaw is for the second alone. */
	rig_open_gate(rig);
	rig_set_park(rig, false);
	fuse_session_park(rig->session, false);
	rig_expect(rig, second, 0);
	rig_expect_silence(rig);
	assert_int_equal(rig->nr_parked, 1);
	rig_grant(rig);
	fuse_reply_resume(rig->parked[0]);
	rig_expect(rig, first, 0);
}

/* Parked requests hold no thread, keep nobody up, and go on when told to. */
static void test_parked(void **state)
{
	struct rig *rig = *state;
	uint64_t unique, getattr;
	int error;

	rig_open_gate(rig);
	fuse_session_park(rig->session, true);
	rig_set_park(rig, true);
	for (unsigned i = 0; i < 100; i++)
		rig_send_fsync(rig);
	getattr = rig_send_getattr(rig);
	rig_expect(rig, getattr, 0);
	rig_expect_silence(rig);
	rig_set_park(rig, false);
	fuse_session_park(rig->session, false);
	for (unsigned i = 0; i < 100; i++) {
		rig_answer(rig, &unique, &error);
		assert_int_equal(error, 0);
	}
}

/* A killed task's request is answered before that; the others stay. */
static void test_parked_is_interrupted(void **state)
{
	struct rig *rig = *state;
	struct fuse_interrupt_in in;
	uint64_t first, second;

	rig_open_gate(rig);
	fuse_session_park(rig->session, true);
	rig_set_park(rig, true);
	first = rig_send_fsync(rig);
	second = rig_send_fsync(rig);
	in.unique = first;
	rig_send(rig, FUSE_INTERRUPT, &in, sizeof(in), "", 0);
	rig_expect(rig, first, -EINTR);
	rig_set_park(rig, false);
	fuse_session_park(rig->session, false);
	rig_expect(rig, second, 0);
}

/* A session that ends does not wait for a thaw. */
static void test_stop_while_parked(void **state)
{
	struct rig *rig = *state;
	uint64_t unique;
	int error;

	fuse_session_park(rig->session, true);
	rig_set_park(rig, true);
	rig_send_fsync(rig);
	rig_expect_silence(rig);
	fuse_session_stop(rig->session);
	rig_answer(rig, &unique, &error);
	assert_int_equal(error, -ENODEV);
}

/* The end of a session waits for the right, too, and loses no request. */
static void test_stop_while_mute(void **state)
{
	struct rig *rig = *state;
	uint64_t unique;
	int error;

	rig_set_mute(rig, true);
	rig_open_gate(rig);
	for (unsigned i = 0; i < 8; i++)
		rig_send_fsync(rig);
	rig_expect_silence(rig);
	fuse_session_stop(rig->session);
	rig_set_mute(rig, false);
	assert_int_equal(rig_join(rig), 0);
	for (unsigned i = 0; i < 8; i++) {
		rig_answer(rig, &unique, &error);
		assert_int_equal(error, 0);
	}
}

/* umount waits until the volume is at rest. */
static void test_destroy_is_answered_last(void **state)
{
	struct rig *rig = *state;
	struct pollfd pfd = { .fd = rig->kernel, .events = POLLIN };
	uint64_t unique;

	rig_expect(rig, rig_send_getattr(rig), 0);
	unique = rig_send(rig, FUSE_DESTROY, "", 0, "", 0);
	assert_int_equal(rig_join(rig), 0);
	assert_int_equal(poll(&pfd, 1, 0), 0);
	fuse_session_destroy(rig->session);
	rig_expect(rig, unique, 0);

	/* For the teardown. */
	close(rig->kernel);
	close(rig->conn.fds[0]);
	rig_create(rig, 0, 0);
}

static void test_old_kernel(void **state)
{
	struct rig *rig = *state;

	rig_run(rig, FUSE_MINOR_MIN - 1);
	assert_int_equal(rig_join(rig), -EPROTO);
	assert_false(rig->ready);
}

static void test_start_fails(void **state)
{
	struct rig *rig = *state;

	rig->start_result = -ENOMEM;
	rig_run(rig, 45);
	assert_int_equal(rig_join(rig), -ENOMEM);
	assert_false(rig->ready);
}

static void test_params(void **state)
{
	struct fuse_session_params params = {
		.handler = &rig_handler,
		.who = "test",
		.readers = FUSE_READERS_MAX + 1,
	};
	struct fuse_session *session;

	assert_int_equal(fuse_session_create(&params, &session), -EINVAL);
	fuse_session_destroy(NULL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
#define RUNNING(test) \
	cmocka_unit_test_setup_teardown(test, setup_running, teardown)
		RUNNING(test_answers_inline),
		RUNNING(test_waiting_holds_up_nobody),
		RUNNING(test_notifier_lane),
		RUNNING(test_read_answers_data),
		RUNNING(test_no_answer_to_forget),
		RUNNING(test_strange_requests),
		RUNNING(test_interrupt),
		RUNNING(test_parked_hold_no_thread),
		RUNNING(test_resumed_before_parked),
		RUNNING(test_stop_gives_up_parked),
		cmocka_unit_test_setup_teardown(test_interrupt_of_parked,
						setup_impatient, teardown),
		RUNNING(test_underway),
		RUNNING(test_would_block),
		RUNNING(test_done_before_parked),
		cmocka_unit_test_setup_teardown(test_interrupt_of_underway,
						setup_impatient, teardown),
		RUNNING(test_no_eintr_without_interrupt),
		RUNNING(test_stop_ends_underway),
		RUNNING(test_stop_answers_all),
		RUNNING(test_later),
		RUNNING(test_answer_is_late),
		RUNNING(test_stop_while_mute),
		RUNNING(test_parked),
		RUNNING(test_parked_are_seen),
		RUNNING(test_parked_is_interrupted),
		RUNNING(test_stop_while_parked),
		RUNNING(test_destroy_is_answered_last),
		cmocka_unit_test_setup_teardown(test_bounded_requests,
						setup_bounded, teardown),
		cmocka_unit_test_setup_teardown(test_interrupt_of_the_stuck,
						setup_impatient, teardown),
		cmocka_unit_test_setup_teardown(test_later_is_interrupted,
						setup_impatient, teardown),
		cmocka_unit_test_setup_teardown(test_served_is_not_interrupted,
						setup_impatient, teardown),
		cmocka_unit_test_setup_teardown(test_old_kernel, setup,
						teardown),
		cmocka_unit_test_setup_teardown(test_start_fails, setup,
						teardown),
		cmocka_unit_test(test_params),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
