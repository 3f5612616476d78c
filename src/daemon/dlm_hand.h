/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * dlm_hand.h - locks that a person takes and releases, one command each.
 *
 * They belong to the lock process and stay until they are unlocked or the
 * process ends; a number names each. An operation runs in the thread of the
 * command that asked for it, and its end comes by an ast on the thread that
 * dispatches; a command that is interrupted or has waited long enough cancels.
 */
#ifndef UG_DAEMON_DLM_HAND_H
#define UG_DAEMON_DLM_HAND_H

#include <jansson.h>

#include "daemon/control.h"
#include "ugfs/ugdlm.h"

/* More are refused: nobody takes so many by hand. */
#define HAND_LOCKS_MAX 1000u

struct hand;

/* NULL: no memory. */
struct hand *hand_new(void);
/* After ugdlm_leave(), when no verb runs any more. */
void hand_free(struct hand *hand);

/* Locks are granted and refused through this one; NULL: no more, end waits. */
void hand_set_lockspace(struct hand *hand, struct ugdlm *ls);

unsigned hand_count(struct hand *hand);
/* An array of all locks. */
json_t *hand_json(struct hand *hand);

/* The verbs "lock" and "unlock" (control.h). */
int hand_lock(struct hand *hand, struct control_call *call, const json_t *args);
int hand_unlock(struct hand *hand, struct control_call *call,
		const json_t *args);

#endif
