/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * locktimes.c - how long lockclients had to wait after what was done to nodes.
 *
 * Usage: locktimes now, which prints the time, or
 * locktimes EVENTS HISTORY... Lines of EVENTS, times in seconds of the
 * monotonic clock:
 *
 *	kill 3 81.27		this was done to node 3
 *	fence 3 83.11 83.40	a fence command, from when to when
 *
 * Of each that made the others prepare for a change of members: when they heard
 * of it (the first one), how long fence commands ran after that, and when the
 * last of them had a lock again that was granted after the change.
 *
 *	  kill		  prepare	 fence	    running   grant
 *	   |-- detection ----|-- .. -|=======|-- .. ---|--------|
 *	   |------------------------- total --------------------|
 *
 * Prints the number and the worst of each kind, in milliseconds.
 */
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include "lockhistory.h"

#define EVENTS_MAX 10000u
#define KINDS_MAX 16u

struct event {
	char what[24];
	uint32_t node;
	uint64_t begin_ns, end_ns;
};

struct times {
	uint64_t detection_ns, fencing_ns, total_ns;
};

struct kind {
	const char *what;
	unsigned count;
	struct times worst;
	uint64_t own_ns; /* the worst of total without detection and fencing */
};

static struct event events[EVENTS_MAX];
static unsigned events_count;
static const struct history **histories;
static unsigned histories_count;

static void load_events(const char *path)
{
	FILE *file = fopen(path, "re");
	char line[128];

	if (!file) {
		perror(path);
		exit(2);
	}
	while (events_count < EVENTS_MAX && fgets(line, sizeof(line), file)) {
		struct event *e = &events[events_count];
		double begin, end = 0;

		if (sscanf(line, "%23s %u %lf %lf", e->what, &e->node, &begin,
			   &end) < 3)
			continue;
		e->begin_ns = (uint64_t)(begin * 1e9);
		e->end_ns = (uint64_t)(end * 1e9);
		events_count++;
	}
	fclose(file);
}

static const struct history *load_history(const char *path)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	struct history *h = MAP_FAILED;

	if (fd >= 0)
		h = mmap(NULL, sizeof(*h), PROT_READ, MAP_SHARED, fd, 0);
	if (h == MAP_FAILED || h->magic != HISTORY_MAGIC) {
		fprintf(stderr, "%s: not a history\n", path);
		exit(2);
	}
	close(fd);
	return h;
}

/* The first change of this kind from then on; 0: none. */
static uint64_t change_after(const struct history *h, enum change_kind kind,
			     uint64_t from_ns)
{
	for (uint32_t i = 0; i < h->changes; i++)
		if (h->change[i].kind == kind && h->change[i].ns >= from_ns)
			return h->change[i].ns;
	return 0;
}

/* Threads write them down in nearly the order of time. */
static uint64_t grant_after(const struct history *h, uint64_t from_ns)
{
	uint64_t first_ns = 0;

	for (uint32_t i = 0; i < h->count && i < HISTORY_MAX; i++) {
		uint64_t ns = h->hold[i].begin_ns;

		if (ns >= from_ns && (!first_ns || ns < first_ns))
			first_ns = ns;
	}
	return first_ns;
}

static bool is_fence(const struct event *e)
{
	return !strcmp(e->what, "fence");
}

static uint64_t next_event_ns(unsigned i)
{
	uint64_t next_ns = UINT64_MAX;

	for (unsigned j = 0; j < events_count; j++)
		if (!is_fence(&events[j]) &&
		    events[j].begin_ns > events[i].begin_ns &&
		    events[j].begin_ns < next_ns)
			next_ns = events[j].begin_ns;
	return next_ns;
}

static uint64_t fencing_ns(uint64_t from_ns, uint64_t to_ns)
{
	uint64_t sum_ns = 0;

	for (unsigned i = 0; i < events_count; i++)
		if (is_fence(&events[i]) && events[i].begin_ns >= from_ns &&
		    events[i].end_ns <= to_ns)
			sum_ns += events[i].end_ns - events[i].begin_ns;
	return sum_ns;
}

/* False: nobody has noticed. */
static bool measure(unsigned i, struct times *t)
{
	uint64_t begin_ns = events[i].begin_ns, next_ns = next_event_ns(i);
	uint64_t heard_ns = UINT64_MAX, granted_ns = 0;

	for (unsigned j = 0; j < histories_count; j++) {
		const struct history *h = histories[j];
		uint64_t prepare_ns, running_ns, grant_ns;

		if (h->node == events[i].node)
			continue;
		prepare_ns = change_after(h, CHANGE_PREPARE, begin_ns);
		if (!prepare_ns || prepare_ns >= next_ns)
			continue;
		running_ns = change_after(h, CHANGE_RUNNING, prepare_ns);
		grant_ns = running_ns ? grant_after(h, running_ns) : 0;
		if (!grant_ns)
			continue;
		if (prepare_ns < heard_ns)
			heard_ns = prepare_ns;
		if (grant_ns > granted_ns)
			granted_ns = grant_ns;
	}
	if (!granted_ns)
		return false;
	t->detection_ns = heard_ns - begin_ns;
	t->fencing_ns = fencing_ns(begin_ns, granted_ns);
	t->total_ns = granted_ns - begin_ns;
	return true;
}

static void keep_worst(uint64_t *worst, uint64_t ns)
{
	if (ns > *worst)
		*worst = ns;
}

static void note(struct kind *k, const struct times *t)
{
	k->count++;
	keep_worst(&k->worst.detection_ns, t->detection_ns);
	keep_worst(&k->worst.fencing_ns, t->fencing_ns);
	keep_worst(&k->worst.total_ns, t->total_ns);
	keep_worst(&k->own_ns, t->total_ns - t->detection_ns - t->fencing_ns);
}

static unsigned long long ms(uint64_t ns)
{
	return (unsigned long long)ns / 1000000u;
}

static void print_worst(void)
{
	struct kind kinds[KINDS_MAX] = { 0 };
	unsigned n = 0, k;

	for (unsigned i = 0; i < events_count; i++) {
		struct times t;

		if (is_fence(&events[i]) || !measure(i, &t))
			continue;
		for (k = 0; k < n && strcmp(kinds[k].what, events[i].what); k++)
			;
		if (k == KINDS_MAX)
			continue;
		if (k == n)
			kinds[n++].what = events[i].what;
		note(&kinds[k], &t);
	}
	printf("%-18s %6s %10s %10s %10s %10s\n", "worst, in ms", "times",
	       "detection", "fencing", "rest", "total");
	for (k = 0; k < n; k++)
		printf("%-18s %6u %10llu %10llu %10llu %10llu\n", kinds[k].what,
		       kinds[k].count, ms(kinds[k].worst.detection_ns),
		       ms(kinds[k].worst.fencing_ns), ms(kinds[k].own_ns),
		       ms(kinds[k].worst.total_ns));
}

static int print_now(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	printf("%lld.%06ld\n", (long long)ts.tv_sec, ts.tv_nsec / 1000);
	return 0;
}

int main(int argc, char **argv)
{
	if (argc == 2 && !strcmp(argv[1], "now"))
		return print_now();
	if (argc < 3)
		return 2;
	load_events(argv[1]);
	histories_count = (unsigned)argc - 2;
	histories = calloc(histories_count, sizeof(const struct history *));
	if (!histories)
		return 2;
	for (int i = 2; i < argc; i++)
		histories[i - 2] = load_history(argv[i]);
	print_worst();
	free(histories);
	return 0;
}
