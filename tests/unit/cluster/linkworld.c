/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * linkworld.c - see linkworld.h.
 */
#include <arpa/inet.h>
#include <dirent.h>
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/log.h"
#include "cluster/limits.h"
#include "linkworld.h"

#define TRY_US 1000
#define TRIES 60000

struct message {
	uint32_t from, to, thread;
	uint32_t fill; /* each byte after this structure */
	uint64_t counter;
};

void await_try(unsigned tries, const char *what, const char *file, int line)
{
	if (tries == TRIES) {
		ug_log_dump(stderr);
		print_error("not within a minute: %s\n", what);
		_fail(file, line);
	}
	usleep(TRY_US);
}

struct incarnation world_incarnation(uint32_t id)
{
	struct incarnation inc = { .pid = 1000 + id, .start_ticks = id };

	memset(inc.boot_id, 0x5a, sizeof(inc.boot_id));
	return inc;
}

struct link_addr world_addr(const char *host, uint16_t port)
{
	struct link_addr addr = { .port = port };

	if (inet_pton(AF_INET, host, addr.bytes) == 1)
		addr.family = 4;
	else if (inet_pton(AF_INET6, host, addr.bytes) == 1)
		addr.family = 6;
	return addr;
}

/* Called on a thread of links: a wrong message is counted, not asserted. */
static int on_receive(void *arg, const struct link_peer *from,
		      enum link_channel channel, const uint8_t *bytes,
		      size_t len)
{
	struct world_node *node = arg;
	struct message msg;
	_Atomic uint64_t *next;

	node->in_receive = true;
	while (node->stopped)
		usleep(TRY_US);
	if (len < sizeof(msg)) {
		node->wrong++;
		return -EBADMSG;
	}
	memcpy(&msg, bytes, sizeof(msg));
	if (msg.from >= WORLD_NODES || msg.thread >= WORLD_THREADS ||
	    msg.from != from->id || msg.to != node->self.id ||
	    channel != LINK_DLM + msg.thread % 2) {
		node->wrong++;
		return 0;
	}
	for (size_t i = sizeof(msg); i < len; i++)
		if (bytes[i] != (uint8_t)msg.fill)
			node->wrong++;
	next = &node->next[msg.from][msg.thread];
	if (msg.counter != *next)
		node->wrong++;
	*next = msg.counter + 1;
	if (node->answering && msg.thread == 0)
		node_send(node, msg.from, 1, msg.counter, len);
	if (node->remove_at && msg.counter == node->remove_at)
		links_remove(node->links, &from->inc);
	node->in_receive = false;
	return node->refuse_at && msg.counter == node->refuse_at ? -EBADMSG : 0;
}

static void on_pause(void *arg)
{
	struct world_node *node = arg;

	node->pauses++;
	links_push(node->links);
}

static void on_silent(void *arg, const struct link_peer *peer)
{
	struct world_node *node = arg;

	if (peer->id < WORLD_NODES)
		node->silent[peer->id]++;
}

static void on_room(void *arg, uint32_t id)
{
	struct world_node *node = arg;

	node->rooms++;
}

void node_open(struct world_node *node, uint32_t id,
	       const struct world_options *options)
{
	static const struct links_ops ops = {
		.receive = on_receive,
		.pause = on_pause,
		.silent = on_silent,
		.room = on_room,
	};
	struct links_config config = {
		.table = options->table ? options->table : WORLD_TABLE,
		.inc = world_incarnation(id),
		.addr = world_addr(options->host ? options->host : "127.0.0.1",
				   0),
		.port_first = 22000,
		.port_last = 22999,
		.key = (const uint8_t *)options->key,
		.key_len = options->key ? strlen(options->key) : 0,
		.ping_ns = options->ping_ns,
		.timeout_ns = options->timeout_ns,
		.queue_max = options->queue_max,
		.ops = &ops,
		.arg = node,
	};

	memset(node, 0, sizeof(*node));
	node->self.id = id;
	node->self.inc = config.inc;
	assert_int_equal(links_open(&config, &node->links, &node->self.addr),
			 0);
}

void node_close(struct world_node *node)
{
	links_close(node->links);
	assert_int_equal(node->wrong, 0);
}

void node_add(struct world_node *node, const struct world_node *peer,
	      uint16_t port)
{
	struct link_peer at = peer->self;

	if (port)
		at.addr.port = port;
	assert_int_equal(links_add(node->links, &at), 0);
}

void node_remove(struct world_node *node, const struct world_node *peer)
{
	links_remove(node->links, &peer->self.inc);
}

int node_send(struct world_node *node, uint32_t to, unsigned thread,
	      uint64_t counter, size_t len)
{
	struct message msg = { node->self.id, to, thread, (uint8_t)counter,
			       counter };
	uint8_t bytes[LINK_MESSAGE_MAX];

	if (len < sizeof(msg))
		len = sizeof(msg);
	memcpy(bytes, &msg, sizeof(msg));
	memset(bytes + sizeof(msg), (uint8_t)counter, len - sizeof(msg));
	return links_send(node->links, to,
			  (enum link_channel)(LINK_DLM + thread % 2), bytes,
			  len);
}

struct link_info node_info(struct world_node *node, uint32_t id)
{
	struct link_info infos[WORLD_NODES];
	unsigned count = links_info(node->links, infos, WORLD_NODES);

	for (unsigned i = 0; i < count; i++)
		if (infos[i].peer.id == id)
			return infos[i];
	return (struct link_info){ 0 };
}

unsigned world_logged(const char *text)
{
	unsigned found = 0;
	size_t size;
	char *lines;
	FILE *out = open_memstream(&lines, &size);

	assert_non_null(out);
	ug_log_dump(out);
	fclose(out);
	for (const char *at = lines; (at = strstr(at, text)); at++)
		found++;
	free(lines);
	return found;
}

unsigned world_descriptors(void)
{
	DIR *dir = opendir("/proc/self/fd");
	unsigned count = 0;

	assert_non_null(dir);
	while (readdir(dir))
		count++;
	closedir(dir);
	return count;
}
