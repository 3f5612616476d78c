/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * sys.c - one system call from a script: sys CALL ARGUMENTS
 *
 * Exit status 0, or 1 with the name of the error on standard output.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/xattr.h>
#include <unistd.h>

#ifndef RENAME_NOREPLACE
#define RENAME_NOREPLACE 1
#define RENAME_EXCHANGE 2
#endif

static const struct {
	const char *name;
	int value;
} open_flags[] = {
	{ "r", O_RDONLY },	  { "w", O_WRONLY },
	{ "rw", O_RDWR },	  { "creat", O_CREAT },
	{ "excl", O_EXCL },	  { "trunc", O_TRUNC },
	{ "append", O_APPEND },	  { "direct", O_DIRECT },
	{ "dir", O_DIRECTORY },	  { "nofollow", O_NOFOLLOW },
	{ "tmpfile", O_TMPFILE }, { "sync", O_SYNC },
};

static int parse_flags(char *text)
{
	int flags = 0;
	char *word;

	while ((word = strsep(&text, ",")))
		for (size_t i = 0; i < sizeof(open_flags) / sizeof(*open_flags);
		     i++)
			if (!strcmp(word, open_flags[i].name))
				flags |= open_flags[i].value;
	return flags;
}

static int call_open(char **a)
{
	return open(a[0], parse_flags(a[1]), 0666);
}

static int call_rename(char **a)
{
	return rename(a[0], a[1]);
}

static int call_noreplace(char **a)
{
	return renameat2(AT_FDCWD, a[0], AT_FDCWD, a[1], RENAME_NOREPLACE);
}

static int call_exchange(char **a)
{
	return renameat2(AT_FDCWD, a[0], AT_FDCWD, a[1], RENAME_EXCHANGE);
}

static int call_link(char **a)
{
	return link(a[0], a[1]);
}

static int call_symlink(char **a)
{
	return symlink(a[0], a[1]);
}

static int call_unlink(char **a)
{
	return unlink(a[0]);
}

static int call_mkdir(char **a)
{
	return mkdir(a[0], 0777);
}

static int call_rmdir(char **a)
{
	return rmdir(a[0]);
}

static int call_truncate(char **a)
{
	return truncate(a[0], strtoll(a[1], NULL, 0));
}

static int call_getxattr(char **a)
{
	return (int)getxattr(a[0], a[1], NULL, 0);
}

static int call_setxattr(char **a)
{
	return setxattr(a[0], a[1], a[2], strlen(a[2]), 0);
}

static int call_lsetxattr(char **a)
{
	return lsetxattr(a[0], a[1], a[2], strlen(a[2]), 0);
}

struct handle {
	struct file_handle head;
	unsigned char room[MAX_HANDLE_SZ];
};

/* handle FILE OUT */
static int call_handle(char **a)
{
	struct handle h = { .head.handle_bytes = MAX_HANDLE_SZ };
	int id, fd;

	if (name_to_handle_at(AT_FDCWD, a[0], &h.head, &id, 0))
		return -1;
	fd = open(a[1], O_WRONLY | O_CREAT | O_TRUNC, 0600);
	return fd < 0 || write(fd, &h, sizeof(h)) != sizeof(h) ? -1 : 0;
}

/* byhandle MOUNT IN NAME: the file, "-", or one below it, to standard output */
static int call_byhandle(char **a)
{
	int mount = open(a[0], O_RDONLY | O_DIRECTORY);
	int in = open(a[1], O_RDONLY), fd;
	struct handle h;
	char buf[4096];
	ssize_t n;

	if (mount < 0 || in < 0 || read(in, &h, sizeof(h)) != sizeof(h))
		return -1;
	fd = open_by_handle_at(mount, &h.head, O_RDONLY);
	if (fd >= 0 && strcmp(a[2], "-"))
		fd = openat(fd, a[2], O_RDONLY);
	if (fd < 0)
		return -1;
	while ((n = read(fd, buf, sizeof(buf))) > 0)
		if (write(1, buf, (size_t)n) != n)
			return -1;
	return (int)n;
}

static int call_fallocate(char **a)
{
	int fd = open(a[0], O_RDWR);

	return fd < 0 ? fd : fallocate(fd, 0, 0, strtoll(a[1], NULL, 0));
}

static int call_fsync(char **a)
{
	int fd = open(a[0], O_RDONLY);

	return fd < 0 ? fd : fsync(fd);
}

static int call_readlink(char **a)
{
	char target[8192];
	ssize_t n = readlink(a[0], target, sizeof(target));

	return n < 0 ? -1 : 0;
}

static int call_socket(char **a)
{
	struct sockaddr_un addr = { .sun_family = AF_UNIX };
	int fd = socket(AF_UNIX, SOCK_STREAM, 0);

	snprintf(addr.sun_path, sizeof(addr.sun_path), "%s", a[0]);
	return fd < 0 ? fd : bind(fd, (struct sockaddr *)&addr, sizeof(addr));
}

static int call_read(char **a)
{
	char byte;
	int fd = open(a[0], O_RDONLY);

	return fd < 0 ? fd : (int)read(fd, &byte, 1);
}

static const struct {
	const char *name;
	int args;
	int (*call)(char **args);
} calls[] = {
	{ "open", 2, call_open },	    { "rename", 2, call_rename },
	{ "noreplace", 2, call_noreplace }, { "exchange", 2, call_exchange },
	{ "link", 2, call_link },	    { "symlink", 2, call_symlink },
	{ "unlink", 1, call_unlink },	    { "mkdir", 1, call_mkdir },
	{ "rmdir", 1, call_rmdir },	    { "truncate", 2, call_truncate },
	{ "getxattr", 2, call_getxattr },   { "setxattr", 3, call_setxattr },
	{ "fallocate", 2, call_fallocate }, { "fsync", 1, call_fsync },
	{ "handle", 2, call_handle },	    { "byhandle", 3, call_byhandle },
	{ "readlink", 1, call_readlink },   { "socket", 1, call_socket },
	{ "read", 1, call_read },	    { "lsetxattr", 3, call_lsetxattr },
};

int main(int argc, char **argv)
{
	for (size_t i = 0; argc > 1 && i < sizeof(calls) / sizeof(*calls);
	     i++) {
		if (strcmp(argv[1], calls[i].name) || argc - 2 != calls[i].args)
			continue;
		if (calls[i].call(argv + 2) >= 0)
			return 0;
		puts(strerrorname_np(errno));
		return 1;
	}
	fprintf(stderr, "usage: sys CALL ARGUMENTS\n");
	return 2;
}
