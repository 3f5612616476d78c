/* SPDX-License-Identifier: GPL-2.0-or-later */
/* queue.c - a binary heap of events. */
#include <stdbool.h>
#include <stdlib.h>

#include "queue.h"

static struct queued **heap;
static size_t count, space;
static uint64_t next_order;

static bool before(const struct queued *a, const struct queued *b)
{
	if (a->at_ns != b->at_ns)
		return a->at_ns < b->at_ns;
	return a->order < b->order;
}

void queue_put(struct queued *event)
{
	size_t i = count++;

	event->order = next_order++;
	if (count > space) {
		space = space ? space * 2 : 256;
		heap = realloc(heap, space * sizeof(*heap));
	}
	while (i && before(event, heap[(i - 1) / 2])) {
		heap[i] = heap[(i - 1) / 2];
		i = (i - 1) / 2;
	}
	heap[i] = event;
}

struct queued *queue_take(void)
{
	struct queued *first = heap[0], *last = heap[--count];
	size_t i = 0;

	for (;;) {
		size_t c = 2 * i + 1;

		if (c + 1 < count && before(heap[c + 1], heap[c]))
			c++;
		if (c >= count || before(last, heap[c]))
			break;
		heap[i] = heap[c];
		i = c;
	}
	heap[i] = last;
	return first;
}

void queue_reset(void)
{
	next_order = 0;
}

size_t queue_count(void)
{
	return count;
}

struct queued *queue_at(size_t i)
{
	return heap[i];
}
