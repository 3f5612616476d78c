/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * thread.c - the threads of a session: named, and deaf to signals.
 */
#include <errno.h>
#include <signal.h>
#include <time.h>

#include "fuse/thread.h"

int fuse_thread(const char *name, void *(*fn)(void *), void *arg,
		pthread_t *thread)
{
	sigset_t all, old;
	int err;

	/* Inherited by the new thread from its first instruction on. */
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &old);
	err = pthread_create(thread, NULL, fn, arg);
	pthread_sigmask(SIG_SETMASK, &old, NULL);
	if (err)
		return -err;
	pthread_setname_np(*thread, name);
	return 0;
}

int fuse_thread_detached(const char *name, void *(*fn)(void *), void *arg)
{
	pthread_t thread;
	int err = fuse_thread(name, fn, arg, &thread);

	if (!err)
		pthread_detach(thread);
	return err;
}

uint64_t fuse_now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}
