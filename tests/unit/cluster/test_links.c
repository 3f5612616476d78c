/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * test_links.c - links between members in one process, over loopback: who is
 * let in, what is said to those who are not, silence, back-pressure, removal.
 */
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/log.h"
#include "cluster/limits.h"
#include "linkworld.h"

#define KEY "a key that both members have"

static struct world_node a, b, c;
static unsigned descriptors, inherited;

static void meet(struct world_node *x, struct world_node *y)
{
	node_add(x, y, 0);
	node_add(y, x, 0);
}

static bool connected(struct world_node *x, struct world_node *y)
{
	return node_info(x, y->self.id).connected &&
	       node_info(y, x->self.id).connected;
}

static void send_some(struct world_node *from, const struct world_node *to,
		      uint64_t first, uint64_t count)
{
	for (uint64_t i = first; i < first + count; i++)
		assert_int_equal(
			node_send(from, to->self.id, 0, i, i * 37 % 3000), 0);
	links_push(from->links);
}

static void exchange(const struct world_options *options)
{
	node_open(&a, 1, options);
	node_open(&b, 2, options);
	meet(&a, &b);
	send_some(&a, &b, 0, 1000);
	send_some(&b, &a, 0, 1000);
	await(a.next[2][0] == 1000 && b.next[1][0] == 1000);
	assert_true(connected(&a, &b));
	assert_int_equal(node_info(&a, 2).connections, 1);
	assert_int_equal(node_info(&a, 2).sent, 1000);
	assert_int_equal(node_info(&a, 2).received, 1000);
	/* All is acknowledged, at the next ping at the latest. */
	await(!node_info(&a, 2).queued_bytes && !node_info(&b, 1).queued_bytes);
	node_close(&a);
	node_close(&b);
}

static void test_exchange(void **state)
{
	exchange(&(struct world_options){ .ping_ns = SECOND_NS / 20 });
}

static void test_exchange_with_key(void **state)
{
	exchange(&(struct world_options){ .ping_ns = SECOND_NS / 20,
					  .key = KEY });
}

static void test_exchange_ipv6(void **state)
{
	exchange(&(struct world_options){
		.ping_ns = SECOND_NS / 20, .host = "::1", .key = KEY });
}

/* Both try; nothing of b's reaches a, nor the other way round. */
static void expect_refusal(const char *a_says, const char *b_says)
{
	unsigned a_before = world_logged(a_says),
		 b_before = world_logged(b_says);

	send_some(&a, &b, 0, 10);
	send_some(&b, &a, 0, 10);
	await(world_logged(a_says) > a_before);
	await(world_logged(b_says) > b_before);
	await(a.silent[2] == 1 && b.silent[1] == 1);
	assert_int_equal(a.next[2][0] + b.next[1][0], 0);
	assert_int_equal(node_info(&a, 2).connections, 0);
	assert_int_equal(node_info(&b, 1).connections, 0);
	node_close(&a);
	node_close(&b);
}

#define HURRIED .ping_ns = SECOND_NS / 20, .timeout_ns = SECOND_NS / 2

static void test_wrong_key(void **state)
{
	struct world_options options = { HURRIED, .key = KEY };

	node_open(&a, 1, &options);
	options.key = "some other key of somebody";
	node_open(&b, 2, &options);
	meet(&a, &b);
	expect_refusal("link to 2: connection from 127.0.0.1",
		       "link to 1: 127.0.0.1");
	assert_true(world_logged("refused: its key is not the one") > 0);
	assert_true(world_logged("it refuses: its key is not the one") > 0);
}

static void test_peer_without_key(void **state)
{
	struct world_options options = { HURRIED, .key = KEY };

	node_open(&a, 1, &options);
	options.key = NULL;
	node_open(&b, 2, &options);
	meet(&a, &b);
	expect_refusal("refused: it has no key, one is configured here",
		       "it refuses: it has a key, none is configured here");
}

static void test_peer_with_needless_key(void **state)
{
	struct world_options options = { HURRIED };

	node_open(&a, 1, &options);
	options.key = KEY;
	node_open(&b, 2, &options);
	meet(&a, &b);
	expect_refusal("refused: it has a key, none is configured here",
		       "it refuses: it has no key, one is configured here");
}

static void test_other_table(void **state)
{
	struct world_options options = { HURRIED };

	node_open(&a, 1, &options);
	options.table = "alpha:vol2";
	node_open(&b, 2, &options);
	meet(&a, &b);
	expect_refusal("refused: it is of another lock table",
		       "it refuses: this process is of another lock table");
}

static void test_other_life(void **state)
{
	struct world_options options = { HURRIED };
	struct link_peer earlier;

	node_open(&a, 1, &options);
	node_open(&b, 2, &options);
	node_add(&a, &b, 0);
	earlier = a.self;
	earlier.inc.pid--;
	assert_int_equal(links_add(b.links, &earlier), 0);
	expect_refusal("refused: it looks for another process than this",
		       "it refuses: its process is not the one looked for");
}

/* The member is known, but not by the one that it connects to. */
static void test_stranger(void **state)
{
	struct world_options options = { HURRIED };

	node_open(&a, 1, &options);
	node_open(&b, 2, &options);
	node_open(&c, 3, &options);
	meet(&a, &b);
	node_add(&c, &a, 0);
	send_some(&c, &a, 0, 10);
	await(c.silent[1] == 1);
	assert_true(world_logged("it does not know this process") > 0);
	assert_int_equal(a.next[3][0], 0);
	/* It becomes one: what was queued goes out. */
	node_add(&a, &c, 0);
	await(a.next[3][0] == 10);
	node_close(&a);
	node_close(&b);
	node_close(&c);
}

/* A true member, with the true key, from an address that is not its own. */
static void test_strange_address(void **state)
{
	struct world_options options = { HURRIED, .key = KEY };
	struct link_peer elsewhere;

	node_open(&a, 1, &options);
	options.host = "127.0.0.2";
	node_open(&b, 2, &options);
	elsewhere = b.self;
	elsewhere.addr = world_addr("127.0.0.3", b.self.addr.port);
	assert_int_equal(links_add(a.links, &elsewhere), 0);
	node_add(&b, &a, 0);
	expect_refusal("from 127.0.0.2", "within the handshake");
	assert_true(world_logged("no member has this address") > 0);
}

static void test_ports(void **state)
{
	static const struct links_ops ops;
	struct links_config config = { .table = WORLD_TABLE, .ops = &ops };
	unsigned pid = (unsigned)getpid();
	char host[32];
	struct links *links[3];
	struct link_addr addr[3];

	/* An address of our own: others may run tests here, too. */
	snprintf(host, sizeof(host), "127.%u.%u.%u", 1 + pid / 62500 % 250,
		 1 + pid / 250 % 250, 1 + pid % 250);
	config.addr = world_addr(host, 0);
	node_open(&a, 1, &(struct world_options){ .host = host });
	config.port_first = a.self.addr.port;
	config.port_last = (uint16_t)(a.self.addr.port + 2);
	assert_int_equal(links_open(&config, &links[0], &addr[0]), 0);
	assert_int_equal(links_open(&config, &links[1], &addr[1]), 0);
	assert_int_equal(addr[0].port, a.self.addr.port + 1);
	assert_int_equal(addr[1].port, a.self.addr.port + 2);
	assert_int_equal(links_open(&config, &links[2], &addr[2]), -EADDRINUSE);
	links_close(links[0]);
	assert_int_equal(links_open(&config, &links[0], &addr[0]), 0);
	assert_int_equal(addr[0].port, a.self.addr.port + 1);
	links_close(links[0]);
	links_close(links[1]);
	node_close(&a);
}

static void test_wrong_config(void **state)
{
	static const struct links_ops ops;
	struct links_config good = { .table = WORLD_TABLE,
				     .addr = world_addr("127.0.0.1", 0),
				     .ops = &ops };
	struct links_config config = good;
	char table[LINK_TABLE_MAX + 2] = "";
	struct link_addr addr;
	struct links *links;

	config.addr = world_addr("192.0.2.1", 0);
	assert_int_equal(links_open(&config, &links, &addr), -EADDRNOTAVAIL);
	config.addr = (struct link_addr){ 0 };
	assert_int_equal(links_open(&config, &links, &addr), -EADDRNOTAVAIL);
	config = good;
	config.port_first = 2;
	config.port_last = 1;
	assert_int_equal(links_open(&config, &links, &addr), -EINVAL);
	config.port_first = 0;
	assert_int_equal(links_open(&config, &links, &addr), -EINVAL);
	config = good;
	config.key = (const uint8_t *)KEY;
	config.key_len = LINK_KEY_MIN - 1;
	assert_int_equal(links_open(&config, &links, &addr), -EINVAL);
	config.key_len = LINK_KEY_MAX + 1;
	assert_int_equal(links_open(&config, &links, &addr), -EINVAL);
	config = good;
	memset(table, 'x', sizeof(table) - 1);
	config.table = table;
	assert_int_equal(links_open(&config, &links, &addr), -ENAMETOOLONG);
	assert_int_equal(world_descriptors(), descriptors);
}

static unsigned inheritable(void)
{
	unsigned count = 0;

	for (int fd = 3; fd < 1000; fd++) {
		int flags = fcntl(fd, F_GETFD);

		count += flags >= 0 && !(flags & FD_CLOEXEC);
	}
	return count;
}

/* What is started from this process has none of it. */
static void test_closed_on_exec(void **state)
{
	node_open(&a, 1, &(struct world_options){ 0 });
	node_open(&b, 2, &(struct world_options){ 0 });
	meet(&a, &b);
	await(connected(&a, &b));
	assert_int_equal(inheritable(), inherited);
	node_close(&a);
	node_close(&b);
}

static void test_send_to_nobody(void **state)
{
	static uint8_t bytes[LINK_MESSAGE_MAX + 1];

	node_open(&a, 1, &(struct world_options){ 0 });
	assert_int_equal(links_add(a.links, &a.self), -EINVAL);
	assert_int_equal(node_send(&a, 2, 0, 0, 0), -ENOENT);
	assert_int_equal(
		links_send(a.links, 2, LINK_DLM, bytes, LINK_MESSAGE_MAX + 1),
		-EMSGSIZE);
	assert_false(links_full(a.links, 2));
	links_push(a.links);
	node_close(&a);
}

static void test_longest_and_shortest(void **state)
{
	node_open(&a, 1, &(struct world_options){ 0 });
	node_open(&b, 2, &(struct world_options){ 0 });
	meet(&a, &b);
	assert_int_equal(node_send(&a, 2, 0, 0, LINK_MESSAGE_MAX), 0);
	assert_int_equal(node_send(&a, 2, 1, 0, 0), 0);
	links_push(a.links);
	await(b.next[1][0] == 1 && b.next[1][1] == 1);
	/* Without any byte: it comes, to be refused by this receiver. */
	assert_int_equal(links_send(a.links, 2, LINK_DLM, NULL, 0), 0);
	links_push(a.links);
	await(b.wrong == 1);
	b.wrong = 0;
	node_close(&a);
	node_close(&b);
}

/* The receiver does not take any more: the sender is told, then again. */
static void test_back_pressure(void **state)
{
	struct world_options options = { .ping_ns = SECOND_NS / 50,
					 .timeout_ns = 60ull * SECOND_NS };
	uint64_t sent = 0;

	node_open(&a, 1, &options);
	node_open(&b, 2, &options);
	meet(&a, &b);
	b.stopped = true;
	while (!links_full(a.links, 2)) {
		send_some(&a, &b, sent, 100);
		sent += 100;
	}
	assert_true(node_info(&a, 2).queued_bytes > LINK_QUEUE_BYTES);
	assert_true(node_info(&a, 2).queued_bytes < LINK_QUEUE_BYTES * 2);
	assert_int_equal(a.rooms, 0);
	/* Pings come up meanwhile, and must wait for the end of a frame. */
	usleep(200000);
	b.stopped = false;
	await(a.rooms == 1);
	assert_false(links_full(a.links, 2));
	await(b.next[1][0] == sent);
	assert_int_equal(a.rooms, 1);
	assert_int_equal(node_info(&a, 2).connections, 1);
	node_close(&a);
	node_close(&b);
}

/* Who takes nothing at all cannot make us keep more than the bound. */
static void test_given_up(void **state)
{
	struct world_options options = { .timeout_ns = 60ull * SECOND_NS,
					 .queue_max = 8u << 20 };
	uint64_t sent = 0;

	node_open(&a, 1, &options);
	node_open(&b, 2, &options);
	node_open(&c, 3, &options);
	meet(&a, &b);
	meet(&a, &c);
	b.stopped = true;
	while (!node_send(&a, 2, 0, sent, 5000)) {
		sent++;
		links_push(a.links);
		assert_true(sent < 10000);
	}
	await(a.silent[2] == 1);
	await(!node_info(&a, 2).queued_bytes);
	assert_int_equal(node_send(&a, 2, 0, sent, 0), -ENOENT);
	b.stopped = false;
	send_some(&a, &c, 0, 100);
	await(c.next[1][0] == 100);
	/* It is never let in again: a message is lost between. */
	await(world_logged("do not fit together") > 0);
	assert_false(node_info(&a, 2).connected);
	assert_true(b.next[1][0] < sent);
	assert_int_equal(a.silent[2], 1);
	node_close(&a);
	node_close(&b);
	node_close(&c);
}

/* Nobody listens there. */
static void test_never_reached(void **state)
{
	struct world_options options = { HURRIED };
	struct link_peer nobody = { .id = 1,
				    .inc = world_incarnation(1),
				    .addr = world_addr("127.0.0.1", 1) };

	node_open(&b, 2, &options);
	assert_int_equal(links_add(b.links, &nobody), 0);
	await(b.silent[1] == 1);
	assert_true(node_info(&b, 1).silent_ns >= options.timeout_ns);
	assert_true(world_logged("Connection refused") > 0);
	node_close(&b);
}

/* One end was removed and added again: no stream goes on in its middle. */
static void test_half_a_stream(void **state)
{
	struct world_options options = { HURRIED };

	node_open(&a, 1, &options);
	node_open(&b, 2, &options);
	meet(&a, &b);
	send_some(&a, &b, 0, 10);
	send_some(&b, &a, 0, 10);
	await(b.next[1][0] == 10 && a.next[2][0] == 10);
	node_add(&a, &b, 0);
	send_some(&b, &a, 10, 10);
	await(b.silent[1] == 1 && a.silent[2] == 1);
	assert_int_equal(a.next[2][0], 10);
	/* Both ends anew: a new stream. */
	node_remove(&b, &a);
	node_remove(&a, &b);
	a.next[2][0] = 0;
	meet(&a, &b);
	send_some(&b, &a, 0, 10);
	await(a.next[2][0] == 10);
	node_close(&a);
	node_close(&b);
}

/* Another process in the place of the one that has gone. */
static void test_next_life(void **state)
{
	struct world_options options = { .ping_ns = SECOND_NS / 20 };

	node_open(&a, 1, &options);
	node_open(&b, 2, &options);
	meet(&a, &b);
	send_some(&b, &a, 0, 5);
	await(a.next[2][0] == 5);
	node_close(&b);
	send_some(&a, &b, 0, 100); /* never comes */
	node_open(&b, 3, &options);
	b.self.id = 2;
	a.next[2][0] = 0;
	meet(&a, &b);
	send_some(&a, &b, 0, 7);
	send_some(&b, &a, 0, 7);
	await(a.next[2][0] == 7 && b.next[1][0] == 7);
	assert_int_equal(links_info(a.links, &(struct link_info){ 0 }, 1), 1);
	node_close(&a);
	node_close(&b);
}

/* Member 2, which answers, in a process of its own. */
static pid_t start_process(int *from, int *to)
{
	int up[2], down[2];
	pid_t pid;

	assert_int_equal(pipe(up), 0);
	assert_int_equal(pipe(down), 0);
	pid = fork();
	assert_true(pid >= 0);
	*from = up[0];
	*to = down[1];
	if (pid) {
		close(up[1]);
		close(down[0]);
		return pid;
	}
	close(up[0]);
	close(down[1]);
	node_open(&b, 2, &(struct world_options){ HURRIED });
	b.answering = true;
	if (write(up[1], &b.self, sizeof(b.self)) != sizeof(b.self) ||
	    read(down[0], &a.self, sizeof(a.self)) != sizeof(a.self))
		_exit(1);
	node_add(&b, &a, 0);
	/* Until the other end is closed. */
	while (read(down[0], &a.self, 1) > 0)
		;
	links_close(b.links);
	_exit(b.wrong || b.silent[1]);
}

static void freeze(pid_t pid)
{
	int status;

	kill(pid, SIGSTOP);
	assert_int_equal(waitpid(pid, &status, WUNTRACED), pid);
	assert_true(WIFSTOPPED(status));
}

/*
 * A stopped process is silent though its kernel takes all that is sent. When it
 * goes on it has lost nothing, and takes nobody else for silent.
 */
static void test_frozen_process(void **state)
{
	int from, to, status;
	pid_t pid = start_process(&from, &to);

	node_open(&a, 1, &(struct world_options){ HURRIED });
	assert_int_equal(read(from, &b.self, sizeof(b.self)), sizeof(b.self));
	assert_int_equal(write(to, &a.self, sizeof(a.self)), sizeof(a.self));
	node_add(&a, &b, 0);
	send_some(&a, &b, 0, 100);
	await(a.next[2][1] == 100);
	freeze(pid);
	send_some(&a, &b, 100, 100);
	await(a.silent[2] == 1);
	assert_int_equal(a.next[2][1], 100);
	/* For twice the time after which a stays silent itself. */
	await(node_info(&a, 2).silent_ns > SECOND_NS);
	assert_int_equal(a.silent[2], 1);
	kill(pid, SIGCONT);
	await(a.next[2][1] == 200);
	assert_true(node_info(&a, 2).silent_ns < SECOND_NS / 2);
	freeze(pid);
	await(a.silent[2] == 2);
	kill(pid, SIGCONT);
	close(to);
	close(from);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFEXITED(status) && !WEXITSTATUS(status));
	node_close(&a);
}

static void test_removed_in_callback(void **state)
{
	node_open(&a, 1, &(struct world_options){ 0 });
	node_open(&b, 2, &(struct world_options){ 0 });
	meet(&a, &b);
	a.remove_at = 50;
	send_some(&b, &a, 0, 1000);
	await(!node_info(&a, 2).peer.id);
	await(!node_info(&b, 1).connected);
	assert_int_equal(a.next[2][0], 51);
	node_close(&a);
	node_close(&b);
}

static _Atomic bool remove_returned;

static void *remove_b(void *arg)
{
	node_remove(&a, &b);
	remove_returned = true;
	return NULL;
}

/* links_remove() waits for the callback that is running. */
static void test_removed_beside_callback(void **state)
{
	pthread_t thread;

	node_open(&a, 1, &(struct world_options){ 0 });
	node_open(&b, 2, &(struct world_options){ 0 });
	meet(&a, &b);
	a.stopped = true;
	send_some(&b, &a, 0, 10);
	await(a.in_receive);
	assert_int_equal(pthread_create(&thread, NULL, remove_b, NULL), 0);
	await(!node_info(&a, 2).peer.id);
	/* It has been taken out, and would return at once. */
	usleep(20000);
	assert_false(remove_returned);
	a.stopped = false;
	pthread_join(thread, NULL);
	assert_false(a.in_receive);
	assert_int_equal(a.next[2][0], 1);
	node_close(&a);
	node_close(&b);
}

static void *flood(void *arg)
{
	uint64_t i = 0;

	while (!links_full(b.links, 1) && i < 1000000 &&
	       !node_send(&b, 1, 0, i++, 0))
		links_push(b.links);
	return NULL;
}

/* After links_remove() nothing more of it comes. */
static void test_removed_under_load(void **state)
{
	pthread_t thread;
	uint64_t seen;

	for (unsigned round = 0; round < 20; round++) {
		node_open(&a, 1, &(struct world_options){ 0 });
		node_open(&b, 2, &(struct world_options){ 0 });
		meet(&a, &b);
		assert_int_equal(pthread_create(&thread, NULL, flood, NULL), 0);
		await(a.next[2][0] > 100);
		node_remove(&a, &b);
		assert_false(a.in_receive);
		seen = a.next[2][0];
		node_remove(&b, &a);
		pthread_join(thread, NULL);
		assert_int_equal(a.next[2][0], seen);
		node_close(&a);
		node_close(&b);
	}
}

static void test_closed_at_any_time(void **state)
{
	struct world_options options = { .key = KEY };

	for (unsigned round = 0; round < 50; round++) {
		node_open(&a, 1, &options);
		node_open(&b, 2, &options);
		meet(&a, &b);
		send_some(&a, &b, 0, 200);
		send_some(&b, &a, 0, 200);
		if (round % 3 == 1)
			links_break(a.links);
		usleep(round * 100);
		node_close(round % 2 ? &a : &b);
		node_close(round % 2 ? &b : &a);
	}
	assert_int_equal(world_descriptors(), descriptors);
}

static int remember_descriptors(void **state)
{
	descriptors = world_descriptors();
	inherited = inheritable();
	return 0;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_exchange),
		cmocka_unit_test(test_exchange_with_key),
		cmocka_unit_test(test_exchange_ipv6),
		cmocka_unit_test(test_wrong_key),
		cmocka_unit_test(test_peer_without_key),
		cmocka_unit_test(test_peer_with_needless_key),
		cmocka_unit_test(test_other_table),
		cmocka_unit_test(test_other_life),
		cmocka_unit_test(test_stranger),
		cmocka_unit_test(test_strange_address),
		cmocka_unit_test(test_ports),
		cmocka_unit_test(test_wrong_config),
		cmocka_unit_test(test_closed_on_exec),
		cmocka_unit_test(test_send_to_nobody),
		cmocka_unit_test(test_longest_and_shortest),
		cmocka_unit_test(test_back_pressure),
		cmocka_unit_test(test_given_up),
		cmocka_unit_test(test_never_reached),
		cmocka_unit_test(test_half_a_stream),
		cmocka_unit_test(test_next_life),
		cmocka_unit_test(test_frozen_process),
		cmocka_unit_test(test_removed_in_callback),
		cmocka_unit_test(test_removed_beside_callback),
		cmocka_unit_test(test_removed_under_load),
		cmocka_unit_test(test_closed_at_any_time),
	};

	ug_log_set_level(UG_ERROR);
	return cmocka_run_group_tests(tests, remember_descriptors, NULL);
}
