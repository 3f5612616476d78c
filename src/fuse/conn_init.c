/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * conn_init.c - INIT: what the kernel offers against what we want.
 *
 *	kernel				us
 *	INIT 7.45, flags offered ---->
 *				<----	7.38, flags both have, sizes
 *
 *	INIT 8.x		---->
 *				<----	7.38, nothing else
 *	INIT 7.x		---->	...
 *
 * The kernel takes our answer's flags as they stand, so one that it has not
 * offered must not be in it.
 */
#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/log.h"
#include "fuse/conn_impl.h"
#include "fuse/proto.h"

static uint64_t flags_offered(const struct fuse_init_in *in)
{
	uint64_t flags = in->flags;

	/* Without the extension the second word is no flags. */
	if (flags & FUSE_INIT_EXT)
		flags |= (uint64_t)in->flags2 << 32;
	return flags;
}

int fuse_init_answer(const struct fuse_init_in *in,
		     const struct fuse_wants *wants, struct fuse_init_out *out,
		     struct fuse_agreed *agreed)
{
	uint64_t flags;

	*out = (struct fuse_init_out){
		.major = FUSE_KERNEL_VERSION,
		.minor = FUSE_MINOR_OURS,
	};
	if (in->major > FUSE_KERNEL_VERSION)
		return -EAGAIN;
	if (in->major < FUSE_KERNEL_VERSION || in->minor < FUSE_MINOR_MIN)
		return -EPROTO;

	flags = flags_offered(in) &
		(wants->flags | FUSE_INIT_EXT | FUSE_BIG_WRITES |
		 FUSE_MAX_PAGES | FUSE_ABORT_ERROR);
	out->flags = (uint32_t)flags;
	out->flags2 = (uint32_t)(flags >> 32);
	out->max_readahead = UG_MIN(in->max_readahead, wants->max_readahead);
	/*
	 * Unanswered background requests must never hold back those of other
	 * files (docs/spec/fuse.md 4.7c): no quota that could be reached.
	 */
	out->max_background = UINT16_MAX;
	out->congestion_threshold = UINT16_MAX;
	out->max_write = wants->max_write;
	out->max_pages = FUSE_MAX_PAGES_OURS;
	out->time_gran = 1;

	agreed->flags = flags;
	agreed->minor = in->minor;
	agreed->max_write = out->max_write;
	return 0;
}

/* The smallest buffer that the kernel accepts before INIT is answered. */
#define INIT_BUFFER (FUSE_MIN_READ_BUFFER + FUSE_MAX_WRITE)

static int init_read(int fd, void *buf, struct fuse_request *req)
{
	ssize_t n;
	int err;

	do {
		n = read(fd, buf, INIT_BUFFER);
	} while (n < 0 && (errno == ENOENT || errno == EAGAIN));
	if (n < 0)
		return -errno;
	err = fuse_request_decode(buf, (size_t)n, req);
	return err || req->opcode != FUSE_INIT ? -EPROTO : 0;
}

static int init_write(int fd, uint64_t unique, int error,
		      const struct fuse_init_out *out)
{
	struct {
		struct fuse_out_header head;
		struct fuse_init_out body;
	} answer = {
		.head = { .len = sizeof(answer.head),
			  .error = error,
			  .unique = unique },
	};

	if (!error) {
		answer.head.len = sizeof(answer);
		answer.body = *out;
	}
	return write(fd, &answer, answer.head.len) < 0 ? -errno : 0;
}

/* One round: -EAGAIN if the kernel will come again with another version. */
static int init_round(struct fuse_conn *conn, void *buf,
		      const struct fuse_wants *wants,
		      struct fuse_agreed *agreed)
{
	struct fuse_request req;
	struct fuse_init_out out;
	int fd = conn->fds[0];
	int result;
	int err = init_read(fd, buf, &req);

	if (err)
		return err;
	result = fuse_init_answer(&req.init, wants, &out, agreed);
	if (result == -EPROTO)
		ug_error(conn->mountpoint ? conn->mountpoint : "fuse",
			 "the kernel speaks FUSE %u.%u, at least %u.%u is "
			 "needed",
			 req.init.major, req.init.minor, FUSE_KERNEL_VERSION,
			 FUSE_MINOR_MIN);
	err = init_write(fd, req.unique, result == -EPROTO ? -EPROTO : 0, &out);
	return err ? err : result;
}

int fuse_conn_negotiate(struct fuse_conn *conn, const struct fuse_wants *wants,
			struct fuse_agreed *agreed)
{
	void *buf = malloc(INIT_BUFFER);
	int err;

	if (!buf)
		return -ENOMEM;
	err = init_round(conn, buf, wants, agreed);
	/* A kernel that comes a third time does not know what it wants. */
	if (err == -EAGAIN)
		err = init_round(conn, buf, wants, agreed);
	free(buf);
	return err == -EAGAIN ? -EPROTO : err;
}
