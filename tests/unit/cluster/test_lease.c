/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * test_lease.c - the end of a lease is told though nobody does anything, and
 * each beginning and end once.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <unistd.h>

#include "cluster/clock.h"
#include "cluster/lease.h"

#define LONG_NS (600 * (uint64_t)NS_PER_SEC)

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t cond = PTHREAD_COND_INITIALIZER;
static unsigned begun, ended;
static uint64_t ended_ns;
static struct lease lease;

static void told(void *arg, bool held)
{
	if (held) {
		begun++;
	} else {
		ended++;
		ended_ns = clock_now_ns();
	}
	pthread_cond_broadcast(&cond);
}

static int setup(void **state)
{
	begun = ended = 0;
	return lease_open(&lease, NULL, &lock, told, NULL);
}

static int teardown(void **state)
{
	lease_close(&lease);
	return 0;
}

static void wait_for_end(void)
{
	pthread_mutex_lock(&lock);
	while (!ended)
		pthread_cond_wait(&cond, &lock);
	pthread_mutex_unlock(&lock);
}

/* The lock is released before anything can fail. */
static void expect(unsigned begins, unsigned ends)
{
	unsigned b, e;

	pthread_mutex_lock(&lock);
	b = begun;
	e = ended;
	pthread_mutex_unlock(&lock);
	assert_int_equal(b, begins);
	assert_int_equal(e, ends);
}

static void test_runs_out(void **state)
{
	uint64_t until = clock_now_ns() + 50 * NS_PER_MS;

	lease_extend(&lease, until);
	until += 50 * NS_PER_MS;
	lease_extend(&lease, until); /* the thread does not know yet */
	assert_true(atomic_load(lease.until_ns) == until);
	wait_for_end();
	assert_true(ended_ns >= until);
	expect(1, 1);
}

static void test_ends_at_once(void **state)
{
	lease_extend(&lease, clock_now_ns() + LONG_NS);
	expect(1, 0);
	lease_end(&lease);
	assert_true(atomic_load(lease.until_ns) == 0);
	expect(1, 1);
	lease_end(&lease);
	expect(1, 1);
	lease_extend(&lease, clock_now_ns() + LONG_NS);
	expect(2, 1);
}

static uint64_t long_until;

static void *extend_late(void *arg)
{
	lease_extend(&lease, long_until);
	return NULL;
}

/*
 * It runs out while nobody can tell, and is extended before that is over: who
 * has looked meanwhile has to hear that it is back.
 */
static void test_gap_is_told(void **state)
{
	uint64_t until = clock_now_ns() + 30 * NS_PER_MS;
	pthread_t thread;

	lease_extend(&lease, until);
	pthread_mutex_lock(&lock);
	while (clock_now_ns() < until)
		usleep(1000);
	long_until = until + LONG_NS;
	pthread_create(&thread, NULL, extend_late, NULL);
	while (atomic_load(lease.until_ns) != long_until)
		usleep(1000);
	pthread_mutex_unlock(&lock);
	pthread_join(thread, NULL);
	expect(2, 1);
}

/* A message that comes back after its time is worth nothing. */
static void test_late(void **state)
{
	lease_extend(&lease, clock_now_ns() - 1);
	expect(0, 0);
}

/* Readers may outlive the lease. */
static void test_kept_elsewhere(void **state)
{
	uint64_t until = clock_now_ns() + LONG_NS;
	_Atomic uint64_t kept = 1;

	begun = ended = 0;
	lease_open(&lease, &kept, &lock, told, NULL);
	assert_int_equal(atomic_load(&kept), 0);
	lease_extend(&lease, until);
	assert_true(atomic_load(&kept) == until);
	lease_end(&lease);
	lease_close(&lease);
	assert_int_equal(atomic_load(&kept), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_runs_out, setup, teardown),
		cmocka_unit_test_setup_teardown(test_ends_at_once, setup,
						teardown),
		cmocka_unit_test_setup_teardown(test_gap_is_told, setup,
						teardown),
		cmocka_unit_test_setup_teardown(test_late, setup, teardown),
		cmocka_unit_test(test_kept_elsewhere),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
