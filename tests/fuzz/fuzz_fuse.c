/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * fuzz_fuse.c - any bytes as a request of the kernel.
 *
 * The decoder is run on an exact copy of the input, so that a byte looked at
 * beyond it is seen by the address sanitizer; then everything that it
 * found is touched, as the operations would. The header's length is made to
 * agree with the input in a second run: else hardly one would get further.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "fuse/conn.h"
#include "fuse/proto.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static volatile unsigned sink;

static void touch(const void *bytes, size_t len)
{
	const unsigned char *at = bytes;

	for (size_t i = 0; i < len; i++)
		sink += at[i];
}

static void check_name(const struct fuse_name *name)
{
	if (!name->text)
		return;
	touch(name->text, name->len + 1u);
	if (!name->len || strlen(name->text) != name->len)
		abort();
}

static void check_init(const struct fuse_request *req)
{
	struct fuse_wants wants = { .flags = UINT64_MAX };
	struct fuse_init_out out;
	struct fuse_agreed agreed;

	if (fuse_init_answer(&req->init, &wants, &out, &agreed))
		return;
	/* Nothing is agreed that was not offered. */
	if (out.flags & ~req->init.flags)
		abort();
}

static void check_request(const struct fuse_request *req)
{
	check_name(&req->name);
	check_name(&req->name2);
	if (req->data)
		touch(req->data, req->data_len);
	switch (req->opcode) {
	case FUSE_WRITE:
		if (req->data_len != req->write.size)
			abort();
		break;
	case FUSE_BATCH_FORGET:
		for (uint32_t i = 0; i < req->forgets.count; i++)
			sink += (unsigned)fuse_request_forget(req, i).nlookup;
		break;
	case FUSE_INIT:
		check_init(req);
		break;
	}
	touch(fuse_opcode_name(req->opcode), 1);
	sink += fuse_request_answered(req);
}

static void decode(const void *bytes, size_t size)
{
	struct fuse_request req;
	int err = fuse_request_decode(bytes, size, &req);

	if (!err)
		check_request(&req);
	else if (err != -EBADMSG && err != -ENOSYS)
		abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	uint32_t len = (uint32_t)size;
	char *copy = malloc(size ? size : 1);

	if (!copy)
		return 0;
	memcpy(copy, data, size);
	decode(copy, size);
	if (size >= sizeof(len)) {
		memcpy(copy, &len, sizeof(len));
		decode(copy, size);
	}
	free(copy);
	return 0;
}
