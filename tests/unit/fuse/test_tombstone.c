/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What a tombstone answers to a kernel made of a socket.
 */
#include <errno.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmocka.h>

#include "fuse/tombstone.h"
#include "request_bytes.h"

static int kernel, ours;

static void *serve(void *arg)
{
	fuse_tombstone_serve(ours);
	return NULL;
}

static void send_request(uint32_t opcode, size_t more)
{
	static char nothing[8192];
	struct request_bytes rb;

	request_begin(&rb, opcode, 1);
	request_add(&rb, nothing, more);
	assert_int_equal(write(kernel, rb.bytes, rb.len), rb.len);
}

static void expect(int error)
{
	struct fuse_out_header out;

	assert_int_equal(read(kernel, &out, sizeof(out)), sizeof(out));
	assert_int_equal(out.len, sizeof(out));
	assert_int_equal(out.error, error);
	assert_int_equal(out.unique, 4242);
}

/* Answers come in order, so one that should not be there would be seen. */
static void test_answers(void **state)
{
	pthread_t thread;
	int fds[2];

	assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET, 0, fds), 0);
	kernel = fds[0];
	ours = fds[1];
	assert_int_equal(pthread_create(&thread, NULL, serve, NULL), 0);
	send_request(FUSE_GETATTR, sizeof(struct fuse_getattr_in));
	expect(-EIO);
	send_request(FUSE_FORGET, sizeof(struct fuse_forget_in));
	send_request(FUSE_BATCH_FORGET, 64);
	send_request(FUSE_INTERRUPT, sizeof(struct fuse_interrupt_in));
	send_request(FUSE_RELEASE, sizeof(struct fuse_release_in));
	expect(0);
	send_request(FUSE_FLUSH, sizeof(struct fuse_flush_in));
	expect(0);
	send_request(FUSE_WRITE, 8000);
	expect(-EIO);
	send_request(4711, 0);
	expect(-EIO);
	/* The mount is gone. */
	close(kernel);
	pthread_join(thread, NULL);
	close(ours);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_answers),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
