/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * manyfiles.c - manyfiles create|stat|unlink DIR FILES DIRS [NAME]: one system
 * call (create: two) for each of FILES empty files, spread evenly over DIRS
 * directories below DIR, or in DIR itself if DIRS is 1. Their names begin with
 * NAME, so that several can use one directory.
 *
 * Prints the seconds it took, without those for the directories themselves.
 * Files are visited in the order in which they were created, one directory
 * after the other.
 */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

struct job {
	const char *dir;
	unsigned long files;
	unsigned long dirs;
	const char *name;
};

static void die(const char *what)
{
	fprintf(stderr, "manyfiles: %s: %s\n", what, strerror(errno));
	exit(1);
}

static double now(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (double)ts.tv_sec + (double)ts.tv_nsec * 1e-9;
}

static void dir_path(const struct job *job, unsigned long dir, char *path)
{
	if (job->dirs == 1)
		snprintf(path, PATH_MAX, "%s", job->dir);
	else
		snprintf(path, PATH_MAX, "%s/d%lu", job->dir, dir);
}

static void make_dirs(const struct job *job)
{
	char path[PATH_MAX];

	for (unsigned long i = 0; i < job->dirs; i++) {
		dir_path(job, i, path);
		if (mkdir(path, 0755) && errno != EEXIST)
			die(path);
	}
}

static void remove_dirs(const struct job *job)
{
	char path[PATH_MAX];

	for (unsigned long i = 0; job->dirs > 1 && i < job->dirs; i++) {
		dir_path(job, i, path);
		if (rmdir(path))
			die(path);
	}
}

static void create_one(const char *path)
{
	int fd = open(path, O_WRONLY | O_CREAT | O_EXCL, 0644);

	if (fd < 0 || close(fd))
		die(path);
}

static void stat_one(const char *path)
{
	struct stat st;

	if (stat(path, &st))
		die(path);
}

static void unlink_one(const char *path)
{
	if (unlink(path))
		die(path);
}

static double for_each(const struct job *job, void (*one)(const char *path))
{
	unsigned long per_dir = job->files / job->dirs;
	char path[PATH_MAX];
	double begin = now();

	for (unsigned long d = 0; d < job->dirs; d++) {
		char *name;

		dir_path(job, d, path);
		name = path + strlen(path);
		for (unsigned long f = 0; f < per_dir; f++) {
			snprintf(name, 64, "/%.20s%lu", job->name, f);
			one(path);
		}
	}
	return now() - begin;
}

int main(int argc, char **argv)
{
	struct job job;
	double seconds;

	if (argc != 5 && argc != 6)
		goto usage;
	job.dir = argv[2];
	job.files = strtoul(argv[3], NULL, 10);
	job.dirs = strtoul(argv[4], NULL, 10);
	job.name = argc == 6 ? argv[5] : "file";
	if (strlen(job.dir) > PATH_MAX - 128 || !job.dirs ||
	    job.files < job.dirs)
		goto usage;

	if (!strcmp(argv[1], "create")) {
		make_dirs(&job);
		seconds = for_each(&job, create_one);
	} else if (!strcmp(argv[1], "stat")) {
		seconds = for_each(&job, stat_one);
	} else if (!strcmp(argv[1], "unlink")) {
		seconds = for_each(&job, unlink_one);
		remove_dirs(&job);
	} else {
		goto usage;
	}
	printf("%.6f\n", seconds);
	return 0;
usage:
	fputs("usage: manyfiles create|stat|unlink DIR FILES DIRS [NAME]\n",
	      stderr);
	return 2;
}
