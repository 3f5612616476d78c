/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * sectors.c - neighbours within a block are written at once, each by another:
 * sectors FILE THREADS SECTORS
 *
 * Thread t owns the sectors of 512 bytes whose number modulo THREADS is t, and
 * writes each once, in a random order, with O_DIRECT. The file starts empty, so
 * the blocks are holes or beyond the end at first. Then every byte is checked.
 */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define SECTOR 512u
#define THREADS_MAX 16

static const char *path;
static unsigned long threads, sectors;

static void die(const char *what, unsigned long sector)
{
	fprintf(stderr, "sectors: sector %lu: %s (%s)\n", sector, what,
		strerror(errno));
	exit(1);
}

static void *writer(void *arg)
{
	unsigned long me = (unsigned long)arg, own = sectors / threads;
	int fd = open(path, O_WRONLY | O_DIRECT);
	unsigned char *buf = aligned_alloc(4096, 4096);

	if (fd < 0)
		die("open", me);
	for (unsigned long i = 0; i < own; i++) {
		/* 7919 is prime and own is no multiple of it: each once. */
		unsigned long sector = i * 7919 % own * threads + me;

		memset(buf, (int)(sector % 251 + 1), SECTOR);
		if (pwrite(fd, buf, SECTOR, (off_t)(sector * SECTOR)) !=
		    (ssize_t)SECTOR)
			die("write", sector);
	}
	close(fd);
	return NULL;
}

int main(int argc, char **argv)
{
	pthread_t tid[THREADS_MAX];
	unsigned char buf[SECTOR];
	int fd;

	if (argc != 4)
		return 2;
	path = argv[1];
	threads = strtoul(argv[2], NULL, 0);
	sectors = strtoul(argv[3], NULL, 0);
	if (!threads || threads > THREADS_MAX || sectors / threads % 7919 == 0)
		return 2;
	sectors -= sectors % threads;
	fd = open(path, O_RDWR | O_CREAT | O_TRUNC, 0644);
	if (fd < 0)
		die("create", 0);
	for (unsigned long t = 0; t < threads; t++)
		if (pthread_create(&tid[t], NULL, writer, (void *)t))
			die("thread", t);
	for (unsigned long t = 0; t < threads; t++)
		pthread_join(tid[t], NULL);
	for (unsigned long s = 0; s < sectors; s++) {
		if (pread(fd, buf, SECTOR, (off_t)(s * SECTOR)) !=
		    (ssize_t)SECTOR)
			die("read", s);
		for (unsigned i = 0; i < SECTOR; i++)
			if (buf[i] != s % 251 + 1)
				die("not what was written", s);
	}
	return 0;
}
