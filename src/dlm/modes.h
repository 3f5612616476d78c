/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * modes.h - the relations of lock modes, as constant tables. Pure.
 * Source: docs/spec/dlm.md 1.4, 1.5, 1.13.
 */
#ifndef UG_DLM_MODES_H
#define UG_DLM_MODES_H

#include <stdbool.h>

#include "dlm/dlm.h"

enum lvb_move {
	LVB_KEEP,
	LVB_READ,  /* resource to lock */
	LVB_WRITE, /* lock to resource */
};

bool mode_valid(int mode); /* LKM_NL to LKM_EX */

/* LKM_IV is compatible with everything. */
bool modes_conflict(int a, int b);

/* from: LKM_IV for a new lock. */
enum lvb_move mode_lvb(int from, int to);

/* LKF_QUECVT is legal for this pair. */
bool mode_may_queue(int from, int to);

/* PR and CW are not ordered: neither includes the other. */
bool mode_is_middle(int from, int to);
bool mode_is_down(int from, int to);

const char *mode_name(int mode);

#endif
