/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * lease.c - see lease.h. Extending the lease does not wake the thread: it wakes
 * at the end that it knew of, sees the later one, and sleeps again.
 *
 * A process that was stopped can find its lease extended before the thread has
 * seen that it had run out. Others may have seen it, and wait to be told that
 * it is back: so whoever extends one that has run out tells both.
 */
#include <errno.h>
#include <time.h>

#include "cluster/clock.h"
#include "cluster/lease.h"

static void set_held(struct lease *l, bool held)
{
	if (l->held == held)
		return;
	l->held = held;
	l->told(l->arg, held);
}

static void sleep_until(struct lease *l, uint64_t end_ns)
{
	struct timespec ts = {
		.tv_sec = (time_t)(end_ns / NS_PER_SEC),
		.tv_nsec = (long)(end_ns % NS_PER_SEC),
	};

	if (l->held)
		pthread_cond_timedwait(&l->changed, l->lock, &ts);
	else
		pthread_cond_wait(&l->changed, l->lock);
}

static void *thread_main(void *arg)
{
	struct lease *l = arg;

	pthread_setname_np(pthread_self(), "ugfs-lease");
	pthread_mutex_lock(l->lock);
	while (!l->stopping) {
		uint64_t end_ns = atomic_load(l->until_ns);

		if (l->held && clock_now_ns() >= end_ns)
			set_held(l, false);
		else
			sleep_until(l, end_ns);
	}
	pthread_mutex_unlock(l->lock);
	return NULL;
}

int lease_open(struct lease *l, _Atomic uint64_t *until_ns,
	       pthread_mutex_t *lock, void (*told)(void *arg, bool held),
	       void *arg)
{
	pthread_condattr_t attr;
	int err;

	*l = (struct lease){ .lock = lock, .told = told, .arg = arg };
	l->until_ns = until_ns ? until_ns : &l->own_ns;
	atomic_store(l->until_ns, 0);
	pthread_condattr_init(&attr);
	pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
	pthread_cond_init(&l->changed, &attr);
	pthread_condattr_destroy(&attr);
	err = -pthread_create(&l->thread, NULL, thread_main, l);
	if (err)
		pthread_cond_destroy(&l->changed);
	return err;
}

void lease_close(struct lease *l)
{
	pthread_mutex_lock(l->lock);
	l->stopping = true;
	pthread_cond_signal(&l->changed);
	pthread_mutex_unlock(l->lock);
	pthread_join(l->thread, NULL);
	pthread_cond_destroy(&l->changed);
}

void lease_extend(struct lease *l, uint64_t until_ns)
{
	uint64_t before_ns = atomic_exchange(l->until_ns, until_ns);
	uint64_t now_ns;

	pthread_mutex_lock(l->lock);
	now_ns = clock_now_ns();
	if (now_ns >= before_ns)
		set_held(l, false);
	if (!l->held && now_ns < until_ns) {
		set_held(l, true);
		pthread_cond_signal(&l->changed);
	}
	pthread_mutex_unlock(l->lock);
}

/* First for those who only look: they do not wait for a callback to return. */
void lease_end(struct lease *l)
{
	atomic_store(l->until_ns, 0);
	pthread_mutex_lock(l->lock);
	set_held(l, false);
	pthread_mutex_unlock(l->lock);
}
