/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * mapped.c - files mapped into memory: mapped DIR [full]
 *
 * Stores to a shared mapping are what read(2) sees, and the other way round; a
 * private mapping changes nothing; beyond the last page is SIGBUS; a hole that
 * is stored to becomes a block. On a full volume it cannot: that is not kept
 * from who stores and syncs, and takes nothing else along.
 */
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#define PAGE 4096
#define PAGES 20

static sigjmp_buf on_bus;

static void need(int truth, const char *what)
{
	if (truth)
		return;
	perror(what);
	exit(1);
}

static int new_file(const char *name, off_t size)
{
	int fd = open(name, O_RDWR | O_CREAT | O_TRUNC, 0644);

	need(fd >= 0, name);
	need(!ftruncate(fd, size), "ftruncate");
	return fd;
}

static unsigned char *map_file(int fd, int flags)
{
	void *map =
		mmap(NULL, PAGES * PAGE, PROT_READ | PROT_WRITE, flags, fd, 0);

	need(map != MAP_FAILED, "mmap");
	return map;
}

static void test_shared(void)
{
	int fd = new_file("shared", PAGES * PAGE);
	unsigned char *map = map_file(fd, MAP_SHARED);
	unsigned char buf[100];

	memset(map + 3 * PAGE - 50, 'm', 100);
	need(pread(fd, buf, 100, 3 * PAGE - 50) == 100 && buf[0] == 'm' &&
		     buf[99] == 'm',
	     "read does not see a store");
	memset(buf, 'w', sizeof(buf));
	need(pwrite(fd, buf, 100, 7 * PAGE) == 100, "pwrite");
	need(map[7 * PAGE] == 'w' && map[7 * PAGE + 99] == 'w' &&
		     !map[7 * PAGE + 100],
	     "a mapping does not see a write");
	need(!msync(map, PAGES * PAGE, MS_SYNC), "msync");
	munmap(map, PAGES * PAGE);
	need(pread(fd, buf, 1, 3 * PAGE) == 1 && buf[0] == 'm',
	     "a store is lost after munmap");
	close(fd);
}

static void test_private(void)
{
	int fd = new_file("private", PAGES * PAGE);
	unsigned char *map = map_file(fd, MAP_PRIVATE);
	unsigned char byte = 1;

	map[5] = 'p';
	need(pread(fd, &byte, 1, 5) == 1 && byte == 0,
	     "a private store reached the file");
	munmap(map, PAGES * PAGE);
	close(fd);
}

static void bus(int sig)
{
	siglongjmp(on_bus, sig);
}

static void test_beyond_end(void)
{
	int fd = new_file("short", PAGE + 10);
	unsigned char *map = map_file(fd, MAP_SHARED);
	volatile unsigned char *m = map;

	signal(SIGBUS, bus);
	if (!sigsetjmp(on_bus, 1)) {
		m[3 * PAGE] = 1;
		need(0, "no SIGBUS beyond the last page");
	}
	/* Up to the end of the last page a store works and is not kept. */
	m[PAGE + 500] = 7;
	need(!msync(map, PAGES * PAGE, MS_SYNC), "msync");
	need(!ftruncate(fd, 2 * PAGE), "ftruncate");
	munmap(map, PAGES * PAGE);
	signal(SIGBUS, SIG_DFL);
	close(fd);
}

static void test_truncate_below(void)
{
	int fd = new_file("cut", PAGES * PAGE);
	unsigned char *map = map_file(fd, MAP_SHARED);
	volatile unsigned char *m = map;
	unsigned char byte;

	memset(map, 't', PAGES * PAGE);
	need(!ftruncate(fd, 2 * PAGE), "ftruncate");
	signal(SIGBUS, bus);
	if (!sigsetjmp(on_bus, 1)) {
		byte = m[4 * PAGE];
		need(byte == 't' && 0, "no SIGBUS behind a truncation");
	}
	signal(SIGBUS, SIG_DFL);
	need(!ftruncate(fd, PAGES * PAGE), "ftruncate");
	need(m[4 * PAGE] == 0 && m[2 * PAGE - 1] == 't',
	     "cut bytes have come back");
	munmap(map, PAGES * PAGE);
	close(fd);
}

static void test_hole(void)
{
	int fd = new_file("hole", PAGES * PAGE);
	unsigned char *map = map_file(fd, MAP_SHARED);
	struct stat st;

	need(!fstat(fd, &st) && st.st_blocks * 512 < 2 * PAGE,
	     "a hole has blocks");
	map[9 * PAGE] = 'h';
	need(!msync(map, PAGES * PAGE, MS_SYNC), "msync");
	munmap(map, PAGES * PAGE);
	need(!fsync(fd), "fsync");
	need(!fstat(fd, &st) && st.st_blocks > 0, "a stored page has none");
	close(fd);
}

/* By SIGBUS, or by the sync. */
static void test_full(void)
{
	int fd = new_file("full", PAGES * PAGE);
	unsigned char *map = map_file(fd, MAP_SHARED);
	int err, i;

	if (sigsetjmp(on_bus, 1))
		return;
	signal(SIGBUS, bus);
	for (i = 0; i < PAGES; i++)
		map[i * PAGE] = 'f';
	err = msync(map, PAGES * PAGE, MS_SYNC) ? errno : 0;
	if (!err)
		err = fsync(fd) ? errno : 0;
	need(err == ENOSPC, "stores into holes of a full volume were synced");
	munmap(map, PAGES * PAGE);
	close(fd);
}

int main(int argc, char **argv)
{
	int full = argc == 3 && !strcmp(argv[2], "full");

	if ((argc != 2 && !full) || chdir(argv[1])) {
		fprintf(stderr, "usage: mapped DIR [full]\n");
		return 2;
	}
	if (full) {
		test_full();
		return 0;
	}
	test_shared();
	test_private();
	test_beyond_end();
	test_truncate_below();
	test_hole();
	return 0;
}
