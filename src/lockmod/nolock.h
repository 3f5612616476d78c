/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * nolock.h - lock_nolock: one machine at a time, every lock is granted at once.
 */
#ifndef UG_LOCKMOD_NOLOCK_H
#define UG_LOCKMOD_NOLOCK_H

#include "glock/lockmod.h"

/* The module; it has no state. */
struct lockmod lockmod_nolock(void);

#endif
