/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * appends.c - appends DIR WRITERS COUNT: each of WRITERS processes appends
 * COUNT records of 4 KiB to a file of its own, with an fsync() after each.
 *
 * Prints the seconds from the start of the first to the end of the last.
 */
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define RECORD_BYTES 4096

static double now(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (double)ts.tv_sec + (double)ts.tv_nsec * 1e-9;
}

static int write_records(const char *dir, unsigned long writer,
			 unsigned long count)
{
	static char record[RECORD_BYTES];
	char path[PATH_MAX];
	int fd;

	memset(record, 'a' + (int)(writer % 26), sizeof(record));
	snprintf(path, sizeof(path), "%s/append%lu", dir, writer);
	fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_APPEND, 0644);
	if (fd < 0) {
		perror(path);
		return 1;
	}
	for (unsigned long i = 0; i < count; i++) {
		if (write(fd, record, sizeof(record)) != RECORD_BYTES ||
		    fsync(fd)) {
			perror(path);
			return 1;
		}
	}
	return close(fd) ? 1 : 0;
}

static int wait_for(unsigned long started)
{
	int status, failed = 0;

	while (started && wait(&status) > 0) {
		failed |= status;
		started--;
	}
	return failed || started ? 1 : 0;
}

int main(int argc, char **argv)
{
	unsigned long writers, count, started;
	double begin;

	if (argc != 4 || !(writers = strtoul(argv[2], NULL, 10)) ||
	    !(count = strtoul(argv[3], NULL, 10))) {
		fputs("usage: appends DIR WRITERS COUNT\n", stderr);
		return 2;
	}
	begin = now();
	for (started = 0; started < writers; started++) {
		pid_t pid = fork();

		if (pid < 0) {
			perror("appends: fork");
			break;
		}
		if (!pid)
			_exit(write_records(argv[1], started, count));
	}
	if (wait_for(started) || started < writers)
		return 1;
	printf("%.6f\n", now() - begin);
	return 0;
}
