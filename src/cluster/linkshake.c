/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * linkshake.c - connections from connect() and accept() to the moment at which
 * they carry a link's stream.
 *
 *	connecting side				accepting side
 *	  |  HELLO: who I am, whom I look for, nonce	  |
 *	  |---------------------------------------------->|
 *	  |  WELCOME: the same, what I have got, MAC	  |
 *	  |<----------------------------------------------|
 *	  |  PROOF: what I have got, MAC		  |
 *	  |---------------------------------------------->|
 *	  |  READY					  |
 *	  |<----------------------------------------------|
 *	  |  frames, from where the other side had got to |
 *	  |<--------------------------------------------->|
 *
 * Either side may say REFUSE instead, and why. Until READY a connection changes
 * nothing: not the link's present connection, and nothing of its stream.
 *
 * The side with the higher incarnation connects, so two never cross.
 * Source: docs/spec/cluster.md 5.2.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "cluster/links_impl.h"

#define ACCEPTS_MAX 16
#define STRANGER_NOTE_NS 10000000000u
#define REFUSAL_NOTE_NS 60000000000u

/* Connections */

int links_watch(struct links *links, int fd, unsigned events, void *what)
{
	struct epoll_event ev = { .events = events, .data.ptr = what };

	return epoll_ctl(links->epoll, EPOLL_CTL_ADD, fd, &ev) ? -errno : 0;
}

static void take_off_list(struct links *links, struct conn *conn)
{
	if (conn->prev)
		conn->prev->next = conn->next;
	else
		links->shaking = conn->next;
	if (conn->next)
		conn->next->prev = conn->prev;
	else
		links->shaking_last = conn->prev;
	links->strangers -= conn->accepted;
	if (conn->link && conn->link->shaking == conn)
		conn->link->shaking = NULL;
}

/* Takes fd in any case. */
static struct conn *new_conn(struct links *links, int fd, bool accepted)
{
	struct conn *conn = calloc(1, sizeof(*conn));

	if (!conn ||
	    links_watch(links, fd, accepted ? EPOLLIN : EPOLLOUT, conn)) {
		free(conn);
		close(fd);
		return NULL;
	}
	conn->fd = fd;
	conn->accepted = accepted;
	conn->state = accepted ? CONN_WAIT_HELLO : CONN_CONNECTING;
	conn->deadline_ns = links->now_ns + links->patience_ns;
	links_wake_at(links, conn->deadline_ns);
	links->strangers += accepted;
	conn->prev = links->shaking_last;
	if (conn->prev)
		conn->prev->next = conn;
	else
		links->shaking = conn;
	links->shaking_last = conn;
	return conn;
}

void conn_is_up(struct links *links, struct conn *conn)
{
	take_off_list(links, conn);
	conn->state = CONN_UP;
	conn->since_ns = links->now_ns;
}

void conn_close(struct links *links, struct conn *conn)
{
	if (conn->dead)
		return;
	if (conn->state != CONN_UP)
		take_off_list(links, conn);
	close(conn->fd);
	conn->dead = true;
	conn->dead_next = links->dead;
	links->dead = conn;
}

void links_bury(struct links *links)
{
	while (links->dead) {
		struct conn *conn = links->dead;

		links->dead = conn->dead_next;
		if (conn->link)
			link_let_go(conn->link);
		free(conn->rest);
		free(conn);
	}
}

void link_retry(struct link *link, bool progress)
{
	struct links *links = link->links;

	if (progress || !link->delay_ns)
		link->delay_ns = LINK_RETRY_FIRST_NS;
	else
		link->delay_ns = UG_MIN(link->delay_ns * 2, LINK_RETRY_LAST_NS);
	link->retry_ns = UG_MAX(links->now_ns + link->delay_ns, link->hold_ns);
	links_wake_at(links, link->retry_ns);
}

/* Failing */

static void note_stranger(struct links *links, const struct link_addr *from,
			  enum ug_level level, const char *why)
{
	char text[LINK_ADDR_TEXT];

	if (links->noted_ns &&
	    links->now_ns - links->noted_ns < STRANGER_NOTE_NS)
		level = UG_DEBUG;
	else
		links->noted_ns = links->now_ns;
	ug_log(level, links->table, "links: connection from %s: %s",
	       link_addr_text(from, text), why);
}

/* A reason that everybody has while members come and go is not worth a line. */
static enum ug_level level_of(enum link_refusal refusal)
{
	return refusal == LR_STRANGER || refusal == LR_LATER ? UG_DEBUG
							     : UG_WARN;
}

/* This side's attempt: one line for each reason, not for each attempt. */
static void note_attempt(struct link *link, enum ug_level level,
			 const char *why)
{
	char text[LINK_ADDR_TEXT];

	if (strncmp(link->why, why, sizeof(link->why) - 1) == 0)
		level = UG_DEBUG;
	snprintf(link->why, sizeof(link->why), "%s", why);
	link_note(link, level, "%s: %s", link_addr_text(&link->peer.addr, text),
		  why);
	link_retry(link, false);
}

/* The other side's: the same again in a minute. */
static void note_accepted(struct link *link, const struct link_addr *from,
			  enum ug_level level, const char *why)
{
	uint64_t now = link->links->now_ns;
	char text[LINK_ADDR_TEXT];

	if (link->last_ns && now - link->last_ns < REFUSAL_NOTE_NS &&
	    strncmp(link->last, why, sizeof(link->last) - 1) == 0)
		level = UG_DEBUG;
	else
		link->last_ns = now;
	snprintf(link->last, sizeof(link->last), "%s", why);
	link_note(link, level, "connection from %s: %s",
		  link_addr_text(from, text), why);
}

/* The handshake has failed; level: of the line about it. */
static void fail(struct links *links, struct conn *conn, enum ug_level level,
		 const char *why)
{
	if (!conn->link)
		note_stranger(links, &conn->from, level, why);
	else if (conn->accepted)
		note_accepted(conn->link, &conn->from, level, why);
	else
		note_attempt(conn->link, level, why);
	conn_close(links, conn);
}

static void fail_errno(struct links *links, struct conn *conn, int err)
{
	fail(links, conn, UG_INFO, strerror(-err));
}

void conn_timeout(struct links *links, struct conn *conn)
{
	fail(links, conn, UG_INFO,
	     conn->state == CONN_CONNECTING ? "no answer"
					    : "no answer within the handshake");
}

/* Saying */

static size_t say(const struct links *links, struct link_shake *shake,
		  uint8_t *bytes)
{
	shake->major = LINK_VERSION_MAJOR;
	shake->minor = LINK_VERSION_MINOR;
	shake->keyed = links->key != NULL;
	return link_shake_encode(shake, bytes);
}

/* A new socket takes some hundred bytes at once, or it is of no use. */
static int utter(struct conn *conn, const uint8_t *bytes, size_t len)
{
	ssize_t n = send(conn->fd, bytes, len, MSG_NOSIGNAL | MSG_DONTWAIT);

	if (n < 0)
		return -errno;
	return (size_t)n == len ? 0 : -ENOBUFS;
}

/* That will be so again at the next attempt. */
static void tell_refused(struct links *links, struct conn *conn,
			 enum link_refusal refusal, const char *why)
{
	const struct links_ops *ops = links->config.ops;

	if (refusal != LR_MAJOR && refusal != LR_TABLE &&
	    refusal != LR_KEY_NONE && refusal != LR_KEY_EXTRA &&
	    refusal != LR_KEY_WRONG)
		return;
	if (!conn->link || !ops->refused || !link_begin_call(conn->link))
		return;
	ops->refused(links->config.arg, &conn->link->peer, why);
	link_end_call(conn->link);
}

static void refuse(struct links *links, struct conn *conn,
		   enum link_refusal refusal)
{
	struct link_shake shake = { .type = LS_REFUSE, .refusal = refusal };
	uint8_t bytes[LINK_SHAKE_MAX];
	char why[LINK_WHY];

	utter(conn, bytes, say(links, &shake, bytes));
	if (refusal == LR_MAJOR)
		snprintf(why, sizeof(why),
			 "refused: it speaks version %u.%u of the link "
			 "protocol, this process %u.%u",
			 conn->peer.major, conn->peer.minor, LINK_VERSION_MAJOR,
			 LINK_VERSION_MINOR);
	else
		snprintf(why, sizeof(why), "refused: %s",
			 link_refusal_text(refusal, true));
	tell_refused(links, conn, refusal, why);
	fail(links, conn, level_of(refusal), why);
}

static void refused(struct links *links, struct conn *conn,
		    const struct link_shake *shake)
{
	char why[LINK_WHY];

	if (shake->refusal == LR_MAJOR)
		snprintf(why, sizeof(why),
			 "it refuses: it speaks version %u.%u of the link "
			 "protocol, this process %u.%u",
			 shake->major, shake->minor, LINK_VERSION_MAJOR,
			 LINK_VERSION_MINOR);
	else
		snprintf(why, sizeof(why), "it refuses: %s",
			 link_refusal_text(shake->refusal, false));
	tell_refused(links, conn, shake->refusal, why);
	fail(links, conn, level_of(shake->refusal), why);
}

/* HELLO or WELCOME, but for what only WELCOME has. */
static void name_both(struct links *links, struct link *link,
		      struct link_shake *shake)
{
	shake->from = links->config.inc;
	shake->to = link->peer.inc;
	shake->stream = link->stream;
	link_random(shake->nonce, sizeof(shake->nonce));
	memcpy(shake->table, links->table, sizeof(shake->table));
}

static void sign(struct links *links, struct conn *conn, const uint8_t *proof,
		 size_t proof_len, size_t welcome_len, uint8_t *mac)
{
	struct link_talk talk = {
		.hello = conn->hello,
		.hello_len = conn->hello_len,
		.welcome = conn->welcome,
		.welcome_len = welcome_len,
		.proof = proof,
		.proof_len = proof_len,
	};

	if (links->key)
		link_mac(links->key, &talk, mac);
	else
		memset(mac, 0, LINK_MAC_BYTES);
}

static void say_hello(struct links *links, struct conn *conn)
{
	struct link_shake hello = { .type = LS_HELLO };
	int err;

	name_both(links, conn->link, &hello);
	conn->hello_len = say(links, &hello, conn->hello);
	conn->state = CONN_WAIT_WELCOME;
	err = utter(conn, conn->hello, conn->hello_len);
	if (err)
		fail_errno(links, conn, err);
}

static void say_welcome(struct links *links, struct conn *conn)
{
	struct link_shake welcome = { .type = LS_WELCOME };
	size_t len;
	int err;

	name_both(links, conn->link, &welcome);
	welcome.received = atomic_load(&conn->link->received);
	len = say(links, &welcome, conn->welcome);
	sign(links, conn, NULL, 0, len - LINK_MAC_BYTES,
	     conn->welcome + len - LINK_MAC_BYTES);
	conn->welcome_len = len;
	conn->state = CONN_WAIT_PROOF;
	err = utter(conn, conn->welcome, len);
	if (err)
		fail_errno(links, conn, err);
}

static void say_proof(struct links *links, struct conn *conn)
{
	struct link_shake proof = { .type = LS_PROOF };
	uint8_t bytes[LINK_SHAKE_MAX];
	size_t len;
	int err;

	proof.received = atomic_load(&conn->link->received);
	len = say(links, &proof, bytes);
	sign(links, conn, bytes, len - LINK_MAC_BYTES, conn->welcome_len,
	     bytes + len - LINK_MAC_BYTES);
	conn->state = CONN_WAIT_READY;
	err = utter(conn, bytes, len);
	if (err)
		fail_errno(links, conn, err);
}

/* Hearing */

static int check_stream(struct conn *conn, uint64_t received)
{
	struct link *link = conn->link;
	int err;

	if (link->peer_stream && link->peer_stream != conn->peer.stream)
		return -ESTALE;
	pthread_mutex_lock(&link->lock);
	err = link->given_up ? -ESTALE
			     : link_queue_check(&link->queue, received);
	pthread_mutex_unlock(&link->lock);
	return err;
}

static enum link_refusal check_names(struct links *links, struct conn *conn)
{
	const struct link_shake *peer = &conn->peer;

	if (strcmp(peer->table, links->table) != 0)
		return LR_TABLE;
	if (!incarnation_equal(&peer->to, &links->config.inc))
		return LR_OTHER_LIFE;
	if (!conn->link)
		conn->link = links_find(links, &peer->from, &conn->from);
	if (!conn->link || conn->link->connects == conn->accepted ||
	    !incarnation_equal(&peer->from, &conn->link->peer.inc))
		return LR_STRANGER;
	if (links->key && !peer->keyed)
		return LR_KEY_NONE;
	if (!links->key && peer->keyed)
		return LR_KEY_EXTRA;
	return 0;
}

static void hear_hello(struct links *links, struct conn *conn,
		       const struct link_shake *hello)
{
	enum link_refusal refusal;

	conn->peer = *hello;
	refusal = check_names(links, conn);
	if (!refusal && links->now_ns < conn->link->hold_ns)
		refusal = LR_LATER;
	if (refusal)
		refuse(links, conn, refusal);
	else
		say_welcome(links, conn);
}

static void hear_welcome(struct links *links, struct conn *conn,
			 const struct link_shake *welcome)
{
	uint8_t mac[LINK_MAC_BYTES];
	enum link_refusal refusal;

	conn->peer = *welcome;
	refusal = check_names(links, conn);
	if (!refusal) {
		sign(links, conn, NULL, 0, conn->welcome_len - LINK_MAC_BYTES,
		     mac);
		if (!link_mac_equal(mac, welcome->mac))
			refusal = LR_KEY_WRONG;
		else if (check_stream(conn, welcome->received))
			refusal = LR_STREAM;
	}
	if (refusal) {
		refuse(links, conn, refusal);
		return;
	}
	conn->peer_received = welcome->received;
	say_proof(links, conn);
}

static void hear_proof(struct links *links, struct conn *conn,
		       const struct link_shake *proof, size_t len)
{
	struct link_shake ready = { .type = LS_READY };
	uint8_t mac[LINK_MAC_BYTES], bytes[LINK_SHAKE_MAX];
	int err;

	sign(links, conn, conn->in, len - LINK_MAC_BYTES, conn->welcome_len,
	     mac);
	if (!link_mac_equal(mac, proof->mac)) {
		refuse(links, conn, LR_KEY_WRONG);
		return;
	}
	if (check_stream(conn, proof->received)) {
		refuse(links, conn, LR_STREAM);
		return;
	}
	conn->peer_received = proof->received;
	err = utter(conn, bytes, say(links, &ready, bytes));
	if (err)
		fail_errno(links, conn, err);
	else
		link_up(conn->link, conn);
}

static bool expected(const struct conn *conn, enum link_shake_type type)
{
	switch (conn->state) {
	case CONN_WAIT_HELLO:
		return type == LS_HELLO;
	case CONN_WAIT_WELCOME:
		return type == LS_WELCOME;
	case CONN_WAIT_PROOF:
		return type == LS_PROOF;
	case CONN_WAIT_READY:
		return type == LS_READY;
	case CONN_CONNECTING:
	case CONN_UP:
		break;
	}
	return false;
}

/* A whole message is in conn->in. */
static void hear(struct links *links, struct conn *conn, size_t len)
{
	struct link_shake shake;
	int err = link_shake_decode(conn->in, len, &shake);

	if (err == -EPROTONOSUPPORT) {
		conn->peer = shake;
		refuse(links, conn, LR_MAJOR);
	} else if (!err && shake.type == LS_REFUSE &&
		   conn->state != CONN_WAIT_HELLO) {
		refused(links, conn, &shake);
	} else if (err || !expected(conn, shake.type)) {
		fail(links, conn, UG_WARN, "this is no handshake of a link");
	} else if (shake.type == LS_HELLO) {
		memcpy(conn->hello, conn->in, len);
		conn->hello_len = len;
		hear_hello(links, conn, &shake);
	} else if (shake.type == LS_WELCOME) {
		memcpy(conn->welcome, conn->in, len);
		conn->welcome_len = len;
		hear_welcome(links, conn, &shake);
	} else if (shake.type == LS_PROOF) {
		hear_proof(links, conn, &shake, len);
	} else {
		link_up(conn->link, conn);
	}
}

/* Not a byte more than the message: frames may follow the last one. */
static void read_shake(struct links *links, struct conn *conn)
{
	while (!conn->dead && conn->state != CONN_UP) {
		long want = LINK_SHAKE_HEAD;
		ssize_t n;

		if (conn->in_len >= LINK_SHAKE_HEAD)
			want = link_shake_length(conn->in);
		if (want < 0) {
			fail(links, conn, UG_WARN,
			     "this is no handshake of a link");
			return;
		}
		if (conn->in_len == (size_t)want &&
		    conn->in_len >= LINK_SHAKE_HEAD) {
			conn->in_len = 0;
			hear(links, conn, (size_t)want);
			continue;
		}
		n = recv(conn->fd, conn->in + conn->in_len,
			 (size_t)want - conn->in_len, MSG_DONTWAIT);
		if (n > 0) {
			conn->in_len += (size_t)n;
		} else if (n == 0) {
			fail(links, conn, UG_INFO,
			     "closed by the other side within the handshake");
		} else if (errno == EAGAIN) {
			return;
		} else if (errno != EINTR) {
			fail_errno(links, conn, -errno);
		}
	}
}

/* Beginning */

static void connected(struct links *links, struct conn *conn)
{
	struct epoll_event ev = { .events = EPOLLIN, .data.ptr = conn };
	int err = link_sock_connected(conn->fd);

	if (!err && epoll_ctl(links->epoll, EPOLL_CTL_MOD, conn->fd, &ev))
		err = -errno;
	if (err)
		fail_errno(links, conn, err);
	else
		say_hello(links, conn);
}

void conn_event(struct links *links, struct conn *conn, unsigned events)
{
	if (conn->dead)
		return;
	if (conn->link && atomic_load(&conn->link->removed))
		return; /* it is closed at the end of this round, or the next */
	if (conn->state == CONN_UP)
		link_event(conn->link, conn, events);
	else if (conn->state == CONN_CONNECTING)
		connected(links, conn);
	else
		read_shake(links, conn);
}

void link_connect(struct link *link)
{
	struct links *links = link->links;
	int fd = link_sock_connect(&links->addr, &link->peer.addr);
	struct conn *conn = fd < 0 ? NULL : new_conn(links, fd, false);
	char why[LINK_WHY];

	if (conn) {
		link_hold(link);
		conn->link = link;
		link->shaking = conn;
		return;
	}
	snprintf(why, sizeof(why), "cannot connect: %s",
		 strerror(fd < 0 ? -fd : ENOMEM));
	note_attempt(link, UG_INFO, why);
}

static void drop_oldest_stranger(struct links *links)
{
	struct conn *conn = links->shaking;

	while (conn && !conn->accepted)
		conn = conn->next;
	if (conn)
		fail(links, conn, UG_WARN,
		     "dropped for a newer one, too many are in the handshake");
}

static void accept_later(struct links *links, int err)
{
	epoll_ctl(links->epoll, EPOLL_CTL_DEL, links->listener, NULL);
	links->accept_ns = links->now_ns + LINK_RETRY_LAST_NS / 10;
	links_wake_at(links, links->accept_ns);
	if (links->accept_noted_ns &&
	    links->now_ns - links->accept_noted_ns < STRANGER_NOTE_NS)
		return;
	links->accept_noted_ns = links->now_ns;
	ug_warn(links->table, "links: cannot accept a connection: %s",
		strerror(-err));
}

void links_accept(struct links *links)
{
	struct link_addr from;
	struct conn *conn;
	int fd;

	for (unsigned i = 0; i < ACCEPTS_MAX; i++) {
		fd = link_sock_accept(links->listener, &from);
		if (fd == -EMFILE || fd == -ENFILE || fd == -ENOMEM ||
		    fd == -ENOBUFS)
			accept_later(links, fd);
		if (fd < 0)
			return;
		if (!links_know_host(links, &from)) {
			note_stranger(links, &from, UG_WARN,
				      "refused: no member has this address");
			close(fd);
			continue;
		}
		if (links->strangers >= LINK_STRANGERS_MAX)
			drop_oldest_stranger(links);
		conn = new_conn(links, fd, true);
		if (conn)
			conn->from = from;
	}
}
