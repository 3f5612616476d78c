/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * asked.h - whether a process has ever asked a group to let it in, and been let
 * in.
 *
 * A process that has not asked cannot be a member to anybody, so that nobody
 * needs a proof of its death. One that has asked and not heard an answer may be
 * one to others, who had it a moment earlier. Its supervisor has to know that
 * for certain after its end: they share a page, in which the process notes it.
 *
 * State at file scope: it is of the process, as its parent is.
 */
#ifndef UG_CLUSTER_ASKED_H
#define UG_CLUSTER_ASKED_H

#include <stdbool.h>

/* Before the fork. 0 or a negative errno. */
int asked_share(void);
/* The child, before each time that it asks. */
void asked_note(void);
/* The child, when it has been let in. */
void asked_note_admitted(void);
/* The parent: true also if nothing is shared, since then nobody knows. */
bool asked_ever(void);
bool asked_was_admitted(void);

#endif
