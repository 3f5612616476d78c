/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * linkworld.h - several members in one process, with links over loopback.
 *
 * Each message says who sent it, from which thread and the how manieth it is;
 * the receiver checks that none is missing, double, early or changed.
 */
#ifndef LINKWORLD_H
#define LINKWORLD_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>

#include "cluster/links.h"

#define WORLD_TABLE "alpha:vol1"
#define WORLD_NODES 8
#define WORLD_THREADS 4
#define SECOND_NS 1000000000u

struct world_node {
	struct links *links;
	struct link_peer self;
	_Atomic uint64_t next[WORLD_NODES][WORLD_THREADS]; /* expected */
	_Atomic uint64_t wrong; /* messages that should not have come */
	_Atomic uint64_t pauses, rooms;
	_Atomic uint64_t silent[WORLD_NODES];
	_Atomic bool stopped;	    /* receive() waits */
	_Atomic bool answering;	    /* 0:0 messages are sent back as 0:1 */
	_Atomic uint64_t refuse_at; /* this counter has no meaning */
	_Atomic uint32_t remove_at; /* remove the sender in receive() then */
	_Atomic bool in_receive;
};

struct world_options {
	const char *table;
	const char *host; /* "127.0.0.1" */
	const char *key;
	uint64_t ping_ns, timeout_ns;
	size_t queue_max;
};

/* Its id is 1 .. WORLD_NODES - 1; a higher one connects to a lower one. */
void node_open(struct world_node *node, uint32_t id,
	       const struct world_options *options);
void node_close(struct world_node *node);

struct incarnation world_incarnation(uint32_t id);
struct link_addr world_addr(const char *host, uint16_t port);

/* node knows peer; port 0: where it listens. */
void node_add(struct world_node *node, const struct world_node *peer,
	      uint16_t port);
void node_remove(struct world_node *node, const struct world_node *peer);

/* links_send() of message counter of this thread; not pushed. */
int node_send(struct world_node *node, uint32_t to, unsigned thread,
	      uint64_t counter, size_t len);

struct link_info node_info(struct world_node *node, uint32_t id);

/* The condition holds within a minute, else the test fails. */
#define await(condition)                                                    \
	do {                                                                \
		unsigned tries = 0;                                         \
		while (!(condition))                                        \
			await_try(++tries, #condition, __FILE__, __LINE__); \
	} while (0)
void await_try(unsigned tries, const char *what, const char *file, int line);

/* Lines of the log with this text, ever. */
unsigned world_logged(const char *text);

unsigned world_descriptors(void);

#endif
