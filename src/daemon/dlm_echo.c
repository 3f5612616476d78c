/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * dlm_echo.c - see dlm_echo.h.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/tcp.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "daemon/dlm_echo.h"
#include "daemon/dlm_load.h"

union address {
	struct sockaddr any;
	struct sockaddr_in v4;
	struct sockaddr_in6 v6;
};

static socklen_t parse(const char *text, uint16_t port, union address *out)
{
	memset(out, 0, sizeof(*out));
	if (inet_pton(AF_INET, text, &out->v4.sin_addr) == 1) {
		out->v4.sin_family = AF_INET;
		out->v4.sin_port = htons(port);
		return sizeof(out->v4);
	}
	if (inet_pton(AF_INET6, text, &out->v6.sin6_addr) == 1) {
		out->v6.sin6_family = AF_INET6;
		out->v6.sin6_port = htons(port);
		return sizeof(out->v6);
	}
	return 0;
}

static void set_nodelay(int fd)
{
	int one = 1;

	setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
}

/* All of it, or false. */
static bool receive(int fd, uint8_t *buf)
{
	return recv(fd, buf, ECHO_BYTES, MSG_WAITALL) == (ssize_t)ECHO_BYTES;
}

static bool transmit(int fd, const uint8_t *buf)
{
	return send(fd, buf, ECHO_BYTES, MSG_NOSIGNAL) == (ssize_t)ECHO_BYTES;
}

static void *serve_main(void *arg)
{
	int listener = *(int *)arg;
	uint8_t buf[ECHO_BYTES];

	free(arg);
	for (;;) {
		int fd = accept(listener, NULL, NULL);

		if (fd < 0)
			continue;
		set_nodelay(fd);
		while (receive(fd, buf) && transmit(fd, buf))
			;
		close(fd);
	}
	return NULL;
}

static int listen_at(const char *address, uint16_t *port)
{
	union address a;
	socklen_t len = parse(address, 0, &a);
	int fd, err;

	if (!len)
		return -EINVAL;
	fd = socket(a.any.sa_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (fd < 0)
		return -errno;
	if (!bind(fd, &a.any, len) && !listen(fd, 4) &&
	    !getsockname(fd, &a.any, &len)) {
		*port = ntohs(a.any.sa_family == AF_INET ? a.v4.sin_port
							 : a.v6.sin6_port);
		return fd;
	}
	err = -errno;
	close(fd);
	return err;
}

int echo_serve(const char *address, uint16_t *port)
{
	int *fd = malloc(sizeof(*fd)), err;
	pthread_t thread;

	if (!fd)
		return -ENOMEM;
	*fd = listen_at(address, port);
	err = *fd < 0 ? *fd : -pthread_create(&thread, NULL, serve_main, fd);
	if (err) {
		if (*fd >= 0)
			close(*fd);
		free(fd);
		return err;
	}
	pthread_detach(thread);
	return 0;
}

int echo_measure(const char *address, uint16_t port, uint32_t time_ms,
		 struct latency *out, uint64_t *ns)
{
	uint64_t begin, start, end;
	uint8_t buf[ECHO_BYTES] = { 0 };
	union address a;
	socklen_t len = parse(address, port, &a);
	int fd, err = 0;

	if (!len)
		return -EINVAL;
	fd = socket(a.any.sa_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (fd < 0)
		return -errno;
	memset(out, 0, sizeof(*out));
	if (connect(fd, &a.any, len)) {
		err = -errno;
		close(fd);
		return err;
	}
	set_nodelay(fd);
	begin = start = load_now_ns();
	do {
		if (!transmit(fd, buf) || !receive(fd, buf)) {
			err = -ECONNRESET;
			break;
		}
		end = load_now_ns();
		latency_add(out, end - start);
		start = end;
	} while (end - begin < time_ms * (uint64_t)1000000u);
	*ns = load_now_ns() - begin;
	close(fd);
	return err;
}
