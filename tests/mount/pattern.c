/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * pattern.c - files whose every byte is known.
 *
 *   pattern write  FILE OFFSET LEN SEED [direct,append,sync,fsync,bs=BYTES]
 *   pattern verify FILE OFFSET LEN SEED [direct,bs=BYTES]
 *   pattern zero   FILE OFFSET LEN       all bytes are zero
 *
 * The byte at an offset depends on offset and seed only. Sizes take K, M, G.
 */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct job {
	const char *path;
	uint64_t offset, len;
	uint64_t seed;
	bool zero;
	size_t bs;
	int flags;
	bool fsync;
	int fd;
	unsigned char *buf;
};

static void die(const struct job *job, const char *what)
{
	fprintf(stderr, "pattern: %s: %s: %s\n", job->path, what,
		strerror(errno));
	exit(1);
}

static uint64_t size_of(const char *text)
{
	char *end;
	uint64_t n = strtoull(text, &end, 0);

	switch (*end) {
	case 'G':
		n <<= 10;
		/* fall through */
	case 'M':
		n <<= 10;
		/* fall through */
	case 'K':
		n <<= 10;
		/* fall through */
	default:
		return n;
	}
}

/* A mixing function: neighbouring words have nothing in common. */
static uint64_t mix(uint64_t x)
{
	x += 0x9e3779b97f4a7c15u;
	x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
	x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
	return x ^ (x >> 31);
}

static unsigned char byte_at(const struct job *job, uint64_t offset)
{
	uint64_t word;

	if (job->zero)
		return 0;
	word = mix(mix(job->seed) ^ (offset >> 3));
	return (unsigned char)(word >> (8 * (offset & 7)));
}

static void fill(const struct job *job, uint64_t offset, size_t len)
{
	for (size_t i = 0; i < len; i++)
		job->buf[i] = byte_at(job, offset + i);
}

static void compare(const struct job *job, uint64_t offset, size_t len)
{
	for (size_t i = 0; i < len; i++) {
		unsigned char want = byte_at(job, offset + i);

		if (job->buf[i] == want)
			continue;
		fprintf(stderr,
			"pattern: %s: byte %" PRIu64 " is %#x, expected %#x\n",
			job->path, offset + i, job->buf[i], want);
		exit(1);
	}
}

static void write_all(struct job *job)
{
	for (uint64_t done = 0; done < job->len;) {
		size_t len = job->bs;
		ssize_t n;

		if (len > job->len - done)
			len = (size_t)(job->len - done);
		fill(job, job->offset + done, len);
		n = job->flags & O_APPEND ? write(job->fd, job->buf, len)
					  : pwrite(job->fd, job->buf, len,
						   (off_t)(job->offset + done));
		if (n != (ssize_t)len)
			die(job, "write");
		done += len;
	}
	if (job->fsync && fsync(job->fd))
		die(job, "fsync");
	if (close(job->fd))
		die(job, "close");
}

static void verify_all(struct job *job)
{
	for (uint64_t done = 0; done < job->len;) {
		size_t len = job->bs;
		ssize_t n;

		if (len > job->len - done)
			len = (size_t)(job->len - done);
		n = pread(job->fd, job->buf,
			  job->flags & O_DIRECT ? job->bs : len,
			  (off_t)(job->offset + done));
		if (n < 0)
			die(job, "read");
		if (n < (ssize_t)len) {
			errno = ENODATA;
			die(job, "short read");
		}
		compare(job, job->offset + done, len);
		done += len;
	}
}

static void parse_words(struct job *job, char *text)
{
	char *word;

	while ((word = strsep(&text, ","))) {
		if (!strcmp(word, "direct"))
			job->flags |= O_DIRECT;
		else if (!strcmp(word, "append"))
			job->flags |= O_APPEND;
		else if (!strcmp(word, "sync"))
			job->flags |= O_SYNC;
		else if (!strcmp(word, "fsync"))
			job->fsync = true;
		else if (!strncmp(word, "bs=", 3))
			job->bs = (size_t)size_of(word + 3);
	}
}

int main(int argc, char **argv)
{
	struct job job = { .bs = 128 << 10 };
	bool writing;

	if (argc < 5) {
		fprintf(stderr, "usage: pattern write|verify|zero FILE OFFSET "
				"LEN [SEED] [WORDS]\n");
		return 2;
	}
	writing = !strcmp(argv[1], "write");
	job.zero = !strcmp(argv[1], "zero");
	job.path = argv[2];
	job.offset = size_of(argv[3]);
	job.len = size_of(argv[4]);
	job.seed = argc > 5 ? strtoull(argv[5], NULL, 0) : 0;
	if (argc > 6)
		parse_words(&job, argv[6]);
	job.buf = aligned_alloc(4096, (job.bs + 4095) & ~(size_t)4095);
	job.fd = open(job.path,
		      job.flags | (writing ? O_WRONLY | O_CREAT : O_RDONLY),
		      0644);
	if (!job.buf || job.fd < 0)
		die(&job, "open");
	if (writing)
		write_all(&job);
	else
		verify_all(&job);
	free(job.buf);
	return 0;
}
