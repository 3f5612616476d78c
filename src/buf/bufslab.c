/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * bufslab.c - memory of buffers: structures and aligned blocks, in slabs.
 *
 * Direct I/O wants aligned memory; taking it block by block from malloc would
 * double it, as each piece is followed by a header of the allocator. A slab
 * is one aligned area of SLAB_BUFS blocks and the structures for them:
 *
 *   struct bufslab { ..., bufs[0], bufs[1], ... }
 *                         |        |
 *   area: | block 0 | block 1 | ...
 *
 * A slab that has become empty is kept if it is the only one, so that a cache
 * at its bound does not ask the system for memory with every miss.
 */
#include <stdlib.h>
#include <string.h>

#include "base/assert.h"
#include "buf/bufslab.h"

#define SLAB_BUFS 32u

struct bufslab {
	struct cds_list_head link; /* heap->bh_usable, if free is not NULL */
	unsigned used;
	struct buf *free; /* chained by b_hash_next */
	void *area;
	struct buf bufs[SLAB_BUFS];
};

static struct bufslab *slab_new(struct bufheap *heap)
{
	struct bufslab *slab = calloc(1, sizeof(*slab));

	if (!slab)
		return NULL;
	slab->area = blkdev_alloc((size_t)SLAB_BUFS * heap->bh_block_bytes);
	if (!slab->area) {
		free(slab);
		return NULL;
	}
	for (unsigned i = SLAB_BUFS; i-- > 0;) {
		struct buf *b = &slab->bufs[i];

		b->b_data =
			(char *)slab->area + (size_t)i * heap->bh_block_bytes;
		b->b_slab = slab;
		b->b_hash_next = slab->free;
		slab->free = b;
	}
	cds_list_add(&slab->link, &heap->bh_usable);
	heap->bh_empty++;
	return slab;
}

static void slab_release(struct bufheap *heap, struct bufslab *slab)
{
	cds_list_del(&slab->link);
	heap->bh_empty--;
	free(slab->area);
	free(slab);
}

static struct buf *slab_pop(struct bufheap *heap, struct bufslab *slab)
{
	struct buf *b = slab->free;

	slab->free = b->b_hash_next;
	b->b_hash_next = NULL;
	if (slab->used++ == 0)
		heap->bh_empty--;
	if (!slab->free)
		cds_list_del(&slab->link);
	heap->bh_used++;
	return b;
}

struct buf *bufheap_alloc(struct bufheap *heap)
{
	struct bufslab *slab;
	struct buf *b = NULL;

	pthread_mutex_lock(&heap->bh_lock);
	if (cds_list_empty(&heap->bh_usable))
		slab = slab_new(heap);
	else
		slab = cds_list_first_entry(&heap->bh_usable, struct bufslab,
					    link);
	if (slab)
		b = slab_pop(heap, slab);
	pthread_mutex_unlock(&heap->bh_lock);
	return b;
}

static void slab_push(struct bufheap *heap, struct bufslab *slab, struct buf *b)
{
	void *data = b->b_data;

	memset(b, 0, sizeof(*b));
	b->b_data = data;
	b->b_slab = slab;
	if (!slab->free)
		cds_list_add(&slab->link, &heap->bh_usable);
	b->b_hash_next = slab->free;
	slab->free = b;
	heap->bh_used--;
	if (--slab->used == 0 && ++heap->bh_empty > 1)
		slab_release(heap, slab);
}

void bufheap_free(struct bufheap *heap, struct buf *b)
{
	pthread_mutex_lock(&heap->bh_lock);
	slab_push(heap, b->b_slab, b);
	pthread_mutex_unlock(&heap->bh_lock);
}

void bufheap_init(struct bufheap *heap, uint32_t block_bytes)
{
	memset(heap, 0, sizeof(*heap));
	pthread_mutex_init(&heap->bh_lock, NULL);
	heap->bh_block_bytes = block_bytes;
	CDS_INIT_LIST_HEAD(&heap->bh_usable);
}

void bufheap_fini(struct bufheap *heap)
{
	struct bufslab *slab, *next;

	ug_assert(heap->bh_used == 0);
	cds_list_for_each_entry_safe (slab, next, &heap->bh_usable, link)
		slab_release(heap, slab);
	pthread_mutex_destroy(&heap->bh_lock);
}
