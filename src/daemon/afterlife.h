/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * afterlife.h - what a cluster mount answers whose process has died.
 *
 * The supervisor kills a process that the cluster has expelled, since nothing
 * else proves that it writes no more. The mount process leaves it a descriptor
 * of the connection to the kernel, through a socket that both have; the
 * supervisor takes it out when it has reaped the process, and answers EIO until
 * the mount is gone. docs/adr/0003-who-answers-for-the-dead.md
 *
 *	mount process				supervisor
 *	afterlife_open()			(forked later)
 *	afterlife_leave()   ---- fd ---->	(in the socket)
 *	ends					afterlife_ended()
 *						afterlife_last()
 */
#ifndef UG_DAEMON_AFTERLIFE_H
#define UG_DAEMON_AFTERLIFE_H

#include <pthread.h>
#include <stdbool.h>

struct afterlife {
	int left, taken; /* the two ends; -1: none */
	int fd;		 /* of the connection */
	bool serving;
	pthread_t thread;
};

/* Before the supervisor is forked. 0 or -errno. */
int afterlife_open(struct afterlife *al);

/* The mount process: the descriptor stays its own as well. 0 or -errno. */
int afterlife_leave(struct afterlife *al, int fuse_fd);

/* The supervisor, for ugdlm_supervise(); arg is the struct afterlife. */
void afterlife_ended(void *arg, bool left);
void afterlife_last(void *arg);

#endif
