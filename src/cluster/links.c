/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * links.c - the set of links: adding, removing, sending.
 *
 *	links_send()   copy into the link's queue; the link is pending
 *	links_push()   write every pending link, unless somebody writes it,
 *		       who then takes what was added meanwhile along
 *	the thread     writes what sockets did not take at once
 *
 * A link is held by the set until it is removed, then by the thread until that
 * has closed its connection, and by whoever is using it.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "base/assert.h"
#include "cluster/links_impl.h"

/* Links */

void link_hold(struct link *link)
{
	atomic_fetch_add_explicit(&link->refs, 1, memory_order_relaxed);
}

void link_let_go(struct link *link)
{
	if (atomic_fetch_sub_explicit(&link->refs, 1, memory_order_acq_rel) !=
	    1)
		return;
	link_queue_free(&link->queue);
	pthread_cond_destroy(&link->idle);
	pthread_mutex_destroy(&link->lock);
	free(link);
}

/* Both sides must come to the same result, so it is of what both know. */
static bool connects(const struct incarnation *self,
		     const struct incarnation *peer)
{
	int order = memcmp(self->boot_id, peer->boot_id, sizeof(self->boot_id));

	if (order)
		return order > 0;
	if (self->start_ticks != peer->start_ticks)
		return self->start_ticks > peer->start_ticks;
	return self->pid > peer->pid;
}

static struct link *new_link(struct links *links, const struct link_peer *peer)
{
	struct link *link = calloc(1, sizeof(*link));

	if (!link)
		return NULL;
	link->links = links;
	link->peer = *peer;
	link->connects = connects(&links->config.inc, &peer->inc);
	while (!link->stream)
		link_random(&link->stream, sizeof(link->stream));
	snprintf(link->who, sizeof(link->who), "%s: link to %u", links->table,
		 peer->id);
	snprintf(link->why, sizeof(link->why), "it has not come");
	atomic_init(&link->refs, 1);
	atomic_init(&link->heard_ns, link_clock_ns());
	pthread_mutex_init(&link->lock, NULL);
	pthread_cond_init(&link->idle, NULL);
	link_queue_init(&link->queue);
	return link;
}

/* The set; all with links->lock */

static struct link *find_id(const struct links *links, uint32_t id)
{
	for (unsigned i = 0; i < links->count; i++)
		if (links->ids[i] == id)
			return links->list[i];
	return NULL;
}

static struct link *find_inc(const struct links *links,
			     const struct incarnation *inc)
{
	for (unsigned i = 0; i < links->count; i++)
		if (incarnation_equal(&links->list[i]->peer.inc, inc))
			return links->list[i];
	return NULL;
}

static void take_out(struct links *links, struct link *link)
{
	unsigned i = 0;

	while (links->list[i] != link)
		i++;
	links->count--;
	links->list[i] = links->list[links->count];
	links->ids[i] = links->ids[links->count];
	atomic_store(&link->removed, true);
	link->gone_next = links->gone;
	links->gone = link;
}

/* Until no callback for it is running; the caller holds it. */
static void await_callback(struct links *links, struct link *link)
{
	if (pthread_equal(pthread_self(), links->thread))
		return;
	links->waiting++;
	while (links->calling == link)
		pthread_cond_wait(&links->called, &links->lock);
	links->waiting--;
}

static void remove_link(struct links *links, struct link *link)
{
	link_hold(link);
	take_out(links, link);
	await_callback(links, link);
	link_let_go(link);
}

struct link *links_find(struct links *links, const struct incarnation *inc,
			const struct link_addr *host)
{
	struct link *link;

	pthread_mutex_lock(&links->lock);
	link = find_inc(links, inc);
	if (link && !link_addr_same_host(&link->peer.addr, host))
		link = NULL;
	if (link)
		link_hold(link);
	pthread_mutex_unlock(&links->lock);
	return link;
}

bool links_know_host(struct links *links, const struct link_addr *host)
{
	bool known = false;

	pthread_mutex_lock(&links->lock);
	for (unsigned i = 0; i < links->count && !known; i++)
		known = link_addr_same_host(&links->list[i]->peer.addr, host);
	pthread_mutex_unlock(&links->lock);
	return known;
}

int links_add(struct links *links, const struct link_peer *peer)
{
	struct link *link, *old;
	int err = 0;

	if (incarnation_equal(&peer->inc, &links->config.inc))
		return -EINVAL;
	link = new_link(links, peer);
	if (!link)
		return -ENOMEM;
	pthread_mutex_lock(&links->lock);
	/* Waiting for a callback gives up the lock: look again. */
	while ((old = find_id(links, peer->id)) ||
	       (old = find_inc(links, &peer->inc)))
		remove_link(links, old);
	if (links->count < LINK_PEERS_MAX) {
		links->list[links->count] = link;
		links->ids[links->count++] = peer->id;
	} else {
		err = -ENOSPC;
	}
	pthread_mutex_unlock(&links->lock);
	if (err)
		link_let_go(link);
	links_ring(links);
	return err;
}

void links_remove(struct links *links, const struct incarnation *inc)
{
	struct link *link;

	pthread_mutex_lock(&links->lock);
	link = find_inc(links, inc);
	if (link)
		remove_link(links, link);
	pthread_mutex_unlock(&links->lock);
	if (link)
		links_ring(links);
}

/* Sending */

static void mark_pending(struct links *links, struct link *link)
{
	if (link->pending)
		return;
	link->pending = true;
	link->pending_next = NULL;
	*links->pending_tail = link;
	links->pending_tail = &link->pending_next;
	link_hold(link);
}

/* Too much is waiting: the stream has ended, as its next message is lost. */
static void give_up(struct link *link)
{
	link->given_up = true;
	link->broken = true;
	links_ring(link->links);
}

static int queue_message(struct link *link, enum link_channel channel,
			 const uint8_t *bytes, size_t len)
{
	uint64_t received = atomic_load(&link->received);
	int err;

	if (link->given_up)
		return -ENOENT;
	err = link_queue_add(&link->queue, (uint8_t)channel, (uint32_t)received,
			     bytes, len);
	if (err)
		return err;
	link->said = received;
	link->sent++;
	link->sent_bytes += len;
	if (link->queue.bytes > LINK_QUEUE_BYTES)
		link->full = true;
	if (link->queue.bytes > link->links->config.queue_max)
		give_up(link);
	return 0;
}

int links_send(struct links *links, uint32_t id, enum link_channel channel,
	       const uint8_t *bytes, size_t len)
{
	struct link *link;
	int err = -ENOENT;

	ug_assert(channel >= LINK_DLM && channel <= LINK_CHANNEL_LAST);
	if (len > LINK_MESSAGE_MAX)
		return -EMSGSIZE;
	pthread_mutex_lock(&links->lock);
	link = find_id(links, id);
	if (link) {
		pthread_mutex_lock(&link->lock);
		err = queue_message(link, channel, bytes, len);
		pthread_mutex_unlock(&link->lock);
		if (!err)
			mark_pending(links, link);
	}
	pthread_mutex_unlock(&links->lock);
	return err;
}

static struct link *next_pending(struct links *links)
{
	struct link *link;

	pthread_mutex_lock(&links->lock);
	link = links->pending;
	if (link) {
		link->pending = false;
		links->pending = link->pending_next;
		if (!links->pending)
			links->pending_tail = &links->pending;
	}
	pthread_mutex_unlock(&links->lock);
	return link;
}

void links_push(struct links *links)
{
	struct link *link;

	while ((link = next_pending(links))) {
		link_write(link);
		link_let_go(link);
	}
}

bool links_full(const struct links *links, uint32_t id)
{
	struct links *set = (struct links *)links; /* for its lock */
	struct link *link;
	bool full = false;

	pthread_mutex_lock(&set->lock);
	link = find_id(links, id);
	if (link) {
		pthread_mutex_lock(&link->lock);
		full = link->full;
		pthread_mutex_unlock(&link->lock);
	}
	pthread_mutex_unlock(&set->lock);
	return full;
}

/* Looking and breaking */

static void describe(struct link *link, struct link_info *out)
{
	uint64_t now = link_clock_ns(), heard = atomic_load(&link->heard_ns);

	pthread_mutex_lock(&link->lock);
	*out = (struct link_info){
		.peer = link->peer,
		.connected = link->conn != NULL,
		.minor = (uint16_t)atomic_load(&link->minor),
		.silent_ns = now > heard ? now - heard : 0,
		.sent = link->sent,
		.received = atomic_load(&link->received),
		.sent_bytes = link->sent_bytes,
		.received_bytes = atomic_load(&link->received_bytes),
		.connections = atomic_load(&link->connections),
		.queued_bytes = link->queue.bytes,
	};
	pthread_mutex_unlock(&link->lock);
}

unsigned links_info(struct links *links, struct link_info *out, unsigned max)
{
	unsigned count;

	pthread_mutex_lock(&links->lock);
	count = UG_MIN(max, links->count);
	for (unsigned i = 0; i < count; i++)
		describe(links->list[i], &out[i]);
	pthread_mutex_unlock(&links->lock);
	return count;
}

void links_break(struct links *links)
{
	pthread_mutex_lock(&links->lock);
	links->breaking = true;
	pthread_mutex_unlock(&links->lock);
	links_ring(links);
}

/* Opening and closing */

static int check_config(const struct links_config *config)
{
	if (strlen(config->table) > LINK_TABLE_MAX)
		return -ENAMETOOLONG;
	/* A port of the kernel's choice could not be told to others. */
	if (config->port_first > config->port_last ||
	    (!config->port_first && config->port_last))
		return -EINVAL;
	return config->addr.family ? 0 : -EADDRNOTAVAIL;
}

static void set_defaults(struct links *links, const struct links_config *config)
{
	struct links_config *c = &links->config;

	*c = *config;
	snprintf(links->table, sizeof(links->table), "%s", config->table);
	if (!c->port_first && !c->port_last) {
		c->port_first = LINK_PORT_FIRST;
		c->port_last = LINK_PORT_LAST;
	}
	if (!c->ping_ns)
		c->ping_ns = LINK_PING_NS;
	if (!c->timeout_ns)
		c->timeout_ns = MEMBER_TIMEOUT_NS;
	if (!c->queue_max)
		c->queue_max = LINK_QUEUE_MAX_BYTES;
	c->table = NULL;
	c->key = NULL;
	links->patience_ns = c->timeout_ns / 4;
	links->pending_tail = &links->pending;
	links->addr = c->addr;
	links->epoll = links->bell = links->listener = -1;
	pthread_mutex_init(&links->lock, NULL);
	pthread_cond_init(&links->called, NULL);
}

static void close_fd(int fd)
{
	if (fd >= 0)
		close(fd);
}

static void free_links(struct links *links)
{
	close_fd(links->listener);
	close_fd(links->bell);
	close_fd(links->epoll);
	link_key_free(links->key);
	pthread_cond_destroy(&links->called);
	pthread_mutex_destroy(&links->lock);
	free(links);
}

static int open_descriptors(struct links *links)
{
	int err;

	links->epoll = epoll_create1(EPOLL_CLOEXEC);
	if (links->epoll < 0)
		return -errno;
	links->bell = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (links->bell < 0)
		return -errno;
	links->listener =
		link_sock_listen(&links->addr, links->config.port_first,
				 links->config.port_last, &links->addr.port);
	if (links->listener < 0)
		return links->listener;
	err = links_watch(links, links->bell, EPOLLIN, &links->bell);
	if (!err)
		err = links_watch(links, links->listener, EPOLLIN,
				  &links->listener);
	return err;
}

int links_open(const struct links_config *config, struct links **out,
	       struct link_addr *addr)
{
	int err = check_config(config);
	struct links *links;

	if (!err)
		err = link_auth_init();
	if (err)
		return err;
	links = calloc(1, sizeof(*links));
	if (!links)
		return -ENOMEM;
	set_defaults(links, config);
	if (config->key)
		err = link_key_new(config->key, config->key_len, &links->key);
	if (!err)
		err = open_descriptors(links);
	if (!err)
		err = -pthread_create(&links->thread, NULL, links_run, links);
	if (err) {
		free_links(links);
		return err;
	}
	*addr = links->addr;
	*out = links;
	return 0;
}

static void drop_pending(struct links *links)
{
	struct link *link;

	while ((link = next_pending(links)))
		link_let_go(link);
}

void links_close(struct links *links)
{
	pthread_mutex_lock(&links->lock);
	while (links->count)
		take_out(links, links->list[0]);
	links->stopping = true;
	pthread_mutex_unlock(&links->lock);
	links_ring(links);
	pthread_join(links->thread, NULL);
	drop_pending(links);
	free_links(links);
}
