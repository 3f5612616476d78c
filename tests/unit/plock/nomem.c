/* SPDX-License-Identifier: GPL-2.0-or-later */
/* nomem.c - see nomem.h */
#include <stdbool.h>
#include <stddef.h>

#include "nomem.h"

long nomem_after = -1;

void *__real_malloc(size_t size);
void *__real_calloc(size_t n, size_t size);
void *__real_realloc(void *p, size_t size);
void *__wrap_malloc(size_t size);
void *__wrap_calloc(size_t n, size_t size);
void *__wrap_realloc(void *p, size_t size);

static bool fails(void)
{
	if (nomem_after < 0)
		return false;
	if (nomem_after == 0)
		return true;
	nomem_after--;
	return false;
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
