/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * exchange.c - exchange WHAT COUNT FILE [FILE2]: two users of one file. FILE2
 * is the same file seen through another mount, or left out.
 *
 *	dirty	one writes, the other's next stat() must see it
 *	clean	the same with fsync() between the two
 *	write	both write in turn
 *	append	both append lines of LINE_BYTES with O_APPEND, at the same time
 *
 * Prints microseconds: the median of the stat() alone, or what one write or
 * append took on average. What is not seen, or a line that is lost, is an
 * error.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define LINE_BYTES 64

static const char *paths[2];
static unsigned long count;

static void die(const char *what)
{
	fprintf(stderr, "exchange: %s: %s\n", what, strerror(errno));
	exit(1);
}

static double now_us(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (double)ts.tv_sec * 1e6 + (double)ts.tv_nsec * 1e-3;
}

static int open_file(const char *path, int flags)
{
	int fd = open(path, O_WRONLY | flags, 0644);

	if (fd < 0)
		die(path);
	return fd;
}

static int compare(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return x < y ? -1 : x > y;
}

static double stat_after_write(bool sync)
{
	double *took = calloc(count, sizeof(*took)), median;
	int fd = open_file(paths[0], O_CREAT | O_TRUNC);
	struct stat st;

	if (!took)
		die("memory");
	for (unsigned long i = 0; i < count; i++) {
		double begin;

		if (pwrite(fd, "x", 1, (off_t)i) != 1 || (sync && fsync(fd)))
			die(paths[0]);
		begin = now_us();
		if (stat(paths[1], &st))
			die(paths[1]);
		took[i] = now_us() - begin;
		if (st.st_size != (off_t)i + 1) {
			fprintf(stderr, "exchange: %s: size %lld, not %lu\n",
				paths[1], (long long)st.st_size, i + 1);
			exit(1);
		}
	}
	close(fd);
	qsort(took, count, sizeof(*took), compare);
	median = took[count / 2];
	free(took);
	return median;
}

static double write_in_turn(void)
{
	int fds[2] = {
		open_file(paths[0], O_CREAT | O_TRUNC),
		open_file(paths[1], 0),
	};
	double begin = now_us();

	for (unsigned long i = 0; i < count; i++)
		if (pwrite(fds[i % 2], "x", 1, (off_t)i) != 1)
			die(paths[i % 2]);
	begin = now_us() - begin;
	close(fds[0]);
	close(fds[1]);
	return begin / (double)count;
}

static void append_lines(const char *path)
{
	int fd = open_file(path, O_APPEND);
	char line[LINE_BYTES];

	memset(line, 'a', sizeof(line));
	line[LINE_BYTES - 1] = '\n';
	for (unsigned long i = 0; i < count; i++)
		if (write(fd, line, sizeof(line)) != LINE_BYTES)
			die(path);
	exit(close(fd) ? 1 : 0);
}

static double append_together(void)
{
	struct stat st;
	double begin;
	int status;

	close(open_file(paths[0], O_CREAT | O_TRUNC));
	begin = now_us();
	for (unsigned i = 0; i < 2; i++) {
		pid_t pid = fork();

		if (pid < 0)
			die("fork");
		if (!pid)
			append_lines(paths[i]);
	}
	for (unsigned i = 0; i < 2; i++)
		if (wait(&status) < 0 || status)
			exit(1);
	begin = now_us() - begin;
	if (stat(paths[0], &st))
		die(paths[0]);
	if (st.st_size != (off_t)(2 * count * LINE_BYTES)) {
		fprintf(stderr, "exchange: %lld bytes, not %lu\n",
			(long long)st.st_size, 2 * count * LINE_BYTES);
		exit(1);
	}
	return begin / (double)(2 * count);
}

int main(int argc, char **argv)
{
	double us;

	if (argc != 4 && argc != 5)
		goto usage;
	count = strtoul(argv[2], NULL, 10);
	paths[0] = argv[3];
	paths[1] = argv[argc - 1];
	if (!count)
		goto usage;
	if (!strcmp(argv[1], "dirty"))
		us = stat_after_write(false);
	else if (!strcmp(argv[1], "clean"))
		us = stat_after_write(true);
	else if (!strcmp(argv[1], "write"))
		us = write_in_turn();
	else if (!strcmp(argv[1], "append"))
		us = append_together();
	else
		goto usage;
	printf("%.3f\n", us);
	return 0;
usage:
	fputs("usage: exchange dirty|clean|write|append COUNT FILE [FILE2]\n",
	      stderr);
	return 2;
}
