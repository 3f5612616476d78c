/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * grow.h - lists that double.
 */
#ifndef UG_BASE_GROW_H
#define UG_BASE_GROW_H

#include <stdlib.h>

#include "base/compiler.h"

/*
 * The list with room for "need" items of this size; *space is what there is
 * room for (0: list may be NULL). NULL: no memory, and the list is as it was.
 * The caller keeps what comes back; free() ends it.
 */
static inline void *ug_grow(void *list, size_t *space, size_t need, size_t size)
{
	size_t more = *space ? *space : 32;
	void *bigger;

	if (ug_likely(list && need <= *space))
		return list;
	while (more < need)
		more *= 2;
	bigger = realloc(list, more * size);
	if (bigger)
		*space = more;
	return bigger;
}

#endif
