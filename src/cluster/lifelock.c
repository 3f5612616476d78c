/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * lifelock.c - see lifelock.h. flock(2), because its lock belongs to the open
 * file and not to the process: closing another descriptor of the file, as a
 * library may do, does not drop it.
 */
#include <dirent.h>
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
#define TAKE_TRIES 50
#define TAKE_PAUSE_US 10000

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
	for (unsigned i = 1; fd == -EBUSY && i < TAKE_TRIES; i++) {
		usleep(TAKE_PAUSE_US);
		fd = lock_file(path, O_CREAT);
	}
	if (fd < 0)
		return fd;
	err = write_holder(fd, holder);
	if (err) {
		close(fd);
		return err;
	}
	return fd;
}

static bool read_holder(int fd, uint32_t *pid, uint64_t *start)
{
	unsigned long long ticks;
	char text[96];
	ssize_t n = pread(fd, text, sizeof(text) - 1, 0);

	if (n <= 0)
		return false;
	text[n] = '\0';
	if (sscanf(text, "pid %u\nstart %llu", pid, &ticks) != 2)
		return false;
	*start = ticks;
	return true;
}

/* The directory is emptied by a reboot: its holder is of this boot. */
static bool was_held_by(int fd, const struct incarnation *inc)
{
	uint64_t start;
	uint32_t pid;

	return read_holder(fd, &pid, &start) && pid == inc->pid &&
	       start == inc->start_ticks;
}

/* 1: held, and by whom; 0: free; -1: it cannot be told. */
static int look_at(const char *path, struct group_holder *holder)
{
	int fd = lock_file(path, 0), named;

	if (fd >= 0) {
		close(fd);
		return 0;
	}
	if (fd == -ENOENT)
		return 0;
	fd = fd == -EBUSY ? open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW) : -1;
	if (fd < 0)
		return -1;
	named = read_holder(fd, &holder->inc.pid, &holder->inc.start_ticks);
	close(fd);
	return named ? 1 : -1;
}

static void add_holder(const char *dir, const char *file, unsigned instance,
		       const uint8_t *boot_id, struct group_holders *out)
{
	struct group_holder holder = { .instance = (uint8_t)instance };
	char path[PATH_BYTES];
	int n = snprintf(path, sizeof(path), "%s/%s", dir, file), held;

	held = n < 0 || n >= PATH_BYTES ? -1 : look_at(path, &holder);
	if (held < 0 || (held && out->count == GROUP_HOLDERS_MAX))
		out->more = true;
	if (held <= 0 || out->count == GROUP_HOLDERS_MAX)
		return;
	memcpy(holder.inc.boot_id, boot_id, sizeof(holder.inc.boot_id));
	out->list[out->count++] = holder;
}

void life_lock_holders(const char *dir, const uint8_t *uuid, uint32_t node,
		       const uint8_t *boot_id, struct group_holders *out)
{
	char text[37], prefix[64];
	struct dirent *entry;
	DIR *d = opendir(dir);
	unsigned instance;

	memset(out, 0, sizeof(*out));
	memcpy(out->uuid, uuid, sizeof(out->uuid));
	if (!d) {
		out->more = errno != ENOENT;
		return;
	}
	uuid_unparse_lower(uuid, text);
	snprintf(prefix, sizeof(prefix), "%s.%u.", text, node);
	while ((entry = readdir(d))) {
		const char *rest = entry->d_name + strlen(prefix);

		if (strncmp(entry->d_name, prefix, strlen(prefix)) == 0 &&
		    sscanf(rest, "%u.life", &instance) == 1 &&
		    instance <= INSTANCE_MAX)
			add_holder(dir, entry->d_name, instance, boot_id, out);
	}
	closedir(d);
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
