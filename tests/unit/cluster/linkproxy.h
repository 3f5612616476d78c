/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * linkproxy.h - a bad network between two members: passes bytes on, and cuts
 * each connection after some number of them, anywhere.
 */
#ifndef LINKPROXY_H
#define LINKPROXY_H

#include <stdint.h>

struct link_proxy;

/* On 127.0.0.1, before target_port there; its own port is *port. */
struct link_proxy *proxy_open(uint16_t target_port, uint64_t seed,
			      uint16_t *port);

/* Cut nothing more. */
void proxy_heal(struct link_proxy *proxy);

/* How often it has cut; all is ended. */
unsigned proxy_close(struct link_proxy *proxy);

#endif
