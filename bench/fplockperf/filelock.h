/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * filelock.h - a lock of a whole file, of one of the three kinds of Linux.
 *
 * Source: flock(2), fcntl(2).
 */
#ifndef UG_BENCH_FILELOCK_H
#define UG_BENCH_FILELOCK_H

#include <stdbool.h>

enum file_lock_kind {
	FILE_LOCK_FLOCK,
	FILE_LOCK_PLOCK, /* fcntl, of the process */
	FILE_LOCK_OFD,	 /* fcntl, of the open file */
};
#define FILE_LOCK_KINDS 3u

/* As it is called on the command line and in results. */
const char *file_lock_name(enum file_lock_kind kind);

/*
 * Wait for the lock. fd is open for reading and writing. 0 or -errno; -EINTR
 * after a signal whose handler does not restart calls.
 */
int file_lock(int fd, enum file_lock_kind kind, bool shared);

int file_unlock(int fd, enum file_lock_kind kind);

#endif
