/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * iolist.h - pieces of memory and where they are on the device, made into few
 * requests.
 *
 * Pieces are added in the order of their addresses as far as possible: one
 * that continues the request before it is merged into it. Not safe from
 * several threads.
 */
#ifndef UG_FS_IOLIST_H
#define UG_FS_IOLIST_H

#include "block/iopool.h"

struct iolist {
	enum ioreq_op il_op;
	unsigned il_count;
	unsigned il_cap;
	struct ioreq *il_reqs;
	unsigned il_iovs;
	unsigned il_iovs_cap;
	struct iovec *il_iov;
	uint64_t il_end_bytes;	/* where the last request ends */
	uint64_t il_last_bytes; /* its length */
};

static inline void iolist_init(struct iolist *list, enum ioreq_op op)
{
	*list = (struct iolist){ .il_op = op };
}

/*
 * Add bytes of memory at this offset of the device. Returns the index of the
 * request that has them, or -ENOMEM. memory is borrowed until the requests
 * are done.
 */
int iolist_add(struct iolist *list, void *memory, size_t bytes,
	       uint64_t offset_bytes);

/* No more additions: il_reqs can be submitted. */
void iolist_seal(struct iolist *list);

/* Seal, carry out and wait. The first error, or 0; each is in its request. */
int iolist_run(struct iolist *list, struct iopool *pool);

void iolist_free(struct iolist *list);

#endif
