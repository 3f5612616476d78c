/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * conn.c - the descriptors of a connection, and what is written to them
 * unasked.
 */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "fuse/conn_impl.h"
#include "fuse/encode.h"

#define FUSE_DEVICE "/dev/fuse"

static int device_open(int *fd)
{
	*fd = open(FUSE_DEVICE, O_RDWR | O_CLOEXEC);
	return *fd < 0 ? -errno : 0;
}

int fuse_conn_open(struct fuse_conn **connp)
{
	struct fuse_conn *conn = calloc(1, sizeof(*conn));
	int err;

	if (!conn)
		return -ENOMEM;
	err = device_open(&conn->fds[0]);
	if (err) {
		free(conn);
		return err;
	}
	conn->nr_fds = 1;
	pthread_mutex_init(&conn->lock, NULL);
	*connp = conn;
	return 0;
}

void fuse_conn_close(struct fuse_conn *conn)
{
	if (!conn)
		return;
	for (unsigned i = 0; i < conn->nr_fds; i++)
		close(conn->fds[i]);
	pthread_mutex_destroy(&conn->lock);
	free(conn->mountpoint);
	free(conn);
}

int fuse_conn_fd(const struct fuse_conn *conn)
{
	return conn->fds[0];
}

static int conn_keep(struct fuse_conn *conn, int fd)
{
	int err = -EMFILE;

	pthread_mutex_lock(&conn->lock);
	if (conn->nr_fds < FUSE_CONN_FDS_MAX) {
		conn->fds[conn->nr_fds++] = fd;
		err = 0;
	}
	pthread_mutex_unlock(&conn->lock);
	return err;
}

int fuse_conn_clone(struct fuse_conn *conn, int *fd)
{
	uint32_t master = (uint32_t)conn->fds[0];
	int clone;
	int err = device_open(&clone);

	if (err)
		return err;
	if (ioctl(clone, FUSE_DEV_IOC_CLONE, &master))
		err = -errno;
	else
		err = conn_keep(conn, clone);
	if (err) {
		close(clone);
		return err;
	}
	*fd = clone;
	return 0;
}

static int conn_notify(struct fuse_conn *conn,
		       const struct fuse_notify_inval *note)
{
	if (write(conn->fds[0], note, sizeof(*note)) >= 0)
		return 0;
	return -errno;
}

int fuse_conn_inval_attr(struct fuse_conn *conn, uint64_t nodeid)
{
	struct fuse_notify_inval note;

	fuse_encode_inval_attr(&note, nodeid);
	return conn_notify(conn, &note);
}

int fuse_conn_inval_data(struct fuse_conn *conn, uint64_t nodeid,
			 uint64_t offset, uint64_t len)
{
	struct fuse_notify_inval note;

	fuse_encode_inval_data(&note, nodeid, offset, len);
	return conn_notify(conn, &note);
}
