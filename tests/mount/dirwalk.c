/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * dirwalk.c - reading a directory while it changes.
 *
 *   dirwalk fill DIR COUNT     make COUNT files
 *   dirwalk seek DIR           every cookie leads back to its entry, in any
 *                              order, and no two entries share one
 *   dirwalk change DIR COUNT   list DIR while entries are made and removed:
 *                              each old entry that stays is seen exactly once
 *   dirwalk remove DIR         remove the entries while listing: none is left
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define ENTRIES_MAX 200000
#define SEEKS_MAX 3000

static void die(const char *what, const char *name)
{
	fprintf(stderr, "dirwalk: %s: %s (%s)\n", what, name, strerror(errno));
	exit(1);
}

static DIR *open_dir(const char *path)
{
	DIR *dir = opendir(path);

	if (!dir)
		die("opendir", path);
	return dir;
}

static bool is_dot(const char *name)
{
	return !strcmp(name, ".") || !strcmp(name, "..");
}

static void make(int dir, const char *stem, long i)
{
	char name[64];
	int fd;

	snprintf(name, sizeof(name), "%s-%06ld", stem, i);
	fd = openat(dir, name, O_WRONLY | O_CREAT | O_EXCL, 0644);
	if (fd < 0)
		die("create", name);
	close(fd);
}

static int fill(const char *path, long count)
{
	DIR *dir = open_dir(path);

	for (long i = 0; i < count; i++)
		make(dirfd(dir), "old", i);
	closedir(dir);
	return 0;
}

struct place {
	long cookie; /* to be read from here */
	char name[256];
};

static int by_cookie(const void *a, const void *b)
{
	const struct place *x = a, *y = b;

	return x->cookie < y->cookie ? -1 : x->cookie > y->cookie;
}

static int seek(const char *path)
{
	struct place *places = calloc(ENTRIES_MAX, sizeof(*places));
	DIR *dir = open_dir(path);
	struct dirent *de;
	long n = 0;

	for (;;) {
		long cookie = telldir(dir);

		de = readdir(dir);
		if (!de || n == ENTRIES_MAX)
			break;
		places[n].cookie = cookie;
		snprintf(places[n++].name, sizeof(places[0].name), "%s",
			 de->d_name);
	}
	/* Far apart, backwards and forwards; of a large directory, some. */
	for (long i = 0; i < n && i < SEEKS_MAX; i++) {
		long at = (i * 7919) % n;

		seekdir(dir, places[at].cookie);
		de = readdir(dir);
		if (!de || strcmp(de->d_name, places[at].name))
			die("a cookie leads elsewhere", places[at].name);
	}
	qsort(places, (size_t)n, sizeof(*places), by_cookie);
	for (long i = 1; i < n; i++)
		if (places[i].cookie == places[i - 1].cookie)
			die("two entries share a cookie", places[i].name);
	closedir(dir);
	free(places);
	return 0;
}

static int change(const char *path, long count)
{
	unsigned char *seen = calloc((size_t)count, 1);
	DIR *dir = open_dir(path);
	struct dirent *de;
	long made = 0, at, n = 0;
	char name[64];

	while ((de = readdir(dir))) {
		if (sscanf(de->d_name, "old-%ld", &at) == 1 && at < count)
			seen[at]++;
		/* As many new ones as make leaves split, and old ones go. */
		if (made < 2 * count)
			make(dirfd(dir), "new", made++);
		if (n < count && n % 3 == 0) {
			snprintf(name, sizeof(name), "old-%06ld", n);
			if (unlinkat(dirfd(dir), name, 0))
				die("unlink", name);
		}
		n++;
	}
	for (at = 0; at < count; at++) {
		snprintf(name, sizeof(name), "old-%06ld", at);
		if (seen[at] > 1)
			die("seen more than once", name);
		if (!seen[at] && at % 3)
			die("not seen", name);
	}
	closedir(dir);
	free(seen);
	return 0;
}

static int remove_all(const char *path)
{
	DIR *dir = open_dir(path);
	struct dirent *de;

	while ((de = readdir(dir)))
		if (!is_dot(de->d_name) && unlinkat(dirfd(dir), de->d_name, 0))
			die("unlink", de->d_name);
	rewinddir(dir);
	while ((de = readdir(dir)))
		if (!is_dot(de->d_name))
			die("left behind", de->d_name);
	closedir(dir);
	return 0;
}

int main(int argc, char **argv)
{
	long count = argc > 3 ? atol(argv[3]) : 0;

	if (argc > 3 && !strcmp(argv[1], "fill"))
		return fill(argv[2], count);
	if (argc > 3 && !strcmp(argv[1], "change"))
		return change(argv[2], count);
	if (argc > 2 && !strcmp(argv[1], "seek"))
		return seek(argv[2]);
	if (argc > 2 && !strcmp(argv[1], "remove"))
		return remove_all(argv[2]);
	fprintf(stderr, "usage: dirwalk fill|seek|change|remove DIR [COUNT]\n");
	return 2;
}
