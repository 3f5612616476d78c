/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * control_server.c - see control_server.h.
 */
#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#include "base/log.h"
#include "daemon/control_server.h"

/* How long an answer may take when the process ends. */
#define STOP_ANSWER_MS 2000
/* Without descriptors or threads: until the next try. */
#define PAUSE_MS 100

struct control_server {
	const struct control_verb *verbs;
	void *arg;
	int listen_fd;
	int stop_fd; /* readable from the stop on */
	int dir_fd;
	char file[sizeof(((struct sockaddr_un *)0)->sun_path)];
	pthread_t thread;
	pthread_mutex_t lock; /* workers, stopping */
	pthread_cond_t cond;
	unsigned workers;
	bool stopping;
};

struct connection {
	struct control_call call;
	struct control_server *server;
	int fd;
	bool broken;
	size_t len;
	char buf[CONTROL_REQUEST_MAX];
};

static int64_t now_ms(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (int64_t)ts.tv_sec * 1000 + ts.tv_nsec / 1000000;
}

static bool is_stopping(struct control_server *server)
{
	bool stopping;

	pthread_mutex_lock(&server->lock);
	stopping = server->stopping;
	pthread_mutex_unlock(&server->lock);
	return stopping;
}

/* A connection: reading and writing */

/* Readable 0, or -ETIMEDOUT, -ESHUTDOWN. */
static int await_request(struct connection *c, int64_t deadline)
{
	struct pollfd fds[] = { { c->fd, POLLIN, 0 },
				{ c->server->stop_fd, POLLIN, 0 } };
	int64_t left;

	do {
		left = deadline - now_ms();
		if (left <= 0)
			return -ETIMEDOUT;
		if (poll(fds, 2, (int)left) > 0)
			return fds[0].revents ? 0 : -ESHUTDOWN;
	} while (true);
}

/* The length of the next line in buf, newline included; 0: the end. */
static ssize_t read_line(struct connection *c)
{
	int64_t deadline = now_ms() + CONTROL_REQUEST_MS;
	size_t seen = 0;

	for (;;) {
		char *end = memchr(c->buf + seen, '\n', c->len - seen);
		ssize_t n;
		int err;

		if (end)
			return end - c->buf + 1;
		if (c->len == sizeof(c->buf))
			return -EMSGSIZE;
		seen = c->len;
		err = await_request(c, deadline);
		if (err)
			return err;
		n = recv(c->fd, c->buf + c->len, sizeof(c->buf) - c->len, 0);
		if (n == 0)
			return 0;
		if (n < 0 && errno != EINTR && errno != EAGAIN)
			return -errno;
		if (n > 0)
			c->len += (size_t)n;
	}
}

static int send_line(struct control_call *call, const char *line, size_t len)
{
	struct connection *c = (struct connection *)call;

	while (len && !c->broken) {
		struct pollfd fd = { c->fd, POLLOUT, 0 };
		ssize_t n = send(c->fd, line, len, MSG_NOSIGNAL | MSG_DONTWAIT);
		int ms;

		if (n > 0) {
			line += n;
			len -= (size_t)n;
		} else if (errno == EAGAIN) {
			ms = is_stopping(c->server) ? STOP_ANSWER_MS
						    : CONTROL_ANSWER_MS;
			c->broken = poll(&fd, 1, ms) <= 0;
		} else if (errno != EINTR) {
			c->broken = true;
		}
	}
	return c->broken ? -ECONNRESET : 0;
}

static int wait_for(struct control_call *call, int fd, int timeout_ms)
{
	struct connection *c = (struct connection *)call;
	int64_t end = now_ms() + timeout_ms;

	for (;;) {
		struct pollfd fds[] = { { fd, POLLIN, 0 },
					{ c->fd, POLLRDHUP, 0 },
					{ c->server->stop_fd, POLLIN, 0 } };
		int64_t left = timeout_ms < 0 ? -1 : UG_MAX(end - now_ms(), 0);
		int n = poll(fds, 3, (int)left);

		if (n == 0 && left == 0)
			return -ETIMEDOUT;
		if (n <= 0)
			continue;
		if (fds[0].revents)
			return 0;
		return fds[2].revents ? -ESHUTDOWN : -ECONNRESET;
	}
}

static const struct control_call_ops call_ops = {
	.send = send_line,
	.wait = wait_for,
};

static void answer(struct connection *c, size_t len)
{
	char *line = control_dispatch(c->server->verbs, c->server->arg,
				      &c->call, c->buf, len - 1);

	/* Without memory for an answer there is the end of the connection. */
	if (line)
		send_line(&c->call, line, strlen(line));
	else
		c->broken = true;
	free(line);
	memmove(c->buf, c->buf + len, c->len - len);
	c->len -= len;
}

static void refuse_long(struct connection *c)
{
	char *line = control_error(-EMSGSIZE, "the request is longer than "
					      "65536 bytes");

	if (line)
		send_line(&c->call, line, strlen(line));
	free(line);
}

static void *worker_main(void *arg)
{
	struct connection *c = arg;
	struct control_server *server = c->server;
	ssize_t len;

	pthread_setname_np(pthread_self(), "control work");
	do {
		len = read_line(c);
		if (len > 0)
			answer(c, (size_t)len);
	} while (len > 0 && !c->broken && !is_stopping(server));
	if (len == -EMSGSIZE)
		refuse_long(c);
	close(c->fd);
	free(c);
	pthread_mutex_lock(&server->lock);
	server->workers--;
	pthread_cond_signal(&server->cond);
	pthread_mutex_unlock(&server->lock);
	return NULL;
}

/* The server's thread */

static bool is_allowed(int fd)
{
	struct ucred cred;
	socklen_t len = sizeof(cred);

	return !getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &cred, &len) &&
	       (cred.uid == 0 || cred.uid == geteuid());
}

static void turn_away(int fd, int err, const char *why)
{
	char *line = control_error(err, why);

	if (line &&
	    send(fd, line, strlen(line), MSG_NOSIGNAL | MSG_DONTWAIT) < 0)
		ug_debug("control", "a client did not hear: %s", why);
	free(line);
	close(fd);
}

static bool add_worker(struct control_server *server)
{
	bool room;

	pthread_mutex_lock(&server->lock);
	room = server->workers < CONTROL_CONNECTIONS;
	server->workers += room;
	pthread_mutex_unlock(&server->lock);
	return room;
}

static void drop_worker(struct control_server *server)
{
	pthread_mutex_lock(&server->lock);
	server->workers--;
	pthread_mutex_unlock(&server->lock);
}

static int start_worker(struct control_server *server, int fd)
{
	struct connection *c = calloc(1, sizeof(*c));
	pthread_attr_t attr;
	pthread_t thread;
	int err;

	if (!c)
		return -ENOMEM;
	c->call.ops = &call_ops;
	c->server = server;
	c->fd = fd;
	pthread_attr_init(&attr);
	pthread_attr_setdetachstate(&attr, PTHREAD_CREATE_DETACHED);
	err = pthread_create(&thread, &attr, worker_main, c);
	pthread_attr_destroy(&attr);
	if (err)
		free(c);
	return -err;
}

static void take_connection(struct control_server *server)
{
	int fd = accept4(server->listen_fd, NULL, NULL, SOCK_CLOEXEC);

	if (fd < 0) {
		/* Out of descriptors it would be readable all the time. */
		if (errno != ECONNABORTED && errno != EINTR)
			poll(&(struct pollfd){ server->stop_fd, POLLIN, 0 }, 1,
			     PAUSE_MS);
		return;
	}
	if (!is_allowed(fd)) {
		turn_away(fd, -EPERM, "only root may ask");
		return;
	}
	if (!add_worker(server)) {
		turn_away(fd, -EBUSY, "too many control connections");
		return;
	}
	if (start_worker(server, fd)) {
		drop_worker(server);
		turn_away(fd, -ENOMEM, "out of memory");
	}
}

static void *server_main(void *arg)
{
	struct control_server *server = arg;
	struct pollfd fds[] = { { server->listen_fd, POLLIN, 0 },
				{ server->stop_fd, POLLIN, 0 } };

	pthread_setname_np(pthread_self(), "control");
	while (!fds[1].revents)
		if (poll(fds, 2, -1) > 0 && fds[0].revents)
			take_connection(server);
	return NULL;
}

/* Setting up */

int control_socket_name(const char *kind, const char *name, int pid, char *buf,
			size_t len)
{
	char text[3 * 256 + 1], *c = text;
	int n;

	if (strlen(name) > 256)
		return -ENAMETOOLONG;
	for (const char *s = name; *s; s++)
		if (isalnum((unsigned char)*s) || strchr("_-+:@", *s))
			*c++ = *s;
		else
			c += sprintf(c, "%%%02X", (unsigned char)*s);
	*c = '\0';
	n = snprintf(buf, len, "%s.%s.%d.control", kind, text, pid);
	return n < 0 || (size_t)n >= len ? -ENAMETOOLONG : 0;
}

/*
 * Bound and listening under a name that nobody looks for, then renamed: who
 * finds the final name can connect, else it is left over.
 */
static int bind_socket(struct control_server *server)
{
	struct sockaddr_un addr = { .sun_family = AF_UNIX };
	char draft[64];

	snprintf(draft, sizeof(draft), "new.%d", (int)getpid());
	snprintf(addr.sun_path, sizeof(addr.sun_path), "/proc/self/fd/%d/%s",
		 server->dir_fd, draft);
	unlinkat(server->dir_fd, draft, 0);
	if (bind(server->listen_fd, (struct sockaddr *)&addr, sizeof(addr)) ||
	    fchmodat(server->dir_fd, draft, 0600, 0) ||
	    listen(server->listen_fd, 64) ||
	    renameat(server->dir_fd, draft, server->dir_fd, server->file))
		return -errno;
	return 0;
}

static int open_all(struct control_server *server, const char *dir)
{
	if (mkdir(dir, 0755) && errno != EEXIST)
		return -errno;
	server->dir_fd = open(dir, O_DIRECTORY | O_RDONLY | O_CLOEXEC);
	if (server->dir_fd < 0)
		return -errno;
	server->stop_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (server->stop_fd < 0)
		return -errno;
	server->listen_fd =
		socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (server->listen_fd < 0)
		return -errno;
	return bind_socket(server);
}

static void server_free(struct control_server *server)
{
	if (server->listen_fd >= 0)
		close(server->listen_fd);
	if (server->stop_fd >= 0)
		close(server->stop_fd);
	if (server->dir_fd >= 0)
		close(server->dir_fd);
	pthread_cond_destroy(&server->cond);
	pthread_mutex_destroy(&server->lock);
	free(server);
}

int control_server_start(const struct control_server_config *config,
			 struct control_server **out, char *why, size_t why_len)
{
	struct control_server *server = calloc(1, sizeof(*server));
	int err;

	if (!server) {
		snprintf(why, why_len, "out of memory");
		return -ENOMEM;
	}
	server->verbs = config->verbs;
	server->arg = config->arg;
	server->listen_fd = server->stop_fd = server->dir_fd = -1;
	pthread_mutex_init(&server->lock, NULL);
	pthread_cond_init(&server->cond, NULL);
	err = control_socket_name(config->kind, config->name, (int)getpid(),
				  server->file, sizeof(server->file));
	if (!err)
		err = open_all(server, config->dir);
	if (!err)
		err = -pthread_create(&server->thread, NULL, server_main,
				      server);
	if (err) {
		snprintf(why, why_len, "control socket %s/%s: %s", config->dir,
			 server->file, strerror(-err));
		server_free(server);
		return err;
	}
	*out = server;
	return 0;
}

void control_server_stop(struct control_server *server)
{
	if (!server)
		return;
	pthread_mutex_lock(&server->lock);
	server->stopping = true;
	pthread_mutex_unlock(&server->lock);
	unlinkat(server->dir_fd, server->file, 0);
	if (eventfd_write(server->stop_fd, 1))
		ug_error("control", "eventfd: %s", strerror(errno));
	pthread_join(server->thread, NULL);
	pthread_mutex_lock(&server->lock);
	while (server->workers)
		pthread_cond_wait(&server->cond, &server->lock);
	pthread_mutex_unlock(&server->lock);
	server_free(server);
}
