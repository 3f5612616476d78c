/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * plocks.h - the application locks of one mount: the engine of src/plock among
 * clocks, threads, links and members.
 *
 * A call is answered at once if its file is decided here and nothing is in the
 * way; else later, by done(), on whatever thread has found the answer. Each
 * call has one answer. Calls of one owner are decided in the order in which
 * they were given.
 *
 * Threads: any function from any thread, but plocks_destroy() not in done().
 * No function but plocks_destroy() waits for another member, and none for a
 * disk.
 * Ownership: arguments stay the caller's, results are copied out.
 * Source: docs/spec/plocks.md 11.
 */
#ifndef UG_CLUSTER_PLOCKS_H
#define UG_CLUSTER_PLOCKS_H

#include "plock/plock.h"

struct plocks;
struct ugdlm;

struct plocks_params {
	/*
	 * The lockspace of the volume, joined with its uuid; NULL: one member,
	 * alone.
	 */
	struct ugdlm *ls;
	/*
	 * The answer of a call that was under way. No lock is held; it may call
	 * any function here but plocks_destroy(), and should not wait: messages
	 * of other members wait for it.
	 */
	void (*done)(void *arg, const struct plock_result *res);
	void *arg;
	struct plock_tuning tuning; /* from now on; all zero: as built in */
};

/*
 * One for a mount; params are copied. -EINVAL: the lockspace has no uuid,
 * or as plock_tune();
 * -EBUSY: it has one already; -ENOMEM.
 */
int plocks_create(const struct plocks_params *params, struct plocks **out);

/*
 * No done() runs or comes after this; calls under way are not answered any
 * more. To be called before ugdlm_leave(). NULL is nothing.
 */
void plocks_destroy(struct plocks *p);

/*
 * Lock, unlock, ask or close. number names the file, ctx the call in its
 * answer; op->fair is not read.
 *
 * 0: *res is the answer (struct plock_result). -EINPROGRESS: done() comes once,
 * perhaps before this returns; *id names the call for plocks_cancel(). Refused,
 * and nothing has changed: -EINVAL: no such operation or range; -ENOMEM, which
 * an unlock and a close never get: they wait for memory. After plocks_fail()
 * the answer is -EIO; of an unlock or a close, 0.
 */
int plocks_call(struct plocks *p, uint64_t number, const struct plock_op *op,
		uint64_t ctx, uint64_t *id, struct plock_result *res);

/*
 * The caller of a SET that waits was interrupted. Its answer, -EINTR or the
 * grant that came first, comes by done() as ever. 0; -ENOENT: it has been
 * answered.
 */
int plocks_cancel(struct plocks *p, uint64_t id);

/*
 * This owner may have locks or calls here. False is sure, so nothing is to be
 * closed. Of a caller with a call of this owner under way in another thread it
 * says what was true before or after that one.
 */
bool plocks_knows(struct plocks *p, enum plock_table table, uint64_t owner);

/* This member in a struct range_owner. */
uint64_t plocks_node(const struct plocks *p);

/*
 * The volume is withdrawn, or the lockspace lost: calls under way end with
 * -EIO, unlocks and closes with 0, all later ones as well. What processes here
 * held stays locked for the others until this member is gone and released.
 */
void plocks_fail(struct plocks *p);

/*
 * Alone only: do what time brings, and say when to do so again (monotonic ns,
 * UINT64_MAX: nothing is due). Nothing is lost without it but memory.
 */
uint64_t plocks_tick(struct plocks *p);

/* Other limits from now on. -EINVAL as plock_tune(). */
int plocks_tune(struct plocks *p, const struct plock_tuning *tuning);

/* Looking inside */

void plocks_count(struct plocks *p, struct plock_counts *out);

/*
 * All that this member knows, as one JSON object: files with who serialises
 * them, locks, waits, calls under way here, counters, times. The text is the
 * caller's, to be freed. -ENOMEM. Not in done().
 */
int plocks_json(struct plocks *p, char **text);

#endif
