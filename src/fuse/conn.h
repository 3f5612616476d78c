/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * conn.h - a connection to the kernel: /dev/fuse, the mount on it, INIT.
 *
 * The order of a mount process:
 *
 *	fuse_conn_open(&conn)		before anything of the file system, so
 *					that a missing device is found early
 *	fs_mount(...)			src/fs
 *	fuse_conn_mount(conn, ...)	the kernel queues INIT and returns;
 *					requests wait from here on
 *	fuse_session_run(...)		answers INIT, then serves (session.h)
 *	fs_unmount(...)
 *	fuse_conn_close(conn)		of a mount that is still there: its
 *					requests end with ENOTCONN
 *
 * Nothing here opens, stats or lists anything below the mount point: that
 * would be a request to ourselves (docs/spec/fuse.md 3.5).
 *
 * Threads: notifications and clones from any thread, the rest from one.
 * Source: docs/spec/fuse.md 4, 11, 13; DESIGN 5.10.
 */
#ifndef UG_FUSE_CONN_H
#define UG_FUSE_CONN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/compiler.h"
#include "fuse/kabi.h"

struct fuse_conn;

/* Open the device. 0; -ENOENT, -EACCES, ... of open(2); -ENOMEM. */
int fuse_conn_open(struct fuse_conn **connp);

/* Every descriptor of it is closed. NULL is accepted. */
void fuse_conn_close(struct fuse_conn *conn);

/* ---- mount(2) ---- */

struct fuse_mount_params {
	const char *source; /* as /proc/mounts will show it: the device, or the
			     * image file */
	const char *mountpoint; /* an existing directory */
	const char *subtype;	/* "ugfs" */
	/*
	 * source is a block special file: mount it as fuseblk, where umount
	 * waits for us. The kernel claims the device, so that it must not be
	 * open with O_EXCL (in this or another process). Where the kernel
	 * refuses, it becomes a plain fuse mount, with a line in the log.
	 */
	bool blockdev;
	uint32_t blksize;	/* of the file system; for fuseblk */
	unsigned long ms_flags; /* MS_RDONLY, MS_NOSUID, MS_NODEV, ... */
};

/*
 * Mount. 0, or with a sentence for the user in why: -ENOTDIR, -ENOENT, -EACCES
 * the mount point; -EBUSY source is mounted there already; -ENOTCONN a mount
 * whose process has died is there; -EPERM no right to mount; -ENODEV no FUSE
 * in this kernel; else the errno of mount(2).
 */
int fuse_conn_mount(struct fuse_conn *conn,
		    const struct fuse_mount_params *params, char *why,
		    size_t why_len);

/* Of a mounted connection: "fuseblk.ugfs" or "fuse.ugfs". */
const char *fuse_conn_type(const struct fuse_conn *conn);

/* The mount point, as a full path. */
const char *fuse_conn_mountpoint(const struct fuse_conn *conn);

/*
 * Take the mount away again. flags: umount2(2)'s; MNT_DETACH succeeds while it
 * is in use, MNT_FORCE ends waiting requests with errors. Waits for us
 * in a fuseblk mount, so not from a thread of the session. 0, -EBUSY, -EINVAL
 * (not mounted any more), ...
 */
int fuse_conn_unmount(struct fuse_conn *conn, int flags);

/*
 * How far the kernel reads ahead in cached files, for the whole mount. The
 * kernel starts with 128 KiB (docs/spec/fuse.md 6.13). After INIT has been
 * answered. 0 or the errno of finding or writing the setting.
 */
int fuse_conn_set_readahead(struct fuse_conn *conn, unsigned kib);

/* ---- INIT ---- */

/* What we would like of the kernel. */
struct fuse_wants {
	uint64_t flags;	    /* FUSE_* flags of INIT, used where offered */
	uint32_t max_write; /* at most FUSE_MAX_WRITE */
	uint32_t max_readahead;
};

/* What both sides have. */
struct fuse_agreed {
	uint64_t flags;
	uint32_t minor; /* of the kernel */
	uint32_t max_write;
};

/*
 * Pure: answer an INIT. 0; -EPROTO if the kernel is too old, with out the
 * answer that tells it so; -EAGAIN if it speaks a newer major version: out
 * names ours, and another INIT will follow.
 */
int fuse_init_answer(const struct fuse_init_in *in,
		     const struct fuse_wants *wants, struct fuse_init_out *out,
		     struct fuse_agreed *agreed);

/*
 * Wait for INIT and answer it: the first read of the device. 0; -EPROTO kernel
 * too old, or its first request is not INIT; -ENODEV unmounted meanwhile;
 * -EINTR a signal; -ENOMEM.
 */
int fuse_conn_negotiate(struct fuse_conn *conn, const struct fuse_wants *wants,
			struct fuse_agreed *agreed);

/* ---- traffic ---- */

/* The descriptor of the connection; borrowed. */
int fuse_conn_fd(const struct fuse_conn *conn);

/*
 * A further descriptor, with its own queue of requests in progress, for a
 * reader of its own: the answer to a request goes to the descriptor it was read
 * from. After mounting. Owned by the connection. -EMFILE, -ENOSPC, ...
 */
int fuse_conn_clone(struct fuse_conn *conn, int *fd);

/*
 * Drop what the kernel keeps of a node. attr: its attributes, in a few
 * microseconds, whatever is in flight. data: its attributes and pages; this
 * waits for READs and partial WRITEs of the node that are unanswered, and
 * for the WRITEs of its dirty mapped pages (docs/spec/fuse.md 4.2), so never
 * from a thread that has one of them to answer, nor with a lock that
 * answering takes; bytes [offset, offset + len), len 0: to the end of the file.
 * 0; -ENOENT the kernel has not got the node; -ENODEV, ...
 */
int fuse_conn_inval_attr(struct fuse_conn *conn, uint64_t nodeid);
int fuse_conn_inval_data(struct fuse_conn *conn, uint64_t nodeid,
			 uint64_t offset, uint64_t len);

/* How many descriptors one connection can have. */
#define FUSE_CONN_FDS_MAX 64u

#endif
