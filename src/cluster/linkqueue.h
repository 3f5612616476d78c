/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * linkqueue.h - the frames of one stream that the other side has not
 * acknowledged yet, and how far the present connection has been given them.
 *
 * Pure; calls on one queue are serialised by the caller. Between
 * link_queue_iov() and link_queue_wrote() the bytes that the former named stay
 * where they are, whatever else is called but resume and free.
 */
#ifndef UG_CLUSTER_LINKQUEUE_H
#define UG_CLUSTER_LINKQUEUE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/uio.h>

struct link_chunk;

struct link_queue {
	struct link_chunk *first, *last;
	struct link_chunk *spare; /* one that is not in use, or NULL */
	uint64_t added;		  /* frames, ever: the last one's number */
	uint64_t acked;		  /* the other side has these */
	uint64_t handed; /* it can have these: they were given to a socket */
	size_t bytes;	 /* held, but for acknowledged ones to a chunk's end */

	/* The next byte for the connection. */
	struct link_chunk *at;
	size_t at_off;
	size_t at_frame; /* where in *at the frame of this byte begins */
};

void link_queue_init(struct link_queue *q);
void link_queue_free(struct link_queue *q);

/* Append a frame; ack goes into its header. -ENOMEM: nothing has changed. */
int link_queue_add(struct link_queue *q, uint8_t kind, uint32_t ack,
		   const uint8_t *bytes, size_t len);

/* Something is left to be written. */
bool link_queue_more(const struct link_queue *q);

/* The next byte is not the first one of a frame. */
bool link_queue_mid_frame(const struct link_queue *q);

/*
 * Name what is to be written next, in at most max pieces; one_frame: only to
 * the end of the frame that has begun. Their number.
 */
unsigned link_queue_iov(struct link_queue *q, struct iovec *iov, unsigned max,
			bool one_frame);

/* So many bytes of that have been written. */
void link_queue_wrote(struct link_queue *q, size_t len);

/*
 * The low half of the number of frames that the other side has. Old ones are
 * ignored. -EBADMSG: it cannot have them.
 */
int link_queue_ack(struct link_queue *q, uint32_t ack);

/*
 * Can a new connection begin behind this frame? -ESTALE: what comes next was
 * acknowledged and is gone; -EBADMSG: it was never sent.
 */
int link_queue_check(const struct link_queue *q, uint64_t received);

/* Begin anew there; must have been checked. */
void link_queue_resume(struct link_queue *q, uint64_t received);

#endif
