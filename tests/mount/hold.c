/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * hold.c - a process that keeps a removed file in use.
 *
 *   hold FILE BYTES
 *
 * Makes the file, removes its name, writes BYTES, prints "ready", waits for the
 * end of its standard input, then reads everything back. Exit status 1 if
 * anything is not as it should be.
 */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static unsigned char chunk[65536], got[65536];

static void die(const char *what)
{
	perror(what);
	exit(1);
}

int main(int argc, char **argv)
{
	long bytes = argc > 2 ? atol(argv[2]) : 0, done;
	struct stat st;
	char c;
	int fd;

	if (argc != 3)
		return 2;
	fd = open(argv[1], O_RDWR | O_CREAT | O_EXCL, 0600);
	if (fd < 0 || unlink(argv[1]))
		die(argv[1]);
	memset(chunk, 0x5a, sizeof(chunk));
	for (done = 0; done < bytes; done += (long)sizeof(chunk))
		if (write(fd, chunk, sizeof(chunk)) != (ssize_t)sizeof(chunk))
			die("write");
	if (fsync(fd))
		die("fsync");
	puts("ready");
	fflush(stdout);
	while (read(0, &c, 1) > 0)
		;
	if (fstat(fd, &st) || st.st_nlink || st.st_size != done)
		die("fstat");
	for (long at = 0; at < done; at += (long)sizeof(chunk)) {
		if (pread(fd, got, sizeof(got), at) != (ssize_t)sizeof(got))
			die("read");
		if (memcmp(got, chunk, sizeof(got)))
			die("other bytes");
	}
	return close(fd) ? 1 : 0;
}
