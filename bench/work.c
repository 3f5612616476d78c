/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * work.c - the workloads of the benchmark that no common tool does.
 *
 *   work create|stat|unlink DIR COUNT DIRS   COUNT empty files in DIRS folders
 *   work append FILE COUNT BYTES             append, fsync, COUNT times
 *   work randwrite|randread FILE MIB COUNT   4 KiB, O_DIRECT, of a file of MIB
 *
 * The caller takes the time.
 */
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define IO_BYTES 4096
#define PATH_LEN 4096

static void die(const char *what)
{
	perror(what);
	exit(1);
}

static void name_of(char path[PATH_LEN], const char *dir, long i, long dirs)
{
	snprintf(path, PATH_LEN, "%s/d%ld/file-%ld", dir, i % dirs, i);
}

static void make_dirs(const char *dir, long dirs)
{
	char path[PATH_LEN];

	for (long i = 0; i < dirs; i++) {
		snprintf(path, sizeof(path), "%s/d%ld", dir, i);
		if (mkdir(path, 0755))
			die(path);
	}
}

static void each_name(const char *what, const char *dir, long count, long dirs)
{
	char path[PATH_LEN];
	struct stat st;
	int fd;

	for (long i = 0; i < count; i++) {
		name_of(path, dir, i, dirs);
		switch (what[0]) {
		case 'c':
			fd = open(path, O_WRONLY | O_CREAT | O_EXCL, 0644);
			if (fd < 0 || close(fd))
				die(path);
			break;
		case 's':
			if (stat(path, &st))
				die(path);
			break;
		default:
			if (unlink(path))
				die(path);
		}
	}
}

static void append(const char *path, long count, long bytes)
{
	char *buf = calloc(1, (size_t)bytes);
	int fd = open(path, O_WRONLY | O_CREAT | O_APPEND, 0644);

	if (!buf || fd < 0)
		die(path);
	for (long i = 0; i < count; i++)
		if (write(fd, buf, (size_t)bytes) != bytes || fsync(fd))
			die("append");
	close(fd);
	free(buf);
}

static uint32_t next_random(uint64_t *state)
{
	*state = *state * 6364136223846793005u + 1442695040888963407u;
	return (uint32_t)(*state >> 33);
}

static void random_io(const char *path, long mib, long count, int writing)
{
	int fd = open(path, (writing ? O_WRONLY : O_RDONLY) | O_DIRECT);
	char *buf = aligned_alloc(IO_BYTES, IO_BYTES);
	uint64_t state = 1;
	long blocks = mib * (1048576 / IO_BYTES);

	if (fd < 0 || !buf)
		die(path);
	memset(buf, 'r', IO_BYTES);
	for (long i = 0; i < count; i++) {
		off_t at = (off_t)(next_random(&state) % blocks) * IO_BYTES;
		ssize_t n = writing ? pwrite(fd, buf, IO_BYTES, at)
				    : pread(fd, buf, IO_BYTES, at);

		if (n != IO_BYTES)
			die("random I/O");
	}
	if (writing && fsync(fd))
		die("fsync");
	close(fd);
	free(buf);
}

int main(int argc, char **argv)
{
	long a, b;

	if (argc != 5) {
		fprintf(stderr, "usage: work create|stat|unlink|append|"
				"randwrite|randread PATH N N\n");
		return 2;
	}
	a = atol(argv[3]);
	b = atol(argv[4]);
	if (!strcmp(argv[1], "append")) {
		append(argv[2], a, b);
	} else if (!strncmp(argv[1], "rand", 4)) {
		random_io(argv[2], a, b, argv[1][4] == 'w');
	} else {
		if (argv[1][0] == 'c')
			make_dirs(argv[2], b);
		each_name(argv[1], argv[2], a, b);
	}
	return 0;
}
