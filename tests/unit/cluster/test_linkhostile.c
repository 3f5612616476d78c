/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * test_linkhostile.c - what comes from those who do not keep to the protocol:
 * before they are let in and, worse, after. Two true members talk throughout.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <poll.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/log.h"
#include "base/prng.h"
#include "cluster/limits.h"
#include "cluster/linkauth.h"
#include "linkworld.h"

#define KEY "the key of the true members"
#define EVIL 3 /* a's member whose process this test is */
#define FLOOD (LINK_STRANGERS_MAX * 4)

static struct world_node a, b;
static uint64_t talked;

/* A connection that speaks for member EVIL. */
struct evil {
	int fd;
	struct link_shake hello, welcome;
	uint8_t hello_bytes[LINK_SHAKE_MAX], welcome_bytes[LINK_SHAKE_MAX];
	size_t hello_len, welcome_len;
	uint64_t received; /* what it says that it has got */
};

static uint64_t evil_stream = 99;

/* a has the members b and EVIL. A handshake may take a quarter of timeout_s. */
static void open_world_for(const char *key, uint64_t timeout_s)
{
	struct world_options options = { .key = key,
					 .ping_ns = SECOND_NS / 20,
					 .timeout_ns = timeout_s * SECOND_NS };
	struct link_peer evil = { .id = EVIL,
				  .inc = world_incarnation(EVIL),
				  .addr = world_addr("127.0.0.1", 1) };

	talked = 0;
	node_open(&a, 1, &options);
	node_open(&b, 2, &options);
	node_add(&a, &b, 0);
	node_add(&b, &a, 0);
	assert_int_equal(links_add(a.links, &evil), 0);
}

static void open_world(const char *key)
{
	open_world_for(key, 4);
}

/* The true members do not notice any of it. */
static void talk(void)
{
	for (unsigned i = 0; i < 100; i++, talked++) {
		assert_int_equal(node_send(&a, 2, 0, talked, 0), 0);
		assert_int_equal(node_send(&b, 1, 0, talked, 0), 0);
	}
	links_push(a.links);
	links_push(b.links);
	await(a.next[2][0] == talked && b.next[1][0] == talked);
}

static void close_world(void)
{
	talk();
	assert_int_equal(node_info(&a, 2).connections, 1);
	assert_int_equal(a.silent[2] + b.silent[1], 0);
	node_close(&a);
	node_close(&b);
}

static int dial(void)
{
	struct sockaddr_in at = { .sin_family = AF_INET,
				  .sin_port = htons(a.self.addr.port) };
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	assert_true(fd >= 0);
	assert_int_equal(connect(fd, (struct sockaddr *)&at, sizeof(at)), 0);
	return fd;
}

static void put(int fd, const void *bytes, size_t len)
{
	assert_int_equal(send(fd, bytes, len, MSG_NOSIGNAL), len);
}

/* False: the connection has been closed. */
static bool get(int fd, void *bytes, size_t len)
{
	return recv(fd, bytes, len, MSG_WAITALL) == (ssize_t)len;
}

static bool get_shake(int fd, struct link_shake *shake, uint8_t *bytes,
		      size_t *len)
{
	uint8_t own[LINK_SHAKE_MAX];

	bytes = bytes ? bytes : own;
	if (!get(fd, bytes, LINK_SHAKE_HEAD))
		return false;
	*len = (size_t)link_shake_length(bytes);
	assert_true(*len >= LINK_SHAKE_HEAD && *len <= LINK_SHAKE_MAX);
	return get(fd, bytes + LINK_SHAKE_HEAD, *len - LINK_SHAKE_HEAD) &&
	       link_shake_decode(bytes, *len, shake) == 0;
}

static void await_close(int fd)
{
	uint8_t bytes[4096];
	struct pollfd polled = { fd, POLLIN, 0 };
	ssize_t n;

	do {
		assert_int_equal(poll(&polled, 1, 60000), 1);
		n = recv(fd, bytes, sizeof(bytes), 0);
	} while (n > 0);
	close(fd);
}

static void await_refusal(int fd, enum link_refusal refusal)
{
	struct link_shake shake;
	size_t len;

	assert_true(get_shake(fd, &shake, NULL, &len));
	assert_int_equal(shake.type, LS_REFUSE);
	assert_int_equal(shake.refusal, refusal);
	await_close(fd);
}

static void say_hello(struct evil *evil, bool keyed)
{
	evil->fd = dial();
	evil->hello = (struct link_shake){ .type = LS_HELLO,
					   .major = LINK_VERSION_MAJOR,
					   .keyed = keyed,
					   .from = world_incarnation(EVIL),
					   .to = a.self.inc,
					   .stream = evil_stream,
					   .table = WORLD_TABLE };
	evil->hello_len = link_shake_encode(&evil->hello, evil->hello_bytes);
	put(evil->fd, evil->hello_bytes, evil->hello_len);
}

static void hear_welcome(struct evil *evil)
{
	assert_true(get_shake(evil->fd, &evil->welcome, evil->welcome_bytes,
			      &evil->welcome_len));
	assert_int_equal(evil->welcome.type, LS_WELCOME);
}

/* With a key's mac if there is one. */
static void say_proof(struct evil *evil, const struct link_key *key)
{
	struct link_shake proof = { .type = LS_PROOF,
				    .major = LINK_VERSION_MAJOR,
				    .keyed = key != NULL,
				    .received = evil->received };
	uint8_t bytes[LINK_SHAKE_MAX];
	size_t len = link_shake_encode(&proof, bytes);
	struct link_talk talk = {
		evil->hello_bytes, evil->hello_len, evil->welcome_bytes,
		evil->welcome_len, bytes,	    len - LINK_MAC_BYTES
	};

	if (key)
		link_mac(key, &talk, bytes + len - LINK_MAC_BYTES);
	put(evil->fd, bytes, len);
}

/* A true handshake: evil is in. */
static void get_in(struct evil *evil)
{
	struct link_shake ready;
	size_t len;

	/* After nonsense it is held off for a second. */
	for (;;) {
		say_hello(evil, false);
		assert_true(get_shake(evil->fd, &evil->welcome,
				      evil->welcome_bytes, &evil->welcome_len));
		if (evil->welcome.type == LS_WELCOME)
			break;
		assert_int_equal(evil->welcome.refusal, LR_LATER);
		close(evil->fd);
		usleep(50000);
	}
	say_proof(evil, NULL);
	assert_true(get_shake(evil->fd, &ready, NULL, &len));
	assert_int_equal(ready.type, LS_READY);
}

static void put_frame(struct evil *evil, struct link_frame frame)
{
	static uint8_t bytes[LINK_FRAME_BYTES + LINK_MESSAGE_MAX];
	uint32_t words[6] = {
		EVIL, 1, frame.kind - LINK_DLM, 0, frame.number - 1, 0
	};

	memset(bytes, 0, sizeof(bytes));
	link_frame_encode(&frame, bytes);
	memcpy(bytes + LINK_FRAME_BYTES, words, sizeof(words));
	if (frame.len > LINK_MESSAGE_MAX)
		frame.len = 0;
	put(evil->fd, bytes, LINK_FRAME_BYTES + frame.len);
}

/* Before it is let in */

static void test_random_bytes(void **state)
{
	uint8_t bytes[2000];
	struct ug_prng prng;

	open_world(KEY);
	ug_prng_seed(&prng, 1);
	for (unsigned i = 0; i < 200; i++) {
		size_t len = ug_prng_below(&prng, sizeof(bytes));
		int fd = dial();

		for (size_t j = 0; j < len; j++)
			bytes[j] = (uint8_t)ug_prng_u64(&prng);
		/* Half of them begin well, to get further. */
		memcpy(bytes, "UGLK\1\0\0\0\1\0", i % 2 ? 10 : 0);
		bytes[11] &= i % 4 ? 1 : 0xff;
		send(fd, bytes, len, MSG_NOSIGNAL);
		shutdown(fd, SHUT_WR);
		await_close(fd);
	}
	close_world();
}

/* The oldest go at once when there are too many; */
static void test_many_strangers(void **state)
{
	unsigned before;
	int fds[FLOOD];

	open_world_for(KEY, 1000);
	talk();
	before = world_descriptors();
	for (unsigned i = 0; i < FLOOD; i++)
		fds[i] = dial();
	await(world_descriptors() <= before + FLOOD + LINK_STRANGERS_MAX);
	for (unsigned i = 0; i < FLOOD - LINK_STRANGERS_MAX; i++)
		await_close(fds[i]);
	/* A member still gets in between. */
	links_break(b.links);
	talk();
	for (unsigned i = FLOOD - LINK_STRANGERS_MAX; i < FLOOD; i++)
		close(fds[i]);
	await(world_descriptors() <= before);
	node_close(&a);
	node_close(&b);
}

/* the others when they have said nothing for too long. */
static void test_idle_strangers(void **state)
{
	int fds[10];

	open_world(KEY);
	for (unsigned i = 0; i < 10; i++)
		fds[i] = dial();
	talk();
	for (unsigned i = 0; i < 10; i++)
		await_close(fds[i]);
	close_world();
}

static void test_unproved(void **state)
{
	struct link_key *wrong;
	struct evil evil = { 0 };

	open_world(KEY);
	assert_int_equal(
		link_key_new((const uint8_t *)"quite another key", 17, &wrong),
		0);
	say_hello(&evil, true);
	hear_welcome(&evil);
	say_proof(&evil, wrong);
	await_refusal(evil.fd, LR_KEY_WRONG);
	/* Zeros, as of one without a key. */
	say_hello(&evil, true);
	hear_welcome(&evil);
	say_proof(&evil, NULL);
	await_refusal(evil.fd, LR_KEY_WRONG);
	say_hello(&evil, false);
	await_refusal(evil.fd, LR_KEY_NONE);
	/* The other side's own proof, sent back. */
	say_hello(&evil, true);
	hear_welcome(&evil);
	put(evil.fd, evil.welcome_bytes, evil.welcome_len);
	await_close(evil.fd);
	assert_int_equal(node_info(&a, EVIL).connections, 0);
	link_key_free(wrong);
	close_world();
}

/* Once heard, said again: of no use with another nonce. */
static void test_replay(void **state)
{
	struct link_key *key;
	struct evil first = { 0 }, second;
	struct link_shake shake;
	size_t len;

	open_world(KEY);
	assert_int_equal(link_key_new((const uint8_t *)KEY, strlen(KEY), &key),
			 0);
	say_hello(&first, true);
	hear_welcome(&first);
	say_proof(&first, key);
	assert_true(get_shake(first.fd, &shake, NULL, &len));
	assert_int_equal(shake.type, LS_READY);
	second = first;
	second.fd = dial();
	put(second.fd, second.hello_bytes, second.hello_len);
	assert_true(get_shake(second.fd, &shake, NULL, &len));
	/* What was true for the first WELCOME. */
	say_proof(&second, key);
	await_refusal(second.fd, LR_KEY_WRONG);
	/* The first connection was not touched by that. */
	assert_true(node_info(&a, EVIL).connected);
	assert_int_equal(node_info(&a, EVIL).connections, 1);
	close(first.fd);
	link_key_free(key);
	close_world();
}

/* Somebody listens in the place of a member: it gets nothing of the stream. */
static void test_false_acceptor(void **state)
{
	struct world_options options = { .key = KEY };
	struct link_peer false_one = { .id = 1, .inc = world_incarnation(1) };
	struct sockaddr_in at = { .sin_family = AF_INET };
	struct link_shake hello, welcome;
	uint8_t bytes[LINK_SHAKE_MAX];
	socklen_t len = sizeof(at);
	int listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), fd;
	size_t size;

	at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	assert_int_equal(bind(listener, (struct sockaddr *)&at, len), 0);
	assert_int_equal(listen(listener, 16), 0);
	getsockname(listener, (struct sockaddr *)&at, &len);
	false_one.addr = world_addr("127.0.0.1", ntohs(at.sin_port));
	node_open(&b, 2, &options);
	assert_int_equal(links_add(b.links, &false_one), 0);
	assert_int_equal(node_send(&b, 1, 0, 0, 0), 0);
	links_push(b.links);
	for (unsigned i = 0; i < 3; i++) {
		fd = accept(listener, NULL, NULL);
		assert_true(get_shake(fd, &hello, NULL, &size));
		assert_int_equal(hello.type, LS_HELLO);
		welcome = hello;
		welcome.type = LS_WELCOME;
		welcome.from = hello.to;
		welcome.to = hello.from;
		welcome.keyed = i != 0;
		memset(welcome.mac, i == 1 ? 0 : 0x5a, sizeof(welcome.mac));
		put(fd, bytes, link_shake_encode(&welcome, bytes));
		await_refusal(fd, i == 0 ? LR_KEY_NONE : LR_KEY_WRONG);
	}
	assert_int_equal(node_info(&b, 1).connections, 0);
	close(listener);
	node_close(&b);
}

static void test_other_major(void **state)
{
	struct evil evil = { 0 };
	struct link_shake hello;
	uint8_t bytes[LINK_SHAKE_MAX];
	size_t len;

	open_world(NULL);
	hello = (struct link_shake){
		.type = LS_HELLO, .major = 7, .minor = 3, .stream = 1
	};
	len = link_shake_encode(&hello, bytes);
	evil.fd = dial();
	put(evil.fd, bytes, len);
	await_refusal(evil.fd, LR_MAJOR);
	assert_true(world_logged("speaks version 7.3 of the link protocol, "
				 "this process 1.0") > 0);
	close_world();
}

static void test_wrong_order(void **state)
{
	struct evil evil = { 0 };

	open_world(NULL);
	evil.fd = dial();
	say_proof(&evil, NULL);
	await_close(evil.fd);
	say_hello(&evil, false);
	hear_welcome(&evil);
	put(evil.fd, evil.hello_bytes, evil.hello_len);
	await_close(evil.fd);
	/* Frames before READY is due are none. */
	say_hello(&evil, false);
	hear_welcome(&evil);
	put_frame(&evil, (struct link_frame){ 64, LINK_DLM, 1, 0 });
	await_close(evil.fd);
	assert_int_equal(a.next[EVIL][0], 0);
	close_world();
}

/* As a member */

/* One line and the end of the connection; then it may come again. */
static void expect_drop(struct link_frame frame, const char *line)
{
	unsigned before = world_logged(line),
		 lines = world_logged("connection dropped:");
	struct evil evil = { 0 };

	get_in(&evil);
	put_frame(&evil, frame);
	await_close(evil.fd);
	await(world_logged(line) == before + 1);
	assert_int_equal(world_logged("connection dropped:"), lines + 1);
	talk();
}

static void test_wrong_frames(void **state)
{
	evil_stream = 1;
	open_world(NULL);
	expect_drop((struct link_frame){ LINK_MESSAGE_MAX + 1, LINK_DLM, 1, 0 },
		    "connection dropped: a frame of kind 1, number 1, with "
		    "65537 bytes cannot be");
	expect_drop((struct link_frame){ 100, 9, 1, 0 },
		    "connection dropped: a frame of kind 9, number 1, with 100 "
		    "bytes cannot be");
	expect_drop((struct link_frame){ 0, LINK_PING, 1, 0 },
		    "connection dropped: a frame of kind 0, number 1, with 0 "
		    "bytes cannot be");
	expect_drop((struct link_frame){ 64, LINK_DLM, 2, 0 },
		    "connection dropped: message 2 came where 1 was expected");
	expect_drop((struct link_frame){ 64, LINK_DLM, 1, 5 },
		    "connection dropped: message 5 was acknowledged, 0 is the "
		    "last");
	/* That message itself was as it should be, and is not taken twice. */
	assert_int_equal(a.next[EVIL][0], 1);
	close_world();
}

/* A message that was taken before is skipped, whoever says it again. */
static void test_repeated_message(void **state)
{
	struct evil evil = { 0 };

	evil_stream = 2;
	open_world(NULL);
	get_in(&evil);
	put_frame(&evil, (struct link_frame){ 64, LINK_DLM, 1, 0 });
	put_frame(&evil, (struct link_frame){ 64, LINK_DLM, 1, 0 });
	put_frame(&evil, (struct link_frame){ 64, LINK_DLM, 2, 0 });
	put_frame(&evil, (struct link_frame){ 64, LINK_DLM, 1, 0 });
	put_frame(&evil, (struct link_frame){ 64, LINK_DLM, 3, 0 });
	await(a.next[EVIL][0] == 3);
	assert_int_equal(node_info(&a, EVIL).received, 3);
	assert_int_equal(node_info(&a, EVIL).connections, 1);
	close(evil.fd);
	close_world();
}

static void test_wrong_streams(void **state)
{
	struct evil evil = { .received = 5 };

	evil_stream = 3;
	open_world(NULL);
	/* It has got what was never sent. */
	say_hello(&evil, false);
	hear_welcome(&evil);
	say_proof(&evil, NULL);
	await_refusal(evil.fd, LR_STREAM);
	evil.received = 0;
	get_in(&evil);
	close(evil.fd);
	/* The same member, but not the same stream. */
	evil_stream = 4;
	say_hello(&evil, false);
	hear_welcome(&evil);
	say_proof(&evil, NULL);
	await_refusal(evil.fd, LR_STREAM);
	evil_stream = 3;
	get_in(&evil);
	close(evil.fd);
	close_world();
}

/* The beginning of a long message, and then nothing. */
static void test_unfinished_frame(void **state)
{
	struct link_frame frame = { LINK_MESSAGE_MAX, LINK_DLM, 1, 0 };
	uint8_t head[LINK_FRAME_BYTES];
	struct evil evil = { 0 };

	evil_stream = 5;
	open_world(NULL);
	get_in(&evil);
	link_frame_encode(&frame, head);
	put(evil.fd, head, sizeof(head));
	put(evil.fd, head, sizeof(head));
	talk();
	await_close(evil.fd);
	await(a.silent[EVIL] == 1);
	close_world();
}

/* A member that comes again and again with nonsense is as good as gone. */
static void test_endless_nonsense(void **state)
{
	struct evil evil = { 0 };

	evil_stream = 6;
	open_world(NULL);
	while (!a.silent[EVIL]) {
		get_in(&evil);
		put_frame(&evil, (struct link_frame){ 64, LINK_DLM, 7, 0 });
		await_close(evil.fd);
	}
	assert_int_equal(a.next[EVIL][0], 0);
	close_world();
}

/* Whole, but without meaning for its receiver: only that message is lost. */
static void test_refused_message(void **state)
{
	open_world(NULL);
	talk();
	a.refuse_at = talked + 50;
	for (unsigned i = 0; i < 100; i++, talked++)
		assert_int_equal(node_send(&b, 1, 0, talked, 0), 0);
	links_push(b.links);
	await(a.next[2][0] == talked);
	assert_int_equal(world_logged("connection dropped: message 151, 24 "
				      "bytes on channel 1, has no meaning"),
			 1);
	await(node_info(&a, 2).connections == 2);
	assert_int_equal(node_info(&a, 2).received, talked);
	node_close(&a);
	node_close(&b);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_random_bytes),
		cmocka_unit_test(test_many_strangers),
		cmocka_unit_test(test_idle_strangers),
		cmocka_unit_test(test_unproved),
		cmocka_unit_test(test_replay),
		cmocka_unit_test(test_false_acceptor),
		cmocka_unit_test(test_other_major),
		cmocka_unit_test(test_wrong_order),
		cmocka_unit_test(test_wrong_frames),
		cmocka_unit_test(test_repeated_message),
		cmocka_unit_test(test_wrong_streams),
		cmocka_unit_test(test_unfinished_frame),
		cmocka_unit_test(test_endless_nonsense),
		cmocka_unit_test(test_refused_message),
	};

	ug_log_set_level(UG_ERROR);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
