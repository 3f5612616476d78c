/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * afterlife.c - see afterlife.h.
 */
#include <errno.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/log.h"
#include "daemon/afterlife.h"
#include "fuse/tombstone.h"

/* Room for one descriptor beside a message, as sendmsg(2) wants it. */
union passing {
	struct cmsghdr align;
	char bytes[CMSG_SPACE(sizeof(int))];
};

int afterlife_open(struct afterlife *al)
{
	int fds[2];

	*al = (struct afterlife){ .left = -1, .taken = -1, .fd = -1 };
	if (socketpair(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0, fds))
		return -errno;
	al->left = fds[0];
	al->taken = fds[1];
	return 0;
}

int afterlife_leave(struct afterlife *al, int fuse_fd)
{
	union passing passing = { 0 };
	char byte = 0;
	struct iovec iov = { &byte, 1 };
	struct msghdr msg = {
		.msg_iov = &iov,
		.msg_iovlen = 1,
		.msg_control = passing.bytes,
		.msg_controllen = sizeof(passing.bytes),
	};
	struct cmsghdr *head = CMSG_FIRSTHDR(&msg);

	head->cmsg_level = SOL_SOCKET;
	head->cmsg_type = SCM_RIGHTS;
	head->cmsg_len = CMSG_LEN(sizeof(fuse_fd));
	memcpy(CMSG_DATA(head), &fuse_fd, sizeof(fuse_fd));
	return sendmsg(al->left, &msg, MSG_DONTWAIT) < 0 ? -errno : 0;
}

/* -1: none has been left. */
static int take(struct afterlife *al)
{
	union passing passing;
	char byte;
	struct iovec iov = { &byte, 1 };
	struct msghdr msg = {
		.msg_iov = &iov,
		.msg_iovlen = 1,
		.msg_control = passing.bytes,
		.msg_controllen = sizeof(passing.bytes),
	};
	struct cmsghdr *head;
	int fd = -1;

	if (recvmsg(al->taken, &msg, MSG_DONTWAIT | MSG_CMSG_CLOEXEC) < 0)
		return -1;
	head = CMSG_FIRSTHDR(&msg);
	if (head && head->cmsg_type == SCM_RIGHTS)
		memcpy(&fd, CMSG_DATA(head), sizeof(fd));
	return fd;
}

static void *serve(void *arg)
{
	struct afterlife *al = arg;

	fuse_tombstone_serve(al->fd);
	return NULL;
}

/* What is not taken out of the socket ends with it. */
void afterlife_ended(void *arg, bool left)
{
	struct afterlife *al = arg;

	if (al->taken < 0)
		return;
	if (!left)
		al->fd = take(al);
	close(al->taken);
	al->taken = -1;
	if (al->fd < 0)
		return;
	al->serving = !pthread_create(&al->thread, NULL, serve, al);
	if (al->serving)
		ug_error("supervisor",
			 "the mount process has died: the cluster goes on "
			 "without it, and the mount answers with errors until "
			 "it is unmounted");
	else
		close(al->fd);
}

void afterlife_last(void *arg)
{
	struct afterlife *al = arg;

	if (al->serving)
		pthread_join(al->thread, NULL);
}
