/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * lifelock.c - see lifelock.h. flock(2), because its lock belongs to the open
 * file and not to the process: closing another descriptor of the file, as a
 * library may do, does not drop it.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>
#include <uuid/uuid.h>

#include "base/compiler.h"
#include "cluster/lifelock.h"

#define PATH_BYTES 512

static int life_path(const struct life_lock_name *name, char *path)
{
	char uuid[37];
	int n;

	uuid_unparse_lower(name->uuid, uuid);
	n = snprintf(path, PATH_BYTES, "%s/%s.%u.%u.life", name->dir, uuid,
		     name->node, name->instance);
	return n < 0 || n >= PATH_BYTES ? -ENAMETOOLONG : 0;
}

static int lock_file(const char *path, int flags)
{
	int fd = open(path, flags | O_RDWR | O_CLOEXEC | O_NOFOLLOW, 0600);
	int err;

	if (fd < 0)
		return -errno;
	if (flock(fd, LOCK_EX | LOCK_NB) == 0)
		return fd;
	err = errno == EWOULDBLOCK ? -EBUSY : -errno;
	close(fd);
	return err;
}

static int write_holder(int fd, const struct incarnation *holder)
{
	char text[96];
	int n = snprintf(text, sizeof(text), "pid %u\nstart %llu\n",
			 holder->pid, (unsigned long long)holder->start_ticks);

	if (ftruncate(fd, 0))
		return -errno;
	if (pwrite(fd, text, (size_t)n, 0) != n)
		return -EIO;
	return 0;
}

int life_lock_take(const struct life_lock_name *name,
		   const struct incarnation *holder)
{
	char path[PATH_BYTES];
	int fd, err = life_path(name, path);

	if (err)
		return err;
	if (mkdir(name->dir, 0755) && errno != EEXIST)
		return -errno;
	fd = lock_file(path, O_CREAT);
	if (fd < 0)
		return fd;
	err = write_holder(fd, holder);
	if (err) {
		close(fd);
		return err;
	}
	return fd;
}

/* The directory is emptied by a reboot: its holder is of this boot. */
static bool was_held_by(int fd, const struct incarnation *inc)
{
	unsigned long long start;
	char text[96];
	unsigned pid;
	ssize_t n = pread(fd, text, sizeof(text) - 1, 0);

	if (n <= 0)
		return false;
	text[n] = '\0';
	return sscanf(text, "pid %u\nstart %llu", &pid, &start) == 2 &&
	       pid == inc->pid && start == inc->start_ticks;
}

int life_lock_prove(const struct life_lock_name *name,
		    const struct incarnation *inc, int *fd)
{
	char path[PATH_BYTES];
	int got, err = life_path(name, path);

	if (err)
		return err;
	got = lock_file(path, 0);
	if (got < 0)
		return got;
	if (!was_held_by(got, inc)) {
		close(got);
		return -ESTALE;
	}
	*fd = got;
	return 0;
}
