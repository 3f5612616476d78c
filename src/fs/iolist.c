/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * iolist.c - building requests for the device.
 *
 * The arrays grow while the list is built, so a request remembers only how
 * many pieces it has; they get their addresses when the list is sealed.
 */
#include <errno.h>
#include <limits.h>
#include <stdlib.h>

#include "fs/iolist.h"

/* One request: long enough for the device, short enough to run several. */
#define REQUEST_BYTES_MAX (1u << 20)

static void *grow(void *array, unsigned *cap, size_t size)
{
	unsigned wanted = UG_MAX(2 * *cap, 8u);
	void *bigger = realloc(array, wanted * size);

	if (bigger)
		*cap = wanted;
	return bigger;
}

static int room_for_one(struct iolist *list)
{
	if (list->il_count == list->il_cap) {
		struct ioreq *reqs =
			grow(list->il_reqs, &list->il_cap, sizeof(*reqs));

		if (!reqs)
			return -ENOMEM;
		list->il_reqs = reqs;
	}
	if (list->il_iovs == list->il_iovs_cap) {
		struct iovec *iov =
			grow(list->il_iov, &list->il_iovs_cap, sizeof(*iov));

		if (!iov)
			return -ENOMEM;
		list->il_iov = iov;
	}
	return 0;
}

static struct ioreq *request_for(struct iolist *list, size_t bytes,
				 uint64_t offset_bytes)
{
	struct ioreq *req;

	if (list->il_count && offset_bytes == list->il_end_bytes &&
	    list->il_last_bytes + bytes <= REQUEST_BYTES_MAX &&
	    list->il_reqs[list->il_count - 1].iovcnt < IOV_MAX)
		return &list->il_reqs[list->il_count - 1];
	req = &list->il_reqs[list->il_count++];
	*req = (struct ioreq){
		.op = list->il_op,
		.offset_bytes = offset_bytes,
	};
	list->il_last_bytes = 0;
	return req;
}

static int add_piece(struct iolist *list, void *memory, size_t bytes,
		     uint64_t offset_bytes)
{
	struct iovec *iov;
	struct ioreq *req;

	if (room_for_one(list))
		return -ENOMEM;
	req = request_for(list, bytes, offset_bytes);
	iov = &list->il_iov[list->il_iovs];
	if (req->iovcnt &&
	    (char *)iov[-1].iov_base + iov[-1].iov_len == memory) {
		iov[-1].iov_len += bytes;
	} else {
		*iov = (struct iovec){ memory, bytes };
		list->il_iovs++;
		req->iovcnt++;
	}
	list->il_end_bytes = offset_bytes + bytes;
	list->il_last_bytes += bytes;
	return (int)(req - list->il_reqs);
}

int iolist_add(struct iolist *list, void *memory, size_t bytes,
	       uint64_t offset_bytes)
{
	int first = -1;

	while (bytes) {
		size_t n = UG_MIN(bytes, (size_t)REQUEST_BYTES_MAX);
		int req = add_piece(list, memory, n, offset_bytes);

		if (req < 0)
			return req;
		if (first < 0)
			first = req;
		memory = (char *)memory + n;
		offset_bytes += n;
		bytes -= n;
	}
	return first;
}

void iolist_seal(struct iolist *list)
{
	struct iovec *iov = list->il_iov;

	for (unsigned i = 0; i < list->il_count; i++) {
		list->il_reqs[i].iov = iov;
		iov += list->il_reqs[i].iovcnt;
	}
}

int iolist_run(struct iolist *list, struct iopool *pool)
{
	iolist_seal(list);
	return iopool_run(pool, list->il_reqs, list->il_count);
}

void iolist_free(struct iolist *list)
{
	free(list->il_reqs);
	free(list->il_iov);
}
