/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * dlm.h - lock_dlm: the glocks of a mount as locks of a DLM lockspace.
 *
 * Names, modes and value blocks are those of Linux GFS2 (docs/spec/glocks.md
 * 1.2, 0.3, 0.4): a lock is made in the mode that is wanted first, converted
 * from then on, to NL for "unlocked", and unlocked when its glock goes.
 *
 * Threads: as lockmod.h. The answers and the callbacks come from whoever runs
 * ugdlm_dispatch(), which is the caller's to do, in a thread of its own that
 * does nothing else.
 * Life: the lockspace is the caller's. In this order: lockmod_dlm_create(),
 * glock_table_create(), ..., glock_table_destroy() (dispatching goes on),
 * ugdlm_leave(), lockmod_dlm_destroy().
 */
#ifndef UG_LOCKMOD_DLM_H
#define UG_LOCKMOD_DLM_H

#include "glock/lockmod.h"
#include "ugfs/ugdlm.h"

struct lockmod_dlm;

/* who is for the log, copied. 0 or -ENOMEM. */
int lockmod_dlm_create(struct ugdlm *ls, const char *who,
		       struct lockmod_dlm **out);
/* After ugdlm_leave(). */
void lockmod_dlm_destroy(struct lockmod_dlm *dlm);

/* For glock_table_create(). */
struct lockmod lockmod_dlm(struct lockmod_dlm *dlm);

/*
 * The lockspace will be left soon: locks in NL, which nobody waits for, are not
 * unlocked one by one any more. To be called when an unmount begins.
 */
void lockmod_dlm_leaving(struct lockmod_dlm *dlm);

/*
 * For a mount that has withdrawn and leaves while its glocks are still there:
 * nothing is asked of the lockspace from the return of this on, requests fail.
 * Then ugdlm_leave(), with the dispatcher stopped; then lockmod_dlm_fail()
 * answers the requests that nobody else will.
 */
void lockmod_dlm_cut(struct lockmod_dlm *dlm);
void lockmod_dlm_fail(struct lockmod_dlm *dlm);

struct lockmod_dlm_stats {
	uint64_t requests; /* ugdlm_lock() */
	uint64_t at_once;  /* of these: answered within the call */
	uint64_t asts;	   /* of these: answered later */
	uint64_t basts;	   /* other nodes wanted a lock */
	uint64_t cancels;
	uint64_t unlocks;
	uint64_t lvbs_lost; /* value blocks that came marked as lost */
};

void lockmod_dlm_stats(struct lockmod_dlm *dlm,
		       struct lockmod_dlm_stats *stats);

/* The 24 bytes of a resource name: type and number, in hex, right-justified. */
#define LOCKMOD_DLM_NAME_LEN 24u
void lockmod_dlm_name(enum lm_type type, uint64_t number,
		      char name[LOCKMOD_DLM_NAME_LEN]);

#endif
