/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * gate.c - writes wait for the lease. See gate.h.
 *
 * The time is looked at once more by each write that has waited, and nothing
 * is between that look and the system call but this process being stopped: a
 * write that is held up there is what the proof of death is for (DESIGN 4.2).
 *
 * A waiting write looks again by itself now and then, since blkdev_shut(),
 * which may be called by a signal handler, wakes nobody.
 */
#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "block/gate.h"
#include "block/layer.h"

#define NS_PER_SEC 1000000000u
#define LOOK_NS 100000000u

struct gate {
	struct blkdev dev;
	char *name; /* a copy: the device below may go first */
	uint64_t (*until_ns)(void *arg);
	void *arg;
	pthread_mutex_t lock;
	pthread_cond_t changed; /* the time, or users */
	unsigned users;		/* requests below */
	bool retired;
};

static struct gate *gate_of(struct blkdev *dev)
{
	return ug_container_of(dev, struct gate, dev);
}

static uint64_t now_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * NS_PER_SEC + (uint64_t)ts.tv_nsec;
}

static bool may_write(struct gate *gate)
{
	return now_ns() < gate->until_ns(gate->arg);
}

static bool is_shut(struct gate *gate)
{
	return gate->retired || atomic_load(&gate->dev.shut);
}

static void wait_a_moment(struct gate *gate)
{
	uint64_t end = now_ns() + LOOK_NS;
	struct timespec ts = {
		.tv_sec = (time_t)(end / NS_PER_SEC),
		.tv_nsec = (long)(end % NS_PER_SEC),
	};

	pthread_cond_timedwait(&gate->changed, &gate->lock, &ts);
}

/* Counted as a user on return of 0. */
static int enter(struct gate *gate, bool write)
{
	int err = 0;

	pthread_mutex_lock(&gate->lock);
	while (write && !is_shut(gate) && !may_write(gate))
		wait_a_moment(gate);
	if (gate->retired || (write && is_shut(gate)))
		err = -EIO;
	else
		gate->users++;
	pthread_mutex_unlock(&gate->lock);
	return err;
}

static int leave(struct gate *gate, int err)
{
	pthread_mutex_lock(&gate->lock);
	if (!--gate->users && is_shut(gate))
		pthread_cond_broadcast(&gate->changed);
	pthread_mutex_unlock(&gate->lock);
	return err;
}

static int gate_readv(struct blkdev *dev, const struct iovec *iov, int iovcnt,
		      uint64_t offset_bytes)
{
	struct gate *gate = gate_of(dev);
	int err = enter(gate, false);

	if (err)
		return err;
	return leave(gate, blkdev_readv(dev->lower, iov, iovcnt, offset_bytes));
}

static int gate_writev(struct blkdev *dev, const struct iovec *iov, int iovcnt,
		       uint64_t offset_bytes, unsigned flags)
{
	struct gate *gate = gate_of(dev);
	int err = enter(gate, true);

	if (err)
		return err;
	return leave(gate, blkdev_writev(dev->lower, iov, iovcnt, offset_bytes,
					 flags));
}

static int gate_flush(struct blkdev *dev)
{
	struct gate *gate = gate_of(dev);
	int err = enter(gate, false);

	return err ? err : leave(gate, blkdev_flush(dev->lower));
}

static void gate_close(struct blkdev *dev)
{
	struct gate *gate = gate_of(dev);

	pthread_cond_destroy(&gate->changed);
	pthread_mutex_destroy(&gate->lock);
	free(gate->name);
	free(gate);
}

static const struct blkdev_ops gate_ops = {
	.readv = gate_readv,
	.writev = gate_writev,
	.flush = gate_flush,
	.close = gate_close,
};

int gate_open(struct blkdev *lower, uint64_t (*until_ns)(void *arg), void *arg,
	      struct gate **gatep, struct blkdev **devp)
{
	struct gate *gate = calloc(1, sizeof(*gate));
	pthread_condattr_t attr;

	if (!gate)
		return -ENOMEM;
	gate->name = strdup(lower->name);
	if (!gate->name) {
		free(gate);
		return -ENOMEM;
	}
	layer_init(&gate->dev, &gate_ops, lower, gate->name);
	gate->until_ns = until_ns;
	gate->arg = arg;
	pthread_mutex_init(&gate->lock, NULL);
	pthread_condattr_init(&attr);
	pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
	pthread_cond_init(&gate->changed, &attr);
	pthread_condattr_destroy(&attr);
	*gatep = gate;
	*devp = &gate->dev;
	return 0;
}

void gate_poke(struct gate *gate)
{
	pthread_mutex_lock(&gate->lock);
	pthread_cond_broadcast(&gate->changed);
	pthread_mutex_unlock(&gate->lock);
}

void gate_retire(struct gate *gate)
{
	struct blkdev *lower;

	pthread_mutex_lock(&gate->lock);
	gate->retired = true;
	pthread_cond_broadcast(&gate->changed);
	while (gate->users)
		pthread_cond_wait(&gate->changed, &gate->lock);
	lower = gate->dev.lower;
	gate->dev.lower = NULL;
	pthread_mutex_unlock(&gate->lock);
	blkdev_close(lower);
}
