/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * linkstream.c - a link's stream over the connection that it has.
 *
 * Writing: whoever finds nobody writing does, without the lock while in the
 * kernel, and goes on while others add to the queue; a full socket, or a writer
 * that has done enough for others, leaves the rest to the thread. The
 * connection is closed only when nobody is writing.
 *
 * Reading: by the thread, as much as one read brings. Frames are numbered, and
 * those that have been taken before are skipped: a connection that is
 * replaced may have brought more after its successor began.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>

#include "base/assert.h"
#include "cluster/links_impl.h"

#define IOV_PIECES 64
#define WRITES_MAX 64 /* by one caller, one after the other */
#define ALIVE_NS 1000000000u

/* Writing; all with link->lock */

static void watch_for_room(struct link *link, bool on)
{
	struct epoll_event ev = { .events = EPOLLIN | (on ? EPOLLOUT : 0),
				  .data.ptr = link->conn };

	link->armed = on;
	epoll_ctl(link->links->epoll, EPOLL_CTL_MOD, link->conn->fd, &ev);
}

static bool has_output(const struct link *link)
{
	return link->ping_left || link->speak || link_queue_more(&link->queue);
}

static void begin_ping(struct link *link)
{
	uint64_t received = atomic_load(&link->received);
	struct link_frame frame = { .kind = LINK_PING,
				    .ack = (uint32_t)received };

	link_frame_encode(&frame, link->ping);
	link->ping_left = sizeof(link->ping);
	link->speak = false;
	link->said = received;
}

static unsigned next_output(struct link *link, struct iovec *iov)
{
	unsigned count = 0;

	if (link->speak && !link->ping_left) {
		if (link_queue_mid_frame(&link->queue))
			return link_queue_iov(&link->queue, iov, 1, true);
		begin_ping(link);
	}
	if (link->ping_left)
		iov[count++] = (struct iovec){ link->ping + sizeof(link->ping) -
						       link->ping_left,
					       link->ping_left };
	return count + link_queue_iov(&link->queue, iov + count,
				      IOV_PIECES - count, false);
}

static void note_written(struct link *link, size_t len)
{
	size_t part = UG_MIN(len, link->ping_left);

	link->ping_left -= (unsigned)part;
	link_queue_wrote(&link->queue, len - part);
}

/* False: no more can be written now. */
static bool write_some(struct link *link)
{
	struct iovec iov[IOV_PIECES];
	struct msghdr msg = { .msg_iov = iov };
	int fd = link->conn->fd, err;
	ssize_t n;

	msg.msg_iovlen = next_output(link, iov);
	pthread_mutex_unlock(&link->lock);
	n = sendmsg(fd, &msg, MSG_NOSIGNAL | MSG_DONTWAIT);
	err = n < 0 ? errno : 0;
	pthread_mutex_lock(&link->lock);
	if (link->broken)
		return false;
	if (!err) {
		note_written(link, (size_t)n);
		return true;
	}
	if (err == EINTR)
		return true;
	if (err == EAGAIN || err == ENOBUFS || err == ENOMEM) {
		watch_for_room(link, true);
	} else {
		/* The thread sees that, and closes it. */
		link->broken = true;
		shutdown(fd, SHUT_RDWR);
	}
	return false;
}

static bool can_write(const struct link *link)
{
	return link->conn && !link->broken && !link->armed && has_output(link);
}

void link_write(struct link *link)
{
	unsigned writes = 0;

	pthread_mutex_lock(&link->lock);
	if (link->writing || atomic_load(&link->removed)) {
		pthread_mutex_unlock(&link->lock);
		return;
	}
	link->writing = true;
	while (can_write(link) && write_some(link)) {
		if (++writes == WRITES_MAX && has_output(link))
			watch_for_room(link, true);
	}
	link->writing = false;
	pthread_cond_broadcast(&link->idle);
	pthread_mutex_unlock(&link->lock);
}

void link_speak(struct link *link)
{
	pthread_mutex_lock(&link->lock);
	link->speak = true;
	pthread_mutex_unlock(&link->lock);
	link_write(link);
}

/* Coming and going of connections */

void link_up(struct link *link, struct conn *conn)
{
	char text[LINK_ADDR_TEXT];

	if (link->conn)
		link_down(link, true, "it has made a new one");
	conn_is_up(link->links, conn);
	conn->received_before = atomic_load(&link->received);
	conn->acked_before = conn->peer_received;
	link->peer_stream = conn->peer.stream;
	atomic_store(&link->minor,
		     UG_MIN(conn->peer.minor, LINK_VERSION_MINOR));
	atomic_fetch_add(&link->connections, 1);
	link_note(
		link, UG_INFO, "connected with %s",
		link_addr_text(conn->accepted ? &conn->from : &link->peer.addr,
			       text));
	snprintf(link->why, sizeof(link->why), "it is connected");
	links_wake_at(link->links,
		      link->links->now_ns + link->links->patience_ns);
	pthread_mutex_lock(&link->lock);
	link->broken = link->given_up;
	if (!link->given_up)
		link_queue_resume(&link->queue, conn->peer_received);
	link->armed = false;
	link->ping_left = 0;
	link->speak = true;
	link->conn = conn;
	pthread_mutex_unlock(&link->lock);
	link_write(link);
}

void link_down(struct link *link, bool abort, const char *why)
{
	struct links *links = link->links;
	struct conn *conn = link->conn;
	bool progress;

	pthread_mutex_lock(&link->lock);
	link->broken = true;
	while (link->writing)
		pthread_cond_wait(&link->idle, &link->lock);
	link->conn = NULL;
	progress = link->queue.acked > conn->acked_before;
	pthread_mutex_unlock(&link->lock);
	progress |= atomic_load(&link->received) > conn->received_before ||
		    links->now_ns - conn->since_ns >= ALIVE_NS;
	if (abort)
		link_sock_abort(conn->fd);
	conn_close(links, conn);
	if (why != link->why)
		snprintf(link->why, sizeof(link->why), "%s", why);
	link_note(link, UG_INFO, "connection closed: %s", why);
	link_retry(link, progress);
}

/* Reading */

/* Something that no member says: once more in a second, not at once. */
static void drop_for_nonsense(struct link *link, const char *why)
{
	link->hold_ns = link->links->now_ns + LINK_RETRY_LAST_NS;
	ug_warn(link->who, "connection dropped: %s", why);
	link->noted_ns[UG_INFO] = link->links->now_ns; /* that is enough */
	link_down(link, true, why);
}

static int take_message(struct link *link, const struct link_frame *frame,
			const uint8_t *bytes, char *why)
{
	const struct links_config *config = &link->links->config;
	uint64_t received = atomic_load(&link->received);
	int32_t ahead = (int32_t)(frame->number - (uint32_t)(received + 1));
	int err;

	if (ahead > 0) {
		snprintf(why, LINK_WHY, "message %u came where %u was expected",
			 frame->number, (uint32_t)(received + 1));
		return -EBADMSG;
	}
	if (ahead < 0)
		return 0;
	atomic_store(&link->received, received + 1);
	atomic_fetch_add(&link->received_bytes, frame->len);
	link->links->handed_over = true;
	err = config->ops->receive(config->arg, &link->peer,
				   (enum link_channel)frame->kind, bytes,
				   frame->len);
	if (err)
		snprintf(why, LINK_WHY,
			 "message %llu, %u bytes on channel %u, has no meaning",
			 (unsigned long long)received + 1, frame->len,
			 frame->kind);
	return err;
}

/*
 * All whole frames of len bytes. How many bytes they are; -EBADMSG, and why.
 * *ack: the last acknowledgement among them.
 */
static long take_frames(struct link *link, const uint8_t *bytes, size_t len,
			uint32_t *ack, char *why)
{
	size_t at = 0;

	while (len - at >= LINK_FRAME_BYTES) {
		struct link_frame frame;

		if (link_frame_decode(bytes + at, &frame)) {
			snprintf(why, LINK_WHY,
				 "a frame of kind %u, number %u, with %u bytes "
				 "cannot be",
				 frame.kind, frame.number, frame.len);
			return -EBADMSG;
		}
		if (len - at - LINK_FRAME_BYTES < frame.len)
			break;
		at += LINK_FRAME_BYTES;
		if (frame.kind != LINK_PING &&
		    take_message(link, &frame, bytes + at, why))
			return -EBADMSG;
		at += frame.len;
		*ack = frame.ack;
		/* The last callback may have removed it. */
		if (atomic_load(&link->removed))
			break;
	}
	return (long)at;
}

static int take_ack(struct link *link, uint32_t ack, char *why)
{
	const struct links_config *config = &link->links->config;
	bool room = false;
	int err;

	pthread_mutex_lock(&link->lock);
	err = link->given_up ? 0 : link_queue_ack(&link->queue, ack);
	if (link->full && link->queue.bytes <= LINK_QUEUE_BYTES / 2 &&
	    !link->given_up) {
		link->full = false;
		room = true;
	}
	if (err)
		snprintf(why, LINK_WHY,
			 "message %u was acknowledged, %u is the last that it "
			 "can have",
			 ack, (uint32_t)link->queue.handed);
	pthread_mutex_unlock(&link->lock);
	if (room && !atomic_load(&link->removed))
		config->ops->room(config->arg, link->peer.id);
	return err;
}

/* Keep the beginning of a frame for the next read. */
static int keep_rest(struct conn *conn, const uint8_t *bytes, size_t len)
{
	if (!len)
		return 0;
	conn->rest = malloc(len);
	if (!conn->rest)
		return -ENOMEM;
	memcpy(conn->rest, bytes, len);
	conn->rest_len = len;
	return 0;
}

static int take_bytes(struct link *link, const uint8_t *bytes, size_t len,
		      long *used, char *why)
{
	uint32_t ack = (uint32_t)link->queue.acked; /* only changed here */
	int err;

	*used = take_frames(link, bytes, len, &ack, why);
	if (*used < 0)
		return -EBADMSG;
	err = take_ack(link, ack, why);
	/* A part of a frame may be what a kernel still has of a stopped one. */
	if (!err && *used > 0) {
		atomic_store(&link->heard_ns, link->links->now_ns);
		link->told = false;
	}
	return err;
}

static void touch(struct link *link, size_t len)
{
	link->unsaid_bytes += len;
	if (link->touched)
		return;
	link->touched = true;
	link->touched_next = link->links->touched;
	link->links->touched = link;
}

static void read_stream(struct link *link, struct conn *conn)
{
	uint8_t *in = link->links->in;
	size_t have = conn->rest_len;
	char why[LINK_WHY];
	long used = 0;
	ssize_t n;
	int err;

	n = recv(conn->fd, in + have, LINK_READ_BYTES, MSG_DONTWAIT);
	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return;
	if (n <= 0) {
		link_down(link, false,
			  n ? strerror(errno) : "by the other side");
		return;
	}
	if (have) {
		memcpy(in, conn->rest, have);
		free(conn->rest);
		conn->rest = NULL;
		conn->rest_len = 0;
		have += (size_t)n;
	} else {
		have = (size_t)n;
	}
	if (!link_begin_call(link))
		return;
	touch(link, (size_t)n);
	err = take_bytes(link, in, have, &used, why);
	link_end_call(link);
	if (err)
		drop_for_nonsense(link, why);
	else if (keep_rest(conn, in + used, have - (size_t)used))
		link_down(link, true, strerror(ENOMEM));
}

void link_event(struct link *link, struct conn *conn, unsigned events)
{
	if (events & EPOLLOUT) {
		pthread_mutex_lock(&link->lock);
		watch_for_room(link, false);
		pthread_mutex_unlock(&link->lock);
		link_write(link);
	}
	if (events & (EPOLLIN | EPOLLHUP | EPOLLERR))
		read_stream(link, conn);
}

void links_acknowledge(struct links *links)
{
	while (links->touched) {
		struct link *link = links->touched;
		uint64_t owed;

		links->touched = link->touched_next;
		link->touched = false;
		pthread_mutex_lock(&link->lock);
		owed = atomic_load(&link->received) - link->said;
		pthread_mutex_unlock(&link->lock);
		if (!owed)
			link->unsaid_bytes = 0;
		if (owed >= LINK_ACK_FRAMES ||
		    link->unsaid_bytes >= LINK_ACK_BYTES) {
			link->unsaid_bytes = 0;
			link_speak(link);
		}
	}
}
