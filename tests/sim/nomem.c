/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * nomem.c - malloc and its kin, which fail now and then while an engine is in
 * a step. The linker puts these in the place of the real ones (--wrap).
 */
#include "sim.h"

unsigned nomem_one_in;
uint64_t nomem_count;
static struct ug_prng prng;

void *__real_malloc(size_t size);
void *__real_calloc(size_t n, size_t size);
void *__real_realloc(void *p, size_t size);
void *__wrap_malloc(size_t size);
void *__wrap_calloc(size_t n, size_t size);
void *__wrap_realloc(void *p, size_t size);

void nomem_seed(uint64_t seed)
{
	ug_prng_seed(&prng, seed);
}

static bool fails(void)
{
	if (!nomem_one_in || ug_prng_below(&prng, nomem_one_in))
		return false;
	nomem_count++;
	return true;
}

void *__wrap_malloc(size_t size)
{
	return fails() ? NULL : __real_malloc(size);
}

void *__wrap_calloc(size_t n, size_t size)
{
	return fails() ? NULL : __real_calloc(n, size);
}

void *__wrap_realloc(void *p, size_t size)
{
	return fails() ? NULL : __real_realloc(p, size);
}
