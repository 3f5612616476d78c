/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * links_impl.h - the objects behind links.h: the set, one link, one connection.
 *
 *   links.c	   the set of links, what callers call
 *   linkloop.c	   the thread: events, timers, callbacks
 *   linkshake.c   connections until they belong to a link
 *   linkstream.c  a link's stream over its connection: writing, reading
 *
 * Locks: links->lock, then link->lock. Callbacks run with neither. What no lock
 * is named for belongs to the thread.
 */
#ifndef UG_CLUSTER_LINKS_IMPL_H
#define UG_CLUSTER_LINKS_IMPL_H

#include <pthread.h>
#include <stdatomic.h>

#include "base/compiler.h"
#include "base/log.h"
#include "cluster/linkauth.h"
#include "cluster/linkqueue.h"
#include "cluster/links.h"
#include "cluster/linksock.h"

#define LINK_WHO (LINK_TABLE_MAX + 32)
#define LINK_WHY 160

enum conn_state {
	CONN_CONNECTING,   /* TCP's own handshake */
	CONN_WAIT_HELLO,   /* accepted */
	CONN_WAIT_WELCOME, /* connected, HELLO sent */
	CONN_WAIT_PROOF,   /* accepted, WELCOME sent */
	CONN_WAIT_READY,   /* connected, PROOF sent */
	CONN_UP,	   /* a link's */
};

struct conn {
	enum conn_state state;
	int fd;
	bool dead; /* closed; waits for the end of this round of events */
	struct conn *prev, *next; /* links->shaking, oldest first */
	struct conn *dead_next;
	bool accepted;
	struct link_addr from; /* accepted: where it comes from */
	uint64_t deadline_ns;  /* of the handshake */
	/* Connecting: from the beginning. Accepted: once it is named. Held. */
	struct link *link;

	/* The handshake: what has come of the present message, what was said */
	size_t in_len;
	uint8_t in[LINK_SHAKE_MAX];
	size_t hello_len, welcome_len;
	uint8_t hello[LINK_SHAKE_MAX], welcome[LINK_SHAKE_MAX];
	struct link_shake peer; /* its HELLO or WELCOME */
	uint64_t peer_received;

	/* Up */
	uint64_t since_ns;
	uint64_t received_before, acked_before;
	uint8_t *rest; /* the beginning of a frame */
	size_t rest_len;
};

struct link {
	struct links *links;
	struct link_peer peer;
	char who[LINK_WHO];
	bool connects; /* this side does */
	uint64_t stream;
	_Atomic unsigned refs;
	_Atomic bool removed;

	/* Guarded by links->lock */
	bool pending; /* something was queued since the last push */
	struct link *pending_next;
	struct link *gone_next;

	pthread_mutex_t lock; /* guards these: */
	pthread_cond_t idle;  /* writing has ended */
	struct link_queue queue;
	struct conn *conn; /* up, or NULL; set by the thread only */
	bool writing;	   /* somebody is, without the lock */
	bool broken;	   /* the connection: write no more */
	bool armed;	   /* the socket was full: the thread waits for room */
	bool full;	   /* see links_full() */
	bool given_up;	   /* too much is waiting: never again */
	bool speak;	   /* send a ping at the next end of a frame */
	uint8_t ping[LINK_FRAME_BYTES]; /* that has begun */
	unsigned ping_left;
	uint64_t said; /* received, as last told to the other side */
	uint64_t sent, sent_bytes;

	_Atomic uint64_t heard_ns, received, received_bytes, connections;
	_Atomic uint32_t minor;

	/* The thread's */
	struct conn *shaking; /* this side's attempt */
	uint64_t peer_stream; /* 0: not connected yet */
	uint64_t retry_ns, delay_ns;
	uint64_t hold_ns; /* refuse until then: it has sent nonsense */
	uint64_t noted_ns[UG_INFO + 1]; /* last line of each level */
	uint64_t unsaid_bytes;		/* received since said, about */
	bool told;    /* silent() was called in this silence */
	bool ended;   /* it was given up, and nothing of it is left */
	bool touched; /* has received in this round */
	struct link *touched_next;
	char why[LINK_WHY];  /* why it is not connected */
	char last[LINK_WHY]; /* why a connection of it was not accepted */
	uint64_t last_ns;
};

struct links {
	struct links_config config; /* table, key: not for use */
	char table[LINK_TABLE_MAX + 1];
	struct link_addr addr;
	struct link_key *key; /* or NULL */
	uint64_t patience_ns; /* what takes longer is tried anew */
	int epoll, bell, listener;
	pthread_t thread;

	pthread_mutex_t lock; /* guards these: */
	unsigned count;
	uint32_t ids[LINK_PEERS_MAX]; /* of the same index */
	struct link *list[LINK_PEERS_MAX];
	struct link *pending, **pending_tail;
	struct link *gone; /* removed, for the thread to close */
	bool stopping, breaking;
	struct link *calling; /* a callback for it is running */
	unsigned waiting;     /* for that to end */
	pthread_cond_t called;

	/* The thread's */
	struct conn *shaking, *shaking_last; /* oldest first */
	unsigned strangers;		     /* accepted ones of them */
	struct conn *dead;
	struct link *touched;
	bool handed_over; /* since the last pause() */
	uint64_t now_ns;  /* when this round began */
	uint64_t due_ns, tick_ns;
	uint64_t accept_ns; /* no descriptors: try again then; 0: listening */
	uint64_t accept_noted_ns, noted_ns;
	struct link *scan[LINK_PEERS_MAX];
	uint8_t in[LINK_READ_BYTES + LINK_MESSAGE_MAX + LINK_FRAME_BYTES];
};

/* links.c */

void link_hold(struct link *link);
void link_let_go(struct link *link);

/* A held one with this incarnation and host, or NULL. */
struct link *links_find(struct links *links, const struct incarnation *inc,
			const struct link_addr *host);

/* Some member is at this host. */
bool links_know_host(struct links *links, const struct link_addr *host);

/* linkloop.c */

uint64_t link_clock_ns(void);
void *links_run(void *arg);
void links_ring(struct links *links);
void links_wake_at(struct links *links, uint64_t ns);

/* Bracket a callback for link; false: it was removed. */
bool link_begin_call(struct link *link);
void link_end_call(struct link *link);

/*
 * One line about a link. If it has had one of this level within the last second
 * it goes to the ring only: a connection that comes and goes would fill the
 * log.
 */
void link_note(struct link *link, enum ug_level level, const char *fmt, ...)
	ug_printf(3, 4);

/* linkshake.c */

int links_watch(struct links *links, int fd, unsigned events, void *what);
void links_accept(struct links *links);
void link_connect(struct link *link);
void conn_event(struct links *links, struct conn *conn, unsigned events);
void conn_timeout(struct links *links, struct conn *conn);
void conn_close(struct links *links, struct conn *conn);
void conn_is_up(struct links *links, struct conn *conn);
void links_bury(struct links *links);

/* Connect again after a while; the first time, or after progress, soon. */
void link_retry(struct link *link, bool progress);

/* linkstream.c */

/* Give the connection to the link, in place of the one that it may have. */
void link_up(struct link *link, struct conn *conn);

/* Drop it; abort: as a reset of the network would. why: for the log. */
void link_down(struct link *link, bool abort, const char *why);

/* Write what there is, unless somebody is at it, or the socket is full. */
void link_write(struct link *link);
void link_speak(struct link *link);

void link_event(struct link *link, struct conn *conn, unsigned events);

/* At the end of a round: acknowledge what has come, if nothing else did. */
void links_acknowledge(struct links *links);

#endif
