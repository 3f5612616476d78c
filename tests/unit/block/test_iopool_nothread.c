/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The pool when the system gives no more threads: creating it fails, but a
 * pool that is there goes on with what it has, and loses no request.
 */
#include <errno.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

#include "block/iopool.h"

static atomic_bool refuse;
static atomic_uint refused;

int __real_pthread_create(pthread_t *thread, const pthread_attr_t *attr,
			  void *(*fn)(void *), void *arg);
int __wrap_pthread_create(pthread_t *thread, const pthread_attr_t *attr,
			  void *(*fn)(void *), void *arg);

int __wrap_pthread_create(pthread_t *thread, const pthread_attr_t *attr,
			  void *(*fn)(void *), void *arg)
{
	if (!refuse)
		return __real_pthread_create(thread, attr, fn, arg);
	refused++;
	return EAGAIN;
}

static void test_create(void **state)
{
	struct blkdev *dev;
	struct iopool *pool;

	assert_int_equal(blkdev_open_memory(4096, 512, &dev), 0);
	refuse = true;
	assert_int_equal(iopool_create(dev, 4, &pool), -EAGAIN);
	refuse = false;
	blkdev_close(dev);
}

static void test_goes_on(void **state)
{
	struct blkdev *dev;
	struct iopool *pool;
	struct ioreq req[200];

	assert_int_equal(blkdev_open_memory(4096, 512, &dev), 0);
	assert_int_equal(iopool_create(dev, 4, &pool), 0);
	refuse = true;
	for (unsigned i = 0; i < 200; i++)
		req[i] = (struct ioreq){
			.op = IOREQ_FLUSH,
			.result = 1,
		};
	for (int round = 0; round < 20; round++)
		assert_int_equal(iopool_run(pool, req, 200), 0);
	assert_true(refused > 0);
	refuse = false;
	iopool_destroy(pool);
	blkdev_close(dev);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_create),
		cmocka_unit_test(test_goes_on),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
