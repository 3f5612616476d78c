/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * fakedlm.h - the functions of ugfs/ugdlm.h, for several members in one
 * process.
 *
 * A lock server in memory with the DLM's modes, queues, conversions and their
 * deadlocks, value blocks and callbacks; nothing is lost, nobody recovers.
 * Callbacks of a member come from ugdlm_dispatch(), which one thread of it
 * runs; those of different locks in any order, which the seed decides, as it
 * does what is answered within the call.
 */
#ifndef UG_TESTS_FAKEDLM_H
#define UG_TESTS_FAKEDLM_H

#include <stdbool.h>
#include <stdint.h>

#include "ugfs/ugdlm.h"

struct fakedlm;

struct fakedlm *fakedlm_new(uint64_t seed);
/* All members must have left or been killed. */
void fakedlm_free(struct fakedlm *f);

/* How many of a hundred answers that could be given at once are. */
void fakedlm_set_inline(struct fakedlm *f, unsigned percent);

struct ugdlm *fakedlm_join(struct fakedlm *f);
/* Locks are dropped; no callback comes any more. */
void fakedlm_leave(struct ugdlm *ls);
/* The same, but what it had locked exclusively has a lost value block. */
void fakedlm_kill(struct ugdlm *ls);
/* The member is out: what is under way ends as UGDLM_LOST. */
void fakedlm_lose(struct ugdlm *ls);
/* The next so many calls of this member have no memory. */
void fakedlm_no_memory(struct ugdlm *ls, unsigned calls);

/* Wait until there is a callback, or fakedlm_wake(). False: woken. */
bool fakedlm_wait(struct ugdlm *ls);
void fakedlm_wake(struct ugdlm *ls);

/* What was called by the members since the last time: "lock EX, convert NL". */
void fakedlm_trace(struct fakedlm *f, char *text, size_t size);
/* Locks of all members. */
unsigned fakedlm_locks(struct fakedlm *f);
/* Print all resources with their queues. */
void fakedlm_print(struct fakedlm *f);
/* Assert that no two incompatible modes are granted. */
void fakedlm_check(struct fakedlm *f);

#endif
