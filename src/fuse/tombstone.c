/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * tombstone.c - see tombstone.h.
 */
#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <unistd.h>

#include "fuse/kabi.h"
#include "fuse/tombstone.h"

#define IN_MAX (FUSE_WRITE_HEAD + FUSE_MAX_WRITE)

static bool is_answered(uint32_t opcode)
{
	return opcode != FUSE_FORGET && opcode != FUSE_BATCH_FORGET &&
	       opcode != FUSE_INTERRUPT;
}

/* What gives back is never refused: tasks must be able to end. */
static int error_of(uint32_t opcode)
{
	switch (opcode) {
	case FUSE_FLUSH:
	case FUSE_RELEASE:
	case FUSE_RELEASEDIR:
	case FUSE_DESTROY:
		return 0;
	default:
		return -EIO;
	}
}

/* Whoever does not wait any more is not there to be told. */
static void answer(int fd, const struct fuse_in_header *in)
{
	struct fuse_out_header out = {
		.len = sizeof(out),
		.error = error_of(in->opcode),
		.unique = in->unique,
	};

	if (write(fd, &out, sizeof(out)) < 0)
		return;
}

void fuse_tombstone_serve(int fd)
{
	void *bytes = malloc(IN_MAX);
	const struct fuse_in_header *in = bytes;
	ssize_t n;

	if (!bytes)
		return;
	do {
		n = read(fd, bytes, IN_MAX);
		if (n >= (ssize_t)sizeof(*in) && is_answered(in->opcode))
			answer(fd, in);
	} while (n > 0 || (n < 0 && (errno == EINTR || errno == EAGAIN ||
				     errno == ENOENT)));
	free(bytes);
}
