/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * tombstone.h - answers in the place of a mount process that has ended: EIO,
 * as a mount does that has withdrawn, until it is unmounted.
 *
 * A connection lives as long as one of its descriptors (fuse_conn_clone()) is
 * open, in whatever process. What the dead one had read is answered by the
 * kernel, ECONNABORTED; what it had not comes here.
 *
 * Pure but for the descriptor: knows nothing of files and sessions.
 */
#ifndef UG_FUSE_TOMBSTONE_H
#define UG_FUSE_TOMBSTONE_H

/* Serve this descriptor of a connection until the mount is gone. */
void fuse_tombstone_serve(int fd);

#endif
