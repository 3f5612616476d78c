/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * pool.c - records in chunks; the free ones are a list through their first
 * four bytes.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/assert.h"
#include "plock/limits.h"
#include "plock/pool.h"

void pool_init(struct pool *pool, size_t size)
{
	*pool = (struct pool){ .size = (uint32_t)size, .high = 1 };
}

void pool_free(struct pool *pool)
{
	for (uint32_t i = 0; i < pool->chunk_count; i++)
		free(pool->chunks[i]);
	free(pool->chunks);
	pool_init(pool, pool->size);
}

static int add_chunk(struct pool *pool)
{
	uint8_t *chunk;

	if (pool->chunk_count == pool->chunk_space) {
		uint32_t space = pool->chunk_space ? pool->chunk_space * 2 : 4;
		uint8_t **chunks =
			realloc(pool->chunks, space * sizeof(*chunks));

		if (!chunks)
			return -ENOMEM;
		pool->chunks = chunks;
		pool->chunk_space = space;
	}
	chunk = malloc((size_t)POOL_CHUNK * pool->size);
	if (!chunk)
		return -ENOMEM;
	pool->chunks[pool->chunk_count++] = chunk;
	return 0;
}

/* Records that exist, taken or not; the first of the first chunk is none. */
static uint64_t pool_records(const struct pool *pool)
{
	uint64_t all = (uint64_t)pool->chunk_count << POOL_SHIFT;

	return all ? all - 1 : 0;
}

int pool_ready(struct pool *pool, uint32_t n)
{
	uint64_t need = (uint64_t)pool->used + pool->promised + n;

	if (need > RANGE_RECORDS_MAX)
		return -ENOLCK;
	while (pool_records(pool) < need) {
		if (add_chunk(pool))
			return -ENOMEM;
	}
	return 0;
}

uint32_t pool_take(struct pool *pool)
{
	uint32_t id = pool->first_free;

	pool->used++;
	if (id) {
		memcpy(&pool->first_free, pool_at(pool, id), sizeof(id));
		return id;
	}
	ug_assert(pool->high >> POOL_SHIFT < pool->chunk_count);
	return pool->high++;
}

void pool_give(struct pool *pool, uint32_t id)
{
	ug_assert(id && id < pool->high && pool->used);
	memcpy(pool_at(pool, id), &pool->first_free, sizeof(id));
	pool->first_free = id;
	pool->used--;
}
