/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * linksock.c - see linksock.h.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "cluster/linksock.h"

#define BACKLOG 128

union sock_addr {
	struct sockaddr any;
	struct sockaddr_in v4;
	struct sockaddr_in6 v6;
};

static socklen_t to_sock_addr(const struct link_addr *addr, uint16_t port,
			      union sock_addr *out)
{
	memset(out, 0, sizeof(*out));
	switch (addr->family) {
	case 4:
		out->v4.sin_family = AF_INET;
		out->v4.sin_port = htons(port);
		memcpy(&out->v4.sin_addr, addr->bytes, 4);
		return sizeof(out->v4);
	case 6:
		out->v6.sin6_family = AF_INET6;
		out->v6.sin6_port = htons(port);
		memcpy(&out->v6.sin6_addr, addr->bytes, 16);
		return sizeof(out->v6);
	}
	return 0;
}

static void from_sock_addr(const union sock_addr *addr, struct link_addr *out)
{
	memset(out, 0, sizeof(*out));
	if (addr->any.sa_family == AF_INET) {
		out->family = 4;
		out->port = ntohs(addr->v4.sin_port);
		memcpy(out->bytes, &addr->v4.sin_addr, 4);
	} else if (addr->any.sa_family == AF_INET6) {
		out->family = 6;
		out->port = ntohs(addr->v6.sin6_port);
		memcpy(out->bytes, &addr->v6.sin6_addr, 16);
	}
}

static void set_option(int fd, int level, int option)
{
	int on = 1;

	/* Of options that every kernel has; without one it is slower. */
	setsockopt(fd, level, option, &on, sizeof(on));
}

static int new_socket(const struct link_addr *addr)
{
	int family = addr->family == 4	 ? AF_INET
		     : addr->family == 6 ? AF_INET6
					 : AF_UNSPEC;
	int fd;

	if (family == AF_UNSPEC)
		return -EADDRNOTAVAIL;
	fd = socket(family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	if (fd < 0)
		return -errno;
	if (family == AF_INET6)
		set_option(fd, IPPROTO_IPV6, IPV6_V6ONLY);
	set_option(fd, IPPROTO_TCP, TCP_NODELAY);
	return fd;
}

static int listen_at(const struct link_addr *addr, uint16_t port)
{
	int fd = new_socket(addr), err;
	union sock_addr at;

	if (fd < 0)
		return fd;
	/* An earlier life's connections may linger; a listener still refuses.
	 */
	set_option(fd, SOL_SOCKET, SO_REUSEADDR);
	if (bind(fd, &at.any, to_sock_addr(addr, port, &at)) == 0 &&
	    listen(fd, BACKLOG) == 0)
		return fd;
	err = -errno;
	close(fd);
	return err;
}

int link_sock_listen(const struct link_addr *addr, uint16_t first,
		     uint16_t last, uint16_t *port)
{
	int fd = -EADDRINUSE;

	for (unsigned p = first; p <= last && fd == -EADDRINUSE; p++) {
		fd = listen_at(addr, (uint16_t)p);
		if (fd >= 0)
			*port = (uint16_t)p;
	}
	return fd;
}

int link_sock_connect(const struct link_addr *from, const struct link_addr *to)
{
	int fd = new_socket(to), err;
	union sock_addr at;

	if (fd < 0)
		return fd;
	set_option(fd, SOL_IP, IP_BIND_ADDRESS_NO_PORT);
	if (bind(fd, &at.any, to_sock_addr(from, 0, &at)) == 0 &&
	    (connect(fd, &at.any, to_sock_addr(to, to->port, &at)) == 0 ||
	     errno == EINPROGRESS))
		return fd;
	err = -errno;
	close(fd);
	return err;
}

int link_sock_connected(int fd)
{
	socklen_t len = sizeof(int);
	int err = 0;

	if (getsockopt(fd, SOL_SOCKET, SO_ERROR, &err, &len))
		return -errno;
	return -err;
}

int link_sock_accept(int fd, struct link_addr *from)
{
	union sock_addr at = { 0 };
	socklen_t len = sizeof(at);
	int got = accept4(fd, &at.any, &len, SOCK_NONBLOCK | SOCK_CLOEXEC);

	if (got < 0)
		return -errno;
	set_option(got, IPPROTO_TCP, TCP_NODELAY);
	from_sock_addr(&at, from);
	return got;
}

void link_sock_abort(int fd)
{
	struct linger linger = { .l_onoff = 1 };

	setsockopt(fd, SOL_SOCKET, SO_LINGER, &linger, sizeof(linger));
}

bool link_addr_same_host(const struct link_addr *a, const struct link_addr *b)
{
	return a->family == b->family &&
	       memcmp(a->bytes, b->bytes, sizeof(a->bytes)) == 0;
}

const char *link_addr_text(const struct link_addr *addr, char *text)
{
	char host[INET6_ADDRSTRLEN] = "nowhere";

	if (addr->family == 4)
		inet_ntop(AF_INET, addr->bytes, host, sizeof(host));
	else if (addr->family == 6)
		inet_ntop(AF_INET6, addr->bytes, host, sizeof(host));
	snprintf(text, LINK_ADDR_TEXT, "%s port %u", host, addr->port);
	return text;
}
