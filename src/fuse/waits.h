/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * waits.h - which requests have been waiting for long. Pure.
 */
#ifndef UG_FUSE_WAITS_H
#define UG_FUSE_WAITS_H

#include <stdbool.h>
#include <stdint.h>

#include "fuse/proto.h"

struct fuse_wait {
	uint32_t opcode;
	uint32_t pid;
	uint64_t nodeid;
	uint64_t since_ns; /* CLOCK_MONOTONIC when it was handed over */
	bool queued;	   /* no thread has come to it */
};

struct fuse_waits {
	uint64_t before_ns;	  /* only those from before that */
	struct fuse_wait *oldest; /* oldest first; the caller's memory */
	unsigned max, count;
	unsigned found; /* altogether */
};

static inline struct fuse_wait fuse_wait_of(const struct fuse_request *req,
					    uint64_t since_ns)
{
	return (struct fuse_wait){
		.opcode = req->opcode,
		.pid = req->pid,
		.nodeid = req->nodeid,
		.since_ns = since_ns,
	};
}

/* Sort it in; the youngest goes if there is no room. */
static inline void fuse_waits_add(struct fuse_waits *waits,
				  const struct fuse_wait *wait)
{
	unsigned i;

	if (wait->since_ns >= waits->before_ns)
		return;
	waits->found++;
	if (waits->count == waits->max) {
		if (!waits->max ||
		    waits->oldest[waits->max - 1].since_ns <= wait->since_ns)
			return;
		waits->count--;
	}
	i = waits->count++;
	while (i && waits->oldest[i - 1].since_ns > wait->since_ns) {
		waits->oldest[i] = waits->oldest[i - 1];
		i--;
	}
	waits->oldest[i] = *wait;
}

/* The same, for one that no thread has come to. */
static inline void fuse_waits_add_queued(struct fuse_waits *waits,
					 const struct fuse_request *req,
					 uint64_t since_ns)
{
	struct fuse_wait wait = fuse_wait_of(req, since_ns);

	wait.queued = true;
	fuse_waits_add(waits, &wait);
}

#endif
