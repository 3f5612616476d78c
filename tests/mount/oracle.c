/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * oracle.c - random operations on one file, against a copy in memory.
 *
 *   oracle FILE SEED OPERATIONS [direct]
 *
 * Reads, writes, appends, truncates, maps, syncs and reopens the file; every
 * byte that comes back must be what the copy says. The same seed does the same.
 * With "direct" some of the reads and writes are O_DIRECT.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#define SIZE_MAX_BYTES (3u << 20)
#define IO_MAX_BYTES (160u << 10)
#define ALIGN 4096u

struct oracle {
	const char *path;
	int fd;
	int direct_fd;	     /* -1: not used */
	unsigned char *want; /* SIZE_MAX_BYTES */
	unsigned char *buf;  /* aligned */
	size_t size;
	uint64_t random;
	unsigned long step;
	const char *doing;
};

static void die(const struct oracle *o, const char *what)
{
	fprintf(stderr, "oracle: %s: step %lu, %s: %s (errno %s)\n", o->path,
		o->step, o->doing, what, strerror(errno));
	exit(1);
}

static uint32_t rnd(struct oracle *o, uint32_t below)
{
	o->random = o->random * 6364136223846793005u + 1442695040888963407u;
	return (uint32_t)((o->random >> 33) % below);
}

/* Small sizes and round numbers are where the boundaries are. */
static size_t random_offset(struct oracle *o)
{
	switch (rnd(o, 4)) {
	case 0:
		return rnd(o, 8192);
	case 1:
		return rnd(o, SIZE_MAX_BYTES / ALIGN) * ALIGN;
	default:
		return rnd(o, SIZE_MAX_BYTES);
	}
}

static size_t random_len(struct oracle *o, size_t offset)
{
	size_t len = 1 + rnd(o, rnd(o, 2) ? 300 : IO_MAX_BYTES);

	return len < SIZE_MAX_BYTES - offset ? len : SIZE_MAX_BYTES - offset;
}

static void compare(const struct oracle *o, size_t offset,
		    const unsigned char *got, size_t len)
{
	char text[120];

	for (size_t i = 0; i < len; i++) {
		if (got[i] == o->want[offset + i])
			continue;
		snprintf(text, sizeof(text),
			 "byte %zu of %zu is %#x, expected %#x", offset + i,
			 o->size, got[i], o->want[offset + i]);
		die(o, text);
	}
}

static void grow(struct oracle *o, size_t size)
{
	if (size > o->size) {
		memset(o->want + o->size, 0, size - o->size);
		o->size = size;
	}
}

static void random_bytes(struct oracle *o, size_t offset, size_t len)
{
	unsigned char seed = (unsigned char)rnd(o, 256);

	for (size_t i = 0; i < len; i++)
		o->buf[i] = (unsigned char)(seed + (offset + i) * 7 +
					    ((offset + i) >> 8));
}

static void do_write(struct oracle *o)
{
	size_t offset = random_offset(o), len = random_len(o, offset);

	o->doing = "write";
	random_bytes(o, offset, len);
	if (pwrite(o->fd, o->buf, len, (off_t)offset) != (ssize_t)len)
		die(o, "pwrite");
	grow(o, offset > o->size ? offset : o->size);
	grow(o, offset + len);
	memcpy(o->want + offset, o->buf, len);
}

static void do_append(struct oracle *o)
{
	size_t len = random_len(o, o->size);
	int fd;

	o->doing = "append";
	if (!len)
		return;
	fd = open(o->path, O_WRONLY | O_APPEND);
	random_bytes(o, o->size, len);
	if (fd < 0 || write(fd, o->buf, len) != (ssize_t)len || close(fd))
		die(o, "append");
	memcpy(o->want + o->size, o->buf, len);
	o->size += len;
}

static void do_read(struct oracle *o)
{
	size_t offset = random_offset(o), len = random_len(o, offset);
	size_t want = offset < o->size ? o->size - offset : 0;
	ssize_t n;

	o->doing = "read";
	if (want > len)
		want = len;
	n = pread(o->fd, o->buf, len, (off_t)offset);
	if (n != (ssize_t)want)
		die(o, "pread returned another length");
	compare(o, offset, o->buf, want);
}

static void do_direct_write(struct oracle *o)
{
	size_t offset = rnd(o, SIZE_MAX_BYTES / ALIGN) * ALIGN;
	size_t len = (1 + rnd(o, 16)) * ALIGN;

	o->doing = "direct write";
	if (len > SIZE_MAX_BYTES - offset)
		len = SIZE_MAX_BYTES - offset;
	random_bytes(o, offset, len);
	if (pwrite(o->direct_fd, o->buf, len, (off_t)offset) != (ssize_t)len)
		die(o, "pwrite");
	grow(o, offset + len);
	memcpy(o->want + offset, o->buf, len);
}

static void do_direct_read(struct oracle *o)
{
	size_t offset = rnd(o, SIZE_MAX_BYTES / ALIGN) * ALIGN;
	size_t len = (1 + rnd(o, 16)) * ALIGN;
	size_t want = offset < o->size ? o->size - offset : 0;

	o->doing = "direct read";
	if (want > len)
		want = len;
	if (pread(o->direct_fd, o->buf, len, (off_t)offset) != (ssize_t)want)
		die(o, "pread returned another length");
	compare(o, offset, o->buf, want);
}

static void do_truncate(struct oracle *o)
{
	size_t size = random_offset(o);

	o->doing = "truncate";
	if (ftruncate(o->fd, (off_t)size))
		die(o, "ftruncate");
	grow(o, size);
	o->size = size;
}

static void do_map_read(struct oracle *o)
{
	unsigned char *map;

	o->doing = "mapped read";
	if (!o->size)
		return;
	map = mmap(NULL, o->size, PROT_READ, MAP_SHARED, o->fd, 0);
	if (map == MAP_FAILED)
		die(o, "mmap");
	compare(o, 0, map, o->size);
	munmap(map, o->size);
}

static void do_map_write(struct oracle *o)
{
	size_t offset, len;
	unsigned char *map;

	o->doing = "mapped write";
	if (!o->size)
		return;
	offset = rnd(o, (uint32_t)o->size);
	len = random_len(o, offset);
	if (len > o->size - offset)
		len = o->size - offset;
	map = mmap(NULL, o->size, PROT_READ | PROT_WRITE, MAP_SHARED, o->fd, 0);
	if (map == MAP_FAILED)
		die(o, "mmap");
	random_bytes(o, offset, len);
	memcpy(map + offset, o->buf, len);
	memcpy(o->want + offset, o->buf, len);
	if (rnd(o, 2) && msync(map, o->size, MS_SYNC))
		die(o, "msync");
	munmap(map, o->size);
}

static void do_check_size(struct oracle *o)
{
	struct stat st;

	o->doing = "stat";
	if (stat(o->path, &st) || (size_t)st.st_size != o->size)
		die(o, "another size");
}

static void open_files(struct oracle *o, bool direct)
{
	o->doing = "open";
	o->fd = open(o->path, O_RDWR | O_CREAT, 0644);
	o->direct_fd = direct ? open(o->path, O_RDWR | O_DIRECT) : -1;
	if (o->fd < 0 || (direct && o->direct_fd < 0))
		die(o, "open");
}

static void do_reopen(struct oracle *o)
{
	bool direct = o->direct_fd >= 0;

	o->doing = "reopen";
	if (rnd(o, 2) && fsync(o->fd))
		die(o, "fsync");
	if (direct)
		close(o->direct_fd);
	if (close(o->fd))
		die(o, "close");
	open_files(o, direct);
}

static void step(struct oracle *o)
{
	unsigned what = rnd(o, 100);

	if (what < 30)
		do_write(o);
	else if (what < 55)
		do_read(o);
	else if (what < 62)
		do_append(o);
	else if (what < 70)
		do_truncate(o);
	else if (what < 76)
		do_map_read(o);
	else if (what < 84)
		do_map_write(o);
	else if (what < 90)
		o->direct_fd >= 0 ? do_direct_write(o) : do_write(o);
	else if (what < 95)
		o->direct_fd >= 0 ? do_direct_read(o) : do_read(o);
	else if (what < 98)
		do_check_size(o);
	else
		do_reopen(o);
}

int main(int argc, char **argv)
{
	struct oracle o = { 0 };
	unsigned long steps;

	if (argc < 4) {
		fprintf(stderr, "usage: oracle FILE SEED OPERATIONS "
				"[direct]\n");
		return 2;
	}
	o.path = argv[1];
	o.random = strtoull(argv[2], NULL, 0);
	steps = strtoul(argv[3], NULL, 0);
	o.want = calloc(1, SIZE_MAX_BYTES);
	o.buf = aligned_alloc(ALIGN, IO_MAX_BYTES + ALIGN);
	if (!o.want || !o.buf)
		return 2;
	unlink(o.path);
	open_files(&o, argc > 4);
	for (o.step = 1; o.step <= steps; o.step++)
		step(&o);
	do_map_read(&o);
	do_check_size(&o);
	free(o.want);
	free(o.buf);
	return 0;
}
