/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * runfile.c - the file by which others find and await a mount process.
 *
 * Content, one line each: the state (of fixed width, since it is written over),
 * then "pid N", "source PATH", "dir PATH". A file that a killed process has
 * left behind is not locked: it says nothing, and the next mount
 * with this number replaces it.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/compiler.h"
#include "daemon/runfile.h"

#define RUN_DIR "/run/ugfs"
#define STATE_LEN 8
#define CONTENT_MAX 16384 /* two paths and a little */
#define NAME_LEN 64

static const char states[][STATE_LEN + 1] = {
	[RUNFILE_MOUNTED] = "mounted\n",
	[RUNFILE_ENDING] = "ending \n",
	[RUNFILE_CLEAN] = "clean  \n",
	[RUNFILE_DIRTY] = "dirty  \n",
};

/*
 * The directory, made if need be, with a lock on it against others who rename
 * and remove. Released by close().
 */
static int dir_lock(void)
{
	int fd;

	if (mkdir("/run", 0755) && errno != EEXIST)
		return -errno;
	if (mkdir(RUN_DIR, 0755) && errno != EEXIST)
		return -errno;
	fd = open(RUN_DIR, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (fd < 0)
		return -errno;
	while (flock(fd, LOCK_EX)) {
		int err = errno;

		if (err == EINTR)
			continue;
		close(fd);
		return -err;
	}
	return fd;
}

/* What the file is called until the number of the mount is known. */
static void draft_name(char name[NAME_LEN])
{
	snprintf(name, NAME_LEN, "new-%ld", (long)getpid());
}

static void mount_name(char name[NAME_LEN], unsigned major, unsigned minor)
{
	snprintf(name, NAME_LEN, "%u:%u", major, minor);
}

int runfile_create(struct runfile *rf)
{
	char name[NAME_LEN];
	int dir = dir_lock();
	int err = 0;

	*rf = (struct runfile){ .fd = -1 };
	if (dir < 0)
		return dir;
	draft_name(name);
	/* A process that had our number and was killed may have left it. */
	unlinkat(dir, name, 0);
	rf->fd = openat(dir, name, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0644);
	if (rf->fd < 0)
		err = -errno;
	else if (flock(rf->fd, LOCK_EX | LOCK_NB))
		err = -errno;
	close(dir);
	return err;
}

static int write_content(int fd, const char *source, const char *dir)
{
	char buf[CONTENT_MAX];
	int len =
		snprintf(buf, sizeof(buf), "%spid %ld\nsource %s\ndir %s\n",
			 states[RUNFILE_MOUNTED], (long)getpid(), source, dir);

	if (len >= (int)sizeof(buf))
		return -ENAMETOOLONG;
	if (pwrite(fd, buf, (size_t)len, 0) != len)
		return errno ? -errno : -EIO;
	return 0;
}

int runfile_publish(struct runfile *rf, unsigned major, unsigned minor,
		    const char *source, const char *dir)
{
	char draft[NAME_LEN], name[NAME_LEN];
	int dirfd, err;

	if (rf->fd < 0)
		return -EBADF;
	err = write_content(rf->fd, source, dir);
	if (err)
		return err;
	dirfd = dir_lock();
	if (dirfd < 0)
		return dirfd;
	draft_name(draft);
	mount_name(name, major, minor);
	if (renameat(dirfd, draft, dirfd, name))
		err = -errno;
	close(dirfd);
	rf->published = !err;
	rf->major = major;
	rf->minor = minor;
	return err;
}

void runfile_set_state(struct runfile *rf, enum runfile_state state)
{
	/* Nothing can be done about a failure; a waiter has a time limit. */
	if (rf->fd >= 0 && pwrite(rf->fd, states[state], STATE_LEN, 0) < 0)
		return;
}

/* A later mount with our number may have put its own file under the name. */
static bool name_is_file(int dirfd, const char *name, int fd)
{
	struct stat by_name, by_fd;

	return !fstatat(dirfd, name, &by_name, AT_SYMLINK_NOFOLLOW) &&
	       !fstat(fd, &by_fd) && by_name.st_ino == by_fd.st_ino &&
	       by_name.st_dev == by_fd.st_dev;
}

void runfile_remove(struct runfile *rf)
{
	char name[NAME_LEN];
	int dir;

	if (rf->fd < 0)
		return;
	dir = dir_lock();
	if (dir < 0)
		return;
	if (rf->published)
		mount_name(name, rf->major, rf->minor);
	else
		draft_name(name);
	if (name_is_file(dir, name, rf->fd))
		unlinkat(dir, name, 0);
	close(dir);
}

int runfile_open(unsigned major, unsigned minor)
{
	char path[sizeof(RUN_DIR) + NAME_LEN], name[NAME_LEN];
	int fd;

	mount_name(name, major, minor);
	snprintf(path, sizeof(path), RUN_DIR "/%s", name);
	fd = open(path, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
	return fd < 0 ? -errno : fd;
}

static bool lock_is_free(int fd)
{
	if (flock(fd, LOCK_SH | LOCK_NB))
		return false;
	flock(fd, LOCK_UN);
	return true;
}

enum runfile_state runfile_state(int fd)
{
	char text[STATE_LEN];

	if (pread(fd, text, STATE_LEN, 0) == STATE_LEN)
		for (unsigned i = 0; i < UG_ARRAY_SIZE(states); i++)
			if (!memcmp(text, states[i], STATE_LEN))
				return (enum runfile_state)i;
	return RUNFILE_MOUNTED;
}

bool runfile_is_gone(int fd)
{
	return lock_is_free(fd);
}

int runfile_wait(int fd)
{
	if (flock(fd, LOCK_SH))
		return -errno;
	flock(fd, LOCK_UN);
	return 0;
}

void runfile_info_free(struct runfile_info *info)
{
	free(info->source);
	free(info->dir);
	info->source = NULL;
	info->dir = NULL;
}

static int parse_content(char *text, struct runfile_info *info)
{
	char *rest = text, *line;

	*info = (struct runfile_info){ 0 };
	while ((line = strsep(&rest, "\n"))) {
		if (!strncmp(line, "pid ", 4))
			info->pid = (pid_t)strtol(line + 4, NULL, 10);
		else if (!strncmp(line, "source ", 7) && !info->source)
			info->source = strdup(line + 7);
		else if (!strncmp(line, "dir ", 4) && !info->dir)
			info->dir = strdup(line + 4);
	}
	if (info->pid > 0 && info->source && info->dir)
		return 0;
	runfile_info_free(info);
	return -EINVAL;
}

int runfile_read(int fd, struct runfile_info *info)
{
	char text[CONTENT_MAX];
	ssize_t len;

	if (lock_is_free(fd))
		return -ENOENT;
	len = pread(fd, text, sizeof(text) - 1, 0);
	if (len <= 0)
		return -EINVAL;
	text[len] = '\0';
	return parse_content(text, info);
}

/* The same device number, or the same file. */
static bool same_source(const char *a, const char *b)
{
	struct stat sa, sb;

	if (stat(a, &sa) || stat(b, &sb))
		return false;
	if (S_ISBLK(sa.st_mode) || S_ISBLK(sb.st_mode))
		return S_ISBLK(sa.st_mode) && S_ISBLK(sb.st_mode) &&
		       sa.st_rdev == sb.st_rdev;
	return sa.st_ino == sb.st_ino && sa.st_dev == sb.st_dev;
}

/* 0 if the file is that of a living process whose source is path. */
static int match_file(int dirfd, const char *name, const char *path,
		      struct runfile_info *info)
{
	ug_autoclose int fd =
		openat(dirfd, name, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);

	if (fd < 0 || runfile_read(fd, info))
		return -ENOENT;
	if (same_source(info->source, path))
		return 0;
	runfile_info_free(info);
	return -ENOENT;
}

int runfile_find_source(const char *path, struct runfile_info *info)
{
	/* Locked, so that a file made this moment has its own lock already. */
	int fd = dir_lock();
	struct dirent *de;
	int ret = -ENOENT;
	DIR *dir;

	if (fd < 0)
		return -ENOENT;
	dir = fdopendir(fd);
	if (!dir) {
		close(fd);
		return -ENOENT;
	}
	while (ret && (de = readdir(dir)))
		if (de->d_name[0] != '.')
			ret = match_file(dirfd(dir), de->d_name, path, info);
	closedir(dir);
	return ret;
}
