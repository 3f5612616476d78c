/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * delay.c - requests sleep, or wait at a gate, before the device below sees
 * them. One mutex guards everything; nobody sleeps with it.
 */
#include <errno.h>
#include <pthread.h>
#include <time.h>

#include "block/delay.h"

#define OPS_COUNT 3

struct delay {
	struct blkdev dev;
	pthread_mutex_t lock;
	pthread_cond_t changed;	      /* of held_ops and held */
	uint64_t delay_us[OPS_COUNT]; /* by bit number of LAYER_* */
	unsigned held_ops;
	unsigned held; /* requests at the gate */
};

static struct delay *delay_of(struct blkdev *dev)
{
	return ug_container_of(dev, struct delay, dev);
}

static void sleep_us(uint64_t us)
{
	struct timespec left = {
		.tv_sec = (time_t)(us / 1000000),
		.tv_nsec = (long)(us % 1000000) * 1000,
	};

	while (clock_nanosleep(CLOCK_MONOTONIC, 0, &left, &left) == EINTR)
		;
}

static void delay_request(struct delay *delay, unsigned op)
{
	uint64_t us;

	pthread_mutex_lock(&delay->lock);
	if (delay->held_ops & op) {
		delay->held++;
		pthread_cond_broadcast(&delay->changed);
		while (delay->held_ops & op)
			pthread_cond_wait(&delay->changed, &delay->lock);
		delay->held--;
	}
	us = delay->delay_us[__builtin_ctz(op)];
	pthread_mutex_unlock(&delay->lock);
	if (us)
		sleep_us(us);
}

static int delay_readv(struct blkdev *dev, const struct iovec *iov, int iovcnt,
		       uint64_t offset_bytes)
{
	delay_request(delay_of(dev), LAYER_READ);
	return blkdev_readv(dev->lower, iov, iovcnt, offset_bytes);
}

static int delay_writev(struct blkdev *dev, const struct iovec *iov, int iovcnt,
			uint64_t offset_bytes, unsigned flags)
{
	delay_request(delay_of(dev), LAYER_WRITE);
	return blkdev_writev(dev->lower, iov, iovcnt, offset_bytes, flags);
}

static int delay_flush(struct blkdev *dev)
{
	delay_request(delay_of(dev), LAYER_FLUSH);
	return blkdev_flush(dev->lower);
}

static void delay_close(struct blkdev *dev)
{
	struct delay *delay = delay_of(dev);

	pthread_cond_destroy(&delay->changed);
	pthread_mutex_destroy(&delay->lock);
	free(delay);
}

static const struct blkdev_ops delay_ops = {
	.readv = delay_readv,
	.writev = delay_writev,
	.flush = delay_flush,
	.close = delay_close,
};

int delay_open(struct blkdev *lower, struct delay **delayp,
	       struct blkdev **devp)
{
	struct delay *delay = calloc(1, sizeof(*delay));

	if (!delay)
		return -ENOMEM;
	layer_init(&delay->dev, &delay_ops, lower, "delay");
	pthread_mutex_init(&delay->lock, NULL);
	pthread_cond_init(&delay->changed, NULL);
	*delayp = delay;
	*devp = &delay->dev;
	return 0;
}

void delay_set(struct delay *delay, unsigned ops, uint64_t delay_us)
{
	pthread_mutex_lock(&delay->lock);
	for (unsigned i = 0; i < OPS_COUNT; i++) {
		if (ops & (1u << i))
			delay->delay_us[i] = delay_us;
	}
	pthread_mutex_unlock(&delay->lock);
}

void delay_hold(struct delay *delay, unsigned ops)
{
	pthread_mutex_lock(&delay->lock);
	delay->held_ops = ops;
	pthread_cond_broadcast(&delay->changed);
	pthread_mutex_unlock(&delay->lock);
}

void delay_wait_held(struct delay *delay, unsigned n)
{
	pthread_mutex_lock(&delay->lock);
	while (delay->held < n)
		pthread_cond_wait(&delay->changed, &delay->lock);
	pthread_mutex_unlock(&delay->lock);
}

void delay_release(struct delay *delay)
{
	delay_hold(delay, 0);
}
