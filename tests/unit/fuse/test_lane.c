/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Lanes: order, growth up to the maximum, the end, and interrupted requests.
 * Slots, their pool and early interrupts.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmocka.h>

#include "fuse/interrupts.h"
#include "fuse/lane.h"
#include "fuse/thread.h"

/* What the threads of a lane do: note the request, wait at the gate. */
struct work {
	pthread_mutex_t lock;
	pthread_cond_t changed;
	bool gate_open;
	unsigned begun;
	unsigned done;
	uint64_t order[64];
};

static void work_serve(void *arg, struct fuse_slot *slot)
{
	struct work *work = arg;

	pthread_mutex_lock(&work->lock);
	work->order[work->begun++] = slot->req.unique;
	pthread_cond_broadcast(&work->changed);
	while (!work->gate_open)
		pthread_cond_wait(&work->changed, &work->lock);
	work->done++;
	pthread_mutex_unlock(&work->lock);
}

static void work_begin(struct work *work, bool gate_open)
{
	*work = (struct work){ .gate_open = gate_open };
	pthread_mutex_init(&work->lock, NULL);
	pthread_cond_init(&work->changed, NULL);
}

static void work_wait_begun(struct work *work, unsigned n)
{
	pthread_mutex_lock(&work->lock);
	while (work->begun < n)
		pthread_cond_wait(&work->changed, &work->lock);
	pthread_mutex_unlock(&work->lock);
}

static void work_open_gate(struct work *work)
{
	pthread_mutex_lock(&work->lock);
	work->gate_open = true;
	pthread_cond_broadcast(&work->changed);
	pthread_mutex_unlock(&work->lock);
}

static struct lane *lane_begin(struct work *work, unsigned min, unsigned max)
{
	struct lane_params params = {
		.name = "test",
		.threads_min = min,
		.threads_max = max,
		.serve = work_serve,
		.arg = work,
	};
	struct lane *lane;

	assert_int_equal(lane_create(&params, &lane), 0);
	return lane;
}

static void slots_init(struct fuse_slot *slots, unsigned n)
{
	memset(slots, 0, n * sizeof(*slots));
	for (unsigned i = 0; i < n; i++)
		slots[i].req.unique = i + 1;
}

static void test_first_in_first_out(void **state)
{
	struct fuse_slot slots[20];
	struct work work;
	struct lane *lane;

	slots_init(slots, 20);
	work_begin(&work, true);
	lane = lane_begin(&work, 1, 1);
	for (unsigned i = 0; i < 20; i++)
		lane_push(lane, &slots[i]);
	lane_destroy(lane);
	assert_int_equal(work.done, 20);
	for (unsigned i = 0; i < 20; i++)
		assert_int_equal(work.order[i], i + 1);
}

/* Requests that wait get a thread each, up to the maximum. */
static void test_grows_to_the_maximum(void **state)
{
	struct fuse_slot slots[10];
	struct lane_stats stats;
	struct work work;
	struct lane *lane;

	slots_init(slots, 10);
	work_begin(&work, false);
	lane = lane_begin(&work, 1, 6);
	for (unsigned i = 0; i < 10; i++)
		lane_push(lane, &slots[i]);
	work_wait_begun(&work, 6);
	lane_get_stats(lane, &stats);
	assert_int_equal(stats.threads, 6);
	assert_int_equal(stats.queued, 4);
	work_open_gate(&work);
	lane_destroy(lane);
	assert_int_equal(work.done, 10);
}

static void test_stop_serves_what_is_queued(void **state)
{
	struct fuse_slot slots[8];
	struct work work;
	struct lane *lane;

	slots_init(slots, 8);
	work_begin(&work, true);
	lane = lane_begin(&work, 2, 2);
	for (unsigned i = 0; i < 8; i++)
		lane_push(lane, &slots[i]);
	lane_stop(lane);
	assert_int_equal(work.done, 8);
	lane_stop(lane);
	lane_destroy(lane);
	lane_destroy(NULL);
}

static void test_interrupted_are_reaped(void **state)
{
	struct fuse_slot slots[5];
	CDS_LIST_HEAD(list);
	struct work work;
	struct lane *lane;

	slots_init(slots, 5);
	for (unsigned i = 0; i < 5; i++)
		slots[i].read_ns = 100 * (i + 1);
	slots[2].reply.carry = 1; /* has had its effect */
	work_begin(&work, false);
	lane = lane_begin(&work, 1, 1);
	lane_push(lane, &slots[0]);
	work_wait_begun(&work, 1);
	for (unsigned i = 1; i < 5; i++)
		lane_push(lane, &slots[i]);

	assert_false(lane_interrupt(lane, 1)); /* is being served */
	assert_false(lane_interrupt(lane, 99));
	assert_true(lane_interrupt(lane, 2));
	assert_true(lane_interrupt(lane, 3));
	assert_true(lane_interrupt(lane, 5));
	/* 2 is old enough; 3 is done already; 4 not interrupted; 5 young. */
	assert_int_equal(lane_reap(lane, 450, &list), 1);
	assert_ptr_equal(list.next, &slots[1].link);
	assert_ptr_equal(list.prev, &slots[1].link);

	work_open_gate(&work);
	lane_destroy(lane);
	assert_int_equal(work.done, 4);
}

static void test_early_interrupts(void **state)
{
	struct interrupts ints = { 0 };

	assert_false(interrupts_take(&ints, 5));
	interrupts_keep(&ints, 5);
	interrupts_keep(&ints, 6);
	assert_true(interrupts_take(&ints, 5));
	assert_false(interrupts_take(&ints, 5));
	/* Bounded: the oldest goes. */
	for (uint64_t i = 100; i < 100 + INTERRUPTS_KEPT; i++)
		interrupts_keep(&ints, i);
	assert_false(interrupts_take(&ints, 6));
	assert_true(interrupts_take(&ints, 100));
}

static void test_pool_is_bounded(void **state)
{
	struct fuse_slot *slots[8];
	struct slot_pool *pool;

	assert_int_equal(slot_pool_create(8, &pool), 0);
	for (unsigned i = 0; i < 8; i++) {
		slots[i] = slot_try_get(pool);
		assert_non_null(slots[i]);
		assert_int_equal((uintptr_t)slots[i]->reply.data % 4096, 0);
		memset(slot_in(slots[i]), (int)i, SLOT_IN_MAX);
	}
	assert_null(slot_try_get(pool));
	assert_int_equal(slot_pool_count(pool), 8);
	slot_put(pool, slots[3]);
	assert_ptr_equal(slot_get(pool), slots[3]);
	for (unsigned i = 0; i < 8; i++)
		slot_put(pool, slots[i]);
	slot_pool_destroy(pool);
}

static void *put_later(void *arg)
{
	void **args = arg;

	usleep(1000);
	slot_put(args[0], args[1]);
	return NULL;
}

static void test_pool_waits(void **state)
{
	struct slot_pool *pool;
	struct fuse_slot *slot;
	pthread_t thread;
	void *args[2];

	assert_int_equal(slot_pool_create(1, &pool), 0);
	slot = slot_get(pool);
	args[0] = pool;
	args[1] = slot;
	assert_int_equal(fuse_thread("test", put_later, args, &thread), 0);
	assert_ptr_equal(slot_get(pool), slot);
	pthread_join(thread, NULL);
	slot_put(pool, slot);
	slot_pool_destroy(pool);
}

/* ---- answers, as bytes ---- */

struct answer {
	struct fuse_out_header head;
	char body[256];
};

static struct fuse_slot *slot_to(struct slot_pool *pool, int fds[2])
{
	struct fuse_slot *slot = slot_get(pool);

	assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET, 0, fds), 0);
	slot->fd = fds[0];
	slot->req.unique = 7;
	return slot;
}

static size_t answer_of(struct fuse_slot *slot, int fd, int err,
			struct answer *answer)
{
	ssize_t n;

	assert_int_equal(slot_answer(slot, err), 0);
	n = read(fd, answer, sizeof(*answer));
	assert_true(n >= (ssize_t)sizeof(answer->head));
	assert_int_equal(answer->head.len, n);
	assert_int_equal(answer->head.unique, 7);
	return (size_t)n - sizeof(answer->head);
}

static void test_answers(void **state)
{
	struct answer answer;
	struct slot_pool *pool;
	struct fuse_slot *slot;
	int fds[2];

	assert_int_equal(slot_pool_create(1, &pool), 0);
	slot = slot_to(pool, fds);

	slot->reply.body_len = slot->reply.data_len = 0;
	assert_int_equal(answer_of(slot, fds[1], 0, &answer), 0);
	assert_int_equal(answer.head.error, 0);

	slot->reply.write.size = 99;
	slot->reply.body_len = sizeof(slot->reply.write);
	assert_int_equal(answer_of(slot, fds[1], 0, &answer),
			 sizeof(struct fuse_write_out));
	assert_memory_equal(answer.body, &slot->reply.write, 4);

	memcpy(slot->reply.data, "twelve bytes", 12);
	slot->reply.data_len = 12;
	assert_int_equal(answer_of(slot, fds[1], 0, &answer), 12);
	assert_memory_equal(answer.body, "twelve bytes", 12);

	/* Errors come alone, and as the kernel accepts them. */
	assert_int_equal(answer_of(slot, fds[1], -ENOENT, &answer), 0);
	assert_int_equal(answer.head.error, -ENOENT);
	assert_int_equal(answer_of(slot, fds[1], -600, &answer), 0);
	assert_int_equal(answer.head.error, -EIO);
	assert_int_equal(answer_of(slot, fds[1], 5, &answer), 0);
	assert_int_equal(answer.head.error, -EIO);

	close(fds[0]);
	close(fds[1]);
	slot_put(pool, slot);
	slot_pool_destroy(pool);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_first_in_first_out),
		cmocka_unit_test(test_grows_to_the_maximum),
		cmocka_unit_test(test_stop_serves_what_is_queued),
		cmocka_unit_test(test_interrupted_are_reaped),
		cmocka_unit_test(test_early_interrupts),
		cmocka_unit_test(test_pool_is_bounded),
		cmocka_unit_test(test_pool_waits),
		cmocka_unit_test(test_answers),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
