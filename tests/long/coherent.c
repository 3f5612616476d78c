/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * coherent.c - what one process writes, another sees at once, however either
 * has the file open: coherent FILE ROUNDS
 *
 * The writer counts, each time by the next of: write(2), a store to a shared
 * mapping, O_DIRECT, append (which moves the end), truncate and write. After
 * each it waits until the reader has looked through a descriptor of long
 * standing, a fresh one, O_DIRECT, a shared mapping and stat(2).
 */
#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#define PAGE 4096u

/* What is in the first page, and what the size must be. */
struct told {
	uint64_t count;
	uint64_t size;
};

static const char *path;

static void die(const char *what, uint64_t count)
{
	fprintf(stderr, "coherent: count %llu: %s (%s)\n",
		(unsigned long long)count, what, strerror(errno));
	exit(1);
}

static int open_as(int flags)
{
	int fd = open(path, flags);

	if (fd < 0)
		die("open", 0);
	return fd;
}

static uint64_t *map(int fd)
{
	void *p = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);

	if (p == MAP_FAILED)
		die("mmap", 0);
	return p;
}

/* ---- the reader ---- */

struct reader {
	int fd;
	int direct;
	volatile uint64_t *mapped;
	uint64_t *page;
};

static void look(struct reader *r, const struct told *t)
{
	struct stat by_name, by_fd;
	int fresh = open_as(O_RDONLY);

	if (*r->mapped != t->count)
		die("old through the mapping", t->count);
	if (pread(r->fd, r->page, 8, 0) != 8 || *r->page != t->count)
		die("old through an old descriptor", t->count);
	if (pread(fresh, r->page, 8, 0) != 8 || *r->page != t->count)
		die("old through a fresh descriptor", t->count);
	if (pread(r->direct, r->page, PAGE, 0) != PAGE || *r->page != t->count)
		die("old through O_DIRECT", t->count);
	if (stat(path, &by_name) || (uint64_t)by_name.st_size != t->size)
		die("old size by name", t->count);
	if (fstat(r->fd, &by_fd) || (uint64_t)by_fd.st_size != t->size)
		die("old size by descriptor", t->count);
	if (t->size > PAGE &&
	    (pread(r->fd, r->page, 8, (off_t)t->size - 8) != 8 ||
	     *r->page != t->count))
		die("old at the end", t->count);
	close(fresh);
}

static int reader(int in, int out)
{
	struct reader r = {
		.fd = open_as(O_RDONLY),
		.direct = open_as(O_RDONLY | O_DIRECT),
		.mapped = map(open_as(O_RDWR)),
		.page = aligned_alloc(PAGE, PAGE),
	};
	struct told t;

	while (read(in, &t, sizeof(t)) == sizeof(t)) {
		look(&r, &t);
		if (write(out, "", 1) != 1)
			return 1;
	}
	return 0;
}

/* ---- the writer ---- */

struct writer {
	int fd;
	int direct;
	int append;
	uint64_t *mapped;
	uint64_t *page;
};

static void put(int fd, const void *data, size_t len, off_t at, uint64_t count)
{
	if (pwrite(fd, data, len, at) != (ssize_t)len)
		die("write", count);
}

static void count_up(struct writer *w, struct told *t)
{
	uint64_t n = ++t->count;

	switch (n % 5) {
	case 0:
		put(w->fd, &n, 8, 0, n);
		break;
	case 1:
		*w->mapped = n;
		break;
	case 2:
		*w->page = n;
		put(w->direct, w->page, PAGE, 0, n);
		break;
	case 3:
		put(w->fd, &n, 8, 0, n);
		break;
	case 4:
		if (n % 50 == 4 && ftruncate(w->fd, PAGE))
			die("truncate", n);
		if (n % 50 == 4)
			t->size = PAGE;
		*w->mapped = n;
		break;
	}
	/* The end carries the count as well. */
	if (n % 5 > 2) {
		if (write(w->append, &n, 8) != 8)
			die("append", n);
		t->size += 8;
	} else if (t->size > PAGE) {
		put(w->fd, &n, 8, (off_t)t->size - 8, n);
	}
}

static void writer(int out, int in, unsigned long rounds)
{
	struct writer w = {
		.fd = open_as(O_RDWR),
		.direct = open_as(O_RDWR | O_DIRECT),
		.append = open_as(O_WRONLY | O_APPEND),
		.page = aligned_alloc(PAGE, PAGE),
	};
	struct told t = { .size = PAGE };
	char c;

	w.mapped = map(w.fd);
	memset(w.page, 0, PAGE);
	while (t.count < rounds) {
		count_up(&w, &t);
		if (write(out, &t, sizeof(t)) != sizeof(t) ||
		    read(in, &c, 1) != 1)
			exit(1);
	}
}

int main(int argc, char **argv)
{
	int to[2], from[2], fd, status;

	if (argc != 3 || pipe(to) || pipe(from))
		return 2;
	path = argv[1];
	fd = open(path, O_RDWR | O_CREAT | O_TRUNC, 0644);
	if (fd < 0 || ftruncate(fd, PAGE))
		die("create", 0);
	if (!fork()) {
		close(to[1]);
		close(from[0]);
		return reader(to[0], from[1]);
	}
	close(to[0]);
	close(from[1]);
	writer(to[1], from[0], strtoul(argv[2], NULL, 0));
	close(to[1]);
	return wait(&status) < 0 || status ? 1 : 0;
}
