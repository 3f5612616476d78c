/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * linksock.h - TCP sockets as links need them: non-blocking, closed on exec,
 * without delay.
 *
 * Descriptors are the caller's. Results below 0 are negative errno.
 */
#ifndef UG_CLUSTER_LINKSOCK_H
#define UG_CLUSTER_LINKSOCK_H

#include "cluster/groupmsg.h"

/*
 * Listen on the first free port from first to last at addr; port is written.
 * -EADDRINUSE: none is free; -EADDRNOTAVAIL, -EINVAL: no address of this host.
 */
int link_sock_listen(const struct link_addr *addr, uint16_t first,
		     uint16_t last, uint16_t *port);

/*
 * Begin to connect from this host's address, by which the other side knows it.
 * Done, or not, when the descriptor becomes writable.
 */
int link_sock_connect(const struct link_addr *from, const struct link_addr *to);

/* How that went: 0 or negative errno. */
int link_sock_connected(int fd);

/* -EAGAIN: nobody is waiting. */
int link_sock_accept(int fd, struct link_addr *from);

/* close() will not wait for anything, and drop what is under way. */
void link_sock_abort(int fd);

/* The same host, whatever the port. */
bool link_addr_same_host(const struct link_addr *a, const struct link_addr *b);

#define LINK_ADDR_TEXT 64

/* "10.0.0.1 port 21064", in text, which has LINK_ADDR_TEXT bytes. */
const char *link_addr_text(const struct link_addr *addr, char *text);

#endif
