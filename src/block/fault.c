/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * fault.c - decides for each request whether it passes, and with what error
 * it comes back. One mutex guards rule and counts; nothing is done under it.
 */
#include <errno.h>
#include <pthread.h>

#include "block/fault.h"

#define OPS_COUNT 3

struct fault {
	struct blkdev dev;
	pthread_mutex_t lock;
	struct fault_rule rule; /* ops 0: none */
	uint64_t matched;	/* since the rule was set */
	uint64_t failed;
	uint64_t seen[OPS_COUNT]; /* by bit number of LAYER_* */
};

static struct fault *fault_of(struct blkdev *dev)
{
	return ug_container_of(dev, struct fault, dev);
}

static bool rule_matches(const struct fault_rule *rule, unsigned op,
			 uint64_t offset_bytes, uint64_t len_bytes)
{
	if (!(rule->ops & op))
		return false;
	if (op == LAYER_FLUSH || (!rule->from_bytes && !rule->to_bytes))
		return true;
	return offset_bytes < rule->to_bytes &&
	       offset_bytes + len_bytes > rule->from_bytes;
}

/*
 * What is to become of this request: 0 it passes, else the error that it
 * returns; *carried_out says whether the device sees it all the same.
 */
static int fault_verdict(struct fault *fault, unsigned op,
			 uint64_t offset_bytes, uint64_t len_bytes,
			 bool *carried_out)
{
	const struct fault_rule *rule = &fault->rule;
	int err = 0;

	pthread_mutex_lock(&fault->lock);
	fault->seen[__builtin_ctz(op)]++;
	if (rule_matches(rule, op, offset_bytes, len_bytes)) {
		uint64_t nr = fault->matched++;

		if (nr >= rule->pass &&
		    (!rule->fail || nr - rule->pass < rule->fail)) {
			fault->failed++;
			err = rule->error ? rule->error : -EIO;
		}
	}
	*carried_out = !err || rule->carried_out;
	pthread_mutex_unlock(&fault->lock);
	return err;
}

static int fault_readv(struct blkdev *dev, const struct iovec *iov, int iovcnt,
		       uint64_t offset_bytes)
{
	bool carried_out;
	int err = fault_verdict(fault_of(dev), LAYER_READ, offset_bytes,
				layer_iov_bytes(iov, iovcnt), &carried_out);
	int lower_err = 0;

	if (carried_out)
		lower_err = blkdev_readv(dev->lower, iov, iovcnt, offset_bytes);
	return err ? err : lower_err;
}

static int fault_writev(struct blkdev *dev, const struct iovec *iov, int iovcnt,
			uint64_t offset_bytes, unsigned flags)
{
	bool carried_out;
	int err = fault_verdict(fault_of(dev), LAYER_WRITE, offset_bytes,
				layer_iov_bytes(iov, iovcnt), &carried_out);
	int lower_err = 0;

	if (carried_out)
		lower_err = blkdev_writev(dev->lower, iov, iovcnt, offset_bytes,
					  flags);
	return err ? err : lower_err;
}

static int fault_flush(struct blkdev *dev)
{
	bool carried_out;
	int err = fault_verdict(fault_of(dev), LAYER_FLUSH, 0, 0, &carried_out);
	int lower_err = 0;

	if (carried_out)
		lower_err = blkdev_flush(dev->lower);
	return err ? err : lower_err;
}

static void fault_close(struct blkdev *dev)
{
	struct fault *fault = fault_of(dev);

	pthread_mutex_destroy(&fault->lock);
	free(fault);
}

static const struct blkdev_ops fault_ops = {
	.readv = fault_readv,
	.writev = fault_writev,
	.flush = fault_flush,
	.close = fault_close,
};

int fault_open(struct blkdev *lower, struct fault **faultp,
	       struct blkdev **devp)
{
	struct fault *fault = calloc(1, sizeof(*fault));

	if (!fault)
		return -ENOMEM;
	layer_init(&fault->dev, &fault_ops, lower, "fault");
	pthread_mutex_init(&fault->lock, NULL);
	*faultp = fault;
	*devp = &fault->dev;
	return 0;
}

void fault_set(struct fault *fault, const struct fault_rule *rule)
{
	pthread_mutex_lock(&fault->lock);
	fault->rule = rule ? *rule : (struct fault_rule){ .ops = 0 };
	fault->matched = 0;
	fault->failed = 0;
	pthread_mutex_unlock(&fault->lock);
}

uint64_t fault_failed(struct fault *fault)
{
	uint64_t failed;

	pthread_mutex_lock(&fault->lock);
	failed = fault->failed;
	pthread_mutex_unlock(&fault->lock);
	return failed;
}

uint64_t fault_seen(struct fault *fault, unsigned ops)
{
	uint64_t seen = 0;

	pthread_mutex_lock(&fault->lock);
	for (unsigned i = 0; i < OPS_COUNT; i++) {
		if (ops & (1u << i))
			seen += fault->seen[i];
	}
	pthread_mutex_unlock(&fault->lock);
	return seen;
}
