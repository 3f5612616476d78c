/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * filelock.c - locks of whole files.
 */
#include <errno.h>
#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include "filelock.h"

const char *file_lock_name(enum file_lock_kind kind)
{
	static const char *const names[FILE_LOCK_KINDS] = {
		[FILE_LOCK_FLOCK] = "flock",
		[FILE_LOCK_PLOCK] = "plock",
		[FILE_LOCK_OFD] = "ofd",
	};

	return names[kind];
}

static int record_lock(int fd, enum file_lock_kind kind, short type)
{
	struct flock lock = { .l_type = type, .l_whence = SEEK_SET };

	return fcntl(fd, kind == FILE_LOCK_OFD ? F_OFD_SETLKW : F_SETLKW, &lock)
		       ? -errno
		       : 0;
}

int file_lock(int fd, enum file_lock_kind kind, bool shared)
{
	if (kind == FILE_LOCK_FLOCK)
		return flock(fd, shared ? LOCK_SH : LOCK_EX) ? -errno : 0;
	return record_lock(fd, kind, shared ? F_RDLCK : F_WRLCK);
}

int file_unlock(int fd, enum file_lock_kind kind)
{
	if (kind == FILE_LOCK_FLOCK)
		return flock(fd, LOCK_UN) ? -errno : 0;
	return record_lock(fd, kind, F_UNLCK);
}
