/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * selfio.c - a file is read and written from memory that is the file itself:
 * selfio FILE
 *
 * The page fault happens inside the read or write and asks for the same inode:
 * whoever holds its lock meanwhile waits for ever. Buffered and O_DIRECT, with
 * source and target in the same page, apart, and overlapping; the source is
 * never in memory beforehand. Two threads do it crosswise at the same time.
 */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define PAGE 4096u
#define PAGES 64u
#define SIZE ((size_t)PAGE * PAGES)
#define ROUNDS 50

static const char *path;

static void die(const char *what)
{
	fprintf(stderr, "selfio: %s: %s\n", what, strerror(errno));
	exit(1);
}

static int open_as(int flags)
{
	int fd = open(path, flags, 0644);

	if (fd < 0)
		die("open");
	return fd;
}

static unsigned char byte_of(size_t at)
{
	return (unsigned char)(at / PAGE * 7 + at);
}

static void fill(void)
{
	unsigned char *p = malloc(SIZE);
	int fd = open_as(O_RDWR | O_CREAT | O_TRUNC);

	for (size_t i = 0; i < SIZE; i++)
		p[i] = byte_of(i);
	if (write(fd, p, SIZE) != (ssize_t)SIZE || fsync(fd))
		die("fill");
	close(fd);
	free(p);
}

static unsigned char *map(int fd)
{
	unsigned char *p =
		mmap(NULL, SIZE, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);

	if (p == MAP_FAILED)
		die("mmap");
	return p;
}

/* Neither in the mapping nor in the page cache, as far as it can be asked. */
static void forget(int fd, void *p)
{
	fsync(fd);
	madvise(p, SIZE, MADV_DONTNEED);
	posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED);
}

/* Copies [from, from + len) to "to" of the same file through its mapping. */
static void copy(int flags, size_t to, size_t from, size_t len)
{
	unsigned char *p, *now = malloc(SIZE);
	int fd;

	fill();
	fd = open_as(O_RDWR | flags);
	p = map(fd);
	forget(fd, p);
	if (pwrite(fd, p + from, len, (off_t)to) != (ssize_t)len)
		die("write from the mapping");
	forget(fd, p);
	if (pread(fd, p + to, len, (off_t)to) != (ssize_t)len)
		die("read into the mapping");
	munmap(p, SIZE);
	close(fd);
	fd = open_as(O_RDONLY);
	if (read(fd, now, SIZE) != (ssize_t)SIZE)
		die("read");
	/* What overlaps may hold either; the rest is known. */
	for (size_t i = 0; i < SIZE; i++) {
		size_t was = i >= to && i < to + len ? from + i - to : i;

		if (now[i] != byte_of(was) &&
		    !(from < to + len && to < from + len)) {
			fprintf(stderr, "selfio: byte %zu: %02x\n", i, now[i]);
			exit(1);
		}
	}
	close(fd);
	free(now);
}

static void *cross(void *arg)
{
	size_t half = SIZE / 2, me = arg ? half : 0;
	int fd = open_as(O_RDWR);
	unsigned char *p = map(fd);

	for (int i = 0; i < ROUNDS; i++) {
		forget(fd, p);
		if (pwrite(fd, p + (half - me), half, (off_t)me) !=
		    (ssize_t)half)
			die("crosswise");
	}
	munmap(p, SIZE);
	close(fd);
	return NULL;
}

int main(int argc, char **argv)
{
	pthread_t other;

	if (argc != 2)
		return 2;
	path = argv[1];
	copy(0, 0, 10 * PAGE, PAGE);
	copy(0, 100, 200, 50);
	copy(0, 3 * PAGE - 100, 20 * PAGE + 5, 5 * PAGE);
	copy(0, PAGE, 0, 30 * PAGE);
	copy(0, 0, PAGE, 30 * PAGE);
	copy(O_DIRECT, 0, 10 * PAGE, PAGE);
	copy(O_DIRECT, 32 * PAGE, 0, 32 * PAGE);
	copy(O_DIRECT, PAGE, 0, 8 * PAGE);
	fill();
	if (pthread_create(&other, NULL, cross, argv))
		die("thread");
	cross(NULL);
	pthread_join(other, NULL);
	return 0;
}
