/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * request_bytes.h - requests as the kernel would write them, for tests.
 */
#ifndef TEST_FUSE_REQUEST_BYTES_H
#define TEST_FUSE_REQUEST_BYTES_H

#include <stddef.h>
#include <string.h>

#include "fuse/kabi.h"

struct request_bytes {
	_Alignas(8) char bytes[65536];
	size_t len;
};

static inline void request_begin(struct request_bytes *rb, uint32_t opcode,
				 uint64_t nodeid)
{
	struct fuse_in_header head = {
		.len = sizeof(head),
		.opcode = opcode,
		.unique = 4242,
		.nodeid = nodeid,
		.uid = 1000,
		.gid = 1001,
		.pid = 77,
	};

	memcpy(rb->bytes, &head, sizeof(head));
	rb->len = sizeof(head);
}

/* Bytes behind what is there; the header's length follows. */
static inline void request_add(struct request_bytes *rb, const void *bytes,
			       size_t len)
{
	uint32_t total;

	memcpy(rb->bytes + rb->len, bytes, len);
	rb->len += len;
	total = (uint32_t)rb->len;
	memcpy(rb->bytes + offsetof(struct fuse_in_header, len), &total,
	       sizeof(total));
}

static inline void request_add_text(struct request_bytes *rb, const char *text)
{
	request_add(rb, text, strlen(text) + 1);
}

#endif
