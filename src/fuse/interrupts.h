/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * interrupts.h - INTERRUPTs that came before the request they name.
 *
 * Two readers read a request and its INTERRUPT, and the latter may be looked at
 * first: it is remembered until the request is queued. Most name requests that
 * have been answered meanwhile and are never asked for; the oldest is
 * overwritten. Not locked: the session's lock guards it.
 */
#ifndef UG_FUSE_INTERRUPTS_H
#define UG_FUSE_INTERRUPTS_H

#include <stdbool.h>
#include <stdint.h>

#define INTERRUPTS_KEPT 64u

struct interrupts {
	uint64_t unique[INTERRUPTS_KEPT]; /* 0: none */
	unsigned next;			  /* the oldest */
};

static inline void interrupts_keep(struct interrupts *ints, uint64_t unique)
{
	ints->unique[ints->next++ % INTERRUPTS_KEPT] = unique;
}

/* Has one come for this request? It is forgotten then. */
static inline bool interrupts_take(struct interrupts *ints, uint64_t unique)
{
	for (unsigned i = 0; i < INTERRUPTS_KEPT; i++) {
		if (ints->unique[i] == unique) {
			ints->unique[i] = 0;
			return true;
		}
	}
	return false;
}

#endif
