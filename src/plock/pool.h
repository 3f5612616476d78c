/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * pool.h - records of one size, named by numbers of 32 bits.
 *
 * A number is half a pointer, the same in every run, and without the 16 bytes
 * that malloc() adds to each record. Records stay where they are. Memory is
 * kept until the pool is freed: what was needed once is needed again. Pure; the
 * owner serialises calls.
 */
#ifndef UG_PLOCK_POOL_H
#define UG_PLOCK_POOL_H

#include <stddef.h>
#include <stdint.h>

#ifdef UG_PLOCK_SMALL
#define POOL_SHIFT 1 /* tests: memory can be missing at every step */
#else
#define POOL_SHIFT 8
#endif
#define POOL_CHUNK (1u << POOL_SHIFT)

struct pool {
	uint8_t **chunks;
	uint32_t chunk_count;
	uint32_t chunk_space;
	uint32_t size; /* of a record; at least 4 */
	uint32_t used;
	uint32_t high; /* ids below have been used once; 0 is no record */
	uint32_t first_free;
	uint32_t promised; /* records that pool_ready() may not give away */
};

void pool_init(struct pool *pool, size_t size);
void pool_free(struct pool *pool);

/*
 * The next n pool_take() succeed, beside all that is promised. -ENOMEM;
 * -ENOLCK: RANGE_RECORDS_MAX are in use or promised.
 */
int pool_ready(struct pool *pool, uint32_t n);

/* After pool_ready(); not zeroed. Never 0. */
uint32_t pool_take(struct pool *pool);
void pool_give(struct pool *pool, uint32_t id);

static inline void *pool_at(const struct pool *pool, uint32_t id)
{
	return pool->chunks[id >> POOL_SHIFT] +
	       (size_t)(id & (POOL_CHUNK - 1)) * pool->size;
}

#endif
