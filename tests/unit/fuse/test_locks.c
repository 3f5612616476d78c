/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Application locks from the kernel's requests to its answers: front end and
 * session over an engine that is alone. What waits is seen by what is not
 * answered when the answer to a later request is.
 *
 * Processes are owners 1, 2, ..; open files are handles 0x10, 0x20, .., the
 * owner of whose OFD locks and flock is the number of the handle.
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmocka.h>

#include "fake_fs.h"
#include "fuse/conn_impl.h"
#include "fuse/front.h"
#include "fuse/thread.h"
#include "request_bytes.h"

#define NODE 4711u
#define FILE_A 3u
#define FILE_B 4u

struct rig {
	struct fuse_conn conn;
	int kernel;
	struct fuse_front *front;
	struct fuse_session *session;
	struct fuse_lock_service service;
	pthread_t thread;
	struct request_bytes rb;
	uint64_t unique;
	struct fuse_lk_out lk; /* of the latest answer that had one */

	pthread_mutex_t lock; /* guards the rest */
	struct plock_engine *engine;
	unsigned calls;
	bool failed;
	/* As a member would that asks others: every call is under way. */
	bool remote;
};

/* ---- the service ---- */

/* lock held; dropped for the answers. */
static void tell(struct rig *rig, struct plock_updates *out)
{
	pthread_mutex_unlock(&rig->lock);
	for (size_t i = 0; i < out->count; i++)
		fuse_front_lock_done(rig->front, &out->list[i].answer);
	plock_updates_free(out);
	pthread_mutex_lock(&rig->lock);
}

static void step(struct rig *rig, struct plock_event *event,
		 struct plock_updates *out)
{
	event->now_ns = fuse_now_ns();
	plock_step(rig->engine, event, out);
	for (size_t i = 0; i < out->count; i++)
		assert_int_equal(out->list[i].kind, PLOCK_UP_ANSWER);
}

static bool take_own(struct plock_updates *out, uint64_t ctx,
		     struct plock_result *res)
{
	for (size_t i = 0; i < out->count; i++) {
		if (out->list[i].answer.ctx != ctx)
			continue;
		*res = out->list[i].answer;
		out->list[i] = out->list[--out->count];
		return true;
	}
	return false;
}

static int service_call(void *arg, uint64_t number, const struct plock_op *op,
			uint64_t ctx, uint64_t *id, struct plock_result *res)
{
	bool back = op->kind == PLOCK_CLOSE ||
		    (op->kind == PLOCK_SET && op->mode == RANGE_NONE);
	struct plock_event event = {
		.kind = PLOCK_EV_CALL,
		.call = { .number = number, .op = *op, .ctx = ctx },
	};
	struct plock_updates out = { 0 };
	struct rig *rig = arg;
	bool own;

	pthread_mutex_lock(&rig->lock);
	rig->calls++;
	*res = (struct plock_result){ .status = back ? 0 : -EIO };
	if (rig->failed) {
		pthread_mutex_unlock(&rig->lock);
		return 0;
	}
	step(rig, &event, &out);
	*id = event.call.id;
	own = !rig->remote && take_own(&out, ctx, res);
	tell(rig, &out);
	pthread_mutex_unlock(&rig->lock);
	return own ? 0 : -EINPROGRESS;
}

static void service_cancel(void *arg, uint64_t id)
{
	struct plock_event event = { .kind = PLOCK_EV_CANCEL, .cancel.id = id };
	struct plock_updates out = { 0 };
	struct rig *rig = arg;

	pthread_mutex_lock(&rig->lock);
	step(rig, &event, &out);
	tell(rig, &out);
	pthread_mutex_unlock(&rig->lock);
}

static bool service_knows(void *arg, enum plock_table table, uint64_t owner)
{
	return true;
}

struct waiting {
	uint64_t ids[128];
	unsigned count;
};

static void note_waiting(void *arg, const struct plock_file_info *info,
			 enum plock_table table, const struct range_wait *wait)
{
	struct waiting *waiting = arg;

	waiting->ids[waiting->count++] = wait->req.ctx;
}

static void service_fail(void *arg)
{
	struct plock_event event = { .kind = PLOCK_EV_CANCEL };
	struct plock_updates out = { 0 };
	struct waiting waiting = { 0 };
	struct rig *rig = arg;

	pthread_mutex_lock(&rig->lock);
	rig->failed = true;
	plock_visit(rig->engine, NULL, NULL, note_waiting, &waiting);
	for (unsigned i = 0; i < waiting.count; i++) {
		event.cancel.id = waiting.ids[i];
		step(rig, &event, &out);
	}
	for (size_t i = 0; i < out.count; i++)
		out.list[i].answer.status = -EIO;
	tell(rig, &out);
	pthread_mutex_unlock(&rig->lock);
}

/* ---- the kernel ---- */

static uint64_t rig_send(struct rig *rig, uint32_t opcode, uint64_t nodeid,
			 const void *args, size_t len)
{
	uint64_t unique = rig->unique += 2;

	request_begin(&rig->rb, opcode, nodeid);
	memcpy(rig->rb.bytes + offsetof(struct fuse_in_header, unique), &unique,
	       sizeof(unique));
	request_add(&rig->rb, args, len);
	assert_int_equal(write(rig->kernel, rig->rb.bytes, rig->rb.len),
			 rig->rb.len);
	return unique;
}

/* The next answer is this one. */
static void rig_expect(struct rig *rig, uint64_t unique, int error)
{
	struct pollfd pfd = { .fd = rig->kernel, .events = POLLIN };
	struct {
		struct fuse_out_header head;
		struct fuse_lk_out lk;
		char rest[4000];
	} answer;
	ssize_t n;

	assert_int_equal(poll(&pfd, 1, 20000), 1);
	n = read(rig->kernel, &answer, sizeof(answer));
	assert_int_equal(n, answer.head.len);
	assert_int_equal(answer.head.unique, unique);
	assert_int_equal(answer.head.error, error);
	if (n == sizeof(answer.head) + sizeof(answer.lk))
		rig->lk = answer.lk;
}

/* How one locks: l_type, or with FLOCK as flock(2) does. */
#define WAIT 0x100
#define FLOCK 0x200

static uint64_t send_lk(struct rig *rig, uint64_t file, uint64_t owner, int how,
			uint64_t start, uint64_t end)
{
	struct fuse_lk_in in = {
		.fh = owner < 0x10 ? 0x10 : owner,
		.owner = owner,
		.lk = { start, end, how & 0xff, 70 + (uint32_t)owner },
		.lk_flags = how & FLOCK ? FUSE_LK_FLOCK : 0,
	};

	return rig_send(rig, how & WAIT ? FUSE_SETLKW : FUSE_SETLK, file, &in,
			sizeof(in));
}

/* Bytes 0 to 9, answered at once. */
static void lk(struct rig *rig, uint64_t file, uint64_t owner, int how,
	       int error)
{
	rig_expect(rig, send_lk(rig, file, owner, how, 0, 9), error);
}

static void getlk(struct rig *rig, uint64_t file, uint64_t owner)
{
	struct fuse_lk_in in = {
		.fh = 0x10,
		.owner = owner,
		.lk = { 0, RANGE_END, F_WRLCK, 70 + (uint32_t)owner },
	};

	rig_expect(rig, rig_send(rig, FUSE_GETLK, file, &in, sizeof(in)), 0);
}

/* A process closes a descriptor. */
static void flush(struct rig *rig, uint64_t file, uint64_t owner)
{
	struct fuse_flush_in in = { .fh = 0x10, .lock_owner = owner };

	rig_expect(rig, rig_send(rig, FUSE_FLUSH, file, &in, sizeof(in)), 0);
}

static void release(struct rig *rig, uint64_t file, uint64_t fh, uint32_t flags)
{
	struct fuse_release_in in = { .fh = fh,
				      .release_flags = flags,
				      .lock_owner = flags ? fh : 0 };

	rig_expect(rig, rig_send(rig, FUSE_RELEASE, file, &in, sizeof(in)), 0);
}

static void interrupt(struct rig *rig, uint64_t unique)
{
	struct fuse_interrupt_in in = { .unique = unique };

	rig_send(rig, FUSE_INTERRUPT, 0, &in, sizeof(in));
}

/* Everything sent so far has been looked at: there is one reader. */
static void rig_sync(struct rig *rig)
{
	struct fuse_getattr_in in = { 0 };

	rig_expect(rig, rig_send(rig, FUSE_GETATTR, 2, &in, sizeof(in)), 0);
}

/* ---- beginning and end ---- */

static void *rig_main(void *arg)
{
	struct rig *rig = arg;

	fuse_session_run(rig->session);
	return NULL;
}

static void rig_engine(struct rig *rig)
{
	const struct plock_config config = { .node = NODE };
	const uint64_t nodes[] = { NODE };
	struct plock_event event = {
		.kind = PLOCK_EV_MEMBERS,
		.members = { .epoch = 1, .nodes = nodes, .count = 1 },
	};
	struct plock_updates out = { 0 };

	assert_int_equal(plock_engine_new(&config, &rig->engine), 0);
	step(rig, &event, &out);
	plock_updates_free(&out);
}

static void rig_front(struct rig *rig)
{
	struct fuse_front_params params = { .conn = &rig->conn, .who = "test" };

	rig->service = (struct fuse_lock_service){
		.call = service_call,
		.cancel = service_cancel,
		.knows = service_knows,
		.fail = service_fail,
		.arg = rig,
		.node = NODE,
	};
	fuse_policy_defaults(&params.policy, FUSE_DATA_DIRECT);
	params.policy.shared = true;
	params.policy.locks = true;
	params.locks = &rig->service;
	assert_int_equal(fuse_front_create(&params, &rig->front), 0);
}

static void rig_session(struct rig *rig)
{
	struct fuse_session_params params = {
		.conn = &rig->conn,
		.handler = &fuse_front_handler,
		.ctx = rig->front,
		.who = "test",
		.readers = 1,
		.workers_max = FUSE_WORKERS_MIN,
	};
	struct fuse_init_in in = { .major = 7, .minor = 45 };

	fuse_front_wants(rig->front, &params.wants);
	assert_true(params.wants.flags & FUSE_POSIX_LOCKS);
	assert_true(params.wants.flags & FUSE_FLOCK_LOCKS);
	assert_int_equal(fuse_session_create(&params, &rig->session), 0);
	assert_int_equal(fuse_thread("run", rig_main, rig, &rig->thread), 0);
	rig_expect(rig, rig_send(rig, FUSE_INIT, 0, &in, sizeof(in)), 0);
}

static int setup(void **state)
{
	struct rig *rig = calloc(1, sizeof(*rig));
	int fds[2];

	*state = rig;
	fake_reset();
	assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET, 0, fds), 0);
	pthread_mutex_init(&rig->lock, NULL);
	pthread_mutex_init(&rig->conn.lock, NULL);
	rig->conn.fds[0] = fds[0];
	rig->conn.nr_fds = 1;
	rig->kernel = fds[1];
	rig_engine(rig);
	rig_front(rig);
	rig_session(rig);
	return 0;
}

static int setup_remote(void **state)
{
	setup(state);
	((struct rig *)*state)->remote = true;
	return 0;
}

static int teardown(void **state)
{
	struct rig *rig = *state;

	fuse_session_stop(rig->session);
	pthread_join(rig->thread, NULL);
	fuse_session_destroy(rig->session);
	fuse_front_destroy(rig->front);
	plock_engine_free(rig->engine);
	close(rig->kernel);
	close(rig->conn.fds[0]);
	free(rig);
	return 0;
}

/* ---- tests: each with the file decided here, and elsewhere ---- */

static void test_exclusion(void **state)
{
	struct rig *rig = *state;

	lk(rig, FILE_A, 1, F_WRLCK, 0);
	lk(rig, FILE_A, 2, F_WRLCK, -EAGAIN);
	lk(rig, FILE_A, 2, F_RDLCK, -EAGAIN);
	lk(rig, FILE_B, 2, F_WRLCK, 0);
	rig_expect(rig, send_lk(rig, FILE_A, 2, F_WRLCK, 10, RANGE_END), 0);
	lk(rig, FILE_A, 1, F_UNLCK, 0);
	lk(rig, FILE_A, 2, F_RDLCK, 0);
	lk(rig, FILE_A, 1, F_RDLCK, 0);
	lk(rig, FILE_A, 1, F_WRLCK, -EAGAIN);
	/* flock is another world. */
	lk(rig, FILE_A, 0x20, F_WRLCK | FLOCK, 0);
	lk(rig, FILE_A, 0x30, F_RDLCK | FLOCK, -EAGAIN);
}

static void test_nonsense(void **state)
{
	struct rig *rig = *state;

	rig_expect(rig, send_lk(rig, FILE_A, 1, F_WRLCK, 10, 9), -EINVAL);
	rig_expect(rig, send_lk(rig, FILE_A, 1, F_WRLCK, 0, UINT64_MAX),
		   -EINVAL);
	lk(rig, FILE_A, 1, 77, -EINVAL);
	assert_int_equal(rig->calls, 0);
}

static void test_waits_for_unlock(void **state)
{
	struct rig *rig = *state;
	uint64_t wait, unlock;

	lk(rig, FILE_A, 1, F_WRLCK, 0);
	wait = send_lk(rig, FILE_A, 2, F_WRLCK | WAIT, 0, 9);
	rig_sync(rig);
	unlock = send_lk(rig, FILE_A, 1, F_UNLCK, 0, 9);
	rig_expect(rig, wait, 0);
	rig_expect(rig, unlock, 0);
	lk(rig, FILE_A, 1, F_WRLCK, -EAGAIN);
}

/* A hundred who wait, two workers: everything else is served. */
static void test_waiters_hold_no_thread(void **state)
{
	struct rig *rig = *state;
	uint64_t wait[100];

	lk(rig, FILE_A, 1, F_WRLCK, 0);
	for (uint64_t i = 0; i < 100; i++)
		wait[i] = send_lk(rig, FILE_A, 100 + i, F_RDLCK | WAIT, 0, 9);
	for (int i = 0; i < 100; i++)
		rig_sync(rig);
	flush(rig, FILE_B, 1);
	for (int i = 0; i < 100; i++)
		interrupt(rig, wait[i]);
	for (int i = 0; i < 100; i++)
		rig_expect(rig, wait[i], -EINTR);
	lk(rig, FILE_A, 1, F_UNLCK, 0);
	lk(rig, FILE_A, 2, F_WRLCK, 0);
}

/* An interrupted wait ends at once, and leaves nothing, but what was held. */
static void test_interrupt(void **state)
{
	struct rig *rig = *state;
	uint64_t wait;

	lk(rig, FILE_A, 1, F_WRLCK, 0);
	rig_expect(rig, send_lk(rig, FILE_A, 2, F_WRLCK, 20, 29), 0);
	for (int i = 0; i < 300; i++) {
		wait = send_lk(rig, FILE_A, 2, F_WRLCK | WAIT, 0, 9);
		interrupt(rig, wait);
		rig_expect(rig, wait, -EINTR);
	}
	lk(rig, FILE_A, 1, F_UNLCK, 0);
	lk(rig, FILE_A, 3, F_WRLCK, 0);
	rig_expect(rig, send_lk(rig, FILE_A, 3, F_WRLCK, 20, 29), -EAGAIN);
}

/* The INTERRUPT is read before the request that it names. */
static void test_early_interrupt(void **state)
{
	struct rig *rig = *state;

	lk(rig, FILE_A, 1, F_WRLCK, 0);
	interrupt(rig, rig->unique + 4);
	rig_expect(rig, send_lk(rig, FILE_A, 2, F_WRLCK | WAIT, 0, 9), -EINTR);
}

static void test_flush_drops(void **state)
{
	struct rig *rig = *state;

	lk(rig, FILE_A, 1, F_WRLCK, 0);
	rig_expect(rig, send_lk(rig, FILE_A, 1, F_RDLCK, 50, 60), 0);
	lk(rig, FILE_B, 1, F_WRLCK, 0);
	flush(rig, FILE_A, 2);
	lk(rig, FILE_A, 2, F_WRLCK, -EAGAIN);
	flush(rig, FILE_A, 1);
	rig_expect(rig, send_lk(rig, FILE_A, 2, F_WRLCK, 0, RANGE_END), 0);
	lk(rig, FILE_B, 2, F_WRLCK, -EAGAIN);
}

/* Who has locked nothing costs no call. */
static void test_flush_costs_nothing(void **state)
{
	struct rig *rig = *state;

	lk(rig, FILE_A, 0x20, F_WRLCK | FLOCK, 0);
	assert_int_equal(rig->calls, 1);
	flush(rig, FILE_A, 1);
	release(rig, FILE_A, 0x30, 0);
	assert_int_equal(rig->calls, 1);
	release(rig, FILE_A, 0x20, FUSE_RELEASE_FLOCK_UNLOCK);
	assert_int_equal(rig->calls, 2);
	lk(rig, FILE_A, 0x30, F_WRLCK | FLOCK, 0);
}

/*
 * One thread closes a descriptor while another one waits for a lock: the wait
 * goes on, and does not end with an EINTR that no signal has caused.
 */
static void test_flush_of_who_waits(void **state)
{
	struct rig *rig = *state;
	uint64_t wait;

	lk(rig, FILE_A, 1, F_WRLCK, 0);
	wait = send_lk(rig, FILE_A, 2, F_WRLCK | WAIT, 0, 9);
	rig_sync(rig);
	flush(rig, FILE_A, 2);
	rig_sync(rig);
	interrupt(rig, wait);
	rig_expect(rig, wait, -EINTR);
	lk(rig, FILE_A, 1, F_UNLCK, 0);
	lk(rig, FILE_A, 3, F_WRLCK, 0);
}

/* An OFD lock is dropped by the end of the open file, and by nothing else. */
static void test_ofd(void **state)
{
	struct rig *rig = *state;

	lk(rig, FILE_A, 0x20, F_WRLCK, 0);
	lk(rig, FILE_A, 0x30, F_WRLCK, -EAGAIN);
	flush(rig, FILE_A, 1);
	release(rig, FILE_A, 0x30, 0);
	lk(rig, FILE_A, 0x40, F_WRLCK, -EAGAIN);
	release(rig, FILE_A, 0x20, FUSE_RELEASE_FLOCK_UNLOCK);
	lk(rig, FILE_A, 0x40, F_WRLCK, 0);
}

static void test_getlk(void **state)
{
	struct rig *rig = *state;

	getlk(rig, FILE_A, 2);
	assert_int_equal(rig->lk.lk.type, F_UNLCK);
	rig_expect(rig, send_lk(rig, FILE_A, 1, F_RDLCK, 5, 8), 0);
	getlk(rig, FILE_A, 2);
	assert_int_equal(rig->lk.lk.type, F_RDLCK);
	assert_int_equal(rig->lk.lk.start, 5);
	assert_int_equal(rig->lk.lk.end, 8);
	assert_int_equal(rig->lk.lk.pid, 71);
	getlk(rig, FILE_A, 1);
	assert_int_equal(rig->lk.lk.type, F_UNLCK);

	/*
	 * Process 77, which has owner 9, has taken a lock for another owner
	 * and goes: that is an OFD lock, and stays.
	 */
	lk(rig, FILE_B, 7, F_WRLCK, 0);
	getlk(rig, FILE_B, 2);
	assert_int_equal(rig->lk.lk.type, F_WRLCK);
	assert_int_equal(rig->lk.lk.pid, 77);
	flush(rig, FILE_B, 9);
	getlk(rig, FILE_B, 2);
	assert_int_equal(rig->lk.lk.type, F_WRLCK);
	assert_int_equal(rig->lk.lk.pid, 0);
}

/* A number of another node's process means nothing here. */
static void test_getlk_of_others(void **state)
{
	struct rig *rig = *state;

	rig->service.node = NODE + 1;
	lk(rig, FILE_A, 1, F_WRLCK, 0);
	getlk(rig, FILE_A, 2);
	assert_int_equal(rig->lk.lk.type, F_WRLCK);
	assert_int_equal(rig->lk.lk.pid, 0);
}

static void test_deadlock(void **state)
{
	struct rig *rig = *state;
	uint64_t wait;

	lk(rig, FILE_A, 1, F_WRLCK, 0);
	lk(rig, FILE_B, 2, F_WRLCK, 0);
	wait = send_lk(rig, FILE_A, 2, F_WRLCK | WAIT, 0, 9);
	lk(rig, FILE_B, 1, F_WRLCK | WAIT, -EDEADLK);
	interrupt(rig, wait);
	rig_expect(rig, wait, -EINTR);
}

/* Withdrawn: waits end, nothing is granted, everything can be given back. */
static void test_withdrawn(void **state)
{
	struct rig *rig = *state;
	uint64_t wait;

	lk(rig, FILE_A, 1, F_WRLCK, 0);
	wait = send_lk(rig, FILE_A, 2, F_WRLCK | WAIT, 0, 9);
	rig_sync(rig);
	fake.withdrawn = true;
	service_fail(rig);
	rig_expect(rig, wait, -EIO);
	lk(rig, FILE_A, 2, F_WRLCK, -EIO);
	lk(rig, FILE_A, 1, F_UNLCK, 0);
	flush(rig, FILE_A, 1);
	release(rig, FILE_A, 0x20, FUSE_RELEASE_FLOCK_UNLOCK);
}

/* The mount ends: whoever waits is answered. */
static void test_end(void **state)
{
	struct rig *rig = *state;
	uint64_t wait;

	lk(rig, FILE_A, 1, F_WRLCK, 0);
	wait = send_lk(rig, FILE_A, 2, F_WRLCK | WAIT, 0, 9);
	rig_sync(rig);
	fuse_session_stop(rig->session);
	rig_expect(rig, wait, -EIO);
}

int main(void)
{
#define BOTH(test)                                              \
	cmocka_unit_test_setup_teardown(test, setup, teardown), \
		cmocka_unit_test_setup_teardown(test, setup_remote, teardown)
	const struct CMUnitTest tests[] = {
		BOTH(test_exclusion),
		BOTH(test_nonsense),
		BOTH(test_waits_for_unlock),
		BOTH(test_waiters_hold_no_thread),
		BOTH(test_interrupt),
		BOTH(test_early_interrupt),
		BOTH(test_flush_drops),
		BOTH(test_flush_costs_nothing),
		BOTH(test_flush_of_who_waits),
		BOTH(test_ofd),
		BOTH(test_getlk),
		BOTH(test_getlk_of_others),
		BOTH(test_deadlock),
		BOTH(test_withdrawn),
		BOTH(test_end),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
