/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * outqueue.c - see outqueue.h.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "cluster/clock.h"
#include "cluster/coroconf.h"
#include "cluster/outqueue.h"

#define QUEUE_MAX 4096
#define RETRY_NS (10 * NS_PER_MS)

struct out_bytes {
	struct out_bytes *next;
	size_t len;
	uint8_t data[];
};

void outqueue_init(struct outqueue *q)
{
	q->head = NULL;
	q->tail = &q->head;
	q->count = 0;
	q->retry_ns = UINT64_MAX;
}

static void drop_first(struct outqueue *q)
{
	struct out_bytes *b = q->head;

	q->head = b->next;
	if (!q->head)
		q->tail = &q->head;
	q->count--;
	free(b);
}

void outqueue_free(struct outqueue *q)
{
	while (q->head)
		drop_first(q);
}

static cs_error_t multicast(struct outqueue *q, uint8_t *data, size_t len)
{
	struct iovec iov = { data, len };

	return cpg_mcast_joined(q->cpg, CPG_TYPE_AGREED, &iov, 1);
}

int outqueue_add(struct outqueue *q, const struct group_msg *msg)
{
	long len = group_msg_encode(msg, q->encoded, sizeof(q->encoded));
	struct out_bytes *b;

	if (len < 0 || q->count == QUEUE_MAX)
		return -ENOBUFS;
	b = malloc(sizeof(*b) + (size_t)len);
	if (!b)
		return -ENOMEM;
	b->next = NULL;
	b->len = (size_t)len;
	memcpy(b->data, q->encoded, (size_t)len);
	*q->tail = b;
	q->tail = &b->next;
	q->count++;
	return 0;
}

int outqueue_flush(struct outqueue *q)
{
	while (q->head) {
		cs_error_t status = multicast(q, q->head->data, q->head->len);

		if (status == CS_ERR_TRY_AGAIN) {
			q->retry_ns = clock_now_ns() + RETRY_NS;
			return 0;
		}
		if (status != CS_OK)
			return coro_error("send", status);
		drop_first(q);
	}
	q->retry_ns = UINT64_MAX;
	return 0;
}

void outqueue_try(struct outqueue *q, const struct group_msg *msg)
{
	long len;

	if (q->head)
		return;
	len = group_msg_encode(msg, q->encoded, sizeof(q->encoded));
	if (len > 0)
		multicast(q, q->encoded, (size_t)len);
}
