/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * linkproxy.c - see linkproxy.h. One thread; what it has read it writes at
 * once, in full, so it never holds more than one read of one direction.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <poll.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/compiler.h"
#include "base/prng.h"
#include "linkproxy.h"

#define PAIRS_MAX 16
#define CHUNK 16384
#define POLL_MS 20

struct pair {
	int fds[2];	/* -1: free */
	size_t left[2]; /* until the cut, read from each */
};

struct link_proxy {
	int listener;
	struct sockaddr_in target;
	struct ug_prng prng;
	struct pair pairs[PAIRS_MAX];
	unsigned cuts;
	_Atomic bool healed, stopping;
	pthread_t thread;
};

static void cut(struct link_proxy *proxy, struct pair *pair, bool reset)
{
	struct linger linger = { .l_onoff = 1 };

	for (unsigned i = 0; i < 2; i++) {
		if (reset)
			setsockopt(pair->fds[i], SOL_SOCKET, SO_LINGER, &linger,
				   sizeof(linger));
		close(pair->fds[i]);
		pair->fds[i] = -1;
	}
}

/* Often within the handshake, often within some frames, seldom late. */
static size_t some_bytes(struct ug_prng *prng)
{
	switch (ug_prng_below(prng, 4)) {
	case 0:
		return ug_prng_below(prng, 700);
	case 1:
		return ug_prng_below(prng, 5000);
	default:
		return ug_prng_below(prng, 2000000);
	}
}

static void take_connection(struct link_proxy *proxy)
{
	int near = accept(proxy->listener, NULL, NULL), far;
	struct pair *pair = proxy->pairs;

	if (near < 0)
		return;
	far = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	while (pair < proxy->pairs + PAIRS_MAX && pair->fds[0] >= 0)
		pair++;
	if (far < 0 || pair == proxy->pairs + PAIRS_MAX ||
	    connect(far, (struct sockaddr *)&proxy->target,
		    sizeof(proxy->target))) {
		close(near);
		if (far >= 0)
			close(far);
		return;
	}
	pair->fds[0] = near;
	pair->fds[1] = far;
	pair->left[0] = some_bytes(&proxy->prng);
	pair->left[1] = some_bytes(&proxy->prng);
}

/* Read from side i of the pair, write to the other one. */
static void pass(struct link_proxy *proxy, struct pair *pair, unsigned i)
{
	uint8_t bytes[CHUNK];
	size_t max = proxy->healed ? CHUNK : UG_MIN(pair->left[i], CHUNK);
	ssize_t n, done = 0, part;

	n = max ? recv(pair->fds[i], bytes, max, 0) : 0;
	if (n <= 0) {
		cut(proxy, pair,
		    n < 0 || (!max && ug_prng_below(&proxy->prng, 2)));
		proxy->cuts += !max;
		return;
	}
	while (done < n) {
		part = send(pair->fds[!i], bytes + done, (size_t)(n - done),
			    MSG_NOSIGNAL);
		if (part <= 0) {
			cut(proxy, pair, true);
			return;
		}
		done += part;
	}
	if (!proxy->healed)
		pair->left[i] -= (size_t)n;
}

static void *run(void *arg)
{
	struct link_proxy *proxy = arg;

	while (!proxy->stopping) {
		struct pollfd polled[1 + 2 * PAIRS_MAX] = { { proxy->listener,
							      POLLIN, 0 } };

		for (unsigned i = 0; i < 2 * PAIRS_MAX; i++)
			polled[1 + i] =
				(struct pollfd){ proxy->pairs[i / 2].fds[i % 2],
						 POLLIN, 0 };
		if (poll(polled, 1 + 2 * PAIRS_MAX, POLL_MS) <= 0)
			continue;
		for (unsigned i = 0; i < 2 * PAIRS_MAX; i++) {
			struct pair *pair = &proxy->pairs[i / 2];

			if (polled[1 + i].revents && pair->fds[0] >= 0)
				pass(proxy, pair, i % 2);
		}
		if (polled[0].revents)
			take_connection(proxy);
	}
	return NULL;
}

struct link_proxy *proxy_open(uint16_t target_port, uint64_t seed,
			      uint16_t *port)
{
	struct link_proxy *proxy = calloc(1, sizeof(*proxy));
	struct sockaddr_in at = { .sin_family = AF_INET };
	socklen_t len = sizeof(at);

	assert_non_null(proxy);
	at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	proxy->target = at;
	proxy->target.sin_port = htons(target_port);
	ug_prng_seed(&proxy->prng, seed);
	for (unsigned i = 0; i < PAIRS_MAX; i++)
		proxy->pairs[i].fds[0] = proxy->pairs[i].fds[1] = -1;
	proxy->listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	assert_true(proxy->listener >= 0);
	assert_int_equal(bind(proxy->listener, (struct sockaddr *)&at, len), 0);
	assert_int_equal(listen(proxy->listener, 16), 0);
	assert_int_equal(
		getsockname(proxy->listener, (struct sockaddr *)&at, &len), 0);
	*port = ntohs(at.sin_port);
	assert_int_equal(pthread_create(&proxy->thread, NULL, run, proxy), 0);
	return proxy;
}

void proxy_heal(struct link_proxy *proxy)
{
	proxy->healed = true;
}

unsigned proxy_close(struct link_proxy *proxy)
{
	unsigned cuts;

	proxy->stopping = true;
	pthread_join(proxy->thread, NULL);
	for (unsigned i = 0; i < PAIRS_MAX; i++)
		if (proxy->pairs[i].fds[0] >= 0)
			cut(proxy, &proxy->pairs[i], false);
	close(proxy->listener);
	cuts = proxy->cuts;
	free(proxy);
	return cuts;
}
