/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * agreement.h - what all members of a volume must have set alike.
 *
 * Each member holds, as long as it is one, a lock (PR) whose name says what it
 * has set: "plock_ownership=1". A newcomer asks for the locks (EX) of all other
 * values: who cannot have one of them knows what somebody else has set.
 * Newcomers do this one after the other, since each holds the lock "settings"
 * (EX) meanwhile. No value is stored anywhere, so none can be stale: locks end
 * with their member.
 *
 * Threads: one; another one has to dispatch the lockspace's callbacks.
 */
#ifndef UG_DAEMON_AGREEMENT_H
#define UG_DAEMON_AGREEMENT_H

#include "daemon/plockset.h"
#include "ugfs/ugdlm.h"

struct agreement;

struct agreement_params {
	struct ugdlm *ls; /* running */
	const struct plock_settings *set;
	/* Names of the other members, for people: "fs1, fs2". */
	void (*others)(void *arg, char *buf, size_t len);
	/* Has somebody asked us to give up? */
	bool (*interrupted)(void *arg);
	void *arg;
};

/*
 * -EINVAL: the others have set something else; -EINTR; -EIO: the lockspace is
 * lost; -ENOMEM. A sentence in why. *out stays until the lockspace has been
 * left, then to agreement_free(); it is set in any case but -ENOMEM.
 */
int agreement_reach(const struct agreement_params *params,
		    struct agreement **out, char *why, size_t why_len);
void agreement_free(struct agreement *a); /* NULL is accepted */

#endif
