/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * bufslab.h - memory of buffers: structures and aligned blocks, in slabs.
 *
 * Safe from any thread (one leaf lock per heap). A buffer that comes out has
 * its b_data, b_slab set for life, everything else zero; the content of
 * b_data is whatever was there.
 */
#ifndef UG_BUF_BUFSLAB_H
#define UG_BUF_BUFSLAB_H

#include <pthread.h>
#include <stdint.h>
#include <urcu/list.h>

#include "buf/buf.h"

struct bufheap {
	pthread_mutex_t bh_lock; /* guards all below */
	uint32_t bh_block_bytes;
	struct cds_list_head bh_usable; /* slabs with a free buffer */
	unsigned bh_empty; /* of these, without any buffer in use */
	uint64_t bh_used;  /* buffers handed out */
};

void bufheap_init(struct bufheap *heap, uint32_t block_bytes);
/* All buffers must have come back. */
void bufheap_fini(struct bufheap *heap);

/* NULL if there is no memory. */
struct buf *bufheap_alloc(struct bufheap *heap);
void bufheap_free(struct bufheap *heap, struct buf *b);

#endif
