/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * lease.h - the time until which this process may act as a member (DESIGN 4.6),
 * and the news when it begins and when it has run out.
 *
 * A thread of its own sleeps until the end: the one that extends the lease can
 * hang in corosync, and just then the end has to be told. Another lock of the
 * owner, under which all its callbacks run, keeps the news from coming during
 * one of them.
 */
#ifndef UG_CLUSTER_LEASE_H
#define UG_CLUSTER_LEASE_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

struct lease {
	/* Monotonic; read by anybody. The owner's, or own_ns. */
	_Atomic uint64_t *until_ns;
	_Atomic uint64_t own_ns;
	bool held; /* told last; guarded by *lock */
	bool stopping;
	pthread_mutex_t *lock; /* the owner's */
	pthread_cond_t changed;
	pthread_t thread;
	void (*told)(void *arg, bool held); /* called with *lock held */
	void *arg;
};

/*
 * Not held yet; starts the thread. until_ns: where the time is kept, for those
 * who read it longer than the lease is there; NULL: in the lease. -ENOMEM,
 * -EAGAIN.
 */
int lease_open(struct lease *l, _Atomic uint64_t *until_ns,
	       pthread_mutex_t *lock, void (*told)(void *arg, bool held),
	       void *arg);

/* Wait for the thread. Nothing is told any more. */
void lease_close(struct lease *l);

/* By one thread, without *lock: until then, or at once no longer. */
void lease_extend(struct lease *l, uint64_t until_ns);
void lease_end(struct lease *l);

#endif
