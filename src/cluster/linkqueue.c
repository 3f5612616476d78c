/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * linkqueue.c - see linkqueue.h.
 *
 *	    first		     at			last
 *	  +-------------+    +----------------+    +-----------+
 *	  | ff ffff fff |--->| fff fffff ffff |--->| fff       |
 *	  +-------------+    +----------------+    +-----------+
 *	      ^ acked		    ^   ^ at_off
 *				    at_frame
 *
 * Frames stand one behind the other in chunks, so that one piece of a write
 * has many of them; a frame is never in two chunks. A chunk goes when its last
 * frame is acknowledged and written: an acknowledgement can arrive while
 * the write of those very bytes has not returned yet.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/assert.h"
#include "base/compiler.h"
#include "cluster/linkqueue.h"
#include "cluster/linkwire.h"

#define CHUNK_BYTES 16384u

struct link_chunk {
	struct link_chunk *next;
	uint64_t first; /* number of the first frame */
	uint64_t count; /* frames */
	size_t len, space;
	uint8_t data[];
};

void link_queue_init(struct link_queue *q)
{
	memset(q, 0, sizeof(*q));
}

void link_queue_free(struct link_queue *q)
{
	struct link_chunk *chunk, *next;

	for (chunk = q->first; chunk; chunk = next) {
		next = chunk->next;
		free(chunk);
	}
	free(q->spare);
	link_queue_init(q);
}

static struct link_chunk *new_chunk(struct link_queue *q, size_t need)
{
	size_t space = UG_MAX(need, (size_t)CHUNK_BYTES);
	struct link_chunk *chunk;

	if (need <= CHUNK_BYTES && q->spare) {
		chunk = q->spare;
		q->spare = NULL;
	} else {
		chunk = malloc(sizeof(*chunk) + space);
		if (!chunk)
			return NULL;
		chunk->space = space;
	}
	chunk->next = NULL;
	chunk->first = q->added + 1;
	chunk->count = 0;
	chunk->len = 0;
	return chunk;
}

static void let_go(struct link_queue *q, struct link_chunk *chunk)
{
	if (!q->spare && chunk->space == CHUNK_BYTES)
		q->spare = chunk;
	else
		free(chunk);
}

static bool chunk_acked(const struct link_queue *q,
			const struct link_chunk *chunk)
{
	return chunk->first + chunk->count <= q->acked + 1;
}

static void drop_first(struct link_queue *q)
{
	struct link_chunk *chunk = q->first;

	q->first = chunk->next;
	if (!q->first)
		q->last = NULL;
	if (q->at == chunk) {
		q->at = chunk->next;
		q->at_off = q->at_frame = 0;
	}
	q->bytes -= chunk->len;
	let_go(q, chunk);
}

static void trim(struct link_queue *q)
{
	while (q->first && chunk_acked(q, q->first) &&
	       (q->first != q->at || q->at_off == q->at->len))
		drop_first(q);
}

int link_queue_add(struct link_queue *q, uint8_t kind, uint32_t ack,
		   const uint8_t *bytes, size_t len)
{
	size_t need = LINK_FRAME_BYTES + len;
	struct link_chunk *chunk = q->last;
	struct link_frame frame;

	if (!chunk || chunk->space - chunk->len < need) {
		chunk = new_chunk(q, need);
		if (!chunk)
			return -ENOMEM;
		if (q->last)
			q->last->next = chunk;
		else
			q->first = chunk;
		q->last = chunk;
		if (!q->at)
			q->at = chunk;
	}
	frame = (struct link_frame){ (uint32_t)len, kind, (uint32_t)++q->added,
				     ack };
	link_frame_encode(&frame, chunk->data + chunk->len);
	if (len)
		memcpy(chunk->data + chunk->len + LINK_FRAME_BYTES, bytes, len);
	chunk->len += need;
	chunk->count++;
	q->bytes += need;
	return 0;
}

bool link_queue_more(const struct link_queue *q)
{
	return q->at && (q->at_off < q->at->len || q->at->next);
}

bool link_queue_mid_frame(const struct link_queue *q)
{
	return q->at && q->at_frame < q->at_off;
}

static size_t frame_bytes(const struct link_chunk *chunk, size_t off)
{
	struct link_frame frame;
	int err = link_frame_decode(chunk->data + off, &frame);

	ug_assert(!err);
	return LINK_FRAME_BYTES + frame.len;
}

unsigned link_queue_iov(struct link_queue *q, struct iovec *iov, unsigned max,
			bool one_frame)
{
	struct link_chunk *chunk = q->at;
	size_t off = q->at_off;
	unsigned count = 0;

	if (one_frame) {
		size_t end = q->at_frame + frame_bytes(chunk, q->at_frame);

		iov[0] = (struct iovec){ chunk->data + off, end - off };
		return 1;
	}
	for (; chunk && count < max; chunk = chunk->next, off = 0) {
		if (off == chunk->len)
			continue;
		iov[count++] =
			(struct iovec){ chunk->data + off, chunk->len - off };
		q->handed = UG_MAX(q->handed, chunk->first + chunk->count - 1);
	}
	return count;
}

void link_queue_wrote(struct link_queue *q, size_t len)
{
	while (len) {
		struct link_chunk *chunk = q->at;
		size_t part;

		ug_assert(chunk);
		part = UG_MIN(len, chunk->len - q->at_off);
		q->at_off += part;
		len -= part;
		if (q->at_off == chunk->len) {
			q->at_frame = q->at_off;
			if (chunk->next) {
				q->at = chunk->next;
				q->at_off = q->at_frame = 0;
			} else {
				ug_assert(!len);
			}
			continue;
		}
		while (q->at_frame + frame_bytes(chunk, q->at_frame) <=
		       q->at_off)
			q->at_frame += frame_bytes(chunk, q->at_frame);
	}
	trim(q);
}

int link_queue_ack(struct link_queue *q, uint32_t ack)
{
	int32_t step = (int32_t)(ack - (uint32_t)q->acked);

	if (step <= 0)
		return 0;
	if ((uint64_t)step > q->handed - q->acked)
		return -EBADMSG;
	q->acked += (uint64_t)step;
	trim(q);
	return 0;
}

int link_queue_check(const struct link_queue *q, uint64_t received)
{
	if (received < q->acked)
		return -ESTALE;
	return received > q->handed ? -EBADMSG : 0;
}

void link_queue_resume(struct link_queue *q, uint64_t received)
{
	struct link_chunk *chunk;

	ug_assert(!link_queue_check(q, received));
	q->acked = received;
	while (q->first && chunk_acked(q, q->first))
		drop_first(q);
	chunk = q->first;
	q->at = chunk;
	q->at_off = 0;
	for (uint64_t n = chunk ? chunk->first : 0; chunk && n <= received; n++)
		q->at_off += frame_bytes(chunk, q->at_off);
	q->at_frame = q->at_off;
}
