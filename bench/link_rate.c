/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * link_rate.c - what a link costs: round trips and messages per second between
 * two processes over loopback, beside a bare TCP echo in the same run.
 *
 *	tcp	  one thread at each end, recv() and send()
 *	links	  each answer is given, and each next question asked, by the
 *		  links' threads: as many wake-ups as tcp
 *	waiting	  the questions are asked by a thread that sleeps until the
 *		  answer has come: one wake-up more
 *	stream	  messages that nobody answers, BATCH of them per push
 *	single	  the same, each pushed by itself
 *
 * Usage: link_rate [round trips per round [rounds [bytes]]]
 * Prints each round, the medians and the best. Only ratios within one run mean
 *something.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/tcp.h>
#include <semaphore.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/log.h"
#include "cluster/limits.h"
#include "cluster/links.h"

#define ROUNDS_MAX 100
#define BATCH 32
#define STREAM_FACTOR 20 /* messages of a stream, per round trip */

#define ANSWER LINK_DLM	 /* send it back */
#define COUNT LINK_PLOCK /* count it; the last one is sent back */

static unsigned trips = 20000, rounds = 5;
static size_t bytes = 128;

struct side {
	struct links *links;
	uint32_t peer;
	bool asks;
	unsigned left; /* questions to be asked by the links' thread */
	_Atomic uint64_t counted;
	sem_t done, room;
};

static void die(const char *what, int err)
{
	fprintf(stderr, "link_rate: %s: %s\n", what, strerror(err));
	exit(1);
}

static double now_s(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (double)ts.tv_sec + (double)ts.tv_nsec / 1e9;
}

static void send_one(struct side *side, enum link_channel channel, bool last)
{
	uint8_t message[LINK_MESSAGE_MAX] = { last };
	int err = links_send(side->links, side->peer, channel, message, bytes);

	if (err)
		die("send", -err);
}

static int on_receive(void *arg, const struct link_peer *from,
		      enum link_channel channel, const uint8_t *message,
		      size_t len)
{
	struct side *side = arg;

	if (!side->asks) {
		side->counted++;
		if (channel == ANSWER || message[0])
			send_one(side, channel, message[0]);
	} else if (channel == ANSWER && side->left > 1) {
		side->left--;
		send_one(side, ANSWER, false);
	} else {
		sem_post(&side->done);
	}
	return 0;
}

static void on_pause(void *arg)
{
	struct side *side = arg;

	links_push(side->links);
}

static void on_silent(void *arg, const struct link_peer *peer)
{
	die("the other side is silent", ETIMEDOUT);
}

static void on_room(void *arg, uint32_t id)
{
	struct side *side = arg;

	sem_post(&side->room);
}

static void open_side(struct side *side, uint32_t id, struct link_peer *self)
{
	static const struct links_ops ops = {
		.receive = on_receive,
		.pause = on_pause,
		.silent = on_silent,
		.room = on_room,
	};
	struct links_config config = { .table = "bench:links",
				       .inc = { .pid = id },
				       .addr = { .family = 4,
						 .bytes = { 127, 0, 0, 1 } },
				       .ops = &ops,
				       .arg = side };
	int err;

	sem_init(&side->done, 0, 0);
	sem_init(&side->room, 0, 0);
	side->asks = id == 2;
	side->peer = 3 - id;
	self->id = id;
	self->inc = config.inc;
	err = links_open(&config, &side->links, &self->addr);
	if (err)
		die("links", -err);
}

/* The process that answers */

static void echo(int listener)
{
	static uint8_t message[LINK_MESSAGE_MAX];
	int fd = accept(listener, NULL, NULL), on = 1;
	ssize_t n;

	setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
	while ((n = recv(fd, message, bytes, MSG_WAITALL)) > 0)
		send(fd, message, (size_t)n, MSG_NOSIGNAL);
	close(fd);
}

static void answer(int listener, int from_parent, int to_parent)
{
	struct link_peer self = { 0 }, peer;
	static struct side side;

	open_side(&side, 1, &self);
	if (write(to_parent, &self, sizeof(self)) != sizeof(self) ||
	    read(from_parent, &peer, sizeof(peer)) != sizeof(peer))
		die("pipe", EIO);
	links_add(side.links, &peer);
	for (unsigned i = 0; i < rounds; i++)
		echo(listener);
	/* Until the other one has finished. */
	if (read(from_parent, &peer, 1) < 0)
		die("pipe", errno);
	links_close(side.links);
}

/* The process that asks; each returns seconds */

static double ask_tcp(const struct sockaddr_in *at)
{
	static uint8_t message[LINK_MESSAGE_MAX];
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), on = 1;
	double begin;

	if (connect(fd, (const struct sockaddr *)at, sizeof(*at)))
		die("connect", errno);
	setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
	begin = now_s();
	for (unsigned i = 0; i < trips; i++) {
		send(fd, message, bytes, MSG_NOSIGNAL);
		if (recv(fd, message, bytes, MSG_WAITALL) != (ssize_t)bytes)
			die("recv", EIO);
	}
	begin = now_s() - begin;
	close(fd);
	return begin;
}

static double ask_links(struct side *side)
{
	double begin = now_s();

	side->left = trips;
	send_one(side, ANSWER, false);
	links_push(side->links);
	sem_wait(&side->done);
	return now_s() - begin;
}

static double ask_waiting(struct side *side)
{
	double begin = now_s();

	for (unsigned i = 0; i < trips; i++) {
		side->left = 1;
		send_one(side, ANSWER, false);
		links_push(side->links);
		sem_wait(&side->done);
	}
	return now_s() - begin;
}

static double stream(struct side *side, unsigned batch)
{
	unsigned count = trips * STREAM_FACTOR;
	double begin = now_s();

	for (unsigned i = 1; i <= count; i++) {
		while (links_full(side->links, side->peer)) {
			links_push(side->links);
			sem_wait(&side->room);
		}
		send_one(side, COUNT, i == count);
		if (i % batch == 0 || i == count)
			links_push(side->links);
	}
	sem_wait(&side->done);
	return now_s() - begin;
}

static int compare(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

static double median(double *values)
{
	qsort(values, rounds, sizeof(*values), compare);
	return values[rounds / 2];
}

static void print_summary(const char *what, const double *m)
{
	printf("%s: tcp %.2f us, links %.2f us (%.2f of tcp), "
	       "waiting %.2f us (%.2f), stream %.0f/s, single %.0f/s\n",
	       what, m[0], m[1], m[1] / m[0], m[2], m[2] / m[0], m[3], m[4]);
}

static void measure(struct side *side, const struct sockaddr_in *echo_at)
{
	double us = 1e6 / trips, per_s = (double)trips * STREAM_FACTOR;
	double t[5][ROUNDS_MAX], m[5];

	printf("%u round trips, %u messages of a stream, %zu bytes each\n",
	       trips, trips * STREAM_FACTOR, bytes);
	for (unsigned i = 0; i < rounds; i++) {
		t[0][i] = ask_tcp(echo_at) * us;
		t[1][i] = ask_links(side) * us;
		t[2][i] = ask_waiting(side) * us;
		t[3][i] = per_s / stream(side, BATCH);
		t[4][i] = per_s / stream(side, 1);
		printf("tcp %.2f us, links %.2f us, waiting %.2f us, "
		       "stream %.0f/s, single %.0f/s\n",
		       t[0][i], t[1][i], t[2][i], t[3][i], t[4][i]);
	}
	for (unsigned i = 0; i < 5; i++)
		m[i] = median(t[i]);
	print_summary("medians", m);
	/* On a busy machine the quickest round says more. */
	for (unsigned i = 0; i < 5; i++)
		m[i] = t[i][i < 3 ? 0 : rounds - 1];
	print_summary("best", m);
}

static void await_link(struct side *side)
{
	struct link_info info = { 0 };

	while (!links_info(side->links, &info, 1) || !info.connected)
		usleep(1000);
}

static void ask(const struct sockaddr_in *echo_at, int from_child, int to_child)
{
	struct link_peer self = { 0 }, peer;
	static struct side side;

	open_side(&side, 2, &self);
	if (read(from_child, &peer, sizeof(peer)) != sizeof(peer) ||
	    write(to_child, &self, sizeof(self)) != sizeof(self))
		die("pipe", EIO);
	links_add(side.links, &peer);
	await_link(&side);
	measure(&side, echo_at);
	close(to_child);
	links_close(side.links);
}

static int listen_somewhere(struct sockaddr_in *at)
{
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	socklen_t len = sizeof(*at);

	at->sin_family = AF_INET;
	at->sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	if (fd < 0 || bind(fd, (struct sockaddr *)at, len) || listen(fd, 1) ||
	    getsockname(fd, (struct sockaddr *)at, &len))
		die("listen", errno);
	return fd;
}

int main(int argc, char **argv)
{
	int down[2], up[2], listener, status;
	struct sockaddr_in at = { 0 };
	pid_t child;

	if (argc > 1)
		trips = (unsigned)strtoul(argv[1], NULL, 10);
	if (argc > 2)
		rounds = (unsigned)strtoul(argv[2], NULL, 10);
	if (argc > 3)
		bytes = strtoul(argv[3], NULL, 10);
	if (argc > 4 || !trips || !rounds || rounds > ROUNDS_MAX || !bytes ||
	    bytes > LINK_MESSAGE_MAX) {
		fprintf(stderr, "usage: link_rate [round trips per round "
				"[rounds, at most 100 [bytes]]]\n");
		return 2;
	}
	ug_log_set_level(UG_WARN);
	setvbuf(stdout, NULL, _IOLBF, 0);
	listener = listen_somewhere(&at);
	if (pipe(down) || pipe(up))
		die("pipe", errno);
	child = fork();
	if (child < 0)
		die("fork", errno);
	if (!child) {
		close(down[1]);
		close(up[0]);
		answer(listener, down[0], up[1]);
		return 0;
	}
	close(down[0]);
	close(up[1]);
	ask(&at, up[0], down[1]);
	waitpid(child, &status, 0);
	return WIFEXITED(status) ? WEXITSTATUS(status) : 1;
}
