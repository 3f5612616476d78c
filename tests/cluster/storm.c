/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * storm.c - one file mapped and changed by all nodes at once:
 * storm SECONDS DIR DIR...
 *
 * Each page has a counter for each node. On each node
 *
 *	a storer	counts up its own counters by stores to a mapping
 *	a loader	sees through another mapping that no counter goes back
 *	a reader	the same by read(2), through handles that only read
 *	a writer	counts up a counter of its own by write(2)
 *	a cutter	cuts a second file and lets it grow again, while
 *	a smearer	stores into a mapping of that one; SIGBUS is no fault
 *
 * In the end every node must see each counter as its owner left it. A process
 * that is stuck is for the caller to notice.
 */
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#define PAGE 4096u
#define PAGES 24u
/*
 * Stores go to the first pages, writes to the others: a write through a direct
 * handle races with stores to the same page on its own node, whatever the file
 * system (docs/spec/fuse.md 15.4).
 */
#define STORED (PAGES / 2)
#define NODES_MAX 4
#define COUNTERS (2 * NODES_MAX) /* of stores, and of writes */
#define KINDS 6

/* Of all processes. */
struct shared {
	atomic_bool stop;
	uint64_t last[PAGES][COUNTERS]; /* by the owner of a counter */
	atomic_ulong rounds[KINDS];
};

struct page {
	uint64_t counters[COUNTERS];
	char rest[PAGE - COUNTERS * sizeof(uint64_t)];
};

static struct shared *all;
static char *const *roots;
static int nodes;
static sigjmp_buf beyond;

static void die(int node, const char *what)
{
	fprintf(stderr, "storm: node %d: %s (%s)\n", node, what,
		strerror(errno));
	exit(1);
}

static int open_file(int node, const char *name, int flags)
{
	char path[512];
	int fd;

	snprintf(path, sizeof(path), "%s/%s", roots[node], name);
	fd = open(path, flags, 0644);
	if (fd < 0)
		die(node, "open");
	return fd;
}

static struct page *map(int node, int fd, int prot)
{
	void *p = mmap(NULL, PAGES * PAGE, prot, MAP_SHARED, fd, 0);

	if (p == MAP_FAILED)
		die(node, "mmap");
	return p;
}

static void storer(int node)
{
	struct page *pages = map(node, open_file(node, "pages", O_RDWR),
				 PROT_READ | PROT_WRITE);

	for (unsigned n = 0; !all->stop; n++) {
		unsigned p = (unsigned)rand() % STORED;
		volatile uint64_t *c = &pages[p].counters[node];

		if (*c != all->last[p][node])
			die(node, "own store lost");
		*c = ++all->last[p][node];
		atomic_fetch_add(&all->rounds[0], 1);
		/* A burst now and then; else others would not get at it. */
		if (n % 16 == 0)
			usleep(1000);
	}
}

/* Each counter is at least what was seen before. */
static void look(int node, uint64_t *seen, const volatile uint64_t *now,
		 const char *how)
{
	for (unsigned c = 0; c < COUNTERS; c++) {
		uint64_t value = now[c];

		if (value < seen[c])
			die(node, how);
		seen[c] = value;
	}
}

static void loader(int node)
{
	struct page *pages =
		map(node, open_file(node, "pages", O_RDONLY), PROT_READ);
	uint64_t seen[PAGES][COUNTERS] = { 0 };

	while (!all->stop) {
		unsigned p = (unsigned)rand() % PAGES;

		look(node, seen[p], pages[p].counters, "a load went back");
		atomic_fetch_add(&all->rounds[1], 1);
		if (p == 0)
			usleep(500);
	}
}

static void reader(int node)
{
	uint64_t seen[PAGES][COUNTERS] = { 0 };
	uint64_t now[COUNTERS];
	int fd = -1;

	for (unsigned n = 0; !all->stop; n++) {
		unsigned p = (unsigned)rand() % PAGES;

		if (n % 8 == 0) {
			if (fd >= 0)
				close(fd);
			fd = open_file(node, "pages", O_RDONLY);
		}
		if (pread(fd, now, sizeof(now), p * PAGE) != sizeof(now))
			die(node, "read");
		look(node, seen[p], now, "a read went back");
		atomic_fetch_add(&all->rounds[2], 1);
		usleep(300);
	}
}

static void writer(int node)
{
	while (!all->stop) {
		unsigned p = STORED + (unsigned)rand() % (PAGES - STORED);
		unsigned c = (unsigned)node + NODES_MAX;
		uint64_t value = all->last[p][c] + 1;
		int fd = open_file(node, "pages", O_RDWR);

		if (pwrite(fd, &value, sizeof(value),
			   (off_t)(p * PAGE + c * sizeof(value))) !=
		    sizeof(value))
			die(node, "write");
		all->last[p][c] = value;
		close(fd);
		atomic_fetch_add(&all->rounds[3], 1);
		usleep(2000);
	}
}

static void cutter(int node)
{
	int fd = open_file(node, "cut", O_RDWR);

	while (!all->stop) {
		if (ftruncate(fd, (off_t)((unsigned)rand() % (PAGES * PAGE))))
			die(node, "truncate");
		if (ftruncate(fd, PAGES * PAGE))
			die(node, "grow");
		atomic_fetch_add(&all->rounds[4], 1);
		usleep(3000);
	}
}

static void sigbus(int signo)
{
	siglongjmp(beyond, 1);
}

static void smearer(int node)
{
	int fd = open_file(node, "cut", O_RDWR);
	struct page *pages = map(node, fd, PROT_READ | PROT_WRITE);

	signal(SIGBUS, sigbus);
	while (!all->stop) {
		if (sigsetjmp(beyond, 1) == 0)
			memset(&pages[(unsigned)rand() % PAGES], rand(), PAGE);
		atomic_fetch_add(&all->rounds[5], 1);
		usleep(500);
	}
}

static void (*const kinds[KINDS])(int node) = {
	storer, loader, reader, writer, cutter, smearer,
};

static void begin(int node, unsigned kind)
{
	pid_t pid = fork();

	if (pid < 0)
		die(node, "fork");
	if (pid)
		return;
	srand((unsigned)node * KINDS + kind);
	kinds[kind](node);
	exit(0);
}

static bool all_end_well(void)
{
	bool well = true;
	int status;

	while (wait(&status) > 0)
		well &= status == 0;
	return well;
}

static void check(int node)
{
	int fd = open_file(node, "pages", O_RDONLY);
	struct page page;

	for (unsigned p = 0; p < PAGES; p++) {
		if (pread(fd, &page, PAGE, p * PAGE) != PAGE)
			die(node, "last read");
		for (unsigned c = 0; c < COUNTERS; c++) {
			if (page.counters[c] == all->last[p][c])
				continue;
			fprintf(stderr,
				"storm: page %u counter %u: %lu of %lu\n", p, c,
				page.counters[c], all->last[p][c]);
			die(node, "a store or write is missing in the end");
		}
	}
	close(fd);
}

int main(int argc, char **argv)
{
	int fd;

	if (argc < 3 || argc > 2 + NODES_MAX)
		return 2;
	roots = argv + 2;
	nodes = argc - 2;
	all = mmap(NULL, sizeof(*all), PROT_READ | PROT_WRITE,
		   MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	fd = open_file(0, "pages", O_RDWR | O_CREAT);
	if (ftruncate(fd, PAGES * PAGE))
		die(0, "truncate");
	close(fd);
	fd = open_file(0, "cut", O_RDWR | O_CREAT);
	if (ftruncate(fd, PAGES * PAGE))
		die(0, "truncate");
	close(fd);
	for (int n = 0; n < nodes; n++)
		for (unsigned k = 0; k < KINDS; k++)
			begin(n, k);
	sleep((unsigned)atoi(argv[1]));
	all->stop = true;
	if (!all_end_well())
		return 1;
	for (int n = 0; n < nodes; n++)
		check(n);
	printf("stores %lu loads %lu reads %lu writes %lu cuts %lu smears "
	       "%lu\n",
	       all->rounds[0], all->rounds[1], all->rounds[2], all->rounds[3],
	       all->rounds[4], all->rounds[5]);
	return 0;
}
