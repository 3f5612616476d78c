/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The pool of I/O threads: everything submitted is done once, as many at a
 * time as allowed and not more, threads come and go, and the end waits.
 */
#include <errno.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include <cmocka.h>

#include "block/delay.h"
#include "block/fault.h"
#include "block/iopool.h"

#define SECTOR 512u
#define REQUESTS 4000u
#define THREADS 4u

struct fixture {
	struct blkdev *dev;
	struct fault *fault;
	struct delay *delay;
	struct iopool *pool;
	char *mem;
	struct iovec iov[REQUESTS];
	struct ioreq req[REQUESTS];
	atomic_uint done;
	atomic_uint chained;
	pthread_t submitter;
	atomic_bool in_submitter;
};

static int setup(void **state)
{
	struct fixture *f = calloc(1, sizeof(*f));

	assert_int_equal(blkdev_open_memory(REQUESTS * SECTOR, SECTOR, &f->dev),
			 0);
	assert_int_equal(fault_open(f->dev, &f->fault, &f->dev), 0);
	assert_int_equal(delay_open(f->dev, &f->delay, &f->dev), 0);
	assert_int_equal(iopool_create(f->dev, THREADS, &f->pool), 0);
	f->mem = blkdev_alloc(REQUESTS * SECTOR);
	f->submitter = pthread_self();
	*state = f;
	return 0;
}

static int teardown(void **state)
{
	struct fixture *f = *state;

	if (f->pool)
		iopool_destroy(f->pool);
	blkdev_close(f->dev);
	free(f->mem);
	free(f);
	return 0;
}

static void count_done(struct ioreq *req)
{
	struct fixture *f = req->private;

	if (pthread_equal(pthread_self(), f->submitter))
		f->in_submitter = true;
	f->done++;
}

static void prepare(struct fixture *f, unsigned i, enum ioreq_op op)
{
	f->iov[i] = (struct iovec){ f->mem + i * SECTOR, SECTOR };
	f->req[i] = (struct ioreq){
		.op = op,
		.iov = &f->iov[i],
		.iovcnt = 1,
		.offset_bytes = (uint64_t)i * SECTOR,
		.result = 1,
		.done = count_done,
		.private = f,
	};
}

static void test_submit_many(void **state)
{
	struct fixture *f = *state;

	for (unsigned i = 0; i < REQUESTS; i++) {
		memset(f->mem + i * SECTOR, (int)(i % 251), SECTOR);
		prepare(f, i, IOREQ_WRITE);
		iopool_submit(f->pool, &f->req[i]);
	}
	iopool_destroy(f->pool);
	f->pool = NULL;
	/* The end has waited for every one of them. */
	assert_int_equal(f->done, REQUESTS);
	assert_false(f->in_submitter);
	memset(f->mem, 0xff, REQUESTS * SECTOR);
	assert_int_equal(blkdev_read(f->dev, f->mem, REQUESTS * SECTOR, 0), 0);
	for (unsigned i = 0; i < REQUESTS * SECTOR; i++)
		assert_int_equal((unsigned char)f->mem[i], i / SECTOR % 251);
	for (unsigned i = 0; i < REQUESTS; i++)
		assert_int_equal(f->req[i].result, 0);
}

static unsigned process_threads(void)
{
	FILE *in = fopen("/proc/self/status", "r");
	char line[256];
	unsigned n = 0;

	assert_non_null(in);
	while (fgets(line, sizeof(line), in)) {
		if (sscanf(line, "Threads: %u", &n) == 1)
			break;
	}
	fclose(in);
	return n;
}

static void test_grows_to_the_limit(void **state)
{
	struct fixture *f = *state;
	unsigned before = process_threads();

	delay_hold(f->delay, LAYER_READ);
	for (unsigned i = 0; i < 3 * THREADS; i++) {
		prepare(f, i, IOREQ_READ);
		iopool_submit(f->pool, &f->req[i]);
	}
	/* Hangs here if fewer work at a time. */
	delay_wait_held(f->delay, THREADS);
	assert_int_equal(process_threads(), before + THREADS - 1);
	delay_release(f->delay);
	iopool_destroy(f->pool);
	f->pool = NULL;
	assert_int_equal(f->done, 3 * THREADS);
}

static void test_run(void **state)
{
	struct fixture *f = *state;
	struct fault_rule rule = {
		.ops = LAYER_READ,
		.from_bytes = 7 * SECTOR,
		.to_bytes = 9 * SECTOR,
		.error = -ENOSPC,
	};
	struct fault_rule later = rule;

	for (unsigned i = 0; i < 100; i++)
		prepare(f, i, IOREQ_READ);
	assert_int_equal(iopool_run(f->pool, f->req, 100), 0);
	assert_int_equal(fault_seen(f->fault, LAYER_READ), 100);
	assert_int_equal(iopool_run(f->pool, f->req, 1), 0);
	assert_int_equal(iopool_run(f->pool, f->req, 0), 0);
	fault_set(f->fault, &rule);
	assert_int_equal(iopool_run(f->pool, f->req, 100), -ENOSPC);
	assert_int_equal(f->req[6].result, 0);
	assert_int_equal(f->req[7].result, -ENOSPC);
	assert_int_equal(f->req[9].result, 0);
	/* Also the one that the caller does itself. */
	later.from_bytes = 99 * SECTOR;
	later.to_bytes = 100 * SECTOR;
	fault_set(f->fault, &later);
	assert_int_equal(iopool_run(f->pool, f->req, 100), -ENOSPC);
	/* done() belongs to iopool_submit(). */
	assert_int_equal(f->done, 0);
	iopool_submit(f->pool, f->req);
	iopool_destroy(f->pool);
	f->pool = NULL;
	assert_int_equal(f->done, 1);
}

static void test_flush_and_flags(void **state)
{
	struct fixture *f = *state;
	struct fault_rule rule = { .ops = LAYER_FLUSH };

	prepare(f, 0, IOREQ_FLUSH);
	assert_int_equal(iopool_run(f->pool, f->req, 1), 0);
	assert_int_equal(fault_seen(f->fault, LAYER_FLUSH), 1);
	fault_set(f->fault, &rule);
	assert_int_equal(iopool_run(f->pool, f->req, 1), -EIO);
}

static void chain_next(struct ioreq *req)
{
	struct fixture *f = req->private;
	unsigned i = ++f->chained;

	if (i < 1000) {
		prepare(f, i, IOREQ_READ);
		f->req[i].done = chain_next;
		iopool_submit(f->pool, &f->req[i]);
	}
}

/* done() submits the next one; the end waits for the last of the chain. */
static void test_chain(void **state)
{
	struct fixture *f = *state;

	prepare(f, 0, IOREQ_READ);
	f->req[0].done = chain_next;
	iopool_submit(f->pool, &f->req[0]);
	iopool_destroy(f->pool);
	f->pool = NULL;
	assert_int_equal(f->chained, 1000);
}

static void *run_thread(void *arg)
{
	struct fixture *f = arg;
	struct iovec iov[8];
	struct ioreq req[8];
	char *mem = blkdev_alloc(8 * SECTOR);

	for (int round = 0; round < 300; round++) {
		for (unsigned i = 0; i < 8; i++) {
			iov[i] = (struct iovec){ mem + i * SECTOR, SECTOR };
			req[i] = (struct ioreq){
				.op = IOREQ_READ,
				.iov = &iov[i],
				.iovcnt = 1,
				.offset_bytes = i * SECTOR,
			};
		}
		assert_int_equal(iopool_run(f->pool, req, 8), 0);
	}
	free(mem);
	return NULL;
}

static void test_many_callers(void **state)
{
	struct fixture *f = *state;
	pthread_t threads[6];

	for (unsigned i = 0; i < 6; i++)
		assert_int_equal(
			pthread_create(&threads[i], NULL, run_thread, f), 0);
	for (unsigned i = 0; i < 6; i++)
		pthread_join(threads[i], NULL);
	assert_int_equal(fault_seen(f->fault, LAYER_READ), 6 * 300 * 8);
}

/* Idle threads go, but for one, which then still works. */
static void test_shrinks(void **state)
{
	struct fixture *f = *state;
	unsigned before, now = 0;
	struct timespec pause = { .tv_nsec = 20000000 };

	assert_int_equal(iopool_run(f->pool, f->req, 0), 0);
	before = process_threads();
	delay_hold(f->delay, LAYER_READ);
	for (unsigned i = 0; i < THREADS; i++) {
		prepare(f, i, IOREQ_READ);
		iopool_submit(f->pool, &f->req[i]);
	}
	delay_wait_held(f->delay, THREADS);
	assert_int_equal(process_threads(), before + THREADS - 1);
	delay_release(f->delay);
	for (int i = 0; i < 1000; i++) {
		now = process_threads();
		if (now == before)
			break;
		nanosleep(&pause, NULL);
	}
	assert_int_equal(now, before);
	assert_int_equal(f->done, THREADS);
	prepare(f, 1, IOREQ_READ);
	prepare(f, 0, IOREQ_READ);
	assert_int_equal(iopool_run(f->pool, f->req, 2), 0);
}

static void test_bad_limit(void **state)
{
	struct fixture *f = *state;
	struct iopool *pool;

	assert_int_equal(iopool_create(f->dev, 0, &pool), -EINVAL);
}

#define T(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		T(test_submit_many), T(test_grows_to_the_limit),
		T(test_run),	     T(test_flush_and_flags),
		T(test_chain),	     T(test_many_callers),
		T(test_shrinks),     T(test_bad_limit),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
