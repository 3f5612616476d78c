/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * lockcheck.c - judge the histories of lockclients.
 *
 * Usage: lockcheck HISTORY... Prints "clients N holds N reads N", and exits 0
 * if
 *  - no two holds in modes that exclude each other meet in time;
 *  - a valid value that was read is the one that was written last before.
 * Otherwise it prints the first such pair, and exits 1.
 *
 * A hold in which its process was killed ends when that was alive last.
 */
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "dlm/dlm.h"
#include "lockhistory.h"

struct item {
	const struct hold *hold;
	uint64_t begin_ns, end_ns;
	uint32_t node, pid;
	bool killed;
};

static struct item *items;
static size_t count, space, reads;

static void add(const struct history *h, const struct hold *hold)
{
	struct item *item;

	if (!hold->begin_ns)
		return; /* killed while it was being written down */
	if (count == space) {
		space = space ? 2 * space : 65536;
		items = realloc(items, space * sizeof(*items));
		if (!items)
			exit(2);
	}
	item = &items[count++];
	item->hold = hold;
	item->node = h->node;
	item->pid = h->pid;
	item->begin_ns = hold->begin_ns;
	item->end_ns = hold->end_ns;
	item->killed = !item->end_ns;
	if (item->killed)
		item->end_ns = h->alive_ns > item->begin_ns ? h->alive_ns
							    : item->begin_ns;
}

static void load(const char *path)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	struct history *h;

	if (fd < 0) {
		perror(path);
		exit(2);
	}
	h = mmap(NULL, sizeof(*h), PROT_READ, MAP_SHARED, fd, 0);
	if (h == MAP_FAILED || h->magic != HISTORY_MAGIC) {
		fprintf(stderr, "%s: not a history\n", path);
		exit(2);
	}
	for (uint32_t i = 0; i < h->count && i < HISTORY_MAX; i++)
		add(h, &h->hold[i]);
	close(fd);
}

static int compare(const void *a, const void *b)
{
	const struct item *x = a, *y = b;

	if (x->hold->resource != y->hold->resource)
		return x->hold->resource < y->hold->resource ? -1 : 1;
	return (x->begin_ns > y->begin_ns) - (x->begin_ns < y->begin_ns);
}

static void show(const char *what, const struct item *i)
{
	printf("%s: r%u mode %d node %u pid %u thread %u from %.6f to %.6f%s"
	       " read %llx%s wrote %llx\n",
	       what, i->hold->resource, i->hold->mode, i->node, i->pid,
	       i->hold->thread, (double)i->begin_ns / 1e9,
	       (double)i->end_ns / 1e9, i->killed ? " (killed)" : "",
	       (unsigned long long)i->hold->read,
	       i->hold->did_read ? "" : " (not valid)",
	       (unsigned long long)i->hold->written);
}

/* Of each mode the hold that ends last so far is the one to meet. */
static void check_exclusion(size_t from, size_t to)
{
	const struct item *last[LKM_EX + 1] = { NULL };

	for (size_t i = from; i < to; i++) {
		const struct item *item = &items[i];
		int mode = item->hold->mode;

		for (int other = LKM_NL; other <= LKM_EX; other++) {
			if (!last[other] ||
			    dlm_modes_compatible((enum dlm_mode)mode,
						 (enum dlm_mode)other) ||
			    last[other]->end_ns <= item->begin_ns)
				continue;
			show("held", last[other]);
			show("and", item);
			exit(1);
		}
		if (!last[mode] || last[mode]->end_ns < item->end_ns)
			last[mode] = item;
	}
}

/*
 * Holds in which something is written exclude each other, and readers above CR.
 * A writer that was killed leaves a value that is not valid, until the next
 * one.
 */
static void check_values(size_t from, size_t to)
{
	const struct item *writer = NULL;

	for (size_t i = from; i < to; i++) {
		const struct item *item = &items[i];
		const struct hold *hold = item->hold;

		if (hold->mode >= LKM_PR && hold->did_read) {
			reads++;
			if (writer && hold->read != writer->hold->written) {
				show("written", writer);
				show("read", item);
				exit(1);
			}
		}
		if (hold->written)
			writer = item;
	}
}

int main(int argc, char **argv)
{
	for (int i = 1; i < argc; i++)
		load(argv[i]);
	if (!count) {
		printf("no holds\n");
		return 1;
	}
	qsort(items, count, sizeof(*items), compare);
	for (size_t from = 0, to; from < count; from = to) {
		for (to = from + 1;
		     to < count &&
		     items[to].hold->resource == items[from].hold->resource;
		     to++)
			;
		check_exclusion(from, to);
		check_values(from, to);
	}
	printf("clients %d holds %zu reads %zu\n", argc - 1, count, reads);
	return 0;
}
