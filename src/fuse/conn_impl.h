/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * conn_impl.h - a connection from inside: for conn*.c only.
 */
#ifndef UG_FUSE_CONN_IMPL_H
#define UG_FUSE_CONN_IMPL_H

#include <pthread.h>

#include "fuse/conn.h"

struct fuse_conn {
	pthread_mutex_t lock; /* guards nr_fds and the slots above it */
	unsigned nr_fds;
	int fds[FUSE_CONN_FDS_MAX]; /* fds[0] is the one that was mounted */
	/* Set by mounting, then constant. */
	char *mountpoint;
	char type[32];
};

#endif
