/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * links.h - to each other member one ordered stream of messages that loses and
 * doubles nothing for as long as both are members.
 *
 * One TCP connection per pair carries it. When a connection breaks, the one
 * that replaces it goes on where the receiver had got to. A stream is between
 * two incarnations, and ends when either is removed; what was under way then is
 * dropped.
 *
 * Threads: one of its own reads, connects, pings and calls back; any thread
 * sends. A message that can be written at once is written by its sender.
 * Source: docs/spec/cluster.md 5.
 */
#ifndef UG_CLUSTER_LINKS_H
#define UG_CLUSTER_LINKS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "cluster/groupmsg.h"

/* What a message is for; the receiver hands it on by this. */
enum link_channel {
	LINK_DLM = 1,
	LINK_PLOCK = 2,
};

struct link_peer {
	struct incarnation inc;
	uint32_t id;	       /* member_id() */
	struct link_addr addr; /* where it listens */
};

struct links;

struct links_ops {
	/*
	 * A message has come, whole and in order. Bytes are good during the
	 * call only. Not 0: nothing that a member says (-EBADMSG); one line is
	 * logged and the connection is dropped, and made again later without
	 * this message.
	 */
	int (*receive)(void *arg, const struct link_peer *from,
		       enum link_channel channel, const uint8_t *bytes,
		       size_t len);
	/* All that had come for now has been handed over: reply in one go. */
	void (*pause)(void *arg);
	/*
	 * Nothing has been heard of this member for timeout_ns, or more than
	 * queue_max bytes wait for it, and it is given up. Once per silence.
	 */
	void (*silent)(void *arg, const struct link_peer *peer);
	/*
	 * One of the two does not want the other: another version, lock table
	 * or key. Said for each attempt. May be NULL.
	 */
	void (*refused)(void *arg, const struct link_peer *peer,
			const char *why);
	/* A queue that was full has room again (links_full()). */
	void (*room)(void *arg, uint32_t id);
};

struct links_config {
	const char *table;	/* "cluster:fs": links of others are refused */
	struct incarnation inc; /* this process */
	struct link_addr addr;	/* where to listen; port 0 */
	uint16_t port_first;	/* the first free one of these is taken; */
	uint16_t port_last;	/* 0, 0 = LINK_PORT_FIRST, LINK_PORT_LAST */
	const uint8_t *key;	/* shared secret of the cluster, or NULL */
	size_t key_len;
	uint64_t ping_ns;    /* 0 = LINK_PING_NS */
	uint64_t timeout_ns; /* 0 = MEMBER_TIMEOUT_NS */
	size_t queue_max;    /* 0 = LINK_QUEUE_MAX_BYTES */
	const struct links_ops *ops;
	void *arg;
};

/*
 * Listen, and start the thread. addr has the port that was found. The key is
 * copied, ops must last.
 * -EADDRINUSE: no port of the range is free; -EADDRNOTAVAIL: addr is not one of
 * this host; -ENAMETOOLONG: the table has more than LINK_TABLE_MAX bytes;
 * -EINVAL: the range is empty, or the key has not LINK_KEY_MIN to LINK_KEY_MAX
 * bytes; -EIO: no random numbers; -ENOMEM, or what socket calls say.
 */
int links_open(const struct links_config *config, struct links **out,
	       struct link_addr *addr);

/* Close all connections, wait for the thread. Not in a callback. */
void links_close(struct links *links);

/*
 * From now on this member is connected to, and accepted: from its address only,
 * with its incarnation, and only with proof of the key if there is one. An id
 * or incarnation that is there already is replaced, as by links_remove().
 * -ENOMEM; -ENOSPC: LINK_PEERS_MAX are there; -EINVAL: it is this process.
 */
int links_add(struct links *links, const struct link_peer *peer);

/*
 * It is no member any more: close, forget what was queued. After the return no
 * callback for it runs or will come, unless called in a callback. So no lock
 * may be held that a callback wants.
 */
void links_remove(struct links *links, const struct incarnation *inc);

/*
 * Queue one message of at most LINK_MESSAGE_MAX bytes for the member with this
 * id; it is copied. Order is that of the calls. Never blocks.
 *
 * 0; -ENOENT: no such member (removed meanwhile: as if lost under way), or one
 * that was given up, as silent() has said or will say;
 * -EMSGSIZE; -ENOMEM: not queued, give it again before any later one.
 */
int links_send(struct links *links, uint32_t id, enum link_channel channel,
	       const uint8_t *bytes, size_t len);

/*
 * Write out what is queued, as far as sockets take it; the thread does the
 * rest. To be called after a series of links_send(), with no lock held that
 * a callback may want.
 */
void links_push(struct links *links);

/*
 * More than LINK_QUEUE_BYTES are waiting for this member: do not begin anything
 * new with it until room() is called. What is under way may be sent on. False
 * for no member; room() does not come for one that is removed.
 */
bool links_full(const struct links *links, uint32_t id);

struct link_info {
	struct link_peer peer;
	bool connected;
	uint16_t minor;		 /* the lower one of both sides' versions */
	uint64_t silent_ns;	 /* since something was heard */
	uint64_t sent, received; /* messages */
	uint64_t sent_bytes, received_bytes;
	uint64_t connections; /* how often it was established */
	size_t queued_bytes;
};

/* At most max of them; their number. */
unsigned links_info(struct links *links, struct link_info *out, unsigned max);

/* Tests: break every connection as a reset of the network would. */
void links_break(struct links *links);

#endif
