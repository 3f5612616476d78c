/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * perffiles.c - the files of fplockperf, and one pass over them.
 *
 * Making and opening is not measured; with reopen, opening and closing is. All
 * sets use the same files, as many of them as they need: so the first pass of a
 * set meets files that an earlier one has locked, and files that none has.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/compiler.h"
#include "perffiles.h"

/* Descriptors beside those of the files. */
#define OTHER_FDS 16u

ug_printf(2, 3) static int fail(struct perf_files *files, const char *fmt, ...)
{
	int err = -errno;
	int len;
	va_list ap;

	va_start(ap, fmt);
	len = vsnprintf(files->why, files->why_len, fmt, ap);
	va_end(ap);
	if (len >= 0 && (size_t)len < files->why_len)
		snprintf(files->why + len, files->why_len - (size_t)len, ": %s",
			 strerror(-err));
	return err;
}

double perf_now(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (double)ts.tv_sec + (double)ts.tv_nsec * 1e-9;
}

static void file_name(char name[16], unsigned i)
{
	snprintf(name, 16, "file%07u", i);
}

/* Room for so many open files. */
static int raise_limit(struct perf_files *files)
{
	rlim_t need = files->count + OTHER_FDS;
	struct rlimit limit;

	if (getrlimit(RLIMIT_NOFILE, &limit))
		return fail(files, "limit of open files");
	if (limit.rlim_cur >= need)
		return 0;
	limit.rlim_cur = need;
	if (limit.rlim_max < need)
		limit.rlim_max = need;
	if (setrlimit(RLIMIT_NOFILE, &limit))
		return fail(files,
			    "%u open files are more than this user may have "
			    "(with -r one is enough)",
			    files->count);
	return 0;
}

static int make_dir(struct perf_files *files, const char *dir)
{
	files->parent = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (files->parent < 0)
		return fail(files, "%s", dir);
	for (unsigned i = 0;; i++) {
		snprintf(files->name, sizeof(files->name), "fplockperf.%d.%u",
			 (int)getpid(), i);
		if (!mkdirat(files->parent, files->name, 0700))
			break;
		if (errno != EEXIST)
			return fail(files, "%s: a directory in it", dir);
	}
	files->dir = openat(files->parent, files->name,
			    O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (files->dir < 0)
		return fail(files, "%s/%s", dir, files->name);
	return 0;
}

static int make_file(struct perf_files *files, unsigned i)
{
	char name[16];
	int fd;

	file_name(name, i);
	fd = openat(files->dir, name, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC,
		    0600);
	if (fd < 0)
		return fail(files, "%s/%s", files->name, name);
	if (files->reopen)
		close(fd);
	else
		files->fds[i] = fd;
	return 0;
}

int perf_files_make(struct perf_files *files, const char *dir, unsigned count,
		    bool reopen, char *why, size_t why_len)
{
	int err;

	*files = (struct perf_files){
		.dir = -1,
		.parent = -1,
		.count = count,
		.reopen = reopen,
		.why = why,
		.why_len = why_len,
	};
	if (!reopen) {
		err = raise_limit(files);
		if (err)
			return err;
		files->fds = malloc(count * sizeof(*files->fds));
		if (!files->fds)
			return fail(files, "%u files", count);
		for (unsigned i = 0; i < count; i++)
			files->fds[i] = -1;
	}
	err = make_dir(files, dir);
	for (unsigned i = 0; i < count && !err; i++)
		err = make_file(files, i);
	return err;
}

static int lock_one(struct perf_files *files, unsigned i,
		    enum file_lock_kind kind, bool shared)
{
	char name[16];
	int err, fd;

	if (files->reopen) {
		file_name(name, i);
		fd = openat(files->dir, name, O_RDWR | O_CLOEXEC);
		if (fd < 0)
			return fail(files, "%s/%s", files->name, name);
	} else {
		fd = files->fds[i];
	}
	err = file_lock(fd, kind, shared);
	if (!err)
		err = file_unlock(fd, kind);
	if (files->reopen)
		close(fd);
	if (!err)
		return 0;
	file_name(name, i);
	errno = -err;
	return fail(files, "%s of %s/%s", file_lock_name(kind), files->name,
		    name);
}

int perf_files_pass(struct perf_files *files, unsigned count,
		    enum file_lock_kind kind, bool shared, double *seconds)
{
	double begin = perf_now();

	for (unsigned i = 0; i < count; i++) {
		int err = lock_one(files, i, kind, shared);

		if (err)
			return err;
	}
	*seconds = perf_now() - begin;
	return 0;
}

void perf_files_remove(struct perf_files *files)
{
	char name[16];

	for (unsigned i = 0; files->dir >= 0 && i < files->count; i++) {
		file_name(name, i);
		unlinkat(files->dir, name, 0);
	}
	for (unsigned i = 0; files->fds && i < files->count; i++)
		if (files->fds[i] >= 0)
			close(files->fds[i]);
	free(files->fds);
	if (files->dir >= 0)
		close(files->dir);
	if (files->parent >= 0) {
		if (*files->name)
			unlinkat(files->parent, files->name, AT_REMOVEDIR);
		close(files->parent);
	}
	*files = (struct perf_files){ .dir = -1, .parent = -1 };
}
