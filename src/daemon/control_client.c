/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * control_client.c - see control_client.h.
 */
#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "daemon/control_client.h"

#define SUFFIX ".control"
#define CHUNK 65536u
#define CONNECT_TRIES 200
#define CONNECT_PAUSE_US 10000

/* Finding */

static int hex_digit(char c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	return c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;
}

/* What control_socket_name() has made of it; in place. */
static bool decode_name(char *text)
{
	char *to = text;

	for (char *c = text; *c; c++) {
		if (*c != '%') {
			*to++ = *c;
			continue;
		}
		if (hex_digit(c[1]) < 0 || hex_digit(c[2]) < 0)
			return false;
		*to++ = (char)(hex_digit(c[1]) << 4 | hex_digit(c[2]));
		c += 2;
	}
	*to = '\0';
	return true;
}

/* KIND.NAME.PID.control: 1, with peer filled in; 0: something else. */
static int parse_file(const char *file, const char *kind,
		      struct control_peer *peer)
{
	size_t kind_len = strlen(kind), len = strlen(file);
	const char *rest = file + kind_len + 1;
	char *name, *pid;

	if (len >= sizeof(peer->file) || strncmp(file, kind, kind_len) != 0 ||
	    file[kind_len] != '.' || len < kind_len + sizeof(SUFFIX) ||
	    strcmp(file + len - strlen(SUFFIX), SUFFIX) != 0)
		return 0;
	name = strndup(rest, len - kind_len - 1 - strlen(SUFFIX));
	if (!name)
		return -ENOMEM;
	pid = strrchr(name, '.');
	if (!pid || !isdigit((unsigned char)pid[1])) {
		free(name);
		return 0;
	}
	*pid++ = '\0';
	peer->pid = atoi(pid);
	strcpy(peer->file, file);
	peer->name = name;
	if (decode_name(name))
		return 1;
	free(name);
	return 0;
}

static int connect_peer(const char *dir, const char *file)
{
	struct sockaddr_un addr = { .sun_family = AF_UNIX };
	int dir_fd = open(dir, O_DIRECTORY | O_RDONLY | O_CLOEXEC);
	int fd, n, err = 0;

	if (dir_fd < 0)
		return -errno;
	n = snprintf(addr.sun_path, sizeof(addr.sun_path),
		     "/proc/self/fd/%d/%s", dir_fd, file);
	fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (fd < 0)
		err = -errno;
	else if (n >= (int)sizeof(addr.sun_path))
		err = -ENAMETOOLONG;
	/* With its queue full it would block. */
	else if (fcntl(fd, F_SETFL, O_NONBLOCK) ||
		 connect(fd, (struct sockaddr *)&addr, sizeof(addr)))
		err = -errno;
	if (err == -ECONNREFUSED)
		unlinkat(dir_fd, file, 0);
	if (err && fd >= 0)
		close(fd);
	close(dir_fd);
	return err ? err : fd;
}

/* A queue that is full empties at once, if the process is not stopped. */
static int connect_patiently(const char *dir, const char *file)
{
	int fd = connect_peer(dir, file);

	for (unsigned i = 0; fd == -EAGAIN && i < CONNECT_TRIES; i++) {
		usleep(CONNECT_PAUSE_US);
		fd = connect_peer(dir, file);
	}
	return fd;
}

static bool is_left_over(const char *dir, const char *file)
{
	int fd = connect_peer(dir, file);

	if (fd >= 0)
		close(fd);
	return fd == -ECONNREFUSED || fd == -ENOENT;
}

static int compare(const void *a, const void *b)
{
	const struct control_peer *x = a, *y = b;
	int order = strcmp(x->name, y->name);

	return order ? order : x->pid - y->pid;
}

/* Takes the peer's name over. */
static int add(struct control_peers *list, const struct control_peer *peer)
{
	struct control_peer *more;

	more = reallocarray(list->peer, list->count + 1, sizeof(*more));
	if (!more) {
		free(peer->name);
		return -ENOMEM;
	}
	list->peer = more;
	more[list->count++] = *peer;
	return 0;
}

static int look_at(const char *dir, const char *file, const char *kind,
		   const char *name, struct control_peers *list)
{
	struct control_peer peer;
	int err = parse_file(file, kind, &peer);

	if (err <= 0)
		return err;
	if ((name && strcmp(name, peer.name) != 0) || is_left_over(dir, file)) {
		free(peer.name);
		return 0;
	}
	return add(list, &peer);
}

int control_find(const char *dir, const char *kind, const char *name,
		 struct control_peers *out)
{
	struct control_peers list = { 0 };
	DIR *d = opendir(dir);
	struct dirent *de;
	int err = 0;

	*out = list;
	if (!d)
		return errno == ENOENT ? 0 : -errno;
	while (!err && (de = readdir(d)))
		err = look_at(dir, de->d_name, kind, name, &list);
	closedir(d);
	if (err) {
		control_peers_free(&list);
		return err;
	}
	if (list.count)
		qsort(list.peer, list.count, sizeof(*list.peer), compare);
	*out = list;
	return 0;
}

void control_peers_free(struct control_peers *peers)
{
	for (size_t i = 0; i < peers->count; i++)
		free(peers->peer[i].name);
	free(peers->peer);
	*peers = (struct control_peers){ 0 };
}

/* Asking */

struct answer {
	char *buf;
	size_t len, room;
};

static int send_all(int fd, const char *text, int timeout_ms)
{
	size_t len = strlen(text);

	while (len) {
		struct pollfd pfd = { fd, POLLOUT, 0 };
		ssize_t n = send(fd, text, len, MSG_NOSIGNAL);

		if (n > 0) {
			text += n;
			len -= (size_t)n;
		} else if (errno == EAGAIN) {
			if (poll(&pfd, 1, timeout_ms) == 0)
				return -ETIMEDOUT;
		} else if (errno != EINTR) {
			return -errno;
		}
	}
	return 0;
}

static int make_room(struct answer *a)
{
	size_t room = a->room ? 2 * a->room : CHUNK;
	char *more;

	if (a->len < a->room)
		return 0;
	if (room > CONTROL_ANSWER_MAX)
		return -EMSGSIZE;
	more = realloc(a->buf, room);
	if (!more)
		return -ENOMEM;
	a->buf = more;
	a->room = room;
	return 0;
}

/*
 * The next line's length, newline included. One who was turned away before the
 * request was read gets a reset first, and then what was said.
 */
static ssize_t read_line(int fd, struct answer *a, int timeout_ms)
{
	bool reset = false;
	size_t seen = 0;

	for (;;) {
		struct pollfd pfd = { fd, POLLIN, 0 };
		char *end = a->len > seen
				    ? memchr(a->buf + seen, '\n', a->len - seen)
				    : NULL;
		ssize_t n;
		int err;

		if (end)
			return end - a->buf + 1;
		err = make_room(a);
		if (err)
			return err;
		seen = a->len;
		n = poll(&pfd, 1, timeout_ms);
		if (n == 0)
			return -ETIMEDOUT;
		n = recv(fd, a->buf + a->len, a->room - a->len, 0);
		if (n == 0)
			return -ECONNRESET;
		if (n < 0 && errno == ECONNRESET && !reset)
			reset = true;
		else if (n < 0 && errno != EINTR && errno != EAGAIN)
			return -errno;
		if (n > 0)
			a->len += (size_t)n;
	}
}

/* What comes before the result. */
static int pass_on(const struct control_question *q, enum control_answer kind,
		   const json_t *value)
{
	if (kind == CONTROL_NOTE && q->note)
		q->note(json_string_value(value));
	if (kind == CONTROL_TEXT && q->text &&
	    !q->text(json_string_value(value), json_string_length(value)))
		return -EPIPE;
	return 0;
}

static int read_answer(const struct control_question *q, int fd,
		       struct answer *a, json_t **result, char *why,
		       size_t why_len)
{
	for (;;) {
		enum control_answer kind;
		json_t *value;
		ssize_t len;
		int err, failed;

		why[0] = '\0';
		len = read_line(fd, a, q->timeout_ms);
		if (len < 0)
			return (int)len;
		err = control_parse_answer(a->buf, (size_t)len - 1, &kind,
					   &value, &failed, why, why_len);
		if (err)
			return err;
		memmove(a->buf, a->buf + len, a->len - (size_t)len);
		a->len -= (size_t)len;
		if (kind == CONTROL_ERROR)
			return failed;
		if (kind == CONTROL_RESULT) {
			*result = value;
			return 0;
		}
		err = pass_on(q, kind, value);
		json_decref(value);
		if (err)
			return err;
	}
}

/* What the peer has not said itself. */
static void explain(const struct control_question *q, int err, char *why,
		    size_t why_len)
{
	const struct control_peer *peer = q->peer;

	if (err == -ETIMEDOUT || err == -EAGAIN)
		snprintf(why, why_len,
			 "process %d of %s does not answer (is it stopped?)",
			 peer->pid, peer->name);
	else if (err == -ECONNRESET || err == -EPIPE || err == -ECONNREFUSED)
		snprintf(why, why_len, "process %d of %s has ended", peer->pid,
			 peer->name);
	else if (err == -EMSGSIZE)
		snprintf(why, why_len,
			 "the answer of process %d is longer than 1 GiB",
			 peer->pid);
	else
		snprintf(why, why_len, "asking process %d of %s: %s", peer->pid,
			 peer->name, strerror(-err));
}

int control_ask(const struct control_question *q, json_t **result, char *why,
		size_t why_len)
{
	char *line = control_request(q->verb, q->args);
	struct answer a = { 0 };
	int fd, err = -ENOMEM;

	why[0] = '\0';
	fd = connect_patiently(q->dir, q->peer->file);
	if (fd < 0)
		err = fd;
	else if (line)
		err = send_all(fd, line, q->timeout_ms);
	if (!err || (fd >= 0 && (err == -EPIPE || err == -ECONNRESET)))
		err = read_answer(q, fd, &a, result, why, why_len);
	if (err && !why[0])
		explain(q, err, why, why_len);
	if (fd >= 0)
		close(fd);
	free(a.buf);
	free(line);
	return err;
}

enum exit_code control_exit_code(int err)
{
	switch (err) {
	case -EINVAL:
	case -EPERM:
	case -EACCES:
		return EXIT_USAGE;
	case -ENOMEM:
		return EXIT_SYSTEM;
	case -ECONNRESET:
	case -EPIPE:
	case -ESHUTDOWN:
		return EXIT_INTERNAL;
	default:
		return EXIT_MOUNT;
	}
}
