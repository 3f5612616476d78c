/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * thread.h - the threads of a session: named, and deaf to signals.
 */
#ifndef UG_FUSE_THREAD_H
#define UG_FUSE_THREAD_H

#include <pthread.h>
#include <stdint.h>

/*
 * Start fn(arg) with every signal blocked: signals are for the program's own
 * threads. name: at most 15 bytes. 0, -EAGAIN or -ENOMEM.
 */
int fuse_thread(const char *name, void *(*fn)(void *), void *arg,
		pthread_t *thread);

/* The same for one that nobody will join. */
int fuse_thread_detached(const char *name, void *(*fn)(void *), void *arg);

/* CLOCK_MONOTONIC. */
uint64_t fuse_now_ns(void);

#endif
