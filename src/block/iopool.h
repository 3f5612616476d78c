/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * iopool.h - threads that carry out block requests for others.
 *
 * Synchronous system calls, one per request, by a pool that grows while
 * requests wait and shrinks when threads have been idle for some seconds. A
 * caller that needs a single request done should call the device itself;
 * the pool is for many requests at once and for read-ahead and write-behind.
 */
#ifndef UG_BLOCK_IOPOOL_H
#define UG_BLOCK_IOPOOL_H

#include "block/block.h"

struct iopool;

enum ioreq_op {
	IOREQ_READ,
	IOREQ_WRITE,
	IOREQ_FLUSH,
};

/*
 * One request. The submitter owns it and the memory it names, and leaves
 * both alone until done() has been called. done() runs on a pool thread,
 * never in the submitter, without any lock held; it may free the request and
 * submit others, and must not wait for another request of the pool.
 */
struct ioreq {
	enum ioreq_op op;
	unsigned flags; /* BLK_FUA */
	const struct iovec *iov;
	int iovcnt;
	uint64_t offset_bytes;
	int result; /* 0 or -errno, valid in done() */
	void (*done)(struct ioreq *req);
	void *private;
	struct ioreq *next; /* the pool's, like batch */
	struct iobatch *batch;
};

/*
 * threads_max: at least 1. dev is borrowed and must outlive the pool. One
 * thread is started here and stays, so that submitting cannot fail later.
 * Call it after daemonising. 0, -EINVAL, -ENOMEM, or -EAGAIN (no thread).
 */
int iopool_create(struct blkdev *dev, unsigned threads_max,
		  struct iopool **poolp);

/* Never fails; short of threads, the request waits for those that are there. */
void iopool_submit(struct iopool *pool, struct ioreq *req);

/*
 * Carry out n requests (done is not called) and wait for all of them. The last
 * one runs in the caller. Returns the first error in array order, or 0.
 */
int iopool_run(struct iopool *pool, struct ioreq *reqs, unsigned n);

/* Waits for every request submitted before, then ends the threads. */
void iopool_destroy(struct iopool *pool);

#endif
