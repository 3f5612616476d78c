/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * limits.h - every bound of application locks, in one place.
 * Source: docs/spec/plocks.md.
 */
#ifndef UG_PLOCK_LIMITS_H
#define UG_PLOCK_LIMITS_H

/* Locks, waiting requests and owners of one node's tables, each. */
#define RANGE_RECORDS_MAX (1u << 28)

/*
 * A reader may pass a writer that waits if it comes this soon after him (spec
 * 2.6): readers that come together are served together.
 */
#define RANGE_BATCH_NS 10000000u

/*
 * Locks that the search for a deadlock looks at. Beyond them it gives up: a
 * deadlock may go unnoticed, a wrong one may not be reported.
 */
#define RANGE_SEARCH_MAX 1000u

#endif
