/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * together.c - one file used in every way at once: together FILE ROUNDS
 *
 * Three writers, each with pages of its own next to those of the others: by
 * write(2), with O_DIRECT, through a shared mapping. Meanwhile readers look at
 * all pages (a mapping, read(2), O_DIRECT), one opens and closes the file for
 * writing, asks for its attributes and renames it, and one moves its end to and
 * fro behind the pages. Nobody may hang, no word may ever be another than one
 * that its writer has stored, and in the end each is the last one.
 */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#define PAGE 4096u
#define WORDS (PAGE / 8)
#define PAGES 48u
#define SIZE ((off_t)PAGE * PAGES)
#define WRITERS 3u

static const char *path;
static char other[4096];
static _Atomic bool stop;
static unsigned long rounds;
/* How often each page was written: begun, and done. */
static atomic_uint_fast64_t begun[PAGES], done[PAGES];

static void die(const char *what, unsigned page)
{
	fprintf(stderr, "together: page %u: %s (%s)\n", page, what,
		strerror(errno));
	_exit(1);
}

/* The file has one of two names. */
static int open_as(int flags)
{
	for (;;) {
		int fd = open(path, flags);

		if (fd < 0 && errno == ENOENT)
			fd = open(other, flags);
		if (fd >= 0)
			return fd;
		if (errno != ENOENT)
			die("open", 0);
	}
}

static uint64_t word_of(unsigned page, uint64_t count)
{
	return (uint64_t)page << 48 | count;
}

static uint64_t *map(int fd)
{
	void *p = mmap(NULL, SIZE, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);

	if (p == MAP_FAILED)
		die("mmap", 0);
	return p;
}

/* ---- writers ---- */

static void put(unsigned who, int fd, uint64_t *mapped, unsigned page,
		uint64_t *buf)
{
	uint64_t count = atomic_load(&done[page]) + 1;

	atomic_store(&begun[page], count);
	for (unsigned i = 0; i < WORDS; i++)
		buf[i] = word_of(page, count);
	if (who == 2) {
		for (unsigned i = 0; i < WORDS; i++)
			((volatile uint64_t *)mapped)[page * WORDS + i] =
				buf[i];
	} else if (pwrite(fd, buf, PAGE, (off_t)page * PAGE) != PAGE) {
		die("write", page);
	}
	atomic_store(&done[page], count);
}

static void *writer(void *arg)
{
	unsigned who = (unsigned)(uintptr_t)arg;
	int fd = open_as(O_RDWR | (who == 1 ? O_DIRECT : 0));
	uint64_t *buf = aligned_alloc(PAGE, PAGE);
	uint64_t *mapped = who == 2 ? map(fd) : NULL;

	for (unsigned long i = 0; i < rounds; i++)
		for (unsigned page = who; page < PAGES; page += WRITERS)
			put(who, fd, mapped, page, buf);
	if (mapped)
		munmap(mapped, SIZE);
	close(fd);
	free(buf);
	return NULL;
}

/* ---- readers ---- */

static void look(const volatile uint64_t *words, unsigned page, uint64_t least)
{
	for (unsigned i = 0; i < WORDS; i++) {
		uint64_t word = words[i];
		uint64_t count = word & 0xffffffffffffu;

		if (word >> 48 != page)
			die("another page's word", page);
		if (count > atomic_load(&begun[page]))
			die("a word that was not written yet", page);
		if (count < least)
			die("an old word", page);
	}
}

/* who: 0 mapped, 1 read(2), 2 O_DIRECT */
static void *reader(void *arg)
{
	unsigned who = (unsigned)(uintptr_t)arg;
	uint64_t *buf = aligned_alloc(PAGE, PAGE);

	while (!stop) {
		int fd = open_as(who == 2   ? O_RDONLY | O_DIRECT
				 : who == 1 ? O_RDONLY
					    : O_RDWR);
		uint64_t *mapped = who ? NULL : map(fd);

		for (unsigned page = 0; page < PAGES; page++) {
			if (!who) {
				look(mapped + page * WORDS, page, 0);
				continue;
			}
			if (pread(fd, buf, PAGE, (off_t)page * PAGE) != PAGE)
				die("read", page);
			look(buf, page, 0);
		}
		posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED);
		if (!who)
			munmap(mapped, SIZE);
		close(fd);
	}
	free(buf);
	return NULL;
}

/* ---- the others ---- */

static void *visitor(void *arg)
{
	(void)arg;
	while (!stop) {
		int fd = open_as(O_RDWR);
		struct stat st;

		if (fstat(fd, &st) || st.st_size < SIZE)
			die("size", 0);
		if (rename(path, other) || stat(other, &st) ||
		    rename(other, path))
			die("rename", 0);
		close(fd);
	}
	return NULL;
}

static void *cutter(void *arg)
{
	int fd = open_as(O_RDWR);

	(void)arg;
	while (!stop) {
		if (pwrite(fd, "tail", 4, SIZE + 3 * PAGE + 100) != 4 ||
		    ftruncate(fd, SIZE + 5000) || ftruncate(fd, SIZE))
			die("end of file", 0);
	}
	return NULL;
}

static void fill(void)
{
	uint64_t words[WORDS];
	int fd = open(path, O_RDWR | O_CREAT | O_TRUNC, 0644);

	if (fd < 0)
		die("create", 0);
	for (unsigned page = 0; page < PAGES; page++) {
		for (unsigned i = 0; i < WORDS; i++)
			words[i] = word_of(page, 0);
		if (write(fd, words, PAGE) != PAGE)
			die("fill", page);
	}
	close(fd);
}

/* What every kind of reader finds when all is quiet. */
static void check_end(void)
{
	uint64_t *buf = aligned_alloc(PAGE, PAGE);
	int fd = open_as(O_RDWR), direct = open_as(O_RDONLY | O_DIRECT);
	uint64_t *mapped = map(fd);

	for (unsigned page = 0; page < PAGES; page++) {
		uint64_t last = atomic_load(&done[page]);

		look(mapped + page * WORDS, page, last);
		if (pread(fd, buf, PAGE, (off_t)page * PAGE) != PAGE)
			die("read", page);
		look(buf, page, last);
		if (pread(direct, buf, PAGE, (off_t)page * PAGE) != PAGE)
			die("direct read", page);
		look(buf, page, last);
	}
	munmap(mapped, SIZE);
	close(direct);
	close(fd);
	free(buf);
}

int main(int argc, char **argv)
{
	void *(*const work[])(void *) = { writer, writer, writer,  reader,
					  reader, reader, visitor, cutter };
	static const unsigned who[] = { 0, 1, 2, 0, 1, 2, 0, 0 };
	pthread_t threads[8];

	if (argc != 3)
		return 2;
	path = argv[1];
	rounds = strtoul(argv[2], NULL, 0);
	snprintf(other, sizeof(other), "%s-renamed", path);
	fill();
	for (unsigned i = 0; i < 8; i++)
		if (pthread_create(&threads[i], NULL, work[i],
				   (void *)(uintptr_t)who[i]))
			die("thread", i);
	for (unsigned i = 0; i < 8; i++) {
		stop = i >= WRITERS;
		pthread_join(threads[i], NULL);
	}
	check_end();
	return 0;
}
